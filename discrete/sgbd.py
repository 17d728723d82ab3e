r"""Stochastic-gradient Barker dynamics.

=====  ====================================================================================================
flow   none
clock  ticks; a state is held for σₖ², the square of the scale of the step from it
rate   none: every tick is an event
jump   θⱼ ← θⱼ + bⱼ zⱼ,  zⱼ ~ N(σ, (0.1 σ)²),  bⱼ = ±1 with P(bⱼ = 1) = pⱼ; with ĝ = -∇Û and its noise sd τ

       vanilla    p = 1 / (1 + exp(-z ĝ))
       corrected  p = 1 / (1 + exp(-z ĝ C / √(C² - τ² z²))), C = 1.702, while τ |z| < C; beyond, as extreme
       extreme    p = 1 if z ĝ > 0, ½ if it is 0, else 0
=====  ====================================================================================================

The size of an increment does not depend on the gradient. Gradient noise moves p towards ½. The corrected form undoes
this up to the breaking point τ |z| = C; beyond it no estimator can (`discrete.breaking_point`).

The adaptive scale σₖ = C / (1.233 τₖ), where τₖ is the noise as estimated before step k, keeps 99 % of the increments
below the breaking point, since 1.233 = 1 + 0.1 × 2.33. This scale depends on the state. Averages are still right to
leading order, because the state is held for σ². As published, τₖ contains the batch of step k itself; that is
``noise="current"``. The size of an increment then depends on the batch that decides its sign.

On U = θ²/2 the stationary variance is 1 + σ²/4 + O(σ⁴) without noise. With noise and a small σ it is √(1 + σ²τ²/C²) for
the vanilla estimator, up to 9 % more; for the corrected one it grows from 1 to 1.12 at the breaking point στ = C; and
it is √(π/8) στ for the extreme one, and beyond that point.

References
----------
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS: Algorithms 2 to 4
(with N/√n and the finite-population factor in τ̂, and the extreme branch, which Algorithm 3 leaves to the text);
Livingstone & Zanella (2022), The Barker proposal, JRSS B 84.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from discrete.barker import CORRECTED, ESTIMATORS, SPREAD, C, coordinate_scales, probability
from discrete.curvature import noise_covariance
from discrete.laws import barker_covariance, largest_step
from discrete.schedules import Constant, Schedule, automatic
from discrete.tick import StepRecipe, Ticking
from pdmp.errors import silenced
from pdmp.gradients import Provider, as_provider
from pdmp.interfaces.report import Report
from pdmp.models import Model
from pdmp.native.arguments import number, one_of
from pdmp.native.classes import compiled
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN

QUANTILE = 1.0 + 2.33 * SPREAD  #: 99 % of the increments are below this multiple of σ


class SGBDMemory(NamedTuple):
    """What a chain keeps beside its state."""

    taken: Count
    gradient: Vector
    sd: Vector  #: noise sd of the last gradient
    mean_sd: Vector  #: its running average, which starts at 0
    start_weight: Number  #: (1 - β)^k, the weight of that start
    beyond: Count  #: updates of a coordinate beyond the breaking point
    scale: np.ndarray  #: (d,) the scales of the next step, if they are adaptive
    holding_time: Number  #: how long the state before it is held, if they are
    provider: tuple


class SGBDRecipe(StepRecipe):
    """Each estimator, with its automatic scale."""

    def processes(self, sampler, model, batch, mode, error):
        hessian, noise = model.hessian(mode), noise_covariance(batch, mode)
        found = {}
        with silenced(UserWarning):  # a comparison shows how far off it is
            for estimator in ESTIMATORS:
                process = sampler(batch, scale=automatic(error), estimator=estimator)
                found[f"{sampler.__name__} {estimator}"] = process.with_step(hessian, noise)
        return found

    def setting(self, process):
        return f"scale {'at most ' if process.adaptive else ''}{process.schedule.step(0):.3g}"


class SGBDReport(Report):
    """Updates beyond the breaking point, and the adapted scale."""

    def statistics(self, process, state):
        """The number of updates of a coordinate, and the number and the fraction of those beyond the breaking point.

        The noise is known only for the corrected estimator or the adaptive scale; without it the number is 0.
        """
        updates, beyond = int(state.memory.taken[0]) * process.dim, int(state.memory.beyond[0])
        found = {"coordinate_updates": updates, "beyond_breaking_point": beyond}
        if process.measured:
            found["mean_beyond_breaking_point"] = beyond / updates if updates else math.nan
        if process.adaptive:
            found["mean_scale"] = float(np.mean(state.memory.scale))
        return found


class SGBD(Ticking):
    """Stochastic-gradient Barker dynamics on exp(-U), coordinate-wise, without accept-reject.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    scale : float, array_like of shape (d,), schedule, "adaptive" or "auto", default "auto"
        σ, in units of θ; to leading order it corresponds to the step γ = 0.505 σ² of SGLD. A state is held for σ², or
        for the mean of σ² over the coordinates. "adaptive": for each coordinate C / (1.233 τ), with the running average
        τ of the noise sd, but at most `max_scale`. The scale of the first step is that of its own batch, and the
        initial state is held for no time. "auto": see `discrete.schedules.automatic`.
    estimator : {"vanilla", "corrected", "extreme"}
        How the noisy gradient determines the probability of the sign; the formulas are in the text of `discrete.sgbd`.
    beta : float, default 0.1
        Weight of the newest value in the running average of the noise sd, in (0, 1]; for the corrected estimator and
        the adaptive scale.
    shape : array_like of shape (d,), optional
        The scale of each coordinate in units of `scale`, where that is a number, a schedule or "auto".
    max_scale : float or array_like of shape (d,), optional
        The largest scale, in units of θ. The adaptive scale needs it, the others do not take it.
    noise : {"previous", "current"}, default "previous"
        From which running average of τ the adaptive scale of a step is computed: the one before the step, or, as
        published, the one that contains the step's own batch. With "current" the scale of a step is known only when it
        is taken, and the state before it is held for the square of the newest scale known by then.

    Raises
    ------
    TypeError
        For a schedule as `max_scale`.
    ValueError
        For an unknown estimator, a scale that is not positive, or a corrected estimator or an adaptive scale with
        batches of one term.

    See Also
    --------
    discrete.SGLD : Without Barker's bounded steps.
    discrete.Barker : With exact gradients and a Metropolis step.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGBD(pdmp.gradients.Noisy(model, 0.5), scale=0.5, estimator="corrected").tick_length()
    0.25
    """

    shape: np.ndarray  #: (d,) the scale of each coordinate in units of the schedule's
    mean_square_shape: float  #: mean of the squares of `shape`
    estimator: int
    beta: float
    adaptive: bool  #: whether the scale follows the noise
    measured: bool  #: whether the noise of the gradient is estimated
    current: bool  #: whether the adaptive scale of a step is that of its own batch

    def __init__(
        self,
        provider: Provider | Model,
        scale: ArrayLike | str | Schedule = "auto",
        estimator: str = "vanilla",
        beta: float = 0.1,
        shape: ArrayLike | None = None,
        max_scale: ArrayLike | None = None,
        noise: str = "previous",
    ):
        one_of("estimator", estimator, ESTIMATORS)
        one_of("noise", noise, ("previous", "current"))
        dim = as_provider(provider).dim
        self.adaptive = isinstance(scale, str) and scale == "adaptive"
        if self.adaptive and max_scale is None:
            raise ValueError('`max_scale` must be given for scale="adaptive": it is the largest value of the scale.')
        self.current = noise == "current"
        if self.current and not self.adaptive:
            raise ValueError('`noise` is for scale="adaptive" only; leave it out.')
        if not self.adaptive and max_scale is not None:
            raise ValueError('`max_scale` is for scale="adaptive" only; leave it out.')
        if isinstance(max_scale, Schedule):
            raise TypeError("`max_scale` must be a number or an array, got a schedule.")
        if self.adaptive:
            scale = max_scale
        scale, self.shape = coordinate_scales(scale, dim, "max_scale" if self.adaptive else "scale")
        if shape is not None:
            if self.adaptive or not np.all(self.shape == 1.0):
                raise ValueError("`shape` is for a `scale` that is one number or a schedule.")
            self.shape = coordinate_scales(np.atleast_1d(shape), dim, "shape")[1]
        super().__init__(provider, scale, name="max_scale" if self.adaptive else "scale")
        self.mean_square_shape = float(np.mean(self.shape**2))
        if self.adaptive:
            self.regular = False
        self.estimator = ESTIMATORS[estimator]
        self.measured = self.adaptive or self.estimator == CORRECTED
        if not 0.0 < number("beta", beta) <= 1.0:
            raise ValueError(f"`beta` must lie in (0, 1], got {beta!r}.")
        self.beta = beta
        if self.measured and not self.provider.has_variance:
            what = 'estimator="corrected"' if self.estimator == CORRECTED else 'scale="adaptive"'
            raise ValueError(f"{what} needs the noise of the gradient: `size` of the batches at least 2.")

    @classmethod
    def from_h(cls, provider: Provider | Model, h: ArrayLike, **options: Any) -> SGBD:
        """From the step h = σ² of the Langevin convention θ - (h/2) ∇Û + √h ξ.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float or array_like of shape (d,)
            σ².
        **options
            Further arguments of `SGBD`.

        Returns
        -------
        SGBD

        Raises
        ------
        ValueError
            If `h` is not positive and finite.
        """
        h = np.asarray(h, dtype=float)
        if not np.all((h > 0.0) & np.isfinite(h)):
            raise ValueError(f"`h` must be positive and finite, got {h}.")
        return cls(provider, np.sqrt(h) if h.ndim else math.sqrt(h), **options)

    @compiled
    def holding_time(self, k):
        sigma = self.schedule.step(k)
        return sigma * sigma * self.mean_square_shape

    @compiled
    def clock(self, state, i, now, rng):
        k = state.memory.taken[0]
        if self.adaptive:
            return now + state.memory.holding_time[0], CERTAIN
        if self.regular:
            return (k + 1) * self.holding_time(k), CERTAIN  # from the counter: no rounding adds up
        return now + self.holding_time(k), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        memory, theta = state.memory, state.x
        sigma = self.schedule.step(memory.taken[0])
        if self.measured:
            self.provider.gradient_and_sd(theta, memory.provider, rng, memory.gradient, memory.sd, state.counts)
            memory.start_weight[0] *= 1.0 - self.beta
        else:
            self.provider.gradient(theta, memory.provider, rng, memory.gradient, state.counts)
        for j in range(theta.shape[0]):
            if not math.isfinite(memory.gradient[j]):
                return -1
        hold = 0.0
        for j in range(theta.shape[0]):
            tau, s = 0.0, sigma * self.shape[j]
            if self.measured:
                memory.mean_sd[j] += self.beta * (memory.sd[j] - memory.mean_sd[j])
                tau = memory.mean_sd[j] / (1.0 - memory.start_weight[0])
                if not math.isfinite(tau):
                    return -1
            if self.adaptive:
                largest, s = s, memory.scale[j]
                new = largest if QUANTILE * tau * largest <= C else C / (QUANTILE * tau)
                if self.current or memory.taken[0] == 0:
                    s = new
                memory.scale[j] = new
                hold += new * new
            z = s + SPREAD * s * rng.standard_normal()
            if tau * abs(z) >= C:
                memory.beyond[0] += 1
            p = probability(self.estimator, z, -memory.gradient[j], tau)
            theta[j] += z if rng.random() < p else -z
        memory.holding_time[0] = hold / theta.shape[0]
        memory.taken[0] += 1
        return 0

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        scale = self.schedule.step(0) * self.shape
        return zeros(SGBDMemory, d, start_weight=np.ones(1), scale=scale, provider=self.provider.memory(rng))

    step_name, bias_order = "scale", 2
    recipe = SGBDRecipe()
    report = SGBDReport()

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        name = next(name for name, number in ESTIMATORS.items() if number == self.estimator)
        shape = self.shape if len(hessian) == self.dim else float(self.shape.max())
        scale, worst = largest_step(
            lambda sigma: barker_covariance(hessian, noise, sigma * shape, name),
            np.linalg.inv(hessian),
            10.0 / np.sqrt(np.linalg.eigvalsh(hessian)[0]) / np.min(shape),
            error,
        )
        return {"schedule": Constant(scale)}, worst
