"""Checks of the arguments of a run: an error of one line for each invalid argument, before anything starts."""

from __future__ import annotations

import inspect
import math
import numbers
from dataclasses import replace

import numpy as np

from pdmp.data.memory import check_size
from pdmp.engine.chain import NEVER, SKELETON_BYTES, Budget, row_bytes, rows_per_event
from pdmp.models.base import Model
from pdmp.models.numerical import quick_mode
from pdmp.native.arguments import count, refuse_unreal, seed_number, told
from pdmp.process import Process

#: Memory of a chain without its path: bytes, and numbers for each coordinate, both rather too few.
CHAIN_BYTES, CHAIN_NUMBERS = 20_000, 8
STORES = ("skeleton", "grid", "moments")


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
            f"write pdmp.sample(pdmp.ZigZag(...), ...), or use another process."
        )
    more = "; pdmp.models.from_function(f, dim) makes a model of a function" if callable(process) else ""
    raise TypeError(f"`process` must be a process such as pdmp.ZigZag(model), or a model, got {name}{more}.")


def check_number(name, value):
    """The argument `name` as a float, or a `TypeError`."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, np.number)):
        raise TypeError(f"`{name}` must be a number, got {told(value)}.")
    return float(value)


def check_goal(chains, ess=None, rhat=None):
    """The goals among the arguments of `sample`, by name, as numbers; or an error naming the argument."""
    goals = {}
    if ess is not None:
        goals["ess"] = check_number("ess", ess)
        if not 0.0 < goals["ess"] < math.inf:
            raise ValueError(f"`ess` must be positive and finite, got {goals['ess']}.")
    if rhat is not None:
        goals["rhat"] = check_number("rhat", rhat)
        if not 1.0 < goals["rhat"] < math.inf:
            raise ValueError(f"`rhat` must be above 1 and finite, for example 1.01, got {goals['rhat']}.")
        if chains < 2:
            raise ValueError(f"`rhat` compares chains: give `chains=` of at least 2, got {chains}.")
    return goals


def check_budget(
    of,
    time=None,
    events=None,
    steps=None,
    proposals=None,
    data_passes=None,
    gradients=None,
    seconds=None,
    goals=(),
):
    """The `Budget` that the arguments of `sample` give a process, or a model; or an error naming the argument."""
    parts, ticks = {}, getattr(of, "ticks", 0)
    if gradients is not None and data_passes is not None:
        raise ValueError("`gradients` and `data_passes` are the same budget: a full gradient is one pass; give one.")
    passes = "data_passes" if gradients is None else "gradients"
    data_passes = data_passes if gradients is None else gradients
    for name, value in (("time", time), (passes, data_passes), ("seconds", seconds)):
        if value is None:
            continue
        value = check_number(name, value)
        if not 0.0 < value < math.inf:
            raise ValueError(f"`{name}` must be positive and finite, got {value}.")
        parts[name] = value
    for name, value in (("events", events), ("steps", steps), ("proposals", proposals)):
        if value is not None:
            parts[name] = count(name, value)
    if not parts and not goals:
        raise ValueError(
            "no budget: give at least one of `ess`, `rhat`, `time`, `events`, `steps`, `proposals`, `gradients`, "
            "`data_passes`, `seconds`."
        )
    if "steps" in parts:
        if not ticks:
            name = type(of).__name__ if isinstance(of, Process) else "the process of a model"
            raise TypeError(
                f"`steps` is for fixed-step processes; {name} runs in continuous time: give `events` or `time`."
            )
        parts["events"] = min(parts.pop("steps") * ticks, parts.get("events", NEVER))
    if passes in parts:
        n_data = max(getattr(getattr(of, "model", of), "n_data", 0), 1)
        parts["data"] = max(math.ceil(round(min(parts.pop(passes) * n_data, float(NEVER)), 6)), 1)
        parts["data_name"] = passes
    return Budget(**parts, step=max(ticks, 1) if events is None else 1)


def check_seed(seed, saved):
    """The seed of a run: as given, or that of its checkpoint, or a new one."""
    if seed is None:
        return np.random.SeedSequence().entropy if saved is None else saved[0]["seed"]
    return seed_number("seed", seed)


def target_dim(process):
    """Dimension of the target."""
    return process.model.dim if process.model is not None else process.dim // len(process.copies)


def check_initial(process, initial, chains):
    """Starting points (chains, d), or an error naming `initial`."""
    model, d = process.model, target_dim(process)
    source = "`initial`"
    if initial is None:
        known = process.prepared.starts
        if known is not None:
            if len(known) < chains:
                raise ValueError(
                    f"`chains` = {chains} is more than the {len(known)} for which the process has starts: "
                    f"make it by pdmp.auto(model, chains={chains}), or give `initial=`."
                )
            initial, source = known[:chains], "the start of pdmp.auto"
        elif process.anchor is not None:
            initial, source = process.anchor, "the anchor"
        elif model is None:
            initial = np.zeros(d)
        else:
            initial = quick_mode(model) if hasattr(model, "searches_by_batches") else None
            source = "the mode"
            if initial is None:
                initial, source = getattr(model, "initial", np.zeros(d)), f"`initial` of {type(model).__name__}"
    refuse_unreal("initial", initial)
    try:
        x = np.array(initial, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`initial` must hold numbers, got {told(initial)}.") from None
    if x.shape not in ((d,), (chains, d)):
        raise ValueError(f"`initial` must have shape ({d},) or ({chains}, {d}), got {x.shape}.")
    for i, row in enumerate(np.atleast_2d(x)):
        where = f" in row {i}" * (x.ndim == 2)
        if not np.all(np.isfinite(row)):
            raise ValueError(
                f"{source} must be finite; entries {np.flatnonzero(~np.isfinite(row)).tolist()}{where} are not."
            )
        if hasattr(model, "potential"):
            potential = model.potential(row)
            if not math.isfinite(potential):
                raise ValueError(
                    f"{source}{where} is a point of zero density: the potential of {type(model).__name__} there is "
                    f"{potential}; give `initial=` a point where it is finite."
                )
        if isinstance(model, Model):
            gradient = model.gradient(row)
            if not np.all(np.isfinite(gradient)):
                with np.printoptions(threshold=20):
                    raise ValueError(
                        f"{source}{where} is a point where the gradient of {type(model).__name__} is {gradient}; give "
                        "`initial=` a point where it is finite."
                    )
    return np.array(np.broadcast_to(x, (chains, d)))


def check_covariance(process, covariance, store):
    """Whether to integrate all products of coordinates in the run."""
    if covariance not in (None, True, False):
        raise ValueError(f"`covariance` must be True, False or None, got {told(covariance)}.")
    if covariance and process.local and store != "skeleton":
        raise ValueError(
            f"`covariance=True` with `store={store!r}` needs all coordinates at each event, but an event of the local "
            f'{type(process).__name__} touches only a few; use `store="skeleton"` and run.cov() afterwards.'
        )
    if process.local:
        return False
    if covariance is None:  # from a skeleton they are taken afterwards, by matrix products
        return store != "skeleton" and target_dim(process) <= 100
    return bool(covariance)


def check_memory(of, chains, draws, covariance):
    """Raise a `ValueError` for chains, a grid or products that are more than the machine has memory for."""
    size = len(of.copies) * target_dim(of) if isinstance(of, Process) else of.dim
    check_size(f"`chains` = {chains:,}", chains * (CHAIN_BYTES + CHAIN_NUMBERS * 8.0 * size), "run fewer")
    if draws is not None:
        rows = f"`draws` = {draws:,} positions of {chains:,} chain{'s' if chains > 1 else ''}"
        check_size(rows, 16.0 * chains * draws * size, "keep fewer")  # room for twice as many
    if covariance is True:
        products = 8.0 * chains * size**2
        check_size(f"`covariance=True` in {size:,} dimensions", products, 'use `store="skeleton"` and run.cov()')


def known_length(process, budget):
    """Process time at the end if the budget alone determines it, else None."""
    if replace(budget, time=math.inf) == Budget(step=budget.step):
        return budget.time
    length = process.tick_length()
    if length is not None and replace(budget, events=NEVER) == Budget(step=budget.step):
        if process.ticks and budget.events % process.ticks == 0:
            return budget.events // process.ticks * length
    return None


def check_skeleton(process, budget, chains, total):
    """Raise a `ValueError` if the budget allows a skeleton larger than `SKELETON_BYTES`."""
    events = budget.events
    length = process.tick_length()
    if events == NEVER and total is not None and length is not None:
        events = total / length * process.ticks
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
    """What a `Run` stores of its process: plain values, for the header of a file."""
    model, d = process.model, target_dim(process)
    name = type(process).__name__
    text = f"{name} of dimension {d}" if model is None else f"{name} on {type(model).__name__} of dimension {d}"
    variables = {"x": (d,)} if model is None else model.variables
    return {
        "process": text,
        "sampler": name,
        "kind": process.flow.kind,
        "copies": [float(weight) for weight in process.copies],
        "dim": d,
        "local": bool(process.local),
        "events": list(process.events),
        "variables": {k: list(s) for k, s in variables.items()},
        "transforms": {k: t.to_json() for k, t in getattr(model, "transforms", {}).items()},
        "constrains": bool(getattr(model, "constrains", False)),
        "n_data": int(getattr(model, "n_data", 0)),
        "choice": process.prepared.choice,
        "preparation_gradients": int(process.prepared.gradients),
        "cautions": list(process.prepared.cautions),
    }
