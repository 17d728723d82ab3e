r"""Posteriors with effects that are no linear functions of what has a simple law: Gaussian processes, monotonic ones.

The rows of a model are linear in effects a, which a state x has others in the place of, with independent priors: U(x) =
prior(x) + rows(a(x)), and no Jacobian.

- Of a Gaussian process with a squared exponential kernel, sd e^t and length scale e^r, by functions of a Hilbert space
  with the eigenvalues λ [1]_: aⱼ = e^t (2π)^¼ e^(r/2) exp(-¼ λⱼ e^2r) zⱼ, zⱼ ~ N(0, 1).
- Of a monotonic effect [2]_ with D steps, b on average: aᵢ = b D e^wᵢ / Σ e^w. With e^w ~ Gamma(1), the shares of
  the steps are uniform on their simplex.

References
----------
.. [1] Riutort-Mayol, Bürkner, Andersen, Solin & Vehtari (2023), Practical Hilbert space approximate Bayesian Gaussian
   processes for probabilistic programming, Stat. Comput. 33, eq. 1 and 8.
.. [2] Bürkner & Charpentier (2020), Modelling monotonic effects of ordinal predictors in Bayesian regression models,
   Br. J. Math. Stat. Psychol. 73, eq. 1.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.native.classes import Compiled, compiled

LARGEST_LOG = 300.0  #: of standard deviations and length scales, so that their squares are numbers


class Curved(NamedTuple):
    """Effects that are made of others: coordinates of the model."""

    effects: np.ndarray  #: (K,) of a, in x of z or w
    spread: int  #: of t, or b
    length: int  #: of r; -1 of a monotonic effect
    eigenvalues: np.ndarray  #: (K,) λ; zeros of a monotonic effect


class CurvedEffects(Model):
    """A posterior whose state has z or w in the place of some effects.

    Parameters
    ----------
    base : SumOfTerms
        Of effects a, whose priors in it are those of z or w.
    sets : sequence of Curved
    """

    base: Compiled
    first: np.ndarray  #: (sets + 1,) where the entries of a set begin
    coordinate: np.ndarray
    eigenvalue: np.ndarray
    spread: np.ndarray  #: (sets,)
    length: np.ndarray  #: (sets,)

    def __init__(self, base: SumOfTerms, sets: Sequence[Curved]) -> None:
        self.base, self.sets = base, list(sets)
        self.first = np.cumsum([0, *(len(one.effects) for one in sets)]).astype(np.int64)
        self.coordinate = np.concatenate([one.effects for one in sets]).astype(np.int64)
        self.eigenvalue = np.concatenate([one.eigenvalues for one in sets]).astype(float)
        self.spread = np.array([one.spread for one in sets], np.int64)
        self.length = np.array([one.length for one in sets], np.int64)
        super().__init__(
            dim=base.dim,
            n_data=base.n_data,
            variables=base.variables,
            initial=np.array(base.initial),
            transforms=base.transforms,
        )

    # -- compiled -----------------------------------------------------------------------------------------------------

    @compiled(inline=False)
    def natural(self, x, y):
        """Write x with effects into y."""
        for j in range(self.dim):
            y[j] = x[j]
        for k in range(self.spread.shape[0]):
            begin, stop, r = self.first[k], self.first[k + 1], self.length[k]
            if r >= 0:
                scale = min(x[r], LARGEST_LOG)
                spread = min(x[self.spread[k]] + 0.25 * math.log(2.0 * math.pi) + 0.5 * scale, LARGEST_LOG)
                square = 0.25 * math.exp(2.0 * scale)
                for i in range(begin, stop):
                    y[self.coordinate[i]] = math.exp(spread - self.eigenvalue[i] * square) * x[self.coordinate[i]]
            else:
                largest, total = -math.inf, 0.0
                for i in range(begin, stop):
                    largest = max(largest, x[self.coordinate[i]])
                for i in range(begin, stop):
                    y[self.coordinate[i]] = math.exp(x[self.coordinate[i]] - largest)
                    total += y[self.coordinate[i]]
                for i in range(begin, stop):
                    y[self.coordinate[i]] *= x[self.spread[k]] * (stop - begin) / total

    @compiled(inline=False, allocates=True)
    def pull_back(self, x, y, by_natural, out):
        """Add the derivatives by x of what has the derivatives `by_natural`, which change, by y(x)."""
        for k in range(self.spread.shape[0]):
            begin, stop, r, along = self.first[k], self.first[k + 1], self.length[k], 0.0
            for i in range(begin, stop):
                along += by_natural[self.coordinate[i]] * y[self.coordinate[i]]
            if r >= 0:
                scale = min(x[r], LARGEST_LOG)
                spread = min(x[self.spread[k]] + 0.25 * math.log(2.0 * math.pi) + 0.5 * scale, LARGEST_LOG)
                square = 0.25 * math.exp(2.0 * scale)
                by_natural[self.spread[k]] += along
                for i in range(begin, stop):
                    j = self.coordinate[i]
                    by_natural[r] += by_natural[j] * y[j] * (0.5 - 2.0 * self.eigenvalue[i] * square)
                    by_natural[j] *= math.exp(spread - self.eigenvalue[i] * square)
            else:
                largest, total, slope = -math.inf, 0.0, 0.0
                for i in range(begin, stop):
                    largest = max(largest, x[self.coordinate[i]])
                for i in range(begin, stop):
                    total += math.exp(x[self.coordinate[i]] - largest)
                for i in range(begin, stop):
                    j = self.coordinate[i]
                    share = math.exp(x[j] - largest) / total
                    slope += by_natural[j] * share
                    by_natural[j] = by_natural[j] * y[j] - share * along
                by_natural[self.spread[k]] += slope * (stop - begin)
        for j in range(self.dim):
            out[j] += by_natural[j]

    @compiled
    def prior_potential(self, x):
        return self.base.prior_potential(x)

    @compiled
    def add_prior_gradient(self, x, out):
        self.base.add_prior_gradient(x, out)

    @compiled(inline=False, allocates=True)
    def term_potential(self, x, i):
        y = np.empty(self.dim)
        self.natural(x, y)
        return self.base.term_potential(y, i)

    @compiled(inline=False, allocates=True)
    def add_term_gradient(self, x, i, out):
        y, by_natural = np.empty(self.dim), np.zeros(self.dim)
        self.natural(x, y)
        self.base.add_term_gradient(y, i, by_natural)
        self.pull_back(x, y, by_natural, out)

    @compiled(inline=False, allocates=True)
    def total_potential(self, x):
        y = np.empty(self.dim)
        self.natural(x, y)
        return self.base.prior_potential(x) + self.base.block_potential(y, 0, self.n_data)

    @compiled(inline=False, allocates=True)
    def block_potential(self, x, first, last):
        y = np.empty(self.dim)
        self.natural(x, y)
        return self.base.block_potential(y, first, last)

    @compiled(inline=False, allocates=True)
    def add_block_gradient(self, x, first, last, out):
        y, by_natural = np.empty(self.dim), np.zeros(self.dim)
        self.natural(x, y)
        self.base.add_block_gradient(y, first, last, by_natural)
        self.pull_back(x, y, by_natural, out)

    @compiled(inline=False, allocates=True)
    def add_batch_gradient(self, x, rows, n, out):
        y, by_natural = np.empty(self.dim), np.zeros(self.dim)
        self.natural(x, y)
        self.base.add_batch_gradient(y, rows, n, by_natural)
        self.pull_back(x, y, by_natural, out)

    # -- Python -------------------------------------------------------------------------------------------------------

    def natural_draws(self, draws: ArrayLike) -> np.ndarray:
        """Draws with effects, (..., dim), from draws of x."""
        draws = np.asarray(draws, dtype=float)
        if draws.shape[-1:] != (self.dim,):
            raise ValueError(f"`draws` must have shape (..., {self.dim}), got {draws.shape}.")
        y = draws.copy()
        for one in self.sets:
            inside = draws[..., one.effects]
            if one.length >= 0:
                y[..., one.effects] = inside * self._spreads(one, draws)
            else:
                shares = np.exp(inside - inside.max(axis=-1, keepdims=True))
                shares /= shares.sum(axis=-1, keepdims=True)
                y[..., one.effects] = draws[..., [one.spread]] * len(one.effects) * shares
        return y

    def coordinates(self, natural: ArrayLike) -> np.ndarray:
        """x (..., dim) of what `natural_draws` gives, steps with a mean of e^w of 1."""
        x = np.array(natural, dtype=float)
        for one in self.sets:
            inside = x[..., one.effects]
            if one.length >= 0:
                x[..., one.effects] = inside / np.maximum(self._spreads(one, x), 1e-300)
            else:
                ratio = inside / np.where(x[..., [one.spread]] == 0.0, 1.0, x[..., [one.spread]])
                x[..., one.effects] = np.log(np.maximum(ratio, 1e-300))
        return x

    def _spreads(self, one, x):
        r = np.minimum(x[..., [one.length]], LARGEST_LOG)
        spread = x[..., [one.spread]] + 0.25 * math.log(2.0 * math.pi) + 0.5 * r
        return np.exp(np.minimum(spread, LARGEST_LOG) - 0.25 * one.eigenvalues * np.exp(2.0 * r))

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient of the sum of all terms, and its Hessian but for curvature of effects, that is with them linear."""
        y = self.natural_draws(x)
        gradient, hessian = self.base.data_sums(y)
        jacobian = np.zeros((self.dim, self.dim))
        for j in range(self.dim):  # of a row of the derivatives of y by x
            self.pull_back(x, y, np.eye(self.dim)[j], jacobian[j])
        return gradient @ jacobian, jacobian.T @ hessian @ jacobian

    @property
    def kinds(self) -> np.ndarray:
        """Of the priors, see `SumOfTerms`."""
        return self.base.kinds

    @property
    def numbers(self) -> np.ndarray:
        """Of the priors."""
        return self.base.numbers

    @property
    def reported(self) -> Any:
        """How the coordinates of `base` are reported."""
        return self.base.reported

    @property
    def observed(self) -> list:
        """What is known of the responses."""
        return self.base.observed

    def observed_data(self) -> dict[str, np.ndarray]:
        return self.base.observed_data()

    def constrain(self, draws: ArrayLike) -> dict[str, np.ndarray]:
        return self.base.constrain(self.natural_draws(draws))

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        """log p(y | x) of each row, (..., n) of draws (..., dim), with all constants."""
        return self.base.pointwise_log_likelihood(self.natural_draws(draws))

    def predict(self, x: ArrayLike, *, kind: str = "mean", seed: int | None = None) -> np.ndarray:
        """See `SumOfTerms.predict`."""
        return self.base.predict(self.natural_draws(x), kind=kind, seed=seed)

    def some_rows(self, rows: np.ndarray) -> CurvedEffects:
        """The same posterior of some of the rows alone, in ascending order."""
        other = copy.copy(self)
        other.base = self.base.some_rows(rows)
        other.n_data = other.base.n_data
        return other
