r"""Gradient descent and stochastic gradient descent.

=====  =====================================
flow   none
clock  ticks of γₖ
jump   θ ← θ - γₖ s(∇Û(θ)), s one of the safeguards of `discrete.clipping` or nothing
=====  =====================================

They go to the mode, not to the target's law. With steps whose sum is infinite and whose squares have a finite sum
(Robbins & Monro) SGD converges; with constant steps it ends up fluctuating: on U = λθ²/2 with gradient noise of
standard deviation τ, around the mode with variance γτ² / (λ (2 - γλ)), for γλ < 2.

References
----------
Robbins & Monro (1951), A stochastic approximation method, Ann. Math. Statist. 22; Pascanu, Mikolov & Bengio (2013),
On the difficulty of training recurrent neural networks, ICML (clipping of the norm).
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from discrete.clipping import Unclipped, as_safeguard
from discrete.schedules import Polynomial
from discrete.tick import Ticking, finite
from pdmp.interfaces.report import Report
from pdmp.native.classes import compiled


class DescentMemory(NamedTuple):
    """Beside the position."""

    taken: np.ndarray
    gradient: np.ndarray
    clipped: np.ndarray  #: (1,) steps at which the safeguard acted
    provider: tuple


class SGDReport(Report):
    """How often the safeguard acted."""

    def statistics(self, process, state):
        """The fraction of steps at which the safeguard acted, if there is one."""
        return clipped(process.safeguard, state)


class SGD(Ticking):
    """Stochastic gradient descent on U.

    With a safeguard, ``run.stats["mean_clipped"]`` is the fraction of steps at which it acted.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    step : float or schedule
        γ of θ ← θ - γ∇Û, for the full sum ∇U.
    clip_norm : float, optional
        Shorten longer estimates to this norm.
    clip_value : float or pair of float, optional
        Bring every entry of the estimate of ∇U into [-c, c], or into [lo, hi].
    normalise : float, optional
        Give every estimate this norm.

    Raises
    ------
    ValueError
        For a step or a bound that is not positive, or more than one safeguard.

    Warns
    -----
    UserWarning
        For polynomial steps whose squares have an infinite sum: the noise does not die out as Robbins & Monro ask.
    """

    safeguard: object

    can_explore = True
    report = SGDReport()

    def __init__(self, provider, step, clip_norm=None, clip_value=None, normalise=None):
        super().__init__(provider, step)
        self.safeguard = as_safeguard(clip_norm, clip_value, normalise)
        if isinstance(self.schedule, Polynomial) and self.schedule.kappa <= 0.5 and not self.provider.exact:
            warnings.warn(
                f"`step`: with the exponent {self.schedule.kappa:g} <= 1/2 the squares of the steps have an infinite "
                "sum; stochastic gradient descent is only sure to converge for exponents in (1/2, 1].",
                UserWarning,
                stacklevel=2,
            )

    @compiled
    def holding_time(self, k):
        return 0.0 if self.schedule.explores(k) else self.schedule.step(k)

    @compiled
    def jump(self, state, i, now, rng):
        memory, theta, gradient = state.memory, state.x, state.memory.gradient
        self.provider.gradient(theta, memory.provider, rng, gradient, state.counts)
        if not finite(gradient):
            return -1
        memory.clipped[0] += self.safeguard.apply(gradient)
        gamma = self.schedule.step(memory.taken[0])
        for j in range(theta.shape[0]):
            theta[j] -= gamma * gradient[j]
        memory.taken[0] += 1
        return 0 if finite(theta) else -1

    def memory(self, x, rng):
        return DescentMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(self.dim),
            clipped=np.zeros(1, np.int64),
            provider=self.provider.memory(rng),
        )

    def stability_limit(self, curvature):
        return 2.0 / curvature if curvature > 0.0 else None


class GD(SGD):
    """Gradient descent on U, with the exact gradient.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        The target.
    step, clip_norm, clip_value, normalise
        See `SGD`.

    Raises
    ------
    TypeError
        For a gradient that is not exact.
    """

    def __init__(self, target, step, clip_norm=None, clip_value=None, normalise=None):
        super().__init__(target, step, clip_norm, clip_value, normalise)
        if not self.provider.exact:
            raise TypeError(
                f"discrete.GD needs the exact gradient, not {type(self.provider).__name__}: use discrete.SGD."
            )


def clipped(safeguard, state):
    """What ``run.stats`` says of a safeguard."""
    if type(safeguard) is Unclipped:
        return {}
    taken = int(state.memory.taken[0])
    return {"mean_clipped": int(state.memory.clipped[0]) / taken if taken else math.nan}
