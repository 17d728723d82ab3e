"""The sub-sampled Zig-Zag process of crossed intercepts, compiled: its law of normal observations."""

import numpy as np
import pytest

import pdmp
from pdmp.models.regressions.likelihoods import NormalLaw
from pdmp.processes.regression_zigzag import RegressionZigZag
from tests.checks import assert_unbiased
from tests.processes.helpers_regression_zigzag import crossed


def exact_moments(model):
    """Of a normal law: means and variances of x, by quadrature over σ and τ of the normal law of the others."""
    p, n, K, first = model.n_fixed, model.n_data, model.n_groups, model.first[0]
    normal = np.setdiff1d(np.arange(model.dim), np.r_[np.arange(p, first), model.dim - 1])
    design, prior = np.zeros((n, model.dim)), np.zeros(model.dim)
    design[np.arange(n)[:, None], model.level] = 1.0
    for _, sd, j in [(0, model.numbers[q, 1], q) for q in range(1, p)]:
        design[:, j], prior[j] = model.X[:, j], sd**-2.0
    axes = [np.linspace(-3.5, 1.7, 25)] * K + [np.linspace(-0.6, 0.5, 17)]
    points = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    fixed, by_precision = np.diag(prior), np.zeros((K + 1, model.dim, model.dim))
    fixed[np.ix_(model.means, model.means)] += model.numbers[0, 1] ** -2.0
    for k in range(K):
        own, m = np.arange(model.first[k], model.first[k + 1]), model.means[k]
        by_precision[k, own, own], by_precision[k, m, m] = 1.0, len(own)
        by_precision[k, own, m] = by_precision[k, m, own] = -1.0
        share = model.share[own - first]
        fixed[np.ix_(own, own)] += model.stiffness[k] * np.outer(share, share)
    by_precision[K] = design.T @ (model.weight[:, None] * design)
    weights = np.exp(-2.0 * points)
    precision = (fixed + np.einsum("nk,kij->nij", weights, by_precision))[:, normal[:, None], normal]
    covariance = np.linalg.inv(precision)
    right = weights[:, K, None] * (design.T @ (model.weight * (model.target - model.offset)))[normal]
    means, squares = np.zeros((2, len(points), model.dim))
    means[:, normal] = np.einsum("nij,nj->ni", covariance, right)
    means[:, p : p + K], means[:, -1] = points[:, :K], points[:, K]
    squares[:, normal] = np.diagonal(covariance, axis1=1, axis2=2)
    squares += means**2
    logs = np.array([-model.potential(x) for x in means]) - 0.5 * np.linalg.slogdet(precision)[1]
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    mean = weight @ means
    return mean, weight @ squares - mean**2


@pytest.mark.slow
def test_the_law_of_normal_observations():
    """All coordinates, against the normal law given σ and τ, and quadrature over these."""
    model = crossed(NormalLaw, n=60, columns=1)
    mean, variance = exact_moments(model)
    sd = np.sqrt(variance)
    process, means, variances = RegressionZigZag(model, mean, metric=pdmp.Metric(scales=sd)), [], []
    for seed in range(12):
        start = mean + sd * np.random.default_rng(100 + seed).standard_normal(model.dim)
        run = pdmp.sample(process, initial=start, time=1_200.0, seed=seed, warmup=0.1, progress=False)
        assert run.stats["bound_violations"] == 0
        means.append(run.mean())
        variances.append(run.var())
    assert_unbiased(np.array(means), mean, resolution=0.8 * sd)
    assert_unbiased(np.array(variances), variance, resolution=2.5 * variance)  # of so few groups τ has long tails
