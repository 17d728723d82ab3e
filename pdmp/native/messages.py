"""Messages about compilation: that it begins, that a method does not compile, that machine code is not kept on disk."""

from __future__ import annotations

import contextlib
import contextvars
import dis
import os
import re

import numba
import numpy as np
from numba.core import errors

from pdmp.errors import warn

#: Named tuples with their compiled methods, by what the names of their numba types begin with.
CLASSES = {}
_warned = set()
_listener = contextvars.ContextVar("listener", default=None)
QUICK = 1.0  #: seconds that nobody needs to be told of


def warn_not_kept():
    """Warn, once in a process, that machine code is not kept on disk."""
    if not _warned:
        _warned.add(True)
        warn(
            "machine code is not kept: no folder for it can be written, so each process compiles anew. Set the "
            "environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            RuntimeWarning,
        )


@contextlib.contextmanager
def announcing(say):
    """Within this context, call `say` with a line of text when something begins to compile; None changes nothing."""
    if say is None:
        yield
        return
    said = set()

    def listener(text):
        if text not in said:
            said.add(text)
            say(text)

    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def announce(seconds):
    """Say that a function begins to compile, which took so many seconds last time; None: not known."""
    listener = _listener.get()
    if listener is not None and (seconds is None or seconds >= QUICK):
        known = "the machine code is kept on disk" if seconds is None else f"{seconds:.0f} s last time on this machine"
        listener(f"compiling (once; {known})")


#: Parts of the lines in which numba's text gives its reason; the first such line is shown.
_TELLING = ("Unknown attribute", "annot ", "NameError", "Invalid use", "must ", "upported", "No implementation")
_F_STRINGS = {"FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "BUILD_STRING"}
_LIBRARIES = tuple(os.path.join(os.path.dirname(module.__file__), "") for module in (numba, np))
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


@contextlib.contextmanager
def readable(what):
    """Turn numba's error for a method that does not compile into one line, a `TypeError`; `what` names the classes."""
    try:
        yield
    except (errors.NumbaError, errors.UnsupportedBytecodeError, AttributeError) as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        # Numba itself fails with an `AttributeError` for an attribute that a module does not have.
        if isinstance(error, AttributeError) and _PACKAGE in trace.tb_frame.f_code.co_filename:
            raise
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        methods = _methods(text)
        where, why = _place(text, methods), _reason(text)
        if isinstance(error, AttributeError):
            where = _reading(text.rpartition("'")[0].rpartition("'")[2]) or where
        for method in methods[-1:]:
            line = _line(method, lambda step: step.opname in _F_STRINGS)
            if line and ("NRT required" in text or "str" in why):
                where = method.__code__.co_filename, line
                why = "it makes a string (an f-string), but compiled methods work with numbers and arrays"
        where = f" at {where[0]}, line {where[1]}" if where else ""
        raise TypeError(f"a compiled method of {what} does not compile{where}: {why}") from error


def _methods(text):
    """The methods that numba was compiling, outermost first; without those of this package if there are others."""
    found = [
        getattr(CLASSES.get(key), name, None)
        for name, key in re.findall(r">>> (\w+)\(([^\s(]+#[\w-]+\[[^\]]*\])", text)
    ]
    found = [method for method in found if method is not None]
    return [method for method in found if not method.__code__.co_filename.startswith(_PACKAGE)] or found


def _line(function, wanted):
    """The line of the first instruction for which `wanted` is true; None if there is none."""
    for step in dis.get_instructions(function):
        if wanted(step):
            return next(n for start, end, n in function.__code__.co_lines() if start <= step.offset < end)
    return None


def _reading(attribute):
    """File and line of a compiled method outside this package that reads this attribute."""
    methods = (method for cls in CLASSES.values() for method in vars(cls).values() if hasattr(method, "__compiled__"))
    for method in methods:
        if not method.__code__.co_filename.startswith(_PACKAGE):
            line = _line(method, lambda step: step.opname.startswith("LOAD_") and step.argval == attribute)
            if line:
                return method.__code__.co_filename, line
    return None


def _place(text, methods):
    """File and line of the innermost code outside libraries, which numba's text names first."""
    found = re.findall(r'(?:at|[Rr]aised from) (\S*) \((\d+)\)$|File "(.*)", line (\d+):$', text, re.MULTILINE)
    places = [(path or (name if name.startswith("<") else os.path.abspath(name)), n or m) for path, n, name, m in found]
    places = [place for place in places if not place[0].startswith(_LIBRARIES)]
    own = [place for place in places if not place[0].startswith(_PACKAGE)]
    if own:
        return own[0]
    if methods and (not places or not methods[-1].__code__.co_filename.startswith(_PACKAGE)):
        return methods[-1].__code__.co_filename, methods[-1].__code__.co_firstlineno
    return places[0] if places else None


def _reason(text):
    text = re.sub(r"[^\s(]*?(\w+)#[\w-]+\[[^\]]*\]\((?:[^()]|\([^()]*\))*\)", r"\1", text)  # a type: its class's name
    lines = [line.strip() for line in text.splitlines()]
    plain = re.search(r"global name '(\w+)': Cannot determine Numba type of <class 'function'>", text)
    if plain:
        return f"`{plain[1]}` is a plain Python function: put @numba.njit above it"
    if "NRT required" in text or "Only accept returning of array" in text:
        return (
            "it creates an array, a list or the like: write into what it is given, or mark it @compiled(allocates=True)"
        )
    calls = [line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")]
    for line in lines:
        if "positional argument" in line or "missing a required argument" in line:
            return f"{line.rpartition('Error: ')[2]} in {calls[-1]}"
    for number, line in enumerate(lines):
        if "<locals>.choose" in line or "Failed in" in line or not any(words in line for words in _TELLING):
            continue
        if line.startswith("No implementation"):
            call = next((other for other in lines[number:] if other.startswith(">>> ")), line)
            return f"numba does not know {call.removeprefix('>>> ')}"
        return line
    return next((other for line, other in zip(lines, lines[1:], strict=False) if "Error: Failed in" in line), lines[0])
