"""Tracing: operators, NumPy's protocols, derivatives against differences, and what cannot be traced."""

import math

import numpy as np
import pytest
from scipy import special

import pdmp
from pdmp.expressions import nodes as n
from pdmp.expressions.nodes import FUNCTION_NAMES, Graph, trace
from pdmp.expressions.tape import Tape

pytestmark = pytest.mark.exact

Y, A, B = 1.7, 0.6, -1.3


def value(function, y=Y, a=A, b=B):
    node, _ = trace(function, 1, 2)
    return Tape([node])(np.array([[y]]), np.array([[a], [b]]))[0, 0]


def compared(c):
    """Every comparison of a constant with data, either way round, each with a weight of its own."""

    def function(y, a, b):
        tests = c < y, c <= y, c > y, c >= y, c == y, c != y, y < c, y <= c, y > c, y >= c, y == c, y != c
        return sum(2.0**k * np.where(test, a, b) for k, test in enumerate(tests))

    return function


def compared_by_numpy(y, a, b):
    """Likewise, by the functions of NumPy."""
    ufuncs = np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal
    tests = [ufunc(*pair) for ufunc in ufuncs for pair in ((y, Y), (Y, y))]
    return sum(2.0**k * np.where(test, a, b) for k, test in enumerate(tests))


@pytest.mark.parametrize(
    "function",
    [
        lambda y, a, b: a + b,
        lambda y, a, b: 2 + a,
        lambda y, a, b: a + 2,
        lambda y, a, b: 2 - a,
        lambda y, a, b: a - 2,
        lambda y, a, b: 3 * a * b,
        lambda y, a, b: a * 3 / b,
        lambda y, a, b: 3 / b,
        lambda y, a, b: (a / 3) ** 2,
        lambda y, a, b: b**3,
        lambda y, a, b: b**-2,
        lambda y, a, b: a**0.5,
        lambda y, a, b: a**y,
        lambda y, a, b: y**b,
        lambda y, a, b: 2**b,
        lambda y, a, b: +a - -b,
        lambda y, a, b: abs(b) * abs(a),
        lambda y, a, b: (2 * a) ** 0.5,
        lambda y, a, b: (-2 * b) ** 1.5,
        lambda y, a, b: (b**2) ** 0.5,
        lambda y, a, b: (a - b) ** 2 - (b - a) ** 2 + a,
        lambda y, a, b: (a - b) ** 3 / (b - a),
        lambda y, a, b: np.float64(2.0) * a + b * np.float64(3.0),
        lambda y, a, b: np.float64(2.0) - a,
        lambda y, a, b: np.float64(2.0) / a,
        lambda y, a, b: np.float64(2.0) ** a,
        lambda y, a, b: np.float64(2.0) + a,
        lambda y, a, b: np.array(2.0) * a,
        lambda y, a, b: np.int64(2) * a,
        lambda y, a, b: np.exp(a) * np.exp(b) / np.exp(2 * a),
        lambda y, a, b: np.exp(a) ** 2 * np.exp(-2 * a) + b,
        lambda y, a, b: np.log(a) + np.log1p(a) + np.expm1(b),
        lambda y, a, b: np.sqrt(a) + np.square(b) + np.reciprocal(b) + np.negative(a),
        lambda y, a, b: np.abs(b) + np.fabs(b),
        lambda y, a, b: np.tanh(b) + np.sin(a) * np.cos(b),
        lambda y, a, b: np.logaddexp(a, b) + np.logaddexp(0.0, b) + np.logaddexp(a, 1.0),
        lambda y, a, b: np.add(1.0, a) + np.subtract(1.0, a) * np.multiply(2.0, b) + np.divide(1.0, b),
        lambda y, a, b: np.subtract(a, b) + np.divide(a, b) + np.power(a, 2.5) + np.power(2.0, b),
        lambda y, a, b: special.expit(a) + special.log_expit(b) + special.erf(a),
        lambda y, a, b: special.gammaln(y) + special.gammaln(a) + special.psi(a) + special.digamma(y),
        lambda y, a, b: special.log_ndtr(b) + special.xlogy(y, a) + special.xlogy(y - 1.7, a),
        lambda y, a, b: np.where(y > 1, a, b) + np.where(y < 1, a, 3.0) + np.where(y >= 1.7, b, a),
        lambda y, a, b: np.where(y <= 1.0, a, b) + np.where(y == 1.7, a, b) + np.where(y != 1.7, a, b),
        lambda y, a, b: np.where((y > 1) & (y < 3), a, b) + np.where((y < 1) | (y > 3), a, b) + a * ((y > 0) | (y > 1)),
        lambda y, a, b: np.where(1 < y, a, b) + np.where(np.float64(2.0) > y, a, b),
        lambda y, a, b: np.where(np.less(y, 1.0), a, b) + np.where(np.greater_equal(1.7, y), a, b),
        lambda y, a, b: np.where(np.not_equal(y, 1.7), a, b) + np.where(np.equal(1.7, y), a, b),
        compared(Y),
        compared(np.float64(Y)),
        compared(np.array(Y)),
        compared_by_numpy,
        lambda y, a, b: a * ~((y > 1) | (y > 3)) + b * ((y > 1) & ~(y > 3)),
        lambda y, a, b: np.where(y > 2, np.log(b + 1.0 + y), b) + 0.0,
        lambda y, a, b: 4.0,
    ],
)
def test_a_traced_function_is_the_function(function):
    for y in (Y, 0.4, 3.5):
        expected = function(np.float64(y), np.float64(A), np.float64(B))
        assert value(function, y) == pytest.approx(float(expected), rel=1e-13)


def test_own_functions_are_those_of_scipy():
    t = pdmp.terms
    expected = {
        "cos": np.cos, "digamma": special.digamma, "erf": special.erf, "exp": np.exp, "expit": special.expit,
        "expm1": np.expm1, "lgamma": special.gammaln, "log": np.log, "log1mexp": lambda u: np.log(-np.expm1(-u)),
        "log1p": np.log1p, "log_i0": lambda u: np.log(special.i0(u)), "log_ndtr": special.log_ndtr, "sin": np.sin,
        "softplus": lambda u: np.logaddexp(0, u),
        "sqrt": np.sqrt, "tanh": np.tanh,
    }  # fmt: skip
    assert {*expected, "logaddexp", "where", "xlogy"} == set(FUNCTION_NAMES)
    for name, f in expected.items():
        assert value(lambda y, a, b, name=name: getattr(t, name)(a)) == pytest.approx(float(f(A)), rel=1e-12)
        assert getattr(t, name)(A) == pytest.approx(float(f(A)), rel=1e-12)  # and of numbers
    assert t.where(True, 1.0, 2.0) == 1.0 and t.xlogy(0.0, 3.0) == 0.0 and t.logaddexp(0.0, 0.0) == math.log(2.0)


def test_equal_expressions_are_one_node_and_what_cancels_is_gone():
    graph = Graph()
    x, y = graph.make(n.VARIABLE, 0), graph.make(n.VARIABLE, 1)
    assert x + y is y + x and x * y is y * x and x / y is x * y**-1 and x - x is graph.node(0.0)
    assert (2 * x) ** 2 is 4 * x**2 and x**0.5 * x**0.5 is x and x * y / y is x and x**0 is graph.node(1.0)
    assert n.exp(x) * n.exp(-x) is graph.node(1.0) and n.exp(x) ** 2 is n.exp(2 * x) and n.where(x * 0 == 0, x, y) is x
    assert 0 * x is graph.node(0.0) and -1 * (-x) is x and x**-1 is not x**-2


BRANCHES = {
    "if": lambda y, z: z if z > 0 else -z,
    "float": lambda y, z: float(z),
    "int": lambda y, z: int(z) + z,
    "math": lambda y, z: math.exp(z),
    "floor": lambda y, z: np.floor(z),
    "ceil": lambda y, z: math.ceil(z) + z,
    "round": lambda y, z: round(z) + z,
    "whole": lambda y, z: z // 2 + z,
    "rest": lambda y, z: z % 2,
    "rest of": lambda y, z: 2 % z,
    "max": lambda y, z: max(z, 0),
    "parameter": lambda y, z: np.where(z > 0, z, 1.0),
    "as a test": lambda y, z: np.where(z, z, 1.0),
    "data": lambda y, z: z if y > 0 else -z,
    "set": lambda y, z: z * z if y in {1.0, 2.0} else z**4,
    "dict": lambda y, z: {1.0: 5.0}.get(y, 1.0) * z,
    "item": lambda y, z: z[0],
    "length": lambda y, z: z * len(z),
    "loop": lambda y, z: sum(k for k in z),
    "array": lambda y, z: np.array([1.0, 2.0]) * z,
    "array after": lambda y, z: z * np.array([1.0, 2.0]),
    "sum": lambda y, z: np.sum(z),
    "reduce": lambda y, z: np.add.reduce(z),
    "clip": lambda y, z: np.clip(z, 0, 1),
    "maximum": lambda y, z: np.maximum(z, 0),
    "out": lambda y, z: np.exp(z, dtype=float),
    "infinite": lambda y, z: z + math.inf,
    "text": lambda y, z: z + "1",
    "none": lambda y, z: z * None,
}


@pytest.mark.parametrize("name", ["mean", "astype", "real"])
def test_attributes_of_arrays_name_the_line(name):
    with pytest.raises(
        AttributeError, match=rf"^line \d+ of test_nodes.py, `.*`, asks a traced value, .* for '{name}'"
    ):
        trace(lambda y, z: z * getattr(y, name), 1, 1)


@pytest.mark.parametrize("name", BRANCHES)
def test_what_cannot_be_traced_names_the_line(name):
    with pytest.raises(TypeError) as caught:
        trace(BRANCHES[name], 1, 1)
    message = str(caught.value)
    assert "\n" not in message and "test_nodes.py" in message and f'"{name}": lambda' in message, message


@pytest.mark.parametrize(
    "function, said",
    [
        (lambda y, z: None, "must return one number for a datum, got a NoneType"),
        (lambda y, z: [z], "must return one number for a datum, got a list"),
        (lambda y, z: np.array([1.0, 2.0]), "must return one number for a datum, got a ndarray"),
        (lambda z: z, "takes 1 arguments, and there are 1 of data and 1 of functionals"),
        (lambda y, z, w: z, "takes 3 arguments"),
        (3.0, "`loss` must be a function of data and functionals, got 3.0"),
    ],
)
def test_what_is_no_loss_is_said(function, said):
    with pytest.raises(TypeError, match=said) as caught:
        trace(function, 1, 1)
    assert "\n" not in str(caught.value)


def test_a_loss_that_changes_from_call_to_call_is_refused():
    """A number drawn in it was kept for good; a 0-d array and one's own constants are the same again."""
    rng = np.random.default_rng(1)
    with pytest.raises(TypeError, match="^`loss`: noisy is another expression when it is called again, .* of `data`"):

        def noisy(y, z):
            return (y - z) ** 2 + rng.standard_normal() * z

        trace(noisy, 1)
    same = lambda y, a, b: np.array(n.exp(a) * y + 0.5 * b, dtype=object)  # noqa: E731
    assert value(same, 3.0) == pytest.approx(math.exp(A) * 3.0 + 0.5 * B, rel=1e-13)


def test_values_of_two_expressions_are_not_mixed():
    kept = []
    trace(lambda z: kept.append(z) or z, 0, 1)
    with pytest.raises(TypeError, match="another expression"):
        trace(lambda z: z + kept[0], 0, 1)


def test_signatures_with_defaults_and_any_number_of_arguments():
    assert trace(lambda y, z, scale=2.0: z * scale, 1)[1] == 1
    assert trace(lambda *values: values[0] * values[2], 1, 2)[1] == 2


def differences(nodes, point, h=1e-4):
    """Derivatives by the first functional, by differences of fourth order."""
    own = Tape(nodes)
    move = lambda s: own(np.zeros((0, 1)), np.array([[point[0] + s], [point[1]]]))[:, 0]  # noqa: E731
    return (8.0 * (move(h) - move(-h)) - (move(2 * h) - move(-2 * h))) / (12.0 * h)


def test_derivatives_of_what_functions_are_combined_to():
    for loss in (
        lambda a, b: (a * b - 2.0) ** 3 / (1.0 + a**2),
        lambda a, b: a**1.7 * b**-0.5 + a**b,
        lambda a, b: n.exp(-a) * n.exp(a * b) * n.log(a + b),
        lambda a, b: n.softplus(a - b) + n.logaddexp(a, n.log1mexp(b)),
        lambda a, b: n.where(a * 0.0 + 1.0 > 0.0, a**3 * b, b),
    ):
        node, _ = trace(loss, 0, 2)
        first = node.derivative(0)
        chain = [node, first, first.derivative(1), first.derivative(0), node.derivative(1)]
        slopes = [part.derivative(0) for part in chain]
        point = (0.8, 1.4)
        found = Tape(slopes)(np.zeros((0, 1)), np.array(point).reshape(2, 1))[:, 0]
        assert np.allclose(found, differences(chain, point), rtol=1e-7, atol=1e-8)
        assert chain[2] is node.derivative(0).derivative(1)
        mixed = Tape([chain[2], node.derivative(1).derivative(0)])(np.zeros((0, 1)), np.array(point).reshape(2, 1))
        assert mixed[0, 0] == pytest.approx(mixed[1, 0], rel=1e-12)


def test_a_branch_that_is_not_taken_does_not_count():
    node, _ = trace(lambda y, z: n.where(y > 0, y * n.log(z), 0.0), 1, 1)
    nodes = [node, node.derivative(0)]
    found = Tape(nodes)(np.array([[0.0, 2.0]]), np.array([[-1.0, 3.0]]))
    assert np.allclose(found, [[0.0, 2.0 * math.log(3.0)], [0.0, 2.0 / 3.0]])


@pytest.mark.parametrize(
    "number, power, value",
    [(-2.0, 3, -8.0), (-2.0, -1, -0.5), (4.0, 0.5, 2.0), (0.0, 0.5, 0.0), (0.0, -1, None), (-2.0, 0.5, None)],
)
def test_powers_of_numbers_are_numbers_where_there_are_such(number, power, value):
    """Others are left to where the expression is evaluated, as on the side of a `where` that is not looked at."""
    graph = Graph()
    found = graph.product([(graph.node(number), power)])
    assert (found.kind, found.args) == (n.CONSTANT, value) if value is not None else found.kind == n.PRODUCT
