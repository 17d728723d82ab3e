r"""Forward event-chain Monte Carlo.

=====  ===============================================================================================
flow   straight lines, x + v s, with v = L u and L Lᵀ = M⁻¹, as in `BPS`
clock  event: the bounce of `BPS`; no refreshments by default
rate   (v·∇U(x))₊
jump   u ← -r a / |a| + orthogonal part: r is drawn from its law at events, and the orthogonal part is
       kept, or with some probability rotated or drawn anew; a = Lᵀ∇U
=====  ===============================================================================================

The law of r = \|u·a\| / \|a\| at events is that of its stationary law weighted by r: with the density proportional to
r (1 - r²)^((d-3)/2) on the sphere, so that r = √(1 - W^(2/(d-1))) with W uniform, and r exp(-r²/2) for Gaussian
velocities. Any kernel on the orthogonal part that keeps its law may follow.

References
----------
Michel, Durmus & Sénécal (2020), Forward Event-Chain Monte Carlo: fast sampling by randomness control in irreversible
Markov chains, JCGS 29: direct draws of the parallel component; refreshment of the orthogonal one, in full or by an
orthogonal switch, and its positive form.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.gradients import Provider, as_provider
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.metric import Metric
from pdmp.models.base import Model
from pdmp.native.arguments import fraction, number, one_of
from pdmp.native.classes import Compiled, compiled
from pdmp.native.velocities import across, dot, normals, rescale
from pdmp.processes.bps import BPS
from pdmp.thinning.bound import Bound

#: What may happen to the orthogonal component, as a number that compiled code can compare.
KEEP, SWITCH, ROTATE, REFRESH = range(4)
_ORTHOGONAL = {"keep": KEEP, "switch": SWITCH, "rotate": ROTATE, "refresh": REFRESH}


class ForwardEventChain(BPS):
    """Forward event-chain sampler of exp(-U): at events the component along the gradient is drawn from its law.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample.
    orthogonal : {"switch", "rotate", "refresh", "keep"}, default "switch"
        What may happen to the direction of the orthogonal component. "switch": in a plane drawn at random its two
        coordinates change places. "rotate": it is rotated in such a plane by `angle`. "refresh": it is drawn anew.
        "keep": nothing.
    probability : float, default 0.1
        Probability of that at an event.
    angle : float or None, default None
        The angle of "rotate", in radians; None: uniform on the circle.
    positive : bool, default True
        Whether a switched or rotated direction changes sign where its product with the old one is negative.
    velocities : {"sphere", "gaussian"}, default "sphere"
        The law of u, as for `BPS`.
    metric, thinning
        As for `BPS`.
    refresh_rate : float, default 0
        Rate of additional full refreshments.

    Raises
    ------
    TypeError
        For a gradient with noise.
    ValueError
        For an option that is not one of these, and for "switch" and "rotate" below three dimensions, where there is no
        plane orthogonal to the gradient.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.ForwardEventChain(model, orthogonal="refresh"), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    orthogonal: int
    probability: float
    angle: float
    positive: bool

    events = ("event", "refresh")
    recipe = Recipe(featured=False)
    report = Report()  # no refreshments are the default here: bounces refresh the velocity

    def __init__(
        self,
        target: Model | Provider,
        orthogonal: str = "switch",
        probability: float = 0.1,
        angle: float | None = None,
        positive: bool = True,
        velocities: str = "sphere",
        *,
        metric: ArrayLike | Metric | str | None = None,
        thinning: str | Bound = "auto",
        refresh_rate: float = 0.0,
    ) -> None:
        super().__init__(target, refresh_rate=refresh_rate, velocities=velocities, metric=metric, thinning=thinning)
        one_of("orthogonal", orthogonal, _ORTHOGONAL)
        if orthogonal in ("switch", "rotate") and self.dim < 3:
            raise ValueError(
                f'`orthogonal="{orthogonal}"` needs a plane orthogonal to the gradient, and so 3 dimensions or '
                f'more; the target has {self.dim}. Use orthogonal="refresh".'
            )
        self.orthogonal, self.probability = _ORTHOGONAL[orthogonal], fraction("probability", probability, one=True)
        self.angle = math.nan if angle is None else number("angle", angle)
        self.positive = bool(positive)

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """As `BPS.in_metric`; every event switches the direction orthogonal to the gradient.

        Rare switches starve the standard deviations of effective draws. In fewer than three dimensions, where there is
        no switch, that direction is refreshed.
        """
        orthogonal = "switch" if as_provider(target).dim > 2 else "refresh"
        return super().in_metric(target, learnt, **{"orthogonal": orthogonal, "probability": 1.0} | options)

    @compiled
    def bounce(self, u, a, scratch, rng):
        square, d = dot(a, a), u.shape[0]
        if square > 0.0:
            if self.gaussian:
                r = math.sqrt(2.0 * rng.standard_exponential())
            elif d == 1:
                r = 1.0
            else:
                r = math.sqrt(1.0 - rng.random() ** (2.0 / (d - 1)))
            across(u, a)
            if self.orthogonal != KEEP and rng.random() < self.probability:
                self.turn(u, a, scratch[0], scratch[1], rng)
            c, size = 1.0, dot(u, u)
            if not self.gaussian:
                c = math.sqrt((1.0 - r * r) / size) if size > 0.0 else 0.0
            r /= math.sqrt(square)
            for j in range(d):
                u[j] = c * u[j] - r * a[j]
        if not self.gaussian:
            rescale(u, 1.0)

    @compiled
    def turn(self, u, a, e, f, rng):
        """Move u, which is orthogonal to a, by a kernel that treats all directions orthogonal to a alike."""
        if self.orthogonal == REFRESH:
            normals(u, rng)
            across(u, a)
            return
        normals(e, rng)
        across(e, a)
        rescale(e, 1.0)
        normals(f, rng)
        across(f, a)
        across(f, e)
        rescale(f, 1.0)
        p, q = dot(u, e), dot(u, f)
        if self.orthogonal == SWITCH:
            new_p, new_q = q, p
        else:
            angle = 2.0 * math.pi * rng.random() if math.isnan(self.angle) else self.angle
            new_p, new_q = math.cos(angle) * p - math.sin(angle) * q, math.sin(angle) * p + math.cos(angle) * q
        kept = dot(u, u) - p * p - q * q + p * new_p + q * new_q  # the product of old and new
        sign = -1.0 if self.positive and kept < 0.0 else 1.0
        for j in range(u.shape[0]):
            u[j] = sign * (u[j] + (new_p - p) * e[j] + (new_q - q) * f[j])

    def warn_if_reducible(self, metric: Compiled, x: np.ndarray) -> None:
        """Warn only where nothing ever changes the plane of the path."""
        if self.orthogonal == KEEP or self.probability == 0.0:
            super().warn_if_reducible(metric, x)
