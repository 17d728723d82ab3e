r"""What the samplers with a thermostat share: a friction ξ that finds by itself how much noise there is to dissipate.

dθ = p dt, dp = -∇U dt - ξ p dt + √(2A) dB, dξ = (|p|²/d - 1) dt

If gradient noise has the standard deviation τ, steps of ε act as ones with diffusion A + ετ²/2, which need not be
known: ξ settles around it, and exp(-U(θ) - |p|²/2 - d (ξ - A - ετ²/2)²/2) is stationary for small ε. The thermostat of
a single coordinate thus has standard deviation 1, that of d coordinates 1/√d.

A thermostat of one coordinate is not ergodic on a Gaussian target unless there is noise, A > 0 or τ > 0: diffusions
of order 1 or above in units of √λ, λ the curvature, mix well.

The papers' other parametrisation has the displacement v = εp, the step h = ε², the diffusion a = εA and the thermostat
α = εξ; the constructors ``from_h`` take it. A chain with α < -1, a momentum more than doubled by its friction in one
step, has diverged and stops.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.kinetic import Kinetic, choose_dynamics
from discrete.schedules import Constant
from discrete.tick import finite
from pdmp.interfaces.report import Report
from pdmp.native.classes import compiled, inlined
from pdmp.process import ADAPTING


class ThermostatMemory(NamedTuple):
    """Beside position and momentum."""

    taken: np.ndarray
    gradient: np.ndarray
    normals: np.ndarray
    thermostat: np.ndarray  #: (thermostats,) ξ
    squares: np.ndarray  #: (thermostats,) room for the sums of p² that they see
    sums: np.ndarray  #: (3,) the steps since the warm-up, and their sums of |p|²/d and of the thermostats' mean
    provider: tuple


@inlined
def mean(values):
    """Their mean."""
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j]
    return total / values.shape[0]


class ThermostatReport(Report):
    """The kinetic temperature and the thermostat."""

    def statistics(self, process, state):
        """Means over the steps after the warm-up: of |p|²/d, and of the thermostat (of all, if there are several)."""
        steps, temperature, thermostat = state.memory.sums
        if steps == 0.0:
            return {"mean_kinetic_temperature": math.nan, "mean_thermostat": math.nan}
        return {"mean_kinetic_temperature": float(temperature / steps), "mean_thermostat": float(thermostat / steps)}


class Thermostatted(Kinetic):
    """Base of the samplers with thermostats; ``move`` ends with ``return self.settled(…)``."""

    diffusion: float
    #: Number of thermostats.
    thermostats = 1
    report = ThermostatReport()

    def __init__(self, provider, step, diffusion):
        super().__init__(provider, step)
        self.diffusion = self.dynamics("diffusion", diffusion)

    def linear(self, step, friction, curvature):
        """The step with thermostats at rest at `friction`, as `kinetic_covariance` wants it."""
        raise NotImplementedError

    def choose(self, hessian, noise, error):
        """With the thermostats at rest: what they take off the effect of gradient noise is not counted on."""
        step, diffusion, worst = choose_dynamics(
            self.linear, hessian, noise, error, exact=self.provider.exact, friction=self.diffusion
        )
        return {"schedule": Constant(step), "diffusion": diffusion}, worst

    def memory(self, x, rng):
        d = self.model.dim
        return ThermostatMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(d),
            normals=np.zeros(self.normals * d),
            thermostat=np.full(self.thermostats, self.diffusion),
            squares=np.zeros(self.thermostats),
            sums=np.zeros(3),
            provider=self.provider.memory(rng),
        )

    @compiled
    def settled(self, memory, eps, temperature, counts):
        """Keep the averages of a step; whether its thermostats, and with them its momentum, are where they can be."""
        thermostat = memory.thermostat
        if not finite(thermostat):
            return False
        for b in range(thermostat.shape[0]):
            if eps * thermostat[b] < -1.0:
                return False
        if counts[ADAPTING] == 0:
            memory.sums[0] += 1.0
            memory.sums[1] += temperature
            memory.sums[2] += mean(thermostat)
        return True

    def limit(self, curvature):
        """A necessary condition, that of the leapfrog; with friction Euler's schemes need a little less."""
        return 2.0 / math.sqrt(curvature) if curvature > 0.0 else None
