r"""Gradient descent and stochastic gradient descent.

=====  =====================================
flow   none
clock  ticks of γₖ
rate   none: every tick is an event
jump   θ ← θ - γₖ s(∇Û(θ)), s one of the safeguards of `discrete.clipping` or nothing
=====  =====================================

They find the mode of the target, and do not sample it. With steps whose sum is infinite and whose squares have a finite
sum (Robbins & Monro) SGD converges. With constant steps γ it fluctuates around the mode: on U = λθ²/2 with gradient
noise of standard deviation τ, with variance γτ² / (λ (2 - γλ)), for γλ < 2.

References
----------
Robbins & Monro (1951), A stochastic approximation method, Ann. Math. Statist. 22; Pascanu, Mikolov & Bengio (2013),
On the difficulty of training recurrent neural networks, ICML (clipping of the norm).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.clipping import Unclipped, as_safeguard
from discrete.curvature import curvature_along
from discrete.schedules import Polynomial, Schedule
from discrete.tick import Ticking, exact_provider, finite
from pdmp.errors import warn
from pdmp.gradients import Full, Provider
from pdmp.interfaces.report import Report
from pdmp.models import Model
from pdmp.native.classes import compiled
from pdmp.native.records import Count, Vector, zeros

#: Steps of the power iteration for the largest curvature, and passes over the data of a run that can pay for them.
ITERATIONS, PASSES = 10, 400


class DescentMemory(NamedTuple):
    """What a chain keeps beside its position."""

    taken: Count
    gradient: Vector
    clipped: Count  #: steps at which the safeguard acted
    provider: tuple


class SGDReport(Report):
    """How often the safeguard acted, and a step that is too large for the curvature where the path ends up."""

    def doubts(self, run, asked):
        """A sentence if the last step is above the stability limit at the average of the path.

        The curvature is looked at where a twentieth of the run's gradients pay for it.
        """
        process, model = run.process, run.process.model
        if type(process.safeguard) is not Unclipped or run.store == "moments" or run.stats["data_passes"] < PASSES:
            return []
        with np.errstate(all="ignore"):
            curvature = curvature_along(model, run.mean(), ITERATIONS)[0]
            limit = process.stability_limit(curvature)
        step = process.schedule.step(max(int(run.events.min()) - 1, 0))
        if limit is None or not math.isfinite(curvature) or not step > limit:
            return []
        return [
            f"the step of {type(process).__name__}, {step:.4g}, is above its stability limit at the average of the "
            f"path, {limit:.4g}, for the largest curvature of U there, {curvature:.4g}: the path goes to and fro "
            f"around the mode and does not come near it; give {0.5 * limit:.2g} or less"
        ]

    def statistics(self, process, state):
        """The fraction of steps at which the safeguard acted, if there is one."""
        return clipped(process.safeguard, state)


class SGD(Ticking):
    """Stochastic gradient descent on U.

    With a safeguard, ``run.stats["mean_clipped"]`` is the fraction of steps at which it acted.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        γ of θ ← θ - γ∇Û, where ∇U is the gradient of the full sum over the data; in units of 1 / curvature of U.
    clip_norm : float, optional
        Estimates of ∇U with a larger norm are shortened to this one.
    clip_value : float or pair of float, optional
        Every entry of an estimate is brought into [-c, c], or into [lo, hi].
    normalise : float, optional
        Every estimate is given this norm.

    Raises
    ------
    ValueError
        For a step or a bound that is not positive, or more than one safeguard.

    Warns
    -----
    UserWarning
        For polynomial steps whose squares have an infinite sum, with a noisy gradient: SGD then need not converge.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGD(pdmp.gradients.Noisy(model, 0.5), step=0.1, clip_norm=5.0).stability_limit(4.0)
    0.5
    """

    safeguard: Unclipped

    can_explore = True
    report = SGDReport()

    def __init__(
        self,
        provider: Provider | Model,
        step: float | Schedule,
        clip_norm: float | None = None,
        clip_value: float | tuple[float, float] | None = None,
        normalise: float | None = None,
    ):
        super().__init__(provider, step)
        self.safeguard = as_safeguard(clip_norm, clip_value, normalise)
        if isinstance(self.schedule, Polynomial) and self.schedule.kappa <= 0.5 and not self.provider.exact:
            warn(
                f"`step`: with the exponent {self.schedule.kappa:g} <= 1/2 the squares of the steps have an infinite "
                "sum; stochastic gradient descent is only sure to converge for exponents in (1/2, 1]."
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

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return zeros(DescentMemory, self.dim, provider=self.provider.memory(rng))

    def smaller_step(self, off: float) -> None:
        return None  # its law is not that of the target at any step

    def stability_limit(self, curvature: float) -> float | None:
        return 2.0 / curvature if curvature > 0.0 else None


class GD(SGD):
    """Gradient descent on U, with the exact gradient.

    Parameters
    ----------
    target : pdmp.Model or pdmp.gradients.Full
        The target, with its exact gradient.
    step, clip_norm, clip_value, normalise
        As for `SGD`.

    Raises
    ------
    TypeError
        For a gradient that is not exact.
    ValueError
        For a step or a bound that is not positive, or more than one safeguard.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.GD(model, step=0.1).provider.exact
    True
    """

    def __init__(
        self,
        target: Model | Full,
        step: float | Schedule,
        clip_norm: float | None = None,
        clip_value: float | tuple[float, float] | None = None,
        normalise: float | None = None,
    ):
        provider = exact_provider(target, "GD", "discrete.SGD takes")
        super().__init__(provider, step, clip_norm, clip_value, normalise)


def clipped(safeguard, state):
    """The entry of ``run.stats`` for a safeguard, if there is one."""
    if type(safeguard) is Unclipped:
        return {}
    taken = int(state.memory.taken[0])
    return {"mean_clipped": int(state.memory.clipped[0]) / taken if taken else math.nan}
