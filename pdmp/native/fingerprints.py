"""A hash of everything that compiled code depends on, so that machine code on disk is never out of date.

`fingerprint` starts from functions and follows what they name: other functions, in whatever file, default arguments,
closures, constants, arrays, tables. Of each function it hashes the instructions that Python runs, without line numbers,
comments and docstrings: editing those, or a file that compiled code never reaches, leaves the machine code valid.
"""

from __future__ import annotations

import contextlib
import copyreg
import datetime
import decimal
import dis
import enum
import fractions
import functools
import hashlib
import importlib.util
import itertools
import os
import pathlib
import sys
import sysconfig
import time
import types

import numpy as np
from numba.core.datamodel import default_manager
from numba.core.types import Type
from numba.extending import infer, lower_builtin, typeof_impl

from pdmp.errors import OURS

#: Beginning of the hash of a value that cannot be hashed: such a hash is valid in this Python process only.
UNIQUE = "unique-"
_HEAP = 1 << 9  #: flag of types that Python code has made, and no extension module
#: What differs where a module is at another path, or the first one, and is the same module for all that.
_OF_MODULES = {"__file__", "__name__", "__path__", "__spec__", "__cached__"}
SOME = 256  #: entries of an array or of each end of a list that are looked at while a function runs
PIECES_ABOVE = 10_000_000  #: bytes of an array of which pieces tell whether it has changed

_PROCESS, _BEGUN = os.urandom(16), time.time()
_MISSING = object()
_GLOBAL_STATE = np.random.mtrand._rand  # of the functions of `numpy.random`, which distributions of SciPy keep
_ATOMS = (
    *(bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range),
    *(fractions.Fraction, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta),
)
#: Libraries whose functions are not hashed: the versions of numba and of Python, which are part of every key, decide.
_LIBRARIES = {"numpy", "numba", "llvmlite", "scipy"}
#: Packages that their versions tell. Another one that is installed, perhaps the user's own, is told by its files too.
_RELEASED = {
    *("arviz", "arviz_base", "arviz_stats", "astropy", "awkward", "bridgestan", "cffi", "cupy", "dask", "datashader"),
    *("distributed", "formulae", "h5py", "hypothesis", "interpolation", "jax", "jaxlib", "joblib", "matplotlib"),
    *("mpi4py", "narwhals", "networkx", "numba_scipy", "numba_stats", "numexpr", "numpyro", "nutpie", "pandas"),
    *("patsy", "PIL", "polars", "pyarrow", "pymc", "pynndescent", "pytensor", "pytest", "_pytest", "quantecon", "ray"),
    *("requests", "rocket_fft", "seaborn", "sklearn", "sparse", "stanli", "statsmodels", "stumpy", "sympy"),
    *("tensorflow", "torch", "tqdm", "umap", "vector", "xarray", "zarr"),
}
_STANDARD = os.path.join(os.path.dirname(sysconfig.get_path("stdlib")), "")
#: Libraries whose arrays are hashed by their entries: how these are pickled may change from process to process.
_ARRAYS = {"jax", "jaxlib", "torch"}
_INSTALLED = tuple({os.path.join(sysconfig.get_path(kind), "") for kind in ("purelib", "platlib")})
_DESCRIPTORS = types.GetSetDescriptorType, types.MemberDescriptorType
_CLASS_METADATA = {
    *("__doc__", "__module__", "__qualname__", "__dict__", "__weakref__", "__annotations__", "__abstractmethods__"),
    *("_abc_impl", "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__"),
    "__annotations_cache__",
}


def is_standard(root):
    """Whether a module is Python's own; a user's file may have its name."""
    file = getattr(sys.modules.get(root), "__file__", None) or _STANDARD
    return root in sys.stdlib_module_names and file.startswith(_STANDARD)


def _is_library(root):
    return root in _LIBRARIES or is_standard(root)


def _lies_in(file, root):
    """Whether a file of code is one of a package; written by this one, it is called after it."""
    if is_standard(root):
        return file.startswith(("<frozen ", _STANDARD)) and not file.startswith(_INSTALLED)
    own = getattr(sys.modules.get(root), "__file__", None) or ""
    folder = os.path.join(os.path.dirname(own), "")
    return file == own or file.startswith((f"<{root}.", folder if os.path.basename(own) == "__init__.py" else "\0"))


def hash_of_files(place):
    """Hash of a Python file, or of those in a folder, and when the last of them was written."""
    digest, last = hashlib.sha256(), 0.0
    for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        digest.update(f"{file.relative_to(place).as_posix()}\0".encode() + file.read_bytes())
        last = max(last, file.stat().st_mtime)
    return digest.hexdigest(), last


_files = functools.cache(hash_of_files)


def _release(root):
    """What tells an installed package: its version and its files; none of a package that is not one or has no version.

    Files that are newer than this process may not be what it has read.
    """
    module = sys.modules.get(root)
    version, place = getattr(module, "__version__", None), getattr(module, "__file__", None) or ""
    if root == _root(__name__) or version is None or not place.startswith(_INSTALLED):
        return ()
    if root in _RELEASED:
        return root, str(version)
    place = pathlib.Path(place)
    found, last = _files(place.parent if place.name == "__init__.py" else place)
    return root, str(version), UNIQUE + _PROCESS.hex() if last > _BEGUN else found


def _package(thing):
    """The package of a function or class; none if a function says that it is of one in whose files its code is not.

    As `functools.wraps` makes it, or a decorator that sets `__module__`, or a namespace with the name of another one.
    """
    root = _root(getattr(thing, "__module__", None))
    return root if not isinstance(thing, types.FunctionType) or _lies_in(thing.__code__.co_filename, root) else ""


def _outside(thing):
    return getattr(thing, "__module__", None) is not None and not _is_library(_package(thing))


def _own(registered, depth=4):
    """What is not numba's in what it has registered: functions, classes, and numbers and texts beside them."""
    if isinstance(registered, type):  # a template
        own = getattr(registered, "_overload_func", None) or next(filter(_outside, registered.__mro__[:-1]), None)
        if own is not None:  # but a method of a `Compiled` class: the name of its type has its hash
            return [own] if _outside(own) and not hasattr(own, "__of_type__") else []
        inner = map(vars(registered).get, ("key", "generic", "generic_resolve"))
    elif isinstance(registered, functools.partial):
        inner = [registered.func, *registered.args, *itertools.chain.from_iterable(registered.keywords.items())]
    elif isinstance(registered, types.FunctionType) and not _outside(registered):  # numba's wrapper of a function
        inner = map(_contents, registered.__closure__ or ())
    else:
        return [registered] if type(registered) in _ATOMS or _outside(registered) else []
    return [one for thing in inner for one in _own(thing, depth - 1)] if depth else []


class _Overloads:
    """What modules outside numba have told it to run in the place of functions, operators, methods and attributes.

    Nothing in the text of a function that calls ``f(a)`` or reads ``a.name`` leads to an overload, in whatever file.
    What this package and installed ones have told is found by what a function names, or any later import of theirs
    would make its machine code another. What other files have told, the user's, may be reached in further ways, by
    iteration or through types of their own, and counts as a whole.
    """

    def __init__(self, typed, lowered, typeof, models):
        #: Numba's lists, which only grow, how much has been read, and where an item has its code and what that is for.
        self.lists = [
            [typed.functions, 0, lambda item: (item, None if isinstance(item.key, str) else item.key)],
            [typed.globals, 0, lambda item: (next(iter(getattr(item[1], "templates", ())), None), item[0])],
            [typed.attributes, 0, lambda item: (item, getattr(item, "_attr", None))],
            [lowered.functions, 0, lambda item: (item[0], None if isinstance(item[1], str) else item[1])],
            [lowered.getattrs, 0, lambda item: (item[0], item[1])],
            [lowered.setattrs, 0, lambda item: (item[0], item[1])],
            [lowered.casts, 0, lambda item: (item[0], None)],
            [lowered.constants, 0, lambda item: (item[0], None)],
            [typeof.items(), 0, lambda item: (item[1], item[0])],
            [models.items(), 0, lambda item: (item[1], item[0])],
        ]
        self.of_object, self.of_name, self.of_all, self.of_users = {}, {}, {}, {}

    def found(self, things, names, users=False):
        """The overloads of these objects and of what has one of these names; their order is not that of imports."""
        for source in self.lists:
            items, n, parts = source
            for item in [*itertools.islice(items, n, None)] if len(items) > n else ():
                inline = getattr(getattr(item, "_inline", None), "value", None)
                self._add(*parts(item), {"options": getattr(item, "_jit_options", None), "inline": inline})
                source[1] += 1
        groups = [self.of_object.get(id(thing)) for thing in things] + [self.of_name.get(name) for name in names]
        found = self.of_all | (self.of_users if users else {})
        for group in filter(None, groups):
            found |= group
        return sorted(found.values(), key=lambda entry: entry[:2])

    def _add(self, registered, key, options):
        own = _own(registered)
        code = next(filter(_outside, own), None)
        if code is None:
            return
        name = key if isinstance(key, str) else getattr(key, "__name__", None)
        entry = code.__module__, getattr(code, "__qualname__", ""), [name, *own], options
        groups = [self.of_object.setdefault(id(key), {}), self.of_name.setdefault(name, {})]
        if name is None or key is bool or getattr(key, "__module__", None) == "_operator":
            groups = [self.of_all]  # of what is not named where it is used
        if _package(code) not in OURS and not _release(_package(code)):
            groups.append(self.of_users)
        for group in groups:
            group[(name, str(options), *map(id, own))] = entry


_overloads = _Overloads(infer.__self__, lower_builtin.__self__, typeof_impl.registry, default_manager._handlers)


def fingerprint(functions, named_only=(), overloaded=True, without=frozenset()):
    """Hash of functions and, transitively, of whatever they name; hexadecimal.

    Functions of packages in `named_only` enter by name, for hashes that should not change with the packages' versions.
    `overloaded`: whether overloads count, which any later import may add; `without`: places, as keys of `kept`, of what
    is left out. If something cannot be hashed it begins with `UNIQUE`, differs in every Python process, and ends with
    the class of that.
    """
    walk = _Walk(named_only)
    walk.overloaded, walk.without = overloaded, without
    for function in functions:
        walk.value(function)
    return walk.digest.hexdigest() if walk.complete else f"{UNIQUE}{walk.digest.hexdigest()}-{walk.kinds[0]}"


def kept(function, some=False):
    """What a function keeps that a call may change: numbers, arrays, keys, lengths, by where they are found.

    A place is a tuple of names, keys and indices by which `fingerprint` comes there. With `some`, of an array or a long
    list some entries alone, evenly spaced and at the ends.
    """
    walk = _Kept(some)
    walk.value(function)
    return walk.places


def array_digest(array, most):
    """A digest of an array; of one of more bytes than `most` of a thousand pieces of it."""
    flat = array.ravel(order="K")  # without a copy, whichever axis comes first
    if flat.nbytes > most:
        flat = np.concatenate([flat[k : k + 1_000] for k in np.linspace(0, len(flat) - 1_000, 1_000).astype(int)])
    return hashlib.blake2b(flat.tobytes()).digest()


def arrays_of(native):
    """A digest of each array in a named tuple of fields, and in those in it."""
    if isinstance(native, np.ndarray):
        return [array_digest(native, PIECES_ABOVE)]
    return [found for part in native for found in arrays_of(part)] if isinstance(native, tuple) else []


def changed(before, after):
    """Places of what differs between two answers of `kept`; of a list, which may be a record of calls, all of it."""
    found = [place for place in {**before, **after} if before.get(place) != after.get(place)]
    return frozenset(place[: place.index(_ITEM)] if _ITEM in place else place for place in found)


def dispatchers(functions):
    """What numba has compiled, or will, among functions and what they name, transitively; none of this package."""
    walk = _Dispatchers()
    for function in functions:
        walk.value(function)
    return walk.found


def parts(values, tables=False):
    """Hashes of the functions and classes that values name, transitively, each by itself: of what a worker has as well.

    Sorted hashes by full name, several where functions have the same name; of a library its version. What compiled
    functions name is part of them, as it is in their machine code. Of what Python functions name, only numbers and
    texts are, unless `tables`: arrays and containers may be those in which a program keeps something. What is only on
    one side of a comparison means nothing: containers may have been filled with it.
    """
    walk = _Parts(tables)
    for value in values:
        walk.value(value)
    return {name: tuple(sorted(found)) for name, found in walk.parts.items()}


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
    # Which instructions a `try` guards is in a table of its own, from Python 3.11 on.
    guarded = getattr(code, "co_exceptiontable", b"")
    text = repr((kept, guarded, arguments, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars))
    return hashlib.sha256(text.encode()).digest(), constants, paths


def _is_repeated(parts):
    """Whether an object that is made again of its parts has the same ones: a tree of SciPy writes addresses."""
    make, arguments, state = parts[:3]
    again = make(*arguments)
    again.__setstate__(state)
    return fingerprint([again.__reduce_ex__(4)[2]]) == fingerprint([state])


@functools.lru_cache(4096)
def _names(code):
    """Names of globals and attributes in a function and in those that are defined within it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return tuple(dict.fromkeys((*code.co_names, *itertools.chain.from_iterable(map(_names, inner)))))


def _contents(cell):
    """What a variable of a closure stands for; `_MISSING` if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _root(module):
    return (module or "").partition(".")[0]


_ITEM = "[]"  #: the place of each entry of a list


class _Walk:
    """One traversal; `seen` holds references to the objects met, so that none is deleted and its id used again."""

    repeats = True  #: whether it is tried if what an extension's object is made of is the same each time

    def __init__(self, named_only, seen=None):
        self.digest, self.complete, self.package, self.overloaded = hashlib.sha256(), True, None, True
        self.named_only, self.seen = named_only, {} if seen is None else seen
        self.whole = not named_only  #: whether the user's overloads are to be added as a whole
        self.kinds = []  #: classes of what cannot be hashed
        self.place, self.without = (), frozenset()  #: where the walk is, and which places it leaves out

    def add(self, *parts):
        for part in parts:
            self.digest.update(part if isinstance(part, bytes) else repr(part).encode())
            self.digest.update(b"|")

    def at(self, key, value):
        """A value that is found under a name, a key or an index."""
        outer, self.place = self.place, (*self.place, key)
        try:
            self.value(value)
        finally:
            self.place = outer

    def value(self, value):
        kind = type(value)
        if self.place in self.without:
            return self.add("left out")
        if kind in _ATOMS:  # what derives from one of them may have any text
            return self.add(kind.__qualname__, value)
        if id(value) in self.seen:
            return self.add("seen", self.seen[id(value)][0])
        if not isinstance(value, (tuple, frozenset, np.generic)):  # Python may or may not merge equal constants
            self.seen[id(value)] = len(self.seen), value
        self.overloads([value], ())
        if isinstance(value, types.CodeType):
            return self.code(value, lambda name: _MISSING)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, types.ModuleType):
            return self.add("module", value.__name__)
        if isinstance(value, type):
            return self.type(value)
        of_numba = _root(kind.__module__).startswith("numba")  # what users' objects call so is one part of them
        if of_numba and hasattr(value, "py_func"):  # what numba's njit makes of a function
            self.value((getattr(value, "targetoptions", None), getattr(value, "locals", None)))
            if not getattr(value, "_can_compile", True):  # for the types of its decorator alone
                self.add(*map(str, value.nopython_signatures))
            return self.function(value.py_func, compiled=True)
        if of_numba and hasattr(value, "_dispatcher"):  # of numba's vectorize, which keeps what it has compiled
            return self.value(value._dispatcher)
        if hasattr(value, "__wrapped__") and (of_numba or self.library(kind) or self.released(kind)):
            self.add(kind.__qualname__)
            return self.value(value.__wrapped__)
        self.add(kind.__module__, kind.__qualname__)
        if value is _GLOBAL_STATE:  # whatever its state, which every process begins with another of
            return None
        if _root(kind.__module__) == "llvmlite" or isinstance(value, Type):
            return self.described(value)
        if _root(kind.__module__) in _ARRAYS and hasattr(value, "__array__"):
            return self.array(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value))
        if isinstance(value, (np.ndarray, np.generic)):
            self.array(np.asarray(value))
        elif isinstance(value, (tuple, list)):
            self.add(len(value), getattr(kind, "_fields", None))
            for k, item in enumerate(value):
                self.at(_ITEM if isinstance(value, list) else k, item)
        elif isinstance(value, (dict, types.MappingProxyType)):
            self.add(len(value))
            for k, (key, item) in enumerate(value.items()):
                self.value(key)
                self.at(key if isinstance(key, str) else k, item)
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
        elif isinstance(value, functools.cached_property):
            self.value(value.func)
        elif isinstance(value, property):
            self.value((value.fget, value.fset))
        else:
            self.pickled(value)
        return None

    def apart(self, value):
        """Hash of one member of a set: members are hashed one by one and sorted, as a set has no order."""
        walk = _Walk(self.named_only, dict(self.seen))
        walk.package, walk.overloaded, walk.whole = self.package, self.overloaded, self.whole
        walk.value(value)
        self.complete &= walk.complete
        self.kinds += walk.kinds
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
            kind = type(value)
            registered = copyreg.dispatch_table.get(kind)  # which `__reduce_ex__` does not ask
            parts = registered(value) if registered else value.__reduce_ex__(4)
            if isinstance(parts, str):
                return self.add(parts)
            for part in parts[:2]:
                self.value(part)
            state = parts[2] if len(parts) > 2 else None
            of_extension = not kind.__flags__ & _HEAP and isinstance(state, (tuple, bytes))
            if self.repeats and of_extension and not _is_repeated(parts):
                return self.unique(value)
            if isinstance(state, dict):  # without what a cached property keeps once it has been asked for
                cached = {n for n in state if isinstance(getattr(kind, str(n), 0), functools.cached_property)}
                state = {name: item for name, item in state.items() if name not in cached} or None
            self.value(state)
            for part in parts[3:5]:
                self.value(None if part is None else list(part))
        except Exception:  # noqa: BLE001 - whatever the object raises, it cannot be hashed
            self.unique(value)
        return None

    def described(self, value):
        """A type or constant of numba or LLVM, by its text: it keeps within itself what it has been asked before."""
        text = str(value)
        return self.unique(value) if " at 0x" in text else self.add(text)

    def unique(self, value):
        """Something that cannot be hashed: its hash differs in every Python process."""
        self.complete = False
        kind = value if isinstance(value, type) else type(value)
        self.kinds.append(f"{kind.__module__}.{kind.__qualname__}")
        self.add(_PROCESS, id(value))

    def type(self, cls):
        self.add("class", cls.__module__, cls.__qualname__, getattr(cls, "_fields", None))
        if self.library(cls) or self.released(cls):
            return
        if issubclass(cls, enum.Enum):
            self.value([(name, member.value) for name, member in cls.__members__.items()])
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
            if not self.library(type(cls)):  # a metaclass, which says what a call of the class is
                self.value(type(cls))

    def released(self, thing):
        """Whether this belongs to another installed package that has a version; if so, what tells that is hashed."""
        release = _release(_package(thing))
        if release:
            self.add(*release)
            if release[-1].startswith(UNIQUE):
                self.unique(sys.modules[release[0]])
        return bool(release)

    def function(self, function, compiled=False):
        root = _package(function)
        self.add("function", function.__module__ or "", function.__qualname__)
        if _is_library(root) or root in self.named_only:
            return
        if not (compiled or hasattr(function, "__compiled__")) and self.released(function):
            return self.given(function, root)
        self.add(getattr(function, "__allocates__", None), getattr(function, "__inline__", None))
        scope, caller, self.package = function.__globals__, self.package, root
        free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

        def resolve(name):
            return _contents(free[name]) if name in free else scope.get(name, _MISSING)

        self.code(function.__code__, resolve)
        self.value(function.__defaults__)
        self.value(tuple((function.__kwdefaults__ or {}).items()))
        for k, value in enumerate((*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())):
            self.of_module(f"default {k}", value, _names(function.__code__), ())
        own = {name: value for name, value in vars(function).items() if not name.startswith("__")}
        if own:
            self.value(own)
        self.package = caller

    def given(self, function, root):
        """What a function of an installed package has from elsewhere: its closure, numbers, arrays, others' functions.

        Nothing is added for a package that its version tells. Other objects that the function names are left out, as
        they may hold anything.
        """
        if root in _RELEASED:
            return
        found = [*map(_contents, function.__closure__ or ()), *(function.__defaults__ or ())]
        found += [function.__globals__.get(name) for name in _names(function.__code__)]
        for value in found:
            other = isinstance(value, types.FunctionType) and (value.__closure__ or _package(value) != root)
            if type(value) in _ATOMS or isinstance(value, (np.ndarray, np.generic)) or other:
                self.value(value)

    def overloads(self, things, names):
        """What numba runs for these objects, or for what has these names, if modules outside it say so.

        Functions of this package work on numbers, arrays and classes of which it knows the methods: what others
        overload is for objects of theirs, and must not make its machine code another.
        """
        users = self.whole and self.package not in (None, *OURS)
        self.whole = self.whole and not users
        for module, name, code, options in _overloads.found(things, names, users) if self.overloaded else ():
            if self.package not in OURS or _root(module) in (_root(__name__), self.package):
                self.add("overload", name)
                self.value(options)
                self.value(code)

    def code(self, code, resolve):
        """The instructions with what they work on; every global name is followed to what it stands for."""
        instructions, constants, paths = _decoded(code)
        self.add(instructions)
        for constant in constants:
            if isinstance(constant, types.CodeType):
                self.code(constant, resolve)
            else:
                self.value(constant)
        named = []
        for name, *attributes in paths:
            self.add(name)
            found = thing = resolve(name)
            for attribute in attributes:  # into libraries too: their functions have overloads elsewhere
                thing = getattr(thing, attribute, _MISSING) if isinstance(thing, (types.ModuleType, type)) else _MISSING
            named.append(thing)
            while attributes and isinstance(found, (types.ModuleType, type)) and not self.library(found):
                self.add(attributes[0])
                name = f"{name}.{attributes[0]}"
                found = getattr(found, attributes.pop(0), _MISSING)
            if found is not _MISSING:
                self.followed(name, found, code)
        self.overloads(named, code.co_names)

    def library(self, thing):
        return _is_library(_root(thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__))

    def followed(self, name, value, code):
        self.of_module(name, value, _names(code), ())
        self.under(name, value)

    def under(self, name, value):
        """A value by the name by which a function has it."""
        self.at(name, value)

    def of_module(self, name, value, names, above):
        """Follow a module in a variable: any of its attributes that a function names may be used, and of these any."""
        if not isinstance(value, types.ModuleType) or self.library(value) or any(value is one for one in above):
            return
        for attribute in names:
            if hasattr(value, attribute):
                found = getattr(value, attribute)
                self.of_module(f"{name}.{attribute}", found, names, (*above, value))
                self.under(f"{name}.{attribute}", found)


class _Kept(_Walk):
    """What calls may change, by places, instead of one hash."""

    repeats = False
    #: Bytes of an array up to which it is seen whether a call changes it; entries of a list or dictionary up to which
    #: they have places of their own; and of a longer one, at both ends, that are looked at.
    LARGEST, MOST, ENDS = 100_000_000, 100, 5_000

    def __init__(self, some):
        super().__init__(("pdmp",))
        self.places, self.some = {}, some

    def note(self, *found):
        self.places.setdefault(self.place, []).append(found)

    def value(self, value):
        if type(value) in _ATOMS:
            return self.note(repr(value))
        self.note(type(value).__qualname__)
        if isinstance(value, (list, tuple, dict, set, frozenset)):
            self.note(len(value))
            if len(value) > self.MOST:
                return self.ends(value)
            if isinstance(value, dict):
                self.note(*map(repr, value))
            elif isinstance(value, (set, frozenset)):
                self.note(self.apart(value))
        return super().value(value)

    def ends(self, value):
        """Note numbers and texts at the ends of a long container."""
        for entries in () if isinstance(value, (set, frozenset)) else (value, reversed(value)):
            some = list(itertools.islice(entries, SOME if self.some else self.ENDS))
            some += [value[key] for key in some] if isinstance(value, dict) else []
            self.note(hashlib.sha256(repr([item for item in some if isinstance(item, _ATOMS)]).encode()).digest())

    def array(self, array):
        if array.dtype.hasobject:
            super().array(array)
        else:
            self.note(array.shape)
            if self.some:
                flat = array.ravel(order="K") if array.flags.forc else array.flat
                return self.note(np.array(flat[:: max(1, array.size // SOME)]).tobytes())
            self.note(hashlib.sha256(np.ascontiguousarray(array)).digest() if array.nbytes <= self.LARGEST else None)


class _Dispatchers(_Walk):
    """Functions of numba instead of one hash."""

    def __init__(self):
        super().__init__(("pdmp",))
        self.found, self.overloaded = [], False

    def value(self, value):
        new = id(value) not in self.seen and _root(type(value).__module__) == "numba"
        function = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None) if new else None
        if isinstance(function, types.FunctionType) and _package(function) not in self.named_only:
            self.found.append(value)
        super().value(value)

    def array(self, array):
        if array.dtype.hasobject:
            super().array(array)


#: What Python and numba make of a class, perhaps in another way in another process; and names of the script that runs.
_MADE = _CLASS_METADATA | {"_annotations", "_methods", "_tuple", "_registered", "__signature__", "__slotnames__"}
_MAINS = {"__mp_main__", "__worker__"}
#: Of what a Python function names, what cannot change while a program runs.
_FIXED = (*_ATOMS, tuple, frozenset, np.generic, enum.Enum, type, types.FunctionType, functools.partial)
_STORES = {dis.opmap[name] for name in ("STORE_GLOBAL", "STORE_DEREF") if name in dis.opmap}


@functools.lru_cache(4096)
def _stored(code):
    """Names outside of a function that it assigns to itself, as counters are."""
    found = {step.argval for step in dis.get_instructions(code) if step.opcode in _STORES}
    return found.union(*(_stored(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)))


@functools.lru_cache(4096)
def _imported(code):
    """Modules that a function imports itself, relative ones with their dots."""
    steps = [step for step in dis.get_instructions(code) if not step.opname.startswith(("CACHE", "EXTENDED_ARG"))]
    return ["." * steps[k - 2].argval + step.argval for k, step in enumerate(steps) if step.opname == "IMPORT_NAME"]


class _Parts(_Walk):
    """Functions and classes one by one: each value has a hash of its own, wherever else it was met.

    With `tables`, also each value that a Python function names: a call may change one of them and not another.
    """

    def __init__(self, tables):
        super().__init__(())
        self.whole = False  # a worker may not have imported what no function names
        self.tables, self.strict = tables, False  # whether all that is met belongs to what is hashed now
        self.owner = None  # the Python function or class that is hashed now
        self.parts, self.hashes = {}, {}

    def add(self, *parts):
        super().add(*("__main__" if isinstance(part, str) and part in _MAINS else part for part in parts))

    def aside(self, content):
        """The hash of what `content` adds."""
        outer, self.digest = self.digest, hashlib.sha256()
        content()
        found, self.digest = self.digest.digest()[:16], outer
        return found

    def value(self, value):
        if type(value) in _ATOMS:
            return super().value(value)
        key = id(value), self.strict
        if key not in self.hashes:
            self.hashes[key] = value, b"itself"
            self.seen.pop(id(value), None)
            self.hashes[key] = value, self.aside(lambda: super(_Parts, self).value(value))
        if self.strict or isinstance(value, _FIXED):
            self.add(self.hashes[key][1])
        return None

    def named(self, module, name, content, strict):
        """Keep the hash of a function or class under its name; to whatever names it, it is the name."""
        module = "__main__" if module in _MAINS else module
        outer, self.strict = (self.strict, self.owner), strict or self.tables
        self.owner = None if strict else f"{module}.{name}"
        found = self.aside(content)
        self.strict, self.owner = outer
        self.parts.setdefault(f"{module}.{name}", set()).add(found)
        self.add(module, name)

    def under(self, name, value):
        if not self.tables or self.owner is None:
            return super().under(name, value)
        found = self.aside(lambda: super(_Parts, self).under(name, value))
        return self.parts.setdefault(f"{self.owner} ({name})", set()).add(found)

    def function(self, function, compiled=False):
        compiled = compiled or hasattr(function, "__compiled__")
        root = _package(function)
        if _is_library(root) or not compiled and (root == _root(__name__) or self.released(function)):
            for cell in function.__closure__ or () if is_standard(root) else ():  # of `functools.singledispatch`, say
                self.value(_contents(cell))
            return self.add(function.__module__, function.__qualname__)
        content = functools.partial(super().function, function, compiled)
        return self.named(function.__module__, function.__qualname__, content, compiled)

    def code(self, code, resolve):
        stored = _stored(code)
        super().code(code, lambda name: _MISSING if name in stored or name in _OF_MODULES else resolve(name))
        for name in _imported(code) if self.tables and self.owner else ():
            with contextlib.suppress(Exception):  # of the user's module, which may not be imported where this runs
                full = importlib.util.resolve_name(name, str(resolve("__package__")))
                root = _root(full)
                # The function may not have come to its import yet, here or in the worker.
                if not (_is_library(root) or is_standard(root) or root in _RELEASED or root in OURS):
                    importlib.import_module(full)
                self.of_module(full, sys.modules.get(full), _names(code), ())

    def type(self, cls):
        if self.library(cls) or self.released(cls):
            return self.add(cls.__module__, cls.__qualname__)
        ours = _root(cls.__module__) == _root(__name__)

        def content():
            self.add(tuple(getattr(cls, "_annotations", ())), getattr(cls, "_fields", None))
            for name, value in sorted(vars(cls).items(), key=lambda item: item[0]):
                if name in _MADE or isinstance(value, _DESCRIPTORS) or ours and not hasattr(value, "__compiled__"):
                    continue
                self.add(name)
                self.under(name, value)
            for base in cls.__bases__:
                self.value(base)

        return self.named(cls.__module__, cls.__qualname__, content, False)

    def array(self, array):
        if self.strict:
            super().array(array)

    def pickled(self, value):
        cls = type(value)
        if self.strict or cls.__module__ == "functools" or not (self.library(cls) or self.released(cls)):
            super().pickled(value)

    def unique(self, value):
        self.add("unique")

    def overloads(self, things, names):
        """Not of this package, of which all files are compared, and parts of it may not have been imported."""
        if self.package not in OURS:
            super().overloads(things, names)

    def released(self, thing):
        found = super().released(thing)
        if found:
            root, *told = _release(_package(thing))
            self.parts[root] = {repr(told).encode()}
        return found
