"""The event loop and its indexed heap of clocks; it contains nothing about any sampler.

::

    while budget left:
        redraw the dependents of the last event's clock        clock
        i, t <- the earliest candidate                         (ties: the smaller index)
        with probability rate / bound:                         rate
            move what will change to time t, and integrate     flow
            change the state                                   jump
            record it

Coordinates of a local process move lazily: the time of each one's last change is stored, and an event moves only the
coordinates that it may change, so its cost does not depend on the dimension. The loop returns to Python when its chunk
is over or a buffer is full, and is called again; the path does not depend on where that happens.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pdmp.engine.recording import fill_grid, integrate, integrate_all, mark, record, record_one
from pdmp.native.classes import entry, helper, inlined
from pdmp.process import (
    CANDIDATES,
    CERTAIN,
    CLOCKS,
    DATA,
    DEPENDENTS,
    EVENTS,
    HORIZON,
    HORIZONS,
    KINDS,
    PROPOSALS,
    ROUNDING,
    THINNED,
    VIOLATIONS,
)

#: Why the loop returned. After the first two it is called again, the last five are failures.
CHUNK, FULL, TIME_UP, EVENTS_UP, PROPOSALS_UP, DATA_UP, NOT_FINITE, VIOLATED, LOST, UNKNOWN_KIND, BAD_BOUND = range(11)

#: Far from the origin cancellation makes larger errors. An exact bound exceeded by a relative excess up to this is
#: counted; by more, it is an error.
CANCELLATION = 1e-3


class Limits(NamedTuple):
    """Limits at the first of which a chain stops, and what else the loop needs."""

    time: float
    events: int
    proposals: int
    data: int
    rows: int  #: largest number of rows of the skeleton's buffer that one event needs
    strict: bool  #: whether a violated bound is a failure
    looking: bool  #: whether it is seen if a jump leaves numbers that are not finite: that of a user's process


@inlined
def _before(s, i, t, j):
    """Whether clock i at time s comes before clock j at time t."""
    return s < t or (s == t and i < j)


@helper
def reschedule(keys, heap, place, i, time):
    """Give clock i the candidate time `time`, and move it to its place in the heap.

    ``heap`` holds the clocks in heap order and ``keys`` their times in the same order, so that comparisons read
    neighbouring memory; ``place[i]`` is where clock i is.
    """
    k = place[i]
    while k > 0:
        parent = (k - 1) >> 1
        if not _before(time, i, keys[parent], heap[parent]):
            break
        keys[k] = keys[parent]
        heap[k] = heap[parent]
        place[heap[k]] = k
        k = parent
    n = heap.shape[0]
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and _before(keys[child + 1], heap[child + 1], keys[child], heap[child]):
            child += 1
        if not _before(keys[child], heap[child], time, i):
            break
        keys[k] = keys[child]
        heap[k] = heap[child]
        place[heap[k]] = k
        k = child
    keys[k] = time
    heap[k] = i
    place[i] = k


@entry
def advance(process, state, recording, limits, chunk, local, rng):
    """Run the process for at most `chunk` candidate times; the status says why it stopped.

    `local`: True where coordinates move one by one, else None: numba then leaves out what only they need, a fifth of
    what there is to compile.
    """
    keys, heap, place, bounds, counts = state.keys, state.heap, state.place, state.bounds, state.counts
    flow, x, v, moved = process.flow, state.x, state.v, state.moved
    integrals, skeleton, grid = recording.integrals, recording.skeleton, recording.grid
    # Local variables, which stay in registers while the loop runs.
    events, proposals, candidates = counts[EVENTS], counts[PROPOSALS], 0
    first, last, what = state.pending[0], state.pending[1], state.pending[2]
    status = CHUNK
    while True:
        if events >= limits.events:
            status = EVENTS_UP
            break
        if proposals >= limits.proposals:
            status = PROPOSALS_UP
            break
        if counts[DATA] >= limits.data:
            status = DATA_UP
            break
        if candidates >= chunk:
            break
        if skeleton.times.shape[0] > 0 and skeleton.used[0] + limits.rows > skeleton.times.shape[0]:
            status = FULL
            break

        # clock
        now = state.now[0]
        for k in range(first, last):
            j = process.order[k] if what == DEPENDENTS else k
            time, bound = process.clock(state, j, now, rng)
            if math.isnan(time):
                status = NOT_FINITE
                break
            if math.isnan(bound) or bound < HORIZON:
                status = BAD_BOUND
                break
            if time < now:
                status = LOST
                break
            bounds[j] = bound
            reschedule(keys, heap, place, j, time)
        if status != CHUNK:
            break
        last = first

        i = heap[0]
        now = keys[0]
        if now > limits.time:
            status = TIME_UP
            break

        # rate
        candidates += 1
        bound = bounds[i]
        accepted = bound == CERTAIN
        if not accepted:
            rate = process.rate(state, i, now, rng)
            if not math.isfinite(rate):
                first, last, what = i, i + 1, CLOCKS
                status = NOT_FINITE
                break
            if bound > HORIZON:
                counts[THINNED] += 1
                if rate > bound * (1.0 + ROUNDING):
                    excess = rate / bound - 1.0
                    state.excess[1] = max(state.excess[1], excess)
                    if limits.strict and excess > CANCELLATION:
                        status = VIOLATED
                        break
                    counts[VIOLATIONS] += 1
                    state.excess[0] += excess
                accepted = rng.random() * bound < rate
            else:
                counts[HORIZONS] += 1
        state.now[0] = now
        if bound > HORIZON:
            proposals += 1
        if not accepted:
            first, last, what = i, i + 1, CLOCKS
            continue

        # flow and jump
        if grid.rows.shape[0] > 0:
            fill_grid(grid, flow, integrals.since[0], x, v, moved, now)
        if integrals.marks.shape[0] > 0:
            if now >= integrals.since[0] + (integrals.marked[0] + 1) * integrals.stretch[0]:
                mark(integrals, flow, x, v, moved, now)
        if local is None:
            integrate_all(integrals, flow, x, v, moved[0], now)
            for j in range(x.shape[0]):
                position = flow.position(j, x[j], v[j], now - moved[0])
                v[j] = flow.velocity(j, x[j], v[j], now - moved[0])
                x[j] = position
            moved[0] = now
            kind = process.jump(state, i, now, rng)
            if limits.looking:
                for j in range(x.shape[0]):
                    kind = kind if math.isfinite(x[j]) and math.isfinite(v[j]) else -1
            if kind >= 0 and skeleton.times.shape[0] > 0:
                record(skeleton, x, v, now, kind)
        else:
            begin, end = process.touches(state, i)
            for k in range(begin, end):
                j = process.coordinate(k)
                integrate(integrals, flow, j, x[j], v[j], moved[j], now)
                position = flow.position(j, x[j], v[j], now - moved[j])
                v[j] = flow.velocity(j, x[j], v[j], now - moved[j])
                x[j] = position
                moved[j] = now
            kind = process.jump(state, i, now, rng)
            if limits.looking:
                for k in range(begin, end):
                    j = process.coordinate(k)
                    kind = kind if math.isfinite(x[j]) and math.isfinite(v[j]) else -1
            if kind >= 0 and skeleton.times.shape[0] > 0:
                for k in range(begin, end):
                    j = process.coordinate(k)
                    record_one(skeleton, j, x[j], v[j], now, kind)
        if kind < 0 or kind >= counts.shape[0] - KINDS:
            status = NOT_FINITE if kind < 0 else UNKNOWN_KIND
            break
        events += 1
        counts[KINDS + kind] += 1
        first, last, what = process.start[i], process.start[i + 1], DEPENDENTS

    counts[EVENTS], counts[PROPOSALS] = events, proposals
    counts[CANDIDATES] += candidates
    state.pending[0], state.pending[1], state.pending[2] = first, last, what
    return status


@entry
def settle(flow, x, v, moved, recording, now, local):
    """Extend the integrals and the grid to the time `now`, before they are read; the state is not moved.

    Of a state it gets these arrays only, so that it is compiled once for all processes with the same flow.
    """
    integrals, grid = recording.integrals, recording.grid
    if grid.rows.shape[0] > 0:
        fill_grid(grid, flow, integrals.since[0], x, v, moved, now)
    if integrals.marks.shape[0] > 0:
        mark(integrals, flow, x, v, moved, now)
    if local is None:
        integrate_all(integrals, flow, x, v, moved[0], now)
    else:
        for j in range(x.shape[0]):
            integrate(integrals, flow, j, x[j], v[j], moved[j], now)
