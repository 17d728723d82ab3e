"""Local BPS and the coordinate sampler: rates, bounces, what an event touches and costs; identities, to rounding."""

import itertools
import math
import types

import numpy as np
import pytest
from scipy import sparse

import pdmp
from pdmp.factors.bounds import BEGIN, END, LEFT, PART, WIDTH, FactorGrid
from pdmp.factors.graph import FactorGraph, from_model
from pdmp.factors.shared_clock import PRIOR, TERMS
from pdmp.gradients import ControlVariate
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression, SkewNormal
from pdmp.models.derived import Derived
from pdmp.process import CERTAIN, DATA, EVENTS, HORIZON, PROPOSALS, positions
from pdmp.processes import coordinate_sampler, local_bps
from pdmp.thinning.grid import NEEDED, second_difference
from tests.checks import in_quick, new_chain, plain, plain_only, run_chain

pytestmark = pytest.mark.exact


def rng(seed=0):
    return np.random.default_rng(seed)


def chain(d, mean=0.0):
    """A Gaussian whose precision has 2.1 on the diagonal and -1 beside it."""
    return Gaussian(mean, sparse.diags([-np.ones(d - 1), np.full(d, 2.1), -np.ones(d - 1)], [-1, 0, 1]))


PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
GAUSSIAN = Gaussian(MEAN, PRECISION)
X = rng(1).standard_normal((12, 3)) * (rng(2).random((12, 3)) < 0.8)
X[:, 0] = 1.0
LOGISTIC = LogisticRegression(X, np.arange(12) % 2, prior_scale=2.0)
LINEAR = LinearGaussian(X, rng(3).standard_normal(12))
PAIR = FactorGraph([[0, 1], [1, 2]], 3)

PROCESSES = {
    "LocalBPS inversion": lambda: pdmp.LocalBPS(GAUSSIAN),
    "LocalBPS factor refreshment": lambda: pdmp.LocalBPS(GAUSSIAN, refresh="factor", refresh_rate=0.2),
    "LocalBPS global refreshment": lambda: pdmp.LocalBPS(GAUSSIAN, PAIR, refresh="global", refresh_rate=0.3),
    "LocalBPS terms": lambda: pdmp.LocalBPS(LINEAR),
    "LocalBPS affine": lambda: pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC)),
    "LocalBPS grid": lambda: pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC), thinning="grid"),
    "LocalBPS columns": lambda: pdmp.LocalBPS(LOGISTIC),
    "LocalBPS rows": lambda: pdmp.LocalBPS(LOGISTIC, thinning="rows"),
    "LocalBPS anchored": lambda: pdmp.LocalBPS(ControlVariate(LOGISTIC, 1, scale=[1.0, 2.0, 0.5])),
    "CoordinateSampler inversion": lambda: pdmp.CoordinateSampler(GAUSSIAN),
    "CoordinateSampler affine": lambda: pdmp.CoordinateSampler(LOGISTIC),
    "CoordinateSampler grid": lambda: pdmp.CoordinateSampler(LOGISTIC, thinning="grid"),
}
START = np.array([1.0, -1.0, 0.2])


def begun(process, x=START, v=None, seed=0):
    """A state of the process, resolved, at (x, v)."""
    process = process.resolve(x)
    state = process.begin(x, rng(seed))
    if v is not None:
        state.v[:] = v
        if isinstance(process, pdmp.CoordinateSampler):
            state.memory.moving[0] = np.argmax(np.abs(v))
    return process, state


class Draw:
    """A random stream that is known in advance."""

    def __init__(self, uniforms=(), exponential=0.3):
        self.uniforms = iter(uniforms)
        self.random = lambda: next(self.uniforms)
        self.standard_exponential = lambda: exponential


# ---------------------------------------------------------------------------------------------------------------
# What every process owes


class CountingBPS(pdmp.LocalBPS):
    """Counts the clocks that are redrawn, as if they were data."""

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        state.counts[DATA] += 1
        if i < self.bounces:
            return self.thinning.propose(self, state, i, now, rng)
        return now + rng.standard_exponential() / self.refresh_rate, math.inf


class CountingSampler(pdmp.CoordinateSampler):
    """Counts the partial derivatives that are looked at."""

    @pdmp.compiled
    def affine_partial(self, state, j, now):
        state.counts[DATA] += 1
        return self.provider.model.affine_partial(state.x, state.v, state.moved, now, j)


@pytest.mark.parametrize("counting, most", [(CountingBPS, 4), (CountingSampler, 4)])
def test_the_cost_of_an_event_does_not_depend_on_the_dimension(counting, most):
    """A bounce redraws its factor's clock and those of two neighbours, a refreshment two and its own; the coordinate
    sampler looks at three partial derivatives and at the one that moves."""
    each = []
    for d in (10, 200):
        process = counting(chain(d), refresh_rate=0.2)
        one, two = (run_chain(process, np.zeros(d), 5, events=n, store="moments") for n in (300, 600))
        each.append((two.state.counts[DATA] - one.state.counts[DATA]) / 300.0)
    assert 2.5 < each[0] <= most and 2.5 < each[1] <= most
    assert abs(each[1] - each[0]) < 0.25  # at the ends of a chain there are fewer


# ---------------------------------------------------------------------------------------------------------------
# Local BPS: rates, bounces, clocks


def test_rates_of_factors_are_those_of_their_own_gradients():
    """Against each datum's and each prior's gradient, written out."""
    for name in ("LocalBPS affine", "LocalBPS grid", "LocalBPS terms"):
        v = rng(7).standard_normal(3)
        process, state = begun(PROCESSES[name](), v=v)
        for f in range(15):
            if f < 12 and "terms" in name:
                gradient = -X[f] * (LINEAR.y[f] - X[f] @ START)
            elif f < 12:
                gradient = X[f] * (1.0 / (1.0 + np.exp(-X[f] @ START)) - f % 2)
            else:
                gradient = np.eye(3)[f - 12] * START[f - 12] * (1.0 if "terms" in name else 0.25)
            assert process.native.rate(state, f, 0.0, rng()) == pytest.approx(max(0.0, v @ gradient), rel=1e-11)


@pytest.mark.parametrize("name", PROCESSES)
def test_what_clocks_are_checked_against_are_their_rates(name):
    """`true_rates`, at several points; where data share a clock, the sum over them."""
    for seed in range(3):
        x, v = rng(seed).standard_normal((2, 3))
        if name.startswith("CoordinateSampler"):
            v = np.eye(3)[seed]
        process, state = begun(PROCESSES[name](), x=x, v=v)
        out, scratch = np.zeros(process.clocks), np.zeros(3)
        process.native.true_rates(x, v, scratch, out)
        if name in SHARED:
            anchor = process.anchor if "anchored" in name else None
            force = np.zeros(3) if anchor is None else sum(datum(i, anchor) for i in range(12))
            wanted = [sum(max(0.0, v @ datum(i, x, anchor)) for i in range(12)), v @ (0.25 * x + force)]
        elif name.startswith("CoordinateSampler"):
            wanted = [v @ process.model.gradient(x)]
        else:
            wanted = [process.factors.native.along(state, f, 0.0) for f in range(process.bounces)]
        np.testing.assert_allclose(out[: len(wanted)], wanted, rtol=1e-11, atol=1e-13)
        assert np.all(out[len(wanted) :] == process.refresh_rate)


def hazard(rate, s, n=4_001):
    """∫₀ˢ of a rate."""
    times = np.linspace(0.0, s, n)
    values = np.array([rate(t) for t in times])
    return (values.sum() - 0.5 * (values[0] + values[-1])) * s / (n - 1)


def test_quadratic_clocks_ring_where_their_rate_has_integrated_to_the_exponential():
    """Each factor, its coordinates having moved at different times."""
    rung = 0
    for seed, name in itertools.product(range(2), ("inversion", "terms")):
        process, state = begun(PROCESSES[f"LocalBPS {name}"](), v=rng(seed).standard_normal(3))
        state.moved[:] = rng(seed + 9).random(3)
        for f in range(process.bounces):
            time, bound = process.native.clock(state, f, 1.2, Draw(exponential=0.4))
            assert bound == math.inf

            def rate(s, process=process, state=state, f=f):
                return process.native.rate(state, f, 1.2 + s, rng())

            if time < math.inf:
                assert hazard(rate, time - 1.2, 201) == pytest.approx(0.4, rel=0.01)
                rung += 1
            else:
                assert hazard(rate, 50.0, 201) < 0.4
    assert rung > 10


def test_bounds_of_factors_are_never_exceeded_and_the_priors_are_their_rates():
    """Rates of all factors against a + b s, far out as well."""
    process = PROCESSES["LocalBPS affine"]().resolve(START)
    for seed in range(10):
        x, v = 5.0 * rng(seed).standard_normal(3), 2.0 * rng(seed + 50).standard_normal(3)
        state = process.begin(x, rng())
        state.v[:] = v
        for f in range(15):
            a, b = process.factors.native.bound(state, f, 0.0)
            for s in (0.0, 0.3, 2.0, 20.0):
                rate = process.native.rate(state, f, s, rng())
                assert rate <= max(0.0, a + b * s) * (1.0 + 1e-12)
                if f >= 12:
                    assert rate == pytest.approx(max(0.0, a + b * s), rel=1e-11)
                elif a == 0.0:
                    assert process.native.clock(state, f, 0.0, Draw())[0] == math.inf
            if a > 0.0 and b == 0.0:
                time, bound = process.native.clock(state, f, 0.0, Draw(exponential=0.3))
                assert (time, bound) == pytest.approx((0.3 / a, a), rel=1e-12)


SHARED = ("LocalBPS columns", "LocalBPS rows", "LocalBPS anchored")


@pytest.mark.parametrize("name", [name for name in PROCESSES if name.startswith("LocalBPS") and name not in SHARED])
def test_a_bounce_reflects_in_the_factors_gradient_and_leaves_the_others_alone(name):
    """λ(x, v) - λ(x, Rv) = v·∇U_f, λ(x, -Rv) = λ(x, v), and the neighbours of f are the next to be redrawn."""
    for seed in range(3):
        v = rng(seed).standard_normal(3)
        process, state = begun(PROCESSES[name](), x=rng(seed + 5).standard_normal(3), v=v)
        kernel, graph = process.native, process.factors.graph
        for f in range(process.bounces):
            state.v[:] = v
            scope, along = graph.scope(f), process.factors.native.along(state, f, 0.0)
            before = kernel.rate(state, f, 0.0, rng())
            gradient = state.memory.gradient[: len(scope)].copy()
            assert kernel.jump(state, f, 0.0, rng()) == local_bps.BOUNCE
            after = state.v.copy()
            expected = v.copy()
            expected[scope] -= 2.0 * along / (gradient @ gradient) * gradient
            np.testing.assert_allclose(after, expected, rtol=1e-12, atol=1e-14)
            outside = np.setdiff1d(np.arange(3), scope)
            np.testing.assert_array_equal(after[outside], v[outside])
            assert before - kernel.rate(state, f, 0.0, rng()) == pytest.approx(along, rel=1e-10, abs=1e-13)
            state.v[:] = -after
            assert kernel.rate(state, f, 0.0, rng()) == pytest.approx(before, rel=1e-10, abs=1e-13)
            redrawn = process.order[process.start[f] : process.start[f + 1]].tolist()
            assert redrawn == [g for g in range(process.bounces) if np.intersect1d(scope, graph.scope(g)).size]
            begin, end = kernel.touches(state, f)
            assert [kernel.coordinate(k) for k in range(begin, end)] == scope.tolist()


@plain_only
@pytest.mark.parametrize("refresh", ["variable", "factor", "global"])
def test_a_refreshment_redraws_what_it_says_and_the_clocks_that_see_it(refresh):
    model = chain(4)
    process, state = begun(pdmp.LocalBPS(model, refresh=refresh, refresh_rate=0.7), x=np.zeros(4))
    graph, n = process.factors.graph, process.bounces
    scopes = {"variable": [[0], [1], [2], [3]], "factor": [[0, 1], [1, 2], [2, 3]], "global": [[0, 1, 2, 3]]}[refresh]
    assert process.clocks == n + len(scopes)
    for k, scope in enumerate(scopes):
        before = state.v.copy()
        time, bound = process.native.clock(state, n + k, 1.0, Draw(exponential=0.35))
        assert (time, bound) == (1.5, math.inf)
        generator = rng(k)
        assert process.native.jump(state, n + k, 0.0, generator) == local_bps.REFRESH
        before[scope] = rng(k).standard_normal(len(scope))
        np.testing.assert_array_equal(state.v, before)
        redrawn = process.order[process.start[n + k] : process.start[n + k + 1]].tolist()
        assert redrawn == [f for f in range(n) if np.intersect1d(scope, graph.scope(f)).size] + [n + k]
    never, _ = begun(pdmp.LocalBPS(model, refresh=refresh, refresh_rate=0.0), x=np.zeros(4))
    assert never.native.clock(state, n, 1.0, rng())[0] == math.inf


def test_the_grid_narrows_the_cells_of_the_factor_that_it_underestimates():
    process, state = begun(PROCESSES["LocalBPS grid"](), v=[1.0, 1.0, 1.0])
    widths = state.memory.cells[:, WIDTH]
    f = next(f for f in range(12) if process.native.rate(state, f, 0.0, rng()) > 0.0)
    before = widths.copy()
    state.bounds[f] = 0.5 * process.native.rate(state, f, 0.0, rng())
    process.native.rate(state, f, 0.0, rng())
    state.bounds[f] = HORIZON
    process.native.rate(state, f, 0.0, rng())
    assert widths[f] == pytest.approx(0.7 * before[f])
    assert np.array_equal(np.delete(widths, f), np.delete(before, f))


def test_a_cell_of_the_grid_bounds_the_rate_and_serves_until_its_coordinates_turn():
    """On all factors, of different curvature; arrivals are those of the chords, whatever part of the cell is left."""
    process, state = begun(PROCESSES["LocalBPS grid"](), v=[0.8, -1.0, 0.5])
    kernel, cells, rung = process.native, state.memory.cells, 0
    for f in range(15):
        kernel.clock(state, f, 0.0, Draw(exponential=0.02))
        begin, end = cells[f, BEGIN], cells[f, END]
        assert begin == 0.0 and end > 0.0
        chords = cells[f, LEFT : LEFT + 3].copy()
        for s in np.linspace(0.0, end, 9):
            assert kernel.rate(state, f, s, rng()) <= np.interp(s, [0.0, 0.3 * end, end], chords) * (1.0 + 1e-9)
        for now in (0.0, 0.3 * end, 0.7 * end):  # served by the same cell
            looks = int(state.counts[DATA])
            time, bound = kernel.clock(state, f, now, Draw(exponential=0.02))
            assert state.counts[DATA] == looks and cells[f, END] == end
            fine = np.linspace(now, min(time, end), 20_001)
            total = np.mean(np.interp(fine, [0.0, 0.3 * end, end], chords)) * (min(time, end) - now)
            if bound == HORIZON:
                assert time == end and total < 0.02
            else:
                assert total == pytest.approx(0.02, rel=1e-3)
                assert bound == pytest.approx(np.interp(time, [0.0, 0.3 * end, end], chords), rel=1e-9)
                rung += 1
        state.moved[process.factors.graph.scope(f)[0]] = 0.1 * end  # it turned there
        kernel.clock(state, f, 0.1 * end, Draw(exponential=0.02))
        assert cells[f, BEGIN] == 0.1 * end
        state.moved[:] = 0.0
    assert rung > 10


def test_the_automatic_refreshment_is_a_part_of_the_bounce_rate():
    for make, part in ((pdmp.LocalBPS, 0.03), (pdmp.CoordinateSampler, 0.1)):
        rate = make(GAUSSIAN).resolve(MEAN).refresh_rate
        assert rate == pytest.approx(part * math.sqrt(1.5 / (2.0 * math.pi)), rel=1e-9)
    rate = pdmp.LocalBPS(LOGISTIC).resolve(START).refresh_rate
    assert rate == pytest.approx(0.1 * math.sqrt(LOGISTIC.curvature(START) / (2.0 * math.pi)), rel=1e-9)


class Broken(pdmp.Model):
    """A factor whose gradient is not a number on one side."""

    def __init__(self):
        super().__init__(dim=2, n_data=2)

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * x[i] * x[i]

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[i] += x[i] if x[i] < 2.0 else math.nan

    def factors(self):
        return [[0], [1]]


def test_a_gradient_that_is_not_finite_stops_the_run():
    with pytest.raises(pdmp.SamplingError, match="gradient or the rate of Broken is not finite"):
        pdmp.sample(pdmp.LocalBPS(Broken(), thinning="grid"), events=10_000, seed=1, initial=[0.5, 0.5])
    process, state = begun(pdmp.LocalBPS(Broken()), x=np.array([0.5, 0.5]))
    state.x[1] = 3.0
    assert process.native.jump(state, 1, 0.0, rng()) == -1


@pytest.mark.parametrize(
    "options, text",
    [
        ({"refresh_rate": -1.0}, "`refresh_rate` must be a finite number, at least 0"),
        ({"refresh": "partial"}, "`refresh` must be one of 'auto', 'variable', 'factor', 'global'"),
        ({"thinning": "affine"}, "needs bounds on single factors: Gaussian has no `factor_rate_bound`"),
        ({"thinning": "columns"}, '`thinning="columns"` needs terms: Gaussian has none'),
        ({"thinning": "slopes"}, '`thinning` must be "auto"'),
        ({"thinning": 3}, "`thinning` must be"),
    ],
)
def test_what_local_bps_refuses(options, text):
    with pytest.raises(ValueError, match=text):
        pdmp.LocalBPS(GAUSSIAN, **options)


def test_what_needs_other_models_or_gradients():
    with pytest.raises(ValueError, match="quadratic factors: LogisticRegression has no `affine_factor`"):
        pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC), thinning="inversion")
    for make in (pdmp.LocalBPS, pdmp.CoordinateSampler):
        with pytest.raises(TypeError, match=f"pdmp.{make.__name__} needs the exact gradient"):
            make(pdmp.gradients.Minibatch(LOGISTIC, 3))
        with pytest.raises(TypeError, match="`target` must be a pdmp.Model"):
            make(3)
    with pytest.raises(ValueError, match="needs a quadratic potential: SkewNormal has no `affine_partial`"):
        pdmp.CoordinateSampler(SkewNormal(2.0), thinning="inversion")
    with pytest.raises(ValueError, match="`thinning` of pdmp.CoordinateSampler must be a name or an Inversion"):
        pdmp.CoordinateSampler(GAUSSIAN, thinning=FactorGrid())
    with pytest.raises(ValueError, match='`thinning` must be "auto", "inversion"'):
        pdmp.CoordinateSampler(GAUSSIAN, thinning="constant")
    with pytest.raises(ValueError, match="`safety` must be a finite number, at least 1"):
        FactorGrid(0.5)
    with pytest.raises(ValueError, match="`partial_curvature_bounds`"):
        pdmp.CoordinateSampler(SkewNormal(2.0), thinning="affine")
    with pytest.raises(ValueError, match="`refresh_rate` must be a finite number, at least 0"):
        pdmp.CoordinateSampler(GAUSSIAN, refresh_rate=-0.1)


def test_factors_of_several_coordinates_are_reducible_without_refreshment_on_an_isotropic_target():
    """Each keeps |x ∧ v| of its coordinates; where each has one coordinate, and on other targets, nobody is warned."""
    isotropic = Gaussian(np.zeros(4), np.ones(4))
    with pytest.warns(UserWarning, match="pdmp.LocalBPS without refreshment is reducible.*Give a `refresh_rate`"):
        pdmp.LocalBPS(isotropic, FactorGraph([[0, 1], [2, 3]], 4), refresh_rate=0.0).resolve(np.ones(4))
    pdmp.LocalBPS(isotropic, FactorGraph([[0, 1], [2, 3]], 4), refresh_rate=0.1).resolve(np.ones(4))
    pdmp.LocalBPS(isotropic, refresh_rate=0.0).resolve(np.ones(4))
    pdmp.LocalBPS(GAUSSIAN, refresh_rate=0.0).resolve(np.ones(GAUSSIAN.dim))


def test_both_are_declared_as_samplers_but_not_compared_unasked():
    from tests.registry import declared

    for cls in (pdmp.LocalBPS, pdmp.CoordinateSampler):
        assert declared()[cls.__name__] is cls and not cls.recipe.featured


# ---------------------------------------------------------------------------------------------------------------
# Data that share a clock


SIGNS, SCALE = 2.0 * LOGISTIC.y - 1.0, np.array([1.0, 2.0, 0.5])


def datum(i, x, anchor=None):
    """∇Uᵢ(x), or its difference to that at the anchor."""
    gradient = -SIGNS[i] * X[i] / (1.0 + np.exp(SIGNS[i] * (X[i] @ x)))
    return gradient if anchor is None else gradient - datum(i, anchor)


def chi(name, i, v, distance):
    """The bounds χᵢ, written out."""
    if name == "LocalBPS columns":
        return np.abs(X[i] * v)[SIGNS[i] * X[i] * v < 0.0].sum()
    if name == "LocalBPS rows":
        return max(0.0, -SIGNS[i] * (X[i] @ v))
    return 0.25 * np.abs(X[i] * v).sum() * np.linalg.norm(X[i] * SCALE) * distance


@pytest.mark.parametrize("name", SHARED)
def test_data_that_share_a_clock_ring_at_the_sum_of_their_bounds(name):
    """And each bound holds wherever the path goes; the prior's clock has the rate of the prior and what is linear."""
    for seed in range(5):
        x, v = rng(seed).standard_normal((2, 3))
        process, state = begun(PROCESSES[name](), x=x, v=v)
        anchor = process.anchor if "anchored" in name else None
        begins = 0.0 if anchor is None else np.linalg.norm((x - anchor) / SCALE)

        def total(s, begins=begins, v=v):
            return sum(chi(name, i, v, begins + s * np.linalg.norm(v / SCALE)) for i in range(12))

        time, bound = process.native.clock(state, TERMS, 0.0, Draw(exponential=0.9))
        assert hazard(total, time, 101) == pytest.approx(0.9, rel=1e-9)
        assert bound == pytest.approx(total(time), rel=1e-12)
        for s in (0.0, time, 4.0):
            far = 0.0 if anchor is None else np.linalg.norm((x + v * s - anchor) / SCALE)
            for i in range(12):
                assert v @ datum(i, x + v * s, anchor) <= chi(name, i, v, far) * (1.0 + 1e-12) + 1e-15

        force = np.zeros(3) if anchor is None else sum(datum(i, anchor) for i in range(12))

        def prior(s, x=x, v=v, force=force):
            return max(0.0, v @ (0.25 * (x + v * s) + force))

        time, bound = process.native.clock(state, PRIOR, 0.0, Draw(exponential=0.4))
        assert hazard(prior, time) == pytest.approx(0.4, abs=1e-3)
        assert bound == pytest.approx(prior(time), rel=1e-11)
        assert process.native.rate(state, PRIOR, time, rng()) == pytest.approx(bound, rel=1e-11)
        process.native.jump(state, PRIOR, time, rng())
        a = 0.25 * (x + v * time) + force
        np.testing.assert_allclose(state.v, v - 2.0 * (v @ a) / (a @ a) * a, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", in_quick(SHARED, "LocalBPS columns", "LocalBPS rows"))
def test_each_datum_bounces_at_its_own_rate(name):
    """P(i is drawn) times the rate that it is then given is (v·∇Uᵢ)₊, and the draws are in proportion to χᵢ."""
    x, v = np.array([0.4, -0.3, 0.8]), np.array([0.7, -1.1, 0.4])
    process, state = begun(PROCESSES[name](), x=x, v=v)
    anchor = process.anchor if "anchored" in name else None
    chis = np.array([chi(name, i, v, 1.0) for i in range(12)])
    share = chis / chis.sum()
    kernel, generator, n = process.native, rng(3), 8_000
    kernel.clock(state, TERMS, 0.0, rng())
    positions(kernel.flow, state, 0.0, state.memory.here)
    drawn, rates = np.zeros(12), np.zeros(12)
    for _ in range(n):
        i, scale = kernel.factors.draw_datum(kernel, state, generator)
        drawn[i] += 1.0 / n
        if not rates[i]:
            kernel.factors.term_gradient(state, i)
            np.testing.assert_allclose(state.memory.gradient, datum(i, x, anchor), rtol=1e-10, atol=1e-13)
            rates[i] = scale * max(0.0, v @ state.memory.gradient)
    assert np.all(np.abs(drawn - share) < 5.5 * np.sqrt(share * (1.0 - share) / n) + 1e-12)
    wanted = np.array([max(0.0, v @ datum(i, x, anchor)) for i in range(12)])
    np.testing.assert_allclose(rates * share, wanted, rtol=1e-9, atol=1e-12)
    assert np.sum(wanted > 0.0) >= 3 and np.sum(share > 0.01) >= 5


def test_a_datum_bounces_in_its_own_gradient():
    for name in SHARED:
        v = np.array([0.7, -1.1, 0.4])
        process, state = begun(PROCESSES[name](), v=v)
        anchor = process.anchor if "anchored" in name else None
        process.native.clock(state, TERMS, 0.0, rng())
        process.native.rate(state, TERMS, 0.0, rng(1))
        gradient = state.memory.gradient.copy()
        assert min(np.abs(gradient - datum(i, START, anchor)).max() for i in range(12)) < 1e-12
        assert process.native.jump(state, TERMS, 0.0, rng()) == local_bps.BOUNCE
        np.testing.assert_allclose(state.v, v - 2.0 * (v @ gradient) / (gradient @ gradient) * gradient, rtol=1e-12)
        assert process.native.jump(state, 2, 0.0, rng(4)) == local_bps.REFRESH
        np.testing.assert_array_equal(state.v, rng(4).standard_normal(3))
        redrawn = [process.order[a:b].tolist() for a, b in itertools.pairwise(process.start)]
        assert redrawn == [[0, 1], [0, 1], [0, 1, 2]]


def test_what_proposals_look_at_is_counted():
    """One datum each; the tighter bounds look at all of them for each new velocity."""
    for name in ("LocalBPS columns", "LocalBPS anchored"):
        counts = run_chain(PROCESSES[name](), START, 5, events=50).state.counts
        assert 25 < counts[DATA] <= counts[PROPOSALS]
    counts = run_chain(PROCESSES["LocalBPS rows"](), START, 5, events=50).state.counts
    assert 49 * 12 < counts[DATA] <= 50 * 12 + counts[PROPOSALS]


def test_a_flat_prior_has_a_clock_that_never_rings():
    """Its rate is 0, and no bound on it is not a number."""
    process = pdmp.LocalBPS(LogisticRegression(X, LOGISTIC.y, prior_scale=math.inf))
    state = new_chain(process, START, 5).state
    assert plain(process.factors.propose)(process, state, PRIOR, 0.0, rng()) == (math.inf, CERTAIN)


def test_what_data_that_share_a_clock_refuse():
    with pytest.raises(ValueError, match="are no graph"):
        pdmp.LocalBPS(LOGISTIC, from_model(LOGISTIC), thinning="columns")
    with pytest.raises(ValueError, match='`refresh` must be "global" where data share a clock, got "variable"'):
        pdmp.LocalBPS(LOGISTIC, refresh="variable")
    with pytest.raises(ValueError, match='`thinning` must be "auto" with control variates'):
        pdmp.LocalBPS(ControlVariate(LOGISTIC, 1), thinning="rows")
    with pytest.raises(ValueError, match="`size` must be 1.*got 2"):
        pdmp.LocalBPS(ControlVariate(LOGISTIC, 2))
    with pytest.raises(ValueError, match="LinearGaussian has no `signed_term_bound`"):
        pdmp.LocalBPS(LINEAR, thinning="columns")
    with pytest.raises(ValueError, match="variates need Lipschitz constants .*: Broken has no `term_lipschitz`"):
        pdmp.LocalBPS(ControlVariate(Broken(), 1, anchor=np.zeros(2)))

    class Sloped(LogisticRegression):
        @pdmp.compiled
        def factor_rate_bound(self, x, v, f):
            return 0.0, 1.0

    with pytest.raises(ValueError, match="needs constant bounds: `factor_rate_bound` of Sloped has a slope for term"):
        pdmp.LocalBPS(Sloped(X, LOGISTIC.y), thinning="rows")

    class Priorless(LogisticRegression):
        prior_partial = Derived.prior_partial

    with pytest.raises(ValueError, match="the clock of the prior needs .*: Priorless has no `prior_partial`"):
        pdmp.LocalBPS(Priorless(X, LOGISTIC.y))


# ---------------------------------------------------------------------------------------------------------------
# The coordinate sampler


def velocities(d):
    """±e₁, …, ±e_d."""
    return [s * e for e in np.eye(d) for s in (1.0, -1.0)]


@pytest.mark.parametrize("name", ["CoordinateSampler inversion", "CoordinateSampler affine"])
def test_the_next_velocity_is_drawn_by_the_rates_of_its_reverse(name):
    """q(v*) = λ(x, -v*) / Σ λ(x, v), and with that the flow is balanced: v*·∇U + Λ q(v*) = λ(x, v*)."""
    process = PROCESSES[name]()
    process.refresh_rate = 0.4
    process, state = begun(process, v=np.array([0.0, 1.0, 0.0]))
    gradient = process.model.gradient(START)
    process.native.rate(state, 0, 0.0, rng())
    np.testing.assert_allclose(state.memory.gradient, gradient, rtol=1e-12)
    total, n = np.abs(gradient).sum(), 2_000
    assert process.partials.native.total(state) == pytest.approx(total, rel=1e-12)
    found = dict.fromkeys([(j, s) for j in range(3) for s in (1, -1)], 0.0)
    for u in (np.arange(n) + 0.5) / n:
        for k in range(6) if u * (total + 2.4) < 2.4 else [0]:
            uniforms = (u, (k + 0.5) / 6.0)
            process.native.draw(state, total, Draw(uniforms))
            found[tuple(state.memory.following.tolist())] += 1.0 / n / (6.0 if u * (total + 2.4) < 2.4 else 1.0)
    for (j, sign), q in found.items():
        v = sign * np.eye(3)[j]
        assert q == pytest.approx((max(0.0, -v @ gradient) + 0.4) / (total + 2.4), abs=2.0 / n)
        assert v @ gradient + (total + 2.4) * q == pytest.approx(
            max(0.0, v @ gradient) + 0.4, abs=2 * (total + 2.4) / n
        )


def test_the_coordinate_samplers_rate_is_that_of_the_coordinate_that_moves():
    process = PROCESSES["CoordinateSampler affine"]().resolve(START)
    gradient = LOGISTIC.gradient(START)
    for v in velocities(3):
        _, state = begun(process, v=v)
        assert process.native.rate(state, 0, 0.0, rng()) == pytest.approx(max(0.0, v @ gradient), rel=1e-12)
        state.bounds[1] = 1.0
        assert process.native.rate(state, 1, 0.0, rng()) == 1.0  # a refreshment is not thinned


@plain_only
def test_the_coordinate_samplers_clocks():
    """Inverted on a Gaussian; on a regression the bound is the diagonal of the Hessian's."""
    process, state = begun(PROCESSES["CoordinateSampler inversion"](), v=[0.0, -1.0, 0.0])
    time, bound = process.native.clock(state, 0, 0.0, Draw(exponential=0.4))
    assert bound == 1.0

    def rate(s):
        return max(0.0, -GAUSSIAN.gradient(START - s * np.eye(3)[1])[1])

    assert hazard(rate, time) == pytest.approx(0.4, abs=1e-3)
    process.refresh_rate = 0.5
    assert process.native.clock(state, 1, 2.0, Draw(exponential=0.4)) == (2.8, 1.0)
    process.refresh_rate = 0.0
    assert process.native.clock(state, 1, 2.0, rng())[0] == math.inf
    process, state = begun(PROCESSES["CoordinateSampler affine"](), v=[0.0, 0.0, 1.0])
    diagonal = 0.25 * (X**2).sum(axis=0) + 0.25
    np.testing.assert_allclose(state.memory.curvatures, diagonal, rtol=1e-12)
    time, bound = process.native.clock(state, 0, 0.0, Draw(exponential=3.0))
    a = LOGISTIC.gradient(START)[2]
    assert bound == pytest.approx(a + diagonal[2] * time, rel=1e-12)
    assert bound >= process.native.rate(state, 0, time, rng())


def test_what_moves_next_is_brought_along():
    """Both coordinates of a switch are recorded and integrated: the one that stops and the one that starts."""
    process, state = begun(PROCESSES["CoordinateSampler inversion"](), v=[0.0, 1.0, 0.0])
    kernel = process.native
    for old, new in itertools.product(range(3), range(3)):
        state.v[:], state.memory.moving[0] = np.eye(3)[old], old
        state.memory.following[:] = new, -1
        begin, end = kernel.touches(state, 0)
        assert [kernel.coordinate(k) for k in range(begin, end)] == ([old] if old == new else [old, new])
        kernel.jump(state, 0, 0.0, rng())
        np.testing.assert_array_equal(state.v, -np.eye(3)[new])
        assert state.memory.moving[0] == new


def test_partial_derivatives_and_their_sums_are_kept_up_to_date():
    """After each event all of them, on a chain of nine, of which an event looks at three."""
    model = chain(9, mean=0.3)
    process = pdmp.CoordinateSampler(model, refresh_rate=0.3).resolve(np.zeros(9))
    run = new_chain(process, rng(3).standard_normal(9), 5, store="moments", events=1)
    for n in range(1, 60):
        run.extend(type(run.budget)(events=n))
        run.advance()
        assert run.failure is None and run.state.counts[EVENTS] == n
        gradient = model.gradient(run.position(float(run.state.now[0])))
        np.testing.assert_allclose(run.state.memory.gradient, gradient, atol=1e-12)
        tree = run.state.memory.tree
        np.testing.assert_allclose(tree, coordinate_sampler.sums(np.abs(gradient)), atol=1e-12)


def test_the_tree_finds_what_cumulative_sums_find():
    for d in (1, 2, 3, 8, 13):
        leaves = rng(d).exponential(size=d) * (rng(d + 1).random(d) < 0.7)
        leaves[d // 2] = 1.0
        tree = coordinate_sampler.sums(np.zeros(d))
        for j in rng(d).permutation(d):
            plain(coordinate_sampler.update)(tree, j, leaves[j])
        np.testing.assert_allclose(tree, coordinate_sampler.sums(leaves), atol=1e-15)
        assert tree[1] == pytest.approx(leaves.sum())
        for u in np.linspace(0.0, 0.999, 101):
            expected = np.searchsorted(np.cumsum(leaves), u * leaves.sum(), side="right")
            assert plain(coordinate_sampler.find)(tree, u * tree[1]) == expected
        assert leaves[plain(coordinate_sampler.find)(tree, 2.0 * tree[1])] > 0.0  # whatever rounding does


def test_inverted_and_bounded_clocks_take_the_same_path_on_a_gaussian():
    """The slope bound is the slope: the same random numbers, no rejection, two routes to every derivative."""
    records = [
        run_chain(pdmp.CoordinateSampler(GAUSSIAN, thinning=t), START, 8, events=100).finish()
        for t in ("inversion", "affine")
    ]
    np.testing.assert_allclose(records[0].times, records[1].times, rtol=1e-9)
    np.testing.assert_array_equal(records[0].which, records[1].which)
    np.testing.assert_allclose(records[0].xs, records[1].xs, rtol=1e-7, atol=1e-9)


def test_where_the_gradient_vanishes_the_next_velocity_is_any():
    process, state = begun(pdmp.CoordinateSampler(GAUSSIAN, refresh_rate=0.0), x=MEAN, v=[1.0, 0.0, 0.0])
    seen = set()
    for k in range(6):
        process.native.draw(state, 0.0, Draw((0.5, (k + 0.5) / 6.0)))
        seen.add(tuple(state.memory.following.tolist()))
    assert len(seen) == 6


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize(
    "values", [(-10.0, 5.0, -10.0), (5.0, -10.0, -10.0), (-10.0, -10.0, 5.0), (-10.0, -3.0, -10.0)]
)
def test_a_cell_in_which_a_rate_is_positive_anywhere_follows_its_curve(values):
    """At its begin, its end or between; where it is negative throughout, the cell stays as wide as it was."""
    curve = np.polyfit([0.0, PART, 1.0], values, 2)
    bound, x = FactorGrid(), types.SimpleNamespace
    process = x(flow=None, factors=x(along=lambda state, f, t: np.polyval(curve, t), beyond=lambda *args: False))
    state = x(memory=x(cells=bound.cells(1, 1.0)))
    assert bound.new_cell(process, state, 0, 0.0)
    width = state.memory.cells[0, END] - state.memory.cells[0, BEGIN]
    assert (width < 1.0) == (max(values) > 0.0)
    rates = np.polyval(curve, [0.0, PART * width, width])
    room = bound.safety * NEEDED * abs(second_difference(*rates))
    np.testing.assert_allclose(state.memory.cells[0, LEFT : LEFT + 3], np.maximum(rates + room, 0.0), rtol=1e-12)
