"""How bounds on the remainders of single rows grow with the distance from the anchor: φ(r), the rows' weights aside."""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import Compiled, compiled


class Shells(Compiled):
    """φ(r) = F r² / 2, F the factor of the first shell of a radius of at least r; infinite beyond the last.

    Parameters
    ----------
    radii : ndarray, shape (shells,)
        Not decreasing.
    factors : ndarray, shape (levels, shells)
        Those of a level are not decreasing. Levels are groups of rows, or shares of coordinates that move.
    """

    radii: np.ndarray
    factors: np.ndarray

    def __init__(self, radii, factors):
        self.radii, self.factors = np.array(radii), np.array(factors, ndmin=2)

    @compiled
    def at(self, r, level):
        """φ(r)."""
        return self.share(r, level) * (0.5 * r * r)

    @compiled
    def share(self, r, level):
        """F."""
        s = 0
        while s < self.radii.shape[0] and r > self.radii[s]:
            s += 1
        return self.factors[level, s] if s < self.radii.shape[0] else math.inf
