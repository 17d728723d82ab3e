"""How objects are printed: the name of the class, and the arguments that differ from their defaults."""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Container, Sequence

import numpy as np

from pdmp.native.arguments import check_flags, flags_of, refuse_unreal

signature_of = functools.cache(inspect.signature)

SHORT_ARRAY, SHORT_TEXT = 6, 60  #: numbers of an array, and letters of anything else, that are printed


def remembers_call(init, explain, check):
    """The constructor `init`, which also keeps the call as text in the attribute `_text` of the object.

    Its numbers, and the objects that keep theirs, are in `_given`, for messages. An error of another package that comes
    out of it is replaced by what `explain` makes of it, if that is not None; `check` is given the object that was made.
    """
    flags = flags_of(init)

    @functools.wraps(init)
    def constructor(self, *args, **kwargs):
        if "_text" not in self.__dict__:  # else a base's constructor, called by this one
            names = [*signature_of(init).parameters][1:] or [""]
            for place, value in enumerate(args):
                refuse_unreal(names[min(place, len(names) - 1)], value)
            for name, value in kwargs.items():
                refuse_unreal(name, value)
        check_flags(flags, (self, *args), kwargs)
        for name in kwargs.keys() & self._renamed.keys():
            known = signature_of(init).parameters
            if name not in known and "metric" in known:
                raise TypeError(f"`{name}=` of {type(self).__name__} {self._renamed[name]}")
        if "_text" in self.__dict__:
            init(self, *args, **kwargs)
            return
        signature = signature_of(init)
        try:
            self._text = call_text(type(self).__name__, signature, args, kwargs)
            self._given = _kept(signature.bind(self, *args, **kwargs).arguments)
        except Exception:  # noqa: BLE001 - an argument that cannot be printed is refused by `init`, or is not
            self._text, self._given = None, {}
        try:
            init(self, *args, **kwargs)
            check(self)
        except Exception as error:
            if isinstance(error, AttributeError) and error.obj is self and error.name in self._annotations:
                check(self)
            found = explain(init, (self, *args), kwargs, error)
            if found is None:
                raise
            found.explains = True
            raise found from error

    return constructor


def _kept(given):
    """The numbers among the arguments of a call, and the objects that keep theirs."""
    given |= given.pop("options", {}) if isinstance(given.get("options"), dict) else {}
    kept = {n: v for n, v in given.items() if isinstance(v, numbers.Real) or hasattr(v, "_given")}
    return {name: value for name, value in kept.items() if name != "self" and not isinstance(value, bool)}


def call_text(name: str, signature: inspect.Signature, args: tuple, kwargs: dict) -> str | None:
    """The call ``name(*args, **kwargs)`` as text, without what equals its default; None if it is not a valid call."""
    try:
        given = signature.bind(None, *args, **kwargs).arguments
    except TypeError:
        return None
    parts = []
    for argument, value in list(given.items())[1:]:
        parameter = signature.parameters[argument]
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts += [short(v) for v in value]
        elif parameter.kind is parameter.VAR_KEYWORD:
            parts += [f"{n}={short(v)}" for n, v in value.items()]
        elif parameter.default is parameter.empty or not _equal(value, parameter.default):
            named = parameter.kind is not parameter.POSITIONAL_ONLY and not hasattr(type(value), "native")
            named = named or parameter.kind is parameter.KEYWORD_ONLY
            parts.append(f"{argument}={short(value)}" if named else short(value))
    return f"{name}({', '.join(parts)})"


def short(value) -> str:
    """A value as text: short arrays with their numbers, longer ones by their shape."""
    if isinstance(value, (np.ndarray, np.generic, list, tuple)) or hasattr(value, "__array__"):
        shape = np.shape(value)
        if np.prod(shape) > SHORT_ARRAY or len(shape) > 2:
            return f"{type(value).__name__.removeprefix('nd')} of shape {shape}"
        value = np.asarray(value).tolist()
        return f"[{', '.join(map(short, value))}]" if isinstance(value, list) else short(value)
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, numbers.Integral)):
        return f"{float(value):.6g}"
    if getattr(value, "shape", ()):  # a sparse matrix
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    text = getattr(value, "__name__", None) if callable(value) else None
    text = repr(value) if text is None else text
    return text if len(text) <= SHORT_TEXT or hasattr(type(value), "native") else f"{text[: SHORT_TEXT - 1]}…"


def in_columns(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> list[str]:
    """Rows of cells as lines of columns: the cells of those in `left` begin together, of the others they end so."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if k in left else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def _equal(value, default):
    try:
        return value is default or bool(value == default)
    except (TypeError, ValueError):  # an array
        return False
