"""Operations on velocities that several processes share."""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import helper, inlined


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
def dot(a, b):
    """a·b, in four independent sums, which the processor can add at the same time."""
    n = a.shape[0]
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for k in range(n // 4):
        j = 4 * k
        p += a[j] * b[j]
        q += a[j + 1] * b[j + 1]
        r += a[j + 2] * b[j + 2]
        s += a[j + 3] * b[j + 3]
    for j in range(4 * (n // 4), n):
        p += a[j] * b[j]
    return (p + q) + (r + s)


@inlined
def finite(values: np.ndarray) -> bool:
    """Whether the sum of the entries is finite, as it is if all of them are, unless it overflows.

    Parameters
    ----------
    values : ndarray, shape (d,)
        Such as a gradient.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy
    >>> from pdmp.native.velocities import finite
    >>> finite(numpy.array([0.0, numpy.nan]))
    False
    """
    total = 0.0
    for j in range(values.shape[0]):
        total += values[j]
    return math.isfinite(total)


@helper
def normals(v, rng):
    """Draw v from N(0, I)."""
    for j in range(v.shape[0]):
        v[j] = rng.standard_normal()


@helper
def turn_partly(u, persistence, scratch, rng):
    """Refresh a unit vector in part: ρ u + √(1 - ρ²) w, with w uniform among the unit vectors orthogonal to u.

    The uniform law on the sphere is invariant. In one dimension u changes sign with probability (1 - ρ) / 2, so that
    E[u·u'] = ρ there as well.
    """
    if u.shape[0] == 1:
        if 2.0 * rng.random() < 1.0 - persistence:
            u[0] = -u[0]
        return
    normals(scratch, rng)
    along = dot(scratch, u) / dot(u, u)
    for j in range(u.shape[0]):
        scratch[j] -= along * u[j]
    c = math.sqrt((1.0 - persistence * persistence) * dot(u, u) / dot(scratch, scratch))
    for j in range(u.shape[0]):
        u[j] = persistence * u[j] + c * scratch[j]


@helper
def autoregress(u, persistence, rng):
    """ρ u + √(1 - ρ²) ξ with ξ ~ N(0, I), which keeps the law N(0, I)."""
    c = math.sqrt(1.0 - persistence * persistence)
    for j in range(u.shape[0]):
        u[j] = persistence * u[j] + c * rng.standard_normal()


@helper
def across(v, a):
    """Subtract from v its component along a."""
    c = dot(v, a) / dot(a, a)
    for j in range(v.shape[0]):
        v[j] -= c * a[j]


@helper
def reflect(v, a):
    """v - 2 (v·a) a / |a|²: the specular reflection of v in the plane orthogonal to a."""
    along, square = dot(v, a), dot(a, a)
    if square > 0.0:
        c = 2.0 * along / square
        for j in range(v.shape[0]):
            v[j] -= c * a[j]


@helper
def rescale(v, norm):
    """Scale v to the Euclidean norm `norm`, from which rounding moves it over many reflections."""
    c = norm / math.sqrt(dot(v, v))
    for j in range(v.shape[0]):
        v[j] *= c
