"""SGBD: the probability of its sign and what gradient noise does to it, its increments, and its predicted law."""

import math

import numpy as np
import pytest
from scipy import special, stats

import discrete
import pdmp
from discrete.barker import CORRECTED, EXTREME, SPREAD, VANILLA, C, probability
from discrete.laws import _barker_response, barker_covariance
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import (
    barker_lattice,
    barker_law,
    barker_sign,
    barker_steps,
    lattice_moments,
    plain,
    run_chain,
    stationary,
)

pytestmark = pytest.mark.exact

ESTIMATORS = (VANILLA, CORRECTED, EXTREME)
POINTS = [(z, g, tau) for z in (0.05, 0.5, 1.5) for g in (-6.0, -0.8, 0.3, 2.0) for tau in (0.1, 1.0, 2.5)]
NOISE = np.linspace(-9.0, 9.0, 901)  # uniform: Gauss-Hermite is wrong for steep logistic functions


def expected(estimator, z, g, tau, noise=NOISE, weights=None):
    """E of the probability of +z over gradients g + tau × noise."""
    weights = stats.norm.pdf(noise) if weights is None else weights
    values = [probability(estimator, z, g + tau * e, tau) for e in noise]
    return np.average(values, weights=weights)


# ---------------------------------------------------------------------------------------------------------------
# One probability


def test_the_logistic_function_and_the_scaled_normal_cdf():
    """C is where their largest distance is least, 0.0095."""
    x = np.linspace(-10.0, 10.0, 200_001)

    def distance(c):
        return np.abs(special.expit(x) - special.ndtr(x / c)).max()

    assert 0.0094 < distance(C) < 0.0095
    assert distance(C) < min(distance(C - 0.01), distance(C + 0.01))


def test_vanilla_is_the_barker_rule():
    for z, g, tau in POINTS:
        assert probability(VANILLA, z, g, tau) == pytest.approx(1.0 / (1.0 + math.exp(-z * g)), rel=1e-12)
    assert probability(VANILLA, 1.0, 1e300, 0.0) == probability(VANILLA, 1.0, math.inf, 0.0) == 1.0
    assert probability(VANILLA, 1.0, -1e300, 0.0) == probability(VANILLA, 1.0, -math.inf, 0.0) == 0.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_opposite_gradients_have_opposite_signs(estimator):
    for z, g, tau in POINTS:
        both = probability(estimator, z, g, tau) + probability(estimator, z, -g, tau)
        assert both == pytest.approx(1.0, abs=1e-14)
    assert probability(estimator, 0.7, 0.0, 0.3) == 0.5
    assert probability(estimator, 0.7, 0.0, 30.0) == 0.5


def test_limits_of_the_corrected_probability():
    for z, g, _ in POINTS:
        assert probability(CORRECTED, z, g, 0.0) == probability(VANILLA, z, g, 0.0)
        for tau in (C / z, 2.0 * C / z):
            assert probability(CORRECTED, z, g, tau) == probability(EXTREME, z, g, tau)
        assert probability(CORRECTED, z, g, 0.999999 * C / z) == pytest.approx(float(g > 0.0), abs=0.05)
        assert probability(EXTREME, z, g, 0.0) == probability(EXTREME, z, 1e-9 * g, 5.0) == (g > 0.0)


# ---------------------------------------------------------------------------------------------------------------
# Its expectation under gradient noise


def test_the_corrected_expectation_is_the_noiseless_probability_up_to_the_breaking_point():
    worst, shrunk = 0.0, 0.0
    for z, g, tau in [*POINTS, *((1.0, g, tau) for g in (0.5, 1.0, 3.0) for tau in (1.2, 1.5, 1.65))]:
        if tau * z < C:
            p = special.expit(z * g)
            worst = max(worst, abs(expected(CORRECTED, z, g, tau) - p))
            shrunk = max(shrunk, abs(expected(VANILLA, z, g, tau) - p))
    assert worst < 0.0115
    assert shrunk > 0.05  # what it corrects


def test_the_extreme_expectation_is_a_normal_cdf_and_the_most_decided():
    for z, g, tau in POINTS:
        noise = np.linspace(-9.0, 9.0, 40_001)
        # a jump: the rectangle rule is wrong by at most a step of the grid
        signs = np.where(g + tau * noise > 0.0, 1.0, np.where(g + tau * noise < 0.0, 0.0, 0.5))
        assert np.average(signs, weights=stats.norm.pdf(noise)) == pytest.approx(stats.norm.cdf(g / tau), abs=3e-4)
        for e in (-2.1, 0.1, 3.0):
            assert probability(EXTREME, z, g + tau * e, tau) == (g + tau * e > 0.0)
        most = abs(stats.norm.cdf(g / tau) - 0.5)
        for estimator in (VANILLA, CORRECTED):
            assert abs(expected(estimator, z, g, tau) - 0.5) <= most + 5e-3  # the grid across a jump


def test_the_breaking_point():
    """Noise at which even the extreme estimator only just reaches the noiseless probability; C / z is close to it."""
    z, zg = np.meshgrid([0.1, 1.0, 3.0, -2.0], [1e-12, 1e-4, 0.3, 1.0, 2.0623, 4.0, 20.0])
    tau = discrete.breaking_point(zg / z, z)
    assert tau.shape == zg.shape
    reached = stats.norm.sf(np.abs(zg / z) / tau)
    np.testing.assert_allclose(reached, special.expit(-zg), rtol=1e-9)
    ratios = tau * np.abs(z) / C
    np.testing.assert_allclose(ratios[:2], 4.0 * stats.norm.pdf(0.0) / C, rtol=1e-7)
    np.testing.assert_allclose(ratios[4], 1.0, atol=1e-4)
    assert 0.93 < ratios[:6].min() and ratios[:6].max() < 1.2
    np.testing.assert_allclose(ratios[6] * C, 3.4018, atol=1e-4)


def test_limits_of_the_breaking_point():
    at_zero = discrete.breaking_point(0.0, [0.5, 2.0])
    np.testing.assert_allclose(at_zero, 4.0 * stats.norm.pdf(0.0) / np.array([0.5, 2.0]), rtol=1e-14)
    assert discrete.breaking_point(1.0, 0.0) == math.inf and discrete.breaking_point(math.inf, 1.0) == math.inf
    assert discrete.breaking_point(1e8, 1.0) == pytest.approx(math.sqrt(0.5e8), rel=1e-6)
    assert isinstance(discrete.breaking_point(1.0, 1.0), float)
    assert discrete.breaking_point(-2.0, 0.7) == discrete.breaking_point(2.0, -0.7)
    either_side = discrete.breaking_point(np.array([1.0 - 1e-9, 1.0 + 1e-9]), 1.0)  # of where the formula changes
    assert np.diff(either_side)[0] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_mean_increment_of_a_small_gradient(estimator):
    """E ±z over z and the noise, by differences; the second coordinate's noise is beyond what can be corrected."""
    sigma, tau, (nodes, weights) = np.array([0.5, 0.8]), np.array([1.0, 4.0]), np.polynomial.hermite_e.hermegauss(7)
    name = {VANILLA: "vanilla", CORRECTED: "corrected", EXTREME: "extreme"}[estimator]
    for found, s, t in zip(_barker_response(sigma, tau, name), sigma, tau, strict=True):
        z, g = s * (1.0 + SPREAD * nodes), 0.05 * t
        slopes = [(expected(estimator, v, g, t) - expected(estimator, v, -g, t)) / (2.0 * g) for v in z]
        assert found == pytest.approx(np.average(2.0 * z * slopes, weights=weights), rel=5e-3)


# ---------------------------------------------------------------------------------------------------------------
# The increments


def test_increments_are_bounded_whatever_the_gradient():
    """Nearly all are below 1.233 σ; none overflows."""
    assert stats.norm.cdf(0.233 / SPREAD) == pytest.approx(0.9901, abs=1e-4)
    for estimator in ("vanilla", "corrected", "extreme"):
        steep = Gaussian(0.0, [1e300, 1.0])
        process = discrete.SGBD(Noisy(steep, [0.0, 1.0]), [0.5, 2.0], estimator)
        record = run_chain(process, [3.0, 0.0], 3, steps=300).finish()
        increments = np.abs(np.diff(record.xs, axis=0)) / [0.5, 2.0]
        assert np.all(np.abs(increments - 1.0) < 7.0 * SPREAD)
        assert np.all(np.diff(record.xs[:4, 0]) < 0.0)  # towards the mode


@pytest.mark.parametrize("estimator", ["vanilla", "corrected", "extreme"])
def test_every_step_is_the_barker_recursion(estimator):
    """Replayed with numpy from the same stream: the gradient's noise, then z and the sign of each coordinate."""
    sigma, scale, precision = 0.4 * np.array([1.0, 0.5]), np.array([2.0, 3.0]), np.array([1.0, 4.0])
    process = discrete.SGBD(Noisy(Gaussian(0.0, precision), scale), sigma, estimator)
    record = run_chain(process, [0.2, -0.1], 4, steps=60).finish()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(4)))
    x = np.array([0.2, -0.1])
    for k in range(60):
        g = -(precision * x + scale * rng.standard_normal(2))
        for j in range(2):
            z = sigma[j] * (1.0 + 0.1 * rng.standard_normal())
            if estimator == "vanilla":
                p = special.expit(z * g[j])
            elif estimator == "corrected" and scale[j] * z < 1.702:
                p = special.expit(z * g[j] / math.sqrt(1.0 - (scale[j] * z / 1.702) ** 2))
            else:
                p = float(z * g[j] > 0.0)
            x[j] += z if rng.random() < p else -z
        np.testing.assert_allclose(record.xs[k], x, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(record.times, np.mean(sigma**2) * np.arange(1, 61), rtol=1e-12)


@pytest.mark.parametrize("estimator", ["vanilla", "corrected"])
def test_every_step_with_the_adaptive_scale(estimator):
    """C / (1.233 τ) from the noise known before the step; the state is held for the mean of its squares."""
    scale, precision, largest = np.array([2.0, 30.0]), np.array([1.0, 4.0]), np.array([0.5, 1.0])
    process = discrete.SGBD(Noisy(Gaussian(0.0, precision), scale), "adaptive", estimator, beta=0.3, max_scale=largest)
    record = run_chain(process, [0.2, -0.1], 8, steps=40).finish()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(8)))
    x, sigma, now, beyond = np.array([0.2, -0.1]), np.minimum(largest, 1.702 / (1.233 * scale)), 0.0, 0
    for k in range(40):
        now += np.mean(sigma**2) if k else 0.0
        g = -(precision * x + scale * rng.standard_normal(2))
        for j in range(2):
            z = sigma[j] * (1.0 + 0.1 * rng.standard_normal())
            room = 1.0 - (scale[j] * z / 1.702) ** 2
            beyond += room <= 0.0
            if estimator == "vanilla":
                p = special.expit(z * g[j])
            else:
                p = special.expit(z * g[j] / math.sqrt(room)) if room > 0.0 else float(z * g[j] > 0.0)
            x[j] += z if rng.random() < p else -z
        sigma = np.minimum(largest, 1.702 / (1.233 * scale))
        np.testing.assert_allclose(record.xs[k], x, rtol=1e-11, atol=1e-13)
        assert record.times[k] == pytest.approx(now, rel=1e-12)
    assert sigma[0] == 0.5 and sigma[1] == pytest.approx(0.046012, rel=1e-4)  # at most, and below it
    found = record.statistics
    assert found["beyond_breaking_point"] == beyond
    assert found["mean_beyond_breaking_point"] == beyond / 80
    assert found["mean_scale"] == pytest.approx(sigma.mean())


def test_the_adaptive_scale_follows_the_running_average_of_batches():
    rng = np.random.default_rng(3)
    model = LinearGaussian(rng.standard_normal((20, 1)), rng.standard_normal(20))
    process = discrete.SGBD(Minibatch(model, 4), "adaptive", "corrected", max_scale=10.0)
    state, stream = process.begin(np.zeros(1), rng), np.random.default_rng(4)
    average, held = 0.0, []
    for k in range(1, 30):
        held.append(process.clock(state, 0, 0.0, None)[0])
        process.jump(state, 0, 0.0, stream)
        memory = state.memory
        average = 0.9 * average + 0.1 * memory.sd[0]
        assert memory.scale[0] == pytest.approx(C / (1.233 * average / (1.0 - 0.9**k)), rel=1e-10)
        assert memory.holding_time[0] == pytest.approx(memory.scale[0] ** 2)
    assert held[0] == 0.0 and len(set(held)) == 29
    state.memory.scale[0], before = 1e-6, state.x[0]  # a step has the scale that was known before it
    process.jump(state, 0, 0.0, stream)
    assert 0.0 < abs(state.x[0] - before) < 2e-6


@pytest.mark.parametrize("noise", ["previous", "current"])
def test_the_adaptive_scale_of_a_step_as_published_is_that_of_its_own_batch(noise):
    """With β = 1 the scale is that of one batch, and an increment is σ (1 + 0.1 ξ)."""
    rng = np.random.default_rng(3)
    model = LinearGaussian(rng.standard_normal((20, 1)), rng.standard_normal(20))
    process = discrete.SGBD(Minibatch(model, 3), "adaptive", beta=1.0, max_scale=10.0, noise=noise)
    state, stream, known = process.begin(np.zeros(1), rng), np.random.default_rng(4), math.nan
    of_this, of_the_last = [], []
    for _ in range(40):
        before = state.x[0]
        process.jump(state, 0, 0.0, stream)
        of_this.append(abs(state.x[0] - before) / state.memory.scale[0])
        of_the_last.append(abs(state.x[0] - before) / known)
        known = state.memory.scale[0]
        assert known == pytest.approx(C / (1.233 * state.memory.sd[0]), rel=1e-10)
        assert state.memory.holding_time[0] == pytest.approx(known**2)
    right, other = (of_this, of_the_last) if noise == "current" else (of_the_last, of_this)
    assert np.all(np.abs(np.array(right[1:]) - 1.0) < 0.5) and np.max(np.abs(np.array(other[1:]) - 1.0)) > 0.5
    assert abs(of_this[0] - 1.0) < 0.5  # the first step has the scale of its own batch in both


def test_the_adaptive_scale_s_length_is_not_known_in_advance():
    """A grid keeps its rows, though the largest scale is far above the scales that come."""
    a, noise = np.random.default_rng(3).standard_normal((2, 40, 1))
    process = discrete.SGBD(Minibatch(LinearGaussian(a, (a + 3.0 * noise)[:, 0]), 10), "adaptive", max_scale=50.0)
    run = pdmp.sample(process, steps=200, seed=1, store="grid", draws=40)
    assert run.draws(40).shape == (1, 40, 1)
    assert np.abs(run.draws(40)).max() < 10.0


def test_without_noise_the_adaptive_scale_is_the_largest():
    process = discrete.SGBD(Gaussian(0.0, [1.0, 1.0]), "adaptive", max_scale=[0.3, 0.4])
    state = process.begin(np.zeros(2), None)
    process.jump(state, 0, 0.0, np.random.default_rng(1))
    np.testing.assert_array_equal(state.memory.scale, [0.3, 0.4])
    assert state.memory.holding_time[0] == pytest.approx(0.125)


def test_noise_that_is_not_a_number_stops_the_chain():
    process = discrete.SGBD(Noisy(Gaussian(0.0, [1.0]), 1.0), 0.3, "corrected")
    state = process.begin(np.zeros(1), None)
    state.memory.mean_sd[0] = math.nan
    assert process.jump(state, 0, 0.0, np.random.default_rng(1)) == -1


def test_a_schedule_with_a_shape():
    model, x = Noisy(Gaussian(0.0, [1.0, 4.0]), [2.0, 3.0]), [0.2, -0.1]
    record = run_chain(discrete.SGBD(model, [0.4, 0.2]), x, 9, steps=20).finish()
    same = run_chain(discrete.SGBD(model, 0.4, shape=[1.0, 0.5]), x, 9, steps=20).finish()
    np.testing.assert_allclose(same.xs, record.xs, rtol=1e-12)
    np.testing.assert_allclose(same.times, record.times, rtol=1e-12)
    schedule = discrete.schedules.polynomial(0.4, 2.0, 0.5)
    times = run_chain(discrete.SGBD(Noisy(Gaussian(0.0, [1.0, 1.0]), 0.0), schedule, shape=[1.0, 0.5]), x, 5, steps=9)
    np.testing.assert_allclose(times.finish().times, np.cumsum(0.625 * 0.16 / (2.0 + np.arange(9))), rtol=1e-12)


NOISY = Noisy(Gaussian(0.0, [1.0, 1.0]), 1.0)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: discrete.SGBD(NOISY, 0.1, noise="current"), ValueError, "`noise`.*adaptive"),
        (lambda: discrete.SGBD(NOISY, "adaptive", max_scale=1.0, noise="now"), ValueError, "`noise`.*current"),
        (lambda: discrete.SGBD(NOISY, "adaptive"), ValueError, "`max_scale` must be given.*adaptive"),
        (lambda: discrete.SGBD(NOISY, 0.1, max_scale=1.0), ValueError, "`max_scale`.*adaptive"),
        (lambda: discrete.SGBD(NOISY, "adaptive", max_scale=0.0), ValueError, "`max_scale`.*positive"),
        (lambda: discrete.SGBD(NOISY, "adaptive", max_scale=[1.0]), ValueError, r"`max_scale`.*\(2,\).*\(1,\)"),
        (
            lambda: discrete.SGBD(NOISY, "adaptive", max_scale=discrete.schedules.constant(1.0)),
            TypeError,
            "`max_scale`.*schedule",
        ),
        (lambda: discrete.SGBD(NOISY, "largest"), TypeError, "`scale`.*largest"),
        (lambda: discrete.SGBD(NOISY, 0.1, shape=[1.0]), ValueError, r"`shape`.*\(2,\).*\(1,\)"),
        (lambda: discrete.SGBD(NOISY, 0.1, shape=[1.0, -1.0]), ValueError, "`shape`.*positive"),
        (lambda: discrete.SGBD(NOISY, [0.1, 0.2], shape=[1.0, 1.0]), ValueError, "`shape`.*one number"),
        (lambda: discrete.SGBD(NOISY, "adaptive", max_scale=1.0, shape=[1.0, 1.0]), ValueError, "`shape`"),
        (lambda: discrete.SGBD.from_h(NOISY, 0.0), ValueError, "`h`.*positive"),
        (
            lambda: discrete.SGBD(Minibatch(LinearGaussian(np.ones((4, 1)), np.ones(4)), 1), "adaptive", max_scale=1.0),
            ValueError,
            'scale="adaptive".*at least 2',
        ),
    ],
)
def test_slips_are_errors_before_the_run(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_the_running_average_of_a_constant_noise_is_that_constant_from_the_first_step():
    """Noise four times beyond the breaking point: without the correction of its start at 0 it would not seem so."""
    process = discrete.SGBD(Noisy(Gaussian(0.0, [1.0, 1.0]), 4.0 * C / 0.5), 0.5, "corrected")
    for steps in (1, 2, 20):
        chain = run_chain(process, [0.0, 0.0], 5, steps=steps)
        memory = chain.state.memory
        np.testing.assert_allclose(memory.mean_sd / (1.0 - memory.start_weight[0]), 4.0 * C / 0.5, rtol=1e-12)
        assert memory.start_weight[0] == pytest.approx(0.9**steps)
        assert memory.beyond[0] == 2 * steps
        assert chain.finish().statistics["mean_beyond_breaking_point"] == 1.0
    half = discrete.SGBD(Noisy(Gaussian(0.0, [1.0, 1.0]), [4.0 * C / 0.5, 1e-3]), 0.5, "corrected")
    found = run_chain(half, [0.0, 0.0], 5, steps=20).finish().statistics
    assert (found["beyond_breaking_point"], found["coordinate_updates"]) == (20, 40)
    assert found["mean_beyond_breaking_point"] == 0.5


# ---------------------------------------------------------------------------------------------------------------
# The predicted law


def test_the_lattice_has_the_moments_of_z():
    width, multiples, weights = barker_steps(0.5)
    z = width * multiples
    assert weights @ z == pytest.approx(0.5, rel=1e-7)
    assert weights @ (z - 0.5) ** 2 == pytest.approx((SPREAD * 0.5) ** 2, rel=1e-6)


@pytest.mark.parametrize("estimator, tau", [("vanilla", 0.0), ("vanilla", 8.0), ("corrected", 8.0), ("extreme", 8.0)])
def test_the_predicted_variance_is_that_of_the_transition_kernel(estimator, tau):
    """To leading order in σ; against the stationary law on a lattice."""
    sigma = 0.1
    predicted = barker_covariance(np.eye(1), np.array([[tau**2]]), sigma, estimator)[0, 0]
    exact = barker_law(estimator, sigma, 1.0, tau, reach=6.0 * math.sqrt(predicted))[0, 0]
    assert predicted == pytest.approx(exact, rel=0.01)


def test_the_variance_without_noise_exceeds_that_of_the_target_by_a_quarter_of_the_squared_scale():
    for sigma, tolerance in ((0.4, 0.05), (0.2, 0.02)):
        assert (barker_law("vanilla", sigma, 1.0, 0.0)[0, 0] - 1.0) / sigma**2 == pytest.approx(0.25, abs=tolerance)


@pytest.mark.parametrize("estimator, tau", [("vanilla", 0.0), ("corrected", 2.0), ("extreme", 4.0)])
def test_two_computations_of_the_stationary_law_agree(estimator, tau):
    """Powers of the kernel by shifts of the density, and a linear equation with its matrix."""
    x, kernel = barker_lattice(lambda z, x: barker_sign(estimator, z, -x, tau), 0.5, -8.0, 8.0)
    mean, variance = lattice_moments(x, stationary(kernel))
    assert mean == pytest.approx(0.0, abs=1e-8)
    assert variance == pytest.approx(barker_law(estimator, 0.5, 1.0, tau)[0, 0], rel=1e-6)


def test_plain_and_compiled_probability_agree():
    for estimator in ESTIMATORS:
        for z, g, tau in POINTS:
            assert plain(probability)(estimator, z, g, tau) == probability(estimator, z, g, tau)
