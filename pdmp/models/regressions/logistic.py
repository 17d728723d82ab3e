"""Bayesian logistic regression with a Gaussian prior."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.base import Model
from pdmp.models.regressions.design import Dense
from pdmp.models.regressions.glm import read_labels
from pdmp.models.regressions.logistic_terms import LogisticTerms
from pdmp.models.regressions.logistic_tiles import TiledLogistic, add_tiles_gradient
from pdmp.native.classes import compiled
from pdmp.native.threads import chunks, each
from pdmp.native.vectors import BLOCK

logger = logging.getLogger(__name__)

LARGEST_COPY = 2**20  #: a batch is copied if its copy has at most so many numbers


class LogisticRegression(LogisticTerms, read=read_labels):
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

    signed: bool  #: whether the design has features in memory times their label ±1, so that no label is fetched

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        dtype: DTypeLike | None = None,
        intercept: bool = False,
        offset: ArrayLike | None = None,
    ):
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.signed = type(self.design) is Dense and not self.offset.size
        if self.signed:
            features, signs = self.design.data, self.target

            def sign(first: int, stop: int) -> None:
                features[first:stop] *= signs[first:stop, None]

            for _ in each(sign, chunks(*features.shape)):
                pass
            self.target = np.ones(1)
            if not intercept and not hasattr(X, "columns"):
                self.variables = {"x": (self.dim,)}
            if np.min(y) < 0:
                logger.info("Labels -1 and +1 are kept as 0 and 1.")

    @compiled
    def target_of(self, i):
        return 1.0 if self.signed else self.target[i]

    @compiled
    def copy_batch(self, rows, n, copied):
        self.design.copy_rows(rows, n, copied)

    @compiled
    def add_copied_gradient(self, x, copied, n, out):
        add_tiles_gradient(copied, x, 0, n, out)

    def rearranged(self, rows: ArrayLike) -> Model | None:
        rows = np.asarray(rows)
        return TiledLogistic(self, rows) if self.signed else super().rearranged(rows)

    def _targets(self, rows):
        return self.target if self.signed else super()._targets(rows)

    def batch_room(self, size: int) -> np.ndarray:
        """An array for the copy of a batch; empty where a copy does not pay."""
        tiles = -(-size // BLOCK) if self.signed and size * self.dim <= LARGEST_COPY else 0
        return np.zeros((tiles, self.dim, BLOCK), self.design.data.dtype)
