"""The goals `ess` and `rhat` of a run, and what of it depends on the path alone."""

import functools
import io
import itertools
import math
import sys
import types
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import averages, effective_draws
from pdmp.engine import chain as chain_module
from pdmp.engine import checkpoint as checkpoint_module
from pdmp.engine import goals as goals_module
from pdmp.engine import run as run_module
from pdmp.engine.executors import Segments
from pdmp.engine.goals import Goal
from pdmp.engine.storage import leaves
from pdmp.process import EVENTS, PROPOSALS
from tests.engine.helpers_run import Pickling, same
from tests.toys import Coupled, Telegraph, Ticks, Walls

pytestmark = pytest.mark.exact

PROCESSES = {"local": Walls, "ticks": Ticks, "coupled": Coupled}


def boomerang():
    """A global process on ellipses, whose reference is not its target."""
    target = pdmp.models.Gaussian([0.0, 0.0], [[1.0, 0.3], [0.3, 2.0]])
    return pdmp.Boomerang(target, [0.2, 0.0], metric=pdmp.Metric(covariance=np.eye(2)))


def scripted(monkeypatch, means, sds=(math.inf,), rhats=(1.0,)):
    """Let each look find the next of these numbers, the last from then on; returns the proposals at the looks."""
    looks = []

    def examine(self, run):
        k = len(looks)
        looks.append([int(r.counts[PROPOSALS]) for r in run.records])
        self.draws = {
            name: np.array([1e9, values[min(k, len(values) - 1)]]) for name, values in (("mean", means), ("sd", sds))
        }
        self.rhats = np.array([1.0, rhats[min(k, len(rhats) - 1)]])

    monkeypatch.setattr(Goal, "examine", examine)
    return looks


# -- where the looks are ------------------------------------------------------------------------------------------


def test_a_run_stops_at_the_first_look_that_reaches_the_goal(monkeypatch):
    looks = scripted(monkeypatch, means=[10.0, 39.9, 40.0])
    run = pdmp.sample(Telegraph(), ess=40, chains=2, seed=1)
    assert looks == [[500, 500], [625, 625], [782, 782]]
    assert run.stopped == "ess" and run.stats["stopped"] == ["ess", "ess"] and run.stats["proposals"] == 2 * 782
    np.testing.assert_array_equal(run.end, pdmp.sample(Telegraph(), proposals=782, chains=2, seed=1).end)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_look_takes_the_memory_of_the_last(name, monkeypatch):
    """What is new to the process is slow to write; what was returned of a run is not written over."""
    looks, finished = [], chain_module.finished

    def watched(chains, spent=None, last=False):
        kept = None if spent is None else [record.integrals.marks for record in spent]
        new, found = [chain.finish(last=last) for chain in chains], finished(chains, spent, last)
        for record, other in zip(found, new, strict=True):
            pairs = zip(leaves((record.integrals, record.grid)), leaves((other.integrals, other.grid)), strict=True)
            assert all(np.array_equal(one, two) for one, two in pairs)
        looks.append(kept is not None and all(f.integrals.marks is k for f, k in zip(found, kept, strict=True)))
        return found

    for module in (goals_module, run_module):
        monkeypatch.setattr(module, "finished", watched)
    scripted(monkeypatch, means=[10.0, 20.0, 50.0, 90.0, 150.0])
    run = pdmp.sample(PROCESSES[name](), ess=40, chains=4, store="grid", seed=1)
    assert looks == [False, True, True, True]
    # In many dimensions rows are most of the memory: at the end the record has the chain's own.
    assert all(r.grid.rows is chain.recording.grid.rows for r, chain in zip(run.records, run._chains, strict=True))
    means, draws = run.mean(), run.draws(20)
    run_module.extend(run, ess=100)
    assert looks[4:] == [False, True, True]
    np.testing.assert_array_equal(run.mean(), means)
    np.testing.assert_array_equal(run.draws(20), draws)


def test_a_run_stops_where_its_process_says_that_it_is_in_vain(monkeypatch):
    """And does not say that a larger budget would do; a goal that is reached comes first."""
    looks, report = scripted(monkeypatch, means=[1.0]), type(Telegraph().report)
    monkeypatch.setattr(report, "in_vain", lambda self, run: run.stats["proposals"] >= 2 * 625)
    run = pdmp.sample(Telegraph(), ess=40, proposals=5_000, chains=2, seed=1)
    assert looks == [[500, 500], [625, 625]] and run.stopped == "in vain"
    assert "as long" not in " ".join(run.summary().warnings) and "as long" in repr(
        pdmp.sample(Telegraph(), proposals=20, chains=2, seed=1).summary()
    )
    assert run.extend(ess=40, proposals=5_000).stopped == "in vain" and len(looks) == 3
    scripted(monkeypatch, means=[50.0])
    assert pdmp.sample(Telegraph(), ess=40, proposals=5_000, chains=2, seed=1).stopped == "ess"


def test_sds_count_as_means_do(monkeypatch):
    looks = scripted(monkeypatch, means=[100.0], sds=[1.0, 39.0, 41.0])
    pdmp.sample(Telegraph(), ess=40, seed=1)
    assert len(looks) == 3


def test_both_goals_must_be_reached(monkeypatch):
    looks = scripted(monkeypatch, means=[50.0], rhats=[1.2, 1.1, 1.01])
    run = pdmp.sample(Telegraph(), ess=40, rhat=1.01, chains=2, seed=1)
    assert len(looks) == 3 and run.stopped == "ess, rhat"
    looks = scripted(monkeypatch, means=[1.0], rhats=[1.2, 1.01])
    run = pdmp.sample(Telegraph(), rhat=1.05, chains=2, seed=1)
    assert len(looks) == 2 and run.stopped == "rhat"
    looks = scripted(monkeypatch, means=[1.0, 1.0, 1.0, 50.0], rhats=[1.0])
    pdmp.sample(Telegraph(), ess=40, rhat=1.01, chains=2, seed=1)
    assert len(looks) == 4


def test_ranks_of_many_numbers_wait_for_enough_draws(monkeypatch):
    """Nothing else changes: the run, where it stops, and what is said of a run that ends before its goal."""
    process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
    ranked, rhat = [], pdmp.Run.rhat

    def counted(self, *args):
        ranked.append(int(self.events.min()))
        return rhat(self, *args)

    monkeypatch.setattr(pdmp.Run, "rhat", counted)
    options = {"ess": 4_000, "rhat": 1.2, "chains": 2, "seed": 1}
    often = pdmp.sample(process, progress=True, **options)
    looks = len(ranked)
    ranked.clear()
    unseen = pdmp.sample(process, **options)  # nobody sees R-hat before it decides
    assert 1 <= len(ranked) < looks
    np.testing.assert_array_equal(unseen.end, often.end)
    monkeypatch.setattr(goals_module, "QUICK_NUMBERS", 10)
    ranked.clear()
    seldom = pdmp.sample(process, **options)
    assert looks > 2 and 1 <= len(ranked) < looks and ranked[-1] == int(seldom.events.min())
    np.testing.assert_array_equal(seldom.end, often.end)
    assert seldom.stopped == often.stopped == "ess, rhat"
    said = []
    for numbers in (10, 10**9):
        monkeypatch.setattr(goals_module, "QUICK_NUMBERS", numbers)
        with pytest.warns(UserWarning, match="`ess=1e\\+06` was not reached") as caught:
            pdmp.sample(process, ess=1e6, rhat=1.0000001, chains=2, seed=1, proposals=700)
        said.append(str(caught[0].message))
    assert said[0] == said[1] and "`rhat=1` was not reached" in said[0]


def test_a_coordinate_that_never_moved_has_not_reached_the_goal(monkeypatch):
    looks = scripted(monkeypatch, means=[math.nan, math.nan, 50.0])
    pdmp.sample(Telegraph(), ess=40, seed=1)
    assert len(looks) == 3
    looks = scripted(monkeypatch, means=[50.0], rhats=[math.nan, 1.0])
    pdmp.sample(Telegraph(), rhat=1.1, chains=2, seed=1)
    assert len(looks) == 2


def test_chains_at_their_budget_wait_for_the_others(monkeypatch):
    ends = pdmp.sample(Telegraph(), proposals=700, chains=2, seed=1).end
    looks = scripted(monkeypatch, means=[1.0, 1.0, 50.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pdmp.sample(Telegraph(), ess=40, time=float(ends.min()), chains=2, seed=1)
    slow = int(np.argmax(ends))  # it has made fewer proposals by then
    assert run.records[1 - slow].stopped == "time" and run.end[1 - slow] == ends.min()
    assert looks[-1][1 - slow] in (699, 700) and len(looks) == 3


@pytest.mark.parametrize("far", [0, 1])
def test_a_chain_goes_on_where_another_has_spent_its_time_looks_before(far, monkeypatch):
    looks, starts = scripted(monkeypatch, means=[1.0]), np.zeros((2, 1))
    starts[far] = 1_500.0  # on the way back it has few events
    process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
    monkeypatch.setattr(Goal, "shortfall", lambda self, run: None)
    run = pdmp.sample(process, ess=40, time=3_000.0, initial=starts, chains=2, seed=1)
    assert [look[1 - far] for look in looks[:-1]] == [500, 625, 782, 978] and looks[1][far] == looks[3][far] < 782
    assert run.stats["stopped"] == ["time", "time"]


@pytest.mark.parametrize("name", PROCESSES)
def test_the_warmup_is_a_part_of_the_first_look_or_of_the_budget(name, monkeypatch):
    scripted(monkeypatch, means=[1.0, 50.0])
    run, first = pdmp.sample(PROCESSES[name](), ess=40, warmup=0.5, seed=1), 1_002 if name == "coupled" else 1_000
    path = run.trajectories[0].whole
    np.testing.assert_array_equal(path.times[first // 2], run.warmup[0])
    assert run.stats["proposals"] == first + 126 if name == "coupled" else first + 125
    scripted(monkeypatch, means=[1.0])
    with pytest.warns(UserWarning, match="not reached"):
        run = pdmp.sample(PROCESSES[name](), ess=40, warmup=0.5, events=300, seed=1)
    np.testing.assert_array_equal(run.trajectories[0].whole.times[150], run.warmup[0])


# -- effective draws ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
@pytest.mark.parametrize("name", [*PROCESSES, "elliptic"])
def test_effective_draws_are_variance_over_squared_error(name):
    run = pdmp.sample(
        boomerang() if name == "elliptic" else PROCESSES[name](), events=600, warmup=0.1, chains=2, seed=2
    )
    mean, var, found = run.mean(), run.var(), effective_draws(run)
    np.testing.assert_allclose(found["mean"], var / run.mcse() ** 2, rtol=1e-12)

    def squares(x):
        return ((x.T - mean) ** 2).T

    spread = run.expectation(lambda x: ((x.T - mean) ** 4).T) - var**2
    expected = spread / run.mcse(squares) ** 2
    np.testing.assert_allclose(found["sd"], np.where(var > 0.0, expected, np.nan), rtol=1e-7)


def test_effective_draws_of_an_autoregression():
    """x ← φ x + ε, φ = 0.9: a draw is worth (1 - φ) / (1 + φ) of an independent one, its square (1 - φ²) / (1 + φ²)."""
    run = pdmp.sample(Ticks(), steps=15_000, chains=2, seed=3)
    found = effective_draws(run)
    assert abs(found["mean"].mean() * 19.0 / 30_000 - 1.0) < 0.2
    assert abs(found["sd"].mean() * (1.81 / 0.19) / 30_000 - 1.0) < 0.2
    moments = effective_draws(pdmp.sample(Ticks(), steps=15_000, chains=2, seed=3, store="moments"))
    assert abs(moments["mean"].mean() * 19.0 / 30_000 - 1.0) < 0.4  # from 32 to 64 stretches of each chain
    assert abs(moments["sd"].mean() * (1.81 / 0.19) / 30_000 - 1.0) < 0.4


@pytest.mark.parametrize("name", [*PROCESSES, "elliptic"])
def test_squares_are_integrated_over_the_stretches(name):
    process = boomerang() if name == "elliptic" else PROCESSES[name]()
    call = {"time": 60.0, "chains": 2, "warmup": 0.1, "seed": 6}
    skeleton, moments = (pdmp.sample(process, store=store, **call) for store in ("skeleton", "moments"))
    paths = [path.whole for path in skeleton.trajectories]
    for path, r in zip(paths, moments.records, strict=True):
        squares = r.batches_of(slice(None), 1)
        assert squares.shape == r.batches.shape == (len(r.x), 64)
        exact, fourth = path.square_stretches(64, r.integrals.centre, r.warmup, r.end)
        np.testing.assert_allclose(squares.T / r.integrals.stretch[0], exact, rtol=1e-9, atol=1e-12)
        assert fourth.shape == (len(r.x),)
    mean = np.tile(moments.mean(), len(moments.copies))
    series, _, _, fourth = averages.square_stretches(moments, mean)
    blocks = [p.square_stretches(64, mean)[0].reshape(64, len(moments.copies), -1) for p in paths]
    for one, exact in zip(series, blocks, strict=True):
        np.testing.assert_allclose(one, np.array(moments.copies) @ exact, rtol=1e-8, atol=1e-12)
    assert fourth is None


def test_normal_draws_are_counted_without_a_path_and_the_grid_has_its_own():
    call = {"steps": 4_000, "seed": 1}
    moments, skeleton = (pdmp.sample(Ticks(), store=s, **call) for s in ("moments", "skeleton"))
    grid = pdmp.sample(Ticks(), store="grid", draws=400, **call)
    series, each, lengths, _ = averages.square_stretches(moments, moments.mean())
    error = pdmp.diagnostics.monte_carlo_error.standard_error(series, each, lengths)
    np.testing.assert_allclose(effective_draws(moments)["sd"], 2.0 * moments.var() ** 2 / error**2, rtol=1e-9)
    rows = grid.draws(400)[0]
    spread = np.mean((rows - grid.mean()) ** 4, axis=0) - grid.var() ** 2
    np.testing.assert_allclose(effective_draws(grid)["sd"], spread / error**2, rtol=1e-9)
    np.testing.assert_array_equal(effective_draws(grid)["mean"], effective_draws(moments)["mean"])
    assert np.all(np.abs(np.log(effective_draws(skeleton)["sd"] / effective_draws(moments)["sd"])) < math.log(3.0))


class Alternating(Ticks):
    """The first coordinate alternates between -1 and 1 at random, the second never moves."""

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.x[0] = 1.0 if rng.random() < 0.5 else -1.0
        state.x[2] = rng.standard_normal()
        state.memory.taken[0] += 1
        return 0


def test_constant_squares_and_coordinates_that_never_move():
    run = pdmp.sample(Alternating(), steps=400, seed=1, initial=[1.0, 0.5, 0.0], chains=2)
    # The mean of ±1 is not quite 0, so its squares vary a little: by 4 mean² var.
    found = effective_draws(run)
    assert np.isnan(found["mean"][1]) and np.isnan(found["sd"][1])
    assert np.all(found["mean"][[0, 2]] > 100.0) and np.all(found["sd"][[0, 2]] > 100.0)
    path = run.trajectories[0].whole
    np.testing.assert_allclose(path.square_stretches(8, np.zeros(3))[0][:, 0], 1.0, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
@pytest.mark.parametrize("store", ["skeleton", "moments", "grid"])
@pytest.mark.parametrize("name", [*PROCESSES, "elliptic"])
def test_effective_draws_are_counted_portion_by_portion(name, store, monkeypatch):
    process = boomerang() if name == "elliptic" else PROCESSES[name]()
    run = pdmp.sample(process, time=60.0, warmup=0.1, chains=2, seed=2, store=store)
    whole = effective_draws(run)
    monkeypatch.setattr(averages, "PORTION", 2)  # several coordinates of each copy, and what is left
    for key, draws in effective_draws(run).items():
        np.testing.assert_allclose(draws, whole[key], rtol=1e-8)
    monkeypatch.setattr(averages, "PORTION", 1)
    assert averages.portions(run) == [slice(j, j + 1) for j in range(run.dim)]
    for key, draws in effective_draws(run).items():
        np.testing.assert_allclose(draws, whole[key], rtol=1e-8)
        for j in reversed(range(run.dim)):
            np.testing.assert_array_equal(effective_draws(run, slice(j, j + 1))[key], effective_draws(run)[key][[j]])
    monkeypatch.setattr(averages, "PORTIONS", 1)
    assert averages.portions(run) == [slice(0, run.dim)]


def test_a_look_ends_where_the_goal_is_missed(monkeypatch):
    """A coordinate with too few draws decides it, and is counted first at the next look; the run is the same."""
    target = pdmp.models.Gaussian(np.zeros(5), np.array([16.0, 16.0, 16.0, 16.0, 1.0]))
    process = pdmp.ZigZag(target)
    counted = []

    def counting(run, part=None):
        if part is None:
            return effective_draws(run)
        counted.append((int(run.events.sum()), part.start))
        return effective_draws(run, part)

    monkeypatch.setattr(goals_module, "effective_draws", counting)
    whole = pdmp.sample(process, ess=100, seed=1)
    looks = len(counted)
    monkeypatch.setattr(averages, "PORTION", 1)
    counted.clear()
    run = pdmp.sample(process, ess=100, seed=1)
    np.testing.assert_array_equal(run.end, whole.end)
    by_look = [[j for e, j in counted if e == events] for events in sorted({e for e, _ in counted})]
    assert len(by_look) == looks > 3
    assert sorted(by_look[-1]) == list(range(5)) and by_look[-1][0] == 4
    assert sum(each == [4] for each in by_look) >= looks - 3  # but at first, and where it has enough itself
    said = []
    for portion in (1, 32):
        monkeypatch.setattr(averages, "PORTION", portion)
        with pytest.warns(UserWarning, match="`ess=1e\\+06` was not reached") as caught:
            pdmp.sample(process, ess=1e6, seed=1, proposals=3_000)
        said.append(str(caught[0].message))
    assert said[0] == said[1] and "x[4]" in said[0]


def test_effective_draws_of_files(tmp_path):
    run = pdmp.sample(Ticks(), steps=400, seed=1, store="moments")
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    for name, draws in effective_draws(run).items():
        np.testing.assert_array_equal(effective_draws(loaded)[name], draws)
    old = loaded.records[0]  # a file of an older version has no squares
    old.integrals = old.integrals._replace(marks=old.integrals.marks[:, :3].copy())
    np.testing.assert_array_equal(effective_draws(loaded)["mean"], effective_draws(run)["mean"])
    assert np.all(np.isnan(effective_draws(loaded)["sd"]))


# -- the same seed, the same run --------------------------------------------------------------------------------------

CALL = {"chains": 2, "seed": 5, "warmup": 0.2}
ESS = {"local": 700, "ticks": 60, "coupled": 20}  # which a few looks reach


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
@pytest.mark.parametrize(
    ("name", "store"), [("local", "skeleton"), ("ticks", "grid"), ("coupled", "moments"), ("local", "moments")]
)
def test_chunks_executors_and_the_bar_change_nothing(name, store, monkeypatch):
    call = CALL | {"store": store, "rhat": 1.5} | ({"draws": 50} if store == "grid" else {})
    call |= {"ess": ESS[name]}
    one = pdmp.sample(PROCESSES[name](), **call)
    assert one.stopped == "ess, rhat"
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 1_000)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.003)
    assert same(one, pdmp.sample(PROCESSES[name](), progress=True, **call))
    assert same(one, pdmp.sample(PROCESSES[name](), executor=Segments(Pickling(), 1e-9), **call))


@functools.cache
def uninterrupted(name):
    return pdmp.sample(PROCESSES[name](), **CALL, ess=ESS[name], store="moments")


@pytest.mark.filterwarnings("ignore:the extrapolated variance")
@pytest.mark.parametrize("dies", [1, 2, 5])
@pytest.mark.parametrize("name", ["local", "coupled"])
def test_a_run_that_was_interrupted_goes_on_to_the_same_end(name, dies, tmp_path, monkeypatch):
    call = CALL | {"ess": ESS[name], "store": "moments", "checkpoint": tmp_path / "file"}
    one = uninterrupted(name)
    keep, kept = checkpoint_module.Checkpoint.keep, []

    def keep_and_die(self, i, chain):
        keep(self, i, chain)
        kept.append(chain.look)
        if len(kept) == dies:
            self.write()
            raise MemoryError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(chain_module, "CHUNK_SECONDS", 0.01)
        patch.setattr(checkpoint_module, "CHECKPOINT_SECONDS", 0.01)
        patch.setattr(checkpoint_module.Checkpoint, "keep", keep_and_die)
        with pytest.raises(pdmp.SamplingError, match="killed"):
            pdmp.sample(PROCESSES[name](), **call)
    assert same(one, pdmp.sample(PROCESSES[name](), **call))
    assert same(one, pdmp.sample(PROCESSES[name](), **call))  # from the file of the finished run


def test_chains_of_a_file_go_on_to_the_last_look_of_all():
    """One was kept as it waited, another when it had gone on; a third had spent its budget."""
    states = [(600, chain_module.LOOK), (750, None), (600, "proposals"), (750, chain_module.LOOK)]
    for order in (states, states[::-1]):
        chains = [types.SimpleNamespace(look=look, stopped=stopped) for look, stopped in order]
        Goal(Telegraph(), 0.0, ess=10.0).resume(chains)
        assert [c.look for c in chains] == [750] * 4
        waits = [chain_module.LOOK if state == states[3] else None for state in order]
        assert [c.stopped for c in chains] == [
            state[1] if state[1] == "proposals" else w for state, w in zip(order, waits, strict=True)
        ]


def test_a_run_that_was_killed_between_looks_is_examined_at_the_same_ones(tmp_path, monkeypatch):
    call = {"ess": 10, "chains": 2, "seed": 1, "store": "moments"}
    looks = scripted(monkeypatch, [1.0, 1.0, 1.0, 1.0, 20.0])
    pdmp.sample(Walls(), **call)
    whole = looks.copy()
    assert len(whole) == 5
    looks.clear()
    keep, killed = checkpoint_module.Checkpoint.keep, []

    def keep_and_die(self, i, chain):
        keep(self, i, chain)
        if len(looks) == 2 and chain.stopped is None and chain.state.counts[PROPOSALS] > max(whole[1]) + 20:
            killed.append(int(chain.state.counts[PROPOSALS]))
            self.write()
            raise MemoryError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(chain_module, "FIRST_CHUNK", 30)
        patch.setattr(chain_module.Chain, "_adapt_chunk", lambda *_: None)
        patch.setattr(checkpoint_module, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(checkpoint_module.Checkpoint, "keep", keep_and_die)
        with pytest.raises(pdmp.SamplingError, match="killed"):
            pdmp.sample(Walls(), checkpoint=tmp_path / "file", **call)
    assert max(killed) < min(whole[2])
    pdmp.sample(Walls(), checkpoint=tmp_path / "file", **call)
    assert looks == whole


@pytest.mark.parametrize(
    "first", [{"ess": 200}, {"proposals": 640}, pytest.param({"ess": 200, "proposals": 640}, marks=pytest.mark.slow)]
)
def test_a_finished_checkpoint_goes_on_to_another_goal(first, tmp_path):
    call = {"chains": 2, "seed": 4, "warmup": 0.0, "checkpoint": tmp_path / "file"}
    pdmp.sample(Walls(), **call | first)
    higher = pdmp.sample(Walls(), **call | {"ess": 900})
    assert same(higher, pdmp.sample(Walls(), **call | {"ess": 900, "checkpoint": None})) and higher.stopped == "ess"
    assert same(higher, pdmp.sample(Walls(), **call | {"ess": 200}))  # which is reached
    more = pdmp.sample(Walls(), **call | {"proposals": 5_000})  # without a goal
    assert same(more, pdmp.sample(Walls(), **call | {"proposals": 5_000, "checkpoint": None}))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_ends_a_compilation_is_raised(error, monkeypatch):
    """Nothing has been sampled that could be kept."""

    def ended(self):
        raise error

    monkeypatch.setattr(chain_module.Chain, "compile", ended)
    with pytest.raises(error):
        pdmp.sample(Walls(), events=5, seed=5)


def test_ctrl_c_at_a_look(tmp_path, monkeypatch):
    one = pdmp.sample(Walls(), ess=700, chains=2, seed=5)
    go_on, looks = Goal.go_on, []

    def interrupted(self, chains, info):
        looks.append(1)
        if len(looks) == 2:
            raise KeyboardInterrupt
        return go_on(self, chains, info)

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="the run was interrupted") as said:
        patch.setattr(Goal, "go_on", interrupted)
        run = pdmp.sample(Walls(), ess=700, chains=2, seed=5, checkpoint=tmp_path / "file")
    assert len(said) == 1
    assert run.stopped == "interrupted" and run.stats["proposals"] == 2 * 625
    assert one.stats["proposals"] > 2 * 625
    assert same(one, pdmp.sample(Walls(), ess=700, chains=2, seed=5, checkpoint=tmp_path / "file"))


@pytest.mark.parametrize("warmup", [0.0, 0.3])
def test_an_extended_run_is_one_with_the_higher_goal(warmup):
    call = {"chains": 2, "seed": 4, "warmup": warmup}
    low, high = (pdmp.sample(Walls(), ess=ess, **call) for ess in (300, 900))
    assert low.stats["proposals"] < high.stats["proposals"]
    longer = run_module.extend(low, ess=900)
    again = run_module.extend(high, ess=300)  # which is reached
    assert again.stats["proposals"] == high.stats["proposals"]
    assert same(longer, high) and longer.stopped == "ess" and longer.info["budget"] == {"ess": 900}
    more = run_module.extend(pdmp.sample(Walls(), proposals=640, **call), ess=900)  # past the second look
    assert more.stopped == "ess" and more.stats["proposals"] >= 2 * 782 or warmup


# -- bounds -----------------------------------------------------------------------------------------------------------


def only_warning(found):
    assert len(found) == 1, [str(w.message) for w in found]
    return str(found[0].message)


def test_a_run_that_does_not_reach_its_goal_says_so_once(monkeypatch):
    with pytest.warns(UserWarning) as found:
        run = pdmp.sample(Ticks(), ess=1e6, rhat=1.0001, chains=2, steps=700, seed=1)
    assert run.stopped == "events"
    text, draws = only_warning(found), effective_draws(run)
    least = min((draws[k].min(), k, int(draws[k].argmin())) for k in draws)
    name = run.names()[least[2]]
    assert f"`ess=1e+06` was not reached: {least[0]:,.3g} effective draws of the {least[1]} of {name}" in text
    assert f"`rhat=1.0001` was not reached: R-hat is {run.rhat().max():.4g}" in text
    assert "after 700 events of a chain (give a larger `steps=`)" in text
    for name, budget, unit in (("events", 300, "events"), ("time", 300.0, "proposals")):
        with pytest.warns(UserWarning) as found:  # of this process some proposals are no events
            run = pdmp.sample(Telegraph(), ess=1e6, chains=2, seed=1, **{name: budget})
        spent = [int(record.counts[EVENTS if name == "events" else PROPOSALS]) for record in run.records]
        assert run.stats["proposals"] > run.stats["total_events"] and (name == "events" or len(set(spent)) == 2)
        assert f"after {max(spent):,} {unit} of a chain (give a larger `{name}=`)" in only_warning(found)
    monkeypatch.setattr(goals_module, "DEFAULT_PROPOSALS", 700)
    with pytest.warns(UserWarning) as found:
        run = pdmp.sample(Ticks(), ess=1e6, seed=1)
    assert run.stopped == "proposals" and run.stats["proposals"] == 700
    assert "(the default bound: give a larger `proposals=`)" in only_warning(found)
    with pytest.warns(UserWarning) as found:
        run = pdmp.sample(Ticks(), ess=1e6, gradients=80.0, seed=1)  # a tenth of a gradient each: not the default
    assert run.stopped == "gradients" and run.stats["proposals"] == 800
    assert "(give a larger `gradients=`)" in only_warning(found)


def test_a_full_skeleton_ends_the_run(monkeypatch):
    monkeypatch.setattr(goals_module, "SKELETON_BYTES", 80_000.0)
    with pytest.warns(UserWarning) as found:
        run = pdmp.sample(Ticks(), ess=1e6, chains=2, seed=1)
    rows = int(0.95 * 80_000 / 2 / (8 + 1 + 24))  # time, kind, three coordinates
    assert run.stopped == "events" and list(run.events) == [rows, rows]
    assert 'its skeleton has no more room: give `store="moments"`' in only_warning(found)


def test_no_warning_where_the_goal_is_reached_at_the_budget(monkeypatch):
    scripted(monkeypatch, means=[1.0, 50.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = pdmp.sample(Telegraph(), ess=40, proposals=600, seed=1)
    assert run.stopped == "proposals"


def test_a_failure_at_a_goal_is_a_failure():
    from tests import toys

    with pytest.raises(pdmp.SamplingError) as error:
        pdmp.sample(Telegraph(toys.RATE_NAN, after=400.0), ess=1e9, chains=2, seed=1)
    assert error.value.run.stopped == "failed"


def test_gradients_are_full_passes():
    target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    one = pdmp.sample(pdmp.BPS(target, thinning="grid"), gradients=200, seed=1)
    other = pdmp.sample(pdmp.BPS(target, thinning="grid"), data_passes=200, seed=1)
    assert one.stopped == "gradients" and other.stopped == "data_passes"
    assert 200 <= one.stats["data_passes"] < 210 and one.info["budget"] == {"gradients": 200}
    np.testing.assert_array_equal(one.trajectories[0].whole.positions, other.trajectories[0].whole.positions)
    model = pdmp.models.LinearGaussian(np.ones((4, 1)), np.zeros(4), 1.0, 1.0)
    run = pdmp.sample(discrete.SGLD(model, step=0.1), gradients=12, seed=1)
    assert run.stats["total_events"] == 12 and run.stats["data_terms"] == 48


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        ({"ess": 0}, ValueError, "`ess` must be positive and finite, got 0.0"),
        ({"ess": math.nan}, ValueError, "`ess` must be positive and finite"),
        ({"ess": True}, TypeError, "`ess` must be a number"),
        ({"rhat": 1.0, "chains": 2}, ValueError, "`rhat` must be above 1 and finite, for example 1.01, got 1.0"),
        ({"rhat": 1.01}, ValueError, "`rhat` compares chains: give `chains=` of at least 2, got 1"),
        ({"gradients": 50, "data_passes": 0}, ValueError, "`gradients` and `data_passes` are the same budget"),
        ({"gradients": 10, "data_passes": 10}, ValueError, "`gradients` and `data_passes` are the same budget"),
        ({"gradients": -1}, ValueError, "`gradients` must be positive and finite, got -1.0"),
        ({}, ValueError, "no budget: give at least one of `ess`, `rhat`, `time`"),
    ],
)
def test_refusals(budget, error, message):
    with pytest.raises(error, match=message):
        pdmp.sample(Telegraph(), **budget)


def test_a_process_without_data_and_a_budget_of_gradients(monkeypatch):
    monkeypatch.setattr(chain_module, "IDLE_CANDIDATES", 1_000)
    with pytest.raises(pdmp.SamplingError, match="evaluates no data at .*give another budget than `gradients`"):
        pdmp.sample(Telegraph(), gradients=1.0, ess=1e9, seed=1, store="moments")


# -- the bar ----------------------------------------------------------------------------------------------------------


def test_the_bar_shows_the_state_at_the_last_look(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    run = pdmp.sample(Walls(), ess=500, chains=2, seed=5, progress=True)
    text = sys.stderr.getvalue()
    least = min(d.min() for d in effective_draws(run).values())
    assert f"ESS {least:,.0f} of 500, R-hat {run.rhat().max():.3f}, {run.stats['total_events']:,} events" in text
    assert "100%" in text


def test_the_bar_is_at_the_mean_of_the_chains_shares(monkeypatch):
    shown = types.SimpleNamespace(n=0.0, set_description=lambda *_, **__: None, set_postfix_str=lambda *_, **__: None)
    shown.refresh = shown.close = lambda: None
    monkeypatch.setattr(run_module, "open_bar", lambda **_: shown)
    chains = chains_at(10, 30, 20, 25)
    for chain, share, stopped in zip(
        chains, (0.2, 0.5, 0.1, 0.4), (None, None, "time", chain_module.LOOK), strict=True
    ):
        chain.budget, chain.stopped, chain.warming = types.SimpleNamespace(spent=lambda _, s=share: s), stopped, False
    with run_module.Progress(True, chains) as bar:
        bar.update(chains)
    assert shown.n == pytest.approx((0.2 + 0.5 + 1.0 + 0.4) / 4.0)  # one that waits is not at its end


@pytest.mark.parametrize(("state", "behind"), [("", "120 events"), ("ESS 3 of 5", "ESS 3 of 5, 120 events")])
def test_before_the_first_look_the_bar_says_how_many_events_there_were(state, behind, monkeypatch):
    said = []
    shown = types.SimpleNamespace(n=0.0, set_description=lambda *_, **__: None, refresh=list, close=list)
    shown.set_postfix_str = lambda text, **_: said.append(text)
    monkeypatch.setattr(run_module, "open_bar", lambda **_: shown)
    goal, chains = types.SimpleNamespace(describe=lambda: state, share=lambda _: 0.3), chains_at(50, 70)
    for chain in chains:
        chain.budget, chain.stopped, chain.warming = types.SimpleNamespace(spent=lambda _: 0.2), None, False
        chain.state.counts[EVENTS] = 60
    with run_module.Progress(True, chains, goal) as bar:
        bar.update(chains)
    assert said == [behind] and shown.n == 0.3


@pytest.mark.parametrize(
    ("rate", "said"),
    [(1e-3, "about 16 minutes more"), (1.0 / 64.0, "about 61 s more"), (0.0625, None)],
)
def test_how_long_sampling_takes_is_said_once(rate, said, monkeypatch):
    """From the share that was gone in the time since the warm-up ended; not where little is left."""
    lines, now, gone = [], [0.0], [0.5]
    shown = types.SimpleNamespace(
        n=0.0, refresh=lambda: None, close=lambda: None, write=lambda one, **_: lines.append(one)
    )
    shown.set_description = shown.set_postfix_str = lambda *_, **__: None
    monkeypatch.setattr(run_module, "open_bar", lambda **_: shown)
    monkeypatch.setattr(run_module, "perf_counter", lambda: now[0])
    chains = chains_at(10, 20)
    for chain in chains:
        chain.budget, chain.warming = types.SimpleNamespace(spent=lambda _: gone[0]), True
    with run_module.Progress(True, chains) as bar:
        bar.update(chains)
        now[0], gone[0] = 100.0, 0.0
        for chain in chains:
            chain.warming = False
        for _ in range(60):
            bar.update(chains)
            now[0], gone[0] = now[0] + 1.0, gone[0] + rate
    assert lines == ([] if said is None else [f"sampling takes {said}, as it has gone so far"])


def test_the_share_of_the_way_is_extrapolated_from_the_last_look():
    goal = Goal(Telegraph(), 0.0, ess=100.0)
    chain = types.SimpleNamespace(look=500, state=types.SimpleNamespace(counts=np.zeros(20, int)))
    assert goal.share([chain]) == 0.0
    goal.draws, chain.look = {"mean": np.array([25.0]), "sd": np.array([60.0])}, 625
    chain.state.counts[PROPOSALS] = 500
    assert goal.share([chain]) == pytest.approx(0.25)  # 500 proposals gave 25 of 100 draws
    chain.state.counts[PROPOSALS] = 625
    assert goal.share([chain]) == pytest.approx(625 / 2_000)
    goal.draws = {"mean": np.array([99.0]), "sd": np.array([math.inf])}
    assert goal.share([chain]) == 1.0


def chains_at(*proposals, look=goals_module.NEVER):
    counts = [np.where(np.arange(20) == PROPOSALS, n, 0) for n in proposals]
    return [types.SimpleNamespace(look=look, stopped=None, state=types.SimpleNamespace(counts=c)) for c in counts]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_chains_that_have_gone_unequally_far(order):
    """The first look that none has passed; their mean share, of the way behind a warm-up that does not count."""
    goal = Goal(Telegraph(), 0.5, ess=100.0)
    chains = [chains_at(1_400, 300, 1_000)[k] for k in order]
    looks = [1_000, 1_125, 1_282, 1_478]
    assert goal.begin(chains) == looks[3]
    goal.resume(chains)
    assert [c.look for c in chains] == [looks[3]] * 3
    chains = [chains_at(1_100, 900, 1_000, look=looks[1])[k] for k in order]
    chains[0].look = looks[0]
    goal.draws = {"mean": np.array([25.0]), "sd": np.array([60.0])}  # from 500 proposals behind the warm-up
    assert goal.share(chains) == pytest.approx(1_000 / (500 + 4 * 500))


@pytest.mark.parametrize("ended", [0, 1])
def test_nothing_is_known_while_one_chain_is_in_its_warm_up(ended):
    run = pdmp.sample(Telegraph(), events=200, chains=2, seed=1)
    object.__setattr__(run.records[ended], "warmup", math.inf)
    goal = Goal(Telegraph(), 0.0, ess=1.0, rhat=1.1)
    goal.examine(run)
    assert np.isnan(goal.draws["mean"]).all() and not goal.reached() and goal.least()[0] == 0.0


def test_what_a_process_asks_for_besides_is_part_of_the_goal(monkeypatch):
    """Counted where all coordinates have enough, and not before; the least of all is what is missing."""
    run, asked = pdmp.sample(Telegraph(), events=200, chains=2, seed=1), []
    found = {"log p": 12.0, "tails": 90.0}
    process = run.process
    process.report = types.SimpleNamespace(further_draws=lambda run: asked.append(run) or found)
    monkeypatch.setattr(Goal, "count", lambda self, run: {"mean": np.array([100.0]), "sd": np.array([95.0])})
    for ess, rhat in itertools.product((12.0, 13.0), (None, math.inf)):
        goal, reached = Goal(process, 0.0, ess=ess, rhat=rhat), ess == 12.0
        goal.examine(run)
        assert goal.enough() is goal.reached() is reached and goal.least() == (12.0, "log p", None)
        said = goal.shortfall(run)
        assert said is None if reached else "12 effective draws of log p, after" in said
    asked.clear()
    goal = Goal(process, 0.0, ess=96.0)
    goal.examine(run)
    assert not goal.reached() and not asked and goal.least() == (95.0, "sd", 0)


def test_what_is_missing_is_said_of_the_longest_chain():
    goal = Goal(Telegraph(), 0.0, ess=100.0)
    goal.draws = {"mean": np.array([25.0]), "sd": np.array([60.0])}
    counts = [np.where(np.arange(20) == PROPOSALS, n, 0) for n in (700, 2_900, 40)]
    records = [types.SimpleNamespace(counts=c, stopped="seconds") for c in counts]
    run = types.SimpleNamespace(
        stopped="seconds", records=records, names=lambda: ["x"], info={"budget": {"seconds": 1}}, note=None
    )
    said = goal.shortfall(run)
    assert "25 effective draws of the mean of x, after 2,900 proposals of a chain (give a larger `seconds=`)" in said
    records[1].stopped = "ess"
    assert goal.shortfall(run) is None


def test_notebooks_have_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not run_module.in_notebook() and not run_module.Progress(None, [])._wanted
    shell = types.SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    assert run_module.in_notebook() and run_module.Progress(None, [])._wanted
    assert not run_module.Progress(False, [])._wanted
    shell.config = {"TerminalIPythonApp": {}}
    assert not run_module.in_notebook()


def test_a_run_is_extended_until_either_goal_alone(monkeypatch):
    """By hand: 640 proposals are past the second look of 625, so the next ones are at 782 and 977."""
    for goal, missed in (({"rhat": 1.1}, {"means": [1e9], "rhats": [2.0, 1.0]}), ({"ess": 40}, {"means": [1.0, 50.0]})):
        run = pdmp.sample(Telegraph(), proposals=640, chains=2, seed=1)
        looks = scripted(monkeypatch, **missed)
        run = run.extend(proposals=5_000, **goal)
        assert run.stopped == next(iter(goal)) and len(looks) == 2 and run.stats["proposals"] == looks[-1][0] * 2


def test_an_extension_without_a_goal_does_not_wait_where_one_with_a_goal_has_looked(tmp_path):
    process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
    for budget in ({"ess": 30}, {"events": 2_000}):
        run = pdmp.sample(process, events=50, chains=2, seed=1).extend(checkpoint=tmp_path / "run.npz", **budget)
        assert run.stopped == next(iter(budget))
    assert list(run.events) == [2_000, 2_000]
