"""Tier 3: time averages of SG-ZZ, SG-BPS and the splitting schemes against the laws that they have at their steps.

The laws come from the transition kernels, see `tests.lattice_laws`. Each test states the smallest error that it
promises to see, and how far from the target the law is that it finds.
"""

import numpy as np
import pytest
from scipy import stats

import discrete
from pdmp.gradients import Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, SkewNormal
from tests.checks import assert_unbiased, in_ci, linear_terms, replicate, sorted_blocks
from tests.discrete.helpers_discretised_pdmps import skew
from tests.lattice_laws import (
    batches,
    epoch_frozen_law,
    epoch_splitting_law,
    frozen_law,
    noisy,
    plane_law,
    splitting_law,
)

ONE = Gaussian([1.5], [1.0])
SKEW = SkewNormal(3.0)
SD = np.linspace(0.6, 1.4, 5)
COVARIANCE = 0.6 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))) * np.outer(SD, SD)
FIVE = Gaussian(np.arange(5.0), np.linalg.inv(COVARIANCE))


def regression():
    """Six data whose batches of two differ much: u from 0.2 to 6."""
    a = np.array([0.5, -0.7, 1.0, 1.3, -1.8, 2.4])
    return LinearGaussian(a[:, None], 0.8 * a + np.array([1.0, -0.5, 0.3, -1.2, 0.8, -0.2]))


def assert_law(found, mean, variance, resolution=0.02):
    """Means in units of the law's standard deviation, and variances in units of its variance."""
    assert_unbiased((found.mean - mean) / np.sqrt(variance), 0.0, resolution=resolution)
    assert_unbiased(found.var / variance, 1.0, resolution=resolution)


# ---------------------------------------------------------------------------------------------------------------
# SG-ZZ and SG-BPS


@pytest.mark.parametrize("tau, eps", [(0.0, 0.4), (2.0, 0.2)])
@pytest.mark.parametrize("name", in_ci(["SGZZ", "SGBPS"], "SGZZ"))
def test_frozen_rates_in_one_dimension(name, tau, eps):
    """Variances 1.17 and 1.21 instead of 1; refreshments at another rate change them by less than is seen."""
    options = {"refresh_rate": 0.5} if name == "SGBPS" else {}
    process = getattr(discrete, name)(Noisy(ONE, tau), eps, **options)
    found = replicate(process, [1.5], 32, seed=81, steps=200_000)
    _, variance = frozen_law(noisy(lambda x: x, tau), eps, options.get("refresh_rate", 0.0))
    assert variance > 1.15
    assert_law(found, 1.5, variance, resolution=0.03)


@pytest.mark.release
@pytest.mark.parametrize("name, draw", [("SGZZ", "iid"), ("SGBPS", "distinct")])
def test_frozen_rates_with_mini_batches(name, draw):
    """All 36 batches, or the 15 subsets, listed."""
    model = regression()
    (mode,), eps = model.mode(), 0.8 * np.sqrt(model.posterior()[1][0, 0])
    process = getattr(discrete, name)(
        Minibatch(model, 2, draw=draw), eps, **({"refresh_rate": 0.5} if draw == "distinct" else {})
    )
    found = replicate(process, [mode], 32, seed=82, steps=200_000)
    u, w, prior = linear_terms(model)
    laws = [
        frozen_law(batches(u, w, prior, 2, distinct), eps, 0.5 * (name == "SGBPS"), mode, 4.0)
        for distinct in (False, True)
    ]
    assert_law(found, *laws[draw == "distinct"], resolution=0.02)
    assert abs(laws[0][1] / laws[1][1] - 1.0) > 0.04  # so the two are told apart


@pytest.mark.release
@pytest.mark.parametrize("name", ["SGZZ", "SGBPS"])
def test_frozen_rates_with_reshuffled_blocks(name):
    """Two blocks of three data in both orders; a variance of 1.17 times the target's, and 1.39 if drawn independently.

    A block is drawn at each start of an interval and after each event, so that an epoch is two looks at the gradient.
    """
    model = regression()
    (mode,), sd = model.mode(), np.sqrt(model.posterior()[1][0, 0])
    eps, rate = 0.4 * sd, 0.5 * (name == "SGBPS")
    provider = sorted_blocks(model, 3)
    process = getattr(discrete, name)(provider, eps, **({"refresh_rate": rate} if rate else {}))
    found = replicate(process, [mode], 32, seed=91, steps=200_000)
    u, w, prior = linear_terms(provider.packed)
    sums = 2.0 * u.reshape(2, 3).sum(axis=1), 2.0 * w.reshape(2, 3).sum(axis=1)
    blocks = [lambda x, a=a, b=b: (prior + a) * x - b for a, b in zip(*sums, strict=True)]
    mean, variance = epoch_frozen_law(blocks, eps, rate, mode, 8.0 * sd, cells=8)
    independent = frozen_law([(0.5, g) for g in blocks], eps, rate, mode, 8.0 * sd)
    assert_law(found, mean, variance)
    assert independent[1] > 1.1 * variance > 1.1 * sd**2  # so the two are told apart


# ---------------------------------------------------------------------------------------------------------------
# Splitting schemes


@pytest.mark.parametrize(
    "cls, options", [(discrete.ZigZagSplitting, {}), (discrete.BPSSplitting, {"refresh_rate": 0.5})]
)
def test_splitting_in_one_dimension(cls, options):
    """With noise; without it this law is the target's, see the adjusted schemes."""
    found = replicate(cls(Noisy(ONE, 2.0), 0.4, **options), [1.5], 32, seed=85, steps=120_000)
    _, variance = splitting_law(noisy(lambda x: x, 2.0), 0.4, options.get("refresh_rate", 0.0))
    assert variance > 1.2
    assert_law(found, 1.5, variance)


@pytest.mark.release
def test_splitting_with_reshuffled_blocks():
    """Noise that cancels over an epoch, the law being averaged over all orders of three blocks."""
    model = regression()
    (mode,), eps = model.mode(), 0.8 * np.sqrt(model.posterior()[1][0, 0])
    provider = Minibatch(model, 2, draw="reshuffle")
    found = replicate(discrete.ZigZagSplitting(provider, eps), [mode], 32, seed=86, steps=100_000)
    u, w, prior = linear_terms(provider.packed)
    sums = 3.0 * u.reshape(3, 2).sum(axis=1), 3.0 * w.reshape(3, 2).sum(axis=1)
    blocks = [lambda x, a=a, b=b: (prior + a) * x - b for a, b in zip(*sums, strict=True)]
    mean, variance = epoch_splitting_law(blocks, eps, mode, 4.0)
    assert_law(found, mean, variance)
    assert abs(splitting_law([(1.0 / 3.0, g) for g in blocks], eps, middle=mode, reach=4.0)[1] / variance - 1.0) > 0.05


def test_splitting_in_two_correlated_dimensions():
    precision = np.array([[1.0, 0.6], [0.6, 1.5]])
    process = discrete.ZigZagSplitting(Noisy(Gaussian(0.0, precision), 1.5), 0.5)
    found = replicate(process, [0.0, 0.0], 32, seed=87, steps=120_000)
    truth = plane_law(precision, 1.5, 0.5, 7.0)
    assert_unbiased(found.mean, 0.0, resolution=0.03)
    assert_unbiased(found.cov[:, *np.triu_indices(2)], truth[np.triu_indices(2)], resolution=0.03)
    assert np.abs(truth - np.linalg.inv(precision)).max() > 0.2


@pytest.mark.release
@pytest.mark.parametrize("adjusted", [False, True])
def test_splitting_on_a_skew_normal(adjusted):
    """The adjusted law is the target's on the lattice; the unadjusted one is off by 5 % of a standard deviation."""
    eps = 0.8
    x = 0.5 + eps * np.arange(-10, 11)
    target = stats.norm.pdf(x) * stats.norm.cdf(3.0 * x)
    target /= target.sum()
    truth = target @ x, target @ (x - target @ x) ** 2
    biased = splitting_law(noisy(skew, 0.0), eps, middle=0.5)
    assert abs(biased[0] - truth[0]) > 0.04 * np.sqrt(truth[1])
    found = replicate(discrete.ZigZagSplitting(Full(SKEW), eps, adjusted=adjusted), [0.5], 32, seed=88, steps=100_000)
    assert_law(found, *(truth if adjusted else biased))


@pytest.mark.parametrize(
    "name, adjusted, eps", [("ZigZag", False, 0.7), ("ZigZag", True, 0.7), ("BPS", True, 1.0), ("BPS", False, 0.3)]
)
def test_splitting_leaves_a_gaussian_in_five_correlated_dimensions(name, adjusted, eps):
    """Zig-Zag at any step, adjusted or not; the other one adjusted, or at small steps, up to 0.005."""
    if name == "ZigZag":
        process = discrete.ZigZagSplitting(Full(FIVE), eps, adjusted=adjusted)
    else:
        process = discrete.BPSSplitting(Full(FIVE), eps, 0.3, adjusted=adjusted)
    found = replicate(process, FIVE.mean, 32, seed=89, steps=round(60_000 / eps))
    assert_unbiased((found.mean - FIVE.mean) / SD, 0.0, resolution=0.04)
    j, k = np.triu_indices(5)
    truth = COVARIANCE / np.outer(SD, SD)
    assert_unbiased((found.cov / np.outer(SD, SD))[:, j, k], truth[j, k], resolution=0.06)


def test_bps_splitting_leaves_a_sphere_of_normals_at_any_step():
    process = discrete.BPSSplitting(Full(Gaussian(0.0, np.full(3, 4.0))), 0.5, 0.5)
    found = replicate(process, np.zeros(3), 32, seed=90, steps=60_000)
    assert_unbiased(4.0 * found.var, 1.0, resolution=0.04)
