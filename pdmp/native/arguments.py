"""Checks of arguments: each returns the value as Python's or numpy's own type, or raises one line that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def one_of(name: str, value: object, allowed: Iterable) -> None:
    """Raise a `ValueError` that lists the choices unless `value` is one of `allowed`."""
    if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def flag(name: str, value: object) -> bool:
    """True or False, or a `TypeError`."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)


def _is_number(value):
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, complex, np.complexfloating))


def number(name: str, value: object, least: float = -math.inf) -> float:
    """A finite number, at least `least`, or a `ValueError`."""
    if not _is_number(value) or not math.isfinite(value) or value < least:
        allowed = "a finite number" if least == -math.inf else f"a finite number, at least {least:g}"
        raise ValueError(f"`{name}` must be {allowed}, got {value!r}.")
    return float(value)


def positive(name: str, value: object) -> float:
    """A finite number above 0, or a `ValueError`."""
    if not _is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number, got {value!r}.")
    return float(value)


def fraction(name: str, value: object, one: bool = False) -> float:
    """A number in [0, 1), or in [0, 1] if `one` is allowed, or a `ValueError`."""
    if not _is_number(value) or not (0.0 <= value < 1.0 or (one and value == 1.0)):
        raise ValueError(f"`{name}` must be a number in [0, 1{']' if one else ')'}, got {value!r}.")
    return float(value)


def count(name: str, value: object, least: int = 1) -> int:
    """A whole number, at least `least`, or a `ValueError`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{name}` must be a whole number, at least {least}, got {value!r}.")
    return int(value)


def per_coordinate(name: str, value: ArrayLike, dim: int, zero: bool = False) -> np.ndarray:
    """A copy of shape (dim,) of positive numbers, one for all or one for each; with `zero`, 0 is allowed too."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape not in ((), (dim,)) or not np.all(np.isfinite(array) & ((array >= 0.0) if zero else (array > 0.0))):
        allowed = "at least 0" if zero else "positive"
        raise ValueError(f"`{name}` must be finite and {allowed}, a number or of shape ({dim},), got {value!r}.")
    return np.broadcast_to(array, (dim,)).copy()
