"""SGHMC, BAOAB and UBU: steps replayed from the same random numbers, stability limits, orders and predicted laws."""

import itertools
import math
import warnings

import numba
import numpy as np
import pytest
from scipy import integrate

import discrete
import pdmp
from discrete.laws import kinetic_covariance, largest_step
from discrete.momenta import Preconditioned
from discrete.ubu import remainder
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from pdmp.process import DATA, KINDS
from tests.checks import new_chain, plain, run_chain
from tests.kinetics import SCHEMES, additive, free_motion, spectral_radius, stationary, step_map
from tests.targets import MEAN, MODEL, PRECISION

pytestmark = pytest.mark.exact

EXACT = Noisy(MODEL, 0.0)
ONE = Gaussian([0.0], [1.0])
PLANE = Gaussian(np.zeros(2), np.eye(2))


#: What compiled code adds nothing to: each would compile its sampler once more, for the types of its parts.
plain_only = pytest.mark.skipif(not numba.config.DISABLE_JIT, reason="in plain Python; compiled with other parts")
SCHEDULES = {
    "constant": (0.2, lambda k: 0.2),
    "decreasing": (discrete.schedules.polynomial(0.3, 2.0, 0.4), lambda k: 0.3 * (2.0 + k) ** -0.4),
}
schedules = pytest.mark.parametrize("schedule", ["constant", pytest.param("decreasing", marks=plain_only)])


def sampler(scheme, provider, step, friction=1.0, **options):
    if scheme in ("BAOAB", "UBU"):
        return getattr(discrete, scheme)(provider, step, friction, **options)
    return discrete.SGHMC(provider, step, friction, scheme=scheme, **options)


def record(process, x, steps, seed=5):
    return run_chain(process, x, seed, steps=steps).finish()


class Stream:
    """The random numbers of a chain with seed 5, and the gradient with the noise that it draws."""

    def __init__(self, tau=0.0):
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
        self.tau, self.eta = tau, np.zeros(3)

    def normals(self, n=3):
        return self.rng.standard_normal(n)

    def gradient(self, x, anew=True):
        if anew:
            self.eta = self.tau * self.normals()
        return PRECISION @ (x - MEAN) + self.eta


# ---------------------------------------------------------------------------------------------------------------
# Every step


@schedules
@pytest.mark.parametrize("tau", [0.0, 0.7])
@pytest.mark.parametrize("scheme", SCHEMES[:3])
@pytest.mark.parametrize("L, m, B", [(None, 1, 0.0), (3, 1, 0.2), (None, 4, 0.0), (4, 2, 0.0)])
@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
def test_every_step_of_sghmc_is_its_recursion(scheme, tau, L, m, B, schedule):
    """Momenta refreshed every L steps, batches (here: their noise) every m; with decreasing steps B in proportion."""
    D, (given, step) = 0.8, SCHEDULES[schedule]
    process = sampler(scheme, Noisy(MODEL, tau), given, D, refresh_every=L, batch_every=m, noise_estimate=B)
    found = record(process, np.zeros(3), 12)
    stream = Stream(tau)
    x, p, squares = np.zeros(3), stream.normals(), []
    for k in range(12):
        eps = step(k)
        z = stream.normals()
        if L and k % L == 0:
            p = stream.normals()
        noise = math.sqrt(2.0 * (D - B * eps / step(0)) * eps) * z
        new = k % m == 0
        if scheme == "explicit":
            g = stream.gradient(x, new)
            x, p = x + eps * p, p - eps * g - eps * D * p + noise
        elif scheme == "semi_implicit":
            x = x + eps * p
            p = p - eps * stream.gradient(x, new) - eps * D * p + noise
        else:
            x = x + 0.5 * eps * p
            p = math.exp(-0.5 * D * eps) * p - eps * stream.gradient(x, new) + noise
            p = math.exp(-0.5 * D * eps) * p
            x = x + 0.5 * eps * p
        squares.append(p @ p / 3.0)
        np.testing.assert_allclose(found.xs[k], x, rtol=1e-10, atol=1e-12)
    assert found.statistics["mean_kinetic_temperature"] == pytest.approx(np.mean(squares), rel=1e-10)
    assert found.counts[DATA] == 12


@schedules
@pytest.mark.parametrize("tau", [0.0, 0.7])
def test_every_step_of_baoab_is_its_recursion(tau, schedule):
    """B A O A B; the second B and the next step's first have the same gradient, noise and all."""
    D, (given, step) = 0.8, SCHEDULES[schedule]
    found = record(discrete.BAOAB(Noisy(MODEL, tau), given, D), np.zeros(3), 12)
    stream = Stream(tau)
    x, p, squares = np.zeros(3), stream.normals(), []
    for k in range(12):
        eps = step(k)
        z = stream.normals()
        if k == 0:
            g = stream.gradient(x)
        p = p - 0.5 * eps * g
        x = x + 0.5 * eps * p
        p = math.exp(-D * eps) * p + math.sqrt(1.0 - math.exp(-2.0 * D * eps)) * z
        x = x + 0.5 * eps * p
        g = stream.gradient(x)
        p = p - 0.5 * eps * g
        squares.append(p @ p / 3.0)
        np.testing.assert_allclose(found.xs[k], x, rtol=1e-10, atol=1e-12)
    assert found.statistics["mean_kinetic_temperature"] == pytest.approx(np.mean(squares), rel=1e-10)
    assert found.counts[DATA] == 13  # one a step, and the first


def ubu_factors(eps, D):
    """Cholesky factor of what the two free motions add: to p in all, to θ before the kick, to θ after it."""
    flow, noise = free_motion(0.5 * eps, D)
    first = np.array([[0.0, flow[1, 1]], [1.0, 0.0], [0.0, flow[0, 1]]])  # of the first motion's (θ, p)
    second = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    return np.linalg.cholesky(first @ noise @ first.T + second @ noise @ second.T), flow


def ubu_path(eps, D, tau, steps):
    """Positions after each step, and |p|² / d."""
    stream = Stream(tau)
    x, p = np.zeros(3), stream.normals()
    for k in range(steps):
        factor, flow = ubu_factors(eps(k), D)
        to_p, before, after = factor @ stream.normals(9).reshape(3, 3)
        x = x + flow[0, 1] * p + before
        p = flow[1, 1] * p - eps(k) * stream.gradient(x)
        x = x + flow[0, 1] * p + after
        p = flow[1, 1] * p + to_p
        yield x, p @ p / 3.0


@schedules
@pytest.mark.parametrize("tau, D", [(0.0, 0.8), (0.7, 0.8), (0.0, 25.0)])
def test_every_step_of_ubu_is_its_recursion(tau, D, schedule):
    """The free motion's covariance from matrix exponentials, its Cholesky factor by numpy."""
    given, step = SCHEDULES[schedule]
    found = record(discrete.UBU(Noisy(MODEL, tau), given, D), np.zeros(3), 12)
    xs, squares = zip(*ubu_path(step, D, tau, 12), strict=True)
    np.testing.assert_allclose(found.xs, xs, rtol=1e-9, atol=1e-11)
    assert found.statistics["mean_kinetic_temperature"] == pytest.approx(np.mean(squares), rel=1e-10)
    assert found.counts[DATA] == 12


def test_small_steps_of_ubu_keep_their_digits():
    """Covariances of order ε³, the difference of terms of order ε: by the series."""
    found = record(discrete.UBU(EXACT, 1e-2, 1.0), np.zeros(3), 5)
    np.testing.assert_allclose(found.xs, [x for x, _ in ubu_path(lambda k: 1e-2, 1.0, 0.0, 5)], rtol=1e-8)
    for u in (1e-8, 1e-3, 0.0299, 0.0301, 0.5, 40.0):
        # its derivative is tanh²(u/2)
        expected, _ = integrate.quad(lambda s: math.tanh(0.5 * s) ** 2, 0.0, u, epsrel=1e-13, epsabs=0.0, limit=200)
        assert plain(remainder)(u) == pytest.approx(expected, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("t, D", [(0.7, 0.5), (0.05, 3.0)])
def test_the_free_motion_has_the_covariance_of_its_stochastic_differential_equation(t, D):
    """∫ h(s) h(s)ᵀ 2D ds with the response (1 - e^(-Ds)) / D of θ and e^(-Ds) of p; and the docstring's formulas."""
    _, noise = free_motion(t, D)

    def entry(i, j):
        def product(s):
            response = (-math.expm1(-D * s) / D, math.exp(-D * s))
            return 2.0 * D * response[i] * response[j]

        return integrate.quad(product, 0.0, t, epsrel=1e-12)[0]

    np.testing.assert_allclose(noise, [[entry(i, j) for j in (0, 1)] for i in (0, 1)], rtol=1e-8)
    u, e = D * t, math.exp(-D * t)
    stated = [[(2.0 * u - 3.0 + 4.0 * e - e * e) / D**2, (1.0 - e) ** 2 / D], [(1.0 - e) ** 2 / D, 1.0 - e * e]]
    np.testing.assert_allclose(noise, stated, rtol=1e-8)
    given = noise[0, 0] - noise[0, 1] ** 2 / noise[1, 1]
    assert given == pytest.approx(2.0 * (u - 2.0 * math.tanh(0.5 * u)) / D**2, rel=1e-6)


@plain_only
def test_a_batch_is_used_until_the_next_one_is_drawn():
    """Every gradient counts its data; with one batch for all steps the chain is that of this batch's posterior."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 2))
    model = LinearGaussian(A, rng.standard_normal(6))
    process = discrete.SGHMC(Minibatch(model, 2), 0.1, batch_every=100)
    chain = run_chain(process, [0.0, 0.0], 5, steps=8)
    assert chain.finish().counts[DATA] == 16
    rows = chain.state.memory.provider.rows
    theirs = LinearGaussian(A[rows], model.y[rows], noise_scale=math.sqrt(2.0 / 6.0))
    stream = Stream()
    x, p = np.zeros(2), stream.normals(2)
    for k in range(8):
        z = stream.normals(2)
        if k == 0:
            stream.rng.random(2)  # the batch
        x = x + 0.05 * p
        p = math.exp(-0.1) * p + math.exp(-0.05) * (math.sqrt(0.2) * z - 0.1 * theirs.gradient(x))
        x = x + 0.05 * p
        np.testing.assert_allclose(chain.finish().xs[k], x, rtol=1e-10)


# ---------------------------------------------------------------------------------------------------------------
# Conventions


@pytest.mark.parametrize("scheme", SCHEMES[:3])
def test_the_displacement_convention_gives_the_same_path(scheme):
    """v = εp, h = ε², α = εD, β̂ = εB."""
    h, alpha, beta = 0.04, 0.15, 0.03
    theirs = discrete.SGHMC.from_h(Noisy(MODEL, 0.5), h, alpha, beta, scheme=scheme)
    ours = discrete.SGHMC(Noisy(MODEL, 0.5), 0.2, 0.75, scheme=scheme, noise_estimate=0.15)
    found = record(theirs, np.zeros(3), 10).xs
    np.testing.assert_allclose(found, record(ours, np.zeros(3), 10).xs, rtol=1e-12)
    if scheme == "splitting":
        return
    stream = Stream(0.5)  # and is the recursion of that convention
    x, v = np.zeros(3), math.sqrt(h) * stream.normals()
    for k in range(10):
        z, old = stream.normals(), v
        there = x + v
        g = stream.gradient(x if scheme == "explicit" else there)
        x, v = there, v - h * g - alpha * old + math.sqrt(2.0 * (alpha - beta) * h) * z
        np.testing.assert_allclose(found[k], x, rtol=1e-10)


def test_another_momentum_of_ubu_gives_the_same_path():
    """dv = -γv dt - c∇U dt + √(2γc) dW with steps h, in its own units."""
    h, gamma, c = 0.3, 2.0, 0.25
    process = discrete.UBU.from_c(Noisy(MODEL, 0.5), h, gamma, c)
    assert (process.schedule.step(0), process.friction) == (pytest.approx(0.15), pytest.approx(4.0))
    default = discrete.UBU.from_c(MODEL, 0.3)
    assert (default.schedule.step(0), default.friction) == (0.3, 2.0)
    found = record(process, np.zeros(3), 8).xs
    flow, noise = free_motion(0.5 * h, gamma)
    first = np.array([[0.0, flow[1, 1]], [1.0, 0.0], [0.0, flow[0, 1]]])
    second = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    factor = np.linalg.cholesky(c * (first @ noise @ first.T + second @ noise @ second.T))
    stream = Stream(0.5)
    x, v = np.zeros(3), math.sqrt(c) * stream.normals()
    for k in range(8):
        to_v, before, after = factor @ stream.normals(9).reshape(3, 3)
        x = x + flow[0, 1] * v + before
        v = flow[1, 1] * v - h * c * stream.gradient(x)
        x = x + flow[0, 1] * v + after
        v = flow[1, 1] * v + to_v
        np.testing.assert_allclose(found[k], x, rtol=1e-9)


def test_the_fine_chain_refreshes_at_the_same_times_and_expects_half_the_noise():
    """B = ετ²/2 is half as much at half the step: the variance τ² stays."""
    coarse = discrete.SGHMC(MODEL, 0.2, refresh_every=3, noise_estimate=0.4, batch_every=2)
    fine = coarse.halved()
    assert (coarse.refresh_every, fine.refresh_every, fine.batch_every) == (3, 6, 2)
    assert fine.noise_variance == coarse.noise_variance == pytest.approx(4.0)


@plain_only
def test_extrapolated_baoab_keeps_two_stored_forces():
    """Driven by the same noise the chains stay within order ε; 3 gradients a step and the 2 first ones."""
    apart = []
    for eps in (0.2, 0.02, 0.002):
        process = discrete.RichardsonRomberg(discrete.BAOAB(EXACT, eps))
        found = record(process, MEAN, round(2.0 / eps))
        coarse = found.kinds == 1
        apart.append(np.abs(found.xs[coarse, :3] - found.xs[coarse, 3:]).max() / eps)
        assert found.counts[DATA] == 3 * round(2.0 / eps) + 2
    assert max(apart) < 1.0 and apart[2] > 0.01 * apart[0]
    assert process.copies == (2.0, -1.0)
    np.testing.assert_allclose(discrete.RichardsonRomberg(discrete.BAOAB(MODEL, 0.1)).copies, (4.0 / 3.0, -1.0 / 3.0))


# ---------------------------------------------------------------------------------------------------------------
# Stability


@pytest.mark.parametrize("friction", [0.05, 0.7, 3.0, 9.0])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_stability_limit_is_where_the_spectral_radius_is_one(scheme, friction):
    for curvature in (1.0, 6.0):
        limit = sampler(scheme, ONE, 0.01, friction).stability_limit(curvature)
        below = 0.999 * limit if limit else 8.0
        assert spectral_radius(scheme, below, friction, curvature) < 1.0
        for fraction in np.linspace(0.05, 0.95, 7):
            assert spectral_radius(scheme, fraction * below, friction, curvature) < 1.0
        if limit:
            assert spectral_radius(scheme, 1.001 * limit, friction, curvature) > 1.0
        else:
            assert (scheme, friction > 1.03 * math.sqrt(curvature)) == ("splitting", True)


@pytest.mark.parametrize("friction", [0.03, 1.5])
@pytest.mark.parametrize("every", [2, 5, 10, 33])
@pytest.mark.parametrize("scheme", SCHEMES[:3])
@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
def test_the_stability_limit_with_refreshed_momenta(scheme, every, friction):
    """Where L steps from a new momentum no longer bring θ nearer to the mode."""
    process = sampler(scheme, ONE, 0.01, friction, refresh_every=every)
    for curvature in (1.0, 6.0):
        limit = process.stability_limit(curvature)
        steps = np.append(np.linspace(0.0, 0.999, 60)[1:], 0.9999) * (limit or 20.0)
        assert all(spectral_radius(scheme, eps, friction, curvature, every) < 1.0 for eps in steps)
        if limit is not None:
            assert spectral_radius(scheme, 1.0001 * limit, friction, curvature, every) > 1.0


@pytest.mark.filterwarnings("ignore:SGHMC with scheme:UserWarning")
def test_momenta_refreshed_at_every_step_of_an_asymmetric_scheme_have_no_stable_step():
    """The kick is thrown away before it moves θ: a random walk."""
    for scheme in ("explicit", "semi_implicit"):
        assert sampler(scheme, ONE, 0.1, refresh_every=1).stability_limit(1.0) == 0.0
        assert spectral_radius(scheme, 0.1, 1.0, 1.0, 1) == pytest.approx(1.0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_step_above_the_limit_warns(scheme):
    limit = sampler(scheme, MODEL, 0.1, 0.5).stability_limit(np.linalg.eigvalsh(PRECISION)[-1])
    sampler(scheme, MODEL, 0.99 * limit, 0.5).resolve(MEAN)
    with pytest.warns(UserWarning, match=f"stability limit of {limit:.4g}"):
        sampler(scheme, MODEL, 1.01 * limit, 0.5).resolve(MEAN)
    assert sampler(scheme, MODEL, 0.1).stability_limit(-1.0) is None


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*stability limit")
@pytest.mark.parametrize("scheme", ["explicit", "BAOAB", "UBU"])
def test_a_chain_that_diverges_stops(scheme):
    chain = new_chain(sampler(scheme, Noisy(Gaussian(0.0, [1e300]), 0.0), 1e10), [1.0], 1, steps=100).advance()
    assert "not finite" in chain.failure[0]


# ---------------------------------------------------------------------------------------------------------------
# The laws on Gaussian targets


STATED = {  # λ times the variance of θ, from the docstrings; x = ε²λ, y = Dε/2
    "splitting": lambda eps, D, lam, tau, x, y: (1.0 + eps * tau**2 / (2.0 * D)) * y / math.sinh(y),
    "semi_implicit": lambda eps, D, lam, tau, x, y: (
        (1.0 + eps * tau**2 / (2.0 * D)) / (1.0 - x / (4.0 - 2.0 * eps * D))
    ),
    "explicit": lambda eps, D, lam, tau, x, y: (
        (1.0 + eps * tau**2 / (2.0 * D))
        * D
        / (D - eps * lam)
        * (4.0 - 2.0 * eps * D + 2.0 * x)
        / (4.0 - 2.0 * eps * D + x)
    ),
    "BAOAB": lambda eps, D, lam, tau, x, y: 1.0 + 0.25 * (eps * tau) ** 2 / math.tanh(y) / (1.0 - 0.25 * x),
}


@pytest.mark.parametrize("tau", [0.0, 1.5])
@pytest.mark.parametrize("scheme", STATED)
def test_the_stated_variances(scheme, tau):
    for eps, D, lam in ((0.3, 1.3, 2.0), (0.05, 4.0, 1.0)):
        found = additive(scheme, eps, D, lam, tau=tau).cov[0, 0]
        assert found * lam == pytest.approx(STATED[scheme](eps, D, lam, tau, eps**2 * lam, 0.5 * D * eps), rel=1e-9)


ORDERS = {"explicit": 1, "semi_implicit": 2, "splitting": 2, "UBU": 2}


@pytest.mark.parametrize("scheme", ORDERS)
def test_the_order_of_the_bias(scheme):
    A = PRECISION
    truth = np.linalg.inv(A)
    bias = [np.abs(additive(scheme, eps, 1.2, A).cov - truth).max() for eps in (0.04, 0.02, 0.01)]
    np.testing.assert_allclose(np.log2(np.divide(bias[:-1], bias[1:])), ORDERS[scheme], atol=0.1)
    assert sampler(scheme, MODEL, 0.1).bias_order == ORDERS[scheme]


def test_baoab_is_exact_for_a_gaussian_at_every_step():
    for eps in (0.05, 0.6, 1.2):
        law = additive("BAOAB", eps, 0.7, PRECISION, PRECISION @ MEAN)
        np.testing.assert_allclose(law.mean, MEAN, rtol=1e-8)
        np.testing.assert_allclose(law.cov, np.linalg.inv(PRECISION), atol=1e-9)
        assert law.temperature == pytest.approx(1.0 - eps**2 * np.trace(PRECISION) / 12.0)


@pytest.mark.parametrize("every", [2, 5, 10])
@pytest.mark.parametrize("scheme", ["explicit", "semi_implicit"])
def test_refreshed_momenta_of_asymmetric_schemes_have_a_bias_that_stays(scheme, every):
    """Variance L / (L - 1) at the smallest steps, for both; the splitting's error vanishes."""
    assert additive(scheme, 1e-3, 1e-6, 1.0, refresh_every=every).cov[0, 0] == pytest.approx(
        every / (every - 1.0), rel=1e-3
    )
    assert additive("splitting", 1e-3, 1e-6, 1.0, refresh_every=every).cov[0, 0] == pytest.approx(1.0, rel=1e-5)
    with pytest.warns(UserWarning, match=f"{every / (every - 1.0):.3g} times the target's variance"):
        process = sampler(scheme, MODEL, 0.1, refresh_every=every)
    assert process.bias_order == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sampler("splitting", MODEL, 0.1, refresh_every=every).bias_order == 2


# ---------------------------------------------------------------------------------------------------------------
# Predicted laws, and steps chosen by them


HESSIAN, NOISE = PRECISION[:2, :2], np.array([[3.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("scheme", ["splitting", "BAOAB", "UBU"])
def test_the_predicted_covariance_with_correlated_noise(scheme):
    """The stationary law of the whole map, with noise that does not commute with the Hessian."""
    cls = type(sampler(scheme, MODEL, 0.1))
    found = kinetic_covariance(HESSIAN, NOISE, lambda curvature: cls.linear_step(0.4, 1.3, curvature))
    columns = np.linalg.cholesky(NOISE).T  # noise of two equally likely values ± each column has that covariance
    values = [a * columns[0] + b * columns[1] for a, b in itertools.product((1.0, -1.0), repeat=2)]
    law = stationary([[step_map(scheme, 0.4, 1.3, HESSIAN, b)] for b in values], 2).cov
    np.testing.assert_allclose(found, law, rtol=1e-7)
    assert kinetic_covariance(HESSIAN, NOISE, lambda curvature: cls.linear_step(30.0, 0.1, curvature)) is None


@pytest.mark.parametrize("separation", [0.0, 1e-14, 1e-9, 1e-5, 1e-2])
@pytest.mark.parametrize("double", [0.0, 0.6, 0.999])
def test_the_predicted_covariance_where_damping_is_critical(double, separation):
    """Steps whose two eigenvalues along the first axis (nearly) coincide, against the sum of M^n Q (M^n)ᵀ."""
    u, gap = np.array([[1.0, 0.4], [-0.7, 2.0]]), 1.0 - double
    jordan = np.array([[double, gap], [0.0, double - separation * gap]])
    first = np.array([[0.0, 0.0], [0.3, separation]]) if double == 0.0 else u @ jordan @ np.linalg.inv(u)
    steps, kick = np.array([first, [[0.9, 0.1], [-0.3, 0.5]]]), np.array([0.3, 1.0])
    injected = np.array([[[0.02, 0.01], [0.01, 0.4]], [[0.0, 0.0], [0.0, 0.3]]])
    curvature, axes = np.linalg.eigh(HESSIAN)
    whole, q = np.zeros((4, 4)), np.kron(axes.T @ NOISE @ axes, np.outer(kick, kick))
    for i, at in enumerate((slice(0, 2), slice(2, 4))):
        whole[at, at] = steps[i]
        q[at, at] += injected[i]
    for _ in range(20):  # doubles the number of terms
        q, whole = q + whole @ q @ whole.T, whole @ whole
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kinetic_covariance(HESSIAN, NOISE, lambda c: (steps, kick, injected))
    np.testing.assert_allclose(axes.T @ found @ axes, q[::2, ::2], rtol=1e-6)


@pytest.mark.parametrize("scheme", ["splitting", "BAOAB", "UBU"])
def test_candidates_have_a_law_within_the_error(scheme):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 2)) * [1.0, 3.0]
    model = LinearGaussian(A, A @ np.ones(2) + rng.standard_normal(60))
    cls = type(sampler(scheme, MODEL, 0.1))
    batch = Minibatch(model, 20, draw="distinct")
    (process,) = cls.recipe.processes(cls, model, batch, model.mode(), 0.1).values()
    hessian, eps, D = model.hessian(), process.schedule.step(0), process.friction
    terms = model.term_gradients(model.mode(), np.arange(60))
    noise = 60.0**2 / 20.0 * (40.0 / 59.0) * np.cov(terms.T, ddof=0)
    worst = []
    for step in (eps, 1.05 * eps):
        law = kinetic_covariance(hessian, noise, lambda curvature, step=step: cls.linear_step(step, D, curvature))
        worst.append(np.abs(np.diag(law) / np.diag(np.linalg.inv(hessian)) - 1.0).max())
    assert worst[0] <= 0.1 < worst[1]
    # Of the frictions tried, the one whose slowest mode decays fastest at its own largest step.
    curvature = np.linalg.eigvalsh(hessian)
    radii = {}
    for friction in 2.0 * math.sqrt(curvature[0]) * np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0]):
        step, _ = largest_step(
            lambda step, D=friction: kinetic_covariance(
                hessian, noise, lambda curvature: cls.linear_step(step, D, curvature)
            ),
            np.linalg.inv(hessian),
            1.0 / math.sqrt(curvature[1]),
        )
        radii[friction] = max(spectral_radius(scheme, step, friction, one) for one in curvature)
    assert D == pytest.approx(min(radii, key=radii.get))
    assert max(spectral_radius(scheme, eps, D, one) for one in curvature) == pytest.approx(min(radii.values()))
    assert f"{eps:.3g}" in process.recipe.setting(process) and f"{D:.3g}" in process.recipe.setting(process)


def test_candidates_do_not_let_two_errors_cancel():
    """At a large friction and step the splitting's variance is too small by as much as noise makes it too large."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal(60)
    model = LinearGaussian(a[:, None], a + 2.0 * rng.standard_normal(60))
    (process,) = discrete.SGHMC.recipe.processes(discrete.SGHMC, model, Minibatch(model, 5), model.mode(), 0.1).values()
    law = additive("splitting", process.schedule.step(0), process.friction, model.hessian())
    assert abs(law.cov[0, 0] * model.hessian()[0, 0] - 1.0) < 0.1


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: discrete.SGHMC(MODEL, 0.1, friction=0.0), "`friction` must be a positive number, got 0.0"),
        (lambda: discrete.BAOAB(MODEL, 0.1, friction=-1.0), "`friction` must be a positive number, got -1.0"),
        (lambda: discrete.UBU(MODEL, 0.1, friction=math.inf), "`friction` must be a positive number, got inf"),
        (lambda: discrete.UBU(MODEL, 0.1, friction="1"), "`friction` must be a positive number, got '1'"),
        (lambda: discrete.BAOAB(MODEL, 0.0), "`step` must be positive"),
        (lambda: discrete.SGHMC(MODEL, 0.1, scheme="leapfrog"), "`scheme` must be one of 'splitting', 'semi_implicit'"),
        (lambda: discrete.SGHMC(MODEL, 0.1, refresh_every=0), "`refresh_every` must be a whole number"),
        (lambda: discrete.SGHMC(MODEL, 0.1, batch_every=1.5), "`batch_every` must be a whole number"),
        (
            lambda: discrete.SGHMC(MODEL, 0.1, 1.0, noise_estimate=1.1),
            "`noise_estimate` must lie between 0 and the fri",
        ),
        (
            lambda: discrete.SGHMC(MODEL, 0.1, 1.0, noise_estimate=-0.1),
            "`noise_estimate` must lie between 0 and the fr",
        ),
        (lambda: discrete.SGHMC(MODEL, 0.1, 1.0, noise_estimate=math.nan), "`noise_estimate` must lie between 0"),
        (lambda: discrete.SGHMC.from_h(MODEL, -0.1), "`h` must be a positive number, got -0.1"),
        (lambda: discrete.SGHMC.from_h(MODEL, discrete.schedules.polynomial(0.1)), "for a schedule give the steps"),
        (lambda: discrete.SGHMC.from_h(MODEL, 0.1, alpha=0.0), "`alpha` must be a positive number"),
        (lambda: discrete.UBU.from_c(MODEL, 0.1, c=0.0), "`c` must be a positive number"),
        (lambda: discrete.UBU.from_c(MODEL, 0.0), "`h` must be a positive number"),
    ],
)
def test_bad_input_is_a_line_that_names_the_argument(make, message):
    with pytest.raises(ValueError) as caught:
        make()
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_summary_says_that_a_chain_is_hot():
    hot = discrete.SGHMC(Noisy(Gaussian(0.0, [1.0]), 20.0), 0.2)
    assert "kinetic temperature" in repr(pdmp.sample(hot, steps=200, seed=1).summary())
    cold = discrete.SGHMC(Noisy(Gaussian(0.0, [1.0]), 0.0), 0.2)
    assert "kinetic temperature" not in repr(pdmp.sample(cold, steps=2_000, seed=1).summary())


def test_the_splitting_s_limit_ends_where_friction_wins():
    limit = discrete.SGHMC(PLANE, 0.1, friction=1.02).stability_limit(1.0)
    assert limit is not None and limit**2 == pytest.approx(4.0 * math.cosh(0.51 * limit))
    assert discrete.SGHMC(PLANE, 0.1, friction=1.05).stability_limit(1.0) is None


@pytest.mark.parametrize("make", [discrete.SGHMC, discrete.SGNHT, discrete.MSGNHT, discrete.SGRRHMC])
@pytest.mark.parametrize("h", [-1.0, 0.0, True, "a"])
def test_conversions_check_their_step(make, h):
    with pytest.raises(ValueError, match="`h` must be a positive number"):
        make.from_h(PLANE, h)


def test_a_summary_says_that_a_chain_is_frozen():
    """Kinetic temperature far below 1: friction times step is ten."""
    with pytest.warns(UserWarning, match="friction times step"):
        process = discrete.SGHMC(Noisy(PLANE, 0.0), 0.5, friction=20.0)
    assert "too large for the friction" in repr(pdmp.sample(process, steps=300, seed=1).summary())


@pytest.mark.exact
@pytest.mark.parametrize("preconditioner", [[0.5, 2.0, 1.3], PRECISION])
def test_a_preconditioned_estimate_again_is_that_of_the_same_batch_at_the_new_point(preconditioner):
    """Lᵀ ∇Û(L y), LLᵀ = P, at a y that is not the last one."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((12, 3))
    batch = Minibatch(LinearGaussian(A, A @ np.ones(3) + rng.standard_normal(12)), 4)
    metric = pdmp.Metric(covariance=preconditioner).made(3)
    root = np.linalg.cholesky(np.diag(preconditioner) if np.ndim(preconditioner) == 1 else preconditioner)
    whole, own = Preconditioned(batch, metric), batch.memory(np.random.default_rng(1))
    for inner in (batch, Minibatch(batch.model, 4, draw="epoch"), ControlVariate(batch.model, 2, renew=True)):
        for name in ("exact", "independent", "waits_for_warmup", "terms_per_call", "n_data", "dim", "model", "anchor"):
            assert getattr(Preconditioned(inner, metric), name) is getattr(inner, name), name
    memory, counts = whole.memory(np.random.default_rng(1)), np.zeros(KINDS, np.int64)
    rng, same, found, expected = np.random.default_rng(2), np.random.default_rng(2), np.zeros(3), np.zeros(3)
    for k, y in enumerate(np.random.default_rng(3).standard_normal((6, 3))):
        if k % 3 == 0:
            whole.native.gradient(y, memory, rng, found, counts)
            batch.native.gradient(root @ y, own, same, expected, counts)
        else:
            whole.native.gradient_again(y, memory, found, counts)
            batch.native.gradient_again(root @ y, own, expected, counts)
        np.testing.assert_allclose(found, root.T @ expected, rtol=1e-12)
