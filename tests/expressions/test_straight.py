"""Generated methods against the formulas by hand that they replace, in many digits; bounds; fingerprints."""

import math

import numpy as np
import pytest
from scipy import special

import pdmp
from pdmp.expressions.nodes import exp as traced_exp
from pdmp.expressions.nodes import trace, where
from pdmp.expressions.straight import enclosed, methods, numbers
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.native.fingerprints import fingerprint

pytestmark = pytest.mark.exact

X, R, NU, SCALE = np.array([[1.0], [2.0]]), 2.5, 3.0, 0.7
MARGINS = [-700.0, -300.0, -40.0, -20.0, -8.1, -2.0, -1e-3, 0.0, 0.3, 1.7, 9.0, 36.0, 300.0, 700.0]


def softplus(z):
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def share(z):
    """exp(z) / (1 + exp(z)), of small and large z alike."""
    return 1.0 / (1.0 + math.exp(-z)) if z > 0.0 else math.exp(z) / (1.0 + math.exp(z))


def mills(z):
    """φ(z) / Φ(z) by the scaled complementary error function, which keeps its digits in the tail."""
    if z > 0.0:
        return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / special.ndtr(z)
    return math.sqrt(2.0 / math.pi) / special.erfcx(-z / math.sqrt(2.0))


def student(z, y):
    e, w = y - z, NU * SCALE**2
    return (
        0.5 * (NU + 1.0) * math.log1p(e * e / w),
        -(NU + 1.0) * e / (w + e * e),
        (NU + 1.0) * (w - e * e) / (w + e * e) ** 2,
    )


#: Class, its options, targets as the class keeps them, and loss, first and second derivative at (z, y).
CASES = {
    "Poisson": (
        pdmp.models.PoissonRegression,
        {},
        [0.0, 3.0],
        lambda z, y: (math.exp(z) - y * z, math.exp(z) - y, math.exp(z)),
    ),
    "negative binomial": (
        pdmp.models.NegativeBinomialRegression,
        {"size": R},
        [0.0, 3.0],
        lambda z, y: (
            (y + R) * softplus(z - math.log(R)) + y * (math.log(R) - z),
            (y + R) * share(z - math.log(R)) - y,
            (y + R) * share(z - math.log(R)) * share(math.log(R) - z),
        ),
    ),
    "probit": (
        pdmp.models.ProbitRegression,
        {},
        [-1.0, 1.0],
        lambda z, y: (-float(special.log_ndtr(y * z)), -y * mills(y * z), None),
    ),
    "Student-t": (pdmp.models.StudentTRegression, {"degrees": NU, "noise_scale": SCALE}, [-1.3, 4.0], student),
    "logistic": (
        LogisticRegression,
        {},
        [-1.0, 1.0],
        lambda z, y: (softplus(-y * z), -y * share(-y * z), share(z) * share(-z)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_generated_methods_keep_their_digits(name):
    cls, options, targets, oracle = CASES[name]
    given = [0.0, 1.0] if targets == [-1.0, 1.0] else targets
    native = cls(X, given, **options).native
    for y in targets:
        for z in MARGINS:
            loss, first, second = oracle(z, y)
            # 1e-12 of the terms that are added: y and y + r cancel in the derivative where the mean is y.
            size = 1e-12 * (abs(y) + (y + R if name == "negative binomial" else 0.0))
            assert native.loss(z, y) == pytest.approx(loss, rel=1e-11, abs=size * max(abs(z), 1.0) + 1e-300)
            assert native.first_derivative(z, y) == pytest.approx(first, rel=1e-11, abs=size * (name != "probit"))
            if second is not None:
                assert native.second_derivative(z, y) == pytest.approx(second, rel=1e-11, abs=1e-300)


def test_curvature_of_the_probit_keeps_its_digits_in_the_tail():
    """By hand m (m + z) loses all of them: m is -z + 1/z there, and the curvature 1 - 1/z² + 6/z⁴."""
    native = pdmp.models.ProbitRegression(X, [0, 1]).native
    for z in (-60.0, -700.0):
        expected = 1.0 - z**-2 + 6.0 * z**-4 - 50.0 * z**-6
        assert native.second_derivative(z, 1.0) == pytest.approx(expected, rel=1e-10)
        assert native.second_derivative(-z, -1.0) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", [name for name in CASES if name != "Poisson"])
def test_bounds_hold_and_are_reached(name):
    cls, options, targets, _ = CASES[name]
    model = cls(X, [0.0, 1.0] if targets == [-1.0, 1.0] else targets, **options)
    native = model.native
    for y in targets:
        z = np.concatenate([np.linspace(-60.0, 60.0, 24_001), y + SCALE * math.sqrt(NU) * np.array([1.0, -1.0])])
        for which in ("first", "second"):
            if (name, which) == ("probit", "first"):
                continue
            low, high = getattr(native, f"{which}_derivative_bounds")(y)
            values = [getattr(native, f"{which}_derivative")(u, y) for u in z.tolist()]
            assert low <= 0.0 <= high
            assert low <= min(values) + 1e-15 and max(values) <= high * (1.0 + 1e-14)
            # The grid's ends and spacing leave a thousandth.
            assert min(values) <= 0.999 * low + 1e-12 and max(values) >= 0.999 * high - 1e-12
    low, high = model.second_derivative_bounds(model.target)  # arrays, from Python
    assert np.shape(np.broadcast_to(high, 2)) == (2,) and np.all(np.asarray(low) <= high)


def test_dispersions_are_numbers_of_the_object_and_data_may_choose():
    expression, _ = trace(lambda y, z, a: where(y > 1.0, traced_exp(a) * z**2, (z - a) ** 4 / traced_exp(3.0 * a)), 1)
    made, constants = methods(expression, "somewhere", "Something")
    fields = type("Fields", (), numbers(constants, [0.3]))
    assert made["loss"](fields, 1.5, 2.0) == pytest.approx(math.exp(0.3) * 2.25)
    assert made["first_derivative"](fields, 1.5, 0.0) == pytest.approx(4.0 * 1.2**3 * math.exp(-0.9))
    assert made["second_derivative"](fields, 1.5, 0.0) == pytest.approx(12.0 * 1.2**2 * math.exp(-0.9))
    with pytest.raises(TypeError, match="no bound is known"):
        enclosed(expression.derivative(0))


@pytest.mark.parametrize("power", [1, 2, 3, 4, -1, -2])
@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_bounds_of_products_with_data_of_either_sign(power, factor):
    """A power of data times a derivative between 0 and 1."""
    expression, _ = trace(lambda y, z: factor * y**power * pdmp.terms.softplus(z), 1)
    bounds = methods(expression, "somewhere", "Something", bounded=2)[0]["first_derivative_bounds"]
    for y in (-1.5, 2.0):
        assert bounds(None, y) == pytest.approx(sorted((0.0, factor * y**power)), rel=1e-14)


def test_terms_without_z_are_left_out_of_the_loss():
    expression, _ = trace(lambda y, z: z * y + y**2 + 5.0, 1)
    assert methods(expression, "somewhere", "Something")[0]["loss"](None, 2.0, 3.0) == 6.0


def test_another_expression_is_another_fingerprint():
    def of(c):
        made, _ = methods(trace(lambda y, z: c * traced_exp(z) - y * z, 1)[0], "somewhere", "Something")
        return fingerprint(made.values())

    assert of(1.0) == of(1.0) and of(1.0) != of(2.0)
