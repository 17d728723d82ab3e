"""What a fit remembers of its table: what is usual in each column, and some of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.formulas.table import import_pandas, is_numeric, labels_of

if TYPE_CHECKING:
    from pdmp.formulas.design import Design

ROWS = 10_000  #: of a table that are kept, drawn without replacement where there are more
DISTINCT = 5  #: values of a column of numbers up to which all of them are kept


class Column(NamedTuple):
    """One column of a table."""

    levels: tuple | None  #: of a category, the one that others are compared with first; None for numbers
    mean: float  #: of numbers
    sd: float
    low: float
    high: float
    distinct: tuple  #: values of numbers that have at most `DISTINCT`; else empty

    @property
    def typical(self) -> Any:
        """The mean, or the reference level."""
        return self.mean if self.levels is None else self.levels[0]


class Kept:
    """Columns of a table that a formula needs, and some of its rows.

    Attributes
    ----------
    rows : pandas.DataFrame
        At most `ROWS`, in their order.
    places : ndarray of int
        Which rows these are.
    columns : dict of str to Column
        But the response, and what only groups are named by.
    groupings : dict of str to tuple
        Labels of the columns that only groups are named by.
    """

    def __init__(self, table: Any, designs: Sequence[Design]) -> None:
        n = len(table)
        chosen = np.sort(np.random.default_rng(0).choice(n, ROWS, replace=False)) if n > ROWS else np.arange(n)
        self.places, self.rows, self.n = chosen, table.iloc[chosen].copy(), n
        self.columns: dict[str, Column] = {}
        self.groupings: dict[str, tuple] = {}
        response = set(designs[0].model.response.term.var_names)
        categories: dict[str, tuple] = {}
        for design in designs:
            categories = design.categories() | categories
        used = [design.names_of_columns() for design in designs]
        fixed, grouping = (frozenset().union(*(one[kind] for one in used)) for kind in ("fixed", "groups"))
        for name in table.columns:
            if name in grouping and name not in fixed:
                self.groupings[name] = tuple(labels_of(table[name]))
            elif name in fixed or name not in response:
                self.columns[name] = self._of(table[name], categories.get(name))

    def extended(self, table: Any, designs: Sequence[Design]) -> Kept:
        """What is known of these rows and those of another table behind them."""
        added, both, pandas = Kept(table, designs), Kept.__new__(Kept), import_pandas()
        n, m, both.n = self.n, added.n, self.n + added.n
        ours, theirs = np.arange(len(self.places)), np.arange(len(added.places))
        if both.n > ROWS:  # drawn from all rows: so many of them are of the second table
            rng = np.random.default_rng(both.n)
            of_second = int(rng.hypergeometric(m, n, ROWS))
            ours = np.sort(rng.choice(ours, ROWS - of_second, replace=False))
            theirs = np.sort(rng.choice(theirs, of_second, replace=False))
        both.places = np.concatenate([self.places[ours], n + added.places[theirs]])
        both.rows = pandas.concat([self.rows.iloc[ours], added.rows[list(self.rows.columns)].iloc[theirs]])
        both.columns = {name: _joined(one, n, added.columns[name], m) for name, one in self.columns.items()}
        both.groupings = {
            name: (*labels, *(one for one in added.groupings[name] if one not in set(labels)))
            for name, labels in self.groupings.items()
        }
        return both

    def _of(self, column, levels):
        nan = float("nan")
        if levels is None and column.dtype.kind == "b":
            levels = (False, True)
        if levels is None and not is_numeric(column):  # what functions of the formula make numbers of
            levels = tuple(labels_of(column))
        if levels is not None:
            return Column(levels, nan, nan, nan, nan, ())
        values = column.to_numpy(dtype=float)
        own = column.to_numpy() if column.dtype.kind in "iu" else values  # 1, not 1.0, where it is a label
        distinct = np.unique(own[self.places])
        few = len(distinct) <= DISTINCT and bool(np.isin(own, distinct).all())
        ends = float(values.min()), float(values.max())
        with np.errstate(over="ignore"):  # values that are too large are refused later
            mean, sd = float(values.mean()), float(values.std())
        return Column(None, mean, sd, *ends, tuple(distinct.tolist()) if few else ())


def _joined(a, n, b, m):
    """A column of n rows and of m further ones (Chan, Golub & LeVeque, 1983)."""
    if a.levels is not None:
        return a._replace(levels=(*a.levels, *(one for one in b.levels or () if one not in a.levels)))
    change = b.mean - a.mean
    variance = (n * a.sd**2 + m * b.sd**2) / (n + m) + change**2 * n * m / (n + m) ** 2
    distinct = tuple(sorted({*a.distinct, *b.distinct})) if a.distinct and b.distinct else ()
    return Column(
        None,
        a.mean + change * m / (n + m),
        variance**0.5,
        min(a.low, b.low),
        max(a.high, b.high),
        distinct if len(distinct) <= DISTINCT else (),
    )
