r"""The Zig-Zag process with exact sub-sampling: `pdmp.ZigZag` of mini-batches or control variates.

=====  ====================================================================================================
flow   straight lines, x + v s, |vⱼ| = σⱼ the speed of coordinate j
clock  one Poisson clock for all coordinates, of the bound Σⱼ Bⱼ below, which is affine in time
rate   of coordinate j: E (vⱼ ĝⱼ(x))₊ + γⱼ, the expectation over a fresh batch of the estimate ĝ of ∇U(x)
jump   vⱼ ← -vⱼ
=====  ====================================================================================================

The rates balance the flow because E (vⱼ ĝⱼ)₊ - E (-vⱼ ĝⱼ)₊ = vⱼ ∂ⱼU for every unbiased ĝ. The expectation is never
taken: a proposal draws a batch and one coordinate j, and is accepted with probability ((vⱼ ĝⱼ)₊ + γⱼ) / Bⱼ. At a time
s after the clock was drawn, with [·]₊ the positive part when it was, a batch of n data i with weights wᵢ = 1 / (n pᵢ)
has the bounds

    Minibatch                    Bⱼ = [vⱼ ∂ⱼprior]₊ + bⱼ s + γⱼ + N σⱼ maxᵢ Mᵢⱼ
    ControlVariate, uniform      Bⱼ = [vⱼ (∂ⱼprior + ∂ⱼΣUᵢ(a))]₊ + bⱼ s + γⱼ + N σⱼ maxᵢ Lᵢⱼ (|(x - a)/σ| + √d s)
    ControlVariate, importance   Bⱼ = [vⱼ (∂ⱼprior + ∂ⱼΣUᵢ(a))]₊ + bⱼ s + γⱼ + σⱼ Σ wᵢ Lᵢⱼ (|(x - a)/σ| + √d s)

with the anchor a, |∂ⱼUᵢ| <= Mᵢⱼ, |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y)/σ|, bⱼ >= 0 a bound on the slope of the prior's
part, and √d = |v/σ|. Importance draws i in proportion to Cᵢ = Σⱼ σⱼ Lᵢⱼ, so that Σⱼ σⱼ Σ wᵢ Lᵢⱼ = Σᵢ Cᵢ whatever the
batch: the clock needs no batch, and j is drawn in proportion to Bⱼ once the batch is known. Of several anchors
(`pdmp.gradients.anchors`) the nearest to x counts, and in [·]₊ the one for which that is largest.

No batch depends on the state. So batches are drawn ahead of their use, and their data are prefetched from main memory,
or from a file, while others are evaluated.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47, sections 4.1 (rates and constant bounds), 5 (control variates: eq. 19) and 5.2 (affine bounds).
Sen, Sachs, Lu & Dunson (2020), Efficient posterior sampling for high-dimensional imbalanced logistic regression,
Biometrika 107 (importance sub-sampling).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.gradients import ControlVariate
from pdmp.gradients.anchors import Anchor
from pdmp.models.capabilities import require
from pdmp.native.classes import Compiled, compiled, entry, larger, positive_part
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN, DATA, positions
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import Bound, draw_component

AHEAD = 16  #: data drawn ahead of their use
AHEAD_IN_FILE = 128  #: and of a model whose data are read from a file


class Memory(NamedTuple):
    """Beside the path: what the bound is made of, from the last proposal on, and the batches drawn ahead."""

    here: Vector  #: the position at time `at`
    at: Number  #: NaN before the first
    start: Number  #: the time from which the bound is counted: when the clock was drawn
    known: Vector  #: at that time, the part of Bⱼ that needs no data
    slope: Vector  #: bⱼ
    known_sum: Number  #: Σⱼ of `known`
    slope_sum: Number  #: Σⱼ of `slope`
    distance: Number  #: |(x - a)/σ| at that time; 1 without control variates
    pace: Number  #: √d, at which that grows at most in a unit of time; 0 without control variates
    bounds: Vector  #: Bⱼ
    flipping: Count  #: the coordinate that flips if the proposal is accepted
    tickets: np.ndarray  #: (ring, n) batches after the first step of drawing, see `pdmp.gradients`
    rows: np.ndarray  #: (ring, n) their data
    weights: np.ndarray  #: (ring, n)
    turn: Count  #: the place of the next batch in the ring buffer; -1 while it is empty
    lipschitz: Vector
    scratch: Vector
    provider: tuple
    bank: tuple  #: the anchor, or several; zeros without control variates


class TermBounds(Bound):
    """What the data add to the bounds Bⱼ: Σⱼ of it, and of each coordinate where that does not depend on the batch."""

    name = "the model's bounds on single terms"

    total: float
    each: np.ndarray

    def __init__(self, total, each):
        self.total, self.each = total, each


class SubsampledRates(Compiled):
    """The rates E (vⱼ ĝⱼ)₊ + γⱼ of `pdmp.ZigZag` on fresh batches, under bounds on single terms.

    `provider` becomes the same with distances from the anchor in units of the speeds, σ (d,); unit speeds stand for
    "auto", until a run starts and they are known. `bounds` are the `TermBounds`.
    """

    anchored: bool  #: whether the batches are control variates
    by_importance: bool  #: whether data are drawn in proportion to their bounds
    anchors: Compiled  #: one of `pdmp.gradients.anchors`; without control variates one where nothing is known
    speed: np.ndarray  #: (d,) σ

    def __init__(self, provider, speed):
        _check_provider(provider)
        d, n_data = provider.dim, provider.n_data
        self.speed = np.ones(d) if isinstance(speed, str) else speed
        self.anchored = isinstance(provider, ControlVariate)
        self.by_importance = provider.draw == "importance"
        if self.anchored and not np.array_equal(provider.scale, self.speed):
            provider = provider.rescaled(self.speed)
        self.anchors = provider.anchors if self.anchored else Anchor(np.zeros((1, d)), np.zeros((1, d)))
        self.provider = provider
        if self.by_importance:
            self.bounds = TermBounds(provider.drawing.alias.total, np.zeros(d))
            return
        if self.anchored:
            each = n_data * provider.largest()
        else:
            largest = np.zeros(d)
            _largest_bounds(provider.model.native, np.zeros(d), largest)
            each = n_data * self.speed * largest
        self.bounds = TermBounds(float(each.sum()), each)

    @compiled
    def flip(self, state, j):
        state.v[j] = -state.v[j]

    @compiled
    def propose(self, process, state, i, now, rng):
        memory, model, v = state.memory, process.provider.model, state.v
        here, d = memory.here, state.v.shape[0]
        self.find_position(process, state, now)
        self.anchors.follow(model, memory.bank, here, now, state.counts)
        anchor = memory.bank.anchor
        level, rise, square = 0.0, 0.0, 0.0
        for j in range(d):
            partial = model.prior_partial(here, j)
            if self.anchored:
                z = (here[j] - anchor[j]) / self.speed[j]
                square += z * z
            memory.known[j] = self.anchors.largest(memory.bank, j, v[j], partial) + process.refresh_rate[j]
            memory.slope[j] = positive_part(model.prior_partial_curvature_bound(v, j))
            level += memory.known[j]
            rise += memory.slope[j]
        distance, pace = 1.0, 0.0
        if self.anchored:
            distance, pace = math.sqrt(square), math.sqrt(float(d))
        memory.start[0], memory.known_sum[0], memory.slope_sum[0] = now, level, rise
        memory.distance[0], memory.pace[0] = distance, pace
        level += process.thinning.total * distance
        rise += process.thinning.total * pace
        s = first_arrival(level, rise, rng.standard_exponential())
        if s == math.inf:
            return math.inf, CERTAIN
        return now + s, level + rise * s

    @compiled
    def rate(self, process, state, i, now, rng):
        memory, provider = state.memory, process.provider
        model, bounds = provider.model, memory.bounds
        d, n = bounds.shape[0], memory.rows.shape[1]
        b = self.next_batch(provider, memory, rng)
        state.counts[DATA] += n
        self.anchors.evaluated(memory.bank, n)

        # Which coordinate: in proportion to its bound, given the batch.
        s = now - memory.start[0]
        distance = memory.distance[0] + memory.pace[0] * s
        for j in range(d):
            bounds[j] = memory.known[j] + memory.slope[j] * s + distance * process.thinning.each[j]
        if self.by_importance:
            for m in range(n):
                model.term_lipschitz(memory.rows[b, m], self.speed, memory.lipschitz)
                share = distance * memory.weights[b, m]
                for j in range(d):
                    bounds[j] += share * self.speed[j] * memory.lipschitz[j]
        total = memory.known_sum[0] + memory.slope_sum[0] * s + distance * process.thinning.total
        j = draw_component(bounds, rng.random() * total)
        memory.flipping[0] = j

        # Its rate, for this batch.
        self.find_position(process, state, now)
        here = memory.here
        self.anchors.choose(memory.bank, here)
        anchor, known = memory.bank.anchor, memory.bank.anchor_gradient
        partial = model.prior_partial(here, j) + known[j]
        for m in range(n):
            row, weight = memory.rows[b, m], memory.weights[b, m]
            if self.anchored:
                partial += weight * model.term_partial_difference(here, anchor, row, j, memory.scratch)
            else:
                partial += weight * model.term_partial(here, row, j, memory.scratch)
        return total * ((positive_part(state.v[j] * partial) + process.refresh_rate[j]) / bounds[j])

    @compiled(allocates=True)
    def true_rates(self, process, x, v, scratch, out):
        """All data, each with its probability; unknown for larger batches, which are too many to list."""
        provider, model = process.provider, process.provider.model
        nearest = self.anchors.closest(self.anchors.points, x)
        anchor, data = self.anchors.points[nearest], self.anchors.gradients[nearest]
        for j in range(x.shape[0]):
            known, total = model.prior_partial(x, j) + data[j], 0.0
            for i in range(model.n_data):
                inverse = provider.drawing.inverse(i)
                if inverse > 0.0:
                    if self.anchored:
                        partial = model.term_partial_difference(x, anchor, i, j, scratch)
                    else:
                        partial = model.term_partial(x, i, j, scratch)
                    total += positive_part(v[j] * (known + inverse * partial)) / inverse
            out[j] = total + process.refresh_rate[j] if provider.drawing.size == 1 else math.nan

    def describe_bound(self, process):
        method = "term_lipschitz" if self.anchored else "term_gradient_bounds"
        return f"the bound on single terms, `{method}` of {type(process.model).__name__}"

    @compiled
    def find_position(self, process, state, now):
        """Write the position at time `now` into the memory, unless it is there already."""
        memory = state.memory
        if memory.at[0] != now:
            positions(process.flow, state, now, memory.here)
            memory.at[0] = now

    @compiled
    def next_batch(self, provider, memory, rng):
        """The place of the next batch in the ring buffer.

        Half of its batches have been drawn and are being fetched from main memory; of the other half only the first
        step of drawing has been made, so that what it needs is being fetched too.
        """
        ring = memory.rows.shape[0]
        drawing, turn = provider.drawing, memory.turn[0]
        if turn < 0:
            for b in range(ring):
                drawing.prepare(memory.tickets, b, memory.provider, rng)
            for b in range(ring // 2):
                self.complete(provider, memory, b, rng)
            turn = 0
        half = turn + ring // 2
        self.complete(provider, memory, half if half < ring else half - ring, rng)
        drawing.prepare(memory.tickets, turn, memory.provider, rng)
        memory.turn[0] = turn + 1 if turn + 1 < ring else 0
        return turn

    @compiled
    def complete(self, provider, memory, b, rng):
        """Turn a batch that has been begun into data, and ask the memory for them."""
        provider.drawing.complete(memory.tickets, b, memory.rows, memory.weights, rng)
        for m in range(memory.rows.shape[1]):
            provider.model.fetch(memory.rows[b, m])

    def memory(self, process, x, rng):
        d, n = process.dim, process.provider.size
        ring = 2 * max(1, (AHEAD_IN_FILE if process.provider.model.in_file else AHEAD) // (2 * n))
        return zeros(
            Memory,
            d,
            at=np.full(1, math.nan),
            tickets=np.zeros((ring, n), np.int64),
            rows=np.zeros((ring, n), np.int64),
            weights=np.zeros((ring, n)),
            turn=np.full(1, -1),
            provider=process.provider.memory(rng)._replace(bank=()),
            bank=self.anchors.memory(),
        )


def _check_provider(provider):
    model = provider.model
    if not provider.independent:
        raise TypeError(
            f"pdmp.ZigZag needs a fresh, independent batch at each proposal, and draw={provider.draw!r} gives none: "
            f'use draw="iid" or "distinct".'
        )
    if isinstance(provider, ControlVariate):
        asked = "`provider`: control variates in pdmp.ZigZag need"
        require(model, asked, "term_lipschitz", instead="pdmp.ZigZag(model) takes the exact gradient.")
    else:
        asked = "`provider`: batches in pdmp.ZigZag need"
        other = "pdmp.gradients.ControlVariate" if model.has("term_lipschitz") else "the exact gradient"
        require(model, asked, "term_gradient_bounds", instead=f"Use {other}.")
    require(model, asked, "prior_partial", "prior_partial_curvature_bound")


@entry
def _largest_bounds(model, bounds, out):
    """out[j] = maxᵢ Mᵢⱼ."""
    for i in range(model.n_data):
        model.term_gradient_bounds(i, bounds)
        for j in range(out.shape[0]):
            out[j] = larger(out[j], bounds[j])
