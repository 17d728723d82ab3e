"""Bayesian probabilistic matrix factorisation: Gaussian ratings, Gaussian factors whose means and precisions vary."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.factorisations.factorisation import GaussianFactorisation
from pdmp.models.transforms import Log, parts
from pdmp.native.arguments import positive
from pdmp.native.classes import allocating, compiled


@allocating
def _table_potential(x, first, rows, rank, mean, log, shape, rate):
    """Of a table of factors, its means at x[mean] and its log precisions at x[log]."""
    total = 0.0
    squares = np.zeros(rank)
    for i in range(rows):
        for k in range(rank):
            difference = x[first + i * rank + k] - x[mean + k]
            squares[k] += difference * difference
    for k in range(rank):
        precision, m = math.exp(x[log + k]), x[mean + k]
        total += precision * (rate + 0.5 * m * m + 0.5 * squares[k]) - (0.5 * (rows + 1) + shape) * x[log + k]
    return total


@allocating
def _add_table_gradient(x, first, rows, rank, mean, log, shape, rate, out):
    precision, means, sums, squares = np.empty(rank), np.empty(rank), np.zeros(rank), np.zeros(rank)
    for k in range(rank):
        precision[k], means[k] = math.exp(x[log + k]), x[mean + k]
    for i in range(rows):
        start = first + i * rank
        for k in range(rank):
            difference = x[start + k] - means[k]
            sums[k] += difference
            squares[k] += difference * difference
            out[start + k] += precision[k] * difference
    for k in range(rank):
        out[mean + k] -= precision[k] * (sums[k] - means[k])
        out[log + k] += precision[k] * (rate + 0.5 * means[k] * means[k] + 0.5 * squares[k]) - 0.5 * (rows + 1) - shape


class BPMF(GaussianFactorisation):
    r"""Posterior of ratings R_ij ~ N(U_i·V_j, 1/noise_precision) on the observed pairs (i, j).

    With λ = e^l, elementwise in the `rank` columns,

        U_i ~ N(μ_U, diag(λ_U)⁻¹),   μ_U ~ N(0, diag(λ_U)⁻¹),   λ_U ~ Gamma(shape, rate),

    and the same for V, μ_V, λ_V. The log precisions l are sampled; their Jacobian makes (shape - 1) l into shape · l.
    With e_ij = R_ij - U_i·V_j, M the number of users and the sum over the items j that user i rated,

        ∂U/∂U_i  = -noise_precision Σⱼ e_ij V_j + λ_U (U_i - μ_U),
        ∂U/∂μ_U  = -λ_U (Σᵢ U_i - (M + 1) μ_U),
        ∂U/∂l_U  = λ_U (rate + μ_U²/2 + Σᵢ (U_i - μ_U)²/2) - (M + 1)/2 - shape,

    U on the left the potential. In [2]_ the prior of the means is printed with the covariance diag(λ); it is the
    inverse, as in [1]_. One term for each rating.

    U → UQ, V → VQ with an orthogonal Q leaves the likelihood as it is, and permutations of the columns and their
    signs, together with those of the means, the posterior: compare predictions, not factors. Zero is a saddle;
    `initial` has small random factors, zero means, and for the log precisions their best value given these. A step
    costs what `pdmp.models.factorisations.factorisation` says: the batch, and some passes over `dim` numbers.

    Parameters
    ----------
    users, items, ratings, n_users, n_items
        As in `MatrixFactorization`: who rated what, and rows of U and V. Those that nobody rated, or only in data held
        out, keep their prior.
    rank : int
        Number of factors.
    noise_precision : float, default 3.0
        Of a rating.
    shape, rate : float, default 1.0 and 5.0
        Of the Gamma prior of the precisions, its mean being shape / rate; 1 and 5 in [1]_, 4 and 5 in [2]_.
    centre : bool, default True
        Whether the mean rating is taken off first; `predict` puts it on again.

    Attributes
    ----------
    data : ndarray, shape (N,)
        Records ``user``, ``item``, ``rating`` (less `offset`), twelve bytes each.
    offset : float
        The mean rating, 0.0 without `centre`.

    Raises
    ------
    ValueError
        As `MatrixFactorization`, and if another number is not positive.

    References
    ----------
    .. [1] Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS,
       section 5.3.
    .. [2] Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic gradient MCMC,
       Stat. Comput. 33, section 4.2.

    Examples
    --------
    >>> import pdmp
    >>> users, items, ratings = [0, 0, 1, 2], [0, 1, 1, 0], [4.0, 3.0, 5.0, 2.0]
    >>> list(pdmp.models.BPMF(users, items, ratings, rank=2).variables)
    ['U', 'V', 'mean_U', 'mean_V', 'precision_U', 'precision_V']
    """

    shape: float
    rate: float
    columns: int

    def __init__(
        self,
        users: ArrayLike,
        items: ArrayLike,
        ratings: ArrayLike,
        rank: int,
        n_users: int | None = None,
        n_items: int | None = None,
        noise_precision: float = 3.0,
        shape: float = 1.0,
        rate: float = 5.0,
        centre: bool = True,
    ) -> None:
        def others(model):
            names = ("mean_U", "mean_V", "precision_U", "precision_V")
            return {name: (model.rank,) for name in names}

        offset, transforms = None if centre else 0.0, {"precision_U": Log(), "precision_V": Log()}
        super().__init__(users, items, ratings, rank, n_users, n_items, ("U", "V"), others, offset, transforms)
        self.noise_precision = positive("noise_precision", noise_precision)
        self.shape, self.rate = positive("shape", shape), positive("rate", rate)
        self.columns = self.n_items
        rng, (u, v) = np.random.default_rng(0), self.tables(self.initial)
        u[:], v[:] = 0.3 * rng.standard_normal(u.shape), 0.3 * rng.standard_normal(v.shape)
        means = self.rank * (self.n_users + self.n_items)
        for place, table in ((2, u), (3, v)):
            best = (0.5 * (len(table) + 1) + self.shape) / (self.rate + 0.5 * np.sum(table**2, axis=0))
            self.initial[means + place * self.rank : means + (place + 1) * self.rank] = np.log(best)

    @compiled
    def prior_potential(self, x):
        k, v = self.rank, self.rank * self.rows
        mean = v + k * self.columns
        total = _table_potential(x, 0, self.rows, k, mean, mean + 2 * k, self.shape, self.rate)
        return total + _table_potential(x, v, self.columns, k, mean + k, mean + 3 * k, self.shape, self.rate)

    @compiled
    def add_prior_gradient(self, x, out):
        k, v = self.rank, self.rank * self.rows
        mean = v + k * self.columns
        _add_table_gradient(x, 0, self.rows, k, mean, mean + 2 * k, self.shape, self.rate, out)
        _add_table_gradient(x, v, self.columns, k, mean + k, mean + 3 * k, self.shape, self.rate, out)

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        x = self.check(x)
        out = self._data_curvatures(x)
        here, there = self.constrain(x), parts(out, self.variables)
        for name in "UV":
            table, mean = here[name], here[f"mean_{name}"]
            precision = here[f"precision_{name}"]
            there[name] += precision
            there[f"mean_{name}"] += precision * (len(table) + 1)
            squares = np.sum((table - mean) ** 2, axis=0)
            there[f"precision_{name}"] += precision * (self.rate + 0.5 * mean**2 + 0.5 * squares)
        return out
