r"""The Boomerang sampler of a regression with dispersions: exact, at one row a proposal.

The target is exp(-E) times the density of a reference N(x̂, Σ). With the Hessian Σᵢ Hᵢ(x̂) of the data at the anchor x̂,
and D that of the prior there, ∇E(x) = Σᵢ Rᵢ(x) + K(x): of the data only the remainders are looked at row by row,

    Rᵢ(x) = ∇Uᵢ(x) - ∇Uᵢ(x̂) - Hᵢ(x̂) (x - x̂),
    K(x) = ∇U(x̂) + A (x - x̂) + [∇prior(x) - ∇prior(x̂) - D (x - x̂)],    A = Σᵢ Hᵢ(x̂) + D - Σ⁻¹,

=====  =================================================================================================
flow   ellipses: dx = v dt, dv = -(x - x̂) dt, which leave N(x̂, Σ) x N(0, Σ) invariant
clock  one for the rows, one for K, and one for refreshments, Poisson of constant rate
rate   of the rows: Σᵢ (v·Rᵢ)₊, one row a proposal; of K: (v·K)₊
jump   bounce: v ← v - 2 (v·g) Σg / (g·Σg), g the Rᵢ of the row, or K; refreshment: v ~ N(0, Σ)
=====  =================================================================================================

A dense reference has Σ⁻¹ = Σᵢ Hᵢ(x̂) + D, so that A = 0. As K is 0 at the mode, and of independent priors, all rates
vanish as the posterior becomes normal: with N rows their sum is of the order 1 / √N a turn, and what remains are
refreshments. Under a diagonal one a coordinate may stand frozen at 0, with velocity 0, and leaves the others on their
ellipses: `Sticky` takes that. Bounces and refreshments are then of the coordinates that move.

Each row is a factor of its own, whose rate has the difference v·Rᵢ from that after its bounce; their sum balances the
flow. A row sees x by its functionals η alone, such as linear predictor and dispersions: η - η̂ = Bᵢᵀ(x - x̂), and
Rᵢ = Bᵢ ρᵢ. In the norm |y|² = (x - x̂)ᵀ Σ⁻¹ (x - x̂), with the bounds of `pdmp.processes.row_bounds`,

    |v·Rᵢ| <= Λᵢ |w| φ(|y|),    φ(r) = F r² / 2,    |w|² = vᵀ Σ⁻¹ v,

F being the factor of the first shell of a radius of at least r. Between events |y|² = f + u, where f of the frozen
coordinates is constant and u of the others a wave, M + B cos(2t + θ), and |w|² = 2M - u, so that

    |w| φ(|y|) <= φ(r) / r² max (f + u) √(2M - u),    r² = f + M + B,

the maximum over |u - M| <= B, at (4M - f) / 3 or an end. This holds until the next event: the clock of the rows has a
constant bound and no horizon. It draws a row in proportion to Λᵢ by an alias table.

K. With y and v those of the moving coordinates at the last event, and c = ∇U(x̂) + A y of the frozen ones, v·K after the
time t is, but for the bracket,

    (v·c) cos t - (y·c) sin t + (vᵀAy) cos 2t + ½ (vᵀAv - yᵀAy) sin 2t,

which is bounded by the sum of both amplitudes, and evaluated without a product with A. The bracket is 0 for normal
priors; of others it is bounded coordinate by coordinate by ½ eⱼ² times a bound on |priorⱼ'' - Dⱼ| within eⱼ of x̂ⱼ,
eⱼ² = (xⱼ - x̂ⱼ)² + vⱼ² being kept as well.

No bound holds for every x, but these hold on the whole path: no rate is ever above its bound.

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML: sections 2.1 (process), 2.2 (sub-sampling by
the Hessian at the anchor). Bierkens, Grazzi, van der Meulen & Schauer (2023), Sticky PDMP samplers for sparse and local
inference problems, Stat. Comput. 33. Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113,
section 3.3 (a clock for each factor). Sen, Sachs, Lu & Dunson (2020), Biometrika 107 (importance).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.flow import Elliptic
from pdmp.gradients.alias import AliasTables
from pdmp.gradients.provider import clear, dot
from pdmp.metric import WORDS, Metric, check_metric
from pdmp.models.priors import NORMAL
from pdmp.models.regressions.blocks import Chunks
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN, DATA, HORIZON, Defaults, Process, positions, velocities
from pdmp.processes.boomerang import check_refresh_rate
from pdmp.processes.gaussian_reference import DenseReference, DiagonalReference, reflect_off
from pdmp.processes.remainders import RowReport, Shells
from pdmp.processes.row_bounds import BY_LEVEL, Plan, in_pieces, in_shells, row_bounds
from pdmp.processes.row_expansion import survey_rows, tables_of_blocks, weigh_blocks
from pdmp.thinning.constant import constant_arrival

ROW, KNOWN, REFRESHMENT = range(3)  #: clocks
BOUNCE, REFRESH = range(2)  #: kinds of event


class Memory(NamedTuple):
    """Beside the path."""

    here: Vector  #: position at the proposal
    velocity: Vector  #: velocity there
    gradient: Vector  #: of the factor that bounces
    scratch: Vector
    since: Number  #: the event from which on bounds, waves and line hold; NaN before they are computed
    row: Count  #: of the proposal
    ahead: tuple  #: rows drawn ahead
    loss: np.ndarray  #: (m,) ρᵢ there
    evaluation: tuple  #: what the model needs for it
    bounds: np.ndarray  #: (2,) ellipses: of the clocks `ROW` and `KNOWN`
    waves: np.ndarray  #: (4,) ellipses: of v·K since then, factors of cos t, sin t, cos 2t and sin 2t
    line: np.ndarray  #: (5,) lines: what is known of the one on which the path is, see `pdmp.processes.regression_bps`
    places: np.ndarray  #: (d,) lines: the columns in A or the support come first
    count: np.ndarray  #: (2,) lines: how many they are; the level of φ that counts those that move


class RowFactors(Process):
    """Base of the processes that bounce off single rows: what is known at the anchor, Λᵢ, and the remainders.

    A subclass has the clocks `ROW`, `KNOWN` and `REFRESHMENT`, the `matrix` and `curvature` of K, and which coordinates
    are `frozen(state, j)`; ``refresh(state, rng)`` draws the velocities of the others.

    The model is a SumOfTerms, or a MixedRegression without groups, of any likelihood. At the anchor, (dim,), the
    gradient of all rows is known; by default it is the mode. The rate of the refreshments is per unit of time; 0 warns.
    A `ValueError` if the mode is not found, the Hessian at the anchor is not positive definite, or bounds are not
    finite there.
    """

    model: object
    reference: Compiled
    anchor: np.ndarray
    pull: np.ndarray  #: (d,) Σᵢ ∇Uᵢ(x̂)
    at_anchor: np.ndarray  #: (d,) ∇U(x̂)
    curvature: np.ndarray  #: (d,) D, or what K has of it
    matrix: np.ndarray  #: (d, d) of the distance from x̂ in K
    hessian: np.ndarray  #: (d, d) Σᵢ Hᵢ(x̂)
    tables: object
    weights: np.ndarray  #: (N,) Λᵢ
    total: float  #: Σ Λᵢ
    growth: object  #: φ
    refresh_rate: float

    events = ("bounce", "refresh")
    report = RowReport()
    _required = ()
    _clocks = 3  #: without refreshments 2

    def __init__(self, model, anchor, refresh_rate, metric, flow):
        groups = bool(getattr(model, "n_groups", 0))
        if groups or not model.has("remainder_along"):
            raise TypeError(
                f"{type(self).__name__} takes a SumOfTerms, or a MixedRegression without groups, got a "
                f"{type(model).__name__}{' with groups' * groups}."
            )
        derived = model.has("data_sums")
        self.refresh_rate = check_refresh_rate(refresh_rate)
        if anchor is None:
            anchor = model.mode() if derived else getattr(laplace(model), "mean", None)
            if anchor is None:
                raise ValueError("`anchor` must be given: the posterior's mode was not found.")
        self.model = model
        self.anchor = model.check(anchor, "anchor")
        rows = None if derived else model.blocks or Chunks(model)
        self.pull, self.hessian = model.data_sums(self.anchor) if derived else rows.total(_sums, self.anchor)
        slopes, bends, _ = model.prior_derivatives(np.arange(model.dim), self.anchor)
        self.curvature, self.at_anchor = np.maximum(bends, 0.0), self.pull + slopes
        precision = self.hessian + np.diag(self.curvature)
        if not (np.all(np.isfinite(precision)) and np.all(np.isfinite(self.at_anchor))):
            raise ValueError("`anchor`: the Hessian of the data is not finite there.")
        self.reference = _reference(precision, metric, type(self).__name__)
        root = self.reference.sd if isinstance(self.reference, DiagonalReference) else self.reference.root
        if model.blocks is None:
            self.weights, *shells = row_bounds(model, self.anchor, root)
            self.growth, self.total = Shells(*shells), float(np.sum(self.weights))
        else:
            plan = Plan(model.n_data, math.sqrt(model.dim))
            self.growth, _, names, *where = weigh_blocks(model, plan, (), _norms_of_block, plan, self.anchor, root)
            self.weights = model.blocks.files.mapped(names[1])
            self.tables = tables_of_blocks(model, names[0], *where, self.weights)
            self.total = float(self.tables.totals[0])
        if not math.isfinite(self.total):
            raise ValueError("`anchor`: the bounds of single rows are not finite there.")
        if model.blocks is None:
            self.tables = AliasTables(np.arange(model.n_data), [0, model.n_data], self.weights)
        dependents = [[ROW, KNOWN], [ROW, KNOWN], [ROW, KNOWN, REFRESHMENT]][: self._clocks]
        super().__init__(model.dim, self._clocks, dependents, flow=None if flow is None else flow(self.anchor))

    # -- compiled: single rows ---------------------------------------------------------------------------------------

    @compiled
    def rate_of_row(self, state, now):
        """The rate of the row that was drawn, by its chance, and ρᵢ in the memory."""
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        velocities(self.flow, state, now, memory.velocity)
        state.counts[DATA] += 1
        row = memory.row[0]
        along = self.model.remainder_along(
            self.anchor, memory.here, memory.velocity, row, memory.evaluation, memory.loss
        )
        # The row is drawn in proportion to its weight.
        return positive_part(along) * (self.total / self.weights[row])

    @compiled
    def gradient_of_row(self, state):
        """Rᵢ of the row that was evaluated."""
        memory = state.memory
        clear(memory.gradient)
        self.model.add_remainder(memory.row[0], memory.loss, memory.gradient)

    @compiled
    def known(self, x, out):
        """out = K(x)."""
        for j in range(x.shape[0]):
            out[j] = self.pull[j] - self.curvature[j] * (x[j] - self.anchor[j])
            out[j] += self.model.derivative_of_prior(j, x[j])
        for k in range(self.matrix.shape[0]):
            y = x[k] - self.anchor[k]
            for j in range(x.shape[0]):
                out[j] += self.matrix[k, j] * y

    @compiled
    def jump(self, state, i, now, rng):
        gradient = state.memory.gradient
        if i == REFRESHMENT:
            self.refresh(state, rng)
            return REFRESH
        if i == ROW:
            self.gradient_of_row(state)
        else:
            self.known(state.x, gradient)
        for j in range(gradient.shape[0]):
            if self.frozen(state, j):
                gradient[j] = 0.0
        return reflect_off(self.reference, state.v, gradient, state.memory.scratch)

    @compiled
    def true_rates(self, x, v, scratch, out):
        """The rates of the clocks, from all rows."""
        rows = self.model.remainder_rates(self.anchor, x, v)
        self.known(x, scratch)
        out[ROW], out[KNOWN], out[REFRESHMENT] = rows, positive_part(dot(v, scratch)), self.refresh_rate

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def expected_data(self) -> float:
        """Rows looked at in a unit of time, about: where position and velocity have their mean squares."""
        return self.expected_data_of(self.dim)

    def expected_data_of(self, moving: int) -> float:
        """The same where only so many coordinates move, and all others are at the anchor."""
        r = math.sqrt(moving)
        return float(self.total * r * self.growth.at(r, 0))

    def channels(self) -> list[str]:
        return ["rows", "prior", "refresh"]

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = np.zeros(self.dim)
        self.reference.draw(rng, v)
        return v

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        return zeros(
            Memory,
            self.dim,
            since=np.full(1, math.nan),
            ahead=self.tables.queue(),
            loss=np.zeros(self.model.n_functionals),
            evaluation=self.model.scratch(),
            bounds=np.zeros(2),
            waves=np.zeros(4),
            line=np.zeros(5),
            places=np.zeros(self.dim, np.int64),
            count=np.zeros(2, np.int64),
        )

    def describe_bound(self) -> str:
        law = getattr(self.model, "likelihood", None)
        return f"the bound on single rows of {type(self.model).__name__ if law is None else law.name}"


class RegressionBoomerang(RowFactors):
    """Boomerang sampler of a regression, sub-sampled exactly.

    Parameters
    ----------
    model, anchor, refresh_rate
        As of `RowFactors`; the anchor is the mean of the reference, and an undisturbed turn takes 2π.
    metric : "auto", "dense", "diagonal", None, float, array_like of shape (dim,), or Metric, default "auto"
        The precision of the reference: "auto" and "dense" are the Hessian at the anchor, "diagonal" the variances in
        its inverse, None the identity; standard deviations are ``pdmp.Metric(scales=...)``. Under a diagonal one
        coordinates may be frozen at 0, by `Sticky`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import Normal
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import MixedRegression
    >>> from pdmp.processes.regression_boomerang import RegressionBoomerang
    >>> model = MixedRegression(np.ones((40, 1)), np.arange(40) % 4, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)])
    >>> run = pdmp.sample(RegressionBoomerang(model), events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    def __init__(
        self,
        model: MixedRegression,
        anchor: ArrayLike | None = None,
        refresh_rate: float = 1.0,
        *,
        metric: ArrayLike | Metric | str | None = "auto",
    ) -> None:
        super().__init__(model, anchor, refresh_rate, metric, Elliptic)
        self.matrix = np.zeros((0, 0))  # A
        if isinstance(self.reference, DiagonalReference):
            self.matrix = self.hessian + np.diag(self.curvature - self.reference.sd**-2.0)

    # -- compiled: bounds ---------------------------------------------------------------------------------------------

    @compiled
    def frozen(self, state, j):
        return state.x[j] == 0.0 and state.v[j] == 0.0

    @compiled
    def bound_rows(self, state):
        """Σᵢ Λᵢ |w| φ(|y|) at its largest until the next event; infinite where φ is not computed."""
        memory, rest, y, across = state.memory, 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            memory.here[j] = state.x[j] - self.anchor[j]
        self.reference.flatten(memory.here, memory.scratch)
        for j in range(state.x.shape[0]):
            if self.frozen(state, j):
                rest += memory.here[j] * memory.scratch[j]
            else:
                y += memory.here[j] * memory.scratch[j]
                across += state.v[j] * memory.scratch[j]
        self.reference.flatten(state.v, memory.scratch)
        w = dot(state.v, memory.scratch)
        middle, swing = 0.5 * (y + w), math.hypot(0.5 * (y - w), across)
        farthest = rest + middle + swing
        if self.total == 0.0 or farthest <= 0.0:
            return 0.0
        r = math.sqrt(farthest)
        phi = self.growth.at(r, 0)
        if not phi < math.inf:
            return math.inf
        u = min(max((4.0 * middle - rest) / 3.0, middle - swing), middle + swing)
        return self.total * phi / farthest * (rest + u) * math.sqrt(positive_part(2.0 * middle - u))

    @compiled
    def bound_known(self, state):
        """A bound on (v·K)₊ until the next event, and its waves in the memory."""
        memory, waves, rest = state.memory, state.memory.waves, 0.0
        for j in range(state.x.shape[0]):
            y = state.x[j] - self.anchor[j]
            memory.here[j], memory.scratch[j] = (0.0, y) if self.frozen(state, j) else (y, 0.0)
        waves[0], waves[1], waves[2], waves[3] = 0.0, 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            if self.frozen(state, j):
                continue
            y, v = memory.here[j], state.v[j]
            constant, by_y, by_v = self.at_anchor[j], 0.0, 0.0
            for k in range(self.matrix.shape[0]):
                constant += self.matrix[j, k] * memory.scratch[k]
                by_y += self.matrix[j, k] * memory.here[k]
                by_v += self.matrix[j, k] * state.v[k]
            waves[0] += v * constant
            waves[1] -= y * constant
            waves[2] += v * by_y
            waves[3] += 0.5 * (v * by_v - y * by_y)
            if self.model.kinds[j] > NORMAL:
                square = y * y + v * v
                far = self.anchor[j] + math.sqrt(square)
                largest = self.model.curvature_bound_of_prior_until(j, far)
                rest += 0.5 * square * (largest + self.curvature[j])
        return math.hypot(waves[0], waves[1]) + math.hypot(waves[2], waves[3]) + rest

    # -- compiled: the four words -----------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == REFRESHMENT:
            return now + constant_arrival(self.refresh_rate, rng), CERTAIN
        memory = state.memory
        if memory.since[0] != state.moved[0]:
            memory.bounds[ROW], memory.bounds[KNOWN] = self.bound_rows(state), self.bound_known(state)
            memory.since[0] = state.moved[0]
        bound = memory.bounds[i]
        if not bound < math.inf:
            return math.nan, HORIZON
        if bound == 0.0:
            return math.inf, CERTAIN
        if i == ROW:
            memory.row[0] = self.tables.next(0, memory.ahead, self.model, rng)
        return now + constant_arrival(bound, rng), bound

    @compiled
    def rate(self, state, i, now, rng):
        return self.rate_of_known(state, now) if i == KNOWN else self.rate_of_row(state, now)

    @compiled
    def rate_of_known(self, state, now):
        """(v·K)₊ from its waves, and of priors that are not normal."""
        waves, s = state.memory.waves, now - state.moved[0]
        total = waves[0] * math.cos(s) + waves[1] * math.sin(s)
        total += waves[2] * math.cos(2.0 * s) + waves[3] * math.sin(2.0 * s)
        for j in range(state.x.shape[0]):
            if self.model.kinds[j] > NORMAL and not self.frozen(state, j):
                x, there = self.flow.position(j, state.x[j], state.v[j], s), self.anchor[j]
                part = self.model.derivative_of_prior(j, x)
                part -= self.model.derivative_of_prior(j, there) + self.curvature[j] * (x - there)
                total += self.flow.velocity(j, state.x[j], state.v[j], s) * part
        return positive_part(total)

    @compiled
    def refresh(self, state, rng):
        self.reference.draw(rng, state.memory.scratch)
        for j in range(state.v.shape[0]):
            if not self.frozen(state, j):
                state.v[j] = state.memory.scratch[j]

    # -- Python -----------------------------------------------------------------------------------------------------

    def among_moving(self) -> Process:
        return self if isinstance(self.reference, DiagonalReference) else Defaults.among_moving(self)


def _reference(precision, metric, name):
    """N(x̂, Σ): of the inverse Hessian, of its diagonal, or of a given diagonal metric."""
    given = check_metric(metric, len(precision), name, WORDS, diagonal=True)
    if not isinstance(given, str):
        return DiagonalReference(np.ones(len(precision)) if given is None else given.root**2)
    try:
        np.linalg.cholesky(precision)
        covariance = np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        raise ValueError("`anchor`: the Hessian of data and prior is not positive definite there.") from None
    if given == "diagonal":
        return DiagonalReference(np.diag(covariance).copy())
    return DenseReference(0.5 * (covariance + covariance.T))


def _sums(model, files, first, anchor):
    """Σ ∇Uᵢ (d,) and Σ Hᵢ (d, d)."""
    return survey_rows(model, anchor, np.arange(model.dim))[0][:2]


def _norms_of_block(block, plan, anchor, root):
    """What `weigh_blocks` asks."""
    pieces = (block.row_block(0, *where, anchor, root) for where in in_pieces(block.n_data))
    bounds = in_shells(np.concatenate([plan.norms(block.enclosures[0], rows) for rows in pieces], axis=2))
    return bounds.weights[0], bounds.weights[0], bounds.factors, ()


def shares(model, anchor, sd, weights, growth, support, levels):
    """How much of S and Λᵢ is left where only some coordinates move, the reference being N(x̂, diag(sd²)).

    `weights` are Λᵢ of the first shell, `growth` is φ, `support` (d,) says of which coordinates the share is that of
    all together, and `levels` are shares ρ, the first 1. Returned are the largest share of Sᵢ, among the linear
    predictors' part of all rows, that each column has (d,), 0 of a dispersion; the same of the support's columns
    together; and (levels, shells) the largest Λᵢ where the linear predictor's part of S is ρ times as large, over the
    weights.
    """
    blocks = model.blocks or Chunks(model)
    args = Plan(model.n_data, math.sqrt(model.dim)), anchor, sd, weights, growth.factors, support, levels
    found = zip(*blocks.map(_shares_of_block, *args), strict=True)
    share, together, factors = (np.max(part, axis=0) for part in found)
    return share, float(together), factors


def _shares_of_block(block, files, first, plan, anchor, sd, weights, factors, support, levels):
    p, share = block.n_fixed, np.zeros(len(sd))
    squares = np.square(block.design.data[:, :p] * sd[:p])
    total = squares.sum(axis=1)
    squares = squares[total > 0.0] / total[total > 0.0, None]
    share[:p] = squares.max(axis=0, initial=0.0)
    together = squares[:, support[:p]].sum(axis=1).max(initial=0.0)
    if not block.n_dispersions:  # T is one number
        return share, together, levels[:, None] ** 1.5 * factors
    found, shells = np.zeros((len(levels), factors.shape[1])), factors.shape[1]
    for begin, stop in in_pieces(block.n_data):
        norms = plan.norms(block.enclosures[0], block.row_block(0, begin, stop, anchor, sd), BY_LEVEL, levels)[:shells]
        whole = weights[first + begin : first + stop]
        found = np.maximum(found, np.max(norms[..., whole > 0.0] / whole[whole > 0.0], axis=2, initial=0.0).T)
    found = np.minimum(np.maximum.accumulate(found, axis=1), factors)
    found[0] = factors[0]
    return share, together, found
