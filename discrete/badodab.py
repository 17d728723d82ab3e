r"""BADODAB: adaptive Langevin dynamics by a symmetric splitting.

dθ = p dt, dp = -∇U dt - ξ p dt + √(2A) dB, dξ = (|p|² - d) / μ dt

=====  ==============================================================================================================
flow   none
clock  ticks of ε
jump   B  p += -ε/2 ∇Û(θ)                    D  ξ += ε/2 (|p|² - d) / μ
       A  θ += ε/2 p                         O  p ← e^(-ξε) p + √(A (1 - e^(-2ξε)) / ξ) z
       in the order B A D O D A B; the estimate in the last B is used once more in the first one of the next step
=====  ==============================================================================================================

The mass μ = d is the thermostat of `SGNHT`; in general the standard deviation of ξ is 1/√μ. With additive noise of
standard deviation τ the thermostat settles around A + ετ²/2. The bias of averages over θ is O(ε²), with additive noise
as well; noise whose size depends on θ, as that of mini-batches does, has an effect of first order.

In stationarity the momenta that the two D see have E|p|²/d = 1 on average, exactly. So the momentum at the end of a
step, of which ``run.stats["mean_kinetic_temperature"]`` tells, has E|p|²/d = 1 - ε²/4 E|∇Û|²/d, whatever U.

References
----------
Leimkuhler & Shang (2016), Adaptive thermostats for noisy gradient systems, SIAM J. Sci. Comput. 38(2), section 4;
Shang, Zhu, Leimkuhler & Storkey (2015), Covariance-controlled adaptive Langevin thermostat for large-scale Bayesian
sampling, NeurIPS; Jones & Leimkuhler (2011), Adaptive stochastic methods for sampling driven molecular systems,
J. Chem. Phys. 135.
"""

from __future__ import annotations

import math

from discrete.baoab import BAOAB
from discrete.kinetic import check_friction, mean_square
from discrete.thermostat import Thermostatted
from discrete.tick import finite
from pdmp.native.classes import compiled, inlined


@inlined
def relative_variance(x):
    """(1 - e^(-x)) / x, 1 at x = 0: the variance of the noise of an Ornstein-Uhlenbeck step, relative to a free one."""
    return 1.0 if x == 0.0 else -math.expm1(-x) / x


class BADODAB(Thermostatted):
    """Adaptive Langevin dynamics on exp(-U), by the splitting B A D O D A B.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U. The size of their noise need not be known.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step for the momentum p ~ N(0, I). "auto": see
        `discrete.schedules.automatic`.
    diffusion : float, optional
        A of dp = … + √(2A) dB; the paper's σ is √(2A). The thermostat starts there. 1 when omitted; with
        an automatic step, the one of several that forgets the start fastest.
    mass : float, optional
        μ, the inertia of the thermostat; by default the dimension.

    Raises
    ------
    ValueError
        For a step, diffusion or mass that is not positive.
    """

    mass: float

    def __init__(self, provider, step="auto", diffusion=None, mass=None):
        super().__init__(provider, step, diffusion)
        self.mass = float(self.dim) if mass is None else check_friction("mass", mass)

    def linear_step(self, step, friction, curvature):
        return BAOAB.linear_step(step, friction, curvature)

    @property
    def bias_order(self):
        """Two without gradient noise; noise that depends on θ has an effect of first order."""
        return 2 if self.provider.exact else 1

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
        xi[0] += half * d * (mean_square(v) - 1.0) / self.mass
        decay = math.exp(-xi[0] * eps)
        noise = math.sqrt(2.0 * self.diffusion * eps * relative_variance(2.0 * xi[0] * eps))
        for j in range(d):
            v[j] = decay * v[j] + noise * z[j]
            x[j] += half * v[j]
        xi[0] += half * d * (mean_square(v) - 1.0) / self.mass
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        for j in range(d):
            v[j] -= half * gradient[j]
        return self.finish_step(memory, eps, mean_square(v), counts)
