"""The lists of planted bugs fit the code: each stands in one place, and what it makes of it is Python."""

import ast
import json
import os
import types

import numpy as np
import pytest

from pdmp.diagnostics import pooled
from pdmp.models.regressions.standardised_effects import StandardisedEffects
from tests.mutations import live, operators
from tests.mutations import repeated as repeats
from tests.mutations.__main__ import BUGS, Edited
from tests.mutations.bugs import Bug
from tests.mutations.matching import ROOT, planted, tokens
from tests.mutations.reached import Reached

pytestmark = pytest.mark.exact


def test_every_bug_has_one_place_and_tests():
    wrong = []
    for bug in BUGS:
        try:
            file, text = planted(bug)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if text == (ROOT / file).read_text(encoding="utf-8"):
            wrong.append(f"{bug.name}: changes nothing")
        for test in bug.tests:
            path, _, name = test.partition("::")
            there = (ROOT / path).is_file()
            if not there or f"def {name.partition('[')[0]}(" not in (ROOT / path).read_text(encoding="utf-8") and name:
                wrong.append(f"{bug.name}: there is no test {test}")
        if not bug.tests:
            wrong.append(f"{bug.name}: no tests are named")
    assert not wrong, "\n".join(wrong)


def test_operators_plant_in_functions_that_are_there():
    """One that had been imported has the code with the bug; what ran at import, such as a default, has not."""
    own = operators.mutants(ROOT / "pdmp" / "diagnostics" / "pooled.py")
    assert all(bug.line in bug.lines and bug.old != bug.new for bug in own)
    (bug,) = (bug for bug in own if (bug.old, bug.new) == ("0.5 * weights", "(0.5)"))
    function, before = pooled.quantiles, pooled.quantiles.__code__
    try:
        assert live.planted(bug, {before: [function]})
        found = function([0.4], np.array([[[3.0]], [[5.0]]]), [1.0, 1.0])
        assert found.tolist() == [[pytest.approx(4.6)]] and function.__code__ != before
    finally:
        function.__code__ = before
    (other, *_) = (bug for bug in operators.mutants(ROOT / "pdmp" / "diagnostics" / "events.py") if bug.old == "100")
    assert not live.planted(other, {before: [function]})


def test_bugs_of_the_list_are_planted_in_functions_that_are_there():
    """By the first line that differs, of whatever kind; and what fails before the tests run has caught nothing."""
    (bug,) = (bug for bug in BUGS if bug.name == "correlated effects: the volume of a block")
    edited = Edited.of(*planted(bug))
    lines = edited.changed.splitlines()
    assert lines[edited.line - 1].strip() == bug.new and (ROOT / bug.file).read_text(encoding="utf-8") != edited.changed
    function = StandardisedEffects.__dict__["move"]
    function, before = getattr(function, "__wrapped__", function), None
    before = function.__code__
    try:
        assert live.planted(edited, {before: [function]}) and function.__code__ != before
    finally:
        function.__code__ = before


def test_what_cannot_be_planted_is_not_caught(tmp_path):
    """It ends with the code of pytest for what cannot be run, at which the command stops."""
    child = os.fork()
    if not child:
        live.attempt(types.SimpleNamespace(file="pdmp/flow.py"), [], {}, tmp_path / "printed")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert "has no attribute" in (tmp_path / "printed").read_text(encoding="utf-8")


def test_a_constant_that_cannot_be_computed_is_left_to_a_copy():
    source = (ROOT / "pdmp" / "diagnostics" / "averages.py").read_text(encoding="utf-8")
    line = "STRETCHES = 1_024"
    number = source[: source.index(line)].count("\n") + 1
    changed = source.replace(line, "STRETCHES = 1_024 * None")
    bug = types.SimpleNamespace(file="pdmp/diagnostics/averages.py", line=number, text=lambda text: changed)
    assert not live.replaced(bug, source)


@pytest.mark.slow
def test_what_is_planted_is_python():
    wrong = []
    for bug in BUGS:
        file, text = planted(bug)
        try:
            ast.parse(text) if file.endswith(".py") else None
        except SyntaxError as error:
            wrong.append(f"{bug.name} ({file}): {error}")
    assert not wrong, "\n".join(wrong)


SOURCE = """
class Walk:
    def step(self, x):  # one step
        if x > 0:
            y = self.scale(
                x,
                2.0,  # twice
            )
            return y
        return -x
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "pdmp").mkdir()
    (tmp_path / "pdmp" / "walk.py").write_text(SOURCE)
    return tmp_path


def plant(tree, old, new, file="pdmp/walk.py"):
    file, text = planted(Bug("a bug", file, old, new, ()), tree)
    ast.parse(text)
    return file, text


def test_a_bug_is_found_however_its_code_is_laid_out_and_wherever_it_was_moved(tree):
    for file in ("pdmp/walk.py", "discrete/gone.py"):
        found, text = plant(tree, "y = self.scale(x, 2.0)", "y = self.scale(x, 3.0)", file)
        assert found == "pdmp/walk.py" and text.count("self.scale(x, 3.0)\n            return y") == 1


def test_lines_are_indented_as_the_code_is_now(tree):
    old = "    y = self.scale(x, 2.0)\n    return y\n"
    assert (
        "            y = self.scale(x)\n            return 2.0 * y\n"
        in plant(tree, old, "    y = self.scale(x)\n    return 2.0 * y\n")[1]
    )


@pytest.mark.parametrize("old, times", [("return", 2), ("self.scale(x, 4.0)", 0)])
def test_what_is_not_in_one_place_is_refused(tree, old, times):
    with pytest.raises(ValueError, match=rf"a bug: its code stands {times} times, not once"):
        plant(tree, old, "pass")


def test_tokens():
    text = "f(a,  # why\n  'b # c', 1.5,\n)"
    assert [word for word, _, _ in tokens(text)] == ["f", "(", "a", ",", "'b # c'", ",", "1", ".", "5", ")"]


def test_what_is_left_to_releases_is_what_others_execute_too(tmp_path, monkeypatch):
    """Of cases from the longest on: not the only one of a function, not a short one, not where three others are few."""
    names = ["", "t.py", *(f"t.py::{name}" for name in ("f[1]", "f[2]", "f[3]", "g", "h[1]", "h[2]", "h[3]"))]
    seconds = dict(zip(names[2:], (0.5, 0.4, 0.3, 9.0, 8.0, 0.05, 0.06), strict=True))
    lines = {"1": [2, 3, 4, 5, 6, 7], "2": [3, 5, 6, 7], "3": [6, 7, 8], "4": [0, 1, 2]}
    for number, part in enumerate(({"pdmp/a.py": lines}, {"pdmp/b.py": {"1": [4, 2, 3, 5]}})):
        record = {"seconds": seconds, "names": names, "lines": part}
        (tmp_path / f"{number}.json").write_text(json.dumps(record))
    # g is alone, line 4 is f[1]'s, line 3 is of two others; without f[2] too few are left for f[3].
    assert repeats.repeated(Reached(tmp_path)) == {"release": ["t.py::f[2]"], "full": []}
    monkeypatch.setattr(repeats, "OTHERS", 2)
    found = repeats.repeated(Reached(tmp_path))
    assert found == {"release": ["t.py::h[1]", "t.py::f[2]", "t.py::f[3]"], "full": []}
    monkeypatch.setattr(repeats, "OTHERS", 1)  # then g goes, a function of its own, and f[1] has a line that none has
    assert repeats.repeated(Reached(tmp_path))["full"] == ["t.py::g"]
    written = {"t.py": {"f": ["[2]", "[3]"], "g": [""], "h": ["[1]"]}}
    assert json.loads(repeats.text_of([*found["release"], "t.py::g"])) == written


def test_tests_that_are_left_to_releases_are_there(pytestconfig):
    """In the modules that this process has read whole."""
    unknown = sorted(getattr(pytestconfig, "unknown", ()))
    assert not unknown, f"take {unknown} out of tests/repeated.json, or record anew: tests/mutations/repeated.py"
