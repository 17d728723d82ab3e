"""Derivatives of the potential of logistic regression along a ray, for `pdmp.DirectionalBPS`: data in tiles of 64."""

from __future__ import annotations

from pdmp.models.regressions.logistic_terms import expit_of_minus
from pdmp.native.classes import vectorised
from pdmp.native.vectors import BLOCK, buffer

#: The fourth derivative of log(1 + exp(-z)), which is w (1 - w) (1 - 6 w (1 - w)), is nowhere above this.
FOURTH = 1.0 / 24.0
#: A ray in memory: these numbers, then for each datum its margin where the ray began, the speed of its margin, and its
#: weight w = expit(-margin) at the place `AT`. There the data's derivatives along the ray are `ONE`, `TWO` and `THREE`;
#: the fourth is at most Σ FOURTH speed⁴, the second Σ speed² / 4. The prior adds PRIOR + s PRIOR_SLOPE to the first.
AT, ONE, TWO, THREE, QUARTS, SQUARES, PRIOR, PRIOR_SLOPE, RAY = range(9)


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
