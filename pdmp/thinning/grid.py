"""A bound for any smooth target, without knowledge of it: rates at three points of a cell, and room for curvature.

The cell [now, now + h] is bounded by the chords through the rates at its ends and its middle, raised by what a
parabola through the three may exceed them by, and clipped at zero; each signed component of the rate by itself, so that
Zig-Zag's kinks cost nothing. For a quadratic potential the bound is the rate itself. When nothing arrives in the cell
the next one starts at its end, with the gradient already known there. The width follows the process: it grows when
cells pass without an arrival and shrinks when they end early, or when the true rate is found above the bound. Those
violations are counted, with their excess: this bound is an approximation.

References
----------
Corbella, Spencer & Roberts (2022), Automatic Zig-Zag sampling in practice, Stat. Comput. 32; Andral & Kamatani (2024),
Automated techniques for efficient sampling of PDMPs (grids of tangents).
"""

from __future__ import annotations

import math

from pdmp.compiled import Compiled, compiled, positive
from pdmp.process import HORIZON, VIOLATIONS
from pdmp.thinning.piecewise import segment_arrival

WIDTH, CELLS, SEEN = range(3)  #: of `memory.grid`: the cell's width, how many there were, violations seen so far


class Grid(Compiled):
    """The adaptive-grid bound.

    Parameters
    ----------
    safety : float, default 6
        Room for curvature, in units of what the parabola through the cell's three rates needs. On a skew-normal of
        shape 5, a hard case, 2 is violated by 5 % of the proposals and 6 by none; on quadratic targets it is free.
    """

    safety: float

    name = "the adaptive grid"
    exact = False

    def __init__(self, safety=6.0):
        if not safety >= 1.0:
            raise ValueError(f"`safety` must be at least 1, got {safety}.")
        self.safety = safety

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory
        width = memory.grid[WIDTH]
        nodes = memory.nodes
        process.rates(state, now, rng, nodes[0])
        end, total = now, 0.0
        for _ in range(60):  # the cell may reach to where the target is not defined, the path never goes there
            end = now + width
            process.rates(state, now + 0.5 * width, rng, nodes[1])
            process.rates(state, end, rng, nodes[2])
            total = 0.0
            for j in range(nodes.shape[1]):
                total += nodes[0, j] + nodes[1, j] + nodes[2, j]
            if math.isfinite(total):
                break
            width *= 0.5
        if not math.isfinite(total) or end <= now:  # it does go there
            return math.nan, HORIZON
        left, middle, right = 0.0, 0.0, 0.0
        for j in range(nodes.shape[1]):
            bend = nodes[0, j] - 2.0 * nodes[1, j] + nodes[2, j]
            room = -self.safety * bend if bend < 0.0 else (self.safety - 1.0) * bend
            left += positive(nodes[0, j] + room / 8.0)
            middle += positive(nodes[1, j] + room / 8.0)
            right += positive(nodes[2, j] + room / 8.0)

        half = 0.5 * width
        e = rng.standard_exponential()
        s = segment_arrival(left, middle, half, e)
        bound = left + (middle - left) * (s / half) if s < math.inf else 0.0
        if s == math.inf:
            e -= 0.5 * (left + middle) * half
            s = segment_arrival(middle, right, half, e)
            if s < math.inf:
                bound = middle + (right - middle) * (s / half)
                s += half

        # Stochastic approximation of the width at which 40 % of the cells pass without an arrival.
        memory.grid[CELLS] += 1.0
        gain = max(0.05, 1.0 / (1.0 + 0.1 * memory.grid[CELLS]))
        passed = 1.0 if s == math.inf else 0.0
        memory.grid[WIDTH] = width * math.exp(gain * (passed - 0.4))
        if state.counts[VIOLATIONS] > memory.grid[SEEN]:
            memory.grid[SEEN] = state.counts[VIOLATIONS]
            memory.grid[WIDTH] *= 0.7
        if s == math.inf:
            return end, HORIZON
        return now + s, bound
