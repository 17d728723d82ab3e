"""Independent component analysis with logistic sources: the posterior of the unmixing matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.derived import reordered
from pdmp.models.normal_prior import IsotropicPrior
from pdmp.native.arguments import matrix, positive, real
from pdmp.native.classes import allocating, compiled
from pdmp.native.prefetch import prefetch
from pdmp.native.vectors import BLOCK, exp

if TYPE_CHECKING:
    from pdmp.models.base import Model


@allocating
def _matrix(x, d):
    """The coordinates as a matrix of their own: those of a local process do not lie side by side."""
    w = np.empty((d, d))
    for i in range(d):
        for j in range(d):
            w[i, j] = x[i * d + j]
    return w


@allocating
def _invert(w, a, inverse):
    """Gauss and Jordan's elimination with partial pivoting: `inverse` = w⁻¹; returns log|det w|, -inf if singular."""
    d, log = w.shape[0], 0.0
    for i in range(d):
        for j in range(d):
            a[i, j] = w[i, j]
            inverse[i, j] = 1.0 if i == j else 0.0
    for c in range(d):
        p = c
        for i in range(c + 1, d):
            if abs(a[i, c]) > abs(a[p, c]):
                p = i
        pivot = a[p, c]
        if pivot == 0.0:
            return -math.inf
        log += math.log(abs(pivot))
        for j in range(d):
            held, other = a[p, j], inverse[p, j]
            a[p, j], inverse[p, j] = a[c, j], inverse[c, j]
            a[c, j], inverse[c, j] = held / pivot, other / pivot
        for i in range(d):
            factor = a[i, c]
            if i != c and factor != 0.0:
                for j in range(d):
                    a[i, j] -= factor * a[c, j]
                    inverse[i, j] -= factor * inverse[c, j]
    return log


@allocating
def _log_det(x, d):
    return _invert(_matrix(x, d), np.empty((d, d)), np.empty((d, d)))


@allocating
def _add_inverse(x, d, weight, out):
    """Add weight · W⁻ᵀ to `out`; returns whether W has an inverse."""
    inverse = np.empty((d, d))
    if _invert(_matrix(x, d), np.empty((d, d)), inverse) == -math.inf:
        return False
    for i in range(d):
        for j in range(d):
            out[i * d + j] += weight * inverse[j, i]
    return True


@allocating
def _activate(w, tile, m, y):
    """y[k, c] = tanh(wₖ·x_c / 2) for the m columns of the tile."""
    d = w.shape[0]
    for k in range(d):
        for c in range(m):
            y[k, c] = 0.0
        for j in range(d):
            entry = w[k, j]
            for c in range(m):
                y[k, c] += entry * tile[j, c]
        for c in range(m):
            y[k, c] = 1.0 - 2.0 / (1.0 + exp(y[k, c]))


@allocating
def _fill(data, rows, first, start, m, tile):
    """Data rows[start : start + m], or start, …, start + m - 1 where there are no rows, as columns of the tile."""
    d = data.shape[1]
    for c in range(m):
        i = rows[start + c] if first < 0 else first + start + c
        for j in range(d):
            tile[j, c] = data[i, j]


@allocating
def _add_products(data, rows, first, n, x, out):
    """Add Σ tanh(W xᵢ / 2) xᵢᵀ over n data."""
    d = data.shape[1]
    w = _matrix(x, d)
    tile, y = np.zeros((d, BLOCK)), np.zeros((d, BLOCK))
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        _fill(data, rows, first, start, m, tile)
        _activate(w, tile, m, y)
        for k in range(d):
            for j in range(d):
                total = 0.0
                for c in range(m):
                    total += y[k, c] * tile[j, c]
                out[k * d + j] += total


@allocating
def _add_products_and_squares(data, rows, n, x, shift, out, squares):
    """Add the gradients of n data, each with its share `shift` of the determinant, and their squares."""
    d = data.shape[1]
    w = _matrix(x, d)
    tile, y = np.zeros((d, BLOCK)), np.zeros((d, BLOCK))
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        _fill(data, rows, -1, start, m, tile)
        _activate(w, tile, m, y)
        for k in range(d):
            for j in range(d):
                first, second = 0.0, 0.0
                for c in range(m):
                    g = y[k, c] * tile[j, c] + shift[k * d + j]
                    first += g
                    second += g * g
                out[k * d + j] += first
                squares[k * d + j] += second


@allocating
def _add_products_and_projection(data, rows, n, x, v, share, out):
    """Add Σ tanh(W xᵢ / 2) xᵢᵀ; returns the sums of pᵢ = share + tanh(W xᵢ / 2)·V xᵢ and of their squares."""
    d, first, second = data.shape[1], 0.0, 0.0
    w, velocity = _matrix(x, d), _matrix(v, d)
    tile, y, p = np.zeros((d, BLOCK)), np.zeros((d, BLOCK)), np.zeros(BLOCK)
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        _fill(data, rows, -1, start, m, tile)
        _activate(w, tile, m, y)
        for c in range(m):
            p[c] = share
        for k in range(d):
            for j in range(d):
                total, speed = 0.0, velocity[k, j]
                for c in range(m):
                    product = y[k, c] * tile[j, c]
                    total += product
                    p[c] += speed * product
                out[k * d + j] += total
        for c in range(m):
            first += p[c]
            second += p[c] * p[c]
    return first, second


@allocating
def _misfit(data, first, n, x):
    """Σ Σₖ -log p(wₖ·xᵢ) = Σ Σₖ |y| + 2 log(1 + exp(-|y|)) over n data."""
    d, total = data.shape[1], 0.0
    for i in range(first, first + n):
        for k in range(d):
            y = 0.0
            for j in range(d):
                y += x[k * d + j] * data[i, j]
            y = abs(y)
            total += y + 2.0 * math.log1p(math.exp(-y))
    return total


class ICA(IsotropicPrior):
    r"""Posterior of an unmixing matrix W, (D, D) with the rows w_k, whose sources w_k·x are independent and logistic.

    p(x | W) = |det W| Πₖ p(w_k·x) with p(y) = 1 / (4 cosh²(y/2)), and W_kj ~ N(0, prior_scale²) [1]_. One term for
    each datum, Uᵢ = -log|det W| - Σₖ log p(w_k·xᵢ), with

        ∇Uᵢ = -W⁻ᵀ + tanh(W xᵢ / 2) xᵢᵀ,

    and the coordinates of x are W row by row.

    U tends to infinity where W is singular, in between the two signs of the determinant; it is not convex, and the
    order of the rows and their signs are open: there are 2^D D! equal modes. No bound holds everywhere, so that the
    exact clocks with sub-sampling do not apply. Where W is exactly singular the potential is infinite and the gradient
    zero. A batch costs one inversion, D³, and n D² for its data.

    Parameters
    ----------
    X : array_like, shape (N, D)
        Observations in rows, of columns that are centred; N and D at least 1.
    prior_scale : float, default 1.0
        Standard deviation of an entry of W.

    Attributes
    ----------
    initial : ndarray, shape (D²,)
        The symmetric whitening matrix, scaled so that the sources have the variance π²/3 of the logistic law;
        `fast_ica` is closer to a mode.

    Raises
    ------
    ValueError
        If `X` is not a matrix of finite numbers, or `prior_scale` is not positive.

    References
    ----------
    .. [1] Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS,
       section 5.2.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> model = pdmp.models.ICA(np.random.default_rng(0).laplace(size=(50, 2)))
    >>> model.dim, model.n_data
    (4, 50)
    """

    data: np.ndarray
    channels: int

    def __init__(self, X: ArrayLike, prior_scale: ArrayLike = 1.0) -> None:
        X = matrix("X", X, columns="D")
        d = X.shape[1]
        super().__init__(dim=d * d, n_data=len(X), variables={"W": (d, d)})
        self.data, self.channels = X, d
        self.prior_precision = positive("prior_scale", prior_scale) ** -2
        values, vectors = np.linalg.eigh(X.T @ X / len(X))
        values = np.maximum(values, 1e-6 * max(float(values[-1]), 1e-300))
        self.initial = (math.pi / math.sqrt(3.0) * (vectors / np.sqrt(values)) @ vectors.T).ravel()

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def term_potential(self, x, i):
        return _misfit(self.data, i, 1, x) - _log_det(x, self.channels)

    @compiled
    def total_potential(self, x):
        log = _log_det(x, self.channels)
        return self.prior_potential(x) + _misfit(self.data, 0, self.n_data, x) - self.n_data * log

    @compiled
    def add_term_gradient(self, x, i, out):
        self.add_block_gradient(x, i, i + 1, out)

    @compiled(allocates=True)
    def add_block_gradient(self, x, first, last, out):
        if last > first and _add_inverse(x, self.channels, float(first - last), out):
            _add_products(self.data, np.empty(0, np.int64), first, last - first, x, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        if _add_inverse(x, self.channels, -float(n), out):
            _add_products(self.data, rows, -1, n, x, out)

    @compiled(allocates=True)
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        shift, share = np.zeros(self.dim), 0.0
        if not _add_inverse(x, self.channels, -1.0, shift):
            return 0.0, 0.0
        for j in range(self.dim):
            share += v[j] * shift[j]
            out[j] += n * shift[j]
        return _add_products_and_projection(self.data, rows, n, x, v, share, out)

    @compiled(allocates=True)
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        shift = np.zeros(self.dim)
        if _add_inverse(x, self.channels, -1.0, shift):
            _add_products_and_squares(self.data, rows, n, x, shift, out, squares)

    def rearranged(self, rows: np.ndarray) -> Model | None:
        return reordered(self, rows, lambda rows: {"data": np.ascontiguousarray(self.data[rows])})

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at x, (D², D²): N M_bc M_da for W_ab and W_cd, M = W⁻¹, and blocks Σᵢ ½ sech²(y/2) xᵢxᵢᵀ."""
        d = self.channels
        w = self.check(x).reshape(d, d)
        inverse = np.linalg.inv(w)
        hessian = self.n_data * np.einsum("bc,da->abcd", inverse, inverse)
        for k in range(d):
            weights = 0.5 * (1.0 - np.tanh(0.5 * (self.data @ w[k])) ** 2)
            hessian[k, :, k, :] += self.data.T @ (weights[:, None] * self.data)
        return hessian.reshape(self.dim, self.dim) + self.prior_precision * np.eye(self.dim)

    def fast_ica(self, seed: int = 0) -> np.ndarray:
        """FastICA's unmixing matrix by scikit-learn, scaled as `initial`, shape (D²,): where [1]_ starts."""
        from sklearn.decomposition import FastICA

        found = FastICA(whiten="unit-variance", random_state=seed, max_iter=1_000).fit(self.data)
        return math.pi / math.sqrt(3.0) * found.components_.ravel()

    def _each(self, x, X):
        x = real("x", x, self.dim)
        X = self.data if X is None else matrix("X", X, columns="D")
        if X.shape[1] != self.channels:
            raise ValueError(f"`X` must have {self.channels} columns, got {X.shape[1]}.")
        return x.reshape(*x.shape[:-1], self.channels, self.channels), X

    def predict(self, x: ArrayLike, X: ArrayLike | None = None) -> np.ndarray:
        """Sources W x of observations.

        Parameters
        ----------
        x : array_like, shape (..., D²)
            One matrix or several.
        X : array_like, shape (n, D), optional
            Those of the data when omitted.

        Returns
        -------
        ndarray, shape (..., n, D)
        """
        w, X = self._each(x, X)
        return X @ np.swapaxes(w, -1, -2)

    def log_likelihood(self, x: ArrayLike, X: ArrayLike | None = None) -> np.ndarray:
        """log p(x | W) of each observation: shape (..., n). The mean over held-out data is the score of [1]_.

        Parameters
        ----------
        x : array_like, shape (..., D²)
            One matrix or several.
        X : array_like, shape (n, D), optional
            Those of the data when omitted; held-out data centred and scaled like those.
        """
        w, X = self._each(x, X)
        y = np.abs(X @ np.swapaxes(w, -1, -2))
        return np.linalg.slogdet(w)[1][..., None] - np.sum(y + 2.0 * np.log1p(np.exp(-y)), axis=-1)

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return self.log_likelihood(draws)
