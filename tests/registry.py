"""The registered samplers, whether the package is installed or runs from its checkout."""

import importlib
import pathlib
import tomllib

import pytest

from pdmp import comparison


def declared():
    """Sampler classes by name, as pyproject.toml declares them."""
    text = (pathlib.Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    points = tomllib.loads(text)["project"]["entry-points"][comparison.GROUP]
    found = {}
    for name, target in sorted(points.items()):
        module, _, attribute = target.partition(":")
        found[name] = getattr(importlib.import_module(module), attribute)
    return found


@pytest.fixture
def installed(monkeypatch):
    """Lets a checkout that is not installed find its own samplers."""
    if not comparison.registered():
        monkeypatch.setattr(comparison, "registered", declared)
