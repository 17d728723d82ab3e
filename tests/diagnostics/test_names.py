"""The public names of the diagnostics."""

import types

import numpy as np
import pytest

import pdmp
from pdmp import diagnostics
from pdmp.diagnostics import distances

pytestmark = pytest.mark.exact


@pytest.mark.parametrize("room", ["diagnostics", "diagnostics.stein", "gradients", "validation"])
def test_every_name_of_a_room_is_its_own(room):
    """No module and function of one name, and nothing listed that is not there."""
    module = pdmp
    for part in room.split("."):
        module = getattr(module, part)
    found = {name: getattr(module, name) for name in module.__all__}
    assert len(found) == len(module.__all__)
    modules = {name for name, value in found.items() if isinstance(value, types.ModuleType)}
    assert modules == ({"stein"} if room == "diagnostics" else set())


MASKED = np.ma.array(np.arange(20.0).reshape(10, 2), mask=np.arange(20).reshape(10, 2) == 3)


@pytest.mark.parametrize("wrong", [MASKED, MASKED.data + 1j])
def test_masked_and_complex_draws_are_refused(wrong):
    """They were taken for what lies below the mask, or for their real parts."""
    right, said = (
        np.arange(20.0).reshape(10, 2),
        "masked entries; leave out" if wrong is MASKED else "must be real, got",
    )
    labels = np.arange(10) % 2
    for call in (
        lambda: diagnostics.ess(wrong),
        lambda: diagnostics.rhat([right, wrong]),
        lambda: diagnostics.ksd(wrong, right),
        lambda: diagnostics.ksd(right, wrong),
        lambda: diagnostics.accuracy(labels, wrong[:, 1] / 20.0),
        lambda: diagnostics.accuracy(wrong[:, 1], right[:, 1] / 20.0),
        lambda: diagnostics.rmse(wrong[:, 1], [right[:, 1]]),
        lambda: diagnostics.rmse(right[:, 1], [wrong[:, 1]]),
        lambda: diagnostics.asymptotic_variance(wrong, stretch=1.0),
        lambda: distances._reference_draws(wrong, right),
    ):
        with pytest.raises(ValueError, match=said):
            call()
