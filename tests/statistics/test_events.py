"""Tier 2: by the random time change, the integrated rate between two events of a Poisson clock is Exp(1).

No stationarity, burn-in or effective sample size is needed: 10⁵ events show a wrong rate of 2 %.
"""

import numpy as np
import pytest
from scipy import special

import pdmp
from tests.checks import assert_exponential, in_ci
from tests.statistics.helpers_events import GAUSSIAN, MEAN, PRECISION, gaps, integral_of_positive_part

EVENTS = 100_000


@pytest.mark.parametrize("thinning", in_ci(["inversion", "affine", "grid"], "affine"))
def test_bps_bounces_at_its_rate_and_refreshes_at_its_own(thinning):
    process = pdmp.BPS(GAUSSIAN, refresh_rate=0.3, thinning=thinning)
    path = pdmp.sample(process, events=EVENTS, seed=11).trajectories[0]
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    a = np.einsum("ki,ij,kj->k", v, PRECISION, x - MEAN)
    b = np.einsum("ki,ij,kj->k", v, PRECISION, v)
    assert_exponential(gaps(path, integral_of_positive_part(a, b, s), 0), resolution=0.035)
    assert_exponential(gaps(path, 0.3 * s, 1), resolution=0.08)  # 12,000 refreshments


@pytest.mark.parametrize("thinning", in_ci(["inversion", "affine", "grid"], "inversion", "grid"))
def test_each_clock_of_zigzag_rings_at_its_rate(thinning):
    path = pdmp.sample(pdmp.ZigZag(GAUSSIAN, thinning=thinning), events=EVENTS, seed=12).trajectories[0]
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    flipped = np.argmax(path.velocities[1:] != path.velocities[:-1], axis=1)
    for i in range(3):
        a = v[:, i] * ((x - MEAN) @ PRECISION[i])
        b = v[:, i] * (v @ PRECISION[i])
        total = np.cumsum(integral_of_positive_part(a, b, s))
        assert_exponential(np.diff(total[flipped == i]), resolution=0.07)


@pytest.mark.release
def test_zigzag_with_the_grid_on_a_target_that_is_not_gaussian():
    shape = 3.0
    path = pdmp.sample(pdmp.ZigZag(pdmp.models.SkewNormal(shape)), events=EVENTS, seed=13).trajectories[0]

    def potential(x):
        return 0.5 * x * x - special.log_ndtr(shape * x)

    # (v ∂U)₊ integrates to the increases of U; U has one minimum, so a segment falls, then rises.
    lowest = 0.0
    for _ in range(50):
        z = shape * lowest
        mills = np.exp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(z))
        lowest -= (lowest - shape * mills) / (1.0 + shape**2 * mills * (mills + z))
    x0, x1 = path.positions[:-1, 0], path.positions[1:, 0]
    crosses = (x0 - lowest) * (x1 - lowest) < 0.0
    hazards = np.maximum(0.0, potential(x1) - potential(np.where(crosses, lowest, x0)))
    assert_exponential(gaps(path, hazards, 0), resolution=0.035)


def test_sbps_bounces_at_the_mean_rate_of_its_noisy_gradient():
    # E max(0, m + s Z) = m Φ(m/s) + s φ(m/s); k = 6 leaves no violation to speak of.
    noise = 1.5
    provider = pdmp.gradients.Noisy(GAUSSIAN, noise)
    run = pdmp.sample(pdmp.SBPS(provider, k=6.0, refresh_rate=0.3), events=60_000, seed=14, initial=MEAN)
    assert run.stats["bound_violations"] < 20
    path = run.trajectories[0]
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    a = np.einsum("ki,ij,kj->k", v, PRECISION, x - MEAN)
    b = np.einsum("ki,ij,kj->k", v, PRECISION, v)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    hazards = np.zeros(len(s))
    for node, weight in zip(nodes, weights, strict=True):
        m = a + b * s * 0.5 * (node + 1.0)
        z = m / noise
        density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
        hazards += 0.5 * weight * s * (m * special.ndtr(z) + noise * density)
    assert_exponential(gaps(path, hazards, 0), resolution=0.05)
    assert_exponential(gaps(path, 0.3 * s, 1), resolution=0.12)


def test_a_posterior_of_logistic_regression_with_the_models_bounds():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    y = (rng.random(60) < special.expit(X @ [1.0, -0.5])).astype(float)
    model = pdmp.models.LogisticRegression(X, y, prior_scale=2.0)
    run = pdmp.sample(pdmp.BPS(model, refresh_rate=1.0), events=EVENTS // 2, seed=15)
    path = run.trajectories[0]
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    # U is convex, so v·∇U changes sign once on a segment; the hazard is the rise of U after that.
    signs = 2.0 * y - 1.0

    def potential(p):
        return np.logaddexp(0.0, -signs * (p @ X.T)).sum(axis=1) + 0.125 * (p**2).sum(axis=1)

    def slope(p):
        return (-(signs * special.expit(-signs * (p @ X.T))) * (v @ X.T)).sum(axis=1) + 0.25 * (p * v).sum(axis=1)

    low, high = np.zeros(len(s)), s.copy()
    for _ in range(50):
        middle = 0.5 * (low + high)
        rising = slope(x + v * middle[:, None]) > 0.0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    start = np.where(slope(x) > 0.0, 0.0, high)
    hazards = np.maximum(0.0, potential(x + v * s[:, None]) - potential(x + v * start[:, None]))
    assert run.stats["bound_violations"] == 0
    assert_exponential(gaps(path, hazards, 0), resolution=0.05)
