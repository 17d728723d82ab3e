"""A bound for any smooth target, without knowledge of it: rates at three points of a cell, and room for curvature.

A cell [now, now + h] is bounded by the chords through the rates at its ends and at one point within, raised by what a
parabola through the three may exceed them by, with a factor of safety that also covers jumps (kinks of the potential),
and clipped at zero; each signed component of the rate by itself, so that Zig-Zag's kinks cost nothing. For a quadratic
potential the bound is the rate itself. The point within is not the middle: with two equal jumps, one in each half of
the cell, as sums of absolute values have them, rates at the ends and the middle would lie on a line, and nothing would
be suspected.

The width follows two rules. Economy: it is adapted so that a quarter of the cells pass without an arrival. Accuracy: a
cell over which the bend of the rates would be worth more than half an event ends at its inner point instead, at the
cost of one more gradient, and the next one is at most twice as wide; so wide cells of a tail do not jump over the
centre. A cell ends
where another clock is known to ring. After a rejected proposal the rest of the cell serves on; at its end the gradient
already known there starts the next one.

When the true rate is found above the bound, both rules become stricter; those violations are counted, with their
excess: this bound is an approximation. What it cannot see are features of the rate narrower than a cell, between its
three points, and two jumps in the one proportion, 3 to 7, that does lie on a line.

References
----------
Corbella, Spencer & Roberts (2022), Automatic Zig-Zag sampling in practice, Stat. Comput. 32; Andral & Kamatani (2024),
Automated techniques for efficient sampling of PDMPs (grids of tangents).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.classes import compiled, inlined, positive
from pdmp.process import HORIZON, VIOLATIONS
from pdmp.thinning.bound import Bound, events_so_far, next_other
from pdmp.thinning.piecewise import segment_arrival

#: Of `grid`: the economical width, cells so far, violations seen, the accurate width, and what may be misjudged.
WIDTH, CELLS, SEEN, LOCAL, MISJUDGED = range(5)
#: Of `cell`: when it begins and ends, the bound at its begin, inner point and end; for which path and clock it is.
BEGIN, END, LEFT, INNER, RIGHT, EVENTS, CLOCK = range(7)

PART = 0.3  #: where in a cell its inner point is
EMPTY_CELLS = 0.25  #: part of the cells that pass without an arrival, when the width is economical
TOLERANCE = 0.5  #: number of events that the bend of the rates over one cell may be worth, before any violation
RECOVERY = 0.001  #: how fast that is approached again, for each cell
#: What a parabola may exceed its chords by, in units of its second difference: over the longer one.
NEEDED = 0.5 * max(PART, 1.0 - PART) ** 2


class Cell(NamedTuple):
    """Memory of a bound that lays a grid."""

    nodes: np.ndarray  #: (3, m) signed rates at the begin, the inner point and the end of the cell
    grid: np.ndarray  #: (5,) see above
    cell: np.ndarray  #: (7,)


def no_cell(m, width):
    """Empty `Cell`."""
    return Cell(
        nodes=np.zeros((3, m)),
        grid=np.array([width, 0.0, 0.0, width, TOLERANCE]),
        cell=np.array([0.0, -1.0, 0.0, 0.0, 0.0, -1.0, -1.0]),
    )


@inlined
def current(memory, state, i, now):
    """Whether the cell laid last still holds: the path has gone straight on, and has not left it."""
    cell = memory.cell
    return cell[EVENTS] == events_so_far(state) and cell[CLOCK] == i and cell[BEGIN] <= now < cell[END]


@inlined
def second_difference(a, b, c):
    """Of the parabola with these values at begin, inner point and end of a cell: over its ends and its middle."""
    return 0.5 * ((c - b) / (1.0 - PART) - (b - a) / PART)


@inlined
def total_rate(nodes, row):
    """Σ max(0, rⱼ) of one row of signed rates; NaN if any is not finite."""
    total, check = 0.0, 0.0
    for j in range(nodes.shape[1]):
        total += positive(nodes[row, j])
        check += nodes[row, j]
    return total if math.isfinite(check) else math.nan


@inlined
def adapt(memory, state, passed):
    """Stochastic approximation of the economical width; a violation since the last time shrinks it."""
    grid = memory.grid
    grid[CELLS] += 1.0
    gain = max(0.05, 1.0 / (1.0 + 0.1 * grid[CELLS]))
    grid[WIDTH] *= math.exp(gain * ((1.0 if passed else 0.0) - EMPTY_CELLS))
    grid[WIDTH] = min(grid[WIDTH], 64.0 * grid[LOCAL])  # where accuracy sets the width, passing says nothing
    if state.counts[VIOLATIONS] > grid[SEEN]:
        grid[SEEN] = state.counts[VIOLATIONS]
        grid[WIDTH] *= 0.7
        grid[MISJUDGED] *= 0.7
    grid[MISJUDGED] = max(grid[MISJUDGED], 0.02 * TOLERANCE)
    grid[MISJUDGED] += RECOVERY * (TOLERANCE - grid[MISJUDGED])


class Grid(Bound):
    """The adaptive-grid bound.

    Parameters
    ----------
    safety : float, default 6
        Room for curvature, in units of what the parabola through the cell's three rates needs. With 6 a single jump of
        the rate is covered wherever it lies in the cell, and so are two equal ones, before and after its inner point.
        On quadratic targets it is free.
    """

    safety: float

    name = "the adaptive grid"
    exact = False
    adapts = True

    def __init__(self, safety=6.0):
        if not safety >= 1.0:
            raise ValueError(f"`safety` must be at least 1, got {safety}.")
        self.safety = float(safety)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        cell = memory.cell
        if not current(memory, state, i, now):
            if not self.lay(process, state, i, now, rng):
                return math.nan, HORIZON
        # The piecewise-linear bound from `now` on: what is left of it before the inner point, and after.
        e = rng.standard_exponential()
        width = cell[END] - cell[BEGIN]
        inner = PART * width
        left, s = cell[LEFT], now - cell[BEGIN]
        if s < inner:
            left += (cell[INNER] - left) * (s / inner)
            t = segment_arrival(left, cell[INNER], inner - s, e)
            if t < math.inf:
                adapt(memory, state, False)
                return now + t, left + (cell[INNER] - left) * (t / (inner - s))
            e -= 0.5 * (left + cell[INNER]) * (inner - s)
            left, s = cell[INNER], inner
        else:
            left = cell[INNER] + (cell[RIGHT] - cell[INNER]) * ((s - inner) / (width - inner))
        rest = width - s
        t = segment_arrival(left, cell[RIGHT], rest, e)
        adapt(memory, state, t == math.inf)
        if t == math.inf:
            return cell[END], HORIZON
        return max(now, cell[BEGIN] + s + t), left + (cell[RIGHT] - left) * (t / rest)

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
        if math.isnan(total_rate(nodes, 0)):
            return False
        known = False  # whether the rates at the end are
        for _ in range(60):
            process.rates(state, now + PART * width, rng, nodes[1])
            if not known:
                process.rates(state, now + width, rng, nodes[2])
            if math.isnan(total_rate(nodes, 1)):  # the path never goes to where the target is not defined
                known, capped, width = False, False, 0.5 * width
                continue
            bend = 0.0
            for j in range(nodes.shape[1]):
                if max(nodes[0, j], nodes[1, j], nodes[2, j]) > 0.0:
                    bend += abs(second_difference(nodes[0, j], nodes[1, j], nodes[2, j]))
            if not math.isnan(total_rate(nodes, 2)) and bend * width <= grid[MISJUDGED]:
                break
            known, capped, width = True, False, PART * width
            for j in range(nodes.shape[1]):
                nodes[2, j] = nodes[1, j]
        if math.isnan(total_rate(nodes, 1) + total_rate(nodes, 2)) or now + width <= now:
            return False
        left, inner, right = 0.0, 0.0, 0.0
        for j in range(nodes.shape[1]):
            a, b, c = nodes[0, j], nodes[1, j], nodes[2, j]
            room = self.safety * NEEDED * abs(second_difference(a, b, c))
            left += positive(a + room)
            inner += positive(b + room)
            right += positive(c + room)
        if not capped:
            grid[LOCAL] = width
        cell[BEGIN], cell[END] = now, now + width
        if capped:  # what rings there rings first: it may be a wall, beyond which the target is not defined
            cell[END] = np.nextafter(cell[END], np.inf)
        cell[LEFT], cell[INNER], cell[RIGHT] = left, inner, right
        cell[EVENTS], cell[CLOCK] = events_so_far(state), i
        return True

    def memory(self, m, dim, width):
        return no_cell(m, width)
