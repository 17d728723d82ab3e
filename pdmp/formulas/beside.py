"""What stands beside a response, as in ``k | trials(n)``: further data of the rows, by the family's names for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pdmp.data.formats import is_number
from pdmp.formulas.table import check_names, is_numeric, numbers
from pdmp.formulas.words import column_of
from pdmp.models.families import Family

#: What is written, by the family's name for it.
CALLED_BESIDE = {"trials": "trials", "censored": "cens", "upper": "cens", "lb": "trunc", "ub": "trunc", "se": "se"}
USED = "column "  #: what names of columns begin with that an expression for the mean has
OF_PREDICTIONS = ("trials", "lb", "ub")  #: of these, by predictions; and se by drawn responses
#: What columns of censoring may say, in words.
CENSORING = {"none": 0.0, "right": 1.0, "left": -1.0, "interval": 2.0}


def predicts(name: str) -> bool:
    """Whether predictions look at further data of this name, and not drawn responses alone."""
    return name in OF_PREDICTIONS or name.startswith(USED)


def columns_beside(beside: Mapping[str, str]) -> dict[str, str]:
    """Columns of what stands beside the response; the others are numbers."""
    return {name: column_of(text) for name, text in beside.items() if not is_number(text)}  # `7` is a column


def without_gaps(table: Any, beside: Mapping[str, str]) -> Any:
    """The table with numbers where what is beside the response is not looked at: ends of intervals alone are."""
    columns = columns_beside(beside)
    upper, censored = columns.get("upper"), columns.get("censored")
    if upper not in table.columns:
        return table
    needed = table[upper].notna()
    if censored in table.columns:
        needed |= table[censored].astype(str).str.lower().isin(["2", "2.0", "interval"])
    return table.assign(**{upper: table[upper].where(needed, 0.0)})


def read_beside(beside: Mapping[str, str], table: Any) -> dict[str, np.ndarray]:
    """Further data of the rows of a table, (n,) each."""
    columns = columns_beside(beside)
    return {
        name: _column_beside(name, table, columns[name]) if name in columns else _constant(text, table)
        for name, text in beside.items()
    }


def read_for_predictions(family: Family, beside: Mapping[str, str], table: Any, drawn: bool) -> dict[str, Any]:
    """Of new rows all further data of a family: predictions look at trials, and at where responses are cut.

    `drawn`: whether responses are, whose trials are whole numbers.
    """
    found: dict[str, Any] = {}
    for name, usual in family.data.items():
        is_read = predicts(name) or drawn and name == "se"
        text = beside.get(name) if is_read else None
        if text is None:
            found[name] = usual
        elif is_number(text):
            found[name] = _constant(text, table)
        else:
            check_names([column_of(text)], table, "`formula`", "`new`")
            found[name] = _column_beside(name, table, column_of(text), "`new`")
        if name == "trials" and text is not None:
            low = max(family.ends[0], 0.0)  # of fewer no count could be seen
            wrong = (found[name] < low) | drawn & (found[name] != np.floor(found[name]))
            if wrong.any():
                raise ValueError(
                    f"`new`: the trials must be whole numbers of at least {low:g}, got {found[name][wrong][0]:g}."
                )
    return found


def _constant(text, table):
    return np.full(len(table), float(text))


def _column_beside(name, table, column, whose="`data`"):
    """Numbers of a column beside the response; of censoring also words and truth values."""
    values = table[column]
    if name == "censored" and values.dtype.kind not in "biuf":
        words = values.astype(str).str.lower()
        odd = sorted(set(words) - CENSORING.keys())
        if odd:
            raise ValueError(
                f"`formula`: the column {column!r} of cens(...) must say none, right, left or interval, or 0, 1, -1 "
                f"or 2, got {odd[0]!r}."
            )
        return words.map(CENSORING).to_numpy(float)
    if name.startswith(USED) and not is_numeric(values):  # in further rows
        raise ValueError(f"{whose}: the column {column!r} of the expression must hold numbers, as in the fit.")
    usual = "the expression" if name.startswith(USED) else "cbind"
    return numbers(table, column, f"`formula`: {CALLED_BESIDE.get(name, usual)}")
