r"""What SG-ZZ and SG-BPS share: between two looks at the gradient the rates of their events are constant.

=====  ====================================================================================================
flow   straight lines, x + v s
clock  looks at one mini-batch, and proposes the first event at the rates that this estimate ∇Û gives, held
       constant; or, if that is earlier, the end of the interval of length ε
rate   none: both are certain
jump   the event, or at the end of an interval nothing: the clock looks again, with a new batch
=====  ====================================================================================================

Time is cut into intervals of length ε, or εₖ. An event within one is followed by a new look, and the rest of the
interval is simulated with that, so any number of events fits into an interval. One look is one recorded jump:
``steps=`` counts looks, that is estimates of the gradient, of which a time T has T/ε and one more for each event in it.
Averages are those along the path, as of every continuous process here.

The velocity is bounded, so that no step is too large to be stable. The error at a step ε has two parts, both of first
order. A rate is that of the point where the path was looked at, on average ε/2 earlier, so that turns come late: for
the Zig-Zag process on N(0, 1) the variance is 1 + ε/√(2π) + O(ε²). And a batch that is kept for ε lowers its mean rate
E λ̂ by about (ε/2) Var λ̂: for noise of sd τ well above the gradient, variances are those of the target times 1 +
ετ/√(2π). So ε must be small beside 1/τ. Otherwise noise does no harm: as ε → 0 the limit is the process with
sub-sampled rates, whose law is the target's for any noise of mean zero.

References
----------
Fearnhead, Grazzi, Nemeth & Roberts (2024), Stochastic gradient piecewise deterministic Monte Carlo samplers,
arXiv:2406.19051: the form with several events in an interval (their appendix, and their published code), with batches
of any size. Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process, Ann. Statist. 47, section 4 (the limit).
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np

from discrete.schedules import Automatic, Constant, as_schedule
from discrete.tick import finite
from pdmp.flow import Linear
from pdmp.gradients import as_provider
from pdmp.interfaces.recipe import Recipe
from pdmp.native.classes import compiled
from pdmp.process import CERTAIN, Process

STEP = 0  #: the kind of event that ends an interval; those of the process follow


class FrozenMemory(NamedTuple):
    """Beside the path."""

    taken: np.ndarray  #: (1,) intervals completed
    interval_start: np.ndarray  #: (1,) when the present one began
    gradient: np.ndarray  #: (d,) the estimate of ∇U where the path was last looked at
    kind: np.ndarray  #: (1,) the kind of the event that comes next
    coordinate: np.ndarray  #: (1,) and its coordinate, if it has one
    provider: tuple


class FrozenRecipe(Recipe):
    """Not for comparisons: no formula predicts the error at a step."""

    def processes(self, sampler, model, batch, mode, error):
        return {}

    def setting(self, process):
        return f"step {process.schedule.step(0):.3g}"


class FrozenRates(Process):
    """Base of the samplers with frozen rates. A sampler defines

    - ``wait(v, memory, rng)``: time to the first event at the rates that ``memory.gradient`` gives; its kind, from 1
      on, and its coordinate go into ``memory.kind`` and ``memory.coordinate``;
    - ``event(x, v, memory, rng, counts)``: what it does to the velocity; False where a gradient is not finite.
    """

    provider: object
    schedule: object
    regular: bool  #: whether all intervals are equally long

    recipe = FrozenRecipe()
    ticks = 1
    _required = ()

    def __init__(self, provider, step):
        self.provider = as_provider(provider)
        self.model, self.anchor = self.provider.model, self.provider.anchor
        self.schedule = as_schedule(step)
        if isinstance(self.schedule, Automatic):
            raise ValueError(f"`step`: {type(self).__name__} has no rule to choose it by; give a number or a schedule.")
        self.regular = isinstance(self.schedule, Constant)
        super().__init__(self.model.dim, flow=Linear())

    @compiled
    def clock(self, state, i, now, rng):
        memory = state.memory
        self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)
        if not finite(memory.gradient):
            return math.nan, CERTAIN
        k = memory.taken[0]
        length = self.schedule.step(k)
        end = (k + 1) * length if self.regular else memory.interval_start[0] + length  # no rounding adds up
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

    def memory(self, x, rng):
        return FrozenMemory(
            taken=np.zeros(1, np.int64),
            interval_start=np.zeros(1),
            gradient=np.zeros(self.dim),
            kind=np.zeros(1, np.int64),
            coordinate=np.zeros(1, np.int64),
            provider=self.provider.memory(rng),
        )

    def resolve(self, x):
        return copy.copy(self)
