r"""Stochastic-gradient Langevin dynamics.

=====  =====================================================================================================
flow   none
clock  ticks of γₖ; a state before a step that explores (`schedules.cyclical`) is held for no time
rate   none: every tick is an event
jump   θ ← θ - γₖ P ∇Û(θ) + √(2γₖT) P^½ ξ,  ξ ~ N(0, I), target exp(-U/T)

       corrected   noise variance  max(2γT p - γ²p²τ², 0)              τ: sd of the gradient noise, estimated
       modified    noise sd        √(2γTp) max(1 - 2γ c pτ²/T, 0)      c = 1/8, or another coefficient
       extreme     no noise
=====  =====================================================================================================

On U = λθ²/2 with additive gradient noise of standard deviation τ and constant steps, γλ < 2, the stationary variances
at T = 1 are

=========  ==================================================  ===========================================
plain      (2 + γτ²) / (λ (2 - γλ))                            1/λ + γ/2 + γτ²/(2λ) + O(γ²)
corrected  2 / (λ (2 - γλ)), while γτ² <= 2                    1/λ + γ/2 + O(γ²): as without gradient noise
modified   (2 (1 - 2γcτ²)² + γτ²) / (λ (2 - γλ))               c = 1/8: as corrected up to O(γ²);
                                                               c = 1/2: 1/λ + γ/2 - 3γτ²/(2λ) + O(γ²)
extreme    γτ² / (λ (2 - γλ))                                  that of SGD
=========  ==================================================  ===========================================

In print the coefficient c is 1/2, with the covariance of *half* the gradient. With the covariance of the gradient, for
h = 2γ and noise sd √h (1 - c h τ²), that removes four times what the gradient's noise adds.

τ² is estimated from the batch and averaged over the steps. With the average of variances, the corrected form has the
covariance above exactly, but for the covariance of the noise between coordinates: on a linear Gaussian model with
independent mini-batches, for every weight β, as long as the variance is never cut off at 0. The square of an average
sd, as it was published, is too small by the variance of the sd; in a regression with batches of 24 this made a variance
5 % too large.

Corrections need noise that is independent from step to step (`Minibatch` with "iid" or "distinct", `Noisy`,
`ControlVariate`). With "reshuffle" or "epoch" the noise cancels over an epoch, and more is removed than there is: in
the same example, with ten blocks, the corrected variance was 0.62 of the target's and the plain one 1.18.

References
----------
Welling & Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, ICML, eq. 4 (their ε is 2γ);
Vollmer, Zygalakis & Teh (2016), Exploration of the (non-)asymptotic bias and variance of stochastic gradient Langevin
dynamics, JMLR 17 (modified); Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker
dynamics, AISTATS, supplement (corrected, extreme); `discrete.preconditioners`.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from discrete.clipping import Unclipped, as_safeguard
from discrete.curvature import DENSE_DIMENSIONS
from discrete.laws import langevin_covariance, largest_step
from discrete.preconditioners import Preconditioner, as_preconditioner
from discrete.schedules import Automatic, Constant, Repeated, Schedule, as_temperature
from discrete.sgd import clipped
from discrete.tick import Brownian, finite
from pdmp.errors import warn
from pdmp.gradients import Provider, as_provider
from pdmp.interfaces.report import Report
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import one_of, positive
from pdmp.native.classes import Compiled, compiled
from pdmp.native.records import Count, Number, Vector, zeros


class SGLDMemory(NamedTuple):
    """What a chain keeps beside its position; the arrays of options that are not in use have no entries."""

    taken: Count
    gradient: Vector
    normals: np.ndarray
    clipped: Count  #: steps at which the safeguard acted
    noiseless: Count  #: updates of a coordinate that a correction left without noise
    sd: np.ndarray  #: (d,) noise sd of the last gradient
    mean: np.ndarray  #: (d,) running average of its square, or of itself, which starts at 0
    start_weight: Number  #: (1 - β)^k, the weight of that start
    squares: np.ndarray  #: (d,) running average of the squared gradients (RMSprop)
    square_derivatives: np.ndarray  #: (d,) running average of the derivatives of the squared gradients (RMSprop)
    probe_point: np.ndarray  #: (d,) θ + z, where RMSprop takes the gradient for the Hessian's diagonal
    probe_gradient: np.ndarray  #: (d,) the gradient there
    provider: tuple


class Uncorrected(Compiled):
    """The injected noise of Langevin dynamics, and the base of its corrections."""

    #: Whether it needs the sd of the gradient's noise.
    estimates = False

    @compiled
    def gradient(self, provider, x, memory, rng, counts):
        """Write an estimate of ∇U to ``memory.gradient``."""
        provider.gradient(x, memory.provider, rng, memory.gradient, counts)

    @compiled
    def noise(self, preconditioner, j, gamma, temperature, z, memory):
        """The noise that is added to coordinate j."""
        return math.sqrt(2.0 * gamma * temperature) * preconditioner.noise(j, z, memory)

    def injected(self, gamma, temperature, p, noise):
        """Covariance of the added noise, (d, d), for P and the covariance `noise` of the gradient's noise."""
        return 2.0 * gamma * temperature * p


class Extreme(Uncorrected):
    """No injected noise at all."""

    @compiled
    def noise(self, preconditioner, j, gamma, temperature, z, memory):
        return 0.0

    def injected(self, gamma, temperature, p, noise):
        return 0.0 * p


class Corrected(Uncorrected):
    """The variance of the gradient's noise is taken off that of the injected noise."""

    beta: float  #: weight of the newest value in the average
    squared: bool  #: whether squares are averaged, not the sd itself

    estimates = True

    def __init__(self, beta, squared):
        self.beta, self.squared = beta, squared

    @compiled
    def gradient(self, provider, x, memory, rng, counts):
        provider.gradient_and_sd(x, memory.provider, rng, memory.gradient, memory.sd, counts)
        memory.start_weight[0] *= 1.0 - self.beta
        for j in range(x.shape[0]):
            sd = memory.sd[j]
            memory.mean[j] += self.beta * ((sd * sd if self.squared else sd) - memory.mean[j])

    @compiled
    def square(self, j, memory):
        """τ² of coordinate j."""
        mean = memory.mean[j] / (1.0 - memory.start_weight[0])
        return mean if self.squared else mean * mean

    @compiled
    def noise(self, preconditioner, j, gamma, temperature, z, memory):
        p = preconditioner.entry(j, memory)
        variance = 2.0 * gamma * temperature * p - gamma * gamma * p * p * self.square(j, memory)
        if variance > 0.0:
            return math.sqrt(variance) * z[j]
        memory.noiseless[0] += temperature > 0.0
        return 0.0

    def injected(self, gamma, temperature, p, noise):
        p = np.diag(p)
        return np.diag(np.maximum(2.0 * gamma * temperature * p - gamma**2 * p**2 * np.diag(noise), 0.0))


class Modified(Corrected):
    """The injected noise is scaled by 1 - 2γ c p τ² / T."""

    coefficient: float

    def __init__(self, beta, squared, coefficient):
        super().__init__(beta, squared)
        self.coefficient = coefficient

    @compiled
    def noise(self, preconditioner, j, gamma, temperature, z, memory):
        p = preconditioner.entry(j, memory)
        factor = temperature - 2.0 * gamma * self.coefficient * p * self.square(j, memory)
        if factor > 0.0:
            return math.sqrt(2.0 * gamma * p / temperature) * factor * z[j]
        memory.noiseless[0] += temperature > 0.0
        return 0.0

    def injected(self, gamma, temperature, p, noise):
        p = np.diag(p)
        factor = np.maximum(temperature - 2.0 * gamma * self.coefficient * p * np.diag(noise), 0.0)
        return np.diag(2.0 * gamma * p / temperature * factor**2)


def _as_correction(correction, coefficient, beta, average, provider, preconditioner):
    one_of("correction", correction, (None, "corrected", "modified", "extreme"))
    if not 0.0 < beta <= 1.0:
        raise ValueError(f"`beta` must lie in (0, 1], got {beta!r}.")
    one_of("average", average, ("variance", "sd"))
    if not 0.0 <= coefficient < math.inf:
        raise ValueError(f"`coefficient` must be finite and at least 0, got {coefficient!r}.")
    if correction is None:
        return Uncorrected()
    if correction == "extreme":
        return Extreme()
    if not provider.has_variance:
        raise ValueError(
            f'correction="{correction}" needs the noise of the gradient: `size` of the batches at least 2.'
        )
    if not preconditioner.diagonal:
        raise ValueError(f'correction="{correction}" works coordinate by coordinate: `metric` must be diagonal.')
    options = float(beta), average == "variance"
    return Corrected(*options) if correction == "corrected" else Modified(*options, float(coefficient))


class SGLDReport(Report):
    """How often a correction left no noise, and a safeguard acted."""

    def statistics(self, process, state):
        """Fractions of steps at which the safeguard acted, and of updates without noise, if there can be any."""
        found = clipped(process.safeguard, state)
        if process.correction.estimates:
            updates = int(state.memory.taken[0]) * process.dim
            found["mean_noise_removed"] = int(state.memory.noiseless[0]) / updates if updates else math.nan
        return found


class SGLD(Brownian):
    """Stochastic-gradient Langevin dynamics on exp(-U/T).

    With a correction, ``run.stats["mean_noise_removed"]`` is the fraction of the updates of a coordinate that it left
    without any noise, because the noise of the gradient was larger than can be corrected at this step. With a
    safeguard, ``run.stats["mean_clipped"]`` is the fraction of steps at which it acted.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float, schedule or "auto", default "auto"
        γ of dθ = -∇U dt + √2 dB, a time: θ ← θ - γ∇Û + √(2γ) ξ. Many papers write h = 2γ: see `from_h`. "auto": see
        `discrete.schedules.automatic`.
    temperature : float or schedule, default 1
        T >= 0 of the target exp(-U/T); at 0 this is `SGD`.
    metric : None, float, array_like of shape (d,) or (d, d), pdmp.Metric, or one of `discrete.preconditioners`
        M, of which P = M⁻¹ is the preconditioner: θ ← θ - γP∇Û + √(2γ) P^½ ξ. P itself is given by
        ``pdmp.Metric(covariance=...)``. `Scheduled` changes P at given steps, `RMSprop` adapts it to gradients. None,
        the default: the identity.
    correction : {None, "corrected", "modified", "extreme"}
        Less noise is injected, because the gradient is noisy already; the formulas and the laws are in the text of
        `discrete.sgld`.
    coefficient : float, default 1/8
        c of the modified form, at least 0; in print it is 1/2.
    beta : float, default 0.1
        Weight of the newest value in the running average of the gradient's noise, in (0, 1], for the corrected and the
        modified form.
    average : {"variance", "sd"}
        Whether τ² is the average of variances or, as published, the square of the average sd, which is too small.
    clip_norm, clip_value, normalise : optional
        Safeguards on ∇Û, before it is preconditioned; see `SGD`. They bias the law.

    Raises
    ------
    TypeError
        For a `step`, `temperature` or `metric` of another type.
    ValueError
        For a step that is not positive, a negative temperature, a metric that is not positive definite, an
        unknown correction, or a correction with batches of one term or with a metric that is not diagonal.

    Warns
    -----
    UserWarning
        For a correction with batches whose noise cancels over an epoch.

    See Also
    --------
    discrete.SGHMC : With momentum.
    discrete.SGBD : Robust to large gradients.
    discrete.schedules.polynomial : Decreasing steps.
    pdmp.gradients.Minibatch : The estimates that it takes.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> sampler = discrete.SGLD(pdmp.gradients.Noisy(model, 0.5), step=0.1)
    >>> sampler.stability_limit(4.0), sampler.bias_order
    (0.5, 1)
    """

    temperature: Schedule
    preconditioner: Preconditioner
    correction: Uncorrected
    safeguard: Unclipped

    can_explore = True
    report = SGLDReport()

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        temperature: float | Schedule = 1.0,
        *,
        metric: ArrayLike | Metric | Preconditioner | None = None,
        correction: str | None = None,
        coefficient: float = 0.125,
        beta: float = 0.1,
        average: str = "variance",
        clip_norm: float | None = None,
        clip_value: float | tuple[float, float] | None = None,
        normalise: float | None = None,
    ):
        super().__init__(provider, step)
        self.temperature = as_temperature(temperature)
        self.preconditioner = as_preconditioner(metric, self.dim, type(self).__name__)
        if isinstance(self.schedule, Automatic) and (self.preconditioner.adaptive or self.preconditioner.scheduled):
            raise ValueError(
                '`step`: "auto" cannot be predicted for a metric that adapts or changes; give a number or a schedule.'
            )
        self.correction = _as_correction(correction, coefficient, beta, average, self.provider, self.preconditioner)
        if isinstance(self.temperature, Constant) and self.temperature.value == 0.0:
            self.correction = Extreme()
        self.safeguard = as_safeguard(clip_norm, clip_value, normalise)
        if self.correction.estimates and type(self.safeguard) is not Unclipped:
            raise ValueError(
                f'correction="{correction}" needs the noise of the gradient as it is, not with clipping; leave one out.'
            )
        if self.correction.estimates and not self.provider.independent:
            warn(
                f'correction="{correction}" takes the gradient\'s noise to be independent from step to step; that of '
                f'draw="{self.provider.draw}" cancels over an epoch, and too much will be removed.'
            )
        if type(self.correction) is Extreme:
            self.normals = 0  # no normals are drawn, so that the random numbers are the same as those of SGD

    @classmethod
    def from_h(cls, provider: Provider | Model, h: float, **options: Any) -> SGLD:
        """From the convention θ - (h/2) ∇Û + √h ξ: γ = h/2.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float
            The step of that convention.
        **options
            Further arguments of `SGLD`.

        Returns
        -------
        SGLD

        Raises
        ------
        ValueError
            If `h` is not a positive number.

        Examples
        --------
        >>> import discrete, pdmp
        >>> discrete.SGLD.from_h(pdmp.models.Gaussian([0.0], [1.0]), h=0.5).schedule.step(0)
        0.25
        """
        return cls(provider, step=0.5 * positive("h", h), **options)

    @classmethod
    def from_sigma(cls, provider: Provider | Model, sigma: float, **options: Any) -> SGLD:
        """From the convention θ - (σ²/2) ∇Û + σ ξ, whose σ is comparable to the scale of `SGBD`: γ = σ²/2.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        sigma : float
            σ, in units of θ.
        **options
            Further arguments of `SGLD`.

        Returns
        -------
        SGLD

        Raises
        ------
        ValueError
            If `sigma` is not a positive number.
        """
        return cls(provider, step=0.5 * positive("sigma", sigma) ** 2, **options)

    @classmethod
    def from_mean_gradient_step(cls, provider: Provider | Model, eps: float, **options: Any) -> SGLD:
        """From a step for the gradient of U/N, θ - ε ∇Û/N + √(2ε/N) ξ, where N is the number of data: γ = ε/N.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
            Of a target that is a sum over data.
        eps : float
            ε.
        **options
            Further arguments of `SGLD`.

        Returns
        -------
        SGLD

        Raises
        ------
        ValueError
            If `eps` is not a positive number, or the target has no data.
        """
        provider = as_provider(provider, "provider")
        if provider.n_data < 1:
            raise ValueError(f"`provider` must be of a sum over data, and {type(provider.model).__name__} is not.")
        return cls(provider, step=positive("eps", eps) / provider.n_data, **options)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With it, and an automatic step that is chosen for it."""
        return cls(target, **{"metric": Metric(covariance=learnt.covariance)} | options)

    @compiled
    def holding_time(self, k):
        return 0.0 if self.schedule.explores(k) else self.schedule.step(k)

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient = memory.taken[0], memory.gradient
        gamma = self.schedule.step(k)
        temperature = 0.0 if self.schedule.explores(k) else self.temperature.step(k)
        self.correction.gradient(self.provider, x, memory, rng, counts)
        if not finite(gradient):
            return False
        if not self.preconditioner.update(x, memory, self.provider, rng, counts):
            return False
        memory.clipped[0] += self.safeguard.apply(gradient)
        for j in range(x.shape[0]):
            drift = self.preconditioner.drift(j, temperature, memory)
            x[j] += -gamma * drift + self.correction.noise(self.preconditioner, j, gamma, temperature, z, memory)
        return True

    def halved(self) -> Self:
        if self.schedule.exploring:
            raise ValueError(
                "`step`: a schedule that explores cannot be extrapolated: some states are held for no time."
            )
        fine = super().halved()
        if not isinstance(self.temperature, Constant):
            fine.temperature = Repeated(self.temperature)
        if self.preconditioner.scheduled:
            fine.preconditioner = self.preconditioner.repeated()
        return fine

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        noise, adaptive = d * self.correction.estimates, d * self.preconditioner.adaptive
        return zeros(
            SGLDMemory,
            d,
            normals=np.zeros(self.normals * d),
            sd=np.zeros(noise),
            mean=np.zeros(noise),
            start_weight=np.ones(1),
            squares=np.zeros(adaptive),
            square_derivatives=np.zeros(adaptive),
            probe_point=np.zeros(adaptive),
            probe_gradient=np.zeros(adaptive),
            provider=self.provider.memory(rng),
        )

    def aimed_temperature(self) -> float | None:
        return self.temperature.value if isinstance(self.temperature, Constant) else None

    def smaller_step(self, off: float) -> str | None:
        of_target = self.aimed_temperature() == 1.0
        return super().smaller_step(off) if of_target and not self.schedule.exploring else None

    def stability_limit(self, curvature: float) -> float | None:
        """2 / `curvature`; None with a metric, since it changes the curvature: see `resolve`."""
        given = self.preconditioner
        if given.adaptive or given.scheduled or given.matrix is not None or not curvature > 0.0:
            return None
        return 2.0 / curvature

    def resolve(self, x: np.ndarray) -> Self:
        p = self.preconditioner.matrix
        if p is None or isinstance(self.schedule, Automatic):
            return super().resolve(x)
        hessian = self._constant_hessian(x)
        if hessian is not None:  # P H has the eigenvalues of the symmetric P^½ H P^½
            product = p @ hessian if p.ndim == 2 else p[:, None] * hessian
            largest = float(np.linalg.eigvals(product).real.max())
            self._warn_above(2.0 / largest if largest > 0.0 else None)
        return copy.copy(self)

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        step, worst = largest_step(
            lambda gamma: self.covariance(hessian, noise, gamma),
            self.target_covariance(hessian),
            self.largest(hessian),
            error,
        )
        return {"schedule": Constant(step)}, worst

    def target_covariance(self, hessian: np.ndarray) -> np.ndarray:
        """Covariance of exp(-U/T), (d, d)."""
        return max(self.temperature.step(0), 1e-300) * np.linalg.inv(hessian)

    def largest(self, hessian: np.ndarray) -> float:
        """Where the search for a step begins: the stability limit."""
        return 2.0 / float(np.linalg.eigvals(self._constants(len(hessian)) @ hessian).real.max())

    def covariance(self, hessian: np.ndarray, noise: np.ndarray, gamma: float) -> np.ndarray:
        """Stationary covariance with the step `gamma` on a Gaussian target, (d, d); None where it is unstable.

        It is assumed that corrections know the noise of the gradient exactly, and that safeguards never act.
        """
        p, temperature = self._constants(len(hessian)), self.temperature.step(0)
        injected = self.correction.injected(gamma, temperature, p, noise)
        return langevin_covariance(hessian, noise, gamma, injected, p)

    def _constants(self, d):
        """P as a matrix."""
        p = self.preconditioner.matrix
        if p is None:
            return np.eye(d)
        if d != self.dim:
            raise ValueError(
                f'step="auto" with a metric is for at most {DENSE_DIMENSIONS} dimensions, got {self.dim}; give a step.'
            )
        return np.diag(p) if p.ndim == 1 else p
