r"""Stochastic-gradient Barker dynamics.

=====  ====================================================================================================
flow   none
clock  ticks; a state is held for σₖ²
jump   θⱼ ← θⱼ + bⱼ zⱼ,  zⱼ ~ N(σ, (0.1 σ)²),  bⱼ = ±1 with P(bⱼ = 1) = pⱼ; with ĝ = -∇Û and its noise sd τ

       vanilla    p = 1 / (1 + exp(-z ĝ))
       corrected  p = 1 / (1 + exp(-z ĝ C / √(C² - τ² z²))), C = 1.702, while τ |z| < C; beyond, as extreme
       extreme    p = 1 if z ĝ > 0, ½ if it is 0, else 0
=====  ====================================================================================================

An increment is never larger than z, whatever the gradient. Gradient noise shrinks p towards ½; the corrected form
undoes that up to the breaking point τ |z| = C, beyond which no estimator can.

References
----------
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS: Algorithms 2 to 4
(with N/√n and the finite-population factor in τ̂); Livingstone & Zanella (2022), The Barker proposal, JRSS B 84.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.barker import CORRECTED, ESTIMATORS, SPREAD, C, probability
from discrete.laws import barker_covariance, largest_step, noise_covariance
from discrete.schedules import Constant, Schedule
from discrete.tick import Ticking
from pdmp.compiled import compiled


class SGBDMemory(NamedTuple):
    """Beside the state of SGBD."""

    taken: np.ndarray
    gradient: np.ndarray
    sd: np.ndarray  #: (d,) noise sd of the last gradient
    mean_sd: np.ndarray  #: (d,) its exponential average, not yet corrected for its start at 0
    rest: np.ndarray  #: (1,) (1 - β)^k, the weight of that start
    beyond: np.ndarray  #: (1,) coordinate updates beyond the breaking point
    provider: tuple


class SGBD(Ticking):
    """Stochastic-gradient Barker dynamics on exp(-U), coordinate-wise, without accept-reject.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    scale : float, array_like of shape (d,), or schedule
        σ, in units of θ; to leading order the step γ = 0.505 σ² of SGLD. A state is held for σ², or its mean over
        coordinates.
    estimator : "vanilla", "corrected" or "extreme"
        How the noisy gradient enters the probability of the sign.
    beta : float, default 0.1
        Weight of the newest value in the running average of the noise sd (corrected only), in (0, 1].

    Raises
    ------
    ValueError
        For an unknown estimator, a scale that is not positive, or a corrected estimator with batches of one term.
    """

    shape: np.ndarray  #: (d,) the scale of each coordinate in units of the schedule's
    hold: float
    estimator: int
    beta: float

    def __init__(self, provider, scale, estimator="vanilla", beta=0.1):
        if estimator not in ESTIMATORS:
            raise ValueError(f"`estimator` must be one of {', '.join(map(repr, ESTIMATORS))}, got {estimator!r}.")
        shape = None
        if not isinstance(scale, Schedule) and np.ndim(scale) > 0:
            shape = np.array(scale, dtype=float)
            if shape.ndim != 1 or not np.all((shape > 0.0) & np.isfinite(shape)):
                raise ValueError("`scale` must be positive and finite in every coordinate.")
            scale = Constant(1.0)
        super().__init__(provider, scale, name="scale")
        self.shape = np.ones(self.dim) if shape is None else shape
        if self.shape.shape != (self.dim,):
            raise ValueError(f"`scale` must be a number or have shape ({self.dim},), got {self.shape.shape}.")
        self.hold = float(np.mean(self.shape**2))
        self.estimator = ESTIMATORS[estimator]
        if not 0.0 < beta <= 1.0:
            raise ValueError(f"`beta` must lie in (0, 1], got {beta!r}.")
        self.beta = beta
        if self.estimator == CORRECTED and not self.provider.has_variance:
            raise ValueError('estimator="corrected" needs the noise of the gradient: `size` of the batches at least 2.')

    @compiled
    def holding(self, k):
        sigma = self.schedule.step(k)
        return sigma * sigma * self.hold

    @compiled
    def jump(self, state, i, now, rng):
        memory, theta = state.memory, state.x
        sigma = self.schedule.step(memory.taken[0])
        if self.estimator == CORRECTED:
            self.provider.gradient_and_sd(theta, memory.provider, rng, memory.gradient, memory.sd, state.counts)
            memory.rest[0] *= 1.0 - self.beta
        else:
            self.provider.gradient(theta, memory.provider, rng, memory.gradient, state.counts)
        for j in range(theta.shape[0]):
            if math.isnan(memory.gradient[j]):
                return -1
        for j in range(theta.shape[0]):
            tau = 0.0
            if self.estimator == CORRECTED:
                memory.mean_sd[j] += self.beta * (memory.sd[j] - memory.mean_sd[j])
                tau = memory.mean_sd[j] / (1.0 - memory.rest[0])
            s = sigma * self.shape[j]
            z = s + SPREAD * s * rng.standard_normal()
            if tau * abs(z) >= C:
                memory.beyond[0] += 1
            p = probability(self.estimator, z, -memory.gradient[j], tau)
            theta[j] += z if rng.random() < p else -z
        memory.taken[0] += 1
        return 0

    def memory(self, x, rng):
        d = self.dim
        return SGBDMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(d),
            sd=np.zeros(d),
            mean_sd=np.zeros(d),
            rest=np.ones(1),
            beyond=np.zeros(1, np.int64),
            provider=self.provider.memory(rng),
        )

    def statistics(self, state):
        """Coordinate updates, and those of them beyond the breaking point."""
        updates = int(state.memory.taken[0]) * self.dim
        return {"coordinate_updates": updates, "beyond_breaking_point": int(state.memory.beyond[0])}

    @classmethod
    def candidates(cls, model, batch, mode, error):
        hessian, noise = model.hessian(mode), noise_covariance(batch, mode)
        found = {}
        for estimator in ESTIMATORS:
            scale, _ = largest_step(
                lambda sigma, estimator=estimator: barker_covariance(hessian, noise, sigma, estimator),
                np.linalg.inv(hessian),
                10.0 / np.sqrt(np.linalg.eigvalsh(hessian)[0]),
                error,
            )
            found[f"{cls.__name__} {estimator}"] = cls(batch, scale=scale, estimator=estimator)
        return found

    @property
    def note(self):
        return f"scale {self.schedule.step(0):.3g}"
