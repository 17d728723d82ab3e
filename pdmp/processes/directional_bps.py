r"""The directional-derivative Bouncy Particle Sampler.

=====  ===============================================================================================
flow   straight lines, x + v s, with v = L u and L Lᵀ = M⁻¹, by default the inverse Hessian at the mode
clock  bounce: Poisson, by thinning: with the derivatives U' and U'' along the ray at s, and a number b
       with U'(s + τ) <= U'(s) + b τ for τ <= h, the bound is (U' + b τ)₊; it expires after h, where
       the derivatives are evaluated again; refreshment: Poisson of constant rate
rate   (U'(s))₊, the derivative of U along the ray: (v·∇U)₊
jump   those of `BPS`; only bounces evaluate the full gradient
=====  ===============================================================================================

A proposal costs two derivatives along the ray and no gradient. A regression keeps its linear predictors η = Xx and
their derivatives in time, ζ = Xv. As η moves to η + s ζ, a proposal costs O(N) whatever the dimension; Xv is computed
anew, at the cost of one pass over the data, only where the velocity changes. In the metric of the default metric U'' is
about 1 everywhere, and almost every proposal is a bounce.

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
from numpy.typing import ArrayLike

from pdmp.gradients import Provider
from pdmp.interfaces.recipe import Recipe
from pdmp.metric import Metric
from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.records import Number, Vector, zeros
from pdmp.native.velocities import dot
from pdmp.process import CERTAIN, DATA, HORIZON, VIOLATIONS, State
from pdmp.processes.bps import BOUNCE, BPS
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.constant import constant_arrival

#: What the model keeps of a ray is updated where the velocity changes, and computed afresh after so many changes, to
#: bound what rounding adds up to.
CARRIED = 256
#: Where the bound b that holds for all times is at most this many times U'', it is used, and no horizon is needed.
TIGHT = 1.1
#: Otherwise the horizon h is halved until b is at most this many times |U''|, or 12 times.
LOOSE = 1.5
#: The first horizon that is tried is where the integral of the rate U' + U'' τ is this much: the probability that a
#: proposal comes later is then exp(-3), 5 %.
AHEAD = 3.0
#: Where U''' is only estimated, the bound allows for this many times the estimate.
SAFETY = 3.0


class Memory(NamedTuple):
    """Beside the path."""

    gradient: Vector  #: ∇U at the last bounce
    here: np.ndarray  #: (d,) a position
    began: Number  #: the time at which the ray began; NaN before the first, and after a wall
    at: Number  #: the time at which the derivatives were last evaluated; NaN when they are out of date
    first_derivative: Number  #: U' there
    second_derivative: Number  #: U'' there
    carried: Number  #: changes of velocity since `ray` was last computed afresh
    ray: object  #: what `ModelRays` or `GradientRays` keeps of the ray
    metric: tuple
    provider: tuple


class DirectionalBPS(BPS):
    """Bouncy Particle Sampler of exp(-U) that evaluates derivatives along its ray, and gradients only at bounces.

    It is exact where the model bounds the slope of U' along a ray (`ray_bound`, see `pdmp.Model`, or
    `curvature_bound`), and works on every other model by differences of gradients, with an estimated bound: its
    violations are counted, with their excess.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    refresh_rate, refresh, velocities, persistence
        As for `BPS`.
    metric : as for `BPS`, default "auto"
        "auto", the Hessian of U at its mode, gives every direction its right scale.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For an option or a metric that is not one of these, and for "auto" where the Hessian is not positive definite.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.DirectionalBPS(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    rays: object

    recipe = Recipe(featured=False)

    def __init__(
        self,
        target: Model | Provider,
        refresh_rate: float | str = "auto",
        *,
        metric: ArrayLike | Metric | str | None = "auto",
        refresh: str = "full",
        velocities: str = "sphere",
        persistence: float = 0.5,
    ) -> None:
        super().__init__(
            target,
            refresh_rate=refresh_rate,
            refresh=refresh,
            velocities=velocities,
            metric=metric,
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
        if math.isnan(memory.began[0]):
            self.rays.begin(memory.provider, state.x, state.v, memory.ray, rng, state.counts)
            memory.began[0] = now
        self.evaluate(state, now, rng)
        first, second, s = memory.first_derivative[0], memory.second_derivative[0], now - memory.began[0]
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
        return positive_part(state.memory.first_derivative[0])

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        s = now - memory.began[0]
        if i == BOUNCE:
            self.rays.gradient(memory.provider, state.x, s, memory.ray, rng, memory.gradient, state.counts)
            if not math.isfinite(dot(state.v, memory.gradient)):
                return -1
            self.metric.bounce(self, state, now, rng)
        else:
            self.metric.refresh(self, state, now, rng)
        if memory.carried[0] < CARRIED:
            self.rays.turn(memory.provider, state.x, s, state.v, memory.ray, rng, state.counts)
            memory.carried[0] += 1.0
        else:
            self.rays.begin(memory.provider, state.x, state.v, memory.ray, rng, state.counts)
            memory.carried[0] = 0.0
        memory.began[0] = now
        memory.at[0] = math.nan
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def velocity_changed(self, state, now, rng):
        self.metric.velocity_changed(state)
        state.memory.began[0], state.memory.at[0], state.memory.carried[0] = math.nan, math.nan, 0.0

    @compiled
    def evaluate(self, state, now, rng):
        """Evaluate U' and U'' at the time `now`, unless that was the last thing done."""
        memory = state.memory
        if memory.at[0] != now:
            s = now - memory.began[0]
            first, second = self.rays.derivatives(memory.provider, s, memory.ray, rng, state.counts)
            memory.first_derivative[0], memory.second_derivative[0], memory.at[0] = first, second, now

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def wall_rule(self) -> str | None:
        """None where derivatives are differences of gradients: those would be evaluated beyond a wall."""
        return super().wall_rule if self.rays.exact else None

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float] | None:
        return None

    def describe_bound(self) -> str:
        return f"the bound `{self.rays.bound_name}` of {type(self.model).__name__}"

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return zeros(
            Memory,
            self.dim,
            here=np.array(x, dtype=float),
            began=np.full(1, math.nan),
            at=np.full(1, math.nan),
            ray=self.rays.memory(),
            metric=self.metric.memory(x),
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

    def memory(self):
        return np.zeros(self.model.ray_room())

    @compiled
    def begin(self, memory, x, v, ray, rng, counts):
        self.model.ray_begin(x, v, ray)
        counts[DATA] += max(self.model.n_data, 1)

    @compiled
    def turn(self, memory, x, s, v, ray, rng, counts):
        self.model.ray_turn(x, s, v, ray)
        counts[DATA] += max(self.model.n_data, 1)

    @compiled
    def derivatives(self, memory, s, ray, rng, counts):
        counts[DATA] += max(self.model.n_data, 1)
        return self.model.ray_derivatives(s, ray)

    @compiled
    def bound(self, s, h, ray, v):
        return self.model.ray_bound(s, h, ray)

    @compiled
    def gradient(self, memory, x, s, ray, rng, out, counts):
        self.model.ray_gradient(x, s, ray, out)
        counts[DATA] += max(self.model.n_data, 1)


class Ray(NamedTuple):
    """What `GradientRays` keeps of a ray."""

    x: np.ndarray  #: (d,) where it begins
    v: np.ndarray  #: (d,) its velocity
    point: np.ndarray  #: (d,) the last point at which the gradient was evaluated
    gradient: np.ndarray  #: (d,) the gradient there
    at: np.ndarray  #: (1,) the time since its begin at which U'' was last evaluated
    second_derivative: np.ndarray  #: (1,) U'' there, or its bound; NaN before the first evaluation
    third_derivative: np.ndarray  #: (1,) the estimate of |U'''|
    violations_seen: np.ndarray  #: (1,) violations that the estimate knows of


class GradientRays(Compiled):
    """Any model: U' by a gradient, U'' by a difference of two, and an estimate of U''' from successive values of it.

    The estimate of |U'''| is the largest change of U'' per unit of time, lowered by 5 % at each evaluation, and doubled
    after a violation. It is at least a fifth of |U''|^(3/2), which has its units.
    """

    provider: Compiled
    dim: int

    exact = False
    bound_name = "estimated third derivative"

    def __init__(self, provider):
        self.provider, self.dim = provider, provider.dim

    def memory(self):
        return Ray(*(np.zeros(self.dim) for _ in range(4)), *(np.zeros(1) for _ in range(4)))

    @compiled
    def begin(self, memory, x, v, ray, rng, counts):
        for j in range(self.dim):
            ray.x[j] = x[j]
            ray.v[j] = v[j]
        ray.second_derivative[0] = math.nan

    @compiled
    def turn(self, memory, x, s, v, ray, rng, counts):
        self.begin(memory, x, v, ray, rng, counts)

    @compiled
    def along(self, memory, s, ray, rng, counts):
        """U' at s."""
        for j in range(self.dim):
            ray.point[j] = ray.x[j] + s * ray.v[j]
        self.provider.gradient(ray.point, memory, rng, ray.gradient, counts)
        return dot(ray.v, ray.gradient)

    @compiled
    def derivatives(self, memory, s, ray, rng, counts):
        size, speed = 1.0, 0.0
        for j in range(self.dim):
            size = max(size, abs(ray.x[j]))
            speed = max(speed, abs(ray.v[j]))
        step = 1e-5 * size / speed if speed > 0.0 else 1e-5
        first = self.along(memory, s, ray, rng, counts)
        second = (self.along(memory, s + step, ray, rng, counts) - first) / step
        if not math.isnan(ray.second_derivative[0]) and s > ray.at[0]:
            ray.third_derivative[0] = max(
                0.95 * ray.third_derivative[0], abs(second - ray.second_derivative[0]) / (s - ray.at[0])
            )
        ray.third_derivative[0] = max(ray.third_derivative[0], 0.2 * abs(second) ** 1.5)
        if counts[VIOLATIONS] > ray.violations_seen[0]:
            ray.violations_seen[0] = counts[VIOLATIONS]
            ray.third_derivative[0] *= 2.0
        ray.at[0], ray.second_derivative[0] = s, second
        return first, second

    @compiled
    def bound(self, s, h, ray, v):
        return ray.second_derivative[0] + 0.5 * SAFETY * ray.third_derivative[0] * h

    @compiled
    def gradient(self, memory, x, s, ray, rng, out, counts):
        self.provider.gradient(x, memory, rng, out, counts)


class BoundedRays(GradientRays):
    """A model that bounds v·Hv everywhere: the bound in place of U'', one gradient an evaluation, and no horizon."""

    exact = True
    bound_name = "curvature_bound"

    @compiled
    def derivatives(self, memory, s, ray, rng, counts):
        ray.second_derivative[0] = self.provider.model.curvature_bound(ray.v)
        return self.along(memory, s, ray, rng, counts), ray.second_derivative[0]

    @compiled
    def bound(self, s, h, ray, v):
        return ray.second_derivative[0]
