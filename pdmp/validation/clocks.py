r"""Test whether the events of each clock of a process come at its rate, by the random time change theorem.

The integral of a Poisson clock's rate from one of its events to the next is an Exp(1) variable, whatever the path does,
and these variables are independent. The test needs no stationarity, no burn-in and no effective sample size, so it
detects much smaller errors of a rate than posterior means do.

A process states its rates in a compiled method, ``true_rates(x, v, scratch, out)``: it writes the signed rate of each
clock at the position x with velocity v into `out`; the rate is its positive part. It is best written from the
definition of the process, not from the code that it is to check. NaN marks a clock that is not Poisson. If one clock
stands for several (Zig-Zag's superposition), the process has more `channels` than clocks, and the method
``channel(state, i)`` returns the channel of the last event, which was of clock i.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.engine.scheduler import CHUNK, Limits, advance
from pdmp.native.arguments import count, positive
from pdmp.native.classes import entry, inlined, internal, positive_part, readable
from pdmp.native.records import Count, Number, Vector, zeros
from pdmp.process import CERTAIN, EVENTS, HORIZON, THINNED, VIOLATIONS, Process, positions, set_failure, velocities

#: Kronrod's seven nodes on [-1, 1], 0 and ± these, and their weights; Gauss's three are among them.
NODES = (0.0, 0.434243749346802558, 0.774596669241483377, 0.960491268708020283)
WEIGHTS = (0.450916538658474142, 0.401397414775962223, 0.268488089868333441, 0.104656226026467265)
GAUSS = (8.0 / 9.0, 0.0, 5.0 / 9.0, 0.0)
LONGEST, NEVER = sys.float_info.max, 2**62  #: a time and a number of events that no run reaches
CANDIDATES = 10_000  #: between two looks at whether the run is to end
DEPTH = 64  #: largest number of intervals of a segment still to be integrated
SMALLEST = 1e-6  #: shortest interval that is split, as a fraction of its segment


class Work(NamedTuple):
    """Arrays of the compiled check."""

    x: np.ndarray  #: (d,) positions after the last event
    v: np.ndarray  #: (d,) velocities there
    here: Vector  #: positions within a segment
    there: Vector  #: velocities within it
    scratch: Vector  #: for `true_rates`
    since: Number  #: time of the last event
    rates: np.ndarray  #: (9, channels) signed rates at the nodes of an interval, and at its ends
    hazards: np.ndarray  #: (channels,) integrated rate since the channel's last event
    stack: np.ndarray  #: (DEPTH, 2) intervals still to integrate
    error: np.ndarray  #: (channels,) estimated error of all integrals
    gaps: np.ndarray  #: (events,) integrated rate between two events of the same channel
    gap_channel: np.ndarray  #: (events,) that channel
    clock: np.ndarray  #: (channels,) the clock of the channel's last event
    thinned: np.ndarray  #: (clocks,) proposals whose rate was compared with a bound
    accepted: np.ndarray  #: (clocks,) those that became events
    violated: np.ndarray  #: (clocks,) those whose rate exceeded the bound
    done: Count  #: events so far


@inlined
def _integrals(rates, c):
    """Those of the rate of channel c over [-1, 1], by Kronrod's nodes and by Gauss's."""
    fine, coarse = 0.0, 0.0
    for k in range(7):
        rate = positive_part(rates[k, c])
        fine += WEIGHTS[abs(k - 3)] * rate
        coarse += GAUSS[abs(k - 3)] * rate
    return fine, coarse


@internal
def _integrate(process, flow, work, length, tolerance):
    """Add the integrals of all rates over the segment since the last event to `hazards`."""
    x, v, rates, stack = work.x, work.v, work.rates, work.stack
    waiting = 1
    stack[0, 0], stack[0, 1] = 0.0, length
    while waiting > 0:
        waiting -= 1
        low, high = stack[waiting, 0], stack[waiting, 1]
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
        for k in range(9):
            s = low if k == 7 else high if k == 8 else centre + half * (-NODES[3 - k] if k < 3 else NODES[k - 3])
            for j in range(x.shape[0]):
                work.here[j] = flow.position(j, x[j], v[j], s)
                work.there[j] = flow.velocity(j, x[j], v[j], s)
            process.true_rates(work.here, work.there, work.scratch, rates[k])
        # The channel with the largest error; the interval is split where its rate changes sign.
        worst, worst_error, at_end = -1, 0.0, 0
        for c in range(rates.shape[1]):
            fine, coarse = _integrals(rates, c)
            error = half * abs(fine - coarse)
            if error > worst_error:
                worst, worst_error, at_end = c, error, 0
            # The nodes would miss a jump of a rate between the last of them and the end, where an event often follows.
            for end in range(2):
                a, b = positive_part(rates[6 * end, c]), positive_part(rates[7 + end, c])
                error = half * (1.0 - NODES[3]) * max(a, b)
                if (a > 0.0) != (b > 0.0) and error > worst_error:
                    worst, worst_error, at_end = c, error, 2 * end - 1
        if worst_error > tolerance and high - low > SMALLEST * length and waiting + 2 <= DEPTH:
            split = centre + 0.98 * at_end * half
            for k in range(6 if at_end == 0 else 0):
                a, b = rates[k, worst], rates[k + 1, worst]
                if a * b < 0.0:
                    left = centre + half * (-NODES[3 - k] if k < 3 else NODES[k - 3])
                    right = centre + half * (-NODES[2 - k] if k < 2 else NODES[k - 2])
                    root = left + (right - left) * (a / (a - b))
                    if root - low > 0.02 * half and high - root > 0.02 * half:
                        split = root
                    break
            stack[waiting, 0], stack[waiting, 1] = split, high
            stack[waiting + 1, 0], stack[waiting + 1, 1] = low, split
            waiting += 2
            continue
        for c in range(rates.shape[1]):
            fine, coarse = _integrals(rates, c)
            work.hazards[c] += half * fine
            work.error[c] += half * abs(fine - coarse)


@entry
def _collect(process, state, recording, work, rows, strict, tolerance, local, rng):
    """Run the process for at most `CANDIDATES` candidate times and store the integrated rates; returns the status."""
    limits = Limits(LONGEST, NEVER, NEVER, NEVER, rows, strict, False)
    counts, flow = state.counts, process.flow
    for _ in range(CANDIDATES):
        if work.done[0] >= work.gaps.shape[0]:
            return CHUNK
        events, thinned, violated = counts[EVENTS], counts[THINNED], counts[VIOLATIONS]
        status = advance(process, state, recording, limits, 1, local, rng)
        if status != CHUNK:
            return status
        i = state.heap[0]  # the clock of this candidate time: it has not been redrawn yet
        work.thinned[i] += counts[THINNED] - thinned
        work.violated[i] += counts[VIOLATIONS] - violated
        if counts[EVENTS] == events:
            continue
        if HORIZON < state.bounds[i] < CERTAIN:
            work.accepted[i] += 1
        now = state.now[0]
        _integrate(process, flow, work, now - work.since[0], tolerance)
        c = process.channel(state, i)
        n = work.done[0]
        work.gaps[n] = work.hazards[c]
        work.gap_channel[n] = c
        work.clock[c] = i
        work.hazards[c] = 0.0
        work.done[0] = n + 1
        work.since[0] = now
        positions(flow, state, now, work.x)
        velocities(flow, state, now, work.v)
    return CHUNK


@dataclass(frozen=True)
class Clock:
    """Result for one clock, or for one channel of a clock that stands for several."""

    name: str
    n: int  #: number of gaps; a gap is from one of its events to the next
    mean: float  #: mean of the integrated rate over a gap; the truth is 1
    se: float  #: standard error of that mean, 1/√n
    second: float  #: mean square of the integrated rate over a gap; the truth is 2
    p_mean: float  #: two-sided p values: of the mean, of the mean square, and of the Kolmogorov-Smirnov test
    p_second: float
    p_ks: float
    acceptance: float  #: share of the proposals under a bound that became events; NaN where nothing is thinned
    violations: int  #: number of proposals whose rate exceeded its bound
    error: float  #: estimated error of `mean` by quadrature

    @property
    def p(self) -> float:
        """Three times the smallest of the three p values, at most 1."""
        return min(1.0, 3.0 * min(self.p_mean, self.p_second, self.p_ks))

    @property
    def resolution(self) -> float:
        """Relative bias of the rate that gives p < 0.003 with a probability of 95 %: 4.95/√n."""
        return 4.95 / math.sqrt(self.n)


@dataclass(frozen=True)
class ClockCheck:
    """Result of `check_clocks`; prints as a table."""

    process: str
    events: int
    clocks: tuple[Clock, ...]
    skipped: tuple[str, ...]  #: names of clocks that are not Poisson or had fewer than two events

    @property
    def p(self) -> float:
        """Smallest p value of all clocks, times their number."""
        return min(1.0, len(self.clocks) * min(clock.p for clock in self.clocks))

    @property
    def resolution(self) -> float:
        """Largest of the clocks' resolutions: a relative bias that would have been detected in every clock tested."""
        return max(clock.resolution for clock in self.clocks)

    def __str__(self):
        width = max([5, *(len(clock.name) for clock in self.clocks)])
        lines = [
            f"{self.process}: integrated rates over {self.events:,} events, which should be Exp(1)",
            f"{'clock':{width}} {'n':>9} {'mean':>17} {'square':>8} {'p':>8} {'sees':>7} "
            f"{'accepted':>9} {'violated':>9}",
        ]
        for c in self.clocks:
            accepted = "" if math.isnan(c.acceptance) else f"{c.acceptance:.3f}"
            lines.append(
                f"{c.name:{width}} {c.n:9,} {c.mean:8.4f} ± {c.se:6.4f} {c.second:8.4f} {c.p:8.2g} {c.resolution:7.2%} "
                f"{accepted:>9} {c.violations:9,}"
            )
        if self.skipped:
            lines.append(f"not tested: {', '.join(self.skipped)}")
        lines.append(f"p of the whole {self.p:.2g}; a rate off by {self.resolution:.2%} would show in every clock")
        return "\n".join(lines)


def check_clocks(
    process: Process, *, initial: ArrayLike | None = None, events: int = 250_000, seed: int = 0, tolerance: float = 1e-4
) -> ClockCheck:
    """Test that the events of each clock of a process come at the rate that the process states.

    The process is run, and each clock's true rate is integrated along the path from one of its events to the next.
    These integrals should be independent Exp(1) variables: their mean, mean square and distribution are tested. If the
    mean is above 1, the events are too rare.

    With 250,000 events of a clock, an error of 1 % in its rate is detected (p < 0.003) with a probability of 95 %; the
    error that is detected, which is printed, is inversely proportional to the square root of the number of events. The
    integrals are computed by adaptive quadrature, split where a rate changes sign; its estimated error, `Clock.error`,
    is far below that.

    Parameters
    ----------
    process : Process
        One with the compiled method ``true_rates(x, v, scratch, out)``, see the text of `pdmp.validation.clocks`: all
        continuous-time processes of this package with an exact gradient have it.
    initial : array_like, shape (d,), optional
        Where to start; as in `pdmp.sample`.
    events : int, default 250,000
        Number of events, all clocks together.
    seed : int, default 0
        Of the random generator.
    tolerance : float, default 1e-4
        Largest estimated error of one integral over one piece of the path.

    Returns
    -------
    ClockCheck
        Prints as a table; ``.p`` is the p value of all clocks together, ``.clocks`` has the result for each.

    Raises
    ------
    TypeError
        For a process without `true_rates`.
    ValueError
        If `events` is less than 100, or no clock had two events.
    pdmp.SamplingError
        If the process fails during the run.

    See Also
    --------
    pdmp.validation.calibrate : Whether posteriors cover the parameters that data were made with.

    Examples
    --------
    >>> import pdmp
    >>> check = pdmp.validation.check_clocks(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), events=200, seed=1)
    >>> check.p > 0.001, len(check.clocks)
    (True, 1)
    """
    from pdmp.engine.chain import Budget, Chain
    from pdmp.engine.checks import check_initial, check_process, check_seed
    from pdmp.errors import SamplingError

    check_process(process)
    name = type(process).__name__
    if "true_rates" not in process._methods:
        raise TypeError(
            f"{name} does not state the rates of its clocks: give it a compiled method `true_rates(self, x, v, "
            "scratch, out)` that writes the signed rate of each clock at the position x with velocity v into `out`."
        )
    events = count("events", events, least=100)
    positive("tolerance", tolerance)
    x = check_initial(process, initial, 1)[0]
    process = process.resolve(x)
    seed = np.random.SeedSequence(check_seed(seed, None))
    chain = Chain(process, 0, x, seed, budget=Budget(), warmup=0.0, store="moments")
    state, names = chain.state, list(process.channels())
    work = _new_work(process, state, len(names), events)
    options = chain.rows, bool(process.exact_bounds), float(tolerance), chain.local, chain.rng
    with readable(name):
        native = process.native
        status = CHUNK
        while status == CHUNK and work.done[0] < events:
            with process.helper_threads(state):
                status = _collect(native, state, chain.recording, work, *options)
    if status != CHUNK:
        chain._fail(status)
        text, now, position = chain.failure
        set_failure(process, None)
        event = int(work.done[0])
        raise SamplingError(
            f"{text}; at event {event}, time {now:.6g}, position {position}", event=event, time=now, position=position
        )
    return _report(process, work, names)


def _new_work(process, state, channels, events):
    d = len(state.x)
    return zeros(
        Work,
        d,
        x=np.array(state.x),
        v=np.array(state.v),
        rates=np.zeros((9, channels)),
        hazards=np.zeros(channels),
        stack=np.zeros((DEPTH, 2)),
        error=np.zeros(channels),
        gaps=np.zeros(events),
        gap_channel=np.zeros(events, np.int64),
        clock=np.zeros(channels, np.int64),
        thinned=np.zeros(process.clocks, np.int64),
        accepted=np.zeros(process.clocks, np.int64),
        violated=np.zeros(process.clocks, np.int64),
    )


def _report(process, work, names):
    from scipy import stats

    clocks, skipped = [], []
    for c, name in enumerate(names):
        gaps = work.gaps[work.gap_channel == c]
        n = len(gaps)
        if n < 2 or np.isnan(gaps).any():
            skipped.append(name)
            continue
        mean, second = float(gaps.mean()), float((gaps**2).mean())
        i = work.clock[c]
        thinned, accepted, violated = (int(counts[i]) for counts in (work.thinned, work.accepted, work.violated))
        clocks.append(
            Clock(
                name=name,
                n=n,
                mean=mean,
                se=1.0 / math.sqrt(n),
                second=second,
                p_mean=2.0 * stats.norm.sf(math.sqrt(n) * abs(mean - 1.0)),
                p_second=2.0 * stats.norm.sf(math.sqrt(n / 20.0) * abs(second - 2.0)),
                p_ks=float(stats.kstest(gaps, "expon").pvalue),
                acceptance=accepted / thinned if thinned else math.nan,
                violations=violated,
                error=float(work.error[c]) / n,
            )
        )
    if not clocks:
        raise ValueError(f"no Poisson clock of {type(process).__name__} had two events: give more `events`.")
    model = "" if process.model is None else f" on {type(process.model).__name__}"
    return ClockCheck(f"{type(process).__name__}{model}", int(work.done[0]), tuple(clocks), tuple(skipped))
