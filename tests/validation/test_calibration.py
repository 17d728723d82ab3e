"""Simulation-based calibration of the samplers on linear and logistic regression, in plain Python: it compiles nothing.

Each test has 60 replicates and shows only the coarse: see `test_what_sixty_replicates_show`.
"""

import functools

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.validation import calibration
from pdmp.validation.simulation import Calibration
from tests.checks import in_ci, plain_only

pytestmark = pytest.mark.exact

X = np.array([[1.0, 0.5], [-0.3, 1.0], [0.8, -0.7], [1.2, 0.1], [-0.5, -0.4]])
NOISE, SLAB = 0.7, 1.5


def linear(scale=1.0):
    """Data of a linear regression, and the model of its posterior with the prior's standard deviation times `scale`."""
    return (
        lambda theta, rng: X @ theta + NOISE * rng.standard_normal(len(X)),
        lambda y: pdmp.models.LinearGaussian(X, y, noise_scale=NOISE, prior_scale=SLAB * scale),
    )


@functools.cache
def posterior(labels):
    """That of a logistic regression, of which there are 32; two data more say nothing, so that both classes occur."""
    features = np.vstack([X, np.zeros((2, 2))])
    model = pdmp.models.LogisticRegression(features, np.array([*labels, 0.0, 1.0]), prior_scale=SLAB)
    model.mode = functools.cache(model.mode)
    return model


def logistic():
    """The same for a logistic regression."""
    return (
        lambda theta, rng: tuple(rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ theta))),
        posterior,
    )


def ranks(sampler, problem, events=120, included=None):
    """`Calibration` by 60 replicates of 9 draws each; `included`: a coefficient's probability of not being 0."""

    def prior(rng):
        theta = SLAB * rng.standard_normal(2)
        return theta if included is None else np.where(rng.random(2) < included, theta, 0.0)

    simulate, model = problem
    return calibration(
        lambda y: sampler(model(y)), prior, simulate, replicates=60, draws=9, events=events, warmup=0.1, seed=7
    )


#: All samplers, and how many events make their draws nearly independent.
SAMPLERS = {
    "BPS": (lambda m: pdmp.BPS(m, refresh_rate=0.7), 120),
    "ZigZag": (pdmp.ZigZag, 120),
    "ZigZag, control variates": (lambda m: pdmp.ZigZag(ControlVariate(m, 1)), 200),
    "ZigZag, batches": (lambda m: pdmp.ZigZag(Minibatch(m, 2)), 120),
    "DirectionalBPS": (lambda m: pdmp.DirectionalBPS(m, refresh_rate=0.5), 120),
    "GeneralisedBPS": (pdmp.GeneralisedBPS, 120),
    "ForwardEventChain": (lambda m: pdmp.ForwardEventChain(m, "refresh", probability=0.5), 120),
    "CoordinateSampler": (lambda m: pdmp.CoordinateSampler(m, refresh_rate=0.3), 240),
    "LocalBPS": (lambda m: pdmp.LocalBPS(m, refresh_rate=0.5), 360),
    "Boomerang": (pdmp.Boomerang, 120),
    "FactorisedBoomerang": (pdmp.FactorisedBoomerang, 120),
    "SBPS": (lambda m: pdmp.SBPS(Noisy(m, 1.0), k=4.0, refresh_rate=0.5), 100),
    "LipschitzSBPS": (lambda m: pdmp.LipschitzSBPS(m, refresh_rate=0.5), 120),
}
#: These need terms with bounded gradients.
BOUNDED_TERMS = ("LipschitzSBPS", "ZigZag, batches")
#: What CI takes; `tests/statistics` holds each sampler to its law there.
IN_CI = {"BPS": logistic}


def case(sampler, problem):
    shown = IN_CI.get(sampler) is problem
    return pytest.param(sampler, problem, marks=() if shown else pytest.mark.release)


CASES = [case(s, p) for s in SAMPLERS for p in (linear, logistic) if p is logistic or s not in BOUNDED_TERMS]
#: Those for spike and slab, with their probability of inclusion.
STICKY = {
    "ZigZag": lambda m: pdmp.Sticky(pdmp.ZigZag(m), 0.6),
    "BPS": lambda m: pdmp.Sticky(pdmp.BPS(m, refresh_rate=0.5, velocities="gaussian"), 0.6),
    "Boomerang": lambda m: pdmp.Sticky(pdmp.Boomerang(m, metric="diagonal"), 0.6),
}


@pytest.mark.slow
@plain_only
@pytest.mark.parametrize("name, problem", CASES)
def test_ranks_are_uniform(name, problem):
    sampler, events = SAMPLERS[name]
    found = ranks(sampler, problem(), events)
    assert found.ranks.shape == (60, 2)
    assert found.p > 1e-3, found


@pytest.mark.slow
@plain_only
@pytest.mark.parametrize("problem", in_ci([linear, logistic], linear))
@pytest.mark.parametrize("name", in_ci(STICKY, "ZigZag"))
def test_ranks_are_uniform_with_coefficients_that_are_zero(name, problem):
    """Coarser still, as equal draws count at random: inclusion is held against enumeration elsewhere."""
    found = ranks(STICKY[name], problem(), 150, included=0.6)
    assert found.p > 1e-3, found


def shown(sample, simulate, runs):
    """In how many of `runs` 60 replicates give p < 1e-3, with the draws ``sample(y, rng)`` (60, 9, 2)."""
    rng, count = np.random.default_rng(2), 0
    for _ in range(runs):
        theta = SLAB * rng.standard_normal((60, 2))
        draws = sample(simulate(theta, rng), rng)
        count += Calibration((draws < theta[:, None]).sum(axis=1), 9).p < 1e-3
    return count


@pytest.mark.parametrize("noise, prior", [(0.4, 1.0), (1.0, 0.2)])
def test_what_sixty_replicates_show(noise, prior):
    """With p < 1e-3, as above, a likelihood or a prior that is too narrow by such a factor shows in 19 cases of 20.

    One that is too wide hardly does: that takes more replicates. By independent draws from the posterior that a
    linear regression with the wrong scales has, in closed form.
    """
    precision = X.T @ X / (NOISE * noise) ** 2 + np.eye(2) / (SLAB * prior) ** 2
    root = np.linalg.cholesky(np.linalg.inv(precision))

    def draws(y, rng):
        mean = y @ X @ np.linalg.inv(precision) / (NOISE * noise) ** 2
        return mean[:, None] + rng.standard_normal((60, 9, 2)) @ root.T

    assert shown(draws, lambda theta, rng: theta @ X.T + NOISE * rng.standard_normal((60, len(X))), 200) >= 190


@pytest.mark.parametrize("prior, shift, sign", [(0.3, 0.0, 1.0), (1.0, 1.0, 1.0), (1.0, 0.0, -1.0)])
def test_what_sixty_replicates_show_of_a_logistic_regression(prior, shift, sign):
    """A prior that is too narrow by 0.3, a shift by one standard deviation, or data of the other sign; or nothing."""
    axis = np.linspace(-8.0, 8.0, 129)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    labels = np.array([[(k >> i) & 1 for i in range(len(X))] for k in range(2 ** len(X))])
    wrong, right = [], []
    for laws, width, side in ((wrong, prior, sign), (right, 1.0, 1.0)):
        for y in labels:
            density = np.exp(
                -np.logaddexp(0.0, -side * (grid @ X.T) * (2.0 * y - 1.0)).sum(axis=1)
                - 0.5 * (grid**2).sum(axis=1) / (SLAB * width) ** 2
            )
            laws.append(np.cumsum(density / density.sum()))

    def drawn_from(laws, shift):
        def sample(y, rng):
            numbers = (y @ (1 << np.arange(len(X)))).astype(int)
            draws = np.array([grid[np.searchsorted(laws[k], rng.random(9) * laws[k][-1])] for k in numbers])
            return draws + (axis[1] - axis[0]) * (rng.random(draws.shape) - 0.5) + shift  # its sd is about 1

        return sample

    def simulate(theta, rng):
        return rng.random((60, len(X))) < 1.0 / (1.0 + np.exp(-theta @ X.T))

    assert shown(drawn_from(wrong, shift), simulate, 60) >= 57
    assert shown(drawn_from(right, 0.0), simulate, 60) <= 1


@plain_only
def test_a_prior_that_is_too_narrow_shows():
    assert ranks(pdmp.ZigZag, linear(scale=0.1)).p < 1e-4


def test_p_values_are_those_of_uniform_ranks():
    even = Calibration(np.tile(np.arange(10), 20)[:, None], 9)
    assert even.p == 1.0 and "200 parameters" in str(even)
    assert Calibration(np.zeros((200, 1), int), 9).p < 1e-10
    # Of several coordinates the smallest, times their number; bins of unequal size: of seven ranks two, three and two.
    ranks = np.random.default_rng(1).integers(0, 7, size=(90, 3))
    some = Calibration(ranks, 6, ("a", "b", "c"))
    counts = np.array([np.bincount(column, minlength=7) for column in ranks.T])
    each = [stats.chisquare(count).pvalue for count in counts]
    np.testing.assert_allclose(some.p_values(), each, rtol=1e-12)
    assert some.p == pytest.approx(3.0 * min(each)) and some.p < 1.0
    assert str(some).endswith(f"smallest for {'abc'[int(np.argmin(each))]}: {min(each):.2g}")
    uneven = [stats.chisquare([c[:2].sum(), c[2:5].sum(), c[5:].sum()], 90 * np.array([2, 3, 2]) / 7) for c in counts]
    np.testing.assert_allclose(some.p_values(bins=3), [one.pvalue for one in uneven], rtol=1e-12)
    for n, bins in ((15, 2), (59, 5), (1_000, 20)):  # ten ranks or more in each, of 20 that there are
        some = Calibration(np.random.default_rng(n).integers(0, 20, (n, 2)), 19)
        assert np.array_equal(some.p_values(), some.p_values(bins=bins))


@plain_only
def test_bad_input():
    with pytest.raises(ValueError, match="`draws` must be a whole number, at least 2"):
        calibration(None, None, None, draws=1)
    with pytest.raises(ValueError, match="gave a parameter of dimension 3"):
        simulate, model = linear()
        calibration(
            lambda y: pdmp.ZigZag(model(y)), lambda rng: np.zeros(3), lambda t, rng: simulate(t[:2], rng), events=50
        )
