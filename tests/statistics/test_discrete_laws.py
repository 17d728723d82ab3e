"""Tier 3: time averages of the fixed-step samplers against the exact laws that they have at their steps.

Not against their targets: a discretised sampler is biased, and by how much is known. Each test states the smallest
error that it promises to see, far below what noise of the wrong size, half a drift or a wrong factor would do.
"""

import numpy as np
import pytest
from scipy import linalg

import discrete
from pdmp.gradients import Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import assert_unbiased, barker_law, epoch_law, in_ci, linear_terms, minibatch_law, replicate

ONE = Gaussian([1.5], [1.0])


def langevin(model, tau, step):
    """Stationary covariance of x' = (I - γQ) x + N(0, 2γI + γ²τ²I)."""
    q = model.hessian()
    d = len(q)
    return linalg.solve_discrete_lyapunov(np.eye(d) - step * q, (2.0 * step + step**2 * tau**2) * np.eye(d))


def regression(n_data=12):
    rng = np.random.default_rng(31)
    a = rng.standard_normal(n_data)
    return LinearGaussian(a[:, None], 2.0 * a + rng.standard_normal(n_data))


# ---------------------------------------------------------------------------------------------------------------
# SGLD


@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
def test_sgld_in_one_dimension(tau):
    """Variance (2 + γτ²) / (λ (2 - γλ)): 1.25, and 2.25 with the noise."""
    provider = Full(ONE) if tau == 0.0 else Noisy(ONE, tau)
    mean, var, _ = replicate(discrete.SGLD(provider, 0.4), [1.5], 32, seed=41, steps=100_000)
    truth = (2.0 + 0.4 * tau**2) / 1.6
    assert_unbiased(mean, 1.5, resolution=0.02)
    assert_unbiased(var / truth, 1.0, resolution=0.02)


@pytest.mark.release
def test_sgld_with_reshuffled_blocks():
    """Noise that cancels over an epoch: the law of the composed recursion, over all orders of four blocks."""
    model = regression()
    step = 0.3 * model.posterior()[1][0, 0]
    provider = Minibatch(model, 3, draw="reshuffle")
    mean, var, _ = replicate(discrete.SGLD(provider, step), model.mode(), 32, seed=44, steps=100_000)
    u, w, prior = linear_terms(provider.packed)
    blocks = [(4.0 * a, 4.0 * b) for a, b in zip(u.reshape(4, 3).sum(axis=1), w.reshape(4, 3).sum(axis=1), strict=True)]
    first, second = epoch_law(blocks, prior, step)
    variance = second - first**2
    assert_unbiased((mean - first) / np.sqrt(variance), 0.0, resolution=0.03)
    assert_unbiased(var / variance, 1.0, resolution=0.03)
    assert abs(minibatch_law(model, 3, True, step)[1] / variance - 1.0) > 0.1


@pytest.mark.parametrize(
    "steps, start, replicates, resolution", [(20_000, 4.0, 64, (0.08, 0.08)), (30, 20.0, 800, (0.16, 0.4))]
)
def test_decreasing_steps_and_weighted_averages(steps, start, replicates, resolution):
    """E of the averages of x and x² from the start on, by the recursion of the moments; steps 0.8 (1 + k)^-0.3.

    The short run, from far away, sees which step a state is weighted with; the long one sees the law.
    """
    process = discrete.SGLD(Full(ONE), discrete.schedules.polynomial(0.8, 1.0, 0.3))
    mean, var, _ = replicate(process, [1.5 + start], replicates, seed=45, warmup=0.0, steps=steps)
    gammas = 0.8 * (1.0 + np.arange(steps)) ** -0.3
    m, s, first, second = start, start**2, 0.0, 0.0
    for gamma in gammas:
        first, second = first + gamma * m, second + gamma * s
        m, s = (1.0 - gamma) * m, (1.0 - gamma) ** 2 * s + 2.0 * gamma
    first, second = first / gammas.sum(), second / gammas.sum()
    assert_unbiased(mean - 1.5, first, resolution=resolution[0])
    assert_unbiased(var + (mean - 1.5) ** 2, second, resolution=resolution[1])


# ---------------------------------------------------------------------------------------------------------------
# SGBD


@pytest.mark.parametrize(
    "estimator, tau, sigma",
    [
        ("vanilla", 0.0, 0.8),
        ("vanilla", 2.0, 0.5),
        ("corrected", 0.0, 0.8),
        ("corrected", 2.0, 0.5),
        ("corrected", 6.0, 0.5),  # beyond the breaking point
        ("extreme", 4.0, 0.5),
    ],
)
def test_sgbd_in_one_dimension(estimator, tau, sigma):
    """Against the stationary law of its transition kernel on a lattice; vanilla and corrected differ by 16 %."""
    process = discrete.SGBD(Noisy(ONE, tau), sigma, estimator)
    mean, var, _ = replicate(process, [1.5], 32, seed=46, steps=150_000)
    truth = barker_law(estimator, sigma, 1.0, tau)[0, 0]
    assert_unbiased((mean - 1.5) / np.sqrt(truth), 0.0, resolution=0.03)
    assert_unbiased(var / truth, 1.0, resolution=0.03)


# ---------------------------------------------------------------------------------------------------------------
# SGRRLD


@pytest.mark.parametrize("tau, correlation", [(0.0, 1.0), (2.0, 1.0), (2.0, 0.0)])
def test_sgrrld_extrapolates_two_exact_laws(tau, correlation):
    """2 S(γ/2) - S(γ), which is nearer to 1 than either."""
    step = 0.5
    process = discrete.SGRRLD(Noisy(ONE, tau), step, correlation)
    mean, var, _ = replicate(process, [1.5], 32, seed=48, steps=150_000)
    coarse, fine = langevin(ONE, tau, step)[0, 0], langevin(ONE, tau, 0.5 * step)[0, 0]
    truth = 2.0 * fine - coarse
    assert abs(truth - 1.0) < 0.4 * abs(fine - 1.0)
    assert_unbiased(mean, 1.5, resolution=0.05)
    assert_unbiased(var, truth, resolution=0.06)
