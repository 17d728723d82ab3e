"""An adaptive bound whose cells are never wider than a given time: where rates repeat, wider ones would not see it."""

from __future__ import annotations

from pdmp.native.classes import Compiled, compiled
from pdmp.thinning.bound import Bound


class Narrow(Bound):
    """`Grid` or `Maxima` with cells of at most `widest`.

    Parameters
    ----------
    bound : Grid or Maxima
    widest : float

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.Narrow(pdmp.thinning.Grid(), widest=1.0).widest
    1.0
    """

    bound: Compiled
    widest: float

    exact = False
    adapts = True

    def __init__(self, bound: float | None, widest: float) -> None:
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
