"""Compilation in other processes, of what this one will come to later.

Numba compiles in one thread at a time, so a process keeps one core busy however many functions it needs. What another
process has compiled is found on disk.
"""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from pdmp.errors import silenced

MOST = 2**28  #: bytes of arrays that are sent to another process; with more data nobody waits for a compilation


class _Pickler(pickle.Pickler):
    """A pickler that gives up, before it has copied them, when arrays have more than `MOST` bytes."""

    sent = 0

    def reducer_override(self, obj):
        if isinstance(obj, np.ndarray):
            self.sent += obj.nbytes
            if self.sent > MOST:
                raise pickle.PicklingError("too much")
        return NotImplemented


def _make(call):
    """In another process: a pickled call. What it warns of, this one will."""
    with silenced():
        function, arguments = pickle.loads(call)
        function(*arguments)


class Ahead:
    """Calls of `function` that this process will come to, and that other processes make before it, in this order.

    They are for what is then on disk, and `calls` has their arguments by label. Each process has a core of its own.
    Nothing begins before `begin`, so that where all code is on disk no process is started; of a call that fails in
    another process, or cannot be sent there, nothing is told, as this one will come to it.
    """

    def __init__(self, function: Callable, calls: dict[str, tuple]) -> None:
        self.function = function
        self._left = dict(calls)
        self._begun: dict[str, Any] = {}  # futures by label
        self._lock = threading.Lock()
        self._pool: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left.clear()
        if self._pool is not None:
            self._pool.shutdown(kill_workers=True)

    def begin(self) -> None:
        """Start the other processes, unless they run, or cannot, or there is nothing left for them, or no core."""
        # Unlike the pools of the standard library, these processes do not run the user's script again.
        from joblib import cpu_count
        from joblib.externals.loky import ProcessPoolExecutor

        workers = min(cpu_count() - 1, len(self._left))
        if self._pool is None and workers > 0:
            try:
                self._pool = ProcessPoolExecutor(max_workers=workers)
            except (OSError, ImportError, NotImplementedError):  # where semaphores are forbidden
                return
            for _ in range(workers):
                self._next()

    def _next(self, _: object = None) -> None:
        """Give the first call that is left to a process that has become free."""
        with self._lock:
            future = None
            while self._left and future is None:
                label = next(iter(self._left))
                file = io.BytesIO()
                try:
                    _Pickler(file).dump((self.function, self._left.pop(label)))
                    future = self._begun[label] = self._pool.submit(_make, file.getvalue())
                except Exception:  # noqa: BLE001 - it cannot be sent, or the processes have ended
                    continue
        if future is not None:
            future.add_done_callback(self._next)

    def wait(self, label: str, say: Callable[[str], object]) -> None:
        """Return when no other process makes this call or will make it; say so if that takes time."""
        with self._lock:
            self._left.pop(label, None)
            future = self._begun.get(label)
        if future is not None:
            if not future.done():
                say("compiling, in another process")
            future.exception()
