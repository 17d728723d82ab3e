"""The hash that decides whether machine code on disk is still valid."""

import importlib
import os
import pkgutil
import sys
import sysconfig
import threading
import types

import pytest

import pdmp
from pdmp.engine import scheduler
from pdmp.native.classes import Compiled
from pdmp.native.fingerprints import UNIQUE, fingerprint
from tests.native.processes import python

pytestmark = pytest.mark.exact


def of(text):
    """Fingerprint of the function `f` of a file with this text."""
    module = types.ModuleType("a_file_of_ones_own")
    exec(compile("import enum, functools\nimport numpy as np\n" + text, "a_file.py", "exec"), module.__dict__)
    return fingerprint([module.f])


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
    "an enumeration": (
        "class A(enum.Enum):\n    B = 1\ndef f(x): return A.B.value",
        "class A(enum.Enum):\n    B = 2\ndef f(x): return A.B.value",
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
    "a jitted function's options": (
        "import numba\n@numba.njit(fastmath=True)\ndef g(x): return x\ndef f(x): return g(x)",
        "import numba\n@numba.njit(fastmath={'nnan'})\ndef g(x): return x\ndef f(x): return g(x)",
    ),
    "an overload of a function": (
        "from numba.extending import overload\ndef f(x): pass\n@overload(f)\ndef g(x): return lambda x: 1",
        "from numba.extending import overload\ndef f(x): pass\n@overload(f)\ndef g(x): return lambda x: 2",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_computed_with_makes_a_difference(what):
    one, other = DIFFERENT[what]
    if "options" in what and not hasattr(scheduler.advance, "py_func"):
        pytest.skip("a jitted function is a plain one here")
    assert of(one) == of(one)
    assert of(one) != of(other)
    assert not of(one).startswith(UNIQUE)


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


def test_helpers_in_other_files_are_followed(monkeypatch):
    def with_helper(text):
        module = types.ModuleType("helpers_of_ones_own")
        exec(text, module.__dict__)
        monkeypatch.setitem(sys.modules, "helpers_of_ones_own", module)
        return of("import helpers_of_ones_own as h\ndef f(x): return h.g(x)")

    assert with_helper("def g(x): return 1") == with_helper("def g(x): return 1\ndef unused(x): return 1")
    assert with_helper("def g(x): return 1") != with_helper("def g(x): return 2")


def test_a_version_stands_for_the_code_of_an_installed_package_only(tmp_path, monkeypatch):
    """Whoever works on a package edits it without a new version."""

    def hashed(text, version, folder):
        module = types.ModuleType("package_of_ones_own")
        module.__version__, module.__file__ = version, os.path.join(folder, "package_of_ones_own.py")
        exec(text, module.__dict__)
        monkeypatch.setitem(sys.modules, "package_of_ones_own", module)
        return of("import package_of_ones_own as h\ndef f(x): return h.g(x)")

    one, other, installed = "def g(x): return 1", "def g(x): return 2", sysconfig.get_path("purelib")
    assert hashed(one, "1.0", installed) == hashed(other, "1.0", installed)
    assert hashed(one, "1.0", installed) != hashed(one, "1.1", installed)
    assert hashed(one, "1.0", tmp_path) != hashed(other, "1.0", tmp_path)


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


def compiled_classes(cls=Compiled):
    for inner in cls.__subclasses__():
        yield inner
        yield from compiled_classes(inner)


def test_every_class_of_the_packages_can_be_hashed():
    """Otherwise its machine code would not be kept on disk."""
    for package in ("pdmp", "discrete"):
        module = importlib.import_module(package)
        for info in pkgutil.walk_packages(module.__path__, f"{package}."):
            if "_model" not in info.name and not info.name.endswith("__main__"):  # of libraries that may be missing
                importlib.import_module(info.name)
    classes = {cls for cls in compiled_classes() if cls.__module__.partition(".")[0] in ("pdmp", "discrete")}
    assert len(classes) > 100
    for cls in classes:
        assert not fingerprint(cls._methods.values()).startswith(UNIQUE), cls
    assert not fingerprint([scheduler.advance]).startswith(UNIQUE)
    assert pdmp.BPS in classes
