"""Time averages of bounded processes against truncated targets, and the clocks within them against Exp(1)."""

import math

import numpy as np
import pytest
from scipy import stats

import pdmp
from tests.checks import assert_unbiased, in_ci, replicate
from tests.targets import Quartic

PRECISION = np.array([[2.0, 0.8], [0.8, 1.5]])
MEAN = np.array([-0.5, 0.3])
MODEL = pdmp.models.Gaussian(MEAN, PRECISION)
#: A box without its lower left wall, and a corner cut off.
WALLS = {"lower": [-np.inf, -0.2], "upper": [0.4, 1.0], "halfspaces": [([1.0, 1.0], 1.0), ([-1.0, 2.0], 2.2)]}
PROCESSES = {
    "BPS": lambda: pdmp.BPS(MODEL, 0.5),
    "ZigZag": lambda: pdmp.ZigZag(MODEL),
    "Boomerang": lambda: pdmp.Boomerang(MODEL, [0.2, 0.1], metric=pdmp.Metric(covariance=[[1.0, 0.4], [0.4, 0.7]])),
    "ZigZag, grid": lambda: pdmp.ZigZag(MODEL, thinning="grid"),
}


def quadrature(moments):
    """E of functions of (x, y) on the target truncated by `WALLS`, by Gauss-Legendre between its corners."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    # Left of -2.6 the fourth wall crosses the first; from -0.2 on it lies above the second; from 0 on the third cuts.
    knots = np.array([-2.6, -2.0, -1.0, -0.2, 0.0, 0.4])
    total = np.zeros(len(moments) + 1)
    for a, b in zip(knots[:-1], knots[1:], strict=True):
        for u, w in zip(nodes, weights, strict=True):
            x = 0.5 * (a + b) + 0.5 * (b - a) * u
            low, high = -0.2, min(1.0, 1.0 - x, 0.5 * (2.2 + x))
            y = 0.5 * (low + high) + 0.5 * (high - low) * nodes
            z = np.stack([np.full_like(y, x), y]) - MEAN[:, None]
            p = np.exp(-0.5 * np.einsum("ik,ij,jk->k", z, PRECISION, z)) * weights * (high - low) * w * (b - a)
            total += [p.sum(), *((p * f(x, y)).sum() for f in moments)]
    return total[1:] / total[0]


@pytest.mark.parametrize("name", in_ci(PROCESSES, "BPS"))
def test_a_polygon(name):
    process = pdmp.Bounded(PROCESSES[name](), **WALLS)
    mean, var, cov = replicate(process, [-0.5, 0.2], 32, seed=91, events=20_000)
    x, y, xx, yy, xy = quadrature(
        [lambda x, y: x, lambda x, y: y, lambda x, y: x * x, lambda x, y: y * y, lambda x, y: x * y]
    )
    assert_unbiased(mean, [x, y], resolution=[0.03, 0.015])
    assert_unbiased(var, [xx - x * x, yy - y * y], resolution=[0.03, 0.006])
    if cov is not None:
        assert_unbiased(cov[:, 0, 1], xy - x * y, resolution=0.01)


@pytest.mark.parametrize("name", in_ci(["BPS", "ZigZag"], "ZigZag"))
def test_the_positive_orthant(name):
    """Closed forms for the correlation ρ: mass, mean and mean square of a standard normal pair above 0."""
    rho = 0.6
    target = pdmp.models.Gaussian([0.0, 0.0], np.linalg.inv([[1.0, rho], [rho, 1.0]]))
    process = pdmp.Bounded(pdmp.BPS(target, 0.5) if name == "BPS" else pdmp.ZigZag(target), lower=0.0)
    mass = 0.25 + math.asin(rho) / (2.0 * math.pi)
    mean = (1.0 + rho) / (2.0 * math.sqrt(2.0 * math.pi)) / mass
    square = 1.0 + rho * math.sqrt(1.0 - rho**2) / (2.0 * math.pi) / mass
    found = replicate(process, [1.0, 1.0], 32, seed=92, events=20_000)
    assert_unbiased(found.mean, mean, resolution=0.03)
    assert_unbiased(found.var, square - mean**2, resolution=0.03)


@pytest.mark.release
@pytest.mark.parametrize("low, high", [(-1.0, 0.5), (1.5, math.inf)])
def test_one_dimension(low, high):
    target = pdmp.models.Gaussian([0.0], [1.0])
    process = pdmp.Bounded(pdmp.ZigZag(target), lower=low, upper=high)
    mean, var, _ = replicate(process, [max(low, 0.0)], 32, seed=93, events=10_000)
    truth = stats.truncnorm(low, high)
    assert_unbiased(mean, truth.mean(), resolution=0.02)
    assert_unbiased(var, truth.var(), resolution=0.02)


@pytest.mark.release  # that nothing is asked beyond a wall, tests/processes/test_bounded.py has
def test_a_target_that_ends_at_the_wall():
    """The gradient beyond it is not a number."""
    target = Quartic(wall=0.3)
    process = pdmp.Bounded(pdmp.ZigZag(target), lower=0.3)
    mean, var, _ = replicate(process, [0.7], 32, seed=94, events=10_000)
    truth = target.moments()
    assert_unbiased(mean, truth[0], resolution=0.02)
    assert_unbiased(var, truth[1], resolution=0.015)


@pytest.mark.parametrize("name", in_ci(["BPS", "ZigZag, grid"], "BPS"))
def test_between_the_walls_each_clock_rings_at_its_rate(name):
    check = pdmp.validation.check_clocks(pdmp.Bounded(PROCESSES[name](), **WALLS), events=100_000, seed=95)
    assert check.p > 1e-6, check
    assert check.resolution < 0.06
