"""What default priors and checks need to know of all rows of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdmp.models.regressions.design import gram


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
    products: np.ndarray  #: (p, p) XᵀX
    value_sd: np.ndarray  #: (K,) of what effects of groups are multiplied by
    value_largest: np.ndarray
    value_square: np.ndarray  #: their mean squares
    sizes: list[np.ndarray]  #: by group column, how many rows each group has

    @classmethod
    def of(cls, design: Any, y: np.ndarray, offset: np.ndarray, weight: np.ndarray | None) -> Totals:
        """Of a table in memory."""
        X, values = design.X, [g.value for g in design.groups]
        with np.errstate(over="ignore"):
            exposure = float(np.exp(offset).sum())
        return cls(
            rows=len(y),
            y_mean=float(y.mean()),
            y_sum=float(y.sum()),
            y_sd=float(y.std()),
            y_largest=float(np.abs(y).max()),
            excess=float(np.mean(y - offset)),
            exposure=exposure,
            any_offset=bool(np.any(offset)),
            weights=(1.0, 1.0) if weight is None else (float(weight.min()), float(weight.max())),
            mean=X.mean(axis=0),
            sd=np.array([X[:, j].std() for j in range(X.shape[1])]),
            largest=np.abs(X).max(axis=0),
            products=gram(X),
            value_sd=np.array([value.std() for value in values]),
            value_largest=np.array([np.abs(value).max() for value in values]),
            value_square=np.array([np.mean(value**2) for value in values]),
            sizes=[np.bincount(g.level, minlength=len(g.levels)) for g in design.groups],
        )
