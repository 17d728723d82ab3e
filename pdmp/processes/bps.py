r"""The Bouncy Particle Sampler.

=====  ===============================================================================================
flow   straight lines, x + v s, with v = L u, u on the unit sphere or N(0, I), and L Lᵀ = M⁻¹
clock  bounce: Poisson, inverted exactly for quadratic targets, else by thinning under a bound on (v·∇U)₊;
       refreshment: Poisson of constant rate
rate   (v·∇U(x))₊
jump   bounce: u ← u - 2 (u·a) a / |a|², a = Lᵀ∇U; refreshment: u drawn anew, or in part
=====  ===============================================================================================

With the metric M = I, the default, L = I, u is v, and the bounce is v ← v - 2 (v·∇U) ∇U / |∇U|².

For a quadratic target ∇U changes along a ray by Hv in a unit of time. So the gradient is carried along, one product
with H is all that an event costs, and now and then the gradient is computed afresh, to bound what rounding adds up to.

References
----------
Peters & de With (2012), Rejection-free Monte Carlo sampling for general potentials, Phys. Rev. E 85. Bouchard-Côté,
Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 2 (rate: eq. 5; reflection: eq. 6; inversion:
section 2.3.1; partial refreshment, "restricted" and "autoregressive": section 2.2 and supplement). Pakman, Gilboa,
Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML, section 4 (preconditioning).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.gradients import Provider
from pdmp.interfaces.report import Report
from pdmp.metric import WORDS, Identity, Metric, adapting, check_metric, make_metric
from pdmp.models.base import Model
from pdmp.models.numerical import quick_mode
from pdmp.native.arguments import fraction, one_of
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.velocities import autoregress, dot, reflect, refresh_on_sphere, rescale, turn_partly
from pdmp.process import CERTAIN, Defaults, Process, State, recast
from pdmp.processes.exact import (
    ExactGradient,
    check_rate,
    curvature_at,
    exact_provider,
    predicted_without_bound,
    sphere,
)
from pdmp.processes.walls import Walls
from pdmp.thinning import RayInversion
from pdmp.thinning.bound import Bound
from pdmp.thinning.constant import constant_arrival

BOUNCE, REFRESH = 0, 1
#: The gradient of a quadratic target, carried along by Hv, is computed afresh after so many events, to bound what
#: rounding adds up to.
CARRIED = 256


class BPSReport(Report):
    """Reminds of the risk of a process without refreshments."""

    def reminders(self, process):
        if process.refresh_rate != 0.0 or process.dim == 1:
            return []
        return [
            "refresh_rate=0: without refreshments the process can be reducible, on isotropic targets it is; give a "
            "positive one."
        ]


class BPS(Walls, ExactGradient):
    """Bouncy Particle Sampler of exp(-U) with the exact gradient.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments, per unit of time. "auto": 0.1 |v| √(tr(M⁻¹H) / (2πd)) with the Hessian H where the run
        starts, a tenth of the bounce rate. With 0 the process is reducible on isotropic targets, and warns.
        In hundreds of dimensions fewer refreshments serve means better and lengths worse: on a chain of 1,000 normal
        variables, a tenth of this rate gives 10 times the effective draws of the slowest mean, and a twentieth of
        those of |x|².
    refresh : {"full", "partial"}, default "full"
        "full": velocities are drawn anew. "partial" (autoregressive): u ← ρ u + √(1 - ρ²) w, with w ~ N(0, I) for
        Gaussian velocities, and on the sphere uniform among the unit vectors orthogonal to u; ρ is `persistence`.
    velocities : {"sphere", "gaussian"}, default "sphere"
        The law of u: uniform on the unit sphere, or N(0, I), with which the speed is about √d.
    metric : None, float, array_like of shape (d,) or (d, d), Metric, "auto", "diagonal" or "dense", default None
        M: velocities are L u with L Lᵀ = M⁻¹, and bounces are reflections under M. The best M is the target's
        precision: the process then sees an isotropic target. An array is M itself; `pdmp.Metric` takes its inverse.
        "auto": the Hessian of U at the mode. "diagonal": fitted to the path's variances in the warm-up (``warmup=`` of
        `pdmp.sample`) and frozen after it; "dense": a full matrix, likewise. None: the identity; a unit of time is then
        a unit of length on the sphere.
    persistence : float, default 0.5
        ρ of a partial refreshment, in [0, 1).
    thinning : "auto", "inversion", "affine", "grid", "predicted" or a bound of `pdmp.thinning`
        "inversion": exact arrivals, for quadratic targets (those with `hessian_product`). "affine": the model's bound
        on v·Hv, exact. "grid": the adaptive grid for targets that give none; its violations are counted. "auto" takes
        the first of these that the model supports. "predicted": a bound predicted from the last gradient, one gradient
        a proposal, for targets of any kind; a good `metric` makes it tight, and its violations are counted.

    Raises
    ------
    TypeError
        For a gradient with noise: `SBPS` is the process for that.
    ValueError
        For a rate, an option or a metric that is not one of these, or thinning that the model does not support.

    See Also
    --------
    pdmp.ForwardEventChain : Bounces at random, which need little refreshment.
    pdmp.LocalBPS : A clock for each factor of a sparse model.
    pdmp.SBPS : With mini-batches, approximately.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.BPS(model, refresh_rate=0.5), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    refresh_rate: float
    gaussian: bool  #: whether u ~ N(0, I); else u is on the unit sphere
    persistence: float  #: of a refreshment; 0: full
    inverts: bool  #: whether the target is quadratic, and its gradient carried along
    metric: object

    events = ("bounce", "refresh")
    report = BPSReport()

    def __init__(
        self,
        target: Model | Provider,
        refresh_rate: float | str = "auto",
        refresh: str = "full",
        velocities: str = "sphere",
        *,
        metric: ArrayLike | Metric | str | None = None,
        persistence: float = 0.5,
        thinning: str | Bound = "auto",
    ) -> None:
        provider = exact_provider(target, type(self).__name__)
        if isinstance(thinning, str) and thinning == "auto" and provider.model.has("hessian_product"):
            thinning = RayInversion()
        super().__init__(provider, thinning, "directional", clocks=2, dependents=[[BOUNCE], [BOUNCE, REFRESH]])
        self.inverts = isinstance(self.thinning, RayInversion)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        one_of("refresh", refresh, ("full", "partial"))
        one_of("velocities", velocities, ("sphere", "gaussian"))
        persistence = fraction("persistence", persistence)
        self.persistence = persistence if refresh == "partial" else 0.0
        self.gaussian = velocities == "gaussian"
        self.metric = check_metric(metric, self.dim, f"pdmp.{type(self).__name__}", WORDS)
        if self.metric is None:
            self.metric = Identity()

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == BOUNCE:
            return self.thinning.propose(self, state, i, now, rng)
        return now + constant_arrival(self.refresh_rate, rng), CERTAIN

    @compiled
    def rate(self, state, i, now, rng):
        self.evaluate(state, now, rng)
        self.thinning.observe(self, state, i, now, rng)
        return positive_part(self.along(state))

    @compiled
    def jump(self, state, i, now, rng):
        if i == BOUNCE:
            self.carry(state, now)
            self.metric.bounce(self, state, now, rng)
        else:
            self.metric.refresh(self, state, now, rng)
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def bounce(self, u, a, scratch, rng):
        """Change u at an event of the rate (u·a)₊; a = Lᵀ∇U."""
        reflect(u, a)
        if not self.gaussian:
            rescale(u, 1.0)

    @compiled
    def refresh(self, u, scratch, rng):
        """Draw u from its law, or move it by a kernel that keeps that."""
        if self.gaussian:
            autoregress(u, self.persistence, rng)
        elif self.persistence > 0.0:
            turn_partly(u, self.persistence, scratch[0], rng)
            rescale(u, 1.0)
        else:
            refresh_on_sphere(u, rng)

    @compiled
    def along(self, state):
        """v·∇U."""
        return dot(state.v, state.memory.gradient)

    @compiled
    def velocity_changed(self, state, now, rng):
        self.metric.velocity_changed(state)

    # What bounds ask for: the one signed rate v·∇U, and the model's bounds on it and on its derivative in time, v·Hv.

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        out[0] = self.along(state)

    @compiled
    def predict(self, state, now, rng, rates, rises, squares):
        """For `pdmp.thinning.Predicted`: v·∇U, and |u|², by which it rises in a unit of time where M is the Hessian."""
        self.signed_rates(state, now, rng, rates)
        squares[0] = self.metric.square(state)
        return 0.0, math.inf

    @compiled
    def rate_slope_bounds(self, state, out):
        out[0] = self.provider.model.curvature_bound(state.v)

    @compiled
    def rate_bounds(self, state, out):
        out[0] = self.provider.model.directional_derivative_bound(state.v)

    @compiled
    def rate_slope_bounds_within(self, state, now, s, out):
        out[0] = self.provider.model.curvature_bound_within(state.memory.here, state.v, s)

    @compiled
    def carry(self, state, now):
        """Quadratic targets: move the gradient along the ray to the time `now`, by Hv in a unit of time."""
        memory = state.memory
        if self.inverts:
            s = now - memory.at[0]
            for j in range(memory.gradient.shape[0]):
                memory.gradient[j] += s * memory.hessian_product[j]
            memory.at[0] = now

    @compiled
    def affine_rate(self, state, now, rng):
        """v·∇U at `now` and its derivative in time v·Hv, for a quadratic U."""
        memory = state.memory
        if memory.carried[0] < CARRIED and not math.isnan(memory.at[0]):
            self.carry(state, now)
            memory.carried[0] += 1
        else:
            memory.at[0] = math.nan
            self.evaluate(state, now, rng)
            memory.carried[0] = 0
        self.provider.model.hessian_product(state.v, memory.hessian_product)
        return self.along(state), dot(state.v, memory.hessian_product)

    # -- Python -----------------------------------------------------------------------------------------------------

    def among_moving(self) -> Process:
        fits = type(self) is BPS and self.gaussian and isinstance(self.metric, Identity)
        return recast(self, MovingBPS) if fits else Defaults.among_moving(self)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With its metric, under a predicted bound where the model gives none; see `Process.in_metric`."""
        return predicted_without_bound(cls, target, {"metric": learnt.mass} | options)

    def resolve(self, x: np.ndarray) -> Self:
        process = super().resolve(x)
        if not isinstance(process.metric, Compiled):
            process.metric = make_metric(process.metric, self.model, x)
        if process.refresh_rate == "auto":
            process.refresh_rate = self.automatic_rate(process.metric, x)
        if process.refresh_rate == 0.0:
            self.warn_if_reducible(process.metric, x)
        return process

    def waits_for_warmup(self) -> str | None:
        word = adapting(self.metric)
        return None if word is None else f'metric="{word}"'

    @property
    def wall_rule(self) -> str | None:
        """A wall reflects in the metric, which must not change in the run."""
        return None if adapting(self.metric) else "reflect"

    def velocity_covariance(self) -> Callable[[np.ndarray], np.ndarray] | None:
        """A function that multiplies by M⁻¹; None for the identity, and before `resolve` has made the metric."""
        metric = self.metric
        if isinstance(metric, Identity) or not isinstance(metric, Compiled):
            return None
        return lambda vector: metric.transform(metric.transposed(vector))

    def automatic_rate(self, metric: Compiled, x: np.ndarray) -> float:
        """0.1 |v| √(tr(M⁻¹H) / (2πd)): a tenth of the bounce rate on a Gaussian with this curvature."""
        if isinstance(metric, Identity):
            curvature = curvature_at(self.model, x, '`refresh_rate="auto"`', self._narrow)
        else:
            curvature = metric.trace(self.model, x)
            if not 0.0 < curvature < math.inf:
                curvature = 1.0
        return 0.1 * math.sqrt(curvature * (self.dim if self.gaussian else 1.0) / (2.0 * math.pi))

    def warn_if_reducible(self, metric: Compiled, x: np.ndarray) -> None:
        """Warn where level sets are spheres in the metric: bounces then keep |x ∧ v|."""
        if self.dim > 1 and isotropic(self.model, metric):
            warn(
                f"pdmp.{type(self).__name__} without refreshment is reducible on an isotropic target: "
                "averages depend on the start. Give a `refresh_rate` above 0."
            )

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        u = rng.standard_normal(self.dim) if self.gaussian else sphere(rng, self.dim)
        return self.metric.transform(u)

    def prepare(self, state: State) -> None:
        if not isinstance(self.metric, Identity):
            state.memory.metric.u[:] = self.metric.inverse(state.v)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        memory = self.exact_memory(x, rng, components=1, scaled=not isinstance(self.metric, Identity))
        return memory._replace(hessian_product=np.zeros(self.dim), metric=self.metric.memory(x))


class MovingBPS(BPS):
    """`BPS` among the coordinates whose velocity is not 0: given the others, theirs are N(0, I) as well."""

    @compiled
    def bounce(self, u, a, scratch, rng):
        along, square = 0.0, 0.0
        for j in range(u.shape[0]):
            if u[j] != 0.0:
                along += u[j] * a[j]
                square += a[j] * a[j]
        if square > 0.0:
            for j in range(u.shape[0]):
                if u[j] != 0.0:
                    u[j] -= 2.0 * along / square * a[j]

    @compiled
    def refresh(self, u, scratch, rng):
        rest = math.sqrt(1.0 - self.persistence**2)
        for j in range(u.shape[0]):
            if u[j] != 0.0:
                u[j] = self.persistence * u[j] + rest * rng.standard_normal()


def isotropic(model, metric):
    """Whether ∇U points to the mode from everywhere, in the coordinates in which `metric` is the identity."""
    mode = quick_mode(model) if model.everywhere else None
    if mode is None:
        return False
    rng, root = np.random.default_rng(0), 1.0 / math.sqrt(max(metric.trace(model, mode), 1e-300))
    for _ in range(4):
        z = root * rng.standard_normal(model.dim)
        a = metric.transposed(model.gradient(mode + metric.transform(z)))
        if abs(z @ a) < (1.0 - 1e-6) * math.sqrt((z @ z) * (a @ a)):
            return False
    return True
