r"""Stochastic-gradient Hamiltonian Monte Carlo: underdamped Langevin dynamics with a noisy gradient.

dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB

=====  ==============================================================================================================
flow   none
clock  ticks of ε
jump   splitting      θ += ε/2 p;  p *= e^(-Dε/2);  p += -ε ∇Û(θ) + √(2(D - B)ε) ξ;  p *= e^(-Dε/2);  θ += ε/2 p
       semi-implicit  θ += ε p;    p += -ε ∇Û(θ) - εD p + √(2(D - B)ε) ξ
       explicit       θ' = θ + ε p;  p += -ε ∇Û(θ) - εD p + √(2(D - B)ε) ξ, the gradient where the step began
       every L steps first, if asked: p ~ N(0, I)
=====  ==============================================================================================================

B is an estimate of the diffusion that gradient noise adds on its own: for noise of standard deviation τ, ετ²/2.

On U = λθ²/2 the variance of θ is off by O(ε²) in the first two schemes and by O(ε) in the explicit one. *With the
momentum refreshed every L steps the explicit scheme has an error that does not vanish with ε*: without friction the
variance tends to L/(L - 1) / λ. That is the form in which SGHMC was published and is widely implemented, and why it is
not the default here.

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

from discrete.kinetic import Kinetic, check_every, check_friction, mean_square
from discrete.tick import finite
from pdmp.compiled import compiled

SPLITTING, SEMI_IMPLICIT, EXPLICIT = range(3)
SCHEMES = {"splitting": SPLITTING, "semi_implicit": SEMI_IMPLICIT, "explicit": EXPLICIT}


class SGHMC(Kinetic):
    """Stochastic-gradient Hamiltonian Monte Carlo on exp(-U).

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U.
    step : float or schedule
        ε, the integrator's step for the momentum p ~ N(0, I). See `from_h` for h = ε².
    friction : float
        D of dp = … - D p dt + √(2D) dB.
    scheme : {"splitting", "semi_implicit", "explicit"}
        The integrator; the module's text has their formulas. The explicit one needs ε < D / λ, λ the largest curvature.
    refresh_every : int, optional
        Draw a new momentum at the start of every so many steps; never by default.
    noise_estimate : float, default 0
        B, the part of the diffusion that gradient noise is taken to supply: B = ετ²/2 for a standard deviation τ.
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
        For the explicit scheme with refreshed momenta, whose bias does not vanish with the step.
    """

    friction: float
    scheme: int
    refresh_every: int
    noise_estimate: float
    batch_every: int

    def __init__(
        self, provider, step, friction=1.0, scheme="splitting", refresh_every=None, noise_estimate=0.0, batch_every=1
    ):
        super().__init__(provider, step)
        if scheme not in SCHEMES:
            raise ValueError(f"`scheme` must be one of {', '.join(map(repr, SCHEMES))}, got {scheme!r}.")
        self.friction = check_friction("friction", friction)
        self.scheme = SCHEMES[scheme]
        self.refresh_every = 0 if refresh_every is None else check_every("refresh_every", refresh_every)
        self.batch_every = check_every("batch_every", batch_every)
        if not 0.0 <= noise_estimate <= self.friction:
            raise ValueError(
                f"`noise_estimate` must lie between 0 and the friction {self.friction:g}, got {noise_estimate!r}: "
                "gradient noise that supplies more than that cannot be corrected; raise `friction` or lower `step`."
            )
        self.noise_estimate = float(noise_estimate)
        if self.scheme == EXPLICIT and self.refresh_every > 0:
            every = self.refresh_every
            factor = (
                "does not exist" if every == 1 else f"is {every / (every - 1):.3g} times the target's for small steps"
            )
            warnings.warn(
                f'SGHMC with scheme="explicit" and the momentum refreshed every {every} steps is biased at every step: '
                f'its variance {factor}, friction aside. scheme="splitting" is not.',
                UserWarning,
                stacklevel=2,
            )

    @classmethod
    def from_h(cls, provider, h, alpha=0.01, beta_hat=0.0, **options):
        """From the convention v = εp, h = ε², α = εD, β̂ = εB: v += -h ∇Û - αv + √(2(α - β̂)h) ξ."""
        eps = math.sqrt(h)
        return cls(provider, step=eps, friction=alpha / eps, noise_estimate=beta_hat / eps, **options)

    @property
    def bias_order(self):
        """That of the scheme; gradient noise has an effect of first order in any of them."""
        return 2 if self.provider.exact and self.scheme != EXPLICIT else 1

    @compiled
    def move(self, x, v, memory, z, rng, counts):
        k, gradient = memory.taken[0], memory.gradient
        eps, d = self.schedule.step(k), x.shape[0]
        noise = math.sqrt(2.0 * (self.friction - self.noise_estimate) * eps)
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
            self.provider.again(x, memory.provider, gradient, counts)
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
        memory.squares[0] += mean_square(v)
        return True

    def limit(self, curvature):
        if not curvature > 0.0:
            return None
        if self.scheme == SPLITTING:
            return 2.0 / math.sqrt(curvature)
        if self.scheme == EXPLICIT:
            return None if self.refresh_every else self.friction / curvature
        half = 0.5 * self.friction  # ε² λ = 2 (2 - ε D)
        return None if self.refresh_every else 2.0 * (math.sqrt(half**2 + curvature) - half) / curvature
