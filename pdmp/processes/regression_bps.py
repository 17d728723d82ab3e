r"""The Bouncy Particle Sampler of a regression with dispersions: exact, at one row a proposal.

As in `pdmp.processes.regression_boomerang` the gradient is expanded at the anchor x̂, ∇U = Σᵢ Rᵢ + K; the remainders
Rᵢ = Bᵢ ρᵢ are looked at row by row, and known is K(x) = Σᵢ ∇Uᵢ(x̂) + H (x - x̂) + ∇prior(x), with H = Σᵢ Hᵢ(x̂).

=====  =================================================================================================
flow   straight lines, x + v s, with v ~ N(0, S), S = diag(s²): as the posterior's standard deviations are
clock  one for the rows, one for K, and one for refreshments, Poisson of constant rate
rate   of the rows: Σᵢ (v·Rᵢ)₊, one row a proposal; of K: (v·K)₊
jump   bounce: v ← v - 2 (v·g) Sg / (g·Sg), g the Rᵢ of the row, or K; refreshment: v ~ N(0, S)
=====  =================================================================================================

A coordinate of velocity 0 stays where it is, keeps its velocity, and leaves those of the others their law: `Sticky`
freezes coordinates so.

Rows. In the norm of S⁻¹, |v·Rᵢ| <= Λᵢ |w| φ(|y(t)|), with |w| constant between events and |y(t)|² a known parabola. As
|y(t)|² is convex, it is below its chord over a horizon, with the factor F of φ(r) = F r² / 2 at the farther end.
The clock draws a row in proportion to Λᵢ by an alias table.

K. Between events v·K is a line in time, inverted exactly, where all priors are normal; of the others vⱼ priorⱼ'(xⱼ) is
bounded by its value now and a bound on |priorⱼ''| over a horizon.

No bound holds for every x, but these hold on the whole path: no rate is ever above its bound.

Few coordinates that move. Where all but those in A stand still at the anchor, only A counts in y, w and Sᵢ. Of Sᵢ, the
linear predictor's part is at most a share ρ of that with all columns: ρ = r + Σ rⱼ, j in A but not in the support of
x̂, where it is not 0; rⱼ is the largest share that column j has in any row, r that of the support's columns together.
With that part ρ times as large, the bounds of all rows are at most F(ρ) Λᵢ, and rows are drawn in the same proportion.
F is kept by shell for ρ = 1, 2^-½, 2^-1, …, and ρ is rounded up to one of these. Of a row
only the columns in A and the support are read.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, sections 2.2 (refreshment), 2.3 (linear
rates, thinning), 3.3 (a clock for each factor). Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle
Sampler, ICML, section 4 (preconditioning). Sen, Sachs, Lu & Dunson (2020), Biometrika 107 (importance).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.metric import WORDS, Metric
from pdmp.models.priors import NORMAL
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.arguments import one_of
from pdmp.native.classes import compiled, positive_part
from pdmp.process import CERTAIN, DATA, HORIZON
from pdmp.processes.regression_boomerang import REFRESHMENT, ROW, RowFactors, shares
from pdmp.processes.remainders import Shells
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.constant import constant_arrival

LONGEST = 1.0  #: horizon of a clock, in which the path moves as far as the posterior is wide
SLACK = 1e-9  #: share of the known rate that its bound is above, as both are computed with rounding
#: `Memory.line`, at the last event: |y|², y·w and |w|² in the norm of S⁻¹; v·K but for priors that are not normal, and
#: its slope in time.
SQUARE, PRODUCT, SPEED, LEVEL, SLOPE = range(5)
LEVELS = 2.0 ** (-0.5 * np.arange(41))  #: shares ρ of which F is kept


class RegressionBPS(RowFactors):
    """Bouncy Particle Sampler of a regression, sub-sampled exactly.

    Parameters
    ----------
    model, anchor, refresh_rate
        As of `RowFactors`; in a unit of time a coordinate moves by about s.
    metric : "auto", "diagonal", None, float, array_like of shape (dim,), or Metric, default "auto"
        s, the standard deviations of the velocities: those of the normal approximation at the anchor when omitted.
    few_move : bool, default False
        Whether most coordinates are expected to stand still at 0, where the anchor is 0 too: of a sticky process with
        many of them. Bounds then count those that move; the set-up has one more pass over the data, a slow one.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import Normal
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import MixedRegression
    >>> from pdmp.processes.regression_bps import RegressionBPS
    >>> model = MixedRegression(np.ones((40, 1)), np.arange(40) % 4, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)])
    >>> run = pdmp.sample(RegressionBPS(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    normal: bool  #: whether all priors are, or flat
    share: np.ndarray  #: (d,) rⱼ, 0 in the support; empty if not asked for
    share_of_support: float  #: r
    places: int  #: how many columns there are, where those that move are counted
    levels: np.ndarray  #: `LEVELS`
    support: np.ndarray  #: columns whose coefficient in x̂ is not 0

    def __init__(
        self,
        model: MixedRegression,
        anchor: ArrayLike | None = None,
        refresh_rate: float = 1.0,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
        few_move: bool = False,
    ) -> None:
        if isinstance(metric, str):
            one_of("metric", metric, WORDS[:2])
            metric = "diagonal"
        super().__init__(model, anchor, refresh_rate, metric, None)
        self.matrix, self.curvature = self.hessian, np.zeros(model.dim)
        self.normal = bool(np.all(model.kinds <= NORMAL))
        if few_move and not hasattr(model, "design"):  # whose columns are those that move
            raise TypeError(f"`few_move` is for a MixedRegression, got a {type(model).__name__}.")
        inside, self.levels = self.anchor != 0.0, LEVELS
        self.places = model.n_fixed if few_move else 0
        self.support = np.flatnonzero(inside[: self.places])
        self.share, self.share_of_support = np.zeros(0), 1.0
        if few_move:
            found = shares(model, self.anchor, self.reference.sd, self.weights, self.growth, inside, LEVELS)
            self.share, self.share_of_support = found[:2]
            self.growth = Shells(self.growth.radii, found[2])
            self.share[inside] = 0.0

    # -- compiled: the line -----------------------------------------------------------------------------------------

    @compiled
    def see_line(self, state):
        """What is known of the path until the next event."""
        memory, line = state.memory, state.memory.line
        for k in range(5):
            line[k] = 0.0
        for j in range(state.x.shape[0]):
            sd = self.reference.sd[j]
            memory.here[j] = state.x[j] - self.anchor[j]
            p, q = memory.here[j] / sd, state.v[j] / sd
            line[SQUARE] += p * p
            line[PRODUCT] += p * q
            line[SPEED] += q * q
        for j in range(state.x.shape[0]):
            if state.v[j] != 0.0:
                level, slope = self.line_of(state, j, 0.0)
                line[LEVEL] += level
                line[SLOPE] += slope
        memory.since[0] = state.moved[0]
        if self.share.shape[0] > 0:
            self.see_places(state)

    @compiled
    def line_of(self, state, j, s):
        """vⱼ Kⱼ after the time s but for a prior that is not normal, and its slope."""
        x, v = state.x[j], state.v[j]
        level, slope = self.pull[j], 0.0
        if self.model.kinds[j] <= NORMAL:
            level += self.model.derivative_of_prior(j, x)
            slope += v * self.model.second_derivative_of_prior(j, x)
        for k in range(state.x.shape[0]):
            level += self.hessian[j, k] * (state.x[k] - self.anchor[k])
            slope += self.hessian[j, k] * state.v[k]
        return v * (level + slope * s), v * slope

    @compiled
    def see_places(self, state):
        """Which columns are in A or the support, and with that the level of φ."""
        memory, count, total, k = state.memory, 0, self.share_of_support, 0
        for j in range(self.places):
            moves = state.v[j] != 0.0 or state.x[j] != self.anchor[j]
            if moves or self.anchor[j] != 0.0:
                memory.places[count] = j
                count += 1
                total += self.share[j]
        memory.count[0] = count
        while k + 1 < self.levels.shape[0] and self.levels[k + 1] >= total:
            k += 1
        memory.count[1] = k

    @compiled
    def distance(self, line, s):
        """|y| after the time s."""
        return math.sqrt(positive_part(line[SQUARE] + (2.0 * line[PRODUCT] + line[SPEED] * s) * s))

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == REFRESHMENT:
            return now + constant_arrival(self.refresh_rate, rng), CERTAIN
        if state.memory.since[0] != state.moved[0]:
            self.see_line(state)
        line, since = state.memory.line, now - state.moved[0]
        if line[SPEED] == 0.0:
            return math.inf, CERTAIN
        return (
            self.propose_row(state, line, since, now, rng)
            if i == ROW
            else self.propose_known(state, line, since, now, rng)
        )

    @compiled
    def propose_row(self, state, line, since, now, rng):
        if self.total == 0.0:
            return math.inf, CERTAIN
        speed, level = math.sqrt(line[SPEED]), state.memory.count[1]
        begin, end = self.distance(line, since), self.distance(line, since + LONGEST)
        share = self.growth.share(max(begin, end), level)
        if not share < math.inf:
            return math.nan, HORIZON
        total = 0.5 * self.total * share * speed
        level, slope = total * (begin * begin), total * (end * end - begin * begin) / LONGEST
        s = first_arrival(level, slope, rng.standard_exponential())
        if not s < LONGEST:
            return now + LONGEST, HORIZON
        state.memory.row[0] = self.tables.next(0, state.memory.ahead, self.model, rng)
        return now + s, level + slope * s

    @compiled
    def line_of_prior(self, state, j, since):
        """Of a prior of coordinate j that is not normal: vⱼ ∂ⱼU, and the most by which it rises in a unit of time."""
        v = state.v[j]
        x = state.x[j] + v * since
        far = max(x, x + v * LONGEST)
        rise = v * v * self.model.curvature_bound_of_prior_until(j, far)
        return v * self.model.derivative_of_prior(j, x), rise

    @compiled
    def propose_known(self, state, line, since, now, rng):
        level, slope = line[LEVEL] + line[SLOPE] * since, line[SLOPE]
        if self.normal:
            return now + first_arrival(level, slope, rng.standard_exponential()), CERTAIN
        size = abs(line[LEVEL]) + abs(line[SLOPE]) * since
        for j in range(state.x.shape[0]):
            kind, v = self.model.kinds[j], state.v[j]
            if kind > NORMAL and v != 0.0:
                part, rise = self.line_of_prior(state, j, since)
                level += part
                slope += rise
                size += abs(part)
        level += SLACK * size
        s = first_arrival(level, slope, rng.standard_exponential())
        return (now + s, level + slope * s) if s < LONGEST else (now + LONGEST, HORIZON)

    @compiled
    def rate(self, state, i, now, rng):
        if state.bounds[i] == HORIZON:
            return 0.0
        if i == ROW:
            return self.rate_of_row(state, now) if self.share.shape[0] == 0 else self.rate_of_places(state, now)
        line, s = state.memory.line, now - state.moved[0]
        total = line[LEVEL] + line[SLOPE] * s
        for j in range(state.x.shape[0]):
            kind, v = self.model.kinds[j], state.v[j]
            if kind > NORMAL and v != 0.0:
                total += v * self.model.derivative_of_prior(j, state.x[j] + v * s)
        return positive_part(total)

    @compiled
    def rate_of_places(self, state, now):
        """As `rate_of_row`, from the columns in A and the support, and the dispersions; others are not written."""
        memory, model, s = state.memory, self.model, now - state.moved[0]
        here, v, places, count, row = memory.here, state.v, memory.places, memory.count[0], memory.row[0]
        for k in range(count):
            here[places[k]] = state.x[places[k]] + v[places[k]] * s
        for j in range(self.places, here.shape[0]):
            here[j] = state.x[j] + v[j] * s
        state.counts[DATA] += 1
        along = model.remainder_along_places(
            self.anchor, here, v, row, places, count, self.support, memory.evaluation, memory.loss
        )
        return positive_part(along) * (self.total / self.weights[row])

    @compiled
    def frozen(self, state, j):
        return state.v[j] == 0.0

    @compiled
    def refresh(self, state, rng):
        for j in range(state.v.shape[0]):
            if state.v[j] != 0.0:
                state.v[j] = self.reference.sd[j] * rng.standard_normal()

    # -- Python -----------------------------------------------------------------------------------------------------

    def among_moving(self) -> Self:
        return self
