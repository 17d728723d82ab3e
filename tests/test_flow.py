"""Flows: positions, velocities, exact integrals and first passages."""

import math

import numpy as np
import pytest

from pdmp import flow as flows
from pdmp.flow import Elliptic, Linear, Still
from tests.checks import plain

pytestmark = pytest.mark.exact

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def quadrature(f, s):
    """∫₀ˢ f by forty Gauss-Legendre nodes in each third of a radian."""
    parts = max(int(np.ceil(3.0 * s)), 1)
    edges = np.linspace(0.0, s, parts + 1)
    width = s / parts
    t = edges[:-1, None] + 0.5 * width * (1.0 + NODES)
    return 0.5 * width * np.sum(WEIGHTS * f(t))


def test_ellipses_keep_their_energy_and_compose():
    flow = Elliptic([0.7])
    rng = np.random.default_rng(0)
    for x, v, s, t in rng.normal(size=(50, 4)) * [1.0, 1.0, 3.0, 10.0]:
        y, w = flow.position(0, x, v, s), flow.velocity(0, x, v, s)
        assert y == pytest.approx(0.7 + (x - 0.7) * math.cos(s) + v * math.sin(s), abs=1e-14)
        assert w == pytest.approx(v * math.cos(s) - (x - 0.7) * math.sin(s), abs=1e-14)
        assert (y - 0.7) ** 2 + w**2 == pytest.approx((x - 0.7) ** 2 + v**2, rel=1e-14)
        assert flow.position(0, y, w, t) == pytest.approx(flow.position(0, x, v, s + t), abs=1e-13)
        assert flow.velocity(0, y, w, t) == pytest.approx(flow.velocity(0, x, v, s + t), abs=1e-13)
        assert flow.position(0, y, w, -s) == pytest.approx(x, abs=1e-14)
        assert (flow.position(0, x, v, 0.0), flow.velocity(0, x, v, 0.0)) == (x, v)


def test_short_arcs_keep_their_digits():
    flow = Elliptic([1e3])
    s = 1e-9
    moved = flow.position(0, 1e-12, 2.0, s) - 1e-12
    assert moved == pytest.approx(2.0 * s, rel=1e-6, abs=0.0)
    assert moved == pytest.approx(2.0 * s + 1e3 * 0.5 * s * s, rel=1e-13, abs=0.0)


def test_a_coordinate_at_rest_at_zero_stays_there():
    flow = Elliptic([3.0, 0.0])
    for j in range(2):
        assert flow.position(j, 0.0, 0.0, 2.0) == 0.0 and flow.velocity(j, 0.0, 0.0, 2.0) == 0.0
        assert flow.moments(j, 0.0, 0.0, 0.5, 2.0) == (-1.0, 0.5)
    # Beside one that moves: -½ ∫ (y(u) - 1).
    first = flow.moments(1, 0.3, 1.0, 1.0, 2.0)[0]
    assert flow.product(0, 0.0, 0.0, 0.5, 1, 0.3, 1.0, 1.0, 2.0) == pytest.approx(-0.5 * first, rel=1e-14)
    assert flow.position(0, 0.0, 1e-300, 2.0) != 0.0


@pytest.mark.parametrize("s", [1e-6, 1e-3, 0.4, 0.999, 1.001, 3.0, 30.0])
def test_moments_along_an_arc(s):
    flow = Elliptic([0.7, -1.1])
    for x, v, y, w, c, e in np.random.default_rng(1).normal(size=(10, 6)):

        def first(t, x=x, v=v, c=c):
            return 0.7 + (x - 0.7) * np.cos(t) + v * np.sin(t) - c

        def second(t, y=y, w=w, e=e):
            return -1.1 + (y + 1.1) * np.cos(t) + w * np.sin(t) - e

        one, two = flow.moments(0, x, v, c, s)
        assert one == pytest.approx(quadrature(first, s), rel=1e-11, abs=1e-14 * s)
        assert two == pytest.approx(quadrature(lambda t: first(t) ** 2, s), rel=1e-12)
        both = quadrature(lambda t: first(t) * second(t), s)
        assert flow.product(0, x, v, c, 1, y, w, e, s) == pytest.approx(both, rel=1e-11, abs=1e-13 * s)
        assert flow.product(0, x, v, c, 0, x, v, c, s) == two


def test_short_arcs_keep_the_digits_of_their_integrals():
    """At x = c the integrals of the path and of its square begin with v s²/2 and v² s³/3."""
    flow, s, v = Elliptic([5.0]), 1e-4, 2.0
    first, second = flow.moments(0, 1.0, v, 1.0, s)
    assert first == pytest.approx(v * s**2 / 2 + 4.0 * s**3 / 6 - v * s**4 / 24, rel=1e-13, abs=0.0)
    leading = v**2 * s**3 / 3 + v * 4.0 * s**4 / 4 + 16.0 * s**5 / 20 - v**2 * s**5 / 15
    assert second == pytest.approx(leading, rel=1e-10, abs=0.0)


def test_s_minus_sin_s():
    excess = plain(flows.angle_excess)
    for s in (-2.0, 0.0, 1e-8, 0.1, 0.7, 0.9999999, 1.0, 6.0):
        series = sum((-1) ** k * s ** (2 * k + 3) / math.factorial(2 * k + 3) for k in range(25))
        assert excess(s) == pytest.approx(series, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("flow, speed", [(Linear(), 1.0), (Still(), 0.0)], ids=["line", "still"])
def test_integrals_along_a_line_and_of_what_stands_still(flow, speed):
    """All of them are of cubics at most, for which the quadrature is exact."""
    for x, v, y, w, c, e, s in np.random.default_rng(2).normal(size=(10, 7)):
        s = abs(s) + 0.1

        def first(t, x=x, v=v, c=c):
            return x + speed * v * t - c + 0.0 * t

        def second(t, y=y, w=w, e=e):
            return y + speed * w * t - e + 0.0 * t

        assert flow.position(1, x, v, s) == pytest.approx(first(s) + c) and flow.velocity(1, x, v, s) == v
        found = flow.moments(1, x, v, c, s)
        assert found == pytest.approx((quadrature(first, s), quadrature(lambda t: first(t) ** 2, s)), rel=1e-11)
        both = quadrature(lambda t: first(t) * second(t), s)
        assert flow.product(0, x, v, c, 1, y, w, e, s) == pytest.approx(both, rel=1e-11, abs=1e-13)


def test_arcs_bound_how_far_a_flow_goes():
    """x(t + u) = x + v p - b q, and v(t + u) = v (1 - q) - r b p; p and q grow up to the longest arc."""
    for flow, longest in ((Linear(), math.inf), (Elliptic([0.7, -1.1]), 0.5 * math.pi)):
        assert flow.longest() == longest
        x, v, before = 0.4, -1.3, (0.0, 0.0)
        for s in (0.1, 0.8, 1.5):
            p, q, r = flow.arc(s)
            b = flow.bend(1, x, v)
            assert flow.position(1, x, v, s) == pytest.approx(x + v * p - b * q, rel=1e-13)
            assert flow.velocity(1, x, v, s) == pytest.approx(v * (1.0 - q) - r * b * p, rel=1e-13)
            assert p > before[0] and q >= before[1] and (longest == math.inf or q > before[1])
            before = p, q
        assert [flow.around(j) for j in (0, 1)] == ([0.0, 0.0] if longest == math.inf else [0.7, -1.1])
    assert Elliptic([0.0]).arc(1.0)[0] >= math.sin(1.0)  # rounded up, as bounds are made of it
    assert not any(flow.at_wall(0, 0.0) for flow in (Linear(), Still(), Elliptic([0.0])))


def test_first_passages():
    line = Linear()
    assert line.first_passage(1.0, 0.5, 3.0) == 4.0 and line.first_passage(3.0, 0.5, 3.0) == 0.0
    assert line.first_passage(3.0 + 1e-12, 0.5, 3.0) == 0.0  # beyond it by rounding
    assert line.first_passage(1.0, 0.0, 3.0) == math.inf == line.first_passage(1.0, -2.0, 3.0)
    ellipse, rng = Elliptic([5.0]), np.random.default_rng(3)  # whose centre does not count
    t = np.linspace(0.0, 2.0 * math.pi, 20_001)
    for y, w, above in rng.normal(size=(40, 3)):
        level = y + abs(above)
        path = y * np.cos(t) + w * np.sin(t)
        up = np.flatnonzero((path[:-1] < level) & (path[1:] >= level))
        wait = ellipse.first_passage(y, w, level)
        assert wait == (pytest.approx(t[up[0]], abs=1e-3) if len(up) else math.inf)
    assert ellipse.first_passage(1.0, 2.0, 1.0) == 0.0 and ellipse.first_passage(1.0, 0.0, 1.0) == math.inf
    down = ellipse.first_passage(1.0, -2.0, 1.0)  # it comes back to where it is
    assert math.cos(down) - 2.0 * math.sin(down) == pytest.approx(1.0) and math.pi < down < 2.0 * math.pi
    assert ellipse.first_passage(-1.0, 2.0, -9.0) == 0.0  # below all of the path, by rounding: on its way up
