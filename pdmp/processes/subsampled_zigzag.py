r"""The Zig-Zag process with exact sub-sampling: `pdmp.ZigZag` of mini-batches or control variates.

=====  ====================================================================================================
flow   straight lines, x + v s, |vⱼ| = σⱼ the speed of coordinate j
clock  one Poisson clock for all coordinates, of the bound Σⱼ Bⱼ below, which is affine in time
rate   of coordinate j: E (vⱼ ĝⱼ(x))₊ + γⱼ, the expectation over a fresh batch of the estimate ĝ of ∇U(x)
jump   vⱼ ← -vⱼ
=====  ====================================================================================================

The rates balance the flow because E (vⱼ ĝⱼ)₊ - E (-vⱼ ĝⱼ)₊ = vⱼ ∂ⱼU for every unbiased ĝ. The expectation is never
taken: a proposal draws a batch and one coordinate j, and is accepted with probability ((vⱼ ĝⱼ)₊ + γⱼ) / Bⱼ. Since the
last look, s ago and with [·]₊ the positive part there, the batch of n data i with weights wᵢ = 1 / (n pᵢ) has

    Minibatch                    Bⱼ = [vⱼ ∂ⱼprior]₊ + bⱼ s + γⱼ + N σⱼ maxᵢ Mᵢⱼ
    ControlVariate, uniform      Bⱼ = [vⱼ (∂ⱼprior + ∂ⱼΣUᵢ(a))]₊ + bⱼ s + γⱼ + N σⱼ maxᵢ Lᵢⱼ (|(x - a)/σ| + √d s)
    ControlVariate, importance   Bⱼ = [vⱼ (∂ⱼprior + ∂ⱼΣUᵢ(a))]₊ + bⱼ s + γⱼ + σⱼ Σ wᵢ Lᵢⱼ (|(x - a)/σ| + √d s)

with the anchor a, |∂ⱼUᵢ| <= Mᵢⱼ, |∂ⱼUᵢ(x) - ∂ⱼUᵢ(y)| <= Lᵢⱼ |(x - y)/σ|, bⱼ >= 0 a bound on the slope of the prior's
part, and √d = |v/σ|. Importance draws i in proportion to Cᵢ = Σⱼ σⱼ Lᵢⱼ, so that Σⱼ σⱼ Σ wᵢ Lᵢⱼ = Σᵢ Cᵢ whatever the
batch: the clock needs no batch, and j is drawn in proportion to Bⱼ once the batch is known.

No batch depends on the state, so they are drawn ahead, and the memory is asked for them while others are looked at.

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
from pdmp.interfaces.recipe import Recipe
from pdmp.native.classes import Compiled, compiled, entry, positive
from pdmp.process import CERTAIN, DATA, Process, positions
from pdmp.processes.zigzag import ZigZag, speeds_at
from pdmp.thinning.affine import first_arrival

AHEAD = 16  #: data drawn ahead of their use


class Memory(NamedTuple):
    """Beside the path: the last look, from which the bound is counted, and the batches drawn ahead."""

    here: np.ndarray  #: (d,) the position at time `at`
    at: np.ndarray  #: (1,) NaN before the first
    since: np.ndarray  #: (1,) time of the last look
    known: np.ndarray  #: (d,) there, the part of Bⱼ that needs no data
    slope: np.ndarray  #: (d,) bⱼ
    sums: np.ndarray  #: (4,) Σ known, Σ slope; |(x - a)/σ| and its largest slope, or 1 and 0
    bounds: np.ndarray  #: (d,) Bⱼ
    chosen: np.ndarray  #: (1,) the coordinate proposed
    tickets: np.ndarray  #: (ring, n) batches that have been begun, see `pdmp.gradients`
    rows: np.ndarray  #: (ring, n) their data
    weights: np.ndarray  #: (ring, n)
    turn: np.ndarray  #: (1,) the place in the ring; -1 while it is empty
    lipschitz: np.ndarray  #: (d,)
    scratch: np.ndarray  #: (d,)
    provider: tuple


class TermBounds(Compiled):
    """What the data add to the bounds: Σⱼ of it, and of each coordinate where that does not depend on the batch."""

    name = "the model's bounds on single terms"
    exact = True

    total: float
    each: np.ndarray

    def __init__(self, total, each):
        self.total, self.each = total, each


class SubsampledZigZag(ZigZag):
    """What `pdmp.ZigZag` is for a `Minibatch` or a `ControlVariate`; see there."""

    anchored: int  #: 1: control variates
    importance: int  #: 1: drawn in proportion to the bounds
    anchor_point: np.ndarray  #: (d,)
    anchor_gradient: np.ndarray  #: (d,) of the data alone
    speed: np.ndarray  #: (d,) σ

    recipe = Recipe(featured=False)
    exact_bounds = True

    def __init__(self, provider, thinning="auto", speed=1.0, refresh_rate=0.0):
        if thinning != "auto":
            raise ValueError(
                f'`thinning` must be "auto" for batches: bounds are the model\'s on single terms; got {thinning!r}.'
            )
        self.provider, self.model, self.anchor = provider, provider.model, provider.anchor
        _check_provider(provider)
        Process.__init__(self, provider.dim, local=True)
        self.single = 1
        self.anchored = int(isinstance(provider, ControlVariate))
        self.importance = int(provider.draw == "importance")
        self.anchor_point = self.anchor_gradient = np.zeros(self.dim)
        if self.anchored:
            self.anchor_point, self.anchor_gradient = provider.anchor, provider.anchor_gradient
        self._set_speeds(speed, refresh_rate)
        self.thinning = None if isinstance(self.speed, str) else self._bounds()

    def _bounds(self):
        """The bounds for the speeds, in which the provider then measures distances."""
        n_data = self.provider.n_data
        if not self.anchored:
            largest = np.zeros(self.dim)
            _largest_bounds(self.model.native, np.zeros(self.dim), largest)
            each = n_data * self.speed * largest
            return TermBounds(float(each.sum()), each)
        if not np.array_equal(self.provider.scale, self.speed):
            self.provider = self.provider.rescaled(self.speed)
        if self.importance:
            return TermBounds(self.provider.drawing.alias.total, np.zeros(self.dim))
        each = n_data * self.provider.largest()
        return TermBounds(float(each.sum()), each)

    @compiled
    def clock(self, state, i, now, rng):
        memory, model, v = state.memory, self.provider.model, state.v
        here, d = memory.here, state.v.shape[0]
        self.evaluate(state, now)
        level, rise, square = 0.0, 0.0, 0.0
        for j in range(d):
            partial = model.prior_partial(here, j)
            if self.anchored == 1:
                partial += self.anchor_gradient[j]
                z = (here[j] - self.anchor_point[j]) / self.speed[j]
                square += z * z
            memory.known[j] = positive(v[j] * partial) + self.refresh_rate[j]
            memory.slope[j] = positive(model.prior_partial_curvature_bound(v, j))
            level += memory.known[j]
            rise += memory.slope[j]
        distance, pace = 1.0, 0.0
        if self.anchored == 1:
            distance, pace = math.sqrt(square), math.sqrt(float(d))
        memory.since[0] = now
        memory.sums[0], memory.sums[1], memory.sums[2], memory.sums[3] = level, rise, distance, pace
        level += self.thinning.total * distance
        rise += self.thinning.total * pace
        s = first_arrival(level, rise, rng.standard_exponential())
        if s == math.inf:
            return math.inf, CERTAIN
        return now + s, level + rise * s

    @compiled
    def rate(self, state, i, now, rng):
        memory, provider = state.memory, self.provider
        model, bounds, sums = provider.model, memory.bounds, memory.sums
        d, n = bounds.shape[0], memory.rows.shape[1]
        b = self.next_batch(memory, rng)
        state.counts[DATA] += n

        # Which coordinate: in proportion to its bound, given the batch.
        s = now - memory.since[0]
        distance = sums[2] + sums[3] * s
        for j in range(d):
            bounds[j] = memory.known[j] + memory.slope[j] * s + distance * self.thinning.each[j]
        if self.importance == 1:
            for m in range(n):
                model.term_lipschitz(memory.rows[b, m], self.speed, memory.lipschitz)
                share = distance * memory.weights[b, m]
                for j in range(d):
                    bounds[j] += share * self.speed[j] * memory.lipschitz[j]
        total = sums[0] + sums[1] * s + distance * self.thinning.total
        j = self.choose(bounds, rng.random() * total)
        memory.chosen[0] = j

        # Its rate, for this batch.
        self.evaluate(state, now)
        here = memory.here
        partial = model.prior_partial(here, j) + self.anchor_gradient[j]
        for m in range(n):
            row, weight = memory.rows[b, m], memory.weights[b, m]
            if self.anchored == 1:
                partial += weight * model.term_partial_difference(here, self.anchor_point, row, j, memory.scratch)
            else:
                partial += weight * model.term_partial(here, row, j, memory.scratch)
        return total * ((positive(state.v[j] * partial) + self.refresh_rate[j]) / bounds[j])

    @compiled
    def true_rates(self, x, v, scratch, out):
        """All data, each with its probability; unknown for larger batches, which are too many to list."""
        provider, model = self.provider, self.provider.model
        for j in range(x.shape[0]):
            known, total = model.prior_partial(x, j) + self.anchor_gradient[j], 0.0
            for i in range(model.n_data):
                inverse = provider.drawing.inverse(i)
                if inverse > 0.0:
                    if self.anchored == 1:
                        partial = model.term_partial_difference(x, self.anchor_point, i, j, scratch)
                    else:
                        partial = model.term_partial(x, i, j, scratch)
                    total += positive(v[j] * (known + inverse * partial)) / inverse
            out[j] = total + self.refresh_rate[j] if provider.drawing.size == 1 else math.nan

    def describe_bound(self):
        method = "term_lipschitz" if self.anchored else "term_gradient_bounds"
        return f"the bound on single terms, `{method}` of {type(self.model).__name__}"

    @compiled
    def evaluate(self, state, now):
        """The position at time `now`, unless that was the last thing asked for."""
        memory = state.memory
        if memory.at[0] != now:
            positions(self.flow, state, now, memory.here)
            memory.at[0] = now

    @compiled
    def next_batch(self, memory, rng):
        """The place in the ring of the next batch; of the ring, half are begun and half are on their way here."""
        ring = memory.rows.shape[0]
        drawing, turn = self.provider.drawing, memory.turn[0]
        if turn < 0:
            for b in range(ring):
                drawing.prepare(memory.tickets, b, memory.provider, rng)
            for b in range(ring // 2):
                self.redeem(memory, b, rng)
            turn = 0
        half = turn + ring // 2
        self.redeem(memory, half if half < ring else half - ring, rng)
        drawing.prepare(memory.tickets, turn, memory.provider, rng)
        memory.turn[0] = turn + 1 if turn + 1 < ring else 0
        return turn

    @compiled
    def redeem(self, memory, b, rng):
        """Turn a batch that has been begun into data, and ask the memory for them."""
        self.provider.drawing.complete(memory.tickets, b, memory.rows, memory.weights, rng)
        for m in range(memory.rows.shape[1]):
            self.provider.model.fetch(memory.rows[b, m])

    def resolve(self, x):
        process = Process.resolve(self, x)
        if isinstance(process.speed, str):
            process.speed = speeds_at(self.model, x)
            process.thinning = process._bounds()
        return process

    def evaluated_at(self, state):
        return state.memory.here, state.memory.at[0]

    def memory(self, x, rng):
        d, n = self.dim, self.provider.size
        ring = 2 * max(1, AHEAD // (2 * n))
        return Memory(
            here=np.zeros(d),
            at=np.full(1, math.nan),
            since=np.zeros(1),
            known=np.zeros(d),
            slope=np.zeros(d),
            sums=np.zeros(4),
            bounds=np.zeros(d),
            chosen=np.zeros(1, np.int64),
            tickets=np.zeros((ring, n), np.int64),
            rows=np.zeros((ring, n), np.int64),
            weights=np.zeros((ring, n)),
            turn=np.full(1, -1),
            lipschitz=np.zeros(d),
            scratch=np.zeros(d),
            provider=self.provider.memory(rng),
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
        model.require(asked, "term_lipschitz", instead="pdmp.ZigZag(model) takes the exact gradient.")
    else:
        asked = "`provider`: batches in pdmp.ZigZag need"
        other = "pdmp.gradients.ControlVariate" if model.has("term_lipschitz") else "the exact gradient"
        model.require(asked, "term_gradient_bounds", instead=f"Use {other}.")
    model.require(asked, "prior_partial", "prior_partial_curvature_bound")


@entry
def _largest_bounds(model, bounds, out):
    """out[j] = maxᵢ Mᵢⱼ."""
    for i in range(model.n_data):
        model.term_gradient_bounds(i, bounds)
        for j in range(out.shape[0]):
            out[j] = bounds[j] if not bounds[j] <= out[j] else out[j]
