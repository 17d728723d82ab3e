r"""The Boomerang sampler of a regression with dispersions: exact, at one row a proposal.

With the reference N(x̂, Σ), Σ⁻¹ = Σᵢ Hᵢ(x̂) + D the Hessian at the anchor x̂ of data and prior, the target is exp(-E)
times its density, and ∇E(x) = Σᵢ Rᵢ(x) + K(x): of the data only the remainders are left,

    Rᵢ(x) = ∇Uᵢ(x) - ∇Uᵢ(x̂) - Hᵢ(x̂) (x - x̂),    K(x) = Σᵢ ∇Uᵢ(x̂) + ∇prior(x) - D (x - x̂),

=====  =================================================================================================
flow   ellipses: dx = v dt, dv = -(x - x̂) dt, which leave N(x̂, Σ) x N(0, Σ) invariant
clock  one for the rows, one for K, and one for refreshments, Poisson of constant rate
rate   of the rows: Σᵢ (v·Rᵢ)₊, one row a proposal; of K: (v·K)₊
jump   bounce: v ← v - 2 (v·g) Σg / (g·Σg), g the Rᵢ of the row, or K; refreshment: v ~ N(0, Σ)
=====  =================================================================================================

Each row is a factor of its own, whose rate has the difference v·Rᵢ from that after its bounce; their sum balances the
flow. As K is 0 at the mode, and of independent priors, all rates vanish as the posterior becomes normal: with N rows
their sum is of the order 1 / √N a turn, and what remains are refreshments.

A row sees x by η = (z, a, c) alone, its linear predictor and the dispersions: η - η̂ = Bᵢᵀ(x - x̂), and Rᵢ = Bᵢ ρᵢ. In
the norm |y|² = (x - x̂)ᵀ Σ⁻¹ (x - x̂), with S = Bᵢᵀ Σ Bᵢ, third derivatives of the loss bounded by T exp(g·|η - η̂|),
and |S| the matrix of absolute values,

    |ρᵢₖ| <= mₖ φ(|y|),    mₖ² = tr(Tₖ|S|Tₖ|S|),    φ(r) = (e^{γr} - 1 - γr) / γ²,    γ² = gᵀ|S|g,
    |v·Rᵢ| <= Λᵢ |w| φ(|y|),    Λᵢ² = mᵀ|S|m,    |w|² = vᵀ Σ⁻¹ v,

as quadratic forms of |S| bound the squares of what Bᵢ makes of unit vectors, and Frobenius norms the spectral ones.
Between events |y|² = A + B cos(2t + θ) and |w|² = A - B cos(2t + θ), so that with u = |y|²

    |w| φ(|y|) <= φ(r) / r² max u √(2A - u),    r² = A + B,    the maximum over |u - A| <= B, at 4A/3 or the end.

This holds until the next event: the clock of the rows has a constant bound and no horizon. It draws a row in proportion
to Λᵢ by an alias table. That of K is bounded by the amplitude of v·K(x̂), and coordinate by coordinate by ½ eⱼ² times a
bound on |priorⱼ'' - Dⱼ| within eⱼ of x̂ⱼ, eⱼ² = (xⱼ - x̂ⱼ)² + vⱼ² being kept as well, of priors that are not normal.

No bound holds for every x, but these hold on the whole path: no rate is ever above its bound.

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML: sections 2.1 (process), 2.2 (sub-sampling by
the Hessian at the anchor). Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 3.3
(a clock for each factor). Sen, Sachs, Lu & Dunson (2020), Biometrika 107 (importance).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.flow import Elliptic
from pdmp.gradients.alias import AliasBlocks, AliasTables, table_of_block
from pdmp.models.priors import NORMAL, derivative, second_derivative, second_derivative_bound_until
from pdmp.models.regressions.blocks import Chunks
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.arguments import per_coordinate
from pdmp.native.classes import Compiled, compiled, entry, inlined, positive
from pdmp.process import CERTAIN, DATA, HORIZON, Process, positions, velocities
from pdmp.processes.boomerang import check_refresh_rate
from pdmp.processes.gaussian_reference import DenseReference, DiagonalReference
from pdmp.processes.regression_zigzag import OVERFLOW, remainder, survey_rows
from pdmp.thinning.constant import constant_arrival

ROW, KNOWN, REFRESHMENT = range(3)  #: clocks
BOUNCE, REFRESH = range(2)  #: kinds of event


class Memory(NamedTuple):
    """Beside the path."""

    here: np.ndarray  #: (d,) position at the proposal
    velocity: np.ndarray  #: (d,) velocity there
    gradient: np.ndarray  #: (d,) of the factor that bounces
    scratch: np.ndarray  #: (d,)
    bounds: np.ndarray  #: (2,) of the clocks `ROW` and `KNOWN`
    since: np.ndarray  #: (1,) the event from which on they hold; NaN before they are computed
    row: np.ndarray  #: (1,) of the proposal
    ahead: tuple  #: rows drawn ahead
    loss: np.ndarray  #: (3,) ρᵢ there


class RowFactors(Process):
    """Base of the processes that bounce off single rows: what is known at the anchor, Λᵢ, and the remainders.

    A subclass has the clocks `ROW`, `KNOWN` and `REFRESHMENT`, and `known(x, out)`, K(x).
    """

    model: object
    reference: Compiled
    anchor: np.ndarray
    pull: np.ndarray  #: (d,) Σᵢ ∇Uᵢ(x̂)
    at_anchor: np.ndarray  #: (d,) ∇U(x̂)
    curvature: np.ndarray  #: (d,) D
    hessian: np.ndarray  #: (d, d) Σᵢ Hᵢ(x̂)
    tables: object
    weights: np.ndarray  #: (N,) Λᵢ
    total: float  #: Σ Λᵢ
    growth: float  #: the largest γ
    refresh_rate: float

    events = ("bounce", "refresh")
    _required = ()

    def __init__(self, model, anchor, refresh_rate, scale, flow):
        if not isinstance(model, MixedRegression) or model.n_groups:
            raise TypeError(
                f"{type(self).__name__} takes a MixedRegression without groups, got a {type(model).__name__}"
                f"{' with groups' * isinstance(model, MixedRegression)}."
            )
        self.refresh_rate = check_refresh_rate(refresh_rate)
        if anchor is None:
            found = laplace(model)
            if found is None:
                raise ValueError("`anchor` must be given: the posterior's mode was not found.")
            anchor = found.mean
        self.model = model
        self.anchor = model.check(anchor, "anchor")
        self.pull, self.hessian = _hessian(model, self.anchor)
        self.curvature, self.at_anchor = np.zeros(model.dim), self.pull.copy()
        for j in range(model.dim):
            prior = model.kinds[j], *model.numbers[j], self.anchor[j]
            self.curvature[j] = max(second_derivative(*prior), 0.0)
            self.at_anchor[j] += derivative(*prior)
        precision = self.hessian + np.diag(self.curvature)
        if not (np.all(np.isfinite(precision)) and np.all(np.isfinite(self.at_anchor))):
            raise ValueError("`anchor`: the Hessian of the data is not finite there.")
        self.reference = self._reference(precision, scale)
        if model.blocks is None:
            self.weights, self.growth = weighed(model, self.anchor, self.reference.root)
        else:
            self._weigh_blocks(model)
        self.total = float(np.sum(self.weights)) if model.blocks is None else float(self.tables.totals[0])
        if not (math.isfinite(self.total) and math.isfinite(self.growth)):
            raise ValueError("`anchor`: the bounds of single rows are not finite there.")
        if model.blocks is None:
            self.tables = AliasTables(np.arange(model.n_data), [0, model.n_data], self.weights)
        dependents = [[ROW, KNOWN], [ROW, KNOWN], [ROW, KNOWN, REFRESHMENT]]
        super().__init__(model.dim, 3, dependents, flow=None if flow is None else flow(self.anchor))

    def _reference(self, precision, scale):
        """N(x̂, diag(scale²)), by default of the posterior's standard deviations."""
        if scale is None:
            return DiagonalReference(np.diag(inverse_of(precision)).copy())
        return DiagonalReference(per_coordinate("scale", scale, len(precision)) ** 2)

    def _weigh_blocks(self, model):
        """The weights of rows in files, block by block; they and their tables are in files as well."""
        blocks, files, n = model.blocks, model.coded.files, model.n_data
        table, weights = files.unused("alias"), files.unused("weights")
        files.create(table, (n, 2))
        files.create(weights, (n,))
        self.growth, first, totals = 0.0, [0], []
        for growth, rows, total in blocks.map(_weigh_block, self.anchor, self.reference.root, table, weights):
            self.growth = max(self.growth, growth)
            first.append(first[-1] + rows)
            totals.append(total)
        finite = np.isfinite(totals).all()
        self.weights, totals = files.mapped(weights), np.array(totals) if finite else np.ones(len(totals))
        self.tables = AliasBlocks(files.mapped(table), first, totals, model.design.asks, self.weights)
        self.tables.totals[:] *= 1.0 if finite else math.nan

    # -- compiled: single rows ---------------------------------------------------------------------------------------

    @compiled
    def rate_of_row(self, state, now):
        """The rate of the row that was drawn, by its chance, and ρᵢ in the memory."""
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        velocities(self.flow, state, now, memory.velocity)
        state.counts[DATA] += 1
        row = memory.row[0]
        # The row is drawn in proportion to its weight.
        return positive(self.along(memory.here, memory.velocity, row, memory.loss)) * (self.total / self.weights[row])

    @compiled
    def along(self, x, v, i, loss):
        """v·Rᵢ(x), and in `loss` (3,) ρᵢ."""
        model = self.model
        z, z0, slope = model.margin(x, i), model.margin(self.anchor, i), model.design.product(v, i)
        return self.along_margin(x, v, i, z, z0, slope, loss)

    @compiled
    def along_margin(self, x, v, i, z, z0, slope, loss):
        """The same, the linear predictor being z, z0 at the anchor, and `slope` its change in a unit of time."""
        model, law, y, there = self.model, self.model.likelihood, self.model.target[i], self.anchor
        a, c = model.first_dispersion(x), model.second_dispersion(x)
        a0, c0 = model.first_dispersion(there), model.second_dispersion(there)
        zz, za, zc, aa, ac, cc = law.curvatures(z0, y, a0, c0)
        dz, da, dc = z - z0, a - a0, c - c0
        weight = model.weight[i] if model.weight.shape[0] > 0 else 1.0
        loss[0] = law.by_margin(z, y, a, c) - law.by_margin(z0, y, a0, c0) - (zz * dz + za * da + zc * dc)
        total = slope * loss[0]
        if model.n_dispersions > 0:
            loss[1] = law.by_first(z, y, a, c) - law.by_first(z0, y, a0, c0) - (za * dz + aa * da + ac * dc)
            total += model.first_dispersion(v) * loss[1]
        if model.n_dispersions > 1:
            loss[2] = law.by_second(z, y, a, c) - law.by_second(z0, y, a0, c0) - (zc * dz + ac * da + cc * dc)
            total += model.second_dispersion(v) * loss[2]
        for k in range(3):
            loss[k] *= weight
        return weight * total

    @compiled
    def add_row(self, i, loss, out):
        """out += Rᵢ = Bᵢ ρᵢ."""
        self.model.design.add_row(i, loss[0], out)
        for k in range(self.model.n_dispersions):
            out[self.dim - self.model.n_dispersions + k] += loss[1 + k]

    @compiled
    def gradient_of_row(self, state):
        """Rᵢ of the row that was evaluated."""
        memory = state.memory
        for j in range(state.v.shape[0]):
            memory.gradient[j] = 0.0
        self.add_row(memory.row[0], memory.loss, memory.gradient)

    @compiled
    def reflect(self, state):
        """Off the gradient in the memory, in the metric of the reference."""
        memory = state.memory
        self.reference.raised(memory.gradient, memory.scratch)
        dot, square = 0.0, 0.0
        for j in range(state.v.shape[0]):
            dot += state.v[j] * memory.gradient[j]
            square += memory.scratch[j] * memory.gradient[j]
        if math.isnan(dot + square):
            return -1
        if square > 0.0:
            for j in range(state.v.shape[0]):
                state.v[j] -= 2.0 * dot / square * memory.scratch[j]
        return BOUNCE

    @compiled
    def true_rates(self, x, v, scratch, out):
        """The rates of the clocks, from all rows."""
        rows, known = 0.0, 0.0
        for i in range(self.model.n_data):
            rows += positive(self.along(x, v, i, out))
        self.known(x, scratch)
        for j in range(x.shape[0]):
            known += v[j] * scratch[j]
        out[ROW], out[KNOWN], out[REFRESHMENT] = rows, positive(known), self.refresh_rate

    # -- Python -----------------------------------------------------------------------------------------------------

    @property
    def expected_data(self) -> float:
        """Rows looked at in a unit of time, about: where position and velocity have their mean squares."""
        return self.expected_data_of(self.dim)

    def expected_data_of(self, moving: int) -> float:
        """The same where only so many coordinates move, and all others are at the anchor."""
        r = math.sqrt(moving)
        return float(self.total * r * remainder(self.growth, r))

    def channels(self) -> list[str]:
        return ["rows", "prior", "refresh"]

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        v = np.zeros(self.dim)
        self.reference.draw(rng, v)
        return v

    def describe_bound(self) -> str:
        return f"the bound on single rows of {type(self.model.likelihood).__name__}"


class RegressionBoomerang(RowFactors):
    """Boomerang sampler of a regression, sub-sampled exactly.

    Parameters
    ----------
    model : MixedRegression without groups
        What to sample; of any likelihood of `pdmp.models.regressions.likelihoods`.
    anchor : array_like, shape (dim,), optional
        Mean of the reference, and where the gradient of all rows is known; that of
        `pdmp.models.regressions.laplace.laplace`, the mode, when omitted.
    refresh_rate : float, default 1.0
        Rate of the refreshments per unit of time; an undisturbed turn takes 2π. 0 warns.

    Raises
    ------
    TypeError
        For another model.
    ValueError
        If the mode is not found, the Hessian at the anchor is not positive definite, or bounds are not finite there.

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

    def __init__(self, model: MixedRegression, anchor: ArrayLike | None = None, refresh_rate: float = 1.0) -> None:
        super().__init__(model, anchor, refresh_rate, None, Elliptic)

    def _reference(self, precision, scale):
        covariance = inverse_of(precision)
        return DenseReference(0.5 * (covariance + covariance.T))

    # -- compiled: bounds ---------------------------------------------------------------------------------------------

    @compiled
    def bound_rows(self, state):
        """Σᵢ Λᵢ |w| φ(|y|) at its largest until the next event; infinite where φ is not computed."""
        memory, y, w, across = state.memory, 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            memory.here[j] = state.x[j] - self.anchor[j]
        self.reference.flatten(memory.here, memory.scratch)
        for j in range(state.x.shape[0]):
            y += memory.here[j] * memory.scratch[j]
            across += state.v[j] * memory.scratch[j]
        self.reference.flatten(state.v, memory.scratch)
        for j in range(state.x.shape[0]):
            w += state.v[j] * memory.scratch[j]
        middle, swing = 0.5 * (y + w), math.hypot(0.5 * (y - w), across)
        farthest = middle + swing
        if self.total == 0.0 or farthest <= 0.0:
            return 0.0
        r = math.sqrt(farthest)
        if not self.growth * r <= OVERFLOW:
            return math.inf
        u = min(4.0 / 3.0 * middle, farthest)
        return self.total * remainder(self.growth, r) / farthest * u * math.sqrt(positive(2.0 * middle - u))

    @compiled
    def bound_known(self, state):
        """A bound on (v·K)₊ until the next event."""
        sine, cosine, rest, n = 0.0, 0.0, 0.0, self.model.numbers
        for j in range(state.x.shape[0]):
            y, v, kind = state.x[j] - self.anchor[j], state.v[j], self.model.kinds[j]
            cosine += v * self.at_anchor[j]
            sine += y * self.at_anchor[j]
            if kind > NORMAL:
                square = y * y + v * v
                far = self.anchor[j] + math.sqrt(square)
                largest = second_derivative_bound_until(kind, n[j, 0], n[j, 1], n[j, 2], far)
                rest += 0.5 * square * (largest + self.curvature[j])
        return math.hypot(sine, cosine) + rest

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
        """(v·K)₊, and K in the memory."""
        memory, total = state.memory, 0.0
        positions(self.flow, state, now, memory.here)
        velocities(self.flow, state, now, memory.velocity)
        self.known(memory.here, memory.gradient)
        for j in range(state.x.shape[0]):
            total += memory.velocity[j] * memory.gradient[j]
        return positive(total)

    @compiled
    def jump(self, state, i, now, rng):
        if i == REFRESHMENT:
            self.refresh(state, rng)
            return REFRESH
        self.evaluate_factor(state, i)
        return self.reflect(state)

    @compiled
    def refresh(self, state, rng):
        self.reference.draw(rng, state.v)

    @compiled
    def evaluate_factor(self, state, i):
        """The gradient of the row, or of K as it was evaluated."""
        if i == ROW:
            self.gradient_of_row(state)

    @compiled
    def known(self, x, out):
        """out = K(x)."""
        n = self.model.numbers
        for j in range(x.shape[0]):
            out[j] = self.pull[j] - self.curvature[j] * (x[j] - self.anchor[j])
            out[j] += derivative(self.model.kinds[j], n[j, 0], n[j, 1], n[j, 2], x[j])

    # -- Python -----------------------------------------------------------------------------------------------------

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> Memory:
        d = self.dim
        return Memory(
            here=np.zeros(d),
            velocity=np.zeros(d),
            gradient=np.zeros(d),
            scratch=np.zeros(d),
            bounds=np.zeros(2),
            since=np.full(1, math.nan),
            row=np.zeros(1, np.int64),
            ahead=self.tables.queue(),
            loss=np.zeros(3),
        )


def inverse_of(precision):
    """The inverse of the Hessian at the anchor."""
    try:
        np.linalg.cholesky(precision)
        return np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        raise ValueError("`anchor`: the Hessian of data and prior is not positive definite there.") from None


def _hessian(model, anchor):
    """Σ ∇Uᵢ (d,) and Σ Hᵢ (d, d) of all rows at the anchor."""
    if model.blocks is not None:
        return model.blocks.total(_sums, anchor)
    if len(model.row_chunks()) > 1:
        return Chunks(model).total(_sums, anchor)
    return _sums(model, None, 0, anchor)


def _sums(model, files, first, anchor):
    ones = np.ones(model.dim)
    return survey_rows(model, anchor, ones, ones, np.arange(model.dim))[:2]


def weighed(model, anchor, root):
    """Λᵢ of all rows (N,), and the largest γ, for the reference of covariance LLᵀ, `root` L."""
    if len(model.row_chunks()) == 1:
        return weigh_rows(model, anchor, root)
    weights, growth = zip(*Chunks(model).map(_weigh_chunk, anchor, root), strict=True)
    return np.concatenate(weights), float(np.max(growth))


def _weigh_chunk(block, files, first, *args):
    return weigh_rows(block, *args)


def weigh_rows(model, anchor, root):
    """`weighed` of some rows, in one thread."""
    weights, rows, third, square = (
        np.zeros(model.n_data),
        np.zeros((3, len(root))),
        np.zeros((3, 3, 3)),
        np.zeros((3, 3)),
    )
    diagonal = not np.any(root[~np.eye(len(root), dtype=bool)])
    vectors = np.zeros((2, 3))
    largest = _weigh(model.native, anchor, root, diagonal, weights, rows, third, square, square.copy(), vectors)
    return weights, float(largest)


def _weigh_block(block, files, first, anchor, root, table, name):
    weights, growth = weigh_rows(block, anchor, root)
    total = float(weights.sum())
    files.write(name, first, weights)
    if math.isfinite(total):
        aliases, total = table_of_block(weights)
        files.write(table, first, aliases)
    return growth, block.n_data, total


@entry
def _weigh(model, anchor, root, diagonal, weights, rows, third, cross, product, vectors):
    """Λᵢ, and the largest γ, which is returned; scratch from `rows` on."""
    d, n, largest = root.shape[0], 1 + model.n_dispersions, 0.0
    norms, rates = vectors[0], vectors[1]  # mₖ and g
    a, c = model.first_dispersion(anchor), model.second_dispersion(anchor)
    rates[0], rates[1], rates[2] = model.likelihood.growth(a, c)
    for k in range(1, n):
        for j in range(d):
            rows[k, j] = root[d - n + k, j]
    for i in range(model.n_data):
        for j in range(d):  # Lᵀ Bᵢ
            rows[0, j] = 0.0
        for q in range(d - n + 1):
            feature = model.design.feature(i, q)
            for j in range(q if diagonal else 0, q + 1):
                rows[0, j] += root[q, j] * feature
        for k in range(n):
            for m in range(n):
                total = 0.0
                for j in range(d):
                    total += rows[k, j] * rows[m, j]
                cross[k, m] = abs(total)
        bounds = model.likelihood.third_bounds(model.margin(anchor, i), model.target[i], a, c)
        weight = model.weight[i] if model.weight.shape[0] > 0 else 1.0
        _fill(third, bounds, weight)
        weights[i], growth = _row_bound(third, cross, product, norms, rates, n)
        largest = max(largest, growth)
    return largest


@inlined
def _row_bound(third, cross, product, norms, rates, n):
    """Λᵢ and γᵢ, `cross` being |S|."""
    square, growth = 0.0, 0.0
    for k in range(n):
        for m in range(n):
            growth += rates[k] * cross[k, m] * rates[m]
        norms[k] = _norm(third[k], cross, product, n)
    for k in range(n):
        for m in range(n):
            square += norms[k] * cross[k, m] * norms[m]
    return math.sqrt(square), math.sqrt(growth)


def shares(model, anchor, sd, support, levels):
    """How much of Λᵢ and γᵢ is left where only some coordinates move, the reference being N(x̂, diag(sd²)).

    Parameters
    ----------
    model, anchor, sd
        The regression, x̂ and the standard deviations.
    support : ndarray of bool, shape (d,)
        Coordinates of which the share is that of all together.
    levels : ndarray
        Shares ρ, the first 1.

    Returns
    -------
    share : ndarray, shape (d,)
        The largest share of Sᵢ, among the linear predictors' part of all rows, that column j has; 0 of a dispersion.
    together : float
        The same of the support's columns together.
    factors, growths : ndarray
        The largest Λᵢ(ρSᵢ) / Λᵢ(Sᵢ) and γᵢ(ρSᵢ) at each level.
    """
    blocks = Chunks(model) if model.blocks is None else model.blocks
    found = zip(*blocks.map(_shares_of_block, anchor, sd, support, levels), strict=True)
    share, together, factors, growths = (np.max(part, axis=0) for part in found)
    return share, float(together), factors, growths


def _shares_of_block(block, files, first, anchor, sd, support, levels):
    share, found = np.zeros(len(sd)), np.zeros((2, len(levels)))
    scratch = np.zeros((3, 3, 3)), np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(len(sd))
    together = _largest_shares(block.native, anchor, sd, support, levels, share, *found, *scratch)
    return share, together, *found


@entry
def _largest_shares(
    model, anchor, sd, support, levels, share, factors, growths, third, cross, product, vectors, squares
):
    """`shares` of some rows, of which that of the support is returned; scratch from `third` on."""
    d, n, together = sd.shape[0], 1 + model.n_dispersions, 0.0
    norms, rates = vectors[0], vectors[1]
    a, c = model.first_dispersion(anchor), model.second_dispersion(anchor)
    rates[0], rates[1], rates[2] = model.likelihood.growth(a, c)
    for k in range(1, n):
        cross[k, k] = sd[d - n + k] ** 2
    for i in range(model.n_data):
        total, inside = 0.0, 0.0
        for q in range(d - n + 1):
            squares[q] = (sd[q] * model.design.feature(i, q)) ** 2
            total += squares[q]
            inside += squares[q] if support[q] else 0.0
        if total > 0.0:
            together = max(together, inside / total)
            for q in range(d - n + 1):
                share[q] = max(share[q], squares[q] / total)
        # The row's weight is a factor of Λᵢ at every level.
        _fill(third, model.likelihood.third_bounds(model.margin(anchor, i), model.target[i], a, c), 1.0)
        whole = 0.0
        for k in range(levels.shape[0]):
            cross[0, 0] = levels[k] * total
            bound, growth = _row_bound(third, cross, product, norms, rates, n)
            whole = bound if k == 0 else whole
            factors[k] = max(factors[k], bound / whole if whole > 0.0 else 0.0)
            growths[k] = max(growths[k], growth)
    return together


@inlined
def _fill(third, bounds, weight):
    """The symmetric array of the third derivatives."""
    zzz, zza, zzc, zaa, zac, zcc, aaa, aac, acc, ccc = bounds
    third[0, 0, 0], third[1, 1, 1], third[2, 2, 2] = weight * zzz, weight * aaa, weight * ccc
    third[0, 0, 1] = third[0, 1, 0] = third[1, 0, 0] = weight * zza
    third[0, 0, 2] = third[0, 2, 0] = third[2, 0, 0] = weight * zzc
    third[0, 1, 1] = third[1, 0, 1] = third[1, 1, 0] = weight * zaa
    third[0, 2, 2] = third[2, 0, 2] = third[2, 2, 0] = weight * zcc
    third[1, 1, 2] = third[1, 2, 1] = third[2, 1, 1] = weight * aac
    third[1, 2, 2] = third[2, 1, 2] = third[2, 2, 1] = weight * acc
    third[0, 1, 2] = third[0, 2, 1] = third[1, 0, 2] = weight * zac
    third[1, 2, 0] = third[2, 0, 1] = third[2, 1, 0] = weight * zac


@inlined
def _norm(matrix, cross, product, n):
    """√tr(MSMS)."""
    for k in range(n):
        for m in range(n):
            product[k, m] = 0.0
            for j in range(n):
                product[k, m] += matrix[k, j] * cross[j, m]
    total = 0.0
    for k in range(n):
        for m in range(n):
            total += product[k, m] * product[m, k]
    return math.sqrt(total)
