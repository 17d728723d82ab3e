r"""Generalised linear models: terms ℓ(zᵢ, yᵢ) of margins zᵢ = aᵢ·x + oᵢ, and a Gaussian prior.

A regression is a class with the term ℓ as a function of the margin z and the target y, and its derivatives by z::

    loss(z, y)                 ℓ, up to what does not depend on z
    first_derivative(z, y)     ℓ'
    second_derivative(z, y)    ℓ''

All gradients follow: ∇Uᵢ = ℓ'(zᵢ, yᵢ) aᵢ, at the cost of the entries that are stored of aᵢ. What a class knows beyond
this gives bounds to the clocks:

===================  ========================================  =====================================================
base                 what is known, in a method                what follows
===================  ========================================  =====================================================
`GeneralisedLinear`  nothing                                   bounds on a grid
`BoundedHessian`     ``second_derivative_bounds(y)``:          affine bounds for BPS, Zig-Zag and local BPS; control
                     low <= ℓ'' <= high                        variates with exact sub-sampling
`BoundedGradient`    ``first_derivative_bounds(y)`` as well:   constant bounds on single terms: exact sub-sampling
                     low <= ℓ' <= high
===================  ========================================  =====================================================
"""

from __future__ import annotations

import copy
import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from pdmp.models.base import Model
from pdmp.models.derived import Derived, PriorOfEach, reordered
from pdmp.models.normal_prior import NormalPrior
from pdmp.models.numerical import prior_gradient, row_chunks
from pdmp.models.regressions.design import (
    check_columns,
    data_and_coordinates,
    gram,
    is_mapped,
    name_coefficients,
    products,
    read_design,
    row_lipschitz,
    row_norms,
    with_ones,
)
from pdmp.native.arguments import real, refuse_unreal, same_rows
from pdmp.native.classes import Compiled, compiled, entry, positive_part, readable, vectorised
from pdmp.native.explanations import explained_methods
from pdmp.native.threads import CHUNK, added, chunks, each
from pdmp.native.vectors import BLOCK, buffer

GRAM = 128  #: up to so many dimensions XᵀX is kept, for bounds on directional curvatures

# ---------------------------------------------------------------------------------------------------------------
# Hot loops: margins of a block of rows, first derivatives there, and the rows weighted by them


@vectorised
def _derivatives(model, x, rows, start, n, weights, targets):
    """weights[k] = ℓ' of row rows[start + k], for the next block of the n rows; returns its length."""
    m = min(BLOCK, n - start)
    model.design.products(x, rows, start, n, weights)
    if model.offset.shape[0] > 0:
        for k in range(m):
            weights[k] += model.offset[rows[start + k]]
    for k in range(m):
        targets[k] = model.target_of(rows[start + k])
    for k in range(m):
        weights[k] = model.first_derivative(weights[k], targets[k])
    return m


@vectorised
def _block_gradient(model, x, first, last, out):
    weights, targets = buffer(), buffer()
    for start in range(first, last, BLOCK):
        m = min(BLOCK, last - start)
        model.design.block_products(x, start, m, weights)
        if model.offset.shape[0] > 0:
            for k in range(m):
                weights[k] += model.offset[start + k]
        for k in range(m):
            targets[k] = model.target_of(start + k)
        for k in range(m):
            weights[k] = model.first_derivative(weights[k], targets[k])
        model.design.add_block(start, m, weights, out)


@vectorised
def _batch_gradient(model, x, rows, n, out):
    weights, targets = buffer(), buffer()
    for start in range(0, n, BLOCK):
        _derivatives(model, x, rows, start, n, weights, targets)
        model.design.add_rows(rows, start, n, weights, out)


@vectorised
def _batch_difference(model, x, y, rows, n, out):
    weights, others, targets = buffer(), buffer(), buffer()
    for start in range(0, n, BLOCK):
        m = _derivatives(model, x, rows, start, n, weights, targets)
        _derivatives(model, y, rows, start, start + m, others, targets)
        for k in range(m):
            weights[k] -= others[k]
        model.design.add_rows(rows, start, n, weights, out)


@vectorised
def _weighted_difference(model, x, y, rows, factors, n, out):
    weights, others, targets = buffer(), buffer(), buffer()
    for start in range(0, n, BLOCK):
        m = _derivatives(model, x, rows, start, n, weights, targets)
        _derivatives(model, y, rows, start, start + m, others, targets)
        for k in range(m):
            weights[k] = factors[start + k] * (weights[k] - others[k])
        model.design.add_rows(rows, start, n, weights, out)


@vectorised
def _batch_projection(model, x, v, rows, n, out):
    weights, projections, targets = buffer(), buffer(), buffer()
    first, second = 0.0, 0.0
    for start in range(0, n, BLOCK):
        m = _derivatives(model, x, rows, start, n, weights, targets)
        model.design.add_rows(rows, start, n, weights, out)
        model.design.products(v, rows, start, start + m, projections)
        for k in range(m):
            p = weights[k] * projections[k]
            first += p
            second += p * p
    return first, second


@vectorised
def _batch_squares(model, x, rows, n, out, squares):
    weights, targets = buffer(), buffer()
    for start in range(0, n, BLOCK):
        m = _derivatives(model, x, rows, start, n, weights, targets)
        model.design.add_squares(rows, start, m, weights, out, squares)


class GaussianPrior(PriorOfEach, NormalPrior):
    """Base of models with independent Gaussian priors on the coefficients of features `X`, and one factor a datum."""

    precision: np.ndarray  #: (dim,) of the prior; 0 for a flat one

    def __init__(
        self, X: ArrayLike, n_data: int, precision: np.ndarray, variables: dict[str, tuple[int, ...]] | None = None
    ) -> None:
        super().__init__(dim=X.shape[1], n_data=n_data, variables=variables)
        self.X, self.precision = X, precision

    def omitted(self) -> float:
        """See `Derived.omitted`: at x = 0 U is that of the likelihood alone."""
        if np.any(self.precision == 0.0):
            return math.nan
        x = np.zeros(self.dim)
        of_prior = 0.5 * float(np.log(self.precision / math.tau).sum())
        return of_prior + float(self.pointwise_log_likelihood(x).sum()) + self.potential(x)

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def precision_of(self, j):
        return self.precision[j]

    @compiled
    def add_prior_parts(self, x, v, out):
        for j in range(self.dim):
            row = j if out.shape[0] > 1 else 0
            out[row, 1] += self.precision[j] * x[j] * v[j]
            out[row, 2] += self.precision[j] * v[j] * v[j]

    # -- Python ---------------------------------------------------------------------------------------------------

    @property
    def in_file(self) -> bool:
        return is_mapped(self.X)

    def row_width(self) -> int | None:
        # With very many columns, adding up what the chunks have found would take longer than the chunks.
        numbers = self.X.nnz if sparse.issparse(self.X) else self.X.size
        return max(numbers // max(self.n_data, 1), 1) if self.dim <= CHUNK // 16 else None

    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """A factor for each datum, on the coordinates where its features are not zero; one for each prior."""
        return data_and_coordinates(self.X)

    def slab_density(self) -> np.ndarray:
        return np.sqrt(self.precision / (2.0 * math.pi))

    def prior_hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """diag(prior_scale⁻²), twice."""
        return np.diag(self.precision), np.diag(self.precision)


@explained_methods
class LinearPredictions:
    """What a regression says of new data, from its laws ``mean(z)`` and ``log_density(z, y)`` of a margin z."""

    intercept = False  #: whether the last column of `X` was added to the data given

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        """The targets as a float array (n,), or a `ValueError`."""
        return read_vector("y", y, n)

    def margins(self, x: ArrayLike, X: ArrayLike | None = None, offset: ArrayLike | None = None) -> np.ndarray:
        """Margins of the model's data, or of others, for positions x (..., d): shape (..., n)."""
        x = real("x", x, self.dim)
        same_rows(X=X, offset=offset)
        X = self.X if X is None else self._columns(X)
        flat = x.reshape(-1, self.dim)[:, : self.X.shape[1]]
        z = np.asarray((X @ flat.T).T if sparse.issparse(X) else flat @ X.T).reshape(*x.shape[:-1], X.shape[0])
        return z if offset is None or np.size(offset) == 0 else z + read_vector("offset", offset, X.shape[0])

    def _columns(self, X):
        """New features with as many columns as there are coefficients."""
        check_columns(self.variables, X)
        X, columns = X if sparse.issparse(X) else real("X", X), self.X.shape[1] - self.intercept
        if X.ndim != 2 or X.shape[1] != columns:
            raise ValueError(f"`X` must have shape (n, {columns}), got {X.shape}.")
        return with_ones(X) if self.intercept else X

    def predict(self, x: ArrayLike, X: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Expected targets.

        Parameters
        ----------
        x : array_like of shape (..., d)
            One position, or several.
        X : array_like or scipy.sparse matrix, shape (n, d)
            Features, without the column of ones if the model added one.
        offset : array_like of shape (n,), optional
            Known parts of their margins; zeros when omitted.

        Returns
        -------
        ndarray of shape (..., n)
        """
        return self.mean(self.margins(x, X, offset))

    def log_likelihood(
        self,
        x: ArrayLike,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        pointwise: bool = False,
    ) -> np.ndarray:
        """log p(y | X, x), of the model's data or of others.

        Parameters
        ----------
        x : array_like of shape (..., d)
            One position, or several.
        X, y, offset
            As in `predict`, with the targets (n,); the model's own data when omitted.
        pointwise : bool, default False
            Whether to return it for each datum.

        Returns
        -------
        ndarray of shape (...), or (..., n) when `pointwise`
            The sum over the data, all constants included; a float for one position.
        """
        if (X is None) != (y is None):
            raise ValueError("give both `X` and `y`, or neither for the model's own data.")
        if X is None:
            y, offset = self.y, self.offset
        else:
            same_rows(X=X, y=y)
            y = self.read_target(y, X.shape[0] if hasattr(X, "shape") else len(X))
        found = self.log_density_at(x, self.margins(x, X, offset), y)
        if pointwise:
            return found
        total = found.sum(axis=-1)
        return float(total) if total.ndim == 0 else total

    def log_density_at(self, x: np.ndarray, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z) where the coefficients are those of x."""
        return self.log_density(z, y)

    def observed_data(self) -> dict[str, np.ndarray]:
        """The targets (n,), by name."""
        return {"y": np.asarray(self.y)}

    def pointwise_log_likelihood(self, draws: ArrayLike) -> np.ndarray:
        """log p(y | X, x) of each datum of the model: (..., n) at draws of shape (..., d)."""
        return self.log_likelihood(draws, pointwise=True)


class GeneralisedLinear(LinearPredictions, GaussianPrior):
    r"""Base of regressions: U(x) = Σᵢ ℓ(aᵢ·x + oᵢ, yᵢ) + Σⱼ xⱼ² / (2 prior_scaleⱼ²), aᵢ row i of `X`.

    Its arguments and attributes are described in `LogisticRegression`.
    """

    design: Compiled
    target: np.ndarray
    offset: np.ndarray

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        intercept: bool = False,
        offset: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        table = X
        same_rows(X=X, y=y, offset=offset)
        X, design = read_design(X, dtype, intercept)
        n, d = X.shape
        y = self.read_target(y, n)
        offset = np.zeros(0) if offset is None else read_vector("offset", offset, n)
        variables = {"coefficients": (d - 1,), "intercept": ()} if intercept else {"coefficients": (d,)}
        variables = name_coefficients(variables, table)
        super().__init__(X, n, read_prior(prior_scale, d, bool(intercept)), variables)
        self.design, self.intercept, self.prior_scale = design, bool(intercept), prior_scale
        self.y, self.target, self.offset = y, y, offset
        self.settle()

    def settle(self) -> None:
        """What a class sets from these, at the end."""

    # -- compiled: what a regression defines ----------------------------------------------------------------------

    @compiled
    def loss(self, z, y):
        return math.nan

    @compiled
    def first_derivative(self, z, y):
        return math.nan

    @compiled
    def second_derivative(self, z, y):
        return math.nan

    # -- compiled: what follows -----------------------------------------------------------------------------------

    @compiled
    def feature(self, i, j):
        """Entry j of row i."""
        return self.design.feature(i, j)

    @compiled
    def target_of(self, i):
        """yᵢ, as `loss` takes it."""
        return self.target[i]

    @compiled
    def margin(self, x, i):
        """aᵢ·x + oᵢ."""
        z = self.design.product(x, i)
        return z + self.offset[i] if self.offset.shape[0] > 0 else z

    @compiled
    def term_potential(self, x, i):
        return self.loss(self.margin(x, i), self.target_of(i))

    @compiled
    def add_term_gradient(self, x, i, out):
        self.design.add_row(i, self.first_derivative(self.margin(x, i), self.target_of(i)), out)

    @compiled
    def fetch(self, i):
        self.design.fetch(i)

    @compiled
    def term_partial(self, x, i, j, scratch):
        return self.first_derivative(self.margin(x, i), self.target_of(i)) * self.feature(i, j)

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        one, other = self.design.both_products(x, y, i)
        if self.offset.shape[0] > 0:
            one += self.offset[i]
            other += self.offset[i]
        target = self.target_of(i)
        return (self.first_derivative(one, target) - self.first_derivative(other, target)) * self.feature(i, j)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        _block_gradient(self, x, first, last, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        _batch_gradient(self, x, rows, n, out)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        _batch_difference(self, x, y, rows, n, out)

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        for j in range(self.dim):
            out[j] = 0.0
        _weighted_difference(self, x, y, rows, weights, n, out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return _batch_projection(self, x, v, rows, n, out)

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        _batch_squares(self, x, rows, n, out, squares)

    # -- Python ---------------------------------------------------------------------------------------------------

    def rearranged(self, rows: np.ndarray) -> Model | None:
        return reordered(self, rows, self._of_rows)

    def _of_rows(self, rows):
        """What has another order where the data have; None for data that stay in a file."""
        design, offset = self.design.taken(rows), self.offset[rows] if self.offset.size else self.offset
        if design is None:
            return None
        X = self.X[rows] if sparse.issparse(self.X) else design.data[:, : self.dim]
        return {"X": X, "design": design, "target": self._targets(rows), "offset": offset}

    def some_rows(self, rows: np.ndarray) -> GeneralisedLinear:
        other = copy.copy(self)
        other.design, other.X, other.n_data = self.design.some(rows), self.X[rows], len(rows)
        other.y, other.target = self.y[rows], self._targets(rows)
        other.offset = self.offset[rows] if self.offset.size else self.offset
        return other

    def _targets(self, rows):
        return self.target[rows]

    def second_derivatives(self, x: ArrayLike) -> np.ndarray:
        """ℓ'' of each term at x, shape (N,)."""
        out, x, native = np.zeros(self.n_data), self.check(x), self.native

        def part(first, stop):
            _second_derivatives(native, x, first, stop, out[first:stop])

        with readable(type(self).__name__):
            for _ in each(part, row_chunks(self)):
                pass
        return out

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at `x`, shape (d, d): Xᵀ diag(ℓ'') X + diag(prior_scale⁻²)."""
        return gram(self._features(), self.second_derivatives(x)) + np.diag(self.precision)

    def _features(self):
        """X, as it is stored where it is dense: in single precision rounded."""
        return self.X if sparse.issparse(self.X) else np.asarray(self.X, self.design.data.dtype)

    def gradient_and_hessian(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        own = type(self).hessian is not GeneralisedLinear.hessian
        if own or sparse.issparse(self.X) or len(row_chunks(self)) == 1:
            return Derived.gradient_and_hessian(self, x)
        gradient, hessian = self.data_sums(self.check(x))
        return gradient + prior_gradient(self, self.check(x)), hessian + np.diag(self.precision)

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (d,) and Hessian (d, d) of the sum of all terms, in one pass over the rows, which are dense."""
        native = self.native

        def part(first, stop):
            gradient, weights = np.zeros(self.dim), np.empty(stop - first)
            _gradient_and_second_derivatives(native, x, first, stop, gradient, weights)
            return gradient, products(self.design.data[first:stop], weights, self.dim)

        with readable(type(self).__name__):
            return added(each(part, row_chunks(self)))


class BoundedHessian(GeneralisedLinear):
    """A regression with low <= ℓ''(z, y) <= high for every z, by ``second_derivative_bounds(y)``, low <= 0 <= high."""

    gram: np.ndarray

    def settle(self) -> None:
        """Keep Σ high aᵢaᵢᵀ where it is small; to be called when `target` and parameters are set."""
        small = self.dim <= min(GRAM, self.n_data)
        self.gram = self._bounding_products() if small else np.zeros((0, 0))

    @compiled
    def second_derivative_bounds(self, y):
        return -math.inf, math.inf

    @compiled
    def curvature_bound(self, v):
        """Σᵢ highᵢ (aᵢ·v)² + Σⱼ vⱼ² / prior_scaleⱼ² >= v·H(x)v for every x."""
        total = 0.0
        if self.gram.shape[0] == 0:
            for i in range(self.n_data):
                along = self.design.product(v, i)
                total += self.second_derivative_bounds(self.target_of(i))[1] * along * along
        else:
            for i in range(self.dim):
                for j in range(self.dim):
                    total += v[i] * self.gram[i, j] * v[j]
        return positive_part(total) + self.prior_curvature_bound(v)

    @compiled
    def partial_curvature_bounds(self, v, out):
        """Bounds on vⱼ Σₖ Hⱼₖ(x) vₖ: Σᵢ of the larger of lowᵢ q and highᵢ q, q = vⱼ aᵢⱼ aᵢ·v, and the prior's."""
        for j in range(self.dim):
            out[j] = self.precision[j] * v[j] * v[j]
        for i in range(self.n_data):
            along = self.design.product(v, i)
            low, high = self.second_derivative_bounds(self.target_of(i))
            first, last = self.design.row_range(i)
            for k in range(first, last):
                j = self.design.column(k)
                q = v[j] * self.design.entry(i, k) * along
                out[j] += max(low * q, high * q)

    @compiled
    def term_lipschitz(self, i, scale, out):
        """max |ℓ''| |aᵢⱼ| |scale ∘ aᵢ|."""
        low, high = self.second_derivative_bounds(self.target_of(i))
        row_lipschitz(self.design, i, scale, max(high, -low), out)

    @compiled
    def factor_rate_bound(self, x, v, f):
        """The derivative of term f along v where it is, and the most at which it grows; the prior's, exactly."""
        if f < self.n_data:
            along = self.design.product(v, f)
            high = self.second_derivative_bounds(self.target_of(f))[1]
            return self.first_derivative(self.margin(x, f), self.target_of(f)) * along, high * along * along
        j = f - self.n_data
        return self.precision[j] * x[j] * v[j], self.precision[j] * v[j] * v[j]

    # -- Python ---------------------------------------------------------------------------------------------------

    def _bounding_products(self):
        """Σ highᵢ aᵢaᵢᵀ, (d, d)."""
        return gram(self._features(), self.all_second_derivative_bounds()[1])

    def all_second_derivative_bounds(self) -> np.ndarray:
        """Bounds on ℓ'' of each term, two arrays (N,)."""
        return np.array([np.broadcast_to(bound, self.n_data) for bound in self.second_derivative_bounds(self.target)])

    def term_lipschitz_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """max |ℓ''| |rootᵀ aᵢ|²."""
        low, high = self.all_second_derivative_bounds()[:, first:last]
        return np.maximum(high, -low) * row_norms(self.X[first:last], root) ** 2

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """diag(prior_scale⁻²) plus Σ lowᵢ aᵢaᵢᵀ, and plus Σ highᵢ aᵢaᵢᵀ, (d, d) each."""
        prior, low = np.diag(self.precision), self.all_second_derivative_bounds()[0]
        least = gram(self.X, low) if np.any(low) else np.zeros((self.dim, self.dim))
        return prior + least, prior + (self.gram if self.gram.size else self._bounding_products())


class BoundedGradient(BoundedHessian):
    """And low <= ℓ'(z, y) <= high for every z, by ``first_derivative_bounds(y)``, low <= 0 <= high."""

    @compiled
    def first_derivative_bounds(self, y):
        return -math.inf, math.inf

    @compiled
    def term_gradient_bounds(self, i, out):
        """max |ℓ'| |aᵢⱼ|."""
        low, high = self.first_derivative_bounds(self.target_of(i))
        first, last = self.design.row_range(i)
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(first, last):
            out[self.design.column(k)] = max(high, -low) * abs(self.design.entry(i, k))

    @compiled
    def signed_term_bound(self, i, j, sign):
        low, high = self.first_derivative_bounds(self.target_of(i))
        a = sign * self.feature(i, j)
        return max(low * a, high * a)

    @compiled
    def factor_rate_bound(self, x, v, f):
        """Of term f the larger of low aᵢ·v and high aᵢ·v; the prior's derivative is affine."""
        if f < self.n_data:
            low, high = self.first_derivative_bounds(self.target_of(f))
            along = self.design.product(v, f)
            return max(low * along, high * along), 0.0
        j = f - self.n_data
        return self.precision[j] * x[j] * v[j], self.precision[j] * v[j] * v[j]

    # -- Python ---------------------------------------------------------------------------------------------------

    def largest_first_derivatives(self) -> np.ndarray:
        """Bounds on |ℓ'| of each term, (N,)."""
        low, high = self.first_derivative_bounds(self.target)
        return np.broadcast_to(np.maximum(high, -np.asarray(low)), self.n_data)

    def largest_term_gradient(self) -> float:
        """The largest of max |ℓ'| |aᵢ|."""
        return float((self.largest_first_derivatives() * row_norms(self.X)).max())

    def term_gradient_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """max |ℓ'| |rootᵀ aᵢ|."""
        return self.largest_first_derivatives()[first:last] * row_norms(self.X[first:last], root)


@entry
def _second_derivatives(model, x, first, stop, out):
    for i in range(first, stop):
        out[i - first] = model.second_derivative(model.margin(x, i), model.target_of(i))


@entry
def _gradient_and_second_derivatives(model, x, first, stop, gradient, out):
    model.add_block_gradient(x, first, stop, gradient)
    for i in range(first, stop):
        out[i - first] = model.second_derivative(model.margin(x, i), model.target_of(i))


def read_vector(name, values, n, copy=True):
    """`values` as a finite float array (n,), or a `ValueError` that names them."""
    refuse_unreal(name, values)
    try:
        array = np.array(values, dtype=float, copy=copy or None)
    except (TypeError, ValueError):
        raise ValueError(f"`{name}` must hold numbers, got {type(values).__name__}.") from None
    if array.shape != (n,):
        raise ValueError(f"`{name}` must have shape ({n},), one entry for each row of `X`, got {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"`{name}` must be finite, and has {np.sum(~np.isfinite(array))} values that are not.")
    return array


def read_labels(y, n):
    """Labels in {0, 1} or {-1, +1}, both present, as 0.0 and 1.0, or a `ValueError`."""
    refuse_unreal("y", y)
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"`y` must have shape ({n},), one label for each row of `X`, got {labels.shape}.")
    ranges = chunks(n, 1)
    low = high = None
    if labels.dtype.kind in "biuf":
        ends = list(each(lambda first, stop: (labels[first:stop].min(), labels[first:stop].max()), ranges))
        low, high = np.min([least for least, _ in ends]), np.max([most for _, most in ends])

    def both(first, stop):
        some = labels[first:stop]
        return bool(np.all((some == low) | (some == high)))

    if low is not None and all(each(both, ranges)):
        values = {low.item(), high.item()}
    else:  # sorting takes longer than all else that is done with many rows
        values = set(np.unique(labels).tolist())
    if not (values <= {0, 1} or values <= {-1, 1}):
        raise ValueError(f"`y` must have labels in {{0, 1}} or {{-1, +1}}, got {sorted(values, key=str)[:5]}.")
    if len(values) == 1:
        raise ValueError(f"`y` must have both classes, and all {len(labels)} labels are {values.pop()}.")
    read = np.empty(n)

    def write(first, stop):
        read[first:stop] = labels[first:stop] > 0

    for _ in each(write, ranges):
        pass
    return read


def read_counts(y, n):
    """Counts as floats, or a `ValueError`."""
    y = read_vector("y", y, n)
    wrong = (y < 0.0) | (y != np.floor(y))
    if np.any(wrong):
        raise ValueError(f"`y` must hold counts 0, 1, 2, …, got {y[wrong][0]:g}.")
    return y


def read_prior(prior_scale, d, intercept=False):
    """Precisions (d,) of the Gaussian prior with these standard deviations, or a `ValueError`."""
    scale = np.array(real("prior_scale", prior_scale))
    if scale.shape not in ((), (d,)):
        raise ValueError(f"`prior_scale` must be a number or of shape ({d},), got shape {scale.shape}.")
    if not np.all(scale > 0.0):
        raise ValueError(f"`prior_scale` must be above 0, got {prior_scale}.")
    precision = np.broadcast_to(1.0 / (scale * scale), (d,)).copy()
    if intercept and scale.ndim == 0:
        precision[-1] = 0.0
    return precision
