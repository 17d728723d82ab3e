"""A posterior along a hyperbola: data that only know the product of two parameters."""

from __future__ import annotations

import functools
import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.arguments import positive, real
from pdmp.native.classes import compiled


class Hyperboloid(Model):
    r"""Posterior of w = (w₀, w₁) ~ N(0, prior_scale² I) given yᵢ | w ~ N(w₀w₁, noise_scale²), i = 1, …, N.

    One term for each datum, Uᵢ(w) = (yᵢ - w₀w₁)² / (2σ²) with ∇Uᵢ(w) = -(yᵢ - w₀w₁)/σ² · (w₁, w₀), σ = noise_scale,
    and the prior |w|² / (2 prior_scale²). The data leave w → (κw₀, w₁/κ) free: the mass lies along a hyperbola whose
    width falls like 1/|w|; where the data are around zero it is a cross with arms as long as the prior allows. The
    curvature has no bound and takes both signs, so there are no clocks with an exact bound for it.

    Parameters
    ----------
    y : array_like of shape (N,)
        The data.
    noise_scale : float, default 1.0
        σ, the standard deviation of a datum.
    prior_scale : float, default 100.0
        Standard deviation of the prior in each coordinate; c = 1/prior_scale² in [1]_.

    Raises
    ------
    ValueError
        If `y` is not a finite vector, or a scale is not positive.

    References
    ----------
    .. [1] Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler. ICML, supplement, section D
       (D.60).

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Hyperboloid([0.9, 1.1, 1.0])
    >>> model.dim, model.n_data
    (2, 3)
    """

    y: np.ndarray
    noise_precision: float
    prior_precision: float

    def __init__(self, y: ArrayLike, noise_scale: float = 1.0, prior_scale: ArrayLike = 100.0) -> None:
        y = np.array(real("y", y))
        if y.ndim != 1 or y.size == 0 or not np.all(np.isfinite(y)):
            raise ValueError(f"`y` must be a vector of at least one finite number, got shape {y.shape}.")
        super().__init__(dim=2, n_data=len(y), variables={"w": (2,)}, initial=[1.0, 0.1])
        self.y = y
        self.noise_precision = 1.0 / positive("noise_scale", noise_scale) ** 2
        self.prior_precision = 1.0 / positive("prior_scale", prior_scale) ** 2

    @classmethod
    def generated(cls, n_data: int = 1_000, product: float = 0.0, seed: int = 0, **options: Any) -> Self:
        """The model with N data drawn from N(product, noise_scale²); in [1]_ the product is 0, N = 1,000."""
        noise = options.get("noise_scale", 1.0) * np.random.default_rng(seed).standard_normal(n_data)
        return cls(product + noise, **options)

    @compiled
    def prior_potential(self, x):
        return 0.5 * self.prior_precision * (x[0] * x[0] + x[1] * x[1])

    @compiled
    def add_prior_gradient(self, x, out):
        out[0] += self.prior_precision * x[0]
        out[1] += self.prior_precision * x[1]

    @compiled
    def term_potential(self, x, i):
        residual = self.y[i] - x[0] * x[1]
        return 0.5 * self.noise_precision * (residual * residual)

    @compiled
    def add_term_gradient(self, x, i, out):
        weight = -self.noise_precision * (self.y[i] - x[0] * x[1])
        out[0] += weight * x[1]
        out[1] += weight * x[0]

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """N/σ² · [[w₁², 2w₀w₁ - ȳ], [2w₀w₁ - ȳ, w₀²]] + I/prior_scale², shape (2, 2); indefinite in places."""
        a, b = self.check(x)
        across = 2.0 * a * b - self.y.mean()
        scale = self.n_data * self.noise_precision
        return scale * np.array([[b * b, across], [across, a * a]]) + self.prior_precision * np.eye(2)

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """The minimum of U with w₀ >= 0, shape (2,); its mirror image -w is another.

        Both coordinates have the same size there, and their product is ȳ shrunk by the prior towards 0.
        """
        mean = self.y.mean()
        size = max(abs(mean) - self.prior_precision / (self.n_data * self.noise_precision), 0.0)
        return math.sqrt(size) * np.array([1.0, math.copysign(1.0, mean)])

    @functools.cached_property
    def product_moments(self) -> tuple[float, float]:
        """Mean and variance of w₀w₁ under the posterior, by quadrature.

        Its density is proportional to K₀(c |p|) exp(-N (p - ȳ)² / (2σ²)) with c = 1/prior_scale²: the Bessel function
        K₀ is, up to a factor, the density of a product of two independent normal variables.
        """
        from scipy import integrate, special

        sd = 1.0 / math.sqrt(self.n_data * self.noise_precision)
        mean = self.y.mean()

        def density(p):
            # Of exp(-c|p|) nothing may be lost where c is large: k0e is the rest.
            c = self.prior_precision * max(abs(p), 1e-290)
            return special.k0e(c) * math.exp(-c - 0.5 * ((p - mean) / sd) ** 2)

        ends = mean - 12.0 * sd, mean + 12.0 * sd
        knots = [0.0] if ends[0] < 0.0 < ends[1] else None

        def moment(power):
            return integrate.quad(lambda p: (p - mean) ** power * density(p), *ends, points=knots, limit=500)[0]

        mass, first, second = map(moment, range(3))
        return mean + first / mass, second / mass - (first / mass) ** 2
