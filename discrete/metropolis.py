r"""What the Metropolised samplers share: a proposal is accepted or rejected, so that the target is their law.

=====  ==================================================================================================
flow   none: the state is held until the next tick
clock  ticks; every state is held for the same time, and a rejected proposal holds the old state once more
rate   none: every tick is an event
jump   θ' proposed; θ ← θ' with probability min(1, π(θ') q(θ', θ) / (π(θ) q(θ, θ'))), else θ stays
=====  ==================================================================================================

They are references for the samplers without a correction. Their law is the target at every step, but a step evaluates
the gradient and the potential of all the data: together and at the price of one where the model has
``potential_and_gradient``, else one after the other. Both are stored for the present state, so that only the proposal
has to be evaluated.

In the warm-up the step is adapted to the rate of acceptance (Robbins & Monro, 1951): after step k = 1, 2, … its
logarithm grows by k^-0.6 (α - target), where α is the probability of acceptance in this step. After the warm-up the
step is fixed.

References
----------
Hastings (1970), Monte Carlo sampling methods using Markov chains and their applications, Biometrika 57; Andrieu & Thoms
(2008), A tutorial on adaptive MCMC, Stat. Comput. 18, section 4.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from discrete.schedules import Constant
from discrete.tick import Ticking, acceptance, exact_provider, finite
from pdmp.gradients import Full
from pdmp.gradients.provider import clear
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.metric import Diagonal, check_metric, dense
from pdmp.models import Model
from pdmp.native.classes import compiled
from pdmp.native.records import Count, Flag, Number, Vector, zeros
from pdmp.process import ADAPTING, DATA, State

GAIN_EXPONENT = -0.6  #: of k, in the adaptation


class MetropolisMemory(NamedTuple):
    """What a chain keeps beside its state."""

    taken: Count  #: steps taken
    gradient: Vector  #: ∇U at the present state
    potential: Number  #: U there
    known: Flag  #: whether gradient and potential have been evaluated
    proposal: Vector  #: θ'
    increment: Vector  #: the random numbers from which θ' was proposed
    next_gradient: Vector  #: ∇U at the proposal
    log_factor: Number  #: logarithm of the factor by which the steps of the schedule are multiplied
    counted_steps: Number  #: steps after the warm-up
    acceptance_sum: Number  #: the sum of their probabilities of acceptance
    outside: Count  #: proposals where the density is zero, in all steps
    metric: tuple
    provider: tuple


class MetropolisRecipe(Recipe):
    """Not for comparisons, which are of samplers whose error depends on the step. The step adapts, and is not tuned."""

    def processes(self, sampler, model, batch, mode, error):
        return {}

    def setting(self, process):
        return f"{process.step_name} {process.schedule.step(0):.3g}{', adapted' if process.adapt else ''}"


class MetropolisReport(Report):
    """The mean probability of acceptance, the adapted step, and proposals where the density is zero."""

    def statistics(self, process, state):
        """The mean probability of acceptance after the warm-up, the first step, as adapted, and `outside`.

        That is the number of proposals that were rejected because the potential there is +inf: outside the support.
        """
        steps, accepted = state.memory.counted_steps[0], state.memory.acceptance_sum[0]
        factor = math.exp(float(state.memory.log_factor[0]))
        return {
            "mean_acceptance": float(accepted / steps) if steps else math.nan,
            f"mean_{process.step_name}": float(process.schedule.step(0)) * factor,
            "outside": float(state.memory.outside[0]),
        }


class Metropolis(Ticking):
    """Base of the Metropolised samplers.

    A sampler defines two compiled methods, in which `size` is its step:

    - ``propose(x, memory, size, rng)`` writes ``memory.proposal``, with the gradient at x in ``memory.gradient``, and
      returns False if that is not finite;
    - ``log_ratio(memory, size)`` returns log q(θ', θ) - log q(θ, θ'), with the gradient at θ' in
      ``memory.next_gradient``.
    """

    duration: float  #: for how long every state is held
    adapt: bool  #: whether the step is adapted in the warm-up
    together: bool  #: whether the model computes potential and gradient together
    target_acceptance: float
    metric: object  #: one of `pdmp.metric`

    recipe = MetropolisRecipe()
    report = MetropolisReport()

    def __init__(self, target, step, metric, adapt, target_acceptance):
        provider = exact_provider(target, type(self).__name__, "discrete.SGLD and discrete.SGBD take")
        if not hasattr(provider, "packed"):  # what has the potential of the Metropolis test
            raise TypeError(
                f"`target` of discrete.{type(self).__name__} must be a model or pdmp.gradients.Full(model), because it "
                f"needs the potential, too; got a {type(provider).__name__}."
            )
        self.adapt, self.together = bool(adapt), provider.model.has("potential_and_gradient")
        if not isinstance(target_acceptance, (int, float, np.number)) or not 0.0 < target_acceptance < 1.0:
            raise ValueError(f"`target_acceptance` must lie in (0, 1), got {target_acceptance!r}.")
        super().__init__(provider, step, name=self.step_name)
        self.duration = self.duration_at(float(self.schedule.step(0)))
        self.regular = True  # whatever the schedule is
        self.target_acceptance = float(target_acceptance)
        metric = check_metric(metric, self.dim, f"discrete.{type(self).__name__}")
        self.metric = Diagonal(np.ones(self.dim)) if metric is None else metric

    @classmethod
    def in_metric(cls, target: Model | Full, learnt: Any, /, **options: Any) -> Self:
        """With it, and with variances alone where it has a few directions besides."""
        own = Diagonal(learnt.root) if learnt.root.ndim == 1 else learnt.mass
        return cls(target, **{"metric": own} | options)

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        """The step to start from: optimal for independent normal coordinates, all as narrow as the narrowest one."""
        size = self.starting_step(hessian)
        return {"schedule": Constant(size), "duration": self.duration_at(size)}, 0.0

    def smaller_step(self, off: float) -> None:
        return None  # its law is that of the target at every step

    def adapted(self, statistics: Sequence[dict]) -> Self:
        """With the step, the geometric mean over the chains, to which a run has adapted, and which stays."""
        if not self.adapt:
            return self
        process, steps = copy.copy(self), [entry[f"mean_{self.step_name}"] for entry in statistics]
        size = float(np.exp(np.mean(np.log(steps))))
        process.schedule, process.duration, process.adapt = Constant(size), self.duration_at(size), False
        return process

    def starting_step(self, hessian: np.ndarray) -> float:
        """A step to start adapting from, for a target with this Hessian at its mode."""
        raise NotImplementedError

    def duration_at(self, size: float) -> float:
        """For how long a state is held, for the step `size`."""
        return size

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float | None] | None:
        memory = state.memory
        here = np.all(np.isfinite(memory.gradient)) and np.isfinite(memory.potential[0])
        return (memory.proposal if here else state.x), None

    @compiled
    def holding_time(self, k):
        return self.duration

    def root(self, d: int) -> np.ndarray:
        """L, (d, d); of more dimensions than the Hessian has, by which a step is found, its largest diagonal entry."""
        root = dense(self.metric).root
        root = np.diag(root) if root.ndim == 1 else root
        return root if d == self.dim else np.eye(d) * float(np.abs(np.diag(root)).max())

    @compiled
    def move_along(self, x, memory):
        """The proposal x + L u, u in the memory of the metric."""
        self.metric.push(memory.metric, memory.proposal)
        for j in range(x.shape[0]):
            memory.proposal[j] += x[j]

    @compiled
    def pull_both(self, memory):
        """Lᵀ∇U at the state, and at the proposal."""
        before, after = memory.metric.scratch[0], memory.metric.pulled
        self.metric.pull(memory.metric, memory.gradient)
        for j in range(before.shape[0]):
            before[j] = after[j]
        self.metric.pull(memory.metric, memory.next_gradient)
        return before, after

    @compiled
    def jump(self, state, i, now, rng):
        memory, x, counts = state.memory, state.x, state.counts
        terms = max(self.provider.packed.n_data, 1)
        if not memory.known[0]:
            if self.together:
                memory.potential[0] = self.evaluate(x, memory.gradient)
            else:
                self.provider.gradient(x, memory.provider, rng, memory.gradient, counts)
                memory.potential[0] = self.provider.packed.total_potential(x)
            counts[DATA] += terms
            memory.known[0] = True
        size = self.schedule.step(memory.taken[0]) * math.exp(memory.log_factor[0])
        if not math.isfinite(memory.potential[0]) or not self.propose(x, memory, size, rng):
            return -1
        accept = 0.0
        if self.together:
            there = self.evaluate(memory.proposal, memory.next_gradient)
        else:
            there = self.provider.packed.total_potential(memory.proposal)
        counts[DATA] += terms
        if there == math.inf:  # where the density is zero the gradient need not exist
            memory.outside[0] += 1
        else:
            if not self.together:
                self.provider.gradient(memory.proposal, memory.provider, rng, memory.next_gradient, counts)
            if not (math.isfinite(there) and finite(memory.next_gradient)):
                return -1
            accept = acceptance(memory.potential[0] - there + self.log_ratio(memory, size))
        if rng.random() < accept:
            for j in range(x.shape[0]):
                x[j] = memory.proposal[j]
                memory.gradient[j] = memory.next_gradient[j]
            memory.potential[0] = there
        memory.taken[0] += 1
        if counts[ADAPTING] == 0:
            memory.counted_steps[0] += 1.0
            memory.acceptance_sum[0] += accept
        elif self.adapt:
            memory.log_factor[0] += math.pow(memory.taken[0], GAIN_EXPONENT) * (accept - self.target_acceptance)
        return 0

    @compiled(inline=False)
    def evaluate(self, x, out):
        """U(x); ∇U(x) into `out`."""
        clear(out)
        return self.provider.packed.potential_and_gradient(x, out)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        return zeros(MetropolisMemory, d, metric=self.metric.memory(x), provider=self.provider.memory(rng))
