r"""What SG-ZZ and SG-BPS share: rates that are constant between two evaluations of the gradient.

=====  ====================================================================================================
flow   straight lines, x + v s
clock  evaluates an estimate ∇Û with a new mini-batch, and proposes the first event at the rates that it gives,
       held constant; or the end of the interval of length ε, if that is earlier
rate   none: both are certain
jump   the event; nothing at the end of an interval. The clock then evaluates the gradient anew
=====  ====================================================================================================

Time is divided into intervals of length ε, or εₖ. After an event within an interval the gradient is evaluated anew, and
the remaining part of the interval is simulated with this estimate, so that an interval can have any number of events.
``steps=`` counts the evaluations of the gradient, each of which is followed by one recorded jump: a time T has T/ε of
them, and one more for each event. Averages are taken along the path, as for every process in continuous time.

The velocity is bounded, so that every step is stable. The error at a step ε has two parts, both of first order. First,
a rate is that at the point where the gradient was evaluated, on average ε/2 earlier, so that events come late: for the
Zig-Zag process on N(0, 1) the variance is 1 + ε/√(2π) + O(ε²). Second, a batch that is kept for ε lowers the mean rate
E λ̂ by about (ε/2) Var λ̂: for noise of sd τ well above the gradient, variances are 1 + ετ/√(2π) times those of the
target. So ε must be small beside 1/τ. Noise has no other effect: as ε → 0 the limit is the process with sub-sampled
rates, whose law is the target for any noise of mean zero.

That is for independent batches. With ``draw="reshuffle"`` or ``"epoch"`` each look at the gradient, at the start of an
interval or after an event, takes the next block, and the noise cancels over the looks of an epoch: for a regression on
six points in two blocks, at ε = 0.4 standard deviations, the variance is 1.17 times the target's, where independent
blocks make it 1.39, and the mean is off by 0.04 standard deviations, not 0.14. These are laws in one dimension, by
quadrature (SG-ZZ; SG-BPS differs by 0.002); what is left of the error in more dimensions, and its order in ε, is not
known.

References
----------
Fearnhead, Grazzi, Nemeth & Roberts (2024), Stochastic gradient piecewise deterministic Monte Carlo samplers,
arXiv:2406.19051: the form with several events in an interval (their appendix, and their published code), with batches
of any size. Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process, Ann. Statist. 47, section 4 (the limit).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.schedules import Automatic, Constant, Schedule, as_schedule
from discrete.tick import StepRecipe, finite, name_smaller
from pdmp.flow import Linear
from pdmp.gradients import Provider, as_provider
from pdmp.models import Model
from pdmp.native.classes import compiled
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN, Process

STEP = 0  #: the kind of event that ends an interval; those of the process follow


class FrozenMemory(NamedTuple):
    """What a chain keeps beside its path."""

    taken: Count  #: intervals completed
    interval_start: Number  #: when the present one began
    gradient: Vector  #: the last estimate of ∇U
    kind: Count  #: the kind of the event that comes next
    coordinate: Count  #: and its coordinate, if it has one
    provider: tuple


class FrozenRates(Process):
    """Base of the samplers with frozen rates.

    A sampler defines two compiled methods:

    - ``wait(v, memory, rng)``: returns the time to the first event at the rates that ``memory.gradient`` gives, and
      writes its kind, from 1 on, and its coordinate to ``memory.kind`` and ``memory.coordinate``;
    - ``event(x, v, memory, rng, counts)``: carries the event out; returns False if a gradient is not finite.
    """

    provider: Provider
    schedule: Schedule
    regular: bool  #: whether all intervals are equally long

    recipe = StepRecipe()
    ticks = 1
    _required = ()

    def __init__(self, provider: Provider | Model, step: float | Schedule) -> None:
        self.provider = as_provider(provider).by_address
        self.model, self.anchor = self.provider.model, self.provider.anchor
        self.schedule = as_schedule(step)
        if isinstance(self.schedule, Automatic):
            raise ValueError(f"`step`: {type(self).__name__} has no rule to choose it by; give a number or a schedule.")
        if self.schedule.exploring:
            raise ValueError(f"`step`: {type(self).__name__} has no steps that explore; SGLD and SGD have.")
        self.regular = isinstance(self.schedule, Constant)
        super().__init__(self.model.dim, flow=Linear())

    @classmethod
    def chooses_step(cls) -> bool:
        """Whether there is a rule for an automatic step; no formula predicts the error at one."""
        return False

    @compiled
    def clock(self, state, i, now, rng):
        memory = state.memory
        self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)
        if not finite(memory.gradient):
            return math.nan, CERTAIN
        k = memory.taken[0]
        length = self.schedule.step(k)
        # With regular steps from the number of steps, so that rounding errors do not add up.
        end = (k + 1) * length if self.regular else memory.interval_start[0] + length
        time = now + self.wait(state.v, memory, rng)
        if time < end:
            return time, CERTAIN
        memory.kind[0] = STEP
        return end, CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        kind = memory.kind[0]
        if kind == STEP:
            memory.taken[0] += 1
            memory.interval_start[0] = now
        elif not self.event(state.x, state.v, memory, rng, state.counts):
            return -1
        return kind

    def smaller_step(self, off: float) -> str | None:
        return name_smaller(self, "step", off, order=1, chooses=False)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return zeros(FrozenMemory, self.dim, provider=self.provider.memory(rng))
