"""A constant bound on each cell of an adaptive grid: the maximum of the rate there, found numerically.

The total rate is looked at in the begin, the middle and the end of the cell. When the middle is highest its maximum is
searched by successive parabolas inside the bracket (golden sections where these do not help: Brent's method); else it
is at an end. The margin covers what the search leaves, and more where the three rates bend. Widths follow the rules of
`pdmp.thinning.grid`, and so does the counting of violations: this bound is an approximation.

References
----------
Corbella, Spencer & Roberts (2022), Automatic Zig-Zag sampling in practice, Stat. Comput. 32, section 3; Brent (1973),
Algorithms for minimization without derivatives, chapter 5.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import compiled
from pdmp.process import HORIZON
from pdmp.thinning.bound import Bound, events_so_far, next_other
from pdmp.thinning.grid import (
    BEGIN,
    CLOCK,
    END,
    EVENTS,
    LEFT,
    LOCAL,
    MISJUDGED,
    WIDTH,
    adapt,
    current,
    no_cell,
    total_rate,
)

GOLDEN = 0.381966011250105  #: (3 - √5) / 2


class Maxima(Bound):
    """The adaptive grid of numerical maxima.

    Parameters
    ----------
    margin : float, default 0.25
        What is added to the maximum found, in units of the bend of the cell's three rates (their second difference).
    searches : int, default 4
        Evaluations inside a cell whose middle is highest.
    """

    margin: float
    searches: int

    name = "the grid of numerical maxima"
    exact = False
    adapts = True

    def __init__(self, margin=0.25, searches=4):
        if not margin >= 0.0:
            raise ValueError(f"`margin` must be >= 0, got {margin}.")
        if int(searches) != searches or searches < 0:
            raise ValueError(f"`searches` must be an integer >= 0, got {searches}.")
        self.margin, self.searches = float(margin), int(searches)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        cell = memory.cell
        if not current(memory, state, i, now) or cell[END] - cell[BEGIN] > 4.0 * memory.grid[WIDTH]:
            if not self.lay(process, state, i, now, rng):
                return math.nan, HORIZON
        s = rng.standard_exponential() / cell[LEFT] if cell[LEFT] > 0.0 else math.inf
        passed = now + s >= cell[END]
        adapt(memory, state, passed)
        if s < 0.01 * (cell[END] - cell[BEGIN]):  # much too wide
            memory.grid[WIDTH] *= 0.5
        if passed:
            return cell[END], HORIZON
        return now + s, cell[LEFT]

    @compiled(inline=False)
    def lay(self, process, state, i, now, rng):
        """Lay a cell that begins at `now`; whether the rates are finite in it."""
        memory = state.memory.bound
        nodes, grid, cell = memory.nodes, memory.grid, memory.cell
        width = min(grid[WIDTH], 2.0 * grid[LOCAL])
        capped = next_other(state, i, now) - now <= width * (1.0 + 1e-9)
        if capped:
            width = next_other(state, i, now) - now
        process.rates(state, now, rng, nodes[0])
        process.rates(state, now + 0.5 * width, rng, nodes[1])
        process.rates(state, now + width, rng, nodes[2])
        low, middle, high = total_rate(nodes, 0), total_rate(nodes, 1), total_rate(nodes, 2)
        if math.isnan(low):
            return False
        bend = 0.0
        for _ in range(60):
            bend = 0.0
            for j in range(nodes.shape[1]):
                if max(nodes[0, j], nodes[1, j], nodes[2, j]) > 0.0:
                    bend += abs(nodes[0, j] - 2.0 * nodes[1, j] + nodes[2, j])
            if not math.isnan(middle + high) and bend * width <= grid[MISJUDGED]:
                break
            capped, width, high = False, 0.5 * width, middle
            for j in range(nodes.shape[1]):
                nodes[2, j] = nodes[1, j]
            process.rates(state, now + 0.5 * width, rng, nodes[1])
            middle = total_rate(nodes, 1)
        if math.isnan(middle + high) or now + width <= now:
            return False

        top = max(low, high)
        if middle > top:
            top = self.search(process, state, now, width, low, middle, high, rng)
        if not capped:
            grid[LOCAL] = width
        cell[BEGIN], cell[END] = now, now + width
        if capped:  # what rings there rings first: it may be a wall, beyond which the target is not defined
            cell[END] = np.nextafter(cell[END], np.inf)
        cell[LEFT] = top + self.margin * bend
        cell[EVENTS], cell[CLOCK] = events_so_far(state), i
        return True

    @compiled(inline=False)
    def search(self, process, state, now, width, low, middle, high, rng):
        """The maximum of the total rate in a cell whose middle is higher than its ends."""
        nodes = state.memory.bound.nodes
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
            process.rates(state, now + t, rng, nodes[1])
            found = total_rate(nodes, 1)
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

    def memory(self, m, dim, width):
        return no_cell(m, width)
