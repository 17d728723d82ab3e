"""Linear regression whose features stay where they are: sparse, or in a memory-mapped file."""

from __future__ import annotations

import copy
import math

import numpy as np
from scipy import sparse

from pdmp.models.base import data_and_coordinates
from pdmp.models.regressions.design import gram, read_design
from pdmp.models.regressions.linear_gaussian import LinearGaussian
from pdmp.native.classes import Compiled, compiled


class LinearRows(LinearGaussian):
    """What `LinearGaussian` is for a sparse or memory-mapped `A`; see there. The features are the attribute `X`."""

    design: Compiled

    def read_features(self, A):
        self.X, self.design = read_design(A)
        self.A = np.zeros((0, 0))  # what the dense model keeps
        return self.X.T @ self.X if sparse.issparse(self.X) else gram(self.X), *self.X.shape

    def features_times(self, y):
        return np.asarray(self.X.T @ y, dtype=float)

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def residual(self, x, i):
        """aᵢ·x - yᵢ."""
        return self.design.product(x, i) - self.y[i]

    @compiled
    def term_lipschitz(self, i, scale, out):
        """|aᵢⱼ| |scale ∘ aᵢ| / noise_scale²."""
        total = 0.0
        first, last = self.design.row_range(i)
        for k in range(first, last):
            a = scale[self.design.column(k)] * self.design.entry(i, k)
            total += a * a
        total = self.noise_precision * math.sqrt(total)
        for j in range(self.dim):
            out[j] = 0.0
        for k in range(first, last):
            out[self.design.column(k)] = total * abs(self.design.entry(i, k))

    @compiled
    def term_potential(self, x, i):
        residual = self.residual(x, i)
        return 0.5 * self.noise_precision * (residual * residual)

    @compiled
    def add_term_gradient(self, x, i, out):
        self.design.add_row(i, self.noise_precision * self.residual(x, i), out)

    @compiled
    def add_batch_projection(self, x, v, rows, n, scratch, out):
        first, second = 0.0, 0.0
        for k in range(n):
            weight = self.noise_precision * self.residual(x, rows[k])
            self.design.add_row(rows[k], weight, out)
            p = weight * self.design.product(v, rows[k])
            first += p
            second += p * p
        return first, second

    @compiled
    def fetch(self, i):
        self.design.fetch(i)

    @compiled
    def affine_factor(self, x, v, moved, now, f):
        if f >= self.n_data:
            j, p = f - self.n_data, self.prior_precision
            return p * v[j] * (x[j] + v[j] * (now - moved[j])), p * v[j] * v[j]
        residual, along = -self.y[f], 0.0
        first, last = self.design.row_range(f)
        for k in range(first, last):
            j = self.design.column(k)
            a = self.design.entry(f, k)
            residual += a * (x[j] + v[j] * (now - moved[j]))
            along += a * v[j]
        return self.noise_precision * residual * along, self.noise_precision * along * along

    # -- Python ---------------------------------------------------------------------------------------------------

    def factors(self):
        return data_and_coordinates(self.X)

    def rearranged(self, rows):
        design = self.design.taken(rows)
        if design is None:
            return None
        other = copy.copy(self)
        other.X, other.design, other.y = self.X[rows], design, self.y[rows]
        other.n_data = len(other.y)
        return other

    def predict(self, x, A):
        """Expected observations A·x for positions x, shape (..., d), and rows A, shape (n, d): shape (..., n)."""
        if sparse.issparse(A):
            x = np.asarray(x, dtype=float)
            return np.asarray((A @ x.reshape(-1, self.dim).T).T).reshape(*x.shape[:-1], A.shape[0])
        return super().predict(x, A)
