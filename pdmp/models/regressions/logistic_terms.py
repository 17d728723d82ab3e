"""The term log(1 + exp(-z)) of logistic regression and its derivatives, and regressions made of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.regressions.by_law import ByLaw
from pdmp.models.regressions.glm import BoundedGradient, read_labels
from pdmp.models.regressions.likelihoods import LogitLaw
from pdmp.native.classes import compiled, fused_inlined, inlined
from pdmp.native.vectors import exp


@fused_inlined
def expit_of_minus(z):
    """1 / (1 + exp(z))."""
    return 1.0 / (1.0 + exp(z))


@inlined
def softplus_of_minus(z):
    """log(1 + exp(-z)) without overflow."""
    return max(-z, 0.0) + math.log1p(math.exp(-abs(z)))


def expit(z):
    """1 / (1 + exp(-z)) without overflow."""
    small = np.exp(-np.abs(z))
    return np.where(z >= 0.0, 1.0, small) / (1.0 + small)


class LogisticTerms(ByLaw, BoundedGradient, law=LogitLaw):
    """Terms log(1 + exp(-yz)), y = ±1."""

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is kⱼ w(z), w(z) = -1 / (1 + eᶻ), z = sᵢaᵢ·x: w is convex below 0 and concave above."""
        sign = self.target[i]
        z, along = sign * self.margin(x, i), sign * self.design.product(v, i)
        w = -expit_of_minus(z)
        steep = -w * (1.0 + w)
        c, dc, g, dg = w, steep, 0.0, 0.0
        if z > 0.0:
            c, dc, g, dg = 0.25 * z - 0.5, 0.25, w - (0.25 * z - 0.5), steep - 0.25
        first, last = self.design.row_range(i)
        for place in range(first, last if out.shape[0] > 1 else first + 1):
            j = self.design.column(place) if out.shape[0] > 1 else 0
            k = sign * v[j] * self.design.entry(i, place) if out.shape[0] > 1 else along
            out[j, 0] += k * c if k > 0.0 else k * g
            out[j, 1] += k * g if k > 0.0 else k * c
            out[j, 2] += k * along * (dg if k > 0.0 else dc)

    def mean(self, z: np.ndarray) -> np.ndarray:
        """P(y = 1)."""
        return expit(z)


class LogisticRows(LogisticTerms, read=read_labels):
    """How `LogisticRegression` reads a sparse or memory-mapped `X`: labels are kept apart from the features.

    A sparse matrix costs what is stored of it, a memory-mapped one what its file does to read. Features in memory are
    taken as well; `LogisticRegression` reads them so where there is an `offset`.

    Parameters
    ----------
    X, y, prior_scale, dtype, intercept, offset
        As in `LogisticRegression`.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        prior_scale: ArrayLike = 1.0,
        dtype: DTypeLike | None = None,
        intercept: bool = False,
        offset: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
