"""One chain: a process, its state, its random generator and the record of its path, advanced chunk by chunk.

A `Chain` can be stopped after any chunk, pickled, written to a checkpoint, and continued; its path does not depend on
that. `finish` returns a `Record`, the plain arrays of which a `pdmp.Run` is made, and leaves the chain as it is.
"""

from __future__ import annotations

import copy
import math
import pickle
import sys
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypedDict

import numpy as np

from pdmp.engine import scheduler
from pdmp.engine.recording import Grid, Integrals, Skeleton, new_recording, new_skeleton
from pdmp.engine.storage import copied, flatten, leaves, rebuilt
from pdmp.native.classes import by_name, readable
from pdmp.native.threads import each
from pdmp.process import (
    ADAPTING,
    CANDIDATES,
    CLOCKS,
    DATA,
    EVENTS,
    KINDS,
    PROPOSALS,
    failure_of,
    interleave,
    missing_rate,
    set_failure,
)

NEVER = 2**62  #: a number of events that no chain reaches
LOOK = "look"  #: why a chain has stopped that waits for the others, see `pdmp.engine.goals`
GOALS = ("ess", "rhat", "ess, rhat")  #: why a chain has stopped whose run has reached its goal
#: Why a chain has stopped whose path ends at a proposal.
COUNTED = ("events", "proposals", "data_passes", "gradients", LOOK, *GOALS)
CHUNK_SECONDS = 0.1  #: how long the compiled loop runs before it returns to Python
FIRST_CHUNK = 16  #: candidate times in the first chunk; later ones adapt to `CHUNK_SECONDS`
BUFFER_BYTES = 8_000_000  #: size of the skeleton's buffer
SKELETON_BYTES = 2_000_000_000  #: largest skeleton of a run, all chains together
BATCHES = 32  #: smallest number of stretches for batch means
#: Positions that a chain of ``store="moments"`` keeps for the checks after a run, and up to twice as many: at most; at
#: least, or none; and bytes that they may take.
ASIDE, FEWEST_ASIDE, ASIDE_BYTES = 256, 64, 2**23
#: If no data have been counted after so many candidate times, a budget of data passes alone would never be used up, or
#: after `FIRST_CANDIDATES`, and `REPEATED` for each clock, of a chain that has never counted any since it began; and
#: after so many, and `REPEATED` for each clock, that advance by less than `STILL` of the time each, no budget of time.
#: Of clocks of constant rates it is a part in as many as there were candidates: 10¹³ are more than a run makes.
IDLE_CANDIDATES, FIRST_CANDIDATES = 1_000_000, 10_000
REPEATED = 100
STILL = 1e-13
WATCHED = 64  #: after so many candidates, and later 16 to 32 times in a doubling, it is seen what events change
REPLAYED = 2  #: candidates that are replayed at one or two of these in a doubling

_REASONS = {
    scheduler.TIME_UP: "time",
    scheduler.EVENTS_UP: "events",
    scheduler.PROPOSALS_UP: "proposals",
    scheduler.DATA_UP: "data_passes",
}


@dataclass(frozen=True)
class Budget:
    """What one chain may spend: it stops at the first of these limits."""

    time: float = math.inf
    events: int = NEVER
    proposals: int = NEVER
    data: int = NEVER
    seconds: float = math.inf
    step: int = 1  #: number of events in one step of a fixed-step process
    data_name: str = field(default="data_passes", compare=False)  #: what the user called the limit `data`

    def part(self, fraction):
        """The limits times `fraction`; counts are rounded up, events to whole steps."""

        def count(n, unit=1):
            return n if n == NEVER else unit * math.ceil(round(fraction * n / unit, 6))

        return replace(
            self,
            time=fraction * self.time,
            events=count(self.events, self.step),
            proposals=count(self.proposals),
            data=count(self.data),
            seconds=fraction * self.seconds,
        )

    def until(self, look):
        """The same, but at most `look` proposals; of a fixed-step process `look` events, which are its proposals."""
        name = "events" if self.step > 1 else "proposals"
        return replace(self, **{name: min(getattr(self, name), look)})

    def spent(self, chain):
        """The largest fraction of any limit that the chain has used."""
        counts = chain.state.counts
        return max(
            float(chain.state.now[0]) / self.time,
            counts[EVENTS] / self.events,
            counts[PROPOSALS] / self.proposals,
            counts[DATA] / self.data,
            chain.seconds / self.seconds,
        )


class Budgets(TypedDict, total=False):
    """Budgets of each chain, and goals of all chains together, as they are named in a call; see `pdmp.sample`."""

    time: float | None
    events: int | None
    steps: int | None
    proposals: int | None
    data_passes: float | None
    gradients: float | None
    seconds: float | None
    ess: float | None
    rhat: float | None


@dataclass
class Record:
    """The result of one chain: arrays and numbers; times are process times."""

    x: np.ndarray  #: (D,) initial position
    v: np.ndarray  #: (D,) initial velocity
    warmup: float  #: end of the warm-up; inf if it was not reached
    end: float  #: end of the path
    stopped: str  #: the budget that was used up, or "interrupted", "failed"
    seconds: float  #: of computing
    integrals: Integrals
    grid: Grid
    times: np.ndarray  #: (rows,) skeleton, see `recording.Skeleton`
    kinds: np.ndarray
    which: np.ndarray
    xs: np.ndarray
    vs: np.ndarray
    counts: np.ndarray
    excess: np.ndarray
    centre: np.ndarray  #: (D,) centre of an elliptic path; (0,) for other paths
    statistics: dict = field(default_factory=dict)
    accumulated: dict = field(default_factory=dict)  #: arrays that the process integrated itself

    ARRAYS = ("x", "v", "times", "kinds", "which", "xs", "vs", "counts", "excess", "centre")
    NUMBERS = ("warmup", "end", "stopped", "seconds", "statistics")

    @property
    def batches(self):
        """Integrals of x - centre over consecutive stretches of the path, shape (D, n); not with a skeleton."""
        return self.batches_of(slice(None))

    @property
    def has_squares(self):
        """Whether there are those of (x - centre)², which a file of an older version has not."""
        return self.integrals.marks.shape[1] > len(self.x)

    def batches_of(self, places, power=0):
        """Rows `places` of `batches`, or for 1 of those of (x - centre)²; the others are not computed."""
        marks, d = self.integrals.marks[: int(self.integrals.marked[0])], len(self.x)
        return np.diff(marks[:, power * d : (power + 1) * d][:, places], axis=0, prepend=0.0).T

    @property
    def length(self):
        """Length of the path after the warm-up."""
        return max(self.end - self.warmup, 0.0)


def statistics(process, state):
    """Entries of ``run.stats`` besides those of every process, from the final state of one chain."""
    moved = [bank.renewals[0] for bank in _parts(state.memory, "renewals") if bank.due[0] > 0]
    further = {"anchor_renewals": float(sum(moved))} if moved else {}
    return process.report.statistics(process, state) | further


def _parts(memory, field):
    """The named tuples within a chain's memory that have this field."""
    if hasattr(memory, field):
        yield memory
    for part in memory if isinstance(memory, tuple) else ():
        yield from _parts(part, field)


def row_bytes(process, moving):
    """Bytes that one row of the skeleton takes."""
    width = 1 if process.local else process.dim
    return 8 + 1 + 8 * process.local + 8 * width * (1 + moving)


def rows_per_event(process):
    """Average and largest number of rows that one event takes."""
    if not process.local:
        return 1.0, 1
    sizes = np.diff(process.scope_start)
    return max(float(sizes.mean()), 1.0), max(int(sizes.max()), 1)


class Chain:
    """One chain of a run.

    `process` has its "auto" options settled, `x` (d,) is a point of the target, `warmup` a fraction of the budget, and
    `total` the process time at the end, if it is known in advance. The skeleton may take `room` bytes. After `look`
    proposals the chain waits for the others, see `pdmp.engine.goals`. Of a user's process, ``watched(process, state,
    rng, candidates)`` replays the next candidates now and then, and raises a `TypeError` for what goes wrong in them.
    """

    def __init__(
        self,
        process,
        number,
        x,
        seed,
        *,
        budget,
        warmup,
        store,
        draws=0,
        covariance=False,
        total=None,
        room=math.inf,
        look=NEVER,
        watched=None,
    ):
        self.process, self.number = process, number
        self.budget, self.warmup, self.total, self.room = budget, warmup, total, room
        self.rng = np.random.Generator(np.random.PCG64(seed))
        set_failure(process, None)
        self.state = process.begin(x, self.rng)
        if watched is not None:  # no chain writes to arrays that another one has, or that a class keeps
            self.state = self.state._replace(memory=copied(self.state.memory))
        self.start = self.state.x.copy(), self.state.v.copy()
        self.draws = rows_aside(len(self.state.x)) if store == "moments" else draws
        self.moving = process.flow.kind != "constant"
        self.rows = rows_per_event(process)[1]
        self.row_bytes = row_bytes(process, self.moving)
        capacity = 0
        if store == "skeleton":
            capacity = max(BUFFER_BYTES // self.row_bytes, 4 * self.rows, 16)
            capacity = max(min(capacity, (budget.events + 1) * self.rows), 2 * self.rows)
        self.recording = new_recording(
            self.state.x,
            moving=self.moving,
            local=process.local,
            covariance=covariance,
            batches=0 if store == "skeleton" else BATCHES,
            skeleton=capacity,
            grid=0 if store == "skeleton" else self.draws,
        )
        self.capacity = capacity  # rows of the skeleton's buffer
        self.blocks = []  # of the skeleton: tuples (times, kinds, which, xs, vs)
        self.stored = 0  # bytes in them
        self.chunk = FIRST_CHUNK
        self.seconds = 0.0
        self.stopped = None  # why, once it has stopped
        self.look = look
        self.watched = watched
        self.unspent = 0  # candidate times so far, one after the other, for which no data were evaluated
        self.stood = 0  # candidate times so far, one after the other, that were nearly the present one
        self.failure = None  # (what went wrong, time, position)
        self.cause = failure_of(process)  # the exception behind it, or one at the start
        set_failure(process, None)
        self.warming = warmup > 0.0
        self.state.counts[ADAPTING] = int(self.warming)
        if self.warming:
            self.recording.integrals.since[0] = math.inf
        else:
            self._count_from(0.0)

    def __setstate__(self, values):
        self.__dict__.update(values)
        by_name(self.state.memory)
        self._lay_out()

    def _lay_out(self):
        """Put arrays that came one by one where compiled code was compiled for: interleaved, for a local process."""
        if self.process.local:
            state, recording = self.state, self.recording
            x, v, moved = interleave(state.x, state.v, state.moved)
            self.state = state._replace(x=x, v=v, moved=moved)
            self.recording = recording._replace(integrals=_laid_out(recording.integrals, True))

    # -- advancing --------------------------------------------------------------------------------------------------

    def compile(self):
        """Compile the loops for this process without running the chain."""
        limits = scheduler.Limits(-1.0, 0, 0, 0, self.rows, False, False)
        process = self.process
        names = type(process).__name__ + ("" if process.model is None else f" or {type(process.model).__name__}")
        with readable(names), process.helper_threads(self.state):
            scheduler.advance(process.native, self.state, self.recording, limits, 0, self.local, self.rng)
            self._settle(self.recording, -1.0)

    def advance(self, seconds=math.inf, interrupted=None, size=math.inf):
        """Run until the budget is used up, or the event `interrupted` is set.

        It also returns when about `seconds` have passed, or about `size` more bytes of skeleton are stored.
        """
        # Not that of the chain, perhaps of another run, that this thread had before.
        set_failure(self.process, self.cause)
        try:
            self._advance(seconds, interrupted, size)
        finally:
            set_failure(self.process, None)
        return self

    def _advance(self, seconds, interrupted, size):
        native, strict = self.process.native, bool(self.process.exact_bounds)
        begun = before = perf_counter()
        size += self.stored
        while self.stopped is None and not (interrupted is not None and interrupted.is_set()):
            budget = self._limits()
            # Finite, as a clock that will never propose again has the candidate time infinity: not the end of a budget.
            limits = scheduler.Limits(
                min(budget.time, sys.float_info.max),
                budget.events,
                budget.proposals,
                budget.data,
                self.rows,
                strict,
                self.watched is not None,
            )
            now, candidates, data = self.state.now[0], self.state.counts[CANDIDATES], self.state.counts[DATA]
            chunk, kept = self._watch() if self.watched is not None else (self.chunk, None)
            if self.stopped is not None:
                break
            try:
                with self.process.helper_threads(self.state):
                    status = scheduler.advance(native, self.state, self.recording, limits, chunk, self.local, self.rng)
            except KeyboardInterrupt:  # Ctrl-C, where an executor runs segments in the main thread
                raise
            except BaseException as error:  # raised by a method of the user's, or for want of memory
                self.fail(error)
                break
            after = perf_counter()
            took, before = after - before, after
            self.seconds += took
            if status == scheduler.CHUNK:
                if chunk == self.chunk:
                    self._adapt_chunk(took, budget.seconds - self.seconds)
            elif status == scheduler.FULL:
                self._store()
            elif status == scheduler.TIME_UP and (ended := self.process.report.ended(self.process, self.state)):
                self.stopped = ended
            elif status in _REASONS and not (status == scheduler.TIME_UP and math.isinf(budget.time)):
                self._reach(_REASONS[status])
            else:
                self._fail(status)
            if self.stopped != "failed" and failure_of(self.process) is not None:  # in the last numbers of the path
                self._fail(scheduler.NOT_FINITE)
            candidates, advanced = int(self.state.counts[CANDIDATES] - candidates), self.state.now[0] - now
            self.stood = self.stood + candidates if advanced <= STILL * candidates * now else 0
            self._check_standing()
            self.unspent = self.unspent + candidates if self.state.counts[DATA] == data else 0
            if kept is not None:
                self._check_scope(*kept)
            self._check_hopeless(budget)
            if self.stopped is None and self.seconds >= budget.seconds:
                self._reach("seconds")
            if after - begun >= seconds or self.stored >= size:
                break

    def extend(self, budget, look=NEVER):
        """Replace the budget by a larger one, counted from the start; `advance` then continues."""
        self.budget, self.total, self.look = budget, None, look
        self.recording = self.recording._replace(grid=copied(self.recording.grid))  # a record may have it, see `finish`
        if self.failure is None:
            self.stopped = None

    def _limits(self):
        """What the chain may spend before the warm-up ends, or before it stops or waits."""
        budget = self.budget.until(self.look)
        return budget.part(self.warmup) if self.warming else budget

    def _adapt_chunk(self, took, left):
        target = min(CHUNK_SECONDS, max(left, 1e-3))
        self.chunk = max(1, min(int(self.chunk * min(8.0, target / max(took, 1e-9))), 2**40))

    def _time(self, reason):
        """Process time at which a path that stops for this reason ends."""
        if reason == "time":
            return self._limits().time
        if reason in COUNTED:
            return self.process.held_until(self.state, float(self.state.now[0]))
        last = float(self.state.moved.max())  # the last event: a budget of that many events repeats the run
        return last if reason == "failed" else self.process.held_until(self.state, last)

    def _reach(self, reason):
        """End the warm-up, or the run, because this budget is used up."""
        if not self.warming:
            if reason == "data_passes":
                reason = self.budget.data_name
            count = {"events": EVENTS, "proposals": PROPOSALS}.get(reason)
            early = count is not None and self.state.counts[count] < getattr(self.budget, reason)
            self.stopped = LOOK if early else reason
            return
        now = self._time(reason)
        self.warming = False
        self.state.counts[ADAPTING] = 0
        self.recording.integrals.centre[:] = self.position(now)
        self._count_from(now)

    def _count_from(self, now):
        """Start the integrals and the grid at the time `now`."""
        integrals, grid = self.recording.integrals, self.recording.grid
        integrals.since[0] = now
        self.process.report.count_from(self.process, self.state, now)
        if self.total is not None and self.total > now:  # else both are found by doubling
            if len(integrals.marks):
                integrals.stretch[0] = (self.total - now) / len(integrals.marks)
            if len(grid.rows):
                grid.spacing[0] = (self.total - now) / self.draws

    def _store(self):
        """Copy the rows of the skeleton's buffer to `blocks`, and empty it."""
        skeleton = self.recording.skeleton
        used = int(skeleton.used[0])
        if used == 0:
            return
        self.blocks.append(tuple(part[:used].copy() for part in skeleton[:-1]))
        self.stored += used * self.row_bytes
        skeleton.used[0] = 0
        if self.stored > self.room:
            self._stop(
                f"its skeleton has grown to {self.stored / 1e9:.3g} GB; "
                'give `store="grid"` with `draws=`, or `store="moments"`, or a smaller budget'
            )

    # -- failures ---------------------------------------------------------------------------------------------------

    def _stop(self, text, at=None):
        """Stop for a failure; `at`: the time and the position of it, by default those of the state."""
        now, x = (self.state.now[0], self.state.x.copy()) if at is None else at
        self.stopped, self.failure = "failed", (text, float(now), x)

    def position(self, now):
        """All coordinates at the time `now`, not before the last event: an array of shape (D,)."""
        state, flow = self.state, self.process.flow
        moved = np.broadcast_to(state.moved, state.x.shape)
        return np.array([flow.position(j, state.x[j], state.v[j], now - moved[j]) for j in range(len(moved))])

    def fail(self, error):
        """Stop for an exception, as of the loop, which left its counts where they were when it was called last."""
        self.state.counts[EVENTS] = self.state.counts[KINDS:].sum()
        self._stop(f"{type(error).__name__} in a step of {type(self.process).__name__}: {error}")
        self.cause = error

    def _fail(self, status):
        state, process = self.state, self.process
        now = float(state.now[0])
        proposed = float(state.keys[0])
        who = type(process.model if process.model is not None else process).__name__
        if status == scheduler.NOT_FINITE:
            single = state.pending[2] == CLOCKS and state.pending[1] == state.pending[0] + 1
            if single and state.pending[0] == state.heap[0] and math.isfinite(proposed):
                now = proposed  # the rate of this proposal failed; else a clock or a jump did, at the last proposal
            text = missing_rate(process, float(state.bounds[state.heap[0]]))
            text = text or process.report.lost(process, state) or f"the gradient or the rate of {who} is not finite"
            if process.ticks:
                step = int(state.counts[EVENTS]) // process.ticks + 1
                text = (
                    f"{type(process).__name__} diverged at step {step}: the gradient of {who} or the state after the "
                    "step is not finite, or too large; a smaller step may help"
                )
        elif status == scheduler.VIOLATED:
            now = proposed
            text = (
                f"the rate of {type(process).__name__} exceeded {process.describe_bound()} by a factor "
                f"{1.0 + state.excess[1]:.6g}; the samples would not be those of the target: check that bound"
            )
        elif status == scheduler.BAD_BOUND:
            text = (
                f"{process.describe_bound()} is negative or not finite, so that {type(process).__name__} cannot thin "
                "its clock: check that bound"
            )
        elif status == scheduler.UNKNOWN_KIND:
            text = f"`jump` of {type(process).__name__} returned a kind of event that is not a place in its `events`"
        elif status == scheduler.TIME_UP:
            text = f"no clock of {type(process).__name__} will ever propose an event again; give a budget of `time`"
        else:
            text = f"a clock of {type(process).__name__} gave a time in the past"
        cause = self.cause = failure_of(process)
        if cause is not None:
            text += f" ({type(cause).__name__}: {cause})"
        with np.errstate(all="ignore"):
            x = self.position(now)
        last = process.evaluated_at(state) if status == scheduler.NOT_FINITE else None
        if last is not None:
            x, at = last[0].copy(), last[1]
            now = now if at is None else at
        self._stop(text, (now, x))

    def _watch(self):
        """Candidates of the next chunk; at some of their numbers few, and copies of the path and the time before."""
        state, done = self.state, int(self.state.counts[CANDIDATES])
        step = max(WATCHED, 1 << max(done.bit_length() - 5, 0))
        if done % step:
            return min(self.chunk, step - done % step), None
        if done and done % (16 * step) == 0:
            try:
                self.watched(self.process, state, self.rng, REPLAYED)
            except TypeError as error:
                self._stop(str(error).rstrip("."), (state.now[0], self.position(state.now[0])))
        if len(state.moved) == 1:
            return min(self.chunk, step), None
        kept = state.x.copy(), state.v.copy(), state.moved.copy(), float(state.now[0])
        return max(1, min(len(state.x) // 4, FIRST_CHUNK)), kept

    def _check_scope(self, x, v, moved, then):
        """Coordinates that no event has touched since then must be what they were."""
        state = self.state
        different = [(a != b) & ~(np.isnan(a) & np.isnan(b)) for a, b in ((state.x, x), (state.v, v))]
        wrong = (state.moved == moved) & (moved < then) & (different[0] | different[1])
        if self.stopped != "failed" and wrong.any():
            text = (
                f"`jump` of {type(self.process).__name__} changed coordinate {np.argmax(wrong)} outside the row of "
                "`scope` of its clock, or a clock or a rate changed it, so that its path is broken: name all that an "
                "event may change, and change nothing elsewhere"
            )
            self._stop(text, (state.now[0], self.position(state.now[0])))

    def _check_standing(self):
        if self.stopped is not None or self.stood < IDLE_CANDIDATES + REPEATED * len(self.state.heap):
            return
        now = float(self.state.now[0])
        text = (
            f"clock {self.state.heap[0]} of {type(self.process).__name__} does not advance: {self.stood:,} candidate "
            f"times one after the other were {now:.6g}, or nearly; `clock` must return `now` plus a waiting time, not "
            "0 for ever, nor ever less"
        )
        self._stop(text, (now, self.position(now)))

    def _check_hopeless(self, budget):
        never = self.unspent == self.state.counts[CANDIDATES]  # since the chain began
        most = FIRST_CANDIDATES + REPEATED * len(self.state.heap) if never else IDLE_CANDIDATES
        if self.stopped is not None or budget.data == NEVER or self.unspent < min(most, IDLE_CANDIDATES):
            return
        if replace(self.budget, data=NEVER, step=1) == Budget():
            self._stop(
                f"{type(self.process).__name__} evaluates no data at {self.unspent:,} candidate times one after the "
                f"other; give another budget than `{budget.data_name}`"
            )

    # -- results ----------------------------------------------------------------------------------------------------

    def _settle(self, recording, now):
        state = self.state
        scheduler.settle(self.process.flow.native, state.x, state.v, state.moved, recording, now, self.local)

    def finish(self, spent: Record | None = None, *, last: bool = False):
        """The `Record` of the path so far; the chain is unchanged and can continue.

        `last`: after `extend` only. Till then the record has the chain's own rows, which in many dimensions are most of
        its memory. `spent`: an earlier record of this chain, which is written over.
        """
        self.join()
        end = self._time(self.stopped)
        grid, (moments, rows) = self.recording.grid, (None, None) if spent is None else (spent.integrals, spent.grid)
        recording = self.recording._replace(
            integrals=_laid_out(copied(self.recording.integrals, moments), self.process.local),
            # What spacing it finds may hang on its end.
            grid=grid if last and grid.spacing[0] > 0.0 else copied(grid, rows),
        )
        with np.errstate(all="ignore"):
            self._settle(recording, end)
        report, since = self.process.report, float(recording.integrals.since[0])
        return Record(
            x=self.start[0],
            v=self.start[1],
            warmup=since,
            end=end,
            stopped=self.stopped or "interrupted",
            seconds=self.seconds,
            integrals=recording.integrals,
            grid=recording.grid,
            **dict(zip(Skeleton._fields[:-1], self.blocks[0], strict=True)),
            counts=self.state.counts.copy(),
            excess=self.state.excess.copy(),
            centre=np.copy(getattr(self.process.flow, "mean", np.zeros(0))),
            statistics={k: float(s) for k, s in statistics(self.process, self.state).items()},
            accumulated=report.accumulated(self.process, self.state, since, end) if end > since else {},
        )

    def is_at(self, record):
        """Whether the chain still is where a record of it ends, and was not continued."""
        return np.array_equal(self.state.counts, record.counts) and self._time(self.stopped) == record.end

    def join(self):
        """Put the blocks that the chain has stored together to one."""
        self._store()
        if not self.blocks:
            self.blocks = [tuple(part[:0].copy() for part in self.recording.skeleton[:-1])]
        elif len(self.blocks) > 1:
            self.blocks = [tuple(np.concatenate(parts) for parts in zip(*self.blocks, strict=True))]

    # -- other Python processes ---------------------------------------------------------------------------------------

    SHARED = ("process", "state", "recording", "blocks")  #: what `carried` does not take as it is

    @property
    def local(self):
        """True where coordinates move one by one, else None, as `scheduler.advance` takes it."""
        return True if len(self.state.moved) > 1 else None

    @property
    def first(self):
        """The point of the target where the chain started, (d,)."""
        return self.start[0][: len(self.start[0]) if self.process.model is None else self.process.model.dim]

    def template(self):
        """The chain without what it has recorded; `continued` makes any chain of the same run of it, elsewhere."""
        light = copy.copy(self)
        light.blocks, light.recording = [], self.recording._replace(skeleton=self._buffer(0))
        return light

    def continued(self, values, arrays):
        """A chain with the process of this one that goes on from what another one carried."""
        chain = copy.copy(self)
        chain.blocks, chain.recording = [], self.recording._replace(skeleton=self._buffer(self.capacity))
        chain.take(values, arrays)
        return chain

    def carried(self):
        """What changes in a chain: its numbers and generator, and the arrays of its state, integrals and grid."""
        self._store()
        if self.cause is not None:
            try:
                pickle.loads(pickle.dumps(self.cause))
            except Exception:  # noqa: BLE001 - an exception may hold anything
                self.cause = RuntimeError(f"{type(self.cause).__name__}: {self.cause}")
        values = {name: value for name, value in self.__dict__.items() if name not in self.SHARED}
        return values, leaves((self.state, self.recording.integrals, self.recording.grid))

    def take(self, values, arrays):
        """Go on from what another chain of the same run carried; the blocks stay as they are."""
        self.__dict__.update(values)
        trees = self.state, self.recording.integrals, self.recording.grid
        self.state, integrals, grid = rebuilt(trees, iter(arrays))
        self.recording = self.recording._replace(integrals=integrals, grid=grid)
        self._lay_out()

    def _buffer(self, rows):
        return new_skeleton(rows, len(self.state.x), moving=self.moving, local=self.process.local)

    # -- checkpoints ------------------------------------------------------------------------------------------------

    NUMBERS = ("seconds", "stopped", "warming", "stored", "look")

    def snapshot(self):
        """Copies of what changes: a header of plain values, nested tuples of arrays, and the skeleton's blocks."""
        self._store()
        header = {name: getattr(self, name) for name in self.NUMBERS} | {"rng": self.rng.bit_generator.state}
        integrals, grid = copied(self.recording.integrals), copied(self.recording.grid)
        return header, (copied(self.state), integrals, grid), list(self.blocks)

    @staticmethod
    def pack(snapshot, prefix):
        """A snapshot as a header and a dict of arrays."""
        header, trees, blocks = snapshot
        arrays = flatten(trees, prefix)
        if blocks:
            for k, parts in enumerate(zip(*blocks, strict=True)):
                arrays[f"{prefix}/block/{k}"] = np.concatenate(parts)
        return header, arrays

    def restore(self, header, arrays, prefix):
        """Set a new chain, of the same call of `sample`, to a snapshot that `pack` made."""
        for name in self.NUMBERS:
            setattr(self, name, header.get(name, getattr(self, name)))  # `look` is not in files of older versions
        self.rng.bit_generator.state = header["rng"]
        trees = self.state, self.recording.integrals, self.recording.grid
        for name, array in flatten(trees, prefix).items():
            np.copyto(array, arrays[name])
        self.blocks = []
        if f"{prefix}/block/0" in arrays:
            self.blocks = [tuple(arrays[f"{prefix}/block/{k}"] for k in range(5))]


def rows_aside(dim):
    """Rows of the grid that a chain of ``store="moments"`` keeps for the checks after a run, 0 if they are large."""
    rows = min(ASIDE, ASIDE_BYTES // (16 * max(dim, 1)))
    return rows if rows >= FEWEST_ASIDE else 0


def finished(chains, spent=None, last=False):
    """The records of chains, on threads; in the memory of earlier ones, `spent`."""
    pairs = zip(chains, spent or [None] * len(chains), strict=True)
    return list(each(lambda chain, record: chain.finish(record, last=last), pairs))


def _laid_out(integrals, local):
    """Integrals in the memory layout of `recording.new_recording`, which compiled code was compiled for."""
    if not local:
        return integrals
    centre, first, second = interleave(integrals.centre, integrals.first, integrals.second)
    return integrals._replace(centre=centre, first=first, second=second)
