"""Operations on velocities that several processes share."""

from __future__ import annotations

import math

from pdmp.compiled import helper


@helper
def refresh_on_sphere(v, rng):
    """Draw v uniformly from the unit sphere."""
    square = 0.0
    for j in range(v.shape[0]):
        v[j] = rng.standard_normal()
        square += v[j] * v[j]
    norm = math.sqrt(square)
    for j in range(v.shape[0]):
        v[j] /= norm


@helper
def reflect(v, a):
    """v - 2 (v·a) a / |a|²: the specular reflection of v in the plane orthogonal to a."""
    dot, square = 0.0, 0.0
    for j in range(v.shape[0]):
        dot += v[j] * a[j]
        square += a[j] * a[j]
    if square > 0.0:
        c = 2.0 * dot / square
        for j in range(v.shape[0]):
            v[j] -= c * a[j]


@helper
def rescale(v, norm):
    """Give v this Euclidean norm: rounding adds up over many reflections."""
    square = 0.0
    for j in range(v.shape[0]):
        square += v[j] * v[j]
    c = norm / math.sqrt(square)
    for j in range(v.shape[0]):
        v[j] *= c
