r"""The stochastic-gradient Zig-Zag sampler (SG-ZZ).

=====  ===================================================================================================
flow   straight lines, x + v s, v in {-1, 1}^d
clock  with an estimate ∇Û, coordinate i flips at the constant rate (vᵢ ∂ᵢÛ)₊; at the first flip, or at the end
       of the interval of length ε if that is earlier, the gradient is evaluated anew
rate   none: both are certain
jump   vᵢ ← -vᵢ, or nothing at the end of an interval
=====  ===================================================================================================

Its error is described in `discrete.frozen`. `ZigZagSplitting` has the same limit with one gradient for each step,
whatever the number of flips, and an error of second order if the gradient is exact.

References
----------
Fearnhead, Grazzi, Nemeth & Roberts (2024), Stochastic gradient piecewise deterministic Monte Carlo samplers,
arXiv:2406.19051, SG-ZZ.
"""

from __future__ import annotations

import math

import numpy as np

from discrete.frozen import FrozenRates
from pdmp.native.classes import compiled, positive_part

FLIP = 1  #: the kind of event


class SGZZ(FrozenRates):
    """Stochastic-gradient Zig-Zag sampler on exp(-U), with unit speed in each coordinate.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U.
    step : float or schedule
        ε, in process time: the longest time for which the rates are held constant. It should be small beside the
        target's standard deviations, since the speed is 1, and beside 1/τ, τ the sd of the gradient's noise.
        A run's ``steps`` count estimates of the gradient: one for each interval, and one more for each flip.

    Raises
    ------
    ValueError
        For a step that is not positive.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGZZ(pdmp.gradients.Noisy(model, 0.5), step=0.05).events
    ('step', 'flip')
    """

    events = ("step", "flip")

    @compiled
    def wait(self, v, memory, rng):
        total = 0.0
        for j in range(v.shape[0]):
            total += positive_part(v[j] * memory.gradient[j])
        if not total > 0.0:
            return math.inf
        time = rng.standard_exponential() / total
        rest, chosen = rng.random() * total, 0
        for j in range(v.shape[0]):
            rate = positive_part(v[j] * memory.gradient[j])
            if rate > 0.0:
                chosen = j
            rest -= rate
            if rest < 0.0:
                break
        memory.kind[0], memory.coordinate[0] = FLIP, chosen
        return time

    @compiled
    def event(self, x, v, memory, rng, counts):
        j = memory.coordinate[0]
        v[j] = -v[j]
        return True

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.choice([-1.0, 1.0], self.dim)
