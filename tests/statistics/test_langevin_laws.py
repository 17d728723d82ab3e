"""Tier 3: the Langevin family with its options against the exact laws that they have at their steps.

Plain SGLD is in `test_discrete_laws`. Laws come from the update as the docstrings state it: Lyapunov's equation where
the noise is additive, the closed equation of the second moments for mini-batches of a linear Gaussian model, and in one
dimension without such a form the stationary law of the transition kernel on a grid. Resolutions are a few per cent of a
variance; half a drift, a factor 2 in a noise or a missing correction changes it by 15 % or more.
"""

import itertools

import numpy as np
import pytest
from scipy import linalg, stats

import discrete
import pdmp
from discrete.preconditioners import RMSprop
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, SkewNormal
from tests.checks import assert_unbiased, in_ci, replicate, run_chain

D = 5
COVARIANCE = 0.5 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))) * np.outer(
    np.linspace(0.7, 1.3, D), np.linspace(0.7, 1.3, D)
)
FIVE = Gaussian(np.arange(float(D)), np.linalg.inv(COVARIANCE))
ONE = Gaussian([1.5], [1.0])
P = np.diag(np.linspace(0.6, 1.4, D)) + 0.3


def stationary(model, gamma, injected, tau, p=1.0):
    """Covariance of x' = (I - γPQ) x + N(0, injected + γ²τ²PP)."""
    q = model.hessian()
    p = np.array(p) * np.eye(len(q)) if np.ndim(p) == 0 else p
    noise = injected * np.eye(len(q)) if np.ndim(injected) == 0 else injected
    return linalg.solve_discrete_lyapunov(np.eye(len(q)) - gamma * p @ q, noise + gamma**2 * tau**2 * p @ p)


def assert_law(process, model, truth, seed, resolution, steps=100_000, mean=None):
    """Means in units of the standard deviations; covariances, all of them, in those of a correlation."""
    mean = model.mean if mean is None else mean
    found = replicate(process, mean, 32, seed=seed, steps=steps)
    sd = np.sqrt(np.diag(truth))
    assert_unbiased((found.mean - mean) / sd, 0.0, resolution=resolution)
    i, j = np.triu_indices(len(sd))
    scale = np.outer(sd, sd)
    assert_unbiased((found.cov / scale)[:, i, j], (truth / scale)[i, j], resolution=resolution)


# ---------------------------------------------------------------------------------------------------------------
# Gaussian targets, no gradient noise or Gaussian noise


INJECTED = {
    "corrected": lambda gamma, tau: 2.0 * gamma - gamma**2 * tau**2,
    "modified": lambda gamma, tau: 2.0 * gamma * (1.0 - 0.25 * gamma * tau**2) ** 2,
    "as printed": lambda gamma, tau: 2.0 * gamma * (1.0 - gamma * tau**2) ** 2,
    "SGD": lambda gamma, tau: 0.0,
}


def sampler(name, provider, gamma, **options):
    if name == "SGD":
        return discrete.SGD(provider, gamma, **options)
    if name == "as printed":
        return discrete.SGLD(provider, gamma, correction="modified", coefficient=0.5, **options)
    return discrete.SGLD(provider, gamma, correction=name, **options)


@pytest.mark.parametrize(
    "name, tau",
    [
        *((name, 1.5) for name in INJECTED),
        *(pytest.param(name, 0.0, marks=pytest.mark.release) for name in INJECTED if name != "SGD"),
    ],
)
def test_in_one_dimension(name, tau):
    """At γ = 0.4 and τ = 1.5: variances 1.25, 1.32, 0.59, and 0.56 for SGD; 1.81 without any correction."""
    truth = stationary(ONE, 0.4, INJECTED[name](0.4, tau), tau)
    assert_law(sampler(name, Noisy(ONE, tau), 0.4), ONE, truth, 61, 0.03)


@pytest.mark.parametrize("name", INJECTED)
def test_in_five_correlated_dimensions(name):
    gamma = 0.5 / np.linalg.eigvalsh(FIVE.hessian())[-1]
    tau = np.sqrt(0.5 / gamma)
    truth = stationary(FIVE, gamma, INJECTED[name](gamma, tau), tau)
    assert_law(sampler(name, Noisy(FIVE, tau), gamma), FIVE, truth, 62, 0.06)


def test_beyond_what_can_be_corrected_there_is_no_noise():
    """γτ² = 3.6 > 2: the law is that of SGD, and every update is counted."""
    process = discrete.SGLD(Noisy(ONE, 3.0), 0.4, correction="corrected")
    assert_law(process, ONE, stationary(ONE, 0.4, 0.0, 3.0), 63, 0.03)
    assert run_chain(process, [1.5], 1, steps=100).finish().statistics == {"mean_noise_removed": 1.0}


@pytest.mark.parametrize("temperature", in_ci([0.3, 4.0], 4.0))
def test_temperatures(temperature):
    gamma = 0.5 / np.linalg.eigvalsh(FIVE.hessian())[-1]
    truth = stationary(FIVE, gamma, 2.0 * gamma * temperature, 1.0)
    assert_law(discrete.SGLD(Noisy(FIVE, 1.0), gamma, temperature), FIVE, truth, 64, 0.06)


@pytest.mark.parametrize("tau", in_ci([0.0, 1.5]))
def test_a_dense_preconditioner(tau):
    """Covariance 2γTP + γ²τ²PP of the noise, drift PQ."""
    gamma = 0.5 / np.linalg.eigvals(P @ FIVE.hessian()).real.max()
    truth = stationary(FIVE, gamma, 2.0 * gamma * 1.5 * P, tau, P)
    assert_law(discrete.SGLD(Noisy(FIVE, tau), gamma, 1.5, metric=pdmp.Metric(covariance=P)), FIVE, truth, 65, 0.06)


# ---------------------------------------------------------------------------------------------------------------
# Mini-batches of a linear Gaussian model


SIZE = 12


def regression(d, n_data=24):
    rng = np.random.default_rng(31)
    a = rng.standard_normal((n_data, d)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(d))
    return LinearGaussian(a, a @ np.linspace(-1.0, 1.0, d) + rng.standard_normal(n_data), prior_scale=2.0)


def second_moments(model, size, gamma, injected, off_diagonal_only):
    """Covariance S of y' = y - γ (Λy + η(y)) + noise; η has the covariance of a batch's gradient at mean + y.

    E[y y'ᵀ] closes: (I - γΛ) S (I - γΛ) + γ² C(S) + 2γ, with C linear in S. What the correction takes off is an average
    of unbiased estimates of the variance at earlier states: at stationarity its mean is the diagonal of γ² C(S).
    """
    n_data, d = model.A.shape
    a = model.noise_precision * np.einsum("ni,nj->nij", model.A, model.A)
    mean = model.posterior()[0]
    r = np.einsum("nij,j->ni", a, mean) - model.noise_precision * model.y[:, None] * model.A
    kept = np.eye(d) - gamma * (model.prior_precision * np.eye(d) + a.sum(axis=0))
    factor = n_data**2 / size  # batches drawn with replacement

    def noise(s, residuals):
        terms = np.einsum("nij,jk,nlk->il", a, s, a) / n_data - a.mean(axis=0) @ s @ a.mean(axis=0)
        terms = terms + residuals * np.cov(r.T, ddof=0).reshape(d, d)
        if off_diagonal_only:
            terms = terms - np.diag(np.diag(terms))
        return factor * terms

    units = np.eye(d * d).reshape(-1, d, d)
    matrix = np.array([(kept @ u @ kept.T + gamma**2 * noise(u, 0.0)).ravel() for u in units]).T
    constant = injected * np.eye(d) + gamma**2 * noise(np.zeros((d, d)), 1.0)
    return np.linalg.solve(np.eye(d * d) - matrix, constant.ravel()).reshape(d, d)


@pytest.mark.release
@pytest.mark.parametrize("d", [1, 5])
@pytest.mark.parametrize("name", [None, "corrected", "SGD"])
def test_independent_mini_batches(name, d):
    """The correction is unbiased: the law of the exact gradient, but for the noise between coordinates."""
    model = regression(d)
    mean, covariance = model.posterior()
    stiff = 0.12 if d == 1 else 0.2
    gamma = stiff / np.linalg.eigvalsh(np.linalg.inv(covariance))[-1]
    process = sampler(name, Minibatch(model, SIZE), gamma)
    injected = 0.0 if name == "SGD" else 2.0 * gamma
    truth = second_moments(model, SIZE, gamma, injected, name == "corrected")
    assert_law(process, model, truth, 66, 0.06, steps=150_000, mean=mean)
    if name == "corrected":  # the floor at 0 would have changed the law; without the correction it is another one
        assert run_chain(process, mean, 1, steps=5_000).finish().statistics == {"mean_noise_removed": 0.0}
        assert second_moments(model, SIZE, gamma, injected, False)[0, 0] > 1.1 * truth[0, 0]
        if d == 1:
            assert truth[0, 0] == pytest.approx(covariance[0, 0] / (1.0 - 0.5 * stiff))


@pytest.mark.release
@pytest.mark.parametrize("coefficient", [0.125, 0.5])
def test_the_modified_form_with_mini_batches(coefficient):
    """All rows of the design equal, β = 1: τ̂² is that of the batch alone, and all batches of two of six are listed."""
    rng = np.random.default_rng(5)
    y = 2.0 * rng.standard_normal(6)
    model = LinearGaussian(np.ones((6, 1)), y)
    precision, gamma = 6.0 * model.noise_precision + model.prior_precision, 0.05
    pairs = y[np.array(list(itertools.product(range(6), repeat=2)))]
    estimate = 36.0 / 2.0 * pairs.var(axis=1, ddof=1) * model.noise_precision**2  # τ̂² of each batch
    factor = np.maximum(1.0 - 2.0 * gamma * coefficient * estimate, 0.0)
    noise = 36.0 * pairs.mean(axis=1).var() * model.noise_precision**2
    injected = 2.0 * gamma * np.mean(factor**2)
    truth = (injected + gamma**2 * noise) / (1.0 - (1.0 - gamma * precision) ** 2)
    assert abs(truth * (2.0 * precision - gamma * precision**2) / (2.0 + gamma * noise) - 1.0) > 0.1  # not plain SGLD's
    process = discrete.SGLD(Minibatch(model, 2), gamma, correction="modified", coefficient=coefficient, beta=1.0)
    assert_law(process, model, np.array([[truth]]), 61, 0.03, mean=model.posterior()[0])


# ---------------------------------------------------------------------------------------------------------------
# Other targets, and other preconditioners: the transition kernel on a grid


class Quartic(pdmp.Model):
    """U(x) = x⁴ / 4 - x."""

    def __init__(self):
        super().__init__(dim=1)

    @pdmp.compiled
    def potential(self, x):
        return 0.25 * x[0] * x[0] * x[0] * x[0] - x[0]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] * x[0] * x[0] - 1.0


def kernel_law(drift, variance, low, high, points=400):
    """Mean and variance of the stationary law of x' ~ N(x + drift(x), variance(x)), by the midpoint rule.

    Halving the number of points changes neither by 10⁻³, jumps of the drift at the middle of the grid included.
    """
    width = (high - low) / points
    x = low + width * (np.arange(points) + 0.5)
    kernel = stats.norm.pdf(x[:, None], x + drift(x), np.sqrt(variance(x))) * width
    kernel /= kernel.sum(axis=0)
    kernel = np.linalg.matrix_power(kernel, 4096)  # to stationarity
    density = kernel[:, points // 2]
    density = density / density.sum()
    mean = density @ x
    return mean, density @ (x - mean) ** 2


def skew_normal_gradient(x, shape):
    return x - shape * np.exp(stats.norm.logpdf(shape * x) - stats.norm.logcdf(shape * x))


@pytest.mark.parametrize("target", in_ci(["skew-normal", "quartic"]))
@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
def test_targets_that_are_not_gaussian(target, tau):
    if target == "quartic":
        model, gamma = Quartic(), 0.05
        law = kernel_law(
            lambda x: -gamma * (x**3 - 1.0), lambda x: 2.0 * gamma + gamma**2 * tau**2 + 0.0 * x, -3.5, 3.5
        )
    else:
        model, gamma = SkewNormal(2.0), 0.2
        law = kernel_law(
            lambda x: -gamma * skew_normal_gradient(x, 2.0),
            lambda x: 2.0 * gamma + gamma**2 * tau**2 + 0.0 * x,
            -5.0,
            7.0,
        )
    mean, var, _ = replicate(discrete.SGLD(Noisy(model, tau), gamma), [law[0]], 32, seed=67, steps=300_000)
    assert_unbiased((mean - law[0]) / np.sqrt(law[1]), 0.0, resolution=0.02)
    assert_unbiased(var / law[1], 1.0, resolution=0.02)


@pytest.mark.parametrize("gamma_term", in_ci([False, True], True))
def test_rmsprop_without_memory(gamma_term):
    """decay = 0: P = 1 / (1 + |∇U|) at the present state, Γ = -P² sign(∇U); a kernel in one dimension."""
    step, standard = 0.2, Gaussian([0.0], [1.0])

    def p(x):
        return 1.0 / (1.0 + np.abs(x))

    law = kernel_law(
        lambda x: step * (-p(x) * x - gamma_term * p(x) ** 2 * np.sign(x)), lambda x: 2.0 * step * p(x), -9.0, 9.0
    )
    process = discrete.SGLD(Noisy(standard, 0.0), step, metric=RMSprop(0.0, 1.0, gamma_term))
    mean, var, _ = replicate(process, [0.0], 32, seed=68, steps=150_000)
    assert_unbiased(mean, 0.0, resolution=0.05)
    assert_unbiased(var / law[1], 1.0, resolution=0.05)


WITHOUT = (1.0 + 2.0 * np.sqrt(2.0 / np.pi)) / (1.0 + np.sqrt(2.0 / np.pi))  #: E[x² (1 + |x|)] / E[1 + |x|] = 1.444


def test_the_limit_of_small_steps_needs_gamma():
    """The kernel's variance tends to 1 with Γ and to 1.444 without, linearly in the step."""
    for gamma_term, limit in ((0.0, WITHOUT), (1.0, 1.0)):
        found = []
        for step in (0.04, 0.02):

            def drift(x, step=step, gamma_term=gamma_term):
                p = 1.0 / (1.0 + np.abs(x))
                return step * (-p * x - gamma_term * p**2 * np.sign(x))

            law = kernel_law(drift, lambda x, step=step: 2.0 * step / (1.0 + np.abs(x)), -8.0, 8.0)
            found.append(law[1])
        assert abs(2.0 * found[1] - found[0] - limit) < 0.01


@pytest.mark.parametrize("gamma_term", in_ci([False, True], True))
def test_rmsprop_with_memory_has_the_same_limit(gamma_term):
    """decay = 0.9 and steps so small that the average follows the state: 1.444 without Γ and 1 with, up to 5 %."""
    process = discrete.SGLD(Noisy(Gaussian([0.0], [1.0]), 0.0), 0.004, metric=RMSprop(0.9, 1.0, gamma_term))
    _, var, _ = replicate(process, [0.0], 32, seed=69, steps=500_000)
    assert_unbiased(var / (1.0 if gamma_term else WITHOUT), 1.0, resolution=0.15)
