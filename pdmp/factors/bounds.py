"""Clocks of single factors: exact inversion, the model's affine bound, and a grid.

Each draws the arrivals of clock f, and evaluates its rate max(0, v·∇U_f), from the factors of `pdmp.factors.terms`.

References
----------
Bouchard-Côté, Vollmer & Doucet (2018), The Bouncy Particle Sampler, JASA 113, sections 2.3 and 3.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.arguments import number
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.process import CERTAIN, HORIZON, ROUNDING
from pdmp.thinning.affine import first_arrival
from pdmp.thinning.enclosures import propose_within
from pdmp.thinning.grid import EMPTY_CELLS, NEEDED, PART, TOLERANCE, second_difference
from pdmp.thinning.piecewise import segment_arrival

#: Columns of `cells`, a row for each factor: the width to use next, the width of the last cell, the number of cells so
#: far, the times at which the last cell begins and ends, and from LEFT on the bound at its begin, inner point and end.
#: They are columns of one array because a row of eight numbers is one cache line.
WIDTH, LAST, CELLS, BEGIN, END, LEFT = range(6)


class FactorBound(Compiled):
    """Base: an exact bound that keeps nothing."""

    exact = True
    adapts = False

    def cells(self, factors: int, width: float) -> np.ndarray:
        """The memory of all factors."""
        return np.zeros((0, 8))

    @compiled
    def rate(self, process, state, f, now, rng):
        return positive_part(process.factors.along(state, f, now))


class FactorInversion(FactorBound):
    """Exact arrivals for quadratic factors: nothing is thinned.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.LocalBPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])).thinning.name
    'exact inversion'
    """

    name = "exact inversion"

    @compiled
    def propose(self, process, state, f, now, rng):
        a, b = process.factors.affine(state, f, now)
        return now + first_arrival(a, b, rng.standard_exponential()), CERTAIN


class FactorAffine(FactorBound):
    """The model's bound a + b s on v·∇U_f along the path, valid for every s.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((20, 2))
    >>> model = pdmp.models.LogisticRegression(X, X[:, 0] > 0.0, prior_scale=1.0)
    >>> pdmp.LocalBPS(model, thinning="affine").thinning.name
    'the bound `factor_rate_bound`'
    """

    name = "the bound `factor_rate_bound`"

    @compiled
    def propose(self, process, state, f, now, rng):
        a, b = process.factors.bound(state, f, now)
        s = first_arrival(a, b, rng.standard_exponential())
        return now + s, positive_part(a + b * s) if s < math.inf else CERTAIN


class FactorWithin(FactorBound):
    """A bound on the rate of each factor over its next piece of path; quadratic factors are inverted exactly.

    Of terms that are expressions (`pdmp.terms`): see `pdmp.factors.sums`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> p = pdmp.Parameters(x=3)
    >>> counts = pdmp.terms(lambda y, a: np.exp(a) - y * a, [[2.0, 0.0, 1.0]], [p.x[np.arange(3)]])
    >>> pdmp.LocalBPS(pdmp.models.sum_of_terms(p, [counts])).thinning.name
    'enclosures of single factors'
    """

    name = "enclosures of single factors"
    adapts = True

    def cells(self, factors: int, width: float) -> np.ndarray:
        """The horizons."""
        return np.full((factors, 1), width)

    @compiled
    def propose(self, process, state, f, now, rng):
        return propose_within(process.factors, state, f, now, state.memory.cells, rng)


class FactorGrid(FactorBound):
    """The adaptive grid for each factor by itself; its violations are counted.

    The bound in a cell, an interval of time, is made as in `pdmp.thinning.Grid`, from the signed rate of the factor at
    three points. A cell is used until it ends or the velocity of one of the factor's coordinates changes. Unlike in
    `pdmp.thinning.Grid` it does not end where another clock proposes, because most events change other coordinates.

    Parameters
    ----------
    safety : float, default 6
        The margin for curvature and jumps, as in `pdmp.thinning.Grid`; at least 1.

    Examples
    --------
    >>> from pdmp.factors.bounds import FactorGrid
    >>> FactorGrid(safety=10.0).exact
    False
    """

    safety: float

    name = "an adaptive grid for each factor"
    exact = False
    adapts = True

    def __init__(self, safety: float = 6.0):
        self.safety = number("safety", safety, least=1.0)

    @compiled
    def propose(self, process, state, f, now, rng):
        cells = state.memory.cells
        if not self.is_current(process, state, f, now) and not self.new_cell(process, state, f, now):
            return math.nan, HORIZON
        e = rng.standard_exponential()
        width, s = cells[f, END] - cells[f, BEGIN], now - cells[f, BEGIN]
        for k in range(2):  # the parts of the cell, from `now` on
            start, end = (0.0, PART * width) if k == 0 else (PART * width, width)
            left, right = cells[f, LEFT + k], cells[f, LEFT + k + 1]
            if s < end:
                left += (right - left) * (s - start) / (end - start)
                rest = end - s
                t = segment_arrival(left, right, rest, e)
                if t < math.inf:
                    self.adapt(cells, f, False)
                    return max(now, cells[f, BEGIN] + s + t), left + (right - left) * (t / rest)
                e -= 0.5 * (left + right) * rest
                s = end
        self.adapt(cells, f, True)
        return cells[f, END], HORIZON

    @compiled
    def is_current(self, process, state, f, now):
        """Whether `now` is in the factor's last cell and no velocity of its coordinates has changed since it began."""
        begin = state.memory.cells[f, BEGIN]
        for k in range(process.factors.indptr[f], process.factors.indptr[f + 1]):
            if state.moved[process.factors.indices[k]] > begin:
                return False
        return begin <= now < state.memory.cells[f, END]

    @compiled
    def new_cell(self, process, state, f, now):
        """Make a cell that begins at `now`; whether the rates are finite in it."""
        cells, factors = state.memory.cells, process.factors
        width, known = min(cells[f, WIDTH], 2.0 * cells[f, LAST]), False
        a, c = factors.along(state, f, now), 0.0
        b, difference = a, 0.0
        for _ in range(60):
            b = factors.along(state, f, now + PART * width)
            if not math.isfinite(b) and not factors.beyond(process.flow, state, f, now + PART * width):
                return False
            if not known:
                c = factors.along(state, f, now + width)
                if not math.isfinite(c) and not factors.beyond(process.flow, state, f, now + width):
                    return False
            difference = second_difference(a, b, c)
            high = max(a, b, c) > 0.0
            if math.isfinite(difference) and (not high or abs(difference) * width <= TOLERANCE):
                break
            # The rate at the end is NaN where the target is not defined; the path never goes there.
            known, c, width = math.isfinite(b), b, PART * width
        if not math.isfinite(a + b + c) or now + width <= now:
            return False
        room = self.safety * NEEDED * abs(difference)
        cells[f, LAST], cells[f, BEGIN], cells[f, END] = width, now, now + width
        cells[f, LEFT], cells[f, LEFT + 1] = positive_part(a + room), positive_part(b + room)
        cells[f, LEFT + 2] = positive_part(c + room)
        return True

    @compiled
    def adapt(self, cells, f, passed):
        """Stochastic approximation of the width at which the share `EMPTY_CELLS` of the cells has no arrival."""
        cells[f, CELLS] += 1.0
        gain = max(0.05, 1.0 / (1.0 + 0.1 * cells[f, CELLS]))
        cells[f, WIDTH] *= math.exp(gain * ((1.0 if passed else 0.0) - EMPTY_CELLS))

    @compiled
    def rate(self, process, state, f, now, rng):
        rate = positive_part(process.factors.along(state, f, now))
        if rate > state.bounds[f] * (1.0 + ROUNDING) and state.bounds[f] > HORIZON:
            state.memory.cells[f, WIDTH] *= 0.7
        return rate

    def cells(self, factors: int, width: float) -> np.ndarray:
        """A row for each factor, with no cell yet."""
        return np.tile([width, width, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0], (factors, 1))
