"""Flows: how a coordinate moves between events, and the exact integrals of its path.

Every method is given the coordinate's number j, where it was (x), its velocity there (v) and the time s since.
"""

from __future__ import annotations

from pdmp.compiled import Compiled, compiled


class Linear(Compiled):
    """Straight lines: x(t + s) = x + v s."""

    kind = "linear"

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
        """Integral over [0, s] of (x(u) - c)(y(u) - e), with y, w and e those of coordinate k."""
        x, y = x - c, y - e
        return s * (x * y + 0.5 * s * (x * w + y * v) + s * s * v * w / 3.0)


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
