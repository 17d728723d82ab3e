"""A second thread that takes over steps of the compiled event loop.

The event loop and the helper thread share a few counters. The loop *posts* the number of a job once all that the job
reads is in place, and goes on with other work. When the loop needs the result it tries to *claim* the job: whoever
claims it first carries it out. If the helper was first, the loop waits until the job is *done*. Whoever does it, a job
reads and writes the same arrays and the same random numbers. So the result is bitwise the same with a helper, without
one, and with one that comes too late.

Why not two loops that meet at the end of a chunk only: the increments that both chains share come from the generator
that also draws the fine chain's batches. A second loop would have to draw these batches again to get at the increments,
and the path of a chunk would have to be put together from two before it is recorded and counted.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform
import threading
import time
from typing import NamedTuple

import numba.core.errors
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, overload

from pdmp.native.classes import entry
from pdmp.process import failure_of, set_failure

SPINS_BEFORE_YIELD = 100  #: reads of a counter after which a thread that waits lets other threads run
SPINS_BEFORE_SLEEP = 1_000  #: reads after which a helper without a job goes to sleep
SLEEP_SECONDS = 1e-4

#: Numba's cache does not notice a change of the functions below. They refer to this hash of the file, which changes.
SOURCE = int(hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:12], 16)


class Jobs(NamedTuple):
    """The counters that the two threads share: the first entry of an array each, which fills a cache line."""

    is_open: np.ndarray  #: 1 while the helper is to look for jobs
    posted: np.ndarray  #: number of the last job that can be done
    claimed: np.ndarray  #: number of the last job that one of the threads has taken
    done: np.ndarray  #: number of the last job that the helper has finished
    failed: np.ndarray  #: 1 once a job has failed


def no_jobs():
    """The counters before the first job."""
    return Jobs(*(np.zeros(8, np.int64) for _ in Jobs._fields))


# ---------------------------------------------------------------------------------------------------------------
# Atomic access to counters; in plain Python, where there is no helper, ordinary access


def load(counter):
    """The value, and with it all that was written before it was stored (acquire)."""
    _ = SOURCE
    return counter[0]


def store(counter, value):
    """Set the value, after all that was written before (release)."""
    _ = SOURCE
    counter[0] = value


def compare_and_swap(counter, old, new):
    """Change the value from `old` to `new`, and return True; return False if it is not `old`."""
    _ = SOURCE
    if counter[0] != old:
        return False
    counter[0] = new
    return True


def pause(spins):
    """Wait for a moment, in a loop that has read a counter `spins` times in vain."""
    _ = SOURCE


def _address(context, builder, kind, array):
    return context.make_array(kind)(context, builder, array).data


@intrinsic
def _load(typing, counter):
    def build(context, builder, signature, args):
        return builder.load_atomic(_address(context, builder, signature.args[0], args[0]), "acquire", 8)

    return types.int64(counter), build


@intrinsic
def _store(typing, counter, value):
    def build(context, builder, signature, args):
        builder.store_atomic(args[1], _address(context, builder, signature.args[0], args[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(counter, types.int64), build


@intrinsic
def _compare_and_swap(typing, counter, old, new):
    def build(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], args[0])
        return builder.extract_value(builder.cmpxchg(place, args[1], args[2], "acq_rel", "acquire"), 1)

    return types.boolean(counter, types.int64, types.int64), build


def _calling(name, kind, exists):
    """A function without arguments that calls the C function or intrinsic `name`, if it `exists` on this machine."""

    @intrinsic
    def call(typing):
        def build(context, builder, signature, args):
            if exists:
                function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, []), name)
                builder.call(function, [])
            return context.get_dummy_value()

        return types.void(), build

    return call


_cpu_pause = _calling("llvm.x86.sse2.pause", ir.VoidType(), platform.machine().lower() in ("x86_64", "amd64"))
_yield = _calling("sched_yield", ir.IntType(32), os.name == "posix")


_options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@overload(load, jit_options=_options)
def _(counter):
    return lambda counter: _load(counter)


@overload(store, jit_options=_options)
def _(counter, value):
    return lambda counter, value: _store(counter, value)


@overload(compare_and_swap, jit_options=_options)
def _(counter, old, new):
    return lambda counter, old, new: _compare_and_swap(counter, old, new)


@overload(pause, jit_options=_options)
def _(spins):
    def wait(spins):
        if spins < SPINS_BEFORE_YIELD:
            _cpu_pause()
        else:
            _yield()

    return wait


# ---------------------------------------------------------------------------------------------------------------
# The helper


@entry
def take_jobs(process, state, most_spins):
    """Carry out jobs as they are posted, by ``process.carry_out(state)``.

    Returns True once `most_spins` reads of the counters have found no job, False once the jobs are closed.
    """
    jobs, spins = state.memory.jobs, 0
    while load(jobs.is_open) == 1:
        job = load(jobs.posted)
        if load(jobs.claimed) < job and compare_and_swap(jobs.claimed, job - 1, job):
            process.carry_out(state)
            store(jobs.done, job)
            spins = 0
        elif spins >= most_spins:
            return True
        else:
            pause(spins)
            spins += 1
    return False


class Helper:
    """A context during which a second thread takes jobs; on leaving it, the thread has finished what it has claimed.

    The process has the compiled method ``carry_out(state)``, and the memory the field ``jobs``, a `Jobs`. Nothing
    happens in plain Python, and where `take_jobs` cannot be compiled.
    """

    def __init__(self, process, state):
        self._process, self._native, self._state, self._thread = process, process.native, state, None
        self._failure = None  # what a function of the model raised in the second thread

    def __enter__(self):
        if config.DISABLE_JIT:
            return
        try:
            take_jobs(self._native, self._state, 0)  # compiles it before the event loop needs it
        except numba.core.errors.NumbaError:
            return
        self._state.memory.jobs.is_open[0] = 1
        self._thread = threading.Thread(target=self._work, name="pdmp-helper", daemon=True)
        self._thread.start()

    def __exit__(self, *_):
        self._state.memory.jobs.is_open[0] = 0
        if self._thread is not None:
            self._thread.join()
            set_failure(self._process, failure_of(self._process) or self._failure)

    def _work(self):
        while take_jobs(self._native, self._state, SPINS_BEFORE_SLEEP):
            time.sleep(SLEEP_SECONDS)
        self._failure = failure_of(self._process)
