"""Regressions of any family: a linear predictor for each of its parameters, as rows of expressions.

With the standardised columns b of a parameter, its unit s, and group columns whose values v have the root mean square
r,

    η = s (b·β + Σₖ v / rₖ · aₖⱼ) + offset,      j the group of the row,

so that effects are uₖⱼ = s / rₖ · aₖⱼ. Those of one term, (1 + x | g), or of terms of several predictors, (1 |p| g),
are jointly normal with the standard deviations τₖ = s / rₖ · e^tₖ, s and r of each its own, and the correlations of
canonical partial ones, tanh w; those of (1 + x || g) are independent. η is linear in the coordinates, so that rows can
be sub-sampled; where all rows are looked at, other coordinates are moved
(`pdmp.models.regressions.standardised_effects`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from pdmp.automatic.subsampling import LARGEST_DIM, subsampled
from pdmp.expressions.functionals import Functional, Parameters
from pdmp.expressions.nodes import exp, softplus, tanh
from pdmp.formulas.families import Priors, Scale
from pdmp.formulas.smooths import LENGTH, is_smooth, summed
from pdmp.models.families import LINKS, Family, Observed, gaussian, responses
from pdmp.models.priors import LKJ, Normal, Prior
from pdmp.models.regressions.effect_information import effect_information, of_rows, standardised
from pdmp.models.regressions.mixed import GroupColumn, mean_of, sd_of, standardise
from pdmp.models.regressions.monotonic_effects import MonotonicEffects, Steps
from pdmp.models.regressions.standardised_effects import (
    Coupling,
    EffectSet,
    StandardisedEffects,
    cholesky_factors,
    partial_correlations,
)
from pdmp.models.sums_of_terms import SumOfTerms, Terms, sum_of_terms
from pdmp.native.arguments import real

if TYPE_CHECKING:
    from pdmp.formulas.images import Symmetry

START = 0.2  #: of its typical value a standard deviation of effects starts at, as in `MixedRegression`
#: Where half of the effects of each column or more, in a table of so many rows or more, are known by the data to this
#: share of their precision, they are centred if rows can be sub-sampled then.
CENTRED, CENTRED_ROWS = 0.9, 5_000
WIDEST = 3  #: columns of a term up to which that is so: enclosures are of expressions in all their parameters
FEWEST = 0.25  #: least variance of effects, in that of what the data say of a usual group
DIFFERENCE = 1e-3  #: of linear predictors, for derivatives of log-likelihoods


def inside_name(name: str) -> str:
    """The block of coordinates of a parameter, which is not called as what is reported is: its numbers are others."""
    return f"standardised {name}"


CUTS = inside_name("cuts")


class Together:
    """Columns of effects of one grouping that are jointly normal, those that correlate or one alone.

    They are given with what the names of their predictors begin with, of which there may be several.
    """

    prior: Prior = LKJ(1.0)

    def __init__(self, columns: Sequence[tuple[str, GroupColumn]]) -> None:
        self.prefixes = [prefix for prefix, _ in columns]
        self.names = [prefix + g.name for prefix, g in columns]
        self.sd_names = [prefix + g.sd_name for prefix, g in columns]
        first = columns[0][1]
        self.width, self.grouping, self.warp, self.is_smooth = (
            len(columns),
            first.grouping,
            first.warp,
            is_smooth(first),
        )
        #: Of all correlations: "" where they are of several formulas.
        self.prefix = self.prefixes[0] if len(set(self.prefixes)) == 1 else ""
        labels = [prefix.removeprefix(self.prefix) + g.label for prefix, g in columns]
        #: What correlations are called, of the pairs (1, 0), (2, 0), (2, 1), …
        self.correlation_names = [f"{self.prefix}cor({labels[j]}, {labels[i]}|{self.grouping})" for i, j in self.pairs]
        self.block = inside_name(f"{self.prefix}correlations of {', '.join(labels)}|{self.grouping}")

    @property
    def sizes(self) -> dict[str, int]:
        """The block of coordinates of the correlations, if there are some."""
        return {self.block: len(self.correlation_names)} if self.width > 1 else {}

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(1, 0), (2, 0), (2, 1), …"""
        return [(i, j) for i in range(self.width) for j in range(i)]

    def correlations(self, partials: np.ndarray) -> dict[str, np.ndarray]:
        """By name, of w (..., d (d - 1) / 2)."""
        root = cholesky_factors(np.zeros((*partials.shape[:-1], self.width)), partials)
        return {
            name: np.sum(root[..., i, :] * root[..., j, :], axis=-1)
            for name, (i, j) in zip(self.correlation_names, self.pairs, strict=True)
        }

    def partials(self, natural: Mapping[str, np.ndarray]) -> np.ndarray:
        """w (..., d (d - 1) / 2) of correlations by name."""
        return partial_correlations(self.matrix(natural))

    def matrix(self, natural: Mapping[str, np.ndarray]) -> np.ndarray:
        """Correlations by name as matrices, (..., d, d)."""
        matrix = np.zeros((*np.shape(natural[self.correlation_names[0]]), self.width, self.width))
        matrix[..., range(self.width), range(self.width)] = 1.0
        for name, (i, j) in zip(self.correlation_names, self.pairs, strict=True):
            matrix[..., i, j] = matrix[..., j, i] = natural[name]
        return matrix


class Imputed:
    """Missing values of a column, NaN, which move as (x - middle) / unit: the mean and the sd of those that there are.

    Attributes
    ----------
    rows : ndarray of int
        Where values are missing.
    filled : ndarray, shape (n,)
        The column with its mean in these places.
    levels : tuple
        Labels of the rows.
    """

    def __init__(self, name: str, column: np.ndarray, labels: Sequence) -> None:
        missing = np.isnan(column)
        self.name, self.rows, self.n = name, np.flatnonzero(missing), len(column)
        self.middle, self.unit = float(column[~missing].mean()), float(column[~missing].std())
        self.filled, self.levels = np.where(missing, self.middle, column), tuple(np.asarray(labels)[missing].tolist())

    @property
    def called(self) -> str:
        """What the missing values are reported as."""
        return f"missing {self.name}"

    @property
    def sigma(self) -> str:
        """What their standard deviation around their predictor is called."""
        return f"sigma({self.name})"

    @property
    def block(self) -> str:
        """The block of their coordinates."""
        return inside_name(self.called)

    def functional(self, p: Parameters) -> Functional:
        """The value of each row less `filled`: 0 where it is not missing."""
        place, size = np.zeros(self.n, np.int64), np.zeros(self.n)
        place[self.rows], size[self.rows] = np.arange(len(self.rows)), self.unit
        return getattr(p, self.block)[place] * size


class Predictor:
    """The linear predictor of one parameter, or of the mean of an imputed column.

    Parameters
    ----------
    prefix : str
        What the names of its coefficients begin with: "" of the first parameter, and "sigma: " of another.
    has_cuts : bool
        Whether the family has cuts, and the predictor thus no intercept.
    weight : ndarray, shape (n,), optional
        Of the rows, in the means and standard deviations of columns.

    Attributes
    ----------
    priors : dict of str to Prior
        In the units of the data, by their names with the prefix.
    imputes : Imputed or None
        The column whose mean it is.
    slopes : list of (Imputed, ndarray of shape (n, p))
        Of imputed columns among those of this predictor: by how much each column rises with a missing value.
    """

    imputes: Imputed | None = None
    slopes: Sequence[tuple[Imputed, np.ndarray]] = ()

    def __init__(
        self,
        parameter: str,
        prefix: str,
        design: Any,
        scale: Scale,
        named: Priors,
        offset: np.ndarray,
        has_cuts: bool,
        weight: np.ndarray | None = None,
    ) -> None:
        self.parameter, self.prefix, self.unit = parameter, prefix, scale.unit
        X = np.array(design.X, dtype=float)
        self.centre, self.scale = standardise(X, design.intercept, weight)
        kept = [j for j in range(X.shape[1]) if not (has_cuts and j == design.intercept)]
        self.intercept = None if has_cuts else design.intercept
        self.columns, self.offset = [design.columns[j] for j in kept], offset if np.any(offset) else None
        self.X, self.centre, self.scale = X[:, kept], self.centre[kept], self.scale[kept]
        own = scale.of_columns(design, named, prefix, kept)
        self.priors: dict[str, Prior] = {prefix + name: prior for name, prior in zip(self.columns, own, strict=True)}
        self.groups: list[GroupColumn] = []
        self.sets: list[Together] = []  #: see `join_effects`
        for k, g in enumerate(design.groups):
            column = g._replace(prior=scale.of_effects(k), rows=scale.totals.sizes[k])
            warp = design.warps.get(g.name)
            if warp is not None:
                default = column.prior
                if warp.is_monotonic:  # of all steps of a row: the size of one is their mean
                    default = Normal(0.0, scale.width * scale.unit / sd_of(g.value.sum(axis=1), weight))
                column = column._replace(warp=warp, prior=default)
            name = prefix + column.sd_name
            self.groups.append(column._replace(prior=named.find(column.prior, name)))
            self.priors[name] = self.groups[-1].prior
            for length, unit in {} if warp is None else warp.lengths.items():
                self.priors[prefix + length] = named.find(LENGTH.scaled(unit), prefix + length)
        squares = [np.mean(mean_of(g.value**2, weight)) * (len(g.levels) if is_smooth(g) else 1) for g in self.groups]
        self.group_scale = np.array([math.sqrt(square) or 1.0 for square in squares])

    def extended(
        self, X: np.ndarray, offset: np.ndarray, groups: Sequence[GroupColumn], known: Functional
    ) -> Predictor:
        """The same of new rows, X with the intercept, behind those of the functional `known` that it has in a model.

        It keeps its units; `groups` are of all rows.
        """
        found = copy.copy(self)
        own = known.values[:, : len(self.columns)] / self.unit
        found.X = np.concatenate([np.broadcast_to(own, (known.n, len(self.columns))), (X - self.centre) / self.scale])
        before = np.zeros(known.n) if self.offset is None else self.offset
        found.offset = np.concatenate([before, offset]) if self.offset is not None or np.any(offset) else None
        found.groups = list(groups)
        return found

    @property
    def fixed_names(self) -> list[str]:
        """Blocks of the coefficients."""
        return [inside_name(self.prefix + name) for name in self.columns]

    def sd_name(self, k: int) -> str:
        """The block of a standard deviation of effects, whose logarithm moves."""
        return inside_name(self.prefix + self.groups[k].sd_name)

    def effect_name(self, k: int) -> str:
        """The block of effects."""
        return inside_name(self.prefix + self.groups[k].name)

    @property
    def warped(self) -> list[int]:
        """Places of the groups whose law is not that of groups: monotonic effects, and Gaussian processes."""
        return [k for k, g in enumerate(self.groups) if g.warp is not None]

    @property
    def monotonic(self) -> list[int]:
        """Places of the groups that are steps of a monotonic effect."""
        return [k for k in self.warped if self.groups[k].warp.is_monotonic]

    def lengths(self, k: int) -> list[tuple[str, str, float]]:
        """Of length scales of effects, whose logarithms move, the block, the name and the unit."""
        warp = self.groups[k].warp
        names = {} if warp is None else {self.prefix + name: unit for name, unit in warp.lengths.items()}
        return [(inside_name(name), name, unit) for name, unit in names.items()]

    def sizes(self, with_groups: bool = True) -> dict[str, int]:
        """Blocks of coordinates."""
        found = dict.fromkeys(self.fixed_names, 1)
        if with_groups:
            found |= {self.sd_name(k): 1 for k in range(len(self.groups))}
            for one in self.sets:
                found |= one.sizes
            found |= {block: 1 for k in self.warped for block, *_ in self.lengths(k)}
            found |= {self.effect_name(k): len(g.levels) for k, g in enumerate(self.groups)}
        return found

    def inside(self, with_groups: bool = True) -> dict[str, Prior | Sequence[Prior]]:
        """Priors of the coordinates, but for effects."""
        found: dict[str, Prior | Sequence[Prior]] = {}
        for j, (block, name) in enumerate(zip(self.fixed_names, self.columns, strict=True)):
            prior = self.priors[self.prefix + name]
            found[block] = prior.scaled(self.scale[j] / self.unit)
        for k, g in enumerate(self.groups if with_groups else ()):
            found[self.sd_name(k)] = g.prior.scaled(self.group_scale[k] / self.unit)
        for one in self.sets if with_groups else ():
            if one.width > 1:
                found[one.block] = one.prior.partial(one.width)
        for k in self.warped if with_groups else ():
            if self.groups[k].warp.is_monotonic:
                found[self.effect_name(k)] = Normal(0.0, 1.0)
            found |= {block: self.priors[name].scaled(1.0 / unit) for block, name, unit in self.lengths(k)}
        return found

    def values(self, k: int) -> np.ndarray:
        """What effects of a group column are multiplied by, (n,) or (n, w)."""
        return self.groups[k].value * (self.unit / self.group_scale[k])

    def functional(self, p: Parameters, with_groups: bool = True) -> Functional:
        """What is linear in the coordinates."""
        firsts = np.array([getattr(p, name).first for name in self.fixed_names], np.int64)[None]
        found = None
        if self.columns:
            found = Functional(firsts, self.X * self.unit, None, p.sizes)
        for k, g in enumerate(self.groups if with_groups else ()):
            block, values = getattr(p, self.effect_name(k)), self.values(k)
            if g.value.ndim > 1:
                part = Functional(block.first + g.level, values, None, p.sizes)
            else:
                part = block[g.level] * values
            found = part if found is None else found + part
        if found is None:  # of cuts alone
            found = Functional(np.zeros((1, 1), np.int64), np.zeros((1, 1)), None, p.sizes)
        return found if self.offset is None else found + self.offset

    def products(self, p: Parameters) -> list[tuple[Functional, Functional]]:
        """Pairs of which the products are added for missing values: what a unit of a value adds, and the value."""
        firsts, found = np.array([getattr(p, name).first for name in self.fixed_names], np.int64), []
        for one, slope in self.slopes:
            used = np.flatnonzero(np.any(slope[one.rows], axis=0))
            values = np.zeros((one.n, len(used)))
            values[one.rows] = (slope * (self.unit / self.scale))[np.ix_(one.rows, used)]
            found.append((Functional(firsts[used][None], values, None, p.sizes), one.functional(p)))
        return found

    def effects(self, values: Mapping[str, np.ndarray], k: int) -> np.ndarray:
        """Effects of a group column in the units of the data, (..., groups), of coordinates by block."""
        return self.unit / self.group_scale[k] * values[self.effect_name(k)]


class WithProducts:
    """A functional and products of two, as predictions look at it."""

    def __init__(self, linear: Functional, products: Sequence[tuple[Functional, Functional]]) -> None:
        self.linear, self.products = linear, products

    def at(self, x: np.ndarray) -> np.ndarray:
        """Values at draws x (S, dim): (S, n)."""
        return sum((a.at(x) * b.at(x) for a, b in self.products), self.linear.at(x))


@dataclass(frozen=True, eq=False)
class Weighted(Observed):
    """Rows whose log-likelihoods are multiplied."""

    weight: np.ndarray

    def constant(self) -> np.ndarray:
        return self.weight * super().constant()


@dataclass(eq=False)
class Coding:
    """What a model of rows reports: natural parameters in the units of the data, by the names of a formula."""

    family: Family
    predictors: list[Predictor]
    constants: list[str]  #: parameters without a predictor
    n_cuts: int
    sizes: Mapping[str, int]  #: blocks of the coordinates
    response: str
    further: tuple  #: data of the rows
    rows: int
    symmetries: Sequence[Symmetry] = ()  #: of the likelihood

    def __post_init__(self) -> None:
        self.imputed = [p.imputes for p in self.predictors if p.imputes is not None]
        ends = np.cumsum([0, *self.sizes.values()])
        self.places = {name: (int(ends[k]), size) for k, (name, size) in enumerate(self.sizes.items())}
        self.dim = int(ends[-1])

    @property
    def cut_names(self) -> list[str]:
        """What cuts are called."""
        return [f"cut[{k + 1}]" for k in range(self.n_cuts)]

    def blocks(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Coordinates by block, (..., size) each."""
        draws = real("draws", draws, self.dim)
        return {name: draws[..., first : first + size] for name, (first, size) in self.places.items()}

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), in the units of the data."""
        values = self.blocks(draws)
        natural: dict[str, np.ndarray] = {}
        for p in self.predictors:
            beta = {}
            for j, (block, name) in enumerate(zip(p.fixed_names, p.columns, strict=True)):
                beta[name] = p.unit * values[block][..., 0] / p.scale[j]
            shift = sum((beta[name] * p.centre[j] for j, name in enumerate(p.columns)), np.zeros(()))
            if p.intercept is not None:
                beta[p.columns[p.intercept]] = beta[p.columns[p.intercept]] - shift
            natural |= {p.prefix + name: value for name, value in beta.items()}
            for k, g in enumerate(p.groups):
                size = values[p.sd_name(k)][..., 0]
                is_free = g.warp is not None and g.warp.is_monotonic
                natural[p.prefix + g.sd_name] = p.unit / p.group_scale[k] * (size if is_free else np.exp(size))
                natural |= {name: unit * np.exp(values[block][..., 0]) for block, name, unit in p.lengths(k)}
            for one in p.sets:
                if one.width > 1:
                    natural |= one.correlations(values[one.block])
            if self.n_cuts and p is self.predictors[0]:
                natural |= {name: values[CUTS][..., k] + shift for k, name in enumerate(self.cut_names)}
        for name in self.constants:
            natural[name] = self._link(name).inverse(values[inside_name(name)][..., 0])
        for p in self.predictors:
            natural |= {p.prefix + g.name: p.effects(values, k) for k, g in enumerate(p.groups)}
        return natural | {one.called: one.middle + one.unit * values[one.block] for one in self.imputed}

    def _link(self, name):
        """The link of a parameter without a formula, that of the sd of an imputed column included."""
        return LINKS[self.family.links.get(name, "log")]

    def unconstrained(self, natural: Mapping[str, np.ndarray]) -> np.ndarray:
        """x (..., dim) of natural parameters, as `constrain` has them."""
        x = np.zeros((*np.shape(next(iter(natural.values()))), self.dim))

        def put(block, values):
            first, size = self.places[block]
            x[..., first : first + size] = values if np.ndim(values) == x.ndim else np.asarray(values)[..., None]

        for p in self.predictors:
            beta = {name: natural[p.prefix + name] for name in p.columns}
            shift = sum((beta[name] * p.centre[j] for j, name in enumerate(p.columns)), 0.0)
            if p.intercept is not None:
                beta[p.columns[p.intercept]] = beta[p.columns[p.intercept]] + shift
            for j, (block, name) in enumerate(zip(p.fixed_names, p.columns, strict=True)):
                put(block, beta[name] * p.scale[j] / p.unit)
            for k, g in enumerate(p.groups):
                size = natural[p.prefix + g.sd_name] * p.group_scale[k] / p.unit
                put(p.sd_name(k), size if g.warp is not None and g.warp.is_monotonic else np.log(size))
                for block, name, unit in p.lengths(k):
                    put(block, np.log(natural[name] / unit))
                put(p.effect_name(k), natural[p.prefix + g.name] * p.group_scale[k] / p.unit)
            for one in p.sets:
                if one.width > 1:
                    put(one.block, one.partials(natural))
            if self.n_cuts and p is self.predictors[0]:
                put(CUTS, np.stack([natural[name] - shift for name in self.cut_names], axis=-1))
        for name in self.constants:
            put(inside_name(name), self._link(name).forward(natural[name]))
        for one in self.imputed:
            put(one.block, (natural[one.called] - one.middle) / one.unit)
        return x

    def images(self, x: np.ndarray) -> list[np.ndarray]:
        """Points that the likelihood does not tell from x (dim,), one for each of its symmetries."""
        with np.errstate(all="ignore"):  # an image need not be finite far out
            natural = self.constrain(x)
            return [self.unconstrained(one.image(self, natural)) for one in self.symmetries]

    def own(self, observed: Observed, draws: np.ndarray) -> list[np.ndarray]:
        """Functionals of the model's rows, (S, n) each, of draws (S, dim), as `Family.inverse` takes them."""
        return [np.broadcast_to(f.at(draws), (len(draws), self.rows)) for f in observed.at]

    def effect_sets(self) -> list[EffectSet]:
        """Coordinates of effects that are jointly normal, of all predictors."""
        found = []
        for p in self.predictors:
            for one in p.sets:
                spreads = np.array([self.places[inside_name(name)][0] for name in one.sd_names])
                first = self.places[one.block][0] if one.width > 1 else 0
                effects = [self.places[inside_name(name)] for name in one.names]
                columns = np.stack([begin + np.arange(size) for begin, size in effects], axis=-1)
                own = EffectSet(spreads, first + np.arange(len(one.correlation_names)), columns)
                warp = one.warp
                if warp is not None:
                    lengths = np.array([self.places[inside_name(p.prefix + name)][0] for name in warp.lengths])
                    own = own._replace(lengths=lengths, eigenvalues=warp.eigenvalues, dimension=warp.dimension)
                found.append(own)
        return found

    def steps(self) -> list[Steps]:
        """Coordinates of monotonic effects, of all predictors."""
        return [
            Steps(self.places[p.effect_name(k)][0] + np.arange(len(p.groups[k].levels)), self.places[p.sd_name(k)][0])
            for p in self.predictors
            for k in p.monotonic
        ]

    def arranged(self, found: Mapping[str, np.ndarray], draws: np.ndarray) -> list[np.ndarray]:
        """Functionals in the order of the family: those of predictors (S, n), the others' (S, 1), and cuts."""
        values = self.blocks(draws)
        if self.n_cuts:
            # Cuts of rows whose columns are all 0, as predictors of new tables are of columns in the units of the data.
            natural = self.constrain(draws)
            return [found["mu"], *(natural[name][:, None] for name in self.cut_names)]
        return [found[name] if name in found else values[inside_name(name)] for name in self.family.parameters]

    def shift(self, draws: np.ndarray) -> np.ndarray:
        """What predictors of columns as they are have more than those of centred ones, where cuts have it, (S,)."""
        p, natural = self.predictors[0], self.constrain(draws)
        slopes = [natural[name] * p.centre[j] for j, name in enumerate(p.columns)] if self.n_cuts else []
        return sum(slopes, np.zeros(len(draws)))

    def predict(self, observed: Observed, draws: ArrayLike, rng: np.random.Generator | None = None) -> np.ndarray:
        """Means of the model's rows, or responses drawn with `rng`: (..., n) of draws (..., dim)."""
        x = np.asarray(draws, dtype=float)
        flat = x.reshape(-1, self.dim)
        kind = "mean" if rng is None else "response"
        return self.responses(self.own(observed, flat), self.further, kind, rng).reshape(*x.shape[:-1], self.rows)

    def responses(
        self,
        functionals: Sequence[np.ndarray],
        further: Sequence,
        kind: str = "mean",
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Means, responses drawn with `rng`, or chances of categories (S, n, K), at functionals (S, n) or (S, 1)."""
        what = {"mean": "mean", "response": "draw", "probability": "chances"}[kind]
        if what == "mean" and self.family.is_nominal:
            raise ValueError(
                f"categories of {self.family.name} have no order, and so no mean: ask for probabilities, "
                'kind="probability", or of conditional_effects.'
            )
        if what == "chances":
            return np.asarray(self.family.chances(*self.family.inverse(np.broadcast_arrays(*functionals))), float)
        return responses(self.family, functionals, further, rng)


def sets_of(columns: Iterable[tuple[str, GroupColumn]]) -> list[Together]:
    """Group columns, with what the names of their predictors begin with, that are jointly normal, or alone."""
    by_name = {prefix + g.name: (prefix, g) for prefix, g in columns}
    sets = dict.fromkeys(g.partners or (name,) for name, (_, g) in by_name.items())
    return [Together([by_name[name] for name in own]) for own in sets]


def correlated_sets(columns: Iterable[tuple[str, GroupColumn]]) -> list[Together]:
    """Those of more than one column."""
    return [one for one in sets_of(columns) if one.width > 1]


def join_effects(predictors: Sequence[Predictor], named: Priors) -> None:
    """Give predictors the sets of their effects, and the priors of correlations; of several the last has them."""
    owners = {one.prefix: one for one in predictors}
    straight = [(one.prefix, g) for one in predictors for k, g in enumerate(one.groups) if k not in one.monotonic]
    for both in sets_of(straight):
        owner = owners[both.prefixes[-1]]
        owner.sets.append(both)
        if both.width > 1:
            both.prior = named.correlation(both.correlation_names, both.grouping, both.prefix)
            owner.priors |= dict.fromkeys(both.correlation_names, both.prior)


def _joint(*args):
    """Minus the log density of the effects of a group, up to a constant: of d effects, d t and d (d - 1) / 2 w."""
    d = math.isqrt(2 * len(args))  # d (d + 3) / 2 arguments, between d² / 2 and (d + 2)² / 2
    while d * (d + 3) > 2 * len(args):
        d -= 1
    u, t, w = args[:d], args[d : 2 * d], list(args[2 * d :])
    total, standard = 0.0, []
    for i in range(d):
        rest, known = -t[i], u[i]  # `rest` is minus the logarithm of what a partial correlation is multiplied by
        for k in range(i):
            known = known - exp(-rest) * tanh(w[0]) * standard[k]
            rest = rest + softplus(2.0 * w[0]) - w[0] - math.log(2.0)  # log cosh w
            w = w[1:]
        standard.append(known * exp(rest))
        total = total + 0.5 * standard[i] ** 2 - rest
    return total


def made(
    family: Family,
    predictors: Sequence[Predictor],
    y: np.ndarray,
    data: Mapping[str, np.ndarray],
    constants: Mapping[str, Prior],
    cuts: Prior | None,
    weight: np.ndarray | None,
    response: str,
    with_groups: bool = True,
    with_laws: bool = True,
) -> SumOfTerms | MonotonicEffects:
    """The model of all rows; without effects of groups, or without their laws, where these are left out."""
    n_cuts = int(y.max()) if cuts is not None else 0
    sizes: dict[str, int] = {}
    for one in predictors:
        sizes |= one.sizes(with_groups)
    inside = {name: inside_name(name) for name in (*constants, *(["cuts"] if n_cuts else []))}
    sizes |= {inside[name]: n_cuts if name == "cuts" else 1 for name in inside}
    sizes |= {one.imputes.block: len(one.imputes.rows) for one in predictors if one.imputes is not None}
    p = Parameters(**sizes)
    at = {one.parameter: one.functional(p, with_groups) for one in predictors}
    at |= {name: getattr(p, block) for name, block in inside.items()}
    products = {one.parameter: one.products(p) for one in predictors}
    rows = _with_products(family.rows(y, **{name: at[name] for name in family.named}, **data), family.named, products)
    priors: dict[str, Prior | Sequence[Prior]] = {inside[name]: prior for name, prior in constants.items()}
    laws, initial = [], {}
    for one in predictors:
        own = one.inside(with_groups)
        priors |= own
        for both in one.sets if with_groups else ():
            for block in map(inside_name, both.sd_names):
                initial[block] = math.log(START * priors[block].typical())
            if with_laws:
                laws.append(_law(p, both))
        if one.imputes is not None:
            missing, sigma = one.imputes.functional(p), at[one.imputes.sigma]
            own = gaussian.rows(one.imputes.filled, mu=at[one.parameter] - missing, sigma=sigma)
            laws.append(_with_products(own, gaussian.named, {"mu": products[one.parameter]}))
            laws[-1].observed = None  # they are predicted by nothing
    if n_cuts:
        priors[CUTS] = cuts
    observed = rows.observed
    if weight is not None:
        rows = _weighted(family, rows, weight)
        rows.observed = observed = Weighted(observed.family, observed.y, observed.further, observed.at, weight)
    model = sum_of_terms(p, [rows, *laws], priors, initial=initial)
    model.reported = Coding(
        family, list(predictors), list(constants), n_cuts, sizes, response, observed.further, len(y)
    )
    steps = model.reported.steps() if with_groups else []
    return MonotonicEffects(model, steps) if steps else model


def _with_products(rows, named, products):
    """Rows to whose functionals, in the order of `named`, products of two others are added."""
    pairs = [(k, *both) for k, name in enumerate(named) for both in products.get(name, ())]
    if not pairs:
        return rows
    q, m = len(rows.data) - sum(f.offset is not None for f in rows.at), len(rows.at)

    def loss(*args):
        eta = list(args[q : q + m])
        for i, (k, _, _) in enumerate(pairs):
            eta[k] = eta[k] + args[q + m + 2 * i] * args[q + m + 2 * i + 1]
        return rows.loss(*args[:q], *eta)

    loss.__name__ = rows.name
    found = Terms(loss, rows.data[:q], [*rows.at, *(part for _, a, b in pairs for part in (a, b))])
    known = rows.observed
    at = [WithProducts(f, [(a, b) for i, a, b in pairs if i == k]) for k, f in enumerate(known.at)]
    found.observed = Observed(known.family, known.y, known.further, tuple(at))
    return found


def _law(p, both):
    """Rows of the law of effects."""
    effects = [getattr(p, inside_name(name)) for name in both.names]
    spreads = [getattr(p, inside_name(name)) for name in both.sd_names]
    partials = []
    if both.width > 1:
        block = getattr(p, both.block)
        partials = [block if block.size == 1 else block[np.array([q])] for q in range(block.size)]
    found = Terms(_joint, [], [*(u[np.arange(u.size)] for u in effects), *spreads, *partials])
    found.name = f"effects {', '.join(both.names)}"
    return found


def _weighted(family, rows, weight):
    """Rows whose losses are multiplied."""
    q = len(rows.data) - sum(f.offset is not None for f in rows.at)

    def loss(*args):
        return args[q] * rows.loss(*args[:q], *args[q + 1 :])

    loss.__name__ = family.name
    found = Terms(loss, [*rows.data[:q], weight], rows.at)
    found.ascending = rows.ascending
    return found


def made_for_sampling(
    predictors: Sequence[Predictor], y: np.ndarray, data: Mapping[str, np.ndarray], common: tuple
) -> SumOfTerms | MonotonicEffects | StandardisedEffects:
    """The model with effects of groups in the coordinates in which it is sampled.

    `common`: all arguments of `made` but for the last two.
    """
    base = made(*common, with_laws=False)
    sets = base.reported.effect_sets()
    fixed = [base.reported.places[name][0] for one in predictors for name in one.fixed_names]
    known = effect_information(base, sets, base.initial, fixed)
    if known is None:
        known = _by_rows(predictors, y, made(*common, with_groups=False), base, sets)
    if (
        len(y) >= CENTRED_ROWS
        and base.has("remainder_along")
        and not any(len(one.lengths) for one in sets)
        and base.dim <= LARGEST_DIM
        and max(one.width for one in sets) <= WIDEST
        and all(np.median(share) >= CENTRED for part in known.shares(sets) for share in part.T)
    ):
        centred = made(*common)
        if subsampled(centred).process is not None:
            return centred
    return standardised(base, sets, known)


def _by_rows(predictors, y, without, base, sets):
    """What rows say of effects, at the mode of the model without them; of each parameter, the others as they are."""
    mode, coding = without.mode(), base.reported
    at, informations, scores, couplings = base.initial.copy(), [], [], []
    if mode is not None:
        for name, (first, size) in without.reported.places.items():
            place = coding.places[name][0]
            at[place : place + size] = mode[first : first + size]
    columns, said = {}, {}
    for one in predictors:
        columns |= {one.prefix + g.name: (one, k) for k, g in enumerate(one.groups)}
        if mode is not None and one.imputes is None:  # effects on an imputed column begin as unknown
            slope, bend = _by_predictor(one, y, without, mode)
            if slope is not None:
                said[one.prefix] = slope, bend
                couplings += [_coupling_of(one, bend, coding, at)] if one.columns else []
    for both in (both for one in predictors for both in one.sets):
        own = [columns[name] for name in both.names]
        first = own[0][0].groups[own[0][1]]
        groups, level = len(first.levels), first.level
        information, score = np.zeros((groups, both.width, both.width)), np.zeros((groups, both.width))
        for i, (one, k) in enumerate(own):
            if one.prefix not in said:
                continue
            slope, bend = said[one.prefix]
            score[:, i] = summed(level, _times(slope, one.values(k)), groups)
            for j, (other, q) in enumerate(own):
                if other is one:
                    information[:, i, j] = summed(level, _times(bend, one.values(k) * one.values(q)), groups)
        informations.append(information)
        scores.append(score)
    coupling = None
    if couplings:
        others, there, effects = (np.concatenate([part[q] for part in couplings]) for q in range(3))
        coupling = Coupling(others, there, effects, scipy.linalg.block_diag(*(part.by for part in couplings)))
    return of_rows(sets, at, informations, scores, coupling, FEWEST)


def _by_predictor(one, y, without, mode):
    """Slopes of log-likelihoods by a linear predictor, and minus second derivatives, (n,) each; None if not finite."""
    coding, observed = without.reported, without.observed[0]
    family = coding.family
    place, own = family.named.index(one.parameter), [np.ravel(z) for z in coding.own(observed, mode[None])]

    def density(move):
        eta = list(own)
        eta[place] = eta[place] + move
        if family.arrange is None:
            return np.broadcast_to(family.log_density(y, *eta, data=observed.further), y.shape)
        chances = family.chances(*eta)
        return np.log(np.maximum(chances[np.arange(len(y)), y.astype(int)], 1e-300))

    h, weight = DIFFERENCE * one.unit, getattr(observed, "weight", 1.0)
    low, mid, high = density(-h), density(0.0), density(h)
    slope, bend = weight * (high - low) / (2.0 * h), weight * np.maximum((2.0 * mid - low - high) / h**2, 0.0)
    return (slope, bend) if np.all(np.isfinite(slope)) and np.all(np.isfinite(bend)) else (None, None)


def _times(row, values):
    """A number of each row times what its effects are multiplied by."""
    return (row * values.T).T


def _coupling_of(one, bend, coding, at):
    """How the scores of a predictor's effects fall with its coefficients."""
    others = np.array([coding.places[name][0] for name in one.fixed_names])
    effects, parts = [np.zeros(0, np.int64)], [np.zeros((0, len(others)))]
    for k, g in enumerate(one.groups):
        first, size = coding.places[one.effect_name(k)]
        effects.append(first + np.arange(size))
        by = [summed(g.level, _times(column * bend, one.values(k)), size) for column in (one.X * one.unit).T]
        parts.append(np.array(by).T)
    return Coupling(others, at[others], np.concatenate(effects), np.concatenate(parts))
