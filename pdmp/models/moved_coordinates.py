"""Models in other coordinates, in which paths cost less: what such coordinates share."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdmp.native.classes import entry


class MovedCoordinates:
    """Mixin of models with a `natural_model`, and compiled methods ``standardise(x, z)`` and ``natural(z, x)``."""

    def omitted(self: Any) -> float:
        return self.natural_model.omitted()

    def standardised(self: Any, x: np.ndarray) -> np.ndarray:
        """The moved coordinates of points x, (n, d)."""
        return self._moved(_standardise, x)

    def natural_points(self: Any, z: np.ndarray) -> np.ndarray:
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
