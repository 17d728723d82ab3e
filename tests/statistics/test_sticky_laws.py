"""Inclusion probabilities of the sticky processes against enumeration of all models; their clocks against Exp(1)."""

import itertools
import math

import numba
import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.processes.sticky_groups import StickyGroups
from tests.checks import assert_unbiased, in_ci, run_chain

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
    "ZigZag": lambda: pdmp.Sticky(pdmp.ZigZag(LINEAR), PRIOR),
    "BPS": lambda: pdmp.Sticky(pdmp.BPS(LINEAR, velocities="gaussian"), PRIOR),
    "Boomerang": lambda: pdmp.Sticky(pdmp.Boomerang(LINEAR, metric="diagonal"), PRIOR),
}


@pytest.mark.parametrize("name", in_ci(PROCESSES, "ZigZag"))
def test_all_models_of_a_linear_regression(name):
    truth = linear_models()
    found = sparsities(PROCESSES[name](), list(truth), np.ones(D), 96, events=70_000)
    assert_unbiased(found, list(truth.values()), resolution=0.03)
    included = [sum(p for model, p in truth.items() if j in model) for j in range(D)]
    run = pdmp.sample(PROCESSES[name](), events=200_000, seed=97, store="moments")
    np.testing.assert_allclose(pdmp.diagnostics.inclusion(run), included, atol=0.05)


@pytest.mark.release
@pytest.mark.parametrize("kind, options", [(pdmp.ZigZag, {}), (pdmp.BPS, {"velocities": "gaussian"})])
def test_all_models_of_a_logistic_regression(kind, options):
    prior = [0.4, 0.6]
    truth = logistic_models(prior)
    found = sparsities(pdmp.Sticky(kind(LOGISTIC, **options), prior), list(truth), np.ones(2), 98, events=25_000)
    assert_unbiased(found, list(truth.values()), resolution=0.025)


@pytest.mark.parametrize("name", in_ci(PROCESSES))
def test_each_clock_rings_at_its_rate_among_the_coordinates_that_move(name):
    events = 400_000 if name == "ZigZag" else 100_000  # of all coordinates together
    check = pdmp.validation.check_clocks(PROCESSES[name](), events=events, seed=99)
    assert check.p > 1e-6, check
    assert len(check.clocks) == (D if name == "ZigZag" else 2)
    assert check.resolution < 0.06


# ---------------------------------------------------------------------------------------------------------------
# Two hundred coefficients: too many models to list


MANY, ROWS, SLAB, INCLUDED = 200, 300, 0.5, 0.05
RESOLUTION = 5.0  #: standard errors of the difference: of 200 numbers none is off by as much, but once in 8,000 seeds


def many():
    """Columns that are correlated with their neighbours; ten coefficients are not 0, several of them hard to tell."""
    rng = np.random.default_rng(12)
    Z = rng.standard_normal((ROWS, MANY))
    X = Z.copy()
    for j in range(1, MANY):
        X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * Z[:, j]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    beta = np.zeros(MANY)
    beta[:30:3] = [0.5, -0.4, 0.3, 0.25, -0.22, 0.2, 0.18, -0.16, 0.14, 0.12]
    y = X @ beta + rng.standard_normal(ROWS)
    return X, y - y.mean()


@numba.njit
def gibbs(products, pulls, slab, w, sweeps, rng, out):
    """Point-mass Gibbs sampler (George & McCulloch 1997, section 5): each (γⱼ, βⱼ) given the others, βⱼ integrated.

    The noise is 1. `out[k]`: what batch k has of the probabilities that γⱼ is 1 given the others (Rao-Blackwell).
    """
    d = len(pulls)
    beta, left = np.zeros(d), pulls.copy()
    for sweep in range(-sweeps // 10, sweeps):
        for j in range(d):
            variance = 1.0 / (products[j, j] + 1.0 / slab**2)
            mean = variance * (left[j] + products[j, j] * beta[j])
            odds = w / (1.0 - w) * math.sqrt(variance) / slab * math.exp(min(0.5 * mean * mean / variance, 700.0))
            p = odds / (1.0 + odds)
            new = mean + math.sqrt(variance) * rng.standard_normal() if rng.random() < p else 0.0
            if new != beta[j]:
                left -= products[j] * (new - beta[j])  # Xᵀ(y - Xβ)
                beta[j] = new
            if sweep >= 0:
                out[sweep * len(out) // sweeps, j] += p * len(out) / sweeps


def compare(run):
    """Largest difference of inclusion probabilities from those of the Gibbs sampler, in standard errors of it."""
    X, y = many()
    batches = np.zeros((40, MANY))
    gibbs(X.T @ X, X.T @ y, SLAB, INCLUDED, 20_000, np.random.default_rng(1), batches)
    truth, error = batches.mean(axis=0), batches.std(axis=0, ddof=1) / math.sqrt(len(batches))
    found, moving = (
        pdmp.diagnostics.inclusion(run)[:MANY],
        1.0 * (pdmp.diagnostics.averages.diagnostic_draws(run)[..., :MANY] != 0.0),
    )
    with np.errstate(all="ignore"):
        ess = np.nan_to_num(draws_ess(moving, "mean"), nan=1e3)
    p = np.clip(truth[:MANY], 1e-3, 1.0 - 1e-3)
    z = np.abs(found - truth[:MANY]) / np.sqrt(p * (1.0 - p) / ess + error[:MANY] ** 2)
    assert run.stats["bound_violations"] == 0
    unsure = (truth[:MANY] > 0.1) & (truth[:MANY] < 0.9)
    assert unsure.sum() >= 4 and np.all(ess[unsure] > 100.0)
    return z.max()


@pytest.mark.release
def test_200_coefficients_against_a_gibbs_sampler():
    """Of groups of one coefficient each: jumps to and from 0."""
    X, y = many()
    model = pdmp.models.SpikeAndSlabLinearRegression(X, y, 1.0, SLAB, INCLUDED)
    inner = pdmp.ZigZag(model, metric=pdmp.Metric(scales=1.0 / np.sqrt(np.diag(model.hessian()))))
    process, options = StickyGroups(inner, np.arange(MANY)[:, None]), {"store": "grid", "draws": 4_000}
    start = np.zeros((4, MANY))
    run = pdmp.sample(process, time=1_500.0, chains=4, initial=start, warmup=0.1, seed=3, progress=False, **options)
    assert compare(run) < RESOLUTION
