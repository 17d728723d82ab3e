"""First arrivals, bounds on rates, the regression of SBPS, and the heap of clocks: identities, to rounding."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate

import pdmp
from pdmp.engine.scheduler import reschedule
from pdmp.process import HORIZON, VIOLATIONS
from pdmp.thinning import affine, grid, regression
from pdmp.thinning.piecewise import segment_arrival
from tests.checks import plain, plain_only
from tests.thinning.helpers_thinning import Draws

pytestmark = pytest.mark.exact


# ---------------------------------------------------------------------------------------------------------------
# Affine and piecewise-linear intensities


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("j", range(3))
def test_a_rate_or_a_slope_that_is_not_finite_is_seen_whichever_it_is(j, wrong):
    good, bad = np.array([1.0, -0.5, 0.3]), np.array([1.0, -0.5, 0.3])
    bad[j] = wrong
    rng = np.random.default_rng(1)
    time, bound = affine.affine_proposal(bad, good, 2.0, rng)
    assert math.isnan(time) and bound == HORIZON
    time, bound = affine.affine_proposal(good, bad, 2.0, rng)
    assert time == 2.0 and math.isnan(bound)
    assert math.isnan(grid.total_rate(bad)) and grid.total_rate(good) == 1.3


def integral_of_affine(a, b, t):
    """∫₀ᵗ max(0, a + b s) ds, from the zero of the line."""

    def antiderivative(s):
        return a * s + 0.5 * b * s * s

    if b == 0.0:
        return max(a, 0.0) * t
    zero = -a / b
    if b > 0.0:
        start = max(zero, 0.0)
        return antiderivative(t) - antiderivative(start) if t > start else 0.0
    end = min(t, zero)
    return antiderivative(end) if zero > 0.0 else 0.0


def affine_cases():
    rng = np.random.default_rng(1)
    for _ in range(500):
        a, b = rng.standard_normal(2) * 10.0 ** rng.uniform(-3, 3, 2)
        e = rng.standard_exponential()
        yield from (
            (a, b, e),
            (a, 0.0, e),
            (0.0, b, e),
            (abs(a), abs(b), e),
            (-abs(a), abs(b), e),
            (abs(a), -abs(b), e),
        )


def test_affine_arrivals_integrate_to_their_exponential():
    finite = 0
    for a, b, e in affine_cases():
        t = affine.first_arrival(a, b, e)
        if t < math.inf:
            finite += 1
            # cancellation in a t + b t² / 2: relative to the larger of the two
            scale = max(e, abs(a * t) + 0.5 * abs(b) * t * t) if a * b < 0.0 else e
            assert abs(integral_of_affine(a, b, t) - e) <= 1e-12 * scale, (a, b, e)
    assert finite > 1500


def test_affine_arrivals_never_come_when_the_total_intensity_is_too_small():
    for a, b, e in affine_cases():
        total = math.inf if b > 0.0 or (b == 0.0 and a > 0.0) else 0.5 * a * a / -b if a > 0.0 else 0.0
        assert (affine.first_arrival(a, b, e) == math.inf) == (e > total), (a, b, e)
    # P(never) = exp(-a² / (2 |b|)): the threshold of the exponential
    assert affine.first_arrival(2.0, -1.0, 2.0 * (1.0 - 1e-12)) < 2.0
    assert affine.first_arrival(2.0, -1.0, 2.0 * (1.0 + 1e-12)) == math.inf


def test_segments_agree_with_the_affine_formula_and_with_their_integral():
    rng = np.random.default_rng(2)
    for left, right in [*rng.exponential(size=(300, 2)), (0.0, 1.0), (1.0, 0.0), (2.0, 2.0)]:
        width, slope = rng.exponential(), 0.0
        slope = (right - left) / width
        total = 0.5 * (left + right) * width
        times = []
        for e in total * np.linspace(0.01, 0.99, 9):
            t = segment_arrival(left, right, width, e)
            times.append(t)
            assert 0.0 <= t <= width
            assert abs(left * t + 0.5 * slope * t * t - e) <= 1e-12 * total
            if abs(slope) > 1e-6:
                assert t == pytest.approx(affine.first_arrival(left, slope, e), rel=1e-9, abs=1e-12)
        assert np.all(np.diff(times) > 0.0)
        assert segment_arrival(left, right, width, total * (1.0 + 1e-9) + 1e-300) == math.inf
    assert segment_arrival(0.0, 0.0, 0.7, 0.0) == 0.7  # at its end at last, though nothing is to be waited for


# ---------------------------------------------------------------------------------------------------------------
# The adaptive grid

#: Tests that hand the methods stand-ins for process and generator, which compiled helpers do not take.


class Rates:
    """Signed rates that are known functions of time, in place of a process."""

    def __init__(self, *functions):
        self.functions = functions

    def signed_rates(self, state, now, rng, out):
        for j, f in enumerate(self.functions):
            out[j] = f(now)

    def state(self, bound, width, violations=0, other=math.inf):
        counts = np.zeros(20, np.int64)
        counts[VIOLATIONS] = violations
        memory = SimpleNamespace(bound=bound.memory(len(self.functions), 1, width))
        return SimpleNamespace(memory=memory, counts=counts, keys=np.array([0.0, other]), heap=np.array([0, 1]))


def propose(rates, now, width, e, safety=6.0, violations=0, other=math.inf):
    bound = grid.Grid(safety)
    state = rates.state(bound, width, violations, other)
    time, level = bound.native.propose(rates, state, 0, now, Draws(e))
    return time, level, state.memory.bound


@plain_only
@pytest.mark.parametrize("a, b", [(1.0, 2.0), (3.0, -1.0), (0.5, 0.0)])
def test_the_grid_bounds_an_affine_rate_by_itself(a, b):
    rates = Rates(lambda t: a + b * (t - 1.0))
    for e in (0.01, 0.2, 0.6):
        time, bound, _ = propose(rates, 1.0, 2.0, e)
        s = affine.first_arrival(a, b, e)
        if s < 2.0:
            assert time - 1.0 == pytest.approx(s, rel=1e-12)
            assert bound == pytest.approx(a + b * s, rel=1e-12)
        else:
            assert (time, bound) == (3.0, HORIZON)


@plain_only
def test_the_grid_adds_the_positive_parts_of_its_components():
    rates = Rates(lambda t: 2.0, lambda t: -5.0)
    time, bound, _ = propose(rates, 0.0, 1.0, 0.5)
    assert (time, bound) == (pytest.approx(0.25), pytest.approx(2.0))


@plain_only
@pytest.mark.parametrize("curve", [-3.0, 2.0])
def test_the_grid_covers_a_parabola_with_the_least_room(curve):
    """With safety 1 the bound touches a concave parabola in the middle of the longer chord, and is below none."""
    width = 0.6
    rates = Rates(lambda t: 2.0 + 6.0 * t + curve * t * t)
    points = [0.0, 0.3 * width, width]
    nodes = np.array([rates.functions[0](t) for t in points])
    room = abs(curve) * (0.7 * width) ** 2 / 4.0
    gaps, times = [], []
    for e in np.linspace(1e-6, 1.5, 400):
        time, bound, _ = propose(rates, 0.0, width, e, safety=1.0)
        if bound == HORIZON:
            continue
        expected = np.interp(time, points, nodes + room)
        assert bound == pytest.approx(expected, rel=1e-12)
        knots = np.concatenate([[0.0], points[1:2] if time > points[1] else [], [time]])
        levels = np.interp(knots, points, nodes + room)
        assert integrate.trapezoid(levels, knots) == pytest.approx(e, rel=1e-10)
        gaps.append(bound - rates.functions[0](time))
        times.append(time)
    assert np.all(np.diff(times) > 0.0) and len(times) > 100
    assert min(gaps) >= -1e-12
    assert (min(gaps) < 1e-3) == (curve < 0.0)


@plain_only
@pytest.mark.parametrize("curve", [-3.0, 2.0])
def test_safety_multiplies_the_room_for_curvature(curve):
    rates = Rates(lambda t: 20.0 + 20.0 * t + curve * t * t)
    for safety in (1.0, 3.0, 50.0):
        _, bound, _ = propose(rates, 0.0, 0.6, 1e-9, safety=safety)
        room = safety * abs(curve) * (0.7 * 0.6) ** 2 / 4.0
        assert bound == pytest.approx(20.0 + room, abs=1e-6)


@plain_only
def test_a_cell_without_arrival_is_a_horizon_and_widens_the_next():
    rates = Rates(lambda t: -1.0)
    time, bound, memory = propose(rates, 2.0, 0.5, 1e-9)
    assert (time, bound) == (2.5, HORIZON)
    assert memory.width[0] > 0.5
    *_, memory = propose(Rates(lambda t: 100.0), 2.0, 0.5, 1e-3)
    assert memory.width[0] < 0.5


@plain_only
def test_a_violation_narrows_the_cells_once():
    rates = Rates(lambda t: -1.0)
    *_, without = propose(rates, 0.0, 0.5, 1.0)
    *_, after = propose(rates, 0.0, 0.5, 1.0, violations=3)
    assert after.width[0] == pytest.approx(0.7 * without.width[0])
    assert after.violations_seen[0] == 3.0


@plain_only
def test_a_rate_that_is_not_a_number_is_reported():
    time, *_ = propose(Rates(lambda t: math.nan), 0.0, 0.5, 1.0)
    assert math.isnan(time)


# ---------------------------------------------------------------------------------------------------------------
# The regression of SBPS


def observations(s, g, c2):
    found = regression.new_line()[0]
    for row in zip(s, g, c2, strict=True):
        regression.observe(found, *row)
    return found


def dense_fit(s, g, c2, mean, variance):
    X, W = np.stack([np.ones_like(s), s], axis=1), np.diag(1.0 / c2)
    covariance = np.linalg.inv(X.T @ W @ X + np.diag([0.0, 1.0 / variance]))
    return covariance @ (X.T @ W @ g + np.array([0.0, mean / variance])), covariance


def some_observations(n, seed=3):
    rng = np.random.default_rng(seed + n)
    s = np.sort(rng.exponential(size=n))
    return s, 1.0 + 2.0 * s + rng.standard_normal(n), rng.exponential(size=n) + 0.1


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("variance", [0.3, 1e8])
def test_the_sums_give_the_dense_normal_equations(n, variance):
    s, g, c2 = some_observations(n)
    found = observations(s, g, c2)
    slope = regression.fit(found, 0.7, variance)
    coefficients, covariance = dense_fit(s, g, c2, 0.7, variance)
    np.testing.assert_allclose(list(found)[7:9], coefficients, rtol=1e-9)
    np.testing.assert_allclose(list(found)[9:], covariance[np.triu_indices(2)], rtol=1e-9)
    assert slope == found["slope"]
    assert np.all(np.linalg.eigvalsh(covariance) > 0.0)
    assert found["intercept_variance"] * found["slope_variance"] >= found["covariance"] ** 2
    if variance > 1e6:  # weighted least squares
        np.testing.assert_allclose(np.polyfit(s, g, 1, w=1.0 / np.sqrt(c2)), coefficients[::-1], rtol=1e-6)


def test_one_observation_gives_itself_and_the_prior():
    found = observations([0.0], [-1.5], [0.4])
    regression.fit(found, 2.0, 0.09)
    np.testing.assert_allclose(list(found)[7:], [-1.5, 2.0, 0.4, 0.0, 0.09], rtol=1e-14, atol=0.0)


def test_a_given_slope_refits_the_intercept():
    s, g, c2 = some_observations(6)
    found = observations(s, g, c2)
    regression.fit(found, 0.0, 1.0)
    regression.with_slope(found, 0.25)
    assert found["slope"] == 0.25
    assert found["intercept"] == pytest.approx(np.average(g - 0.25 * s, weights=1.0 / c2))


def test_forgetting_leaves_nothing():
    found = observations(*some_observations(4))
    regression.forget(found)
    assert not any(list(found)[:7])


def test_the_spread_is_that_of_a_new_observation_with_the_latest_noise():
    s, g, c2 = some_observations(5)
    found = observations(s, g, c2)
    regression.fit(found, 0.0, 2.0)
    _, covariance = dense_fit(s, g, c2, 0.0, 2.0)
    for x in (0.0, 0.5, 3.0):
        row = np.array([1.0, x])
        rho = math.sqrt(row @ covariance @ row + c2[-1])
        assert regression.spread(found, x, c2[-1]) == pytest.approx(rho)
        expected = max(0.0, found["intercept"] + found["slope"] * x + 3.0 * rho)
        assert plain(regression.bound_at)(found, 3.0, x) == pytest.approx(expected)


@pytest.mark.parametrize("mean", [2.0, -4.0])
def test_the_predicted_bound_is_convex_and_not_negative(mean):
    found = observations(*some_observations(3))
    regression.fit(found, mean, 0.5)
    x = np.linspace(0.0, 8.0, 400)
    squares = np.array([regression.spread(found, s, 0.3) ** 2 for s in x])
    assert np.all(np.diff(squares, 2) > 0.0)
    bounds = np.array([regression.bound_at(found, 3.0, s) for s in x])
    assert np.all(bounds >= 0.0)
    assert np.all(np.diff(bounds, 2) >= -1e-10)


@pytest.mark.parametrize("step", [0.05, 0.5])
def test_arrivals_of_the_prediction_are_those_of_its_interpolation(step):
    found = observations(*some_observations(3))
    regression.fit(found, -3.0, 0.2)
    s, cap = 0.4, 3.0
    knots = np.append(np.arange(0.0, cap, step), cap)
    levels = np.array([regression.bound_at(found, 3.0, s + r) for r in knots])
    dense = np.linspace(0.0, cap, 200)
    above = np.interp(dense, knots, levels) - [regression.bound_at(found, 3.0, s + r) for r in dense]
    assert above.min() >= -1e-12  # chords of a convex function
    total = integrate.trapezoid(levels, knots)
    waits = []
    for e in total * np.linspace(0.01, 0.99, 40):
        wait, bound = regression.first_arrival(found, 3.0, s, step, cap, e)
        waits.append(wait)
        assert bound == pytest.approx(max(np.interp(wait, knots, levels), 1e-300), rel=1e-9, abs=1e-12)
        inner = knots[knots < wait]
        area = integrate.quad(lambda r: np.interp(r, knots, levels), 0.0, wait, points=inner[1:], limit=200)[0]
        assert area == pytest.approx(e, rel=1e-8)
    assert np.all(np.diff(waits) > 0.0)
    assert regression.first_arrival(found, 3.0, s, step, cap, 1.01 * total) == (cap, 0.0)


# ---------------------------------------------------------------------------------------------------------------
# The heap of clocks


@pytest.mark.parametrize("n", [1, 2, 3, 10, 37])
@pytest.mark.parametrize("values", [5, 10_000])
def test_the_heap_sorts_by_time_and_then_by_index(n, values):
    """Random updates, with many ties when there are few values; the order does not depend on how it came about."""
    rng = np.random.default_rng(n)
    times, keys, heap, place = np.full(n, math.inf), np.full(n, math.inf), np.arange(n), np.arange(n)
    move = plain(reschedule) if n > 10 else reschedule

    def set_time(i, time):
        times[i] = time
        move(keys, heap, place, i, time)

    for _ in range(60):
        i = int(rng.integers(n))
        set_time(i, math.inf if rng.random() < 0.1 else float(rng.integers(values)))
        assert heap[0] == min(range(n), key=lambda j: (times[j], j))
        assert np.array_equal(place[heap], np.arange(n))
        assert np.array_equal(keys, times[heap])
    expected = [j for j in sorted(range(n), key=lambda j: (times[j], j)) if times[j] < math.inf]
    found = []
    for _ in expected:
        found.append(int(heap[0]))
        set_time(found[-1], math.inf)
    assert found == expected


def test_the_grid_stops_where_the_target_ends():
    """A density that ends inside its support stops the run at the edge; looking over it from inside does not."""

    def half(x):
        return (0.5 * x @ x, x) if x[0] < 1.0 else (np.inf, np.full(2, np.nan))

    with pytest.raises(pdmp.SamplingError, match="not finite") as caught:
        pdmp.sample(pdmp.BPS(pdmp.models.from_function(half, 2)), events=1_000, seed=1)
    assert caught.value.position[0] == pytest.approx(1.0, abs=1e-6)

    def barrier(x):  # U grows without bound at the edge: the path turns before it
        if x[0] <= 0.0:
            return np.inf, np.full(1, np.nan)
        return x[0] - 3.0 * np.log(x[0]), 1.0 - 3.0 / x

    run = pdmp.sample(
        pdmp.BPS(pdmp.models.from_function(barrier, 1, initial=[3.0]), refresh_rate=0.2), events=3_000, seed=1
    )
    assert run.mean()[0] == pytest.approx(4.0, abs=0.5)  # Gamma(4, 1)
