"""Simulation-based calibration of the samplers on linear and logistic regression, in plain Python as well."""

import numpy as np
import pytest

import pdmp
from pdmp.diagnostics import calibration

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


def test_a_prior_that_is_too_narrow_shows():
    assert ranks(pdmp.ZigZag, linear(scale=0.1)).p < 1e-4


def test_p_values_are_those_of_uniform_ranks():
    from pdmp.diagnostics.simulation import Calibration

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
