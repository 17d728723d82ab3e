"""What all tests of formulas share."""

import pytest


@pytest.fixture
def few_steps(monkeypatch):
    """Where effects are found to be does not matter to the law, and takes long in plain Python."""
    # Where a path is given this file is read before `pytest_configure` says whether numba compiles.
    from pdmp.models.regressions import effect_information

    for name, number in (("MOMENTS", 1), ("STEPS", 2), ("LAST_STEPS", 1)):
        monkeypatch.setattr(effect_information, name, number)
