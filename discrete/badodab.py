r"""BADODAB: adaptive Langevin dynamics by a symmetric splitting.

dθ = p dt, dp = -∇U dt - ξ p dt + √(2A) dB, dξ = (|p|² - d) / μ dt

=====  ==============================================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   B  p += -ε/2 ∇Û(θ)                    D  ξ += ε/2 (|p|² - d) / μ
       A  θ += ε/2 p                         O  p ← e^(-ξε) p + √(A (1 - e^(-2ξε)) / ξ) z
       in the order B A D O D A B; the estimate in the last B is used once more in the first one of the next step
=====  ==============================================================================================================

The thermal mass μ = d is the thermostat of `SGNHT`; in general the standard deviation of ξ is 1/√μ. With additive noise
of standard deviation τ the thermostat settles around A + ετ²/2. The bias of averages over θ is O(ε²), with additive
noise as well; noise whose size depends on θ, as that of mini-batches does, has an effect of first order.

In stationarity E|p|²/d, averaged over the momenta with which the two steps D are taken, is exactly 1. It follows that
the momentum at the end of a step, whose E|p|²/d is ``run.stats["mean_kinetic_temperature"]``, has
E|p|²/d = 1 - ε²/4 E|∇Û|²/d, whatever U is.

References
----------
Leimkuhler & Shang (2016), Adaptive thermostats for noisy gradient systems, SIAM J. Sci. Comput. 38(2), section 4;
Shang, Zhu, Leimkuhler & Storkey (2015), Covariance-controlled adaptive Langevin thermostat for large-scale Bayesian
sampling, NeurIPS; Jones & Leimkuhler (2011), Adaptive stochastic methods for sampling driven molecular systems,
J. Chem. Phys. 135.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from discrete.baoab import BAOAB
from discrete.kinetic import mean_square
from discrete.schedules import Schedule
from discrete.thermostat import Thermostatted
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, inlined


@inlined
def relative_variance(x):
    """(1 - e^(-x)) / x, and 1 at x = 0: the variance of an Ornstein-Uhlenbeck step relative to one without friction."""
    return 1.0 if x == 0.0 else -math.expm1(-x) / x


class BADODAB(Thermostatted):
    """Adaptive Langevin dynamics on exp(-U), by the splitting B A D O D A B.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U. The size of their noise need not be known.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step, a time, for the momentum p ~ N(0, I). "auto": see `discrete.schedules.automatic`.
    diffusion, metric
        As for `SGNHT`; the paper's σ is √(2A).
    thermal_mass : float, optional
        μ, the inertia of the thermostat; the dimension when omitted.

    Raises
    ------
    ValueError
        For a step, diffusion or thermal mass that is not positive.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.BADODAB(pdmp.gradients.Noisy(model, 0.5), step=0.1, diffusion=1.0).thermal_mass
    2.0
    """

    thermal_mass: float  #: μ

    second_order = True
    _renamed = Thermostatted._renamed | {"mass": "became `thermal_mass=`, with the same number."}

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        diffusion: float | None = None,
        *,
        thermal_mass: float | None = None,
        metric: ArrayLike | Metric | None = None,
    ):
        super().__init__(provider, step, diffusion, metric)
        self.thermal_mass = float(self.dim) if thermal_mass is None else positive("thermal_mass", thermal_mass)

    def linear_step(
        self, step: float, friction: float, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """That of BAOAB, which this sampler equals while its thermostat is constant."""
        return BAOAB.linear_step(step, friction, curvature)

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient, xi = memory.taken[0], memory.gradient, memory.thermostat
        eps, d = self.schedule.step(k), x.shape[0]
        half = 0.5 * eps
        if k == 0:
            self.provider.gradient(x, memory.provider, rng, gradient, counts)
            if not finite(gradient):
                return False
        for j in range(d):
            v[j] -= half * gradient[j]
            x[j] += half * v[j]
        xi[0] += half * d * (mean_square(v) - 1.0) / self.thermal_mass
        decay = math.exp(-xi[0] * eps)
        noise = math.sqrt(2.0 * self.diffusion * eps * relative_variance(2.0 * xi[0] * eps))
        for j in range(d):
            v[j] = decay * v[j] + noise * z[j]
            x[j] += half * v[j]
        xi[0] += half * d * (mean_square(v) - 1.0) / self.thermal_mass
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        for j in range(d):
            v[j] -= half * gradient[j]
        return self.finish_step(memory, eps, mean_square(v), counts)
