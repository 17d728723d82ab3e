"""Transforms to natural parameters: inverses, Jacobians by differences, names, and what a run makes of them."""

import json
import math

import numpy as np
import pytest

import pdmp
from pdmp.models import from_function
from pdmp.models.transforms import (
    Identity,
    Interval,
    Log,
    Ordered,
    Simplex,
    Transform,
    Upper,
    coordinate_names,
    from_json,
    recognised,
    split,
)
from tests.checks import plain_only

pytestmark = pytest.mark.exact

TRANSFORMS = [Identity(), Log(), Log(-2.5), Upper(3.0), Interval(), Interval(-1.0, 4.0), Ordered(), Simplex()]
VARIABLES = {"mu": (), "tau": (), "p": (2,), "cuts": (3,), "weights": (2,)}
KINDS = {"tau": Log(), "p": Interval(), "cuts": Ordered(), "weights": Simplex()}


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_jacobians_by_differences(transform):
    rng = np.random.default_rng(0)
    for x in 1.5 * rng.standard_normal((5, 4)):
        n = 4

        def derivative(f, x=x, n=n):
            steps = 1e-6 * np.eye(n)
            return np.array([(f(x + h) - f(x - h)) / 2e-6 for h in steps]).T

        jacobian = derivative(transform.constrain)[:n]  # of a simplex all but the last
        sign, log_determinant = np.linalg.slogdet(jacobian)
        assert sign == (1.0 if not isinstance(transform, Upper) else (-1.0) ** n)
        parts = transform.log_jacobian(x)
        assert parts.shape == x.shape and math.isclose(parts.sum(), log_determinant, abs_tol=1e-7)
        numeric = derivative(lambda z: transform.log_jacobian(z).sum())
        assert np.allclose(transform.log_jacobian_gradient(x), numeric, atol=1e-7)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_inverse_shapes_and_header(transform):
    x = 2.0 * np.random.default_rng(1).standard_normal((7, 2, 3))
    y = transform.constrain(x)
    assert y.shape == transform.shape(x.shape)
    assert np.allclose(transform.unconstrain(y), x, rtol=0.0, atol=1e-12)
    assert np.allclose(transform.constrain(x[3, 1]), y[3, 1], rtol=1e-15)
    assert from_json(transform.to_json()) == transform


@pytest.mark.parametrize("transform", [t for t in TRANSFORMS if not isinstance(t, Simplex)], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_transform_is_recognised(transform, shape):
    x = np.random.default_rng(3).standard_normal((5, *shape))
    if shape or not isinstance(transform, Ordered):
        assert recognised(x, transform.constrain(x)) == transform
    assert recognised(x, x**3) is None
    if not shape:  # points are in no order
        assert recognised(x, Ordered().constrain(x)) is None


def test_large_bounds_are_told_from_offsets():
    """Of a time stamp: one second is 6e-10 of it, and an offset is no bound."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, 8)
    assert recognised(x, 1.7e9 + np.exp(x)) == Log(1.7e9)
    assert recognised(x, 1.7e9 + x) is None
    assert recognised(x, 1e-4 * (1.7e9 + x)) is None


@pytest.mark.parametrize(
    ("transforms", "error", "message"),
    [
        ({"sigma": Log()}, ValueError, "`transforms` names 'sigma', which is not among the variables"),
        ({"tau": "log"}, TypeError, r"must hold transforms such as .*Log\(\), 'tau' has 'log'"),
        ({"tau": Simplex()}, ValueError, "Simplex is for vectors, and the variable 'tau' is one number"),
    ],
)
def test_transforms_are_checked(transforms, error, message):
    with pytest.raises(error, match=message):
        from_function(half_square, 9, variables=VARIABLES, transforms=transforms)


@pytest.mark.parametrize("upper", [1.0, 2.0, math.inf, math.nan])
def test_interval_is_checked(upper):
    said = f"`lower` must be below `upper`, got 2 and {upper:g}" if math.isfinite(upper) else "`upper` must be a finite"
    with pytest.raises(ValueError, match=said):
        Interval(2.0, upper)


@pytest.mark.parametrize("kind", [Log, Upper, Interval])
def test_bounds_are_floats_also_of_columns_of_whole_numbers(kind):
    """As `y.min()` gives them, which no file held; and what is no number is refused by the name of the bound."""
    low, high = np.array([2, 7], np.int64)
    made = kind(low, np.float32(high)) if kind is Interval else kind(low)
    assert made == (kind(2.0, 7.0) if kind is Interval else kind(2.0)) and json.loads(json.dumps(made.to_json()))
    assert {type(value) for value in made.to_json()[1:]} == {float}
    for value in (math.nan, "a", [1, 2]):
        with pytest.raises(ValueError, match=r"`(lower|upper)` must be a finite number, got"):
            kind(value)


class Percent(Transform):
    def constrain(self, x):
        return 100.0 / (1.0 + np.exp(-x))


def of_the_user(name):
    """A transform of one's own, called as one of the package is or not."""
    return type(name, (Transform,), {"constrain": lambda self, x: 10.0**x})()


@pytest.mark.parametrize("own", [of_the_user("Log"), of_the_user("Power"), Percent()], ids=["Log", "Power", "Percent"])
def test_a_transform_of_ones_own_is_that_of_the_run_and_no_other_of_its_file(own, tmp_path):
    model = from_function(half_square, 3, variables={"tau": (2,), "mu": ()}, transforms={"tau": own})
    run = pdmp.sample(pdmp.BPS(model), events=200, seed=1)
    names = [own.label("tau[0]"), own.label("tau[1]"), "mu"]
    draws = run.draws(5)
    np.testing.assert_array_equal(run.constrain(draws)["tau"], own.constrain(draws[..., :2]))
    assert run.names() == names and "tau[0]" in str(run.summary())
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    assert loaded.names() == names
    np.testing.assert_array_equal(loaded.constrain(draws, model)["tau"], own.constrain(draws[..., :2]))
    for asked in (lambda: loaded.constrain(draws), lambda: loaded["tau"]):
        with pytest.raises(ValueError, match="own, which a loaded run does not hold: give its model as `model=`"):
            asked()
    rows = {line.split(" ")[0] for line in str(loaded.summary()).splitlines()}
    assert {"mu", own.label("tau[0]")} <= rows and "tau[0]" not in rows
    loaded.save(tmp_path / "again.npz")
    assert pdmp.load(tmp_path / "again.npz").names() == names


def half_square(x):
    return 0.5 * x @ x, x


class Shifted(pdmp.models.Gaussian):
    """Natural parameters of its own: x + 1."""

    def constrain(self, draws):
        return {"shifted": np.asarray(draws) + 1.0}


@plain_only
def test_a_run_carries_names_and_transforms(tmp_path):
    model = from_function(half_square, 9, variables=VARIABLES, transforms=KINDS)
    run = pdmp.sample(pdmp.BPS(model), events=30, seed=1)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    assert loaded.transforms == run.transforms == KINDS
    assert [row["name"] for row in loaded.summary().rows][: model.dim] == coordinate_names(VARIABLES, KINDS)
    x = run.draws(20)
    for other in (run, loaded):
        posterior = other.to_arviz(20).posterior
        for name, values in split(x, VARIABLES, KINDS).items():
            assert np.array_equal(posterior[name].values, values)
    assert run.to_arviz(20).posterior["weights"].shape == (1, 20, 3)


@plain_only
def test_a_model_with_natural_parameters_of_its_own_is_asked(tmp_path):
    model = Shifted(0.0, [1.0, 4.0])
    run = pdmp.sample(pdmp.BPS(model), events=30, seed=1)
    run.save(tmp_path / "run.npz")
    loaded = pdmp.load(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="computed by its model, which a loaded run does not"):
        loaded.to_arviz(20)
    for posterior in (run.to_arviz(20).posterior, loaded.to_arviz(20, model=model).posterior):
        assert np.array_equal(posterior["shifted"].values, run.draws(20) + 1.0)


@pytest.mark.parametrize(
    ("variables", "transforms", "named"),
    [
        ({"a": (2,), "a[0]": ()}, {}, "a[0]"),
        ({"log(tau)": (), "tau": ()}, {"tau": Log()}, "log(tau)"),
        ({"ordered(c)[0]": (), "c": (2,)}, {"c": Ordered()}, "ordered(c)[0]"),
        ({"mu": (), "chain": ()}, {}, "chain"),
        ({"draw": (2,)}, {}, "draw"),
    ],
)
def test_names_that_are_also_those_of_others(variables, transforms, named):
    """One of the two was lost in tables, and reported as the other by name."""
    dim = sum(math.prod(shape) for shape in variables.values())
    with pytest.raises(ValueError) as raised:
        from_function(lambda x: (0.5 * x @ x, x), dim, variables=variables, transforms=transforms)
    assert str(raised.value).startswith(f"`variables`: {named!r} is also what a coordinate of another")


def test_names_that_are_alike_and_shapes_that_are_none():
    variables = {"a": (2,), "ab[0]": (), "tau": (), "logtau": ()}
    model = from_function(
        lambda x: (0.5 * x @ x, x), 5, variables=variables, transforms={"tau": Log(), "a": Identity()}
    )
    assert coordinate_names(model.variables, model.transforms) == ["a[0]", "a[1]", "ab[0]", "log(tau)", "logtau"]
    with pytest.raises(TypeError, match=r"^`variables`: the shape of 'a' must be a tuple, such as \(2,\), got 2\.$"):
        from_function(lambda x: (0.5 * x @ x, x), 2, variables={"a": 2})
