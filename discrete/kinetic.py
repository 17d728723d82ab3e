r"""What the samplers with a momentum share: p ~ N(0, I) at the start, kept as the velocity of the state.

Their target is exp(-U(θ) - |p|²/2), and their step is the integrator's ε. The papers' other parametrisation has the
displacement v = εp, the step h = ε² and friction α = εD: the constructors ``from_h`` take it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.tick import Brownian
from pdmp.compiled import inlined


class KineticMemory(NamedTuple):
    """Beside position and momentum."""

    taken: np.ndarray
    gradient: np.ndarray
    normals: np.ndarray
    squares: np.ndarray  #: (1,) sum of |p|² / d over the steps taken, for the kinetic temperature
    provider: tuple


@inlined
def mean_square(p):
    """|p|² / d."""
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * p[j]
    return total / p.shape[0]


class Kinetic(Brownian):
    """Base of the samplers with a momentum; ``move`` gets it as `v` and adds `mean_square(v)` to ``memory.squares``."""

    def velocity(self, x, rng):
        return rng.standard_normal(self.dim)

    def memory(self, x, rng):
        d = self.model.dim
        return KineticMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(d),
            normals=np.zeros(self.normals * d),
            squares=np.zeros(1),
            provider=self.provider.memory(rng),
        )

    def statistics(self, state):
        """The mean of |p|² / d: 1 for the target's law, more where noise or the step heat it."""
        taken = int(state.memory.taken[0])
        return {"mean_kinetic_temperature": float(state.memory.squares[0]) / taken if taken else math.nan}


def check_friction(name, value):
    """A finite number > 0, or a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number, got {value!r}.")
    return float(value)


def check_every(name, value):
    """A whole number >= 1, or a `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of steps, at least 1, got {value!r}.")
    return int(value)
