r"""The Metropolis-adjusted Langevin algorithm: the target itself, by Langevin steps that may be rejected.

=====  =====================================================================================================
flow   none
clock  ticks; every state is held for the same time
rate   none: every tick is an event
jump   θ' = θ - γ P ∇U(θ) + √(2γ) L ξ,  ξ ~ N(0, I),  P = LLᵀ;  accepted with probability min(1, e^ℓ),

       ℓ = U(θ) - U(θ') + |ξ|²/2 - |ξ'|²/2,  ξ' = √(γ/2) Lᵀ(∇U(θ) + ∇U(θ')) - ξ: the noise that would lead back
=====  =====================================================================================================

Its law is the target at every step; a step that is too large shows in the acceptance rate only. In high dimensions an
acceptance rate of 0.574 is the most efficient one. On targets with tails lighter than a Gaussian's a chain may stay for
long where the gradient is steep.

References
----------
Roberts & Tweedie (1996), Exponential convergence of Langevin distributions and their discrete approximations,
Bernoulli 2; Roberts & Rosenthal (1998), Optimal scaling of discrete approximations to Langevin diffusions, JRSS B 60.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discrete.metropolis import Metropolis
from discrete.schedules import Schedule
from discrete.tick import finite
from pdmp.gradients import Full
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled


class MALA(Metropolis):
    """The Metropolis-adjusted Langevin algorithm on exp(-U).

    Parameters
    ----------
    target : pdmp.Model or pdmp.gradients.Full
        The target, with its exact gradient.
    step : float, schedule or "auto", default "auto"
        γ of dθ = -∇U dt + √2 dB, a time, as in `SGLD`; if the step is adapted, its start. Every state is held for the
        first step of the schedule. "auto": a start from the largest curvature at the mode.
    metric : None, float, array_like of shape (d,) or (d, d), or pdmp.Metric, default None
        M = P⁻¹; P itself is given by ``pdmp.Metric(covariance=...)``. None: the identity.
    adapt : bool, default True
        Whether the step is adapted in the warm-up. Without a warm-up it never is.
    target_acceptance : float, default 0.574
        The acceptance rate at which the adaptation aims, in (0, 1).

    Raises
    ------
    TypeError
        For a gradient that is not exact, or a metric that is not constant.
    ValueError
        For a step that is not positive, a metric of another shape or not positive definite, or a target
        acceptance outside (0, 1).

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.MALA(model, step=0.2, metric=[1.0, 4.0]).metric.root
    array([1. , 0.5])
    """

    def __init__(
        self,
        target: Model | Full,
        step: float | str | Schedule = "auto",
        *,
        metric: ArrayLike | Metric | None = None,
        adapt: bool = True,
        target_acceptance: float = 0.574,
    ):
        super().__init__(target, step, metric, adapt, target_acceptance)

    def starting_step(self, hessian: np.ndarray) -> float:
        d = len(hessian)
        root = self.root(d)
        curvature = float(np.linalg.eigvalsh(root.T @ hessian @ root)[-1])
        return 1.4 / (self.dim ** (1.0 / 3.0) * curvature)

    @classmethod
    def from_h(cls, target: Model | Full, h: float, **options: Any) -> MALA:
        """From the convention θ - (h/2) ∇U + √h ξ: γ = h/2.

        Parameters
        ----------
        target : pdmp.Model or pdmp.gradients.Full
        h : float
            The step of that convention.
        **options
            Further arguments of `MALA`.

        Returns
        -------
        MALA

        Raises
        ------
        ValueError
            If `h` is not a positive number.
        """
        return cls(target, step=0.5 * positive("h", h), **options)

    @compiled
    def propose(self, x, memory, size, rng):
        if not finite(memory.gradient):
            return False
        self.metric.pull(memory.metric, memory.gradient)
        xi, noise = memory.increment, math.sqrt(2.0 * size)
        for j in range(x.shape[0]):
            xi[j] = rng.standard_normal()
        for j in range(x.shape[0]):
            memory.metric.u[j] = noise * xi[j] - size * memory.metric.pulled[j]
        self.move_along(x, memory)
        return True

    @compiled
    def log_ratio(self, memory, size):
        total, root = 0.0, math.sqrt(0.5 * size)
        before, after = self.pull_both(memory)
        for j in range(memory.increment.shape[0]):
            xi = memory.increment[j]
            back = root * (before[j] + after[j]) - xi
            total += 0.5 * (xi * xi - back * back)
        return total
