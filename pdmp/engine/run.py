"""Running a process: budgets, chains, warm-up, executors, checkpoints."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import os
import sys
import threading
import types
from concurrent.futures import Executor
from time import perf_counter
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.averages import looked_at
from pdmp.diagnostics.mode_shares import share_doubts
from pdmp.diagnostics.summary import anchor_warning, copies_warning, short_warning, step_warning, tail_warning
from pdmp.engine import checkpoint as checkpoints
from pdmp.engine import storage
from pdmp.engine.chain import GOALS, LOOK, NEVER, SKELETON_BYTES, Budget, Budgets, Chain, finished
from pdmp.engine.checkpoint import (
    BUDGETS,
    Checkpoint,
    absolute,
    digest,
    model_values,
    read_checkpoint,
    same_values,
)
from pdmp.engine.checks import (
    STORES,
    check_budget,
    check_covariance,
    check_goal,
    check_initial,
    check_memory,
    check_number,
    check_process,
    check_seed,
    check_skeleton,
    describe,
    known_length,
    target_dim,
)
from pdmp.engine.executors import check_executor, deferred, place_of
from pdmp.engine.goals import Goal
from pdmp.engine.preflight import (
    contents,
    improper,
    rehearse,
    suspected,
    watch_of,
    written_to,
)
from pdmp.engine.result import Run, read_run
from pdmp.engine.visited import gradient_warning, jump_warning, large_step_warning, law_warning
from pdmp.errors import SamplingError, are_short, filters_kept, silenced, warn
from pdmp.models.base import Model
from pdmp.native.arguments import count, one_of
from pdmp.native.explanations import explained
from pdmp.native.fingerprints import UNIQUE
from pdmp.native.messages import announcing
from pdmp.process import DATA, EVENTS, PROPOSALS, Process

GRID_DRAWS = 1_000  #: positions that `store="grid"` keeps of each chain
POLL_SECONDS = 0.1  #: how often the main thread checks on its chains
#: How long sampling takes is said once so large a part of it is done, if more seconds than this are left.
TOLD_AFTER, WORTH_TELLING = 0.02, 20.0


class Settings(NamedTuple):
    """The arguments of `pdmp.sample` that can be checked before there is a process."""

    given: dict[str, Any]  #: budgets and goals, as they were named
    budget: Budget
    goals: dict[str, float]
    warmup: float
    chains: int
    seed: int
    store: str
    draws: int | None  #: of a grid
    covariance: bool | None
    progress: bool  #: whether there is a bar
    checkpoint: Any  #: the path
    saved: Any  #: what the checkpoint holds
    executor: Any


def check_settings(
    of: Process | Model,
    given: Budgets,
    warmup: float,
    chains: int | None,
    seed: Any,
    store: str,
    draws: int | None,
    covariance: bool | None,
    progress: bool | None,
    checkpoint: str | os.PathLike | None,
    executor: Any,
) -> Settings:
    """The arguments of `pdmp.sample`, as numbers; or an error naming the one that a process or a model cannot have."""
    named = {name: given.get(name) for name in BUDGETS}
    if chains is None:
        starts = of.prepared.starts if isinstance(of, Process) else range(4)
        chains = 1 if starts is None else len(starts)
    chains = count("chains", chains)
    goals = check_goal(chains, named["ess"], named["rhat"])
    budget = check_budget(of, **{name: value for name, value in named.items() if name not in GOALS}, goals=goals)
    warmup = check_number("warmup", warmup)
    if not 0.0 <= warmup < 1.0:
        raise ValueError(f"`warmup` must be a fraction in [0, 1), got {warmup}.")
    one_of("store", store, STORES)
    if store == "grid":
        draws = count("draws", GRID_DRAWS if draws is None else draws)
    elif draws is not None:
        raise ValueError(f'`draws` is for `store="grid"`; the store is {store!r}.')
    check_memory(of, chains, draws, covariance)
    executor, shown, saved = check_executor(executor), wants_bar(progress), read_checkpoint(checkpoint)
    seed = check_seed(seed, saved)
    return Settings(
        named, budget, goals, warmup, chains, seed, store, draws, covariance, shown, checkpoint, saved, executor
    )


def run_process(process: Process, initial: ArrayLike | None, settings: Settings, started: float) -> Run:
    """Run a process; `started` is when the call began, by `time.perf_counter`."""
    given, budget, goals, warmup, chains, seed, store, draws, covariance, *_ = settings
    checkpoint, saved = settings.checkpoint, settings.saved
    starts = check_initial(process, initial, chains)
    said_improper = process.prepared.improper or improper(process.model, process)
    asked = suspected(process.model, process)
    process = process.resolve(starts[0])
    if warmup == 0.0 and (option := process.waits_for_warmup()) is not None:
        warn(f"`warmup` is 0: {option} adapts in the warm-up only, and stays as it starts; give warmup=0.2, say.")
    covariance = check_covariance(process, covariance, store)
    total = None if goals else known_length(process, budget)
    if store == "skeleton":
        check_skeleton(process, budget, chains, total)
    goal = None
    if goals:
        goal = Goal(process, warmup, **goals)
        budget = goal.limit(process, budget, chains, store)

    made = [
        Chain(
            process,
            i,
            starts[i],
            child,
            budget=budget,
            warmup=warmup,
            store=store,
            draws=draws or 0,
            covariance=covariance,
            total=total,
            room=SKELETON_BYTES / chains,
            look=NEVER if goal is None else goal.first,
            watched=watch_of(process),
        )
        for i, child in enumerate(np.random.SeedSequence(seed).spawn(chains))
    ]
    rehearse(process, made[0])
    fields = contents(process)
    info = describe(process) | {
        "store": store,
        "seed": seed,
        "budget": {name: value for name, value in given.items() if value is not None},
        "arguments": {"warmup": warmup, "draws": draws, "covariance": covariance},
    }
    info["cautions"] += [text for text in asked if text not in info["cautions"]]
    if said_improper:
        info["improper"] = said_improper
    run = _run_chains(made, info, starts, settings.executor, settings.progress, checkpoint, saved, started, goal)
    found = written_to(process, fields)  # later than in the rehearsal
    if found is not None:
        warn(found)
    return run


def _run_chains(chains, info, starts, executor, progress, checkpoint, saved, started, goal):
    """Run chains from where they are or, by what is `saved` in the file `checkpoint`, were when it was written."""
    file = None
    if checkpoint is not None:
        given = dict.fromkeys(BUDGETS) | {name: float(value) for name, value in info["budget"].items()}
        call = given | {"seed": str(info["seed"]), "chains": len(starts), "store": info["store"]} | info["arguments"]
        file = Checkpoint(checkpoint, call | {"initial": digest(starts)}, info["seed"], chains[0].process, starts[0])
    try:
        if file is not None and saved is not None:
            file.resume(chains, *saved)
            if goal is not None:
                goal.resume(chains)
            else:
                for chain in chains:  # the file may be of a run with a goal
                    chain.look = NEVER
                    if chain.stopped == LOOK:
                        chain.stopped = None
        return _drive(chains, info, executor, progress, file, started, goal)
    finally:
        if file is not None:
            file.release()


def _chains_of(run, process, budget):
    """The chains of a run in their last state; those of a loaded run are made anew for `process`."""
    if run._chains is not None:
        if process is not None:
            raise ValueError("`process` is for a loaded run; this one has its own.")
        for was, now in zip(run._known, _known(run._chains[0].process), strict=True):
            if was != now:
                changed = "the function of the model is another one than in the run: what it names"
                if isinstance(now, list):
                    changed = next(b[0] for a, b in zip(was, now, strict=True) if a != b)
                raise ValueError(
                    f"{changed} has changed, and two posteriors would be averaged. Start a new run, or put back what "
                    "it was."
                )
        return run._chains
    if run._states is None:
        raise ValueError("this run cannot be continued: its file holds no chains.")
    check_process(process)
    states, arrays = run._states
    starts = [record.x[: run.dim] for record in run.records]
    another = ValueError("`process` is not that of the run: its class, options, model or data differ.")
    if target_dim(process) != run.dim:
        raise another
    process = process.resolve(starts[0])
    identity = digest(process)
    if identity.startswith(UNIQUE):
        raise ValueError("`process` holds an object that cannot be told from others: it may not be that of the run.")
    values = model_values(process.model, starts[0])
    if identity != states["process"] or not same_values(process.model, values, states["values"]):
        raise another
    made = []
    for i, child in enumerate(np.random.SeedSequence(run.seed).spawn(run.chains)):
        options = run.info["arguments"] | {"store": run.store, "draws": run.info["arguments"]["draws"] or 0}
        options["watched"] = watch_of(process)
        chain = Chain(process, i, starts[i], child, budget=budget, **options, room=SKELETON_BYTES / run.chains)
        chain.restore(states["chains"][i], arrays, f"state/{i}")
        record = run.records[i]
        chain.blocks = [(record.times, record.kinds, record.which, record.xs, record.vs)]
        if chain.stopped == "failed":
            raise ValueError("a run that failed cannot be continued.")
        made.append(chain)
    return made


def _known(process):
    """By what it is told whether a process is still that of a run."""
    own = hasattr(process.model, "callback")  # a Python function, which may name what changes
    return process.model.identity() if own else None, contents(process, of_ours=True)


def extend(
    run: Run,
    process: Process | None = None,
    *,
    executor: Executor | Any | None = None,
    progress: bool | None = False,
    checkpoint: str | os.PathLike | None = None,
    **budget: Unpack[Budgets],
) -> Run:
    """Continue a run to a larger budget, see `Run.extend`; the arrays of `run` stay valid."""
    started, checkpoint = perf_counter(), absolute(checkpoint)
    executor, progress = check_executor(executor), wants_bar(progress)
    if run._chains is None and process is None:
        raise ValueError("a loaded run cannot be continued without its process: give it, run.extend(process, ...).")
    if not isinstance(process, (Process, types.NoneType)):
        raise TypeError(
            f"`process` must be the process of the run, got a {type(process).__name__}; of a model that was given to "
            "pdmp.sample it is pdmp.auto(model, seed=...) with the same seed."
        )
    given = dict(budget)
    for name in given:
        if name not in BUDGETS:
            raise TypeError(f"`{name}` is no budget; there are {', '.join(BUDGETS)}.")
    info = run.info | {"budget": given}
    goals = check_goal(run.chains, *(budget.pop(name, None) for name in ("ess", "rhat")))
    budget = check_budget(run.process if process is None else process, **budget, goals=goals)
    # Those that had not come to their turn when the run was interrupted go on with the others.
    chains = sorted([*_chains_of(run, process, budget), *getattr(run, "_waiting", ())], key=lambda chain: chain.number)
    with _alone(chains):
        return _continued(run, chains, budget, goals, info, executor, progress, checkpoint, started)


@contextlib.contextmanager
def _alone(chains):
    """A context in which chains are continued; a `ValueError` where another call, in another thread, continues them."""
    own = set(map(id, chains))
    with _lock:
        if own & _continuing:
            raise ValueError("the run is being continued by another call: wait for it, or start a run for each.")
        _continuing.update(own)
    try:
        yield
    finally:
        _continuing.difference_update(own)


_continuing: set[int] = set()  # chains by id
_lock = threading.Lock()


def _continued(run, chains, budget, goals, info, executor, progress, checkpoint, started):
    """The run of chains up to a larger budget."""
    goal, given = None, info["budget"]
    for chain in chains:
        counts, now = chain.state.counts, float(chain.state.now[0])
        if now > budget.time or any(
            counts[k] > limit
            for k, limit in ((EVENTS, budget.events), (PROPOSALS, budget.proposals), (DATA, budget.data))
        ):
            names = ", ".join(f"`{name}`" for name in given)
            raise ValueError(
                f"{names}: the budget is smaller than what the run has already spent: budgets count in total."
            )
    look = NEVER
    if goals:
        goal = Goal(chains[0].process, chains[0].warmup, **goals)
        budget, look = goal.limit(chains[0].process, budget, len(chains), run.store), goal.begin(chains)
    for chain in chains:
        chain.extend(budget, look)
    starts = np.array([chain.start[0][: run.dim] for chain in chains])
    saved = read_checkpoint(checkpoint)
    return _run_chains(chains, info, starts, executor, progress, checkpoint, saved, started, goal)


@explained
def load(path: str | os.PathLike) -> Run:
    """The `Run` that ``run.save(path)`` wrote, with all its numbers; its ``process`` is only a description.

    Parameters
    ----------
    path : path
        A file that `Run.save` wrote.

    Returns
    -------
    Run

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is damaged, or not a saved run.

    See Also
    --------
    pdmp.Run : What is returned, and its method ``save``.

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), events=100, seed=1)
    >>> run.save('run.npz')
    >>> bool((pdmp.load('run.npz').mean() == run.mean()).all())
    True
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"`path` must be the name of a file, got {path!r}.")
    header, arrays = storage.read(path, "run")
    with storage.refusing_damage(path):
        return read_run(header, arrays, extend)


# ---------------------------------------------------------------------------------------------------------------
# Running the chains


def _drive(chains, info, executor, progress, file, started, goal):
    """Run the chains to the end of their budgets, or until one fails or the user interrupts."""
    stop = threading.Event()
    futures, broken, compiling = {}, None, False
    with contextlib.ExitStack() as stack:
        stack.enter_context(filters_kept())
        bar = stack.enter_context(Progress(progress, chains, goal))
        if info.get("choice") is not None:
            bar.write(info["choice"])
        if file is not None:
            stack.enter_context(file.signals(stop))
        place = stack.enter_context(place_of(executor, chains, stop))
        length = place.segment if file is None else min(place.segment, checkpoints.CHECKPOINT_SECONDS)

        def submit(waiting):
            """Submit the chains in `waiting`; returns those that have to wait for longer."""
            left = []
            for i in waiting:
                future = place.submit(chains[i], length)
                if future is None:
                    left.append(i)
                else:
                    futures[future] = i
            return left

        def collect(future):
            i = futures.pop(future)
            place.collect(chains[i], future)
            if file is not None and chains[i].failure is None:
                file.keep(i, chains[i])
            return i

        try:
            if place.here and any(c.stopped is None for c in chains):
                compiling = True
                with announcing(bar.say if bar.shown else None):
                    chains[0].compile()
                compiling = False
            bar.say("sampling")
            going = True
            while going:
                waiting = submit(i for i, chain in enumerate(chains) if chain.stopped is None)
                while futures:
                    done, _ = concurrent.futures.wait(
                        futures, timeout=POLL_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
                    )
                    place.watch()
                    for future in done:
                        i = collect(future)
                        if chains[i].failure is not None:
                            stop.set()
                        if chains[i].stopped is None:
                            waiting.append(i)
                    waiting = [] if stop.is_set() else submit(waiting)
                    if file is not None:
                        file.write_if_due()
                    bar.update(chains)
                going = goal is not None and goal.go_on(chains, info)
                bar.update(chains)
        except KeyboardInterrupt as error:
            broken = error if compiling else None  # else the chains that have not stopped are marked as interrupted
        except BaseException as error:  # noqa: BLE001 - raised below, after the other chains have stopped
            broken = error
        finally:
            stop.set()
            for future in list(futures):
                with contextlib.suppress(Exception):  # of an executor that is gone
                    if future.cancel():
                        futures.pop(future)
            for future in list(futures):
                # A failure here follows from an earlier one, which is already being reported.
                with contextlib.suppress(Exception if place.here else BaseException):
                    collect(future)
    if compiling:  # nothing has run
        raise broken
    try:
        for i, chain in enumerate(chains):
            if chain.stopped == LOOK:  # interrupted there
                chain.stopped = None
            elif file is not None and chain.stopped in GOALS:
                file.keep(i, chain)
        if file is not None:
            file.write(last=True)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised with what was sampled
        broken = broken or error
    if broken is not None and not isinstance(broken, Exception):  # that the program ends, not that a run fails
        raise broken
    info, run = info | {"wall_seconds": perf_counter() - started}, None
    failed, texts, shortfall, left_out = [chain for chain in chains if chain.failure is not None], [], None, ""
    try:
        with deferred():
            records = finished(chains, None if goal is None else goal.records, last=True)
            idle = [record.stopped == "interrupted" and record.length <= 0.0 for record in records]
            waiting = []
            if broken is None and any(idle) and not all(idle):  # of the others all can be asked
                waiting, used = [*itertools.compress(chains, idle)], np.logical_not(idle)
                chains, records = ([*itertools.compress(x, used)] for x in (chains, records))
                left_out = f"; {sum(idle)} of {len(idle)} chains had no path after the warm-up yet, and are left out"
            info.pop("left_out", None)  # of the run that is extended
            info |= {"left_out": left_out} if left_out else {}
            run = Run(info, records, process=chains[0].process, chains=chains, extend=extend)
            run._known, run._waiting = _known(run.process), waiting
        if broken is None and not failed:
            shortfall = None if goal is None else goal.shortfall(run)
            seen = looked_at(run)
            texts += [*run.process.report.warnings(run.process, run.stats), *step_warning(seen), *anchor_warning(run)]
            texts += copies_warning(run)
            looks = (jump_warning, gradient_warning, law_warning, large_step_warning)
            info["wrong_gradient"] = next(filter(None, (look(seen) for look in looks)), [])
            texts += info["wrong_gradient"]
            asked, info["doubts"] = None if goal is None else goal.ess, []
            said_before = [*info.get("cautions", []), *([info["improper"]] if "improper" in info else [])]
            if "improper" not in info:
                texts += tail_warning(seen)
                info["doubts"] = [*run.process.report.doubts(run, asked), *share_doubts(run)]
                texts += info["doubts"]
                if asked is None and not are_short.get():
                    texts += short_warning(run)
            run.said = frozenset(text.rstrip(".") for text in [*texts, *said_before])
    except KeyboardInterrupt:
        if run is None:
            raise
        texts.append(
            "the looks after the run were interrupted: the run is whole, but not all is known that a warning would say "
            "of its gradients, tails and effective draws."
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised with what was sampled
        broken = broken or error
    if broken is not None:
        _raise_broken(broken, run, file)
    if failed:
        _raise_failure(failed[0], run)
    if run.stopped == "interrupted":
        texts.insert(0, f"the run was interrupted: it is what was sampled until then{left_out}.")
    texts += [shortfall] if shortfall else []
    for k, text in enumerate(texts):
        try:
            warn(text)
        except Warning as error:  # where warnings are errors
            error.run = run  # type: ignore[attr-defined]
            for other in texts[k + 1 :]:
                error.add_note(other)
            raise
    return run


def _raise_broken(error, run, file):
    """Raise what has ended a run from outside of its chains, as a `SamplingError` with what they have sampled."""
    if isinstance(error, SamplingError):
        error.run = run
        raise error
    said = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".: ")
    text = f"The run was ended by {said}. What was sampled until then is `run` of this error"
    text += "." if file is None or not os.path.exists(file.path) else f", and in `checkpoint` {os.fspath(file.path)!r}."
    raise SamplingError(text, run=run) from error


def _raise_failure(chain, run):
    text, now, x = chain.failure
    event = int(chain.state.counts[EVENTS])
    with np.printoptions(threshold=20, precision=6):
        message = f"{text} (chain {chain.number}, after event {event}, at time {now:.9g}, x = {x})."
    error = SamplingError(
        message[0].upper() + message[1:], run=run, chain=chain.number, event=event, time=now, position=x
    )
    raise error from chain.cause


def in_notebook():
    """Whether Python runs in a Jupyter notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


def wants_bar(progress):
    """Whether an argument `progress` asks for a bar: None does on a terminal and in a notebook."""
    if progress is None:
        return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    if not isinstance(progress, (bool, np.bool_)):
        raise TypeError(f"`progress` must be True, False or None, got {progress!r}.")
    return bool(progress)


def open_bar(**options):
    """A bar on stderr, with options of tqdm."""
    with silenced():  # a notebook without ipywidgets has a bar of text
        from tqdm.auto import tqdm

    return tqdm(file=sys.stderr, **options)


class Progress:
    """A progress bar on the terminal or in a notebook; elsewhere only if it is wanted explicitly."""

    def __init__(self, wanted, chains, goal=None):
        wanted = wants_bar(wanted)
        self._wanted, self._chains, self._goal, self._bar = wanted, chains, goal, None
        self._began = None  # when chains were seen to sample first, and which share of the way they had gone then
        if wanted and goal is not None:
            goal.shows_rhat = True

    def __enter__(self):
        if self._wanted:
            form = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
            self._bar = open_bar(total=1.0, bar_format=form)
        return self

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()

    @property
    def shown(self):
        return self._bar is not None

    def say(self, what):
        if self._bar is not None:
            self._bar.set_description(what)

    def write(self, line):
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)

    def update(self, chains):
        if self._bar is None:
            return
        spent = [1.0 if c.stopped not in (None, LOOK) else min(c.budget.spent(c), 1.0) for c in chains]
        self._bar.n = sum(spent) / len(spent)
        events = f"{sum(int(c.state.counts[EVENTS]) for c in chains):,} events"
        if self._goal is not None:
            self._bar.n = max(self._bar.n, self._goal.share(chains))
            events = ", ".join(part for part in (self._goal.describe(), events) if part)
        warming = any(c.warming for c in chains)
        if not warming:
            self._tell(self._goal.share(chains) if self._goal is not None else self._bar.n)
        self._bar.set_description("warm-up" if warming else "sampling", refresh=False)
        self._bar.set_postfix_str(events, refresh=False)
        self._bar.refresh()

    def _tell(self, share):
        """Say once, above the bar, how long sampling takes, from what its first part took."""
        now = perf_counter()
        if self._began is None and share > 0.0:
            self._began = now, share
        elif self._began and share - self._began[1] >= TOLD_AFTER:
            (began, first), self._began = self._began, ()
            left = (1.0 - share) * (now - began) / (share - first)
            if left >= WORTH_TELLING:
                text = f"{left:.0f} s" if left < 100.0 else f"{left / 60.0:,.0f} minutes"
                self.write(f"sampling takes about {text} more, as it has gone so far")
