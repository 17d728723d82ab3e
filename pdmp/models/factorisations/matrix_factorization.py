"""Gaussian matrix factorisation with known variances, for ratings by the tens of millions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.derived import PriorOfEach
from pdmp.models.factorisations.factorisation import GaussianFactorisation
from pdmp.models.normal_prior import NormalPrior
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, vectorised


@vectorised
def _add_scaled(x, first, last, weight, out):
    for j in range(first, last):
        out[j] += weight * x[j]


class MatrixFactorization(PriorOfEach, GaussianFactorisation, NormalPrior):
    r"""Posterior of X ≈ W H: X_ij ~ N(Σₚ W_ip H_pj, noise_scale²) on the observed entries (i, j).

    W_ip ~ N(0, user_scale²) and H_pj ~ N(0, item_scale²), independently; nothing is centred and no hyper-parameter is
    sampled [1]_. One term for each observed entry, U = (X_ij - W_i·H_j)² / (2 noise_scale²), with

        ∂U/∂W_ip = -(X_ij - W_i·H_j) H_pj / noise_scale²,   ∂U/∂H_pj = -(X_ij - W_i·H_j) W_ip / noise_scale².

    x holds W row by row, shape (n_users, rank), and then H by its columns, so that ``H[j]`` is the factor of item j,
    shape (n_items, rank). W → WQ, H → QᵀH with an orthogonal Q leaves U as it is: compare predictions, not factors.

    Zero is a saddle; `initial` is a small draw from the prior. A step costs what
    `pdmp.models.factorisations.factorisation` says: the batch, and some passes over `dim` numbers.

    Parameters
    ----------
    users, items : array_like of int, shape (N,)
        Rows i and columns j of the observed entries, from 0. Kept as 32-bit integers.
    ratings : array_like, shape (N,)
        The entries X_ij, kept as 32-bit floats.
    rank : int, default 10
        Number of factors.
    n_users, n_items : int, optional
        Numbers of rows and columns of X; one more than the largest in `users` and `items` when omitted.
    noise_scale, user_scale, item_scale : float, default 1.0
        Standard deviations of an entry, of W and of H.

    Attributes
    ----------
    data : ndarray, shape (N,)
        Records ``user``, ``item``, ``rating``, twelve bytes each.

    Raises
    ------
    ValueError
        If shapes do not fit, a number of a user or item is negative, not whole or beyond the table, a rating is not
        finite, `rank` is below 1 or a scale is not positive.

    References
    ----------
    .. [1] Durmus, Şimşekli, Moulines, Badeau & Richard (2016), Stochastic gradient Richardson-Romberg Markov chain
       Monte Carlo, NeurIPS, section 5.2.

    Examples
    --------
    >>> import pdmp
    >>> users, items, ratings = [0, 0, 1, 2], [0, 1, 1, 0], [4.0, 3.0, 5.0, 2.0]
    >>> pdmp.models.MatrixFactorization(users, items, ratings, rank=2).dim
    10
    """

    user_precision: float
    item_precision: float

    def __init__(
        self,
        users: ArrayLike,
        items: ArrayLike,
        ratings: ArrayLike,
        rank: int = 10,
        n_users: int | None = None,
        n_items: int | None = None,
        noise_scale: float = 1.0,
        user_scale: float = 1.0,
        item_scale: float = 1.0,
    ) -> None:
        super().__init__(users, items, ratings, rank, n_users, n_items, ("W", "H"), lambda model: {})
        self.noise_precision = positive("noise_scale", noise_scale) ** -2
        self.user_precision = positive("user_scale", user_scale) ** -2
        self.item_precision = positive("item_scale", item_scale) ** -2
        w, h = self.tables(self.initial)
        rng = np.random.default_rng(0)
        w[:] = 0.3 * user_scale * rng.standard_normal(w.shape)
        h[:] = 0.3 * item_scale * rng.standard_normal(h.shape)

    @compiled
    def add_prior_gradient(self, x, out):
        middle = self.rank * self.rows
        _add_scaled(x, 0, middle, self.user_precision, out)
        _add_scaled(x, middle, self.dim, self.item_precision, out)

    @compiled
    def precision_of(self, j):
        """1 / variance of coordinate j under the prior."""
        return self.user_precision if j < self.rank * self.rows else self.item_precision

    @compiled
    def add_prior_coefficients(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            out[row, 0] += self.precision_of(j) * x[j] * v[j]
            out[row, 1] += self.precision_of(j) * v[j] * v[j]

    @compiled
    def add_term_coefficients(self, x, v, i, out):
        """Along x + sv the product r is quadratic in s and each rate cubic: (r - rating) τ vⱼ ∂ⱼr."""
        a, b = self.places(i)
        p = self.combined(x, a, b) - self.rating(i)
        q = self.slope_along(x, v, a, b)
        c = self.combined(v, a, b)
        p, q, c = self.noise_precision * p, self.noise_precision * q, self.noise_precision * c
        for k in range(2 * self.rank):
            j, other = (a + k, b + k) if k < self.rank else (b + k - self.rank, a + k - self.rank)
            row = j if out.shape[0] > 1 else 0
            here, slope = v[j] * x[other], v[j] * v[other]
            out[row, 0] += p * here
            out[row, 1] += q * here + p * slope
            out[row, 2] += c * here + q * slope
            out[row, 3] += c * slope

    def factors(self) -> list | tuple | None:
        """A factor for each rating, on the 2 · rank coordinates of its user and item; one for each prior."""
        k = np.arange(self.rank)
        a = self.rank * self.data["user"].astype(np.int64)
        b = self.rank * (self.n_users + self.data["item"].astype(np.int64))
        pairs = np.concatenate([a[:, None] + k, b[:, None] + k], axis=1)
        sizes = np.concatenate([np.full(self.n_data, 2 * self.rank), np.ones(self.dim, np.int64)])
        return np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([pairs.ravel(), np.arange(self.dim)])

    def _precisions(self):
        middle = self.rank * self.n_users
        return np.repeat([self.user_precision, self.item_precision], [middle, self.dim - middle])

    def slab_density(self) -> np.ndarray | None:
        return np.sqrt(self._precisions() / (2.0 * math.pi))

    def curvatures(self, x: ArrayLike) -> np.ndarray:
        """Diagonal of the Hessian, shape (dim,): Σ H_pj² / noise_scale² + 1 / user_scale², and likewise for H."""
        return self._data_curvatures(self.check(x)) + self._precisions()
