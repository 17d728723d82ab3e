r"""The Stochastic Bouncy Particle Sampler without bias: a bound that holds for every mini-batch.

=====  =================================================================================================
flow   straight lines, x + v s, |v| = 1
clock  bounce: Poisson, by thinning under [N L + v·∇prior(x) + m s]₊, inverted exactly: L bounds every
       |∇Uᵢ|, and m the slope of the prior's part along v; refreshment: Poisson of constant rate
rate   (v·∇Û(x))₊ of a fresh mini-batch
jump   bounce: v ← v - 2 (v·∇Û) ∇Û / |∇Û|², ∇Û of that mini-batch; refreshment: v uniform on the sphere
=====  =================================================================================================

As each proposal draws a batch of its own, bounces come at the mean rate E (v·∇Û(x))₊ over the batches, and its law is
the target exactly. The price is the bound: N L grows with the whole of the data and √d, while the rate behind it is
that of the mean gradient and its noise, so that most proposals are rejected.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML: invariance under noisy gradients,
supplement, section A.2; the bound: section H (H.65 to H.68, where the prior is left out).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.gradients import Minibatch
from pdmp.gradients.provider import clear, dot
from pdmp.interfaces.recipe import Recipe
from pdmp.models.base import Model
from pdmp.models.capabilities import missing, require
from pdmp.native.arguments import positive
from pdmp.native.classes import compiled, positive_part
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.process import CERTAIN, Process, State, positions
from pdmp.processes.exact import Refreshed, check_rate, sphere
from pdmp.processes.walls import Walls
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.constant import constant_arrival

BOUNCE, REFRESH = 0, 1


class Memory(NamedTuple):
    """Beside the path."""

    gradient: np.ndarray  #: (d,) the last estimate of ∇U
    here: np.ndarray  #: (d,) where
    provider: tuple


class LipschitzSBPS(Walls, Refreshed, Process):
    """Stochastic Bouncy Particle Sampler of exp(-U) under a bound that no mini-batch exceeds.

    Unlike `SBPS` it has no bias, and needs a model whose terms have bounded gradients, such as logistic regression.
    Each proposal evaluates one batch. If data make the cost, batches of one cost least for each bounce: larger batches
    are proposed as often, cost more, and are accepted less often.

    Parameters
    ----------
    provider : Model or pdmp.gradients.Minibatch
        What to sample; a model stands for ``Minibatch(model, 1)``. Batches must be independent.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments per unit of time; "auto" as in `BPS`.
    bound : float, optional
        L, a bound for every x and i on the norm of the gradient of one term; the model's own when omitted
        (`Derived.largest_term_gradient`).

    Raises
    ------
    TypeError
        For anything but independent mini-batches of a model.
    ValueError
        For a model without such a bound, or values out of range.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))
    >>> run = pdmp.sample(pdmp.LipschitzSBPS(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    provider: object
    refresh_rate: float
    level: float  #: N L
    no_prior: bool

    events = ("bounce", "refresh")
    recipe = Recipe(featured=False)

    def __init__(
        self, provider: Model | Minibatch, refresh_rate: float | str = "auto", bound: float | None = None
    ) -> None:
        if isinstance(provider, Model):
            provider = Minibatch(provider, 1)
        if not isinstance(provider, Minibatch) or not provider.independent:
            what = f'draw="{provider.draw}"' if isinstance(provider, Minibatch) else f"a {type(provider).__name__}"
            raise TypeError(
                "`provider` must be a model, or independent mini-batches of one, pdmp.gradients.Minibatch(model, size, "
                f'draw=...) with draw="iid" or "distinct", got {what}.'
            )
        self.provider, self.model = provider, provider.model
        super().__init__(self.model.dim, clocks=2, dependents=[[BOUNCE], [BOUNCE, REFRESH]])
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        self.no_prior = not self.model.has("add_prior_gradient")
        instead = "pdmp.SBPS needs no bound."
        require(self.model, "pdmp.LipschitzSBPS needs", "prior_curvature_bound", instead=instead)
        if bound is None:
            bound = self.model.largest_term_gradient()
            if not 0.0 < bound < math.inf:
                instead = f"Give `bound=` if there is one. {instead}"
                raise ValueError(missing(self.model, "largest_term_gradient", "pdmp.LipschitzSBPS needs", instead))
        else:
            bound = positive("bound", bound)
        self.level = self.model.n_data * float(bound)

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == REFRESH:
            return now + constant_arrival(self.refresh_rate, rng), CERTAIN
        a, b = self.prior_line(state, now)
        s = first_arrival(self.level + a, b, rng.standard_exponential())
        if s == math.inf:
            return math.inf, CERTAIN
        return now + s, positive_part(self.level + a + b * s)

    @compiled
    def rate(self, state, i, now, rng):
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        self.provider.gradient(memory.here, memory.provider, rng, memory.gradient, state.counts)
        return positive_part(dot(state.v, memory.gradient))

    @compiled
    def jump(self, state, i, now, rng):
        if i == BOUNCE:
            reflect(state.v, state.memory.gradient)
            rescale(state.v, 1.0)
        else:
            refresh_on_sphere(state.v, rng)
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled
    def prior_line(self, state, now):
        """v·∇prior where the path is at `now`, and a bound on its slope from there on."""
        if self.no_prior:
            return 0.0, 0.0
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        clear(memory.gradient)
        self.provider.model.add_prior_gradient(memory.here, memory.gradient)
        return dot(state.v, memory.gradient), self.provider.model.prior_curvature_bound(state.v)

    # -- Python -----------------------------------------------------------------------------------------------------

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return sphere(rng, self.dim)

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float] | None:
        return state.memory.here, None

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return Memory(np.zeros(self.dim), np.zeros(self.dim), self.provider.memory(rng))
