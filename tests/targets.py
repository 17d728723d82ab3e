"""Targets for tests, beside those of the package."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate

import pdmp


class Quartic(pdmp.Model):
    """Independent coordinates with U = x⁴/4 to the right of a wall, at which the density ends."""

    wall: float

    def __init__(self, dim=1, wall=-math.inf):
        super().__init__(dim=dim, initial=np.full(dim, 0.5))
        self.wall = float(wall)

    @pdmp.compiled
    def prior_potential(self, x):
        total = 0.0
        for j in range(self.size):
            if x[j] < self.wall:
                return math.inf
            square = x[j] * x[j]
            total += 0.25 * square * square
        return total

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(self.size):
            out[j] += x[j] * x[j] * x[j] if x[j] >= self.wall else math.nan

    def moments(self):
        """Mean and variance of a coordinate."""
        low = max(self.wall, -8.0)
        mass, first, second = (
            integrate.quad(lambda x, k=k: x**k * math.exp(-0.25 * x**4), low, 8.0)[0] for k in range(3)
        )
        return first / mass, second / mass - (first / mass) ** 2
