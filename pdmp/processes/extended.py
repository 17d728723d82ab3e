"""A process that adds clocks to those of another one: what boundaries and sticky processes share."""

from __future__ import annotations

import copy
import math
from typing import Self

import numpy as np

from pdmp.interfaces.report import Report
from pdmp.native.classes import compiled
from pdmp.process import DEPENDENTS, Process, State


class InnerReport(Report):
    """What the inner process says of its part of the state."""

    def statistics(self, process, state):
        inner = process.inner
        return inner.report.statistics(inner, state._replace(memory=state.memory.inner))

    def lost(self, process, state):
        inner = process.inner
        return inner.report.lost(inner, state._replace(memory=state.memory.inner))


class Extended(Process):
    """Base of processes that let another one run and add events of their own.

    The clocks of the inner process keep their numbers. The further ones are numbered after them, but drawn before them.
    Around a local process with several clocks each further event has a clock of its own; else one clock stands for all
    further events, and proposes the earliest.

    `watched` are rows in compressed form, (indptr, indices): the coordinates whose paths the k-th further clock
    follows, and which its events may change. The whole moves by `flow`, or as the inner process does. If `final`, all
    clocks are redrawn after a further event.
    """

    inner: object
    first: int  #: number of the first further clock
    one_clock: bool  #: whether one clock stands for all further events
    channels_inside: int  #: of the inner process

    report = InnerReport()
    _required = ()

    def __init__(self, inner, watched, flow=None, final=False):
        self.inner = inner
        self.model = inner.model
        reach = inner.changes()
        self.one_clock = reach is None
        self.first, self.channels_inside = inner.clocks, len(inner.channels())
        self.own = 1 if self.one_clock else len(watched[0]) - 1
        if self.one_clock:
            dependents = _all_together(inner)
        else:
            dependents = _one_by_one(inner, reach, watched, final)
        clocks = self.first + self.own
        super().__init__(inner.dim, clocks, dependents, inner.flow if flow is None else flow, local=inner.local)
        if self.local:
            sizes = np.diff(watched[0])
            sizes = sizes.max(initial=1, keepdims=True) if self.one_clock else sizes
            self.scope = np.ascontiguousarray(watched[1], np.int64)
            self.scope_start = np.concatenate([[0], np.cumsum(sizes), sizes.sum() + inner.scope_start[1:]])
            self.scope_start = self.scope_start.astype(np.int64)
        self.order = np.concatenate([self.order, self.first + np.arange(self.own), np.arange(self.first)])

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def inside(self, state):
        """The state as the inner process knows it."""
        return State(
            state.x,
            state.v,
            state.moved,
            state.now,
            state.heap,
            state.keys,
            state.place,
            state.bounds,
            state.pending,
            state.counts,
            state.excess,
            state.memory.inner,
        )

    @compiled
    def rate(self, state, i, now, rng):
        return self.inner.rate(self.inside(state), i, now, rng)

    @compiled
    def touches(self, state, i):
        if i >= self.first:
            return self.span(state, i - self.first)
        shift = self.scope.shape[0]
        begin, end = self.inner.touches(self.inside(state), i)
        return shift + begin, shift + end

    @compiled
    def coordinate(self, k):
        shift = self.scope.shape[0]
        return self.scope[k] if k < shift else self.inner.coordinate(k - shift)

    @compiled
    def span(self, state, k):
        """Range of the coordinates that the next event of its own k-th clock changes."""
        return self.scope_start[k], self.scope_start[k + 1]

    @compiled
    def true_rates(self, x, v, scratch, out):
        """Those of the process within; its own clocks have none that x and v would tell."""
        self.inner.true_rates(x, v, scratch, out)
        out[self.channels_inside] = math.nan

    @compiled
    def channel(self, state, i):
        return self.inner.channel(self.inside(state), i) if i < self.first else self.channels_inside

    # -- Python -----------------------------------------------------------------------------------------------------

    def channels(self) -> list[str]:
        return [*self.inner.channels(), "further"]

    @property
    def anchor(self) -> np.ndarray | None:
        """That of the process within."""
        return self.inner.anchor

    @property
    def exact_bounds(self) -> bool:
        return self.inner.exact_bounds

    def waits_for_warmup(self) -> str | None:
        return self.inner.waits_for_warmup()

    def describe_bound(self) -> str:
        return self.inner.describe_bound()

    def resolve(self, x: np.ndarray) -> Self:
        resolved = copy.copy(self)
        resolved.inner = self.inner.resolve(x)
        return resolved

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.inner.velocity(x, rng)

    def prepare(self, state: State) -> None:
        self.inner.prepare(state._replace(memory=state.memory.inner))

    def begin(self, x: np.ndarray, rng: np.random.Generator) -> State:
        state = super().begin(x, rng)
        state.pending[:] = self.start[-1], len(self.order), DEPENDENTS
        return state


def check_process(process):
    """Raise a `TypeError` for what is no process."""
    if not isinstance(process, Process):
        raise TypeError(f"`process` must be a process such as pdmp.ZigZag(model), got a {type(process).__name__}.")


def _all_together(inner):
    """Dependents of the inner process's clocks and of one further clock, which every event concerns."""
    n = inner.clocks
    indptr = inner.start + np.arange(n + 1)
    last = inner.start[-1]
    indices = np.insert(inner.order[:last], inner.start[:-1], n)
    every = np.append(n, np.unique(inner.order[:last]))
    return np.append(indptr, indptr[-1] + len(every)), np.concatenate([indices, every])


def _one_by_one(inner, reach, watched, final):
    """Dependents of the inner process's clocks, and of the further ones: these watch what an event changes."""
    from scipy import sparse

    def matrix(rows, columns):
        indptr, indices = rows
        return sparse.csr_array((np.ones(len(indices), np.int32), indices, indptr), shape=(len(indptr) - 1, columns))

    reaches, watches = matrix(reach, inner.dim), matrix(watched, inner.dim)
    rings = matrix((inner.start, inner.order[: inner.start[-1]]), inner.clocks)
    # After an event that changes the velocity of coordinate j, all clocks whose rates depend on j are redrawn, and
    # perhaps others. Of the clocks with such events, take the one with the fewest dependents.
    transposed = reaches.T.tocsr()
    size = np.diff(inner.start)[transposed.indices]
    rows = np.repeat(np.arange(inner.dim), np.diff(transposed.indptr))
    least = np.lexsort([size, rows])
    first = np.unique(rows[least], return_index=True)
    one = sparse.csr_array(
        (np.ones(len(first[0]), np.int32), (first[0], transposed.indices[least[first[1]]])),
        shape=(inner.dim, inner.clocks),
    )
    own = sparse.hstack([watches @ watches.T, watches @ one @ rings])
    if final:
        own = sparse.csr_array(np.ones((1, own.shape[1]), np.int32))
        own = sparse.vstack([own] * watches.shape[0])
    both = sparse.csr_array(sparse.vstack([sparse.hstack([reaches @ watches.T, rings]), own]))
    both.sort_indices()  # the further clocks first
    indices = both.indices.astype(np.int64)
    further = watches.shape[0]
    return both.indptr.astype(np.int64), np.where(indices < further, inner.clocks + indices, indices - further)
