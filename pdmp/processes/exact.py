"""What the processes with an exact gradient and one clock for the whole target share: when it was last evaluated."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.compiled import compiled
from pdmp.gradients import as_provider
from pdmp.process import Process, positions
from pdmp.thinning.affine import Affine, Inversion
from pdmp.thinning.grid import Grid


class Memory(NamedTuple):
    """Beside the path: the last gradient and what the thinning works on."""

    gradient: np.ndarray  #: (d,) ∇U at time `at`
    at: np.ndarray  #: (1,) that time; NaN before the first evaluation
    here: np.ndarray  #: (d,) the position there
    rates: np.ndarray  #: (m,) signed rates
    slopes: np.ndarray  #: (m,) bounds on their slopes
    nodes: np.ndarray  #: (3, m) signed rates in a cell of the grid
    grid: np.ndarray  #: (3,) see `pdmp.thinning.grid`
    chosen: np.ndarray  #: (1,) Zig-Zag: the coordinate that would flip
    provider: tuple


class ExactGradient(Process):
    """Base of processes whose bounce rates are built from the full gradient."""

    provider: object
    thinning: object

    _required = ()

    def __init__(self, target, thinning, slope_method, **kwargs):
        self.provider = exact_provider(target, type(self).__name__)
        self.model = self.provider.model
        self.anchor = self.provider.anchor
        self.thinning = choose_thinning(thinning, self.model, slope_method)
        self.exact_bounds = self.thinning.exact
        super().__init__(self.model.dim, **kwargs)

    @compiled
    def look(self, state, now, rng):
        """Evaluate the gradient at time `now`, unless that was the last thing done."""
        memory = state.memory
        if memory.at[0] != now:
            positions(self.flow, state, now, memory.here)
            self.provider.gradient(memory.here, memory.provider, rng, memory.gradient, state.counts)
            memory.at[0] = now

    def exact_memory(self, x, rng, components):
        """Empty `Memory` for rates with this many components."""
        curvature = 1.0
        if not self.exact_bounds:
            curvature = curvature_at(self.model, x, "the first width of the grid") * components
        return Memory(
            gradient=np.zeros(self.dim),
            at=np.full(1, math.nan),
            here=np.zeros(self.dim),
            rates=np.zeros(components),
            slopes=np.zeros(components),
            nodes=np.zeros((3, components)),
            grid=np.array([1.0 / math.sqrt(curvature), 0.0, 0.0]),
            chosen=np.zeros(1, np.int64),
            provider=self.provider.memory(rng),
        )


def exact_provider(target, name):
    """The exact gradient of `target`, or a `TypeError` that says what fits."""
    provider = as_provider(target)
    if not provider.exact:
        raise TypeError(
            f"pdmp.{name} needs the exact gradient: a model or pdmp.gradients.Full(model), got a "
            f"{type(provider).__name__}. pdmp.SBPS takes mini-batches."
        )
    return provider


def choose_thinning(thinning, model, slope_method):
    """The bound on the rate: a given one, the model's own, or the adaptive grid."""
    if thinning == "auto":
        return Affine() if model.knows(slope_method) else Grid()
    if thinning == "affine":
        if not model.knows(slope_method):
            raise ValueError(
                f'`thinning="affine"` needs a bound from the model: {type(model).__name__} has no '
                f'`{slope_method}`. Use thinning="grid".'
            )
        return Affine()
    if thinning == "grid":
        return Grid()
    if isinstance(thinning, (Affine, Grid, Inversion)):
        return thinning
    raise ValueError(f'`thinning` must be "auto", "affine", "grid" or one of pdmp.thinning, got {thinning!r}.')


def check_rate(name, value):
    """A finite number >= 0, or "auto"."""
    if isinstance(value, str) and value == "auto":
        return value
    if not isinstance(value, (int, float, np.number)) or not 0.0 <= value < math.inf:
        raise ValueError(f'`{name}` must be a number >= 0 or "auto", got {value!r}.')
    return float(value)


def sphere(rng, d):
    """A point drawn uniformly from the unit sphere in d dimensions."""
    z = rng.standard_normal(d)
    return z / math.sqrt(z @ z)


def refresh_rate_at(model, x):
    """0.1 √(tr H / (2πd)): a tenth of the bounce rate on a Gaussian with the mean curvature at `x`."""
    return 0.1 * math.sqrt(curvature_at(model, x, '`refresh_rate="auto"`') / (2.0 * math.pi))


def curvature_at(model, x, what):
    """The model's mean curvature at `x`, or a `ValueError` saying that `what` needs another start."""
    curvature = model.curvature(x)
    if not 0.0 < curvature < math.inf:
        raise ValueError(f"{what} needs the curvature of the potential where the run starts, which is {curvature}.")
    return curvature
