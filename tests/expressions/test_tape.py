"""Tapes against direct evaluation, enclosures against values at points within, special functions against SciPy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special as scipy_special

from pdmp.expressions import nodes as n
from pdmp.expressions import special, tape
from pdmp.expressions.nodes import Graph
from pdmp.expressions.tape import NAMES, OPERATIONS, Tape, enclosure_of, interval_power, times, value_of
from pdmp.native import vectors

pytestmark = [pytest.mark.exact, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

POSITIVE = {"log", "lgamma", "psi0", "psi1", "psi2", "psi3", "log1mexp", "reciprocal_expm1", *n.CHAINS[-1]}
#: Where the functions have extremes or poles, or change how they are computed.
PLACES = (-30.0, -20.0, -8.0, -3.1443, -2.2924, -1.31696, -1.0, -0.84263, 0.0, 0.84263, 1.0, 1.00237, 1.02889, 1.31696,
          1.46163, 2.2924, 3.1443, 10.0, 12.0, 30.0, math.pi / 2, math.pi, -math.pi / 2)  # fmt: skip


def boxes(rng, positive):
    for place in PLACES:
        for width in (1e-9, 1e-4, 0.1, 3.0):
            left = rng.uniform()
            yield place - left * width, place + (1.0 - left) * width
    for size in (1e-6, 1.0, 30.0, 600.0):
        for width in (0.0, 1e-12, 1e-3, 1.0, 10.0):
            low = size * rng.uniform(-1.0, 1.0)
            yield low, low + width * size
            if positive:
                yield abs(low), abs(low) + width * size


def enclosed(nodes, low, high, data=(), centre=None, square=None, radius=math.inf, affine=False):
    """Enclosures (results, 2) of nodes, or of a tape of them, over a box."""
    own, m = nodes if isinstance(nodes, Tape) else Tape(nodes, affine=affine), len(low)
    first, last = own.room(1), own.room(1)
    column = lambda values: np.array(values, float).reshape(-1, 1)  # noqa: E731
    square = np.zeros((m, m, 1)) if square is None else np.asarray(square, float).reshape(m, m, 1)
    tape.enclose(
        own.code, own.number, own.fixed, 1, column(data), column(low), column(high),
        column(low if centre is None else centre), square, radius, first, last,
    )  # fmt: skip
    return np.stack([first[own.results, 0], last[own.results, 0]], axis=1)


@pytest.mark.parametrize("name", NAMES)
def test_values_within_a_box_are_in_the_enclosure(name):
    rng, operation, finite = np.random.default_rng(NAMES.index(name)), OPERATIONS[name], 0
    for a, b in boxes(rng, name in POSITIVE):
        low, high = enclosure_of(operation, a, b)
        finite += -math.inf < low and high < math.inf
        for x in (a, b, *np.clip(np.linspace(a, b, 41), a, b).tolist(), *rng.uniform(a, b, 10).tolist()):
            value = value_of(operation, x)
            assert math.isnan(value) or math.isnan(low) or math.isnan(high) or low <= value <= high, (a, b, x)
    assert finite > 30 or name == "kink"


@pytest.mark.parametrize("name", NAMES)
def test_lanes_are_what_each_of_them_is_alone(name):
    """Also where some have other formulas than the rest, or no value."""
    code = np.array([[tape.TAKE, 0, 0, 0, 0], [OPERATIONS[name], 1, 0, 0, 0]])
    for values in ([0.2, 0.9, 30.0, 800.0], [0.71, 2.0, 5.0, 600.0], [-3.0, -900.0, 0.0, math.nan], [3.0, math.nan]):
        room = np.zeros((2, len(values)))
        tape.evaluate(code, np.zeros(2), 0, 2, len(values), np.zeros((0, 1)), np.array([values]), room)
        alone = [value_of(OPERATIONS[name], value) for value in values]
        np.testing.assert_allclose(room[1], alone, rtol=1e-15, atol=0.0)


def test_logarithms_without_a_call():
    """From -1/2 to 1, and of the smallest numbers."""
    small = np.logspace(-300, -1, 60)
    t = np.concatenate([np.linspace(-0.5, 1.0, 501), small, -small])
    np.testing.assert_allclose([vectors.log1p(x) for x in t.tolist()], np.log1p(t), rtol=1e-14, atol=0.0)


@pytest.mark.parametrize("name", NAMES)
def test_infinite_and_unknown_ends_make_no_finite_claim_that_is_false(name):
    operation = OPERATIONS[name]
    for a, b in ((-math.inf, 1.0), (1.0, math.inf), (-math.inf, math.inf), (700.0, 720.0), (-720.0, -700.0)):
        low, high = enclosure_of(operation, a, b)
        for x in np.linspace(max(a, -2000.0), min(b, 2000.0), 201).tolist():
            value = value_of(operation, x)
            assert math.isnan(value) or not value < low and not value > high, (a, b, x)
    assert enclosure_of(operation, math.nan, 1.0) == (-math.inf, math.inf)
    assert enclosure_of(operation, 0.5, math.nan) == (-math.inf, math.inf)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_out_waves_may_be_anything(name):
    for a, b in ((1e18, 1e18 + 1e3), (0.0, 1e300), (-1e300, 1e300), (-math.inf, 0.0)):
        low, high = enclosure_of(OPERATIONS[name], a, b)
        assert low <= -1.0 and high >= 1.0


@pytest.mark.parametrize("name", ["expit2", "expit3", "expit4"])
def test_rounding_errors_near_zeros_are_within(name):
    """There the values are small differences: their errors are relative to what is subtracted."""
    zero = math.log(2.0 + math.sqrt(3.0)) if name == "expit3" else 0.0
    for shift in (1e-13, 1e-11, 1e-9, -1e-10, 3e-7):
        z = zero + shift
        low, high = enclosure_of(OPERATIONS[name], z, z)
        if name == "expit3":  # q (1 - 6 q), q being 1/6 at the zero
            assert high - low >= 1e-16
        else:  # odd functions, linear up to terms of third order
            exact = (-0.125 if name == "expit2" else 0.25) * z
            assert low - abs(z) ** 3 <= exact <= high + abs(z) ** 3, shift


def test_exponentials_that_overflow_have_no_upper_bound():
    low, high = enclosure_of(tape.EXP, 700.0, 708.5)
    assert 1e303 < low < math.exp(700.0) and high == math.inf
    assert enclosure_of(tape.EXP, 800.0, 900.0)[1] == math.inf
    low, high = enclosure_of(tape.EXP, -1e5, -800.0)
    assert low <= 0.0 < high <= 1e-299


@pytest.mark.parametrize("power", [-5, -4, -3, -2, -1, 2, 3, 4, 7, 16])
def test_whole_powers_are_enclosed_exactly(power):
    rng = np.random.default_rng(power + 9)
    for _ in range(60):
        a, b = sorted((rng.standard_normal(2) * 10.0 ** rng.integers(-6, 6)).tolist())
        low, high = interval_power(a, b, power)
        for x in (a, b, 0.0, rng.uniform(a, b)):
            if a <= x <= b and (x != 0.0 or power > 0):
                exact = Fraction(x) ** power
                assert (low == -math.inf or Fraction(low) < exact or exact == low == 0) and (
                    high == math.inf or exact < Fraction(high)
                )
        if not a <= 0.0 <= b:
            ends = [a**power, b**power]
            assert low == pytest.approx(min(ends), rel=1e-13) and high == pytest.approx(max(ends), rel=1e-13)


def test_powers_of_what_is_unknown_are_unknown():
    for a, b in ((-math.inf, math.nan), (math.nan, math.inf), (1.0, math.nan)):
        for power in (-2, -1, 2, 3):
            low, high = interval_power(a, b, power)
            assert low == -math.inf
            assert high == math.inf
    graph = Graph()
    low, high = enclosed([graph.make(n.VARIABLE, 0) ** 1.5], [1.0], [math.nan])[0]
    assert not high < math.inf


@pytest.mark.parametrize("power", [0.5, 1.5, -0.5, -2.7])
def test_real_powers_are_enclosed(power):
    graph = Graph()
    node, rng = graph.make(n.VARIABLE, 0) ** power, np.random.default_rng(3)
    for a, b in [(0.0, 2.0), (1e-9, 1e-3), (0.4, 0.5), (3.0, 1e4), (-1.0, 2.0)]:
        low, high = enclosed([node], [a], [b])[0]
        points = rng.uniform(max(a, 0.0), b, 50)
        assert np.all(low <= points**power) and np.all(points**power <= high)
        assert (high < math.inf) == (a > 0.0 or a == 0.0 and power > 0.0)


def test_products_with_nought_and_infinities():
    assert times(0.0, 0.0, -math.inf, math.inf) == (-math.inf, math.inf)
    assert times(0.0, 1.0, 2.0, math.inf) == (-math.inf, math.inf)
    assert times(1.0, 2.0, 3.0, math.inf)[1] == math.inf
    low, high = times(-2.0, 3.0, -5.0, 7.0)
    assert low == pytest.approx(-15.0) and low < -15.0 and high == pytest.approx(21.0) and high > 21.0
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b, c, d = (rng.standard_normal(4) * 10.0 ** rng.integers(-8, 8, 4)).tolist()
        (a, b), (c, d) = sorted((a, b)), sorted((c, d))
        low, high = times(a, b, c, d)
        exact = [Fraction(p) * Fraction(q) for p in (a, b) for q in (c, d)]
        assert Fraction(low) < min(exact) and max(exact) < Fraction(high)
        assert high - low <= float(max(exact) - min(exact)) * (1.0 + 1e-14) + 2e-15 * max(map(abs, exact))


def test_sums_and_multiples_are_rounded_outward():
    """Seen exactly: the rounded value is often on the wrong side, and the enclosure never."""
    graph, rng, wrong = Graph(), np.random.default_rng(1), 0
    x, y = (graph.make(n.VARIABLE, k) for k in range(2))
    for _ in range(40):
        c, d, shift = (rng.standard_normal(3) * 10.0 ** rng.integers(-3, 3, 3)).tolist()
        for node, exact in (
            (c * x, lambda a, b, c=c, d=d, shift=shift: Fraction(c) * Fraction(a)),
            (x + d * y, lambda a, b, c=c, d=d, shift=shift: Fraction(a) + Fraction(d) * Fraction(b)),
            (x + shift, lambda a, b, c=c, d=d, shift=shift: Fraction(a) + Fraction(shift)),
            (x * y, lambda a, b: Fraction(a) * Fraction(b)),
            (x**3, lambda a, b: Fraction(a) ** 3),
        ):
            low = (rng.standard_normal(2) * 10.0 ** rng.integers(-5, 5, 2)).tolist()
            high = [low[0] + rng.choice([0.0, 1e-8, 2.0]), low[1] + rng.choice([0.0, 1.0])]
            ends = [exact(a, b) for a in (low[0], high[0]) for b in (low[1], high[1])]
            first, last = enclosed([node], low, high)[0].tolist()
            assert Fraction(first) < min(ends) and max(ends) < Fraction(last)
            wrong += Fraction(float(min(ends))) > min(ends)
    assert wrong > 20


def test_a_sum_of_functionals_is_known_within_an_ellipsoid():
    """c·η over the ellipsoid is narrower than over its box, and what is in the ellipsoid is in the enclosure."""
    rng, graph = np.random.default_rng(5), Graph()
    y, (x, z) = graph.make(n.DATA, 0), (graph.make(n.VARIABLE, k) for k in range(2))
    for node, c in (
        (x - z, (1.0, -1.0)),
        (2.0 * x + 3.0 * z + y - 1.0, (2.0, 3.0)),
        (2.0 * x + 3.0 * z - 1.0, (2.0, 3.0)),
    ):
        for correlation in (0.0, 0.9, -0.99, 1.0 - 1e-12, 1.0):
            square = np.array([[1.0, 2.0 * correlation], [2.0 * correlation, 4.0]])
            centre, radius = np.array([0.3, -0.7]), 1.5
            half = radius * np.sqrt(np.diag(square))
            affine = enclosed([node], centre - half, centre + half, [0.4], centre, square, radius, affine=True)[0]
            box = enclosed([node], centre - half, centre + half, [0.4])[0]
            root = np.array([[1.0, 0.0], [2.0 * correlation, 2.0 * math.sqrt(max(1.0 - correlation**2, 0.0))]])
            u = rng.standard_normal((2, 300))
            points = centre[:, None] + root @ (radius * u / np.sqrt((u**2).sum(0)))
            values = Tape([node])(np.full((1, 300), 0.4), points)[0]
            # The points' own rounding errors are of this size.
            assert affine[0] - 1e-15 <= values.min() and values.max() <= affine[1] + 1e-15
            exact = radius * math.sqrt(max(np.dot(c, square @ c), 0.0))
            assert (affine[1] - affine[0]) / 2.0 == pytest.approx(exact, rel=1e-6, abs=1e-6)
            assert affine[0] >= box[0] and affine[1] <= box[1]


def test_a_difference_that_cancels_is_not_taken_for_nought():
    """c·Sc is a small difference of large numbers: its rounding error is of their size."""
    graph = Graph()
    x, z = (graph.make(n.VARIABLE, k) for k in range(2))
    a = 1.0 + 2.0**-27  # of S = (1, a)(1, a)ᵀ, the last entry of which is rounded
    square = np.array([[1.0, a], [a, a * a]])
    true = a - 1.0
    low, high = enclosed([x - z], [-9.0, -9.0], [9.0, 9.0], (), [0.0, 0.0], square, 1.0, affine=True)[0]
    assert low <= -true and high >= true


# -- tapes ----------------------------------------------------------------------------------------------------------


@st.composite
def expressions(draw):
    """Results of a random graph, of two data and three functionals, and the same as functions of numbers."""
    graph = Graph()
    found = [(graph.make(n.DATA, k), lambda d, e, k=k: d[k]) for k in range(2)]
    found += [(graph.make(n.VARIABLE, k), lambda d, e, k=k: e[k]) for k in range(3)]
    for _ in range(draw(st.integers(1, 14))):
        (a, f), (b, g) = (draw(st.sampled_from(found)) for _ in range(2))
        c = draw(st.sampled_from([-2.0, -1.0, 0.5, 3.0]))
        found.append(
            draw(
                st.sampled_from(
                    [
                        (a + c * b, lambda d, e, f=f, g=g, c=c: f(d, e) + c * g(d, e)),
                        (a * b, lambda d, e, f=f, g=g: f(d, e) * g(d, e)),
                        (a + c, lambda d, e, f=f, c=c: f(d, e) + c),
                        (n.expit(a), lambda d, e, f=f: scipy_special.expit(f(d, e))),
                        (n.softplus(a), lambda d, e, f=f: np.logaddexp(0.0, f(d, e))),
                        (n.sin(a), lambda d, e, f=f: np.sin(f(d, e))),
                        (a**2, lambda d, e, f=f: f(d, e) ** 2),
                        (abs(a), lambda d, e, f=f: abs(f(d, e))),
                        (
                            n.where(graph.make(n.DATA, 0) > 0.0, a, b),
                            lambda d, e, f=f, g=g: np.where(d[0] > 0.0, f(d, e), g(d, e)),
                        ),
                        (n.exp(c * n.expit(a)), lambda d, e, f=f, c=c: np.exp(c * scipy_special.expit(f(d, e)))),
                    ]
                )
            )
        )
    return draw(st.lists(st.sampled_from(found), min_size=1, max_size=4))


@settings(max_examples=20, deadline=None, derandomize=True, database=None)
@given(expressions())
def test_a_tape_is_what_it_is_made_of_and_its_enclosure_contains_it(results):
    rng = np.random.default_rng(0)
    data, eta = rng.standard_normal((2, 7)), rng.standard_normal((3, 7))
    nodes = [node for node, _ in results]
    own = Tape(nodes)
    expected = np.array([np.broadcast_to(f(data, eta), 7) for _, f in results])
    assert np.allclose(own(data, eta), expected, rtol=1e-9, atol=1e-9)
    assert np.array_equal(Tape(nodes, affine=True)(data, eta), own(data, eta))
    low, high = eta[:, 0] - 0.3, eta[:, 0] + 0.2
    points = rng.uniform(low[:, None], high[:, None], (3, 15))
    ends = enclosed(nodes, low, high, data[:, 0])
    values = own(np.repeat(data[:, :1], 15, axis=1), points)
    # Values have rounding errors themselves, which the enclosure of the exact range need not contain.
    slack = 1e-12 * (1.0 + np.abs(values).max(axis=1))
    assert np.all(~(ends[:, 0] > values.min(axis=1) + slack)) and np.all(~(ends[:, 1] < values.max(axis=1) - slack))


#: Of any number, and of a positive one.
SMOOTH = ("exp", "expm1", "abs", "tanh", "sin", "cos", "expit", "softplus", "erf", "log_ndtr")
OF_POSITIVE = ("log", "log1p", "log1mexp", "lgamma", "digamma", "log_i0", "sqrt")


@st.composite
def losses(draw):
    """A random expression of two data and two functionals, of all primitives."""
    graph = Graph()
    found = [*(graph.make(n.VARIABLE, k) for k in range(2)), *(graph.make(n.DATA, k) for k in range(2))]
    for _ in range(draw(st.integers(2, 7))):
        a, b = draw(st.sampled_from(found)), draw(st.sampled_from(found))
        c = draw(st.sampled_from([-1.5, -1.0, 0.3, 2.0]))
        kind = draw(st.integers(0, 8))
        if kind <= 2:
            name = draw(st.sampled_from(SMOOTH))
            new = abs(c * a) if name == "abs" else getattr(n, name)(c * a)
        elif kind <= 4:
            size = a * a + 0.3 if kind == 3 else n.softplus(a)
            new = getattr(n, draw(st.sampled_from(OF_POSITIVE)))(size)
        elif kind == 5:
            new = a * b
        elif kind == 6:
            new = n.logaddexp(a, b) if draw(st.booleans()) else a / (b * b + 0.5)
        elif kind == 7:
            new = n.where(graph.make(n.DATA, 0) > 0.0, a, c * b)
        else:
            new = a ** draw(st.sampled_from([-1, 2, 3])) if draw(st.booleans()) else (b * b + 0.2) ** 1.3
        found.append(new + c * a)
    return found[-1]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    losses(),
    st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2),
    st.sampled_from([0.0, 1e-6, 0.05, 0.5, 2.0]),
    st.integers(0, 2**16),
)
def test_derivatives_up_to_the_third_never_leave_their_enclosures(loss, centre, reach, seed):
    """In a box, and in the part of it within an ellipsoid around its centre, in which sums of functionals are known."""
    rng, centre = np.random.default_rng(seed), np.array(centre)
    first = [loss.derivative(k) for k in range(2)]
    second = [node.derivative(k) for k, node in ((0, first[0]), (1, first[0]), (1, first[1]))]
    try:
        results = [loss, *first, *second, *(node.derivative(k) for node in second for k in range(2))]
    except TypeError:  # the derivative of a function is not known
        results = [loss, *first, *second]
    data, half = rng.standard_normal(2), reach * rng.uniform(0.2, 1.0, 2)
    root = np.diag(half) @ np.array([[1.0, 0.0], [0.6, 0.8]])  # of S: |ηₖ - centreₖ| <= halfₖ within radius 1
    plain = Tape(results, affine=False)
    boxed = enclosed(plain, centre - half, centre + half, data)
    round_ = enclosed(results, centre - half, centre + half, data, centre, root @ root.T, 1.0, affine=True)
    assert np.all(~(round_[:, 0] < boxed[:, 0])) and np.all(~(round_[:, 1] > boxed[:, 1]))
    directions = rng.standard_normal((20, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sizes = np.r_[np.ones(10), rng.uniform(size=10)][:, None]
    inside = centre + (sizes * directions) @ root.T * (1.0 - 1e-12)
    corners = centre + half * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * rng.choice([1.0, 0.7], (4, 1))
    for points, ends in ((inside, round_), (np.vstack([inside, corners]), boxed)):
        for point in points:
            here = enclosed(plain, point, point, data)  # what the exact values are in
            assert np.all(~(here[:, 1] < ends[:, 0]) & ~(here[:, 0] > ends[:, 1])), (point, here, ends)


def test_what_depends_on_data_alone_comes_first():
    graph = Graph()
    y, x = graph.make(n.DATA, 0), graph.make(n.VARIABLE, 0)
    own = Tape([n.exp(x) * n.lgamma(y + 1.0) + n.log(y)])
    assert own.fixed >= 4
    names = own.code[:, 0].tolist()
    assert tape.LGAMMA in names[: own.fixed] and tape.LOG in names[: own.fixed] and tape.EXP in names[own.fixed :]


def test_what_is_used_several_times_is_computed_once():
    graph = Graph()
    x = node = graph.make(n.VARIABLE, 0)
    for _ in range(6):
        node = n.exp(node) * n.sin(node)
    assert len(Tape([node]).code) == len(Tape([x]).code) + 3 * 6


# -- special functions ----------------------------------------------------------------------------------------------


def test_special_functions_are_those_of_scipy():
    z = np.concatenate([np.linspace(-40.0, 40.0, 161), np.linspace(-1e-3, 1e-3, 7), [-300.0, 300.0]])
    x = np.concatenate([np.logspace(-6, 4, 120), np.linspace(0.5, 13.0, 51)])
    of = lambda f, points: np.array([f(float(t)) for t in points])  # noqa: E731
    assert np.allclose(of(special.expit, z), scipy_special.expit(z), rtol=1e-13, atol=0.0)
    assert np.allclose(of(special.softplus, z), np.logaddexp(0.0, z), rtol=1e-13, atol=0.0)
    assert np.allclose(of(special.log_ndtr, z), scipy_special.log_ndtr(z), rtol=1e-12, atol=1e-300)
    near = z[np.abs(z) < 30.0]
    ratio = np.exp(-0.5 * near**2 - 0.5 * math.log(2.0 * math.pi) - scipy_special.log_ndtr(near))
    assert np.allclose(of(special.mills, near), ratio, rtol=1e-11, atol=0.0)
    for k, f in enumerate((special.psi0, special.psi1, special.psi2, special.psi3)):
        assert np.allclose(of(f, x), scipy_special.polygamma(k, x), rtol=1e-12, atol=1e-13 if k == 0 else 0.0)
    assert np.allclose(of(special.reciprocal_expm1, x), 1.0 / np.expm1(np.minimum(x, 700.0)), rtol=1e-12, atol=1e-300)
    small = x[x < 700.0]
    exact = np.where(small > 0.5, np.log1p(-np.exp(-small)), np.log(-np.expm1(-small)))
    assert np.allclose(of(special.log1mexp, small), exact, rtol=1e-12, atol=0.0)
    assert np.isnan(special.psi0(0.0)) and np.isnan(special.psi3(-0.5))
    # Of an empty interval the chance is 0, and of one that is not known it is not.
    assert special.log1mexp(-1.0) == -math.inf and np.isnan([special.log1mexp(u) for u in (0.0, math.nan)]).all()
    ratio = scipy_special.i1e(x) / scipy_special.i0e(x)
    assert np.allclose(of(special.log_i0, x), np.log(scipy_special.i0e(x)) + x, rtol=1e-12, atol=2e-15)
    assert np.allclose(of(special.bessel1, x), ratio, rtol=1e-13, atol=0.0)
    second = 1.0 - ratio / x - ratio**2
    assert np.allclose(of(special.bessel2, x), second, rtol=1e-9, atol=1e-15)
    third = (ratio / x - second) / x - 2.0 * ratio * second
    assert np.allclose(of(special.bessel3, x), third, rtol=1e-9, atol=1e-9)
    assert special.bessel2(1e3) == pytest.approx(0.5e-6 * (1.0 + 0.5e-3), rel=1e-6)  # 1/(2x²) + 1/(4x³) + …
    assert special.bessel3(1e3) == pytest.approx(-1e-9 * (1.0 + 0.75e-3), rel=1e-5)
    of_0 = [f(0.0) for f in (special.log_i0, special.bessel1, special.bessel2, special.bessel3)]
    assert of_0 == [0.0, 0.0, 0.5, 0.0] and np.isnan(special.log_i0(-1.0)) and np.isnan(special.bessel3(-1.0))
    for k, f in enumerate((special.log_i0, special.bessel1, special.bessel2, special.bessel3)):  # at the change
        assert f(np.nextafter(30.0, 0.0)) == pytest.approx(f(30.0), rel=(1e-14, 1e-14, 1e-11, 1e-9)[k])


@pytest.mark.parametrize("chain", [*n.CHAINS, ("log1mexp", "reciprocal_expm1"), ("sin", "cos"), ("exp", "exp")])
def test_each_function_is_the_derivative_of_the_one_before(chain):
    points = np.linspace(-36.0, 12.0, 97)
    if chain[0] in POSITIVE:
        points = np.linspace(0.3, 30.0, 80)
    for one, derivative in zip(chain, chain[1:], strict=False):
        f = lambda z: value_of(OPERATIONS[one], z)  # noqa: E731, B023
        for z in points.tolist():
            h = 1e-3 * max(1.0, 0.1 * abs(z))
            slope = (8.0 * (f(z + h) - f(z - h)) - (f(z + 2 * h) - f(z - 2 * h))) / (12.0 * h)
            assert slope == pytest.approx(value_of(OPERATIONS[derivative], z), rel=1e-6, abs=1e-9), (derivative, z)


def test_third_derivatives_of_log_ndtr_far_out():
    """Where they are small differences, both forms agree: across the change to the series."""
    for f, place, error in ((special.mills1, -30.0, 1e-9), (special.mills2, -20.0, 1e-7), (special.mills, -8.0, 1e-13)):
        below, above = f(np.nextafter(place, -99.0)), f(place)
        assert below == pytest.approx(above, rel=error)


def test_values_at_the_ends_of_what_is_defined():
    for name, end, value in (("log", 0.0, -math.inf), ("log1p", -1.0, -math.inf), ("expm1", 800.0, math.inf)):
        assert value_of(OPERATIONS[name], end) == value
    for name, beyond in (("log", -0.1), ("log1p", -1.1), ("lgamma", -0.5)):
        assert math.isnan(value_of(OPERATIONS[name], beyond))


def test_an_exponential_is_infinite_where_it_would_be_cut_off():
    """A potential that grows must not seem flat, of one number as of many."""
    assert tape.value_of(tape.EXP, 709.0) == math.inf
    assert tape.value_of(tape.EXP, 700.0) == pytest.approx(math.exp(700.0), rel=1e-12)
