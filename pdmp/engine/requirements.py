"""What a worker must have in common with the process that coordinates a run, as a chain goes on from one to the other.

Versions of what computes, the files of this package, the functions and classes that are pickled by name, with all that
they name, and values of a potential that a Python function computes. Of what a Python function names that may change,
lists, arrays and objects, that counts which a call of the function leaves as it is: the rest is what it keeps there. A
worker that differs refuses its work by name: its path would be that of another process, or another one for the same
seed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import pickle
import platform
import sys
import time

import numpy as np

from pdmp.engine.checkpoint import model_values, same_values
from pdmp.engine.preflight import is_trusted
from pdmp.errors import SamplingError
from pdmp.models.verification import shown
from pdmp.native.classes import Compiled
from pdmp.native.fingerprints import hash_of_files, parts

#: Libraries of which another version may compute other last bits, or draw other random numbers.
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")
NAMED = 3  #: how many functions and classes that differ are named
POINTS = (0.0, 0.1, 3.0, -10.0, 30.0)  #: where potentials are compared, see `model_values`
_FOLDER = pathlib.Path(__file__).parents[1]
_begun = time.time()
_checked = set()  # in a worker: hashes of what was sent to it


@functools.cache
def versions():
    """Versions by name, in the order in which they are named; of this package with a hash of its files."""
    digest, last = hash_of_files(_FOLDER)
    text = f"{sys.modules[_FOLDER.name].__version__} (files {digest[:12]}"
    text += f", edited after process {os.getpid()} of {platform.node()} had read them)" if last > _begun else ")"
    found = {"Python": ".".join(map(str, sys.version_info[:2])), _FOLDER.name: text}
    return found | {name: str(sys.modules[name].__version__) for name in LIBRARIES if name in sys.modules}


def _module(name):
    """The name of the module of a function or class."""
    while name and name not in sys.modules:
        name = name.rpartition(".")[0]
    return name


def _file(module):
    return getattr(sys.modules.get(module), "__file__", None) or "none"


def _has(value, what):
    """Whether an object of compiled methods, or one that it is made of, has what is asked for."""
    return isinstance(value, Compiled) and (
        what(value) or any(_has(getattr(value, name, None), what) for name in value._annotations)
    )


def requirements_of(values, tables=False):
    """What a worker needs that gets `values`, pickled; see `pdmp.native.fingerprints.parts` for `tables`."""
    code = parts(values, tables)
    files = {module: _file(module) for module in {_module(name) for name in code}}
    required = {"versions": versions(), "code": code, "files": files, "values": [], "tables": {}}
    return pickle.dumps(required, protocol=5)


def with_potential(required, process, x):
    """The same with values of the potential around `x`, if it is a user's; of a Python function with tables."""
    named = _has(process, lambda value: hasattr(value, "callback"))
    # Methods of the user's may call what no hash knows all of: in object mode, or without machine code at all.
    if not named and not _has(process, lambda value: not is_trusted(type(value).__module__)):
        return required
    found = [model_values(process.model, x, POINTS)]
    before = parts([process], True) if named else {}
    # Elsewhere each time: else what a function keeps for each point would have been there before.
    model_values(process.model, x + 1e-3 * np.random.default_rng().standard_normal(np.shape(x)), POINTS)
    found.append(model_values(process.model, x, POINTS))
    after = parts([process], True) if named else {}
    if not same_values(process.model, *found):  # it is another one each time
        return required
    tables = {name: hashes for name, hashes in after.items() if before.get(name) == hashes}
    return pickle.dumps(pickle.loads(required) | {"values": found[0], "tables": tables}, protocol=5)


def gradient_of_function(chain):
    """A point and the gradient there, for `fault_of_thread`; None of a model that is no Python function's.

    Nor where the function is not defined, or has another gradient each time. What it raises once is raised.
    """
    process = chain.process
    if not _has(process, lambda value: hasattr(value, "callback")):
        return None
    x = np.asarray(chain.state.x)[: process.model.dim]  # a process may have coordinates of its own behind them
    # Not at the position itself, where the gradient may be 0 whatever the function reads.
    point = x + 0.1 * np.maximum(1.0, np.abs(x)) * np.random.default_rng(x.size).standard_normal(x.shape)
    (first, failed), (second, again) = _gradient(process.model, point), _gradient(process.model, point)
    if (failed is None) != (again is None) or isinstance(failed, KeyboardInterrupt):
        raise failed or again
    return (point, first) if failed is None and same_values(process.model, first, second) else None


def _gradient(model, point):
    """The gradient at a point, and why it is none."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(model.gradient(point), dtype=float)
    except BaseException as error:  # noqa: BLE001 - outside its support a function may raise anything
        return None, error
    if np.all(np.isfinite(found)):
        return found, None
    return found, SamplingError(f"the gradient of {type(model).__name__} is not finite at x = {shown(point)}.")


def fault_of_thread(model, point, gradient):
    """What is wrong where a Python function computes another gradient in this thread than in the caller's; or None."""
    found, failed = _gradient(model, point)
    if failed is None and not same_values(model, found, gradient):
        return SamplingError(
            f"the function of {type(model).__name__} computes another gradient in a thread of the run than in the "
            "caller's, as it reads what each thread has its own of, such as threading.local, or works in what another "
            "thread changes meanwhile: keep the first in a ContextVar, and the second within the function."
        )
    return failed


def check_versions(required):
    """A `SamplingError` where the versions of this worker are not those of the process that coordinates."""
    here = versions()
    for name, version in pickle.loads(required)["versions"].items():
        if here.get(name) != version:
            refuse(f"has {name} {here.get(name)}, not {version} as here", "install the same version there")


def check_code(required, values, tables=False):
    """A `SamplingError` where a function or class of `values` is not the same in this worker."""
    required = pickle.loads(required)
    given, here = required["code"], parts(values, tables)
    other = [name for name in given if name in here and here[name] != given[name]]
    if other:
        more = f" and {len(other) - NAMED} more" if len(other) > NAMED else ""
        module = _module(other[0])
        refuse(
            f"has another {', '.join(other[:NAMED])}{more}, of the file {_file(module)} (here "
            f"{required['files'].get(module)})",
            "restart the workers with the same files",
        )


def check_potential(required, process, x):
    """A `SamplingError` where a potential has other values in this worker, or names other tables."""
    required = pickle.loads(required)
    values, tables = required["values"], required["tables"]
    if values and not same_values(process.model, model_values(process.model, x, POINTS), values):
        refuse(
            f"computes another potential of {type(process.model).__name__} with the same functions",
            "give it the same files, data and settings",
        )
    here = parts([process], True) if tables else {}
    other = next((name for name in tables if name in here and here[name] != tables[name]), None)
    if other is not None:
        refuse(
            f"has other values of what {other} of the file {_file(_module(other))} names, a list, an array, an object "
            "or a function",
            "give it the same files, data and settings",
        )


def check(required, values):
    """Both of work that names functions, with the tables that they name, once for each process that sends it."""
    key = hashlib.sha256(required).digest()
    if key not in _checked:
        check_versions(required)
        check_code(required, values, tables=True)
        _checked.add(key)


def refuse(what, cure):
    """Refuse in this worker what was sent to it."""
    raise SamplingError(f"`executor`: the worker on {platform.node()} (process {os.getpid()}) {what}; {cure}.")
