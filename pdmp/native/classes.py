"""Small classes whose methods become machine code; nothing here is about statistics.

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
What many classes share but few look at is kept in a class of **defaults** (`_kind_defaults`) that is no base: compiled
code and Python find there what neither the class nor a base of it defines, and `dir` does not show it.
With ``NUMBA_DISABLE_JIT=1`` the same tuple has the same methods in plain Python; tests compare the machine code with
them.

The name of a class's numba type contains a fingerprint of its methods and of everything that they name
(`pdmp.native.fingerprints`). Machine code on disk is found by these names, so what was edited is compiled anew.
The types are pickled by name, not by value, so that code compiled for classes of scripts and notebooks (``__main__``)
is found on disk as well.

A method ``identity()`` returns what distinguishes an object from others of the same class and fields, for checkpoints.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import itertools
import random
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core import config
from numba.extending import models, overload_method, register_model, typeof_impl

from pdmp.native.decorators import FAST as FAST
from pdmp.native.decorators import allocating as allocating
from pdmp.native.decorators import compiled as compiled
from pdmp.native.decorators import entry as entry
from pdmp.native.decorators import fused_inlined as fused_inlined
from pdmp.native.decorators import helper as helper
from pdmp.native.decorators import inlined as inlined
from pdmp.native.decorators import internal as internal
from pdmp.native.decorators import internal_inlined as internal_inlined
from pdmp.native.decorators import larger as larger
from pdmp.native.decorators import method_options, without_caches
from pdmp.native.decorators import positive_part as positive_part
from pdmp.native.decorators import vectorised as vectorised
from pdmp.native.decorators import vectorised_inlined as vectorised_inlined
from pdmp.native.explanations import explanation
from pdmp.native.fingerprints import UNIQUE, dispatchers, is_standard
from pdmp.native.fingerprints import fingerprint as fingerprint
from pdmp.native.messages import CLASSES
from pdmp.native.messages import readable as readable
from pdmp.native.representation import remembers_call, short

#: Sources of random numbers other than the argument `rng`, and how many values are searched for one, at most.
GENERATORS = np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random
SEARCHED = 20_000
#: What a class has that an attribute or a field of the same name would hide.
METHODS = types.FunctionType, classmethod, staticmethod
NUMBERS = {"float": float, "int": int, "bool": bool}  #: annotations of fields that are numbers

#: Annotation of a field whose methods are called by address where its class can be, see `pdmp.native.addresses`.
ByAddress = Any


def __getattr__(name: str) -> Any:
    if name == "positive":
        raise ImportError("pdmp.native.classes.positive, of the version before, is called positive_part.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_known = {}  # key of a class -> its numba type class, and the class of its named tuples
_numbers = itertools.count()
_named, _keys = set(), set()  # classes that `by_name` has seen, and their names


class NativeType(numba.types.NamedTuple):
    """The numba type of the named tuples of a `Compiled` class; one subclass for each class."""

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
    # A type made from an older source: it only has to differ from every type in use.
    return NativeType(members, collections.namedtuple("Stale", fields), key)


def _register(cls, tuple_class, methods):
    """Make the numba type of `cls` and attach `methods` to it."""
    key = f"{cls.__module__}.{cls.__qualname__}#{fingerprint([_attach, *methods.values()])[:40]}"
    key += "[" + ",".join(tuple_class._fields) + "]"
    numba_class = _register_type(tuple_class, key)
    for name, method in methods.items():
        _attach(numba_class, name, method, cls)


def _register_type(tuple_class, key):
    """Make the numba type of a class of named tuples."""
    numba_class = type(f"{tuple_class.__name__}Type", (NativeType,), {})
    register_model(numba_class)(models.TupleModel)
    _known[key] = numba_class, tuple_class
    CLASSES[key] = tuple_class

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
    """Register the classes of nested named tuples with numba by name, as those of `Compiled` are; returns `tree`.

    Numba's disk cache would otherwise pickle the classes themselves, and each Python process that reads it would have
    to import them.
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


def _attach(numba_class, name, method, cls=None):
    def choose(*args, **kwargs):
        if cls is not None:
            cls._stay_current()  # else code of other numbers would be kept on disk under the name of those before
        return method

    choose.__signature__ = inspect.signature(method)
    choose.__name__ = name
    choose.__of_type__ = True  # hashed with the name of the type, not wherever a method of this name is called
    overload_method(numba_class, name, jit_options=method_options(method), strict=False)(choose)


def _is_field(name, annotation):
    return not name.startswith("_") and "ClassVar" not in str(annotation)


def lookup_order(cls: type[Compiled]) -> tuple[type, ...]:
    """Where an attribute is looked for: the class, its bases, and the defaults of its kind after all of them."""
    return *cls.__mro__, cls._kind_defaults


def holds_generator(value: Any, within: bool = True) -> bool:
    """Whether a value is a random generator or one of its methods, or holds one, however deeply.

    Compiled objects within it are left out, as each is searched when it is made, and so are those of other packages,
    whose generators are their own; with ``within=False`` the attributes of all objects.
    """
    waiting, seen = collections.deque([value]), {}  # by id: what is made on the way must not be freed
    while waiting and len(seen) < SEARCHED:
        value = waiting.popleft()
        if isinstance(value, GENERATORS):
            return True
        if id(value) not in seen:
            seen[id(value)] = value
            waiting.extend(itertools.islice(_held(value, within), SEARCHED))
    return False


def _held(value, within):
    """What a value holds directly."""
    if isinstance(value, (int, float, str, bytes, type, types.ModuleType, Compiled)):
        return ()
    if isinstance(value, np.ndarray):
        return value.ravel()[:SEARCHED].tolist() if value.dtype.hasobject else ()
    if isinstance(value, (dict, types.MappingProxyType)):
        return itertools.chain.from_iterable(value.items())
    if isinstance(value, functools.partial):
        return value.func, value.args, value.keywords
    if isinstance(value, (types.MethodType, types.BuiltinMethodType)):
        return (value.__self__,)
    parts = list(value) if isinstance(value, (tuple, list, set, frozenset, collections.deque)) else []
    if not within:
        return parts
    if isinstance(value, types.FunctionType):
        return value.__defaults__, value.__kwdefaults__, *(cell_value(c) for c in value.__closure__ or ())
    if dataclasses.is_dataclass(value) or _is_of_user(type(value)):
        slots = [base.__dict__.get("__slots__", ()) for base in type(value).__mro__]
        names = itertools.chain.from_iterable([names] if isinstance(names, str) else names for names in slots)
        parts += [*getattr(value, "__dict__", {}).values(), *(getattr(value, name, None) for name in names)]
    return parts


def cell_value(cell):
    """What a variable of an enclosing function is; None before it is set."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _is_of_user(cls):
    """Whether a class is neither Python's nor that of an installed package."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    package = cls.__module__.partition(".")[0]
    return package != "pdmp" and not is_standard(package) and "site-packages" not in file


def check_attributes(owner):
    """Raise a `TypeError` for an object whose class has changed, or that hides a method or draws random numbers."""
    name = type(owner).__name__
    check_current(type(owner))
    if owner._set_by_base not in (None, *owner.__dict__):
        raise TypeError(f"`__init__` of {name} never calls `super().__init__(...)`, which every {owner._kind} needs.")
    of_user = type(owner).__module__.partition(".")[0] != "pdmp"
    in_class = {field: getattr(type(owner), field, None) for field in owner._annotations}
    for attribute, value in (in_class | owner.__dict__).items():
        bases = lookup_order(type(owner))
        method = next((base for base in bases if isinstance(vars(base).get(attribute), METHODS)), None)
        if method is not None:
            raise _hides(name, attribute, f"the method `{attribute}` of {method.__name__}")
        if not owner._keeps(attribute):
            raise _hides(name, attribute, f"what every {owner._kind} needs under this name")
        if holds_generator(value, of_user):
            is_one = "is" if isinstance(value, (*GENERATORS, tuple, list)) else "holds"
            raise TypeError(
                f"`self.{attribute}` of {name} {is_one} a random generator, whose numbers no `seed` of a run repeats: "
                "draw from the argument `rng` of its methods."
            )


def named_by_methods(cls):
    """A hash of each method of a user's class with whatever it names; of what can be hashed."""
    own = {m.__name__: m for m in cls._methods.values() if (m.__module__ or "").partition(".")[0] != "pdmp"}
    found = {name: fingerprint([method], overloaded=False) for name, method in own.items()}
    return {name: value for name, value in found.items() if not value.startswith(UNIQUE)}


def check_current(cls):
    """Raise a `TypeError` if what a method of a compiled class names has another value than when it was compiled.

    As in a notebook, where a number or a function that a class names is given a new value in a cell of its own.
    """
    now = named_by_methods(cls) if cls._compiled_with else {}
    for name, before in cls._compiled_with.items():
        if now.get(name, before) != before:
            raise TypeError(
                f"something that `{name}` of {cls.__name__} names, a number, an array or a function, has changed since "
                "it was compiled, and the machine code has what it was: define the class again, or keep in a field "
                "what is to change."
            )


_machine_code_of = weakref.WeakKeyDictionary()  # of functions of numba, a hash of what they named before they compiled


def check_unchanged(functions):
    """Raise a `TypeError` if a number, array or function that numba has compiled into one of these has changed since.

    They and what they name, transitively. Since they were first given here: what numba compiled earlier is not known.
    """
    stale, found = [], dispatchers(functions)
    without_caches(found)
    for function in (one for one in found if hasattr(one, "overloads")):
        now = fingerprint([function], named_only=("pdmp",), overloaded=False)
        if not function.overloads:
            _machine_code_of[function] = now
        elif _machine_code_of.setdefault(function, now) != now and not now.startswith(UNIQUE):
            stale.append(f"`{function.py_func.__name__}`")
    if stale:
        names = " and ".join(reversed(stale))  # what is named, before what names it
        raise TypeError(
            f"something that {names} named, a number, an array or a function, has changed since numba compiled it, and "
            f"the machine code has what it was: run the definition of {names} again."
        )


def check_replaced(cls):
    """Raise a `TypeError` if a compiled method was given another function after the class was defined."""
    for name, method in cls._methods.items():
        now = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), method)
        if now is not method and method.__name__ == name:
            if method is cls._methods.get("total_potential"):  # where a model with terms keeps it
                raise TypeError(
                    f"`potential` of {cls.__name__} stands beside terms: a model with `term_potential` has its "
                    "potential from that and from `prior_potential`, and the gradients of both; write these, or a "
                    "class that derives from pdmp.Model with `potential` and `add_gradient` alone."
                )
            raise TypeError(
                f"`{name}` of {cls.__name__} was replaced after the class was defined, and runs would not know: define "
                "a class that derives from it, with the method marked @compiled."
            )


def _hides(name, attribute, what):
    return TypeError(f"{name} sets `self.{attribute}`, which hides {what}: give it another name.")


class Compiled:
    """Base of classes whose fields and marked methods are available in compiled code (see the module's text)."""

    _fields = ()
    #: Arguments of the version before, and what is said of them where a constructor does not have them.
    _renamed: dict[str, str] = {}
    #: Attributes of the version before, and what each of them is now.
    _kind_moved: dict[str, str] = {}
    #: A class, no base of this one, whose attributes and methods an object has where its class defines none.
    _kind_defaults: type = object
    #: An attribute that only the constructor of a base sets, and what objects of that base are called.
    _set_by_base, _kind = None, "object"

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = remembers_call(cls.__init__, explanation, check_attributes)
        annotations, methods = {}, {}
        for base in reversed(lookup_order(cls)):
            annotations |= {n: a for n, a in base.__dict__.get("__annotations__", {}).items() if _is_field(n, a)}
            for name, value in base.__dict__.items():
                if getattr(value, "__compiled__", False):
                    methods[name] = value
                elif name in methods and not callable(value):
                    raise TypeError(
                        f"{cls.__name__}.{name} = {value!r} hides the method `{name}`: give it another name."
                    )
                elif name in methods:
                    del methods[name]
        for name in annotations:
            owner = next((base for base in lookup_order(cls) if isinstance(vars(base).get(name), METHODS)), None)
            if owner is not None:
                raise TypeError(
                    f"{cls.__name__}.{name} is declared as a field, but `{name}` is a method of {owner.__name__}: give "
                    "the field another name."
                )
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
        cls._registered, cls._compiled_with = False, {}

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name in vars(self._kind_defaults):
                found = vars(self._kind_defaults)[name]
                return found.__get__(self) if hasattr(found, "__get__") else found
            if name in self._kind_moved:
                now = self._kind_moved[name]
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; it is `{now}` now.")
            return super().__getattribute__(name)  # which raises, in Python's words

    def __repr__(self):
        return getattr(self, "_text", None) or super().__repr__()

    @classmethod
    def _stay_current(cls):
        """As `check_current`, where a method is compiled for a further caller."""
        check_current(cls)

    def _keeps(self, attribute):
        """Whether an attribute still is what the methods of the base need."""
        return True

    @property
    def by_address(self) -> Compiled:
        """What stands for this object in a field that is annotated `ByAddress`."""
        return self

    @property
    def native(self) -> tuple:
        """The named tuple that compiled code works on."""
        cls = type(self)
        if not cls._registered and not config.DISABLE_JIT:
            # Not earlier, when the class is defined: its methods may name functions that are defined after it.
            check_unchanged(
                method for method in cls._methods.values() if not (method.__module__ or "").startswith("pdmp.")
            )
            _register(cls, cls._tuple, cls._methods)
            cls._registered, cls._compiled_with = True, named_by_methods(cls)
        values = []
        for name, annotation in cls._annotations.items():
            try:
                value = getattr(self, name)
            except AttributeError:
                raise TypeError(f"{cls.__name__} declares the field `{name}` but never sets it.") from None
            values.append(_as_member(value, annotation, name, cls))
        return cls._tuple(*values or [0])

    @native.setter
    def native(self, value: object) -> None:
        raise _hides(type(self).__name__, "native", f"what every {self._kind} needs under this name")


def _as_member(value, annotation, name, cls):
    if isinstance(value, Compiled):
        return (value.by_address if annotation == "ByAddress" else value).native
    kind = NUMBERS.get(annotation)
    if kind is None:
        return value
    try:
        member = kind(value)
        if isinstance(value, (str, bytes)) or (annotation != "float" and member != value):
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        said = f"`{name}` of {cls.__name__} is declared as {annotation}, and was given {short(value)}."
        raise TypeError(said) from None
    return member
