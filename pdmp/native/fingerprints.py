"""A hash of everything that compiled code depends on, so that machine code on disk is never out of date.

`fingerprint` starts from functions and follows what they name: other functions, in whatever file, default arguments,
closures, constants, arrays, tables. Of each function it hashes the instructions that Python runs, without line numbers,
comments and docstrings: editing those, or a file that compiled code never reaches, leaves the machine code valid.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import os
import sys
import sysconfig
import types

import numba.extending
import numpy as np

#: Beginning of the hash of a value that cannot be hashed: such a hash is valid in this Python process only.
UNIQUE = "unique-"

_PROCESS = os.urandom(16)
_MISSING = object()
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
#: Libraries whose functions are not hashed: the versions of numba and of Python, which are part of every key, decide.
_LIBRARIES = {"numpy", "numba", "llvmlite", "scipy"} | set(sys.stdlib_module_names)
#: Libraries whose arrays are hashed by their entries: how these are pickled may change from process to process.
_ARRAYS = {"jax", "jaxlib", "torch"}
_INSTALLED = tuple({os.path.join(sysconfig.get_path(kind), "") for kind in ("purelib", "platlib")})
#: Decorators that attach code to a function without being named by it.
_ATTACHING = (numba.extending.overload, numba.extending.overload_method, numba.extending.overload_attribute)
_DESCRIPTORS = types.GetSetDescriptorType, types.MemberDescriptorType
_CLASS_METADATA = {
    "__doc__",
    "__module__",
    "__qualname__",
    "__dict__",
    "__weakref__",
    "__annotations__",
    "__abstractmethods__",
    "_abc_impl",
    "__firstlineno__",
    "__static_attributes__",
    "__annotate__",
    "__annotate_func__",
    "__annotations_cache__",
}


def fingerprint(functions, named_only=()):
    """Hash of functions and, transitively, of whatever they name.

    Parameters
    ----------
    functions : iterable of callable
    named_only : tuple of str
        Packages whose functions enter by name only, for hashes that should not change with the packages' versions.

    Returns
    -------
    str
        Hexadecimal. If something cannot be hashed it begins with `UNIQUE`, and differs in every Python process.
    """
    walk = _Walk(named_only)
    for function in functions:
        walk.value(function)
    return ("" if walk.complete else UNIQUE) + walk.digest.hexdigest()


def _shifts():
    """By how many bits an instruction's argument is shifted from the index of its name: Python keeps flags there."""
    code = compile("lambda: (a, b, c.d, c.e())", "", "eval").co_consts[0]
    names = [step for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")]
    wide = {s.opcode: next(k for k in range(4) if code.co_names[s.arg >> k :][:1] == (s.argval,)) for s in names[2:]}
    return {dis.opmap["LOAD_NAME"]: 0} | wide


_CACHE = dis.opmap.get("CACHE", 0)
_SHIFTS = _shifts()
_GLOBALS = {dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]}
_CONSTANTS = set(dis.hasconst) | {dis.opmap.get("KW_NAMES")}


@functools.lru_cache(4096)
def _decoded(code):
    """Hash of the instructions, constants in the order of use, and the names that are read, with their attributes."""
    kept, constants, paths = [], [], [[name] for name in code.co_freevars]
    path, argument = None, 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = argument << 8 | low
        if operation == dis.EXTENDED_ARG or operation == _CACHE:  # space for Python's own caches has no meaning
            argument = argument if operation == dis.EXTENDED_ARG else 0
            continue
        if operation in _CONSTANTS:
            constants.append(code.co_consts[argument])
            kept.append(operation)
        else:
            kept.append((operation, argument))
        if operation in _GLOBALS:
            path = [code.co_names[argument >> _SHIFTS[operation]]]
            paths.append(path)
        elif operation in _SHIFTS and path is not None:
            path.append(code.co_names[argument >> _SHIFTS[operation]])
        else:
            path = None
        argument = 0
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & 0x0C
    text = repr((kept, arguments, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars))
    return hashlib.sha256(text.encode()).digest(), constants, paths


def _root(module):
    return (module or "").partition(".")[0]


def _functions(scope):
    return [value for value in scope.values() if isinstance(value, types.FunctionType)]


class _Walk:
    """One traversal; `seen` holds references to the objects met, so that none is deleted and its id used again."""

    def __init__(self, named_only, seen=None):
        self.digest, self.complete = hashlib.sha256(), True
        self.named_only, self.seen = named_only, {} if seen is None else seen

    def add(self, *parts):
        for part in parts:
            self.digest.update(part if isinstance(part, bytes) else repr(part).encode())
            self.digest.update(b"|")

    def value(self, value):
        kind = type(value)
        if isinstance(value, _ATOMS):
            return self.add(kind.__qualname__, value)
        if id(value) in self.seen:
            return self.add("seen", self.seen[id(value)][0])
        if not isinstance(value, (tuple, frozenset, np.generic)):  # Python may or may not merge equal constants
            self.seen[id(value)] = len(self.seen), value
        if isinstance(value, types.CodeType):
            return self.code(value, lambda name: _MISSING)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.ModuleType):
            return self.add("module", value.__name__)
        if isinstance(value, type):
            return self.type(value)
        if hasattr(value, "py_func"):  # what numba's njit makes of a function
            self.value(getattr(value, "targetoptions", None))
            return self.function(value.py_func, compiled=True)
        if hasattr(value, "__wrapped__"):  # other decorators, of numba and of functools
            self.add(kind.__qualname__)
            return self.value(value.__wrapped__)
        self.add(kind.__module__, kind.__qualname__)
        if _root(kind.__module__) in _ARRAYS and hasattr(value, "__array__"):
            return self.array(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value))
        if isinstance(value, (np.ndarray, np.generic)):
            self.array(np.asarray(value))
        elif isinstance(value, (tuple, list)):
            self.add(len(value), getattr(kind, "_fields", None))
            for item in value:
                self.value(item)
        elif isinstance(value, dict):
            self.add(len(value))
            for key, item in value.items():
                self.value(key)
                self.value(item)
        elif isinstance(value, (set, frozenset)):
            self.add(*sorted(self.apart(item) for item in value))
        elif isinstance(value, enum.Enum):
            self.add(value.name)
            self.value(value.value)
        elif isinstance(value, types.MethodType):
            self.value(value.__func__)
            self.value(value.__self__)
        elif isinstance(value, types.BuiltinFunctionType):
            self.add(value.__qualname__)
            self.value(value.__self__)
        elif isinstance(value, (staticmethod, classmethod)):
            self.value(value.__func__)
        elif isinstance(value, property):
            self.value((value.fget, value.fset))
        else:
            self.pickled(value)
        return None

    def apart(self, value):
        """Hash of one member of a set: members are hashed one by one and sorted, as a set has no order."""
        walk = _Walk(self.named_only, dict(self.seen))
        walk.value(value)
        self.complete &= walk.complete
        return walk.digest.digest()

    def array(self, array):
        self.add(repr(array.dtype), array.shape)
        if array.dtype.hasobject:
            self.value(array.tolist())
        else:
            self.digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")

    def pickled(self, value):
        """Any other object: by the parts that it would be pickled as."""
        try:
            parts = value.__reduce_ex__(4)
            if isinstance(parts, str):
                return self.add(parts)
            for part in parts[:3]:
                self.value(part)
            for part in parts[3:5]:
                self.value(None if part is None else list(part))
        except Exception:  # noqa: BLE001 - whatever the object raises, it cannot be hashed
            self.unique(value)
        return None

    def unique(self, value):
        """Something that cannot be hashed: its hash differs in every Python process."""
        self.complete = False
        self.add(_PROCESS, id(value))

    def type(self, cls):
        self.add("class", cls.__module__, cls.__qualname__, getattr(cls, "_fields", None))
        if self.library(cls) or self.released(cls):
            return
        if issubclass(cls, enum.Enum):
            self.value([(member.name, member.value) for member in cls])
        elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
            self.value(cls._field_defaults)
        elif hasattr(cls, "_methods"):  # a class derived from `Compiled`
            self.value(cls._methods)
        elif hasattr(cls, "class_type"):  # a jitclass, whose methods cannot be read
            self.unique(cls)
        elif _root(cls.__module__) != _root(__name__):
            for name, value in vars(cls).items():
                if name not in _CLASS_METADATA and not isinstance(value, _DESCRIPTORS):
                    self.add(name)
                    self.value(value)
            for base in cls.__bases__:
                self.value(base)

    def released(self, thing):
        """Whether this belongs to another installed package that has a version; if so, the version is hashed."""
        root = _root(thing.__module__)
        module = sys.modules.get(root)
        version = getattr(module, "__version__", None)
        file = getattr(module, "__file__", None) or ""
        if root == _root(__name__) or version is None or not file.startswith(_INSTALLED):
            return False
        self.add(root, str(version))
        return True

    def function(self, function, compiled=False):
        module, root = function.__module__ or "", _root(function.__module__)
        self.add("function", module, function.__qualname__)
        if root in _LIBRARIES or root in self.named_only:
            return
        if not (compiled or hasattr(function, "__compiled__")) and self.released(function):
            return
        self.add(getattr(function, "__allocates__", None), getattr(function, "__inline__", None))
        scope = function.__globals__
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

        def resolve(name):
            if name not in free:
                return scope.get(name, _MISSING)
            try:
                return free[name].cell_contents
            except ValueError:  # a cell without contents yet
                return _MISSING

        self.code(function.__code__, resolve)
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        self.attached(scope)

    def attached(self, scope):
        """In a file that attaches code to functions: all functions of that file."""
        if id(scope) in self.seen or not any(value in _ATTACHING for value in _functions(scope)):
            return
        self.seen[id(scope)] = len(self.seen), scope
        for value in _functions(scope):
            if value.__module__ == scope.get("__name__"):
                self.value(value)

    def code(self, code, resolve):
        """The instructions with what they work on; every global name is followed to what it stands for."""
        instructions, constants, paths = _decoded(code)
        self.add(instructions)
        for constant in constants:
            if isinstance(constant, types.CodeType):
                self.code(constant, resolve)
            else:
                self.value(constant)
        for name, *attributes in paths:
            self.add(name)
            found = resolve(name)
            while attributes and isinstance(found, (types.ModuleType, type)) and not self.library(found):
                self.add(attributes[0])
                found = getattr(found, attributes.pop(0), _MISSING)
            if found is not _MISSING:
                self.followed(found, code)

    def library(self, thing):
        return _root(thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__) in _LIBRARIES

    def followed(self, value, code):
        if isinstance(value, types.ModuleType) and not self.library(value):
            for name in code.co_names:  # a module in a variable: any of its attributes may be used
                if hasattr(value, name):
                    self.value(getattr(value, name))
        self.value(value)
