r"""Boundaries: a process on a box, or on an intersection of half-spaces, for truncated targets.

=====  ================================================================================================
flow   that of the process within, straight lines or ellipses
clock  those of the process within; and a boundary's: when the path hits it, in closed form, certain
rate   of the process within
jump   at a wall with the outward normal n the position is put on the wall, and
       reflect  v ← v - 2 (v·n) Σn / (n·Σn), Σ the covariance of the velocities (BPS, Boomerang)
       flip     vⱼ ← -vⱼ wherever nⱼ ≠ 0 (Zig-Zag, Coordinate Sampler)
       absorb   nothing: the run ends there
=====  ================================================================================================

Both rules leave the flux through the wall balanced: (v'·n) = -(v·n), and v' is as likely as v under the law of the
velocities, so that the truncated target is invariant.

References
----------
Bierkens, Bouchard-Côté, Doucet, Duncan, Fearnhead, Lienart, Roberts & Vollmer (2018), Piecewise deterministic Markov
processes for scalable Monte Carlo on restricted domains, Stat. Probab. Lett. 136 (the condition at the boundary).
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.interfaces.recipe import Recipe
from pdmp.models.numerical import quick_mode
from pdmp.models.transforms import coordinate_names
from pdmp.native.arguments import one_of
from pdmp.native.classes import Compiled, compiled
from pdmp.process import CERTAIN, Process, State, last_moved
from pdmp.processes.extended import Extended, InnerReport, check_process
from pdmp.processes.walls import Walls

REFLECT, FLIP, ABSORB = 0, 1, 2

#: A position that lies beyond a wall of the box by at most this part of its own size, the wall's and the velocity's is
#: taken to be on the wall: it is there because positions are rounded, and because late in a run times are rounded too.
WALL_ROUNDING = 1e-9

#: The wall of a half-space a·x <= b is moved inwards by this part of the size of its terms, so that a position on it
#: that is rounded outwards still lies inside.
WALL_MARGIN = 1e-14
#: Projections onto each half-space by which a start inside is looked for, at most, and how far each goes.
SWEEPS, RELAXED = 500, 1.5
#: Points between the walls at which it is looked whether the potential is flat, at most.
PLACES = 32


class Memory(NamedTuple):
    """Beside the path."""

    wall: np.ndarray  #: (own clocks,) which wall each hits next: 2j the lower one of coordinate j, 2j + 1 the upper
    #: one, 2d + k half-space k
    ended: np.ndarray  #: (1,) whether the path was absorbed
    inner: tuple


class Within(Compiled):
    """A flow whose positions are never beyond a wall by rounding: the process within a box moves along it."""

    path: Compiled
    lower: np.ndarray
    upper: np.ndarray

    def __init__(self, path, lower, upper):
        self.path, self.lower, self.upper, self.kind = path, lower, upper, path.kind

    @compiled
    def position(self, j, x, v, s):
        p, low, high = self.path.position(j, x, v, s), self.lower[j], self.upper[j]
        if p < low:
            return low if low - p <= WALL_ROUNDING * (abs(low) + abs(x) + abs(v)) else p
        return high if 0.0 < p - high <= WALL_ROUNDING * (abs(high) + abs(x) + abs(v)) else p

    @compiled
    def velocity(self, j, x, v, s):
        return self.path.velocity(j, x, v, s)

    @compiled
    def bend(self, j, x, v):
        return self.path.bend(j, x, v)

    @compiled
    def at_wall(self, j, x):
        return not self.lower[j] < x < self.upper[j]


class BoundedReport(InnerReport):
    """Whether the path was absorbed."""

    def ended(self, process, state):
        return "absorbed" if state.memory.ended[0] else None


class Bounded(Extended):
    """A process confined to lower <= x <= upper and a·x <= b, with walls that reflect or absorb.

    Walls are hit at closed-form times; the position is put on them, to the last bit for a box, to rounding for a
    half-space. Rates are never evaluated beyond a wall, so the potential need not be defined there.
    With a local process the cost of an event does not depend on the dimension.
    If the potential is flat between the walls, a process that refreshes takes its scale from the distance of the walls.
    `ZigZag`, which does not refresh by default, then needs a `refresh_rate`.

    Parameters
    ----------
    process : Process
        A process with straight or elliptic paths that knows what a wall does to its velocity: `BPS`, `ZigZag`, …
    lower, upper : float or array_like, shape (d,), optional
        The box; infinite where there is no wall.
    halfspaces : sequence of pairs (a, b), or one pair (A, b), optional
        Half-spaces a·x <= b, a of shape (d,) and b a number; or all of them, A of shape (m, d), dense or sparse, and
        b of shape (m,).
    kind : {"reflect", "absorb"}, default "reflect"
        "reflect": the process stays inside the walls, and samples the target truncated to them. "absorb": the run ends
        at the first wall, with ``run.stopped == "absorbed"``, at the time ``run.end`` and the path's last position.

    Raises
    ------
    TypeError
        For a process that has no rule at a wall.
    ValueError
        For walls that are not numbers, `lower` not below `upper`, a normal of zero, or no walls at all. Before a run:
        for a start outside, and where several coordinates would turn at walls only.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> target = pdmp.models.Gaussian([-1.0, 0.0], np.eye(2))
    >>> process = pdmp.Bounded(pdmp.ZigZag(target), lower=0.0)
    >>> run = pdmp.sample(process, time=2_000.0, seed=1)
    >>> bool(run.trajectories[0].positions.min() == 0.0)
    True
    """

    lower: np.ndarray
    upper: np.ndarray
    boxed: np.ndarray  #: the coordinates with a wall
    #: The normals a by rows: of half-space k data[q] in coordinate indices[q] for indptr[k] <= q < indptr[k + 1].
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    offsets: np.ndarray  #: (m,)
    around: np.ndarray  #: (m,) a·c, where coordinate j turns around c[j]
    mirrors: np.ndarray  #: (m, d) Σa; no rows where that is a itself
    box_mirrors: np.ndarray  #: (d, d) Σ; likewise
    rule: int
    wall_kind: int  #: the kind of event

    recipe = Recipe(featured=False)
    report = BoundedReport()
    walled = True

    def __init__(
        self,
        process: Process,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        halfspaces: object = None,
        kind: str = "reflect",
    ) -> None:
        name = type(self).__name__
        check_process(process)
        if not isinstance(process, Walls) or process.wall_rule is None:
            raise TypeError(
                f"pdmp.{name} needs a process that knows what a wall does to its velocity: pdmp.ZigZag, pdmp.LocalBPS, "
                "pdmp.BPS without an adaptive mass, pdmp.DirectionalBPS where the model bounds U'', or another of "
                f"`pdmp.processes.walls`; got a {type(process).__name__}."
            )
        one_of("kind", kind, ("reflect", "absorb"))
        d = process.dim
        self.lower, self.upper = _box(lower, upper, d)
        self.boxed = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        self.indptr, self.indices, self.data, self.offsets = _halfspaces(halfspaces, d)
        m = len(self.offsets)
        if len(self.boxed) + m == 0:
            raise ValueError("no boundary: give `lower`, `upper` or `halfspaces`.")
        self.rule = ABSORB if kind == "absorb" else FLIP if process.wall_rule == "flip" else REFLECT
        centre = np.array([process.flow.around(j) for j in np.unique(self.indices)])
        self.around = np.zeros(m)
        if len(centre):
            terms = self.data * centre[np.searchsorted(np.unique(self.indices), self.indices)]
            self.around = np.add.reduceat(terms, self.indptr[:-1])
        self.mirrors = self.box_mirrors = np.zeros((0, 0))
        self._mirror_in(process)
        n = len(self.boxed)
        watched = np.append(np.arange(n), n + self.indptr), np.concatenate([self.boxed, self.indices])
        flow, process = process.flow, copy.copy(process)
        process.flow = Within(flow, self.lower, self.upper)
        super().__init__(process, watched, flow, final=kind == "absorb")
        self.wall_kind = len(process.events)
        self.events = (*process.events, "wall")

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if state.memory.ended[0]:
            return math.inf, CERTAIN
        if i < self.first:
            for k in range(self.start[i], self.start[i + 1]):
                j = self.order[k]
                if j < self.first:
                    break
                if state.keys[state.place[j]] <= now:  # a wall is hit now: beyond it the target may not be defined
                    return math.inf, CERTAIN
            return self.inner.clock(self.inside(state), i, now, rng)
        time = math.inf
        c, n = i - self.first, self.boxed.shape[0]
        if not self.one_clock:
            time = self.box_hit(state, c, c, now, time) if c < n else self.halfspace_hit(state, c, c - n, now, time)
        else:
            for k in range(n):
                time = min(time, self.box_hit(state, 0, k, now, time))
            for k in range(self.offsets.shape[0]):
                time = min(time, self.halfspace_hit(state, 0, k, now, time))
        return time, CERTAIN

    @compiled
    def box_hit(self, state, c, k, now, before):
        """When the k-th coordinate with walls hits one; if that is before `before`, note which for its own clock c."""
        j = self.boxed[k]
        centre = self.flow.around(j)
        moved = last_moved(state.moved, j)
        y, v, high, low = state.x[j] - centre, state.v[j], self.upper[j] - centre, self.lower[j] - centre
        rise = self.flow.first_passage(y, v, high) if high < math.inf else math.inf
        fall = self.flow.first_passage(-y, -v, -low) if low > -math.inf else math.inf
        time = max(moved + min(rise, fall), now)
        if time < before:
            state.memory.wall[c] = 2 * j + (1 if rise < fall else 0)
        return time

    @compiled
    def halfspace_hit(self, state, c, k, now, before):
        """When half-space k's wall is hit."""
        y, w, size = -self.around[k], 0.0, abs(self.offsets[k])
        for q in range(self.indptr[k], self.indptr[k + 1]):
            j = self.indices[q]
            s = now - last_moved(state.moved, j)
            term = self.data[q] * self.flow.position(j, state.x[j], state.v[j], s)
            y += term
            size += abs(term)
            w += self.data[q] * self.flow.velocity(j, state.x[j], state.v[j], s)
        time = now + self.flow.first_passage(y, w, self.offsets[k] - WALL_MARGIN * size - self.around[k])
        if time < before:
            state.memory.wall[c] = 2 * self.dimension() + k
        return time

    @compiled
    def dimension(self):
        return self.lower.shape[0]

    @compiled
    def span(self, state, k):
        if not self.one_clock:
            return self.scope_start[k], self.scope_start[k + 1]
        n, wall = self.boxed.shape[0], state.memory.wall[0]
        if wall >= 2 * self.dimension():
            h = wall - 2 * self.dimension()
            return n + self.indptr[h], n + self.indptr[h + 1]
        for c in range(n):
            if self.boxed[c] == wall // 2:
                return c, c + 1
        return 0, 0

    @compiled
    def jump(self, state, i, now, rng):
        if i < self.first:
            return self.inner.jump(self.inside(state), i, now, rng)
        wall = state.memory.wall[i - self.first]
        if wall < 2 * self.dimension():
            self.meet_box(state, wall // 2, wall % 2 == 1)
        else:
            self.meet_halfspace(state, wall - 2 * self.dimension())
        if self.rule == ABSORB:
            state.memory.ended[0] = True
        else:
            self.inner.velocity_changed(self.inside(state), now, rng)
        return self.wall_kind

    @compiled
    def meet_box(self, state, j, above):
        """Put coordinate j on its upper or lower wall, and turn the velocity inwards."""
        x, v = state.x, state.v
        x[j] = self.upper[j] if above else self.lower[j]
        if self.rule == ABSORB:
            return
        w = abs(v[j])
        if self.box_mirrors.shape[0] > 0:
            c = 2.0 * v[j] / self.box_mirrors[j, j]
            for k in range(v.shape[0]):
                v[k] -= c * self.box_mirrors[j, k]
        v[j] = -w if above else w

    @compiled
    def meet_halfspace(self, state, k):
        """Put the position on the wall of half-space k, and turn the velocity inwards."""
        x, v = state.x, state.v
        first, last = self.indptr[k], self.indptr[k + 1]
        outside, square, along, size = -self.offsets[k], 0.0, 0.0, abs(self.offsets[k])
        for q in range(first, last):
            a, j = self.data[q], self.indices[q]
            outside += a * x[j]
            size += abs(a * x[j])
            square += a * a
            along += a * v[j]
        for q in range(first, last):
            x[self.indices[q]] -= (outside + WALL_MARGIN * size) / square * self.data[q]
        if self.rule == FLIP:
            for q in range(first, last):
                v[self.indices[q]] = -v[self.indices[q]]
        elif self.rule == REFLECT:
            if self.mirrors.shape[0] == 0:
                for q in range(first, last):
                    v[self.indices[q]] -= 2.0 * along / square * self.data[q]
                return
            across = 0.0
            for q in range(first, last):
                across += self.data[q] * self.mirrors[k, self.indices[q]]
            for j in range(v.shape[0]):
                v[j] -= 2.0 * along / across * self.mirrors[k, j]

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def anchor(self) -> np.ndarray | None:
        """The start of the process within, or a point inside that is near it: the closest one of a box.

        From half-spaces that it is outside of it goes inside by relaxed projections, one after the other. The mode is
        not looked for where the potential may exist inside only: the search would go outside.
        """
        x = self.inner.anchor
        if x is None and self.model is not None:
            x = quick_mode(self.model) if self.model.everywhere else None
            x = self.model.initial if x is None else x
        if x is None:
            return None
        x = np.clip(x, self.lower, self.upper)
        for _ in range(SWEEPS):
            before = x.copy()
            for k, b in enumerate(self.offsets):
                row = slice(self.indptr[k], self.indptr[k + 1])
                a, places = self.data[row], self.indices[row]
                x[places] -= RELAXED * max(a @ x[places] - b, 0.0) / (a @ a) * a
            x = np.clip(x, self.lower, self.upper)
            if np.array_equal(x, before):
                break
        return x

    def _mirror_in(self, process):
        """Tabulate the normals of the walls in the metric of the process."""
        covariance = process.velocity_covariance()
        if self.rule == REFLECT and covariance is not None:
            d, m = process.dim, len(self.offsets)
            normals = _matrix(self.indptr, self.indices, self.data, d).toarray()
            self.mirrors = np.array([covariance(a) for a in normals]).reshape(m, d)
            self.box_mirrors = np.array([covariance(a) for a in np.eye(d)])

    def resolve(self, x: np.ndarray) -> Self:
        resolved = copy.copy(self)
        resolved.inner = copy.copy(self.inner)
        resolved.inner._narrow = self._narrowness(x)
        resolved.inner = resolved.inner.resolve(x)
        if not np.any(getattr(resolved.inner, "refresh_rate", 0.0)):
            resolved.inner._narrow = 0.0  # between walls alone, without a slope, nothing makes it forget its directions
        resolved._check_turns(x)
        resolved._mirror_in(resolved.inner)
        return resolved

    def _check_turns(self, x):
        """Raise a `ValueError` if several coordinates turn at walls only: their path may be one closed line.

        Of a process that moves one coordinate at a time one is enough, in which it would go to and fro for ever.
        """
        if self.rule != FLIP or self.model is None or len(x) == 1:
            return
        process, rng = self.inner, np.random.default_rng(0)
        enough = 2 if np.all(process.velocity(x, rng)) else 1
        still = np.broadcast_to(process.refresh_rate == 0.0, x.shape).copy()
        below, above = (np.where(np.isfinite(way), way, 1.0) for way in (x - self.lower, self.upper - x))
        normals = _matrix(self.indptr, self.indices, self.data, len(x))
        with np.errstate(all="ignore"):
            for k in range(PLACES):
                way = np.zeros(len(x)) if k == 0 else rng.uniform(-below, above)
                ahead = normals @ way
                most = np.min((self.offsets - normals @ x)[ahead > 0.0] / ahead[ahead > 0.0], initial=1.0)
                still &= self.model.gradient(x + max(most, 0.0) * way) == 0.0
                if np.count_nonzero(still) < enough:
                    return
        names, name = coordinate_names(self.model.variables, self.model.transforms), type(process).__name__
        flat = " and ".join(names[j] for j in np.flatnonzero(still)[:2])
        rate = math.sqrt(self._narrowness(x) / 12.0) or 1.0
        raise ValueError(
            f"the potential does not depend on {flat}, so that there pdmp.{name} turns at walls only, and its path may "
            f"be one line for ever: give it a `refresh_rate`, as in pdmp.{name}(..., refresh_rate={rate:.2g})."
        )

    def _narrowness(self, x):
        """12 / L², where L is the longest way along a coordinate from wall to wall through x; 0 if there is none."""
        below, above = x - self.lower, self.upper - x
        rows = np.repeat(np.arange(len(self.offsets)), np.diff(self.indptr))
        left = self.offsets - np.bincount(rows, self.data * x[self.indices], len(self.offsets))
        for side, sign in ((above, 1.0), (below, -1.0)):
            ahead = sign * self.data > 0.0
            np.minimum.at(side, self.indices[ahead], (left[rows] / np.abs(self.data))[ahead])
        ways = (below + above)[np.isfinite(below + above)]
        return 12.0 / float(ways.max()) ** 2 if np.any(ways > 0.0) else 0.0

    def begin(self, x: np.ndarray, rng: np.random.Generator) -> State:
        self.check_inside(x)
        return super().begin(x, rng)

    def check_inside(self, x: np.ndarray) -> None:
        """Raise a `ValueError` that names the first wall beyond which x (d,) lies."""
        for name, outside, wall in (("lower", x < self.lower, self.lower), ("upper", x > self.upper, self.upper)):
            if np.any(outside):
                j = int(np.argmax(outside))
                side = "below" if name == "lower" else "above"
                raise ValueError(
                    f"`initial` lies outside the boundaries: x[{j}] = {x[j]:.6g} is {side} `{name}`[{j}] = "
                    f"{wall[j]:.6g}; give `initial=` a point inside."
                )
        for k, b in enumerate(self.offsets):
            row = slice(self.indptr[k], self.indptr[k + 1])
            terms = self.data[row] * x[self.indices[row]]
            if terms.sum() > b + 1e-12 * (np.abs(terms).sum() + abs(b)):  # a point on the wall is inside, to rounding
                raise ValueError(
                    f"`initial` lies outside the boundaries: a·x = {terms.sum():.6g} of half-space {k} is above b = "
                    f"{b:.6g}; give `initial=` a point inside, if there is one."
                )

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return Memory(np.zeros(self.own, np.int64), np.zeros(1, np.bool_), self.inner.memory(x, rng))


def _box(lower, upper, d):
    """Both walls of every coordinate, (d,) each."""
    walls = []
    for name, value, none in (("lower", lower, -math.inf), ("upper", upper, math.inf)):
        try:
            wall = np.array(none if value is None else value, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"`{name}` must hold numbers, got {value!r}.") from None
        if wall.shape not in ((), (d,)):
            raise ValueError(f"`{name}` must be a number or have shape ({d},), got {wall.shape}.")
        if np.any(np.isnan(wall)) or np.any(wall == -none):
            raise ValueError(f"`{name}` must be finite, or {none} where there is no wall; got {value!r}.")
        walls.append(np.array(np.broadcast_to(wall, (d,))))
    crossed = ~(walls[0] < walls[1])
    if np.any(crossed):
        j = int(np.argmax(crossed))
        raise ValueError(
            f"`lower` must be below `upper`; in coordinate {j} they are {walls[0][j]:.6g} and {walls[1][j]:.6g}."
        )
    return walls


def _halfspaces(given, d):
    """Normals by rows, (indptr, indices, data), and offsets."""
    from scipy import sparse

    if given is None:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    form = "`halfspaces` must be pairs (a, b), or one pair (A, b) with A of shape (m, d) and b of shape (m,)"
    try:
        if isinstance(given, tuple) and len(given) == 2 and (sparse.issparse(given[0]) or np.ndim(given[0]) == 2):
            normals, offsets = given
        else:
            normals, offsets = zip(*given, strict=True)
        normals = normals if sparse.issparse(normals) else np.array(normals, dtype=float)
        rows = sparse.csr_array(normals, dtype=float)
        offsets = np.array(offsets, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{form}; got {given!r}.") from None
    if rows.ndim != 2 or rows.shape[1] != d or offsets.shape != rows.shape[:1]:
        raise ValueError(f"{form}, here d = {d}; got normals of {rows.shape} and offsets of {offsets.shape}.")
    if not (np.all(np.isfinite(rows.data)) and np.all(np.isfinite(offsets))):
        raise ValueError("`halfspaces` must be finite.")
    rows.eliminate_zeros()
    rows.sort_indices()
    empty = np.diff(rows.indptr) == 0
    if np.any(empty):
        raise ValueError(f"`halfspaces`: the normal of number {int(np.argmax(empty))} is zero.")
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data, offsets


def _matrix(indptr, indices, data, columns):
    """The matrix with these rows."""
    from scipy import sparse

    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, columns))
