"""SGBD: the probability of its sign and what gradient noise does to it, its increments, and its predicted law."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import discrete
from discrete.barker import CORRECTED, EXTREME, SPREAD, VANILLA, C, probability
from discrete.laws import barker_covariance
from pdmp.gradients import Noisy
from pdmp.models import Gaussian
from tests.checks import barker_law, barker_steps, plain, run_chain

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


@pytest.mark.parametrize("law", [stats.norm, stats.laplace, stats.t(3), stats.cauchy, stats.uniform(-1.0, 2.0)])
def test_symmetric_noise_shrinks_the_vanilla_probability_towards_a_half(law):
    noise = law.ppf((np.arange(401) + 0.5) / 401)  # symmetric itself
    for z, g, tau in POINTS:
        found = expected(VANILLA, z, g, tau, noise, np.ones(401))
        p = special.expit(z * g)
        assert abs(found - 0.5) < abs(p - 0.5)
        assert (found - 0.5) * (p - 0.5) > 0.0


def test_the_vanilla_expectation_is_a_flatter_logistic_function():
    worst = 0.0
    for z, g, tau in POINTS:
        found = expected(VANILLA, z, g, tau)
        worst = max(worst, abs(found - special.expit(C * z * g / math.sqrt(C**2 + z**2 * tau**2))))
    assert worst < 0.0115


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
    for z in (0.1, 1.0, 3.0):
        ratios = []
        for zg in (1e-4, 1.0, 2.0623, 4.0):
            g = zg / z
            tau = g / stats.norm.ppf(special.expit(zg))
            assert stats.norm.cdf(g / tau) == pytest.approx(special.expit(zg), rel=1e-12)
            ratios.append(tau * z / C)
        assert ratios[0] == pytest.approx(4.0 * stats.norm.pdf(0.0) / C, rel=1e-4)
        assert ratios[2] == pytest.approx(1.0, abs=1e-3)
        assert 0.93 < min(ratios) and max(ratios) < 1.2


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


@pytest.mark.parametrize("schedule", [0.5, discrete.schedules.polynomial(0.5, 2.0, 0.5)])
def test_a_state_is_held_for_the_square_of_its_scale(schedule):
    process = discrete.SGBD(Noisy(Gaussian(0.0, [1.0, 1.0]), 0.0), schedule)
    times = run_chain(process, [0.0, 0.0], 5, steps=30).finish().times
    sigma = np.full(30, 0.5) if schedule == 0.5 else 0.5 * (2.0 + np.arange(30)) ** -0.5
    np.testing.assert_allclose(times, np.cumsum(sigma**2), rtol=1e-13)


def test_the_running_average_of_a_constant_noise_is_that_constant_from_the_first_step():
    """Noise four times beyond the breaking point: without the correction of its start at 0 it would not seem so."""
    process = discrete.SGBD(Noisy(Gaussian(0.0, [1.0, 1.0]), 4.0 * C / 0.5), 0.5, "corrected")
    for steps in (1, 2, 20):
        chain = run_chain(process, [0.0, 0.0], 5, steps=steps)
        memory = chain.state.memory
        np.testing.assert_allclose(memory.mean_sd / (1.0 - memory.rest[0]), 4.0 * C / 0.5, rtol=1e-12)
        assert memory.rest[0] == pytest.approx(0.9**steps)
        assert memory.beyond[0] == 2 * steps


@pytest.mark.parametrize("sigma", [0.02, 0.1])
def test_small_steps_are_langevin_steps(sigma):
    """Drift E[z²] g / 2 and variance E[z²], up to relative order σ²."""
    g = 0.7

    def density(z):
        return stats.norm.pdf(z, sigma, SPREAD * sigma)

    def average(f):
        return integrate.quad(lambda z: f(z) * density(z), 0.3 * sigma, 1.7 * sigma, points=[sigma], limit=200)[0]

    square = average(lambda z: z * z)
    drift = average(lambda z: z * (2.0 * probability(VANILLA, z, g, 0.0) - 1.0))
    assert square == pytest.approx(sigma**2 * (1.0 + SPREAD**2), rel=1e-7)
    assert drift == pytest.approx(0.5 * square * g, rel=sigma**2)


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


def test_no_response_without_noise_is_refused_for_the_extreme_estimator():
    assert barker_covariance(np.eye(1), np.zeros((1, 1)), 0.3, "extreme") is None


def test_plain_and_compiled_probability_agree():
    for estimator in ESTIMATORS:
        for z, g, tau in POINTS:
            assert plain(probability)(estimator, z, g, tau) == probability(estimator, z, g, tau)
