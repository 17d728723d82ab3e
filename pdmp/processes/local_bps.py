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

Local is better than global where factors are small and many: a global bounce costs O(d), a local one changes two
velocities, but mixes less. On a chain of d = 10, 30, 100 and 1,000 normal variables the worst coordinate's ESS per
second was 0.34, 1.3, 4.7 and 5.7 times that of `pdmp.BPS`; of a dense target each factor is the whole of it. For data,
local means one datum a proposal. With N = 100,000 and d = 10 ESS per second was 0.06 times that of `pdmp.BPS`, as the
many bounces of single data make a random walk of the path, and 1.8 times with control variates; with N = 1,000
`pdmp.BPS` is twenty times faster than either (``tests/benchmarks/local.py``).

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, section 3 (local rates and bounces: 3.1;
the algorithm with a priority queue: 3.3.1).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from pdmp.errors import warn
from pdmp.factors.bounds import FactorAffine, FactorGrid, FactorInversion, FactorWithin
from pdmp.factors.shared_clock import PRIOR, TERMS, data_factors
from pdmp.factors.sums import SumFactors, factors_of
from pdmp.factors.terms import Terms
from pdmp.gradients import ControlVariate, Provider
from pdmp.gradients.control_variate import one_anchor
from pdmp.interfaces.recipe import Recipe
from pdmp.metric import Identity
from pdmp.models.base import Model
from pdmp.models.capabilities import missing, require
from pdmp.native.arguments import one_of
from pdmp.native.classes import Compiled, compiled
from pdmp.process import CERTAIN, Process
from pdmp.processes.bps import isotropic
from pdmp.processes.exact import check_rate, curvature_at, exact_provider, refresh_rate_at
from pdmp.processes.walls import Walls
from pdmp.thinning.constant import constant_arrival

BOUNCE, REFRESH = 0, 1

#: Local bounces mix velocities by themselves: on chains of 10 and 100 a third of the usual rate gave up to 1.4 times
#: the ESS per event, and ten times less no more than that.
LOCAL_REFRESH = 0.3


class LocalBPS(Walls, Process):
    """Local Bouncy Particle Sampler of exp(-Σ U_f) on the factor graph of the potential.

    A regression without `graph` has its data as factors, which share one clock, so that a proposal evaluates one datum
    and costs the same for every N: see `pdmp.factors.shared_clock`. All other targets have a clock for each factor.

    Parameters
    ----------
    target : Model, pdmp.gradients.Full or pdmp.gradients.ControlVariate
        What to sample: a Gaussian, or a model with a method ``factors()``, or a regression; one with control variates
        has the factors Uᵢ(x) - x·∇Uᵢ(anchor), whose data are drawn in proportion to their bounds.
    graph : networkx.Graph or pdmp.graph.FactorGraph, optional
        The factor graph (see `pdmp.graph` for its nodes' attributes); the model's own when omitted, which for a
        regression with a clock for each datum is ``pdmp.graph.from_model(model)``.
    refresh_rate : float or "auto", default "auto"
        Rate of each refreshment clock, per unit of time. "auto": 0.03 √(tr H / (2πd)) with the Hessian H where the run
        starts, 0.03 times the bounce rate of one coordinate; 0.1 in place of 0.03 where data share a clock.
    refresh : {"auto", "variable", "factor", "global"}, default "auto"
        What a refreshment redraws. "variable": one coordinate's velocity, each coordinate has its own clock. "factor":
        those of a factor's coordinates, each factor has a clock. "global": all of them, by one clock; an event of it
        costs what the whole graph costs. "auto" is "variable", but "global" where data share a clock.
    thinning : "auto", "inversion", "affine", "hessian", "grid", "columns", "rows" or one of `pdmp.factors.bounds`
        How the clock of a factor proposes. "inversion": exact, for quadratic factors. "affine": the model's bounds on
        its factors, exact. "hessian": for models of `pdmp.terms`, enclosures of the terms' second derivatives over the
        next piece of path, exact, and inversion of what is quadratic. "grid": an adaptive grid for each factor, for
        models that give no bounds; its violations are counted. "columns" and "rows": data that share a clock, at a
        cost of O(d) a proposal, or with tighter bounds that cost O(N d) at each change of velocity. "auto" takes
        "columns" for a regression without `graph`, else the first of the others that the model supports.

    Raises
    ------
    TypeError
        For a gradient with noise other than control variates, or a graph that is not a networkx graph.
    ValueError
        For a negative or non-finite rate, thinning that the model does not support, a graph that does not cover the
        potential or its coordinates, factors without a gradient, or, when a run starts, factors that do not add up to
        the potential or depend on more than their coordinates.

    See Also
    --------
    pdmp.BPS : One clock for the sum of all factors.
    pdmp.factors.from_networkx : A graph of your own.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [[2.0, 0.5], [0.5, 1.0]])
    >>> run = pdmp.sample(pdmp.LocalBPS(model), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    factors: Compiled
    thinning: Compiled
    refresh_rate: float
    bounces: int  #: clocks of factors; those after them refresh

    events = ("bounce", "refresh")
    recipe = Recipe(featured=False)

    def __init__(
        self,
        target: Model | Provider,
        graph: object = None,
        refresh_rate: float | str = "auto",
        refresh: str = "auto",
        thinning: str | Compiled = "auto",
    ) -> None:
        anchored = isinstance(target, ControlVariate)
        one_anchor(target, type(self).__name__)
        self.model = target.model if anchored else exact_provider(target, type(self).__name__).model
        self.anchor = target.anchor if anchored else None
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        one_of("refresh", refresh, ("auto", "variable", "factor", "global"))
        shared = isinstance(thinning, str) and thinning in ("columns", "rows")
        alone = graph is None and isinstance(thinning, str) and thinning == "auto"
        if anchored or shared or alone and self.model.has("signed_term_bound"):
            self._share_a_clock(target if anchored else None, graph, refresh, thinning)
        else:
            self._have_clocks(graph, refresh, thinning)
        self.exact_bounds = self.thinning.exact

    def _share_a_clock(self, provider, graph, refresh, thinning):
        """Clocks: all data, the prior, the refreshment of all velocities."""
        if graph is not None:
            raise ValueError("data that share a clock are no graph: leave out `graph`, or give other `thinning`.")
        if refresh not in ("auto", "global"):
            raise ValueError(f'`refresh` must be "global" where data share a clock, got "{refresh}".')
        if provider is not None and thinning != "auto":
            raise ValueError(f'`thinning` must be "auto" with control variates, got {thinning!r}.')
        self.factors = self.thinning = data_factors(self.model, thinning, provider)
        self.bounces, d = 2, self.model.dim
        super().__init__(d, clocks=3, dependents=[[TERMS, PRIOR], [TERMS, PRIOR], [TERMS, PRIOR, 2]])
        self.scope_start, self.scope = np.array([0, 0, 0, d]), np.arange(d)

    def _have_clocks(self, graph, refresh, thinning):
        """A clock for each factor, and those of the refreshments."""
        self.factors = factors_of(self.model, graph)
        self.thinning = choose_factor_thinning(thinning, self.factors, self.model)
        graph = self.factors.graph
        n, d = len(graph), graph.dim
        self.bounces = n
        if refresh == "factor":
            redraws, redrawn = graph.neighbours, (graph.indptr, graph.indices)
        elif refresh == "global":
            redraws, redrawn = (np.array([0, n]), np.arange(n)), (np.array([0, d]), np.arange(d))
        else:
            redraws, redrawn = graph.factors_of, (np.arange(d + 1), np.arange(d))
        more = len(redraws[0]) - 1
        itself = np.insert(redraws[1], redraws[0][1:], n + np.arange(more))  # at the end of each row
        dependents = _joined(graph.neighbours, (redraws[0] + np.arange(more + 1), itself))
        super().__init__(d, clocks=n + more, dependents=dependents, local=True)
        self.scope_start, self.scope = _joined((graph.indptr, graph.indices), redrawn)

    @compiled
    def clock(self, state, i, now, rng):
        if i < self.bounces:
            return self.thinning.propose(self, state, i, now, rng)
        return now + constant_arrival(self.refresh_rate, rng), CERTAIN

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

    @compiled
    def true_rates(self, x, v, scratch, out):
        self.factors.true_rates(x, v, scratch, out)
        for i in range(self.bounces, out.shape[0]):
            out[i] = self.refresh_rate

    def resolve(self, x: np.ndarray) -> Self:
        process = super().resolve(x)
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x, self._narrow) * (LOCAL_REFRESH if self.local else 1.0)
        if isinstance(self.factors, Terms):
            self.factors.check(x)
        if process.refresh_rate == 0.0 and self.local and np.diff(self.factors.graph.indptr).max() > 1:
            if isotropic(self.model, Identity()):
                warn(
                    "pdmp.LocalBPS without refreshment is reducible on an isotropic target with a factor of several "
                    "coordinates: averages depend on the start. Give a `refresh_rate` above 0."
                )
        return process

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(self.dim)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        if not self.local:
            return self.factors.memory()
        width = 1.0
        if self.thinning.adapts:
            width = 1.0 / math.sqrt(curvature_at(self.model, x, "the first width of the grid", self._narrow))
        return self.factors.memory(self.thinning.cells(self.bounces, width))

    def describe_bound(self) -> str:
        return f"{self.thinning.name} of {type(self.model).__name__}"


def choose_factor_thinning(thinning, factors, model):
    """The bound by which the clocks of these factors propose; a `ValueError` for what the model does not support."""
    affine = not isinstance(factors, Terms) or model.has("affine_factor")
    if isinstance(thinning, str) and thinning == "auto":
        if isinstance(factors, SumFactors):
            return FactorWithin()
        return FactorInversion() if affine else FactorAffine() if model.has("factor_rate_bound") else FactorGrid()
    if isinstance(thinning, str) and thinning in ("inversion", "affine", "grid", "hessian"):
        if thinning == "hessian":
            if not isinstance(factors, SumFactors):
                raise ValueError(f'`thinning="hessian"` needs a model of pdmp.terms, got {type(model).__name__}.')
            return FactorWithin()
        if thinning == "inversion" and not affine:
            require(model, '`thinning="inversion"` needs', "affine_factor")
        if thinning == "affine" and not (isinstance(factors, Terms) and model.has("factor_rate_bound")):
            raise ValueError(missing(model, "factor_rate_bound", '`thinning="affine"` needs'))
        return {"inversion": FactorInversion, "affine": FactorAffine, "grid": FactorGrid}[thinning]()
    if isinstance(thinning, (FactorInversion, FactorAffine, FactorGrid)):
        return thinning
    raise ValueError(
        '`thinning` must be "auto", "inversion", "affine", "hessian", "grid", "columns", "rows" or one of '
        "pdmp.factors.bounds, "
        f"got {thinning!r}."
    )


def _joined(one, other):
    """Compressed rows, one set after the other."""
    return np.concatenate([one[0], one[0][-1] + other[0][1:]]), np.concatenate([one[1], other[1]])
