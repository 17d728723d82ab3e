"""A mixture of normal distributions with any weights, means and covariances."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import real
from pdmp.native.classes import compiled


class GaussianMixture(Model):
    r"""The density Σₖ wₖ N(x; mₖ, Sₖ).

    ∇U(x) = Σₖ rₖ(x) Pₖ (x - mₖ), with Pₖ = Sₖ⁻¹ and the probabilities rₖ(x) that x is of component k. The Hessian is
    Σₖ rₖ Pₖ less a covariance matrix, so v·H(x)v <= maxₖ v·Pₖv for every x: BPS by affine thinning is exact.

    Parameters
    ----------
    means : array_like, shape (K, d)
    covariances : array_like, shape (K, d, d), (K, d), (K,) or a number
        Full; diagonals; one variance for each component, or for all.
    weights : array_like, shape (K,), optional
        Positive; divided by their sum. Equal ones when omitted.

    Raises
    ------
    ValueError
        If shapes do not fit, a number is not finite, a weight is not positive, or a covariance is not positive
        definite.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.GaussianMixture([[-2.0], [2.0]], 1.0, weights=[1.0, 3.0])
    >>> model.moments()[0]
    array([1.])
    """

    means: np.ndarray
    precisions: np.ndarray  #: (K, d, d)
    offsets: np.ndarray  #: (K,) log of wₖ |Pₖ|^½ (2π)^(-d/2)

    def __init__(self, means: ArrayLike, covariances: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.means = np.array(means, dtype=float, order="C")
        if self.means.ndim != 2 or self.means.size == 0:
            raise ValueError(f"`means` must have shape (K, d), K and d at least 1; got {self.means.shape}.")
        k, d = self.means.shape
        covariances = np.array(real("covariances", covariances))
        if covariances.shape in ((), (k,)):
            covariances = np.broadcast_to(covariances, (k,))[:, None, None] * np.eye(d)
        elif covariances.shape == (k, d):
            covariances = covariances[:, :, None] * np.eye(d)
        if covariances.shape != (k, d, d):
            raise ValueError(
                f"`covariances` must be a number or have shape ({k},), ({k}, {d}) or ({k}, {d}, {d}), as `means` says; "
                f"got {covariances.shape}."
            )
        weights = np.ones(k) if weights is None else np.array(real("weights", weights))
        if weights.shape != (k,):
            raise ValueError(f"`weights` must have shape ({k},), as `means` says; got {weights.shape}.")
        for name, array in (("means", self.means), ("covariances", covariances), ("weights", weights)):
            if not np.all(np.isfinite(array)):
                raise ValueError(f"`{name}` must be finite.")
        if not np.all(weights > 0.0):
            raise ValueError(f"`weights` must be positive, got {weights.min():g}.")
        if np.abs(covariances - covariances.swapaxes(1, 2)).max() > 1e-8 * np.abs(covariances).max():
            raise ValueError("`covariances` must be symmetric.")
        for i, matrix in enumerate(covariances):
            low = np.linalg.eigvalsh(matrix)[0]
            if not low > 0.0:
                raise ValueError(f"`covariances` must be positive definite; {i} has the eigenvalue {low:.3g}.")
        self.weights, self.covariances = weights / weights.sum(), covariances
        inverse = np.linalg.inv(covariances)
        self.precisions = np.ascontiguousarray(0.5 * (inverse + inverse.swapaxes(1, 2)))
        log_det = np.linalg.slogdet(covariances)[1]
        self.offsets = np.log(self.weights) - 0.5 * (log_det + d * math.log(2.0 * math.pi))
        super().__init__(dim=d, initial=self.means[int(np.argmax(self.offsets))])

    @compiled
    def _log_part(self, x, k):
        """log of wₖ N(x; mₖ, Sₖ)."""
        total = 0.0
        for i in range(self.dim):
            row = 0.0
            for j in range(self.dim):
                row += self.precisions[k, i, j] * (x[j] - self.means[k, j])
            total += row * (x[i] - self.means[k, i])
        return self.offsets[k] - 0.5 * total

    @compiled
    def _log_density(self, x):
        top, total = -math.inf, 0.0
        for k in range(self.offsets.shape[0]):
            part = self._log_part(x, k)
            if part > top:
                total = total * math.exp(top - part) + 1.0
                top = part
            else:
                total += math.exp(part - top)
        return top + math.log(total)

    @compiled
    def potential(self, x):
        return -self._log_density(x)

    @compiled
    def add_gradient(self, x, out):
        whole = self._log_density(x)
        for k in range(self.offsets.shape[0]):
            share = math.exp(self._log_part(x, k) - whole)
            if share > 0.0:
                for i in range(self.dim):
                    row = 0.0
                    for j in range(self.dim):
                        row += self.precisions[k, i, j] * (x[j] - self.means[k, j])
                    out[i] += share * row

    @compiled
    def curvature_bound(self, v):
        """maxₖ v·Pₖv."""
        largest = 0.0
        for k in range(self.offsets.shape[0]):
            total = 0.0
            for i in range(self.dim):
                row = 0.0
                for j in range(self.dim):
                    row += self.precisions[k, i, j] * v[j]
                total += v[i] * row
            largest = max(largest, total)
        return largest

    def responsibilities(self, x: ArrayLike) -> np.ndarray:
        """Probabilities that points `x` (..., d) are of each component, (..., K)."""
        z = real("x", x)[..., None, :] - self.means
        logs = self.offsets - 0.5 * np.einsum("...ki,kij,...kj->...k", z, self.precisions, z)
        shares = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return shares / shares.sum(axis=-1, keepdims=True)

    def hessian(self, x: ArrayLike) -> np.ndarray:
        x = self.check(x)
        shares = self.responsibilities(x)
        pulls = np.einsum("kij,kj->ki", self.precisions, x - self.means)
        mean = shares @ pulls
        return np.tensordot(shares, self.precisions, 1) - (shares * (pulls - mean).T) @ (pulls - mean)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean (d,) and covariance (d, d), in closed form."""
        mean = self.weights @ self.means
        away = self.means - mean
        return mean, np.tensordot(self.weights, self.covariances, 1) + (self.weights * away.T) @ away

    def exact_draws(self, n: int, seed: int | None = None) -> np.ndarray:
        """Independent draws from the distribution, (n, d)."""
        rng = np.random.default_rng(seed)
        which = rng.choice(len(self.weights), n, p=self.weights)
        roots = np.linalg.cholesky(self.covariances)
        return self.means[which] + np.einsum("nij,nj->ni", roots[which], rng.standard_normal((n, self.dim)))
