r"""Richardson-Romberg extrapolation: two chains, one with half the step, whose averages are combined.

=====  ================================================================================================
flow   none
clock  the fine chain ticks every γ/2, the coarse one every γ, the fine one first where they coincide
jump   fine    the sampler's step of size γ/2 with the increments Z', twice in a step, Z'₁ and Z'₂
       coarse  its step of size γ with   Z = Σᵀ (Z'₁ + Z'₂) / √2 + (I - ΣᵀΣ)^½ W
=====  ================================================================================================

If the bias of a chain's averages is of order γᵖ, that of (2ᵖ E[f(θ²)] - E[f(θ¹)]) / (2ᵖ - 1) is of higher order. The
Brownian increments are shared (Σ = I) so that the combination's variance is no larger than one chain's.

References
----------
Durmus, Şimşekli, Moulines, Badeau & Richard (2016), Stochastic gradient Richardson-Romberg Markov chain Monte Carlo,
NeurIPS: eqs 5 and 6 (with the fine chain's gradient at its own last state).
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from typing import NamedTuple

import numpy as np

from discrete.curvature import local_law, noise_covariance
from discrete.kinetic import check_friction, step_from_h
from discrete.laws import largest_step
from discrete.schedules import Automatic, Constant, automatic
from discrete.sghmc import SGHMC
from discrete.sgld import SGLD
from discrete.streams import Stream
from discrete.threads import Helper, compare_and_swap, load, no_jobs, pause, store
from discrete.tick import Brownian, arms_around, finite, warn_of_bias
from pdmp.flow import Still
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.native.classes import compiled
from pdmp.process import ADAPTING, CERTAIN, DATA, KINDS, Process

FINE, COARSE = 0, 1


class CoupledMemory(NamedTuple):
    """Beside the two chains."""

    step_start: np.ndarray  #: (1,) when the present step of the coarse chain began
    first: np.ndarray  #: Z'₁ of the present step
    second: np.ndarray  #: Z'₂
    normals: np.ndarray  #: Z
    x: np.ndarray  #: (d,) where the coarse chain's present step leads; it goes there when the step ends
    v: np.ndarray  #: (d,) and with which momentum
    coarse_counts: np.ndarray  #: counts of that step, like `State.counts`
    jobs: tuple  #: the steps of the coarse chain as jobs for two threads, see `discrete.threads`
    stream_state: np.ndarray  #: the random numbers of the coarse chain's gradients
    fine: tuple  #: the memory of the fine chain
    coarse: tuple  #: that of the coarse one


class RichardsonRombergReport(Report):
    """The statistics of the fine chain."""

    def statistics(self, process, state):
        """Those of the fine chain."""
        fine = process.fine
        return fine.report.statistics(fine, state._replace(memory=state.memory.fine))


class RichardsonRomberg(Process):
    """Richardson-Romberg extrapolation of a fixed-step sampler.

    The run's mean, var, cov and `expectation` extrapolate: a variance can come out negative. Its positions, draws, ess
    and rhat are the fine chain's; ``trajectories[i].coarse`` is the other one. One step is one tick of the coarse chain
    and two of the fine: three gradients.

    Parameters
    ----------
    sampler : SGLD, SGHMC or any other with Brownian increments
        The coarse chain; the fine one is its copy with half the step. They draw their batches independently.
    correlation : float, array_like of shape (d, d), or None, default 1
        Σ: how far the chains share their Brownian increments; a number ρ stands for ρI, None for independent chains.
    order : int, optional
        Order p of the bias in the step. By default the sampler's own, ``sampler.bias_order``.
    weights : {"holding", "paper"}
        With decreasing steps, how the fine chain's states are weighted: each with the half step for which it is held,
        or, as eq. 6 has it, θ²₂ₖ₋₁ and θ²₂ₖ both with γₖ₊₁/2, the step with which the coarse state θ¹ₖ is left.
        For constant steps they are the same, but for the first and the last state.
    threads : {1, 2}, default 1
        2: a second thread takes the coarse chain's steps, while the first takes the fine one's, which follow one upon
        the other. The results are bitwise the same; the time is at best two thirds. It pays where a processor is idle
        for each helper, so not with as many chains as there are processors, and for gradients that take some
        microseconds. Where others want the processors it costs time, because one thread waits for the other.

    Raises
    ------
    TypeError
        For a sampler without Brownian increments.
    ValueError
        If I - ΣᵀΣ has a negative eigenvalue, or Σ another shape; for an order below 1, unknown weights, or another
        number of threads.
    """

    fine: object
    coarse: object
    regular: bool  #: whether all states are held for the same time
    paper_weights: bool  #: whether the fine chain's states have the paper's weights
    stream: Stream
    is_matrix: bool  #: whether Σ is a matrix
    shared: np.ndarray  #: (d, d) Σᵀ, or (1, 1)
    own: np.ndarray  #: (d, d) (I - ΣᵀΣ)^½, or (1, 1)

    events = ("fine step", "coarse step")
    ticks = 3
    exact_bounds = True
    report = RichardsonRombergReport()

    def __init__(self, sampler, correlation=1.0, order=None, weights="holding", threads=1):
        if not isinstance(sampler, Brownian):
            raise TypeError(
                "`sampler` must have Brownian increments to share, such as SGLD, SGHMC, SGNHT or BAOAB, got "
                f"{type(sampler).__name__}."
            )
        if weights not in ("holding", "paper"):
            raise ValueError(f'`weights` must be "holding" or "paper", got {weights!r}.')
        if isinstance(threads, bool) or threads not in (1, 2):
            raise ValueError(f"`threads` must be 1 or 2, got {threads!r}.")
        self.coarse, self.fine = sampler, sampler.halved()
        self.stream, self.threads = Stream(), int(threads)
        self.model, self.anchor = sampler.model, sampler.anchor
        self.provider, self.schedule, self.regular = sampler.provider, sampler.schedule, sampler.regular
        self.paper_weights = weights == "paper" and not self.regular
        order = sampler.bias_order if order is None else order
        if isinstance(order, bool) or not isinstance(order, (int, np.integer)) or order < 1:
            raise ValueError(f"`order` must be a whole number, at least 1, got {order!r}.")
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
        """For how long the coarse state before its step k is held."""
        return self.coarse.holding_time(k)

    def tick_length(self):
        return self.holding_time(0) if self.regular else None

    @compiled
    def clock(self, state, i, now, rng):
        memory = state.memory
        taken = memory.fine.taken[0] if i == FINE else memory.coarse.taken[0]
        k = taken >> 1 if i == FINE else taken
        length = self.holding_time(k)
        began = k * length if self.regular else memory.step_start[0]
        if i == FINE and self.paper_weights != (taken & 1 == 0):  # the tick in the middle of a step
            return began + 0.5 * (self.holding_time(k + 1) if self.paper_weights else length), CERTAIN
        # The same expression for both chains, so that they meet exactly.
        return ((k + 1) * length if self.regular else began + length), CERTAIN

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
        """Take the coarse chain's step from where it is to ``memory.x``: by this thread, or by one that helps it."""
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
        """Z = Σᵀ (Z'₁ + Z'₂) / √2 + (I - ΣᵀΣ)^½ W, for each of the vectors of which `z` is made."""
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

    def helper_threads(self, state):
        """What the event loop runs in: with two threads a helper."""
        return contextlib.nullcontext() if self.threads == 1 else Helper(self, state)

    def embed(self, x):
        return np.concatenate([x, x]).astype(float)

    def velocity(self, x, rng):
        one = self.coarse.velocity(x[: len(x) // 2], rng)
        return np.concatenate([one, one])

    def memory(self, x, rng):
        x = x[: len(x) // 2]
        n = self.coarse.normals * self.coarse.dim
        return CoupledMemory(
            step_start=np.zeros(1),
            first=np.zeros(n),
            second=np.zeros(n),
            normals=np.zeros(n),
            x=np.zeros(self.coarse.dim),
            v=np.zeros(self.coarse.dim),
            coarse_counts=np.zeros(KINDS + len(self.events), np.int64),
            jobs=no_jobs(),
            stream_state=Stream.seeded(rng),
            fine=self.fine.memory(x, rng),
            coarse=self.coarse.memory(x, rng),
        )

    def with_step(self, hessian, noise):
        """A copy in which an automatic step is chosen for the extrapolated variances."""
        error = self.schedule.error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the coarse chain by itself
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

    def resolve(self, x):
        if isinstance(self.schedule, Automatic):
            return self.with_step(*local_law(self.provider, x)).resolve(x)
        resolved = copy.copy(self)
        resolved.coarse = self.coarse.resolve(x)
        resolved.fine = resolved.coarse.halved()
        return resolved


class SGRRLDRecipe(Recipe):
    """With the step that it chooses itself for the extrapolated variances."""

    def processes(self, sampler, model, batch, mode, error):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a comparison shows how far off it is
            process = sampler(batch, automatic(error)).with_step(model.hessian(mode), noise_covariance(batch, mode))
        return {sampler.__name__: process}

    def arms(self, sampler, model, mode):
        return arms_around(sampler, model, mode, "step")

    def setting(self, process):
        return f"step {process.schedule.step(0):.3g}"


class SGRRLD(RichardsonRomberg):
    """Stochastic-gradient Richardson-Romberg Langevin dynamics: the extrapolation of two coupled SGLD chains.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U; the chains draw their batches independently.
    step : float, schedule or "auto", default "auto"
        γ of the coarse chain, in the convention of `SGLD`. "auto": see `discrete.schedules.automatic`; it is chosen for
        the extrapolated variances.
    correlation, order, weights, threads
        See `RichardsonRomberg`.
    **options
        Of `SGLD`.
    """

    recipe = SGRRLDRecipe()

    def __init__(self, provider, step="auto", correlation=1.0, order=None, weights="holding", threads=1, **options):
        super().__init__(SGLD(provider, step, **options), correlation, order, weights, threads)


class SGRRHMC(RichardsonRomberg):
    """Stochastic-gradient Richardson-Romberg Hamiltonian Monte Carlo: the extrapolation of two coupled SGHMC chains.

    Parameters
    ----------
    provider : any of `pdmp.gradients`, or Model
        Estimates of ∇U; the chains draw their batches independently.
    step : float or schedule
        ε of the coarse chain, in the convention of `SGHMC`; the fine one has ε/2 and the same friction.
    friction, scheme
        Of `SGHMC`. The paper extrapolates the explicit Euler scheme.
    correlation, order, weights, threads
        See `RichardsonRomberg`.
    **options
        Of `SGHMC`.
    """

    def __init__(
        self,
        provider,
        step,
        friction=1.0,
        correlation=1.0,
        scheme="splitting",
        order=None,
        weights="holding",
        threads=1,
        **options,
    ):
        super().__init__(SGHMC(provider, step, friction, scheme, **options), correlation, order, weights, threads)

    @classmethod
    def from_h(cls, provider, h, alpha=0.01, beta_hat=0.0, **options):
        """From the convention of `SGHMC.from_h`; in it the fine chain has h/4, α/2 and β̂/4."""
        eps = step_from_h(h)
        return cls(
            provider, step=eps, friction=check_friction("alpha", alpha) / eps, noise_estimate=beta_hat / eps, **options
        )
