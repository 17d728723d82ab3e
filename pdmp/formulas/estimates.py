"""Numbers that draws estimate, a row each: estimate, error and interval, as text, and as a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pdmp.formulas.table import import_pandas
from pdmp.native.representation import in_columns


def check_probability(probability: float) -> float:
    """The probability of an interval, or a `ValueError`."""
    if isinstance(probability, bool) or not isinstance(probability, (int, float)) or not 0.0 < probability < 1.0:
        raise ValueError(f"`probability` must be above 0 and below 1, got {probability!r}.")
    return float(probability)


class Estimates:
    """A table of numbers that depend on the parameters; it prints as text.

    Parameters
    ----------
    keys : dict of str to sequence
        Columns that say what each row is of.
    draws : ndarray, shape (draws, rows)
        Of the posterior.
    probability : float
        Of the intervals, whose ends have equal probability outside.
    further : dict of str to sequence, optional
        Columns after the intervals.
    note : str, optional
        The text below the table.

    Attributes
    ----------
    estimate, error : ndarray, shape (rows,)
        Means and standard deviations of the draws.
    lower, upper : ndarray, shape (rows,)

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> draws = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, 9.0]])
    >>> pdmp.formulas.Estimates({"area": ["city", "town"]}, draws, 0.5)
    area  estimate  error  lower  upper
    city         2 0.8165    1.5    2.5
    town         7  1.633      6      8
    """

    SHOWN = 60  #: rows that are printed

    def __init__(
        self,
        keys: Mapping[str, Sequence],
        draws: np.ndarray,
        probability: float,
        further: Mapping[str, Sequence] | None = None,
        note: str = "",
    ) -> None:
        self.keys, self.draws, self.probability = dict(keys), draws, check_probability(probability)
        self.further, self.note = dict(further or {}), note
        tail = 0.5 * (1.0 - self.probability)
        self.estimate, self.error = draws.mean(axis=0), draws.std(axis=0)
        self.lower, self.upper = np.quantile(draws, [tail, 1.0 - tail], axis=0)

    def __len__(self) -> int:
        return len(self.estimate)

    def _columns(self):
        own = {name: getattr(self, name) for name in ("estimate", "error", "lower", "upper")}
        return self.keys | own | self.further

    def to_dataframe(self) -> Any:
        """A ``pandas.DataFrame``: the columns that name a row, "estimate", "error", "lower", "upper", and further ones.

        Raises
        ------
        ImportError
            Without pandas.
        """
        return import_pandas().DataFrame({name: list(values) for name, values in self._columns().items()})

    def __repr__(self) -> str:
        columns = [[name, *map(shown, list(values)[: self.SHOWN])] for name, values in self._columns().items()]
        lines = in_columns(list(zip(*columns, strict=True)), left=range(len(self.keys)))
        if len(self) > self.SHOWN:
            lines.append(f"… and {len(self) - self.SHOWN:,} more")
        lines += [self.note] if self.note else []
        return "\n".join(lines)

    def _repr_html_(self):
        html = self.to_dataframe().to_html(index=False, max_rows=self.SHOWN, float_format="{:.4g}".format)
        return html + (f"<pre>{self.note}</pre>" if self.note else "")


def shown(value: Any) -> str:
    """A value of a column as text, numbers to four digits."""
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
