"""Models in other coordinates, in which paths cost less: what such coordinates share."""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled, entry


class MovedCoordinates(Model):
    """A model in coordinates z, each in the place of its x.

    A class of this kind has the compiled methods ``natural(z, x)`` and ``standardise(x, z)``, which write the one at
    the other; ``move(z, x)``, which writes x as well, and returns -log |dx/dz|, infinite where there is no density, and
    what it has computed for it; and ``pull_back(z, x, kept, slope, out)``, which adds the derivatives by z of what has
    the derivatives `slope` by x, and of -log |dx/dz|. `slope` may be overwritten.
    """

    natural_model: Compiled

    def __init__(self, model: Model) -> None:
        self.natural_model = model
        super().__init__(model.dim, 0, model.variables, model.initial, model.transforms)

    @compiled(inline=False, allocates=True)
    def potential(self, z):
        x = np.empty(self.dim)
        volume, _ = self.move(z, x)
        return math.inf if volume == math.inf else self.natural_model.total_potential(x) + volume

    @compiled(inline=False, allocates=True)
    def potential_and_gradient(self, z, out):
        x, slope = np.empty(self.dim), np.zeros(self.dim)
        volume, kept = self.move(z, x)
        if volume == math.inf:
            for j in range(self.dim):
                out[j] = math.nan
            return math.inf
        potential = self.natural_model.potential_and_gradient(x, slope)
        self.pull_back(z, x, kept, slope, out)
        return potential + volume

    @compiled(inline=False, allocates=True)
    def add_gradient(self, z, out):
        x, slope = np.empty(self.dim), np.zeros(self.dim)
        volume, kept = self.move(z, x)
        if volume == math.inf:
            for j in range(self.dim):
                out[j] = math.nan
        else:
            self.natural_model.add_gradient(x, slope)
            self.pull_back(z, x, kept, slope, out)

    def omitted(self) -> float:
        return self.natural_model.omitted()

    def standardised(self, x: np.ndarray) -> np.ndarray:
        """The moved coordinates of points x, (n, d)."""
        return self._moved(_standardise, x)

    def natural_points(self, z: np.ndarray) -> np.ndarray:
        """x of points in the moved coordinates, (n, d)."""
        return self._moved(_natural, z)

    def _moved(self, move, points):
        points = np.ascontiguousarray(points, float)
        out = np.empty_like(points)
        move(self.native, points, out)
        return out


@entry
def _standardise(model, x, out):
    for i in range(x.shape[0]):
        model.standardise(x[i], out[i])


@entry
def _natural(model, z, out):
    for i in range(z.shape[0]):
        model.natural(z[i], out[i])
