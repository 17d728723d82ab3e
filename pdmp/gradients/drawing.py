"""How mini-batches are drawn."""

from __future__ import annotations

import numpy as np

from pdmp.native.arguments import count
from pdmp.native.classes import Compiled, compiled, inlined


@inlined
def shuffled(order, k, n, rng):
    """The next entry of a Fisher-Yates shuffle of the n entries of `order`, of which k are shuffled."""
    j = k + int(rng.random() * (n - k))
    found = order[j]
    order[j] = order[k]
    order[k] = found
    return found


class Draw(Compiled):
    """Base of the ways to draw a batch.

    ``draw(memory, rng)`` returns the number n of terms drawn, the weight of each, and the factor by which drawing
    without replacement reduces the variance. The sums over the batch are methods of this class, because the place of
    its data in memory depends on how it is drawn.

    Independent batches can also be drawn ahead of time, in two steps: ``prepare(out, k, memory, rng)`` draws row k of
    `out` and prefetches the memory that the second step reads. ``complete(prepared, k, rows, weights, rng)`` writes the
    terms to `rows` and the weight of each, 1 / (n pᵢ) for probabilities pᵢ, to `weights`.
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
    def order_length(self):
        """Length of `Memory.order`, what is being permuted."""
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


class Uniform(Draw):
    """Every term with the same probability, independently at each call."""

    @compiled
    def complete(self, prepared, k, rows, weights, rng):
        for m in range(self.size):
            rows[k, m] = prepared[k, m]
            weights[k, m] = self.total / self.size

    @compiled
    def inverse(self, i):
        """1 / pᵢ of a single draw."""
        return float(self.total)


class WithReplacement(Uniform):
    """Independent terms: one may be drawn twice."""

    @compiled
    def draw(self, memory, rng):
        for k in range(self.size):
            memory.rows[k] = int(rng.random() * self.total)
        return self.size, self.total / self.size, 1.0

    @compiled
    def prepare(self, out, k, memory, rng):
        for m in range(self.size):
            out[k, m] = int(rng.random() * self.total)

    @compiled
    def difference(self, model, x, y, memory, n, out):
        model.batch_difference(x, y, memory.rows, n, memory.anchor_scratch, out)

    @compiled
    def factor(self, memory, k):
        """Weight of the k-th term, by which the common weight is multiplied."""
        return 1.0


class Importance(Draw):
    """Independent terms with given probabilities pᵢ; each has its own weight, and the common one is 1."""

    alias: Compiled

    def __init__(self, size, alias):
        super().__init__(size, alias.size)
        self.alias = alias

    @compiled
    def draw(self, memory, rng):
        for k in range(self.size):
            memory.columns[k] = self.alias.column(rng)
        for k in range(self.size):
            row, weight = self.alias.resolve(memory.columns[k], rng)
            memory.rows[k] = row
            memory.weights[k] = weight / self.size
        return self.size, 1.0, 1.0

    @compiled
    def last(self, memory):
        return self.size, 1.0

    @compiled
    def prepare(self, out, k, memory, rng):
        for m in range(self.size):
            out[k, m] = self.alias.column(rng)

    @compiled
    def complete(self, prepared, k, rows, weights, rng):
        for m in range(self.size):
            row, weight = self.alias.resolve(prepared[k, m], rng)
            rows[k, m] = row
            weights[k, m] = weight / self.size

    @compiled
    def difference(self, model, x, y, memory, n, out):
        model.weighted_difference(x, y, memory.rows, memory.weights, n, memory.anchor_scratch, out)

    @compiled
    def factor(self, memory, k):
        return memory.weights[k]

    @compiled
    def inverse(self, i):
        return self.alias.inverse(i)


class Distinct(Uniform):
    """Different terms: the first n steps of a Fisher-Yates shuffle, applied to the permutation of the last call."""

    order_length = property(lambda self: self.total)

    @compiled
    def draw(self, memory, rng):
        for k in range(self.size):
            memory.rows[k] = shuffled(memory.order, k, self.total, rng)
        return self.size, self.total / self.size, 1.0 - self.size / self.total

    @compiled
    def prepare(self, out, k, memory, rng):
        self.draw(memory, rng)
        for m in range(self.size):
            out[k, m] = memory.rows[m]


class Blocks(Draw):
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
        return memory.stop[0] - memory.first[0], float(self.blocks)


class Epoch(Blocks):
    """Blocks of a new random permutation of the terms for each epoch."""

    order_length = property(lambda self: self.total)

    @compiled
    def draw(self, memory, rng):
        block = memory.place[0]
        first, last = block * self.total // self.blocks, (block + 1) * self.total // self.blocks
        for k in range(first, last):  # the Fisher-Yates shuffle, up to the end of this block
            memory.rows[k - first] = shuffled(memory.order, k, self.total, rng)
        memory.place[0] = 0 if block + 1 == self.blocks else block + 1
        memory.first[0], memory.stop[0] = first, last
        n = last - first
        return n, float(self.blocks), 1.0 - n / self.total


@inlined
def next_block(total, blocks, memory, rng):
    """Go to the next of the fixed blocks; each epoch is a new permutation of them."""
    place = memory.place[0]
    block = shuffled(memory.order, place, blocks, rng)
    memory.place[0] = 0 if place + 1 == blocks else place + 1
    memory.first[0] = block * total // blocks
    memory.stop[0] = (block + 1) * total // blocks


class FixedBlocks(Blocks):
    """Blocks of a model whose data are already in a random order."""

    order_length = property(lambda self: self.blocks)

    @compiled
    def draw(self, memory, rng):
        next_block(self.total, self.blocks, memory, rng)
        n = memory.stop[0] - memory.first[0]
        return n, float(self.blocks), 1.0 - n / self.total

    @compiled
    def add_gradient(self, model, x, memory, n, out):
        model.add_block_gradient(x, memory.first[0], memory.stop[0], out)

    @compiled
    def add_projection(self, model, x, v, memory, n, out):
        for k in range(n):
            memory.rows[k] = memory.first[0] + k
        return model.add_batch_projection(x, v, memory.rows, n, memory.scratch, out)

    @compiled
    def add_squares(self, model, x, memory, n, out, squares):
        for k in range(n):
            memory.rows[k] = memory.first[0] + k
        model.add_batch_squares(x, memory.rows, n, memory.scratch, out, squares)


class ListedBlocks(Blocks):
    """`FixedBlocks` for a model whose data cannot be rearranged: `layout` is the random order."""

    layout: np.ndarray

    order_length = property(lambda self: self.blocks)

    def __init__(self, size, total, layout):
        super().__init__(size, total)
        self.layout = layout

    @compiled
    def draw(self, memory, rng):
        next_block(self.total, self.blocks, memory, rng)
        first, last = memory.first[0], memory.stop[0]
        for k in range(first, last):
            memory.rows[k - first] = self.layout[k]
        n = last - first
        return n, float(self.blocks), 1.0 - n / self.total


def check_size(size, model):
    """The size of a batch of `model` as an int, or a `ValueError`."""
    if model.n_data == 0:
        raise ValueError(
            f"`model` must be a sum over data, and {type(model).__name__} has no terms: use Full or Noisy."
        )
    if not model.divisible:
        raise ValueError(f"`model`: the sum of {type(model).__name__} over its data cannot be sub-sampled: use Full.")
    return count("size", size)
