"""Poisson matrix factorisation: counts, positive factors with Gamma priors, everything on the logarithmic scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.factorisations.factorisation import Factorisation
from pdmp.models.transforms import Log
from pdmp.native.arguments import positive, same_rows
from pdmp.native.classes import compiled, inlined, vectorised
from pdmp.native.vectors import exp


@vectorised
def _rate(x, a, b, rank):
    total = 0.0
    for k in range(rank):
        total += exp(x[a + k] + x[b + k])
    return total


@vectorised
def _slope_along(x, v, a, b, rank):
    total = 0.0
    for k in range(rank):
        total += exp(x[a + k] + x[b + k]) * (v[a + k] + v[b + k])
    return total


@vectorised
def _add_slopes(x, a, b, rank, weight, out):
    for k in range(rank):
        g = weight * exp(x[a + k] + x[b + k])
        out[a + k] += g
        out[b + k] += g


@vectorised
def _add_slopes_and_squares(x, a, b, rank, weight, out, squares):
    for k in range(rank):
        g = weight * exp(x[a + k] + x[b + k])
        out[a + k] += g
        out[b + k] += g
        squares[a + k] += g * g
        squares[b + k] += g * g


@vectorised
def _sums(x, first, rank):
    """Σₖ e^x and Σₖ x over one row of factors."""
    total, logs = 0.0, 0.0
    for k in range(rank):
        total += exp(x[first + k])
        logs += x[first + k]
    return total, logs


@vectorised
def _add_row_gradient(x, first, rank, shape, rate, out):
    """Add the gradient of Σₖ rate e^x - shape x to `out`; returns Σₖ e^x."""
    total = 0.0
    for k in range(rank):
        factor = exp(x[first + k])
        out[first + k] += rate * factor - shape
        total += factor
    return total


@inlined
def _power(log):
    """e^log; a log beyond the range of doubles gives infinity or zero."""
    return math.exp(log) if log < 709.0 else math.inf


class PPMF(Factorisation):
    r"""Posterior of counts R_ij ~ Poisson(θ_i·β_j) on the observed pairs (i, j) alone.

        θ_ik ~ Gamma(user_shape, rate ε_i),   ε_i ~ Gamma(activity_shape, rate activity_shape / activity_mean),
        β_jk ~ Gamma(item_shape, rate ν_j),   ν_j ~ Gamma(popularity_shape, rate popularity_shape / popularity_mean).

    All are sampled on the logarithmic scale, x = (log θ, log β, log ε, log ν), with its Jacobian: the log density is

        Σ_obs [R log(θ·β) - θ·β - log R!] + Σ_ik [a log ε_i + a log θ_ik - ε_i θ_ik] + Σᵢ [a' log ε_i - (a'/b') ε_i]

    and the same for β and ν, a and a' the two shapes of users and b' the mean. So, U the potential and K the rank,

        ∂U/∂log θ_ik = ε_i θ_ik - a - θ_ik Σⱼ (R_ij / (θ_i·β_j) - 1) β_jk,
        ∂U/∂log ε_i  = ε_i (Σₖ θ_ik + a'/b') - K a - a'.

    Permutations of the columns leave U as it is. `initial` has nearly equal factors that give the mean count, and
    the best ε and ν for these. A step costs what `pdmp.models.factorisations.factorisation` says: the batch, and some
    passes over `dim` numbers, with one exponential for each.

    Parameters
    ----------
    users, items, ratings, n_users, n_items
        As in `MatrixFactorization`: who rated what, and rows of θ and β. Ratings are counts, whole numbers from 0.
    rank : int, default 100
        Number of factors K.
    user_shape, item_shape : float, default 0.3
        a and c of [1]_.
    activity_shape, popularity_shape : float, default 0.3
        a' and c' of [1]_.
    activity_mean, popularity_mean : float, default 1.0
        Prior means of ε and ν: b' and d' of [1]_.

    Attributes
    ----------
    data : ndarray, shape (N,)
        Records ``user``, ``item``, ``rating``, twelve bytes each.

    Raises
    ------
    ValueError
        As `MatrixFactorization`, and if a rating is not a whole number from 0, or another number is not positive.

    References
    ----------
    .. [1] Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS,
       supplement A.4.5; Gopalan, Hofman & Blei (2015), Scalable recommendation with hierarchical Poisson
       factorization, UAI.

    Examples
    --------
    >>> import pdmp
    >>> users, items, ratings = [0, 0, 1, 2], [0, 1, 1, 0], [4.0, 3.0, 5.0, 2.0]
    >>> list(pdmp.models.PPMF(users, items, ratings, rank=2).variables)
    ['theta', 'beta', 'epsilon', 'nu']
    """

    columns: int
    user_shape: float
    item_shape: float
    activity_shape: float
    popularity_shape: float
    activity_rate: float
    popularity_rate: float

    def __init__(
        self,
        users: ArrayLike,
        items: ArrayLike,
        ratings: ArrayLike,
        rank: int = 100,
        n_users: int | None = None,
        n_items: int | None = None,
        user_shape: float = 0.3,
        item_shape: float = 0.3,
        activity_shape: float = 0.3,
        popularity_shape: float = 0.3,
        activity_mean: float = 1.0,
        popularity_mean: float = 1.0,
    ) -> None:
        def others(model):
            return {"epsilon": (model.n_users,), "nu": (model.n_items,)}

        transforms = {name: Log() for name in ("theta", "beta", "epsilon", "nu")}
        super().__init__(
            users, items, ratings, rank, n_users, n_items, ("theta", "beta"), others, transforms=transforms
        )
        _check_counts(ratings)
        self.columns = self.n_items
        self.user_shape = positive("user_shape", user_shape)
        self.item_shape = positive("item_shape", item_shape)
        self.activity_shape = positive("activity_shape", activity_shape)
        self.popularity_shape = positive("popularity_shape", popularity_shape)
        self.activity_rate = self.activity_shape / positive("activity_mean", activity_mean)
        self.popularity_rate = self.popularity_shape / positive("popularity_mean", popularity_mean)
        rng, (t, b) = np.random.default_rng(0), self.tables(self.initial)
        level = 0.5 * math.log(max(float(self.data["rating"].mean(dtype=float)), 0.1) / self.rank)
        t[:], b[:] = level + 0.1 * rng.standard_normal(t.shape), level + 0.1 * rng.standard_normal(b.shape)
        start = self.rank * (self.n_users + self.n_items)
        for table, shape, own, rate in (
            (t, self.user_shape, self.activity_shape, self.activity_rate),
            (b, self.item_shape, self.popularity_shape, self.popularity_rate),
        ):
            best = (self.rank * shape + own) / (np.exp(table).sum(axis=1) + rate)
            self.initial[start : start + len(table)] = np.log(best)
            start += len(table)

    @compiled
    def combined(self, x, a, b):
        return _rate(x, a, b, self.rank)

    @compiled
    def slope_along(self, x, v, a, b):
        return _slope_along(x, v, a, b, self.rank)

    @compiled
    def add_slopes(self, x, a, b, weight, out):
        _add_slopes(x, a, b, self.rank, weight, out)

    @compiled
    def add_slopes_and_squares(self, x, a, b, weight, out, squares):
        _add_slopes_and_squares(x, a, b, self.rank, weight, out, squares)

    @compiled
    def derivative(self, x, a, b, k):
        return exp(x[a + k] + x[b + k])

    @compiled
    def misfit(self, r, rating):
        """r - R log r, without log R!."""
        return r - rating * math.log(r) if rating > 0.0 else r

    @compiled
    def misfit_slope(self, r, rating):
        return 1.0 - rating / r

    @compiled
    def table(self, j):
        """Of row j of both tables: its shape, and shape and rate of its own rate."""
        if j < self.rows:
            return self.user_shape, self.activity_shape, self.activity_rate
        return self.item_shape, self.popularity_shape, self.popularity_rate

    @compiled
    def prior_potential(self, x):
        rows, total = self.rows + self.columns, 0.0
        for j in range(rows):
            shape, own, rate = self.table(j)
            log = x[rows * self.rank + j]
            factors, logs = _sums(x, j * self.rank, self.rank)
            total += _power(log) * (factors + rate) - shape * logs - (self.rank * shape + own) * log
        return total

    @compiled
    def add_prior_gradient(self, x, out):
        rows = self.rows + self.columns
        for j in range(rows):
            shape, own, rate = self.table(j)
            place = rows * self.rank + j
            epsilon = _power(x[place])
            factors = _add_row_gradient(x, j * self.rank, self.rank, shape, epsilon, out)
            out[place] += epsilon * (factors + rate) - self.rank * shape - own

    def _factors(self, x):
        return np.exp(x)

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        factors = np.exp(self.check(x))
        out = np.zeros(self.dim)
        (t, b), (ut, ub) = self.tables(factors), self.tables(out)
        ratings = self.data["rating"].astype(float)
        for piece, i, j in self._pieces(None, None):
            rate = np.einsum("nk,nk->n", t[i], b[j])
            for k in range(self.rank):
                q = t[i, k] * b[j, k]
                second = q + ratings[piece] * (q / rate) * (q / rate - 1.0)
                ut[:, k] += np.bincount(i, second, minlength=self.n_users)
                ub[:, k] += np.bincount(j, second, minlength=self.n_items)
        rates = factors[self.rank * (self.n_users + self.n_items) :]
        epsilon, nu = rates[: self.n_users], rates[self.n_users :]
        ut += epsilon[:, None] * t
        ub += nu[:, None] * b
        end = self.dim - self.n_items
        out[end - self.n_users : end] = epsilon * (t.sum(axis=1) + self.activity_rate)
        out[end:] = nu * (b.sum(axis=1) + self.popularity_rate)
        return out

    def log_likelihood(
        self,
        x: ArrayLike,
        users: ArrayLike | None = None,
        items: ArrayLike | None = None,
        ratings: ArrayLike | None = None,
        lowest: float = 0.0,
        highest: float = np.inf,
    ) -> np.ndarray:
        """Log probability of each count.

        Parameters
        ----------
        x, users, items, ratings : array_like
            As in `predict`; the data's own when omitted.
        lowest, highest : float
            Rates are clipped to these first: 1 and 5 for ratings of one to five stars.

        Returns
        -------
        ndarray, shape (..., n)

        Raises
        ------
        ValueError
            For numbers of users or items that the model does not have, or ratings that are no counts.
        """
        from scipy import special

        same_rows(users=users, items=items, ratings=ratings)
        counts = self._ratings_of(users, ratings)
        _check_counts(counts)
        rates = np.clip(self.predict(x, users, items), lowest, highest)
        return special.xlogy(counts, rates) - rates - special.gammaln(counts + 1.0)


def _check_counts(ratings):
    ratings = np.asarray(ratings)
    bad = np.flatnonzero((ratings < 0) | (ratings != np.floor(ratings)))
    if bad.size:
        raise ValueError(f"`ratings` must be counts, whole numbers from 0; the one at {bad[0]} is {ratings[bad[0]]}.")
