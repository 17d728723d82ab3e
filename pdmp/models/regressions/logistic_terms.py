"""The term log(1 + exp(-z)) of logistic regression and its derivatives, and regressions made of it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from pdmp.models.regressions.glm import BoundedGradient, read_labels
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


class LogisticTerms(BoundedGradient):
    """Terms log(1 + exp(-yz)), y = ±1."""

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def loss(self, z, y):
        return softplus_of_minus(y * z)

    @compiled
    def first_derivative(self, z, y):
        return -y * expit_of_minus(y * z)

    @compiled
    def second_derivative(self, z, y):
        w = expit_of_minus(y * z)
        return w * (1.0 - w)

    @compiled
    def first_derivative_bounds(self, y):
        return -0.5 * (y + 1.0), 0.5 * (1.0 - y)

    @compiled
    def second_derivative_bounds(self, y):
        return 0.0, 0.25

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

    # -- Python ---------------------------------------------------------------------------------------------------

    def mean(self, z: np.ndarray) -> np.ndarray:
        """P(y = 1)."""
        return expit(z)

    def log_density(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log p(y | z)."""
        return -np.logaddexp(0.0, -np.where(y > 0.0, 1.0, -1.0) * z)


class LogisticRows(LogisticTerms):
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
        self.target = 2.0 * self.y
        self.target -= 1.0  # in place, as there may be very many
        self.settle()

    def read_target(self, y: ArrayLike, n: int) -> np.ndarray:
        return read_labels(y, n)
