"""Independent normal priors with mean 0, of models whose parameters all have one."""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.base import Model
from pdmp.native.classes import compiled


class NormalPrior(Model):
    """Base of models with the prior ½ Σⱼ pⱼ xⱼ², pⱼ = ``precision_of(j)``; what clocks may ask of it is exact."""

    @compiled
    def prior_potential(self, x):
        return 0.5 * self.prior_curvature_bound(x)

    @compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += self.precision_of(j) * x[j]

    @compiled
    def prior_partial(self, x, j):
        return self.precision_of(j) * x[j]

    @compiled
    def prior_partial_curvature_bound(self, v, j):
        return self.precision_of(j) * v[j] * v[j]

    @compiled
    def prior_curvature_bound(self, v):
        """Σⱼ pⱼ vⱼ², exactly."""
        total = 0.0
        for j in range(self.dim):
            total += self.precision_of(j) * v[j] * v[j]
        return total


class IsotropicPrior(NormalPrior):
    """Base of models with the prior |x|² / (2 prior_scale²)."""

    knows_constants = False

    prior_precision: float  #: 1 / prior_scale²

    @compiled
    def precision_of(self, j):
        return self.prior_precision

    def slab_density(self) -> np.ndarray:
        return np.full(self.dim, math.sqrt(self.prior_precision / (2.0 * math.pi)))
