"""The automatic sampler and NUTS as rows of a comparison: what they may spend, and how they are scored."""

import importlib.util
import math
import sys
import types

import numpy as np
import pytest

import discrete
import pdmp
from pdmp import cli, comparison
from pdmp.comparison import NUTS, Reference
from pdmp.process import Prepared
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, plain_only]

LAW = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])
TRUTH = Reference(np.array([1.0, -1.0]), np.array([1.0, 0.5]), np.diag([1.0, 0.25]), np.zeros((10, 2)), 1.0, 1e4)
START = np.array([[0.5, -1.0], [1.5, -0.5]])


class Chains(NUTS):
    """Two draws alternate, at three gradients each after a warm-up of 100; longer chains go on as shorter ones do."""

    asked = []

    def __init__(self, model):
        self.model = model

    def _chain(self, start, count, seed):
        self.asked.append((start.tolist(), count, seed))
        return start + np.where(np.arange(count) % 2, 1.0, -1.0)[:, None], 100 + 3 * np.arange(1, count + 1)


def test_each_chain_pays_its_share_of_the_warmup(monkeypatch):
    """Of the gradients of all chains, which leave it the rest of its passes."""

    def prepared(model, *, chains, seed, initial):
        process = discrete.SGLD(model, step=0.2)
        process.prepared = Prepared(np.tile(initial, (chains, 1))[:chains], gradients=30 * chains)
        return process

    monkeypatch.setattr(comparison, "auto", prepared)
    table = pdmp.compare({"auto": LAW}, data_passes=90, reference=TRUTH, chains=3, seed=1, initial=[0.5, -1.0])
    process = discrete.SGLD(LAW, step=0.2)
    row, run = table.rows[0], pdmp.sample(process, data_passes=60, chains=3, seed=1, initial=[0.5, -1.0])
    assert row["data_passes"] == 30 + run.stats["data_passes"] / 3 == 90
    assert row["events"] == run.events.mean()
    passes, _ = table.errors_by_pass["auto"]
    assert passes[0] == pytest.approx(30 + 0.01 * run.stats["data_passes"] / 3) and passes[-1] == row["data_passes"]
    table = pdmp.compare({"auto": LAW}, data_passes=30, reference=TRUTH, chains=3, seed=1, initial=[0.5, -1.0])
    assert table.verdicts["auto"] == ("too short", "the warm-up alone takes 30 data passes, and there are 30")


def test_nuts_stops_where_its_gradients_are_spent(monkeypatch):
    Chains.asked.clear()
    times = iter([0.0, 10.0, 11.5, 20.0, 30.0, 34.0])  # of each chain: a run that is too short, and one that is not
    with monkeypatch.context() as patched:
        patched.setattr(comparison, "perf_counter", lambda: next(times))
        draws, spent, seconds = Chains(LAW).run(START, 1_000, 7)
    assert [len(x) for x in draws] == [300, 300] and [used[-1] for used in spent] == [1_000, 1_000]
    assert seconds == (1.5 + 4.0) / 2.0
    starts, counts, seeds = zip(*Chains.asked, strict=True)
    assert counts[0] == 200 and counts[1] >= 300 and set(seeds) == {7, 8}
    assert starts[0] == starts[1] == START[0].tolist() and starts[-1] == START[1].tolist()
    for gradients in (403, 404, 405):  # the 101st draw is at 403, the next at 406
        draws, spent, _ = Chains(LAW).run(START[:1], gradients, 7)
        assert len(draws[0]) == 101 and spent[0][-1] == 403


def test_nuts_is_scored_as_the_others():
    table = pdmp.compare({"NUTS": Chains(LAW)}, data_passes=1_000, reference=TRUTH, chains=2, seed=7, initial=START)
    row = table.rows[0]
    assert row["data_passes"] == 1_000 and row["events"] == 300
    # The means are the starts, whose errors are 0.5, 0, 0.5 and 1 sd; every sd is 1.
    assert row["mean_error"] == pytest.approx(0.5) and row["max_mean_error"] == pytest.approx(0.75)
    assert row["sd_error"] == pytest.approx(0.5)
    each = [pdmp.diagnostics.ess(x) for x in table.draws["NUTS"]]  # all 300 draws of a chain
    assert row["min_ess"] == pytest.approx(np.mean(each, axis=0).min(), rel=1e-12)
    assert row["min_ess"] > 300.0 and row["ess_per_pass"] == pytest.approx(row["min_ess"] / 1_000)  # they alternate
    passes, errors = table.errors_by_pass["NUTS"]
    assert passes[0] == 103 and passes[-1] == 1_000 and errors[-1] == pytest.approx(0.5)
    assert errors[0] == pytest.approx(np.mean(np.abs(START - 1.0 - TRUTH.mean) / TRUTH.sd))
    assert table.draws["NUTS"].shape == (2, 300, 2) and table.paths["NUTS"].kind == "constant"
    few = pdmp.compare({"NUTS": Chains(LAW)}, data_passes=105, reference=TRUTH, chains=2, seed=7, initial=START)
    assert "-" in few.cells()[2] and "nan" not in few.cells()[2]
    assert math.isnan(few.rows[0]["min_ess"])
    assert few.verdicts["NUTS"] == ("too short", "the warm-up alone takes nearly all of the 105 data passes")


def test_nuts_loss_on_held_out_data():
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 0.0, 1.0])
    model = pdmp.models.LogisticRegression(X, y, prior_scale=1.0)
    table = pdmp.compare(
        {"NUTS": Chains(model)}, data_passes=1_000, reference=TRUTH, chains=2, seed=7, initial=START, test=(X, y)
    )
    expected = []
    for start in START:
        p = np.mean([1.0 / (1.0 + np.exp(-X @ (start + s))) for s in (-1.0, 1.0)], axis=0)
        expected.append(-np.mean(np.where(y == 1.0, np.log(p), np.log(1.0 - p))))
    assert table.rows[0]["log_loss"] == pytest.approx(np.mean(expected), rel=1e-12)


def test_targets_must_be_the_same():
    with pytest.raises(ValueError, match="`processes` must have the same target: 'NUTS' has another one than 'auto'"):
        pdmp.compare({"auto": LAW, "NUTS": Chains(pdmp.models.Banana())}, data_passes=10, reference=TRUTH)


def test_rows_of_the_command(monkeypatch):
    found = lambda *_: None  # noqa: E731
    assert cli._choose_extra(None) == (None, {"auto", "NUTS"})
    assert cli._choose_extra("BPS, Auto,SGLD") == ("BPS,SGLD", {"auto"})
    assert cli._choose_extra("auto") == ("", {"auto"}) and cli._choose_extra("BPS,") == ("BPS,", set())
    monkeypatch.setattr(importlib.util, "find_spec", found)
    assert list(comparison.extra_rows(LAW)) == ["auto"]
    with pytest.raises(cli.UserError, match=r"NUTS needs nutpie: pip install 'pdmp\[nutpie\]'"):
        cli._choose_extra("NUTS")


def test_gradients_of_the_warm_up_of_nuts_are_spent(monkeypatch):
    """Of a sampler that takes seven gradients before its first draw, and then one, two, three."""
    steps = np.array([1, 2, 3])

    def sample(density, **options):
        for _ in range(7 + steps.sum()):
            value, gradient = density(START[0])
        assert value == -LAW.potential(START[0]) and np.array_equal(gradient, -LAW.gradient(START[0]))
        assert options["draws"] == 3 and options["chains"] == 1
        return types.SimpleNamespace(sample_stats={"n_steps": steps[None]}, posterior={"x": np.ones((1, 3, 2))})

    known = types.SimpleNamespace(from_pyfunc=lambda dim, make, *rest, **options: make())
    monkeypatch.setitem(sys.modules, "nutpie", types.SimpleNamespace(sample=sample))
    monkeypatch.setitem(sys.modules, "nutpie.compiled_pyfunc", known)
    x, used = NUTS(LAW)._chain(START[0], 3, 1)
    assert used.tolist() == [8, 10, 13] and x.shape == (3, 2)


@pytest.mark.skipif(importlib.util.find_spec("nutpie") is None, reason="nutpie is not installed")
def test_gradients_of_nutpie_are_counted(monkeypatch):
    calls = []
    gradient = type(LAW).gradient
    monkeypatch.setattr(type(LAW), "gradient", lambda self, x: calls.append(1) or gradient(self, x))
    sampler = NUTS(LAW)
    start = np.array([0.5, 0.5])
    x, used = sampler._chain(start, 60, 3)
    assert used[-1] == len(calls) and np.all(np.diff(used.astype(int)) >= 1) and x.shape == (60, 2)
    longer, more = sampler._chain(start, 90, 3)
    assert np.array_equal(longer[:60], x) and np.array_equal(more[:60], used)
    assert list(comparison.extra_rows(LAW)) == ["auto", "NUTS"]
    with pytest.raises(pdmp.SamplingError, match="nutpie: All initialization points failed"):
        sampler._chain(TRUTH.mean, 60, 3)  # where its gradient is 0
    many, _ = sampler._chain(start, 2_000, 3)
    assert np.allclose(many.mean(axis=0), TRUTH.mean, atol=0.15) and np.allclose(many.std(axis=0), TRUTH.sd, rtol=0.15)


def test_nutpie_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(ImportError, match=r"`NUTS` needs nutpie: pip install 'pdmp\[nutpie\]'"):
        NUTS(LAW)


@pytest.mark.slow
def test_the_automatic_sampler_spends_the_same():
    table = pdmp.compare(
        {"auto": LAW, "BPS": pdmp.BPS(LAW)}, data_passes=400, reference=TRUTH, chains=2, seed=1, initial=START
    )
    row = table.rows[0]
    process = pdmp.auto(LAW, chains=2, seed=1, initial=START)
    spent = process.prepared.gradients / 2
    run = pdmp.sample(process, data_passes=400 - spent, chains=2, seed=1)
    assert row["data_passes"] == pytest.approx(spent + run.stats["data_passes"] / 2) == pytest.approx(400, abs=20)
    means = np.array([one.mean() for one in pdmp.diagnostics.split(run)])
    errors = np.abs(means - TRUTH.mean) / TRUTH.sd
    assert row["mean_error"] == pytest.approx(errors.mean(), rel=1e-12)
    assert row["ess_per_pass"] == pytest.approx(run.ess().min() / 2 / row["data_passes"], rel=1e-12)
    assert row["setting"] == f"HMC, step {process.step:.2g}"
    passes, _ = table.errors_by_pass["auto"]
    assert passes[0] > spent and passes[-1] == pytest.approx(row["data_passes"])
    assert "Warm-ups of auto and NUTS count among their passes." in table.notes
    assert table.rows[1]["data_passes"] == pytest.approx(400, abs=20)


def test_a_path_is_its_first_4000_events_however_few_draws_are_kept():
    """SGLD has an event at each pass: at 0 and after each of 4,000 of them."""
    table = pdmp.compare({"SGLD": discrete.SGLD(LAW, step=0.2)}, data_passes=4_100, reference=TRUTH, chains=1, seed=1)
    assert len(table.paths["SGLD"].events) == 4_001 and table.draws["SGLD"].shape[1] == comparison.DRAWS
