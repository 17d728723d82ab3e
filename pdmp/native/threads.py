"""Passes over many rows on threads: in chunks of a fixed size, whose results are taken in their order.

The size of a chunk does not depend on the number of threads, so a sum over rows is bitwise the same for every number
of them. Compiled code releases the lock of Python's interpreter, and so do NumPy's loops over large arrays.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import contextvars
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from numba import config
from numba.core.registry import cpu_target

CHUNK = 2**18  #: numbers in the rows of a chunk, about; more where rows are so wide that a matrix is larger
WHOLE = 64  #: rows of a chunk are a multiple of it, as compiled loops take so many together
FEWEST = 4  #: chunks from which on threads pay what it takes to start them


def cpu_count() -> int:
    """Processors that this Python process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@functools.cache
def processor() -> tuple[str, str]:
    """What numba makes machine code for here: a processor's name, and a hash of its features."""
    _, name, features = cpu_target.target_context.codegen().magic_tuple()
    return name, hashlib.sha256(features.encode()).hexdigest()[:8]


def threads() -> int:
    """How many threads a pass takes: one for each processor, and at most ``NUMBA_NUM_THREADS`` of the environment."""
    return max(1, min(cpu_count(), config.NUMBA_NUM_THREADS))


def chunks(n: int, width: int | None) -> list[tuple[int, int]]:
    """First and stop of the chunks of n rows of so many numbers; all rows in one for None."""
    if width is None or n == 0:
        return [(0, n)]
    step = max(max(CHUNK // max(width, 1), width) // WHOLE, 1) * WHOLE  # sums may be matrices, no larger than the rows
    return [(first, min(first + step, n)) for first in range(0, n, step)]


def added(parts: Iterable[tuple]) -> tuple:
    """Sums of the entries of tuples, in their order."""
    totals: tuple = ()
    for part in parts:
        totals = tuple(a + b for a, b in zip(totals, part, strict=True)) if totals else part
    return totals


def thread_pool(workers: int, name: str) -> concurrent.futures.ThreadPoolExecutor:
    """A pool of threads that have the caller's context, such as values of a `ContextVar` and `np.errstate`."""
    context = contextvars.copy_context()
    return concurrent.futures.ThreadPoolExecutor(
        workers, thread_name_prefix=name, initializer=_adopt, initargs=(context,)
    )


def _adopt(context):
    for variable, value in context.items():
        variable.set(value)


def each(function: Callable[..., Any], items: Iterable[tuple]) -> Iterator[Any]:
    """``function(*item)`` of each item, in order, on threads; a few of them ahead of the one that is taken."""
    items = list(items)
    workers = min(threads(), len(items))
    if workers == 1 or len(items) < FEWEST:
        for item in items:
            yield function(*item)
        return
    with thread_pool(workers, "pdmp-rows") as executor:
        waiting: collections.deque = collections.deque()
        for item in items:
            waiting.append(executor.submit(function, *item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


# ---------------------------------------------------------------------------------------------------------------
# Linear algebra

_lock = threading.Lock()
_fits: list = []  #: for each fit under way how many threads BLAS had when it began


@functools.cache
def _libraries():
    """BLAS of NumPy and of SciPy; to look for them takes a millisecond or two."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra on one thread of BLAS, with the same bits on any number of processors.

    Matrices are small here: several threads gain little on an idle machine, and on a busy one they wait for each other
    many times as long as they compute.
    """
    with _lock:
        _fits.append(_libraries().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _fits.pop().restore_original_limits()  # of the latest, which found one, whichever ends
