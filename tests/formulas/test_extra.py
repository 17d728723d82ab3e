"""Regressions by formula where formulae or pandas are not installed."""

import sys

import pytest

import pdmp

pytestmark = pytest.mark.exact


@pytest.mark.parametrize("package", ["pandas", "formulae.model_description"])
def test_what_to_install_is_said(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"need .*formulae: pip install 'pdmp\[formula\]'"):
        pdmp.regression("y ~ x", {"y": [1.0, 2.0], "x": [0.0, 1.0]})
