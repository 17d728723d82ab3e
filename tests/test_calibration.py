"""Simulation-based calibration of the samplers on linear and logistic regression, in plain Python as well."""

import numpy as np
import pytest
from numba import config

import pdmp
from pdmp.diagnostics import calibration
from pdmp.diagnostics.simulation import Calibration
from pdmp.gradients import ControlVariate, Noisy

pytestmark = pytest.mark.exact

X = np.array([[1.0, 0.5], [-0.3, 1.0], [0.8, -0.7], [1.2, 0.1], [-0.5, -0.4]])


def linear(scale=1.0):
    """Data of a linear regression, and the model of its posterior with the prior's standard deviation times `scale`."""
    return (
        lambda theta, rng: X @ theta + 0.7 * rng.standard_normal(len(X)),
        lambda y: pdmp.models.LinearGaussian(X, y, noise_scale=0.7, prior_scale=1.5 * scale),
    )


def logistic():
    """The same with two data more that say nothing, so that there are always both classes."""
    features = np.vstack([X, np.zeros((2, 2))])

    def simulate(theta, rng):
        return np.append(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ theta)), [0.0, 1.0]).astype(float)

    return simulate, lambda y: pdmp.models.LogisticRegression(features, y, prior_scale=1.5)


def ranks(sampler, problem, replicates=60, events=120):
    simulate, model = problem
    return calibration(
        lambda y: sampler(model(y)),
        lambda rng: 1.5 * rng.standard_normal(2),
        simulate,
        replicates=replicates,
        draws=9,
        events=events,
        seed=7,
    )


@pytest.mark.parametrize("sampler", [lambda m: pdmp.BPS(m, refresh_rate=0.7), pdmp.ZigZag], ids=["BPS", "ZigZag"])
@pytest.mark.parametrize("problem", [linear, logistic])
def test_ranks_are_uniform(sampler, problem):
    found = ranks(sampler, problem())
    assert found.ranks.shape == (60, 2)
    assert found.p > 1e-3, found


#: All other samplers, and how many events make their draws nearly independent.
OTHERS = {
    "DirectionalBPS": (lambda m: pdmp.DirectionalBPS(m, refresh_rate=0.5), 120),
    "GeneralisedBPS": (pdmp.GeneralisedBPS, 120),
    "ForwardEventChain": (lambda m: pdmp.ForwardEventChain(m, "refresh", probability=0.5), 120),
    "CoordinateSampler": (lambda m: pdmp.CoordinateSampler(m, refresh_rate=0.3), 240),
    "LocalBPS": (lambda m: pdmp.LocalBPS(m, refresh_rate=0.5), 360),
    "Boomerang": (pdmp.Boomerang, 120),
    "FactorisedBoomerang": (pdmp.FactorisedBoomerang, 120),
    "SBPS": (lambda m: pdmp.SBPS(Noisy(m, 1.0), k=5.0, refresh_rate=0.5), 150),
    "ZigZag, control variates": (lambda m: pdmp.ZigZag(ControlVariate(m, 1)), 200),
}


@pytest.mark.skipif(not config.DISABLE_JIT, reason="takes longer to compile than in plain Python")
@pytest.mark.parametrize("name", OTHERS)
def test_ranks_are_uniform_for_all_samplers(name):
    sampler, events = OTHERS[name]
    found = ranks(sampler, linear(), events=events)
    assert found.p > 1e-3, found


@pytest.mark.parametrize("noise, prior", [(0.4, 1.0), (1.0, 0.2)])
def test_what_sixty_replicates_show(noise, prior):
    """With p < 1e-3, as above, a likelihood or a prior that is too narrow by such a factor shows in 19 cases of 20.

    One that is too wide hardly does: that takes more replicates. By independent draws from the posterior that a
    linear regression with the wrong scales has, in closed form.
    """
    rng, shown = np.random.default_rng(2), 0
    precision = X.T @ X / (0.7 * noise) ** 2 + np.eye(2) / (1.5 * prior) ** 2
    root = np.linalg.cholesky(np.linalg.inv(precision))
    for _ in range(200):
        theta = 1.5 * rng.standard_normal((60, 2))
        y = theta @ X.T + 0.7 * rng.standard_normal((60, len(X)))
        mean = y @ X @ np.linalg.inv(precision) / (0.7 * noise) ** 2
        draws = mean[:, None] + rng.standard_normal((60, 9, 2)) @ root.T
        shown += Calibration((draws < theta[:, None]).sum(axis=1), 9).p < 1e-3
    assert shown >= 190


def test_a_prior_that_is_too_narrow_shows():
    assert ranks(pdmp.ZigZag, linear(scale=0.1)).p < 1e-4


def test_p_values_are_those_of_uniform_ranks():
    even = Calibration(np.tile(np.arange(10), 20)[:, None], 9)
    assert even.p == 1.0 and "200 parameters" in str(even)
    assert Calibration(np.zeros((200, 1), int), 9).p < 1e-10
    uneven = Calibration(np.random.default_rng(1).integers(0, 8, size=(4_000, 1)), 7)
    assert uneven.p_values(bins=3)[0] > 1e-3  # bins of unequal size


def test_bad_input():
    with pytest.raises(ValueError, match="`draws` must be an integer of at least 2"):
        calibration(None, None, None, draws=1)
    with pytest.raises(ValueError, match="gave a parameter of dimension 3"):
        simulate, model = linear()
        calibration(
            lambda y: pdmp.ZigZag(model(y)), lambda rng: np.zeros(3), lambda t, rng: simulate(t[:2], rng), events=50
        )
