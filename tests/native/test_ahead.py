"""Calls that other processes make before this one comes to them."""

import concurrent.futures
import os
import pathlib
import pickle
import threading
import time
import warnings

import numpy as np
import pytest

from pdmp.native import ahead
from pdmp.native.ahead import Ahead

pytestmark = pytest.mark.exact


def note(folder, label, fails=False):
    """Write who was called with what; a module's function, as other processes find it by name."""
    number = len(list(pathlib.Path(folder).iterdir()))
    pathlib.Path(folder, f"{number} {label}").write_text(str(os.getpid()))
    if fails:
        raise ValueError(label)


def noted(folder):
    """Labels in the order of the calls."""
    return [path.name.partition(" ")[2] for path in sorted(folder.iterdir())]


def until(done, seconds=60):
    """Return when `done()` is true; a failure if it does not become so."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def cores(monkeypatch):
    """Two cores."""
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)


def test_another_process_makes_the_calls_in_their_order(cores, tmp_path):
    with Ahead(note, {label: (str(tmp_path), label) for label in "bcda"}) as others:
        others.begin()
        for label in "abcd":
            others.wait(label, print)
    made = noted(tmp_path)
    # "a" is taken here at once, unless all others were made before it.
    assert made in (["b", "c", "d"], ["b", "c", "d", "a"])
    assert {path.read_text() for path in tmp_path.iterdir()} != {str(os.getpid())}


def test_nothing_begins_by_itself(cores, tmp_path):
    with Ahead(note, {"a": (str(tmp_path), "a")}) as others:
        others.wait("a", print)
        others.begin()  # nothing is left
        assert others._pool is None
    assert noted(tmp_path) == []


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), NotImplementedError(), ImportError()])
def test_where_no_process_can_start_everything_is_left_to_this_one(cores, tmp_path, monkeypatch, error):
    """As in a container without shared memory, where a semaphore cannot be made."""

    def refuses(max_workers):
        raise error

    monkeypatch.setattr("joblib.externals.loky.ProcessPoolExecutor", refuses)
    with Ahead(note, {"a": (str(tmp_path), "a"), "b": (str(tmp_path), "b")}) as others:
        others.begin()
        others.wait("a", lambda said: pytest.fail(said))
        others.wait("b", lambda said: pytest.fail(said))
    assert noted(tmp_path) == []


@pytest.mark.parametrize(("number", "left", "started"), [(1, 3, 0), (2, 3, 1), (4, 2, 2), (4, 9, 3)])
def test_each_process_has_a_core(monkeypatch, number, left, started):
    """This one has a core too, and no process is without a call."""
    pools = []
    monkeypatch.setattr("joblib.cpu_count", lambda: number)

    class Pool:
        def __init__(self, max_workers):
            pools.append(max_workers)

        def submit(self, *_):
            return concurrent.futures.Future()

        def shutdown(self, **_):
            pass

    monkeypatch.setattr("joblib.externals.loky.ProcessPoolExecutor", Pool)
    with Ahead(note, {str(k): () for k in range(left)}) as others:
        others.begin()
        others.begin()
        assert pools == [started] * (started > 0)
        assert len(others._begun) == started
        assert list(others._left) == [str(k) for k in range(started, left)]


def wait_for(folder, label):
    until(pathlib.Path(folder, label).exists, seconds=120)  # longer than any test waits


def test_what_another_process_is_making_is_waited_for(cores, tmp_path):
    with Ahead(wait_for, {"a": (str(tmp_path), "a"), "b": (str(tmp_path), "b")}) as others:
        others.begin()
        waiting = concurrent.futures.ThreadPoolExecutor(1)
        said = []
        done = waiting.submit(others.wait, "a", said.append)
        assert concurrent.futures.wait([done], 0.2).not_done
        others.wait("b", said.append)  # which has not been begun, so that it is made here
        assert list(others._left) == []
        (tmp_path / "a").touch()
        done.result(60)
        assert said == ["compiling, in another process"]
        others.wait("a", said.append)  # which takes no time any more
        assert len(said) == 1


@pytest.mark.parametrize("make", [lambda: lambda: None, threading.Lock], ids=["function", "lock"])
def test_what_fails_elsewhere_is_not_told_and_the_next_is_made(make, cores, tmp_path):
    calls = {"a": (str(tmp_path), "a", True), "b": (str(tmp_path), make()), "c": (str(tmp_path), "c")}
    with Ahead(note, calls) as others:
        others.begin()
        until(lambda: not others._left)
        others.wait("c", print)
        assert list(others._begun) == ["a", "c"]  # "b" could not be sent
    assert noted(tmp_path) == ["a", "c"]


def test_what_another_process_warns_of_is_told_by_this_one_only():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ahead._make(pickle.dumps((warnings.warn, ("said", RuntimeWarning))))
    assert said == []


def test_much_data_is_not_sent(cores, tmp_path, monkeypatch):
    """Arrays count together, those that are a part of another object too."""
    monkeypatch.setattr(ahead, "MOST", 100)
    calls = {
        "a": (str(tmp_path), "a", [np.zeros(6), {"b": np.zeros(7)}]),
        "b": (str(tmp_path), "b", np.zeros(0)),
    }
    with Ahead(note, calls) as others:
        others.begin()
        others.wait("b", print)
        assert list(others._begun) == ["b"]
    assert noted(tmp_path) == ["b"]


def test_at_the_end_no_more_calls_are_made(cores, tmp_path):
    with Ahead(wait_for, {label: (str(tmp_path), label) for label in "abc"}) as others:
        others.begin()
        future = others._begun["a"]
    assert others._left == {}
    assert isinstance(future.exception(60), Exception)  # its process was ended
    assert list(others._begun) == ["a"]
