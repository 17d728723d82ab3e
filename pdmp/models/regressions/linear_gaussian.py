"""Linear regression with known noise and a Gaussian prior: a sum over data whose posterior is known exactly."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import linalg

from pdmp.models.base import Model
from pdmp.models.regressions.design import data_and_coordinates, gram, read_design, stays
from pdmp.models.targets.gaussian import Gaussian
from pdmp.native.classes import Compiled, compiled


class LinearGaussian(Model):
    r"""Posterior of θ ~ N(0, prior_scale² I) given xₙ | θ ~ N(aₙ·θ, noise_scale²), n = 1, …, N.

    One term for each datum, Uₙ(θ) = (xₙ - aₙ·θ)² / (2 σ²) with ∇Uₙ(θ) = -aₙ (xₙ - aₙ·θ) / σ², σ = noise_scale, and
    the prior |θ|² / (2 prior_scale²). The posterior is N(m, Λ⁻¹) with Λ = AᵀA/σ² + I/prior_scale² and
    m = Λ⁻¹Aᵀx/σ², so v·∇U(θ + vt) is affine in t with slope vᵀΛv: the exact clocks use Λ and touch no datum.

    Parameters
    ----------
    A : array_like, scipy.sparse matrix or memory-mapped array, shape (N, d)
        Row n is aₙ. A sparse matrix stays sparse, and so does Λ; a memory-mapped array of float32 or float64 in C order
        is read where it is.
    x : array_like, shape (N,)
        What was observed. Kept as the attribute `y`.
    noise_scale, prior_scale : float
        Standard deviations of one observation and of one coordinate under the prior.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or a scale is not positive.

    Attributes
    ----------
    law : Gaussian
        The posterior, as a target without data.

    References
    ----------
    The linear Gaussian model of Durmus, Şimşekli, Moulines, Badeau & Richard, "Stochastic gradient
    Richardson-Romberg Markov chain Monte Carlo", NeurIPS 2016.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LinearGaussian([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    >>> model.mode()
    array([1., 1.])
    """

    A: np.ndarray
    y: np.ndarray
    noise_precision: float
    prior_precision: float
    law: Compiled

    def __new__(cls, A=None, *args, **kwargs):
        if cls is LinearGaussian and stays(A):
            return super().__new__(LinearRows)
        return super().__new__(cls)

    def __init__(self, A: ArrayLike, x: ArrayLike, noise_scale: float = 1.0, prior_scale: float = 1.0):
        gram, n, d = self.read_features(A)
        y = np.array(x, dtype=float)
        if y.shape != (n,):
            raise ValueError(f"`x` must have one entry for each row of `A`, shape ({n},); got {y.shape}.")
        if not np.all(np.isfinite(y)):
            raise ValueError("`x` must be finite.")
        for name, scale in (("noise_scale", noise_scale), ("prior_scale", prior_scale)):
            if np.ndim(scale) != 0 or not 0.0 < scale < math.inf:
                raise ValueError(f"`{name}` must be a positive number, got {scale}.")
        super().__init__(dim=d, n_data=n)
        self.y = y
        self.noise_precision, self.prior_precision = 1.0 / float(noise_scale) ** 2, 1.0 / float(prior_scale) ** 2
        pull = self.noise_precision * self.features_times(y)
        if sparse.issparse(gram):
            precision = sparse.csc_array(self.noise_precision * gram + self.prior_precision * sparse.eye_array(d))
            precision = 0.5 * (precision + precision.T)
            self.law = Gaussian(np.atleast_1d(linalg.spsolve(precision, pull)), precision)
        else:
            precision = self.noise_precision * gram + self.prior_precision * np.eye(d)
            precision = 0.5 * (precision + precision.T)
            self.law = Gaussian(np.linalg.solve(precision, pull), precision)

    def read_features(self, A: ArrayLike) -> Any:
        """Keep the features; AᵀA, N and d."""
        if sparse.issparse(A):
            raise ValueError(
                f"`A` must be dense for {type(self).__name__}; pdmp.models.LinearGaussian takes it sparse."
            )
        A = np.array(A, dtype=float, order="C")
        if A.ndim != 2 or A.size == 0:
            raise ValueError(f"`A` must have shape (N, d), N and d at least 1; got {A.shape}.")
        if not np.all(np.isfinite(A)):
            raise ValueError("`A` must be finite.")
        self.A = A
        return A.T @ A, *A.shape

    def features_times(self, y: ArrayLike) -> np.ndarray:
        """Aᵀy."""
        return self.A.T @ y

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += x[j] * x[j]
        return 0.5 * self.prior_precision * total

    @compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.prior_precision * x[j]

    @compiled
    def prior_partial(self, x, j):
        return self.prior_precision * x[j]

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return self.prior_precision * v[j] * v[j]

    @compiled
    def term_lipschitz(self, i, scale, out):
        """|aᵢⱼ| |scale ∘ aᵢ| / noise_scale²."""
        total = 0.0
        for j in range(self.dim):
            a = scale[j] * self.A[i, j]
            total += a * a
        total = self.noise_precision * math.sqrt(total)
        for j in range(self.dim):
            out[j] = total * abs(self.A[i, j])

    @compiled
    def term_potential(self, x, i):
        residual = self.y[i]
        for j in range(self.dim):
            residual -= self.A[i, j] * x[j]
        return 0.5 * self.noise_precision * (residual * residual)

    @compiled
    def add_term_gradient(self, x, i, out):
        residual = self.y[i]
        for j in range(self.dim):
            residual -= self.A[i, j] * x[j]
        weight = -self.noise_precision * residual
        for j in range(self.dim):
            out[j] += weight * self.A[i, j]

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            i = rows[k]
            residual, along = self.y[i], 0.0
            for j in range(self.dim):
                residual -= self.A[i, j] * x[j]
                along += self.A[i, j] * v[j]
            weight = -self.noise_precision * residual
            for j in range(self.dim):
                out[j] += weight * self.A[i, j]
            p = weight * along
            first += p
            second += p * p
        return first, second

    @compiled
    def curvature_bound(self, v):
        """vᵀΛv, exactly."""
        return self.law.curvature_bound(v)

    @compiled
    def hessian_product(self, v, out):
        """out = Λv, at any x; no datum is looked at."""
        self.law.hessian_product(v, out)

    @compiled
    def ray_begin(self, x, v, ray):
        self.law.ray_begin(x, v, ray)

    @compiled
    def ray_turn(self, x, s, v, ray):
        self.law.ray_turn(x, s, v, ray)

    @compiled
    def ray_derivatives(self, s, ray):
        return self.law.ray_derivatives(s, ray)

    @compiled
    def ray_bound(self, s, h, ray):
        return self.law.ray_bound(s, h, ray)

    @compiled
    def ray_gradient(self, x, s, ray, out):
        self.law.ray_gradient(x, s, ray, out)

    @compiled
    def partial_curvature_bounds(self, v, out):
        """out[i] = vᵢ (Λv)ᵢ, exactly."""
        self.law.partial_curvature_bounds(v, out)

    @compiled
    def affine_partial(self, x, v, moved, now, i):
        """∂ᵢU at time `now` and its slope (Λv)ᵢ, coordinate j having been at x[j] at time moved[j]."""
        return self.law.affine_partial(x, v, moved, now, i)

    @compiled
    def add_factor_gradient(self, x, f, out):
        """Of datum f, or of the prior of coordinate f - N."""
        if f < self.n_data:
            self.add_term_gradient(x, f, out)
        else:
            out[f - self.n_data] += self.prior_precision * x[f - self.n_data]

    @compiled
    def affine_factor(self, x, v, moved, now, f):
        """v·∇U_f at time `now` and its slope, coordinate j having been at x[j] at time moved[j]."""
        if f >= self.n_data:
            j, p = f - self.n_data, self.prior_precision
            return p * v[j] * (x[j] + v[j] * (now - moved[j])), p * v[j] * v[j]
        residual, along = self.y[f], 0.0
        for j in range(self.dim):
            residual -= self.A[f, j] * (x[j] + v[j] * (now - moved[j]))
            along += self.A[f, j] * v[j]
        return -self.noise_precision * residual * along, self.noise_precision * along * along

    # -- Python ---------------------------------------------------------------------------------------------------

    def factors(self) -> list | tuple | None:
        """A factor for each datum, on the coordinates where its row of `A` is not zero; one for each prior."""
        return data_and_coordinates(self.A)

    def slab_density(self) -> np.ndarray | None:
        return np.full(self.dim, math.sqrt(self.prior_precision / (2.0 * math.pi)))

    def ray_room(self) -> int:
        """Length of the array that holds a ray."""
        return self.law.ray_room()

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (d,), and covariance, shape (d, d), of the posterior."""
        return self.law.mode(), self.law.covariance()

    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """Pattern of Λ: (indptr, indices) of its rows."""
        return self.law.neighbours()

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """The posterior mean, shape (dim,)."""
        return self.law.mode()

    def hessian(self, x: ArrayLike | None = None) -> np.ndarray:
        """Λ, shape (dim, dim); the same at every x."""
        return self.law.hessian()

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Λ twice: it is the Hessian everywhere."""
        return self.law.hessian_bounds()

    def prior_hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The prior's precision matrix, twice."""
        precision = self.prior_precision * np.eye(self.dim)
        return precision, precision

    def curvature(self, x: ArrayLike | None = None, probes: int | None = None) -> float:
        """Trace of Λ divided by `dim`."""
        return self.law.curvature()

    def rearranged(self, rows: np.ndarray) -> Model | None:
        """The same model with its data in the order `rows`."""
        other = copy.copy(self)
        other.A, other.y = np.ascontiguousarray(self.A[rows]), self.y[rows]
        other.n_data = len(other.y)
        return other

    def predict(self, x: ArrayLike, A: ArrayLike) -> np.ndarray:
        """Expected observations A·x for positions x, shape (..., d), and rows A, shape (n, d): shape (..., n)."""
        return np.asarray(x, dtype=float) @ np.asarray(A, dtype=float).T

    def log_likelihood(self, x: ArrayLike, A: ArrayLike, y: ArrayLike | None) -> np.ndarray:
        """Log density of each observation in y, shape (n,), at positions x, shape (..., d): shape (..., n)."""
        residuals = np.asarray(y, dtype=float) - self.predict(x, A)
        return 0.5 * (math.log(self.noise_precision / (2.0 * math.pi)) - self.noise_precision * residuals**2)


class LinearRows(LinearGaussian):
    """What `LinearGaussian` is for a sparse or memory-mapped `A`; see there. The features are the attribute `X`."""

    design: Compiled

    def read_features(self, A):
        self.X, self.design = read_design(A)
        self.A = np.zeros((0, 0))  # what the dense model keeps
        return self.X.T @ self.X if sparse.issparse(self.X) else gram(self.X), *self.X.shape

    def features_times(self, y):
        return np.asarray(self.X.T @ y, dtype=float)

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def residual(self, x, i):
        """aᵢ·x - yᵢ."""
        return self.design.product(x, i) - self.y[i]

    @compiled
    def term_lipschitz(self, i, scale, out):
        """|aᵢⱼ| |scale ∘ aᵢ| / noise_scale²."""
        total = 0.0
        first, last = self.design.row_range(i)
        for k in range(first, last):
            a = scale[self.design.column(k)] * self.design.entry(i, k)
            total += a * a
        total = self.noise_precision * math.sqrt(total)
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(first, last):
            out[self.design.column(k)] = total * abs(self.design.entry(i, k))

    @compiled
    def term_potential(self, x, i):
        residual = self.residual(x, i)
        return 0.5 * self.noise_precision * (residual * residual)

    @compiled
    def add_term_gradient(self, x, i, out):
        self.design.add_row(i, self.noise_precision * self.residual(x, i), out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            weight = self.noise_precision * self.residual(x, rows[k])
            self.design.add_row(rows[k], weight, out)
            p = weight * self.design.product(v, rows[k])
            first += p
            second += p * p
        return first, second

    @compiled
    def fetch(self, i):
        self.design.fetch(i)

    @compiled
    def affine_factor(self, x, v, moved, now, f):
        if f >= self.n_data:
            j, p = f - self.n_data, self.prior_precision
            return p * v[j] * (x[j] + v[j] * (now - moved[j])), p * v[j] * v[j]
        residual, along = -self.y[f], 0.0
        first, last = self.design.row_range(f)
        for k in range(first, last):
            j = self.design.column(k)
            a = self.design.entry(f, k)
            residual += a * (x[j] + v[j] * (now - moved[j]))
            along += a * v[j]
        return self.noise_precision * residual * along, self.noise_precision * along * along

    # -- Python ---------------------------------------------------------------------------------------------------

    def factors(self):
        return data_and_coordinates(self.X)

    def rearranged(self, rows):
        design = self.design.taken(rows)
        if design is None:
            return None
        other = copy.copy(self)
        other.X, other.design, other.y = self.X[rows], design, self.y[rows]
        other.n_data = len(other.y)
        return other

    def predict(self, x, A):
        """Expected observations A·x for positions x, shape (..., d), and rows A, shape (n, d): shape (..., n)."""
        if sparse.issparse(A):
            x = np.asarray(x, dtype=float)
            return np.asarray((A @ x.reshape(-1, self.dim).T).T).reshape(*x.shape[:-1], A.shape[0])
        return super().predict(x, A)
