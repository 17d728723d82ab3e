"""SGRRLD: both chains replayed from the same random numbers, their meeting times, and the order of the bias."""

import math

import numpy as np
import pytest

import discrete
import pdmp
from discrete.laws import langevin_covariance
from pdmp.gradients import Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import minibatch_law, run_chain

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.8], [0.8, 1.5]])
MEAN = np.array([1.0, -2.0])
MODEL = Gaussian(MEAN, PRECISION)
EXACT = Noisy(MODEL, 0.0)  #: its gradient, compiled once with that of the tests with noise
FINE, COARSE = 0, 1


def rows(process, x, steps, seed=7):
    """Times, kinds, fine and coarse positions after each tick."""
    record = run_chain(process, x, seed, steps=steps).finish()
    d = len(x)
    return record.times, record.kinds, record.xs[:, :d], record.xs[:, d:]


SCHEDULES = {
    "constant": (0.1, lambda k: 0.1),
    "decreasing": (discrete.schedules.polynomial(0.2, 3.0, 0.4), lambda k: 0.2 * (3.0 + k) ** -0.4),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("correlation", [1.0, 0.6, 0.0, -1.0])
def test_both_chains_are_langevin_recursions_with_shared_increments(schedule, correlation):
    """Two half steps of the fine chain, each with the gradient where it is, then one step of the coarse one."""
    given, step = SCHEDULES[schedule]
    times, kinds, fine, coarse = rows(discrete.SGRRLD(Noisy(MODEL, 0.5), given, correlation), np.zeros(2), 20)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))

    def gradient(x):
        return PRECISION @ (x - MEAN) + 0.5 * rng.standard_normal(2)

    x = y = np.zeros(2)
    now = 0.0
    for k in range(20):
        gamma = step(k)
        increments = rng.standard_normal((2, 2)).T
        for half in (0, 1):
            g = gradient(x)
            x = x - 0.5 * gamma * g + math.sqrt(gamma) * increments[half]
            np.testing.assert_allclose(fine[3 * k + half], x, rtol=1e-10, atol=1e-12)
        z = correlation * (increments[0] + increments[1]) / math.sqrt(2.0)
        if abs(correlation) < 1.0:
            z = z + math.sqrt(1.0 - correlation**2) * rng.standard_normal(2)
        g = gradient(y)
        y = y - gamma * g + math.sqrt(2.0 * gamma) * z
        np.testing.assert_allclose(coarse[3 * k + 2], y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(times[3 * k : 3 * k + 3] - now, [0.5 * gamma, gamma, gamma], rtol=1e-10)
        now = times[3 * k + 2]
        assert kinds[3 * k : 3 * k + 3].tolist() == [FINE, FINE, COARSE]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_chains_meet_at_exactly_the_same_times_the_fine_one_first(schedule):
    times, kinds, *_ = rows(discrete.SGRRLD(EXACT, SCHEDULES[schedule][0]), np.zeros(2), 500)
    fine, coarse = times[kinds == FINE], times[kinds == COARSE]
    np.testing.assert_array_equal(fine[1::2], coarse)
    assert np.all(np.diff(fine) > 0.0)
    np.testing.assert_array_equal(kinds, np.tile([FINE, FINE, COARSE], 500))


@pytest.mark.parametrize("correlation", [1.0, 0.5, 0.0])
def test_the_increments_have_unit_variance_and_their_stated_correlation(correlation):
    """Without a gradient to speak of the chains are their own noise; with ρ = 1 exactly the same noise."""
    flat = Gaussian(0.0, np.full(4, 1e-200))
    _, kinds, fine, coarse = rows(discrete.SGRRLD(Noisy(flat, 0.0), 0.5, correlation), np.zeros(4), 4_000)
    shared = np.diff(fine[kinds == COARSE], axis=0, prepend=0.0).ravel()
    own = np.diff(coarse[kinds == COARSE], axis=0, prepend=0.0).ravel()
    if correlation == 1.0:
        np.testing.assert_allclose(shared, own, atol=1e-9)
    found = np.cov(shared, own)
    assert np.max(np.abs(found - [[1.0, correlation], [correlation, 1.0]])) < 7.0 * math.sqrt(2.0 / 16_000)


def test_with_the_same_noise_the_chains_stay_within_order_gamma():
    apart = []
    for gamma in (1e-2, 1e-3, 1e-4):
        _, kinds, fine, coarse = rows(discrete.SGRRLD(EXACT, gamma), MEAN, round(1.0 / gamma))
        apart.append(np.abs(fine - coarse)[kinds == COARSE].max() / gamma)
    assert max(apart) < 5.0
    independent = rows(discrete.SGRRLD(EXACT, 1e-3, correlation=0.0), MEAN, 1_000)
    assert np.abs(independent[2] - independent[3])[independent[1] == COARSE].max() > 0.1


# ---------------------------------------------------------------------------------------------------------------
# Orders of the bias


def slopes(bias):
    """d log |bias| / d log γ between γ and γ/2."""
    gammas = np.array([4e-3, 2e-3, 1e-3, 5e-4])
    return np.diff(np.log(np.abs([bias(g) for g in gammas]))) / np.diff(np.log(gammas))


@pytest.mark.parametrize("distinct", [False, True])
def test_the_bias_is_of_first_order_and_extrapolated_of_second(distinct):
    """Exact recursion of the moments, on a linear Gaussian model in one dimension with mini-batches."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal(40)
    model = LinearGaussian(a[:, None], 2.0 * a + rng.standard_normal(40))
    truth = model.posterior()[1][0, 0]

    def plain(gamma):
        return minibatch_law(model, 8, distinct, gamma)[1] - truth

    def extrapolated(gamma):
        return 2.0 * plain(0.5 * gamma) - plain(gamma)

    small = 0.01  # of the stability limit, that the leading order leads
    np.testing.assert_allclose(slopes(lambda g: plain(small * g)), 1.0, atol=0.15)
    np.testing.assert_allclose(slopes(lambda g: extrapolated(small * g)), 2.0, atol=0.3)


@pytest.mark.parametrize("precision, tau", [(1.0, 0.0), (2.0, 3.0)])
def test_the_leading_term_of_the_extrapolated_bias(precision, tau):
    """-γ² (λ + τ²) / 8."""

    def variance(gamma):
        return langevin_covariance(np.array([[precision]]), np.array([[tau**2]]), gamma)[0, 0]

    gamma = 1e-3
    bias = 2.0 * variance(0.5 * gamma) - variance(gamma) - 1.0 / precision
    assert bias == pytest.approx(-(gamma**2) * (precision + tau**2) / 8.0, rel=0.01)


# ---------------------------------------------------------------------------------------------------------------
# The estimates of a run


def a_run():
    return pdmp.sample(discrete.SGRRLD(EXACT, 0.1), steps=200, initial=MEAN, seed=9, warmup=0.1)


def test_expectations_are_linear_and_exact_for_constants():
    run = a_run()
    assert run.expectation(lambda x: 1.0) == pytest.approx(1.0, rel=1e-12)
    f, g = run.expectation(lambda x: x[0] ** 2), run.expectation(lambda x: np.sin(x[1]))
    assert run.expectation(lambda x: 3.0 * x[0] ** 2 - np.sin(x[1])) == pytest.approx(3.0 * f - g, rel=1e-10)
    np.testing.assert_allclose(run.expectation(lambda x: x), run.mean(), rtol=1e-10)


def test_estimates_are_twice_the_fine_chain_minus_the_coarse_one():
    """θ²ₖ₋₁ and θ²ₖ with half a step each, θ¹ₖ with a whole one; variances from extrapolated expectations."""
    run = a_run()
    path = run.trajectories[0]
    a, b = path.warmup, path.end
    record = run_chain(discrete.SGRRLD(EXACT, 0.1), MEAN, np.random.SeedSequence(9).spawn(1)[0], steps=200).finish()
    times, xs = record.times, record.xs

    def average(f):
        held = np.searchsorted(times, a + 1e-9, side="right") - 1
        knots = np.append(times[held:], b)
        knots[0] = a
        return np.diff(knots) @ f(xs[held:]) / (b - a)

    mean = 2.0 * average(lambda x: x[:, :2]) - average(lambda x: x[:, 2:])
    np.testing.assert_allclose(run.mean(), mean, rtol=1e-9)
    second = 2.0 * average(lambda x: (x[:, :2] - mean) ** 2) - average(lambda x: (x[:, 2:] - mean) ** 2)
    np.testing.assert_allclose(run.var(), second, rtol=1e-9)
    np.testing.assert_allclose(np.diag(run.cov()), second, rtol=1e-9)
