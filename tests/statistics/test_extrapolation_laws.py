"""Tier 3: extrapolated averages against 2ᵖ S(fine) - S(coarse) over 2ᵖ - 1, S the exact stationary laws of the chains.

The laws are solutions of linear equations for the second moments of (1, θ) or (1, θ, p), one step of which is a random
affine map: s' = T s + noise, E[s sᵀ] = E[T E[s sᵀ] Tᵀ] + Q. With a batch of n drawn with replacement T is the mean of n
independent maps, those of single data.
"""

import math

import numpy as np
import pytest

import discrete
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import _averages, assert_unbiased, in_ci, replicate, run_chain

D = 5
PRECISION = np.linalg.inv(
    0.6 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    * np.outer(np.linspace(0.6, 1.3, D), np.linspace(0.6, 1.3, D))
)
FIVE = Gaussian(np.arange(float(D)), PRECISION)
ONE = Gaussian([1.5], [[1.0]])
LARGEST = np.linalg.eigvalsh(PRECISION)[-1]


# ---------------------------------------------------------------------------------------------------------------
# The laws


def langevin(step, a, b, tau=0.0):
    """T and Q of one step of SGLD with the gradient aθ - b and additive noise of standard deviation τ."""
    d = len(b)
    t = np.block([[np.eye(1), np.zeros((1, d))], [step * b[:, None], np.eye(d) - step * a]])
    q = np.zeros((d + 1, d + 1))
    q[1:, 1:] = (2.0 * step + step**2 * tau**2) * np.eye(d)
    return t, q


def hamiltonian(eps, a, b, tau=0.0, *, friction, scheme):
    """The same of SGHMC, for (1, θ, p)."""
    d = len(b)
    one, zero, unit = np.eye(1), np.zeros((1, d)), np.eye(d)
    column, none = np.zeros((d, 1)), np.zeros((d, d))
    variance = (2.0 * friction * eps + eps**2 * tau**2) * unit
    noise = np.zeros((2 * d + 1, 2 * d + 1))
    noise[d + 1 :, d + 1 :] = variance
    if scheme == "explicit":
        t = np.block(
            [[one, zero, zero], [column, unit, eps * unit], [eps * b[:, None], -eps * a, (1 - eps * friction) * unit]]
        )
        return t, noise
    drift = np.block([[one, zero, zero], [column, unit, 0.5 * eps * unit], [column, none, unit]])
    decay = np.diag(np.concatenate([np.ones(d + 1), np.full(d, math.exp(-0.5 * friction * eps))]))
    kick = np.block([[one, zero, zero], [column, unit, none], [eps * b[:, None], -eps * a, unit]])
    after = drift @ decay
    return after @ kick @ decay @ drift, after @ noise @ after.T


def moments(maps, size, noise):
    """Stationary E[s sᵀ] of s' = T s + N(0, noise), s₀ = 1, T the mean of `size` of the maps drawn with replacement."""
    mean = np.mean(maps, axis=0)
    m = len(mean)
    both = (1.0 - 1.0 / size) * np.kron(mean, mean) + sum(np.kron(t, t) for t in maps) / (size * len(maps))
    system = np.eye(m * m) - both
    system[0], right = 0.0, noise.ravel()
    system[0, 0] = right[0] = 1.0  # s₀ s₀ = 1 replaces the row that says that it stays
    return np.linalg.solve(system, right).reshape(m, m)


def law(one_step, step, model, tau=0.0, size=None):
    """Stationary mean (d,) and covariance (d, d) of θ."""
    d = model.dim
    if size is None:
        q = model.hessian()
        t, noise = one_step(step, q, q @ model.mean, tau)
        maps, size = [t], 1
    else:  # of single data, scaled up
        a, n_data = model.A, model.n_data
        maps = [
            one_step(step, n_data * np.outer(u, u) + np.eye(d), n_data * u * y)[0]
            for u, y in zip(a, model.y, strict=True)
        ]
        noise = one_step(step, np.eye(d), np.zeros(d))[1]
    second = moments(maps, size, noise)
    mean = second[0, 1 : d + 1]
    return mean, second[1 : d + 1, 1 : d + 1] - np.outer(mean, mean)


def assert_law(process, one_step, step, model, *, tau=0.0, size=None, order=1, replicates=32, seed, steps, resolution):
    """Extrapolated means and covariances, in units of the target's standard deviations."""
    weight = 1.0 / (2.0**order - 1.0)
    mean, coarse = law(one_step, step, model, tau, size)
    same, fine = law(one_step, 0.5 * step, model, tau, size)
    np.testing.assert_allclose(mean, same, rtol=1e-7, atol=1e-9)  # the mean is exact, multiplicative noise or not
    truth = (1.0 + weight) * fine - weight * coarse
    target = np.linalg.inv(model.hessian())
    sd = np.sqrt(np.diag(target))
    found = replicate(process, mean, replicates, seed=seed, steps=steps)
    assert_unbiased((found.mean - mean) / sd, 0.0, resolution=resolution)
    j, k = np.triu_indices(model.dim)
    scale = np.outer(sd, sd)
    assert_unbiased((found.cov / scale)[:, j, k], (truth / scale)[j, k], resolution=resolution)
    error = [np.abs(np.diag(s / target) - 1.0).max() for s in (truth, fine, coarse)]
    assert error[2] > error[1] > 2.5 * error[0] and error[2] > resolution, error  # it would be seen missing


# ---------------------------------------------------------------------------------------------------------------
# SGRRLD


@pytest.mark.parametrize("tau", in_ci([0.0, 1.5], 1.5))
def test_sgrrld_in_five_correlated_dimensions(tau):
    step = 0.5 / LARGEST
    process = discrete.SGRRLD(Noisy(FIVE, tau), step, 0.5 * np.eye(D)[::-1])
    assert_law(process, langevin, step, FIVE, tau=tau, seed=61, steps=100_000, resolution=0.12)


def data(n_data, d, seed=33):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n_data, d))
    return LinearGaussian(a, a @ np.ones(d) + rng.standard_normal(n_data))


@pytest.mark.release
def test_sgrrld_in_five_dimensions_with_mini_batches():
    model = data(30, D)
    step = 0.25 / np.linalg.eigvalsh(model.hessian())[-1]
    process = discrete.SGRRLD(Minibatch(model, 6), step)
    assert_law(process, langevin, step, model, size=6, seed=62, steps=100_000, resolution=0.12)


# ---------------------------------------------------------------------------------------------------------------
# SGRRHMC


@pytest.mark.parametrize(
    "scheme, tau, step", [("explicit", 0.0, 0.25), ("explicit", 1.0, 0.25), ("splitting", 2.0, 0.4)]
)
@pytest.mark.parametrize("model", [ONE, FIVE], ids=["one", "five"])
def test_sgrrhmc_with_known_noise(model, scheme, tau, step):
    """The explicit scheme's error is of first order, and so is that of the noise in any scheme."""
    step = step if model is ONE else 0.4 * step

    def one_step(*args):
        return hamiltonian(*args, friction=2.0, scheme=scheme)

    process = discrete.SGRRHMC(Noisy(model, tau), step, 2.0, scheme=scheme, correlation=0.8)
    assert_law(process, one_step, step, model, tau=tau, seed=63, steps=100_000, resolution=0.1)


def test_sgrrhmc_of_second_order():
    """Without noise the splitting is extrapolated with the weights 4/3 and -1/3."""
    step = 0.9

    def one_step(*args):
        return hamiltonian(*args, friction=2.0, scheme="splitting")

    process = discrete.SGRRHMC(Noisy(ONE, 0.0), step, 2.0, order=2)
    assert_law(process, one_step, step, ONE, order=2, seed=64, steps=100_000, resolution=0.02)


@pytest.mark.parametrize("scheme", in_ci(["explicit", "splitting"]))
def test_sgrrhmc_with_mini_batches(scheme):
    model = data(12, 1)
    step = (0.25 if scheme == "explicit" else 0.5) / math.sqrt(model.hessian()[0, 0])
    friction = 2.0 * math.sqrt(model.hessian()[0, 0])

    def one_step(*args):
        return hamiltonian(*args, friction=friction, scheme=scheme)

    process = discrete.SGRRHMC(Minibatch(model, 3), step, friction, scheme=scheme)
    assert_law(process, one_step, step, model, size=3, seed=65, steps=100_000, resolution=0.1)


# ---------------------------------------------------------------------------------------------------------------
# Variances of the estimates


@pytest.mark.parametrize("correlation", in_ci([1.0, 0.5, 0.0], 0.5))
def test_what_extrapolation_costs_in_variance(correlation):
    """Relative to the coarse chain's own averages: 5 - 4ρ for E θ, 5 - 4ρ² for E θ², for small steps and long runs.

    Coordinates of a standard normal are independent replicates, 1,600 of them. The logarithm of a ratio of variances
    of normals whose correlation is r has the standard error 2 √(1 - r²) / √1600, at most 5 %; five of that are 28 %,
    and a third is what takes 5 - 4ρ for 5 - 4ρ² at ρ = 1/2.
    """
    model = Gaussian(np.zeros(40), np.ones(40))
    process = discrete.SGRRLD(Noisy(model, 0.0), 0.05, correlation)
    found = {"rr": [], "coarse": []}
    for child in np.random.SeedSequence(66).spawn(40):
        record = run_chain(process, np.zeros(40), child, steps=8_000, warmup=0.02, store="moments").finish()
        for name, copies in (("rr", process.copies), ("coarse", (0.0, 1.0))):
            mean, var, _ = _averages(record, copies)
            found[name].append((mean, var + mean**2))
    for k, expected in enumerate((5.0 - 4.0 * correlation, 5.0 - 4.0 * correlation**2)):
        one, other = (np.array([x[k] for x in found[name]]).ravel() for name in ("rr", "coarse"))
        r = np.corrcoef(one, other)[0, 1]
        error = 2.0 * math.sqrt(1.0 - r**2) / math.sqrt(len(one))
        allowed = 5.0 * error + 0.05  # the limits are of steps and times: γλ = 0.05 and one 400th of the time
        assert allowed < 0.32
        assert abs(math.log(one.var() / other.var() / expected)) < allowed, (one.var() / other.var(), expected, error)
