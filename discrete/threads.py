"""A second thread that carries out work which the event loop posts, and a random stream that can go with it.

The loop and the helper share a *desk*, a few numbers in the memory of the process. The loop posts the number of a job
as soon as all that the job needs is there, and carries out something else. When it wants the result it claims the job;
if the helper was first, it waits for it to be done. Whoever does it, the job works on the same arrays with the same
random numbers, so that results are bitwise the same with a helper, without, or with one that comes too late.
"""

from __future__ import annotations

import hashlib
import math
import os
import pathlib
import platform
import threading
import time

import numba.core.errors
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, overload

from pdmp.native.classes import Compiled, compiled, entry

#: Places on the desk, each in a cache line of its own.
OPEN, POSTED, CLAIMED, DONE, FAILED = range(0, 40, 8)
#: Looks at the desk after which a thread that waits lets others go first, and after which an idle helper sleeps.
SPINS, PATIENCE = 100, 1_000
NAP = 1e-4  #: seconds

#: Numba's cache would not notice a change of the functions below: whatever names one of them is cached by this as well.
SOURCE = int(hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()[:12], 16)


def new_desk():
    """An empty desk."""
    return np.zeros(48, np.int64)


# ---------------------------------------------------------------------------------------------------------------
# Atomic access: in plain Python, where there is no helper, ordinary access


def load(desk, i):
    """desk[i], and all that was written before it was."""
    _ = SOURCE
    return desk[i]


def store(desk, i, value):
    """desk[i] = value, after all that was written before."""
    _ = SOURCE
    desk[i] = value


def claim(desk, i, old, new):
    """Change desk[i] from `old` to `new`; whether it was `old`."""
    _ = SOURCE
    if desk[i] != old:
        return False
    desk[i] = new
    return True


def pause(looks):
    """A moment in a loop that waits for another thread, after so many looks; before long other threads go first."""
    _ = SOURCE


def _address(context, builder, kind, array, index):
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index], inbounds=True)


@intrinsic
def _load(typing, desk, i):
    def build(context, builder, signature, args):
        return builder.load_atomic(_address(context, builder, signature.args[0], *args), "acquire", 8)

    return types.int64(desk, types.intp), build


@intrinsic
def _store(typing, desk, i, value):
    def build(context, builder, signature, args):
        builder.store_atomic(args[2], _address(context, builder, signature.args[0], *args[:2]), "release", 8)
        return context.get_dummy_value()

    return types.void(desk, types.intp, types.int64), build


@intrinsic
def _claim(typing, desk, i, old, new):
    def build(context, builder, signature, args):
        place = _address(context, builder, signature.args[0], *args[:2])
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire"), 1)

    return types.boolean(desk, types.intp, types.int64, types.int64), build


def _calling(name, kind, here):
    """A function of no arguments that calls `name`, where it exists."""

    @intrinsic
    def call(typing):
        def build(context, builder, signature, args):
            if here:
                function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, []), name)
                builder.call(function, [])
            return context.get_dummy_value()

        return types.void(), build

    return call


_spin = _calling("llvm.x86.sse2.pause", ir.VoidType(), platform.machine().lower() in ("x86_64", "amd64"))
_give_way = _calling("sched_yield", ir.IntType(32), os.name == "posix")


_options = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@overload(load, jit_options=_options)
def _(desk, i):
    return lambda desk, i: _load(desk, i)


@overload(store, jit_options=_options)
def _(desk, i, value):
    return lambda desk, i, value: _store(desk, i, value)


@overload(claim, jit_options=_options)
def _(desk, i, old, new):
    return lambda desk, i, old, new: _claim(desk, i, old, new)


@overload(pause, jit_options=_options)
def _(looks):
    def wait(looks):
        if looks < SPINS:
            _spin()
        else:
            _give_way()

    return wait


# ---------------------------------------------------------------------------------------------------------------
# The helper


@entry
def assist(process, state, patience):
    """Carry out the jobs that are posted, by ``process.carry_out(state)``.

    Until the desk is closed, then the result is False; or, True, until nothing came for `patience` looks at it.
    """
    desk, idle = state.memory.desk, 0
    while load(desk, OPEN) == 1:
        job = load(desk, POSTED)
        if load(desk, CLAIMED) < job and claim(desk, CLAIMED, job - 1, job):
            process.carry_out(state)
            store(desk, DONE, job)
            idle = 0
        elif idle >= patience:
            return True
        else:
            pause(idle)
            idle += 1
    return False


class Helper:
    """A context in which a thread assists; what has been claimed is done when it ends.

    Nothing happens in plain Python, and where `assist` cannot be compiled.

    Parameters
    ----------
    process : Process
        With the compiled method ``carry_out(state)``.
    state : pdmp.process.State
        Its memory has the field `desk`.
    """

    def __init__(self, process, state):
        self._kernel, self._state, self._thread = process.native, state, None

    def __enter__(self):
        desk = self._state.memory.desk
        desk[OPEN] = 0
        if config.DISABLE_JIT:
            return
        try:
            assist(self._kernel, self._state, 0)  # compiled here, where the loop is not waiting
        except numba.core.errors.NumbaError:
            return
        desk[OPEN] = 1
        self._thread = threading.Thread(target=self._work, name="pdmp-helper", daemon=True)
        self._thread.start()

    def __exit__(self, *_):
        self._state.memory.desk[OPEN] = 0
        if self._thread is not None:
            self._thread.join()

    def _work(self):
        while assist(self._kernel, self._state, PATIENCE):
            time.sleep(NAP)


# ---------------------------------------------------------------------------------------------------------------
# Random numbers


@intrinsic
def _with_words(typing, kernel, words):
    def build(context, builder, signature, args):
        return context.make_tuple(builder, signature.return_type, [args[1]])

    return kernel(kernel, words), build


def with_words(kernel, words):
    """The kernel of a `Stream` with this state."""
    _ = SOURCE
    return kernel._replace(words=words)


@overload(with_words, jit_options=_options)
def _(kernel, words):
    return lambda kernel, words: _with_words(kernel, words)


class Stream(Compiled):
    """Random numbers whose state is an array, with the methods of `numpy.random.Generator` that samplers use.

    sfc32 of Doty-Humphrey (PractRand): 128 bits, of which 32 are a counter; they are kept in an int64 array, so that
    the memory of a process can hold them. ``self.at(words)`` is the stream with that state.
    """

    words: np.ndarray

    def __init__(self):
        self.words = np.zeros(4, np.int64)

    @staticmethod
    def seeded(rng):
        """The state (4,) of a stream of its own, drawn from a `numpy.random.Generator`."""
        a, b, c = (int(w) for w in rng.integers(0, 2**32, 3))
        counter, mask = 1, 2**32 - 1
        for _ in range(12):
            out = (a + b + counter) & mask
            counter += 1
            a, b, c = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + out) & mask
        return np.array([a, b, c, counter])

    @compiled
    def at(self, words):
        return with_words(self, words)

    @compiled
    def random(self):
        """Uniform on [0, 1), of 53 bits."""
        words, mask = self.words, 0xFFFFFFFF
        a, b, c, counter = words[0], words[1], words[2], words[3]
        high = (a + b + counter) & mask
        a, b, c = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + high) & mask
        low = (a + b + counter + 1) & mask
        words[0], words[1], words[2] = b ^ (b >> 9), (c + (c << 3)) & mask, (((c << 21) | (c >> 11)) + low) & mask
        words[3] = (counter + 2) & mask
        return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0

    @compiled
    def standard_normal(self):
        """By Box and Muller's formula; its other half is thrown away."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.random()))
        return radius * math.cos(2.0 * math.pi * self.random())

    @compiled
    def standard_exponential(self):
        return -math.log(1.0 - self.random())
