"""Mini-batches of the terms, scaled up to the full sum."""

from __future__ import annotations

import functools
import math

import numpy as np

from pdmp.gradients.drawing import Blocks, Distinct, Epoch, FixedBlocks, ListedBlocks, WithReplacement, check_size
from pdmp.gradients.provider import Memory, Provider, at_least, clear, dot, sample_variance
from pdmp.models.base import Model
from pdmp.native.arguments import count, one_of
from pdmp.native.classes import Compiled, compiled
from pdmp.process import DATA


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

    See Also
    --------
    pdmp.gradients.ControlVariate : Less noise near the mode.
    pdmp.gradients.Full : No noise.

    Notes
    -----
    `gradient_and_projection` estimates the variance of G = v·∇U by c² = w² n f s², s² the sample variance of v·∇Uᵢ over
    the batch and f = 1 with replacement, 1 - n/N without; for w = N/n that is (N²/n) f s² [1]_, and it is at least
    10⁻¹² (1 + G²).
    `gradient_and_sd` gives the same coordinate by coordinate, τⱼ = (N/√n) Sⱼ √f [2]_. Both need two terms in each
    batch; see `has_variance`.

    References
    ----------
    .. [1] Pakman, Gilboa, Carlson & Paninski (2017), Stochastic bouncy particle sampler. ICML.
    .. [2] Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics. AISTATS.

    Raises
    ------
    TypeError
        If `model` is not a model.
    ValueError
        If the model has no terms, `size` is not a whole number from 1, or above N where batches are drawn without
        replacement, or `draw` is unknown.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.LogisticRegression([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> batch = pdmp.gradients.Minibatch(model, size=2, draw="epoch")
    >>> batch.exact, batch.independent, batch.blocks
    (False, False, 2)
    """

    model: Model
    packed: Compiled
    drawing: Compiled

    def __init__(self, model: Model, size: int, draw: str = "iid", seed: int = 0):
        super().__init__(model)
        one_of("draw", draw, ("iid", "distinct", "reshuffle", "epoch"))
        self.size, self.draw, self.seed = check_size(size, model), draw, count("seed", seed, least=0)
        if draw != "iid" and self.size > model.n_data:
            raise ValueError(f"`size` must be at most the {model.n_data} data for draw={draw!r}, got {self.size}.")
        rule = {"iid": WithReplacement, "distinct": Distinct, "epoch": Epoch, "reshuffle": Blocks}[draw]
        rule = rule(self.size, model.n_data)
        self.independent, self.has_variance, self.blocks = rule.independent, rule.least >= 2, rule.blocks
        self._rule = rule

    @functools.cached_property
    def _arrangement(self):
        """The model from which batches are taken, and how they are drawn."""
        if self.draw != "reshuffle":
            return self.model, self._rule
        layout = np.random.default_rng(self.seed).permutation(self.n_data)
        packed = self.model.rearranged(layout)
        if packed is None:
            return self.model, ListedBlocks(self.size, self.n_data, layout)
        return packed, FixedBlocks(self.size, self.n_data)

    @property
    def packed(self) -> Model:
        """The model that the batches are taken from: a copy in another order for ``draw="reshuffle"``."""
        return self._arrangement[0]

    @property
    def drawing(self) -> Compiled:
        """How batches are drawn, one of `pdmp.gradients.drawing`."""
        return self._arrangement[1]

    @property
    def terms_per_call(self) -> int:
        return self.size

    def memory(self, rng: np.random.Generator | None) -> Memory:
        return self.make_memory(self.size, self.drawing.order_length, self.packed.batch_room(self.size))

    @compiled
    def _draw(self, memory, rng):
        memory.is_copied[0] = False
        return self.drawing.draw(memory, rng)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        n, weight, _ = self._draw(memory, rng)
        clear(out)
        self.drawing.add_gradient(self.packed, x, memory, n, out)
        self._scale_up(x, n, weight, out, counts)

    @compiled
    def gradient_again(self, x, memory, out, counts):
        n, weight = self.drawing.last(memory)
        clear(out)
        if memory.copied.shape[0] == 0:
            self.drawing.add_gradient(self.packed, x, memory, n, out)
        else:
            if not memory.is_copied[0]:
                self.packed.copy_batch(memory.rows, n, memory.copied)
                memory.is_copied[0] = True
            self.packed.add_copied_gradient(x, memory.copied, n, out)
        self._scale_up(x, n, weight, out, counts)

    @compiled
    def _scale_up(self, x, n, weight, out, counts):
        """Turn the sum over the batch into the estimate."""
        for j in range(out.shape[0]):
            out[j] *= weight
        self.packed.add_prior_gradient(x, out)
        counts[DATA] += n

    @compiled
    def gradient_and_projection(self, x, v, memory, rng, out, counts):
        n, weight, correction = self._draw(memory, rng)
        clear(out)
        first, second = self.drawing.add_projection(self.packed, x, v, memory, n, out)
        self._scale_up(x, n, weight, out, counts)
        g = dot(v, out)
        return g, at_least(weight * weight * n * correction * sample_variance(first, second, n), g)

    @compiled
    def gradient_and_sd(self, x, memory, rng, out, sd, counts):
        n, weight, correction = self._draw(memory, rng)
        clear(out)
        clear(sd)
        self.drawing.add_squares(self.packed, x, memory, n, out, sd)
        for j in range(out.shape[0]):
            sd[j] = weight * math.sqrt(n * correction * sample_variance(out[j], sd[j], n))
        self._scale_up(x, n, weight, out, counts)
