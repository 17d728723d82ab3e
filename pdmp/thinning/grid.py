"""A bound for any smooth target: chords through the rates at three points of a cell, raised where the rates curve.

A cell is an interval of time [now, now + h]. Each signed rate is evaluated at its ends and at one inner point. The
bound is the two chords through these three values, plus a margin: `safety` times the most by which the parabola through
them exceeds the chords. The result is clipped at zero. The margin also covers jumps of the rate, at kinks of the
potential. For a quadratic potential the signed rates are lines, so that the bound is the rate itself.

The inner point is not the middle of the cell. A sum of absolute values gives rates with two equal jumps, and if there
is one in each half of a cell, the rates at its ends and its middle lie on a line: the jumps would not be noticed.

Two rules set the width of a cell. Economy: a quarter of the cells should pass without an arrival. Accuracy: the second
difference of the rates, times the width, should be at most half an event. If it is more, the cell is cut at its inner
point, which costs one more gradient, and the next cell is at most twice as wide: otherwise a wide cell in a tail could
jump over the centre. A cell also ends where another clock is known to propose. After a rejected proposal the rest of
the cell is used; at its end the next cell begins with the gradient that is already known there.

The bound is an approximation: violations are counted, with their excess, and each makes both rules stricter. It misses
features of the rate that are narrower than a cell and lie between its three points, and two jumps of sizes 3 to 7,
which leave the three rates on a line.

References
----------
Corbella, Spencer & Roberts (2022), Automatic Zig-Zag sampling in practice, Stat. Comput. 32; Andral & Kamatani (2024),
Automated techniques for efficient sampling of PDMPs (grids of tangents).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.arguments import number
from pdmp.native.classes import compiled, inlined, positive_part
from pdmp.process import HORIZON, VIOLATIONS
from pdmp.thinning.bound import Bound, is_in_cell, next_other, settle_cell
from pdmp.thinning.piecewise import segment_arrival

#: Where in a cell its inner point is, as a part of its width.
PART = 0.3
#: The economical width is the one at which this part of the cells passes without an arrival.
EMPTY_CELLS = 0.25
#: The accuracy before any violation: most events to which the second difference of the rates over a cell may amount.
TOLERANCE = 0.5
#: After a violation has lowered the tolerance, each cell undoes this part of the difference to `TOLERANCE`.
RECOVERY = 0.001
#: The least economical width, in units of the last accurate one: so many proposals of one cell make it no smaller.
SHRINKAGE = 1e-6
#: How far a parabola lies above its two chords at most, which is over the longer one, in units of its second
#: difference.
NEEDED = 0.5 * max(PART, 1.0 - PART) ** 2


class Cell(NamedTuple):
    """Memory of a bound on a grid: the present cell, and how wide the next ones shall be."""

    begin_rates: np.ndarray  #: (m,) signed rates at the begin of the cell
    inner_rates: np.ndarray  #: (m,) at its inner point
    end_rates: np.ndarray  #: (m,) at its end
    begin: np.ndarray  #: (1,) the time at which the cell begins
    end: np.ndarray  #: (1,) and at which it ends
    begin_bound: np.ndarray  #: (1,) the bound at its begin; `pdmp.thinning.Maxima`: in all of it
    inner_bound: np.ndarray  #: (1,) at its inner point
    end_bound: np.ndarray  #: (1,) at its end
    events: np.ndarray  #: (1,) the number of events when it was made: it holds until the next one
    clock: np.ndarray  #: (1,) the clock for which it was made
    width: np.ndarray  #: (1,) the economical width
    accurate_width: np.ndarray  #: (1,) the last width at which the second difference was within the tolerance
    cells: np.ndarray  #: (1,) number of proposals and of cells without one
    violations_seen: np.ndarray  #: (1,) the number of violations to which the widths have been adapted
    tolerance: np.ndarray  #: (1,) most events to which the second difference over a cell may amount


def no_cell(m, width):
    """Empty `Cell`."""
    numbers = {name: np.zeros(1) for name in Cell._fields[3:]}
    numbers |= {"end": np.full(1, -1.0), "events": np.full(1, -1.0), "clock": np.full(1, -1.0)}
    numbers |= {"width": np.full(1, width), "accurate_width": np.full(1, width), "tolerance": np.full(1, TOLERANCE)}
    return Cell(np.zeros(m), np.zeros(m), np.zeros(m), **numbers)


@inlined
def width_to_try(memory, state, i, now):
    """The width of a cell that begins at `now`, and whether another clock ends it."""
    width = min(memory.width[0], 2.0 * memory.accurate_width[0])
    until = next_other(state, i, now) - now
    capped = until <= width * (1.0 + 1e-9)
    return (until if capped else width), capped


@inlined
def settle(memory, state, i, now, width, capped):
    """Store the interval of a cell; one that another clock `capped` may end at a wall, beyond which nothing is."""
    settle_cell(memory, state, i, now, width)
    if capped:
        memory.end[0] = np.nextafter(memory.end[0], np.inf)
    else:
        memory.accurate_width[0] = width


@inlined
def second_difference(a, b, c):
    """Second difference over begin, middle and end of a cell, from values at begin, inner point and end."""
    return 0.5 * ((c - b) / (1.0 - PART) - (b - a) / PART)


@inlined
def total_rate(rates):
    """Σ max(0, rⱼ) of signed rates; NaN if any is not finite."""
    total, check = 0.0, 0.0
    for j in range(rates.shape[0]):
        total += positive_part(rates[j])
        check += rates[j]
    return total if math.isfinite(check) else math.nan


@inlined
def adapt(memory, state, passed):
    """Stochastic approximation of the economical width; a violation since the last time shrinks it."""
    memory.cells[0] += 1.0
    gain = max(0.05, 1.0 / (1.0 + 0.1 * memory.cells[0]))
    memory.width[0] *= math.exp(gain * ((1.0 if passed else 0.0) - EMPTY_CELLS))
    # Where accuracy sets the width, cells without an arrival say nothing about the economical one.
    memory.width[0] = min(memory.width[0], 64.0 * memory.accurate_width[0])
    # Where the bound is far too high, in a cell with a pole, hundreds of proposals say the same of one cell.
    memory.width[0] = max(memory.width[0], SHRINKAGE * memory.accurate_width[0])
    if state.counts[VIOLATIONS] > memory.violations_seen[0]:
        memory.violations_seen[0] = state.counts[VIOLATIONS]
        memory.width[0] *= 0.7
        memory.tolerance[0] *= 0.7
    memory.tolerance[0] = max(memory.tolerance[0], 0.02 * TOLERANCE)
    memory.tolerance[0] += RECOVERY * (TOLERANCE - memory.tolerance[0])


class Grid(Bound):
    """The adaptive-grid bound.

    Parameters
    ----------
    safety : float, default 6
        The margin, in units of the most by which the parabola through the cell's three rates exceeds its chords; at
        least 1. With 6 the bound covers a jump of the rate anywhere in the cell, and two equal jumps on the two sides
        of its inner point. On quadratic targets the margin is 0, whatever `safety` is.

    Raises
    ------
    ValueError
        Unless `safety` is a finite number, at least 1.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target, thinning=pdmp.thinning.Grid()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    safety: float

    name = "the adaptive grid"
    exact = False
    adapts = True

    def __init__(self, safety: float = 6.0) -> None:
        self.safety = number("safety", safety, least=1.0)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        if not is_in_cell(memory, state, i, now):
            if not self.new_cell(process, state, i, now, rng):
                return math.nan, HORIZON
        # The piecewise-linear bound from `now` on: what is left of it before the inner point, and after.
        e = rng.standard_exponential()
        width = memory.end[0] - memory.begin[0]
        inner = PART * width
        left, s = memory.begin_bound[0], now - memory.begin[0]
        if s < inner:
            left += (memory.inner_bound[0] - left) * (s / inner)
            t = segment_arrival(left, memory.inner_bound[0], inner - s, e)
            if t < math.inf:
                adapt(memory, state, False)
                return now + t, left + (memory.inner_bound[0] - left) * (t / (inner - s))
            e -= 0.5 * (left + memory.inner_bound[0]) * (inner - s)
            left, s = memory.inner_bound[0], inner
        else:
            left = memory.inner_bound[0]
            left += (memory.end_bound[0] - left) * ((s - inner) / (width - inner))
        rest = width - s
        t = segment_arrival(left, memory.end_bound[0], rest, e)
        adapt(memory, state, t == math.inf)
        if t == math.inf:
            return memory.end[0], HORIZON
        return max(now, memory.begin[0] + s + t), left + (memory.end_bound[0] - left) * (t / rest)

    @compiled(inline=False)
    def new_cell(self, process, state, i, now, rng):
        """Make a cell that begins at `now`; whether the rates are finite in it."""
        memory = state.memory.bound
        at_begin, at_inner, at_end = memory.begin_rates, memory.inner_rates, memory.end_rates
        width, capped = width_to_try(memory, state, i, now)
        process.signed_rates(state, now, rng, at_begin)
        if math.isnan(total_rate(at_begin)):
            return False
        known = False  # whether the rates at the end are
        for _ in range(60):
            process.signed_rates(state, now + PART * width, rng, at_inner)
            if not known:
                process.signed_rates(state, now + width, rng, at_end)
            if math.isnan(total_rate(at_inner)):  # the path never goes to where the target is not defined
                if not process.beyond(state, now + PART * width):
                    return False
                known, capped, width = False, False, 0.5 * width
                continue
            difference = 0.0
            for j in range(at_begin.shape[0]):
                if max(at_begin[j], at_inner[j], at_end[j]) > 0.0:
                    difference += abs(second_difference(at_begin[j], at_inner[j], at_end[j]))
            defined = not math.isnan(total_rate(at_end))
            if not defined and not known and not process.beyond(state, now + width):
                return False
            if defined and difference * width <= memory.tolerance[0]:
                break
            known, capped, width = True, False, PART * width
            for j in range(at_begin.shape[0]):
                at_end[j] = at_inner[j]
        if math.isnan(total_rate(at_inner) + total_rate(at_end)) or now + width <= now:
            return False
        left, inner, right = 0.0, 0.0, 0.0
        for j in range(at_begin.shape[0]):
            a, b, c = at_begin[j], at_inner[j], at_end[j]
            room = self.safety * NEEDED * abs(second_difference(a, b, c))
            left += positive_part(a + room)
            inner += positive_part(b + room)
            right += positive_part(c + room)
        settle(memory, state, i, now, width, capped)
        memory.begin_bound[0], memory.inner_bound[0], memory.end_bound[0] = left, inner, right
        return True

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return no_cell(m, width)
