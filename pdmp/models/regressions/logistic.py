"""Bayesian logistic regression with a Gaussian prior."""

from __future__ import annotations

import logging
import math

import numpy as np

from pdmp.models.base import Model, data_and_coordinates
from pdmp.models.regressions.design import stays, with_ones
from pdmp.models.regressions.glm import read_labels, read_prior
from pdmp.native.classes import compiled, inlined, positive, vectorised
from pdmp.native.prefetch import LINE, prefetch
from pdmp.native.vectors import BLOCK, add8, aligned, buffer, columns, dot, exp

LARGEST_COPY = 2**20  #: numbers in the copy of a batch

logger = logging.getLogger(__name__)


@inlined
def _expit_of_minus(z):
    return 1.0 / (1.0 + exp(z))


@inlined
def _softplus_of_minus(z):
    """log(1 + exp(-z)) without overflow."""
    return max(-z, 0.0) + math.log1p(math.exp(-abs(z)))


# ---------------------------------------------------------------------------------------------------------------
# Hot loops


@inlined
def _ahead(start, n):
    """Half the number of rows in the block after the one at `start`: so many are fetched in each half of the work."""
    return min(BLOCK, max(n - start - BLOCK, 0)) // 2


@inlined
def _weights(data, x, rows, start, n, weights, wide):
    """weights[k] = -expit(-z) of row rows[start + k], its factor in the gradient, for one block; its length.

    The first of the rows of the next block are fetched meanwhile: spread over the work, so that memory and arithmetic
    overlap.
    """
    d, m, ahead = x.shape[0], min(BLOCK, n - start), _ahead(start, n)
    for k in range(m):
        weights[k] = 0.0
    for c in range(0, d, BLOCK):
        eights = columns(x, c, wide)
        for k in range(ahead):
            prefetch(data, rows[start + BLOCK + k])
            weights[2 * k] += dot(data, rows[start + 2 * k], c, wide, eights)
            weights[2 * k + 1] += dot(data, rows[start + 2 * k + 1], c, wide, eights)
        for k in range(2 * ahead, m):
            weights[k] += dot(data, rows[start + k], c, wide, eights)
        ahead = 0
    for k in range(m):
        weights[k] = -_expit_of_minus(weights[k])
    return m


@inlined
def _add_weighted_rows(data, rows, start, n, weights, eight, out):
    """out += Σ weights[k] row k of the block; fetches the other rows of the next block."""
    d, m, ahead = out.shape[0], min(BLOCK, n - start), _ahead(start, n)
    next_row = start + BLOCK + ahead
    for c in range(0, d, 8):
        for j in range(8):
            eight[j] = 0.0
        for k in range(ahead):
            prefetch(data, rows[next_row + k])
            add8(eight, weights[2 * k], data, rows[start + 2 * k], c)
            add8(eight, weights[2 * k + 1], data, rows[start + 2 * k + 1], c)
        for k in range(2 * ahead, m):
            add8(eight, weights[k], data, rows[start + k], c)
        ahead = 0
        for j in range(min(8, d - c)):
            out[c + j] += eight[j]


@vectorised
def _batch_gradient(data, x, rows, n, out):
    weights, wide = buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        _weights(data, x, rows, start, n, weights, wide)
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def _batch_difference(data, x, y, rows, n, out):
    """Add the gradient at x less that at y; each row is fetched once."""
    weights, others, wide = buffer(), buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _weights(data, y, rows, start, min(n, start + BLOCK), others, wide)  # nothing to fetch
        for k in range(m):
            weights[k] -= others[k]
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def _weighted_difference(data, x, y, rows, factors, n, out):
    """`_batch_difference` with a factor for each row."""
    weights, others, wide = buffer(), buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _weights(data, y, rows, start, min(n, start + BLOCK), others, wide)  # nothing to fetch
        for k in range(m):
            weights[k] = factors[start + k] * (weights[k] - others[k])
        _add_weighted_rows(data, rows, start, n, weights, wide, out)


@vectorised
def _batch_projection(data, x, v, rows, n, out):
    weights, projections, wide = buffer(), buffer(), buffer()
    first, second = 0.0, 0.0
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        _add_weighted_rows(data, rows, start, n, weights, wide, out)
        for k in range(m):
            projections[k] = 0.0
        for c in range(0, v.shape[0], BLOCK):
            eights = columns(v, c, wide)
            for k in range(m):
                projections[k] += dot(data, rows[start + k], c, wide, eights)
        for k in range(m):
            p = weights[k] * projections[k]
            first += p
            second += p * p
    return first, second


@vectorised
def _batch_squares(data, x, rows, n, out, squares):
    weights, wide = buffer(), buffer()
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m = _weights(data, x, rows, start, n, weights, wide)
        for k in range(start + BLOCK + _ahead(start, n), min(start + 2 * BLOCK, n)):
            prefetch(data, rows[k])
        for k in range(m):
            i, w = rows[start + k], weights[k]
            for j in range(out.shape[0]):
                g = w * data[i, j]
                out[j] += g
                squares[j] += g * g


@vectorised
def _rows_gradient(data, x, first, last, out):
    weights = buffer()
    d = x.shape[0]
    for start in range(first, last, BLOCK):
        m = min(BLOCK, last - start)
        for k in range(m):
            z = 0.0
            for j in range(d):
                z += data[start + k, j] * x[j]
            weights[k] = z
        for k in range(m):
            weights[k] = -_expit_of_minus(weights[k])
        for k in range(m):
            for j in range(d):
                out[j] += weights[k] * data[start + k, j]


@vectorised
def _rows_potential(data, x):
    """Σ log(1 + exp(-z)) = Σ max(-z, 0) + log Π (1 + exp(-|z|)), one logarithm for the product of a block.

    A term below 1e-16 rounds to zero; the sum's absolute error is of that order for each term.
    """
    margins, wide = buffer(), buffer()
    d, n, total = x.shape[0], data.shape[0], 0.0
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        for k in range(m):
            margins[k] = 0.0
        for c in range(0, d, BLOCK):
            eights = columns(x, c, wide)
            for k in range(m):
                margins[k] += dot(data, start + k, c, wide, eights)
        product = 1.0  # at most 2^64
        for k in range(m):
            z = margins[k]
            product *= 1.0 + exp(-abs(z))
            total += 0.0 if z > 0.0 else -z
        total += math.log(product)
    return total


@vectorised
def _tiles_gradient(tiles, x, first, last, out):
    weights = buffer()
    for t in range(first // BLOCK, (last + BLOCK - 1) // BLOCK):
        for k in range(BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            for k in range(BLOCK):
                weights[k] += x[j] * tiles[t, j, k]
        for k in range(BLOCK):
            weights[k] = -_expit_of_minus(weights[k])
        for k in range(first - t * BLOCK):  # what is in the tile but not in the block
            weights[k] = 0.0
        for k in range(last - t * BLOCK, BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            total = 0.0
            for k in range(BLOCK):
                total += weights[k] * tiles[t, j, k]
            out[j] += total


#: The fourth derivative of log(1 + exp(-z)), which is w (1 - w) (1 - 6 w (1 - w)), is nowhere above this.
FOURTH = 1.0 / 24.0
#: A ray in memory: these numbers, then for each datum its margin where the ray began, the speed of its margin, and its
#: weight w = expit(-margin) at the place `AT`. There the data's derivatives along the ray are `ONE`, `TWO` and `THREE`;
#: the fourth is at most Σ FOURTH speed⁴, the second Σ speed² / 4. The prior adds PRIOR + s PRIOR_SLOPE to the first.
AT, ONE, TWO, THREE, QUARTS, SQUARES, PRIOR, PRIOR_SLOPE, RAY = range(9)


@vectorised
def _ray_project(tiles, x, start, ray):
    """Products of the signed features with x, into the ray from `start`."""
    margins = buffer()
    for t in range(tiles.shape[0]):
        for k in range(BLOCK):
            margins[k] = 0.0
        for j in range(x.shape[0]):
            for k in range(BLOCK):
                margins[k] += x[j] * tiles[t, j, k]
        for k in range(BLOCK):
            ray[start + t * BLOCK + k] = margins[k]


@vectorised
def _ray_advance(room, s, ray):
    for k in range(RAY, RAY + room):
        ray[k] += s * ray[room + k]


@vectorised
def _ray_sums(room, ray):
    """What follows from the speeds: bounds on derivatives, and at weights that are known the derivatives."""
    one, two, three, squares, quarts = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(RAY, RAY + room):
        z, w = ray[room + k], ray[2 * room + k]
        one -= w * z
        two += w * (1.0 - w) * z * z
        three += w * (1.0 - w) * (w + w - 1.0) * z * z * z
        squares += z * z
        quarts += z * z * z * z
    ray[ONE], ray[TWO], ray[THREE], ray[SQUARES], ray[QUARTS] = one, two, three, 0.25 * squares, FOURTH * quarts


@vectorised
def _ray_slopes(room, s, ray):
    """The weights at s, and the derivatives there."""
    weights, speeds = buffer(), buffer()  # what is read and written apart from each other becomes vectors
    one, two, three = 0.0, 0.0, 0.0
    for start in range(RAY, RAY + room, BLOCK):
        for k in range(BLOCK):
            speeds[k] = ray[room + start + k]
        for k in range(BLOCK):
            weights[k] = ray[start + k] + s * speeds[k]
        for k in range(BLOCK):
            weights[k] = _expit_of_minus(weights[k])
        a, b, c = 0.0, 0.0, 0.0
        for k in range(BLOCK):
            a += weights[k] * speeds[k]
        for k in range(BLOCK):
            b += weights[k] * (1.0 - weights[k]) * speeds[k] * speeds[k]
        for k in range(BLOCK):
            w, z = weights[k], speeds[k]
            c += w * (1.0 - w) * (w + w - 1.0) * z * z * z
        one -= a
        two += b
        three += c
        for k in range(BLOCK):
            ray[2 * room + start + k] = weights[k]
    ray[AT], ray[ONE], ray[TWO], ray[THREE] = s, one, two, three


@vectorised
def _ray_gradient(tiles, ray, out):
    weights, start = buffer(), RAY + 2 * tiles.shape[0] * BLOCK
    for t in range(tiles.shape[0]):
        for k in range(BLOCK):
            weights[k] = ray[start + t * BLOCK + k]
        for j in range(out.shape[0]):
            total = 0.0
            for k in range(BLOCK):
                total += weights[k] * tiles[t, j, k]
            out[j] -= total


@vectorised
def _copy_rows(data, rows, n, tiles):
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m, ahead = min(BLOCK, n - start), min(BLOCK, max(n - start - BLOCK, 0))
        for k in range(m):
            if k < ahead:
                prefetch(data, rows[start + BLOCK + k])
            for j in range(tiles.shape[1]):
                tiles[start // BLOCK, j, k] = data[rows[start + k], j]


@vectorised
def _rows_slope(data, v):
    total = 0.0
    for i in range(data.shape[0]):
        p = 0.0
        for j in range(v.shape[0]):
            p += data[i, j] * v[j]
        total += p * p
    return total


@vectorised
def _rows_partial_slopes(data, v, out):
    for i in range(data.shape[0]):
        p = 0.0
        for j in range(v.shape[0]):
            p += data[i, j] * v[j]
        for j in range(v.shape[0]):
            q = v[j] * data[i, j] * p
            out[j] += q if q > 0.0 else 0.0


class LogisticRegression(Model):
    r"""Logistic regression: U(x) = Σᵢ log(1 + exp(-sᵢ aᵢ·x)) + Σⱼ xⱼ² / (2 prior_scaleⱼ²).

    aᵢ is row i of `X` and sᵢ = ±1 its label; there is no intercept unless `X` has a column of ones. The Hessian is at
    most ¼ XᵀX + diag(prior_scale⁻²), from which the model's bounds for Zig-Zag and BPS follow.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix or memory-mapped array, shape (N, d)
        Features. A sparse matrix stays sparse, and a memory-mapped array of float32 or float64 in C order, such as
        ``numpy.load(path, mmap_mode="r")``, is read where it is and never copied: the model is then a
        `pdmp.models.regressions.logistic_rows.LogisticRows`. Anything else is copied for speed, into whole cache lines.
    y : array_like of shape (N,)
        Labels, in {0, 1} or in {-1, +1}, both present.
    prior_scale : float or array_like of shape (d,), default 1.0
        Standard deviation of the Gaussian prior; ``np.inf`` is a flat prior. A number is not for the intercept, whose
        prior is then flat.
    dtype : {numpy.float64, numpy.float32}, default numpy.float64
        How the features are stored for the compiled code. Arithmetic is in double precision either way; float32 halves
        the memory traffic, which is what limits large data sets. A memory-mapped array keeps its own.
    intercept : bool, default False
        Whether to append a column of ones to `X`; its coefficient comes last.

    Attributes
    ----------
    X, y : ndarray of shape (N, d) and (N,)
        The data, with the column of ones if there is one; labels as 0 and 1.
    data : ndarray
        What the compiled code reads: the signed features sᵢ aᵢ, so that no label has to be fetched, one datum a row,
        each row filled up with zeros to whole cache lines.

    Raises
    ------
    ValueError
        If `X` is not a finite matrix, `y` does not fit it or is not of two classes, `prior_scale` is not positive, or
        `dtype` is another.
    """

    data: np.ndarray
    gram: np.ndarray
    precision: np.ndarray

    intercept = False

    def __new__(cls, X=None, *args, **kwargs):
        if cls is LogisticRegression and stays(X):
            from pdmp.models.regressions.logistic_rows import LogisticRows

            return super().__new__(LogisticRows)
        return super().__new__(cls)

    def __init__(self, X, y, prior_scale=1.0, dtype=np.float64, intercept=False):
        X, y = _check_data(X, y)
        if intercept:
            X, self.intercept = with_ones(X), True
        d = X.shape[1]
        variables = {"coefficients": (d - 1,), "intercept": ()} if intercept else None
        super().__init__(dim=d, n_data=X.shape[0], variables=variables)
        dtype = np.dtype(dtype)
        if dtype not in (np.float64, np.float32):
            raise ValueError(f"`dtype` must be float64 or float32, got {dtype}.")
        self.X, self.y, self.prior_scale = X, y, prior_scale
        self.precision = read_prior(prior_scale, self.dim, intercept)
        row = LINE // dtype.itemsize
        self.data = aligned((self.n_data, -(-self.dim // row) * row), dtype)
        with np.errstate(over="ignore"):
            np.multiply(X, (2.0 * y - 1.0)[:, None], out=self.data[:, : self.dim], casting="same_kind")
        if not np.all(np.isfinite(self.data[:, : self.dim])):
            raise ValueError(f"`X` has values beyond the range of dtype={dtype}.")
        # XᵀX, where it is smaller than the data and quickly computed.
        self.gram = self._weighted_gram(None) if self.dim <= min(128, self.n_data) else np.zeros((0, 0))

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
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += self.precision[j] * x[j] * x[j]
        return 0.5 * total

    @compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.precision[j] * x[j]

    @compiled
    def term_potential(self, x, i):
        return _softplus_of_minus(self.margin(x, i))

    @compiled
    def total_potential(self, x):
        return self.prior_potential(x) + _rows_potential(self.data, x)

    @compiled
    def prior_partial(self, x, j):
        return self.precision[j] * x[j]

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return self.precision[j] * v[j] * v[j]

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def term_partial(self, x, i, j, scratch):
        return -_expit_of_minus(self.margin(x, i)) * self.feature(i, j)

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        z, w = 0.0, 0.0
        for k in range(self.dim):
            a = self.feature(i, k)
            z += a * x[k]
            w += a * y[k]
        return (_expit_of_minus(w) - _expit_of_minus(z)) * self.feature(i, j)

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
        weight = _expit_of_minus(self.margin(x, i))
        for j in range(self.dim):
            out[j] -= weight * self.feature(i, j)

    @compiled
    def add_prior_parts(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            out[row, 1] += self.precision[j] * x[j] * v[j]
            out[row, 2] += self.precision[j] * v[j] * v[j]

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is kⱼ w(z), w(z) = -1 / (1 + eᶻ), z = sᵢaᵢ·x: w is convex below 0 and concave above."""
        z, along = self.margin(x, i), self.margin(v, i)
        w = -_expit_of_minus(z)
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
        _rows_gradient(self.data, x, first, last, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        _batch_gradient(self.data, x, rows, n, out)

    @compiled
    def copy_batch(self, rows, n, copied):
        _copy_rows(self.data, rows, n, copied)

    @compiled
    def add_copied_gradient(self, x, copied, n, out):
        _tiles_gradient(copied, x, 0, n, out)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        _batch_difference(self.data, x, y, rows, n, out)

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        _weighted_difference(self.data, x, y, rows, weights, n, out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return _batch_projection(self.data, x, v, rows, n, out)

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        _batch_squares(self.data, x, rows, n, out, squares)

    @compiled
    def curvature_bound(self, v):
        """A bound on v·H(x)v for every x: ¼ |Xv|² + Σⱼ vⱼ² / prior_scaleⱼ²."""
        total, prior = 0.0, 0.0
        for j in range(self.dim):
            prior += self.precision[j] * v[j] * v[j]
        if self.gram.shape[0] == 0:
            return 0.25 * _rows_slope(self.data, v) + prior
        for i in range(self.dim):
            for j in range(self.dim):
                total += v[i] * self.gram[i, j] * v[j]
        return 0.25 * max(total, 0.0) + prior

    @compiled
    def partial_curvature_bounds(self, v, out):
        """Bounds on vᵢ Σⱼ Hᵢⱼ(x) vⱼ for every x: ¼ Σₙ max(0, vᵢ Xₙᵢ (Xv)ₙ) + vᵢ² / prior_scaleᵢ²."""
        for j in range(self.dim):
            out[j] = 0.0
        _rows_partial_slopes(self.data, v, out)
        for j in range(self.dim):
            out[j] = 0.25 * out[j] + self.precision[j] * v[j] * v[j]

    @compiled
    def prior_curvature_bound(self, v):
        """Σⱼ vⱼ² / prior_scaleⱼ², exactly."""
        total = 0.0
        for j in range(self.dim):
            total += self.precision[j] * v[j] * v[j]
        return total

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of datum f, or of the prior of coordinate f - N."""
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            j = f - self.n_data
            out[j] += self.precision[j] * x[j]

    @compiled
    def factor_rate_bound(self, x, v, f):
        """max(0, -sᵢ aᵢ·v), as the expit is at most 1; the prior's derivative is affine."""
        if f < self.n_data:
            return positive(-self.margin(v, f)), 0.0
        j = f - self.n_data
        return self.precision[j] * x[j] * v[j], self.precision[j] * v[j] * v[j]

    @compiled
    def signed_term_bound(self, i, j, sign):
        """Bound on sign · ∂ⱼUᵢ: ∂ⱼUᵢ is the signed feature times a number in [-1, 0]."""
        return positive(-sign * self.feature(i, j))

    # -- Python ---------------------------------------------------------------------------------------------------

    def largest_term_gradient(self):
        """The largest norm of a row of `X`: the gradient of a term is its row times a number in (-1, 1)."""
        pieces = np.array_split(self.X, self.n_data // 100_000 + 1)
        return math.sqrt(max(float(np.einsum("ij,ij->i", a, a).max()) for a in pieces))

    def factors(self):
        """A factor for each datum, on the coordinates where its features are not zero; one for each prior."""
        return data_and_coordinates(self.X)

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.data.ctypes.data % LINE:  # pickles do not keep it
            data = aligned(self.data.shape, self.data.dtype)
            data[...] = self.data
            self.data = data

    def rearranged(self, rows):
        """The same posterior with its data in the order `rows`, in tiles of 64 data, feature by feature.

        A block of consecutive data is then read in long vectors. `X` and `y` of the copy stay in the order given.
        """
        rows = np.asarray(rows)
        copy = object.__new__(_Tiled)
        copy.__dict__.update(self.__dict__)
        copy.n_data = len(rows)
        copy.data = aligned((-(-len(rows) // BLOCK), self.dim, BLOCK), self.data.dtype)
        for tile, start in enumerate(range(0, len(rows), BLOCK)):
            part = self.data[rows[start : start + BLOCK], : self.dim]
            copy.data[tile, :, : len(part)] = part.T
        return copy

    def batch_room(self, size):
        tiles = -(-size // BLOCK) if size * self.dim <= LARGEST_COPY else 0
        return np.zeros((tiles, self.dim, BLOCK), self.data.dtype)

    def slab_density(self):
        return np.sqrt(self.precision / (2.0 * math.pi))

    def _weighted_gram(self, x):
        """Xᵀ W X with W = 1, or diag(p (1 - p)) at `x`, in pieces; X as it is stored."""
        total = np.zeros((self.dim, self.dim))
        piece = max(2**20 // self.dim, 1)
        for start in range(0, self.n_data, piece):
            part = self.X[start : start + piece].astype(self.data.dtype).astype(float)
            if x is None:
                total += part.T @ part
            else:
                p = _expit(part @ x)
                total += part.T @ (part * (p * (1.0 - p))[:, None])
        return total

    def hessian(self, x):
        """Hessian of U at `x`, shape (d, d): Xᵀ diag(p (1 - p)) X + diag(prior_scale⁻²)."""
        return self._weighted_gram(self.check(x)) + np.diag(self.precision)

    def term_gradient_norms(self, root, first, last):
        """|rootᵀ Xᵢ|."""
        return np.linalg.norm(self.X[first:last] @ root, axis=1)

    def term_lipschitz_norms(self, root, first, last):
        """¼ |rootᵀ Xᵢ|²."""
        return 0.25 * self.term_gradient_norms(root, first, last) ** 2

    def hessian_bounds(self):
        """diag(prior_scale⁻²) and that plus ¼ XᵀX, (d, d) each: p (1 - p) lies between 0 and ¼."""
        prior = np.diag(self.precision)
        gram = self.gram if self.gram.size else self._weighted_gram(None)
        return prior, prior + 0.25 * gram

    def prior_hessian_bounds(self):
        """diag(prior_scale⁻²), twice."""
        return np.diag(self.precision), np.diag(self.precision)

    def predict(self, x, X):
        """Probabilities of the label 1.

        Parameters
        ----------
        x : array_like of shape (..., d)
            One parameter, or several.
        X : array_like of shape (n, d)
            Features, without the column of ones if the model added one.

        Returns
        -------
        ndarray of shape (..., n)
        """
        return _expit(np.asarray(x, float) @ self._columns(X).T)

    def _columns(self, X):
        X = np.asarray(X, float)
        return with_ones(X) if self.intercept else X

    def log_likelihood(self, x, X=None, y=None, pointwise=False):
        """log p(y | X, x) of the model's data or of others.

        Parameters
        ----------
        x : array_like of shape (..., d)
            One parameter, or several.
        X, y : array_like of shape (n, d) and (n,), optional
            Features as in `predict` and labels; the model's own when omitted.
        pointwise : bool
            Whether to return it for each datum.

        Returns
        -------
        ndarray of shape (...), or (..., n) when `pointwise`
            The sum over the data; a float for one parameter.
        """
        X, y = (self.X, self.y) if X is None else (self._columns(X), np.asarray(y, float))
        x = np.asarray(x, float)
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"`x` must have shape (..., {self.dim}), got {x.shape}.")
        found = -np.logaddexp(0.0, -np.where(y > 0.0, 1.0, -1.0) * (x @ X.T))
        if pointwise:
            return found
        return float(found.sum()) if x.ndim == 1 else found.sum(axis=-1)


class _Tiled(LogisticRegression):
    """`LogisticRegression.rearranged`: data[t, j, k] is signed feature j of datum 64 t + k."""

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
        _tiles_gradient(self.data, x, first, last, out)

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
                out[j] += 0.25 * positive(v[j] * self.feature(i, j) * along)

    @compiled
    def ray_begin(self, x, v, ray):
        _ray_project(self.data, x, RAY, ray)
        ray[AT] = math.nan
        self.ray_turn(x, 0.0, v, ray)

    @compiled
    def ray_turn(self, x, s, v, ray):
        room = self.data.shape[0] * BLOCK
        if s != 0.0:
            _ray_advance(room, s, ray)
        _ray_project(self.data, v, RAY + room, ray)
        _ray_sums(room, ray)
        ray[AT] = 0.0 if ray[AT] == s else math.nan
        ray[PRIOR], ray[PRIOR_SLOPE] = 0.0, 0.0
        for j in range(self.dim):
            ray[PRIOR] += self.precision[j] * x[j] * v[j]
            ray[PRIOR_SLOPE] += self.precision[j] * v[j] * v[j]

    @compiled
    def ray_derivatives(self, s, ray):
        if ray[AT] != s:
            _ray_slopes(self.data.shape[0] * BLOCK, s, ray)
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
            _ray_slopes(self.data.shape[0] * BLOCK, s, ray)
        for j in range(self.dim):
            out[j] = self.precision[j] * x[j]
        _ray_gradient(self.data, ray, out)

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
            weight = _expit_of_minus(self.margin(y, rows[k])) - _expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                out[j] += weights[k] * weight * self.feature(rows[k], j)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(n):
            weight = _expit_of_minus(self.margin(y, rows[k])) - _expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                out[j] += weight * self.feature(rows[k], j)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            weight, p = -_expit_of_minus(self.margin(x, rows[k])), 0.0
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
            weight = -_expit_of_minus(self.margin(x, rows[k]))
            for j in range(self.dim):
                g = weight * self.feature(rows[k], j)
                out[j] += g
                squares[j] += g * g

    def batch_room(self, size):
        return np.zeros((0, 0, 0), self.data.dtype)  # blocks are contiguous

    def rearranged(self, rows):
        return None  # `X` is not in the order of these data


def _expit(z):
    """1 / (1 + exp(-z)) without overflow."""
    small = np.exp(-np.abs(z))
    return np.where(z >= 0.0, 1.0, small) / (1.0 + small)


def _check_data(X, y):
    """Features as a float matrix and labels as 0.0 and 1.0, or a `ValueError`."""
    try:
        X = np.ascontiguousarray(X, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`X` must be a matrix of numbers, got {type(X).__name__}.") from None
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must have shape (N, d) with N and d at least 1, got {X.shape}.")
    if not np.all(np.isfinite(X)):
        raise ValueError(f"`X` must be finite, and has {np.sum(~np.isfinite(X))} values that are NaN or infinite.")
    labels = read_labels(y, len(X))
    if np.min(y) < 0:
        logger.info("Labels -1 and +1 are kept as 0 and 1.")
    return X, labels
