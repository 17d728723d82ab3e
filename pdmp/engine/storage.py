"""Arrays and a JSON header in one file: ``.npz`` without pickle, replaced atomically."""

from __future__ import annotations

import contextlib
import json
import os

import numpy as np

from pdmp.data.archives import Damaged, Pickled, read_npz
from pdmp.data.memory import TooLarge

HEADER = "header"


def write(path, header, arrays):
    """Write `header` (plain values, as JSON) and `arrays` (a dict); an old file is replaced when all is written."""
    path = os.fspath(path)
    part = f"{path}.part"
    if os.path.exists(path) and not os.path.isfile(path):  # a device would be replaced by a file
        raise OSError(f"{path!r} is no file.")
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    try:
        # Never what is there already, and never through a link: a new file, with the usual mode.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        with open(part, "xb") as file:
            np.savez(file, **{HEADER: text}, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    if os.name != "posix":
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read(path, what):
    """The header and the arrays of a file that `write` wrote; `what` must be the header's entry ``"what"``."""
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a device may be read without end
        raise ValueError(f"{path!r} is no file.")
    with refusing_damage(path):
        arrays = read_npz(path)
        header = json.loads(arrays.pop(HEADER).tobytes()) if HEADER in arrays else {}
        if not isinstance(header, dict) or any(array is None for array in arrays.values()):
            raise Damaged
    if header.get("what") != what:
        raise ValueError(f"{path!r} is not a {what} of this package.")
    return header, arrays


@contextlib.contextmanager
def refusing_damage(path):
    """Whatever comes of reading a file that is not as `write` left it is one line."""
    try:
        yield
    except TooLarge:
        raise
    except (Pickled, AttributeError, LookupError, TypeError, ValueError) as error:
        name = f" ({type(error).__name__})" if not isinstance(error, (Damaged, Pickled)) else ""
        raise ValueError(f"{os.fspath(path)!r} is damaged, or not a file that this package wrote{name}.") from None


def flatten(tree, prefix):
    """The arrays in nested tuples, as a dict whose keys are ``prefix/name/...``."""
    arrays = {}
    for name, leaf in zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True):
        if isinstance(leaf, tuple):
            arrays |= flatten(leaf, f"{prefix}/{name}")
        elif isinstance(leaf, np.ndarray):
            arrays[f"{prefix}/{name}"] = leaf
    return arrays


def leaves(tree):
    """What is in nested tuples, in order: a list of arrays and numbers."""
    found = []
    for leaf in tree:
        found += leaves(leaf) if isinstance(leaf, tuple) else [leaf]
    return found


def rebuilt(tree, found):
    """Nested tuples like `tree`, of what the iterator `found` yields: the inverse of `leaves`."""
    parts = [rebuilt(leaf, found) if isinstance(leaf, tuple) else next(found) for leaf in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def copied(tree, spent=None):
    """Nested tuples with copies of their arrays; in the arrays of `spent`, an earlier copy that nobody needs, if given.

    Memory that is new to the process can take twenty times as long to write as what is copied there.
    """

    def copy(leaf, old):
        if not isinstance(leaf, np.ndarray):
            return leaf
        if getattr(old, "shape", None) != leaf.shape or old.dtype != leaf.dtype:
            return np.copy(leaf)
        np.copyto(old, leaf)
        return old

    found = leaves(tree)
    return rebuilt(tree, map(copy, found, [None] * len(found) if spent is None else leaves(spent)))
