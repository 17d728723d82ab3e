"""Bayesian logistic regression with a Gaussian prior."""

from __future__ import annotations

import copy
import logging

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.base import Model
from pdmp.models.regressions.design import check_finite, name_coefficients, stays, with_ones
from pdmp.models.regressions.glm import GaussianPrior, LinearPredictions, read_labels, read_prior
from pdmp.models.regressions.logistic_signed import SignedLogistic, signed_rows
from pdmp.models.regressions.logistic_terms import LogisticRows, expit
from pdmp.native.classes import Compiled, compiled

logger = logging.getLogger(__name__)


class LogisticRegression(LinearPredictions, GaussianPrior):
    r"""Logistic regression: U(x) = Σᵢ log(1 + exp(-sᵢ aᵢ·x)) + Σⱼ xⱼ² / (2 prior_scaleⱼ²).

    aᵢ is row i of `X` and sᵢ = ±1 its label; there is no intercept unless `X` has a column of ones. The Hessian is at
    most ¼ XᵀX + diag(prior_scale⁻²), from which the model's bounds for Zig-Zag and BPS follow.

    Parameters
    ----------
    X : array_like, scipy.sparse matrix or memory-mapped array, shape (N, d)
        Features. A sparse matrix stays sparse, and a memory-mapped array of float32 or float64 in C order, such as
        ``numpy.load(path, mmap_mode="r")``, is read where it is and never copied. Anything else is copied for speed,
        into whole cache lines.
    y : array_like of shape (N,)
        Labels, in {0, 1} or in {-1, +1}, both present.
    prior_scale : float or array_like of shape (d,), default 1.0
        Standard deviation of the Gaussian prior; ``np.inf`` is a flat prior. A number is not for the intercept, whose
        prior is then flat.
    dtype : {numpy.float64, numpy.float32}, optional
        How the features are stored for the compiled code: float64, or as a memory-mapped array has them, when omitted.
        Arithmetic is in double precision either way; float32 halves the memory traffic, which is what limits large
        data sets.
    intercept : bool, default False
        Whether to append a column of ones to `X`; its coefficient comes last.
    offset : array_like of shape (N,), optional
        Known parts oᵢ of the margins aᵢ·x + oᵢ.

    Attributes
    ----------
    X, y : ndarray of shape (N, d) and (N,)
        The data, with the column of ones if there is one; labels as 0 and 1.
    form : SignedLogistic or LogisticRows
        How compiled code reads the data: signed features in memory, or `X` where it is, sparse or memory-mapped, with
        the labels apart.

    Raises
    ------
    ValueError
        If `X` is not a finite matrix, `y` does not fit it or is not of two classes, `prior_scale` is not positive, or
        `dtype` is another.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [0, 0, 1]
    >>> model = pdmp.models.LogisticRegression(X, y, prior_scale=2.0)
    >>> model.gradient([0.0, 0.0])
    array([ 0.5, -0.5])
    """

    form: Compiled

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        dtype: DTypeLike | None = None,
        intercept: bool = False,
        offset: ArrayLike | None = None,
    ):
        table = X
        if stays(X) or offset is not None:
            form = LogisticRows(X, y, prior_scale, dtype, intercept, offset)
            X, y, variables = form.X, form.y, form.variables
        else:
            X, y = _check_data(X, y)
            if intercept:
                X = with_ones(X)
            dtype = np.dtype(dtype)
            if dtype not in (np.float64, np.float32):
                raise ValueError(f"`dtype` must be float64 or float32, got {dtype}.")
            precision = read_prior(prior_scale, X.shape[1], intercept)
            form = SignedLogistic(X, signed_rows(X, y, dtype), len(y), precision)
            variables = {"coefficients": (X.shape[1] - 1,), "intercept": ()} if intercept else None
            if hasattr(table, "columns"):
                variables = name_coefficients(variables or {"coefficients": (X.shape[1],)}, table)
        super().__init__(X, len(y), form.precision, variables)
        self.form, self.y, self.prior_scale, self.intercept = form, y, prior_scale, bool(intercept)
        self.offset = np.zeros(0) if offset is None else form.offset

    # -- compiled: all of the data is asked of the form -----------------------------------------------------------

    @compiled
    def feature(self, i, j):
        """Feature j of datum i, times its label ±1 where the form keeps it so."""
        return self.form.feature(i, j)

    @compiled
    def term_potential(self, x, i):
        return self.form.term_potential(x, i)

    @compiled
    def total_potential(self, x):
        return self.form.total_potential(x)

    @compiled
    def block_potential(self, x, first, last):
        return self.form.block_potential(x, first, last)

    @compiled
    def fetch(self, i):
        self.form.fetch(i)

    @compiled
    def term_partial(self, x, i, j, scratch):
        return self.form.term_partial(x, i, j, scratch)

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        return self.form.term_partial_difference(x, y, i, j, scratch)

    @compiled
    def term_gradient_bounds(self, i, out):
        """|Xᵢⱼ|, or less for a label that is known."""
        self.form.term_gradient_bounds(i, out)

    @compiled
    def term_lipschitz(self, i, scale, out):
        """¼ |Xᵢⱼ| |scale ∘ Xᵢ|."""
        self.form.term_lipschitz(i, scale, out)

    @compiled
    def add_term_gradient(self, x, i, out):
        self.form.add_term_gradient(x, i, out)

    @compiled
    def add_term_parts(self, x, v, i, out):
        self.form.add_term_parts(x, v, i, out)

    @compiled
    def add_block_gradient(self, x, first, last, out):
        self.form.add_block_gradient(x, first, last, out)

    @compiled
    def add_batch_gradient(self, x, rows, n, out):
        self.form.add_batch_gradient(x, rows, n, out)

    @compiled
    def copy_batch(self, rows, n, copied):
        self.form.copy_batch(rows, n, copied)

    @compiled
    def add_copied_gradient(self, x, copied, n, out):
        self.form.add_copied_gradient(x, copied, n, out)

    @compiled
    def batch_difference(self, x, y, rows, n, scratch, out):
        self.form.batch_difference(x, y, rows, n, scratch, out)

    @compiled
    def weighted_difference(self, x, y, rows, weights, n, scratch, out):
        self.form.weighted_difference(x, y, rows, weights, n, scratch, out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        return self.form.add_batch_projection(x, v, rows, n, scratch, out)

    @compiled
    def add_batch_squares(self, x, rows, n, scratch, out, squares):
        self.form.add_batch_squares(x, rows, n, scratch, out, squares)

    @compiled
    def curvature_bound(self, v):
        """A bound on v·H(x)v for every x: ¼ |Xv|² + Σⱼ vⱼ² / prior_scaleⱼ²."""
        return self.form.curvature_bound(v)

    @compiled
    def partial_curvature_bounds(self, v, out):
        """Bounds on vᵢ Σⱼ Hᵢⱼ(x) vⱼ for every x: ¼ Σₙ max(0, vᵢ Xₙᵢ (Xv)ₙ) + vᵢ² / prior_scaleᵢ²."""
        self.form.partial_curvature_bounds(v, out)

    @compiled
    def factor_rate_bound(self, x, v, f):
        """max(0, -sᵢ aᵢ·v), as the expit is at most 1; the prior's derivative is affine."""
        return self.form.factor_rate_bound(x, v, f)

    @compiled
    def signed_term_bound(self, i, j, sign):
        """Bound on sign · ∂ⱼUᵢ: ∂ⱼUᵢ is sᵢ Xᵢⱼ times a number in [-1, 0]."""
        return self.form.signed_term_bound(i, j, sign)

    # -- Python ---------------------------------------------------------------------------------------------------

    def largest_term_gradient(self) -> float:
        """The largest norm of a row of `X`: the gradient of a term is its row times a number in (-1, 1)."""
        return self.form.largest_term_gradient()

    def rearranged(self, rows: ArrayLike) -> Model | None:
        """The same posterior with its data in the order `rows`, as a form; None for data that stay in a file."""
        return self.form.rearranged(rows)

    def some_rows(self, rows: np.ndarray) -> Model | None:
        form = self.form.some_rows(rows)
        if form is None:
            return None
        other = copy.copy(self)
        other.form, other.X, other.y, other.n_data = form, form.X, self.y[rows], len(rows)
        other.offset = self.offset[rows] if len(self.offset) else self.offset
        return other

    def batch_room(self, size: int) -> np.ndarray:
        """An array for the copy of a batch; empty where a copy does not pay."""
        return self.form.batch_room(size)

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at `x`, shape (d, d): Xᵀ diag(p (1 - p)) X + diag(prior_scale⁻²)."""
        return self.form.hessian(x)

    def gradient_and_hessian(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        own = type(self).hessian is not LogisticRegression.hessian
        if own or not isinstance(self.X, np.ndarray) or len(self.row_chunks()) == 1:
            return super().gradient_and_hessian(x)
        gradient, hessian = self.form.data_sums(self.check(x))
        return gradient + self._prior_gradient(self.check(x)), hessian + np.diag(self.form.precision)

    def hessian_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """diag(prior_scale⁻²) and that plus ¼ XᵀX, (d, d) each: p (1 - p) lies between 0 and ¼."""
        return self.form.hessian_bounds()

    def term_gradient_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """|rootᵀ Xᵢ|."""
        return self.form.term_gradient_norms(root, first, last)

    def term_lipschitz_norms(self, root: np.ndarray, first: int, last: int) -> np.ndarray:
        """¼ |rootᵀ Xᵢ|²."""
        return self.form.term_lipschitz_norms(root, first, last)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """P(y = 1)."""
        return expit(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        return -np.logaddexp(0.0, -np.where(y > 0.0, 1.0, -1.0) * z)


def _check_data(X, y):
    """Features as a float matrix and labels as 0.0 and 1.0, or a `ValueError`."""
    try:
        X = np.ascontiguousarray(X, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`X` must be a matrix of numbers, got {type(X).__name__}.") from None
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must have shape (N, d) with N and d at least 1, got {X.shape}.")
    check_finite(X)
    labels = read_labels(y, len(X))
    if np.min(y) < 0:
        logger.info("Labels -1 and +1 are kept as 0 and 1.")
    return X, labels
