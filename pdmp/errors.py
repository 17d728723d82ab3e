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
    heard = _heard.get()
    if issubclass(category, _silenced.get()):
        return
    if heard is not None:
        heard.append(text)
        return
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


_silenced: contextvars.ContextVar[tuple[type[Warning], ...]] = contextvars.ContextVar("_silenced", default=())
_heard: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("_heard", default=None)


class _OfContext(type):
    """Of a category to which those belong that are silenced where a warning is given."""

    def __subclasscheck__(cls, category: type) -> bool:
        return issubclass(category, _silenced.get())


class _Silenced(Warning, metaclass=_OfContext):
    pass


@contextlib.contextmanager
def silenced(*categories: type[Warning]) -> Iterator[None]:
    """A context in which no warning of the categories is given, or none at all, in this thread.

    `warnings.catch_warnings` replaces the filters of all threads and puts back what it found: where two threads
    overlap, those of one stay for good. Here one filter stays, and says nothing elsewhere.
    """
    token = _silenced.set((*_silenced.get(), *(categories or (Warning,))))
    warnings.simplefilter("ignore", _Silenced)  # before all others, also of a test's
    try:
        yield
    finally:
        _silenced.reset(token)


@contextlib.contextmanager
def filters_kept() -> Iterator[None]:
    """A context in which threads call a user's function, after which the filters of warnings are what they were.

    Where calls of a function overlap that silences its own warnings, by `warnings.catch_warnings`, its filters stay.
    """
    with warnings.catch_warnings():
        yield


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """A context in which the project's own warnings are put into a list, and not given."""
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


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
