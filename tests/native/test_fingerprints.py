"""The hash that decides whether machine code on disk is still valid."""

import collections
import functools
import operator
import os
import sys
import sysconfig
import threading
import tracemalloc
import types

import numba
import numpy as np
import pytest
from llvmlite import ir
from numba.core import datamodel, extending, imputils
from numba.core.typing import templates
from scipy import spatial

import pdmp
from pdmp.engine import scheduler
from pdmp.native import fingerprints
from pdmp.native.classes import Compiled, _register, compiled
from pdmp.native.fingerprints import UNIQUE, fingerprint
from tests.native.helpers_fingerprints import classes_of_the_packages
from tests.native.processes import python

pytestmark = pytest.mark.exact


def of(text):
    """Fingerprint of the function `f` of a file with this text."""
    module = types.ModuleType("a_file_of_ones_own")
    exec(compile("import enum, functools\nimport numpy as np\n" + text, "a_file.py", "exec"), module.__dict__)
    return fingerprint([module.f])


WRAPPER = (
    "def g(x): return x\nclass G:\n    def __init__(self, f, a):\n        functools.update_wrapper(self, f)\n"
    "        self.a = a\n    def __call__(self, x): return {} * self.a\n"
)
ITEMS = (
    "class A:\n    def __reduce__(self): return A, (), None, None, iter([(1, self.b)])\na = A()\ndef f(x): return a\n"
)
OWN_TEXT = "class A({}):\n    {}\n    def __repr__(self): return 'some metres'\n"
DIFFERENT = {
    "an instruction": ("def f(x): return x + x", "def f(x): return x * x"),
    "a number": ("def f(x): return 2 * x", "def f(x): return 3 * x"),
    "an integer and a float": ("def f(x): return 2 * x", "def f(x): return 2.0 * x"),
    "the sign of a zero": ("def f(x): return x / 0.0", "def f(x): return x / -0.0"),
    "a text": ("def f(x): return x == 'a'", "def f(x): return x == 'b'"),
    "a default": ("def f(x, a=1): return a", "def f(x, a=2): return a"),
    "a keyword's default": ("def f(x, *, a=1): return a", "def f(x, *, a=2): return a"),
    "an array's scalar": (
        "A = np.array([1, 1]).max()\ndef f(x): return A",
        "A = np.array([1, 9]).max()\ndef f(x): return A",
    ),
    "an array": ("A = np.arange(9)\ndef f(x): return A", "A = np.arange(9); A[4] = 0\ndef f(x): return A"),
    "a type of numbers": ("A = np.ones(2)\ndef f(x): return A", "A = np.ones(2, int)\ndef f(x): return A"),
    "the middle of a large array in a tuple": (
        "A = (np.zeros(9_999),)\ndef f(x): return A",
        "A = (np.zeros(9_999),); A[0][5_000] = 1\ndef f(x): return A",
    ),
    "a list": ("A = [1, [2, 3]]\ndef f(x): return A", "A = [1, [2, 4]]\ndef f(x): return A"),
    "a dict": ("A = {'a': {'b': 1}}\ndef f(x): return A", "A = {'a': {'b': 2}}\ndef f(x): return A"),
    "a set": ("A = {'a', 'b'}\ndef f(x): return A", "A = {'a', 'c'}\ndef f(x): return A"),
    "what a queue holds": (
        "import collections\nA = collections.deque([1, 2])\ndef f(x): return A",
        "import collections\nA = collections.deque([1, 3])\ndef f(x): return A",
    ),
    "what an object is pickled with as the items of a dictionary": (
        ITEMS + "a.b = 2",
        ITEMS + "a.b = 3",
    ),
    "an enumeration": (
        "class A(enum.Enum):\n    B = 1\ndef f(x): return A.B.value",
        "class A(enum.Enum):\n    B = 2\ndef f(x): return A.B.value",
    ),
    "an integer of an enumeration with a text of its own": (
        OWN_TEXT.format("enum.IntEnum", "B = 1") + "def f(x): return A.B.value",
        OWN_TEXT.format("enum.IntEnum", "B = 2") + "def f(x): return A.B.value",
    ),
    "an enumeration's second name": (
        "class A(enum.Enum):\n    B = 1\n    C = 2\n    D = 1\ndef f(x): return A",
        "class A(enum.Enum):\n    B = 1\n    C = 2\n    D = 2\ndef f(x): return A",
    ),
    "a number with a text of its own": (
        OWN_TEXT.format("float", "b = 1") + "a = A(1.0)\ndef f(x): return a * x",
        OWN_TEXT.format("float", "b = 1") + "a = A(2.0)\ndef f(x): return a * x",
    ),
    "such a number in a tuple, as a default": (
        OWN_TEXT.format("int", "b = 1") + "def f(x, a=(0, A(1))): return a[1] * x",
        OWN_TEXT.format("int", "b = 1") + "def f(x, a=(0, A(2))): return a[1] * x",
    ),
    "what such a number has beside it": (
        OWN_TEXT.format("float", "b = 1") + "a = A(1.0)\na.c = 1\ndef f(x): return a.c * x",
        OWN_TEXT.format("float", "b = 1") + "a = A(1.0)\na.c = 2\ndef f(x): return a.c * x",
    ),
    "a class's constant": ("class A:\n    B = 1\ndef f(x): return A.B", "class A:\n    B = 2\ndef f(x): return A.B"),
    "a closure": (
        "def g(a):\n    return lambda x: x + a\nf = g(1)",
        "def g(a):\n    return lambda x: x + a\nf = g(2)",
    ),
    "an inner function": (
        "def f(x):\n    def g(y): return y + 1\n    return g(x)",
        "def f(x):\n    def g(y): return y + 2\n    return g(x)",
    ),
    "a function that it calls": (
        "def g(x): return h(x)\ndef h(x): return 1\ndef f(x): return g(x)",
        "def g(x): return h(x)\ndef h(x): return 2\ndef f(x): return g(x)",
    ),
    "functools.partial": (
        "def g(a, x): return a\nh = functools.partial(g, 1)\ndef f(x): return h(x)",
        "def g(a, x): return a\nh = functools.partial(g, 2)\ndef f(x): return h(x)",
    ),
    "a callable object's value": (
        "class G:\n    def __init__(self, a): self.a = a\n    def __call__(self, x): return self.a\nf = G(1)",
        "class G:\n    def __init__(self, a): self.a = a\n    def __call__(self, x): return self.a\nf = G(2)",
    ),
    "a callable object's method": (
        "class G:\n    def __call__(self, x): return 1\nf = G()",
        "class G:\n    def __call__(self, x): return 2\nf = G()",
    ),
    "what a call of a class is": (
        "class M(type):\n    def __call__(cls): return 1\nclass A(metaclass=M): pass\ndef f(x): return A()",
        "class M(type):\n    def __call__(cls): return 2\nclass A(metaclass=M): pass\ndef f(x): return A()",
    ),
    "a function whose values are cached": (
        "@functools.lru_cache\ndef g(x): return 1\ndef f(x): return g(x)",
        "@functools.lru_cache\ndef g(x): return 2\ndef f(x): return g(x)",
    ),
    "what an object does that wraps a function": (
        WRAPPER.format(1) + "f = G(g, 1)",
        WRAPPER.format(2) + "f = G(g, 1)",
    ),
    "the value of an object that wraps a function": (
        WRAPPER.format(1) + "f = G(g, 1)",
        WRAPPER.format(1) + "f = G(g, 2)",
    ),
    "the function that an object wraps": (
        WRAPPER.format(1) + "f = G(g, 1)",
        WRAPPER.format(1) + "f = G(abs, 1)",
    ),
    "the value of an object that has an attribute of numba's": (
        "class G:\n    def __init__(self, a): self.py_func, self.a = abs, a\nh = G(1)\ndef f(x): return h(x)",
        "class G:\n    def __init__(self, a): self.py_func, self.a = abs, a\nh = G(2)\ndef f(x): return h(x)",
    ),
    "the value of an object that has every attribute": (
        "class G:\n    def __getattr__(self, name): return 1\nh = G()\nh.a = 1\ndef f(x): return h(x)",
        "class G:\n    def __getattr__(self, name): return 1\nh = G()\nh.a = 2\ndef f(x): return h(x)",
    ),
    "a jitted function's options": (
        "import numba\n@numba.njit(fastmath=True)\ndef g(x): return x\ndef f(x): return g(x)",
        "import numba\n@numba.njit(fastmath={'nnan'})\ndef g(x): return x\ndef f(x): return g(x)",
    ),
    "a jitted function's options of types": (
        "import numba\n@numba.njit('f8(f8)')\ndef g(x): return x\ndef f(x): return g(x)",
        "import numba\n@numba.njit('f8(f4)')\ndef g(x): return x\ndef f(x): return g(x)",
    ),
    "a jitted function's options of variables": (
        "import numba\n@numba.njit(locals={'y': numba.f4})\ndef g(x):\n    y = x\n    return y\ndef f(x): return g(x)",
        "import numba\n@numba.njit\ndef g(x):\n    y = x\n    return y\ndef f(x): return g(x)",
    ),
    "keys that are numbers": ("A = {1: 5}\ndef f(x): return A", "A = {2: 5}\ndef f(x): return A"),
    "keys that are text": ("A = {'a': 5}\ndef f(x): return A", "A = {'b': 5}\ndef f(x): return A"),
    "the keys of functions": (
        "def g(x): return 1\ndef h(x): return 2\nA = {1: g, 2: h}\ndef f(x): return A",
        "def g(x): return 1\ndef h(x): return 2\nA = {2: g, 1: h}\ndef f(x): return A",
    ),
    "two constants of a class, exchanged": (
        "class A:\n    B = 1\n    C = 2\na = A()\ndef f(x): return a.C",
        "class A:\n    C = 1\n    B = 2\na = A()\ndef f(x): return a.C",
    ),
    "two methods of a class, exchanged": (
        "class A:\n    g = lambda self: 1\n    h = lambda self: 2\na = A()\ndef f(x): return a.g()",
        "class A:\n    h = lambda self: 1\n    g = lambda self: 2\na = A()\ndef f(x): return a.g()",
    ),
    "a base class's constant": (
        "class B:\n    C = 1\nclass A(B): pass\na = A()\ndef f(x): return a.C",
        "class B:\n    C = 2\nclass A(B): pass\na = A()\ndef f(x): return a.C",
    ),
    "what a ufunc of one's own does": (
        "import numba\n@numba.vectorize\ndef g(x): return x + 1\ndef f(x): return g(x)",
        "import numba\n@numba.vectorize\ndef g(x): return x + 2\ndef f(x): return g(x)",
    ),
}


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.quick] * ("options" in what)) for what in DIFFERENT]
)
def test_what_is_computed_with_makes_a_difference(what):
    one, other = DIFFERENT[what]
    if "options" in what and not hasattr(scheduler.advance, "py_func"):
        pytest.skip("a jitted function is a plain one here")
    assert of(one) == of(one)
    assert of(one) != of(other)
    assert not of(one).startswith(UNIQUE)


#: Overloads in a file that the function does not name, with the function: "N" is what is edited.
ELSEWHERE = {
    "a function": ("@overload(module.g)\ndef _(x): return lambda x: N", "def g(x): pass\ndef f(x): return g(x)"),
    "its options": (
        "@overload(module.g, jit_options={'fastmath': N})\ndef _(x): return lambda x: 1",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "whether it is inlined": (
        "@overload(module.g, inline=('never', 'always')[N - 1])\ndef _(x): return lambda x: 1",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "what it calls": (
        "def h(x): return N\n@overload(module.g)\ndef _(x): return lambda x: h(x)",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "a function of numpy": ("@overload(np.sinc)\ndef _(x): return lambda x: N", "def f(x): return np.sinc(x)"),
    "under another name": ("@overload(np.absolute)\ndef _(x): return lambda x: N", "def f(x): return np.abs(x)"),
    "of a module in a variable": (
        "@overload(np.sinc)\ndef _(x): return lambda x: N",
        "def f(x):\n    m = np\n    return m.sinc(x)",
    ),
    "imported by name": (
        "@overload(np.sinc)\ndef _(x): return lambda x: N",
        "from numpy import sinc as s\ndef f(x): return s(x)",
    ),
    "a builtin": ("@overload(len)\ndef _(x): return lambda x: N", "def f(x): return len(x)"),
    "an operator": ("@overload(operator.add)\ndef _(x, y): return lambda x, y: N", "def f(x): return x + x"),
    "a method": (
        "@overload_method(types.Array, 'energy')\ndef _(x): return lambda x: N",
        "def f(x): return x.energy()",
    ),
    "an attribute": (
        "@overload_attribute(types.Array, 'energy')\ndef _(x): return lambda x: N",
        "def f(x): return x.energy",
    ),
    "in a helper": (
        "@overload_method(types.Array, 'energy')\ndef _(x): return lambda x: N",
        "def h(x): return x.energy()\ndef g(x): return h(x)\ndef f(x): return g(x)",
    ),
    "typed by hand": (
        "@type_callable(module.g)\ndef _(c): return lambda x: N",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "generated by hand": (
        "@lower_builtin(module.g, types.intp)\ndef _(c, b, s, a): return N",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "an attribute generated by hand": (
        "@lower_getattr(types.Array, 'energy')\ndef _(c, b, t, v): return N",
        "def f(x): return x.energy",
    ),
    "a part of a function, generated by hand": (
        "lower_builtin(module.g, types.intp)(functools.partial(lambda n, c, b, s, a: n, N))",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "iteration": ("@lower_builtin('getiter', Own)\ndef _(c, b, s, a): return N", "def f(x):\n    for y in x: pass"),
    "a member of a structure": (
        "make_attribute_wrapper(Own, ('low', 'high')[N - 1], 'end')",
        "def f(x): return x.end",
    ),
    "its name": ("make_attribute_wrapper(Own, 'low', ('end', 'start')[N - 1])", "def f(x): return x.end"),
    "of a type that nothing names": (
        "def implementation(x): pass\n@lower_builtin(implementation, types.intp)\ndef _(c, b, s, a): return N",
        "def g(x): pass\ndef f(x): return g(x)",
    ),
    "which type something is of": (
        "@typeof_impl.register(list)\ndef _(value, c): return Own(str(N))",
        "a = []\ndef f(x): return a",
    ),
    "what a type is in memory": (
        "@register_model(Own)\nclass Model(models.StructModel):\n    members = N",
        "def f(x): return x",
    ),
    "an attribute that is set": (
        "@lower_setattr(Own, 'end')\ndef _(c, b, s, a): return N",
        "def f(x): x.end = 1",
    ),
    "a conversion": ("@lower_cast(Own, types.intp)\ndef _(c, b, s, t, v): return N", "def f(x): return x"),
    "a constant": ("@lower_constant(Own)\ndef _(c, b, t, v): return N", "def f(x): return x"),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_an_overload_in_another_file_makes_a_difference(what, monkeypatch):
    """In lists of numba's that are made for this test: what is in the true ones stays there."""

    def hashed(number, overloaded=True):
        typed, lowered = templates.Registry(), imputils.Registry()
        typeof, models = functools.singledispatch(lambda value, c: None), datamodel.DataModelManager()
        given = {"infer": typed.register, "infer_getattr": typed.register_attr, "infer_global": typed.register_global}
        given |= {"lower_builtin": lowered.lower, "lower_getattr": lowered.lower_getattr, "typeof_impl": typeof}
        given |= {"lower_setattr": lowered.lower_setattr, "lower_cast": lowered.lower_cast}
        given |= {"lower_constant": lowered.lower_constant}
        given |= {"register_model": functools.partial(datamodel.register, models)}
        for name, function in given.items():
            for owner in (templates, extending):
                monkeypatch.setattr(owner, name, function, raising=False)
        monkeypatch.setattr(
            fingerprints, "_overloads", fingerprints._Overloads(typed, lowered, typeof.registry, models._handlers)
        )
        file, elsewhere = types.ModuleType("file_of_ones_own"), types.ModuleType("overloads_of_ones_own")
        exec("import numpy as np\n" + ELSEWHERE[what][1], file.__dict__)
        names = dict(vars(extending)) | given | {"module": file, "types": numba.types, "operator": operator, "np": np}
        elsewhere.__dict__.update(names | {"__name__": elsewhere.__name__, "functools": functools})
        exec("class Own(types.Type): pass", elsewhere.__dict__)
        if overloaded:
            exec(ELSEWHERE[what][0].replace("N", str(number)), elsewhere.__dict__)
        return fingerprint([file.f])

    assert hashed(1) == hashed(1)
    assert len({hashed(1), hashed(2), hashed(1, overloaded=False)}) == 3
    assert not hashed(1).startswith(UNIQUE)


def test_overloads_have_an_order_that_is_not_that_of_imports():
    """A worker may import libraries in another one."""

    def found(*names):
        overloads = fingerprints._Overloads(templates.Registry(), imputils.Registry(), {}, {})
        for name in names:
            module = types.ModuleType(name)
            exec("def overload(x): return lambda x: 1", module.__dict__)
            overloads._add(module.overload, np.sinc, {})
        return [entry[0] for entry in overloads.found([np.sinc], ())]

    names = "first_of_ones_own", "second_of_ones_own"
    assert found(*names) == found(*reversed(names)) == [*names]


def test_overloads_are_looked_up_for_what_an_attribute_is(monkeypatch):
    """Of a library, by the function itself: `np.abs` is numpy.absolute, a name that no instruction has."""
    asked = []
    monkeypatch.setattr(fingerprints._Overloads, "found", lambda self, things, *_: asked.extend(things) or [])
    fingerprint([lambda x: np.abs(x)])
    assert any(thing is np.absolute for thing in asked)


def test_overloads_of_other_names_make_none():
    """Machine code stays valid when a library that overloads functions of its own is imported as well."""
    before = fingerprint([scheduler.advance])

    def of_another_library(x):
        return x

    numba.extending.overload(of_another_library)(lambda x: lambda x: 1)
    numba.extending.overload_method(numba.types.Omitted, "clock")(lambda x: lambda x: 1)  # a name that the loop uses

    class Own(Compiled):  # whose type has the hash of its methods
        @compiled
        def clock(self):
            return 1

    _register(Own, Own._tuple, Own._methods)
    assert fingerprint([scheduler.advance]) == before


def test_what_has_been_asked_before_makes_no_difference():
    """LLVM's types and constants, and objects with cached properties, keep what they have answered."""
    kind = ir.VectorType(ir.DoubleType(), 3)
    zero, word = (
        ir.Constant(kind, [0.0] * 3),
        numba.types.Tuple([numba.types.intp, numba.types.Array(numba.f8, 1, "C")]),
    )

    class Own:
        @functools.cached_property
        def answer(self):
            return 42

    own = Own()
    hashed = fingerprint([lambda x: (kind, zero, word, own)])
    assert not hashed.startswith(UNIQUE)
    asked = str(kind), str(zero), str(word), own.answer, zero.get_reference()
    assert asked and fingerprint([lambda x: (kind, zero, word, own)]) == hashed
    other = ir.VectorType(ir.DoubleType(), 4)
    assert fingerprint([lambda x: kind]) != fingerprint([lambda x: other])


def test_a_table_of_data_makes_a_difference():
    pandas = pytest.importorskip("pandas")

    def hashed(*values):
        table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", values[0]], "c": pandas.Categorical(values)})
        return fingerprint([lambda x: table])

    assert hashed("p", "q", "q") == hashed("p", "q", "q")
    assert len({hashed("p", "q", "q"), hashed("r", "q", "q"), hashed("p", "p", "q")}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    'A docstring.'\n    return A + x",
        "def f(x):\n\n    # a comment\n    return A + x  # another",
        "def f(x: float) -> float:\n    return A + x",
        "B = 5\ndef g(x): return B\ndef f(x): return A + x",
    ],
)
def test_what_is_not_computed_with_makes_none(text):
    assert of("A = 2\n" + text) == of("A = 2\ndef f(x): return A + x")


def test_an_attribute_is_not_the_global_of_its_name():
    """A script has its data in `X`, and methods that read `self.X`: other data are not another program."""
    method = "\ndef f(self, i): return self.X[i]"
    assert of("X = np.zeros(3)" + method) == of("X = np.ones(3)" + method)
    assert of("X = np.zeros(3)\ndef f(i): return X[i]") != of("X = np.ones(3)\ndef f(i): return X[i]")


def test_data_beside_a_cache_in_a_tuple_are_part_of_the_function():
    def identity(data):
        both = data, {}

        def f(x):
            return both[1].setdefault(x, both[0] * x)

        before = fingerprints.kept(f)
        f(2.0)
        changing = fingerprints.changed(before, fingerprints.kept(f))
        assert changing
        return fingerprint([f], without=changing)

    assert identity(1.0) == identity(1.0) != identity(3.0)


def test_what_a_call_makes_of_another_type_is_changed():
    """A memo that becomes an ordered dictionary of the same entries has another hash, and is left out of it."""
    state = {"memo": {"x": 1.0}}

    def f(x):
        state["memo"] = collections.OrderedDict(state["memo"])

    before, hashed = fingerprints.kept(f), fingerprint([f])
    f(3.0)
    assert fingerprint([f]) != hashed
    changing = fingerprints.changed(before, fingerprints.kept(f))
    found = fingerprint([f], without=changing)
    state["memo"] = {"x": 1.0}
    assert fingerprint([f], without=changing) == found


def test_what_is_written_into_a_tree_of_scipy_is_changed():
    """Of which no two have the same hash, as it has addresses."""
    points = np.arange(60.0).reshape(20, 3)
    tree = spatial.cKDTree(points)  # which does not copy them

    def f(x):
        return tree.query(x)

    before = fingerprints.kept(f)
    assert fingerprint([f]).startswith(UNIQUE) and not fingerprints.changed(before, fingerprints.kept(f))
    points[0, 0] = 3.0
    assert fingerprints.changed(before, fingerprints.kept(f))


def test_helpers_in_other_files_are_followed(monkeypatch):
    def with_helper(text):
        module = types.ModuleType("helpers_of_ones_own")
        exec(text, module.__dict__)
        monkeypatch.setitem(sys.modules, "helpers_of_ones_own", module)
        return of("import helpers_of_ones_own as h\ndef f(x): return h.g(x)")

    assert with_helper("def g(x): return 1") == with_helper("def g(x): return 1\ndef unused(x): return 1")
    assert with_helper("def g(x): return 1") != with_helper("def g(x): return 2")


IN_VARIABLES = {
    "a local variable, two dots": "def f(x):\n    m = outer\n    return m.inner.K * x",
    "a closure, two dots": "def make(m):\n    def f(x):\n        return m.inner.K * x\n    return f\nf = make(outer)",
    "a function within": "def f(x):\n    m = outer.inner\n    def g(y):\n        return m.K * y\n    return g(x)",
    "a default": "def f(x, m=outer):\n    return m.inner.K * x",
    "a default by name": "def f(x, *, m=outer.inner):\n    return m.K * x",
}


@pytest.mark.parametrize("how", IN_VARIABLES)
def test_modules_in_variables_are_followed(how):
    """As far as the names of the function go, of modules that name each other too; what it does not name is not."""
    outer, inner = types.ModuleType("outer_of_test"), types.ModuleType("inner_of_test")
    outer.inner, inner.K, inner.L, inner.outer = inner, 1.0, 1.0, outer
    scope = {"outer": outer}
    exec(IN_VARIABLES[how], scope)
    before = fingerprint([scope["f"]])
    inner.L = 2.0
    assert fingerprint([scope["f"]]) == before
    inner.K = 2.0
    assert fingerprint([scope["f"]]) != before


@pytest.mark.parametrize("of", [operator.itemgetter, np.clip, scheduler.settle, pytest.approx])
def test_a_function_that_has_the_name_of_another_is_followed(of):
    """As `functools.wraps` makes it: of the standard library, of NumPy, of this package and of another."""

    def made(constant):
        @functools.wraps(of)
        def own(x):
            return constant * x

        return own

    assert made(1.0).__module__ != __name__
    assert fingerprint([made(1.0)]) == fingerprint([made(1.0)]) != fingerprint([made(2.0)])
    assert fingerprint([made(1.0)], named_only=("pdmp",)) != fingerprint([made(2.0)], named_only=("pdmp",))


@pytest.mark.parametrize("name", ["numpy", "math", "numpy.linalg", "pdmp.models"])
@pytest.mark.parametrize("where", ["of the function", "of its file"])
def test_a_function_whose_code_is_not_in_the_library_that_it_names_is_followed(name, where):
    def made(constant):
        scope = {"__name__": name if where == "of its file" else __name__}
        exec(f"def own(x): return {constant} * x", scope)
        scope["own"].__module__ = name
        return scope["own"]

    for options in ({}, {"named_only": ("pdmp",)}):
        assert fingerprint([made(1.0)], **options) == fingerprint([made(1.0)], **options)
        assert fingerprint([made(1.0)], **options) != fingerprint([made(2.0)], **options)
    assert fingerprints.parts([made(1.0)]) != fingerprints.parts([made(2.0)])


def test_what_a_try_guards_makes_a_difference():
    """The instructions are the same, and so are their order and what they work on."""
    text = "def f(x):\n    try:\n        try:\n            x += 1\n{}        except Exception:\n            x = 1\n{}"
    text += "    except Exception:\n        x = 3\n    return x"
    within, after = {}, {}
    exec(text.format("            x = g(x)\n", ""), within)
    exec(text.format("", "        else:\n            x = g(x)\n"), after)
    assert fingerprint([within["f"]]) != fingerprint([after["f"]])


@pytest.mark.parametrize("hashed", [fingerprint, fingerprints.parts])
def test_a_file_with_the_name_of_one_of_pythons_is_followed(hashed, tmp_path, monkeypatch):
    def with_file(folder, number):
        module = types.ModuleType("profile")
        module.__file__ = os.path.join(folder, "profile.py")
        exec(compile(f"def f(x): return {number}", module.__file__, "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, "profile", module)
        return hashed([module.f])

    assert with_file(tmp_path, 1) != with_file(tmp_path, 2)
    of_python = sysconfig.get_path("stdlib")
    assert with_file(of_python, 1) == with_file(of_python, 2)


def test_arrays_of_other_shapes_differ():
    def hashed(array):
        return fingerprint([lambda x: array[0, 1]])

    wide, high = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    assert hashed(wide) == hashed(wide.copy()) != hashed(high)


@pytest.mark.parametrize("name", ["package_of_ones_own", "pandas"])
@pytest.mark.parametrize("file", ["__init__.py", "inner.py"])
def test_a_version_stands_for_the_code_of_a_known_package_only(name, file, tmp_path, monkeypatch):
    """Whoever works on a package edits it without a new version, and may install it again without one."""

    def hashed(folder, version="1.0", edit="", begun=2e12):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for one in ("inner.py", "__init__.py"):
            text, place = "def g(x): return 1\n" + (edit if one == file else ""), folder / name / one
            place.write_text(text)
        module = types.ModuleType(name)
        module.__version__, module.__file__ = version, str(place)
        exec(compile(text, place, "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, name, module)
        fingerprints._files.cache_clear()
        monkeypatch.setattr(fingerprints, "_INSTALLED", (str(tmp_path / "installed"),))
        monkeypatch.setattr(fingerprints, "_BEGUN", begun)
        return of(f"import {name} as h\ndef f(x): return h.g(x)"), fingerprints.parts([module.g]).get(name)

    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    assert hashed(installed) == hashed(installed) != hashed(installed, "1.1")
    assert (hashed(installed) == hashed(installed, edit="def g(x): return 2")) == (name == "pandas")
    assert hashed(elsewhere) == hashed(elsewhere, "1.1")
    assert (hashed(elsewhere) == hashed(elsewhere, edit="def g(x): return 2")) == (file == "inner.py")
    assert hashed(installed, begun=0.0)[0].startswith(UNIQUE) == (name != "pandas")


@pytest.mark.parametrize("name", ["package_of_ones_own", "pandas"])
@pytest.mark.parametrize("what", ["constant", "array", "default", "closure", "other"])
def test_what_functions_of_an_installed_package_are_given(name, what, tmp_path, monkeypatch):
    """A number that it reads from a file or a script sets, what a factory is called with, a function of another one."""
    place = tmp_path / name / "__init__.py"
    place.parent.mkdir()
    place.write_text(text := "def g(x, k=D): return A[0] * K * other(x)\ndef make(k): return lambda x: k * x\n")
    monkeypatch.setattr(fingerprints, "_INSTALLED", (str(tmp_path),))
    monkeypatch.setattr(fingerprints, "_BEGUN", 2e12)  # its files are older than this process
    fingerprints._files.cache_clear()

    def hashed(**given):
        values = {"constant": 1.0, "array": 1.0, "default": 1.0, "closure": 1.0, "other": 1.0} | given
        namespace = {}
        exec(compile(f"def other(x): return {values['other']} * x", tmp_path / "elsewhere.py", "exec"), namespace)
        module = types.ModuleType(name)
        module.__version__, module.__file__ = "1.0", str(place)
        module.K, module.A, module.D = values["constant"], np.array([values["array"]]), values["default"]
        module.other = namespace["other"]
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, place, "exec"), module.__dict__)
        return fingerprint([module.g, module.make(values["closure"])])

    assert hashed() == hashed()
    assert (hashed() == hashed(**{what: 2.0})) == (name == "pandas")


@pytest.mark.parametrize("name", ["package_of_ones_own", "pandas"])
def test_what_compiled_functions_of_a_package_name_tells_workers_apart(name, tmp_path, monkeypatch):
    """It is in their machine code, whatever the version."""
    place = tmp_path / name / "__init__.py"
    place.parent.mkdir()
    place.write_text(text := "def g(x): return K * x\ng.__compiled__ = True\n")
    monkeypatch.setattr(fingerprints, "_INSTALLED", (str(tmp_path),))
    monkeypatch.setattr(fingerprints, "_BEGUN", 2e12)  # its files are older than this process
    fingerprints._files.cache_clear()

    def told(number):
        module = types.ModuleType(name)
        module.__version__, module.__file__, module.K = "1.0", str(place), number
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, place, "exec"), module.__dict__)
        return fingerprints.parts([module.g])

    assert told(1.0) == told(1.0) != told(2.0)


def test_what_differs_is_named_as_the_function_names_it(monkeypatch):
    """With the modules that it stands in."""
    outer, inner, mine = map(types.ModuleType, ("outer", "outer.inner", "mine"))
    outer.inner, mine.outer = inner, outer
    monkeypatch.setitem(sys.modules, "mine", mine)
    exec("def g(x): return outer.inner.TABLE[0] * x\ndef f(x): return g(x)", mine.__dict__)

    def told(number):
        inner.TABLE = [number]
        return fingerprints.parts([mine.f], True)

    one, other = told(1.0), told(2.0)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == ["mine.g (outer.inner.TABLE)"]


@pytest.mark.slow
def test_what_cannot_be_hashed_is_of_this_process_alone():
    lock = threading.Lock()

    def f(x):
        return lock

    assert fingerprint([f]).startswith(UNIQUE)
    assert fingerprint([f]) == fingerprint([f])
    code = "import threading; from pdmp.native.fingerprints import fingerprint; lock = threading.Lock(); "
    code += "print(fingerprint([eval('lambda: lock')]))"
    assert python("-c", code) != python("-c", code)


@pytest.mark.slow
def test_the_order_of_a_set_does_not_matter():
    code = "from pdmp.native.fingerprints import fingerprint; A = set('abcdefgh'); "
    code += 'print(fingerprint([eval(\'lambda x: (A, x in {1, "p", "q", "r"})\')]))'
    assert python("-c", code, PYTHONHASHSEED=1) == python("-c", code, PYTHONHASHSEED=2)


def test_every_class_of_the_packages_can_be_hashed():
    """Otherwise its machine code would not be kept on disk."""
    classes = classes_of_the_packages()
    for cls in classes:
        assert not fingerprint(cls._methods.values()).startswith(UNIQUE), cls
    assert not fingerprint([scheduler.advance]).startswith(UNIQUE)
    assert pdmp.BPS in classes


def test_what_has_been_imported_besides_does_not_tell_workers_apart():
    """`discrete` and rooms of this package tell numba of functions that others name as well."""
    program = """if True:
        import pdmp
        from pdmp.native import fingerprints
        model = pdmp.models.Gaussian([0.0], [1.0])
        values = [pdmp.ZigZag(model), pdmp.BPS(model), pdmp.models.from_function(lambda x: (0.5 * x @ x, x), 1)]
        before = fingerprints.parts(values), fingerprints.parts(values, tables=True)
        import discrete, pdmp.automatic.tempering, pdmp.models.regressions, pdmp.processes
        discrete.SGRRLD, discrete.BAOAB, pdmp.models.from_stan, pdmp.factors, pdmp.gradients
        from discrete import threads
        after = fingerprints.parts(values), fingerprints.parts(values, tables=True)
        for one, other in zip(before, after):
            print([name for name in one if one[name] != other.get(name)])
    """
    assert python("-c", program, NUMBA_DISABLE_JIT=1) == "[]\n[]\n"


def test_of_an_array_above_the_limit_only_pieces_are_looked_at():
    """Of a thousand entries every 3,002 here, so that many gigabytes take no longer; the limit is in bytes."""
    array = np.zeros(3_000_000)
    assert array.size < fingerprints.PIECES_ABOVE < array.nbytes < 10**9
    before = [fingerprints.array_digest(array, most) for most in (fingerprints.PIECES_ABOVE, 10**9)]
    array[2_000] = 1.0
    after = [fingerprints.array_digest(array, most) for most in (fingerprints.PIECES_ABOVE, 10**9)]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False]
    columns = np.zeros((3_000, 1_000), order="F")
    tracemalloc.start()
    fingerprints.array_digest(columns, fingerprints.PIECES_ABOVE)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < columns.nbytes  # no copy of all, whichever axis comes first


def test_arrays_of_fields_within_fields_are_looked_at():
    inner = collections.namedtuple("Inner", "a n")(np.arange(3.0), 2)
    outer = collections.namedtuple("Outer", "x inner y")(np.zeros(2), inner, np.ones(4))
    before = fingerprints.arrays_of(outer)
    for k, array in enumerate((outer.x, inner.a, outer.y)):
        array[-1] += 1.0
        assert [a == b for a, b in zip(before, fingerprints.arrays_of(outer), strict=True)] == [
            j != k for j in range(3)
        ]
        array[-1] -= 1.0
