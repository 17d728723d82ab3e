r"""The multivariate stochastic-gradient Nosé-Hoover thermostat: a friction for each coordinate.

dθ = p dt, dp = -∇U dt - ξ∘p dt + √(2A) dB, dξⱼ = (pⱼ² - 1) dt

=====  ==============================================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   splitting  θ += ε/2 p;  ξⱼ += ε/2 (pⱼ² - 1);  pⱼ *= e^(-ξⱼε/2);  p += -ε ∇Û(θ) + √(2Aε) z,
                  and the first three again in reverse order
       euler      p += -ε ∇Û(θ) - ε ξ∘p + √(2Aε) z;  θ += ε p;  ξⱼ += ε (pⱼ² - 1), each with what is new above it
=====  ==============================================================================================================

Gradient noise may differ from coordinate to coordinate: ξⱼ settles around Aⱼ' = A + ετⱼ²/2, with standard deviation 1.
The steps must be small beside 1: a chain with εξⱼ < -1 has diverged, and stops.

In both schemes E pⱼ² = 1 exactly in stationarity. The bias of averages is O(ε) for Euler's scheme, and O(ε²) for the
splitting with additive noise. Noise whose size depends on θ, as that of mini-batches does, has an effect of first order
in both.

References
----------
Gan, Chen, Henao, Carlson & Carin (2015), Scalable deep Poisson factor analysis for topic modeling, ICML, section 3;
Li, Chen, Fan & Carin (2016), High-order stochastic gradient thermostats for Bayesian learning of deep models, AAAI
(splitting); Chen, Ding & Carin (2015), On the convergence of stochastic gradient MCMC algorithms with high-order
integrators, NeurIPS.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from discrete.kinetic import mean_square
from discrete.schedules import Schedule
from discrete.sghmc import SGHMC
from discrete.sgnht import SGNHT
from discrete.thermostat import Displaced, Thermostatted
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import one_of
from pdmp.native.classes import compiled

#: Values of the field `scheme`: the integrator.
SPLITTING, EULER = 0, 1
SCHEMES = {"splitting": SPLITTING, "euler": EULER}


class MSGNHT(Displaced, Thermostatted):
    """Multivariate stochastic-gradient Nosé-Hoover thermostat on exp(-U).

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U. The size of their noise need not be known.
    step, diffusion, metric
        As for `SGNHT`.
    scheme : {"splitting", "euler"}
        The integrator; its formulas are in the text of `discrete.msgnht`.

    Raises
    ------
    ValueError
        For a step or diffusion that is not positive, or an unknown scheme.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.MSGNHT(pdmp.gradients.Noisy(model, [0.1, 2.0]), step=0.1).thermostats
    2
    """

    scheme: int

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        diffusion: float | None = None,
        scheme: str = "splitting",
        *,
        metric: ArrayLike | Metric | None = None,
    ):
        super().__init__(provider, step, diffusion, metric)
        one_of("scheme", scheme, SCHEMES)
        self.scheme = SCHEMES[scheme]
        self.thermostats = self.dim

    def linear_step(
        self, step: float, friction: float, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.scheme == SPLITTING:
            return SGHMC.linear_step(step, friction, curvature)
        return SGNHT.linear_step(self, step, friction, curvature)

    @property
    def second_order(self) -> bool:  # type: ignore[override]
        return self.scheme == SPLITTING

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        eps, gradient, xi = self.schedule.step(memory.taken[0]), memory.gradient, memory.thermostat
        d, half = x.shape[0], 0.5 * eps
        if self.scheme == SPLITTING:
            for j in range(d):
                x[j] += half * v[j]
                xi[j] += half * (v[j] * v[j] - 1.0)
                v[j] *= math.exp(-half * xi[j])
        self.provider.gradient(x, memory.provider, rng, gradient, counts)
        if not finite(gradient):
            return False
        noise = math.sqrt(2.0 * self.diffusion * eps)
        if self.scheme == SPLITTING:
            for j in range(d):
                v[j] = math.exp(-half * xi[j]) * (v[j] - eps * gradient[j] + noise * z[j])
                xi[j] += half * (v[j] * v[j] - 1.0)
                x[j] += half * v[j]
        else:
            for j in range(d):
                v[j] += -eps * (gradient[j] + xi[j] * v[j]) + noise * z[j]
                x[j] += eps * v[j]
                xi[j] += eps * (v[j] * v[j] - 1.0)
        return self.finish_step(memory, eps, mean_square(v), counts)
