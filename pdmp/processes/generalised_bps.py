r"""The Generalised Bouncy Particle Sampler.

=====  ===============================================================================================
flow   straight lines, x + v s, with v = L u and L Lᵀ = M⁻¹, as in `BPS`
clock  bounce: that of `BPS`; no refreshments by default
rate   (v·∇U(x))₊
jump   u ← -(component of u along a) + a new draw of its component orthogonal to a, a = Lᵀ∇U
=====  ===============================================================================================

References
----------
Wu & Robert (2020), Coordinate sampler: a non-reversible Gibbs-like MCMC sampler, Stat. Comput. 30, and Wu & Robert
(2017), Generalized bouncy particle sampler, arXiv:1706.04781.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import Provider
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.metric import Metric
from pdmp.models.base import Model
from pdmp.native.classes import Compiled, compiled
from pdmp.native.velocities import across, dot, normals, rescale
from pdmp.processes.bps import BPS
from pdmp.thinning.bound import Bound


class GeneralisedBPS(BPS):
    r"""Bouncy Particle Sampler that draws the component of the velocity orthogonal to the gradient anew at each bounce.

    The component along the gradient changes sign, as in `BPS`. With Gaussian velocities that makes the process
    irreducible, also on isotropic targets: there is no refreshment to tune. Velocities on the sphere keep the length of
    their orthogonal component, and on an isotropic target the process is as reducible as `BPS`, and warns.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    velocities : {"gaussian", "sphere"}, default "gaussian"
        The law of u. Gaussian: the orthogonal component is drawn from N(0, I) in the hyperplane. Sphere: from the
        uniform law on the sphere in it that keeps \|u\| = 1.
    metric, thinning
        As for `BPS`.
    refresh_rate : float, default 0
        Rate of additional full refreshments.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For an option that is not one of these.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.GeneralisedBPS(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    recipe = Recipe(featured=False)
    report = Report()  # no refreshments are the default here: bounces refresh the velocity

    def __init__(
        self,
        target: Model | Provider,
        velocities: str = "gaussian",
        *,
        metric: ArrayLike | Metric | str | None = None,
        thinning: str | Bound = "auto",
        refresh_rate: float = 0.0,
    ) -> None:
        super().__init__(target, refresh_rate=refresh_rate, velocities=velocities, metric=metric, thinning=thinning)

    @compiled
    def bounce(self, u, a, scratch, rng):
        square = dot(a, a)
        if square > 0.0:
            along = dot(u, a) / square
            rest = math.sqrt(max(dot(u, u) - along * along * square, 0.0))
            normals(u, rng)
            across(u, a)
            if not self.gaussian and dot(u, u) > 0.0:
                rescale(u, rest)
            for j in range(u.shape[0]):
                u[j] -= along * a[j]
        if not self.gaussian:
            rescale(u, 1.0)

    def warn_if_reducible(self, metric: Compiled, x: np.ndarray) -> None:
        """Gaussian velocities change the length of their orthogonal component; those on the sphere do not."""
        if not self.gaussian:
            super().warn_if_reducible(metric, x)
