"""Workers that die: their segments are run again, and the path is bitwise the same."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine import chain as chain_module
from pdmp.engine import executors, storage
from pdmp.engine import run as run_module
from pdmp.engine.executors import Segments, Threads
from pdmp.engine.goals import Goal
from pdmp.formulas import sources
from tests.toys import Telegraph, Walls

pytestmark = pytest.mark.exact


class Dying(concurrent.futures.Executor):
    """Runs what it is given at once, on a copy; all tasks but the first two, or `later`, end with `error`."""

    def __init__(self, error, at_submission=False, later=2):
        self.error, self.at_submission, self.tasks = error, at_submission, -later

    def submit(self, function, *args):
        self.tasks += 1
        future = concurrent.futures.Future()
        if self.tasks < 1:
            future.set_result(function(*pickle.loads(pickle.dumps(args))))
        elif self.at_submission:
            raise self.error
        else:
            future.set_exception(self.error)
        return future


class KilledWorker(Exception):
    """Dask's has this name."""


def same(one, other):
    for a, b in zip(one.trajectories, other.trajectories, strict=True):
        np.testing.assert_array_equal(a.times, b.times)
        np.testing.assert_array_equal(a.positions, b.positions)
    np.testing.assert_array_equal(one.var(), other.var())


@pytest.mark.parametrize("error", [concurrent.futures.BrokenExecutor("gone"), MemoryError(), KilledWorker("gone")])
@pytest.mark.parametrize("at_submission", [False, True])
def test_a_dead_worker_loses_nothing(error, at_submission):
    if at_submission and not isinstance(error, concurrent.futures.BrokenExecutor):
        pytest.skip("a task is refused by a broken pool only")
    call = {"events": 400, "chains": 3, "seed": 5}
    with pytest.warns(UserWarning, match="`executor` has lost a worker .* the chains go on in this process") as said:
        run = pdmp.sample(Telegraph(), executor=Segments(Dying(error, at_submission), 1e-9), **call)
    assert len([w for w in said if "lost a worker" in str(w.message)]) == 1
    same(run, pdmp.sample(Telegraph(), **call))


@pytest.mark.parametrize("at_submission", [False, True])
def test_another_error_of_an_executor_keeps_what_was_sampled(at_submission, tmp_path, monkeypatch):
    """On the run of the error and in the checkpoint, from which the same call goes on."""
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.0)
    error, call = TypeError("cannot pickle\nsome thing."), {"events": 1_000, "chains": 3, "seed": 5}
    call["checkpoint"] = tmp_path / "run"
    text = r"^The run was ended by TypeError: cannot pickle some thing\. What was .* `run` of this error, and in"
    with pytest.raises(pdmp.SamplingError, match=text) as caught:
        pdmp.sample(Telegraph(), executor=Segments(Dying(error, at_submission), 1e-9), **call)
    run = caught.value.run
    assert caught.value.__cause__ is error and caught.value.chain is None and run.stopped == "interrupted"
    assert sum(run.events > 0) == 2 and np.all(run.events < 1_000)
    whole = pdmp.sample(Telegraph(), **call | {"checkpoint": None})
    for part, path in zip(run.trajectories, whole.trajectories, strict=True):
        n = len(part.times)
        np.testing.assert_array_equal(part.positions[: n - 1], path.positions[: n - 1])
    header, _ = storage.read(tmp_path / "run", "checkpoint")
    assert len(header["chains"]) == 2
    same(pdmp.sample(Telegraph(), **call), whole)


def test_a_checkpoint_that_was_never_written_is_not_promised(tmp_path):
    """Nothing was sampled before the first task was lost."""
    call = {"events": 1_000, "chains": 2, "seed": 5, "checkpoint": tmp_path / "run"}
    with pytest.raises(pdmp.SamplingError, match="is `run` of this error\\.$") as caught:
        pdmp.sample(Telegraph(), executor=Dying(TypeError("gone"), later=0), **call)
    assert not (tmp_path / "run").exists() and sum(caught.value.run.events) == 0


class Stopping(BaseException):
    """That the program shall end, as SystemExit."""


@pytest.mark.parametrize("where", ["go_on", "update", "watch", "step_warning"])
@pytest.mark.parametrize("kind", [ValueError, Stopping])
def test_an_error_beside_the_chains_keeps_what_was_sampled(where, kind, tmp_path, monkeypatch):
    """Of a diagnostic, of the progress bar, of asking a cluster how it is."""
    owner = {"go_on": Goal, "update": run_module.Progress, "watch": Threads, "step_warning": run_module}[where]

    def fail(*args):
        raise kind("beside")

    call = {"ess": 700, "warmup": 0.2, "chains": 2, "seed": 5, "checkpoint": tmp_path / "run"}
    whole = pdmp.sample(Walls(), **call | {"checkpoint": None})
    with monkeypatch.context() as patch:
        patch.setattr(owner, where, fail)
        with pytest.raises(pdmp.SamplingError if kind is ValueError else Stopping, match="beside") as caught:
            pdmp.sample(Walls(), **call)
    assert (tmp_path / "run").exists()
    if kind is ValueError:
        assert isinstance(caught.value.__cause__, ValueError) and caught.value.run.events.sum() > 0
    same(pdmp.sample(Walls(), **call), whole)


def test_a_process_that_cannot_be_compiled_has_no_run(monkeypatch):
    """It is bad input, before anything runs."""

    def compile(self):
        raise TypeError("does not compile")

    monkeypatch.setattr(chain_module.Chain, "compile", compile)
    with pytest.raises(TypeError, match="does not compile"):
        pdmp.sample(Telegraph(), events=10, seed=1)


class Lost:
    """A Dask client whose scheduler is gone: at first it tries to connect again, then it is closed."""

    status = "connecting"

    def scheduler_info(self, n_workers):
        return {}


def test_a_scheduler_that_is_gone_is_named(monkeypatch):
    monkeypatch.setattr(executors, "ALONE_SECONDS", 0.0)
    client = Lost()
    watch = executors.Watch(client)
    watch.watch()  # it may come again
    client.status = "closed"
    with pytest.raises(RuntimeError, match="`executor`: the connection to the Dask scheduler is lost; start the"):
        watch.watch()
    with pytest.raises(RuntimeError, match="`executor`: the connection to the Dask scheduler is lost"):
        len([sources.Workers(client).spread])


class Alone:
    """A Dask client whose only worker has died; what was sent waits."""

    status = "running"

    def scatter(self):
        raise AssertionError

    def get_executor(self, pure):
        return self

    def submit(self, *_):
        return concurrent.futures.Future()

    def scheduler_info(self, n_workers):
        return {"type": "Scheduler", "workers": {}}


@pytest.mark.parametrize("budget", [{"seconds": 0.3}, {"events": 50}], ids=["seconds", "events"])
def test_a_cluster_whose_workers_do_not_come_is_not_waited_for_without_end(budget, monkeypatch):
    """To the end of a budget of seconds, or for an hour: then the run ends, with what was sampled."""
    assert executors.LONGEST_ALONE == 3_600.0
    monkeypatch.setattr(executors, "ALONE_SECONDS", 0.1)
    monkeypatch.setattr(executors, "LONGEST_ALONE", 0.3 if "events" in budget else 3_600.0)
    with (
        pytest.warns(UserWarning, match="`executor`: the Dask cluster has no workers. What is left waits") as said,
        pytest.raises(pdmp.SamplingError, match="the Dask cluster has had no workers for 0 seconds; start") as caught,
    ):
        pdmp.sample(Telegraph(), executor=Alone(), chains=2, seed=1, **budget)
    assert len(said) == 1 and caught.value.run.events.tolist() == [0, 0]


def test_a_cluster_without_workers_is_waited_for_as_long_as_the_budget_says(monkeypatch):
    now = 0.0
    monkeypatch.setattr(executors, "perf_counter", lambda: now)
    watches = [executors.Watch(Alone(), patience) for patience in (20.0, 40.0)]
    now = 19.0
    for watch in watches:
        with pytest.warns(UserWarning, match="the Dask cluster has no workers"):
            watch.watch()
    now = 21.0
    watches[1].watch()
    with pytest.raises(RuntimeError, match="has had no workers for 21 seconds"):
        watches[0].watch()


def test_tuning_does_not_take_a_lost_cluster_for_a_bad_sampler():
    def make(step):
        return discrete.SGLD(pdmp.models.Gaussian([0.0], [1.0]), step)

    arms = [{"step": 0.1}, {"step": 0.2}]
    with pytest.raises(pdmp.SamplingError, match="The run was ended by TypeError: gone"):
        pdmp.tuning.mamba(make, arms, 400, clock="steps", seed=1, executor=Dying(TypeError("gone"), later=0))


def die_once(path):
    """Kills its own process the first time."""
    if not os.path.exists(path):
        with open(path, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)


class Killing(Telegraph):
    """Its worker is killed in the middle of the first segment."""

    def __init__(self, path):
        super().__init__()
        self.path, self._home = path, os.getpid()

    def helper_threads(self, state):
        if os.getpid() != self._home:
            die_once(self.path)
        return contextlib.nullcontext()


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_killed_worker_of_a_process_pool(tmp_path):
    context = multiprocessing.get_context("forkserver")
    call = {"events": 300, "chains": 2, "seed": 6}
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        with pytest.warns(UserWarning, match="has lost a worker .BrokenProcessPool"):
            run = pdmp.sample(Killing(str(tmp_path / "died")), executor=pool, **call)
    assert (tmp_path / "died").exists()
    same(run, pdmp.sample(Telegraph(), **call))
