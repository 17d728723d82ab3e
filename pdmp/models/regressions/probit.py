"""Bayesian probit regression with a Gaussian prior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.expressions.special import log_ndtr, mills
from pdmp.models.regressions.glm import BoundedHessian, read_labels
from pdmp.native.classes import compiled


class ProbitRegression(BoundedHessian):
    r"""Probit regression: P(yᵢ = 1) = Φ(zᵢ), U(x) = -Σᵢ log Φ(sᵢ zᵢ) + Σⱼ xⱼ² / (2 prior_scaleⱼ²), zᵢ = aᵢ·x + oᵢ.

    sᵢ = ±1 is the label. The second derivative of -log Φ lies between 0 and 1, so the Hessian is at most XᵀX plus the
    prior's; its first is not bounded.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `pdmp.models.regressions.glm.GeneralisedLinear`: features may be sparse or memory-mapped.
    y : array_like of shape (N,)
        Labels, in {0, 1} or in {-1, +1}, both present.

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, and a scale that is not positive.

    References
    ----------
    Albert & Chib (1993), Bayesian analysis of binary and polychotomous response data, JASA 88.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0], [2.0], [-1.0], [0.5]], [1, 1, 0, 0]
    >>> model = pdmp.models.ProbitRegression(X, y)
    >>> model.mode().round(3)
    array([0.679])
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.target = 2.0 * self.y - 1.0
        self.settle()

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        return read_labels(y, n)

    @compiled
    def loss(self, z, y):
        return -log_ndtr(y * z)

    @compiled
    def first_derivative(self, z, y):
        return -y * mills(y * z)

    @compiled
    def second_derivative(self, z, y):
        m = mills(y * z)
        return m * (m + y * z)

    @compiled
    def second_derivative_bounds(self, y):
        return 0.0, 1.0

    def mean(self, z: np.ndarray) -> np.ndarray:
        """P(y = 1) = Φ(z)."""
        from scipy import special

        return special.ndtr(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        from scipy import special

        return special.log_ndtr(np.where(y > 0.0, 1.0, -1.0) * z)
