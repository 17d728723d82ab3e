r"""What the models of a matrix of ratings share: N observed entries, two tables of factors, sparse gradients.

x begins with the factors of the users, row by row (users, rank), and those of the items (items, rank); what else a
model has follows. The term of the rating k of user i for item j depends on the rows i and j alone, through one number

    r = Σₖ x[i, k] x[j, k]            (`GaussianFactorisation`), or
    r = Σₖ exp(x[i, k] + x[j, k])     (`pdmp.models.PPMF`),

so that its gradient has 2 · rank entries that are not zero. A batch of n ratings costs n · rank, whatever the
dimension, in one compiled loop.

The limit. A step of a sampler also has what is dense: the estimate is cleared, scaled and gets the prior's gradient,
and the sampler adds its noise and moves every coordinate. Those are some ten passes over vectors of `dim` doubles and
`dim` random normals, which a batch much smaller than dim / rank does not pay for: there the speed is that of the
memory and of the random numbers, not of the ratings.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.base import Model
from pdmp.models.derived import reordered
from pdmp.native.arguments import count, real, same_rows
from pdmp.native.classes import compiled, vectorised
from pdmp.native.prefetch import prefetch

#: One rating. All three numbers lie in the same cache line, so that a random rating is one access to memory.
RATING = np.dtype([("user", np.int32), ("item", np.int32), ("rating", np.float32)])
AHEAD = 16  #: ratings whose factors are asked for in advance
PIECE = 2**17  #: ratings handled together by numpy
LARGEST_SEARCH = 10**6  #: above this many multiplications in a full gradient the mode is searched for with batches


@vectorised
def _product(x, y, a, b, rank):
    total = 0.0
    for k in range(rank):
        total += x[a + k] * y[b + k]
    return total


@vectorised
def _add_pair(x, a, b, rank, weight, out):
    for k in range(rank):
        out[a + k] += weight * x[b + k]
    for k in range(rank):
        out[b + k] += weight * x[a + k]


@vectorised
def _add_pair_and_squares(x, a, b, rank, weight, out, squares):
    for k in range(rank):
        g = weight * x[b + k]
        out[a + k] += g
        squares[a + k] += g * g
    for k in range(rank):
        g = weight * x[a + k]
        out[b + k] += g
        squares[b + k] += g * g


class Factorisation(Model):
    """Base of the factorisations; see the module's text.

    A model of its own says how r comes from the factors, and what a rating's potential is:

    - ``combined(x, a, b)``: r, for factors that begin at x[a] and x[b];
    - ``slope_along(x, v, a, b)``: the derivative of r along v;
    - ``add_slopes(x, a, b, weight, out)``: add weight · ∂r to `out`;
    - ``add_slopes_and_squares(x, a, b, weight, out, squares)``: the same, and their squares to `squares`;
    - ``derivative(x, a, b, k)``: ∂r by x[a + k];
    - ``misfit(r, rating)`` and ``misfit_slope(r, rating)``: a rating's potential and its derivative by r.

    And the names of the two tables; ``others(model)``, the variables that follow and their shapes, of a model that
    knows its sizes; and what is taken off the ratings, their mean when `offset` is None.
    """

    knows_constants = False

    data: np.ndarray
    rank: int
    rows: int

    def __init__(self, users, items, ratings, rank, n_users, n_items, names, others, offset=0.0, transforms=None):
        same_rows(users=users, items=items, ratings=ratings)
        users, items = _indices(users, "users"), _indices(items, "items")
        ratings = _ratings(ratings)
        for name, array in (("items", items), ("ratings", ratings)):
            if len(array) != len(users):
                raise ValueError(f"`{name}` must have one entry for each of `users`, {len(users)}; got {len(array)}.")
        self.rank = count("rank", rank)
        self.n_users = _table("n_users", n_users, "users", users)
        self.n_items = _table("n_items", n_items, "items", items)
        variables = {names[0]: (self.n_users, self.rank), names[1]: (self.n_items, self.rank), **others(self)}
        dim = sum(int(np.prod(s)) for s in variables.values())
        super().__init__(dim=dim, n_data=len(users), variables=variables, transforms=transforms)
        self.rows = self.n_users
        self.offset = float(np.mean(ratings, dtype=float)) if offset is None else float(offset)
        self.data = np.empty(len(users), RATING)
        self.data["user"], self.data["item"] = users, items
        self.data["rating"] = ratings - ratings.dtype.type(self.offset) if self.offset else ratings

    @compiled
    def places(self, i):
        """Where the factors of rating i's user and item begin in x."""
        return self.rank * self.data[i]["user"], self.rank * (self.rows + self.data[i]["item"])

    @compiled
    def rating(self, i):
        return float(self.data[i]["rating"])

    @compiled
    def term_potential(self, x, i):
        a, b = self.places(i)
        return self.misfit(self.combined(x, a, b), self.rating(i))

    @compiled
    def weight(self, x, i):
        """The derivative of term i by its r."""
        a, b = self.places(i)
        return self.misfit_slope(self.combined(x, a, b), self.rating(i))

    @compiled
    def add_term_gradient(self, x, i, out):
        a, b = self.places(i)
        self.add_slopes(x, a, b, self.weight(x, i), out)

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def fetch_factors(self, x, i, out):
        """Ask the memory for the factors of rating i and for their places in `out`."""
        a, b = self.places(i)
        for k in range(0, self.rank, 8):
            prefetch(x, a + k)
            prefetch(x, b + k)
            prefetch(out, a + k)
            prefetch(out, b + k)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        for i in range(first, last):
            if i + AHEAD < last:
                self.fetch_factors(x, i + AHEAD, out)
            self.add_term_gradient(x, i, out)

    @compiled
    def fetch_batch(self, x, rows, k, n, out):
        """Before rating k of a batch: ask for what the next ones need."""
        if k == 0:
            for m in range(min(2 * AHEAD, n)):
                prefetch(self.data, rows[m])
        if k + 2 * AHEAD < n:
            prefetch(self.data, rows[k + 2 * AHEAD])
        if k + AHEAD < n:
            self.fetch_factors(x, rows[k + AHEAD], out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        for k in range(n):
            self.fetch_batch(x, rows, k, n, out)
            self.add_term_gradient(x, rows[k], out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            self.fetch_batch(x, rows, k, n, out)
            a, b = self.places(rows[k])
            weight = self.weight(x, rows[k])
            self.add_slopes(x, a, b, weight, out)
            p = weight * self.slope_along(x, v, a, b)
            first += p
            second += p * p
        return first, second

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        for k in range(n):
            self.fetch_batch(x, rows, k, n, out)
            a, b = self.places(rows[k])
            self.add_slopes_and_squares(x, a, b, self.weight(x, rows[k]), out, squares)

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(n):
            a, b = self.places(rows[k])
            self.add_slopes(x, a, b, weights[k] * self.weight(x, rows[k]), out)
            self.add_slopes(y, a, b, -weights[k] * self.weight(y, rows[k]), out)

    @compiled
    def term_partial(self, x, i, j, scratch):
        a, b = self.places(i)
        if a <= j < a + self.rank:
            return self.weight(x, i) * self.derivative(x, a, b, j - a)
        if b <= j < b + self.rank:
            return self.weight(x, i) * self.derivative(x, b, a, j - b)
        return 0.0

    def tables(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two tables of factors in x, shapes (n_users, rank) and (n_items, rank): views, not copies."""
        a, b = self.rank * self.n_users, self.rank * (self.n_users + self.n_items)
        return x[:a].reshape(self.n_users, self.rank), x[a:b].reshape(self.n_items, self.rank)

    def rearranged(self, rows: np.ndarray) -> Model | None:
        return reordered(self, rows, lambda rows: {"data": self.data[rows]})

    @property
    def searches_by_batches(self) -> bool:
        """Whether there are more than 10⁶ / rank ratings.

        A mode is one of many: rotations of the factors, or permutations and signs, leave U or its likelihood as it is.
        """
        return self.n_data * self.rank > LARGEST_SEARCH

    def curvature(self, x: ArrayLike, probes: int | None = None) -> float:
        """Trace of the Hessian at x divided by `dim`, or the mean size of its diagonal where that is negative."""
        diagonal = self.curvatures(x)
        mean = float(diagonal.mean())
        return mean if mean > 0.0 else float(np.abs(diagonal).mean())

    def _pieces(self, users, items):
        """Pairs in pieces, (slice, users, items), those of the data when both are None."""
        if (users is None) != (items is None):
            raise ValueError("`users` and `items` must be given together, or neither of them.")
        if users is None:
            users, items = self.data["user"], self.data["item"]
        else:
            users, items = _indices(users, "users"), _indices(items, "items")
            if len(users) != len(items):
                raise ValueError(f"`items` must have one entry for each of `users`, {len(users)}; got {len(items)}.")
            _table("n_users", self.n_users, "users", users)
            _table("n_items", self.n_items, "items", items)
        for start in range(0, len(users), PIECE):
            piece = slice(start, start + PIECE)
            yield piece, users[piece], items[piece]

    def _each(self, x, n):
        """Points x (..., dim) one after the other, each with a row of the array (..., n) for what is said of it."""
        x = real("x", x, self.dim)
        out = np.zeros((*x.shape[:-1], n))
        return zip(x.reshape(-1, self.dim), out.reshape(-1, n), strict=True), out

    def predict(self, x: ArrayLike, users: ArrayLike | None = None, items: ArrayLike | None = None) -> np.ndarray:
        """Expected ratings, on the scale on which they were given.

        Parameters
        ----------
        x : array_like, shape (..., dim)
            One point or several.
        users, items : array_like of int, shape (n,), optional
            Those of the data when omitted.

        Returns
        -------
        ndarray, shape (..., n)

        Raises
        ------
        ValueError
            For numbers of users or items that the model does not have.
        """
        same_rows(users=users, items=items)
        points, out = self._each(x, self.n_data if users is None else len(users))
        for point, row in points:
            p, q = self.tables(self._factors(point))
            for piece, i, j in self._pieces(users, items):
                row[piece] = self.offset + np.einsum("nk,nk->n", p[i], q[j])
        return out

    def _factors(self, x):
        """What is multiplied, from x (dim,)."""
        return x

    def observed_data(self) -> dict[str, np.ndarray]:
        return {"ratings": self._ratings_of(None, None)}

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        return self.log_likelihood(draws)

    def _ratings_of(self, users, ratings):
        """Ratings as given, those of the data when `users` is None."""
        if (users is None) != (ratings is None):
            raise ValueError("`users`, `items` and `ratings` must be given together, or none of them.")
        return self.data["rating"].astype(float) + self.offset if users is None else _ratings(ratings).astype(float)


class GaussianFactorisation(Factorisation):
    """Ratings N(r, 1/noise_precision) about the product r of their factors."""

    noise_precision: float

    @compiled
    def combined(self, x, a, b):
        return _product(x, x, a, b, self.rank)

    @compiled
    def slope_along(self, x, v, a, b):
        return _product(x, v, a, b, self.rank) + _product(v, x, a, b, self.rank)

    @compiled
    def add_slopes(self, x, a, b, weight, out):
        _add_pair(x, a, b, self.rank, weight, out)

    @compiled
    def add_slopes_and_squares(self, x, a, b, weight, out, squares):
        _add_pair_and_squares(x, a, b, self.rank, weight, out, squares)

    @compiled
    def derivative(self, x, a, b, k):
        return x[b + k]

    @compiled
    def misfit(self, r, rating):
        return 0.5 * self.noise_precision * ((rating - r) * (rating - r))

    @compiled
    def misfit_slope(self, r, rating):
        return -self.noise_precision * (rating - r)

    def _data_curvatures(self, x):
        """The data's part of the Hessian's diagonal, shape (dim,): Σ noise_precision · (the other factor)²."""
        out = np.zeros(self.dim)
        (p, q), (up, uq) = self.tables(x), self.tables(out)
        for _, i, j in self._pieces(None, None):
            for k in range(self.rank):
                up[:, k] += np.bincount(i, q[j, k] ** 2, minlength=self.n_users)
                uq[:, k] += np.bincount(j, p[i, k] ** 2, minlength=self.n_items)
        return self.noise_precision * out

    def log_likelihood(
        self,
        x: ArrayLike,
        users: ArrayLike | None = None,
        items: ArrayLike | None = None,
        ratings: ArrayLike | None = None,
    ) -> np.ndarray:
        """Log density of each rating.

        Parameters
        ----------
        x, users, items, ratings : array_like
            As in `predict`; the data's own when omitted.

        Returns
        -------
        ndarray, shape (..., n)

        Raises
        ------
        ValueError
            For numbers of users or items that the model does not have, or ratings that do not fit them.
        """
        same_rows(users=users, items=items, ratings=ratings)
        ratings = self._ratings_of(users, ratings)
        residuals = ratings - self.predict(x, users, items)
        return 0.5 * (np.log(self.noise_precision / (2.0 * np.pi)) - self.noise_precision * residuals**2)


def _indices(values, name):
    """Numbers of users or items as an array of integers, at least 0, or a `ValueError`."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"`{name}` must have shape (N,) with N at least 1, got {array.shape}.")
    if array.dtype.kind not in "iu":
        whole = array.dtype.kind == "f" and bool(np.all(np.isfinite(array)) and np.all(array == np.floor(array)))
        if not whole:
            raise ValueError(f"`{name}` must be whole numbers from 0, got values of type {array.dtype}.")
    least, largest = array.min(), array.max()
    if least < 0:
        raise ValueError(f"`{name}` must be whole numbers from 0, and its least is {least}.")
    if largest >= 2**31 - 1:
        raise ValueError(f"`{name}` must be below {2**31 - 1}, and its largest is {largest}: number the rows from 0.")
    return array if array.dtype.kind in "iu" else array.astype(np.int64)


def _ratings(values):
    """Ratings as a vector of finite numbers, or a `ValueError`."""
    try:
        array = np.asarray(values)
        array = array if array.dtype == np.float32 else array.astype(float)
    except (TypeError, ValueError):
        raise ValueError("`ratings` must be numbers.") from None
    if array.ndim != 1:
        raise ValueError(f"`ratings` must have shape (N,), got {array.shape}.")
    bad = np.flatnonzero(~(np.abs(array) <= np.finfo(np.float32).max))
    if bad.size:
        raise ValueError(f"`ratings` must be finite; the one at {bad[0]} is {array[bad[0]]}.")
    return array


def _table(name, size, what, indices):
    """Number of rows of a table that the indices point into."""
    most = int(indices.max())
    if size is None:
        return most + 1
    size = count(name, size)
    if most >= size:
        raise ValueError(f"`{what}` must lie in 0 … {size - 1}, as `{name}` is {size}; the largest is {most}.")
    return size
