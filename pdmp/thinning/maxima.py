"""A constant bound on each cell of an adaptive grid: the maximum of the rate there, found numerically.

The total rate is evaluated at the begin, the middle and the end of the cell. When the middle is highest, the maximum is
searched for by successive parabolas inside the bracket (golden sections where these do not help: Brent's method); else
it is at an end. A margin in proportion to the second difference of the three rates is added, because the search is not
exact. The widths follow the rules of `pdmp.thinning.grid`. The bound is an approximation: violations are counted.

References
----------
Corbella, Spencer & Roberts (2022), Automatic Zig-Zag sampling in practice, Stat. Comput. 32, section 3; Brent (1973),
Algorithms for minimization without derivatives, chapter 5.
"""

from __future__ import annotations

import math

from pdmp.native.arguments import count, number
from pdmp.native.classes import compiled
from pdmp.process import HORIZON
from pdmp.thinning.bound import Bound, is_in_cell
from pdmp.thinning.grid import adapt, no_cell, settle, total_rate, width_to_try

GOLDEN = 0.381966011250105  #: (3 - √5) / 2


class Maxima(Bound):
    """The adaptive grid of numerical maxima.

    Parameters
    ----------
    margin : float, default 0.25
        What is added to the maximum found, in units of the second difference of the cell's three rates; at least 0.
    searches : int, default 4
        Evaluations inside a cell whose middle is highest; at least 0.

    Raises
    ------
    ValueError
        For a negative `margin` or `searches`.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target, thinning=pdmp.thinning.Maxima()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    margin: float
    searches: int

    name = "the grid of numerical maxima"
    exact = False
    adapts = True

    def __init__(self, margin: float = 0.25, searches: int = 4) -> None:
        self.margin, self.searches = number("margin", margin, least=0.0), count("searches", searches, least=0)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        if not is_in_cell(memory, state, i, now) or memory.end[0] - memory.begin[0] > 4.0 * memory.width[0]:
            if not self.new_cell(process, state, i, now, rng):
                return math.nan, HORIZON
        s = rng.standard_exponential() / memory.begin_bound[0] if memory.begin_bound[0] > 0.0 else math.inf
        passed = now + s >= memory.end[0]
        adapt(memory, state, passed)
        if s < 0.01 * (memory.end[0] - memory.begin[0]):  # much too wide
            memory.width[0] *= 0.5
        if passed:
            return memory.end[0], HORIZON
        return now + s, memory.begin_bound[0]

    @compiled(inline=False)
    def new_cell(self, process, state, i, now, rng):
        """Make a cell that begins at `now`; whether the rates are finite in it."""
        memory = state.memory.bound
        at_begin, at_inner, at_end = memory.begin_rates, memory.inner_rates, memory.end_rates
        width, capped = width_to_try(memory, state, i, now)
        process.signed_rates(state, now, rng, at_begin)
        process.signed_rates(state, now + 0.5 * width, rng, at_inner)
        process.signed_rates(state, now + width, rng, at_end)
        low, middle, high = total_rate(at_begin), total_rate(at_inner), total_rate(at_end)
        if math.isnan(low) or math.isnan(high) and not process.beyond(state, now + width):
            return False
        difference = 0.0
        for _ in range(60):
            if math.isnan(middle) and not process.beyond(state, now + 0.5 * width):
                return False
            difference = 0.0
            for j in range(at_begin.shape[0]):
                if max(at_begin[j], at_inner[j], at_end[j]) > 0.0:
                    difference += abs(at_begin[j] - 2.0 * at_inner[j] + at_end[j])
            if not math.isnan(middle + high) and difference * width <= memory.tolerance[0]:
                break
            capped, width, high = False, 0.5 * width, middle
            for j in range(at_begin.shape[0]):
                at_end[j] = at_inner[j]
            process.signed_rates(state, now + 0.5 * width, rng, at_inner)
            middle = total_rate(at_inner)
        if math.isnan(middle + high) or now + width <= now:
            return False

        top = max(low, high)
        if middle > top:
            top = self.search(process, state, now, width, low, middle, high, rng)
            if math.isnan(top):
                return False
        settle(memory, state, i, now, width, capped)
        memory.begin_bound[0] = top + self.margin * difference
        return True

    @compiled(inline=False)
    def search(self, process, state, now, width, low, middle, high, rng):
        """The maximum of the total rate in a cell whose middle is higher than its ends; NaN where it is not finite."""
        at_inner = state.memory.bound.inner_rates
        a, b, c = 0.0, 0.5 * width, width  # the bracket, with the best point b inside
        for _ in range(self.searches):
            # The vertex of the parabola through the bracket; a golden section of the longer part where it is no use.
            p = (b - a) * (middle - high)
            q = (b - c) * (middle - low)
            t = b
            if p - q > 0.0:
                t = b - 0.5 * ((b - a) * p - (b - c) * q) / (p - q)
            if not a < t < c or abs(t - b) < 1e-3 * width:
                t = b + GOLDEN * (c - b) if c - b > b - a else b - GOLDEN * (b - a)
            process.signed_rates(state, now + t, rng, at_inner)
            found = total_rate(at_inner)
            if math.isnan(found):
                return found
            if found > middle:
                if t > b:
                    a, low = b, middle
                else:
                    c, high = b, middle
                b, middle = t, found
            elif t > b:
                c, high = t, found
            else:
                a, low = t, found
        return middle

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return no_cell(m, width)
