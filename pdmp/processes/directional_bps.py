r"""The directional-derivative Bouncy Particle Sampler.

=====  ===============================================================================================
flow   straight lines, x + v s, with v = L u and L Lᵀ = M⁻¹, by default the inverse Hessian at the mode
clock  bounce: Poisson, by thinning: with the derivatives U' and U'' along the ray where it looks, and a
       number b with U'(s + τ) <= U'(s) + b τ for τ <= h, the bound is (U' + b τ)₊; it expires after h,
       where the clock looks again; refreshment: Poisson of constant rate
rate   (U'(s))₊, the derivative of U along the ray: (v·∇U)₊
jump   those of `BPS`; the full gradient is only asked for at bounces
=====  ===============================================================================================

A look costs two derivatives along the ray and no gradient. A regression keeps its linear predictors η = Xx and their
speeds ζ = Xv: they advance by η + s ζ, so that a look costs O(N) whatever the dimension, and Xv is computed anew, at
the cost of one pass over the data, only where the velocity changes. In the metric of the default mass U'' is about 1
everywhere, and almost every proposal is a bounce.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113 (the process). Bierkens, Fearnhead &
Roberts (2019), The Zig-Zag process and super-efficient sampling, Ann. Statist. 47, section 3 (bounds from derivatives).
Bounds from Taylor's formula along the ray: Sutton & Fearnhead (2023), Concave-Convex PDMP-based sampling, JCGS 32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.interfaces.recipe import Recipe
from pdmp.native.classes import Compiled, compiled, positive
from pdmp.native.velocities import dot
from pdmp.process import CERTAIN, DATA, HORIZON, VIOLATIONS
from pdmp.processes.bps import BOUNCE, BPS
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.constant import constant_arrival

#: A ray that is carried on from turn to turn is begun afresh after so many.
CARRIED = 256
#: A bound whose slope is this many times U'' is taken for all times, and one that is not more often so is halved.
TIGHT, LOOSE = 1.1, 1.5
#: The horizon is where this much of the rate U' + U'' τ has been integrated: 5 % of the looks come to nothing.
AHEAD = 3.0
#: Room for a third derivative that is only estimated, in units of the estimate.
SAFETY = 3.0

BEGAN, TIME, FIRST, SECOND, TURNS = range(5)  #: of `memory.look`


class Memory(NamedTuple):
    """Beside the path."""

    gradient: np.ndarray  #: (d,) ∇U at the last bounce
    here: np.ndarray  #: (d,) where the process last looked
    look: np.ndarray  #: (5,) times of the ray's beginning and of the last look, U' and U'' there; turns since `begin`
    ray: np.ndarray  #: what the model keeps of the ray
    mass: tuple
    provider: tuple


class DirectionalBPS(BPS):
    """Bouncy Particle Sampler of exp(-U) that looks at derivatives along its ray, and at gradients only at bounces.

    It is exact where the model bounds the slope of U' along a ray (`ray_bound`, see `pdmp.Model`, or
    `curvature_bound`), and works on every other model by differences of gradients, with an estimated bound: its
    violations are counted, with their excess.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    refresh_rate, refresh, velocities, persistence
        As for `BPS`.
    mass : "hessian", None, array_like of shape (d,) or (d, d), "adaptive" or "adaptive dense", default "hessian"
        As for `BPS`: "hessian", that of U at its mode, gives every direction its right scale.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For an option or a mass that is not one of these, and for "hessian" where the Hessian is not positive definite.
    """

    rays: object

    recipe = Recipe(featured=False)

    def __init__(
        self, target, refresh_rate="auto", mass="hessian", refresh="full", velocities="sphere", persistence=0.5
    ):
        super().__init__(
            target,
            refresh_rate=refresh_rate,
            refresh=refresh,
            velocities=velocities,
            mass=mass,
            persistence=persistence,
        )
        self.inverts = False
        self.rays = choose_rays(self.provider)
        self.exact_bounds = self.rays.exact

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i != BOUNCE:
            return now + constant_arrival(self.refresh_rate, rng), CERTAIN
        memory = state.memory
        if math.isnan(memory.look[BEGAN]):
            self.rays.begin(memory.provider, state.x, state.v, memory.ray, rng, state.counts)
            memory.look[BEGAN] = now
        self.evaluate(state, now, rng)
        first, second, s = memory.look[FIRST], memory.look[SECOND], now - memory.look[BEGAN]
        if not math.isfinite(first + second):
            return math.nan, HORIZON
        h = math.inf
        slope = self.rays.bound(s, h, memory.ray, state.v)
        if not slope <= TIGHT * second:
            h = first_arrival(first, second, AHEAD)
            if not h < math.inf:  # U' falls from here: as far as it would take to rise again
                h = 1.0 / math.sqrt(max(abs(second), 1e-300))
            slope = self.rays.bound(s, h, memory.ray, state.v)
            for _ in range(12):
                if slope <= LOOSE * abs(second):
                    break
                h *= 0.5
                slope = self.rays.bound(s, h, memory.ray, state.v)
        wait = first_arrival(first, slope, rng.standard_exponential())
        if wait > h:
            return now + h, HORIZON
        if wait == math.inf:
            return math.inf, CERTAIN
        return now + wait, first + slope * wait

    @compiled
    def rate(self, state, i, now, rng):
        self.evaluate(state, now, rng)
        return positive(state.memory.look[FIRST])

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        s = now - memory.look[BEGAN]
        if i == BOUNCE:
            self.rays.gradient(memory.provider, state.x, s, memory.ray, rng, memory.gradient, state.counts)
            self.mass.bounce(self, state, now, rng)
        else:
            self.mass.refresh(self, state, now, rng)
        if memory.look[TURNS] < CARRIED:
            self.rays.turn(memory.provider, state.x, s, state.v, memory.ray, rng, state.counts)
            memory.look[TURNS] += 1.0
        else:
            self.rays.begin(memory.provider, state.x, state.v, memory.ray, rng, state.counts)
            memory.look[TURNS] = 0.0
        memory.look[BEGAN] = now
        memory.look[TIME] = math.nan
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def velocity_changed(self, state, now, rng):
        self.mass.velocity_changed(state)
        state.memory.look[BEGAN], state.memory.look[TIME], state.memory.look[TURNS] = math.nan, math.nan, 0.0

    @compiled
    def evaluate(self, state, now, rng):
        """U' and U'' at the time `now`, unless that was the last look."""
        look = state.memory.look
        if look[TIME] != now:
            first, second = self.rays.slopes(
                state.memory.provider, now - look[BEGAN], state.memory.ray, rng, state.counts
            )
            look[FIRST], look[SECOND], look[TIME] = first, second, now

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def wall_rule(self):
        """Differences of gradients would look beyond a wall."""
        return super().wall_rule if self.rays.exact else None

    def evaluated_at(self, state):
        return None

    def describe_bound(self):
        return f"the bound `{self.rays.bound_name}` of {type(self.model).__name__}"

    def memory(self, x, rng):
        return Memory(
            gradient=np.zeros(self.dim),
            here=np.array(x, dtype=float),
            look=np.array([math.nan, math.nan, 0.0, 0.0, 0.0]),
            ray=np.zeros(self.rays.room()),
            mass=self.mass.memory(x),
            provider=self.provider.memory(rng),
        )


# ---------------------------------------------------------------------------------------------------------------
# Where the derivatives come from


def choose_rays(provider):
    """What knows the derivatives along rays: the model itself, or gradients at two points."""
    model = provider.packed
    if model.has("ray_begin", "ray_turn", "ray_derivatives", "ray_bound", "ray_gradient"):
        return ModelRays(model)
    if model.has("curvature_bound"):
        return BoundedRays(provider)
    return GradientRays(provider)


class ModelRays(Compiled):
    """The model's own derivatives along rays."""

    model: Compiled

    exact = True
    bound_name = "ray_bound"

    def __init__(self, model):
        self.model = model

    def room(self):
        return self.model.ray_room()

    @compiled
    def begin(self, memory, x, v, ray, rng, counts):
        self.model.ray_begin(x, v, ray)
        counts[DATA] += max(self.model.n_data, 1)

    @compiled
    def turn(self, memory, x, s, v, ray, rng, counts):
        self.model.ray_turn(x, s, v, ray)
        counts[DATA] += max(self.model.n_data, 1)

    @compiled
    def slopes(self, memory, s, ray, rng, counts):
        counts[DATA] += max(self.model.n_data, 1)
        return self.model.ray_derivatives(s, ray)

    @compiled
    def bound(self, s, h, ray, v):
        return self.model.ray_bound(s, h, ray)

    @compiled
    def gradient(self, memory, x, s, ray, rng, out, counts):
        self.model.ray_gradient(x, s, ray, out)
        counts[DATA] += max(self.model.n_data, 1)


#: Of the ray of `GradientRays`: where U'' was last looked at, U'' there (NaN: not yet), the estimate of |U'''|, and
#: violations seen so far. Then x, v, the last point, and the gradient there.
AT, CURVE, THIRD, SEEN, BEFORE = range(5)


class GradientRays(Compiled):
    """Any model: U' by a gradient, U'' by a difference of two, and an estimate of U''' from successive looks.

    The estimate follows the largest change of U'' in a unit of time, forgets slowly, and doubles when it was violated.
    It is not allowed below a fifth of \\|U''\\|^(3/2), which has its units.
    """

    provider: Compiled
    dim: int

    exact = False
    bound_name = "estimated third derivative"

    def __init__(self, provider):
        self.provider, self.dim = provider, provider.dim

    def room(self):
        return BEFORE + 5 * self.dim

    @compiled
    def begin(self, memory, x, v, ray, rng, counts):
        d = self.dim
        for j in range(d):
            ray[BEFORE + j] = x[j]
            ray[BEFORE + d + j] = v[j]
        ray[CURVE] = math.nan

    @compiled
    def turn(self, memory, x, s, v, ray, rng, counts):
        self.begin(memory, x, v, ray, rng, counts)

    @compiled
    def along(self, memory, s, ray, rng, counts):
        """U' at s."""
        d = self.dim
        x, v = ray[BEFORE : BEFORE + d], ray[BEFORE + d : BEFORE + 2 * d]
        point, gradient = ray[BEFORE + 2 * d : BEFORE + 3 * d], ray[BEFORE + 3 * d : BEFORE + 4 * d]
        for j in range(d):
            point[j] = x[j] + s * v[j]
        self.provider.gradient(point, memory, rng, gradient, counts)
        return dot(v, gradient)

    @compiled
    def slopes(self, memory, s, ray, rng, counts):
        d, size, speed = self.dim, 1.0, 0.0
        for j in range(d):
            size = max(size, abs(ray[BEFORE + j]))
            speed = max(speed, abs(ray[BEFORE + d + j]))
        step = 1e-5 * size / speed if speed > 0.0 else 1e-5
        first = self.along(memory, s, ray, rng, counts)
        second = (self.along(memory, s + step, ray, rng, counts) - first) / step
        if not math.isnan(ray[CURVE]) and s > ray[AT]:
            ray[THIRD] = max(0.95 * ray[THIRD], abs(second - ray[CURVE]) / (s - ray[AT]))
        ray[THIRD] = max(ray[THIRD], 0.2 * abs(second) ** 1.5)
        if counts[VIOLATIONS] > ray[SEEN]:
            ray[SEEN] = counts[VIOLATIONS]
            ray[THIRD] *= 2.0
        ray[AT], ray[CURVE] = s, second
        return first, second

    @compiled
    def bound(self, s, h, ray, v):
        return ray[CURVE] + 0.5 * SAFETY * ray[THIRD] * h

    @compiled
    def gradient(self, memory, x, s, ray, rng, out, counts):
        self.provider.gradient(x, memory, rng, out, counts)


class BoundedRays(GradientRays):
    """A model that bounds v·Hv everywhere: that in place of U'', one gradient a look, and no horizon."""

    exact = True
    bound_name = "curvature_bound"

    @compiled
    def slopes(self, memory, s, ray, rng, counts):
        d = self.dim
        ray[CURVE] = self.provider.model.curvature_bound(ray[BEFORE + d : BEFORE + 2 * d])
        return self.along(memory, s, ray, rng, counts), ray[CURVE]

    @compiled
    def bound(self, s, h, ray, v):
        return ray[CURVE]
