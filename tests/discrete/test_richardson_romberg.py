"""Richardson-Romberg: both chains replayed from the same random numbers; weights, threads, order of the bias."""

import contextlib
import math
import threading
import time
import warnings

import numba
import numpy as np
import pytest

import discrete
import pdmp
from discrete import threads as threads_module
from discrete.laws import langevin_covariance
from pdmp.gradients import Noisy
from pdmp.models import Gaussian, LinearGaussian
from pdmp.process import DATA
from tests.checks import minibatch_law, new_chain, plain_only, run_chain
from tests.engine.helpers_run import interrupted, resumed_after_deaths

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.8], [0.8, 1.5]])
MEAN = np.array([1.0, -2.0])
MODEL = Gaussian(MEAN, PRECISION)
PLANE = Gaussian(np.zeros(2), np.eye(2))
EXACT = Noisy(MODEL, 0.0)  #: its gradient, compiled once with that of the tests with noise
NOISY = Noisy(MODEL, 0.5)
FINE, COARSE = 0, 1


def rows(process, x, steps, seed=7):
    """Times, kinds, fine and coarse positions after each tick."""
    record = run_chain(process, x, seed, steps=steps).finish()
    d = len(x)
    return record.times, record.kinds, record.xs[:, :d], record.xs[:, d:]


class OwnStream:
    """The random numbers of the coarse chain: sfc32 with numpy's 32-bit words, seeded by three of the chain's."""

    def __init__(self, rng):
        self.a, self.b, self.c = (np.array([w], np.uint32) for w in rng.integers(0, 2**32, 3))
        self.counter = np.array([1], np.uint32)
        for _ in range(12):
            self.word()

    def word(self):
        out = self.a + self.b + self.counter
        self.counter = self.counter + np.uint32(1)
        self.a = self.b ^ (self.b >> np.uint32(9))
        self.b = self.c + (self.c << np.uint32(3))
        self.c = ((self.c << np.uint32(21)) | (self.c >> np.uint32(11))) + out
        return int(out[0])

    def random(self):
        high, low = self.word() >> 5, self.word() >> 6
        return (high * 2**26 + low) / 2**53

    def standard_normal(self, size):
        pairs = [(self.random(), self.random()) for _ in range(size)]
        return np.array([math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * w) for u, w in pairs])


def generator(seed=7):
    """The random numbers of a chain with this seed."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


SCHEDULES = {
    "constant": (0.1, lambda k: 0.1),
    "decreasing": (discrete.schedules.polynomial(0.2, 3.0, 0.4), lambda k: 0.2 * (3.0 + k) ** -0.4),
}


SIGMA = np.array([[0.5, 0.6], [-0.2, 0.3]])
CORRELATIONS = {"1": 1.0, "0.6": 0.6, "0": 0.0, "-1": -1.0, "none": None, "matrix": SIGMA}


def combined(correlation, first, second, rng):
    """Z of the coarse step; the remainder's square root by its Newton iteration, a numpy of its own."""
    both = (first + second) / math.sqrt(2.0)
    if np.ndim(correlation) == 0:
        rho = correlation or 0.0
        rest = math.sqrt(1.0 - rho**2)
        return rho * both + (rest * rng.standard_normal(len(both)) if rest > 0.0 else 0.0)
    wanted = np.eye(2) - correlation.T @ correlation
    root = np.eye(2)
    for _ in range(30):
        root = 0.5 * (root + wanted @ np.linalg.inv(root))
    return correlation.T @ both + root @ rng.standard_normal(2)


@plain_only
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_both_chains_are_langevin_recursions_with_shared_increments(schedule, correlation):
    """Two half steps of the fine chain, each with the gradient where it is, then one step of the coarse one."""
    correlation = CORRELATIONS[correlation]
    given, step = SCHEDULES[schedule]
    start = np.array([0.4, -0.7])
    times, kinds, fine, coarse = rows(discrete.SGRRLD(NOISY, given, correlation), start, 20)
    rng = generator()
    own = OwnStream(rng)

    def gradient(x, stream):
        return PRECISION @ (x - MEAN) + 0.5 * stream.standard_normal(2)

    x = y = start
    now = 0.0
    for k in range(20):
        gamma = step(k)
        increments = rng.standard_normal((2, 2)).T
        z = combined(correlation, *increments, rng)
        for half in (0, 1):
            x = x - 0.5 * gamma * gradient(x, rng) + math.sqrt(gamma) * increments[half]
            np.testing.assert_allclose(fine[3 * k + half], x, rtol=1e-10, atol=1e-12)
        y = y - gamma * gradient(y, own) + math.sqrt(2.0 * gamma) * z
        np.testing.assert_allclose(coarse[3 * k + 2], y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(times[3 * k : 3 * k + 3] - now, [0.5 * gamma, gamma, gamma], rtol=1e-10)
        now = times[3 * k + 2]
        assert kinds[3 * k : 3 * k + 3].tolist() == [FINE, FINE, COARSE]


def hamiltonian_step(scheme, x, p, eps, friction, estimate, gradient, z):
    """One step of SGHMC."""
    noise = math.sqrt(2.0 * (friction - estimate) * eps) * z
    if scheme == "explicit":
        return x + eps * p, p - eps * gradient(x) - eps * friction * p + noise
    decay = math.exp(-0.5 * friction * eps)
    x = x + 0.5 * eps * p
    p = decay * (decay * p - eps * gradient(x) + noise)
    return x + 0.5 * eps * p, p


@plain_only
@pytest.mark.parametrize(
    "scheme, estimate, every", [("explicit", 0.0, None), ("splitting", 0.4, None), ("splitting", 0.0, 3)]
)
def test_both_chains_are_hamiltonian_recursions_with_shared_increments(scheme, estimate, every):
    """From the same momentum, with the same friction and times of refreshment; B is ετ²/2, half of it for half of ε."""
    eps = 0.1
    process = discrete.SGRRHMC(NOISY, eps, 2.0, 0.6, scheme, noise_estimate=estimate, refresh_every=every)
    chain = run_chain(process, MEAN, 7, steps=20)
    record = chain.finish()
    rng = generator()
    p = q = rng.standard_normal(2)
    own = OwnStream(rng)
    x = y = MEAN
    for k in range(20):
        increments = rng.standard_normal((2, 2)).T
        z = combined(0.6, *increments, rng)
        for half in (0, 1):
            if every and (2 * k + half) % (2 * every) == 0:
                p = rng.standard_normal(2)

            def gradient(x):
                return PRECISION @ (x - MEAN) + 0.5 * rng.standard_normal(2)

            x, p = hamiltonian_step(scheme, x, p, 0.5 * eps, 2.0, 0.5 * estimate, gradient, increments[half])
            np.testing.assert_allclose(record.xs[3 * k + half, :2], x, rtol=1e-10, atol=1e-12)
        if every and k % every == 0:
            q = own.standard_normal(2)
        y, q = hamiltonian_step(
            scheme, y, q, eps, 2.0, estimate, lambda x: PRECISION @ (x - MEAN) + 0.5 * own.standard_normal(2), z
        )
        np.testing.assert_allclose(record.xs[3 * k + 2, 2:], y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(chain.state.v, np.concatenate([p, q]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_chains_meet_at_exactly_the_same_times_the_fine_one_first(schedule):
    times, kinds, *_ = rows(discrete.SGRRLD(EXACT, SCHEDULES[schedule][0]), np.zeros(2), 500)
    fine, coarse = times[kinds == FINE], times[kinds == COARSE]
    np.testing.assert_array_equal(fine[1::2], coarse)
    assert np.all(np.diff(fine) > 0.0)
    np.testing.assert_array_equal(kinds, np.tile([FINE, FINE, COARSE], 500))


FLAT = Gaussian(0.0, np.full(4, 1e-200))  #: without a gradient to speak of the chains are their own noise
FOUR = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0] * [[1.0], [0.9], [0.5], [0.0]]


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [1.0, 0.5, 0.0, None, "matrix"])
def test_the_increments_have_unit_covariance_and_their_stated_correlation(correlation):
    """Cov(Z) = I and Cov(Z, (Z'₁ + Z'₂)/√2) = Σᵀ, singular values 1, 0.9, 0.5, 0; ρ = 1: the same noise."""
    sigma = FOUR if correlation == "matrix" else (correlation or 0.0) * np.eye(4)
    given = FOUR if correlation == "matrix" else correlation
    n = 4_000
    _, kinds, fine, coarse = rows(discrete.SGRRLD(Noisy(FLAT, 0.0), 0.5, given), np.zeros(4), n)
    shared = np.diff(fine[kinds == COARSE], axis=0, prepend=0.0)
    own = np.diff(coarse[kinds == COARSE], axis=0, prepend=0.0)
    if correlation == 1.0:
        np.testing.assert_allclose(shared, own, atol=1e-9)
    found = np.hstack([own, shared]).T @ np.hstack([own, shared]) / n
    expected = np.block([[np.eye(4), sigma.T], [sigma, np.eye(4)]])
    assert np.max(np.abs(found - expected)) < 6.0 * math.sqrt(2.0 / n)  # 6 standard errors of the diagonal, 8 off it
    assert correlation != "matrix" or np.max(np.abs(sigma - sigma.T)) > 0.5


# ---------------------------------------------------------------------------------------------------------------
# Orders of the bias


def slopes(bias):
    """d log |bias| / d log γ between γ and γ/2."""
    gammas = np.array([4e-3, 2e-3, 1e-3, 5e-4])
    return np.diff(np.log(np.abs([bias(g) for g in gammas]))) / np.diff(np.log(gammas))


@pytest.mark.parametrize("distinct", [False, True])
def test_the_bias_is_of_first_order_and_extrapolated_of_second(distinct):
    """Exact recursion of the moments, on a linear Gaussian model in one dimension with mini-batches."""
    rng = np.random.default_rng(8)
    a = rng.standard_normal(40)
    model = LinearGaussian(a[:, None], 2.0 * a + rng.standard_normal(40))
    truth = model.posterior()[1][0, 0]

    def plain(gamma):
        return minibatch_law(model, 8, distinct, gamma)[1] - truth

    def extrapolated(gamma):
        return 2.0 * plain(0.5 * gamma) - plain(gamma)

    small = 0.01  # of the stability limit, that the leading order leads
    np.testing.assert_allclose(slopes(lambda g: plain(small * g)), 1.0, atol=0.15)
    np.testing.assert_allclose(slopes(lambda g: extrapolated(small * g)), 2.0, atol=0.3)


@pytest.mark.parametrize("precision, tau", [(1.0, 0.0), (2.0, 3.0)])
def test_the_leading_term_of_the_extrapolated_bias(precision, tau):
    """-γ² (λ + τ²) / 8."""

    def variance(gamma):
        return langevin_covariance(np.array([[precision]]), np.array([[tau**2]]), gamma)[0, 0]

    gamma = 1e-3
    bias = 2.0 * variance(0.5 * gamma) - variance(gamma) - 1.0 / precision
    assert bias == pytest.approx(-(gamma**2) * (precision + tau**2) / 8.0, rel=0.01)


# ---------------------------------------------------------------------------------------------------------------
# The estimates of a run


def equation_6(run, step, f, first=1):
    """Σ γₖ₊₁ [f(θ²₂ₖ₋₁) + f(θ²₂ₖ) - f(θ¹ₖ)] / Σ γₖ₊₁, k = first … K, by the letter; ``step(k)`` is γₖ₊₁."""
    fine, coarse = run.trajectories[0].positions, run.trajectories[0].coarse  # θ²₀, θ²₁, … and θ¹₀, θ¹₁, …
    k = np.arange(first, len(coarse))
    gamma = np.array([step(j) for j in k])
    total = sum(g * (f(fine[2 * j - 1]) + f(fine[2 * j]) - f(coarse[j])) for g, j in zip(gamma, k, strict=True))
    return total / gamma.sum(), gamma.sum()


def bent(x):
    return np.sin(x[0]) + x[1] ** 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_paper_weights_are_those_of_equation_6(schedule):
    """θ₀ has no weight, and the last states have theirs: the path ends at γ₂ + … + γ_{K+1}."""
    given, step = SCHEDULES[schedule]
    start = np.array([3.0, 0.0])
    run = pdmp.sample(discrete.SGRRLD(EXACT, given, weights="paper"), steps=12, initial=start, seed=3)
    assert len(run.trajectories[0].coarse) == 13 and len(run.trajectories[0].positions) == 25
    expected, length = equation_6(run, step, bent)
    assert run.expectation(bent) == pytest.approx(expected, rel=1e-11)
    assert run.end[0] == pytest.approx(length, rel=1e-12)
    np.testing.assert_allclose(run.mean(), equation_6(run, step, lambda x: x)[0], rtol=1e-11)
    to_time = pdmp.sample(discrete.SGRRLD(EXACT, given, weights="paper"), time=length, initial=start, seed=3)
    np.testing.assert_allclose(to_time.mean(), run.mean(), rtol=1e-11)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warm_up_of_steps_leaves_out_the_first_terms_of_equation_6(schedule):
    given, step = SCHEDULES[schedule]
    process = discrete.SGRRLD(EXACT, given, weights="paper")
    run = pdmp.sample(process, steps=12, warmup=0.25, initial=MEAN, seed=3)
    np.testing.assert_allclose(run.mean(), equation_6(run, step, lambda x: x, first=4)[0], rtol=1e-11)
    assert run.warmup[0] == pytest.approx(sum(step(k) for k in (1, 2, 3)), rel=1e-12)
    short = pdmp.sample(process, steps=7, initial=MEAN, seed=3)  # its last states wait, and the chain goes on
    whole = pdmp.sample(process, steps=12, initial=MEAN, seed=3)
    longer = short.extend(steps=12)
    np.testing.assert_array_equal(longer.mean(), whole.mean())
    np.testing.assert_array_equal(longer.trajectories[0].positions, whole.trajectories[0].positions)


def test_holding_weights_are_the_steps_for_which_each_state_is_held():
    given, step = SCHEDULES["decreasing"]
    n, start = 12, np.array([3.0, 0.0])
    run = pdmp.sample(discrete.SGRRLD(EXACT, given), steps=n, initial=start, seed=3)
    fine, coarse = run.trajectories[0].positions, run.trajectories[0].coarse
    gamma = np.array([step(k) for k in range(n)])
    held = np.repeat(0.5 * gamma, 2)  # of θ²₀, θ²₁, …, θ²₂ₙ₋₁
    expected = (2.0 * held @ fine[:-1] - gamma @ coarse[:-1]) / gamma.sum()
    np.testing.assert_allclose(run.mean(), expected, rtol=1e-10)
    assert run.end[0] == pytest.approx(gamma.sum(), rel=1e-12)
    paper = pdmp.sample(discrete.SGRRLD(EXACT, given, weights="paper"), steps=n, initial=start, seed=3)
    np.testing.assert_array_equal(paper.trajectories[0].positions, fine)  # the same states
    assert np.max(np.abs(paper.mean() - run.mean())) > 1e-3
    held = np.repeat([step(k + 1) for k in range(n)], 2) / 2.0  # eq. 6: of θ²₁, θ²₂, …, θ²₂ₙ
    gamma = 2.0 * held[::2]
    np.testing.assert_allclose(paper.mean(), (2.0 * held @ fine[1:] - gamma @ coarse[1:]) / gamma.sum(), rtol=1e-10)


@pytest.mark.parametrize("schedule", [0.1, SCHEDULES["decreasing"][0]], ids=["constant", "decreasing"])
def test_with_the_papers_weights_a_run_within_a_step_ends_where_it_is(schedule):
    """Of three events in a step, θ²₂ₖ₊₁, θ¹ₖ₊₁ and θ²₂ₖ₊₂; only after the last one are the states held for a step."""
    process = discrete.SGRRLD(EXACT, schedule, weights="paper")

    def end(**budget):
        return pdmp.sample(process, initial=[3.0, 0.0], seed=3, **budget).end[0]

    ends = [end(steps=n) for n in (1, 2, 3)]
    for n in range(3, 10):
        assert end(events=n) == pytest.approx(ends[n // 3 - 1], rel=1e-12)


def a_run():
    return pdmp.sample(discrete.SGRRLD(EXACT, 0.1), steps=200, initial=MEAN, seed=9, warmup=0.1)


def test_expectations_are_linear_and_exact_for_constants():
    run = a_run()
    assert run.expectation(lambda x: 1.0) == pytest.approx(1.0, rel=1e-12)
    f, g = run.expectation(lambda x: x[0] ** 2), run.expectation(lambda x: np.sin(x[1]))
    assert run.expectation(lambda x: 3.0 * x[0] ** 2 - np.sin(x[1])) == pytest.approx(3.0 * f - g, rel=1e-10)
    np.testing.assert_allclose(run.expectation(lambda x: x), run.mean(), rtol=1e-10)


def test_estimates_are_twice_the_fine_chain_minus_the_coarse_one():
    """θ²ₖ₋₁ and θ²ₖ with half a step each, θ¹ₖ with a whole one; variances from extrapolated expectations."""
    run = a_run()
    path = run.trajectories[0]
    a, b = path.warmup, path.end
    record = run_chain(discrete.SGRRLD(EXACT, 0.1), MEAN, np.random.SeedSequence(9).spawn(1)[0], steps=200).finish()
    times, xs = record.times, record.xs

    def average(f):
        held = np.searchsorted(times, a + 1e-9, side="right") - 1
        knots = np.append(times[held:], b)
        knots[0] = a
        return np.diff(knots) @ f(xs[held:]) / (b - a)

    mean = 2.0 * average(lambda x: x[:, :2]) - average(lambda x: x[:, 2:])
    np.testing.assert_allclose(run.mean(), mean, rtol=1e-9)
    second = 2.0 * average(lambda x: (x[:, :2] - mean) ** 2) - average(lambda x: (x[:, 2:] - mean) ** 2)
    np.testing.assert_allclose(run.var(), second, rtol=1e-9)
    np.testing.assert_allclose(np.diag(run.cov()), second, rtol=1e-9)


def test_curves_along_a_run_of_both_chains():
    """Averages from the end of the warm-up: of each chain, and extrapolated; exact, or over a grid of all steps."""
    process, options = discrete.SGRRLD(EXACT, 0.1), {"steps": 60, "initial": [3.0, 0.0], "seed": 9, "warmup": 1 / 6}
    run = pdmp.sample(process, **options)
    path = run.trajectories[0]
    fine, coarse = bent(path.positions[20:-1].T), bent(path.coarse[10:-1].T)  # each held to its next tick
    steps = np.arange(1, 51)
    both = np.stack([np.cumsum(fine)[1::2] / (2.0 * steps), np.cumsum(coarse) / steps], axis=1)
    np.testing.assert_allclose(pdmp.diagnostics.running_mean(run, bent, 50, combined=False)[0], both, rtol=1e-9)
    np.testing.assert_allclose(
        pdmp.diagnostics.running_mean(run, bent, 50)[0], 2.0 * both[:, 0] - both[:, 1], rtol=1e-9
    )
    np.testing.assert_allclose(pdmp.diagnostics.running_mean(run, n=7)[0, -1], run.mean(), rtol=1e-9)
    assert pdmp.diagnostics.running_mean(run, bent, 5)[0, -1] == pytest.approx(run.expectation(bent), rel=1e-10)
    grid = pdmp.sample(process, **options, store="grid", draws=50)
    rows = grid.records[0].grid.rows[:50]
    values = np.stack([bent(rows[:, :2].T), bent(rows[:, 2:].T)], axis=1).cumsum(axis=0) / steps[:, None]
    np.testing.assert_allclose(pdmp.diagnostics.running_mean(grid, bent, 50, combined=False)[0], values, rtol=1e-12)
    np.testing.assert_allclose(
        pdmp.diagnostics.running_mean(grid, bent, 10)[0], (values @ [2.0, -1.0])[4::5], rtol=1e-12
    )
    assert pdmp.diagnostics.running_mean(grid, bent, 10)[0, -1] == pytest.approx(grid.expectation(bent), rel=1e-12)
    with pytest.raises(ValueError, match="`n` = 51 draws are more than the 50"):
        pdmp.diagnostics.running_mean(grid, bent, 51)
    moments = pdmp.sample(process, **options, store="moments")
    with pytest.raises(ValueError, match="`running_mean` needs the path"):
        pdmp.diagnostics.running_mean(moments)


def test_a_negative_variance_is_returned_with_a_warning():
    """With a step near its limit the coarse chain's variance is many times the fine one's."""
    model = Gaussian([0.0, 0.0], [1.0, 1e-3])
    run = pdmp.sample(discrete.SGRRLD(Noisy(model, 0.0), 1.9), steps=2_000, initial=[0.0, 0.0], seed=1)
    with pytest.warns(UserWarning, match="the extrapolated variance of 1 of 2 coordinates is negative"):
        var = run.var()
    assert var[0] < -1.0 and var[1] > 0.0
    with pytest.warns(UserWarning, match="negative"):
        np.testing.assert_array_equal(np.isnan(run.sd()), [True, False])


# ---------------------------------------------------------------------------------------------------------------
# Orders and conventions


def test_both_conventions_give_the_same_path():
    ours = rows(discrete.SGRRHMC(NOISY, 0.2, 1.5, scheme="explicit"), MEAN, 20)
    theirs = rows(discrete.SGRRHMC.from_h(NOISY, 0.04, 0.3, scheme="explicit"), MEAN, 20)
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-12)
    np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-12)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"correlation": [[1.0, 0.5], [0.0, 1.0]]}, ValueError, "no singular value above 1.*eigenvalue -0.64"),
        ({"correlation": 1.01}, ValueError, r"`correlation` must lie in \[-1, 1\], got 1.01"),
        ({"correlation": np.eye(3)}, ValueError, r"of shape \(2, 2\), got shape \(3, 3\)"),
        ({"correlation": [0.5, 0.5]}, ValueError, r"of shape \(2, 2\), got shape \(2,\)"),
        ({"correlation": math.nan}, ValueError, "`correlation` must be finite"),
        ({"correlation": "all"}, TypeError, "`correlation` must be a number, a matrix or None, got 'all'"),
        ({"order": 0}, ValueError, "`order` must be a whole number, at least 1, got 0"),
        ({"order": 1.5}, ValueError, "`order`.*got 1.5"),
        ({"weights": "equal"}, ValueError, "`weights` must be one of 'holding', 'paper', got 'equal'"),
        ({"threads": 3}, ValueError, "`threads` must be 1 or 2, got 3"),
        ({"threads": True}, ValueError, "`threads` must be 1 or 2, got True"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        discrete.RichardsonRomberg(discrete.SGLD(MODEL, 0.1), **options)


def test_a_singular_remainder_is_no_error():
    """A singular value of 1: I - ΣᵀΣ has the eigenvalue 0, up to rounding of either sign, and a root."""
    sigma = FOUR[:2, :2] / np.linalg.norm(FOUR[:2, :2], 2)
    process = discrete.RichardsonRomberg(discrete.SGLD(MODEL, 0.1), sigma)
    np.testing.assert_allclose(process.own @ process.own, np.eye(2) - sigma.T @ sigma, atol=1e-12)
    assert np.linalg.eigvalsh(process.own)[0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("other", [discrete.SGBD(MODEL, 0.1), pdmp.ZigZag(MODEL), MODEL])
def test_only_samplers_with_brownian_increments(other):
    with pytest.raises(TypeError, match="`sampler` must have Brownian increments to share.*got"):
        discrete.RichardsonRomberg(other)


# ---------------------------------------------------------------------------------------------------------------
# Two threads


def assert_same_records(one, other):
    for a, b in zip(one.records, other.records, strict=True):
        for name in ("times", "kinds", "xs", "vs", "counts"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        np.testing.assert_array_equal(a.integrals.first, b.integrals.first)
        np.testing.assert_array_equal(a.integrals.cross, b.integrals.cross)
    np.testing.assert_array_equal(one.mean(), other.mean())


def two_ways(threads, noise=0.5):
    return discrete.SGRRHMC(Noisy(MODEL, noise), 0.1, 2.0, 0.6, threads=threads)


def test_two_threads_give_the_same_result():
    """Chunks end where the clock says: with two threads, and several chains, at other places."""
    options = {"steps": 300, "initial": MEAN, "seed": 5, "chains": 3, "warmup": 0.1}
    assert_same_records(*(pdmp.sample(two_ways(threads), **options) for threads in (1, 2)))


def test_every_step_by_the_helper_is_the_same():
    """Tick by tick, with all that is posted done by `take_jobs` before the loop asks for it."""
    alone, helped = (new_chain(two_ways(1), MEAN, 5, steps=40) for _ in range(2))
    alone.advance()
    helped.chunk, helped._adapt_chunk = 1, lambda *_: None
    jobs = helped.state.memory.jobs
    while helped.stopped is None:
        helped.advance(seconds=0.0)
        jobs.is_open[0] = 1
        assert threads_module.take_jobs(helped.process.native, helped.state, 3)
        jobs.is_open[0] = 0
    assert jobs.done[0] == jobs.claimed[0] == 40
    np.testing.assert_array_equal(alone.finish().xs, helped.finish().xs)
    assert alone.state.counts[DATA] == helped.state.counts[DATA] == 120
    assert not threads_module.take_jobs(helped.process.native, helped.state, 3)  # the jobs are closed


def test_resumed_with_two_threads_is_uninterrupted_with_one(tmp_path, monkeypatch):
    call = {"steps": 60, "chains": 2, "seed": 15, "warmup": 0.3, "initial": MEAN}
    whole = pdmp.sample(two_ways(1), **call)
    again = lambda: pdmp.sample(two_ways(2), checkpoint=tmp_path / "run", **call)  # noqa: E731
    assert_same_records(whole, resumed_after_deaths(again, 7, monkeypatch))


def helpers():
    return [t for t in threading.enumerate() if t.name == "pdmp-helper"]


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.*stability limit")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_gradient_that_is_not_finite_stops_the_run_and_the_helper(threads):
    process = discrete.SGRRHMC(Noisy(Gaussian(0.0, 1e300 * PRECISION), 0.5), 0.1, 2.0, 0.6, threads=threads)
    with pytest.raises(pdmp.SamplingError, match="SGRRHMC diverged at step .*: the gradient of Gaussian or"):
        pdmp.sample(process, steps=100, initial=[1.0, 1.0], seed=1)
    assert not helpers()


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("threads", [1, 2])
def test_the_coarse_chain_alone_can_fail(threads):
    """Stable with half the step, not with the whole one, of which a warning tells before."""
    process = discrete.SGRRLD(NOISY, 1.0, threads=threads)
    with (
        pytest.raises(pdmp.SamplingError, match="diverged at step") as caught,
        pytest.warns(UserWarning, match="limit"),
    ):
        pdmp.sample(process, steps=5_000, initial=MEAN, seed=1, store="moments")
    state = caught.value.run._chains[0].state
    assert np.all(np.abs(state.x[:2]) < 100.0) and state.memory.jobs.failed[0] == 1
    assert not helpers()


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no helper in plain Python")
def test_ctrl_c_with_two_threads():
    pdmp.sample(two_ways(2), steps=10, initial=MEAN, seed=1, store="moments")  # compiled before
    with interrupted():
        run = pdmp.sample(two_ways(2), time=1e12, initial=MEAN, seed=1, store="moments")
    assert run.stopped == "interrupted" and not helpers()
    again = pdmp.sample(two_ways(1), events=int(run.events[0]), initial=MEAN, seed=1, store="moments")
    np.testing.assert_array_equal(again.records[0].integrals.first, run.records[0].integrals.first)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="there is no helper in plain Python")
def test_a_helper_takes_what_is_posted():
    """In a thread of its own, also after it has gone to sleep."""
    chain = new_chain(two_ways(2), MEAN, 5, steps=40)
    jobs = chain.state.memory.jobs
    with threads_module.Helper(chain.process, chain.state):
        assert len(helpers()) == 1
        for job in (1, 2):
            time.sleep(0.05)
            jobs.posted[0] = job
            until = time.perf_counter() + 30.0
            while jobs.done[0] < job and time.perf_counter() < until:
                time.sleep(0.001)
            assert jobs.done[0] == jobs.claimed[0] == job
    assert not helpers()


def test_without_atomic_operations_one_thread_does_it_all(monkeypatch):
    """Where the helper cannot be compiled the result is the same."""

    def fails(*_):
        raise numba.core.errors.LoweringError("no such instruction")

    one = pdmp.sample(two_ways(1), steps=40, initial=MEAN, seed=5)
    monkeypatch.setattr(threads_module, "take_jobs", fails)
    assert_same_records(one, pdmp.sample(two_ways(2), steps=40, initial=MEAN, seed=5))


@plain_only
def test_statistics_of_an_extrapolation_are_the_fine_chain_s():
    process = discrete.SGRRLD(PLANE, 0.1, clip_value=0.4, correlation=None)
    run = pdmp.sample(process, steps=200, seed=2, initial=[1.0, 1.0])
    fine = run.trajectories[0].positions[:-1]
    assert len(fine) == 400
    assert run.stats["mean_clipped"] == pytest.approx(np.mean((np.abs(fine) > 0.4).any(axis=1)))


class Accompanied(discrete.SGLD):
    """Notes when the loop runs in its context."""

    def helper_threads(self, state):
        @contextlib.contextmanager
        def context():
            self.seen.append("in")
            yield
            self.seen.append("out")

        return context()


@plain_only
def test_the_loop_runs_in_the_context_of_its_process():
    process = Accompanied(PLANE, 0.1)
    process.seen = []
    chain = new_chain(process, [0.0, 0.0], 1, steps=5)
    chain.advance()
    assert process.seen == ["in", "out"] * (len(process.seen) // 2) and process.seen


def test_an_extrapolation_is_judged_where_its_squares_are_known(monkeypatch):
    """Where effective draws of the standard deviation are enough, however many there are of the mean."""
    from discrete import richardson_romberg as module

    process = discrete.SGRRLD(pdmp.models.Gaussian([0.0, 0.0], [0.05, 1.0]), 1.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = pdmp.sample(process, steps=1_500, chains=3, seed=1, progress=False)
    for sd_draws, told in ((module.SETTLED, 0), (module.SETTLED + 1.0, 1)):
        found = {"sd": np.full(2, sd_draws), "mean": np.full(2, 2_500.0 - sd_draws)}
        monkeypatch.setattr(module, "draws_ess", lambda draws, method, found=found: found[method])
        assert len(process.report.doubts(run, None)) == told


@pytest.mark.parametrize(("step", "told"), [(0.6, False), (1.1, True)])
def test_an_extrapolation_that_goes_far_is_told(step, told):
    """Of the second coordinate, in its units: to 0.39 of the fine chain's variance at 1.1, and 0.8 at 0.6."""
    model = pdmp.models.Gaussian([0.0, 0.0], [0.05, 1.0])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run = pdmp.sample(discrete.SGRRLD(model, step), steps=1_500, chains=3, seed=1, progress=False)
        pdmp.sample(discrete.SGRRLD(model, step), steps=150, chains=3, seed=1, progress=False)  # too short for that
    said = [str(one.message) for one in found if "extrapolated variance of x[1] is" in str(one.message)]
    assert len(said) == told
    if told:
        ratio = run.var()[1] / run.draws(1_500)[..., 1].var()
        assert f" is {ratio:.2g} times that of the fine chain: the step is too large" in said[0]
        assert any("extrapolated variance of x[1]" in text for text in run.summary().warnings)


@pytest.mark.parametrize("make", [discrete.SGRRLD, discrete.SGRRHMC])
def test_anchors_of_both_chains_move_in_the_warmup_alone(make):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 2))
    model = LinearGaussian(A, A @ [1.0, -1.0] + rng.standard_normal(12))
    far = pdmp.gradients.ControlVariate(model, 3, [9.0, 9.0], renew=True)
    for warmup in (0.0, 0.5):
        memory = run_chain(make(far, 0.02), [0.1, 0.2], 3, steps=200, warmup=warmup).state.memory
        banks = [one.provider.bank for one in (memory.fine, memory.coarse)]
        assert all((bank.renewals[0] > 2) == (warmup > 0.0) for bank in banks)
        assert all((np.linalg.norm(bank.anchor) < 4.0) == (warmup > 0.0) for bank in banks)
