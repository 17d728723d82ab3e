r"""The Zig-Zag process of a regression with the intercepts of crossed groupings: exact, at one row a proposal.

=====  =================================================================================================
flow   straight lines, x + v s, |vⱼ| = σⱼ the speed of coordinate j
clock  one for each group of each grouping; one for the priors of β and the dispersions; one for each
       mean mₖ and one for each log τₖ
rate   of coordinate j: Σᵢ (vⱼ Tᵢⱼ)₊ + (vⱼ [∂ⱼprior(x) + Gⱼ])₊, as below
jump   vⱼ ← -vⱼ
=====  =================================================================================================

As in `pdmp.processes.regression_zigzag` the gradient of the data is expanded at the anchor x̂, and what single rows add
to the expansion is looked at row by row. For the shared coordinates, β and the dispersions, the expansion is

    Gⱼ = Σᵢ [∂ⱼUᵢ(x̂) + Σₗ Hᵢⱼₗ (xₗ - x̂ₗ) + θᵢⱼ Σₖ (x - x̂)²],     l over all coordinates,

the last sum over the coefficients of row i, θᵢⱼ = ½ ∂ⱼℓ''ᵢ(x̂). (Without it all rows say of σ that they fit worse than
at the anchor, by as much as there are coefficients, and σ would flip G / √N times as often as it needs.)

For the coefficient of group g of grouping k, j = (k, g), it is

    Gⱼ = Σᵢ [∂ⱼUᵢ(x̂) + Σₗ Hᵢⱼₗ (xₗ - x̂ₗ)] + Cⱼ,     l over the shared coordinates and j,
    Cⱼ = Σₕ hⱼₕ (x - x̂)ₕ,     hⱼₕ = Σ ℓ''ᵢ(x̂) over the rows of both j and h,     h over the groups of other groupings.

Between flips Cⱼ is a line in time. A flip of h changes the lines of the groups that share a row with it, 16 bytes each.
No clock is drawn anew for that: |Ċⱼ| <= Σₕ |hⱼₕ| σₕ. (Were ℓ''ᵢ(x̂) (x - x̂)ₕ left to the rows, that would be exact too,
and a flip would cost the same for every number of rows. But the more rows a group has, the more often it would flip
beyond what its gradient asks for, and diffuse.) What is left to the rows is the remainder of second order, Rᵢⱼ:

    Tᵢⱼ = Rᵢⱼ,     and of the shared coordinates  Tᵢⱼ = Rᵢⱼ - θᵢⱼ Σₖ (x - x̂)².

The rates balance the flow whatever is left to the rows: their difference from those of the velocity -vⱼ is vⱼ ∂ⱼU.

Let D_q be the largest distance |x - x̂| / σ of all coefficients of grouping q. As each changes by 1 a unit of time at
most, D_q at one time bounds it at later ones, and computing it anew every `RENEWAL` costs as little as one proposal of
each group. Then with the bounds by functional of `pdmp.processes.row_bounds`, φ(r) = F r² / 2,

    |Rᵢⱼ| <= Lᵢⱼ φ(r),     r² = r_shared² + (x - x̂)ⱼ² / σⱼ² + Σ_{q ≠ k} D_q²,
    |Tᵢⱼ| <= ωᵢⱼ max(F r² / r̂², D² / D̂²),     D = max D_q,     ωᵢⱼ = Lᵢⱼ r̂² / 2,
                                     of the shared ones     ωᵢⱼ = Lᵢⱼ r̂² / 2 + |θᵢⱼ| Σₖ σ² D̂²,

with r̂ and D̂ typical values, and F the group's factor of the first shell of a radius of at least r. One alias table for
each group draws its rows in proportion to σⱼ ωᵢⱼ. The shared coordinates' Σⱼ σⱼ Lᵢⱼ r̂² / 2 belong to the clocks of the
first grouping. The bounds are convex in r and D, which are at most linear in time, so that their chords over a horizon,
with the factor at its end, are bounds.

A proposal costs the same for every number of rows and groups: Σu and Σu² of the effects, the gauges of
`GroupIntercepts`, and what all coefficients add to G of the shared coordinates, are kept as lines and parabolas in
time. A flip of a coefficient costs that and an entry of h for each group that shares a row with it; h has 12 bytes for
each such pair and direction, at most 24 a row with two groupings. No rate is ever above its bound.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47, section 5 (control variates). Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle
Sampler, JASA 113, section 3.3 (a clock for each factor). Sen, Sachs, Lu & Dunson (2020), Biometrika 107 (importance).
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.tape import CURVATURE, LANES
from pdmp.gradients.alias import AliasTables
from pdmp.metric import Metric
from pdmp.models.priors import second_derivative_bound
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import THIRD
from pdmp.native.classes import compiled, entry, positive
from pdmp.native.threads import each
from pdmp.native.vectors import exp
from pdmp.process import DATA, HORIZON
from pdmp.processes.anchored_zigzag import (
    FIRST,
    KNOWN,
    KNOWN_SLOPE,
    LEVEL,
    PRODUCT,
    ROW,
    SLOPE,
    SPEED,
    SPREAD_CHORD,
    SQUARE,
    START,
    TIME,
    VELOCITY,
    AnchoredZigZag,
    add_inner,
    products_of_shared,
)
from pdmp.processes.regression_zigzag import norms_by_functional
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import Plan, in_shells, together
from pdmp.thinning.affine import first_arrival

CHORD = 1.5  #: by how much bounds may grow in a horizon
LONGEST = 4.0  #: no clock of rows waits longer than this before it is drawn anew
RENEWAL = 0.25  #: the largest distances D are computed anew after so much time
RECOUNT = 64.0  #: and the lines C after this, before rounding errors of their flips add up

#: Further columns of `Memory.sums`: the gauge, and its slope. The row of a proposal of the known part is -1.
GAUGE, GAUGE_SLOPE = 6, 7


class Memory(NamedTuple):
    """Beside the path."""

    here: np.ndarray  #: (d,) position at the proposal, of the coordinates that it needs
    clocks: np.ndarray  #: (clocks, 6)
    known: np.ndarray  #: (m,) bounds of the clock of priors, coordinate by coordinate, when it was drawn
    slopes: np.ndarray  #: (m,)
    flipping: np.ndarray  #: (1,) the coordinate that flips if the proposal is accepted
    sums: np.ndarray  #: (K, 8)
    cross: np.ndarray  #: (m, 5) what the coefficients add to G of the shared: ΣHd, its slope; Σθd², Σθdv, Σθv²
    reach: np.ndarray  #: (K + 1,) D of each grouping when it was computed last, and when that was
    loss: np.ndarray  #: (n,) what the row has beyond its expansion, by its functionals
    evaluation: tuple  #: what the model needs for it
    across: np.ndarray  #: (E, 2) C of the coefficients at the time `since`, by the slopes of now; these slopes
    since: np.ndarray  #: (1,) when they were computed from all pairs


class CrossedZigZag(AnchoredZigZag):
    """Zig-Zag process of a regression with crossed intercepts, sub-sampled exactly.

    Parameters
    ----------
    model : GroupIntercepts
        What to sample; of any likelihood of `pdmp.models.regressions.likelihoods`.
    anchor : array_like, shape (dim,), optional
        Where the gradient of all rows is known; that of `laplace` when omitted.
    metric : "auto", "diagonal", None, float, array_like of shape (dim,), or Metric, default "auto"
        1 / σ². Speeds σ are given by ``pdmp.Metric(scales=...)``, best the posterior's standard deviations; "auto" and
        "diagonal": those of `laplace`, None: 1.

    Raises
    ------
    TypeError
        For another model.
    ValueError
        For a metric that is not diagonal and positive, or if the mode is not found.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import HalfNormal, Normal
    >>> from pdmp.models.regressions.group_intercepts import GroupIntercepts
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import GroupColumn
    >>> from pdmp.processes.crossed_zigzag import CrossedZigZag
    >>> i, one = np.arange(60), np.ones(60)
    >>> groups = [
    ...     GroupColumn("1|g", "g", (0, 1, 2), i % 3, one, HalfNormal(1.0)),
    ...     GroupColumn("1|h", "h", (0, 1, 2, 3), i // 3 % 4, one, HalfNormal(1.0)),
    ... ]
    >>> model = GroupIntercepts(
    ...     one[:, None], i % 5, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)], groups=groups, intercept=0
    ... )
    >>> run = pdmp.sample(CrossedZigZag(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    own: np.ndarray  #: (E,) Hessian of the data at the anchor, of the coefficients of all E groups: its diagonal
    pairs: np.ndarray  #: (P,) h, group by group: those of other groupings that share a row with it
    pair_curvature: np.ndarray  #: (P,) hⱼₕ
    first_pair: np.ndarray  #: (E + 1,)
    bulge: np.ndarray  #: (E, m) Σ θ over the rows of each group
    bulge_rises: np.ndarray  #: (m,) the largest slope of Σθd² where no d is above σ
    own_rises: np.ndarray  #: (E,) the largest slope of G of the coefficients, C and gauges included
    grouping: np.ndarray  #: (E,)
    thirds: np.ndarray  #: (N, n) half the derivatives of ℓ''ᵢ(x̂) by the functionals
    pace_of_means: float  #: the largest |dβ₀/dt|
    typical_distance: float  #: r̂
    typical_reach: float  #: D̂

    def __init__(
        self,
        model: GroupIntercepts,
        anchor: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
    ) -> None:
        if not isinstance(model, GroupIntercepts):
            raise TypeError(f"CrossedZigZag takes GroupIntercepts, got a {type(model).__name__}.")
        fixed = self._expand(model, anchor, metric, laplace, model.means)
        K = model.n_groups
        self.groups = int(model.first[-1]) - self.first_effect
        sizes = np.diff(model.first)
        self.grouping = np.repeat(np.arange(K), sizes)
        effects = slice(self.first_effect, self.first_effect + self.groups)
        sigma, sigmas = self.speed[self.shared], self.speed[effects]
        if len(fixed):
            self._weigh(
                fixed, np.mean(np.square(model.X), axis=0), np.mean(np.sum(self.speed[model.level] ** 2, axis=1))
            )
        of_shared = float(np.sum((sigma / self.scale[self.shared]) ** 2))
        self.pace = math.sqrt(of_shared + K)
        self.typical_reach = math.sqrt(2.0 * math.log(self.groups)) + RENEWAL
        self.typical_distance = math.sqrt(of_shared + 1.0 + (K - 1) * self.typical_reach**2)
        by_grouping = [sigmas[self.grouping == k] for k in range(K)]
        self.sum_of_speeds = np.array([s.sum() for s in by_grouping])
        self.root_of_speeds = np.array([math.sqrt(s @ s) for s in by_grouping])
        self.mean_speeds = self.speed[self.means]
        self.pace_of_means = float(self.mean_speeds.sum())

        self.bulge = np.zeros((self.groups, len(self.shared)))
        self.pull, self.inner, self.border, self.own = (
            np.zeros(model.dim),
            np.zeros((len(self.shared),) * 2),
            np.zeros((self.groups, len(self.shared))),
            np.zeros(self.groups),
        )
        curvature, thirds = np.zeros(model.n_data), np.zeros((model.n_functionals, model.n_data))
        n, m = len(self.shared), model.n_functionals
        _survey(
            model.native, self.anchor, self.shared, self.pull, self.inner, self.border, self.own, self.bulge, curvature,
            thirds, np.zeros(n), np.zeros((m, m)), *model.scratch(LANES),
        )  # fmt: skip
        self.inner += products_of_shared(model, self.shared, curvature)
        weights = self._weigh_rows(model, thirds)
        items = np.argsort(model.level, axis=0, kind="stable").T
        level = np.take_along_axis(model.level.T, items, axis=1).ravel()
        places = np.searchsorted(level, np.arange(effects.start, effects.stop + 1))
        self.tables = AliasTables(items.ravel(), places, np.take_along_axis(weights, items, axis=1).ravel())
        if not all(np.all(np.isfinite(part)) for part in (self.tables.totals, self.pull, self.inner, self.own)):
            raise ValueError("`anchor`: the bounds of single rows are not finite there.")
        crossed = _crossed(curvature, model.level - effects.start, self.groups)
        self.pair_curvature, self.first_pair = crossed.data, crossed.indptr
        self.pairs = crossed.indices.astype(np.uint32)  # compiled code walks numbers without a sign twice as fast
        self.rises = np.abs(self.inner) @ sigma + sigmas @ np.abs(self.border)
        gauges = np.array([model.share[self.grouping == k] @ s for k, s in enumerate(by_grouping)])
        stiffness = (model.stiffness * gauges)[self.grouping] * model.share
        self.own_rises = self.own * sigmas + np.abs(self.border) @ sigma + abs(crossed) @ sigmas + stiffness
        self.bulge_rises = 2.0 * sigmas**2 @ np.abs(self.bulge)
        rises = self.rises + self.bulge_rises * self.typical_reach
        self.prior_horizon = 1.0 / max(1.0, math.sqrt(sigma @ rises))
        # Within a horizon the bounds of the rows grow by the factor `CHORD`, or by a proposal a unit of time.
        steepness = self.pace * 2.0 / self.typical_distance
        with np.errstate(divide="ignore"):
            rise = np.log(np.maximum(CHORD, 1.0 + 1.0 / self.tables.totals))
        self.horizon = np.minimum(rise / steepness, LONGEST)
        fastest = self.speed[self.spread : self.first_effect].max()
        self.horizon = np.minimum(self.horizon, 0.5 * math.log(SPREAD_CHORD) / fastest)
        clocks = self.groups + 1 + 2 * K
        super().__init__(model.dim, clocks, (np.arange(clocks + 1), np.arange(clocks)), local=True)

    def _weigh_rows(self, model, thirds):
        """σⱼ ωᵢⱼ of the clock of each grouping (K, N); the bounds of rows and the factors of groups are kept."""
        plan, scale, r = Plan(model.n_data, self.typical_distance), self.scale, self.typical_distance
        args = plan, self.anchor, self.speed, scale, self.shared

        def part(_, first, stop):
            return norms_by_functional(model, first, stop, *args)

        found, shares = zip(*each(part, model.pieces()), strict=True)
        share, level = np.concatenate(shares, axis=1), model.level.T - self.first_effect
        bounds = in_shells(np.concatenate(found, axis=2), share, level, self.groups)
        self.growth = Shells(*together(plan, [bounds.factors]))
        square = self.typical_reach**2 * np.sum(scale[model.level] ** 2, axis=1)
        own = 0.5 * r * r * bounds.weights
        limits = own + np.abs(thirds) * square
        self.parts, self.thirds = np.ascontiguousarray(np.vstack([own[:1], limits]).T), np.ascontiguousarray(thirds.T)
        weights = self.speed[model.level.T] * own[0]
        of_shared = share - self.speed[model.level].sum(axis=1) * (np.arange(len(share)) == 0)[:, None]
        weights[0] += np.sum(of_shared * limits, axis=0)
        return weights

    # -- compiled: positions, sums ----------------------------------------------------------------------------------

    @compiled
    def advance_sums(self, memory, now):
        """Bring the sums over the groups to the time `now`."""
        sums = memory.sums
        s = now - sums[0, TIME]
        for k in range(self.slots):
            sums[k, FIRST] += sums[k, VELOCITY] * s
            sums[k, SQUARE] += (2.0 * sums[k, PRODUCT] + sums[k, SPEED] * s) * s
            sums[k, PRODUCT] += sums[k, SPEED] * s
            sums[k, GAUGE] += sums[k, GAUGE_SLOPE] * s
            sums[k, TIME] = now
        for k in range(memory.cross.shape[0]):
            memory.cross[k, 0] += memory.cross[k, 1] * s
            memory.cross[k, 2] += (2.0 * memory.cross[k, 3] + memory.cross[k, 4] * s) * s
            memory.cross[k, 3] += memory.cross[k, 4] * s

    @compiled
    def renew(self, state, now):
        """Compute the largest distances D, and the lines C, where that was long ago."""
        reach = state.memory.reach
        if not now - reach[self.slots] < RENEWAL:
            for k in range(self.slots):
                reach[k] = 0.0
            for e in range(self.groups):
                j = self.first_effect + e
                far = abs(self.at(state, j, now) - self.anchor[j]) / self.scale[j]
                if not far <= reach[self.grouping[e]]:  # a coordinate that is not a number is seen
                    reach[self.grouping[e]] = far
            reach[self.slots] = now
        if not now - state.memory.since[0] < RECOUNT:
            self.count_across(state, now)

    @compiled
    def count_across(self, state, now):
        """C of all coefficients, from all pairs."""
        state.memory.since[0] = now
        for e in range(self.groups):
            value, slope = 0.0, 0.0
            for n in range(self.first_pair[e], self.first_pair[e + 1]):
                j, h = self.first_effect + self.pairs[n], self.pair_curvature[n]
                value += h * (self.at(state, j, now) - self.anchor[j])
                slope += h * state.v[j]
            state.memory.across[e, 0], state.memory.across[e, 1] = value, slope

    @compiled
    def known(self, state, k, now):
        """G of the k-th shared coordinate; the shared ones are in the memory, and the sums are those of `now`."""
        total = self.pull[self.shared[k]] + state.memory.cross[k, 0] + state.memory.cross[k, 2]
        for q in range(self.shared.shape[0]):
            total += self.inner[k, q] * (state.memory.here[self.shared[q]] - self.anchor[self.shared[q]])
        return total

    @compiled
    def known_own(self, state, e, now):
        """G of the coefficient of group e, and the gauge's derivative; positions are in the memory."""
        j, k, here, across = self.first_effect + e, self.grouping[e], state.memory.here, state.memory.across
        total = self.pull[j] + self.own[e] * (here[j] - self.anchor[j])
        total += across[e, 0] + across[e, 1] * (now - state.memory.since[0])
        for q in range(self.shared.shape[0]):
            total += self.border[e, q] * (here[self.shared[q]] - self.anchor[self.shared[q]])
        gauge = state.memory.sums[k, GAUGE] + state.memory.sums[k, GAUGE_SLOPE] * (now - state.memory.sums[k, TIME])
        return total + self.model.stiffness[k] * self.model.share[e] * gauge

    @compiled
    def size(self, k):
        """Groups of grouping k."""
        return self.model.first[k + 1] - self.model.first[k]

    @compiled
    def mean_part(self, state, k, now):
        """The distance of the k-th mean from its anchor."""
        return self.at(state, self.means[k], now) - self.anchor[self.means[k]]

    @compiled
    def rise(self, state, k, now):
        """The largest slope of G of the k-th shared coordinate within its horizon."""
        self.renew(state, now)
        reach = 0.0
        for q in range(self.slots):
            reach = max(reach, state.memory.reach[q])
        reach += (now - state.memory.reach[self.slots]) + self.prior_horizon
        return self.rises[k] + self.bulge_rises[k] * reach

    @compiled
    def overall(self, state, now):
        """β₀."""
        total = 0.0
        for k in range(self.slots):
            total += self.at(state, self.means[k], now)
        return total

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def multiple(self, share, r, reach):
        """max(F r² / r̂², D² / D̂²): by what the weights ω are multiplied."""
        near, far = r / self.typical_distance, reach / self.typical_reach
        return max(share * (near * near), far * far)

    @compiled
    def propose_row(self, state, e, now, rng):
        memory, horizon = state.memory, self.horizon[e]
        row, j, k, square, reach = memory.clocks, self.first_effect + e, self.grouping[e], 0.0, 0.0
        self.renew(state, now)
        for q in range(self.shared.shape[0]):
            square += self.place(state, self.shared[q], now)
        square += self.place(state, j, now)
        for q in range(self.slots):
            far = memory.reach[q] + (now - memory.reach[self.slots])
            reach = max(reach, far)
            if q != k:
                square += far * far

        speed, mean = self.speed[j], self.means[k]
        sign = 1.0 if state.v[j] >= 0.0 else -1.0
        known = sign * self.known_own(state, e, now)
        # precision * effect, each factor at its worst
        s, turn = self.at(state, self.spread + k, now), self.speed[self.spread + k] * horizon
        low, high = exp(-2.0 * (s + turn)), exp(-2.0 * (s - turn))
        u = sign * (memory.here[j] - self.at(state, mean, now))
        known += (high if u > 0.0 else low) * u
        row[e, KNOWN] = speed * positive(known)
        row[e, KNOWN_SLOPE] = speed * (self.own_rises[e] + high * (speed + self.speed[mean]))

        r, total = math.sqrt(square), self.tables.totals[e]
        share = self.growth.share(r + self.pace * horizon, e)
        if not share < math.inf:
            return math.nan, HORIZON
        begin = self.multiple(share, r, reach)
        end = self.multiple(share, r + self.pace * horizon, reach + horizon)
        row[e, LEVEL], row[e, SLOPE] = total * begin, total * (end - begin) / horizon
        row[e, START] = now
        level, rise = row[e, LEVEL] + row[e, KNOWN], row[e, SLOPE] + row[e, KNOWN_SLOPE]
        s = first_arrival(level, rise, rng.standard_exponential())
        if s >= horizon:
            return now + horizon, HORIZON
        row[e, ROW] = -1.0
        if rng.random() * (level + rise * s) < row[e, LEVEL] + row[e, SLOPE] * s:
            i = self.tables.draw(e, rng)
            row[e, ROW] = i
            self.model.fetch(i)
        return now + s, level + rise * s

    @compiled
    def bound_of_mean(self, state, k, now):
        """A bound on the rate of the k-th mean, and for how long it holds."""
        j, q, n = self.means[k], self.means[0], self.model.numbers
        speed, sign = self.speed[j], 1.0 if state.v[j] >= 0.0 else -1.0
        curvature = second_derivative_bound(self.model.kinds[q], n[q, 0], n[q, 1], n[q, 2])
        s, turn = self.at(state, self.spread + k, now), self.speed[self.spread + k]
        fastest, excess = self.size(k) * speed + self.sum_of_speeds[k], self.excess(state, k, now)
        slope = curvature * self.pace_of_means + exp(-2.0 * s) * (fastest + 2.0 * turn * abs(excess))
        h = 1.0 / max(1.0, math.sqrt(speed * slope))
        total = sign * self.prior_derivative(q, self.overall(state, now)) + curvature * self.pace_of_means * h
        top = sign * excess + fastest * h
        top *= exp(-2.0 * (s - turn * h)) if top > 0.0 else exp(-2.0 * (s + turn * h))
        return speed * positive(total + top), h

    @compiled
    def slope_of_mean(self, state, k, now):
        """The derivative by the k-th mean."""
        pull = exp(-2.0 * self.at(state, self.spread + k, now)) * self.excess(state, k, now)
        return self.prior_derivative(self.means[0], self.overall(state, now)) + pull

    @compiled
    def rate_of_row(self, state, e, now, rng):
        memory, row, j = state.memory, state.memory.clocks, self.first_effect + e
        s = now - row[e, START]
        data, known = row[e, LEVEL] + row[e, SLOPE] * s, row[e, KNOWN] + row[e, KNOWN_SLOPE] * s
        total, k = data + known, self.grouping[e]
        for q in range(self.shared.shape[0]):
            self.place(state, self.shared[q], now)
        memory.flipping[0] = j
        if row[e, ROW] < 0.0:
            self.place(state, j, now)
            u = memory.here[j] - self.at(state, self.means[k], now)
            partial = self.known_own(state, e, now) + exp(-2.0 * self.at(state, self.spread + k, now)) * u
            return positive(state.v[j] * partial) * (total / known)
        i = int(row[e, ROW])
        state.counts[DATA] += 1
        for q in range(self.slots):
            self.place(state, self.model.level[i, q], now)
        part = self.speed[j] * self.parts[i, 0]
        whole = part
        if k == 0:
            for n in range(self.shared.shape[0]):
                whole += self.shared_part(i, n)
            rest = rng.random() * whole - part
            n = 0
            while rest >= 0.0 and n < self.shared.shape[0]:
                j = self.shared[n]
                part = self.shared_part(i, n)
                rest -= part
                n += 1
        memory.flipping[0] = j
        if part == 0.0:
            return 0.0
        # The row is drawn in proportion to `whole`, then the coordinate to `part`: both together to `part`.
        share = data * part / self.tables.totals[e]
        return positive(state.v[j] * self.rest_of(memory.here, i, j, memory.evaluation, memory.loss)) * (total / share)

    @compiled
    def shared_part(self, i, n):
        """σⱼ ωᵢⱼ of the n-th shared coordinate."""
        j, fixed = self.shared[n], self.shared.shape[0] - self.model.n_dispersions
        if n < fixed:
            return self.speed[j] * abs(self.model.design.feature(i, j)) * self.parts[i, 1]
        return self.speed[j] * self.parts[i, 2 + n - fixed]

    @compiled
    def rest_of(self, x, i, j, evaluation, rho):
        """Tᵢⱼ."""
        model, own = self.model, self.dim - self.model.n_dispersions
        value = self.remainder_by(x, i, j, evaluation, rho)
        if j < model.n_fixed or j >= own:
            third = self.thirds[i, 0 if j < own else 1 + j - own]
            for q in range(self.slots):
                d = x[model.level[i, q]] - self.anchor[model.level[i, q]]
                value -= third * (d * d)
            if j < model.n_fixed:
                value *= model.design.feature(i, j)
        return value

    @compiled
    def turn(self, state, e, now):
        """What the flip of a coefficient changes in the sums, which are those of `now`, and in the lines."""
        memory, j, k = state.memory, self.first_effect + e, self.grouping[e]
        sums, x, change = memory.sums, self.at(state, j, now), -2.0 * state.v[j]
        sums[k, PRODUCT] += change * (x - self.anchor[self.means[k]])
        sums[k, VELOCITY] += change
        sums[k, GAUGE_SLOPE] += change * self.model.share[e]
        for n in range(self.shared.shape[0]):
            memory.cross[n, 1] += change * self.border[e, n]
            memory.cross[n, 3] += change * self.bulge[e, n] * (x - self.anchor[j])
        across, s = memory.across, now - memory.since[0]
        for n in range(self.first_pair[e], self.first_pair[e + 1]):
            rise = change * self.pair_curvature[n]
            across[self.pairs[n], 0] -= rise * s
            across[self.pairs[n], 1] += rise

    @compiled
    def add_of_groups(self, x, out):
        """What the expansion has of the coefficients of groups."""
        for e in range(self.groups):
            j = self.first_effect + e
            d = x[j] - self.anchor[j]
            out[j] += self.own[e] * d
            for n in range(self.first_pair[e], self.first_pair[e + 1]):
                h = self.first_effect + self.pairs[n]
                out[j] += self.pair_curvature[n] * (x[h] - self.anchor[h])
            for k in range(self.shared.shape[0]):
                out[j] += self.border[e, k] * (x[self.shared[k]] - self.anchor[self.shared[k]])
                out[self.shared[k]] += self.border[e, k] * d + self.bulge[e, k] * (d * d)

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def expected_data(self) -> float:
        """Rows looked at in a unit of time, about: where the distances have their typical values."""
        return float(self.tables.totals.sum())

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        m = len(self.shared)
        return Memory(
            here=self.anchor.copy(),
            clocks=np.zeros((self.clocks, 6)),
            known=np.zeros(m),
            slopes=np.zeros(m),
            flipping=np.zeros(1, np.int64),
            sums=np.zeros((self.slots, 8)),
            cross=np.zeros((m, 5)),
            reach=np.full(self.slots + 1, -math.inf),
            loss=np.zeros(self.model.n_functionals),
            evaluation=self.model.scratch(),
            across=np.zeros((self.groups, 2)),
            since=np.full(1, -math.inf),
        )

    def prepare(self, state) -> None:
        effects = slice(self.first_effect, self.first_effect + self.groups)
        x, v, sums = state.x[effects], state.v[effects], state.memory.sums
        for k in range(self.slots):
            own = self.grouping == k
            d, w, share = x[own] - self.anchor[self.means[k]], v[own], self.model.share[own]
            sums[k] = 0.0, d.sum(), w.sum(), d @ d, d @ w, w @ w, share @ x[own], share @ w
        d = x - self.anchor[effects]
        parts = d @ self.border, v @ self.border, d * d @ self.bulge, d * v @ self.bulge, v * v @ self.bulge
        state.memory.cross[:] = np.stack(parts, axis=1)


def _crossed(curvature, level, groups):
    """hⱼₕ, a sparse matrix (E, E): of the rows' ℓ'' the sums over those of each pair of groups."""
    from scipy import sparse

    upper = sparse.csr_array((groups, groups))
    for g, h in itertools.combinations(level.T, 2):
        upper = upper + sparse.coo_array((curvature, (g, h)), shape=upper.shape).tocsr()
    return (upper + upper.T).tocsr()


@entry
def _survey(
    model, anchor, shared, pull, inner, border, own, bulge, curvature, thirds, features, hessian, eta, there, data, room
):  # fmt: skip
    """Gradient and Hessian of all rows at the anchor, and of each row ℓ'' and half its derivatives by the functionals.

    But for the Hessian's part of two fixed columns, of which the weight of each row is in `curvature`.
    """
    m, fixed, first, law = shared.shape[0], shared.shape[0] - model.n_dispersions, 0, model.likelihood
    while first < model.n_data:
        lanes = min(LANES, model.n_data - first)
        place = model.run_rows(THIRD, anchor, first, lanes, eta, data, room)
        for k in range(law.count):
            for lane in range(lanes):
                thirds[k, first + lane] = 0.5 * model.weight_of(first + lane) * room[law.results[place + k], lane]
        place = law.run(CURVATURE, lanes, data, eta, room)
        for lane in range(lanes):
            i = first + lane
            model.distribute(anchor, i, place, lane, room, pull)
            model.hessian_of(i, place, lane, room, hessian)
            curvature[i] = hessian[0, 0]
            for k in range(fixed):
                features[k] = model.design.feature(i, shared[k])
            add_inner(inner, features, fixed, hessian)
            for k in range(model.n_groups):
                e = model.level[i, k] - model.first[0]
                own[e] += hessian[0, 0]
                for q in range(m):
                    f, feature = (0, features[q]) if q < fixed else (1 + q - fixed, 1.0)
                    border[e, q] += hessian[0, f] * feature
                    bulge[e, q] += thirds[f, i] * feature
        first += lanes
