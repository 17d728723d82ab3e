"""Gaussian targets with a diagonal, a dense or a sparse precision matrix: everything about them is known exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import real
from pdmp.native.classes import compiled, inlined
from pdmp.native.definite import definite, factor_of, symmetric

if TYPE_CHECKING:
    from scipy.sparse import csc_array

DENSE = 5_000  #: largest dimension for which a dense (dim, dim) matrix is made on request
FULL = 0.25  #: above this share of non-zeros, products with the precision matrix run over a dense copy of it


@inlined
def _square(matrix, v, d):
    """vᵀMv for a symmetric M: the lower triangle, in four sums that need not wait for each other."""
    total = 0.0
    for j in range(d):
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for k in range(j // 4):
            i = 4 * k
            a += matrix[j, i] * v[i]
            b += matrix[j, i + 1] * v[i + 1]
            c += matrix[j, i + 2] * v[i + 2]
            e += matrix[j, i + 3] * v[i + 3]
        for i in range(4 * (j // 4), j):
            a += matrix[j, i] * v[i]
        total += v[j] * (2.0 * ((a + b) + (c + e)) + matrix[j, j] * v[j])
    return total


class Gaussian(Model):
    r"""The Gaussian N(mean, precision⁻¹).

    U(x) = ½ (x - mean)ᵀ Q (x - mean), ∇U(x) = Q (x - mean), where Q is the precision matrix. There are no data terms.
    Slopes of ∇U along straight lines are exact, so the clocks of the piecewise-deterministic processes invert them
    and reject nothing; a local Zig-Zag pays for the non-zeros of a row of Q, whatever the dimension.

    Parameters
    ----------
    mean : float or array_like, shape (d,)
        A number is the mean of every coordinate.
    precision : array_like, shape (d,) or (d, d), or a scipy.sparse matrix, shape (d, d)
        One-dimensional: the diagonal of a diagonal matrix. Zeros of a dense or sparse matrix are not stored.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or the precision is not symmetric (up to 10⁻⁸ of its largest
        entry) or not positive definite. Checked for a diagonal by its signs; for a dense matrix by its Cholesky
        factor; for a sparse one by strict diagonal dominance, and where that fails by the pivots of a sparse
        factorisation, which costs what its fill-in costs.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> model = pdmp.models.Gaussian(0.0, np.array([1.0, 4.0]))
    >>> model.gradient([1.0, 1.0])
    array([1., 4.])
    """

    mean: np.ndarray
    #: The precision matrix by rows: row i is data[k] in column indices[k] for indptr[i] <= k < indptr[i + 1].
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    full: np.ndarray  #: the same matrix, when it is nearly full; else of shape (0, 0)

    def __init__(self, mean: ArrayLike | None, precision: ArrayLike) -> None:
        self.indptr, self.indices, self.data = _rows(precision)
        d = len(self.indptr) - 1
        mean = np.array(real("mean", mean))
        if mean.ndim == 0:
            mean = np.full(d, float(mean))
        if mean.shape != (d,):
            raise ValueError(f"`mean` must be a number or have shape ({d},), as `precision` says; got {mean.shape}.")
        if not np.all(np.isfinite(mean)):
            raise ValueError("`mean` must be finite.")
        super().__init__(dim=d, initial=mean)
        self.mean = mean
        self.full = self._dense() if 1 < d <= DENSE and len(self.data) > FULL * d * d else np.zeros((0, 0))

    @compiled
    def potential(self, x):
        total = 0.0
        for i in range(self.dim):
            row = 0.0
            for k in range(self.indptr[i], self.indptr[i + 1]):
                j = self.indices[k]
                row += self.data[k] * (x[j] - self.mean[j])
            total += row * (x[i] - self.mean[i])
        return 0.5 * total

    @compiled
    def add_gradient(self, x, out):
        if self.full.shape[0] > 0:  # column by column: no sum to wait for, so it vectorises without being reordered
            for j in range(self.dim):
                centred = x[j] - self.mean[j]
                for i in range(self.dim):
                    out[i] += self.full[j, i] * centred
        else:
            for i in range(self.dim):
                row = 0.0
                for k in range(self.indptr[i], self.indptr[i + 1]):
                    j = self.indices[k]
                    row += self.data[k] * (x[j] - self.mean[j])
                out[i] += row

    @compiled
    def curvature_bound(self, v):
        """vᵀQv, exactly."""
        if self.full.shape[0] > 0:
            return _square(self.full, v, self.dim)
        total = 0.0
        for i in range(self.dim):
            row = 0.0
            for k in range(self.indptr[i], self.indptr[i + 1]):
                row += self.data[k] * v[self.indices[k]]
            total += v[i] * row
        return total

    @compiled
    def hessian_product(self, v, out):
        """out = Qv, by which ∇U changes in a unit of time along v, at any x."""
        if self.full.shape[0] > 0:
            for i in range(self.dim):
                out[i] = 0.0
            for j in range(self.dim):
                for i in range(self.dim):
                    out[i] += self.full[j, i] * v[j]
        else:
            for i in range(self.dim):
                row = 0.0
                for k in range(self.indptr[i], self.indptr[i + 1]):
                    row += self.data[k] * v[self.indices[k]]
                out[i] = row

    @compiled
    def partial_curvature_bounds(self, v, out):
        """out[i] = vᵢ (Qv)ᵢ, exactly."""
        self.hessian_product(v, out)
        for i in range(self.dim):
            out[i] *= v[i]

    @compiled
    def affine_partial(self, x, v, times, now, i):
        """∂ᵢU at time `now` and its slope (Qv)ᵢ, coordinate j having been at x[j] at time times[j]."""
        value, slope = 0.0, 0.0
        for k in range(self.indptr[i], self.indptr[i + 1]):
            j = self.indices[k]
            q = self.data[k]
            value += q * (x[j] + v[j] * (now - times[j]) - self.mean[j])
            slope += q * v[j]
        return value, slope

    # Along a ray: ∇U where it began, then Hv; U'' is constant.

    @compiled
    def ray_begin(self, x, v, ray):
        for j in range(self.dim):
            ray[j] = 0.0
        self.add_gradient(x, ray[: self.dim])
        self.hessian_product(v, ray[self.dim : 2 * self.dim])
        self._ray_derivatives(v, ray)

    @compiled
    def _ray_derivatives(self, v, ray):
        d, first, second = self.dim, 0.0, 0.0
        for j in range(d):
            first += v[j] * ray[j]
            second += v[j] * ray[d + j]
        ray[2 * d], ray[2 * d + 1] = first, second

    @compiled
    def ray_turn(self, x, s, v, ray):
        d = self.dim
        for j in range(d):
            ray[j] += s * ray[d + j]
        self.hessian_product(v, ray[d : 2 * d])
        self._ray_derivatives(v, ray)

    @compiled
    def ray_derivatives(self, s, ray):
        d = self.dim
        return ray[2 * d] + s * ray[2 * d + 1], ray[2 * d + 1]

    @compiled
    def ray_bound(self, s, h, ray):
        return ray[2 * self.dim + 1]

    @compiled
    def ray_gradient(self, x, s, ray, out):
        for j in range(self.dim):
            out[j] = ray[j] + s * ray[self.dim + j]

    def ray_room(self) -> int:
        """Length of the array that holds a ray."""
        return 2 * self.dim + 2

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """Pattern of the precision matrix: (indptr, indices) of its rows, int64, indices ascending in each row."""
        return self.indptr, self.indices

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """The mean, shape (dim,)."""
        return self.mean.copy()

    def hessian(self, x: ArrayLike | None = None) -> np.ndarray:
        """The precision matrix, dense, shape (dim, dim); the same at every x."""
        return self._dense()

    def sparse_hessian(self, x: ArrayLike | None = None) -> csc_array:
        """The precision matrix, a sparse array of shape (dim, dim); the same at every x."""
        from scipy import sparse

        return sparse.csc_array((self.data, self.indices, self.indptr), shape=(self.dim, self.dim))

    def hessian_bounds(self) -> np.ndarray | None:
        """The precision matrix twice: it is the Hessian everywhere. None above 5000 dimensions."""
        return None if self.dim > DENSE else (self._dense(), self._dense())

    def covariance(self) -> np.ndarray:
        """Inverse of the precision matrix, dense, shape (dim, dim), for dim <= 5000."""
        _refuse_dense(self.dim)
        if len(self.data) == self.dim:  # the diagonal alone
            return np.diag(1.0 / self.data)
        inverse = np.linalg.inv(self._dense())
        return 0.5 * (inverse + inverse.T)

    def curvatures(self, x: ArrayLike | None = None) -> np.ndarray:
        """Diagonal of the precision matrix, shape (dim,); the same at every x."""
        return self.data[self.indices == np.repeat(np.arange(self.dim), np.diff(self.indptr))]

    def curvature(self, x: ArrayLike | None = None, probes: int | None = None) -> float:
        """Trace of the precision matrix divided by `dim`."""
        return float(np.sum(self.curvatures())) / self.dim

    def _dense(self):
        _refuse_dense(self.dim)
        matrix = np.zeros((self.dim, self.dim))
        matrix[np.repeat(np.arange(self.dim), np.diff(self.indptr)), self.indices] = self.data
        return matrix


def _refuse_dense(d):
    if d > DENSE:
        raise ValueError(f"A dense ({d}, {d}) matrix is only made up to dim = {DENSE}; work with the sparse precision.")


def _rows(precision):
    """The checked precision matrix as (indptr, indices, data)."""
    if hasattr(precision, "tocsr"):
        return _sparse_rows(precision)
    matrix = np.array(real("precision", precision))
    if matrix.ndim not in (1, 2) or matrix.size == 0 or matrix.shape[0] != matrix.shape[-1]:
        raise ValueError(f"`precision` must have shape (d,) or (d, d), or be sparse; got {matrix.shape}.")
    if not np.all(np.isfinite(matrix)):
        raise ValueError("`precision` must be finite.")
    d = len(matrix)
    if matrix.ndim == 1:
        if not np.all(matrix > 0.0):
            i = int(np.argmin(matrix))
            raise ValueError(f"`precision` must be positive definite; entry {i} of the diagonal is {matrix[i]:g}.")
        return np.arange(d + 1), np.arange(d), matrix
    matrix = definite("precision", matrix)
    i, j = np.nonzero(matrix)
    return np.searchsorted(i, np.arange(d + 1)), j.astype(np.int64), matrix[i, j]


def _sparse_rows(precision):
    from scipy import sparse

    if precision.ndim != 2 or precision.shape[0] != precision.shape[1] or precision.shape[0] == 0:
        raise ValueError(f"`precision` must have shape (d,) or (d, d), or be sparse; got {precision.shape}.")
    matrix = sparse.csr_array(precision, dtype=float)
    if not np.all(np.isfinite(matrix.data)):
        raise ValueError("`precision` must be finite.")
    matrix = sparse.csr_array(symmetric("precision", matrix))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    diagonal = matrix.diagonal()
    if not np.all(diagonal > 0.0):
        i = int(np.argmin(diagonal))
        raise ValueError(f"`precision` must be positive definite; entry {i} of its diagonal is {diagonal[i]:g}.")
    others = np.asarray(abs(matrix).sum(axis=1)).ravel() - diagonal
    if not np.all(diagonal > others):
        factor_of("precision", matrix)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
