"""The skew-normal distribution: one dimension, curvature that differs by a factor between its two tails."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.special import log_ndtr, mills
from pdmp.models.base import Model
from pdmp.native.classes import compiled


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
        return 0.5 * (x[0] * x[0]) - log_ndtr(self.shape * x[0])

    @compiled
    def add_gradient(self, x, out):
        out[0] += x[0] - self.shape * mills(self.shape * x[0])

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """U'' = 1 + α² m(αθ) (m(αθ) + αθ), shape (1, 1)."""
        z = self.shape * self.check(x)[0]
        m = mills(z)
        return np.array([[1.0 + self.shape**2 * m * (m + z)]])

    @property
    def exact_mean(self) -> float:
        """δ √(2/π), δ = α / √(1 + α²)."""
        return self.shape / math.hypot(1.0, self.shape) * math.sqrt(2.0 / math.pi)

    @property
    def exact_variance(self) -> float:
        """1 - 2δ²/π, δ = α / √(1 + α²)."""
        return 1.0 - self.exact_mean**2
