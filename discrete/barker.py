r"""The Barker rule, by which the gradient decides the sign of an increment, and its Metropolised sampler.

With g = ∇log π(θ), an increment of size z gets the sign + with probability 1 / (1 + exp(-z g)). The increments w then
have the density 2 μ(w) / (1 + exp(-w g)), where μ is the symmetrised density of z, for every μ. The form with noisy
gradients is in `discrete.sgbd`; the Metropolised form is

=====  =====================================================================================================
flow   none
clock  ticks; every state is held for the same time
rate   none: every tick is an event
jump   θ' = θ + w, accepted with probability min(1, e^ℓ);  zⱼ ~ N(σⱼ, (0.1 σⱼ)²), or zⱼ ~ N(0, σⱼ²)

       a sign for each coordinate  wⱼ = ±zⱼ, + with probability 1 / (1 + exp(-zⱼ gⱼ))
                                   ℓ = log π(θ')/π(θ) + Σⱼ [log(1 + exp(-wⱼ gⱼ)) - log(1 + exp(wⱼ g'ⱼ))]
       with P = LLᵀ        θ' = θ + L w, and Lᵀg in the place of g
       a single one                w = ±z, + with probability 1 / (1 + exp(-z·g)), and zⱼ ~ ±N(σⱼ, (0.1 σⱼ)²)
                                   ℓ = log π(θ')/π(θ) + log(1 + exp(-w·g)) - log(1 + exp(w·g'))
=====  =====================================================================================================

References
----------
Livingstone & Zanella (2022), The Barker proposal, JRSS B 84 (the Metropolised forms, sections 3 and 4); Mauri & Zanella
(2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS, section 3 (C, the breaking point).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from discrete.metropolis import Metropolis
from discrete.schedules import Schedule
from pdmp.gradients import Full, as_provider
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import one_of
from pdmp.native.classes import compiled, inlined

C = 1.702  #: the logistic function is within 0.0095 of the normal cdf of x / 1.702
SPREAD = 0.1  #: sd of z, in units of σ
#: Values of the field `estimator` of `SGBD`: how a noisy gradient decides the sign.
VANILLA, CORRECTED, EXTREME = 0, 1, 2
ESTIMATORS = {"vanilla": VANILLA, "corrected": CORRECTED, "extreme": EXTREME}
INCREMENTS = ("bimodal", "gaussian")
SIGNS = ("coordinates", "single")


@inlined
def expit(x):
    """1 / (1 + exp(-x)), without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@inlined
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def probability(estimator, z, g, tau):
    """Probability of the sign +, for an increment of size z and a gradient g of log π with noise sd tau."""
    if estimator == EXTREME or estimator == CORRECTED and tau * abs(z) >= C:
        if z * g == 0.0:
            return 0.5
        return 1.0 if z * g > 0.0 else 0.0
    if estimator == CORRECTED:
        g *= C / math.sqrt(C * C - tau * tau * z * z)
    return expit(z * g)


def breaking_point(gradient: ArrayLike, z: ArrayLike) -> float | np.ndarray:
    """The sd of a gradient's noise above which no estimator gives the sign of an increment its right probability.

    τ* = |g| / Φ⁻¹(1 / (1 + exp(-|z g|))). The most decided estimator always goes where the noisy gradient points. With
    normal noise of sd τ* its probability of the right sign equals that of the Barker rule without noise; with more
    noise it is smaller. τ* is 1.5958 / |z| at g = 0 and C / |z| at |z g| = 2.06, and it grows like √(|z g| / 2) / |z|.
    `SGBD` takes C / |z|, C = 1.702, for every g.

    Parameters
    ----------
    gradient : float or array_like
        g, the derivative of log π, or of U: its sign does not matter.
    z : float or array_like
        The size of the increment, in units of θ; broadcast against `gradient`.

    Returns
    -------
    float or ndarray
        τ*, in units of the gradient; infinite where z is 0. A float if both arguments are numbers.

    References
    ----------
    Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS, which uses the
    approximation C / |z|.

    Examples
    --------
    >>> import discrete
    >>> round(float(discrete.breaking_point(1.0, 1.0)), 4)
    1.6233
    """
    from scipy import special

    z = np.abs(np.asarray(z, dtype=float))
    a = z * np.abs(np.asarray(gradient, dtype=float))
    with np.errstate(divide="ignore", invalid="ignore"):
        near = math.sqrt(2.0) * special.erfinv(np.tanh(0.5 * a))  # Φ⁻¹(p), from p - 1/2, for p near 1/2
        far = -special.ndtri_exp(special.log_expit(-a))  # Φ⁻¹(p), from log(1 - p), for p near 1
        ratio = np.where(a > 0.0, a / np.where(a < 1.0, near, far), 4.0 / math.sqrt(2.0 * math.pi))
        found = np.where(z > 0.0, np.where(np.isinf(a), np.inf, ratio) / z, np.inf)
    return found if found.ndim else float(found)


def coordinate_scales(scale, dim, name="scale"):
    """A number or schedule, and the scales of the coordinates in units of it, (dim,), from what users give."""
    if isinstance(scale, Schedule) or np.ndim(scale) == 0:
        return scale, np.ones(dim)
    shape = np.array(scale, dtype=float)
    if shape.shape != (dim,):
        raise ValueError(f"`{name}` must be a number or have shape ({dim},), got {shape.shape}.")
    if not np.all((shape > 0.0) & np.isfinite(shape)):
        raise ValueError(f"`{name}` must be positive and finite in every coordinate.")
    return 1.0, shape


class Barker(Metropolis):
    """The Barker proposal with a Metropolis correction: exp(-U) itself, with steps that steep gradients cannot enlarge.

    Parameters
    ----------
    target : pdmp.Model or pdmp.gradients.Full
        The target, with its exact gradient.
    scale : float, array_like of shape (d,), schedule or "auto", default "auto"
        σ, in units of θ; if it is adapted, its start, and all entries of an array are changed by the same factor.
        "auto": a start from the largest curvature at the mode. Every state is held for σ², that of the first step of a
        schedule, or the mean over the coordinates.
    increments : "bimodal" or "gaussian"
        The law of the increments: ±N(σ, (0.1 σ)²), nearly all of the same size, or N(0, σ²).
    signs : "coordinates" or "single"
        Whether each coordinate's increment gets its own sign or the increment as a whole gets one.
    metric : None, float, array_like of shape (d,) or (d, d), or pdmp.Metric, default None
        M, L Lᵀ = M⁻¹: the proposal is made in the coordinates y, θ = L y, in which `scale` is then. None: the identity.
    adapt : bool, default True
        Whether the scale is adapted in the warm-up. Without a warm-up it never is.
    target_acceptance : float, default 0.4
        The acceptance rate at which the adaptation aims, in (0, 1).

    Raises
    ------
    TypeError
        For a gradient that is not exact, or a metric that is not constant.
    ValueError
        For a scale that is not positive, unknown increments or signs, a metric of another shape or not positive
        definite, or a target acceptance outside (0, 1).

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.Barker(model, scale=[1.0, 0.5]).tick_length()  # the mean of σ²
    0.625
    """

    shape: np.ndarray  #: (d,) the scale of each coordinate in units of the schedule's
    gaussian: bool  #: whether increments are N(0, σ²)
    single: bool  #: whether the increment has one sign as a whole

    step_name = "scale"

    def __init__(
        self,
        target: Model | Full,
        scale: ArrayLike | str | Schedule = "auto",
        increments: str = "bimodal",
        signs: str = "coordinates",
        adapt: bool = True,
        target_acceptance: float = 0.4,
        *,
        metric: ArrayLike | Metric | None = None,
    ):
        one_of("increments", increments, INCREMENTS)
        one_of("signs", signs, SIGNS)
        scale, self.shape = coordinate_scales(scale, as_provider(target).dim)
        super().__init__(target, scale, metric, adapt, target_acceptance)
        self.gaussian, self.single = increments == "gaussian", signs == "single"

    def starting_step(self, hessian: np.ndarray) -> float:
        shape, root = self.shape if len(hessian) == self.dim else np.ones(1), self.root(len(hessian))
        hessian = root.T @ hessian @ root
        curvature = float(np.linalg.eigvalsh(shape[:, None] * hessian * shape)[-1])
        return 2.0 / (self.dim ** (1.0 / 6.0) * math.sqrt(curvature))

    def duration_at(self, size: float) -> float:
        return size**2 * float(np.mean(self.shape**2))

    @compiled
    def propose(self, x, memory, size, rng):
        self.metric.pull(memory.metric, memory.gradient)
        w, pulled, along = memory.increment, memory.metric.pulled, 0.0
        for j in range(x.shape[0]):
            sigma = size * self.shape[j]
            if self.gaussian:
                w[j] = sigma * rng.standard_normal()
            else:
                w[j] = sigma + SPREAD * sigma * rng.standard_normal()
            if self.single:
                if not self.gaussian and rng.random() < 0.5:
                    w[j] = -w[j]
                along -= w[j] * pulled[j]
            else:
                along = -w[j] * pulled[j]
                if rng.random() >= expit(along):
                    w[j] = -w[j]
            if math.isnan(along):
                return False
        if self.single and rng.random() >= expit(along):
            for j in range(x.shape[0]):
                w[j] = -w[j]
        for j in range(x.shape[0]):
            memory.metric.u[j] = w[j]
        self.move_along(x, memory)
        return True

    @compiled
    def log_ratio(self, memory, size):
        total, here, there = 0.0, 0.0, 0.0
        at_state, at_proposal = self.pull_both(memory)
        for j in range(memory.increment.shape[0]):
            w = memory.increment[j]
            before, after = at_state[j], at_proposal[j]
            if self.single:
                here -= w * before
                there -= w * after
            else:
                total += softplus(w * before) - softplus(-w * after)
        if self.single:
            total = softplus(-here) - softplus(there)
        return total
