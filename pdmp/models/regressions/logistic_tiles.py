"""Logistic regression on signed features in tiles of 64 data, for blocks of consecutive data and for rays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.models.regressions.design import Tiles
from pdmp.models.regressions.glm import GaussianPrior
from pdmp.models.regressions.logistic_terms import LogisticTerms, expit_of_minus
from pdmp.native.classes import compiled, vectorised
from pdmp.native.vectors import BLOCK, aligned, buffer

if TYPE_CHECKING:
    from pdmp.models.regressions.logistic import LogisticRegression

#: The fourth derivative of log(1 + exp(-z)), which is w (1 - w) (1 - 6 w (1 - w)), is nowhere above this.
FOURTH = 1.0 / 24.0
#: A ray in memory: these numbers, then for each datum its margin where the ray began, the speed of its margin, and its
#: weight w = expit(-margin) at the place `AT`. There the data's derivatives along the ray are `ONE`, `TWO` and `THREE`;
#: the fourth is at most Σ FOURTH speed⁴, the second Σ speed² / 4. The prior adds PRIOR + s PRIOR_SLOPE to the first.
AT, ONE, TWO, THREE, QUARTS, SQUARES, PRIOR, PRIOR_SLOPE, RAY = range(9)


@vectorised
def add_tiles_gradient(tiles, x, first, last, out):
    """Add the gradient of the terms first <= i < last to `out`, of signed features in tiles."""
    weights = buffer()
    for t in range(first // BLOCK, (last + BLOCK - 1) // BLOCK):
        for k in range(BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            for k in range(BLOCK):
                weights[k] += x[j] * tiles[t, j, k]
        for k in range(BLOCK):
            weights[k] = -expit_of_minus(weights[k])
        for k in range(first - t * BLOCK):  # what is in the tile but not in the block
            weights[k] = 0.0
        for k in range(last - t * BLOCK, BLOCK):
            weights[k] = 0.0
        for j in range(x.shape[0]):
            total = 0.0
            for k in range(BLOCK):
                total += weights[k] * tiles[t, j, k]
            out[j] += total


# Derivatives along a ray, for `pdmp.DirectionalBPS`


@vectorised
def ray_project(tiles, x, start, ray):
    """Products of the signed features with x, into the ray from `start`."""
    margins = buffer()
    for t in range(tiles.shape[0]):
        for k in range(BLOCK):
            margins[k] = 0.0
        for j in range(x.shape[0]):
            for k in range(BLOCK):
                margins[k] += x[j] * tiles[t, j, k]
        for k in range(BLOCK):
            ray[start + t * BLOCK + k] = margins[k]


@vectorised
def ray_advance(room, s, ray):
    """Move the margins by a time s."""
    for k in range(RAY, RAY + room):
        ray[k] += s * ray[room + k]


@vectorised
def ray_sums(room, ray):
    """What follows from the speeds: bounds on derivatives, and at weights that are known the derivatives."""
    one, two, three, squares, quarts = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(RAY, RAY + room):
        z, w = ray[room + k], ray[2 * room + k]
        one -= w * z
        two += w * (1.0 - w) * z * z
        three += w * (1.0 - w) * (w + w - 1.0) * z * z * z
        squares += z * z
        quarts += z * z * z * z
    ray[ONE], ray[TWO], ray[THREE], ray[SQUARES], ray[QUARTS] = one, two, three, 0.25 * squares, FOURTH * quarts


@vectorised
def ray_derivatives(room, s, ray):
    """The weights at s, and the derivatives there."""
    weights, speeds = buffer(), buffer()  # what is read and written apart from each other becomes vectors
    one, two, three = 0.0, 0.0, 0.0
    for start in range(RAY, RAY + room, BLOCK):
        for k in range(BLOCK):
            speeds[k] = ray[room + start + k]
        for k in range(BLOCK):
            weights[k] = ray[start + k] + s * speeds[k]
        for k in range(BLOCK):
            weights[k] = expit_of_minus(weights[k])
        a, b, c = 0.0, 0.0, 0.0
        for k in range(BLOCK):
            a += weights[k] * speeds[k]
        for k in range(BLOCK):
            b += weights[k] * (1.0 - weights[k]) * speeds[k] * speeds[k]
        for k in range(BLOCK):
            w, z = weights[k], speeds[k]
            c += w * (1.0 - w) * (w + w - 1.0) * z * z * z
        one -= a
        two += b
        three += c
        for k in range(BLOCK):
            ray[2 * room + start + k] = weights[k]
    ray[AT], ray[ONE], ray[TWO], ray[THREE] = s, one, two, three


@vectorised
def add_ray_gradient(tiles, ray, out):
    """Add the gradient of all terms, at the weights of the ray, to `out`."""
    weights, start = buffer(), RAY + 2 * tiles.shape[0] * BLOCK
    for t in range(tiles.shape[0]):
        for k in range(BLOCK):
            weights[k] = ray[start + t * BLOCK + k]
        for j in range(out.shape[0]):
            total = 0.0
            for k in range(BLOCK):
                total += weights[k] * tiles[t, j, k]
            out[j] -= total


class TiledLogistic(LogisticTerms):
    """What `LogisticRegression.rearranged` makes: the same posterior with its data in the order `rows`, in tiles.

    A block of consecutive data is then read in long vectors. What Python asks of all data is asked of `whole`, which
    has signed features.
    """

    def __init__(self, whole: LogisticRegression, rows: np.ndarray) -> None:
        data, d = whole.design.data, whole.dim
        tiles = aligned((-(-len(rows) // BLOCK), d, BLOCK), data.dtype)
        for tile, start in enumerate(range(0, len(rows), BLOCK)):
            part = data[rows[start : start + BLOCK], :d]
            tiles[tile, :, : len(part)] = part.T
        GaussianPrior.__init__(self, whole.X, len(rows), whole.precision)
        self.whole, self.design, self.gram = whole, Tiles(tiles, d), whole.gram
        self.target, self.offset = whole.target, whole.offset

    @compiled
    def target_of(self, i):
        return 1.0

    @compiled
    def add_block_gradient(self, x, first, last, out):
        add_tiles_gradient(self.design.data, x, first, last, out)

    @compiled
    def ray_begin(self, x, v, ray):
        ray_project(self.design.data, x, RAY, ray)
        ray[AT] = math.nan
        self.ray_turn(x, 0.0, v, ray)

    @compiled
    def ray_turn(self, x, s, v, ray):
        room = self.design.data.shape[0] * BLOCK
        if s != 0.0:
            ray_advance(room, s, ray)
        ray_project(self.design.data, v, RAY + room, ray)
        ray_sums(room, ray)
        ray[AT] = 0.0 if ray[AT] == s else math.nan
        ray[PRIOR], ray[PRIOR_SLOPE] = 0.0, 0.0
        for j in range(self.dim):
            ray[PRIOR] += self.precision[j] * x[j] * v[j]
            ray[PRIOR_SLOPE] += self.precision[j] * v[j] * v[j]

    @compiled
    def ray_derivatives(self, s, ray):
        if ray[AT] != s:
            ray_derivatives(self.design.data.shape[0] * BLOCK, s, ray)
        return ray[ONE] + ray[PRIOR] + s * ray[PRIOR_SLOPE], ray[TWO] + ray[PRIOR_SLOPE]

    @compiled
    def ray_bound(self, s, h, ray):
        # By Taylor's formula U' rises by less than U'' t + U''' t²/2 + C t³/6, C the bound of the fourth derivative;
        # divided by t that is convex, and largest at 0 or at h. And U'' is nowhere above its own bound.
        most = ray[SQUARES]
        if h < math.inf:
            most = min(most, ray[TWO] + max(0.0, (0.5 * ray[THREE] + ray[QUARTS] * h / 6.0) * h))
        return most + ray[PRIOR_SLOPE]

    @compiled
    def ray_gradient(self, x, s, ray, out):
        if ray[AT] != s:
            ray_derivatives(self.design.data.shape[0] * BLOCK, s, ray)
        for j in range(self.dim):
            out[j] = self.precision[j] * x[j]
        add_ray_gradient(self.design.data, ray, out)

    def ray_room(self):
        """Length of the array that holds a ray."""
        return RAY + 3 * self.design.data.shape[0] * BLOCK

    def row_width(self) -> None:
        return None  # `X` is in another order than the data

    def rearranged(self, rows: np.ndarray) -> None:
        return None  # likewise

    def hessian(self, x: ArrayLike) -> np.ndarray:
        return self.whole.hessian(x)
