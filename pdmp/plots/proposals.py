"""A picture of thinning: the rate of a clock along a piece of path, the bound above it, and the proposals.

A run records events only, so that a short piece of path is run again, one candidate time after another, by the event
loop itself. Before each step the clock is asked many times, from a copy of the state, when it would propose and with
which bound: that is the curve of the bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.engine.chain import Budget, Chain
from pdmp.engine.checks import check_initial, check_process, check_seed
from pdmp.engine.preflight import rate_of, true_rates_of
from pdmp.engine.result import Run
from pdmp.engine.scheduler import CHUNK, Limits, advance
from pdmp.engine.storage import copied
from pdmp.errors import SamplingError
from pdmp.native import arguments
from pdmp.native.classes import entry, positive_part, readable
from pdmp.plots.style import COLOURS, check_chain, one_axes, styled
from pdmp.process import CERTAIN, CLOCKS, EVENTS, HORIZON, THINNED, Process, positions, velocities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ASKED, POINTS = 200, 40  #: how often a clock is asked for its bound, at most, and how many answers are enough
EXACT = 10  #: answers without a bound, after which the clock is taken to need none
CURVE = 24  #: points of the rate between two candidate times
ROUGH, ESTIMATES = 6, 64  #: the same of a rate that the process only estimates, and estimates averaged at each point
FINISHED = 2**62  #: a number of events that no piece reaches


class Piece(NamedTuple):
    """A piece of path; times are process times."""

    times: np.ndarray  #: (m,) increasing
    rates: np.ndarray  #: (m,) the rate of the clock there
    bounds: list[tuple[np.ndarray, np.ndarray]]  #: times and values of the bound, each from one drawing of the clock
    proposals: np.ndarray  #: (n,) times of the clock's proposals
    proposed: np.ndarray  #: (n,) the bound at these
    accepted: np.ndarray  #: (n,) bool
    others: np.ndarray  #: times of events of other clocks
    clock: str  #: the clock's name
    estimated: bool  #: whether the rates are averages of estimates


@entry
def _ask(process, state, i, now, rng):
    """When clock i would propose, and the bound there."""
    return process.clock(state, i, now, rng)


def piece(
    process: Process,
    proposals: int = 30,
    clock: int | None = None,
    initial: ArrayLike | None = None,
    seed: int | None = 0,
    skip: int = 200,
) -> Piece:
    """Run a process until a clock has made so many proposals under a bound, and keep its rate and its bound.

    At most 100 times as many candidate times of all clocks are run, after `skip` others, for bounds that adapt, and
    more if no clock has proposed under a bound. The clock is by default the one that proposes most often among those.
    """
    check_process(process)
    proposals, x = arguments.count("proposals", proposals), check_initial(process, initial, 1)[0]
    process = process.resolve(x)
    name = type(process).__name__
    (sequence,) = np.random.SeedSequence(check_seed(seed, None)).spawn(1)  # that of the first chain of `pdmp.sample`
    chain = Chain(process, 0, x, sequence, budget=Budget(), warmup=0.0, store="moments")
    state, native, curious = chain.state, process.native, np.random.default_rng(0)
    limits = Limits(math.inf, FINISHED, FINISHED, FINISHED, chain.rows, bool(process.exact_bounds), False)

    def step():
        with readable(name), process.helper_threads(state):
            status = advance(native, state, chain.recording, limits, 1, chain.local, chain.rng)
        if status != CHUNK:
            raise SamplingError(f"{name} stops here, at time {state.now[0]:.6g}: pdmp.sample of it says why.")
        return int(state.heap[0])

    made = np.zeros(process.clocks, np.int64)
    for k in range(10 * max(skip, 20)):
        if k >= skip and (clock is not None or made.any()):
            break
        before = state.counts[THINNED]
        made[step()] += state.counts[THINNED] - before
    if clock is None:
        clock = int(np.argmax(made))
    elif not 0 <= clock < process.clocks:
        raise ValueError(f"`clock` must be one of 0 … {process.clocks - 1}, got {clock!r}.")
    names, stated = list(process.channels()), hasattr(process, "true_rates")
    times, rates, bounds, found, others = [], [], [], [], []
    with readable(name):
        for _ in range(100 * proposals):
            if len(found) == proposals:
                break
            before, begin = copied(state), float(state.now[0])
            if clock in _pending(process, state):
                _end(bounds, begin)
                bounds.append(_curve(native, before, clock, begin, curious))
            i = step()
            now, bound = float(state.now[0]), float(state.bounds[i])
            happened = state.counts[EVENTS] > before.counts[EVENTS]
            at = np.linspace(begin, now, CURVE if stated else ROUGH)
            times.append(at)
            known = stated or bounds and len(bounds[-1][0])
            rates.append(_rates(process, native, before, clock, at, len(names), stated, curious) if known else 0.0 * at)
            if i == clock and HORIZON < bound < CERTAIN:
                found.append((now, bound, happened))
                if not bounds:  # it was drawn before the piece began
                    bounds.append((np.empty(0), np.empty(0)))
                bounds[-1] = tuple(np.append(old, new) for old, new in zip(bounds[-1], (now, bound), strict=True))
            elif happened:
                others.append(now)
    if not found:
        raise ValueError(f"clock {clock} of {name} is not thinned: it proposes no event under a bound.")
    _end(bounds, float(state.now[0]))
    label = names[clock] if len(names) == process.clocks else "all coordinates"
    proposed, heights, accepted = map(np.array, zip(*found, strict=True))
    return Piece(
        *(np.concatenate(times), np.concatenate(rates)),
        *([(t[np.argsort(t)], b[np.argsort(t)]) for t, b in bounds if len(t)], proposed, heights, accepted),
        *(np.array(others), label, not stated),
    )


def _pending(process, state):
    """The clocks that are drawn anew at the next step."""
    first, last, what = state.pending
    return range(first, last) if what == CLOCKS else process.order[first:last].tolist()


def _curve(native, state, clock, now, rng):
    """Times and bounds that the clock may propose next."""
    found, certain = [], 0
    for k in range(ASKED):
        time, bound = _ask(native, copied(state), clock, now, rng)
        certain += bound == CERTAIN
        if HORIZON < bound < CERTAIN and math.isfinite(time):
            found.append((time, bound))
        if len(found) == POINTS or certain == k + 1 == EXACT:
            break
    times, values = np.array(found).reshape(-1, 2).T
    return times, values


def _end(bounds, now):
    """The last curve holds until `now`, when its clock is drawn anew."""
    if bounds:
        times, values = bounds[-1]
        bounds[-1] = times[times <= now], values[times <= now]


def _rates(process, native, state, clock, at, channels, stated, rng):
    """The rate of the clock at times after the state, with no event in between."""
    x, v, scratch, out = np.empty(process.dim), np.empty(process.dim), np.zeros(process.dim), np.zeros(channels)
    found = np.empty(len(at))
    for k, t in enumerate(at):
        if stated:
            positions(native.flow, state, t, x)
            velocities(native.flow, state, t, v)
            true_rates_of(native, x, v, scratch, out)
            found[k] = positive_part(out[clock]) if channels == process.clocks else np.maximum(out, 0.0).sum()
        else:
            found[k] = np.mean([rate_of(native, copied(state), clock, t, rng) for _ in range(ESTIMATES)])
    return found


@styled
def rate_and_bound(
    process: Process | Run,
    proposals: int = 30,
    clock: int | None = None,
    *,
    chain: int = 0,
    initial: ArrayLike | None = None,
    seed: int = 0,
    skip: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Plot how a clock's events are thinned: its rate along a short piece of path, its bound, and its proposals.

    A proposal is accepted with probability rate / bound, the fraction of its height that is below the rate. The piece
    is run for the picture, and is no part of a run. Where a process only estimates its rate, as `pdmp.SBPS` does from
    mini-batches, the rate is the average of 64 estimates at each point.

    Parameters
    ----------
    process : Process or Run
        What to run; of a run its process, from where the chain `chain` ended.
    proposals : int, default 30
        Number of proposals to show.
    clock : int, optional
        By default the one that proposes most often.
    chain : int, default 0
        Of a run.
    initial : array_like, shape (d,), optional
        Where to start, as in `pdmp.sample`.
    seed : int, default 0
    skip : int, default 200
        Candidate times before the piece that is shown, for bounds that adapt.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError
        For a run that was loaded from a file, which has no process.
    ValueError
        For a clock whose events are not thinned: its rate is inverted exactly, or it ticks.
    SamplingError
        If the process fails.

    Examples
    --------
    >>> import pdmp
    >>> process = pdmp.BPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), thinning='affine')
    >>> pdmp.plots.rate_and_bound(process, proposals=5).get_xlabel()
    'process time'
    """
    if isinstance(process, Run):
        run = process
        if isinstance(run.process, str):
            raise TypeError("`process`: a loaded run has none to run; give the process itself.")
        process, chain = run.process, check_chain(run, chain)
        if initial is None and run.store == "skeleton":
            initial = run.trajectories[chain].at(run.end[chain])
    found = piece(process, proposals, clock, initial, seed, skip)
    axes = one_axes(ax, 7.2, 3.0)
    below = "rate" if not found.estimated else "rate, mean of estimates"
    axes.fill_between(found.times, found.rates, color=COLOURS[0], alpha=0.25, lw=0, label=below)
    for k, (t, b) in enumerate(found.bounds):
        axes.plot(t, b, color="black", lw=1.0, label="bound" if k == 0 else None)
    axes.vlines(found.proposals, 0.0, found.proposed, color="0.7", lw=0.6, zorder=0)
    for happened, name, style in (
        (True, "accepted", {"marker": "o", "color": COLOURS[1]}),
        (False, "thinned", {"marker": "x", "color": COLOURS[3], "mew": 1.0}),
    ):
        rows = found.accepted == happened
        axes.plot(found.proposals[rows], found.proposed[rows], ls="", ms=4.5, label=name, zorder=4, **style)
    if len(found.others):
        height = np.zeros(len(found.others))
        axes.plot(found.others, height, "|", color="0.3", ms=7, label="events of other clocks", clip_on=False)
    axes.set(xlabel="process time", ylabel=f"rate of {found.clock}", xlim=(found.times[0], found.times[-1]))
    axes.set_ylim(0.0, 1.1 * max(float(found.rates.max()), float(found.proposed.max())))
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, borderaxespad=0.1)
    return axes
