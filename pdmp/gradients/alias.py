"""Walker's alias table: draws from given weights at a cost that does not depend on how many there are.

A column k is drawn uniformly. The draw is k with probability ``threshold[k]``, and else the alias of k. Vose's
construction takes O(N): what a column of less than mean weight lacks is the share of its alias, a column of more.
Parts of a long table are balanced each for itself, on threads; the few columns that are left of each part then are
balanced with one another. The table is the same for every number of threads.

References
----------
Walker (1977), ACM Trans. Math. Softw. 3, 253-256. Vose (1991), A linear algorithm for generating random numbers with a
given distribution, IEEE Trans. Softw. Eng. 17.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import Compiled, compiled, entry, helper
from pdmp.native.prefetch import LINE, ask, prefetch
from pdmp.native.threads import each

#: Columns of the table. One array holds all four, so that a draw touches one cache line.
THRESHOLD, ALIAS, INVERSE, ALIAS_INVERSE = range(4)
PART = 2**16  #: columns balanced together: they stay in the processor's cache


class AliasTable(Compiled):
    """Draws i in 0 … N - 1 with probability pᵢ = wᵢ / Σ w.

    Parameters
    ----------
    weights : array_like, shape (N,)
        wᵢ >= 0, finite, not all zero. An i of weight 0 is never drawn.

    Attributes
    ----------
    total : float
        Σ w.
    size : int
        N.
    table : ndarray, shape (N, 4)
        For each column: its threshold, its alias, and 1 / p of itself and of the alias, so that a draw and its weight
        come from one cache line.

    Raises
    ------
    ValueError
        If `weights` is not such a vector, or its sum overflows.

    Examples
    --------
    >>> from pdmp.gradients import AliasTable
    >>> AliasTable([1.0, 0.0, 3.0]).probabilities()
    array([0.25, 0.  , 0.75])
    """

    table: np.ndarray
    size: int

    def __init__(self, weights: ArrayLike):
        weights = np.ascontiguousarray(weights, dtype=float)
        if weights.ndim != 1 or weights.size == 0:
            raise ValueError(f"`weights` must have shape (N,) with N at least 1, got {weights.shape}.")
        with np.errstate(over="ignore"):
            self.total = float(weights.sum())
        if not (weights.min() >= 0.0 and self.total < np.inf):  # also where one is NaN
            wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
            if wrong.size:
                raise ValueError(f"`weights` must be finite and at least 0; entry {wrong[0]} is {weights[wrong[0]]}.")
        if not 0.0 < self.total < np.inf:
            raise ValueError(f"`weights` must have a finite sum above 0, got {self.total}.")
        self.size = len(weights)
        raw = np.empty(32 * self.size + LINE, np.uint8)
        start = -raw.ctypes.data % LINE
        self.table = raw[start : start + 32 * self.size].view(float).reshape(self.size, 4)
        self._fill(weights)

    def _fill(self, weights):
        """Balance the parts, and then what is left of them."""
        native = self.native

        def part(first, stop):
            waiting = np.empty(stop - first, np.int64)
            low, high = _build(native, weights, self.total, waiting, first, stop)
            return waiting[:low].copy(), waiting[high:].copy()

        parts = [(first, min(first + PART, self.size)) for first in range(0, self.size, PART)]
        low, high = zip(*each(part, parts), strict=True)
        _balance_rest(native, np.concatenate([*low, *high]), sum(map(len, low)))

    @compiled
    def column(self, rng):
        """A uniformly drawn column; its row of the table is prefetched."""
        k = int(rng.random() * self.size)
        prefetch(self.table, k)
        return k

    @compiled
    def resolve(self, k, rng):
        """The draw from column k, and 1 / pᵢ."""
        if rng.random() < self.table[k, THRESHOLD]:
            return k, self.table[k, INVERSE]
        return int(self.table[k, ALIAS]), self.table[k, ALIAS_INVERSE]

    @compiled
    def draw(self, rng):
        """i and 1 / pᵢ."""
        return self.resolve(self.column(rng), rng)

    @compiled
    def inverse(self, i):
        """1 / pᵢ; 0 for an i that is never drawn."""
        return self.table[i, INVERSE]

    def probabilities(self) -> np.ndarray:
        """The pᵢ with which the table draws, roundings included, shape (N,)."""
        share = self.table[:, THRESHOLD]
        other = np.bincount(self.table[:, ALIAS].astype(np.int64), weights=1.0 - share, minlength=self.size)
        return (share + other) / self.size


@entry
def _build(alias_table, weights, total, waiting, first, stop):
    """Fill in the columns first … stop - 1; the columns that are left are in `waiting`, see `_balance`."""
    table = alias_table.table
    low, high = _balance(table, weights, first, stop, alias_table.size / total, waiting)
    for k in range(first, stop):
        other = int(table[k, ALIAS])
        table[k, INVERSE] = total / weights[k] if weights[k] > 0.0 else 0.0
        table[k, ALIAS_INVERSE] = total / weights[other] if weights[other] > 0.0 else 0.0
    return low, high


@helper
def _balance(table, weights, first, stop, scale, waiting):
    """Thresholds and aliases of the columns first … stop - 1, the mean of whose weights is about 1 / scale.

    `waiting`, of length stop - first, lists the columns below the mean from its front, and those above it from its
    back. Returned are the ends of what is left of both lists: of a whole table nothing is, but by rounding.
    """
    low, high = 0, stop - first
    for k in range(first, stop):
        table[k, THRESHOLD] = weights[k] * scale
        table[k, ALIAS] = k
        if table[k, THRESHOLD] < 1.0:
            waiting[low] = k
            low += 1
        else:
            high -= 1
            waiting[high] = k
    while low > 0 and high < stop - first:
        low -= 1
        if _give(table, waiting[low], waiting[high]):
            waiting[low] = waiting[high]
            low += 1
            high += 1
    return low, high


@helper
def _give(table, small, large):
    """Column `large` is the alias of `small`, and gives what that lacks; whether it is below the mean then."""
    table[small, ALIAS] = large
    table[large, THRESHOLD] = (table[large, THRESHOLD] + table[small, THRESHOLD]) - 1.0
    return table[large, THRESHOLD] < 1.0


@helper
def _settle(table, waiting, first, stop):
    """In exact arithmetic the thresholds of these columns of `waiting` would be 1."""
    for k in range(first, stop):
        table[waiting[k], THRESHOLD] = 1.0


@entry
def _balance_rest(alias_table, rest, low):
    """Balance columns that are left of the parts: the first `low` of `rest` are below the mean, the others above."""
    table, high, stop = alias_table.table, low, rest.shape[0]
    while low > 0 and high < stop:
        low -= 1
        table[rest[low], ALIAS_INVERSE] = table[rest[high], INVERSE]
        if _give(table, rest[low], rest[high]):
            rest[low] = rest[high]
            low += 1
            high += 1
    _settle(table, rest, 0, low)
    _settle(table, rest, high, stop)


class AliasTables(Compiled):
    """Many alias tables side by side: each draws one of the `items` of its own group.

    Group g has the items first[g] … first[g + 1] - 1. A group whose weights, finite and at least 0, are all 0 is never
    asked. `totals` are the sums of the weights of each group.

    Examples
    --------
    >>> from pdmp.gradients.alias import AliasTables
    >>> AliasTables([5, 7, 9], [0, 1, 3], [2.0, 1.0, 3.0]).totals
    array([2., 4.])
    """

    table: np.ndarray  #: (N, 3): threshold, and the item below it and from it on
    first: np.ndarray
    totals: np.ndarray

    def __init__(self, items, first, weights):
        items, weights = np.asarray(items), np.asarray(weights, float)
        self.first = np.asarray(first, np.int64)
        self.totals = np.zeros(len(self.first) - 1)
        self.table = np.zeros((len(items), 3))
        _build_all(self.native, items, weights, np.zeros(np.diff(self.first).max(), np.int64))

    def queue(self) -> tuple:
        """What `next` keeps of draws that are made ahead: nothing."""
        return ()

    @compiled
    def next(self, g, queue, model, rng):
        """An item of group g, a row of the model, which is fetched."""
        i = self.draw(g, rng)
        model.fetch(i)
        return i

    @compiled
    def draw(self, g, rng):
        """An item of group g."""
        k = self.first[g] + int(rng.random() * (self.first[g + 1] - self.first[g]))
        return int(self.table[k, 1] if rng.random() < self.table[k, THRESHOLD] else self.table[k, 2])


QUEUE = 128  #: draws from a table in a file that are made ahead


class Queue(NamedTuple):
    """Draws made ahead, a ring: of one half of them only the column is known."""

    columns: np.ndarray  #: (ring,)
    blocks: np.ndarray  #: (ring,) of the columns
    numbers: np.ndarray  #: (ring,) in [0, 1), which decide between a column and its alias
    items: np.ndarray  #: (ring,)
    turn: np.ndarray  #: (1,) the place of the next draw; -1 while the ring is empty


class AliasBlocks(Compiled):
    """The alias table of one group in blocks: a block is drawn in proportion to its sum, then one of its items.

    Each block's table is made for itself, by `table_of_block`, where its weights are. As no draw depends on anything
    else, `next` draws ahead, and asks for the entries of the table, and then for the rows of the model, long before
    they are looked at.

    Block b has the items first[b] … first[b + 1] - 1 and the sum of weights totals[b]. If `asks`, the table (N, 2) is
    in a file that may not stay in memory, as is what is looked at with an item besides the model, `further` (N,). The
    attribute `totals` (1,) is the sum of all weights; if it is 0, no item is ever asked for.
    """

    table: np.ndarray
    first: np.ndarray
    blocks: object
    totals: np.ndarray
    asks: bool
    further: np.ndarray

    def __init__(self, table, first, totals, asks=False, further=None):
        self.asks, self.further = asks, np.zeros(0) if further is None else further
        self.table, self.first, self.totals = table, np.asarray(first, np.int64), np.array([np.sum(totals)])
        self.blocks = AliasTable(totals if self.totals[0] > 0.0 else np.ones(len(totals)))

    def queue(self) -> Queue:
        """Draws made ahead of one chain: none yet."""
        return Queue(
            columns=np.zeros(QUEUE, np.int64),
            blocks=np.zeros(QUEUE, np.int64),
            numbers=np.zeros(QUEUE),
            items=np.zeros(QUEUE, np.int64),
            turn=np.full(1, -1),
        )

    @compiled
    def next(self, g, queue, model, rng):
        """An item; there is one group only. Another is begun, and the row of one half a ring ahead is fetched."""
        ring, turn = queue.items.shape[0], queue.turn[0]
        if turn < 0:
            for q in range(ring):
                self.begin(queue, q, rng)
            for q in range(ring // 2):
                self.finish(queue, q, model)
            turn = 0
        half = turn + ring // 2
        self.finish(queue, half if half < ring else half - ring, model)
        item = queue.items[turn]
        self.begin(queue, turn, rng)
        queue.turn[0] = turn + 1 if turn + 1 < ring else 0
        return item

    @compiled
    def begin(self, queue, q, rng):
        """Draw a column into place q of the queue, and ask for what the table has of it."""
        b, _ = self.blocks.draw(rng)
        k = self.first[b] + int(rng.random() * (self.first[b + 1] - self.first[b]))
        queue.blocks[q], queue.columns[q], queue.numbers[q] = b, k, rng.random()
        if self.asks:
            ask(self.table, k)

    @compiled
    def finish(self, queue, q, model):
        """The item of place q of the queue; its row is asked for."""
        b, k = queue.blocks[q], queue.columns[q]
        alias = self.first[b] + int(self.table[k, ALIAS])
        item = k if queue.numbers[q] < self.table[k, THRESHOLD] else alias
        queue.items[q] = item
        model.fetch(item)
        if self.asks and self.further.shape[0] > 0:
            ask(self.further, item)


def table_of_block(weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Thresholds and aliases of items of these weights, (n, 2), and the sum of the weights."""
    tables = AliasTables(np.arange(len(weights)), [0, len(weights)], weights)
    return tables.table[:, [THRESHOLD, 2]], float(tables.totals[0])


@entry
def _build_all(alias_table, items, weights, waiting):
    table = alias_table.table
    for g in range(alias_table.totals.shape[0]):
        total = 0.0
        for k in range(alias_table.first[g], alias_table.first[g + 1]):
            total += weights[k]
        alias_table.totals[g] = total
        if 0.0 < total < np.inf:
            first, stop = alias_table.first[g], alias_table.first[g + 1]
            low, high = _balance(table, weights, first, stop, (stop - first) / total, waiting)
            _settle(table, waiting, 0, low)
            _settle(table, waiting, high, stop - first)
    for k in range(items.shape[0]):
        table[k, 2] = items[int(table[k, ALIAS])]
        table[k, 1] = items[k]
