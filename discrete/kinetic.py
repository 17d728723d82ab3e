r"""What the samplers with a momentum share: p ~ N(0, I) at the start, kept as the velocity of the state.

Their target is exp(-U(θ) - |p|²/2), and their step is the integrator's ε. The papers' other parametrisation has the
displacement v = εp, the step h = ε² and friction α = εD: where it is in use, a constructor ``from_h`` takes it.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from discrete.laws import kinetic_covariance, largest_step
from discrete.schedules import Automatic, Constant
from discrete.tick import Brownian, StepRecipe
from pdmp.interfaces.report import Report
from pdmp.native.classes import inlined
from pdmp.process import ADAPTING

#: Frictions that are tried, in units of the one that is critical for the smallest curvature.
FRICTIONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class KineticMemory(NamedTuple):
    """Beside position and momentum."""

    taken: np.ndarray
    gradient: np.ndarray
    normals: np.ndarray
    counted_steps: np.ndarray  #: (1,) steps after the warm-up
    temperature_sum: np.ndarray  #: (1,) the sum of their |p|² / d
    provider: tuple


@inlined
def mean_square(p):
    """|p|² / d."""
    total = 0.0
    for j in range(p.shape[0]):
        total += p[j] * p[j]
    return total / p.shape[0]


@inlined
def count_temperature(memory, p, counts):
    """Count |p|² / d at the end of a step, once the warm-up is over."""
    if counts[ADAPTING] == 0:
        memory.temperature_sum[0] += mean_square(p)
        memory.counted_steps[0] += 1.0


class KineticReport(Report):
    """The kinetic temperature."""

    def statistics(self, process, state):
        """The mean of |p|² / d after the warm-up: 1 for the target's law, more where gradient noise heats it."""
        total, steps = state.memory.temperature_sum[0], state.memory.counted_steps[0]
        return {"mean_kinetic_temperature": float(total / steps) if steps else math.nan}


class Kinetic(Brownian):
    """Base of the samplers with a momentum; ``move`` gets it as `v`, and ends with `count_temperature`."""

    recipe = StepRecipe(featured=False)
    report = KineticReport()

    def checked_or_default(self, name, value):
        """A friction or diffusion: NaN for one that is chosen with an automatic step, 1 when nothing is said."""
        if value is None:
            return math.nan if isinstance(self.schedule, Automatic) else 1.0
        return check_friction(name, value)

    def velocity(self, x, rng):
        return rng.standard_normal(self.dim)

    def memory(self, x, rng):
        d = self.model.dim
        return KineticMemory(
            taken=np.zeros(1, np.int64),
            gradient=np.zeros(d),
            normals=np.zeros(self.normals * d),
            counted_steps=np.zeros(1),
            temperature_sum=np.zeros(1),
            provider=self.provider.memory(rng),
        )


class FrictionRecipe(StepRecipe):
    """Also says the friction."""

    def setting(self, process):
        return f"{super().setting(process)}, friction {process.friction:.3g}"


class Underdamped(Kinetic):
    """Base of the integrators of dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB; they define ``linear_step``."""

    friction: float

    recipe = FrictionRecipe(featured=False)

    def __init__(self, provider, step="auto", friction=None):
        super().__init__(provider, step)
        self.friction = self.checked_or_default("friction", friction)

    @staticmethod
    def linear_step(step, friction, curvature):
        """The step on U = λθ²/2 as a map of (θ, p), one for each λ of `curvature` (d,).

        Returns
        -------
        transition : ndarray, shape (d, 2, 2)
        kick : ndarray, shape (2,)
            What a unit of noise in the gradient adds, up to its sign.
        injected : ndarray, shape (2, 2) or (d, 2, 2)
            Covariance of the injected noise.
        """
        raise NotImplementedError

    def target_covariance(self, hessian):
        """Of exp(-U), (d, d)."""
        return np.linalg.inv(hessian)

    def largest(self, hessian):
        """Where the search for a step begins: the leapfrog's stability limit."""
        return 2.0 / math.sqrt(float(np.linalg.eigvalsh(hessian)[-1]))

    def covariance(self, hessian, noise, step):
        """Stationary covariance of θ with this step on a Gaussian target, (d, d); None where it is unstable."""
        return kinetic_covariance(hessian, noise, lambda curvature: self.linear_step(step, self.friction, curvature))

    def choose_settings(self, hessian, noise, error):
        step, friction, worst = choose_dynamics(
            self.linear_step, hessian, noise, error, exact=self.provider.exact, friction=self.friction
        )
        return {"schedule": Constant(step), "friction": friction}, worst


def choose_dynamics(linear, hessian, noise, error, exact, friction=math.nan):
    """For each of some frictions the largest step within `error`; then the pair that forgets its start fastest.

    Parameters
    ----------
    linear : callable
        From a step, a friction and curvatures to what `kinetic_covariance` wants to know.
    hessian, noise : ndarray, shape (d, d)
    error : float
        Largest relative error of a marginal variance.
    exact : bool
        Whether the gradient is.
    friction : float
        The only one to look at, unless it is NaN.

    Returns
    -------
    step, friction, worst : float
    """
    curvature, target = np.linalg.eigvalsh(hessian), np.linalg.inv(hessian)
    tried = 2.0 * math.sqrt(curvature[0]) * np.array(FRICTIONS) if math.isnan(friction) else [friction]
    found = []
    for friction in tried:

        def predicted(step, noise=noise, friction=friction):
            return kinetic_covariance(hessian, noise, lambda curvature: linear(step, friction, curvature))

        # Without the gradient's noise first: its error and the integrator's must not cancel at some large step.
        limit = 2.0 / math.sqrt(curvature[-1])
        step, worst = largest_step(functools.partial(predicted, noise=0.0 * noise), target, limit, error)
        if not exact:
            step, worst = largest_step(predicted, target, step, error)
        slowest = np.abs(np.linalg.eigvals(linear(step, friction, curvature)[0])).max()
        found.append((max(worst, error), slowest, step, float(friction)))
    worst, _, step, friction = min(found)
    return step, friction, worst


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


def step_from_h(h):
    """ε of h = ε²."""
    if isinstance(h, bool) or not isinstance(h, (int, float, np.number)) or not 0.0 < h < math.inf:
        raise ValueError(f"`h` must be a positive number, got {h!r}; for a schedule give the steps ε = √h as `step`.")
    return math.sqrt(h)
