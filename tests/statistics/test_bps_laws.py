"""Tiers 2 and 3 of the Bouncy Particle family: clocks ring at their rates, and averages are those of the target."""

import numpy as np
import pytest
from scipy import special

import pdmp
from tests.checks import assert_exponential, assert_unbiased, in_ci, replicate
from tests.processes.helpers_bps import Quartic
from tests.statistics.helpers_events import GAUSSIAN, MEAN, PRECISION, gaps, integral_of_positive_part

EVENTS = 60_000
MASS = np.array([[1.0, -0.3, 0.2], [-0.3, 2.0, 0.1], [0.2, 0.1, 0.7]])

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 2))
Y = (RNG.random(60) < special.expit(X @ [1.0, -0.5])).astype(float)
LOGISTIC = pdmp.models.LogisticRegression(X, Y, prior_scale=2.0)

#: Each with the rate of its refreshments.
ON_GAUSSIAN = {
    "full, dense mass": lambda: pdmp.BPS(GAUSSIAN, 0.3, metric=MASS),
    "partial, Gaussian velocities": lambda: pdmp.BPS(GAUSSIAN, 0.3, "partial", "gaussian"),
    "partial, adaptive diagonal mass": lambda: pdmp.BPS(GAUSSIAN, 0.3, "partial", metric="diagonal"),
    "Gaussian velocities, adaptive dense mass": lambda: pdmp.BPS(GAUSSIAN, 0.3, velocities="gaussian", metric="dense"),
    "generalised": lambda: pdmp.GeneralisedBPS(GAUSSIAN),
    "generalised on the sphere": lambda: pdmp.GeneralisedBPS(GAUSSIAN, velocities="sphere"),
    "event chain, switch": lambda: pdmp.ForwardEventChain(GAUSSIAN, probability=0.3),
    "event chain, rotation, Gaussian velocities": lambda: pdmp.ForwardEventChain(
        GAUSSIAN, "rotate", 0.5, velocities="gaussian"
    ),
    "event chain, refreshment": lambda: pdmp.ForwardEventChain(GAUSSIAN, "refresh", 0.5),
    "directional": lambda: pdmp.DirectionalBPS(GAUSSIAN, 0.3),
    "directional, Gaussian velocities": lambda: pdmp.DirectionalBPS(
        GAUSSIAN, 0.3, metric=MASS, refresh="partial", velocities="gaussian"
    ),
}


@pytest.mark.parametrize(
    "name",
    in_ci(
        ON_GAUSSIAN,
        "Gaussian velocities, adaptive dense mass",
        "generalised on the sphere",
    ),
)
def test_events_on_a_gaussian_come_at_their_rate(name):
    process = ON_GAUSSIAN[name]()
    run = pdmp.sample(process, events=EVENTS, seed=31, warmup=0.05, initial=MEAN)
    path = run.trajectories[0]
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    a = np.einsum("ki,ij,kj->k", v, PRECISION, x - MEAN)
    b = np.einsum("ki,ij,kj->k", v, PRECISION, v)
    assert_exponential(gaps(path, integral_of_positive_part(a, b, s), 0), resolution=0.05)
    if process.refresh_rate:
        assert_exponential(gaps(path, process.refresh_rate * s, 1), resolution=0.13)


# ---------------------------------------------------------------------------------------------------------------
# Logistic regression, and a model that knows nothing of itself


def rises(path, potential, slope):
    """∫ (dU/ds)₊ over each segment of a path: U is convex, so it falls, then rises."""
    x, v = path.positions[:-1], path.velocities[:-1]
    s = np.diff(path.times)
    low, high = np.zeros(len(s)), s.copy()
    for _ in range(50):
        middle = 0.5 * (low + high)
        rising = slope(x + v * middle[:, None], v) > 0.0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    start = np.where(slope(x, v) > 0.0, 0.0, high)
    return np.maximum(0.0, potential(x + v * s[:, None]) - potential(x + v * start[:, None]))


SIGNS = 2.0 * Y - 1.0
POTENTIALS = {
    "logistic": (
        lambda p: np.logaddexp(0.0, -SIGNS * (p @ X.T)).sum(axis=1) + 0.125 * (p**2).sum(axis=1),
        lambda p, v: (
            (-(SIGNS * special.expit(-SIGNS * (p @ X.T))) * (v @ X.T)).sum(axis=1) + 0.25 * (p * v).sum(axis=1)
        ),
    ),
    "quartic": (
        lambda p: (0.25 * p**4 + 0.5 * p**2).sum(axis=1),
        lambda p, v: ((p**3 + p) * v).sum(axis=1),
    ),
}


def directional(name):
    model = LOGISTIC if name == "logistic" else Quartic()
    return pdmp.DirectionalBPS(model, refresh_rate=0.3, metric="auto" if name == "logistic" else None)


@pytest.mark.parametrize("name", in_ci(POTENTIALS, "quartic"))
def test_directional_bounces_come_at_their_rate(name):
    run = pdmp.sample(directional(name), events=EVENTS, seed=33, initial=np.zeros(2))
    violations = run.stats["bound_violations"]
    assert violations == 0 if name == "logistic" else violations < 100
    path = run.trajectories[0]
    assert_exponential(gaps(path, rises(path, *POTENTIALS[name]), 0), resolution=0.05)
    assert_exponential(gaps(path, 0.3 * np.diff(path.times), 1), resolution=0.13)


@pytest.mark.parametrize("name", in_ci(POTENTIALS, "quartic"))
def test_averages_of_directional_bps_are_those_of_quadrature(name):
    potential, _ = POTENTIALS[name]
    axis = np.linspace(-7.0, 7.0, 561)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    u = potential(grid)
    weights = np.exp(u.min() - u)
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    found = replicate(directional(name), mean, 24, seed=34, warmup=0.02, events=20_000)
    assert_unbiased((found.mean - mean) / sd, 0.0, resolution=0.05)
    assert_unbiased(found.var / sd**2, 1.0, resolution=0.1)
