"""How much memory there is, and an error of one line for what would not fit, before it is allocated."""

from __future__ import annotations

import functools
import os

UNKNOWN = 2**34  #: bytes, where the system does not say


class TooLarge(ValueError):
    """What would be allocated is more than the machine has."""


@functools.cache
def machine_memory() -> int:
    """Bytes of memory that this process may use: that of the machine, or of its container if that is less."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        size = UNKNOWN
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            size = min(size, int(file.read()))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return size if size > 0 else UNKNOWN


def check_size(what: str, size: float, advice: str = "") -> None:
    """Raise a `ValueError` if `size` bytes, which `what` would take, are more than there are; `advice`: what to do."""
    limit = machine_memory()
    if size > limit:
        advice = f"; {advice}" if advice else ""
        raise TooLarge(f"{what} would take {in_words(size)}, above the {in_words(limit)} of this machine{advice}.")


def in_words(size: float) -> str:
    """A number of bytes, such as "3.2 GB"."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.3g} {unit}" if size < 1e15 else f"{size / scale:.3g} {unit}"
    return f"{size:,.0f} bytes"
