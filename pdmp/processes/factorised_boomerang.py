r"""The factorised Boomerang sampler.

With a reference N(m, diag(σ²)) the target is exp(-E(x)) times its density, E(x) = U(x) - ½ Σᵢ (xᵢ - mᵢ)² / σᵢ².

=====  ================================================================================================
flow   ellipses in each coordinate: dxᵢ = vᵢ dt, dvᵢ = -(xᵢ - mᵢ) dt
clock  flips: where U is quadratic one clock for each coordinate, inverted exactly, and an event redraws
       only those of its neighbours; otherwise their superposition, one clock, by thinning.
       Refreshments: Poisson of constant rate for each coordinate
rate   (vᵢ ∂ᵢE(x))₊, coordinate i; the superposition's is the sum, and i is drawn in proportion
jump   flip: vᵢ ← -vᵢ; refreshment: vᵢ ~ N(0, σᵢ²)
=====  ================================================================================================

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML, section 2.1 (factorised Boomerang sampler).
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.factors.sums import SumPartials, local_graph, neighbours_of
from pdmp.flow import Elliptic
from pdmp.gradients import Provider
from pdmp.gradients.provider import clear
from pdmp.interfaces.recipe import Recipe
from pdmp.metric import WORDS, Metric
from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN, Process, positions
from pdmp.processes.boomerang import (
    WIDEST,
    boomerang_provider,
    check_refresh_rate,
    choose_thinning,
    in_units_of,
    only_auto,
)
from pdmp.processes.exact import Evaluated
from pdmp.processes.gaussian_bounds import bound_of_entries, bound_of_partial_terms
from pdmp.processes.gaussian_reference import gaussian_reference, reference_mean
from pdmp.processes.walls import Walls
from pdmp.thinning.bound import Bound, draw_component
from pdmp.thinning.constant import constant_arrival
from pdmp.thinning.enclosures import Enclosures
from pdmp.thinning.sinusoid import ProductInversion

FLIP, REFRESH = 0, 1


class Memory(NamedTuple):
    """Beside the path of the factorised Boomerang."""

    gradient: Vector  #: ∇E at time `at`, or the last estimate of it
    at: Number  #: that time; NaN before the first evaluation
    here: Vector  #: the position there; of single neighbours, when flips are inverted
    velocity: Vector  #: of the same
    bend: Vector  #: x - m of the same
    rates: np.ndarray  #: (d,) signed rates
    flipping: Count  #: with one clock for all flips: the coordinate that flips if the proposal is accepted
    refreshed: Count  #: with one clock for all refreshments: the coordinate that is refreshed next
    bound: tuple  #: what the bound on the rate keeps, see `pdmp.thinning`
    provider: tuple


class FactorisedBoomerang(Walls, Evaluated, Process):
    """Factorised Boomerang sampler of exp(-U), with the exact gradient or mini-batches of it.

    Parameters
    ----------
    provider : Model, pdmp.gradients.Full, Minibatch or ControlVariate
        What to sample. Mini-batches must be independent (``draw="iid"``, or those of a control variate), of any size;
        they need a model that bounds the partial derivatives of its terms. One batch serves all coordinates.
    mean : array_like, shape (d,), optional
        Mean m of the reference: the provider's anchor or the model's mode when omitted.
    metric : "auto", "diagonal", None, float, array_like of shape (d,), or Metric, default "auto"
        1 / σ², the precision of the reference: "auto" and "diagonal" are the diagonal of the Hessian at `mean`, None is
        the identity. A vector is 1 / σ² itself; for σ give ``pdmp.Metric(scales=...)``.
    refresh_rate : float, default 0.5
        Rate at which each velocity is refreshed, per unit of time; an undisturbed turn takes 2π. 0 warns.
    thinning : "auto", "inversion", "local", "hessian", "grid" or a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse, so that the cost of an
        event does not depend on the dimension. "local": for models of `pdmp.terms`, a clock for each coordinate, under
        enclosures of the terms' second derivatives over the next arc of path, exact; "auto" takes it where terms have
        few coordinates. "hessian": by the model's bounds on its Hessian, exact. "grid": the
        adaptive grid, whose violations are counted. "auto" takes the first of these that the model supports.
        Mini-batches have a bound of their own, and only "auto".

    Raises
    ------
    TypeError
        For a gradient with noise of another kind.
    ValueError
        For variances that are not positive, shapes that do not fit, a rate that is negative, and bounds that the model
        does not support.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.FactorisedBoomerang(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    provider: Compiled
    thinning: Compiled
    reference: Compiled
    mean: np.ndarray
    zeros: np.ndarray
    refresh_rate: float
    subsampled: bool
    one_clock: bool  #: whether one clock stands for all flips and one for all refreshments

    events = ("flip", "refresh")
    recipe = Recipe(featured=False)
    wall_rule = "flip"

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
        model = self.model = provider.model
        self.mean = self.anchor = reference_mean(mean, provider)
        self.reference = gaussian_reference(metric, self.mean, model, "pdmp.FactorisedBoomerang", WORDS[:2])
        self.provider = in_units_of(self.reference, provider)
        self.refresh_rate = check_refresh_rate(refresh_rate)
        self.zeros = np.zeros(model.dim)
        self.thinning = self._choose_thinning(thinning)
        self.exact_bounds = self.thinning.exact
        self.subsampled = not provider.exact
        self.one_clock = not isinstance(self.thinning, (ProductInversion, Enclosures))
        clocks, dependents = 2, [[FLIP], [FLIP, REFRESH]]
        if not self.one_clock:
            inverted = isinstance(self.thinning, ProductInversion)
            neighbours = model.neighbours() if inverted else neighbours_of(self.graph)
            clocks, dependents = 2 * model.dim, _with_refreshments(*neighbours)
        super().__init__(model.dim, clocks, dependents, flow=Elliptic(self.mean), local=True)
        self.thinning.check(model, None, self.flow, model.dim)

    def _choose_thinning(self, thinning):
        if not self.provider.exact:
            only_auto(thinning)
            return bound_of_partial_terms(self.provider, self.mean, self.reference)
        if isinstance(thinning, str) and thinning in ("auto", "local"):
            self.graph = local_graph(self.model, needed=thinning == "local")
            if self.graph is not None:
                weights = 1.0 / (self.reference.sd * self.reference.sd)
                return Enclosures(SumPartials(self.model, self.graph, Elliptic(self.mean), weights, self.mean))
        by_hessian = functools.partial(bound_of_entries, self.model, self.mean, self.reference)
        return choose_thinning(thinning, self.model, {"inversion": ProductInversion}, by_hessian)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With its mean and variances as the reference."""
        return cls(target, **{"mean": learnt.mean, "metric": Metric(covariance=learnt.variances)} | options)

    @compiled
    def evaluate(self, state, now, rng):
        """Evaluate ∇E at time `now`, unless that was the last thing done."""
        memory = state.memory
        if memory.at[0] != now:
            positions(self.flow, state, now, memory.here)
            self.provider.gradient(memory.here, memory.provider, rng, memory.gradient, state.counts)
            for j in range(self.zeros.shape[0]):
                memory.gradient[j] -= (memory.here[j] - self.mean[j]) / (self.reference.sd[j] * self.reference.sd[j])
            memory.at[0] = now

    @compiled
    def clock(self, state, i, now, rng):
        d = self.zeros.shape[0]
        if i < (1 if self.one_clock else d):
            return self.thinning.propose(self, state, i, now, rng)
        wait = constant_arrival(self.refresh_rate, rng)
        if self.one_clock and wait < math.inf:
            state.memory.refreshed[0] = int(rng.random() * d)
            wait /= d
        return now + wait, CERTAIN

    @compiled
    def rate(self, state, i, now, rng):
        if not self.one_clock:
            return positive_part(self.thinning.rate_of(self, state, i, now))
        rates = state.memory.rates
        self.signed_rates(state, now, rng, rates)
        total = 0.0
        for j in range(rates.shape[0]):
            total += positive_part(rates[j])
        state.memory.flipping[0] = draw_component(rates, rng.random() * total)
        return total

    @compiled
    def touches(self, state, i):
        d = self.zeros.shape[0]
        if self.one_clock:
            j = state.memory.flipping[0] if i == FLIP else state.memory.refreshed[0]
        else:
            j = i if i < d else i - d
        return j, j + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def jump(self, state, i, now, rng):
        j, _ = self.touches(state, i)
        if i < (1 if self.one_clock else self.zeros.shape[0]):
            state.v[j] = -state.v[j]
            return FLIP
        state.v[j] = self.reference.sd[j] * rng.standard_normal()
        return REFRESH

    # What the thinning asks for: the signed rates, the conserved energies, and the two factors of one rate.

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        for j in range(out.shape[0]):
            out[j] = self.flow.velocity(j, state.x[j], state.v[j], now - state.moved[j]) * state.memory.gradient[j]

    @compiled
    def energies(self, state, out):
        """Roots of ((xⱼ - mⱼ)² + vⱼ²) / σⱼ²."""
        for j in range(out.shape[0]):
            out[j] = math.hypot(state.x[j] - self.mean[j], state.v[j]) / self.reference.sd[j]

    @compiled
    def sinusoid_factors(self, state, i, now):
        """v, y, c₀, c₁, c₂ with vᵢ ∂ᵢE at now + t = (v cos t - y sin t)(c₀ + c₁ cos t + c₂ sin t)."""
        memory = state.memory
        for k in range(self.start[i], self.start[i + 1]):
            j = self.order[k]
            x, v, s = state.x[j], state.v[j], now - state.moved[j]
            memory.here[j] = self.flow.position(j, x, v, s)
            memory.velocity[j] = self.flow.velocity(j, x, v, s)
            memory.bend[j] = self.flow.bend(j, memory.here[j], memory.velocity[j])
        model = self.provider.model
        partial, sine = model.affine_partial(memory.here, memory.velocity, self.zeros, 0.0, i)
        _, cosine = model.affine_partial(memory.here, memory.bend, self.zeros, 0.0, i)
        v, y, variance = memory.velocity[i], memory.bend[i], self.reference.sd[i] * self.reference.sd[i]
        return v, y, partial - cosine, cosine - y / variance, sine - v / variance

    @compiled
    def true_rates(self, x, v, scratch, out):
        d = x.shape[0]
        clear(scratch)
        self.provider.model.add_gradient(x, scratch)
        for j in range(d):
            partial = scratch[j] - (x[j] - self.mean[j]) / (self.reference.sd[j] * self.reference.sd[j])
            out[j] = v[j] * partial if not self.subsampled else math.nan  # the mean over all mini-batches
            out[d + j] = self.refresh_rate

    @compiled
    def channel(self, state, i):
        return self.zeros.shape[0] * i + self.touches(state, i)[0] if self.one_clock else i

    def changes(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None if self.one_clock else (np.arange(2 * self.dim + 1), np.tile(np.arange(self.dim), 2))

    def channels(self) -> list[str]:
        return [f"{event} {j}" for event in self.events for j in range(self.dim)]

    def describe_bound(self) -> str:
        return self.thinning.describe(self.model, None)

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.reference.sd * rng.standard_normal(self.dim)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        d, parts = self.dim, self.dim if self.one_clock else 1
        return zeros(
            Memory,
            d,
            at=np.full(1, math.nan),
            rates=np.zeros(parts),
            bound=self.thinning.memory(parts, d, WIDEST),
            provider=self.provider.memory(rng),
        )


def _with_refreshments(indptr, indices):
    """Dependents of d flips, their neighbours' flips, and of d refreshments, the same and themselves."""
    d = len(indptr) - 1
    ends = indptr[1:] + np.arange(1, d + 1)
    refreshments = np.insert(indices, indptr[1:], d + np.arange(d))
    return np.concatenate([indptr, indptr[-1] + ends]), np.concatenate([indices, refreshments])
