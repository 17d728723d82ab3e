r"""The stochastic-gradient Bouncy Particle Sampler (SG-BPS).

=====  ====================================================================================================
flow   straight lines, x + v s, |v| = 1
clock  with an estimate ∇Û, bounces at the constant rate (v·∇Û)₊, and refreshments at their own rate; at the
       first of them, or at the end of the interval of length ε, the gradient is evaluated anew
rate   none: all are certain
jump   bounce: v ← v - 2 (v·∇Û) ∇Û / |∇Û|²; refreshment: v uniform on the sphere; nothing at the end of an
       interval
=====  ====================================================================================================

The errors of the rate are described in `discrete.frozen`; they are of first order. There is a third error of first
order if a bounce uses the last estimate of the gradient, which is that of an earlier point, as in the authors' code. It
is the larger the rarer refreshments are: on N(0, I) with ε = 0.1 the variance is then too large by 10 % in 2 dimensions
and by 16 % in 5 at a refreshment rate of 0.7, and by more than 100 % at the automatic rate of 0.04. With the gradient
of the same mini-batch at the place of the bounce, which costs another evaluation, it is too large by 2 to 6 % at every
rate. In one dimension there is no difference. The authors draw velocities from N(0, I); here their length is 1, as in
`pdmp.BPS`.

References
----------
Fearnhead, Grazzi, Nemeth & Roberts (2024), Stochastic gradient piecewise deterministic Monte Carlo samplers,
arXiv:2406.19051, SG-BPS.
"""

from __future__ import annotations

import math

import numpy as np

from discrete.frozen import FrozenRates
from discrete.schedules import Schedule
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.gradients.provider import dot
from pdmp.models import Model
from pdmp.native.arguments import one_of
from pdmp.native.classes import compiled
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.processes.exact import Refreshed, check_rate, sphere

BOUNCE, REFRESH = 1, 2  #: kinds of event
#: Values of the field `reflection`: where the gradient of a bounce is taken.
EVENT, LOOK = 0, 1
REFLECTIONS = {"event": EVENT, "look": LOOK}


class SGBPS(Refreshed, FrozenRates):
    """Stochastic-gradient Bouncy Particle Sampler on exp(-U), velocities uniform on the unit sphere.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        ε, in process time, which is distance: the longest time for which the rates are held constant. It should be
        small beside the target's standard deviations, and beside 1/τ, τ the sd of the gradient's noise along v.
        A run's ``steps`` count estimates of the gradient: one for each interval, and one more for each event.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments, per unit of process time; "auto" as in `pdmp.BPS`.
    reflection : {"event", "look"}
        Where the gradient in which the velocity is reflected is taken. "event": where the path bounces, with the
        mini-batch that gave the rate. "look": where the gradient was last evaluated. This saves an evaluation, but its
        error is much larger, unless refreshments are frequent.

    Raises
    ------
    ValueError
        For a step that is not positive, a negative or non-finite rate, or an unknown reflection.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGBPS(pdmp.gradients.Noisy(model, 0.5), step=0.05, refresh_rate=0.5).events
    ('step', 'bounce', 'refresh')
    """

    refresh_rate: float
    reflection: int

    events = ("step", "bounce", "refresh")

    def __init__(
        self,
        provider: Provider | Model,
        step: float | Schedule,
        refresh_rate: float | str = "auto",
        reflection: str = "event",
    ):
        super().__init__(provider, step)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        one_of("reflection", reflection, REFLECTIONS)
        self.reflection = REFLECTIONS[reflection]

    @compiled
    def wait(self, v, memory, rng):
        rate, time = dot(v, memory.gradient), math.inf
        if rate > 0.0:
            time = rng.standard_exponential() / rate
            memory.kind[0] = BOUNCE
        if self.refresh_rate > 0.0:
            refresh = rng.standard_exponential() / self.refresh_rate
            if refresh < time:
                time = refresh
                memory.kind[0] = REFRESH
        return time

    @compiled
    def event(self, x, v, memory, rng, counts):
        if memory.kind[0] == REFRESH:
            refresh_on_sphere(v, rng)
            return True
        if self.reflection == EVENT:
            self.provider.gradient_again(x, memory.provider, memory.gradient, counts)
            if not finite(memory.gradient):
                return False
        reflect(v, memory.gradient)
        rescale(v, 1.0)
        return True

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return sphere(rng, self.dim)
