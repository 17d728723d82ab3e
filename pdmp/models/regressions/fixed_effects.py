"""Regressions of labels without group effects, whose terms have bounds: exact sub-sampling, and variable selection."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.expressions.tape import CURVATURE, GRADIENT, LANES
from pdmp.models.priors import derivative, second_derivative_bound
from pdmp.models.regressions.blocks import Chunks
from pdmp.models.regressions.design import gram, products
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled, entry


class FixedEffectsRegression(MixedRegression):
    """`MixedRegression` without groups and dispersions, where the likelihood's second derivative is bounded.

    The bounds are exact: |ℓ''| <= c for every z, c = 1/4 of the logit and 1 of the probit link.

    Parameters
    ----------
    *args, **options
        Of `MixedRegression`.

    Raises
    ------
    ValueError
        For a likelihood without a bound, or groups.
    """

    largest_curvature: float

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        if self.n_groups or self.n_dispersions or not math.isfinite(self.likelihood.curvature):
            raise ValueError("exact bounds on single rows are for labels without group effects.")
        self.largest_curvature = float(self.likelihood.curvature)

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def prior_partial(self, x, j):
        n = self.numbers
        return derivative(self.kinds[j], n[j, 0], n[j, 1], n[j, 2], x[j])

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        n = self.numbers
        return second_derivative_bound(self.kinds[j], n[j, 0], n[j, 1], n[j, 2]) * v[j] * v[j]

    @compiled
    def term_derivative(self, x, i):
        """weightᵢ ℓ'(zᵢ)."""
        return self.weight_of(i) * self.likelihood.at(GRADIENT, 0, self.margin(x, i), self.target[i], 0.0, 0.0)

    @compiled
    def term_partial(self, x, i, j, scratch):
        return self.term_derivative(x, i) * self.design.feature(i, j)

    @compiled
    def term_partial_difference(self, x, y, i, j, scratch):
        return (self.term_derivative(x, i) - self.term_derivative(y, i)) * self.design.feature(i, j)

    @compiled
    def term_lipschitz(self, i, scale, out):
        """weightᵢ c |bᵢⱼ| |scale ∘ bᵢ|."""
        total = 0.0
        for j in range(self.dim):
            b = scale[j] * self.design.feature(i, j)
            total += b * b
        total = self.largest_curvature * math.sqrt(total)
        if self.weight.shape[0] > 0:
            total *= self.weight[i]
        for j in range(self.dim):
            out[j] = total * abs(self.design.feature(i, j))

    # -- Python ---------------------------------------------------------------------------------------------------

    def hessian(self, x: ArrayLike) -> np.ndarray:
        """Hessian of U at `x`, (dim, dim); of a Student-t prior a bound instead."""
        if len(self.row_chunks()) > 1:
            return self.data_sums(self.check(x))[1] + self._prior_hessian()
        out = np.zeros(self.n_data)
        _second_derivatives(self.native, self.check(x), np.zeros(self.dim), out, *self.scratch(LANES))
        return gram(self.X, out) + self._prior_hessian()

    def _prior_hessian(self):
        return np.diag([second_derivative_bound(k, *row) for k, row in zip(self.kinds, self.numbers, strict=True)])

    def gradient_and_hessian(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        if len(self.row_chunks()) == 1:
            return super().gradient_and_hessian(x)
        gradient, hessian = self.data_sums(self.check(x))
        return gradient + self._prior_gradient(self.check(x)), hessian + self._prior_hessian()

    def data_sums(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (d,) and Hessian (d, d) of the sum of all terms, in one pass over the rows."""
        return Chunks(self).total(_gradient_and_hessian, x)


def _gradient_and_hessian(block, files, first, x):
    gradient, curvatures = np.zeros(block.dim), np.empty(block.n_data)
    _second_derivatives(block.native, x, gradient, curvatures, *block.scratch(LANES))
    return gradient, products(block.design.data, curvatures, block.dim)


@entry
def _second_derivatives(model, x, gradient, out, eta, there, data, room):
    """Of each row, ℓ'' times its weight; adds the gradient of all terms to `gradient`."""
    i, law = 0, model.likelihood
    while i < model.n_data:
        n = min(LANES, model.n_data - i)
        place = model.run_rows(CURVATURE, x, i, n, eta, data, room)
        for lane in range(n):
            model.distribute(x, i + lane, place, lane, room, gradient)
            out[i + lane] = model.weight_of(i + lane) * room[law.results[place + 1], lane]
        i += n
