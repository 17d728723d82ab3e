"""The term log(1 + exp(-z)) of logistic regression and its derivatives."""

from __future__ import annotations

import math

from pdmp.models.regressions.by_law import ByLaw
from pdmp.models.regressions.design import add_parts
from pdmp.models.regressions.glm import BoundedGradient
from pdmp.models.regressions.likelihoods import LogitLaw
from pdmp.native.classes import compiled, fused_inlined, vectorised
from pdmp.native.vectors import BLOCK, buffer, exp


@fused_inlined
def expit_of_minus(z):
    """1 / (1 + exp(z))."""
    return 1.0 / (1.0 + exp(z))


@vectorised
def _potential(model, x, first, last):
    """Σ log(1 + exp(-z)) = Σ max(-z, 0) + log Π (1 + exp(-|z|)), one logarithm for the product of a block of rows.

    A term below 1e-16 rounds to zero; the sum's absolute error is of that order for each term.
    """
    margins, total = buffer(), 0.0
    for start in range(first, last, BLOCK):
        m = min(BLOCK, last - start)
        model.design.block_products(x, start, m, margins)
        if model.offset.shape[0] > 0:
            for k in range(m):
                margins[k] += model.offset[start + k]
        for k in range(m):
            margins[k] *= model.target_of(start + k)
        product = 1.0  # at most 2^64
        for k in range(m):
            z = margins[k]
            product *= 1.0 + exp(-abs(z))
            total += 0.0 if z > 0.0 else -z
        total += math.log(product)
    return total


class LogisticTerms(ByLaw, BoundedGradient, law=LogitLaw):
    """Terms log(1 + exp(-yz)), y = ±1."""

    @compiled
    def add_term_parts(self, x, v, i, out):
        """The rate of row j is kⱼ w(z), w(z) = -1 / (1 + eᶻ), z = sᵢaᵢ·x: w is convex below 0 and concave above."""
        sign = self.target_of(i)
        z, along = sign * self.margin(x, i), sign * self.design.product(v, i)
        w = -expit_of_minus(z)
        steep = -w * (1.0 + w)
        # The convex part c goes on as a straight line above 0; g is the rest.
        c, dc, g, dg = w, steep, 0.0, 0.0
        if z > 0.0:
            c, dc, g, dg = 0.25 * z - 0.5, 0.25, w - (0.25 * z - 0.5), steep - 0.25
        add_parts(self.design, i, v, sign, along, c, dc, g, dg, out)

    @compiled
    def block_potential(self, x, first, last):
        return _potential(self, x, first, last)

    @compiled
    def total_potential(self, x):
        return self.prior_potential(x) + _potential(self, x, 0, self.n_data)
