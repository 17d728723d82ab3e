r"""What the samplers with a thermostat share: a friction ξ that adapts to the noise of the gradient.

dθ = p dt, dp = -∇U dt - ξ p dt + √(2A) dB, dξ = (|p|²/d - 1) dt

Gradient noise of standard deviation τ has, in steps of ε, the effect of a diffusion A + ετ²/2 in place of A. This need
not be known: ξ settles around it, and for small ε the density exp(-U(θ) - |p|²/2 - d (ξ - A - ετ²/2)²/2) is stationary.
The thermostat of one coordinate has the standard deviation 1, that of d coordinates 1/√d.

Without any noise, A = 0 and τ = 0, the thermostat of one coordinate is not ergodic on a Gaussian target. Diffusions of
√λ or above, λ the curvature, mix well.

All this is for noise that is independent from step to step. That of ``draw="reshuffle"`` or ``"epoch"`` cancels over an
epoch, and hardly heats: for a regression on six points, in blocks of two and steps of 0.2 standard deviations, with
A = √λ, the thermostat is at 1.18, 1.03 and 1.03 A with `SGNHT`, `MSGNHT` and `BADODAB`, where independent blocks bring
it to 1.25, 1.10 and 1.10 A, and the variances are 0.85, 0.963 and 0.968 of the target's, in place of 0.88, 0.998 and
1.002. These are laws in one dimension, by quadrature; no formula is known for more, nor for targets that are not
Gaussian.

Some papers have the displacement v = εp instead, with the step h = ε², the diffusion a = εA and the thermostat α = εξ;
the constructors ``from_h`` take these. A chain with α < -1, whose momentum is more than doubled by its friction in one
step, has diverged, and stops.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from discrete.kinetic import Kinetic, choose_dynamics, step_from_h
from discrete.schedules import Constant
from discrete.tick import finite
from pdmp.gradients import Provider
from pdmp.interfaces.report import Report
from pdmp.models import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, inlined
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import ADAPTING


class ThermostatMemory(NamedTuple):
    """What a chain keeps beside position and momentum; the first three as in `discrete.tick.TickMemory`."""

    taken: Count
    gradient: Vector
    normals: np.ndarray
    thermostat: np.ndarray  #: (thermostats,) ξ
    block_squares: np.ndarray  #: (thermostats,) the sum of p² over the coordinates of each
    counted_steps: Number  #: steps after the warm-up
    temperature_sum: Number  #: the sum of their |p|² / d
    thermostat_sum: Number  #: the sum of the thermostats' means at their ends
    provider: tuple


@inlined
def mean(values):
    """The mean of some numbers."""
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j]
    return total / values.shape[0]


class ThermostatReport(Report):
    """The kinetic temperature and the thermostat."""

    def statistics(self, process, state):
        """Means over the steps after the warm-up: of |p|²/d, and of the thermostat (of all, if there are several)."""
        memory = state.memory
        steps = memory.counted_steps[0]
        if steps == 0.0:
            return {"mean_kinetic_temperature": math.nan, "mean_thermostat": math.nan}
        return {
            "mean_kinetic_temperature": float(memory.temperature_sum[0] / steps),
            "mean_thermostat": float(memory.thermostat_sum[0] / steps),
        }


class Displaced:
    """Mixin of the thermostats that papers write by displacements v = εp."""

    @classmethod
    def from_h(cls: Any, provider: Provider | Model, h: float, a: float = 0.01, **options: Any) -> Any:
        """From the convention v += -h ∇Û - αv + √(2ah) z, θ += v, α += |v|²/d - h (Coullon et al., 2023, eq. 7).

        In it v = εp, h = ε², a = εA and α = εξ. Of `MSGNHT` it is Euler's scheme, with v∘v in place of |v|²/d.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float
            ε².
        a : float, default 0.01
            The diffusion in a step.
        **options
            Further arguments of the sampler.

        Returns
        -------
        SGNHT or MSGNHT
        """
        eps = step_from_h(h)
        return cls(provider, step=eps, diffusion=positive("a", a) / eps, **options)


class Thermostatted(Kinetic):
    """Base of the samplers with thermostats: ``move`` ends with ``return self.finish_step(…)``."""

    diffusion: float  #: A
    #: Number of thermostats.
    thermostats = 1
    report = ThermostatReport()

    def __init__(self, provider, step, diffusion, metric=None):
        super().__init__(provider, step, metric)
        self.diffusion = self.checked_or_default("diffusion", diffusion)

    def linear_step(
        self, step: float, friction: float, curvature: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The step with all thermostats fixed at `friction`; see `discrete.kinetic.Underdamped.linear_step`."""
        raise NotImplementedError

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        """With all thermostats fixed: that they reduce the effect of gradient noise is not taken into account."""
        step, diffusion, worst = choose_dynamics(
            self.linear_step, hessian, noise, error, exact=self.provider.exact, friction=self.diffusion
        )
        return {"schedule": Constant(step), "diffusion": diffusion}, worst

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.model.dim
        return zeros(
            ThermostatMemory,
            d,
            normals=np.zeros(self.normals * d),
            thermostat=np.full(self.thermostats, self.diffusion),
            block_squares=np.zeros(self.thermostats),
            provider=self.provider.memory(rng),
        )

    @compiled
    def finish_step(self, memory, eps, temperature, counts):
        """Add to the averages at the end of a step; returns False if a thermostat, and so the chain, has diverged."""
        thermostat = memory.thermostat
        if not finite(thermostat):
            return False
        for b in range(thermostat.shape[0]):
            if eps * thermostat[b] < -1.0:
                return False
        if counts[ADAPTING] == 0:
            memory.counted_steps[0] += 1.0
            memory.temperature_sum[0] += temperature
            memory.thermostat_sum[0] += mean(thermostat)
        return True

    def stability_limit(self, curvature: float) -> float | None:
        """A necessary condition, that of the leapfrog; with friction Euler's schemes need a slightly smaller step."""
        return 2.0 / math.sqrt(curvature) if curvature > 0.0 else None
