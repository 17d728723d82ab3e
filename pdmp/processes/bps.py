r"""The Bouncy Particle Sampler.

=====  ===============================================================================================
flow   straight lines, x + v s, |v| = 1
clock  bounce: Poisson, by thinning under a bound on (v·∇U)₊; refreshment: Poisson of constant rate
rate   (v·∇U(x))₊
jump   bounce: v ← v - 2 (v·∇U) ∇U / |∇U|²; refreshment: v uniform on the sphere
=====  ===============================================================================================

References
----------
Peters & de With (2012), Rejection-free Monte Carlo sampling for general potentials, Phys. Rev. E 85. Bouchard-Côté,
Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 2 (rate: eq. 5; reflection: eq. 6).
"""

from __future__ import annotations

from pdmp.compiled import compiled, positive
from pdmp.process import CERTAIN
from pdmp.processes.exact import ExactGradient, check_rate, refresh_rate_at, sphere
from pdmp.processes.velocities import reflect, refresh_on_sphere, rescale

BOUNCE, REFRESH = 0, 1


class BPS(ExactGradient):
    """Bouncy Particle Sampler of exp(-U) with the exact gradient, velocities uniform on the unit sphere.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments, per unit of time (a time unit is a unit of length, since \\|v\\| = 1). "auto":
        0.1 √(tr H / (2πd)) with the Hessian H where the run starts, a tenth of the bounce rate. With 0 the process is
        reducible on isotropic targets.
    thinning : "auto", "affine", "grid" or a bound of `pdmp.thinning`
        "affine" is the model's bound on v·Hv and exact; "grid" the adaptive grid for targets that give none, whose
        violations are counted. "auto" takes the model's where there is one.

    Raises
    ------
    TypeError
        For a gradient with noise: `SBPS` is the process for that.
    ValueError
        For a negative or non-finite rate, or thinning that the model does not support.
    """

    refresh_rate: float

    events = ("bounce", "refresh")

    def __init__(self, target, refresh_rate="auto", thinning="auto"):
        super().__init__(target, thinning, "directional_slope", clocks=2, dependents=[[BOUNCE], [BOUNCE, REFRESH]])
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)

    @compiled
    def clock(self, state, i, now, rng):
        if i == BOUNCE:
            return self.thinning.propose(self, state, i, now, rng)
        if self.refresh_rate == 0.0:
            return CERTAIN, CERTAIN  # never
        return now + rng.standard_exponential() / self.refresh_rate, CERTAIN

    @compiled
    def rate(self, state, i, now, rng):
        self.look(state, now, rng)
        return positive(self.along(state))

    @compiled
    def jump(self, state, i, now, rng):
        if i == BOUNCE:
            reflect(state.v, state.memory.gradient)
            rescale(state.v, 1.0)
        else:
            refresh_on_sphere(state.v, rng)
        return i

    # What the bounds ask for: the one signed rate v·∇U, and what the model knows of it and of its slope v·Hv.

    @compiled
    def along(self, state):
        total = 0.0
        for j in range(state.v.shape[0]):
            total += state.v[j] * state.memory.gradient[j]
        return total

    @compiled
    def rates(self, state, now, rng, out):
        self.look(state, now, rng)
        out[0] = self.along(state)

    @compiled
    def slopes(self, state, out):
        out[0] = self.provider.model.directional_slope(state.v)

    @compiled
    def levels(self, state, out):
        out[0] = self.provider.model.directional_bound(state.v)

    @compiled
    def slopes_within(self, state, now, s, out):
        out[0] = self.provider.model.directional_slope_within(state.memory.here, state.v, s)

    def resolve(self, x):
        process = super().resolve(x)
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x)
        return process

    def velocity(self, x, rng):
        return sphere(rng, self.dim)

    def memory(self, x, rng):
        return self.exact_memory(x, rng, components=1)
