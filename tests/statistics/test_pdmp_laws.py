"""Tier 3: time averages of the continuous-time processes against the exact moments of their targets.

Independent replicates; each test states the smallest bias that it promises to see, in the target's own units.
"""

import numpy as np
import pytest

import pdmp
from tests.checks import assert_unbiased, in_ci, replicate

CORRELATED = 0.6 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10))) * np.outer(
    np.linspace(0.5, 2.0, 10), np.linspace(0.5, 2.0, 10)
)
ONE = pdmp.models.Gaussian([1.5], [4.0])
TEN = pdmp.models.Gaussian(np.arange(10.0), np.linalg.inv(CORRELATED))


def processes(target):
    """Every way in which the three processes run on a Gaussian."""
    noise = 0.5 * np.sqrt(np.diag(target.hessian(np.zeros(target.dim))))
    return {
        "BPS, affine": pdmp.BPS(target),
        "BPS, grid": pdmp.BPS(target, thinning="grid"),
        "ZigZag, inversion": pdmp.ZigZag(target),
        "ZigZag, affine": pdmp.ZigZag(target, thinning="affine"),
        "ZigZag, grid": pdmp.ZigZag(target, thinning="grid"),
        "SBPS": pdmp.SBPS(pdmp.gradients.Noisy(target, noise), k=5.0),
    }


def standardised(mean, var, target):
    """Errors of means in standard deviations, and ratios of variances: truth 0 and 1."""
    truth = np.diag(target.covariance())
    return (mean - target.mean) / np.sqrt(truth), var / truth


@pytest.mark.parametrize("name", in_ci(processes(ONE), "ZigZag, inversion", "SBPS"))
def test_one_dimension(name):
    mean, var, _ = replicate(processes(ONE)[name], [1.5], 32, seed=21, warmup=0.02, events=40_000)
    means, variances = standardised(mean, var, ONE)
    assert_unbiased(means, 0.0, resolution=0.04)
    assert_unbiased(variances, 1.0, resolution=0.05)


@pytest.mark.release
@pytest.mark.parametrize("name", processes(TEN))
def test_ten_correlated_dimensions(name):
    events = {"BPS": 120_000, "SBPS": 120_000, "ZigZag": 250_000}[name.split(",")[0]]
    mean, var, cov = replicate(processes(TEN)[name], np.arange(10.0), 32, seed=22, warmup=0.02, events=events)
    means, variances = standardised(mean, var, TEN)
    assert_unbiased(means, 0.0, resolution=0.08)
    assert_unbiased(variances, 1.0, resolution=0.12)
    if cov is not None:
        sd = np.sqrt(np.diag(CORRELATED))
        neighbours = (cov / np.outer(sd, sd))[:, np.arange(9), np.arange(1, 10)]
        assert_unbiased(neighbours, 0.6, resolution=0.1)


@pytest.mark.release
@pytest.mark.parametrize("name", ["BPS", "ZigZag"])
@pytest.mark.parametrize("shape", [2.0, 20.0])
def test_skew_normal_with_the_grid(name, shape):
    model = pdmp.models.SkewNormal(shape)
    process = pdmp.BPS(model, refresh_rate=1.0) if name == "BPS" else pdmp.ZigZag(model)
    mean, var, _ = replicate(process, [0.5], 32, seed=23, warmup=0.02, events=30_000)
    sd = np.sqrt(model.exact_variance)
    assert_unbiased((mean - model.exact_mean) / sd, 0.0, resolution=0.05)
    assert_unbiased(var / sd**2, 1.0, resolution=0.08)


def test_a_sparse_target_moves_one_coordinate_at_a_time():
    from scipy import sparse

    d = 30
    precision = sparse.diags([-np.ones(d - 1), np.full(d, 2.1), -np.ones(d - 1)], [-1, 0, 1])
    target = pdmp.models.Gaussian(np.zeros(d), precision)
    mean, var, _ = replicate(pdmp.ZigZag(target), np.zeros(d), 32, seed=24, warmup=0.02, events=400_000)
    means, variances = standardised(mean, var, target)
    assert_unbiased(means, 0.0, resolution=0.15)
    assert_unbiased(variances, 1.0, resolution=0.15)


def test_without_refreshment_bps_is_reducible_on_an_isotropic_target():
    # Identity B6: E|x|² depends on the start; with refreshment it is d.
    target = pdmp.models.Gaussian(np.zeros(2), np.ones(2))
    start = [0.5, 0.0]
    with pytest.warns(UserWarning, match="reducible"):
        stuck = pdmp.sample(pdmp.BPS(target, refresh_rate=0.0), initial=start, time=4_000.0, seed=25, store="moments")
    assert stuck.var().sum() + (stuck.mean() ** 2).sum() < 1.9
    free = pdmp.sample(pdmp.BPS(target, refresh_rate=0.5), initial=start, time=40_000.0, seed=25, store="moments")
    assert abs(free.var().sum() + (free.mean() ** 2).sum() - 2.0) < 0.1  # five standard errors
