r"""Regressions whose groups have intercepts, and slopes, of their own, whose means are the fixed coefficients.

`MixedRegression` has the same law with the effects uᵍ ~ N(0, τ²) of the intercept and vₖᵍ ~ N(0, τₖ²) of columns. Here
the state has instead, of each group, its linear predictor where the columns are at their means, and its slopes,

    wᵍ = β₀ + uᵍ + Σₖ κₖ vₖᵍ / ρₖ,     bₖᵍ = βₖ + vₖᵍ / ρₖ,     ρₖ = rₖ / sₖ,  κₖ = cₖ / sₖ,

with cₖ and sₖ mean and standard deviation of column k, and rₖ its root mean square, by which `MixedRegression` divides
it. Data that say what each wᵍ and bₖᵍ is say little of β₀ and βₖ beside them, so that these are nearly independent, and
effects and means are not (hierarchical centring).

References
----------
Gelfand, Sahu & Carlin (1995), Efficient parametrisations for normal linear mixed models, Biometrika 82.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.priors import derivative, potential
from pdmp.models.regressions.design import read_design
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp


class GroupIntercepts(MixedRegression):
    """`MixedRegression` with the state x = (β, log τ, w, b, a, c): effects of one grouping are coefficients.

    Parameters
    ----------
    *args, **options
        Of `MixedRegression`, with an intercept, one grouping, whose first group column is ``"1|g"``, and further ones
        each of which is one of the fixed columns.

    Raises
    ------
    ValueError
        For other groups, or no intercept.

    Attributes
    ----------
    means : ndarray, shape (K,)
        Places of the fixed coefficients of the group columns, the intercept first.
    mixing : ndarray, shape (K, K)
        M: the effects in the coordinates of `MixedRegression` are M (w - β₀, b - β).
    """

    means: np.ndarray
    mixing: np.ndarray

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.means = means_of(self.groups, self.intercept, self.columns)
        found = self.means is not None
        if found and self.coded is None:
            columns = [self.scale[j] * self.X[:, j] + self.centre[j] for j in self.means[1:]]
            found = all(np.allclose(g.value, x) for g, x in zip(self.groups[1:], columns, strict=True))
        if not found:
            raise ValueError(
                "intercepts of groups are for a fixed intercept and one grouping, (1 | g), or (1 + x | g) with x fixed."
            )
        self.centred[:] = 1
        self.mixing = np.diag(np.append(1.0, self.group_scale[1:] / self.scale[self.means[1:]]))
        self.mixing[0, 1:] = -self.centre[self.means[1:]] / self.scale[self.means[1:]]
        for k, j in enumerate(self.means):
            self.initial[self.first[k] : self.first[k + 1]] = self.initial[j]
            if self.coded is None:  # in files it is so already
                if k:
                    self.value[:, k] = self.X[:, j]
                self.X[:, j] = 0.0  # β₀ and βₖ act through w and b alone
        if self.coded is None:
            self.X, self.design = read_design(self.X)

    @compiled
    def deviation(self, x, k, g):
        """The effect of group g in column k, from the coefficients."""
        if k > 0:
            return self.mixing[k, k] * (x[self.first[k] + g] - x[self.means[k]])
        total = x[self.first[0] + g] - x[self.means[0]]
        for q in range(1, self.n_groups):
            total += self.mixing[0, q] * (x[self.first[q] + g] - x[self.means[q]])
        return total

    @compiled
    def prior_potential(self, x):
        total = 0.0
        for q in range(self.kinds.shape[0]):
            n = self.numbers
            total += potential(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x[self.place(q)])
        for k in range(self.n_groups):
            s = x[self.n_fixed + k]
            precision = exp(-2.0 * s)
            for g in range(self.first[1] - self.first[0]):
                u = self.deviation(x, k, g)
                total += 0.5 * precision * (u * u) + s
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        for q in range(self.kinds.shape[0]):
            j, n = self.place(q), self.numbers
            out[j] += derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x[j])
        for k in range(self.n_groups):
            precision = exp(-2.0 * x[self.n_fixed + k])
            for g in range(self.first[1] - self.first[0]):
                u = self.deviation(x, k, g)
                out[self.n_fixed + k] += 1.0 - precision * (u * u)
                for q in range(k, self.n_groups if k == 0 else k + 1):
                    pull = self.mixing[k, q] * precision * u
                    out[self.first[q] + g] += pull
                    out[self.means[q]] -= pull

    def effect_precision(self, x: np.ndarray, k: int) -> float:
        """Of the prior of one coefficient of group column k, all others given."""
        return float(self.mixing[:, k] ** 2 @ np.exp(-2.0 * x[self.n_fixed : self.n_fixed + self.n_groups]))

    def as_effects(self) -> MixedRegression | None:
        """`MixedRegression` of the same rows; None for rows in files, which have coefficients of groups in them."""
        if self.coded is not None:
            return None
        other = MixedRegression.__new__(MixedRegression)
        other.__dict__.update(self.__dict__)
        X, other.value = np.array(self.X), self.value.copy()
        X[:, self.means[0]] = 1.0
        for k, j in enumerate(self.means[1:], 1):
            X[:, j], other.value[:, k] = self.value[:, k], self.groups[k].value / self.group_scale[k]
        other.X, other.design = read_design(X)
        other.initial, other.centred = self.initial.copy(), np.zeros_like(self.centred)
        other.initial[self.first[0] : self.first[-1]] = 0.0
        return other

    def unconstrained(self, natural: Mapping[str, ArrayLike]) -> np.ndarray:
        x, first, last = super().unconstrained(natural), self.first[0], self.first[-1]
        effects = x[..., first:last].reshape(*x.shape[:-1], self.n_groups, -1)
        own = np.linalg.inv(self.mixing) @ effects + x[..., self.means, None]
        x[..., first:last] = own.reshape(*x.shape[:-1], -1)
        return x

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), as of `MixedRegression`: effects, not coefficients."""
        draws = np.array(draws, dtype=float)
        if draws.shape[-1:] == (self.dim,):
            first, last, K = self.first[0], self.first[-1], self.n_groups
            own = draws[..., first:last].reshape(*draws.shape[:-1], K, -1) - draws[..., self.means, None]
            draws[..., first:last] = (self.mixing @ own).reshape(*draws.shape[:-1], -1)
        return super().constrain(draws)


def means_of(groups, intercept, columns) -> np.ndarray | None:
    """Places of the fixed columns of the group columns, or None where these are not as `GroupIntercepts` needs."""
    names = [g.name.partition("|")[0] for g in groups]
    if intercept is None or not names or names[0] != "1" or len({g.grouping for g in groups}) > 1:
        return None
    if any(name not in columns for name in names[1:]) or len(set(names)) < len(names):
        return None
    return np.array([intercept, *(columns.index(name) for name in names[1:])], dtype=np.int64)
