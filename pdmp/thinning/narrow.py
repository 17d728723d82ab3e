"""An adaptive bound with a largest width of its cells: a cell as long as a period of the rate would miss its maxima."""

from __future__ import annotations

from pdmp.native.classes import compiled
from pdmp.thinning.bound import Bound
from pdmp.thinning.grid import Grid
from pdmp.thinning.maxima import Maxima


class Narrow(Bound):
    """`Grid` or `Maxima` with cells of at most `widest`.

    Parameters
    ----------
    bound : Grid or Maxima
        The bound whose cells are limited.
    widest : float
        The largest width of a cell, in process time.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.Narrow(pdmp.thinning.Grid(), widest=1.0).widest
    1.0
    """

    bound: Grid | Maxima
    widest: float

    exact = False
    adapts = True

    def __init__(self, bound: Grid | Maxima, widest: float) -> None:
        self.bound, self.widest = bound, float(widest)

    @property
    def name(self) -> str:
        return self.bound.name

    @compiled
    def propose(self, process, state, i, now, rng):
        width = state.memory.bound.width
        width[0] = min(width[0], self.widest)
        return self.bound.propose(process, state, i, now, rng)

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return self.bound.memory(m, dim, min(width, self.widest))
