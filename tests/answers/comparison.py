"""Comparisons: rows, curves, draws, paths, verdicts and notes of every kind of sampler; references."""

from __future__ import annotations

import math
import pathlib
import re
import tempfile

import numpy as np

import discrete
import pdmp
from pdmp import comparison
from pdmp.comparison import Comparison, Reference, Verdict
from pdmp.process import Prepared
from tests.answers import case, once
from tests.recorded import moved
from tests.registry import declared


@once
def model():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(40), rng.standard_normal(40)])
    return pdmp.models.LogisticRegression(moved(X), X[:, 1] + rng.standard_normal(40) > 0.2, prior_scale=[1.0, 2.0])


def held_out():
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(12), rng.standard_normal(12)])
    return moved(X), (X[:, 1] > 0.1).astype(float)


@once
def truth():
    """A little off, so that biases are seen; not what the samplers would find."""
    cov = np.array([[0.2, 0.05], [0.05, 0.3]])
    draws = np.random.default_rng(5).standard_normal((50, 2)) @ np.linalg.cholesky(cov).T + [-0.1, 0.8]
    return Reference(np.array([-0.1, 0.8]), np.sqrt(np.diag(cov)), cov, moved(draws), 1.003, 900.0, 1.4, "written down")


STARTS = ((0.0, 0.6), (-0.3, 1.1))


def made(table):
    """All of a comparison; seconds are those of a clock on the wall, and are replaced."""
    for k, row in enumerate(table.rows):
        row["seconds"] = row["seconds"] and 0.03 * 40.0**k
    plain = table.to_dict()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "t.csv"
        table.to_csv(file)
        written = file.read_text(encoding="utf-8").splitlines()
    return {
        "rows": [{key: str(v).split() if key == "setting" else v for key, v in row.items()} for row in table.rows],
        "errors": table.errors_by_pass,
        "rms": table.rms_by_pass,
        "draws": table.draws,
        "paths": {label: [p.positions.T, p.passes, p.events, p.kind] for label, p in table.paths.items()},
        "verdicts": {label: [v.word, v.reason.split()] for label, v in table.verdicts.items()},
        "names": [table.names, table.title.split(), table.reference.text.split(), len(written), written[0]],
        "notes": [note.split() for note in table.notes],
        "cells": [[cell.split() for cell in line] for line in table.cells()],
        "ranked": [row["sampler"] for row in table.ranked()],
        "text": [line.split() for line in repr(table).splitlines()],
        "lines": [line.split() for line in table.verdict_lines()],
        "dict": [plain["names"], plain["reference"]["rhat"], plain["reference"]["ess"], list(plain["rows"][0])],
    }


def compared(processes, **options):
    said = []
    call = {"data_passes": 40, "reference": truth(), "seed": 3, "chains": 2, "initial": moved(STARTS)} | options
    given = {label: make() for label, make in processes.items()}
    with pdmp.errors.short_runs():
        found = pdmp.compare(given, **call, say=lambda text: said.append(text.split()))
    return made(found) | {"said": said}


def batch():
    return pdmp.gradients.Minibatch(model(), size=8, draw="distinct")


MAKE = {
    "moves": lambda: pdmp.BPS(model()),
    "stochastic": lambda: pdmp.SBPS(batch()),
    "steps": lambda: discrete.SGLD(batch(), step=0.02),
    "extrapolated": lambda: discrete.SGRRLD(batch(), step=0.02),
    "turns": lambda: pdmp.Boomerang(model()),
    "broken": lambda: discrete.SGLD(batch(), step=1e300),
}
for label, make in MAKE.items():
    case(lambda k=label, m=make: compared({k: m}, test=held_out(), title="a title"), f"a sampler that is {label}")
for label, options in {
    "several": {},
    "with names and a warm-up": {"names": ["base", "slope"], "warmup": 0.3, "data_passes": 25.5},
    "from one start": {"initial": moved(STARTS[1]), "chains": 3, "warmup": 0.0},
    "from starts of its own": {"initial": None, "seed": 5},
}.items():
    chosen = {k: MAKE[k] for k in ("steps", "moves", "broken")}
    case(lambda o=options, c=chosen: compared(c, **o), f"a comparison {label}")


@case
def a_comparison_with_a_run():
    """As the reference, whose means and draws are those of the run."""
    with pdmp.errors.short_runs():
        run = pdmp.sample(pdmp.ZigZag(model()), initial=moved(STARTS[0]), events=60, chains=2, seed=2)
    found = comparison.as_reference(run, 2)
    kept = [found.mean, found.sd, found.cov, found.draws.T, found.rhat, found.ess, found.max_z, found.text.split()]
    return [kept, compared({"steps": MAKE["steps"]}, reference=run)]


def target():
    return pdmp.models.Gaussian(moved([0.0, 1.0]), [1.0, 4.0])


def with_auto(gradients):
    """The automatic sampler, whose warm-up has taken so many gradients of both chains."""
    given, before, asked = model(), comparison.auto, []

    def auto(of, **options):
        asked.append(options)
        process = pdmp.BPS(of)
        process.prepared = Prepared(moved([[0.2, 0.8], [0.1, 1.1]]), "BPS, as it is told", gradients)
        return process

    comparison.auto = auto
    try:
        table = pdmp.compare(
            {"auto": given, "moves": pdmp.BPS(given)},
            data_passes=15,
            reference=Reference(
                *np.array([[0.1, 0.9], [1.1, 0.5]]), np.diag([1.0, 0.25]), moved(np.eye(2)), 1.0, 500.0
            ),
            seed=2,
            chains=2,
            initial=moved([[0.3, 0.7], [0.0, 1.2]]),
        )
    finally:
        comparison.auto = before
    return [made(table), asked]


for gradients in (7, 30, 41):
    case(lambda n=gradients: with_auto(n), f"the automatic sampler after {gradients} gradients")


class Chains(comparison.NUTS):
    """Chains that are written down, of another length than was asked for, of unequal lengths."""

    def __init__(self, given):
        self.model = given

    def _chain(self, start, count, seed):
        rng = np.random.default_rng(seed)
        draws = moved(start + 0.4 * rng.standard_normal((count, 2)) + [0.0, 0.1])
        return draws, 40 + np.cumsum(rng.integers(1, 8, size=count))


class NoEnd(Chains):
    def _chain(self, start, count, seed):
        raise pdmp.SamplingError("nutpie: a step failed")


case(lambda: compared({"NUTS": lambda: Chains(model())}, data_passes=700, test=held_out()), "a comparison of draws")
case(lambda: compared({"NUTS": lambda: Chains(model())}, data_passes=45), "a comparison of hardly any draws")
case(lambda: compared({"NUTS": lambda: NoEnd(model()), "moves": MAKE["moves"]}), "a comparison of draws that fail")


@case
def verdicts():
    """Of everything that decides one, and of what is not known."""
    mean, sd, error, draws, rhat = (
        np.array(v) for v in ([-0.1, 0.8], [0.45, 0.55], [0.004, 0.009], [2e3, 3e3], [1.0, 1.01])
    )
    forms = {
        "fine": {},
        "apart": {"rhat": np.array([1.2, 1.3])},
        "never moved": {"rhat": np.array([1.0, np.nan])},
        "mean off": {"mean": np.array([-0.1, 1.1])},
        "mean off, but not certain": {"mean": np.array([-0.1, 0.9]), "error": np.array([0.01, 0.05])},
        "sd off": {"sd": np.array([0.3, 0.55])},
        "sd off, but few draws": {"sd": np.array([0.38, 0.55]), "sd_ess": np.array([20.0, 20.0])},
        "both off": {"sd": np.array([0.45, 0.2]), "mean": np.array([0.3, 0.8])},
        "not resolved": {"error": np.array([0.06, 0.01])},
        "no error": {"error": np.array([0.01, np.nan])},
        "sd unknown": {"sd": np.array([np.nan, 0.55])},
    }
    plain = {"mean": mean, "sd": sd, "error": error, "sd_ess": draws, "rhat": rhat}
    found = {}
    for label, change in forms.items():
        said = comparison._verdict(**(plain | change), truth=truth(), names=["base", "slope"])
        found[label] = [said.word, said.reason.split()]
    return found


@case
def tables():
    """Ranks by verdict and error, columns that are empty, and numbers as they are written."""
    rows = []
    words = ["biased", "fine", "too short", "fine", "failed", "biased"]
    for k, error in enumerate([0.2, 0.31, 0.01, 0.05, math.nan, 0.02]):
        rows.append(
            dict.fromkeys(Comparison.COLUMNS, math.nan) | {"sampler": f"s{k}", "setting": "", "mean_error": error}
        )
        rows[-1] |= {"data_passes": 1234.5 * (k + 1), "seconds": 10.0 ** (1 - 3 * k), "min_ess": 12345.6 / (k + 1) ** 4}
        rows[-1] |= {"ess_per_pass": 1.0 / (k + 3) ** 5, "events": 1e6 / (k + 1)}
    verdicts = {f"s{k}": Verdict(word, f"why {k}") for k, word in enumerate(words)}
    found = []
    for given in ({}, verdicts):
        table = Comparison([dict(row) for row in rows], {}, truth(), ["a", "b"], {}, {}, "", ["a note"], given)
        found.append(
            [table.cells(), [r["sampler"] for r in table.ranked()], repr(table).split(), table.to_dict()["rows"]]
        )
    return [found, [comparison._seconds(s) for s in (0.0, 1e-12, 3.456e-5, 0.0123, 0.5, 1.0, 123.456)]]


def reference_of(target, **options):
    """A reference that needs few draws, from starts and samplers as they are."""
    before, asked = comparison._long_enough, []

    def short(process, starts, ess, seed, executor, *_):
        setting = {name: getattr(process, name) for name in ("refresh_rate",) if hasattr(process, name)}
        asked.append([type(process).__name__, starts, ess, seed, executor, setting])
        with pdmp.errors.short_runs():
            return pdmp.sample(process, initial=starts, chains=len(starts), events=11, warmup=0.2, seed=seed)

    limit = comparison.LARGEST_Z
    try:
        comparison._long_enough, comparison.LARGEST_Z = short, 1e6
        found = pdmp.reference(target, **options)
    finally:
        comparison._long_enough, comparison.LARGEST_Z = before, limit
    return [asked, vars(found) | {"draws": found.draws.T, "text": found.text.split()}]


case(lambda: reference_of(model(), ess=40), "reference of a logistic regression")


@case
def configured():
    """Which samplers there are, and how they are set up for a model."""
    mode = model().mode()
    before = comparison.registered
    try:
        comparison.registered = declared
        featured = comparison.configured(model(), mode)
    finally:
        comparison.registered = before
    chosen = {name: declared()[name] for name in ("SGLD", "ZigZag", "SGBD", "SBPS")}
    some = comparison.configured(model(), mode, chosen, size=7)
    about = [
        [label, type(p).__name__, p.recipe.setting(p).split(), re.sub(r"0x\w+", "", repr(p)).split()]
        for found in (featured, some)
        for label, p in found.items()
    ]
    sizes = [getattr(getattr(p, "provider", None), "size", None) for p in (*featured.values(), *some.values())]
    return [about, sizes, list(comparison.extra_rows(model()))[0]]
