"""What is recorded of a path during a run: exact running integrals, and the skeleton or a grid of positions.

Compiled code only; Python reads the result through `pdmp.engine.trajectory`. The integrals are of positions minus a
centre near the chain, so that small variances around large means are accurate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pdmp.native.classes import internal, internal_inlined
from pdmp.process import interleave, last_moved


class Integrals(NamedTuple):
    """Time integrals of the path since the end of the warm-up."""

    since: np.ndarray  #: (1,) the time from which they are taken
    centre: np.ndarray  #: (d,)
    first: np.ndarray  #: (d,) of x - centre
    second: np.ndarray  #: (d,) of (x - centre)²
    cross: np.ndarray  #: (d, d), lower triangle: of the products; (0, 0) if they are not integrated
    marks: (
        np.ndarray
    )  #: (2 n, 2 d) values of `first` and `second` at equally spaced times, for batch means; or (0, 2 d)
    stretch: np.ndarray  #: (1,) the spacing of these times; 0 until it is determined
    marked: np.ndarray  #: (1,) rows used


class Skeleton(NamedTuple):
    """Buffer of events; no rows when the skeleton is not stored."""

    times: np.ndarray  #: (capacity,)
    kinds: np.ndarray  #: (capacity,) int8, the kind of event
    which: np.ndarray  #: (capacity,) local processes: the coordinate that changed; else (0,)
    xs: np.ndarray  #: (capacity, d or 1) position after the event
    vs: np.ndarray  #: (capacity, d, 1 or 0) velocity after the event
    used: np.ndarray  #: (1,) rows used


class Grid(NamedTuple):
    """Positions at equally spaced times; no rows when no grid is stored."""

    rows: np.ndarray  #: (2 n, d), row k at since + (k + 1) spacing
    spacing: np.ndarray  #: (1,); 0 until it is determined
    used: np.ndarray  #: (1,) rows used


class Recording(NamedTuple):
    """What the event loop writes."""

    integrals: Integrals
    skeleton: Skeleton
    grid: Grid


def new_recording(centre, *, moving, local, covariance, batches, skeleton, grid, spacing=0.0, stretch=0.0):
    """Empty recording for a chain near `centre`; sizes are numbers of rows, 0 for what is not recorded."""
    d = centre.shape[0]
    centre, first, second = np.array(centre, dtype=float), np.zeros(d), np.zeros(d)
    if local:
        centre, first, second = interleave(centre, first, second)
    return Recording(
        Integrals(
            since=np.zeros(1),
            centre=centre,
            first=first,
            second=second,
            cross=np.zeros((d, d) if covariance else (0, 0)),
            marks=np.zeros((2 * batches, 2 * d)),
            stretch=np.full(1, float(stretch)),
            marked=np.zeros(1, np.int64),
        ),
        new_skeleton(skeleton, d, moving=moving, local=local),
        Grid(rows=np.zeros((2 * grid, d)), spacing=np.full(1, float(spacing)), used=np.zeros(1, np.int64)),
    )


def new_skeleton(rows, d, *, moving, local):
    """An empty buffer of `rows` rows, for positions of dimension d."""
    width = 1 if local else d
    return Skeleton(
        times=np.zeros(rows),
        kinds=np.zeros(rows, np.int8),
        which=np.zeros(rows if local else 0, np.int64),
        xs=np.zeros((rows, width)),
        vs=np.zeros((rows, width if moving else 0)),
        used=np.zeros(1, np.int64),
    )


@internal
def mark(integrals, flow, xs, vs, moved, now):
    """Store the integrals at since + stretch, since + 2 stretch … up to `now`, for batch means.

    When all rows are used, every second one is dropped and the stretch doubled. The cost is O(d) at each of these
    times, and nothing at the events between them.
    """
    n, d = integrals.marks.shape[0], xs.shape[0]
    since = integrals.since[0]
    if now <= since:
        return
    if integrals.stretch[0] == 0.0:  # at the first event: about d events in all n stretches
        integrals.stretch[0] = (now - since) * max(d, n) / n
    while since + (integrals.marked[0] + 1) * integrals.stretch[0] <= now * (1.0 + 1e-14):
        row = integrals.marked[0]
        if row == n:
            for k in range(n // 2):
                for j in range(2 * d):
                    integrals.marks[k, j] = integrals.marks[2 * k + 1, j]
            integrals.marked[0] = n // 2
            integrals.stretch[0] *= 2.0
            continue
        t = since + (row + 1) * integrals.stretch[0]
        for j in range(d):
            at = last_moved(moved, j)
            a = max(at, since)
            x, v = flow.position(j, xs[j], vs[j], a - at), flow.velocity(j, xs[j], vs[j], a - at)
            first, second = flow.moments(j, x, v, integrals.centre[j], t - a)
            integrals.marks[row, j] = integrals.first[j] + first
            integrals.marks[row, d + j] = integrals.second[j] + second
        integrals.marked[0] = row + 1


@internal_inlined
def integrate(integrals, flow, j, x, v, moved, now):
    """Add the path of coordinate j, which was at x with velocity v at time `moved`, until `now`."""
    a = max(moved, integrals.since[0])
    if now <= a:
        return
    if a > moved:
        x, v = flow.position(j, x, v, a - moved), flow.velocity(j, x, v, a - moved)
    first, second = flow.moments(j, x, v, integrals.centre[j], now - a)
    integrals.first[j] += first
    integrals.second[j] += second


@internal
def integrate_all(integrals, flow, xs, vs, moved, now):
    """Add the path of all coordinates, which last changed together at time `moved`, until `now`."""
    for j in range(xs.shape[0]):
        integrate(integrals, flow, j, xs[j], vs[j], moved, now)
    a = max(moved, integrals.since[0])
    if integrals.cross.shape[0] == 0 or now <= a:
        return
    for j in range(xs.shape[0]):
        x, v = flow.position(j, xs[j], vs[j], a - moved), flow.velocity(j, xs[j], vs[j], a - moved)
        for k in range(j + 1):
            y, w = flow.position(k, xs[k], vs[k], a - moved), flow.velocity(k, xs[k], vs[k], a - moved)
            c, e = integrals.centre[j], integrals.centre[k]
            integrals.cross[j, k] += flow.product(j, x, v, c, k, y, w, e, now - a)


@internal
def fill_grid(grid, flow, since, xs, vs, moved, now):
    """Positions at since + spacing, since + 2 spacing … up to `now`; a full grid is thinned to half its rows."""
    n, d = grid.rows.shape
    if now <= since:
        return
    if grid.spacing[0] == 0.0:
        grid.spacing[0] = (now - since) / 8.0
    while since + (grid.used[0] + 1) * grid.spacing[0] <= now * (1.0 + 1e-14):
        row = grid.used[0]
        if row == n:
            for k in range(n // 2):
                for j in range(d):
                    grid.rows[k, j] = grid.rows[2 * k + 1, j]
            grid.used[0] = n // 2
            grid.spacing[0] *= 2.0
            continue
        t = since + (row + 1) * grid.spacing[0]
        for j in range(d):
            grid.rows[row, j] = flow.position(j, xs[j], vs[j], t - last_moved(moved, j))
        grid.used[0] = row + 1


@internal_inlined
def record(skeleton, x, v, now, kind):
    """Append an event that may have changed every coordinate."""
    row = skeleton.used[0]
    skeleton.times[row] = now
    skeleton.kinds[row] = kind
    for j in range(skeleton.xs.shape[1]):
        skeleton.xs[row, j] = x[j]
    for j in range(skeleton.vs.shape[1]):
        skeleton.vs[row, j] = v[j]
    skeleton.used[0] = row + 1


@internal_inlined
def record_one(skeleton, j, x, v, now, kind):
    """Append what an event of a local process did to coordinate j."""
    row = skeleton.used[0]
    skeleton.times[row] = now
    skeleton.kinds[row] = kind
    skeleton.which[row] = j
    skeleton.xs[row, 0] = x
    skeleton.vs[row, 0] = v
    skeleton.used[0] = row + 1
