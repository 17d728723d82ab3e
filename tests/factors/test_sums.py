"""Local processes on posteriors of expressions: rates and bounds against differences, clocks, and a law."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import pdmp
from pdmp.factors.bounds import FactorWithin
from pdmp.factors.graph import FactorGraph
from pdmp.factors.sums import (
    SumFactors,
    SumPartials,
    graph_of_sum,
    local_graph,
    neighbours_of,
    quadratic_terms,
)
from pdmp.flow import Elliptic, Linear
from pdmp.models.priors import HalfNormal, Normal, StudentT
from pdmp.process import DATA, HORIZON
from pdmp.thinning.enclosures import Enclosures, propose_within
from tests.checks import assert_unbiased, in_ci, plain, plain_only, replicate

pytestmark = pytest.mark.exact

D = 6
COUNTS, Y = np.array([2.0, 0.0, 5.0]), np.array([0.4, -1.3])


def bent(a, b):
    return 0.3 * a * a * (2.0 + np.cos(b))


def make():
    """Quadratic terms, others, one coordinate in two functionals of a term, and four priors.

    Coordinates: x 0-2, log_s 3, t 4, u 5.
    """
    p = pdmp.Parameters(x=3, log_s=1, t=1, u=1)
    i = np.arange(2)
    rows = [
        pdmp.terms(lambda c, a, b: c * (a - 2.0 * b) ** 2 + 0.3 * a, [[0.7, 1.1]], [p.x[i], p.x[i + 1]]),
        pdmp.terms(lambda y, a: np.exp(a) - y * a, [COUNTS], [p.x[np.arange(3)] + 0.5 * p.t]),
        pdmp.terms(lambda y, m, s: s + 0.5 * (y - m) ** 2 * np.exp(-2.0 * s), [Y], [p.x[i] - 0.2, p.log_s]),
        pdmp.terms(bent, at=[p.t, 0.5 * p.t + p.x[2]]),
        pdmp.terms(lambda a: 0.4 * (a - 1.0) ** 2, at=[p.u]),
    ]
    priors = {"x": Normal(0.5, 1.2), "log_s": HalfNormal(1.0), "t": StudentT(4.0, 0.3, 0.8)}
    return pdmp.models.sum_of_terms(p, rows, priors)


MODEL = make()
GRAPH = graph_of_sum(MODEL)
MEAN, WEIGHTS = np.array([0.2, -0.3, 0.1, 0.4, 0.0, 1.0]), np.array([0.5, 2.0, 1.0, 0.7, 3.0, 0.9])


def state_of(process, seed, spread=0.6):
    """Coordinates that were last moved at times of their own, before 1."""
    rng = np.random.default_rng(seed)
    state = process.resolve(np.zeros(D)).begin(spread * rng.standard_normal(D), rng)
    state.v[:] = rng.standard_normal(D)
    state.moved[:] = rng.uniform(0.0, 1.0, D)
    return state


def path(flow, state, time):
    at = [(j, state.x[j], state.v[j], time - state.moved[j]) for j in range(D)]
    return np.array([flow.position(*a) for a in at]), np.array([flow.velocity(*a) for a in at])


def gradient_of(f, x):
    out = np.zeros(D)
    for t in GRAPH.terms[GRAPH.term_start[f] : GRAPH.term_start[f + 1]]:
        MODEL.add_factor_gradient(x, t, out)
    return out


def test_what_is_quadratic_in_one_coordinate_joins_a_quadratic_term_of_it():
    scopes = [GRAPH.scope(f).tolist() for f in range(len(GRAPH))]
    terms = [GRAPH.terms[GRAPH.term_start[f] : GRAPH.term_start[f + 1]].tolist() for f in range(len(GRAPH))]
    n = MODEL.n_data  # 2 + 3 + 2 + 1 + 1 rows; the priors of x join the first term that has the coordinate
    assert scopes == [[0, 1], [1, 2], [0, 4], [1, 4], [2, 4], [0, 3], [1, 3], [2, 4], [5], [3], [4]]
    assert terms == [[0, n, n + 1], [1, n + 2], [2], [3], [4], [5], [6], [7], [8], [n + 3], [n + 4]]
    assert SumFactors(MODEL, GRAPH).known.tolist() == [True, True] + [False] * 6 + [True, False, False]


@pytest.mark.parametrize("seed", range(4))
def test_rates_and_gradients_of_factors_are_those_of_their_terms(seed):
    process = pdmp.LocalBPS(MODEL)
    factors, state, now = process.factors.native, state_of(process, seed), 1.3
    x, v = path(Linear(), state, now)
    total = np.zeros(D)
    for f in range(len(GRAPH)):
        wanted = gradient_of(f, x)
        assert factors.along(state, f, now) == pytest.approx(v @ wanted, rel=1e-11, abs=1e-12)
        factors.gradient(state, f, now)
        scope = GRAPH.scope(f)
        np.testing.assert_allclose(state.memory.gradient[: len(scope)], wanted[scope], rtol=1e-11, atol=1e-12)
        total[scope] += state.memory.gradient[: len(scope)]
    np.testing.assert_allclose(total, MODEL.gradient(x), rtol=1e-10)


def test_a_graph_of_ones_own_may_put_priors_before_terms():
    """A factor of the prior of t, a row and the prior of log_s, in this order; the others are as they were."""
    n, of = MODEL.n_data, GRAPH.term_start
    terms = [GRAPH.terms[of[f] : of[f + 1]].tolist() for f in range(len(GRAPH))]
    scopes = [GRAPH.scope(f).tolist() for f in range(len(GRAPH))]
    kept = [f for f in range(len(GRAPH)) if terms[f] not in ([5], [n + 3], [n + 4])]
    graph = FactorGraph([[0, 3, 4], *(scopes[f] for f in kept)], D, [[n + 4, 5, n + 3], *(terms[f] for f in kept)])
    process = pdmp.LocalBPS(MODEL, graph)
    factors, state, now = process.factors.native, state_of(process, 3), 1.3
    x, v = path(Linear(), state, now)
    wanted = np.zeros(D)
    for t in (n + 4, 5, n + 3):
        MODEL.add_factor_gradient(x, t, wanted)
    factors.gradient(state, 0, now)
    np.testing.assert_allclose(state.memory.gradient[:3], wanted[[0, 3, 4]], rtol=1e-11, atol=1e-12)
    assert factors.along(state, 0, now) == pytest.approx(v @ wanted, rel=1e-11)


def slope_of(rate, t, h=1e-5):
    return (rate(t + h) - rate(t - h)) / (2.0 * h)


@pytest.mark.parametrize("reach", [1e-7, 0.1, 1.5])
def test_no_rate_of_a_factor_is_above_its_bound(reach):
    process = pdmp.LocalBPS(MODEL)
    factors, now = process.factors.native, 1.3
    for seed in range(6):
        state = state_of(process, seed)

        def rate(t, f, state=state):
            x, v = path(Linear(), state, t)
            return v @ gradient_of(f, x)

        for f in range(len(GRAPH)):
            if factors.is_affine(f):
                a, b = factors.affine(state, f, now)
                np.testing.assert_allclose([a + b * u for u in (0.0, 1.0)], [rate(now + u, f) for u in (0.0, 1.0)])
                continue
            a, b = factors.rate_within(state, f, now, reach)
            assert a == pytest.approx(rate(now, f), rel=1e-11)
            slopes = [slope_of(lambda t, f=f: rate(t, f), now + u) for u in np.linspace(0.0, reach, 7)]
            scale = 1.0 + np.abs(slopes).max()
            assert b >= max(slopes) - 1e-8 * scale
            if (
                reach < 1e-6 and f != 10
            ):  # no looser than it need be; of Student's t a bound for all coordinates is used
                assert b <= max(slopes) + 1e-5 * scale


@pytest.mark.parametrize("reach", [1e-7, 0.1, 1.4])
@pytest.mark.parametrize("kind", ["linear", "elliptic"])
def test_no_rate_of_a_coordinate_is_above_its_bound(kind, reach):
    if kind == "linear":
        process, flow = pdmp.ZigZag(MODEL, thinning="local"), Linear()
        weights = 0.0
    else:
        process = pdmp.FactorisedBoomerang(
            MODEL, mean=MEAN, metric=pdmp.Metric(covariance=1.0 / WEIGHTS), thinning="local"
        )
        flow, weights = Elliptic(MEAN), WEIGHTS
    sums, now = process.thinning.sums.native, 1.3
    for seed in range(6):
        state = state_of(process, seed)

        def rate(t, i, state=state):
            x, v = path(flow, state, t)
            return v[i] * (MODEL.gradient(x) - weights * (x - MEAN))[i]

        for i in range(D):
            assert sums.rate_of(state, i, now) == pytest.approx(rate(now, i), rel=1e-10, abs=1e-12)
            if sums.is_affine(i):
                assert kind == "linear" and i == 5
                a, b = sums.affine(state, i, now)
                np.testing.assert_allclose([a + b * u for u in (0.0, 1.0)], [rate(now + u, i) for u in (0.0, 1.0)])
                continue
            a, b = sums.rate_within(state, i, now, reach)
            assert a == pytest.approx(rate(now, i), rel=1e-10, abs=1e-12)
            slopes = [slope_of(lambda t, i=i: rate(t, i), now + u) for u in np.linspace(0.0, reach, 9)]
            scale = 1.0 + np.abs(slopes).max()
            assert b >= max(slopes) - 1e-8 * scale
            if reach < 1e-6 and i != 4:
                assert b <= max(slopes) + 1e-5 * scale


def test_terms_of_three_functionals():
    """Second derivatives are listed as a triangle: up to two functionals its rows begin as those of a square do."""
    p = pdmp.Parameters(x=4)
    i = np.arange(2)
    at = [p.x[i], p.x[i + 1], 0.5 * p.x[i + 2]]
    rows = [
        pdmp.terms(lambda y, a, b, c: y * (a - 2.0 * b + 3.0 * c) ** 2 + c * c - 0.4 * a * c, [[0.7, 1.1]], at),
        pdmp.terms(lambda a, b, c: np.exp(a - 0.5 * b) + (b - c) ** 2 * np.exp(c), at=at),
    ]
    model = pdmp.models.sum_of_terms(p, rows)
    process, rng = pdmp.ZigZag(model, thinning="local"), np.random.default_rng(4)
    assert SumFactors(model, graph_of_sum(model)).known.tolist() == [True, True, False, False]
    for _ in range(4):
        x, v = 0.6 * rng.standard_normal(4), rng.standard_normal(4)
        state, native = process.resolve(x).begin(x, rng), process.thinning.sums.native
        state.v[:] = v
        gradient, slopes = model.gradient(x), model.hessian(x) @ v
        for j in range(4):
            a, b = native.rate_within(state, j, 0.0, 1e-7)
            assert a == pytest.approx(v[j] * gradient[j], rel=1e-10)
            assert native.rate_of(state, j, 0.0) == pytest.approx(a, rel=1e-10)
            scale = 1.0 + abs(v[j]) * np.abs(model.hessian(x)).max()
            assert -1e-9 * scale < b - v[j] * slopes[j] < 1e-5 * scale


def test_a_coordinate_that_a_functional_has_twice_counts_twice():
    p = pdmp.Parameters(x=3)
    twice = p.x[np.array([0, 1])] + 0.5 * p.x[np.array([0, 2])]
    model = pdmp.models.sum_of_terms(p, [pdmp.terms(lambda y, a: np.exp(a) - y * a, [[1.0, 2.0]], [twice])])
    process = pdmp.ZigZag(model, thinning="local")
    x = np.array([0.2, -0.4, 0.3])
    state = process.resolve(x).begin(x, np.random.default_rng(0))
    rates = [process.thinning.sums.native.rate_of(state, i, 0.0) for i in range(3)]
    np.testing.assert_allclose(rates, state.v * model.gradient(x), rtol=1e-12)


def test_a_frozen_coordinate_has_no_rate():
    process = pdmp.FactorisedBoomerang(MODEL, mean=MEAN, metric=pdmp.Metric(covariance=1.0 / WEIGHTS), thinning="local")
    state = state_of(process, 0)
    state.x[1] = state.v[1] = 0.0
    assert process.thinning.sums.native.rate_within(state, 1, 1.3, 0.5) == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", in_ci(["LocalBPS", "ZigZag", "FactorisedBoomerang"], "ZigZag"))
def test_clocks_ring_at_their_rates(name):
    options = {"mean": MEAN, "metric": WEIGHTS} if name == "FactorisedBoomerang" else {}
    local = {} if name == "LocalBPS" else {"thinning": "local"}
    process = getattr(pdmp, name)(MODEL, **options, **local)
    assert process.exact_bounds
    found = pdmp.validation.check_clocks(process, events=1_000, initial=np.zeros(D), seed=1, tolerance=1e-3)
    assert found.p > 1e-6, found
    assert sum(clock.violations for clock in found.clocks) == 0


def pair():
    """Two counts with log means a and a + b, and a step between them."""
    p = pdmp.Parameters(a=1, b=1)
    counts = pdmp.terms(lambda y, z: np.exp(z) - y * z, [[3.0, 1.0]], [p.a + np.array([0.0, 1.0]) * p.b])
    step = pdmp.terms(lambda a, b: 0.5 * (a + b) ** 2, at=[p.a, p.b])
    return pdmp.models.sum_of_terms(p, [counts, step], {"a": Normal(0.0, 1.5), "b": StudentT(3.0, 0.0, 1.0)})


def law_of(model):
    grid = np.linspace(-7.0, 5.0, 121)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    potential = np.array([model.potential(x) for x in points])
    w = np.exp(potential.min() - potential)
    mean = np.average(points, axis=0, weights=w)
    return mean, np.average((points - mean) ** 2, axis=0, weights=w)


@pytest.mark.slow
@pytest.mark.parametrize("name", in_ci(["LocalBPS", "ZigZag", "FactorisedBoomerang"], "LocalBPS"))
def test_the_law_is_the_posterior(name):
    model, options = pair(), {}
    mean, var = law_of(model)
    if name != "LocalBPS":
        options["thinning"] = "local"
    if name == "FactorisedBoomerang":
        options |= {"mean": [0.3, -0.2], "metric": pdmp.Metric(covariance=[0.5, 0.8])}
    found = replicate(getattr(pdmp, name)(model, **options), mean, 16, 7, events=1_000)
    assert_unbiased(found.mean, mean, resolution=0.45 * np.sqrt(var))
    assert_unbiased(found.var, var, resolution=0.6 * var)


def test_data_are_counted_and_horizons_adapt():
    process = pdmp.LocalBPS(MODEL, refresh_rate=0.1)
    state = state_of(process, 0)
    rng, factors = np.random.default_rng(1), process.factors.native
    before = state.memory.cells.copy()
    state.counts[DATA] = 7
    thinning = process.thinning.native
    assert thinning.propose(process.native, state, 0, 1.3, rng)[1] == math.inf  # a matrix: no horizon
    assert state.counts[DATA] == 8 and np.array_equal(state.memory.cells, before)
    time, bound = thinning.propose(process.native, state, 5, 1.3, rng)
    assert state.counts[DATA] == 9 and state.memory.cells[5, 0] != before[5, 0]
    passed = bound == 0.0
    assert (state.memory.cells[5, 0] > before[5, 0]) == passed and (time == 1.3 + before[5, 0]) == passed
    assert factors.is_affine(0) and not factors.is_affine(5)


def test_near_a_pole_the_horizon_shrinks_until_a_bound_is_finite():
    p = pdmp.Parameters(a=1)
    model = pdmp.models.sum_of_terms(p, [pdmp.terms(lambda a: a - 2.0 * np.log(a), at=[p.a])], initial=[2.0])
    process = pdmp.LocalBPS(model).resolve(np.array([2.0]))
    state = process.begin(np.array([2.0]), np.random.default_rng(0))
    state.v[0], state.memory.cells[0, 0] = -1.0, 50.0
    time, bound = process.thinning.native.propose(process.native, state, 0, 0.0, np.random.default_rng(0))
    assert 0.0 < time <= 2.0 and math.isfinite(bound) and state.memory.cells[0, 0] < 3.0
    run = pdmp.sample(pdmp.LocalBPS(model), events=400, initial=[2.0], seed=3)
    assert run.stats["bound_violations"] == 0 and run.trajectories[0].positions.min() > 0.0


def lattice(n):
    p = pdmp.Parameters(x=n)
    i = np.arange(n - 1)
    rows = [pdmp.terms(lambda a, b: (a - b) ** 2, at=[p.x[i], p.x[i + 1]]),
            pdmp.terms(lambda a: np.exp(a) - a, at=[p.x[np.arange(n)]])]  # fmt: skip
    return pdmp.models.sum_of_terms(p, rows)


def test_where_terms_have_few_coordinates_each_has_a_clock():
    model = lattice(40)
    assert isinstance(pdmp.ZigZag(model).thinning, Enclosures) and pdmp.ZigZag(model).clocks == 40
    assert isinstance(pdmp.FactorisedBoomerang(model).thinning, Enclosures)
    assert isinstance(pdmp.LocalBPS(model).thinning, FactorWithin)
    start, indices = neighbours_of(graph_of_sum(model))
    assert indices[start[3] : start[4]].tolist() == [2, 3, 4]
    p = pdmp.Parameters(b=3)
    X = np.random.default_rng(0).standard_normal((60, 3))
    for matrix in (X, sparse.csr_array(X * (X > 0.0))):
        rows = pdmp.terms(lambda y, z: np.logaddexp(0.0, z) - y * z, [np.arange(60) % 2], [matrix @ p.b])
        regression = pdmp.models.sum_of_terms(p, [rows], {"b": Normal(0.0, 1.0)})
        assert local_graph(regression) is None
        assert not isinstance(pdmp.ZigZag(regression).thinning, Enclosures)


def test_which_terms_are_quadratic():
    """Those whose second derivatives depend on the data alone, of the rows and then of the priors by coordinate."""
    p = pdmp.Parameters(x=2, s=1)
    i = np.arange(2)
    rows = [
        pdmp.terms(lambda c, a: c * (a - 1.0) ** 2, [[0.7, 1.1]], [p.x[i]]),
        pdmp.terms(lambda a: np.exp(a), at=[p.x[i]]),
        pdmp.terms(lambda a, b: a * b + 3.0 * a, at=[p.x[i], p.s]),
        pdmp.terms(lambda a, b: a * a * b, at=[p.x[i], p.s]),
    ]
    model = pdmp.models.sum_of_terms(p, rows, {"x": Normal(0.0, 1.0), "s": StudentT(4.0, 0.0, 1.0)})
    assert quadratic_terms(model).tolist() == [True] * 2 + [False] * 2 + [True] * 2 + [False] * 2 + [True, True, False]


def test_rows_that_few_have_the_sum_of_are_factors_as_they_are():
    """600 rows of six effects, which six rows have the sum of: rates are those of all rows."""
    rng = np.random.default_rng(3)
    level, y, p = np.arange(600) % 6, rng.standard_normal(600), pdmp.Parameters(u=6)
    rows = pdmp.terms(lambda y, z: 0.5 * (y - z) ** 2, [y], [p.u[level]])
    model = pdmp.models.sum_of_terms(p, [rows], {"u": Normal(0.0, 1.0)})
    assert model.rows_summed < 600 and quadratic_terms(model).tolist() == [True] * 606
    law = pdmp.models.Gaussian(np.bincount(level, y) / 101.0, sparse.diags_array(np.full(6, 101.0)))
    one, other = (
        pdmp.sample(pdmp.ZigZag(target, **options), events=60, initial=np.full(6, 0.1), seed=5).trajectories[0]
        for target, options in ((model, {"thinning": "local"}), (law, {}))
    )
    np.testing.assert_allclose(one.times, other.times, rtol=1e-9)
    assert pdmp.sample(pdmp.LocalBPS(model), events=20, initial=np.zeros(6), seed=1).stats["total_events"] == 20


def test_of_quadratic_terms_alone_rates_are_inverted():
    """The same path as that of the Gaussian with this precision, which the built-in model samples."""
    p = pdmp.Parameters(x=4)
    i = np.arange(3)
    rows = pdmp.terms(lambda a, b: 0.5 * (a + b) ** 2, at=[p.x[i], p.x[i + 1]])
    model = pdmp.models.sum_of_terms(p, [rows], {"x": Normal(1.0, 2.0)})
    precision = sparse.csr_array(model.hessian(np.zeros(4)))
    mean = np.linalg.solve(precision.toarray(), np.full(4, 0.25))
    start = np.array([0.3, 1.0, -0.5, 0.1])
    runs = [
        pdmp.sample(pdmp.ZigZag(target, **options), events=60, initial=start, seed=5)
        for target, options in ((model, {"thinning": "local"}), (pdmp.models.Gaussian(mean, precision), {}))
    ]
    assert runs[0].stats["data_terms"] > 60  # a term at each proposal
    one, other = (run.trajectories[0] for run in runs)
    np.testing.assert_allclose(one.positions, other.positions, rtol=1e-9, atol=1e-9)
    assert isinstance(pdmp.ZigZag(model, thinning="local").thinning.sums, SumPartials)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pdmp.ZigZag(GAUSSIAN, thinning="local"), "needs a model of pdmp.terms, got Gaussian"),
        (lambda: pdmp.FactorisedBoomerang(COX, thinning="local"), "needs a model of pdmp.terms, got LogGaussianCox"),
        (lambda: pdmp.LocalBPS(COX, thinning="hessian"), "needs a model of pdmp.terms, got LogGaussianCox"),
        (lambda: pdmp.LocalBPS(MODEL, thinning="affine"), "`factor_rate_bound`"),
    ],
)
def test_messages(make, said):
    with pytest.raises(ValueError, match=said):
        make()


GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 2.0])
COX = pdmp.models.LogGaussianCox([3, 1, 4], precision=[1.0, 1.0, 1.0])


def test_a_prior_alone_is_bounded_where_the_path_is_farthest():
    """A half-normal law has the second derivative 2e^(2x), largest at the end of the arc, where no velocity leads."""
    p = pdmp.Parameters(x=1, s=1)
    rows = pdmp.terms(lambda y, m: 0.5 * (y - m) ** 2, [[0.0]], [p.x])
    model = pdmp.models.sum_of_terms(p, [rows], {"s": HalfNormal(1.0)})
    mean, reach = np.array([0.0, 1.0]), 1.4
    process = pdmp.FactorisedBoomerang(model, mean=mean, metric=pdmp.Metric(covariance=1.0), thinning="local")
    x = np.array([0.4, -2.0])
    state, flow = process.resolve(x).begin(x, np.random.default_rng(0)), Elliptic(mean)
    for v in (-0.3, 0.1, 1.0):
        state.v[1] = v
        a, b = process.thinning.sums.native.rate_within(state, 1, 0.0, reach)
        times = np.linspace(0.0, reach, 200)
        at = np.array([flow.position(1, x[1], v, t) for t in times])
        rates = np.array([flow.velocity(1, x[1], v, t) for t in times]) * (np.exp(2.0 * at) - 1.0 - (at - mean[1]))
        assert a == pytest.approx(rates[0]) and np.all(rates <= a + b * times + 1e-12)
        assert b > 3.0  # the curvature at the beginning alone would be 0.04


@plain_only
def test_a_horizon_on_an_ellipse_is_at_most_a_quarter():
    """For longer no bound is asked, whatever the horizon has grown to; on a line for all of it."""
    asked = []

    def within(state, i, now, width):
        asked.append(width)
        return 0.0, 0.0

    for flow, most in ((Elliptic(np.zeros(1)), 0.5 * math.pi), (Linear(), math.inf)):
        sums = SimpleNamespace(is_affine=lambda i: False, flow=flow, rate_within=within)
        for horizon in (0.7, 40.0):
            horizons = np.array([[horizon]])
            time, bound = plain(propose_within)(sums, None, 0, 2.0, horizons, np.random.default_rng(1))
            assert asked[-1] == min(horizon, most) and (time, bound) == (2.0 + asked[-1], HORIZON)


@plain_only
def test_a_horizon_is_halved_until_the_bound_is_finite():
    """Sixty times at most, so that 1e-18 of it is left."""
    for largest, halvings in ((0.5, 1), (0.3, 2), (1e-12, 40), (1e-17, 57), (1e-30, 60)):
        asked = []

        def within(state, i, now, width, largest=largest, asked=asked):
            asked.append(width)
            return 0.0, 0.0 if width < largest else math.inf

        sums = SimpleNamespace(is_affine=lambda i: False, flow=Linear(), rate_within=within)
        horizons = np.array([[0.8]])
        time, bound = plain(propose_within)(sums, None, 0, 2.0, horizons, np.random.default_rng(1))
        assert asked == [0.8 * 0.5**k for k in range(halvings + 1)]
        assert math.isnan(bound) == (halvings == 60) and time == 2.0 + (0.0 if halvings == 60 else asked[-1])
