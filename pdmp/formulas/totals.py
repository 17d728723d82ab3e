"""What default priors and checks need to know of all rows of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdmp.formulas.smooths import summed, whole
from pdmp.models.regressions.design import products
from pdmp.models.regressions.mixed import mean_of, sd_of
from pdmp.native.threads import chunks, each


class Totals(NamedTuple):
    """Sums over the rows, in the units of the data; of p fixed columns and K group columns.

    Weights are as if their mean was 1: then a row of weight 2 is as two rows.
    """

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

    @staticmethod
    def _of_column(column, weight):
        return mean_of(column, weight), sd_of(column, weight), max(-column.min(), column.max())

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # columns that are too large are refused by their `largest`
    def of(cls, design: Any, y: np.ndarray, offset: np.ndarray, weight: np.ndarray | None) -> Totals:
        """Of a table in memory."""
        X, values = design.X, [whole(g) for g in design.groups]
        # One by one, and contiguous: of all at once it would be another table.
        columns = [cls._of_column(np.ascontiguousarray(X[:, j]), weight) for j in range(X.shape[1])]
        mean, sd, largest = np.array(columns).reshape(-1, 3).T
        return cls(
            rows=len(y),
            y_mean=float(mean_of(y, weight)),
            y_sum=float(mean_of(y, weight) * len(y)),
            y_sd=sd_of(y, weight),
            y_largest=float(np.abs(y).max()),
            excess=float(mean_of(y - offset, weight)),
            exposure=float(mean_of(np.exp(offset), weight) * len(y)),
            any_offset=bool(np.any(offset)),
            weights=(1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
            mean=mean,
            sd=sd,
            largest=largest,
            products=_products(
                X, 0.0 if design.intercept is None else mean, np.where(largest > 0.0, largest, 1.0), weight
            ),
            value_sd=np.array([sd_of(value, weight) for value in values]),
            value_largest=np.array([np.abs(value).max() for value in values]),
            value_square=np.array([mean_of(value**2, weight) for value in values]),
            sizes=[summed(g.level, np.ones(g.value.shape), len(g.levels)).astype(np.int64) for g in design.groups],
        )


def _products(X, centre, scale, weight):
    """Products of columns that are centred and divided: neither a mean far from 0 nor a small unit rounds them away."""
    ranges, w = chunks(*X.shape), None if weight is None else weight / weight.mean()
    if len(ranges) == 1:
        part = (X[:] - centre) / scale
        return part.T @ (part if w is None else w[:, None] * part)

    def some(first, stop):
        return products((X[first:stop] - centre) / scale, None if w is None else w[first:stop])

    return sum(each(some, ranges))
