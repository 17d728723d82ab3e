"""Checks of arguments: each returns the value as Python's or numpy's own type, or raises one line that names it."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.data.formats import row_labels as row_labels
from pdmp.data.formats import same_rows as same_rows

MOST = 2**62  #: of a whole number: an int64, and some such numbers added up
DEEPEST = 64  #: lists within lists, as for NumPy
#: Kinds of arrays that a conversion to floats makes other numbers of: what they must be, and what they hold.
UNREAL = {"c": ("real", "complex numbers"), "M": ("numbers", "dates"), "m": ("numbers", "lengths of time")}
LETTERS = 200  #: of a value, in a message


def told(value: object) -> str:
    """A value as one line of at most `LETTERS` letters, for a message; of what cannot be printed the class."""
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except Exception:  # noqa: BLE001 - a list 3,000 deep, an integer of 5,000 digits, or what a class raises
        return f"an object of the class {type(value).__name__}"
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def one_of(name: str, value: object, allowed: Iterable) -> None:
    """Raise a `ValueError` that lists the choices unless `value` is one of `allowed`."""
    if not any(isinstance(value, type(choice)) and value == choice for choice in allowed):
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {told(value)}.")


def flag(name: str, value: object) -> bool:
    """True or False, or a `TypeError`."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False, got {told(value)}.")
    return bool(value)


def flags_of(function: Callable) -> dict[str, int]:
    """The places of the arguments that are annotated as True or False; of one without a place, beyond all."""
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name: sys.maxsize if p.kind is p.KEYWORD_ONLY else place
        for place, p in enumerate(parameters)
        if p.annotation in ("bool", bool)
    }


def check_flags(places: Mapping[str, int], args: tuple, kwargs: Mapping[str, object]) -> None:
    """Raise a `TypeError` for the first argument at one of these places that is no truth value: text is always true."""
    for name, place in places.items():
        if name in kwargs or place < len(args):
            flag(name, kwargs[name] if name in kwargs else args[place])


def _is_number(value):
    """Whether a value is a real number, and no whole one beyond all floats."""
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return False
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, complex, np.complexfloating))


def _is_choice(value, choices):
    return isinstance(value, str) and value in choices


def _or(choices):
    return "".join(f" or {choice!r}" for choice in choices)


def number(name: str, value: object, least: float = -math.inf, also: Iterable[str] = ()) -> float | str:
    """A finite number, at least `least`, or one of the words in `also`; else a `ValueError`."""
    if _is_choice(value, also):
        return value
    if not _is_number(value) or not math.isfinite(value) or value < least:
        allowed = "a finite number" if least == -math.inf else f"a finite number, at least {least:g},"
        raise ValueError(f"`{name}` must be {allowed}{_or(also)}".rstrip(",") + f", got {told(value)}.")
    return float(value)


def positive(name: str, value: object, also: Iterable[str] = ()) -> float | str:
    """A finite number above 0, or one of the words in `also`; else a `ValueError`."""
    if _is_choice(value, also):
        return value
    if not _is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be a positive number{_or(also)}, got {told(value)}.")
    return float(value)


def fraction(name: str, value: object, one: bool = False) -> float:
    """A number in [0, 1), or in [0, 1] if `one` is allowed, or a `ValueError`."""
    if not _is_number(value) or not (0.0 <= value < 1.0 or (one and value == 1.0)):
        raise ValueError(f"`{name}` must be a number in [0, 1{']' if one else ')'}, got {told(value)}.")
    return float(value)


def count(name: str, value: object, least: int = 1, most: int = MOST) -> int:
    """A whole number, at least `least` and at most `most`, or a `ValueError`; a float such as 1e6 is one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"`{name}` must be a whole number, at least {least}, got {told(value)}.")
    if value > most:
        raise ValueError(f"`{name}` must be at most {most:,}, got {told(value) if value < 10**30 else 'more'}.")
    return int(value)


def seed_number(name: str, value: object) -> int:
    """The integer that a seed stands for: an integer itself, a `SeedSequence`, or a `Generator`, which moves on.

    A sequence of one integer that has no parent and no children stands for that integer; any other, for one that is
    made of what it is, and always the same. Anything else is a `TypeError`, a negative number a `ValueError`.
    """
    if isinstance(value, np.random.SeedSequence):
        entropy, fresh = value.entropy, value.n_children_spawned == 0 and value.pool_size == 4
        if isinstance(entropy, (int, np.integer)) and not value.spawn_key and fresh:
            return int(entropy)
        return int.from_bytes(value.generate_state(4, np.uint32).tobytes(), "little")
    if isinstance(value, np.random.Generator):
        return int.from_bytes(value.bytes(16), "little")
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be an integer, a SeedSequence, a Generator or None, got {told(value)}.")
    if value < 0:
        raise ValueError(f"`{name}` must not be negative, got {value}.")
    return int(value)


def refuse_unreal(name: str, value: object, within: tuple[int, ...] = ()) -> None:
    """Raise a `ValueError` for masked entries, complex numbers and dates, of which a conversion makes other numbers.

    And for lists that contain themselves, or are nested more deeply than any array; `within`: which ones this is in.
    """
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise ValueError(
                f"`{name}` has {np.ma.count_masked(value)} masked entries; leave out their rows, or fill them in."
            )
    elif isinstance(value, (list, tuple)) or isinstance(value, np.ndarray) and value.dtype.kind == "O":
        if id(value) in within:
            raise ValueError(f"`{name}` must not contain itself, got a {type(value).__name__} that does.")
        if len(within) == DEEPEST:
            raise ValueError(f"`{name}` must be at most {DEEPEST} lists deep, got more.")
        for item in (value.ravel() if isinstance(value, np.ndarray) else value)[:1_000]:
            refuse_unreal(name, item, (*within, id(value)))
    kind = "c" if type(value) is complex else getattr(getattr(value, "dtype", None), "kind", "")
    if kind in UNREAL:
        must, held = UNREAL[kind]
        raise ValueError(f"`{name}` must be {must}, got {held}.")
    for column, dtype in getattr(getattr(value, "dtypes", None), "items", dict().items)():
        if getattr(dtype, "kind", "") in UNREAL:
            must, held = UNREAL[dtype.kind]
            raise ValueError(f"`{name}` must be {must}, its column {column!r} holds {held}.")


def real(name: str, value: ArrayLike, dim: int | None = None) -> np.ndarray:
    """A value as an array of floats, of shape (..., dim) if that is given.

    A `ValueError` says what has another shape, or is what a conversion makes other numbers of.
    """
    refuse_unreal(name, value)
    array = np.asarray(value, dtype=float)
    if dim is not None and array.shape[-1:] != (dim,):
        raise ValueError(f"`{name}` must have shape (..., {dim}), got {array.shape}.")
    return array


def per_coordinate(
    name: str, value: ArrayLike | str, dim: int, zero: bool = False, also: Iterable[str] = ()
) -> np.ndarray | str:
    """A copy of shape (dim,) of positive numbers, one for all or one for each; with `zero`, 0 is allowed too.

    A word in `also` is returned as it is; anything else is a `ValueError`.
    """
    if _is_choice(value, also):
        return value
    refuse_unreal(name, value)
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.shape not in ((), (dim,)) or not np.all(np.isfinite(array) & ((array >= 0.0) if zero else (array > 0.0))):
        allowed = "at least 0" if zero else "positive"
        shapes = f"a number or of shape ({dim},){_or(also)}"
        raise ValueError(f"`{name}` must be finite and {allowed}, {shapes}, got {told(value)}.")
    return np.broadcast_to(array, (dim,)).copy()


def matrix(name: str, value: ArrayLike, dtype: DTypeLike = float, columns: str = "d", copy: bool = True) -> np.ndarray:
    """A finite matrix (N, `columns`) in C order, N and `columns` at least 1, or a `ValueError`."""
    refuse_unreal(name, value)
    try:
        array = np.array(value, dtype, order="C") if copy else np.ascontiguousarray(value, dtype)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must be a matrix of numbers, got {type(value).__name__}.") from None
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"`{name}` must have shape (N, {columns}), N and {columns} at least 1; got {array.shape}.")
    wrong = np.sum(~np.isfinite(array))
    if wrong:
        raise ValueError(f"`{name}` must be finite in {array.dtype}, and has {wrong} values that are not.")
    return array


def coordinates(name: str, value: ArrayLike, d: int) -> np.ndarray:
    """Numbers of coordinates, from a sequence of them or a mask, or a `ValueError`."""
    array = np.atleast_1d(np.asarray(value))
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype == bool and array.shape == (d,):
        return np.flatnonzero(array)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer) or array.min() < 0 or array.max() >= d:
        raise ValueError(f"`{name}` must name coordinates 0 … {d - 1}, or be a mask of shape ({d},); got {value!r}.")
    return array
