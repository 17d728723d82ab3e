"""Regressions by formula: packages that are not installed, and functions of the user's and of NumPy."""

import sys

import numpy as np
import pytest

import pdmp

pytestmark = pytest.mark.exact


@pytest.mark.parametrize("package", ["pandas", "formulae.model_description"])
def test_what_to_install_is_said(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"need .*formulae: pip install 'pdmp\[formula\]'"):
        pdmp.regression("y ~ x", {"y": [1.0, 2.0], "x": [0.0, 1.0]})


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ own(x)",
        "y ~ x + offset(own(x))",
        "y ~ x + (own(x) || g)",
        "y ~ x:own(x)",
        {"y": "y ~ x", "sigma": "~ own(x)"},
    ],
)
def test_a_function_that_has_changed_since_the_fit_is_refused(formula):
    """It would code new rows in another way than those of the fit; the first of them show nothing of it."""
    pandas, rows, limit = pytest.importorskip("pandas"), 200, 1.0

    def own(x):
        return x * (1.0 + 2.0 * (x > limit))

    table = {"x": np.sort(np.random.default_rng(0).normal(0.0, 2.0, rows)), "g": np.arange(rows) % 4}
    fit = pdmp.regression(formula, table | {"y": np.arange(rows) % 7.0}, sample=False)
    x, new = fit.run.draws(3)[0], pandas.DataFrame({"x": [-1.0, 0.5], "g": [0, 1]})
    fit.predicted(x, new, "mean", "error", None)
    limit = 1.5
    with pytest.raises(ValueError, match=r"own\(x\).* has other values in rows of the fit than when it was made"):
        fit.predicted(x, new, "mean", "error", None)
    limit = 1.0
    fit.predicted(x, new, "mean", "error", None)


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("np.add(x, g, y)", 2),
        ("exp(x, g)", 1),
        ("np.add(x, g, where=x > 0)", 2),
        ("np.exp(x, g)", 1),
        ("np.fix(x, g)", 1),
        ("np.clip(x, 0, 1, g)", 3),
        ("np.round(x, out=g)", 1),
    ],
)
def test_what_numpy_would_not_compute_with_is_refused(call, count):
    table = {"x": np.arange(9.0), "g": np.arange(9.0) % 2, "y": np.arange(9.0) % 4}
    with pytest.raises(ValueError, match=rf"takes {count} of x, (g|0, 1, g|out=g)"):
        pdmp.regression(f"y ~ {call}", table, sample=False)
    assert "np.add(x, g)" in pdmp.regression("y ~ np.add(x, g)", table, sample=False).priors


def test_a_function_of_ones_own_may_call_its_arguments_as_numpy_does():
    def own(x, where=0.0, out=1.0):
        return out * x + where * x**2

    table = {"x": np.arange(9.0), "y": np.arange(9.0) % 4}
    fit = pdmp.regression("y ~ own(x, where=3.0, out=2.0)", table, sample=False)
    assert fit.priors.keys() >= {"own(x, where=3.0, out=2.0)"}
