"""Pairs of options that each have tests of their own: stores, copies, warm-ups, starts, resumptions and budgets."""

import itertools

import numpy as np
import pytest

import pdmp
from pdmp.diagnostics import acf
from pdmp.engine import chain as chain_module
from pdmp.engine import checkpoint as checkpoint_module
from pdmp.process import DATA, EVENTS
from tests.engine.helpers_run import same
from tests.toys import Coupled, Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
def test_the_grid_of_coupled_chains():
    """Draws are of the fine chain; expectations are extrapolated, at the same times of both."""
    call = {"time": 60.0, "warmup": 0.25, "chains": 2, "seed": 3}
    grid = pdmp.sample(Coupled(), store="grid", draws=15, **call)
    whole = pdmp.sample(Coupled(), **call)
    times = 15.0 + 3.0 * np.arange(1, 16)
    both = np.array([path.at(times, side="left") for path in (p.whole for p in whole.trajectories)])
    assert both.shape == (2, 15, 6) and not np.array_equal(both[..., :3], both[..., 3:])
    np.testing.assert_allclose(pdmp.diagnostics.draw_times(grid, 15), [times, times])
    np.testing.assert_allclose(grid.draws(15), both[..., :3], atol=1e-12)
    np.testing.assert_allclose(grid.draws(5), both[:, 2::3, :3], atol=1e-12)

    def square(x):
        return x[0] * x[1]

    expected = 2.0 * (both[..., 0] * both[..., 1]).mean() - (both[..., 3] * both[..., 4]).mean()
    assert grid.expectation(square) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grid.mean(), whole.mean(), rtol=1e-12)
    np.testing.assert_allclose(grid.cov(), whole.cov(), rtol=1e-10)


@pytest.mark.parametrize("store", ["skeleton", "grid"])
def test_correlations_are_those_after_the_warm_up(store):
    """The start is far out: a single draw from before the warm-up's end would dominate every sum."""
    options = {"draws": 200} if store == "grid" else {}
    run = pdmp.sample(Ticks(), time=100.0, warmup=0.5, seed=3, initial=[1e6, 1e6, 1e6], store=store, **options)
    found = acf(run, lags=5, draws=200, directions=np.eye(3))
    x = run.draws(200)[0]
    assert np.abs(x).max() < 1e5 and run.warmup[0] == 50.0
    z = x - x.mean(axis=0)
    for k in range(5):
        expected = (z[: 200 - k] * z[k:]).mean(axis=0) / (z * z).mean(axis=0)
        np.testing.assert_allclose(found["acf"][:, k], expected, rtol=1e-9)
    np.testing.assert_allclose(found["time"], 0.25 * np.arange(5))  # 50 of time, 200 draws
    # Data are counted from the start: 400 ticks of ten in 100 of time.
    np.testing.assert_allclose(found["data_terms"], 10.0 * np.arange(5))


def test_chains_that_start_apart_under_every_store():
    """By hand from the paths of the chains: the pooled variance has what the means differ by, and R-hat sees it."""
    call = {"steps": 400, "chains": 2, "seed": 1, "initial": [[60.0, 0.0, 0.0], [-60.0, 0.0, 0.0]]}
    whole, moments, grid = (
        pdmp.sample(Ticks(), store=store, **call, **({"draws": 100} if store == "grid" else {}))
        for store in ("skeleton", "moments", "grid")
    )
    one, two = (
        path.positions[:-1] for path in (p.whole for p in whole.trajectories)
    )  # each state is held until the next tick
    pooled = np.concatenate([one, two])
    for run in (whole, moments, grid):
        np.testing.assert_allclose(run.mean(), pooled.mean(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.var(), pooled.var(axis=0), rtol=1e-9)
        np.testing.assert_allclose(run.cov(), np.cov(pooled.T, ddof=0), rtol=1e-8, atol=1e-10)
    # Under "moments" the classical R-hat, from the halves of the chains up to a whole number of stretches.
    stretch = float(moments.records[0].integrals.stretch[0])
    half = int(moments.records[0].length / stretch * (1.0 + 1e-12)) // 2 * stretch
    means = [path.mean(a, a + half) for path in (p.whole for p in whole.trajectories) for a in (0.0, half)]
    within = np.mean([one.var(axis=0), two.var(axis=0)], axis=0)
    np.testing.assert_allclose(moments.rhat(), np.sqrt(1.0 + np.var(means, axis=0, ddof=1) / within), rtol=1e-9)


class Ended(Exception):
    """Instead of a kill."""


def deaths(monkeypatch, after):
    """Makes every `after`-th write of a checkpoint the last thing that happens."""
    monkeypatch.setattr(checkpoint_module, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(chain_module, "FIRST_CHUNK", 20)
    monkeypatch.setattr(chain_module.Chain, "_adapt_chunk", lambda *_: None)
    write, calls = checkpoint_module.Checkpoint.write, itertools.count(1)

    def write_and_die(self, **how):
        write(self, **how)
        if next(calls) % after == 0:
            raise Ended

    monkeypatch.setattr(checkpoint_module.Checkpoint, "write", write_and_die)


def until_done(process, file, **call):
    """The run, resumed as often as it dies, and how often it did."""
    for count in range(100):
        try:
            return pdmp.sample(process(), checkpoint=file, **call), count
        except pdmp.SamplingError as error:
            assert isinstance(error.__cause__, Ended)
    raise AssertionError("it dies for ever")


def test_data_passes_count_across_resumptions(tmp_path, monkeypatch):
    call = {"data_passes": 20, "chains": 2, "seed": 5, "warmup": 0.25}
    whole = pdmp.sample(Ticks(), **call)
    assert [r.counts[DATA] for r in whole.records] == [2_000, 2_000] and whole.stopped == "data_passes"
    assert whole.warmup.tolist() == [50 * 0.25, 50 * 0.25]
    deaths(monkeypatch, 3)
    resumed, count = until_done(Ticks, tmp_path / "run.checkpoint", **call)
    assert count >= 2 and same(whole, resumed)


def test_seconds_count_across_resumptions(tmp_path, monkeypatch):
    """By a clock that moves on by one at each look: the budget is of all attempts together, its warm-up too."""
    ticking = itertools.count()
    monkeypatch.setattr(chain_module, "perf_counter", lambda: float(next(ticking)))
    deaths(monkeypatch, 4)
    call = {"seconds": 30.0, "seed": 5, "warmup": 0.5, "progress": False}
    run, count = until_done(Telegraph, tmp_path / "run.checkpoint", **call)
    assert count >= 2 and run.stopped == "seconds"
    record = run.records[0]
    # A chunk of 20 candidate times takes one second, the rejected ones among them.
    assert record.seconds == 30.0
    again = pdmp.sample(Telegraph(), events=int(run.events[0]), seed=5)
    assert np.array_equal(again.records[0].times, record.times)
    half = np.searchsorted(record.times, record.warmup, side="right")
    assert 0.3 < half / len(record.times) < 0.7


@pytest.mark.parametrize("name", ["skeleton", "grid", "moments"])
@pytest.mark.parametrize("process", [Walls, Coupled], ids=["local", "coupled"])
@pytest.mark.filterwarnings("ignore:the extrapolated variance")
def test_every_store_is_resumed(process, name, tmp_path, monkeypatch):
    """Coupled and local chains with small buffers, under each store."""
    call = {"events": 240, "chains": 2, "seed": 6, "warmup": 0.25, "store": name}
    call |= {"draws": 10} if name == "grid" else {}
    whole = pdmp.sample(process(), **call)
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 500)
    deaths(monkeypatch, 5)
    resumed, count = until_done(process, tmp_path / "run.checkpoint", **call)
    assert count >= 2 and same(whole, resumed)


@pytest.mark.parametrize("process", [Telegraph, Walls, Ticks], ids=["global", "local", "ticks"])
def test_a_warm_up_leaves_out_what_was_before(process):
    """Counts are of the whole run; integrals and their marks begin within the segment in which the warm-up ends."""
    call = {"time": 40.0, "seed": 2}
    run = pdmp.sample(process(), warmup=0.25, store="moments", **call)
    record, path = run.records[0], pdmp.sample(process(), **call).trajectories[0].whole
    assert record.warmup == 10.0 and record.length == 30.0 and record.counts[EVENTS] == len(np.unique(path.times)) - 1
    np.testing.assert_allclose(run.mean(), path.mean(10.0, 40.0), rtol=1e-12)
    marked, stretch = record.batches.shape[1], float(record.integrals.stretch[0])
    assert marked == 64 and stretch == 30.0 / 64.0
    squares = path.square_stretches(64, record.integrals.centre, 10.0, 40.0)[0] * stretch
    for k in range(64):
        a = 10.0 + k * stretch
        expected = path.integral(None, a, a + stretch) - record.integrals.centre * stretch
        np.testing.assert_allclose(record.batches[:, k], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(record.batches_of(slice(None), 1)[:, k], squares[k], rtol=1e-9, atol=1e-12)
