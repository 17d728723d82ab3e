"""Runs in threads that share a model: the failure of one is no failure of another."""

from __future__ import annotations

import concurrent.futures
import math
import threading

import numpy as np
import pytest

import discrete
import pdmp
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
    assert str(process.failure) == "in the second thread"
    process.failure = None
