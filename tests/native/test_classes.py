"""The machine code against the same methods in plain Python."""

import threading

import numba
import numpy as np
import pytest

import discrete
import pdmp
from pdmp import CERTAIN, Process, compiled
from pdmp.models import LogisticRegression
from pdmp.native import classes, fingerprints
from pdmp.native.classes import Compiled, check_current, entry, inlined, named_by_methods, vectorised
from tests.checks import assert_unbiased
from tests.native.processes import JIT, needs_compiler

# ---------------------------------------------------------------------------------------------------------------
# A process of one's own


class Switch(Process):
    """A telegraph process: constant rate, the velocity changes sign."""

    switch_rate: float
    events = ("switch",)

    def __init__(self, switch_rate):
        super().__init__(dim=1)
        self.switch_rate = switch_rate

    @compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential() / self.switch_rate, CERTAIN

    @compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        return 0


def test_a_process_of_ones_own_runs_through_the_same_loop():
    """A telegraph process: Poisson(λt) flips; from 0 with velocity 1, E x(t) = (1 - exp(-2λt)) / (2λ)."""
    rate, end, chains = 0.7, 2.0, 4_000 if JIT else 1_000
    run = pdmp.sample(Switch(rate), time=end, chains=chains, initial=[0.0], seed=63)
    flips = np.array([len(path.times) - 1 for path in run.trajectories], dtype=float)
    assert_unbiased(flips, rate * end, resolution=0.25 if JIT else 0.5)
    assert_unbiased((flips - rate * end) ** 2, rate * end, resolution=0.5 if JIT else 1.0)
    ends = np.array([path.at(end)[0] for path in run.trajectories])
    assert_unbiased(ends, (1.0 - np.exp(-2.0 * rate * end)) / (2.0 * rate), resolution=0.2 if JIT else 0.4)
    path = run.trajectories[0]
    np.testing.assert_allclose(np.abs(np.diff(path.positions[:, 0])), np.diff(path.times), rtol=1e-12)


@pytest.mark.exact
def test_a_missing_a_misspelt_and_an_unmarked_method_are_one_line_each():
    def jump(self, state, i, now, rng):
        return 0

    def clock(self, state, i, now, rng):
        return now + 1.0, CERTAIN

    for methods, message in (
        ({"jump": compiled(jump)}, "without the method `clock`"),
        ({"jump": compiled(jump), "clok": compiled(clock)}, "clok"),
        ({"jump": compiled(jump), "clock": lambda self, state, i, now, rng: (now + 1.0, CERTAIN)}, "@compiled"),
    ):
        with pytest.raises(TypeError, match=message) as raised:
            type("Wrong", (Process,), methods)
        assert "\n" not in str(raised.value)
        assert "Wrong" in str(raised.value)


def redefined(power):
    """A class that always has the same name: what a notebook cell becomes when it is edited and run again."""

    class Target(pdmp.Model):
        s: float

        def __init__(self):
            super().__init__(dim=1)
            self.s = 1.0

        @pdmp.compiled
        def potential(self, x):
            return x[0] ** power / power

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0] ** (power - 1)

    return Target()


@pytest.mark.slow
@pytest.mark.exact
def test_classes_of_the_same_name_do_not_share_their_machine_code():
    models = [redefined(2), redefined(4)]
    assert [float(m.gradient([2.0])[0]) for m in models] == [2.0, 8.0]
    variances = [pdmp.sample(pdmp.ZigZag(m), events=4_000, seed=1).var()[0] for m in models]
    assert 0.9 < variances[0] < 1.1 and 0.6 < variances[1] < 0.75  # 1 and 0.676


@needs_compiler
@pytest.mark.quick
def test_a_method_that_creates_arrays_is_told_how():
    class Creates(pdmp.Model):
        @pdmp.compiled
        def potential(self, x):
            return 0.5 * (x * x).sum()

        @pdmp.compiled
        def add_gradient(self, x, out):
            out += x

    with pytest.raises(TypeError, match=r"Creates does not compile.*creates an array.*allocates=True"):
        Creates(dim=2).potential([1.0, 2.0])


@needs_compiler
@pytest.mark.quick
def test_what_compiled_a_function_first_does_not_change_its_sums():
    @inlined
    def total(x):
        result = 0.0
        for i in range(x.shape[0]):
            result += x[i]
        return result

    @vectorised
    def reordered(x):
        return total(x)

    @entry
    def in_order(x):
        return total(x)

    x = np.random.default_rng(1).standard_normal(1_001)
    reordered(x)  # numba would let `total` reorder its sums from then on
    assert in_order(x) == sum(x.tolist())


# ---------------------------------------------------------------------------------------------------------------
# What methods name


SCALE = 1.0
SCALES = np.array([1.0])


def halved(x):
    return 0.5 * SCALE * x


class Named(pdmp.Model):
    """N(0, 1 / SCALE), by a number, an array or a function that its methods name."""

    kind: int

    def __init__(self, kind):
        super().__init__(dim=1)
        self.kind = kind

    @compiled
    def potential(self, x):
        return x[0] * inlined_half(x[0]) if self.kind else 0.5 * SCALES[0] * x[0] ** 2

    @compiled
    def add_gradient(self, x, out):
        out[0] += 2.0 * inlined_half(x[0]) if self.kind else SCALES[0] * x[0]


inlined_half = inlined(halved)
CHANGED = r"something that `potential` of Named names, a number, an array or a function, has changed since it was"


@pytest.mark.exact
@pytest.mark.quick
@pytest.mark.parametrize("name", ["SCALE", "SCALES", "inlined_half"])
def test_what_methods_name_must_be_as_it_was_when_they_were_compiled(name, monkeypatch):
    """As in a notebook, where numbers and functions have cells of their own: machine code has what they were."""
    model = Named(1)

    def descended():  # by a sampler that compiles little
        return pdmp.sample(discrete.GD(model, 0.1), steps=20, initial=[1.0], seed=1).mean()

    known = model.potential([1.5]), *model.gradient([1.5])  # compiled in a moment, which no sampler is
    if not JIT:  # then nothing is compiled, and everything as it is now
        assert not Named._compiled_with
        monkeypatch.setattr(Named, "_compiled_with", named_by_methods(Named))
        assert Named._compiled_with
    check_current(Named)
    new = {"SCALE": 4.0, "SCALES": np.array([4.0]), "inlined_half": inlined(lambda x: 2.0 * x)}[name]
    monkeypatch.setitem(globals(), name, new)
    for sampled in (descended, lambda: pdmp.auto(model, seed=1), lambda: Named(0)):
        with pytest.raises(TypeError, match=CHANGED):
            sampled()
    monkeypatch.undo()
    assert (model.potential([1.5]), *model.gradient([1.5])) == known == (1.125, 1.5)


FACTOR = 1.0
FACTORS = np.array([FACTOR])


def of_machine_code(name):
    """A function of numba that names the variable, directly or by another one."""
    if name == "FACTORS":
        return numba.njit(lambda x: (0.5 * FACTORS[0] * (x * x).sum(), FACTORS[0] * x))
    factor = numba.njit(lambda: FACTOR)
    return numba.njit(lambda x: (0.5 * factor() * (x * x).sum(), factor() * x))


@needs_compiler
@pytest.mark.quick
@pytest.mark.parametrize("name", ["FACTORS", "another function"])
def test_what_functions_of_numba_name_must_be_as_it_was_when_they_were_compiled(name, monkeypatch):
    monkeypatch.setitem(globals(), "FACTORS", np.array([1.0]))
    function = of_machine_code(name)
    model = pdmp.models.from_function(function, 1)
    assert pdmp.models.from_function(function, 1).gradient([1.0]) == 1.0  # again, with nothing changed
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    FACTORS[0] = 4.0
    changed = "has changed since numba compiled it, and the machine code has what it was: run the definition of"
    for given in (function, lambda x: function(x)):
        with pytest.raises(TypeError, match=changed):
            pdmp.models.from_function(given, 1)
    with pytest.raises(TypeError, match=changed):
        pdmp.sample(discrete.GD(model, 0.1), steps=20, seed=1)
    assert pdmp.models.from_function(of_machine_code(name), 1).gradient([1.0]) == 4.0


@needs_compiler
@pytest.mark.quick
def test_what_a_function_of_numba_names_may_change_until_it_is_compiled(monkeypatch):
    far = numba.njit(lambda x: (0.5 * FACTOR * (x * x).sum(), FACTOR * x))

    def given(x):
        return far(x) if x[0] > 1e9 else (0.5 * x @ x, x)

    for factor in (1.0, 4.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert pdmp.models.from_function(given, 1).gradient([1.0]) == 1.0
    assert not far.overloads


@needs_compiler
def test_a_class_that_is_defined_again_does_not_use_machine_code_of_what_was(monkeypatch):
    factor = numba.njit(lambda: FACTOR)
    assert factor() == 1.0  # compiled now, even if the class is on disk

    def defined():
        class Target(pdmp.Model):
            @pdmp.compiled
            def potential(self, x):
                return 0.5 * factor() * x[0] ** 2

            @pdmp.compiled
            def add_gradient(self, x, out):
                out[0] += factor() * x[0]

        return Target(dim=1)

    assert defined().potential([2.0]) == 2.0
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    with pytest.raises(TypeError, match="has changed since numba compiled it"):
        defined().potential([2.0])


@pytest.mark.exact
def test_what_has_changed_is_not_compiled_for_further_callers(monkeypatch):
    """It would be kept on disk under the name of what it was, and be found by the next process."""
    chosen = {}

    def overload_method(kind, name, **options):
        return lambda choose: chosen.setdefault(name, choose)

    monkeypatch.setattr(classes, "overload_method", overload_method)
    monkeypatch.setattr(Named, "_compiled_with", {})
    classes._register(Named, type("Other", (Named._tuple,), {}), Named._methods)
    monkeypatch.setattr(Named, "_compiled_with", named_by_methods(Named))
    for name, method in Named._methods.items():
        assert chosen[name]() is method
    monkeypatch.setitem(globals(), "SCALES", np.array([4.0]))
    for name in Named._methods:
        with pytest.raises(TypeError, match=CHANGED):
            chosen[name]()


@pytest.mark.exact
def test_a_compiled_method_that_a_plain_one_hides_is_not_compiled():
    class Base(Compiled):
        @compiled
        def number(self):
            return 1

        @compiled
        def other(self):
            return 2

    class Hides(Base):
        def number(self):
            return 3

    class Further(Hides):
        @compiled
        def number(self):
            return 4

    assert Base._methods.keys() == Further._methods.keys() == {"number", "other"} and Hides._methods.keys() == {"other"}
    assert Further._methods["number"] is Further.__dict__["number"]


@pytest.mark.exact
def test_what_a_library_tells_numba_later_changes_nothing_that_is_compiled(monkeypatch):
    before = named_by_methods(Named)
    monkeypatch.setattr(fingerprints._Overloads, "found", lambda *_: [("elsewhere", "f", halved, None)])
    assert named_by_methods(Named) == before and before.keys() == {"potential", "add_gradient"}
    assert fingerprints.fingerprint([halved]) != fingerprints.fingerprint([halved], overloaded=False)
    assert not named_by_methods(LogisticRegression)


@pytest.mark.exact
def test_what_cannot_be_hashed_may_be_another_than_when_it_was_compiled(monkeypatch):
    """As a lock in a cell of a notebook that is run again: whether it has changed cannot be told."""
    before = named_by_methods(Named)
    monkeypatch.setitem(globals(), "inlined_half", threading.Lock())
    assert named_by_methods(Named) == {}
    monkeypatch.setattr(Named, "_compiled_with", before)
    check_current(Named)


@pytest.mark.exact
def test_the_name_of_the_version_before_says_that_of_this_one():
    with pytest.raises(ImportError, match="positive, of the version before, is called positive_part"):
        from pdmp.native.classes import positive  # noqa: F401
