"""Flows: how a coordinate moves between events, and the exact integrals of its path."""

from __future__ import annotations

from pdmp.compiled import Compiled, compiled


class Linear(Compiled):
    """Straight lines: x(t + s) = x + v s."""

    kind = "linear"

    @compiled
    def position(self, x, v, s):
        return x + v * s

    @compiled
    def moments(self, x, v, s):
        """Integrals over [0, s] of x(u) and of x(u)²."""
        first = s * (x + 0.5 * v * s)
        second = s * (x * x + x * v * s + v * v * s * s / 3.0)
        return first, second

    @compiled
    def product(self, x, v, y, w, s):
        """Integral over [0, s] of x(u) y(u)."""
        return s * (x * y + 0.5 * s * (x * w + y * v) + s * s * v * w / 3.0)


class Still(Compiled):
    """Piecewise-constant paths: each state is held until the next tick."""

    kind = "constant"

    @compiled
    def position(self, x, v, s):
        return x

    @compiled
    def moments(self, x, v, s):
        return s * x, s * x * x

    @compiled
    def product(self, x, v, y, w, s):
        return s * x * y
