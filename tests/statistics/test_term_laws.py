"""Local samplers on `pdmp.terms` within walls, and with coordinates that stick: against quadrature."""

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import Normal
from tests.checks import assert_unbiased

P = pdmp.Parameters(a=1, b=1)
COUNTS = pdmp.terms(lambda y, z: np.exp(z) - y * z, [[3.0, 1.0]], [P.a + np.array([0.0, 1.0]) * P.b])
STEP = pdmp.terms(lambda a, b: 0.5 * (a + b) ** 2, at=[P.a, P.b])
SDS = np.array([1.5, 1.0])
MODEL = pdmp.models.sum_of_terms(P, [COUNTS, STEP], {"a": Normal(0.0, SDS[0]), "b": Normal(0.0, SDS[1])})
REFERENCE = {"mean": [0.5, -0.5], "metric": pdmp.Metric(covariance=[0.4, 0.6])}
CHAINS = 24


def density(a, b):
    """exp(-U) up to a constant, of numbers or arrays, written by hand."""
    loss = np.exp(a) - 3.0 * a + np.exp(a + b) - (a + b) + 0.5 * (a + b) ** 2
    return np.exp(-loss - 0.5 * (a / SDS[0]) ** 2 - 0.5 * (b / SDS[1]) ** 2)


def simpson(first, last, n=2_001):
    weights = np.full(n, 2.0)
    weights[1::2], weights[[0, -1]] = 4.0, 1.0
    return np.linspace(first, last, n), weights * (last - first) / (3.0 * (n - 1))


MAKERS = {
    "ZigZag": lambda: pdmp.ZigZag(MODEL, thinning="local"),
    "LocalBPS": lambda: pdmp.LocalBPS(MODEL),
    "FactorisedBoomerang": lambda: pdmp.FactorisedBoomerang(MODEL, **REFERENCE, thinning="local"),
}


@pytest.mark.release
@pytest.mark.parametrize("name", MAKERS)
def test_between_walls(name):
    """a > 0.2 and b < -0.1: means and second moments."""
    (a, wa), (b, wb) = simpson(0.2, 8.0), simpson(-9.0, -0.1)
    w = density(a[:, None], b) * wa[:, None] * wb
    w /= w.sum()
    expected = [w.sum(1) @ a, w.sum(0) @ b, w.sum(1) @ a**2, w.sum(0) @ b**2]
    process = pdmp.Bounded(MAKERS[name](), lower=[0.2, -np.inf], upper=[np.inf, -0.1])
    run = pdmp.sample(process, initial=[0.4, -0.3], time=8_000.0, warmup=0.05, chains=CHAINS, seed=1)
    assert run.stats["bound_violations"] == 0
    found = np.array([[*one.mean(), *(one.var() + one.mean() ** 2)] for one in pdmp.diagnostics.split(run)])
    assert_unbiased(found, expected, resolution=[0.04, 0.04, 0.08, 0.1])


@pytest.mark.release
def test_coordinates_that_stick():
    """Inclusion probabilities from the evidence of the four models."""
    inclusion, slab = np.array([0.3, 0.6]), 1.0 / (np.sqrt(2.0 * np.pi) * SDS)
    x, w = simpson(-9.0, 9.0)
    both = w @ density(x[:, None], x) @ w * slab.prod()
    one, other = w @ density(x, 0.0) * slab[0], w @ density(0.0, x) * slab[1]
    odds = inclusion / (1.0 - inclusion)
    weights = np.array([both * odds.prod(), one * odds[0], other * odds[1], density(0.0, 0.0)])
    expected = [(weights[0] + weights[1]) / weights.sum(), (weights[0] + weights[2]) / weights.sum()]
    process = pdmp.Sticky(MAKERS["ZigZag"](), inclusion=inclusion, slab_density=slab)
    run = pdmp.sample(process, initial=[0.4, -0.3], time=3_000.0, warmup=0.05, chains=CHAINS, seed=2)
    assert run.stats["bound_violations"] == 0
    assert_unbiased(
        np.array([pdmp.diagnostics.inclusion(one) for one in pdmp.diagnostics.split(run)]),
        expected,
        resolution=[0.04, 0.03],
    )
