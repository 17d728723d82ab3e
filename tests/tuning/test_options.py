"""What MAMBA and grid search pass on: every option of an arm is one of the process that runs."""

import itertools
import math
import sys

import numpy as np
import pytest

import discrete
import pdmp
from discrete.sghmc import EXPLICIT
from pdmp import tuning
from pdmp.gradients import ControlVariate, Minibatch
from tests.checks import plain_only
from tests.examples.helpers_papers import FOLDER, load

pytestmark = [pytest.mark.exact, plain_only]

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
MODEL = pdmp.models.LogisticRegression(X, (X[:, 0] + RNG.standard_normal(40) > 0.0).astype(int))
ANCHOR = np.array([0.5, 0.25])
GRID = {"step": [1e-3, 2e-3], "size": [3, 4], "friction": [0.7, 1.1], "leaps": [2, 3], "controlled": [False, True]}


def leapfrog(step, size, friction, leaps, controlled):
    provider = ControlVariate(MODEL, size, anchor=ANCHOR) if controlled else Minibatch(MODEL, size)
    return discrete.SGHMC(provider, step, friction, scheme="semi_implicit", refresh_every=leaps)


def options(process):
    """The arm that a process is."""
    controlled = isinstance(process.provider, ControlVariate)
    assert not controlled or np.array_equal(process.provider.anchor, ANCHOR)
    return {
        "step": process.schedule.step(0),
        "size": process.provider.size,
        "friction": process.friction,
        "leaps": process.refresh_every,
        "controlled": controlled,
    }


@pytest.fixture
def ran(monkeypatch):
    """The processes that `pdmp.sample` was given, and runs that go on."""
    module, seen = sys.modules["pdmp.tuning.competition"], []
    sample, extend = module.sample, module.extend

    def first(process, **told):
        seen.append((process, sample(process, **told)))
        return seen[-1][1]

    def further(run, **told):
        found = extend(run, **told)
        seen.append((seen[[id(r) for _, r in seen].index(id(run))][0], found))
        return found

    monkeypatch.setattr(module, "sample", first)
    monkeypatch.setattr(module, "extend", further)
    return seen


def test_discrepancies_are_of_the_batches_of_the_run(problem, monkeypatch):
    script, its, _ = problem
    asked, sizes = [], []

    def scores(target, x, **options):
        asked.append((target, options))
        return np.asarray(-x)

    def ksd(x, scores, **options):
        sizes.append((len(x), options.get("statistic")))
        return 1.0

    monkeypatch.setattr(script, "scores", scores)
    monkeypatch.setattr(script, "ksd", ksd)
    found = script.estimates(its, -3.0, 0.05, 4, steps=40, store="grid", draws=20)
    assert found == [1.0] * 5
    assert asked == [(its.model, {}), (its.provider(False, 0.05), {"seed": 5})]
    assert sorted(sizes, key=str) == sorted([(20, None), (4, None), (20, None), (4, None), (20, "u")], key=str)


def test_curves_and_measures_of_several_runs(problem, monkeypatch):
    """Bands are two standard deviations of the runs, and errors those of their mean."""
    script, table = problem[0], load(FOLDER / "logistic_mamba.py", monkeypatch).common.Table()
    script.add_curve(table, "grid", "SGLD", np.array([1.0, 2.0]), [[1.0, 4.0], [3.0, 4.0]])
    np.testing.assert_allclose(table.get("curve of SGLD", "grid"), [[1.0, 2.0], [2.0, 4.0], [2.0**0.5, 0.0]], rtol=1e-6)
    script.add_measures(table, "grid", "SGLD", [{"KSD": 1.0, "curve": [0.0]}, {"KSD": 3.0, "curve": [0.0]}])
    np.testing.assert_allclose(table.get("KSD", "grid"), [[0.0], [2.0], [1.0]])
    assert table.series("curve") == []


@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
@pytest.mark.parametrize("search", [tuning.mamba, tuning.grid_search])
def test_every_option_of_an_arm_reaches_the_process_that_runs(search, ran):
    """In each round; and a step looks at as many data as its batch has."""
    arms = tuning.grid(**GRID)
    found = search(
        leapfrog, arms, 200 if search is tuning.mamba else 20, "ksd", "steps", seed=1, thin=1, draws=5, workers=1
    )
    assert [options(process) for process, _ in ran[: len(arms)]] == arms
    rounds = {row["round"] for row in found.table}
    assert len(rounds) == (3 if search is tuning.mamba else 1)
    assert len(ran) == len(found.table)
    for (process, run), row in zip(ran, found.table, strict=True):
        arm = {name: row[name] for name in GRID}
        assert options(process) == arm and process.model is MODEL
        steps, data = int(run.events[0]), run.stats["data_terms"]
        assert steps == round(row["spent"]) and data == steps * arm["size"]
    assert options(next(p for p, run in ran if run is found.run)) == found.best


# ---------------------------------------------------------------------------------------------------------------
# The settings of the paper's figures


@pytest.fixture
def problem(monkeypatch):
    """The problem of the scripts on MAMBA, and what its two searches were called with."""
    script, seen = load(FOLDER / "_mamba.py", monkeypatch), {}
    for name in ("mamba", "grid_search"):

        def search(*args, name=name, **told):
            seen[name] = args, told
            return type("Found", (), {"best": "the best"})

        monkeypatch.setattr(script.tuning, name, search)
    return script, script.Problem(MODEL, ANCHOR, [-2.0, -3.0], [1.0, 0.1, 0.05], 0.3, workers=1), seen


@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
def test_the_settings_of_the_figures_reach_the_processes(problem):
    script, its, seen = problem
    for name in script.NAMES:
        kind, _, controlled = name.partition("-")
        assert its.mamba(name, "ksd", 7, 5, 30, 3) == its.grid(name, "loss", 9, 6, 20) == "the best"
        (make, arms, *rest), told = seen["mamba"]
        assert rest == [7, "ksd", "data"] and np.array_equal(told.pop("initial"), ANCHOR)
        assert told == {"seed": 5, "draws": 30, "thin": 3, "workers": 1}
        leaps = [5, 10] if kind == "SGHMC" else [None]
        wanted = list(itertools.product([-2.0, -3.0], [1.0, 0.1, 0.05], leaps))
        assert [(arm["log_step"], arm["share"], arm.get("leaps")) for arm in arms] == wanted
        for arm in arms:
            process = make(**arm)
            assert type(process).__name__ == kind and isinstance(process.provider, ControlVariate) == bool(controlled)
            assert process.provider.size == max(2, round(arm["share"] * 40))
            assert process.anchor is None if not controlled else np.array_equal(process.anchor, ANCHOR)
            h = 10.0 ** arm["log_step"]
            if kind == "SGLD":
                assert process.schedule.step(0) == h
            else:
                eps = math.sqrt(h)
                assert process.schedule.step(0) == pytest.approx(eps)
                rate = process.friction if kind == "SGHMC" else process.diffusion
                assert rate == pytest.approx(0.01 / eps)
            if kind == "SGHMC":
                assert process.refresh_every == arm["leaps"] and process.scheme == EXPLICIT
        (make, arms, *rest), told = seen["grid_search"]
        assert rest == [9, "loss", "data", 6] and np.array_equal(told.pop("initial"), ANCHOR)
        assert told == {"start_noise": 0.3, "draws": 20, "thin": 2, "workers": 1}
        assert {arm["share"] for arm in arms} == {0.1}  # 10 % of the data
