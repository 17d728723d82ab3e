"""Workers that die: their segments are run again, and the path is bitwise the same."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest

import pdmp
from tests.toys import Telegraph

pytestmark = pytest.mark.exact


class Dying(concurrent.futures.Executor):
    """Runs what it is given at once, on a copy; its third task, and all after it, end with `error`."""

    def __init__(self, error, at_submission=False):
        self.error, self.at_submission, self.tasks = error, at_submission, 0

    def submit(self, function, *args):
        self.tasks += 1
        future = concurrent.futures.Future()
        if self.tasks < 3:
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
        run = pdmp.sample(Telegraph(), executor=Dying(error, at_submission), segment=1e-9, **call)
    assert len([w for w in said if "lost a worker" in str(w.message)]) == 1
    same(run, pdmp.sample(Telegraph(), **call))


def test_another_error_of_an_executor_is_raised():
    with pytest.raises(TypeError, match="cannot pickle"):
        pdmp.sample(Telegraph(), events=400, chains=3, seed=5, executor=Dying(TypeError("cannot pickle")))


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
        self.path, self.home = path, os.getpid()

    def helper_threads(self, state):
        if os.getpid() != self.home:
            die_once(self.path)
        return super().helper_threads(state)


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_a_killed_worker_of_a_process_pool(tmp_path):
    context = multiprocessing.get_context("forkserver")
    call = {"events": 300, "chains": 2, "seed": 6}
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        with pytest.warns(UserWarning, match="has lost a worker .BrokenProcessPool"):
            run = pdmp.sample(Killing(str(tmp_path / "died")), executor=pool, **call)
    assert (tmp_path / "died").exists()
    same(run, pdmp.sample(Telegraph(), **call))
