"""Running: budgets, warm-up, chains, stores, executors, checkpoints, failures, and what a `Run` answers."""

import math
import os
import signal
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.automatic import sampling
from pdmp.engine import chain as chain_module
from pdmp.engine import checkpoint as checkpoint_module
from pdmp.engine import preflight
from pdmp.engine import run as run_module
from pdmp.engine.checks import check_budget, check_covariance, known_length
from pdmp.engine.executors import Segments
from pdmp.engine.result import MOVED
from pdmp.engine.storage import copied
from pdmp.native.threads import processor
from pdmp.process import DATA, EVENTS, PROPOSALS
from tests import toys
from tests.engine.helpers_run import PROCESSES, Serial, method, same
from tests.targets import Quartic
from tests.toys import Coupled, Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact

# -- budgets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", [Telegraph(), Walls(), Ticks(0.3)], ids=["global", "local", "ticks"])
def test_time_budget_ends_exactly(process):
    run = pdmp.sample(process, time=30.0, chains=2, seed=1)
    assert run.stopped == "time"
    np.testing.assert_array_equal(run.end, [30.0, 30.0])
    assert all(0.0 < t.times[-1] <= 30.0 for t in run.trajectories)
    assert all(t.end == 30.0 for t in run.trajectories)


@pytest.mark.parametrize("process", [Telegraph(), Walls(), Ticks()], ids=["global", "local", "ticks"])
def test_events_budget_is_exact(process):
    run = pdmp.sample(process, events=101, seed=1)
    assert run.stopped == "events"
    assert run.stats["total_events"] == 101 == len(run.trajectories[0].times) - 1
    assert run.end[0] == run.trajectories[0].times[-1]


def test_proposals_count_the_rejected_ones_too():
    run = pdmp.sample(Telegraph(), proposals=200, seed=1)
    assert run.stopped == "proposals"
    assert run.stats["proposals"] == 200 > run.stats["total_events"]
    assert run.stats["thinned"] > run.stats["proposals"] - run.stats["total_events"] > 0


def test_steps_and_data_passes():
    run = pdmp.sample(Ticks(), steps=50, seed=1)
    assert run.stats["total_events"] == 50
    run = pdmp.sample(Coupled(), steps=50, seed=1)
    assert run.stats["events"] == {"fine": 100, "coarse": 50}
    assert run.end[0] == 25.0
    run = pdmp.sample(Ticks(), data_passes=2.5, seed=1)  # 10 of 100 data a tick
    assert run.stats["total_events"] == 25
    assert run.stats["data_passes"] == 2.5
    assert run.stopped == "data_passes"
    assert 0.07 * 100 > 7.0 and check_budget(Ticks(), data_passes=0.07).data == 7


def test_the_first_budget_stops():
    budgets = {"time": 5.0, "events": 10_000, "proposals": 20_000}
    assert pdmp.sample(Telegraph(), seed=1, **budgets).stopped == "time"
    assert pdmp.sample(Telegraph(), seed=1, **budgets | {"events": 3}).stopped == "events"
    assert pdmp.sample(Telegraph(), seed=1, **budgets | {"proposals": 3}).stopped == "proposals"
    assert pdmp.sample(Ticks(), seed=1, steps=5, data_passes=10.0).stopped == "events"
    for both in ({"steps": 9, "events": 4}, {"steps": 4, "events": 9}):
        assert pdmp.sample(Ticks(), seed=1, **both).stats["total_events"] == 4


def test_clocks_that_never_ring_again():
    process = Telegraph(toys.CLOCK_NEVER)
    assert pdmp.sample(process, time=50.0, seed=1).end[0] == 50.0  # the path goes on, straight
    with pytest.raises(pdmp.SamplingError, match="(?s)No clock of Telegraph will ever propose an event again.*`time`"):
        pdmp.sample(process, events=1_000, seed=1)


class Once(Telegraph):
    """It evaluates its data where it begins, and never again."""

    def begin(self, x, rng):
        state = super().begin(x, rng)
        state.counts[DATA] += 1
        return state


@pytest.mark.parametrize("process", [Telegraph(), Once()])
def test_data_passes_of_a_process_that_does_not_look(process, monkeypatch):
    """In plain Python too it is said within seconds, where 10⁶ candidates would take minutes."""
    for first, repeated in ((10_000, 100), (100, 5_000)):  # of both clocks
        monkeypatch.setattr(chain_module, "FIRST_CANDIDATES", first)
        monkeypatch.setattr(chain_module, "REPEATED", repeated)
        with pytest.raises(pdmp.SamplingError, match=r"no data at 10,\d{3} candidate .*another budget") as caught:
            pdmp.sample(process, data_passes=5.0, seed=1)
        assert caught.value.run.stats["data_terms"] == isinstance(process, Once)


def test_a_process_that_looks_now_and_then_spends_its_data(monkeypatch):
    """Rates of a normal law are inverted: the bouncy particle sampler computes its line anew after some bounces."""
    monkeypatch.setattr(chain_module, "IDLE_CANDIDATES", 600)
    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0]))
    run = pdmp.sample(process, data_passes=40.0, seed=1)
    assert run.stopped == "data_passes" and run.stats["proposals"] > 6_000


# -- warm-up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROCESSES)
def test_warmup_is_excluded(name):
    run = pdmp.sample(PROCESSES[name](), time=40.0, warmup=0.25, seed=2)
    assert run.warmup[0] == 10.0
    path = run.trajectories[0].whole
    assert path.times[1] < 10.0  # the skeleton is all there
    d, w = run.dim, np.array(run.copies)
    np.testing.assert_allclose(run.mean(), w @ path.mean(10.0, 40.0).reshape(-1, d), rtol=1e-11, atol=1e-13)
    run = pdmp.sample(PROCESSES[name](), events=120, warmup=0.1, seed=2)
    assert run.warmup[0] == run.trajectories[0].whole.times[12]
    assert run.end[0] == run.trajectories[0].whole.times[120]


def test_a_part_of_a_budget():
    """Counts are rounded up, but not for the rounding errors of fractions; events to whole steps."""
    part = chain_module.Budget(time=7.0, events=101, proposals=33, data=7, seconds=3.0).part(0.3)
    assert (part.time, part.events, part.proposals, part.data) == (pytest.approx(2.1), 31, 10, 3)
    assert part.seconds == pytest.approx(0.9)
    exact = chain_module.Budget(events=100, proposals=200, data=300).part(0.07)
    assert 0.07 * 100 > 7.0 and (exact.events, exact.proposals, exact.data) == (7, 14, 21)
    assert chain_module.Budget(events=40, step=4).part(0.22).events == 12
    assert chain_module.Budget().part(0.5) == chain_module.Budget(time=math.inf)
    run = pdmp.sample(Telegraph(), events=101, warmup=0.2, seed=2)
    assert run.warmup[0] == run.trajectories[0].whole.times[21]


@pytest.mark.parametrize("largest", range(5))
def test_the_share_of_a_budget_that_is_spent(largest):
    """The largest of all limits', whichever it is."""
    shares = np.where(np.arange(5) == largest, 0.7, 0.1 + 0.05 * np.arange(5))
    budget = chain_module.Budget(time=20.0, events=100, proposals=200, data=400, seconds=8.0)
    counts = np.zeros(20)
    counts[[EVENTS, PROPOSALS, DATA]] = shares[1:4] * [100, 200, 400]
    state = SimpleNamespace(now=np.array([20.0 * shares[0]]), counts=counts)
    assert budget.spent(SimpleNamespace(state=state, seconds=8.0 * shares[4])) == pytest.approx(0.7)


def test_warmup_does_not_change_the_path():
    one, other = (pdmp.sample(Telegraph(), time=40.0, warmup=w, seed=2) for w in (0, 0.5))
    np.testing.assert_array_equal(one.trajectories[0].positions, other.trajectories[0].positions)


# -- the same seed, the same result -------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["skeleton", "grid", "moments"])
@pytest.mark.parametrize("name", PROCESSES)
def test_chunks_and_buffers_change_nothing(name, store, monkeypatch):
    call = {"events": 150, "warmup": 0.2, "chains": 2, "seed": 3, "store": store}
    call |= {"draws": 10} if store == "grid" else {}
    one = pdmp.sample(PROCESSES[name](), **call)
    monkeypatch.setattr(chain_module, "FIRST_CHUNK", 1)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 1_000)
    assert same(one, pdmp.sample(PROCESSES[name](), **call))


def test_chains_differ_and_do_not_depend_on_each_other():
    three, one = (pdmp.sample(Walls(), events=50, chains=c, seed=3) for c in (3, 1))
    first, second, _ = (t.times for t in three.trajectories)
    assert not np.any(first[1:] == second[1:])
    np.testing.assert_array_equal(first, one.trajectories[0].times)


def test_a_fresh_seed_is_kept():
    one, other = (pdmp.sample(Telegraph(), events=20) for _ in range(2))
    assert one.seed != other.seed
    assert same(one, pdmp.sample(Telegraph(), events=20, seed=one.seed))


@pytest.mark.parametrize("name", PROCESSES)
def test_going_on_is_one_longer_run(name):
    short = pdmp.sample(PROCESSES[name](), events=60, chains=2, seed=4)
    longer = run_module.extend(run_module.extend(short, events=61), events=150)
    assert same(longer, pdmp.sample(PROCESSES[name](), events=150, chains=2, seed=4))
    assert same(short, pdmp.sample(PROCESSES[name](), events=60, chains=2, seed=4))


# -- stores -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [{"time": 80.0}, {"events": 200}], ids=["time", "events"])
@pytest.mark.parametrize("name", PROCESSES)
def test_stores_agree(name, budget):
    call = {"seed": 6, "chains": 2, "warmup": 0.1} | budget
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # short runs: extrapolated variances may be negative
        skeleton, moments, grid = (
            pdmp.sample(PROCESSES[name](), store=s, draws=16 if s == "grid" else None, **call)
            for s in ("skeleton", "moments", "grid")
        )
        for run in (moments, grid):
            np.testing.assert_allclose(run.mean(), skeleton.mean(), rtol=1e-12)
            np.testing.assert_allclose(run.var(), skeleton.var(), rtol=1e-12)
            np.testing.assert_array_equal(run.end, skeleton.end)
        if name != "local":
            np.testing.assert_allclose(moments.cov(), skeleton.cov(), rtol=1e-12)
        for i, r in enumerate((*moments.records, *grid.records)):
            marked = r.batches.shape[1]
            assert marked == 64 if "time" in budget else 32 <= marked <= 64 or name == "local"
            path, stretch = skeleton.trajectories[i % 2].whole, float(r.integrals.stretch[0])
            until = min(r.warmup + marked * stretch, path.end)
            total = path.integral(None, r.warmup, until) - r.integrals.centre * (until - r.warmup)
            np.testing.assert_allclose(r.batches.sum(axis=1), total, rtol=1e-10, atol=1e-10)
            if "time" in budget:
                np.testing.assert_allclose(r.batches.sum(axis=1), r.integrals.first, rtol=1e-10, atol=1e-10)
    for i, r in enumerate(grid.records):
        used = int(r.grid.used[0])
        times = r.warmup + np.arange(1, used + 1) * r.grid.spacing[0]
        np.testing.assert_allclose(
            r.grid.rows[:used], skeleton.trajectories[i].whole.at(times, side="left"), rtol=0, atol=1e-12
        )
        assert used == 16 or ("events" in budget and 16 <= used <= 32)


@pytest.mark.parametrize("name", PROCESSES)
def test_integrals_on_the_way_are_those_of_the_skeleton(name):
    run = pdmp.sample(PROCESSES[name](), time=60.0, warmup=0.2, seed=7, covariance=name != "local")
    path, r = run.trajectories[0].whole, run.records[0]
    length, centre = r.length, r.integrals.centre
    np.testing.assert_allclose(centre + r.integrals.first / length, path.mean(), rtol=1e-10, atol=1e-12)
    variance = r.integrals.second / length - (r.integrals.first / length) ** 2
    np.testing.assert_allclose(variance, path.var(), rtol=1e-10)
    if name != "local":
        cross = np.tril(r.integrals.cross) + np.tril(r.integrals.cross, -1).T
        np.testing.assert_allclose(cross, path.products(centre), rtol=1e-10, atol=1e-10)


def test_pooling_is_by_length_and_around_one_centre():
    run = pdmp.sample(Telegraph(), events=80, chains=3, seed=8, warmup=0.1, initial=[1e6, -1e6])
    lengths = run.end - run.warmup
    means = np.array([t.mean() for t in run.trajectories])
    np.testing.assert_allclose(run.mean(), lengths @ means / lengths.sum(), rtol=1e-15)
    total = sum(t.products(run.mean()) for t in run.trajectories) / lengths.sum()
    np.testing.assert_allclose(run.cov(), total, rtol=1e-8)
    np.testing.assert_allclose(run.var(), np.diag(total), rtol=1e-8)
    np.testing.assert_allclose(run.sd(), np.sqrt(run.var()))
    assert np.all(run.var() < 1e4)


def test_covariance_of_a_local_process_comes_from_its_skeleton():
    run = pdmp.sample(Walls(), time=50.0, seed=8)
    np.testing.assert_allclose(np.diag(run.cov()), run.var(), rtol=1e-10)
    with pytest.raises(ValueError, match='(?s)local process keeps no products.*`store="skeleton"`'):
        pdmp.sample(Walls(), time=50.0, seed=8, store="moments").cov()
    run = pdmp.sample(Telegraph(), time=50.0, seed=8, store="moments", covariance=False)
    with pytest.raises(ValueError, match="keeps no products"):
        run.cov()


def test_moments_keep_no_path():
    run = pdmp.sample(Telegraph(), time=50.0, seed=8, store="moments")
    for call in (lambda: run.draws(10), lambda: run.at(1.0), lambda: run.expectation(np.sum), lambda: run.trajectories):
        with pytest.raises(ValueError, match='`store="moments"`'):
            call()
    with pytest.raises(ValueError, match="`method` 'bulk' needs draws"):
        run.ess("bulk")
    grid = pdmp.sample(Telegraph(), time=50.0, seed=8, store="grid", draws=10)
    for call in (lambda: grid.at(1.0), lambda: grid.trajectories):
        with pytest.raises(ValueError, match='`store="grid"`'):
            call()
    with pytest.raises(ValueError, match="`n` = 11 draws are more than the 10"):
        grid.draws(11)


@pytest.mark.parametrize(
    ("process", "budget", "length"),
    [
        (Ticks(), {"steps": 7}, 7.0),
        (Coupled(), {"steps": 7}, 7.0),
        (Coupled(), {"events": 21}, 7.0),
        (Coupled(), {"events": 20}, None),  # within a step
        (Coupled(), {"steps": 7, "time": 9.0}, None),
        (Telegraph(), {"time": 9.0}, 9.0),
        (Telegraph(), {"events": 9}, None),
    ],
)
def test_how_long_a_path_will_be(process, budget, length):
    """Where the budget alone says it, spacings of grids are known from the start."""
    step = process.tick_length() or 1.0
    found = known_length(process, check_budget(process, **budget))
    assert found == (length if "time" in budget or length is None else length * step)


@pytest.mark.parametrize(
    ("asked", "store", "dim", "local", "found"),
    [
        (None, "grid", 100, False, True),
        (None, "moments", 101, False, False),
        (True, "moments", 101, False, True),
        (None, "skeleton", 3, False, False),  # taken afterwards
        (True, "skeleton", 3, False, True),
        (False, "grid", 3, False, False),
        (None, "grid", 3, True, False),
        (True, "skeleton", 3, True, False),
    ],
)
def test_whether_products_are_integrated(asked, store, dim, local, found):
    process = SimpleNamespace(model=None, dim=2 * dim, copies=(2.0, -1.0), local=local)
    assert check_covariance(process, asked, store) is found


def test_an_average_that_never_changes_has_no_error():
    """A probability that comes out as 1 has an error that no run can tell: not 0."""
    run = pdmp.sample(Ticks(), steps=500, chains=2, seed=1)
    sure = run.expectation(lambda x: float(x[0] > -1e6), error=True)
    assert sure.value == pytest.approx(1.0) and np.isnan(sure.error)
    pair = run.expectation(lambda x: np.array([1.0, x[0]]), error=True)
    assert np.isnan(pair.error[0]) and pair.error[1] > 0.0
    assert run.expectation(lambda x: x[0], error=True).error > 0.0


def test_skeletons_that_do_not_fit(monkeypatch):
    p, i = pdmp.Parameters(x=4), np.arange(3)
    chain = pdmp.terms(lambda a, b: (a - b) ** 2 + a * a, at=[p.x[i], p.x[i + 1]])
    three = pdmp.terms(lambda a, b, c: (a - b + c) ** 2, at=[p.x[[0]], p.x[[1]], p.x[[2]]])
    local = pdmp.LocalBPS(pdmp.models.sum_of_terms(p, [chain, three]))  # 13 coordinates of 8 clocks
    for process, given, size in (
        (Telegraph(), {"events": 10**9, "chains": 3}, "123"),
        (Ticks(0.5), {"time": 1e9}, "66"),
        (Coupled(0.5), {"time": 1e9, "chains": 2}, "684"),
        (local, {"events": 10**9}, "53.6"),
    ):
        with pytest.raises(ValueError, match=f'skeleton would take {size} GB, above 2 GB: give `store="grid"`'):
            pdmp.sample(process, seed=1, **given)
    monkeypatch.setattr(run_module, "SKELETON_BYTES", 10_000)
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 1_000)
    with pytest.raises(pdmp.SamplingError, match='(?s)skeleton has grown to .*`store="grid"`') as caught:
        pdmp.sample(Telegraph(), time=1e4, seed=1)
    assert 100 < caught.value.run.stats["total_events"] < 1_000
    assert np.all(np.isfinite(caught.value.run.mean()))


# -- averages of functions, draws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["global", "local", "ticks"])
def test_expectation(name):
    run = pdmp.sample(PROCESSES[name](), time=60.0, warmup=0.1, chains=2, seed=9)
    np.testing.assert_allclose(run.expectation(lambda x: x), run.mean(), rtol=1e-11)
    np.testing.assert_allclose(run.expectation(lambda x: np.outer(x, x)), run.cov() + np.outer(run.mean(), run.mean()))
    assert isinstance(run.expectation(lambda x: x[0] ** 2), float)
    assert run.expectation(lambda x: 1.0) == pytest.approx(1.0, rel=1e-13)
    # Not made for many positions at once, in ways that show and in ways that do not
    one = run.expectation(lambda x: x[0] ** 4)
    assert run.expectation(lambda x: math.pow(x[0], 4.0)) == pytest.approx(one, rel=1e-12)
    centred = run.expectation(lambda x: np.array([(x[j] - x.mean()) ** 2 for j in range(len(x))]))
    deviations = np.eye(run.dim) - 1.0 / run.dim
    second = run.cov() + np.outer(run.mean(), run.mean())
    np.testing.assert_allclose(centred, np.diag(deviations @ second @ deviations.T), rtol=1e-10)


def test_expectation_of_a_polynomial_of_degree_five():
    run = pdmp.sample(Telegraph(), time=60.0, seed=9)
    path, total = run.trajectories[0], 0.0
    knots = np.append(path.times, path.end)
    for k, h in enumerate(np.diff(knots)):
        segment = np.polynomial.Polynomial([path.positions[k, 0], path.velocities[k, 0]])
        total += (segment**5).integ()(h)
    assert run.expectation(lambda x: x[0] ** 5) == pytest.approx(total / 60.0, rel=1e-12)


def test_draws_of_equal_steps_are_the_steps():
    run = pdmp.sample(Ticks(0.1), steps=500, warmup=0.1, seed=9)
    states = run.trajectories[0].positions[50:500]
    np.testing.assert_array_equal(run.draws(450)[0], states)
    np.testing.assert_allclose(run.mean(), states.mean(axis=0), rtol=1e-11)
    np.testing.assert_allclose(run.var(), states.var(axis=0), rtol=1e-11)
    grid = pdmp.sample(Ticks(0.1), steps=500, warmup=0.1, seed=9, store="grid", draws=450)
    np.testing.assert_array_equal(grid.draws(450)[0], states)
    np.testing.assert_array_equal(grid.draws(45)[0], run.draws(45)[0])
    assert grid.expectation(lambda x: x[2] ** 2) == pytest.approx(np.mean(states[:, 2] ** 2), rel=1e-12)
    call = {"steps": 60, "warmup": 0.25, "seed": 9}  # two coupled chains: as many as were asked for, of steps too
    pair, grid = pdmp.sample(Coupled(), **call), pdmp.sample(Coupled(), store="grid", draws=15, **call)
    assert grid.records[0].grid.used[0] == 15
    np.testing.assert_array_equal(grid.draws(15), pair.draws(15))


def test_draws_are_of_the_path():
    run = pdmp.sample(Walls(), time=40.0, warmup=0.5, chains=2, seed=9)
    draws = run.draws(20)
    assert draws.shape == (2, 20, 3)
    np.testing.assert_allclose(draws, run.at(20.0 + np.arange(1, 21.0)), atol=1e-12)
    assert run.at(3.0).shape == (2, 3)


def test_coupled_copies_are_extrapolated():
    run = pdmp.sample(Coupled(), steps=1_000, warmup=0.1, seed=10, chains=2)
    both = np.array([p.mean() for p in (p.whole for p in run.trajectories)]).mean(axis=0)
    np.testing.assert_allclose(run.mean(), 2.0 * both[:3] - both[3:], rtol=1e-10)
    np.testing.assert_allclose(run.expectation(lambda x: x), run.mean(), rtol=1e-10)
    second = run.expectation(lambda x: np.outer(x, x))
    np.testing.assert_allclose(run.cov(), second - np.outer(run.mean(), run.mean()), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run.var(), np.diag(run.cov()), rtol=1e-9)
    path = run.trajectories[0]
    assert path.positions.shape == (2_001, 3) and path.coarse.shape == (1_001, 3)
    np.testing.assert_array_equal(path.times[::2], path.coarse_times)
    np.testing.assert_array_equal(path.positions[0], path.coarse[0])
    np.testing.assert_array_equal(run.draws(900 * 2)[0], path.positions[200:2_000])  # the fine chain's
    assert "extrapolated" in repr(run.summary())
    assert "fine" in run.to_arviz().posterior.attrs["draws_of"]


def test_a_negative_extrapolated_variance_is_told():
    run = pdmp.sample(Coupled(), steps=4, seed=0)
    with pytest.warns(UserWarning, match="extrapolated variance of . of 3 coordinates is negative"):
        var = run.var()
    assert var.min() < 0.0
    with pytest.warns() as told:
        sd = run.sd()
    assert [w.category for w in told] == [UserWarning]  # and none of NumPy's beside it
    np.testing.assert_array_equal(np.isnan(sd), var < 0.0)


# -- diagnostics, tables, files -------------------------------------------------------------------------------------


def test_too_short_for_diagnostics():
    run = pdmp.sample(Telegraph(), events=2, seed=1)
    assert np.all(np.isnan(run.ess())) and np.all(np.isnan(run.rhat()))
    assert "nan" in repr(run.summary())


@pytest.mark.parametrize(("chains", "said"), [(1, "1 chain, 9 events"), (3, "3 chains, 27 events")])
def test_a_run_in_a_line(chains, said):
    run = pdmp.sample(Telegraph(), events=9, chains=chains, seed=1)
    assert f"{run!r}" == f"<Run: Telegraph of dimension 2, {said}, time {run.end.max():.6g}, stopped by events>"


@pytest.mark.parametrize("store", ["skeleton", "grid", "moments"])
@pytest.mark.parametrize("name", PROCESSES)
def test_save_and_load(name, store, tmp_path):
    draws = 8 if store == "grid" else None
    run = pdmp.sample(PROCESSES[name](), time=30.0, warmup=0.1, chains=2, seed=2**100, store=store, draws=draws)
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
    loaded = pdmp.load(tmp_path / "run.npz")
    assert same(run, loaded)
    np.testing.assert_array_equal(loaded.mean(), run.mean())
    assert (loaded.seed, loaded.stats, loaded.variables) == (run.seed, run.stats, run.variables)
    assert isinstance(loaded.process, str) and repr(loaded) == repr(run)
    if store != "moments":
        np.testing.assert_array_equal(loaded.draws(4), run.draws(4))
    with pytest.raises(ValueError, match="a loaded run cannot be continued"):
        run_module.extend(loaded, time=40.0)


def test_chains_are_watched_and_have_room_however_they_go_on(tmp_path, monkeypatch):
    """Those of a loaded run too: each has its share of the memory for skeletons."""
    run = pdmp.sample(Telegraph(), events=50, chains=2, seed=1)
    run.save(tmp_path / "run.npz")
    monkeypatch.setattr(run_module, "_drive", lambda chains, *_: chains)
    monkeypatch.setattr(run_module, "SKELETON_BYTES", 3e9)
    begun = pdmp.sample(Telegraph(), events=50, chains=2, seed=1)
    for chains in (begun, pdmp.load(tmp_path / "run.npz").extend(Telegraph(), events=60)):
        assert [(chain.watched, chain.room) for chain in chains] == [(preflight.replay, 1.5e9)] * 2


def test_files_that_are_not_runs(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="is not a run"):
        pdmp.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("not this")
    with pytest.raises(ValueError, match="is damaged, or not a file that this package wrote"):
        pdmp.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        pdmp.load(tmp_path / "nothing.npz")


# -- failures, interruptions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble, message",
    [
        (toys.RATE_NAN, "gradient or the rate of Telegraph is not finite"),
        (toys.JUMP_NAN, "gradient or the rate of Telegraph is not finite"),
        (toys.CLOCK_NAN, "gradient or the rate of Telegraph is not finite"),
        (toys.CLOCK_PAST, "clock of Telegraph gave a time in the past"),
        (toys.ABOVE_BOUND, "rate of Telegraph exceeded the bound that Telegraph gives by a factor 1.5"),
    ],
)
def test_failures_say_where_and_keep_the_run(trouble, message):
    with pytest.raises(pdmp.SamplingError, match=message) as caught:
        pdmp.sample(Telegraph(trouble), time=100.0, seed=14, chains=2)
    error = caught.value
    good = pdmp.sample(Telegraph(), time=5.0, seed=14, chains=2).trajectories[error.chain]
    assert f"chain {error.chain}, after event {error.event}, at time {error.time:.9g}, x = [" in str(error)
    assert error.event >= len(good.times) - 1
    run = error.run
    assert run.stopped == "failed"
    path = run.trajectories[error.chain]
    assert len(path.times) - 1 == error.event
    np.testing.assert_array_equal(path.positions[: len(good.times)], good.positions)
    assert np.all(np.isfinite(run.mean()))
    assert error.time >= max(5.0, path.end) or trouble in (toys.CLOCK_PAST, toys.CLOCK_NAN)
    assert path.end == path.times[-1] or trouble == toys.JUMP_NAN  # the event that has no place in the path
    last = path.positions[-1] + path.velocities[-1] * (error.time - path.times[-1])
    np.testing.assert_allclose(error.position, last, rtol=1e-12)


class Above(Telegraph):
    """Its second clock's rate is above the bound after the time 5."""

    level: float

    def __init__(self, level):
        super().__init__()
        self.level = level

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return self.level if now > self.after else 0.6


def test_an_exact_bound_may_be_exceeded_by_cancellation_alone():
    run = pdmp.sample(Above(1.0008), time=20.0, seed=14)
    assert run.stats["bound_violations"] > 3 and run.stats["max_excess"] == pytest.approx(0.0008)
    assert run.stats["mean_excess"] == pytest.approx(0.0008)
    with pytest.raises(pdmp.SamplingError, match="by a factor 1.0012"):
        pdmp.sample(Above(1.0012), time=20.0, seed=14)


class Falls(toys.Walls):
    """A local process whose jump fails after the time 3, each event being of two coordinates."""

    def __init__(self):
        pdmp.Process.__init__(self, 3, 3, [[i] for i in range(3)], local=True, scope=[[0, 1], [1, 2], [2, 0]])

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        if now > 3.0:
            state.x[i] = math.nan
            return -1
        state.v[i] = -state.v[i]
        return 0


@pytest.mark.parametrize("seed", [3, 4, 5])  # at events of different coordinates
def test_a_jump_of_a_local_process_that_fails_is_no_event_of_its_path(seed):
    with pytest.raises(pdmp.SamplingError, match="is not finite") as caught:
        pdmp.sample(Falls(), initial=[0.1, -0.2, 0.3], time=50.0, seed=seed, chains=2)
    run = caught.value.run
    path = run.trajectories[caught.value.chain]
    assert 3.0 < path.end == caught.value.time and len(path.times) > 3
    assert np.all(path.times <= 3.0) and np.all(np.isfinite(path.positions)) and np.all(np.isfinite(run.mean()))


@pytest.mark.parametrize("begun", [0, 1, 2, 3])
def test_chains_without_a_path_are_left_out_of_a_run_that_was_interrupted(begun, tmp_path):
    """Or quantiles, draws and all that a fit answers would be refused, for chains that had not come to their turn."""
    advanced = []

    class Some(Serial):
        def submit(self, function, /, *args, **kwargs):
            if len(advanced) == begun:
                raise KeyboardInterrupt
            advanced.append(None)
            return super().submit(function, *args, **kwargs)

    call = {"events": 60, "seed": 5, "chains": 3}  # without a warm-up, so that a longer run is the same
    whole, file = pdmp.sample(Telegraph(), **call), tmp_path / "run.checkpoint"
    if begun == 3:
        assert same(pdmp.sample(Telegraph(), executor=Segments(Some(), 60.0), **call), whole)
        return
    said = r"until then; 1 of 3 chains had no path|until then; 2 of 3 chains had no path" if begun else r"until then\.$"
    with pytest.warns(UserWarning, match=said) as caught:
        run = pdmp.sample(Telegraph(), executor=Segments(Some(), 60.0), checkpoint=file, **call)
    (text,) = [str(one.message) for one in caught if "was interrupted" in str(one.message)]
    assert run.stopped == "interrupted" and run.chains == (begun or 3) and (f"{3 - begun} of 3" in text) == (begun > 0)
    if begun:
        np.testing.assert_array_equal(run.draws(5), whole.draws(5)[:begun])
        np.testing.assert_array_equal(run.events, whole.events[:begun])
        run.save(tmp_path / "run.npz")
        assert pdmp.load(tmp_path / "run.npz").stopped == "interrupted"
        longer, expected = run_module.extend(run, events=90), run_module.extend(whole, events=90)
        assert same(longer, expected)  # with those that had to wait
        assert longer.stopped == "events"
    assert same(pdmp.sample(Telegraph(), checkpoint=file, **call), whole) or begun == 0


def test_a_warning_that_is_an_error_keeps_the_run_and_says_the_others(monkeypatch):
    monkeypatch.setattr(run_module, "short_warning", lambda run: ["it is short", "and narrow"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="^it is short") as caught:
            pdmp.sample(Telegraph(), events=40, seed=3)
        monkeypatch.undo()
        with pytest.raises(UserWarning) as short:
            pdmp.sample(Telegraph(), events=40, seed=3, ess=1e9)
    assert caught.value.__notes__ == ["and narrow"] and caught.value.run.events.tolist() == [40]
    assert short.value.run.events.tolist() == [40]


@pytest.mark.parametrize("longer", [{"events": 60}, {"time": 400.0}])
@pytest.mark.parametrize("name", PROCESSES)
def test_a_file_of_a_run_that_was_continued_since_has_its_path_alone(name, longer, tmp_path):
    """Its chains are elsewhere: a path from there would be joined to the end of this one."""
    run = pdmp.sample(PROCESSES[name](), events=40, seed=3, chains=2)
    run.save(tmp_path / "whole.npz")
    expected = run_module.extend(pdmp.load(tmp_path / "whole.npz"), PROCESSES[name](), events=90)
    more = run_module.extend(run, **longer)
    with pytest.warns(UserWarning, match="was continued since, so that its file cannot be: save the run that"):
        run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    assert same(loaded, run)
    with pytest.raises(ValueError, match="its file holds no chains"):
        run_module.extend(loaded, PROCESSES[name](), events=90)
    if "events" in longer:
        more.save(tmp_path / "more.npz")
        assert same(run_module.extend(pdmp.load(tmp_path / "more.npz"), PROCESSES[name](), events=90), expected)


def test_two_calls_cannot_continue_a_run_at_once():
    """They would advance the same chains, and the process may die of it."""
    run, said = pdmp.sample(Telegraph(), events=40, seed=3, chains=2), []

    class Twice(Serial):
        def submit(self, function, /, *args, **kwargs):
            with run_module._alone([object()]):  # chains of a run that has nothing to do with it
                for other in (run, more):
                    with pytest.raises(ValueError, match="being continued by another call") as caught:
                        run_module.extend(other, events=200)
                    said.append(str(caught.value))
            return super().submit(function, *args, **kwargs)

    more = run_module.extend(run, events=50)
    longer = run_module.extend(run, events=90, executor=Segments(Twice(), 60.0))
    assert len(said) >= 4 and same(longer, pdmp.sample(Telegraph(), events=90, seed=3, chains=2))
    assert not run_module._continuing
    with pytest.raises(ValueError, match="smaller than what the run"):
        run_module.extend(run, events=20)
    assert not run_module._continuing
    assert same(run_module.extend(run, events=120), pdmp.sample(Telegraph(), events=120, seed=3, chains=2))


@pytest.mark.parametrize("where", ["looked_at", "short_warning", "finish"])
def test_ctrl_c_in_the_looks_after_a_run_returns_it(where, monkeypatch):
    """They take minutes where a gradient takes a second."""
    owner = chain_module.Chain if where == "finish" else run_module
    whole, look = pdmp.sample(Telegraph(), events=400, seed=1, chains=2), getattr(owner, where)

    def signalled(*args, **options):
        monkeypatch.undo()
        signal.raise_signal(signal.SIGINT)
        return look(*args, **options)

    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
        monkeypatch.setattr(owner, where, signalled)
        with pytest.warns(UserWarning, match="the looks after the run were interrupted: the run is whole"):
            run = pdmp.sample(Telegraph(), events=400, seed=1, chains=2)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert same(run, whole) and run.stopped == "events" and run.summary() is not None


# -- checkpoints ----------------------------------------------------------------------------------------------------


def test_a_checkpoint_is_where_it_was_named_whatever_the_function_does(tmp_path, monkeypatch):
    """As simulators do that run in a folder of their own."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def normal(x):
        os.chdir(tmp_path / "elsewhere")
        return 0.5 * float(x @ x), x

    model = pdmp.models.from_function(normal, 2)
    monkeypatch.chdir(tmp_path)
    run = pdmp.sample(pdmp.BPS(model), events=30, seed=1, checkpoint="run.checkpoint")
    assert list((tmp_path / "elsewhere").iterdir()) == [] and os.listdir(tmp_path) != ["elsewhere"]
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "run.checkpoint"]  # and no lock
    monkeypatch.chdir(tmp_path)
    assert same(pdmp.sample(pdmp.BPS(model), events=30, seed=1, checkpoint="run.checkpoint"), run)


def test_a_checkpoint_keeps_the_time_that_was_spent(tmp_path):
    """Or a budget of seconds would begin anew with every resumption."""
    call = {"events": 30, "seed": 1, "chains": 2, "checkpoint": tmp_path / "run.checkpoint"}
    spent = [r.seconds for r in pdmp.sample(Telegraph(), **call).records]
    assert min(spent) > 0.0 and [r.seconds for r in pdmp.sample(Telegraph(), **call).records] == spent


def test_a_checkpoint_of_other_speeds(tmp_path):
    """Velocities are in the checkpoint: with other speeds it would go on as if they had not been given."""
    model, file = pdmp.models.Gaussian(np.zeros(2), precision=np.diag([1.0, 4.0])), tmp_path / "run.checkpoint"

    def extended(kind, **options):
        process = pdmp.ZigZag(model, **options)
        if kind == "Sticky":
            return pdmp.Sticky(process, inclusion=0.5, slab_density=0.4)
        return pdmp.Bounded(process, lower=-3.0) if kind == "Bounded" else process

    for kind in ("ZigZag", "Sticky", "Bounded"):
        call = {"seed": 1, "initial": [0.5, 0.5], "checkpoint": file}
        pdmp.sample(extended(kind, metric="auto"), events=20, **call)
        for options in ({}, {"metric": 0.25}, {"metric": pdmp.Metric(scales=[1.0, 0.3])}, {"metric": [1.0, 9.0]}):
            with pytest.raises(ValueError, match="is of another call: `process` differs"):
                pdmp.sample(extended(kind, **options), events=40, **call)
        run = pdmp.sample(extended(kind, metric="auto"), events=40, **call)
        again = pdmp.sample(
            extended(kind, metric=pdmp.Metric(scales=[1.0, 0.5])), events=40, **call
        )  # which "auto" stands for
        assert np.array_equal(run.mean(), again.mean()) and run.events[0] == 40
        file.unlink()


def test_a_checkpoint_of_another_call(tmp_path):
    file = tmp_path / "run.checkpoint"
    call = {"events": 30, "seed": 1, "checkpoint": file}
    pdmp.sample(Telegraph(), **call)
    for change, name in (
        ({"warmup": 0.5}, "`warmup`"),
        ({"chains": 2}, "`chains`, `initial`"),
        ({"initial": [1.0, 0.0]}, "`initial`"),
        ({"store": "moments"}, "`store`, `covariance`"),
    ):
        with pytest.raises(ValueError, match=f"is of another call: {name} differ"):
            pdmp.sample(Telegraph(), **call | change)
    for process in (Telegraph(after=6.0), Walls(2)):
        with pytest.raises(ValueError, match="is of another call: .*`process` differ"):
            pdmp.sample(process, **call)
    here = checkpoint_module.machine()
    assert here["threads of BLAS"] >= 1 and processor()[0] in here["the processor"]
    for change, said in (
        ({"threads of BLAS": 7}, rf"begun with threads of BLAS {here['threads of BLAS']}, not 7, with which starts"),
        (
            {"threads of BLAS": 7, "the processor": "other 1f"},
            "begun with .* not 7 and the processor .*, not other 1f, ",
        ),
    ):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(checkpoint_module, "machine", lambda change=change: here | change)
            with pytest.raises(ValueError, match=f"of another call: `initial` differs; it was {said}"):
                pdmp.sample(Telegraph(), **call | {"initial": [1.0, 0.0]})
            with pytest.raises(ValueError, match="of another call: `warmup` differs; name another file or remove it"):
                pdmp.sample(Telegraph(), **call | {"warmup": 0.5})
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        pdmp.sample(Telegraph(), events=30, checkpoint=tmp_path / "other.npz")
    with pytest.raises(ValueError, match="`checkpoint` names a file in .* which is not a directory"):
        pdmp.sample(Telegraph(), events=30, checkpoint=tmp_path / "nowhere" / "file")


# -- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        ({}, ValueError, "no budget: give at least one of `ess`, `rhat`, `time`, `events`"),
        ({"time": -1.0}, ValueError, "`time` must be positive and finite, got -1.0"),
        ({"time": math.nan}, ValueError, "`time` must be positive and finite, got nan"),
        ({"time": math.inf}, ValueError, "`time` must be positive and finite, got inf"),
        ({"time": "long"}, TypeError, "`time` must be a number, got 'long'"),
        ({"seconds": 0.0}, ValueError, "`seconds` must be positive"),
        ({"data_passes": -2}, ValueError, "`data_passes` must be positive"),
        ({"events": 0}, ValueError, "`events` must be a whole number, at least 1, got 0"),
        ({"events": 10.5}, ValueError, "`events` must be a whole number, at least 1, got 10.5"),
        ({"proposals": -5}, ValueError, "`proposals` must be a whole number, at least 1"),
        ({"steps": 10}, TypeError, "`steps` is for fixed-step processes; Telegraph .* give `events` or `time`"),
        ({"events": 9, "warmup": 1.0}, ValueError, r"`warmup` must be a fraction in \[0, 1\), got 1.0"),
        ({"events": 9, "warmup": -0.1}, ValueError, "`warmup` must be a fraction"),
        ({"events": 9, "warmup": math.nan}, ValueError, "`warmup` must be a fraction"),
        ({"events": 9, "chains": 0}, ValueError, "`chains` must be a whole number, at least 1, got 0"),
        ({"events": 9, "chains": 1.5}, ValueError, "`chains` must be a whole number, at least 1, got 1.5"),
        ({"events": 9, "seed": -1}, ValueError, "`seed` must not be negative"),
        (
            {"events": 9, "seed": "lucky"},
            TypeError,
            "`seed` must be an integer, a SeedSequence, a Generator or None, got 'lucky'",
        ),
        ({"events": 9, "store": "all"}, ValueError, "`store` must be one of 'skeleton', 'grid', 'moments', got 'all'"),
        ({"events": 9, "store": "grid", "draws": 0}, ValueError, "`draws` must be a whole number, at least 1, got 0"),
        ({"events": 9, "draws": 10}, ValueError, '`draws` is for `store="grid"`'),
        ({"events": 9, "store": "grid", "draws": 0}, ValueError, "`draws` must be a whole number, at least 1"),
        ({"events": 9, "covariance": "yes"}, ValueError, "`covariance` must be True, False or None"),
        ({"events": 9, "executor": 4}, TypeError, "`executor` must be a concurrent.futures.Executor, .*got int"),
        ({"events": 9, "initial": [1.0]}, ValueError, r"`initial` must have shape \(2,\) or \(1, 2\), got \(1,\)"),
        ({"events": 9, "initial": [[0.0, 1.0]] * 3, "chains": 2}, ValueError, r"must have shape \(2,\) or \(2, 2\)"),
        ({"events": 9, "initial": [0.0, math.nan]}, ValueError, r"`initial` must be finite; entries \[1\] are not"),
        ({"events": 9, "initial": ["a", "b"]}, ValueError, "`initial` must hold numbers"),
        ({"evnts": 9}, TypeError, r"sample\(\) got an unexpected keyword argument 'evnts'; did you mean 'events'\?"),
        ({"events": 9, "initial": {"x": 1.0}}, ValueError, "`initial` must hold numbers"),
    ],
)
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        pdmp.sample(Telegraph(), **call)


def test_bad_arguments_about_the_process():
    target = pdmp.models.Gaussian(np.zeros(2), np.ones(2))
    with pytest.raises(TypeError, match=r"got the gradient Full"):
        pdmp.sample(pdmp.gradients.Full(target), time=1.0)
    with pytest.raises(TypeError, match=r"got the class Telegraph; write Telegraph\(...\)"):
        pdmp.sample(Telegraph, time=1.0)
    with pytest.raises(TypeError, match="`process` must be a process such as"):
        pdmp.sample("Telegraph", time=1.0)
    with pytest.raises(ValueError, match="(?s)`covariance=True` with `store='moments'` needs.*local Walls touches"):
        pdmp.sample(Walls(), time=1.0, store="moments", covariance=True)


def test_where_chains_start():
    def starts(process, **call):
        return np.array([t.positions[0] for t in pdmp.sample(process, events=5, seed=1, **call).trajectories])

    np.testing.assert_array_equal(starts(Telegraph()), np.zeros((1, 2)))
    np.testing.assert_array_equal(starts(Ticks()), np.ones((1, 3)))  # no mode: the model's own
    process = Ticks()
    process.anchor = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(starts(process, chains=2), [[1.0, 2.0, 3.0]] * 2)
    np.testing.assert_array_equal(starts(Telegraph(), initial=[[0.0, 1.0], [2.0, 3.0]], chains=2), [[0, 1], [2, 3]])
    with pytest.raises(ValueError, match="`initial` is a point of zero density: the potential of Data there is inf"):
        pdmp.sample(Ticks(), events=5, initial=[-200.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="`initial` in row 1 is a point of zero density"):
        pdmp.sample(Ticks(), events=5, initial=[[0.0] * 3, [-200.0, 0.0, 0.0]], chains=2)
    process.anchor = np.array([-200.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="the anchor is a point of zero density"):
        pdmp.sample(process, events=5)

    class Cusp(pdmp.Model):
        def __init__(self):
            super().__init__(dim=2)

        @pdmp.compiled
        def potential(self, x):
            return math.sqrt(abs(x[0])) + x[0] * x[0] + x[1] * x[1]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += math.nan if x[0] == 0.0 else 0.5 * x[0] / abs(x[0]) ** 1.5 + 2.0 * x[0]
            out[1] += 2.0 * x[1]

    with pytest.raises(ValueError, match=r"`initial` in row 1 is a point where the gradient of Cusp is \[nan +4.\]"):
        pdmp.sample(pdmp.ZigZag(Cusp(), thinning="grid"), events=5, initial=[[1.0, 1.0], [0.0, 2.0]], chains=2)


def test_integer_starts_become_floats():
    one = pdmp.sample(Telegraph(), events=50, initial=[1, 2], seed=1)
    assert same(one, pdmp.sample(Telegraph(), events=50, initial=[1.0, 2.0], seed=1))
    assert one.trajectories[0].positions.dtype == np.float64


def test_an_empty_rest_after_the_warmup():
    run = pdmp.sample(Telegraph(), events=1, warmup=0.5, seed=1)
    for call in (run.mean, run.var, run.cov, run.draws):
        with pytest.raises(ValueError, match="no path after (the|its) warm-up"):
            call()
    assert run.stats["total_events"] == 1


# -- a misspelling in a process of one's own --------------------------------------------------------------------------


class Mine(pdmp.Process):
    """One without a clock, and with an attribute and a method that compiled ones do not know."""

    scale: float
    _required = ()

    def __init__(self):
        super().__init__(2)
        self.scale, self.other = 1.0, 2.0

    def helper(self):
        return 1.0

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        return 0


@pytest.mark.parametrize(
    "text, message",
    [
        ("return now + self.scael, 1.0", r"`clock` of Mine uses `self.scael`: did you mean `scale`\?"),
        pytest.param(
            "".join(f"now.a{k}\n" for k in range(300)) + "return now + self.scael, 1.0",
            r"`clock` of Mine uses `self.scael`: did you mean `scale`\?",
            id="300",
        ),
        (
            "return now + self.other, 1.0",
            "`clock` of Mine uses `self.other`: .* in the class Mine: a line `other: float`",
        ),
        ("return now + self.helper(), 1.0", "`self.helper`: `helper` is a method of Mine that is not marked @compiled"),
        ("return now + self.zzz, 1.0", "`self.zzz`: Mine has neither a field nor a compiled method of that name"),
        ("return now + self.flow.positoin(0, 1., 1., 1.), 1.0", r"`self.flow.positoin`: did you mean `position`\?"),
        ("return now + state.y[0], 1.0", "`clock` of Mine uses `state.y`; a state has x, v, moved"),
        ("self.scale = 2.0\nreturn now + 1.0, 1.0", "assigns to `self.scale`, but compiled objects do not change"),
        ("return now + mth.pi, 1.0", "`clock` of Mine uses the name `mth`, which does not exist"),
        ("return now + state.x[5], 1.0", "`clock` of Mine fails in plain Python: IndexError: index 5"),
        ("return now + self.flow.position(1.0), 1.0", "`clock` of Mine fails in plain Python: TypeError: .* missing 3"),
        ("return now + 1.0", "`clock` of Mine must return a time and a bound, got 1.0"),
    ],
)
def test_one_line_for_a_misspelling(text, message):
    clock = method("clock", text, {"pdmp": pdmp, "np": np, "__name__": "mine"})
    with pytest.raises(TypeError, match=message) as caught:
        pdmp.sample(type("Mine", (Mine,), {"clock": pdmp.compiled(clock)})(), time=10.0)
    assert "\n" not in str(caught.value)


def test_a_method_is_named_as_it_is_written_and_a_field_with_its_type():
    """A model keeps its potential under another name."""

    class Undeclared(pdmp.Model):
        def __init__(self):
            super().__init__(dim=2)
            self.rows = np.ones(3)

        @pdmp.compiled
        def potential(self, x):
            return self.rows[0] * x[0] * x[0]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += 2.0 * self.rows[0] * x[0]

    with pytest.raises(TypeError, match=r"^`potential` of Undeclared uses `self.rows`: .* a line `rows: np.ndarray`$"):
        pdmp.sample(Undeclared(), seed=1)
    types = [preflight._type_of(value) for value in (np.float64(2.0), 3, True, pdmp.models.Gaussian([0.0], [1.0]))]
    assert types == ["float", "int", "bool", "Gaussian"]


def test_one_line_for_a_misspelling_in_a_model():
    class Mine(pdmp.Model):
        scale: float

        def __init__(self):
            super().__init__(dim=2)
            self.scale = 1.0

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * self.scale * x[0] * x[0]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += self.sclae * x[0]

    with pytest.raises(TypeError, match=r"`add_gradient` of Mine uses `self.sclae`: did you mean `scale`\?"):
        pdmp.sample(pdmp.ZigZag(Mine()), time=10.0)


def test_methods_of_others_call_the_potential_of_a_model_by_its_name():
    """The model keeps it under another one."""

    class Above(pdmp.Process):
        model: object
        events = ("turn",)

        def __init__(self):
            super().__init__(dim=1)
            self.model = Quartic(1)

        @pdmp.compiled
        def clock(self, state, i, now, rng):
            return now + rng.standard_exponential(), pdmp.CERTAIN

        @pdmp.compiled
        def jump(self, state, i, now, rng):
            state.v[0] = -state.x[0] if self.model.potential(state.x) > 0.5 else 1.0
            return 0

    assert pdmp.sample(Above(), events=10, seed=1).events[0] == 10


def test_live_counts_belong_to_the_chain():
    run = pdmp.sample(Telegraph(), events=10, seed=1)
    run_module.extend(run, events=20)
    assert run.events[0] == 10 and run._chains[0].state.counts[EVENTS] == 20


def test_what_a_run_has_stays_when_its_chains_go_on():
    """The rows of a grid are the chain's own until then."""
    call = {"seed": 1, "store": "grid", "draws": 8}
    rejecting = pdmp.SBPS(pdmp.gradients.Noisy(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), 1.0))
    for process, less, more in (
        (Telegraph(), {"events": 30}, {"events": 300}),
        (rejecting, {"proposals": 1}, {"proposals": 300}),  # without an event, by which the spacing is found
    ):
        run = pdmp.sample(process, **less, **call)
        grid, before = run.records[0].grid, copied(run.records[0].grid)
        assert run.events[0] == less.get("events", 0)
        longer, whole = run_module.extend(run, **more), pdmp.sample(process, **more, **call)
        for now, was, got, expected in zip(grid, before, longer.records[0].grid, whole.records[0].grid, strict=True):
            np.testing.assert_array_equal(now, was)
            np.testing.assert_array_equal(got, expected)
    for less, more in (({"events": 30}, {"events": 300}), ({"time": 20.3}, {"time": 203.0})):
        run = pdmp.sample(Telegraph(), seed=1, store="moments", **less)
        averages = run.mean(), run.cov()
        longer, whole = run_module.extend(run, **more), pdmp.sample(Telegraph(), seed=1, store="moments", **more)
        for one, before in ((run, averages), (longer, (whole.mean(), whole.cov()))):
            np.testing.assert_array_equal(one.mean(), before[0])
            np.testing.assert_array_equal(one.cov(), before[1])


def test_a_checkpoint_of_another_function_or_preconditioner_is_refused(tmp_path):
    def run(process, name):
        return pdmp.sample(process, events=50, seed=1, initial=np.zeros(2), checkpoint=tmp_path / name)

    run(pdmp.ZigZag(pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 2)), "function.npz")
    with pytest.raises(ValueError, match="another call: `process` differs"):
        run(pdmp.ZigZag(pdmp.models.from_function(lambda x: (5.0 * x @ x, 10.0 * x), 2)), "function.npz")
    noisy = pdmp.gradients.Noisy(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), 1.0)
    run(pdmp.SBPS(noisy, metric=pdmp.Metric(scales=[1.0, 9.0])), "scale.npz")
    with pytest.raises(ValueError, match="another call: `process` differs"):
        run(pdmp.SBPS(noisy, metric=pdmp.Metric(scales=[9.0, 1.0])), "scale.npz")


@pytest.mark.parametrize("name", ["time", "events", "proposals", "data_passes", "gradients"])
def test_a_run_is_not_extended_backwards(name):
    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), thinning="grid")
    run = pdmp.sample(process, **{name: 40}, seed=1)
    with pytest.raises(ValueError, match=f"`{name}`: the budget is smaller than what the run has already spent"):
        run_module.extend(run, **{name: 20})
    spent = {"time": float(run.end[0]), "events": int(run.events[0]), "proposals": run.stats["proposals"]}
    same(run_module.extend(run, **{name: spent[name]} if name in spent else {name: 40}), run)  # that is no less


@pytest.mark.parametrize(
    ("call", "goals"),
    [
        ({}, {"gradients": 100_000, "ess": 400, "rhat": 1.05}),
        ({"chains": 1}, {"gradients": 100_000, "ess": 400, "rhat": None}),
        ({"tempered": True}, {"gradients": 100_000, "ess": 1_000, "rhat": 1.05}),
        ({"rhat": 1.1}, {"gradients": 100_000, "rhat": 1.1}),
        ({"ess": 30, "time": 4.0}, {"ess": 30, "time": 4.0}),
    ],
)
def test_what_a_run_of_a_model_must_reach(call, goals, monkeypatch):
    asked = []
    monkeypatch.setattr(sampling, "check_settings", lambda of, budget, *_: asked.append(budget) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pdmp.sample(pdmp.models.Gaussian([0.0], [1.0]), **call)
    assert {name: value for name, value in asked[0].items() if value is not None or name in goals} == goals


def test_a_damaged_file_is_said_to_be_so(tmp_path):
    path = tmp_path / "run.npz"
    pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=50, seed=1).save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="is damaged, or not a file that this package wrote"):
        pdmp.load(path)


def test_a_budget_of_data_without_end_is_a_number_like_any_other():
    model = pdmp.models.LinearGaussian(np.ones((4, 1)), np.zeros(4), 1.0, 1.0)
    run = pdmp.sample(discrete.SGLD(model, step=0.1), data_passes=1e300, steps=3, seed=1)
    assert run.stats["data_terms"] == 12


def test_names_that_moved_say_where():
    run = pdmp.sample(Telegraph(), time=30.0, seed=1)
    with pytest.raises(AttributeError, match=r"`run.running_mean` is `pdmp.diagnostics.running_mean\(run, ...\)` now."):
        run.running_mean()
    with pytest.raises(AttributeError, match=r"`run.paths` is `\[path.whole for path in run.trajectories\]` now."):
        _ = run.paths
    with pytest.raises(AttributeError, match="^a Run has no attribute 'means'.$"):
        _ = run.means
    assert sum(not name.startswith("_") for name in dir(pdmp.Run)) <= 25
    for name, now in MOVED.items():
        assert not hasattr(run, name) and (
            not now.startswith("pdmp.") or hasattr(pdmp.diagnostics, now[17:].split("(")[0])
        )


def test_a_covariance_from_fewer_events_than_dimensions_is_warned_of():
    """Where it is asked for: who reads means of many effects has not asked."""
    model = pdmp.models.Gaussian(np.zeros(30), np.ones(30))
    few, more = (pdmp.sample(pdmp.BPS(model), events=events, chains=2, seed=1) for events in (14, 15))
    assert not any("covariance" in text for text in few.summary().warnings)
    with pytest.warns(UserWarning, match="^28 events in 30 dimensions are too few for a covariance: run longer"):
        assert few.cov().shape == (30, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        more.cov()
