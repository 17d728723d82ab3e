r"""The Zig-Zag process of a regression with dispersions and coefficients of groups: exact, at one row a proposal.

=====  =================================================================================================
flow   straight lines, x + v s, |vⱼ| = σⱼ the speed of coordinate j
clock  one for the rows of each group (of all rows, without groups), one for the priors of β and the
       dispersions; with groups, one for each mean β₀, βₖ and one for each log τ
rate   of coordinate j: Σᵢ (vⱼ Rᵢⱼ)₊ + (vⱼ [∂ⱼprior(x) + Gⱼ])₊, as below
jump   vⱼ ← -vⱼ
=====  =================================================================================================

The gradient of the data is expanded at the anchor x̂: G = Σᵢ [∇Uᵢ(x̂) + Hᵢ(x̂) (x - x̂)] is known, and the remainders
Rᵢ = ∇Uᵢ(x) - ∇Uᵢ(x̂) - Hᵢ(x̂) (x - x̂) are looked at row by row. The rates balance the flow: their difference from those
of the velocity -vⱼ is vⱼ ∂ⱼU. (Control variates of first order alone would be exact too. Their noise, from the effects
of all groups, would make β flip √G times as often as it needs.)

A row acts on the coordinates of β, the dispersions and its group's intercept wᵍ and slopes bᵍ alone, which have the
distance r = |(x - x̂) / scale| from the anchor. With the bounds by functional of `pdmp.processes.row_bounds`

    |Rᵢⱼ| <= Lᵢⱼ φ(r),     φ(r) = F r² / 2,     F the group's factor of the first shell of a radius of at least r,

so that the clock of group g proposes remainders at the rate φ(r) Σᵢⱼ σⱼ Lᵢⱼ, draws a row in proportion to Σⱼ σⱼ Lᵢⱼ by
an alias table, a coordinate in proportion to σⱼ Lᵢⱼ, and evaluates that row alone.

All speeds being known, r(t + s) <= r(t) + |σ / scale| s whatever flips in between. So a flip redraws no clock but its
own, and costs the same for every number of rows and groups. φ is bounded by its chord over a horizon, with the factor
at its end, when the clock is drawn anew. Likewise for the others, which see all groups:
with the effects e = M (w - β₀, b - β) of `GroupIntercepts`, Σeₖ, Σeₖ² and what the groups add to G are kept up to date,
as lines and parabolas in time.

No bound holds for every x, but these hold on the whole path: no rate is ever above its bound.

References
----------
Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis of big
data, Ann. Statist. 47, section 5 (control variates). Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle
Sampler, JASA 113, section 3.3 (a clock for each factor). Sen, Sachs, Lu & Dunson (2020), Biometrika 107 (importance).
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.tape import CURVATURE, LANES
from pdmp.gradients.alias import AliasBlocks, AliasTables, table_of_block
from pdmp.metric import Metric
from pdmp.models.priors import second_derivative_bound
from pdmp.models.regressions.blocks import Chunks
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled, entry, positive
from pdmp.native.threads import added, each
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
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import BY_FUNCTIONAL, Plan, in_pieces, in_shells, together
from pdmp.thinning.affine import first_arrival


class Memory(NamedTuple):
    """Beside the path."""

    here: np.ndarray  #: (d,) position at the proposal, of the coordinates that it needs
    clocks: np.ndarray  #: (clocks, 6)
    known: np.ndarray  #: (m,) bounds of the clock of priors, coordinate by coordinate, when it was drawn
    slopes: np.ndarray  #: (m,)
    flipping: np.ndarray  #: (1,) the coordinate that flips if the proposal is accepted
    sums: np.ndarray  #: (K, 6), with d = M (w - ŵ, b - b̂) of the anchor (ŵ, b̂) of the means
    own: np.ndarray  #: (G, 2 K) bounds on the known part of each of the group's coordinates, and their slopes
    cross: np.ndarray  #: (m, 2) what the groups add to G of the shared coordinates at the time of the sums; its slope
    ahead: tuple  #: rows drawn ahead
    loss: np.ndarray  #: (n,) what the row has beyond its expansion, by its functionals
    evaluation: tuple  #: what the model needs for it


class RegressionZigZag(AnchoredZigZag):
    """Zig-Zag process of a regression, sub-sampled exactly.

    Parameters
    ----------
    model : GroupIntercepts, or MixedRegression without groups
        What to sample; of any likelihood of `pdmp.models.regressions.likelihoods`.
    anchor : array_like, shape (dim,), optional
        Where the gradient of all rows is known; that of `pdmp.models.regressions.laplace.laplace` when omitted.
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
    >>> from pdmp.models.priors import Normal
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import MixedRegression
    >>> from pdmp.processes.regression_zigzag import RegressionZigZag
    >>> model = MixedRegression(np.ones((40, 1)), np.arange(40) % 4, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)])
    >>> run = pdmp.sample(RegressionZigZag(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    own: np.ndarray  #: (K G, K) Hessian of the data at the anchor, of the coordinates of one group, intercepts first
    own_rises: np.ndarray  #: (K G,) the largest slope of G of the groups' coordinates
    mixing: np.ndarray  #: (K, K) M

    def __init__(
        self,
        model: MixedRegression,
        anchor: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
    ) -> None:
        grouped = isinstance(model, GroupIntercepts)
        if not isinstance(model, MixedRegression) or model.n_groups and not grouped:
            raise TypeError(
                "RegressionZigZag takes a MixedRegression without groups, or GroupIntercepts, got a "
                f"{type(model).__name__}."
            )
        fixed = self._expand(model, anchor, metric, laplace, model.means if grouped else np.zeros(0, np.int64))
        self.mixing = model.mixing if grouped else np.zeros((0, 0))
        self.groups = int(model.first[1]) - self.first_effect if grouped else 1

        effects = slice(self.first_effect, int(model.first[-1]))
        if grouped and len(fixed):
            self._weigh(fixed, *_mean_squares(model, self.speed))
        self.pace = math.sqrt(float(np.sum((self.speed / self.scale)[self.shared] ** 2)) + self.slots)
        speeds = np.abs(self.mixing) @ self.speed[effects].reshape(self.slots, self.groups if grouped else 0)
        self.mean_speeds = np.abs(self.mixing) @ self.speed[self.means]
        self.sum_of_speeds, self.root_of_speeds = speeds.sum(axis=1), np.sqrt(np.sum(speeds**2, axis=1))

        plan = Plan(model.n_data, self.pace)
        if model.blocks is None:
            group = _group_of(model)
            self.pull, self.inner, self.border, self.own = surveyed(model, self.anchor, self.shared)
            found, shares = zip(*each(self._norms_of_piece(model, plan), model.pieces()), strict=True)
            share = np.concatenate(shares, axis=1)
            bounds = in_shells(np.concatenate(found, axis=2), share, group, self.groups)
            self.parts, weights = np.ascontiguousarray(bounds.weights.T), np.sum(share * bounds.weights, axis=0)
            self.growth = Shells(*together(plan, [bounds.factors]))
            order = np.argsort(group, kind="stable")
            self.tables = AliasTables(order, np.searchsorted(group[order], np.arange(self.groups + 1)), weights[order])
        else:
            self.pull, self.inner, self.border, self.own = self._survey_blocks(model, plan)
        sums = self.tables.totals, self.pull, self.inner
        if not all(np.all(np.isfinite(part)) for part in sums):
            raise ValueError("`anchor`: the bounds of single rows are not finite there.")
        sigma, sigmas = self.speed[self.shared], self.speed[effects]
        self.rises = np.abs(self.inner) @ sigma
        self.own_rises = np.abs(self.border) @ sigma
        self.rises += sigmas @ np.abs(self.border)
        for k in range(self.slots):
            self.own_rises += np.abs(self.own[:, k]) * np.tile(
                sigmas[k * self.groups : (k + 1) * self.groups], self.slots
            )
        self.prior_horizon = 1.0 / max(1.0, math.sqrt(sigma @ self.rises))
        self.horizon = np.full(self.groups, 1.0 / self.pace)
        if grouped:
            fastest = self.speed[self.spread : self.first_effect].max()
            self.horizon = np.minimum(self.horizon, 0.5 * math.log(SPREAD_CHORD) / fastest)
        clocks = self.groups + 1 + 2 * self.slots
        super().__init__(model.dim, clocks, (np.arange(clocks + 1), np.arange(clocks)), local=True)

    def _norms_of_piece(self, model, plan):
        args = plan, self.anchor, self.speed, self.scale, self.shared
        return lambda _, first, stop: norms_by_functional(model, first, stop, *args)

    def _survey_blocks(self, model, plan):
        """The same from rows in files, block by block; the tables are in a file as well."""
        blocks, files, n = model.blocks, model.coded.files, model.n_data
        name, of_rows = files.unused("alias"), files.unused("parts")
        files.create(name, (n,) if self.slots else (n, 2))
        files.create(of_rows, (n, model.n_functionals))
        sums, factors, first, totals = [], [], [0], []
        args = plan, self.anchor, self.speed, self.scale, self.shared, self.groups, name, of_rows
        for *parts, of_block, rows, total in blocks.map(_survey_block, *args):
            sums = [a + b for a, b in zip(sums, parts, strict=True)] if sums else parts
            factors = [together(plan, [*factors, of_block])[1]]
            first.append(first[-1] + rows)
            totals.append(total)
        self.growth, self.parts = Shells(*together(plan, factors)), files.mapped(of_rows)
        if not self.slots:
            finite = np.isfinite(totals).all()
            totals = np.array(totals) if finite else np.ones(len(totals))
            further = self.parts.reshape(-1) if self.parts.shape[1] == 1 else None
            self.tables = AliasBlocks(files.mapped(name), first, totals, model.design.asks, further)
            self.tables.totals[:] *= 1.0 if finite else math.nan
        else:  # the rows of a group are in any block: sorted here, in memory
            group = _group_of(model)
            order = np.argsort(group, kind="stable")
            places = np.searchsorted(group[order], np.arange(self.groups + 1))
            self.tables = AliasTables(order, places, files.read(name, 0, n)[order])
            files.remove(name)
            files.create(name, (n, 4))
            files.write(name, 0, self.tables.table)
            self.tables.table = files.mapped(name)
        return tuple(sums)

    # -- compiled: positions, sums ----------------------------------------------------------------------------------

    @compiled
    def advance_sums(self, memory, now):
        """Bring the sums over the groups to the time `now`."""
        sums = memory.sums
        if self.slots == 0:
            return
        s = now - sums[0, TIME]
        for k in range(self.slots):
            sums[k, FIRST] += sums[k, VELOCITY] * s
            sums[k, SQUARE] += (2.0 * sums[k, PRODUCT] + sums[k, SPEED] * s) * s
            sums[k, PRODUCT] += sums[k, SPEED] * s
            sums[k, TIME] = now
        for k in range(memory.cross.shape[0]):
            memory.cross[k, 0] += memory.cross[k, 1] * s

    @compiled
    def known(self, state, k, now):
        """G of the k-th shared coordinate; the shared ones are in the memory, and the sums are those of `now`."""
        total = self.pull[self.shared[k]] + state.memory.cross[k, 0]
        for q in range(self.shared.shape[0]):
            total += self.inner[k, q] * (state.memory.here[self.shared[q]] - self.anchor[self.shared[q]])
        return total

    @compiled
    def place_of(self, g, k):
        """The coordinate of group g in group column k."""
        return self.first_effect + k * self.groups + g

    @compiled
    def known_own(self, state, g, k):
        """G of the k-th coordinate of group g, from the positions in the memory."""
        j, here = self.place_of(g, k), state.memory.here
        e = j - self.first_effect
        total = self.pull[j]
        for q in range(self.slots):
            i = self.place_of(g, q)
            total += self.own[e, q] * (here[i] - self.anchor[i])
        for q in range(self.shared.shape[0]):
            total += self.border[e, q] * (here[self.shared[q]] - self.anchor[self.shared[q]])
        return total

    @compiled
    def terms(self, k):
        """The effects eₜ on which the prior of coordinate k depends are those of t = 0 and of t = k; how many."""
        return 1 if k == 0 else 2

    @compiled
    def effect(self, state, g, t, now):
        """eₜ of group g, from its positions in the memory."""
        here, total = state.memory.here, 0.0
        for q in range(t, self.slots if t == 0 else t + 1):
            total += self.mixing[t, q] * (here[self.place_of(g, q)] - self.at(state, self.means[q], now))
        return total

    @compiled
    def mean_part(self, state, t, now):
        """What the means subtract from each dₜ: M of their distances from the anchor."""
        total = 0.0
        for q in range(t, self.slots if t == 0 else t + 1):
            total += self.mixing[t, q] * (self.at(state, self.means[q], now) - self.anchor[self.means[q]])
        return total

    @compiled
    def size(self, k):
        """Groups, of each column."""
        return self.groups

    @compiled
    def rise(self, state, k, now):
        return self.rises[k]

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def propose_row(self, state, g, now, rng):
        memory, horizon, square = state.memory, self.horizon[g], 0.0
        for k in range(self.shared.shape[0]):
            square += self.place(state, self.shared[k], now)
        row = memory.clocks
        row[g, KNOWN], row[g, KNOWN_SLOPE] = 0.0, 0.0
        for k in range(self.slots):
            square += self.place(state, self.place_of(g, k), now)
        for k in range(self.slots):
            j = self.place_of(g, k)
            sign = 1.0 if state.v[j] >= 0.0 else -1.0
            known, rise = sign * self.known_own(state, g, k), self.own_rises[j - self.first_effect]
            for n in range(self.terms(k)):  # mixing * precision * effect, each factor at its worst
                t = k if n == 0 else 0
                s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t] * horizon
                low, high = exp(-2.0 * (s + turn)), exp(-2.0 * (s - turn))
                u = sign * self.mixing[t, k] * self.effect(state, g, t, now)
                known += (high if u > 0.0 else low) * u
                fastest = self.mean_speeds[t]
                for q in range(t, self.slots if t == 0 else t + 1):
                    fastest += abs(self.mixing[t, q]) * self.speed[self.place_of(g, q)]
                rise += high * abs(self.mixing[t, k]) * fastest
            memory.own[g, k], memory.own[g, self.slots + k] = self.speed[j] * positive(known), self.speed[j] * rise
            row[g, KNOWN] += memory.own[g, k]
            row[g, KNOWN_SLOPE] += memory.own[g, self.slots + k]
        far, total = math.sqrt(square) + self.pace * horizon, 0.5 * self.tables.totals[g]
        share = self.growth.share(far, g)
        if not share < math.inf:
            return math.nan, HORIZON
        row[g, LEVEL], row[g, SLOPE] = total * share * square, total * share * (far * far - square) / horizon
        row[g, START] = now
        if total > 0.0:
            row[g, ROW] = self.tables.next(g, memory.ahead, self.model, rng)
        level, rise = row[g, LEVEL] + row[g, KNOWN], row[g, SLOPE] + row[g, KNOWN_SLOPE]
        s = first_arrival(level, rise, rng.standard_exponential())
        return (now + s, level + rise * s) if s < horizon else (now + horizon, HORIZON)

    @compiled
    def bound_of_mean(self, state, k, now):
        """A bound on the rate of the k-th mean, and for how long it holds."""
        j, n = self.means[k], self.model.numbers
        speed, x = self.speed[j], self.at(state, j, now)
        sign = 1.0 if state.v[j] >= 0.0 else -1.0
        curvature = second_derivative_bound(self.model.kinds[j], n[j, 0], n[j, 1], n[j, 2])
        slope = curvature * speed
        for i in range(self.terms(k)):
            t = k if i == 0 else 0
            s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t]
            fastest = self.groups * self.mean_speeds[t] + self.sum_of_speeds[t]
            size = abs(self.mixing[t, k])
            slope += size * exp(-2.0 * s) * (fastest + 2.0 * turn * abs(self.excess(state, t, now)))
        h = 1.0 / max(1.0, math.sqrt(speed * slope))
        total = sign * self.prior_derivative(j, x) + curvature * speed * h
        for i in range(self.terms(k)):
            t = k if i == 0 else 0
            s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t]
            fastest = self.groups * self.mean_speeds[t] + self.sum_of_speeds[t]
            top = sign * self.mixing[t, k] * self.excess(state, t, now) + abs(self.mixing[t, k]) * fastest * h
            top *= exp(-2.0 * (s - turn * h)) if top > 0.0 else exp(-2.0 * (s + turn * h))
            total += top
        return speed * positive(total), h

    @compiled
    def slope_of_mean(self, state, k, now):
        """The derivative by the k-th mean."""
        partial = 0.0
        for n in range(self.terms(k)):
            t = k if n == 0 else 0
            precision = exp(-2.0 * self.at(state, self.spread + t, now))
            partial += self.mixing[t, k] * precision * self.excess(state, t, now)
        return self.prior_derivative(self.means[k], self.at(state, self.means[k], now)) + partial

    @compiled
    def rate_of_row(self, state, g, now, rng):
        memory, row = state.memory, state.memory.clocks
        s = now - row[g, START]
        data, prior = row[g, LEVEL] + row[g, SLOPE] * s, row[g, KNOWN] + row[g, KNOWN_SLOPE] * s
        total = data + prior
        for k in range(self.shared.shape[0]):
            self.place(state, self.shared[k], now)
        for k in range(self.slots):
            self.place(state, self.place_of(g, k), now)
        rest = rng.random() * total - data
        if rest >= 0.0:
            k, bound = 0, 0.0
            for q in range(self.slots):
                k, bound = q, memory.own[g, q] + memory.own[g, self.slots + q] * s
                rest -= bound
                if rest < 0.0:
                    break
            j = self.place_of(g, k)
            memory.flipping[0] = j
            partial = self.known_own(state, g, k)
            for n in range(self.terms(k)):
                t = k if n == 0 else 0
                precision = exp(-2.0 * self.at(state, self.spread + t, now))
                partial += precision * self.mixing[t, k] * self.effect(state, g, t, now)
            return positive(state.v[j] * partial) * (total / bound)
        i = int(row[g, ROW])
        state.counts[DATA] += 1
        rest, j, part = rng.random() * self.row_weight(i), 0, 0.0
        for k in range(self.shared.shape[0] + self.slots):
            j, part = self.row_part(g, i, k)
            rest -= part
            if rest < 0.0:
                break
        memory.flipping[0] = j
        if part == 0.0:
            return 0.0
        # The row is drawn in proportion to its weight, then the coordinate to `part`: both together to `part`.
        share = data * part / self.tables.totals[g]
        return positive(state.v[j] * self.rest_of(memory.here, i, j, memory.evaluation, memory.loss)) * (total / share)

    @compiled
    def row_part(self, g, i, k):
        """The k-th coordinate of row i, and σⱼ Lᵢⱼ of it."""
        n, fixed = self.shared.shape[0], self.shared.shape[0] - self.model.n_dispersions
        if k >= n:
            j = self.place_of(g, k - n)
            return j, self.speed[j] * abs(self.model.value[i, k - n]) * self.parts[i, 0]
        j = self.shared[k]
        if k < fixed:
            return j, self.speed[j] * abs(self.model.design.feature(i, j)) * self.parts[i, 0]
        return j, self.speed[j] * self.parts[i, 1 + k - fixed]

    @compiled
    def row_weight(self, i):
        """Σⱼ σⱼ Lᵢⱼ."""
        total = 0.0
        for k in range(self.shared.shape[0] + self.slots):
            g = self.model.level[i, 0] - self.first_effect if self.slots > 0 else 0
            total += self.row_part(g, i, k)[1]
        return total

    @compiled
    def rest_of(self, x, i, j, evaluation, rho):
        """Rᵢⱼ."""
        model, value = self.model, self.remainder_by(x, i, j, evaluation, rho)
        if j < model.n_fixed:
            value *= model.design.feature(i, j)
        elif j < self.dim - model.n_dispersions:
            value *= model.value[i, (j - self.first_effect) // self.groups]
        return value

    @compiled
    def turn(self, state, e, now):
        """What the flip of a coordinate of a group changes in the sums, which are those of `now`."""
        sums, j = state.memory.sums, self.first_effect + e
        k, g = e // self.groups, e % self.groups
        for n in range(self.terms(k)):
            t, d, v = k if n == 0 else 0, 0.0, 0.0
            for q in range(t, self.slots if t == 0 else t + 1):
                i = self.place_of(g, q)
                d += self.mixing[t, q] * (self.at(state, i, now) - self.anchor[self.means[q]])
                v += self.mixing[t, q] * state.v[i]
            change = -2.0 * self.mixing[t, k] * state.v[j]
            sums[t, PRODUCT] += change * d
            sums[t, VELOCITY] += change
            sums[t, SPEED] += change * (2.0 * v + change)
        for k in range(self.shared.shape[0]):
            state.memory.cross[k, 1] -= 2.0 * self.border[e, k] * state.v[j]

    @compiled
    def add_of_groups(self, x, out):
        """What the expansion has of the coefficients of groups."""
        for e in range(self.slots * self.groups):
            j, g = self.first_effect + e, e % self.groups
            for k in range(self.slots):
                i = self.place_of(g, k)
                out[j] += self.own[e, k] * (x[i] - self.anchor[i])
            for k in range(self.shared.shape[0]):
                out[j] += self.border[e, k] * (x[self.shared[k]] - self.anchor[self.shared[k]])
                out[self.shared[k]] += self.border[e, k] * (x[j] - self.anchor[j])

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def expected_data(self) -> float:
        """Rows looked at in a unit of time, about: where the distances from the anchor have their mean squares."""
        return float(0.5 * self.pace**2 * self.tables.totals.sum())

    #: What a run says that was far from its anchor.
    anchor_advice = "give RegressionZigZag(model, anchor=run.mean(), metric=pdmp.Metric(covariance=run.var()))"

    def anchor_distances(self, mean: np.ndarray, var: np.ndarray) -> tuple[float, float]:
        """As `pdmp.gradients.ControlVariate.anchor_distances`."""
        return float(np.sum(((mean - self.anchor) / self.scale) ** 2)), float(np.sum(var / self.scale**2))

    def among_moving(self) -> Self:
        return self

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        m = len(self.shared)
        return Memory(
            here=self.anchor.copy(),
            clocks=np.zeros((self.clocks, 6)),
            known=np.zeros(m),
            slopes=np.zeros(m),
            flipping=np.zeros(1, np.int64),
            sums=np.zeros((self.slots, 6)),
            own=np.zeros((self.groups, 2 * self.slots)),
            cross=np.zeros((m, 2)),
            ahead=self.tables.queue(),
            loss=np.zeros(self.model.n_functionals),
            evaluation=self.model.scratch(),
        )

    def prepare(self, state) -> None:
        K, G = self.slots, self.groups
        if K:
            effects = slice(self.first_effect, self.first_effect + K * G)
            d = self.mixing @ (state.x[effects].reshape(K, G) - self.anchor[self.means, None])
            v, sums = self.mixing @ state.v[effects].reshape(K, G), state.memory.sums
            columns = (np.zeros(K), d.sum(1), v.sum(1), np.sum(d * d, 1), np.sum(d * v, 1), np.sum(v * v, 1))
            sums[:] = np.stack(columns, axis=1)
            state.memory.cross[:, 0] = (state.x[effects] - self.anchor[effects]) @ self.border
            state.memory.cross[:, 1] = state.v[effects] @ self.border


def _group_of(model):
    """The group of each row, (N,)."""
    return model.level[:, 0] - model.first[0] if model.n_groups else np.zeros(model.n_data, np.int64)


def _mean_squares(model, speed):
    """Of the fixed columns, (p,), and of what the speeds of the groups' coordinates add to a linear predictor."""
    if model.blocks is None:
        return np.mean(np.square(model.X), axis=0), _squares_of_groups(model, speed) / model.n_data
    squares, of_groups = model.blocks.total(_squares, speed)
    return squares / model.n_data, of_groups / model.n_data


def _squares(block, files, first, speed):
    return np.square(block.design.data).sum(axis=0), _squares_of_groups(block, speed)


def _squares_of_groups(model, speed):
    return float(sum(np.sum((speed[j] * z) ** 2) for j, z in zip(model.level.T, model.value.T, strict=True)))


def norms_by_functional(model, first, stop, plan, anchor, speed, scale, shared):
    """Of rows the norms |T_k| (shells, n, rows), and by what each is multiplied in Σⱼ σⱼ Lᵢⱼ (n, rows)."""
    rows, own, fixed = slice(first, stop), model.dim - model.n_dispersions, shared[: len(shared) - model.n_dispersions]
    share = np.empty((model.n_functionals, stop - first))
    share[0] = np.abs(model.design.data[rows][:, fixed]) @ speed[fixed]
    for k in range(model.n_groups):
        share[0] += speed[model.level[rows, k]] * np.abs(model.value[rows, k])
    share[1:] = speed[own:, None]
    block = model.row_block(0, first, stop, anchor, scale)
    return plan.norms(model.enclosures[0], block, BY_FUNCTIONAL), share


def surveyed(model, anchor, shared):
    """Of all rows of a model: Σ ∇Uᵢ, and blocks of the Hessian."""
    if len(model.row_chunks()) == 1:
        return survey_rows(model, anchor, shared)
    return added(Chunks(model).map(_survey_chunk, anchor, shared))


def _survey_chunk(block, files, first, *args):
    return survey_rows(block, *args)


def survey_rows(model, anchor, shared):
    """`surveyed` of some rows, in one thread."""
    m, K, n = len(shared), model.n_groups, model.n_functionals
    groups = int(model.first[1] - model.first[0]) if K else 1
    inner, border, own = np.zeros((m, m)), np.zeros((K * groups, m)), np.zeros((K * groups, K))
    pull, curvature = np.zeros(model.dim), np.zeros(model.n_data)
    _survey(
        model.native, anchor, _group_of(model), groups, shared, pull, inner, border, own, curvature, np.zeros(m),
        np.zeros((n, n)), *model.scratch(LANES),
    )  # fmt: skip
    inner += products_of_shared(model, shared, curvature)
    return pull, inner, border, own


def _survey_block(block, files, first, plan, anchor, speed, scale, shared, groups, name, of_rows):
    pieces = [
        norms_by_functional(block, *where, plan, anchor, speed, scale, shared) for where in in_pieces(block.n_data)
    ]
    found, shares = zip(*pieces, strict=True)
    share = np.concatenate(shares, axis=1)
    bounds = in_shells(np.concatenate(found, axis=2), share, _group_of(block), groups)
    weights = np.sum(share * bounds.weights, axis=0)
    total = float(weights.sum())
    files.write(of_rows, first, bounds.weights.T)
    if block.n_groups:
        files.write(name, first, weights)
    elif math.isfinite(total):
        table, total = table_of_block(weights)
        files.write(name, first, table)
    return (*survey_rows(block, anchor, shared), bounds.factors, block.n_data, total)


@entry
def _survey(
    model, anchor, group, groups, shared, pull, inner, border, own, curvature, features, hessian, eta, there, data, room
):  # fmt: skip
    """Gradient and Hessian of all rows at the anchor.

    Of the Hessian's part of two fixed columns the weight of each row is in `curvature`.
    """
    m, fixed, first = shared.shape[0], shared.shape[0] - model.n_dispersions, 0
    while first < model.n_data:
        lanes = min(LANES, model.n_data - first)
        place = model.run_rows(CURVATURE, anchor, first, lanes, eta, data, room)
        for lane in range(lanes):
            i = first + lane
            g = group[i]
            model.distribute(anchor, i, place, lane, room, pull)
            model.hessian_of(i, place, lane, room, hessian)
            curvature[i] = hessian[0, 0]
            for k in range(fixed):
                features[k] = model.design.feature(i, shared[k])
            add_inner(inner, features, fixed, hessian)
            for e in range(model.n_groups):
                for k in range(fixed):
                    border[e * groups + g, k] += hessian[0, 0] * features[k] * model.value[i, e]
                for k in range(fixed, m):
                    border[e * groups + g, k] += hessian[0, 1 + k - fixed] * model.value[i, e]
                for q in range(model.n_groups):
                    own[e * groups + g, q] += hessian[0, 0] * model.value[i, e] * model.value[i, q]
        first += lanes
