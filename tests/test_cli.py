"""The command, as a user types it: every option, every mistake, and the examples in its help."""

# ruff: noqa: F811 - fixtures

import contextlib
import csv
import dataclasses
import io
import json
import os
import pathlib
import re
import sys
import types
import warnings

import matplotlib.image
import numpy as np
import pandas
import pytest
import typer
from matplotlib import pyplot
from matplotlib.figure import Figure

import pdmp
from pdmp import cli, comparison, data
from pdmp.models import priors
from pdmp.models.priors import HalfStudentT, Normal, Prior, read_prior
from pdmp.native.messages import announce
from tests.commands import Spy, command, here, small, spies, write_table  # noqa: F401
from tests.registry import declared, installed  # noqa: F401

pytestmark = pytest.mark.usefixtures("installed")


def written(folder):
    with open(folder / "compare.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert matplotlib.image.imread(folder / "compare.png").shape[1] > 1_000 and not pyplot.get_fignums()
    return rows


# -- compare -----------------------------------------------------------------------------------------------------


def test_compare_on_a_real_table(here, command):
    """breast_cancer as a user would have it, in a CSV file; all samplers."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    names = [n.replace(" ", "_") for n in bunch.feature_names]
    write_table(here / "cancer.csv", bunch.data, bunch.target, names)
    code, out, err = command(
        "compare --data cancer.csv --target label --quick --data-passes 100 --seed 3 --out results"
    )
    assert code == 0
    assert "N = 455 (and 114 held out), d = 31" in out and "R-hat" in out and "max |z|" in out
    rows = written(here / "results")
    labels = [row["sampler"] for row in rows]
    extra = list(comparison.extra_rows(small_problem()[0]))
    assert labels == [*comparison.configured(*small_problem()), *extra] and extra[0] == "auto"
    assert "auto: too short (the warm-up alone takes" in out
    for row in rows[:8]:
        assert float(row["data_passes"]) == pytest.approx(100, abs=0.5)
        assert 0.0 < float(row["mean_error"]) < 2.0 and 0.0 < float(row["log_loss"]) < 0.3
    assert np.array_equal(data.read("cancer.csv", "label").X, data.problem("breast_cancer").X)


def small_problem():
    X = np.column_stack([np.ones(40), np.linspace(-1.0, 1.0, 40)])
    return pdmp.models.LogisticRegression(X, np.arange(40) % 2), np.zeros(2)


@pytest.mark.exact
def test_executors_are_passed_on(small, command, monkeypatch):
    seen = []

    def spy(*args, executor, **options):
        seen.append(executor)
        raise cli.UserError("seen")

    monkeypatch.setattr(comparison, "compare", spy)
    monkeypatch.setattr(cli.tuning, "mamba", spy)
    assert command("compare --data small.csv --target label --samplers BPS --executor 3")[2].endswith("seen\n")
    assert command("tune SGLD --data small.csv --target label --executor 2")[2].endswith("seen\n")
    assert [pool._max_workers for pool in seen] == [3, 2]
    seen.clear()
    command("compare --data small.csv --target label --samplers BPS")
    assert seen == [None]


def test_compiling_is_said(small, command, monkeypatch):
    """Where something compiles, which nothing does in plain Python; and then at once."""
    sampled = comparison.sample

    def compiles(*args, **options):
        if options.get("events") == 1:
            for seconds in (None, 12.3, 12.3, 0.9):
                announce(seconds)
        return sampled(*args, **options)

    call = "compare --data small.csv --target label --quick --data-passes 50 --samplers BPS"
    monkeypatch.setattr(comparison, "sample", compiles)
    _, _, err = command(call)
    for who in (r"reference, \w+", "(?<!, )BPS"):
        found = re.findall(rf"{who}: compiling \((.*?)\)", err)
        assert set(found) == {"once; the machine code is kept on disk", "once; 12 s last time on this machine"}
        assert len(found) == (2 if "BPS" in who else 4)  # what the reference is run with is prepared twice


# -- the others ----------------------------------------------------------------------------------------------------


@pytest.mark.exact
def test_list(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, err = command("list")
    assert code == 0 and err == ""
    names = (*declared(), *data.PROBLEMS)
    for name in names:
        assert re.search(rf"^  {name} ", out, re.MULTILINE)
    lines = [line for line in out.splitlines() if line.startswith("  ")]
    width = max(map(len, names))
    assert len(lines) == len(names) and all(
        line[2 + width : 4 + width] == "  " and line[4 + width] != " " for line in lines
    )
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    wrapped = command("list")[1]
    assert wrapped.split() == out.split()
    assert all(len(line) <= 60 or line.startswith("Samplers") for line in wrapped.splitlines())
    assert all(line[2 + width : 4 + width] == "  " for line in wrapped.splitlines() if line.startswith("  "))


@pytest.mark.exact
@pytest.mark.parametrize("goal", ["--ess 10", "--rhat 1.5", "--gradients 40", "--data-passes 50", ""])
def test_a_budget_of_passes_is_for_runs_without_another_end(goal, small, command, monkeypatch):
    asked = []

    def run(*args, **options):
        asked.append({name: options[name] for name in ("data_passes", "gradients", "ess", "rhat") if options[name]})
        raise cli.UserError("seen")

    monkeypatch.setattr(cli, "run_sample", run)
    command(f"sample BPS small.csv --target label {goal}")
    name = goal.split()[0].strip("-").replace("-", "_") if goal else "data_passes"
    assert [list(one) for one in asked] == [[name]]


@pytest.mark.exact
def test_sample_until_a_goal(small, command):
    call = "sample BPS small.csv --target label --chains 2 --seed 1 --save run.npz "
    code, out, err = command(call + "--ess 10 --rhat 2")
    run = pdmp.load("run.npz")
    assert code == 0, err
    spent = (
        f"BPS: 2 chains of {run.stats['data_passes'] / 2:,.0f} data passes each; in all "
        f"{run.stats['total_events']:,} events, 0 "
    )
    assert spent in out.splitlines()[-2] and "written: run.npz" in out.splitlines()[-1]
    assert run.stopped == "ess, rhat" and min(d.min() for d in pdmp.diagnostics.effective_draws(run).values()) >= 10
    assert command(call + "--gradients 40")[0] == 0
    assert pdmp.load("run.npz").stopped == "gradients"
    if os.path.isdir("/proc/self"):  # where nobody may write
        code, _, err = command("sample BPS small.csv --target label --gradients 40 --save /proc/run.npz")
        assert code == 2 and "pdmp: --save names '/proc/run.npz', which may not be written: " in err
    code, _, err = command(call + "--data-passes 1e-9")
    assert code == 2 and err.splitlines()[-1].startswith(
        "pdmp: the budget ended before there was a path after the warm-up"
    )
    code, _, err = command(call + "--ess 30 --gradients 40 --data-passes 40")
    assert code == 2 and err.startswith("pdmp: --gradients and --data-passes are the same budget")


@pytest.mark.exact
@pytest.mark.slow
def test_one_process_of_a_sampler_that_has_several(small, command, monkeypatch):
    seen = []

    def run(process, **options):
        seen.append(process)
        raise cli.UserError("seen")

    monkeypatch.setattr(cli, "run_sample", run)
    monkeypatch.setattr(comparison, "_prepare", lambda *given: None)
    model, mode = cli._model(data.read("small.csv", "label"))
    processes = comparison.configured(model, mode, {"SGBD": comparison.registered()["SGBD"]})
    assert len({repr(process) for process in processes.values()}) == len(processes) > 2
    for label, process in processes.items():
        command(f"sample '{label.lower()}' small.csv --target label")
        assert repr(seen.pop()) == repr(process)


@pytest.mark.exact
def test_a_warning_is_one_line(small, command, monkeypatch):
    def warn(*_):
        warnings.warn("`ess=30` was not reached:\nlonger", UserWarning, stacklevel=2)
        raise cli.UserError("enough")

    monkeypatch.setattr(cli, "_model", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = command("sample BPS small.csv --target label")
    assert err == "pdmp: warning: --ess 30 was not reached: longer\npdmp: enough\n"


@pytest.mark.exact
@pytest.mark.parametrize("name", ["compare", "sample BPS", "tune SGLD"])
def test_every_option_of_a_table_is_passed_on(name, small, command, monkeypatch):
    seen = {}

    def read(path, **options):
        seen.update(options, path=str(path))
        raise cli.UserError("seen")

    monkeypatch.setattr(data, "read", read)
    given = (
        "--positive p --above 3 --one-hot --drop-constant --drop a --drop 'b c' --drop-missing --index i --sep '\\t'"
    )
    assert command(f"{name} small.csv --target label {given} --no-intercept --as-is")[0] == 2
    assert seen == {
        "path": "small.csv",
        "target": "label",
        "positive": "p",
        "above": 3.0,
        "one_hot": True,
        "drop_constant": True,
        "drop": ["a", "b c"],
        "drop_missing": True,
        "index": "i",
        "sep": "\t",
        "standardise": False,
        "intercept": None,
    }


@pytest.mark.exact
@pytest.mark.parametrize("name", ["compare", "sample BPS", "tune SGLD"])
def test_tables_are_read_with_their_targets(name, small, command, monkeypatch):
    whole = data.read("small.csv", "label")
    table = np.loadtxt("small.csv", delimiter=",", skiprows=1)
    X, y = table[:, :2], table[:, 2]
    np.save("small.npy", table)
    np.save("X.npy", X)
    np.save("y.npy", y)
    files = ["small.csv --target label", "small.npy --target -1", "X.npy --target y.npy"]
    seen = []

    def stop(dataset):
        seen.append(dataset)
        raise cli.UserError("seen")

    monkeypatch.setattr(cli, "_model", stop)
    for file in files:
        code, _, err = command(f"{name} {file}")
        assert code == 2 and err == "pdmp: seen\n", err
        found = seen[-1]
        assert np.array_equal(found.y, whole.y) and np.array_equal(found.train_rows, whole.train_rows)
        assert np.array_equal(found.X, whole.X)
    command(f"{name} small.csv --target label --as-is --no-intercept")
    assert np.array_equal(seen[-1].X, X)
    headline = cli._headline(seen[-1], types.SimpleNamespace(n_data=96, dim=2))
    assert "d = 2 without intercept, features as they are, priors" in headline
    monkeypatch.setattr(cli, "MOST_NUMBERS", 359)
    with open("small.svm", "w", encoding="utf-8") as file:
        file.writelines(f"{t:g} 1:{a!r} 2:{b!r}\n" for (a, b), t in zip(X.tolist(), y.tolist(), strict=True))
    _, _, err = command(f"{name} small.svm")
    assert "small.svm has 120 rows and 3 columns, too many for this command" in err
    monkeypatch.setattr(cli, "MOST_NUMBERS", 360)
    assert command(f"{name} small.svm")[2] == "pdmp: seen\n"
    assert isinstance(seen[-1].X, np.ndarray) and np.array_equal(seen[-1].X, data.read("small.svm", None).X.toarray())


@pytest.mark.parametrize("name", ["compare", "sample", "list"])
def test_the_example_in_the_help_runs(name, here, command):
    code, out, _ = command(f"{name} --help")
    assert code == 0
    example = re.search(r"Example: pdmp (.*?)\n\s*\n|Example: pdmp (.*)", out, re.DOTALL)
    code, out, _ = command(" ".join((example[1] or example[2]).split("\n\n")[0].split()))
    assert code == 0 and out


@pytest.mark.exact
def test_help_without_arguments(command, monkeypatch):
    code, out, err = command("")
    assert code == 0 and err == "" and out == command("--help")[1]
    lines = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert lines[0] == "Usage:" and {"compare", "sample", "tune", "fit", "list"} < set(lines)
    monkeypatch.setattr("sys.argv", ["pdmp"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0


def test_tune(small, command):
    call = "tune SGLD small.csv --target label --budget 100 --seed 3 --out found"
    code, out, err = command(call)
    assert code == 0, err
    assert "best: size=" in out and "written: found/tuning.png, found/tuning.csv" in out
    assert "SGLD: 16 of 16 runs scored" in err
    with open(small / "found" / "tuning.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["size"] for row in rows} == {"2", "9"} and len(rows) == 16
    assert matplotlib.image.imread(small / "found" / "tuning.png").shape[1] > 500 and not pyplot.get_fignums()
    code, _, err = command("tune SGLD --data small.csv --target label --budget 0.0001")
    assert code == 2 and "pdmp: --budget is too small for one round" in err


@pytest.mark.exact
def test_what_tune_prints_and_writes(small, command, spies, monkeypatch):
    rows = [
        {"step": step, "size": 2, "round": 0, "spent": 10.0, "score": score, "kept": kept, "draws": 9, "why": ""}
        for step, score, kept in ((0.1, 0.5, True), (0.25, np.inf, False))
    ]
    found = pdmp.tuning.competition.Tuning({"step": 0.1, "size": 2}, 0.5, rows, "data", "ksd", 3, None)
    drawn = Spy(Figure(figsize=(1, 1)))
    spies["mamba"].result = found
    monkeypatch.setattr(cli.plots, "tuning", drawn)
    call = "tune SGLD small.csv --target label --seed 3 --out found"
    code, out, _ = command(call)
    assert code == 0 and out.endswith(f"\n{found}\nwritten: found/tuning.png, found/tuning.csv\n")
    assert drawn.only == ((found,), {}) and (small / "found" / "tuning.png").read_bytes()[1:4] == b"PNG"
    with open(small / "found" / "tuning.csv", newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [{name: str(value) for name, value in row.items()} for row in rows]
    code, out, err = command(f"{call} --json")
    about = {"problem": "small", "sampler": "SGLD", "metric": "ksd", "best": found.best}
    assert code == 0 and json.loads(out) == about | {"table": [rows[0], rows[1] | {"score": None}]}
    assert "Bayesian logistic regression" in err and err.endswith("written: found/tuning.png, found/tuning.csv\n")


@pytest.mark.exact
@pytest.mark.parametrize(("stopped", "code"), [("interrupted", 130), ("data_passes", 0)])
def test_a_run_that_was_interrupted_is_printed_and_told_by_the_exit_code(stopped, code, small, command, spies):
    process = types.SimpleNamespace(recipe=types.SimpleNamespace(setting=lambda process: "fast"))
    stats = {"data_passes": 48_000.0, "total_events": 7_001, "bound_violations": 1_002, "seconds": 0.5}
    saved, made = [], types.SimpleNamespace(stats=stats, stopped=stopped, chains=4, summary=lambda: "the table")
    made.records, made.save = [types.SimpleNamespace(length=length) for length in (0.0, 1.0)], saved.append
    spies["configured"].result, spies["sample"].result = {"BPS": process}, made
    found, out, _ = command("sample BPS small.csv --target label --save run.npz")
    assert found == code and [str(path) for path in saved] == ["run.npz"]
    said = "BPS (fast): 4 chains of 12,000 data passes each; in all 7,001 events, 1,002 bound violations, 0.50 s"
    assert out.endswith(f"the table\n{said}\nwritten: run.npz\n")
    made.records.pop()
    found, _, err = command("sample BPS small.csv --target label")
    assert found == (code or 2) and ("the budget ended before there was a path" in err) == (code == 0)


@pytest.mark.exact
def test_samplers_and_problems_as_json_and_the_version(command):
    code, out, _ = command("list --json")
    found = json.loads(out)
    assert code == 0 and found["problems"] == {name: load.about for name, load in data.PROBLEMS.items()}
    assert found["samplers"] == {name: cls.__doc__.strip().splitlines()[0] for name, cls in declared().items()}
    assert list(found["samplers"]) == sorted(found["samplers"])
    assert command("--version") == (0, f"pdmp {pdmp.__version__}\n", "")


@pytest.mark.exact
def test_the_address_of_a_cluster(monkeypatch):
    events = []

    class Client:
        def __init__(self, address):
            events.append(address)
            if "nowhere" in address:
                raise OSError("timed out")

        def __enter__(self):
            events.append("open")

        def __exit__(self, *_):
            events.append("closed")

    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(Client=Client))
    with cli._executor("tcp://10.0.0.1:8786") as where:
        assert isinstance(where, Client) and events == ["tcp://10.0.0.1:8786", "open"]
    assert events[-1] == "closed"
    with pytest.raises(cli.UserError, match=r"--executor: no Dask scheduler at 'nowhere:1' \(timed out\)"):
        cli._executor("nowhere:1").__enter__()
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(cli.UserError, match="--executor with an address needs Dask"):
        cli._executor("here:1").__enter__()


@pytest.mark.exact
def test_progress_on_a_terminal_is_one_line(monkeypatch):
    for is_terminal, wanted in ((True, "\r\x1b[2Kone\r\x1b[2K"), (False, "one\n")):
        stderr = io.StringIO()
        stderr.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, "stderr", stderr)
        cli._say("one")
        cli._say("")
        assert stderr.getvalue() == wanted


# -- mistakes: one line on stderr, exit code 2 --------------------------------------------------------------------


@pytest.mark.exact
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("sample BPS small.csv --target label --save small.csv", "--save would overwrite 'small.csv'"),
        ("sample BPS small.csv --target label --save pipe", "--save must name a file; 'pipe' is none"),
        ("compare small.csv --target label --html ./small.csv", "--html would overwrite 'small.csv'"),
        ("compare small.csv --target label --html compare.png", "--out would overwrite 'compare.png'"),
        ("tune SGLD tuning.csv --target label", "--out would overwrite 'tuning.csv', which this command reads or"),
    ],
)
def test_outputs_do_not_overwrite_what_is_read(call, says, small, command, monkeypatch):
    for place, name in ((cli, "run_sample"), (cli.comparison, "compare"), (cli.tuning, "mamba")):
        monkeypatch.setattr(place, name, None)  # nothing is run
    (small / "tuning.csv").write_bytes((small / "small.csv").read_bytes())
    os.mkfifo(small / "pipe")
    table = (small / "small.csv").read_bytes()
    code, _, err = command(call)
    assert code == 2 and says in err and err.count("\n") == 1
    assert (small / "small.csv").read_bytes() == (small / "tuning.csv").read_bytes() == table


@pytest.mark.exact
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("compare --problem wien", "no problem 'wien'; did you mean 'wine'?"),
        ("compare --samplers SGLD,BSP", "no sampler 'BSP'; did you mean"),
        ("compare --samplers 'SGBD korrected'", "did you mean 'SGBD corrected'?"),
        ("compare --samplers ,", "',' names no sampler"),
        ("compare --problem wine --data small.csv", "--problem or --data, not both"),
        ("compare small.csv --data small.csv --target label", "give FILE or --data FILE, not both"),
        ("compare small.csv --problem wine", "--problem or --data, not both"),
        ("tune SGLD absent.parquet --target label", "no file 'absent.parquet'"),
        ("sample BPS small.csv --target c", "no column 'c'"),
        ("compare --target label", "--target goes with --data"),
        ("compare --one-hot", "--one-hot goes with --data"),
        ("compare --above 0", "--above goes with --data"),
        ("sample BPS --problem wine --as-is", "--as-is goes with --data"),
        ("compare --data small.csv", "--target is missing"),
        ("compare small.csv --target label --drop c", "--drop names 'c', which is no column"),
        ("tune SGLD small.csv --target label --sep ab", "--sep must be one character"),
        ("compare --drop-missing", "--drop-missing goes with --data"),
        ("sample BPS small.csv --target label --ess 0", "--ess must be positive and finite, got 0"),
        ("sample BPS small.csv --target label --rhat 1", "--rhat must be above 1 and finite, got 1"),
        ("sample BPS small.csv --target label --gradients nan", "--gradients must be positive and finite, got nan"),
        (
            "sample BPS small.csv --target label --rhat 1.1 --chains 1",
            "--rhat compares chains: give --chains of at least 2, got 1",
        ),
        ("compare --data small.csv --target lable", "no column 'lable'; did you mean 'label'?"),
        ("compare --data absent.csv --target label", "no file 'absent.csv'"),
        ("compare --data bad.csv --target label", "missing values in column 'a', the first in row 3"),
        ("compare --data text.csv --target label", "text in column 'a'"),
        ("compare --data-passes 0 small.csv --target label", "--data-passes must be positive"),
        ("compare --data-passes nan small.csv --target label", "--data-passes must be positive"),
        ("compare --data-passes many", "Invalid value for '--data-passes'"),
        ("compare --seed -1", "--seed must not be negative"),
        ("compare small.csv --target label --out small.csv", "cannot write into 'small.csv'"),
        ("compare --quikc", "No such option"),
        ("sample", "Missing argument"),
        ("sample ZigZga --problem wine", "did you mean 'ZigZag'?"),
        ("sample SGBD small.csv --target label", "'SGBD' names several processes; give one of 'SGBD vanilla'"),
        ("sample BPS small.csv --target label --save absent/run.npz", "not a folder"),
        ("sample BPS --chains 0", "Invalid value for '--chains'"),
        ("tune ZigZag small.csv --target label", "ZigZag has nothing to tune"),
        ("tune SGLD,SBPS", "SAMPLER must be one name"),
        ("tune SGLD --metric elbo small.csv --target label", "--metric must be ksd or fssd, got 'elbo'"),
        ("tune SGLD --budget 0 small.csv --target label", "--budget must be positive"),
        ("compare small.csv --target label --quick --executor 0", "--executor must be a number of processes or"),
        ("tune SGLD small.csv --target label --executor many", "--executor must be a number of processes or"),
        ("compair", "No such command"),
    ],
)
def test_mistakes(call, says, small, command):
    (small / "bad.csv").write_text("a,label\n1,0\n,1\n2,0\n")
    (small / "text.csv").write_text("a,label\nx,0\ny,1\n")
    code, out, err = command(call)
    assert code == 2
    assert says in err and err.startswith("pdmp: ") and err.count("\n") == 1 and "Traceback" not in err
    assert not (small / "compare.csv").exists()


@pytest.mark.exact
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            'fit "label ~ a" small.csv --select a --select b',
            "--select is given twice; several names stand between commas",
        ),
        ("compare small.csv --target label --samplers BPS --samplers SGLD", "--samplers is given twice; several names"),
        ("sample BPS --problem wine --data-passes 9 --problem higgs", "--problem is given twice.\n"),
        ("tune SGLD --problem wine --seed 1 --seed 1", "--seed is given twice.\n"),
        ("compare --problem wine --samplers ''", "'' names no sampler"),
        ('fit "label ~ a" small.csv --predictions new.csv', "--predictions goes with --predict"),
        ('fit "label ~ a" small.csv --unseen error', "--unseen goes with --predict"),
        ('fit "y ~ a" small.csv --also "y ~ b"', "--also is for another parameter, and FORMULA has the response"),
        ('fit "label ~ s(b)" small.csv --predict new.csv', "`formula` names 'b', and --predict new.csv has no such"),
        ('fit "label ~ s(a, by=b)" small.csv --predict new.csv', "`formula` names 'b', and --predict new.csv has no"),
        ('fit "label | rate(b) ~ a" small.csv --family poisson --predict new.csv', "names 'b', and --predict new.csv"),
        ('fit "label | trials(b) ~ a" small.csv --family binomial --predict new.csv', "names 'b', and --predict new"),
        ('fit "a | trunc(lb=b) ~ label" small.csv --predict new.csv', "names 'b', and --predict new.csv"),
    ],
)
def test_options_that_would_count_for_nothing(call, says, small, command, monkeypatch):
    """Said before anything is read or sampled."""
    (small / "new.csv").write_text("a,label\n1,0\n2,1\n")
    for owner, name in ((cli.formulas, "regression"), (cli, "run_sample"), (cli.comparison, "compare")):
        monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("it began"))
    code, _, err = command(call)
    assert code == 2 and says in err and err.startswith("pdmp: ") and err.count("\n") == 1


@pytest.mark.exact
def test_rows_to_predict_have_text_where_the_fit_has(small):
    """A CSV file has no types: of levels "10", "2" and "x" it may hold those that look like numbers."""
    old = pandas.DataFrame({"y": range(6), "a": ["10", "2", "x"] * 2, "k": [1, 2, 3] * 2, "f": [True, False] * 3})
    old.to_csv(small / "old.csv", index=False)
    asked = ["y ~ a + f + (1 | k)"]
    for a, k, f, says in (
        (["2", "10"], [1, 3], [True, False], None),
        (["2", "7"], [1, 3], [True, False], "row 1 has a = '7', and old.csv has no such row"),
        (["2", "x"], ["1", "z"], [True, False], "has k = 'z', and old.csv has numbers there"),
        (["2", "x"], [1, 7], [True, False], "row 1 has k = 7, and old.csv has no such row; --unseen zero or"),
    ):
        pandas.DataFrame({"a": a, "k": k, "f": f}).to_csv(small / "new.csv", index=False)
        told = pytest.raises(cli.UserError, match=says) if says else contextlib.nullcontext()
        with told:
            new = cli._to_predict("new.csv", asked, [], pathlib.Path("old.csv"), True)
            assert new.a.tolist() == a and new.k.tolist() == k and new.f.tolist() == f
    # A category of numbers, which Parquet files have, is none of text.
    old.assign(k=pandas.Categorical(old.k)).to_parquet(small / "old.parquet")
    pandas.DataFrame({"a": ["2"], "k": [3], "f": [True]}).to_csv(small / "new.csv", index=False)
    new = cli._to_predict("new.csv", asked, [], pathlib.Path("old.parquet"), True)
    assert new.k.tolist() == [3] and new.a.tolist() == ["2"]


@pytest.mark.exact
@pytest.mark.parametrize(
    ("option", "passed"),
    [
        ("", {}),
        ("--link log", {"link": "log"}),
        ("--select all", {"select": "all"}),
        ("--select 'a, b'", {"select": ["a", "b"]}),
        ("--sampler zigzag", {"sampler": "zigzag"}),
        (
            "--family gamma --offset a --exposure b --weights label --ess 9 --rhat 1.5 --chains 2 --seed 1",
            {
                **{"family": "gamma", "offset": "a", "exposure": "b", "weights": "label"},
                **{"ess": 9.0, "rhat": 1.5, "chains": 2, "seed": 1},
            },
        ),
        (
            "--prior 'a ~ Normal(0, 2.5)' --prior 'sd(1|g) ~ HalfStudentT(scale=2, degrees=4)'",
            {"priors": {"a": Normal(0.0, 2.5), "sd(1|g)": HalfStudentT(4.0, 2.0)}},
        ),
    ],
)
def test_every_option_of_a_fit_is_passed_on(option, passed, small, command, monkeypatch):
    def regression(formula, data, family="gaussian", priors=None, **options):
        seen.append({"formula": formula, "data": str(data), "family": family, "priors": priors, **options})
        raise cli.UserError("seen")

    seen = []
    monkeypatch.setattr(cli.formulas, "regression", regression)
    assert command(f'fit "label ~ a" small.csv {option}') == (2, "", "pdmp: seen\n")
    default = {"formula": "label ~ a", "data": "small.csv", "family": "gaussian", "priors": None, "link": None}
    default |= dict.fromkeys(["offset", "exposure", "weights", "select", "ess", "rhat"])
    assert seen == [default | {"sampler": "auto", "chains": 4, "seed": 0} | passed]


@pytest.mark.exact
def test_what_the_help_of_a_fit_says_is_what_it_does(small, command, monkeypatch):
    """Where predictions go, and where a spike is: a coordinate that is stuck most of the time is there."""
    helps = {option.name: option.help for option in typer.main.get_command(cli.app).commands["fit"].params}
    written = []

    def check_files(read, *, predictions, **others):
        written.append(f"[default: {predictions}]")
        raise cli.UserError("seen")

    monkeypatch.setattr(cli, "_check_files", check_files)
    command('fit "label ~ a" small.csv --predict new.csv')
    assert len(written) == 1 and written[0] in helps["predictions"]
    run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(pdmp.models.Gaussian([0.3], [[1.0]])), kappa=0.01), events=40, seed=1)
    assert f"exactly {np.median(run.draws(99)):g}:" in helps["select"]


@pytest.mark.exact
def test_options_that_may_stand_twice_are_passed_on(small, command, monkeypatch):
    """--also and --link by parameter, a category called y, flags, and numbers where predictions need no column."""
    (small / "new.csv").write_text("a\n1\n2\n")
    seen = []

    def regression(formula, file, family, priors, *, link, **options):
        seen.append((formula, link))
        raise cli.UserError("seen")

    monkeypatch.setattr(cli.formulas, "regression", regression)
    command('fit "b ~ a" small.csv --also "sigma ~ a" --also "y ~ 1" --link mu=log --link sigma=log --json --json')
    command('fit "label | trials(3) ~ a" small.csv --family binomial --predict new.csv')
    assert seen == [
        ({"b": "b ~ a", "sigma": "~ a", "y": "~ 1"}, {"mu": "log", "sigma": "log"}),
        ("label | trials(3) ~ a", None),
    ]


@pytest.mark.exact
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["Normal(0, 1)"], "--prior must name its parameter, such as \"age ~ Normal(0, 2.5)\", got 'Normal(0, 1)'."),
        (["a ~ Normal(0, 1)", "a ~ Flat()"], "--prior gives 'a' twice."),
        (["a ~ Normal(0)"], "--prior 'a ~ Normal(0)': 'Normal(0)' is no Normal(mean, sd) of numbers: "),
        (["a ~ Normal(0, x)"], "--prior 'a ~ Normal(0, x)': 'Normal(0, x)' is no Normal(mean, sd) of numbers: "),
        (
            ["a ~ Cauchy(1)"],
            "--prior 'a ~ Cauchy(1)': 'Cauchy(1)' is no prior, such as Normal(0, 2.5); there are Normal, ",
        ),
        (["a ~ "], "--prior 'a ~ ': '' is no prior, such as Normal(0, 2.5); "),
        (["a ~ __import__('os').getcwd()"], "is no prior, such as Normal(0, 2.5); "),
    ],
)
def test_priors_that_cannot_be_read(given, says):
    with pytest.raises(cli.UserError) as error:
        cli._priors(given)
    assert says in str(error.value)


@pytest.mark.exact
def test_every_prior_is_read_as_it_is_printed():
    """A law that is none of these is missing here, or in the package."""
    laws = [law for law in Prior.__subclasses__() if law.__module__ == priors.__name__]
    assert len(laws) == 9
    for law in laws:
        prior = law(*(0.5 + k for k in range(len(dataclasses.fields(law)))))
        assert read_prior(str(prior)) == prior == read_prior(repr(prior)) and type(read_prior(str(prior))) is law


def test_an_expression_is_fitted_by_the_command(here, command):
    """Whose parameters need priors."""
    x = np.linspace(0.0, 4.0, 30)
    y = 2.0 * np.exp(-0.7 * x) + 0.05 * np.cos(9.0 * x)
    pandas.DataFrame({"x": x, "y": y}).to_csv(here / "decay.csv", index=False)
    fit = 'fit "y ~ top * exp(-rate * x)" decay.csv --also "top + rate ~ 1" --ess 40 --rhat 1.5 --seed 1'
    pandas.DataFrame({"x": [0.0, 1.0]}).to_csv(here / "new.csv", index=False)
    code, out, _ = command(f'{fit} --prior "top ~ Normal(2, 1)" --prior "rate ~ Normal(1, 1)" --predict new.csv')
    assert code == 0 and "priors: top: Intercept ~ Normal(2, 1), rate: Intercept ~ Normal(1, 1)" in out
    assert pandas.read_csv(here / "predictions.csv")["mean"].tolist() == pytest.approx([2.0, 1.0], abs=0.1)
    code, _, err = command(f'{fit} --prior "top ~ Normal(2, 1)"')
    assert code == 2 and "must have a prior of 'rate'" in err


def test_problem_that_needs_an_extra(here, command, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "statsmodels.datasets", None)
    code, _, err = command("compare --problem randhie")
    assert code == 2 and "pip install 'pdmp[data]'" in err


@pytest.mark.exact
def test_a_bug_is_not_called_a_mistake(small, monkeypatch):
    def broken(model, mode, classes):
        raise ValueError("a bug")

    monkeypatch.setattr(comparison, "configured", broken)
    with pytest.raises(ValueError, match="a bug"):
        cli.main(["sample", "BPS", "small.csv", "--target", "label"])
