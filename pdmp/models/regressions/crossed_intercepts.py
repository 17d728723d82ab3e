r"""Regressions with the intercepts of two or more crossed groupings, each with a mean of its own.

`MixedRegression` has the law with the effects uₖᵍ ~ N(0, τₖ²) of groupings k = 1 … K and the intercept β₀. Here the
state has instead coefficients wₖᵍ = mₖ + uₖᵍ, whose means add up to β₀ (hierarchical centring of every grouping),

    zᵢ = bᵢ·β + Σₖ wₖ[gₖ(i)],     wₖᵍ ~ N(mₖ, τₖ²),     β₀ = Σₖ mₖ.

The data say nothing of a constant that is added to one grouping and subtracted from another. In the coordinates (β₀, u)
all effects have to move together for it, much farther than the rows let any sum of them move otherwise, and a sampler
takes the longer the more groups there are. Here such a shift, of wₖ and mₖ by cₖ with Σₖ cₖ = 0, changes nothing of
the model, and has a law that is chosen: the gauges

    qₖ = Σ_g aₖᵍ wₖᵍ ~ N(0, 1/κₖ),     k = 2 … K,

with aₖᵍ the share of the rows that group g has and κₖ of the order of the data's curvature. As a shift by c takes q to
q + c, and leaves β₀ and the effects as they are, their law is that of `MixedRegression`, exactly, for every κ > 0.

References
----------
Gelfand, Sahu & Carlin (1995), Efficient parametrisations for normal linear mixed models, Biometrika 82. Liu & Wu
(1999), Parameter expansion for data augmentation, JASA 94 (shifts as a group). Papaspiliopoulos, Roberts & Zanella
(2020), Scalable inference for crossed random effects models, Biometrika 107 (why the mean is what is slow).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.priors import derivative, potential
from pdmp.models.regressions.design import read_design
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp

DIFFERENCE = 1e-3  #: of linear predictors, for second derivatives of the log-likelihood


class CrossedIntercepts(MixedRegression):
    """`MixedRegression` with the state x = (β, log τ, w, m₂ … m_K, a, c), where β₀ has the place of m₁.

    Parameters
    ----------
    X, y, likelihood, columns, priors, groups, *args, intercept, coded, **options
        Of `MixedRegression` in memory, with an intercept and ``"1|g"`` of two or more groupings.

    Raises
    ------
    ValueError
        For other groups, or no intercept.

    Attributes
    ----------
    means : ndarray, shape (K,)
        Places of the means mₖ.
    share : ndarray, shape (groups of all,)
        aₖᵍ; 0 of the first grouping.
    stiffness : ndarray, shape (K,)
        κₖ; 0 of the first grouping.
    """

    means: np.ndarray
    share: np.ndarray
    stiffness: np.ndarray

    def __init__(
        self, X, y, likelihood, columns, priors, groups=(), *args, intercept=None, coded=None, **options
    ) -> None:
        if coded is not None or not are_crossed(groups, intercept):
            raise ValueError(
                "crossed intercepts are for rows in memory, a fixed intercept and two groupings or more, "
                "(1 | g) + (1 | h)."
            )
        self._further = tuple(f"mean of {g.name}" for g in groups[1:])
        super().__init__(X, y, likelihood, columns, priors, groups, *args, intercept=intercept, **options)
        self.centred[:] = 1
        last = self.dim - self.n_dispersions
        self.means = np.r_[intercept, last - len(self._further) : last].astype(np.int64)
        self.initial[self.first[0] : self.first[1]] = self.initial[intercept]
        weight = self.weight if self.weight.size else np.ones(self.n_data)
        self.share, self.stiffness = np.zeros(self.first[-1] - self.first[0]), np.zeros(len(groups))
        for k in range(1, len(groups)):
            rows = np.bincount(self.level[:, k] - self.first[k], weight, self.first[k + 1] - self.first[k])
            self.share[self.first[k] - self.first[0] : self.first[k + 1] - self.first[0]] = rows / rows.sum()
        self.stiffness[1:] = self._typical_curvature(weight)
        self.X[:, intercept] = 0.0  # β₀ acts through w alone
        self.X, self.design = read_design(self.X)

    def _typical_curvature(self, weight):
        """Σᵢ |ℓᵢ''| by the linear predictor, where the model begins."""
        y = (self.y - self.response_centre) / self.response_scale
        z = self.initial[self.intercept] + (self.offset if self.offset.size else np.zeros(self.n_data))
        a, c = (*self.initial[self.dim - self.n_dispersions :], 0.0, 0.0)[:2]
        low, here, high = (self.likelihood.log_density(z + h, y, a, c) for h in (-DIFFERENCE, 0.0, DIFFERENCE))
        found = float(np.sum(weight * np.abs(low - 2.0 * here + high))) / DIFFERENCE**2
        return found if np.isfinite(found) and found > 0.0 else float(weight.sum())

    @compiled
    def overall(self, x):
        """β₀."""
        total = 0.0
        for k in range(self.n_groups):
            total += x[self.means[k]]
        return total

    @compiled
    def gauge(self, x, k):
        """qₖ."""
        total = 0.0
        for j in range(self.first[k], self.first[k + 1]):
            total += self.share[j - self.first[0]] * x[j]
        return total

    @compiled
    def prior_potential(self, x):
        total = 0.0
        for q in range(self.kinds.shape[0]):
            n, j = self.numbers, self.place(q)
            total += potential(
                self.kinds[q], n[q, 0], n[q, 1], n[q, 2], self.overall(x) if j == self.means[0] else x[j]
            )
        for k in range(self.n_groups):
            s, m = x[self.n_fixed + k], x[self.means[k]]
            precision, gauge = exp(-2.0 * s), self.gauge(x, k)
            for j in range(self.first[k], self.first[k + 1]):
                total += 0.5 * precision * ((x[j] - m) * (x[j] - m)) + s
            total += 0.5 * self.stiffness[k] * (gauge * gauge)
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        for q in range(self.kinds.shape[0]):
            n, j = self.numbers, self.place(q)
            if j == self.means[0]:
                pull = derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], self.overall(x))
                for k in range(self.n_groups):
                    out[self.means[k]] += pull
            else:
                out[j] += derivative(self.kinds[q], n[q, 0], n[q, 1], n[q, 2], x[j])
        for k in range(self.n_groups):
            precision, pull, m = exp(-2.0 * x[self.n_fixed + k]), self.stiffness[k] * self.gauge(x, k), x[self.means[k]]
            for j in range(self.first[k], self.first[k + 1]):
                u = x[j] - m
                out[self.n_fixed + k] += 1.0 - precision * (u * u)
                out[j] += precision * u + pull * self.share[j - self.first[0]]
                out[self.means[k]] -= precision * u

    def effect_precision(self, x: np.ndarray, k: int) -> float:
        """Of the prior of one coefficient of group column k, all others given."""
        return math.exp(-2.0 * x[self.n_fixed + k])

    def as_effects(self) -> MixedRegression:
        """`MixedRegression` of the same rows."""
        other = MixedRegression.__new__(MixedRegression)
        other.__dict__.update(self.__dict__)
        X, last = np.array(self.X), int(self.first[-1])
        X[:, self.intercept] = 1.0
        other.X, other.design = read_design(X)
        other.initial = np.r_[self.initial[:last], self.initial[self.dim - self.n_dispersions :]]
        other.initial[self.first[0] : last] = 0.0
        other.dim, other._further, other.centred = len(other.initial), (), np.zeros_like(self.centred)
        means = {f"standardised {name}" for name in self._further}
        other.variables = {name: shape for name, shape in self.variables.items() if name not in means}
        return other

    def unconstrained(self, natural: Mapping[str, ArrayLike]) -> np.ndarray:
        """x (..., dim) of natural parameters, where the gauges are 0, as these do not say what they are."""
        x = super().unconstrained(natural)
        for k in range(self.n_groups - 1, -1, -1):  # the first mean makes the sum of all β₀
            own = slice(self.first[k], self.first[k + 1])
            share = self.share[own.start - self.first[0] : own.stop - self.first[0]]
            if k:
                x[..., self.means[k]] = -(x[..., own] @ share)
                x[..., self.means[0]] -= x[..., self.means[k]]
            x[..., own] += x[..., self.means[k], None]
        return x

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), as of `MixedRegression`: effects, not coefficients."""
        draws = np.array(draws, dtype=float)
        if draws.shape[-1:] == (self.dim,):
            means = draws[..., self.means]
            for k in range(self.n_groups):
                draws[..., self.first[k] : self.first[k + 1]] -= means[..., k, None]
            draws[..., self.intercept] = means.sum(axis=-1)
        return super().constrain(draws)


def are_crossed(groups, intercept) -> bool:
    """Whether the group columns are those of `CrossedIntercepts`: the intercepts of two groupings or more."""
    names = [g.name.partition("|")[0] for g in groups]
    return intercept is not None and len(groups) > 1 and set(names) == {"1"}
