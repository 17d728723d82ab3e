"""Linear regression with known noise and a Gaussian prior: a sum over data whose posterior is known exactly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import linalg

from pdmp.models.derived import Derived, PriorOfEach, reordered
from pdmp.models.normal_prior import IsotropicPrior
from pdmp.models.regressions.design import (
    Dense,
    data_and_coordinates,
    gram,
    name_coefficients,
    read_design,
    row_lipschitz,
    stays,
)
from pdmp.models.targets.gaussian import Gaussian
from pdmp.native.arguments import matrix, positive, real, same_rows
from pdmp.native.classes import Compiled, compiled
from pdmp.native.explanations import explained


class LinearGaussian(PriorOfEach, IsotropicPrior):
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
        What was observed.
    noise_scale, prior_scale : float, default 1.0
        Standard deviations of one observation and of one coordinate under the prior.

    Raises
    ------
    ValueError
        If shapes do not fit, an entry is not finite, or a scale is not positive.

    Attributes
    ----------
    A : ndarray or scipy.sparse.csr_array, shape (N, d)
        The features. They are also called `X`, as in other regressions.
    y : ndarray, shape (N,)
        What was observed.
    design : Dense, Sparse or Mapped
        How compiled code reads the features: `A` in memory, or a sparse or memory-mapped matrix.
    law : Gaussian
        The posterior, as a target without data.

    References
    ----------
    The linear Gaussian model of Durmus, Şimşekli, Moulines, Badeau & Richard (2016), Stochastic gradient
    Richardson-Romberg Markov chain Monte Carlo, NeurIPS.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LinearGaussian([[1.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    >>> model.mode()
    array([1., 1.])
    """

    design: Compiled
    y: np.ndarray
    noise_precision: float
    law: Compiled

    def __init__(self, A: ArrayLike, x: ArrayLike, noise_scale: float = 1.0, prior_scale: float = 1.0):
        table = A
        same_rows(A=A, x=x)
        A, design = read_design(A) if stays(A) else (matrix("A", A), None)
        n, d = A.shape
        y = np.array(real("x", x))
        if y.shape != (n,):
            raise ValueError(f"`x` must have one entry for each row of `A`, shape ({n},); got {y.shape}.")
        if not np.all(np.isfinite(y)):
            raise ValueError("`x` must be finite.")
        noise_scale, prior_scale = positive("noise_scale", noise_scale), positive("prior_scale", prior_scale)
        variables = name_coefficients({"coefficients": (d,)}, table) if hasattr(table, "columns") else None
        super().__init__(dim=d, n_data=n, variables=variables)
        self.A, self.y = A, y
        self.noise_precision, self.prior_precision = 1.0 / noise_scale**2, 1.0 / prior_scale**2
        self.design = Dense(A, d) if design is None else design
        pull = self.noise_precision * np.asarray(A.T @ y, dtype=float)
        if sparse.issparse(A):
            precision = sparse.csc_array(self.noise_precision * (A.T @ A) + self.prior_precision * sparse.eye_array(d))
            precision = 0.5 * (precision + precision.T)
            self.law = Gaussian(np.atleast_1d(linalg.spsolve(precision, pull)), precision)
        else:
            products = A.T @ A if design is None else gram(A)
            precision = self.noise_precision * products + self.prior_precision * np.eye(d)
            precision = 0.5 * (precision + precision.T)
            self.law = Gaussian(np.linalg.solve(precision, pull), precision)

    @property
    def X(self) -> np.ndarray:
        """The features, as `A`."""
        return self.A

    @compiled
    def term_lipschitz(self, i, scale, out):
        """|aᵢⱼ| |scale ∘ aᵢ| / noise_scale²."""
        row_lipschitz(self.design, i, scale, self.noise_precision, out)

    @compiled
    def residual(self, x, i):
        """aᵢ·x - yᵢ."""
        return self.design.product(x, i) - self.y[i]

    @compiled
    def term_potential(self, x, i):
        residual = self.residual(x, i)
        return 0.5 * self.noise_precision * (residual * residual)

    @compiled
    def add_term_gradient(self, x, i, out):
        self.design.add_row(i, self.noise_precision * self.residual(x, i), out)

    @compiled
    def fetch(self, i):
        self.design.fetch(i)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            product, along = self.design.both_products(x, v, rows[k])
            weight = self.noise_precision * (product - self.y[rows[k]])
            self.design.add_row(rows[k], weight, out)
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
    def affine_partial(self, x, v, times, now, i):
        """∂ᵢU at time `now` and its slope (Λv)ᵢ, coordinate j having been at x[j] at time times[j]."""
        return self.law.affine_partial(x, v, times, now, i)

    @compiled
    def affine_factor(self, x, v, times, now, f):
        """v·∇U_f at time `now` and its slope, coordinate j having been at x[j] at time times[j]."""
        if f >= self.n_data:
            j, p = f - self.n_data, self.prior_precision
            return p * v[j] * (x[j] + v[j] * (now - times[j])), p * v[j] * v[j]
        residual, along = -self.y[f], 0.0
        first, last = self.design.row_range(f)
        for k in range(first, last):
            j, a = self.design.column(k), self.design.entry(f, k)
            residual += a * (x[j] + v[j] * (now - times[j]))
            along += a * v[j]
        return self.noise_precision * residual * along, self.noise_precision * along * along

    def factors(self) -> list | tuple | None:
        """A factor for each datum, on the coordinates where its row of `A` is not zero; one for each prior."""
        return data_and_coordinates(self.A)

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

    def rearranged(self, rows: ArrayLike) -> LinearGaussian | None:
        return reordered(self, rows, self._of_rows)

    def _of_rows(self, rows):
        design = self.design.taken(rows)
        if design is None:
            return None
        A = self.A[rows] if sparse.issparse(self.A) else design.data
        return {"design": design, "y": self.y[rows], "A": A}

    def predict(self, x: ArrayLike, A: ArrayLike) -> np.ndarray:
        """Expected observations A·x for positions x, shape (..., d), and rows A, shape (n, d): shape (..., n)."""
        x = real("x", x)
        if sparse.issparse(A):
            return np.asarray((A @ x.reshape(-1, self.dim).T).T).reshape(*x.shape[:-1], A.shape[0])
        return x @ real("A", A).T

    def log_likelihood(self, x: ArrayLike, A: ArrayLike, y: ArrayLike | None) -> np.ndarray:
        """Log density of each observation in y, shape (n,), at positions x, shape (..., d): shape (..., n)."""
        same_rows(A=A, y=y)
        residuals = real("y", y) - self.predict(x, A)
        return 0.5 * (math.log(self.noise_precision / (2.0 * math.pi)) - self.noise_precision * residuals**2)

    def observed_data(self) -> dict[str, np.ndarray]:
        return {"x": self.y}

    @explained
    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return Derived.pointwise_log_likelihood(self, draws) + 0.5 * math.log(self.noise_precision / (2.0 * math.pi))
