"""What functions of the package answer to small inputs, by room: what a change that should alter no answer leaves.

    python -m tests.answers                       compare with the figures kept beside the modules
    python -m tests.answers formulas smooth       only the cases whose names contain one of these
    python -m tests.answers --record formulas.    keep what is found now, of these cases

`tests/test_answers.py` compares them, all but a few in the quick tier, and `tests/recorded.py` says what is kept of
one. A case is a function under `@case` in the module of its room, or a line of a loop that calls `case`. It says
nothing of why an answer is right: whoever adds one has checked it by another way, and what can be checked cheaply has
its own test.

Inputs are such that no two parts of an answer are equal by chance of design: several unequal chains, groups and rows,
weights and scales that differ, a missing value, another order than the sorted one.
"""

from __future__ import annotations

import functools
import importlib
import pathlib
import pkgutil
import warnings

import numpy as np

from pdmp.engine import preflight
from tests.recorded import folded

CASES = {}


def case(function, name=None):
    """Register a function of no arguments by its module and name."""
    name = f"{function.__module__.rpartition('.')[2]}.{name or function.__name__}"
    assert name not in CASES, name
    CASES[name] = function
    return function


def once(function):
    """As `functools.cache`, and each call warns of what the first did: no answer is then that of an order of cases."""

    @functools.cache
    def first(*args, **named):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            return function(*args, **named), said

    @functools.wraps(function)
    def again(*args, **named):
        found, said = first(*args, **named)
        for each in said:
            warnings.warn(each.message, stacklevel=2)
        return found

    return again


def cases():
    """Every case by its name: a function that gives what is kept of the answer and of warnings, as numbers."""
    for module in pkgutil.iter_modules(__path__):
        if module.name != "__main__":
            importlib.import_module(f"{__name__}.{module.name}")
    return {name: functools.partial(answer, function) for name, function in CASES.items()}


def answer(function):
    """What is kept of a case."""
    preflight._judged.clear()  # what was found of models by another case, which asked for fewer gradients then
    with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        found = folded(function())
    ours = [folded(str(each.message)) for each in said if issubclass(each.category, UserWarning)]
    return {"answer": found, "warned": ours} if ours else {"answer": found}


def file_of(name):
    """Where the figures of a case are kept."""
    return pathlib.Path(__file__).parent / f"{name.partition('.')[0]}.json"
