r"""What the fixed-step processes share: they stand still, and their one clock ticks.

=====  =========================================================
flow   none: the state is held until the next tick
clock  ticks; step k lasts as long as its step size says
rate   none: every tick is an event
jump   one update with a stochastic gradient (the sampler's file)
=====  =========================================================

The time average of this path is Σ γₖ₊₁ f(θₖ) / Σ γₖ₊₁, the step-weighted average of Welling & Teh (2011) and Teh,
Thiery & Vollmer (2016): a state's weight is the step with which it is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discrete.schedules import Constant, as_schedule
from pdmp.compiled import compiled
from pdmp.flow import Still
from pdmp.gradients import as_provider
from pdmp.process import CERTAIN, Process


class TickMemory(NamedTuple):
    """Beside the state of a fixed-step process."""

    taken: np.ndarray  #: (1,) steps taken
    gradient: np.ndarray  #: (d,) the last estimate of ∇U
    provider: tuple


class Ticking(Process):
    """Base of the fixed-step processes; a sampler defines ``jump`` and, if it is not the step size, ``holding``."""

    provider: object
    schedule: object
    constant: int

    events = ("step",)
    ticks = 1
    exact_bounds = True
    _required = ()

    def __init__(self, provider, step, name="step", copies=1, **kwargs):
        self.provider = as_provider(provider)
        self.model, self.anchor = self.provider.model, self.provider.anchor
        self.schedule = as_schedule(step, name)
        self.constant = int(isinstance(self.schedule, Constant))
        super().__init__(copies * self.model.dim, flow=Still(), **kwargs)

    @compiled
    def holding(self, k):
        """For how long the state before step k is held."""
        return self.schedule.step(k)

    @compiled
    def clock(self, state, i, now, rng):
        k = state.memory.taken[0]
        if self.constant == 1:
            return (k + 1) * self.holding(k), CERTAIN  # from the counter: no rounding adds up
        return now + self.holding(k), CERTAIN

    def velocity(self, x, rng):
        return np.zeros(self.dim)

    def memory(self, x, rng):
        return TickMemory(np.zeros(1, np.int64), np.zeros(self.model.dim), self.provider.memory(rng))
