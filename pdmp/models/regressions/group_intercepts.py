r"""Regressions whose groups have intercepts, and slopes, of their own, whose means are coordinates of the state.

`MixedRegression` has the same law with the effects uᵍ ~ N(0, τ²) of the intercept and vₖᵍ ~ N(0, τₖ²) of columns. Here
the state has instead, of each group, its linear predictor where the columns are at their means, and its slopes,

    wᵍ = m + uᵍ + Σₖ κₖ vₖᵍ / ρₖ,     bₖᵍ = βₖ + vₖᵍ / ρₖ,     ρₖ = rₖ / sₖ,  κₖ = cₖ / sₖ,

with cₖ and sₖ mean and standard deviation of column k, and rₖ its root mean square, by which `MixedRegression` divides
it. Data that say what each wᵍ and bₖᵍ is say little of m and βₖ beside them, so that these are nearly independent, and
effects and means are not (hierarchical centring).

With one grouping m is the intercept β₀. With several, which are crossed, each has a mean of its own, β₀ = Σ mₕ. The
data say nothing of a constant that is added to one grouping and subtracted from another. In the coordinates (β₀, u) all
effects have to move together for it, much farther than the rows let any sum of them move otherwise, and a sampler takes
the longer the more groups there are. Here such a shift, of wₕ and mₕ by cₕ with Σₕ cₕ = 0, changes nothing of the
model, and has a law that is chosen: the gauges

    qₕ = Σ_g aₕᵍ wₕᵍ ~ N(0, 1/κₕ),     of all groupings but the first,

with aₕᵍ the share of the rows that group g has and κₕ of the order of the data's curvature. As a shift by c takes q to
q + c, and leaves β₀ and the effects as they are, their law is that of `MixedRegression`, exactly, for every κ > 0.

Effects (u, v) of an intercept and one column may be correlated, r ~ LKJ(η). With the regression φ of u on v as a
coordinate, the parts u - φ v ~ N(0, e^2s) and v ~ N(0, τ₁²) are independent, as effects are otherwise, and

    τ₀² = e^2s + φ² τ₁²,     r = φ τ₁ / τ₀,     1 - r² = e^2s / τ₀²,

so that from the law of (log τ₀, log τ₁, r) that of (s, log τ₁, φ) has, beside the prior of τ₀,

    (2 η + 1) log τ₀ - 2 η s - log τ₁,     as     d(log τ₀) dr = (1 - r²) (τ₁ / τ₀) ds dφ.

References
----------
Gelfand, Sahu & Carlin (1995), Efficient parametrisations for normal linear mixed models, Biometrika 82. Liu & Wu
(1999), Parameter expansion for data augmentation, JASA 94 (shifts as a group). Papaspiliopoulos, Roberts & Zanella
(2020), Scalable inference for crossed random effects models, Biometrika 107 (why the mean is what is slow). Pourahmadi
(1999), Joint mean-covariance models with applications to longitudinal data, Biometrika 86 (regressions in the place of
correlations).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.priors import LKJ, log_mass
from pdmp.models.regressions.design import Dense, is_mapped, pieces, read_design
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.native.arguments import real
from pdmp.native.classes import compiled, inlined
from pdmp.native.vectors import exp

DIFFERENCE = 1e-3  #: of linear predictors, for second derivatives of the log-likelihood
FURTHER = -1  #: place of a mean, see `means_of`


class GroupIntercepts(MixedRegression):
    """`MixedRegression` with the state x = (β, log τ, w, b, m, a, c): effects of groups are coefficients.

    The first grouping's m has the place of β₀; those of the others come after the coefficients. Of correlated effects φ
    has the place of these, and s that of log τ₀.

    The arguments are those of `MixedRegression`, with an intercept, and groupings each of which has ``"1|g"`` as its
    first group column; its further ones are each one of the fixed columns, which no other group column is. Rows in
    files are of one grouping. `correlation` is the prior of the correlation of the effects of an intercept and one
    column; without it they are independent.
    """

    has_linear_rows = True

    means: np.ndarray  #: (K,) places of the means of the group columns' coefficients
    mixing: np.ndarray  #: (K, K) M: the effects in the coordinates of `MixedRegression` are M (w - m, b - β)
    head: np.ndarray  #: (K,) of a group column the intercept of its grouping
    end: np.ndarray  #: (K,) effect k is a sum over the columns k … end - 1
    share: np.ndarray  #: (coefficients,) aₕᵍ; 0 of the first grouping, and of slopes
    stiffness: np.ndarray  #: (K,) κₕ; 0 of the first grouping, and of slopes
    lean: int  #: coordinate φ of correlated effects, or -1
    eta: float  #: η of correlated effects

    def __init__(
        self,
        X,
        y,
        likelihood,
        columns,
        priors,
        groups=(),
        *args,
        intercept=None,
        coded=None,
        correlation: LKJ | None = None,
        **options,
    ) -> None:
        places = means_of(groups, intercept, columns)
        several = places is not None and FURTHER in places
        self._further = tuple(
            f"mean of {g.name}" for k, g in enumerate(groups) if places is not None and places[k] == FURTHER
        )
        if correlation is not None:
            if several or len(groups) != 2:
                raise ValueError("correlated intercepts of groups are for one grouping, (1 + x | g) with one column x.")
            self._further = (f"regression of {groups[0].name} on {groups[1].name}",)
        super().__init__(X, y, likelihood, columns, priors, groups, *args, intercept=intercept, coded=coded, **options)
        found, names = places is not None and not (several and coded), [g.grouping for g in groups]
        if found and coded is None:
            fixed = [(g, j) for g, j in zip(groups, places, strict=True) if j not in (FURTHER, intercept)]
            found = all(np.allclose(g.value, self.scale[j] * self.X[:, j] + self.centre[j]) for g, j in fixed)
        if not found:
            raise ValueError(
                "intercepts of groups are for a fixed intercept and groupings (1 | g), or (1 + x | g) with x fixed and "
                "in no other; of rows in files for one grouping."
            )
        self.centred[:] = 1
        last, K = self.dim - self.n_dispersions, len(groups)
        self.lean, self.eta = (-1, 1.0) if correlation is None else (last - 1, correlation.eta)
        self.means, self.mixing = places.copy(), np.eye(K)
        self.means[places == FURTHER] = np.arange(last - len(self._further), last)
        self.head = np.array([names.index(name) for name in names], dtype=np.int64)
        self.end = np.arange(1, K + 1)
        np.maximum.at(self.end, self.head, np.arange(1, K + 1))
        for k in np.flatnonzero(self.head < np.arange(K)):
            j = self.means[k]
            self.mixing[k, k] = self.group_scale[k] / self.scale[j]
            self.mixing[self.head[k], k] = -self.centre[j] / self.scale[j]
        for k, j in enumerate(self.means):
            self.initial[self.first[k] : self.first[k + 1]] = self.initial[j]
            if coded is None and j < self.n_fixed:  # in files it is so already
                if j != intercept:
                    self.value[:, k] = self.X[:, j]
                self.X[:, j] = 0.0  # the coefficients act through w and b alone
        if coded is None and not is_mapped(self.X) and self.n_fixed == 1:  # zeros that are never written take no memory
            self.X = np.zeros_like(self.X)
            self.design = Dense(self.X, 1)
        self.share, self.stiffness = np.zeros(self.first[-1] - self.first[0]), np.zeros(K)
        if several:
            weight = self.weight if self.weight.size else np.ones(self.n_data)
            self.stiffness[places == FURTHER] = self._typical_curvature(weight)
            for k in np.flatnonzero(places == FURTHER):
                rows = np.bincount(self.level[:, k] - self.first[k], weight, self.first[k + 1] - self.first[k])
                self.share[self.of_column(k)] = rows / rows.sum()

    def of_column(self, k: int) -> slice:
        """The coefficients of group column k, among those of all."""
        return slice(self.first[k] - self.first[0], self.first[k + 1] - self.first[0])

    def groupings(self) -> list[range]:
        """The group columns of each grouping."""
        return [range(k, self.end[k]) for k in np.unique(self.head)]

    def _typical_curvature(self, weight):
        """Σᵢ |ℓᵢ''| by the linear predictor, where the model begins."""
        a, c = (*self.initial[self.dim - self.n_dispersions :], 0.0, 0.0)[:2]
        found = 0.0
        for s in pieces(self.y[:, None]):
            y, given = self.target[s], [values[s] for values in self.given]
            z = self.initial[self.intercept] + (self.offset[s] if self.offset.size else np.zeros(len(y)))
            low, here, high = (
                self.likelihood.log_likelihood(z + h, y, a, c, given) for h in (-DIFFERENCE, 0.0, DIFFERENCE)
            )
            found += float(np.sum(weight[s] * np.abs(low - 2.0 * here + high))) / DIFFERENCE**2
        return found if np.isfinite(found) and found > 0.0 else float(weight.sum())

    @compiled
    def overall(self, x):
        """β₀."""
        total = 0.0
        for k in range(self.n_groups):
            if self.head[k] == k:
                total += x[self.means[k]]
        return total

    @compiled
    def gauge(self, x, k):
        """qₕ, of the grouping whose intercepts column k has."""
        total = 0.0
        if self.stiffness[k] > 0.0:
            for j in range(self.first[k], self.first[k + 1]):
                total += self.share[j - self.first[0]] * x[j]
        return total

    @compiled
    def mixed(self, x, k, q):
        """M; of correlated effects that of their independent parts."""
        return self.mixing[k, q] - x[self.lean] * self.mixing[q, q] if self.lean >= 0 and k < q else self.mixing[k, q]

    @compiled
    def deviation(self, x, k, g):
        """The effect of group g in column k, or its independent part, from the coefficients."""
        total = 0.0
        for q in range(k, self.end[k]):
            total += self.mixed(x, k, q) * (x[self.first[q] + g] - x[self.means[q]])
        return total

    @compiled
    def argument(self, x, j):
        if self.lean >= 0 and j == self.n_fixed:
            return log_of_both(x[j], x[j + 1], x[self.lean])
        return self.overall(x) if j == self.means[0] else x[j]

    @compiled
    def prior_potential(self, x):
        total, s = self.independent_potential(x), self.n_fixed
        if self.lean >= 0:
            total += (2.0 * self.eta + 1.0) * self.argument(x, s) - 2.0 * self.eta * x[s] - x[s + 1]
        for k in range(self.n_groups):
            s, gauge = x[self.n_fixed + k], self.gauge(x, k)
            precision = exp(-2.0 * s)
            for g in range(self.first[k + 1] - self.first[k]):
                u = self.deviation(x, k, g)
                total += 0.5 * precision * (u * u) + s
            total += 0.5 * self.stiffness[k] * (gauge * gauge)
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        self.add_independent_gradient(x, out)
        j, s = self.means[0], self.n_fixed
        if self.lean >= 0:
            wide = self.argument(x, s)
            rise = self.derivative_of_prior(s, wide)
            share, by_lean = shares_of_both(x[s], x[s + 1], x[self.lean])
            out[s] -= rise  # that prior is not of this coordinate
            rise += 2.0 * self.eta + 1.0
            out[s] += share * rise - 2.0 * self.eta
            out[s + 1] += (1.0 - share) * rise - 1.0
            out[self.lean] += by_lean * rise
        for k in range(self.n_groups):
            if k > 0 and self.head[k] == k:
                out[self.means[k]] += self.derivative_of_prior(j, self.overall(x))
            precision, gauge = exp(-2.0 * x[self.n_fixed + k]), self.stiffness[k] * self.gauge(x, k)
            for g in range(self.first[k + 1] - self.first[k]):
                u = self.deviation(x, k, g)
                out[self.n_fixed + k] += 1.0 - precision * (u * u)
                out[self.first[k] + g] += gauge * self.share[self.first[k] - self.first[0] + g]
                for q in range(k, self.end[k]):
                    pull = self.mixed(x, k, q) * precision * u
                    out[self.first[q] + g] += pull
                    out[self.means[q]] -= pull
                    if self.lean >= 0 and k < q:
                        out[self.lean] -= precision * u * self.deviation(x, q, g)

    def mixing_at(self, x: np.ndarray) -> np.ndarray:
        """M, (K, K); of correlated effects that of their independent parts."""
        found = self.mixing.copy()
        if self.lean >= 0:
            found[0, 1] -= x[self.lean] * found[1, 1]
        return found

    def effect_precision(self, x: np.ndarray, k: int) -> float:
        """Of the prior of one coefficient of group column k, all others given."""
        return float(self.mixing_at(x)[:, k] ** 2 @ np.exp(-2.0 * x[self.n_fixed : self.n_fixed + self.n_groups]))

    def omitted(self) -> float:
        """See `Derived.omitted`: effects are M times coefficients, and of means beside the first a gauge is normal."""
        sizes, stiff = np.diff(self.first), self.stiffness[self.stiffness > 0.0]
        moved = float(sizes @ np.log(np.abs(np.diag(self.mixing))))
        if self.lean >= 0:  # whose potential is 2 η log cosh w here
            moved -= log_mass(*LKJ(self.eta).coded()) + 2.0 * self.eta * math.log(2.0)
        return super().omitted() + moved - 0.5 * float(np.log(math.tau / stiff).sum())

    def as_effects(self) -> MixedRegression | None:
        """`MixedRegression` of the same law; None for rows in files, and for correlated effects."""
        return None if self.lean >= 0 else self.as_independent()

    def as_independent(self) -> MixedRegression | None:
        """The same without a correlation; None for rows in files, which have coefficients of groups in them."""
        if self.coded is not None:
            return None
        other = MixedRegression.__new__(MixedRegression)
        other.__dict__.update(self.__dict__)
        X, other.value, last = np.array(self.X), self.value.copy(), int(self.first[-1])
        X[:, self.intercept] = 1.0
        for k in np.flatnonzero(self.head < np.arange(self.n_groups)):
            X[:, self.means[k]], other.value[:, k] = self.value[:, k], self.groups[k].value / self.group_scale[k]
        other.X, other.design = read_design(X)
        other.initial = np.r_[self.initial[:last], self.initial[self.dim - self.n_dispersions :]]
        other.initial[self.first[0] : last] = 0.0
        other.dim, other._further, other.centred = len(other.initial), (), np.zeros_like(self.centred)
        further = {f"standardised {name}" for name in self._further}
        other.variables = {name: shape for name, shape in self.variables.items() if name not in further}
        return other

    def unconstrained(self, natural: Mapping[str, ArrayLike]) -> np.ndarray:
        """x (..., dim) of natural parameters, where the gauges are 0, as these do not say what they are."""
        x, inverse = super().unconstrained(natural), np.linalg.inv(self.mixing)
        for columns in self.groupings()[::-1]:  # the first mean makes the sum of all β₀
            own, k, part = slice(self.first[columns[0]], self.first[columns[-1] + 1]), columns[0], list(columns)
            effects = x[..., own].reshape(*x.shape[:-1], len(columns), -1)
            effects = inverse[np.ix_(part, part)] @ effects
            if self.stiffness[k] > 0.0:
                x[..., self.means[k]] = -(effects[..., 0, :] @ self.share[self.of_column(k)])
                x[..., self.means[0]] -= x[..., self.means[k]]
            x[..., own] = (effects + x[..., self.means[part], None]).reshape(*x.shape[:-1], -1)
        if self.lean >= 0:
            s, r = self.n_fixed, np.asarray(natural[self.correlation_name], float)
            x[..., self.lean] = r * np.exp(x[..., s] - x[..., s + 1])
            x[..., s] += 0.5 * np.log1p(-r * r)
        return x

    @property
    def correlation_name(self) -> str:
        """What the correlation is called."""
        return f"cor({self.groups[0].label}, {self.groups[1].label}|{self.groups[0].grouping})"

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        """Natural parameters of draws of x (..., dim), as of `MixedRegression`: effects, not coefficients."""
        draws = np.array(real("draws", draws))
        if draws.shape[-1:] == (self.dim,):
            for columns in self.groupings():
                own, part = slice(self.first[columns[0]], self.first[columns[-1] + 1]), list(columns)
                away = draws[..., own].reshape(*draws.shape[:-1], len(columns), -1) - draws[..., self.means[part], None]
                draws[..., own] = (self.mixing[np.ix_(part, part)] @ away).reshape(*draws.shape[:-1], -1)
            draws[..., self.intercept] = draws[..., self.means[self.head == np.arange(self.n_groups)]].sum(axis=-1)
        if draws.shape[-1:] != (self.dim,) or self.lean < 0:
            return super().constrain(draws)
        s, slope = self.n_fixed, draws[..., self.lean]
        with np.errstate(divide="ignore"):
            draws[..., s] = 0.5 * np.logaddexp(2.0 * draws[..., s], 2.0 * (draws[..., s + 1] + np.log(np.abs(slope))))
        found, both = super().constrain(draws), slope * np.exp(draws[..., s + 1] - draws[..., s])
        before = [*self.columns, *(g.sd_name for g in self.groups)]
        return {name: found.pop(name) for name in before} | {self.correlation_name: both} | found


@inlined
def log_of_both(s, t, slope):
    """log τ₀ of correlated effects, from s, log τ₁ and φ."""
    q = slope * exp(t - s)
    return s + 0.5 * math.log(1.0 + q * q)


@inlined
def shares_of_both(s, t, slope):
    """Derivatives of that by s, 1 - r², and by φ; that by log τ₁ is r²."""
    width = exp(t - s)
    q = slope * width
    share = 1.0 / (1.0 + q * q)
    return share, share * q * width


def means_of(groups: Sequence[GroupColumn], intercept: int | None, columns: Sequence[str]) -> np.ndarray | None:
    """Of group columns the places of the fixed ones that are their means, or None where there are none.

    Of the intercepts of every grouping but the first it is `FURTHER`: their means are coordinates of their own.
    """
    names, of = [g.label for g in groups], [g.grouping for g in groups]
    heads = [k for k, name in enumerate(of) if k == 0 or name != of[k - 1]]
    slopes = [name for k, name in enumerate(names) if k not in heads]
    if intercept is None or not names or len(heads) > len(set(of)) or any(names[k] != "1" for k in heads):
        return None
    if any(name not in columns for name in slopes) or len(set(slopes)) < len(slopes) or "1" in slopes:
        return None
    places = [FURTHER if k in heads else list(columns).index(name) for k, name in enumerate(names)]
    return np.array([intercept, *places[1:]], dtype=np.int64)
