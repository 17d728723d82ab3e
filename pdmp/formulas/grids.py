"""Tables of made-up rows: some columns at chosen values, the others as the fit has them usually."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.data.tables import did_you_mean
from pdmp.formulas.kept import DISTINCT, Column
from pdmp.formulas.table import import_pandas

if TYPE_CHECKING:
    from pdmp.formulas.fit import Fit

POINTS = 100  #: of a column of numbers, from its smallest to its largest value


def columns_of(fit: Fit) -> dict[str, Column]:
    """What is known of the columns that predictions need, but those that only groups are named by."""
    needed = fit.names_of_columns()
    return {name: column for name, column in fit.kept.columns.items() if name in needed}


def names_of(term: str | Sequence[str], fit: Fit, asked: str = "`term`") -> list[str]:
    """The columns that ``"age:treated"`` or a list names."""
    known = [*columns_of(fit), *fit.kept.groupings]
    if isinstance(term, str):
        names = [term] if term in known else [name.strip() for name in term.split(":")]
    elif isinstance(term, Sequence) and all(isinstance(name, str) for name in term):
        names = list(term)
    else:
        raise TypeError(
            f'{asked} must name columns of the table, such as "{known[0] if known else "x"}", got {term!r}.'
        )
    for name in names:
        if name not in known:
            raise ValueError(f"{asked} names {name!r}, which is no column of the formula{did_you_mean(name, known)}")
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"{asked} must name each column once, got {term!r}.")
    return names


def check_at(at: Mapping[str, Any] | None, fit: Fit) -> dict[str, Any]:
    """Values of columns by name, each one value or a list of them."""
    if at is not None and not isinstance(at, Mapping):
        raise TypeError(f'`at` must be a dict of columns and values, such as {{"age": 50}}, got {type(at).__name__}.')
    at = dict(at or {})
    if at:
        names_of(list(at), fit, "`at`")
    return at


def check_groups(at: Mapping[str, Any], fit: Fit, effects: str) -> None:
    """Refuse a group that `at` names where effects of groups are 0 or drawn, so that it would change nothing."""
    for name in at:
        if effects != "fitted" and name in fit.kept.groupings and name not in columns_of(fit):
            raise ValueError(
                f"`at` names a group of {name!r}, and `effects` is {effects!r}, for which it is not looked at: give "
                'effects="fitted".'
            )


def several(value: Any) -> bool:
    """Whether a value of `at` is a list of values."""
    return isinstance(value, (list, tuple, np.ndarray, range)) or hasattr(value, "to_numpy")


def check_single(at: Mapping[str, Any]) -> None:
    """Refuse a list of values for a column that is not varied."""
    for name, value in at.items():
        if several(value):
            raise ValueError(f"`at`: {name!r} must be one value, unless it is what is varied, got {value!r}.")


def values_of(name: str, fit: Fit, at: Mapping[str, Any], first: bool) -> list[Any]:
    """The values of a column of a grid: those of `at`; levels; few distinct numbers; `POINTS`, or mean and ± sd."""
    if name in at:
        return list(at[name]) if several(at[name]) else [at[name]]
    if name in fit.kept.groupings:
        return list(fit.kept.groupings[name])
    column = fit.kept.columns[name]
    if column.levels is not None:
        return list(column.levels)
    if column.distinct:
        return list(column.distinct)
    if first:
        return np.linspace(column.low, column.high, POINTS).tolist()
    return [column.mean - column.sd, column.mean, column.mean + column.sd]


def chosen_values(name: str, fit: Fit, at: Mapping[str, Any], asked: str) -> list[Any]:
    """The values of a column that are compared with each other; of many numbers `at` must name some."""
    column = fit.kept.columns.get(name)
    if name not in at and column is not None and column.levels is None and not column.distinct:
        low, high = column.mean - column.sd, column.mean + column.sd
        raise ValueError(
            f"{asked}: the column {name!r} holds more than {DISTINCT} numbers: say which, such as "
            f"at={{{name!r}: [{low:.4g}, {high:.4g}]}}, or ask for slopes({name!r})."
        )
    return values_of(name, fit, at, first=False)


def typical(fit: Fit, at: Mapping[str, Any], effects: str) -> dict[str, Any]:
    """One value for each column: those of `at`, means of numbers, reference levels of categories."""
    check_single(at)
    found = {name: column.typical for name, column in columns_of(fit).items()}
    missing = [name for name in fit.kept.groupings if name not in at]
    if effects == "fitted" and missing:
        label = fit.kept.groupings[missing[0]][0]
        raise ValueError(f"`effects` = 'fitted' needs a group: name one, such as at={{{missing[0]!r}: {label!r}}}.")
    return found | dict(at)


def grid(names: Sequence[str], values: Sequence[Sequence], others: Mapping[str, Any]) -> Any:
    """All combinations of the values of columns, the last varying fastest, beside one value of each other column."""
    rows = list(itertools.product(*values))
    table = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    return import_pandas().DataFrame(table | {n: [v] * len(rows) for n, v in others.items() if n not in table})
