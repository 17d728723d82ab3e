r"""The Boomerang sampler.

With a Gaussian reference N(m, Σ) the target is exp(-E(x)) times its density, E(x) = U(x) - ½ (x - m)ᵀ Σ⁻¹ (x - m).
Where E is nearly flat there are few events.

=====  ================================================================================================
flow   ellipses: dx = v dt, dv = -(x - m) dt, which leave N(m, Σ) x N(0, Σ) invariant
clock  bounce: Poisson, by thinning or inversion of a bound on (v·∇E)₊; refreshment: Poisson of
       constant rate
rate   (v·∇E(x))₊, with a fresh mini-batch for a sub-sampled gradient
jump   bounce: v ← v - 2 (v·∇E) Σ∇E / (∇E·Σ∇E), with the gradient that was just accepted;
       refreshment: v ~ N(0, Σ)
=====  ================================================================================================

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML: section 2.1 (process), 2.2 (sub-sampling), 2.3
(bounds).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.flow import Elliptic
from pdmp.gradients import ControlVariate, Minibatch, Provider, as_provider
from pdmp.gradients.control_variate import one_anchor
from pdmp.gradients.provider import clear, dot
from pdmp.interfaces.recipe import Recipe
from pdmp.metric import WORDS, Metric
from pdmp.models.base import Model
from pdmp.models.capabilities import missing, require
from pdmp.native.arguments import number
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.records import Number, Vector, zeros
from pdmp.process import CERTAIN, Defaults, Process, positions, recast
from pdmp.processes.exact import Evaluated, predicted_without_bound
from pdmp.processes.gaussian_bounds import bound_of_hessian, bound_of_terms
from pdmp.processes.gaussian_reference import (
    DenseReference,
    DiagonalReference,
    gaussian_reference,
    reference_mean,
    reflect_off,
)
from pdmp.processes.walls import Walls
from pdmp.thinning.bound import Bound
from pdmp.thinning.constant import constant_arrival
from pdmp.thinning.grid import Grid
from pdmp.thinning.maxima import Maxima
from pdmp.thinning.narrow import Narrow
from pdmp.thinning.predicted import Predicted
from pdmp.thinning.sinusoid import Sinusoids

BOUNCE, REFRESH = 0, 1
#: Widest cell of the adaptive grid, where a turn is 2π: over a larger part of a turn no parabola follows the rate.
WIDEST = 0.5
#: Longest time from a prediction of the rate to the next gradient.
LONGEST = 1.0


class Memory(NamedTuple):
    """Beside the path of Boomerang."""

    gradient: Vector  #: ∇E at time `at`, or the last estimate of it
    at: Number  #: that time; NaN before the first evaluation
    here: Vector  #: the position there
    offset: Vector  #: scratch: x - m
    scratch: Vector
    energy: np.ndarray  #: (2,) the conserved energy, and the time of the event since which it holds
    bound: tuple  #: what the bound on the rate keeps, see `pdmp.thinning`
    provider: tuple


class Boomerang(Walls, Evaluated, Process):
    """Boomerang sampler of exp(-U), with the exact gradient or mini-batches of it.

    Parameters
    ----------
    provider : Model, pdmp.gradients.Full, Minibatch or ControlVariate
        What to sample. Mini-batches must be independent (``draw="iid"``, or those of a control variate), of any size;
        they need a model that bounds the gradients of its terms.
    mean : array_like, shape (d,), optional
        Mean m of the reference: the provider's anchor or the model's mode when omitted.
    metric : "auto", "diagonal", "dense", None, float, array_like of shape (d,) or (d, d), or Metric, default "auto"
        M = Σ⁻¹, the precision of the reference: "auto" and "dense" are the Hessian at `mean`, "diagonal" its diagonal,
        None the identity. An array is M itself; for Σ give ``pdmp.Metric(covariance=...)``.
    refresh_rate : float, default 0.5
        Rate of the refreshments per unit of time; an undisturbed turn takes 2π. Without any the process is reducible
        where E is flat or a function of the conserved energy, so that 0 warns.
    thinning : "auto", "sinusoids", "hessian", "grid", "predicted" or a bound of `pdmp.thinning`
        "sinusoids": for quadratic potentials, exact and nearly free of rejections. "hessian": by the model's bounds on
        its Hessian, exact. "grid": the adaptive grid, whose violations are counted. "auto" takes the first of these
        that the model supports. "predicted": a bound predicted from the last gradient, one gradient a proposal and none
        for a refreshment, for a reference near the target; its violations are counted. Mini-batches have a bound of
        their own, and only "auto".

    Raises
    ------
    TypeError
        For a gradient with noise of another kind.
    ValueError
        For a metric that is not positive definite, shapes that do not fit, a rate that is negative, and bounds
        that the model does not support.

    See Also
    --------
    pdmp.BPS : The same on straight lines.
    pdmp.FactorisedBoomerang : A clock for each coordinate.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.Boomerang(model), time=100.0, seed=1)
    >>> run.stats["events"]["bounce"]
    0
    """

    provider: Compiled
    thinning: Compiled
    reference: Compiled
    mean: np.ndarray
    drift: np.ndarray  #: ∇U(m)
    refresh_rate: float
    subsampled: bool

    events = ("bounce", "refresh")
    recipe = Recipe(featured=False)

    def __init__(
        self,
        provider: Model | Provider,
        mean: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
        refresh_rate: float = 0.5,
        thinning: str | Bound = "auto",
    ) -> None:
        provider = boomerang_provider(provider, type(self).__name__)
        self.model = provider.model
        self.mean = self.anchor = reference_mean(mean, provider)
        self.reference = gaussian_reference(metric, self.mean, self.model, f"pdmp.{type(self).__name__}", WORDS)
        self.provider = in_units_of(self.reference, provider)
        self.refresh_rate = check_refresh_rate(refresh_rate)
        self.drift = self.model.gradient(self.mean)
        self.thinning = self._choose_thinning(thinning)
        self.exact_bounds = self.thinning.exact
        self.subsampled = not provider.exact
        dependents = [[BOUNCE], [BOUNCE, REFRESH]]
        super().__init__(self.model.dim, 2, dependents, flow=Elliptic(self.mean))
        self.thinning.check(self.model, None, self.flow, 1)

    def _choose_thinning(self, thinning):
        if not self.provider.exact:
            only_auto(thinning)
            return bound_of_terms(self.provider, self.mean, self.reference)
        by_hessian = functools.partial(bound_of_hessian, self.model, self.mean, self.reference)
        return choose_thinning(thinning, self.model, {"sinusoids": Sinusoids}, by_hessian)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With its Gaussian as the reference, and a predicted bound where the model gives none."""
        root = learnt.root
        reference = DiagonalReference(root**2) if root.ndim == 1 else DenseReference.from_root(root)
        return predicted_without_bound(cls, target, {"mean": learnt.mean, "metric": reference} | options)

    @compiled
    def evaluate(self, state, now, rng):
        """Evaluate ∇E at time `now`, unless that was the last thing done."""
        memory = state.memory
        if memory.at[0] != now:
            positions(self.flow, state, now, memory.here)
            self.provider.gradient(memory.here, memory.provider, rng, memory.gradient, state.counts)
            for j in range(state.x.shape[0]):
                memory.offset[j] = memory.here[j] - self.mean[j]
            self.reference.flatten(memory.offset, memory.scratch)
            for j in range(state.x.shape[0]):
                memory.gradient[j] -= memory.scratch[j]
            memory.at[0] = now

    @compiled
    def clock(self, state, i, now, rng):
        if i == BOUNCE:
            return self.thinning.propose(self, state, i, now, rng)
        return now + constant_arrival(self.refresh_rate, rng), CERTAIN

    @compiled
    def rate(self, state, i, now, rng):
        self.evaluate(state, now, rng)
        self.thinning.observe(self, state, i, now, rng)
        return positive_part(self.along(state, now))

    @compiled
    def jump(self, state, i, now, rng):
        if i == REFRESH:
            self.reference.draw(rng, state.v)
            return REFRESH
        self.evaluate(state, now, rng)
        return reflect_off(self.reference, state.v, state.memory.gradient, state.memory.scratch)

    @compiled
    def along(self, state, now):
        """v·∇E at time `now`, at which the gradient was last evaluated."""
        total, s = 0.0, now - state.moved[0]
        for j in range(state.v.shape[0]):
            total += self.flow.velocity(j, state.x[j], state.v[j], s) * state.memory.gradient[j]
        return total

    # What bounds ask for: the signed rate, the sinusoids that it is the sum of, and the conserved energy.

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        out[0] = self.along(state, now)

    @compiled
    def predict(self, state, now, rng, rates, rises, squares):
        """For `pdmp.thinning.Predicted`: v·∇E for the last ∇E, its derivative -(x - m)·∇E, and vᵀΣ⁻¹v."""
        memory, s = state.memory, now - state.moved[0]
        if math.isnan(memory.at[0]):
            self.evaluate(state, now, rng)
        rates[0], rises[0] = 0.0, 0.0
        for j in range(state.x.shape[0]):
            memory.offset[j] = self.flow.velocity(j, state.x[j], state.v[j], s)
            rates[0] += memory.offset[j] * memory.gradient[j]
            if state.v[j] != 0.0:  # a coordinate of the sticky sampler that is frozen has velocity 0, and keeps it
                rises[0] -= (self.flow.position(j, state.x[j], state.v[j], s) - self.mean[j]) * memory.gradient[j]
        self.reference.flatten(memory.offset, memory.scratch)
        squares[0] = dot(memory.offset, memory.scratch)
        return now - memory.at[0], LONGEST

    @compiled
    def harmonics(self, state, now, rng):
        """Of a quadratic potential: v·∇E at now + t is a cos t + b sin t + c cos 2t + d sin 2t; and the energy."""
        a, b, s = 0.0, 0.0, now - state.moved[0]
        for j in range(state.x.shape[0]):
            a += self.drift[j] * self.flow.velocity(j, state.x[j], state.v[j], s)
            b -= self.drift[j] * (self.flow.position(j, state.x[j], state.v[j], s) - self.mean[j])
        self.evaluate(state, now, rng)
        c = self.along(state, now) - a
        eighth = now + 0.25 * math.pi
        self.evaluate(state, eighth, rng)
        d = self.along(state, eighth) - math.sqrt(0.5) * (a + b)
        return a, b, c, d, self.energy(state)

    @compiled
    def energy(self, state):
        """(x - m)ᵀΣ⁻¹(x - m) + vᵀΣ⁻¹v."""
        memory = state.memory
        if memory.energy[1] != state.moved[0]:
            for j in range(state.x.shape[0]):
                memory.offset[j] = state.x[j] - self.mean[j]
            self.reference.flatten(memory.offset, memory.scratch)
            total = dot(memory.offset, memory.scratch)
            self.reference.flatten(state.v, memory.scratch)
            for j in range(state.x.shape[0]):
                total += state.v[j] * memory.scratch[j]
            memory.energy[0], memory.energy[1] = total, state.moved[0]
        return memory.energy[0]

    @compiled
    def true_rates(self, x, v, scratch, out):
        out[BOUNCE] = math.nan  # of mini-batches: the mean over all of them
        if not self.subsampled:
            clear(scratch)
            self.provider.model.add_gradient(x, scratch)
            out[BOUNCE] = -self.reference.inner(v, x, self.mean)
            for j in range(x.shape[0]):
                out[BOUNCE] += v[j] * scratch[j]
        out[REFRESH] = self.refresh_rate

    def among_moving(self) -> Process:
        diagonal = isinstance(self.reference, DiagonalReference)  # each coordinate runs on an ellipse of its own
        fits = type(self) is Boomerang and diagonal and not self.subsampled
        return recast(self, MovingBoomerang) if fits else Defaults.among_moving(self)

    def describe_bound(self) -> str:
        return self.thinning.describe(self.model, None)

    def velocity_covariance(self) -> Callable[[np.ndarray], np.ndarray] | None:
        def product(vector):
            out = np.zeros(self.dim)
            self.reference.raised(np.array(vector, dtype=float), out)
            return out

        return product

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = np.zeros(self.dim)
        self.reference.draw(rng, v)
        return v

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d = self.dim
        return zeros(
            Memory,
            d,
            at=np.full(1, math.nan),
            energy=np.array([0.0, math.nan]),
            bound=self.thinning.memory(1, d, math.sqrt(d) if isinstance(self.thinning, Predicted) else WIDEST),
            provider=self.provider.memory(rng),
        )


class MovingBoomerang(Boomerang):
    """`Boomerang` among the coordinates whose velocity is not 0, with a diagonal covariance."""

    @compiled
    def jump(self, state, i, now, rng):
        v, sd, gradient = state.v, self.reference.sd, state.memory.gradient
        if i == REFRESH:
            for j in range(v.shape[0]):
                if v[j] != 0.0:
                    v[j] = sd[j] * rng.standard_normal()
            return i
        self.evaluate(state, now, rng)
        along, square = 0.0, 0.0
        for j in range(v.shape[0]):
            if v[j] != 0.0:
                along += v[j] * gradient[j]
                square += sd[j] * sd[j] * gradient[j] * gradient[j]
        if math.isnan(along + square):
            return -1
        if square > 0.0:
            for j in range(v.shape[0]):
                if v[j] != 0.0:
                    v[j] -= 2.0 * along / square * sd[j] * sd[j] * gradient[j]
        return i

    @compiled
    def harmonics(self, state, now, rng):
        """Frozen coordinates away from m add to the waves of frequency 1: all are read off four rates."""
        self.evaluate(state, now, rng)
        start = self.along(state, now)
        self.evaluate(state, now + math.pi, rng)
        opposite = self.along(state, now + math.pi)
        a, c = 0.5 * (start - opposite), 0.5 * (start + opposite)
        self.evaluate(state, now + 0.5 * math.pi, rng)
        b = self.along(state, now + 0.5 * math.pi) + c
        self.evaluate(state, now + 0.25 * math.pi, rng)
        d = self.along(state, now + 0.25 * math.pi) - math.sqrt(0.5) * (a + b)
        return a, b, c, d, self.energy(state)


def boomerang_provider(provider, name):
    """The provider that `provider` is or stands for, or a `TypeError` that says what fits."""
    provider = as_provider(provider, "provider")
    if not provider.exact and not (isinstance(provider, (Minibatch, ControlVariate)) and provider.independent):
        drawn = f" with draw={provider.draw!r}" if isinstance(provider, Minibatch) else ""
        raise TypeError(
            f"pdmp.{name} takes the exact gradient (a model or pdmp.gradients.Full), or independent mini-batches: "
            f'pdmp.gradients.Minibatch(model, size, draw="iid") or ControlVariate; got a '
            f"{type(provider).__name__}{drawn}."
        )
    one_anchor(provider, name)
    return provider


def in_units_of(reference, provider):
    """The provider, its data drawn in proportion to what they contribute over distances of the reference."""
    if isinstance(provider, ControlVariate) and provider.draw == "importance":
        return provider.rescaled(reference.sd)
    return provider


def only_auto(thinning):
    """Refuse to choose the bound for mini-batches."""
    if not isinstance(thinning, str) or thinning != "auto":
        raise ValueError(
            f'`thinning` must be "auto" for mini-batches, which have a bound of their own; got {thinning!r}.'
        )


def choose_thinning(thinning, model, quadratic, by_hessian):
    """The bound on the rate: a given one, one for quadratic potentials, the model's own, or an adaptive grid.

    `quadratic` is the one bound for quadratic potentials, by its name; ``by_hessian()`` returns the bound by the
    model's bounds on its Hessian, or None.
    """
    (best,) = quadratic
    if isinstance(thinning, Bound):
        return Narrow(thinning, WIDEST) if isinstance(thinning, (Grid, Maxima)) else thinning
    if not isinstance(thinning, str) or thinning not in ("auto", best, "hessian", "grid", "predicted"):
        raise ValueError(
            f'`thinning` must be "auto", "{best}", "hessian", "grid", "predicted" or a bound of pdmp.thinning, '
            f"got {thinning!r}."
        )
    if thinning == "predicted":
        return Predicted()
    bound = None
    if thinning == best:
        require(model, f'`thinning="{best}"` needs', "affine_partial", instead='Use "auto".')
    if thinning == best or thinning == "auto" and model.has("affine_partial"):
        return quadratic[best]()
    if thinning != "grid":
        bound = by_hessian()
    if bound is None and thinning == "hessian":
        raise ValueError(missing(model, "hessian_bounds", '`thinning="hessian"` needs', 'Use "grid".'))
    return Narrow(Grid(), WIDEST) if bound is None else bound


def check_refresh_rate(value):
    """A finite number >= 0; 0 warns."""
    value = number("refresh_rate", value, least=0.0)
    if value == 0.0:
        warn(
            "`refresh_rate` = 0: without refreshments the process is reducible where the target is Gaussian with the "
            "covariance of the reference, and slow to mix where it is nearly so."
        )
    return value
