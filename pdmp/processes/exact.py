"""What the processes with the gradient of the whole target share: it is evaluated once for each time."""

from __future__ import annotations

import inspect
import math
from typing import NamedTuple, Self

import numpy as np

from pdmp.gradients import as_provider
from pdmp.metric import NoMemory, mean_curvature, over_kink
from pdmp.native.arguments import number
from pdmp.native.classes import Compiled, compiled, inlined
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import DATA, Process, State, positions
from pdmp.thinning import (
    Affine,
    Bound,
    ConcaveConvex,
    Grid,
    Inversion,
    LocalHessian,
    Maxima,
    ModelConstant,
    Narrow,
    Predicted,
    RayInversion,
)


class Memory(NamedTuple):
    """Beside the path: the last gradient and what the thinning works on."""

    gradient: Vector  #: ∇U at time `at`
    at: Number  #: that time; NaN before the first evaluation
    here: Vector  #: the position there
    rates: np.ndarray  #: (m,) signed rates
    hessian_product: np.ndarray  #: (d,) BPS: Hv, by which the gradient of a quadratic target changes along the ray
    carried: Count  #: BPS: number of events since the gradient was last computed afresh
    flipping: Count  #: Zig-Zag with one clock: the coordinate that flips if the proposal is accepted
    bound: tuple  #: what the bound on the rate keeps, see `pdmp.thinning`
    provider: tuple
    metric: tuple  #: what `pdmp.metric` keeps, where the process has one


class Evaluated:
    """Mixin of processes whose memory has the gradient at the place `here`, where the path is at the time `at`."""

    @compiled(inline=False)
    def beyond(self, state, now):
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        found = self.provider.model.total_potential(memory.here) == math.inf
        memory.at[0] = math.nan if found else now  # the gradient is not that of the position `here`
        return found

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float] | None:
        """The place and the time of the last gradient."""
        return state.memory.here, state.memory.at[0]


class Refreshed:
    """Mixin of processes whose `refresh_rate` may be "auto", about a tenth of the bounce rate; named before a base."""

    def resolve(self, x: np.ndarray) -> Self:
        """As `Process.resolve`."""
        process = super().resolve(x)  # type: ignore[misc]
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x, self._narrow)  # type: ignore[attr-defined]
        return process


class ExactGradient(Evaluated, Process):
    """Base of processes whose rates are built from the gradient of the whole target, under a bound of `pdmp.thinning`.

    `form` says of what the signed rates are made: "directional", of v·∇U, one rate; or "partial", of each vᵢ ∂ᵢU, one
    for each coordinate.
    """

    provider: object
    thinning: object

    _required = ()

    def __init__(self, provider, thinning, form, **kwargs):
        self.model, self.anchor = provider.model, provider.anchor
        self.thinning = choose_thinning(thinning, self.model, form)
        # Compiled once for all models where nothing but the whole gradient is asked for.
        alone = not self.thinning.wants and not isinstance(self.thinning, Inversion)
        self.provider = provider.by_address if alone else provider
        self.exact_bounds = self.thinning.exact
        super().__init__(self.model.dim, **kwargs)
        self.form = form
        self.thinning.check(self.model, form, self.flow, 1 if form == "directional" else self.model.dim)

    def _keeps(self, attribute):
        return isinstance(self.thinning, Compiled) if attribute == "thinning" else super()._keeps(attribute)

    @compiled
    def evaluate(self, state, now, rng):
        """Evaluate the gradient at time `now`, unless that was the last thing done."""
        memory = state.memory
        if memory.at[0] != now:
            positions(self.flow, state, now, memory.here)
            self.provider.gradient(memory.here, memory.provider, rng, memory.gradient, state.counts)
            memory.at[0] = now

    @compiled
    def true_gradient(self, x, out):
        """∇U(x), from the model itself; for `true_rates`."""
        for j in range(x.shape[0]):
            out[j] = 0.0
        self.provider.model.add_gradient(x, out)

    @compiled
    def true_rates(self, x, v, scratch, out):
        """Of two clocks: v·∇U, and the rate of refreshments."""
        self.true_gradient(x, scratch)
        out[0] = 0.0
        for j in range(x.shape[0]):
            out[0] += v[j] * scratch[j]
        out[1] = self.refresh_rate

    # What some bounds ask for.

    @compiled
    def rate_parts(self, state, now, out):
        """The convex and concave parts of the signed rates at time `now`, into `out` (m, 3)."""
        here = state.memory.bound.here
        positions(self.flow, state, now, here)
        clear(out)
        self.provider.model.add_prior_parts(here, state.v, out)
        for i in range(self.provider.model.n_data):
            self.provider.model.add_term_parts(here, state.v, i, out)
        state.counts[DATA] += self.provider.model.n_data

    @compiled
    def rate_coefficients(self, state, now, out):
        """The coefficients of the signed rates as polynomials in the time since `now`, into `out` (m, degree + 1)."""
        here = state.memory.bound.here
        positions(self.flow, state, now, here)
        clear(out)
        self.provider.model.add_prior_coefficients(here, state.v, out)
        for i in range(self.provider.model.n_data):
            self.provider.model.add_term_coefficients(here, state.v, i, out)
        state.counts[DATA] += self.provider.model.n_data

    def describe_bound(self) -> str:
        return self.thinning.describe(self.model, self.form)

    def exact_memory(self, x: np.ndarray, rng: np.random.Generator, components: int, scaled: bool = False) -> Memory:
        """Empty `Memory` for rates with so many components; `scaled`: velocities have a metric that fits the target."""
        curvature = 1.0
        if isinstance(self.thinning, Predicted):
            curvature = 1.0 if scaled else mean_curvature(self.model, x)
        elif self.thinning.adapts:
            curvature = self.model.curvature(x) if scaled else 0.0
            if not 0.0 < curvature < math.inf:
                curvature = 1.0 if scaled else curvature_at(self.model, x, "the first width of the grid", self._narrow)
            curvature *= components
        return zeros(
            Memory,
            self.dim,
            at=np.full(1, math.nan),
            rates=np.zeros(components),
            hessian_product=np.zeros(1),
            bound=self.thinning.memory(components, self.dim, 1.0 / math.sqrt(curvature)),
            provider=self.provider.memory(rng),
            metric=NoMemory(np.zeros((2, 0))),
        )


@inlined
def clear(table):
    """Set a table to zero."""
    for j in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[j, k] = 0.0


def exact_provider(target, name):
    """The exact gradient of `target`, or a `TypeError` that says what fits."""
    provider = as_provider(target)
    if not provider.exact:
        raise TypeError(
            f"pdmp.{name} needs the exact gradient: a model or pdmp.gradients.Full(model), got a "
            f"{type(provider).__name__}. pdmp.SBPS takes mini-batches."
        )
    return provider


#: Bounds by name; those that need a number or more are given as instances.
BOUNDS = {
    "inversion": RayInversion,
    "affine": Affine,
    "constant": ModelConstant,
    "hessian": LocalHessian,
    "concave-convex": ConcaveConvex,
    "grid": Grid,
    "maxima": Maxima,
    "predicted": Predicted,
}


def choose_thinning(thinning, model, form):
    """The bound on rates of this form: a given one, the model's affine one, or what the model usually takes."""
    if isinstance(thinning, Bound):
        return thinning
    if isinstance(thinning, str) and thinning == "auto":
        affine = Affine()
        return affine if model.has(affine.method(form)) else BOUNDS[model.usual_thinning]()
    if isinstance(thinning, str) and thinning in BOUNDS:
        return BOUNDS[thinning]()
    known = ", ".join(f'"{name}"' for name in BOUNDS)
    raise ValueError(f'`thinning` must be "auto", {known} or a bound of pdmp.thinning, got {thinning!r}.')


def predicted_without_bound(cls, target, options):
    """A process of the class, with ``thinning="predicted"`` where its own choice would be the adaptive grid.

    In a learnt metric that costs a fraction of the grid's gradients.
    """
    process = cls(target, **options)
    bound = process.thinning.bound if isinstance(process.thinning, Narrow) else process.thinning
    if "thinning" in options or not isinstance(bound, Grid) or "thinning" not in inspect.signature(cls).parameters:
        return process
    return cls(target, **options, thinning="predicted")


def check_rate(name, value):
    """A finite number >= 0, or "auto"."""
    return number(name, value, least=0.0, also=("auto",))


def sphere(rng, d):
    """A point drawn uniformly from the unit sphere in d dimensions."""
    z = rng.standard_normal(d)
    return z / math.sqrt(z @ z)


def refresh_rate_at(model, x, narrow=0.0):
    """0.1 √(tr H / (2πd)): a tenth of the bounce rate on a Gaussian with the mean curvature at `x`."""
    return 0.1 * math.sqrt(curvature_at(model, x, '`refresh_rate="auto"`', narrow) / (2.0 * math.pi))


def curvature_at(model, x, what, narrow=0.0):
    """The model's mean curvature at `x`, or a `ValueError` saying that `what` needs another start.

    Where U is straight it is |∇U|² / d, its mean over the density by partial integration, and at least `narrow`, which
    is `Process._narrow`; on a kink see `over_kink`.
    """
    curvature = model.curvature(x)
    if 0.0 < curvature < math.inf:
        return over_kink(model, x, curvature)
    if curvature == 0.0:
        gradient = model.gradient(x)
        curvature = max(float(gradient @ gradient) / model.dim, narrow)
    if not 0.0 < curvature < math.inf:
        raise ValueError(
            f"{what} needs the curvature of the potential where the run starts, which is {curvature}: give `initial=` "
            "another point, or, where it is flat between the walls of pdmp.Bounded, `refresh_rate=1.0`."
        )
    return curvature
