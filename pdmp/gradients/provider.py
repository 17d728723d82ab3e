r"""Gradient providers: estimators of ∇U, exact or from mini-batches, that every sampler takes.

==========================  =====================================================================================
`Full`                      the exact gradient, all terms at each call; what a bare model stands for
`Minibatch`                 a mini-batch of the terms, scaled up to the full sum, the prior exact
`ControlVariate`            the same for the difference to an anchor, where the full gradient is known; terms drawn
                            uniformly, or in proportion to bounds on what they contribute
`Noisy`                     the exact gradient and Gaussian noise on top, for experiments about the noise
==========================  =====================================================================================

In compiled code a provider has four methods. All write an unbiased estimate of ∇U(x), of the whole sum and the
prior, into `out`, and add the number of terms that they looked at to ``counts[DATA]``::

    gradient(x, memory, rng, out, counts)
    again(x, memory, out, counts)                             elsewhere, with the batch or the noise of the last call
    projected(x, v, memory, rng, out, counts) -> G, c2        G = v·out, c2 an estimate of its variance
    gradient_and_sd(x, memory, rng, out, sd, counts)          sd: that of the estimate, coordinate by coordinate

`memory` is what ``provider.memory(rng)`` returns: all that changes from call to call, one for each chain, because a
provider is shared between the chains and their threads. To add a provider, derive from `Provider` and write these.

The variances. A batch of n from N terms gives ĝ = (N/n) Σ ∇Uᵢ, whose variance is (N²/n) S² with replacement and
(N²/n) (1 - n/N) S² without, S² the variance of one ∇Uᵢ; it is estimated by the variance (n - 1 in the denominator)
within the batch, which needs n >= 2. The prior is a constant and drops out.

References
----------
Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC, Stat. Comput. 29;
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler, ICML (the variance of G);
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS (the sd).
"""

from __future__ import annotations

import copy
import functools
import math
import operator
from typing import NamedTuple

import numpy as np

from pdmp.gradients.alias import AliasTable
from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled, entry, inlined
from pdmp.process import DATA

#: Least variance of a projection G, relative to 1 + G²: regressions on G divide by it.
LEAST_VARIANCE = 1e-12


class Memory(NamedTuple):
    """What a provider changes from call to call."""

    rows: np.ndarray  #: (size,) the batch
    tickets: np.ndarray  #: (size,) what the batch is made from, see `_Draw`
    weights: np.ndarray  #: (size,) 1 / (n pᵢ) of each datum, where probabilities differ
    order: np.ndarray  #: (N,) or (blocks,) what is being permuted
    cursor: np.ndarray  #: (4,) place in the epoch; first datum of the block, the one after its last; 1: it is copied
    scratch: np.ndarray  #: (d,)
    other: np.ndarray  #: (d,)
    copied: np.ndarray  #: the data of the batch, once it is used again, as the model wants them


@inlined
def _clear(out):
    for j in range(out.shape[0]):
        out[j] = 0.0


@inlined
def _dot(v, out):
    total = 0.0
    for j in range(out.shape[0]):
        total += v[j] * out[j]
    return total


@inlined
def _at_least(variance, g):
    """`variance`, or its floor if that is higher; NaN stays NaN."""
    least = LEAST_VARIANCE * (1.0 + g * g)
    return least if variance < least else variance


@inlined
def _sample_variance(first, second, n):
    """Variance from the sums of n values and of their squares; never negative."""
    variance = (second - first * first / n) / (n - 1)
    return 0.0 if variance < 0.0 else variance


@entry
def _add_data_gradient(model, x, out):
    model.add_block_gradient(x, 0, model.n_data, out)


@entry
def _contributions(model, scale, bounds, totals, largest):
    """totals[i] = Cᵢ, unless it is empty; largest[j] = maxᵢ scaleⱼ Lᵢⱼ."""
    for i in range(model.n_data):
        model.term_lipschitz(i, scale, bounds)
        total = 0.0
        for j in range(scale.shape[0]):
            c = scale[j] * bounds[j]
            total += c
            largest[j] = c if not c <= largest[j] else largest[j]
        if totals.shape[0] > 0:
            totals[i] = total


class Provider(Compiled):
    """Base of the gradient providers; see the module's text for the compiled methods.

    Attributes
    ----------
    model : pdmp.Model
        The target.
    dim, n_data : int
        Those of the model.
    exact : bool
        Whether the gradient has no noise.
    independent : bool
        Whether the noise of different calls is independent.
    has_variance : bool
        Whether `projected` and `gradient_and_sd` can tell the variance; a batch of one cannot.
    terms_per_call : int
        Most data terms that one call looks at.
    anchor : ndarray of shape (dim,) or None
        Where runs start when the user says nothing; None: the model's mode.
    """

    model: Compiled

    exact = False
    independent = True
    has_variance = True
    anchor = None

    def __init__(self, model):
        if not isinstance(model, Model):
            raise TypeError(f"`model` must be a pdmp.Model, got {type(model).__name__}.")
        self.model = model

    @property
    def dim(self):
        return self.model.dim

    @property
    def n_data(self):
        return self.model.n_data

    @property
    def terms_per_call(self):
        return max(self.n_data, 1)

    def memory(self, rng):
        """The mutable arrays of one chain; `rng` is a `numpy.random.Generator`, for providers that start at random."""
        return self._memory()

    def _memory(self, rows=1, order=1, copied=None):
        return Memory(
            rows=np.zeros(rows, np.int64),
            tickets=np.zeros(rows, np.int64),
            weights=np.ones(rows),
            order=np.arange(order),
            cursor=np.zeros(4, np.int64),
            scratch=np.zeros(self.dim),
            other=np.zeros(self.dim),
            copied=np.zeros(0) if copied is None else copied,
        )


def as_provider(target):
    """The provider that `target` is or stands for.

    Parameters
    ----------
    target : Provider or pdmp.Model
        A model stands for its exact gradient, `Full`.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if isinstance(target, Provider):
        return target
    if isinstance(target, Model):
        return Full(target)
    raise TypeError(f"`target` must be a pdmp.Model or one of pdmp.gradients, got {type(target).__name__}.")


class _Whole(Provider):
    """What looks at all terms, in the layout in which the model is fastest at that."""

    model: Compiled
    packed: Compiled

    @functools.cached_property
    def packed(self):
        """The model that the gradient is taken from: a copy laid out for blocks if the model has such a layout."""
        return self.model.rearranged(np.arange(self.n_data)) or self.model

    @compiled
    def _exact(self, x, out, counts):
        _clear(out)
        self.packed.add_gradient(x, out)
        counts[DATA] += max(self.packed.n_data, 1)


class Full(_Whole):
    """The exact gradient ∇U(x), from all terms.

    One call counts `n_data` data terms, one for a model that is not a sum over data. If the model can lay its data out
    for blocks (`Model.rearranged`), the gradient comes from such a copy, made when the first run starts.

    Parameters
    ----------
    model : pdmp.Model
        The target.

    Raises
    ------
    TypeError
        If `model` is not a model.
    """

    exact = True

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self._exact(x, out, counts)

    @compiled
    def again(self, x, memory, out, counts):
        self._exact(x, out, counts)

    @compiled
    def projected(self, x, v, memory, rng, out, counts):
        self.gradient(x, memory, rng, out, counts)
        g = _dot(v, out)
        return g, _at_least(0.0, g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        self.gradient(x, memory, rng, out, counts)
        _clear(sd)


class Noisy(_Whole):
    """The exact gradient plus independent Gaussian noise: ∇U(x)ⱼ + N(0, scaleⱼ²).

    Its variance is known: c² = Σⱼ vⱼ² scaleⱼ². One call counts `n_data` data terms, as for `Full`.

    Parameters
    ----------
    model : pdmp.Model
        The target.
    scale : float or array_like of shape (dim,)
        Standard deviation of the noise, in units of the gradient.

    Raises
    ------
    TypeError
        If `model` is not a model.
    ValueError
        If `scale` has another shape, or is negative or not finite.
    """

    scale: np.ndarray

    def __init__(self, model, scale):
        super().__init__(model)
        scale = np.array(scale, dtype=float)
        if scale.shape not in ((), (self.dim,)):
            raise ValueError(f"`scale` must be a number or of shape ({self.dim},), got shape {scale.shape}.")
        if not np.all(np.isfinite(scale)) or np.any(scale < 0.0):
            raise ValueError(f"`scale` must be finite and at least 0, got {scale}.")
        self.scale = np.broadcast_to(scale, (self.dim,)).copy()

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self._exact(x, out, counts)
        for j in range(out.shape[0]):
            memory.other[j] = self.scale[j] * rng.standard_normal()
            out[j] += memory.other[j]

    @compiled
    def again(self, x, memory, out, counts):
        self._exact(x, out, counts)
        for j in range(out.shape[0]):
            out[j] += memory.other[j]

    @compiled
    def projected(self, x, v, memory, rng, out, counts):
        self.gradient(x, memory, rng, out, counts)
        g, variance = _dot(v, out), 0.0
        for j in range(out.shape[0]):
            variance += v[j] * v[j] * self.scale[j] * self.scale[j]
        return g, _at_least(variance, g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        self.gradient(x, memory, rng, out, counts)
        for j in range(out.shape[0]):
            sd[j] = self.scale[j]


# ---------------------------------------------------------------------------------------------------------------
# Drawing mini-batches


class _Draw(Compiled):
    """How batches are drawn.

    ``draw(memory, rng)`` returns the number n of terms drawn, the weight of each, and the factor that drawing without
    replacement puts on the variance. The sums over the batch are asked of the draw, which knows where it is.

    Independent batches can also be drawn ahead of time, in two steps between which the memory is asked for what the
    second one reads: ``tickets(out, k, memory, rng)`` writes row k of tickets, and ``redeem(tickets, k, rows, weights,
    rng)`` turns them into data and the weight of each, 1 / (n pᵢ) for probabilities pᵢ.
    """

    size: int  #: most terms in a batch
    total: int  #: N
    blocks: int  #: batches in an epoch

    independent = True

    def __init__(self, size, total):
        self.size, self.total = size, total
        self.blocks = -(-total // size)

    @property
    def least(self):
        """Fewest terms in a batch."""
        return self.size

    @property
    def permuted(self):
        """Length of `Memory.order`."""
        return 1

    @compiled
    def last(self, memory):
        """Number and weight of the terms in the batch drawn last."""
        return self.size, self.total / self.size

    @compiled
    def add_gradient(self, model, x, memory, n, out):
        model.add_batch_gradient(x, memory.rows, n, out)

    @compiled
    def add_projection(self, model, x, v, memory, n, out):
        return model.add_batch_projection(x, v, memory.rows, n, memory.scratch, out)

    @compiled
    def add_squares(self, model, x, memory, n, out, squares):
        model.add_batch_squares(x, memory.rows, n, memory.scratch, out, squares)


class _Uniform(_Draw):
    """Every term with the same probability, independently at each call."""

    @compiled
    def redeem(self, tickets, k, rows, weights, rng):
        for m in range(self.size):
            rows[k, m] = tickets[k, m]
            weights[k, m] = self.total / self.size

    @compiled
    def inverse(self, i):
        """1 / pᵢ of a single draw."""
        return float(self.total)


class _WithReplacement(_Uniform):
    @compiled
    def draw(self, memory, rng):
        for k in range(self.size):
            memory.rows[k] = int(rng.random() * self.total)
        return self.size, self.total / self.size, 1.0

    @compiled
    def tickets(self, out, k, memory, rng):
        for m in range(self.size):
            out[k, m] = int(rng.random() * self.total)

    @compiled
    def difference(self, model, x, y, memory, n, out):
        model.batch_difference(x, y, memory.rows, n, memory.other, out)

    @compiled
    def factor(self, memory, k):
        return 1.0


class _Importance(_Draw):
    """Independent terms with given probabilities pᵢ; each has its own weight, and the common one is 1."""

    alias: Compiled

    def __init__(self, size, alias):
        super().__init__(size, alias.size)
        self.alias = alias

    @compiled
    def draw(self, memory, rng):
        for k in range(self.size):
            memory.tickets[k] = self.alias.column(rng)
        for k in range(self.size):
            row, weight = self.alias.resolve(memory.tickets[k], rng)
            memory.rows[k] = row
            memory.weights[k] = weight / self.size
        return self.size, 1.0, 1.0

    @compiled
    def last(self, memory):
        return self.size, 1.0

    @compiled
    def tickets(self, out, k, memory, rng):
        for m in range(self.size):
            out[k, m] = self.alias.column(rng)

    @compiled
    def redeem(self, tickets, k, rows, weights, rng):
        for m in range(self.size):
            row, weight = self.alias.resolve(tickets[k, m], rng)
            rows[k, m] = row
            weights[k, m] = weight / self.size

    @compiled
    def difference(self, model, x, y, memory, n, out):
        model.weighted_difference(x, y, memory.rows, memory.weights, n, memory.other, out)

    @compiled
    def factor(self, memory, k):
        return memory.weights[k]

    @compiled
    def inverse(self, i):
        return self.alias.inverse(i)


class _Distinct(_Uniform):
    """The first n places of a permutation, shuffled anew. What is shuffled need not start sorted."""

    permuted = property(lambda self: self.total)

    @compiled
    def draw(self, memory, rng):
        order = memory.order
        for k in range(self.size):
            j = k + int(rng.random() * (self.total - k))
            row = order[j]
            order[j] = order[k]
            order[k] = row
            memory.rows[k] = row
        return self.size, self.total / self.size, 1.0 - self.size / self.total

    @compiled
    def tickets(self, out, k, memory, rng):
        self.draw(memory, rng)
        for m in range(self.size):
            out[k, m] = memory.rows[m]


class _Blocks(_Draw):
    """An epoch in blocks of sizes that differ by at most one, each visited once; block b starts at ⌊b N / blocks⌋.

    Every term is in one of the blocks, so the weight of each is the number of blocks: the mean over an epoch is then
    exactly the full sum, also when the sizes differ.
    """

    independent = False

    @property
    def least(self):
        return self.total // self.blocks

    @compiled
    def last(self, memory):
        return memory.cursor[2] - memory.cursor[1], float(self.blocks)


class _Epoch(_Blocks):
    permuted = property(lambda self: self.total)

    @compiled
    def draw(self, memory, rng):
        order, block = memory.order, memory.cursor[0]
        first, last = block * self.total // self.blocks, (block + 1) * self.total // self.blocks
        for k in range(first, last):  # Fisher and Yates's shuffle, as far as this block
            j = k + int(rng.random() * (self.total - k))
            row = order[j]
            order[j] = order[k]
            order[k] = row
            memory.rows[k - first] = row
        memory.cursor[0] = 0 if block + 1 == self.blocks else block + 1
        memory.cursor[1], memory.cursor[2] = first, last
        n = last - first
        return n, float(self.blocks), 1.0 - n / self.total


@inlined
def _next_block(total, blocks, memory, rng):
    """Put the next of the fixed blocks into the cursor; each epoch is a new permutation of them."""
    order, place = memory.order, memory.cursor[0]
    j = place + int(rng.random() * (blocks - place))
    block = order[j]
    order[j] = order[place]
    order[place] = block
    memory.cursor[0] = 0 if place + 1 == blocks else place + 1
    memory.cursor[1] = block * total // blocks
    memory.cursor[2] = (block + 1) * total // blocks


class _FixedBlocks(_Blocks):
    """Blocks of a model whose data are already in a random order."""

    permuted = property(lambda self: self.blocks)

    @compiled
    def draw(self, memory, rng):
        _next_block(self.total, self.blocks, memory, rng)
        n = memory.cursor[2] - memory.cursor[1]
        return n, float(self.blocks), 1.0 - n / self.total

    @compiled
    def add_gradient(self, model, x, memory, n, out):
        model.add_block_gradient(x, memory.cursor[1], memory.cursor[2], out)

    @compiled
    def add_projection(self, model, x, v, memory, n, out):
        for k in range(n):
            memory.rows[k] = memory.cursor[1] + k
        return model.add_batch_projection(x, v, memory.rows, n, memory.scratch, out)

    @compiled
    def add_squares(self, model, x, memory, n, out, squares):
        for k in range(n):
            memory.rows[k] = memory.cursor[1] + k
        model.add_batch_squares(x, memory.rows, n, memory.scratch, out, squares)


class _ListedBlocks(_Blocks):
    """The same for a model that cannot be rearranged: `layout` is the random order."""

    layout: np.ndarray

    permuted = property(lambda self: self.blocks)

    def __init__(self, size, total, layout):
        super().__init__(size, total)
        self.layout = layout

    @compiled
    def draw(self, memory, rng):
        _next_block(self.total, self.blocks, memory, rng)
        first, last = memory.cursor[1], memory.cursor[2]
        for k in range(first, last):
            memory.rows[k - first] = self.layout[k]
        n = last - first
        return n, float(self.blocks), 1.0 - n / self.total


def _check_size(size, model):
    try:
        size = operator.index(size)
    except TypeError:
        raise TypeError(f"`size` must be an integer, got {size!r}.") from None
    if model.n_data == 0:
        raise ValueError(
            f"`model` must be a sum over data, and {type(model).__name__} has no terms: use Full or Noisy."
        )
    if not model.divisible:
        raise ValueError(f"`model`: the sum of {type(model).__name__} over its data cannot be sub-sampled: use Full.")
    if size < 1:
        raise ValueError(f"`size` must be at least 1, got {size}.")
    return size


def _check_scale(scale, dim):
    scale = np.array(scale, dtype=float)
    if scale.shape not in ((), (dim,)) or not np.all((scale > 0.0) & np.isfinite(scale)):
        raise ValueError(f"`scale` must be positive and finite, a number or of shape ({dim},), got {scale}.")
    return np.broadcast_to(scale, (dim,)).copy()


def one_of(name, value, allowed):
    """A `ValueError` that names the argument unless `value` is one of those allowed."""
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


class Minibatch(Provider):
    r"""A mini-batch of the terms: ∇U(x) ≈ ∇prior(x) + w Σ_{i in batch} ∇Uᵢ(x).

    Parameters
    ----------
    model : pdmp.Model
        The target, a sum of N terms.
    size : int
        Number n of terms in a batch.
    draw : {"iid", "distinct", "reshuffle", "epoch"}, default "iid"
        Which terms a batch has; the weight w makes each choice unbiased.

        - ``"iid"``: n independent ones, drawn with replacement at each call. w = N/n.
        - ``"distinct"``: n different ones, a new subset at each call. w = N/n.
        - ``"epoch"``: a new random permutation of all terms for each epoch, cut into B = ⌈N/n⌉ blocks, one for each
          call. If n does not divide N, the sizes of the blocks differ by at most one and are at most n, so that every
          term is visited once an epoch. w = B, whatever the size of the block (N/n when n divides N): the mean over
          an epoch is exactly the full gradient.
        - ``"reshuffle"``: the terms are permuted once and laid out in memory in that order, so that the B blocks are
          contiguous (much the fastest for large N, at the price of a copy of the data, which is made when the first
          run starts and kept here). Each epoch visits these same blocks in a new random order. w = B. With respect to
          the permutation and the order, each block is a uniformly drawn subset.

        Successive batches of ``"epoch"`` and ``"reshuffle"`` are not independent: over an epoch their noise cancels.
        Where n = N they are the exact gradient, like ``"distinct"``.
    seed : int, default 0
        Seed of the permutation of ``"reshuffle"``; the chains share it.

    Notes
    -----
    `projected` estimates the variance of G = v·∇U by c² = w² n f s², s² the sample variance of v·∇Uᵢ over the batch
    and f = 1 with replacement, 1 - n/N without; for w = N/n that is (N²/n) f s² [1]_. It is at least 10⁻¹² (1 + G²).
    `gradient_and_sd` gives the same coordinate by coordinate, τⱼ = (N/√n) Sⱼ √f [2]_. Both need two terms in each
    batch; see `has_variance`.

    References
    ----------
    .. [1] Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler. ICML.
    .. [2] Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics. AISTATS.

    Raises
    ------
    TypeError
        If `model` is not a model, or `size` not an integer.
    ValueError
        If the model has no terms, `size` is below 1, or above N where batches are drawn without replacement, or
        `draw` is unknown.
    """

    model: Compiled
    packed: Compiled
    drawing: Compiled

    def __init__(self, model, size, draw="iid", seed=0):
        super().__init__(model)
        one_of("draw", draw, ("iid", "distinct", "reshuffle", "epoch"))
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise ValueError(f"`seed` must be a whole number, at least 0, got {seed!r}.")
        self.size, self.draw, self.seed = _check_size(size, model), draw, seed
        if draw != "iid" and self.size > model.n_data:
            raise ValueError(f"`size` must be at most the {model.n_data} data for draw={draw!r}, got {self.size}.")
        rule = {"iid": _WithReplacement, "distinct": _Distinct, "epoch": _Epoch, "reshuffle": _Blocks}[draw]
        rule = rule(self.size, model.n_data)
        self.independent, self.has_variance, self.blocks = rule.independent, rule.least >= 2, rule.blocks
        self._rule = rule

    @functools.cached_property
    def _arrangement(self):
        """The model as the batches see it, and the draw."""
        if self.draw != "reshuffle":
            return self.model, self._rule
        layout = np.random.default_rng(self.seed).permutation(self.n_data)
        packed = self.model.rearranged(layout)
        if packed is None:
            return self.model, _ListedBlocks(self.size, self.n_data, layout)
        return packed, _FixedBlocks(self.size, self.n_data)

    @property
    def packed(self):
        """The model that the batches are taken from: a copy in another order for ``draw="reshuffle"``."""
        return self._arrangement[0]

    @property
    def drawing(self):
        """The draw as compiled code knows it."""
        return self._arrangement[1]

    @property
    def terms_per_call(self):
        return self.size

    def memory(self, rng):
        return self._memory(self.size, self.drawing.permuted, self.packed.batch_room(self.size))

    @compiled
    def _draw(self, memory, rng):
        memory.cursor[3] = 0
        return self.drawing.draw(memory, rng)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        n, weight, _ = self._draw(memory, rng)
        _clear(out)
        self.drawing.add_gradient(self.packed, x, memory, n, out)
        self._whole(x, n, weight, out, counts)

    @compiled
    def again(self, x, memory, out, counts):
        n, weight = self.drawing.last(memory)
        _clear(out)
        if memory.copied.shape[0] == 0:
            self.drawing.add_gradient(self.packed, x, memory, n, out)
        else:
            if memory.cursor[3] == 0:
                self.packed.copy_batch(memory.rows, n, memory.copied)
                memory.cursor[3] = 1
            self.packed.add_copied_gradient(x, memory.copied, n, out)
        self._whole(x, n, weight, out, counts)

    @compiled
    def _whole(self, x, n, weight, out, counts):
        """From the sum over the batch to the estimate."""
        for j in range(out.shape[0]):
            out[j] *= weight
        self.packed.add_prior_gradient(x, out)
        counts[DATA] += n

    @compiled
    def projected(self, x, v, memory, rng, out, counts):
        n, weight, rest = self._draw(memory, rng)
        _clear(out)
        first, second = self.drawing.add_projection(self.packed, x, v, memory, n, out)
        for j in range(out.shape[0]):
            out[j] *= weight
        self.packed.add_prior_gradient(x, out)
        counts[DATA] += n
        g = _dot(v, out)
        return g, _at_least(weight * weight * n * rest * _sample_variance(first, second, n), g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        n, weight, rest = self._draw(memory, rng)
        _clear(out)
        _clear(sd)
        self.drawing.add_squares(self.packed, x, memory, n, out, sd)
        for j in range(out.shape[0]):
            sd[j] = weight * math.sqrt(n * rest * _sample_variance(out[j], sd[j], n))
            out[j] *= weight
        self.packed.add_prior_gradient(x, out)
        counts[DATA] += n


class ControlVariate(Provider):
    r"""A mini-batch of the differences to an anchor a, where the gradient of all the data is known.

    ∇U(x) ≈ ∇prior(x) + Σᵢ ∇Uᵢ(a) + (1/n) Σ_{i in batch} [∇Uᵢ(x) - ∇Uᵢ(a)] / pᵢ, the same batch in both terms [1]_,
    where pᵢ is the probability of i. The noise is zero at the anchor and grows with the distance to it.

    Parameters
    ----------
    model : pdmp.Model
        The target, a sum of N terms.
    size : int
        Number n of terms in a batch, drawn with replacement, independently at each call.
    anchor : array_like of shape (dim,), optional
        The point a; the model's mode when omitted. Runs start here.
    draw : {"uniform", "importance"}, default "uniform"
        - ``"uniform"``: every term with the same probability pᵢ = 1/N.
        - ``"importance"``: in proportion to what a term can contribute, pᵢ = Cᵢ / Σ C with Cᵢ = Σⱼ scaleⱼ Lᵢⱼ and
          |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y) / scale|, by an alias table at the same cost for every N. Where the
          bound on the noise of uniform draws has the largest of the N Cᵢ, this one has their sum [2]_.
    scale : float or array_like of shape (dim,), default 1.0
        Units in which Cᵢ measures distances, such as standard deviations of the target.

    Notes
    -----
    One call counts n data terms. `projected` and `gradient_and_sd` estimate the variance from the differences, as
    `Minibatch` does from the gradients; they need n >= 2.

    References
    ----------
    .. [1] Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC. Stat. Comput. 29.
    .. [2] Sen, Sachs, Lu & Dunson (2020), Efficient posterior sampling for high-dimensional imbalanced logistic
       regression. Biometrika 107.

    Raises
    ------
    TypeError
        If `model` is not a model, or `size` not an integer.
    ValueError
        If the model has no terms, `size` is below 1, `draw` is unknown or needs bounds that the model does not have,
        `scale` is not positive, `anchor` has another shape or is not finite, or none is given and the search for the
        mode does not converge.
    """

    model: Compiled
    drawing: Compiled
    anchor: np.ndarray
    anchor_gradient: np.ndarray

    def __init__(self, model, size, anchor=None, draw="uniform", scale=1.0):
        super().__init__(model)
        one_of("draw", draw, ("uniform", "importance"))
        self.size, self.draw = _check_size(size, model), draw
        self.scale = _check_scale(scale, self.dim)
        if draw == "importance" and not model.knows("term_lipschitz"):
            raise ValueError(
                f'`draw="importance"` needs bounds from the model: {type(model).__name__} has no `term_lipschitz`. '
                f'Use draw="uniform".'
            )
        if anchor is None:
            self.anchor = model.mode()
            if self.anchor is None:
                raise ValueError(
                    f"`anchor` must be given: the search for the mode of {type(model).__name__} did not converge."
                )
        else:
            self.anchor = model.check(anchor, "anchor")
            if not np.all(np.isfinite(self.anchor)):
                raise ValueError(f"`anchor` must be finite, got {self.anchor}.")
        self.anchor_gradient = np.zeros(self.dim)
        _add_data_gradient(model.native, self.anchor, self.anchor_gradient)
        self.has_variance = self.size >= 2

    @functools.cached_property
    def drawing(self):
        """The draw as compiled code knows it."""
        if self.draw == "uniform":
            return _WithReplacement(self.size, self.n_data)
        return _Importance(self.size, AliasTable(self.contributions()))

    def contributions(self):
        """Cᵢ = Σⱼ scaleⱼ Lᵢⱼ, shape (N,)."""
        out = np.zeros(self.n_data)
        _contributions(self.model.native, self.scale, np.zeros(self.dim), out, np.zeros(self.dim))
        return out

    def largest(self):
        """The largest scaleⱼ Lᵢⱼ of all data i, shape (dim,)."""
        out = np.zeros(self.dim)
        _contributions(self.model.native, self.scale, np.zeros(self.dim), np.zeros(0), out)
        return out

    def rescaled(self, scale):
        """The same estimator, with distances measured in units of `scale` (d,)."""
        other = copy.copy(self)
        other.scale = _check_scale(scale, self.dim)
        other.__dict__.pop("drawing", None)
        return other

    @property
    def terms_per_call(self):
        return self.size

    def memory(self, rng):
        return self._memory(self.size)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        self.drawing.draw(memory, rng)
        self.again(x, memory, out, counts)

    @compiled
    def again(self, x, memory, out, counts):
        n, weight = self.drawing.last(memory)
        self.drawing.difference(self.model, x, self.anchor, memory, n, out)
        for j in range(out.shape[0]):
            out[j] = weight * out[j] + self.anchor_gradient[j]
        self.model.add_prior_gradient(x, out)
        counts[DATA] += n

    @compiled
    def projected(self, x, v, memory, rng, out, counts):
        n, weight, rest = self.drawing.draw(memory, rng)
        here, there = memory.scratch, memory.other
        _clear(out)
        first, second = 0.0, 0.0
        for k in range(n):
            _clear(here)
            _clear(there)
            self.model.add_term_gradient(x, memory.rows[k], here)
            self.model.add_term_gradient(self.anchor, memory.rows[k], there)
            p, factor = 0.0, self.drawing.factor(memory, k)
            for j in range(out.shape[0]):
                difference = factor * (here[j] - there[j])
                out[j] += difference
                p += v[j] * difference
            first += p
            second += p * p
        for j in range(out.shape[0]):
            out[j] = weight * out[j] + self.anchor_gradient[j]
        self.model.add_prior_gradient(x, out)
        counts[DATA] += n
        g = _dot(v, out)
        return g, _at_least(weight * weight * n * rest * _sample_variance(first, second, n), g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        n, weight, rest = self.drawing.draw(memory, rng)
        here, there = memory.scratch, memory.other
        _clear(out)
        _clear(sd)
        for k in range(n):
            _clear(here)
            _clear(there)
            self.model.add_term_gradient(x, memory.rows[k], here)
            self.model.add_term_gradient(self.anchor, memory.rows[k], there)
            factor = self.drawing.factor(memory, k)
            for j in range(out.shape[0]):
                difference = factor * (here[j] - there[j])
                out[j] += difference
                sd[j] += difference * difference
        for j in range(out.shape[0]):
            sd[j] = weight * math.sqrt(n * rest * _sample_variance(out[j], sd[j], n))
            out[j] = weight * out[j] + self.anchor_gradient[j]
        self.model.add_prior_gradient(x, out)
        counts[DATA] += n
