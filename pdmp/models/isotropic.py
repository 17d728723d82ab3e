"""The prior N(0, prior_scale² I), for the models whose parameters all have it."""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.base import Model
from pdmp.native.classes import compiled


class IsotropicPrior(Model):
    """Base of models with the prior |x|² / (2 prior_scale²); what clocks may ask of it is exact."""

    knows_constants = False

    prior_precision: float  #: 1 / prior_scale²

    @compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += x[j] * x[j]
        return 0.5 * self.prior_precision * total

    @compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.prior_precision * x[j]

    @compiled
    def prior_partial(self, x, j):
        return self.prior_precision * x[j]

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return self.prior_precision * v[j] * v[j]

    @compiled
    def prior_curvature_bound(self, v):
        total = 0.0
        for j in range(self.dim):
            total += v[j] * v[j]
        return self.prior_precision * total

    def slab_density(self) -> np.ndarray:
        return np.full(self.dim, math.sqrt(self.prior_precision / (2.0 * math.pi)))
