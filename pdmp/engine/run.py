"""Running a process: budgets, chains, warm-up, executors, checkpoints; and the `Run` that comes back."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import math
import os
import sys
import threading
import warnings
from concurrent.futures import Executor
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.engine import checkpoint as checkpoints
from pdmp.engine.chain import SKELETON_BYTES, Chain, advance_elsewhere
from pdmp.engine.checkpoint import Checkpoint, digest, read_checkpoint
from pdmp.engine.checks import (
    STORES,
    check_budget,
    check_count,
    check_covariance,
    check_initial,
    check_number,
    check_process,
    check_seed,
    check_skeleton,
    describe,
    known_length,
)
from pdmp.engine.preflight import check_methods, check_target, rehearse
from pdmp.engine.result import Run as Run
from pdmp.engine.result import load as load
from pdmp.errors import SamplingError
from pdmp.process import DATA, EVENTS, PROPOSALS

if TYPE_CHECKING:
    from pdmp.process import Process

SEGMENT_SECONDS = 5.0  #: of a chain's work that another process or machine is asked for at a time
POLL_SECONDS = 0.1  #: between two looks of the main thread at its chains


def sample(
    process: Process,
    *,
    initial: ArrayLike | None = None,
    time: float | None = None,
    events: int | None = None,
    steps: int | None = None,
    proposals: int | None = None,
    data_passes: float | None = None,
    seconds: float | None = None,
    warmup: float = 0,
    chains: int = 1,
    seed: int | None = None,
    store: str = "skeleton",
    draws: int | None = None,
    covariance: bool | None = None,
    progress: bool | None = None,
    checkpoint: str | os.PathLike | None = None,
    executor: Executor | None = None,
) -> Run:
    """Run a process.

    At least one budget is needed: `time`, `events`, `steps`, `proposals`, `data_passes` or `seconds`. Each holds for
    every chain by itself, and the first one that a chain reaches stops it.

    Parameters
    ----------
    process : Process
        For example ``pdmp.ZigZag(model)``.
    initial : array_like, shape (d,) or (chains, d), optional
        Where the chains start; by default the gradient provider's anchor, else the model's mode, else the model's own
        ``initial``.
    time : float, optional
        Process time; the path ends there exactly.
    events : int, optional
        Recorded jumps: flips, bounces, refreshments, ticks.
    steps : int, optional
        Steps of a fixed-step process.
    proposals : int, optional
        Events and rejected proposals.
    data_passes : float, optional
        Times that as many data terms were looked at as the model has.
    seconds : float, optional
        Computing time. The only budget whose result depends on the machine; the run's ``events`` repeat it.
    warmup : float, default 0
        Fraction of the budget, in [0, 1), that no estimate uses; processes that adapt do so only there.
    chains : int, default 1
    seed : int, optional
        Chain i uses child i of ``SeedSequence(seed)``. A fresh one is drawn, and kept as ``run.seed``, by default.
    store : {"skeleton", "grid", "moments"}
        What is kept of the path: every event, `draws` or more equally spaced positions, or nothing. Means and
        variances are exact integrals of the path in each case.
    draws : int, optional
        For ``store="grid"``: the least number of positions to keep of each chain; exactly so many when the length of
        the path is known in advance, else up to twice as many.
    covariance : bool, optional
        Whether to integrate all d² products on the way; by default where no skeleton is kept, for up to 100 dimensions
        and processes that are not local. Without, ``run.cov()`` takes them from the skeleton.
    progress : bool, optional
        Show a progress bar; by default on a terminal.
    checkpoint : path, optional
        A file from which an interrupted run goes on, written every 30 s and at the end. The result is bitwise that
        of an uninterrupted run.
    executor : concurrent.futures.Executor, optional
        What runs the chains: threads by default; a process pool, or a cluster's.

    Returns
    -------
    Run
        Also after Ctrl-C, with what there was by then.

    Raises
    ------
    ValueError, TypeError
        Before anything runs, naming the argument.
    SamplingError
        When a chain fails; its ``run`` is what there was until then.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), time=1_000.0, seed=1)
    >>> run.mean().shape
    (2,)
    """
    started = perf_counter()
    check_process(process)
    check_methods(process)
    check_target(process.model)
    given = {
        "time": time,
        "events": events,
        "steps": steps,
        "proposals": proposals,
        "data_passes": data_passes,
        "seconds": seconds,
    }
    budget = check_budget(process, **given)
    warmup = check_number("warmup", warmup)
    if not 0.0 <= warmup < 1.0:
        raise ValueError(f"`warmup` must be a fraction in [0, 1), got {warmup}.")
    chains = check_count("chains", chains)
    if store not in STORES:
        raise ValueError(f"`store` must be one of {', '.join(map(repr, STORES))}, got {store!r}.")
    if store == "grid":
        if draws is None:
            raise ValueError('`store="grid"` needs `draws=`, the number of positions to keep of each chain.')
        draws = check_count("draws", draws)
    elif draws is not None:
        raise ValueError(f'`draws` is for `store="grid"`; the store is {store!r}.')
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}.")
    saved = read_checkpoint(checkpoint)
    seed = check_seed(seed, saved)
    if process.failure is not None:
        process.model.failure = None  # of an earlier run
    starts = check_initial(process, initial, chains)
    process = process.resolve(starts[0])
    covariance = check_covariance(process, covariance, store)
    total = known_length(process, budget)
    if store == "skeleton":
        check_skeleton(process, budget, chains, total)

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
        )
        for i, child in enumerate(np.random.SeedSequence(seed).spawn(chains))
    ]
    rehearse(process, made[0])
    info = describe(process) | {
        "store": store,
        "seed": seed,
        "budget": {name: value for name, value in given.items() if value is not None},
    }
    file = None
    if checkpoint is not None:
        call = {name: value if value is None else float(value) for name, value in given.items()}
        call |= {"seed": str(seed), "warmup": warmup, "chains": chains, "store": store, "draws": draws}
        call |= {"covariance": covariance, "initial": digest(starts), "process": digest(process)}
        file = Checkpoint(checkpoint, call, seed)
        if saved is not None:
            file.resume(made, *saved)
    return _drive(made, info, executor, progress, file, started)


def extend(run, *, executor=None, **budget):
    """The same run with a larger budget, named and counted in total as in `sample`; so is `executor`.

    Bitwise what `sample` would have returned for that budget, when the whole path counts (``warmup=0``). The first
    run's own arrays stay valid.
    """
    if run._chains is None:
        raise ValueError("a loaded run cannot go on.")
    started = perf_counter()
    info = run._info | {"budget": dict(budget)}
    budget = check_budget(run.process, **budget)
    for chain in run._chains:
        counts, now = chain.state.counts, float(chain.state.now[0])
        if now > budget.time or any(
            counts[k] > limit
            for k, limit in ((EVENTS, budget.events), (PROPOSALS, budget.proposals), (DATA, budget.data))
        ):
            raise ValueError("the budget is smaller than what the run has already spent: budgets count in total.")
    for chain in run._chains:
        chain.extend(budget)
    return _drive(run._chains, info, executor, False, None, started)


# ---------------------------------------------------------------------------------------------------------------
# Driving the chains


def _drive(chains, info, executor, progress, file, started):
    """Run the chains to the end of their budgets, or until something stops them."""
    stop = threading.Event()
    futures, broken = {}, None
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Progress(progress, chains))
        if executor is None:
            executor = stack.enter_context(
                concurrent.futures.ThreadPoolExecutor(min(len(chains), cpu_count()), thread_name_prefix="pdmp")
            )
        here = isinstance(executor, concurrent.futures.ThreadPoolExecutor)
        length = math.inf if here else SEGMENT_SECONDS
        if file is not None:
            length = min(length, checkpoints.CHECKPOINT_SECONDS)

        def submit(i):
            if here:
                return executor.submit(chains[i].advance, length, stop)
            light = copy.copy(chains[i])
            light.blocks = []
            return executor.submit(advance_elsewhere, light, length)

        def collect(future):
            i = futures.pop(future)
            chain = future.result()
            if chain is not chains[i]:
                chain.blocks = chains[i].blocks + chain.blocks
                chains[i] = chain
            if file is not None and chain.failure is None:
                file.keep(i, chain)
            return i

        try:
            if here and any(c.stopped is None for c in chains):
                bar.say("compiling")
                chains[0].compile()
            bar.say("sampling")
            for i, chain in enumerate(chains):
                if chain.stopped is None:
                    futures[submit(i)] = i
            while futures:
                done, _ = concurrent.futures.wait(
                    futures, timeout=POLL_SECONDS, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in done:
                    i = collect(future)
                    if chains[i].failure is not None:
                        stop.set()
                    if chains[i].stopped is None and not stop.is_set():
                        futures[submit(i)] = i
                if file is not None:
                    file.write_if_due()
                bar.update(chains)
        except KeyboardInterrupt:
            pass  # the chains that have not stopped are marked as interrupted
        except Exception as error:  # of a chain, in its thread; raised below, when the other chains stand still
            broken = error
        finally:
            stop.set()
            for future in list(futures):
                if future.cancel():
                    futures.pop(future)
            for future in list(futures):
                # What fails now has an earlier cause, which is already being reported.
                with contextlib.suppress(BaseException if not here else Exception):
                    collect(future)
    if broken is not None:
        raise broken
    if file is not None:
        file.write()
    info = info | {"wall_seconds": perf_counter() - started}
    run = Run(info, [c.finish() for c in chains], process=chains[0].process, chains=chains)
    for chain in chains:
        if chain.failure is not None:
            _raise_failure(chain, run)
    for text in run.process.report.warnings(run.process, run.stats):
        warnings.warn(text, UserWarning, stacklevel=3)
    return run


def _raise_failure(chain, run):
    text, now, x = chain.failure
    event = int(chain.state.counts[EVENTS])
    with np.printoptions(threshold=20, precision=6):
        message = f"{text} (chain {chain.number}, after event {event}, at time {now:.9g}, x = {x})."
    cause = chain.process.failure
    error = SamplingError(
        message[0].upper() + message[1:], run=run, chain=chain.number, event=event, time=now, position=x
    )
    raise error from (cause if isinstance(cause, BaseException) else None)


def cpu_count():
    """Processors that this Python process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Progress:
    """A bar on the terminal; does nothing unless asked, or unless there is a terminal."""

    def __init__(self, wanted, chains):
        self._wanted = sys.stderr is not None and sys.stderr.isatty() if wanted is None else wanted
        self._chains, self._bar = chains, None

    def __enter__(self):
        if self._wanted:
            import tqdm

            form = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
            self._bar = tqdm.tqdm(total=1.0, bar_format=form, file=sys.stderr)
        return self

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()

    def say(self, what):
        if self._bar is not None:
            self._bar.set_description(what)

    def update(self, chains):
        if self._bar is None:
            return
        spent = [1.0 if c.stopped is not None else min(c.budget.spent(c), 1.0) for c in chains]
        self._bar.n = sum(spent) / len(spent)
        events = sum(int(c.state.counts[EVENTS]) for c in chains)
        self._bar.set_description("warm-up" if any(c.warming for c in chains) else "sampling", refresh=False)
        self._bar.set_postfix_str(f"{events:,} events", refresh=False)
        self._bar.refresh()
