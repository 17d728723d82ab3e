r"""Splitting schemes of the Zig-Zag process and the Bouncy Particle Sampler, with and without a Metropolis step.

=====  ======================================================================================================
flow   none: the state is held until the next tick
clock  ticks of ε
rate   none: every tick is an event
jump   Zig-Zag, D B D:
           x ← x + (ε/2) v;  each vᵢ ← -vᵢ with probability 1 - exp(-ε (vᵢ ∂ᵢÛ(x))₊);  x ← x + (ε/2) v
       Bouncy Particle Sampler, R D B D R:
           v uniform on the sphere with probability 1 - exp(-λε/2);  x ← x + (ε/2) v;
           v ← v - 2 (v·∇Û) ∇Û / |∇Û|² with probability 1 - exp(-ε (v·∇Û(x))₊);  x ← x + (ε/2) v;
           v uniform on the sphere with probability 1 - exp(-λε/2)
       adjusted: D B D leads from (x, v) to (x', v') with probability min(1, e^ℓ), and else to (x, -v),
           ℓ = U(x) - U(x') + ∇U(y)·(x' - x),  y the point in the middle where the gradient was taken
=====  ======================================================================================================

B is exact for the gradient of the midpoint, held constant: a coordinate that has flipped then has rate zero. A step
needs one gradient. The step and its reversal, from (x', -v') to (x, -v), have the same midpoint, and the ratio of their
probabilities is exp(∇U(y)·(x' - x)). So e^ℓ is the ratio that gives skew detailed balance, and ℓ would be 0 for a
linear U.

The laws are those of the states at the ticks. With the exact gradient the error of the unadjusted law is O(ε²). On a
Gaussian ℓ = (ε²/8) (v·Hv - v'·Hv'), so that D B D leaves exp(-U(x) + (ε²/8) v·Hv) invariant. Only the law of the
velocities is then wrong, and the unadjusted Zig-Zag scheme has no error in x at any step. The other scheme has one of
O(ε²) from its refreshments, which draw the velocity from the uniform law, unless H is a multiple of the identity. With
gradient noise the error is O(ε): a batch that is kept for ε lowers the mean rate E λ̂ by (ε/2) Var λ̂, see
`discrete.frozen`. The adjusted law is the target at every step.

The straight lines between the ticks would have another law, with variances larger by ε²/12 E v²; therefore the path is
constant between the ticks. With constant steps the coordinates of the Zig-Zag scheme stay on the lattice x₀ + εℤ.
Averages over it are those of a smooth density up to exp(-2π²σ²/ε²), which matters for ε well above a standard
deviation σ: such a run warns.

References
----------
Bertazzi, Dobson & Monmarché (2025), Piecewise deterministic sampling with splitting schemes, JMLR 26,
arXiv:2301.02537 (unadjusted and adjusted schemes, sub-sampling).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from discrete.schedules import Constant, Schedule
from discrete.tick import StepRecipe, Ticking, acceptance, finite
from pdmp.gradients import Provider, as_provider
from pdmp.gradients.provider import dot
from pdmp.interfaces.report import Report
from pdmp.models import Model
from pdmp.native.classes import compiled, positive_part
from pdmp.native.records import Count, Flag, Number, Vector, zeros
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.process import ADAPTING, DATA
from pdmp.processes.exact import Refreshed, check_rate, sphere

OFF = 0.01  #: of the variance, from which on a lattice is said to be too wide


class SplittingMemory(NamedTuple):
    """What a chain keeps beside position and velocity."""

    taken: Count  #: steps taken
    gradient: Vector  #: the last estimate of ∇U, at the midpoint of a step
    start_position: Vector  #: where the step began
    start_velocity: Vector  #: the velocity with which it began
    potential: Number  #: U at the present state, if it is adjusted
    known: Flag  #: whether the potential has been evaluated
    counted_steps: Number  #: steps after the warm-up
    acceptance_sum: Number  #: the sum of their probabilities of acceptance
    outside: Count  #: adjusted steps that led to where the density is zero
    provider: tuple


class SplittingRecipe(StepRecipe):
    """For the command that runs one sampler; not for comparisons, since no formula predicts the error at a step."""

    def setting(self, process):
        return super().setting(process) + (", adjusted" if process.adjusted else "")


class SplittingReport(Report):
    """The mean probability of acceptance, and steps to where the density is zero."""

    def statistics(self, process, state):
        """The mean probability of acceptance after the warm-up, if steps are adjusted."""
        if not process.adjusted:
            return {}
        steps, accepted = state.memory.counted_steps[0], state.memory.acceptance_sum[0]
        outside = float(state.memory.outside[0])
        return {"mean_acceptance": float(accepted / steps) if steps else math.nan, "outside": outside}


class LatticeReport(SplittingReport):
    """Besides, that the points on which a path with constant steps stays are too far apart for averages."""

    def doubts(self, run, asked):
        step, names = run.process.schedule, run.names()
        if not isinstance(step, Constant) or run.store == "moments" or any(r.length <= 0.0 for r in run.records):
            return []
        with np.errstate(all="ignore"):
            off = off_on_lattice(run.cov() / step.value**2)
        k = int(np.argmax(np.max(off, axis=1)))
        if not off[k].max() > OFF:
            return []
        what = " and ".join(names[j] for j in sorted({k, int(np.argmax(off[k]))}))
        return [
            f"the path stays on points that are ε = {step.value:.3g} apart along each coordinate, which is wide for "
            f"{what}: the variance over them is off by some {off[k].max():.1g} of itself, and quantiles are these "
            "points. Give a smaller step."
        ]


def off_on_lattice(covariance: np.ndarray) -> np.ndarray:
    """By what share the variance of a normal law on a lattice of unit steps is off, (d, d).

    Entry ij is of the waves along coordinates i and j, or i alone. By Poisson's summation a wave k adds
    2 exp(-2π² k·Σk) (1 - 4π² (Σk)ᵢ² / Σᵢᵢ) of the variance of coordinate i, on a lattice with a point in the middle.
    """
    variance = np.diag(covariance)
    found = np.zeros_like(covariance)
    for sign in (0.0, 1.0, -1.0):
        square = variance[:, None] + sign * (2.0 * covariance + sign * variance)
        slope = (variance[:, None] + sign * covariance) ** 2 / variance[:, None]
        one = 2.0 * np.exp(-2.0 * np.pi**2 * square) * np.abs(1.0 - 4.0 * np.pi**2 * slope)
        of_pairs = ~np.eye(len(variance), dtype=bool)
        found = np.maximum(found, np.where(of_pairs == (sign != 0.0), np.nan_to_num(one), 0.0))
    return found


class Splitting(Ticking):
    """Base of the splitting schemes.

    A scheme defines two compiled methods:

    - ``apply_events(v, gradient, eps, rng)``: the part B, the flips or the bounce at the rates of this gradient during
      a time eps;
    - ``refresh(v, eps, rng)``: the part R, refreshments during a time eps.
    """

    adjusted: bool  #: whether steps are accepted or rejected

    recipe = SplittingRecipe()
    report = SplittingReport()
    bias_order = 2

    def smaller_step(self, off: float) -> str | None:
        return None if self.adjusted else super().smaller_step(off)

    def __init__(self, provider: Provider | Model, step: float | Schedule, adjusted: bool = False) -> None:
        self.adjusted = bool(adjusted)
        provider = as_provider(provider)
        if adjusted and not provider.exact:
            raise TypeError(
                f"`provider` of discrete.{type(self).__name__} must be a model or pdmp.gradients.Full(model), because "
                f"adjusted=True needs the exact gradient; got a {type(provider).__name__}. adjusted=False takes "
                "mini-batches."
            )
        super().__init__(provider, step)

    @compiled
    def jump(self, state, i, now, rng):
        memory, x, v = state.memory, state.x, state.v
        eps, d = self.schedule.step(memory.taken[0]), x.shape[0]
        if self.adjusted and not memory.known[0]:
            memory.potential[0] = self.potential(x, state.counts)
            memory.known[0] = True
        self.refresh(v, 0.5 * eps, rng)
        for j in range(d):
            memory.start_position[j], memory.start_velocity[j] = x[j], v[j]
            x[j] += 0.5 * eps * v[j]
        self.provider.gradient(x, memory.provider, rng, memory.gradient, state.counts)
        if not finite(memory.gradient):
            return -1
        self.apply_events(v, memory.gradient, eps, rng)
        for j in range(d):
            x[j] += 0.5 * eps * v[j]
        if self.adjusted and not self.adjust(x, v, memory, rng, state.counts):
            return -1
        self.refresh(v, 0.5 * eps, rng)
        memory.taken[0] += 1
        return 0

    @compiled
    def potential(self, x, counts):
        counts[DATA] += max(self.provider.model.n_data, 1)
        return self.provider.model.total_potential(x)

    @compiled
    def adjust(self, x, v, memory, rng, counts):
        """Accept the step that led to (x, v), or go back to its start and reverse the velocity.

        Returns whether the potentials are numbers, or infinite where the density is zero.
        """
        there = self.potential(x, counts)
        if there == math.inf:
            memory.outside[0] += 1
        elif not (math.isfinite(there) and math.isfinite(memory.potential[0])):
            return False
        log_accept = memory.potential[0] - there
        for j in range(x.shape[0]):
            log_accept += memory.gradient[j] * (x[j] - memory.start_position[j])
        accept = acceptance(log_accept)
        if rng.random() < accept:
            memory.potential[0] = there
        else:
            for j in range(x.shape[0]):
                x[j], v[j] = memory.start_position[j], -memory.start_velocity[j]
        if counts[ADAPTING] == 0:
            memory.counted_steps[0] += 1.0
            memory.acceptance_sum[0] += accept
        return True

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        return zeros(SplittingMemory, d, provider=self.provider.memory(rng))


class ZigZagSplitting(Splitting):
    """The splitting scheme D B D of the Zig-Zag process on exp(-U), with unit speed in each coordinate.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        ε, in process time. It should be below the target's standard deviations, since the speed is 1.
    adjusted : bool, default False
        Whether each step is accepted or rejected, so that the target is the law at every ε, on the points x₀ + εℤ of
        each coordinate on which a path with constant steps stays. This needs the exact gradient. A rejection reverses
        the velocity; ``run.stats["mean_acceptance"]`` is the mean probability of acceptance.

    Raises
    ------
    TypeError
        For adjusted steps with a gradient that is not exact.
    ValueError
        For a step that is not positive.

    Warns
    -----
    UserWarning
        After a run with a step so wide that averages over these points are off by a hundredth of the variance.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.ZigZagSplitting(model, step=0.2, adjusted=True).tick_length()
    0.2
    """

    report = LatticeReport()

    @compiled
    def apply_events(self, v, gradient, eps, rng):
        for j in range(v.shape[0]):
            rate = positive_part(v[j] * gradient[j])
            if rate > 0.0 and rng.random() < -math.expm1(-eps * rate):
                v[j] = -v[j]

    @compiled
    def refresh(self, v, eps, rng):
        pass

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim)


class BPSSplitting(Refreshed, Splitting):
    """The splitting scheme R D B D R of the Bouncy Particle Sampler on exp(-U), velocities on the unit sphere.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        ε, in process time, which is distance.
    refresh_rate : float or "auto", default "auto"
        λ, the rate of the refreshments, per unit of process time; "auto" as in `pdmp.BPS`.
    adjusted : bool, default False
        Whether each D B D is accepted or rejected, so that the target is the law at every ε. This needs the exact
        gradient. A rejection reverses the velocity; ``run.stats["mean_acceptance"]`` is the mean probability of
        acceptance.

    Raises
    ------
    TypeError
        For adjusted steps with a gradient that is not exact.
    ValueError
        For a step that is not positive, or a negative or non-finite rate.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.BPSSplitting(model, step=0.2, refresh_rate=0.5).refresh_rate
    0.5
    """

    refresh_rate: float  #: λ

    def __init__(
        self,
        provider: Provider | Model,
        step: float | Schedule,
        refresh_rate: float | str = "auto",
        adjusted: bool = False,
    ):
        super().__init__(provider, step, adjusted)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)

    @compiled
    def apply_events(self, v, gradient, eps, rng):
        rate = dot(v, gradient)
        if rate > 0.0 and rng.random() < -math.expm1(-eps * rate):
            reflect(v, gradient)
            rescale(v, 1.0)

    @compiled
    def refresh(self, v, eps, rng):
        if self.refresh_rate > 0.0 and rng.random() < -math.expm1(-eps * self.refresh_rate):
            refresh_on_sphere(v, rng)

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return sphere(rng, self.dim)
