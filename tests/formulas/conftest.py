"""What all tests of formulas share."""

import numba
import pytest

from pdmp.models.regressions import effect_information
from pdmp.processes import row_bounds


@pytest.fixture(scope="module")
def few_radii():
    """Those of tables of more than 5,000 rows: to enclose at more takes most of a small fit in plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        if numba.config.DISABLE_JIT:
            patch.setattr(row_bounds, "PLANS", row_bounds.PLANS[1:])
        yield


@pytest.fixture
def few_steps(monkeypatch):
    """Where effects are found to be does not matter to the law, and takes long in plain Python."""
    for name, number in (("MOMENTS", 1), ("STEPS", 2), ("LAST_STEPS", 1)):
        monkeypatch.setattr(effect_information, name, number)
