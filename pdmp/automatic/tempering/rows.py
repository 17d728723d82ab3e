r"""Tempering of many rows: two rungs, of which the upper one is explored at one row a proposal.

=====  ======================================================================================================
flow   none, clock: ticks, as of `Tempered`
jump   one scan of two replicas, at a normalised reference exp(-U₀) and at exp(-U):
       1. the lower one is drawn from the reference, a mixture with a component for each chart;
       2. the upper one goes along a quarter of a turn of the Boomerang sampler of its chart, with a new
          velocity, and stays where it is unless the path ends in the same chart;
       3. swap, with probability α = min(1, exp(W(upper) - W(lower))),  W = U - U₀.
=====  ======================================================================================================

A *chart* is an expansion of all rows at a mode, and the bounds on single rows around it
(`pdmp.processes.regression_boomerang`). Far from there these bounds are of the order of the number of rows, so each
mode needs its own. The chart of a point is that of the component of most density there, the wide one aside.

Exactness. From a velocity drawn anew to one that is forgotten, a Boomerang path is a kernel that is reversible for
exp(-U): run backwards, with the velocity turned round, it is as likely [1]_. A path that ends in another chart is
rejected, and one that gets where bounds are above `MOST` of a pass over the rows, or not finite. Both are the same for
the path backwards, as a bound depends on the ellipse alone; so what is left is reversible as well. Only the swaps take
passes over the rows, two of a scan, for W of both replicas; the same W give the evidence. As the posterior of many rows
is nearly normal around a mode, a quarter of a turn is nearly an independent draw, and needs few rows.

No rung lies between: the reference is fitted to paths in each chart beforehand, so that swaps are frequent. A power of
the likelihood as a further coordinate (continuous tempering) would need no pass, but random walks between both ends,
where now a scan is a step from one mode to another.

References
----------
.. [1] Andrieu & Livingstone (2021), Peskun-Tierney ordering for Markovian Monte Carlo: beyond the reversible scenario,
   Ann. Statist. 49 (reversibility up to a turn of the velocity, of processes that bounce). Bierkens, Grazzi, Kamatani &
   Roberts (2020), The Boomerang sampler, ICML.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pdmp.automatic.row_modes import PASSES as SEARCH
from pdmp.automatic.row_modes import modes_of_rows
from pdmp.automatic.start import DRAWS, Evaluations, Gaussian, elbo
from pdmp.automatic.subsampling import NO_MODE, REFRESH_RATE, ROOM, known_until
from pdmp.automatic.tempering.answers import TemperedReport
from pdmp.automatic.tempering.modes import groups
from pdmp.automatic.tempering.process import Tempered, TemperedMemory
from pdmp.automatic.tempering.references import BEHIND, FREEDOM, KEPT, LEAST, Mixture, wide
from pdmp.automatic.windows import ends as ends_of
from pdmp.automatic.windows import gradients_of, run_window
from pdmp.models.base import Model
from pdmp.native.classes import compiled
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import DATA, ROUNDING, THINNED, VIOLATIONS, Prepared, State
from pdmp.processes.regression_boomerang import KNOWN, ROW, RegressionBoomerang

QUARTER = 0.5 * math.pi  #: of a turn: of a normal law the end does not depend on the beginning
MOST = 1.0  #: proposals of such a path, over the number of rows, by the bound; where it is above a path is rejected
#: Degrees of freedom of a component, over those of other references: the posterior of many rows is nearly normal.
NORMAL = 5.0
#: Passes that the expansion at a mode and its bounds take.
SET_UP = 3
#: Units of time of each chain that the component of a chart is fitted to, and passes over the rows, at most.
PILOT, PASSES = 1_000.0, 20.0


class Turn(NamedTuple):
    """The path of the upper replica, and what its sampler keeps."""

    x: Vector
    v: Vector
    moved: Number
    times: np.ndarray  #: (2,) of the clocks `ROW` and `KNOWN`
    bounds: np.ndarray  #: (2,)
    unused: Count  #: of a `State`
    inner: tuple


class RowsReport(TemperedReport):
    """That of `Tempered`, and rates above their bounds."""

    def warnings(self, process: Any, stats: dict) -> list[str]:
        found = super().warnings(process, stats)
        if stats["bound_violations"]:
            found.append(
                f"the rate of a row was above its bound {stats['bound_violations']:,} times, so that draws are not "
                "those of the posterior: check the bounds of the terms"
            )
        return found


class TemperedRows(Tempered):
    """Swaps between a reference and exp(-U), which is explored at one row a proposal.

    The model is a sum of terms, or a mixed regression without groups, in memory. Each chart has one of the `samplers`
    and one component of the reference, whose last one is wide; `pool` (n, 2, d) is as of `Tempered`.
    """

    charts: object
    most: float  #: proposals of a quarter of a turn, at most

    report = RowsReport()

    def __init__(
        self, model: Model, reference: Mixture, samplers: Sequence[RegressionBoomerang], pool: np.ndarray
    ) -> None:
        self.samplers, self.most = tuple(samplers), MOST * model.n_data
        super().__init__(model, reference, np.array([0.0, 1.0]), np.zeros((2, 1, 1)), np.ones(2), pool)
        self.extra = 0

    @property
    def charts(self) -> tuple:
        """The samplers in machine code."""
        return tuple(one.native for one in self.samplers)

    # -- compiled ---------------------------------------------------------------------------------------------------

    @compiled
    def explore(self, memory, counts, rung, rng):
        """A quarter of a turn of the upper replica; whether it is kept."""
        r, turn = memory.at[rung], memory.within
        self.move(memory.positions, r, memory.x)
        k, _ = self.chart(memory)
        for j in range(memory.x.shape[0]):
            turn.x[j] = memory.x[j]
        if not self.turn(turn, counts, k, rng):
            return 0.0
        for j in range(memory.x.shape[0]):
            memory.x[j] = turn.x[j]
        other, height = self.chart(memory)
        if other != k:
            return 0.0
        potential = self.both(memory.x, memory.gradient)
        counts[DATA] += self.target.n_data
        if not potential < math.inf:
            return 0.0
        self.keep(memory, r, potential, height)
        return 1.0

    @compiled(inline=False)
    def chart(self, memory):
        """The chart of the proposal, and U₀ there."""
        height, best = self.height(memory), 0
        for k in range(1, memory.mixture.terms.shape[0] - 1):
            if memory.mixture.terms[k] > memory.mixture.terms[best]:
                best = k
        return best, height

    @compiled(inline=False)
    def turn(self, path, counts, k, rng):
        """Move on by a quarter of a turn with a new velocity; False where bounds on the way are too large."""
        chart = self.charts[k]
        state = State(
            path.x, path.v, path.moved, path.moved, path.unused, path.times, path.unused, path.bounds, path.unused,
            counts, path.bounds, path.inner,
        )  # fmt: skip
        chart.reference.draw(rng, path.v)
        path.moved[0], path.inner.since[0] = 0.0, math.nan
        now, i, anew = 0.0, ROW, True
        while True:
            for clock in (ROW, KNOWN):
                if anew or clock == i:
                    path.times[clock], path.bounds[clock] = chart.clock(state, clock, now, rng)
            if not (path.inner.bounds[ROW] * QUARTER < self.most and path.inner.bounds[KNOWN] < math.inf):
                return False
            i = ROW if path.times[ROW] <= path.times[KNOWN] else KNOWN
            now = min(path.times[i], QUARTER)
            anew = False
            if now < QUARTER:
                rate, bound = chart.rate(state, i, now, rng), path.bounds[i]
                if not rate < math.inf:
                    return False
                counts[THINNED] += 1
                if rate > bound * (1.0 + ROUNDING):
                    counts[VIOLATIONS] += 1
                anew = rng.random() * bound < rate
            if anew or now == QUARTER:
                for j in range(path.x.shape[0]):
                    position = chart.flow.position(j, path.x[j], path.v[j], now - path.moved[0])
                    path.v[j] = chart.flow.velocity(j, path.x[j], path.v[j], now - path.moved[0])
                    path.x[j] = position
                path.moved[0] = now
                if now == QUARTER:
                    return True
                chart.jump(state, i, now, rng)

    @compiled(inline=False)
    def both(self, x, out):
        """U(x), without its gradient."""
        return self.target.total_potential(x)

    # -- Python -----------------------------------------------------------------------------------------------------

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> TemperedMemory:
        inner = self.samplers[0].memory(x, rng)
        path = zeros(Turn, self.dim, times=np.zeros(2), bounds=np.zeros(2), inner=inner)
        return super().memory(x, rng)._replace(within=path)


class Unknown(Exception):
    """Why rows are not sub-sampled."""


def by_rows(
    model: Model, chains: int, seeds: Sequence[np.random.SeedSequence], initial: Any
) -> tuple[TemperedRows | None, str]:
    """A process that is ready, or None and why there is none.

    1. Paths on some of the rows, half of them from far out, find modes (`pdmp.automatic.row_modes`).
    2. In the chart of each mode the Boomerang sampler runs for a while, and a component is fitted to its draws.

    The `seeds` are of paths, of the samplers in charts, and of starts.
    """
    try:
        return _by_rows(model, chains, seeds, initial), ""
    except Unknown as error:
        return None, str(error)


def _by_rows(model, chains, seeds, initial):
    if not model.has("remainder_along") or getattr(model, "n_groups", 0):
        raise Unknown("its terms have no bounds on single rows")
    if getattr(model, "blocks", None) is not None:
        raise Unknown("its rows are not in memory")
    for_paths, for_charts, for_starts = seeds
    gaussians, centre, spent, behind = modes_sought(model, for_paths, initial)
    target, rng = Evaluations(model), np.random.Generator(np.random.PCG64(for_paths.spawn(1)[0]))
    samplers = [_sampler(model, g) for g in gaussians]
    means, roots, points = [], [], []
    for sampler, seed in zip(samplers, for_charts.spawn(len(samplers)), strict=True):
        mean, covariance, ends, passes = _pilot(sampler, chains, seed)
        means.append(mean)
        roots.append(np.linalg.cholesky(covariance))
        points.append(ends)
        spent += passes + SET_UP
    z = rng.standard_normal((DRAWS, model.dim))
    masses = np.array([elbo(target, Gaussian(m, root), z) for m, root in zip(means, roots, strict=True)])
    shares = np.exp(masses - np.logaddexp.reduce(masses))
    far = wide(np.array(means), np.array([root @ root.T for root in roots]), centre)
    weights = np.maximum(shares, LEAST)
    reference = Mixture(
        [*(weights / weights.sum() * (1.0 - KEPT)), KEPT],
        [*means, *far.means],
        [*roots, *far.roots],
        [*[NORMAL * max(FREEDOM, float(model.dim))] * len(means), *far.freedoms],
    )
    rng = np.random.Generator(np.random.PCG64(for_starts))
    starts = np.array([points[k][i] for i, k in enumerate(rng.choice(len(shares), size=chains, p=shares))])
    process = TemperedRows(model, reference, samplers, np.stack([starts, starts], axis=1))
    process.modes = groups(target, reference)
    process.known = np.array(means), np.array(roots), masses
    process.narrowest = math.nan
    modes, rows = int(process.modes.max()) + 1, max(one.expected_data for one in samplers) * QUARTER
    further = f"; {behind} with less than e^-{BEHIND:.0f} of the mass left out" if behind else ""
    choice = (
        "two rungs, the upper one explored at one row a proposal, exactly, by the Boomerang sampler in "
        f"{len(samplers)} chart{'s' * (len(samplers) > 1)} of {modes} mode{'s' * (modes > 1)}{further}: a scan takes "
        "two passes over the rows, for a swap with a reference fitted to each chart, and looks at about "
        f"{rows:.2g} of {model.n_data:,} rows besides; modes in which no path ends are missed"
    )
    process.prepared = Prepared(starts, choice, spent + target.count)
    return process


def modes_sought(
    model: Model, seed: np.random.SeedSequence, initial: Any
) -> tuple[list[Gaussian], np.ndarray, int, int]:
    """Gaussians at distinct modes, that of most mass first; where paths began; evaluations; and modes left out."""
    centre = model.initial if initial is None else np.atleast_2d(np.asarray(initial, float)).mean(axis=0)
    mode = model.mode(model.check(centre, "initial"))
    if mode is None:
        raise Unknown(NO_MODE)
    known, spent = modes_of_rows(model, mode, seed, centre, rise=0.0)
    if not known:
        raise Unknown("no path ended in a mode")
    kept = [one.gaussian for one in known if one.behind < BEHIND]
    return kept, centre, spent + SEARCH, len(known) - len(kept)


def _sampler(model, gaussian):
    """The Boomerang sampler of a chart."""
    try:
        sampler = RegressionBoomerang(model, gaussian.centre, REFRESH_RATE)
    except ValueError as error:
        raise Unknown(str(error).rstrip(".")) from error
    reach = float(sampler.growth.radii[-1])
    if reach < math.sqrt(model.dim) + ROOM:
        raise Unknown(known_until(reach))
    if sampler.expected_data * QUARTER > 0.5 * MOST * model.n_data:
        raise Unknown("rows say too little for the bounds on single rows")
    return sampler


def _pilot(sampler, chains, seed):
    """Mean and covariance (d, d) in a chart, the ends of chains (chains, d), and passes over the rows."""
    reference, d = sampler.reference, sampler.dim
    rng = np.random.Generator(np.random.PCG64(seed))
    starts = sampler.anchor + rng.standard_normal((chains, d)) @ reference.root.T
    time = min(PILOT, PASSES * sampler.model.n_data / max(sampler.expected_data, 1e-300))
    run = run_window(sampler, starts, seed, math.inf, 0.1, time)
    if any(record.stopped == "failed" for record in run.records):
        return sampler.anchor, reference.covariance, starts, gradients_of(run)
    n = 0.5 * time * chains  # effective draws, about; as many of the Hessian's as a covariance needs
    covariance = (n * run.cov() + 2.0 * d * reference.covariance) / (n + 2.0 * d)
    return run.mean(), covariance, ends_of(run, starts), gradients_of(run)
