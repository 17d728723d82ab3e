"""Regressions of any family: a linear predictor for each of its parameters, as rows of expressions.

With the standardised columns b of a parameter, its unit s, and group columns whose values v have the root mean square
r,

    η = s (b·β + Σₖ v / rₖ · e^((1 - cₖⱼ) tₖ) aₖⱼ) + offset,      aₖⱼ ~ N(0, e^(2 cₖⱼ tₖ)),      j the group of the row

so that effects are uₖⱼ = s / rₖ · e^((1 - cₖⱼ) tₖ) aₖⱼ ~ N(0, τₖ²), τₖ = s / rₖ · e^tₖ, whatever the shares of centring
c are [1]_. Where all are 1, η is linear in the coordinates, and rows can be sub-sampled.

References
----------
.. [1] Papaspiliopoulos, Roberts & Sköld (2007), A general framework for the parametrization of hierarchical models,
   Statist. Sci. 22, section 4.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.functionals import Functional, Parameters
from pdmp.expressions.nodes import exp
from pdmp.formulas.families import Priors, Scale
from pdmp.models.families import LINKS, Family, Observed
from pdmp.models.priors import Normal, Prior
from pdmp.models.regressions.mixed import GroupColumn, standardise
from pdmp.models.sums_of_terms import SumOfTerms, Terms, sum_of_terms

START = 0.2  #: of its typical value a standard deviation of effects starts at, as in `MixedRegression`
CENTRED = 0.9  #: usual share of centring from which on it is 1, for all groups
FEWEST = 0.25  #: least variance of effects, in that of what the data say of a usual group, that shares are computed for
USUAL_ROWS = 10.0  #: of a group, with which it is half centred where the data were not asked
DIFFERENCE = 1e-3  #: of linear predictors, for derivatives of log-likelihoods


def inside_name(name: str) -> str:
    """The block of coordinates of a parameter, which is not called as what is reported is: its numbers are others."""
    return f"standardised {name}"


CUTS = inside_name("cuts")


class Predictor:
    """The linear predictor of one parameter.

    Parameters
    ----------
    parameter : str
    prefix : str
        What the names of its coefficients begin with: "" of the first parameter, and "sigma: " of another.
    design : Design
    scale : Scale
    named : Priors
    offset : ndarray, shape (n,)
    has_cuts : bool
        Whether the family has cuts, and the predictor thus no intercept.

    Attributes
    ----------
    columns : list of str
    priors : dict of str to Prior
        In the units of the data, by their names with the prefix.
    """

    def __init__(
        self,
        parameter: str,
        prefix: str,
        design: Any,
        scale: Scale,
        named: Priors,
        offset: np.ndarray,
        has_cuts: bool,
    ) -> None:
        self.parameter, self.prefix, self.unit = parameter, prefix, scale.unit
        X = np.array(design.X, dtype=float)
        self.centre, self.scale = standardise(X, design.intercept)
        kept = [j for j in range(X.shape[1]) if not (has_cuts and j == design.intercept)]
        self.intercept = None if has_cuts else design.intercept
        self.columns, self.offset = [design.columns[j] for j in kept], offset if np.any(offset) else None
        self.X, self.centre, self.scale = X[:, kept], self.centre[kept], self.scale[kept]
        term_of = {j: term for term, places in design.terms.items() for j in places}
        self.priors: dict[str, Prior] = {}
        for j in kept:
            default = scale.of_intercept() if j == design.intercept else scale.of_column(j)
            names = prefix + design.columns[j], prefix + term_of[j]
            self.priors[names[0]] = named.find(default, *names)
        self.groups = []
        for k, g in enumerate(design.groups):
            column = GroupColumn(*g, prior=scale.of_effects(k), rows=scale.totals.sizes[k])
            name = prefix + column.sd_name
            self.groups.append(column._replace(prior=named.find(column.prior, name)))
            self.priors[name] = self.groups[-1].prior
        self.group_scale = np.array([math.sqrt(np.mean(g.value**2)) or 1.0 for g in self.groups])
        self.shares = [np.ones(len(g.levels)) for g in self.groups]

    def extended(
        self, X: np.ndarray, offset: np.ndarray, groups: Sequence[GroupColumn], known: Functional
    ) -> Predictor:
        """The same of further rows, in its units, behind those of the functional that it has in a model.

        Parameters
        ----------
        X, offset : ndarray, shapes (n, p) and (n,)
            Of the new rows; with the intercept, whether or not it has one here.
        groups : sequence of GroupColumn
            Of all rows.
        known : Functional
        """
        found = copy.copy(self)
        own = known.values[:, : len(self.columns)] / self.unit
        found.X = np.concatenate([np.broadcast_to(own, (known.n, len(self.columns))), (X - self.centre) / self.scale])
        before = np.zeros(known.n) if self.offset is None else self.offset
        found.offset = np.concatenate([before, offset]) if self.offset is not None or np.any(offset) else None
        found.groups = list(groups)
        found.shares = [np.ones(len(g.levels)) for g in groups]
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

    def sizes(self, with_groups: bool = True) -> dict[str, int]:
        """Blocks of coordinates."""
        found = dict.fromkeys(self.fixed_names, 1)
        if with_groups:
            found |= {self.sd_name(k): 1 for k in range(len(self.groups))}
            found |= {self.effect_name(k): len(g.levels) for k, g in enumerate(self.groups)}
        return found

    def inside(self, with_groups: bool = True) -> dict[str, Prior]:
        """Priors of the coordinates."""
        found: dict[str, Prior] = {}
        for j, (block, name) in enumerate(zip(self.fixed_names, self.columns, strict=True)):
            prior = self.priors[self.prefix + name]
            found[block] = prior.scaled(self.scale[j] / self.unit)
        for k, g in enumerate(self.groups if with_groups else ()):
            found[self.sd_name(k)] = g.prior.scaled(self.group_scale[k] / self.unit)
            if not self.shares[k].any():
                found[self.effect_name(k)] = Normal(0.0, 1.0)
        return found

    def values(self, k: int) -> np.ndarray:
        """What effects of a group column are multiplied by, (n,)."""
        return self.groups[k].value * (self.unit / self.group_scale[k])

    def functional(self, p: Parameters, with_groups: bool = True) -> Functional:
        """What is linear in the coordinates."""
        firsts = np.array([getattr(p, name).first for name in self.fixed_names], np.int64)[None]
        found = None
        if self.columns:
            found = Functional(firsts, self.X * self.unit, None, p.sizes)
        for k, g in enumerate(self.groups if with_groups else ()):
            if np.all(self.shares[k] == 1.0):
                part = getattr(p, self.effect_name(k))[g.level] * self.values(k)
                found = part if found is None else found + part
        if found is None:  # of cuts alone
            found = Functional(np.zeros((1, 1), np.int64), np.zeros((1, 1)), None, p.sizes)
        return found if self.offset is None else found + self.offset

    def partly(self) -> list[int]:
        """Group columns that are not centred as a whole."""
        return [k for k in range(len(self.groups)) if np.any(self.shares[k] < 1.0)]

    def effects(self, values: Mapping[str, np.ndarray], k: int) -> np.ndarray:
        """Effects of a group column in the units of the data, (..., groups), of coordinates by block."""
        spread = np.exp((1.0 - self.shares[k]) * values[self.sd_name(k)])
        return self.unit / self.group_scale[k] * spread * values[self.effect_name(k)]

    def centring(self, k: int) -> str:
        """How effects are parametrised, in words."""
        share = self.shares[k]
        return "centred" if np.all(share == 1.0) else "not centred" if not share.any() else "partly centred"

    def slimmed(self) -> None:
        """Without a copy of what the model has."""
        self.X = self.X[:0]


@dataclass(frozen=True, eq=False)
class Weighted(Observed):
    """Rows whose log-likelihoods are multiplied."""

    weight: np.ndarray

    def constant(self) -> np.ndarray:
        return self.weight * super().constant()


class Coding:
    """What a model of rows reports: natural parameters in the units of the data, by the names of a formula.

    Parameters
    ----------
    family : Family
    predictors : sequence of Predictor
    constants : sequence of str
        Parameters without a predictor.
    n_cuts : int
    sizes : dict of str to int
        Blocks of the coordinates, in order.
    response : str
    further : tuple of ndarray
        Of the rows.
    """

    def __init__(
        self,
        family: Family,
        predictors: Sequence[Predictor],
        constants: Sequence[str],
        n_cuts: int,
        sizes: Mapping[str, int],
        response: str,
        further: tuple,
        rows: int,
    ) -> None:
        self.family, self.predictors, self.constants = family, list(predictors), list(constants)
        self.n_cuts, self.response, self.further, self.rows = n_cuts, response, further, rows
        ends = np.cumsum([0, *sizes.values()])
        self.places = {name: (int(ends[k]), size) for k, (name, size) in enumerate(sizes.items())}
        self.dim = int(ends[-1])

    @property
    def cut_names(self) -> list[str]:
        """What cuts are called."""
        return [f"cut[{k + 1}]" for k in range(self.n_cuts)]

    def blocks(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Coordinates by block, (..., size) each."""
        draws = np.asarray(draws, dtype=float)
        if draws.shape[-1:] != (self.dim,):
            raise ValueError(f"`draws` must have shape (..., {self.dim}), got {draws.shape}.")
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
            for k in range(len(p.groups)):
                natural[p.prefix + p.groups[k].sd_name] = (
                    p.unit / p.group_scale[k] * np.exp(values[p.sd_name(k)][..., 0])
                )
            if self.n_cuts and p is self.predictors[0]:
                natural |= {name: values[CUTS][..., k] + shift for k, name in enumerate(self.cut_names)}
        for name in self.constants:
            natural[name] = LINKS[self.family.links[name]].inverse(values[inside_name(name)][..., 0])
        for p in self.predictors:
            natural |= {p.prefix + g.name: p.effects(values, k) for k, g in enumerate(p.groups)}
        return natural

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
                t = np.log(natural[p.prefix + g.sd_name] * p.group_scale[k] / p.unit)
                put(p.sd_name(k), t)
                spread = np.exp((1.0 - p.shares[k]) * np.asarray(t)[..., None])
                put(p.effect_name(k), natural[p.prefix + g.name] * p.group_scale[k] / p.unit / spread)
            if self.n_cuts and p is self.predictors[0]:
                put(CUTS, np.stack([natural[name] - shift for name in self.cut_names], axis=-1))
        for name in self.constants:
            put(inside_name(name), LINKS[self.family.links[name]].forward(natural[name]))
        return x

    def own(self, observed: Observed, draws: np.ndarray) -> list[np.ndarray]:
        """Functionals of the model's rows, (S, n) each, of draws (S, dim), as `Family.inverse` takes them."""
        values, n = self.blocks(draws), self.rows
        found = [np.broadcast_to(f.at(draws), (len(draws), n)) for f in observed.at]
        for one in self.predictors:
            place = self.family.named.index(one.parameter)
            for k in one.partly():
                g = one.groups[k]
                found[place] = found[place] + one.effects(values, k)[:, g.level] * g.value
        return found

    def arranged(self, found: Mapping[str, np.ndarray], draws: np.ndarray) -> list[np.ndarray]:
        """Functionals in the order of the family: those of predictors (S, n), the others' (S, 1), and cuts."""
        values = self.blocks(draws)
        if self.n_cuts:
            # Cuts of rows whose columns are all 0, as predictors of new tables are of columns in the units of the data.
            natural = self.constrain(draws)
            return [found["mu"], *(natural[name][:, None] for name in self.cut_names)]
        return [found[name] if name in found else values[inside_name(name)] for name in self.family.parameters]

    def shift(self, draws: np.ndarray) -> np.ndarray:
        """What predictors of columns in the units of the data have more than those of centred ones, where cuts have it.

        Of draws (S, dim), (S,): 0 where an intercept has it.
        """
        p, natural = self.predictors[0], self.constrain(draws)
        slopes = [natural[name] * p.centre[j] for j, name in enumerate(p.columns)] if self.n_cuts else []
        return sum(slopes, np.zeros(len(draws)))

    def predict(self, observed: Observed, draws: ArrayLike, rng: np.random.Generator | None = None) -> np.ndarray:
        """Means of the model's rows, or responses drawn with `rng`: (..., n) of draws (..., dim)."""
        x = np.asarray(draws, dtype=float)
        flat = x.reshape(-1, self.dim)
        return self.responses(self.own(observed, flat), self.further, rng).reshape(*x.shape[:-1], self.rows)

    def responses(
        self, functionals: Sequence[np.ndarray], further: Sequence, rng: np.random.Generator | None = None
    ) -> np.ndarray:
        """Means, or responses drawn with `rng`, at functionals (S, n) or (S, 1)."""
        what = "mean" if rng is None else "draw"
        if getattr(self.family, what) is None:
            raise ValueError(f"{self.family.name} knows no `{what}`: give it to pdmp.Family.")
        n = max(np.shape(z)[-1] for z in functionals)
        values = self.family.inverse([np.broadcast_to(z, (len(z), n)) for z in functionals])
        found = self.family.mean(*values, *further) if rng is None else self.family.draw(rng, *values, *further)
        return np.asarray(found, float)


def _joint(exponents, share, u):
    """Minus the log density of an effect, given how far it is centred, up to a constant."""
    return share * exponents + 0.5 * u**2 * exp(-2.0 * share * exponents)


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
) -> SumOfTerms:
    """The model of all rows; without effects of groups where these are left out."""
    n_cuts = int(y.max()) if cuts is not None else 0
    sizes: dict[str, int] = {}
    for one in predictors:
        sizes |= one.sizes(with_groups)
    inside = {name: inside_name(name) for name in (*constants, *(["cuts"] if n_cuts else []))}
    sizes |= {inside[name]: n_cuts if name == "cuts" else 1 for name in inside}
    p = Parameters(**sizes)
    given = {one.parameter: one.functional(p, with_groups) for one in predictors}
    given |= {name: getattr(p, block) for name, block in inside.items()}
    rows, priors = family.rows(y, **given, **data), {inside[name]: prior for name, prior in constants.items()}
    parts, effects, initial = [], [], {}
    for one in predictors:
        priors |= one.inside(with_groups)
        for k, g in enumerate(one.groups if with_groups else ()):
            u, t, share = getattr(p, one.effect_name(k)), getattr(p, one.sd_name(k)), one.shares[k]
            initial[one.sd_name(k)] = math.log(START * priors[one.sd_name(k)].typical())
            if np.any(share < 1.0):
                place = family.named.index(one.parameter)
                parts.append((place, 1.0 - share[g.level], u[g.level] * one.values(k), t))
            if share.any():
                effects.append(_effects(share, u[np.arange(u.size)], t))
                effects[-1].name = f"effects {one.prefix}{g.name}"
    if n_cuts:
        priors[CUTS] = cuts
    observed = rows.observed
    if parts or weight is not None:
        rows = _extended(family, rows, parts, weight)
        if weight is not None:
            observed = Weighted(observed.family, observed.y, observed.further, observed.at, weight)
        rows.observed = observed
    model = sum_of_terms(p, [rows, *effects], priors, initial=initial)
    model.reported = Coding(family, predictors, list(constants), n_cuts, sizes, response, observed.further, len(y))
    return model


def _effects(share, u, t):
    """Rows of the law of effects."""
    if np.all(share == 1.0):
        return Terms(lambda u, t: _joint(t, 1.0, u), [], [u, t])
    return Terms(lambda c, u, t: _joint(t, c, u), [share], [u, t])


def _extended(family, rows, parts, weight):
    """Rows with effects that are not linear in the coordinates, and weights."""
    q = len(rows.data) - sum(f.offset is not None for f in rows.at)
    m, extra, sign = len(rows.at), len(parts), -1.0 if family.arrange is not None else 1.0

    def loss(*args):
        own, free = args[:q], args[q : q + extra]
        last = q + extra + (weight is not None)
        eta, effects, spreads = list(args[last : last + m]), args[last + m : last + m + extra], args[last + m + extra :]
        for (place, *_), c, u, t in zip(parts, free, effects, spreads, strict=True):
            eta[place] = eta[place] + sign * exp(c * t) * u
        found = rows.loss(*own, *eta)
        return found if weight is None else args[last - 1] * found

    loss.__name__ = family.name
    columns = [*rows.data[:q], *(c for _, c, _, _ in parts), *([] if weight is None else [weight])]
    found = Terms(loss, columns, [*rows.at, *(u for _, _, u, _ in parts), *(t for _, _, _, t in parts)])
    found.ascending = rows.ascending
    return found


def set_shares(
    family: Family, predictors: Sequence[Predictor], y: np.ndarray, data: Mapping[str, np.ndarray], without: SumOfTerms
) -> None:
    """Decide how far effects are centred, by what the data say of each at the mode of the model without effects.

    With the score g and the information λ on the effect of a group at 0, Var g = λ + λ² τ², which has an estimate of
    τ²; and the share of centring is that of the data in what is known of an effect, λ τ² / (1 + λ τ²).
    """
    mode = without.mode()
    shares = [[_shares(family, one, k, y, data, without, mode) for k in range(len(one.groups))] for one in predictors]
    for one, own in zip(predictors, shares, strict=True):
        one.shares = own


def _shares(family, one, k, y, data, without, mode):
    """Of each group of a group column."""
    sizes = one.groups[k].sizes
    if mode is None:
        return sizes / (sizes + USUAL_ROWS)
    score, information = _of_groups(family, one, k, y, data, without, mode)
    square = np.sum(information**2)
    if not (square > 0.0 and np.all(np.isfinite(score))):
        return sizes / (sizes + USUAL_ROWS)
    variance = np.sum(score**2 - information) / square
    variance = max(variance, FEWEST / np.median(information[information > 0.0]))
    share = information * variance / (1.0 + information * variance)
    return np.ones_like(share) if np.median(share) >= CENTRED else share


def _of_groups(family, one, k, y, data, without, mode):
    """Score and information of the data on the effects of a group column, (groups,) each, in its coordinates."""
    coding, observed = without.reported, without.observed[0]
    place, own = family.named.index(one.parameter), [np.ravel(z) for z in coding.own(observed, mode[None])]

    def density(move):
        eta = list(own)
        eta[place] = eta[place] + move
        if family.arrange is None:
            return np.broadcast_to(family.log_density(y, *eta, data=observed.further), y.shape)
        cuts = np.array([z[0] for z in eta[1:]])
        upper, inner = np.minimum(y.astype(int), len(cuts) - 1), np.clip(y.astype(int), 1, max(len(cuts) - 1, 1))
        gap = cuts[np.minimum(inner, len(cuts) - 1)] - cuts[inner - 1]
        return np.asarray(family.log_density(y, cuts[upper] - eta[0], gap, data=(float(len(cuts)),)))

    h = DIFFERENCE * one.unit
    low, mid, high = density(-h), density(0.0), density(h)
    g, v = one.groups[k], one.values(k)
    curvature = np.maximum((2.0 * mid - low - high) / h**2, 0.0)

    def summed(values):
        return np.bincount(g.level, values, len(g.levels))

    for j, other in enumerate(one.groups):
        if j != k and other.grouping == g.grouping:  # what an intercept of the group leaves to its slope, or the latter
            w = one.values(j)
            square = summed(curvature * w**2)
            v = v - (summed(curvature * v * w) / np.where(square > 0.0, square, 1.0))[g.level] * w
            break
    return summed(v * (high - low) / (2.0 * h)), summed(v**2 * curvature)
