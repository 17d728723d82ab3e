r"""Stochastic-gradient Hamiltonian Monte Carlo: underdamped Langevin dynamics with a noisy gradient.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  ==============================================================================================================
flow   none
clock  ticks of ε
rate   none
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

so that without gradient noise the bias is of order ε² in the first two and of order ε in the explicit scheme. The
momentum of the semi-implicit scheme is off by order ε, its θ not: it is, with another ε, the path of the integrator of
Brünger, Brooks & Karplus. *With the momentum refreshed every L steps the explicit and the semi-implicit scheme have an
error that does not vanish with ε*: without friction their variance tends to L/(L - 1) / λ, because the last kick of
L is thrown away before θ has felt it. Explicit with refreshed momenta is the form that is widely implemented.
The splitting is symmetric, keeps its order with refreshed momenta, and is the default.

References
----------
Chen, Fox & Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML, eqs 13 and 15; Chen, Ding & Carin
(2015), On the convergence of stochastic gradient MCMC algorithms with high-order integrators, NeurIPS, section 3.3
(splitting); Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient
MCMC, Stat. Comput. 33, eq. 6 (h, α, β̂).
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from discrete.kinetic import Underdamped, check_every, check_friction, count_temperature, step_from_h
from discrete.schedules import Automatic
from discrete.tick import finite
from pdmp.native.classes import compiled

SPLITTING, SEMI_IMPLICIT, EXPLICIT = range(3)
LARGE = 1.0  #: half of friction times step from which the splitting scheme is much too narrow
SCHEMES = {"splitting": SPLITTING, "semi_implicit": SEMI_IMPLICIT, "explicit": EXPLICIT}

#: Most steps that `stability_limit` looks at with refreshed momenta.
TRIED = 1 << 16


class SGHMC(Underdamped):
    """Stochastic-gradient Hamiltonian Monte Carlo on exp(-U).

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    step : float, schedule or "auto", default "auto"
        ε, the integrator's step for the momentum p ~ N(0, I). See `from_h` for h = ε². "auto": see
        `discrete.schedules.automatic`.
    friction : float, optional
        D of dp = … - D p dt + √(2D) dB, an inverse time: the square root of a typical curvature of U mixes well, and
        more of it stands more gradient noise. 1 when omitted; with
        an automatic step, the one of several that forgets the start fastest.
    scheme : {"splitting", "semi_implicit", "explicit"}
        The integrator; the module's text has their formulas. The explicit one needs ε < D / λ, λ the largest curvature.
    refresh_every : int, optional
        Draw a new momentum at the start of every so many steps; never by default. Only the splitting then keeps a bias
        that vanishes with the step: the variance of the others is about L/(L - 1) times the target's.
    noise_estimate : float, default 0
        B, the part of the diffusion that gradient noise is taken to supply: B = ετ²/2 for a standard deviation τ and
        the first step ε. With other steps it is scaled in proportion, and it is at most the friction.
    batch_every : int, default 1
        Draw a new mini-batch at every so many steps and use it until then.

    Raises
    ------
    ValueError
        For a step or friction that is not positive, an unknown scheme, counts below 1, or a friction below the noise
        estimate.

    Warns
    -----
    UserWarning
        For refreshed momenta in a scheme whose bias then does not vanish with the step.
    """

    scheme: int
    refresh_every: int
    noise_variance: float  #: τ² = 2B / ε
    batch_every: int

    def __init__(
        self,
        provider,
        step="auto",
        friction=None,
        scheme="splitting",
        refresh_every=None,
        noise_estimate=0.0,
        batch_every=1,
    ):
        super().__init__(provider, step, friction)
        if scheme not in SCHEMES:
            raise ValueError(f"`scheme` must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}.")
        self.scheme = SCHEMES[scheme]
        self.refresh_every = 0 if refresh_every is None else check_every("refresh_every", refresh_every)
        self.batch_every = check_every("batch_every", batch_every)
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
        if self.scheme == SPLITTING and self.refresh_every == 0 and y >= LARGE:
            warnings.warn(
                f"SGHMC: friction times step is {2.0 * y:.3g}; on a Gaussian the variance is then "
                f"{y / math.sinh(min(y, 300.0)):.2g} times the target's. Take a smaller step or less friction.",
                UserWarning,
                stacklevel=2,
            )
        if self.scheme != SPLITTING and self.refresh_every > 0:
            every = self.refresh_every
            factor = (
                "has no stationary law"
                if every == 1
                else f"has {every / (every - 1):.3g} times the target's variance for small steps, friction aside"
            )
            warnings.warn(
                f'SGHMC with scheme="{scheme}" and the momentum refreshed every {every} steps is biased at every step '
                f'size: it {factor}. scheme="splitting" is not.',
                UserWarning,
                stacklevel=2,
            )

    @classmethod
    def from_h(cls, provider, h, alpha=0.01, beta_hat=0.0, **options):
        """From the convention v = εp, h = ε², α = εD, β̂ = εB: v += -h ∇Û - αv + √(2(α - β̂)h) ξ."""
        eps = step_from_h(h)
        return cls(
            provider, step=eps, friction=check_friction("alpha", alpha) / eps, noise_estimate=beta_hat / eps, **options
        )

    @property
    def bias_order(self):
        """That of the scheme; gradient noise has an effect of first order in any of them."""
        return 2 if self.provider.exact and self._symmetric else 1

    @property
    def _symmetric(self):
        return self.scheme == SPLITTING or self.scheme == SEMI_IMPLICIT and self.refresh_every == 0

    def halved(self):
        """The same sampler with half the step; momenta are refreshed at the same times, so after twice as many steps.

        The two chains of an extrapolation draw them independently: it is noisier than without refreshment.
        """
        fine = super().halved()
        fine.refresh_every *= 2
        return fine

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient = memory.taken[0], memory.gradient
        eps, d = self.schedule.step(k), x.shape[0]
        # max: rounding, or a schedule whose steps have grown
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
    def linear_step(step, friction, curvature):
        """Of the splitting."""
        kick = step * math.exp(-0.5 * friction * step) * np.array([0.5 * step, 1.0])
        return _transition(SPLITTING, step, friction, curvature), kick, 2.0 * friction / step * np.outer(kick, kick)

    def stability_limit(self, curvature):
        if not curvature > 0.0:
            return None
        D, scale = self.friction, math.sqrt(curvature)
        if self.refresh_every > 0:
            return self._limit_refreshed(curvature)
        if self.scheme == EXPLICIT:  # ελ < D, and 2εD < 4 + ε²λ
            return 4.0 / (D + math.sqrt(D * D - 4.0 * curvature)) if D > 2.0 * scale else D / curvature
        if self.scheme == SEMI_IMPLICIT:  # ε²λ + 2εD < 4
            return 4.0 / (D + math.sqrt(D * D + 4.0 * curvature))
        return _first(  # ε²λ < 4 cosh(Dε/2), the logarithm of it; for D > 1.03 √λ that is true of every ε
            lambda eps: 2.0 * np.log(0.5 * scale * eps) - np.logaddexp(0.5 * D * eps, -0.5 * D * eps) + math.log(2.0),
            np.linspace(2.0, 5.0, 400) / scale,
        )

    def _limit_refreshed(self, curvature):
        """Where the L steps between two refreshments no longer bring θ nearer to the mode: |(Mᴸ)₁₁| = 1."""
        if self.refresh_every == 1 and self.scheme != SPLITTING:
            return 0.0

        def excess(eps):
            with np.errstate(all="ignore"):
                one = _transition(self.scheme, np.asarray(eps), self.friction, curvature)
                block = np.linalg.matrix_power(one, self.refresh_every)[..., 0, 0]
            return np.where(np.isfinite(block), np.abs(block) - 1.0, 1.0)

        top = (8.0 if self.scheme == SPLITTING else 4.0) / math.sqrt(curvature)
        steps = np.linspace(0.0, top, min(max(4_096, 64 * self.refresh_every**2), TRIED))[1:]
        return _first(excess, np.concatenate([np.geomspace(1e-6 * top, steps[0], 200, endpoint=False), steps]))


def _transition(scheme, eps, friction, curvature):
    """The step on U = λθ²/2 as a map of (θ, p), shape (…, 2, 2) for `eps` and `curvature` of shape (…)."""
    turn = eps * curvature  # of p by a unit of θ
    if scheme == SPLITTING:
        f, ahead = np.exp(-0.5 * friction * eps), 0.5 * eps
        kept = f * f - f * ahead * turn
        rows = (1.0 - f * ahead * turn, ahead * (1.0 + kept)), (-f * turn, kept)
    else:
        kept = 1.0 - friction * eps - (eps * turn if scheme == SEMI_IMPLICIT else 0.0)
        rows = (1.0, eps), (-turn, kept)
    return np.stack([np.stack(np.broadcast_arrays(*row, turn)[:2], axis=-1) for row in rows], axis=-2)


def _first(excess, steps):
    """The first root of `excess` among `steps`, at which it becomes positive; None if it never does."""
    above = np.flatnonzero(excess(steps) >= 0.0)
    if len(above) == 0:
        return None
    high = steps[above[0]]
    low = steps[above[0] - 1] if above[0] > 0 else 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
    return float(high)
