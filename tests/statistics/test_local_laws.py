"""Local BPS and the coordinate sampler: each clock rings at its rate, and averages are those of their targets.

The integrated true rate between two events of a clock is Exp(1), by the random time change; averages over independent
replicates are compared with closed forms, with the global BPS's target, and with quadrature.
"""

import numpy as np
import pytest
from scipy import sparse, special

import pdmp
from pdmp.factors.graph import FactorGraph, from_model
from tests.checks import assert_exponential, assert_unbiased, in_ci, replicate
from tests.statistics.helpers_events import integral_of_positive_part

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)
RNG = np.random.default_rng(5)
X = RNG.standard_normal((30, 2)) + [0.5, 0.0]
Y = (RNG.random(30) < special.expit(X @ [1.0, -0.5])).astype(float)
LOGISTIC = pdmp.models.LogisticRegression(X, Y, prior_scale=2.0)
SIGNS = 2.0 * Y - 1.0


def segments(process, events, seed):
    """Where each stretch between events begins, its velocity, its length; what it ends with, and what turned there."""
    path = pdmp.sample(process, events=events, seed=seed).trajectories[0]
    turned = path.velocities[1:] != path.velocities[:-1]
    return path.positions[:-1], path.velocities[:-1], np.diff(path.times), path.kinds, turned


def gaps(hazards, rings):
    """Integrated hazard between successive rings."""
    return np.diff(np.cumsum(hazards)[np.flatnonzero(rings)])


def test_each_factor_bounces_at_its_own_rate():
    """Of a chain: the diagonal shared in proportion to what is beside it. The refreshments of each coordinate too."""
    process = pdmp.LocalBPS(GAUSSIAN, refresh_rate=0.3)
    x, v, s, kinds, turned = segments(process, 100_000, 31)
    middle = 1.5 * np.array([8.0, 3.0]) / 11.0
    blocks = [np.array([[2.0, 0.8], [0.8, middle[0]]]), np.array([[middle[1], 0.3], [0.3, 1.0]])]
    for f, block in enumerate(blocks):
        y, w = (x - MEAN)[:, f : f + 2], v[:, f : f + 2]
        a, b = np.einsum("ki,ij,kj->k", w, block, y), np.einsum("ki,ij,kj->k", w, block, w)
        rings = (kinds == 0) & turned[:, f] & turned[:, f + 1]
        assert_exponential(gaps(integral_of_positive_part(a, b, s), rings), resolution=0.06)
    for j in range(3):
        assert_exponential(gaps(0.3 * s, (kinds == 1) & turned[:, j]), resolution=0.12)
    assert np.all(turned.sum(axis=1) == np.where(kinds == 0, 2, 1))


@pytest.mark.parametrize("thinning", in_ci(["inversion", "affine", "grid"], "inversion"))
def test_the_coordinate_sampler_switches_at_its_rate(thinning):
    process = pdmp.CoordinateSampler(GAUSSIAN, refresh_rate=0.3, thinning=thinning)
    x, v, s, kinds, _ = segments(process, 60_000, 33)
    a = np.einsum("ki,ij,kj->k", v, PRECISION, x - MEAN)
    b = np.einsum("ki,ij,kj->k", v, PRECISION, v)
    # A switch to where it was going and a refreshment to the same leave no trace but their kinds.
    assert_exponential(gaps(integral_of_positive_part(a, b, s), kinds == 0), resolution=0.05)
    assert_exponential(gaps(0.3 * s, kinds == 1), resolution=0.08)


def test_the_next_coordinate_is_drawn_by_the_rates_of_the_reverses():
    """Over a whole path: how often each velocity is chosen, minus what it should be, has mean zero."""
    process = pdmp.CoordinateSampler(GAUSSIAN, refresh_rate=0.3)
    path = pdmp.sample(process, events=100_000, seed=34).trajectories[0]
    gradient = (path.positions[1:] - MEAN) @ PRECISION
    total = np.abs(gradient).sum(axis=1) + 6 * 0.3
    for j in range(3):
        for sign in (1.0, -1.0):
            chosen = path.velocities[1:, j] == sign
            q = (np.maximum(0.0, -sign * gradient[:, j]) + 0.3) / total
            z = np.sum(chosen - q) / np.sqrt(np.sum(q * (1.0 - q)))
            assert abs(z) < 5.5


# ---------------------------------------------------------------------------------------------------------------
# Averages

D = 12
CHAIN = pdmp.models.Gaussian(
    np.linspace(-1.0, 1.0, D), sparse.diags([-np.ones(D - 1), np.full(D, 2.1), -np.ones(D - 1)], [-1, 0, 1])
)
ON_THE_CHAIN = {
    "LocalBPS": (lambda: pdmp.LocalBPS(CHAIN), 200_000),
    "LocalBPS rows": (lambda: pdmp.LocalBPS(CHAIN, from_model(CHAIN, by="rows"), refresh="factor"), 200_000),
    "LocalBPS one factor": (
        lambda: pdmp.LocalBPS(CHAIN, FactorGraph([range(D)], D), refresh="global", refresh_rate=0.3),
        60_000,
    ),
    "BPS": (lambda: pdmp.BPS(CHAIN), 60_000),
    "CoordinateSampler": (lambda: pdmp.CoordinateSampler(CHAIN), 300_000),
}


@pytest.mark.parametrize("name", in_ci(ON_THE_CHAIN, "LocalBPS", "LocalBPS rows", "CoordinateSampler"))
def test_local_and_global_samplers_have_the_same_law_on_a_chain(name):
    make, events = ON_THE_CHAIN[name]
    mean, var, _ = replicate(make(), CHAIN.mean, 32, seed=35, warmup=0.05, events=events)
    truth = np.diag(CHAIN.covariance())
    assert_unbiased((mean - CHAIN.mean) / np.sqrt(truth), 0.0, resolution=0.12)
    assert_unbiased(var / truth, 1.0, resolution=0.12)


def quadrature():
    """Mean and variances of the posterior of `LOGISTIC`, on a lattice."""
    mode, hessian = LOGISTIC.mode(), LOGISTIC.hessian(LOGISTIC.mode())
    root = np.linalg.cholesky(np.linalg.inv(hessian))
    u = np.linspace(-9.0, 9.0, 181)
    points = mode + np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2) @ root.T
    log = -np.logaddexp(0.0, -SIGNS * (points @ X.T)).sum(axis=1) - 0.125 * (points**2).sum(axis=1)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, weights @ (points - mean) ** 2


ON_THE_REGRESSION = {
    "columns": lambda: pdmp.LocalBPS(LOGISTIC, refresh_rate=0.3),
    "rows": lambda: pdmp.LocalBPS(LOGISTIC, refresh_rate=0.3, thinning="rows"),
    "anchored": lambda: pdmp.LocalBPS(pdmp.gradients.ControlVariate(LOGISTIC, 1, anchor=[0.5, 0.2]), refresh_rate=0.3),
    "affine": lambda: pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC), refresh_rate=0.3, refresh="global"),
    "grid": lambda: pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC), refresh_rate=0.3, refresh="global", thinning="grid"),
    "CoordinateSampler": lambda: pdmp.CoordinateSampler(LOGISTIC),
}


@pytest.mark.parametrize("name", in_ci(ON_THE_REGRESSION, "anchored"))
def test_a_regression_against_quadrature(name):
    truth, variances = quadrature()
    mean, var, _ = replicate(ON_THE_REGRESSION[name](), LOGISTIC.mode(), 32, seed=36, warmup=0.02, events=40_000)
    assert_unbiased((mean - truth) / np.sqrt(variances), 0.0, resolution=0.12)
    assert_unbiased(var / variances, 1.0, resolution=0.15)
