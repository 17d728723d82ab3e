r"""The Boomerang sampler of a regression among the coordinates that move: what `Sticky` takes.

As `pdmp.processes.regression_boomerang`, but for the reference N(x̂, S) with a diagonal S = diag(s²), so that a
coordinate that is frozen at 0 leaves the others on their ellipses. The known part has then the matrix
A = Σᵢ Hᵢ(x̂) + D - S⁻¹, with D the prior's curvature at the anchor, and y = x - x̂:

    K(x) = ∇U(x̂) + A y + [∇prior(x) - ∇prior(x̂) - D y],

=====  =================================================================================================
flow   ellipses of the coordinates that move; yⱼ = -x̂ⱼ of those that are frozen
clock  one for the rows, one for K, and one for refreshments
rate   of the rows: Σᵢ (v·Rᵢ)₊, one row a proposal; of K: (v·K)₊
jump   bounce: v ← v - 2 (v·g) Sg / (g·Sg); refreshment: v ~ N(0, S); both of the coordinates that move
=====  =================================================================================================

Rows. |v·Rᵢ| <= Λᵢ |w| φ(|y|) in the norm of S⁻¹, where |y|² = f + u: f of the frozen coordinates is constant, and u of
those that move, as |w|² = E - u, a wave about E / 2 of frequency 2. So

    |w| φ(|y|) <= φ(r) / r² max (f + u) √(E - u),    r² = f + max u,    the maximum at u = (2E - f) / 3 or the ends.

K. With y and v those of the moving coordinates at the last event, and c = ∇U(x̂) + A y of the frozen ones, v·K after the
time t is, but for the bracket,

    (v·c) cos t - (y·c) sin t + (vᵀAy) cos 2t + ½ (vᵀAv - yᵀAy) sin 2t,

which is bounded by the sum of both amplitudes, and evaluated without a product with A. The bracket is 0 for normal
priors; of others it is bounded as in `RegressionBoomerang`.

References
----------
Bierkens, Grazzi, Kamatani & Roberts (2020), The Boomerang sampler, ICML. Bierkens, Grazzi, van der Meulen & Schauer
(2023), Sticky PDMP samplers for sparse and local inference problems, Stat. Comput. 33.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.flow import Elliptic
from pdmp.models.priors import NORMAL, derivative, second_derivative_bound_until
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.native.classes import compiled, positive
from pdmp.processes.regression_boomerang import ROW, RegressionBoomerang, RowFactors


class Memory(NamedTuple):
    """Beside the path: as that of `RegressionBoomerang`, and the waves of v·K."""

    here: np.ndarray  #: (d,) position at the proposal
    velocity: np.ndarray  #: (d,) velocity there
    gradient: np.ndarray  #: (d,) of the factor that bounces
    scratch: np.ndarray  #: (d,)
    bounds: np.ndarray  #: (2,) of the clocks `ROW` and `KNOWN`
    since: np.ndarray  #: (1,) the event from which on they hold; NaN before they are computed
    row: np.ndarray  #: (1,) of the proposal
    ahead: tuple  #: rows drawn ahead
    loss: np.ndarray  #: (m,) ρᵢ there
    evaluation: tuple  #: what the model needs for it
    waves: np.ndarray  #: (4,) factors of cos t, sin t, cos 2t and sin 2t, t the time since then


class MovingRegressionBoomerang(RegressionBoomerang):
    """Boomerang sampler of a regression with a diagonal reference, some of whose coordinates may be frozen at 0.

    Parameters
    ----------
    model, anchor, refresh_rate
        As in `RegressionBoomerang`.
    scale : array_like, shape (dim,), optional
        s, the standard deviations of the reference: those of the normal approximation at the anchor when omitted.

    Raises
    ------
    TypeError, ValueError
        As in `RegressionBoomerang`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> from pdmp.models.priors import Normal
    >>> from pdmp.models.regressions.likelihoods import PoissonLaw
    >>> from pdmp.models.regressions.mixed import MixedRegression
    >>> from pdmp.processes.moving_regression_boomerang import MovingRegressionBoomerang
    >>> from pdmp.processes.sticky import Sticky
    >>> X, y = np.column_stack([np.ones(40), np.arange(40) % 3]), np.arange(40) % 4
    >>> model = MixedRegression(X, y, PoissonLaw(), ["Intercept", "x"], [Normal(0.0, 1.0)] * 2)
    >>> process = Sticky(MovingRegressionBoomerang(model), inclusion=0.5, always=[0])
    >>> run = pdmp.sample(process, events=200, seed=1)
    >>> run.stats["data_terms"] <= run.stats["proposals"]
    True
    """

    matrix: np.ndarray  #: (d, d) A

    def __init__(
        self,
        model: MixedRegression,
        anchor: ArrayLike | None = None,
        refresh_rate: float = 1.0,
        scale: ArrayLike | None = None,
    ) -> None:
        RowFactors.__init__(self, model, anchor, refresh_rate, scale, Elliptic)
        self.matrix = self.hessian + np.diag(self.curvature - self.reference.sd**-2.0)

    _reference = RowFactors._reference

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def frozen(self, state, j):
        return state.x[j] == 0.0 and state.v[j] == 0.0

    @compiled
    def bound_rows(self, state):
        """Σᵢ Λᵢ |w| φ(|y|) at its largest until the next event; infinite where φ is not computed."""
        rest, y, w, across = 0.0, 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            sd = self.reference.sd[j]
            p, q = (state.x[j] - self.anchor[j]) / sd, state.v[j] / sd
            if self.frozen(state, j):
                rest += p * p
            else:
                y += p * p
                w += q * q
                across += p * q
        middle, swing = 0.5 * (y + w), math.hypot(0.5 * (y - w), across)
        farthest = rest + middle + swing
        if self.total == 0.0 or farthest <= 0.0:
            return 0.0
        r = math.sqrt(farthest)
        phi = self.growth.at(r, 0)
        if not phi < math.inf:
            return math.inf
        u = min(max((4.0 * middle - rest) / 3.0, middle - swing), middle + swing)
        return self.total * phi / farthest * (rest + u) * math.sqrt(positive(2.0 * middle - u))

    @compiled
    def bound_known(self, state):
        """A bound on (v·K)₊ until the next event, and its waves in the memory."""
        memory, waves, rest, n = state.memory, state.memory.waves, 0.0, self.model.numbers
        for j in range(state.x.shape[0]):
            y = state.x[j] - self.anchor[j]
            memory.here[j], memory.scratch[j] = (0.0, y) if self.frozen(state, j) else (y, 0.0)
        waves[0], waves[1], waves[2], waves[3] = 0.0, 0.0, 0.0, 0.0
        for j in range(state.x.shape[0]):
            if self.frozen(state, j):
                continue
            y, v, kind = memory.here[j], state.v[j], self.model.kinds[j]
            constant, by_y, by_v = self.at_anchor[j], 0.0, 0.0
            for k in range(state.x.shape[0]):
                constant += self.matrix[j, k] * memory.scratch[k]
                by_y += self.matrix[j, k] * memory.here[k]
                by_v += self.matrix[j, k] * state.v[k]
            waves[0] += v * constant
            waves[1] -= y * constant
            waves[2] += v * by_y
            waves[3] += 0.5 * (v * by_v - y * by_y)
            if kind > NORMAL:
                square = y * y + v * v
                far = self.anchor[j] + math.sqrt(square)
                largest = second_derivative_bound_until(kind, n[j, 0], n[j, 1], n[j, 2], far)
                rest += 0.5 * square * (largest + self.curvature[j])
        return math.hypot(waves[0], waves[1]) + math.hypot(waves[2], waves[3]) + rest

    @compiled
    def rate_of_known(self, state, now):
        waves, s, n = state.memory.waves, now - state.moved[0], self.model.numbers
        total = waves[0] * math.cos(s) + waves[1] * math.sin(s)
        total += waves[2] * math.cos(2.0 * s) + waves[3] * math.sin(2.0 * s)
        for j in range(state.x.shape[0]):
            kind = self.model.kinds[j]
            if kind > NORMAL and not self.frozen(state, j):
                x, there = self.flow.position(j, state.x[j], state.v[j], s), self.anchor[j]
                part = derivative(kind, n[j, 0], n[j, 1], n[j, 2], x)
                part -= derivative(kind, n[j, 0], n[j, 1], n[j, 2], there) + self.curvature[j] * (x - there)
                total += self.flow.velocity(j, state.x[j], state.v[j], s) * part
        return positive(total)

    @compiled
    def known(self, x, out):
        """out = K(x)."""
        n = self.model.numbers
        for j in range(x.shape[0]):
            out[j] = self.pull[j] - self.curvature[j] * (x[j] - self.anchor[j])
            out[j] += derivative(self.model.kinds[j], n[j, 0], n[j, 1], n[j, 2], x[j])
        for k in range(x.shape[0]):
            y = x[k] - self.anchor[k]
            for j in range(x.shape[0]):
                out[j] += self.matrix[k, j] * y

    @compiled
    def refresh(self, state, rng):
        for j in range(state.v.shape[0]):
            if not self.frozen(state, j):
                state.v[j] = self.reference.sd[j] * rng.standard_normal()

    @compiled
    def evaluate_factor(self, state, i):
        gradient = state.memory.gradient
        if i == ROW:
            self.gradient_of_row(state)
        else:
            self.known(state.x, gradient)
        for j in range(state.v.shape[0]):
            if self.frozen(state, j):
                gradient[j] = 0.0

    # -- Python -----------------------------------------------------------------------------------------------------

    def among_moving(self) -> Self:
        return self

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        return Memory(*super().memory(x, rng), waves=np.zeros(4))
