r"""The Stochastic Bouncy Particle Sampler, and its preconditioned form.

=====  ================================================================================================
flow   straight lines, x + L u s, with u on the unit sphere, L Lᵀ = M⁻¹ and M the metric (the identity by default)
clock  bounce: Poisson, by thinning under a bound predicted by local linear regression of the observed
       projected gradients; where nothing is proposed for the time `cap`, G is observed there and fitted anew;
       refreshment: Poisson of constant rate
rate   (v·∇Û(x))₊ of a fresh mini-batch
jump   bounce: u ← u - 2 (u·a) a / |a|², a = Lᵀ∇Û of that mini-batch, and the regression restarts from
       the observation -G, which is exact for it; refreshment: u uniform on the sphere
=====  ================================================================================================

A rate above the predicted bound is a violation: it is accepted, counted, and its excess reported. The larger `k`, the
fewer there are, and the more proposals. Bounces that came too seldom by more than `LOST` end a run with a warning.

The defaults are not those of the paper: the noise is pooled, the slope's prior follows the target's curvature, and no
wait is longer than `cap`. `SBPS.published` has the paper's choices. On a logistic regression of 60 data in batches of
20 these put the mean off by 0.28 standard deviations and the variance by 31 %, where the defaults have neither.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML: Algorithm 1, eqs 10-13;
preconditioning: section 4; multimodal targets: supplement, section E (here the accept test, the clock of the regression
and its restart are as they must be, not as printed).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.gradients import Minibatch, Provider, as_provider
from pdmp.gradients.provider import dot
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.metric import WORDS, Diagonal, Metric, check_metric
from pdmp.models.base import Model
from pdmp.native.arguments import count, number, one_of, positive
from pdmp.native.classes import Compiled, compiled, positive_part
from pdmp.native.records import Vector, zeros
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.process import ADAPTING, CERTAIN, HORIZON, HORIZONS, KINDS, Defaults, Process, State, positions
from pdmp.processes.exact import check_rate, curvature_at, sphere
from pdmp.thinning import regression
from pdmp.thinning.constant import constant_arrival

BOUNCE, REFRESH = 0, 1
LEAST_CAP = 1e-12  #: process time between two looks at the gradient

#: Running means of the noise and of the misfit weigh new values as if they had seen at most so many: the first values,
#: from where the run starts, may be far from typical.
NOISE_MEMORY = 1_000.0
MISFIT_PRIOR = 20.0  #: the running mean of the squared z-scores starts from 1 with the weight of so many values
#: Bounces lost to violations, relative to those that came, above which a run warns. On logistic regressions 5 % went
#: with standard deviations up to 5 % too large, 7 % with up to 15 %, 30 % with up to 25 %.
LOST = 0.05
FEW = 500  #: bounces, too few to judge by


#: A record of running means, each with the number of values behind it.
MEANS = np.dtype(
    [
        ("mean_wait", float),  # of the times from one proposal to the next
        ("waits", float),
        ("mean_gap", float),  # of the times from one bounce to the next
        ("gaps", float),
        ("last_bounce", float),  # the time of the last bounce
        ("mean_slope", float),  # of the fitted slopes
        ("slope_squares", float),  # the sum of the squares of their deviations from the mean
        ("slopes", float),
        ("mean_noise", float),  # of the noise variances c²
        ("noises", float),
        ("ray_noise", float),  # the sum of the noise variances since the last change of velocity
        ("ray_noises", float),  # their number
        ("misfit", float),  # of the squares of the z-scores of observed against predicted G
        ("misfits", float),
    ]
)

#: A record of what the report of a run is made of.
COUNTS = np.dtype(
    [
        ("fits", float),  # number of fits
        ("negative_slopes", float),  # number of fits with a negative slope
        ("scores", float),  # number of z-scores of observed against predicted G
        ("score_sum", float),  # their sum
        ("score_squares", float),  # the sum of their squares
        ("auxiliary", float),  # number of observations ahead of the path
    ]
)


class Memory(NamedTuple):
    """Beside the path of SBPS."""

    gradient: Vector  #: the last estimate of ∇U
    here: Vector  #: where
    metric: tuple  #: that of the metric; its `u` is the unit velocity in its coordinates
    square: Vector  #: running mean square of the gradient, for an adapted metric
    scratch: Vector
    means: np.ndarray  #: (1,) of `MEANS`
    counts: np.ndarray  #: (1,) of `COUNTS`
    line: np.ndarray  #: (1,) of `pdmp.thinning.regression.LINE`
    prior: np.ndarray  #: (1,) of `pdmp.thinning.regression.PRIOR`
    provider: tuple


class Fixed(Compiled):
    """Of a metric that is given."""

    @compiled
    def adapt(self, memory, n_data):
        """Nothing."""


class BySquares(Compiled):
    """The speeds 1 / (√(running mean square of the gradient per datum) + 1e-4), of mean 1."""

    @compiled
    def adapt(self, memory, n_data):
        speeds, d, total = memory.metric.root, memory.square.shape[0], 0.0
        for j in range(d):
            g = memory.gradient[j] / n_data
            memory.square[j] = 0.99 * memory.square[j] + 0.01 * g * g if memory.square[j] > 0.0 else g * g
            speeds[j] = 1.0 / (math.sqrt(memory.square[j]) + 1e-4)
            total += speeds[j]
        for j in range(d):
            speeds[j] *= d / total


class SBPSRecipe(Recipe):
    """On mini-batches; batches of 1 % and 10 % of the data, and k from 1 to 4, to choose from."""

    def processes(self, sampler, model, batch, mode, error):
        return {sampler.__name__: sampler(batch)}

    def arms(self, sampler, model, mode):
        sizes = sorted({max(2, model.n_data // 100), max(2, model.n_data // 10)})
        arms = [{"size": size, "k": k} for size in sizes for k in (1.0, 1.5, 2.0, 3.0, 4.0)]
        return lambda size, k: sampler(Minibatch(model, size), k=k), arms


class SBPSReport(Report):
    """How good the predictions of the regression were, and whether too many bounces were lost."""

    def statistics(self, process, state):
        """What the predictions were worth.

        Numbers of fits, and of those with a negative slope; number, sum and sum of squares of the z-scores of the
        predictions; number of observations ahead of the path, and of those made because nothing had been proposed for
        the time `cap`. Averaged over the chains: mean and standard deviation of the z-scores, and of the slope's prior;
        and the bounces lost to violations, as a fraction of all that there should have been.
        """
        counts = {name: float(state.memory.counts[name][0]) for name in COUNTS.names}
        n = max(counts["scores"], 1.0)
        mean = counts["score_sum"] / n
        slope_mean, slope_sd = process.slope_prior(state)
        lost = float(state.excess[0])
        return counts | {
            "capped": float(state.counts[HORIZONS]),
            "mean_score": mean,
            "mean_score_sd": math.sqrt(max(counts["score_squares"] / n - mean * mean, 0.0)),
            "mean_slope_mean": slope_mean,
            "mean_slope_sd": slope_sd,
            "mean_lost_bounces": lost / max(lost + float(state.counts[KINDS + BOUNCE]), 1.0),
        }

    def warnings(self, process, stats):
        lost = stats["mean_lost_bounces"]
        if lost <= LOST or stats["events"]["bounce"] < FEW:
            return []
        return [
            f"pdmp.SBPS lost {100.0 * lost:.0f} % of its bounces where the rate exceeded the predicted bound (k = "
            f"{process.k:g}): its means may be off by more than 0.1 standard deviations and its standard deviations by "
            "more than 15 %; raise `k`, or take larger batches"
        ]


class SBPS(Process):
    """Stochastic Bouncy Particle Sampler of exp(-U) with mini-batch gradients.

    Parameters
    ----------
    provider : pdmp.gradients.Minibatch, ControlVariate or Noisy
        Estimates of the gradient, from independent batches of at least two terms. Gradients without noise are accepted
        with a warning: the predictive standard deviation then goes to zero, and the law is biased where v·∇U is not
        affine along a ray.
    k : float, default 3
        The bound is k predictive standard deviations above the predicted rate. A small k gives a biased law, a large
        one many proposals.
    refresh_rate : float or "auto", default "auto"
        Rate of the refreshments per unit of time; "auto" as in `BPS`.
    slope_mean, slope_sd : float, "auto" or, of the mean, "running", default "auto"
        The normal prior of the slope b₁ = dG/ds of the projected gradient. "auto" starts from the mean curvature
        tr H / d where the run starts, and is learnt during the warm-up, by `learner`. "running" follows the mean of
        the fitted slopes for the whole run.
    learner : {"moments", "likelihood"}, default "moments"
        "moments": mean and standard deviation of the fitted slopes, the latter at least a quarter of the mean.
        "likelihood": gradient ascent on the marginal likelihood of the line, a step at each change of
        velocity; `slope_mean` and `slope_sd` must then be "auto" or numbers.
    noise : {"pooled", "latest"}, default "pooled"
        The noise variance c² of an observation. "latest" is the variance within its own batch, as in the paper:
        where gradients of the data have heavy tails, a batch without one of the rare large ones then promises a bound
        that is too low. "pooled" averages the variances since the last change of velocity, with the running mean of
        all as one more, and raises the bound where predictions miss by more than they should, k times the root mean
        square of the recent z-scores; the same cost, and several times fewer violations.
    cap : float or "auto", default "auto"
        Longest wait without an observation, in units of time; "auto" is five times the running mean time between
        bounces. Observing more often does not change the law.
    nonnegative_slope : bool, default False
        Replace a negative fitted slope by the mean of past slopes, or zero if that is negative too.
    auxiliary : int, default 0
        For multimodal targets: if the fitted slope is negative, G is also observed at so many places ahead on the
        ray, with the same batch, and the line fitted again. This predicts a G that falls and rises again behind a mode.
        True stands for 1.
    metric : None, float, array_like of shape (d,) or (d, d), Metric, "auto" or "diagonal", default None
        M, as of `BPS`: velocities are uniform on vᵀMv = 1. "auto" and "diagonal": the speeds 1 / (√(running mean square
        of the gradient per datum) + 1e-4), times what makes their mean 1, updated at changes of velocity during the
        warm-up and frozen after it. None: the identity.
    resolution : float or "auto", default "auto"
        Δt: distance of the nodes between which the bound is interpolated, in units of time. "auto" is 0.05 mean times
        from one proposal to the next, and an eighth of the cap at most. The bound is convex, so that a coarse Δt makes
        more proposals and no bias.
    ahead : float, default 10
        Auxiliary observation p is `ahead` p mean waits from the last proposal.

    Raises
    ------
    TypeError, ValueError
        For batches that are not independent or too small to estimate their variance, and for values out of range.

    See Also
    --------
    pdmp.LipschitzSBPS : The same under a bound that always holds.
    pdmp.gradients.Minibatch : The estimates that it takes.
    pdmp.plots.rate_and_bound : Draws the predicted bound.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))
    >>> run = pdmp.sample(pdmp.SBPS(pdmp.gradients.Minibatch(model, size=5)), events=100, seed=1)
    >>> run.draws(5).shape
    (1, 5, 2)
    """

    provider: object
    k: float
    refresh_rate: float
    slope_mean: float
    slope_sd: float
    learns_mean: bool  #: whether the mean of the slope's prior is learnt in the warm-up
    learns_throughout: bool  #: and after it as well
    learns_sd: bool  #: whether the standard deviation of the slope's prior is learnt in the warm-up
    by_likelihood: bool  #: whether they are learnt by marginal likelihood, not by moments
    pooled: bool
    cap: float  #: 0 stands for five times the mean gap
    nonnegative: bool
    auxiliary: int  #: observations ahead
    ahead: float
    resolution: float  #: 0 stands for the automatic one
    metric: object
    speeds: object  #: `BySquares` where it adapts
    adapts: bool  #: whether it follows the gradient in the warm-up

    events = ("bounce", "refresh")
    exact_bounds = False
    recipe = SBPSRecipe()
    report = SBPSReport()

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> Self:
        """With its standard deviations, which velocities are as wide as."""
        return cls(target, **{"metric": Metric(scales=np.sqrt(learnt.variances))} | options)

    def __init__(
        self,
        provider: Model | Provider,
        k: float = 3.0,
        refresh_rate: float | str = "auto",
        slope_mean: float | str = "auto",
        slope_sd: float | str = "auto",
        cap: float | str = "auto",
        nonnegative_slope: bool = False,
        *,
        metric: ArrayLike | Metric | str | None = None,
        learner: str = "moments",
        noise: str = "pooled",
        auxiliary: int = 0,
        resolution: float | str = "auto",
        ahead: float = 10.0,
    ) -> None:
        self.provider = as_provider(provider, "provider")
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
            warn(
                "pdmp.SBPS with a gradient without noise: its regression becomes certain of a straight line, and what "
                "is not one violates the bound whatever k. Use pdmp.BPS, or smaller batches."
            )
        self.model, self.anchor = self.provider.model, self.provider.anchor
        super().__init__(self.model.dim, clocks=2, dependents=[[BOUNCE], [BOUNCE, REFRESH]])
        self.k = number("k", k, least=0.0)
        self.refresh_rate = check_rate("refresh_rate", refresh_rate)
        self.slope_mean = number("slope_mean", slope_mean, also=("auto", "running"))
        self.slope_sd = positive("slope_sd", slope_sd, also=("auto",))
        self.learns_mean, self.learns_sd = isinstance(slope_mean, str), isinstance(slope_sd, str)
        self.learns_throughout = self.slope_mean == "running"
        self.cap = positive("cap", cap, also=("auto",))
        if self.cap != "auto" and self.cap < LEAST_CAP:
            raise ValueError(f"`cap` must be at least {LEAST_CAP:g}, got {cap!r}: with less, time hardly passes.")
        self.cap = 0.0 if self.cap == "auto" else self.cap
        one_of("learner", learner, ("moments", "likelihood"))
        one_of("noise", noise, ("pooled", "latest"))
        if learner == "likelihood" and self.learns_throughout:
            raise ValueError('`slope_mean="running"` is for learner="moments"; use slope_mean="auto".')
        self.by_likelihood, self.pooled = learner == "likelihood", noise == "pooled"
        self.nonnegative = bool(nonnegative_slope)
        self.auxiliary = count("auxiliary", int(auxiliary) if isinstance(auxiliary, bool) else auxiliary, least=0)
        self.ahead = positive("ahead", ahead)
        resolution = positive("resolution", resolution, also=("auto",))
        self.resolution = 0.0 if resolution == "auto" else resolution
        metric = check_metric(metric, self.dim, f"pdmp.{type(self).__name__}", WORDS[:2])
        self.adapts, self._has_metric = isinstance(metric, str), isinstance(metric, Compiled)
        self.speeds = BySquares() if self.adapts else Fixed()
        self.metric = metric if self._has_metric else Diagonal(np.ones(self.dim))

    @classmethod
    def published(
        cls,
        provider: Model | Provider,
        k: float = 3.0,
        resolution: float = 0.01,
        slope_sd: float = 1e5**0.5,
        refresh_rate: float = 0.05,
        auxiliary: int = 0,
        *,
        metric: ArrayLike | Metric | str | None = None,
        cap: float | None = None,
    ) -> SBPS:
        """SBPS as the paper has it: the noise of each observation from its own batch, the slope's prior nearly flat.

        Its accept test, its clock and its regression are still as they must be, not as printed. What it costs beside
        the defaults is in the text of `pdmp.processes.sbps`.

        Parameters
        ----------
        provider : any of `pdmp.gradients` that `SBPS` takes
        k, auxiliary, metric
            As for `SBPS`; k is not raised where predictions miss.
        resolution : float, default 0.01
            Δt, for a posterior with standard deviations of 0.1 to 1.4 as the paper's.
        slope_sd : float, default √1e5
            Of the slope's prior, whose mean is the running mean of the fitted slopes.
        refresh_rate : float, default 0.05
        cap : float, optional
            5,000 Δt by default. As printed there is none, and a bound that is zero for ever never ends.

        Returns
        -------
        SBPS

        Examples
        --------
        >>> import pdmp
        >>> target = pdmp.gradients.Noisy(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), 0.5)
        >>> process = pdmp.SBPS.published(target, k=4.0)
        >>> process.k, process.resolution, process.cap
        (4.0, 0.01, 50.0)
        """
        return cls(
            provider,
            k=k,
            refresh_rate=refresh_rate,
            slope_mean="running",
            slope_sd=slope_sd,
            cap=5_000.0 * positive("resolution", resolution) if cap is None else cap,
            metric=metric,
            noise="latest",
            auxiliary=auxiliary,
            resolution=resolution,
        )

    # -- flow, clock, rate, jump ------------------------------------------------------------------------------------

    @compiled
    def clock(self, state, i, now, rng):
        if i == REFRESH:
            return now + constant_arrival(self.refresh_rate, rng), CERTAIN
        memory, line = state.memory, state.memory.line[0]
        s = now - state.moved[0]
        if line["count"] == 0.0:
            g, c2 = self.evaluate(state, now, rng)
            regression.observe(line, s, g, self.noise(memory, c2))
        if self.predict(state) < 0.0 and self.auxiliary > 0:
            self.look_ahead(state, now)
            self.predict(state)
        cap = self.cap if self.cap > 0.0 else 5.0 * memory.means[0]["mean_gap"]
        step = self.resolution if self.resolution > 0.0 else min(0.05 * memory.means[0]["mean_wait"], cap / 8.0)
        k = self.k
        if self.pooled:
            k *= math.sqrt(max(1.0, memory.means[0]["misfit"]))
        wait, bound = regression.first_arrival(line, k, s, step, cap, rng.standard_exponential())
        return now + wait, bound

    @compiled
    def rate(self, state, i, now, rng):
        memory, line = state.memory, state.memory.line[0]
        g, c2 = self.evaluate(state, now, rng)
        c2 = self.noise(memory, c2)
        s = now - state.moved[0]
        if state.bounds[BOUNCE] > HORIZON:
            z = (g - line["intercept"] - line["slope"] * s) / regression.spread(line, s, c2)
            counts, means = memory.counts[0], memory.means[0]
            counts["scores"] += 1.0
            counts["score_sum"] += z
            counts["score_squares"] += z * z
            means["misfits"] = min(means["misfits"] + 1.0, NOISE_MEMORY)
            means["misfit"] += (z * z - means["misfit"]) / means["misfits"]
            means["waits"] += 1.0
            means["mean_wait"] += (now - state.now[0] - means["mean_wait"]) / means["waits"]
        regression.observe(line, s, g, c2)
        return positive_part(g)

    @compiled
    def jump(self, state, i, now, rng):
        memory, line, means = state.memory, state.memory.line[0], state.memory.means[0]
        if self.by_likelihood and state.counts[ADAPTING] == 1:
            regression.learn(line, memory.prior[0])
        means["ray_noise"], means["ray_noises"] = 0.0, 0.0
        if i == BOUNCE:
            means["gaps"] += 1.0
            means["mean_gap"] += (now - means["last_bounce"] - means["mean_gap"]) / means["gaps"]
            means["last_bounce"] = now
            self.metric.pull(memory.metric, memory.gradient)
            g, c2 = dot(memory.metric.u, memory.metric.pulled), line["latest_variance"]
            reflect(memory.metric.u, memory.metric.pulled)
            rescale(memory.metric.u, 1.0)
            self.set_velocity(state)
            regression.forget(line)
            if not self.adapts or state.counts[ADAPTING] == 0:
                means["ray_noise"], means["ray_noises"] = c2, 1.0
                regression.observe(line, 0.0, -g, c2)
            # Else L has changed with the velocity, so -g is not exact: the clock draws a batch and observes it.
        else:
            refresh_on_sphere(memory.metric.u, rng)
            self.set_velocity(state)
            regression.forget(line)
            g, c2 = self.evaluate(state, now, rng)
            if not math.isfinite(g):
                return -1
            regression.observe(line, 0.0, g, self.noise(memory, c2))
        return i

    # -- in other words ---------------------------------------------------------------------------------------------

    @compiled(inline=False)
    def evaluate(self, state, now, rng):
        """Draw a batch at time `now`: its projected gradient G = v·∇Û and the variance of that."""
        memory = state.memory
        positions(self.flow, state, now, memory.here)
        return self.provider.gradient_and_projection(
            memory.here, state.v, memory.provider, rng, memory.gradient, state.counts
        )

    @compiled
    def noise(self, memory, c2):
        """The noise variance of an observation, when the variance within its batch is c2."""
        if not self.pooled:
            return c2
        means = memory.means[0]
        means["noises"] = min(means["noises"] + 1.0, NOISE_MEMORY)
        means["mean_noise"] += (c2 - means["mean_noise"]) / means["noises"]
        means["ray_noise"] += c2
        means["ray_noises"] += 1.0
        return (means["ray_noise"] + means["mean_noise"]) / (means["ray_noises"] + 1.0)

    @compiled(inline=False)
    def look_ahead(self, state, now):
        """Observe G further on, with the same batch, where the path comes after `ahead`, 2 `ahead` … mean waits."""
        memory = state.memory
        for p in range(1, self.auxiliary + 1):
            then = now + p * self.ahead * memory.means[0]["mean_wait"]
            positions(self.flow, state, then, memory.here)
            self.provider.gradient_again(memory.here, memory.provider, memory.scratch, state.counts)
            g = dot(state.v, memory.scratch)
            regression.observe(memory.line[0], then - state.moved[0], g, memory.line[0]["latest_variance"])
            memory.counts[0]["auxiliary"] += 1.0

    @compiled
    def slope_prior(self, state):
        """Mean and standard deviation of the slope, as far as they are known."""
        memory, means = state.memory, state.memory.means[0]
        mean, sd = self.slope_mean, self.slope_sd
        if self.by_likelihood:
            mean = memory.prior[0]["mean"] if self.learns_mean else mean
            sd = math.exp(0.5 * memory.prior[0]["log_variance"]) if self.learns_sd else sd
        elif means["slopes"] >= 10.0:
            mean = means["mean_slope"] if self.learns_mean else mean
            if self.learns_sd:
                sd = max(math.sqrt(means["slope_squares"] / means["slopes"]), 0.25 * abs(mean))
        return mean, sd

    @compiled
    def predict(self, state):
        """Fit the line to the observations, under the prior of its slope; returns the slope."""
        memory, line, means = state.memory, state.memory.line[0], state.memory.means[0]
        mean, sd = self.slope_prior(state)
        slope = regression.fit(line, mean, sd * sd)
        memory.counts[0]["fits"] += 1.0
        if slope < 0.0:
            memory.counts[0]["negative_slopes"] += 1.0
        if line["count"] >= 2.0 and (self.learns_throughout or state.counts[ADAPTING] == 1):
            means["slopes"] += 1.0
            change = slope - means["mean_slope"]
            means["mean_slope"] += change / means["slopes"]
            means["slope_squares"] += change * (slope - means["mean_slope"])
        if self.nonnegative and slope < 0.0:
            regression.with_slope(line, positive_part(means["mean_slope"] if means["slopes"] > 0.0 else mean))
        return slope

    @compiled(inline=False)
    def set_velocity(self, state):
        """v = L u, after u changed; L itself follows the gradient while it is adapted."""
        memory = state.memory
        if self.adapts and state.counts[ADAPTING] == 1:
            self.speeds.adapt(memory, max(self.provider.model.n_data, 1))
        self.metric.push(memory.metric, state.v)

    # -- Python -----------------------------------------------------------------------------------------------------

    def waits_for_warmup(self) -> str | None:
        return 'metric="diagonal"' if self.adapts else Defaults.waits_for_warmup(self)

    def resolve(self, x: np.ndarray) -> Self:
        process = super().resolve(x)
        curvature = self.metric.trace(self.model, x) if self._has_metric else curvature_at(self.model, x, "pdmp.SBPS")
        curvature = curvature if 0.0 < curvature < math.inf else 1.0
        process._curvature = curvature
        if process.refresh_rate == "auto":
            process.refresh_rate = 0.1 * math.sqrt(curvature / (2.0 * math.pi))
        if isinstance(process.slope_mean, str):
            process.slope_mean = curvature
        if isinstance(process.slope_sd, str):
            process.slope_sd = curvature
        return process

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.metric.transform(sphere(rng, self.dim))

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float] | None:
        return state.memory.here, None

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        gap = math.sqrt(2.0 * math.pi / self._curvature)
        means = np.zeros(1, MEANS)
        means["mean_wait"], means["waits"], means["mean_gap"], means["gaps"] = 0.2 * gap, 1.0, gap, 1.0
        means["misfit"], means["misfits"] = 1.0, MISFIT_PRIOR
        return zeros(
            Memory,
            self.dim,
            metric=self.metric.memory(x),
            means=means,
            counts=np.zeros(1, COUNTS),
            line=regression.new_line(),
            prior=regression.new_prior(self.slope_mean, self.slope_sd**2),
            provider=self.provider.memory(rng),
        )

    def prepare(self, state: State) -> None:
        state.memory.metric.u[:] = self.metric.inverse(state.v)
