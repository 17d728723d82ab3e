"""SBPS beside its regression: pooled noise, the slope's prior by marginal likelihood, looks ahead, statistics."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

import pdmp
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.process import ADAPTING, DATA, HORIZONS, KINDS
from pdmp.processes import sbps
from pdmp.processes.sbps import BOUNCE
from pdmp.thinning import regression
from tests.checks import new_chain, plain, run_chain

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
MODEL = pdmp.models.Gaussian(MEAN, PRECISION)
RNG = np.random.default_rng(1)
A = RNG.standard_normal((40, 3))
DATA_MODEL = pdmp.models.LinearGaussian(A, A @ np.ones(3) + RNG.standard_t(2.5, 40))


def rays(n, mean, sd, seed, least=3):
    """Observations along n rays: slopes from N(mean, sd²), any intercepts, noise of known variance."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        m = rng.integers(least, 9)
        s, c2 = np.sort(rng.exponential(size=m)), rng.exponential(size=m) + 0.05
        slope = mean + sd * rng.standard_normal()
        yield s, 5.0 * rng.standard_normal() + slope * s + np.sqrt(c2) * rng.standard_normal(m), c2


def observed(ray):
    found = regression.new_line()[0]
    for row in zip(*ray, strict=True):
        regression.observe(found, *row)
    return found


def log_likelihood(ray, mean, variance):
    """Density of all contrasts of the observations, the intercept being unknown: a dense normal density."""
    s, g, c2 = ray
    contrasts = np.linalg.qr(np.column_stack([np.ones_like(s), np.eye(len(s))[:, 1:]]))[0][:, 1:].T
    covariance = contrasts @ (np.diag(c2) + variance * np.outer(s, s)) @ contrasts.T
    return stats.multivariate_normal(mean * contrasts @ s, covariance).logpdf(contrasts @ g)


# ---------------------------------------------------------------------------------------------------------------
# The prior of the slope by marginal likelihood


@pytest.mark.exact
@pytest.mark.parametrize("mean, variance", [(0.5, 0.3), (-2.0, 4.0), (3.0, 1e-3)])
def test_the_gradient_is_that_of_the_marginal_likelihood(mean, variance):
    h = 1e-5
    for ray in rays(10, 1.0, 1.0, seed=3):
        g, k, *_ = regression.likelihood_gradient(observed(ray), mean, variance)
        slope = (log_likelihood(ray, mean + h, variance) - log_likelihood(ray, mean - h, variance)) / (2.0 * h)
        ratio = math.exp(h)
        log_slope = (log_likelihood(ray, mean, variance * ratio) - log_likelihood(ray, mean, variance / ratio)) / (
            2.0 * h
        )
        assert g == pytest.approx(slope, rel=1e-6, abs=1e-7)
        assert k == pytest.approx(log_slope, rel=1e-6, abs=1e-7)


@pytest.mark.exact
def test_the_information_is_the_variance_of_the_gradient():
    """Under the model itself; the same places and noise for each of many draws."""
    s, c2 = np.array([0.1, 0.5, 1.2, 2.0]), np.array([0.3, 0.1, 0.5, 0.2])
    rng, mean, variance = np.random.default_rng(5), 1.5, 0.7
    slopes = mean + math.sqrt(variance) * rng.standard_normal(8_000)
    drawn = slopes[:, None] * s + np.sqrt(c2) * rng.standard_normal((8_000, 4))
    found = np.array([regression.likelihood_gradient(observed((s, g, c2)), mean, variance) for g in drawn])
    np.testing.assert_allclose(found[:, :2].mean(axis=0), 0.0, atol=5.0 * np.sqrt(found[0, 2:].max() / 8_000))
    np.testing.assert_allclose(found[:, :2].var(axis=0), found[0, 2:], rtol=0.1)


@pytest.mark.slow
@pytest.mark.exact
def test_the_learner_finds_the_maximum():
    data = list(rays(2_000, 3.0, 0.8, seed=6))
    priors = [regression.new_prior(*start)[0] for start in ((20.0, 100.0), (0.0, 1e-4))]
    for ray in data:
        for prior in priors:
            regression.learn(observed(ray), prior)

    def loss(parameters, some=data[::5]):
        return -sum(log_likelihood(ray, parameters[0], math.exp(parameters[1])) for ray in some)

    best = optimize.minimize(
        loss, [3.0, math.log(0.64)], method="Nelder-Mead", options={"xatol": 1e-2, "fatol": 1e-2}
    ).x
    for prior in priors:
        assert prior["steps"] == 2_000.0
        assert prior["mean"] == pytest.approx(best[0], abs=0.15)
        assert math.exp(0.5 * prior["log_variance"]) == pytest.approx(math.exp(0.5 * best[1]), abs=0.2)


@pytest.mark.exact
def test_two_observations_teach_nothing_and_the_spread_has_a_floor():
    prior = regression.new_prior(2.0, 1.0)[0]
    for ray in rays(5, 3.0, 1.0, seed=7):
        regression.learn(observed([part[:2] for part in ray]), prior)
    assert prior == regression.new_prior(2.0, 1.0)[0]
    for k, ray in enumerate(rays(5, 3.0, 1.0, seed=7)):
        regression.learn(observed([part[:3] for part in ray]), prior)  # from three on, each line is a step
        assert prior["steps"] == k + 1.0
    for ray in rays(300, 3.0, 0.0, seed=8):  # all slopes equal
        regression.learn(observed(ray), prior)
    assert math.exp(0.5 * prior["log_variance"]) < 0.5
    prior = regression.new_prior(3.0, 1e-10)[0]
    regression.learn(observed(next(rays(1, 3.0, 0.0, seed=8))), prior)
    assert math.exp(0.5 * prior["log_variance"]) == pytest.approx(0.01 * abs(prior["mean"]), rel=1e-9)


@pytest.mark.exact
def test_it_learns_in_the_warm_up_at_changes_of_velocity_and_is_used():
    process = pdmp.SBPS(Noisy(MODEL, 0.5), learner="likelihood", slope_mean=30.0, slope_sd="auto", refresh_rate=0.4)
    given = run_chain(process, MEAN, 1, events=30, warmup=0.5)
    prior = given.state.memory.prior[0]
    assert prior["mean"] != 30.0 and prior["steps"] > 3.0
    assert given.process.native.slope_prior(given.state)[0] == 30.0  # `slope_mean` was given
    process = pdmp.SBPS(Noisy(MODEL, 0.5), learner="likelihood", refresh_rate=0.4)
    chain = new_chain(process, MEAN, 1, events=300, warmup=0.5)
    chain.advance()
    learnt = chain.state.memory.prior[0].copy()
    mean, sd = chain.process.native.slope_prior(chain.state)
    assert (mean, sd) == (learnt["mean"], math.exp(0.5 * learnt["log_variance"]))
    slopes = np.linalg.eigvalsh(PRECISION)
    assert slopes[0] < mean < slopes[-1] and 0.05 < sd < slopes[-1]
    half = new_chain(process, MEAN, 1, events=300, warmup=0.5)
    while half.warming:
        half.chunk = 1
        half.advance(seconds=0.0)
    assert half.state.memory.prior[0] == learnt  # frozen after the warm-up
    stats = run_chain(process, MEAN, 1, events=300, warmup=0.5).finish().statistics
    assert (stats["mean_slope_mean"], stats["mean_slope_sd"]) == (mean, sd)
    still = run_chain(process, MEAN, 1, events=50)
    assert still.state.memory.prior[0]["steps"] == 0.0  # no warm-up, no learning


# ---------------------------------------------------------------------------------------------------------------
# Pooled noise


@pytest.mark.exact
@pytest.mark.parametrize("noise", ["pooled", "latest"])
def test_the_noise_of_an_observation(noise):
    """Of the batches since the last change of velocity, and the running mean of all as one more."""
    process = pdmp.SBPS(Minibatch(DATA_MODEL, 5), noise=noise, refresh_rate=0.5)
    chain = new_chain(process, [1.0, -1.0, 0.0], 9)
    kernel, memory, raw, everything = chain.process.native, chain.state.memory, [], [50.0]
    kernel.noise(memory, 50.0)
    memory.means[0]["ray_noise"] = memory.means[0]["ray_noises"] = 0.0  # another ray
    for c2 in (3.0, 1.0, 0.2, 8.0):
        raw.append(c2)
        everything.append(c2)
        expected = (sum(raw) + np.mean(everything)) / (len(raw) + 1.0) if noise == "pooled" else c2
        assert kernel.noise(memory, c2) == pytest.approx(expected, rel=1e-14)
    # A bounce goes on from the pooled one; a refreshment from nothing.
    chain.state.counts[ADAPTING] = 0
    kernel.rate(chain.state, BOUNCE, 0.0, chain.rng)
    pooled = memory.line[0]["latest_variance"]
    kernel.jump(chain.state, BOUNCE, 0.0, chain.rng)
    assert memory.line[0]["latest_variance"] == pytest.approx(pooled, rel=1e-14)
    assert (memory.means[0]["ray_noise"], memory.means[0]["ray_noises"]) == (pooled, 1.0)
    kernel.jump(chain.state, sbps.REFRESH, 0.0, chain.rng)
    assert memory.means[0]["ray_noises"] == (1.0 if noise == "pooled" else 0.0)


@pytest.mark.exact
def test_the_running_mean_of_noises_forgets():
    """After many observations a new one has the weight of one of a thousand."""
    process = pdmp.SBPS(Minibatch(DATA_MODEL, 5), noise="pooled", refresh_rate=0.5)
    chain = new_chain(process, [1.0, -1.0, 0.0], 9)
    kernel, memory = chain.process.native, chain.state.memory
    for _ in range(3_000):
        kernel.noise(memory, 1.0)
    assert memory.means[0]["mean_noise"] == pytest.approx(1.0, rel=1e-12)
    kernel.noise(memory, 2_001.0)
    assert memory.means[0]["mean_noise"] == pytest.approx(1.0 + 2_000.0 / sbps.NOISE_MEMORY, rel=1e-12)


@pytest.mark.release
@pytest.mark.filterwarnings("ignore:pdmp.SBPS lost:UserWarning")
def test_pooled_noise_is_worth_several_violations():
    """Gradients of the data with heavy tails, batches of five: an untypical batch underestimates the noise."""
    violated = {}
    for noise in ("pooled", "latest"):
        process = pdmp.SBPS(Minibatch(DATA_MODEL, 5), noise=noise, k=4.0, refresh_rate=0.2)
        run = pdmp.sample(process, proposals=60_000, seed=2, store="moments", warmup=0.1)
        violated[noise] = run.stats["bound_violations"] / run.stats["thinned"]
    assert violated["pooled"] < 0.5 * violated["latest"], violated


# ---------------------------------------------------------------------------------------------------------------
# Looking ahead


@pytest.mark.exact
@pytest.mark.parametrize("provider", [Noisy(MODEL, 3.0), Minibatch(DATA_MODEL, 5), ControlVariate(DATA_MODEL, 5)])
@pytest.mark.parametrize("auxiliary, ahead", [(True, 10.0), (3, 4.0)])
def test_a_look_ahead_is_one_more_observation_with_the_same_batch(provider, auxiliary, ahead):
    process = pdmp.SBPS(
        provider, auxiliary=auxiliary, ahead=ahead, slope_mean=-40.0, slope_sd=0.5, noise="latest", refresh_rate=0.0
    )
    chain = new_chain(process, [1.0, -1.0, 0.0], 9)
    kernel, state = chain.process.native, chain.state
    memory, line = state.memory, state.memory.line[0]
    kernel.clock(state, BOUNCE, 0.0, chain.rng)
    p = int(auxiliary)
    assert memory.counts[0]["auxiliary"] == p and line["count"] == 1.0 + p
    then = ahead * memory.means[0]["mean_wait"] * np.arange(1, p + 1)
    gradient, counts, seen = np.zeros(3), state.counts.copy(), []
    for t in then:
        provider.native.gradient_again(state.x + state.v * t, memory.provider, gradient, counts)
        seen.append(state.v @ gradient)
    weight = 1.0 / line["latest_variance"]
    assert line["weight"] == pytest.approx((1.0 + p) * weight)
    assert line["weight_s"] / weight == pytest.approx(then.sum(), rel=1e-12)
    assert line["weight_ss"] / weight == pytest.approx((then**2).sum(), rel=1e-12)
    assert line["weight_sg"] / weight == pytest.approx(then @ seen, rel=1e-10)
    assert memory.counts[0]["fits"] == 2.0 and memory.counts[0]["negative_slopes"] >= 1.0
    assert p * state.counts[DATA] == (1 + p) * (counts[DATA] - state.counts[DATA])  # all looks are paid for


@pytest.mark.exact
def test_nobody_looks_ahead_uphill_or_unasked():
    for slope, auxiliary in ((40.0, True), (-40.0, False)):
        process = pdmp.SBPS(Noisy(MODEL, 0.5), auxiliary=auxiliary, slope_mean=slope, slope_sd=0.5)
        chain = new_chain(process, MEAN, 9)
        chain.process.native.clock(chain.state, BOUNCE, 0.0, chain.rng)
        assert chain.state.memory.counts[0]["auxiliary"] == 0.0
        assert chain.state.memory.line[0]["count"] == 1.0


@pytest.mark.exact
def test_the_bound_rises_with_the_misfit_of_the_line():
    """k rms z-scores, where these are above 1 on average; the latest noise alone knows no misfit."""
    for noise, misfit, factor in (("pooled", 9.0, 3.0), ("pooled", 0.5, 1.0), ("latest", 9.0, 1.0)):
        chain = new_chain(pdmp.SBPS(Noisy(MODEL, 1.0), noise=noise, cap=50.0), MEAN, 9)
        state, kernel = chain.state, chain.process.native
        state.memory.means[0]["misfit"] = misfit
        time, bound = kernel.clock(state, BOUNCE, 0.0, chain.rng)
        level = plain(regression.bound_at)(state.memory.line[0], 3.0 * factor, time)
        assert level * (1.0 - 1e-9) <= bound <= level * 1.02 + 1e-3
    chain = run_chain(pdmp.SBPS(Noisy(MODEL, 1.0)), MEAN, 9, proposals=200)
    means, stats = chain.state.memory.means[0], chain.finish().statistics
    n = 20.0 + stats["scores"]
    assert means["misfits"] == n > 200.0
    assert means["misfit"] == pytest.approx((20.0 + stats["score_squares"]) / n, rel=1e-12)


@pytest.mark.release
def test_between_modes():
    """Four modes with a barrier of 1.8 nats: what a falling slope promises is not believed, and the law is right."""
    model = pdmp.models.MixtureSum.generated(200, seed=1, width=0.45)
    w = np.linspace(-4.0, 4.0, 2_001)
    truth = np.trapezoid(w**2 * model.marginal(0, w), w)
    process = pdmp.SBPS(Minibatch(model, 10), auxiliary=True, k=4.0)
    run = pdmp.sample(process, time=30_000.0, warmup=0.1, seed=3, store="moments")
    assert run.stats["auxiliary"] > 100
    np.testing.assert_allclose(run.mean(), 0.0, atol=0.15)
    np.testing.assert_allclose(run.var() + run.mean() ** 2, truth, rtol=0.05)


# ---------------------------------------------------------------------------------------------------------------
# As published; Δt; a dense P


@pytest.mark.exact
def test_the_bound_is_interpolated_between_nodes_of_the_given_resolution():
    for resolution in ("auto", 0.01, 0.7):
        chain = new_chain(pdmp.SBPS(Noisy(MODEL, 1.0), cap=50.0, resolution=resolution), MEAN, 9)
        state, kernel = chain.state, chain.process.native
        kernel.clock(state, BOUNCE, 0.0, chain.rng)  # the line is fitted
        before = np.random.Generator(np.random.PCG64())
        before.bit_generator.state = chain.rng.bit_generator.state
        step = min(0.05 * state.memory.means[0]["mean_wait"], 50.0 / 8.0) if resolution == "auto" else resolution
        line = state.memory.line[0]
        expected = plain(regression.first_arrival)(line, 3.0, 0.0, step, 50.0, before.standard_exponential())
        assert kernel.clock(state, BOUNCE, 0.0, chain.rng) == pytest.approx(expected, rel=1e-12)


@pytest.mark.exact
def test_as_published():
    """k as it is given, whatever the misfit; the latest noise; a running mean of the slopes, their sd as given; Δt."""
    process = pdmp.SBPS.published(Noisy(MODEL, 1.0), k=2.0, resolution=0.02, slope_sd=30.0, auxiliary=2)
    assert (process.k, process.resolution, process.cap, process.auxiliary) == (2.0, 0.02, 100.0, 2)
    chain = new_chain(process, MEAN, 9, events=60)
    chain.advance()
    memory, kernel = chain.state.memory, chain.process.native
    assert memory.means[0]["misfit"] != 1.0 and kernel.noise(memory, 7.0) == 7.0
    memory.means[0]["misfit"] = 9.0
    memory.means[0]["slopes"], memory.means[0]["mean_slope"] = 10.0, 1.25
    assert kernel.slope_prior(chain.state) == (1.25, 30.0)
    regression.forget(memory.line[0])
    time, bound = kernel.clock(chain.state, BOUNCE, chain.state.now[0], chain.rng)
    level = plain(regression.bound_at)(memory.line[0], 2.0, time - chain.state.moved[0])
    assert level * (1.0 - 1e-9) <= bound <= level * 1.02 + 1e-2


DENSE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.6]])


@pytest.mark.exact
def test_the_published_settings_take_the_others():
    process = pdmp.SBPS.published(
        Noisy(MODEL, 1.0), metric=pdmp.Metric(covariance=DENSE @ DENSE), cap=7.0, refresh_rate=0.3, auxiliary=2
    )
    same = pdmp.SBPS(Noisy(MODEL, 1.0), metric=pdmp.Metric(covariance=DENSE @ DENSE))
    np.testing.assert_array_equal(process.metric.root, same.metric.root)
    assert (process.cap, process.refresh_rate, process.auxiliary) == (7.0, 0.3, 2)
    assert pdmp.SBPS.published(Noisy(MODEL, 1.0), metric="diagonal").adapts


@pytest.mark.exact
@pytest.mark.parametrize("model", [DATA_MODEL, MODEL])
def test_the_preconditioner_that_adapts(model):
    """In proportion to 1 / (√m + 10⁻⁴), m the running mean of the squares of ∇Û / N, of mean 1; fixed after it."""
    process = pdmp.SBPS(Noisy(model, 0.3), metric="diagonal")
    chain = new_chain(process, [0.3, -0.2, 0.1], 3, events=50)
    state, kernel = chain.state, chain.process.native
    memory, square, scale = state.memory, np.zeros(3), np.ones(3)
    for k, g in enumerate(np.random.default_rng(5).standard_normal((6, 3)) * [1.0, 20.0, 0.3]):
        state.counts[ADAPTING] = int(k < 5)
        memory.gradient[:] = g
        if k == 0:
            memory.square[:] = 0.0
        kernel.set_velocity(state)
        if k < 5:
            mine = (g / max(model.n_data, 1)) ** 2
            square = mine if k == 0 else 0.99 * square + 0.01 * mine
            scale = 1.0 / (np.sqrt(square) + 1e-4)
            scale *= 3.0 / scale.sum()
        np.testing.assert_allclose(memory.metric.root, scale, rtol=1e-12)
        np.testing.assert_allclose(state.v, scale * memory.metric.u, rtol=1e-12)


@pytest.mark.exact
def test_a_checkpoint_knows_the_matrix(tmp_path):
    """Also of matrices with the same diagonal."""

    def make(sign):
        p = np.diag(np.diag(DENSE)) + sign * (DENSE - np.diag(np.diag(DENSE)))
        return pdmp.SBPS(Noisy(MODEL, 0.5), metric=pdmp.Metric(covariance=p @ p))

    options = {"seed": 1, "checkpoint": tmp_path / "c.npz", "initial": MEAN}
    pdmp.sample(make(1.0), events=10, **options)
    with pytest.raises(ValueError, match="`process` differs"):
        pdmp.sample(make(-1.0), events=20, **options)


@pytest.mark.exact
def test_a_diagonal_matrix_is_the_diagonal():
    scale = np.array([1.0, 2.0, 0.5])
    found = [
        run_chain(
            pdmp.SBPS(Noisy(MODEL, 0.5), metric=pdmp.Metric(covariance=p), refresh_rate=0.3), MEAN, 4, events=60
        ).finish()
        for p in (scale**2, np.diag(scale**2))
    ]
    np.testing.assert_allclose(found[1].times, found[0].times, rtol=1e-9)
    np.testing.assert_allclose(found[1].xs, found[0].xs, rtol=1e-9)


@pytest.mark.exact
def test_a_dense_preconditioner_is_sbps_in_other_coordinates():
    """v = L u with |u| = 1, L Lᵀ = M⁻¹, and bounces reflect u in Lᵀ∇Û, so that v·∇Û changes its sign."""
    process = pdmp.SBPS(Noisy(MODEL, 0.5), metric=pdmp.Metric(covariance=DENSE))
    curvature, p = np.trace(DENSE @ PRECISION) / 3.0, np.linalg.cholesky(DENSE)
    resolved = process.resolve(MEAN)
    found = resolved.slope_mean, resolved.slope_sd, 200.0 * math.pi * resolved.refresh_rate**2
    np.testing.assert_allclose(found, curvature, rtol=1e-6)
    chain = new_chain(process, MEAN, 4)
    state, memory, kernel = chain.state, chain.state.memory, chain.process.native
    assert np.linalg.norm(memory.metric.u) == pytest.approx(1.0)
    np.testing.assert_allclose(state.v, p @ memory.metric.u, rtol=1e-12)
    kernel.rate(state, BOUNCE, 0.0, chain.rng)
    u, v, a = memory.metric.u.copy(), state.v.copy(), p.T @ memory.gradient
    kernel.jump(state, BOUNCE, 0.0, chain.rng)
    np.testing.assert_allclose(memory.metric.u, u - 2.0 * (u @ a) / (a @ a) * a, rtol=1e-10)
    np.testing.assert_allclose(state.v, p @ memory.metric.u, rtol=1e-10)
    assert state.v @ memory.gradient == pytest.approx(-v @ memory.gradient, rel=1e-10)
    line = memory.line[0]
    assert line["weight_g"] / line["weight"] == pytest.approx(state.v @ memory.gradient, rel=1e-10)
    kernel.jump(state, sbps.REFRESH, 0.0, chain.rng)
    np.testing.assert_allclose(state.v, p @ memory.metric.u, rtol=1e-12)
    assert np.linalg.norm(memory.metric.u) == pytest.approx(1.0)


@pytest.mark.release  # the paths are those of the test above
def test_the_law_with_a_dense_preconditioner():
    process = pdmp.SBPS(Noisy(MODEL, 0.5), k=4.0, metric=pdmp.Metric(covariance=np.linalg.inv(PRECISION @ PRECISION)))
    run = pdmp.sample(process, time=40_000.0, warmup=0.05, seed=3, store="moments", covariance=True)
    np.testing.assert_allclose(run.mean(), MEAN, atol=0.05)
    np.testing.assert_allclose(run.cov(), np.linalg.inv(PRECISION), atol=0.07)


# ---------------------------------------------------------------------------------------------------------------
# Statistics, advice, bad input


@pytest.mark.exact
def test_statistics_are_those_of_the_sums():
    chain = run_chain(pdmp.SBPS(Noisy(MODEL, 2.0), k=1.0, cap=0.3), MEAN, 6, events=150, store="moments")
    stats, counts = chain.finish().statistics, chain.state.counts
    mean = stats["score_sum"] / stats["scores"]
    assert stats["mean_score"] == mean
    assert stats["mean_score_sd"] == pytest.approx(math.sqrt(stats["score_squares"] / stats["scores"] - mean**2))
    assert stats["capped"] == counts[HORIZONS] > 0
    lost, bounces = chain.state.excess[0], counts[KINDS + BOUNCE]
    assert stats["mean_lost_bounces"] == pytest.approx(lost / (lost + bounces)) and lost > 0.0
    chain.state.counts[KINDS + BOUNCE], chain.state.excess[0] = 1, 0.25
    assert chain.process.report.statistics(chain.process, chain.state)["mean_lost_bounces"] == 0.2


@pytest.mark.slow
@pytest.mark.exact
def test_a_run_that_lost_many_bounces_says_so():
    process = pdmp.SBPS(Noisy(MODEL, 2.0), k=0.0)
    with pytest.warns(UserWarning, match=r"pdmp.SBPS lost \d+ % of its bounces.*k = 0.*raise `k`"):
        run = pdmp.sample(process, events=2_000, seed=6, store="moments")
    assert "of its bounces" in str(run.summary())


BAD = {
    "learner": (lambda: pdmp.SBPS(Noisy(MODEL, 1.0), learner="guess"), "`learner`.*'guess'"),
    "noise": (lambda: pdmp.SBPS(Noisy(MODEL, 1.0), noise="none"), "`noise`.*'none'"),
    "auxiliary": (lambda: pdmp.SBPS(Noisy(MODEL, 1.0), auxiliary=-1), "`auxiliary`.*at least 0, got -1"),
    "ahead": (lambda: pdmp.SBPS(Noisy(MODEL, 1.0), ahead=0.0), "`ahead` must be a positive number, got 0.0"),
    "resolution": (lambda: pdmp.SBPS(Noisy(MODEL, 1.0), resolution=-0.1), "`resolution`.*positive.*got -0.1"),
    "no symmetric P": (
        lambda: pdmp.SBPS(Noisy(MODEL, 1.0), metric=pdmp.Metric(covariance=np.triu(DENSE))),
        "`covariance`.*symmetric",
    ),
    "negative P": (
        lambda: pdmp.SBPS(Noisy(MODEL, 1.0), metric=pdmp.Metric(covariance=DENSE - np.eye(3))),
        "`covariance`.*definite",
    ),
    "other P": (
        lambda: pdmp.SBPS(Noisy(MODEL, 1.0), metric=np.eye(2)),
        r"`metric`.*\(3, 3\)",
    ),
    "running by likelihood": (
        lambda: pdmp.SBPS(Noisy(MODEL, 1.0), learner="likelihood", slope_mean="running"),
        '`slope_mean="running"`.*"moments"',
    ),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.exact
def test_sbps_warns_of_gradients_without_noise():
    with pytest.warns(UserWarning, match="without noise.*pdmp.BPS"):
        pdmp.SBPS(MODEL)


@pytest.mark.exact
def test_lost_bounces_are_said_of_runs_that_are_long_enough():
    told = {"mean_lost_bounces": 0.126, "events": {"bounce": 500}}
    (said,) = pdmp.SBPS.report.warnings(SimpleNamespace(k=2.5), told)
    assert said.startswith("pdmp.SBPS lost 13 % of its bounces") and "(k = 2.5)" in said
    for other in ({"mean_lost_bounces": 0.05}, {"events": {"bounce": 499}}):
        assert pdmp.SBPS.report.warnings(SimpleNamespace(k=2.5), told | other) == []


@pytest.mark.exact
@pytest.mark.parametrize(("n", "sizes"), [(50, [2, 5]), (15, [2]), (1_000, [10, 100])])
def test_settings_to_choose_from(n, sizes):
    """Batches of 1 % and 10 % of the data, of two or more, as one gradient has no variance."""
    model = pdmp.models.LogisticRegression(np.ones((n, 1)), np.arange(n) % 2)
    make, arms = pdmp.SBPS.recipe.arms(pdmp.SBPS, model, np.zeros(1))
    assert [arm["size"] for arm in arms] == [size for size in sizes for _ in range(5)]
    assert [arm["k"] for arm in arms] == [1.0, 1.5, 2.0, 3.0, 4.0] * len(sizes)
    process = make(**arms[-1])
    assert process.provider.size == sizes[-1] and process.k == 4.0
