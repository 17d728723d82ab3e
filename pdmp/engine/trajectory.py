"""Paths of chains: events, positions at any time, and exact integrals, from what the event loop stored.

The path of a local process is stored coordinate by coordinate, a row for each change. It is read in the same way, so
that a few positions, or averages, need no table of all positions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.averages import apply
from pdmp.native.explanations import explained_methods

#: Largest dense table that is made of a local process's path.
DENSE_BYTES = 2_000_000_000
#: Numbers in a block of a path that is read block by block.
BLOCK = 2_000_000
#: And of one whose sums need tables of the same size, which should stay in the processor's cache.
SUMMED = 200_000
#: As in `recording.fill_grid`: an event that is before a grid point by no more than rounding counts as after it.
NUDGE = 1.0 + 1e-14

#: Gauss-Legendre nodes in [0, 1] and weights, see `_mean_of`: exact for polynomials up to degree 5.
NODES, WEIGHTS = 0.5 * np.array(np.polynomial.legendre.leggauss(6)) + np.array([[0.5], [0.0]])
SMOOTH = 1e-5  #: of the largest value: what interpolation leaves of smooth functions
#: The highest divided difference of f at the nodes, scaled and divided by the largest value, above which a segment is
#: cut; into how many parts; and by how much the random place moves from one part to the next.
ROUGH, PARTS, GOLDEN = 1e-2, 8, 0.5 * (5.0**0.5 - 1.0)
#: Nodes and weights on an ellipse, for arcs up to `ARC`: polynomials up to degree 5 are integrated to 1e-12.
ARC = 1.0
ARC_NODES, ARC_WEIGHTS = 0.5 * np.array(np.polynomial.legendre.leggauss(12)) + np.array([[0.5], [0.0]])


@explained_methods
class Trajectory:
    """The path of one chain: linear, elliptic or constant between its events.

    Parameters
    ----------
    x, v : ndarray, shape (d,)
        Position and velocity at time 0.
    times, kinds, which, xs, vs : ndarray
        Rows as in `pdmp.engine.recording.Skeleton`: what an event changed, and the values after it.
    end : float
        The time at which the path ends.
    kind : {"linear", "elliptic", "constant"}
        How it moves between events, as in `pdmp.flow`.
    events : sequence of str
        Names of the kinds of event.
    local : bool
        Whether each row holds a single coordinate, ``which``.
    warmup : float, default 0
        End of the warm-up.
    centre : ndarray, shape (d,), optional
        The centre of an elliptic path.

    Attributes
    ----------
    times : ndarray, shape (K + 1,)
        0 and the times of the K events.
    positions : ndarray, shape (K + 1, d)
        Positions just after the events, the start first.
    velocities : ndarray, shape (K + 1, d), or None
        Velocities just after the events; None for piecewise-constant paths.
    kinds : ndarray of int, shape (K,)
        Kinds of the events, indices into `events`.
    coarse, coarse_times : ndarray or None
        For coupled copies: the positions of the last copy and their times; else None.
    whole : Trajectory
        For coupled copies: the path of all of them; else this one.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0], [1.0])
    >>> path = pdmp.sample(pdmp.ZigZag(target), time=100.0, seed=1).trajectories[0]
    >>> path.at([0.0, 50.0]).shape
    (2, 1)
    """

    def __init__(
        self,
        x: np.ndarray,
        v: np.ndarray,
        times: np.ndarray,
        kinds: np.ndarray,
        which: np.ndarray,
        xs: np.ndarray,
        vs: np.ndarray,
        *,
        end: float,
        kind: str,
        events: Sequence[str],
        local: bool,
        warmup: float = 0.0,
        centre: np.ndarray | None = None,
    ) -> None:
        self._x, self._v = x, v
        self._times, self._kinds, self._which, self._xs, self._vs = times, kinds, which, xs, vs
        self.end, self.kind, self.events, self.warmup = float(end), kind, tuple(events), float(warmup)
        self.dim, self.local = len(x), local
        self.moving = kind != "constant"
        self.centre = centre if kind == "elliptic" else None
        self.coarse = self.coarse_times = self._whole = None

    @property
    def whole(self) -> Trajectory:
        return self if self._whole is None else self._whole

    def of_copies(self, copies: int) -> Trajectory:
        """The path of the first of so many coupled copies, of which this is the path: with `coarse` and `whole`."""
        if copies == 1:
            return self
        d, last = self.dim // copies, copies - 1
        fine, coarse = self.block(0, d, kind=0), self.block(last * d, (last + 1) * d, kind=last)
        fine.coarse, fine.coarse_times, fine._whole = coarse.positions, coarse.times, self
        return fine

    def __repr__(self):
        return f"Trajectory({len(self._times)} rows, dim={self.dim}, {self.kind}, end={self.end:.6g})"

    def block(self, first: int, last: int, kind: int | None = None) -> Trajectory:
        """The path of coordinates first … last - 1; with `kind`, only events of that kind may change them."""
        rows = slice(None) if kind is None else np.flatnonzero(self._kinds == kind)
        if self.local:
            raise ValueError("only the path of a global process can be split into blocks.")
        return self._part(slice(first, last), slice(first, last), rows, self._which)

    def narrowed(self, places: np.ndarray) -> Trajectory:
        """The path of the coordinates `places` (m,) alone, as `stretches` and `square_stretches` need it."""
        rows, which, columns = slice(None), self._which, places
        if self.local:
            number = np.full(self.dim, -1)
            number[places] = np.arange(len(places))
            which = number[self._which]
            rows = np.flatnonzero(which >= 0)
            which, columns = which[rows], slice(None)
        return self._part(places, columns, rows, which)

    def _part(self, places, columns, rows, which):
        """The path of the coordinates `places`, which are these columns of positions, and changed in these rows."""
        return Trajectory(
            self._x[places],
            self._v[places],
            self._times[rows],
            self._kinds[rows],
            which,
            self._xs[rows, columns],
            self._vs[rows, columns] if self._vs.shape[1] else self._vs[rows],
            end=self.end,
            kind=self.kind,
            events=self.events,
            local=self.local,
            warmup=self.warmup,
            centre=None if self.centre is None else self.centre[places],
        )

    # -- events -----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _first_rows(self):
        """The first row of each event."""
        if not self.local or len(self._times) == 0:
            return np.arange(len(self._times))
        return np.flatnonzero(np.concatenate([[True], np.diff(self._times) > 0.0]))

    @functools.cached_property
    def times(self) -> np.ndarray:
        return np.concatenate([[0.0], self._times[self._first_rows]])

    @functools.cached_property
    def kinds(self) -> np.ndarray:
        return self._kinds[self._first_rows]

    @functools.cached_property
    def positions(self) -> np.ndarray:
        if not self.local:
            return np.concatenate([self._x[None], self._xs])
        self._check_dense(len(self.times))
        return self._read(self.times, "right")

    @functools.cached_property
    def velocities(self) -> np.ndarray | None:
        if not self.moving:
            return None
        if not self.local:
            return np.concatenate([self._v[None], self._vs])
        self._check_dense(len(self.times))
        return self._read(self.times, "right", velocities=True)

    def _check_dense(self, rows):
        size = 8 * rows * self.dim
        if size > DENSE_BYTES:
            raise ValueError(
                f"{rows} positions of {self.dim} coordinates would take {size / 1e9:.3g} GB; "
                "read the path with `at(t)` at fewer times, or with `discretise(n)`."
            )

    # -- positions --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _columns(self):
        """Rows sorted by coordinate, and where each coordinate's rows begin."""
        order = np.argsort(self._which, kind="stable")
        return order, np.concatenate([[0], np.cumsum(np.bincount(self._which, minlength=self.dim))])

    def _read(self, t, side, velocities=False):
        """Positions (or velocities) at times t (M,), in any order: (M, d); side "left": before events at t."""

        def latest(times):
            return np.searchsorted(times * NUDGE if side == "left" else times, t, side=side) - 1

        if not self.local:
            k = latest(self._times)
            row, old = np.maximum(k, 0), k < 0
            if len(self._times) == 0:
                moved, x, v = np.zeros(len(t)), np.tile(self._x, (len(t), 1)), np.tile(self._v, (len(t), 1))
            else:
                moved, x, v = self._times[row], self._xs[row], self._vs[row] if self.moving else None
                if old.any():
                    moved[old], x[old] = 0.0, self._x
                    if v is not None:
                        v[old] = self._v
            x, v = _flow(x, v, (t - moved)[:, None], self.centre)
            return v if velocities else x
        order, begin = self._columns
        out = np.empty((len(t), self.dim))
        for j in range(self.dim):
            rows = order[begin[j] : begin[j + 1]]
            times, xs = np.append(0.0, self._times[rows]), np.append(self._x[j], self._xs[rows, 0])
            k = np.maximum(latest(times), 0)
            vs = np.append(self._v[j], self._vs[rows, 0])[k] if self.moving else None
            there = _flow(xs[k], vs, t - times[k], None if self.centre is None else self.centre[j])
            out[:, j] = there[1] if velocities else there[0]
        return out

    def at(self, t: ArrayLike, side: str = "right") -> np.ndarray:
        """Positions at time t.

        Parameters
        ----------
        t : float or array_like, shape (M,)
            Times in [0, `end`].
        side : {"right", "left"}
            Whether a piecewise-constant path is read after ("right") or before an event that is exactly at time t.

        Returns
        -------
        ndarray, shape (d,) or (M, d)

        Raises
        ------
        ValueError
            For times outside [0, `end`].
        """
        times = np.asarray(t, dtype=float)
        if times.ndim > 1:
            raise ValueError(f"`t` must be a number or one-dimensional, got shape {times.shape}.")
        flat = np.atleast_1d(times)
        if flat.size and not (flat.min() >= 0.0 and flat.max() <= self.end):
            raise ValueError(f"`t` must lie in [0, {self.end}], where the path is, got {flat.min()} to {flat.max()}.")
        if side not in ("left", "right"):
            raise ValueError(f"`side` must be 'left' or 'right', got {side!r}.")
        self._check_dense(len(flat))
        out = self._read(flat, side)
        return out[0] if times.ndim == 0 else out

    def discretise(self, n: int, a: float | None = None) -> np.ndarray:
        """Positions at n equally spaced times: the ends of n equal parts of [a, `end`], (n, d).

        A piecewise-constant path is read just before each time: n points of a path of n equal steps are its n states.
        `a` is the end of the warm-up by default.
        """
        a = self.warmup if a is None else float(a)
        if not (isinstance(n, (int, np.integer)) and n >= 1):
            raise ValueError(f"`n` must be a positive integer, got {n!r}.")
        if not 0.0 <= a < self.end:
            raise ValueError(f"`a`: there is no path after time {a} to discretise: it ends at {self.end}.")
        times = np.minimum(a + np.arange(1, n + 1) * ((self.end - a) / n), self.end)
        return self.at(times, side="left")

    def refine(self, times: np.ndarray, angle: float = 0.1) -> np.ndarray:
        """The sorted `times`; on ellipses with more between them, at most `angle` radians apart, to draw the curve."""
        if self.kind != "elliptic" or len(times) < 2:
            return times
        parts = np.maximum(np.ceil(np.diff(times) / angle), 1.0).astype(int)
        step = np.repeat(np.diff(times) / parts, parts)
        within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
        return np.append(np.repeat(times[:-1], parts) + within * step, times[-1])

    # -- integrals --------------------------------------------------------------------------------------------------

    def _range(self, a, b):
        a = self.warmup if a is None else float(a)
        b = self.end if b is None else float(b)
        if not 0.0 <= a < b <= self.end:
            raise ValueError(
                f"`a`, `b`: the interval [{a}, {b}] must lie in the path's, [0, {self.end}], and have a length."
            )
        return a, b

    def segments(
        self,
        a: float | None = None,
        b: float | None = None,
        cuts: Sequence[float] | np.ndarray = (),
        block: int = BLOCK,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """The path over [a, b] in blocks of m segments between events.

        Parameters
        ----------
        a, b : float, optional
            By default from the end of the warm-up to the end of the path.
        cuts : sequence of float, optional
            Sorted times within [a, b] at which segments end as well.
        block : int, default 2,000,000
            Numbers in the positions of a block, about.

        Yields
        ------
        lengths : ndarray, shape (m,)
            Durations of the segments.
        positions : ndarray, shape (m, d)
            At their starts.
        velocities : ndarray, shape (m, d), or None
            At their starts; None for constant paths. Elliptic segments are arcs around `centre`.
        """
        a, b = self._range(a, b)
        times = self.times
        inner = times[(times > a) & (times < b)]
        if len(cuts):
            cuts = np.asarray(cuts, dtype=float)
            before = np.searchsorted(inner, cuts)
            new = np.append(inner, np.inf)[before] != cuts
            inner = np.insert(inner, before[new], cuts[new])
        knots = np.concatenate([[a], inner, [b]])
        size = max(block // self.dim, 1)
        for k in range(0, len(knots) - 1, size):
            part = knots[k : k + size + 1]
            x = self._read(part[:-1], "right")
            v = self._read(part[:-1], "right", velocities=True) if self.moving else None
            yield np.diff(part), x, v

    def integral(self, f: Callable | None = None, a: float | None = None, b: float | None = None) -> np.ndarray | float:
        """∫ f(x(t)) dt over [a, b]; without `f`, ∫ x(t) dt.

        Parameters
        ----------
        f : callable, optional
            From a position (d,) to a number or an array. The integral is exact for piecewise-constant paths and, on
            linear and elliptic ones, for polynomials up to degree 5; otherwise by Gauss-Legendre quadrature, with six
            nodes in each linear segment and twelve in each radian of an ellipse, and a random place in each, by which
            functions that jump have no bias.
        a, b : float, optional
            By default from the end of the warm-up to the end of the path.

        Returns
        -------
        ndarray or float
            (d,) without `f`, else of the shape of f(x).
        """
        total = 0.0
        for h, x, v in self.segments(a, b):
            if f is not None:
                total = total + integrate_function(f, h, x, v, self.centre)
                continue
            total = total + h @ x
            if v is not None:
                along, across = _integrals(h, self.centre)[:2]
                total = total + along @ v
                if self.centre is not None:
                    total = total - across @ _bend(x, v, self.centre)
        return total

    def stretches(
        self, n: int, f: Callable | None = None, a: float | None = None, b: float | None = None
    ) -> np.ndarray:
        """Averages of f(x(t)), or of x(t) without `f`, over n equal stretches of [a, b]: (n, ...).

        Computed as in `integral`.
        """
        a, b = self._range(a, b)
        ends = a + np.arange(n + 1) * ((b - a) / n)
        if f is None and self.local:
            return self._x + self._local_integrals(ends, self._x) * (n / (b - a))

        def integrals(h, x, v):
            if f is not None:
                return [(np.ones(len(h)), np.moveaxis(segment_integrals(f, h, x, v, self.centre), -1, 0))]
            products = [(h, x)]
            if v is not None:
                along, across = _integrals(h, self.centre)[:2]
                products += [(along, v)] if self.centre is None else [(along, v), (-across, _bend(x, v, self.centre))]
            return products

        block = SUMMED if f is None else BLOCK  # as a function is tried with single positions of each
        return self._sum_stretches(ends, b, lambda *segments: [integrals(*segments)], block)[0] * (n / (b - a))

    def _sum_stretches(self, ends, b, integrals, block):
        """Sums over the m segments between each two of `ends`; the path is read to b.

        For each sum ``integrals(h, x, v)`` has a list of weights (m,) and values (m, ...), whose products are added.
        """
        from scipy import sparse

        n, out, now = len(ends) - 1, None, ends[0]
        for h, x, v in self.segments(ends[0], b, ends[1:-1], block):
            until = now + np.cumsum(h)
            which = np.clip(np.searchsorted(ends, until - 0.5 * h) - 1, 0, n - 1)
            begin = np.flatnonzero(np.diff(which, prepend=-1))
            segments, rows = np.arange(len(h)), np.append(begin, len(h))
            # A product with a matrix that has a row for each stretch reads the values once, and copies none.
            found = [
                sum(
                    (sparse.csr_matrix((weights, segments, rows)) @ values.reshape(len(h), -1)).reshape(
                        -1, *values.shape[1:]
                    )
                    for weights, values in products
                )
                for products in integrals(h, x, v)
            ]
            if out is None:
                out = [np.zeros((n, *sums.shape[1:])) for sums in found]
            for total, sums in zip(out, found, strict=True):
                total[which[begin]] += sums
            now = until[-1]
        return out

    def _local_integrals(self, ends, centre, square=False):
        """∫ (x - centre), or of its square, between each two of `ends`, (n, d), from each coordinate's own rows."""
        n, out = len(ends) - 1, np.empty((len(ends) - 1, self.dim))
        for first, last, rows in self._column_blocks(n + 1):
            h, x, v, bend, which, stretch = self._column_pieces(ends, first, last, rows)
            x, m = x - centre[first + which], last - first
            found = h * x * x if square else h * x
            if v is not None:
                bend = 0.0 if bend is None else bend
                along, across, aa, ac, cc = _integrals(h, self.centre)
                moved = along * v - across * bend
                if square:
                    found = found + 2.0 * x * moved + aa * v * v - 2.0 * ac * v * bend + cc * bend * bend
                else:
                    found = found + moved
            out[:, first:last] = np.bincount(stretch * m + which, weights=found, minlength=n * m).reshape(n, m)
        return out

    def _column_blocks(self, ends):
        """Ranges first … last - 1 of coordinates that are handled together, with `ends` times each, and their rows."""
        order, begin = self._columns
        rows = max(BLOCK // 8, 1)  # rows of the path plus ends that are handled together
        first = 0
        while first < self.dim:
            room = begin - begin[first] + ends * (np.arange(self.dim + 1) - first)
            last = min(max(int(np.searchsorted(room, rows, side="right")) - 1, first + 1), self.dim)
            yield first, last, order[begin[first] : begin[last]]
            first = last

    def square_stretches(
        self, n: int, centre: ArrayLike, a: float | None = None, b: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Averages of (x - centre)² over n equal stretches of [a, b], (n, d), and of (x - centre)⁴ over [a, b], (d,).

        Both are exact.
        """
        a, b = self._range(a, b)
        ends, centre = a + np.arange(n + 1) * ((b - a) / n), np.broadcast_to(np.asarray(centre, float), self.dim)
        if self.local:
            squares, fourth = np.empty((n, self.dim)), np.empty(self.dim)
            for first, last, rows in self._column_blocks(n + 1):
                h, x, v, bend, which, stretch = self._column_pieces(ends, first, last, rows)
                two, four = (h * power for power in _power_means(h, x - centre[first + which], v, bend))
                m = last - first
                squares[:, first:last] = np.bincount(stretch * m + which, weights=two, minlength=n * m).reshape(n, m)
                fourth[first:last] = np.bincount(which, weights=four, minlength=m)
            return squares * (n / (b - a)), fourth / (b - a)

        def integrals(h, x, v):
            bend = None if self.centre is None else _bend(x, v, self.centre)
            two, four = _power_means(h[:, None], x - centre, v, bend)
            return [(h, two)], [(h, four)]

        squares, fourth = self._sum_stretches(ends, b, integrals, SUMMED)
        return squares * (n / (b - a)), fourth.sum(axis=0) / (b - a)

    def _column_pieces(self, ends, first, last, rows):
        """Pieces of the paths of coordinates first … last - 1, whose rows these are, between their events and `ends`.

        Arrays (m,): lengths, positions and velocities at their starts, bends (see `_bend`; None on lines), which
        coordinate (0 is `first`), and between which two of `ends`.
        """
        m, n = last - first, len(ends) - 1
        own = self._which[rows] - first  # in order, and the times of each coordinate are
        times = np.concatenate([np.zeros(m), self._times[rows], np.tile(ends[:-1], m)])
        # Merged with the ends, each row stands behind the earlier rows and those ends that are before it.
        before = np.searchsorted(ends[:-1], self._times[rows], side="left")
        begin = np.searchsorted(own, np.arange(m)) + np.arange(m) * (n + 1)
        count, sort = m + len(rows), np.empty(len(times), np.int64)
        at_row = np.concatenate([begin, np.arange(len(rows)) + own * (n + 1) + 1 + before])
        is_end = np.ones(len(times), bool)
        is_end[at_row] = False
        sort[at_row] = np.arange(count)
        sort[is_end] = np.arange(count, len(times))
        which = np.repeat(np.arange(m), np.diff(np.append(begin, len(times))))
        row = np.maximum.accumulate(np.where(is_end, 0, np.arange(len(sort))))
        since = times[sort]
        until = np.append(since[1:], 0.0)
        until[np.append(begin[1:], len(times)) - 1] = ends[-1]
        keep = np.flatnonzero((since >= ends[0]) & (since < ends[-1]) & (until > since))
        row, which, h = sort[row[keep]], which[keep], np.minimum(until[keep], ends[-1]) - since[keep]
        x = np.concatenate([self._x[first:last], self._xs[rows, 0]])[row]
        v = np.concatenate([self._v[first:last], self._vs[rows, 0]])[row] if self.moving else None
        around = None if self.centre is None else self.centre[first + which]
        x, v = _flow(x, v, since[keep] - times[row], around)
        stretch = np.clip((np.cumsum(is_end) - 1)[keep] - n * which, 0, n - 1)
        return h, x, v, None if around is None else _bend(x, v, around), which, stretch

    def mean(self, a: float | None = None, b: float | None = None) -> np.ndarray:
        """Time average of the position over [a, b], (d,)."""
        a, b = self._range(a, b)
        if self.local:
            return self._x + self._local_integrals(np.array([a, b]), self._x)[0] / (b - a)
        return self.integral(None, a, b) / (b - a)

    def var(self, a: float | None = None, b: float | None = None) -> np.ndarray:
        """Time average of the squared deviation from `mean` over [a, b], (d,)."""
        a, b = self._range(a, b)
        mean, total = self.mean(a, b), 0.0
        if self.local:
            return self._local_integrals(np.array([a, b]), mean, True)[0] / (b - a)
        for h, x, v in self.segments(a, b):
            bend, x = _bend(x, v, self.centre), x - mean
            total = total + h @ (x * x)
            if v is not None:
                along, across, aa, ac, cc = _integrals(h, self.centre)
                total = total + 2.0 * (along @ (x * v)) + aa @ (v * v)
                if self.centre is not None:
                    total = total - 2.0 * (across @ (x * bend) + ac @ (v * bend)) + cc @ (bend * bend)
        return total / (b - a)

    def products(self, centre: ArrayLike, a: float | None = None, b: float | None = None) -> np.ndarray:
        """∫ (x - centre)(x - centre)ᵀ dt over [a, b], (d, d)."""
        size = 8 * self.dim**2
        if size > DENSE_BYTES:
            raise ValueError(f"all products of {self.dim} coordinates would take {size / 1e9:.3g} GB; use `var`.")
        total = np.zeros((self.dim, self.dim))
        for h, x, v in self.segments(a, b):
            bend, x = _bend(x, v, self.centre), x - centre
            total += x.T @ (h[:, None] * x)
            if v is not None:
                along, across, aa, ac, cc = (part[:, None] for part in _integrals(h, self.centre))
                mixed = x.T @ (along * v)
                total += v.T @ (aa * v)
                if self.centre is not None:
                    mixed -= x.T @ (across * bend) + v.T @ (ac * bend)
                    total += bend.T @ (cc * bend)
                total += mixed + mixed.T
        return total

    def cov(self, a: float | None = None, b: float | None = None) -> np.ndarray:
        """Time average of the products of deviations from `mean` over [a, b], (d, d)."""
        a, b = self._range(a, b)
        return self.products(self.mean(a, b), a, b) / (b - a)


# ---------------------------------------------------------------------------------------------------------------
# Between two events x(u) = x + v α(u) - b β(u). On lines α = u, β = 0; on ellipses α = sin u, β = 1 - cos u, with the
# bend b = x - centre, which is 0 for a frozen coordinate.


def _bend(x, v, centre):
    return 0.0 if centre is None else np.where((x == 0.0) & (v == 0.0), 0.0, x - centre)


def _flow(x, v, s, centre):
    """Positions and velocities after the times s; v is None on constant paths, `centre` on all but elliptic paths."""
    if v is None:
        return x, None
    if centre is None:
        return x + v * s, v
    bend, sine, cosine = _bend(x, v, centre), np.sin(0.5 * s), np.cos(0.5 * s)
    return x + 2.0 * sine * (v * cosine - bend * sine), v - 2.0 * sine * (v * sine + bend * cosine)


def _integrals(s, centre):
    """Integrals over [0, s] of α, β, α², αβ and β²."""
    if centre is None:
        nothing = np.zeros_like(s)
        return 0.5 * s * s, nothing, s**3 / 3.0, nothing, nothing
    rise, swing, lag = 2.0 * np.sin(0.5 * s) ** 2, np.sin(s), _angle_excess(s)
    return rise, lag, 0.5 * (lag + swing * rise), 0.5 * rise * rise, 0.5 * (3.0 * lag - swing * rise)


def _power_means(h, z, v, bend):
    """Averages of z² and z⁴ over segments of lengths h that start at z with velocities v; `bend` is None on lines."""
    if v is None:
        square = z * z
        return square, square * square
    if bend is None:
        w = z + v * h
        square, product = z * z + w * w, z * w
        return (square + product) / 3.0, (square * (square + product) - product * product) / 5.0
    # z(u) = c + r cos(u + s), and the averages of powers of the cosine; those of a segment of length 0 are not used.
    c, r, s = z - bend, np.hypot(bend, v), -np.arctan2(v, bend)

    def powers(u):
        sine = np.sin(u)
        two, four = 0.25 * np.sin(2.0 * u), np.sin(4.0 * u) / 32.0
        return np.array([sine, 0.5 * u + two, sine - sine**3 / 3.0, 0.375 * u + two + four])

    one, two, three, four = (powers(s + h) - powers(s)) / np.where(h > 0.0, h, 1.0)
    return (
        c * c + 2.0 * c * r * one + r * r * two,
        c**4 + 4.0 * c**3 * r * one + 6.0 * c * c * r * r * two + 4.0 * c * r**3 * three + r**4 * four,
    )


def _angle_excess(s):
    """s - sin s without cancellation, as `pdmp.flow.angle_excess`."""
    q, series = np.minimum(s * s, 1.0), 1.0
    for k in (272.0, 210.0, 156.0, 110.0, 72.0, 42.0, 20.0):
        series = 1.0 - series * q / k
    return np.where(np.abs(s) < 1.0, s * q / 6.0 * series, s - np.sin(s))


def integrate_function(f, h, x, v, centre=None):
    """Σ over segments of ∫ f, for segments of lengths h (m,) from x (m, d) with velocities v (m, d) or None."""
    return segment_integrals(f, h, x, v, centre).sum(axis=-1)


def segment_integrals(f, h, x, v, centre=None):
    """∫ f over each segment: an array (..., m)."""
    if v is None:
        return apply(f, x.T) * h
    if centre is not None:
        return _integrate_arcs(f, h, x, v, centre)

    def there(u, rows):
        return apply(f, (x[rows] + (u * h[rows])[:, None] * v[rows]).T)

    return h * _mean_of(there, _uniform(h, x[:, 0]), NODES, WEIGHTS)


def _mean_of(f, u, nodes, weights):
    """The mean over (0, 1) of functions ``f(place, segments)``, (..., m), without a bias whatever they are.

    That of the polynomial through the nodes, to which is added by what f differs from it in one random place `u` (m,).
    Where f jumps that is right on average, but noisy: segments on which its values at the nodes are `ROUGH` are cut
    into `PARTS`. Whether they are must not depend on the random places, or the mean would not be right on average.
    """
    values = np.array([f(place, slice(None)) for place in nodes])
    weight, fewer = _barycentric(nodes), _barycentric(nodes[:-1])
    with np.errstate(invalid="ignore"):
        largest = np.abs(np.where(np.isfinite(values).all(axis=0), values, 0.0)).max(axis=(0, -1))[..., None]
        # Differences of all nodes, and of all but the last: one of them is 0 where f is even about the middle.
        found = np.abs(np.tensordot(weight / np.abs(weight).max(), values, 1))
        found += 0.2 * np.abs(np.tensordot(fewer / np.abs(fewer).max(), values[:-1], 1))
        jumps = found > ROUGH * largest
    rough = np.flatnonzero(jumps.any(axis=tuple(range(jumps.ndim - 1))))
    mean = _part(f, slice(None), values, u, nodes, weights, weight, largest)
    if len(rough) == 0:
        return mean
    pieces = min(-(-PARTS * len(rough) // len(u)), len(rough))  # about as many places at once as above
    for rows in np.array_split(rough, pieces):
        k, of = np.tile(np.arange(PARTS), len(rows)), np.repeat(rows, PARTS)

        def there(place, segments, k=k):
            return f((k + place) / PARTS, segments)

        values = np.array([there(place, of) for place in nodes])
        parts = _part(there, of, values, (u[of] + k * GOLDEN) % 1.0, nodes, weights, weight, largest)
        mean[..., rows] = parts.reshape(*parts.shape[:-1], len(rows), PARTS).mean(axis=-1)
    return mean


def _barycentric(nodes):
    return 1.0 / np.prod(nodes[:, None] - nodes + np.eye(len(nodes)), axis=1)


def _part(f, segments, values, u, nodes, weights, weight, largest):
    """The mean by values at the nodes, whose barycentric weights are `weight`, and by one in a random place.

    Nothing is added where it is less than `SMOOTH` of the largest value of all segments, as of smooth functions.
    """
    away = u - nodes[:, None]
    polynomial = np.prod(away, axis=0) / away * weight[:, None]
    with np.errstate(invalid="ignore"):
        apart = f(u, segments) - np.einsum("km,k...m->...m", polynomial, values)
        little = (np.abs(apart) <= SMOOTH * largest) | ~np.all(np.isfinite(values), axis=0)
    return np.tensordot(weights, values, 1) + np.where(little, 0.0, apart)


def _uniform(a, b):
    """Numbers in (0, 1) that two numbers of each segment determine, (m,): they are as random.

    In single precision, so that another rounding of a path has the same.
    """
    with np.errstate(over="ignore"):
        one, other = (np.asarray(values).astype(np.float32).view(np.uint32).astype(np.uint64) for values in (a, b))
    bits = ((one << np.uint64(32)) + other) * np.uint64(0x9E3779B97F4A7C15)  # mixed as by SplitMix64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return ((bits >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def _integrate_arcs(f, h, x, v, centre):
    """∫ f over each arc of an ellipse: a full turn is integrated once, and multiplied by the number of turns."""
    turns = np.floor(h / math.tau)
    total = np.zeros((*np.shape(f(x[0].copy())), len(h)))
    for lengths, times in ((h - turns * math.tau, np.ones(len(h))), (np.full(len(h), math.tau), turns)):
        parts = np.where(times * lengths > 0.0, np.ceil(lengths / ARC), 0.0)
        for k in range(int(parts.max(initial=0.0))):
            rows = np.flatnonzero(parts > k)
            width = lengths[rows] / parts[rows]

            def there(u, some, k=k, rows=rows, width=width):
                turn = ((k + u) * width[some])[:, None]
                return apply(f, _flow(x[rows[some]], v[rows[some]], turn, centre)[0].T)

            place = _uniform(width + k, x[rows, 0])
            total[..., rows] += times[rows] * width * _mean_of(there, place, ARC_NODES, ARC_WEIGHTS)
    return total
