"""One readable line for a misspelt name in a compiled method of one's own, before anything compiles.

Two looks, both at classes from outside the packages only. `check_names` reads the methods: every ``self.name`` must be
a declared field or a compiled method, every ``state.name`` an entry of the state, every global name must exist.
`rehearse` calls the methods once in plain Python, on a copy of a chain's first state.
"""

from __future__ import annotations

import builtins
import copy
import difflib
import dis
import inspect
import warnings

import numpy as np

from pdmp.engine.storage import copied
from pdmp.models.base import Model
from pdmp.native.classes import Compiled
from pdmp.process import CERTAIN, HORIZON, Process, State

#: A rehearsal in plain Python is for small data.
REHEARSED_DATA = 5_000
_trusted = {"pdmp", "numba", "numpy", "llvmlite"}


def trust(package: str) -> None:
    """Exempt the classes of an importable package that has tests of its own: a run then starts a little faster."""
    _trusted.add(package)


def _is_ours(module):
    """Whether code of this module needs no trial."""
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


def check_names(process):
    """Raise a `TypeError` for the first meaningless name in a method of the process or of what it is made of."""
    for part in _parts(process, {}):
        for name, method in type(part)._methods.items():
            if not _is_ours(method.__module__):
                _check_method(part, name, method)


def _check_method(owner, name, method):
    where = f"`{name}` of {type(owner).__name__}"
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
    """What ``owner.name`` is, as far as it can be followed; a `TypeError` when it is nothing."""
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
    if inspect.isfunction(getattr(cls, name, None)):
        hint = f"`{name}` is a method of {cls.__name__} that is not marked @compiled"
    elif hasattr(owner, name):
        hint = f"declare the field in the class {cls.__name__}: a line `{name}: <type>`"
    elif close:
        hint = f"did you mean `{close[0]}`?"
    else:
        hint = f"{cls.__name__} has neither a field nor a compiled method of that name"
    raise TypeError(f"{where} uses `{path}.{name}`: {hint}")


def rehearse(process, chain):
    """Call the methods of one's own process and model once in plain Python; a `TypeError` for the first that fails."""
    model = process.model
    if isinstance(model, Model) and not _is_ours(type(model).__module__):
        x, out = np.array(chain.state.x[: model.dim]), np.zeros(model.dim)
        kernel, last = model.native, model.n_data - 1
        calls = {"prior_potential": (x,), "add_prior_gradient": (x, out)}
        if last >= 0:
            calls |= {"term_potential": (x, last), "add_term_gradient": (x, last, out)}
        for name, arguments in calls.items():
            _call(model, kernel, name, *arguments)
    if _is_ours(type(process).__module__) or getattr(model, "n_data", 0) > REHEARSED_DATA:
        return
    kernel, state, rng = process.native, copied(chain.state), copy.deepcopy(chain.rng)
    now = float(state.now[0])
    ring = _call(process, kernel, "clock", state, 0, now, rng)
    if ring is None:
        return
    if not isinstance(ring, tuple) or len(ring) != 2:
        raise TypeError(f"`clock` of {type(process).__name__} must return a time and a bound, got {ring!r}.")
    time, bound = ring
    if not np.isfinite(time):
        return
    if bound not in (CERTAIN, HORIZON):
        _call(process, kernel, "rate", state, 0, time, rng)
    _call(process, kernel, "jump", state, 0, time, rng)


def _call(owner, kernel, name, *arguments):
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return getattr(kernel, name)(*arguments)
    except (AttributeError, NameError, TypeError, LookupError) as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        if _is_ours(trace.tb_frame.f_globals.get("__name__")):
            # Raised within the packages: for what they were given, or because plain Python differs from compiled code.
            return None
        raise TypeError(
            f"`{name}` of {type(owner).__name__} fails in plain Python: {type(error).__name__}: {error}"
        ) from error
    except Exception:  # noqa: BLE001 - arithmetic that raises in Python and gives inf or NaN when compiled
        return None
