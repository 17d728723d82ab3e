"""SGLD: its recursion replayed from the same random numbers, its predicted law, conventions and weights."""

import itertools
import math

import numpy as np
import pytest

import discrete
from discrete.laws import langevin_covariance, largest_step, noise_covariance
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import minibatch_law, new_chain, run_chain

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
MODEL = Gaussian(MEAN, PRECISION)


def data(n_data=6, d=2, seed=4):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n_data, d))
    return LinearGaussian(A, A @ np.ones(d) + rng.standard_normal(n_data), noise_scale=0.8, prior_scale=2.0)


def path(process, x, steps, seed=5):
    """Times (K,) and positions (K, D) after each tick, the times from 0."""
    record = run_chain(process, x, seed, steps=steps).finish()
    return record.times, record.xs


@pytest.mark.parametrize(
    "scale, schedule", [(None, 0.1), (0.7, 0.1), (None, discrete.schedules.polynomial(0.2, 3.0, 0.4))]
)
def test_every_step_is_the_langevin_recursion(scale, schedule):
    """x - γ ∇Û(x) + √(2γ) ξ, replayed with numpy from the same stream: first ξ, then the gradient's noise."""
    provider = Full(MODEL) if scale is None else Noisy(MODEL, scale)
    times, found = path(discrete.SGLD(provider, schedule), [0.0, 0.0, 0.0], 50)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
    x, expected, now = np.zeros(3), [], []
    for k in range(50):
        gamma = schedule if isinstance(schedule, float) else 0.2 * (3.0 + k) ** -0.4
        xi = rng.standard_normal(3)
        gradient = PRECISION @ (x - MEAN)
        if scale is not None:
            gradient = gradient + scale * rng.standard_normal(3)
        x = x - gamma * gradient + math.sqrt(2.0 * gamma) * xi
        expected.append(x)
        now.append(gamma)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(times, np.cumsum(now), rtol=1e-13)


def test_h_is_twice_gamma():
    x = [0.0, 0.0, 0.0]
    ours, theirs = discrete.SGLD(MODEL, step=0.1), discrete.SGLD.from_h(MODEL, h=0.2)
    np.testing.assert_array_equal(path(ours, x, 30)[1], path(theirs, x, 30)[1])


def test_averages_weight_a_state_by_the_step_with_which_it_is_left():
    schedule = discrete.schedules.polynomial(0.5, 1.0, 0.6)
    process = discrete.SGLD(Full(MODEL), schedule)
    chain = run_chain(process, MEAN, 6, steps=40, store="moments", covariance=True)
    integrals = chain.finish().integrals
    _, after = path(process, MEAN, 40, seed=6)
    states = np.vstack([MEAN, after[:-1]])
    weights = 0.5 * (1.0 + np.arange(40)) ** -0.6
    deviations = states - integrals.centre
    np.testing.assert_allclose(integrals.first, weights @ deviations, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(integrals.second, weights @ deviations**2, rtol=1e-11)
    products = np.einsum("k,ki,kj->ij", weights, deviations, deviations)
    np.testing.assert_allclose(np.tril(integrals.cross), np.tril(products), rtol=1e-11, atol=1e-12)


def test_constant_steps_give_the_plain_mean_whatever_the_unit_of_time():
    process = discrete.SGLD(Full(MODEL), 0.05)
    integrals = run_chain(process, MEAN, 6, steps=40, store="moments").finish().integrals
    _, after = path(process, MEAN, 40, seed=6)
    states = np.vstack([MEAN, after[:-1]])
    np.testing.assert_allclose(
        integrals.first / (40 * 0.05) + integrals.centre, states.mean(axis=0), rtol=1e-11, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
@pytest.mark.filterwarnings("ignore:.*stability limit")
def test_a_gradient_that_is_not_finite_stops_the_chain():
    chain = new_chain(discrete.SGLD(Gaussian(0.0, [1e300]), 1e10), [1.0], 1, steps=100).advance()
    assert "not finite" in chain.failure[0]


# ---------------------------------------------------------------------------------------------------------------
# Predicted laws


@pytest.mark.parametrize("precision, tau, step", [(1.0, 0.0, 0.1), (4.0, 3.0, 0.3), (0.2, 1.0, 1.5)])
def test_the_stationary_variance_in_one_dimension(precision, tau, step):
    found = langevin_covariance(np.array([[precision]]), np.array([[tau**2]]), step)
    expected = (2.0 + step * tau**2) / (precision * (2.0 - step * precision))
    assert found[0, 0] == pytest.approx(expected, rel=1e-12)


def test_steps_beyond_the_stability_limit_have_no_law():
    for step, stable in ((1.99, True), (2.01, False)):
        assert (langevin_covariance(np.eye(1), np.zeros((1, 1)), step) is not None) is stable
    assert langevin_covariance(PRECISION, np.zeros((3, 3)), 2.01 / np.linalg.eigvalsh(PRECISION)[-1]) is None


def test_the_stationary_covariance_is_the_fixed_point_of_its_recursion():
    noise = np.diag([1.0, 2.0, 0.5]) + 0.3
    found = langevin_covariance(PRECISION, noise, 0.3)
    a = np.eye(3) - 0.3 * PRECISION
    np.testing.assert_allclose(a @ found @ a.T + 0.6 * np.eye(3) + 0.09 * noise, found, rtol=1e-12)
    by_columns = np.linalg.solve(np.eye(9) - np.kron(a, a), (0.6 * np.eye(3) + 0.09 * noise).ravel())
    np.testing.assert_allclose(found.ravel(), by_columns, rtol=1e-11)


@pytest.mark.parametrize("draw", ["iid", "distinct"])
def test_the_noise_of_batches_is_that_of_all_batches_listed(draw):
    model, x, n = data(), np.array([0.3, -0.4]), 2
    terms = model.term_gradients(x, np.arange(6))
    choose = itertools.product(range(6), repeat=n) if draw == "iid" else itertools.combinations(range(6), n)
    sums = np.array([6 / n * terms[list(rows)].sum(axis=0) for rows in choose])
    np.testing.assert_allclose(sums.mean(axis=0), terms.sum(axis=0), rtol=1e-12)
    expected = np.cov(sums.T, ddof=0)
    np.testing.assert_allclose(noise_covariance(Minibatch(model, n, draw=draw), x), expected, rtol=1e-10)


def test_control_variates_have_no_noise_at_their_anchor():
    model = data()
    provider = ControlVariate(model, 2)
    np.testing.assert_allclose(noise_covariance(provider, provider.anchor), 0.0, atol=1e-9)
    assert np.linalg.eigvalsh(noise_covariance(provider, provider.anchor + 1.0))[-1] > 0.1


def test_known_noise_and_no_noise():
    np.testing.assert_array_equal(noise_covariance(Full(MODEL), MEAN), np.zeros((3, 3)))
    np.testing.assert_allclose(noise_covariance(Noisy(MODEL, [1.0, 2.0, 3.0]), MEAN), np.diag([1.0, 4.0, 9.0]))


def test_the_largest_step_within_an_error_is_just_within_it():
    found, worst = largest_step(
        lambda step: langevin_covariance(PRECISION, np.zeros((3, 3)), step), np.linalg.inv(PRECISION), 0.9, error=0.1
    )
    assert 0.09 < worst <= 0.1
    larger = langevin_covariance(PRECISION, np.zeros((3, 3)), found * 10 ** (1 / 48))
    assert np.abs(np.diag(larger) / np.diag(np.linalg.inv(PRECISION)) - 1.0).max() > 0.1


def test_moments_with_mini_batches_tend_to_the_posterior_and_to_additive_noise():
    """The law that the Monte Carlo tests use: its limit γ → 0, and its first order, that of additive noise."""
    model = data(12, 1)
    mean, covariance = model.posterior()
    for distinct in (False, True):
        provider = Minibatch(model, 3, draw="distinct" if distinct else "iid")
        noise = noise_covariance(provider, mean)[0, 0]
        precision, step = 1.0 / covariance[0, 0], 1e-6
        found_mean, found = minibatch_law(model, 3, distinct, step)
        assert found_mean == pytest.approx(mean[0])
        slope = (found - covariance[0, 0]) / step
        # plus the noise's dependence on θ, whose variance enters the average
        u = model.noise_precision * model.A[:, 0] ** 2
        multiplicative = 144 / 3 * u.var() * (9 / 11 if distinct else 1.0)
        expected = 0.5 + (noise + multiplicative * covariance[0, 0]) / (2.0 * precision)
        assert slope == pytest.approx(expected, rel=1e-3)
