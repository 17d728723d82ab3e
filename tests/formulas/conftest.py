"""What all tests of formulas share."""

import pytest

from pdmp.models.regressions import effect_information


@pytest.fixture
def few_steps(monkeypatch):
    """Where effects are found to be does not matter to the law, and takes long in plain Python."""
    for name, number in (("MOMENTS", 1), ("STEPS", 2), ("LAST_STEPS", 1)):
        monkeypatch.setattr(effect_information, name, number)
