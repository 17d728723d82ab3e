"""The skew-normal distribution: one dimension, curvature that differs by a factor between its two tails."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.native.classes import compiled, inlined

SQRT_HALF = math.sqrt(0.5)
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
TAIL = -8.0  #: below this argument Φ is computed from the continued fraction of the inverse Mills ratio
DEPTH = 16  #: of that fraction: at -8 the remainder is below rounding


@inlined
def _fraction(t):
    """φ(t) / Φ(-t) for t >= 8, by Laplace's continued fraction t + 1/(t + 2/(t + 3/(t + …)))."""
    tail = t
    for k in range(DEPTH, 0, -1):
        tail = t + k / tail
    return tail


@inlined
def inverse_mills(z):
    """φ(z) / Φ(z), φ and Φ being the density and the distribution function of N(0, 1)."""
    if z < TAIL:
        return _fraction(-z)
    return math.exp(-0.5 * (z * z) - HALF_LOG_2PI) / (0.5 * math.erfc(-z * SQRT_HALF))


@inlined
def log_cdf(z):
    """log Φ(z)."""
    if z < TAIL:
        return -0.5 * (z * z) - HALF_LOG_2PI - math.log(_fraction(-z))
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * SQRT_HALF))
    return math.log(0.5 * math.erfc(-z * SQRT_HALF))


class SkewNormal(Model):
    r"""The skew-normal distribution with location 0, scale 1 and the given shape α, density ∝ φ(θ) Φ(αθ).

    U(θ) = θ²/2 - log Φ(αθ), ∇U(θ) = θ - α m(αθ), with the inverse Mills ratio m = φ/Φ. The second derivative lies
    between 1 and 1 + α²; it reaches the latter in the thin tail. No bound is stated to the clocks, so that the
    piecewise-deterministic processes run on it as on any target about which nothing is known.

    Parameters
    ----------
    shape : float
        α; zero is the standard normal distribution, a negative one mirrors.

    Raises
    ------
    ValueError
        If `shape` is not a finite number.

    References
    ----------
    Azzalini (1985), A class of distributions which includes the normal ones, Scand. J. Statist. 12.

    Examples
    --------
    >>> import pdmp
    >>> round(float(pdmp.models.SkewNormal(2.0).exact_mean), 4)
    0.7136
    """

    shape: float

    def __init__(self, shape: float) -> None:
        if np.ndim(shape) != 0 or not math.isfinite(shape):
            raise ValueError(f"`shape` must be a finite number, got {shape}.")
        super().__init__(dim=1)
        self.shape = float(shape)

    @compiled
    def potential(self, x):
        return 0.5 * (x[0] * x[0]) - log_cdf(self.shape * x[0])

    @compiled
    def add_gradient(self, x, out):
        out[0] += x[0] - self.shape * inverse_mills(self.shape * x[0])

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """U'' = 1 + α² m(αθ) (m(αθ) + αθ), shape (1, 1)."""
        z = self.shape * self.check(x)[0]
        m = inverse_mills(z)
        return np.array([[1.0 + self.shape**2 * m * (m + z)]])

    @property
    def exact_mean(self) -> float:
        """δ √(2/π), δ = α / √(1 + α²)."""
        return self.shape / math.hypot(1.0, self.shape) * math.sqrt(2.0 / math.pi)

    @property
    def exact_variance(self) -> float:
        """1 - 2δ²/π, δ = α / √(1 + α²)."""
        return 1.0 - self.exact_mean**2
