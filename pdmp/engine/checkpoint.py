"""A file from which an interrupted run is resumed, with bitwise the result of an uninterrupted one."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import signal
import threading
from dataclasses import replace
from time import perf_counter

import numpy as np

from pdmp.data.formats import listed
from pdmp.engine import storage
from pdmp.engine.chain import NEVER, Budgets, Chain
from pdmp.errors import OURS, warn
from pdmp.native.classes import Compiled, fingerprint
from pdmp.native.fingerprints import UNIQUE, kept
from pdmp.native.threads import processor

try:
    import fcntl
except ImportError:  # not a POSIX system: checkpoints are not locked
    fcntl = None

CHECKPOINT_SECONDS = 30.0  #: between two checkpoints
#: Relative difference of values of a potential, and of its gradients, up to which they are of the same model: computed
#: on another machine they may differ by rounding.
SAME_VALUES = 1e-9
#: Attributes of a user's object that are hashed although they are no fields, and methods by which a chain begins.
PLAIN, BEGIN = (
    (bool, int, float, complex, str, tuple, np.ndarray, np.generic),
    ("velocity", "memory", "prepare", "embed"),
)
#: Entries of a call that may change: a run that has not spent its new budget goes on.
BUDGETS = tuple(Budgets.__annotations__)

_held, _guard = set(), threading.Lock()  # the checkpoints that this Python process writes


def digest(value):
    """Hash of everything that determines what `value` computes: classes, methods, arrays, numbers; hexadecimal.

    If something cannot be hashed it begins with `UNIQUE` and ends with the class of that.
    """
    total, unique = hashlib.sha256(), []

    def add_text(text):
        if text.startswith(UNIQUE):
            unique.append(text)
        total.update(text.encode())

    def add(value):
        if isinstance(value, Compiled):
            cls = type(value)
            total.update(f"{cls.__module__}.{cls.__qualname__}".encode())
            add_text(fingerprint(cls._methods.values(), named_only=("pdmp",)))
            add(cls.identity(value) if hasattr(cls, "identity") else ())
            for found in _beside(value):
                total.update(found.encode())
            for name in cls._annotations:
                if name not in getattr(cls, "volatile", ("address",)):  # volatile fields: addresses in memory
                    total.update(name.encode())
                    add(getattr(value, name))
        elif isinstance(value, np.ndarray):
            total.update(f"{value.dtype.str}{value.shape}".encode())
            total.update(np.ascontiguousarray(value).data if value.size else b"")
        elif isinstance(value, (tuple, list)):
            for item in value:
                add(item)
        elif isinstance(value, str):
            add_text(value)
        else:
            add_text(fingerprint([value], named_only=("pdmp",)))

    add(value)
    return f"{UNIQUE}{total.hexdigest()}-{unique[0].rpartition('-')[2]}" if unique else total.hexdigest()


def _beside(value):
    """Hashes of what a user's object has beside fields and compiled methods: by it a chain may begin, or its memory."""
    cls, found = type(value), []
    if cls.__module__.partition(".")[0] in OURS:
        return found
    for name, item in sorted(vars(value).items()):
        if not name.startswith("_") and name not in cls._annotations and isinstance(item, PLAIN):
            found.append(f"{name} {fingerprint([item])}")
    for name in BEGIN:
        method = getattr(cls, name, None)
        if getattr(method, "__module__", "").partition(".")[0] not in OURS:
            found.append(f"{name} {fingerprint([method], named_only=('pdmp',))}")
    return [text for text in found if UNIQUE not in text]  # what cannot be told from another one is left out


def check_resumable(value):
    """The digest of what a checkpoint is of, or a `ValueError` if no later call could be known to be the same."""
    found = digest(value)
    if found.startswith(UNIQUE):
        kind = found.rpartition("-")[2].removeprefix("builtins.")
        raise ValueError(
            f"`checkpoint`: the run could never be resumed, as {type(getattr(value, 'model', None) or value).__name__} "
            f"computes with an object of the class {kind}, which cannot be told from another one; keep it in an object "
            "whose `__getstate__` leaves it out, or give no `checkpoint`."
        )
    return found


def model_values(model, x, distances=(0.0, 0.1, -0.3, 3.0)):
    """Numbers by which a model is known beside what can be hashed: U and ∇U at `x` and at points around it.

    The points have these distances, relative to `x` where it is large, and depend on its dimension. Of a gradient its
    length, and its direction along two fixed vectors.
    """
    if not (hasattr(model, "potential") and hasattr(model, "gradient")):
        return []
    rng, found = np.random.default_rng(model.dim), []
    for distance in distances:
        point = x + distance * np.maximum(1.0, np.abs(x)) * rng.standard_normal(model.dim) / np.sqrt(model.dim)
        try:
            with np.errstate(all="ignore"):
                potential, gradient = float(model.potential(point)), np.asarray(model.gradient(point), dtype=float)
                length = float(np.linalg.norm(gradient))
                along = (rng.standard_normal((2, model.dim)) @ gradient / (length or 1.0)).tolist()
        except Exception:  # noqa: BLE001 - outside its support a function may raise anything
            potential, length, along = np.nan, np.nan, [np.nan, np.nan]
        found += [potential, length, *along]
    return found


def named(model):
    """Hashes of what the function of a model names, by name; of another model none."""
    found = {}
    for place, notes in kept(model.callback).items() if hasattr(model, "callback") else ():
        name = ".".join(part for part in place if isinstance(part, str))
        found[name] = hashlib.sha256(f"{found.get(name)}{notes}".encode()).hexdigest()[:16]
    return found


def same_values(model, found, saved):
    """Whether two lists of `model_values` differ by rounding at most."""
    tolerance = max(SAME_VALUES, 1e4 * getattr(model, "resolution", 0.0))
    return len(found) == len(saved) and np.allclose(found, saved, rtol=tolerance, atol=tolerance, equal_nan=True)


def absolute(path):
    """A path as it is now: a function of the user's may change the working directory. What is no path stays."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else b""
    return os.path.abspath(path) if isinstance(text, str) and text and "\0" not in text else path


def machine():
    """On what the last bits of a call depend beside its arguments: threads of BLAS, and the processor."""
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {"threads of BLAS": max(blas, default=1), "the processor": " ".join(processor())}


def read_checkpoint(path):
    """Header and arrays of the checkpoint at `path`; None without a path, or where there is no file yet."""
    if path is None:
        return None
    try:
        text = os.fspath(path)
    except TypeError:
        raise TypeError(f"`checkpoint` must be a path, got {path!r}.") from None
    try:
        possible = text and b"\0" not in os.fsencode(text)
    except UnicodeError:
        possible = False
    if not possible or os.path.exists(path) and not os.path.isfile(path):  # a device may be read without end
        raise ValueError(f"`checkpoint` must be the name of a file, got {text!r}.")
    folder = os.path.dirname(os.path.abspath(text))
    if not os.path.isdir(folder):
        raise ValueError(f"`checkpoint` names a file in {folder!r}, which is not a directory.")
    if not os.path.exists(path):
        return None
    try:
        header, arrays = storage.read(path, "checkpoint")
    except OSError as error:
        raise ValueError(f"`checkpoint` {text!r} cannot be read: {error.strerror or error}.") from None
    kinds = {"call": dict, "seed": int, "chains": dict}
    with storage.refusing_damage(path):
        if not all(isinstance(header[name], kind) for name, kind in kinds.items()):
            raise TypeError
        if not all(isinstance(header.get(name, {}), dict) for name in ("machine", "named")):  # which earlier ones lack
            raise TypeError
    return header, arrays


class Checkpoint:
    """A file with the last known state of every chain of one call of `sample`; no other run may write it meanwhile."""

    def __init__(self, path, call, seed, process, x):
        self.path, self.call, self.seed, self.process = path, call, seed, process
        self.call["process"], self.call["values"] = check_resumable(process), model_values(process.model, x)
        if not same_values(process.model, self.call["values"], model_values(process.model, x)):
            raise ValueError(
                f"`checkpoint`: the run could never be resumed, as {type(process.model).__name__} does not compute the "
                "same potential and gradient again at the same point; give no `checkpoint`."
            )
        if hasattr(process.model, "callback") and digest(process) != self.call["process"]:
            raise ValueError(
                "`checkpoint`: the run could never be resumed, as what the model's function names changes when it is "
                "called, and did not when the model was made; keep it in an object whose `__getstate__` leaves it "
                "out, or give no `checkpoint`."
            )
        self.named, self._snapshots = named(process.model), {}
        self._written = perf_counter()
        self._warned = False
        self._lock = self._acquire()

    def _acquire(self):
        """Lock the file, by one beside it: a lock of this process that ends with it and that no child inherits."""
        path, name = os.path.realpath(self.path), os.fspath(self.path)
        refused = ValueError(f"`checkpoint` {name!r} is being written by another run; name another file.")
        with _guard:
            if path in _held:
                raise refused
            while True:
                try:
                    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
                except OSError as error:
                    raise ValueError(f"`checkpoint` {name!r} cannot be written: {error.strerror}.") from None
                try:
                    if fcntl is not None:
                        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    os.close(lock)
                    raise refused from None
                except OSError:
                    pass  # a file system without locks
                if os.fstat(lock).st_nlink > 0:  # else the run that had it removed it before it was locked here
                    break
                os.close(lock)
            _held.add(path)
            return lock

    def release(self):
        """Let other runs have the file."""
        if self._lock is not None:
            path = os.path.realpath(self.path)
            with _guard:
                with contextlib.suppress(OSError):
                    os.unlink(f"{path}.lock")
                os.close(self._lock)
                _held.discard(path)
            self._lock = None

    @contextlib.contextmanager
    def signals(self, stop):
        """While this lasts, SIGTERM and SIGHUP stop the run as Ctrl-C does, unless the program handles them itself."""
        names = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        mine = []
        if threading.current_thread() is threading.main_thread():
            mine = [s for s in names if s is not None and signal.getsignal(s) is signal.SIG_DFL]
        for number in mine:
            signal.signal(number, lambda *_: stop.set())
        try:
            yield
        finally:
            for number in mine:
                signal.signal(number, signal.SIG_DFL)

    def resume(self, chains, header, arrays):
        """Set new chains to their states in the file."""
        saved = header["call"]
        different = [k for k in self.call if k not in (*BUDGETS, "values") and self.call[k] != saved.get(k)]
        if not different and not same_values(self.process.model, self.call["values"], saved.get("values", [])):
            different = ["process"]
        if different:
            names = ", ".join(f"`{k}`" for k in different)
            here, there = machine(), header.get("machine", {})
            other = [
                f"{name} {there[name]}, not {here[name]}" for name in here if there.get(name) not in (None, here[name])
            ]
            cure = "name another file or remove it."
            if other and {*different} <= {"initial", "process"}:
                cure = (
                    f"it was begun with {' and '.join(other)}, with which starts and metrics that are computed may "
                    "have other last bits. If the call is the same, repeat it as it was begun: OPENBLAS_NUM_THREADS, "
                    "MKL_NUM_THREADS, NUMBA_CPU_NAME; else name another file."
                )
            before = header.get("named", {})
            others = sorted(k for k in before | self.named if k and before.get(k) != self.named.get(k))
            said = f" (of what the model's function names, {listed(others, 5)} changed)" if before and others else ""
            raise ValueError(
                f"`checkpoint` {os.fspath(self.path)!r} is of another call: {names} "
                f"{'differs' if len(different) == 1 else 'differ'}{said * ('process' in different)}; {cure}"
            )
        for key, chain in header["chains"].items():
            prefix = f"chain/{key}"
            with storage.refusing_damage(self.path):
                chains[int(key)].restore(chain, arrays, prefix)
            if any(self.call.get(name) != saved.get(name) for name in BUDGETS):
                self._go_on(chains[int(key)])
            self.keep(int(key), chains[int(key)])

    def _go_on(self, chain):
        """Let a chain of a call with another budget continue to that of this one."""
        if replace(chain.budget, data=NEVER, seconds=math.inf).spent(chain) > 1.0:
            raise ValueError(
                f"`checkpoint` {os.fspath(self.path)!r} has already spent more than the budget: budgets count in total."
            )
        chain.extend(chain.budget, chain.look)

    def keep(self, i, chain):
        """Keep a snapshot of chain i for the next `write`; the chain must not be running."""
        self._snapshots[i] = chain.snapshot()

    def write_if_due(self):
        if perf_counter() - self._written >= CHECKPOINT_SECONDS:
            self.write()

    def write(self, last=False):
        """Write the snapshots. If that fails, sampling goes on, and it is tried again when due; not after a run."""
        try:
            self._write()
        except (OSError, MemoryError) as error:
            if last or not self._warned:
                then = "Sampling goes on, and it is tried again."
                if last:
                    then = "What the file holds is older than this run, or nothing: keep it by run.save(path)."
                text = f"`checkpoint` {os.fspath(self.path)!r} could not be written: {error or type(error).__name__}."
                warn(f"{text} {then}")
            self._warned = True
        self._written = perf_counter()

    def _write(self):
        if not self._snapshots:
            return
        headers, arrays = {}, {}
        for i, snapshot in self._snapshots.items():
            headers[str(i)], packed = Chain.pack(snapshot, f"chain/{i}")
            arrays |= packed
        header = {"what": "checkpoint", "call": self.call, "seed": self.seed, "machine": machine(), "chains": headers}
        header["named"] = self.named
        storage.write(self.path, header, arrays)
