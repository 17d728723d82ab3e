r"""Data as factors that share one clock: each datum bounces by itself, and a proposal costs one datum, whatever N.

The factors of a regression are its data Uᵢ and its prior. With a clock for each datum, every change of velocity would
redraw N clocks. Here all data share one clock, which proposes at the rate Σᵢ χᵢ, χᵢ a bound on the rate (v·∇Uᵢ)₊ of
datum i. A datum is drawn with probability χᵢ / Σ χ and bounces with probability (v·∇Uᵢ)₊ / χᵢ. The prior has its own
clock.

============  ===========================================  ===========================================================
name          χᵢ                                           cost
============  ===========================================  ===========================================================
`Columns`     Σⱼ |vⱼ| Bᵢⱼ, Bᵢⱼ a bound on sign(vⱼ) ∂ⱼUᵢ    O(d): only the column sums Σᵢ Bᵢⱼ, one for each sign, are
                                                           needed. First j is drawn in proportion to |vⱼ| Σᵢ Bᵢⱼ, then
                                                           i in proportion to Bᵢⱼ by the column's alias table
`Rows`        the model's ``factor_rate_bound``, such as   O(N d) after a change of velocity, O(log N) else; χᵢ is
              (-sᵢ aᵢ·v)₊ of logistic regression           smaller, so fewer proposals are rejected
`Anchored`    Σⱼ |vⱼ| Lᵢⱼ |(x - x̂)/scale|, with control    O(d), as `Columns` with the sums Σᵢ Lᵢⱼ; the bound grows
              variates: factors Uᵢ(x) - x·∇Uᵢ(x̂), and      along the path and is inverted exactly
              x·Σᵢ ∇Uᵢ(x̂) added to the prior
============  ===========================================  ===========================================================

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 3.3.2 and supplement (thinning
with one datum a proposal; alias tables). Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient
sampling, Ann. Statist. 47, section 4 (control variates).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.gradients.alias import AliasTable
from pdmp.gradients.provider import clear, dot
from pdmp.models.capabilities import require
from pdmp.models.numerical import term_partial_lipschitz
from pdmp.native.classes import Compiled, compiled, entry, inlined, positive_part
from pdmp.native.velocities import reflect
from pdmp.process import CERTAIN, DATA, positions
from pdmp.thinning.affine import first_arrival

TERMS, PRIOR = 0, 1  #: numbers of the two clocks
#: Columns of the alias tables: the row of the data where a uniform number is below the threshold, and where it is not.
THRESHOLD, ROW, ALIAS_ROW = range(3)
#: Number of terms whose bounds are computed at a time, which bounds the memory.
BLOCK = 65_536


class Memory(NamedTuple):
    """What the clocks of data and prior work on."""

    gradient: np.ndarray  #: (d,) of the factor that may bounce
    here: np.ndarray  #: (d,) position at the proposal
    scratch: np.ndarray  #: (d,)
    sums: np.ndarray  #: (N,) of `Rows`, cumulative χᵢ; else (0,)
    summed_at: np.ndarray  #: (1,) time of the change of velocity for which `sums` was computed


class DataFactors(Compiled):
    """Base: a clock for the terms of a model, and one for its prior.

    A derived class gives ``terms_bound(process, state, now)``, the bound on the rate of all terms, and
    ``draw_datum(process, state, rng)``, the datum of a proposal.
    """

    model: Compiled

    exact = True

    def __init__(self, model):
        self.model = model

    @compiled
    def propose(self, process, state, f, now, rng):
        if f == PRIOR:
            a, b = self.prior_bound(process, state, now)
        else:
            a, b = self.terms_bound(process, state, now)
        s = first_arrival(a, b, rng.standard_exponential())
        return now + s, positive_part(a + b * s) if s < math.inf else CERTAIN

    @compiled
    def prior_bound(self, process, state, now):
        """v·∇prior at `now` and a bound on its slope along v; ∇prior is written into the memory."""
        memory, value, slope = state.memory, 0.0, 0.0
        positions(process.flow, state, now, memory.here)
        for j in range(state.v.shape[0]):
            memory.gradient[j] = self.model.prior_partial(memory.here, j) + self.linear_gradient(j)
            value += state.v[j] * memory.gradient[j]
            slope += self.model.prior_partial_curvature_bound(state.v, j)
        return value, slope

    @compiled
    def linear_gradient(self, j):
        """Partial derivative of a linear part of the potential, which has the prior's clock."""
        return 0.0

    @compiled
    def rate(self, process, state, f, now, rng):
        if f == PRIOR:
            return positive_part(self.prior_bound(process, state, now)[0])
        positions(process.flow, state, now, state.memory.here)
        i, scale = self.draw_datum(process, state, rng)
        state.counts[DATA] += 1
        self.term_gradient(state, i)
        return positive_part(dot(state.v, state.memory.gradient)) * scale

    @compiled
    def term_gradient(self, state, i):
        """Write the gradient of factor i."""
        memory = state.memory
        clear(memory.gradient)
        self.model.add_term_gradient(memory.here, i, memory.gradient)

    @compiled
    def bounce(self, state, f, now):
        """Reflect in the factor whose gradient `rate` has computed; returns the square of that gradient."""
        gradient = state.memory.gradient
        reflect(state.v, gradient)
        return dot(gradient, gradient)

    @compiled
    def true_rates(self, x, v, scratch, out):
        """Σᵢ max(0, v·∇Uᵢ) of the terms, and v·∇ of the prior and the linear part, at the position x."""
        out[TERMS], out[PRIOR] = 0.0, 0.0
        for i in range(self.model.n_data):
            out[TERMS] += positive_part(self.along(x, v, i, scratch))
        for j in range(x.shape[0]):
            out[PRIOR] += v[j] * (self.model.prior_partial(x, j) + self.linear_gradient(j))

    @compiled
    def along(self, x, v, i, scratch):
        """v·∇Uᵢ."""
        clear(scratch)
        self.model.add_term_gradient(x, i, scratch)
        return dot(v, scratch)

    def memory(self, n=0):
        """The `Memory` of one chain."""
        d = self.model.dim
        return Memory(np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(n), np.full(1, math.nan))


class ByColumns(DataFactors):
    """Base: χᵢ is a sum over coordinates, Σⱼ |vⱼ| Bᵢⱼ, and data are drawn column by column.

    A derived class gives ``bound_of(state, i)``, Σⱼ |vⱼ| Bᵢⱼ of one datum.
    """

    tables: np.ndarray  #: the alias tables of the columns, see `column_tables`
    start: np.ndarray
    totals: np.ndarray

    @compiled
    def side(self, state, j):
        """The table of coordinate j."""
        return j

    @compiled
    def sum_of_columns(self, state):
        """Σⱼ |vⱼ| Σᵢ Bᵢⱼ."""
        total = 0.0
        for j in range(state.v.shape[0]):
            total += abs(state.v[j]) * self.totals[self.side(state, j)]
        return total

    @compiled
    def draw_datum(self, process, state, rng):
        """A datum i in proportion to χᵢ, and Σ χ / χᵢ."""
        v, total = state.v, self.sum_of_columns(state)
        rest, column = rng.random() * total, 0
        for j in range(v.shape[0]):
            share = abs(v[j]) * self.totals[self.side(state, j)]
            if share > 0.0:
                column = self.side(state, j)
                rest -= share
                if rest < 0.0:
                    break
        i = draw_row(self.tables, self.start, column, rng)
        return i, total / self.bound_of(state, i)


class Columns(ByColumns):
    """Σᵢ Σⱼ |vⱼ| Bᵢⱼ, with Bᵢⱼ the model's bound on ∂ⱼUᵢ where vⱼ > 0, on -∂ⱼUᵢ where vⱼ < 0, for every x."""

    name = "the bounds on the partial derivatives of single terms"

    def __init__(self, model):
        super().__init__(model)
        sides = np.stack([signed_bounds(model, -1.0), signed_bounds(model, 1.0)], axis=2)
        self.tables, self.start, self.totals = column_tables(sides.reshape(model.n_data, -1))

    @compiled
    def side(self, state, j):
        """2j for vⱼ < 0, 2j + 1 for vⱼ > 0."""
        return 2 * j + (1 if state.v[j] > 0.0 else 0)

    @compiled
    def terms_bound(self, process, state, now):
        return self.sum_of_columns(state), 0.0

    @compiled
    def bound_of(self, state, i):
        bound, v = 0.0, state.v
        for j in range(v.shape[0]):
            bound += abs(v[j]) * self.model.signed_term_bound(i, j, 1.0 if v[j] > 0.0 else -1.0)
        return bound


class Rows(DataFactors):
    """Σᵢ χᵢ with the model's constant bounds on v·∇Uᵢ, summed up anew for each velocity."""

    name = "the bound `factor_rate_bound`"

    def __init__(self, model):
        super().__init__(model)
        rng = np.random.default_rng(0)
        for i in rng.permutation(model.n_data)[:100]:
            x, v = rng.standard_normal((2, model.dim))
            if model.native.factor_rate_bound(x, v, i)[1] != 0.0:
                raise ValueError(
                    f'`thinning="rows"` needs constant bounds: `factor_rate_bound` of {type(model).__name__} has a '
                    f"slope for term {i}. Give the graph (`pdmp.graph.from_model`), for a clock for each factor."
                )

    @compiled
    def terms_bound(self, process, state, now):
        sums = state.memory.sums
        n = sums.shape[0]
        if state.memory.summed_at[0] != state.moved[0]:
            total = 0.0
            for i in range(n):
                total += positive_part(self.model.factor_rate_bound(state.x, state.v, i)[0])
                sums[i] = total
            state.memory.summed_at[0] = state.moved[0]
            state.counts[DATA] += n
        return sums[n - 1], 0.0

    @compiled
    def draw_datum(self, process, state, rng):
        sums = state.memory.sums
        total = sums[sums.shape[0] - 1]
        rest, low, high = rng.random() * total, 0, sums.shape[0] - 1
        while low < high:  # the first i with sums[i] > rest
            middle = (low + high) // 2
            if sums[middle] > rest:
                high = middle
            else:
                low = middle + 1
        return low, total / positive_part(self.model.factor_rate_bound(state.x, state.v, low)[0])

    def memory(self, n=0):
        return super().memory(self.model.n_data)


class Anchored(ByColumns):
    """Σᵢ Σⱼ |vⱼ| Lᵢⱼ |(x - x̂) / scale|: control variates around x̂."""

    anchor: np.ndarray
    anchor_gradient: np.ndarray  #: (d,) Σᵢ ∇Uᵢ(x̂)
    scale: np.ndarray

    name = "the bound `term_lipschitz`"

    def __init__(self, provider):
        model = provider.model
        super().__init__(model)
        self.anchor, self.scale = np.array(provider.anchor, float), provider.scale
        prior = np.array([model.native.prior_partial(self.anchor, j) for j in range(model.dim)])
        self.anchor_gradient = model.gradient(self.anchor) - prior
        pieces = [
            term_partial_lipschitz(model, a, min(a + BLOCK, model.n_data), self.scale)
            for a in range(0, model.n_data, BLOCK)
        ]
        self.tables, self.start, self.totals = column_tables(np.concatenate(pieces))

    @compiled
    def linear_gradient(self, j):
        return self.anchor_gradient[j]

    @compiled
    def terms_bound(self, process, state, now):
        here, distance, speed = state.memory.here, 0.0, 0.0
        positions(process.flow, state, now, here)
        for j in range(here.shape[0]):
            u, w = (here[j] - self.anchor[j]) / self.scale[j], state.v[j] / self.scale[j]
            distance += u * u
            speed += w * w
        lipschitz = self.sum_of_columns(state)
        return lipschitz * math.sqrt(distance), lipschitz * math.sqrt(speed)

    @compiled
    def bound_of(self, state, i):
        self.model.term_lipschitz(i, self.scale, state.memory.scratch)
        bound = 0.0
        for j in range(state.v.shape[0]):
            bound += abs(state.v[j]) * state.memory.scratch[j]
        return bound

    @compiled
    def term_gradient(self, state, i):
        gradient, there = state.memory.gradient, state.memory.scratch
        for j in range(gradient.shape[0]):
            gradient[j] = 0.0
            there[j] = 0.0
        self.model.add_term_gradient(state.memory.here, i, gradient)
        self.model.add_term_gradient(self.anchor, i, there)
        for j in range(gradient.shape[0]):
            gradient[j] -= there[j]

    @compiled
    def true_rates(self, x, v, scratch, out):
        out[TERMS], out[PRIOR] = 0.0, 0.0
        for i in range(self.model.n_data):
            out[TERMS] += positive_part(self.along(x, v, i, scratch) - self.along(self.anchor, v, i, scratch))
        for j in range(x.shape[0]):
            out[PRIOR] += v[j] * (self.model.prior_partial(x, j) + self.linear_gradient(j))


@inlined
def draw_row(tables, start, column, rng):
    """A row number, drawn in proportion to the weights of this column."""
    k = start[column] + int(rng.random() * (start[column + 1] - start[column]))
    return int(tables[k, ROW] if rng.random() < tables[k, THRESHOLD] else tables[k, ALIAS_ROW])


def column_tables(weights):
    """An alias table for each column of `weights` (N, d) over its rows that are not zero, one after the other, (m, 4).

    A row has a threshold, the row where a uniform number is below it, and the one where it is not. Also returned are
    where the tables of the columns begin, (d + 1,), and the sums of the columns.
    """
    pieces = []
    for column in weights.T:
        rows = np.flatnonzero(column)
        piece = np.zeros((len(rows), 4))
        if len(rows):
            table = AliasTable(column[rows]).table
            piece[:, THRESHOLD], piece[:, ROW] = table[:, 0], rows
            piece[:, ALIAS_ROW] = rows[table[:, 1].astype(np.int64)]
        pieces.append(piece)
    start = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    return np.concatenate(pieces), start, weights.sum(axis=0)


def signed_bounds(model, sign):
    """The model's bounds on sign · ∂ⱼUᵢ, shape (N, d)."""
    out = np.zeros((model.n_data, model.dim))
    _signed_bounds(model.native, sign, out)
    return out


@entry
def _signed_bounds(model, sign, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = model.signed_term_bound(i, j, sign)


def data_factors(model, thinning, provider=None):
    """The data of a model as factors that share a clock; a `ValueError` names what the model lacks."""
    wanted = (
        "term_lipschitz" if provider is not None else "factor_rate_bound" if thinning == "rows" else "signed_term_bound"
    )
    asked = "control variates need" if provider is not None else f'`thinning="{thinning}"` needs'
    if model.n_data == 0:
        raise ValueError(f"{asked} terms: {type(model).__name__} has none.")
    require(model, asked, wanted)
    require(model, "the clock of the prior needs", "prior_partial", "prior_partial_curvature_bound")
    if provider is None:
        return Rows(model) if thinning == "rows" else Columns(model)
    if provider.size != 1:
        raise ValueError(f"`size` must be 1, a datum for each proposal of pdmp.LocalBPS, got {provider.size}.")
    return Anchored(provider)
