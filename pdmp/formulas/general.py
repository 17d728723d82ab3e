"""Regressions of any family of the table, or of one's own: from formulas and a table to rows of expressions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from pdmp.automatic.sampling import sample
from pdmp.data.formats import is_number, listed
from pdmp.data.tables import did_you_mean
from pdmp.errors import warn
from pdmp.formulas.beside import CALLED_BESIDE, columns_beside, read_beside, read_for_predictions, without_gaps
from pdmp.formulas.checks import (
    check_groups,
    check_identified,
    check_parameters,
    check_sizes,
    independence,
    leanings,
    suspected,
    tied,
)
from pdmp.formulas.design import Design, check_columns, check_identifiers, describe, partnered
from pdmp.formulas.families import NOMINAL, Priors, Scale, prior_of_constant
from pdmp.formulas.fit import Fit
from pdmp.formulas.images import of_expression, of_mixture
from pdmp.formulas.imputation import check_terms, named_in, read_imputed, slopes_of
from pdmp.formulas.kept import Kept
from pdmp.formulas.nonlinear import Expression, advising, check_start, prior_of, read_expression
from pdmp.formulas.nonlinear import check_columns as check_inside
from pdmp.formulas.predictors import (
    Coding,
    Predictor,
    correlated_sets,
    inside_name,
    join_effects,
    made,
    made_for_sampling,
)
from pdmp.formulas.sources import open_source
from pdmp.formulas.table import (
    check_names,
    check_roles,
    complete_rows,
    import_pandas,
    labels_of,
    linear_offset,
    places,
    plain,
    read_table,
    weigh,
    weights_of,
)
from pdmp.formulas.totals import Totals
from pdmp.formulas.updating import Origin, added_to, middle, padded, read_further, with_rows
from pdmp.formulas.words import STACKED, Response, column_of, read_response, split
from pdmp.models.families import COUNTED, LINKS, VARIANTS, Family, gaussian, truncated
from pdmp.models.priors import Prior
from pdmp.models.regressions.mixed import sd_of
from pdmp.models.regressions.monotonic_effects import MonotonicEffects
from pdmp.models.regressions.moved_coordinates import coordinates_of, innermost, natural_of
from pdmp.models.regressions.standardised_effects import StandardisedEffects, spectral_widths
from pdmp.models.sums_of_terms import SumOfTerms

#: Links that a parameter may have, by that of the table, which says in what range it is.
ALLOWED = {
    "log": ("log", "identity", "sqrt", "inverse"),
    "identity": ("identity", "log", "inverse"),
    "logit": ("logit", "probit", "cloglog"),
    "probit": ("logit", "probit", "cloglog"),
}
Posterior = SumOfTerms | MonotonicEffects | StandardisedEffects  #: of a regression
NOISES = {"sigma", "shape", "phi", "kappa"}  #: parameters of families that say how far responses are from their means
AT_ONCE = 5_000_000  #: numbers of a functional that are computed together


class Asked(NamedTuple):
    """What formulas say: the response, and the right side of each parameter that has one.

    `expression` stands for the first linear predictor where parameters of it have formulas.
    """

    formula: str  #: in words
    response: Response
    sides: Mapping[str, str]
    imputed: Mapping[str, str] = MappingProxyType({})  #: the same of columns whose missing values are imputed
    expression: Expression | None = None


def linked(family: Family, link: Any, is_expression: bool = False) -> Family:
    """The family with the links that `regression` was given; an expression may be a probability itself."""
    if link is None:
        return family
    if family.is_nominal:
        raise ValueError(f"`link`: of {family.name} it is the logit, of the odds against the first category.")
    asked = {family.named[0]: link} if isinstance(link, str) else link
    if not isinstance(asked, Mapping):
        raise TypeError(f'`link` must be a name, or a dict such as {{"sigma": "log"}}, got {type(link).__name__}.')
    changed = {}
    for name, value in asked.items():
        if name not in family.named:
            raise ValueError(f"`link` names {name!r}; parameters of {family.name} are {', '.join(family.named)}.")
        base = next((one for (one, _), row in VARIANTS.items() if row is family), family.name)
        if (base, value) in VARIANTS and name == family.named[0]:
            family = VARIANTS[base, value]
            continue
        usual = family.links.get(name)
        allowed: list[str] = [one for (a, one) in VARIANTS if a == base and name == family.named[0]]
        allowed += [one for one in ALLOWED.get(usual, (usual,)) if one and one not in allowed]
        allowed += ["identity"] * (is_expression and name == family.named[0] and "identity" not in allowed)
        if value not in allowed:
            raise ValueError(
                f"`link` of {name!r} must be one of {', '.join(map(repr, allowed))} for {family.name}, got {value!r}."
            )
        if value != usual:
            changed[name] = value
    return family.linked(**changed) if changed else family


def read_formulas(formula: Any, family: Family) -> Asked:
    """The formula of the response, and of further parameters."""
    first = "" if is_unknown(family) else family.named[0]
    inside, formula = parameters_inside(formula, family), apart(formula)
    if isinstance(formula, str):
        left, right = split(formula)
        return Asked(formula, read_response(left), {first: right})
    if not isinstance(formula, Mapping) or not all(isinstance(text, str) for text in formula.values()):
        raise TypeError(
            '`formula` must be text such as "y ~ x + (1 | g)", or a dict such as {"y": "y ~ x", "sigma": "~ x"}, got '
            f"{type(formula).__name__}."
        )
    main, others, imputed = [], {}, {}
    for name, text in formula.items():
        left, right = split(text)
        if not right:
            raise ValueError(f'`formula`: that of {name!r} must be text such as "~ x", got {text!r}.')
        column = re.sub(r"\|\s*mi\(\s*\)$", "", left)
        if column != left and any(name in named_in(other) for other in formula.values()):
            if column_of(column) != name:
                raise ValueError(f"`formula`: that of the imputed column {name!r} is {name} | mi() ~ …, got {text!r}.")
            imputed[name] = right
            continue
        of_category = is_unknown(family) and name and not left
        if of_category or (left in ("", name) and (name in family.named[1:] or name in inside)):
            others[name] = right
        elif left:
            main.append((name, left, right))
        else:
            own = [one for one in family.named[1:] if one != "cuts"]
            beside = " and is not in the expression" if inside else ""
            raise ValueError(
                f"`formula` names {name!r}, which is no further parameter of {family.name}{beside}; it has "
                f"{listed(own, 20) or 'none'}{did_you_mean(name, own)}"
            )
    if len(main) != 1:
        names = [name for name, *_ in main]
        said = f"; several responses are several fits; {STACKED.format(*names[:2])}" if names[1:] else ""
        raise ValueError(
            f'`formula` must have one with the response, such as {{"y": "y ~ x"}}; those with a left side that is no '
            f"further parameter of {family.name} are {', '.join(map(repr, names)) or 'none'}{said}."
        )
    name, left, right = main[0]
    response = read_response(left)
    if name not in (family.named[0], "y", response.text, column_of(response.text)):
        raise ValueError(f"`formula` names {name!r}, which is neither the response {response.text!r} nor a parameter.")
    if "cuts" in others:
        raise ValueError(f"`formula`: the cuts of {family.name} have no formula.")
    parts = [f"{left} ~ {right}", *(f"{name} ~ {text}" for name, text in others.items())]
    words = "; ".join([*parts, *(f"{name} | mi() ~ {text}" for name, text in imputed.items())])
    if not inside:
        return Asked(words, response, {first: right, **others}, imputed)
    if imputed:
        raise ValueError("`formula`: mi(x) is for linear predictors, and the mean is an expression here.")
    expression = read_expression(right, inside)
    response = response._replace(data={**response.data, **expression.data})
    return Asked(words, response, {name: others.pop(name) for name in inside} | others, expression=expression)


def apart(formula: Any) -> Any:
    """A dict of formulas with one for each name of ``{"a + b": "~ 1"}``."""
    if not isinstance(formula, Mapping) or not all(isinstance(name, str) for name in formula):
        return formula
    found: dict[str, Any] = {}
    for key, text in formula.items():
        names = [name.strip() for name in key.split("+")]
        for name in names if all(name.isidentifier() for name in names) else [key]:
            if name in found:
                raise ValueError(f"`formula` has two formulas of {name!r}, one of them by {key!r}.")
            found[name] = text
    return found


def parameters_inside(formula: Any, family: Family) -> list[str]:
    """Names that have a formula of their own, no left side, and a place in that of the response."""
    if not isinstance(formula, Mapping) or not all(isinstance(text, str) for text in formula.values()):
        return []
    sides = {name: split(text) for name, text in apart(formula).items()}
    own = [name for name, (left, right) in sides.items() if right and left in ("", name) and name not in family.named]
    return [
        name
        for name in own
        for other, (left, right) in sides.items()
        if left and "mi(" not in left and other != name and re.search(rf"(?<![\w.]){re.escape(name)}(?![\w(])", right)
    ]


def regress(
    asked: Asked,
    data: Any,
    family: Family,
    priors: Mapping[str, Prior] | None,
    roles: Mapping[str, str | None],
    links: Any,
    environment: Any,
    seed: int,
    options: Mapping[str, Any],
) -> tuple[FamilyFit, Callable[[], FamilyFit]]:
    """The regression whose run is None, and a function that samples it; see `pdmp.regression`."""
    check_asked(asked, family, priors, links)
    model, designs, by_name, notes, kept = make_general_model(asked, data, family, priors, roles, environment)
    columns = {name: roles[name] for name in ("offset", "exposure")}
    first = designs[family.named[0]]
    fit = FamilyFit(asked.formula, family, model, None, first, by_name, notes, columns, asked.response.data)
    fit.designs, fit.kept = designs, kept
    return fit, functools.partial(sampled, fit, Origin(environment, roles, options, notes), seed)


def sampled(fit: FamilyFit, origin: Origin, seed: int) -> FamilyFit:
    """A fit whose run is None, sampled."""
    with advising(fit.family):
        run, notes = sample(fit.model, seed=seed, **origin.run_options), list(origin.notes)
    words = iter(getattr(fit.model, "centring", list)())
    for one in fit.coding.predictors:
        for both in one.sets:
            names, many = " and ".join(both.names), fit.coding.places[inside_name(both.names[0])][1]
            whose = f"{many} coefficients of {names}" if both.is_smooth else f"effects {names} of {many:,} groups"
            notes.append(f"{whose} are {next(words, 'centred')}")
        notes += independence(one.groups, one.prefix)
    rows = innermost(fit.model)
    if rows.rows_summed < rows.n_data:
        notes.append(f"each gradient is of {rows.rows_summed:,} rows, which have the sum of all {rows.n_data:,}")
    notes += filter(None, [run.info.get("choice")])
    further = None if fit.coding.imputed else functools.partial(with_rows, extended_model, sampled, origin)
    return fit.replaced(run=run, notes=notes, with_rows=further)


def extended_model(origin: Origin, fit: FamilyFit, data: Any) -> tuple[dict[str, Any], list[str]]:
    """What is another of a fit with further rows, and notes."""
    family, coding, observed = fit.family, fit.coding, fit.model.observed[0]
    first = family.named[0]
    table, notes = read_further(fit, data, origin, fit.designs)
    kind = "category" if family.chances is not None and not family.is_counted else family.response
    y = fit.designs[first].read_further_response(table, origin.environment, kind, observed.y)
    rest = dict(zip(family.data, observed.further, strict=True)) if family.arrange is None else {}
    rest = {name: np.append(rest[name], values) for name, values in read_beside(fit.beside, table).items()}
    weight = weights_of(table, origin.roles)
    if weight is not None:
        weight = np.append(fit.row_weights, weight)
    predictors, designs, said = [], {}, []
    for one in coding.predictors:
        roles = origin.roles if one.parameter == first else None
        design, X, offset, groups, new_groups = added_to(fit.designs[one.parameter], one.groups, table, roles)
        if one.intercept is None and coding.n_cuts:
            X = np.delete(X, design.intercept, 1)
        at = observed.at[family.named.index(one.parameter)]
        predictors.append(one.extended(X, offset, groups, at))
        designs[one.parameter] = design
        said += new_groups
    cuts = fit.priors["cut[1]"] if coding.n_cuts else None
    constants = {name: fit.priors[name] for name in coding.constants}
    y = np.append(observed.y, y)
    model = modelled(family, predictors, y, rest, constants, cuts, weight, coding.response)
    model.reported.symmetries = coding.symmetries
    natural = middle(fit)
    for one in predictors:
        natural = padded(natural, one.groups, one.prefix)
    x = model.reported.unconstrained(natural)
    model.initial = coordinates_of(model, x)
    kept = fit.kept.extended(table, list(designs.values()))
    changed = {"model": model, "design": designs[first], "designs": designs, "kept": kept}
    return changed, [*notes, *dict.fromkeys(said)]


def modelled(
    family: Family, predictors: list[Predictor], y: np.ndarray, rest: Mapping[str, np.ndarray], *common: Any
) -> Posterior:
    """The model of all rows, in the coordinates in which it is sampled; arguments as of `made`."""
    known = (family, predictors, y, rest, *common)
    grouped = any(one.sets for one in predictors)
    model = made_for_sampling(predictors, y, rest, known) if grouped else made(*known)
    for one in predictors:
        one.X, one.slopes = one.X[:0], ()  # of which the model has a copy
    return model


def cut_off(family: Family, asked: Asked) -> tuple[Family, Asked]:
    """The family of responses that are seen between bounds, which of counts it has itself, in place of the data."""
    data = dict(asked.response.data)
    bounds = {name: data[name] for name in ("lb", "ub") if name in data}
    if not bounds:
        return family, asked
    if family.response != "count":
        return truncated(family, "lb" in bounds, "ub" in bounds), asked
    for name, text in bounds.items():
        if not is_number(text):
            raise ValueError(
                f"`formula`: bounds of counts are numbers, the same in all rows, as trunc(lb=1), got {name}={text}."
            )
        del data[name]
    family = truncated(family, *(float(bounds[name]) if name in bounds else False for name in ("lb", "ub")))
    return family, asked._replace(response=asked.response._replace(data=data))


def check_asked(asked: Asked, family: Family, priors: Any, links: Any) -> None:
    """Refuse what the family cannot be asked, before the data are read."""
    counts = [column_of(text) for name, text in asked.response.data.items() if name.startswith(COUNTED)]
    if counts and not family.is_counted:
        own = f"cbind({', '.join([asked.response.text, *counts])})"
        raise ValueError(
            f"`formula`: {own} is of the family multinomial; of successes and failures write k | trials(n), with n "
            "their sum."
        )
    if family.is_counted and not counts:
        raise ValueError("`formula`: the response of multinomial is counts of each category: cbind(a, b, c) ~ x.")
    for name in asked.response.data:
        if name not in family.data and not name.startswith(COUNTED):
            word = CALLED_BESIDE[name]
            raise ValueError(f"`formula`: {family.name} takes no `| {word}(...)`.")
    if family.data.get("trials", 0.0) is None and "trials" not in asked.response.data:
        own = asked.response.text
        raise ValueError(
            f"`formula`: {family.name} needs the number of trials: {own} | trials(n) ~ …; of labels the family is "
            "bernoulli."
        )
    for name, why in family.needs.items():
        if name not in asked.sides:
            raise ValueError(f'`family`: {family.name} needs a formula of {name!r}, {{"{name}": "~ x"}}: {why}.')
    if isinstance(links, Mapping):
        for name in links:
            if name not in asked.sides:
                raise ValueError(
                    f'`link`: that of {name!r} matters where it has a formula: {{"{name}": "~ x"}}; without one its '
                    "prior is of the parameter itself."
                )


def expanded(family: Family, asked: Asked, data: Any, weights: str | None) -> tuple[Family, Asked]:
    """A family of categories without an order with those of the data, and a formula for each but the first.

    It is that of the response, unless the category has one of its own.
    """
    if family.is_counted:
        names = [column_of(text) for text in asked.response.data.values()]
    else:
        if open_source(data) is not None:
            raise in_memory(family, asked)
        table, column = read_table(data), column_of(asked.response.text)
        check_names([column], table, "`formula`")
        check_roles({"weights": weights}, table)
        table = table[~weigh(table, weights)]
        names = [str(label) for label in labels_of(table[column])[1:]]
        if not names:
            raise ValueError(f"the response {column!r} is {labels_of(table[column])[0]} in every row.")
    own = dict(asked.sides)
    right = own.pop("")
    for name in own:
        if name not in names:
            raise ValueError(
                f"`formula` names {name!r}, which is no category that is compared with the first: those are "
                f"{listed(names, 20)}{did_you_mean(name, names)}"
            )
    return NOMINAL[family.name](names), asked._replace(sides={name: own.get(name, right) for name in names})


def is_unknown(family: Family) -> bool:
    """Whether the family is of categories that the data are still to tell."""
    return family.name in NOMINAL and family.is_nominal


def in_memory(family: Family, asked: Asked) -> ValueError:
    """What is said of data that are read in batches."""
    return ValueError(
        f"`data`: {family.described}, with formulas of {listed(list(asked.sides))}, is for tables in memory; give "
        "pandas.read_csv or pandas.read_parquet of the files, or of some of them."
    )


def prefix_of(family: Family, parameter: str) -> str:
    """What names of coefficients begin with: of the first parameter nothing, unless it is one of several categories."""
    alone = parameter == family.named[0] and not family.is_nominal and family.predictor is None
    return "" if alone else f"{parameter}: "


def make_general_model(
    asked: Asked,
    data: Any,
    family: Family,
    priors: Mapping[str, Prior] | None,
    roles: Mapping[str, str | None],
    environment: Any,
) -> tuple[Posterior, dict[str, Design], dict[str, Prior], list[str], Kept]:
    """The model, the coding of each parameter's columns, priors, notes and what is kept of the table; see `regress`."""
    first = family.named[0]
    if asked.expression is not None and {roles["offset"], roles["exposure"]} != {None}:
        raise ValueError("`offset` and `exposure` are for linear predictors: write the column into the expression.")
    check_exposure(family, roles["exposure"])
    described = {name: describe(f"{asked.response.text} ~ {side}") for name, side in asked.sides.items()}
    described |= {name: describe(f"`{name}` ~ {side}") for name, side in asked.imputed.items()}
    if open_source(data) is not None:
        raise in_memory(family, asked)
    if family.is_nominal and roles["offset"] is not None:
        raise ValueError(f"`offset` is for families with one linear predictor, and {family.name} has one a category.")
    table = read_table(data)
    columns = columns_beside(asked.response.data)
    check_identifiers(described.values(), table.columns)
    names = frozenset().union(*(one.names for one in described.values()))
    check_names(names | set(columns.values()), table, "`formula`")
    used = names | set(columns.values()) | check_roles(roles, table)
    if asked.expression is not None:
        check_inside(asked.expression, table, column_of(asked.response.text))
    table = without_gaps(table, asked.response.data)
    if asked.imputed:
        check_terms(described, asked.imputed, roles | columns)
    whole = table
    table, notes = complete_rows(table, used, imputed=asked.imputed, weights=roles["weights"])
    imputed = [read_imputed(name, table) for name in asked.imputed]
    complete = ~np.isin(np.arange(len(table)), [row for one in imputed for row in one.rows])
    table = table.assign(**{one.name: one.filled for one in imputed})
    for one in described.values():
        check_columns(one, table, environment, whole)
    designs = {name: Design(one, table, environment) for name, one in described.items()}
    notes += partnered({prefix_of(family, name): design for name, design in designs.items()})
    y, coded = responses(designs[first], table, environment, family)
    n = len(table)
    rest = read_beside(asked.response.data, table)
    notes += filter(None, [coded])
    weight = weights_of(table, roles)

    named, predictors, has_cuts = Priors(priors), [], family.arrange is not None
    constants_ = [name for name in family.named if name not in asked.sides and not (has_cuts and name == "cuts")]
    sides = {**asked.sides, **asked.imputed}
    reported = [*constants_, *(called for one in imputed for called in (one.sigma, one.called))]
    check_names_apart(designs, family, reported, int(y.max()) if has_cuts else 0)
    seen = measured(family, y, rest)
    for name, design in designs.items():
        own_column = next((one for one in imputed if one.name == name), None)
        prefix, offset = prefix_of(family, name), design.offset
        if name == first:
            offset = offset + linear_offset(table, roles["offset"], roles["exposure"])
        if has_cuts and design.intercept is None:
            raise ValueError(f"`formula`: the cuts of {family.name} are its intercepts: leave out `0 +`.")
        if own_column is None:
            totals = Totals.of(design, seen, offset, weight)
        else:
            totals = Totals.of(design, own_column.filled, offset, None)._replace(y_sd=own_column.unit)
        slopes = [(one, slopes_of(design, table, one)) for one in imputed if one.name in named_in(sides[name])]
        for one, slope in slopes:  # of default priors: those of rows where the column is known
            own, known = np.any(slope, axis=0), np.isin(np.arange(n), one.rows, invert=True)
            own_weight = None if weight is None else weight[known]
            totals.sd[own] = [sd_of(column[known], own_weight) for column in design.X[:, own].T]
        check_sizes(design, totals)
        known = None
        if asked.expression is not None and name in asked.expression.parameters:
            known = prior_of(name, design, priors)
        scale = Scale(family, name, totals, known) if own_column is None else Scale(gaussian, "mu", totals)
        shares = None if own_column is not None else weight
        predictors.append(Predictor(name, prefix, design, scale, named, offset, has_cuts and name == first, shares))
        predictors[-1].imputes, predictors[-1].slopes = own_column, slopes
        check_groups(predictors[-1].groups, notes)
        noise = None if family.response in ("count", "label") or not constants_ else constants_[0]
        noise = noise if name == first else None if own_column is None else own_column.sigma
        check_identified(predictors[-1].groups, noise, roles["weights"], weight, priors or {})
        alike = family.is_nominal and len(set(asked.sides.values())) == 1 and own_column is None
        if alike and name != first:
            continue
        notes += [f"{'' if alike else prefix}{said}" for said in design.baselines()]
        own = [predictors[-1].priors.get(prefix + column) for column in design.columns]
        of_names = [*family.named, ""] if alike else [name]
        leans = [one for other in of_names for one in leanings(family, other, y, rest)] if not imputed else []
        is_sum = name == first and not imputed and asked.expression is None
        exact = noiseless(family, y, offset, family.named, rest) if is_sum else None
        notes += suspected(
            design, own, totals, predictors[-1].groups, priors or {}, leans, "" if alike else prefix, exact
        )
    join_effects(predictors, named)
    constants, by_name = {}, {}
    for one in predictors:
        by_name |= one.priors
    sd = sd_of(seen, weight) or 1.0
    for name in constants_:
        default = prior_of_constant(family, name, sd)
        link = family.links[name]
        constants[name] = named.find(default, name, *([] if link in ("log", "identity") else [f"{link}({name})"]))
        by_name[name] = constants[name]
    for one in imputed:
        constants[one.sigma] = by_name[one.sigma] = named.find(
            prior_of_constant(gaussian, "sigma", one.unit), one.sigma
        )
        notes.append(f"{len(one.rows):,} of {n:,} values of {one.name} are missing, and imputed")
    cuts = named.find(family.priors["cuts"], "cuts") if has_cuts else None
    named.finish()
    text = tied(family, designs, measured(family, y), predictors[0].offset, constants, weight)
    if text is not None:
        warn(text)
        notes.append(text.rstrip("."))
    if has_cuts:
        by_name |= dict.fromkeys((f"cut[{k + 1}]" for k in range(int(y.max()))), cuts)
    model = modelled(family, predictors, y, rest, constants, cuts, weight, designs[first].response)
    symmetries = [of_mixture(family)] if family.name.startswith("mixture") else []
    if asked.expression is not None:
        check_start(family, model)
        links = {name: family.links[name] for name in asked.expression.parameters}
        symmetries += of_expression(asked.expression, links)
    if symmetries:
        model.reported.symmetries = symmetries
    notes += [
        f"{one.said}: the posterior has two modes unless priors tell them apart, of which a run can miss one without a "
        "sign"
        for one in symmetries
    ]
    if asked.expression is not None:
        notes += [f"coefficients of {name} are of its {of}" for name, of in links.items() if of != "identity"]
    for design in designs.values():
        design.X = design.X[:0]
    kept = Kept(table[complete] if imputed else table, list(designs.values()))
    kept.places = np.flatnonzero(complete)[kept.places]
    return model, {name: designs[name] for name in asked.sides}, by_name, notes, kept


def check_exposure(family: Family, exposure: str | None) -> None:
    """Refuse an exposure where its logarithm is not added to that of a mean."""
    if exposure is not None and (family.response != "count" or family.links.get(family.named[0]) != "log"):
        raise ValueError(f"`exposure` is for counts with the log link, and this is {family.described}; use `offset`.")


def measured(family: Family, y: np.ndarray, rest: Mapping[str, np.ndarray] = MappingProxyType({})) -> np.ndarray:
    """Responses of which totals are, over trials: as they are stored where parameters have the unit of that."""
    y = y / np.maximum(rest["trials"], 1.0) if "trials" in rest else y
    if not family.units:
        return y
    stored = np.asarray(family.stored(y), float)
    if family.response.endswith("or 0") and np.any(y):
        return np.resize(stored[y != 0.0], len(y))  # a row without a logarithm is as one that has it
    return stored


def noiseless(
    family: Family, y: np.ndarray, offset: Any, constants: Sequence[str], rest: Iterable[str] = ()
) -> np.ndarray | None:
    """Linear predictors that fit each response exactly; None if nothing says how far responses are from their means.

    `rest`: names of further data of the rows.
    """
    if not NOISES.intersection(constants) or family.response in ("count", "label") or family.response.endswith("or 0"):
        return None
    if {"censored", "se", "trials"}.intersection(rest):
        return None
    with np.errstate(all="ignore"):
        found = LINKS[family.links[family.named[0]]].forward(measured(family, y)) - offset
    return found if np.all(np.isfinite(found)) else None


def check_names_apart(designs: Mapping[str, Design], family: Family, constants: list[str], n_cuts: int) -> None:
    """Refuse columns that are called as another parameter is."""
    first = family.named[0]
    cuts = [f"cut[{k + 1}]" for k in range(n_cuts)]
    columns = [(prefix_of(family, name), g) for name, design in designs.items() for g in design.groups]
    correlations = [name for both in correlated_sets(columns) for name in both.correlation_names]
    for name, design in designs.items():
        prefix = prefix_of(family, name)
        groups = [*correlations, *(prefix + one for g in design.groups for one in (g.name, g.sd_name))]
        groups += [prefix + one for warp in design.warps.values() for one in (warp.parameter, *warp.lengths) if one]
        others = [other for other in (*constants, *cuts)]
        others += [f"{p}: {one}" for p, d in designs.items() if p not in (first, name) for one in d.columns]
        others += [] if name == first else list(designs[first].columns)
        check_parameters([prefix + one for one in (*design.columns, *design.terms)], groups, others)


def responses(design: Design, table: Any, environment: Any, family: Family) -> tuple[np.ndarray, str]:
    """The response as the family takes it, and a sentence on how it was coded, or ""."""
    if family.arrange is not None:
        return read_categories(design, table, environment)
    if family.is_nominal and not family.is_counted:
        labels = labels_of(column := design.response_values(table, environment))
        if [str(label) for label in labels[1:]] != list(family.named):
            gone = sorted({*family.named} - {str(label) for label in labels})
            raise ValueError(
                f"the response {design.response!r} is {gone or 'another'} in rows with missing values only."
            )
        design.response_labels = np.asarray(labels)
        codes = places(labels, np.asarray(column)).astype(float)
        return codes, f"categories of {design.response} are compared with {labels[0]}"
    if family.is_counted:
        design.response_labels = None
    return design.read_response(table, environment, family.response)


def read_categories(design: Design, table: Any, environment: Any) -> tuple[np.ndarray, str]:
    """Numbers 0, 1, … of ordered categories: whole numbers, truth values or an ordered category of pandas."""
    pandas, name = import_pandas(), design.response
    column = pandas.Series(design.response_values(table, environment))
    if isinstance(column.dtype, pandas.CategoricalDtype):
        if not column.dtype.ordered:
            raise ValueError(_unordered(name, "a category without order"))
        column = column.cat.remove_unused_categories()
        codes, labels = column.cat.codes.to_numpy(), list(column.cat.categories)
    elif column.dtype.kind in "biuf" or pandas.api.types.is_numeric_dtype(column):
        codes, labels = pandas.factorize(column, sort=True)
        if any(float(label) != np.floor(float(label)) for label in labels):
            raise ValueError(f"the response {name!r} must hold whole numbers, or an ordered category, for this family.")
    else:
        raise ValueError(_unordered(name, "text"))
    if len(labels) < 2:
        raise ValueError(f"the response {name!r} is {labels[0]} in every row.")
    design.response_labels = np.asarray(labels)
    shown = [str(plain(label)) for label in labels]
    are_numbers = shown == [str(k) for k in range(len(labels))]
    said = "" if are_numbers else f"categories of {name} are numbered from 0: {' < '.join(shown)}"
    return codes.astype(float), said


def _unordered(name, what):
    return (
        f"the response {name!r} is {what}, whose order is not known: table[{name!r}] = pandas.Categorical("
        f"table[{name!r}], categories=[...], ordered=True), from the lowest to the highest."
    )


class FamilyFit(Fit):
    """A regression of any family that was sampled."""

    designs: Mapping[str, Design]  #: by parameter, that of the response first

    @property
    def further(self) -> Sequence[Any]:
        return self.coding.further if self.family.arrange is None else ()

    @property
    def coding(self) -> Coding:
        """How coordinates are reported."""
        return self.model.reported

    @property
    def constants(self) -> Sequence[str]:
        return self.coding.constants

    @property
    def n_rows(self) -> int:
        return self.coding.rows

    @property
    def predictors(self) -> list[Predictor]:
        return self.coding.predictors

    def from_priors(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        coding = self.coding
        natural = super().from_priors(values)
        if coding.n_cuts:
            first = coding.predictors[0]
            cuts = np.stack([values[name] for name in coding.cut_names], axis=-1)
            if self.family.has_ascending_cuts:  # the prior is of those that do
                cuts = np.sort(cuts)
            shift = sum((values[name] * first.centre[j] for j, name in enumerate(first.columns)), np.zeros(len(cuts)))
            natural |= {name: cuts[:, k] + shift for k, name in enumerate(coding.cut_names)}
        return natural

    def effects_of_law(
        self, natural: Mapping[str, np.ndarray], standard: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        found = super().effects_of_law(natural, standard)
        for one in self.coding.predictors:
            for k in one.warped:
                name, warp, sd = one.prefix + one.groups[k].name, one.groups[k].warp, one.prefix + one.groups[k].sd_name
                if warp.is_monotonic:  # shares are those of exponential variables
                    steps = -log_ndtr(standard[name])
                    shares = steps / steps.sum(axis=-1, keepdims=True)
                    found[name] = natural[sd][:, None] * shares.shape[-1] * shares
                else:
                    r = [np.log(natural[one.prefix + length] / unit) for length, unit in warp.lengths.items()]
                    widths = spectral_widths(np.stack(r, axis=-1), warp.eigenvalues, warp.dimension)
                    found[name] = natural[sd][:, None] * widths * standard[name]
        return found

    def unconstrained(self, natural: Mapping[str, np.ndarray]) -> np.ndarray:
        return coordinates_of(self.model, self.coding.unconstrained(natural))

    def _named(self, draws: np.ndarray, effects: bool) -> dict[str, np.ndarray]:
        columns, natural = super()._named(draws, effects), self.run.constrain(draws) if self.coding.imputed else {}
        for one in self.coding.imputed if effects else ():
            columns |= {f"{one.called}[{label}]": natural[one.called][..., k] for k, label in enumerate(one.levels)}
        return columns

    @property
    def observed(self) -> np.ndarray:
        return self.model.observed[0].y

    @property
    def row_weights(self) -> np.ndarray:
        return getattr(self.model.observed[0], "weight", np.zeros(0))

    @property
    def in_batches(self) -> bool:
        return False

    def names_of_columns(self) -> set[str]:
        return super().names_of_columns().union(*(d.names_of_columns()["fixed"] for d in self.designs.values()))

    def knows_prior(self, name: str) -> bool:
        return super().knows_prior(name) and not name.startswith("cut[")

    def log_likelihoods(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        observed = self.model.observed[0]  # rows of the table are the model's first ones
        return self.model.some_rows(rows).pointwise_log_likelihood(x) + observed.constant()[rows]

    def predicted(
        self,
        x: np.ndarray,
        table: Any,
        kind: str,
        unseen: str,
        rng: np.random.Generator,
        effects: str = "fitted",
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        coding, noise = self.coding, rng if kind == "response" else None
        if kind == "link" and self.family.is_nominal:
            raise ValueError(f"{self.family.name} has a linear predictor for each category: ask for probabilities.")
        x, shift = natural_of(self.model, x), 0.0
        if table is None:
            functionals = self._functionals(x, np.arange(self.n_rows) if rows is None else rows)
            further = [part if rows is None or np.ndim(part) == 0 else part[rows] for part in coding.further]
            shift = coding.shift(x)[:, None]
        else:
            further = []
            if self.family.arrange is None:
                further = list(read_for_predictions(self.family, self.beside, table, kind == "response").values())
            natural, found, drawn = coding.constrain(x), {}, {}
            for one in coding.predictors:
                if one.imputes is None:
                    design = self.designs[one.parameter]
                    found[one.parameter] = self.predictor_of(one, design, table, natural, unseen, effects, rng, drawn)
            functionals = coding.arranged(found, x)
        if kind == "link":
            return self.family.first_predictor(np.broadcast_arrays(*functionals), further) + shift
        return coding.responses(functionals, further, kind, noise)

    @property
    def categories(self) -> list:
        if self.family.is_counted:
            return [self.design.response, *self.family.named]
        labels = self.design.response_labels
        return [] if self.family.chances is None or labels is None else np.asarray(labels).tolist()

    def _functionals(self, x, rows):
        """Functionals of some rows of the fit, (draws, rows) each, from all of them for some draws at a time."""
        observed, size = self.model.observed[0], max(AT_ONCE // self.n_rows, 1)
        parts = [
            [np.broadcast_to(z, (len(z), self.n_rows))[:, rows] for z in self.coding.own(observed, x[k : k + size])]
            for k in range(0, len(x), size)
        ]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]
