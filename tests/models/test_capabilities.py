"""The table of what a model may say of itself, and that the package, its texts and its models keep to it."""

import inspect
import pathlib
import re

import numpy as np
import pytest

import pdmp
from pdmp.models.base import Model
from pdmp.models.capabilities import CAPABILITIES, missing, require
from pdmp.models.derived import Derived
from tests.digests import MODELS
from tests.targets import Cone

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(pdmp.__file__).parents[1]
EXPANDED = ("remainder_along", "data_sums")  #: of rows that are expanded: only models of the package have them
SOURCES = {p: p.read_text() for package in ("pdmp", "discrete") for p in (ROOT / package).rglob("*.py")}


def test_table_is_the_documentation():
    text = pdmp.models.capabilities.__doc__
    for name, capability in CAPABILITIES.items():
        assert f"``{name}({capability.arguments})``" in text and capability.meaning in text
    assert "pdmp.models.capabilities" in Model.__doc__


def test_table_names_who_asks():
    here = "pdmp/models/capabilities.py"
    asked = "\n".join(text for path, text in SOURCES.items() if not path.as_posix().endswith(here))
    for name, capability in CAPABILITIES.items():
        assert re.search(rf'"{name}"|\.{name}\(|`{name}`', asked), name
        for user in capability.used_by:
            assert any(hasattr(module, user) for module in (pdmp, pdmp.thinning, pdmp.gradients)), user
        if capability.unless:
            assert hasattr(Model, capability.unless) and hasattr(Derived, name)


def test_what_is_asked_for_is_in_the_table():
    for path, text in SOURCES.items():
        for call in re.findall(r"\.(?:has|require)\(([^()]*)\)", text):
            for name in re.findall(r'(?<!=)"([a-z_]+)"', call.split("instead")[0]):
                known = name in CAPABILITIES or name in EXPANDED
                assert known or hasattr(Model, name) or hasattr(Derived, name), f"{path}: {name}"


@pytest.mark.parametrize("name", MODELS)
def test_models_keep_to_the_signatures(name):
    model = MODELS[name]
    for capability, what in CAPABILITIES.items():
        method = getattr(type(model), capability, None)
        if method is None:
            continue
        found = list(inspect.signature(method).parameters)[1:]
        if capability != "factors" or found:
            assert found == [a for a in what.arguments.split(", ") if a], f"{capability} of {name}"
        assert (capability in model._methods) == what.compiled


def test_what_is_asked_of_a_part_that_is_not_there_is_known():
    class Flat(pdmp.Model):
        def __init__(self):
            super().__init__(dim=1, n_data=2)

        @pdmp.compiled
        def term_potential(self, x, i):
            return 0.5 * x[0] * x[0]

        @pdmp.compiled
        def add_term_gradient(self, x, i, out):
            out[0] += x[0]

    assert Flat().has("prior_partial", "prior_partial_curvature_bound", "add_prior_parts")
    assert not Flat().has("add_term_parts") and not Flat().has("curvature_bound") and not Flat().has("factors")
    assert not Flat().has("add_prior_gradient") and not Flat().has("add_factor_gradient")
    cone = Cone()
    assert cone.has("add_term_parts", "curvature_bound") and not cone.has("prior_partial")
    assert cone.has("add_prior_gradient") and not cone.has("add_prior_parts")


def test_an_error_says_who_needs_what_of_whom():
    with pytest.raises(ValueError, match='^X needs a quadratic potential: Cone has no `affine_partial`. Use "grid".$'):
        require(Cone(), "X needs", "curvature_bound", "affine_partial", instead='Use "grid".')
    require(Cone(), "X needs", "curvature_bound")
    with pytest.raises(
        AttributeError, match=r"^Cone has no attribute 'find_mode'; it is `pdmp.models.find_mode\(model, "
    ):
        Cone().find_mode()
    with pytest.raises(AttributeError, match="^'Cone' object has no attribute 'mass'$"):
        _ = Cone().mass
    assert missing(Cone(), "factors", "X needs") == "X needs factors: Cone has no `factors`."


class Whole(pdmp.Model):
    """A target that is not a sum over data, in its two methods."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        return 0.25 * x[0] * x[0] * x[0] * x[0] + 0.5 * x[1] * x[1]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] * x[0] * x[0]
        out[1] += x[1]


class Steeper(Whole):
    """Another gradient, and a potential that calls compiled methods by the names they are written with."""

    scale: float

    def __init__(self):
        super().__init__()
        self.scale = 2.0

    @pdmp.compiled
    def potential(self, x):
        return self.scale * (0.25 * x[0] * x[0] * x[0] * x[0] + 0.5 * x[1] * x[1])

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += self.scale * x[0] * x[0] * x[0]
        out[1] += self.scale * x[1]

    @pdmp.compiled
    def twice(self, x, out):
        self.add_gradient(x, out)
        return 2.0 * self.potential(x)


def test_a_target_is_written_as_potential_and_gradient():
    x = [2.0, 3.0]
    for model, scale in ((Whole(), 1.0), (Steeper(), 2.0)):
        assert model.potential(x) == scale * 8.5
        assert model.gradient(x).tolist() == [scale * 8.0, scale * 3.0]
        with pytest.raises(ValueError, match=r"`x` must have shape \(2,\), got \(1,\)"):
            model.potential([1.0])
    out = np.array([1.0, 1.0])
    assert Steeper().native.twice(np.array(x), out) == 34.0 and out.tolist() == [17.0, 7.0]
    assert pdmp.sample(pdmp.BPS(Whole()), events=50, seed=1).stats["events"]["bounce"] > 0


def test_half_a_target_is_refused():
    with pytest.raises(TypeError, match="^Half is a model with `potential`, but without the method `add_gradient`.$"):

        class Half(pdmp.Model):
            @pdmp.compiled
            def potential(self, x):
                return 0.0

    with pytest.raises(TypeError, match="^Other is a model with `add_gradient`, but without the method `potential`.$"):

        class Other(pdmp.Model):
            @pdmp.compiled
            def add_gradient(self, x, out):
                pass

    with pytest.raises(TypeError, match="Unmarked.potential is a method of a model that must be marked @compiled"):

        class Unmarked(pdmp.Model):
            def potential(self, x):
                return 0.0


def test_strategies_want_what_the_table_says_that_they_use():
    """And a row names no strategy that does not want it."""
    strategies = {n: s for n, s in vars(pdmp.thinning).items() if getattr(s, "wants", None)}
    assert {"ConcaveConvex", "Polynomial"} <= strategies.keys()
    for name, strategy in strategies.items():
        assert {row for row, capability in CAPABILITIES.items() if name in capability.used_by} == set(strategy.wants)
