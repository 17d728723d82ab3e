"""First arrivals of intensities that are affine, or bounded by an affine function, between events.

Reference: spec of the inversion in Bierkens, Fearnhead & Roberts (2019), section 3.2; Bouchard-Côté et al. (2018), 2.3.
"""

from __future__ import annotations

import math

from pdmp.compiled import inlined


@inlined
def first_arrival(a, b, e):
    """Time t with ∫₀ᵗ max(0, a + b s) ds = e, for e > 0; infinite if the total intensity is smaller than e."""
    if b > 0.0:
        if a >= 0.0:
            return 2.0 * e / (a + math.sqrt(a * a + 2.0 * b * e))
        return -a / b + math.sqrt(2.0 * e / b)
    if a <= 0.0:
        return math.inf
    if b == 0.0:
        return e / a
    rest = a * a + 2.0 * b * e
    if rest <= 0.0:
        return math.inf
    return 2.0 * e / (a + math.sqrt(rest))
