r"""The Zig-Zag process.

=====  =================================================================================================
flow   straight lines, x + v s, |vᵢ| the speed of coordinate i
clock  d Poisson clocks. Quadratic targets: one each, inverted exactly, and an event redraws only those of
       its neighbours. Otherwise their superposition: one clock, by thinning under a bound on Σᵢ (vᵢ ∂ᵢU)₊
rate   (vᵢ ∂ᵢU(x))₊ + γᵢ, coordinate i; the superposition's is the sum, and i is drawn in proportion
jump   vᵢ ← -vᵢ
=====  =================================================================================================

With a metric M that is not diagonal the velocity is v = L s, with signs s and L Lᵀ = M⁻¹, and coordinate i is for sᵢ:

=====  =================================================================================================
clock  one for all signs, by thinning under a bound on Σᵢ (sᵢ aᵢ)₊, a = Lᵀ∇U
rate   (sᵢ aᵢ)₊ + γᵢ
jump   sᵢ ← -sᵢ, v = L s
=====  =================================================================================================

which is the Zig-Zag process of the target in coordinates y, x = L y. It changes all of v at each event, and so costs d²
operations.

The excess rates γᵢ >= 0 do not change the law that is sampled: they are the same before and after a flip. With
mini-batches in place of ∂ᵢU the rates are those of `pdmp.processes.subsampled_zigzag`.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47 (rates: eq. 3; thinning: section 3). Bierkens, Grazzi, van der Meulen & Schauer (2020), A
piecewise deterministic Monte Carlo method for diffusion bridges (local form). Bierkens & Verduyn Lunel (2022), Spectral
analysis of the zigzag process, Ann. Inst. H. Poincaré 58 (excess rates).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.factors.sums import SumPartials, local_graph, neighbours_of
from pdmp.flow import Linear
from pdmp.gradients import ControlVariate, Minibatch, Provider, as_provider
from pdmp.metric import WORDS, Diagonal, Metric, check_metric, dense, make_metric
from pdmp.models.base import Model
from pdmp.models.capabilities import missing, require
from pdmp.native.arguments import per_coordinate
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.process import CERTAIN, Defaults, Process, State
from pdmp.processes.exact import ExactGradient, predicted_without_bound
from pdmp.processes.subsampled_zigzag import SubsampledRates
from pdmp.processes.walls import Walls
from pdmp.thinning.affine import Affine, Inversion
from pdmp.thinning.bound import Bound, draw_component
from pdmp.thinning.constant import constant_arrival
from pdmp.thinning.enclosures import Enclosures
from pdmp.thinning.grid import Grid
from pdmp.thinning.maxima import Maxima
from pdmp.thinning.predicted import Predicted


class ZigZag(Walls, ExactGradient):
    """Zig-Zag process of exp(-U), with the exact gradient or exactly sub-sampled.

    A model or `pdmp.gradients.Full` stands for the exact gradient. With `pdmp.gradients.Minibatch` or
    `pdmp.gradients.ControlVariate` each proposal evaluates one fresh batch only, and the law sampled is still exp(-U),
    without any error: the model's bounds on single terms bound the rates.

    Parameters
    ----------
    provider : Model, pdmp.gradients.Full, Minibatch or ControlVariate
        What to sample. Batches must be drawn independently: ``draw="iid"`` or ``"distinct"``, ``"uniform"`` or
        ``"importance"``. Batches of one term are best, unless reading a datum from memory costs much more than
        evaluating it.
    thinning : "auto", "inversion", "affine", "local", "grid", "predicted" or a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse, so that the cost of an
        event does not depend on the dimension. "affine": the model's bounds on the derivatives of the rates in time,
        exact. "local": for models of `pdmp.terms`, a clock for each coordinate, under enclosures of the terms' second
        derivatives over the next piece of path, exact; an event costs what its neighbours cost, so "auto" takes it
        where terms have few coordinates. "grid": the adaptive grid for targets that give none; its violations are
        counted. "auto" takes the first of these that the model supports, and is the only choice for batches: the
        model's bounds on single terms. "predicted": a bound predicted from the last gradient, one gradient a proposal;
        its violations are counted.
    metric : None, float, array_like of shape (dim,) or (dim, dim), Metric, "auto", "diagonal" or "dense", default None
        M. Of a diagonal one 1 / √Mᵢᵢ is the speed |vᵢ| of each coordinate; speeds are given by
        ``pdmp.Metric(scales=...)``. "auto" and "diagonal": the diagonal of the Hessian where the run starts, so that a
        unit of time is about a standard deviation in every coordinate. With a matrix, for the exact gradient,
        velocities are L s with signs s and L Lᵀ = M⁻¹, L lower triangular; "dense" is the Hessian of U at the mode. A
        matrix takes the bounds "affine", of targets with bounds on the Hessian, where it inverts rates of quadratic
        targets exactly; "grid", "maxima" and "predicted". None: all speeds are 1.
    refresh_rate : float or array_like of shape (dim,), default 0.0
        γᵢ >= 0: rate at which each coordinate flips whatever the potential does, for each unit of time.

    Raises
    ------
    TypeError
        For noise that is not a batch, or batches that are not drawn independently.
    ValueError
        For thinning or batches that the model has no bounds for, negative rates, a metric that is not positive
        definite, or a matrix with batches.

    See Also
    --------
    pdmp.gradients.ControlVariate : One datum a proposal, without bias.
    pdmp.Sticky : Coefficients that may be zero.
    pdmp.BPS : All coordinates change at each event.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.gradients.ControlVariate(model, size=1)), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    rates: object  #: `ExactRates`, `PreconditionedRates` with a metric, or `SubsampledRates` for batches
    one_clock: bool  #: whether one clock stands for all coordinates, at the sum of their rates
    refresh_rate: np.ndarray  #: γ, (d,)
    total_refresh_rate: float  #: Σ γ

    events = ("flip",)
    wall_rule = "flip"

    def __init__(
        self,
        provider: Provider | Model,
        thinning: str | Bound = "auto",
        *,
        metric: ArrayLike | Metric | str | None = None,
        refresh_rate: ArrayLike = 0.0,
    ) -> None:
        provider = as_provider(provider, "provider")
        metric = check_metric(metric, provider.dim, "pdmp.ZigZag", WORDS)
        metric = metric if metric is None or isinstance(metric, str) else dense(metric)
        self.speed: np.ndarray | str = np.ones(provider.dim)
        if metric == "auto" or metric == "diagonal":
            self.speed, metric = "auto", None
        elif isinstance(metric, Diagonal):
            self.speed, metric = metric.root, None
        if metric is not None and not provider.exact:
            raise ValueError('`metric` of pdmp.ZigZag must be diagonal, or "auto", with batches.')
        self.metric = metric
        self.refresh_rate = per_coordinate("refresh_rate", refresh_rate, provider.dim, zero=True)
        self.total_refresh_rate = float(self.refresh_rate.sum())
        options, form = {"local": metric is None}, "partial"
        if isinstance(provider, (Minibatch, ControlVariate)):
            if thinning != "auto":
                raise ValueError(
                    f'`thinning` must be "auto" for batches: bounds are the model\'s on single terms; got {thinning!r}.'
                )
            self.rates = SubsampledRates(provider, self.speed)
            provider, thinning = self.rates.provider, self.rates.bounds
        elif provider.exact and metric is not None:
            form, self.wall_rule, self.rates = "preconditioned", None, ExactRates()
            thinning = choose_bound(thinning, provider.model)
            if isinstance(metric, Compiled):
                self.rates = PreconditionedRates(metric, provider.model)
        elif provider.exact:
            self.rates = ExactRates()
            affine = provider.model.has("affine_partial")
            if isinstance(thinning, str) and (thinning == "auto" and affine or thinning == "inversion"):
                thinning = Inversion()
            if isinstance(thinning, Inversion):
                asked = '`thinning="inversion"` needs'
                require(provider.model, asked, "affine_partial", instead='Use thinning="auto".')
                options |= {"clocks": provider.dim, "dependents": provider.model.neighbours()}
            elif isinstance(thinning, str) and thinning in ("auto", "local"):
                graph = local_graph(provider.model, needed=thinning == "local")
                if graph is not None:
                    thinning = Enclosures(SumPartials(provider.model, graph, Linear()))
                    options |= {"clocks": provider.dim, "dependents": neighbours_of(graph)}
        else:
            raise TypeError(
                "pdmp.ZigZag needs the exact gradient, or batches under bounds on single terms: a model or one of "
                f"pdmp.gradients.Full, Minibatch and ControlVariate, got a {type(provider).__name__}. pdmp.SBPS takes "
                "any noise."
            )
        super().__init__(provider, thinning, form, **options)
        self.one_clock = not isinstance(self.thinning, (Inversion, Enclosures))

    @compiled
    def clock(self, state, i, now, rng):
        return self.rates.propose(self, state, i, now, rng)

    @compiled
    def rate(self, state, i, now, rng):
        return self.rates.rate(self, state, i, now, rng)

    @compiled
    def touches(self, state, i):
        j = state.memory.flipping[0] if self.one_clock else i
        return j, j + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def jump(self, state, i, now, rng):
        j = state.memory.flipping[0] if self.one_clock else i
        self.rates.flip(state, j)
        return 0

    # What the bounds ask for: the signed rates vᵢ ∂ᵢU, and what the model knows of them and of their slopes.

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        self.rates.signed_rates(state, out)

    @compiled
    def predict(self, state, now, rng, rates, rises, squares):
        """For `pdmp.thinning.Predicted`: the rates, and vᵢ² or sᵢ², by which they rise for the Hessian I or M."""
        self.signed_rates(state, now, rng, rates)
        for j in range(squares.shape[0]):
            squares[j] = self.rates.square(state, j)
        return 0.0, math.inf

    @compiled
    def rate_slope_bounds(self, state, out):
        self.rates.slope_bounds(self.provider.model, state, out)

    @compiled
    def rate_bounds(self, state, out):
        self.provider.model.partial_derivative_bounds(state.v, out)

    @compiled
    def rate_slope_bounds_within(self, state, now, s, out):
        self.provider.model.partial_curvature_bounds_within(state.memory.here, state.v, s, out)

    @compiled
    def affine_partial(self, state, i, now):
        return self.provider.model.affine_partial(state.x, state.v, state.moved, now, i)

    @compiled
    def true_rates(self, x, v, scratch, out):
        self.rates.true_rates(self, x, v, scratch, out)

    @compiled
    def channel(self, state, i):
        return state.memory.flipping[0] if self.one_clock else i

    def describe_bound(self) -> str:
        return self.rates.describe_bound(self)

    def changes(self) -> tuple[np.ndarray, np.ndarray] | None:
        return None if self.one_clock else (np.arange(self.dim + 1), np.arange(self.dim))

    def channels(self) -> list[str]:
        return [f"coordinate {j}" for j in range(self.dim)]

    def among_moving(self) -> Process:
        return self if self.metric is None else Defaults.among_moving(self)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> ZigZag:
        """With a diagonal one, where only variances were learnt or the gradient is estimated from batches."""
        diagonal = learnt.root.ndim == 1 or not as_provider(target).exact
        own = Metric(scales=np.sqrt(learnt.variances)) if diagonal else learnt.mass
        return predicted_without_bound(cls, target, {"metric": own} | options)

    def resolve(self, x: np.ndarray) -> ZigZag:
        process = super().resolve(x)
        if self.metric is not None and not isinstance(self.rates, PreconditionedRates):
            process.rates = PreconditionedRates(make_metric("auto", self.model, x), self.model)
        if isinstance(process.speed, str):
            process.speed = speeds_at(self.model, x)
            if isinstance(self.rates, SubsampledRates):
                process.rates = SubsampledRates(self.provider, process.speed)
                process.provider, process.thinning = process.rates.provider, process.rates.bounds
        return process

    def identity(self) -> tuple:
        """By what checkpoints tell it from others of the same fields."""
        return (self.speed,)  # only `velocity` knows it, and a checkpoint has velocities already

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        signs = rng.choice([-1.0, 1.0], self.dim)
        if isinstance(self.rates, PreconditionedRates):
            return self.rates.metric.transform(signs)
        return signs * self.speed

    def prepare(self, state: State) -> None:
        if isinstance(self.rates, PreconditionedRates):
            state.memory.metric.u[:] = np.sign(self.rates.metric.inverse(state.v))

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return self.rates.memory(self, x, rng)


class ExactRates(Compiled):
    """The rates (vᵢ ∂ᵢU)₊ + γᵢ of the exact gradient, under one of the bounds of `pdmp.thinning`."""

    @compiled
    def flip(self, state, j):
        state.v[j] = -state.v[j]

    @compiled
    def signed_rates(self, state, out):
        """vⱼ ∂ⱼU, from the gradient in the memory."""
        for j in range(out.shape[0]):
            out[j] = state.v[j] * state.memory.gradient[j]

    @compiled
    def square(self, state, j):
        return state.v[j] * state.v[j]

    @compiled
    def slope_bounds(self, model, state, out):
        """Bounds on the derivatives of the signed rates in time."""
        model.partial_curvature_bounds(state.v, out)

    @compiled
    def propose(self, process, state, i, now, rng):
        """The bound proposes flips at (vᵢ ∂ᵢU)₊; those at γᵢ come by themselves, and are certain."""
        time, bound = process.thinning.propose(process, state, i, now, rng)
        rate = process.total_refresh_rate if process.one_clock else process.refresh_rate[i]
        excess = now + constant_arrival(rate, rng)
        if excess < time:
            time, bound = excess, CERTAIN
            if process.one_clock:
                state.memory.flipping[0] = draw_component(process.refresh_rate, rng.random() * rate)
        return time, bound

    @compiled
    def rate(self, process, state, i, now, rng):
        if not process.one_clock:
            return positive_part(process.thinning.rate_of(process, state, i, now))
        rates = state.memory.rates
        process.signed_rates(state, now, rng, rates)
        process.thinning.observe(process, state, 0, now, rng)
        total = 0.0
        for j in range(rates.shape[0]):
            total += positive_part(rates[j])
        state.memory.flipping[0] = draw_component(rates, rng.random() * total)
        return total

    @compiled
    def true_rates(self, process, x, v, scratch, out):
        process.true_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = v[j] * scratch[j]
            if process.refresh_rate[j] > 0.0:
                out[j] = positive_part(out[j]) + process.refresh_rate[j]

    def describe_bound(self, process):
        return process.thinning.describe(process.model, process.form)

    def memory(self, process, x, rng):
        return process.exact_memory(x, rng, components=process.dim)


class PreconditionedRates(ExactRates):
    """The rates (sᵢ aᵢ)₊ + γᵢ, a = Lᵀ∇U, of velocities v = L s.

    With bounds C - R <= H(x) <= C + R on the Hessians of U the derivative of sᵢ aᵢ in time, sᵢ (LᵀH L s)ᵢ, is at most
    sᵢ (LᵀC L s)ᵢ + √((LᵀR L)ᵢᵢ sᵀLᵀR L s). Of a quadratic potential R = 0, and that is the derivative itself.
    """

    metric: object
    root: np.ndarray  #: (d, d) L, lower triangular
    middle: np.ndarray  #: (d, d) LᵀC L; without bounds (0, 0)
    spread: np.ndarray  #: (d, d) LᵀR L

    def __init__(self, metric, model):
        self.metric, self.root = metric, metric.root
        self.middle, self.spread = np.zeros((0, 0)), np.zeros((0, 0))
        bounds = model.hessian_bounds()
        if bounds is not None:
            low, high = (metric.root.T @ np.asarray(bound) @ metric.root for bound in bounds)
            self.middle, self.spread = 0.5 * (low + high), 0.5 * (high - low)

    @compiled
    def flip(self, state, j):
        metric = state.memory.metric
        metric.u[j] = -metric.u[j]
        self.metric.push(metric, state.v)

    @compiled
    def signed_rates(self, state, out):
        metric = state.memory.metric
        self.metric.pull(metric, state.memory.gradient)
        for j in range(out.shape[0]):
            out[j] = metric.u[j] * metric.pulled[j]

    @compiled
    def square(self, state, j):
        return 1.0

    @compiled
    def slope_bounds(self, model, state, out):
        s, total = state.memory.metric.u, 0.0
        for j in range(out.shape[0]):
            out[j], rest = 0.0, 0.0
            for k in range(out.shape[0]):
                out[j] += self.middle[j, k] * s[k]
                rest += self.spread[j, k] * s[k]
            out[j] *= s[j]
            total += s[j] * rest
        for j in range(out.shape[0]):
            out[j] += math.sqrt(positive_part(self.spread[j, j]) * positive_part(total))

    @compiled
    def true_rates(self, process, x, v, scratch, out):
        process.true_gradient(x, scratch)
        for j in range(x.shape[0]):  # s = L⁻¹v
            out[j] = v[j]
            for k in range(j):
                out[j] -= self.root[j, k] * out[k]
            out[j] /= self.root[j, j]
        for j in range(x.shape[0]):
            pulled = 0.0
            for k in range(j, x.shape[0]):
                pulled += self.root[k, j] * scratch[k]
            out[j] *= pulled
            if process.refresh_rate[j] > 0.0:
                out[j] = positive_part(out[j]) + process.refresh_rate[j]

    def memory(self, process, x, rng):
        return process.exact_memory(x, rng, components=process.dim, scaled=True)._replace(metric=self.metric.memory(x))


class HessianBounds(Affine):
    """Of `PreconditionedRates`: Σ max(0, aᵢ + bᵢ t), bᵢ from the model's bounds on its Hessian."""

    name = "the bound by the model's `hessian_bounds`"
    wants = ()


def choose_bound(thinning, model):
    """The bound on the rates of a Zig-Zag process with a metric, from what the user said."""
    if isinstance(thinning, str) and thinning in ("auto", "affine") or type(thinning) is Affine:
        if model.hessian_bounds() is not None:
            return HessianBounds()
        if thinning != "auto":
            asked = '`thinning="affine"` with a `metric` needs'
            raise ValueError(missing(model, "hessian_bounds", asked, 'Use "grid" or "predicted".'))
        return Grid()
    if isinstance(thinning, str) and thinning in ("grid", "maxima", "predicted"):
        return {"grid": Grid, "maxima": Maxima, "predicted": Predicted}[thinning]()
    if isinstance(thinning, (Grid, Maxima, Predicted)):
        return thinning
    raise ValueError(
        f'`thinning` with a `metric` must be "auto", "affine", "grid", "maxima", "predicted" or one of the last three '
        f"of pdmp.thinning, got {thinning!r}."
    )


def speeds_at(model, x):
    """1 / √Hᵢᵢ with the Hessian H at `x`."""
    curvatures = model.curvatures(x)
    if not np.all((curvatures > 0.0) & np.isfinite(curvatures)):
        j = int(np.flatnonzero(~((curvatures > 0.0) & np.isfinite(curvatures)))[0])
        raise ValueError(
            f'`metric="auto"` needs positive curvatures where the run starts, and that of coordinate {j} is '
            f"{curvatures[j]:g}: give `metric` as numbers, or another `initial`."
        )
    return 1.0 / np.sqrt(curvatures)
