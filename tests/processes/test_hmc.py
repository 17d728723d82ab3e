"""Hamiltonian Monte Carlo: its steps and its acceptance against the formulas, what it counts, adapts, rejects, says."""

import math
import warnings
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import pdmp
from pdmp.metric import LowRank
from pdmp.process import ADAPTING, DATA
from pdmp.processes import hmc
from tests.checks import assert_unbiased, plain_only, replicate
from tests.targets import Quartic

PLAIN = bool(numba.config.DISABLE_JIT)
METRIC = np.array([[2.0, 0.4], [0.4, 0.7]])


class Skew(pdmp.Model):
    """U = Σ exp(xⱼ) - 2 xⱼ + x₀x₁/2, a target whose leapfrog steps err."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def potential(self, x):
        return math.exp(x[0]) + math.exp(x[1]) - 2.0 * (x[0] + x[1]) + 0.5 * x[0] * x[1]

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += math.exp(x[0]) - 2.0 + 0.5 * x[1]
        out[1] += math.exp(x[1]) - 2.0 + 0.5 * x[0]


class Together(Skew):
    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        self.add_gradient(x, out)
        return self.potential(x)


def resolved(model, start, **options):
    process = pdmp.HMC(model, **options).resolve(np.array(start))
    rng = np.random.Generator(np.random.PCG64(7))
    return process.native, process.begin(np.array(start), rng), rng


def expected(model, x, root, step, duration, jumps, rng):
    """The states, gradients evaluated and probabilities of acceptance, by the formulas of the papers."""
    states, counts, accepted = [], 0, []
    for _ in range(jumps):
        u = rng.standard_normal(len(x))
        n = math.ceil(2.0 * duration * rng.random() / step)
        y, energy = x.copy(), model.potential(x) + 0.5 * u @ u
        for _ in range(n):
            u = u - 0.5 * step * root.T @ model.gradient(y)
            y = y + step * root @ u
            u = u - 0.5 * step * root.T @ model.gradient(y)
        a = min(1.0, math.exp(energy - model.potential(y) - 0.5 * u @ u))
        x = y if rng.random() < a else x
        states.append(x)
        accepted.append(a)
        counts += n
    return np.array(states), counts, np.array(accepted)


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize("model, extra", [(Skew(), 1), (Together(), 0)])
@pytest.mark.parametrize("metric", [None, [2.0, 0.5], METRIC])
def test_steps_acceptance_and_counts(model, extra, metric, monkeypatch):
    monkeypatch.setattr(hmc, "LOST", 0.0)  # without second paths
    process, state, rng = resolved(model, [0.3, -0.4], step=0.6, duration=1.3, metric=metric)
    state.counts[ADAPTING] = 0
    root = state.memory.metric.root
    root = np.diag(root) if root.ndim == 1 else root
    matrix = {0: np.eye(2), 1: np.diag([2.0, 0.5]), 2: METRIC}[np.ndim(metric) if metric is not None else 0]
    np.testing.assert_allclose(root @ root.T @ matrix, np.eye(2), atol=1e-12)
    other = np.random.Generator(np.random.PCG64(7))
    states, gradients, accepted = expected(model, np.array([0.3, -0.4]), root, 0.6, 1.3, 60, other)
    for k, x in enumerate(states):
        assert process.jump(state, 0, float(k), rng) == 0
        np.testing.assert_allclose(state.x, x, rtol=1e-9)
    assert 10 < np.sum(accepted < 0.9) and len(np.unique(states[:, 0])) < 60  # some are rejected
    assert state.counts[DATA] == gradients + 60 * extra + 1 + extra
    assert state.memory.acceptance_sum[0] == pytest.approx(accepted.sum()) and state.memory.counted[0] == 60
    same = np.flatnonzero(np.all(np.diff(states, axis=0) == 0.0, axis=1))
    streaks = np.split(same, np.flatnonzero(np.diff(same) > 1) + 1)
    assert state.memory.held[1] == max(map(len, streaks))


def around(model, x, root, centre, step, n, u):
    """n steps around N(m, L Lᵀ) from (x, u), by the flow of the Gaussian as a matrix exponential."""
    d = len(x)
    inverse = np.linalg.inv(root)
    generator = np.block([[np.zeros((d, d)), root], [-inverse, np.zeros((d, d))]])
    flow = scipy.linalg.expm(step * generator)
    for _ in range(n):
        u = u - 0.5 * step * (root.T @ model.gradient(x) - inverse @ (x - centre))
        moved = flow @ np.concatenate([x - centre, u])
        x, u = centre + moved[:d], moved[d:]
        u = u - 0.5 * step * (root.T @ model.gradient(x) - inverse @ (x - centre))
    return x, u


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize("mass", [[2.0, 0.5], METRIC])
def test_steps_around_a_gaussian(mass, monkeypatch):
    """States, acceptances and counts, by the formulas; and with L of a few directions."""
    monkeypatch.setattr(hmc, "LOST", 0.0)
    centre = np.array([0.7, -0.2])
    process, state, rng = resolved(Skew(), [0.3, -0.4], step=0.9, duration=1.3, metric=mass, around=centre)
    state.counts[ADAPTING] = 0
    root = state.memory.metric.root
    root = np.diag(root) if root.ndim == 1 else root
    other, x, gradients, model, total = np.random.Generator(np.random.PCG64(7)), state.x.copy(), 0, Skew(), 0.0
    for k in range(60):
        u = other.standard_normal(2)
        n = math.ceil(2.6 * other.random() / 0.9)
        y, end = around(model, x, root, centre, 0.9, n, u)
        a = min(1.0, math.exp(model.potential(x) - model.potential(y) + 0.5 * (u @ u - end @ end)))
        x, gradients, total = y if other.random() < a else x, gradients + n, total + a
        assert process.jump(state, 0, float(k), rng) == 0
        np.testing.assert_allclose(state.x, x, rtol=1e-9)
        assert np.all(state.v == 0.0)
    assert state.counts[DATA] == gradients + 62 and total < 58.0
    assert state.memory.acceptance_sum[0] == pytest.approx(total)


@plain_only
@pytest.mark.exact
def test_steps_around_a_gaussian_in_a_low_rank_mass():
    """Those of the dense matrix with the same L Lᵀ: any root of it gives a rotation of u alone."""
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 1)))[0].T
    mass = LowRank(np.array([1.0, 0.6]), directions, np.array([1.5]))
    process = pdmp.HMC(Skew(), step=0.5, around=[0.7, -0.2])
    process.metric = mass
    process = process.resolve(np.zeros(2))
    state = process.begin(np.array([0.3, -0.4]), np.random.Generator(np.random.PCG64(7)))
    root, memory, u = mass.transform(np.eye(2)).T, state.memory, np.array([0.4, -1.1])
    native = process.native
    memory.proposal[:] = state.x
    native.standardise(state)
    memory.metric.u[:] = u
    for _ in range(3):
        for last in (False, True):
            native.metric.pull(memory.metric, Skew().gradient(memory.proposal))
            native.kick(memory.metric.u, memory.metric.pulled, memory.place, 0.5)
            if not last:
                native.rotate(memory, 0.5)
    x, end = around(Skew(), state.x, root, np.array([0.7, -0.2]), 0.5, 3, u)
    np.testing.assert_allclose(memory.proposal, x, rtol=1e-10)
    np.testing.assert_allclose(memory.metric.u, end, rtol=1e-10)


@pytest.mark.exact
def test_steps_around_a_gaussian_are_symplectic_reversible_and_of_order_two():
    """Of U = h x² / 2 around N(0, 1) a step is a matrix, of trace 2 cos θ with θ = √h ε (1 + ε² (h - 1)² / (24 h) + …).

    The leapfrog's constant is h / 24.
    """

    h, one, centre = 1.6, np.eye(1), np.zeros(1)
    spring = pdmp.models.Gaussian([0.0], [h])

    def matrix(step):
        columns = [around(spring, np.array([a]), one, centre, step, 1, np.array([b])) for a, b in ((1, 0), (0, 1))]
        return np.array([np.concatenate(c) for c in columns]).T

    for step in (0.1, 1.0, math.pi / 2):
        m, flip = matrix(step), np.diag([1.0, -1.0])
        assert np.linalg.det(m) == pytest.approx(1.0)
        np.testing.assert_allclose(flip @ m @ flip @ m, np.eye(2), atol=1e-12)
        assert np.trace(m) / 2 == pytest.approx(math.cos(step) - 0.5 * step * (h - 1.0) * math.sin(step))
    for step, close in ((0.1, 2e-3), (0.05, 5e-4)):
        error = math.acos(np.trace(matrix(step)) / 2.0) / (math.sqrt(h) * step) - 1.0
        assert error == pytest.approx(step**2 * (h - 1.0) ** 2 / (24.0 * h), rel=close)


@pytest.mark.exact
def test_of_its_own_gaussian_steps_have_no_error():
    """A quarter of a period is an independent draw; one gradient of the model a path, and every path accepted."""
    covariance, mean = np.array([[4.0, 0.9], [0.9, 0.25]]), np.array([3.0, -1.0])
    model = pdmp.models.Gaussian(mean, np.linalg.inv(covariance))
    process = pdmp.HMC(model, step=math.pi / 2, duration=math.pi / 4, metric=np.linalg.inv(covariance), around=mean)
    run = pdmp.sample(process, steps=2_000, initial=[5.0, 0.0], seed=1)
    assert run.stats["mean_acceptance"] == pytest.approx(1.0, abs=1e-10) and run.stats["mean_lost"] == 0.0
    x = run.trajectories[0].positions[2:]
    z = np.linalg.solve(np.linalg.cholesky(covariance), (x - mean).T).T
    # Standard errors are 0.022; of squares 0.032.
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.08)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(2), atol=0.12)
    np.testing.assert_allclose(z[:-1].T @ z[1:] / len(z), 0.0, atol=0.08)
    adapted = pdmp.HMC(model, duration=math.pi / 4, metric=np.linalg.inv(covariance), around=mean)
    run = pdmp.sample(adapted, steps=400, warmup=0.5, initial=[5.0, 0.0], seed=1)
    assert run.stats["mean_step"] == pytest.approx(hmc.LONGEST_STEP)
    with pytest.raises(ValueError, match=r"^`around` must be finite, got \[ ?1"):
        pdmp.HMC(model, around=[1.0, math.nan])


@pytest.mark.exact
@pytest.mark.parametrize("kind", ["low rank", "sparse"])
def test_products_with_a_mass(kind):
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 2)))[0].T
    metric = LowRank(np.array([1.0, 2.0, 0.5, 3.0, 1.0]), directions, np.array([2.0, -0.6]))
    if kind == "sparse":
        across = np.zeros((5, 5))
        across[[0, 0, 2], [3, 4, 3]] = 0.5, -0.3, 0.2
        metric = pdmp.Metric(scipy.sparse.csr_array(np.diag([1.0, 2.0, 0.5, 3.0, 1.0]) + across + across.T)).made(5)
    root = metric.transform(np.eye(5)).T
    np.testing.assert_allclose(metric.inverse(root.T), np.eye(5), atol=1e-12)
    np.testing.assert_allclose(metric.transposed(np.eye(5)), root, atol=1e-12)
    memory, native, g, v = metric.memory(np.zeros(5)), metric.native, np.arange(1.0, 6.0), np.zeros(5)
    memory.u[:] = [0.3, -1.0, 2.0, 0.5, 1.5]
    if PLAIN:
        native.pull(memory, g)
        native.push(memory, v)
        np.testing.assert_allclose(memory.pulled, root.T @ g, rtol=1e-12)
        np.testing.assert_allclose(v, root @ memory.u, rtol=1e-12)
    target = pdmp.models.Gaussian(np.zeros(5), np.linalg.inv(root @ root.T))
    process = pdmp.HMC(target, step=0.7)
    process.metric = metric
    run = pdmp.sample(process, steps=4_000, seed=1)
    assert run.stats["mean_acceptance"] > 0.8
    np.testing.assert_allclose(run.sd(), np.sqrt(np.diag(root @ root.T)), rtol=0.1)


@pytest.mark.exact
def test_every_state_is_held_for_the_mean_duration():
    run = pdmp.sample(pdmp.HMC(Skew(), step=0.5, duration=0.7), steps=40, seed=1)
    np.testing.assert_allclose(np.diff(run.trajectories[0].times), 0.7, rtol=1e-12)
    assert run.end[0] == pytest.approx(28.0)


@pytest.mark.exact
@pytest.mark.filterwarnings("ignore:.*Hamiltonian paths? diverged")  # on some seeds one does
def test_the_step_is_adapted_in_the_warm_up_only():
    run = pdmp.sample(pdmp.HMC(Skew()), steps=3_000, warmup=0.5, seed=1)
    assert run.stats["mean_acceptance"] == pytest.approx(0.8, abs=0.04)
    low = pdmp.sample(pdmp.HMC(Skew(), target_acceptance=0.6), steps=3_000, warmup=0.5, seed=1)
    assert low.stats["mean_acceptance"] == pytest.approx(0.6, abs=0.05)
    assert low.stats["mean_step"] > 1.1 * run.stats["mean_step"]
    with pytest.warns(UserWarning, match='`warmup` is 0: step="auto" adapts'):
        fixed = pdmp.sample(pdmp.HMC(Skew()), steps=50, seed=1)
    hessian = Skew().hessian(fixed.trajectories[0].positions[0])
    assert fixed.stats["mean_step"] == pytest.approx(2.0**-0.25 / math.sqrt(np.trace(hessian) / 2.0), rel=1e-3)
    given = pdmp.sample(pdmp.HMC(Skew(), step=0.3), steps=50, warmup=0.5, seed=1)
    assert given.stats["mean_step"] == pytest.approx(0.3, rel=1e-12)


@pytest.mark.exact
@pytest.mark.parametrize("metric", ["diagonal", "dense"])
def test_the_mass_is_adapted_to_the_variances_of_the_states(metric):
    target = pdmp.models.Gaussian([1.0, -2.0], np.linalg.inv([[4.0, 0.9], [0.9, 0.25]]))
    process, state, rng = resolved(target, [1.0, -2.0], metric=metric)
    state.counts[ADAPTING] = 1
    for k in range(2_000):
        process.jump(state, 0, 1.0 * k, rng)
    root = state.memory.metric.root
    if metric == "diagonal":
        np.testing.assert_allclose(root**2, [4.0, 0.25], rtol=0.3)
    else:
        np.testing.assert_allclose(root @ root.T, [[4.0, 0.9], [0.9, 0.25]], rtol=0.3)
    assert state.memory.adapted[1] == state.memory.metric.window.adaptations[0] >= 3.0
    assert state.memory.adapted[0] < 1_200.0  # counted anew with each new metric


class Narrow(pdmp.Model):
    """Two coordinates of sd e^(t/2), t ~ N(0, 9): at a step for the mouth of this funnel paths are lost in its neck."""

    def __init__(self):
        super().__init__(dim=3)

    @pdmp.compiled
    def potential_and_gradient(self, x, out):
        p = math.exp(-x[2])
        out[0] += p * x[0]
        out[1] += p * x[1]
        out[2] += x[2] / 9.0 + 1.0 - 0.5 * p * (x[0] * x[0] + x[1] * x[1])
        return x[2] * x[2] / 18.0 + x[2] + 0.5 * p * (x[0] * x[0] + x[1] * x[1])

    @pdmp.compiled
    def potential(self, x):
        return x[2] * x[2] / 18.0 + x[2] + 0.5 * math.exp(-x[2]) * (x[0] * x[0] + x[1] * x[1])

    @pdmp.compiled
    def add_gradient(self, x, out):
        self.potential_and_gradient(x, out)


def leapfrog(model, x, u, step, n, root):
    """(x, u) after n steps, their number up to a divergence, where it has one, and E, infinite then."""
    for k in range(n):
        u = u - 0.5 * step * root.T @ model.gradient(x)
        x = x + step * root @ u
        u = u - 0.5 * step * root.T @ model.gradient(x)
        if not 0.5 * u @ u < hmc.LARGEST_ENERGY + len(x):
            return x, u, k + 1, math.inf
    return x, u, n, model.potential(x) + 0.5 * u @ u


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize("split, limit_of_lost", [(False, 0.6), (True, 0.6), (False, 0.01)])
def test_a_lost_path_is_tried_again_by_shorter_steps(split, limit_of_lost, monkeypatch):
    """By the formulas, with all ends a second path may have."""
    monkeypatch.setattr(hmc, "LOST", limit_of_lost)
    model, root, x = Narrow(), np.diag([1.0, 0.7, 1.3]), np.array([0.01, -0.02, -3.0 if limit_of_lost > 0.1 else -5.0])
    options = {"around": np.zeros(3)} if split else {}
    process, state, rng = resolved(model, x, step=0.4, duration=1.1, metric=1.0 / np.diag(root) ** 2, **options)
    state.counts[ADAPTING], other = 0, np.random.Generator(np.random.PCG64(7))

    def go(x, u, step, n):
        if not split:
            return leapfrog(model, x, u, step, n, root)
        for k in range(n):
            x, u = around(model, x, root, np.zeros(3), step, 1, u)
            if not 0.5 * u @ u < hmc.LARGEST_ENERGY + 3:
                return x, u, k + 1, math.inf
        return x, u, n, model.potential(x) + 0.5 * u @ u

    seen, gradients, lost, divergences, total = dict.fromkeys(("first", "worse", "back", "second"), 0), 1, 0, 0, 0.0
    for k in range(400):
        u = other.standard_normal(3)
        n, before = math.ceil(2.2 * other.random() / 0.4), model.potential(x) + 0.5 * u @ u
        y, _, spent, there = go(x, u, 0.4, n)
        accept = math.exp(min(before - there, 0.0))
        gradients, total, diverged = gradients + spent, total + accept, there == math.inf
        if other.random() < accept:
            x, seen["first"] = y, seen["first"] + 1
        elif accept < hmc.LOST:
            y, v, spent, there = go(x, u, 0.4 / hmc.FINER, n * hmc.FINER)
            gradients, ratio, limit = gradients + spent, math.exp(min(before - there, 9.0)), other.random()
            diverged = there == math.inf
            how = "worse"
            if limit * (1.0 - accept) < ratio:
                _, _, spent, back = go(y, -v, 0.4, n)
                back, gradients = math.exp(min(there - back, 0.0)), gradients + spent
                good = back < hmc.LOST and limit < min(1.0, ratio * (1.0 - back) / (1.0 - accept))
                how, x = ("second", y) if good else ("back", x)
            seen[how] += 1
            lost, divergences = lost + (how != "second"), divergences + diverged
        assert process.jump(state, 0, float(k), rng) == 0
        np.testing.assert_allclose(state.x, x, rtol=1e-6, atol=1e-9)
        x = state.x.copy()  # rounding grows along paths that are lost
    memory = state.memory
    assert min(seen.values()) > 2 and (memory.lost[0], memory.divergences[0]) == (lost, divergences)
    assert state.counts[DATA] == gradients and memory.acceptance_sum[0] == pytest.approx(total)
    np.testing.assert_allclose(memory.gradient, model.gradient(x), rtol=1e-9)
    assert memory.potential[0] == pytest.approx(model.potential(x))


def wall(fails):
    """A half-normal law, with what `fails` returns in the place of the potential left of 0."""

    def both(x):
        return (0.5 * x[0] ** 2, x.copy()) if x[0] >= 0.0 else fails()

    return pdmp.models.from_function(both, 1, initial=[1.0], check_gradient=False)


@pytest.mark.exact
def test_outside_of_the_support_is_rejected_and_counted():
    model = wall(lambda: (math.inf, np.full(1, math.nan)))
    one = pdmp.sample(pdmp.HMC(model, step=0.9, duration=0.4), steps=400, seed=2)  # paths of one step
    assert one.stats["data_terms"] == 401 and one.stats["outside"] > 20 and one.stats["mean_lost"] == 0.0
    run = pdmp.sample(pdmp.HMC(model, step=0.9), steps=4_000, seed=2)
    assert run.stats["outside"] > 100 and run.trajectories[0].positions.min() >= 0.0
    assert run.stats["mean_lost"] == 0.0  # nor is a path that leaves it before its last step
    assert run.mean()[0] == pytest.approx(math.sqrt(2.0 / math.pi), abs=0.06)


@pytest.mark.exact
@pytest.mark.parametrize("where", [0.0, 0.6])
def test_a_gradient_that_is_not_a_number_ends_the_run(where):
    def both(x):
        return 0.5 * x[0] ** 2, x.copy() if x[0] < 1.0 + where else np.full(1, math.nan)

    model = pdmp.models.from_function(both, 1, initial=[0.0], check_gradient=False)
    with pytest.raises(pdmp.SamplingError) as caught:
        pdmp.sample(pdmp.HMC(model, step=0.5, duration=4.0), steps=4_000, seed=2)
    assert caught.value.run.stats["total_events"] > 0


@plain_only
@pytest.mark.exact
def test_a_gradient_that_is_not_a_number_on_a_second_path_ends_the_run():
    """Not where the first ends, of one step, but where the shorter ones lead."""

    def both(x):
        seen.append(abs(x[0]))
        return 50.0 * x[0] ** 2, 100.0 * x if seen[-1] == 0.05 or seen[-1] > 0.1 else np.full(1, math.nan)

    seen = []
    model = pdmp.models.from_function(both, 1, initial=[0.05], check_gradient=False)
    process, state, rng = resolved(model, [0.05], step=0.5, duration=0.1)
    state.counts[ADAPTING] = 0
    assert process.jump(state, 0, 0.0, rng) == -1
    first, second = seen[len(seen) - seen[::-1].index(0.05) :][:2]
    assert first > 0.1 > second


@pytest.mark.exact
def test_divergences_are_rejected_counted_and_said():
    narrow = pdmp.models.Gaussian([0.0], [1e6])
    with pytest.warns(UserWarning, match="Hamiltonian paths? diverged.*target_acceptance=0.95"):
        run = pdmp.sample(pdmp.HMC(narrow, step=0.5, duration=5.0), steps=200, initial=[1e-4], seed=1)
    with pytest.warns(UserWarning, match="paths? diverged.*target_acceptance=0.98"):
        pdmp.sample(pdmp.HMC(narrow, step=0.5, target_acceptance=0.96), steps=20, initial=[1e-4], seed=1)
    assert run.stats["divergences"] > 150 and abs(run.mean()[0]) < 1.0
    assert run.stats["mean_acceptance"] < 0.1


@pytest.mark.exact
@plain_only
def test_divergences_and_holds_count_after_the_warm_up():
    process, state, rng = resolved(pdmp.models.Gaussian([0.0], [1e6]), [1e-4], step=0.5, duration=9.0)
    for adapting, held, counted in ((1, 0.0, 0.0), (0, 32.0, 12.0)):
        state.counts[ADAPTING] = adapting
        for k in range(12 if counted else 20):
            process.jump(state, 0, float(k), rng)
        memory = state.memory
        assert (memory.held[1], memory.counted[0]) == (held, counted) and state.x[0] == 1e-4  # all were rejected
        assert counted * 0.7 <= memory.divergences[0] <= counted and memory.acceptance_sum[0] < 1e-9


@pytest.mark.exact
def test_a_chain_that_is_held_is_said():
    steep = pdmp.models.Gaussian([0.0], [4.93])  # at the stability limit of the step, and of one four times shorter
    steeper = pdmp.models.Gaussian([0.0], [4.93 * hmc.FINER**2])
    with pytest.warns(UserWarning, match="was held at one place for"):
        run = pdmp.sample(pdmp.HMC(steeper, step=0.9, duration=6.0), steps=400, chains=2, seed=1)
    assert run.stats["max_held"] > hmc.LONGEST_HOLD
    assert run.stats["max_held"] == max(r.statistics["max_held"] for r in run.records)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdmp.sample(pdmp.HMC(steep, step=0.9, duration=6.0), steps=400, chains=2, seed=1)


@pytest.mark.exact
def test_the_share_of_lost_paths_is_a_mean_over_chains():
    """Of steps of ten standard deviations nearly all are lost, as are those of a quarter of the step."""
    process = pdmp.HMC(pdmp.models.Gaussian([0.0], [1e4]), step=0.1)
    with pytest.warns(UserWarning):  # of what is lost
        run = pdmp.sample(process, events=40, chains=3, seed=1, progress=False)
    assert 0.5 < run.stats["mean_lost"] <= 1.0


@pytest.mark.exact
def test_paths_that_are_lost_are_said():
    """In one line, with the coordinate of a neck; divergences and a hold come first."""
    process = pdmp.HMC(pdmp.models.Gaussian([0.0], [1.0]))
    process.neck = "log_tau"
    stats = {"divergences": 0.0, "max_held": 2.0, "mean_lost": 0.064, "mean_step": 0.25}
    (said,) = process.report.warnings(process, stats)
    assert said.startswith(
        "6.4 % of the Hamiltonian paths were lost, and not mended by a quarter of the step of 0.25: "
    )
    assert "scales do not depend on log_tau, with which" in said and "`target_acceptance=0.95`" in said
    for quiet in ({"mean_lost": 0.02}, {"mean_lost": math.nan}):
        assert process.report.warnings(process, stats | quiet) == []
    assert process.report.warnings(pdmp.HMC(process.model), stats) == []  # of which no neck is known
    for first, word in (
        ({"divergences": 1.0}, "1 Hamiltonian path diverged"),
        ({"max_held": 26.0}, "a chain was held"),
    ):
        (said,) = process.report.warnings(process, stats | first)
        assert said.startswith(word)


@pytest.mark.exact
@pytest.mark.parametrize(
    "options, message",
    [
        ({"around": [0.0]}, "around"),
        ({"around": [0.0, 0.0], "step": 1.6}, "`step` around a Gaussian must be at most π/2, .* got 1.6"),
        ({"around": [0.0, 0.0], "metric": "diagonal"}, "`around` needs a metric that stays, .* got 'diagonal'"),
        ({"step": 0.0}, "`step`"),
        ({"step": "large"}, "`step`"),
        ({"duration": -1.0}, "`duration`"),
        ({"duration": math.inf}, "`duration`"),
        ({"metric": "full"}, "`metric`"),
        ({"metric": [1.0, -1.0]}, "`metric`"),
        ({"target_acceptance": 1.0}, "`target_acceptance`"),
        ({"target_acceptance": 0.0}, "`target_acceptance`"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        pdmp.HMC(Skew(), **options)


@pytest.mark.exact
def test_noisy_gradients_are_refused():
    noisy = pdmp.gradients.Noisy(Skew(), 1.0)
    with pytest.raises(TypeError, match="exact gradient; got a Noisy. pdmp.SBPS"):
        pdmp.HMC(noisy)


@pytest.mark.parametrize("options", [{"step": 0.3}, {"step": 1.1}, {"step": 1.1, "around": [0.4]}])
def test_law_at_steps_whose_own_law_is_another(options):
    """Of x⁴/4: paths accepted nearly always, and a third rejected; around a Gaussian that is not at its place, too."""
    found = replicate(pdmp.HMC(Quartic(), **options), [0.5], 32, seed=5, warmup=0.05, steps=20_000)
    second = 2.0 * math.gamma(0.75) / math.gamma(0.25)
    assert_unbiased(found.mean, 0.0, resolution=0.05)
    assert_unbiased(found.var / second, 1.0, resolution=0.05)


@pytest.mark.exact
def test_what_is_told_of_a_chain():
    """Sums over eight paths, all different."""
    memory = {"acceptance_sum": [6.0], "counted": [8.0], "log_step": [math.log(0.3)], "outside": [5], "lost": [1.5]}
    memory |= {"divergences": [2], "held": [3.0, 7.0]}
    state = SimpleNamespace(memory=SimpleNamespace(**memory))
    told = hmc.HMCReport().statistics(None, state)
    assert told.pop("mean_step") == pytest.approx(0.3)
    expected = {"mean_acceptance": 0.75, "outside": 5.0, "divergences": 2.0, "mean_lost": 0.1875, "max_held": 7.0}
    assert told == expected
    state.memory.counted = [0.0]
    told = hmc.HMCReport().statistics(None, state)
    assert math.isnan(told["mean_acceptance"]) and math.isnan(told["mean_lost"])
