"""Tier 3: SGHMC, BAOAB and UBU against the exact laws that they have at their steps, in θ and in temperature.

The laws come from `tests.kinetics`: affine maps written from the papers' formulas, for Gaussian targets, and the
transition kernel on a lattice, for another one. Each test states the smallest relative error that it promises to see.
For scale: a factor 1/2 at the kick, the friction or the noise changes a variance by 30 % or more.
"""

import math

import numpy as np
import pytest

import discrete
from pdmp import compiled
from pdmp.gradients import Noisy, Provider
from pdmp.models import Gaussian
from pdmp.models.base import Model
from pdmp.process import DATA
from tests.checks import assert_unbiased, in_ci, run_chain
from tests.kinetics import SCHEMES, additive, batches, lattice_law, with_batches

ONE = Gaussian([1.5], [1.0])
D = 5
SDS = np.linspace(0.7, 1.4, D)
COVARIANCE = 0.6 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))) * np.outer(SDS, SDS)
FIVE = Gaussian(np.arange(float(D)), np.linalg.inv(COVARIANCE))


class Terms(Model):
    """U = κ θ²/2 + r sin(2θ) + Σ (aᵢ θ - yᵢ)²/2, in one dimension: not Gaussian, and with a bounded curvature."""

    A: np.ndarray
    y: np.ndarray
    prior_precision: float
    ripple: float

    noise_precision = 1.0

    def __init__(self, a, y, prior_precision=1.0, ripple=0.0):
        super().__init__(1, len(a))
        self.A, self.y = np.array(a, dtype=float)[:, None], np.array(y, dtype=float)
        self.prior_precision, self.ripple = float(prior_precision), float(ripple)

    @compiled
    def prior_potential(self, x):
        return 0.5 * self.prior_precision * x[0] * x[0] + self.ripple * math.sin(2.0 * x[0])

    @compiled
    def add_prior_gradient(self, x, out):
        out[0] += self.prior_precision * x[0] + 2.0 * self.ripple * math.cos(2.0 * x[0])

    @compiled
    def term_potential(self, x, i):
        residual = self.A[i, 0] * x[0] - self.y[i]
        return 0.5 * residual * residual

    @compiled
    def add_term_gradient(self, x, i, out):
        out[0] += self.A[i, 0] * (self.A[i, 0] * x[0] - self.y[i])


KINDS = ("iid", "distinct", "blocks")


class Batches(Provider):
    """Mini-batches of every kind in one class, so that a sampler is compiled once for all of them."""

    size: int
    kind: int

    def __init__(self, model, size, kind):
        super().__init__(model)
        self.size, self.kind = size, KINDS.index(kind)

    def memory(self, rng):
        return self.make_memory(self.size, self.n_data)

    @compiled
    def gradient(self, x, memory, rng, out, counts):
        order, n_data = memory.order, self.model.n_data
        for k in range(self.size):
            if self.kind == 0:
                memory.rows[k] = int(rng.random() * n_data)
            elif self.kind == 1:
                j = k + int(rng.random() * (n_data - k))
                order[k], order[j] = order[j], order[k]
                memory.rows[k] = order[k]
        if self.kind == 2:
            blocks, place = n_data // self.size, memory.place[0]
            j = place + int(rng.random() * (blocks - place))
            order[place], order[j] = order[j], order[place]
            for k in range(self.size):
                memory.rows[k] = order[place] * self.size + k
            memory.place[0] = (place + 1) % blocks
        self.gradient_again(x, memory, out, counts)

    @compiled
    def gradient_again(self, x, memory, out, counts):
        out[0] = 0.0
        for k in range(self.size):
            self.model.add_term_gradient(x, memory.rows[k], out)
        out[0] *= self.model.n_data / self.size
        self.model.add_prior_gradient(x, out)
        counts[DATA] += self.size


def sampler(scheme, provider, step, friction, **options):
    if scheme in ("BAOAB", "UBU"):
        return getattr(discrete, scheme)(provider, step, friction)
    return discrete.SGHMC(provider, step, friction, scheme=scheme, **options)


def replicates(process, initial, number, seed, steps):
    """Means (R, d), covariances (R, d, d) and temperatures (R,) of independent chains."""
    found = []
    d = process.dim
    for child in np.random.SeedSequence(seed).spawn(number):
        record = run_chain(process, initial, child, warmup=0.01, store="moments", covariance=True, steps=steps).finish()
        first, cross = record.integrals.first / record.length, np.tril(record.integrals.cross) / record.length
        cov = cross + np.tril(cross, -1).T - np.outer(first, first)
        found.append((first + record.integrals.centre, cov, record.statistics["mean_kinetic_temperature"]))
    means, covs, temperatures = map(np.array, zip(*found, strict=True))
    return means, covs.reshape(-1, d, d), temperatures


def assert_law(process, law, initial, seed, steps, resolution):
    """Relative: mean in standard deviations, variances, correlations, temperature."""
    means, covs, temperatures = replicates(process, initial, 24, seed, steps)
    sd = np.sqrt(np.diag(law.cov))
    assert_unbiased((means - law.mean) / sd, 0.0, resolution=resolution)
    i, j = np.triu_indices(len(sd))
    assert_unbiased((covs / np.outer(sd, sd))[:, i, j], (law.cov / np.outer(sd, sd))[i, j], resolution=resolution)
    assert_unbiased(temperatures / law.temperature, 1.0, resolution=resolution)


@pytest.mark.parametrize("tau", in_ci([0.0, 2.0], 2.0))
@pytest.mark.parametrize("scheme", SCHEMES)
def test_in_one_dimension(scheme, tau):
    """Large steps: without noise the schemes' variances are 0.985, 1.06, 1.44, 1 and 0.974."""
    eps, friction = 0.4, 1.5
    law = additive(scheme, eps, friction, 1.0, [1.5], tau)
    assert_law(sampler(scheme, Noisy(ONE, tau), eps, friction), law, [1.5], 61, 150_000, 0.03)


@pytest.mark.parametrize("tau", in_ci([0.0, 1.5], 1.5))
@pytest.mark.parametrize("scheme", SCHEMES)
def test_in_five_correlated_dimensions(scheme, tau):
    Q = FIVE.hessian()
    eps, friction = 0.3 if scheme != "explicit" else 0.12, 1.5
    law = additive(scheme, eps, friction, Q, Q @ FIVE.mean, tau)
    steps = 150_000 if scheme != "explicit" else 300_000
    assert_law(sampler(scheme, Noisy(FIVE, tau), eps, friction), law, FIVE.mean, 62, steps, 0.06)


def regression():
    rng = np.random.default_rng(31)
    a = rng.standard_normal(6)
    return Terms(a, 2.0 * a + 2.0 * rng.standard_normal(6))


@pytest.mark.release
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_with_mini_batches(scheme, kind):
    """All batches of two from six, or all orders of three blocks: multiplicative noise, and noise that cancels."""
    model = regression()
    precision = model.hessian(np.zeros(1))[0, 0]
    eps, friction = 0.25 / np.sqrt(precision), np.sqrt(precision)
    laws = {k: with_batches(scheme, eps, friction, batches(model, 2, k)) for k in KINDS}
    process = sampler(scheme, Batches(model, 2, kind), eps, friction)
    assert_law(process, laws[kind], model.mode(), 63, 100_000, 0.04)
    variances = [laws[k].cov[0, 0] for k in KINDS]
    assert variances[0] > 1.06 * variances[1] and variances[1] > 1.06 * variances[2]  # so they are told apart


@pytest.mark.parametrize("every", in_ci([2, 5], 5))
@pytest.mark.parametrize("scheme", in_ci(SCHEMES[:3], "semi_implicit"))
@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
def test_refreshed_momenta(scheme, every):
    """About L / (L - 1), 2 and 1.25, for both asymmetric schemes at a step where the splitting is off by 1 %."""
    eps, friction = 0.2, 0.05
    law = additive(scheme, eps, friction, 1.0, [1.5], refresh_every=every)
    ideal = 1.0 if scheme == "splitting" else every / (every - 1.0)
    assert law.cov[0, 0] == pytest.approx(ideal, rel=0.02 if scheme == "splitting" else 0.1)
    process = sampler(scheme, Noisy(ONE, 0.0), eps, friction, refresh_every=every)
    assert_law(process, law, [1.5], 64, 400_000, 0.06)


def test_a_noise_estimate():
    """Half of what the noise adds is taken off the injected noise: a variance of 1.70, and 2.33 without."""
    eps, friction, tau = 0.4, 1.5, 3.0
    B = 0.5 * eps * tau**2 / 2.0
    law = additive("semi_implicit", eps, friction, 1.0, [1.5], tau, noise_estimate=B)
    process = sampler("semi_implicit", Noisy(ONE, tau), eps, friction, noise_estimate=B)
    assert_law(process, law, [1.5], 65, 150_000, 0.03)


@pytest.mark.parametrize("scheme", in_ci(["semi_implicit", "UBU", "splitting", "BAOAB"]))
def test_on_a_target_that_is_not_gaussian(scheme):
    """U = θ²/2 + 0.4 sin(2θ), no formula: the transition kernel of (θ, p) on a lattice, iterated to its fixed point."""
    model = Terms([0.5, 0.5], [0.0, 0.0], prior_precision=0.5, ripple=0.4)
    eps, friction = 0.5, 1.5
    law = lattice_law(scheme, eps, friction, lambda x: x + 0.8 * np.cos(2.0 * x))
    assert_law(sampler(scheme, Batches(model, 2, "distinct"), eps, friction), law, [0.0], 66, 150_000, 0.03)
