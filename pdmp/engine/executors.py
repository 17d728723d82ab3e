"""Where chains run: in threads of this process, in a pool of processes, on a cluster.

`_drive` of `pdmp.engine.run` asks a place to advance a chain by a segment, and collects it when the segment is done.
Threads advance the chain itself. Elsewhere a segment is a pure function: a worker is sent the numbers, the generator
and the arrays of a chain, advances a copy, and returns these with what it has recorded meanwhile. So a segment that was
lost with its worker is computed again, bitwise the same, and no path depends on where it was computed.

What the chains of a run have in common, the process with its model, is a `Parcel`. It is pickled once, into a temporary
file that workers on the same machine map into memory, so that they share it. A worker that cannot open the file returns
the segment as it came, and is sent the contents. A worker opens a parcel once. Arrays that are memory-mapped files stay
where they are, if the worker can open the same files.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import io
import math
import mmap
import multiprocessing.pool
import os
import pickle
import platform
import secrets
import signal
import stat
import sys
import tempfile
import threading
from collections import OrderedDict
from concurrent.futures import Executor, Future
from time import perf_counter
from typing import Any

import numpy as np

from pdmp.engine import requirements
from pdmp.errors import silenced, warn
from pdmp.native.arguments import positive
from pdmp.native.classes import Compiled
from pdmp.native.prefetch import LINE
from pdmp.native.threads import cpu_count, processor, thread_pool

SEGMENT_SECONDS = 5.0  #: how long a worker advances a chain before it returns what it has recorded, but for `Segments`
SEGMENT_BYTES = 32_000_000  #: of skeleton, after which it returns earlier
OUTSIDE_BYTES = 10_000  #: arrays of at least this size are beside the pickle of a parcel, not in it
OPEN_PARCELS = 4  #: how many a worker keeps open, those used last
POOL = 4  #: workers of a pool that does not tell how many it has
AHEAD = 2  #: segments for each worker of a pool that are sent or computed at a time; more would fill the memory here
ALONE_SECONDS = 5.0  #: without a worker, after which a cluster is waited for with a warning
LONGEST_ALONE = 3600.0  #: seconds after which a cluster without a worker is waited for no longer
LOSSES = 3  #: how often each segment may be lost by a cluster that has restarted
#: What the future of a segment raises if its worker has died: the segment is run again.
LOST_WORKERS = (concurrent.futures.BrokenExecutor, MemoryError, EOFError, ConnectionError)
LOST_WORKERS_BY_NAME = ("KilledWorker", "WorkerCrashedError")  #: of Dask and Ray
LOST_DATA = ("CancelledError", "FutureCancelledError", "FuturesCancelledError")  #: of Dask
CLOSED = ("closing", "closed")  #: states of a Dask client that has given up its scheduler
LOST_SCHEDULER = "`executor`: the connection to the Dask scheduler is lost; start the cluster and its client again"


def check_executor(executor):
    """A `concurrent.futures.Executor` for the argument `executor`, or the Dask client in it; None for None."""
    if isinstance(executor, Segments):
        return executor
    client = getattr(executor, "_client", executor)
    if hasattr(client, "scatter") and hasattr(client, "get_executor"):
        if getattr(client, "asynchronous", False):
            raise ValueError(
                "`executor` is an asynchronous Dask client; give distributed.Client(..., asynchronous=False)."
            )
        return client
    if isinstance(executor, multiprocessing.pool.Pool):
        raise TypeError(
            "`executor` must not be a multiprocessing.Pool, which waits for ever for a worker that has died; give a "
            "concurrent.futures.ProcessPoolExecutor."
        )
    if executor is None or callable(getattr(executor, "submit", None)):
        return executor
    if callable(getattr(executor, "apply_async", None)):
        return Applying(executor)
    raise TypeError(
        "`executor` must be a concurrent.futures.Executor, a distributed.Client or a ray.util.multiprocessing.Pool, "
        f"got {type(executor).__name__}."
    )


class Segments:
    """An executor, and how long its workers compute before they return what they have recorded.

    Ctrl-C, checkpoints and the progress bar know of whole segments only. The result is the same for any length.

    Parameters
    ----------
    executor : concurrent.futures.Executor, distributed.Client or ray.util.multiprocessing.Pool
    seconds : float
        Of computing, of one chain; 5 for an executor that is given as it is.

    Raises
    ------
    ValueError, TypeError
        If `seconds` is not a positive number, or the executor is none.

    Examples
    --------
    >>> import concurrent.futures, pdmp
    >>> process = pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0]))
    >>> with concurrent.futures.ThreadPoolExecutor() as pool:
    ...     run = pdmp.sample(process, events=100, seed=1, executor=pdmp.engine.executors.Segments(pool, 0.5))
    >>> run.stats["total_events"]
    100
    """

    def __init__(self, executor: Any, seconds: float) -> None:
        if isinstance(executor, Segments):
            raise TypeError("`executor` of Segments must be an executor, got Segments: their `seconds` are enough.")
        self.executor, self.seconds = check_executor(executor), float(positive("seconds", seconds))


class Applying(Executor):
    """The executor of a pool that has `apply_async` and no `submit`, as Ray's."""

    def __init__(self, pool):
        self.pool = pool
        self._max_workers = getattr(pool, "_processes", None)

    def submit(self, function, /, *args, **kwargs):
        """The future of ``function(*args, **kwargs)``."""
        future = Future()

        def answer(method, value):
            with contextlib.suppress(concurrent.futures.InvalidStateError):  # it was cancelled
                method(value)

        self.pool.apply_async(
            function,
            args,
            kwargs,
            callback=lambda value: answer(future.set_result, value),
            error_callback=lambda error: answer(future.set_exception, error),
        )
        return future


# ---------------------------------------------------------------------------------------------------------------
# What the chains of a run have in common


PIECE, PIECES = 4096, 256  #: bytes of a memory-mapped file that are compared with those of its name, and how often


class Absent(Exception):
    """A file that a worker cannot open, or that has changed."""


def _mapped_file(array):
    """Of an array in a memory-mapped file: name, size and time of the file, and where in it; None for others."""
    root = array
    while isinstance(root, np.ndarray) and not isinstance(root, np.memmap):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None or root.mode == "c" or root._mmap is None:
        return None
    begin = np.frombuffer(root._mmap, np.uint8).ctypes.data
    try:
        found = os.stat(root.filename)
        if not _is_mapped(begin, found, root):
            return None
    except OSError:
        return None
    # The map begins at a whole page of the file.
    place = array.ctypes.data - begin + root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
    return os.path.abspath(root.filename), found.st_size, found.st_mtime_ns, place


def _is_mapped(begin, found, root):
    """Whether the file of that name is still the one that is mapped at an address, and not another put in its place."""
    with contextlib.suppress(OSError):
        with open("/proc/self/maps") as file:
            for line in file:
                span, _, _, device, inode, *name = line.split()
                first, last = (int(address, 16) for address in span.split("-"))
                if first <= begin < last:
                    major, minor = (int(part, 16) for part in device.split(":"))
                    if name[-1:] == ["(deleted)"] or os.makedev(major, minor) == found.st_dev:
                        return name[-1:] != ["(deleted)"] and int(inode) == found.st_ino
    # Elsewhere, and where a file system has numbers of its own for files that are mapped, by pieces of it.
    there, here = np.memmap(root.filename, np.uint8, "r"), np.frombuffer(root._mmap, np.uint8)
    skipped = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY
    pieces = np.linspace(0, max(len(here) - PIECE, 0), PIECES).astype(int)
    return len(there) >= skipped + len(here) and all(
        np.array_equal(here[k : k + PIECE], there[skipped + k : skipped + k + PIECE]) for k in pieces
    )


def _open_mapped(name, size, time, place, dtype, shape, strides, writeable):
    """The array of a memory-mapped file in a worker; what is written to it stays in the worker."""
    try:
        found = os.stat(name)
        if (found.st_size, found.st_mtime_ns) != (size, time):
            raise Absent
        whole = np.memmap(name, np.uint8, "c" if writeable else "r")
    except (OSError, ValueError):
        raise Absent from None
    return np.ndarray(shape, dtype, whole, place, strides)


#: Of a class of compiled methods, what Python and `Compiled` make anew.
GENERATED = ("__dict__", "__weakref__", "_annotations", "_methods", "_tuple", "_registered")


class _Nothing:
    pass


def _fill_class(cls, parts):
    cls.__bases__, own = parts
    for name, value in own.items():
        setattr(cls, name, value)
    super(cls, cls).__init_subclass__()


def _class_by_value(cls):
    """How to pickle a class of compiled methods whose module workers do not have; its methods may name it."""
    own = {name: value for name, value in cls.__dict__.items() if name not in GENERATED}
    if "__init__" in own:
        own["__init__"] = getattr(own["__init__"], "__wrapped__", own["__init__"])
    return type, (cls.__name__, (_Nothing,), {}), (cls.__bases__, own), None, None, _fill_class


def imports_main(executor):
    """Whether the workers of an executor have the script that is running, as their module ``__main__``."""
    pool = isinstance(executor, concurrent.futures.ProcessPoolExecutor) and "loky" not in type(executor).__module__
    return (pool or type(executor).__module__.startswith("mpi4py")) and hasattr(sys.modules["__main__"], "__file__")


def _pickled(value, mapped, main=False):
    """`value` as a pickle and a list of the buffers of its large arrays.

    With `mapped`, an array in a memory-mapped file is pickled as the name of the file. Classes and functions of a
    script or notebook that workers do not have as `main`, and others that pickle does not know by name, need the
    package cloudpickle.
    """

    def dump(pickler):
        class Pickler(pickler):
            def reducer_override(self, obj):
                if mapped and isinstance(obj, np.ndarray) and obj.nbytes >= OUTSIDE_BYTES:
                    file = _mapped_file(obj)
                    if file is not None:
                        return _open_mapped, (*file, obj.dtype, obj.shape, obj.strides, obj.flags.writeable)
                if isinstance(obj, type) and issubclass(obj, Compiled) and pickler is not pickle.Pickler:
                    if obj.__module__ == "__main__" or "<locals>" in obj.__qualname__:
                        return _class_by_value(obj)
                other = getattr(super(), "reducer_override", None)
                return NotImplemented if other is None else other(obj)

        def inside(buffer):
            if buffer.raw().nbytes < OUTSIDE_BYTES:
                return True
            buffers.append(buffer)
            return False

        file, buffers = io.BytesIO(), []
        Pickler(file, protocol=5, buffer_callback=inside).dump(value)
        return file.getvalue(), buffers

    found, failures, reason = None, (pickle.PicklingError, AttributeError, TypeError), None
    try:
        found = dump(pickle.Pickler)
        if main or b"__main__" not in found[0]:
            return found
    except failures as error:
        reason = error
    try:
        import cloudpickle

        return dump(cloudpickle.Pickler)
    except (ImportError, *failures):
        if found is not None:
            return found
    raise TypeError(
        f"`executor`: the process cannot be sent to workers ({reason}); define its functions and classes in a module, "
        "or install cloudpickle."
    ) from reason


class Parcel:
    """What all chains of a run have in common, for workers, who know it by its `token`.

    `spans`: begin and end, in the `file` that workers of the same machine find, of what a worker needs, of the pickle
    and of the buffers beside it, and whether they may be written. `contents`: the same as arrays, if they travel with
    it.
    """

    def __init__(self, token, file, spans, contents=None):
        self.token, self.file, self.spans, self.contents = token, file, spans, contents
        self.home = platform.node(), os.getpid()

    def open(self):
        """The template of the chains; None where its contents are needed."""
        with _opening:
            if self.token in _open:
                _open.move_to_end(self.token)
                return _open[self.token]
            try:
                required, pickled, *buffers = self._map() if self.contents is None else self._writeable()
                requirements.check_versions(required)
                template = pickle.loads(pickled, buffers=buffers)
            except Absent:
                return None
            except (ImportError, AttributeError) as error:
                requirements.refuse(f"cannot load the process ({error})", "restart the workers with the same files")
            requirements.check_code(required, [template.process])
            requirements.check_potential(required, template.process, template.first)
            template.compile()
            _open[self.token] = template
            while len(_open) > OPEN_PARCELS:
                _open.popitem(last=False)
            return template

    def close(self):
        """Let a worker open it anew: what a failure has left in the process is not for the next segment."""
        with _opening:
            _open.pop(self.token, None)

    def _map(self):
        """The contents, from the file."""
        if platform.node() != self.home[0] or not self.file:
            raise Absent
        try:
            handle = os.open(self.file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            raise Absent from None
        try:
            begin = len(self.token)
            # Of another process, in a container with the same numbers, it would be another file.
            if not stat.S_ISREG(os.fstat(handle).st_mode) or os.read(handle, begin) != self.token.encode():
                raise Absent
            whole = np.frombuffer(mmap.mmap(handle, 0, access=mmap.ACCESS_COPY), np.uint8)
        finally:
            os.close(handle)
        return [_as_was(whole[begin:end], writeable) for begin, end, writeable in self.spans]

    def _writeable(self):
        """The contents that came with it, copied where they must be written and came read-only."""
        return [
            _as_was(a if a.flags.writeable else a.copy(), span[2])
            for a, span in zip(self.contents, self.spans, strict=True)
        ]


def _as_was(array, writeable):
    """A view that may be written or not: machine code for the one does not take the other."""
    view = array.view()
    view.flags.writeable = writeable
    return view


_open: OrderedDict = OrderedDict()  # in a worker: templates by token
_opening = threading.Lock()


class Contents:
    """The process of a run, packed by the process that coordinates it, in a temporary file that goes when this does."""

    def __init__(self, chain, main=False):
        self._template, self._main, self._file = chain.template(), main, None
        process, x = chain.process, chain.first
        self._required = requirements.requirements_of([process])
        arrays, writeable = self._arrays(True)
        # After it was pickled: a function may keep something in each call.
        self._required = requirements.with_potential(self._required, process, x)
        arrays[0] = np.frombuffer(self._required, np.uint8)
        token, spans, end = secrets.token_hex(16), [], 0
        end = len(token)
        for array, may in zip(arrays, writeable, strict=True):
            begin = -(-end // LINE) * LINE  # as the rows of a model lie in memory
            end = begin + len(array)
            spans.append((begin, end, may))
        self.parcel = Parcel(token, self._write(token, spans, arrays), spans)

    def _arrays(self, mapped):
        """Bytes of what a worker needs, of the pickle and of the buffers beside it; whether each may be written."""
        pickled, buffers = _pickled(self._template, mapped, self._main)
        raw = [self._required, pickled, *(buffer.raw() for buffer in buffers)]
        writeable = [False, False, *(not buffer.raw().readonly for buffer in buffers)]
        return [np.frombuffer(part, np.uint8) for part in raw], writeable

    def _write(self, token, spans, arrays):
        """The name of a file with the contents, which has no other name; "" if it cannot be written."""
        try:
            self._file = tempfile.TemporaryFile(prefix="pdmp")
            self._file.write(token.encode())
            for (begin, _, _), array in zip(spans, arrays, strict=True):
                self._file.seek(begin)
                self._file.write(array.data)
            self._file.flush()
        except OSError:
            self.close()
            return ""
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def whole(self):
        """A parcel with its contents, memory-mapped files included."""
        arrays, writeable = self._arrays(False)
        spans = [(0, len(array), may) for array, may in zip(arrays, writeable, strict=True)]
        return Parcel(self.parcel.token, "", spans, arrays)

    def close(self):
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


# ---------------------------------------------------------------------------------------------------------------
# In a worker


def advance_segment(parcel, packed, seconds, size):
    """Advance a chain in a worker; returns it packed, with what it has recorded, or None where contents are needed."""
    with _interruption(parcel.home) as interrupted:
        template = parcel.open()
        if template is None:
            return None
        chain = template.continued(*pickle.loads(packed))
        chain.advance(seconds, interrupted, size)
        if chain.failure is not None:
            parcel.close()
        return pickle.dumps((chain.carried(), chain.blocks, processor()), protocol=5)


_interrupted = threading.Event()


@contextlib.contextmanager
def _interruption(home):
    """An event that Ctrl-C sets where a segment runs in a main thread, of `home` or of a worker.

    A worker is sent it by the terminal, and its run stops elsewhere.
    """
    if (platform.node(), os.getpid()) == home or threading.current_thread() is not threading.main_thread():
        with deferred() as interrupted:
            yield interrupted
    else:
        _interrupted.clear()
        # Not reset: a worker that dies of it between two segments would break the pool.
        signal.signal(signal.SIGINT, lambda *_: _interrupted.set())
        yield _interrupted


@contextlib.contextmanager
def deferred():
    """An event that Ctrl-C sets in a main thread; it is raised after the context, or at once if it comes again.

    So nothing is raised within compiled code, on the way to a function that it calls, or half-way through what must be
    whole.
    """
    interrupted, before = threading.Event(), signal.getsignal(signal.SIGINT)
    # Not where it is ignored, or ends the process.
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupted
        return

    def note(*signalled):
        if interrupted.is_set():
            before(*signalled)
        interrupted.set()

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted.is_set():
        before(signal.SIGINT, None)


# ---------------------------------------------------------------------------------------------------------------
# Places


class Place:
    """Where chains run, as a context."""

    def __enter__(self):
        return self

    def watch(self):
        """Called now and then while segments are waited for."""


class Threads(Place):
    """Threads of this process: chains are advanced where they are, until the event `stop` ends segments early.

    By default there are as many threads as processors, or chains.
    """

    here, segment = True, math.inf

    def __init__(self, executor, chains, stop):
        self._own = None
        if executor is None:
            threads = min(len(chains), cpu_count())
            executor = self._own = thread_pool(threads, "pdmp")
        self._executor, self._stop = executor, stop
        self._known, self._gradient = set(), requirements.gradient_of_function(chains[0])

    def __exit__(self, *_):
        if self._own is not None:
            self._own.shutdown()

    def submit(self, chain, seconds):
        """The future of a segment; None if it has to wait, for another one to be collected."""
        # In a pool of the user's, whose threads may have been begun elsewhere: with the context of the caller as well.
        return self._executor.submit(contextvars.copy_context().run, self._advance, chain, seconds)

    def _advance(self, chain, seconds):
        if self._gradient is not None and threading.get_ident() not in self._known:
            self._known.add(threading.get_ident())
            fault = requirements.fault_of_thread(chain.process.model, *self._gradient)
            if fault is not None:
                return chain.fail(fault)
        return chain.advance(seconds, self._stop)

    def collect(self, chain, future):
        """Bring a chain to where its segment, which is done, has ended."""
        future.result()


class Workers(Place):
    """A pool of other Python processes, on this machine or on others.

    Once a worker has died, the chains go on in threads of this process, from where they are.
    """

    here = False

    def __init__(self, executor, chains, stop, segment):
        self.segment = segment
        self._executor, self._chains, self._stop, self._spare = executor, chains, stop, None
        self._contents = Contents(chains[0], imports_main(executor))
        self._whole, self._returned = None, set()  # a parcel with its contents, and the chains that need it
        self._away, self._carriers, self._at_home = set(), set(), set()  # futures
        self._other = False  # whether a worker has another processor

    def __exit__(self, *_):
        self._contents.close()
        if self._spare is not None:
            self._spare.__exit__()

    def submit(self, chain, seconds):
        """As for `Threads`."""
        if self._spare is not None:
            return self._stay(chain, seconds)
        carries, workers = chain.number in self._returned, self._workers()
        if len(self._away) >= AHEAD * workers or carries and len(self._carriers) >= workers:
            return None
        packed = pickle.dumps(chain.carried(), protocol=5)
        try:
            future = self._send(self._with_contents() if carries else self._contents.parcel, packed, seconds)
        except concurrent.futures.BrokenExecutor as error:
            self._give_up(error)
            return self._stay(chain, seconds)
        self._away.add(future)
        if carries:
            self._returned.discard(chain.number)
            self._carriers.add(future)
        return future

    def collect(self, chain, future):
        """As for `Threads`."""
        if future in self._at_home:
            self._at_home.discard(future)
            future.result()
            return
        self._away.discard(future)
        if future in self._carriers:
            self._carriers.discard(future)
            self._returned.clear()  # those that wait try without
        try:
            packed = future.result()
        except Exception as error:
            if not self._recovers(error):
                raise
            return
        if packed is None:
            self._returned.add(chain.number)
        else:
            carried, blocks, theirs = pickle.loads(packed)
            chain.take(*carried)
            chain.blocks += blocks
            if theirs != processor() and not self._other:
                self._other = True
                warn(
                    f"`executor`: a worker computes for processors {theirs[0]!r}, and this process for "
                    f"{processor()[0]!r}: averages are right, but the last bits of paths, and so "
                    "paths of one seed, may depend on which worker had which segment. For the same bits set "
                    "NUMBA_CPU_NAME and NUMBA_CPU_FEATURES alike everywhere, such as to x86-64-v3 and nothing."
                )

    def _stay(self, chain, seconds):
        future = self._spare.submit(chain, seconds)
        self._at_home.add(future)
        return future

    def _send(self, parcel, packed, seconds):
        return self._executor.submit(advance_segment, parcel, packed, seconds, SEGMENT_BYTES)

    def _with_contents(self):
        """What is sent to a worker that needs the contents."""
        if self._whole is None:
            self._whole = self._contents.whole()
        return self._whole

    def _workers(self):
        """How many workers there are."""
        return getattr(self._executor, "_max_workers", None) or getattr(self._executor, "num_workers", POOL)

    def _recovers(self, error):
        """Whether an error of a segment is that of a lost worker, and what was lost is computed again."""
        if not (isinstance(error, LOST_WORKERS) or type(error).__name__ in LOST_WORKERS_BY_NAME):
            return False
        self._give_up(error)
        return True

    def _give_up(self, error):
        if self._spare is None and not self._stop.is_set():
            warn(
                f"`executor` has lost a worker ({type(error).__name__}: {error}). Nothing is lost: the chains go "
                "on in this process."
            )
        self._spare = self._spare or Threads(None, self._chains, self._stop)


def workers_of(client, most=-1):
    """What a Dask cluster says of its workers, by their addresses; of `most` of them at most.

    An `OSError`: the connection is lost for now, and Dask tries to connect again, for 30 s by default. A
    `RuntimeError`: it has given up.
    """
    found = client.scheduler_info(n_workers=most)
    if "workers" in found:
        return found["workers"]
    if client.status in CLOSED:
        raise RuntimeError(LOST_SCHEDULER)
    raise OSError(LOST_SCHEDULER)


class Watch:
    """Says so once when a Dask cluster has had no workers for a while, and ends the waiting: it waits without a word.

    A cluster without workers is waited for until `patience` seconds from now, but for `LONGEST_ALONE` at most.
    """

    def __init__(self, client, patience=math.inf):
        self._client, self._patience = client, patience
        self._begun = self._seen = self._asked = perf_counter()
        self._said = False

    def watch(self):
        """Ask the cluster whether it has workers, if that was not done for a while; `RuntimeError` to end the wait."""
        now = perf_counter()
        if now - self._asked < ALONE_SECONDS / 5.0:  # often enough that a worker that starts again is not missed
            return
        self._asked = now
        try:
            there = workers_of(self._client, 1)
        except OSError:  # the connection is lost for now: what waits on the cluster says so itself if it stays lost
            there = True
        if there:
            self._seen = now
        elif now - self._seen >= ALONE_SECONDS:
            if now - self._begun >= self._patience or now - self._seen >= LONGEST_ALONE:
                raise RuntimeError(
                    f"`executor`: the Dask cluster has had no workers for {now - self._seen:.0f} seconds; start some, "
                    "and wait for them by client.wait_for_workers(1)"
                )
            if not self._said:
                self._said = True
                warn(
                    "`executor`: the Dask cluster has no workers. What is left waits for one; an interrupt ends the "
                    "waiting."
                )


class Cluster(Workers):
    """A Dask cluster: it runs the segments of dead workers again by itself, and spreads the contents of a parcel."""

    def __init__(self, client, chains, stop, segment):
        super().__init__(client.get_executor(pure=False), chains, stop, segment)
        self._client, self._losses = client, LOSSES * len(chains)
        self._watch = Watch(client, max(chain.budget.seconds - chain.seconds for chain in chains))

    def watch(self):
        self._watch.watch()

    def _send(self, parcel, packed, seconds):
        with silenced(UserWarning):  # of a large state, which has to travel
            return super()._send(parcel if self._whole is None else self._whole, packed, seconds)

    def _with_contents(self):
        if self._whole is None:
            self._whole = self._client.scatter(self._contents.whole(), broadcast=True, hash=False)
        return self._whole

    def _workers(self):
        return math.inf  # it keeps what waits in the scheduler, and may grow with it

    def _recovers(self, error):
        if not isinstance(error, concurrent.futures.CancelledError) and type(error).__name__ not in LOST_DATA:
            return super()._recovers(error)
        if self._client.status in CLOSED:
            raise RuntimeError(LOST_SCHEDULER) from error
        self._whole, self._losses = None, self._losses - 1  # with all workers that had it
        if self._losses < 0:
            self._give_up(error)
        return True


def place_of(executor, chains, stop):
    """The place where chains run, a context manager; `executor` as `check_executor` returned it."""
    segment = SEGMENT_SECONDS
    if isinstance(executor, Segments):
        executor, segment = executor.executor, executor.seconds
    if executor is None or isinstance(executor, concurrent.futures.ThreadPoolExecutor):
        return Threads(executor, chains, stop)
    return (Cluster if hasattr(executor, "scatter") else Workers)(executor, chains, stop, segment)
