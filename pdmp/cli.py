"""The command ``pdmp``: compare, sample, tune, fit, list."""

from __future__ import annotations

import concurrent.futures
import contextlib
import datetime
import functools
import gc
import importlib.util
import inspect
import json
import math
import multiprocessing
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from typer.core import TyperCommand

from pdmp import __version__, comparison, data, formulas, plots, tuning
from pdmp.automatic.sampling import sample as run_sample
from pdmp.data.formats import is_number
from pdmp.data.memory import in_words
from pdmp.data.tables import did_you_mean
from pdmp.engine import checks, result
from pdmp.errors import SamplingError
from pdmp.models.priors import read_prior
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.native import arguments

DEFAULT_PROBLEM = "breast_cancer"
PRIOR_SCALE = 1.0
TERMS = 3e7  #: data terms that each chain evaluates by default, within the limits on passes below
LEAST_PASSES, MOST_PASSES = 200, 10_000
QUICK = 10  #: divides the data passes under --quick
TUNING = 10  #: a run has so many times the data passes of the setting that wins a tuning
REFERENCE_ESS = 3_000
PREDICTED_ROWS = 10_000  #: that are predicted at a time, for the memory
#: Arguments of functions that the command has as options: messages are to name these.
ARGUMENTS = (
    *("data_passes", "gradients", "ess", "rhat", "chains", "seed", "budget", "target"),
    *("positive", "above", "drop", "drop_constant", "drop_missing", "index", "one_hot", "sep"),
    *("family", "offset", "exposure", "weights", "select", "sampler"),
)
MOST_NUMBERS = 2**28  #: entries of a sparse table made dense, zeros included: 2 GB

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Monte Carlo with piecewise-deterministic processes and stochastic gradients.",
)

Problem = Annotated[
    str | None,
    typer.Option(
        help="A built-in data set; `pdmp list` names them. [default: breast_cancer]",
        autocompletion=lambda: list(data.PROBLEMS),
    ),
]
Sampler = Annotated[
    str, typer.Argument(help="Its name, as in `pdmp list`.", autocompletion=lambda: sorted(comparison.registered()))
]
File = Annotated[pathlib.Path | None, typer.Argument(metavar="[FILE]", help="The same as --data FILE.")]
Table = Annotated[
    pathlib.Path | None,
    typer.Option("--data", metavar="FILE", help="A table of your own: CSV with a header, Parquet, NPZ, NPY, LIBSVM."),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of FILE to predict; it has two values. Of an NPY matrix its number (-1: the last), or another "
        "NPY file. An NPZ file has `y`, and LIBSVM its own.",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(metavar="VALUE", help="Of a target with more values: this one is label 1, and all others are 0."),
]
Above = Annotated[
    float | None, typer.Option(metavar="NUMBER", help="Of a target of numbers: those above this one are label 1.")
]
OneHot = Annotated[bool, typer.Option("--one-hot", help="Encode the columns of FILE with text as zeros and ones.")]
DropConstant = Annotated[bool, typer.Option("--drop-constant", help="Leave out columns of FILE that never change.")]
NoIntercept = Annotated[bool, typer.Option("--no-intercept", help="Do not add a column of ones to FILE.")]
Drop = Annotated[
    list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Leave out this column; may be repeated.")
]
DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out the rows of FILE with missing values.")]
Index = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Leave out this column, which numbers or names the rows. That of pandas or R is recognised.",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(metavar="CHARACTER", help="Between the values of a CSV file; `\\t` is a tab. [default: recognised]"),
]
AsIs = Annotated[bool, typer.Option("--as-is", help="Do not standardise the columns of FILE.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="N|ADDRESS",
        help="Where the chains run: in N processes, or on the Dask cluster with a scheduler at ADDRESS.",
    ),
]
Passes = Annotated[float | None, typer.Option(help="Data passes of each chain. [default: by the size of the data]")]
Seed = Annotated[int, typer.Option(help="Same seed, same numbers.")]
Chains = Annotated[int, typer.Option(min=1, help="Number of chains.")]
Out = Annotated[pathlib.Path, typer.Option(metavar="DIR", help="Where the picture and the numbers go.")]
Save = Annotated[pathlib.Path | None, typer.Option(metavar="RUN.npz", help="Keep the run; pdmp.load reads it.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print what was found as JSON, for scripts; all else goes to stderr.")
]


class UserError(Exception):
    """An error that the user can correct: one line, exit code 2."""


class _Once(TyperCommand):
    """A command that refuses an option which is given twice: the last value would count, without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        valued = [one for one in order if one.param_type_name == "option" and not (one.multiple or one.is_flag)]
        for option in valued:
            if valued.count(option) > 1:
                several = "; several names stand between commas" if option.name in ("samplers", "select") else ""
                raise UserError(f"{_option(option.opts[0].lstrip('-'))} is given twice{several}.")
        return super().parse_args(ctx, args)


def _show_version(asked):
    if asked:
        typer.echo(f"pdmp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
):
    pass


def _dataset(
    file: File = None,
    problem: Problem = None,
    table: Table = None,
    target: Target = None,
    positive: Positive = None,
    above: Above = None,
    one_hot: OneHot = False,
    drop_constant: DropConstant = False,
    drop: Drop = None,
    drop_missing: DropMissing = False,
    index: Index = None,
    sep: Sep = None,
    no_intercept: NoIntercept = False,
    as_is: AsIs = False,
):
    """The table that the options of a command describe."""
    options = {name: value for name, value in locals().items() if name not in ("file", "problem", "table")}
    if table is not None and file is not None:
        raise UserError("give FILE or --data FILE, not both.")
    path = file if table is None else table
    if problem is not None and path is not None:
        raise UserError("give --problem or --data, not both.")
    if path is None:
        for name, value in options.items():
            if value is not None and value is not False:
                raise UserError(f"{_option(name)} goes with --data: built-in problems are prepared already.")
        return data.problem(DEFAULT_PROBLEM if problem is None else problem)
    no_intercept, as_is = options.pop("no_intercept"), options.pop("as_is")
    options |= {"drop": options["drop"] or (), "sep": "\t" if options["sep"] == "\\t" else options["sep"]}
    dataset = data.read(path, **options, standardise=not as_is, intercept=None if no_intercept else "first")
    if not isinstance(dataset.X, np.ndarray):  # a scipy.sparse matrix
        rows, columns = dataset.X.shape
        if rows * columns > MOST_NUMBERS:
            size, limit = in_words(8.0 * rows * columns), in_words(8.0 * MOST_NUMBERS)
            raise UserError(
                f"{path.name} has {rows:,} rows and {columns:,} columns, too many for this command, which fills in the "
                f"zeros of sparse tables: that takes {size}, above {limit}."
            )
        dataset = replace(dataset, X=dataset.X.toarray())
    return dataset


def _of_table(command):
    """A command with the options of `_dataset`, which gets what that makes of them, and the files that it reads."""
    own, of_table = inspect.signature(command, eval_str=True), inspect.signature(_dataset, eval_str=True)

    @functools.wraps(command)
    def run(**given):
        of = {name: given.pop(name) for name in of_table.parameters}
        return command(_dataset(**of), [of["file"], of["table"], of["target"]], **given)

    _, _, *rest = own.parameters.values()
    needed = [one for one in rest if one.default is one.empty]
    shown = [*needed, *of_table.parameters.values(), *(one for one in rest if one not in needed)]
    run.__signature__ = own.replace(parameters=shown)
    run.__annotations__ = {one.name: one.annotation for one in shown}
    return run


@app.command(cls=_Once)
@_of_table
def compare(
    dataset,
    read,
    samplers: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these; `pdmp list` has names; also auto, NUTS.")
    ] = None,
    data_passes: Passes = None,
    seed: Seed = 0,
    out: Out = pathlib.Path("."),
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the data passes, and a smaller reference.")
    ] = False,
    executor: Where = None,
    page: Annotated[
        pathlib.Path | None,
        typer.Option("--html", metavar="FILE", help="Write table, pictures and settings as one web page too."),
    ] = None,
    as_json: Json = False,
):
    """Compare samplers on Bayesian logistic regression.

    Every sampler gets the same number of data passes (a full gradient costs one) and the same starting points, and is
    compared with a long run of an exact sampler. auto is what pdmp.sample(model) does; NUTS is nutpie's, if installed.
    Prints a table, worst last, and a verdict on each sampler; writes compare.png and compare.csv.

    Example: pdmp compare --problem wine --samplers BPS,SBPS,SGLD --quick
    """
    samplers, extra = _choose_extra(samplers)
    classes, labels = ({}, set()) if samplers == "" and extra else _choose(samplers)
    _check_seed(seed)
    _check_positive("data_passes", data_passes)
    model, mode = _model(dataset)
    if data_passes is None:
        data_passes = default_passes(model.n_data) / (QUICK if quick else 1)
    _make_folder(out)
    _check_files(read, html=page, out=[out / "compare.png", out / "compare.csv"])
    processes = _configured(model, mode, classes, labels)
    processes |= {label: row for label, row in comparison.extra_rows(model).items() if label in extra}
    size = next((p.provider.size for p in processes.values() if hasattr(getattr(p, "provider", None), "size")), None)
    headline = _headline(dataset, model) + (f"; mini-batches of {size}" if size else "")
    typer.echo(headline, err=as_json)
    ess = REFERENCE_ESS / (3 if quick else 1)
    with _executor(executor) as where:
        table = comparison.compare(
            processes,
            data_passes=data_passes,
            reference=ess,
            seed=seed,
            test=(dataset.test.X, dataset.test.y),
            names=dataset.names,
            title=f"{dataset.name}, {data_passes:,.0f} data passes a chain",
            executor=where,
            say=_say,
        )
    _say("")
    typer.echo(_as_json(table.to_dict()) if as_json else f"\n{table}")
    table.to_csv(out / "compare.csv")
    if not table.errors_by_pass:
        raise UserError("every sampler failed; there is nothing to draw.")
    _draw(lambda: plots.compare(table), out / "compare.png")
    written = [out / "compare.png", out / "compare.csv"]
    if page is not None:
        settings = {
            "problem": headline,
            "data passes of each chain": f"{data_passes:,.10g}",
            "seed": seed,
            "effective draws of the reference": f"{ess:,.0f}",
            "processes": "; ".join(f"{label}: {process!r}" for label, process in processes.items()),
            "pdmp": __version__,
            "Python": platform.python_version(),
            "machine": f"{platform.platform()}, {os.cpu_count()} processors",
            "date": datetime.date.today().isoformat(),
        }
        plots.report(table, page, settings)
        written.append(page)
    typer.echo(f"written: {', '.join(map(str, written))}", err=as_json)


@app.command(cls=_Once)
@_of_table
def sample(
    dataset,
    read,
    sampler: Sampler,
    data_passes: Passes = None,
    gradients: Annotated[
        float | None, typer.Option(help="The same budget: full gradients of each chain, of one data pass each.")
    ] = None,
    ess: Annotated[
        float | None,
        typer.Option(help="Run until the mean and the sd of every coefficient have so many effective draws."),
    ] = None,
    rhat: Annotated[
        float | None, typer.Option(help="Run until R-hat of every coefficient is at most this, such as 1.01.")
    ] = None,
    chains: Chains = 4,
    seed: Seed = 0,
    save: Save = None,
    as_json: Json = False,
):
    """Run one sampler on Bayesian logistic regression: the posterior of each coefficient.

    Without --ess and --rhat a chain ends by the default number of data passes; with both goals, when both are reached.

    Example: pdmp sample ZigZag --problem wine --data-passes 20000
    """
    classes, labels = _choose(sampler)
    _check_seed(seed)
    budget = {"data_passes": data_passes, "gradients": gradients, "ess": ess, "rhat": rhat}
    for name, value in budget.items():
        _check_positive(name, value)
    model, mode = _model(dataset)
    if all(value is None for value in budget.values()):
        budget["data_passes"] = default_passes(model.n_data)
    _check_files(read, save=save)
    processes = _configured(model, mode, classes, labels)
    if len(processes) > 1:
        raise UserError(f"{sampler!r} names several processes; give one of {', '.join(map(repr, processes))}.")
    ((label, process),) = processes.items()
    typer.echo(_headline(dataset, model), err=as_json)
    comparison._prepare(process, mode, label, _say)
    _say("")
    run = run_sample(process, initial=mode, **budget, chains=chains, seed=seed, warmup=0.1)
    if not any(record.length > 0.0 for record in run.records):
        _end(run)
        raise UserError("the budget ended before there was a path after the warm-up; give a larger one.")
    summary, stats, setting = run.summary(), run.stats, process.recipe.setting(process)
    typer.echo(
        _as_json({"problem": dataset.name, "sampler": label, "setting": setting} | _found(run, summary))
        if as_json
        else summary
    )
    typer.echo(
        f"{label}{f' ({setting})' if setting else ''}: {'1 chain' if chains == 1 else f'{chains} chains'} of "
        f"{stats['data_passes'] / chains:,.0f} data passes{', ' if chains == 1 else ' each; in all '}"
        f"{stats['total_events']:,} events, {stats['bound_violations']:,} bound violations, "
        f"{comparison._seconds(stats['seconds'])} s",
        err=as_json,
    )
    if save is not None:
        run.save(save)
        typer.echo(f"written: {save}", err=as_json)
    _end(run)


@app.command(cls=_Once)
@_of_table
def tune(
    dataset,
    read,
    sampler: Sampler,
    budget: Annotated[
        float | None,
        typer.Option(help="Data passes of the setting that is never dropped. [default: by the size of the data]"),
    ] = None,
    metric: Annotated[str, typer.Option(help="ksd or fssd: the discrepancy to make small.")] = "ksd",
    seed: Seed = 0,
    out: Out = pathlib.Path("."),
    executor: Where = None,
    as_json: Json = False,
):
    """Choose a sampler's step, batch size ... by successive halving; no reference is needed.

    All settings run for a while; the third with the smallest Stein discrepancies to the posterior continues, and so
    on. Prints every round; writes tuning.png and tuning.csv.

    Example: pdmp tune SGLD --problem wine
    """
    classes, _ = _choose(sampler)
    _check_seed(seed)
    if len(classes) != 1 or sampler.lower() not in (name.lower() for name in classes):
        raise UserError(f"SAMPLER must be one name, got {sampler!r}.")
    if metric not in ("ksd", "fssd"):
        raise UserError(f"--metric must be ksd or fssd, got {metric!r}.")
    _check_positive("budget", budget)
    ((name, cls),) = classes.items()
    model, mode = _model(dataset)
    if budget is None:
        budget = default_passes(model.n_data) / TUNING
    found = cls.recipe.arms(cls, model, mode)
    if found is None:
        raise UserError(f"{name} has nothing to tune.")
    _make_folder(out)
    _check_files(read, out=[out / "tuning.png", out / "tuning.csv"])
    make, arms = found
    typer.echo(_headline(dataset, model), err=as_json)
    try:
        with _executor(executor) as where:
            result = tuning.mamba(
                make,
                arms,
                budget,
                metric=metric,
                clock="data",
                seed=seed,
                initial=mode,
                executor=where,
                say=lambda text: _say(f"{name}: {text}"),
            )
    except ValueError as error:
        raise UserError(str(error)) from None
    _say("")
    about = {"problem": dataset.name, "sampler": name, "metric": metric, "best": result.best, "table": result.table}
    typer.echo(_as_json(about) if as_json else f"\n{result}")
    _draw(lambda: plots.tuning(result), out / "tuning.png")
    result.to_csv(out / "tuning.csv")
    typer.echo(f"written: {out / 'tuning.png'}, {out / 'tuning.csv'}", err=as_json)


@app.command(cls=_Once)
def fit(
    formula: Annotated[str, typer.Argument(help='Such as "y ~ a * b + (1 | g)".')],
    file: Annotated[
        pathlib.Path,
        typer.Argument(metavar="FILE", help="A table: CSV with a header, Parquet, or a folder of Parquet files."),
    ],
    family: Annotated[
        str, typer.Option(help="gaussian, bernoulli, poisson, gamma, beta, cumulative, … as pdmp.families has them.")
    ] = "gaussian",
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMULA", help='Of another parameter, such as "sigma ~ x"; once for each.'),
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="LINK", help="Instead of the family's: log, or sigma=log for another parameter."),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(metavar="PRIOR", help='By the names of the summary, such as "age ~ Normal(0, 2.5)".'),
    ] = None,
    offset: Annotated[str | None, typer.Option(metavar="COLUMN", help="Added to the linear predictor.")] = None,
    exposure: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of counts: its logarithm is added to the linear predictor.")
    ] = None,
    weights: Annotated[str | None, typer.Option(metavar="COLUMN", help="Multiplies the log-likelihoods.")] = None,
    select: Annotated[
        str | None, typer.Option(metavar="A,B|all", help="Columns whose coefficients may be exactly 0: spike and slab.")
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="auto, zigzag, bps or boomerang, at one row a proposal; sticky ones with --select.")
    ] = "auto",
    effects: Annotated[bool, typer.Option("--effects", help="List the effects of all groups too.")] = False,
    ess: Annotated[
        float | None, typer.Option(help="Effective draws of each mean and standard deviation. [default: 400]")
    ] = None,
    rhat: Annotated[float | None, typer.Option(help="R-hat to reach. [default: 1.05, if --ess is not given]")] = None,
    chains: Chains = 4,
    seed: Seed = 0,
    save: Save = None,
    picture: Annotated[pathlib.Path | None, typer.Option(metavar="FIT.png", help="Draw the intervals.")] = None,
    draws: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="DRAWS.csv", help="Write 1,000 draws of each chain, in the units of the data."),
    ] = None,
    predict: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="NEW.csv", help="A table to predict: mean, sd and 95 % interval of what is expected."),
    ] = None,
    predictions: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE.csv", help="Where predictions are written. [default: predictions.csv]"),
    ] = None,
    unseen: Annotated[
        str | None,
        typer.Option(help="For groups to predict that are not in the table: error (the default), zero or draw."),
    ] = None,
    as_json: Json = False,
):
    """Fit a Bayesian regression of a formula on a table: the posterior of each coefficient, in the data's units.

    Needs formulae: pip install 'pdmp[formula]'. From 50,000 rows on they are sub-sampled, exactly, but for
    groups that are small, and crossed ones with few rows. Large files and folders are read in batches.

    Example: pdmp fit "visits ~ age + (1 | clinic)" table.csv --family poisson
    """
    _check_seed(seed)
    _check_positive("ess", ess)
    _check_positive("rhat", rhat)
    for name, value in (("predictions", predictions), ("unseen", unseen)):
        if value is not None and predict is None:
            raise UserError(f"--{name} goes with --predict, the table to predict.")
    if predict is not None:
        predictions = pathlib.Path("predictions.csv") if predictions is None else predictions
    unseen = "error" if unseen is None else unseen
    _check_files([file, predict], save=save, picture=picture, draws=draws, predictions=predictions)
    if picture is not None:
        _check_picture(picture)
    if sampler not in formulas.fitting.SAMPLERS:
        raise UserError(f"--sampler must be one of {', '.join(formulas.fitting.SAMPLERS)}, got {sampler!r}.")
    if unseen not in formulas.fit.UNSEEN:
        raise UserError(f"--unseen must be one of {', '.join(formulas.fit.UNSEEN)}, got {unseen!r}.")
    asked, sides = _formulas(formula, also), [formulas.words.split(text) for text in also or []]
    texts = [formula, *(f"y ~ {side}" for _, side in sides)]
    parameters = {name.strip() for names, _ in sides for name in names.split("+")}
    for text in texts:
        formulas.design.check_functions(text)
    new = (
        None
        if predict is None
        else _to_predict(predict, texts, [offset, exposure], file, unseen == "error", parameters)
    )
    chosen = select if select is None or select == "all" else [name.strip() for name in select.split(",")]
    columns = {"offset": offset, "exposure": exposure, "weights": weights}
    options = {"select": chosen, "sampler": sampler, "seed": seed, "chains": chains, "ess": ess, "rhat": rhat}
    found = formulas.regression(asked, file, family, priors=_priors(prior), link=_links(link), **options, **columns)
    _say("")
    summary, inclusion = found.summary(effects), None if chosen is None else found.inclusion()
    if as_json:
        about = {"formula": found.formula, "family": found.family.name, "rows": found.n_rows}
        selected = {"inclusion": inclusion or {}}
        if inclusion is not None:
            said = {"median_model": inclusion.median_model, "warnings": inclusion.warnings}
            selected["selection"] = {"coefficients": inclusion.rows} | said
        typer.echo(_as_json(about | _found(found.run, summary) | selected))
    else:
        typer.echo(summary)
        if inclusion is not None:
            typer.echo(f"\n{inclusion!r}")
    for path, write in (
        (save, found.run.save),
        (picture, lambda path: _draw(found.plot, path)),
        (draws, lambda path: found.to_dataframe(effects=effects).to_csv(path, index=False)),
        (predictions, lambda path: _predicted(found, new, unseen, seed).to_csv(path, index=False)),
    ):
        if path is not None:
            write(path)
            typer.echo(f"written: {path}", err=as_json)
    _end(found.run)


def _formulas(formula, also):
    """The formula of the response, with those of --also as `pdmp.regression` takes them."""
    if not also:
        return formula
    sides = [formulas.words.split(text) for text in also]
    names = [name for name, _ in sides]
    for name, text in zip(names, also, strict=True):
        if not name:
            raise UserError(f'--also must name its parameter, such as "sigma ~ x", got {text!r}.')
        if names.count(name) > 1:
            raise UserError(f"--also gives {name} twice.")
    own = {"y", formulas.words.read_response(formulas.words.split(formula)[0]).text} - set(names)
    if not own:  # a key of the formula itself would be lost
        raise UserError("--also is for another parameter, and FORMULA has the response.")
    return {min(own): formula} | {name: f"~ {side}" for name, side in sides}


def _links(given):
    """Links as `pdmp.regression` takes them: of the first parameter, or by parameter."""
    named = dict(text.partition("=")[::2] for text in given or [])
    if len(named) < len(given or []):
        raise UserError("--link gives a parameter twice.")
    plain = [name for name, link in named.items() if not link]
    if plain and len(named) > 1:
        raise UserError(f"--link {plain[0]}: of several, each names its parameter, such as mu={plain[0]}.")
    return plain[0] if plain else named or None


def _priors(given):
    """Priors as `pdmp.regression` takes them, by name; None without any."""
    found = {}
    for text in given or []:
        name, law = formulas.words.split(text)
        if not name:
            raise UserError(f'--prior must name its parameter, such as "age ~ Normal(0, 2.5)", got {text!r}.')
        if name in found:
            raise UserError(f"--prior gives {name!r} twice.")
        try:
            found[name] = read_prior(law)
        except ValueError as error:
            raise UserError(f"--prior {text!r}: {error}") from None
    return found or None


def _to_predict(path, texts, others, file, refuses, parameters=frozenset()):
    """The table of --predict; an error now, not after the fit, if it cannot be predicted.

    `parameters`: names that are no columns, as they have formulas of their own.
    """
    new = formulas.table.read_table(path)
    described = [formulas.design.describe(formulas.words.plainly(text)) for text in texts]
    models = [one.model for one in described]
    terms = [term for model in models for term in (*model.common_terms, *model.group_terms)]
    names = {name for term in terms for name in term.var_names}.union(
        *(smooth.names for one in described for smooth in one.smooths)
    )
    beside = formulas.words.read_response(formulas.words.split(texts[0])[0])
    needed = [text for name, text in beside.data.items() if name in formulas.beside.OF_PREDICTIONS]
    others = [*others, beside.roles.get("exposure"), *(formulas.words.column_of(t) for t in needed if not is_number(t))]
    names = {name for name in (*names, *others) if name} - set(parameters)
    formulas.table.check_names(names, new, "`formula`", f"--predict {path}")
    known = None  # the levels of a large table are looked at after the fit
    if file.is_file() and file.stat().st_size < formulas.sources.LARGE_FILE:
        known = formulas.table.read_table(file)
        formulas.table.check_names(names, known, "`formula`")
        levels = {name: getattr(known[name].dtype, "categories", known[name]) for name in names}
        holds_text = [name for name in names if not formulas.table.is_numeric(levels[name])]
        new = formulas.table.read_table(path, as_text=holds_text)
        for name in sorted(names.difference(holds_text)):
            if levels[name].dtype.kind != "b" and not formulas.table.is_numeric(new[name]):
                words = [text for text in new[name].dropna().astype(str) if not is_number(text)]
                has = f"{name} = {words[0]!r}" if words else f"no numbers in {name}"
                raise UserError(f"--predict {path} has {has}, and {file} has numbers there.")
        for one in described:
            if not one.names.intersection(parameters):  # of an expression the fit says what it cannot predict
                formulas.design.check_predictable(one, known)
    grouping = {name for model in models for term in model.group_terms for name in term.factor.var_names}
    for name in sorted(names):
        missing = np.flatnonzero(new[name].isna())
        if len(missing):
            raise UserError(f"--predict {path}: the column {name!r} has no value in row {missing[0]}.")
        is_level = name in grouping or not formulas.table.is_numeric(new[name])
        if known is None or not is_level or name in grouping and not refuses:
            continue
        wrong = np.flatnonzero(~new[name].isin(known[name]))
        if len(wrong):
            value = formulas.table.plain(new[name].iloc[wrong[0]])
            cure = "; --unseen zero or --unseen draw predicts for it" if name in grouping else ""
            raise UserError(
                f"--predict {path}: row {wrong[0]} has {name} = {value!r}, and {file} has no such row{cure}."
            )
    return new


def _predicted(found, new, unseen, seed):
    """Mean, sd and the ends of the 95 % interval of the expected response of each row; some rows at a time."""
    parts = []
    for first in range(0, len(new), PREDICTED_ROWS):
        mean = found.predict(new.iloc[first : first + PREDICTED_ROWS], unseen=unseen, seed=seed)
        low, high = np.quantile(mean, [0.025, 0.975], axis=0)
        parts.append(np.column_stack([mean.mean(axis=0), mean.std(axis=0), low, high]))
    return formulas.table.import_pandas().DataFrame(np.concatenate(parts), columns=["mean", "sd", "2.5%", "97.5%"])


@app.command("list")
def list_(as_json: Json = False):
    """List the samplers that are installed, and the built-in data sets.

    Example: pdmp list
    """
    samplers = dict(sorted(comparison.registered().items()))
    if as_json:
        first = {name: _first_line(cls) for name, cls in samplers.items()}
        typer.echo(_as_json({"samplers": first, "problems": {k: load.about for k, load in data.PROBLEMS.items()}}))
        return
    width = max(map(len, [*samplers, *data.PROBLEMS]))
    # A pipe has no width, whatever $COLUMNS is: there each name keeps its one line, which other programs can read.
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
    lines = textwrap.TextWrapper(max(columns, 60), subsequent_indent=" " * (width + 4), break_on_hyphens=False)

    def echo(name, about):
        typer.echo(lines.fill(f"  {name:{width}}  {about}"))

    typer.echo("Samplers (entry points of the group pdmp.processes):")
    for name, cls in samplers.items():
        echo(name, f"{_first_line(cls)}  [{cls.__module__}]")
    typer.echo("Problems:")
    for name, load in data.PROBLEMS.items():
        echo(name, load.about)


def _as_json(found):
    """The text of plain values; what is not finite is null."""

    def plain(value):
        if isinstance(value, dict):
            return {str(k): plain(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, np.generic):
            return plain(value.item())
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(plain(found), indent=1, allow_nan=False, ensure_ascii=False)


def _found(run, summary):
    """What --json says of a run."""
    return {
        "stopped": run.stopped,
        "chains": run.chains,
        "parameters": summary.rows,
        "warnings": summary.warnings,
        "stats": run.stats,
    }


def _draw(make, path):
    """Write the figure that `make` returns, on no screen."""
    import matplotlib

    matplotlib.use("Agg")
    with plots.style.closing():
        make().savefig(path)


def _end(run):
    """Exit code 130 of a run that Ctrl-C has ended: what it had was printed and kept."""
    if run.stopped == "interrupted":
        raise typer.Exit(130)


@contextlib.contextmanager
def _executor(text):
    """The executor that --executor names; None for threads of this process."""
    if text is None:
        yield None
    elif text.isdecimal() and int(text) > 0:
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(int(text), mp_context=context) as pool:
            yield pool
    elif ":" in text:
        try:
            from distributed import Client
        except ImportError:
            raise UserError("--executor with an address needs Dask: pip install 'pdmp[dask]'.") from None
        try:
            client = Client(text)
        except (OSError, ValueError) as error:
            raise UserError(f"--executor: no Dask scheduler at {text!r} ({error}).") from None
        with client:
            yield client
    else:
        raise UserError(f"--executor must be a number of processes or the address of a Dask scheduler, got {text!r}.")


def default_passes(n_data: int) -> float:
    """Data passes for each chain: about 30 million data terms, from 200 to 10,000 passes, rounded."""
    passes = min(max(TERMS / n_data, LEAST_PASSES), MOST_PASSES)
    unit = 10.0 ** math.floor(math.log10(passes))
    return unit * round(passes / unit)


def _first_line(cls):
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _headline(dataset, model):
    changes = "".join(f"{change}\n" for change in dataset.changes)
    return (
        f"{dataset.about or dataset.name}\n{changes}"
        f"Bayesian logistic regression: N = {model.n_data:,} (and {len(dataset.test):,} held out), d = {model.dim} "
        f"{dataset.prepared}, priors N(0, {PRIOR_SCALE:g}²)"
    )


def _model(dataset):
    train = dataset.train
    model = LogisticRegression(train.X, train.y, prior_scale=PRIOR_SCALE)
    model.variables = {name: () for name in dataset.names}
    mode = model.mode()
    if mode is None:
        raise UserError(f"the mode of the posterior of {dataset.name} was not found.")
    return model, mode


def _choose_extra(samplers):
    """What is left of `samplers` without the labels of `comparison.extra_rows`, and those of them to keep."""
    if samplers is None:
        return None, {"auto", "NUTS"}
    asked = [part.strip() for part in samplers.split(",")]
    extra = {label for label in ("auto", "NUTS") if label.lower() in (part.lower() for part in asked)}
    if "NUTS" in extra and importlib.util.find_spec("nutpie") is None:
        raise UserError("NUTS needs nutpie: pip install 'pdmp[nutpie]'.")
    if not extra:
        return samplers, extra
    return ",".join(part for part in asked if part.lower() not in ("auto", "nuts", "")), extra


def _choose(samplers):
    """Classes by name, and the labels of their processes to keep (an empty set: all)."""
    known = comparison.registered()
    if not known:
        raise UserError("no sampler is registered; install the package: pip install .")
    if samplers is None:
        return {name: cls for name, cls in known.items() if cls.recipe.featured}, set()
    classes, labels = {}, set()
    by_lower = {name.lower(): name for name in known}
    for asked in filter(None, (part.strip() for part in samplers.split(","))):
        name = by_lower.get(asked.lower())
        variant = None
        if name is None:  # "SGBD corrected": the label of one process of a class
            name, variant = by_lower.get(asked.lower().partition(" ")[0]), asked
        if name is None:
            raise UserError(
                f"there is no sampler {asked!r}{did_you_mean(asked, known)} Samplers: {', '.join(sorted(known))}."
            )
        classes[name] = known[name]
        offered = _labels(known[name])
        if variant is None:
            labels |= set(offered)
            continue
        found = [label for label in offered if label.lower() == variant.lower()]
        if not found:
            raise UserError(
                f"there is no sampler {variant!r}{did_you_mean(variant, offered)} {name} has: {', '.join(offered)}."
            )
        labels |= set(found)
    if not classes:
        raise UserError(f"{samplers!r} names no sampler; `pdmp list` has them.")
    return classes, labels


def _labels(cls):
    """The labels of the processes of a class, from a small problem."""
    X = np.column_stack([np.ones(40), np.linspace(-1.0, 1.0, 40)])
    small = LogisticRegression(X, np.arange(40) % 2)
    return list(comparison.configured(small, np.zeros(2), {cls.__name__: cls}))


def _configured(model, mode, classes, labels):
    """The processes of the classes with these labels, or all."""
    found = comparison.configured(model, mode, classes)
    return {label: process for label, process in found.items() if label in labels or not labels}


def _check_seed(seed):
    if seed < 0:
        raise UserError(f"--seed must not be negative, got {seed}.")


def _check_positive(name, value):
    """Refuse an amount that is not finite and positive, or of R-hat above 1; None is none."""
    least, said = (1.0, "above 1") if name == "rhat" else (0.0, "positive")
    if value is not None and not least < value < math.inf:
        raise UserError(f"{_option(name)} must be {said} and finite, got {value:g}.")


def _check_files(read, **written):
    """Refuse outputs in no folder, and those that would overwrite what is read, or one another."""
    taken = {pathlib.Path(path).resolve() for path in read if path is not None}
    for name, paths in written.items():
        for path in paths if isinstance(paths, list) else [paths] if paths is not None else []:
            folder = path.absolute().parent
            if not folder.is_dir():
                raise UserError(f"--{name} names a file in {str(folder)!r}, which is not a folder.")
            try:
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                raise UserError(f"--{name} names {str(path)!r}, which may not be written: {error.strerror}.") from None
            if path.exists() and not path.is_file():
                raise UserError(
                    f"--{name} must name a file; {str(path)!r} is {'a folder' if path.is_dir() else 'none'}."
                )
            if path.resolve() in taken:
                raise UserError(f"--{name} would overwrite {str(path)!r}, which this command reads or writes as well.")
            taken.add(path.resolve())


def _check_picture(path):
    """Refuse an ending that is no format of pictures, before the fit."""
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lower().lstrip(".") not in known:
        raise UserError(
            f"--picture must end in one of {', '.join(f'.{ending}' for ending in known)}, got {str(path)!r}."
        )


def _make_folder(out):
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".pdmp-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserError(f"--out: cannot write into {str(out)!r}: {error.strerror}.") from None


def _say(text):
    """Write progress to stderr: on a terminal one line, overwritten each time."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()
    elif text:
        print(text, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command; an error that the user can correct is one line on stderr and exit code 2.

    Without arguments it shows the help, as with ``--help``.
    """
    if arguments is None:
        gc.freeze()  # what is imported stays: to look through it again and again takes 4 % of a comparison
    arguments = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(args=arguments, prog_name="pdmp", standalone_mode=False)
    except (typer.Exit, SystemExit) as stop:
        code = getattr(stop, "exit_code", getattr(stop, "code", 0))
    except Exception as error:
        if not _is_usage(error):
            raise
        _say("")
        text = error.format_message() if hasattr(error, "format_message") else str(error)
        print(f"pdmp: {_with_options(' '.join(text.split()))}", file=sys.stderr)
        code = 2
    sys.exit(code or 0)


def _show_warning(message, *_, **__):
    _say("")
    print(f"pdmp: warning: {_with_options(' '.join(str(message).split()))}", file=sys.stderr)


def _option(name):
    return "--" + name.replace("_", "-")


def _with_options(text):
    """A message of the package, with arguments as the options of this command."""
    names = "|".join(ARGUMENTS)
    return re.sub(rf"`({names})=?([^`\s]*)`", lambda m: f"{_option(m[1])} {m[2]}".rstrip(), text)


def _is_usage(error):
    if isinstance(error, (UserError, OSError, ImportError, MemoryError, SamplingError)):
        return True
    if hasattr(error, "format_message"):  # from typer: an unknown option, a value that is not a number
        return True
    # A ValueError is the user's if it was raised where arguments are checked; any other is a bug: show its traceback.
    if isinstance(error, ValueError):
        innermost = inspect.getinnerframes(error.__traceback__)[-1]
        module = innermost.frame.f_globals.get("__name__", "")
        return module.startswith((f"{data.__name__}.", f"{formulas.__name__}.")) or module in (
            arguments.__name__,
            checks.__name__,
            result.__name__,
        )
    return False


if __name__ == "__main__":
    main()
