r"""Bounds by splitting each rate into a convex and a concave part: chords lie above the one, tangents above the other.

Over a cell [0, h] of a straight path a signed rate r(s) = c(s) + g(s), c convex and g concave, is at most

    c(0) + (c(h) - c(0)) s / h  +  min(g(0) + g'(0) s, g(h) + g'(h) (s - h)),

two straight lines that meet in between, so arrivals are exact; at both ends of the cell this is the rate itself. Parts
add up: a potential that is a prior plus a likelihood, or a sum over data, has the sums of their parts.

References
----------
Sutton & Fearnhead (2023), Concave-Convex PDMP-based sampling, J. Comput. Graph. Statist. 32, section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.classes import compiled, inlined, positive
from pdmp.process import HORIZON
from pdmp.thinning.bound import Bound, events_so_far
from pdmp.thinning.hessian import adapt_reach
from pdmp.thinning.piecewise import positive_arrival

CONVEX, CONCAVE, SLOPE = range(3)  #: columns of a table of parts: c, g and dg/ds
LEFT, BEND, TOP, RIGHT = range(4)  #: columns of `lines`: value at 0; where the two lines meet; value there; value at h
BEGIN, END, EVENTS, CLOCK = range(4)  #: of `cell`: its time, and for which path and clock it was laid


class Broken(NamedTuple):
    """Memory: the broken line above each signed rate in the current cell."""

    here: np.ndarray  #: (d,) a position
    start: np.ndarray  #: (m, k) table of parts at the begin of the cell, or coefficients
    end: np.ndarray  #: (m, k) table of parts at its end
    lines: np.ndarray  #: (m, 4)
    cell: np.ndarray  #: (4,)
    reach: np.ndarray  #: (2,) see `pdmp.thinning.hessian`


def no_lines(m, dim, columns, width):
    """Empty `Broken`."""
    return Broken(
        here=np.zeros(dim),
        start=np.zeros((m, columns)),
        end=np.zeros((m, columns)),
        lines=np.zeros((m, 4)),
        cell=np.array([0.0, -1.0, -1.0, -1.0]),
        reach=np.array([width, 0.0]),
    )


@inlined
def lay(lines, j, h, c0, c1, g0, slope0, g1, slope1):
    """Lay the broken line above rate j: its convex and concave parts at both ends, and the slopes of the latter."""
    bend = 0.5 * h
    if slope0 > slope1:
        bend = min(h, max(0.0, (g1 - g0 - slope1 * h) / (slope0 - slope1)))
    lines[j, LEFT] = c0 + g0
    lines[j, BEND] = bend
    # Rounding may put the crossing a little off: the higher of the two tangents.
    lines[j, TOP] = c0 + (c1 - c0) * (bend / h) + max(g0 + slope0 * bend, g1 + slope1 * (bend - h))
    lines[j, RIGHT] = c1 + g1


@inlined
def height(lines, j, h, s):
    """The broken line above rate j at s."""
    bend = lines[j, BEND]
    if s < bend:
        return lines[j, LEFT] + (lines[j, TOP] - lines[j, LEFT]) * (s / bend)
    if bend >= h:
        return lines[j, TOP]
    return lines[j, TOP] + (lines[j, RIGHT] - lines[j, TOP]) * ((s - bend) / (h - bend))


@inlined
def arrival(lines, j, h, s, e):
    """First arrival after s under the positive part of the broken line above rate j; infinite when none by h."""
    bend = lines[j, BEND]
    if s < bend:
        t, e = positive_arrival(height(lines, j, h, s), lines[j, TOP], bend - s, e)
        if t < math.inf:
            return s + t
        s = bend
    if s < h:
        t, e = positive_arrival(height(lines, j, h, s), lines[j, RIGHT], h - s, e)
        if t < math.inf:
            return s + t
    return math.inf


@inlined
def current(memory, state, i, now):
    """Whether the cell laid last still holds: the path goes straight on, has not left it, and it is not too wide."""
    cell = memory.cell
    if cell[END] - cell[BEGIN] > 4.0 * memory.reach[0]:
        return False
    return cell[EVENTS] == events_so_far(state) and cell[CLOCK] == i and cell[BEGIN] <= now < cell[END]


@inlined
def settle_cell(memory, state, i, now, width):
    """Note for what the cell was laid."""
    memory.cell[BEGIN] = now
    memory.cell[END] = now + width
    memory.cell[EVENTS] = events_so_far(state)
    memory.cell[CLOCK] = i


@inlined
def arrive(memory, now, rng):
    """The proposal under the broken lines of the current cell, from `now` on."""
    lines, cell = memory.lines, memory.cell
    h, s, first = cell[END] - cell[BEGIN], now - cell[BEGIN], math.inf
    for j in range(lines.shape[0]):
        first = min(first, arrival(lines, j, h, s, rng.standard_exponential()))
    adapt_reach(memory.reach, first - s, h)
    if first == math.inf:
        return cell[END], HORIZON
    bound = 0.0
    for j in range(lines.shape[0]):
        bound += positive(height(lines, j, h, first))
    return max(now, cell[BEGIN] + first), bound


class ConcaveConvex(Bound):
    """The model's convex and concave parts, added up over prior and data.

    The model defines, beside each gradient, ``add_prior_parts(x, v, out)`` and ``add_term_parts(x, v, i, out)``. They
    add the parts, at s = 0, of s ↦ vⱼ ∂ⱼU(x + sv) to row j of `out` (d, 3) — or, when `out` has one row, those of
    v·∇U to this: the convex part c, the concave part g, and dg/ds.
    """

    name = "the concave-convex bound"
    wants = ("add_prior_parts", "add_term_parts")
    straight = True
    adapts = True

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        if not current(memory, state, i, now):
            width = memory.reach[0]
            start, end = memory.start, memory.end
            process.parts(state, now, start)
            total = 0.0
            for _ in range(60):  # the cell may reach to where the target is not defined, the path never goes there
                process.parts(state, now + width, end)
                total = 0.0
                for j in range(end.shape[0]):
                    for k in range(3):
                        total += end[j, k]
                if math.isfinite(total):
                    break
                width *= 0.5
            for j in range(start.shape[0]):
                for k in range(3):
                    total += start[j, k]
            if not math.isfinite(total):
                return now, math.nan
            for j in range(start.shape[0]):
                lay(
                    memory.lines,
                    j,
                    width,
                    start[j, CONVEX],
                    end[j, CONVEX],
                    start[j, CONCAVE],
                    start[j, SLOPE],
                    end[j, CONCAVE],
                    end[j, SLOPE],
                )
            settle_cell(memory, state, i, now, width)
        return arrive(memory, now, rng)

    def memory(self, m, dim, width):
        return no_lines(m, dim, 3, width)

    def check(self, model, form, flow, components):
        check_pieces(self, model, form, flow, "parts")

    def describe(self, model, form):
        return f"the sum of `add_prior_parts` and `add_term_parts` of {type(model).__name__}"


def check_pieces(bound, model, form, flow, what):
    """Raise a `ValueError` unless the model gives the pieces of both its prior and its terms."""
    who = f"pdmp.thinning.{type(bound).__name__}"
    if flow.kind != "linear" or form is None:
        raise ValueError(f'{who} needs straight paths and rates v·∇U or vᵢ ∂ᵢU; use thinning="grid".')
    model.require(f"{who} needs", f"add_prior_{what}", f"add_term_{what}", instead='Use thinning="grid".')
