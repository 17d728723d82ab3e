"""What this package says when something does not compile, or cannot be kept."""

from __future__ import annotations

import contextlib
import re
import warnings

import numba.core.errors

_warned = set()


def warn_not_kept():
    """Warn, once in a process, that machine code is not kept on disk."""
    if not _warned:
        _warned.add(True)
        warnings.warn(
            "machine code is not kept: no folder for it can be written, so each process compiles anew. Set the "
            "environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
            stacklevel=2,
        )


@contextlib.contextmanager
def readable(what):
    """Turn what numba says of a method that does not compile into one line; `what` names the classes."""
    try:
        yield
    except numba.core.errors.NumbaError as error:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        lines = [line.strip() for line in text.splitlines()]
        places = [line for line in lines if line.startswith(("File ", "def ", "<source elided>"))]
        where = next((line.split('"')[1:] for line in reversed(places) if line.startswith("File ")), None)
        where = f" at {where[0]}{where[1].rstrip(':')}" if where else ""
        if "NRT required" in text:
            why = "it creates an array: write into what it is given, or mark it @compiled(allocates=True)"
        else:
            wanted = (
                "Unknown attribute",
                "cannot ",
                "Cannot ",
                "No implementation",
                "NameError",
                "Invalid use",
                "must ",
            )
            why = next((line for line in lines if any(w in line for w in wanted)), lines[0] if lines else "")
        raise TypeError(f"a compiled method of {what} does not compile{where}: {why}") from error
