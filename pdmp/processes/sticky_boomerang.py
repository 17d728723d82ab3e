"""The sticky Boomerang sampler: `Boomerang` whose coordinates freeze at 0 for a while (see `pdmp.processes.sticky`).

The reference is N(m, diag(σ²)), so that each coordinate runs on an ellipse of its own, and one that is frozen leaves
the others on theirs. Velocities are N(0, diag(σ²)), and those remembered by frozen coordinates belong to them. Bounces
and refreshments concern the coordinates that move.

References
----------
Bierkens, Grazzi, van der Meulen & Schauer (2023), Sticky PDMP samplers for sparse and local inference problems, Stat.
Comput. 33.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import Provider
from pdmp.models.base import Model
from pdmp.models.priors import BetaBernoulli
from pdmp.native.classes import compiled
from pdmp.processes.boomerang import REFRESH, Boomerang
from pdmp.processes.exact import exact_provider
from pdmp.processes.sticky import Sticky
from pdmp.thinning.bound import Bound


class MovingBoomerang(Boomerang):
    """`Boomerang` among the coordinates whose velocity is not 0, with a diagonal covariance."""

    wall_rule = None

    @compiled
    def jump(self, state, i, now, rng):
        v, sd, gradient = state.v, self.reference.sd, state.memory.gradient
        if i == REFRESH:
            for j in range(v.shape[0]):
                if v[j] != 0.0:
                    v[j] = sd[j] * rng.standard_normal()
            return i
        self.evaluate(state, now, rng)
        along, square = 0.0, 0.0
        for j in range(v.shape[0]):
            if v[j] != 0.0:
                along += v[j] * gradient[j]
                square += sd[j] * sd[j] * gradient[j] * gradient[j]
        if math.isnan(along + square):
            return -1
        if square > 0.0:
            for j in range(v.shape[0]):
                if v[j] != 0.0:
                    v[j] -= 2.0 * along / square * sd[j] * sd[j] * gradient[j]
        return i

    @compiled
    def harmonics(self, state, now, rng):
        """Frozen coordinates away from m add to the waves of frequency 1: all are read off four rates."""
        self.evaluate(state, now, rng)
        start = self.along(state, now)
        self.evaluate(state, now + math.pi, rng)
        opposite = self.along(state, now + math.pi)
        a, c = 0.5 * (start - opposite), 0.5 * (start + opposite)
        self.evaluate(state, now + 0.5 * math.pi, rng)
        b = self.along(state, now + 0.5 * math.pi) + c
        self.evaluate(state, now + 0.25 * math.pi, rng)
        d = self.along(state, now + 0.25 * math.pi) - math.sqrt(0.5) * (a + b)
        return a, b, c, d, self.energy(state)


class StickyBoomerang(Sticky):
    """Sticky Boomerang sampler of a spike-and-slab posterior: coordinates are exactly 0 for a part of the time.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample, with the slab as its prior.
    inclusion, always, slab_density, kappa
        As in `StickyZigZag`; frozen coordinates thaw at the rate κᵢ|vᵢ|.
    mean : array_like, shape (d,), optional
        Mean m of the reference: the mode by default.
    covariance : "diagonal", float or array_like, shape (d,), default "diagonal"
        Variances σ² of the reference: the inverse of the diagonal of the Hessian at `mean` by default.
    refresh_rate, thinning
        As in `Boomerang`.

    Raises
    ------
    TypeError, ValueError
        As in `StickyZigZag` and `Boomerang`, and for a covariance that is not diagonal.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> model = pdmp.models.LinearGaussian(X, X @ [1.0, 0.0], noise_scale=1.0)
    >>> run = pdmp.sample(pdmp.StickyBoomerang(model, inclusion=0.2), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    @classmethod
    def in_metric(cls, target: Model | Provider, metric: Any, **options: Any) -> Self:
        """With its mean and variances as the reference."""
        return cls(target, **{"mean": metric.mean, "covariance": metric.variances} | options)

    def __init__(
        self,
        target: Model | Provider,
        inclusion: ArrayLike | BetaBernoulli | None = None,
        always: ArrayLike = (),
        slab_density: ArrayLike | None = None,
        kappa: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | str = "diagonal",
        refresh_rate: float = 0.5,
        thinning: str | Bound = "auto",
    ) -> None:
        if covariance is None or not isinstance(covariance, str) and np.ndim(covariance) > 1:
            raise ValueError(
                '`covariance` must be "diagonal", a number or a vector of variances: coordinates freeze one by one.'
            )
        provider = exact_provider(target, type(self).__name__)
        inner = MovingBoomerang(provider, mean, covariance, refresh_rate, thinning)
        super().__init__(inner, inclusion, always, slab_density, kappa)
