r"""Terms of a `SumOfTerms` as factors of a few coordinates each, with bounds derived from their expressions.

A term U_f(x) = l(η), η = A x, moves along the path of its functionals. With ḣ the ranges of dη/dt over the next s, and
the Hessian H of l enclosed over the box that η sweeps meanwhile,

    a factor      d/dt v·∇U_f      = Σ_kl H_kl η̇_k η̇_l
    a coordinate  d/dt ∂ᵢU         = Σ_f Σ_kl A_ki H_kl η̇_l

are in intervals that are rounded outward (`pdmp.expressions.tape`), so no rate is ever above its bound. Of terms that
are quadratic, as their second derivatives show, and of normal priors, the matrix is made once instead: those of a
factor one small matrix, those of a coordinate a row of one sparse matrix, and rates of nothing else are affine in time.

`SumFactors` are the factors of `pdmp.LocalBPS`, `SumPartials` the partial derivatives of `pdmp.ZigZag` and
`pdmp.FactorisedBoomerang` with a clock for each coordinate.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from pdmp.expressions.tape import (
    BEGIN,
    CURVATURE,
    DEPENDENT,
    GRADIENT,
    RESULT,
    SECOND,
    STOP,
    down,
    enclose_part,
    times,
    up,
)
from pdmp.factors.graph import FactorGraph
from pdmp.factors.terms import Quadratic, Terms, compiled_factors
from pdmp.flow import Linear
from pdmp.models.priors import FLAT, NORMAL, STUDENT_T
from pdmp.models.sums_of_terms import COLUMN_STEP, COUNT, SLACK, START, WIDTH, SumOfTerms, largest_product
from pdmp.native.classes import Compiled, compiled, entry, inlined
from pdmp.process import DATA

SMALL = 16  #: coordinates up to which a quadratic factor is kept as a matrix


class Sweep(NamedTuple):
    """What enclosing a term along a piece of path works on, in one lane."""

    eta: np.ndarray  #: (m, 1) functionals where the piece begins
    slope: np.ndarray  #: (m, 1) and their derivatives in time
    low_eta: np.ndarray  #: and the ranges of both
    high_eta: np.ndarray
    low_slope: np.ndarray
    high_slope: np.ndarray
    data: np.ndarray  #: (q, 1)
    square: np.ndarray  #: (m, m, 1)
    room: np.ndarray  #: (registers, 1)
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, model):
        """For the terms of a model."""
        m, registers = model.n_functionals, model.registers
        return cls(*np.zeros((6, m, 1)), np.zeros((model.n_columns, 1)), np.zeros((m, m, 1)),
                   *np.zeros((3, registers, 1)))  # fmt: skip


class SumAlong(Compiled):
    """Base: single terms of a `SumOfTerms` along a piece of path."""

    model: Compiled
    flow: Compiled  #: one of `pdmp.flow`

    @compiled
    def sweep(self, state, k, i, now, s, room):
        """Functionals of row i, of kind k, at `now`, and where they and their derivatives in time are until now + s."""
        model, layout = self.model, self.model.layout
        c, w = self.model.entries_of(k, i)
        sine, rise, _ = self.flow.arc(s)
        model.read(k, i, 0, room.data)
        for f in range(layout[k, COUNT]):
            eta, slope, bend, size, pace = 0.0, 0.0, 0.0, 0.0, 0.0
            for q in range(model.start[layout[k, START] + f], model.start[layout[k, START] + f + 1]):
                j, a = model.columns[c + q], model.values[w + q]
                x, v, since = state.x[j], state.v[j], now - state.moved[j]
                y, u = self.flow.position(j, x, v, since), self.flow.velocity(j, x, v, since)
                b = self.flow.bend(j, y, u)
                eta += a * y
                slope += a * u
                bend += a * b
                size += abs(a * y)
                pace += abs(a * u) + abs(a * b)
            rounding = SLACK * (size + (sine + rise) * pace)
            room.eta[f, 0], room.slope[f, 0] = eta, slope
            room.low_eta[f, 0] = eta + min(sine * slope, 0.0) - max(rise * bend, 0.0) - rounding
            room.high_eta[f, 0] = eta + max(sine * slope, 0.0) - min(rise * bend, 0.0) + rounding
            rounding = SLACK * pace
            room.low_slope[f, 0] = slope - max(rise * slope, 0.0) - max(sine * bend, 0.0) - rounding
            room.high_slope[f, 0] = slope - min(rise * slope, 0.0) - min(sine * bend, 0.0) + rounding

    @compiled
    def place_along(self, state, k, i, now, room):
        """Functionals of row i at `now`, and their derivatives in time."""
        model, layout = self.model, self.model.layout
        c, w = self.model.entries_of(k, i)
        model.read(k, i, 0, room.data)
        for f in range(layout[k, COUNT]):
            eta, slope = 0.0, 0.0
            for q in range(model.start[layout[k, START] + f], model.start[layout[k, START] + f + 1]):
                j, a = model.columns[c + q], model.values[w + q]
                x, v, since = state.x[j], state.v[j], now - state.moved[j]
                eta += a * self.flow.position(j, x, v, since)
                slope += a * self.flow.velocity(j, x, v, since)
            room.eta[f, 0], room.slope[f, 0] = eta, slope

    @compiled
    def enclose(self, k, room):
        """Enclose the Hessian of the row that `sweep` has placed; where its entries are listed."""
        model = self.model
        enclose_part(
            model.code, model.number, model.tapes[k, SECOND, BEGIN], model.tapes[k, SECOND, DEPENDENT],
            model.tapes[k, SECOND, STOP], 1, room.data, room.low_eta, room.high_eta, room.eta, room.square, math.inf,
            room.low, room.high,
        )  # fmt: skip
        return model.tapes[k, SECOND, RESULT]

    @compiled
    def coefficient(self, k, i, f, j):
        """A_fj of row i."""
        model, layout, total = self.model, self.model.layout, 0.0
        c, w = self.model.entries_of(k, i)
        for q in range(model.start[layout[k, START] + f], model.start[layout[k, START] + f + 1]):
            if model.columns[c + q] == j:
                total += np.float64(model.values[w + q])
        return total


class SumMemory(NamedTuple):
    """What the clocks of factors work on, as `pdmp.factors.terms.Memory`."""

    gradient: np.ndarray
    here: np.ndarray
    out: np.ndarray
    cells: np.ndarray  #: (factors, 1) horizons
    sweep: Sweep


class SumFactors(SumAlong, Terms):
    """The factors of a `SumOfTerms`, or sums of them: each term, and the prior of each coordinate."""

    known: np.ndarray  #: (factors,) whether it is quadratic, with M and b as in `Quadratic`
    blocks: np.ndarray
    block_start: np.ndarray
    force: np.ndarray

    affine_of_known, gradient_of_known = Quadratic.affine, Quadratic.gradient

    def __init__(self, model, graph):
        super().__init__(model, graph)
        self.flow = Linear()
        self.known, self.block_start, self.blocks, self.force = quadratic_parts(model, graph)

    @compiled
    def affine(self, state, f, now):
        state.counts[DATA] += 1
        return self.affine_of_known(state, f, now)

    @compiled
    def gradient(self, state, f, time):
        if self.known[f]:
            self.gradient_of_known(state, f, time)
        else:
            self.add_gradient(state, f, time)

    @compiled(inline=False)
    def add_gradient(self, state, f, time):
        """That of a factor that is not known as a matrix."""
        model, memory, first = self.model, state.memory, self.indptr[f]
        for p in range(first, self.indptr[f + 1]):
            memory.gradient[p - first] = 0.0
        for q in range(self.term_start[f], self.term_start[f + 1]):
            i = self.terms[q]
            if i >= model.n_data:
                j = i - model.n_data
                y = state.x[j] + state.v[j] * (time - state.moved[j])
                p = position(self.indices, first, j)
                memory.gradient[p] += model.derivative_of_prior(j, y)
                continue
            k = model.kind_of(i)
            self.place_along(state, k, i, time, memory.sweep)
            result = model.run(k, GRADIENT, 1, memory.sweep.data, memory.sweep.eta, memory.sweep.room)
            for a in range(model.layout[k, COUNT]):
                weight = memory.sweep.room[model.results[result + a], 0]
                c, w = self.model.entries_of(k, i)
                for t in range(model.start[model.layout[k, START] + a], model.start[model.layout[k, START] + a + 1]):
                    memory.gradient[position(self.indices, first, model.columns[c + t])] += weight * model.values[w + t]

    @compiled
    def rate_within(self, state, f, now, s):
        """v·∇U_f at `now`, and a bound on its derivative in time until now + s, of a factor that is no matrix."""
        self._count_data(state, f)
        model, room, value, rise = self.model, state.memory.sweep, 0.0, 0.0
        for q in range(self.term_start[f], self.term_start[f + 1]):
            i = self.terms[q]
            if i >= model.n_data:
                j = i - model.n_data
                u, y = state.v[j], state.x[j] + state.v[j] * (now - state.moved[j])
                _, most = prior_range(model, j, max(y, y + s * u))
                value += u * model.derivative_of_prior(j, y)
                rise += most * u * u
                continue
            k = model.kind_of(i)
            self.sweep(state, k, i, now, s, room)
            place, m = self.enclose(k, room), model.layout[k, COUNT]
            for a in range(m):
                for b in range(a, m):
                    r = model.results[place]
                    place += 1
                    product = (1.0 if a == b else 2.0) * room.slope[a, 0] * room.slope[b, 0]
                    rise += largest_product(product, room.low[r, 0], room.high[r, 0])
            value += self.slope_of(k, room)
        return value, rise

    @compiled
    def along(self, state, f, time):
        if self.known[f]:
            value, _ = self.affine(state, f, time)
            return value
        self._count_data(state, f)
        total, model = 0.0, self.model
        for q in range(self.term_start[f], self.term_start[f + 1]):
            i = self.terms[q]
            if i >= model.n_data:
                j = i - model.n_data
                y = state.x[j] + state.v[j] * (time - state.moved[j])
                total += state.v[j] * model.derivative_of_prior(j, y)
                continue
            k = model.kind_of(i)
            self.place_along(state, k, i, time, state.memory.sweep)
            total += self.slope_of(k, state.memory.sweep)
        return total

    @compiled
    def is_affine(self, f):
        """Whether factor f is quadratic, and its rate that of `affine`."""
        return self.known[f]

    @compiled
    def slope_of(self, k, room):
        """dU/dt of the row that is placed in `room`."""
        model, total = self.model, 0.0
        first = model.run(k, GRADIENT, 1, room.data, room.eta, room.room)
        for a in range(model.layout[k, COUNT]):
            total += room.slope[a, 0] * room.room[model.results[first + a], 0]
        return total

    def memory(self, cells):
        return SumMemory(*super().memory(cells), Sweep.of(self.model))


class SumPartials(SumAlong):
    """The rates vᵢ ∂ᵢ(U - V) of single coordinates, V = ½ Σ wⱼ (xⱼ - mⱼ)², for paths of any flow.

    `graph` is that of `graph_of_sum`; `weights` and `mean` are w and m, (d,) or 0.
    """

    indptr: np.ndarray  #: the matrix of all quadratic terms less V, in compressed rows
    indices: np.ndarray
    entries: np.ndarray
    force: np.ndarray  #: (d,) the gradient of these is Qx - force
    term_start: np.ndarray  #: (d + 1,) the other terms of each coordinate
    terms: np.ndarray

    def __init__(self, model, graph, flow, weights=0.0, mean=0.0):
        d = model.dim
        self.model, self.flow = model, flow
        known, start, blocks, force = quadratic_parts(model, graph)
        sizes = np.diff(graph.indptr)
        squares = np.where(known, sizes**2, 0)
        owner = np.repeat(np.arange(len(graph)), squares)
        local = np.arange(len(blocks)) - start[owner]
        places = [graph.indices[graph.indptr[owner] + part] for part in (local // sizes[owner], local % sizes[owner])]
        matrix = sparse.coo_array((blocks, places), shape=(d, d)) - sparse.dia_array(
            (np.broadcast_to(weights, (1, d)), [0]), shape=(d, d)
        )
        matrix = sparse.csr_array(matrix)
        matrix.sum_duplicates()
        self.indptr, self.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        self.entries = matrix.data
        self.force = np.bincount(graph.indices, force, minlength=d) - np.broadcast_to(weights, d) * mean
        others = np.repeat(~known, sizes)  # each of which is a single term
        coordinates, terms = graph.indices[others], np.repeat(graph.terms[graph.term_start[:-1]], sizes)[others]
        order = np.argsort(coordinates, kind="stable")
        self.terms = terms[order]
        self.term_start = np.concatenate([[0], np.cumsum(np.bincount(coordinates, minlength=d))]).astype(np.int64)

    @compiled
    def quadratic(self, state, i, now):
        """Of ∂ᵢ of all that is quadratic: value, derivative in time, minus its acceleration; the last two's size."""
        partial, slope, bends, size = -self.force[i], 0.0, 0.0, 0.0
        for q in range(self.indptr[i], self.indptr[i + 1]):
            j, a = self.indices[q], self.entries[q]
            since = now - state.moved[j]
            y = self.flow.position(j, state.x[j], state.v[j], since)
            u = self.flow.velocity(j, state.x[j], state.v[j], since)
            b = self.flow.bend(j, y, u)
            partial += a * y
            slope += a * u
            bends += a * b
            size += abs(a * u) + abs(a * b)
        return partial, slope, bends, size

    @compiled
    def affine(self, state, i, now):
        """The rate of a coordinate for which `is_affine`, and its derivative in time."""
        state.counts[DATA] += 1
        partial, slope, _, _ = self.quadratic(state, i, now)
        return state.v[i] * partial, state.v[i] * slope

    @compiled
    def rate_within(self, state, i, now, s):
        """vᵢ ∂ᵢ(U - V) at `now`, and a bound on its derivative in time until now + s."""
        model, room = self.model, state.memory.bound.sweep
        sine, rise, turns = self.flow.arc(s)
        since = now - state.moved[i]
        here = self.flow.position(i, state.x[i], state.v[i], since)
        v = self.flow.velocity(i, state.x[i], state.v[i], since)
        bend = self.flow.bend(i, here, v)
        if v == 0.0 and turns * bend == 0.0:  # frozen
            return 0.0, 0.0
        partial, slope, bends, size = self.quadratic(state, i, now)
        state.counts[DATA] += max(1, self.term_start[i + 1] - self.term_start[i])
        low = slope - max(rise * slope, 0.0) - max(sine * bends, 0.0) - turns * SLACK * size
        high = slope - min(rise * slope, 0.0) - min(sine * bends, 0.0) + turns * SLACK * size
        low_v = v - max(rise * v, 0.0) - max(sine * bend, 0.0)
        high_v = v - min(rise * v, 0.0) - min(sine * bend, 0.0)
        for q in range(self.term_start[i], self.term_start[i + 1]):
            t = self.terms[q]
            if t >= model.n_data:
                furthest = here + max(sine * v, 0.0) - min(rise * bend, 0.0)
                least, most = prior_range(model, i, furthest)
                partial += model.derivative_of_prior(i, here)
                p, q_ = times(least, most, low_v, high_v)
                low, high = down(low + p), up(high + q_)
                continue
            k = model.kind_of(t)
            self.sweep(state, k, t, now, s, room)
            first, m = self.enclose(k, room), model.layout[k, COUNT]
            for f in range(m):
                a = self.coefficient(k, t, f, i)
                if a == 0.0:
                    continue
                for g in range(m):
                    e, h = min(f, g), max(f, g)
                    r = model.results[first + e * m - (e * (e - 1)) // 2 + h - e]
                    p, q_ = times(room.low[r, 0], room.high[r, 0], room.low_slope[g, 0], room.high_slope[g, 0])
                    p, q_ = times(a, a, p, q_)
                    low, high = down(low + p), up(high + q_)
            partial += self.partial_of(k, t, i, room)
        if turns == 0.0:
            return v * partial, max(v * low, v * high)
        # The derivative of v(t) g(t) is -b(t) g(t) + v(t) g'(t), b being the distance from the centre.
        low_b = bend - max(rise * bend, 0.0) + min(sine * v, 0.0)
        high_b = bend - min(rise * bend, 0.0) + max(sine * v, 0.0)
        least, _ = times(low_b, high_b, down(partial + min(s * low, 0.0)), up(partial + max(s * high, 0.0)))
        _, most = times(low_v, high_v, low, high)
        return v * partial, up(most - least)

    @compiled
    def is_affine(self, i):
        """Whether the rate of coordinate i is affine in time, as `rate_within` then says for every s."""
        return self.flow.longest() == math.inf and self.term_start[i] == self.term_start[i + 1]

    @compiled
    def partial_of(self, k, t, i, room):
        """∂ᵢ of the row that is placed in `room`."""
        model, total = self.model, 0.0
        first = model.run(k, GRADIENT, 1, room.data, room.eta, room.room)
        for f in range(model.layout[k, COUNT]):
            total += self.coefficient(k, t, f, i) * room.room[model.results[first + f], 0]
        return total

    @compiled
    def rate_of(self, state, i, now):
        """vᵢ ∂ᵢ(U - V) at `now`."""
        model, room = self.model, state.memory.bound.sweep
        partial = -self.force[i]
        for q in range(self.indptr[i], self.indptr[i + 1]):
            j = self.indices[q]
            partial += self.entries[q] * self.flow.position(j, state.x[j], state.v[j], now - state.moved[j])
        for q in range(self.term_start[i], self.term_start[i + 1]):
            t = self.terms[q]
            if t >= model.n_data:
                y = self.flow.position(i, state.x[i], state.v[i], now - state.moved[i])
                partial += model.derivative_of_prior(i, y)
                continue
            k = model.kind_of(t)
            self.place_along(state, k, t, now, room)
            partial += self.partial_of(k, t, i, room)
        state.counts[DATA] += self.term_start[i + 1] - self.term_start[i]
        return self.flow.velocity(i, state.x[i], state.v[i], now - state.moved[i]) * partial

    def memory(self):
        """Arrays to work on."""
        return Sweep.of(self.model)


@inlined
def prior_range(model, j, x):
    """Between what the second derivative of the prior of coordinate j is at every place up to x."""
    most = model.curvature_bound_of_prior_until(j, x + SLACK * abs(x)) * (1.0 + SLACK)
    least = -0.125 * model.curvature_bound_of_prior(j) * (1.0 + SLACK) if model.kinds[j] == STUDENT_T else 0.0
    return least, most


def factors_of(model, graph=None):
    """The factors of a model as of `compiled_factors`; of terms that are enclosed these `SumFactors`."""
    if not model.has("remainder_along", "data_sums"):
        return compiled_factors(model, graph)
    return SumFactors(model, graph_of_sum(model) if graph is None else compiled_factors(model, graph).graph)


def graph_of_sum(model: SumOfTerms) -> FactorGraph:
    """The factors of a `SumOfTerms`: each term, and each prior that is not flat.

    What is quadratic in one coordinate is added to a quadratic term of several, if there is one: fewer clocks.
    """
    start, indices = model.factors()
    sizes, quadratic = np.diff(start), quadratic_terms(model)
    kept = np.r_[np.ones(model.n_data, bool), model.kinds != FLAT]
    owner = np.arange(len(sizes))
    several = np.repeat(quadratic & (sizes > 1) & (sizes <= SMALL), sizes)
    host = np.full(model.dim, -1)
    host[indices[several][::-1]] = np.repeat(owner, sizes)[several][::-1]  # of each coordinate the first
    alone = np.flatnonzero(quadratic & kept & (sizes == 1))
    guests = alone[host[indices[start[alone]]] >= 0]
    owner[guests] = host[indices[start[guests]]]
    own = np.flatnonzero(kept & (owner == np.arange(len(sizes))))
    ends = np.cumsum(sizes[own])
    place = np.arange(ends[-1]) + np.repeat(start[own] - (ends - sizes[own]), sizes[own])
    kept = np.flatnonzero(kept)
    terms = kept[np.argsort(owner[kept], kind="stable")]
    starts = np.r_[0, np.cumsum(np.bincount(owner[kept], minlength=len(sizes))[own])]
    return FactorGraph((np.r_[0, ends], indices[place]), model.dim, (starts, terms))


def quadratic_terms(model):
    """Of each term and prior, whether it is quadratic: its second derivatives depend on the data alone."""
    own = (model.tapes[:, SECOND, DEPENDENT] == model.tapes[:, SECOND, STOP])[: len(model.kinds_of_rows)]
    rows = np.repeat(own, [model.rows_of(k) for k in range(len(own))])
    return np.concatenate([rows, (model.kinds == NORMAL) | (model.kinds == FLAT)])


def local_graph(model, needed: bool = False) -> FactorGraph | None:
    """The factors of a model if a clock for each coordinate pays, as its events touch few of the terms; else None.

    `needed`: whatever it costs; a `ValueError` if there are none.
    """
    if not model.has("remainder_along", "data_sums"):
        if needed:
            raise ValueError(f'`thinning="local"` needs a model of pdmp.terms, got {type(model).__name__}.')
        return None
    if needed:
        return graph_of_sum(model)
    for k, layout in enumerate(model.kinds_of_rows):
        n = float(model.rows_of(k))
        if not layout[COLUMN_STEP] and n * n * layout[WIDTH] ** 2 / model.dim > model.n_data + model.dim:
            return None  # most coordinates are in most of these rows
    graph = graph_of_sum(model)
    owner = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    each = np.bincount(graph.indices, minlength=model.dim)  # terms of a coordinate; of a factor's coordinates; …
    of_factor = np.bincount(owner, each[graph.indices], minlength=len(graph))
    touched = np.bincount(graph.indices, of_factor[owner], minlength=model.dim)
    return graph if touched.mean() <= len(graph) else None


def neighbours_of(graph: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates that share a factor with each coordinate, itself included, in compressed rows."""
    ones = sparse.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(len(graph), graph.dim))
    product = (ones.T @ ones).tocsr()
    product.sort_indices()
    return product.indptr.astype(np.int64), product.indices.astype(np.int64)


def quadratic_parts(model, graph):
    """Which factors are quadratic and small, where the matrix of each begins, these, and b (see `SumFactors`)."""
    quadratic = quadratic_terms(model)
    owner = np.repeat(np.arange(len(graph)), np.diff(graph.term_start))
    others = np.bincount(owner, ~quadratic[graph.terms], minlength=len(graph))
    sizes = np.diff(graph.indptr)
    known = (others == 0) & (sizes <= SMALL)
    start = np.concatenate([[0], np.cumsum(np.where(known, sizes**2, 0))])
    blocks, force = np.zeros(start[-1]), np.zeros(len(graph.indices))
    _write_blocks(
        model.native, graph.indptr, graph.indices, graph.term_start, graph.terms, known, start, Sweep.of(model),
        blocks, force,
    )  # fmt: skip
    return known, start, blocks, force


@entry
def _write_blocks(model, indptr, indices, term_start, terms, known, start, room, blocks, force):
    """The matrices and vectors of factors that are quadratic, from the derivatives of their terms at 0."""
    for f in range(known.shape[0]):
        if not known[f]:
            continue
        size = indptr[f + 1] - indptr[f]
        for q in range(term_start[f], term_start[f + 1]):
            i = terms[q]
            if i >= model.n_data:
                j = i - model.n_data
                if model.kinds[j] == NORMAL:
                    p = position(indices, indptr[f], j)
                    weight = 1.0 / (model.numbers[j, 1] * model.numbers[j, 1])
                    blocks[start[f] + p * (size + 1)] += weight
                    force[indptr[f] + p] += weight * model.numbers[j, 0]
                continue
            k = model.kind_of(i)
            layout, m, (c, w) = model.layout, model.layout[k, COUNT], model.entries_of(k, i)
            model.read(k, i, 0, room.data)
            for a in range(m):
                room.eta[a, 0] = 0.0
            first = model.run(k, CURVATURE, 1, room.data, room.eta, room.room)
            for a in range(m):
                g = room.room[model.results[first + a], 0]
                for r in range(model.start[layout[k, START] + a], model.start[layout[k, START] + a + 1]):
                    p = position(indices, indptr[f], model.columns[c + r])
                    force[indptr[f] + p] -= g * model.values[w + r]
                    for b in range(m):
                        low, high = min(a, b), max(a, b)
                        h = room.room[model.results[first + m + low * m - (low * (low - 1)) // 2 + high - low], 0]
                        for t in range(model.start[layout[k, START] + b], model.start[layout[k, START] + b + 1]):
                            u = position(indices, indptr[f], model.columns[c + t])
                            blocks[start[f] + p * size + u] += h * model.values[w + r] * model.values[w + t]


@inlined
def position(indices, first, j):
    """Where coordinate j is among those of a factor."""
    place = first
    while indices[place] != j:
        place += 1
    return place - first
