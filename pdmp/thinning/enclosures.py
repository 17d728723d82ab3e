"""A clock for each coordinate or factor, its rate bounded over the next piece of its own path, which then expires.

=====  =============================================================================================================
rate   (r)₊, of which is known that r(now + u) <= a + b u for 0 <= u <= s; s, the horizon, is the clock's own
clock  the first arrival at the rate (a + b u)₊, if it is not after s; else nothing is proposed before now + s
=====  =============================================================================================================

A horizon grows when it passes without an arrival, and shrinks when it does not; the bound holds whatever it is, so the
law that is sampled does not depend on it. It shrinks, too, where no bound is finite up to it, as near a pole.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 2.3.2 (bounds over short times).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.classes import Compiled, compiled, inlined, positive_part
from pdmp.process import CERTAIN, HORIZON
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import Bound

GAIN = 0.1  #: of the horizons, on a logarithmic scale
PASSED = 0.3  #: share of the horizons that should pass without an arrival
TIMES = 1e-15  #: rounding errors of times, and so of where on its path a coordinate is, relative to the time
SMALLEST = 60  #: halvings of a horizon after which a bound that is still not finite is an error


class Horizons(NamedTuple):
    """Memory of clocks that have horizons of their own."""

    horizons: np.ndarray  #: (clocks, 1)
    sweep: tuple  #: what the sums work on


@inlined
def propose_within(sums, state, i, now, horizons, rng):
    """When clock i proposes next, and the bound there.

    ``sums.rate_within(state, i, now, s)`` gives a and b; where ``sums.is_affine(i)``, ``sums.affine(state, i, now)``
    gives those with which a + b u is the signed rate itself, for every u.
    """
    e = rng.standard_exponential()
    if sums.is_affine(i):
        a, b = sums.affine(state, i, now)
        return now + first_arrival(a, b, e), CERTAIN
    width = min(horizons[i, 0], sums.flow.longest())
    a, b = sums.rate_within(state, i, now, width)
    if not math.isfinite(a):
        return math.nan, HORIZON
    for _ in range(SMALLEST):
        if math.isfinite(b):
            break
        width *= 0.5
        a, b = sums.rate_within(state, i, now, width)
    if not math.isfinite(b):
        return now, math.nan
    a += TIMES * now * abs(b)
    s = first_arrival(a, b, e)
    horizons[i, 0] = width * math.exp(GAIN * ((1.0 if s >= width else 0.0) - PASSED))
    if s >= width:
        return now + width, HORIZON
    return now + s, positive_part(a + b * s)


class Enclosures(Bound):
    """Bounds on the rates of single coordinates over the next piece of path, a clock for each.

    Parameters
    ----------
    sums : Compiled
        With ``is_affine``, ``affine`` and ``rate_within``, as `propose_within` needs them; the signed rate,
        ``rate_of(state, i, now)``; its `flow`, and ``memory()``, what they work on.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> p = pdmp.Parameters(x=50)
    >>> steps = pdmp.terms(lambda a, b: 2.0 * (a - b) ** 2, at=[p.x[np.arange(49)], p.x[np.arange(1, 50)]])
    >>> counts = pdmp.terms(lambda y, a: np.exp(a) - y * a, [np.arange(50) % 4], [p.x[np.arange(50)]])
    >>> pdmp.ZigZag(pdmp.models.sum_of_terms(p, [steps, counts])).thinning.name
    'enclosures of single coordinates'
    """

    sums: Compiled

    name = "enclosures of single coordinates"
    adapts = True

    def __init__(self, sums: Compiled) -> None:
        self.sums = sums

    @compiled
    def propose(self, process, state, i, now, rng):
        return propose_within(self.sums, state, i, now, state.memory.bound.horizons, rng)

    @compiled
    def rate_of(self, process, state, i, now):
        return self.sums.rate_of(state, i, now)

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return Horizons(np.full((dim, 1), width * math.sqrt(m)), self.sums.memory())
