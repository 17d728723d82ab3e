r"""Hamiltonian Monte Carlo: the target itself, by Hamiltonian paths of random durations that may be rejected.

=====  ======================================================================================================
flow   none: the state is held while the next Hamiltonian path is computed
clock  ticks; every state is held for the same time
rate   none: every tick is an event
jump   u ~ N(0, I); n steps of size ε of the leapfrog scheme, n = ⌈2 T U / ε⌉ with U uniform on (0, 1):
           u ← u - ½ε Lᵀ∇U(y),  y ← y + ε L u,  u ← u - ½ε Lᵀ∇U(y),      L Lᵀ = M⁻¹;
       y is accepted with probability min(1, e^(-ΔE)),  E = U(y) + ½|u|²
=====  ======================================================================================================

``around=m``: the leapfrog's flight is replaced by the flow of the Gaussian N(m, M⁻¹), a rotation, and its kicks are by
what the target's gradient differs from the Gaussian's, with z = L⁻¹(y - m):

           u ← u - ½ε (Lᵀ∇U(y) - z),  (z, u) ← (z cos ε + u sin ε, u cos ε - z sin ε),  and half a kick again.

Of that Gaussian itself the steps have no error at any ε, in any dimension: a quarter of a period, π/2, is an
independent draw from one gradient, and no step is longer. Of the curvature h in place of 1 a period is off by the
factor 1 + ε² (h - 1)² / (24 h), to the second order; the leapfrog's by 1 + ε² h / 24.

Without an error of the steps it is the piecewise deterministic process whose flow is Hamilton's, and whose velocities
are refreshed after random times: the Boomerang is the case in which the flow of a Gaussian takes the place of the
target's, and bounces that of the steps' correction. Durations are random, as a fixed one is a multiple of the period of
some direction. A path is reversible, and n does not depend on it, so that the law is the target at every step size.

A path of α = min(1, e^(-ΔE)) < `LOST` that is rejected is lost: the step is too large there. A second one from the same
(y, u) has n r steps of ε / r, r = `FINER`. Its end y' is accepted with probability

           min(1, e^(-ΔE') (1 - α') / (1 - α)),

where α' is the acceptance of the path of n steps of ε from (y', -u'): if that is not lost as well, 0. So the law is
exact, and a chain can enter and leave a place some r times narrower than its step is for. It costs nothing elsewhere.

A path whose kinetic energy passes `LARGEST_ENERGY` + d diverges: it is lost, and counted if the second diverges too.
One that leads to where the density is zero is rejected, without a second. Anything else that is not finite ends the
run.

In the warm-up the step is adapted to the rate of acceptance: after path k = 1, 2, … since the metric last changed its
logarithm grows by k^-0.6 (α - target), where α is the probability of acceptance. The metric is adapted to the states.

References
----------
Duane, Kennedy, Pendleton & Roweth (1987), Hybrid Monte Carlo, Phys. Lett. B 195. Neal (2011), MCMC using Hamiltonian
dynamics, section 3.2 for random durations. Bou-Rabee & Sanz-Serna (2017), Randomized Hamiltonian Monte Carlo, Ann.
Appl. Probab. 27, for the process without an error. Shahbaba, Lan, Johnson & Neal (2014), Split Hamiltonian Monte
Carlo, Stat. Comput. 24, section 3.1, for the steps around a Gaussian. Modi, Barnett & Carpenter (2023), Delayed
rejection Hamiltonian Monte Carlo for sampling multiscale distributions, Bayesian Anal. 19, for the second path.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.flow import Still
from pdmp.gradients import Full, as_provider
from pdmp.gradients.provider import clear
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.metric import WORDS, Diagonal, Metric, adapting, check_metric, make_metric
from pdmp.models.base import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import ByAddress, Compiled, compiled
from pdmp.native.records import Count, Flag, Number, Vector, zeros
from pdmp.native.velocities import dot, finite
from pdmp.process import ADAPTING, CERTAIN, DATA, Process, State

LARGEST_ENERGY = 1_000.0  #: kinetic energy, above the d / 2 that it has on average, from which a path has diverged
MOST_STEPS = 1_000  #: of a path
LONGEST_HOLD = 25  #: rejected paths in a row above which a run warns
LONGEST_STEP = 0.5 * math.pi  #: around a Gaussian: a quarter of its period
FIRST_STEP = 1.0  #: around a Gaussian; a step that is too large costs few gradients, one that is too small many
LOST = 0.01  #: probability of acceptance below which a path is lost
LOST_SHARE = 0.02  #: of paths whose second ones were rejected, above which a run that knows of a neck names it
FINER = 4  #: a path that is lost is tried once more by steps that are so many times shorter
OUTSIDE, DIVERGED = 1, 2  #: how a path may end that has no end point
GAIN_EXPONENT = -0.6  #: of the number of paths since the metric last changed, in the adaptation of the step


class HMCMemory(NamedTuple):
    """What a chain keeps beside its state."""

    gradient: Vector  #: ∇U at the present state
    potential: Number  #: U there
    known: Flag  #: whether both have been evaluated
    proposal: Vector  #: y
    next_gradient: Vector  #: ∇U at y
    velocity: Vector  #: L u
    place: np.ndarray  #: (d,) z = L⁻¹(y - m), of steps around a Gaussian; (0,) of others
    kept: np.ndarray  #: the same: u, while L z is computed in its place
    log_step: np.ndarray  #: (1,) log ε
    adapted: np.ndarray  #: (2,) paths since the metric last changed, and how often it has
    counted: Number  #: paths after the warm-up
    acceptance_sum: Number  #: the sum of their probabilities of acceptance
    outside: Count  #: paths that ended where the density is zero, the warm-up included
    divergences: Count  #: paths that diverged, and the second ones too, after the warm-up
    lost: Count  #: paths that were lost and whose second ones were rejected, after the warm-up
    ended: Count  #: how the last path ended: 0, `OUTSIDE` or `DIVERGED`
    held: np.ndarray  #: (2,) paths since the last one that was accepted, after the warm-up, and the most there were
    begun: Vector  #: u that a path began with
    second: np.ndarray  #: (2, d) y and ∇U at the end of a second path
    metric: tuple
    provider: tuple


class HMCRecipe(Recipe):
    """Not in a comparison that names no samplers: the automatic sampler is there, which is this one prepared."""

    def setting(self, process):
        return "step adapted" if process.adapts else f"step {process.step:.2g}"


class HMCReport(Report):
    """The mean probability of acceptance, the step, and the paths that were rejected for another reason."""

    def statistics(self, process, state):
        """The mean probability of acceptance after the warm-up, ε, and counts.

        `outside`, `divergences`, and `max_held`, the longest hold: the largest number of rejected paths in a row.
        `mean_lost` is the share of paths that were lost and whose second ones, of shorter steps, were rejected too;
        paths that left the support are not among them.
        """
        memory = state.memory
        counted = memory.counted[0]
        return {
            "mean_acceptance": float(memory.acceptance_sum[0] / counted) if counted else math.nan,
            "mean_step": float(np.exp(memory.log_step[0])),
            "outside": float(memory.outside[0]),
            "divergences": float(memory.divergences[0]),
            "mean_lost": float(memory.lost[0] / counted) if counted else math.nan,
            "max_held": float(memory.held[1]),
        }

    def warnings(self, process, stats):
        """One of: divergences; a chain held for more than `LONGEST_HOLD` paths; lost paths, where a neck is known."""
        higher = 0.95 if process.target_acceptance < 0.95 else 1.0 - 0.5 * (1.0 - process.target_acceptance)
        which = "the scale of one parameter does not depend on another"
        if process.neck is not None:
            which = f"scales do not depend on {process.neck}, with which those of others change"
        cures = (
            f"a smaller step (`target_acceptance={higher:.3g}`, of pdmp.sample(model) or pdmp.HMC), or a "
            f"parametrisation in which {which} (non-centred, for a hierarchy)"
        )
        if stats["divergences"]:
            paths = "path" if stats["divergences"] == 1 else "paths"
            return [
                f"{stats['divergences']:,.0f} Hamiltonian {paths} diverged: there are places where the posterior is "
                f"too narrow for the step of {stats['mean_step']:.2g}, and averages may be wrong. What helps: {cures}"
            ]
        if stats["max_held"] > LONGEST_HOLD:
            return [
                f"a chain was held at one place for {stats['max_held']:.0f} Hamiltonian paths: there are places that "
                f"are hard to leave with the step of {stats['mean_step']:.2g}, and averages may be wrong. What helps: "
                f"{cures}"
            ]
        if process.neck is not None and stats["mean_lost"] > LOST_SHARE:
            return [
                f"{100.0 * stats['mean_lost']:.2g} % of the Hamiltonian paths were lost, and not mended by a quarter "
                f"of the step of {stats['mean_step']:.2g}: there are places where the posterior is too narrow for it, "
                f"and averages may be wrong. What helps: {cures}"
            ]
        return []


class HMC(Process):
    """Hamiltonian Monte Carlo on exp(-U), with random durations.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        The target, with its exact gradient. Where the model has ``potential_and_gradient``, the potential at the end of
        a path costs no evaluation of its own.
    step : float or "auto", default "auto"
        ε, a time of the Hamiltonian flow in coordinates in which the metric is the identity: where that is the target's
        precision, steps of about 1 are the largest good ones. "auto": adapted in the warm-up from a start of
        d^(-1/4) / √(tr(M⁻¹H) / d), with the Hessian H where the run starts, or of 1 around a Gaussian. A number is not
        adapted.
    duration : float, default 1.0
        T, the mean duration of a path, in the same unit; durations are uniform between 0 and 2T. Every state is held
        for the time T.
    metric : None, float, array_like of shape (d,) or (d, d), Metric, "auto", "diagonal" or "dense", default None
        The mass matrix M, as the metric of `BPS`: momenta are N(0, M).
    target_acceptance : float, default 0.8
        The mean probability of acceptance at which the adaptation aims, in (0, 1).
    around : array_like, shape (d,), optional
        m: steps are around the Gaussian N(m, M⁻¹), which they follow without an error. For a target that is near it,
        with a metric that is given; a step is at most π/2.

    Raises
    ------
    TypeError
        For a gradient that is not exact.
    ValueError
        For a step or a duration that is not positive, a metric that is not one of these, a target acceptance outside
        (0, 1), or `around` with a step above π/2 or a metric that adapts.

    See Also
    --------
    pdmp.auto : Learns its step and metric before the run.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.HMC(model, metric=[1.0, 4.0], step=0.9), steps=400, seed=1)
    >>> run.mean().shape
    (2,)
    """

    target: ByAddress
    metric: object
    step: float
    duration: float
    adapts: bool  #: whether the step is adapted in the warm-up
    target_acceptance: float
    centre: np.ndarray  #: m of `around`; (0,) without
    extra: int  #: evaluations of the potential alone, for each path
    terms: int  #: of an evaluation

    events = ("path",)
    ticks = 1
    recipe = HMCRecipe(featured=False)
    report = HMCReport()
    #: The same target in coordinates in which its scales are alike, where paths run, or None; states are in its own.
    coordinates = None
    #: What a coordinate is called with which the scales of others change, where that is known.
    neck = None

    def __init__(
        self,
        target: Model | Full,
        step: float | str = "auto",
        duration: float = 1.0,
        *,
        metric: ArrayLike | Metric | str | None = None,
        target_acceptance: float = 0.8,
        around: ArrayLike | None = None,
    ) -> None:
        provider = as_provider(target)
        if not provider.exact:
            raise TypeError(
                "`target` of pdmp.HMC must be a model or pdmp.gradients.Full(model), because it needs the exact "
                f"gradient; got a {type(provider).__name__}. pdmp.SBPS takes mini-batches."
            )
        self.provider, self.model, self.anchor = provider, provider.model, provider.anchor
        self.step = "auto" if isinstance(step, str) and step == "auto" else positive("step", step)
        self.adapts = self.step == "auto"
        self.duration = positive("duration", duration)
        self.metric = check_metric(metric, self.model.dim, f"pdmp.{type(self).__name__}", WORDS)
        self.target_acceptance = positive("target_acceptance", target_acceptance)
        if self.target_acceptance >= 1.0:
            raise ValueError(f"`target_acceptance` must lie in (0, 1), got {target_acceptance!r}.")
        self.centre = np.zeros(0) if around is None else self.model.check(around, "around")
        if not np.all(np.isfinite(self.centre)):
            raise ValueError(f"`around` must be finite, got {self.centre}.")
        if around is not None and not self.adapts and self.step > LONGEST_STEP:
            raise ValueError(f"`step` around a Gaussian must be at most π/2, a quarter of its period, got {step!r}.")
        if around is not None and adapting(self.metric) is not None:
            raise ValueError(f"`around` needs a metric that stays, as it is the Gaussian's precision, got {metric!r}.")
        self.terms = max(self.model.n_data, 1)
        self.extra = 0 if self.model.has("potential_and_gradient") else 1
        super().__init__(self.model.dim, flow=Still())

    @property
    def target(self) -> Model:
        """The model that gives the gradient, in the coordinates in which paths run."""
        return self.provider.packed if self.coordinates is None else self.coordinates  # type: ignore[attr-defined]

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        return now + self.duration, CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        memory, x, y = state.memory, state.x, state.memory.proposal
        d, terms, adapting = x.shape[0], self.terms, state.counts[ADAPTING] == 1
        if not memory.known[0]:
            self.target.standardise(x, y)
            memory.potential[0] = self.evaluate(y, memory.gradient)
            state.counts[DATA] += (1 + self.extra) * terms
            if not (math.isfinite(memory.potential[0]) and finite(memory.gradient)):
                return -1
            memory.known[0] = True
        if adapting and self.metric.learns:
            adaptations = self.metric.learn_from(memory.metric, x, state.v, now)
            if adaptations > memory.adapted[1]:
                memory.adapted[0], memory.adapted[1] = 0.0, adaptations
        u = memory.metric.u
        self.depart(state)
        for j in range(d):
            u[j] = rng.standard_normal()
            memory.begun[j] = u[j]
        step, before = math.exp(memory.log_step[0]), memory.potential[0] + 0.5 * dot(u, u)
        n = 1 + int(min(2.0 * self.duration * rng.random() / step, MOST_STEPS - 1.0))
        self.metric.pull(memory.metric, memory.gradient)
        there = self.path(state, step, n)
        if math.isnan(there):
            return -1
        accept, memory.held[0] = math.exp(min(before - there, 0.0)), memory.held[0] + 1.0
        lost = 0.0
        if rng.random() < accept:
            self.move(memory, x, y, memory.next_gradient, there - 0.5 * dot(u, u))
        elif accept < LOST:
            again = 0 if memory.ended[0] == OUTSIDE else self.retry(state, step, n, before, accept, rng)
            if again < 0:
                return -1
            lost = 0.0 if memory.ended[0] == OUTSIDE else 1.0 - again
        if memory.ended[0] == OUTSIDE:
            memory.outside[0] += 1
        elif memory.ended[0] == DIVERGED and not adapting:
            memory.divergences[0] += 1
        if not adapting:
            memory.held[1] = max(memory.held[0], memory.held[1])
            memory.counted[0] += 1.0
            memory.acceptance_sum[0] += accept
            memory.lost[0] += lost
        elif self.adapts:
            memory.adapted[0] += 1.0
            memory.log_step[0] += math.pow(memory.adapted[0], GAIN_EXPONENT) * (accept - self.target_acceptance)
            if self.centre.shape[0] > 0:
                memory.log_step[0] = min(memory.log_step[0], math.log(LONGEST_STEP))
        return 0

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def depart(self, state):
        """The start of a path at the present state; overwrites u."""
        self.target.standardise(state.x, state.memory.proposal)
        if self.centre.shape[0] > 0:
            self.standardise(state)

    @compiled(inline=False)
    def path(self, state, step, n):
        """E at the end of n steps from (y, u), where the gradient is pulled; infinite without an end, NaN at an error.

        `ended` says why it has none: it diverged, or led to where the density is zero.
        """
        memory, y = state.memory, state.memory.proposal
        u, d, split = memory.metric.u, y.shape[0], self.centre.shape[0] > 0
        memory.ended[0], there = 0, math.inf
        for k in range(n):
            self.kick(u, memory.metric.pulled, memory.place, step)
            if split:
                self.rotate(memory, step)
            else:
                self.metric.push(memory.metric, memory.velocity)
                for j in range(d):
                    y[j] += step * memory.velocity[j]
            if k == n - 1:
                there = self.evaluate(y, memory.next_gradient)
                state.counts[DATA] += self.extra * self.terms
            else:
                self.gradient(y, memory.next_gradient)
            state.counts[DATA] += self.terms
            if k == n - 1 and there == math.inf:  # where the density is zero the gradient need not exist
                memory.ended[0] = OUTSIDE
                return math.inf
            if not finite(memory.next_gradient):
                state.counts[DATA] += self.terms
                if self.target.total_potential(y) != math.inf:
                    return math.nan
                memory.ended[0] = OUTSIDE
                return math.inf
            self.metric.pull(memory.metric, memory.next_gradient)
            self.kick(u, memory.metric.pulled, memory.place, step)
            if not 0.5 * dot(u, u) < LARGEST_ENERGY + d:
                memory.ended[0] = DIVERGED
                return math.inf
        return there + 0.5 * dot(u, u)

    @compiled
    def retry(self, state, step, n, before, accept, rng):
        """A second path, of shorter steps, after one of n that is lost: 1 if it is accepted, else 0; -1 at an error.

        `before`: E at the start of both. `accept`: the acceptance of the first.
        """
        memory, x, y, u = state.memory, state.x, state.memory.proposal, state.memory.metric.u
        self.depart(state)
        for j in range(x.shape[0]):
            u[j] = memory.begun[j]
        self.metric.pull(memory.metric, memory.gradient)
        there = self.path(state, step / FINER, n * FINER)
        if math.isnan(there):
            return -1
        # Above e¹ it is accepted in any case, as 1 - LOST is above 1 / e.
        ratio, limit = math.exp(min(before - there, 1.0)), rng.random() * (1.0 - accept)
        if limit >= ratio:
            return 0
        potential = there - 0.5 * dot(u, u)
        for j in range(x.shape[0]):
            memory.second[0, j], memory.second[1, j], u[j] = y[j], memory.next_gradient[j], -u[j]
        # From its end the first path would have to be lost as well, and rejected.
        back = self.path(state, step, n)
        if math.isnan(back):
            return -1
        outside, memory.ended[0] = memory.ended[0] == OUTSIDE, 0
        back_accept = math.exp(min(there - back, 0.0))
        if outside or back_accept >= LOST or limit >= ratio * (1.0 - back_accept):
            return 0
        self.move(memory, x, memory.second[0], memory.second[1], potential)
        return 1

    @compiled
    def move(self, memory, x, y, gradient, potential):
        """The end of a path becomes the state."""
        self.target.natural(y, x)
        for j in range(x.shape[0]):
            memory.gradient[j] = gradient[j]
        memory.potential[0], memory.held[0] = potential, 0.0

    @compiled
    def kick(self, u, pulled, place, step):
        """u ← u - ½ε Lᵀ∇U, less z around a Gaussian."""
        for j in range(u.shape[0]):
            u[j] -= 0.5 * step * pulled[j]
        for j in range(place.shape[0]):
            u[j] += 0.5 * step * place[j]

    @compiled
    def standardise(self, state):
        """z = L⁻¹(y - m)."""
        memory, v = state.memory, state.v
        for j in range(v.shape[0]):
            v[j] = memory.proposal[j] - self.centre[j]
        self.metric.velocity_changed(state)  # solves L u = v
        for j in range(v.shape[0]):
            memory.place[j], v[j] = memory.metric.u[j], 0.0

    @compiled
    def rotate(self, memory, step):
        """(z, u) along the flow of the Gaussian for the time ε; y = m + L z."""
        u, z, y, c, s = memory.metric.u, memory.place, memory.proposal, math.cos(step), math.sin(step)
        for j in range(u.shape[0]):
            memory.kept[j] = c * u[j] - s * z[j]
            z[j] = c * z[j] + s * u[j]
            u[j] = z[j]
        self.metric.push(memory.metric, memory.velocity)
        for j in range(u.shape[0]):
            y[j], u[j] = self.centre[j] + memory.velocity[j], memory.kept[j]

    @compiled(inline=False)
    def gradient(self, x, out):
        """Write ∇U(x) into `out`."""
        clear(out)
        self.target.add_gradient(x, out)

    @compiled(inline=False)
    def evaluate(self, x, out):
        """U(x); ∇U(x) into `out`."""
        clear(out)
        return self.target.potential_and_gradient(x, out)

    # -- Python -----------------------------------------------------------------------------------------------------

    @classmethod
    def in_metric(cls, target: Model | Full, learnt: Any, /, **options: Any) -> Self:
        """With its metric, and the step to which the warm-up has adapted, if it is for that metric and acceptance."""
        own = {"duration": learnt.duration, "target_acceptance": learnt.acceptance}
        if "metric" not in options:
            own |= {"metric": learnt.mass, "around": learnt.around}
        if learnt.step is not None and not {"metric", "target_acceptance"} & set(options):
            own["step"] = learnt.step
        process = cls(target, **own | options)
        process.coordinates = learnt.coordinates if "metric" not in options else None
        return process

    def resolve(self, x: np.ndarray) -> Self:
        process = super().resolve(x)
        if not isinstance(process.metric, Compiled):
            identity = Diagonal(np.ones(self.dim))
            process.metric = identity if process.metric is None else make_metric(process.metric, self.model, x)
        if process.step == "auto" and len(self.centre):
            process.step = FIRST_STEP
        elif process.step == "auto":
            moved = self.coordinates
            curvature = process.metric.trace(
                *((self.model, x) if moved is None else (moved, moved.standardised(x[None])[0]))
            )
            process.step = self.dim**-0.25 / math.sqrt(curvature if 0.0 < curvature < math.inf else 1.0)
        return process

    def adapted(self, statistics: Sequence[dict]) -> Self:
        """With the step, the geometric mean over the chains, to which a run has adapted, and which stays."""
        if not self.adapts:
            return self
        process = copy.copy(self)
        process.step = math.exp(float(np.mean([math.log(entry["mean_step"]) for entry in statistics])))
        process.adapts = False
        return process

    def waits_for_warmup(self) -> str | None:
        if adapting(self.metric):
            return f'metric="{adapting(self.metric)}"'
        return 'step="auto"' if self.adapts else None

    def tick_length(self) -> float:
        return self.duration

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.zeros(self.dim)

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float | None] | None:
        if not state.memory.known[0]:
            return state.x, None
        at = state.memory.proposal
        return (at if self.coordinates is None else self.coordinates.natural_points(at[None])[0]), None

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        return zeros(
            HMCMemory,
            d,
            place=np.zeros(len(self.centre)),
            kept=np.zeros(len(self.centre)),
            log_step=np.full(1, math.log(self.step)),
            adapted=np.zeros(2),
            held=np.zeros(2),
            second=np.zeros((2, d)),
            metric=self.metric.memory(x),
            provider=self.provider.memory(rng),
        )
