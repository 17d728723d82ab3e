r"""The stochastic-gradient Bouncy Particle Sampler (SG-BPS).

=====  ====================================================================================================
flow   straight lines, x + v s, |v| = 1
clock  at each look, with an estimate ∇Û: bounces at the constant rate (v·∇Û)₊ and refreshments at their own
       rate; the first of them or the end of the interval of length ε is the next look
jump   bounce: v ← v - 2 (v·∇Û) ∇Û / |∇Û|²; refreshment: v uniform on the sphere; nothing at the end of an
       interval
=====  ====================================================================================================

How this differs from the process that it approximates, and by how much, is said in `discrete.frozen`. Both errors of
the rate are of first order, and so is a third one if a bounce uses the estimate where the path was looked at, as in the
authors' code. It matters the more the rarer refreshments are: on N(0, I) with ε = 0.1 the variance is then too large
by 10 % in 2 dimensions and 16 % in 5 at a refreshment rate of 0.7, and by more than 100 % at the automatic rate of
0.04. With the gradient of the same mini-batch at the place of the bounce, which costs another evaluation, it is too
large by 2 to 6 % at any rate. In one dimension there is no difference. The authors draw velocities from N(0, I); here
their length is 1, as in `pdmp.BPS`.

References
----------
Fearnhead, Grazzi, Nemeth & Roberts (2024), Stochastic gradient piecewise deterministic Monte Carlo samplers,
arXiv:2406.19051, SG-BPS.
"""

from __future__ import annotations

import math

from discrete.frozen import FrozenRates
from discrete.tick import finite
from pdmp.native.classes import compiled
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.processes.exact import check_rate, refresh_rate_at, sphere

BOUNCE, REFRESH = 1, 2
EVENT, LOOK = 0, 1
REFLECTIONS = {"event": EVENT, "look": LOOK}


class SGBPS(FrozenRates):
    """Stochastic-gradient Bouncy Particle Sampler on exp(-U), velocities uniform on the unit sphere.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    step : float or schedule
        ε, in process time, which is distance: the longest time for which the rates are held constant. It should be
        small beside the target's standard deviations, and beside 1/sd of the gradient's noise along v.
        One of a run's ``steps`` is one estimate of the gradient: an interval, or the part before or after an event.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments, per unit of time; "auto" as in `pdmp.BPS`.
    reflection : {"event", "look"}
        Where the gradient is taken in which the velocity is reflected: where the path bounces, with the mini-batch that
        made it bounce, or where it was looked at last, with no further evaluation and a multiple of the error, which is
        tolerable only with frequent refreshments.

    Raises
    ------
    ValueError
        For a step that is not positive, a negative or non-finite rate, or an unknown reflection.
    """

    refresh_rate: float
    reflection: int

    events = ("step", "bounce", "refresh")

    def __init__(self, provider, step, refresh_rate="auto", reflection="event"):
        super().__init__(provider, step)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        if reflection not in REFLECTIONS:
            raise ValueError(f"`reflection` must be one of {', '.join(map(repr, REFLECTIONS))}, got {reflection!r}.")
        self.reflection = REFLECTIONS[reflection]

    @compiled
    def wait(self, v, memory, rng):
        rate, time = 0.0, math.inf
        for j in range(v.shape[0]):
            rate += v[j] * memory.gradient[j]
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

    def resolve(self, x):
        process = super().resolve(x)
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x)
        return process

    def velocity(self, x, rng):
        return sphere(rng, self.dim)
