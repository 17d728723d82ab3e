"""SGLD: its recursion replayed from the same random numbers, its options, predicted law, conventions and weights."""

import itertools
import math

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from discrete import schedules
from discrete.curvature import noise_covariance
from discrete.laws import langevin_covariance
from discrete.preconditioners import RMSprop, Scheduled
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import minibatch_law, new_chain, plain_only, run_chain
from tests.targets import MEAN, MODEL, PRECISION, data

pytestmark = pytest.mark.exact

PLANE = Gaussian(np.zeros(2), np.eye(2))


def path(process, x, steps, seed=5):
    """Times (K,) and positions (K, D) after each tick, the times from 0."""
    record = run_chain(process, x, seed, steps=steps).finish()
    return record.times, record.xs


@pytest.mark.parametrize(
    "scale, schedule", [(None, 0.1), (0.7, 0.1), (None, discrete.schedules.polynomial(0.2, 3.0, 0.4))]
)
def test_every_step_is_the_langevin_recursion(scale, schedule):
    """x - γ ∇Û(x) + √(2γ) ξ, replayed with numpy from the same stream: first ξ, then the gradient's noise."""
    provider = Full(MODEL) if scale is None else Noisy(MODEL, scale)
    times, found = path(discrete.SGLD(provider, schedule), [0.0, 0.0, 0.0], 50)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
    x, expected, now = np.zeros(3), [], []
    for k in range(50):
        gamma = schedule if isinstance(schedule, float) else 0.2 * (3.0 + k) ** -0.4
        xi = rng.standard_normal(3)
        gradient = PRECISION @ (x - MEAN)
        if scale is not None:
            gradient = gradient + scale * rng.standard_normal(3)
        x = x - gamma * gradient + math.sqrt(2.0 * gamma) * xi
        expected.append(x)
        now.append(gamma)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(times, np.cumsum(now), rtol=1e-13)


# ---------------------------------------------------------------------------------------------------------------
# Options


P = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, 0.3], [0.0, 0.3, 0.5]])
WARM = schedules.polynomial(8.0, 1.0, 0.5)
TAU = np.array([0.5, 3.0, 8.0])  #: for the last no noise is left to add at the step of the tests
OPTIONS = {
    "temperature": {"temperature": 2.5},
    "temperature schedule": {"temperature": WARM},
    "scalar": {"metric": pdmp.Metric(covariance=0.7)},
    "diagonal": {"metric": pdmp.Metric(covariance=[0.5, 1.0, 2.0]), "temperature": 2.5},
    "dense": {"metric": pdmp.Metric(covariance=P), "temperature": 2.5},
    "RMSprop": {"metric": RMSprop(0.9, 1.0)},
    "RMSprop with gamma": {"metric": RMSprop(0.9, 1.0, include_gamma=True), "temperature": 2.5},
    "scheduled": {"metric": Scheduled([[0.5, 1.0, 2.0], [1.5, 0.2, 1.0], [1.0, 1.0, 0.3]], [0, 7, 20])},
    "scheduled, dense": {"metric": Scheduled([P, [0.5, 1.0, 2.0], 0.7], [0, 1, 30]), "temperature": 2.5},
    "scheduled, corrected": {
        "metric": Scheduled(lambda k: 2.0 / (1.0 + 0.1 * k), range(0, 40, 3)),
        "correction": "corrected",
    },
    "corrected": {"correction": "corrected"},
    "corrected, warm": {
        "correction": "corrected",
        "metric": pdmp.Metric(covariance=[0.5, 1.0, 2.0]),
        "temperature": WARM,
    },
    "modified": {"correction": "modified"},
    "modified as printed": {"correction": "modified", "coefficient": 0.5, "beta": 1.0},
    "modified, warm": {
        "correction": "modified",
        "metric": pdmp.Metric(covariance=[0.5, 1.0, 2.0]),
        "temperature": WARM,
    },
    "clipped": {"clip_norm": 6.0, "metric": pdmp.Metric(covariance=P)},
}


def replay(
    steps,
    gamma,
    seed,
    temperature=1.0,
    metric=None,
    correction=None,
    coefficient=0.125,
    clip_norm=None,
    beta=0.1,
):
    """The formulas, with numpy; positions, and the fractions that a run reports."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    x, found, squares, slopes, removed, clipped = np.zeros(3), [], 0.0, 0.0, 0, 0
    p = metric.covariance(3) if isinstance(metric, pdmp.Metric) else np.eye(3)
    for k in range(steps):
        t = temperature if isinstance(temperature, float) else temperature.step(k)
        xi = rng.standard_normal(3)
        gradient = PRECISION @ (x - MEAN) + TAU * rng.standard_normal(3)
        gamma_drift = 0.0
        if isinstance(metric, RMSprop):
            weight = 0.1 if k else 1.0
            squares = (1.0 - weight) * squares + weight * gradient**2
            entries = 1.0 / (1.0 + np.sqrt(squares))
            p = np.diag(entries)
            if metric.include_gamma:
                z = np.where(rng.random(3) < 0.5, 1.0, -1.0) * np.maximum(1.0, np.abs(x))
                slopes = (1.0 - weight) * slopes + weight * 2.0 * gradient * (PRECISION @ z) / z
                gamma_drift = -(entries**2) * slopes / (2.0 * np.sqrt(squares))
        elif isinstance(metric, Scheduled):
            p = metric.covariances[max(i for i, begins in enumerate(metric.steps) if begins <= k)]
            p = np.asarray(p) if np.ndim(p) == 2 else np.diag(np.broadcast_to(p, 3))
        elif np.ndim(p) < 2:
            p = np.diag(np.broadcast_to(p, 3))
        if clip_norm is not None:
            clipped += np.linalg.norm(gradient) > clip_norm
            gradient = gradient * min(1.0, clip_norm / np.linalg.norm(gradient))
        noise = math.sqrt(2.0 * gamma * t) * np.linalg.cholesky(p) @ xi
        q = np.diag(p)
        if correction == "corrected":
            variance = 2.0 * gamma * t * q - gamma**2 * q**2 * TAU**2
            noise, removed = np.sqrt(np.maximum(variance, 0.0)) * xi, removed + np.sum(variance <= 0.0)
        if correction == "modified":
            factor = 1.0 - coefficient * 2.0 * gamma * q * TAU**2 / t
            noise, removed = np.maximum(factor, 0.0) * noise, removed + np.sum(factor <= 0.0)
        x = x - gamma * p @ gradient + gamma * t * gamma_drift + noise
        found.append(x)
    return np.array(found), removed / (3 * steps), clipped / steps


#: All in plain Python; compiled, which costs seconds for each, one of each class.
TRIED = list(OPTIONS)
if not config.DISABLE_JIT:
    TRIED = ["temperature", "diagonal", "RMSprop with gamma", "scheduled, dense", "corrected", "modified"]


@pytest.mark.parametrize("name", TRIED)
def test_every_step_with_every_option(name):
    """Against numpy from the same random numbers; gradient noise of known sd, so that its average is exact (L8)."""
    options, gamma = OPTIONS[name], 0.12
    record = run_chain(discrete.SGLD(Noisy(MODEL, TAU), gamma, **options), np.zeros(3), 9, steps=40).finish()
    expected, removed, clipped = replay(40, gamma, 9, **options)
    loose = options.get("metric") is not None and "gamma" in name  # the probe is a difference of gradients
    np.testing.assert_allclose(record.xs, expected, rtol=1e-7 if loose else 1e-10, atol=1e-8 if loose else 1e-11)
    statistics = {}
    if options.get("correction"):
        statistics["mean_noise_removed"] = removed
        assert 0.1 < removed < 0.9
    if options.get("clip_norm"):
        statistics["mean_clipped"] = clipped
        assert 0.1 < clipped < 1.0
    assert record.statistics == pytest.approx(statistics)


@pytest.mark.parametrize("average", ["variance", "sd"])
def test_the_noise_of_batches_is_averaged_without_the_weight_of_the_start(average):
    """τ of mini-batches: (N/√n) S, averaged with weights β (1 - β)^i that are scaled to add up to 1."""
    model, gamma, beta = data(), 0.01, 0.3
    process = discrete.SGLD(Minibatch(model, 3), gamma, correction="corrected", beta=beta, average=average)
    xs = run_chain(process, [0.0, 0.0], 4, steps=30).finish().xs
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(4)))
    x, sds = np.zeros(2), []
    for k in range(30):
        xi = rng.standard_normal(2)
        rows = [int(rng.random() * 6) for _ in range(3)]
        terms = model.term_gradients(x, rows)
        gradient = 6 / 3 * terms.sum(axis=0) + model.prior_precision * x
        sds.append(6 / math.sqrt(3) * terms.std(axis=0, ddof=1))
        weights = beta * (1.0 - beta) ** np.arange(k, -1, -1)
        power = 2 if average == "variance" else 1
        square = (weights @ np.array(sds) ** power / weights.sum()) ** (2 / power)
        x = x - gamma * gradient + np.sqrt(np.maximum(2.0 * gamma - gamma**2 * square, 0.0)) * xi
        np.testing.assert_allclose(xs[k], x, rtol=1e-9)


@pytest.mark.parametrize("correction", ["corrected", "modified"])
def test_without_gradient_noise_a_correction_changes_nothing(correction):
    x = np.zeros(3)
    exact = Noisy(MODEL, 0.0)
    expected = path(discrete.SGLD(exact, 0.1), x, 30)[1]
    np.testing.assert_allclose(path(discrete.SGLD(exact, 0.1, correction=correction), x, 30)[1], expected, rtol=1e-12)


def test_the_same_random_numbers_through_all_conventions_are_the_same_path():
    """γ = h/2 = σ²/2 = ε/N."""
    batch, x, gamma = Minibatch(data(), 3), [0.0, 0.0], 0.01
    expected = path(discrete.SGLD(batch, gamma, temperature=0.5), x, 30)
    for same in (
        discrete.SGLD.from_h(batch, h=2.0 * gamma, temperature=0.5),
        discrete.SGLD.from_sigma(batch, sigma=math.sqrt(2.0 * gamma), temperature=0.5),
        discrete.SGLD.from_mean_gradient_step(batch, eps=6 * gamma, temperature=0.5),
    ):
        found = path(same, x, 30)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)


@pytest.mark.parametrize("correction", [None, "corrected", "modified"])
def test_a_temperature_is_another_potential_and_another_step(correction):
    """SGLD on U at temperature T with step γ is SGLD on U/T with step γT."""
    hot, tau = 2.5, np.array([1.0, 2.0, 0.5])
    one = discrete.SGLD(Noisy(MODEL, tau), 0.04, temperature=hot, correction=correction)
    two = discrete.SGLD(Noisy(Gaussian(MEAN, PRECISION / hot), tau / hot), 0.04 * hot, correction=correction)
    x = np.zeros(3)
    np.testing.assert_allclose(path(one, x, 40)[1], path(two, x, 40)[1], rtol=1e-9, atol=1e-11)


def test_a_scheduled_preconditioner_of_both_chains_of_an_extrapolation():
    """The chain with half the step has twice as many steps until P changes; one that changes to itself is constant."""
    sampler = discrete.SGLD(MODEL, 0.1, metric=Scheduled([1.0, [0.5, 1.0, 2.0]], [0, 5]))
    assert sampler.halved().preconditioner.steps.tolist() == [0, 10] and sampler.preconditioner.steps.tolist() == [0, 5]
    same = discrete.SGLD(MODEL, 0.1, metric=Scheduled([[0.5, 1.0, 2.0]] * 2, [0, 5]))
    constant = discrete.SGLD(MODEL, 0.1, metric=pdmp.Metric(covariance=[0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(path(same, np.zeros(3), 12)[1], path(constant, np.zeros(3), 12)[1])
    with pytest.warns(UserWarning, match="stability limit"):  # with P = 1
        discrete.SGLD(MODEL, 1.0).resolve(MEAN)
    assert sampler.stability_limit(2.0) is None  # with another P it is another one
    discrete.SGLD(MODEL, 1.0, metric=Scheduled([0.1], [0])).resolve(MEAN)


@pytest.mark.parametrize("kind", ["diagonal"] + ["dense", "corrected", "modified"] * config.DISABLE_JIT)
def test_a_constant_preconditioner_is_sgld_in_other_coordinates(kind):
    """θ = L y with P = L Lᵀ: on y the target has the precision Lᵀ Q L, and gradient noise of sd Lᵀ τ."""
    p = P if kind == "dense" else np.diag([0.5, 1.0, 2.0])
    root = np.linalg.cholesky(p)
    tau = 0.0 if kind == "dense" else np.array([1.0, 2.0, 0.5])
    options = {"correction": kind} if kind in ("corrected", "modified") else {}
    preconditioner = p if kind == "dense" else np.diag(p)
    one = discrete.SGLD(Noisy(MODEL, tau), 0.1, metric=pdmp.Metric(covariance=preconditioner), **options)
    mean = np.linalg.solve(root, MEAN)
    other = Noisy(Gaussian(mean, root.T @ PRECISION @ root), tau * np.diag(root))
    y = path(discrete.SGLD(other, 0.1, **options), np.zeros(3), 40)[1]
    np.testing.assert_allclose(path(one, np.zeros(3), 40)[1], y @ root.T, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("p", [0.5, [0.5, 1.0, 2.0], P], ids=["scalar", "diagonal", "dense"])
def test_the_stability_limit_is_that_of_the_preconditioned_curvature(p):
    matrix = np.diag(np.broadcast_to(p, 3)) if np.ndim(p) < 2 else p
    limit = 2.0 / np.linalg.eigvals(matrix @ PRECISION).real.max()
    with pytest.warns(UserWarning, match="stability limit"):
        discrete.SGLD(MODEL, 1.001 * limit, metric=pdmp.Metric(covariance=p)).resolve(MEAN)
    discrete.SGLD(MODEL, 0.999 * limit, metric=pdmp.Metric(covariance=p)).resolve(MEAN)
    assert discrete.SGLD(MODEL, 0.1).stability_limit(4.0) == 0.5
    assert discrete.SGLD(MODEL, 0.1, metric=pdmp.Metric(covariance=p)).stability_limit(4.0) is None


BATCH, SINGLE = Minibatch(data(), 3), Minibatch(data(), 1)
BAD = {
    "temperature": (lambda: discrete.SGLD(BATCH, 0.1, temperature=-1.0), ValueError, "`temperature`.*-1.0"),
    "indefinite": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=[[1.0, 2.0], [2.0, 1.0]])),
        ValueError,
        "`covariance`.*smallest eigenvalue is -1",
    ),
    "singular": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=np.ones((2, 2)))),
        ValueError,
        "`covariance`.*smallest eigenvalue",
    ),
    "not symmetric": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=[[1.0, 0.5], [0.0, 1.0]])),
        ValueError,
        "`covariance`.*symmetric",
    ),
    "negative entry": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=[1.0, -2.0])),
        ValueError,
        "`covariance`.*-2",
    ),
    "shape": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=np.ones(3))),
        ValueError,
        r"`metric`.*\(2,\).*\(3,\)",
    ),
    "a word": (
        lambda: discrete.SGLD(BATCH, 0.1, metric="adam"),
        ValueError,
        "`metric`.*'adam'",
    ),
    "a function": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=lambda k: 1.0),
        TypeError,
        "`metric` must be a number or an array, got <function|`metric` must be a number or an array, got <lambda",
    ),
    "schedule that begins late": (lambda: Scheduled([1.0], [1]), ValueError, r"`steps`.*increase from 0, got \[1\]"),
    "schedule without an order": (lambda: Scheduled([1.0, 2.0], [0, 0]), ValueError, "`steps`.*increase from 0"),
    "schedule of other lengths": (lambda: Scheduled([1.0, 2.0], [0]), ValueError, "`covariances`.*, 1; got 2"),
    "schedule of another shape": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=Scheduled([1.0, np.ones(3)], [0, 1])),
        ValueError,
        r"\(2,\).*\(3,\)",
    ),
    "schedule of what adapts": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=Scheduled([RMSprop()], [0])),
        TypeError,
        "`covariance` must be a number or an array, got RMSprop",
    ),
    "schedule and a correction": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=Scheduled([np.eye(2)], [0]), correction="corrected"),
        ValueError,
        "corrected.*`metric`",
    ),
    "schedule and an automatic step": (
        lambda: discrete.SGLD(BATCH, metric=Scheduled([1.0], [0])),
        ValueError,
        "adapts or changes",
    ),
    "schedule of a Metropolis sampler": (
        lambda: discrete.MALA(MODEL, 0.1, metric=Scheduled([1.0], [0])),
        TypeError,
        "`metric` of .*MALA must be constant.*Scheduled",
    ),
    "schedule of a mass": (
        lambda: discrete.BAOAB(MODEL, 0.1, metric=Scheduled([1.0], [0])),
        TypeError,
        "`metric` of .*BAOAB must be constant.*Scheduled",
    ),
    "not finite": (
        lambda: discrete.SGLD(BATCH, 0.1, metric=pdmp.Metric(covariance=np.inf)),
        ValueError,
        "`covariance`.*finite",
    ),
    "correction": (lambda: discrete.SGLD(BATCH, 0.1, correction="best"), ValueError, "`correction`.*'best'"),
    "corrected, one term": (
        lambda: discrete.SGLD(SINGLE, 0.1, correction="corrected"),
        ValueError,
        "corrected.*`size`.*at least 2",
    ),
    "modified, one term": (
        lambda: discrete.SGLD(SINGLE, 0.1, correction="modified"),
        ValueError,
        "modified.*`size`.*at least 2",
    ),
    "corrected, one term beside an anchor": (
        lambda: discrete.SGLD(pdmp.gradients.ControlVariate(SINGLE.model, 1), 0.1, correction="corrected"),
        ValueError,
        "corrected.*`size`.*at least 2",
    ),
    "corrected, dense": (
        lambda: discrete.SGLD(BATCH, 0.1, correction="corrected", metric=pdmp.Metric(covariance=np.eye(2))),
        ValueError,
        "corrected.*`metric`",
    ),
    "beta": (lambda: discrete.SGLD(BATCH, 0.1, correction="corrected", beta=1.5), ValueError, "`beta`.*1.5"),
    "average": (lambda: discrete.SGLD(BATCH, 0.1, correction="corrected", average="mean"), ValueError, "`average`"),
    "coefficient": (lambda: discrete.SGLD(BATCH, 0.1, coefficient=-1.0), ValueError, "`coefficient`.*-1.0"),
    "decay": (lambda: RMSprop(decay=1.0), ValueError, "`decay`.*1.0"),
    "eps": (lambda: RMSprop(eps=0.0), ValueError, "`eps`.*0.0"),
    "include_gamma": (lambda: RMSprop(include_gamma="yes"), TypeError, "`include_gamma`.*'yes'"),
    "h": (lambda: discrete.SGLD.from_h(BATCH, 0.0), ValueError, "`h`.*0.0"),
    "sigma": (lambda: discrete.SGLD.from_sigma(BATCH, -0.1), ValueError, "`sigma`.*-0.1"),
    "mean gradient": (lambda: discrete.SGLD.from_mean_gradient_step(MODEL, 0.1), ValueError, "`provider`.*Gaussian"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_that_names_the_argument(name):
    make, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------------------
# Weights


def test_averages_weight_a_state_by_the_step_with_which_it_is_left():
    schedule = discrete.schedules.polynomial(0.5, 1.0, 0.6)
    process = discrete.SGLD(Full(MODEL), schedule)
    chain = run_chain(process, MEAN, 6, steps=40, store="moments", covariance=True)
    integrals = chain.finish().integrals
    _, after = path(process, MEAN, 40, seed=6)
    states = np.vstack([MEAN, after[:-1]])
    weights = 0.5 * (1.0 + np.arange(40)) ** -0.6
    deviations = states - integrals.centre
    np.testing.assert_allclose(integrals.first, weights @ deviations, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(integrals.second, weights @ deviations**2, rtol=1e-11)
    products = np.einsum("k,ki,kj->ij", weights, deviations, deviations)
    np.testing.assert_allclose(np.tril(integrals.cross), np.tril(products), rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
@pytest.mark.filterwarnings("ignore:.*stability limit")
def test_a_gradient_that_is_not_finite_stops_the_chain():
    chain = new_chain(discrete.SGLD(Gaussian(0.0, [1e300]), 1e10), [1.0], 1, steps=100).advance()
    assert "not finite" in chain.failure[0]


# ---------------------------------------------------------------------------------------------------------------
# Predicted laws


def test_the_stationary_covariance_is_the_fixed_point_of_its_recursion():
    noise = np.diag([1.0, 2.0, 0.5]) + 0.3
    found = langevin_covariance(PRECISION, noise, 0.3)
    a = np.eye(3) - 0.3 * PRECISION
    np.testing.assert_allclose(a @ found @ a.T + 0.6 * np.eye(3) + 0.09 * noise, found, rtol=1e-12)
    by_columns = np.linalg.solve(np.eye(9) - np.kron(a, a), (0.6 * np.eye(3) + 0.09 * noise).ravel())
    np.testing.assert_allclose(found.ravel(), by_columns, rtol=1e-11)


@pytest.mark.parametrize("draw", ["iid", "distinct", "reshuffle", "epoch"])
def test_the_noise_of_batches_is_that_of_all_batches_listed(draw):
    model, x, n = data(), np.array([0.3, -0.4]), 2
    terms = model.term_gradients(x, np.arange(6))
    choose = itertools.product(range(6), repeat=n) if draw == "iid" else itertools.combinations(range(6), n)
    sums = np.array([6 / n * terms[list(rows)].sum(axis=0) for rows in choose])
    np.testing.assert_allclose(sums.mean(axis=0), terms.sum(axis=0), rtol=1e-12)
    expected = np.cov(sums.T, ddof=0)
    np.testing.assert_allclose(noise_covariance(Minibatch(model, n, draw=draw), x), expected, rtol=1e-10)


@pytest.mark.parametrize("draw", ["uniform", "importance"])
def test_the_noise_of_control_variates_is_that_of_all_batches_listed(draw):
    model, x, n = data(), np.array([0.3, -0.4]), 2
    provider = ControlVariate(model, n, anchor=[0.1, 0.2], draw=draw)
    terms = model.term_gradients(x, np.arange(6)) - model.term_gradients(provider.anchor, np.arange(6))
    p = provider.contributions() / provider.contributions().sum() if draw == "importance" else np.full(6, 1.0 / 6.0)
    batches = [list(rows) for rows in itertools.product(range(6), repeat=n)]
    sums = np.array([(terms[rows] / p[rows, None]).mean(axis=0) for rows in batches])
    expected = np.cov(sums.T, ddof=0, aweights=[p[rows].prod() for rows in batches])
    np.testing.assert_allclose(noise_covariance(provider, x), expected, rtol=1e-10)


def test_control_variates_have_no_noise_at_their_anchor():
    model = data()
    provider = ControlVariate(model, 2)
    np.testing.assert_allclose(noise_covariance(provider, provider.anchor), 0.0, atol=1e-9)
    assert np.linalg.eigvalsh(noise_covariance(provider, provider.anchor + 1.0))[-1] > 0.1


def test_moments_with_mini_batches_tend_to_the_posterior_and_to_additive_noise():
    """The law that the Monte Carlo tests use: its limit γ → 0, and its first order, that of additive noise."""
    model = data(12, 1)
    mean, covariance = model.posterior()
    for distinct in (False, True):
        provider = Minibatch(model, 3, draw="distinct" if distinct else "iid")
        noise = noise_covariance(provider, mean)[0, 0]
        precision, step = 1.0 / covariance[0, 0], 1e-6
        found_mean, found = minibatch_law(model, 3, distinct, step)
        assert found_mean == pytest.approx(mean[0])
        slope = (found - covariance[0, 0]) / step
        # plus the noise's dependence on θ, whose variance enters the average
        u = model.noise_precision * model.A[:, 0] ** 2
        multiplicative = 144 / 3 * u.var() * (9 / 11 if distinct else 1.0)
        expected = 0.5 + (noise + multiplicative * covariance[0, 0]) / (2.0 * precision)
        assert slope == pytest.approx(expected, rel=1e-3)


# ---------------------------------------------------------------------------------------------------------------
# Orders of the bias, from the recursions of the variance


def variance(gamma, precision, tau, noise):
    """Of x' = (1 - γλ) x - γτη + noise."""
    return (noise + gamma**2 * tau**2) / (1.0 - (1.0 - gamma * precision) ** 2)


NOISES = {
    "plain": lambda gamma, tau: 2.0 * gamma,
    "corrected": lambda gamma, tau: 2.0 * gamma - gamma**2 * tau**2,
    "modified": lambda gamma, tau: 2.0 * gamma * (1.0 - 2.0 * gamma / 8.0 * tau**2) ** 2,
    "as printed": lambda gamma, tau: 2.0 * gamma * (1.0 - 2.0 * gamma / 2.0 * tau**2) ** 2,
}


@pytest.mark.parametrize("name, slope", [("plain", 2.0), ("corrected", 0.0), ("modified", 0.0), ("as printed", -6.0)])
def test_the_first_order_of_the_bias(name, slope):
    """γ/2 + slope γτ²/(4λ): the terms that the docstring states, and order 1 for all four."""
    precision, tau = 2.0, 3.0
    gammas = np.array([4e-4, 2e-4, 1e-4])
    bias = np.array([variance(g, precision, tau, NOISES[name](g, tau)) - 1.0 / precision for g in gammas])
    np.testing.assert_allclose(np.diff(np.log(np.abs(bias))) / np.diff(np.log(gammas)), 1.0, atol=0.02)
    assert bias[-1] / gammas[-1] == pytest.approx(0.5 + slope * tau**2 / (4.0 * precision), rel=0.01)


def test_the_corrected_variance_does_not_know_the_gradient_noise():
    found = [variance(0.2, 2.0, tau, NOISES["corrected"](0.2, tau)) for tau in (0.0, 1.0, 3.0)]
    np.testing.assert_allclose(found, 1.0 / (2.0 * (1.0 - 0.2)), rtol=1e-13)


@plain_only
def test_steps_that_explore_have_no_noise_to_remove():
    process = discrete.SGLD(Noisy(PLANE, 0.1), schedules.cyclical(0.01, 10, 0.5), correction="corrected")
    assert pdmp.sample(process, steps=20, seed=1, initial=[1.0, 1.0]).stats["mean_noise_removed"] == 0.0


def test_a_correction_is_not_for_clipped_gradients():
    with pytest.raises(ValueError, match="not with clipping"):
        discrete.SGLD(Noisy(PLANE, 1.0), 0.1, correction="corrected", clip_norm=1.0)


def test_a_correction_warns_of_batches_that_are_not_independent():
    a = np.random.default_rng(1).standard_normal((12, 1))
    batch = Minibatch(LinearGaussian(a, a[:, 0]), 3, draw="reshuffle")
    with pytest.warns(UserWarning, match="cancels over an epoch"):
        discrete.SGLD(batch, 0.1, correction="corrected")
    discrete.SGLD(batch, 0.1)
