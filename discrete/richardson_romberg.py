r"""Richardson-Romberg extrapolation: two chains, one with half the step, whose averages are combined.

=====  ================================================================================================
flow   none
clock  the fine chain ticks every γ/2, the coarse one every γ; where they coincide, the fine one first
rate   none: every tick is an event
jump   fine    the sampler's step of size γ/2 with the increments Z', twice in a step, Z'₁ and Z'₂
       coarse  its step of size γ with   Z = Σᵀ (Z'₁ + Z'₂) / √2 + (I - ΣᵀΣ)^½ W
=====  ================================================================================================

θ¹ is the coarse chain and θ² the fine one. If the bias of the averages of a chain is of order γᵖ, then that of
(2ᵖ E[f(θ²)] - E[f(θ¹)]) / (2ᵖ - 1) is of higher order. The chains share their Brownian increments (Σ = I), so that the
variance of the combination is no larger than that of one chain.

References
----------
Durmus, Şimşekli, Moulines, Badeau & Richard (2016), Stochastic gradient Richardson-Romberg Markov chain Monte Carlo,
NeurIPS: eqs 5 and 6 (with the fine chain's gradient at its own last state).
"""

from __future__ import annotations

import contextlib
import copy
import math
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from discrete.curvature import local_law
from discrete.kinetic import step_from_h
from discrete.laws import largest_step
from discrete.schedules import Automatic, Constant, Schedule
from discrete.sghmc import SGHMC
from discrete.sgld import SGLD
from discrete.streams import Stream
from discrete.threads import Helper, compare_and_swap, load, no_jobs, pause, store
from discrete.tick import Brownian, StepRecipe, finite, warn_of_bias
from pdmp.diagnostics.averages import grid_size, variance
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.errors import silenced
from pdmp.flow import Still
from pdmp.gradients import Provider
from pdmp.interfaces.report import Report
from pdmp.metric import Metric
from pdmp.models import Model
from pdmp.native.arguments import count, one_of, positive
from pdmp.native.classes import compiled
from pdmp.native.records import Number, Vector, zeros
from pdmp.process import ADAPTING, CERTAIN, DATA, KINDS, Process, State

MOST_ORDER = 50  #: of the bias: 2^p and 2^p - 1 are two numbers
#: Extrapolation by more than this factor of a variance is told, if a chain has so many effective draws; and how many
#: draws of the fine one are looked at, at most.
FAR, SETTLED, FINE_DRAWS = 1.5, 1_000.0, 20_000
FINE, COARSE = 0, 1  #: numbers of the clocks, and kinds of event


class CoupledMemory(NamedTuple):
    """What a pair of chains keeps beside its state."""

    step_start: Number  #: when the present step of the coarse chain began
    first: np.ndarray  #: Z'₁ of the present step
    second: np.ndarray  #: Z'₂
    normals: np.ndarray  #: Z
    x: Vector  #: where the coarse chain will be at the end of its present step
    v: Vector  #: its momentum there
    coarse_counts: np.ndarray  #: what that step counts, as `State.counts`
    jobs: tuple  #: the steps of the coarse chain as jobs for two threads, see `discrete.threads`
    stream_state: (
        np.ndarray
    )  #: (4,) state of the random numbers of the coarse chain's gradients, a `discrete.streams.Stream`
    fine: tuple  #: the memory of the fine chain
    coarse: tuple  #: the memory of the coarse chain


class RichardsonRombergReport(Report):
    """The statistics of the fine chain."""

    def statistics(self, process, state):
        """The statistics of the fine chain."""
        fine = process.fine
        return fine.report.statistics(fine, state._replace(memory=state.memory.fine))

    def doubts(self, run, asked):
        """Where the extrapolated variance is so far from the fine chain's that the bias is not of one order alone.

        With the terms of further orders left, the difference of the chains is no small correction. A negative variance
        is told where it is asked for.
        """
        if run.store == "moments" or any(record.length <= 0.0 for record in run.records):
            return []
        draws = run.draws(min(grid_size(run) or int(run.events.min()), FINE_DRAWS))
        with np.errstate(all="ignore"):
            ratio = variance(run) / draws.var(axis=(0, 1))
            off = np.where((ratio > 0.0) & (draws_ess(draws, "sd") > SETTLED), np.abs(np.log(ratio)), 0.0)
        k = int(np.argmax(off))
        if not off[k] > math.log(FAR):
            return []
        return [
            f"the extrapolated variance of {run.names()[k]} is {ratio[k]:.2g} times that of the fine chain: the step "
            "is too large for an extrapolation, and averages may be wrong. Give a smaller step."
        ]


class RichardsonRomberg(Process):
    """Richardson-Romberg extrapolation of a fixed-step sampler.

    The run's mean, var, cov and `expectation` are extrapolated; a variance can come out negative. Its positions, draws,
    ess and rhat are those of the fine chain, and ``trajectories[i].coarse`` is the path of the coarse one. One step of
    a run is one step of the coarse chain and two of the fine one, with three gradients.

    Parameters
    ----------
    sampler : SGLD, SGHMC or any other with Brownian increments
        The coarse chain. The fine chain is a copy of it with half the step. They draw their batches independently.
    correlation : float, array_like of shape (d, d), or None, default 1
        Σ, the correlation of the Brownian increments of the two chains. A number ρ stands for ρI, None for 0.
    order : int, optional
        Order p of the bias in the step; ``sampler.bias_order`` when omitted.
    weights : {"holding", "paper"}
        The weights of the states in averages. "holding": each has the step, or half step, that is taken from it, so
        that θ₀ counts and the last states do not. "paper": after K steps averages are those of eq. 6, in which θ¹ₖ has
        γₖ₊₁, and θ²₂ₖ₋₁ and θ²₂ₖ both have γₖ₊₁/2, k = 1 … K. Then the first step ends at time 0, the path at
        γ₂ + … + γ_{K+1}, and a warm-up of steps leaves out the first of these terms. For constant steps the two agree
        but for the first and the last states.
    threads : {1, 2}, default 1
        With 2, a second thread takes the steps of the coarse chain, while the first takes those of the fine chain. The
        result is bitwise the same. The time is at best two thirds, for gradients that take some microseconds, if each
        chain has two idle processors. On busy processors it takes longer than one thread, since one waits for the
        other.

    Raises
    ------
    TypeError
        For a sampler without Brownian increments.
    ValueError
        If I - ΣᵀΣ has a negative eigenvalue, or Σ another shape; for an order below 1, unknown weights, or another
        number of threads.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> process = discrete.RichardsonRomberg(discrete.SGLD(model, step=0.1))
    >>> process.copies, process.fine.schedule.step(0)  # weights of the fine and the coarse chain
    ((2.0, -1.0), 0.05)
    """

    fine: Brownian
    coarse: Brownian
    regular: bool  #: whether all states are held for the same time
    paper_weights: bool  #: whether the fine chain's states have the paper's weights
    stream: Stream
    is_matrix: bool  #: whether Σ is a matrix
    shared: np.ndarray  #: Σᵀ, of shape (d, d), or (1, 1) for a number
    own: np.ndarray  #: (I - ΣᵀΣ)^½, of the same shape

    events = ("fine step", "coarse step")
    ticks = 3
    report = RichardsonRombergReport()

    def __init__(
        self,
        sampler: Brownian,
        correlation: ArrayLike | None = 1.0,
        order: int | None = None,
        weights: str = "holding",
        threads: int = 1,
    ):
        if not isinstance(sampler, Brownian):
            raise TypeError(
                "`sampler` must have Brownian increments to share, such as SGLD, SGHMC, SGNHT or BAOAB, got "
                f"{type(sampler).__name__}."
            )
        if getattr(sampler, "metric", None) is not None:
            raise ValueError(
                f"`metric` of {type(sampler).__name__} must be left out: coupled chains take none of a sampler "
                "with a momentum."
            )
        one_of("weights", weights, ("holding", "paper"))
        if isinstance(threads, bool) or threads not in (1, 2):
            raise ValueError(f"`threads` must be 1 or 2, got {threads!r}.")
        self.coarse, self.fine = sampler, sampler.halved()
        self.stream, self.threads = Stream(), int(threads)
        self.model, self.anchor = sampler.model, sampler.anchor
        self.provider, self.schedule, self.regular = sampler.provider, sampler.schedule, sampler.regular
        self.paper_weights = weights == "paper"
        order = sampler.bias_order if order is None else count("order", order, most=MOST_ORDER)
        self.copies = (2.0**order / (2.0**order - 1.0), -1.0 / (2.0**order - 1.0))
        self._share(correlation)
        super().__init__(2 * sampler.dim, clocks=2, dependents=[[FINE], [COARSE]], flow=Still())

    def _share(self, correlation):
        d = self.coarse.dim
        try:
            sigma = np.array(0.0 if correlation is None else correlation, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"`correlation` must be a number, a matrix or None, got {correlation!r}.") from None
        if sigma.shape not in ((), (d, d)):
            raise ValueError(f"`correlation` must be a number or of shape ({d}, {d}), got shape {sigma.shape}.")
        self.is_matrix = sigma.ndim == 2
        sigma = np.atleast_2d(sigma)
        if not np.all(np.isfinite(sigma)):
            raise ValueError("`correlation` must be finite.")
        values, vectors = np.linalg.eigh(np.eye(len(sigma)) - sigma.T @ sigma)
        if not values[0] >= -1e-12:
            if not self.is_matrix:
                raise ValueError(f"`correlation` must lie in [-1, 1], got {correlation!r}.")
            raise ValueError(
                "`correlation` as a matrix Σ must have no singular value above 1, or the coarse chain's increments "
                f"could not have unit covariance: I - ΣᵀΣ has the eigenvalue {values[0]:.3g}."
            )
        self.shared = np.ascontiguousarray(sigma.T)
        self.own = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T

    @compiled
    def holding_time(self, k):
        """For how long the state of the coarse chain before its step k is held, in process time."""
        return self.coarse.holding_time(k)

    def tick_length(self) -> float | None:
        return self.holding_time(0) if self.regular else None

    @compiled
    def clock(self, state, i, now, rng):
        memory = state.memory
        taken = memory.fine.taken[0] if i == FINE else memory.coarse.taken[0]
        k = taken >> 1 if i == FINE else taken
        length = self.holding_time(k)
        if self.paper_weights:  # step k of the chains ends when θ¹ₖ has been held for γₖ₊₁; the first one at time 0
            began = memory.step_start[0]
            if i == FINE and taken & 1 == 1:  # θ²₂ₖ₊₁ gives way to θ²₂ₖ₊₂, in the middle of γₖ₊₂
                return (k + 0.5) * length if self.regular else began + 0.5 * self.holding_time(k + 1), CERTAIN
            if k == 0:
                return 0.0, CERTAIN
            return k * length if self.regular else began + length, CERTAIN
        began = k * length if self.regular else memory.step_start[0]
        if i == FINE and taken & 1 == 0:  # the tick in the middle of a step
            return began + 0.5 * length, CERTAIN
        # The same expression for both chains, so that they meet exactly.
        return ((k + 1) * length if self.regular else began + length), CERTAIN

    def held_until(self, state: State, now: float) -> float:
        """With the paper's weights the states after step K are held for γ_{K+1}, as those before them."""
        memory = state.memory
        k = int(memory.coarse.taken[0])
        if not self.paper_weights or k == 0 or memory.fine.taken[0] != 2 * k:
            return now
        length = self.holding_time(k)
        return float(k * length if self.regular else memory.step_start[0] + length)

    @compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        d = state.x.shape[0] // 2
        if i == FINE:
            first, second = memory.first, memory.second
            one = memory.fine.taken[0] & 1 == 0
            if one:
                for j in range(first.shape[0]):
                    first[j] = rng.standard_normal()
                    second[j] = rng.standard_normal()
                self._combine(first, second, memory.normals, d, rng)
                memory.coarse_counts[ADAPTING] = state.counts[ADAPTING]
                store(memory.jobs.posted, memory.coarse.taken[0] + 1)
            x, z = state.x[:d], first if one else second
            if not (self.fine.move(x, state.v[:d], memory.fine, z, rng, state.counts) and finite(x)):
                return -1
            if one == self.paper_weights:  # the tick at which a step ends
                memory.step_start[0] = now
            memory.fine.taken[0] += 1
            return FINE
        jobs, taken = memory.jobs, memory.coarse.taken[0]
        if compare_and_swap(jobs.claimed, taken, taken + 1):
            self.carry_out(state)
        else:
            spins = 0
            while load(jobs.done) <= taken:
                pause(spins)
                spins += 1
        if jobs.failed[0] == 1:
            return -1
        for j in range(d):
            state.x[d + j] = memory.x[j]
            state.v[d + j] = memory.v[j]
        state.counts[DATA] += memory.coarse_counts[DATA]
        memory.coarse_counts[DATA] = 0
        memory.coarse.taken[0] = taken + 1
        return COARSE

    @compiled(inline=False)
    def carry_out(self, state):
        """Take the present step of the coarse chain, to ``memory.x``; called by either thread."""
        memory = state.memory
        d = memory.x.shape[0]
        for j in range(d):
            memory.x[j] = state.x[d + j]
            memory.v[j] = state.v[d + j]
        rng = self.stream.at(memory.stream_state)
        x = memory.x
        if not (self.coarse.move(x, memory.v, memory.coarse, memory.normals, rng, memory.coarse_counts) and finite(x)):
            memory.jobs.failed[0] = 1

    @compiled
    def _combine(self, first, second, z, d, rng):
        """Z = Σᵀ (Z'₁ + Z'₂) / √2 + (I - ΣᵀΣ)^½ W, for each of the d-vectors that `z` consists of."""
        root = math.sqrt(0.5)
        if not self.is_matrix:
            shared, rest = root * self.shared[0, 0], self.own[0, 0]
            for j in range(z.shape[0]):
                z[j] = shared * (first[j] + second[j])
                if rest > 0.0:
                    z[j] += rest * rng.standard_normal()
            return
        for j in range(z.shape[0]):
            z[j] = 0.0
        for begin in range(0, z.shape[0], d):
            for k in range(begin, begin + d):
                both, w = root * (first[k] + second[k]), rng.standard_normal()
                for j in range(d):
                    z[begin + j] += self.shared[j, k - begin] * both + self.own[j, k - begin] * w

    def helper_threads(self, state: State) -> AbstractContextManager:
        """The context in which the event loop runs: with two threads, one that starts and stops the second."""
        return contextlib.nullcontext() if self.threads == 1 else Helper(self, state)

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        one = self.coarse.velocity(x[: len(x) // 2], rng)
        return np.concatenate([one, one])

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        x = x[: len(x) // 2]
        n = self.coarse.normals * self.coarse.dim
        return zeros(
            CoupledMemory,
            self.coarse.dim,
            first=np.zeros(n),
            second=np.zeros(n),
            normals=np.zeros(n),
            coarse_counts=np.zeros(KINDS + len(self.events), np.int64),
            jobs=no_jobs(),
            stream_state=Stream.seeded(rng),
            fine=self.fine.memory(x, rng),
            coarse=self.coarse.memory(x, rng),
        )

    def with_step(self, hessian: np.ndarray, noise: np.ndarray) -> Self:
        """A copy with an automatic step for the extrapolated variances."""
        error = self.schedule.error
        with silenced(UserWarning):  # it would be about the coarse chain alone
            coarse = self.coarse.with_step(hessian, noise)

        def extrapolated(step):
            found = [coarse.covariance(hessian, noise, s) for s in (0.5 * step, step)]
            return None if found[1] is None else self.copies[0] * found[0] + self.copies[1] * found[1]

        target = coarse.target_covariance(hessian)
        step, worst = largest_step(extrapolated, target, coarse.largest(hessian), error)
        coarse.schedule = Constant(step)
        process = copy.copy(self)
        process.coarse, process.fine, process.schedule = coarse, coarse.halved(), coarse.schedule
        if worst > 1.01 * error:
            warn_of_bias(type(self).__name__, step, worst, error)
        return process

    def resolve(self, x: np.ndarray) -> Self:
        if isinstance(self.schedule, Automatic):
            return self.with_step(*local_law(self.provider, x)).resolve(x)
        resolved = copy.copy(self)
        resolved.coarse = self.coarse.resolve(x)
        resolved.fine = resolved.coarse.halved()
        return resolved


class SGRRLD(RichardsonRomberg):
    """Stochastic-gradient Richardson-Romberg Langevin dynamics: the extrapolation of two coupled SGLD chains.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U; the chains draw their batches independently.
    step : float, schedule or "auto", default "auto"
        γ of the coarse chain, in the convention of `SGLD`; the fine one has γ/2. "auto": see
        `discrete.schedules.automatic`; the step is chosen for the extrapolated variances.
    correlation, order, weights, threads
        As for `RichardsonRomberg`.
    **options
        Further arguments of `SGLD`.

    Raises
    ------
    ValueError
        As `SGLD` and `RichardsonRomberg`.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGRRLD(pdmp.gradients.Noisy(model, 0.5), step=0.1).copies
    (2.0, -1.0)
    """

    recipe = StepRecipe()
    step_name = "step"

    @classmethod
    def chooses_step(cls) -> bool:
        """Whether there is a rule for an automatic step: that of `RichardsonRomberg.with_step`."""
        return True

    @classmethod
    def in_metric(cls, target: Model | Provider, learnt: Any, /, **options: Any) -> SGRRLD:
        """With it for both chains."""
        return cls(target, **{"metric": Metric(covariance=learnt.covariance)} | options)

    def __init__(
        self,
        provider: Provider | Model,
        step: float | str | Schedule = "auto",
        correlation: ArrayLike | None = 1.0,
        order: int | None = None,
        weights: str = "holding",
        threads: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(SGLD(provider, step, **options), correlation, order, weights, threads)


class SGRRHMC(RichardsonRomberg):
    """Stochastic-gradient Richardson-Romberg Hamiltonian Monte Carlo: the extrapolation of two coupled SGHMC chains.

    Parameters
    ----------
    provider : pdmp.Model or any of `pdmp.gradients`
        Estimates of ∇U; the chains draw their batches independently.
    step : float or schedule
        ε of the coarse chain, in the convention of `SGHMC`; the fine one has ε/2 and the same friction.
    friction, scheme
        As for `SGHMC`. The paper extrapolates Euler's method, ``scheme="explicit"``.
    correlation, order, weights, threads
        As for `RichardsonRomberg`.
    **options
        Further arguments of `SGHMC`.

    Raises
    ------
    ValueError
        As `SGHMC` and `RichardsonRomberg`.

    Examples
    --------
    >>> import discrete, pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> discrete.SGRRHMC(model, step=0.1, friction=2.0).copies  # the splitting is of second order
    (1.3333333333333333, -0.3333333333333333)
    """

    def __init__(
        self,
        provider: Provider | Model,
        step: float | Schedule,
        friction: float = 1.0,
        correlation: ArrayLike | None = 1.0,
        scheme: str = "splitting",
        order: int | None = None,
        weights: str = "holding",
        threads: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(SGHMC(provider, step, friction, scheme, **options), correlation, order, weights, threads)

    @classmethod
    def from_h(
        cls, provider: Provider | Model, h: float, alpha: float = 0.01, beta_hat: float = 0.0, **options: Any
    ) -> SGRRHMC:
        """From the convention of `SGHMC.from_h`, in which the fine chain has h/4, α/2 and β̂/4.

        Parameters
        ----------
        provider : pdmp.Model or any of `pdmp.gradients`
        h : float
        alpha : float, default 0.01
        beta_hat : float, default 0.0
            All three of the coarse chain.
        **options
            Further arguments of `SGRRHMC`.

        Returns
        -------
        SGRRHMC
        """
        eps = step_from_h(h)
        return cls(
            provider, step=eps, friction=positive("alpha", alpha) / eps, noise_estimate=beta_hat / eps, **options
        )
