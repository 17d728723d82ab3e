r"""The Stochastic Bouncy Particle Sampler, and its preconditioned form.

=====  ================================================================================================
flow   straight lines, x + P u s, with u on the unit sphere and a diagonal P (the identity by default)
clock  bounce: Poisson, by thinning under a bound predicted by local linear regression of the observed
       projected gradients; capped: where nothing is proposed before, look and refit there;
       refreshment: Poisson of constant rate
rate   (v·∇Û(x))₊ of a fresh mini-batch
jump   bounce: u ← u - 2 (u·a) a / |a|², a = P ∇Û of that mini-batch, and the regression restarts from
       the observation -G, which is exact for it; refreshment: u uniform on the sphere
=====  ================================================================================================

A rate above the predicted bound is a violation: it is accepted, counted, and its excess reported. The larger `k`, the
fewer there are, and the more proposals.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML: Algorithm 1, eqs 10-13;
preconditioning: section 4 (here the accept test, the clock of the regression and its restart are as they must be, not
as printed).
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from pdmp.compiled import compiled, positive
from pdmp.gradients import as_provider
from pdmp.process import ADAPTING, CERTAIN, HORIZON, Process, positions
from pdmp.processes.exact import check_rate, curvature_at, refresh_rate_at, sphere
from pdmp.processes.velocities import reflect, refresh_on_sphere, rescale
from pdmp.thinning import regression

BOUNCE, REFRESH = 0, 1

#: Of `memory.means`: running means of the waits for a proposal and for a bounce, each with the number behind it, and
#: the running mean and sum of squares of the fitted slopes with theirs; the time of the last bounce.
WAIT, WAITS, GAP, GAPS, SLOPE, SLOPE_SQUARES, SLOPES, LAST = range(8)
#: Of `memory.seen`: fits, fits with a negative slope, and the z-scores of observed against predicted G.
FITS, NEGATIVE, SCORES, SCORE_SUM, SCORE_SQUARES = range(5)


def _is_number(value):
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)


class Memory(NamedTuple):
    """Beside the path of SBPS."""

    gradient: np.ndarray  #: (d,) the last estimate of ∇U
    here: np.ndarray  #: (d,) where
    u: np.ndarray  #: (d,) unit velocity in the preconditioned coordinates
    scale: np.ndarray  #: (d,) the diagonal of P
    square: np.ndarray  #: (d,) running mean square of the gradient, for an adapted P
    scratch: np.ndarray  #: (d,)
    means: np.ndarray
    seen: np.ndarray
    observations: regression.Observations
    provider: tuple


class SBPS(Process):
    """Stochastic Bouncy Particle Sampler of exp(-U) with mini-batch gradients.

    Parameters
    ----------
    provider : pdmp.gradients.Minibatch, ControlVariate or Noisy
        Estimates of the gradient, from independent batches of at least two terms. Gradients without noise are accepted
        with a warning: the prediction is then sure of itself, and biased where v·∇U is not affine along a ray.
    k : float, default 3
        The bound is k predictive standard deviations above the predicted rate. Small k is biased, large k slow.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments per unit of time; "auto" as in `BPS`.
    slope_mean : float, "auto" or "running"; slope_sd : float or "auto"
        The normal prior of the slope b₁ = dG/ds of the projected gradient. "auto" starts from the mean curvature
        tr H / d where the run starts, and follows the fitted slopes during the warm-up, with a standard deviation of
        at least a quarter of their mean. "running" follows their mean for the whole run.
    cap : float or "auto", default "auto"
        Longest wait without an observation, in units of time; "auto" is five times the running mean time between
        bounces. Stopping to look does not change the law.
    nonnegative_slope : bool, default False
        Replace a negative fitted slope by the mean of past slopes, or zero if that is negative too.
    precondition : None, "adapt" or array_like, shape (d,)
        The diagonal P > 0 (its mean is set to 1). "adapt": 1 / (√(running mean square of the gradient per datum) +
        1e-4), updated at changes of velocity during the warm-up and frozen after it.

    Raises
    ------
    TypeError, ValueError
        For batches that are not independent or too small to estimate their variance, and for values out of range.
    """

    provider: object
    k: float
    refresh_rate: float
    slope_mean: float
    slope_sd: float
    learn_mean: int  #: 0: never, 1: in the warm-up, 2: throughout
    learn_sd: int
    cap: float  #: 0: five times the mean gap
    nonnegative: int
    adapt: int

    events = ("bounce", "refresh")
    exact_bounds = False

    def __init__(
        self,
        provider,
        k=3.0,
        refresh_rate="auto",
        slope_mean="auto",
        slope_sd="auto",
        cap="auto",
        nonnegative_slope=False,
        precondition=None,
    ):
        self.provider = as_provider(provider)
        if not self.provider.independent:
            raise TypeError(
                "pdmp.SBPS needs independent batches: pdmp.gradients.Minibatch(model, size, draw=...) with "
                f'draw="iid" or "distinct", got draw="{self.provider.draw}".'
            )
        if not self.provider.has_variance:
            raise ValueError("pdmp.SBPS needs the variance of the gradient: `size` of its batches must be at least 2.")
        if (
            self.provider.exact
            or getattr(self.provider, "draw", "") == "distinct"
            and (self.provider.size == self.provider.n_data)
        ):
            warnings.warn(
                "pdmp.SBPS with a gradient without noise: its regression becomes certain of a straight line, and what "
                "is not one violates the bound whatever k. Use pdmp.BPS, or smaller batches.",
                UserWarning,
                stacklevel=2,
            )
        self.model, self.anchor = self.provider.model, self.provider.anchor
        super().__init__(self.model.dim, clocks=2, dependents=[[BOUNCE], [BOUNCE, REFRESH]])
        if not (_is_number(k) and k >= 0.0):
            raise ValueError(f"`k` must be a number >= 0, got {k!r}.")
        self.k = float(k)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        self.learn_mean = {"auto": 1, "running": 2}.get(slope_mean, 0) if isinstance(slope_mean, str) else 0
        self.learn_sd = int(isinstance(slope_sd, str))
        if not (self.learn_mean or _is_number(slope_mean)):
            raise ValueError(f'`slope_mean` must be a finite number, "auto" or "running", got {slope_mean!r}.')
        if not (slope_sd == "auto" or _is_number(slope_sd) and slope_sd > 0.0):
            raise ValueError(f'`slope_sd` must be a number > 0 or "auto", got {slope_sd!r}.')
        self.slope_mean, self.slope_sd = slope_mean, slope_sd
        if not (cap == "auto" or _is_number(cap) and cap > 0.0):
            raise ValueError(f'`cap` must be a number > 0 or "auto", got {cap!r}.')
        self.cap = 0.0 if cap == "auto" else float(cap)
        self.nonnegative = int(bool(nonnegative_slope))
        self.adapt = int(isinstance(precondition, str) and precondition == "adapt")
        self._scale = np.ones(self.dim)
        if precondition is not None and not self.adapt:
            scale = np.asarray(precondition, dtype=float)
            if scale.shape != (self.dim,) or not np.all(scale > 0.0) or not np.all(np.isfinite(scale)):
                raise ValueError(f"`precondition` must be {self.dim} positive numbers, got {precondition!r}.")
            self._scale = scale / scale.mean()

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == REFRESH:
            if self.refresh_rate == 0.0:
                return CERTAIN, CERTAIN  # never
            return now + rng.standard_exponential() / self.refresh_rate, CERTAIN
        memory, observations = state.memory, state.memory.observations
        s = now - state.moved[0]
        if observations.sums[6] == 0.0:
            g, c2 = self.look(state, now, rng)
            regression.observe(observations, s, g, c2)
        self.predict(state)
        cap = self.cap if self.cap > 0.0 else 5.0 * memory.means[GAP]
        step = min(0.05 * memory.means[WAIT], cap / 8.0)
        wait, bound = regression.first_arrival(observations, self.k, s, step, cap, rng.standard_exponential())
        return now + wait, bound

    @compiled
    def rate(self, state, i, now, rng):
        memory, observations = state.memory, state.memory.observations
        g, c2 = self.look(state, now, rng)
        s = now - state.moved[0]
        if state.bounds[BOUNCE] > HORIZON:
            fitted = observations.fit
            z = (g - fitted[0] - fitted[1] * s) / regression.spread(observations, s, c2)
            memory.seen[SCORES] += 1.0
            memory.seen[SCORE_SUM] += z
            memory.seen[SCORE_SQUARES] += z * z
            memory.means[WAITS] += 1.0
            memory.means[WAIT] += (now - state.now[0] - memory.means[WAIT]) / memory.means[WAITS]
        regression.observe(observations, s, g, c2)
        return positive(g)

    @compiled
    def jump(self, state, i, now, rng):
        memory, observations, means = state.memory, state.memory.observations, state.memory.means
        if i == BOUNCE:
            means[GAPS] += 1.0
            means[GAP] += (now - means[LAST] - means[GAP]) / means[GAPS]
            means[LAST] = now
            g, c2 = 0.0, observations.sums[5]
            for j in range(self.provider.model.size):
                memory.scratch[j] = memory.scale[j] * memory.gradient[j]
                g += memory.u[j] * memory.scratch[j]
            reflect(memory.u, memory.scratch)
            rescale(memory.u, 1.0)
            self.set_velocity(state)
            regression.forget(observations)
            if self.adapt == 0 or state.counts[ADAPTING] == 0:
                regression.observe(observations, 0.0, -g, c2)
            # else P changed with the velocity: look again, in the clock
        else:
            refresh_on_sphere(memory.u, rng)
            self.set_velocity(state)
            regression.forget(observations)
            g, c2 = self.look(state, now, rng)
            regression.observe(observations, 0.0, g, c2)
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled(inline=False)
    def look(self, state, now, rng):
        """Draw a batch at time `now`: its projected gradient G = v·∇Û and the variance of that."""
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        return self.provider.projected(memory.here, state.v, memory.provider, rng, memory.gradient, state.counts)

    @compiled
    def predict(self, state):
        """Fit the line to the observations, under the prior of its slope."""
        memory, observations = state.memory, state.memory.observations
        means = memory.means
        mean, sd = self.slope_mean, self.slope_sd
        learnt = means[SLOPES] >= 10.0
        if learnt and self.learn_mean > 0:
            mean = means[SLOPE]
        if learnt and self.learn_sd > 0:
            sd = max(math.sqrt(means[SLOPE_SQUARES] / means[SLOPES]), 0.25 * abs(mean))
        slope = regression.fit(observations, mean, sd * sd)
        memory.seen[FITS] += 1.0
        if slope < 0.0:
            memory.seen[NEGATIVE] += 1.0
        if observations.sums[6] >= 2.0 and (self.learn_mean == 2 or state.counts[ADAPTING] == 1):
            means[SLOPES] += 1.0
            change = slope - means[SLOPE]
            means[SLOPE] += change / means[SLOPES]
            means[SLOPE_SQUARES] += change * (slope - means[SLOPE])
        if self.nonnegative == 1 and slope < 0.0:
            regression.with_slope(observations, positive(means[SLOPE] if means[SLOPES] > 0.0 else mean))

    @compiled(inline=False)
    def set_velocity(self, state):
        """v = P u, after u changed; P itself follows the gradient while it is adapted."""
        memory = state.memory
        d = memory.u.shape[0]
        if self.adapt == 1 and state.counts[ADAPTING] == 1:
            total = 0.0
            for j in range(d):
                g = memory.gradient[j] / max(self.provider.model.terms, 1)
                memory.square[j] = 0.99 * memory.square[j] + 0.01 * g * g if memory.square[j] > 0.0 else g * g
                memory.scale[j] = 1.0 / (math.sqrt(memory.square[j]) + 1e-4)
                total += memory.scale[j]
            for j in range(d):
                memory.scale[j] *= d / total
        for j in range(d):
            state.v[j] = memory.scale[j] * memory.u[j]

    # -- Python -----------------------------------------------------------------------------------------------------

    @classmethod
    def candidates(cls, model, batch, mode, error):
        return {cls.__name__: cls(batch)}

    def resolve(self, x):
        process = super().resolve(x)
        curvature = curvature_at(self.model, x, "pdmp.SBPS")
        process._curvature = curvature
        if process.refresh_rate == "auto":
            process.refresh_rate = refresh_rate_at(self.model, x)
        if isinstance(process.slope_mean, str):
            process.slope_mean = curvature
        if isinstance(process.slope_sd, str):
            process.slope_sd = curvature
        return process

    def identity(self):
        return (self._scale,)

    def velocity(self, x, rng):
        return self._scale * sphere(rng, self.dim)

    def memory(self, x, rng):
        gap = math.sqrt(2.0 * math.pi / self._curvature)
        return Memory(
            gradient=np.zeros(self.dim),
            here=np.zeros(self.dim),
            u=np.zeros(self.dim),
            scale=self._scale.copy(),
            square=np.zeros(self.dim),
            scratch=np.zeros(self.dim),
            means=np.array([0.2 * gap, 1.0, gap, 1.0, 0.0, 0.0, 0.0, 0.0]),
            seen=np.zeros(5),
            observations=regression.no_observations(),
            provider=self.provider.memory(rng),
        )

    def begin(self, x, rng):
        state = super().begin(x, rng)
        state.memory.u[:] = state.v / self._scale
        return state

    def statistics(self, state):
        """Fits and those with a negative slope; number, sum and sum of squares of the z-scores of the predictions."""
        names = ("fits", "negative_slopes", "scores", "score_sum", "score_squares")
        return dict(zip(names, state.memory.seen.tolist(), strict=True))
