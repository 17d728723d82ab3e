"""What a comparison says of its samplers in words, the order of its rows, and the table as text and as JSON."""

import csv
import json
import math
import sys
import types

import matplotlib.figure
import numpy as np
import pytest

import discrete
import pdmp
from pdmp import cli, comparison
from pdmp.comparison import Comparison, Reference, Verdict
from tests.checks import plain_only
from tests.commands import Spy, command, here, small, spies  # noqa: F401
from tests.registry import installed  # noqa: F401

pytestmark = [pytest.mark.exact, plain_only]

NAMES = ["a", "b"]
TRUTH = Reference(np.array([1.0, -1.0]), np.array([1.0, 0.5]), np.diag([1.0, 0.25]), np.zeros((9, 2)), 1.0, 1e8)
GOOD = {
    "mean": TRUTH.mean,
    "sd": TRUTH.sd,
    "error": np.array([0.02, 0.01]),
    "sd_ess": np.array([1e4, 1e4]),
    "rhat": np.array([1.0, 1.01]),
}

#: What changes, the verdict, and what its reason says. The standard errors of the means are 0.02 posterior sds, those
#: of the sds √(1/2/10⁴) = 0.7 %.
CASES = [
    (
        {},
        "fine",
        "means off by at most 0 posterior sd, sds by 0 %; largest Monte Carlo error of a mean 0.02 posterior sd",
    ),
    ({"mean": [1.0, -1.045]}, "fine", "means off by at most 0.09 posterior sd"),  # 4.5 errors, but small
    ({"mean": [1.0, -1.06]}, "biased", "the mean of b is off by 0.12 posterior sd, 6 standard errors"),
    ({"mean": [0.85, -1.0], "error": [0.04, 0.01]}, "fine", "0.15 posterior sd"),  # not four standard errors
    ({"mean": [0.83, -1.0], "error": [0.04, 0.01]}, "biased", "the mean of a is off by 0.17 posterior sd, 4 standard"),
    ({"sd": [0.92, 0.5]}, "fine", "sds by 8 %"),
    ({"sd": [0.88, 0.5]}, "biased", "the sd of a is off by 12 %, 17 standard errors"),
    ({"sd": [1.0, 0.58], "sd_ess": [1e4, 200.0]}, "fine", "sds by 16 %"),  # a standard error of 5 %
    ({"sd": [1.0, 0.58], "mean": [1.4, -1.0]}, "biased", "the mean of a is off by 0.4 posterior sd"),  # what is worse
    ({"error": [0.11, 0.01]}, "too short", "the mean of a has a Monte Carlo error of 0.11 posterior sd"),
    ({"error": [0.02, np.nan]}, "too short", "the mean of b has a Monte Carlo error of nan posterior sd"),
    ({"rhat": [1.051, 1.0]}, "too short", "R-hat of a is 1.05"),
    ({"rhat": [1.0, np.nan]}, "too short", "R-hat of b is nan"),
    ({"sd": [1.0, np.nan]}, "too short", "the extrapolated variance of b is negative"),
    ({"rhat": [1.2, 1.0], "mean": [3.0, -1.0]}, "too short", "R-hat of a is 1.2"),  # errors that cannot be trusted
    (
        {"error": [0.11, 0.01], "mean": [2.0, -1.0]},
        "biased",
        "the mean of a is off by 1 posterior sd, 9 standard errors",
    ),
]


@pytest.mark.parametrize(("change", "word", "says"), CASES)
def test_verdicts_by_hand(change, word, says):
    given = GOOD | {name: np.array(value, float) for name, value in change.items()}
    found = comparison._verdict(*given.values(), TRUTH, NAMES)
    assert found.word == word and says in found.reason


def test_the_reference_has_errors_too():
    """Of 1/√ESS of means, and √(2/ESS) of sds, of which it has a quarter as many effective draws."""
    for given, ess, word in (
        ({"mean": [1.3, -1.0]}, 200.0, "biased"),  # 0.0735 posterior sds
        ({"mean": [1.3, -1.0]}, 170.0, "fine"),  # 0.0793
        ({"sd": [1.3, 0.5]}, 400.0, "biased"),  # 0.0714
        ({"sd": [1.3, 0.5]}, 340.0, "fine"),  # 0.0770
    ):
        truth = Reference(TRUTH.mean, TRUTH.sd, TRUTH.cov, TRUTH.draws, 1.0, ess)
        values = GOOD | {name: np.array(value) for name, value in given.items()}
        assert comparison._verdict(*values.values(), truth, NAMES).word == word


LAW = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])


@pytest.fixture(scope="module")
def table():
    processes = {
        "large steps": discrete.SGLD(LAW, step=0.4),
        "broken": discrete.SGLD(LAW, step=1e300),
        "exact": pdmp.BPS(LAW, thinning="affine"),
        "small steps": discrete.SGLD(LAW, step=0.001),
    }
    return pdmp.compare(processes, data_passes=300, reference=TRUTH, seed=1, chains=2, title="a title", names=NAMES)


def test_verdicts_of_runs(table):
    """A step of 0.4 makes the variance of b 1 / (1 - 4·0.4/2) = 5 times too large."""
    words = {label: verdict.word for label, verdict in table.verdicts.items()}
    assert words == {"large steps": "biased", "broken": "failed", "exact": "fine", "small steps": "too short"}
    assert "sd of b is off by 1" in table.verdicts["large steps"].reason
    assert table.verdicts["broken"].reason == "see below" and "broken failed" in "\n".join(table.notes)


def test_what_a_verdict_is_made_of(monkeypatch):
    run = pdmp.sample(pdmp.BPS(LAW, thinning="affine"), events=200, chains=2, seed=1)
    seen = []
    monkeypatch.setattr(comparison, "_verdict", lambda *given: seen.append(given))
    comparison._verdict_of_run(run, TRUTH, NAMES)
    (mean, sd, error, sd_ess, rhat, truth, names) = seen[0]
    for one, other in (
        (mean, run.mean()),
        (sd, run.sd()),
        (error, run.mcse()),
        (sd_ess, pdmp.diagnostics.effective_draws(run)["sd"]),
        (rhat, run.rhat()),
    ):
        assert np.array_equal(one, other)
    assert truth is TRUTH and names is NAMES


def test_the_verdict_on_chains_of_draws(monkeypatch):
    seen = []
    monkeypatch.setattr(comparison, "_verdict", lambda *given: seen.append(given) or Verdict("fine", ""))
    rng = np.random.default_rng(0)
    draws = [rng.standard_normal((n, 2)) * TRUTH.sd + TRUTH.mean for n in (400, 500)]
    spent = [3.0 * np.arange(1, 401), 7.0 + 2.0 * np.arange(1, 501)]
    row, _, thinned, _, verdict, (at, rms) = comparison._of_draws(
        "NUTS", draws, spent, 1.0, 1_500, TRUTH, LAW, None, NAMES
    )
    assert (row["data_passes"], row["events"], row["seconds"]) == ((1_200.0 + 1_007.0) / 2.0, 450.0, 1.0)
    each = np.mean([pdmp.diagnostics.ess(x) for x in draws], axis=0)
    assert row["min_ess"] == pytest.approx(each.min()) and row["median_ess"] == pytest.approx(np.median(each))
    assert row["sd_error"] == pytest.approx(np.mean([np.abs(x.std(axis=0) / TRUTH.sd - 1.0) for x in draws]))
    for x, some in zip(draws, thinned, strict=True):
        np.testing.assert_array_equal(some, x[np.linspace(0, len(x) - 1, 400).astype(int)])
    mean, sd, error, sd_ess, rhat, *_ = seen[0]
    x = np.array([draws[0], draws[1][:400]])
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1)))
    np.testing.assert_allclose(sd, x.std(axis=(0, 1)))
    np.testing.assert_allclose(error, sd / np.sqrt(pdmp.diagnostics.ess(x)))
    np.testing.assert_allclose(sd_ess, pdmp.diagnostics.ess(x, "sd"))
    np.testing.assert_allclose(rhat, pdmp.diagnostics.rhat(x))
    assert verdict.word == "fine" and at[-1] == np.mean([1_200.0, 807.0]) and at[0] == np.mean([3.0, 9.0])
    ends = np.array([one[:400].mean(axis=0) for one in draws])
    assert rms[-1] == pytest.approx(np.sqrt(np.mean(((ends - TRUTH.mean) / TRUTH.sd) ** 2)))


def test_root_mean_square_errors_by_pass(table):
    run = pdmp.sample(
        pdmp.BPS(LAW, thinning="affine"),
        initial=LAW.mode() + np.random.default_rng([1, 1]).standard_normal((2, 2)) @ np.diag([1.0, 0.5]),
        data_passes=300,
        warmup=comparison.WARMUP,
        chains=2,
        seed=1,
    )
    passes, rms = table.rms_by_pass["exact"]
    assert np.array_equal(passes, table.errors_by_pass["exact"][0])
    means = np.array([path.mean() for path in run.trajectories])
    assert rms[-1] == pytest.approx(np.sqrt(np.mean(((means - TRUTH.mean) / TRUTH.sd) ** 2)), rel=1e-9)
    assert np.all(rms >= table.errors_by_pass["exact"][1])
    early = []  # on its way the curve is of time averages up to there
    for path in run.trajectories:
        until = path.warmup + (passes[7] / passes[-1] - 0.02) / 0.98 * (path.end - path.warmup)
        early.append(np.abs(path.mean(path.warmup, until) - TRUTH.mean) / TRUTH.sd)
    assert table.errors_by_pass["exact"][1][7] == pytest.approx(np.mean(early), rel=1e-9)


def test_the_table_as_text(table):
    _, heading, units, *lines = repr(table).splitlines()
    for line, row in zip(lines, table.ranked(), strict=False):  # each with its own verdict and numbers
        label, word, passes = [cell.strip() for cell in line.split("  ") if cell.strip()][:3]
        assert (label, word) == (row["sampler"], table.verdicts[row["sampler"]].word)
        shown = "-" if math.isnan(row["mean_error"]) else f"{row['mean_error']:.3f}"
        assert passes == ("-" if shown == "-" else f"{row['data_passes']:,.0f}") and shown in line.split()
    # A unit stands under its heading, the right ends in line.
    for name, unit in (("time", "s"), ("mean err", "post. sd"), ("sd err", "relative"), ("ESS/pass", "draws")):
        assert units[: heading.index(name) + len(name)].endswith(f" {unit}")


def test_the_table_as_csv(table, tmp_path):
    """Rows as they were given, at full precision."""
    table.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for found, row in zip(rows, table.rows, strict=True):
        assert list(found) == list(Comparison.COLUMNS)
        assert found == {name: str(row[name]) for name in Comparison.COLUMNS}


# -- the command -----------------------------------------------------------------------------------------------------

CALL = "compare small.csv --target label --samplers BPS --seed 7 --quick"


@pytest.fixture
def drawn(monkeypatch, spies, table):  # noqa: F811
    """The command's comparison is `table`; its picture is a small one, and a report is not written."""
    spies["compare"].result = table
    spies["configured"].result = {"BPS": types.SimpleNamespace(__class__="BPS")}
    spies["report"], spies["picture"] = Spy(), Spy(matplotlib.figure.Figure(figsize=(1, 1)))
    monkeypatch.setattr(cli.plots, "report", spies["report"])
    monkeypatch.setattr(cli.plots, "compare", spies["picture"])
    return spies


def test_the_command_prints_the_table(small, command, drawn, table):  # noqa: F811
    code, out, err = command(CALL)
    assert code == 0 and f"\n{table!r}\n" in out and out.endswith("written: compare.png, compare.csv\n")
    assert out.startswith("small.csv: label\nBayesian logistic regression") and not drawn["report"].calls
    assert drawn["picture"].only == ((table,), {})
    assert (small / "compare.png").exists() and (small / "compare.csv").exists()


def test_a_report_is_written_where_it_is_asked_for(small, command, drawn, table):  # noqa: F811
    code, out, err = command(f"{CALL} --html there.html")
    assert code == 0 and out.endswith("written: compare.png, compare.csv, there.html\n")
    (given, path, settings), options = drawn["report"].only
    assert given is table and str(path) == "there.html" and options == {}
    assert settings["seed"] == 7 and settings["data passes of each chain"] == "1,000"
    assert settings["effective draws of the reference"] == "1,000" and settings["pdmp"] == pdmp.__version__
    assert settings["problem"].endswith("priors N(0, 1²)") and settings["processes"].startswith("BPS: ")
    assert settings["Python"] in sys.version and len(settings["date"]) == 10


def test_json_alone_is_on_stdout(small, command, drawn, table):  # noqa: F811
    code, out, err = command(f"{CALL} --json --out there")
    assert code == 0 and json.loads(out) == table.to_dict()
    assert "Bayesian logistic regression" in err and "written: there/compare.png, there/compare.csv" in err
    assert {path.name for path in (small / "there").iterdir()} == {"compare.csv", "compare.png"}


def test_json_is_written_though_all_have_failed(small, command, drawn, table):  # noqa: F811
    drawn["compare"].result = Comparison(table.rows[1:2], {}, TRUTH, NAMES, {}, {})
    code, out, err = command(f"{CALL} --json")
    assert code == 2 and json.loads(out)["rows"][0]["sampler"] == "broken"
    assert err.endswith("pdmp: every sampler failed; there is nothing to draw.\n")


@pytest.mark.parametrize("call", [f"{CALL} --html", "sample BPS small.csv --target label --save"])
def test_files_that_cannot_be_written_are_refused_before_the_run(call, small, command, spies):  # noqa: F811
    name = call.split("--")[-1]
    for where, says in (("absent/file", "which is not a folder"), (".", f"--{name} must name a file; '.' is a folder")):
        code, _, err = command(f"{call} {where}")
        assert code == 2 and says in err and f"--{name}" in err
    assert not spies["compare"].calls and not spies["sample"].calls


@pytest.mark.parametrize(("sd_ess", "word"), [(math.nan, "biased"), (2.5e7, "biased"), (60.0, "fine"), (200.0, "fine")])
def test_a_reference_may_know_its_sds_less_well_than_its_means(sd_ess, word):
    """An sd off by 12 %: of 60 and 200 effective draws its error is 9 and 5 %; by default they are a quarter of all."""
    truth = Reference(TRUTH.mean, TRUTH.sd, TRUTH.cov, TRUTH.draws, 1.0, 1e8, sd_ess=sd_ess)
    values = [(GOOD | {"sd": np.array([0.88, 0.5])})[name] for name in ("mean", "sd", "error", "sd_ess", "rhat")]
    assert comparison._verdict(*values, truth, NAMES).word == word


def test_a_run_as_the_reference_knows_its_sds_by_its_own_draws():
    law = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])
    run = pdmp.sample(pdmp.BPS(law, thinning="affine", refresh_rate=0.05), time=400.0, chains=2, seed=3)
    found = comparison.as_reference(run, 2)
    expected = pdmp.diagnostics.effective_draws(run, of=["sd"])["sd"].min()
    assert found.sd_ess == expected != pytest.approx(0.25 * found.ess)


def test_a_reference_of_unknown_worth_is_refused(monkeypatch):
    """Errors in its units would be NaN, of which none is large: every sampler was fine."""
    unknown = Reference(TRUTH.mean, TRUTH.sd, TRUTH.cov, TRUTH.draws, 1.0, math.nan)
    with pytest.raises(ValueError, match="`reference` has too few draws to say how many effective ones they are"):
        comparison.as_reference(unknown, 2)
    law = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])
    with pdmp.errors.short_runs():
        run = pdmp.sample(pdmp.BPS(law, thinning="affine"), events=2, seed=3)
    with pytest.raises(ValueError, match="`reference` has too few draws"):
        comparison.as_reference(run, 2)
    run = pdmp.sample(pdmp.BPS(law, thinning="affine"), time=400.0, chains=2, seed=3)
    comparison.as_reference(run, 2)
    monkeypatch.setattr(comparison, "effective_draws", lambda *_, **__: {"sd": np.array([np.nan, 90.0])})
    with pytest.raises(ValueError, match="`reference` has too few draws"):  # known in the means alone
        comparison.as_reference(run, 2)


def test_a_run_of_another_posterior_is_no_reference():
    """One that is written in another way is, and one that was loaded, of which no model is known."""
    law = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])
    same = pdmp.models.from_function(
        lambda x: (0.5 * (x[0] - 1.0) ** 2 + 2.0 * (x[1] + 1.0) ** 2 + 1e5, np.array([x[0] - 1.0, 4.0 * (x[1] + 1.0)])),
        2,
    )
    other = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.1])
    run = pdmp.sample(pdmp.BPS(law, thinning="affine"), time=200.0, chains=2, seed=3)
    call = {"data_passes": 20, "chains": 2, "seed": 1, "initial": [0.0, 0.0]}
    for model in (law, same):
        pdmp.compare({"HMC": pdmp.HMC(model, step=0.1)}, reference=run, **call)
    near, far = run.mean(), run.mean() + run.sd()
    theirs, ours = (one.potential(far) - one.potential(near) for one in (law, other))
    says = f"from its mean to an sd beyond its U grows by {theirs:.6g}, and that of the target by {ours:.6g}"
    with pytest.raises(ValueError, match=f"run of another posterior: {says}"):
        pdmp.compare({"HMC": pdmp.HMC(other, step=0.1)}, reference=run, **call)
    run.process = "BPS"
    pdmp.compare({"HMC": pdmp.HMC(other, step=0.1)}, reference=run, **call)
