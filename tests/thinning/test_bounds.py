"""The bounds of `pdmp.thinning`: above the rate, arrivals that integrate to their exponential, laws, and bad input."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.process import CERTAIN, HORIZON
from pdmp.thinning import (
    Affine,
    ConcaveConvex,
    Constant,
    Grid,
    Hessian,
    Inversion,
    Lipschitz,
    Maxima,
    Polynomial,
    grid,
)
from pdmp.thinning.piecewise import positive_arrival
from tests.checks import new_chain, plain_only
from tests.targets import BARRIER, Cone, Plane, Quartic
from tests.thinning.helpers_bounds import CONE, EXACT, LOGISTIC, QUARTIC, SAMPLERS

pytestmark = pytest.mark.exact

#: Tests that hand the methods a stand-in for the generator, which compiled helpers do not take.


class Draws:
    """Always the same exponential."""

    def __init__(self, e):
        self.e = e

    def standard_exponential(self):
        return self.e


def total_rate(process, x, v, t):
    """The rate of the thinned clock after a straight path of length t, from the model's gradient alone."""
    gradient = process.model.gradient(x + v * t)
    return max(v @ gradient, 0.0) if isinstance(process, pdmp.BPS) else np.maximum(v * gradient, 0.0).sum()


def proposals(process, x, v, exponentials):
    """(time, bound) of the first proposal from x, for each of these exponentials."""
    kernel = process.native
    for e in exponentials:
        state = process.begin(x, np.random.default_rng(0))
        state.v[:] = v
        yield process.thinning.native.propose(kernel, state, 0, 0.0, Draws(e))


def starts(process, n=12):
    rng = np.random.default_rng(3)
    for _ in range(n):
        yield 1.5 * rng.standard_normal(process.dim), process.velocity(np.zeros(process.dim), rng)


def test_the_lipschitz_bound_of_a_coordinate_is_of_the_whole_velocity():
    """L |vⱼ| |v|: the gradient's change along v is at most L |v|, in each coordinate."""
    model = pdmp.models.Gaussian(np.zeros(3), 3.0 * np.eye(3))
    process = pdmp.ZigZag(model, metric=pdmp.Metric(scales=[1.0, 2.0, 0.5]), thinning=Lipschitz(3.0))
    chain = new_chain(process, np.array([0.3, -0.2, 0.1]), 1, events=3)
    chain.advance()
    bounds = chain.state.memory.bound.slope_bounds
    assert bounds == pytest.approx(3.0 * np.array([1.0, 2.0, 0.5]) * math.sqrt(5.25))


@plain_only
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_bounds_lie_above_the_rate(name, sampler):
    model, bound = EXACT[name]
    process = SAMPLERS[sampler](model, thinning=bound).resolve(np.zeros(2))
    looked, ends = 0, 0
    for x, v in starts(process):
        for time, level in proposals(process, x, v, (1e-6, 0.03, 0.2, 0.6, 1.5)):
            assert time >= 0.0
            if level == HORIZON:
                ends += 1
            elif level != CERTAIN:
                assert level >= total_rate(process, x, v, time) - 1e-10, (x, v, time)
                looked += 1
    assert looked > 20
    assert (ends > 0) == bound.adapts


@plain_only
@pytest.mark.parametrize("name", ["concave-convex, quartic", "concave-convex, logistic", "polynomial"])
def test_broken_lines_touch_the_rate_at_both_ends_of_a_cell(name):
    model, bound = EXACT[name]
    process = pdmp.BPS(model, thinning=bound).resolve(np.zeros(2))
    for x, v in starts(process):
        state = process.begin(x, np.random.default_rng(0))
        state.v[:] = v
        process.thinning.native.propose(process.native, state, 0, 0.0, Draws(0.1))
        lines, width = state.memory.bound, state.memory.bound.end[0]
        for value, t in ((lines.left[0], 0.0), (lines.right[0], width)):
            assert value == pytest.approx(v @ model.gradient(x + v * t), abs=1e-10)
        t = lines.meeting[0]
        assert 0.0 <= t <= width
        assert lines.top[0] >= v @ model.gradient(x + v * t) - 1e-10


@plain_only
def test_a_tangent_and_a_chord_are_tight_where_one_part_is_missing():
    """A convex rate is bounded by its chord, a concave one by its two tangents."""
    process = pdmp.BPS(Quartic(1), thinning=ConcaveConvex()).resolve(np.zeros(1))
    for x, v in ((0.5, 1.0), (-3.0, 1.0)):
        state = process.begin(np.array([x]), np.random.default_rng(0))
        state.v[:] = v
        state.memory.bound.horizon[0] = 0.8
        process.thinning.native.propose(process.native, state, 0, 0.0, Draws(0.1))
        lines = state.memory.bound
        left, bend, top, right = lines.left[0], lines.meeting[0], lines.top[0], lines.right[0]
        y = x + 0.8
        assert (left, right) == (pytest.approx(x**3), pytest.approx(y**3))
        if x > 0.0:
            assert top == pytest.approx(x**3 + (y**3 - x**3) * bend / 0.8)
        else:
            assert top == pytest.approx(x**3 + 3.0 * x**2 * bend)
            assert top == pytest.approx(y**3 + 3.0 * y**2 * (bend - 0.8))


def test_positive_arrival_is_that_of_the_clipped_line():
    from scipy import integrate

    rng = np.random.default_rng(4)
    for left, right in rng.normal(size=(60, 2)):
        width, e = rng.exponential(size=2)
        total = integrate.quad(
            lambda s: max(0.0, left + (right - left) * s / width),  # noqa: B023
            0.0,
            width,
            points=[width * left / (left - right)] if left * right < 0.0 else None,
        )[0]
        t, rest = positive_arrival(left, right, width, e)
        assert (t == math.inf) == (e > total)
        if t == math.inf:
            assert rest == pytest.approx(e - total, abs=1e-9)
        else:
            s = np.linspace(0.0, t, 20_001)
            assert np.trapezoid(np.maximum(0.0, left + (right - left) * s / width), s) == pytest.approx(e, abs=1e-6)


# ---------------------------------------------------------------------------------------------------------------
# Cells that serve on


class Walk:
    """Three signed rates, one negative and two parts of a function of time; it notes when it was asked."""

    def __init__(self, function, bound, width, clocks=2):
        self.function, self.asked = function, []
        state = pdmp.BPS(CONE, thinning=bound).begin(np.zeros(2), np.random.default_rng(0))
        self.state = state._replace(memory=state.memory._replace(bound=bound.memory(3, 2, width)))
        self.state.memory.bound.width[0] = self.state.memory.bound.accurate_width[0] = width
        self.bound = bound.native

    def signed_rates(self, state, now, rng, out):
        self.asked.append(now)
        out[:] = -1.0, 0.25 * self.function(now), 0.75 * self.function(now)

    def beyond(self, state, now):
        return True

    def propose(self, now, e):
        return self.bound.propose(self, self.state, 0, now, Draws(e))


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_after_a_rejection_the_rest_of_the_cell_serves_on(bound):
    walk = Walk(lambda t: 1.0, bound, 2.0)
    time, level = walk.propose(0.0, 0.5)
    assert (time, level) == (0.5, 1.0)
    asked = len(walk.asked)
    assert walk.propose(0.5, 0.7) == (pytest.approx(1.2), pytest.approx(1.0))
    assert walk.propose(1.2, 0.9) == (2.0, HORIZON)
    assert len(walk.asked) == asked
    walk.propose(2.0, 0.1)
    assert len(walk.asked) > asked


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_after_an_event_a_new_cell_is_laid(bound):
    walk = Walk(lambda t: 1.0, bound, 2.0)
    walk.propose(0.0, 0.5)
    walk.function = lambda t: 3.0
    walk.state.counts[-1] += 1
    assert walk.propose(0.5, 0.6) == (pytest.approx(0.7), pytest.approx(3.0))


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_a_cell_ends_where_another_clock_is_known_to_ring(bound):
    walk = Walk(lambda t: -1.0, bound, 2.0)
    walk.state.keys[:] = 0.0, 0.25
    assert walk.propose(0.0, 0.1) == (np.nextafter(0.25, 1.0), HORIZON)  # the other one rings first
    assert max(walk.asked) == 0.25
    assert walk.state.memory.bound.accurate_width[0] == 2.0  # that says nothing of the accurate width


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_wide_cells_do_not_jump_over_a_peak(bound):
    """From far out, where the rate of a heavy tail is small and smooth, the cells shrink before the centre."""
    walk = Walk(lambda t: 2.0 * (t - 100.0) / (1.0 + (t - 100.0) ** 2), bound, 250.0)
    now, last = 0.0, 0.0
    for _ in range(200):
        last = now
        now, _ = walk.propose(now, 1e9)
        if now > 101.0:
            break
    assert 101.0 < now < 106.0 and last > 95.0


@plain_only
@pytest.mark.exact
def test_many_proposals_of_one_cell_leave_a_width():
    """Beside a pole the bound may be thousands of times too high: ICA, in which a path comes near singular matrices."""
    X = np.array([[1.0, 0.4], [-0.7, 1.2], [0.3, -1.5], [-1.1, -0.6], [0.8, 0.9]])
    chain = new_chain(pdmp.BPS(pdmp.models.ICA(X)), [0.94, -0.29, -0.07, 1.91], 1, events=20)
    memory, state = chain.state.memory.bound, chain.state
    memory.accurate_width[0], memory.width[0] = 2.0, 1.5
    for _ in range(3_000):
        grid.adapt(memory, state, False)
    assert memory.width[0] == 2e-6
    chain.advance()
    assert chain.failure is None and memory.width[0] > 2e-6


def test_the_grid_covers_a_kink():
    for kink in np.linspace(0.05, 1.95, 39):
        walk = Walk(lambda t, kink=kink: -1.0 if t < kink else 1.0, Grid(), 0.2)
        now = 0.0
        while now < 2.0:
            time, level = walk.propose(now, 0.02)
            assert level == HORIZON or level >= walk.function(time), kink
            now = time


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_two_equal_jumps_are_no_line(bound):
    """A staircase -2, 0, 2, as |x| + |x - y| has it: wherever its steps are, the bound lies above it."""
    for first in np.linspace(0.03, 0.97, 9):
        for second in np.linspace(1.03, 1.97, 8):
            walk = Walk(lambda t, a=first, b=second: -2.0 + 2.0 * (t > a) + 2.0 * (t > b), bound, 2.0)
            now = 0.0
            while now < 2.0:
                time, level = walk.propose(now, 0.02)
                assert level == HORIZON or level >= walk.function(time), (first, second, time)
                now = time


@pytest.mark.parametrize("bound", [Grid(), Maxima()])
def test_cells_stay_where_the_target_is_defined(bound):
    walk = Walk(lambda t: 1.0 / (1.0 - t) if t < 1.0 else math.nan, bound, 5.0)
    time, level = walk.propose(0.0, 0.5)
    assert 0.0 < time < 1.0 and (level == HORIZON or level >= 1.0 / (1.0 - time) - 1e-9)
    assert math.isnan(Walk(lambda t: math.nan, bound, 1.0).propose(0.0, 0.5)[0])


def test_maxima_finds_the_maximum_inside_a_cell():
    peak = Walk(lambda t: 2.0 - 5.0 * (t - 0.13) ** 2, Maxima(margin=0.0, searches=4), 0.3)
    peak.propose(0.0, 1e9)
    assert peak.state.memory.bound.begin_bound[0] == pytest.approx(2.0, abs=1e-6)
    rough = Walk(lambda t: 1.0 + math.sin(9.0 * t) ** 3, Maxima(margin=0.0, searches=12), 0.3)
    rough.propose(0.0, 1e9)
    end = rough.state.memory.bound.end[0]
    assert rough.state.memory.bound.begin_bound[0] == pytest.approx(
        max(rough.function(t) for t in np.linspace(0.0, end, 2_000)), rel=1e-3
    )


@plain_only
@pytest.mark.parametrize("where", [0.3, 0.4, 0.6, 0.7])
def test_the_search_for_the_maximum_narrows_its_bracket(where):
    """Six looks find the height of a peak anywhere in the cell; without progress it is missed by a fifth and more."""
    walk = Walk(lambda t: 1.0 / (1.0 + 40.0 * (t - where) ** 2), Maxima(margin=0.0, searches=6), 1.0)
    ends = [walk.function(t) for t in (0.0, 0.5, 1.0)]
    assert walk.bound.search(walk, walk.state, 0.0, 1.0, *ends, None) == pytest.approx(1.0, abs=1e-5)
    assert len(walk.asked) == 6 and 0.0 < min(walk.asked) < max(walk.asked) < 1.0


@plain_only
def test_the_search_for_the_maximum_ends_where_a_rate_is_not_finite():
    """Beside the best point, where a search that went on would pass over it."""
    walk = Walk(lambda t: 1.0 - (t - 0.52) ** 2 if abs(t - 0.5) < 1e-9 or t in (0.0, 1.0) else math.nan, Maxima(), 1.0)
    ends = [walk.function(t) for t in (0.0, 0.5, 1.0)]
    assert math.isnan(walk.bound.search(walk, walk.state, 0.0, 1.0, *ends, None)) and len(walk.asked) == 1


# ---------------------------------------------------------------------------------------------------------------
# No bound given, bad input


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_wall_of_infinite_potential_is_never_crossed(sampler):
    model = Plane(BARRIER)
    path = pdmp.sample(SAMPLERS[sampler](model), events=600, seed=2, initial=model.initial).trajectories[0]
    x = path.positions
    assert x[:, 0].min() > 0.0 and x[:, 1].min() > 0.0 and x[:, 1].max() < 1.0


class Gamma(pdmp.Model):
    """U = x - 2 log x to the right of 0, where the density ends."""

    def __init__(self):
        super().__init__(dim=1, initial=[1.0])

    @pdmp.compiled
    def potential(self, x):
        return x[0] - 2.0 * math.log(x[0]) if x[0] > 0.0 else math.inf

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += 1.0 - 2.0 / x[0] if x[0] > 0.0 else math.nan

    @pdmp.compiled
    def add_prior_parts(self, x, v, out):
        rate = v[0] * (1.0 - 2.0 / x[0]) if x[0] > 0.0 else math.nan
        if v[0] < 0.0:
            out[0, 0] += rate
        else:
            out[0, 1] += rate
            out[0, 2] += 2.0 * v[0] * v[0] / (x[0] * x[0])


class InfiniteBeyond(Gamma):
    """The same, whose rate towards 0 is infinite beyond it."""

    @pdmp.compiled
    def add_prior_parts(self, x, v, out):
        if v[0] < 0.0:
            out[0, 0] += v[0] * (1.0 - 2.0 / x[0]) if x[0] > 0.0 else math.inf
        else:
            out[0, 1] += v[0] * (1.0 - 2.0 / x[0])
            out[0, 2] += 2.0 * v[0] * v[0] / (x[0] * x[0])


class SteepBeyond(Gamma):
    """The same, where beyond 0 the slope alone tells that nothing is there."""

    @pdmp.compiled
    def add_prior_parts(self, x, v, out):
        if x[0] <= 0.0:
            out[0, 2] += math.inf
        elif v[0] < 0.0:
            out[0, 0] += v[0] * (1.0 - 2.0 / x[0])
        else:
            out[0, 1] += v[0] * (1.0 - 2.0 / x[0])
            out[0, 2] += 2.0 * v[0] * v[0] / (x[0] * x[0])


@pytest.mark.parametrize("model", [Gamma, InfiniteBeyond, SteepBeyond])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_cell_of_convex_and_concave_parts_ends_before_a_wall(sampler, model):
    run = pdmp.sample(SAMPLERS[sampler](model(), thinning=ConcaveConvex()), events=300, seed=1)
    assert run.stats["total_events"] == 300 and run.stats["bound_violations"] == 0
    assert run.trajectories[0].positions.min() > 0.0


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    "thinning, method",
    [
        ("constant", ("directional_derivative_bound", "partial_derivative_bounds")),
        ("affine", ("curvature_bound", "partial_curvature_bounds")),
    ],
)
def test_a_violated_bound_is_named(sampler, thinning, method):
    process = SAMPLERS[sampler](Cone(2, scale=0.3), thinning=thinning)
    with pytest.raises(pdmp.SamplingError, match=f"he bound `{method[sampler == 'ZigZag']}` of Cone by a factor"):
        pdmp.sample(process, events=2_000, seed=1)


@plain_only
def test_a_violated_bound_of_ones_own_is_named():
    with pytest.raises(pdmp.SamplingError, match="exceeded the constant bound for Cone by a factor"):
        pdmp.sample(pdmp.ZigZag(CONE, thinning=Constant(0.5)), events=2_000, seed=1)
    with pytest.raises(pdmp.SamplingError, match="exceeded the Lipschitz bound for Cone by a factor"):
        pdmp.sample(pdmp.BPS(CONE, thinning=Lipschitz(0.1)), events=2_000, seed=1)


@pytest.mark.parametrize("scale", [math.nan, math.inf])
@pytest.mark.parametrize("thinning", ["constant", "affine"])
def test_a_bound_that_is_not_a_number_is_named(thinning, scale):
    process = pdmp.ZigZag(Cone(2, scale=scale), thinning=thinning)
    name = {"constant": "partial_derivative_bounds", "affine": "partial_curvature_bounds"}[thinning]
    with pytest.raises(pdmp.SamplingError, match=f"he bound `{name}` of Cone is negative or not finite"):
        pdmp.sample(process, events=100, seed=1)


class Backwards(Affine):
    """A bound that is negative."""

    @pdmp.compiled
    def propose(self, process, state, i, now, rng):
        return now + 1.0, -2.0


def test_a_negative_bound_is_named():
    with pytest.raises(pdmp.SamplingError, match="he bound `curvature_bound` of Cone is negative or not finite"):
        pdmp.sample(pdmp.BPS(CONE, thinning=Backwards()), events=100, seed=1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Constant(-1.0), "`level` must be a positive number"),
        (lambda: Constant(math.nan), "`level` must be a positive number"),
        (lambda: Lipschitz(0.0), "`constant` must be a positive number"),
        (lambda: Lipschitz(math.nan), "`constant` must be a positive number"),
        (lambda: Hessian(-np.eye(2)), "`matrix` must be finite and >= 0"),
        (lambda: Hessian([[math.nan]]), "`matrix` must be finite and >= 0"),
        (lambda: Hessian(np.ones(3)), r"`matrix` must have shape \(d, d\)"),
        (lambda: pdmp.BPS(CONE, thinning=Hessian(np.eye(3))), r"`matrix` must have shape \(2, 2\)"),
        (lambda: Polynomial(0), "`degree` must be a whole number, at least 1"),
        (lambda: Grid(0.5), "`safety` must be a finite number, at least 1"),
        (lambda: Maxima(margin=-1.0), "`margin` must be a finite number, at least 0"),
        (lambda: Maxima(searches=1.5), "`searches` must be a whole number"),
        (lambda: pdmp.BPS(QUARTIC, thinning="affine"), "Quartic has no `curvature_bound`"),
        (lambda: pdmp.ZigZag(QUARTIC, thinning="constant"), "Quartic has no `partial_derivative_bounds`"),
        (lambda: pdmp.ZigZag(CONE, thinning="hessian"), "Cone has no `partial_curvature_bounds_within`"),
        (lambda: pdmp.BPS(CONE, thinning="concave-convex"), "Cone has no `add_prior_parts`"),
        (lambda: pdmp.BPS(LOGISTIC, thinning=Polynomial(3)), "LogisticRegression has no `add_prior_coefficients`"),
        (lambda: pdmp.BPS(CONE, thinning=Inversion()), "clocks of single coordinates"),
        (lambda: pdmp.ZigZag(CONE, thinning="brent"), "`thinning` must be"),
        (lambda: pdmp.ZigZag(CONE, thinning=Grid), "`thinning` must be"),
    ],
)
def test_bounds_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
