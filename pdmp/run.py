"""Running a process: budgets, chains, warm-up, executors, checkpoints; and the `Run` that comes back."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import functools
import hashlib
import inspect
import math
import numbers
import operator
import os
import sys
import threading
import time as clock

import numpy as np

from pdmp import storage
from pdmp.chain import (
    NEVER,
    SKELETON_BYTES,
    Budget,
    Chain,
    Record,
    advance_elsewhere,
    row_bytes,
    rows_per_event,
)
from pdmp.compiled import Compiled, fingerprint
from pdmp.diagnostics.ess import batch_ess, batch_rhat, draws_ess, draws_rhat
from pdmp.errors import SamplingError
from pdmp.models.base import Model
from pdmp.preflight import preflight
from pdmp.process import DATA, EVENTS, HORIZONS, KINDS, PROPOSALS, THINNED, VIOLATIONS, Process
from pdmp.recording import Grid, Integrals
from pdmp.trajectory import Trajectory, integrate_function

CHECKPOINT_SECONDS = 30.0  #: between two checkpoints
SEGMENT_SECONDS = 5.0  #: of a chain's work that another process or machine is asked for at a time
POLL_SECONDS = 0.1  #: between two looks of the main thread at its chains
STORES = ("skeleton", "grid", "moments")
#: Draws for diagnostics, for each chain, and numbers in all of them.
DIAGNOSTIC_DRAWS, DIAGNOSTIC_NUMBERS = 4_000, 50_000_000


def sample(
    process,
    *,
    initial=None,
    time=None,
    events=None,
    steps=None,
    proposals=None,
    data_passes=None,
    seconds=None,
    warmup=0,
    chains=1,
    seed=None,
    store="skeleton",
    draws=None,
    covariance=None,
    progress=None,
    checkpoint=None,
    executor=None,
):
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
        Whether to integrate all d² products on the way; by default for up to 100 dimensions and processes that are
        not local. Without, ``run.cov()`` needs the skeleton.
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
    started = clock.perf_counter()
    check_process(process)
    preflight(process)
    given = {
        "time": time,
        "events": events,
        "steps": steps,
        "proposals": proposals,
        "data_passes": data_passes,
        "seconds": seconds,
    }
    budget = check_budget(process, **given)
    warmup = _check_number("warmup", warmup)
    if not 0.0 <= warmup < 1.0:
        raise ValueError(f"`warmup` must be a fraction in [0, 1), got {warmup}.")
    chains = _check_count("chains", chains)
    if store not in STORES:
        raise ValueError(f"`store` must be one of {', '.join(map(repr, STORES))}, got {store!r}.")
    if store == "grid":
        if draws is None:
            raise ValueError('`store="grid"` needs `draws=`, the number of positions to keep of each chain.')
        draws = _check_count("draws", draws)
    elif draws is not None:
        raise ValueError(f'`draws` is for `store="grid"`; the store is {store!r}.')
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"`executor` must be a concurrent.futures.Executor, got {type(executor).__name__}.")
    saved = _read_checkpoint(checkpoint)
    seed = _check_seed(seed, saved)
    starts = check_initial(process, initial, chains)
    process = process.resolve(starts[0])
    covariance = _check_covariance(process, covariance, store)
    total = _known_length(process, budget)
    if store == "skeleton":
        _check_skeleton(process, budget, chains, total)

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


# ---------------------------------------------------------------------------------------------------------------
# What is asked of the arguments


def check_process(process):
    """Raise a `TypeError` that says what to write unless `process` is a `Process`."""
    if isinstance(process, Process):
        return
    if inspect.isclass(process):
        raise TypeError(
            f"`process` must be a process, got the class {process.__name__}; write {process.__name__}(...)."
        )
    name = type(process).__name__
    if isinstance(process, Model) or hasattr(process, "model"):
        raise TypeError(
            f"`process` must be a process, got the {'model' if isinstance(process, Model) else 'gradient'} {name}; "
            f"write pdmp.sample(pdmp.ZigZag(...), ...) or another process around it."
        )
    raise TypeError(f"`process` must be a process such as pdmp.ZigZag(model), got {name}.")


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, np.number)):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    return float(value)


def _check_count(name, value):
    if isinstance(value, float) and value.is_integer():  # 1e6
        value = int(value)
    try:
        if isinstance(value, bool):
            raise TypeError
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, got {value!r}.") from None
    if not 1 <= value <= NEVER:
        raise ValueError(f"`{name}` must be at least 1, got {value}.")
    return value


def check_budget(process, time=None, events=None, steps=None, proposals=None, data_passes=None, seconds=None):
    """A `Budget` from what `sample` was given, or an error naming the argument."""
    parts = {}
    for name, value in (("time", time), ("data_passes", data_passes), ("seconds", seconds)):
        if value is None:
            continue
        value = _check_number(name, value)
        if not 0.0 < value < math.inf:
            raise ValueError(f"`{name}` must be positive and finite, got {value}.")
        parts[name] = value
    for name, value in (("events", events), ("steps", steps), ("proposals", proposals)):
        if value is not None:
            parts[name] = _check_count(name, value)
    if not parts:
        raise ValueError(
            "no budget: give at least one of `time`, `events`, `steps`, `proposals`, `data_passes`, `seconds`."
        )
    if "steps" in parts:
        if not process.ticks:
            raise TypeError(
                f"`steps` is for fixed-step processes; {type(process).__name__} runs in continuous time: "
                "give `events` or `time`."
            )
        parts["events"] = min(parts.pop("steps") * process.ticks, parts.get("events", NEVER))
    if "data_passes" in parts:
        n_data = max(getattr(process.model, "n_data", 0), 1)
        parts["data"] = max(math.ceil(round(parts.pop("data_passes") * n_data, 6)), 1)
    return Budget(**parts, step=max(process.ticks, 1) if events is None else 1)


def _check_seed(seed, saved):
    if seed is None:
        return np.random.SeedSequence().entropy if saved is None else saved[0]["seed"]
    try:
        if isinstance(seed, bool):
            raise TypeError
        seed = operator.index(seed)
    except TypeError:
        raise TypeError(f"`seed` must be an integer or None, got {seed!r}.") from None
    if seed < 0:
        raise ValueError(f"`seed` must not be negative, got {seed}.")
    return seed


def copies_of(process):
    """Weights of the coupled copies that the state holds; (1,) for all processes but the extrapolating ones."""
    return tuple(float(w) for w in getattr(process, "copies", (1.0,)))


def target_dim(process):
    """Dimension of the target."""
    return process.model.dim if process.model is not None else process.dim // len(copies_of(process))


def check_initial(process, initial, chains):
    """Starting points (chains, d), or an error naming `initial`."""
    model, d = process.model, target_dim(process)
    source = "`initial`"
    if initial is None:
        if process.anchor is not None:
            initial, source = process.anchor, "the anchor"
        elif model is None:
            initial = np.zeros(d)
        else:
            initial = model.mode() if hasattr(model, "mode") else None
            source = "the mode"
            if initial is None:
                initial, source = getattr(model, "initial", np.zeros(d)), f"`initial` of {type(model).__name__}"
    try:
        x = np.array(initial, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`initial` must hold numbers, got {initial!r}.") from None
    if x.shape not in ((d,), (chains, d)):
        raise ValueError(f"`initial` must have shape ({d},) or ({chains}, {d}), got {x.shape}.")
    starts = np.array(np.broadcast_to(x, (chains, d)))
    for i, row in enumerate(starts):
        where = "" if x.ndim == 1 else f" in row {i}"
        if not np.all(np.isfinite(row)):
            raise ValueError(
                f"{source} must be finite; entries {np.flatnonzero(~np.isfinite(row)).tolist()}{where} are not."
            )
        if hasattr(model, "potential") and (i == 0 or x.ndim == 2):
            potential = model.potential(row)
            if not math.isfinite(potential):
                raise ValueError(
                    f"{source}{where} is a point of zero density: the potential of {type(model).__name__} there is "
                    f"{potential}; give `initial=` a point where it is finite."
                )
    return starts


def _check_covariance(process, covariance, store):
    if covariance not in (None, True, False):
        raise ValueError(f"`covariance` must be True, False or None, got {covariance!r}.")
    if covariance and process.local and store != "skeleton":
        raise ValueError(
            f"`covariance=True` with `store={store!r}` needs all coordinates at each event, but an event of the local "
            f'{type(process).__name__} touches only a few; use `store="skeleton"` and run.cov() afterwards.'
        )
    if process.local:
        return False
    return target_dim(process) <= 100 if covariance is None else bool(covariance)


def _known_length(process, budget):
    """Process time at the end if the budget alone tells, else None."""
    if replace_budget(budget, time=math.inf) == Budget(step=budget.step):
        return budget.time
    if getattr(process, "constant", 0) and replace_budget(budget, events=NEVER) == Budget(step=budget.step):
        if process.ticks and budget.events % process.ticks == 0:
            return budget.events // process.ticks * process.holding(0)
    return None


def replace_budget(budget, **changes):
    """The budget with other parts."""
    values = {name: getattr(budget, name) for name in Budget.__dataclass_fields__}
    return Budget(**(values | changes))


def _check_skeleton(process, budget, chains, total):
    events = budget.events
    if events == NEVER and total is not None and getattr(process, "constant", 0):
        events = total / process.holding(0) * process.ticks
    if events == NEVER:
        return
    average = rows_per_event(process)[0]
    size = chains * events * average * row_bytes(process, process.flow.kind != "constant")
    if size > SKELETON_BYTES:
        raise ValueError(
            f"the skeleton would take {size / 1e9:.3g} GB, above {SKELETON_BYTES / 1e9:.3g} GB: "
            'give `store="grid"` with `draws=`, or `store="moments"`, or a smaller budget.'
        )


def describe(process):
    """What a `Run` needs to know of its process: plain values, for a header."""
    model, d = process.model, target_dim(process)
    name = type(process).__name__
    text = f"{name} of dimension {d}" if model is None else f"{name} on {type(model).__name__} of dimension {d}"
    variables = {"x": (d,)} if model is None else model.variables
    return {
        "process": text,
        "sampler": name,
        "kind": process.flow.kind,
        "copies": list(copies_of(process)),
        "dim": d,
        "local": bool(process.local),
        "events": list(process.events),
        "variables": {k: list(s) for k, s in variables.items()},
        "n_data": int(getattr(model, "n_data", 0)),
    }


# ---------------------------------------------------------------------------------------------------------------
# Driving the chains


def _drive(chains, info, executor, progress, file, started):
    """Run the chains to the end of their budgets, or until something stops them."""
    stop = threading.Event()
    futures, broken, interrupted = {}, None, False
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Progress(progress, chains))
        if executor is None:
            executor = stack.enter_context(
                concurrent.futures.ThreadPoolExecutor(min(len(chains), cpu_count()), thread_name_prefix="pdmp")
            )
        here = isinstance(executor, concurrent.futures.ThreadPoolExecutor)
        length = math.inf if here else SEGMENT_SECONDS
        if file is not None:
            length = min(length, CHECKPOINT_SECONDS)

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
            interrupted = True
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
    for chain in chains:
        if chain.failure is None and chain.stopped is None and not interrupted and not any(c.failure for c in chains):
            raise RuntimeError(f"chain {chain.number} stopped before its budget was used up.")
    info = info | {"wall_seconds": clock.perf_counter() - started}
    run = Run(info, [c.finish() for c in chains], process=chains[0].process, chains=chains)
    for chain in chains:
        if chain.failure is not None:
            _raise_failure(chain, run)
    return run


def _raise_failure(chain, run):
    text, now, x = chain.failure
    event = int(chain.state.counts[EVENTS])
    with np.printoptions(threshold=20, precision=6):
        message = f"{text} (chain {chain.number}, after event {event}, at time {now:.9g}, x = {x})."
    cause = getattr(chain.process.model, "failure", None)
    if cause is not None:
        message += f" {type(cause).__name__}: {cause}"
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

            form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
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


# ---------------------------------------------------------------------------------------------------------------
# Checkpoints


def digest(value):
    """Hash of all that a process computes with: classes, methods, arrays and numbers; hexadecimal."""
    total = hashlib.sha256()

    def add(value):
        if isinstance(value, Compiled):
            cls = type(value)
            total.update(f"{cls.__module__}.{cls.__qualname__}".encode())
            total.update(fingerprint(cls._methods.values()).encode())
            for name in cls._annotations:
                if name not in getattr(cls, "volatile", ("address",)):  # where something is in memory
                    total.update(name.encode())
                    add(getattr(value, name))
        elif isinstance(value, np.ndarray):
            total.update(f"{value.dtype.str}{value.shape}".encode())
            total.update(np.ascontiguousarray(value).data if value.size else b"")
        elif isinstance(value, (tuple, list)):
            for item in value:
                add(item)
        else:
            total.update(repr(value).encode())

    add(value)
    return total.hexdigest()


def _read_checkpoint(path):
    if path is None:
        return None
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if not os.path.isdir(folder):
        raise ValueError(f"`checkpoint` names a file in {folder!r}, which is not a directory.")
    return storage.read(path, "checkpoint") if os.path.exists(path) else None


class Checkpoint:
    """A file with the last known state of every chain of one call of `sample`."""

    def __init__(self, path, call, seed):
        self.path, self.call, self.seed = path, call, seed
        self._snapshots, self._packed = {}, {}
        self._written = clock.perf_counter()
        self._chains = None

    def resume(self, chains, header, arrays):
        """Bring fresh chains to where the file has them."""
        saved = header["call"]
        different = [k for k in self.call if self.call[k] != saved.get(k)]
        if different:
            names = ", ".join(f"`{k}`" for k in different)
            raise ValueError(
                f"`checkpoint` {os.fspath(self.path)!r} is of another call: {names} "
                f"{'differs' if len(different) == 1 else 'differ'}; name another file or remove it."
            )
        for key, chain in header["chains"].items():
            prefix = f"chain/{key}"
            chains[int(key)].restore(chain, arrays, prefix)
            self.keep(int(key), chains[int(key)])

    def keep(self, i, chain):
        """Remember where chain i is; it must stand still."""
        self._snapshots[i] = chain.snapshot()

    def write_if_due(self):
        if clock.perf_counter() - self._written >= CHECKPOINT_SECONDS:
            self.write()

    def write(self):
        """Write what is remembered."""
        if not self._snapshots:
            return
        headers, arrays = {}, {}
        for i, snapshot in self._snapshots.items():
            headers[str(i)], packed = Chain.pack(snapshot, f"chain/{i}")
            arrays |= packed
        storage.write(
            self.path, {"what": "checkpoint", "call": self.call, "seed": self.seed, "chains": headers}, arrays
        )
        self._written = clock.perf_counter()


# ---------------------------------------------------------------------------------------------------------------
# The result


def load(path):
    """The `Run` that ``run.save(path)`` wrote. Its ``process`` is a text; all the numbers are there."""
    header, arrays = storage.read(path, "run")
    records = []
    for i, values in enumerate(header["records"]):

        def part(name, i=i):
            return arrays[f"chain/{i}/{name}"]

        records.append(
            Record(
                **values,
                **{name: part(name) for name in Record.ARRAYS},
                integrals=Integrals(*(part(f"integrals/{name}") for name in Integrals._fields)),
                grid=Grid(*(part(f"grid/{name}") for name in Grid._fields)),
            )
        )
    return Run(header["info"], records)


class Run:
    """What `sample` returns: estimates along the paths of all chains, and the paths.

    Means, variances and expectations are time averages from the end of the warm-up to the end of each chain, chains
    pooled in proportion to their lengths. Where the process holds coupled copies (SGRRLD: a fine and a coarse chain),
    these are extrapolated: the copies' averages, with the signed weights `copies`. Positions, `draws`, `ess`, `rhat`
    and `to_arviz` are those of the first copy, the fine chain.

    Attributes
    ----------
    process : Process or str
        The process, its "auto" options settled; of a loaded run a description.
    seed : int
        With it and the same arguments the run can be repeated bitwise.
    chains, dim : int
        Number of chains; dimension d of the target.
    events : ndarray of int, shape (chains,)
        Events of each chain: as a budget, they repeat a run that a number of seconds or Ctrl-C ended.
    warmup, end : ndarray, shape (chains,)
        Process times at which the warm-up and the path end.
    stopped : str
        What ended the run: the name of a budget, "interrupted" or "failed"; several when chains differ.
    variables : dict of str to tuple of int
        Names and shapes of the parts of x.
    copies : tuple of float
        Weights of the coupled copies.
    stats : dict
        Counts over all chains: events by kind, proposals, thinned proposals, bound violations and their relative
        excess, horizons, data terms and passes, seconds of computing, and what the process itself reports.
    """

    def __init__(self, info, records, process=None, chains=None):
        self._info, self._records, self._chains = info, records, chains
        self.process = info["process"] if process is None else process
        self.seed, self.dim, self.store = info["seed"], info["dim"], info["store"]
        self.variables = {k: tuple(s) for k, s in info["variables"].items()}
        self.copies = tuple(info["copies"])

    def __repr__(self):
        stats = self.stats
        return (
            f"<Run: {self._info['process']}, {self.chains} chain{'s' if self.chains > 1 else ''}, "
            f"{stats['total_events']:,} events, time {self.end.max():.6g}, stopped by {self.stopped}>"
        )

    @property
    def chains(self):
        return len(self._records)

    @property
    def events(self):
        return np.array([int(r.counts[EVENTS]) for r in self._records])

    @property
    def warmup(self):
        return np.array([r.warmup for r in self._records])

    @property
    def end(self):
        return np.array([r.end for r in self._records])

    @property
    def stopped(self):
        reasons = {r.stopped for r in self._records}
        for first in ("failed", "interrupted"):
            if first in reasons:
                return first
        return ", ".join(sorted(reasons))

    @functools.cached_property
    def stats(self):
        counts = sum(r.counts for r in self._records)
        violations, terms, n_data = int(counts[VIOLATIONS]), int(counts[DATA]), max(self._info["n_data"], 1)
        stats = {
            "events": {name: int(counts[KINDS + k]) for k, name in enumerate(self._info["events"])},
            "total_events": int(counts[EVENTS]),
            "proposals": int(counts[PROPOSALS]),
            "thinned": int(counts[THINNED]),
            "bound_violations": violations,
            "mean_excess": float(sum(r.excess[0] for r in self._records)) / max(violations, 1),
            "max_excess": float(max(r.excess[1] for r in self._records)),
            "horizons": int(counts[HORIZONS]),
            "data_terms": terms,
            "data_passes": terms / n_data,
            "seconds": float(sum(r.seconds for r in self._records)),
            "stopped": [r.stopped for r in self._records],
        }
        for record in self._records:
            for name, value in record.statistics.items():
                stats[name] = stats.get(name, 0.0) + value
        return stats

    # -- averages along the path ----------------------------------------------------------------------------------

    def _used(self):
        used = [r for r in self._records if r.length > 0.0]
        if not used:
            raise ValueError("there is no path after the warm-up: the run ended before, or had no event.")
        return used

    def _block_mean(self):
        """Averages of all that moves (copies, d)."""
        used = self._used()
        total = sum(r.length for r in used)
        reference = used[0].integrals.centre
        # Around one centre, so that a small spread around a large mean keeps its digits.
        sums = sum(r.integrals.first + (r.integrals.centre - reference) * r.length for r in used)
        return (reference + sums / total).reshape(len(self.copies), self.dim)

    def mean(self):
        """Time average of x, (d,)."""
        return np.array(self.copies) @ self._block_mean()

    def var(self):
        """Time average of (x - mean)², (d,).

        A `UserWarning` tells when extrapolation has made one negative.
        """
        used, mean = self._used(), np.tile(self.mean(), len(self.copies))
        total = 0.0
        for r in used:
            shift = r.integrals.centre - mean
            total = total + r.integrals.second + shift * (2.0 * r.integrals.first + shift * r.length)
        blocks = (total / sum(r.length for r in used)).reshape(len(self.copies), self.dim)
        var = np.array(self.copies) @ blocks
        if np.any(var < 0.0) and len(self.copies) > 1:
            import warnings

            warnings.warn(
                f"the extrapolated variance of {int(np.sum(var < 0.0))} of {self.dim} coordinates is negative: "
                "the run is too short, or the step too large.",
                UserWarning,
                stacklevel=2,
            )
        return var

    def sd(self):
        """Square roots of `var`, (d,); NaN where extrapolation made it negative."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self.var())

    def cov(self):
        """Time average of (x - mean)(x - mean)ᵀ, (d, d).

        Raises
        ------
        ValueError
            If neither the products were integrated (``covariance=``) nor the skeleton is there.
        """
        used, mean = self._used(), np.tile(self.mean(), len(self.copies))
        online = all(r.integrals.cross.size for r in used)
        if not online and self.store != "skeleton":
            reason = "of a local process" if self._info["local"] else "above 100 dimensions without `covariance=True`"
            raise ValueError(f'`store="{self.store}"` {reason} keeps no products; use `store="skeleton"`.')
        total = 0.0
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                continue
            if online:
                shift, first = r.integrals.centre - mean, r.integrals.first
                lower = np.tril(r.integrals.cross)
                cross = lower + np.tril(lower, -1).T
                mixed = np.outer(shift, first)
                total = total + cross + mixed + mixed.T + np.outer(shift, shift) * r.length
            else:
                total = total + self._paths[i].products(mean, r.warmup, r.end)
        total = total / sum(r.length for r in used)
        d = self.dim
        return sum(w * total[c * d : (c + 1) * d, c * d : (c + 1) * d] for c, w in enumerate(self.copies))

    def expectation(self, f):
        """Time average of f(x).

        Parameters
        ----------
        f : callable
            Takes a position, shape (d,), returns a number or an array. If it also takes many at once, (d, M) to
            (..., M), with the same values, it is called so.

        Returns
        -------
        float or ndarray
            Exact for piecewise-constant paths and, on linear ones, for polynomials up to degree 5; otherwise by three
            Gauss-Legendre nodes between each two events. Under ``store="grid"`` the average over the grid.
        """
        self._refuse("expectation", "moments")
        total, length, d = 0.0, 0.0, self.dim
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                continue
            for c, w in enumerate(self.copies):
                part = slice(c * d, (c + 1) * d)
                if self.store == "grid":
                    rows = r.grid.rows[: int(r.grid.used[0]), part]
                    h = np.full(len(rows), r.length / max(len(rows), 1))
                    total = total + w * integrate_function(f, h, rows, None)
                    continue
                for h, x, v in self._paths[i].segments(r.warmup, r.end):
                    value = integrate_function(f, h, x[:, part], None if v is None else v[:, part])
                    total = total + w * value
            length += r.length
        self._used()
        total = total / length
        return float(total) if np.ndim(total) == 0 else total

    # -- paths and draws ------------------------------------------------------------------------------------------

    def _refuse(self, what, *stores):
        if self.store in stores:
            better = '`store="skeleton"`' if "grid" in stores else '`store="skeleton"` or `store="grid"`'
            raise ValueError(f'`{what}` needs the path, of which `store="{self.store}"` keeps none; use {better}.')

    @functools.cached_property
    def _paths(self):
        """Paths of all that moves, copies included."""
        self._refuse("trajectories", "moments", "grid")
        return [
            Trajectory(
                *(r.x, r.v, r.times, r.kinds, r.which, r.xs, r.vs),
                end=r.end,
                kind=self._info["kind"],
                events=self._info["events"],
                local=self._info["local"],
                warmup=min(r.warmup, r.end),
            )
            for r in self._records
        ]

    @functools.cached_property
    def trajectories(self):
        """The path of each chain, a list of `Trajectory`; of coupled copies the first, with the last as ``coarse``."""
        if len(self.copies) == 1:
            return self._paths
        paths, d, last = [], self.dim, len(self.copies) - 1
        for path in self._paths:
            fine, coarse = path.block(0, d, kind=0), path.block(last * d, (last + 1) * d, kind=last)
            fine.coarse, fine.coarse_times = coarse.positions, coarse.times
            paths.append(fine)
        return paths

    def at(self, t):
        """Positions of all chains at time t: (chains, d), or (chains, M, d) for M times."""
        self._refuse("at", "moments", "grid")
        return np.array([path.at(t) for path in self.trajectories])

    def draws(self, n=1_000):
        """Positions at n equally spaced times after the warm-up: (chains, n, d).

        From the grid, under ``store="grid"``: the nearest of its points.
        """
        self._refuse("draws", "moments")
        n = _check_count("n", n)
        for i, r in enumerate(self._records):
            if r.length <= 0.0:
                raise ValueError(f"chain {i} has no path after its warm-up to draw from.")
        if self.store == "skeleton":
            return np.array([path.discretise(n) for path in self.trajectories])
        out = np.empty((self.chains, n, self.dim))
        for i, r in enumerate(self._records):
            used = int(r.grid.used[0])
            if n > used:
                raise ValueError(f"`n` = {n} draws are more than the {used} that chain {i} has on its grid.")
            times = np.arange(1, n + 1) * (r.length / n)
            rows = np.clip(np.rint(times / r.grid.spacing[0]).astype(int) - 1, 0, used - 1)
            out[i] = r.grid.rows[rows, : self.dim]
        return out

    def _diagnostic_draws(self):
        """Draws for diagnostics, or None if there are too few."""
        if self.store == "grid":
            n = min(int(r.grid.used[0]) for r in self._records)
        else:
            n = min(DIAGNOSTIC_DRAWS, int(self.events.min()))
        n = min(n, max(DIAGNOSTIC_NUMBERS // (self.chains * self.dim), 100))
        if n < 4 or any(r.length <= 0.0 for r in self._records):
            return None
        return self.draws(n)

    def ess(self, method="mean"):
        """Effective sample size of each coordinate, all chains together, (d,).

        From as many draws as there were events, at most 4,000 for each chain, which bounds it; under
        ``store="moments"`` from the means over 32 to 64 stretches of the path. See `pdmp.diagnostics.ess`.
        """
        if self.store == "moments":
            if method != "mean":
                raise ValueError(f'`method` {method!r} needs draws, of which `store="moments"` keeps none; use "mean".')
            used, d = self._used(), self.dim
            batches = [r.integrals.batches[:, :d] for r in used]
            var = np.mean([self._chain_var(r) for r in used], axis=0)
            return batch_ess(var, [r.length for r in used], batches, [float(r.integrals.stretch[0]) for r in used])
        draws = self._diagnostic_draws()
        return np.full(self.dim, np.nan) if draws is None else draws_ess(draws, method)

    def rhat(self, method="rank"):
        """R-hat of each coordinate, from the chains' halves, (d,).

        Under ``store="moments"`` the classical one of means and variances, without ranks.
        """
        if self.store != "moments":
            draws = self._diagnostic_draws()
            return np.full(self.dim, np.nan) if draws is None else draws_rhat(draws, method)
        halves, d = [], self.dim
        used = self._used()
        for r in used:
            stretch = float(r.integrals.stretch[0])
            whole = int(r.length / stretch * (1.0 + 1e-12)) // 2
            if whole == 0:
                return np.full(d, np.nan)
            for part in (slice(0, whole), slice(whole, 2 * whole)):
                halves.append(r.integrals.centre[:d] + r.integrals.batches[part, :d].sum(axis=0) / (whole * stretch))
        return batch_rhat([self._chain_var(r) for r in used], halves)

    def _chain_var(self, r):
        """Variance along one chain's path, first copy, (d,)."""
        d = self.dim
        return r.integrals.second[:d] / r.length - (r.integrals.first[:d] / r.length) ** 2

    # -- tables and files ---------------------------------------------------------------------------------------

    def names(self):
        """A name for each coordinate of x: "beta[0]", "sigma", …; a list of str."""
        out = []
        for name, shape in self.variables.items():
            out += [name + (f"[{','.join(map(str, i))}]" if i else "") for i in np.ndindex(*shape)]
        return out

    def summary(self):
        """A `Summary`: mean, sd, Monte Carlo standard error, ESS and R-hat of each coordinate."""
        mean, sd, ess, rhat = self.mean(), self.sd(), self.ess(), self.rhat()
        with np.errstate(all="ignore"):
            mcse = sd / np.sqrt(ess)
        columns = zip(self.names(), mean, sd, mcse, ess, rhat, strict=True)
        rows = [dict(zip(Summary.COLUMNS, (n, *map(float, v)), strict=True)) for n, *v in columns]
        note = "" if len(self.copies) == 1 else "mean and sd are extrapolated; ess and rhat are the fine chain's"
        return Summary(rows, note)

    def save(self, path):
        """Write the run to one file, without pickle; `pdmp.load` reads it."""
        arrays, records = {}, []
        for i, r in enumerate(self._records):
            records.append({name: getattr(r, name) for name in Record.NUMBERS})
            arrays |= {f"chain/{i}/{name}": getattr(r, name) for name in Record.ARRAYS}
            arrays |= storage.flatten(r.integrals, f"chain/{i}/integrals") | storage.flatten(r.grid, f"chain/{i}/grid")
        storage.write(path, {"what": "run", "info": self._info, "records": records}, arrays)

    def to_arviz(self, n=1_000):
        """An ``arviz.InferenceData`` (or ``DataTree``, from ArviZ 1.0) of n draws of each chain.

        Under ``store="grid"`` all points of the grid. Coupled copies: the fine chain's draws.
        """
        import warnings
        from importlib import metadata

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                import arviz
            except ImportError:
                raise ImportError("`to_arviz` needs ArviZ: pip install 'pdmp[arviz]'.") from None
            if self.store == "grid":
                n = min(int(r.grid.used[0]) for r in self._records)
            x, posterior, first = self.draws(n), {}, 0
            for name, shape in self.variables.items():
                size = math.prod(shape)
                posterior[name] = x[:, :, first : first + size].reshape(*x.shape[:2], *shape)
                first += size
            try:
                version = metadata.version("pdmp")
            except metadata.PackageNotFoundError:
                version = "unknown"
            attrs = {
                "inference_library": "pdmp",
                "inference_library_version": version,
                "sampler": self._info["sampler"],
                "process": self._info["process"],
                "sampling_time": self._info.get("wall_seconds", float("nan")),
                "seed": str(self.seed),
            }
            if len(self.copies) > 1:
                attrs["draws_of"] = "the fine chain; run.mean() and run.expectation() extrapolate"
            if int(arviz.__version__.split(".")[0]) >= 1:
                data = arviz.from_dict({"posterior": posterior})
                data["posterior"].attrs.update(attrs)
                return data
            return arviz.from_dict(posterior=posterior, attrs=attrs)

    # -- going on ---------------------------------------------------------------------------------------------------

    def _extend(self, **budget):
        """The run with a larger budget (total, as in `sample`): bitwise as if it had been given that one at once."""
        if self._chains is None:
            raise ValueError("a loaded run cannot go on.")
        started = clock.perf_counter()
        budget = check_budget(self.process, **budget)
        for chain in self._chains:
            chain.extend(budget)
        return _drive(self._chains, self._info, None, False, None, started)


class Summary:
    """A table of one row for each coordinate; prints as text.

    Attributes
    ----------
    rows : list of dict
        With the keys `COLUMNS`: what ``pandas.DataFrame`` takes.
    """

    COLUMNS = ("name", "mean", "sd", "mcse", "ess", "rhat")
    SHOWN = 60  #: rows that are printed

    def __init__(self, rows, note=""):
        self.rows, self.note = rows, note

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        shown = self.rows[: self.SHOWN]
        forms = {"mean": "{:.4g}", "sd": "{:.4g}", "mcse": "{:.2g}", "ess": "{:.0f}", "rhat": "{:.3f}"}
        table = [list(self.COLUMNS)]
        table += [[row["name"], *(forms[c].format(row[c]) for c in self.COLUMNS[1:])] for row in shown]
        table[0][0] = ""
        widths = [max(len(line[k]) for line in table) for k in range(len(self.COLUMNS))]
        lines = []
        for line in table:
            first, *rest = (cell for cell in line)
            cells = [first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(rest, widths[1:], strict=True))]
            lines.append("  ".join(cells))
        if len(shown) < len(self.rows):
            lines.append(f"… and {len(self.rows) - len(shown)} more")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)
