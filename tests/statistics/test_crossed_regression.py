"""The sub-sampled Zig-Zag process of crossed intercepts, compiled: its law of normal observations."""

import math

import numpy as np
from scipy import linalg

import pdmp
from pdmp.models.regressions.laplace_crossed import laplace_crossed
from pdmp.models.regressions.likelihoods import NormalLaw
from pdmp.processes.crossed_zigzag import CrossedZigZag
from tests.checks import assert_unbiased
from tests.processes.test_crossed_zigzag import regression


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
    logs, means, squares = [], [], []
    for *s, a in points:
        precision = np.diag(prior)
        precision[np.ix_(model.means, model.means)] += model.numbers[0, 1] ** -2.0
        for k in range(K):
            own, m = np.arange(model.first[k], model.first[k + 1]), model.means[k]
            tau = math.exp(-2.0 * s[k])
            precision[own, own] += tau
            precision[own, m] -= tau
            precision[m, own] -= tau
            precision[m, m] += tau * len(own)
            share = model.share[own - first]
            precision[np.ix_(own, own)] += model.stiffness[k] * np.outer(share, share)
        rows = design * (model.weight * math.exp(-2.0 * a))[:, None]
        right, x = rows.T @ (model.target - model.offset), np.zeros(model.dim)
        factor = linalg.cho_factor((precision + rows.T @ design)[np.ix_(normal, normal)])
        x[normal] = linalg.cho_solve(factor, right[normal])
        x[p : p + K], x[-1] = s, a
        logs.append(-model.potential(x) - np.log(np.diag(factor[0])).sum())
        means.append(x)
        variance = np.zeros(model.dim)
        variance[normal] = np.diag(linalg.cho_solve(factor, np.eye(len(normal))))
        squares.append(variance + x * x)
    weight = np.exp(np.array(logs) - max(logs))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    return mean, weight @ np.array(squares) - mean**2


def test_the_law_of_normal_observations():
    """All coordinates, against the normal law given σ and τ, and quadrature over these."""
    model = regression(NormalLaw, n=60, columns=1)
    mean, variance = exact_moments(model)
    found = laplace_crossed(model)
    process, means, variances = CrossedZigZag(model, found.mean, np.sqrt(variance)), [], []
    for seed in range(12):
        start = found.draws(1, np.random.default_rng(100 + seed))[0]
        run = pdmp.sample(process, initial=start, time=2_000.0, seed=seed, warmup=0.1, progress=False)
        assert run.stats["bound_violations"] == 0
        means.append(run.mean())
        variances.append(run.var())
    assert_unbiased(np.array(means), mean, resolution=0.8 * np.sqrt(variance))
    assert_unbiased(np.array(variances), variance, resolution=2.5 * variance)  # of so few groups τ has long tails
