r"""The local Bouncy Particle Sampler.

=====  ===================================================================================================
flow   straight lines, x + v s; velocities are normal, N(0, I)
clock  one for each factor U_f of the potential: Poisson, inverted exactly for quadratic factors, by thinning
       for others; refreshments: Poisson of constant rate
rate   (v·∇U_f(x))₊, over the factor's coordinates
jump   bounce of f: its coordinates' velocities ← v - 2 (v·∇U_f) ∇U_f / |∇U_f|², and the clocks of the factors
       that share a coordinate with f are drawn anew, no others; refreshment: velocities ← N(0, 1)
=====  ===================================================================================================

Coordinates move lazily, so an event costs what its factor and the neighbours cost, whatever the dimension.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 3 (local rates and bounces: 3.1;
the algorithm with a priority queue: 3.3.1).
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.compiled import Compiled, compiled
from pdmp.factors import Terms, factors_of
from pdmp.process import CERTAIN, Process
from pdmp.processes.exact import check_rate, curvature_at, exact_provider, refresh_rate_at
from pdmp.thinning.factors import FactorAffine, FactorGrid, FactorInversion

BOUNCE, REFRESH = 0, 1


class LocalBPS(Process):
    """Local Bouncy Particle Sampler of exp(-Σ U_f) on the factor graph of the potential.

    Parameters
    ----------
    target : Model or pdmp.gradients.Full
        What to sample: a Gaussian, or a model with a method ``factors()``.
    graph : networkx.Graph or pdmp.graph.FactorGraph, optional
        The factor graph (see `pdmp.graph` for its nodes' attributes); the model's own when omitted.
    refresh_rate : float or "auto", default "auto"
        Rate of each refreshment clock, per unit of time. "auto": 0.1 √(tr H / (2πd)) with the Hessian H where the run
        starts, a tenth of the bounce rate of one coordinate.
    refresh : {"variable", "factor", "global"}, default "variable"
        What a refreshment redraws. "variable": one coordinate's velocity, each coordinate has its own clock. "factor":
        those of a factor's coordinates, each factor has a clock. "global": all of them, by one clock; an event of it
        costs what the whole graph costs.
    thinning : "auto", "inversion", "affine", "grid" or one of `pdmp.thinning.factors`
        How a factor's clock rings. "inversion": exact, for quadratic factors. "affine": the model's bounds on its
        factors, exact. "grid": an adaptive grid for each factor, for models that give no bounds; its violations are
        counted. "auto" takes the first of these that the model supports.

    Raises
    ------
    TypeError
        For a gradient with noise, or a graph that is not a networkx graph.
    ValueError
        For a negative or non-finite rate, thinning that the model does not support, a graph that does not cover the
        potential or its coordinates, factors without a gradient, or, when a run starts, factors that do not add up to
        the potential or depend on more than their coordinates.
    """

    factors: Compiled
    thinning: Compiled
    refresh_rate: float
    bounces: int  #: clocks of factors; those after them refresh

    events = ("bounce", "refresh")
    featured = False
    at_walls = "reflect"

    def __init__(self, target, graph=None, refresh_rate="auto", refresh="variable", thinning="auto"):
        self.model = exact_provider(target, type(self).__name__).model
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        self.factors = factors_of(self.model, graph)
        self.thinning = choose_factor_thinning(thinning, self.factors, self.model)
        self.exact_bounds = self.thinning.exact
        graph = self.factors.graph
        n, d = len(graph), graph.dim
        self.bounces = n
        if refresh == "variable":
            redraws, redrawn = graph.factors_of, (np.arange(d + 1), np.arange(d))
        elif refresh == "factor":
            redraws, redrawn = graph.neighbours, (graph.indptr, graph.indices)
        elif refresh == "global":
            redraws, redrawn = (np.array([0, n]), np.arange(n)), (np.array([0, d]), np.arange(d))
        else:
            raise ValueError(f'`refresh` must be "variable", "factor" or "global", got {refresh!r}.')
        more = len(redraws[0]) - 1
        itself = np.insert(redraws[1], redraws[0][1:], n + np.arange(more))  # at the end of each row
        dependents = _joined(graph.neighbours, (redraws[0] + np.arange(more + 1), itself))
        super().__init__(d, clocks=n + more, dependents=dependents, local=True)
        self.scope_start, self.scope = _joined((graph.indptr, graph.indices), redrawn)

    @compiled
    def clock(self, state, i, now, rng):
        if i < self.bounces:
            return self.thinning.propose(self, state, i, now, rng)
        if self.refresh_rate == 0.0:
            return CERTAIN, CERTAIN  # never
        return now + rng.standard_exponential() / self.refresh_rate, CERTAIN

    @compiled
    def rate(self, state, i, now, rng):
        return self.thinning.rate(self, state, i, now, rng)

    @compiled
    def jump(self, state, i, now, rng):
        if i < self.bounces:
            return BOUNCE if math.isfinite(self.factors.bounce(state, i, now)) else -1
        for k in range(self.scope_start[i], self.scope_start[i + 1]):
            state.v[self.scope[k]] = rng.standard_normal()
        return REFRESH

    # What a grid asks for: the signed rate of the factor that it looks at.

    @compiled
    def rates(self, state, now, rng, out):
        out[0] = self.factors.along(state, state.memory.of[0], now)

    def resolve(self, x):
        process = super().resolve(x)
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x)
        if isinstance(self.factors, Terms):
            self.factors.check(x)
        return process

    def velocity(self, x, rng):
        return rng.standard_normal(self.dim)

    def memory(self, x, rng):
        width = 1.0
        if not self.exact_bounds:
            width = 1.0 / math.sqrt(curvature_at(self.model, x, "the first width of the grid"))
        return self.factors.memory(width)


def choose_factor_thinning(thinning, factors, model):
    """How the clocks of these factors ring; a `ValueError` for what the model does not support."""
    affine = not isinstance(factors, Terms) or model.knows("affine_factor")
    name = type(model).__name__
    if isinstance(thinning, str) and thinning == "auto":
        return FactorInversion() if affine else FactorAffine() if model.knows("bound_factor") else FactorGrid()
    if isinstance(thinning, str) and thinning in ("inversion", "affine", "grid"):
        if thinning == "inversion" and not affine:
            raise ValueError(f'`thinning="inversion"` needs quadratic factors: {name} has no `affine_factor`.')
        if thinning == "affine" and not (isinstance(factors, Terms) and model.knows("bound_factor")):
            raise ValueError(f'`thinning="affine"` needs bounds from the model: {name} has no `bound_factor`.')
        return {"inversion": FactorInversion, "affine": FactorAffine, "grid": FactorGrid}[thinning]()
    if isinstance(thinning, (FactorInversion, FactorAffine, FactorGrid)):
        return thinning
    raise ValueError(
        f'`thinning` must be "auto", "inversion", "affine", "grid" or one of pdmp.thinning.factors, got {thinning!r}.'
    )


def _joined(one, other):
    """Compressed rows, one set after the other."""
    return np.concatenate([one[0], one[0][-1] + other[0][1:]]), np.concatenate([one[1], other[1]])
