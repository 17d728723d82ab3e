r"""The Coordinate Sampler.

=====  ===================================================================================================
flow   straight lines, x + v s; one coordinate moves at a time, v in {±e_1, …, ±e_d}
clock  switch: Poisson, inverted exactly for quadratic targets, by thinning for others; refreshment: Poisson
       of constant rate λ₀
rate   (v·∇U(x))₊ = (± ∂_cU(x))₊ of the coordinate c that moves; with the refreshment λ(x, v) = (v·∇U)₊ + λ₀
jump   at either: the next velocity v* is drawn with a probability in proportion to λ(x, -v*), that is, among
       the ± of all coordinates, to (∓ ∂ⱼU(x))₊ + λ₀
=====  ===================================================================================================

The weights |∂ⱼU| + 2 λ₀ of the coordinates only change where the coordinate that moved has neighbours. On quadratic
targets they are kept in a binary tree of partial sums, so an event costs what the neighbours cost, times log d.

References
----------
Wu & Robert (2020), Coordinate sampler: a non-reversible Gibbs-like MCMC sampler, Stat. Comput. 30, section 3 (rate and
transition kernel: 3.1).
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from pdmp.gradients import Provider
from pdmp.interfaces.recipe import Recipe
from pdmp.models.base import Model
from pdmp.models.capabilities import require
from pdmp.native.classes import Compiled, compiled, entry, inlined, positive_part
from pdmp.process import CERTAIN, State
from pdmp.processes import exact
from pdmp.processes.exact import ExactGradient, Refreshed, check_rate, exact_provider
from pdmp.processes.walls import Walls
from pdmp.thinning import Affine, Grid, Inversion, Maxima
from pdmp.thinning.bound import Bound
from pdmp.thinning.constant import constant_arrival

SWITCH, REFRESH = 0, 1

#: What the exact gradient's processes keep, and: the tree of |∂ⱼU| with the partial derivatives themselves in
#: `gradient`; the coordinate that moves (1,); the one that moves next and its direction (2,); bounds on ∂²U/∂xⱼ² (d,).
Memory = namedtuple("Memory", (*exact.Memory._fields, "tree", "moving", "following", "curvatures"))


class CoordinateSampler(Walls, Refreshed, ExactGradient):
    """Coordinate Sampler of exp(-U) with the exact gradient and unit speed.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    refresh_rate : float or "auto", default "auto"
        λ₀, per unit of time (a time unit is a unit of length). "auto": 0.1 √(tr H / (2πd)) with the Hessian H where the
        run starts. With 0 the process need not be ergodic.
    thinning : "auto", "inversion", "affine", "grid", "maxima", or such a bound of `pdmp.thinning`
        "inversion": exact arrivals for quadratic targets, local when their Hessian is sparse. "affine": the model's
        bounds on the slopes of the rates, exact. "grid": the adaptive grid for targets that give none; its violations
        are counted. "auto" takes the first of these that the model supports.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For a negative or non-finite rate, or thinning that the model does not support.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.CoordinateSampler(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    partials: Compiled
    refresh_rate: float

    events = ("switch", "refresh")
    recipe = Recipe(featured=False)
    wall_rule = "flip"  # of all coordinates one moves, so that it goes back the way it came

    def __init__(
        self, target: Model | Provider, refresh_rate: float | str = "auto", thinning: str | Bound = "auto"
    ) -> None:
        provider = exact_provider(target, type(self).__name__)
        model = provider.model
        affine = model.has("affine_partial")
        if isinstance(thinning, str) and (thinning == "auto" and affine or thinning == "inversion"):
            require(model, '`thinning="inversion"` needs', "affine_partial", instead='Use thinning="auto".')
            thinning = Inversion()
        elif isinstance(thinning, str) and thinning == "auto" and not model.has("partial_curvature_bounds"):
            thinning = "grid"  # bounds within a distance are of all coordinates, of which one moves here
        if not isinstance(thinning, (str, Inversion, Affine, Grid, Maxima)):
            raise ValueError(
                f"`thinning` of pdmp.CoordinateSampler must be a name or an Inversion, Affine, Grid or Maxima of "
                f"pdmp.thinning, got {thinning!r}."
            )
        if isinstance(thinning, str) and thinning not in ("auto", "affine", "grid", "maxima"):
            raise ValueError(f'`thinning` must be "auto", "inversion", "affine", "grid" or "maxima", got {thinning!r}.')
        super().__init__(provider, thinning, "partial", clocks=2, dependents=[[SWITCH], [SWITCH, REFRESH]], local=True)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        inverted = isinstance(self.thinning, Inversion)
        self.partials = Neighbours(model) if inverted else Gradient()
        # An event changes two coordinates, whichever they are: see `coordinate`.
        self.scope, self.scope_start = np.zeros(4, np.int64), np.array([0, 2, 4])

    @compiled
    def clock(self, state, i, now, rng):
        if i == SWITCH:
            time, bound = self.thinning.propose(self, state, state.memory.moving[0], now, rng)
        else:
            time, bound = now + constant_arrival(self.refresh_rate, rng), CERTAIN
        # `rate` draws the coordinate that moves next. The engine does not call it where the bound is `CERTAIN`, so a
        # finite one is returned instead.
        return time, 1.0 if bound == CERTAIN else bound

    @compiled
    def rate(self, state, i, now, rng):
        rate = self.partials.rate(self, state, now, rng)
        total = self.partials.total(state)
        if not math.isfinite(total):
            return total
        self.draw(state, total, rng)
        return state.bounds[i] if i == REFRESH else rate

    @compiled
    def draw(self, state, total, rng):
        """The coordinate that moves next and its direction, with weights (∓ ∂ⱼU)₊ + λ₀; `total`: Σ |∂ⱼU|."""
        memory, size = state.memory, self.provider.model.dim
        constant = 2.0 * size * self.refresh_rate
        rest = rng.random() * (total + constant)
        if rest < constant or total == 0.0:
            k = int(2.0 * size * rng.random())
            memory.following[0], memory.following[1] = k // 2, 1 - 2 * (k % 2)
        else:
            j = self.partials.find(state, rest - constant)
            memory.following[0], memory.following[1] = j, -1 if memory.gradient[j] > 0.0 else 1

    @compiled
    def touches(self, state, i):
        old, new = state.memory.moving[0], state.memory.following[0]
        pair = 2 * (old * self.provider.model.dim + new)
        return pair, pair + (1 if old == new else 2)

    @compiled
    def coordinate(self, k):
        """Of the pairs (old, new) that `touches` numbers, the old one for an even k, the new one for an odd k."""
        pair = k // 2
        return pair // self.provider.model.dim if k % 2 == 0 else pair % self.provider.model.dim

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        state.v[memory.moving[0]] = 0.0
        memory.moving[0] = memory.following[0]
        state.v[memory.moving[0]] = memory.following[1]
        return i

    # What bounds ask for: the one signed rate ± ∂_cU, and a bound on its derivative in time, ∂²U/∂x_c².

    @compiled
    def signed_rates(self, state, now, rng, out):
        self.evaluate(state, now, rng)
        c = state.memory.moving[0]
        out[0] = state.v[c] * state.memory.gradient[c] if math.isfinite(self.partials.total(state)) else math.nan

    @compiled
    def rate_slope_bounds(self, state, out):
        out[0] = state.memory.curvatures[state.memory.moving[0]]

    @compiled
    def affine_partial(self, state, j, now):
        return self.provider.model.affine_partial(state.x, state.v, state.moved, now, j)

    # -- Python -----------------------------------------------------------------------------------------------------

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = np.zeros(self.dim)
        v[rng.integers(self.dim)] = rng.choice([-1.0, 1.0])
        return v

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        kept = self.exact_memory(x, rng, components=1)
        tree, curvatures = np.zeros(0), np.zeros(0)
        if isinstance(self.partials, Neighbours):
            kept.gradient[:] = self.model.gradient(x)
            tree = sums(np.abs(kept.gradient))
        elif self.thinning.exact:
            curvatures = np.zeros(self.dim)
            _curvatures(self.model.native, np.zeros(self.dim), np.zeros(self.dim), curvatures)
        return Memory(  # type: ignore[call-arg]  # its fields are those of another record and these
            *kept, tree=tree, moving=np.zeros(1, np.int64), following=np.zeros(2, np.int64), curvatures=curvatures
        )

    def prepare(self, state: State) -> None:
        state.memory.moving[0] = np.argmax(np.abs(state.v))


class Gradient(Compiled):
    """The partial derivatives of a target from its whole gradient, at each proposal."""

    @compiled
    def rate(self, process, state, now, rng):
        process.evaluate(state, now, rng)
        c = state.memory.moving[0]
        return positive_part(state.v[c] * state.memory.gradient[c])

    @compiled
    def total(self, state):
        total = 0.0
        for j in range(state.memory.gradient.shape[0]):
            total += abs(state.memory.gradient[j])
        return total

    @compiled
    def find(self, state, rest):
        """The j where the partial sums of |∂ⱼU| first exceed `rest`."""
        gradient, last = state.memory.gradient, 0
        for j in range(gradient.shape[0]):
            if gradient[j] != 0.0:
                last = j
                rest -= abs(gradient[j])
                if rest < 0.0:
                    break
        return last


class Neighbours(Compiled):
    """The partial derivatives of a quadratic target: those of the neighbours of what moved, in a tree of sums.

    Node n of the tree holds the sum of its children 2n and 2n + 1, the root is node 1, and the leaves are the |∂ⱼU|.
    """

    indptr: np.ndarray
    indices: np.ndarray

    def __init__(self, model):
        self.indptr, self.indices = model.neighbours()

    @compiled
    def rate(self, process, state, now, rng):
        memory, c = state.memory, state.memory.moving[0]
        for k in range(self.indptr[c], self.indptr[c + 1]):
            j = self.indices[k]
            memory.gradient[j] = process.affine_partial(state, j, now)[0]
            update(memory.tree, j, abs(memory.gradient[j]))
        return state.bounds[SWITCH]  # inverted: certain

    @compiled
    def total(self, state):
        return state.memory.tree[1]

    @compiled
    def find(self, state, rest):
        """The j where the partial sums of |∂ⱼU| first exceed `rest`."""
        return find(state.memory.tree, rest)


def sums(leaves):
    """The tree of partial sums over these numbers (d,) >= 0, filled up with zeros to a power of two."""
    width = 1 << max(len(leaves) - 1, 1).bit_length()
    tree = np.zeros(2 * width)
    tree[width : width + len(leaves)] = leaves
    for n in range(width - 1, 0, -1):
        tree[n] = tree[2 * n] + tree[2 * n + 1]
    return tree


@inlined
def update(tree, j, leaf):
    """Change leaf j and the sums above it."""
    n = (tree.shape[0] >> 1) + j
    tree[n] = leaf
    while n > 1:
        n >>= 1
        tree[n] = tree[2 * n] + tree[2 * n + 1]


@inlined
def find(tree, rest):
    """The leaf where the partial sums first exceed `rest` < tree[1]; never one that is zero."""
    n, width = 1, tree.shape[0] >> 1
    while n < width:
        n *= 2
        if rest >= tree[n] and tree[n + 1] > 0.0:
            rest -= tree[n]
            n += 1
    return n - width


@entry
def _curvatures(model, v, slopes, out):
    """Bounds on the diagonal of the Hessian: on the slopes of the partial derivatives, one direction at a time."""
    for j in range(v.shape[0]):
        v[j] = 1.0
        model.partial_curvature_bounds(v, slopes)
        out[j] = slopes[j]
        v[j] = 0.0
