"""What default priors and checks need to know of all rows of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdmp.formulas.smooths import summed, whole
from pdmp.models.regressions.design import products
from pdmp.native.threads import chunks, each


class Totals(NamedTuple):
    """Sums over the rows, in the units of the data; of p fixed columns and K group columns."""

    rows: int
    y_mean: float
    y_sum: float
    y_sd: float
    y_largest: float  #: max |y|
    excess: float  #: mean of y less the offset
    exposure: float  #: Σ e^offset
    any_offset: bool
    weights: tuple[float, float]  #: the smallest and the largest one
    mean: np.ndarray  #: (p,)
    sd: np.ndarray  #: (p,)
    largest: np.ndarray  #: (p,) of absolute values
    products: np.ndarray  #: (p, p) of the columns over `largest`, about their means if there is an intercept
    value_sd: np.ndarray  #: (K,) of what effects of groups are multiplied by
    value_largest: np.ndarray
    value_square: np.ndarray  #: their mean squares
    sizes: list[np.ndarray]  #: by group column, how many rows each group has

    @classmethod
    def of(cls, design: Any, y: np.ndarray, offset: np.ndarray, weight: np.ndarray | None) -> Totals:
        """Of a table in memory."""
        X, values = design.X, [whole(g) for g in design.groups]
        with np.errstate(over="ignore", invalid="ignore"):  # columns that are too large are refused by their `largest`
            return cls._of(design, X, values, y, offset, weight)

    @staticmethod
    def _of_column(column):
        return column.mean(), column.std(), max(-column.min(), column.max())

    @classmethod
    def _of(cls, design, X, values, y, offset, weight):
        # One by one, and contiguous: of all at once it would be another table.
        columns = [cls._of_column(np.ascontiguousarray(X[:, j])) for j in range(X.shape[1])]
        mean, sd, largest = np.array(columns).T
        return cls(
            rows=len(y),
            y_mean=float(y.mean()),
            y_sum=float(y.sum()),
            y_sd=float(y.std()),
            y_largest=float(np.abs(y).max()),
            excess=float(np.mean(y - offset)),
            exposure=float(np.exp(offset).sum()),
            any_offset=bool(np.any(offset)),
            weights=(1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
            mean=mean,
            sd=sd,
            largest=largest,
            products=_products(X, 0.0 if design.intercept is None else mean, np.where(largest > 0.0, largest, 1.0)),
            value_sd=np.array([value.std() for value in values]),
            value_largest=np.array([np.abs(value).max() for value in values]),
            value_square=np.array([np.mean(value**2) for value in values]),
            sizes=[summed(g.level, np.ones(g.value.shape), len(g.levels)).astype(np.int64) for g in design.groups],
        )


def _products(X, centre, scale):
    """Products of columns that are centred and divided: neither a mean far from 0 nor a small unit rounds them away."""
    ranges = chunks(*X.shape)
    if len(ranges) == 1:
        part = (X[:] - centre) / scale
        return part.T @ part
    return sum(each(lambda first, stop: products((X[first:stop] - centre) / scale), ranges))
