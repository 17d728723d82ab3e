"""The law of a regression whose posterior is known in closed form and is not Gaussian."""

import numpy as np

import pdmp
from tests.checks import assert_unbiased, replicate

RNG = np.random.default_rng(31)
X = RNG.standard_normal((12, 1))
Y = 0.5 * X[:, 0] + RNG.standard_normal(12)


def test_zigzag_samples_the_normal_inverse_gamma_posterior():
    """Under exact bounds on pieces of the path; means within 5 % of the standard deviations, variances within 10 %."""
    model = pdmp.models.NormalInverseGammaRegression(X, Y, shape=2.0)
    process = pdmp.ZigZag(model, thinning=pdmp.thinning.LocalHessian(), metric="auto")
    found = replicate(process, model.mode(), 32, 7, events=40_000)
    mean, covariance = model.posterior()
    variance = np.diag(covariance)
    assert_unbiased(found.mean, mean, resolution=0.05 * np.sqrt(variance))
    assert_unbiased(found.var, variance, resolution=0.1 * variance)
