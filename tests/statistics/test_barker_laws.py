"""Tier 3: SGBD against stationary laws of its transition kernel: skewed, in five dimensions, with mini-batches.

One dimension and known noise on a Gaussian, and two correlated dimensions, are in `test_discrete_laws`.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import special

import discrete
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, SkewNormal
from tests.checks import (
    C,
    assert_unbiased,
    barker_lattice,
    barker_sign,
    barker_steps,
    in_ci,
    lattice_moments,
    linear_terms,
    replicate,
    run_chain,
    stationary,
)

SKEW = SkewNormal(5.0)


def noisy_law(estimator, sigma, gradient, tau, low, high):
    """Mean and variance with Gaussian noise on any gradient of U, a function of arrays."""
    x, kernel = barker_lattice(lambda z, x: barker_sign(estimator, z, -gradient(x), tau), sigma, low, high)
    return lattice_moments(x, stationary(kernel))


def assert_law(found, truth, resolution):
    mean, var = truth
    assert_unbiased((found.mean - mean) / np.sqrt(var), 0.0, resolution=resolution)
    assert_unbiased(found.var / var, 1.0, resolution=resolution)


# ---------------------------------------------------------------------------------------------------------------
# Known noise


@pytest.mark.parametrize(
    "estimator, tau", [("vanilla", 0.0), ("vanilla", 4.0), ("corrected", 4.0), ("extreme", 4.0), ("extreme", 0.5)]
)
def test_on_the_skew_normal_distribution(estimator, tau):
    """The vanilla law with this noise and the corrected one differ by more than ten times the resolution."""

    def gradient(x):
        return x - 5.0 * np.exp(-0.5 * (5.0 * x) ** 2 - 0.5 * math.log(2.0 * math.pi) - special.log_ndtr(5.0 * x))

    laws = {e: noisy_law(e, 0.3, gradient, tau, -3.0, 6.0) for e in {estimator, "vanilla", "corrected"}}
    process = discrete.SGBD(Noisy(SKEW, tau), 0.3, estimator)
    assert_law(replicate(process, [0.8], 32, seed=61, steps=200_000), laws[estimator], 0.03)
    if tau == 4.0:
        differences = [abs(laws["vanilla"][0] - laws["corrected"][0]) / math.sqrt(laws["corrected"][1])]
        differences.append(laws["vanilla"][1] / laws["corrected"][1] - 1.0)
        assert max(differences) > 0.1


def test_independent_coordinates_are_each_as_if_alone():
    """Five scales, curvatures and noises, from none to beyond the breaking point: products of laws on a line."""
    precision = np.array([1.0, 4.0, 0.5, 1.0, 2.0])
    sigma, tau = np.array([0.8, 0.4, 0.9, 0.5, 0.6]), np.array([0.0, 3.0, 1.0, 5.0, 2.0])
    laws = [
        noisy_law("corrected", s, lambda x, q=q: q * x, t, -9.0 / math.sqrt(q), 9.0 / math.sqrt(q))
        for q, s, t in zip(precision, sigma, tau, strict=True)
    ]
    process = discrete.SGBD(Noisy(Gaussian(0.0, np.diag(precision)), tau), sigma, "corrected")
    found = replicate(process, np.zeros(5), 32, seed=62, steps=150_000)
    var = np.array(laws)[:, 1]
    assert_law(found, (0.0, var), 0.04)
    j, k = np.triu_indices(5, 1)
    assert_unbiased((found.cov / np.sqrt(np.outer(var, var)))[:, j, k], 0.0, resolution=0.03)


@pytest.mark.parametrize("estimator", ["vanilla", "corrected", "extreme"])
def test_five_correlated_dimensions_balance(estimator):
    """No closed form, but in the stationary law E of the change of θᵢθⱼ is zero: with the mean m of an increment,

    2 E θᵢ mᵢ + E z² = 0 and E [θᵢ mⱼ + θⱼ mᵢ + mᵢ mⱼ] = 0, and E mᵢ = 0. All relative to σᵢ σⱼ.
    """
    d = 5
    covariance = 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))) * 1.5
    precision, sigma, tau = np.linalg.inv(covariance), 0.5, 2.5
    width, multiples, weights = barker_steps(sigma)
    z = width * multiples[:, None]
    grid = np.linspace(-60.0, 60.0, 4_001)  # of the gradient, on which m is tabulated
    mean = np.sum(weights[:, None] * z * (2.0 * barker_sign(estimator, z, grid[None, :], tau) - 1.0), axis=0)
    process = discrete.SGBD(Noisy(Gaussian(0.0, precision), tau), sigma, estimator)
    j, k = np.triu_indices(d)
    balances = []
    for child in np.random.SeedSequence(63).spawn(32):
        x = run_chain(process, np.zeros(d), child, steps=50_000).finish().xs[200:]
        m = np.interp(-x @ precision, grid, mean)
        change = x.T @ m / len(x)
        change = change + change.T + m.T @ m / len(x)
        np.fill_diagonal(change, 2.0 * np.mean(x * m, axis=0) + sigma**2 * 1.01)
        balances.append(np.append(change[j, k] / sigma**2, m.mean(axis=0) / sigma))
    assert_unbiased(balances, 0.0, resolution=0.065)


def test_the_adaptive_scale_under_constant_noise_is_a_constant_scale():
    """C / (1.233 τ) = 0.69 and 0.35; one increment of a hundred is beyond the breaking point."""
    tau = np.array([2.0, 4.0, 0.5, 0.0, 1.0])
    process = discrete.SGBD(Noisy(Gaussian(0.0, np.eye(5)), tau), "adaptive", "corrected", max_scale=0.8)
    found = replicate(process, np.zeros(5), 32, seed=64, steps=150_000)
    sigma = np.minimum(0.8, 1.702 / 1.233 / np.maximum(tau, 1e-9))
    laws = [noisy_law("corrected", s, lambda x: x, t, -9.0, 9.0) for s, t in zip(sigma, tau, strict=True)]
    assert_law(found, (0.0, np.array(laws)[:, 1]), 0.04)
    chain = run_chain(process, np.zeros(5), 65, steps=150_000)
    beyond = process.report.statistics(process, chain.state)["mean_beyond_breaking_point"]
    assert beyond == pytest.approx(2 / 5 * special.ndtr(-2.33), rel=0.06)  # of two coordinates; five standard errors


# ---------------------------------------------------------------------------------------------------------------
# Mini-batches


def data():
    rng = np.random.default_rng(32)
    a = rng.standard_normal(6)
    return LinearGaussian(a[:, None], 2.0 * a + rng.standard_normal(6))


MODEL = data()
SCALE = 0.8 * math.sqrt(MODEL.posterior()[1][0, 0])
ENDS = MODEL.mode()[0] - 12.0 * SCALE, MODEL.mode()[0] + 12.0 * SCALE


def batch_sign(estimator, rows, distinct, z, x, model=MODEL):
    """Probability of +z with one batch: the estimates as the papers define them, N/n Σ and (N/√n) S √f."""
    u, w, prior = linear_terms(model)
    rows, n_data = list(rows), len(u)
    n = len(rows)
    terms = u[rows, None, None] * x - w[rows, None, None]
    gradient = -(prior * x + n_data / n * terms.sum(axis=0))
    if estimator == "vanilla":
        return special.expit(z * gradient)
    if estimator == "extreme":
        return 0.5 + 0.5 * np.sign(gradient) + 0.0 * z
    tau = n_data / math.sqrt(n) * terms.std(axis=0, ddof=1) * (math.sqrt(1.0 - n / n_data) if distinct else 1.0)
    room = C**2 - tau**2 * z**2
    stretched = special.expit(z * gradient * C / np.sqrt(np.where(room > 0.0, room, 1.0)))
    return np.where(room > 0.0, stretched, 0.5 + 0.5 * np.sign(gradient))


def batches_law(estimator, distinct, fine):
    """Mean and variance: the sign's probability averaged over all batches of two."""
    every = list(itertools.combinations(range(6), 2) if distinct else itertools.product(range(6), repeat=2))

    def up(z, x):
        return sum(batch_sign(estimator, rows, distinct, z, x) for rows in every) / len(every)

    x, kernel = barker_lattice(up, SCALE, *ENDS, fine=fine)
    return lattice_moments(x, stationary(kernel))


@pytest.mark.parametrize("estimator", ["vanilla", "corrected", "extreme"])
@pytest.mark.parametrize("draw", in_ci(["iid", "distinct"], "distinct"))
def test_mini_batches(estimator, draw):
    """β = 1: the noise is that of the present batch, and the kernel one of θ alone."""
    truth = batches_law(estimator, draw == "distinct", 3)
    process = discrete.SGBD(Minibatch(MODEL, 2, draw=draw), SCALE, estimator, beta=1.0)
    assert_law(replicate(process, MODEL.mode(), 32, seed=66, steps=60_000), truth, 0.03)


def test_the_lattice_is_fine_enough_for_probabilities_that_jump():
    for estimator in ("corrected", "extreme"):
        (mean, var), (coarse_mean, coarse) = (batches_law(estimator, True, fine) for fine in (3, 2))
        assert abs(mean - coarse_mean) / math.sqrt(var) < 0.004 and abs(coarse / var - 1.0) < 0.004


@pytest.mark.release
def test_reshuffled_blocks():
    """Three blocks of two, all orders enumerated: the law at each place of an epoch, averaged over the places."""
    provider = Minibatch(MODEL, 2, draw="reshuffle")
    kernels = []
    for rows in ((0, 1), (2, 3), (4, 5)):
        x, kernel = barker_lattice(
            lambda z, x, rows=rows: batch_sign("vanilla", rows, True, z, x, provider.packed), SCALE, *ENDS
        )
        kernels.append(kernel)
    orders = list(itertools.permutations(kernels))
    start = stationary(sum(a @ b @ c for a, b, c in orders) / 6.0)
    law = (start + sum(start @ a + start @ a @ b for a, b, _ in orders) / 6.0) / 3.0
    truth = lattice_moments(x, law)
    process = discrete.SGBD(provider, SCALE, "vanilla")
    assert_law(replicate(process, MODEL.mode(), 32, seed=67, steps=60_000), truth, 0.03)
    assert abs(batches_law("vanilla", True, 1)[1] / truth[1] - 1.0) > 0.03  # so it matters
