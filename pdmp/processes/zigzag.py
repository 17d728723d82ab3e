r"""The Zig-Zag process.

=====  =================================================================================================
flow   straight lines, x + v s, |vᵢ| the speed of coordinate i
clock  d Poisson clocks. Quadratic targets: one each, inverted exactly, and an event redraws only those of
       its neighbours. Otherwise their superposition: one clock, by thinning under a bound on Σᵢ (vᵢ ∂ᵢU)₊
rate   (vᵢ ∂ᵢU(x))₊ + γᵢ, coordinate i; the superposition's is the sum, and i is drawn in proportion
jump   vᵢ ← -vᵢ
=====  =================================================================================================

The excess rates γᵢ >= 0 do not change the law that is sampled: they are the same before and after a flip. With
mini-batches in place of ∂ᵢU it is `pdmp.processes.subsampled_zigzag`.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47 (rates: eq. 3; thinning: section 3). Bierkens, Grazzi, van der Meulen & Schauer (2020), A
piecewise deterministic Monte Carlo method for diffusion bridges (local form). Bierkens & Verduyn Lunel (2022), Spectral
analysis of the zigzag process, Ann. Inst. H. Poincaré 58 (excess rates).
"""

from __future__ import annotations

import numpy as np

from pdmp.gradients import ControlVariate, Minibatch, as_provider
from pdmp.native.classes import compiled, positive
from pdmp.process import CERTAIN
from pdmp.processes.exact import ExactGradient
from pdmp.processes.walls import Walls
from pdmp.thinning.affine import Inversion


class ZigZag(Walls, ExactGradient):
    """Zig-Zag process of exp(-U), with the exact gradient or exactly sub-sampled.

    A model or `pdmp.gradients.Full` stands for the exact gradient. With `pdmp.gradients.Minibatch` or
    `pdmp.gradients.ControlVariate` each proposal looks at the data of one fresh batch only and the law sampled is still
    exp(-U), without any error: the model's bounds on single terms bound the rates.

    Parameters
    ----------
    provider : Model, pdmp.gradients.Full, Minibatch or ControlVariate
        What to sample. Batches must be drawn independently: ``draw="iid"`` or ``"distinct"``, ``"uniform"`` or
        ``"importance"``. One term a batch is best, unless reading a datum is much more than looking at it.
    thinning : "auto", "inversion", "affine", "grid" or a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse, so that the cost of an
        event does not depend on the dimension. "affine": the model's bounds on the slopes of the rates, exact.
        "grid": the adaptive grid for targets that give none; its violations are counted. "auto" takes the first of
        these that the model supports, and is the only choice for batches: the model's bounds on single terms.
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
    """

    single: int  #: 1: one clock for the sum of the rates; 0: a clock for each coordinate
    refresh_rate: np.ndarray  #: γ, (d,)
    total_refresh_rate: float  #: Σ γ

    events = ("flip",)
    wall_rule = "flip"

    def __new__(cls, provider=None, *args, **kwargs):
        if cls is ZigZag and isinstance(provider, (Minibatch, ControlVariate)):
            from pdmp.processes.subsampled_zigzag import SubsampledZigZag

            return super().__new__(SubsampledZigZag)
        return super().__new__(cls)

    def __init__(self, provider, thinning="auto", speed=1.0, refresh_rate=0.0):
        if not as_provider(provider).exact:
            raise TypeError(
                "pdmp.ZigZag needs the exact gradient, or batches under bounds on single terms: a model or one of "
                f"pdmp.gradients.Full, Minibatch and ControlVariate, got a {type(provider).__name__}. pdmp.SBPS takes "
                "any noise."
            )
        model = provider.model if hasattr(provider, "model") else None
        affine = model is not None and model.has("affine_partial")
        if isinstance(thinning, str) and (thinning == "auto" and affine or thinning == "inversion"):
            thinning = Inversion()
        if isinstance(thinning, Inversion):
            model.require('`thinning="inversion"` needs', "affine_partial", instead='Use thinning="auto".')
            super().__init__(provider, thinning, None, clocks=model.dim, dependents=model.neighbours(), local=True)
        else:
            super().__init__(provider, thinning, "partial_curvature_bounds", local=True)
        self.single = int(self.clocks == 1 and not isinstance(self.thinning, Inversion))
        self._set_speeds(speed, refresh_rate)

    def _set_speeds(self, speed, refresh_rate):
        self.speed = check_speeds(speed, self.dim)
        self.refresh_rate = check_rates(refresh_rate, self.dim)
        self.total_refresh_rate = float(self.refresh_rate.sum())

    @compiled
    def clock(self, state, i, now, rng):
        time, bound = self.thinning.propose(self, state, i, now, rng)
        rate = self.total_refresh_rate if self.single == 1 else self.refresh_rate[i]
        if rate > 0.0:
            excess = now + rng.standard_exponential() / rate
            if excess < time:
                time, bound = excess, CERTAIN
                if self.single == 1:
                    state.memory.chosen[0] = self.choose(self.refresh_rate, rng.random() * rate)
        return time, bound

    @compiled
    def rate(self, state, i, now, rng):
        rates = state.memory.rates
        self.rates(state, now, rng, rates)
        total = 0.0
        for j in range(rates.shape[0]):
            total += positive(rates[j])
        state.memory.chosen[0] = self.choose(rates, rng.random() * total)
        return total

    @compiled
    def choose(self, rates, rest):
        """The coordinate at which the running sum of the positive rates exceeds `rest`."""
        for j in range(rates.shape[0]):
            rest -= positive(rates[j])
            if rest < 0.0:
                return j
        return rates.shape[0] - 1

    @compiled
    def touches(self, state, i):
        j = state.memory.chosen[0] if self.single == 1 else i
        return j, j + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def jump(self, state, i, now, rng):
        j = state.memory.chosen[0] if self.single == 1 else i
        state.v[j] = -state.v[j]
        return 0

    # What the bounds ask for: the signed rates vᵢ ∂ᵢU, and what the model knows of them and of their slopes.

    @compiled
    def rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        for j in range(out.shape[0]):
            out[j] = state.v[j] * state.memory.gradient[j]

    @compiled
    def slopes(self, state, out):
        self.provider.model.partial_curvature_bounds(state.v, out)

    @compiled
    def levels(self, state, out):
        self.provider.model.partial_derivative_bounds(state.v, out)

    @compiled
    def slopes_within(self, state, now, s, out):
        self.provider.model.partial_curvature_bounds_within(state.memory.here, state.v, s, out)

    @compiled
    def affine_partial(self, state, i, now):
        return self.provider.model.affine_partial(state.x, state.v, state.moved, now, i)

    @compiled
    def true_rates(self, x, v, scratch, out):
        self.true_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = v[j] * scratch[j]
            if self.refresh_rate[j] > 0.0:
                out[j] = positive(out[j]) + self.refresh_rate[j]

    @compiled
    def channel(self, state, i):
        return state.memory.chosen[0] if self.single == 1 else i

    def changes(self):
        return None if self.single else (np.arange(self.dim + 1), np.arange(self.dim))

    def channels(self):
        return [f"coordinate {j}" for j in range(self.dim)]

    def resolve(self, x):
        process = super().resolve(x)
        if isinstance(process.speed, str):
            process.speed = speeds_at(self.model, x)
        return process

    def velocity(self, x, rng):
        return rng.choice([-1.0, 1.0], self.dim) * self.speed

    def memory(self, x, rng):
        return self.exact_memory(x, rng, components=self.dim)


def check_speeds(speed, dim):
    """Positive speeds (dim,), or "auto"."""
    if isinstance(speed, str) and speed == "auto":
        return speed
    return _check_vector("speed", speed, dim, lambda s: s > 0.0, 'positive and finite, or "auto"')


def check_rates(rate, dim):
    """Rates >= 0, (dim,)."""
    return _check_vector("refresh_rate", rate, dim, lambda r: r >= 0.0, "at least 0 and finite")


def _check_vector(name, value, dim, right, allowed):
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be {allowed}, a number or of shape ({dim},), got {value!r}.") from None
    if array.shape not in ((), (dim,)) or not np.all(right(array) & np.isfinite(array)):
        raise ValueError(f"`{name}` must be {allowed}, a number or of shape ({dim},), got {value}.")
    return np.broadcast_to(array, (dim,)).copy()


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
