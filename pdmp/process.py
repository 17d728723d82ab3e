r"""A process: it flows between events, clocks propose them, a rate thins them, a jump carries them out.

Every sampler is one object, a `Process`, described in four words:

========  =============================================================  ==============================================
word      what it says                                                   in code
========  =============================================================  ==============================================
flow      how the state moves while nothing happens                      ``process.flow`` (`pdmp.flow`)
clock     when clock i proposes next, and the bound on its rate there    ``clock(state, i, now, rng) -> (time, bound)``
rate      the true rate of clock i, where it has just proposed           ``rate(state, i, now, rng) -> float``
jump      what happens when clock i's proposal is accepted               ``jump(state, i, now, rng) -> kind of event``
========  =============================================================  ==============================================

A proposal becomes an event with probability rate / bound (Poisson thinning, Lewis & Shedler 1979). Two bounds are
special: `CERTAIN` (the proposal is an event and nothing is thinned: the clock has inverted its rate exactly, or is a
refreshment, or ticks), and `HORIZON` (nothing is proposed before that time; the clock is drawn anew there).

A discretised sampler is the same thing: it stands still, its one clock ticks, and its jump is one update. Its path is
piecewise constant, and the time average of that path is the step-weighted average of the papers.

The one loop that runs all of them is `pdmp.engine.scheduler.advance`. To add a sampler, write one class with these
methods, as in the example of `Process`: a telegraph process, with a constant rate, whose velocity changes sign.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import inspect
import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pdmp.data.memory import check_size
from pdmp.flow import Linear
from pdmp.interfaces.recipe import Recipe
from pdmp.interfaces.report import Report
from pdmp.native.arguments import count
from pdmp.native.classes import Compiled, by_name, compiled, inlined

CERTAIN = np.inf  #: a bound: the proposal is an event, whatever the rate
HORIZON = 0.0  #: a bound: nothing is proposed before this time, at which the clock is drawn anew
#: A rate and its bound are computed differently, with different rounding: only a relative excess above this is a
#: violation.
ROUNDING = 1e-6

#: Indices into `State.counts`. Counted by the loop: candidate times reached, events, proposals, proposals compared with
#: a bound, rates above their bound, horizons. `DATA`: data that the methods of the process evaluated (see
#: `count_data`). `ADAPTING`: 1 during the warm-up, when a process may adapt. From `KINDS` on: the events of each kind.
CANDIDATES, EVENTS, PROPOSALS, THINNED, VIOLATIONS, HORIZONS, DATA, ADAPTING, KINDS = range(9)
MAX_KINDS = 8  #: kinds of event that a process can have

#: Kinds of range in `State.pending`: of clocks, or of places in `Process.order`.
CLOCKS, DEPENDENTS = 0, 1


class State(NamedTuple):
    """Everything that changes while a chain runs: arrays only, so that a checkpoint is a copy of them."""

    x: np.ndarray  #: (d,) positions, each at its time in `moved`
    v: np.ndarray  #: (d,) velocities
    moved: np.ndarray  #: (1,) when all coordinates last changed together; (d,) for a local process, one time each
    now: np.ndarray  #: (1,) time of the last proposal or horizon
    heap: np.ndarray  #: (clocks,) the clocks as a binary heap, the earliest candidate first
    keys: np.ndarray  #: (clocks,) their candidate times, in the order of `heap`
    place: np.ndarray  #: (clocks,) where each clock is in `heap`
    bounds: np.ndarray  #: (clocks,) the bound on the rate of each clock at its candidate time
    pending: np.ndarray  #: (3,) begin, end and kind of a range: the clocks to be redrawn next
    counts: np.ndarray  #: (KINDS + kinds of event,) see `CANDIDATES` and those after it
    excess: np.ndarray  #: (2,) sum and maximum of rate / bound - 1 over violated bounds
    memory: tuple  #: private to the process: a named tuple of arrays


class Prepared(NamedTuple):
    """What is known of a process before it runs; of one that `pdmp.auto` made more than nothing."""

    starts: np.ndarray | None = None  #: (chains, d) where the chains start by default
    choice: str | None = None  #: what was chosen and why
    gradients: int = 0  #: gradients and potentials that were evaluated for it
    cautions: tuple[str, ...] = ()  #: what it warned of, which a summary repeats
    improper: str = ""  #: what was said of a density that cannot be normalised, if it was: no longer run mends that
    #: Modes (`gaussian`, and how many nats its mass is `behind`) between which chains may seldom go, first that in
    #: which they were; none where no other is known.
    modes: tuple[Any, ...] = ()


@inlined
def count_data(counts, n):
    """Count `n` data that a method has evaluated, for the budget ``data_passes``; `counts` is ``state.counts``."""
    counts[DATA] += n


@inlined
def last_moved(moved, j):
    """When coordinate j last changed; `moved` is ``state.moved``, one time for all coordinates or one for each."""
    return moved[0] if moved.shape[0] == 1 else moved[j]


@inlined
def positions(flow, state, now, out):
    """Write all coordinates at time `now` into `out`, without moving them."""
    if state.moved.shape[0] == 1:  # a loop of its own, which is vectorised
        s = now - state.moved[0]
        for j in range(out.shape[0]):
            out[j] = flow.position(j, state.x[j], state.v[j], s)
    else:
        for j in range(out.shape[0]):
            out[j] = flow.position(j, state.x[j], state.v[j], now - state.moved[j])


@inlined
def velocities(flow, state, now, out):
    """Write all velocities at time `now` into `out`; on curved paths they change between events too."""
    for j in range(out.shape[0]):
        out[j] = flow.velocity(j, state.x[j], state.v[j], now - last_moved(state.moved, j))


class Defaults:
    """What the engine asks of a process, and the answers where a class has none; no base, as `Derived` of models."""

    #: The state consists of coupled copies of the target's space; these are their weights in averages. Only processes
    #: that extrapolate have more than one copy.
    copies = (1.0,)
    #: Whether a chain on straight lines may start with all velocities zero, because an event changes them.
    rests = False
    #: Whether walls keep the path from where the density need not be 0.
    walled = False

    @compiled
    def beyond(self, state, now):
        """Whether the target says that the path is outside its support at time `now`: U is +inf there.

        A bound that looks ahead may look there. Elsewhere a gradient that is not finite is a failure.
        """
        return False

    @compiled
    def channel(self, state, i):
        """Index in `channels` of the last event, which was of clock i; for `pdmp.validation.check_clocks`."""
        return i

    # -- called from Python ---------------------------------------------------------------------------------------

    def channels(self) -> Sequence[str]:
        """Names of the entries of `true_rates`: the clocks; several for a clock that stands for several."""
        return self.events if len(self.events) == self.clocks else [f"clock {i}" for i in range(self.clocks)]

    def among_moving(self) -> Process:
        """The process where a coordinate of velocity 0 is frozen: what runs inside `pdmp.Sticky`.

        Its rates and events concern the other coordinates; their velocities have, given those of the frozen ones that
        are remembered, the law that they had.

        Raises
        ------
        TypeError
            For a process of which this is not known, or not with these options.
        """
        raise TypeError(
            "pdmp.Sticky needs a process whose coordinates can be frozen one by one: pdmp.ZigZag(target) without a "
            'metric, pdmp.BPS(target, velocities="gaussian") without a metric, pdmp.Boomerang(target, '
            'metric="diagonal") with the exact gradient, RegressionZigZag, RegressionBPS or '
            f'RegressionBoomerang(model, metric="diagonal"); got a {type(self).__name__} that is not one of these.'
        )

    def adapted(self, statistics: Sequence[dict]) -> Process:
        """A copy with what a run has adapted, frozen; the process itself if nothing adapts.

        Parameters
        ----------
        statistics : list of dict
            What the chains of that run report, see `pdmp.interfaces.Report.statistics`.
        """
        return self

    def changes(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The coordinates that an event of each clock may change, as rows (indptr, indices).

        None where an event may change all of them, or where they are known only at the event: a process that
        redefines `touches` should redefine this too, if it can.
        """
        if not self.local or self._methods["touches"] is not Process._methods["touches"]:
            return None
        return self.scope_start, self.scope

    def describe_bound(self) -> str:
        """Name of the bound on the rate, and of the class that states it, for messages."""
        return f"the bound that {type(self.model if self.model is not None else self).__name__} gives"

    def helper_threads(self, state: State) -> contextlib.AbstractContextManager:
        """A context manager in which the compiled loop runs, for processes that start further threads."""
        return contextlib.nullcontext()

    def held_until(self, state: State, now: float) -> float:
        """When a path ends whose last event is the latest one, and which stops at the time `now`: `now`.

        A fixed-step process may give the last states a time of their own, in which nothing else happens.
        """
        return now

    def waits_for_warmup(self) -> str | None:
        """The option, as it was given, that adapts in the warm-up and does nothing without one; else None."""
        return getattr(getattr(self, "provider", None), "waits_for_warmup", None)

    def smaller_step(self, off: float) -> str | None:
        """What mends draws whose variance is `off` times that of the target, as the step is too large; in words.

        None where no step is too large, or where the law is meant to be another.
        """
        return None

    def aimed_temperature(self) -> float | None:
        """T of the law exp(-U/T) that the process is meant to have; None where T changes during a run."""
        return 1.0

    def tick_length(self) -> float | None:
        """The duration of a step if all steps have the same; else None."""
        return None

    def evaluated_at(self, state: State) -> tuple[np.ndarray, float | None] | None:
        """Where and when a rate was last evaluated, (x, time), for the message of a failure; None: at the event."""
        return None


class Process(Compiled):
    """Base of every sampler; see the module's text for the four words.

    Parameters
    ----------
    dim : int
        Dimension of the state that moves.
    clocks : int, default 1
        Number of clocks.
    dependents : sequence of sequences of int, optional
        ``dependents[i]``: the clocks to redraw after an event of clock i, in this order; every clock when omitted.
        A pair of arrays (indptr, indices) gives the rows in compressed form.
    flow : Compiled, optional
        One of `pdmp.flow`; straight lines when omitted.
    local : bool, default False
        Whether an event of a clock changes only some coordinates; its cost then does not depend on `dim`.
    scope : sequence of sequences of int, optional
        For a local process: ``scope[i]``, the coordinates that an event of clock i may change; coordinate i alone when
        omitted.

    Attributes
    ----------
    events : tuple of str
        Names of the kinds of event, in the order of the numbers that `jump` returns.
    ticks : int
        For a fixed-step process the number of recorded jumps in one step, else 0.

    Raises
    ------
    ValueError
        If `dependents` or `scope` does not have a row for each clock, or names clocks or coordinates that do not exist.
    TypeError
        When a subclass is defined: for a method that is missing, misspelt, not marked ``@compiled``, or of other
        arguments.

    Examples
    --------
    >>> import pdmp
    >>> class Switch(pdmp.Process):
    ...     switch_rate: float
    ...     events = ('switch',)
    ...     def __init__(self, switch_rate):
    ...         super().__init__(dim=1)
    ...         self.switch_rate = switch_rate
    ...     @pdmp.compiled
    ...     def clock(self, state, i, now, rng):
    ...         return now + rng.standard_exponential() / self.switch_rate, pdmp.CERTAIN
    ...     @pdmp.compiled
    ...     def jump(self, state, i, now, rng):
    ...         state.v[0] = -state.v[0]
    ...         return 0
    >>> pdmp.sample(Switch(1.0), initial=[0.0], time=10.0, seed=1).end
    array([10.])
    """

    dim: int
    clocks: int
    flow: Compiled
    order: np.ndarray  #: the dependents of clock i: order[start[i]] … order[start[i + 1] - 1]
    start: np.ndarray
    scope: np.ndarray  #: the coordinates that clock i may change, likewise
    scope_start: np.ndarray

    events = ("event",)
    ticks = 0
    local = False
    #: Whether a rate above its bound is an error (the bound is proved) or only counted (it is an approximation).
    exact_bounds = True
    _required = ("clock", "jump")
    _set_by_base, _kind, _kind_defaults = "start", "process", Defaults
    _renamed = {
        "mass": 'became `metric=`, with the same arrays; "hessian" is "auto" now (of pdmp.ZigZag "dense"), '
        '"adaptive" is "diagonal" and "adaptive dense" is "dense".',
        "preconditioner": "became `metric=`: give metric=pdmp.Metric(covariance=...) for the same P, an array alone "
        "is its inverse; RMSprop and Scheduled are given as they were.",
        "precondition": "became `metric=`: give metric=pdmp.Metric(scales=...) for the same diagonal P, "
        'pdmp.Metric(covariance=P @ P) for a matrix, and "diagonal" for "adapt".',
        "covariance": "became `metric=`: give metric=pdmp.Metric(covariance=...), an array alone is its inverse; "
        '"diagonal" is as it was.',
        "speed": 'became `metric=`: give metric=pdmp.Metric(scales=...); "auto" is as it was.',
        "reference": 'became `metric=`: give metric=pdmp.Metric(scales=...); "dense" and "diagonal" are as they were.',
        "scale": "became `metric=`: give metric=pdmp.Metric(scales=...).",
    }
    #: What compiled methods must return.
    _returned = {
        "clock": "a time and a bound, `return time, bound`",
        "rate": "the rate, a number >= 0",
        "jump": "the kind of event, a place in `events`",
    }

    def __init__(
        self,
        dim: int,
        clocks: int = 1,
        dependents: Sequence[Sequence[int]] | tuple[np.ndarray, np.ndarray] | None = None,
        flow: Compiled | None = None,
        local: bool = False,
        scope: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.dim = count("dim", dim)
        check_size(f"`dim` = {self.dim:,}", 8.0 * self.dim)
        self.clocks = count("clocks", clocks)
        self.flow = Linear() if flow is None else flow
        self.local = bool(local) or scope is not None
        if dependents is None:
            dependents = [range(clocks)] * clocks
        if isinstance(dependents, tuple) and isinstance(dependents[0], np.ndarray):
            indptr, indices = dependents
        else:
            indptr = np.cumsum([0, *map(len, dependents)])
            indices = np.array([j for row in dependents for j in row])
        self.start = np.ascontiguousarray(indptr, np.int64)
        self.order = np.ascontiguousarray(indices, np.int64)
        if self.start.shape != (self.clocks + 1,) or self.start[0] != 0 or self.start[-1] != len(self.order):
            raise ValueError(f"`dependents` must have a row for each of the {self.clocks} clocks.")
        if len(self.order) and not 0 <= self.order.min() <= self.order.max() < self.clocks:
            raise ValueError(f"`dependents` must name clocks 0 … {self.clocks - 1}.")
        if scope is None:
            self.scope, self.scope_start = np.arange(self.dim), np.arange(self.dim + 1)
        else:
            self.scope = np.array([j for row in scope for j in row], np.int64)
            self.scope_start = np.cumsum([0, *map(len, scope)]).astype(np.int64)
            if len(scope) != self.clocks:
                raise ValueError(f"`scope` must have a row for each of the {self.clocks} clocks, got {len(scope)}.")
            if len(self.scope) and not 0 <= self.scope.min() <= self.scope.max() < self.dim:
                raise ValueError(f"`scope` must name coordinates 0 … {self.dim - 1}.")

    def _keeps(self, attribute):
        value = getattr(self, attribute, None)
        if attribute == "dim":
            return isinstance(value, (int, np.integer))
        if attribute == "clocks":  # `dependents` has a row for each
            return isinstance(value, (int, np.integer)) and np.shape(self.start) in ((value + 1,), ())
        if attribute == "flow":
            return isinstance(value, Compiled)
        if attribute == "model":
            return value is None or hasattr(value, "dim")
        if attribute == "report":
            return isinstance(value, Report)
        if attribute == "events":
            return isinstance(value, (tuple, list)) and all(isinstance(name, str) for name in value)
        if attribute == "prepared":
            return isinstance(value, Prepared)
        if attribute == "local":
            return isinstance(value, (bool, np.bool_))
        if attribute in ("order", "start", "scope", "scope_start"):
            whole = isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == 1
            return whole and (attribute != "order" or np.ndim(self.start) != 1 or self.start[-1] <= len(value))
        return True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if len(cls.events) > MAX_KINDS:
            raise TypeError(f"{cls.__name__}.events: at most {MAX_KINDS} kinds, got {len(cls.events)}.")
        arguments = "self, state, i, now, rng"
        check_methods(
            cls,
            Process,
            cls._required,
            {"clock": arguments, "jump": arguments, "true_rates": "self, x, v, scratch, out"},
        )

    @compiled
    def rate(self, state, i, now, rng):
        """The rate of a class that defines none: NaN, which stops the run, if the clock returned a finite bound."""
        return math.nan if state.bounds[i] > HORIZON else 0.0

    @compiled
    def touches(self, state, i):
        """For a local process: the range (begin, end) of k for which an event of clock i may change `coordinate(k)`."""
        return self.scope_start[i], self.scope_start[i + 1]

    @compiled
    def coordinate(self, k):
        """The coordinate at place k of the ranges that `touches` returns."""
        return self.scope[k]

    # -- called from Python ---------------------------------------------------------------------------------------

    #: The model whose law this process samples; None for one without a target.
    model = None
    #: Where a run starts by default, (d,); None: at the model's mode.
    anchor = None
    #: What `pdmp.auto` found out before the run.
    prepared = Prepared()

    #: 1 / variance of the uniform law between walls around the start, where they are furthest apart; 0 without.
    _narrow = 0.0
    #: How a comparison sets up processes of this class.
    recipe = Recipe()
    #: What a run of this process reports besides its counts of events.
    report = Report()

    def resolve(self, x: np.ndarray) -> Process:
        """A copy in which every "auto" option is replaced by its value, for runs that start near `x` (d,)."""
        return copy.copy(self)

    @classmethod
    def in_metric(cls, target: Any, learnt: Any, /, **options: Any) -> Process:
        """A process of this class in a learnt metric; what `pdmp.auto` calls for its argument `sampler`.

        A sampler that takes a metric redefines this, and nothing else is needed.

        Parameters
        ----------
        target : Model or pdmp.gradients.Provider
        learnt : pdmp.automatic.Metric
            The Gaussian N(m, LLᵀ) that fits the target best: ``mean`` m, ``root`` L, ``covariance``, ``variances``, and
            the ``metric`` of `pdmp.metric` with this L.
        **options
            Further arguments of the class, which come before what this method would choose.

        Raises
        ------
        TypeError
            For a class that takes no metric.
        """
        raise TypeError(f"{cls.__name__} takes no metric; those that do are {', '.join(takers_of_metrics())}.")

    def velocity(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Initial velocities (d,), for a chain that starts at `x`."""
        return np.ones(self.dim)

    def memory(self, x: np.ndarray, rng: np.random.Generator) -> tuple:
        """The private memory of one chain: a named tuple of arrays."""
        return (np.zeros(1),)

    def prepare(self, state: State) -> None:
        """At the start of a chain: compute what the memory holds as a function of the velocity."""

    def begin(self, x: np.ndarray, rng: np.random.Generator) -> State:
        """The state of one chain that starts at `x` (d,), time 0; all coupled copies there."""
        x = np.tile(np.array(x, dtype=float), len(self.copies))
        v = np.array(self.velocity(x, rng), dtype=float)
        if x.shape != (self.dim,) or v.shape != (self.dim,):
            name = type(self).__name__
            raise ValueError(f"{name} has dimension {self.dim}, but starts with x of {x.shape} and v of {v.shape}.")
        if not np.all(np.isfinite(v)) or self.flow.kind == "linear" and not (self.rests or np.any(v)):
            raise ValueError(
                f"{type(self).__name__} starts with the velocities {v}: they must be finite, and on straight lines not "
                "all zero, or the process does not move. Return others from `velocity(x, rng)`."
            )
        moved = np.zeros(1)
        if self.local:  # x, v and moved of one coordinate are neighbours in memory, as an event reads all three
            x, v, moved = interleave(x, v, np.zeros(self.dim))
        n = self.clocks
        state = State(
            x=x,
            v=v,
            moved=moved,
            now=np.zeros(1),
            heap=np.arange(n),
            keys=np.full(n, np.inf),
            place=np.arange(n),
            bounds=np.zeros(n),
            pending=np.array([0, n, CLOCKS]),
            counts=np.zeros(KINDS + len(self.events), np.int64),
            excess=np.zeros(2),
            memory=by_name(self.memory(x, rng)),
        )
        self.prepare(state)
        return state


def failure_of(process: Process) -> BaseException | None:
    """The exception that a Python function of the model raised in the chain that this thread advances, or None."""
    return None if process.model is None else process.model.failure


def set_failure(process: Process, error: BaseException | None) -> None:
    """Let `failure_of` the process be `error`; None before a chain goes on."""
    if failure_of(process) is not error:
        process.model.failure = error


def missing_rate(process: Process, bound: float) -> str | None:
    """An error message if `bound`, returned by a clock, needs a `rate` and the class has none; else None."""
    if not HORIZON < bound < CERTAIN or process._methods["rate"] is not Process._methods["rate"]:
        return None
    return (
        f"`clock` of {type(process).__name__} returned the bound {bound:.6g}, but the class has no `rate`: write one, "
        "or return the bound pdmp.CERTAIN for proposals that are events"
    )


def takers_of_metrics() -> list[str]:
    """Names of the public classes that redefine `Process.in_metric`, of all packages that are imported, sorted."""
    found, seen = [Process], set()
    while found:
        cls = found.pop()
        found += cls.__subclasses__()
        package = sys.modules.get(cls.__module__.split(".")[0])  # a class made by `exec` may be of none
        public = getattr(package, cls.__name__, None) is cls
        if public and cls.in_metric.__func__ is not Process.in_metric.__func__:
            seen.add(f"{package.__name__}.{cls.__name__}")
    return sorted(seen)


def interleave(*columns):
    """Copies of equally long vectors as the columns of one array, so that their entries j share a cache line."""
    width = 1 << (len(columns) - 1).bit_length()
    rows = np.zeros((len(columns[0]), width))
    rows[:, : len(columns)] = np.stack(columns, axis=1)
    return tuple(rows[:, k] for k in range(len(columns)))


def recast(process, cls):
    """A copy of the process as one of the class `cls`, which derives from its own and has the same fields."""
    process = copy.copy(process)
    process.__class__ = cls
    return process


def _arguments(function):
    """The names of a method's arguments, as text; by `inspect.signature` they would take a tenth of the import."""
    code = function.__code__
    more = [bool(code.co_flags & flag) for flag in (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)]
    return ", ".join(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + sum(more)])


def check_methods(cls, base, required, known):
    """Raise a `TypeError` for a method of a class that is missing, misspelt, not marked or of other arguments.

    `base` has the methods that may be redefined; compiled ones that are `required`; `known`: others, with their
    arguments.
    """
    what = "process" if base.__name__ == "Process" else "model"
    own = {n: f for n, f in cls.__dict__.items() if inspect.isfunction(f)}
    names = {*base._methods, *known}
    for name in own.keys() & names:
        if name not in cls._methods:
            raise TypeError(f"{cls.__name__}.{name} is a method of a {what} that must be marked @compiled.")
    for name in own.keys() & names:
        found, allowed = _arguments(own[name]), known.get(name) or _arguments(base._methods[name])
        if found.count(",") != allowed.count(","):
            raise TypeError(f"{cls.__name__}.{name} must take the arguments ({allowed}), not ({found}).")
    for name in own.keys() - names:
        if hasattr(base, name) or hasattr(base._kind_defaults, name):
            continue
        close = difflib.get_close_matches(name, [n for n in names if n not in own], n=1, cutoff=0.85)
        if close:
            raise TypeError(f"{cls.__name__}.{name}: is it a misspelling of the {what}'s method `{close[0]}`?")
    for name in required:
        if name not in cls._methods:
            raise TypeError(f"{cls.__name__} is a {what} without the method `{name}`.")
