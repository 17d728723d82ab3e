r"""Stochastic-gradient Langevin dynamics.

=====  =====================================
flow   none
clock  ticks of γₖ
jump   θ ← θ - γₖ ∇Û(θ) + √(2γₖ) ξ,  ξ ~ N(0, I)
=====  =====================================

With the exact gradient this is the unadjusted Langevin algorithm. On U = λθ²/2 with additive gradient noise of standard
deviation τ and constant steps its stationary variance is (2 + γτ²) / (λ (2 - γλ)), for γλ < 2.

References
----------
Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, ICML, eq. 4 (their ε is 2γ).
"""

from __future__ import annotations

import math

import numpy as np

from discrete.laws import langevin_covariance, largest_step, noise_covariance
from discrete.tick import Brownian, finite
from pdmp.compiled import compiled


class SGLD(Brownian):
    """Stochastic-gradient Langevin dynamics on exp(-U).

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    step : float or schedule
        γ of dθ = -∇U dt + √2 dB: θ ← θ - γ∇Û + √(2γ) ξ. Many papers write h = 2γ: see `from_h`.

    Raises
    ------
    ValueError
        For a step that is not positive.
    """

    def __init__(self, provider, step):
        super().__init__(provider, step)

    @classmethod
    def from_h(cls, provider, h):
        """From the convention θ - (h/2) ∇Û + √h ξ."""
        return cls(provider, step=0.5 * h)

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        gamma, gradient = self.schedule.step(memory.taken[0]), memory.gradient
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        noise = math.sqrt(2.0 * gamma)
        for j in range(x.shape[0]):
            x[j] += -gamma * gradient[j] + noise * z[j]
        return True

    def limit(self, curvature):
        return 2.0 / curvature if curvature > 0.0 else None

    @classmethod
    def candidates(cls, model, batch, mode, error):
        hessian, noise = model.hessian(mode), noise_covariance(batch, mode)
        step, _ = largest_step(
            lambda gamma: langevin_covariance(hessian, noise, gamma),
            np.linalg.inv(hessian),
            2.0 / np.linalg.eigvalsh(hessian)[-1],
            error,
        )
        return {cls.__name__: cls(batch, step=step)}

    @property
    def note(self):
        return f"step {self.schedule.step(0):.3g}"
