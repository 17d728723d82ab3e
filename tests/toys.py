"""Small processes for tests of the framework, without any target."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp import CERTAIN, Process, compiled
from pdmp.flow import Elliptic, Still
from pdmp.process import DATA
from pdmp.thinning.affine import first_arrival

NO_TROUBLE, RATE_NAN, JUMP_NAN, CLOCK_PAST, ABOVE_BOUND, CLOCK_NEVER, CLOCK_NAN = range(7)


class Telegraph(Process):
    """Two coordinates whose velocities change sign: the first at rate 1, the second at rate 0.6, thinned from 1."""

    trouble: int
    after: float

    events = ("first", "second")

    def __init__(self, trouble=NO_TROUBLE, after=5.0):
        super().__init__(2, 2, [[0], [1]])
        self.trouble, self.after = trouble, after

    @compiled
    def clock(self, state, i, now, rng):
        wait = rng.standard_exponential()
        if now > self.after:
            if self.trouble == CLOCK_PAST:
                return now - 1.0, CERTAIN
            if self.trouble == CLOCK_NEVER:
                return math.inf, CERTAIN
            if self.trouble == CLOCK_NAN:
                return math.nan, CERTAIN
        return now + wait, CERTAIN if i == 0 else 1.0

    @compiled
    def rate(self, state, i, now, rng):
        if now > self.after:
            if self.trouble == RATE_NAN:
                return math.nan
            if self.trouble == ABOVE_BOUND:
                return 1.5
        return 0.6

    @compiled
    def jump(self, state, i, now, rng):
        if now > self.after and self.trouble == JUMP_NAN:
            return -1
        state.v[i] = -state.v[i]
        return i


class Walls(Process):
    """d independent standard normal coordinates, a local process: each flips by its own clock, inverted exactly."""

    _required = ()

    def __init__(self, dim=3):
        super().__init__(dim, dim, [[i] for i in range(dim)], local=True)

    @compiled
    def clock(self, state, i, now, rng):
        x = state.x[i] + state.v[i] * (now - state.moved[i])
        return now + first_arrival(state.v[i] * x, 1.0, rng.standard_exponential()), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        return 0


class Data:
    """As much of a model as a run asks for: 100 data, three coordinates with names."""

    dim, n_data, variables = 3, 100, {"beta": (2,), "sigma": ()}
    failure = None
    initial = np.ones(3)

    def mode(self):
        return None

    def potential(self, x):
        return math.inf if x[0] < -100.0 else 0.5 * float(x @ x)


class TickMemory(NamedTuple):
    taken: np.ndarray


class Ticks(Process):
    """x ← 0.9 x + noise at every tick; each looks at 10 of 100 data."""

    size: float

    events, ticks = ("step",), 1

    def __init__(self, size=0.25):
        super().__init__(3, flow=Still())
        self.size, self.model = size, Data()

    def tick_length(self):
        return self.size

    @compiled
    def clock(self, state, i, now, rng):
        return (state.memory.taken[0] + 1) * self.size, CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        for j in range(3):
            state.x[j] = 0.9 * state.x[j] + 0.4 * rng.standard_normal()
        state.counts[DATA] += 10
        state.memory.taken[0] += 1
        return 0

    def velocity(self, x, rng):
        return np.zeros(3)

    def memory(self, x, rng):
        return TickMemory(np.zeros(1, np.int64))


class Coupled(Ticks):
    """Two coupled copies of three coordinates, weights 2 and -1: the second ticks half as often."""

    events, ticks, copies = ("fine", "coarse"), 3, (2.0, -1.0)

    def __init__(self, size=0.5):
        Process.__init__(self, 6, 2, [[0], [1]], flow=Still())
        self.size, self.model = size, Data()

    @compiled
    def clock(self, state, i, now, rng):
        taken = state.memory.taken[i] + 1
        return (taken * self.size if i == 1 else 0.5 * taken * self.size), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        for j in range(3 * i, 3 * i + 3):
            state.x[j] = (0.9 - 0.1 * i) * state.x[j] + 0.4 * rng.standard_normal()
        state.memory.taken[i] += 1
        return i

    def velocity(self, x, rng):
        return np.zeros(6)

    def memory(self, x, rng):
        return TickMemory(np.zeros(2, np.int64))


class Ellipses(Process):
    """Three standard normal coordinates around (1, -2, 0), all velocities redrawn at rate 1."""

    def __init__(self):
        super().__init__(3, flow=Elliptic([1.0, -2.0, 0.0]))

    @compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        for j in range(3):
            state.v[j] = rng.standard_normal()
        return 0


class FrozenEllipses(Process):
    """The same, local: each velocity is redrawn by its own clock, or the coordinate put to 0 and stopped."""

    events = ("redrawn", "stopped")

    def __init__(self):
        super().__init__(3, 3, [[0], [1], [2]], flow=Elliptic([1.0, -2.0, 0.0]), local=True)

    @compiled
    def clock(self, state, i, now, rng):
        return now + 0.5 * rng.standard_exponential(), CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        if state.v[i] != 0.0 and rng.random() < 0.3:
            state.x[i], state.v[i] = 0.0, 0.0
            return 1
        state.v[i] = rng.standard_normal()
        return 0
