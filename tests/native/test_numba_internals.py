"""What happens when numba changes its private parts, that fingerprints reach all that it compiles, shipped code."""

import collections
import sys
import types

import numba
import numpy as np
import pytest

import pdmp
from pdmp.native import numba_internals
from pdmp.native.numba_internals import GENERATIONS
from tests.native.processes import needs_compiler, python

#: Each as a later numba might be: without a class, and with another argument.
CHANGES = {
    "removed": "import numba.core.codegen as c; del c.JITCodeLibrary",
    "other arguments": """
from numba.core.codegen import JITCodeLibrary
original = JITCodeLibrary._optimize_final_module
JITCodeLibrary._optimize_final_module = lambda self, level=3: original(self)
""",
}
ZIGZAG = """
import pdmp
class Bowl(pdmp.Model):
    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.25 * x[0] ** 4 + 0.5 * x[1] ** 2

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += x[0] ** 3
        out[1] += x[1]

run = pdmp.sample(pdmp.ZigZag(Bowl()), events=300, initial=[0.3, 0.2], seed=1)
"""


@pytest.mark.slow
@pytest.mark.exact
@pytest.mark.parametrize("change", CHANGES)
def test_another_numba_is_noticed(change):
    """Both the removal of a class and another argument."""
    code = "from pdmp.native.decorators import FAST_COMPILATION; print(FAST_COMPILATION)"
    assert python("-c", f"{CHANGES[change]}\n{code}").strip() == "False"
    assert python("-c", code).strip() == "True"


@pytest.mark.slow
@pytest.mark.exact
@pytest.mark.parametrize(
    "change",
    [
        "from numba.core.base import BaseContext as c; del c.pack_value",
        "import numba.core as c; del c.callconv.CPUCallConv",
    ],
)
def test_another_numba_that_calls_otherwise_is_named(change):
    """Calls by address have no other way: the first use of the package says which numba to take."""
    code = f"""{change}
import pdmp
try:
    pdmp.sample
except ImportError as error:
    print(error)
"""
    said = python("-c", code)
    assert said.count("\n") == 1 and "pip install 'numba<0.69'" in said and numba.__version__ in said


@pytest.mark.release
@needs_compiler
def test_without_numbas_private_parts_the_path_is_the_same(tmp_path):
    (tmp_path / "changed.py").write_text(
        f"{CHANGES['removed']}\n{ZIGZAG}\nimport numpy as np\n"
        "path = run.trajectories[0]\nnp.savez('path.npz', times=path.times, positions=path.positions)"
    )
    python(tmp_path / "changed.py", PYTHONPATH=pdmp.__path__[0][: -len("/pdmp")], cwd=tmp_path)
    scope = {"__name__": __name__}
    exec(ZIGZAG, scope)
    path = scope["run"].trajectories[0]
    assert len(path.times) > 300
    with np.load(tmp_path / "path.npz") as other:
        assert np.array_equal(path.times, other["times"])
        assert np.array_equal(path.positions, other["positions"])


@needs_compiler
def test_fingerprints_reach_every_function_that_numba_compiles(tmp_path):
    """Of a run with packed batches, dispatch to intrinsics and discrete steps: what was compiled was hashed."""
    (tmp_path / "script.py").write_text("""
import gc
import numpy as np
from numba.core.dispatcher import Dispatcher
from pdmp.native import fingerprints

hashed = set()
follow = fingerprints._Walk.function
def function(self, function, compiled=False):
    hashed.add(function.__code__)
    return follow(self, function, compiled)
fingerprints._Walk.function = function

import pdmp, discrete
X = np.random.default_rng(1).standard_normal((200, 3))
model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))
pdmp.sample(discrete.SGLD(pdmp.gradients.Minibatch(model, 20), step=1e-3), steps=50, initial=np.zeros(3), seed=1)
compiled = {
    d.py_func for d in gc.get_objects() if isinstance(d, Dispatcher) and d.overloads
    and d.py_func.__module__.split(".")[0] in ("pdmp", "discrete")
}
assert len(compiled) > 20, len(compiled)
print(sorted(f"{f.__module__}.{f.__qualname__}" for f in compiled if f.__code__ not in hashed))
""")
    folders = {"PYTHONPATH": pdmp.__path__[0][: -len("/pdmp")], "NUMBA_CACHE_DIR": tmp_path / "cache"}
    assert python(tmp_path / "script.py", cwd=tmp_path, **folders).strip() == "[]"


@pytest.mark.exact
def test_named_tuples_of_one_name_have_machine_code_of_their_own():
    """Two modules may have a class of that name; code that makes one must not be loaded for the other."""
    one, other = (collections.namedtuple("Seen", "flips", module=module) for module in ("first", "second"))
    kinds = [numba.typeof(cls(1.0)) for cls in (one, other)]
    assert str(kinds[0]) == str(kinds[1])
    assert numba_internals._described(kinds[0]) != numba_internals._described(kinds[1])


BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


class Other(np.random.Generator):
    """A generator whose `bit_generator` is an attribute of the test."""

    bit_generator = property(lambda self: self.found())


def interrupt():
    raise KeyboardInterrupt


@needs_compiler
@pytest.mark.compiled
@pytest.mark.parametrize("counted", [False, True])
def test_no_python_runs_on_the_way_of_a_generator_to_compiled_code(counted):
    """Else a signal's exception may be raised there, where numba does not look: the process died."""

    @numba.njit(_nrt=counted)
    def draws(rng):
        return rng.random(), rng.standard_normal(), rng.standard_gamma(2.0)

    frames = []

    def note(frame, event, _):
        callers = []
        while frame is not None:
            callers.append(frame.f_code.co_name)
            frame = frame.f_back
        if event == "call" and callers[0] != "draws" and "typeof_pyval" not in callers:  # it looks for exceptions
            frames.append(callers)

    for bits in BITS:
        rng, other = np.random.Generator(bits(3)), np.random.Generator(bits(3))
        draws(rng), rng.bit_generator.capsule  # noqa: B018 - made where it is first asked for
        owned = [rng, rng.bit_generator, rng.bit_generator.capsule]
        before = [sys.getrefcount(one) for one in owned]
        sys.setprofile(note)
        try:
            for _ in range(100):
                draws(rng)
        finally:
            sys.setprofile(None)
        assert frames == [] and [sys.getrefcount(one) for one in owned] == before
        for _ in range(101):
            draws.py_func(other)
        assert draws(rng) == draws.py_func(other)
    rng = Other(np.random.PCG64(3))
    rng.found = interrupt
    with pytest.raises(KeyboardInterrupt):
        draws(rng)
    rng.found = lambda: types.SimpleNamespace(capsule=None)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        draws(rng)
    rng.found = lambda: None
    with pytest.raises(AttributeError, match="'capsule'"):
        draws(rng)


@needs_compiler
@pytest.mark.compiled
def test_every_way_of_a_generator_is_that_of_numpy():
    """64 and 32 bits, and a generator that comes back, for functions of the user's as well."""

    @numba.njit
    def draws(rng):
        return rng.integers(0, 1 << 40), rng.integers(0, 1 << 20), rng.standard_normal(), rng

    for bits in BITS:
        rng, other = np.random.Generator(bits(3)), np.random.Generator(bits(3))
        for _ in range(20):
            *ours, same = draws(rng)
            assert ours == list(draws.py_func(other)[:3]) and same is rng


V4, V3 = ("x86-64-v4", "-prefer-256-bit"), ("x86-64-v3", "")


@pytest.mark.exact
@pytest.mark.parametrize(
    ("missing", "name", "features", "folder", "used"),
    [
        (None, None, None, True, [V4, V3]),
        *((name, None, None, True, [V3]) for name in ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
        ("avx2", None, None, True, []),
        ("fma", None, None, True, []),
        ("popcnt", None, None, True, []),
        (None, "znver4", None, True, []),
        (None, None, "+avx2", True, []),
        (None, None, None, False, []),
    ],
)
def test_which_code_that_came_with_the_package_is_used(missing, name, features, folder, used, tmp_path, monkeypatch):
    has = dict.fromkeys(set.union(*GENERATIONS.values()) - {missing}, True)
    monkeypatch.setattr(numba_internals, "get_host_cpu_features", lambda: has)
    monkeypatch.setattr(numba_internals, "SHIPPED", tmp_path / ("" if folder else "none"))
    monkeypatch.setattr(numba.config, "CPU_NAME", name)
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert numba_internals.shipped.__wrapped__() == used


@pytest.mark.exact
@pytest.mark.parametrize("option", numba_internals.OPTIONS)
def test_code_of_other_options_of_numba_has_another_name(option, monkeypatch):
    """Above all with NUMBA_BOUNDSCHECK: code without checks would say that all is well."""
    found = numba_internals._CodeOnDisk(python)

    def name():
        return found.name((numba.types.float64,), V3)

    before = name()
    monkeypatch.setattr(numba.config, option, 1 - bool(getattr(numba.config, option)))
    other = name()
    assert other != before
    monkeypatch.undo()
    assert name() == before
    if option == "BOUNDSCHECK":  # which is None where nobody has asked
        monkeypatch.setattr(numba.config, option, 0)
        assert name() == before


@pytest.mark.exact
def test_code_that_came_is_looked_for_before_ones_own(monkeypatch):
    """Else which code runs, and its last bits, would depend on what is in a cache; each by names of its own."""

    class Codegen:
        def magic_tuple(self):
            return "x86_64-unknown-linux-gnu", "znver4", "+avx512f"

    found = numba_internals._CodeOnDisk(python)
    signature = (numba.types.float64,)
    monkeypatch.setattr(numba_internals, "shipped", lambda: [])
    (own,) = found._places(signature, Codegen())
    monkeypatch.setattr(numba_internals, "shipped", lambda: [V4, V3])
    best, other, again = found._places(signature, Codegen())
    assert best.parent == other.parent == numba_internals.SHIPPED and own == again == found.path(signature, Codegen())
    assert len({place.name for place in (best, other, own)}) == 3
    assert len({place.name.rpartition("-")[0] for place in (best, other, own)}) == 1
    monkeypatch.setattr(numba_internals, "shipped", lambda: [V3])
    assert list(found._places(signature, Codegen())) == [other, own]
