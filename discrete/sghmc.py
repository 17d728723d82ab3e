r"""Stochastic-gradient Hamiltonian Monte Carlo: underdamped Langevin dynamics with a noisy gradient.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  ==============================================================================================================
flow   none
clock  ticks of ε
rate   none: every tick is an event
jump   splitting      θ += ε/2 p;  p *= e^(-Dε/2);  p += -ε ∇Û(θ) + √(2(D - B)ε) ξ;  p *= e^(-Dε/2);  θ += ε/2 p
       semi-implicit  θ += ε p;    p += -ε ∇Û(θ) - εD p + √(2(D - B)ε) ξ
       explicit       θ' = θ + ε p;  p += -ε ∇Û(θ) - εD p + √(2(D - B)ε) ξ, the gradient where the step began
       every L steps first, if asked: p ~ N(0, I)
=====  ==============================================================================================================

B is an estimate of the diffusion that gradient noise adds on its own: for noise of standard deviation τ, ετ²/2.

On U = λθ²/2 with additive gradient noise the stationary variance of θ is (1 - B/D + ετ²/(2D)) / λ times

==============  ============================================================  =================================
splitting       (Dε/2) / sinh(Dε/2)                                           if ε²λ < 4 cosh(Dε/2)
semi-implicit   1 / (1 - ε²λ / (4 - 2εD))                                     if ε²λ + 2εD < 4
explicit        D / (D - ελ) · (4 - 2εD + 2ε²λ) / (4 - 2εD + ε²λ)             if ελ < D and 2εD < 4 + ε²λ
==============  ============================================================  =================================

so that without gradient noise the bias is of order ε² in the first two schemes, and of order ε in the explicit one.
In the semi-implicit scheme the momentum has an error of order ε, but θ has not: it follows, with another ε, the path of
the integrator of Brünger, Brooks & Karplus.

*With the momentum refreshed every L steps the explicit and the semi-implicit scheme have an error that does not vanish
with ε*: without friction their variance tends to L/(L - 1) / λ, because the last of L kicks is lost before it has moved
θ. The explicit scheme with refreshed momenta is widely implemented. The splitting is symmetric and keeps its order with
refreshed momenta; it is the default.

References
----------
Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML, eqs 13 and 15; Chen, Ding & Carin
(2015), On the convergence of stochastic gradient MCMC algorithms with high-order integrators, NeurIPS, section 3.3
(splitting); Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient
MCMC, Stat. Comput. 33, eq. 6 (h, α, β̂).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from discrete.kinetic import Underdamped, count_temperature, step_from_h
from discrete.schedules import Automatic, Schedule
from discrete.tick import finite
from pdmp.errors import warn
from pdmp.gradients import Provider
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import count, one_of, positive
from pdmp.native.classes import compiled

#: Values of the field `scheme`: the integrator.
SPLITTING, SEMI_IMPLICIT, EXPLICIT = 0, 1, 2
SCHEMES = {"splitting": SPLITTING, "semi_implicit": SEMI_IMPLICIT, "explicit": EXPLICIT}

#: Dε/2 from which on the splitting's variance is much too small, and a warning is given.
LARGE_HALF_FRICTION = 1.0
#: Most steps that are tried to find the stability limit with refreshed momenta.
MOST_TRIED_STEPS = 1 << 16


class SGHMC(Underdamped):
    """Stochastic-gradient Hamiltonian Monte Carlo on exp(-U).

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step, a time, for the momentum p ~ N(0, I); `from_h` takes h = ε². "auto": see
        `discrete.schedules.automatic`.
    friction : float, optional
        D of dp = … - D p dt + √(2D) dB, an inverse time. The square root of a typical curvature of U mixes well; a
        larger friction tolerates more gradient noise. When omitted, it is 1 for a given step; with an automatic step
        it is chosen among several, for the fastest decay of correlations per step.
    scheme : {"splitting", "semi_implicit", "explicit"}
        The integrator; its formulas are in the text of `discrete.sghmc`. The explicit one is stable for ε < D / λ only,
        λ the largest curvature of U.
    refresh_every : int, optional
        L: a new momentum is drawn at the start of every L-th step, never when omitted. Only the splitting then keeps a
        bias that vanishes with the step; the variance of the others is about L/(L - 1) times the target's.
    noise_estimate : float, default 0
        B, the part of the diffusion that gradient noise is taken to supply, at most the friction: B = ετ²/2 for noise
        of standard deviation τ and the first step ε. At other steps B is scaled in proportion.
    batch_every : int, default 1
        A new mini-batch is drawn at every so many steps, and used until the next one.
    metric : None, float, array_like of shape (d,) or (d, d), or pdmp.Metric, default None
        The mass matrix M: the sampler runs in coordinates in which it is the identity, and step and friction are of
        these, see `discrete.momenta`. None: the identity.

    Raises
    ------
    ValueError
        For a step or friction that is not positive, an unknown scheme, counts below 1, or a friction below the noise
        estimate.

    Warns
    -----
    UserWarning
        For refreshed momenta in a scheme whose bias then does not vanish with the step, and for a splitting with so
        large a product of friction and step that its variance is much too small.

    See Also
    --------
    discrete.BAOAB : Another integrator of the same dynamics.
    discrete.SGNHT : Friction that adapts to the noise.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> sampler = discrete.SGHMC(pdmp.gradients.Noisy(model, 0.5), step=0.1, friction=2.0)
    >>> sampler.bias_order, round(sampler.stability_limit(4.0), 3)
    (1, 1.621)
    """

    scheme: int
    refresh_every: int  #: 0: never
    noise_variance: float  #: τ² = 2B / ε
    batch_every: int

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        friction: float | None = None,
        scheme: str = "splitting",
        refresh_every: int | None = None,
        noise_estimate: float = 0.0,
        batch_every: int = 1,
        *,
        metric: ArrayLike | Metric | None = None,
    ):
        super().__init__(provider, step, friction, metric=metric)
        one_of("scheme", scheme, SCHEMES)
        self.scheme = SCHEMES[scheme]
        self.refresh_every = 0 if refresh_every is None else count("refresh_every", refresh_every)
        self.batch_every = count("batch_every", batch_every)
        if isinstance(self.schedule, Automatic) and (
            self.scheme != SPLITTING or self.refresh_every or self.batch_every > 1 or noise_estimate
        ):
            raise ValueError(
                '`step="auto"` is for the splitting without refreshment, repeated batches or a `noise_estimate`; '
                "give a number or a schedule."
            )
        if isinstance(self.schedule, Automatic):
            noise_estimate = 0.0
        elif isinstance(noise_estimate, (bool, str)) or not 0.0 <= noise_estimate <= self.friction:
            raise ValueError(
                f"`noise_estimate` must lie between 0 and the friction {self.friction:g}, got {noise_estimate!r}: "
                "gradient noise that supplies more than that cannot be corrected; raise `friction` or lower `step`."
            )
        self.noise_variance = 2.0 * float(noise_estimate) / self.schedule.step(0) if noise_estimate else 0.0
        y = 0.5 * self.friction * self.schedule.step(0)
        if self.scheme == SPLITTING and self.refresh_every == 0 and y >= LARGE_HALF_FRICTION:
            warn(
                f"SGHMC: friction times step is {2.0 * y:.3g}; on a Gaussian the variance is then "
                f"{y / math.sinh(min(y, 300.0)):.2g} times the target's. Take a smaller step or less friction."
            )
        if self.scheme != SPLITTING and self.refresh_every > 0:
            every = self.refresh_every
            factor = (
                "has no stationary law"
                if every == 1
                else f"has {every / (every - 1):.3g} times the target's variance for small steps, friction aside"
            )
            warn(
                f'SGHMC with scheme="{scheme}" and the momentum refreshed every {every} steps is biased at every step '
                f'size: it {factor}. scheme="splitting" is not.'
            )

    @classmethod
    def from_h(
        cls, provider: Provider | Model, h: float, alpha: float = 0.01, beta_hat: float = 0.0, **options: Any
    ) -> SGHMC:
        """From the convention v += -h ∇Û - αv + √(2(α - β̂)h) ξ (Coullon, South & Nemeth, 2023, eq. 6).

        In it v = εp, h = ε², α = εD and β̂ = εB.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float
            ε².
        alpha : float, default 0.01
            α, the friction in a step.
        beta_hat : float, default 0
            β̂, the part of α that gradient noise is taken to supply.
        **options
            Further arguments of `SGHMC`.

        Returns
        -------
        SGHMC

        Examples
        --------
        >>> import discrete, pdmp
        >>> model = pdmp.models.Gaussian([0.0], [1.0])
        >>> sampler = discrete.SGHMC.from_h(model, h=0.01, alpha=0.05)
        >>> sampler.schedule.step(0), sampler.friction
        (0.1, 0.5)
        """
        eps = step_from_h(h)
        return cls(
            provider, step=eps, friction=positive("alpha", alpha) / eps, noise_estimate=beta_hat / eps, **options
        )

    @property
    def second_order(self) -> bool:  # type: ignore[override]
        return self.scheme == SPLITTING or self.scheme == SEMI_IMPLICIT and self.refresh_every == 0

    def halved(self) -> Self:
        """The same sampler with half the step, and momenta refreshed at the same times: after twice as many steps.

        The two chains of an extrapolation draw the new momenta independently, which makes it noisier.
        """
        fine = super().halved()
        fine.refresh_every *= 2
        return fine

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient = memory.taken[0], memory.gradient
        eps, d = self.schedule.step(k), x.shape[0]
        # The difference can be negative by rounding, or where the steps of a schedule have grown.
        noise = math.sqrt(2.0 * max(self.friction - 0.5 * eps * self.noise_variance, 0.0) * eps)
        if self.refresh_every > 0 and k % self.refresh_every == 0:
            for j in range(d):
                v[j] = rng.standard_normal()
        ahead, decay, kept = 0.0, 1.0, 1.0 - self.friction * eps
        if self.scheme == SPLITTING:
            ahead, kept = 0.5 * eps, 1.0
            decay = math.exp(-0.5 * self.friction * eps)
        elif self.scheme == SEMI_IMPLICIT:
            ahead = eps
        for j in range(d):
            x[j] += ahead * v[j]
        if k % self.batch_every == 0:
            self.provider.gradient(x, memory.provider, rng, gradient, counts)
        else:
            self.provider.gradient_again(x, memory.provider, gradient, counts)
        if not finite(gradient):
            return False
        if self.scheme == EXPLICIT:
            for j in range(d):
                x[j] += eps * v[j]
        for j in range(d):
            v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])
        if self.scheme == SPLITTING:
            for j in range(d):
                x[j] += ahead * v[j]
        count_temperature(memory, v, counts)
        return True

    @staticmethod
    def linear_step(step: float, friction: float, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `Underdamped.linear_step`; of the splitting."""
        kick = step * math.exp(-0.5 * friction * step) * np.array([0.5 * step, 1.0])
        return _transition(SPLITTING, step, friction, curvature), kick, 2.0 * friction / step * np.outer(kick, kick)

    def stability_limit(self, curvature: float) -> float | None:
        if not curvature > 0.0:
            return None
        D, scale = self.friction, math.sqrt(curvature)
        if self.refresh_every > 0:
            return self._limit_refreshed(curvature)
        if self.scheme == EXPLICIT:  # ελ < D, and 2εD < 4 + ε²λ
            return 4.0 / (D + math.sqrt(D * D - 4.0 * curvature)) if D > 2.0 * scale else D / curvature
        if self.scheme == SEMI_IMPLICIT:  # ε²λ + 2εD < 4
            return 4.0 / (D + math.sqrt(D * D + 4.0 * curvature))
        return _first(  # the logarithm of ε²λ < 4 cosh(Dε/2), which is true of every ε for D > 1.03 √λ
            lambda eps: 2.0 * np.log(0.5 * scale * eps) - np.logaddexp(0.5 * D * eps, -0.5 * D * eps) + math.log(2.0),
            np.linspace(2.0, 5.0, 400) / scale,
        )

    def _limit_refreshed(self, curvature):
        """The step at which L steps between two refreshments no longer bring θ nearer to the mode: |(Mᴸ)₁₁| = 1."""
        if self.refresh_every == 1 and self.scheme != SPLITTING:
            return 0.0

        def excess(eps):
            with np.errstate(all="ignore"):
                one = _transition(self.scheme, np.asarray(eps), self.friction, curvature)
                block = np.linalg.matrix_power(one, self.refresh_every)[..., 0, 0]
            return np.where(np.isfinite(block), np.abs(block) - 1.0, 1.0)

        top = (8.0 if self.scheme == SPLITTING else 4.0) / math.sqrt(curvature)
        steps = np.linspace(0.0, top, min(max(4_096, 64 * self.refresh_every**2), MOST_TRIED_STEPS))[1:]
        return _first(excess, np.concatenate([np.geomspace(1e-6 * top, steps[0], 200, endpoint=False), steps]))


def _transition(scheme, eps, friction, curvature):
    """The step on U = λθ²/2 as a linear map of (θ, p), shape (…, 2, 2) for `eps` and `curvature` of shape (…)."""
    turn = eps * curvature  # what a unit of θ takes off p
    if scheme == SPLITTING:
        f, ahead = np.exp(-0.5 * friction * eps), 0.5 * eps
        kept = f * f - f * ahead * turn
        rows = (1.0 - f * ahead * turn, ahead * (1.0 + kept)), (-f * turn, kept)
    else:
        kept = 1.0 - friction * eps - (eps * turn if scheme == SEMI_IMPLICIT else 0.0)
        rows = (1.0, eps), (-turn, kept)
    return np.stack([np.stack(np.broadcast_arrays(*row, turn)[:2], axis=-1) for row in rows], axis=-2)


def _first(excess, steps):
    """The smallest step at which `excess` becomes positive, bracketed by `steps`; None if it never does."""
    above = np.flatnonzero(excess(steps) >= 0.0)
    if len(above) == 0:
        return None
    high = steps[above[0]]
    low = steps[above[0] - 1] if above[0] > 0 else 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
    return float(high)
