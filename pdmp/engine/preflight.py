"""Checks of a user's compiled methods before anything compiles: an error of one line for a mistake.

Only classes from outside the trusted packages are checked. `check_methods` reads the methods, `check_target` compares
the gradient of a model with its potential, and `check_propriety` judges whether its density can be normalised, each
once for a model. `rehearse` calls the methods in plain Python, on copies of a chain's first state, and checks what they
return.
"""

from __future__ import annotations

import builtins
import copy
import difflib
import dis
import inspect
import math
import numbers
import os
import random
import sys
import time as _time
import types
import weakref

import numpy as np
from numba.core import config

from pdmp.data.formats import listed
from pdmp.engine.storage import copied
from pdmp.errors import silenced, warn
from pdmp.models.adapters.function import FunctionModel
from pdmp.models.base import Model
from pdmp.models.propriety import find_improper, find_wrong_sign
from pdmp.models.sums_of_terms import SumOfTerms
from pdmp.models.verification import check_equations, check_gradient, shown
from pdmp.native.classes import (
    GENERATORS,
    Compiled,
    cell_value,
    check_attributes,
    check_replaced,
    entry,
    holds_generator,
    lookup_order,
    named_by_methods,
    readable,
)
from pdmp.native.fingerprints import PIECES_ABOVE, array_digest, fingerprint, is_standard
from pdmp.process import CERTAIN, CLOCKS, DATA, HORIZON, KINDS, Process, State, last_moved, missing_rate

#: Largest number of data for a rehearsal of a process in plain Python, and number of clocks that are rehearsed.
REHEARSED_DATA, REHEARSED_CLOCKS = 5_000, 20
#: Events of a run that is rehearsed, at most; and the clocks and data that they may look at in all.
REHEARSED_EVENTS, REHEARSED_TERMS = 8, 40_000
#: Data times coordinates up to which a model of ours is called in plain Python; above that, the functions that its
#: methods call are compiled ones.
REHEARSED_NUMBERS = 20_000
#: Of an array in a field of a user's object, all of which is looked at to see whether it has changed.
COMPARED_BYTES = 100_000_000
HASHED = (np.ndarray, int, float)  #: what a field holds that is looked at for that
#: Estimates of the gradient at one point whose mean is compared with it, at most and at least; by how many standard
#: errors it is wrong; and how far from the start these points are.
ESTIMATES, FEW_ESTIMATES, DEVIATIONS, DISTANCES = 1_000, 50, 8.0, (0.6, 8.0)
EQUAL = 1e-4  #: share of the largest partial derivative by which an exact one may differ
#: Calls of a clock at one state, at most and at least; and in all, times data and coordinates.
PROPOSALS, FEWEST, PROPOSED_NUMBERS = 1_000, 400, 2_000_000
#: By how many errors spacings between proposals must be off; longer ones are left out, as a bound may be 0 in between;
#: and how often a bound goes up and down between two times, at most, that is no number at random.
SPACINGS, LONGEST, WAVES = 5.0, 7.0, 20.0
#: So many times the proposals are taken anew where those are off by more errors than this, and less than above; and
#: estimates, all coordinates of which are looked at, by twice as many.
FURTHER, DOUBTFUL = 15, 1.5
#: Of a sum for an integral; by how much, relatively, a user's integral may be off; coordinates that are looked at.
PANELS, INTEGRATED, COORDINATES = 32, 5e-3, 8
RESOLVED = 1e-3  #: of the largest position: by how much a polynomial through a panel's places may miss its beginning
STANDING = 3  #: events of one clock at the same time, one after the other, that no process makes
_compared = weakref.WeakSet()  # models whose gradients have been compared with their potentials
_judged = weakref.WeakKeyDictionary()  # what was found of the densities of models, and of processes with walls
_trusted = {"pdmp", "numba", "numpy", "llvmlite"}
#: Modules whose functions return something else each time, and functions of others that do.
UNREPEATABLE = {"time", "datetime", "secrets", "uuid"}
_UNREPEATABLE = {np.random, random, np.random.default_rng, os.urandom, getattr(os, "getrandom", os.urandom)}
_FAILED = object()  # result of a call that failed for reasons that say nothing about the user's method


def trust(package: str) -> None:
    """Exempt the classes of a package, by the name of its top level, from these checks, as it has its own tests.

    Runs then start a little faster.
    """
    _trusted.add(package)


def is_trusted(module):
    """Whether the classes of a module are exempt from these checks."""
    return (module or "").partition(".")[0] in _trusted


def _parts(value, seen):
    """All compiled objects that `value` is made of, itself first."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    yield value
    for name in type(value)._annotations:
        part = getattr(value, name, None)
        if isinstance(part, Compiled):
            yield from _parts(part, seen)


@entry
def rate_of(process, state, i, now, rng):
    """The rate of clock i as the process computes it."""
    return process.rate(state, i, now, rng)


@entry
def true_rates_of(process, x, v, scratch, out):
    """Write the rates that the process states into `out`."""
    process.true_rates(x, v, scratch, out)


# ---------------------------------------------------------------------------------------------------------------
# Reading the methods


def check_methods(process):
    """Raise a `TypeError` for the first mistake found by reading the methods of the process and of its parts."""
    for part in _parts(process, {}):
        check_replaced(type(part))
        if hasattr(part, "check_unchanged"):
            part.check_unchanged()
        if not is_trusted(type(part).__module__):
            check_attributes(part)
        for name, method in type(part)._methods.items():
            if not is_trusted(method.__module__):
                # A model keeps what its class calls so under another name.
                written = method.__name__ if method.__name__ in ("potential", "add_gradient") else name
                where = f"`{written}` of {type(part).__name__}"
                _check_names(where, part, name, method)
                _check_returns(part, name, method)
                _check_random(where, method, set())
        for name, method in _drawing(type(part)).items():
            _check_random(f"`{name}` of {type(part).__name__}", method, set())


def _drawing(cls):
    """The methods of a user's class that Python runs and that are given a generator, as `velocity` and `memory` are."""
    found = {}
    for base in cls.__mro__:
        for name, method in {} if is_trusted(base.__module__) else vars(base).items():
            if isinstance(method, types.FunctionType) and "rng" in inspect.signature(method).parameters:
                found.setdefault(name, method)
    return {name: method for name, method in found.items() if name not in cls._methods}


def users_parts(process):
    """What a process is made of that is the user's and no model: the process itself, a bound, an estimator."""
    parts = (part for part in _parts(process, {}) if not isinstance(part, Model))
    return [part for part in parts if not is_trusted(type(part).__module__)]


def is_users(model):
    """Whether the gradient of a model is written by the user, and is to be compared with the potential."""
    if isinstance(model, FunctionModel):
        return model.is_compared
    return isinstance(model, Model) and not is_trusted(type(model).__module__)


def check_target(model):
    """Raise a `ValueError` if the gradient of a user's model is not that of its potential; once for each model.

    Term by term at few points and data, for at most some tenths of a second, which `pdmp.Model.check_gradient` does for
    more; and over all data together, in every coordinate. So is what it says that something equals, such as Hv. See
    `pdmp.engine.visited` for what is compared after a run.
    """
    if isinstance(model, FunctionModel) or not is_users(model) or model in _compared:
        return
    try:
        check_last_row(model)
        if check_gradient(model, points=3, data=6, seed=0, seconds=0.2):
            check_equations(model, REHEARSED_DATA)
    except (AttributeError, NameError, TypeError, LookupError):
        return  # `rehearse` names the line
    _compared.add(model)


def check_last_row(model):
    """Warn where `n_data` seems too small: arrays have more rows, which no term reads, nor the prior.

    Of one row more of any array; of several more if all arrays, two or a table, have the same number.
    A row that is read by another term, as of a time series, or of pointers into sparse rows, is none. Where it is one
    too large, a `ValueError`: compiled code would read what lies beyond the arrays.
    """
    n, fields = model.n_data, {name: getattr(model, name, None) for name in type(model)._annotations}
    rows = {name: len(value) for name, value in fields.items() if isinstance(value, np.ndarray) and value.ndim}
    shorter, longer = ([name for name, size in rows.items() if size == n + k] for k in (-1, 1))
    if n == 1:  # an array of two entries may be anything
        longer = []
    if not longer and len(set(rows.values())) == 1 and (len(rows) > 1 or any(fields[name].ndim > 1 for name in rows)):
        longer = [name for name, size in rows.items() if size > n]
    if not (0 < n <= REHEARSED_DATA and n not in rows.values() and model.divisible and (shorter or longer)):
        return
    x, own, other = np.array(model.initial, float), _plain(model, {}), copy.copy(model)
    for name in longer:
        changed = np.array(fields[name])
        changed[n:] = np.nan if changed.dtype.kind == "f" else ~changed[n:]
        other.__dict__[name] = changed
    both = own, _plain(other, {})
    with np.errstate(all="ignore"):
        if shorter and _reads_beyond(own, x, n):
            raise ValueError(
                f"{listed(shorter)} of {type(model).__name__} {_rows(shorter, n - 1)}, and `n_data` is {n:,}."
            )
        for i in range(-1, n if longer else -1):  # the prior first
            try:
                values = [one.prior_potential(x) if i < 0 else one.term_potential(x, i) for one in both]
            except (LookupError, ArithmeticError, ValueError):  # an index that was changed
                return
            if not np.array_equal(*values, equal_nan=True):
                return
    more = rows[longer[0]] - n if longer else 0
    if longer and n + more != model.dim:
        last, few = ("the last", "one") if more == 1 else (f"the last {more:,}", f"{more:,}")
        warn(
            f"{listed(longer)} of {type(model).__name__} {_rows(longer, n + more)}, and no term reads {last}: `n_data` "
            f"= {n:,} seems {few} too small."
        )


def _rows(names, n):
    return f"{'has' if len(names) == 1 else 'have'} {n:,} rows"


def _reads_beyond(model, x, n):
    """Whether the last term reads beyond arrays, and the others do not."""
    model.term_potential(x, n - 2)
    try:
        model.term_potential(x, n - 1)
    except IndexError:
        return True
    return False


def check_propriety(model, initial=None, process=None):
    """Raise a `ValueError` where U of a user's model falls without end, and warn where it is improper otherwise.

    Other targets are left alone, and so are models of the package but for functions and flat priors. `initial` is as of
    a run, not yet checked; the walls of `process` bound the density. Returns evaluations of U and of its gradient; none
    the second time.
    """
    if not isinstance(model, Model) or process is not None and process.prepared.starts is not None:
        return 0
    flat = not np.all(np.isfinite(np.asarray(getattr(model, "prior_scale", 1.0), float)))
    if is_trusted(type(model).__module__) and not isinstance(model, (FunctionModel, SumOfTerms)) and not flat:
        return 0
    (known, walls), count = _judged_by(model, process), 0
    if known not in _judged:
        inside = (lambda x: all(_passes(check, x) for check in walls)) if walls else None
        start = _first_start(model, initial)
        wrong = find_wrong_sign(model, start, inside)
        found, count = (wrong, 1) if wrong is not None and wrong.certain else find_improper(model, start, inside)
        _judged[known] = found or wrong
    found = _judged[known]
    if found is not None and found.certain:
        raise ValueError(found.text)
    if found is not None:
        warn(found.text)
    return count


def improper(model, process=None):
    """What `check_propriety` has said of a density that cannot be normalised, or ""; arguments as there."""
    found = _found(model, process)
    return found.text if found is not None and found.of_density else ""


def suspected(model, process=None):
    """What it has asked of the sign of a part of U, which a summary repeats; as a tuple, empty without."""
    found = _found(model, process)
    return () if found is None or found.of_density else (found.text,)


def _found(model, process):
    known = _judged_by(model, process)[0]
    return _judged.get(known) if isinstance(known, (Model, Process)) else None


def _judged_by(model, process):
    """By whom what is found is known the next time, and checks of the walls of a process."""
    known, walls = model, []
    while isinstance(process, Process):  # `inner` may be anything else
        if process.walled:
            known, walls = process, [*walls, process.check_inside]
        process = getattr(process, "inner", None)
    return known, walls


def _passes(check, x):
    try:
        check(x)
    except ValueError:
        return False
    return True


def _first_start(model, initial):
    """The first of the points `initial`, or the model's own where that is not one."""
    try:
        x = np.array(initial, float).reshape(-1, model.dim)[0]
    except (TypeError, ValueError, IndexError):
        return model.initial
    return x if np.all(np.isfinite(x)) else model.initial


def _check_names(where, owner, name, method):
    parameters = list(inspect.signature(method).parameters)
    known = {parameters[0]: owner} if parameters else {}
    if isinstance(owner, Process) and len(parameters) > 1 and name in ("clock", "rate", "jump", "touches"):
        known[parameters[1]] = State
    known = {n: v for n, v in known.items() if n not in _assigned(method)}
    current, path = None, ""
    for step in dis.get_instructions(method):
        if step.opname.startswith("LOAD_FAST"):
            variable = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
            current, path = known.get(variable), variable
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and current is not None:
            current = _attribute(where, path, current, step.argval)
            path = f"{path}.{step.argval}"
        elif step.opname == "STORE_ATTR" and current is not None:
            raise TypeError(
                f"{where} assigns to `{path}.{step.argval}`, but compiled objects do not change; keep what changes in "
                "an array of the process's `memory`."
            )
        else:
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if step.argval == "super" and "super" not in method.__globals__:
                    base = f"base_{name}"
                    raise TypeError(
                        f"{where} calls super(), which compiled methods do not have: keep the one of the base under a "
                        f"name of its own in the class, `{base} = {type(owner).__mro__[1].__name__}.{name}`, and call "
                        f"`self.{base}(...)`."
                    )
                if step.argval not in method.__globals__ and not hasattr(builtins, step.argval):
                    raise TypeError(f"{where} uses the name `{step.argval}`, which does not exist.")
            if step.opname not in ("CACHE", "EXTENDED_ARG", "PUSH_NULL"):
                current = None


def _assigned(method):
    """Names of local variables that the method gives another value."""
    names = set()
    for step in dis.get_instructions(method):
        if "STORE_FAST" in step.opname:
            names |= set(step.argval) if isinstance(step.argval, tuple) else {step.argval}
    return names


def _attribute(where, path, owner, name):
    """The object ``owner.name`` if it can be followed further, else None; a `TypeError` if there is no such name."""
    if owner is State:
        if name not in State._fields:
            raise TypeError(f"{where} uses `{path}.{name}`; a state has {', '.join(State._fields)}.")
        return None
    cls = type(owner)
    if name in cls._annotations:
        value = getattr(owner, name, None)
        return value if isinstance(value, Compiled) else None
    if name in cls._methods:
        return None
    close = difflib.get_close_matches(name, [*cls._annotations, *cls._methods], n=1)
    if inspect.isfunction(getattr(cls, name, vars(cls._kind_defaults).get(name))):
        hint = f"`{name}` is a method of {cls.__name__} that is not marked @compiled"
    elif hasattr(owner, name):
        hint = f"declare the field in the class {cls.__name__}: a line `{name}: {_type_of(getattr(owner, name))}`"
    elif close:
        hint = f"did you mean `{close[0]}`?"
    else:
        hint = f"{cls.__name__} has neither a field nor a compiled method of that name"
    raise TypeError(f"{where} uses `{path}.{name}`: {hint}")


def _type_of(value):
    """The name of the type with which a field of this value is declared."""
    known = {bool: "bool", int: "int", float: "float", np.ndarray: "np.ndarray"}
    return next((text for kind, text in known.items() if isinstance(value, kind)), type(value).__name__)


def _check_returns(owner, name, method):
    """Raise a `TypeError` if a method that must return a value can end without one."""
    needed = getattr(owner, "_returned", {}).get(name)
    if needed is None:  # as that of the package which it replaces
        bases = [base for base in lookup_order(type(owner)) if name in vars(base) and is_trusted(base.__module__)]
        if not bases or None in _constants_returned(vars(bases[0])[name]):
            return
        needed = f"a value, as that of {bases[0].__name__} does"
    if None in _constants_returned(method):
        raise TypeError(f"`{name}` of {type(owner).__name__} returns nothing: it must return {needed}.")


def _constants_returned(method):
    """The constants that a method returns; None is among them if it can end without a `return`."""
    found, before = set(), None
    for step in dis.get_instructions(method):
        if step.opname == "RETURN_CONST":
            found.add(step.argval)
        elif step.opname == "RETURN_VALUE" and before is not None and before.opname == "LOAD_CONST":
            found.add(before.argval)
        before = step
    return found


def _check_random(where, function, seen):
    """Raise a `TypeError` if the function, or one that it calls, uses another generator than the run's."""
    function = getattr(function, "py_func", function)  # of a numba dispatcher
    package = (function.__module__ or "").partition(".")[0]
    if id(function) in seen or package in _trusted or is_standard(package):
        return
    seen.add(id(function))
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    scope = function.__globals__ | {name: cell_value(cell) for name, cell in cells}
    value, path, own = None, "", {}
    for step in dis.get_instructions(function):
        if step.opname in ("LOAD_GLOBAL", "LOAD_DEREF"):
            value, path = scope.get(step.argval), step.argval
        elif step.opname == "IMPORT_NAME":
            value, path = sys.modules.get(step.argval), step.argval
        elif step.opname == "IMPORT_FROM":
            value, path = getattr(value, step.argval, None), f"{path}.{step.argval}"
        elif step.opname in ("STORE_FAST", "STORE_FAST_LOAD_FAST"):  # the second from Python 3.13 on
            stored, loaded = step.argval if isinstance(step.argval, tuple) else (step.argval, None)
            own[stored] = value, path
            value, path = own.get(loaded, (None, ""))
        elif step.opname.startswith("LOAD_FAST"):
            value, path = own.get(step.argval, (None, ""))
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, (types.ModuleType, type)):
            value, path = getattr(value, step.argval, None), f"{path}.{step.argval}"
        elif step.opname not in ("CACHE", "EXTENDED_ARG", "PUSH_NULL"):
            value = None
        if _differs_each_time(value) or holds_generator(getattr(value, "py_func", value)):
            raise TypeError(
                f"{where} uses `{path}`, whose numbers no `seed` repeats; draw from the argument `rng`: rng.random(), "
                "rng.standard_normal(), rng.standard_exponential(), or int(n * rng.random()) below n."
            )
        if isinstance(value, types.FunctionType) or isinstance(getattr(value, "py_func", None), types.FunctionType):
            _check_random(where, value, seen)


def _differs_each_time(value):
    """Whether a value is a source of random numbers, of the time or of identifiers, by whatever name it is imported."""
    if isinstance(value, type) and issubclass(value, GENERATORS):
        return True
    if not callable(value) and not isinstance(value, types.ModuleType):
        return False
    if getattr(value, "__module__", None) in UNREPEATABLE:
        return value is not _time.sleep
    return any(value is source for source in _UNREPEATABLE)


# ---------------------------------------------------------------------------------------------------------------
# Calling the methods


def rehearse(process, chain):
    """Call the methods of a user's process and model in plain Python; a `TypeError` for the first that fails.

    Or for what they have written to outside of the state: a run of the same seed would then not be the same again.
    """
    before = contents(process)
    _rehearse(process, chain)
    found = written_to(process, before)
    if found is not None:
        raise TypeError(found)
    _check_proposals(process, chain)
    for part in users_parts(process):  # the process itself, or one within walls or with frozen coordinates
        if part is process:
            _check_rates(process, chain)
        elif isinstance(part, Process):
            x, seed = np.array(chain.first), np.random.SeedSequence(0)
            _check_rates(part, type(chain)(part, 0, x, seed, budget=chain.budget, warmup=0.0, store="moments"))


def written_to(process, before):
    """A sentence on the first of `contents` that has changed since, or None."""
    for was, (what, now) in zip(before, contents(process), strict=True):
        if now != was[1]:
            return (
                f"{what} is written to while a run goes on, so that no `seed` repeats "
                "it and chains disturb each other: keep what changes in an array of the process's `memory`."
            )
    return None


def contents(process, of_ours=False):
    """What the user's compiled objects, or all, hold in fields but for addresses, with digests of it.

    In plain Python also what the user's methods name, as variables of their module or of a function around them: in
    compiled code these are constants.
    """
    found = []
    for part in _parts(process, {}):
        cls, volatile = type(part), getattr(type(part), "volatile", ("address",))
        ours, name = is_trusted(cls.__module__), cls.__name__
        for field in () if ours and not of_ours else cls._annotations:
            value = getattr(part, field, None)
            values = value if isinstance(value, tuple) else (value,)
            if field not in volatile:
                most = PIECES_ABOVE if ours else COMPARED_BYTES
                known = [
                    array_digest(a, most) if isinstance(a, np.ndarray) else repr(a)
                    for a in values
                    if isinstance(a, HASHED)
                ]
                others = () if ours else [a for a in values if not isinstance(a, (*HASHED, Compiled))]
                found.append((f"`{field}` of {name}", [*known, fingerprint(others)] if others else known))
        if config.DISABLE_JIT and not ours:
            named = named_by_methods(cls).items()
            found += [(f"what `{method}` of {name} names outside of it", known) for method, known in named]
    return found


def _rehearse(process, chain):
    model = process.model
    if isinstance(model, Model) and not is_trusted(type(model).__module__):
        x, out = np.array(chain.state.x[: model.dim]), np.zeros(model.dim)
        last = model.n_data - 1
        calls = {"prior_potential": (x,), "add_prior_gradient": (x, out)}
        if last >= 0:
            calls |= {"term_potential": (x, last), "add_term_gradient": (x, last, out)}
        for name, arguments in calls.items():
            before = x.copy()
            if _call(model, name, *arguments) is not _FAILED and not np.array_equal(x, before, equal_nan=True):
                raise _moves(model, name, x, before)
        _check_written(model, "partial_curvature_bounds")
    others = users_parts(process)
    for part in others:
        if part._kind == "provider":
            _rehearse_estimator(part, np.array(chain.first))
    if not is_trusted(type(process.flow).__module__):
        _rehearse_flow(process.flow, process.dim)
    if not others or getattr(model, "n_data", 0) > REHEARSED_DATA:
        return
    for i in np.unique(np.linspace(0, process.clocks - 1, REHEARSED_CLOCKS).astype(int)).tolist():
        _rehearse_clock(process, i, copied(chain.state), copy.deepcopy(chain.rng))
    events = min(REHEARSED_EVENTS, REHEARSED_TERMS // (process.clocks * max(getattr(model, "n_data", 0), 1)))
    if process.clocks <= REHEARSED_CLOCKS:
        replay(process, chain.state, chain.rng, events)


def _rehearse_flow(flow, dim):
    """Compare integrals of a user's flow with sums of its `position`: averages along a path are these."""
    rng, (nodes, weights) = np.random.default_rng(0), np.polynomial.legendre.leggauss(8)
    places = (np.arange(PANELS)[:, None] + 0.5 * (1.0 + nodes)).ravel() / PANELS
    weights, begins = np.tile(0.5 * weights, PANELS) / PANELS, np.arange(PANELS) / PANELS
    vander = np.polynomial.legendre.legvander
    at_begin = np.linalg.solve(vander(nodes, 7).T, vander([-1.0], 7)[0])

    def line(i, start, speed, centre, s):
        """Positions, from the centre on; None where they fail, turn many times in a panel, or have corners."""
        found = [_call(flow, "position", i, start, speed, u) for u in s * np.concatenate([places, begins])]
        if any(value is _FAILED for value in found):
            return None
        inside, first = np.split(np.array(found), [len(places)])
        off = np.abs(inside.reshape(PANELS, -1) @ at_begin - first).max()
        return inside - centre if off <= RESOLVED * np.abs(inside).max() else None

    for j in np.unique(np.linspace(0, dim - 1, COORDINATES).astype(int)).tolist():
        k = (j + 1) % dim
        for s in (0.2, 1.3, 9.0):
            (x, y), (v, w), (c, e) = rng.normal(size=(3, 2))
            own, other = line(j, x, v, c, s), line(k, y, w, e, s)
            if own is None or other is None:  # there; at shorter times it may be known
                continue
            sums = {"moments": (own, own * own), "product": (own * other,)}
            called = {"moments": (j, x, v, c, s), "product": (j, x, v, c, k, y, w, e, s)}
            for name, parts in sums.items():
                claimed = _call(flow, name, *called[name])
                if claimed is _FAILED:
                    continue
                for part, (value, terms) in enumerate(zip(np.atleast_1d(claimed), parts, strict=True)):
                    found, size = s * weights @ terms, s * weights @ np.abs(terms)
                    if not abs(value - found) <= INTEGRATED * size:
                        what = ("x(u) - c", "(x(u) - c)²")[part] if name == "moments" else "(x(u) - c)(y(u) - e)"
                        raise TypeError(
                            f"`{name}` of {type(flow).__name__} is not the integral of its `position`: of {what} over "
                            f"s = {s:g}, with (j, x, v, c, …) = ({', '.join(f'{a:.4g}' for a in called[name])}), it "
                            f"says {value:.6g}, and {found:.6g} was found."
                        )


def _moves(owner, name, x, before):
    j = int(np.argmax(~((x == before) | (np.isnan(x) & np.isnan(before)))))
    return TypeError(
        f"`{name}` of {type(owner).__name__} changes its argument `x[{j}]`, which is the path itself: only an event "
        "may change it."
    )


def _rehearse_estimator(provider, x):
    """Call the gradient of a user's provider: a `TypeError` for what is wrong in any case, a warning for its mean.

    At points away from `x`, often the mode, where a gradient without its scale or its prior is nearly right.
    """
    rng = np.random.default_rng(0)
    size = max(provider.terms_per_call, 1) * max(len(x) // 4, 1)
    calls = min(ESTIMATES, REHEARSED_TERMS // (len(DISTANCES) * size))
    for distance in DISTANCES:
        away = distance * rng.choice([-1.0, 1.0], len(x)) * rng.uniform(0.5, 1.0, len(x))
        point = x + np.maximum(1.0, np.abs(x)) * away
        found = _estimates(provider, point, rng, calls)
        if found is not None and (len(found) >= FEW_ESTIMATES or provider.exact and len(found) > 1):
            _compare_mean(provider, point, found, rng)


def _estimates(provider, x, rng, calls):
    """Estimates of the gradient at x, (calls, d), or None where there are none; a `TypeError` for what is wrong."""
    name, counts, found = type(provider).__name__, np.zeros(KINDS + 1, np.int64), np.empty((calls, len(x)))
    memory, before = copied(provider.memory(rng)), x.copy()
    start, generator = copied(memory), copy.deepcopy(rng)
    for k, out in enumerate(found):
        out[:] = k
        if _call(provider, "gradient", x, memory, rng, out, counts) is _FAILED or not np.all(np.isfinite(out)):
            return None
        if not np.array_equal(x, before):
            raise _moves(provider, "gradient", x, before)
    if calls:
        again = np.full(len(x), 1.0)
        _call(provider, "gradient", x, start, generator, again, counts.copy())
        differ = np.flatnonzero(found[0] != again)
        if len(differ):
            raise TypeError(
                f"`gradient` of {name} adds to `out[{differ[0]}]`, or leaves it as it is, or is another one for the "
                "same `rng` and `memory`: it must write its estimate there, as `out` holds what an earlier call left."
            )
    if np.any(np.delete(counts, DATA)):
        raise TypeError(f"`gradient` of {name} changes `counts` elsewhere than in `counts[pdmp.process.DATA]`.")
    if calls and provider.n_data > 0 and counts[DATA] <= 0:
        raise TypeError(
            f"`gradient` of {name} counts no data, so that `data_passes` would never be spent: call "
            "pdmp.process.count_data(counts, n) with the number of terms that it used."
        )
    return found


def _compare_mean(provider, x, found, rng):
    """Warn if the mean of estimates, (n, d), is not the gradient; further ones are taken where it is doubtful."""
    with np.errstate(all="ignore"):
        right = provider.model.gradient(x)
    if not np.all(np.isfinite(right)):
        return
    rounding = 1e-6 * np.abs(right).max()

    def compared(found):
        mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
        return mean, error, np.abs(mean - right) / (error + rounding)

    mean, error, off = compared(found)
    if not provider.exact and 2.0 * DOUBTFUL < off.max() < DEVIATIONS:
        further = _estimates(provider, x, rng, FURTHER * len(found))
        if further is not None:
            found = further
            mean, error, off = compared(found)
    if provider.exact and np.any(error > rounding):
        raise TypeError(
            f"{type(provider).__name__} says `exact = True`, but two calls of its `gradient` at one point differ: "
            "say `exact = False`."
        )
    j = int(np.argmax(off))
    if provider.exact and abs(mean[j] - right[j]) > EQUAL * np.abs(right).max():
        raise TypeError(
            f"`gradient` of {type(provider).__name__} is not the gradient of {type(provider.model).__name__}, though "
            f"`exact` says so: coordinate {j}, at x = {shown(x)}, is {mean[j]:.6g}, not {right[j]:.6g}."
        )
    if abs(mean[j] - right[j]) > DEVIATIONS * error[j] + rounding:
        warn(
            f"`gradient` of {type(provider).__name__} is not that of {type(provider.model).__name__} on average: the "
            f"mean of {len(found)} estimates of coordinate {j} is {mean[j]:.6g} ± {error[j]:.2g} where the gradient is "
            f"{right[j]:.6g}. The samples will be of another distribution."
        )


def _check_written(model, name):
    """Raise a `TypeError` if what a method of the user's leaves in `out` depends on what was there before."""
    method, found = type(model)._methods.get(name), []
    if method is None or is_trusted(method.__module__):
        return
    for before in (0.0, 1.0):
        found.append(np.full(model.dim, before))
        if _call(model, name, np.ones(model.dim), found[-1]) is _FAILED:
            return
    differ = np.flatnonzero((found[0] != found[1]) & ~np.isnan(found[0]))
    if len(differ):
        raise TypeError(
            f"`{name}` of {type(model).__name__} adds to `out[{differ[0]}]`, or leaves it as it is: it must write the "
            "bound there, `out[j] = …`, as `out` holds what an earlier call has left."
        )


def _check_proposals(process, chain):
    """Warn where proposals of a user's clock or bound do not come at the rate that it says they have.

    Of n times with the hazard b, the spacings between neighbours times b and the number of those still to come are
    independent Exp(1) variables. Bounds that change from call to call at the same time are left alone.
    """
    mine = [part for part in users_parts(process) if part._kind != "provider"]
    data = max(getattr(process.model, "n_data", 0), 1)
    most = PROPOSED_NUMBERS // (data * process.dim)
    calls = min(PROPOSALS, REHEARSED_TERMS // data, most)
    if not mine or any(getattr(part, "adapts", False) for part in mine) or calls < FEWEST:
        return
    native, state, rng = _python(process), copied(chain.state), np.random.default_rng(0)
    now, name = float(state.now[0]), type(mine[0]).__name__

    def proposals(i, many):
        pairs = []
        for _ in range(many):
            proposal = _attempt(process, native, "clock", (state, i, now, rng))
            if not isinstance(proposal, tuple) or len(proposal) != 2 or proposal[1] == CERTAIN and proposal[0] < np.inf:
                return None
            pairs.append(proposal)
        return np.array(sorted(pairs), float)

    for i in range(min(process.clocks, 2)):
        seen = proposals(i, calls)
        found = None if seen is None else _spacings(seen)
        if found is not None and DOUBTFUL < abs(found[0] - 1.0) * math.sqrt(found[1]) < SPACINGS:
            further = proposals(i, min(FURTHER * calls, most))
            found = None if further is None else _spacings(further)
        state.bounds[i] = 2.0
        always = _attempt(process, native, "rate", (state, i, now, rng)) == 2.0  # events, whatever is stated
        if found is not None and abs(found[0] - 1.0) > SPACINGS / math.sqrt(found[1]) and not always:
            warn(
                f"{name} proposes at other times than the bounds that it returns say: times between {found[1]:,} "
                f"proposals of clock {i} are {found[0]:.3g} times as long as theirs. Accepted with probability rate / "
                "bound, they are events of another process: the bound must be the intensity of the proposals."
            )
            return


def _check_rates(process, chain):
    """Warn where a user's rate stands beside a jump of ours and does not belong to it.

    A process that turns back has the law of U if the rates at v and at -v differ as v·∇U says, whatever is added to
    both. Rates that are random are left alone.
    """
    defined = {
        name: next((base for base in lookup_order(type(process)) if name in vars(base)), object)
        for name in ("rate", "jump", "clock", "true_rates", "channels", "memory")
    }
    users = {name for name, base in defined.items() if not is_trusted(base.__module__)}
    channels = len(list(process.channels()))
    if users != {"rate"} or process.clocks not in (1, channels) or process.model.n_data > REHEARSED_DATA:
        return
    x, rng = np.array(chain.state.x), np.random.default_rng(0)
    x += DISTANCES[0] * np.maximum(1.0, np.abs(x)) * rng.uniform(-1.0, 1.0, len(x))
    now = float(chain.state.now[0]) + 1e-9  # a gradient that is known is of the start
    clocks, differences = range(min(process.clocks, REHEARSED_CLOCKS)), []
    for sign in (1.0, -1.0):
        state, out = copied(chain.state), np.zeros(channels)
        state.x[:], state.v[:] = x, sign * chain.state.v
        with readable(type(process).__name__), np.errstate(all="ignore"):
            true_rates_of(process.native, x.copy(), state.v.copy(), np.zeros(process.dim), out)
            first, again = (
                np.array([rate_of(process.native, copied(state), i, now, np.random.default_rng(k)) for i in clocks])
                for k in range(2)
            )
        if not np.array_equal(first, again):
            return
        wanted = np.maximum(out, 0.0)[: len(clocks)] if process.clocks == channels else [np.maximum(out, 0.0).sum()]
        differences.append(sign * np.array([first, wanted]))
    got, wanted = differences[0] + differences[1]
    wrong = (wanted != 0.0) & ~(np.abs(got - wanted) <= 1e-6 * np.abs(wanted).max())
    if np.all(np.isfinite(wanted)) and np.any(wrong):
        i, of_base = int(np.argmax(wrong)), defined["jump"].__name__
        warn(
            f"`rate` of {type(process).__name__} does not belong to its jump, that of {of_base}: near the start the "
            f"rate of clock {i} is larger by {got[i]:.4g} than at the opposite velocity, where the law of U needs "
            f"{wanted[i]:.4g}. So its law is another one, or it never turns; or the rate is not asked for, where the "
            "clock knows the time of the next event."
        )


def _spacings(proposals):
    """The mean spacing of sorted proposals (n, 2) in units of what their bounds say, and of how many it is.

    None where too few are proposals, or where bounds change from call to call.
    """
    times, bounds = proposals.T
    left = len(times) - np.arange(len(times))
    proposed = np.isfinite(times) & np.isfinite(bounds) & (bounds != HORIZON)
    times, bounds, left = times[proposed], bounds[proposed], left[proposed]
    if len(times) < FEWEST // 2 or np.abs(np.diff(bounds)).sum() > WAVES * np.ptp(bounds) + 1e-9 * bounds.max():
        return None
    spacings = np.diff(times) * 0.5 * (bounds[1:] + bounds[:-1]) * left[1:]
    spacings = spacings[spacings < LONGEST]
    return spacings.mean() / (1.0 - LONGEST / math.expm1(LONGEST)), len(spacings)


def _python(owner):
    """``owner.native`` in plain Python, whether or not there is a compiler."""
    return owner.native if config.DISABLE_JIT else _plain(owner, {})


def _rehearse_clock(process, i, state, rng):
    """Do once what the event loop does with clock i, whose proposal is an event; and ask it for the next one."""
    time, bound = _propose(process, state, i, rng)
    if not np.isfinite(time):
        return
    rate = _rate(process, state, i, time, rng)
    may = _advance(process, state, i, time)
    done = may is not _FAILED and _jump(process, state, i, time, rng, may) is not _FAILED
    if done and (bound == CERTAIN or bound != HORIZON and rate is not _FAILED and rate > 0.0):  # it can happen
        _propose(process, state, i, rng)


def watch_of(process):
    """What replays the next events now and then; None where all that runs is of tested packages."""
    return replay if users_parts(process) else None


def replay(process, state, rng, candidates):
    """The next candidates of a run, on copies and in plain Python; a `TypeError` for what would go wrong in them.

    At the start what fails in any case is seen, and in a run, now and then, a clock or a rate that changes the path.
    """
    first, last, what = state.pending
    if (last - first) * max(getattr(process.model, "n_data", 0), 1) > REHEARSED_TERMS:
        return
    state, rng, stood = copied(state), copy.deepcopy(rng), 0
    times = np.full(process.clocks, np.inf)
    times[state.heap] = state.keys
    state.keys[:] = 0.0  # else infinite at first: a method that adds to them would not be seen
    for j in range(first, last) if what == CLOCKS else process.order[first:last]:
        times[j] = _propose(process, state, int(j), rng)[0]
    for _ in range(candidates):
        i, now = int(np.argmin(times)), float(state.now[0])
        if not np.isfinite(times[i]):
            return
        stood = stood + 1 if times[i] == now and state.bounds[i] == CERTAIN else 0
        if stood == STANDING:
            raise _not_after(process, now, now)
        rate = _rate(process, state, i, times[i], rng)
        if rate is _FAILED:
            return
        bound, redrawn = state.bounds[i], [i]
        if bound == CERTAIN or bound != HORIZON and rng.random() * bound < rate:
            may, before = _advance(process, state, i, times[i]), copied(state)
            if may is _FAILED or _jump(process, state, i, times[i], rng, may) is _FAILED:
                return
            redrawn = process.order[process.start[i] : process.start[i + 1]]
            _check_dependents(process, i, before, state, times, rng)
        state.now[0] = times[i]
        for j in redrawn:
            times[j] = _propose(process, state, int(j), rng)[0]


def _check_dependents(process, i, before, after, times, rng):
    """Raise a `TypeError` if an event of clock i has changed the law of a clock that is not drawn anew after it.

    Of a clock that has proposed an event the next one is drawn with the same random numbers before and after; of a
    thinned one the rate at its proposal is compared, unless it is random. What adapts may differ from then on.
    """
    if is_trusted(type(process).__module__) or any(getattr(part, "adapts", False) for part in _parts(process, {})):
        return
    native, now = _python(process), float(after.now[0])
    others = np.setdiff1d(np.arange(process.clocks), process.order[process.start[i] : process.start[i + 1]])
    for k in others[:REHEARSED_CLOCKS].tolist():
        bound = after.bounds[k]
        if k == i or bound == HORIZON or bound != CERTAIN and not times[k] < np.inf:
            continue
        method, time = ("clock", now) if bound == CERTAIN else ("rate", float(times[k]))

        def asked(state, generator, k=k, method=method, time=time):
            found = _attempt(process, native, method, (copied(state), k, time, copy.deepcopy(generator)))
            if method == "clock" and isinstance(found, tuple) and len(found) == 2:
                found = found[0] - now if found[1] == CERTAIN else None
            return found if isinstance(found, numbers.Real) else math.nan

        was, new = asked(before, rng), asked(after, rng)
        if math.isnan(was) or math.isnan(new) or math.isclose(was, new, rel_tol=1e-6, abs_tol=1e-9):
            continue
        if method == "clock" or asked(before, np.random.default_rng(0)) == was:
            what = "waiting time, with the same random numbers," if method == "clock" else "rate"
            raise TypeError(
                f"an event of clock {i} of {type(process).__name__} changes the law of clock {k}, whose {what} is "
                f"{new:.6g} after it and was {was:.6g}, but `dependents[{i}]` does not name clock {k}, which stays as "
                f"it was drawn: name it there."
            )


def _not_after(process, time, now):
    return TypeError(
        f"`clock` of {type(process).__name__} returned the time {time:.6g} when `now` was {now:.6g}: it must return "
        "`now` plus a waiting time."
    )


def _propose(process, state, i, rng):
    """When clock i proposes next, and its bound there; never if that cannot be told."""
    name, now = type(process).__name__, float(state.now[0])
    proposal = _unchanged(process, state, "clock", state, i, now, rng)
    if proposal is _FAILED:
        return np.inf, CERTAIN
    if not isinstance(proposal, tuple) or len(proposal) != 2:
        raise TypeError(f"`clock` of {name} must return a time and a bound, got {proposal!r}.")
    time, state.bounds[i] = proposal
    if math.isnan(proposal[1]):
        raise TypeError(
            f"`clock` of {name} returns the bound nan: it must be a number above the rate, CERTAIN or HORIZON."
        )
    if time < now:
        raise _not_after(process, time, now)
    return proposal


def _rate(process, state, i, time, rng):
    """The rate of clock i at its proposal; that of a proposal without a bound is not asked for."""
    bound = float(state.bounds[i])
    if bound in (CERTAIN, HORIZON):
        return bound
    missing = missing_rate(process, bound)
    if missing is not None:
        raise TypeError(f"{missing}.")
    rate = _unchanged(process, state, "rate", state, i, time, rng)
    if rate is not _FAILED and not isinstance(rate, numbers.Real):
        raise TypeError(f"`rate` of {type(process).__name__} must return {process._returned['rate']}, got {rate!r}.")
    return rate


def _advance(process, state, i, now):
    """Move the coordinates that an event of clock i may change to its time, and return which; `_FAILED` if it did."""
    may, local = range(process.dim), state.moved.shape[0] > 1
    if local:
        places = _call(process, "touches", state, i)
        if places is _FAILED:
            return _FAILED
        may = [int(process.native.coordinate(k)) for k in range(*places)]
    for j in may:
        x, v, passed = state.x[j], state.v[j], now - last_moved(state.moved, j)
        state.x[j], state.v[j] = process.flow.position(j, x, v, passed), process.flow.velocity(j, x, v, passed)
    state.moved[may if local else 0] = state.now[0] = now
    return may


def _jump(process, state, i, now, rng, may):
    """Carry out an event of clock i, which may change the coordinates `may`; `_FAILED` if it did."""
    taken = getattr(state.memory, "taken", None) if process.ticks == 1 else None
    before = None if taken is None else taken.copy()
    kind = _unchanged(process, state, "jump", state, i, now, rng, may=may)
    if kind is _FAILED:
        return _FAILED
    if taken is not None and kind >= 0 and np.any(taken != before + 1):
        raise TypeError(
            f"a step of {type(process).__name__} adds {int(taken[0] - before[0])} to `memory.taken[0]`, by which the "
            "schedule and the clock know how many were taken: `jump` must add 1, and `move` nothing."
        )
    if not isinstance(kind, numbers.Integral) or kind >= len(process.events):
        raise TypeError(
            f"`jump` of {type(process).__name__} must return {process._returned['jump']}, "
            f"0 … {len(process.events) - 1}, or -1 for a state that is not finite; got {kind!r}."
        )
    return kind if kind >= 0 else _FAILED


def _unchanged(process, state, name, *arguments, may=()):
    """What a method returns, which must leave the path of all coordinates but those in `may` as it is.

    And all that the event loop keeps: times, its heap of candidates, and counts but that of data.
    """
    path = {field: getattr(state, field) for field in State._fields if field != "memory"}
    before = {field: array.copy() for field, array in path.items()}
    result = _call(process, name, *arguments)
    for field, array in path.items():
        different = (array != before[field]) & ~(np.isnan(array) & np.isnan(before[field]))
        if field == "counts":
            different[DATA] = False
        own = field in ("x", "v")
        if own:
            different[list(may)] = False
        if result is not _FAILED and different.any():
            allowed = "only an event may change it" if own else "the event loop keeps it"
            if name == "jump" and own:
                allowed = f"an event of clock {arguments[1]} may change what its row of `scope` names, {list(may)}"
            parts = [type(part).__name__ for part in users_parts(process) if part is not process]
            own = f", or a method of {' or '.join(parts)}," if is_trusted(type(process).__module__) else ""
            raise TypeError(
                f"`{name}` of {type(process).__name__}{own} changes `state.{field}[{np.argmax(different)}]`: {allowed}."
            )
    return result


def _call(owner, name, *arguments):
    """What the method returns in plain Python; `_FAILED` if it failed in a way that need not concern compiled code."""
    if not config.DISABLE_JIT:  # first with plain helpers: compiled ones do not check indices, and take time to compile
        kept = copy.deepcopy(arguments)
        result = _attempt(owner, _plain(owner, {}), name, arguments)
        if result is not _FAILED:
            return result
        for argument, old in zip(arguments, kept, strict=True):
            _restore(argument, old)
    return _attempt(owner, owner.native, name, arguments)


def _restore(argument, old):
    if isinstance(argument, np.random.Generator):
        argument.bit_generator.state = old.bit_generator.state
    elif isinstance(argument, np.ndarray):
        np.copyto(argument, old)
    elif isinstance(argument, tuple):
        for part, old_part in zip(argument, old, strict=True):
            _restore(part, old_part)


def _attempt(owner, native, name, arguments):
    try:
        with silenced(), np.errstate(all="ignore"):
            return getattr(native, name)(*arguments)
    except (AttributeError, NameError, TypeError, LookupError) as error:
        trace, frames = error.__traceback__.tb_next, []
        while trace is not None:
            frames.append((trace.tb_frame.f_code, trace.tb_lineno, trace.tb_frame.f_globals.get("__name__")))
            trace = trace.tb_next
        own = [frame for frame in frames if not is_trusted(frame[2])]
        inside = bool(frames) and is_trusted(frames[-1][2])
        # An index out of bounds inside a package is caused by the arguments that the user's method passed. Any other
        # error inside a package may be a difference between plain Python and compiled code.
        if not own or inside and not isinstance(error, IndexError):
            return _FAILED
        code, line, _ = own[-1]
        place = f"line {line} of {code.co_filename}" + (f", in its call of `{frames[-1][0].co_name}`" if inside else "")
        raise TypeError(
            f"`{name}` of {type(owner).__name__} fails in plain Python: {type(error).__name__}: {error} ({place})"
        ) from error
    except Exception:  # noqa: BLE001 - arithmetic that raises in Python and gives inf or NaN when compiled
        return _FAILED


def _plain(owner, known):
    """``owner.native`` with the plain functions of all compiled ones that its methods call by name."""
    native = owner.native
    parts = [getattr(owner, field, None) for field in native._fields]
    values = [
        _plain(part, known) if isinstance(part, Compiled) and not _is_large(part) else value
        for part, value in zip(parts, native, strict=True)
    ]
    methods = {name: _plain_function(method, known) for name, method in type(owner)._methods.items()}
    return type(type(native).__name__, (type(native),), methods)(*values)


def _is_large(part):
    """Whether a part is a model of ours whose gradient takes long in plain Python."""
    ours = isinstance(part, Model) and is_trusted(type(part).__module__)
    return ours and part.n_data * part.dim > REHEARSED_NUMBERS


def _plain_function(function, known):
    function = getattr(function, "py_func", function)
    if function not in known:
        scope = dict(function.__globals__)
        known[function] = types.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
        )
        for name in function.__code__.co_names:
            value = scope.get(name)
            if isinstance(getattr(value, "py_func", None), types.FunctionType):
                scope[name] = _plain_function(value, known)
            elif hasattr(value, "in_plain_python"):
                scope[name] = value.in_plain_python
    return known[function]
