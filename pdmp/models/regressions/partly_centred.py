r"""Regressions with group effects whose coordinates are as far centred as the data say what each effect is.

`MixedRegression` has the effects u of a group column, with the law N(0, τ²) given τ, as they are (centred), or as u / τ
(not centred). Where the data know u much better than its prior does, u / τ has to move whenever τ does; where they know
it less, u is narrow where τ is small. With few groups τ may be either side of what the data know. Here, with the
information λ of the data on each, and their score b, of w = Qᵀu (`pdmp.models.regressions.group_information`),

    u = Q [h (ξ + h b)],     h = (λ + τ⁻²)^-½,

where h is the standard deviation of w given τ, and h² b its mean: u / τ where the data say nothing, u √λ less a
constant where they say all, and what is between where they are between, at every τ. So in as much as the likelihood of
the effects is normal, ξ is standard normal given τ, whatever τ is. Q has the eigenvectors of the information where
groups are few: of the common mean of all effects the data know nothing that they do not know of the intercept. And the
coefficients of the fixed columns move as β + C u, which the data know whatever u is.

In the place of log τ stands θ, see `pdmp.models.regressions.spread_coordinate`.

The law of β, τ and u is that of `MixedRegression` for all λ, b, Q and C; they decide how hard it is to sample.

References
----------
Papaspiliopoulos, Roberts & Sköld (2007), A general framework for the parametrization of hierarchical models, Statist.
Sci. 22, section 4 (partially non-centred parametrisations; here the share of centring depends on τ). Gorinova, Moore &
Hoffman (2020), Automatic reparameterisation of probabilistic programs, ICML.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.regressions.group_information import GroupInformation
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.models.regressions.moved_coordinates import MovedRows
from pdmp.models.regressions.spread_coordinate import (
    coordinate_of,
    log_rise_derivative,
    log_spread,
    log_spreads,
    middle_of,
    rise,
)
from pdmp.native.arguments import real
from pdmp.native.classes import compiled
from pdmp.native.vectors import exp

LARGEST_LOG = 300.0  #: of τ, so that its square is a number


class PartlyCentred(MovedRows, MixedRegression):
    """`MixedRegression` with the state x = (β + C u, θ, ξ, a, c).

    Parameters
    ----------
    model : MixedRegression
        With groups; in memory or in files.
    found : GroupInformation
    """

    information: np.ndarray  #: λ, (effects,)
    score: np.ndarray  #: b, (effects,)
    middle: np.ndarray  #: (K,) log τ - g(θ)
    shear: np.ndarray  #: C, (p, effects)
    rotation: np.ndarray  #: (G, …) Qₖ side by side, of columns that have one
    rotated: np.ndarray  #: (K,) where that of column k begins; -1: it is the identity

    def __init__(self, model: MixedRegression, found: GroupInformation) -> None:
        self.__dict__.update(model.__dict__)
        model.centred = self.centred = np.ones(len(model.groups), np.int64)
        self.base = model
        self.information, self.score, self.shear = found.information, found.score, np.ascontiguousarray(found.shear)
        widths = [0 if q is None else len(q) for q in found.rotations]
        self.rotated = np.where(np.array(widths) > 0, np.cumsum([0, *widths[:-1]]), -1)
        self.rotation = np.zeros((max(widths), sum(widths)))
        for q, begin in zip(found.rotations, self.rotated, strict=True):
            if q is not None:
                self.rotation[: len(q), begin : begin + len(q)] = q
        # Where the information was found ξ is 0.
        p, effects = self.n_fixed, slice(self.first[0], self.first[-1])
        self.initial = found.mean.copy()
        spreads = found.mean[p : self.first[0]]
        parts = np.split(self.information, (self.first - self.first[0])[1:-1])
        self.middle = np.array([middle_of(t, part) for t, part in zip(spreads, parts, strict=True)])
        self.initial[p : self.first[0]] = [coordinate_of(t) for t in spreads - self.middle]
        renamed = {f"log {g.sd_name}": f"standardised {g.sd_name}" for g in self.groups}
        self.variables = {renamed.get(name, name): shape for name, shape in model.variables.items()}
        self.initial[:p] += self.shear @ found.mean[effects]
        self.initial[effects] = 0.0

    # -- compiled: there and back -----------------------------------------------------------------------------------

    @compiled
    def log_spread_of(self, x, k):
        """log τₖ."""
        return min(self.middle[k] + log_spread(x[self.n_fixed + k]), LARGEST_LOG)

    @compiled
    def square_spread(self, x, k):
        """τₖ²."""
        return exp(2.0 * self.log_spread_of(x, k))

    @compiled(inline=False)
    def natural(self, x, y):
        """Write (β, log τ, u, a, c) into y."""
        for j in range(self.dim):
            y[j] = x[j]
        begin = self.first[0]
        for k in range(self.n_groups):
            square, start, groups = self.square_spread(x, k), self.rotated[k], self.first[k + 1] - self.first[k]
            y[self.n_fixed + k] = self.log_spread_of(x, k)
            if start >= 0:
                for g in range(groups):
                    y[self.first[k] + g] = 0.0
            for g in range(groups):
                j = self.first[k] + g
                h = math.sqrt(square / (1.0 + self.information[j - begin] * square))
                w = h * (x[j] + h * self.score[j - begin])
                if start >= 0:
                    for m in range(groups):
                        y[self.first[k] + m] += self.rotation[m, start + g] * w
                else:
                    y[j] = w
        for j in range(self.n_fixed):
            total = 0.0
            for e in range(self.shear.shape[1]):
                total += self.shear[j, e] * y[begin + e]
            y[j] -= total
        return 0.0

    @compiled(inline=False)
    def pull_back(self, x, y, by_natural, of_effects, out):
        """Add the derivatives by x of what has the derivatives `by_natural` by (β, log τ, u, a, c), which change."""
        begin, end = self.first[0], self.first[self.n_groups]
        for j in range(self.n_fixed):
            out[j] += by_natural[j]
            for e in range(self.shear.shape[1]):
                by_natural[begin + e] -= self.shear[j, e] * by_natural[j]
        for j in range(end, self.dim):
            out[j] += by_natural[j]
        for k in range(self.n_groups):
            square, start, groups = self.square_spread(x, k), self.rotated[k], self.first[k + 1] - self.first[k]
            total = by_natural[self.n_fixed + k]
            for g in range(groups):
                j = self.first[k] + g
                slope = by_natural[j]
                if start >= 0:
                    slope = 0.0
                    for m in range(groups):
                        slope += self.rotation[m, start + g] * by_natural[self.first[k] + m]
                share = 1.0 / (1.0 + self.information[j - begin] * square)
                h = math.sqrt(square * share)
                out[j] += h * slope
                total += slope * h * share * (x[j] + 2.0 * h * self.score[j - begin])
            out[self.n_fixed + k] += total * rise(x[self.n_fixed + k])

    # -- compiled: the prior ----------------------------------------------------------------------------------------

    @compiled(inline=False)
    def prior_at(self, x, y):
        """The prior, y being (β, log τ, u, a, c)."""
        total = self.independent_potential(y)
        for k in range(self.n_groups):
            square = self.square_spread(x, k)
            total -= math.log(rise(x[self.n_fixed + k]))
            for j in range(self.first[k], self.first[k + 1]):
                e = j - self.first[0]
                ratio = self.information[e] * square
                z = x[j] + math.sqrt(square / (1.0 + ratio)) * self.score[e]
                total += 0.5 * (z * z / (1.0 + ratio) + math.log1p(ratio))
        return total

    @compiled(inline=False)
    def add_prior_slopes(self, x, y, by_natural, out):
        """Add the gradient of that: by β, log τ, a and c to `by_natural`, what effects add to `out`."""
        self.add_independent_gradient(y, by_natural)
        for k in range(self.n_groups):
            square, total = self.square_spread(x, k), 0.0
            for j in range(self.first[k], self.first[k + 1]):
                e = j - self.first[0]
                ratio = self.information[e] * square
                share = 1.0 / (1.0 + ratio)
                away = math.sqrt(square * share) * self.score[e]
                z = x[j] + away
                out[j] += share * z
                total += share * (ratio + z * (share * away - ratio * share * z))
            theta = x[self.n_fixed + k]
            out[self.n_fixed + k] += total * rise(theta) - log_rise_derivative(theta)

    @compiled
    def total_rise(self, x, y):
        return self.total_potential(y) - self.total_potential(x)

    # -- Python -----------------------------------------------------------------------------------------------------

    def centring(self) -> list[str]:
        at = np.exp(2.0 * (self.middle + log_spreads(self.initial[self.n_fixed : int(self.first[0])])))
        said = []
        for k, square in enumerate(at):
            known = square * self.information[self.first[k] - self.first[0] : self.first[k + 1] - self.first[0]]
            said.append(f"partly centred, half of them by {100.0 * np.median(known / (1.0 + known)):.0f} % or more")
        return said

    def some_rows(self, rows: np.ndarray) -> PartlyCentred:
        other = super().some_rows(rows)
        other.base = self.base.some_rows(rows)
        return other

    def centred_draws(self, draws: ArrayLike) -> np.ndarray:
        """Draws of (β, log τ, u, a, c), (..., dim), from those of x."""
        draws = np.array(real("draws", draws))
        if draws.shape[-1:] != (self.dim,):
            raise ValueError(f"`draws` must have shape (..., {self.dim}), got {draws.shape}.")
        for k in range(self.n_groups):
            part, e = slice(self.first[k], self.first[k + 1]), slice(*(self.first[k : k + 2] - self.first[0]))
            t = np.minimum(self.middle[k] + log_spreads(draws[..., self.n_fixed + k]), LARGEST_LOG)
            draws[..., self.n_fixed + k], square = t, np.exp(2.0 * t[..., None])
            h = np.sqrt(square / (1.0 + self.information[e] * square))
            u = h * (draws[..., part] + h * self.score[e])
            if self.rotated[k] >= 0:
                groups = u.shape[-1]
                u = u @ self.rotation[:groups, self.rotated[k] : self.rotated[k] + groups].T
            draws[..., part] = u
        draws[..., : self.n_fixed] -= draws[..., self.first[0] : self.first[-1]] @ self.shear.T
        return draws

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        return super().constrain(self.centred_draws(draws))

    def margins(self, draws: ArrayLike) -> np.ndarray:
        return super().margins(self.centred_draws(draws))
