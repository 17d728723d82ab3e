"""Tier 3: MALA and the Metropolised Barker proposal leave their targets alone, at steps where nothing else would.

Each step is so large that the same proposal without the correction has a law that is off by more than ten times what
the test promises to see; that is asserted too.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import discrete
import pdmp
from discrete.laws import langevin_covariance
from pdmp.models import Gaussian, SkewNormal
from tests.checks import assert_unbiased, barker_lattice, in_ci, lattice_moments, replicate, stationary
from tests.targets import Quartic

FORMS = list(itertools.product(("bimodal", "gaussian"), ("coordinates", "single")))
ONE = Gaussian([1.5], [1.0])
D = 5
COVARIANCE = 0.6 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))) * np.outer(
    np.linspace(0.5, 1.5, D), np.linspace(0.5, 1.5, D)
)
FIVE = Gaussian(np.arange(float(D)), np.linalg.inv(COVARIANCE))
SKEW = SkewNormal(5.0)


def langevin_moments(model, step, low, high, n=1501):
    """Mean and variance of x - γ ∇U + √(2γ) ξ without correction, by quadrature of its kernel."""
    x = np.linspace(low, high, n)
    drift = np.array([model.gradient([v])[0] for v in x])
    kernel = stats.norm.pdf(x[None, :], np.clip(x - step * drift, low, high)[:, None], math.sqrt(2.0 * step))
    return lattice_moments(x, stationary(kernel / kernel.sum(axis=1, keepdims=True)))


def barker_moments(model, scale, low, high):
    """The same without correction of the Barker proposal."""

    def up(z, x):
        return special.expit(-z * np.array([[model.gradient([v])[0] for v in x[0]]]))

    x, kernel = barker_lattice(up, scale, low, high)
    return lattice_moments(x, stationary(kernel))


def assert_law(process, initial, truth, resolution, *, steps, seed, replicates=32, **options):
    """Mean and variance of every coordinate; their resolution in units of the sd and of the variance."""
    mean, var = np.broadcast_arrays(*map(np.atleast_1d, truth))
    found = replicate(process, initial, replicates, seed=seed, steps=steps, **options)
    assert_unbiased((found.mean - mean) / np.sqrt(var), 0.0, resolution=resolution)
    assert_unbiased(found.var / var, 1.0, resolution=resolution)
    return found


def assert_far(other, truth, resolution):
    """Without the correction mean or variance would be off by more than ten times the resolution."""
    error = max(abs(other[0] - truth[0]) / math.sqrt(truth[1]), abs(other[1] / truth[1] - 1.0))
    assert error > 10.0 * resolution, error


# ---------------------------------------------------------------------------------------------------------------
# One dimension


def test_mala_on_a_normal_distribution():
    assert_law(discrete.MALA(ONE, 1.2, adapt=False), [1.5], (1.5, 1.0), 0.02, steps=60_000, seed=1)
    assert_far((1.5, 2.0 / (2.0 - 1.2)), (1.5, 1.0), 0.02)


def test_mala_on_the_skew_normal_distribution():
    truth = SKEW.exact_mean, SKEW.exact_variance
    assert_law(discrete.MALA(SKEW, 0.3, adapt=False), [0.8], truth, 0.03, steps=60_000, seed=3)
    assert_far(langevin_moments(SKEW, 0.3, -5.0, 25.0), truth, 0.03)


@pytest.mark.parametrize("increments, signs", FORMS)
def test_barker_on_the_skew_normal_distribution(increments, signs):
    truth = SKEW.exact_mean, SKEW.exact_variance
    process = discrete.Barker(SKEW, 1.0, increments, signs, adapt=False)
    assert_law(process, [0.8], truth, 0.03, steps=60_000, seed=4)
    assert_far(barker_moments(SKEW, 1.0, -4.0, 8.0), truth, 0.03)


@pytest.mark.parametrize("wall", in_ci([-math.inf, 0.0], 0.0))
@pytest.mark.parametrize("make, step", [(discrete.MALA, 0.45), (discrete.Barker, 1.1)])
def test_a_quartic_target_and_a_wall_at_which_it_ends(make, step, wall):
    """Without the correction no wall would be seen at all, and MALA's proposal would diverge."""
    model = Quartic(wall=wall)
    assert_law(make(model, step, adapt=False), [0.5], model.moments(), 0.03, steps=150_000, seed=5)
    if make is discrete.Barker:
        assert_far(barker_moments(Quartic(), step, -6.0, 6.0), model.moments(), 0.03)


@pytest.mark.parametrize("make, step", [(discrete.MALA, 0.01), (discrete.Barker, 30.0)])
def test_after_a_warm_up_that_adapts_the_step(make, step):
    """From the mode on, the warm-up not counted."""
    truth = SKEW.exact_mean, SKEW.exact_variance
    assert_law(make(SKEW, step), [0.8], truth, 0.03, steps=100_000, seed=7, warmup=0.05)


# ---------------------------------------------------------------------------------------------------------------
# Five correlated dimensions


SD = np.sqrt(np.diag(COVARIANCE))


def check_five(process, seed, unadjusted, steps):
    resolution = 0.03
    found = assert_law(process, FIVE.mean, (FIVE.mean, SD**2), resolution, steps=steps, seed=seed)
    j, k = np.triu_indices(D, 1)
    scaled = (found.cov / np.outer(SD, SD))[:, j, k]
    assert_unbiased(scaled, (COVARIANCE / np.outer(SD, SD))[j, k], resolution=resolution)
    error = np.abs(unadjusted / SD**2 - 1.0).max()
    assert error > 10.0 * resolution, error


@pytest.mark.parametrize(
    "p, step, steps", [(np.ones(D), 1.2, 300_000), (SD**2, 1.4, 150_000), (COVARIANCE, 0.8, 100_000)]
)
def test_mala_in_five_dimensions(p, step, steps):
    """Steps relative to the largest curvature of L'HL, P = LL'."""
    root = np.linalg.cholesky(np.diag(p) if p.ndim == 1 else p)
    hessian = root.T @ np.linalg.inv(COVARIANCE) @ root
    step /= np.linalg.eigvalsh(hessian)[-1]
    unadjusted = root @ langevin_covariance(hessian, np.zeros((D, D)), step) @ root.T
    check_five(
        discrete.MALA(FIVE, step, metric=pdmp.Metric(covariance=p), adapt=False),
        8,
        np.diag(unadjusted),
        steps,
    )


def barker_without_correction(scale, increments, signs, chains=1_000, steps=200):
    """Variances of the Barker proposal alone, from many short chains."""
    rng, precision = np.random.default_rng(0), np.linalg.inv(COVARIANCE)
    x = rng.multivariate_normal(np.zeros(D), COVARIANCE, chains)
    for _ in range(steps):
        z = rng.standard_normal((chains, D))
        if increments == "bimodal":
            z = rng.choice([-1.0, 1.0], (chains, D)) * (1.0 + 0.1 * z)
        z *= scale
        along = -z * (x @ precision)
        if signs == "single":
            along = along.sum(axis=1, keepdims=True)
        x += np.where(rng.random(along.shape) < special.expit(along), z, -z)
    return x.var(axis=0)


@pytest.mark.parametrize("increments, signs", FORMS)
def test_barker_in_five_dimensions(increments, signs):
    scale = (1.2 if signs == "coordinates" else 0.8) * SD
    unadjusted = barker_without_correction(scale, increments, signs)
    check_five(discrete.Barker(FIVE, scale, increments, signs, adapt=False), 9, unadjusted, 100_000)
