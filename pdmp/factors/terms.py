r"""Gradients of single factors in compiled code, restricted to the coordinates that the factor depends on.

Two kinds, with the same compiled methods::

    gradient(state, f, time)     memory.gradient[k] = the partial derivative of U_f in its k-th coordinate, at `time`
    affine(state, f, now)        where U_f is quadratic: v·∇U_f at `now` and its slope in time, v·H_f v
    bound(state, f, now)         where the model bounds it: (a, b) with v·∇U_f at now + s at most a + b s, s >= 0

`Quadratic` divides the precision matrix of a Gaussian among the factors of any graph that covers it; `Terms` are the
factors of a model, or sums of them. Each coordinate keeps the time at which it was last moved, so the methods bring
those of the factor to `time` or `now` first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.factors.graph import FactorGraph, from_model, from_networkx, some_of
from pdmp.gradients.provider import clear, dot
from pdmp.models.targets.gaussian import Gaussian
from pdmp.native.classes import Compiled, compiled, entry, readable
from pdmp.process import DATA, positions

#: Number of factors that are checked one by one before a run.
CHECKED = 100
#: Largest number of factors whose sum is compared with the gradient before a run.
SUMMED = 100_000


class Memory(NamedTuple):
    """What the clocks of factors work on."""

    gradient: np.ndarray  #: (largest scope,) of the factor evaluated last, restricted to its coordinates
    here: np.ndarray  #: (d,) positions; only those of that factor are up to date
    out: np.ndarray  #: (d,)
    cells: np.ndarray  #: (factors, 8), or (0, 8) without a grid: see `pdmp.factors.bounds`


class Factors(Compiled):
    """Base: the factors of a graph."""

    indptr: np.ndarray
    indices: np.ndarray

    scattered = False  # whether a factor's gradient is first written to an array of all d coordinates

    def __init__(self, graph):
        self.graph = graph
        self.indptr, self.indices = graph.indptr, graph.indices

    @compiled
    def along(self, state, f, time):
        """v·∇U_f at `time`."""
        self.gradient(state, f, time)
        total, first = 0.0, self.indptr[f]
        for k in range(first, self.indptr[f + 1]):
            total += state.v[self.indices[k]] * state.memory.gradient[k - first]
        return total

    @compiled
    def bounce(self, state, f, now):
        """Reflect the velocities of the factor's coordinates in its gradient; returns |∇U_f|²."""
        self.gradient(state, f, now)
        v, gradient, first = state.v, state.memory.gradient, self.indptr[f]
        along, square = 0.0, 0.0
        for k in range(first, self.indptr[f + 1]):
            along += v[self.indices[k]] * gradient[k - first]
            square += gradient[k - first] * gradient[k - first]
        if square > 0.0:
            c = 2.0 * along / square
            for k in range(first, self.indptr[f + 1]):
                v[self.indices[k]] -= c * gradient[k - first]
        return square

    @compiled
    def beyond(self, flow, state, f, time):
        """Whether U_f, which was not finite at `time`, need not be defined there: U says +inf, or a wall is there."""
        return False

    def memory(self, cells):
        """The `Memory` of one chain; `cells` is what the clocks keep."""
        d, largest = self.graph.dim, int(np.diff(self.indptr).max())
        room = d if self.scattered else 1
        return Memory(gradient=np.zeros(largest), here=np.zeros(room), out=np.zeros(room), cells=cells)


class Quadratic(Factors):
    r"""A Gaussian's potential, divided among factors: U_f(x) = ½ yᵀ M_f y - b_f·y, y being the coordinates of f.

    An off-diagonal entry of the precision matrix is divided equally among the factors that have both of its
    coordinates; a diagonal entry in proportion to the absolute off-diagonal values that each factor received in its
    row. With a factor for each off-diagonal entry, all are convex when the matrix is diagonally dominant.
    """

    blocks: np.ndarray  #: the matrices M_f one after the other, by rows
    block_start: np.ndarray
    force: np.ndarray  #: the vectors b_f, beside `indices`

    def __init__(self, model, graph):
        super().__init__(graph)
        self.blocks, self.block_start, self.force = divide(model, graph)

    @compiled
    def gradient(self, state, f, time):
        first, last = self.indptr[f], self.indptr[f + 1]
        at = self.block_start[f]
        for k in range(first, last):
            total = -self.force[k]
            for m in range(first, last):
                j = self.indices[m]
                total += self.blocks[at] * (state.x[j] + state.v[j] * (time - state.moved[j]))
                at += 1
            state.memory.gradient[k - first] = total

    @compiled
    def affine(self, state, f, now):
        value, slope, first, last = 0.0, 0.0, self.indptr[f], self.indptr[f + 1]
        at = self.block_start[f]
        for k in range(first, last):
            g, h = -self.force[k], 0.0
            for m in range(first, last):
                j, q = self.indices[m], self.blocks[at]
                g += q * (state.x[j] + state.v[j] * (now - state.moved[j]))
                h += q * state.v[j]
                at += 1
            value += state.v[self.indices[k]] * g
            slope += state.v[self.indices[k]] * h
        return value, slope

    @compiled
    def true_rates(self, x, v, scratch, out):
        """v·∇U_f of all factors at the position x with velocity v."""
        for f in range(self.indptr.shape[0] - 1):
            out[f], at = 0.0, self.block_start[f]
            for k in range(self.indptr[f], self.indptr[f + 1]):
                out[f] -= v[self.indices[k]] * self.force[k]
                for m in range(self.indptr[f], self.indptr[f + 1]):
                    out[f] += v[self.indices[k]] * self.blocks[at] * x[self.indices[m]]
                    at += 1


class Terms(Factors):
    """Factors of a model that says what they are by ``factors()``, or sums of them."""

    model: Compiled
    term_start: np.ndarray
    terms: np.ndarray

    scattered = True

    def __init__(self, model, graph):
        super().__init__(graph)
        self.model, self.term_start, self.terms = model, graph.term_start, graph.terms

    @compiled
    def _bring_to(self, state, f, time):
        """Bring the factor's coordinates to `time`, in `memory.here`."""
        for k in range(self.indptr[f], self.indptr[f + 1]):
            j = self.indices[k]
            state.memory.here[j] = state.x[j] + state.v[j] * (time - state.moved[j])

    @compiled
    def _count_data(self, state, f):
        """Add the number of data terms of the factor to the counts; 1 for a model without data."""
        n = 0
        for k in range(self.term_start[f], self.term_start[f + 1]):
            n += self.terms[k] < self.model.n_data
        state.counts[DATA] += n if self.model.n_data > 0 else 1

    @compiled
    def gradient(self, state, f, time):
        memory = state.memory
        self._bring_to(state, f, time)
        first, last = self.indptr[f], self.indptr[f + 1]
        for k in range(first, last):
            memory.out[self.indices[k]] = 0.0
        for k in range(self.term_start[f], self.term_start[f + 1]):
            self.model.add_factor_gradient(memory.here, self.terms[k], memory.out)
        for k in range(first, last):
            memory.gradient[k - first] = memory.out[self.indices[k]]
        self._count_data(state, f)

    @compiled(inline=False)
    def beyond(self, flow, state, f, time):
        memory = state.memory
        self._bring_to(state, f, time)
        for k in range(self.indptr[f], self.indptr[f + 1]):
            if flow.at_wall(self.indices[k], memory.here[self.indices[k]]):
                return True
        positions(flow, state, time, memory.here)
        return self.model.total_potential(memory.here) == math.inf

    @compiled
    def affine(self, state, f, now):
        value, slope = 0.0, 0.0
        for k in range(self.term_start[f], self.term_start[f + 1]):
            a, b = self.model.affine_factor(state.x, state.v, state.moved, now, self.terms[k])
            value += a
            slope += b
        self._count_data(state, f)
        return value, slope

    @compiled
    def bound(self, state, f, now):
        value, slope = 0.0, 0.0
        self._bring_to(state, f, now)
        for k in range(self.term_start[f], self.term_start[f + 1]):
            a, b = self.model.factor_rate_bound(state.memory.here, state.v, self.terms[k])
            value += a
            slope += b
        self._count_data(state, f)
        return value, slope

    @compiled
    def true_rates(self, x, v, scratch, out):
        """v·∇U_f of all factors, each over all coordinates."""
        for f in range(self.indptr.shape[0] - 1):
            clear(scratch)
            for k in range(self.term_start[f], self.term_start[f + 1]):
                self.model.add_factor_gradient(x, self.terms[k], scratch)
            out[f] = dot(v, scratch)

    def check(self, x, seed=0):
        """Raise a `ValueError` if factors near `x` (d,) do not add up, or one is less local than the graph says.

        The gradient of a factor must vanish outside its coordinates and not change with the others; the gradients of
        all of them must add up to that of the potential. `CHECKED` factors are checked, and the sum of at most
        `SUMMED`; points at which a gradient is not finite are skipped.
        """
        rng, graph, name = np.random.default_rng(seed), self.graph, type(self.model).__name__
        x = np.asarray(x, float) + 1e-2 * np.maximum(1.0, np.abs(x)) * rng.uniform(-1.0, 1.0, graph.dim)
        native = self.model.native
        with readable(name):
            if len(self.terms) <= SUMMED:
                total, exact = np.zeros(graph.dim), self.model.gradient(x)
                _add_factors(native, x, self.terms, total)
                if np.all(np.isfinite(total)) and not np.all(np.abs(total - exact) <= 1e-6 * (1.0 + np.abs(exact))):
                    j = int(np.argmax(np.abs(total - exact)))
                    raise ValueError(
                        f"the factors of {name} do not add up to its potential: in coordinate {j} their gradients sum "
                        f"to {total[j]:.8g}, that of the potential is {exact[j]:.8g}."
                    )
            for f in rng.permutation(len(graph))[:CHECKED]:
                scope = graph.scope(f)
                outside = np.ones(graph.dim, bool)
                outside[scope] = False
                moved = x + outside * 0.1 * np.maximum(1.0, np.abs(x)) * rng.uniform(-1.0, 1.0, graph.dim)
                found = np.zeros((2, graph.dim))
                terms = self.terms[self.term_start[f] : self.term_start[f + 1]]
                for point, out in zip((x, moved), found, strict=True):
                    _add_factors(native, point, terms, out)
                if not np.all(np.isfinite(found)):
                    continue
                if np.any(found[0][outside] != 0.0):
                    wrong = np.flatnonzero(outside & (found[0] != 0.0))
                    raise ValueError(
                        f"the gradient of factor {f} of {name} does not vanish outside its coordinates "
                        f"{some_of(scope)}: it depends on {some_of(wrong)} too. Name them in `factors()` or the graph."
                    )
                change = np.abs(found[1] - found[0])[scope]
                if np.any(change > 1e-9 * (1.0 + np.abs(found[0][scope]))):
                    raise ValueError(
                        f"the gradient of factor {f} of {name} changes with coordinates that are not among its own, "
                        f"{some_of(scope)}. Name all that it depends on in `factors()` or the graph."
                    )


@entry
def _add_factors(model, x, terms, out):
    for k in range(terms.shape[0]):
        model.add_factor_gradient(x, terms[k], out)


def divide(model, graph):
    """The matrices of `Quadratic`, one after the other, where each begins, and the vectors."""
    d, sizes = model.dim, np.diff(graph.indptr)
    start = np.concatenate([[0], np.cumsum(sizes**2)])
    owner = np.repeat(np.arange(len(graph)), sizes**2)
    local = np.arange(start[-1]) - start[owner]
    i = graph.indices[graph.indptr[owner] + local // sizes[owner]]
    j = graph.indices[graph.indptr[owner] + local % sizes[owner]]
    # The place of each entry of the blocks in the precision matrix, whose keys (row, column) ascend.
    keys = np.repeat(np.arange(d), np.diff(model.indptr)) * d + model.indices
    place = np.minimum(np.searchsorted(keys, i * d + j), len(keys) - 1)
    there = keys[place] == i * d + j
    times = np.bincount(place[there], minlength=len(keys))
    if np.any(times == 0):
        k = int(np.argmin(times))
        raise ValueError(
            f"the factor graph does not cover the potential: coordinates {keys[k] // d} and {keys[k] % d} interact, "
            "but no factor has both."
        )
    blocks = np.where(there, model.data[place] / np.maximum(times[place], 1), 0.0)
    diagonal = i == j
    rows = graph.indptr[owner] + local // sizes[owner]  # of all blocks, one after the other
    off_diagonal = np.bincount(rows, np.where(diagonal, 0.0, np.abs(blocks)), minlength=len(graph.indices))
    total = np.bincount(graph.indices, off_diagonal, minlength=d)
    share = np.where(total[graph.indices] > 0.0, off_diagonal / np.where(total > 0.0, total, 1.0)[graph.indices], 0.0)
    equal = 1.0 / np.bincount(graph.indices, minlength=d)
    share = np.where(total[graph.indices] > 0.0, share, equal[graph.indices])
    blocks[diagonal] = model.data[place[diagonal]] * share[rows[diagonal]]
    return blocks, start, np.bincount(rows, blocks * model.mean[j], minlength=len(graph.indices))


def compiled_factors(model, graph=None):
    """The `Factors` of a model, for a graph given as in `pdmp.LocalBPS`."""
    gaussian = isinstance(model, Gaussian)
    if graph is None:
        graph = from_model(model)
    elif not isinstance(graph, FactorGraph):
        if gaussian:
            return Quadratic(model, from_networkx(graph, model.dim))
        count = model.n_data + int(model.has("add_prior_gradient"))
        if model.has("add_factor_gradient") or model.factors() is not None:
            count = len(from_model(model))
        graph = from_networkx(graph, model.dim, count)
    if graph.dim != model.dim:
        raise ValueError(f"`graph` has {graph.dim} coordinates, {type(model).__name__} has {model.dim}.")
    return Quadratic(model, graph) if gaussian else Terms(model, graph)
