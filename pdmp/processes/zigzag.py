r"""The Zig-Zag process.

=====  =================================================================================================
flow   straight lines, x + v s, |vᵢ| the speed of coordinate i
clock  d Poisson clocks. Quadratic targets: one each, inverted exactly, and an event redraws only those of
       its neighbours. Otherwise their superposition: one clock, by thinning under a bound on Σᵢ (vᵢ ∂ᵢU)₊
rate   (vᵢ ∂ᵢU(x))₊ + γᵢ, coordinate i; the superposition's is the sum, and i is drawn in proportion
jump   vᵢ ← -vᵢ
=====  =================================================================================================

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

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import ControlVariate, Minibatch, Provider, as_provider
from pdmp.models.base import Model
from pdmp.native.arguments import per_coordinate
from pdmp.native.classes import Compiled, compiled, positive
from pdmp.process import CERTAIN
from pdmp.processes.exact import ExactGradient
from pdmp.processes.subsampled_zigzag import SubsampledRates
from pdmp.processes.walls import Walls
from pdmp.thinning.affine import Inversion
from pdmp.thinning.bound import Bound, draw_component
from pdmp.thinning.constant import constant_arrival


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
    thinning : "auto", "inversion", "affine", "grid", "predicted" or a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse, so that the cost of an
        event does not depend on the dimension. "affine": the model's bounds on the derivatives of the rates in time,
        exact. "grid": the adaptive grid for targets that give none; its violations are counted. "auto" takes the first
        of these that the model supports, and is the only choice for batches: the model's bounds on single terms.
        "predicted": a bound predicted from the last gradient, one gradient a proposal; its violations are counted.
    speed : float, array_like of shape (dim,) or "auto", default 1.0
        |vᵢ|, the speed of each coordinate: a diagonal mass matrix. "auto": 1 / √Hᵢᵢ with the Hessian where the run
        starts, so that a unit of time is about a standard deviation in every coordinate.
    refresh_rate : float or array_like of shape (dim,), default 0.0
        γᵢ >= 0: rate at which each coordinate flips whatever the potential does, for each unit of time.

    Raises
    ------
    TypeError
        For noise that is not a batch, or batches that are not drawn independently.
    ValueError
        For thinning or batches that the model has no bounds for, speeds that are not positive, or negative rates.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.gradients.ControlVariate(model, size=1)), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    rates: object  #: `ExactRates`, or `SubsampledRates` for batches
    one_clock: bool  #: whether one clock stands for all coordinates, at the sum of their rates
    refresh_rate: np.ndarray  #: γ, (d,)
    total_refresh_rate: float  #: Σ γ

    events = ("flip",)
    wall_rule = "flip"

    def __init__(
        self,
        provider: Provider | Model,
        thinning: str | Bound = "auto",
        speed: ArrayLike | str = 1.0,
        refresh_rate: ArrayLike = 0.0,
    ) -> None:
        provider = as_provider(provider, "provider")
        self.speed = per_coordinate("speed", speed, provider.dim, also=("auto",))
        self.refresh_rate = per_coordinate("refresh_rate", refresh_rate, provider.dim, zero=True)
        self.total_refresh_rate = float(self.refresh_rate.sum())
        options = {"local": True}
        if isinstance(provider, (Minibatch, ControlVariate)):
            if thinning != "auto":
                raise ValueError(
                    f'`thinning` must be "auto" for batches: bounds are the model\'s on single terms; got {thinning!r}.'
                )
            self.rates = SubsampledRates(provider, self.speed)
            provider, thinning = self.rates.provider, self.rates.bounds
        elif provider.exact:
            self.rates = ExactRates()
            affine = provider.model.has("affine_partial")
            if isinstance(thinning, str) and (thinning == "auto" and affine or thinning == "inversion"):
                thinning = Inversion()
            if isinstance(thinning, Inversion):
                asked = '`thinning="inversion"` needs'
                provider.model.require(asked, "affine_partial", instead='Use thinning="auto".')
                options |= {"clocks": provider.dim, "dependents": provider.model.neighbours()}
        else:
            raise TypeError(
                "pdmp.ZigZag needs the exact gradient, or batches under bounds on single terms: a model or one of "
                f"pdmp.gradients.Full, Minibatch and ControlVariate, got a {type(provider).__name__}. pdmp.SBPS takes "
                "any noise."
            )
        super().__init__(provider, thinning, "partial", **options)
        self.one_clock = not isinstance(self.thinning, Inversion)

    @compiled
    def clock(self, state, i, now, rng):
        return self.rates.propose(self, state, i, now, rng)

    @compiled
    def rate(self, state, i, now, rng):
        return self.rates.rate(self, state, now, rng)

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
        state.v[j] = -state.v[j]
        return 0

    # What the bounds ask for: the signed rates vᵢ ∂ᵢU, and what the model knows of them and of their slopes.

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        for j in range(out.shape[0]):
            out[j] = state.v[j] * state.memory.gradient[j]

    @compiled
    def predict(self, state, now, rng, rates, rises, squares):
        """For `pdmp.thinning.Predicted`: vᵢ ∂ᵢU, and vᵢ², by which it rises in a unit of time for the Hessian I."""
        self.signed_rates(state, now, rng, rates)
        for j in range(squares.shape[0]):
            squares[j] = state.v[j] * state.v[j]
        return 0.0, math.inf

    @compiled
    def rate_slope_bounds(self, state, out):
        self.provider.model.partial_curvature_bounds(state.v, out)

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

    def resolve(self, x: np.ndarray) -> ZigZag:
        process = super().resolve(x)
        if isinstance(process.speed, str):
            process.speed = speeds_at(self.model, x)
            if isinstance(self.rates, SubsampledRates):
                process.rates = SubsampledRates(self.provider, process.speed)
                process.provider, process.thinning = process.rates.provider, process.rates.bounds
        return process

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim) * self.speed

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return self.rates.memory(self, x, rng)


class ExactRates(Compiled):
    """The rates (vᵢ ∂ᵢU)₊ + γᵢ of the exact gradient, under one of the bounds of `pdmp.thinning`."""

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
    def rate(self, process, state, now, rng):
        rates = state.memory.rates
        process.signed_rates(state, now, rng, rates)
        process.thinning.observe(process, state, 0, now, rng)
        total = 0.0
        for j in range(rates.shape[0]):
            total += positive(rates[j])
        state.memory.flipping[0] = draw_component(rates, rng.random() * total)
        return total

    @compiled
    def true_rates(self, process, x, v, scratch, out):
        process.true_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = v[j] * scratch[j]
            if process.refresh_rate[j] > 0.0:
                out[j] = positive(out[j]) + process.refresh_rate[j]

    def describe_bound(self, process):
        return process.thinning.describe(process.model, process.form)

    def memory(self, process, x, rng):
        return process.exact_memory(x, rng, components=process.dim)


def speeds_at(model, x):
    """1 / √Hᵢᵢ with the Hessian H at `x`."""
    curvatures = model.curvatures(x)
    if not np.all((curvatures > 0.0) & np.isfinite(curvatures)):
        j = int(np.flatnonzero(~((curvatures > 0.0) & np.isfinite(curvatures)))[0])
        raise ValueError(
            f'`speed="auto"` needs positive curvatures where the run starts, and that of coordinate {j} is '
            f"{curvatures[j]:g}: give `speed` as numbers, or another `initial`."
        )
    return 1.0 / np.sqrt(curvatures)
