r"""Bounds by splitting each rate into a convex and a concave part: chords lie above the one, tangents above the other.

Over a cell [0, h] of a straight path a signed rate r(s) = c(s) + g(s), c convex and g concave, is at most

    c(0) + (c(h) - c(0)) s / h  +  min(g(0) + g'(0) s, g(h) + g'(h) (s - h)),

two straight lines that meet in between. Their first arrival has a closed form, and at both ends of the cell the bound
is the rate itself. The parts of a sum, of a prior and a likelihood or over data, are the sums of the parts.

References
----------
Sutton & Fearnhead (2023), Concave-Convex PDMP-based sampling, J. Comput. Graph. Statist. 32, section 3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.models.capabilities import require
from pdmp.native.classes import Compiled, compiled, inlined, positive_part
from pdmp.native.records import Number, Vector, zeros
from pdmp.process import HORIZON
from pdmp.thinning.bound import Bound, is_in_cell, settle_cell
from pdmp.thinning.hessian import adapt_horizon
from pdmp.thinning.piecewise import positive_arrival

#: Columns of the tables that a model fills: the convex part c of a rate, its concave part g, and dg/ds.
CONVEX, CONCAVE, SLOPE = range(3)


class Broken(NamedTuple):
    """Memory: the present cell, and in it, above each signed rate, a line that is broken once."""

    here: np.ndarray  #: (d,) a position
    start: np.ndarray  #: (m, k) the model's table at the begin of the cell
    finish: np.ndarray  #: (m, k) its table at the end
    left: Vector  #: height of the broken line at the begin
    meeting: Vector  #: where its two parts meet, as a time since the begin
    top: Vector  #: its height there
    right: Vector  #: its height at the end
    begin: Number  #: the time at which the cell begins
    end: Number  #: and at which it ends
    events: Number  #: the number of events when it was made: it holds until the next one
    clock: Number  #: the clock for which it was made
    horizon: Number  #: the width of the next cell, see `pdmp.thinning.hessian.adapt_horizon`
    horizons: Number  #: how often it was adapted


def no_lines(m, dim, columns, width):
    """`Broken` before the first cell."""
    return zeros(
        Broken,
        m,
        here=np.zeros(dim),
        start=np.zeros((m, columns)),
        finish=np.zeros((m, columns)),
        horizon=np.full(1, width),
        **{name: np.full(1, -1.0) for name in ("end", "events", "clock")},
    )


@inlined
def set_line(memory, j, h, c0, c1, g0, slope0, g1, slope1):
    """Set the broken line above rate j, from c, g and the slope dg/ds at both ends of a cell [0, h]."""
    meeting = 0.5 * h
    if slope0 > slope1:
        meeting = min(h, max(0.0, (g1 - g0 - slope1 * h) / (slope0 - slope1)))
    memory.left[j] = c0 + g0
    memory.meeting[j] = meeting
    # The higher of the two tangents, because the crossing is rounded.
    memory.top[j] = c0 + (c1 - c0) * (meeting / h) + max(g0 + slope0 * meeting, g1 + slope1 * (meeting - h))
    memory.right[j] = c1 + g1


@inlined
def height(memory, j, h, s):
    """The broken line above rate j at s."""
    meeting = memory.meeting[j]
    if s < meeting:
        return memory.left[j] + (memory.top[j] - memory.left[j]) * (s / meeting)
    if meeting >= h:
        return memory.top[j]
    return memory.top[j] + (memory.right[j] - memory.top[j]) * ((s - meeting) / (h - meeting))


@inlined
def arrival(memory, j, h, s, e):
    """First arrival after s under the positive part of the broken line above rate j; infinite when none by h."""
    meeting = memory.meeting[j]
    if s < meeting:
        t, e = positive_arrival(height(memory, j, h, s), memory.top[j], meeting - s, e)
        if t < math.inf:
            return s + t
        s = meeting
    if s < h:
        t, e = positive_arrival(height(memory, j, h, s), memory.right[j], h - s, e)
        if t < math.inf:
            return s + t
    return math.inf


@inlined
def is_current(memory, state, i, now):
    """Whether the last cell still holds, and is at most four horizons wide."""
    return is_in_cell(memory, state, i, now) and memory.end[0] - memory.begin[0] <= 4.0 * memory.horizon[0]


@inlined
def arrive(memory, now, rng):
    """The proposal under the broken lines of the current cell, from `now` on."""
    h, s, first = memory.end[0] - memory.begin[0], now - memory.begin[0], math.inf
    for j in range(memory.left.shape[0]):
        first = min(first, arrival(memory, j, h, s, rng.standard_exponential()))
    adapt_horizon(memory, first - s, h)
    if first == math.inf:
        return memory.end[0], HORIZON
    bound = 0.0
    for j in range(memory.left.shape[0]):
        bound += positive_part(height(memory, j, h, first))
    return max(now, memory.begin[0] + first), bound


class ConcaveConvex(Bound):
    """The model's convex and concave parts, added up over prior and data.

    The model defines ``add_prior_parts(x, v, out)`` and ``add_term_parts(x, v, i, out)``. They add three numbers at
    s = 0, the convex part c, the concave part g and dg/ds, to `out`: if it has shape (d, 3), those of vⱼ ∂ⱼU(x + sv)
    to row j; if it has shape (1, 3), those of v·∇U(x + sv).

    Examples
    --------
    >>> import pdmp
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((10, 2))
    >>> model = pdmp.models.PoissonRegression(X, np.arange(10))
    >>> run = pdmp.sample(pdmp.BPS(model, thinning=pdmp.thinning.ConcaveConvex()), events=50, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "the concave-convex bound"
    wants = ("add_prior_parts", "add_term_parts")
    straight = True
    adapts = True

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        if not is_current(memory, state, i, now):
            width = memory.horizon[0]
            start, end = memory.start, memory.finish
            process.rate_parts(state, now, start)
            total = 0.0
            for _ in range(60):  # cut where the target is not defined: the path never goes there
                process.rate_parts(state, now + width, end)
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
                set_line(
                    memory,
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

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return no_lines(m, dim, 3, width)

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        check_pieces(self, model, form, flow, "parts")

    def describe(self, model: Model, form: str | None) -> str:
        return f"the sum of `add_prior_parts` and `add_term_parts` of {type(model).__name__}"


def check_pieces(bound, model, form, flow, what):
    """Raise a `ValueError` unless the model gives the pieces of both its prior and its terms."""
    who = f"pdmp.thinning.{type(bound).__name__}"
    if flow.kind != "linear" or form is None:
        raise ValueError(f'{who} needs straight paths and rates v·∇U or vᵢ ∂ᵢU; use thinning="grid".')
    require(model, f"{who} needs", f"add_prior_{what}", f"add_term_{what}", instead='Use thinning="grid".')
