"""The law of SGLD on the smallest factorisation, one user and one item, against quadrature."""

import numpy as np

import discrete
from pdmp.gradients import Minibatch
from pdmp.models import MatrixFactorization
from tests.checks import assert_unbiased, replicate


def test_the_product_of_two_factors_has_its_law():
    """E[wh] and E[w²] of w, h given N ratings; the step leaves a bias far below the resolution."""
    n, noise = 12, 1.5
    ratings = 1.0 + noise * np.linspace(-1.0, 1.0, n)
    zeros = np.zeros(n, int)
    model = MatrixFactorization(zeros, zeros, ratings, 1, noise_scale=noise, user_scale=1.0, item_scale=0.7)
    grid = np.linspace(-6.0, 6.0, 801)
    w, h = np.meshgrid(grid, grid, indexing="ij")
    log = -0.5 * n * (w * h - ratings.mean()) ** 2 / noise**2 - 0.5 * w**2 - 0.5 * (h / 0.7) ** 2
    density = np.exp(log)
    density /= density.sum()
    truth = [(density * f).sum() for f in (w * h, w**2, h**2)]
    process = discrete.SGLD(Minibatch(model, 6), step=4e-3)
    found = replicate(process, [1.0, 1.0], 16, seed=3, steps=400_000)
    second = found.cov + found.mean[:, :, None] * found.mean[:, None, :]
    estimates = np.stack([second[:, 0, 1], second[:, 0, 0], second[:, 1, 1]], axis=1)
    assert_unbiased(estimates, truth, resolution=[0.05, 0.1, 0.05])
