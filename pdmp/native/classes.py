"""How a small class becomes machine code. Knows no statistics.

A class derived from `Compiled` declares **fields** (annotations) and marks **methods** with `@compiled`::

    class Quadratic(Compiled):
        scale: float

        def __init__(self, scale):
            self.scale = scale

        @compiled
        def value(self, x):
            return self.scale * x * x

An instance is an ordinary Python object. Its `.native` is a named tuple of the fields, of a numba type made for that
class alone, on which the marked methods are available inside compiled code: ``q.value(x)`` is resolved when the
caller is compiled and inlined by LLVM, so one generic loop serves every combination of classes at full speed.
With ``NUMBA_DISABLE_JIT=1`` the same tuple carries the same methods as plain Python, which is the oracle that tests
hold the machine code against.

Three rules keep that honest.

- *Never stale.* Numba's disk cache only watches the file of the function that it caches. So the name of every
  numba type made here contains a fingerprint of the package's sources and of the class's own methods with everything
  that they refer to: edit any of them and the cached code no longer matches. `@entry`, the one decorator that caches,
  must therefore be given at least one `Compiled` kernel; a test holds it to that.
- *Cached wherever the class lives.* The types are pickled by name, not by value, so classes of scripts and notebooks
  (``__main__``) are found in the cache as well.
- *Inlined by LLVM, never by numba's IR inliner*, which has returned nonsense for two levels of helpers.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import hashlib
import inspect
import itertools
import pathlib
import re
import types as python_types

import numba
import numba.core.errors
import numpy as np
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import models, overload_method, register_model, typeof_impl

# Without numba's reference counting: every array belongs to the caller for the length of a call, and passing a tuple of
# thirty arrays to a method would otherwise count thirty references up and down (measured: five times slower).
_flags = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}


class _Bystander:
    """A code generator for which environments are not set: those of inner functions are set with the outermost one."""

    def __init__(self, codegen):
        self._codegen = codegen

    def __getattr__(self, name):
        return getattr(self._codegen, name)

    def set_env(self, name, environment):
        pass


class _InnerLibrary(JITCodeLibrary):
    """Code that is only ever linked into its callers, and optimised and made machine code of there.

    Numba would do both for each function on each level of calls, of which nothing is ever run: a quarter to a third of
    the time of compilation.
    """

    @property
    def codegen(self):
        return _Bystander(self._codegen)

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0


class _Inner(Compiler):
    """Of functions that Python never calls."""

    def _compile_bytecode(self):
        self.state.library = _InnerLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super()._compile_bytecode()


class _Outer(Compiler):
    """Of functions that Python calls."""

    def _compile_bytecode(self):
        # Numba makes millions of small objects that live until it is done: the collector would only walk over them.
        collecting = gc.isenabled()
        gc.disable()
        try:
            result = super()._compile_bytecode()
        finally:
            if collecting:
                gc.enable()
        for environment in result._find_referenced_environments():
            result.library.codegen.set_env(environment.env_name, environment)
        return result


_inner = {**_flags, "no_cpython_wrapper": True, "pipeline_class": _Inner}

#: A helper called from compiled code, and from Python where a method is tried; LLVM decides whether it is inlined.
helper = numba.njit(pipeline_class=_Outer, **_flags)
#: A helper that is always inlined, by LLVM.
inlined = numba.njit(forceinline=True, pipeline_class=_Outer, **_flags)
#: Both kinds for what Python never calls, not even when a method is tried in plain Python: less to compile.
internal = numba.njit(**_inner)
internal_inlined = numba.njit(forceinline=True, **_inner)
#: A function called from Python and kept in numba's disk cache; one of its arguments must be a kernel.
entry = numba.njit(cache=True, pipeline_class=_Outer, **_flags)
#: Floating-point freedoms that keep infinities and NaN; only where bitwise equality with Python is not promised.
FAST = {"arcp", "contract", "afn", "reassoc", "nsz"}
vectorised = numba.njit(fastmath=FAST, **_flags)
#: The same for a function with arrays of its own.
allocating = numba.njit(fastmath=FAST, **{**_flags, "_nrt": True})


@inlined
def positive(x):
    """max(0, x), with NaN kept: ``max(0.0, x)`` would return 0 for it."""
    return 0.0 if x < 0.0 else x


def compiled(function=None, *, allocates=False, inline=True):
    """Mark a method of a `Compiled` class as one that compiled code may call.

    Compiled methods work in place on what they are given. One that creates arrays (``np.zeros``, ``X[i] * 2``) must say
    so, ``@compiled(allocates=True)``: it is then compiled with numba's reference counts, which cost some speed. Methods
    are inlined wherever they are called; a long one called from several places compiles faster with ``inline=False``.
    """
    if function is None:
        return lambda method: compiled(method, allocates=allocates, inline=inline)
    function.__compiled__ = True
    function.__allocates__ = allocates
    function.__inline__ = inline
    return function


@contextlib.contextmanager
def readable(what):
    """Turn what numba says of a method that does not compile into one line; `what` names the classes."""
    try:
        yield
    except numba.core.errors.NumbaError as error:
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        lines = [line.strip() for line in text.splitlines()]
        places = [line for line in lines if line.startswith(("File ", "def ", "<source elided>"))]
        where = next((line.split('"')[1:] for line in reversed(places) if line.startswith("File ")), None)
        where = f" at {where[0]}{where[1].rstrip(':')}" if where else ""
        if "NRT required" in text:
            why = "it creates an array: write into what it is given, or mark it @compiled(allocates=True)"
        else:
            wanted = (
                "Unknown attribute",
                "cannot ",
                "Cannot ",
                "No implementation",
                "NameError",
                "Invalid use",
                "must ",
            )
            why = next((line for line in lines if any(w in line for w in wanted)), lines[0] if lines else "")
        raise TypeError(f"a compiled method of {what} does not compile{where}: {why}") from error


# ---------------------------------------------------------------------------------------------------------------
# Fingerprints


#: Files and folders of this package from which nothing compiled is built, and which nothing compiled imports.
NEVER_COMPILED = {"cli.py", "comparison.py", "data", "plots.py"}


@functools.cache
def package_fingerprint():
    """Hash of the source files of this package that any compiled loop may have been built from."""
    root = pathlib.Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*.py") if p.relative_to(root).parts[0] not in NEVER_COMPILED):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def fingerprint(functions):
    """Hash of functions and, transitively, of whatever they name: constants, arrays, helpers, modules' attributes."""
    digest = hashlib.sha256()
    seen = set()

    def add(*parts):
        for part in parts:
            digest.update(part if isinstance(part, bytes) else repr(part).encode())
            digest.update(b"|")

    def add_code(code, resolve):
        names = [n for n in code.co_names]
        add(code.co_code, names, code.co_varnames, code.co_freevars)
        for constant in code.co_consts:
            if isinstance(constant, python_types.CodeType):
                add_code(constant, resolve)
            elif not isinstance(constant, str):  # strings are docstrings and messages
                add(constant)
        for name in names:
            found, value = resolve(name)
            if found:
                add(name)
                add_value(value, names)

    def add_function(function):
        function = getattr(function, "py_func", function)  # a numba dispatcher
        if id(function) in seen:
            return
        seen.add(id(function))
        module = function.__module__ or ""
        add(module, function.__qualname__)
        if module.partition(".")[0] == "pdmp":
            return  # covered by the package's own fingerprint
        scope = function.__globals__
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

        def resolve(name):
            if name in free:
                return True, free[name].cell_contents
            return name in scope, scope.get(name)

        add_code(function.__code__, resolve)
        for cell in free.values():
            add_value(cell.cell_contents, ())

    def add_value(value, names):
        if isinstance(value, python_types.FunctionType) or hasattr(value, "py_func"):
            add_function(value)
        elif isinstance(value, python_types.ModuleType):
            root = value.__name__.partition(".")[0]
            if root in {"math", "numpy", "numba", "scipy", "pdmp"}:
                return
            for name in names:  # helpers.rate: the attribute is among the code's names
                if hasattr(value, name):
                    add(name)
                    add_value(getattr(value, name), names)
        elif isinstance(value, np.ndarray):
            add(value.dtype.str, value.shape, value.tobytes())
        elif isinstance(value, (bool, int, float, complex, str, bytes, tuple, type(None))):
            add(value)
        else:
            add(getattr(value, "__qualname__", type(value).__qualname__))

    for function in functions:
        add_function(function)
    return digest.hexdigest()


# ---------------------------------------------------------------------------------------------------------------
# The numba types

_known = {}  # key of a class -> its numba type class, and the class of its named tuples
_numbers = itertools.count()
_named, _keys = set(), set()  # classes that `by_name` has seen, and their names


class NativeType(numba.types.NamedTuple):
    """The numba type of a `Compiled` class's kernel; one subclass for each class."""

    def __init__(self, members, python_class, key):
        super().__init__(members, python_class)
        self.class_key = key
        self.name = f"{key}({', '.join(str(m) for m in members)})"

    def __reduce__(self):  # by name: importable classes, scripts and notebooks alike hit the disk cache
        return _restore_type, (self.class_key, self.types, self.fields)


def _restore_type(key, members, fields):
    if key in _known:
        numba_class, tuple_class = _known[key]
        return numba_class(members, tuple_class, key)
    # A type of an older source: it only has to differ from every living one.
    return NativeType(members, collections.namedtuple("Stale", fields), key)


def _register(cls, tuple_class, methods):
    """Make the numba type of `cls` and attach `methods` to it."""
    key = f"{cls.__module__}.{cls.__qualname__}#{package_fingerprint()[:16]}{fingerprint(methods.values())[:16]}"
    key += "[" + ",".join(tuple_class._fields) + "]"
    numba_class = _register_type(tuple_class, key)
    for name, method in methods.items():
        _attach(numba_class, name, method)


def _register_type(tuple_class, key):
    """Make the numba type of a class of named tuples."""
    numba_class = type(f"{tuple_class.__name__}Type", (NativeType,), {})
    register_model(numba_class)(models.TupleModel)
    _known[key] = numba_class, tuple_class

    @typeof_impl.register(tuple_class)
    def _typeof(value, context):
        members = [typeof_impl(member, context) for member in value]
        for name, member, item in zip(tuple_class._fields, members, value, strict=True):
            if member is None:
                owner = tuple_class.__name__.rpartition("_")[0]
                raise TypeError(f"{owner}.{name} cannot be compiled: it is a {type(item).__name__}.")
        return numba_class(members, tuple_class, key)

    return numba_class


def by_name(tree):
    """Let the classes of nested named tuples be known to numba by name, as those of kernels are; returns `tree`.

    Numba's disk cache would pickle the classes themselves, and every process that opens it would have to import them.
    """
    if config.DISABLE_JIT or not isinstance(tree, tuple):
        return tree
    for leaf in tree:
        by_name(leaf)
    cls = type(tree)
    key = f"{cls.__module__}.{cls.__qualname__}"
    if hasattr(cls, "_fields") and cls not in _named:
        _named.add(cls)
        _register_type(cls, f"{key}#{id(cls) if key in _keys else 0}[{','.join(cls._fields)}]")
        _keys.add(key)
    return tree


def _attach(numba_class, name, method):
    def choose(*args, **kwargs):
        return method

    choose.__signature__ = inspect.signature(method)
    choose.__name__ = name
    options = {**_inner, "forceinline": method.__inline__, "_nrt": method.__allocates__}
    overload_method(numba_class, name, jit_options=options, strict=False)(choose)


def _is_field(name, annotation):
    return not name.startswith("_") and "ClassVar" not in str(annotation)


class Compiled:
    """Base of classes whose fields and marked methods are available in compiled code (see the module's text)."""

    _fields = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        annotations, methods = {}, {}
        for base in reversed(cls.__mro__):
            annotations |= {n: a for n, a in base.__dict__.get("__annotations__", {}).items() if _is_field(n, a)}
            for name, value in base.__dict__.items():
                if getattr(value, "__compiled__", False):
                    methods[name] = value
                elif name in methods:
                    del methods[name]
        cls._annotations = {n: str(getattr(a, "__name__", a)) for n, a in annotations.items()}
        cls._methods = methods
        # An empty tuple has no representation as an argument: a class without fields carries a zero.
        # Its name is unique in the process: numba's dispatcher tells tuples apart by the names of their classes.
        name = f"{cls.__name__}_{next(_numbers)}"
        tuple_class = collections.namedtuple(name, list(annotations) or ["no_fields"])
        tuple_class.__module__ = cls.__module__
        for name, method in methods.items():
            setattr(tuple_class, name, method)
        cls._tuple = tuple_class
        cls._registered = False

    def identity(self):
        """What tells this object from another one, beside its class and fields; for checkpoints."""
        return ()

    @property
    def native(self):
        """The named tuple that compiled code works on."""
        cls = type(self)
        if not cls._registered and not config.DISABLE_JIT:
            # Late, so that functions defined after the class are part of the fingerprint.
            _register(cls, cls._tuple, cls._methods)
            cls._registered = True
        values = []
        for name, annotation in cls._annotations.items():
            try:
                value = getattr(self, name)
            except AttributeError:
                raise TypeError(f"{cls.__name__} declares the field `{name}` but never sets it.") from None
            values.append(_as_member(value, annotation))
        return cls._tuple(*values or [0])


def _as_member(value, annotation):
    if isinstance(value, Compiled):
        return value.native
    if annotation == "float":
        return float(value)
    if annotation == "int":
        return int(value)
    if annotation == "bool":
        return bool(value)
    return value
