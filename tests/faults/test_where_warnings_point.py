"""A warning names the line of the person who can do something about it, however deep in the library it arises."""

import ast
import inspect
import pathlib
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.errors import warn
from pdmp.models import Gaussian

pytestmark = pytest.mark.exact
ROOT = pathlib.Path(pdmp.__file__).parent


def isotropic():
    return Gaussian(np.zeros(2), np.ones(2))


def collinear():
    pytest.importorskip("formulae")
    rng = np.random.default_rng(1)
    x = rng.normal(size=30)
    table = {"y": x + rng.normal(size=30), "x": x, "z": 2.0 * x}
    return pdmp.regression("y ~ x + z", table, seed=1, events=20)


CASES = {
    "a process": (lambda: discrete.SGHMC(isotropic(), 0.1, 1.0, scheme="explicit", refresh_every=10), "biased"),
    "a process that a run sets up": (
        lambda: pdmp.sample(pdmp.BPS(isotropic(), refresh_rate=0.0), events=5, seed=1),
        "reducible",
    ),
    "a schedule": (lambda: discrete.schedules.polynomial(1.0, 1.0, 1.5), "finite sum"),
    "a run": (lambda: pdmp.sample(discrete.SGLD(isotropic(), 0.1), steps=5, ess=400, seed=1), "not reached"),
    "a regression": (collinear, "a sum of"),
    "draws": (lambda: pdmp.diagnostics.ess(np.ones((1, 10, 1))), "constant"),
}


@pytest.mark.parametrize("call, text", CASES.values(), ids=CASES)
def test_at_the_line_of_the_caller(call, text):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    assert any(text in str(one.message) for one in said)
    lines, first = inspect.getsourcelines(inspect.getmodule(call))
    for one in said:
        assert one.filename == __file__ and first <= one.lineno <= first + len(lines), one


def test_from_the_outside_it_is_the_line_itself():
    line = inspect.currentframe().f_lineno + 2
    with pytest.warns(RuntimeWarning, match="so") as said:
        warn("so", RuntimeWarning)
    assert (said[0].filename, said[0].lineno, len(said)) == (__file__, line, 1)


def test_nothing_else_warns():
    """No module of the library counts frames by itself."""
    for path in [*ROOT.rglob("*.py"), *(ROOT.parent / "discrete").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "warnings.warn" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warnings.warn"):
                assert path.name == "errors.py", path
