"""Boundaries: what a wall does to position and velocity, when it is hit, what is refused; identities, to rounding."""

import math
import queue

import numpy as np
import pytest
from numba.core import config
from scipy import sparse, stats

import pdmp
from pdmp.flow import Elliptic, Linear
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression, SkewNormal
from pdmp.process import EVENTS, KINDS
from pdmp.processes.extended import Extended
from tests.checks import assert_unbiased, new_chain, replicate, run_chain
from tests.targets import Quartic

pytestmark = pytest.mark.exact
plain_only = pytest.mark.skipif(not config.DISABLE_JIT, reason="in plain Python; compiled with other parts")

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MODEL = Gaussian([0.5, -0.3, 0.2], PRECISION)
SPARSE = Gaussian(0.0, sparse.diags([-np.ones(39), np.full(40, 2.5), -np.ones(39)], [-1, 0, 1]))
BOX = {"lower": [-0.5, -np.inf, -0.25], "upper": [1.0, 0.5, np.inf]}
SIDE = {"halfspaces": [([1.0, 1.0, 0.0], 1.0), ([0.0, -2.0, 1.0], 2.0)]}
START = [0.1, 0.2, 0.3]
LOGISTIC = LogisticRegression(np.random.default_rng(1).standard_normal((6, 3)), [0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
LEANING = np.array([[1.0, 0.4, 0.1], [0.4, 2.0, 0.3], [0.1, 0.3, 0.5]])

#: Process, boundaries, start.
CASES = {
    "BPS": lambda: (pdmp.BPS(MODEL, 0.5), BOX | SIDE, START),
    "ZigZag": lambda: (pdmp.ZigZag(MODEL), BOX | SIDE, START),
    "ZigZag, one clock": lambda: (pdmp.ZigZag(MODEL, thinning="grid"), BOX | SIDE, START),
    "BPS, affine": lambda: (pdmp.BPS(MODEL, 0.5, thinning="affine"), BOX, START),
    "BPS, grid": lambda: (pdmp.BPS(MODEL, 0.5, thinning="grid"), BOX | SIDE, START),
    "ZigZag, affine": lambda: (pdmp.ZigZag(MODEL, thinning="affine"), SIDE, START),
    "Boomerang": lambda: (
        pdmp.Boomerang(MODEL, [0.3, 0.0, 0.1], metric=pdmp.Metric(covariance=LEANING)),
        BOX | SIDE,
        START,
    ),
    "factorised Boomerang": lambda: (pdmp.FactorisedBoomerang(MODEL, [0.3, -0.2, 0.1]), BOX | SIDE, START),
    "factorised Boomerang, one clock": lambda: (
        pdmp.FactorisedBoomerang(MODEL, [0.3, 0.0, 0.1], thinning="grid"),
        BOX,
        START,
    ),
    "local ZigZag": lambda: (pdmp.ZigZag(SPARSE), {"lower": -0.5}, np.zeros(40)),
    "local BPS": lambda: (pdmp.LocalBPS(SPARSE, refresh_rate=0.5), {"upper": 0.5}, np.zeros(40)),
    "BPS, dense mass": lambda: (pdmp.BPS(MODEL, 0.5, metric="auto"), BOX | SIDE, START),
    "generalised BPS, diagonal mass": lambda: (pdmp.GeneralisedBPS(MODEL, metric=[1.0, 3.0, 0.5]), BOX | SIDE, START),
    "directional BPS": lambda: (pdmp.DirectionalBPS(MODEL, 0.5), BOX | SIDE, START),
    "coordinate sampler": lambda: (pdmp.CoordinateSampler(MODEL, 0.3), BOX | SIDE, START),
    "coordinate sampler, affine": lambda: (pdmp.CoordinateSampler(MODEL, 0.3, "affine"), BOX, START),
    "Lipschitz SBPS": lambda: (pdmp.LipschitzSBPS(LOGISTIC, 0.5), BOX | SIDE, START),
}
if not config.DISABLE_JIT:
    CASES = {name: CASES[name] for name in ("BPS", "ZigZag", "Boomerang")}


def bounded(name, **options):
    process, walls, x = CASES[name]()
    return pdmp.Bounded(process, **walls, **options), x


def rng(seed=0):
    return np.random.default_rng(seed)


def test_the_process_inside_is_left_as_it_was():
    process = pdmp.ZigZag(MODEL)
    flow, fields = process.flow, dict(vars(process))
    pdmp.Bounded(process, **BOX)
    assert process.flow is flow and vars(process) == fields


# ---------------------------------------------------------------------------------------------------------------
# When a level is reached


def test_a_straight_path_reaches_a_level():
    flow = Linear().native
    assert flow.first_passage(-1.0, 2.0, 3.0) == 2.0
    assert flow.first_passage(-1.0, -2.0, 3.0) == math.inf
    assert flow.first_passage(3.0, -2.0, 3.0) == math.inf  # reflected just now
    assert flow.first_passage(3.0 + 1e-15, 2.0, 3.0) == 0.0  # beyond it, by rounding
    assert flow.first_passage(0.0, 0.0, 3.0) == math.inf


def test_an_ellipse_reaches_a_level_when_it_first_rises_to_it():
    flow = Elliptic([0.0]).native
    for seed in range(300):
        y, w = rng(seed).standard_normal(2)
        level = y + rng(seed + 1_000).exponential() * (1.0, 1e-6)[seed % 2]
        s = flow.first_passage(y, w, level)
        t = np.linspace(0.0, min(s, 2.0 * np.pi), 1_000, endpoint=False)
        assert np.all(y * np.cos(t) + w * np.sin(t) <= level + 1e-9)
        if s < math.inf:
            assert y * math.cos(s) + w * math.sin(s) == pytest.approx(level, abs=1e-12)
            assert w * math.cos(s) - y * math.sin(s) >= -1e-6
        else:
            assert math.hypot(y, w) <= level


def test_an_ellipse_that_left_a_level_comes_back_after_less_than_a_turn():
    flow = Elliptic([0.0]).native
    for level, w in ((0.5, -1.0), (-0.5, -1.0), (0.5, -1e-4)):
        s = flow.first_passage(level, w, level)
        assert 0.0 < s < 2.0 * np.pi
        assert level * math.cos(s) + w * math.sin(s) == pytest.approx(level, abs=1e-12)
        # By symmetry it rises through the level as fast as it left.
        assert w * math.cos(s) - level * math.sin(s) == pytest.approx(-w, abs=1e-9)
    for y in (0.3, 0.3 + 1e-15):  # on its way out, at the level up to rounding
        assert flow.first_passage(y, 0.7, 0.3) < 1e-12
    assert flow.first_passage(-1.0, 0.0, 0.5) == pytest.approx(math.pi - math.acos(0.5), rel=1e-12)
    assert flow.first_passage(-1.0, -0.0, 0.5) == pytest.approx(math.pi - math.acos(0.5), rel=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Paths


@pytest.mark.parametrize("name", CASES)
def test_walls_are_hit_to_the_last_bit_and_never_passed(name):
    process, x = bounded(name)
    path = pdmp.sample(process, events=400, initial=x, seed=3).trajectories[0]
    assert path.events[-1] == "wall"
    kind = len(path.events) - 1
    xs, vs = path.positions, path.velocities
    assert np.all((xs >= process.lower) & (xs <= process.upper))
    walls = 1 + np.flatnonzero(path.kinds == kind)
    assert len(walls) > 40
    slack = np.full((len(xs), 0), 0.0)
    if len(process.offsets):
        normals = np.array([a for a, _ in CASES[name]()[1]["halfspaces"]])
        slack = process.offsets - xs @ normals.T
        assert slack.min() > 0.0  # by less than rounding, see below
    hit, gaps = 0, np.diff(path.times)
    arrived = vs[:-1]
    if path.kind == "elliptic":
        s = gaps[:, None]
        arrived = vs[:-1] * np.cos(s) - (xs[:-1] - path.centre) * np.sin(s)
    for k in walls:
        on = np.flatnonzero((xs[k] == process.lower) | (xs[k] == process.upper))
        near = np.flatnonzero(slack[k] < 1e-13)
        assert len(on) + len(near) >= 1
        for j in on:  # it leaves inwards
            outward = 1.0 if xs[k, j] == process.upper[j] else -1.0
            hit += outward * vs[k, j] < 0.0 < outward * arrived[k - 1, j]
        for h in near:
            hit += normals[h] @ vs[k] < 0.0 < normals[h] @ arrived[k - 1]
    assert hit >= len(walls)
    # Between events the path is continuous.
    before = xs[:-1] + vs[:-1] * gaps[:, None]
    if path.kind == "elliptic":
        y, s = xs[:-1] - path.centre, gaps[:, None]
        before = path.centre + y * np.cos(s) + vs[:-1] * np.sin(s)
    np.testing.assert_allclose(xs[1:], before, atol=1e-12)
    assert np.all(gaps > 0.0)


@plain_only
@pytest.mark.parametrize("make", [lambda m: pdmp.ZigZag(m), lambda m: pdmp.BPS(m, 1.0)], ids=["ZigZag", "BPS"])
@pytest.mark.parametrize("walls", [{"lower": 0.3}, {"halfspaces": [([-1.0], -0.3)]}], ids=["box", "half-space"])
def test_nothing_is_asked_beyond_a_wall(make, walls):
    looks = queue.SimpleQueue()  # not a list: what a method names may not change, as no run would repeat

    class Watched(Quartic):
        @pdmp.compiled
        def add_prior_gradient(self, x, out):
            looks.put(x[0])
            out[0] += x[0] ** 3

    process = pdmp.Bounded(make(Watched()), **walls)
    pdmp.sample(process, events=10, initial=[0.7], seed=2)  # widths adapt
    before = looks.qsize()
    run = pdmp.sample(process, events=400, initial=[0.7], seed=2)
    assert run.stats["events"]["wall"] > 80
    asked = [looks.get() for _ in range(looks.qsize())][before:]
    curvature_at_the_start = 8  # differences for the first width and the refresh rate, not by the path
    assert min(asked[curvature_at_the_start:]) >= 0.3
    assert run.stats["bound_violations"] == 0


@pytest.mark.parametrize(
    ("process", "options"), [(pdmp.BPS, {}), (pdmp.CoordinateSampler, {}), (pdmp.ZigZag, {"refresh_rate": 1.0})]
)
def test_a_uniform_law_takes_its_scale_from_the_walls(process, options):
    """In a triangle, with the potential 0: so do rates of refreshment and the first width of the grid."""
    flat = pdmp.models.from_function(lambda x: (0.0, 0.0 * x), 2)
    bounded = pdmp.Bounded(process(flat, **options), lower=0.0, halfspaces=[([1.0, 1.0], 1.0)])
    assert bounded.resolve(np.array([0.2, 0.3])).inner._narrow == pytest.approx(12.0 / 0.8**2)
    run = pdmp.sample(bounded, events=1_500, seed=1, initial=[0.2, 0.3])
    assert np.all(np.abs(run.mean() - 1.0 / 3.0) < 5.0 * run.mcse())
    line = pdmp.models.from_function(lambda x: (0.0, 0.0 * x), 1)
    with pytest.raises(
        ValueError, match=r"needs the curvature .* flat between the walls of pdmp.Bounded, `refresh_rate=1.0`"
    ):
        pdmp.sample(pdmp.Bounded(pdmp.ZigZag(line), lower=0.0, upper=1.0), events=10, initial=[0.2], seed=1)


def flat_but_for_the_last(x):
    gradient = np.zeros(3)
    gradient[2] = x[2]
    return 0.5 * x[2] ** 2, gradient


@pytest.mark.parametrize("thinning", ["grid", "predicted"])
@pytest.mark.parametrize("walls", [{"upper": [1.0, 1.0, np.inf]}, {"halfspaces": [([1.0, 1.0, 0.0], 1.0)]}])
def test_coordinates_that_would_turn_at_walls_only_are_refused(thinning, walls):
    """Without refreshment the path of the first two is one closed line: x[0] - x[1] never changes by itself."""

    def bounded(rate):
        model = pdmp.models.from_function(flat_but_for_the_last, 3, initial=[0.3, 0.2, 0.5])
        return pdmp.Bounded(pdmp.ZigZag(model, thinning, refresh_rate=rate), lower=[0.0, 0.0, -np.inf], **walls)

    with pytest.raises(ValueError, match=r"depend on x\[0\] and x\[1\].* as in pdmp.ZigZag\(..., refresh_rate=1"):
        pdmp.sample(bounded(0.0), events=10, initial=[0.3, 0.2, 0.5], seed=1)
    run = pdmp.sample(bounded([0.0, 1.0, 0.0]), events=40, initial=[0.3, 0.2, 0.5], seed=1)  # one that turns is enough
    assert run.stats["events"]["flip"] > 4


def test_a_process_of_one_coordinate_at_a_time_is_refused_where_it_would_stay_in_one():
    model = pdmp.models.from_function(flat_but_for_the_last, 3, initial=[0.3, 0.2, 0.5])
    process = pdmp.Bounded(pdmp.CoordinateSampler(model, refresh_rate=0.0), lower=[0.0, 0.0, -1.0], upper=1.0)
    with pytest.raises(ValueError, match=r"turns at walls only.*CoordinateSampler\(..., refresh_rate=0.5\)"):
        pdmp.sample(process, events=10, initial=[0.3, 0.2, 0.5], seed=1)
    one = pdmp.models.from_function(lambda x: (0.5 * x[0] ** 2, np.array([x[0], 0.0])), 2)  # is flat in x[1] alone
    walled = pdmp.Bounded(pdmp.CoordinateSampler(one, refresh_rate=0.0), lower=0.0, upper=1.0)
    with pytest.raises(ValueError, match=r"does not depend on x\[1\], so that there pdmp.CoordinateSampler turns at"):
        walled.resolve(np.array([0.3, 0.2]))


def test_without_walls_in_reach_the_path_is_that_of_the_process_itself():
    free = pdmp.sample(pdmp.BPS(MODEL, 0.5), events=60, initial=START, seed=4).trajectories[0]
    walled = pdmp.Bounded(pdmp.BPS(MODEL, 0.5), lower=-1e6)
    path = pdmp.sample(walled, events=60, initial=START, seed=4).trajectories[0]
    np.testing.assert_array_equal(free.positions, path.positions)


@pytest.mark.parametrize("name", ["BPS", "ZigZag"])
def test_an_absorbing_wall_ends_the_run_and_says_so(name):
    process, x = bounded(name, kind="absorb")
    for budget in ({"events": 10_000}, {"time": 1e6}):
        run = pdmp.sample(process, **budget, initial=x, chains=3, seed=6)
        assert run.stopped == "absorbed" and run.stats["stopped"] == ["absorbed"] * 3
        assert run.stats["events"]["wall"] == 3
        for path in run.trajectories:
            last = path.positions[-1]
            on = (last == process.lower) | (last == process.upper)
            inside = process.offsets - np.array([a for a, _ in SIDE["halfspaces"]]) @ last
            assert on.any() or inside.min() < 1e-13
            assert path.end == path.times[-1]
    # Told within the warm-up as well; then nothing counts.
    early = pdmp.sample(process, time=1e6, warmup=0.9, initial=x, seed=6)
    assert early.stopped == "absorbed"
    with pytest.raises(ValueError, match="no path after the warm-up"):
        early.mean()


# ---------------------------------------------------------------------------------------------------------------
# At the wall


def turned(process, v, wall):
    """The velocity after hitting wall number `wall` with v, and the position."""
    state = process.begin(np.array(START), rng())
    state.v[:] = v
    state.memory.wall[0] = wall
    process.native.jump(state, process.first, 0.0, rng())
    return state.v.copy(), state.x.copy()


def matrix_of(process, wall):
    return np.array([turned(process, e, wall)[0] for e in np.eye(3)]).T


@plain_only
@pytest.mark.parametrize("wall", [0, 1, 3, 6, 7])
@pytest.mark.parametrize(
    "make, covariance",
    [
        (lambda: pdmp.BPS(MODEL, 0.5), np.eye(3)),
        (lambda: pdmp.BPS(MODEL, 0.5, metric=np.linalg.inv(LEANING)), LEANING),
        (lambda: pdmp.BPS(MODEL, 0.5, velocities="gaussian", metric=[1.0, 0.25, 4.0]), np.diag([1.0, 4.0, 0.25])),
        (lambda: pdmp.BPS(MODEL, 0.5, metric="auto"), np.linalg.inv(PRECISION)),
        (lambda: pdmp.Boomerang(MODEL, np.zeros(3), metric=pdmp.Metric(covariance=LEANING)), LEANING),
        (
            lambda: pdmp.Boomerang(MODEL, np.zeros(3), metric=pdmp.Metric(covariance=[1.0, 4.0, 0.3])),
            np.diag([1.0, 4.0, 0.3]),
        ),
    ],
    ids=["BPS", "BPS, dense mass", "BPS, diagonal mass", "BPS, Hessian", "Boomerang", "Boomerang, diagonal"],
)
def test_reflections_balance_the_flux_and_keep_the_law_of_the_velocities(make, covariance, wall):
    """v'·n = -v·n, R² = I, and R Σ Rᵀ = Σ, so that N(0, Σ) (and where Σ = I any isotropic law) is kept."""
    process = pdmp.Bounded(make(), **BOX, **SIDE).resolve(np.array(START))
    normal = {0: [-1.0, 0, 0], 1: [1.0, 0, 0], 3: [0, 1.0, 0], 6: [1.0, 1.0, 0.0], 7: [0.0, -2.0, 1.0]}[wall]
    normal = np.array(normal)
    for seed in range(10):
        v = rng(seed).standard_normal(3)
        v *= np.sign(normal @ v)  # it goes out
        w, x = turned(process, v, wall)
        assert normal @ w == pytest.approx(-(normal @ v), rel=1e-12)
        # The part of v along Σn is reversed, and nothing else changes.
        g = covariance @ normal
        np.testing.assert_allclose(w, v - 2.0 * (v @ normal) / (normal @ g) * g, rtol=1e-11, atol=1e-13)
        offset = {0: 0.5, 1: 1.0, 3: 0.5, 6: 1.0, 7: 2.0}[wall]
        assert normal @ x == pytest.approx(offset, abs=1e-13)
    if wall >= 6:  # a box takes the outward sign for granted
        R = matrix_of(process, wall)
        np.testing.assert_allclose(R @ R, np.eye(3), atol=1e-12)
        np.testing.assert_allclose(R @ covariance @ R.T, covariance, atol=1e-12)


@plain_only
@pytest.mark.parametrize("wall, flipped", [(0, [0]), (3, [1]), (6, [0, 1]), (7, [1, 2])])
def test_zigzag_flips_what_the_normal_names(wall, flipped):
    process = pdmp.Bounded(pdmp.ZigZag(MODEL, thinning="affine"), **BOX, **SIDE)
    normal = np.array({0: [-1.0, 0, 0], 3: [0, 1.0, 0], 6: [1.0, 1.0, 0.0], 7: [0.0, -2.0, 1.0]}[wall])
    for v in np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T:
        if normal @ v <= 0.0:
            continue
        w, _ = turned(process, v, wall)
        assert normal @ w == -(normal @ v)
        expected = v.copy()
        expected[flipped] *= -1.0
        np.testing.assert_array_equal(w, expected)


@plain_only
@pytest.mark.parametrize("metric", [None, np.linalg.inv(LEANING), [1.0, 0.25, 4.0]], ids=["none", "dense", "diagonal"])
@pytest.mark.parametrize("make", [pdmp.BPS, pdmp.DirectionalBPS])
def test_what_was_computed_from_the_velocity_turns_with_it(make, metric):
    """The velocity in the metric's own coordinates, of unit length, and the ray."""
    process = pdmp.Bounded(make(MODEL, 0.5, metric=metric), **BOX, **SIDE)
    for chain in after_each_wall(process, 20):
        memory, v = chain.state.memory.inner, chain.state.v
        if metric is not None:
            inner = chain.process.inner
            np.testing.assert_allclose(inner.metric.transform(memory.metric.u), v, rtol=1e-12)
            assert np.linalg.norm(memory.metric.u) == pytest.approx(1.0, rel=1e-11)
        if make is pdmp.DirectionalBPS:
            x, now = chain.state.x, float(chain.state.now[0])
            kernel, state = chain.process.inner.native, chain.process.native.inside(chain.state)
            kernel.clock(state, 0, now, rng())
            assert kernel.rate(state, 0, now, rng()) == pytest.approx(max(v @ MODEL.gradient(x), 0.0), abs=1e-9)


def after_each_wall(process, n):
    """The chain just after each of its first n walls."""
    chain, seen = new_chain(process, START, 9, store="moments", events=1), 0
    while seen < n:
        before = chain.state.counts[KINDS + process.wall_kind]
        chain.extend(type(chain.budget)(events=int(chain.state.counts[EVENTS]) + 1))
        chain.advance()
        assert chain.failure is None
        if chain.state.counts[KINDS + process.wall_kind] > before:
            seen += 1
            yield chain


@pytest.mark.slow
@plain_only
@pytest.mark.parametrize(
    "make",
    [
        lambda m: pdmp.BPS(m, 0.5, metric=[[2.0, 0.7], [0.7, 1.0]]),
        lambda m: pdmp.DirectionalBPS(m, 0.5),
        lambda m: pdmp.CoordinateSampler(m, 0.3),
    ],
    ids=["BPS with a mass", "directional BPS", "coordinate sampler"],
)
def test_a_truncated_pair(make):
    """x > 0 and x + y < 1 of a standard normal pair, by quadrature; the standard deviations are 0.5 and 1."""
    process = pdmp.Bounded(
        make(Gaussian([0.0, 0.0], np.eye(2))), lower=[0.0, -np.inf], halfspaces=([[1.0, 1.0]], [1.0])
    )
    x = np.linspace(0.0, 8.0, 4_001)
    mass = stats.norm.pdf(x) * stats.norm.cdf(1.0 - x)
    truth = np.array([mass @ x, -stats.norm.pdf(x) @ stats.norm.pdf(1.0 - x)]) / mass.sum()
    found = replicate(process, [0.3, 0.2], 12, seed=11, events=2_500).mean
    assert_unbiased(found, truth, resolution=0.2)


# ---------------------------------------------------------------------------------------------------------------
# Which clocks an event concerns


def row(process, i):
    return process.order[process.start[i] : process.start[i + 1]].tolist()


def test_an_event_of_a_local_process_concerns_its_neighbours_alone():
    d = 40
    process = pdmp.Bounded(pdmp.ZigZag(SPARSE), lower=np.where(np.arange(d) % 2, -1.0, -np.inf))
    assert process.local and process.first == d and process.own == d // 2
    assert row(process, 7) == [d + 3, 6, 7, 8]  # the wall of coordinate 7 first
    assert row(process, 8) == [7, 8, 9]  # it has none
    assert row(process, d + 3) == [d + 3, 6, 7, 8]
    assert np.diff(process.start).max() <= 4
    bps = pdmp.Bounded(pdmp.LocalBPS(SPARSE), upper=1.0)
    assert np.diff(bps.start).max() <= np.diff(pdmp.LocalBPS(SPARSE).start).max() + 2
    side = np.zeros((1, d))
    side[0, [4, 9]] = 1.0
    process = pdmp.Bounded(pdmp.ZigZag(SPARSE), halfspaces=(sparse.csr_array(side), [1.0]))
    assert row(process, d) == [d, 3, 4, 5, 8, 9, 10]
    assert row(process, 4) == [d, 3, 4, 5] and row(process, 5) == [4, 5, 6]


def test_a_global_process_has_one_clock_for_all_walls():
    process = pdmp.Bounded(pdmp.BPS(MODEL), **BOX, **SIDE)
    assert (process.clocks, process.own) == (3, 1)
    assert row(process, 0) == [2, 0] and row(process, 1) == [2, 0, 1] and row(process, 2) == [2, 0, 1]
    assert isinstance(process, Extended)


@plain_only
def test_one_clock_for_all_walls_turns_the_coordinate_that_is_at_one():
    """A local process, whose events change one coordinate each: the walls are those of the last."""
    process = pdmp.Bounded(pdmp.FactorisedBoomerang(MODEL, thinning="grid"), upper=[np.inf, np.inf, 0.5])
    assert process.local and process.one_clock
    path = pdmp.sample(process, events=100, initial=START, seed=1).trajectories[0]
    last = path.positions[:, 2]
    assert np.sum(last == 0.5) > 5 and last.max() == 0.5
    assert path.at(np.linspace(0.0, path.end, 1_000))[:, 2].max() <= 0.5


@plain_only
def test_events_of_a_local_process_touch_a_bounded_number_of_coordinates():
    process, x = bounded("local ZigZag")
    chain = run_chain(process, x, 5, events=300, store="skeleton")
    assert len(chain.finish().times) == int(chain.state.counts[EVENTS])  # one row each


# ---------------------------------------------------------------------------------------------------------------
# Starts and bad input


def test_by_default_it_starts_at_the_point_of_the_box_closest_to_the_mode():
    process = pdmp.Bounded(pdmp.ZigZag(MODEL), lower=[0.0, 0.0, 1.0])
    path = pdmp.sample(process, events=5, seed=1).trajectories[0]
    np.testing.assert_array_equal(path.positions[0], [0.5, 0.0, 1.0])


@pytest.mark.parametrize("process", [pdmp.ZigZag, pdmp.BPS])
def test_a_function_of_ones_own_is_not_called_outside(process):
    """Its mode is there, and it need not exist there."""
    seen = []

    def f(x):
        seen.append(x[1])
        return 0.5 * float(x @ x) + 3.0 * x[1], x + [0.0, 3.0]

    model = pdmp.models.from_function(f, 2, initial=[0.0, 1.0], check_gradient=False)
    pdmp.sample(pdmp.Bounded(process(model), lower=[-np.inf, 0.5]), events=20, seed=1)
    assert min(seen) > 0.499 and len(seen) > 20  # differences at `initial` aside


@pytest.mark.parametrize(
    "walls, x, message",
    [
        ({"lower": 0.0}, [1.0, -0.5, 1.0], r"`initial` lies outside .*x\[1\] = -0.5 is below `lower`\[1\] = 0"),
        ({"upper": [1.0, 1.0, 2.0]}, [1.0, 0.5, 3.0], r"x\[2\] = 3 is above `upper`\[2\] = 2"),
        (SIDE, [1.0, 0.5, 0.0], r"a·x = 1.5 of half-space 0 is above b = 1"),
    ],
)
def test_a_start_outside_is_refused(walls, x, message):
    with pytest.raises(ValueError, match=message):
        pdmp.sample(pdmp.Bounded(pdmp.ZigZag(MODEL), **walls), time=1.0, initial=x)


def test_a_start_inside_of_half_spaces_is_found():
    """From the mode, 0, into cones and boxes around other points; where there is none the message says so."""
    rng, target = np.random.default_rng(0), pdmp.models.Gaussian(np.zeros(4), np.ones(4))
    for m in (1, 3, 60):
        inside, normals = rng.normal(0.0, 3.0, 4), rng.normal(size=(m, 4))
        walls = {"halfspaces": (normals, normals @ inside + rng.uniform(0.01, 0.3, m)), "lower": inside - 0.1}
        process = pdmp.Bounded(pdmp.BPS(target, 1.0), **walls)
        assert np.any(normals @ np.zeros(4) > walls["halfspaces"][1]) or np.any(walls["lower"] > 0.0)
        process.check_inside(process.anchor)
        pdmp.sample(process, events=3, seed=1)
    empty = pdmp.Bounded(pdmp.BPS(target, 1.0), halfspaces=([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]], [-1.0, -1.0]))
    with pytest.raises(ValueError, match="give `initial=` a point inside, if there is one"):
        pdmp.sample(empty, events=3, seed=1)


@pytest.mark.parametrize(
    "walls, message",
    [
        ({}, "no boundary: give `lower`, `upper` or `halfspaces`"),
        ({"lower": -np.inf}, "no boundary"),
        ({"lower": 1.0, "upper": [2.0, 1.0, 3.0]}, "`lower` must be below `upper`; in coordinate 1 they are 1 and 1"),
        ({"lower": [1.0, 2.0]}, r"`lower` must be a number or have shape \(3,\), got \(2,\)"),
        ({"lower": np.nan}, "`lower` must be finite, or -inf"),
        ({"lower": [0.0, np.nan, 0.0]}, "`lower` must be finite, or -inf"),
        ({"upper": -np.inf}, "`upper` must be finite, or inf"),
        ({"upper": "one"}, "`upper` must hold numbers"),
        ({"halfspaces": [([1.0, 0, 0], 1.0), ([0.0, 0.0, 0.0], 1.0)]}, "the normal of number 1 is zero"),
        ({"halfspaces": [([1.0, 0.0], 1.0)]}, r"`halfspaces` must be pairs .* here d = 3"),
        ({"halfspaces": 3.0}, "`halfspaces` must be pairs"),
        ({"halfspaces": [([1.0, np.inf, 0.0], 1.0)]}, "`halfspaces` must be finite"),
        ({"lower": 0.0, "kind": "stick"}, "`kind` must be one of 'reflect', 'absorb'"),
    ],
)
def test_walls_that_make_no_sense_are_refused(walls, message):
    with pytest.raises(ValueError, match=message):
        pdmp.Bounded(pdmp.ZigZag(MODEL), **walls)


@pytest.mark.filterwarnings("ignore:pdmp.SBPS with a gradient without noise")
def test_processes_without_a_rule_at_a_wall_are_refused():
    for process in (
        pdmp.SBPS(MODEL),
        pdmp.BPS(MODEL, metric="diagonal"),
        pdmp.DirectionalBPS(MODEL, metric="dense"),
        pdmp.DirectionalBPS(SkewNormal(2.0), metric=None),
    ):
        with pytest.raises(TypeError, match=f"knows what a wall does .*got a {type(process).__name__}"):
            pdmp.Bounded(process, lower=0.0)
    with pytest.raises(TypeError, match="`process` must be a process such as pdmp.ZigZag"):
        pdmp.Bounded(MODEL, lower=0.0)


@plain_only
def test_a_run_says_what_ran():
    model = LinearGaussian(np.eye(2), [1.0, 2.0])
    run = pdmp.sample(pdmp.Bounded(pdmp.BPS(model, 0.3), lower=0.0), events=50, seed=1)
    assert set(run.stats["events"]) == {"bounce", "refresh", "wall"}
    assert run.stats["data_terms"] > 0 and "Bounded on LinearGaussian" in repr(run)
    skew = pdmp.Bounded(pdmp.ZigZag(SkewNormal(2.0)), upper=1.0)
    assert not skew.exact_bounds and pdmp.Bounded(pdmp.ZigZag(MODEL), upper=1.0).exact_bounds
