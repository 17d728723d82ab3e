r"""A bound predicted from the last gradient, for one gradient a proposal: the regression of `pdmp.SBPS` without noise.

Where the gradient was last evaluated the signed rates r are known. Along a ray in coordinates in which the target is
about isotropic, r = v·∇U rises by about σ|u|² in a unit of time, with u the velocity in these coordinates. So at the
time t after the last gradient, of which s are since the velocity last changed,

    prediction  r + c s + σ b s,                        b = |u|², and c a part of the slope that is known;
    margin      M = k (1 + g) τ b (FIRST q + t),
    bound       (prediction + (1 - FLOOR) M)₊ + FLOOR M,

with q = (b (σ + τ))^(-½), the time in which the rate itself rises by q⁻¹. Both terms are affine, and inverted exactly.
The second remains where the rate should be negative: else no proposal would see that the prediction fails there. If
there is none by the time the rate should have been positive for `LOOK` q, the gradient is evaluated all the same.

Each evaluation corrects the prediction. σ is a regression of the observed rises on b s, and τ² a running mean of the
squares of what is left, in units of the margin. Where a prediction fails, g grows to that, and decays again, and the
next look at the gradient comes sooner. The margin k grows by a factor exp(gain) at each proposal whose rate exceeds the
bound, and falls a little at the others, so that a share `exceed` of them does. All this goes on during the whole run:
thinning is valid under any bound that depends on the past only. It is an approximation all the same: violations are
counted, with their excess.

On the ellipses of `pdmp.Boomerang` c is the slope for a constant residual gradient, and the last gradient predicts the
rate after a refreshment too, which costs no evaluation.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML, section 3 (bounds predicted by
regression). Robbins & Monro (1951), A stochastic approximation method, Ann. Math. Stat. 22.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.models.base import Model
from pdmp.native.arguments import fraction
from pdmp.native.classes import Compiled, compiled, inlined, positive_part
from pdmp.process import ADAPTING, HORIZON, ROUNDING
from pdmp.thinning.affine import affine_proposal
from pdmp.thinning.bound import Bound

#: The margin begins as large as it is after this part of q.
FIRST = 0.1
#: Where the rate is predicted to be negative the bound is still this part of the margin.
FLOOR = 0.1
#: The gradient is evaluated anew when the predicted rate has been positive for this many q.
LOOK = 3.0
#: Factor by which exp(gain) raises k at a proposal above the bound: in the warm-up and after it.
WARM_GAIN, GAIN = 0.5, 0.1
#: Range of k, and where it begins.
LEAST, START, MOST = 0.05, 3.0, 100.0
#: The growth after a failed prediction decays by this factor with each evaluation.
DECAY = 0.8
#: Running means weigh new values as if they had seen at most so many.
MEMORY = 30.0
#: τ is at least this part of σ.
LEAST_SPREAD = 0.02
#: A time to the next look that is longer than any.
FAR = 1e100


class Prediction(NamedTuple):
    """Memory of a predicted bound: the present prediction, and what has been learnt from those before it."""

    rates: np.ndarray  #: (m,) signed rates at the time `begin`, known or predicted
    rises: np.ndarray  #: (m,) c, the part of their derivatives in time that is known
    squares: np.ndarray  #: (m,) b, the part that is due to a curvature of one
    units: np.ndarray  #: (m,) q
    starts: np.ndarray  #: (m + 1,) at that time the bounds without their floors, and the sum of these
    slope_bounds: np.ndarray  #: (m + 1,) and their derivatives
    observed: np.ndarray  #: (m,) signed rates at the last evaluation
    weight: np.ndarray  #: (m,) running sum of squared regressors, in units of the margin
    product: np.ndarray  #: (m,) running sum of their products with observed rises
    spread: np.ndarray  #: (m,) τ²
    count: np.ndarray  #: (1,) number of evaluations that these are from, at most `MEMORY`
    begin: np.ndarray  #: (1,) when the prediction was made
    age: np.ndarray  #: (1,) the time from the last gradient to `begin`
    margin: np.ndarray  #: (1,) k
    growth: np.ndarray  #: (1,) g
    reach: np.ndarray  #: (1,) the longest time to the next look: short after a failure, and doubled by each success


@inlined
def curvature(memory, j):
    """σ."""
    return max(memory.product[j] / memory.weight[j], 0.0)


@inlined
def spread(memory, j):
    """τ."""
    return max(math.sqrt(memory.spread[j]), LEAST_SPREAD * curvature(memory, j)) + 1e-150


class Predicted(Bound):
    """Affine bounds predicted from the last gradient, with margins that are learnt all the time.

    It costs one gradient a proposal, and is at its best where the process knows the metric of the target: `pdmp.BPS`
    and its relatives with a ``metric`` near the target's precision, `pdmp.Boomerang` with a reference near the target.

    Parameters
    ----------
    exceed : float, default 0.003
        Share of the proposals whose rate may exceed the bound, between 0 and 1.

    Raises
    ------
    ValueError
        Unless `exceed` is a number above 0 and below 1.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.BPS(target, metric=[1.0, 4.0], thinning="predicted"), events=200, seed=1)
    >>> run.mean().shape
    (2,)
    """

    exceed: float

    name = "the predicted bound"
    exact = False

    def __init__(self, exceed: float = 0.003) -> None:
        self.exceed = fraction("exceed", exceed)
        if self.exceed == 0.0:
            raise ValueError(f"`exceed` must be above 0 and below 1, got {exceed!r}.")

    def check(self, model: Model, form: str | None, flow: Compiled, components: int) -> None:
        super().check(model, form, flow, components)
        if form is None and components > 1:
            raise ValueError('pdmp.thinning.Predicted does not know the rates of this process; use thinning="grid".')

    @compiled
    def propose(self, process, state, i, now, rng):
        memory = state.memory.bound
        rates, rises, squares = memory.rates, memory.rises, memory.squares
        age, longest = process.predict(state, now, rng, rates, rises, squares)
        look, room, m = longest, memory.margin[0] * (1.0 + memory.growth[0]), rates.shape[0]
        memory.starts[m], memory.slope_bounds[m] = 0.0, 0.0
        for j in range(m):
            rise, scale = curvature(memory, j) * squares[j], spread(memory, j) * squares[j]
            unit = min(1.0 / math.sqrt(rise + scale + 1e-300), longest)
            memory.units[j] = unit
            start, slope = room * scale * (FIRST * unit + age), rises[j] + rise
            memory.starts[j] = rates[j] + (1.0 - FLOOR) * start
            memory.slope_bounds[j] = slope + (1.0 - FLOOR) * room * scale
            memory.starts[m] += FLOOR * start
            memory.slope_bounds[m] += FLOOR * room * scale
            fall = positive_part(-rates[j]) / slope if slope > 0.0 else 0.0
            look = min(look, fall + LOOK * unit)
        memory.begin[0], memory.age[0] = now, age
        look = min(look, memory.reach[0])
        time, bound = affine_proposal(memory.starts, memory.slope_bounds, now, rng)
        if time > now + look:
            return now + look, HORIZON
        return time, bound

    @compiled
    def observe(self, process, state, i, now, rng):
        memory = state.memory.bound
        observed, s, age = memory.observed, now - memory.begin[0], memory.age[0]
        process.signed_rates(state, now, rng, observed)
        total, error, scale, check = 0.0, 0.0, 0.0, 0.0
        for j in range(observed.shape[0]):
            total += positive_part(observed[j])
            check += observed[j]
        if not math.isfinite(check):
            return
        memory.count[0] = min(memory.count[0] + 1.0, MEMORY)
        for j in range(observed.shape[0]):
            unit = memory.squares[j] * (FIRST * memory.units[j] + age + s)
            if unit > 0.0:
                x = memory.squares[j] * s
                y = observed[j] - memory.rates[j] - memory.rises[j] * s
                rest = y - curvature(memory, j) * x
                error += abs(rest)
                scale += spread(memory, j) * unit
                keep = 1.0 - 1.0 / memory.count[0]
                memory.weight[j] = keep * memory.weight[j] + (1.0 - keep) * (x / unit) * (x / unit)
                memory.product[j] = keep * memory.product[j] + (1.0 - keep) * (x / unit) * (y / unit)
                memory.spread[j] += (1.0 - keep) * ((rest / unit) * (rest / unit) - memory.spread[j])
        room = memory.margin[0] * scale
        failed = error > 2.0 * room * (1.0 + memory.growth[0])
        memory.reach[0] = 0.5 * s if failed else 2.0 * min(memory.reach[0], FAR)
        memory.growth[0] = max(DECAY * memory.growth[0], (error - room) / room if error > room else 0.0)
        if state.bounds[i] > HORIZON:
            gain = WARM_GAIN if state.counts[ADAPTING] == 1 else GAIN
            if total <= state.bounds[i] * (1.0 + ROUNDING):
                gain *= -self.exceed / (1.0 - self.exceed)
            memory.margin[0] = min(max(memory.margin[0] * math.exp(gain), LEAST), MOST)

    def memory(self, m: int, dim: int, width: float) -> tuple:
        start, own = 1.0 / (width * width), {"weight", "product", "spread"}
        arrays = {name: np.zeros(m) for name in Prediction._fields[:10] if name not in own}
        numbers = {name: np.zeros(1) for name in Prediction._fields[10:]}
        arrays |= {name: np.zeros(m + 1) for name in ("starts", "slope_bounds")}
        numbers |= {"count": np.full(1, 3.0), "margin": np.full(1, START), "reach": np.full(1, FAR)}
        learnt = {"weight": np.ones(m), "product": np.full(m, start), "spread": np.full(m, (0.3 * start) ** 2)}
        return Prediction(**arrays, **learnt, **numbers)
