"""What a worker must have in common with the process that coordinates: one that differs refuses by name."""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib
import multiprocessing
import os
import pickle
import sys

import numpy as np
import pytest

import pdmp
from pdmp.engine import requirements
from pdmp.engine.chain import Budget, Chain
from pdmp.engine.executors import Contents
from pdmp.formulas.batches import Recipe
from pdmp.formulas.design import describe
from pdmp.native import fingerprints
from tests.checks import plain_only
from tests.engine.helpers_executors import Elsewhere
from tests.engine.helpers_requirements import MODULE, module
from tests.engine.helpers_run import same
from tests.toys import Telegraph

pytestmark = pytest.mark.exact

CALL = {"events": 25, "chains": 3, "seed": 3, "warmup": 0.1}
FAR = {  # what differs, and whether it is known before values are compared
    "named": ("slope=1.0):", "slope=2.0):", True),
    "by_list": ("SLOPES, ARRAY, SETTINGS = [1.0]", "SLOPES, ARRAY, SETTINGS = [2.0]", False),
    "by_array": ("np.array([1.0])", "np.array([2.0])", False),
    "by_object": ("Settings(1.0)", "Settings(2.0)", False),
    "by_fraction": ("Fraction(1, 3)", "Fraction(2, 3)", True),
    "by_part": ("beyond, slope=1.0)", "beyond, slope=2.0)", False),
    "by_part_of_list": ("slopes=[1.0])", "slopes=[2.0])", False),
    "dispatched": ("    return 1.0\n", "    return 2.0\n", True),
    "by_unit": ("Unit(1.0)", "Unit(2.0)", True),
    "by_import": ("STEEP = Unit(1.0), 1.0", "STEEP = Unit(1.0), 2.0", False),
    "by_import_of_a_function": ("1.0 * STEEP", "2.0 * STEEP", False),
    "remembering": ("SLOPES, ARRAY, SETTINGS = [1.0]", "SLOPES, ARRAY, SETTINGS = [2.0]", False),
}

EDITS = {
    "body": ("return scale * float", "return 1.1 * scale * float", "function"),
    "another function": ("    return x\n", "    return x + 0.0\n", "helper"),
    "number of the module": ("SHIFT = 0.0", "SHIFT = 3.0", "function"),
    "default argument": ("scale=1.0", "scale=2.0", "function"),
    "attribute of a class": ("power = 2", "power = 4", "Shape"),
    "method of a class": ("0.5 * (x**self", "0.25 * (x**self", "Shape.value"),
}
SAME = [
    ("    return x\n", "    # as it is\n    return x\n"),
    ("The potential of a Gaussian.", "Minus the log density of a Gaussian."),
    ("mean = 0.0", "mean = 1.0"),
    ("calls, found, buffer = 0, {}, np.zeros(2)", "calls, found, buffer = 7, {1: 2}, np.ones(2)"),
]
VALUES = {
    "array": ("TABLE = np.zeros", "TABLE = np.ones"),
    "dict": ('LINKS = {"identity": 0.0}', 'LINKS = {"identity": 0.3}'),
}


@pytest.fixture
def users(monkeypatch):
    monkeypatch.setitem(sys.modules, "users_module", None)
    return module(MODULE)


class There(Elsewhere):
    """Workers that have another `users_module`; `patches` are (owner, name, value), there alone."""

    def __init__(self, text=MODULE, patches=()):
        super().__init__()
        self.here = sys.modules.get("users_module")
        self.there, self.patches = module(text), patches
        sys.modules["users_module"] = self.here

    def submit(self, function, /, *args):
        with contextlib.ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            for owner, name, value in self.patches:
                patch.setattr(owner, name, value)
            sys.modules["users_module"] = self.there
            stack.callback(sys.modules.__setitem__, "users_module", self.here)
            return super().submit(function, *args)


def process_of(function):
    return pdmp.ZigZag(pdmp.models.from_function(function, 2))


def refused(process, executor, match):
    with pytest.raises(pdmp.SamplingError, match=match) as caught:
        pdmp.sample(process, executor=executor, **CALL)
    text = str(caught.value)
    assert text.startswith("`executor`: the worker on ") and "\n" not in text
    assert caught.value.run.events.sum() == 0


@pytest.mark.parametrize("edit", EDITS)
def test_another_version_of_a_function_is_refused_by_name(edit, users):
    old, new, name = EDITS[edit]
    assert MODULE.count(old) == 1
    text = rf"has another .*users_module\.{name}\b.*, of the file /elsewhere/users_module.py \(here /elsewh.*rest"
    refused(process_of(users.function), There(MODULE.replace(old, new)), text)


def test_who_refuses_once_refuses_again(users):
    """What was refused is not kept as opened, by either of two workers."""
    old, new, _ = EDITS["body"]
    there, process = There(MODULE.replace(old, new)), process_of(users.function)
    start, budget = np.zeros(2), Budget(events=10)
    sequence = np.random.SeedSequence(0)
    contents = Contents(Chain(process.resolve(start), 0, start, sequence, budget=budget, warmup=0.0, store="moments"))
    try:
        for _ in range(4):
            with pytest.raises(pdmp.SamplingError, match="has another"):
                there.submit(contents.parcel.open)
    finally:
        contents.close()
    assert there.opened == [{}, {}]


@pytest.mark.parametrize("edit", VALUES)
def test_other_tables_are_another_potential(edit, users):
    text = "computes another potential of FunctionModel with the same functions; give it the same files, data and"
    refused(process_of(users.function), There(MODULE.replace(*VALUES[edit])), text)


@pytest.mark.parametrize("name", FAR)
def test_what_no_value_shows_is_compared_where_a_call_leaves_it_as_it_is(name, users):
    old, new, is_code = FAR[name]
    assert MODULE.count(old) == 1
    owners = {"dispatched": "slope_of_arrays", "by_import_of_a_function": "steep"}
    process, owner = process_of(getattr(users, name)), owners.get(name, name)
    text = rf"has another users_module\.{owner}, of the file"
    if not is_code:
        text = (
            rf"has other values of what users_module\.{owner}( \(.*\))? of the file /elsewhere/users_module.py names, "
            "a list, an array, an object or a function; give it the same files, data and settings"
        )
    refused(process, There(MODULE.replace(old, new)), text)
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=There(), **CALL))


def test_what_a_function_remembers_of_each_point_is_its_own(users):
    """A second run finds what the first one has kept, and a worker does not have it."""
    process = process_of(users.remembering)
    wanted = pdmp.sample(process, **CALL)
    for _ in range(2):
        assert same(wanted, pdmp.sample(process, executor=There(), **CALL))
    assert len(users.memory) > 50


def test_values_are_compared_far_from_the_start(monkeypatch):
    """A limit that a function reads, at three standard deviations."""

    def capped(x):
        most = float(os.environ["PDMP_TEST_MEAN"])
        y = np.clip(x, -most, most)
        return 0.5 * float(y @ y), np.where(x == y, x, 0.0)

    monkeypatch.setenv("PDMP_TEST_MEAN", "3.0")
    process = process_of(capped)
    required = requirements.with_potential(requirements.requirements_of([process]), process, np.zeros(2))
    requirements.check_potential(required, process, np.zeros(2))
    monkeypatch.setenv("PDMP_TEST_MEAN", "4.0")
    with pytest.raises(pdmp.SamplingError, match="computes another potential"):
        requirements.check_potential(required, process, np.zeros(2))


TABLE = {"slope": 1.0}


def steep(x):
    """What numba would refuse; in object mode machine code may call the like of it."""
    return TABLE["slope"] * x


class Steep(pdmp.Model):
    """A Gaussian whose methods name a table by way of a function."""

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] * steep(x[0])

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += steep(x[0])


@plain_only
def test_values_of_a_users_class_are_compared(monkeypatch):
    process, x = pdmp.ZigZag(Steep(dim=1)), np.zeros(1)
    required = requirements.with_potential(requirements.requirements_of([process]), process, x)
    requirements.check_potential(required, process, x)
    monkeypatch.setitem(TABLE, "slope", 1.5)
    with pytest.raises(pdmp.SamplingError, match="computes another potential of Steep with the same functions"):
        requirements.check_potential(required, process, x)


def test_what_changes_no_path_is_not_refused(users):
    """A comment, a docstring, a line that is never reached, and what a function keeps between calls."""
    text = MODULE
    for old, new in SAME:
        assert text.count(old) == 1
        text = text.replace(old, new)
    process, there = process_of(users.function), There(text)
    there.there.__file__ = "/yet/another/users_module.py"  # which the function names, too
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=there, **CALL))


@pytest.mark.filterwarnings("ignore:`potential_and_gradient` returns another U")  # than when the model was made
def test_an_object_travels_and_its_class_does_not(users):
    refused(
        process_of(users.Target()), There(MODULE.replace("mean = 0.0", "mean = 3.0")), "another users_module.Target,"
    )
    process = process_of(users.Target())
    process.model.callback.function.mean = 3.0
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=There(), **CALL))


@pytest.mark.parametrize(
    "old, new, name",
    [
        ("return chance()", "return 0.5 * chance()", "Slower.rate"),
        ("return 0.3 + SHIFT", "return 0.2 + SHIFT", "chance"),
        ("SHIFT = 0.0", "SHIFT = 0.1", "chance"),
        ("assert now >= 0.0", "pass", "Slower.held_until"),
    ],
)
def test_another_version_of_a_process_is_refused(old, new, name, users):
    process = users.Slower()
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=There(), **CALL))
    refused(process, There(MODULE.replace(old, new)), rf"has another .*users_module\.{name}\b")


def test_a_worker_without_the_function_is_named(users):
    there = There(MODULE.replace("class Target", "class Other"))
    refused(process_of(users.Target()), there, "cannot load the process .*Target.*; restart the workers with the same")


@pytest.mark.parametrize("name", ["pdmp", "numpy", "numba", "scipy", "llvmlite", "Python"])
def test_another_version_of_a_library_is_refused(name, users):
    versions = requirements.versions() | {name: "0.0.1"}
    text = rf"has {name} 0\.0\.1, not .* as here; install the same version there"
    refused(Telegraph(), There(patches=[(requirements, "versions", lambda: versions)]), text)


def test_the_version_of_this_package_is_that_of_its_files(tmp_path, monkeypatch):
    found = []
    for text, begun in (("a = 1", 2e12), ("a = 2", 2e12), ("a = 2", 0.0)):
        (tmp_path / "pdmp" / "inner").mkdir(parents=True, exist_ok=True)
        (tmp_path / "pdmp" / "inner" / "file.py").write_text(text)
        monkeypatch.setattr(requirements, "_FOLDER", tmp_path / "pdmp")
        monkeypatch.setattr(requirements, "_begun", begun)
        found.append(requirements.versions.__wrapped__()["pdmp"])
    assert len(set(found)) == 3 and all(text.startswith(pdmp.__version__) for text in found)
    assert ["edited after" in text for text in found] == [False, False, True]


def test_a_function_that_reads_something_else_is_another_potential(users, monkeypatch):
    """No hash knows what it reads; only its values tell."""
    monkeypatch.setenv("PDMP_TEST_MEAN", "0.0")
    process = process_of(users.reading)
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=There(), **CALL))
    refused(process, There(patches=[(os, "environ", {"PDMP_TEST_MEAN": "0.001"})]), "computes another potential")


def test_a_potential_that_is_another_each_time_is_not_compared():
    rng = np.random.default_rng(0)
    process = pdmp.ZigZag(pdmp.models.from_function(lambda x: (float(x @ x) / 2 + 1e-8 * rng.random(), x), 2))
    required = requirements.requirements_of([process])
    assert pickle.loads(requirements.with_potential(required, process, np.ones(2)))["values"] == []
    exact = pdmp.ZigZag(pdmp.models.from_function(lambda x: (float(x @ x) / 2, x), 2))
    assert len(pickle.loads(requirements.with_potential(required, exact, np.ones(2)))["values"]) == 20
    assert (
        requirements.with_potential(required, pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), np.ones(1)) == required
    )


def test_passes_over_rows_are_refused_with_other_tables_too(users):
    """Of a formula there are no values to compare: what its functions name must be the same."""
    required = requirements.requirements_of([users.formula], tables=True)
    requirements.check(required, [users.formula])
    for old, new in (("return x + LINKS", "return x - LINKS"), VALUES["dict"]):
        other = module(MODULE.replace(old, new))
        requirements._checked.clear()
        for _ in range(2):  # what was refused is refused again
            with pytest.raises(pdmp.SamplingError, match=r"has another users_module\.formula.*, of the file"):
                requirements.check(required, [other.formula])
    requirements.check(required, [users.formula])


def test_what_a_formula_reads_of_a_module_is_compared(users):
    """In whatever way: as a function, or as a number, but not what else the module has."""
    pytest.importorskip("formulae")
    from formulae.environment import Environment

    def recipe(users):
        environment = Environment([{"users": users, "np": np, "other": 3}])
        described = describe("y ~ users.formula(x) + np.log(x):users.SHIFT")
        return Recipe(described, None, environment, "number", {}, [], True, {})

    required = requirements.requirements_of([recipe(users)], tables=True)
    requirements.check(required, [recipe(module(MODULE.replace("np.zeros(2)", "np.ones(2)")))])
    for old, new, name in (("SHIFT = 0.0", "SHIFT = 1.0", "formula"), ("return x + LINKS", "return x", "users_module")):
        requirements._checked.clear()
        other = module(MODULE.replace(old, new))
        with pytest.raises(pdmp.SamplingError, match=rf"has another .*{name}\."):
            requirements.check(required, [recipe(other)])


def test_names_of_the_script_that_runs_are_one():
    """Workers import it as `__mp_main__`, those of MPI as `__worker__`."""
    found = []
    for name in ("__main__", "__mp_main__", "__worker__"):
        space = {"__name__": name}
        exec("class A:\n    def f(self):\n        return helper_of_it()\ndef helper_of_it():\n    return A", space)
        found.append(fingerprints.parts([space["A"]]))
    # No `g`: other tests overload functions of that name, and whatever has the name counts.
    name = "__main__.helper_of_it"
    assert found[0] == found[1] == found[2] and set(found[0]) == {"__main__.A", "__main__.A.f", name}


def another_path(folder):
    """In a worker, as it starts: modules are those of the folder."""
    sys.path.insert(0, folder)


@pytest.mark.slow
def test_a_pool_whose_workers_have_another_module(tmp_path, monkeypatch):
    for folder, shift in (("here", "0.0"), ("there", "3.0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "users_module.py").write_text(MODULE.replace("SHIFT = 0.0", f"SHIFT = {shift}"))
    monkeypatch.setitem(sys.modules, "users_module", None)  # so that it is forgotten after the test
    del sys.modules["users_module"]
    monkeypatch.syspath_prepend(tmp_path / "here")
    process = process_of(importlib.import_module("users_module").function)
    context = multiprocessing.get_context("spawn")
    for folder in ("here", "there"):
        with concurrent.futures.ProcessPoolExecutor(1, context, another_path, [str(tmp_path / folder)]) as pool:
            if folder == "here":
                assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=pool, **CALL))
            else:
                refused(process, pool, r"another users_module\.function, of the file .*there/.* \(here .*/here/")


def test_a_module_that_a_function_would_import_is_compared_before_it_has(tmp_path, monkeypatch):
    """Neither process has come to the import; one that cannot be imported tells nothing; libraries are not imported."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def slope(x):
        if x > 30.0:
            import numpy.never_imported
            from late_helper import K, steep

            return steep(x) * K + numpy.never_imported.K
        if x > 40.0:
            import no_such_helper

            return no_such_helper.K
        return 1.0

    def found(text):
        monkeypatch.delitem(sys.modules, "late_helper", raising=False)
        (tmp_path / "late_helper.py").write_text(text)
        importlib.invalidate_caches()
        return fingerprints.parts([slope], True)

    one = found("K = 2.0\ndef steep(x):\n    return 1.0\n")
    assert "no_such_helper" not in sys.modules
    (name,) = (name for name in one if name.endswith("slope (late_helper.K)"))
    same_again, other_number, other_code = map(
        found,
        (
            "K = 2.0\n\ndef steep(x):\n    return 1.0\n",
            "K = -1.0\ndef steep(x):\n    return 1.0\n",
            "K = 2.0\ndef steep(x):\n    return 3.0\n",
        ),
    )
    assert same_again == one
    assert other_number[name] != one[name] and other_number["late_helper.steep"] == one["late_helper.steep"]
    assert other_code[name] == one[name] and other_code["late_helper.steep"] != one["late_helper.steep"]
    monkeypatch.delitem(sys.modules, "late_helper")
