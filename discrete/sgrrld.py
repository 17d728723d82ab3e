r"""Stochastic-gradient Richardson-Romberg Langevin dynamics.

=====  ================================================================================================
flow   none
clock  the fine chain ticks every γ/2, the coarse one every γ, the fine one first where they coincide
jump   fine    θ² ← θ² - (γ/2) ∇Û(θ²) + √γ Z',                  twice in a step, Z'₁ and Z'₂
       coarse  θ¹ ← θ¹ - γ ∇Û(θ¹) + √(2γ) Z,   Z = ρ (Z'₁ + Z'₂) / √2 + √(1 - ρ²) W
=====  ================================================================================================

Each chain is SGLD with a bias of order γ; the combination 2 E[f(θ²)] - E[f(θ¹)] has one of order γ². The Brownian
increments are shared (ρ = 1) so that the combination's variance is no larger than one chain's.

References
----------
Durmus, Şimşekli, Moulines, Badeau & Richard (2016), Stochastic gradient Richardson-Romberg Markov chain Monte Carlo,
NeurIPS: eqs 5 and 6 (with the fine chain's gradient at its own last state).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.laws import langevin_covariance, largest_step, noise_covariance
from discrete.tick import Ticking
from pdmp.compiled import compiled
from pdmp.process import CERTAIN

FINE, COARSE = 0, 1


class SGRRLDMemory(NamedTuple):
    """Beside the two chains."""

    taken: np.ndarray  #: (2,) ticks of the fine and of the coarse chain
    began: np.ndarray  #: (1,) when the present step of the coarse chain began
    increment: np.ndarray  #: (d,) Z'₁ + Z'₂ so far
    gradient: np.ndarray  #: (d,)
    fine: tuple  #: the fine chain's provider memory
    coarse: tuple  #: the coarse chain's


class SGRRLD(Ticking):
    """Richardson-Romberg extrapolation of two coupled SGLD chains on exp(-U).

    The run's mean, var, cov and `expectation` extrapolate, 2 × fine - coarse: a variance can come out negative. Its
    positions, draws, ess and rhat are the fine chain's; ``trajectories[i].coarse`` is the other one. One step is one
    tick of the coarse chain and two of the fine: three gradients.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U; the chains draw their batches independently.
    step : float or schedule
        γ of the coarse chain, in the convention of `SGLD`.
    correlation : float, default 1
        ρ in [-1, 1]: how far the chains share their Brownian increments.

    Raises
    ------
    ValueError
        For a step that is not positive or a correlation outside [-1, 1].
    """

    correlation: float

    events = ("fine step", "coarse step")
    ticks = 3
    copies = (2.0, -1.0)

    def __init__(self, provider, step, correlation=1.0):
        super().__init__(provider, step, copies=2, clocks=2, dependents=[[FINE], [COARSE]])
        if not -1.0 <= correlation <= 1.0:
            raise ValueError(f"`correlation` must lie in [-1, 1], got {correlation!r}.")
        self.correlation = correlation

    @compiled
    def clock(self, state, i, now, rng):
        memory = state.memory
        k = memory.taken[COARSE] if i == COARSE else memory.taken[FINE] >> 1
        gamma = self.schedule.step(k)
        began = k * gamma if self.constant == 1 else memory.began[0]
        if i == FINE and memory.taken[FINE] & 1 == 0:
            return began + 0.5 * gamma, CERTAIN
        # The same expression for both chains, so that they meet exactly.
        return ((k + 1) * gamma if self.constant == 1 else began + gamma), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        d = memory.gradient.shape[0]
        if i == FINE:
            theta = state.x[:d]
            gamma = 0.5 * self.schedule.step(memory.taken[FINE] >> 1)
            self.provider.gradient(theta, memory.fine, rng, memory.gradient, state.counts)
        else:
            theta = state.x[d:]
            gamma = self.schedule.step(memory.taken[COARSE])
            self.provider.gradient(theta, memory.coarse, rng, memory.gradient, state.counts)
        total = 0.0
        for j in range(d):
            total += memory.gradient[j]
        if not math.isfinite(total):
            return -1
        noise = math.sqrt(2.0 * gamma)
        if i == FINE:
            for j in range(d):
                z = rng.standard_normal()
                memory.increment[j] += z
                theta[j] += -gamma * memory.gradient[j] + noise * z
            if memory.taken[FINE] & 1 == 1:
                memory.began[0] = now
        else:
            shared, own = self.correlation / math.sqrt(2.0), math.sqrt(1.0 - self.correlation * self.correlation)
            for j in range(d):
                z = shared * memory.increment[j]
                if own > 0.0:
                    z += own * rng.standard_normal()
                memory.increment[j] = 0.0
                theta[j] += -gamma * memory.gradient[j] + noise * z
        memory.taken[i] += 1
        return i

    def lift(self, x):
        return np.concatenate([x, x]).astype(float)

    def memory(self, x, rng):
        d = self.model.dim
        return SGRRLDMemory(
            taken=np.zeros(2, np.int64),
            began=np.zeros(1),
            increment=np.zeros(d),
            gradient=np.zeros(d),
            fine=self.provider.memory(rng),
            coarse=self.provider.memory(rng),
        )

    @classmethod
    def candidates(cls, model, batch, mode, error):
        hessian, noise = model.hessian(mode), noise_covariance(batch, mode)

        def extrapolated(gamma):
            fine, coarse = (langevin_covariance(hessian, noise, g) for g in (0.5 * gamma, gamma))
            return None if coarse is None else 2.0 * fine - coarse

        largest = 2.0 / np.linalg.eigvalsh(hessian)[-1]
        step, _ = largest_step(extrapolated, np.linalg.inv(hessian), largest, error)
        return {cls.__name__: cls(batch, step=step)}

    @property
    def note(self):
        return f"step {self.schedule.step(0):.3g}"
