"""Logistic regression on one covariate with Cauchy tails: gradients of data that differ by orders of magnitude."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.regressions.logistic_terms import LogisticTerms
from pdmp.native.arguments import positive, real


class HalfCauchyLogistic(LogisticTerms):
    r"""One-parameter logistic regression with all labels 1: U(θ) = Σᵢ log(1 + exp(-xᵢ θ)) + θ² / (2 prior_scale²).

    With covariates |Cauchy| a few data dominate the gradient, whose mini-batch noise has tails as heavy as theirs. The
    second derivative is at most ¼ Σ xᵢ² + prior_scale⁻².

    Parameters
    ----------
    x : array_like of shape (N,)
        Covariates; `generated` draws them.
    prior_scale : float, default 1.0
        Standard deviation of the Gaussian prior, finite: the likelihood alone has no maximum.

    Raises
    ------
    ValueError
        If `x` is not a finite vector, or `prior_scale` is not positive and finite.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.HalfCauchyLogistic([0.5, 1.0, 20.0])
    >>> model.gradient([0.0])
    array([-10.75])
    """

    def __init__(self, x: ArrayLike, prior_scale: float = 1.0):
        x = real("x", x)
        if x.ndim != 1 or x.size == 0:
            raise ValueError(f"`x` must have shape (N,), N at least 1, got {x.shape}.")
        super().__init__(x[:, None], np.ones(len(x)), positive("prior_scale", prior_scale))
        self.variables = {"theta": (1,)}

    @classmethod
    def generated(cls, scale: float = 3.0, n_data: int = 100, prior_scale: float = 1.0, seed: int = 0) -> Self:
        """The target with `n_data` covariates drawn from the half-Cauchy law with this scale."""
        return cls(np.abs(scale * np.random.default_rng(seed).standard_cauchy(n_data)), prior_scale)

    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (1,), and covariance, shape (1, 1), of θ under the posterior, by quadrature."""
        from scipy import integrate

        mode = self.mode()
        sd = 1.0 / np.sqrt(self.hessian(mode)[0, 0])
        lowest = self.potential(mode)

        def density(z):
            return np.exp(lowest - self.potential(mode + sd * z))

        mass, first, second = (
            sum(
                integrate.quad(lambda z, k=k: z**k * density(z), *ends, epsabs=1e-12)[0] for ends in ((-40, 0), (0, 40))
            )
            for k in range(3)
        )
        mean = first / mass
        return mode + sd * mean, np.array([[sd * sd * (second / mass - mean * mean)]])
