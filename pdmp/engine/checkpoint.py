"""A file from which an interrupted run is resumed, with bitwise the result of an uninterrupted one."""

from __future__ import annotations

import hashlib
import os
from time import perf_counter

import numpy as np

from pdmp.engine import storage
from pdmp.engine.chain import Chain
from pdmp.native.classes import Compiled, fingerprint

CHECKPOINT_SECONDS = 30.0  #: between two checkpoints


def digest(value):
    """Hash of everything that determines what `value` computes: classes, methods, arrays, numbers; hexadecimal."""
    total = hashlib.sha256()

    def add(value):
        if isinstance(value, Compiled):
            cls = type(value)
            total.update(f"{cls.__module__}.{cls.__qualname__}".encode())
            total.update(fingerprint(cls._methods.values(), named_only=("pdmp",)).encode())
            add(value.identity())
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
        else:
            total.update(repr(value).encode())

    add(value)
    return total.hexdigest()


def read_checkpoint(path):
    """Header and arrays of the checkpoint at `path`; None without a path, or where there is no file yet."""
    if path is None:
        return None
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if not os.path.isdir(folder):
        raise ValueError(f"`checkpoint` names a file in {folder!r}, which is not a directory.")
    return storage.read(path, "checkpoint") if os.path.exists(path) else None


class Checkpoint:
    """A file with the last known state of every chain of one call of `sample`."""

    def __init__(self, path, call, seed):
        self.path, self.call, self.seed = path, call, seed
        self._snapshots, self._packed = {}, {}
        self._written = perf_counter()
        self._chains = None

    def resume(self, chains, header, arrays):
        """Set new chains to their states in the file."""
        saved = header["call"]
        different = [k for k in self.call if self.call[k] != saved.get(k)]
        if different:
            names = ", ".join(f"`{k}`" for k in different)
            raise ValueError(
                f"`checkpoint` {os.fspath(self.path)!r} is of another call: {names} "
                f"{'differs' if len(different) == 1 else 'differ'}; name another file or remove it."
            )
        for key, chain in header["chains"].items():
            prefix = f"chain/{key}"
            chains[int(key)].restore(chain, arrays, prefix)
            self.keep(int(key), chains[int(key)])

    def keep(self, i, chain):
        """Keep a snapshot of chain i for the next `write`; the chain must not be running."""
        self._snapshots[i] = chain.snapshot()

    def write_if_due(self):
        if perf_counter() - self._written >= CHECKPOINT_SECONDS:
            self.write()

    def write(self):
        """Write the snapshots."""
        if not self._snapshots:
            return
        headers, arrays = {}, {}
        for i, snapshot in self._snapshots.items():
            headers[str(i)], packed = Chain.pack(snapshot, f"chain/{i}")
            arrays |= packed
        storage.write(
            self.path, {"what": "checkpoint", "call": self.call, "seed": self.seed, "chains": headers}, arrays
        )
        self._written = perf_counter()
