"""From a formula and a table to a `Fit`: the model, its priors, what is wrong with the data, and how it is sampled."""

from __future__ import annotations

import functools
import math
import numbers
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pdmp.automatic.modes import warning
from pdmp.automatic.preparing import names_of
from pdmp.automatic.row_modes import beside, modes_of_rows
from pdmp.automatic.sampling import ESS, RHAT, sample
from pdmp.automatic.subsampling import SUBSAMPLED_GROUPS, SUBSAMPLED_ROWS, subsampled
from pdmp.automatic.tempering.rows import TemperedRows
from pdmp.data.formats import listed
from pdmp.data.tables import did_you_mean
from pdmp.engine.checkpoint import BUDGETS
from pdmp.engine.checks import check_seed
from pdmp.engine.result import Run
from pdmp.errors import warn
from pdmp.formulas.batches import Rows, read_in_batches
from pdmp.formulas.beside import columns_beside, read_beside, without_gaps
from pdmp.formulas.checks import (
    check_groups,
    check_identified,
    check_options,
    check_parameters,
    check_sizes,
    independence,
    leanings,
    suspected,
)
from pdmp.formulas.design import Described, Design, check_columns, check_identifiers, describe, partnered
from pdmp.formulas.families import LAWS, Priors, Scale, family_of, prior_of_constant
from pdmp.formulas.fit import Fit
from pdmp.formulas.general import (
    Asked,
    check_asked,
    check_exposure,
    cut_off,
    expanded,
    is_unknown,
    linked,
    measured,
    noiseless,
    parameters_inside,
    read_formulas,
    regress,
)
from pdmp.formulas.imputation import check_imputed
from pdmp.formulas.nonlinear import nonlinear
from pdmp.formulas.pilot import with_pilot
from pdmp.formulas.predictors import correlated_sets
from pdmp.formulas.prepared import Prepared, PreparedFamily
from pdmp.formulas.sources import client_of, open_source
from pdmp.formulas.table import (
    check_names,
    check_roles,
    complete_rows,
    import_formulae,
    linear_offset,
    read_table,
    weights_of,
)
from pdmp.formulas.totals import Totals
from pdmp.formulas.updating import Origin, added_to, middle, padded, read_further, with_rows
from pdmp.formulas.words import FUNCTIONS, check_spaces, check_words, column_of, columns_of, split, translated
from pdmp.models.families import Family, known_errors
from pdmp.models.priors import BetaBernoulli, Prior
from pdmp.models.regressions.group_information import in_their_coordinates
from pdmp.models.regressions.group_intercepts import FURTHER, GroupIntercepts, means_of
from pdmp.models.regressions.likelihoods import StudentTLaw, law_of
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.models.regressions.standardised_effects import StandardisedEffects
from pdmp.models.sums_of_squares import Cells
from pdmp.native.arguments import flag, one_of

INCLUSION = 0.5  #: prior probability that a coefficient named by `select` is not 0
INTERCEPT_ROWS, SLOPE_ROWS = 10, 50  #: rows of half of the groups or more, from which on effects are sub-sampled
#: With intercepts alone, from so many rows and groups on: there no metric is learnt that knows all correlations, and
#: flips cost less.
GROUPED_ROWS, MANY_GROUPS = 5_000, 200
SUMMED = 20_000_000  #: numbers up to which rows are replaced by few with the same sum, of which several copies are made
SAMPLERS = ("auto", "zigzag", "bps", "boomerang")


def regression(
    formula: str | Mapping[str, str],
    data: Any,
    family: str | Family = "gaussian",
    priors: Mapping[str, Prior | BetaBernoulli] | None = None,
    *,
    link: str | Mapping[str, str] | None = None,
    offset: str | None = None,
    weights: str | None = None,
    exposure: str | None = None,
    select: str | Sequence[str] | Mapping[str, float] | None = None,
    sampler: str = "auto",
    seed: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    sample: bool = True,
    **options: Any,
) -> Fit:
    r"""Bayesian regression of a formula on a table.

    Rows of weight 0 are left out, and so are rows with a missing value in a column that is used, unless it is imputed.
    Columns are standardised inside, and reported in their own units. Effects of groups are normal, and each column has
    a standard deviation of its own. Effects of one term, ``(1 + x | g)``, are correlated, with an LKJ prior; those of
    ``(1 + x || g)``, or of two terms, are independent. With an identifier, ``{"y": "y ~ x + (1 + x |p| g)", "sigma": "~
    (1 |p| g)"}``, those of all terms and formulas that have the same one and the same grouping are correlated. Effects
    are centred as far as the data determine each effect (`pdmp.models.regressions.standardised_effects`), or wholly if
    rows are sub-sampled, see Notes.

    Parameters
    ----------
    formula : str, or dict of str to str
        For example ``"visits ~ age * treated + scale(income) + (1 | clinic)"``, as the package formulae reads it. It
        computes with floats, and calls any function that your code knows by its name: it is code, so read a formula
        that others have written. A dict has formulas for further parameters of the family too: ``{"y": "y ~ x",
        "sigma": "~ x + (1 | g)"}``; their coefficients are called ``"sigma: x"``. The response may be ``k |
        trials(n)``, ``y | cens(c)`` or ``y | cens(c, upper)``, ``y | trunc(lb=0, ub=u)``, or, with known standard
        errors, ``y | se(s)`` or ``y | se(s, sigma=True)``. Terms may be ``s(x)``, ``t2(x, z)``, ``gp(x)`` and ``mo(x)``
        (`pdmp.formulas.smooths`), and a group may be ``mm(g, h)``. Missing values of ``mi(x)`` are imputed by a formula
        of x, ``{"y": "y ~ mi(x) + z", "x": "x | mi() ~ z"}`` (`pdmp.formulas.imputation`). Where names in the formula
        of the response have formulas, it is an expression of them and of columns, ``{"y": "y ~ a * exp(-b * x)", "a":
        "~ 1", "b": "~ z"}`` (`pdmp.formulas.nonlinear`).
    data : pandas.DataFrame, table of Polars or Arrow, dict of columns, Dask DataFrame, or path
        A path is of a CSV or a Parquet file, a folder of Parquet files, or a glob (``"2026-*.parquet"``). Files from
        256 MB on, folders, globs and Dask DataFrames are read in batches, file after file in sorted order
        (`pdmp.formulas.batches`), their coded columns kept in memory-mapped files; categories and groups have their
        levels in order then, whatever the file says, and functions of whole columns, ``scale(x)``, are refused. With
        ``executor=distributed.Client(...)`` all passes over such data run on its workers: the result is bitwise the
        same without them, and for any number of them.
    family : str or pdmp.Family, default "gaussian"
        One of `pdmp.families`, by name, or "categorical" or "multinomial". "gaussian", "student_t", "bernoulli",
        "probit", "poisson" and "negative_binomial", with one formula, have compiled regressions of their own; the
        others are sums of terms, of tables in memory, without `select`, `sampler` and `folder`. With effects of groups
        that are sub-sampled, see Notes, they have such regressions too.
    priors : dict of str to Prior, optional
        Of `pdmp.models.priors`, by the name of a column or a term (``"age"``), ``"Intercept"``, ``"sd(g)"``,
        ``"sd(x|g)"``, ``"cor(g)"`` (an `LKJ`, of all correlations of a term, or of terms with one identifier),
        ``"sigma"``, ``"nu"`` (Student-t), ``"alpha"`` (negative binomial), in the units of the data. The intercept's
        prior is for rows at the means of the other columns. Let s be the standard deviation of the response for
        "gaussian" and "student_t", and 1 for others. The defaults are Normal(0, 2.5 s / sd of the column) for
        coefficients, Normal(link of the mean response, 2.5 s) for the intercept, HalfNormal(2.5 s / sd of the column)
        for standard deviations, LKJ(1) for correlations, HalfStudentT(4, s) for sigma, Gamma(2, 10) for nu and
        HalfCauchy(1) for alpha. Other parameters have the defaults of their `pdmp.Family`, on the scale of the link if
        that is not the logarithm. In the formula of a log-linked parameter beside the first, 1 replaces 2.5. A
        parameter of an expression must be given a prior, by its name, in whose unit the others of its formula are. The
        summary names all priors.
    link : str, or dict of str to str, optional
        The link of the first parameter, or a dict of links, in place of the family's: "log", "identity", "sqrt" or
        "inverse" for a positive parameter, "logit", "probit" or "cloglog" for one between 0 and 1, "identity", "log" or
        "inverse" for other numbers; "identity", "log" or "logit" for a parameter of an expression.
    offset : str, optional
        A column that is added to the linear predictor.
    weights : str, optional
        A column that multiplies each row's log-likelihood, not negative. Rows of weight 0 are left out, whatever they
        hold, and a row of weight 2 counts as two rows: in units, in the means and standard deviations of default
        priors, and in "the means of the other columns". Knots of smooths, and `Fit.loo`, count each row once.
    exposure : str, optional
        For counts: a positive column whose logarithm is added to the linear predictor.
    select : "all", sequence of str, or dict of str to float, optional
        Spike and slab: columns or terms whose coefficients are exactly 0 with the prior probability 1/2, or 1 minus the
        number given for each; "all" means all but the intercept. A term with several columns, such as a category, is in
        or out as a whole, unless its columns are named one by one. The only group effects may be those of one grouping
        in Notes. ``priors={"inclusion": BetaBernoulli(1, 1)}`` has one unknown probability for all coefficients
        instead, so that their number has a prior of its own.
    sampler : {"auto", "zigzag", "bps", "boomerang"}, default "auto"
        What samples the posterior, at one row a proposal and with any number of rows: a Zig-Zag process, the Bouncy
        Particle Sampler or the Boomerang sampler; with `select` their sticky versions, whose coefficients enter and
        leave by reversible jumps too. "bps" and "boomerang" are for regressions without group effects. For "auto" see
        Notes; with `select` and without groups it is "bps". If rows say so little that bounds on single rows are far
        above their rates, it is then a sticky Zig-Zag process with gradients from all rows, or "zigzag" for terms of
        several columns. All have the same law; the summary names the one that was used.
    seed : int, optional
        The same seed gives the same fit.
    folder : path, optional
        The folder for coded columns of data that are read in batches, which are kept as long as the fit; by default
        that of temporary files. With a Dask client it must be given, and all workers must share it.
    sample : bool, default True
        False returns a `pdmp.formulas.Prepared`, which prints its priors, has ``prior_predictive()``, and is sampled by
        ``sample()``.
    **options
        Arguments of `pdmp.sample`: budgets, ``chains``, ``executor``, and so on. By default the run ends when each mean
        and standard deviation has 400 effective draws. ``tempered=True`` is for posteriors with several modes: ``run``
        of the fit has their shares, `Run.modes`.

    Returns
    -------
    Fit

    Warns
    -----
    UserWarning
        If columns are sums of others, or separate labels, counts of 0 or censored rows: the prior decides there.

    Raises
    ------
    ImportError
        Without pandas or formulae.
    ValueError, TypeError
        For a formula, a table, a link or a prior that does not fit: the text names the column or the parameter, or says
        what to write in place of a term of another tool, such as ``te(x, z)``; for a standard
        deviation that the data cannot tell from another, such as that of a group for each row from sigma, where neither
        has a prior in `priors`; for data that change while they are read.
    FileNotFoundError
        For data, or a `folder`, that are not there, also for a worker of a Dask cluster.
    RuntimeError
        If a pass over the data has lost worker after worker of a Dask cluster, or for an hour all of them.

    See Also
    --------
    pdmp.sample : Any other model.
    pdmp.models.priors.Normal : One of the priors.

    Notes
    -----
    From 50,000 rows on, Zig-Zag processes that look at one row a proposal sample tables, and are exact all the same
    [1]_ [2]_ (`pdmp.processes.regression_zigzag`). Their cost does not grow with the number of rows, except for the
    set-up, a few passes over them. A table may have effects of one grouping: ``(1 | g)`` if half of the groups have at
    least 10 rows, from 5,000 rows on if there are 200 groups or more; and ``(1 + x || g)``, x being among the fixed
    columns, if half of them have at least 50. So may ``(1 + x | g)`` of a table in memory, whose correlation is that of
    a regression of one effect on the other [3]_. A table in memory is sampled otherwise if its rows say so little of
    the effects that half of them keep four fifths of their prior variance or more, and they correlate, or groups have
    few rows, on average, for how long their standard deviation then takes. Without groups, and if the correlations of
    the coefficients have a condition number above 10, it is the Boomerang sampler,
    `pdmp.processes.regression_boomerang`. All this, but for what correlates, holds for tables in memory and for those
    read in batches.

    Intercepts of crossed groupings, ``(1 | g) + (1 | h)``, of tables in memory are sampled so if half of the groups of
    each have at least 10 rows, and a unit of time looks at fewer than a tenth of all rows. A flip there costs an
    addition for each group that shares a row with its own, for which two groupings keep 24 bytes a row.

    Gaussian responses of a table in memory with effects of groups are sampled otherwise. Their sum depends on the rows
    of a group, or of a combination of groups, by a few numbers: where a quarter as many rows or fewer have the sum of
    all (`pdmp.models.sums_of_squares`), each gradient is of these, by Hamiltonian Monte Carlo, whatever the effects.

    Effects of groups are sub-sampled of any other family with one linear predictor and at most two parameters besides,
    one of your own too, and with what stands beside the response, such as trials, where few of all rows are looked at.
    Other group effects, and tables whose rows say too little of a dispersion, are sampled with full gradients, by
    Hamiltonian Monte Carlo; the notes of the summary say which sampler it was.

    References
    ----------
    .. [1] Bierkens, Fearnhead & Roberts (2019), The Zig-Zag process and super-efficient sampling for Bayesian analysis
       of big data, Ann. Statist. 47.
    .. [2] Sen, Sachs, Lu & Dunson (2020), Efficient posterior sampling for high-dimensional imbalanced logistic
       regression, Biometrika 107.
    .. [3] Pourahmadi (1999), Joint mean-covariance models with applications to longitudinal data: unconstrained
       parameterisation, Biometrika 86 (`pdmp.models.regressions.group_intercepts`).

    Examples
    --------
    >>> import pdmp
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8], "x": [0, 1, 2, 3, 4]}
    >>> fit = pdmp.regression("y ~ x", table, seed=1)  # doctest: +SKIP
    >>> fit.summary()  # doctest: +SKIP
    >>> fit.predict({"x": [5]}).mean()  # doctest: +SKIP
    """
    found = family_of(family)
    inside = parameters_inside(formula, found)
    links_inside = {name: link[name] for name in inside if name in link} if isinstance(link, Mapping) else {}
    link = {name: one for name, one in link.items() if name not in inside} if links_inside else link
    found = linked(found, link, bool(inside))
    one_of("sampler", sampler, SAMPLERS)
    check_arguments(priors, {"offset": offset, "weights": weights, "exposure": exposure}, select)
    check_options(options)
    Environment = import_formulae("environment").Environment  # noqa: N806 - a class
    environment = Environment.capture(0, reference=1).with_outer_namespace({"np": np, **FUNCTIONS})
    seed = check_seed(seed, None)
    roles = {"offset": offset, "weights": weights, "exposure": exposure}
    asked = read_formulas(formula, found)
    for role, column in asked.response.roles.items():
        if roles[role] is not None:
            raise ValueError(f"`{role}` is given twice: as an argument, and beside the response of `formula`.")
        roles[role] = column
    asked = translated_formulas(asked, data, roles, environment)
    found, asked = cut_off(found, asked)
    if "se" in asked.response.data:
        found = known_errors(found, asked.response.sigma)
        if "sigma" in asked.sides and not asked.response.sigma:
            raise ValueError("`formula`: `| se(s)` leaves no sigma; `| se(s, sigma=True)` has one.")
    if asked.expression is not None:
        found, link = nonlinear(found, asked.expression, links_inside), None
    check_imputed(found, asked.sides, asked.imputed, column_of(asked.response.text), environment)
    if is_unknown(found):
        check_asked(asked, found, priors, link)
        found, asked = expanded(found, asked, data, roles["weights"])
    flag("sample", sample)
    refused = {"select": select, "sampler": None if sampler == "auto" else sampler, "folder": folder}
    refused = {name: value for name, value in refused.items() if value is not None}

    def of_terms() -> tuple[Fit, Callable[[], Fit]]:
        return regress(asked, data, found, priors, roles, link, environment, seed, options)

    def in_general() -> Fit:
        general, make = of_terms()
        return make() if sample else PreparedFamily(general, seed, make)

    is_plain = len(asked.sides) == 1 and not asked.imputed and asked.expression is None
    law = law_of(found, asked.response.data) if is_plain else None
    if law not in LAWS.values():
        for name in refused:
            others = listed(list(LAWS), 10)
            raise ValueError(f"`{name}` is for the families {others}, with one formula and their own links.")
        if law is None or "|" not in asked.sides[found.named[0]] or open_source(data) is not None:
            return in_general()
        data = read_table(data)
        if len(data) < min(GROUPED_ROWS, SUBSAMPLED_ROWS):
            return in_general()
        check_asked(asked, found, priors, link)
    sides = asked.response.text, asked.sides[found.named[0]]
    described = describe(asked.formula if sides == split(asked.formula) else " ~ ".join(sides))
    if beyond := described.beyond():
        for name in refused:
            raise ValueError(f"`formula`: {beyond[0]} is not estimated with `{name}`.")
        return in_general()
    if described.correlates():
        check_independent(data, refused)
        data = read_table(data)
        if len(data) < SUBSAMPLED_ROWS or options.get("tempered"):
            return in_general()
    made = make_model(
        described,
        data,
        found,
        priors,
        roles["offset"],
        roles["weights"],
        roles["exposure"],
        select,
        environment,
        client_of(options.get("executor")),
        folder,
        sampler,
        options.get("progress"),
        asked.response.data,
        summed=sampler == "auto" and select is None and not options.get("tempered"),
    )
    if made is None:
        return in_general()
    model, design, priors_used, notes = made
    if any(g.partners for g in design.groups) and not any(g.partners for g in model.groups):
        check_independent(data, refused)
        return in_general()
    origin = Origin(environment, roles, options, notes, select is not None, sampler)
    columns = {name: roles[name] for name in ("offset", "exposure")}
    fit = Fit(asked.formula, found, model, None, design, priors_used, notes, columns, asked.response.data)
    make = functools.partial(sampled, fit, origin, seed)
    if fit.correlated:  # whose full gradients are those of sums of terms
        make = functools.partial(sampled, fit, origin, seed, otherwise=lambda: of_terms()[1]())
        return make() if sample else PreparedFamily(of_terms()[0], seed, make)
    return make() if sample else Prepared(fit, seed, make)


def sampled(fit: Fit, origin: Origin, seed: int, otherwise: Callable[[], Fit] | None = None) -> Fit:
    """A fit whose run is None, sampled; or what `otherwise` returns, where it is given and rows are not sub-sampled."""
    found = sample_model(fit.model, seed, origin.selects, origin.run_options, origin.sampler, otherwise is not None)
    if isinstance(found, str):
        whole = otherwise()
        return whole.replaced(notes=[*whole.notes, f"rows are not sub-sampled: {found}"])
    run, said = found
    moved = run.process.model  # with the coordinates in which it was sampled
    said += [
        f"effects {g.name} of {len(g.levels):,} groups are {how}"
        for g, how in zip(fit.model.groups, moved.centring(), strict=True)
    ]
    said += independence(fit.model.groups)
    further = None if fit.in_batches else functools.partial(with_rows, extended_model, sampled, origin)
    return fit.replaced(model=moved, run=run, notes=[*origin.notes, *said], with_rows=further)


def extended_model(origin: Origin, fit: Fit, data: Any) -> tuple[dict[str, Any], list[str]]:
    """What is another of a fit with further rows, and notes."""
    before = fit.model.as_effects() or fit.base.as_independent()
    table, notes = read_further(fit, data, origin, {"": fit.design})
    design, X, offset, groups, said = added_to(fit.design, before.groups, table, origin.roles)
    p = before.n_fixed
    y = design.read_further_response(table, origin.environment, fit.family.response, before.y)
    design.X = np.concatenate([np.asarray(before.X) * before.scale + before.centre, X])
    kind = kind_of(groups, design, len(before.y) + len(y), origin.selects, origin.sampler)
    design.X = design.X[:0]
    design.kept = fit.kept.extended(table, [design])
    model = kind(
        X,
        y,
        before.likelihood,
        before.columns,
        before.priors,
        groups,
        before.dispersion_priors,
        intercept=before.intercept,
        offset=offset,
        weights=weights_of(table, origin.roles),
        beside=read_beside(fit.beside, table),
        response=before.response,
        inclusion=None if before.inclusion is None else before.inclusion[:p],
        together=before.together,
        model_prior=before.model_prior,
        before=before,
        **correlation_of(kind, before.groups, fit.priors),
    )
    model.initial = model.unconstrained(padded(middle(fit), groups))
    return {"model": model, "design": design, "kept": design.kept}, [*notes, *said]


def check_independent(data: Any, refused: Mapping[str, Any]) -> None:
    """Refuse correlations of effects of groups in files, and with arguments, `refused`, of regressions without them."""
    what = [f"with `{name}`" for name in refused]
    what += ["of data that are read in batches"] if open_source(data) is not None else []
    if what:
        raise ValueError(
            f"`formula`: correlations of effects, as of (1 + x | g), are not estimated {what[0]}: write (1 + x || g), "
            "whose effects are independent."
        )


def translated_formulas(asked: Asked, data: Any, roles: Mapping[str, str | None], environment: Any) -> Asked:
    """The formulas as formulae reads them; a `ValueError` for terms of other tools that there are not."""
    for text in (asked.response.text, *asked.sides.values(), *asked.imputed.values()):
        check_words(text, environment)
        check_spaces(text, columns_of(data))
    response = asked.response._replace(text=translated(asked.response.text))
    used = [column_of(response.text), *map(column_of, response.data.values()), *filter(None, roles.values())]
    sides = {name: translated(side, columns_of(data), used) for name, side in asked.sides.items()}
    imputed = {name: translated(side, columns_of(data), [*used, name]) for name, side in asked.imputed.items()}
    return asked._replace(response=response, sides=sides, imputed=imputed)


def check_arguments(priors: Any, roles: Mapping[str, Any], select: Any) -> None:
    """Refuse arguments of `regression` that are no names, or no dict, before the data are read."""
    if priors is not None and not isinstance(priors, Mapping):
        raise TypeError(f'`priors` must be a dict such as {{"x": Normal(0, 1)}}, got {type(priors).__name__}.')
    for role, name in roles.items():
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"`{role}` must be the name of a column of `data`, got {type(name).__name__}: make it a column first."
            )
    wanted = '`select` must be "all", names of columns or terms, or a dict of them and probabilities'
    if isinstance(select, Mapping):
        for name, probability in select.items():
            if isinstance(probability, bool) or not isinstance(probability, (numbers.Real, np.number)):
                raise TypeError(f"`select`: the probability of {name!r} must be a number, got {probability!r}.")
            if not 0.0 < probability < 1.0:
                raise ValueError(f"`select`: the probability of {name!r} must be between 0 and 1, got {probability}.")
    if isinstance(select, str):
        if select != "all":
            raise ValueError(f"{wanted}, got {select!r}.")
    elif select is not None:
        if not isinstance(select, Iterable) or not all(isinstance(name, str) for name in select):
            raise TypeError(f"{wanted}, got {select!r}.")
        if not list(select):
            raise ValueError(f"`select` names no column; {wanted[9:]}.")


def make_model(
    described: Described,
    data: Any,
    family: Family,
    priors: Mapping[str, Prior | BetaBernoulli] | None,
    offset: str | None,
    weights: str | None,
    exposure: str | None,
    select: Any,
    environment: Any,
    client: Any = None,
    folder: str | os.PathLike[str] | None = None,
    sampler: str = "auto",
    progress: bool | None = False,
    beside: Mapping[str, str] = MappingProxyType({}),
    summed: bool = False,
) -> tuple[MixedRegression, Design, dict[str, Prior], list[str]] | None:
    """The model of a formula and a table, its coding, its priors by name, and notes; see `regression`.

    None for a family that is not of the table `LAWS`, where its rows are not those of `GroupIntercepts`; and, if
    `summed`, for normal responses with effects of groups, where few rows have the sum of all. Where rows are not those
    of `GroupIntercepts`, correlations are left out. `beside`: what stands beside the response.
    """
    roles, law = {"offset": offset, "weights": weights, "exposure": exposure}, law_of(family, beside)
    rest: dict[str, np.ndarray] = {}
    check_exposure(family, exposure)
    check_parameters(sorted(described.fixed), (), law.dispersions)  # before any pass over the data
    source, rows = open_source(data), None
    if source is not None:
        check_identifiers([described], source.columns)
        design, rows, totals, notes = read_in_batches(
            source, described, family.response, roles, environment, client, folder, progress
        )
        y, added = rows.column("y"), rows.column("offset")
    else:
        if folder is not None:
            raise ValueError("`folder` is for data that are read in batches: a folder, a large file, a Dask DataFrame.")
        names = described.names.union(columns_beside(beside).values())
        table = without_gaps(read_table(data), beside)
        check_identifiers([described], table.columns)
        check_names(names, table, "`formula`")
        used = names | check_roles(roles, table)
        whole = table
        table, said = complete_rows(table, used, weights=weights)
        check_columns(described, table, environment, whole)
        design = Design(described, table, environment, in_place=select is None)
        known = kind_of(design.groups, design, len(table), False, sampler) is GroupIntercepts
        if law not in LAWS.values() and not known:
            return None
        if summed and law is LAWS["gaussian"] and design.groups:
            width = len(design.columns) + len(design.groups)
            levels = np.column_stack([g.level for g in design.groups])
            if len(table) * width <= SUMMED and Cells.of(levels).are_few(len(table), width):
                return None
        y, coded = design.read_response(table, environment, family.response)
        notes = [*said, *filter(None, [coded])]
        added = design.offset
        if offset is not None or exposure is not None:
            added = added + linear_offset(table, offset, exposure)
        rest = read_beside(beside, table)
        weight = weights_of(table, roles)
        totals = Totals.of(design, measured(family, y, rest), added, weight)
    partnered({"": design})
    together = correlated_sets(("", g) for g in design.groups)
    are_two = [one.width for one in together] == [len(design.groups)] == [2]
    sets = together if source is None and known and are_two else []
    names = [name for g in design.groups for name in (g.name, g.sd_name)]
    names += [name for one in sets for name in one.correlation_names]
    check_parameters([*design.columns, *design.terms], names, law.dispersions)
    notes += design.baselines()
    if family.response == "count" and len(y) and np.max(y) <= 1.0:
        notes.append("the response is 0 or 1 in every row: if it is a label, its family is bernoulli")
    check_sizes(design, totals)
    model_prior, priors = prior_of_models(priors, select)
    scale, named = Scale(family, family.named[0], totals), Priors(priors)
    of_columns = scale.of_columns(design, named)
    groups = []
    for k, g in enumerate(design.groups):
        column = g._replace(prior=scale.of_effects(k), rows=totals.sizes[k], partners=g.partners if sets else ())
        groups.append(column._replace(prior=named.find(column.prior, column.sd_name)))
    of_sets = {
        name: named.correlation(one.correlation_names, one.grouping, "")
        for one in together  # priors of those that are left out here are for sums of terms
        for name in one.correlation_names
    }
    unit = totals.y_sd or 1.0
    of_law = [named.find(prior_of_constant(family, name, unit), name) for name in law.dispersions]
    named.finish()
    check_groups(groups, notes)
    check_identified(
        groups,
        law.dispersions[0] if len(law.dispersions) == 1 and family.response not in ("count", "label") else None,
        weights,
        None if rows is not None else weight,
        priors or {},
    )
    of_sets = of_sets if sets else {}
    names = [*design.columns, *(g.sd_name for g in groups), *of_sets, *law.dispersions]
    by_name = dict(zip(names, [*of_columns, *(g.prior for g in groups), *of_sets.values(), *of_law], strict=True))

    if model_prior is not None:
        notes.append(f"inclusion ~ {model_prior}")
    exact = noiseless(family, y, added if totals.any_offset else 0.0, law.dispersions, rest)
    leans = leanings(family, family.named[0], y, rest)
    notes += suspected(design, of_columns, totals, groups, priors or {}, leans, exact=exact)
    kind = kind_of(groups, design, totals.rows, select is not None, sampler, rows)
    if select is not None and groups and kind is MixedRegression:
        raise ValueError(f"`select` is for regressions without group effects, or with {SUBSAMPLED_GROUPS}.")
    coded = None
    if rows is not None:
        means = means_of(groups, design.intercept, design.columns) if kind is GroupIntercepts else None
        coded = rows.standardised(design, totals, law, law.has_unit, weights is not None, means)
        y, added, weight = np.zeros(0), None, None
    model = kind(
        design.X,
        y,
        law,
        design.columns,
        of_columns,
        groups,
        of_law,
        intercept=design.intercept,
        offset=added if totals.any_offset else None,
        weights=weight,
        beside=rest,
        scale_response=law.has_unit,
        response=design.response,
        inclusion=None if select is None else inclusion_of(select, design, model_prior),
        together=None if select is None else terms_of(select, design),
        model_prior=model_prior,
        coded=coded,
        **correlation_of(kind, groups, of_sets),
    )
    design.X = np.zeros((0, len(design.columns)))  # the model has a standardised copy
    return model, design, by_name, notes


def kind_of(
    groups: Sequence[GroupColumn], design: Design, n: int, selects: bool, sampler: str, rows: Rows | None = None
) -> type[MixedRegression]:
    """In which coordinates n rows with these groups are sampled."""
    many = sampler != "auto" or n >= SUBSAMPLED_ROWS
    grouped = len(groups) == 1 and n >= GROUPED_ROWS and len(groups[0].levels) >= MANY_GROUPS
    crossed = len({g.grouping for g in groups}) > 1
    asked = many and not selects and rows is None if crossed else selects or many or grouped
    return GroupIntercepts if asked and has_intercepts(groups, design, rows) else MixedRegression


def correlation_of(kind: type[MixedRegression], groups: Sequence[GroupColumn], priors: Mapping) -> dict[str, Any]:
    """The argument of `GroupIntercepts` for effects that correlate."""
    for one in correlated_sets(("", g) for g in groups):
        if kind is not GroupIntercepts:
            raise ValueError("`formula`: correlated effects of fewer rows in a group than the fit has: fit all rows.")
        return {"correlation": priors[one.correlation_names[0]]}
    return {}


def has_intercepts(groups: Sequence[GroupColumn], design: Design, rows: Rows | None = None) -> bool:
    """Whether the effects are those that `GroupIntercepts` is for, and the data say what each is."""
    means = means_of(groups, design.intercept, design.columns)
    if means is None:
        return False
    if FURTHER in means:
        return all(g.label == "1" and g.usual_rows >= INTERCEPT_ROWS for g in groups)
    if groups[0].usual_rows < (INTERCEPT_ROWS if len(groups) == 1 else SLOPE_ROWS):
        return False
    if rows is not None:
        return rows.are_fixed(means)
    return all(np.allclose(g.value, design.X[:, j], 1e-9) for g, j in zip(groups[1:], means[1:], strict=True))


def prior_of_models(
    priors: Mapping[str, Any] | None, select: Any
) -> tuple[BetaBernoulli | None, Mapping[str, Any] | None]:
    """The prior of which coefficients are not 0, unless they are independent, and the other priors."""
    law = (priors or {}).get("inclusion")
    if not isinstance(law, BetaBernoulli):
        return None, priors
    if select is None or isinstance(select, Mapping):
        raise ValueError(f'`priors`: {law} is for `select="all"`, or names without probabilities of their own.')
    return law, {name: prior for name, prior in priors.items() if name != "inclusion"}


def inclusion_of(select: Any, design: Design, model_prior: BetaBernoulli | None = None) -> np.ndarray:
    """Prior inclusion probabilities of the columns, 1 for those that are always in the model."""
    free = [name for j, name in enumerate(design.columns) if j != design.intercept]
    usual = model_prior.a / (model_prior.a + model_prior.b) if model_prior else INCLUSION
    given = select if isinstance(select, Mapping) else dict.fromkeys(free if select == "all" else select, usual)
    if not free:
        raise ValueError(f"`select`: the formula {design.formula!r} has no column that can be left out.")
    inclusion = np.ones(len(design.columns))
    for name, probability in given.items():
        places = [design.columns.index(name)] if name in free else design.terms.get(name, [])
        if not places or name == "Intercept":
            close = did_you_mean(name, free)
            raise ValueError(f"`select` names {name!r}, which is no column that can be left out{close}")
        inclusion[places] = probability
    return inclusion


def terms_of(select: Any, design: Design) -> dict[str, list[int]]:
    """The terms of several columns that `select` names, or "all": their coefficients are 0 together."""
    several = {name: places for name, places in design.terms.items() if len(places) > 1}
    if select == "all":
        return several
    single = {design.columns.index(name) for name in select if name in design.columns}
    found = {name: places for name, places in several.items() if name in select}
    for name, places in found.items():
        for j in single.intersection(places):
            raise ValueError(f"`select` names the term {name!r}, and its column {design.columns[j]!r} besides.")
    return found


def sample_model(
    model: MixedRegression, seed: int, selects: bool, options: dict[str, Any], sampler: str = "auto", only: bool = False
) -> tuple[Run, list[str]] | str:
    """Sample the model by the process that suits it, or by the one asked for; the run, and notes on how.

    With `only` it says why not, where rows are not sub-sampled.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if sampler not in ("auto", "zigzag") and model.n_groups:
        raise ValueError(f'`sampler`: {sampler!r} is for regressions without group effects; "zigzag" takes them.')
    tempered = options.get("tempered", False)
    if tempered and (selects or sampler != "auto"):
        raise ValueError(
            "`tempered` does not go with "
            + (
                "`select`: leave it out, fit.inclusion() has the probabilities of models."
                if selects
                else f"`sampler={sampler!r}`, as its rungs are explored by paths of HMC: leave one out."
            )
        )
    many = model.n_data >= SUBSAMPLED_ROWS or selects or model.n_groups and model.has_linear_rows
    if sampler == "auto" and (tempered or not many):
        run = sample(moved(model), seed=seed, **options)
        every = "" if isinstance(run.process, TemperedRows) else "each gradient is from all rows: "
        return run, [f"{every}{run.info.get('choice')}"]
    process, starts, said = subsampled(model, selects, sampler)
    if process is None:
        if selects:
            raise ValueError(f"`select` cannot be sampled: {said}.")
        if sampler != "auto":
            raise ValueError(f"`sampler` cannot be {sampler!r}: {said}.")
        if only:
            return said
        run = sample(moved(model), seed=seed, **options)
        return run, [f"rows are not sub-sampled: {said}; each gradient is from all rows: {run.info.get('choice')}"]
    cautions = other_modes(model, process, seed)
    first = process
    process, passes = with_pilot(process, starts, seed)
    if passes > 0.0:
        process.prepared = process.prepared._replace(gradients=math.ceil(passes))
    said += "" if process is first else "; a pilot run moved its anchor"
    chains = options.get("chains", 4)
    if not set(BUDGETS) & set(options):
        options = {"ess": ESS, "rhat": RHAT if chains > 1 else None} | options
    options = {"warmup": 0.2, "chains": chains} | options
    if "initial" not in options:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**32 - 2,)))
        options["initial"] = starts(chains, rng)
    process.prepared = process.prepared._replace(cautions=(*process.prepared.cautions, *cautions))
    return sample(process, seed=seed, **options), [f"sampled by {said}"]


def other_modes(model: MixedRegression, process: Any, seed: int) -> list[str]:
    """What is warned of where rows of a law that is not log-concave may leave several modes: one is sampled."""
    if model.likelihood is not StudentTLaw or model.n_groups or model.coded is not None:
        return []
    known, _ = modes_of_rows(model, process.anchor, np.random.SeedSequence(seed, spawn_key=(2**32 - 4,)))
    here, found = beside(known, process.anchor)
    text = warning(found, here, names_of(model))
    if text is not None:
        warn(text)
    return [] if text is None else [text]


def moved(model: MixedRegression) -> MixedRegression | StandardisedEffects:
    """The model for full gradients: its effects are as far centred as the data say what each is."""
    effects = model.as_effects() if model.n_groups else None
    return model if effects is None else in_their_coordinates(effects)
