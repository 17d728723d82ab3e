"""Logistic regression whose features stay where they are: sparse, or in a memory-mapped file."""

from __future__ import annotations

import numpy as np

from pdmp.models.base import Model
from pdmp.models.regressions.glm import BoundedGradient, read_labels
from pdmp.models.regressions.logistic import LogisticRegression, _expit, _expit_of_minus, _softplus_of_minus
from pdmp.native.classes import compiled


class LogisticTerms(BoundedGradient):
    """Terms log(1 + exp(-yz)), y = ±1."""

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def loss(self, z, y):
        return _softplus_of_minus(y * z)

    @compiled
    def first_derivative(self, z, y):
        return -y * _expit_of_minus(y * z)

    @compiled
    def second_derivative(self, z, y):
        w = _expit_of_minus(y * z)
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
        w = -_expit_of_minus(z)
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

    def mean(self, z):
        """P(y = 1)."""
        return _expit(z)

    def log_density(self, z, y):
        """log p(y | z)."""
        return -np.logaddexp(0.0, -np.where(y > 0.0, 1.0, -1.0) * z)


class LogisticRows(LogisticTerms, LogisticRegression):
    """What `LogisticRegression` is for a sparse or memory-mapped `X`; see there.

    `offset` is that of `pdmp.models.regressions.glm`.

    Labels are kept apart from the features. A sparse matrix costs what is stored of it, a memory-mapped one what its
    file does to read; `dtype` is that of the file.
    """

    def __init__(self, X, y, prior_scale=1.0, dtype=None, intercept=False, offset=None):
        super().__init__(X, y, prior_scale, intercept, offset, dtype)
        self.target = 2.0 * self.y - 1.0
        self.data = np.zeros((0, 0))  # what is signed and in whole cache lines elsewhere
        self.settle()

    def read_target(self, y, n):
        return read_labels(y, n)

    @compiled
    def total_potential(self, x):
        total = self.prior_potential(x)
        for i in range(self.n_data):
            total += self.term_potential(x, i)
        return total

    @compiled
    def copy_batch(self, rows, n, copied):
        pass

    # -- Python ---------------------------------------------------------------------------------------------------

    def batch_room(self, size):
        return Model.batch_room(self, size)
