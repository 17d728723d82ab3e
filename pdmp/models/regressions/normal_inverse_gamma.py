"""Linear regression with unknown noise and its conjugate prior: a posterior in closed form that is not Gaussian."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.base import Model
from pdmp.models.derived import reordered
from pdmp.models.regressions.design import gram, name_coefficients, read_design
from pdmp.models.regressions.glm import LinearPredictions, read_vector
from pdmp.models.transforms import Log
from pdmp.native.arguments import number, positive, real, same_rows
from pdmp.native.classes import Compiled, compiled, vectorised
from pdmp.native.definite import definite, is_definite
from pdmp.native.vectors import BLOCK, buffer, exp

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class NormalInverseGamma(Model):
    r"""The normal-inverse-gamma law of (β, γ): σ² = exp γ ~ InvGamma(shape, scale), β | γ ~ N(mean, σ² precision⁻¹).

    U(β, γ) = a γ + e^{-γ} P(β), with a = shape + d/2 and P(β) = scale + ½ (β - mean)ᵀ precision (β - mean). Along a
    path with γ' = w the second derivative of U is e^{-γ} (P'' - 2 w P' + w² P): a monotone function times a convex
    quadratic in time, each largest at an end of a piece of the path (``thinning=pdmp.thinning.LocalHessian()``).

    Parameters
    ----------
    mean : array_like, shape (d,)
    precision : array_like, shape (d, d)
        Λ, positive definite.
    shape, scale : float
        Of the inverse gamma law, positive.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.NormalInverseGamma([0.0], [[1.0]], shape=3.0, scale=2.0)
    >>> model.dim
    2
    """

    knows_constants = False

    mean: np.ndarray
    precision: np.ndarray
    shape: float
    scale: float
    weight: float

    def __init__(self, mean: ArrayLike, precision: ArrayLike, shape: float, scale: float) -> None:
        mean, precision = np.array(real("mean", mean)), np.array(precision, dtype=float, order="C")
        d, shape, scale = len(np.atleast_1d(mean)), positive("shape", shape), positive("scale", scale)
        if mean.shape != (d,) or precision.shape != (d, d) or not np.isfinite(mean.sum() + precision.sum()):
            raise ValueError(
                f"`mean` and `precision` must be finite, of shapes (d,) and (d, d), got {mean.shape} and "
                f"{precision.shape}."
            )
        super().__init__(d + 1, variables={"coefficients": (d,), "variance": ()}, transforms={"variance": Log()})
        self.mean, self.precision = mean, np.ascontiguousarray(definite("precision", precision))
        self.shape, self.scale, self.weight = shape, scale, shape + 0.5 * d

    @compiled
    def pulled(self, x, j):
        """(Λ(β - mean))ⱼ."""
        total = 0.0
        for k in range(self.dim - 1):
            total += self.precision[j, k] * (x[k] - self.mean[k])
        return total

    @compiled
    def velocity_changed(self, v, j):
        """(Λ v)ⱼ."""
        total = 0.0
        for k in range(self.dim - 1):
            total += self.precision[j, k] * v[k]
        return total

    @compiled
    def spread(self, x):
        """P(β)."""
        total = 0.0
        for j in range(self.dim - 1):
            total += (x[j] - self.mean[j]) * self.pulled(x, j)
        return self.scale + 0.5 * total

    @compiled
    def potential(self, x):
        gamma = x[self.dim - 1]
        return self.weight * gamma + exp(-gamma) * self.spread(x)

    @compiled
    def add_gradient(self, x, out):
        last = self.dim - 1
        e = exp(-x[last])
        for j in range(last):
            out[j] += e * self.pulled(x, j)
        out[last] += self.weight - e * self.spread(x)

    @compiled
    def along(self, x, v):
        """P, P' and P'' where the path is, β' = v."""
        first, second = 0.0, 0.0
        for j in range(self.dim - 1):
            first += v[j] * self.pulled(x, j)
            second += v[j] * self.velocity_changed(v, j)
        return self.spread(x), first, second

    @compiled
    def curvature_bound_within(self, x, v, s):
        last = self.dim - 1
        w, (p, first, second) = v[last], self.along(x, v)
        here = second - 2.0 * w * first + w * w * p
        first, p = first + second * s, p + s * (first + 0.5 * second * s)
        there = second - 2.0 * w * first + w * w * p
        return exp(-min(x[last], x[last] + w * s)) * max(here, there, 0.0)

    @compiled
    def partial_curvature_bounds_within(self, x, v, s, out):
        """vⱼ e^{-γ} ((Λv)ⱼ - w (Λ(β - mean))ⱼ), and w e^{-γ} (wP - P') for γ: linear and convex, at their ends."""
        last = self.dim - 1
        w, most = v[last], exp(-min(x[last], x[last] + v[last] * s))
        for j in range(last):
            turned = self.velocity_changed(v, j)
            here = v[j] * (turned - w * self.pulled(x, j))
            out[j] = most * max(here, here - v[j] * w * turned * s, 0.0)
        p, first, second = self.along(x, v)
        here = w * (w * p - first)
        first, p = first + second * s, p + s * (first + 0.5 * second * s)
        out[last] = most * max(here, w * (w * p - first), 0.0)

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """(mean, log(scale / (shape + d/2))), shape (d + 1,): of the density of (β, γ)."""
        return np.append(self.mean, math.log(self.scale / self.weight))

    def hessian(self, x: ArrayLike) -> np.ndarray:
        x = self.check(x)
        e, delta = math.exp(-x[-1]), x[:-1] - self.mean
        pulled = self.precision @ delta
        corner = self.scale + 0.5 * delta @ pulled
        return e * np.block([[self.precision, -pulled[:, None]], [-pulled[None, :], np.array([[corner]])]])

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (d + 1,), and covariance, shape (d + 1, d + 1), of (β, γ); infinite where they do not exist.

        β has mean `mean` and covariance scale / (shape - 1) Λ⁻¹; γ has mean log(scale) - ψ(shape) and variance
        ψ'(shape); they are uncorrelated.
        """
        from scipy import special

        mean = np.append(self.mean, math.log(self.scale) - special.digamma(self.shape))
        covariance = np.zeros((self.dim, self.dim))
        covariance[-1, -1] = special.polygamma(1, self.shape)
        factor = self.scale / (self.shape - 1.0) if self.shape > 1.0 else np.inf
        covariance[:-1, :-1] = factor * np.linalg.inv(self.precision)
        return mean, covariance

    def coefficients_law(self) -> Any:
        """The marginal law of β, a frozen `scipy.stats.multivariate_t` with 2 shape degrees of freedom."""
        from scipy import stats

        spread = self.scale / self.shape * np.linalg.inv(self.precision)
        return stats.multivariate_t(self.mean, 0.5 * (spread + spread.T), df=2.0 * self.shape)

    def variance_law(self) -> Any:
        """The marginal law of σ², a frozen `scipy.stats.invgamma`."""
        from scipy import stats

        return stats.invgamma(self.shape, scale=self.scale)


@vectorised
def _residuals(model, x, rows, start, n, weights):
    """weights[k] = y - a·β of row rows[start + k], for the next block of the n rows; returns its length."""
    m = min(BLOCK, n - start)
    model.design.products(x, rows, start, n, weights)
    for k in range(m):
        weights[k] = model.y[rows[start + k]] - weights[k]
    return m


@vectorised
def _squares(weights, m):
    total = 0.0
    for k in range(m):
        total += weights[k] * weights[k]
    return total


@vectorised
def _batch_gradient(model, x, rows, n, out):
    weights, last = buffer(), model.dim - 1
    e = exp(-x[last])
    for start in range(0, n, BLOCK):
        m = _residuals(model, x, rows, start, n, weights)
        out[last] += 0.5 * (m - e * _squares(weights, m))
        for k in range(m):
            weights[k] *= -e
        model.design.add_rows(rows, start, n, weights, out)


@vectorised
def _block_gradient(model, x, first, stop, out):
    weights, last = buffer(), model.dim - 1
    e = exp(-x[last])
    for start in range(first, stop, BLOCK):
        m = min(BLOCK, stop - start)
        model.design.block_products(x, start, m, weights)
        for k in range(m):
            weights[k] = model.y[start + k] - weights[k]
        out[last] += 0.5 * (m - e * _squares(weights, m))
        for k in range(m):
            weights[k] *= -e
        model.design.add_block(start, m, weights, out)


@vectorised
def _batch_projection(model, x, v, rows, n, out):
    weights, projections, last = buffer(), buffer(), model.dim - 1
    e = exp(-x[last])
    first, second = 0.0, 0.0
    for start in range(0, n, BLOCK):
        m = _residuals(model, x, rows, start, n, weights)
        model.design.products(v, rows, start, start + m, projections)
        for k in range(m):
            down = 0.5 - 0.5 * e * weights[k] * weights[k]
            p = v[last] * down - e * weights[k] * projections[k]
            out[last] += down
            first += p
            second += p * p
            weights[k] *= -e
        model.design.add_rows(rows, start, n, weights, out)
    return first, second


class NormalInverseGammaRegression(LinearPredictions, Model):
    r"""Linear regression yᵢ ~ N(aᵢ·β, σ²) with the normal-inverse-gamma prior, in (β, γ = log σ²).

    σ² ~ InvGamma(shape, scale) and β | σ² ~ N(prior_mean, σ² prior_covariance). One term for each datum,
    Uᵢ = ½ log 2π + γ/2 + e^{-γ} (yᵢ - aᵢ·β)² / 2. The posterior is again normal-inverse-gamma: `posterior()` has its
    moments, `law` is the same target without data, of which one gradient costs O(d²), whatever N.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix or memory-mapped array, shape (N, d)
        Features; row i is aᵢ. A sparse matrix stays sparse; a memory-mapped array is read where it is.
    y : array_like, shape (N,)
        Targets.
    prior_mean : float or array_like, shape (d,), default 0.0
    prior_covariance : float or array_like, shape (d,) or (d, d), default 100.0
        Of β, in units of σ²: a multiple of the identity, a diagonal, or a matrix. ``np.inf`` in the first two is a flat
        prior. A number is not for the intercept, whose prior is then flat.
    shape, scale : float, default 1.0
        Of the inverse gamma prior of σ²; both 0 for a flat prior of γ.
    intercept : bool, default False
        Whether to append a column of ones to `X`; its coefficient is the last of β.
    dtype : {numpy.float64, numpy.float32}, optional
        How features are stored for compiled code.

    Attributes
    ----------
    law : NormalInverseGamma
        The posterior, as a target without data; with ``law.coefficients_law()`` and ``law.variance_law()``.

    Raises
    ------
    ValueError
        For data that do not fit or are not finite, parameters out of range, and a posterior that is improper.

    References
    ----------
    Gelman et al. (2013), Bayesian Data Analysis, 3rd ed., chapter 14.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 2))
    >>> model = pdmp.models.NormalInverseGammaRegression(X, X @ [1.0, -1.0])
    >>> model.posterior()[0].shape
    (3,)
    """

    knows_constants = False
    offset = None

    design: Compiled
    y: np.ndarray
    law: Compiled
    prior: Compiled  #: of the same kind; it may be improper

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_mean: ArrayLike = 0.0,
        prior_covariance: ArrayLike = 100.0,
        shape: float | None = 1.0,
        scale: float = 1.0,
        intercept: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        table = X
        same_rows(X=X, y=y)
        X, design = read_design(X, dtype, intercept)
        n, d = X.shape
        variables = {"coefficients": (d - bool(intercept),), "intercept": (), "variance": ()}
        if not intercept:
            del variables["intercept"]
        super().__init__(d + 1, n, name_coefficients(variables, table), transforms={"variance": Log()})
        self.X, self.design, self.y, self.intercept = X, design, read_vector("y", y, n), bool(intercept)
        self.shape, self.scale = number("shape", shape, least=0.0), number("scale", scale, least=0.0)
        mean = np.array(real("prior_mean", prior_mean))
        if mean.shape not in ((), (d,)) or not np.all(np.isfinite(mean)):
            raise ValueError(f"`prior_mean` must be a finite number or of shape ({d},), got {prior_mean}.")
        self.prior_mean = np.broadcast_to(mean, (d,)).copy()
        self.prior_precision, rank = _prior_precision(prior_covariance, d, self.intercept)
        self.law = self._law(rank)
        self.prior = prior = copy.copy(self.law)
        prior.mean, prior.precision = self.prior_mean, np.ascontiguousarray(self.prior_precision)
        prior.shape, prior.scale, prior.weight = self.shape, self.scale, self.shape + 0.5 * rank

    def _law(self, rank):
        n, d = self.X.shape
        precision = self.prior_precision + gram(self.X)
        pull = self.prior_precision @ self.prior_mean
        # A flat prior leaves what sums over n rows round; one that is proper makes the posterior so.
        if not is_definite(precision, 10.0 * math.sqrt(n) * np.finfo(float).eps if rank < d else 0.0):
            raise ValueError(
                "the posterior is improper: columns of `X` are linearly dependent, and the prior of their coefficients "
                "is flat. Give a finite `prior_covariance`."
            )
        mean = np.linalg.solve(precision, pull + self.X.T @ self.y)
        shape = self.shape + 0.5 * (n - d + rank)
        # ψ + ½ (|y - Xμ|² + (μ - μ₀)ᵀ V⁻¹ (μ - μ₀)) at the posterior mean μ: without cancellation.
        residuals, away = self.y - self.X @ mean, mean - self.prior_mean
        scale = self.scale + 0.5 * (residuals @ residuals + away @ self.prior_precision @ away)
        if not (shape > 0.0 and scale > 0.0):
            raise ValueError(
                "the posterior of the variance is improper: there are too few data, or they are fitted exactly. Give "
                "`shape` and `scale` above 0."
            )
        return NormalInverseGamma(mean, precision, shape, scale)

    @compiled
    def prior_potential(self, x):
        return self.prior.potential(x)

    @compiled
    def add_prior_gradient(self, x, out):
        self.prior.add_gradient(x, out)

    @compiled
    def residual(self, x, i):
        return self.y[i] - self.design.product(x, i)

    @compiled
    def term_potential(self, x, i):
        gamma, r = x[self.dim - 1], self.residual(x, i)
        return HALF_LOG_2PI + 0.5 * (gamma + exp(-gamma) * r * r)

    @compiled
    def add_term_gradient(self, x, i, out):
        e, r = exp(-x[self.dim - 1]), self.residual(x, i)
        self.design.add_row(i, -e * r, out)
        out[self.dim - 1] += 0.5 * (1.0 - e * r * r)

    @compiled
    def fetch(self, i):
        self.design.fetch(i)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        _block_gradient(self, x, first, last, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        _batch_gradient(self, x, rows, n, out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return _batch_projection(self, x, v, rows, n, out)

    @compiled
    def curvature_bound_within(self, x, v, s):
        """Of the posterior's closed form: no datum is looked at."""
        return self.law.curvature_bound_within(x, v, s)

    @compiled
    def partial_curvature_bounds_within(self, x, v, s, out):
        self.law.partial_curvature_bounds_within(x, v, s, out)

    def rearranged(self, rows: np.ndarray) -> Model | None:
        return reordered(self, rows, self._of_rows)

    def _of_rows(self, rows):
        design = self.design.taken(rows)
        return None if design is None else {"design": design, "y": self.y[rows]}

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (d + 1,), and covariance, shape (d + 1, d + 1), of (β, γ) under the posterior."""
        return self.law.posterior()

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """Of the density of (β, γ), shape (d + 1,)."""
        return self.law.mode()

    def hessian(self, x: ArrayLike) -> np.ndarray:
        return self.law.hessian(self.check(x))

    def mean(self, z: np.ndarray) -> np.ndarray:
        """Expected targets."""
        return z

    def log_density_at(self, x: np.ndarray, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        gamma = real("x", x)[..., -1:]
        return -HALF_LOG_2PI - 0.5 * (gamma + np.exp(-gamma) * (y - z) ** 2)


def _prior_precision(covariance, d, intercept):
    """V⁻¹ (d, d) and its rank, or a `ValueError`."""
    V = np.array(real("covariance", covariance))
    wanted = "`prior_covariance` must be positive, a number or of shape (d,) or (d, d)"
    if V.shape == (d, d) and V.ndim == 2:
        if not np.all(np.isfinite(V)) or not np.allclose(V, V.T, rtol=1e-12, atol=0.0):
            raise ValueError(f"{wanted}, finite and symmetric where it is a matrix.")
        if not is_definite(V):
            raise ValueError(f"{wanted}; the matrix given is not positive definite.")
        inverse = np.linalg.inv(V)
        return np.ascontiguousarray(0.5 * (inverse + inverse.T)), d
    if V.shape not in ((), (d,)) or not np.all(V > 0.0):
        raise ValueError(f"{wanted} with d = {d}, got {covariance}.")
    precision = np.broadcast_to(1.0 / V, (d,)).copy()
    if intercept and V.ndim == 0:
        precision[-1] = 0.0
    return np.diag(precision), int(np.sum(precision > 0.0))
