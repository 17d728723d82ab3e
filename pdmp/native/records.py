"""Records of arrays, such as the memory of a process: each field is annotated with what it holds."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

#: A vector, mostly of as many numbers as there are coordinates; and, in an array of one element, a number that changes,
#: a whole number, and a truth value.
Vector = np.ndarray
Number = np.ndarray
Count = np.ndarray
Flag = np.ndarray

#: By the annotations of fields, which are text.
_TYPES = {"Number": np.float64, "Count": np.int64, "Flag": np.bool_}

T = TypeVar("T")


def zeros(kind: type[T], dim: int, **given: Any) -> T:
    """A record of the class `kind`, a `NamedTuple`: zeros, vectors of `dim` of them, but for the fields `given`."""
    made = dict(kind._field_defaults, **given)  # type: ignore[attr-defined]
    for name, annotation in kind.__annotations__.items():
        if name not in made:
            text = annotation.__forward_arg__
            made[name] = np.zeros(dim) if text == "Vector" else np.zeros(1, _TYPES[text])
    return kind(**made)
