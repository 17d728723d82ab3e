r"""What the samplers with a momentum share.

The momentum p is the velocity of the state, and p ~ N(0, I) at the start. The target of θ and p is
exp(-U(θ) - |p|²/2), and the step is the integrator's ε. Some papers have the displacement v = εp instead, with the step
h = ε² and the friction α = εD; the samplers of these papers have a constructor ``from_h`` that takes them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from discrete.curvature import DENSE_DIMENSIONS, largest_curvature, local_law, mode_near
from discrete.laws import kinetic_covariance, largest_step
from discrete.momenta import Preconditioned, Transformed, pulled_back
from discrete.schedules import Automatic, Constant, Schedule
from discrete.tick import Brownian, StepRecipe
from pdmp.gradients import Provider
from pdmp.gradients.provider import dot
from pdmp.interfaces.report import Report
from pdmp.metric import Identity, Metric, check_metric
from pdmp.models import Model
from pdmp.native.arguments import positive
from pdmp.native.classes import inlined
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import ADAPTING, State

#: Frictions that are tried, in units of the one that is critical for the smallest curvature.
FRICTIONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class KineticMemory(NamedTuple):
    """What a chain keeps beside position and momentum; the first three as in `discrete.tick.TickMemory`."""

    taken: Count
    gradient: Vector
    normals: np.ndarray
    counted_steps: Number  #: steps after the warm-up
    temperature_sum: Number  #: the sum of their |p|² / d
    provider: tuple


@inlined
def mean_square(p):
    """|p|² / d."""
    return dot(p, p) / p.shape[0]


@inlined
def count_temperature(memory, p, counts):
    """Add |p|² / d at the end of a step to the mean kinetic temperature, once the warm-up is over."""
    if counts[ADAPTING] == 0:
        memory.temperature_sum[0] += mean_square(p)
        memory.counted_steps[0] += 1.0


class KineticReport(Report):
    """The kinetic temperature, and how many steps a Metropolis test would have accepted."""

    def step_acceptance(self, process, x, rng):
        """Of leapfrog steps from `x` (n, d): see `Report.step_acceptance`. Expected is what a Gaussian gives."""
        if math.isnan(process.energy_error):
            return None
        model, step, total = process.model, process.schedule.step(0), 0.0
        metric = Identity() if process.metric is None else process.metric
        with np.errstate(all="ignore"):
            for start in x:
                p = rng.standard_normal(model.dim)
                half = p - 0.5 * step * metric.transposed(model.gradient(start))
                there = start + step * metric.transform(half)
                energy = model.potential(start) + 0.5 * p @ p - model.potential(there)
                p = half - 0.5 * step * metric.transposed(model.gradient(there))
                accept = math.exp(min(energy - 0.5 * p @ p, 0.0))
                total += accept if accept >= 0.0 else 0.0
        return total / len(x), math.erfc(0.5 * math.sqrt(process.energy_error))

    def statistics(self, process, state):
        """The mean of |p|² / d after the warm-up: 1 for the target's law, more where gradient noise heats it."""
        total, steps = state.memory.temperature_sum[0], state.memory.counted_steps[0]
        return {"mean_kinetic_temperature": float(total / steps) if steps else math.nan}


class Kinetic(Brownian):
    """Base of the samplers with a momentum: ``move`` is given it as `v`, and calls `count_temperature` at its end."""

    #: With an automatic step: Σ (ε²λ)³ / 32, the mean error of the energy in a leapfrog step on a Gaussian.
    energy_error = math.nan
    #: Whether the integrator is of second order in the step, with an exact gradient; with a noisy one its bias is not.
    second_order = False

    recipe = StepRecipe(featured=False)
    report = KineticReport()

    def __init__(self, provider, step="auto", metric=None):
        super().__init__(provider, step)
        self.metric = check_metric(metric, self.dim, f"discrete.{type(self).__name__}")

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With it, and an automatic step that is chosen for it."""
        return cls(target, **{"metric": learnt.mass} | options)

    def checked_or_default(self, name: str, value: float | None) -> float:
        """A friction or diffusion; for None 1, or with an automatic step NaN, as it is then chosen with the step."""
        if value is None:
            return math.nan if isinstance(self.schedule, Automatic) else 1.0
        return positive(name, value)

    def own(self, matrix: np.ndarray) -> np.ndarray:
        """A Hessian, or a covariance of gradients, in the coordinates in which the metric is the identity."""
        if self.metric is None:
            return matrix
        if len(matrix) != self.dim:
            raise ValueError(
                f'step="auto" with a metric is for at most {DENSE_DIMENSIONS} dimensions, got {self.dim}; give a step.'
            )
        return pulled_back(self.metric, matrix)

    def _constant_hessian(self, x):
        hessian = super()._constant_hessian(x)
        return hessian if hessian is None else self.own(hessian)

    def resolve(self, x: np.ndarray) -> Self:
        if not isinstance(self.schedule, Automatic):
            process = super().resolve(x)
            if self.metric is not None and not isinstance(self.provider, Preconditioned):
                process.provider = Preconditioned(self.provider, self.metric)
                process.coordinates = Transformed(self.metric)
            return process
        there, noise = local_law(self.provider, x)
        hessian, noise = self.own(there), self.own(noise)
        process = self.with_step(hessian, noise)
        most = 1.0 / math.sqrt(largest_curvature(self.provider, mode_near(self.provider, x), there, self.own))
        if process.schedule.step(0) > most:
            process.schedule = Constant(most)
        squares = process.schedule.step(0) ** 2 * np.linalg.eigvalsh(hessian)
        process.energy_error = float(np.sum(squares**3)) / 32.0 if len(hessian) == self.dim else math.nan
        return process.resolve(x)

    @property
    def bias_order(self) -> int:
        """Order of the bias in the step: 2 for integrators of second order with an exact gradient, else 1."""
        return 2 if self.second_order and self.provider.exact else 1

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(self.dim)

    def prepare(self, state: State) -> None:
        if self.metric is not None:
            state.memory.provider.metric.u[:] = self.metric.inverse(state.x)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.model.dim
        return zeros(KineticMemory, d, normals=np.zeros(self.normals * d), provider=self.provider.memory(rng))


class FrictionRecipe(StepRecipe):
    """`StepRecipe`, with the friction in the setting."""

    def setting(self, process):
        return f"{super().setting(process)}, friction {process.friction:.3g}"


class Underdamped(Kinetic):
    """Base of the integrators of dθ = p dt, dp = -∇U dt - D p dt + √(2D) dB; each defines ``linear_step``."""

    friction: float  #: D

    recipe = FrictionRecipe(featured=False)

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        friction: float | None = None,
        *,
        metric: ArrayLike | Metric | None = None,
    ) -> None:
        super().__init__(provider, step, metric)
        self.friction = self.checked_or_default("friction", friction)

    @staticmethod
    def linear_step(step: float, friction: float, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The step on U = λθ²/2 as a linear map of (θ, p), for each λ of `curvature` (d,).

        Returns
        -------
        transition : ndarray, shape (d, 2, 2)
            The matrix of the map.
        kick : ndarray, shape (2,)
            What a unit of noise in the gradient adds to (θ, p), up to its sign.
        injected : ndarray, shape (2, 2) or (d, 2, 2)
            Covariance of the injected noise.
        """
        raise NotImplementedError

    def target_covariance(self, hessian: np.ndarray) -> np.ndarray:
        """Covariance of exp(-U), (d, d)."""
        return np.linalg.inv(hessian)

    def largest(self, hessian: np.ndarray) -> float:
        """Where the search for a step begins: half of the leapfrog's stability limit, see `choose_dynamics`."""
        return 1.0 / math.sqrt(float(np.linalg.eigvalsh(hessian)[-1]))

    def covariance(self, hessian: np.ndarray, noise: np.ndarray, step: float) -> np.ndarray:
        """Stationary covariance of θ with this step on a Gaussian target, (d, d); None where it is unstable."""
        return kinetic_covariance(hessian, noise, lambda curvature: self.linear_step(step, self.friction, curvature))

    def choose_settings(self, hessian: np.ndarray, noise: np.ndarray, error: float) -> tuple[dict[str, Any], float]:
        step, friction, worst = choose_dynamics(
            self.linear_step, hessian, noise, error, exact=self.provider.exact, friction=self.friction
        )
        return {"schedule": Constant(step), "friction": friction}, worst


def choose_dynamics(linear, hessian, noise, error, exact, friction=math.nan):
    """The largest step at which predicted variances are within `error`, a friction for it, and their largest error.

    ``linear(step, friction, curvatures)`` is the step as a linear map, see `Underdamped.linear_step`. The only friction
    to try is `friction`, unless it is NaN. One is preferred if some step keeps the predicted variances within `error`.
    Among the preferred ones, that with the fastest decay per step of the slowest mode is taken.
    """
    curvature, target = np.linalg.eigvalsh(hessian), np.linalg.inv(hessian)
    tried = 2.0 * math.sqrt(curvature[0]) * np.array(FRICTIONS) if math.isnan(friction) else [friction]
    found = []
    for friction in tried:

        def predicted(step, noise=noise, friction=friction):
            return kinetic_covariance(hessian, noise, lambda curvature: linear(step, friction, curvature))

        # First without the noise of the gradient: at a large step its error and the integrator's could cancel.
        # Some integrators have no error on a Gaussian up to the stability limit ε²λ = 4. Where the curvature is larger
        # than at the mode they diverge: ε²λ <= 1 leaves room for four times as much.
        limit = 1.0 / math.sqrt(curvature[-1])
        step, worst = largest_step(functools.partial(predicted, noise=0.0 * noise), target, limit, error)
        if not exact:
            step, worst = largest_step(predicted, target, step, error)
        slowest = np.abs(np.linalg.eigvals(linear(step, friction, curvature)[0])).max()
        found.append((max(worst, error), slowest, step, float(friction)))
    worst, _, step, friction = min(found)
    return step, friction, worst


def step_from_h(h):
    """ε of h = ε², or a `ValueError`."""
    if isinstance(h, bool) or not isinstance(h, (int, float, np.number)) or not 0.0 < h < math.inf:
        raise ValueError(f"`h` must be a positive number, got {h!r}; for a schedule give the steps ε = √h as `step`.")
    return math.sqrt(h)
