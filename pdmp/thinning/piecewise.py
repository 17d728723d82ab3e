"""First arrivals of piecewise-linear intensities."""

from __future__ import annotations

import math

from pdmp.compiled import inlined


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
