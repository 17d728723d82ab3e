"""Clocks of single factors: exact inversion, the model's affine bound, and a grid.

Each proposes an arrival of clock f and knows the rate there, max(0, v·∇U_f), see `pdmp.factors`.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, sections 2.3 and 3.
"""

from __future__ import annotations

import math

from pdmp.compiled import Compiled, compiled, positive
from pdmp.process import CERTAIN
from pdmp.scheduler import ROUNDING
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.grid import CELLS, SEEN, WIDTH, Grid


class FactorInversion(Compiled):
    """Exact arrivals for quadratic factors: nothing is thinned."""

    name = "exact inversion"
    exact = True

    @compiled
    def propose(self, process, state, f, now, rng):
        a, b = process.factors.affine(state, f, now)
        return now + first_arrival(a, b, rng.standard_exponential()), CERTAIN

    @compiled
    def rate(self, process, state, f, now, rng):
        return positive(process.factors.along(state, f, now))


class FactorAffine(Compiled):
    """The model's bound a + b s on v·∇U_f along the path, valid for every s."""

    name = "the model's bounds on its factors"
    exact = True

    @compiled
    def propose(self, process, state, f, now, rng):
        a, b = process.factors.bound(state, f, now)
        s = first_arrival(a, b, rng.standard_exponential())
        return now + s, positive(a + b * s) if s < math.inf else CERTAIN

    @compiled
    def rate(self, process, state, f, now, rng):
        return positive(process.factors.along(state, f, now))


class FactorGrid(Compiled):
    """The adaptive grid for each factor by itself, with cells of its own width; its violations are counted."""

    grid: Compiled

    name = "an adaptive grid for each factor"
    exact = False

    def __init__(self, safety=6.0):
        self.grid = Grid(safety)

    @compiled
    def propose(self, process, state, f, now, rng):
        memory = state.memory
        memory.of[0] = f
        memory.grid[WIDTH], memory.grid[CELLS] = memory.widths[f, 0], memory.widths[f, 1]
        memory.grid[SEEN] = math.inf  # of other factors: `rate` narrows the cells of the one that was violated
        time, bound = self.grid.propose(process, state, f, now, rng)
        memory.widths[f, 0], memory.widths[f, 1] = memory.grid[WIDTH], memory.grid[CELLS]
        return time, bound

    @compiled
    def rate(self, process, state, f, now, rng):
        rate = positive(process.factors.along(state, f, now))
        if rate > state.bounds[f] * (1.0 + ROUNDING) and state.bounds[f] > 0.0:
            state.memory.widths[f, 0] *= 0.7
        return rate
