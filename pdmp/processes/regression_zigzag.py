r"""The Zig-Zag process of a regression with dispersions and coefficients of groups: exact, at one row a proposal.

=====  =================================================================================================
flow   straight lines, x + v s, |vⱼ| = σⱼ the speed of coordinate j
clock  one for the rows of each group (of all rows, without groups), one for the priors of β and the
       dispersions; with groups, one for each mean of their coefficients and one for each log τ, and one for
       the regression φ of correlated effects
rate   of coordinate j: Σᵢ (vⱼ Tᵢⱼ)₊ + (vⱼ [∂ⱼprior(x) + Gⱼ])₊, as below
jump   vⱼ ← -vⱼ
=====  =================================================================================================

The gradient of the data is expanded at the anchor x̂: G = Σᵢ [∇Uᵢ(x̂) + Hᵢ(x̂) (x - x̂)] is known, and the remainders
Tᵢ = Rᵢ = ∇Uᵢ(x) - ∇Uᵢ(x̂) - Hᵢ(x̂) (x - x̂) are looked at row by row. The rates balance the flow whatever is left to the
rows: their difference from those of the velocity -vⱼ is vⱼ ∂ⱼU. (Control variates of first order alone would be exact
too. Their noise, from the effects of all groups, would make β flip √G times as often as it needs.)

**One grouping.** A row acts on the coordinates of β, the dispersions and its group's intercept wᵍ and slopes bᵍ alone,
which have the distance r = |(x - x̂) / scale| from the anchor. With the bounds by functional of
`pdmp.processes.row_bounds`

    |Rᵢⱼ| <= Lᵢⱼ φ(r),     φ(r) = F r² / 2,     F the group's factor of the first shell of a radius of at least r,

so that the clock of group g proposes remainders at the rate φ(r) Σᵢⱼ σⱼ Lᵢⱼ, draws a row in proportion to Σⱼ σⱼ Lᵢⱼ by
an alias table, a coordinate in proportion to σⱼ Lᵢⱼ, and evaluates that row alone. All is in units of a typical
distance r̂: ωᵢⱼ = Lᵢⱼ r̂² / 2.

All speeds being known, r(t + s) <= r(t) + |σ / scale| s whatever flips in between. So a flip redraws no clock but its
own, and costs the same for every number of rows and groups. φ is bounded by its chord over a horizon, with the factor
at its end, when the clock is drawn anew. Likewise for the others, which see all groups: with the effects
e = M (w - m, b - β) of `GroupIntercepts`, Σeₖ, Σeₖ², the gauges and what the groups add to G are kept up to date, as
lines and parabolas in time.

Of correlated effects M depends on φ, a line in time, and with it the parts that are independent, see
`GroupIntercepts`: u - φ v changes by at most |u̇| + |φ| |v̇| + |φ̇| |v|, each at its largest within the horizon, for one
group, for the sum of all and for the root of the sum of squares. Σ u v is a parabola in time as Σ u² and Σ v² are.

**Squares.** With more than √N groups, θᵢⱼ Σₖ (value x - value x̂)² is added to the expansion for the shared
coordinates, β and the dispersions, the sum over the coefficients of row i, θᵢⱼ = ½ ∂ⱼℓ''ᵢ(x̂), and Tᵢⱼ = Rᵢⱼ less that.
(Without it all rows say of σ that they fit worse than at the anchor, by as much as there are coefficients, and σ would
flip G / √N times as often as it needs.) ωᵢⱼ is more by |θᵢⱼ| Σₖ (value σ)² r̂² then.

**Crossed groupings.** A row has coefficients of several groups, and squares are in the expansion however many there
are. For a coefficient j of one grouping, what those of the others add to G is

    Cⱼ = Σₕ hⱼₕ (x - x̂)ₕ,     hⱼₕ = Σ ℓ''ᵢ(x̂) valueᵢⱼ valueᵢₕ over the rows of both j and h.

Between flips Cⱼ is a line in time. A flip of h changes the lines of the groups that share a row with it, 16 bytes each.
No clock is drawn anew for that: |Ċⱼ| <= Σₕ |hⱼₕ| σₕ. (Were ℓ''ᵢ(x̂) (x - x̂)ₕ left to the rows, that would be exact too,
and a flip would cost the same for every number of rows. But the more rows a group has, the more often it would flip
beyond what its gradient asks for, and diffuse.)

Where θᵢⱼ = c ℓ''ᵢ(x̂) in all rows, as of the σ of normal responses, c B is in the expansion too, B = Σₖ (x - x̂)ₖ Cₖ:
the products of coefficients of different groupings. It is a parabola in time, and a flip costs one addition for it.
(Left to the rows, these products would make σ flip √(2 N) E|d d'| times, d and d' a row's distances (x - x̂)ₖ.)

Let Dₖ be the largest distance |x - x̂| / σ of all coefficients of group column k. As each changes by 1 a unit of time at
most, Dₖ at one time bounds it at later ones, and computing it anew every `RENEWAL` costs as little as one proposal of
each group. In the clock of a group the distance r has those of its own coefficients, and Dₖ of the columns of other
groupings; a row's multiple of ωᵢⱼ is max(F r² / r̂², D² / D̂²), with D = max Dₖ, D̂ a typical value, and
ωᵢⱼ = Lᵢⱼ r̂² / 2 + |θᵢⱼ| Σₖ (value σ)² D̂² of the shared coordinates, which belong to the clocks of the first grouping.
That is convex in r and D, which are at most linear in time, so that its chord is a bound. h has 12 bytes for each pair
of groups that share a row and direction, at most 24 a row with two groupings.

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

from pdmp.expressions.tape import Scratch
from pdmp.gradients.alias import AliasTables
from pdmp.metric import WORDS, Diagonal, Metric, check_metric
from pdmp.models.regressions.blocks import is_crossed
from pdmp.models.regressions.group_intercepts import log_of_both, shares_of_both
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled, positive_part
from pdmp.native.vectors import exp
from pdmp.process import DATA, HORIZON, Process, last_moved
from pdmp.processes.remainders import RowReport, Shells
from pdmp.processes.row_bounds import Plan, together
from pdmp.processes.row_expansion import (
    layout_of,
    mean_squares,
    sorted_by_units,
    survey_block,
    surveyed,
    tables_of_blocks,
    weigh,
    weigh_blocks,
)
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import draw_component

CHORD = 1.5  #: by how much bounds of rows may grow in a horizon, with crossed groups
SPREAD_CHORD = 1.2  #: and where τ² may have changed by this one
LONGEST = 4.0  #: no clock of rows waits longer than this before it is drawn anew
DISTANCES = 2_000  #: of which the rows looked at are averaged
RENEWAL = 0.25  #: the largest distances D are computed anew after so much time
RECOUNT = 64.0  #: and the lines C after this, before rounding errors of their flips add up

#: Columns of `Memory.clocks`: when the clock was drawn; the bound of the rows' part then, and its slope; those of the
#: part that is known; the row of the proposal, -1 of the known part.
START, LEVEL, SLOPE, KNOWN, KNOWN_SLOPE, ROW = range(6)
#: `Memory.sums`, with d = M (w - m̂, b - β̂), m̂ and β̂ the anchor of the means: their time, Σd, Σv, Σd², Σdv, Σv²; the
#: gauge, and its slope.
TIME, FIRST, VELOCITY, SQUARE, PRODUCT, SPEED, GAUGE, GAUGE_SLOPE = range(8)


class Memory(NamedTuple):
    """Beside the path."""

    here: np.ndarray  #: (d,) position at the proposal, of the coordinates that it needs
    clocks: np.ndarray  #: (clocks, 6)
    known: np.ndarray  #: (m,) bounds of the clock of priors, coordinate by coordinate, when it was drawn
    slopes: np.ndarray  #: (m,)
    flipping: np.ndarray  #: (1,) the coordinate that flips if the proposal is accepted
    sums: np.ndarray  #: (K, 8)
    own: np.ndarray  #: (U, 2 W) bounds on the known part of each of the group's coordinates, and their slopes
    cross: np.ndarray  #: (m, 5) what the coefficients add to G of the shared: ΣHd, its slope; Σθd², Σθdv, Σθv²
    ahead: tuple  #: rows drawn ahead
    reach: np.ndarray  #: (K + 1,) D of each group column when it was computed last, and when that was
    across: np.ndarray  #: (E, 2) C of the coefficients at the time `since`, by the slopes of now; these slopes
    since: np.ndarray  #: (1,) when they were computed from all pairs
    joint: np.ndarray  #: (3,) B = ΣdC over the coefficients, ΣvC = B'/2 and ΣvĊ = B''/2, at the time of `sums`; of
    #: correlated effects the same of Σd₀d₁
    loss: np.ndarray  #: (n,) what the row has beyond its expansion, by its functionals
    evaluation: tuple  #: what the model needs for it


class RegressionZigZag(Process):
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
    >>> from pdmp.models.priors import HalfNormal, Normal
    >>> from pdmp.models.regressions.group_intercepts import GroupIntercepts
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import GroupColumn
    >>> from pdmp.processes.regression_zigzag import RegressionZigZag
    >>> i, one = np.arange(60), np.ones(60)
    >>> groups = [
    ...     GroupColumn("1|g", "g", (0, 1, 2), i % 3, one, HalfNormal(1.0)),
    ...     GroupColumn("1|h", "h", (0, 1, 2, 3), i // 3 % 4, one, HalfNormal(1.0)),
    ... ]
    >>> model = GroupIntercepts(
    ...     one[:, None], i % 5, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)], groups=groups, intercept=0
    ... )
    >>> run = pdmp.sample(RegressionZigZag(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    model: object
    anchor: np.ndarray
    speed: np.ndarray
    scale: np.ndarray  #: units of distances from the anchor
    pull: np.ndarray  #: (d,) Σᵢ ∇Uᵢ at the anchor
    inner: np.ndarray  #: (m, m) Hessian of the data there, of the shared coordinates
    border: np.ndarray  #: (E, m) of these and the groups' coefficients
    own: np.ndarray  #: (E, W) of coefficients of one group, W the most group columns of a grouping
    bulge: np.ndarray  #: (E, m) Σ θ over the rows of each coefficient; (0, m) without squares
    rises: np.ndarray  #: (m,) the largest slope of G of the shared coordinates
    bulge_rises: np.ndarray  #: (m,) and of Σθd² where no d is above σ
    own_rises: np.ndarray  #: (E,) the largest slope of G of the coefficients, C and gauges included
    shared: np.ndarray  #: (m,) the coordinates of which all rows depend
    priors: np.ndarray  #: (m,) places of their priors
    prior_horizon: float
    tables: object
    growth: object  #: φ, of each group
    parts: np.ndarray  #: (N, n) ωᵢ by the functionals; with squares (N, 1 + n), that of coefficients first
    first_part: int  #: where in it those of the shared coordinates begin
    thirds: np.ndarray  #: (N, n) θᵢ by the functionals, with squares
    joint: np.ndarray  #: (n,) c by the functionals, of crossed groups; 0 where products are left to the rows
    horizon: np.ndarray  #: of the groups' clocks
    pace: float  #: |σ / scale| of the coordinates of a row
    typical_distance: float  #: r̂
    typical_reach: float  #: D̂
    groups: int  #: clocks of rows
    slots: int  #: K, the group columns
    crossed: bool  #: whether they are of several groupings
    squares: bool  #: whether squares are in the expansion
    first_effect: int
    spread: int  #: place of the first log τ
    units: np.ndarray  #: (U, 3) of each group: its first group column, one after the last, its place in the grouping
    head: np.ndarray  #: (K,) the first column of the grouping
    end: np.ndarray  #: (K,) one after the last column of effect k
    column: np.ndarray  #: (E,) of the coefficients
    mixing: np.ndarray  #: (K, K) M
    lean: int  #: place of φ, or -1
    eta: float  #: of the prior of correlated effects
    means: np.ndarray  #: (K,) places of the means
    share: np.ndarray  #: (E,) of the gauges
    stiffness: np.ndarray  #: (K,)
    pairs: np.ndarray  #: (P,) h, coefficient by coefficient: those of other groupings that share a row with it
    pair_curvature: np.ndarray  #: (P,) hⱼₕ
    first_pair: np.ndarray  #: (E + 1,)
    pace_of_means: float  #: the largest |dβ₀/dt|
    mean_speeds: np.ndarray  #: (K,) the largest slope of an effect by the means alone
    effect_speeds: np.ndarray  #: (E,) the largest slope of each effect
    sum_of_speeds: np.ndarray  #: (K,) Σ over the groups of the largest slope of an effect by its coefficients
    root_of_speeds: np.ndarray  #: (K,) root of the sum of their squares

    events = ("flip",)
    report = RowReport()
    local = True

    def __init__(
        self,
        model: MixedRegression,
        anchor: ArrayLike | None = None,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
    ) -> None:
        if not getattr(model, "has_linear_rows", False):
            raise TypeError(
                "RegressionZigZag takes a MixedRegression without groups, or GroupIntercepts, got a "
                f"{type(model).__name__}."
            )
        metric = check_metric(metric, model.dim, type(self).__name__, WORDS[:2], diagonal=True)
        if anchor is None or isinstance(metric, str):
            found = laplace(model)
            if found is None:
                raise ValueError("`anchor` and `metric` must be given: the posterior's mode was not found.")
            anchor = found.mean if anchor is None else anchor
            metric = Diagonal(np.array(found.sd)) if isinstance(metric, str) else metric
        self.model, self.anchor = model, model.check(anchor, "anchor")
        self.speed = np.ones(model.dim) if metric is None else metric.root
        self._read_layout(model)
        effects, sigma = slice(self.first_effect, int(model.first[-1])), self.speed[self.shared]
        sigmas, K = self.speed[effects], self.slots
        of_shared = float(np.sum((sigma / self.scale[self.shared]) ** 2))
        self.pace = math.sqrt(of_shared + K)
        self.typical_reach = math.sqrt(2.0 * math.log(self.groups)) + RENEWAL if self.crossed else 1.0
        self.typical_distance = math.sqrt(of_shared + 1.0 + (K - 1) * self.typical_reach**2) if K else self.pace
        self.squares = self.crossed or (model.blocks is None and K > 0 and self.groups**2 > model.n_data)
        crossed = self._survey(model)
        sums = self.tables.totals, self.pull, self.inner, self.own
        if not all(np.all(np.isfinite(part)) for part in sums):
            raise ValueError("`anchor`: the bounds of single rows are not finite there.")

        self.pairs, self.pair_curvature = np.zeros(0, np.uint32), np.zeros(0)
        self.first_pair = np.zeros(len(sigmas) + 1, np.int64)
        self.rises = np.abs(self.inner) @ sigma + sigmas @ np.abs(self.border)
        self.own_rises, self.bulge_rises = np.abs(self.border) @ sigma, np.zeros(len(sigma))
        for k in range(K):
            for q in range(self.head[k], self.end[self.head[k]]):
                own = model.of_column(k)
                self.own_rises[own] += np.abs(self.own[own, q - self.head[k]]) * sigmas[model.of_column(q)]
        if self.squares:
            self.bulge_rises = 2.0 * sigmas**2 @ np.abs(self.bulge)
        if self.crossed:
            self.pair_curvature, self.first_pair = crossed.data, crossed.indptr
            # Compiled code walks numbers without a sign twice as fast.
            self.pairs = crossed.indices.astype(np.int32, copy=False).view(np.uint32)
            gauges = np.array([self.share[model.of_column(k)] @ sigmas[model.of_column(k)] for k in range(K)])
            self.own_rises += abs(crossed) @ sigmas + (self.stiffness * gauges)[self.column] * self.share
            products = 2.0 * float(sigmas @ (abs(crossed) @ sigmas))
            self.bulge_rises[len(sigma) - model.n_dispersions :] += np.abs(self.joint[1:]) * products
        reach = math.sqrt(2.0 * math.log(max(self.groups, 1))) + RENEWAL
        self.prior_horizon = 1.0 / max(1.0, math.sqrt(sigma @ (self.rises + self.bulge_rises * reach)))
        self.horizon = np.full(self.groups, 1.0 / self.pace)
        if self.crossed:  # bounds of the rows grow by the factor `CHORD`, or by a proposal a unit of time
            with np.errstate(divide="ignore"):
                rise = np.log(np.maximum(CHORD, 1.0 + 1.0 / self.tables.totals))
            self.horizon = np.minimum(rise * self.typical_distance / (2.0 * self.pace), LONGEST)
        if K:
            fastest = self.speed[self.spread : self.first_effect].max()
            self.horizon = np.minimum(self.horizon, 0.5 * math.log(SPREAD_CHORD) / fastest)
        clocks = self.groups + 1 + 2 * K + (self.lean >= 0)
        super().__init__(model.dim, clocks, (np.arange(clocks + 1), np.arange(clocks)), local=True)

    def _read_layout(self, model):
        """The group columns, their coefficients and means; the shared coordinates, and the units of distances."""
        p, K, E = model.n_fixed, model.n_groups, int(model.first[-1] - model.first[0])
        self.layout = layout = layout_of(model)
        self.head, self.end, self.units, self.groups = layout.head, layout.end, layout.units, len(layout.units)
        self.spread, self.first_effect, self.slots, self.crossed = p, int(model.first[0]), K, is_crossed(model)
        self.column = np.repeat(np.arange(K), np.diff(model.first))
        self.means, self.mixing, self.lean, self.eta = np.zeros(0, np.int64), np.zeros((0, 0)), -1, 1.0
        self.share, self.stiffness = np.zeros(E), np.zeros(K)
        if K:
            self.means, self.mixing, self.lean, self.eta = model.means, model.mixing, model.lean, model.eta
            self.share, self.stiffness = model.share, model.stiffness
        laws, fixed = np.arange(model.dim - model.n_dispersions, model.dim), np.setdiff1d(np.arange(p), self.means)
        self.shared = np.r_[fixed, laws].astype(np.int64)
        self.priors = np.r_[fixed, p + K + np.arange(len(laws))].astype(np.int64)
        self.scale, size = self.speed.copy(), np.abs(self.mixing)
        if K and len(fixed):  # Σⱼ of the bounds is smallest where both parts of a linear predictor weigh as they vary
            squares, inside = mean_squares(model, self.speed)
            inner, outer = math.sqrt(inside), math.sqrt(max(float(self.speed[fixed] ** 2 @ squares[fixed]), 1e-300))
            self.scale[self.shared] *= min(max(math.sqrt(inner / outer * math.sqrt(len(self.shared))), 1.0), 1e3)
        self.mean_speeds = size @ self.speed[self.means]
        self.pace_of_means = float(self.speed[self.means[self.head == np.arange(K)]].sum())
        self.sum_of_speeds, self.root_of_speeds, self.effect_speeds = np.zeros(K), np.zeros(K), np.zeros(E)
        for k in range(K):
            speeds = sum(size[k, q] * self.speed[model.first[q] : model.first[q + 1]] for q in range(k, self.end[k]))
            self.sum_of_speeds[k], self.root_of_speeds[k] = speeds.sum(), math.sqrt(speeds @ speeds)
            self.effect_speeds[model.of_column(k)] = self.mean_speeds[k] + speeds

    def _survey(self, model):
        """The sums over the rows at the anchor, their weights and tables; h of crossed groups is returned."""
        plan, crossed = Plan(model.n_data, self.typical_distance), None
        args = self.layout, plan, self.anchor, self.speed, self.scale, self.shared, self.typical_distance
        self.first_part, self.thirds, self.joint = int(self.squares), np.zeros((0, 0)), np.zeros(0)
        if model.blocks is None:
            reach = self.typical_reach if self.crossed else self.typical_distance
            sums, thirds, crossed, self.joint = surveyed(model, self.anchor, self.shared, self.squares)
            parts, drawn, factors = weigh(model, *args, thirds, reach, self.joint)
            self.growth = Shells(*together(plan, [factors]))
            self.parts, self.thirds = np.ascontiguousarray(parts.T), np.ascontiguousarray(thirds.T)
            order, places = sorted_by_units(model, self.layout)
            weights = np.concatenate([row[own] for row, own in zip(drawn, order, strict=True)])
            order = np.concatenate(order)
            del parts, drawn, thirds  # of many rows each is as large as the table
            self.tables = AliasTables(order, places, weights)
        else:
            width = (model.n_functionals,)
            self.growth, sums, names, first, totals = weigh_blocks(model, plan, width, survey_block, *args)
            self.parts = model.blocks.files.mapped(names[1])
            self.tables = self._tables_in_files(model, names[0], first, totals)
        self.pull, self.inner, self.border, self.own, self.bulge = sums
        return crossed

    def _tables_in_files(self, model, name, first, totals):
        """The tables of rows in files are in a file as well."""
        files, n = model.blocks.files, model.n_data
        if not self.slots:
            further = self.parts.reshape(-1) if self.parts.shape[1] == 1 else None
            return tables_of_blocks(model, name, first, totals, further)
        # The rows of a group are in any block: sorted here, in memory.
        (order,), places = sorted_by_units(model, self.layout)
        tables = AliasTables(order, places, files.read(name, 0, n)[order])
        files.remove(name)
        files.create(name, (n, 3))
        files.write(name, 0, tables.table)
        tables.table = files.mapped(name)
        return tables

    # -- compiled: positions, sums ----------------------------------------------------------------------------------

    @compiled
    def at(self, state, j, now):
        """Coordinate j at the time `now`."""
        return self.flow.position(j, state.x[j], state.v[j], now - last_moved(state.moved, j))

    @compiled
    def place(self, state, j, now):
        """Write it into the memory; returns the square of its distance from the anchor."""
        x = self.at(state, j, now)
        state.memory.here[j] = x
        z = (x - self.anchor[j]) / self.scale[j]
        return z * z

    @compiled
    def place_of(self, u, k):
        """The coordinate of group u in group column k."""
        return self.model.first[k] + self.units[u, 2]

    @compiled
    def size(self, k):
        """Groups of group column k."""
        return self.model.first[k + 1] - self.model.first[k]

    @compiled
    def advance_sums(self, memory, now):
        """Bring the sums over the groups to the time `now`."""
        sums = memory.sums
        if self.slots == 0 or now == sums[0, TIME]:
            return
        s = now - sums[0, TIME]
        for k in range(self.slots):
            sums[k, FIRST] += sums[k, VELOCITY] * s
            sums[k, SQUARE] += (2.0 * sums[k, PRODUCT] + sums[k, SPEED] * s) * s
            sums[k, PRODUCT] += sums[k, SPEED] * s
            sums[k, GAUGE] += sums[k, GAUGE_SLOPE] * s
            sums[k, TIME] = now
        for k in range(memory.cross.shape[0]):
            memory.cross[k, 0] += memory.cross[k, 1] * s
            if self.squares:
                memory.cross[k, 2] += (2.0 * memory.cross[k, 3] + memory.cross[k, 4] * s) * s
                memory.cross[k, 3] += memory.cross[k, 4] * s
        joint = memory.joint
        joint[0] += (2.0 * joint[1] + joint[2] * s) * s
        joint[1] += joint[2] * s

    @compiled
    def renew(self, state, now):
        """Compute the largest distances D, and the lines C, where that was long ago."""
        reach = state.memory.reach
        if not now - reach[self.slots] < RENEWAL:
            for k in range(self.slots):
                reach[k] = 0.0
            for e in range(self.column.shape[0]):
                j = self.first_effect + e
                far = abs(self.at(state, j, now) - self.anchor[j]) / self.scale[j]
                k = self.column[e]
                if not (far <= reach[k] or math.isnan(reach[k])):  # a coordinate that is not a number is seen
                    reach[k] = far
            reach[self.slots] = now
        if self.crossed and not now - state.memory.since[0] < RECOUNT:
            self.count_across(state, now)

    @compiled
    def count_across(self, state, now):
        """C of all coefficients, from all pairs, and B."""
        self.advance_sums(state.memory, now)
        state.memory.since[0] = now
        joint = state.memory.joint
        joint[0], joint[1], joint[2] = 0.0, 0.0, 0.0
        for e in range(self.column.shape[0]):
            value, slope = 0.0, 0.0
            for n in range(self.first_pair[e], self.first_pair[e + 1]):
                j, h = self.first_effect + self.pairs[n], self.pair_curvature[n]
                value += h * (self.at(state, j, now) - self.anchor[j])
                slope += h * state.v[j]
            state.memory.across[e, 0], state.memory.across[e, 1] = value, slope
            i = self.first_effect + e
            joint[0] += (self.at(state, i, now) - self.anchor[i]) * value
            joint[1] += state.v[i] * value
            joint[2] += state.v[i] * slope

    @compiled
    def known(self, state, k, now):
        """G of the k-th shared coordinate; the shared ones are in the memory, and the sums are those of `now`."""
        total = self.pull[self.shared[k]] + state.memory.cross[k, 0] + state.memory.cross[k, 2]
        for q in range(self.shared.shape[0]):
            total += self.inner[k, q] * (state.memory.here[self.shared[q]] - self.anchor[self.shared[q]])
        f = self.functional(k)
        return total + self.joint[f] * state.memory.joint[0] if self.crossed and f > 0 else total

    @compiled
    def functional(self, k):
        """That of the k-th shared coordinate: 0 for the linear predictor, or the dispersion's."""
        return max(k + 1 + self.model.n_dispersions - self.shared.shape[0], 0)

    @compiled
    def rise(self, state, k, now):
        """The largest slope of G of the k-th shared coordinate within its horizon."""
        if not self.squares:
            return self.rises[k]
        reach = 0.0
        for q in range(self.slots):
            reach = max(reach, state.memory.reach[q])
        reach += (now - state.memory.reach[self.slots]) + self.prior_horizon
        return self.rises[k] + self.bulge_rises[k] * reach

    @compiled
    def known_own(self, state, u, k, now):
        """G of the coefficient of group u in column k, and the gauge's derivative; positions are in the memory."""
        j, here, first = self.place_of(u, k), state.memory.here, self.units[u, 0]
        e = j - self.first_effect
        total = self.pull[j]
        for q in range(first, self.units[u, 1]):
            i = self.place_of(u, q)
            total += self.own[e, q - first] * (here[i] - self.anchor[i])
        for q in range(self.shared.shape[0]):
            total += self.border[e, q] * (here[self.shared[q]] - self.anchor[self.shared[q]])
        if self.crossed:
            across, sums = state.memory.across, state.memory.sums
            total += across[e, 0] + across[e, 1] * (now - state.memory.since[0])
            gauge = sums[k, GAUGE] + sums[k, GAUGE_SLOPE] * (now - sums[k, TIME])
            total += self.stiffness[k] * self.share[e] * gauge
        return total

    @compiled
    def terms(self, k):
        """The effects on which the prior of column k depends are that of k and that of its head; how many."""
        return 1 if self.head[k] == k else 2

    @compiled
    def leans(self, t):
        """Whether the part t of the effects depends on φ."""
        return self.lean >= 0 and t == 0

    @compiled
    def mixed(self, state, t, q, now):
        """M, and its largest slope."""
        m = self.mixing[t, q]
        if self.leans(t) and q > t:
            w = self.mixing[q, q]
            return m - self.at(state, self.lean, now) * w, self.speed[self.lean] * abs(w)
        return m, 0.0

    @compiled
    def effect(self, state, u, t, now):
        """eₜ of group u, from its positions in the memory."""
        here, total = state.memory.here, 0.0
        for q in range(t, self.end[t]):
            m, _ = self.mixed(state, t, q, now)
            total += m * (here[self.place_of(u, q)] - self.at(state, self.means[q], now))
        return total

    @compiled
    def fastest(self, state, t, one, other, size, now, h):
        """How fast eₜ changes at most until now + h, with `one` as the most by u, and `other` and v's size: or sums."""
        if not self.leans(t):
            return one
        turn = self.speed[self.lean]
        return one + (abs(self.at(state, self.lean, now)) + turn * h) * other + turn * (size + other * h)

    @compiled
    def mean_part(self, state, t, now):
        """What the means subtract from each dₜ: M of their distances from the anchor."""
        total = 0.0
        for q in range(t, self.end[t]):
            total += self.mixing[t, q] * (self.at(state, self.means[q], now) - self.anchor[self.means[q]])
        return total

    @compiled
    def overall(self, state, now):
        """β₀."""
        total = 0.0
        for k in range(self.slots):
            if self.head[k] == k:
                total += self.at(state, self.means[k], now)
        return total

    @compiled
    def prior_of_mean(self, state, k, now):
        """The prior's derivative by the k-th mean, its prior, and how fast that prior's argument moves at most."""
        if self.head[k] == k:
            q = self.means[0]
            return self.model.derivative_of_prior(q, self.overall(state, now)), q, self.pace_of_means
        j = self.means[k]
        return self.model.derivative_of_prior(j, self.at(state, j, now)), j, self.speed[j]

    @compiled
    def excess_of(self, state, k, now):
        """-Σ of the effects of group column k."""
        self.advance_sums(state.memory, now)
        return self.size(k) * self.mean_part(state, k, now) - state.memory.sums[k, FIRST]

    @compiled
    def excess(self, state, t, now):
        """-Σeₜ."""
        total = self.excess_of(state, t, now)
        return total - self.at(state, self.lean, now) * self.excess_of(state, 1, now) if self.leans(t) else total

    @compiled
    def square_of(self, state, k, now):
        """The sum of the squares of the effects of group column k."""
        self.advance_sums(state.memory, now)
        b, sums = self.mean_part(state, k, now), state.memory.sums
        return positive_part(sums[k, SQUARE] - 2.0 * b * sums[k, FIRST] + self.size(k) * b * b)

    @compiled
    def product_sum(self, state, now):
        """Σuv of correlated effects."""
        self.advance_sums(state.memory, now)
        b, c, sums = self.mean_part(state, 0, now), self.mean_part(state, 1, now), state.memory.sums
        return state.memory.joint[0] - b * sums[1, FIRST] - c * sums[0, FIRST] + self.size(0) * b * c

    @compiled
    def square_sum(self, state, t, now):
        """Σeₜ²."""
        total = self.square_of(state, t, now)
        if self.leans(t):
            slope = self.at(state, self.lean, now)
            total += slope * (slope * self.square_of(state, 1, now) - 2.0 * self.product_sum(state, now))
        return positive_part(total)

    @compiled
    def sum_pace(self, state, t, now, h):
        """How fast Σeₜ changes at most until now + h."""
        one = self.size(t) * self.mean_speeds[t] + self.sum_of_speeds[t]
        if not self.leans(t):
            return one
        other = self.size(1) * self.mean_speeds[1] + self.sum_of_speeds[1]
        return self.fastest(state, t, one, other, abs(self.excess_of(state, 1, now)), now, h)

    @compiled
    def root_pace(self, state, t, now, h):
        """How fast the root of Σeₜ² changes at most until now + h."""
        wide = math.sqrt(float(self.size(t)))
        one = self.root_of_speeds[t] + wide * self.mean_speeds[t]
        if not self.leans(t):
            return one
        other = self.root_of_speeds[1] + wide * self.mean_speeds[1]
        return self.fastest(state, t, one, other, math.sqrt(self.square_of(state, 1, now)), now, h)

    @compiled
    def prior_of_wide(self, s, k):
        """The derivative by log τ₀, at s, of what the prior of correlated effects has of it; or by log τₖ, at s."""
        j, partial = self.spread + k, self.model.derivative_of_prior(self.spread + k, s)
        if self.lean < 0:
            return partial
        return partial + (2.0 * self.eta + 1.0) if j == self.spread else partial - 1.0

    @compiled
    def wide(self, state, now):
        """log τ₀, and its derivatives by s and φ."""
        s, t = self.at(state, self.spread, now), self.at(state, self.spread + 1, now)
        slope = self.at(state, self.lean, now)
        share, by_lean = shares_of_both(s, t, slope)
        return log_of_both(s, t, slope), share, by_lean

    @compiled
    def pace_of_wide(self, state, now, h):
        """How fast log τ₀ changes at most until now + h, and how large its derivative by φ is at most."""
        s, t = self.at(state, self.spread, now), self.at(state, self.spread + 1, now)
        fast = self.speed[self.spread] + self.speed[self.spread + 1]
        most = 0.5 * exp(t - s + fast * h)
        return max(self.speed[self.spread], self.speed[self.spread + 1]) + self.speed[self.lean] * most, most

    @compiled
    def shorter(self, state, now, h):
        """At most h, and so short that log τ₀ changes by about ½ at most, as its prior may grow exponentially."""
        if self.lean < 0:
            return h
        pace, _ = self.pace_of_wide(state, now, 0.0)
        return min(h, 0.5 / (pace + self.speed[self.spread] + self.speed[self.spread + 1]))

    @compiled
    def prior_of_spread(self, state, k, now):
        """The derivative of the priors by the k-th log τ, without that of the effects' law."""
        s = self.at(state, self.spread + k, now)
        if self.lean < 0:
            return self.prior_of_wide(s, k)
        wide, share, _ = self.wide(state, now)
        rise = self.prior_of_wide(wide, 0)
        if k == 0:
            return share * rise - 2.0 * self.eta
        return (1.0 - share) * rise + self.prior_of_wide(s, 1)

    @compiled
    def most_of_prior(self, state, k, sign, now, h):
        """At least `sign` times that until now + h."""
        end = self.at(state, self.spread + k, now) + sign * self.speed[self.spread + k] * h
        if self.lean < 0:
            return sign * self.prior_of_wide(end, k)
        wide, _, _ = self.wide(state, now)
        pace, _ = self.pace_of_wide(state, now, h)
        most = positive_part(sign * self.prior_of_wide(wide + sign * pace * h, 0))
        return most + sign * (self.prior_of_wide(end, 1) if k == 1 else -2.0 * self.eta)

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i < self.groups:
            return self.propose_row(state, i, now, rng)
        if i == self.groups:
            return self.propose_prior(state, i, now, rng)
        k = i - self.groups - 1
        if k < self.slots:
            bound, horizon = self.bound_of_mean(state, k, now)
        elif k < 2 * self.slots:
            bound, horizon = self.bound_of_spread(state, k - self.slots, now)
        else:
            bound, horizon = self.bound_of_lean(state, now)
        s = rng.standard_exponential() / bound if bound > 0.0 else math.inf
        return (now + s, bound) if s < horizon else (now + horizon, HORIZON)

    @compiled
    def multiple(self, share, r, reach):
        """max(F r² / r̂², D² / D̂²): by what the weights ω are multiplied."""
        near, far = r / self.typical_distance, reach / self.typical_reach
        return max(share * (near * near), far * far)

    @compiled
    def propose_row(self, state, u, now, rng):
        memory, horizon, square, reach, row = state.memory, self.horizon[u], 0.0, 0.0, state.memory.clocks
        first, last, width = self.units[u, 0], self.units[u, 1], memory.own.shape[1] // 2
        for q in range(self.shared.shape[0]):
            square += self.place(state, self.shared[q], now)
        for k in range(first, last):
            square += self.place(state, self.place_of(u, k), now)
        if self.crossed:
            self.renew(state, now)
            for q in range(self.slots):
                far = memory.reach[q] + (now - memory.reach[self.slots])
                reach = max(reach, far)
                if q < first or q >= last:
                    square += far * far

        row[u, KNOWN], row[u, KNOWN_SLOPE] = 0.0, 0.0
        for k in range(first, last):
            j = self.place_of(u, k)
            sign = 1.0 if state.v[j] >= 0.0 else -1.0
            known, rise = sign * self.known_own(state, u, k, now), self.own_rises[j - self.first_effect]
            for n in range(self.terms(k)):  # mixing * precision * effect, each factor at its worst
                t = k if n == 0 else first
                s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t] * horizon
                low, high = exp(-2.0 * (s + turn)), exp(-2.0 * (s - turn))
                m, change = self.mixed(state, t, k, now)
                e, pace = self.effect(state, u, t, now), self.effect_speeds[self.place_of(u, t) - self.first_effect]
                if self.leans(t):
                    other = self.effect_speeds[self.place_of(u, 1) - self.first_effect]
                    pace = self.fastest(state, t, pace, other, abs(self.effect(state, u, 1, now)), now, horizon)
                    rise += high * change * (abs(e) + pace * horizon)
                e *= sign * m
                known += (high if e > 0.0 else low) * e
                rise += high * abs(m) * pace
            known, rise = self.speed[j] * positive_part(known), self.speed[j] * rise
            memory.own[u, k - first], memory.own[u, width + k - first] = known, rise
            row[u, KNOWN] += known
            row[u, KNOWN_SLOPE] += rise

        r, total = math.sqrt(square), self.tables.totals[u]
        share = self.growth.share(r + self.pace * horizon, u)
        if not share < math.inf:
            return math.nan, HORIZON
        begin = self.multiple(share, r, reach)
        end = self.multiple(share, r + self.pace * horizon, reach + horizon if self.crossed else 0.0)
        row[u, LEVEL], row[u, SLOPE] = total * begin, total * (end - begin) / horizon
        row[u, START] = now
        level, rise = row[u, LEVEL] + row[u, KNOWN], row[u, SLOPE] + row[u, KNOWN_SLOPE]
        s = first_arrival(level, rise, rng.standard_exponential())
        if s >= horizon:
            return now + horizon, HORIZON
        row[u, ROW] = -1.0
        if first == last or rng.random() * (level + rise * s) < row[u, LEVEL] + row[u, SLOPE] * s:
            row[u, ROW] = self.tables.next(u, memory.ahead, self.model, rng)
        return now + s, level + rise * s

    @compiled
    def propose_prior(self, state, i, now, rng):
        memory, level, rise, horizon = state.memory, 0.0, 0.0, self.prior_horizon
        self.advance_sums(memory, now)
        if self.squares:
            self.renew(state, now)
        for k in range(self.shared.shape[0]):
            self.place(state, self.shared[k], now)
        for k in range(self.shared.shape[0]):
            j, q = self.shared[k], self.priors[k]
            x, speed = memory.here[j], self.speed[j]
            memory.known[k] = speed * abs(self.model.derivative_of_prior(q, x) + self.known(state, k, now))
            bound = self.model.curvature_bound_of_prior_until(q, x + speed * horizon)
            memory.slopes[k] = speed * (speed * bound + self.rise(state, k, now))
            level += memory.known[k]
            rise += memory.slopes[k]
        memory.clocks[i, START] = now
        s = first_arrival(level, rise, rng.standard_exponential())
        return (now + s, level + rise * s) if s < horizon else (now + horizon, HORIZON)

    @compiled
    def bound_of_mean(self, state, k, now):
        """A bound on the rate of the k-th mean, and for how long it holds."""
        j, total = self.means[k], 0.0
        speed, sign = self.speed[j], 1.0 if state.v[j] >= 0.0 else -1.0
        partial, q, pace = self.prior_of_mean(state, k, now)
        curvature = self.model.curvature_bound_of_prior(q)
        slope = curvature * pace
        for i in range(self.terms(k)):
            t = k if i == 0 else self.head[k]
            s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t]
            fastest, size = self.sum_pace(state, t, now, 0.0), self.excess(state, t, now)
            m, change = self.mixed(state, t, k, now)
            precision = exp(-2.0 * s)
            slope += abs(m) * precision * (fastest + 2.0 * turn * abs(size)) + change * precision * abs(size)
        h = 1.0 / max(1.0, math.sqrt(speed * slope))
        total = sign * partial + curvature * pace * h
        for i in range(self.terms(k)):
            t = k if i == 0 else self.head[k]
            s, turn = self.at(state, self.spread + t, now), self.speed[self.spread + t]
            fastest, size = self.sum_pace(state, t, now, h), self.excess(state, t, now)
            m, change = self.mixed(state, t, k, now)
            top = sign * m * size + (abs(m) * fastest + change * (abs(size) + fastest * h)) * h
            top *= exp(-2.0 * (s - turn * h)) if top > 0.0 else exp(-2.0 * (s + turn * h))
            total += top
        return speed * positive_part(total), h

    @compiled
    def slope_of_mean(self, state, k, now):
        """The derivative by the k-th mean."""
        partial, _, _ = self.prior_of_mean(state, k, now)
        for n in range(self.terms(k)):
            t = k if n == 0 else self.head[k]
            precision = exp(-2.0 * self.at(state, self.spread + t, now))
            m, _ = self.mixed(state, t, k, now)
            partial += m * precision * self.excess(state, t, now)
        return partial

    @compiled
    def bound_of_spread(self, state, k, now):
        """A bound on the rate of log τₖ, and for how long it holds: the priors' derivatives by log τ increase."""
        j, n = self.spread + k, self.size(k)
        speed, s, root = self.speed[j], self.at(state, j, now), math.sqrt(self.square_sum(state, k, now))
        fastest = self.root_pace(state, k, now, 0.0)
        sign = 1.0 if state.v[j] >= 0.0 else -1.0
        slope = 2.0 * speed * exp(-2.0 * s) * root * (speed * root + fastest)
        h = self.shorter(state, now, 1.0 / max(1.0, math.sqrt(slope)))
        end, fastest = s + sign * speed * h, self.root_pace(state, k, now, h)
        size = positive_part(root - sign * fastest * h)
        top = self.most_of_prior(state, k, sign, now, h) + sign * n - sign * (exp(-2.0 * end) * size * size)
        return speed * positive_part(top), h

    @compiled
    def slope_of_lean(self, state, now):
        """The derivative by φ: of the prior, and -Σ e₀ v / e^2s."""
        product = self.product_sum(state, now) - self.at(state, self.lean, now) * self.square_of(state, 1, now)
        wide, _, by_lean = self.wide(state, now)
        return by_lean * self.prior_of_wide(wide, 0), -exp(-2.0 * self.at(state, self.spread, now)) * product

    @compiled
    def bound_of_lean(self, state, now):
        """A bound on the rate of φ, and for how long it holds."""
        speed, turn, s = self.speed[self.lean], self.speed[self.spread], self.at(state, self.spread, now)
        sign = 1.0 if state.v[self.lean] >= 0.0 else -1.0
        root, other = math.sqrt(self.square_sum(state, 0, now)), math.sqrt(self.square_of(state, 1, now))
        _, product = self.slope_of_lean(state, now)
        pace, far = self.root_pace(state, 0, now, 0.0), self.root_pace(state, 1, now, 0.0)
        slope = exp(-2.0 * s) * (pace * other + root * far) + 2.0 * turn * abs(product)
        h = self.shorter(state, now, 1.0 / max(1.0, math.sqrt(speed * slope)))
        pace = self.root_pace(state, 0, now, h)
        high = exp(-2.0 * (s - turn * h))
        top = sign * product
        top *= exp(2.0 * turn * h) if top > 0.0 else exp(-2.0 * turn * h)
        top += high * (pace * (other + far * h) + root * far) * h
        wide, _, _ = self.wide(state, now)
        fast, most = self.pace_of_wide(state, now, h)
        ends = abs(self.prior_of_wide(wide - fast * h, 0)), abs(self.prior_of_wide(wide + fast * h, 0))
        return speed * positive_part(positive_part(top) + most * max(ends[0], ends[1])), h

    @compiled
    def rate(self, state, i, now, rng):
        if state.bounds[i] == HORIZON:
            return 0.0
        if i < self.groups:
            return self.rate_of_row(state, i, now, rng)
        memory = state.memory
        if i == self.groups:
            s, total = now - memory.clocks[i, START], 0.0
            for k in range(self.shared.shape[0]):
                memory.known[k] += memory.slopes[k] * s
                total += memory.known[k]
            k = draw_component(memory.known, rng.random() * total)
            j = self.shared[k]
            memory.flipping[0] = j
            self.advance_sums(memory, now)
            for q in range(self.shared.shape[0]):
                self.place(state, self.shared[q], now)
            partial = self.model.derivative_of_prior(self.priors[k], memory.here[j]) + self.known(state, k, now)
            return positive_part(state.v[j] * partial) * (total / memory.known[k])
        k = i - self.groups - 1
        if k < self.slots:
            j, partial = self.means[k], self.slope_of_mean(state, k, now)
        elif k < 2 * self.slots:
            k -= self.slots
            j = self.spread + k
            s = self.at(state, j, now)
            square = self.square_sum(state, k, now)
            partial = self.prior_of_spread(state, k, now) + (self.size(k) - exp(-2.0 * s) * square)
        else:
            j = self.lean
            prior, product = self.slope_of_lean(state, now)
            partial = prior + product
        memory.flipping[0] = j
        return positive_part(state.v[j] * partial)

    @compiled
    def rate_of_row(self, state, u, now, rng):
        memory, row, first, last = state.memory, state.memory.clocks, self.units[u, 0], self.units[u, 1]
        s = now - row[u, START]
        data, known = row[u, LEVEL] + row[u, SLOPE] * s, row[u, KNOWN] + row[u, KNOWN_SLOPE] * s
        total = data + known
        for q in range(self.shared.shape[0]):
            self.place(state, self.shared[q], now)
        if row[u, ROW] < 0.0:
            k, bound = first, known
            if last - first > 1:
                rest, width = rng.random() * known, memory.own.shape[1] // 2
                for q in range(first, last):
                    k, bound = q, memory.own[u, q - first] + memory.own[u, width + q - first] * s
                    rest -= bound
                    if rest < 0.0:
                        break
            for q in range(first, last):
                self.place(state, self.place_of(u, q), now)
            j = self.place_of(u, k)
            memory.flipping[0] = j
            partial = self.known_own(state, u, k, now)
            for n in range(self.terms(k)):
                t = k if n == 0 else first
                precision = exp(-2.0 * self.at(state, self.spread + t, now))
                m, _ = self.mixed(state, t, k, now)
                partial += precision * m * self.effect(state, u, t, now)
            return positive_part(state.v[j] * partial) * (total / bound)
        i = int(row[u, ROW])
        state.counts[DATA] += 1
        for q in range(self.slots):
            self.place(state, self.model.level[i, q], now)
        count = self.parts_of(u)
        j, part = self.row_part(u, i, 0)
        if count > 1:
            rest, k = rng.random() * self.row_weight(u, i) - part, 1
            while rest >= 0.0 and k < count:
                j, part = self.row_part(u, i, k)
                rest -= part
                k += 1
        memory.flipping[0] = j
        if part == 0.0:
            return 0.0
        # The row is drawn in proportion to its weight, then the coordinate to `part`: both together to `part`.
        share = data * part / self.tables.totals[u]
        return positive_part(state.v[j] * self.rest_of(memory.here, i, j, memory.evaluation, memory.loss)) * (
            total / share
        )

    @compiled
    def parts_of(self, u):
        """Coordinates whose remainders the clock of group u proposes: its own; in the first grouping the shared too."""
        own = self.units[u, 1] - self.units[u, 0]
        return own + self.shared.shape[0] if self.units[u, 0] == 0 else own

    @compiled
    def row_part(self, u, i, k):
        """The k-th of these coordinates, and σⱼ ωᵢⱼ of row i."""
        own, fixed = self.units[u, 1] - self.units[u, 0], self.shared.shape[0] - self.model.n_dispersions
        if k < own:
            q = self.units[u, 0] + k
            j = self.place_of(u, q)
            return j, self.speed[j] * abs(self.model.value[i, q]) * self.parts[i, 0]
        j = self.shared[k - own]
        if k - own < fixed:
            return j, self.speed[j] * abs(self.model.design.feature(i, j)) * self.parts[i, self.first_part]
        return j, self.speed[j] * self.parts[i, self.first_part + 1 + k - own - fixed]

    @compiled
    def row_weight(self, u, i):
        """Σⱼ σⱼ ωᵢⱼ of them."""
        total = 0.0
        for k in range(self.parts_of(u)):
            total += self.row_part(u, i, k)[1]
        return total

    @compiled
    def rest_of(self, x, i, j, evaluation, rho):
        """Tᵢⱼ."""
        model, there, own = self.model, self.anchor, self.dim - self.model.n_dispersions
        model.expand_margin(there, x, i, model.margin(x, i), model.margin(there, i), evaluation, rho)
        f = j - own + 1 if j >= own else 0  # by the dispersion j, or by the linear predictor for any other j
        value, effect = rho[f], model.n_fixed <= j < own
        if self.squares and not effect:
            for k in range(self.slots):
                d = (x[model.level[i, k]] - there[model.level[i, k]]) * model.value[i, k]
                value -= self.thirds[i, f] * (d * d)
                if self.joint[f] != 0.0:
                    for q in range(k):
                        if self.head[q] != self.head[k]:
                            e = (x[model.level[i, q]] - there[model.level[i, q]]) * model.value[i, q]
                            value -= 2.0 * self.thirds[i, f] * (d * e)
        if effect:
            return value * model.value[i, self.column[j - self.first_effect]]
        return value * model.design.feature(i, j) if f == 0 else value

    @compiled
    def jump(self, state, clock, now, rng):
        j = state.memory.flipping[0]
        e = j - self.first_effect
        if 0 <= e < self.border.shape[0]:
            self.advance_sums(state.memory, now)
            self.turn(state, e, now)
        state.v[j] = -state.v[j]
        return 0

    @compiled
    def turn(self, state, e, now):
        """What the flip of a coefficient changes in the sums, which are those of `now`, and in the lines."""
        memory, sums, j, k = state.memory, state.memory.sums, self.first_effect + e, self.column[e]
        group, turned = j - self.model.first[k], -2.0 * state.v[j]
        if self.lean >= 0:
            self.turn_product(state, group, k, turned, now)
        for n in range(self.terms(k)):
            t, d, v = k if n == 0 else self.head[k], 0.0, 0.0
            for q in range(t, self.end[t]):
                i = self.model.first[q] + group
                d += self.mixing[t, q] * (self.at(state, i, now) - self.anchor[self.means[q]])
                v += self.mixing[t, q] * state.v[i]
            change = self.mixing[t, k] * turned
            sums[t, PRODUCT] += change * d
            sums[t, VELOCITY] += change
            sums[t, SPEED] += change * (2.0 * v + change)
        for q in range(self.shared.shape[0]):
            memory.cross[q, 1] += turned * self.border[e, q]
        if self.squares:
            away = self.at(state, j, now) - self.anchor[j]
            for q in range(self.shared.shape[0]):
                memory.cross[q, 3] += turned * self.bulge[e, q] * away
        if self.crossed:
            sums[k, GAUGE_SLOPE] += turned * self.share[e]
            across, s = memory.across, now - memory.since[0]
            memory.joint[1] += turned * (across[e, 0] + across[e, 1] * s)
            memory.joint[2] += 2.0 * turned * across[e, 1]
            for n in range(self.first_pair[e], self.first_pair[e + 1]):
                rise = turned * self.pair_curvature[n]
                across[self.pairs[n], 0] -= rise * s
                across[self.pairs[n], 1] += rise

    @compiled
    def turn_product(self, state, group, k, turned, now):
        """What the flip of a coefficient of a group changes in Σd₀d₁."""
        i, j, means, joint = self.first_effect + group, self.model.first[1] + group, self.means, state.memory.joint
        away = self.at(state, j, now) - self.anchor[means[1]]
        d = self.mixing[0, 0] * (self.at(state, i, now) - self.anchor[means[0]]) + self.mixing[0, 1] * away
        v = self.mixing[0, 0] * state.v[i] + self.mixing[0, 1] * state.v[j]
        one, other = self.mixing[0, k] * turned, self.mixing[1, 1] * turned if k == 1 else 0.0
        joint[1] += 0.5 * (d * other + one * self.mixing[1, 1] * away)
        joint[2] += (v + one) * (self.mixing[1, 1] * state.v[j] + other) - v * self.mixing[1, 1] * state.v[j]

    @compiled(allocates=True, inline=False)
    def true_rates(self, x, v, scratch, out):
        """The rate of each coordinate, from all rows."""
        model, m, n = self.model, self.shared.shape[0], self.model.n_functionals
        evaluation = Scratch(
            np.empty((n, 1)), np.empty((n, 1)), np.empty((model.n_columns, 1)), np.empty((model.registers, 1))
        )
        rho = np.empty(n)
        for j in range(x.shape[0]):
            scratch[j] = self.pull[j]
        for k in range(m):
            for q in range(m):
                scratch[self.shared[k]] += self.inner[k, q] * (x[self.shared[q]] - self.anchor[self.shared[q]])
        self.add_of_groups(x, scratch)
        model.add_prior_gradient(x, scratch)
        for j in range(x.shape[0]):
            out[j] = positive_part(v[j] * scratch[j])
        for i in range(model.n_data):
            for k in range(m):
                out[self.shared[k]] += positive_part(
                    v[self.shared[k]] * self.rest_of(x, i, self.shared[k], evaluation, rho)
                )
            for k in range(self.slots):
                j = model.level[i, k]
                out[j] += positive_part(v[j] * self.rest_of(x, i, j, evaluation, rho))

    @compiled
    def add_of_groups(self, x, out):
        """What the expansion has of the coefficients of groups."""
        for e in range(self.column.shape[0]):
            j, k = self.first_effect + e, self.column[e]
            first, d = self.head[k], x[j] - self.anchor[j]
            for q in range(first, self.end[first]):
                i = self.model.first[q] + j - self.model.first[k]
                out[j] += self.own[e, q - first] * (x[i] - self.anchor[i])
            across = 0.0
            for n in range(self.first_pair[e], self.first_pair[e + 1]):
                i = self.first_effect + self.pairs[n]
                across += self.pair_curvature[n] * (x[i] - self.anchor[i])
            out[j] += across
            for q in range(self.shared.shape[0]):
                out[j] += self.border[e, q] * (x[self.shared[q]] - self.anchor[self.shared[q]])
                out[self.shared[q]] += self.border[e, q] * d
                if self.squares:
                    out[self.shared[q]] += self.bulge[e, q] * (d * d)
                    if self.crossed and self.functional(q) > 0:
                        out[self.shared[q]] += self.joint[self.functional(q)] * (d * across)

    @compiled
    def touches(self, state, i):
        return state.memory.flipping[0], state.memory.flipping[0] + 1

    @compiled
    def coordinate(self, k):
        return k

    @compiled
    def channel(self, state, i):
        return state.memory.flipping[0]

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def expected_data(self) -> float:
        """Rows looked at in a unit of time, about: where the distances have their typical values."""
        return float(self.tables.totals.sum())

    def expected_data_far_out(self) -> float:
        """The same over the distances that a normal posterior has, with how bounds grow with them."""
        across = self.crossed
        z = np.random.default_rng(0).standard_normal((DISTANCES, len(self.shared) + (1 if across else self.slots)))
        scale = np.append(self.speed[self.shared] / self.scale[self.shared], np.ones(z.shape[1] - len(self.shared)))
        r = np.sqrt(np.square(z) @ scale**2 + (self.slots - 1) * across * self.typical_reach**2)
        factors = np.column_stack([self.growth.factors, np.full(len(self.growth.factors), math.inf)])
        shell = np.searchsorted(self.growth.radii, r)
        return float(self.tables.totals @ (factors[:, shell] @ (r / self.typical_distance) ** 2)) / DISTANCES

    #: What a run says that was far from its anchor.
    anchor_advice = "give RegressionZigZag(model, anchor=run.mean(), metric=pdmp.Metric(covariance=run.var()))"

    def anchor_distances(self, mean: np.ndarray, var: np.ndarray) -> tuple[float, float]:
        """As `pdmp.gradients.ControlVariate.anchor_distances`."""
        return float(np.sum(((mean - self.anchor) / self.scale) ** 2)), float(np.sum(var / self.scale**2))

    def among_moving(self) -> Self:
        return self

    def channels(self) -> list[str]:
        return [f"coordinate {j}" for j in range(self.dim)]

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim) * self.speed

    def describe_bound(self) -> str:
        return f"the bound on single rows of {self.model.likelihood.name}"

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        m, E = len(self.shared), len(self.column)
        return Memory(
            here=self.anchor.copy(),
            clocks=np.zeros((self.clocks, 6)),
            known=np.zeros(m),
            slopes=np.zeros(m),
            flipping=np.zeros(1, np.int64),
            sums=np.zeros((self.slots, 8)),
            own=np.zeros((self.groups, 2 * self.own.shape[1])),
            cross=np.zeros((m, 5)),
            ahead=self.tables.queue(),
            reach=np.full(self.slots + 1, -math.inf),
            across=np.zeros((E if self.crossed else 0, 2)),
            since=np.full(1, -math.inf),
            joint=np.zeros(3),
            loss=np.zeros(self.model.n_functionals),
            evaluation=self.model.scratch(),
        )

    def prepare(self, state) -> None:
        if not self.slots:
            return
        effects = slice(self.first_effect, self.first_effect + len(self.column))
        x, v, sums = state.x[effects], state.v[effects], state.memory.sums
        for k in range(self.slots):
            own = [self.model.of_column(q) for q in range(k, self.end[k])]
            mixing = self.mixing[k, k : self.end[k]]
            d = mixing @ np.stack([x[s] - self.anchor[self.means[k + n]] for n, s in enumerate(own)])
            w, share = mixing @ np.stack([v[s] for s in own]), self.share[own[0]]
            sums[k] = 0.0, d.sum(), w.sum(), d @ d, d @ w, w @ w, share @ x[own[0]], share @ v[own[0]]
            if self.lean >= 0 and k == 0:
                before = d, w
            elif self.lean >= 0:
                state.memory.joint[:] = before[0] @ d, 0.5 * (before[0] @ w + before[1] @ d), before[1] @ w
        d, cross = x - self.anchor[effects], state.memory.cross
        cross[:, 0], cross[:, 1] = d @ self.border, v @ self.border
        if self.squares:
            cross[:, 2:] = np.stack([d * d @ self.bulge, d * v @ self.bulge, v * v @ self.bulge], axis=1)
