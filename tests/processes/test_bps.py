"""The Bouncy Particle family: masses, refreshments, bounces, rays, adaptation, bad input; identities, to rounding."""

import math

import numpy as np
import pytest
from numba.core import config
from scipy import special, stats

import pdmp
from pdmp import metric as metrics
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression
from pdmp.native.classes import helper
from pdmp.native.velocities import across, autoregress, dot, turn_partly
from pdmp.process import ADAPTING, DATA, HORIZON, VIOLATIONS
from pdmp.processes.bps import BOUNCE, CARRIED, REFRESH
from pdmp.processes.directional_bps import BoundedRays, GradientRays, ModelRays
from tests.checks import new_chain, plain_only, run_chain
from tests.processes.helpers_bps import Quartic
from tests.targets import MEAN, MODEL, PRECISION

pytestmark = pytest.mark.exact

METRIC = np.array([[1.0, -0.3, 0.2], [-0.3, 2.0, 0.1], [0.2, 0.1, 0.7]])
ISOTROPIC = Gaussian(np.array([1.0, 2.0, 3.0]), np.full(3, 4.0))


def rng(seed=0):
    return np.random.default_rng(seed)


def logistic(n_data=70, d=3, seed=5):
    X = rng(seed).standard_normal((n_data, d))
    y = (rng(seed + 1).random(n_data) < special.expit(X @ np.linspace(1.0, -1.0, d))).astype(float)
    return LogisticRegression(X, y, prior_scale=2.0)


LOGISTIC = logistic()


def started(process, x=None):
    process = process.resolve(MEAN if x is None else np.asarray(x, float))
    return process, process.begin(np.array(MEAN + 0.3 if x is None else x, float), rng(1))


# ---------------------------------------------------------------------------------------------------------------
# Masses


@pytest.mark.parametrize("metric", [np.diag(METRIC), METRIC])
@pytest.mark.parametrize("velocities", ["sphere", "gaussian"])
def test_bounces_are_reflections_in_the_metric_of_the_mass(metric, velocities):
    matrix = np.diag(metric) if metric.ndim == 1 else metric
    for seed in range(10):
        process, state = started(pdmp.BPS(MODEL, refresh_rate=1.0, metric=metric, velocities=velocities))
        x, v = rng(seed).standard_normal((2, 3))
        if velocities == "sphere":
            v /= math.sqrt(v @ matrix @ v)
        state.x[:], state.v[:] = x, v
        state.memory.metric.u[:] = process.metric.inverse(v)
        assert process.native.rate(state, BOUNCE, 0.0, rng()) == pytest.approx(max(0.0, v @ MODEL.gradient(x)))
        process.native.jump(state, BOUNCE, 0.0, rng())
        g = MODEL.gradient(x)
        pushed = np.linalg.solve(matrix, g)
        np.testing.assert_allclose(state.v, v - 2.0 * (v @ g) / (g @ pushed) * pushed, rtol=1e-10, atol=1e-12)
        assert state.v @ matrix @ state.v == pytest.approx(v @ matrix @ v, rel=1e-12)
        assert state.v @ g == pytest.approx(-(v @ g), rel=1e-9)


@pytest.mark.parametrize("metric", [np.diag(METRIC), METRIC])
def test_roots_and_products_of_a_mass(metric, monkeypatch):
    matrix = np.diag(metric) if metric.ndim == 1 else metric
    made = metrics.check_metric(metric, 3, "pdmp.BPS")
    memory = made.memory(MEAN)
    root = np.diag(made.root) if metric.ndim == 1 else made.root
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(matrix), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(root, np.tril(root))
    z, out = rng(2).standard_normal(3), np.zeros(3)
    made.native.pull(memory, z)
    np.testing.assert_allclose(memory.pulled, root.T @ z, rtol=1e-13)
    memory.u[:] = z
    made.native.push(memory, out)
    np.testing.assert_allclose(out, root @ z, rtol=1e-13)
    np.testing.assert_allclose(made.transform(z), root @ z, rtol=1e-13)
    np.testing.assert_allclose(made.inverse(made.transform(z)), z, rtol=1e-12)
    np.testing.assert_allclose(made.transposed(z), root.T @ z, rtol=1e-13)
    expected = np.trace(np.linalg.solve(matrix, PRECISION)) / 3.0
    assert made.trace(MODEL, MEAN) == pytest.approx(expected, rel=1e-8)
    assert metrics._probed_trace(made, MODEL, MEAN, probes=4_000) == pytest.approx(expected, rel=0.05)
    monkeypatch.setattr(metrics, "LARGEST", 2)  # above, no Hessian is made
    monkeypatch.setattr(Gaussian, "hessian", None)
    assert made.trace(MODEL, MEAN) == metrics._probed_trace(made, MODEL, MEAN) == pytest.approx(expected, rel=0.5)
    made = metrics.make_metric("dense", MODEL, MEAN)
    np.testing.assert_allclose(made.root, np.eye(3) / math.sqrt(np.trace(PRECISION) / 3.0), rtol=1e-9)


@pytest.mark.parametrize("velocities", ["sphere", "gaussian"])
def test_a_mass_is_a_linear_change_of_coordinates(velocities):
    """BPS with the metric M on x is BPS on y = L⁻¹x, event by event, from the same random stream."""
    root = metrics.root_of(METRIC)
    options = {"refresh_rate": 0.4, "refresh": "partial", "velocities": velocities}
    one = run_chain(pdmp.BPS(MODEL, metric=METRIC, **options).resolve(MEAN), MEAN + 0.5, 3, events=60)
    whitened = Gaussian(np.linalg.solve(root, MEAN), root.T @ PRECISION @ root)
    start = np.linalg.solve(root, MEAN + 0.5)
    other = run_chain(pdmp.BPS(whitened, **options).resolve(start), start, 3, events=60)
    one, other = one.finish(), other.finish()
    np.testing.assert_array_equal(one.kinds, other.kinds)
    assert set(one.kinds) == {BOUNCE, REFRESH}
    np.testing.assert_allclose(one.times, other.times, rtol=1e-8)
    np.testing.assert_allclose(one.xs, other.xs @ root.T, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(one.vs, other.vs @ root.T, rtol=1e-7, atol=1e-8)


def test_the_cholesky_factor():
    a = rng(4).standard_normal((5, 5))
    matrix = a @ a.T
    factor = matrix.copy()
    assert metrics.cholesky(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix), rtol=1e-10)
    assert not metrics.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_automatic_refreshment_is_a_tenth_of_the_bounce_rate_in_the_metric():
    for metric in (None, np.diag(METRIC), METRIC, PRECISION):
        inverse = np.eye(3) if metric is None else np.linalg.inv(np.diag(metric) if metric.ndim == 1 else metric)
        curvature = np.trace(inverse @ PRECISION) / 3.0
        expected = 0.1 * math.sqrt(curvature / (2.0 * math.pi))
        assert pdmp.BPS(MODEL, metric=metric).resolve(MEAN).refresh_rate == pytest.approx(expected, rel=1e-6)
        gaussian = pdmp.BPS(MODEL, metric=metric, velocities="gaussian").resolve(MEAN)
        assert gaussian.refresh_rate == pytest.approx(expected * math.sqrt(3.0), rel=1e-6)


# -- adaptation


@pytest.mark.parametrize("metric", ["diagonal", "dense"])
def test_a_mass_adapts_to_the_path_in_the_warm_up_and_is_frozen_after_it(metric):
    """One window: the integrals of straight segments, by Gauss nodes, mixed with the old covariance."""
    process = pdmp.BPS(MODEL, refresh_rate=0.5, metric=metric).resolve(MEAN)
    old = process.metric.root.copy()
    window = process.metric.window()
    chain = new_chain(process, MEAN + 1.0, 8, events=4 * window, warmup=0.5)
    chain.extend(type(chain.budget)(events=2 * window - 2))  # so the warm-up ends one event before the window
    chain.advance()
    np.testing.assert_array_equal(chain.state.memory.metric.root, old)
    chain = run_chain(process, MEAN + 1.0, 8, events=4 * window, warmup=0.5)
    root, record = chain.state.memory.metric.root, chain.finish()
    assert chain.state.memory.metric.window.adaptations[0] == 1.0 and chain.state.counts[ADAPTING] == 0

    xs, times = np.vstack([MEAN + 1.0, record.xs[:window]]), np.append(0.0, record.times[:window])
    first, second = np.zeros(3), np.zeros((3, 3))
    for node, weight in zip(*np.polynomial.legendre.leggauss(2), strict=True):
        at = xs[:-1] + 0.5 * (node + 1.0) * np.diff(xs, axis=0)
        w = 0.5 * weight * np.diff(times) / times[-1]
        first += w @ at
        second += (at * w[:, None]).T @ at
    covariance = second - np.outer(first, first)
    share = window / (window + metrics.PRIOR_EVENTS)
    if metric == "diagonal":
        expected = np.sqrt(share * np.diag(covariance) + (1.0 - share) * old**2)
        np.testing.assert_allclose(old, 1.0 / np.sqrt(np.diag(PRECISION)), rtol=1e-12)
    else:
        expected = np.linalg.cholesky(share * covariance + (1.0 - share) * old @ old.T)
        np.testing.assert_allclose(old @ old.T, np.linalg.inv(PRECISION), rtol=1e-10)
        np.testing.assert_array_equal(np.triu(chain.state.memory.metric.columns), root.T)
    np.testing.assert_allclose(root, expected, rtol=1e-8, atol=1e-10)
    # The next windows are twice as long, and none is looked at after the warm-up.
    assert chain.state.memory.metric.window.length[0] == 2.0 * window
    assert chain.state.memory.metric.window.events[0] == window
    u = chain.state.memory.metric.u
    np.testing.assert_allclose(chain.state.v, root * u if metric == "diagonal" else root @ u, rtol=1e-12)


def test_adaptive_masses_start_from_what_is_known():
    hessian = metrics.make_metric("auto", MODEL, MEAN)
    np.testing.assert_allclose(hessian.root @ hessian.root.T, np.linalg.inv(PRECISION), rtol=1e-10)
    assert not hessian.adaptive
    large = Gaussian(0.0, np.full(metrics.LARGEST + 1, 4.0))
    np.testing.assert_allclose(metrics.make_metric("diagonal", large, np.zeros(large.dim)).root, 0.5, rtol=1e-6)


def test_the_hessian_is_that_at_the_mode_wherever_the_run_starts(monkeypatch):
    start = np.array([3.0, -3.0, 2.0])
    for x in (LOGISTIC.mode(), start):
        root = metrics.make_metric("auto", LOGISTIC, start).root
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(LOGISTIC.hessian(x)), rtol=1e-8)
        monkeypatch.setattr(type(LOGISTIC), "mode", lambda self: None)  # then that where it starts


@pytest.mark.parametrize("n", range(1, 14))
def test_products_of_any_length(n):
    """Which are added four at a time, and the rest one by one."""
    a, b = rng(n).standard_normal((2, n))
    assert dot(a, b) == pytest.approx(sum(x * y for x, y in zip(a, b, strict=True)), rel=1e-13, abs=1e-13)


# ---------------------------------------------------------------------------------------------------------------
# Refreshments


@pytest.mark.parametrize("persistence", [0.3, 0.9])
def test_partial_refreshments_keep_the_law_and_have_the_stated_correlation(persistence):
    generator = rng(3)
    scratch, drawn = np.zeros(3), generator.standard_normal((8_000, 3))
    drawn /= np.linalg.norm(drawn, axis=1)[:, None]
    for u in drawn:
        before = u.copy()
        turn_partly(u, persistence, scratch, generator)
        assert before @ u == pytest.approx(persistence, abs=1e-12)
        assert u @ u == pytest.approx(1.0, abs=1e-12)
    long = before = 3.0 * drawn[0]  # of another length, which stays
    turn_partly(long := long.copy(), persistence, scratch, generator)
    assert before @ long == pytest.approx(9.0 * persistence) and long @ long == pytest.approx(9.0)
    for j in range(3):  # Archimedes
        assert stats.kstest(drawn[:, j], "uniform", (-1.0, 2.0)).pvalue > 1e-6
    flips = 0
    for _ in range(4_000):
        u = np.ones(1)
        turn_partly(u, persistence, np.zeros(1), generator)
        flips += u[0] < 0.0
    assert flips / 4_000 == pytest.approx(0.5 * (1.0 - persistence), abs=0.05)  # six standard errors

    z = generator.standard_normal((10_000, 2))
    before = z.copy()
    for u in z:
        autoregress(u, persistence, generator)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-6
    assert np.mean(z * before) == pytest.approx(persistence, abs=0.057)  # six standard errors


def test_a_partial_refreshment_is_what_the_process_does():
    for velocities in ("sphere", "gaussian"):
        process, state = started(
            pdmp.BPS(MODEL, refresh_rate=1.0, refresh="partial", persistence=0.8, velocities=velocities)
        )
        products = []
        for seed in range(400):
            state.v[:] = rng(seed + 1_000).standard_normal(3)
            if velocities == "sphere":
                state.v[:] /= np.linalg.norm(state.v)
            before = state.v.copy()
            assert process.native.jump(state, REFRESH, 0.0, rng(seed)) == REFRESH
            products.append(before @ state.v / (1.0 if velocities == "sphere" else 3.0))
        assert np.mean(products) == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize("velocities", ["sphere", "gaussian"])
@pytest.mark.parametrize("options", [{}, {"refresh": "full", "persistence": 0.8}], ids=["default", "full"])
def test_a_full_refreshment_forgets_the_velocity(options, velocities):
    after = []
    for before in ([1.0, 0.0, 0.0], [-0.3, 0.9, math.sqrt(0.1)]):
        process, state = started(pdmp.BPS(MODEL, refresh_rate=1.0, velocities=velocities, **options))
        state.v[:] = before
        process.native.jump(state, REFRESH, 0.0, rng(2))
        after.append(state.v)
    np.testing.assert_array_equal(*after)


# ---------------------------------------------------------------------------------------------------------------
# Exact inversion


@plain_only
@pytest.mark.parametrize("metric", [None, METRIC])
def test_the_gradient_is_carried_along_and_renewed(metric):
    rows = rng(6).standard_normal((25, 3))
    linear = LinearGaussian(rows, rows @ np.ones(3) + rng(7).standard_normal(25))
    for model, terms in ((MODEL, 1), (linear, 25)):
        events = 2 * (CARRIED + 1) + 5
        process = pdmp.BPS(model, metric=metric).resolve(MEAN)
        chain = run_chain(process, MEAN, 12, events=events)
        memory = chain.state.memory
        assert chain.state.counts[DATA] == 3 * terms  # the first look, and one after every 257 events
        carried = memory.gradient + (chain.state.moved[0] - memory.at[0]) * memory.hessian_product
        np.testing.assert_allclose(carried, model.gradient(chain.state.x), rtol=1e-9, atol=1e-10)
        out = np.zeros(3)
        v = rng(8).standard_normal(3)
        model.native.hessian_product(v, out)
        np.testing.assert_allclose(out, model.hessian() @ v, rtol=1e-12)


def test_sparse_and_full_products_agree():
    from scipy import sparse

    d = 12
    matrix = sparse.diags([-np.ones(d - 1), np.full(d, 2.1), -np.ones(d - 1)], [-1, 0, 1])
    v, one, other = rng(9).standard_normal(d), np.zeros(d), np.zeros(d)
    Gaussian(0.0, matrix).native.hessian_product(v, one)
    full = Gaussian(0.0, matrix.toarray() + 1e-3)
    assert full.full.shape == (d, d)
    full.native.hessian_product(v, other)
    np.testing.assert_allclose(one, matrix @ v, rtol=1e-13)
    np.testing.assert_allclose(other, (matrix.toarray() + 1e-3) @ v, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Generalised BPS and forward event chain


def bounced(process, u, a, seed):
    u = np.array(u, float)
    process.native.bounce(u, np.array(a, float), np.zeros((2, len(u))), rng(seed))
    return u


def orthogonal_part(u, a):
    return u - (u @ a) / (a @ a) * a


@pytest.mark.parametrize("velocities", ["sphere", "gaussian"])
def test_generalised_bounces_flip_one_component_and_draw_the_others(velocities):
    process = pdmp.GeneralisedBPS(MODEL, velocities=velocities)
    assert process.refresh_rate == 0.0
    a = np.array([1.0, -2.0, 0.5])
    u = np.array([0.9, -0.1, 0.3])
    u /= np.linalg.norm(u)
    after = np.array([bounced(process, u, a, seed) for seed in range(3_000)])
    np.testing.assert_allclose(after @ a, -(u @ a), rtol=1e-10)
    rest = np.array([orthogonal_part(w, a) for w in after])
    first, second = np.array([2.0, 1.0, 0.0]) / math.sqrt(5.0), np.cross(a, [2.0, 1.0, 0.0])
    angles = np.arctan2(rest @ second / np.linalg.norm(second), rest @ first)
    assert stats.kstest(angles, "uniform", (-math.pi, 2.0 * math.pi)).pvalue > 1e-6
    squares = np.sum(rest**2, axis=1)
    if velocities == "sphere":
        np.testing.assert_allclose(squares, 1.0 - (u @ a) ** 2 / (a @ a), rtol=1e-9)
    else:
        assert stats.kstest(squares, "chi2", (2,)).pvalue > 1e-6


@pytest.mark.parametrize("velocities", ["sphere", "gaussian"])
@pytest.mark.parametrize("orthogonal", ["keep", "switch", "rotate", "refresh"])
def test_forward_events_draw_the_parallel_component_from_its_law(orthogonal, velocities):
    d = 5
    model = Gaussian(0.0, np.arange(1.0, d + 1.0))
    process = pdmp.ForwardEventChain(model, orthogonal=orthogonal, probability=1.0, velocities=velocities)
    a, u = rng(1).standard_normal((2, d))
    if velocities == "sphere":
        u /= np.linalg.norm(u)
    after = np.array([bounced(process, u, a, seed) for seed in range(3_000)])
    r = -(after @ a) / np.linalg.norm(a)
    if velocities == "sphere":  # r has the density (d - 1) r (1 - r²)^((d - 3) / 2)
        np.testing.assert_allclose(np.sum(after**2, axis=1), 1.0, rtol=1e-12)
        assert stats.kstest(r, lambda q: 1.0 - (1.0 - q**2) ** ((d - 1) / 2)).pvalue > 1e-6
    else:
        assert stats.kstest(r, "rayleigh").pvalue > 1e-6
    before, rest = orthogonal_part(u, a), np.array([orthogonal_part(w, a) for w in after])
    lengths = np.linalg.norm(rest, axis=1)
    if velocities == "sphere":
        np.testing.assert_allclose(lengths, np.sqrt(1.0 - r**2), atol=1e-9)
    elif orthogonal == "refresh":
        assert stats.kstest(lengths**2, "chi2", (d - 1,)).pvalue > 1e-6
    else:
        np.testing.assert_allclose(lengths, np.linalg.norm(before), rtol=1e-9)
    cosines = rest @ before / lengths / np.linalg.norm(before)
    if orthogonal == "keep":
        np.testing.assert_allclose(cosines, 1.0, atol=1e-9)
    elif orthogonal == "refresh":  # in a hyperplane of four dimensions
        assert stats.kstest(cosines, lambda c: special.betainc(1.5, 1.5, 0.5 * (1.0 + c))).pvalue > 1e-6
    else:
        assert np.all(cosines >= 0.0) and np.std(cosines) > 0.05
        free = pdmp.ForwardEventChain(model, orthogonal, 1.0, positive=False, velocities=velocities)
        signs = [orthogonal_part(bounced(free, u, a, seed), a) @ before < 0.0 for seed in range(300)]
        assert 0 < sum(signs) < 300


@pytest.mark.parametrize("orthogonal", ["switch", "rotate", "refresh"])
def test_turns_of_the_orthogonal_part_keep_its_uniform_law(orthogonal):
    """In the hyperplane of a there are three dimensions left: each coordinate of a unit vector is uniform there."""
    d, generator = 4, rng(11)
    model = Gaussian(0.0, np.arange(1.0, d + 1.0))
    process = pdmp.ForwardEventChain(model, orthogonal, 1.0, angle=0.7 if orthogonal == "rotate" else None)
    a = np.array([0.0, 0.0, 0.0, 2.0])
    drawn = generator.standard_normal((6_000, d))
    drawn[:, 3] = 0.0
    drawn /= np.linalg.norm(drawn, axis=1)[:, None]
    for u in drawn:
        process.native.turn(u, a, np.zeros(d), np.zeros(d), generator)
    np.testing.assert_allclose(drawn[:, 3], 0.0, atol=1e-12)
    drawn /= np.linalg.norm(drawn, axis=1)[:, None]
    for j in range(3):
        assert stats.kstest(drawn[:, j], "uniform", (-1.0, 2.0)).pvalue > 1e-6


def test_a_rotation_turns_by_its_angle_in_one_plane():
    process = pdmp.ForwardEventChain(MODEL, "rotate", 1.0, angle=0.7)  # in three dimensions the plane is a's
    a, u = np.array([0.0, 0.0, 2.0]), np.array([0.6, 0.8, 0.0])
    for seed in range(10):
        w = u.copy()
        process.native.turn(w, a, np.zeros(3), np.zeros(3), rng(seed))
        assert w @ u == pytest.approx(math.cos(0.7), rel=1e-12)
    np.testing.assert_allclose(np.abs(across_of(u, a) - u), 0.0, atol=1e-15)


def across_of(v, a):
    out = v.copy()
    across(out, a)
    return out


def test_the_orthogonal_part_turns_with_the_stated_probability():
    process = pdmp.ForwardEventChain(MODEL, "refresh", 0.3)
    a, u = np.array([1.0, -2.0, 0.5]), np.array([0.0, 0.6, 0.8])
    before = orthogonal_part(u, a)
    turned = 0
    for seed in range(2_000):
        rest = orthogonal_part(bounced(process, u, a, seed), a)
        turned += rest @ before < (1.0 - 1e-9) * np.linalg.norm(rest) * np.linalg.norm(before)
    assert turned / 2_000 == pytest.approx(0.3, abs=0.06)


@pytest.mark.parametrize("d", [1, 2])
def test_few_dimensions(d):
    model = Gaussian(0.0, np.arange(1.0, d + 1.0))
    for process in (
        pdmp.GeneralisedBPS(model),
        pdmp.GeneralisedBPS(model, velocities="sphere", refresh_rate=0.1),
        pdmp.ForwardEventChain(model, "refresh", 0.5),
        pdmp.ForwardEventChain(model, "refresh", 0.5, velocities="gaussian"),
        pdmp.DirectionalBPS(model),
    ):
        process = process.resolve(np.zeros(d))
        record = run_chain(process, np.full(d, 0.5), 4, events=60).finish()
        assert np.all(np.isfinite(record.xs))
        if process.gaussian == 0:
            u = np.array([process.metric.inverse(v) for v in record.vs])
            np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1.0, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Derivatives along rays


def ray_models():
    rows = rng(6).standard_normal((25, 3))
    linear = LinearGaussian(rows, rows @ np.ones(3))
    return {"gaussian": MODEL, "linear": linear, "logistic": LOGISTIC}


@pytest.mark.parametrize("name", ["gaussian", "linear", "logistic"])
def test_derivatives_along_a_ray_and_their_upkeep(name):
    """At each of many turns: the slopes are v·∇U and v·Hv, and the kept gradient is that of the model."""
    model = ray_models()[name]
    packed = model.rearranged(np.arange(model.n_data)) or model
    kernel, ray, generator = packed.native, np.full(packed.ray_room(), 7.0), rng(13)  # what the last ray has left there
    x, v = generator.standard_normal((2, 3))
    kernel.ray_begin(x, v, ray)
    for turn in range(30):
        for s in np.sort(generator.random(2)):
            at = x + s * v
            first, second = kernel.ray_derivatives(s, ray)
            assert first == pytest.approx(v @ model.gradient(at), rel=1e-9, abs=1e-10)
            assert second == pytest.approx(v @ model.hessian(at) @ v, rel=1e-9)
        e = 1e-5
        slope = (v @ model.gradient(at + e * v) - v @ model.gradient(at - e * v)) / (2.0 * e)
        assert second == pytest.approx(slope, rel=1e-5)
        if turn % 3:  # a bounce; else a refreshment, somewhere else than the last look
            out = np.full(3, 7.0)
            kernel.ray_gradient(at, s, ray, out)
            np.testing.assert_allclose(out, model.gradient(at), rtol=1e-9, atol=1e-10)
        else:
            s += 0.1
        x, v = x + s * v, generator.standard_normal(3)
        kernel.ray_turn(x, s, v, ray)
        first, second = kernel.ray_derivatives(0.0, ray)
        assert first == pytest.approx(v @ model.gradient(x), rel=1e-9, abs=1e-10)
        assert second == pytest.approx(v @ model.hessian(x) @ v, rel=1e-9)
        out = np.full(3, 7.0)
        kernel.ray_gradient(x + 0.4 * v, 0.4, ray, out)  # where no derivative has been taken
        np.testing.assert_allclose(out, model.gradient(x + 0.4 * v), rtol=1e-9, atol=1e-10)


@helper
def worst_excess(model, xs, vs, ts, ray, out):
    """Largest U'(s + τ) - U'(s) - b τ over random states, horizons and τ; U' and U'' by the model itself."""
    worst = -np.inf
    for n in range(xs.shape[0]):
        model.ray_begin(xs[n], vs[n], ray)
        s, h, tau = ts[n, 0], ts[n, 1], ts[n, 1] * ts[n, 2]
        first, _ = model.ray_derivatives(s, ray)
        b, c = model.ray_bound(s, h, ray), model.ray_bound(s, np.inf, ray)
        later, _ = model.ray_derivatives(s + tau, ray)
        scale = 1.0 + abs(first) + abs(later)
        worst = max(worst, (later - first - b * tau) / scale, (later - first - c * tau) / scale)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "logistic"])
def test_bounds_along_rays_hold_everywhere(name):
    model = ray_models()[name]
    model = model.rearranged(np.arange(model.n_data)) or model
    n, generator = (1_500 if config.DISABLE_JIT else 100_000), rng(14)
    xs = generator.standard_normal((n, 3)) * 3.0 ** generator.uniform(-3, 2, (n, 1))
    vs = generator.standard_normal((n, 3)) * 3.0 ** generator.uniform(-3, 2, (n, 1))
    ts = np.column_stack([generator.exponential(size=n), generator.exponential(size=n), generator.random(n)])
    assert worst_excess(model.native, xs, vs, ts, np.zeros(model.ray_room()), np.zeros(3)) < 1e-12


def test_the_bound_of_logistic_regression_is_tight():
    """Beyond U'' it is of second order in the horizon, and never above the bound for all x."""
    model = LOGISTIC.rearranged(np.arange(LOGISTIC.n_data))
    ray, x, v = np.zeros(model.ray_room()), 0.3 * rng(15).standard_normal(3), rng(16).standard_normal(3)
    model.native.ray_begin(x, v, ray)
    _, second = model.native.ray_derivatives(0.0, ray)
    most = model.native.ray_bound(0.0, np.inf, ray)
    assert most == pytest.approx(LOGISTIC.native.curvature_bound(v), rel=1e-12)
    e = 1e-4
    third = (v @ (LOGISTIC.hessian(x + e * v) - LOGISTIC.hessian(x - e * v)) @ v) / (2.0 * e)
    for h in (1e-3, 1e-2):
        expected = second + max(0.0, 0.5 * third * h)
        assert model.native.ray_bound(0.0, h, ray) == pytest.approx(expected, abs=0.2 * h * h * np.sum(v**4) * 70)
        assert model.native.ray_bound(0.0, h, ray) >= expected - 1e-9
    assert model.native.ray_bound(0.0, 1e9, ray) == pytest.approx(most, rel=1e-12)


def test_rays_of_rows_count_all_of_them():
    """Once for a ray's beginning, once for each turn and for each look at its derivatives."""
    X = rng().standard_normal((7, 2))
    process, state = started(pdmp.DirectionalBPS(pdmp.models.LogisticRegression(X, X[:, 0] > 0.0)), [0.1, 0.2])
    kernel, memory, counts = process.rays.native, state.memory, state.counts
    x, v = np.array([0.1, 0.2]), np.array([0.6, 0.8])
    for call in (
        lambda: kernel.begin(memory.provider, x, v, memory.ray, rng(), counts),
        lambda: kernel.derivatives(memory.provider, 0.1, memory.ray, rng(), counts),
        lambda: kernel.turn(memory.provider, x, 0.1, v, memory.ray, rng(), counts),
    ):
        before = counts[DATA]
        call()
        assert counts[DATA] == before + 7


def test_models_that_know_nothing_of_rays():
    """Derivatives by differences of gradients, and an estimate of the third one that follows and doubles."""
    process, state = started(pdmp.DirectionalBPS(Quartic(), metric=None), [0.4, 0.3])
    assert isinstance(process.rays, GradientRays) and not process.exact_bounds
    kernel, ray, counts = process.rays.native, state.memory.ray, state.counts
    x, v = np.array([0.4, 0.3]), np.array([0.6, 0.8])
    kernel.begin(state.memory.provider, x, v, ray, rng(), counts)

    def truth(s):
        at = x + s * v
        return v @ (at**3 + at), v**2 @ (3.0 * at**2 + 1.0), v**3 @ (6.0 * at)

    for s in (0.0, 0.5, 1.0):
        first, second = kernel.derivatives(state.memory.provider, s, ray, rng(), counts)
        assert first == pytest.approx(truth(s)[0], rel=1e-10)
        assert second == pytest.approx(truth(s)[1], rel=1e-3)
    estimate = (truth(1.0)[1] - truth(0.5)[1]) / 0.5
    assert (kernel.bound(1.0, 0.2, ray, v) - second) / (0.5 * 0.2) == pytest.approx(3.0 * estimate, rel=1e-2)
    before = kernel.bound(1.0, 0.2, ray, v) - second
    counts[VIOLATIONS] += 1
    kernel.derivatives(state.memory.provider, 1.0, ray, rng(), counts)
    assert kernel.bound(1.0, 0.2, ray, v) - second == pytest.approx(2.0 * before, rel=1e-3)


def test_where_derivatives_come_from():
    assert isinstance(pdmp.DirectionalBPS(LOGISTIC).rays, ModelRays)
    assert pdmp.DirectionalBPS(LOGISTIC).exact_bounds

    class Bounded(Quartic):
        @pdmp.compiled
        def curvature_bound(self, v):
            return 100.0

    bounded = pdmp.DirectionalBPS(Bounded(), metric=None)
    assert isinstance(bounded.rays, BoundedRays) and bounded.exact_bounds
    process, state = started(bounded, [0.4, 0.3])
    time, bound = process.native.clock(state, BOUNCE, 0.0, rng(3))
    first = state.v @ Quartic().gradient([0.4, 0.3])
    assert bound == pytest.approx(first + 100.0 * time, rel=1e-9)


@pytest.mark.parametrize("model", [MODEL, LOGISTIC])
def test_a_proposal_lies_under_its_bound_and_horizons_come_first(model):
    """It is where U' + b τ has integrated to the exponential; and the rate there is below the bound."""
    process = pdmp.DirectionalBPS(model, refresh_rate=1.0).resolve(MEAN)
    arrivals = horizons = 0
    for seed in range(60):
        state = process.begin(MEAN + 0.3 * rng(seed).standard_normal(3), rng(seed))
        time, bound = process.native.clock(state, BOUNCE, 0.0, rng(seed + 500))
        e = rng(seed + 500).standard_exponential()
        first = state.v @ model.gradient(state.x)
        if bound == HORIZON:
            horizons += 1
            continue
        arrivals += 1
        slope = (bound - first) / time
        start = max(0.0, -first / slope)
        area = 0.5 * (max(first, 0.0) + bound) * (time - start)
        assert area == pytest.approx(e, rel=1e-9)
        at = state.x + time * state.v
        assert process.native.rate(state, BOUNCE, time, rng()) == pytest.approx(
            max(0.0, state.v @ model.gradient(at)), rel=1e-9
        )
        assert slope >= state.v @ model.hessian(at) @ state.v * (1.0 - 1e-9) or model is LOGISTIC
    assert arrivals > 30 and (horizons == 0) == (model is MODEL)


@pytest.mark.parametrize("derivatives", [(math.nan, 1.0), (1.0, math.nan), (-math.inf, 1.0), (1.0, math.inf)])
@plain_only
def test_a_derivative_along_the_ray_that_is_not_finite_stops_the_clock(derivatives):
    process, state = started(pdmp.DirectionalBPS(MODEL), MEAN + 0.5)
    state.memory.began[:] = state.memory.at[:] = 0.0
    state.memory.first_derivative[0], state.memory.second_derivative[0] = derivatives
    time, bound = process.native.clock(state, BOUNCE, 0.0, rng(3))
    assert math.isnan(time) and bound == HORIZON


def test_bounces_take_the_gradient_from_the_predictors():
    process = pdmp.DirectionalBPS(LOGISTIC).resolve(np.zeros(3))
    record = run_chain(process, np.zeros(3), 21, events=600).finish()  # past two fresh beginnings
    covariance = np.linalg.inv(LOGISTIC.hessian(LOGISTIC.mode()))
    bounces = 0
    for k in np.flatnonzero(record.kinds[1:] == BOUNCE) + 1:
        v, g = record.vs[k - 1], LOGISTIC.gradient(record.xs[k])
        assert v @ g > 0.0
        np.testing.assert_allclose(record.vs[k], v - 2.0 * (v @ g) / (g @ covariance @ g) * covariance @ g, atol=1e-8)
        bounces += 1
    assert bounces > 300


# ---------------------------------------------------------------------------------------------------------------
# Bad input

INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
BAD = {
    "refresh": (lambda: pdmp.BPS(MODEL, refresh="half"), "`refresh` must be .*half"),
    "velocities": (lambda: pdmp.BPS(MODEL, velocities="cauchy"), "`velocities` must be .*cauchy"),
    "persistence": (lambda: pdmp.BPS(MODEL, persistence=1.0), r"`persistence` must be a number in \[0, 1\)"),
    "metric, name": (lambda: pdmp.BPS(MODEL, metric="unit"), "`metric` of pdmp.BPS must be None.*unit"),
    "metric, shape": (
        lambda: pdmp.BPS(MODEL, metric=np.ones(2)),
        r"`metric` must be a number or have shape \(3,\) or \(3, 3\), got \(2,\)",
    ),
    "metric, nan": (lambda: pdmp.BPS(MODEL, metric=[1.0, np.nan, 1.0]), "`metric` must be finite"),
    "metric, zero": (lambda: pdmp.BPS(MODEL, metric=[1.0, 0.0, 1.0]), "`metric` must be positive definite; entry 1"),
    "metric, indefinite": (
        lambda: pdmp.BPS(MODEL, metric=INDEFINITE),
        "`metric` must be positive definite; its smallest",
    ),
    "metric, skew": (lambda: pdmp.BPS(MODEL, metric=np.triu(METRIC)), "`metric` must be symmetric"),
    "inversion": (lambda: pdmp.BPS(LOGISTIC, thinning="inversion"), "`hessian_product`"),
    "orthogonal": (lambda: pdmp.ForwardEventChain(MODEL, "swap"), "`orthogonal` must be one of.*swap"),
    "plane": (lambda: pdmp.ForwardEventChain(Gaussian(0.0, np.ones(2))), "3 dimensions or more; the target has 2"),
    "probability": (lambda: pdmp.ForwardEventChain(MODEL, probability=1.5), "`probability` must be a number"),
    "angle": (lambda: pdmp.ForwardEventChain(MODEL, "rotate", angle=np.inf), "`angle` must be a finite number"),
    "directional metric": (lambda: pdmp.DirectionalBPS(MODEL, metric=INDEFINITE), "positive definite"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        make()


class Trough(Quartic):
    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] ** 2

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0]


def test_a_hessian_that_is_no_mass():
    with pytest.raises(ValueError, match='`metric="auto"` needs a positive definite Hessian'):
        pdmp.DirectionalBPS(Trough()).resolve(np.zeros(2))


def test_nothing_is_said_of_isotropy_where_no_mode_is_found(monkeypatch):
    process = pdmp.BPS(ISOTROPIC, refresh_rate=0.0)
    monkeypatch.setattr(Gaussian, "mode", lambda model: None)
    process.resolve(MEAN)  # without a warning, which would be an error here


def test_a_process_without_refreshment_on_an_isotropic_target_warns():
    # The mode of a function is not looked for: the search might leave where it is defined.
    defined_inside = pdmp.models.from_function(lambda x: (0.5 * x @ x, x), dim=2)
    for process in (
        pdmp.BPS(ISOTROPIC, refresh_rate=0.0),
        pdmp.BPS(MODEL, refresh_rate=0.0, metric=PRECISION),
        pdmp.DirectionalBPS(MODEL, refresh_rate=0.0),
        pdmp.GeneralisedBPS(ISOTROPIC, velocities="sphere"),
        pdmp.ForwardEventChain(ISOTROPIC, "keep"),
    ):
        with pytest.warns(UserWarning, match="reducible on an isotropic target"):
            process.resolve(MEAN)
    for process in (  # no warning, which would be an error here
        pdmp.BPS(MODEL, refresh_rate=0.0),
        pdmp.BPS(ISOTROPIC, refresh_rate=0.1),
        pdmp.BPS(ISOTROPIC, refresh_rate=0.0, metric=[1.0, 2.0, 3.0]),
        pdmp.BPS(Gaussian(0.0, np.ones(1)), refresh_rate=0.0),
        pdmp.BPS(LOGISTIC, refresh_rate=0.0),
        pdmp.GeneralisedBPS(ISOTROPIC),
        pdmp.ForwardEventChain(ISOTROPIC),
        pdmp.BPS(defined_inside, refresh_rate=0.0),
    ):
        process.resolve(np.zeros(process.dim))


def test_the_summary_reminds_of_missing_refreshments_only_where_they_are_not_the_default():
    for process, said in (
        (pdmp.BPS(MODEL, refresh_rate=0.0), True),
        (pdmp.BPS(MODEL, refresh_rate=0.1), False),
        (pdmp.GeneralisedBPS(MODEL), False),
        (pdmp.ForwardEventChain(MODEL), False),
    ):
        assert bool(process.report.reminders(process)) == said
