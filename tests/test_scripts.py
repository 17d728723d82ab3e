"""The command in scripts: --json, exit codes, completion, and ``python -m pdmp``."""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot

import pdmp
from pdmp import cli, comparison, formulas
from tests.checks import plain_only
from tests.commands import command, here, small, spies  # noqa: F401
from tests.registry import declared, installed  # noqa: F401

ROOT = pathlib.Path(__file__).parents[1]

pytestmark = [pytest.mark.exact, plain_only]


def brief(process, initial, chains, seed, warmup, **budget):
    """A run of a few events in place of the one asked for."""
    return pdmp.sample(process, initial=initial, events=200, chains=chains, seed=seed, warmup=warmup, progress=False)


@pytest.fixture
def runs(monkeypatch, installed):  # noqa: F811
    """The runs that the command makes, which are short; each is passed to `change` before the command has it."""
    made, change = [], []

    def sample(*args, **options):
        run = brief(*args, **options)
        for each in change:
            each(run)
        made.append(run)
        return run

    monkeypatch.setattr(cli, "run_sample", sample)
    made_and_change = made, change
    return made_and_change


def interrupt(run):
    run.stopped = "interrupted"


def test_sample_as_json(small, command, runs):  # noqa: F811
    code, out, err = command("sample BPS small.csv --target label --chains 2 --seed 3 --save run.npz --json")
    found, (run,) = json.loads(out), runs[0]
    assert code == 0 and (small / "run.npz").exists() and "written: run.npz" in err and "BPS" in err
    assert (found["problem"], found["sampler"], found["chains"]) == ("small", "BPS", 2)
    assert [row["name"] for row in found["parameters"]] == ["intercept", "a", "b"]
    for row, mean, sd in zip(found["parameters"], run.mean(), run.sd(), strict=True):
        assert (row["mean"], row["sd"]) == (mean, sd)
        assert set(row) == {"name", "mean", "sd", "2.5%", "97.5%", "mcse", "ess", "rhat"}
    assert found["warnings"] == run.summary().warnings and found["stopped"] == "events"
    assert found["stats"]["total_events"] == run.stats["total_events"] == 400
    text = command("sample BPS small.csv --target label --chains 2 --seed 3")[1]
    assert str(runs[0][1].summary()) in text and "{" not in text


def test_the_last_line_of_a_run(small, command, runs):  # noqa: F811
    """Of each chain the data passes, of all together events, violations and seconds."""
    runs[1].append(lambda run: run.stats.update(data_passes=6_000.0, bound_violations=4_200, seconds=345.6))
    text = command("sample BPS small.csv --target label --chains 3 --seed 3")[1].splitlines()[-1]
    assert text == "BPS: 3 chains of 2,000 data passes each; in all 600 events, 4,200 bound violations, 345.60 s"


def test_ctrl_c_outside_a_run_ends_with_130(command, monkeypatch):  # noqa: F811
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "registered", interrupted)
    code, out, err = command("list")
    assert code == 130 and (out + err).strip() == ""


@pytest.mark.parametrize("option", ["", "--json"])
def test_what_was_interrupted_is_printed_and_ends_with_130(option, small, command, runs):  # noqa: F811
    runs[1].append(interrupt)
    code, out, err = command(f"sample BPS small.csv --target label --chains 2 --save run.npz {option}")
    assert code == 130 and (small / "run.npz").exists()
    assert (json.loads(out)["stopped"] == "interrupted") if option else "intercept" in out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("select", ["", "--select a"])
def test_fit_as_json(select, small, command, monkeypatch, few_radii):  # noqa: F811
    pytest.importorskip("formulae")
    made, real = [], formulas.regression

    def regression(*args, **options):
        made.append(made[0] if made else real(*args, **options | {"ess": 20}))
        return made[-1]

    monkeypatch.setattr(formulas, "regression", regression)
    call = f"fit 'b ~ a' small.csv --chains 2 --seed 1 --effects --picture fit.png {select}"
    code, out, err = command(f"{call} --json")
    found, fit = json.loads(out), made[0]
    assert code == 0 and (small / "fit.png").exists() and "written: fit.png" in err and not pyplot.get_fignums()
    assert (found["formula"], found["family"], found["rows"], found["chains"]) == ("b ~ a", "gaussian", 120, 2)
    assert [row["name"] for row in found["parameters"]] == ["Intercept", "a", "sigma"]
    for row, there in zip(found["parameters"], fit.summary().rows, strict=True):
        assert row == {k: v if isinstance(v, str) or math.isfinite(v) else None for k, v in there.items()}
    assert found["inclusion"] == (fit.inclusion() if select else {})
    code, text, _ = command(call)
    assert str(made[1].summary(True)) in text and ("median probability model" in text) == bool(select)
    interrupt(fit.run)
    monkeypatch.setattr(formulas, "regression", lambda *args, **options: fit)
    assert command(call)[0] == 130


def test_tune_as_json(small, command, spies):  # noqa: F811
    best, table = {"step": np.float64(0.1)}, [{"round": 0, "step": 0.1, "score": math.inf, "kept": True, "why": ""}]

    class Found:
        def to_csv(self, path):
            pathlib.Path(path).touch()

    spies["mamba"].result, Found.best, Found.table = Found(), best, table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli.plots, "tuning", lambda result: pyplot.figure())
        code, out, err = command("tune SGLD small.csv --target label --metric fssd --json")
    found = json.loads(out)
    assert code == 0 and "written: tuning.png, tuning.csv" in err and "Bayesian logistic" in err
    assert (found["problem"], found["sampler"], found["metric"]) == ("small", "SGLD", "fssd")
    assert found["best"] == {"step": 0.1} and found["table"] == [table[0] | {"score": None}]
    assert not pyplot.get_fignums()


def test_list_as_json(command, installed):  # noqa: F811
    found = json.loads(command("list --json")[1])
    text = command("list")[1]
    assert list(found["samplers"]) == sorted(comparison.registered()) and list(found["problems"]) == list(
        pdmp.data.PROBLEMS
    )
    for name, about in (found["samplers"] | found["problems"]).items():
        assert name in text and about in text and about != name


def test_numbers_that_are_not_finite_are_null():
    found = {"a": [math.nan, 1.5, np.float64(np.inf)], "b": {1: (np.int64(2), True, None, "é")}}
    assert json.loads(cli._as_json(found)) == {"a": [None, 1.5, None], "b": {"1": [2, True, None, "é"]}}
    assert "é" in cli._as_json(found)


@pytest.mark.parametrize(
    ("typed", "offered"), [("sample Boom", "Boomerang"), ("compare --problem win", "wine"), ("co", "compare")]
)
def test_completion(typed, offered, monkeypatch, capsys, installed):  # noqa: F811
    words = typed.split()
    monkeypatch.setenv("_PDMP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"pdmp {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert stop.value.code == 0 and capsys.readouterr().out.split() == [offered]


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "pdmp", "--version"], capture_output=True, text=True, check=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == f"pdmp {pdmp.__version__}\n"
