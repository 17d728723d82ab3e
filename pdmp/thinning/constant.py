"""First arrivals of clocks of constant rate, and bounds that hold for every position and velocity of a path.

They exist for potentials with a bounded gradient: heavy tails, a Laplace prior, a logistic likelihood without a prior.
"""

from __future__ import annotations

import math

from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, inlined, positive_part
from pdmp.process import CERTAIN
from pdmp.thinning.bound import Bound


@inlined
def constant_arrival(rate, rng):
    """First arrival of a Poisson clock of this constant rate; infinite, and without a random draw, for rate 0."""
    if rate == 0.0:
        return math.inf
    return rng.standard_exponential() / rate


class Constant(Bound):
    """A number that the total rate never exceeds.

    Parameters
    ----------
    level : float
        At least the supremum of the clock's rate over x and v: sup|∇U| |v| for BPS, Σᵢ sup|∂ᵢU| for Zig-Zag.

    Raises
    ------
    ValueError
        Unless `level` is a positive finite number.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.Constant(2.0).level
    2.0
    """

    level: float

    name = "the constant bound"

    def __init__(self, level: float) -> None:
        self.level = positive("level", level)

    @compiled
    def propose(self, process, state, i, now, rng):
        return now + rng.standard_exponential() / self.level, self.level


class ModelConstant(Bound):
    """The model's bounds on the signed rates themselves, for every x.

    Examples
    --------
    >>> import pdmp
    >>> bound = pdmp.thinning.ModelConstant()
    >>> bound.exact
    True
    """

    name = "the model's constant bound"
    wants = ("directional_derivative_bound", "partial_derivative_bounds")

    @compiled
    def propose(self, process, state, i, now, rng):
        levels = state.memory.bound.rates
        process.rate_bounds(state, levels)
        total = 0.0
        for j in range(levels.shape[0]):
            total += positive_part(levels[j])
        if not math.isfinite(total):
            return now, math.nan
        if total == 0.0:
            return math.inf, CERTAIN
        return now + rng.standard_exponential() / total, total
