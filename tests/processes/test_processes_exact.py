"""BPS, Zig-Zag and SBPS: reflections, rates, paths and the restart of the regression; identities, to rounding."""

import math

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.flow import Linear, Still
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, SkewNormal
from pdmp.native.velocities import reflect, refresh_on_sphere, rescale
from pdmp.process import EVENTS, HORIZON, KINDS, PROPOSALS
from pdmp.processes.sbps import BOUNCE, REFRESH
from pdmp.thinning import regression
from tests.checks import new_chain, plain_only, run_chain
from tests.targets import MEAN, MODEL, PRECISION

pytestmark = pytest.mark.exact


def rng(seed=0):
    return np.random.default_rng(seed)


def regression_data(n_data=20, d=3):
    A = rng(1).standard_normal((n_data, d))
    return LinearGaussian(A, A @ np.ones(d) + rng(2).standard_normal(n_data))


def reflected(v, a):
    out = np.array(v, dtype=float)
    reflect(out, np.array(a, dtype=float))
    return out


# ---------------------------------------------------------------------------------------------------------------
# Velocities


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_reflection(d):
    for seed in range(20):
        v, a = rng(seed).standard_normal((2, d))
        w = reflected(v, a)
        assert w @ a == pytest.approx(-(v @ a), rel=1e-12)
        assert np.linalg.norm(w) == pytest.approx(np.linalg.norm(v), rel=1e-13)
        np.testing.assert_allclose(reflected(w, a), v, rtol=1e-11, atol=1e-13)
        for c in (-1.0, 1e-6, 37.0):
            np.testing.assert_allclose(reflected(v, c * a), w, rtol=1e-11, atol=1e-13)
        across = v - (v @ a) / (a @ a) * a
        np.testing.assert_allclose(reflected(across, a), across, rtol=1e-11, atol=1e-13)
        matrix = np.array([reflected(e, a) for e in np.eye(d)])
        assert np.linalg.det(matrix) == pytest.approx(-1.0)


def test_a_vanishing_gradient_reflects_nothing():
    np.testing.assert_array_equal(reflected([0.6, 0.8], [0.0, 0.0]), [0.6, 0.8])


def test_refreshed_velocities_are_uniform_on_the_sphere():
    """In three dimensions each coordinate is then uniform on [-1, 1] (Archimedes); from a cube it is not, p = 1e-13."""
    generator, drawn = rng(3), np.zeros((10_000, 3))
    for v in drawn:
        refresh_on_sphere(v, generator)
    np.testing.assert_allclose((drawn**2).sum(axis=1), 1.0, rtol=1e-14)
    for j in range(3):
        assert stats.kstest(drawn[:, j], "uniform", (-1.0, 2.0)).pvalue > 1e-6
    correlation = drawn.T @ drawn / len(drawn)
    assert np.abs(correlation - np.eye(3) / 3.0).max() < 0.02  # seven standard errors
    v = drawn[0].copy()
    rescale(v, 2.5)
    assert np.linalg.norm(v) == pytest.approx(2.5, rel=1e-14)


# ---------------------------------------------------------------------------------------------------------------
# Integrals along a path


NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)


def gauss(f, s):
    """∫₀ˢ f, exact for polynomials of degree 5."""
    return 0.5 * s * sum(w * f(0.5 * s * (1.0 + u)) for u, w in zip(NODES, WEIGHTS, strict=True))


@pytest.mark.parametrize("flow", [Linear(), Still()])
def test_moments_along_a_segment_are_those_of_gauss_nodes(flow):
    kernel = flow.native
    for seed in range(20):
        x, v, y, w = rng(seed).standard_normal(4)
        s = rng(seed + 100).exponential()
        t, weights = 0.5 * s * (1.0 + NODES), 0.5 * s * WEIGHTS
        c, e = rng(seed + 200).standard_normal(2)
        xs, ys = kernel.position(0, x, v, t) - c + 0.0 * t, kernel.position(1, y, w, t) - e + 0.0 * t
        first, second = kernel.moments(0, x, v, c, s)
        assert first == pytest.approx(weights @ xs, rel=1e-12, abs=1e-14)
        assert second == pytest.approx(weights @ xs**2, rel=1e-12)
        assert kernel.product(0, x, v, c, 1, y, w, e, s) == pytest.approx(weights @ (xs * ys), rel=1e-11, abs=1e-13)
        assert kernel.product(0, x, v, c, 0, x, v, c, s) == pytest.approx(second, rel=1e-12)
        assert kernel.velocity(0, x, v, s) == v


PROCESSES = {
    "BPS inversion": lambda: pdmp.BPS(MODEL),
    "BPS affine": lambda: pdmp.BPS(MODEL, thinning="affine"),
    "BPS grid": lambda: pdmp.BPS(MODEL, thinning="grid"),
    "ZigZag inversion": lambda: pdmp.ZigZag(MODEL),
    "ZigZag affine": lambda: pdmp.ZigZag(MODEL, thinning="affine"),
    "ZigZag grid": lambda: pdmp.ZigZag(MODEL, thinning="grid"),
    "SBPS noisy": lambda: pdmp.SBPS(Noisy(MODEL, 0.5)),
    "SBPS batches": lambda: pdmp.SBPS(Minibatch(regression_data(), 5)),
    "SBPS preconditioned": lambda: pdmp.SBPS(Noisy(MODEL, 0.5), metric=pdmp.Metric(scales=[1.0, 2.0, 0.5])),
}


@plain_only
@pytest.mark.parametrize("name", PROCESSES)
def test_paths_are_continuous_and_their_speed_is_kept(name):
    path = pdmp.sample(PROCESSES[name](), events=200, initial=[1.0, -1.0, 0.0], seed=4).trajectories[0]
    gaps = np.diff(path.times)
    assert len(gaps) == 200 and np.all(gaps > 0.0)
    moved = path.positions[:-1] + path.velocities[:-1] * gaps[:, None]
    np.testing.assert_allclose(path.positions[1:], moved, atol=1e-12 * path.end)
    if name.startswith("ZigZag"):
        assert np.all(np.abs(path.velocities) == 1.0)
        assert np.all((path.velocities[1:] != path.velocities[:-1]).sum(axis=1) == 1)
    else:
        scale = np.array([1.0, 2.0, 0.5]) if "preconditioned" in name else 1.0
        np.testing.assert_allclose(np.linalg.norm(path.velocities / scale, axis=1), 1.0, rtol=1e-13)
        assert set(path.kinds) == {BOUNCE, REFRESH}


@pytest.mark.parametrize("name", ["BPS inversion", "ZigZag inversion"])
def test_averages_add_up_by_length_and_are_integrals_of_the_path(name):
    run = pdmp.sample(PROCESSES[name](), events=200, initial=[1.0, -1.0, 0.0], seed=4, warmup=0.1)
    path = run.trajectories[0]
    a, b = path.warmup, path.end
    c = a + 0.37 * (b - a)
    whole = ((c - a) * path.mean(a, c) + (b - c) * path.mean(c, b)) / (b - a)
    np.testing.assert_allclose(path.mean(a, b), whole, rtol=1e-11, atol=1e-13)
    knots = np.concatenate([[a], path.times[(path.times > a) & (path.times < b)], [b]])
    first = sum(gauss(lambda t, k=k: path.at(min(k + t, b)), h) for k, h in zip(knots, np.diff(knots), strict=False))
    np.testing.assert_allclose(run.mean(), first / (b - a), rtol=1e-10, atol=1e-12)
    second = sum(
        gauss(lambda t, k=k: np.outer(path.at(min(k + t, b)), path.at(min(k + t, b))), h)
        for k, h in zip(knots, np.diff(knots), strict=False)
    )
    expected = second / (b - a) - np.outer(run.mean(), run.mean())
    np.testing.assert_allclose(run.cov(), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(run.var(), np.diag(expected), rtol=1e-9)


# ---------------------------------------------------------------------------------------------------------------
# Rates, through the process's own methods


def state_at(process, x, v):
    state = process.begin(np.array(x, dtype=float), rng())
    state.v[:] = v
    return state


def rate_of(process, x, v, i=0, after_jump=False):
    """Rate of clock i at (x, v); and the velocity after its jump there."""
    state = state_at(process, x, v)
    rate = process.native.rate(state, i, 0.0, rng())
    if not after_jump:
        return rate
    process.native.jump(state, i, 0.0, rng())
    return rate, state.v.copy()


@pytest.mark.parametrize("model", [MODEL, regression_data()])
def test_bps_balances_the_flow(model):
    """λ(x, v) - λ(x, Rv) = v·∇U(x), and λ(x, -Rv) = λ(x, v)."""
    process = pdmp.BPS(model, refresh_rate=1.0)
    for seed in range(10):
        x, v = rng(seed).standard_normal((2, 3))
        v /= np.linalg.norm(v)
        rate, w = rate_of(process, x, v, after_jump=True)
        along = v @ model.gradient(x)
        assert rate == pytest.approx(max(0.0, along))
        assert rate - rate_of(process, x, w) == pytest.approx(along, rel=1e-11)
        assert rate_of(process, x, -w) == pytest.approx(rate, rel=1e-11)


def test_zigzag_balances_the_flow():
    """Σⱼ λⱼ(x, v) - λⱼ(x, Fⱼv) = v·∇U(x), and λⱼ(x, -Fⱼv) = λⱼ(x, v) for each coordinate."""
    process = pdmp.ZigZag(MODEL, thinning="affine")
    for seed in range(10):
        x, v = rng(seed).standard_normal(3), rng(seed).choice([-1.0, 1.0], 3)
        partial = MODEL.gradient(x)
        out = np.zeros(3)

        def rates(v, x=x, out=out):
            process.native.signed_rates(state_at(process, x, v), 0.0, rng(), out)
            return np.maximum(out, 0.0)

        now = rates(v)
        np.testing.assert_allclose(now, np.maximum(v * partial, 0.0), rtol=1e-12)
        for j in range(3):
            flipped = v.copy()
            flipped[j] *= -1.0
            assert now[j] - rates(flipped)[j] == pytest.approx(v[j] * partial[j], rel=1e-11)
            assert rates(-flipped)[j] == pytest.approx(now[j], rel=1e-11)
        assert rate_of(process, x, v) == pytest.approx(now.sum(), rel=1e-12)


@pytest.mark.parametrize("model", [MODEL, regression_data()])
def test_projected_gradients_are_affine_along_a_ray_with_the_stated_slope(model):
    x, v = rng(5).standard_normal((2, 3))
    v /= np.linalg.norm(v)
    process = pdmp.BPS(model, refresh_rate=1.0)
    state, out = state_at(process, x, v), np.zeros(1)
    hessian = model.hessian(x)
    process.native.rate_slope_bounds(state, out)
    assert out[0] == pytest.approx(v @ hessian @ v, rel=1e-12)
    for t in (0.0, 0.4, 3.0):
        process.native.signed_rates(state, t, rng(), out)
        assert out[0] == pytest.approx(v @ model.gradient(x) + t * (v @ hessian @ v), rel=1e-11)


def test_zigzag_knows_each_partial_derivative_and_its_slope():
    """Also when coordinates last changed at different times."""
    process = pdmp.ZigZag(MODEL)
    x, v, moved = rng(6).standard_normal(3), np.array([1.0, -1.0, -1.0]), np.array([0.0, 0.3, 0.7])
    state = state_at(process, x, v)
    state.moved[:] = moved
    here = x + v * (1.1 - moved)
    for i in range(3):
        partial, slope = process.native.affine_partial(state, i, 1.1)
        assert partial == pytest.approx(MODEL.gradient(here)[i], rel=1e-12)
        assert slope == pytest.approx((MODEL.hessian() @ v)[i], rel=1e-12)


class Draw:
    """A random stream that is known in advance."""

    def __init__(self, exponential):
        self.standard_exponential = lambda: exponential


@plain_only
@pytest.mark.parametrize("name", ["BPS inversion", "BPS affine", "BPS grid", "ZigZag inversion", "ZigZag affine"])
def test_clocks_ring_where_their_rate_has_integrated_to_the_exponential(name):
    """On a Gaussian; the superposition of Zig-Zag's clocks is the earliest of all, under equal exponentials."""
    process = PROCESSES[name]().resolve(MEAN)
    rung = 0
    for seed in range(20):
        x = rng(seed).standard_normal(3)
        v = rng(seed).choice([-1.0, 1.0], 3) if name.startswith("ZigZag") else np.array([0.6, 0.0, 0.8])
        state, e = state_at(process, x, v), 0.3
        gradient, change = PRECISION @ (x - MEAN), PRECISION @ v
        if name.startswith("BPS"):
            lines = [(v @ gradient, v @ change)]
        else:
            lines = list(zip(v * gradient, v * change, strict=True))

        def hazard(line, t):
            s = np.linspace(0.0, t, 4_001)
            return np.mean(np.maximum(line[0] + line[1] * s, 0.0)) * t

        times = [process.native.clock(state, i, 0.0, Draw(e))[0] for i in range(3 if name == "ZigZag inversion" else 1)]
        bounds = [process.native.clock(state, 0, 0.0, Draw(e))[1]]
        if name == "ZigZag inversion":
            for line, t in zip(lines, times, strict=True):
                if t < math.inf:
                    assert hazard(line, t) == pytest.approx(e, abs=1e-3)
                    rung += 1
                else:
                    assert hazard(line, 100.0) < e
        elif name == "ZigZag affine" and times[0] < math.inf:
            assert max(hazard(line, times[0]) for line in lines) == pytest.approx(e, abs=1e-3)
            total = sum(max(0.0, a + b * times[0]) for a, b in lines)
            assert bounds[0] == pytest.approx(total, rel=1e-10)
            rung += 1
        elif name == "BPS inversion" and times[0] < math.inf:
            assert hazard(lines[0], times[0]) == pytest.approx(e, abs=1e-3)
            assert bounds[0] == math.inf  # nothing to thin
            rung += 1
        elif name == "BPS affine" and times[0] < math.inf:
            assert hazard(lines[0], times[0]) == pytest.approx(e, abs=1e-3)
            assert bounds[0] == pytest.approx(lines[0][0] + lines[0][1] * times[0], rel=1e-10)
            rung += 1
        elif name == "BPS grid" and lines[0][0] > 0.0 and bounds[0] > HORIZON:  # no kink in the cell
            again = state_at(process, x, v)
            time, bound = process.native.clock(again, 0, 0.0, Draw(e))
            assert hazard(lines[0], time) == pytest.approx(e, abs=1e-3)
            assert bound == pytest.approx(lines[0][0] + lines[0][1] * time, rel=1e-9)
            rung += 1
    assert rung >= 5


def test_bounces_are_only_accepted_uphill():
    path = pdmp.sample(PROCESSES["BPS inversion"](), events=200, initial=MEAN, seed=8).trajectories[0]
    for k in np.flatnonzero(path.kinds == BOUNCE):
        gradient = MODEL.gradient(path.positions[k + 1])
        assert path.velocities[k] @ gradient > 0.0
        assert path.velocities[k + 1] @ gradient == pytest.approx(-(path.velocities[k] @ gradient), rel=1e-9)


# ---------------------------------------------------------------------------------------------------------------
# The regression of SBPS, followed from proposal to proposal


SBPS = {name: PROCESSES[name] for name in ("SBPS noisy", "SBPS batches", "SBPS preconditioned")}


def after_each(process, what, n):
    """States of one chain just after its 1st, 2nd … n-th event or proposal."""
    chain = new_chain(process, [1.0, -1.0, 0.0], 9, store="moments", **{what: 1})
    for k in range(1, n + 1):
        chain.extend(type(chain.budget)(**{what: k}))
        chain.advance()
        assert chain.failure is None
        assert chain.state.counts[EVENTS if what == "events" else PROPOSALS] == k
        yield chain


@pytest.mark.parametrize("name", SBPS)
def test_the_regression_restarts_exactly_where_a_bounce_or_a_refreshment_leaves_it(name):
    """One observation, at 0: v·∇Û of the new velocity; after a bounce that is -G, of the same batch, and negative."""
    bounces = refreshments = 0
    process = SBPS[name]()
    process.refresh_rate = 0.5
    before = 0
    for chain in after_each(process, "events", 60):
        memory, v = chain.state.memory, chain.state.v
        line = memory.line[0]
        assert line["count"] == 1.0 and line["weight_s"] == line["weight_ss"] == line["weight_sg"] == 0.0
        observed = line["weight_g"] / line["weight"]
        assert 1.0 / line["weight"] == pytest.approx(line["latest_variance"], rel=1e-14)
        assert observed == pytest.approx(v @ memory.gradient, rel=1e-9, abs=1e-11)
        np.testing.assert_allclose(v, memory.metric.root * memory.metric.u, rtol=1e-14)
        bounced = int(chain.state.counts[KINDS + BOUNCE])
        if bounced > before:
            bounces += 1
            assert observed < 0.0
        else:
            refreshments += 1
        before = bounced
    assert bounces > 10 and refreshments > 5


@pytest.mark.parametrize("name", SBPS)
def test_observations_are_placed_at_the_time_since_the_last_change_of_velocity(name):
    process = SBPS[name]()
    before, moved, checked = None, None, 0
    for chain in after_each(process, "proposals", 60):
        state, line = chain.state, chain.state.memory.line[0]
        now, s = float(state.now[0]), float(state.now[0] - state.moved[0])
        if before is not None and moved == state.moved[0] and line["count"] == before["count"] + 1.0:
            weight = line["weight"] - before["weight"]
            assert (line["weight_s"] - before["weight_s"]) / weight == pytest.approx(s, rel=1e-6)
            assert line["latest_variance"] == pytest.approx(1.0 / weight, rel=1e-6)
            checked += 1
        before, moved = line.copy(), float(state.moved[0])
        # The next proposal: its bound is λ at that time, on the same clock.
        kernel = chain.process.native
        time, bound = kernel.clock(state, BOUNCE, now, rng(11))
        if bound > HORIZON:
            k = kernel.k * math.sqrt(max(1.0, state.memory.means[0]["misfit"]))
            level = regression.bound_at(line, k, time - moved)
            assert level * (1.0 - 1e-9) <= bound <= level * 1.02 + 1e-3
    assert checked > 10


@pytest.mark.filterwarnings("ignore:pdmp.SBPS with a gradient without noise")
def test_a_preconditioned_path_is_that_of_the_transformed_target():
    """x = P y: the same random numbers give the same path."""
    scale = np.array([1.0, 2.0, 0.5])
    transformed = Gaussian(MEAN / scale, scale[:, None] * PRECISION * scale)
    options = {"refresh_rate": 0.3, "slope_mean": 1.5, "slope_sd": 1.0, "cap": 2.0}
    paths = []
    for model, metric, x in ((MODEL, pdmp.Metric(scales=scale), MEAN), (transformed, None, MEAN / scale)):
        process = pdmp.SBPS(model, metric=metric, **options)
        process.resolve = lambda x, process=process: _with_unit_curvature(process)
        record = run_chain(process, x, 12, events=60).finish()
        paths.append((record.times, record.xs))
    np.testing.assert_allclose(paths[0][0], paths[1][0], rtol=1e-9)
    np.testing.assert_allclose(paths[0][1], paths[1][1] * scale, rtol=1e-8, atol=1e-9)


def _with_unit_curvature(process):
    process._curvature = 1.0  # what the nodes of the bound are spaced by
    return process


def test_slopes_below_zero_are_replaced_on_request():
    process = pdmp.SBPS(Noisy(MODEL, 3.0), slope_mean=-2.0, slope_sd=0.1, nonnegative_slope=True, refresh_rate=0.3)
    for chain in after_each(process, "proposals", 10):
        assert chain.state.memory.line[0]["slope"] >= 0.0


def test_a_skew_target_is_never_bounced_off_downhill():
    model = SkewNormal(3.0)
    path = pdmp.sample(pdmp.ZigZag(model), events=200, initial=[0.5], seed=13).trajectories[0]
    slopes = np.array([model.gradient(x)[0] for x in path.positions[1:]])
    assert np.all(path.velocities[:-1, 0] * slopes > 0.0)


def test_a_negative_slope_is_replaced_by_the_mean_of_past_slopes():
    process = pdmp.SBPS(Noisy(MODEL, 3.0), slope_mean=1.0, slope_sd=100.0, nonnegative_slope=True).resolve(MEAN)
    state = process.begin(MEAN, rng(4))
    means, line = state.memory.means[0], state.memory.line[0]
    means["mean_slope"], means["slopes"] = 1.3, 5.0
    for s, g in ((0.0, 5.0), (1.0, 1.0)):
        regression.observe(line, s, g, 0.01)
    process.predict(state)
    assert line["slope"] == 1.3
    assert line["intercept"] == pytest.approx(3.0 - 1.3 * 0.5, rel=1e-14)  # through the centre of the observations
    assert state.memory.counts[0]["negative_slopes"] == 1.0


@pytest.mark.parametrize("make", [pdmp.BPS, lambda model: pdmp.SBPS(Noisy(model, 1.0))])
def test_the_automatic_refreshment_is_a_tenth_of_the_bounce_rate(make):
    """0.1 √(tr H / (2πd)); the bounce rate of an isotropic Gaussian with precision λ is √(λ / (2π))."""
    rate = make(MODEL).resolve(MEAN).refresh_rate
    assert rate == pytest.approx(0.1 * math.sqrt(np.trace(PRECISION) / 3.0 / (2.0 * math.pi)), rel=1e-6)


def test_predictions_of_sbps_are_calibrated():
    """Where G is affine along a ray z-scores have sd 1 (S6). Their mean is not 0, but below 0.4: what is observed at a
    bounce, and kept with its sign reversed, was accepted for being large."""
    seen = pdmp.sample(pdmp.SBPS(Noisy(MODEL, 2.0), k=5.0), events=250, seed=6, initial=MEAN, store="moments").stats
    n = seen["scores"]
    mean = seen["score_sum"] / n
    assert n > 800
    assert abs(mean) < 0.4
    assert 0.87 < math.sqrt(seen["score_squares"] / n - mean**2) < 1.13
