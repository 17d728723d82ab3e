"""Flows: how a coordinate moves between events, and the exact integrals of its path.

The arguments of a method are the coordinate's number j, its position x and velocity v when it last changed, and the
time s since then.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import Compiled, compiled, inlined


class Linear(Compiled):
    """Straight lines: x(t + s) = x + v s."""

    kind = "linear"

    @compiled
    def longest(self):
        """The longest time for which `arc` may be asked."""
        return math.inf

    @compiled
    def arc(self, s):
        """Numbers p, q, r with x(t + u) = x + v p(u) - b q(u) and v(t + u) = v (1 - q(u)) - r b p(u).

        b is the `bend`; p and q are monotone in 0 <= u <= s, and are returned for u = s.
        """
        return s, 0.0, 0.0

    @compiled
    def bend(self, j, x, v):
        """Minus the acceleration."""
        return 0.0

    @compiled
    def position(self, j, x, v, s):
        return x + v * s

    @compiled
    def velocity(self, j, x, v, s):
        return v

    @compiled
    def moments(self, j, x, v, c, s):
        """Integrals over [0, s] of x(u) - c and of its square."""
        x = x - c
        first = s * (x + 0.5 * v * s)
        second = s * (x * x + x * v * s + v * v * s * s / 3.0)
        return first, second

    @compiled
    def product(self, j, x, v, c, k, y, w, e, s):
        """Integral over [0, s] of (x(u) - c)(y(u) - e); y, w and e are those of coordinate k."""
        x, y = x - c, y - e
        return s * (x * y + 0.5 * s * (x * w + y * v) + s * s * v * w / 3.0)

    @compiled
    def around(self, j):
        """The centre of coordinate j's path; `first_passage` takes positions relative to it."""
        return 0.0

    @compiled
    def first_passage(self, y, w, level):
        """First time s >= 0 at which a path from y <= level with velocity w reaches the level from below, or infinity.

        y is a coordinate, or a linear combination of coordinates, relative to its centre (`around`); so is `level`.
        """
        return max(level - y, 0.0) / w if w > 0.0 else math.inf

    @compiled
    def at_wall(self, j, x):
        """Whether coordinate j is on a wall or beyond it, at x."""
        return False


class Still(Compiled):
    """Piecewise-constant paths: each state is held until the next tick."""

    kind = "constant"

    @compiled
    def position(self, j, x, v, s):
        return x

    @compiled
    def velocity(self, j, x, v, s):
        return v

    @compiled
    def moments(self, j, x, v, c, s):
        x = x - c
        return s * x, s * x * x

    @compiled
    def product(self, j, x, v, c, k, y, w, e, s):
        return s * (x - c) * (y - e)

    @compiled
    def at_wall(self, j, x):
        return False


@inlined
def angle_excess(s):
    """s - sin s without cancellation: for |s| < 1 from its power series."""
    if abs(s) >= 1.0:
        return s - math.sin(s)
    q, series = s * s, 1.0
    for k in (272.0, 210.0, 156.0, 110.0, 72.0, 42.0, 20.0):  # 2k (2k + 1)
        series = 1.0 - series * q / k
    return s * q / 6.0 * series


class Elliptic(Compiled):
    """Ellipses around a mean m: x(t + s) - m = (x - m) cos s + v sin s, and v(t + s) = v cos s - (x - m) sin s.

    With the bend b = x - m this is x + v sin s - b (1 - cos s), which is computed without cancellation, so that short
    arcs are accurate. (x - m)² + v² is conserved in each coordinate. A coordinate whose position and velocity are both
    exactly 0 stays there, whatever m: this is how sticky processes freeze it.

    Parameters
    ----------
    mean : array_like, shape (d,)
        The centre of the ellipses.
    """

    mean: np.ndarray

    kind = "elliptic"

    def __init__(self, mean: ArrayLike) -> None:
        self.mean = np.array(mean, dtype=float)

    @compiled
    def longest(self):
        return 0.5 * math.pi

    @compiled
    def arc(self, s):
        sine = math.sin(0.5 * s)
        return math.sin(s) * (1.0 + 1e-15), 2.0 * sine * sine * (1.0 + 1e-15), 1.0

    @compiled
    def bend(self, j, x, v):
        """x - m, or 0 for a frozen coordinate."""
        return 0.0 if x == 0.0 and v == 0.0 else x - self.mean[j]

    @compiled
    def position(self, j, x, v, s):
        sine, cosine = math.sin(0.5 * s), math.cos(0.5 * s)
        return x + 2.0 * sine * (v * cosine - self.bend(j, x, v) * sine)

    @compiled
    def velocity(self, j, x, v, s):
        sine, cosine = math.sin(0.5 * s), math.cos(0.5 * s)
        return v - 2.0 * sine * (v * sine + self.bend(j, x, v) * cosine)

    @compiled
    def moments(self, j, x, v, c, s):
        return self._line(j, x, v, c, s), self.product(j, x, v, c, j, x, v, c, s)

    @compiled
    def _line(self, j, x, v, c, s):
        """Integral over [0, s] of x(u) - c."""
        sine = math.sin(0.5 * s)
        return s * (x - c) + v * 2.0 * sine * sine - self.bend(j, x, v) * angle_excess(s)

    @compiled
    def product(self, j, x, v, c, k, y, w, e, s):
        sine, cosine = math.sin(0.5 * s), math.cos(0.5 * s)
        rise, swing, lag = 2.0 * sine * sine, 2.0 * sine * cosine, angle_excess(s)  # 1 - cos s, sin s, s - sin s
        b, d = self.bend(j, x, v), self.bend(k, y, w)
        x, y = x - c, y - e
        total = s * x * y + x * (w * rise - d * lag) + y * (v * rise - b * lag)
        total += 0.5 * v * w * (lag + swing * rise)  # of sin²
        total -= 0.5 * (v * d + w * b) * rise * rise  # of sin (1 - cos)
        return total + 0.5 * b * d * (3.0 * lag - swing * rise)  # of (1 - cos)²

    @compiled
    def around(self, j):
        return self.mean[j]

    @compiled
    def at_wall(self, j, x):
        return False

    @compiled
    def first_passage(self, y, w, level):
        radius = math.hypot(y, w)  # y cos s + w sin s = radius cos(s - phase)
        if level >= radius:
            return math.inf
        wait = math.atan2(w + 0.0, y) - math.acos(max(level / radius, -1.0))
        return max(wait, 0.0) if w >= 0.0 else wait + 2.0 * math.pi  # on its way up, a wait below zero is rounding
