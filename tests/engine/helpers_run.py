"""What `test_run.py` and other test modules share."""

import concurrent.futures
import contextlib
import pathlib
import pickle
import signal
import textwrap
import threading
from unittest import mock

import numpy as np
import pytest

import pdmp
from pdmp.engine import chain, checkpoint
from pdmp.engine import run as run_module
from tests.toys import Coupled, Telegraph, Ticks, Walls

ROOT = pathlib.Path(__file__).parents[2]
PROCESSES = {"global": Telegraph, "local": Walls, "ticks": Ticks, "coupled": Coupled}


def same(one, other):
    """Whether two runs are bitwise the same in everything but the clock on the wall."""
    assert one.chains == other.chains
    for a, b in zip(one.records, other.records, strict=True):
        for name in ("x", "v", "times", "kinds", "which", "xs", "vs", "counts", "excess"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
        for part in ("integrals", "grid"):
            for name, p, q in zip(getattr(a, part)._fields, getattr(a, part), getattr(b, part), strict=True):
                np.testing.assert_array_equal(p, q, err_msg=name)
        assert (a.warmup, a.end, a.stopped) == (b.warmup, b.end, b.stopped)
    return True


def resumed_after_deaths(sample, first_chunk, monkeypatch):
    """A run that stands still after every chunk, writes its checkpoint there, and is gone after each fourth."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(chain, "CHUNK_SECONDS", 0.0)
    monkeypatch.setattr(chain, "FIRST_CHUNK", first_chunk)
    monkeypatch.setattr(chain.Chain, "_adapt_chunk", lambda *_: None)
    write, calls, deaths = checkpoint.Checkpoint.write, [], 0

    def write_and_die(self, **how):
        write(self, **how)
        calls.append(None)
        if len(calls) % 4 == 0:
            raise MemoryError("killed")

    monkeypatch.setattr(checkpoint.Checkpoint, "write", write_and_die)
    while True:
        try:
            resumed = sample()
            break
        except pdmp.SamplingError:
            deaths += 1
    assert deaths >= 2
    return resumed


class Serial(concurrent.futures.Executor):
    """Runs everything at once, in the caller's thread."""

    def submit(self, function, /, *args, **kwargs):
        future = concurrent.futures.Future()
        future.set_result(function(*args, **kwargs))
        return future


class Pickling(Serial):
    """Sends what it is given through pickle, and back."""

    def submit(self, function, /, *args, **kwargs):
        function, args = pickle.loads(pickle.dumps((function, args)))
        future = concurrent.futures.Future()
        future.set_result(pickle.loads(pickle.dumps(function(*args, **kwargs))))
        return future


@contextlib.contextmanager
def interrupted(seconds=0.3):
    """Ctrl-C so long after the checks before a run, however long these take."""
    checked = run_module.rehearse

    def begin(*args):
        checked(*args)
        threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
    with mock.patch.object(run_module, "rehearse", begin), pytest.warns(UserWarning, match="the run was interrupted"):
        yield


def method(name, lines, scope):
    """A method of a process, of these lines, which find what they name in `scope`."""
    made = {}
    text = f"def {name}(self, state, i, now, rng):\n" + textwrap.indent(lines, "    ")
    exec(compile(text, scope.get("__file__", name), "exec"), scope, made)
    return made[name]
