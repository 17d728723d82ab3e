"""Runs in threads that share a model: the failure of one is no failure of another."""

from __future__ import annotations

import concurrent.futures
import math
import pickle
import random
import threading
import weakref

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.models.adapters import function as adapter
from tests.engine.helpers_run import same

pytestmark = pytest.mark.exact


class Shared:
    """U(x) = |x|²/2; raises in the thread `failing` from its call number `at` on, while the other threads wait.

    These go on once the failing run has ended, and that one waits until they are on their way.
    """

    def __init__(self):
        self.failing, self.at, self.calls = None, 0, 0
        self.begun, self.over = threading.Barrier(2), threading.Event()
        self.waited = False

    def __call__(self, x):
        mine = threading.get_ident() == self.failing
        if self.at and not mine and not self.waited:
            self.waited = True
            self.begun.wait(60.0)
            assert self.over.wait(60.0)
        if mine:
            self.calls += 1
            if self.calls == self.at:
                self.begun.wait(60.0)
                raise ArithmeticError("only here")
        return 0.5 * float(x @ x), x


def advance(process, function, role, call):
    """A run of one chain in the thread that asks; with `role` "fails", one whose function raises."""
    if role == "fails":
        function.failing = threading.get_ident()
    try:
        return pdmp.sample(process, executor=Inside(), **call)
    except pdmp.SamplingError as error:
        return error
    finally:
        if role == "fails":
            function.over.set()


class Inside(concurrent.futures.ThreadPoolExecutor):
    """Runs what it is given at once, in the thread that gives it."""

    def submit(self, function, /, *args, **kwargs):
        future = concurrent.futures.Future()
        future.set_result(function(*args, **kwargs))
        return future


@pytest.mark.parametrize(
    "make", [pdmp.ZigZag, lambda m: pdmp.BPS(m, refresh_rate=0.5), lambda m: discrete.MALA(m, 0.5)]
)
def test_a_run_that_fails_leaves_another_of_the_same_model_alone(make):
    function = Shared()
    process = make(pdmp.models.from_function(function, 2))
    call = {"proposals": 60, "seed": 1, "initial": np.ones(2), "progress": False}
    alone = pdmp.sample(process, **call)
    function.at = 20
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = pool.submit(advance, process, function, "fails", call)
        other = pool.submit(advance, process, function, "waits", call).result()
        failed = failed.result()
    assert isinstance(failed, pdmp.SamplingError) and isinstance(failed.__cause__, ArithmeticError)
    assert failed.run.stopped == "failed"
    assert not isinstance(other, Exception) and same(alone, other)
    assert same(alone, pdmp.sample(process, **call))  # and nothing of it is left


@pytest.mark.parametrize("chains", [1, 2])
def test_an_exception_as_a_chain_begins_is_its_cause(chains, monkeypatch):
    """Of the first gradient of a chain; it is not that of the runs after it."""
    function = Shared()
    model = pdmp.models.from_function(function, 2)
    process, begin = pdmp.ZigZag(model), pdmp.ZigZag.begin

    def raising(self, x, rng):
        state = begin(self, x, rng)
        model.failure = ArithmeticError("at the start")
        return state

    with monkeypatch.context() as patch:
        patch.setattr(pdmp.ZigZag, "begin", raising)
        with pytest.raises(pdmp.SamplingError, match="at the start"):
            pdmp.sample(process, events=10, chains=chains, seed=1, initial=np.ones(2), progress=False)
    assert model.failure is None and math.isfinite(model.potential(np.ones(2)))
    assert pdmp.sample(process, events=10, seed=1, initial=np.ones(2), progress=False).stopped == "events"


def test_an_exception_in_a_helper_thread_is_that_of_the_chain(monkeypatch):
    """A process whose second thread evaluates gradients, too."""
    model = pdmp.models.from_function(Shared(), 2)
    process = discrete.RichardsonRomberg(discrete.SGLD(model, 0.1), threads=2)

    def take_jobs(native, state, spins):
        if threading.current_thread().name == "pdmp-helper":
            model.failure = ArithmeticError("in the second thread")

    monkeypatch.setattr(discrete.threads, "take_jobs", take_jobs)
    monkeypatch.setattr(discrete.threads.config, "DISABLE_JIT", False)
    state = process.begin(np.ones(2), np.random.default_rng(0))
    with discrete.threads.Helper(process, state):
        pass
    monkeypatch.undo()
    assert str(process.model.failure) == "in the second thread"
    process.model.failure = None


def test_a_function_that_fills_one_array_is_called_by_one_thread_at_a_time():
    """Otherwise another thread may fill the array before it is copied."""
    kept = np.zeros(2)

    def filling(x):
        kept[:] = x
        return 0.5 * x @ x, kept

    one, other = (pdmp.models.from_function(f, 2).callback for f in (filling, lambda x: (0.5 * x @ x, 1.0 * x)))
    assert one.reuses and not other.reuses
    assert one.__reduce__()[1][2] and not other.__reduce__()[1][2]  # in other processes as well
    first, second = (one.evaluate(x)[1] for x in np.eye(2))
    assert first.tolist() == [1.0, 0.0] and second.tolist() == [0.0, 1.0]
    with one._turns:
        thread = threading.Thread(target=one.evaluate, args=(np.ones(2),))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive() and kept.tolist() == [0.0, 1.0]
    thread.join()
    assert kept.tolist() == [1.0, 1.0]


class InWorkArrays:
    """U and its gradient by way of an array that each call fills anew, and that no caller sees."""

    def __init__(self):
        self.work = np.zeros(2)

    def __call__(self, x):
        np.multiply(x, x, out=self.work)
        return 0.5 * self.work.sum(), x.copy()


KEPT = {"work": np.zeros(2)}


def in_global_work(x):
    np.copyto(KEPT["work"], x)
    return 0.5 * x @ x, KEPT["work"] + 0.0


def beyond_a_point(x):
    if x[0] > 0.05:
        KEPT["work"] += 1.0
    return 0.5 * x @ x, x.copy()


def common_numbers(x):
    """A simulated likelihood, of the same random numbers in each call."""
    np.random.seed(7)  # noqa: NPY002
    shift = np.random.normal(size=2)  # noqa: NPY002
    return 0.5 * (x - shift) @ (x - shift), x - shift


def common_numbers_of_python(x):
    random.seed(7)
    shift = random.gauss(0.0, 1.0)
    return 0.5 * (x - shift) @ (x - shift), x - shift


@pytest.mark.parametrize("function", [common_numbers, common_numbers_of_python])
def test_a_function_with_the_generator_of_all_threads_is_called_by_one_at_a_time(function):
    """Else another chain's call would draw from it in between; and it is left where the caller had it."""
    for _ in range(2):  # the second time where the first has left the generator
        assert pdmp.models.from_function(function, 2, check_gradient=False).callback.reuses
    asked = [np.random.get_state(legacy=False), random.getstate()]  # noqa: NPY002
    with adapter._shared_randomness() as drawn:
        function(np.zeros(2))
    assert drawn
    now = [np.random.get_state(legacy=False), random.getstate()]  # noqa: NPY002
    assert pickle.dumps(now) == pickle.dumps(asked)
    with adapter._shared_randomness() as drawn:
        np.random.default_rng(7).random()
    assert not drawn
    with pytest.raises(ZeroDivisionError), adapter._shared_randomness():
        function(np.zeros(2))
        raise ZeroDivisionError  # by the user's function
    now = [np.random.get_state(legacy=False), random.getstate()]  # noqa: NPY002
    assert pickle.dumps(now) == pickle.dumps(asked)


@pytest.mark.parametrize("check_gradient", [True, False])
@pytest.mark.parametrize(
    ("function", "reuses"),
    [(InWorkArrays(), True), (in_global_work, True), (beyond_a_point, True), (lambda x: (0.5 * x @ x, x + 0.0), False)],
)
def test_a_function_that_works_in_arrays_of_its_own_is_called_by_one_thread_at_a_time(
    function, reuses, check_gradient, monkeypatch
):
    """Also where the caller has been at `initial`, so that a call there changes nothing."""
    monkeypatch.setattr(adapter, "_changing", weakref.WeakKeyDictionary())  # of another case's model of the function
    function(np.zeros(2))
    model = pdmp.models.from_function(function, 2, check_gradient=check_gradient)
    assert model.callback.reuses is reuses
    again = pdmp.models.from_function(function, 2, initial=[3.0, -3.0], check_gradient=check_gradient)
    assert again.callback.reuses is reuses
