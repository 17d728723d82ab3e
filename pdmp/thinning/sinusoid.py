r"""First arrivals of intensities that are sinusoidal between events, as rates on ellipses are for Gaussian targets.

With U quadratic, v·∇E along an ellipse is a₁ cos t + b₁ sin t + a₂ cos 2t + b₂ sin 2t (`Sinusoids`), and vᵢ ∂ᵢE is the
product of vᵢ cos t - yᵢ sin t and c₀ + c₁ cos t + c₂ sin t, whose zeros are known (`product_arrival`).

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML, section 2.
"""

from __future__ import annotations

import math

from pdmp.native.classes import compiled, helper, inlined, positive_part
from pdmp.process import CERTAIN
from pdmp.thinning.bound import Bound

#: An amplitude below this share of the conserved energy is taken for 0: it is rounding.
ROUNDING = 1e-10


@inlined
def sinusoid_arrival(a, b, k, e):
    """Time t with ∫₀ᵗ max(0, a cos ks + b sin ks) ds = e, for e > 0; infinite where both are 0."""
    amplitude = math.hypot(a, b)
    if amplitude == 0.0:
        return math.inf
    e *= k / amplitude  # from here on of max(0, cos θ), θ = ks - φ, whose integral over each turn is 2
    turns = math.floor(0.5 * e)
    e -= 2.0 * turns
    start = -math.atan2(b, a)
    begin = start  # where the intensity is next positive
    if abs(start) < 0.5 * math.pi:
        left = 1.0 - math.sin(start)
        if e < left:
            return (math.asin(math.sin(start) + e) - start + math.tau * turns) / k
        e -= left
        begin = 1.5 * math.pi
    elif start > 0.0:
        begin = 1.5 * math.pi
    else:
        begin = -0.5 * math.pi
    # From there the integral is 1 - cos of the angle.
    return (begin + 2.0 * math.asin(min(math.sqrt(0.5 * e), 1.0)) - start + math.tau * turns) / k


@inlined
def _zero(t):
    """The angle t in [0, 2π)."""
    t = t % math.tau
    return t if t < math.tau else 0.0


@inlined
def _primitive(v, y, c0, c1, c2, t):
    """∫₀ᵗ of (v cos - y sin)(c₀ + c₁ cos + c₂ sin), written so that it is small for small t."""
    half, sine = math.sin(0.5 * t), math.sin(t)
    linear = c0 * (v * sine - 2.0 * y * half * half)
    # cos² = (1 + cos 2t)/2, sin² = (1 - cos 2t)/2, sin cos = sin 2t / 2
    even = 0.25 * math.sin(2.0 * t)
    squares = v * c1 * (0.5 * t + even) - y * c2 * (0.5 * t - even)
    return linear + squares + 0.5 * (v * c2 - y * c1) * sine * sine


@inlined
def _interval(part, first, second, third, fourth):
    """The ends of one of the five parts into which four angles, in order, divide [0, 2π)."""
    low = 0.0 if part == 0 else first if part == 1 else second if part == 2 else third if part == 3 else fourth
    high = first if part == 0 else second if part == 1 else third if part == 2 else fourth if part == 3 else math.tau
    return low, high


@helper
def product_arrival(v, y, c0, c1, c2, e):
    """Time t with ∫₀ᵗ max(0, f) = e for f(s) = (v cos s - y sin s)(c₀ + c₁ cos s + c₂ sin s); infinite if f <= 0.

    f has at most four zeros in a turn, and one sign between them. The integrals of whole turns, then of the intervals
    between zeros, are subtracted from e, as long as they are smaller. In the interval that remains the equation is
    solved to rounding, by Newton's method with bisection.
    """
    first = _zero(math.atan2(v, y))
    second = _zero(first + math.pi)
    third, fourth = 0.0, 0.0
    amplitude = math.hypot(c1, c2)
    if abs(c0) < amplitude:
        middle, away = math.atan2(c2, c1), math.acos(-c0 / amplitude)
        third, fourth = _zero(middle - away), _zero(middle + away)
    # Sorted, five comparisons.
    if first > second:
        first, second = second, first
    if third > fourth:
        third, fourth = fourth, third
    if first > third:
        first, third = third, first
    if second > fourth:
        second, fourth = fourth, second
    if second > third:
        second, third = third, second
    total = 0.0
    for part in range(5):
        low, high = _interval(part, first, second, third, fourth)
        total += positive_part(_primitive(v, y, c0, c1, c2, high) - _primitive(v, y, c0, c1, c2, low))
    size = (abs(v) + abs(y)) * (abs(c0) + amplitude)
    if math.isnan(total) or total <= 1e-13 * size:
        return math.nan if math.isnan(total) else math.inf
    turns = math.floor(e / total)
    e -= total * turns
    for part in range(5):
        low, high = _interval(part, first, second, third, fourth)
        before = _primitive(v, y, c0, c1, c2, low)
        rise = _primitive(v, y, c0, c1, c2, high) - before
        if rise <= 0.0:
            continue
        if e > rise and part < 4:
            e -= rise
            continue
        t = 0.5 * (low + high)
        for _ in range(80):
            excess = _primitive(v, y, c0, c1, c2, t) - before - e
            if excess > 0.0:
                high = t
            else:
                low = t
            f = (v * math.cos(t) - y * math.sin(t)) * (c0 + c1 * math.cos(t) + c2 * math.sin(t))
            new = t - excess / f if f > 0.0 else high
            if not low < new < high:
                new = 0.5 * (low + high)
            if abs(new - t) <= 1e-14 * (1.0 + t):
                break
            t = new
        return math.tau * turns + t
    return math.tau * (turns + 1.0)  # e was rounded up to a whole turn


class Sinusoids(Bound):
    """The rate of the Boomerang sampler for a quadratic potential: the sum of the positive parts of two sinusoids.

    If the reference's mean is the mode, one of them is zero, and nothing is rejected. The process gives
    ``harmonics(state, now, rng)``, which returns a₁, b₁, a₂, b₂ and the conserved energy.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.Boomerang(target, thinning=pdmp.thinning.Sinusoids()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "the sum of two sinusoids"

    @compiled
    def propose(self, process, state, i, now, rng):
        a, b, c, d, energy = process.harmonics(state, now, rng)
        if math.isnan(a + b + c + d):
            return math.nan, CERTAIN
        once, twice = math.inf, math.inf
        least = ROUNDING * energy
        if math.hypot(a, b) > least:
            once = sinusoid_arrival(a, b, 1.0, rng.standard_exponential())
        if math.hypot(c, d) > least:
            twice = sinusoid_arrival(c, d, 2.0, rng.standard_exponential())
        s = min(once, twice)
        if s == math.inf or once == math.inf:
            return now + s, CERTAIN
        bound = positive_part(a * math.cos(s) + b * math.sin(s))
        if twice < math.inf:
            bound += positive_part(c * math.cos(2.0 * s) + d * math.sin(2.0 * s))
        return now + s, bound


class ProductInversion(Bound):
    """Exact arrivals of the factorised Boomerang's clock i for a quadratic potential: nothing is thinned.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> bound = pdmp.thinning.ProductInversion()
    >>> run = pdmp.sample(pdmp.FactorisedBoomerang(target, thinning=bound), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "exact inversion"

    @compiled
    def propose(self, process, state, i, now, rng):
        v, y, c0, c1, c2 = process.sinusoid_factors(state, i, now)
        return now + product_arrival(v, y, c0, c1, c2, rng.standard_exponential()), CERTAIN
