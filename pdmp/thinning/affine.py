"""First arrivals of intensities that are affine between events, or are bounded by affine functions.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 2.3; Bierkens, Fearnhead &
Roberts (2019), The Zig-Zag process and super-efficient sampling, Ann. Statist. 47, section 3.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.base import Model
from pdmp.models.capabilities import require
from pdmp.native.classes import Compiled, compiled, inlined, positive_part
from pdmp.process import CERTAIN, HORIZON
from pdmp.thinning.bound import Bound


@inlined
def first_arrival(a: float, b: float, e: float) -> float:
    """Time t with ∫₀ᵗ max(0, a + b s) ds = e: the first arrival at this rate, e a standard exponential number.

    Parameters
    ----------
    a, b : float
        The rate now, and its slope in time.
    e : float
        Positive.

    Returns
    -------
    float
        Infinite if the integral over all times is smaller than e.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.thinning.first_arrival(0.0, 2.0, 4.0)  # ∫₀ᵗ 2s ds = t²
    2.0
    """
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


@inlined
def affine_proposal(a: np.ndarray, b: np.ndarray, now: float, rng: np.random.Generator) -> tuple[float, float]:
    """First arrival of Σⱼ max(0, aⱼ + bⱼ s) after `now`, and the intensity there: what `Bound.propose` returns.

    Parameters
    ----------
    a, b : ndarray, shape (m,)
        The signed rates at `now`, and bounds on their derivatives in time.
    now : float
        The present time.
    rng : numpy.random.Generator
        One standard exponential number is drawn for each j.

    Returns
    -------
    time, bound : float
        `time` is infinite if there is no arrival, and NaN if Σ a is not finite; `bound` is NaN if Σ b is not finite.

    Examples
    --------
    >>> import numpy, pdmp
    >>> pdmp.thinning.affine_proposal(numpy.array([-1.0]), numpy.zeros(1), 0.0, numpy.random.default_rng(1))
    (inf, inf)
    """
    s, starts, slopes = math.inf, 0.0, 0.0
    for j in range(a.shape[0]):
        starts += a[j]
        slopes += b[j]
    if not math.isfinite(starts):
        return math.nan, HORIZON
    if not math.isfinite(slopes):
        return now, math.nan
    for j in range(a.shape[0]):  # the first arrival of a sum is the earliest of its parts
        s = min(s, first_arrival(a[j], b[j], rng.standard_exponential()))
    if s == math.inf:
        return math.inf, CERTAIN
    bound = 0.0
    for j in range(a.shape[0]):
        bound += positive_part(a[j] + b[j] * s)
    return now + s, bound


class Inversion(Bound):
    """Exact arrivals of Zig-Zag's clock i for a quadratic potential: nothing is thinned.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target, thinning=pdmp.thinning.Inversion()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "exact inversion"
    straight = True

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        super().check(model, form, flow, components)
        if form == "directional":
            raise ValueError('`thinning="inversion"` is for the clocks of single coordinates; use thinning="auto".')
        require(model, '`thinning="inversion"` needs', "affine_partial", instead='Use thinning="auto".')

    @compiled
    def propose(self, process, state, i, now, rng):
        v, e = state.v[i], rng.standard_exponential()
        if v == 0.0:  # of a frozen coordinate nothing need be computed
            return math.inf, CERTAIN
        partial, slope = process.affine_partial(state, i, now)
        return now + first_arrival(v * partial, v * slope, e), CERTAIN


class RayInversion(Bound):
    """Exact arrivals of v·∇U for a quadratic potential: max(0, a + b s) along the ray, and nothing is thinned.

    It asks the process for ``affine_rate(state, now, rng)``, which returns a and b.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.BPS(target, thinning=pdmp.thinning.RayInversion()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "exact inversion"
    wants = ("hessian_product",)
    straight = True

    @compiled
    def propose(self, process, state, i, now, rng):
        a, b = process.affine_rate(state, now, rng)
        return now + first_arrival(a, b, rng.standard_exponential()), CERTAIN


class Affine(Bound):
    """Σ max(0, aᵢ + bᵢ s), with the signed rates aᵢ at `now` and the model's bounds bᵢ on their derivatives in time.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target, thinning=pdmp.thinning.Affine()), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    name = "the model's slope bound"
    wants = ("curvature_bound", "partial_curvature_bounds")
    straight = True

    @compiled
    def propose(self, process, state, i, now, rng):
        a, b = state.memory.bound.rates, state.memory.bound.slope_bounds
        process.signed_rates(state, now, rng, a)
        process.rate_slope_bounds(state, b)
        return affine_proposal(a, b, now, rng)
