"""Sub-sampled BPS and Boomerang of regressions with frozen coordinates: their rates, bounds and bounces."""

import functools
import math

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import BetaBernoulli, Normal
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import PoissonLaw, ProbitLaw, StudentTLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.process import CERTAIN, HORIZON
from pdmp.processes.regression_boomerang import BOUNCE, KNOWN, REFRESH, REFRESHMENT, ROW, RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.sticky import KEPT_VELOCITY, Sticky
from tests.checks import in_quick
from tests.processes.helpers_moving_regressions import Late, diagonal_boomerang
from tests.processes.helpers_regression_boomerang import along, remainders, state_at
from tests.processes.helpers_regression_zigzag import LAWS, regression

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]


@functools.cache
def usual(kind, law):
    """A process with the anchor and the scale of the posterior."""
    return kind(regression(law))


#: Student's t, the dearest, by ``pytest --full``: it has two dispersions, and the negative binomial one.
EVERY = pytest.mark.parametrize(
    "law", in_quick(list(LAWS.values()), *(law for law in LAWS.values() if law is not StudentTLaw)), ids=LAWS
)
PAIRED = pytest.mark.parametrize(
    ("law", "kind"), [(law, (RegressionBPS, diagonal_boomerang)[k % 2]) for k, law in enumerate(LAWS.values())]
)
BOTH = pytest.mark.parametrize("kind", [RegressionBPS, diagonal_boomerang])
FROZEN = [[], [1], [1, 2]]  #: the intercept and the dispersions never are


def somewhere(process, rng, frozen, far=1.0):
    """A position and a velocity, `far` times as far from the anchor and as fast as the normal approximation has it."""
    y, w = far * process.reference.sd * rng.standard_normal((2, process.dim))
    x, v = process.anchor + y, w
    x[frozen], v[frozen] = 0.0, 0.0
    return x, v


def later(process, x, v, t):
    """Position and velocity after the time t, without an event."""
    if isinstance(process, RegressionBPS):
        return x + v * t, v
    y, frozen = x - process.anchor, (x == 0.0) & (v == 0.0)
    there, velocity = process.anchor + y * math.cos(t) + v * math.sin(t), v * math.cos(t) - y * math.sin(t)
    return np.where(frozen, 0.0, there), np.where(frozen, 0.0, velocity)


@PAIRED
def test_rates_balance_the_flow(law, kind):
    """Rows and K sum up to ∇U, less S⁻¹ (x - x̂) on ellipses, in the coordinates that move; of any anchor and scale."""
    model = regression(law)
    rng, found = np.random.default_rng(0), laplace(model)
    for shift, scale, frozen in zip((0.0, 0.3, 0.0), (None, 2.0 * found.sd, found.sd), FROZEN, strict=True):
        metric = "diagonal" if scale is None else pdmp.Metric(scales=scale)
        process = kind(model, found.mean + shift * found.sd, metric=metric)
        if scale is None:
            np.testing.assert_allclose(process.reference.sd, found.sd, rtol=1e-3)
        else:
            np.testing.assert_allclose(process.reference.sd, scale)
        x, v = somewhere(process, rng, frozen)
        rows, known = remainders(process, x)
        total = rows.sum(axis=0) + known
        expected = model.gradient(x)
        if kind is diagonal_boomerang:
            expected -= (x - process.anchor) / process.reference.sd**2
        moving = v != 0.0
        np.testing.assert_allclose(total[moving], expected[moving], rtol=1e-8, atol=1e-8 * np.abs(rows).max())
        rates = np.zeros((2, 3))
        process.native.true_rates(x, v, np.zeros(model.dim), rates[0])
        process.native.true_rates(x, -v, np.zeros(model.dim), rates[1])
        assert rates[0, ROW] == pytest.approx(np.maximum(rows @ v, 0.0).sum(), rel=1e-9)
        assert rates[0, KNOWN] == pytest.approx(max(known @ v, 0.0), rel=1e-9)
        assert rates[0, REFRESHMENT] == process.refresh_rate == 1.0
        assert (rates[0] - rates[1]).sum() == pytest.approx(v @ expected, rel=1e-8, abs=1e-8 * rates.max())


@EVERY
def test_no_rate_is_above_its_bound_on_an_ellipse(law):
    """Each row, and K, at all times of a turn after an event; K as its waves have it."""
    model = regression(law, n=12)
    rng, loss, found = np.random.default_rng(1), np.zeros(3), laplace(model)
    for far, shift, frozen in ((0.3, 0.3, [1]), (1.0, 0.0, [1, 2]), (2.0, 0.0, [])):
        process = diagonal_boomerang(model, found.mean + shift * found.sd)
        share = process.total / process.weights
        x, v = somewhere(process, rng, frozen, far)
        state = state_at(process, x, v)
        process.native.clock(state, ROW, 0.0, np.random.default_rng(0))
        bounds, largest = state.memory.bounds, 0.0
        if far == 2.0 and law is StudentTLaw:  # of few rows shells do not reach far
            assert math.isinf(bounds[ROW])
            continue
        assert np.all(np.isfinite(bounds)) and np.all(bounds >= 0.0)
        for t in np.linspace(0.0, 2.0 * math.pi, 13):
            there, velocity = later(process, x, v, t)
            for i in range(model.n_data):
                assert abs(along(process, there, velocity, i, loss)) * share[i] <= bounds[ROW] * (1.0 + 1e-9)
            _, known = remainders(process, there)
            rate = process.native.rate_of_known(state, t)
            assert rate == pytest.approx(max(velocity @ known, 0.0), rel=1e-7, abs=1e-7 * bounds[KNOWN])
            assert abs(velocity @ known) <= bounds[KNOWN] * (1.0 + 1e-9)
            largest = max(largest, abs(velocity @ known))
        assert law.dispersions or largest > 0.2 * bounds[KNOWN]


def test_the_bound_of_rows_is_the_maximum_over_a_turn():
    """|w| φ(|y|), the frozen part being constant: attained where the third derivative does not grow."""
    rng = np.random.default_rng(2)
    t = np.linspace(0.0, math.pi, 4_001)[:, None]
    model = regression(ProbitLaw)
    for frozen in FROZEN:
        for far in (0.2, 1.0):
            for slow in (1.0, 0.1, 3.0):
                process = diagonal_boomerang(model, laplace(model).mean + [0.1, 0.3, 0.2])
                x, v = somewhere(process, rng, frozen, far)
                v *= slow
                sd, moving = process.reference.sd, np.setdiff1d(np.arange(3), frozen)
                y, w = (x - process.anchor) / sd, v / sd
                square = np.sum(y[frozen] ** 2) + np.sum((y * np.cos(t) + w * np.sin(t))[:, moving] ** 2, axis=1)
                speed = np.linalg.norm((w * np.cos(t) - y * np.sin(t))[:, moving], axis=1)
                exact = process.total * process.growth.share(math.sqrt(square.max()), 0) * np.max(speed * 0.5 * square)
                found = process.native.bound_rows(state_at(process, x, v))
                assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 1e-5)


@EVERY
def test_no_rate_is_above_its_bound_on_a_line(law):
    """Each row, and K, where a proposal may come, at once and after a rejection."""
    model = regression(law, n=12)
    rng, found = np.random.default_rng(3), laplace(model)
    for far, shift, frozen in ((0.3, 0.3, [1]), (1.0, 0.0, [1, 2]), (2.0, 0.0, [])):
        process = RegressionBPS(model, found.mean + shift * found.sd)
        share, proposed = process.total / process.weights, np.zeros(2, int)
        x, v = somewhere(process, rng, frozen, far)
        state = state_at(process, x, v)
        for now in (0.0, 1.7):
            for e in (1e-9, 0.01, 0.1, 0.5, 2.0, 20.0):
                for i in (ROW, KNOWN):
                    time, bound = process.native.clock(state, i, now, Late(e))
                    if math.isnan(time):  # of few rows shells do not reach far
                        assert bound == HORIZON and far == 2.0 and law.dispersions
                        continue
                    assert time >= now
                    if not math.isfinite(time) or bound in (HORIZON, CERTAIN):
                        continue
                    state.bounds[i] = bound
                    proposed[i] += 1
                    there, velocity = later(process, x, v, time)
                    if i == ROW:
                        rates = [along(process, there, velocity, k) * share[k] for k in range(model.n_data)]
                        assert max(rates) <= bound * (1.0 + 1e-9)
                    else:
                        _, known = remainders(process, there)
                        rate = process.native.rate(state, KNOWN, time, None)
                        assert rate == pytest.approx(max(velocity @ known, 0.0), rel=1e-7, abs=1e-9 * bound)
                        assert rate <= bound
        assert proposed[ROW] > 3 or far == 2.0 and law.dispersions


def test_the_bound_on_a_line_is_a_chord():
    """At its ends |w| φ(|y|) itself, of the path where it is then: towards the anchor it falls."""
    model = regression(ProbitLaw)
    process = RegressionBPS(model, laplace(model).mean + [0.1, 0.3, 0.2])
    for towards in (-1.0, 1.0):
        x, v = process.anchor + process.reference.sd * [1.0, -2.0, 0.5], np.zeros(3)
        v[:] = towards * (x - process.anchor)
        x[1], v[1] = 0.0, 0.0
        state = state_at(process, x, v)
        y, w = (x - process.anchor) / process.reference.sd, v / process.reference.sd
        squares = [np.sum((y + w * s) ** 2) for s in (0.3, 1.3)]
        share = process.growth.share(math.sqrt(max(squares)), 0)
        ends = [process.total * share * np.linalg.norm(w) * 0.5 * square for square in squares]
        assert (ends[1] > ends[0]) == (towards > 0.0)
        time, bound = process.native.clock(state, ROW, 0.3, Late(1e-12))
        assert bound == pytest.approx(ends[0], rel=1e-6) and time == pytest.approx(0.3, abs=1e-6)
        time, bound = process.native.clock(state, ROW, 0.3, Late(0.5 * sum(ends) * (1.0 - 1e-9)))
        assert bound == pytest.approx(ends[1], rel=1e-6) and time == pytest.approx(1.3, abs=1e-6)
        assert process.native.clock(state, ROW, 0.3, Late(0.5 * sum(ends) * (1.0 + 1e-9))) == (1.3, HORIZON)


def test_the_known_part_of_normal_priors_is_inverted():
    """The integral of its rate up to the proposal is the exponential number."""
    n = 24
    rng = np.random.default_rng(4)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    model = MixedRegression(X, np.arange(n) % 4, PoissonLaw(), ["Intercept", "x", "w"], [Normal(0.0, 1.0)] * 3)
    process = RegressionBPS(model, laplace(model).mean + [0.05, 0.1, -0.1])
    assert process.normal and not RegressionBPS(regression(PoissonLaw)).normal
    for frozen in FROZEN:
        for e in (0.05, 0.7, 3.0):
            x, v = somewhere(process, rng, frozen)
            state = state_at(process, x, v)
            time, bound = process.native.clock(state, KNOWN, 0.0, Late(e))
            assert bound == CERTAIN and math.isfinite(time)
            grid = np.linspace(0.0, time, 2_001)
            rates = [max(velocity @ remainders(process, there)[1], 0.0) for there, velocity in
                     (later(process, x, v, t) for t in grid[::40])]  # fmt: skip
            assert np.trapezoid(rates, grid[::40]) == pytest.approx(e, rel=5e-3)


@PAIRED
def test_proposals_have_the_true_rates(law, kind):
    """Over all rows, chance times rate adds up to the true rate; at once and later."""
    process, rng = usual(kind, law), np.random.default_rng(5)
    model = process.model
    for now, frozen in ((0.0, [1]), (0.8, [1, 2])):
        x, v = somewhere(process, rng, frozen)
        state, rates = state_at(process, x, v), np.zeros(3)
        for i in (ROW, KNOWN):
            _, state.bounds[i] = process.native.clock(state, i, 0.0, Late(1e-6))
        there, velocity = later(process, x, v, now)
        process.native.true_rates(there, velocity, np.zeros(model.dim), rates)
        total = 0.0
        for i in range(model.n_data):
            state.memory.row[0], state.bounds[ROW] = i, 1.0
            total += process.weights[i] / process.total * process.native.rate(state, ROW, now, None)
        assert total == pytest.approx(rates[ROW], rel=1e-9)
        state.bounds[KNOWN] = 1.0
        assert process.native.rate(state, KNOWN, now, None) == pytest.approx(rates[KNOWN], rel=1e-7)


@PAIRED
def test_a_coordinate_counts_where_it_is_zero(law, kind):
    """As it is when it has just been released: its velocity times the known slope is part of the known rate."""
    process, rng = usual(kind, law), np.random.default_rng(9)
    x, v = somewhere(process, rng, [1])
    x[0] = 0.0
    assert v[0] != 0.0
    found = []
    for w in (v, -v):
        state, rates = state_at(process, x, w), np.zeros(3)
        process.native.clock(state, KNOWN, 0.0, Late(1e-6))
        process.native.true_rates(x, w, np.zeros(process.model.dim), rates)
        state.bounds[KNOWN] = 1.0
        assert process.native.rate(state, KNOWN, 0.0, None) == pytest.approx(rates[KNOWN], rel=1e-7)
        found.append(rates[KNOWN])
    assert max(found) > 0.0


@PAIRED
def test_bounces_and_refreshments(law, kind):
    """Of the coordinates that move, in the metric of S⁻¹: v·g changes its sign, vᵀS⁻¹v is kept."""
    process, rng = usual(kind, law), np.random.default_rng(6)
    model = process.model
    variances = process.reference.sd**2
    for clock in (ROW, KNOWN):
        for frozen in FROZEN:
            x, v = somewhere(process, rng, frozen)
            moving = v != 0.0
            rows, known = remainders(process, x)
            state = state_at(process, x, v)
            process.native.clock(state, clock, 0.0, Late(1e-6))
            state.memory.row[0], state.bounds[clock] = 3, 1.0
            state.memory.gradient[:] = 1.0  # of the last bounce
            process.native.rate(state, clock, 0.0, None)
            assert process.native.jump(state, clock, 0.0, None) == BOUNCE
            g = rows[3] if clock == ROW else known
            assert state.v @ g == pytest.approx(-(v @ g), rel=1e-7)
            assert np.sum(state.v**2 / variances) == pytest.approx(np.sum(v**2 / variances), rel=1e-8)
            assert np.all(state.v[frozen] == 0.0)
            raised, change = (variances * g)[moving], (state.v - v)[moving]
            np.testing.assert_allclose(
                np.outer(change, raised), np.outer(raised, change), atol=1e-8 * np.abs(raised).max()
            )
    x, v = somewhere(process, rng, [1])
    state = state_at(process, x, v)
    assert process.native.jump(state, REFRESHMENT, 0.0, np.random.default_rng(7)) == REFRESH
    normal, places = np.random.default_rng(7), np.delete(np.arange(model.dim), 1)
    drawn = normal.standard_normal(model.dim if kind is diagonal_boomerang else model.dim - 1)
    expected = process.reference.sd[places] * (drawn[places] if len(drawn) == model.dim else drawn)
    np.testing.assert_allclose(state.v, np.insert(expected, 1, 0.0))


@BOTH
def test_what_is_known_belongs_to_the_last_event(kind):
    """It is computed anew after an event, and not after a rejection."""
    process = kind(regression(PoissonLaw))
    rng = np.random.default_rng(8)
    x, v = somewhere(process, rng, [])
    state = state_at(process, x, v)
    process.native.clock(state, ROW, 0.0, rng)
    first = process.native.clock(state, ROW, 0.3, Late(1e-12))[1]
    state.x[1], state.v[1] = 0.0, 0.0
    assert process.native.clock(state, ROW, 0.3, Late(1e-12))[1] == first
    state.moved[0] = 0.3
    later_ = process.native.clock(state, ROW, 0.3, Late(1e-12))[1]
    fresh = process.native.clock(state_at(process, state.x, state.v), ROW, 0.0, Late(1e-12))[1]
    assert later_ == pytest.approx(fresh, rel=1e-9) and later_ != pytest.approx(first, rel=1e-3)


@BOTH
def test_sticking(kind):
    """What is frozen is at 0 and stays there; thawed coordinates have their remembered velocity; the seed decides."""
    model = regression(PoissonLaw)
    process = Sticky(kind(model), BetaBernoulli(1.0, 1.0), [0], np.array([1.0, 0.5, 0.5]))
    assert process.sticking.tolist() == [1, 2] and process.one_clock
    start = process.anchor.copy()
    start[1] = 0.0
    options = {"initial": start, "events": 400, "seed": 9, "progress": False}
    run, again = pdmp.sample(process, **options), pdmp.sample(process, **options)
    record = run.records[0]
    assert np.array_equal(record.xs, again.records[0].xs) and np.array_equal(record.times, again.records[0].times)
    kinds = run.stats["events"]
    assert kinds["freeze"] > 0 and kinds["thaw"] > 0 and kinds["bounce"] > 0 and run.stats["bound_violations"] == 0
    frozen = (record.xs == 0.0) & (record.vs == 0.0)
    assert frozen.any(axis=0).tolist() == [False, True, True]
    assert np.all(record.xs[frozen] == 0.0) and np.all(record.vs[~frozen] != 0.0)
    state = process.begin(start, np.random.default_rng(0))
    kept = state.memory.coordinates[1, KEPT_VELOCITY]
    assert process.native.thawing(state, 1) == pytest.approx(0.5 * abs(kept) * (1.0 + 1.0) / (1.0 + 2.0 - 1.0 - 1.0))


@BOTH
def test_all_that_moves_frozen(kind):
    """A model without anything that always moves: only thawing is left."""
    X = np.random.default_rng(10).standard_normal((30, 2))
    model = MixedRegression(X, np.arange(30) % 3, PoissonLaw(), ["x", "w"], [Normal(0.0, 1.0)] * 2)
    process = Sticky(kind(model), 0.5)
    state = process.begin(np.zeros(2), np.random.default_rng(0))
    for i in (ROW, KNOWN):
        time, _ = process.native.clock(state, i, 0.0, np.random.default_rng(0))
        assert time == math.inf
    run = pdmp.sample(process, initial=np.zeros(2), events=30, seed=1, progress=False)
    assert run.stats["events"]["thaw"] > 0


def test_what_is_refused():
    with pytest.raises(TypeError, match=r'metric="diagonal"\); got a RegressionBoomerang that'):
        Sticky(RegressionBoomerang(regression(PoissonLaw)), 0.5, (), None, None)
    for kind in (RegressionBPS, diagonal_boomerang):
        with pytest.raises(
            TypeError, match="Regression.* takes a SumOfTerms, or a MixedRegression without groups, got a Gaussian"
        ):
            kind(pdmp.models.Gaussian(0.0, [1.0]))
        with pytest.raises(TypeError, match="without groups, got a GroupIntercepts with groups"):
            kind(regression(PoissonLaw, 3))
        model = regression(StudentTLaw)
        with pytest.raises(ValueError, match="`refresh_rate` must be"):
            kind(model, refresh_rate=-1.0)
        with pytest.raises(ValueError, match="`metric` must be a number or have shape"):
            kind(model, metric=[1.0, 2.0])
        with pytest.raises(ValueError, match="`metric` must be positive definite"):
            kind(model, metric=0.0)
        with pytest.raises(ValueError, match="`anchor`: the Hessian of data and prior is not positive definite there"):
            kind(model, laplace(model).mean + [30.0, 0.0, 0.0, 0.0, 0.0])
        process = kind(regression(PoissonLaw))
        with pytest.raises(RuntimeError, match="Regression.* has left the ball around its anchor"):
            pdmp.sample(process, initial=process.anchor - [2_000.0, 0.0, 0.0], events=5, seed=1, progress=False)


@BOTH
def test_rows_without_weight(kind):
    """All data of weight 0: the prior alone, without a proposal of a row."""
    n = 5
    model = MixedRegression(
        np.ones((n, 1)), np.arange(n), PoissonLaw(), ["Intercept"], [Normal(0.5, 2.0)], intercept=0, weights=np.zeros(n)
    )
    process = kind(model)
    run = pdmp.sample(process, events=50, seed=1, progress=False)
    assert run.stats["data_terms"] == 0 and process.total == 0.0 and process.expected_data == 0.0
    assert process.reference.sd[0] == pytest.approx(2.0) and process.anchor[0] == pytest.approx(0.5, abs=1e-2)
