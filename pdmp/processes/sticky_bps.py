"""The sticky Bouncy Particle Sampler: BPS whose coordinates freeze at 0 for a while (see `pdmp.processes.sticky`).

Velocities are N(0, I), and those remembered by frozen coordinates belong to them. Bounces and refreshments concern the
coordinates that move: given the others, their velocities are N(0, I) as well.

References
----------
Bierkens, Grazzi, van der Meulen & Schauer (2023), Sticky PDMP samplers for sparse and local inference problems, Stat.
Comput. 33.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from pdmp.gradients import Provider
from pdmp.models.base import Model
from pdmp.models.priors import BetaBernoulli
from pdmp.native.classes import compiled
from pdmp.processes.bps import BPS
from pdmp.processes.exact import exact_provider
from pdmp.processes.sticky import Sticky
from pdmp.thinning.bound import Bound


class MovingBPS(BPS):
    """`BPS` among the coordinates whose velocity is not 0."""

    wall_rule = None

    @compiled
    def bounce(self, u, a, scratch, rng):
        along, square = 0.0, 0.0
        for j in range(u.shape[0]):
            if u[j] != 0.0:
                along += u[j] * a[j]
                square += a[j] * a[j]
        if square > 0.0:
            for j in range(u.shape[0]):
                if u[j] != 0.0:
                    u[j] -= 2.0 * along / square * a[j]

    @compiled
    def refresh(self, u, scratch, rng):
        rest = math.sqrt(1.0 - self.persistence**2)
        for j in range(u.shape[0]):
            if u[j] != 0.0:
                u[j] = self.persistence * u[j] + rest * rng.standard_normal()


class StickyBPS(Sticky):
    """Sticky Bouncy Particle Sampler of a spike-and-slab posterior: coordinates are exactly 0 for a part of the time.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample, with the slab as its prior.
    inclusion, always, slab_density, kappa
        As in `StickyZigZag`; frozen coordinates thaw at the rate κᵢ|vᵢ|.
    refresh_rate, refresh, persistence, thinning
        As in `BPS`, with Gaussian velocities.

    Raises
    ------
    TypeError, ValueError
        As in `StickyZigZag` and `BPS`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> model = pdmp.models.LinearGaussian(X, X @ [1.0, 0.0], noise_scale=1.0)
    >>> run = pdmp.sample(pdmp.StickyBPS(model, inclusion=0.2), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    def __init__(
        self,
        target: Model | Provider,
        inclusion: ArrayLike | BetaBernoulli | None = None,
        always: ArrayLike = (),
        slab_density: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
        refresh_rate: float | str = "auto",
        refresh: str = "full",
        persistence: float = 0.5,
        thinning: str | Bound = "auto",
    ) -> None:
        provider = exact_provider(target, type(self).__name__)
        inner = MovingBPS(provider, refresh_rate, refresh, "gaussian", None, persistence, thinning)
        super().__init__(inner, inclusion, always, slab_density, kappa)
