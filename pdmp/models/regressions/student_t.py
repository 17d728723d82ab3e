"""Bayesian linear regression with Student-t noise, robust against outliers, and a Gaussian prior."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.regressions.design import gram
from pdmp.models.regressions.glm import BoundedGradient, read_positive
from pdmp.native.classes import compiled


class StudentTRegression(BoundedGradient):
    r"""Linear regression with noise of Student's t law: yᵢ = zᵢ + noise_scale · t_ν, zᵢ = aᵢ·x + oᵢ.

    U(x) = ½(ν + 1) Σᵢ log(1 + eᵢ² / (ν s²)) + Σⱼ xⱼ² / (2 prior_scaleⱼ²), eᵢ = yᵢ - zᵢ, s = noise_scale. A term's first
    derivative by z is at most (ν + 1) / (2 s √ν) in absolute value, its second lies between -(ν + 1) / (8 ν s²) and
    (ν + 1) / (ν s²). The potential is not convex: outliers may leave several modes.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `pdmp.models.regressions.glm.GeneralisedLinear`: features may be sparse or memory-mapped.
    y : array_like of shape (N,)
        Real targets.
    degrees : float, default 4.0
        ν, the degrees of freedom.
    noise_scale : float, default 1.0
        s, the scale of the noise; its standard deviation is s √(ν / (ν - 2)).

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, and `degrees` or a scale that is not positive.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0], [2.0], [3.0]], [1.0, 2.0, 30.0]
    >>> model = pdmp.models.StudentTRegression(X, y, degrees=2.0)
    >>> model.gradient([1.0]).round(3)
    array([0.668])
    """

    degrees: float
    noise_scale: float

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        degrees: float = 4.0,
        noise_scale: float = 1.0,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.degrees, self.noise_scale = read_positive("degrees", degrees), read_positive("noise_scale", noise_scale)
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.settle()

    @compiled
    def width(self):
        """ν s²."""
        return self.degrees * self.noise_scale * self.noise_scale

    @compiled
    def loss(self, z, y):
        e = y - z
        return 0.5 * (self.degrees + 1.0) * math.log1p(e * e / self.width())

    @compiled
    def first_derivative(self, z, y):
        e = y - z
        return -(self.degrees + 1.0) * e / (self.width() + e * e)

    @compiled
    def second_derivative(self, z, y):
        e, w = y - z, self.width()
        return (self.degrees + 1.0) * (w - e * e) / ((w + e * e) * (w + e * e))

    @compiled
    def first_derivative_bounds(self, y):
        most = 0.5 * (self.degrees + 1.0) / math.sqrt(self.width())
        return -most, most

    @compiled
    def second_derivative_bounds(self, y):
        most = (self.degrees + 1.0) / self.width()
        return -0.125 * most, most

    def mode(self, initial: ArrayLike | None = None) -> np.ndarray | None:
        """A minimum of U, shape (dim,): without `initial` that which is found from the least-squares fit."""
        if initial is None:
            y = self.y - self.offset if self.offset.size else self.y
            weight = (self.degrees + 1.0) / self.width()
            normal = weight * gram(self.X) + np.diag(np.maximum(self.precision, 1e-12 * weight * self.n_data))
            initial = np.linalg.solve(normal, weight * (self.X.T @ y))
        return super().mode(initial)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """z: the centre of the law, which is its mean for ν > 1."""
        return z

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        from scipy import stats

        return stats.t.logpdf(y, self.degrees, loc=z, scale=self.noise_scale)
