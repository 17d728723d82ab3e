"""The Gaussian reference N(mean, covariance) of the Boomerang samplers, with a dense or a diagonal covariance."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from pdmp.native.classes import Compiled, compiled, entry
from pdmp.processes.mass import over_kink

#: Largest dimension for which the default covariance, a dense matrix, is made.
DENSE = 5_000


class DenseReference(Compiled):
    """A covariance matrix Σ = L Lᵀ, its inverse and its factor."""

    covariance: np.ndarray
    precision: np.ndarray
    root: np.ndarray

    def __init__(self, covariance):
        self.covariance = np.ascontiguousarray(covariance)
        self.root = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(covariance)
        self.precision = np.ascontiguousarray(0.5 * (inverse + inverse.T))
        self.sd = np.sqrt(np.diag(covariance))

    @classmethod
    def from_root(cls, root):
        """The reference of covariance L Lᵀ, L lower triangular; its scales and correlations may be extreme."""
        reference = cls.__new__(cls)
        reference.root = np.ascontiguousarray(root)
        reference.covariance = np.ascontiguousarray(root @ root.T)
        inverse = linalg.solve_triangular(root, np.eye(len(root)), lower=True)
        reference.precision = np.ascontiguousarray(inverse.T @ inverse)
        reference.sd = np.sqrt(np.diag(reference.covariance))
        return reference

    @compiled
    def flatten(self, y, out):
        """out = Σ⁻¹ y."""
        self._times(self.precision, y, out)

    @compiled
    def raised(self, g, out):
        """out = Σ g."""
        self._times(self.covariance, g, out)

    @compiled
    def _times(self, matrix, y, out):
        for i in range(out.shape[0]):
            out[i] = 0.0
        for j in range(out.shape[0]):
            for i in range(out.shape[0]):
                out[i] += matrix[j, i] * y[j]

    @compiled
    def draw(self, rng, out):
        """N(0, Σ)."""
        for j in range(out.shape[0]):
            out[j] = rng.standard_normal()
        for i in range(out.shape[0] - 1, -1, -1):  # from below: what is above is still to be used
            total = 0.0
            for j in range(i + 1):
                total += self.root[i, j] * out[j]
            out[i] = total

    @compiled
    def inner(self, v, x, mean):
        """vᵀ Σ⁻¹ (x - m)."""
        total = 0.0
        for i in range(v.shape[0]):
            for j in range(v.shape[0]):
                total += v[i] * self.precision[i, j] * (x[j] - mean[j])
        return total

    def sandwich(self, matrix):
        """Lᵀ M L: a symmetric matrix of second derivatives in the metric of the reference."""
        return self.root.T @ matrix @ self.root


class DiagonalReference(Compiled):
    """Standard deviations."""

    sd: np.ndarray

    def __init__(self, variances):
        self.sd = np.sqrt(variances)

    @property
    def root(self):
        return np.diag(self.sd)

    @compiled
    def flatten(self, y, out):
        for j in range(out.shape[0]):
            out[j] = y[j] / (self.sd[j] * self.sd[j])

    @compiled
    def raised(self, g, out):
        for j in range(out.shape[0]):
            out[j] = self.sd[j] * self.sd[j] * g[j]

    @compiled
    def draw(self, rng, out):
        for j in range(out.shape[0]):
            out[j] = self.sd[j] * rng.standard_normal()

    @compiled
    def inner(self, v, x, mean):
        total = 0.0
        for j in range(v.shape[0]):
            total += v[j] * (x[j] - mean[j]) / (self.sd[j] * self.sd[j])
        return total

    def sandwich(self, matrix):
        return self.sd[:, None] * matrix * self.sd


def reference_mean(mean, provider):
    """The mean (d,): a given one, else the provider's anchor, else the model's mode."""
    model = provider.model
    if mean is None:
        mean = model.mode() if provider.anchor is None else np.array(provider.anchor)
        if mean is None:
            raise ValueError(
                f"`mean` must be given: the search for the mode of {type(model).__name__} did not converge."
            )
    mean = model.check(mean, "mean")
    if not np.all(np.isfinite(mean)):
        raise ValueError(f"`mean` must be finite, got {mean}.")
    return mean


def gaussian_reference(covariance, mean, model, diagonal_only=False):
    """`DenseReference` or `DiagonalReference` of what a user gave as `covariance`, or a `ValueError` naming it."""
    d = model.dim
    if isinstance(covariance, DiagonalReference if diagonal_only else (DenseReference, DiagonalReference)):
        return covariance
    if covariance is None and diagonal_only or isinstance(covariance, str) and covariance == "diagonal":
        diagonal = hessian_diagonal(model, mean)
        if not np.all(diagonal > 0.0):
            raise ValueError(
                "`covariance` must be given: the Hessian at `mean` has diagonal entries that are not positive."
            )
        _refuse_kink(model, mean, diagonal)
        return DiagonalReference(1.0 / diagonal)
    if covariance is None:
        if d > DENSE:
            raise ValueError(f'`covariance` must be given, or "diagonal", above {DENSE} dimensions; the model has {d}.')
        hessian = model.hessian(mean)
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            raise ValueError(
                "`covariance` must be given: the Hessian at `mean`, whose inverse it is by default, is not positive "
                "definite."
            ) from None
        _refuse_kink(model, mean, np.diag(hessian))
        inverse = np.linalg.inv(hessian)
        return DenseReference(0.5 * (inverse + inverse.T))
    try:
        matrix = np.array(covariance, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f'`covariance` must be an array, "diagonal" or None, got {covariance!r}.') from None
    if matrix.ndim == 0:
        matrix = np.full(d, float(matrix))
    shapes = f"({d},)" if diagonal_only else f"({d},) or ({d}, {d})"
    if matrix.shape not in ((d,), (d, d))[: 1 if diagonal_only else 2]:
        raise ValueError(f"`covariance` must be a number or have shape {shapes}, got {matrix.shape}.")
    if not np.all(np.isfinite(matrix)):
        raise ValueError("`covariance` must be finite.")
    if matrix.ndim == 1:
        if not np.all(matrix > 0.0):
            j = int(np.argmin(matrix))
            raise ValueError(f"`covariance` must be positive definite; entry {j} of the diagonal is {matrix[j]:g}.")
        return DiagonalReference(matrix)
    if np.abs(matrix - matrix.T).max() > 1e-8 * np.abs(matrix).max():
        raise ValueError("`covariance` must be symmetric.")
    matrix = 0.5 * (matrix + matrix.T)
    low = float(np.linalg.eigvalsh(matrix)[0])
    if not low > 4.0 * d * np.finfo(float).eps * np.abs(matrix).max():
        raise ValueError(f"`covariance` must be positive definite; its smallest eigenvalue is {low:.3g}.")
    return DenseReference(matrix)


def _refuse_kink(model, mean, diagonal):
    """On a kink differences of the gradient are as large as they are taken close by, and no reference."""
    curvature = float(np.mean(diagonal))
    if over_kink(model, mean, curvature) < 0.5 * curvature:
        raise ValueError(
            "`covariance` must be given: U has a kink at `mean`, where its Hessian says nothing of how wide the "
            "density is; give variances of about the posterior's."
        )


def hessian_diagonal(model, x):
    """Diagonal of the Hessian at x (d,), without the whole matrix where there is a way."""
    if not model.has("affine_partial"):
        return np.diag(model.hessian(x)).copy()
    out = np.zeros(model.dim)
    _quadratic_diagonal(model.native, np.array(x), np.zeros(model.dim), np.zeros(model.dim), out)
    return out


@entry
def _quadratic_diagonal(model, x, v, times, out):
    for i in range(out.shape[0]):
        v[i] = 1.0
        out[i] = model.affine_partial(x, v, times, 0.0, i)[1]
        v[i] = 0.0
