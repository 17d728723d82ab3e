"""The event loop and its indexed heap of clocks. Knows no sampler.

::

    while budget left:
        redraw the clocks that the last event concerns         clock
        i, t <- the earliest candidate                         (ties: the smaller index)
        with probability rate / bound:                         rate
            bring what will change to time t, and integrate    flow
            carry out the event                                jump
            record it

Coordinates of a local process move lazily: each knows the time at which it last changed, so an event costs what it
touches, whatever the dimension. The loop returns to Python when its chunk is over or a buffer is full, and is called
again: nothing about the path depends on where that happens.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pdmp.compiled import entry, helper, inlined
from pdmp.process import (
    CERTAIN,
    DATA,
    EVENTS,
    HORIZON,
    HORIZONS,
    KINDS,
    PROPOSALS,
    RINGS,
    THINNED,
    VIOLATIONS,
)
from pdmp.recording import fill_grid, integrate, integrate_all, merge_batches, record, record_one

#: Why the loop returned. The first two are continued at once, the last three are failures.
CHUNK, FULL, TIME_UP, EVENTS_UP, PROPOSALS_UP, DATA_UP, NOT_FINITE, VIOLATED, LOST = range(9)

#: Rates and bounds are computed along different routes: only an excess above rounding is a violation.
ROUNDING = 1e-6


class Limits(NamedTuple):
    """Where a chain stops: the first of these to be reached."""

    time: float
    events: int
    proposals: int
    data: int
    rows: int  #: room in the skeleton's buffer that one event may need
    strict: int  #: 1: a violated bound is a failure


@inlined
def _before(clocks, i, j):
    return clocks[i, 0] < clocks[j, 0] or (clocks[i, 0] == clocks[j, 0] and i < j)


@helper
def restore_heap(clocks, heap, place, i):
    """Put clock i where its new time belongs."""
    k = place[i]
    while k > 0:
        parent = (k - 1) >> 1
        j = heap[parent]
        if not _before(clocks, i, j):
            break
        heap[k] = j
        place[j] = k
        k = parent
    n = heap.shape[0]
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and _before(clocks, heap[child + 1], heap[child]):
            child += 1
        j = heap[child]
        if not _before(clocks, j, i):
            break
        heap[k] = j
        place[j] = k
        k = child
    heap[k] = i
    place[i] = k


@entry
def advance(process, state, recording, limits, chunk, rng):
    """Run the process for at most `chunk` rings; the status says why it stopped."""
    clocks, heap, place, counts = state.clocks, state.heap, state.place, state.counts
    integrals, skeleton, grid = recording.integrals, recording.skeleton, recording.grid
    rung = 0
    while True:
        if counts[EVENTS] >= limits.events:
            return EVENTS_UP
        if counts[PROPOSALS] >= limits.proposals:
            return PROPOSALS_UP
        if counts[DATA] >= limits.data:
            return DATA_UP
        if rung >= chunk:
            return CHUNK
        if skeleton.times.shape[0] > 0 and skeleton.used[0] + limits.rows > skeleton.times.shape[0]:
            return FULL

        now = state.now[0]
        for k in range(state.pending[0], state.pending[1]):
            j = process.order[k]
            time, bound = process.clock(state, j, now, rng)
            if math.isnan(time) or math.isnan(bound):
                return NOT_FINITE
            if time < now or bound < HORIZON:
                return LOST
            clocks[j, 0] = time
            clocks[j, 1] = bound
            restore_heap(clocks, heap, place, j)
        state.pending[1] = state.pending[0]

        i = heap[0]
        now = clocks[i, 0]
        if now > limits.time:
            return TIME_UP
        rung += 1
        counts[RINGS] += 1
        bound = clocks[i, 1]
        accepted = bound == CERTAIN
        if not accepted:
            rate = process.rate(state, i, now, rng)
            if not math.isfinite(rate):
                state.pending[0], state.pending[1] = i, i + 1
                return NOT_FINITE
            if bound > HORIZON:
                counts[THINNED] += 1
                if rate > bound * (1.0 + ROUNDING):
                    if limits.strict == 1:
                        state.excess[1] = rate / bound - 1.0
                        return VIOLATED
                    counts[VIOLATIONS] += 1
                    state.excess[0] += rate / bound - 1.0
                    state.excess[1] = max(state.excess[1], rate / bound - 1.0)
                accepted = rng.random() * bound < rate
            else:
                counts[HORIZONS] += 1
        state.now[0] = now
        if bound > HORIZON:
            counts[PROPOSALS] += 1
        if not accepted:
            state.pending[0], state.pending[1] = i, i + 1
            continue

        flow, x, v, moved = process.flow, state.x, state.v, state.moved
        if grid.rows.shape[0] > 0:
            fill_grid(grid, flow, integrals.since[0], x, v, moved, now)
        if integrals.batches.shape[0] > 0:
            merge_batches(integrals, now)
        if moved.shape[0] == 1:
            integrate_all(integrals, flow, x, v, moved[0], now)
            for j in range(x.shape[0]):
                x[j] = flow.position(x[j], v[j], now - moved[0])
            moved[0] = now
            kind = process.jump(state, i, now, rng)
            if kind < 0:
                return NOT_FINITE
            if skeleton.times.shape[0] > 0:
                record(skeleton, x, v, now, kind)
        else:
            lo, hi = process.touches(state, i)
            for k in range(lo, hi):
                j = process.coordinate(k)
                integrate(integrals, flow, j, x[j], v[j], moved[j], now)
                x[j] = flow.position(x[j], v[j], now - moved[j])
                moved[j] = now
            kind = process.jump(state, i, now, rng)
            if kind < 0:
                return NOT_FINITE
            if skeleton.times.shape[0] > 0:
                for k in range(lo, hi):
                    j = process.coordinate(k)
                    record_one(skeleton, j, x[j], v[j], now, kind)
        counts[EVENTS] += 1
        counts[KINDS + kind] += 1
        state.pending[0], state.pending[1] = process.start[i], process.start[i + 1]


@entry
def settle(flow, state, recording, now):
    """Bring the integrals and the grid up to `now`, for reading them; the state stays where it is."""
    integrals, grid = recording.integrals, recording.grid
    x, v, moved = state.x, state.v, state.moved
    if grid.rows.shape[0] > 0:
        fill_grid(grid, flow, integrals.since[0], x, v, moved, now)
    if integrals.batches.shape[0] > 0:
        merge_batches(integrals, now)
    if moved.shape[0] == 1:
        integrate_all(integrals, flow, x, v, moved[0], now)
    else:
        for j in range(x.shape[0]):
            integrate(integrals, flow, j, x[j], v[j], moved[j], now)
