r"""Stochastic-gradient Barker dynamics.

=====  ====================================================================================================
flow   none
clock  ticks; a state is held for σₖ², the square of the scale with which it is left
jump   θⱼ ← θⱼ + bⱼ zⱼ,  zⱼ ~ N(σ, (0.1 σ)²),  bⱼ = ±1 with P(bⱼ = 1) = pⱼ; with ĝ = -∇Û and its noise sd τ

       vanilla    p = 1 / (1 + exp(-z ĝ))
       corrected  p = 1 / (1 + exp(-z ĝ C / √(C² - τ² z²))), C = 1.702, while τ |z| < C; beyond, as extreme
       extreme    p = 1 if z ĝ > 0, ½ if it is 0, else 0
=====  ====================================================================================================

An increment is never larger than z, whatever the gradient. Gradient noise shrinks p towards ½; the corrected form
undoes that up to the breaking point τ |z| = C, beyond which no estimator can (`discrete.breaking_point`).

The adaptive scale σₖ = C / (1.233 τₖ), τₖ the noise as known before step k, keeps 99 % of the increments below it, for
1.233 = 1 + 0.1 × 2.33. Where a scale depends on the state, holding it for σ² keeps averages right to leading order.

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
import warnings
from typing import NamedTuple

import numpy as np

from discrete.barker import CORRECTED, ESTIMATORS, SPREAD, C, coordinate_scales, probability
from discrete.curvature import noise_covariance
from discrete.laws import barker_covariance, largest_step
from discrete.schedules import Constant, Schedule, automatic
from discrete.tick import StepRecipe, Ticking
from pdmp.gradients import as_provider
from pdmp.interfaces.report import Report
from pdmp.native.classes import compiled
from pdmp.process import CERTAIN

MARGIN = 1.0 + 2.33 * SPREAD  #: 99 % of the increments are below this multiple of σ


class SGBDMemory(NamedTuple):
    """Beside the state of SGBD."""

    taken: np.ndarray
    gradient: np.ndarray
    sd: np.ndarray  #: (d,) noise sd of the last gradient
    mean_sd: np.ndarray  #: (d,) its exponential average, not yet corrected for its start at 0
    start_weight: np.ndarray  #: (1,) (1 - β)^k, the weight of that start
    beyond: np.ndarray  #: (1,) coordinate updates beyond the breaking point
    scale: np.ndarray  #: (d,) adaptive: the scales of the next step
    holding_time: np.ndarray  #: (1,) adaptive: how long the state before it is held
    provider: tuple


class SGBDRecipe(StepRecipe):
    """Each estimator with the scale that it would choose itself."""

    def processes(self, sampler, model, batch, mode, error):
        hessian, noise = model.hessian(mode), noise_covariance(batch, mode)
        found = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a comparison shows how far off it is
            for estimator in ESTIMATORS:
                process = sampler(batch, scale=automatic(error), estimator=estimator)
                found[f"{sampler.__name__} {estimator}"] = process.with_step(hessian, noise)
        return found

    def setting(self, process):
        return f"scale {'at most ' if process.adaptive else ''}{process.schedule.step(0):.3g}"


class SGBDReport(Report):
    """Updates beyond the breaking point, and the adapted scale."""

    def statistics(self, process, state):
        """Coordinate updates, those of them beyond the breaking point, and these as a fraction.

        Only the corrected estimator and the adaptive scale know the noise; for the others nothing is beyond.
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
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    scale : float, array_like of shape (d,), schedule, "adaptive" or "auto", default "auto"
        σ, in units of θ; to leading order the step γ = 0.505 σ² of SGLD. A state is held for σ², or its mean over
        coordinates. ``"adaptive"``: for each coordinate C / (1.233 τ), from the running average of the noise sd, and
        `max_scale` where that is larger. The first step has to take it from its own batch, and the state before it is
        held for no time.
    estimator : "vanilla", "corrected" or "extreme"
        How the noisy gradient enters the probability of the sign.
    beta : float, default 0.1
        Weight of the newest value in the running average of the noise sd, in (0, 1]: of the corrected estimator, and
        of the adaptive scale.
    shape : array_like of shape (d,), optional
        Scale of each coordinate in units of `scale`, for a schedule.
    max_scale : float or array_like of shape (d,), optional
        The largest scale of an adaptive one, which needs it.

    Raises
    ------
    ValueError
        For an unknown estimator, a scale that is not positive, or a corrected estimator or an adaptive scale with
        batches of one term.
    """

    shape: np.ndarray  #: (d,) the scale of each coordinate in units of the schedule's
    mean_square_shape: float  #: mean of the squares of `shape`
    estimator: int
    beta: float
    adaptive: bool  #: whether the scale follows the noise
    measured: bool  #: whether the noise of the gradient is estimated

    def __init__(self, provider, scale="auto", estimator="vanilla", beta=0.1, shape=None, max_scale=None):
        if estimator not in ESTIMATORS:
            raise ValueError(f"`estimator` must be one of {', '.join(map(repr, ESTIMATORS))}, got {estimator!r}.")
        dim = as_provider(provider).dim
        self.adaptive = isinstance(scale, str) and scale == "adaptive"
        if self.adaptive and max_scale is None:
            raise ValueError('scale="adaptive" needs `max_scale`, its largest value.')
        if not self.adaptive and max_scale is not None:
            raise ValueError('`max_scale` is for scale="adaptive".')
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
        if not 0.0 < beta <= 1.0:
            raise ValueError(f"`beta` must lie in (0, 1], got {beta!r}.")
        self.beta = beta
        if self.measured and not self.provider.has_variance:
            what = 'estimator="corrected"' if self.estimator == CORRECTED else 'scale="adaptive"'
            raise ValueError(f"{what} needs the noise of the gradient: `size` of the batches at least 2.")

    @classmethod
    def from_h(cls, provider, h, **options):
        """From the step h = σ² of the Langevin convention θ - (h/2) ∇Û + √h ξ; a number, or one for each coordinate."""
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
            if math.isnan(memory.gradient[j]):
                return -1
        hold = 0.0
        for j in range(theta.shape[0]):
            tau, s = 0.0, sigma * self.shape[j]
            if self.measured:
                memory.mean_sd[j] += self.beta * (memory.sd[j] - memory.mean_sd[j])
                tau = memory.mean_sd[j] / (1.0 - memory.start_weight[0])
                if math.isnan(tau):
                    return -1
            if self.adaptive:
                largest, s = s, memory.scale[j]
                new = largest if MARGIN * tau * largest <= C else C / (MARGIN * tau)
                if memory.taken[0] == 0:
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

    def memory(self, x, rng):
        d = self.dim
        scale = self.schedule.step(0) * self.shape
        return SGBDMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(d),
            sd=np.zeros(d),
            mean_sd=np.zeros(d),
            start_weight=np.ones(1),
            beyond=np.zeros(1, np.int64),
            scale=scale,
            holding_time=np.zeros(1),
            provider=self.provider.memory(rng),
        )

    step_name = "scale"
    recipe = SGBDRecipe()
    report = SGBDReport()

    def choose_settings(self, hessian, noise, error):
        name = next(name for name, number in ESTIMATORS.items() if number == self.estimator)
        shape = self.shape if len(hessian) == self.dim else float(self.shape.max())
        scale, worst = largest_step(
            lambda sigma: barker_covariance(hessian, noise, sigma * shape, name),
            np.linalg.inv(hessian),
            10.0 / np.sqrt(np.linalg.eigvalsh(hessian)[0]) / np.min(shape),
            error,
        )
        return {"schedule": Constant(scale)}, worst
