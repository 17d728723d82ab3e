r"""Regressions with group effects: a linear predictor of fixed columns and of effects that vary between groups.

With standardised columns bᵢ and response, dispersions e^a and e^c, see `pdmp.models.regressions.likelihoods`,

    zᵢ = bᵢ·β + offsetᵢ + Σₖ valueᵢₖ uₖ[levelᵢₖ],      U = Σᵢ weightᵢ ℓ(zᵢ, yᵢ; a, c) + priors

where k runs over the group columns: one for (1 | g), two for (1 + x | g), whose effects are independent. In a group
column centred effects move themselves, uₖ ~ N(0, τₖ²); the others as uₖ = τₖ ξₖ with ξₖ ~ N(0, 1) beforehand. The
state is x = (β, log τ, effects, a, c).
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.tape import LANES, LOSS, Rows
from pdmp.models.expression_rows import ExpressionRows
from pdmp.models.priors import NORMAL, BetaBernoulli, Prior, log_masses
from pdmp.models.regressions.blocks import Blocks, Chunks, Coded
from pdmp.models.regressions.design import Columns, Dense, Mapped, check_finite, is_mapped, pieces, read_design
from pdmp.models.regressions.glm import read_vector
from pdmp.models.regressions.likelihoods import Law
from pdmp.native.arguments import real, same_rows
from pdmp.native.classes import Compiled, compiled
from pdmp.native.threads import chunks
from pdmp.native.vectors import exp

LAW_ELSEWHERE = 2  #: in `MixedRegression.centred`


class GroupColumn(NamedTuple):
    """One column of effects that vary between groups."""

    name: str  #: "x|g", or "1|g"
    grouping: str  #: "g"
    levels: tuple  #: labels of the groups
    level: np.ndarray  #: (N,) group of each row, its place in `levels`; of a family also (1 or N, w), several of a row
    value: np.ndarray  #: (N,) or (N, w), what the effect is multiplied by; ones of an intercept
    prior: Prior  #: of the standard deviation of the effects
    rows: np.ndarray | None = None  #: (groups,) how many rows each has, where that is known
    partners: tuple = ()  #: names of the columns whose effects correlate, this one among them
    warp: Any = None  #: `pdmp.formulas.smooths.Warp` of effects that are made of others

    @property
    def label(self) -> str:
        """What it is a column of: "x", or "1"."""
        return self.name.removesuffix(f"|{self.grouping}")

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each group has, (groups,)."""
        return np.bincount(self.level.ravel(), minlength=len(self.levels)) if self.rows is None else self.rows

    @property
    def usual_rows(self) -> float:
        """Rows of a group, the median of them."""
        return float(np.median(self.sizes))

    @property
    def sd_name(self) -> str:
        """What the standard deviation is called, or, of a monotonic effect, its size."""
        if self.warp is not None and self.warp.parameter:
            return str(self.warp.parameter)
        return f"sd({self.grouping if self.name.startswith('1|') else self.name})"


class MixedRegression(ExpressionRows):
    """Generalised linear regression with effects of groups.

    Parameters
    ----------
    X : array_like or Columns, shape (N, p)
        The fixed columns, as they are: they are standardised inside, and `constrain` undoes it. A memory-mapped array
        is standardised in place, and `Columns`, for models without groups, whenever they are read.
    y : array_like, shape (N,)
        Responses.
    likelihood : Law
        One of `pdmp.models.regressions.likelihoods`.
    columns : sequence of str
        Names of the columns of `X`.
    priors : sequence of Prior
        Of the coefficients of these columns; that of the intercept is for rows at the means of the other columns.
    groups : sequence of GroupColumn
    dispersion_priors : sequence of Prior
        One for each of ``likelihood.dispersions``.
    intercept : int, optional
        Which column of `X` is constant 1; then the others are centred.
    offset, weights : array_like, shape (N,), optional
        Added to the linear predictor; multiplied with the log-likelihood.
    scale_response : bool, default False
        Whether to standardise the response as it is stored, for laws whose parameters have its unit.
    response : str, default "y"
    inclusion : array_like, shape (p,), optional
        Prior probabilities that a coefficient is not 0; 1 for those that always are in the model. Sticky processes
        take them from `prior_inclusion`.
    model_prior : BetaBernoulli, optional
        The law of which coefficients are not 0, of those whose `inclusion` is below 1.
    together : dict of str to sequence of int, optional
        By name, columns whose coefficients are 0 together, or not.
    coded : Coded, optional
        The rows in files, standardised; `X`, `y`, `offset` and `weights` are not looked at then.
    beside : dict of str to array_like, shape (N,), optional
        Further data of the rows, by the names of ``likelihood.given``.
    before : MixedRegression, optional
        The same regression of rows in memory that come before those of `X`, `y`, `offset` and `weights`, whose centres
        and scales are kept; `groups` are of all rows.

    Raises
    ------
    ValueError
        For a coefficient that may be 0 and whose prior is not `Normal`; and for a memory-mapped `X` that is read-only
        or cannot be read where it is, which then stays as it was.

    Attributes
    ----------
    centre, scale : ndarray, shape (p,)
        What was subtracted from a column, and what it was then divided by.
    """

    prefix = ""  #: of names of its parameters, as those of other linear predictors have one

    design: Compiled
    target: np.ndarray
    further: np.ndarray  #: (N, q) further data of the rows
    offset: np.ndarray  #: (N,) or (0,)
    weight: np.ndarray  #: (N,) or (0,)
    level: np.ndarray  #: (N, K) coordinate of the effect of each row
    value: np.ndarray  #: (N, K)
    first: np.ndarray  #: (K + 1,) first coordinate of the effects of each group column
    centred: np.ndarray  #: (K,) 1 or 0; `LAW_ELSEWHERE` of centred effects whose law is no part of the model
    n_fixed: int
    n_groups: int
    n_dispersions: int

    _further: tuple[str, ...] = ()  # names of coordinates between the effects and the dispersions, of derived models

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        likelihood: Law,
        columns: Sequence[str],
        priors: Sequence[Prior],
        groups: Sequence[GroupColumn] = (),
        dispersion_priors: Sequence[Prior] = (),
        intercept: int | None = None,
        offset: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        scale_response: bool = False,
        response: str = "y",
        inclusion: ArrayLike | None = None,
        model_prior: BetaBernoulli | None = None,
        together: Mapping[str, Sequence[int]] | None = None,
        coded: Coded | None = None,
        beside: Mapping[str, ArrayLike] | None = None,
        before: MixedRegression | None = None,
    ) -> None:
        same_rows(X=X, y=y, offset=offset, weights=weights, **(beside or {}))
        p, K = len(columns), len(groups)
        self.columns, self.groups, self.intercept, self.response = tuple(columns), tuple(groups), intercept, response
        self.likelihood, self.coded = likelihood, coded
        self.first = p + K + np.concatenate([[0], np.cumsum([len(g.levels) for g in groups])]).astype(np.int64)
        self.centred = np.zeros(K, np.int64)
        if coded is None:
            self._keep(X, y, offset, weights, scale_response, beside or {}, before)
        else:
            self._map(coded)
        n = len(self.y)
        self.n_fixed, self.n_groups, self.n_dispersions = p, K, len(likelihood.dispersions)
        self._keep_tapes([likelihood.tapes], 1 + self.n_dispersions, 1 + len(likelihood.given))
        self.priors, self.dispersion_priors = tuple(priors), tuple(dispersion_priors)
        s = self.response_scale
        inside = [
            q.shifted(-self.response_centre).scaled(1.0 / s) if j == intercept else q.scaled(self.scale[j] / s)
            for j, q in enumerate(priors)
        ]
        sds = [g.prior.scaled(self.group_scale[k] / s) for k, g in enumerate(groups)]
        spreads = [
            q.scaled(1.0 / s) if name in likelihood.with_unit else q
            for name, q in zip(likelihood.dispersions, dispersion_priors, strict=True)
        ]
        coded = [q.coded() for q in (*inside, *sds, *spreads)]
        self.kinds = np.array([code[0] for code in coded], np.int64)
        self.numbers = np.array([code[1:] for code in coded]).reshape(-1, 3)

        dim = int(self.first[-1]) + len(self._further) + self.n_dispersions
        start = np.zeros(dim)
        if intercept is not None:
            start[intercept] = inside[intercept].typical()
        start[p : p + K] = [math.log(0.2 * q.typical()) for q in sds]
        start[dim - self.n_dispersions :] = [math.log(q.typical()) if q.positive else q.typical() for q in spreads]
        variables: dict[str, tuple[int, ...]] = {f"standardised {name}": () for name in self.columns}
        variables |= {f"log {g.sd_name}": () for g in groups}
        variables |= {f"standardised {g.name}": (len(g.levels),) for g in groups}
        variables |= {f"standardised {name}": () for name in self._further}
        variables |= {f"{likelihood.family.links[name]} {name}": () for name in likelihood.dispersions}
        super().__init__(dim=dim, n_data=n, variables=variables, initial=start)
        self.inclusion, self.model_prior = None, model_prior
        self.together = {name: tuple(places) for name, places in (together or {}).items()}
        if inclusion is not None:
            self.inclusion = np.ones(dim)
            self.inclusion[:p] = inclusion
            if np.any(self.kinds[:p][self.inclusion[:p] < 1.0] != NORMAL):
                raise ValueError("`select` needs Normal priors of the coefficients that may be 0.")
        self.dims = {g.name: [g.grouping] for g in groups}
        self.coords = {g.grouping: list(g.levels) for g in groups}

    @functools.cached_property
    def blocks(self) -> Blocks | None:
        """Passes over rows in files, or over `Columns`; None for a model with a copy of its rows."""
        if isinstance(self.design, Columns):
            return Chunks(self)
        return None if self.coded is None else Blocks(self, self.coded)

    def _keep(self, X, y, offset, weights, scale_response, beside, before):
        """The rows, standardised, in memory, or `X` in the file where it is."""
        intercept, groups = self.intercept, self.groups
        if is_mapped(X):
            X = read_design(X)[0]  # before anything is written
            if not X.flags.writeable:
                raise ValueError("a memory-mapped `X` is standardised in place, and this one is read-only.")
        elif not isinstance(X, Columns):
            X = np.array(real("X", X))
        n = len(X)
        self.y = y = read_vector("y", y, n, copy=not isinstance(X, Columns))
        if before is None:
            weight = None if weights is None else read_vector("weights", weights, n)
            stored = self.likelihood.stored(y) if scale_response else y
            self.response_centre = float(mean_of(stored, weight)) if scale_response and intercept is not None else 0.0
            self.response_scale = spread_of(stored, weight) if scale_response else 1.0
            self.centre, self.scale = standardise(X, intercept, weight)
            # Group columns are divided by their root mean square, not centred: that would change what (1 | g) means.
            self.group_scale = np.array([math.sqrt(mean_of(g.value**2, weight)) or 1.0 for g in groups])
        else:
            for name in ("response_centre", "response_scale", "centre", "scale", "group_scale"):
                setattr(self, name, getattr(before, name))
            X = (X - self.centre) / self.scale
        self.offset = np.zeros(0) if offset is None else read_vector("offset", offset, n) / self.response_scale
        self.weight = np.zeros(0) if weights is None else read_vector("weights", weights, n)
        if before is not None:
            X, self.y = np.concatenate([before.X, X]), np.concatenate([before.y, y])
            if before.offset.size or self.offset.size:
                parts = [(before.offset, before.n_data), (self.offset, n)]
                self.offset = np.concatenate([part if part.size else np.zeros(rows) for part, rows in parts])
            self.weight, n = np.concatenate([before.weight, self.weight]), len(X)
            beside = {
                name: np.concatenate([known, beside[name]])
                for name, known in zip(self.likelihood.given, before.given, strict=True)
            }
        given = {name: read_vector(name, beside[name], n) for name in self.likelihood.given}
        self.likelihood.family.check_data(self.y, given)
        self.further = np.ascontiguousarray(np.array(list(given.values())).reshape(-1, n).T)
        if isinstance(X, Columns):
            self.X = self.design = X.standardised(self.centre, self.scale)
        elif X.shape[1] == 1 and not is_mapped(X):  # whole cache lines would be eight times as much
            check_finite(X)
            self.X, self.design = X, Dense(X, 1)
        else:
            self.X, self.design = read_design(X)
            if type(self.design) is Dense:
                self.X = self.design.data[:, : self.X.shape[1]]  # one copy is enough
        self.target = (self.likelihood.stored(self.y) - self.response_centre) / self.response_scale

        self.level, self.value = np.zeros((n, len(groups)), np.int32), np.zeros((n, len(groups)))
        for k, g in enumerate(groups):
            self.level[:, k], self.value[:, k] = self.first[k] + g.level, g.value / self.group_scale[k]

    def _map(self, coded):
        """The rows in the files where they are."""
        files, n = coded.files, coded.n
        self.response_centre, self.response_scale = coded.response_centre, coded.response_scale
        self.centre, self.scale, self.group_scale = coded.centre, coded.scale, coded.group_scale
        self.X, self.y, self.target = files.mapped("X"), files.mapped("y"), files.mapped("target")
        self.design = Mapped(self.X, self.X.shape[1])
        self.offset, self.weight = files.mapped("offset"), files.mapped("weight")
        self.further = np.zeros((n, 0))
        self.level, self.value = np.zeros((n, 0), np.int32), np.zeros((n, 0))
        if self.groups:
            self.level, self.value = files.mapped("level"), files.mapped("value")

    # -- compiled: the linear predictor and the terms ---------------------------------------------------------------

    @compiled
    def margin(self, x, i):
        """zᵢ."""
        return self.design.product(x, i) + self.further_margin(x, i)

    @compiled
    def further_margin(self, x, i):
        """What is not of the fixed columns."""
        z = 0.0
        if self.offset.shape[0] > 0:
            z += self.offset[i]
        for k in range(self.n_groups):
            u = self.value[i, k] * x[self.level[i, k]]
            z += u if self.centred[k] > 0 else u * exp(x[self.n_fixed + k])
        return z

    @compiled
    def write_row(self, x, k, i, lane, data, eta):
        self.write_margin(x, i, self.margin(x, i), lane, data, eta)

    @compiled
    def write_margin(self, x, i, z, lane, data, eta):
        """Write row i, whose linear predictor is z, into a lane."""
        eta[0, lane], data[0, lane] = z, self.target[i]
        for k in range(self.further.shape[1]):
            data[1 + k, lane] = self.further[i, k]
        for k in range(self.n_dispersions):
            eta[1 + k, lane] = x[self.dim - self.n_dispersions + k]

    @compiled
    def weight_of(self, i):
        return self.weight[i] if self.weight.shape[0] > 0 else 1.0

    @compiled(inline=False, allocates=True)
    def total_rise(self, x, y):
        """U(y) - U(x), for coefficients of fixed columns that differ; columns of which both are 0 are not read."""
        places, count = np.empty(self.n_fixed, np.int64), 0
        for j in range(self.n_fixed):
            if x[j] != 0.0 or y[j] != 0.0:
                places[count] = j
                count += 1
        eta, data = np.empty((self.n_functionals, LANES)), np.empty((self.n_columns, LANES))
        room, first, total = np.empty((self.registers, LANES)), 0, 0.0
        while first < self.n_data:
            n = min(LANES, self.n_data - first)
            for sign, point in ((-1.0, x), (1.0, y)):
                for lane in range(n):
                    i = first + lane
                    z = self.design.product_of(point, places, count, i) + self.further_margin(x, i)
                    self.write_margin(x, i, z, lane, data, eta)
                out = self.results[self.run(0, LOSS, n, data, eta, room)]
                for lane in range(n):
                    total += sign * self.weight_of(first + lane) * room[out, lane]
            first += n
        return total + (self.prior_potential(y) - self.prior_potential(x))

    @compiled
    def distribute(self, x, k, i, place, lane, room, out):
        weight = self.weight_of(i)
        g = weight * room[self.results[place], lane]
        self.design.add_row(i, g, out)
        for q in range(self.n_groups):
            j, pull = self.level[i, q], g * self.value[i, q]
            if self.centred[q] > 0:
                out[j] += pull
            else:
                pull *= exp(x[self.n_fixed + q])
                out[j] += pull
                out[self.n_fixed + q] += pull * x[j]
        for q in range(self.n_dispersions):
            out[self.dim - self.n_dispersions + q] += weight * room[self.results[place + 1 + q], lane]

    @compiled
    def hessian_of(self, i, place, lane, room, out):
        """Write the Hessian of row i by its functionals into out (m, m); `place` is that of `CURVATURE`."""
        weight, m = self.weight_of(i), self.n_functionals
        q = place + m
        for f in range(m):
            for g in range(f, m):
                out[f, g] = out[g, f] = weight * room[self.results[q], lane]
                q += 1

    @compiled
    def remainder_along(self, there, x, v, i, scratch, rho):
        """v·Rᵢ(x), Rᵢ what the gradient of row i is beyond its expansion at `there`, without groups; its parts in rho.

        rho (m,) are those by the linear predictor and the dispersions.
        """
        z, z0, slope = self.margin(x, i), self.margin(there, i), self.design.product(v, i)
        return self.remainder_along_margin(there, x, v, i, z, z0, slope, scratch, rho)

    @compiled
    def remainder_along_places(self, there, x, v, i, places, count, support, scratch, rho):
        """As `remainder_along`, from the first `count` columns in `places`, beyond which x and v have none that differ.

        `there` is 0 outside of the columns in `support`.
        """
        rest = self.further_margin(x, i)
        z = self.design.product_of(x, places, count, i) + rest
        z0 = self.design.product_of(there, support, support.shape[0], i) + rest
        slope = self.design.product_of(v, places, count, i)
        return self.remainder_along_margin(there, x, v, i, z, z0, slope, scratch, rho)

    @compiled
    def remainder_along_margin(self, there, x, v, i, z, z0, slope, scratch, rho):
        """The same, the linear predictor being z, z0 at `there`, and `slope` its change in a unit of time."""
        self.expand_margin(there, x, i, z, z0, scratch, rho)
        total = slope * rho[0]
        for k in range(self.n_dispersions):
            total += v[self.dim - self.n_dispersions + k] * rho[1 + k]
        return total

    @compiled
    def expand_margin(self, there, x, i, z, z0, scratch, rho):
        """Parts of Rᵢ by the functionals, as of `remainder_along`."""
        self.write_margin(there, i, z0, 0, scratch.data, scratch.there)
        self.write_margin(x, i, z, 0, scratch.data, scratch.eta)
        self.expand_row(0, i, scratch, rho)

    @compiled
    def add_remainder(self, i, rho, out):
        """out += Rᵢ of these parts."""
        self.design.add_row(i, rho[0], out)
        for k in range(self.n_dispersions):
            out[self.dim - self.n_dispersions + k] += rho[1 + k]

    @compiled
    def fetch(self, i):
        self.design.fetch(i)
        self.design.fetch_entry(self.target, i)
        self.design.fetch_entry(self.offset, i)
        self.design.fetch_entry(self.weight, i)

    # -- compiled: the prior ------------------------------------------------------------------------------------------

    @compiled
    def place(self, q):
        """The coordinate of prior q, of (β, log τ, a, c)."""
        fixed = self.n_fixed + self.n_groups
        return q if q < fixed else self.dim - self.n_dispersions + q - fixed

    @compiled
    def argument(self, x, j):
        """Of what the prior is whose coordinate is j."""
        return x[j]

    @compiled
    def independent_potential(self, x):
        """Of (β, log τ, a, c)."""
        total = 0.0
        for q in range(self.kinds.shape[0]):
            total += self.potential_of_prior(q, self.argument(x, self.place(q)))
        return total

    @compiled
    def add_independent_gradient(self, x, out):
        """The gradient of that."""
        for q in range(self.kinds.shape[0]):
            j = self.place(q)
            out[j] += self.derivative_of_prior(q, self.argument(x, j))

    @compiled
    def prior_potential(self, x):
        total = self.independent_potential(x)
        for k in range(self.n_groups):
            if self.centred[k] == LAW_ELSEWHERE:
                continue
            s = x[self.n_fixed + k]
            precision = exp(-2.0 * s) if self.centred[k] == 1 else 1.0
            for j in range(self.first[k], self.first[k + 1]):
                total += 0.5 * precision * (x[j] * x[j])
            if self.centred[k] == 1:
                total += s * (self.first[k + 1] - self.first[k])
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        self.add_independent_gradient(x, out)
        for k in range(self.n_groups):
            if self.centred[k] == LAW_ELSEWHERE:
                continue
            precision = exp(-2.0 * x[self.n_fixed + k]) if self.centred[k] == 1 else 1.0
            total = 0.0
            for j in range(self.first[k], self.first[k + 1]):
                out[j] += precision * x[j]
                total += precision * (x[j] * x[j])
            if self.centred[k] == 1:
                out[self.n_fixed + k] += (self.first[k + 1] - self.first[k]) - total

    # -- Python ---------------------------------------------------------------------------------------------------

    @property
    def in_file(self) -> bool:
        return is_mapped(self.X)

    @property
    def has_linear_rows(self) -> bool:
        """Whether rows are linear in the coordinates, and means of groups are among them: they can be expanded."""
        return not self.n_groups

    def row_width(self) -> int | None:
        # With groups, adding up what the chunks have found of each would take longer than the chunks.
        return None if self.n_groups else self.n_fixed + 1

    @property
    def given(self) -> list[np.ndarray]:
        """Further data of the rows, (N,) each, in the order of ``likelihood.given``."""
        return list(self.further.T)

    def omitted(self) -> float:
        """See `Derived.omitted`: with the law of effects, where it is elsewhere too."""
        of_rows = self.likelihood.log_constant(self.y, self.given) - math.log(self.response_scale)
        of_rows = np.broadcast_to(of_rows, self.n_data)
        effects = int(self.first[-1] - self.first[0])
        of_priors = log_masses(self.kinds, self.numbers) + 0.5 * effects * math.log(math.tau)
        return float(of_rows @ self.weight if self.weight.size else of_rows.sum()) - of_priors

    def as_effects(self) -> MixedRegression | None:
        """The model whose coordinates are effects, not coefficients of groups; None where it cannot be made."""
        return self

    def unconstrained(self, natural: Mapping[str, ArrayLike]) -> np.ndarray:
        """x (..., dim) of natural parameters, as `constrain` has them."""
        beta = np.stack([np.asarray(natural[name], float) for name in self.columns], axis=-1)
        x, s, p = np.zeros((*beta.shape[:-1], self.dim)), self.response_scale, self.n_fixed
        if self.intercept is not None:
            beta[..., self.intercept] += beta @ self.centre - self.response_centre
        x[..., :p] = beta * self.scale / s
        for k, g in enumerate(self.groups):
            x[..., p + k] = np.log(np.asarray(natural[g.sd_name]) * self.group_scale[k] / s)
            effects = np.asarray(natural[g.name], float) * self.group_scale[k] / s
            own = slice(self.first[k], self.first[k + 1])
            x[..., own] = effects if self.centred[k] else effects * np.exp(-x[..., p + k, None])
        for k, name in enumerate(self.likelihood.dispersions):
            unit = s if name in self.likelihood.with_unit else 1.0
            value = np.asarray(natural[name]) / unit
            x[..., self.dim - self.n_dispersions + k] = self.likelihood.link(name).forward(value)
        return x

    def centring(self) -> list[str]:
        """How the effects of each group column move, for notes."""
        return ["centred" if c else "not centred" for c in self.centred]

    def some_rows(self, rows: np.ndarray) -> MixedRegression:
        other = copy.copy(self)
        other.coded = other.blocks = None  # they are in memory
        other.X, other.design = self.X[rows], self.design.some(rows)
        for name in ("y", "target", "further", "offset", "weight", "level", "value"):
            values = getattr(self, name)
            setattr(other, name, values[rows] if len(values) else values)
        other.n_data = len(rows)
        return other

    @property
    def enclosures(self) -> list[tuple]:
        """Tapes for enclosures of third derivatives, without and with the fourth."""
        derived = self.likelihood.derived
        return [(derived.third, derived.third_and_fourth)]

    def pieces(self) -> list[tuple[int, int, int]]:
        """Kind, first and stop of chunks of rows."""
        return [(0, *where) for where in chunks(self.n_data, self.n_fixed + 2 * self.n_groups + 3)]

    def name_of_row(self, i: int) -> str:
        return f"row {i}"

    def row_block(self, k: int, first: int, stop: int, x: np.ndarray, root: np.ndarray) -> Rows:
        """Functionals at x (m, n), responses (1, n), S (m, m, n) and weights (n,) or (0,) of rows.

        S is for LLᵀ, `root` being L, or its diagonal (d,); with groups for the latter alone.
        """
        m, p, rows, own = 1 + self.n_dispersions, self.n_fixed, slice(first, stop), self.dim - self.n_dispersions
        square = np.zeros((m, m, stop - first))
        X = np.asarray(self.design.rows(first, stop)[:, :p], float)
        if root.ndim == 1:
            square[0, 0] = np.square(X) @ root[:p] ** 2
            for k in range(self.n_groups):
                square[0, 0] += np.square(root[self.level[rows, k]] * self.value[rows, k])
            for k in range(1, m):
                square[k, k] = root[own + k - 1] ** 2
        else:
            parts = X @ root[:p]
            square[0, 0] = np.einsum("ij,ij->i", parts, parts)
            square[0, 1:] = square[1:, 0] = root[own:] @ parts.T
            square[1:, 1:] = (root[own:] @ root[own:].T)[..., None]
        return Rows(*self.functionals(0, first, stop, x), square, self.weight[rows])

    def prior_inclusion(self) -> np.ndarray | None:
        return None if self.inclusion is None else self.inclusion.copy()

    def slab_density(self) -> np.ndarray | None:
        """Of the Normal priors at 0; 0 for others, whose coefficients never stick."""
        density, is_normal, p = np.zeros(self.dim), self.kinds[: self.n_fixed] == NORMAL, self.n_fixed
        mean, sd = self.numbers[:p, 0], np.where(is_normal, self.numbers[:p, 1], 1.0)
        density[:p] = np.where(is_normal, np.exp(-0.5 * (mean / sd) ** 2) / (sd * math.sqrt(math.tau)), 0.0)
        return density

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), in the units of the data.

        Coefficients by column, ``sd(g)`` and ``sd(x|g)``, effects ``1|g`` and ``x|g`` of shape (..., groups), and the
        dispersions.
        """
        draws = real("draws", draws, self.dim)
        s, p = self.response_scale, self.n_fixed
        beta = s * draws[..., :p] / self.scale
        if self.intercept is not None:
            beta[..., self.intercept] += self.response_centre - beta @ self.centre
        natural = {name: beta[..., j] for j, name in enumerate(self.columns)}
        for k, g in enumerate(self.groups):
            natural[g.sd_name] = s / self.group_scale[k] * np.exp(draws[..., p + k])
        for k, name in enumerate(self.likelihood.dispersions):
            value = self.likelihood.link(name).inverse(draws[..., self.dim - self.n_dispersions + k])
            natural[name] = s * value if name in self.likelihood.with_unit else value
        for k, g in enumerate(self.groups):
            effects = s / self.group_scale[k] * draws[..., self.first[k] : self.first[k + 1]]
            if not self.centred[k]:
                effects = effects * np.exp(draws[..., p + k, None])
            natural[g.name] = effects
        return natural

    def margins(self, draws: ArrayLike) -> np.ndarray:
        """Linear predictors of the model's rows, in the units of the data: (..., n_data) of draws (..., dim)."""
        draws = real("draws", draws)
        z = draws[..., : self.n_fixed] @ np.asarray(self.X).T
        if self.offset.size:
            z = z + self.offset
        for k in range(self.n_groups):
            u = draws[..., self.level[:, k]] * self.value[:, k]
            z = z + (u if self.centred[k] else u * np.exp(draws[..., self.n_fixed + k, None]))
        return self.response_centre + self.response_scale * z

    def dispersions(self, draws: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Both dispersions by their links in the units of the data, (...) of draws (..., dim); zeros for none."""
        draws, found = real("draws", draws), []
        for k, name in enumerate(self.likelihood.dispersions):  # without the effects of all groups, which may be many
            unit = math.log(self.response_scale) if name in self.likelihood.with_unit else 0.0
            found.append(draws[..., self.dim - self.n_dispersions + k] + unit)
        return tuple((*found, *[np.zeros(draws.shape[:-1])] * 2)[:2])

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        """log p(yᵢ | x) of each row, times its weight, all constants included: (..., n_data) of draws (..., dim)."""
        a, c = self.dispersions(draws)
        found = self.likelihood.log_density(self.margins(draws), self.y, a[..., None], c[..., None], self.given)
        return found * self.weight if self.weight.size else found

    def observed_data(self) -> dict[str, np.ndarray]:
        return {self.response: self.y}


def mean_of(values, weight=None):
    """Means over the rows, of which one of weight 2 is as two."""
    if weight is None:
        return values.mean(axis=0)
    share = weight / weight.max()  # their sum may be too large
    return (share / share.sum()) @ values


def sd_of(values, weight=None):
    """The standard deviation of (n,) values, of rows with weights as for `mean_of`."""
    return float(values.std() if weight is None else np.sqrt(mean_of((values - mean_of(values, weight)) ** 2, weight)))


def standardise(X, intercept, weight=None):
    """Centre and divide the columns of X, in place; what was subtracted, and by what they were divided."""
    n, p = X.shape
    centre, scale = np.zeros(p), np.ones(p)
    if not is_mapped(X):
        for j in range(p):
            if j != intercept:
                column = np.array(X[:, j])  # contiguous, as it is read several times
                centre[j] = mean_of(column, weight) if intercept is not None else 0.0
                scale[j] = spread_of(column, weight)
                if not isinstance(X, Columns):  # which do it when they are read
                    X[:, j] = (column - centre[j]) / scale[j]
        return centre, scale
    rows, mean, square, largest = pieces(X), np.zeros(p), np.zeros(p), np.zeros(p)
    share = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    for s in rows:
        mean += share[s] @ X[s]
        largest = np.maximum(largest, np.abs(X[s]).max(axis=0))
    for s in rows:
        square += share[s] @ (X[s] - mean) ** 2
    spread = np.sqrt(square)
    scale = np.where(spread > 1e-12 * largest, spread, np.where(largest > 0.0, largest, 1.0))
    if intercept is not None:
        centre, centre[intercept], scale[intercept] = mean, 0.0, 1.0
    for s in rows:
        X[s] = (X[s] - centre) / scale
    return centre, scale


def spread_of(values, weight=None):
    """Standard deviation, or the size of a constant column, or 1."""
    spread = sd_of(values, weight)
    largest = float(np.abs(values).max())
    return spread if spread > 1e-12 * largest else (largest or 1.0)
