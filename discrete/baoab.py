r"""BAOAB: the splitting of underdamped Langevin dynamics that is exact for θ on Gaussian targets.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  ========================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   B  p -= ε/2 ∇Û(θ), the estimate of the last step
       A  θ += ε/2 p
       O  p = e^(-Dε) p + √(1 - e^(-2Dε)) ξ
       A  θ += ε/2 p
       B  p -= ε/2 ∇Û(θ), a new estimate, kept for the next step
=====  ========================================================================================

A step needs one gradient, the first step two. Each estimate is used for the last B of one step and the first B of the
next, together one whole kick, so that gradient noise enters as in the other integrators.

On U = λθ²/2 with additive gradient noise of standard deviation τ the stationary variance of θ is

    (1 + (ετ)²/4 coth(Dε/2) / (1 - ε²λ/4)) / λ,  for ε²λ < 4, whatever the friction:

which is exact at every step without noise, and too large by the factor 1 + ετ²/(2D), to leading order, with noise. For
other targets the bias is of order ε² (of order ε⁴ in the limit of large friction). The variance of p is 1 - ε²λ/4
without noise.

References
----------
Leimkuhler & Matthews (2013), Rational construction of stochastic numerical methods for molecular sampling, Appl. Math.
Res. eXpress 2013.
"""

from __future__ import annotations

import math

import numpy as np

from discrete.kinetic import Underdamped, count_temperature
from discrete.tick import finite
from pdmp.native.classes import compiled


class BAOAB(Underdamped):
    """Underdamped Langevin dynamics on exp(-U), integrated by BAOAB.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U, one in each step.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step, a time, for the momentum p ~ N(0, I). "auto": see `discrete.schedules.automatic`.
    friction, metric
        As for `SGHMC`.

    Raises
    ------
    ValueError
        For a step or friction that is not positive, or a metric of another shape or not positive definite.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.BAOAB(model, step=0.1, friction=2.0).stability_limit(4.0)  # ε²λ < 4
    1.0
    """

    second_order = True

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient = memory.taken[0], memory.gradient
        eps, d = self.schedule.step(k), x.shape[0]
        half, decay = 0.5 * eps, math.exp(-self.friction * eps)
        noise = math.sqrt(-math.expm1(-2.0 * self.friction * eps))
        for stage in range(0 if k == 0 else 1, 2):  # stage 0, in the first step alone: there is no estimate yet
            if stage == 1:
                for j in range(d):
                    p = v[j] - half * gradient[j]
                    x[j] += half * p
                    p = decay * p + noise * z[j]
                    x[j] += half * p
                    v[j] = p
            self.provider.gradient(x, memory.provider, rng, gradient, counts)
            if not finite(gradient):
                return False
        for j in range(d):
            v[j] -= half * gradient[j]
        count_temperature(memory, v, counts)
        return True

    @staticmethod
    def linear_step(step: float, friction: float, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `Underdamped.linear_step`. Of (θ, p) before the last B, which does not change θ: a kick of ε, A, O, A."""
        half, decay = 0.5 * step, math.exp(-friction * step)
        drift = np.array([half * (1.0 + decay), decay])  # effect of a unit of momentum on (θ, p)
        turn = step * curvature
        transition = np.empty((len(curvature), 2, 2))
        transition[:, 0, 0], transition[:, 0, 1] = 1.0 - turn * drift[0], drift[0]
        transition[:, 1, 0], transition[:, 1, 1] = -turn * drift[1], drift[1]
        ahead = np.array([half, 1.0])
        return transition, step * drift, (1.0 - decay**2) * np.outer(ahead, ahead)

    def stability_limit(self, curvature: float) -> float | None:
        return 2.0 / math.sqrt(curvature) if curvature > 0.0 else None
