"""Errors of numpy, scipy or Python for an argument that nobody checked, as one line that names the argument.

Most arguments are checked where they are used. What is left, such as an array for an option that is a word, or a number
whose square overflows, fails somewhere inside with another package's words. The functions that a user calls are
therefore `explained`: if such an error comes out of one, its arguments are compared with their annotations, and the
first that does not fit is named. The other error is kept as the cause. Errors that a `raise` in this package has made
pass as they are, and so does an error for which no argument is to blame, which is a bug.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
import numbers
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pdmp.native.arguments import check_flags, flags_of, refuse_unreal
from pdmp.native.representation import short

F = TypeVar("F", bound=Callable[..., Any])
#: What other packages raise for arguments that do not fit.
FOREIGN = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
LARGEST, SMALLEST = 1e75, 1e-75  #: a square of a square of a number between them is a number
MOST = 2**40  #: integers above are more than can be counted or allocated
MANY = 2**20  #: what is above may be why there is too little memory
#: Packages that create arrays whose sizes may be arguments; where other code runs out of memory no argument is named.
ALLOCATING = ("pdmp", "numpy", "scipy", "numba", "pandas", "formulae", "sklearn")
LOOKED_AT = 2**28  #: numbers of an array that are looked at, at most

_ARRAY = (list, tuple, range, np.ndarray, np.generic)
#: For each word of an annotation: what fits, and what it is called.
_FITS = {
    "None": (lambda value: value is None, "None"),
    "bool": (lambda value: isinstance(value, (bool, np.bool_)), "True or False"),
    "int": (lambda value: isinstance(value, numbers.Integral) and not isinstance(value, bool), "an integer"),
    "float": (lambda value: isinstance(value, numbers.Real) and not isinstance(value, bool), "a number"),
    "str": (lambda value: isinstance(value, str), "text"),
    "ArrayLike": (lambda value: _numbers(value) is not None, "an array of numbers"),
    "np.ndarray": (lambda value: _numbers(value) is not None, "an array of numbers"),
    "Sequence": (lambda value: hasattr(value, "__len__") and not isinstance(value, (str, bytes)), "a sequence"),
    "Iterable": (lambda value: hasattr(value, "__iter__"), "a sequence"),
    "Mapping": (lambda value: hasattr(value, "keys"), "a dict"),
    "dict": (lambda value: hasattr(value, "keys"), "a dict"),
    "Callable": (callable, "a function"),
    "os.PathLike": (lambda value: isinstance(value, (str, os.PathLike)), "a path"),
    "DTypeLike": (lambda value: _is_dtype(value), "numpy.float64 or numpy.float32"),
    "Any": (lambda value: True, ""),
    "object": (lambda value: True, ""),
}


def explained(function: F) -> F:
    """The function, whose errors about its arguments name them."""
    flags = flags_of(function)

    @functools.wraps(function)
    def call(*args, **kwargs):
        check_flags(flags, args, kwargs)
        try:
            return function(*args, **kwargs)
        except FOREIGN as error:
            found = explanation(function, args, kwargs, error)
            if found is None:
                raise
            found.explains = True
            raise found from error

    return call


def explained_functions(room: dict[str, Any]) -> None:
    """Have the functions that a package exports `explained`, here and in the modules that define them."""
    for name in room["__all__"]:
        value = room[name]
        if inspect.isfunction(value):
            room[name] = explained(value)
            setattr(sys.modules[value.__module__], name, room[name])


def explained_methods(cls: type) -> type:
    """A class whose public methods are `explained`."""
    for name, value in list(vars(cls).items()):
        public = inspect.isfunction(value) and (not name.startswith("_") or name == "__getitem__")
        if public and not hasattr(value, "__compiled__"):
            setattr(cls, name, explained(value))
    return cls


def explanation(function: Callable, args: tuple, kwargs: dict, error: BaseException) -> Exception | None:
    """An error that names an argument of ``function(*args, **kwargs)``; None if none of them is to blame."""
    if not isinstance(error, FOREIGN):
        return None
    while getattr(error, "explains", False):  # the arguments of this function are what the user knows
        error = error.__cause__
    signature = inspect.signature(function)
    try:
        given = dict(signature.bind_partial(*args, **kwargs).arguments)
    except TypeError:  # Python's own words for arguments that a function does not have are what everyone knows
        return None
    given.pop("self", None)
    options = [n for n, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD]
    given |= {name: value for option in options for name, value in given.pop(option, {}).items()}
    said = str(error.args[0]) if error.args else ""
    own = (function.__module__ or "").partition(".")[0]
    if (
        getattr(error, "of_user", False)
        or _is_of_user(error, given)
        or isinstance(error, MemoryError)
        and _package(error) not in (own, *ALLOCATING)
    ):
        return None
    ours = _raised_by(error, {"pdmp", own})
    named = set(re.findall(r"`(\w+)", said)) if ours else set()
    known = signature.parameters.keys() | given.keys()
    if isinstance(error, MemoryError) or named and not named & known:  # those of a part of this
        sizes = isinstance(error, MemoryError) or "dim" in named
        fractional = {name: value for name, value in given.items() if not isinstance(value, numbers.Integral)}
        found = _too_large(given) if sizes else _extreme(fractional, error)
        if found:
            return found
    if ours:
        one_line = _renamed(
            error, re.sub(r"\s+", " ", said), given, signature.parameters
        )  # an array that it shows may have several
        return type(error)(one_line) if one_line != said and isinstance(error, (TypeError, ValueError)) else None
    for name, value in given.items():
        try:
            refuse_unreal(name, value)
        except ValueError as found:
            return found
        wanted = _wanted(signature.parameters[name].annotation, value) if name in signature.parameters else None
        if wanted:
            return TypeError(f"`{name}` must be {wanted}, got {_text(value)}.")
        if isinstance(error, AttributeError) and value is error.obj:
            return TypeError(f"`{name}` must have {error.name!r}, got {_text(value)}.")
    return _extreme(given, error) or _of_arrays(given, signature, error)


def _renamed(error, said, given, known):
    """The text, where it names a value by what a function within calls it, with the caller's name of that value."""
    inner, trace = re.match(r"`(\w+)", said), error.__traceback__
    while inner and inner[1] not in known and inner[1] not in given and trace is not None:
        local = trace.tb_frame.f_locals
        names = [name for name, value in given.items() if inner[1] in local and value is local[inner[1]]]
        if len(names) == 1:
            return said.replace(inner[0], f"`{names[0]}", 1)
        trace = trace.tb_next
    return said


def _is_of_user(error, given):
    """Whether the error comes out of a function among the arguments."""
    codes = {getattr(value, "__code__", None) for value in given.values()} - {None}
    trace = error.__traceback__ if codes else None
    while trace is not None and trace.tb_frame.f_code not in codes:
        trace = trace.tb_next
    return trace is not None


def _innermost(error):
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _package(error):
    """Where an error comes from."""
    return _innermost(error).tb_frame.f_globals.get("__name__", "").partition(".")[0]


def _raised_by(error, packages):
    """Whether a `raise` in one of the packages made the error, and not an operation of Python or another package."""
    if _package(error) not in packages:
        return False
    trace = _innermost(error)
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


def _wanted(annotation, value):
    """What the annotation asks for, in words, if `value` is none of it; else None."""
    if annotation is inspect.Parameter.empty:
        return None
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = re.sub(r"\[[^\[\]]*(\[[^\[\]]*\][^\[\]]*)*\]", "", text)  # what the parts are made of
    words, parts = [], [part.strip() for part in text.split("|")]
    for part in parts:
        fits, word = _FITS.get(part, (_is_object, f"a {part.rpartition('.')[2]}"))
        if (_is_object if part == "Any" and len(parts) > 1 else fits)(value):
            return None
        words.append(word)
    return " or ".join(filter(None, dict.fromkeys(words)))


def _is_object(value):
    """Whether a value may be an object of some class, rather than a number, text, an array, a function, or nothing."""
    return not isinstance(value, (type(None), str, bytes, numbers.Number, dict, set, type, *_ARRAY))


def _numbers(value):
    """A value as an array of real numbers; None if it is none."""
    if getattr(value, "dtypes", None) is not None or _is_sparse(value):
        return value
    try:
        array = np.asarray(value)
        return array if array.dtype.kind in "fiub" else None
    except Exception:  # noqa: BLE001 - whatever stands behind `__array__`
        return None


def _text(value):
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    try:
        return re.sub(r"\s+", " ", short(value))
    except Exception:  # noqa: BLE001 - rows of different lengths, or whatever stands behind `__repr__`
        return f"a {type(value).__name__}"


def _extreme(given, error):
    """An error for a number that is very large or small, among arguments or in the objects that they are."""
    if isinstance(error, (AttributeError, KeyError)):
        return None
    for name, value in given.items():
        for inner, number, owner in _numbers_of(name, value):
            size = abs(float(number)) if not abs(number) >= 10**300 else math.inf
            of = f" of {owner}" if owner else ""
            if math.isnan(size):
                return ValueError(f"`{inner}`{of} must be finite, got nan.")
            if 0.0 < size < SMALLEST or size > (MOST if isinstance(number, numbers.Integral) else LARGEST):
                how = "small" if size < 1.0 else "large"
                return ValueError(f"`{inner}`{of} is too {how} to compute with, got {_text(number)}.")
    return None


def _too_large(given):
    """An error for the largest of the sizes and arrays among the arguments, if it may fill the memory; else None."""
    sizes = {}
    for name, value in given.items():
        if name == "seed":
            continue
        parts = value if isinstance(value, (list, tuple)) else [value]
        of_parts = (part.size if isinstance(part, np.ndarray) else part for part in parts)
        sizes[name] = max((int(size) for size in of_parts if isinstance(size, numbers.Integral)), default=0)
    name = max(sizes, key=sizes.get, default=None)
    if name is None or sizes[name] < MANY:
        return None
    return ValueError(f"`{name}` is too large for the memory of this machine, got {_text(given[name])}.")


def _numbers_of(name, value, owner=""):
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        yield name, value, owner
    elif isinstance(value, (list, tuple, np.ndarray)) and (array := _numbers(value)) is not None:
        if not 0 < array.size <= LOOKED_AT or not np.all(np.isfinite(array)):  # the latter is said of arrays
            return
        array = np.abs(array[array != 0].astype(float)) if np.any(array != 0) else np.zeros(1)
        yield from ((name, float(v), owner) for v in (array.max(), array.min()))
    else:
        for inner, part in getattr(value, "_given", {}).items():
            yield from _numbers_of(inner, part, type(value).__name__)


def _of_arrays(given, signature, error):
    """An error that names the arrays among the arguments, with their shapes, which do not fit."""
    arrays = {}
    for name, value in given.items():
        if _is_sparse(value):
            return TypeError(f"`{name}` must not be sparse here, got a {_text(value)}; give its toarray().")
        wanted = "ArrayLike" in str(getattr(signature.parameters.get(name), "annotation", ""))
        array = _numbers(value) if wanted or isinstance(value, (list, tuple, np.ndarray)) else None
        if isinstance(array, np.ndarray):
            if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                return ValueError(f"`{name}` must be finite; {int(np.sum(~np.isfinite(array)))} entries are not.")
            arrays[name] = array.shape
    if not arrays or isinstance(error, (AttributeError, KeyError, MemoryError)):
        return None
    shapes = ", ".join(f"`{name}` of shape {shape}" for name, shape in arrays.items())
    if isinstance(error, np.linalg.LinAlgError):
        return ValueError(f"a matrix among {shapes} is singular, or not positive definite.")
    return ValueError(f"{shapes} {'do' if len(arrays) > 1 else 'does'} not fit the other arguments, or not the model.")


def _is_dtype(value):
    try:
        return np.dtype(value).kind in "fiub"
    except Exception:  # noqa: BLE001 - it is none
        return False


def _is_sparse(value):
    return type(value).__module__.startswith("scipy.sparse")
