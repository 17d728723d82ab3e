"""Logistic regression on features in memory: signed features in rows of whole cache lines, or in tiles of 64 data."""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.regressions.design import pieces, products
from pdmp.models.regressions.glm import GaussianPrior
from pdmp.models.regressions.logistic_rays import (
    AT,
    ONE,
    PRIOR,
    PRIOR_SLOPE,
    QUARTS,
    RAY,
    SQUARES,
    THREE,
    TWO,
    add_ray_gradient,
    ray_advance,
    ray_derivatives,
    ray_project,
    ray_sums,
)
from pdmp.models.regressions.logistic_rows import (
    add_batch_difference,
    add_batch_gradient,
    add_batch_projection,
    add_batch_squares,
    add_rows_gradient,
    add_rows_partial_curvatures,
    add_tiles_gradient,
    add_weighted_difference,
    copy_rows,
    rows_curvature,
    rows_potential,
)
from pdmp.models.regressions.logistic_terms import expit_of_minus, softplus_of_minus
from pdmp.native.classes import compiled, entry, positive_part
from pdmp.native.prefetch import LINE, prefetch
from pdmp.native.threads import added, chunks, each
from pdmp.native.vectors import BLOCK, aligned

#: A batch is copied if its copy has at most so many numbers.
LARGEST_COPY = 2**20
PIECE_ROWS = 100_000  #: data at a time, of which norms are computed
PIECE = 2**15  #: numbers at a time, of which products are: they stay in the cache


class SignedLogistic(GaussianPrior):
    """How `LogisticRegression` reads features in memory: one datum a row, its features times its label ±1.

    No label has to be fetched. Each row is filled up with zeros to whole cache lines.

    Parameters
    ----------
    X : ndarray, shape (N, d)
        The features, in the order given.
    data : ndarray
        What compiled code reads, see `signed_rows`.
    n_data : int
    precision : ndarray, shape (d,)
        Of the prior.
    gram : ndarray, optional
        XᵀX of the features as they are stored, or empty; computed when omitted, where it is smaller than the data and
        quickly computed.
    """

    data: np.ndarray
    gram: np.ndarray

    def __init__(
        self, X: np.ndarray, data: np.ndarray, n_data: int, precision: np.ndarray, gram: np.ndarray | None = None
    ) -> None:
        super().__init__(X, n_data, precision)
        self.data = data
        if gram is None:
            gram = self._weighted_gram(None) if self.dim <= min(128, self.n_data) else np.zeros((0, 0))
        self.gram = gram

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def feature(self, i, j):
        """Signed feature j of datum i."""
        return self.data[i, j]

    @compiled
    def margin(self, x, i):
        """sᵢ aᵢ·x."""
        z = 0.0
        for j in range(self.dim):
            z += self.feature(i, j) * x[j]
        return z

    @compiled
    def term_potential(self, x, i):
        return softplus_of_minus(self.margin(x, i))

    @compiled
    def total_potential(self, x):
        return self.prior_potential(x) + rows_potential(self.data, x, 0, self.n_data)

    @compiled
    def block_potential(self, x, first, last):
        return rows_potential(self.data, x, first, last)

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def term_partial(self, x, i, j, scratch):
        return -expit_of_minus(self.margin(x, i)) * self.feature(i, j)

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        z, w = 0.0, 0.0
        for k in range(self.dim):
            a = self.feature(i, k)
            z += a * x[k]
            w += a * y[k]
        return (expit_of_minus(w) - expit_of_minus(z)) * self.feature(i, j)

    @compiled
    def term_gradient_bounds(self, i, out):
        """|Xᵢⱼ|."""
        for j in range(self.dim):
            out[j] = abs(self.feature(i, j))

    @compiled
    def term_lipschitz(self, i, scale, out):
        """¼ |Xᵢⱼ| |scale ∘ Xᵢ|."""
        total = 0.0
        for j in range(self.dim):
            a = scale[j] * self.feature(i, j)
            total += a * a
        total = 0.25 * math.sqrt(total)
        for j in range(self.dim):
            out[j] = total * abs(self.feature(i, j))

    @compiled
    def add_term_gradient(self, x, i, out):
        weight = expit_of_minus(self.margin(x, i))
        for j in range(self.dim):
            out[j] -= weight * self.feature(i, j)

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is kⱼ w(z), w(z) = -1 / (1 + eᶻ), z = sᵢaᵢ·x: w is convex below 0 and concave above."""
        z, along = self.margin(x, i), self.margin(v, i)
        w = -expit_of_minus(z)
        steep = -w * (1.0 + w)
        # The convex part c goes on as a straight line above 0; g is the rest.
        c, dc, g, dg = w, steep, 0.0, 0.0
        if z > 0.0:
            c, dc, g, dg = 0.25 * z - 0.5, 0.25, w - (0.25 * z - 0.5), steep - 0.25
        for j in range(out.shape[0]):
            k = v[j] * self.feature(i, j) if out.shape[0] > 1 else along
            out[j, 0] += k * c if k > 0.0 else k * g
            out[j, 1] += k * g if k > 0.0 else k * c
            out[j, 2] += k * along * (dg if k > 0.0 else dc)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        add_rows_gradient(self.data, x, first, last, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        add_batch_gradient(self.data, x, rows, n, out)

    @compiled
    def copy_batch(self, rows, n, copied):
        copy_rows(self.data, rows, n, copied)

    @compiled
    def add_copied_gradient(self, x, copied, n, out):
        add_tiles_gradient(copied, x, 0, n, out)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        add_batch_difference(self.data, x, y, rows, n, out)

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        add_weighted_difference(self.data, x, y, rows, weights, n, out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return add_batch_projection(self.data, x, v, rows, n, out)

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        add_batch_squares(self.data, x, rows, n, out, squares)

    @compiled
    def curvature_bound(self, v):
        """A bound on v·H(x)v for every x: ¼ |Xv|² + Σⱼ vⱼ² / prior_scaleⱼ²."""
        total, prior = 0.0, 0.0
        for j in range(self.dim):
            prior += self.precision[j] * v[j] * v[j]
        if self.gram.shape[0] == 0:
            return 0.25 * rows_curvature(self.data, v) + prior
        for i in range(self.dim):
            for j in range(self.dim):
                total += v[i] * self.gram[i, j] * v[j]
        return 0.25 * max(total, 0.0) + prior

    @compiled
    def partial_curvature_bounds(self, v, out):
        """Bounds on vᵢ Σⱼ Hᵢⱼ(x) vⱼ for every x: ¼ Σₙ max(0, vᵢ Xₙᵢ (Xv)ₙ) + vᵢ² / prior_scaleᵢ²."""
        for j in range(self.dim):
            out[j] = 0.0
        add_rows_partial_curvatures(self.data, v, out)
        for j in range(self.dim):
            out[j] = 0.25 * out[j] + self.precision[j] * v[j] * v[j]

    @compiled
    def factor_rate_bound(self, x, v, f):
        """max(0, -sᵢ aᵢ·v), as the expit is at most 1; the prior's derivative is affine."""
        if f < self.n_data:
            return positive_part(-self.margin(v, f)), 0.0
        j = f - self.n_data
        return self.precision[j] * x[j] * v[j], self.precision[j] * v[j] * v[j]

    @compiled
    def signed_term_bound(self, i, j, sign):
        """Bound on sign · ∂ⱼUᵢ: ∂ⱼUᵢ is the signed feature times a number in [-1, 0]."""
        return positive_part(-sign * self.feature(i, j))

    # -- Python ---------------------------------------------------------------------------------------------------

    def largest_term_gradient(self) -> float | None:
        """The largest norm of a row of `X`: the gradient of a term is its row times a number in (-1, 1)."""
        pieces = np.array_split(self.X, self.n_data // PIECE_ROWS + 1)
        return math.sqrt(max(float(np.einsum("ij,ij->i", a, a).max()) for a in pieces))

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.data.ctypes.data % LINE:  # pickles do not keep it
            data = aligned(self.data.shape, self.data.dtype)
            data[...] = self.data
            self.data = data

    def rearranged(self, rows: ArrayLike) -> TiledLogistic:
        """The same posterior with its data in the order `rows`, in tiles of 64 data, feature by feature.

        A block of consecutive data is then read in long vectors. `X` of the copy stays in the order given.
        """
        rows = np.asarray(rows)
        tiles = aligned((-(-len(rows) // BLOCK), self.dim, BLOCK), self.data.dtype)
        for tile, start in enumerate(range(0, len(rows), BLOCK)):
            part = self.data[rows[start : start + BLOCK], : self.dim]
            tiles[tile, :, : len(part)] = part.T
        return TiledLogistic(self.X, tiles, len(rows), self.precision, self.gram)

    def some_rows(self, rows: np.ndarray) -> SignedLogistic:
        """The same of some of the data."""
        other = copy.copy(self)
        other.X, other.n_data = self.X[rows], len(rows)
        other.data = aligned((len(rows), self.data.shape[1]), self.data.dtype)
        np.take(self.data, rows, axis=0, out=other.data)
        return other

    def batch_room(self, size: int) -> np.ndarray:
        tiles = -(-size // BLOCK) if size * self.dim <= LARGEST_COPY else 0
        return np.zeros((tiles, self.dim, BLOCK), self.data.dtype)

    def _weighted_gram(self, x):
        """Xᵀ W X with W = 1, or diag(p (1 - p)) at `x`, in pieces; X as it is stored."""
        if len(self.row_chunks()) > 1:
            if x is not None:
                return self.data_sums(x)[1]
            return sum(each(lambda first, stop: products(self.data[first:stop], d=self.dim), self.row_chunks()))
        total = np.zeros((self.dim, self.dim))
        for rows in pieces(self.X, PIECE):
            part = self.X[rows].astype(self.data.dtype, copy=False).astype(float, copy=False)
            if x is not None:
                small = np.exp(-np.abs(part @ x))
                part = part * (np.sqrt(small) / (1.0 + small))[:, None]  # p (1 - p), the same for -z
            total += part.T @ part
        return total

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (d,) and Hessian (d, d) of the sum of all terms, in one pass over the rows."""
        data, native = self.data, self.native

        def part(first, stop):
            gradient, weights = np.zeros(self.dim), np.empty(stop - first)
            _gradient_and_weights(native, x, first, stop, gradient, weights)
            return gradient, products(data[first:stop], weights, self.dim)

        return added(each(part, self.row_chunks()))

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at `x`, shape (d, d): Xᵀ diag(p (1 - p)) X + diag(prior_scale⁻²)."""
        return self._weighted_gram(self.check(x)) + np.diag(self.precision)

    def term_gradient_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """|rootᵀ Xᵢ|."""
        return np.linalg.norm(self.X[first:last] @ root, axis=1)

    def term_lipschitz_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """¼ |rootᵀ Xᵢ|²."""
        return 0.25 * self.term_gradient_norms(root, first, last) ** 2

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """diag(prior_scale⁻²) and that plus ¼ XᵀX, (d, d) each: p (1 - p) lies between 0 and ¼."""
        prior = np.diag(self.precision)
        gram = self.gram if self.gram.size else self._weighted_gram(None)
        return prior, prior + 0.25 * gram


@entry
def _gradient_and_weights(model, x, first, stop, gradient, out):
    """Add the gradient of the terms first … stop - 1 to `gradient`; out[i - first] = p (1 - p) of each."""
    model.add_block_gradient(x, first, stop, gradient)
    for i in range(first, stop):
        p = expit_of_minus(model.margin(x, i))
        out[i - first] = p * (1.0 - p)


class TiledLogistic(SignedLogistic):
    """What `SignedLogistic.rearranged` makes: data[t, j, k] is signed feature j of datum 64 t + k."""

    def row_width(self) -> None:
        return None  # `X` is in another order than `data`

    @compiled
    def feature(self, i, j):
        return self.data[i // BLOCK, j, i % BLOCK]

    @compiled
    def total_potential(self, x):
        total = self.prior_potential(x)
        for i in range(self.n_data):
            total += self.term_potential(x, i)
        return total

    @compiled
    def add_block_gradient(self, x, first, last, out):
        add_tiles_gradient(self.data, x, first, last, out)

    @compiled
    def curvature_bound(self, v):
        total = 0.0
        for i in range(self.n_data):
            along = self.margin(v, i)
            total += along * along
        return 0.25 * total + self.prior_curvature_bound(v)

    @compiled
    def partial_curvature_bounds(self, v, out):
        for j in range(self.dim):
            out[j] = self.precision[j] * v[j] * v[j]
        for i in range(self.n_data):
            along = self.margin(v, i)
            for j in range(self.dim):
                out[j] += 0.25 * positive_part(v[j] * self.feature(i, j) * along)

    @compiled
    def ray_begin(self, x, v, ray):
        ray_project(self.data, x, RAY, ray)
        ray[AT] = math.nan
        self.ray_turn(x, 0.0, v, ray)

    @compiled
    def ray_turn(self, x, s, v, ray):
        room = self.data.shape[0] * BLOCK
        if s != 0.0:
            ray_advance(room, s, ray)
        ray_project(self.data, v, RAY + room, ray)
        ray_sums(room, ray)
        ray[AT] = 0.0 if ray[AT] == s else math.nan
        ray[PRIOR], ray[PRIOR_SLOPE] = 0.0, 0.0
        for j in range(self.dim):
            ray[PRIOR] += self.precision[j] * x[j] * v[j]
            ray[PRIOR_SLOPE] += self.precision[j] * v[j] * v[j]

    @compiled
    def ray_derivatives(self, s, ray):
        if ray[AT] != s:
            ray_derivatives(self.data.shape[0] * BLOCK, s, ray)
        return ray[ONE] + ray[PRIOR] + s * ray[PRIOR_SLOPE], ray[TWO] + ray[PRIOR_SLOPE]

    @compiled
    def ray_bound(self, s, h, ray):
        # By Taylor's formula U' rises by less than U'' t + U''' t²/2 + C t³/6, C the bound of the fourth derivative;
        # divided by t that is convex, and largest at 0 or at h. And U'' is nowhere above its own bound.
        most = ray[SQUARES]
        if h < math.inf:
            most = min(most, ray[TWO] + max(0.0, (0.5 * ray[THREE] + ray[QUARTS] * h / 6.0) * h))
        return most + ray[PRIOR_SLOPE]

    @compiled
    def ray_gradient(self, x, s, ray, out):
        if ray[AT] != s:
            ray_derivatives(self.data.shape[0] * BLOCK, s, ray)
        for j in range(self.dim):
            out[j] = self.precision[j] * x[j]
        add_ray_gradient(self.data, ray, out)

    def ray_room(self):
        """Length of the array that holds a ray."""
        return RAY + 3 * self.data.shape[0] * BLOCK

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        for k in range(n):
            self.add_term_gradient(x, rows[k], out)

    @compiled
    def copy_batch(self, rows, n, copied):
        pass

    @compiled
    def fetch(self, i):
        pass

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(n):
            weight = expit_of_minus(self.margin(y, rows[k])) - expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                out[j] += weights[k] * weight * self.feature(rows[k], j)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(n):
            weight = expit_of_minus(self.margin(y, rows[k])) - expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                out[j] += weight * self.feature(rows[k], j)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            weight, p = -expit_of_minus(self.margin(x, rows[k])), 0.0
            for j in range(self.dim):
                g = weight * self.feature(rows[k], j)
                out[j] += g
                p += v[j] * g
            first += p
            second += p * p
        return first, second

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        for k in range(n):
            weight = -expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                g = weight * self.feature(rows[k], j)
                out[j] += g
                squares[j] += g * g

    def batch_room(self, size):
        return np.zeros((0, 0, 0), self.data.dtype)  # blocks are contiguous

    def rearranged(self, rows):
        return None  # `X` is not in the order of these data


def signed_rows(X: np.ndarray, y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Features times labels ±1, a datum a row of whole cache lines, shape (N, at least d), or a `ValueError`.

    Parameters
    ----------
    X : ndarray, shape (N, d)
    y : ndarray, shape (N,)
        Labels 0 and 1.
    dtype : numpy.dtype
        float64 or float32.
    """
    d, row = X.shape[1], LINE // dtype.itemsize
    data = aligned((len(X), -(-d // row) * row), dtype, zeros=False)

    def write(first, stop):
        some, signs = data[first:stop], 2.0 * y[first:stop] - 1.0
        with np.errstate(over="ignore"):
            np.multiply(X[first:stop], signs[:, None], out=some[:, :d], casting="same_kind")
        some[:, d:] = 0.0
        return dtype == np.float64 or bool(np.all(np.isfinite(some[:, :d])))

    if not all(list(each(write, chunks(*X.shape)))):
        raise ValueError(f"`X` has values beyond the range of dtype={dtype}.")
    return data
