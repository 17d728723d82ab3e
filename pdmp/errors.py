"""The error of a run that fails, and warnings that point at the line of the caller."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np


class SamplingError(RuntimeError):
    """A failed run; everything sampled so far is kept.

    Parameters
    ----------
    message : str
        What went wrong, and what to do.

    Attributes
    ----------
    run : pdmp.Run or None
        The run up to the failure.
    chain, event, time, position : int, int, float, ndarray of shape (d,); each may be None
        Where it failed: number of the chain, events so far, process time, and the position x there.

    Examples
    --------
    >>> import pdmp
    >>> issubclass(pdmp.SamplingError, RuntimeError)
    True
    """

    def __init__(
        self,
        message: str,
        *,
        run: Any | None = None,
        chain: int | None = None,
        event: int | None = None,
        time: float | None = None,
        position: np.ndarray | None = None,
    ) -> None:
        super().__init__(message)
        self.run, self.chain, self.event, self.time, self.position = run, chain, event, time, position


#: Packages whose lines are not the caller's; one that builds on this adds its name.
OURS = {"pdmp"}


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the line outside of this project that led here, however deep it is called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


#: Whether runs are meant to be short.
are_short: contextvars.ContextVar[bool] = contextvars.ContextVar("are_short", default=False)


@contextlib.contextmanager
def short_runs() -> Iterator[None]:
    """Within it no run looks whether it is short: of runs that are meant to be, and are not the user's."""
    token = are_short.set(True)
    try:
        yield
    finally:
        are_short.reset(token)
