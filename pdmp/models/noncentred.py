r"""Coordinates in which what has a scale is nearly standard normal whatever the scale is, of a sum of terms.

In a random walk, a hierarchy or a horseshoe some terms are quadratic in functionals η of the coordinates x, and their
curvature is multiplied by e^(-c·t), t being coordinates that are scales: t + ½ (η e^(-t))² is one. So a path is in a
funnel, in which the width of thousands of coordinates depends on one. With the precision that all terms give x on
average, and the linear part of their potential,

    H(t) = Λ + Σₛ e^(-cₛ·(t - t₀)) Qₛ,     b(t) = β + Σₛ e^(-cₛ·(t - t₀)) bₛ,     H(t) = R Rᵀ,  R lower triangular,

Q and b being those of the terms that show a scale, and Λ and β means over draws of those of all other terms, paths move
in (t, z) with

    x = R⁻ᵀ (z + R⁻¹ b(t)),     -log |dx/dz| = Σ log Rₖₖ.

If z is standard normal, x is N(H⁻¹b, H⁻¹) given t: so z is standard normal, whatever t is, in as much as the other
terms are those of a normal law. Where data say nothing of x it is non-centred, where they say all it is centred, and
each x has its own share, at every t. The law of x is exact for all Λ, Q, β, b; they decide how hard it is to sample.

R is sparse, in an order of the coordinates that is found once; R, x and the derivatives by t cost a few operations for
each entry. Derivatives by t go back through the factorisation, as any number of scales then costs as much as one.

References
----------
Papaspiliopoulos, Roberts & Sköld (2007), A general framework for the parametrization of hierarchical models, Statist.
Sci. 22, section 4. Gorinova, Moore & Hoffman (2020), Automatic reparameterisation of probabilistic programs, ICML.
Murray (2016), Differentiation of the Cholesky decomposition, arXiv:1602.07527, section 3 (derivatives go back entry by
entry).
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pdmp.expressions.tape import CURVATURE, LANES
from pdmp.models.base import Model
from pdmp.models.moved_coordinates import MovedCoordinates
from pdmp.models.numerical import prior_gradient
from pdmp.models.priors import Flat
from pdmp.models.sums_of_terms import COLUMN_STEP, COLUMNS, COUNT, FIRST, VALUE_STEP, VALUES, SumOfTerms
from pdmp.native.classes import compiled, entry
from pdmp.native.definite import factorised

MOST_SCALES = 2  #: of one term, which multiply each other
OPERATIONS = 100  #: of a factorisation, for a row of the model, up to which it costs little beside a gradient
SAME = 1e-8  #: relative difference up to which curvatures are the same
SHIFT = 0.7  #: of a scale, over which its effect on a curvature is looked at
SINGULAR = 1e-8  #: share of the diagonal that is added to tell a precision from an indefinite matrix


class Scaled(NamedTuple):
    """Rows whose curvature is a multiple of e^(-c·t)."""

    rows: np.ndarray  #: (n,)
    scales: tuple[int, ...]  #: which coordinates t are
    powers: tuple[float, ...]  #: c


def scaled_rows(model: Model) -> list[Scaled]:
    """The rows of a model whose expressions show a scale, those of one scale together."""
    if not isinstance(model, SumOfTerms):
        return []
    found: dict[tuple, list] = {}
    for k in range(len(model.kinds_of_rows)):
        shown = _scales_of(model, k)
        if shown is None:
            continue
        functionals, rates = shown
        layout, n = model.layout[k], model.rows_of(k)
        columns, values = [], []
        for f in functionals:
            begin = model._entries(k, f)[0]
            rows = np.arange(n)
            columns.append(model.columns[layout[COLUMNS] + begin + rows * layout[COLUMN_STEP]])
            values.append(model.values[layout[VALUES] + begin + rows * layout[VALUE_STEP]].astype(float))
        keys = np.column_stack([*columns, *(c * v for c, v in zip(rates, values, strict=True))])
        if np.all(keys == keys[0]):
            keys = keys[:1]
        unique, place = np.unique(keys, axis=0, return_inverse=True)
        place = np.broadcast_to(place.ravel(), n)
        for q, key in enumerate(unique):
            scales, powers = tuple(key[: len(rates)].astype(int).tolist()), tuple(key[len(rates) :].tolist())
            if len(set(scales)) == len(scales) and all(powers):
                found.setdefault((scales, powers), []).append(layout[FIRST] + np.flatnonzero(place == q))
    return [Scaled(np.concatenate(rows), *key) for key, rows in found.items()]


def _scales_of(model, k):
    """Which functionals of kind k are scales, and at which rates c they act; None if the expression shows none."""
    m = int(model.layout[k, COUNT])
    n = min(model.rows_of(k), LANES)
    rng, second = np.random.default_rng(0), np.empty((m * (m + 1) // 2, n))
    eta, other = 0.5 * rng.standard_normal((2, m, LANES))
    pairs = list(itertools.combinations_with_replacement(range(m), 2))
    narrow = [f for f in range(m) if np.diff(model._entries(k, f))[0] == 1]
    rows = np.linspace(0, model.rows_of(k) - 1, n).astype(int) + model.layout[k, FIRST]

    def curvatures(at, within):
        _write_second(model.native, k, rows, at.copy(), second, *model.scratch(LANES)[2:])
        return second[within].copy()

    for size in range(1, min(m - 1, MOST_SCALES) + 1):
        for chosen in itertools.combinations(narrow, size):
            within = [p for p, pair in enumerate(pairs) if not set(pair) & set(chosen)]
            moved = other.copy()
            moved[list(chosen)] = eta[list(chosen)]
            first = curvatures(eta, within)
            largest = np.abs(first).max(initial=0.0)
            if not 0.0 < largest < math.inf or not _same(curvatures(moved, within), first, largest):
                continue
            rates = []
            for f in chosen:
                shifted = eta.copy()
                shifted[f] += SHIFT
                once = curvatures(shifted, within)
                shifted[f] += SHIFT
                twice = curvatures(shifted, within)
                place = np.unravel_index(np.argmax(np.abs(first)), first.shape)
                ratio = once[place] / first[place]
                if not (ratio > 0.0 and abs(ratio - 1.0) > SAME) or not (
                    _same(once, ratio * first, largest) and _same(twice, ratio**2 * first, largest)
                ):
                    break
                rates.append(-math.log(ratio) / SHIFT)
            if len(rates) == size and _is_convex(first, m - size):
                return chosen, tuple(float(f"{c:.9g}") for c in rates)
    return None


def _same(a, b, size):
    return bool(np.all(np.abs(a - b) <= SAME * (size + np.abs(b))))


def _is_convex(second, m):
    """Whether the matrices (m, m) with these upper triangles, (…, rows), have no negative eigenvalue."""
    whole = np.zeros((second.shape[1], m, m))
    for p, (f, g) in enumerate(itertools.combinations_with_replacement(range(m), 2)):
        whole[:, f, g] = whole[:, g, f] = second[p]
    return bool(np.linalg.eigvalsh(whole).min() >= -SAME * np.abs(second).max())


def noncentred(model: SumOfTerms, parts: list[Scaled], x: np.ndarray) -> NonCentred | None:
    """Coordinates for a model with such rows, from points x (n, d) about where its mass is.

    None where factorisations would cost more than gradients.
    """
    scales = np.unique([t for part in parts for t in part.scales])
    rest = np.setdiff1d(np.arange(model.dim), scales)
    mean, others = x.mean(axis=0), np.setdiff1d(np.arange(model.n_data), np.concatenate([p.rows for p in parts]))
    own, precisions, shifts = model.some_rows(others) if len(others) else None, [], []
    flat = np.full_like(model.kinds, Flat().coded()[0])
    for point in x:
        if own is None:
            hessian, gradient = sparse.diags_array(model._prior_curvatures(point)), prior_gradient(model, point)
        else:
            hessian, gradient = own.sparse_hessian(point), own.gradient(point)
        precisions.append(sparse.csc_array(hessian)[rest][:, rest])
        shifts.append(precisions[-1] @ point[rest] - gradient[rest])
    base, shift = sum(precisions[1:], precisions[0]) / len(x), np.mean(shifts, axis=0)
    curves, slopes = [], []
    for part in parts:
        rows = model.some_rows(part.rows)
        rows.kinds = flat
        curves.append(sparse.csc_array(rows.sparse_hessian(mean))[rest][:, rest])
        slopes.append(curves[-1] @ mean[rest] - rows.gradient(mean)[rest])
        if not _has_root(curves[-1]):  # some rows were not among those that showed the scale
            return None
    curves_all = sum(curves[1:], curves[0])
    diagonal = np.abs((base + curves_all).diagonal())
    if not (np.all(np.isfinite(diagonal)) and np.all(np.isfinite(shift))):
        return None
    if not _has_root(base, diagonal):
        # Not that of a normal law: then H(t) might be none where scales are large.
        kept = np.maximum(base.diagonal(), 0.0)
        shift = np.mean([s + kept * p[rest] - h @ p[rest] for s, h, p in zip(shifts, precisions, x, strict=True)], 0)
        base = sparse.diags_array(kept, format="csc")
    whole = base + curves_all
    if factorised(whole) is None:
        return None
    pattern = _pattern(whole)
    _, start, columns = pattern
    if int(np.diff(start)[columns].sum()) > OPERATIONS * model.n_data:
        return None
    return NonCentred(model, rest, pattern, (base, shift), list(zip(parts, curves, slopes, strict=True)), mean)


def _has_root(matrix, diagonal=None):
    """Whether a matrix has no negative eigenvalue, but for a small share of this diagonal, or of its own."""
    if diagonal is None:
        inside = np.flatnonzero(np.diff(matrix.indptr))
        matrix = matrix[inside][:, inside]
        diagonal = np.abs(matrix.diagonal())
    return not len(diagonal) or factorised(matrix + sparse.diags_array(SINGULAR * diagonal + 1e-300)) is not None


def _pattern(matrix):
    """Order of the coordinates, and starts and columns of R in compressed rows, for all values of the entries."""
    whole = sparse.csc_array(matrix)
    off = abs(sparse.triu(whole, 1) + sparse.tril(whole, -1))
    off.data[:] = -1.0  # all fill-in is then negative, and none cancels
    order, start, columns, _ = factorised(off + sparse.diags_array(1.0 - np.asarray(off.sum(axis=0)).ravel()))
    return order, start, columns


class NonCentred(MovedCoordinates):
    """A model in the coordinates (t, z), each in the place of its x.

    It is made of the coordinates `rest` that are not scales, with their order, and starts and columns of R in
    compressed rows; of Λ and β; for each s of a `Scaled`, Qₛ and bₛ; and of `centre` (d,), with t₀ in the places of
    the scales.
    """

    rest: np.ndarray  #: (r,) which coordinate row k of R is that of
    scales: np.ndarray  #: (parts, 2) which coordinates t are; where a part has one scale the second has the power 0
    powers: np.ndarray  #: (parts, 2) c
    middles: np.ndarray  #: (parts, 2) t₀
    start: np.ndarray  #: (r + 1,) of rows of R
    columns: np.ndarray  #: ascending, the diagonal last
    base: np.ndarray  #: Λ, in the places of R
    base_shift: np.ndarray  #: (r,) β
    part_start: np.ndarray  #: (parts + 1,)
    part_places: np.ndarray  #: places of the entries of Qₛ
    part_values: np.ndarray
    shift_start: np.ndarray  #: (parts + 1,)
    shift_places: np.ndarray  #: of the entries of bₛ
    shift_values: np.ndarray

    def __init__(self, model, rest, pattern, base, parts, centre):
        order, self.start, self.columns = pattern
        rank = np.argsort(order)
        self.rest, r = rest[order], len(rest)
        rows = np.repeat(np.arange(r), np.diff(self.start))
        where = sparse.csr_array((np.arange(1.0, len(rows) + 1.0), (rows, self.columns)), shape=(r, r))

        def entries(matrix):
            """Places in R, and values, of the lower triangle of a symmetric matrix in this order."""
            found = sparse.coo_array(matrix)
            i, j = rank[found.coords[0]], rank[found.coords[1]]
            kept = (i >= j) & (found.data != 0.0)
            if not kept.any():
                return np.zeros(0, np.int64), np.zeros(0)
            return np.asarray(where[i[kept], j[kept]]).ravel().astype(np.int64) - 1, found.data[kept]

        places, values = entries(base[0])
        self.base = np.bincount(places, values, minlength=len(rows))
        self.base_shift = np.ascontiguousarray(base[1][order])
        self.scales, self.powers = np.zeros((len(parts), MOST_SCALES), np.int64), np.zeros((len(parts), MOST_SCALES))
        of_parts, of_shifts = [], []
        for s, (part, curve, slope) in enumerate(parts):
            self.scales[s] = part.scales[0]
            self.scales[s, : len(part.scales)], self.powers[s, : len(part.scales)] = part.scales, part.powers
            of_parts.append(entries(curve))
            slope = slope[order]
            of_shifts.append((np.flatnonzero(slope), slope[slope != 0.0]))
        self.middles = centre[self.scales]
        self.part_start, self.part_places, self.part_values = _joined(of_parts)
        self.shift_start, self.shift_places, self.shift_values = _joined(of_shifts)
        super().__init__(model)

    # -- compiled: there and back -----------------------------------------------------------------------------------

    @compiled(inline=False)
    def weight(self, x, s):
        """e^(-cₛ·(t - t₀))."""
        total = 0.0
        for q in range(self.scales.shape[1]):
            total += self.powers[s, q] * (x[self.scales[s, q]] - self.middles[s, q])
        return math.exp(-total) if total > -700.0 else math.inf

    @compiled(inline=False)
    def factorise(self, x, root, shift, work):
        """Write R at the scales of x, and R⁻¹b into `shift`; whether there is one, up to rounding. `work` (r,) is 0."""
        start, columns = self.start, self.columns
        for e in range(root.shape[0]):
            root[e] = self.base[e]
        for k in range(shift.shape[0]):
            shift[k] = self.base_shift[k]
        for s in range(self.scales.shape[0]):
            weight = self.weight(x, s)
            for e in range(self.part_start[s], self.part_start[s + 1]):
                root[self.part_places[e]] += weight * self.part_values[e]
            for e in range(self.shift_start[s], self.shift_start[s + 1]):
                shift[self.shift_places[e]] += weight * self.shift_values[e]
        for k in range(shift.shape[0]):
            last = start[k + 1] - 1
            pivot = root[last]
            for e in range(start[k], last):
                j, total = columns[e], root[e]
                for i in range(start[j], start[j + 1] - 1):
                    total -= root[i] * work[columns[i]]
                root[e] = total / root[start[j + 1] - 1]
                work[j] = root[e]
                pivot -= root[e] * root[e]
                shift[k] -= root[e] * shift[j]
            for e in range(start[k], last):
                work[columns[e]] = 0.0
            if not 0.0 < pivot < math.inf:
                return False
            root[last] = math.sqrt(pivot)
            shift[k] /= root[last]
        return True

    @compiled(inline=False, allocates=True)
    def move(self, z, x):
        """Keeps R and R⁻¹b."""
        r, volume = self.rest.shape[0], math.inf
        root, shift, solved = np.empty(self.columns.shape[0]), np.empty(r), np.zeros(r)
        found = self.factorise(z, root, shift, solved)
        for j in range(self.dim):
            x[j] = z[j]
        if found:
            volume = 0.0
            for k in range(r):
                volume += math.log(root[self.start[k + 1] - 1])
                solved[k] = z[self.rest[k]] + shift[k]
            self.solve_back(root, solved)
            for k in range(r):
                x[self.rest[k]] = solved[k]
        return volume, (root, shift)

    @compiled(inline=False)
    def solve_back(self, root, y):
        """y ← R⁻ᵀy."""
        for k in range(y.shape[0] - 1, -1, -1):
            last = self.start[k + 1] - 1
            y[k] /= root[last]
            for e in range(self.start[k], last):
                y[self.columns[e]] -= root[e] * y[k]

    @compiled(inline=False, allocates=True)
    def natural(self, z, x):
        self.move(z, x)

    @compiled(inline=False, allocates=True)
    def standardise(self, x, z):
        r = self.rest.shape[0]
        root, shift = np.empty(self.columns.shape[0]), np.empty(r)
        found = self.factorise(x, root, shift, np.zeros(r))
        for j in range(self.dim):
            z[j] = x[j]
        for k in range(r):
            z[self.rest[k]] = -shift[k] if found else math.nan
        if found:
            for k in range(r):
                for e in range(self.start[k], self.start[k + 1]):
                    z[self.rest[self.columns[e]]] += root[e] * x[self.rest[k]]

    @compiled(inline=False, allocates=True)
    def pull_back(self, z, x, kept, slope, out):
        root, shift = kept
        start, columns, rest, r = self.start, self.columns, self.rest, self.rest.shape[0]
        own, by_shift = np.empty(r), np.empty(r)  # R⁻¹ slope, by z; R⁻ᵀ of that, by b
        place, by_root = np.full(r, -1), np.empty(root.shape[0])  # where the entries of a row are
        for j in range(self.dim):
            out[j] += slope[j]
        for k in range(r):
            out[rest[k]] -= slope[rest[k]]
            own[k], last = slope[rest[k]], start[k + 1] - 1
            for e in range(start[k], last):
                own[k] -= root[e] * own[columns[e]]
            own[k] /= root[last]
            by_shift[k] = own[k]
            out[rest[k]] += own[k]
        self.solve_back(root, by_shift)
        # By R: of Rᵀx = z + y and of Ry = b, in as much as these solve them; and of log det R.
        for k in range(r):
            for e in range(start[k], start[k + 1]):
                by_root[e] = -x[rest[k]] * own[columns[e]] - by_shift[k] * shift[columns[e]]
            by_root[start[k + 1] - 1] += 1.0 / root[start[k + 1] - 1]
        # Back through the factorisation: `by_root` becomes the derivative by H.
        for k in range(r - 1, -1, -1):
            last = start[k + 1] - 1
            by_root[last] *= 0.5 / root[last]
            for e in range(start[k], last):
                place[columns[e]] = e
                by_root[e] -= 2.0 * by_root[last] * root[e]
            for e in range(last - 1, start[k] - 1, -1):
                j = columns[e]
                end = start[j + 1] - 1
                place[j] = -1
                by_root[e] /= root[end]
                by_root[end] -= by_root[e] * root[e]
                for i in range(start[j], end):
                    earlier = place[columns[i]]
                    if earlier >= 0:
                        by_root[i] -= by_root[e] * root[earlier]
                        by_root[earlier] -= by_root[e] * root[i]
        for s in range(self.scales.shape[0]):
            weight, total = self.weight(z, s), 0.0
            for e in range(self.part_start[s], self.part_start[s + 1]):
                total += by_root[self.part_places[e]] * self.part_values[e]
            for e in range(self.shift_start[s], self.shift_start[s + 1]):
                total += by_shift[self.shift_places[e]] * self.shift_values[e]
            for q in range(self.scales.shape[1]):
                if self.powers[s, q] != 0.0:
                    out[self.scales[s, q]] -= self.powers[s, q] * weight * total


@entry
def _write_second(model, k, rows, eta, second, data, room):
    """Write the second derivatives by the functionals `eta` of rows of one kind, (…, rows)."""
    m = model.layout[k, COUNT]
    for lane in range(rows.shape[0]):
        model.read(k, rows[lane], lane, data)
    place = model.run(k, CURVATURE, rows.shape[0], data, eta, room)
    for p in range(second.shape[0]):
        for lane in range(rows.shape[0]):
            second[p, lane] = room[model.results[place + m + p], lane]


def _joined(parts):
    """Where each begins, (n + 1,), and all places and values one after the other."""
    starts = np.cumsum([0, *(len(places) for places, _ in parts)])
    places, values = (np.concatenate([part[q] for part in parts]) for q in range(2))
    return starts.astype(np.int64), places.astype(np.int64), values
