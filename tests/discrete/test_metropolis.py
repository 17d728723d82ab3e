"""MALA and the Metropolised Barker proposal: every step replayed with explicit densities, ratios, adaptation, cost."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import discrete
import pdmp
from discrete.barker import softplus
from pdmp.gradients import ControlVariate, Minibatch, Noisy
from pdmp.models import Gaussian
from pdmp.process import ADAPTING, DATA
from tests.checks import new_chain, run_chain
from tests.targets import MEAN, MODEL, PRECISION, Quartic, data

pytestmark = pytest.mark.exact

START = np.array([0.0, 0.0, 0.0])
DENSE = np.array([[0.8, -0.3, 0.1], [-0.3, 0.9, 0.0], [0.1, 0.0, 1.2]])
FORMS = list(itertools.product(("bimodal", "gaussian"), ("coordinates", "single")))


def potential(x):
    return 0.5 * (x - MEAN) @ PRECISION @ (x - MEAN)


def slope(x):
    return PRECISION @ (x - MEAN)


def stream(seed):
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def steps_in_python(process, x, steps, seed=4, warm=0):
    """State and positions after so many jumps, nothing compiled."""
    rng = stream(seed)
    state, xs = process.begin(np.array(x), rng), []
    for k in range(steps):
        state.counts[ADAPTING] = int(k < warm)
        assert process.jump(state, 0, 0.0, rng) == 0
        xs.append(state.x.copy())
    return state, np.array(xs)


# ---------------------------------------------------------------------------------------------------------------
# Every step


def langevin_density(new, old, gamma, p):
    """log q(old, new) of the Langevin proposal."""
    return stats.multivariate_normal.logpdf(new, old - gamma * p @ slope(old), 2.0 * gamma * p)


def follow(path, start, target, warm, propose, log_density, uniform):
    """Compare a path with the algorithm written out; returns the log of the adapted factor, the acceptance rate.

    `propose(k, x, factor)` gives the proposal, `log_density(k, new, old, factor)` log q(old, new).
    """
    x, log_factor, kept = start, 0.0, []
    for k in range(len(path)):
        factor = math.exp(log_factor)
        new = propose(k, x, factor)
        ratio = potential(x) - potential(new) + log_density(k, x, new, factor) - log_density(k, new, x, factor)
        accept = math.exp(min(0.0, ratio))
        if uniform() < accept:
            x = new
        if k < warm:
            log_factor += (k + 1.0) ** -0.6 * (accept - target)
        else:
            kept.append(accept)
        np.testing.assert_allclose(path[k], x, rtol=1e-9, atol=1e-11)
    moved = np.any(np.diff(path, axis=0) != 0.0, axis=1)
    assert 0 < moved.sum() < len(moved)  # some were rejected, and some were not
    return log_factor, np.mean(kept)


@pytest.mark.parametrize("p", [np.ones(3), [0.5, 1.5, 1.0], DENSE])
@pytest.mark.parametrize("step", [0.9, discrete.schedules.polynomial(3.0, 2.0, 0.5)])
def test_every_step_of_mala(step, p):
    """Replayed from the same stream: ξ, then the uniform number that decides; ratios from the densities themselves."""
    rng = stream(5)
    metric = pdmp.Metric(covariance=p)
    p = np.diag(p) if np.ndim(p) == 1 else p
    root = np.linalg.cholesky(p)

    def gamma(k, factor):
        return factor * (step if isinstance(step, float) else 3.0 * (2.0 + k) ** -0.5)

    def propose(k, x, factor):
        size = gamma(k, factor)
        return x - size * p @ slope(x) + math.sqrt(2.0 * size) * root @ rng.standard_normal(3)

    process = discrete.MALA(MODEL, step, metric=metric)
    if isinstance(step, float):
        chain = run_chain(process, START, 5, steps=60, warmup=0.5)
        state, path = chain.state, chain.finish().xs
    else:
        state, path = steps_in_python(process, START, 60, seed=5, warm=30)
    log_factor, rate = follow(
        path, START, 0.574, 30, propose,
        lambda k, new, old, factor: langevin_density(new, old, gamma(k, factor), p), rng.random,
    )  # fmt: skip
    assert state.memory.log_factor[0] == pytest.approx(log_factor, rel=1e-9)
    assert abs(log_factor) > 0.01
    found = process.report.statistics(process, state)
    assert found["mean_acceptance"] == pytest.approx(rate, rel=1e-9)
    assert found["mean_step"] == pytest.approx(gamma(0, math.exp(log_factor)), rel=1e-9)


def increment_density(w, sigma, increments):
    """log of the symmetrised density of one increment's size."""
    if increments == "gaussian":
        return stats.norm.logpdf(w, 0.0, sigma)
    return np.log(0.5 * (stats.norm.pdf(w, sigma, 0.1 * sigma) + stats.norm.pdf(-w, sigma, 0.1 * sigma)))


@pytest.mark.parametrize("increments, signs", FORMS)
def test_every_step_of_barker(increments, signs):
    """log q(θ, θ + w) = Σ log μ(wⱼ) + log of twice the probability of the sign: of each coordinate's, or the one."""
    rng, scale = stream(6), np.array([1.0, 0.6, 1.4])

    def size(sigma):
        if increments == "gaussian":
            return sigma * rng.standard_normal()
        return sigma * (1.0 + 0.1 * rng.standard_normal())

    def propose(k, x, factor):
        w, g = np.zeros(3), -slope(x)
        for j in range(3):
            w[j] = size(factor * scale[j])
            if signs == "coordinates":
                w[j] *= 1.0 if rng.random() < special.expit(w[j] * g[j]) else -1.0
            elif increments == "bimodal":
                w[j] *= -1.0 if rng.random() < 0.5 else 1.0
        if signs == "single":
            w *= 1.0 if rng.random() < special.expit(w @ g) else -1.0
        return x + w

    def log_density(k, new, old, factor):
        w, g = new - old, -slope(old)
        sign = w * g if signs == "coordinates" else np.array([w @ g])
        return np.sum(increment_density(w, factor * scale, increments)) + np.sum(np.log(2.0 * special.expit(sign)))

    process = discrete.Barker(MODEL, scale, increments, signs)
    chain = run_chain(process, START, 6, steps=60, warmup=0.5)
    log_factor, rate = follow(chain.finish().xs, START, 0.4, 30, propose, log_density, rng.random)
    assert chain.state.memory.log_factor[0] == pytest.approx(log_factor, rel=1e-9)
    found = process.report.statistics(process, chain.state)
    assert found["mean_acceptance"] == pytest.approx(rate, rel=1e-9)
    assert found["mean_scale"] == pytest.approx(math.exp(log_factor), rel=1e-9)
    np.testing.assert_allclose(chain.finish().times, np.mean(scale**2) * np.arange(1, 61), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Ratios


def ratio_of(process, x, new, increment, size):
    """log q(new, x) - log q(x, new), as the class computes it."""
    memory = process.memory(x, None)
    memory.gradient[:], memory.next_gradient[:], memory.increment[:] = slope(x), slope(new), increment
    return process.log_ratio(memory, size)


@pytest.mark.parametrize("p", [np.eye(3), DENSE])
def test_the_ratio_of_mala_is_antisymmetric(p):
    process, gamma = discrete.MALA(MODEL, 0.3, metric=pdmp.Metric(covariance=p)), 0.3
    root, rng = np.linalg.cholesky(p), np.random.default_rng(8)
    for _ in range(20):
        x, new = rng.normal(0.0, 2.0, (2, 3))
        there = np.linalg.solve(root, new - x + gamma * p @ slope(x)) / math.sqrt(2.0 * gamma)
        back = np.linalg.solve(root, x - new + gamma * p @ slope(new)) / math.sqrt(2.0 * gamma)
        one, other = ratio_of(process, x, new, there, gamma), ratio_of(process, new, x, back, gamma)
        assert one == pytest.approx(-other, rel=1e-9)
        assert one == pytest.approx(langevin_density(x, new, gamma, p) - langevin_density(new, x, gamma, p), rel=1e-9)


@pytest.mark.parametrize("increments, signs", FORMS)
def test_the_ratio_of_barker_is_antisymmetric(increments, signs):
    process, rng = discrete.Barker(MODEL, 0.7, increments, signs), np.random.default_rng(9)
    for _ in range(20):
        x, new = rng.normal(0.0, 2.0, (2, 3))
        one, other = ratio_of(process, x, new, new - x, 0.7), ratio_of(process, new, x, x - new, 0.7)
        assert one == pytest.approx(-other, rel=1e-10)


def test_softplus_does_not_overflow():
    x = np.array([-800.0, -30.0, -1.0, 0.0, 0.3, 40.0, 800.0])
    np.testing.assert_allclose([softplus(v) for v in x], np.logaddexp(0.0, x), rtol=1e-14)
    assert softplus(math.inf) == math.inf and softplus(-math.inf) == 0.0 and softplus(1e300) == 1e300
    assert math.isnan(softplus(math.nan))


# ---------------------------------------------------------------------------------------------------------------
# Increments whatever the gradient, points without density


@pytest.mark.parametrize("form", [None, *FORMS], ids=str)
def test_a_proposal_in_many_dimensions(form):
    """Of MALA or of a Barker form, with a dense L: each coordinate moves by its own number, and counts in the ratio."""
    d, size = 90, 0.3
    own = np.random.default_rng(0)
    root = np.tril(0.1 * own.standard_normal((d, d))) + np.diag(1.0 + own.random(d))
    target, scale = Gaussian(np.zeros(d), np.ones(d)), 0.5 + own.random(d)
    if form is None:
        process = discrete.MALA(target, 1.0, metric=pdmp.Metric(covariance=root @ root.T))
    else:
        process = discrete.Barker(target, scale, *form, metric=pdmp.Metric(covariance=root @ root.T))
    x, (memory, rng) = own.standard_normal(d), (process.memory(np.zeros(d), stream(1)), stream(3))
    memory.gradient[:], memory.next_gradient[:] = own.standard_normal((2, d))
    before, after = memory.gradient @ root, memory.next_gradient @ root
    assert process.propose(x, memory, size, rng)
    w = memory.increment
    if form is None:
        moved = math.sqrt(2.0 * size) * stream(3).standard_normal(d) - size * before
        back = -moved + size * after
        ratio = (np.sum((moved + size * before) ** 2) - np.sum(back**2)) / (4.0 * size)
        np.testing.assert_allclose(memory.proposal, x + root @ moved, rtol=1e-10)
    else:
        np.testing.assert_allclose(memory.proposal, x + root @ w, rtol=1e-10)
        sizes = np.abs(w) / (size * scale)
        spread = np.abs(sizes - 1.0) if form[0] == "bimodal" else sizes
        assert np.all((spread > 0.0) & (spread < (0.5 if form[0] == "bimodal" else 5.0))) and len(set(sizes)) == d
        assert 20 < np.sum(w > 0.0) < 70
        a, b = (w @ before, w @ after) if form[1] == "single" else (w * before, w * after)
        ratio = np.sum(np.logaddexp(0.0, a) - np.logaddexp(0.0, -b))
    assert process.log_ratio(memory, size) == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("dense", [False, True])
def test_the_step_to_start_from(dense):
    """From the largest curvature in the sampler's own coordinates; of many dimensions only the largest one is known."""
    d = 3
    p = DENSE if dense else np.diag([0.5, 1.5, 1.0])
    root, given = np.linalg.cholesky(p), p if dense else np.diag(p)
    mala, barker = (
        discrete.MALA(MODEL, 1.0, metric=pdmp.Metric(covariance=given)),
        discrete.Barker(MODEL, [1.0, 0.5, 2.0], metric=pdmp.Metric(covariance=given)),
    )
    own = root.T @ PRECISION @ root
    assert mala.starting_step(PRECISION) == pytest.approx(1.4 / (d ** (1 / 3) * np.linalg.eigvalsh(own)[-1]))
    own = np.diag([1.0, 0.5, 2.0]) @ own @ np.diag([1.0, 0.5, 2.0])
    assert barker.starting_step(PRECISION) == pytest.approx(
        2.0 / (d ** (1 / 6) * math.sqrt(np.linalg.eigvalsh(own)[-1]))
    )
    widest = np.diag(root).max()
    one = np.array([[5.0]])
    assert mala.starting_step(one) == pytest.approx(1.4 / (d ** (1 / 3) * 5.0 * widest**2))
    assert barker.starting_step(one) == pytest.approx(2.0 / (d ** (1 / 6) * math.sqrt(5.0) * widest))


@pytest.mark.parametrize("increments, signs", FORMS)
def test_barker_increments_are_bounded_whatever_the_gradient(increments, signs):
    process, rng = discrete.Barker(MODEL, [0.5, 1.0, 2.0], increments, signs), stream(2)
    bound = 7.0 if increments == "gaussian" else 1.7
    for gradient in (1e300, math.inf, -math.inf):
        memory = process.memory(START, rng)
        memory.gradient[0] = gradient
        for _ in range(30):
            assert process.propose(START, memory, 1.0, rng)
            assert np.all(np.abs(memory.proposal) < bound * np.array([0.5, 1.0, 2.0]))
            assert memory.proposal[0] * gradient < 0.0  # downhill
            memory.next_gradient[:] = 1.0
            assert math.isfinite(process.log_ratio(memory, 1.0))
    memory.gradient[0] = math.nan
    assert not process.propose(START, memory, 1.0, rng)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_a_start_without_density_stops_the_chain(make):
    chain = new_chain(make(Gaussian(0.0, [1e300]), 1.0), [1e10], 1, steps=100).advance()
    assert "not finite" in chain.failure[0]


class Hole(pdmp.Model):
    """A normal law whose gradient is not a number beyond 1."""

    def __init__(self):
        super().__init__(dim=1)

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] * x[0]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += math.nan if x[0] > 1.0 else x[0]


@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_a_failure_says_where_the_gradient_is_not_finite(make):
    with pytest.raises(pdmp.SamplingError, match="not finite") as caught:
        pdmp.sample(make(Hole(), 0.3, adapt=False), initial=[0.2], steps=5_000, seed=1)
    assert caught.value.position[0] > 1.0 > caught.value.run.trajectories[0].positions.max()


@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker, pdmp.HMC])
def test_what_the_chains_have_adapted_is_averaged_geometrically(make):
    process = make(Gaussian(0.0, [1.0, 1.0])).resolve(np.zeros(2))
    name = f"mean_{getattr(process, 'step_name', 'step')}"
    adapted = process.adapted([{name: 0.1}, {name: 0.4}, {name: 0.8}])
    size = adapted.step if make is pdmp.HMC else adapted.schedule.step(0)
    assert size == pytest.approx(0.032 ** (1.0 / 3.0))
    if make is not pdmp.HMC:
        assert not adapted.adapt and adapted.duration == pytest.approx(process.duration_at(size))


@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_proposals_without_density_are_rejected_before_their_gradient_is_asked_for(make):
    state, xs = steps_in_python(make(Quartic(wall=0.0), 0.8), [0.5], 200)
    rejected = np.sum(np.diff(xs[:, 0], prepend=0.5) == 0.0)
    assert np.all(xs >= 0.0)
    assert 20 < rejected < 190
    assert np.all(np.isfinite(state.memory.gradient))
    # potential and gradient at the start, the potential at each proposal, the gradient only behind the wall
    assert 202 + 200 - rejected <= state.counts[DATA] < 402


# ---------------------------------------------------------------------------------------------------------------
# Adaptation


@pytest.mark.slow
@pytest.mark.parametrize(
    "make, target", [(discrete.MALA, 0.574), (discrete.Barker, 0.4), (discrete.MALA, 0.8), (discrete.Barker, 0.7)]
)
@pytest.mark.parametrize("step", [1e-3, 1e2])
def test_the_warm_up_finds_the_step_of_the_target_acceptance(make, target, step):
    process = make(MODEL, step, target_acceptance=target)
    chain = run_chain(process, MEAN, 11, steps=4_000, warmup=0.5)
    assert process.report.statistics(process, chain.state)["mean_acceptance"] == pytest.approx(target, abs=0.06)


@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_nothing_is_adapted_after_the_warm_up_or_without_one_or_unasked(make):
    chain = new_chain(make(MODEL, 0.3), START, 12, steps=100, warmup=0.25)
    factors = []
    chain.chunk = 1
    while chain.stopped is None:
        chain.advance(seconds=0.0)
        chain.chunk = 1
        factors.append((int(chain.state.memory.taken[0]), float(chain.state.memory.log_factor[0])))
    found = dict(factors)
    assert len({found[k] for k in range(1, 26)}) == 25
    assert {found[k] for k in range(25, 101)} == {found[25]}
    for process, warmup in ((make(MODEL, 0.3), 0.0), (make(MODEL, 0.3, adapt=False), 0.5)):
        assert run_chain(process, START, 12, steps=50, warmup=warmup).state.memory.log_factor[0] == 0.0


def test_the_acceptance_rate_before_any_step_after_the_warm_up_is_unknown():
    chain = new_chain(discrete.MALA(MODEL, 0.3), START, 12, steps=10, warmup=0.5)
    assert math.isnan(chain.process.report.statistics(chain.process, chain.state)["mean_acceptance"])
    for sampler in (discrete.MALA, discrete.Barker):
        assert sampler.recipe.processes(sampler, MODEL, None, MEAN, 0.1) == {}
    setting = discrete.MALA.recipe.setting
    assert setting(discrete.MALA(MODEL, 0.3)) == "step 0.3, adapted"
    assert setting(discrete.Barker(MODEL, 0.3, adapt=False)) == "scale 0.3"


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: discrete.MALA(Minibatch(data(), 2), 0.1), TypeError, "`target` of discrete.MALA.*Minibatch.*SGLD"),
        (lambda: discrete.Barker(Noisy(MODEL, 0.0), 0.1), TypeError, "`target` of discrete.Barker.*exact.*Noisy.*SGBD"),
        (lambda: discrete.Barker(ControlVariate(data(), 2), 0.1), TypeError, "exact.*ControlVariate"),
        (lambda: discrete.MALA(3.0, 0.1), TypeError, "`target`.*float"),
        (lambda: discrete.MALA(MODEL, 0.0), ValueError, "`step`.*positive"),
        (lambda: discrete.MALA(MODEL, 0.1, adapt=1), TypeError, "`adapt`.*True or False.*1"),
        (lambda: discrete.MALA(MODEL, 0.1, target_acceptance=1.0), ValueError, r"`target_acceptance`.*\(0, 1\).*1.0"),
        (lambda: discrete.MALA(MODEL, 0.1, metric=np.eye(2)), ValueError, r"`metric`.*\(3,\) or \(3, 3\).*\(2, 2\)"),
        (lambda: discrete.MALA(MODEL, 0.1, metric=discrete.preconditioners.RMSprop()), TypeError, "constant.*RMSprop"),
        (lambda: discrete.MALA(MODEL, 0.1, metric=[1.0, 0.0, 1.0]), ValueError, "`metric`.*positive"),
        (lambda: discrete.MALA(MODEL, 0.1, metric=np.eye(3) - 0.6), ValueError, "`metric`.*positive definite"),
        (lambda: discrete.MALA(MODEL, 0.1, metric=np.triu(np.ones((3, 3)))), ValueError, "`metric`.*symmetric"),
        (lambda: discrete.Barker(MODEL, -0.1), ValueError, "`scale`.*positive"),
        (lambda: discrete.Barker(MODEL, "adaptive"), TypeError, "`scale`.*adaptive"),
        (lambda: discrete.Barker(MODEL, [0.1, 0.1]), ValueError, r"`scale`.*\(3,\).*\(2,\)"),
        (lambda: discrete.Barker(MODEL, [0.1, 0.1, 0.0]), ValueError, "`scale`.*positive"),
        (lambda: discrete.Barker(MODEL, 0.1, increments="uniform"), ValueError, "`increments`.*'gaussian'.*'uniform'"),
        (lambda: discrete.Barker(MODEL, 0.1, signs="one"), ValueError, "`signs`.*'single'.*'one'"),
    ],
)  # fmt: skip
def test_slips_are_errors_before_the_run(make, error, text):
    with pytest.raises(error, match=text):
        make()


class Apart(pdmp.Model):
    """Independent coordinates with U = x⁴/4 - x."""

    @pdmp.compiled
    def potential(self, x):
        total = 0.0
        for j in range(self.dim):
            total += 0.25 * x[j] ** 4 - x[j]
        return total

    @pdmp.compiled
    def add_gradient(self, x, out):
        for j in range(self.dim):
            out[j] += x[j] ** 3 - 1.0


class Together(Apart):
    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        self.add_gradient(x, out)
        return self.potential(x)


@pytest.mark.exact
@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_potential_and_gradient_together_are_one_evaluation(make):
    one, two = (pdmp.sample(make(m(3), 0.4, adapt=False), steps=50, seed=1) for m in (Together, Apart))
    np.testing.assert_array_equal(one.trajectories[0].positions, two.trajectories[0].positions)
    assert one.stats["data_terms"] == 51 and two.stats["data_terms"] == 102
    assert 0.2 < one.stats["mean_acceptance"] < 0.99


@pytest.mark.exact
def test_together_outside_of_the_support():
    def both(x):
        return (0.5 * x[0] ** 2, x.copy()) if x[0] >= 0.0 else (np.inf, np.full(1, np.nan))

    model = pdmp.models.from_function(both, 1, initial=[1.0], check_gradient=False)
    run = pdmp.sample(discrete.MALA(model, 0.5, adapt=False), steps=400, seed=1)
    assert run.stats["outside"] > 20 and run.trajectories[0].positions.min() >= 0.0
    assert run.stats["data_terms"] == 401


@pytest.mark.exact
@pytest.mark.parametrize("make", [discrete.MALA, discrete.Barker])
def test_a_metric_that_is_given_comes_before_the_one_that_was_learnt(make):
    model = Gaussian([0.0, 0.0], [1.0, 4.0])
    learnt = pdmp.metric.Diagonal(np.array([3.0, 0.5]))
    own = make.in_metric(model, learnt)
    given = make.in_metric(model, learnt, metric=pdmp.Metric(scales=[2.0, 7.0]))
    assert np.array_equal(own.metric.root, [3.0, 0.5]) and np.array_equal(given.metric.root, [2.0, 7.0])
