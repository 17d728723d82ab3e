"""The public names of the diagnostics."""

import types

import pytest

import pdmp

pytestmark = pytest.mark.exact


@pytest.mark.parametrize("name", ["check_clocks", "calibration"])
def test_what_runs_samplers_is_forwarded_with_a_warning(name):
    with pytest.warns(DeprecationWarning, match=f"pdmp.diagnostics.{name} is now pdmp.validation.{name}"):
        assert getattr(pdmp.diagnostics, name) is getattr(pdmp.validation, name)
    assert name not in dir(pdmp.diagnostics)
    with pytest.raises(AttributeError, match="no attribute 'clocks'"):
        _ = pdmp.diagnostics.clocks


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
