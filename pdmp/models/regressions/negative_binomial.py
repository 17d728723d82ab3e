"""Bayesian negative-binomial regression with a Gaussian prior: counts that vary more than Poisson ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.regressions.glm import BoundedGradient, read_counts, read_positive
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp


class NegativeBinomialRegression(BoundedGradient):
    r"""Negative-binomial regression: counts with mean μᵢ = exp zᵢ and variance μᵢ + μᵢ² / r, zᵢ = aᵢ·x + oᵢ.

    U(x) = Σᵢ [(yᵢ + r) log(r + exp zᵢ) - yᵢ zᵢ] + Σⱼ xⱼ² / (2 prior_scaleⱼ²). A term's first derivative by z lies
    between -yᵢ and r, its second between 0 and (yᵢ + r) / 4: unlike Poisson regression, all bounds are global.

    Parameters
    ----------
    X, prior_scale, intercept, offset, dtype
        As in `pdmp.models.regressions.glm.GeneralisedLinear`: features may be sparse or memory-mapped. The offset is
        the logarithm of an exposure.
    y : array_like of shape (N,)
        Counts.
    size : float, default 1.0
        r, the number of successes, known; infinity would be Poisson regression.

    Raises
    ------
    ValueError
        For data that do not fit, or are not finite, targets that are no counts, and a `size` or a scale that is not
        positive.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1, 2, 5]
    >>> model = pdmp.models.NegativeBinomialRegression(X, y, size=3.0)
    >>> model.gradient([0.0, 0.0])
    array([-3.75, -6.75])
    """

    successes: float
    log_successes: float

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        size: float = 1.0,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ):
        self.successes = read_positive("size", size)
        self.log_successes = math.log(self.successes)
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.settle()

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        return read_counts(y, n)

    @compiled
    def share(self, z):
        """exp(z) / (r + exp(z))."""
        return 1.0 / (1.0 + exp(self.log_successes - z))

    @compiled
    def loss(self, z, y):
        # log(r + exp z) = max(z, log r) + log(1 + exp(-|z - log r|))
        w = z - self.log_successes
        return (y + self.successes) * (max(z, self.log_successes) + math.log1p(exp(-abs(w)))) - y * z

    @compiled
    def first_derivative(self, z, y):
        return (y + self.successes) * self.share(z) - y

    @compiled
    def second_derivative(self, z, y):
        p = self.share(z)
        return (y + self.successes) * p * (1.0 - p)

    @compiled
    def first_derivative_bounds(self, y):
        return -y, self.successes

    @compiled
    def second_derivative_bounds(self, y):
        return 0.0, 0.25 * (y + self.successes)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """exp(z)."""
        return np.exp(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        from scipy import special

        r = self.successes
        constant = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1.0) + r * math.log(r)
        return constant + y * z - (y + r) * np.logaddexp(math.log(r), z)
