"""Tier 3: the thermostats' averages against the exact laws of their discretised recursions.

Their noise multiplies a friction that is itself random, and their moments do not close. But in one dimension the law is
that of (θ, p, ξ), and its density relative to the continuous-time limit, N(0, 1/λ) × N(0, 1) × N(A', 1), is smooth: its
coefficients in Hermite polynomials are the fixed point of the transition kernel, by Gauss-Hermite quadrature
(`kernel_law`, written from the papers' formulas). For more dimensions there are the stationary identities, and the
leading terms of the bias.

In one dimension a thermostat on its own is not ergodic for a Gaussian target: A = 1 = √λ mixes well.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

import discrete
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, SkewNormal
from tests.checks import Moments, _averages, assert_unbiased, in_ci, linear_terms, run_chain, sorted_blocks
from tests.statistics.helpers_thermostat_laws import gaussian_kicks, kernel_law

# ---------------------------------------------------------------------------------------------------------------
# The stationary law in one dimension


def batch_kicks(model, size):
    """Mini-batches drawn with replacement from a `LinearGaussian` in one dimension: all of them, listed."""
    u, w, prior = linear_terms(model)
    n = len(u)
    outcomes = np.array(list(itertools.combinations_with_replacement(range(n), size)))
    orders = np.array([len(set(itertools.permutations(rows))) for rows in outcomes.tolist()])
    a, b = (n / size * terms[outcomes].sum(axis=1) for terms in (u, w))
    return list(zip(orders / n**size, prior + a, b, strict=True))


SCHEMES = {  # the sampler, its recursion, a step at which the bias can be seen, the order of the bias without noise
    "SGNHT": (discrete.SGNHT, "euler", 0.1, 1),
    "MSGNHT": (discrete.MSGNHT, "splitting", 0.2, 2),
    "BADODAB": (discrete.BADODAB, "badodab", 0.2, 2),
}


def run(process, initial, replicates, seed, steps, warmup=0.02):
    """`Moments` of independent chains, and each one's mean |p|²/d and mean thermostat."""
    found, statistics = [], []
    options = {"warmup": warmup, "store": "moments", "covariance": True}
    for child in np.random.SeedSequence(seed).spawn(replicates):
        chain = run_chain(process, initial, child, steps=steps, **options)
        found.append(_averages(chain.finish(), (1.0,)))
        of = process.report.statistics(process, chain.state)
        statistics.append((of["mean_kinetic_temperature"], of["mean_thermostat"]))
    return Moments(*map(np.array, zip(*found, strict=True))), *np.transpose(statistics)


# ---------------------------------------------------------------------------------------------------------------
# What the laws say, without a sampler


@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
@pytest.mark.parametrize("name", SCHEMES)
def test_the_order_of_the_bias(name, tau):
    """First order for Euler's scheme, second for the symmetric ones, additive noise or not."""
    _, scheme, _, order = SCHEMES[name]
    steps = np.array([0.1, 0.05, 0.025])
    laws = np.array([kernel_law(scheme, eps, 1.0, gaussian_kicks(1.0, tau), 8, 14, 10) for eps in steps])
    bias = laws[:, 1] - 1.0
    assert np.all(np.abs(laws[:, 0]) < 1e-9)
    if tau == 0.0:
        np.testing.assert_allclose(np.log2(bias[:-1] / bias[1:]), order, atol=0.2)
    else:  # A' = A + ετ²/2 is another friction for each step: below its leading term, but of the same order
        assert np.all(np.abs(bias) < (0.8 * steps if order == 1 else 0.4 * steps**2))
    drift = laws[:, 3] - 1.0 - 0.5 * steps * tau**2  # of the thermostat from A': second order where A² = 1/d
    assert np.all(np.abs(drift) < 10.0 * steps**2)
    if scheme != "badodab":
        np.testing.assert_allclose(laws[:, 2], 1.0, atol=1e-9)


def five_points():
    rng = np.random.default_rng(5)
    a = rng.standard_normal(5)
    return LinearGaussian(a[:, None], 2.0 * a + rng.standard_normal(5))


@pytest.mark.parametrize("name", SCHEMES)
def test_noise_that_depends_on_the_position_has_an_effect_of_first_order(name):
    """The mean of θ with mini-batches, which is off because larger θ has the larger noise."""
    model = five_points()
    root = 1.0 / np.sqrt(model.posterior()[1][0, 0])
    steps = np.array([0.1, 0.05]) / root
    means = [kernel_law(SCHEMES[name][1], eps, root, batch_kicks(model, 2), 6, 12, 10)[0] for eps in steps]
    bias = np.array(means) - model.posterior()[0][0]
    assert np.log2(bias[0] / bias[1]) == pytest.approx(1.0, abs=0.1)


# ---------------------------------------------------------------------------------------------------------------
# One dimension


def assert_temperature(temperature, name, step, square):
    """E|p|²/d = 1 where ξ is moved by the p at the end of steps, 1 - ε²/4 E|∇Û|²/d for BADODAB, whatever U.

    BADODAB's two D see q and, the kick 2k later, q - 2k, with a mean of 1 by the stationarity of ξ; the momentum at
    the end of the step is q - k, and (q - k)² = (q² + (q - 2k)²)/2 - k².
    """
    truth = 1.0 - 0.25 * step**2 * square if name == "BADODAB" else 1.0
    assert_unbiased(temperature, truth, resolution=5e-4)


@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
@pytest.mark.parametrize("name", SCHEMES)
def test_in_one_dimension(name, tau):
    """The noise would be worth 20 % of the variance to SGHMC for the step of 0.1, 40 % for that of 0.2."""
    sampler, scheme, step, _ = SCHEMES[name]
    process = sampler(Noisy(Gaussian([1.5], [1.0]), tau), step)
    moments, temperature, thermostat = run(process, [1.5], 32, seed=61, steps=300_000)
    _, variance, _, xi = kernel_law(scheme, step, 1.0, gaussian_kicks(1.0, tau))
    assert_unbiased(moments.mean, 1.5, resolution=0.04)
    assert_unbiased(moments.var, variance, resolution=0.02)
    assert_unbiased(thermostat, xi, resolution=0.02)
    assert_temperature(temperature, name, step, variance + tau**2)


@pytest.mark.parametrize("scheme", ["splitting", "euler"])
def test_a_thermostat_for_each_coordinate_finds_the_noise_of_each(scheme):
    """Independent coordinates: each has the law of one dimension, with its own precision and its own noise."""
    precision, tau, step = np.array([1.0, 3.0, 0.5]), np.array([0.0, 3.0, 1.0]), 0.1
    process = discrete.MSGNHT(Noisy(Gaussian(np.zeros(3), np.diag(precision)), tau), step, scheme=scheme)
    moments, temperature, thermostat = run(process, np.zeros(3), 32, seed=62, steps=400_000)
    laws = np.array([kernel_law(scheme, step, 1.0, gaussian_kicks(*of)) for of in zip(precision, tau, strict=True)])
    assert_unbiased(moments.var / laws[:, 1], 1.0, resolution=0.04)
    assert_unbiased(moments.cov[:, *np.triu_indices(3, 1)], 0.0, resolution=0.05)
    assert_unbiased(thermostat, laws[:, 3].mean(), resolution=0.02)
    assert_temperature(temperature, "MSGNHT", step, 0.0)


@pytest.mark.release
@pytest.mark.parametrize("name", SCHEMES)
def test_with_mini_batches(name):
    """Two of five points at a time: noise that depends on θ, and raises the thermostat by a third of what it is."""
    sampler, scheme, _, _ = SCHEMES[name]
    model = five_points()
    sd = np.sqrt(model.posterior()[1][0, 0])
    step = 0.2 * sd
    process = sampler(Minibatch(model, 2), step, 1.0 / sd)
    moments, temperature, thermostat = run(process, model.mode(), 32, seed=63, steps=300_000)
    kicks = batch_kicks(model, 2)
    mean, variance, _, xi = kernel_law(scheme, step, 1.0 / sd, kicks, 8, 14, 10)
    assert_unbiased((moments.mean - mean) / sd, 0.0, resolution=0.03)
    assert_unbiased(moments.var / variance, 1.0, resolution=0.02)
    assert_unbiased(thermostat / xi, 1.0, resolution=0.02)
    weight, slope, force = np.transpose(kicks)
    square = weight @ ((slope * mean - force) ** 2 + slope**2 * variance)
    assert_temperature(temperature, name, step, square)


@pytest.mark.release
@pytest.mark.parametrize("name", SCHEMES)
def test_with_reshuffled_blocks(name):
    """Three blocks of two of six points, in a new order in each epoch: noise that cancels, and hardly heats."""
    sampler, scheme, _, _ = SCHEMES[name]
    a = np.array([0.5, -0.7, 1.0, 1.3, -1.8, 2.4])
    model = LinearGaussian(a[:, None], 0.8 * a + np.array([1.0, -0.5, 0.3, -1.2, 0.8, -0.2]))
    provider, sd = sorted_blocks(model, 2), np.sqrt(model.posterior()[1][0, 0])
    step = 0.2 * sd
    moments, _, thermostat = run(sampler(provider, step, 1.0 / sd), model.mode(), 32, seed=65, steps=300_000)
    u, w, prior = linear_terms(provider.packed)
    blocks = [(1.0 / 3.0, prior + 3.0 * u[k : k + 2].sum(), 3.0 * w[k : k + 2].sum()) for k in (0, 2, 4)]
    law, independent = (kernel_law(scheme, step, 1.0 / sd, blocks, 8, 14, 10, epochs) for epochs in (True, False))
    assert_unbiased((moments.mean - law[0]) / sd, 0.0, resolution=0.03)
    assert_unbiased(moments.var / law[1], 1.0, resolution=0.02)
    assert_unbiased(thermostat / law[3], 1.0, resolution=0.02)
    assert independent[3] > 1.05 * law[3] and independent[1] > 1.025 * law[1]  # so the two are told apart


@pytest.mark.parametrize("name", in_ci(SCHEMES))
def test_on_a_target_that_is_not_gaussian(name):
    """A skew normal with the shape 1: the step makes its variance 0.954, 0.986 and 0.999 of the target's."""
    sampler, scheme, _, _ = SCHEMES[name]
    step, target = 0.2 if name != "SGNHT" else 0.1, SkewNormal(1.0)
    moments, temperature, thermostat = run(sampler(target, step), [0.5], 32, seed=66, steps=300_000)

    def bend(x):
        return -np.exp(stats.norm.logpdf(x) - stats.norm.logcdf(x))

    mean, variance, _, xi = kernel_law(scheme, step, 1.0, [(1.0, 1.0, 0.0)], 10, 16, 10, bend=bend)
    assert abs(mean - target.exact_mean) < 0.02 and abs(variance / target.exact_variance - 1.0) < 0.1
    assert_unbiased(moments.mean, mean, resolution=0.02)
    assert_unbiased(moments.var / variance, 1.0, resolution=0.02)
    assert_unbiased(thermostat, xi, resolution=0.02)
    if name != "BADODAB":
        assert_temperature(temperature, name, step, 0.0)


# ---------------------------------------------------------------------------------------------------------------
# Five dimensions

COVARIANCE = 0.6 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
SCALES = np.outer(np.linspace(0.8, 1.2, 5), np.linspace(0.8, 1.2, 5))
FIVE = Gaussian(np.zeros(5), np.linalg.inv(COVARIANCE * SCALES))


@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
@pytest.mark.parametrize("name", [*SCHEMES, "SGNHT, per block"])
def test_in_five_correlated_dimensions(name, tau):
    """The covariance, to the leading order of the bias: 1 - εA'/2 times the target's for SGNHT, 1 for the others.

    The thermostat's mean is A' + ε (A'² - 1/d) / 2 for SGNHT (d: of its block) and A' for the others. What is left out,
    ε² and for the covariance ε/d, is below 0.01 here. SGHMC with a friction of 1 would be ετ²/2 = 10 % off.
    """
    sampler, _, _, _ = SCHEMES[name.partition(",")[0]]
    options = {"thermostat": "per_block", "blocks": [0, 1, 0, 1, 0]} if "block" in name else {}
    step = 0.05
    process = sampler(Noisy(FIVE, tau), step, **options)
    moments, temperature, thermostat = run(process, np.zeros(5), 32, seed=64, steps=200_000)
    friction, factor, more = 1.0 + 0.5 * step * tau**2, 1.0, 0.0
    if sampler is discrete.SGNHT:
        sizes = np.array([3, 2] if options else [5])
        factor, more = 1.0 - 0.5 * step * friction, 0.5 * step * (friction**2 - np.mean(1.0 / sizes))
    pairs = np.triu_indices(5)
    assert_unbiased((moments.cov / SCALES)[:, *pairs], factor * COVARIANCE[pairs], resolution=0.06)
    assert_unbiased(thermostat, friction + more, resolution=0.02)
    assert_temperature(temperature, name, step, np.trace(FIVE.hessian()) / 5.0 + tau**2)
