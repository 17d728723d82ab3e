"""The Gaussian reference N(mean, covariance) of the Boomerang samplers, with a dense or a diagonal covariance."""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from pdmp.metric import Diagonal, Metric, check_metric, dense, over_kink
from pdmp.models.propriety import unlike_a_density
from pdmp.native.classes import Compiled, compiled, entry, inlined

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

    @classmethod
    def from_root(cls, sd):
        """The reference of these standard deviations."""
        reference = cls.__new__(cls)
        reference.sd = np.ascontiguousarray(sd)
        return reference

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
            what = f"the search for the mode of {type(model).__name__} did not converge"
            raise unlike_a_density(model, f"`mean` must be given: {what}.")
    mean = model.check(mean, "mean")
    if not np.all(np.isfinite(mean)):
        raise ValueError(f"`mean` must be finite, got {mean}.")
    return mean


@inlined
def reflect_off(reference, v, gradient, scratch):
    """v ← v - 2 (v·g) Σg / (g·Σg), g being the gradient; the kind of event 0, or -1 where that is not finite."""
    reference.raised(gradient, scratch)
    dot, square = 0.0, 0.0
    for j in range(v.shape[0]):
        dot += v[j] * gradient[j]
        square += scratch[j] * gradient[j]
    if math.isnan(dot + square):
        return -1
    if square > 0.0:
        for j in range(v.shape[0]):
            v[j] -= 2.0 * dot / square * scratch[j]
    return 0


def gaussian_reference(metric, mean, model, name, words):
    """`DenseReference` or `DiagonalReference`, of covariance M⁻¹, of what a user gave as `metric`, or a `ValueError`.

    "diagonal" is the diagonal of the Hessian at `mean`, "dense" the whole, and "auto" is "dense" where that is one of
    the `words` that the process `name` knows. Without it the metric must be diagonal.
    """
    d, diagonal_only = model.dim, "dense" not in words
    if isinstance(metric, (DenseReference, DiagonalReference)):
        return metric
    made = check_metric(metric, d, name, words, diagonal=diagonal_only)
    if made is None:
        return DiagonalReference(np.ones(d))
    if made == "diagonal" or made == "auto" and diagonal_only:
        diagonal = hessian_diagonal(model, mean)
        if not np.all(diagonal > 0.0):
            what = "the Hessian at `mean` has diagonal entries that are not positive"
            raise unlike_a_density(model, f"`metric` must be given: {what}.")
        _refuse_kink(model, mean, diagonal)
        return DiagonalReference(1.0 / diagonal)
    if isinstance(made, str):
        if d > DENSE:
            raise ValueError(f'`metric` must be given, or "diagonal", above {DENSE} dimensions; the model has {d}.')
        hessian = model.hessian(mean)
        try:
            np.linalg.cholesky(hessian)
        except np.linalg.LinAlgError:
            what = "the Hessian at `mean`, which it is by default, is not positive definite"
            raise unlike_a_density(model, f"`metric` must be given: {what}.") from None
        _refuse_kink(model, mean, np.diag(hessian))
        inverse = np.linalg.inv(hessian)
        return DenseReference(0.5 * (inverse + inverse.T))
    if isinstance(metric, Metric) and metric.form == "covariance" and not isinstance(made, Diagonal):
        return DenseReference(metric.covariance(d))
    root = dense(made).root
    return (DiagonalReference if root.ndim == 1 else DenseReference).from_root(root)


def _refuse_kink(model, mean, diagonal):
    """On a kink differences of the gradient are as large as they are taken close by, and no reference."""
    curvature = float(np.mean(diagonal))
    if over_kink(model, mean, curvature) < 0.5 * curvature:
        raise ValueError(
            "`metric` must be given: U has a kink at `mean`, where its Hessian says nothing of how wide the density "
            "is; give pdmp.Metric(covariance=...) of about the posterior's variances."
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
