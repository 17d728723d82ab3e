"""First arrivals of piecewise-linear intensities."""

from __future__ import annotations

import math

from pdmp.native.classes import inlined


@inlined
def segment_arrival(left, right, width, e):
    """Time t in a segment with ∫₀ᵗ of the line from `left` to `right` (both >= 0) over `width` equal to e.

    Infinite when the segment's integral is smaller than e. Stable for flat and for falling segments.
    """
    if e > 0.5 * (left + right) * width:
        return math.inf
    q = (right - left) / width
    denominator = left + math.sqrt(max(0.0, left * left + 2.0 * q * e))
    if denominator == 0.0:
        return width
    return min(width, 2.0 * e / denominator)


@inlined
def positive_arrival(left, right, width, e):
    """As `segment_arrival`, for the positive part of a line whose ends may be negative: (t, what is left of e)."""
    begin, end = 0.0, width
    if left <= 0.0 and right <= 0.0:
        return math.inf, e
    if left < 0.0:
        begin = width * (left / (left - right))
        left = 0.0
    elif right < 0.0:
        end = width * (left / (left - right))
        right = 0.0
    if end <= begin:
        return math.inf, e
    t = segment_arrival(left, right, end - begin, e)
    if t < math.inf:
        return begin + t, 0.0
    return math.inf, e - 0.5 * (left + right) * (end - begin)
