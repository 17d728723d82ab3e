r"""Bounds of the Boomerang samplers from a bound on gradients, by the energy that ellipses conserve.

In the metric of the reference N(m, Σ), y = Σ^(-½) (x - m) and w = Σ^(-½) v, the energy |y|² + |w|² = R² is conserved
between refreshments. If the gradient of E = U - ½ |y|² obeys |Σ^½ ∇E(x)| <= A + B |y|, then

    v·∇E <= |w| (A + B |y|) <= A R + ½ B R²,

and if B also bounds the norm of the Hessian of E in that metric, then d/dt v·∇E = -y·∇E + w·∇²E w <= A R + B R².

With a diagonal Σ the energy rᵢ² of each coordinate is conserved by itself, also when velocities flip. If in these
units |∂ᵢE| <= Aᵢ + Σⱼ Bᵢⱼ |yⱼ|, then wᵢ ∂ᵢE <= rᵢ (Aᵢ + Σⱼ Bᵢⱼ rⱼ), with ½ for j = i; and if Bᵢⱼ bounds the entries of
the Hessian, then its derivative is at most rᵢ (Aᵢ + Σⱼ Bᵢⱼ rⱼ).

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML, section 2.3 and its supplement on bounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.native.classes import compiled, inlined
from pdmp.process import CERTAIN
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.bound import Bound


@inlined
def capped_arrival(rate, slope, level, e):
    """Time t with ∫₀ᵗ of max(0, min(rate + slope s, level)) ds = e, for level >= rate and e > 0."""
    if level <= 0.0:
        return math.inf
    positive = rate if rate > 0.0 else 0.0
    area = 0.5 * (level - positive) * (level + positive) / slope if slope > 0.0 else 0.0  # up to the level
    if e < area:
        return first_arrival(rate, slope, e)
    return max((level - rate) / slope, 0.0) + (e - area) / level


class Energies(NamedTuple):
    """Memory of a bound by the conserved energies."""

    rates: np.ndarray  #: (m,) signed rates
    slope_bounds: np.ndarray  #: (m,) bounds on their derivatives in time
    radii: np.ndarray  #: (m,) roots of the energies


class Conserved(Bound):
    """The constant bound A R + ½ B R²; with `slope`, the smaller of this and the rate now plus (A R + B R²) s.

    Parameters
    ----------
    offset, growth : float
        A, in units of Σ^½ ∇E, and B.
    slope : bool
        Whether the line is used. It holds where B bounds the Hessian of E too and the rate is not random.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.Conserved.exact
    True
    """

    offset: float
    growth: float
    bounds_slope: bool

    name = "the bound by the conserved energy"

    def __init__(self, offset: float, growth: float, slope: bool) -> None:
        self.offset, self.growth, self.bounds_slope = float(offset), float(growth), bool(slope)

    @compiled
    def propose(self, process, state, i, now, rng):
        square = process.energy(state)
        if math.isnan(square):
            return math.nan, CERTAIN
        radius = math.sqrt(square)
        level = self.offset * radius + 0.5 * self.growth * square
        e = rng.standard_exponential()
        if level == 0.0:
            return math.inf, CERTAIN
        if not self.bounds_slope:
            return now + e / level, level
        rates = state.memory.bound.rates
        process.signed_rates(state, now, rng, rates)
        if math.isnan(rates[0]):
            return math.nan, CERTAIN
        slope = self.offset * radius + self.growth * square
        s = capped_arrival(rates[0], slope, level, e)
        return now + s, min(rates[0] + slope * s, level)


class ConservedParts(Bound):
    """The bound of `Conserved` for each coordinate by itself. The first arrival is the earliest of the coordinates'.

    Parameters
    ----------
    offset : ndarray, shape (d,)
        Aᵢ.
    growth : ndarray, shape (d, d)
        Bᵢⱼ.
    common : ndarray, shape (d,)
        Cᵢ, for bounds Aᵢ + Σⱼ Bᵢⱼ |yⱼ| + Cᵢ |y|, as those on single data are.
    slope : bool
        Whether lines are used, as in `Conserved`: where B bounds the entries of the Hessian of E too, C is zero and
        the rates are not random.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.ConservedParts.exact
    True
    """

    offset: np.ndarray
    growth: np.ndarray
    common: np.ndarray
    bounds_slope: bool

    name = "the bound by the conserved energies"

    def __init__(self, offset: ArrayLike, growth: ArrayLike, common: ArrayLike, slope: bool) -> None:
        self.offset, self.common = np.array(offset, dtype=float), np.array(common, dtype=float)
        self.growth, self.bounds_slope = np.ascontiguousarray(growth, dtype=float), bool(slope)

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        radii, slopes, rates = memory.radii, memory.slope_bounds, memory.rates
        process.energies(state, radii)
        if self.bounds_slope:
            process.signed_rates(state, now, rng, rates)
        square = 0.0
        for j in range(radii.shape[0]):
            square += radii[j] * radii[j]
        s = math.inf
        for j in range(radii.shape[0]):
            total = self.offset[j] + self.common[j] * math.sqrt(square)
            for k in range(radii.shape[0]):
                total += self.growth[j, k] * radii[k]
            slopes[j] = radii[j] * total
            level = self.level(radii, slopes, j)
            e = rng.standard_exponential()
            if math.isnan(level + rates[j]):
                return math.nan, CERTAIN
            if self.bounds_slope:
                s = min(s, capped_arrival(rates[j], slopes[j], level, e))
            elif level > 0.0:
                s = min(s, e / level)
        if s == math.inf:
            return math.inf, CERTAIN
        bound = 0.0
        for j in range(radii.shape[0]):
            level = self.level(radii, slopes, j)
            if self.bounds_slope:
                level = min(max(rates[j] + slopes[j] * s, 0.0), level)
            bound += level
        return now + s, bound

    @compiled
    def level(self, radii, slopes, j):
        return slopes[j] - 0.5 * self.growth[j, j] * radii[j] * radii[j]

    def memory(self, m: int, dim: int, width: float) -> tuple:
        return Energies(np.zeros(m), np.zeros(m), np.zeros(m))
