"""Bayesian logistic regression with a Gaussian prior."""

from __future__ import annotations

import logging
import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.base import Model
from pdmp.models.regressions.design import data_and_coordinates, stays, with_ones
from pdmp.models.regressions.glm import read_labels, read_prior
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
from pdmp.models.regressions.logistic_terms import LogisticTerms, expit, expit_of_minus, softplus_of_minus
from pdmp.native.classes import compiled, positive
from pdmp.native.prefetch import LINE, prefetch
from pdmp.native.vectors import BLOCK, aligned

#: numbers in the copy of a batch

LARGEST_COPY = 2**20  #: numbers in the copy of a batch

logger = logging.getLogger(__name__)


class LogisticRegression(Model):
    r"""Logistic regression: U(x) = Σᵢ log(1 + exp(-sᵢ aᵢ·x)) + Σⱼ xⱼ² / (2 prior_scaleⱼ²).

    aᵢ is row i of `X` and sᵢ = ±1 its label; there is no intercept unless `X` has a column of ones. The Hessian is at
    most ¼ XᵀX + diag(prior_scale⁻²), from which the model's bounds for Zig-Zag and BPS follow.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix or memory-mapped array, shape (N, d)
        Features. A sparse matrix stays sparse, and a memory-mapped array of float32 or float64 in C order, such as
        ``numpy.load(path, mmap_mode="r")``, is read where it is and never copied: the model is then a
        `pdmp.models.regressions.logistic.LogisticRows`. Anything else is copied for speed, into whole cache lines.
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

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0, 0, 1]
    >>> model = pdmp.models.LogisticRegression(X, y, prior_scale=2.0)
    >>> model.gradient([0.0, 0.0])
    array([ 0.5, -0.5])
    """

    data: np.ndarray
    gram: np.ndarray
    precision: np.ndarray

    intercept = False

    def __new__(cls, X=None, *args, **kwargs):
        if cls is LogisticRegression and stays(X):
            return super().__new__(LogisticRows)
        return super().__new__(cls)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        dtype: DTypeLike = np.float64,
        intercept: bool = False,
    ):
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
        return softplus_of_minus(self.margin(x, i))

    @compiled
    def total_potential(self, x):
        return self.prior_potential(x) + rows_potential(self.data, x)

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
    def add_prior_parts(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            out[row, 1] += self.precision[j] * x[j] * v[j]
            out[row, 2] += self.precision[j] * v[j] * v[j]

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

    def largest_term_gradient(self) -> float | None:
        """The largest norm of a row of `X`: the gradient of a term is its row times a number in (-1, 1)."""
        pieces = np.array_split(self.X, self.n_data // 100_000 + 1)
        return math.sqrt(max(float(np.einsum("ij,ij->i", a, a).max()) for a in pieces))

    def factors(self) -> list | tuple | None:
        """A factor for each datum, on the coordinates where its features are not zero; one for each prior."""
        return data_and_coordinates(self.X)

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.data.ctypes.data % LINE:  # pickles do not keep it
            data = aligned(self.data.shape, self.data.dtype)
            data[...] = self.data
            self.data = data

    def rearranged(self, rows: np.ndarray) -> Model | None:
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

    def batch_room(self, size: int) -> np.ndarray:
        tiles = -(-size // BLOCK) if size * self.dim <= LARGEST_COPY else 0
        return np.zeros((tiles, self.dim, BLOCK), self.data.dtype)

    def slab_density(self) -> np.ndarray | None:
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
                p = expit(part @ x)
                total += part.T @ (part * (p * (1.0 - p))[:, None])
        return total

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

    def prior_hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """diag(prior_scale⁻²), twice."""
        return np.diag(self.precision), np.diag(self.precision)

    def predict(self, x: ArrayLike, X: ArrayLike | None) -> np.ndarray:
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
        return expit(np.asarray(x, float) @ self._columns(X).T)

    def _columns(self, X):
        X = np.asarray(X, float)
        return with_ones(X) if self.intercept else X

    def log_likelihood(
        self, x: ArrayLike, X: ArrayLike | None = None, y: ArrayLike | None = None, pointwise: bool = False
    ) -> np.ndarray:
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
                out[j] += 0.25 * positive(v[j] * self.feature(i, j) * along)

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


class LogisticRows(LogisticTerms, LogisticRegression):
    """What `LogisticRegression` is for a sparse or memory-mapped `X`; see there.

    `offset` is that of `pdmp.models.regressions.glm`.

    Labels are kept apart from the features. A sparse matrix costs what is stored of it, a memory-mapped one what its
    file does to read; `dtype` is that of the file.
    """

    def __init__(self, X, y, prior_scale=1.0, dtype=None, intercept=False, offset=None):
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.target = 2.0 * self.y - 1.0
        self.data = np.zeros((0, 0))  # what is signed and in whole cache lines elsewhere
        self.settle()

    def read_target(self, y, n):
        return read_labels(y, n)

    @compiled
    def total_potential(self, x):
        total = self.prior_potential(x)
        for i in range(self.n_data):
            total += self.term_potential(x, i)
        return total

    @compiled
    def copy_batch(self, rows, n, copied):
        pass

    # -- Python ---------------------------------------------------------------------------------------------------

    def batch_room(self, size):
        return Model.batch_room(self, size)


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
