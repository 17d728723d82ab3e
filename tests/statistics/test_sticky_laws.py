"""Inclusion probabilities of the sticky processes against enumeration of all models; their clocks against Exp(1)."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import pdmp
from tests.checks import assert_unbiased, run_chain

RNG = np.random.default_rng(81)
D, N, SCALE = 5, 15, 1.3
A = RNG.standard_normal((N, D))
A[:, 1] += 0.7 * A[:, 0]
Y = A @ [0.8, 0.0, 0.0, -0.3, 0.4] + RNG.standard_normal(N)
PRIOR = np.array([0.3, 0.5, 0.6, 0.4, 0.2])
LINEAR = pdmp.models.LinearGaussian(A, Y, prior_scale=SCALE)

X = RNG.standard_normal((20, 2))
LABELS = (X @ [1.0, 0.0] + RNG.logistic(size=20) > 0.0).astype(float)
LOGISTIC = pdmp.models.LogisticRegression(X, LABELS, prior_scale=SCALE)


def normalised(logs):
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {model: math.exp(value - top) / total for model, value in logs.items()}


def log_prior(model, prior):
    return sum(math.log(w if j in model else 1.0 - w) for j, w in enumerate(prior))


def linear_models():
    """Posterior probability of each of the 2^d models, from the marginal likelihoods N(0, I + s² A_m A_mᵀ)."""
    logs = {}
    for size in range(D + 1):
        for model in itertools.combinations(range(D), size):
            part = A[:, list(model)]
            marginal = stats.multivariate_normal(np.zeros(N), np.eye(N) + SCALE**2 * part @ part.T)
            logs[model] = marginal.logpdf(Y) + log_prior(model, PRIOR)
    return normalised(logs)


def logistic_models(prior):
    """The same for logistic regression in two dimensions, by quadrature over the slab."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    grid, weights = 10.0 * nodes, 10.0 * weights * stats.norm.pdf(10.0 * nodes, scale=SCALE)
    sign = 2.0 * LABELS - 1.0

    def likelihood(a, b):
        return np.exp(-np.logaddexp(0.0, -sign * (np.stack(np.broadcast_arrays(a, b), -1) @ X.T)).sum(axis=-1))

    marginal = {
        (): likelihood(0.0, 0.0),
        (0,): weights @ likelihood(grid, 0.0),
        (1,): weights @ likelihood(0.0, grid),
        (0, 1): weights @ likelihood(grid[:, None], grid[None, :]) @ weights,
    }
    return normalised({m: math.log(value) + log_prior(m, prior) for m, value in marginal.items()})


def sparsities(process, models, initial, seed, **budget):
    """Estimated probabilities of the models, one row for each of 32 chains."""
    found = []
    for child in np.random.SeedSequence(seed).spawn(32):
        record = run_chain(process, initial, child, warmup=0.01, store="moments", **budget).finish()
        sticking, time = record.accumulated["sticking"], record.accumulated["models"] / record.length
        place = [sum(1 << list(sticking).index(j) for j in model) for model in models]
        found.append(time[place])
    return np.array(found)


PROCESSES = {
    "ZigZag": lambda: pdmp.StickyZigZag(LINEAR, PRIOR),
    "BPS": lambda: pdmp.StickyBPS(LINEAR, PRIOR),
    "Boomerang": lambda: pdmp.StickyBoomerang(LINEAR, PRIOR),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_all_models_of_a_linear_regression(name):
    truth = linear_models()
    found = sparsities(PROCESSES[name](), list(truth), np.ones(D), 96, events=60_000)
    assert_unbiased(found, list(truth.values()), resolution=0.03)
    included = [sum(p for model, p in truth.items() if j in model) for j in range(D)]
    run = pdmp.sample(PROCESSES[name](), events=200_000, seed=97, store="moments")
    np.testing.assert_allclose(run.inclusion(), included, atol=0.05)


@pytest.mark.parametrize("make", [pdmp.StickyZigZag, pdmp.StickyBPS], ids=["ZigZag", "BPS"])
def test_all_models_of_a_logistic_regression(make):
    prior = [0.4, 0.6]
    truth = logistic_models(prior)
    found = sparsities(make(LOGISTIC, prior), list(truth), np.ones(2), 98, events=25_000)
    assert_unbiased(found, list(truth.values()), resolution=0.025)


@pytest.mark.parametrize("name", PROCESSES)
def test_each_clock_rings_at_its_rate_among_the_coordinates_that_move(name):
    events = 400_000 if name == "ZigZag" else 100_000  # of all coordinates together
    check = pdmp.validation.check_clocks(PROCESSES[name](), events=events, seed=99)
    assert check.p > 1e-6, check
    assert len(check.clocks) == (D if name == "ZigZag" else 2)
    assert check.resolution < 0.06
