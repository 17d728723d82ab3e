"""Sub-sampled Zig-Zag of regressions with crossed intercepts: its law of the shifts, rates, bounds, sums and laws."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.expressions.tape import CURVATURE
from pdmp.models.priors import HalfNormal, Normal, derivative
from pdmp.models.regressions.crossed_intercepts import CrossedIntercepts
from pdmp.models.regressions.laplace import _log_spread, row_curvatures
from pdmp.models.regressions.laplace_crossed import laplace_crossed
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.process import HORIZON
from pdmp.processes.crossed_zigzag import RECOUNT, CrossedZigZag
from pdmp.processes.row_bounds import BY_FUNCTIONAL, Plan
from tests.processes.helpers_crossed_zigzag import SIZES, regression

pytestmark = pytest.mark.exact

LAWS = {law.__name__: law for law in (NormalLaw, StudentTLaw, LogitLaw, ProbitLaw, PoissonLaw, NegativeBinomialLaw)}


CASES = [(law, 3 - k % 2) for k, law in enumerate(LAWS.values())]
NAMES = [f"{law.__name__}, {groupings} groupings" for law, groupings in CASES]


def somewhere(process, rng, far=1.0):
    return process.anchor + far * process.speed * rng.standard_normal(process.dim), process.velocity(None, rng)


@pytest.mark.parametrize(("law", "groupings"), CASES, ids=NAMES)
def test_the_law_is_that_of_mixed_regression(law, groupings):
    """U of the coefficients is U of the effects and a normal law of the gauges, whatever the shifts."""
    model, usual = regression(law, groupings), regression(law, groupings, kind=MixedRegression)
    usual.centred[:] = 1
    model.check_gradient()
    rng, first, last = np.random.default_rng(0), model.first[0], model.first[-1]
    assert model.dim == usual.dim + groupings - 1 and np.all(model.stiffness[1:] > 0.0)
    found = []
    for _ in range(4):
        u = usual.initial + 0.5 * rng.standard_normal(usual.dim)
        shifts = rng.standard_normal(groupings - 1)
        x = np.r_[u[:last], np.zeros(groupings - 1), u[last:]]
        x[model.means] = np.r_[u[0] - shifts.sum(), shifts]
        gauges = 0.0
        for k in range(groupings):
            own = slice(model.first[k], model.first[k + 1])
            x[own] += x[model.means[k]]
            gauges += 0.5 * model.stiffness[k] * (model.share[own.start - first : own.stop - first] @ x[own]) ** 2
        found.append(model.potential(x) - usual.potential(u) - gauges)
        for name, value in usual.constrain(u).items():
            assert np.allclose(model.constrain(x)[name], value)
        assert np.allclose(model.margins(x), usual.margins(u))
    # A shift moves each gauge by itself: their law is normal whatever the rest, and integrates to a constant.
    assert np.allclose(found, 0.0, atol=1e-8)
    for k in range(1, groupings):
        assert model.share[model.first[k] - first : model.first[k + 1] - first].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("law", "groupings"), CASES, ids=NAMES)
def test_rates_balance_the_flow(law, groupings):
    """λⱼ(x, v) - λⱼ(x, Fⱼv) = vⱼ ∂ⱼU(x), and no anchor changes that."""
    model = regression(law, groupings)
    rng, found = np.random.default_rng(0), laplace_crossed(model)
    for move in (0.5,):
        process = CrossedZigZag(model, found.mean + move * found.sd, metric=pdmp.Metric(scales=found.sd))
        x, v = somewhere(process, rng)
        rates, scratch = np.zeros((2, model.dim)), np.zeros(model.dim)
        process.native.true_rates(x, v, scratch, rates[0])
        process.native.true_rates(x, -v, scratch, rates[1])
        expected = v * model.gradient(x)
        np.testing.assert_allclose(rates[0] - rates[1], expected, rtol=1e-9, atol=1e-9 * np.abs(rates).max())


class Fixed:
    """A generator whose numbers are given in advance."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)

    def standard_exponential(self):
        return 1e-3


def state_at(process, x, v, at):
    """At x at the time `at`, and begun at the time 0."""
    state = process.begin(x, np.random.default_rng(0))
    state.x[:], state.v[:], state.moved[:] = x - at * v, v, 0.0
    process.prepare(state)
    return state


@pytest.mark.parametrize(("law", "groupings"), CASES, ids=NAMES)
def test_proposals_have_the_true_rates_and_bounds(law, groupings):
    """Each row and coordinate in turn: chance × rate adds up to `true_rates`, below the bound all along the horizon."""
    model = regression(law, groupings)
    process, rng = CrossedZigZag(model), np.random.default_rng(1)
    native, m = process.native, len(process.shared)
    for far in (0.3, 0.5 if law in (NegativeBinomialLaw, StudentTLaw) else 2.0):  # shells of few rows do not reach far
        x, v = somewhere(process, rng, far)
        out, scratch, found = np.zeros(model.dim), np.zeros(model.dim), np.zeros(model.dim)
        native.true_rates(x, v, scratch, out)
        for i in range(process.clocks):
            horizon = process.horizon[i] if i < process.groups else process.prior_horizon
            if i > process.groups:
                _, horizon = limit_of(process, i)(state_at(process, x, v, 0.0), 0.0)
            now = 0.7 * horizon
            state = state_at(process, x, v, now)
            memory = state.memory
            native.clock(state, i, 0.0, Fixed(0.5, 0.5, 0.5))
            state.bounds[i] = 1.0
            if i < process.groups:
                line, total = memory.clocks[i], process.tables.totals[i]
                data, known = line[1] + line[2] * now, line[3] + line[4] * now
                k, level = process.grouping[i], process.first_effect + i
                rows, weights = np.flatnonzero(model.level[:, k] == level), 0.0
                for row in rows:
                    memory.clocks[i, 5] = row
                    shared = range(m if k == 0 else 0)
                    parts = np.array(
                        [process.speed[level] * process.parts[row, 0], *(native.shared_part(row, n) for n in shared)]
                    )
                    assert np.all(weights_of(process, row, k) <= parts * (1.0 + 1e-6))  # thirds are differences there
                    weights += parts.sum()
                    for n, part in enumerate(parts):
                        if part > 0.0:
                            uniform = Fixed((parts[:n].sum() + 0.5 * part) / parts.sum())
                            rate = native.rate(state, i, now, uniform)
                            assert memory.flipping[0] == (level if n == 0 else process.shared[n - 1])
                            assert rate <= (data + known) * (1.0 + 1e-9)
                            found[memory.flipping[0]] += rate * data / (data + known) * part / total
                assert weights == pytest.approx(total, rel=1e-12)  # rows are drawn in proportion
                if known > 0.0:
                    memory.clocks[i, 5] = -1.0
                    rate = native.rate(state, i, now, None)
                    assert memory.flipping[0] == level and rate <= (data + known) * (1.0 + 1e-9)
                    found[level] += rate * known / (data + known)
            elif i == process.groups:
                bounds = memory.known + memory.slopes * now
                for k in range(m):
                    if bounds[k] > 1e-12 * bounds.sum():
                        state = state_at(process, x, v, now)
                        native.clock(state, i, 0.0, Fixed())
                        state.bounds[i] = 1.0
                        uniform = Fixed((bounds[:k].sum() + 0.5 * bounds[k]) / bounds.sum())
                        rate = native.rate(state, i, now, uniform)
                        assert state.memory.flipping[0] == process.shared[k]
                        assert rate <= bounds.sum() * (1.0 + 1e-9)
                        found[process.shared[k]] += rate * bounds[k] / bounds.sum()
            else:
                top, length = limit_of(process, i)(state_at(process, x, v, now), 0.0)
                rate = native.rate(state, i, now, None)
                assert now > length or rate <= top * (1.0 + 1e-9)
                found[memory.flipping[0]] += rate
        np.testing.assert_allclose(found, out, rtol=1e-8, atol=1e-9 * np.abs(out).max())


def weights_of(process, row, k):
    """σⱼ ωᵢⱼ of a row's coordinates in the clock of its group in grouping k, from the bounds of the model alone."""
    model, anchor, speed = process.model, process.anchor, process.speed
    r, levels, m = process.typical_distance, model.level[row], model.n_functionals
    rows = model.row_block(0, row, row + 1, anchor, process.scale)
    plan = Plan(model.n_data, r)
    bounds = 0.5 * r * r * plan.norms(model.enclosures[0], rows, BY_FUNCTIONAL)[0, :, 0]
    law, y, h = model.likelihood, model.target[row], 1e-4
    at, thirds = np.array([model.native.margin(anchor, row), 0.0, 0.0]), []
    at[1:m] = anchor[model.dim - model.n_dispersions :]
    for step in h * np.eye(3)[:m]:
        ahead, behind = (law.at(CURVATURE, m, z, y, *others) for z, *others in (at + step, at - step))
        thirds.append(abs(ahead - behind) * model.weight[row] / (4.0 * h))
    square = np.sum(speed[levels] ** 2) * process.typical_reach**2
    parts = [speed[levels[k]] * bounds[0]]
    if k == 0:
        fixed = len(process.shared) - model.n_dispersions
        by = bounds + np.array(thirds) * square
        parts += [speed[j] * abs(model.X[row, j]) * by[0] for j in process.shared[:fixed]]
        parts += [speed[j] * one for j, one in zip(process.shared[fixed:], by[1:], strict=False)]
    return np.array(parts)


def limit_of(process, i):
    """The bound of clock i, of a mean or a spread: a function of state and time."""
    k = i - process.groups - 1
    if k < process.slots:
        return lambda state, now: process.native.bound_of_mean(state, k, now)
    return lambda state, now: process.native.bound_of_spread(state, k - process.slots, now)


@pytest.mark.parametrize(
    ("law", "groupings", "intercept"),
    [
        pytest.param(NormalLaw, 2, 2.0, marks=pytest.mark.slow),
        pytest.param(LogitLaw, 3, 2.0, marks=pytest.mark.slow),
        (LogitLaw, 3, 0.05),
    ],
)
def test_bounds_hold_whatever_flips_in_between(law, groupings, intercept):
    """Within the horizon of a clock all other coordinates may flip, at any times; D was computed at any time before."""
    model = regression(law, groupings, intercept=intercept)
    process, rng = CrossedZigZag(model), np.random.default_rng(2)
    native, worst = process.native, np.zeros(4)
    effects = slice(process.first_effect, process.first_effect + process.groups)
    for _ in range(6):
        x, v = somewhere(process, rng, rng.uniform(0.0, 2.0))
        before, spare = rng.uniform(0.0, 0.24), (model.scratch(), np.zeros(3))
        for i in range(process.clocks):
            state = state_at(process, x, v, before)
            outwards = np.sign(x - process.anchor) * process.speed / v  # as far as anything can go
            far_away = rng.random() < 0.5
            ways = outwards if far_away else rng.choice([-1.0, 1.0], model.dim)
            earlier = state_at(process, x - before * ways * v, v, 0.0)
            native.renew(earlier, 0.0)
            state.memory.reach[:] = earlier.memory.reach
            native.clock(state, i, before, Fixed(0.5, 0.5, 0.5))
            line, own = state.memory.clocks[i], []
            if i < process.groups:
                end, own = process.horizon[i], [process.first_effect + i]
            elif i == process.groups:
                end, bounds, slopes = process.prior_horizon, state.memory.known, state.memory.slopes
            else:
                top, end = limit_of(process, i)(state, before)
                k = i - process.groups - 1
                own = [process.means[k] if k < process.slots else process.spread + k - process.slots]
            flips = outwards if far_away else rng.choice([-1.0, 1.0], model.dim)
            flips[own] = 1.0  # a coordinate's own clock is drawn anew when it flips
            t = rng.uniform(0.0, end)
            there, velocity = x + t * flips * v, v * rng.choice([-1.0, 1.0], model.dim)
            velocity[own] = v[own]
            after = state_at(process, there, velocity, 0.0)
            after.memory.here[:] = there
            native.renew(after, 0.0)
            prior, out = np.zeros(model.dim), np.zeros(model.dim)
            model.native.add_prior_gradient(there, prior)
            native.true_rates(there, velocity, np.zeros(model.dim), out)
            if i < process.groups:
                (j,), data, known = own, line[1] + line[2] * t, line[3] + line[4] * t
                k, total = process.grouping[i], process.tables.totals[i]
                u = there[j] - there[process.means[k]]
                partial = native.known_own(after, i, 0.0) + math.exp(-2.0 * there[process.spread + k]) * u
                pairs = [(velocity[j] * partial, known, 0)]
                for row in np.flatnonzero(model.level[:, k] == j):
                    for n, part in enumerate(weights_of(process, row, k)):
                        q = j if n == 0 else process.shared[n - 1]
                        pairs.append(
                            (
                                velocity[q] * native.rest_of(there, row, q, *spare),
                                data * part / total,
                                1,
                            )
                        )
            elif i == process.groups:
                pairs = []
                for k, j in enumerate(process.shared):
                    slope = native.prior_derivative(process.priors[k], there[j]) + native.known(after, k, 0.0)
                    pairs.append((velocity[j] * slope, bounds[k] + slopes[k] * t, 2))
            else:
                pairs = [(out[own[0]], top, 3)]
            for rate, bound, what in pairs:
                assert rate <= bound * (1.0 + 1e-9)
                worst[what] = max(worst[what], rate / bound) if bound > 0.0 else worst[what]
            if i < process.groups:  # the multiple of the weights, from the positions of all coefficients
                far = np.abs(there - process.anchor)[effects] / process.speed[effects]
                far = np.array([far[process.grouping == k].max() for k in range(groupings)])
                square = np.sum((((there - process.anchor) / process.scale)[[*process.shared, *own]]) ** 2)
                r = math.sqrt(square + np.sum(np.delete(far, process.grouping[i]) ** 2))
                ratio = process.growth.share(r, i) * (r / process.typical_distance) ** 2
                ratio = max(ratio, (far.max() / process.typical_reach) ** 2)
                assert process.tables.totals[i] * ratio <= (line[1] + line[2] * t) * (1.0 + 1e-9)
    assert np.all(worst > [0.7, 0.002, 0.5, 0.5])  # no bound is far above what it bounds, but of rows in tiny groups


def test_shifts_change_nothing_of_means_and_spreads():
    """Of a constant that is added to one grouping and its mean, and subtracted from another, they do not know."""
    model = regression(PoissonLaw, 3)
    process = CrossedZigZag(model)
    x, v = somewhere(process, np.random.default_rng(7))
    found = []
    for shift in (0.0, 3.0):
        y = x.copy()
        for k, c in ((0, shift), (2, -shift)):
            y[model.means[k]] += c
            y[model.first[k] : model.first[k + 1]] += c
        state = state_at(process, y, v, 0.0)
        clocks = range(process.groups + 1, process.clocks)
        state.bounds[:] = 1.0
        found.append([(*limit_of(process, i)(state, 0.0), process.native.rate(state, i, 0.0, None)) for i in clocks])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("law", "groupings"), [(StudentTLaw, 2), (PoissonLaw, 3)])
def test_the_slope_of_shared_coordinates_is_bounded_from_the_last_distances(law, groupings):
    """The largest distance may have grown by the time since it was computed, and grows until the horizon."""
    process = CrossedZigZag(regression(law, groupings))
    x, v = somewhere(process, np.random.default_rng(8), 1.5)
    state, native = state_at(process, x, v, 0.0), process.native
    effects = slice(process.first_effect, process.first_effect + process.groups)
    state.memory.reach[-1] = -math.inf
    native.renew(state, 0.0)
    farthest = np.max((np.abs(x - process.anchor) / process.scale)[effects])
    assert np.all(process.bulge_rises > 0.0)
    for later in (0.0, 0.1, 0.24):
        found = [native.rise(state, k, later) for k in range(len(process.shared))]
        reach = farthest + later + process.prior_horizon
        np.testing.assert_allclose(found, process.rises + process.bulge_rises * reach, rtol=1e-12)


@pytest.mark.parametrize(("law", "groupings"), [(StudentTLaw, 2), (PoissonLaw, 3)])
def test_the_crossing_is_that_of_the_path(law, groupings):
    """After thousands of flips, by which its lines are moved; they are summed anew now and then."""
    model = regression(law, groupings)
    process = CrossedZigZag(model)
    state = process.begin(process.anchor, np.random.default_rng(0))
    native, rng, now = process.native, np.random.default_rng(5), 0.0
    effects = slice(process.first_effect, process.first_effect + process.groups)
    bends, rows = row_curvatures(model, process.anchor), np.zeros((model.n_data, process.groups))
    rows[np.arange(model.n_data)[:, None], model.level - process.first_effect] = 1.0
    assert process.pairs.nbytes + process.pair_curvature.nbytes <= 12 * groupings * (groupings - 1) * model.n_data
    crossed = np.where(process.grouping[:, None] != process.grouping, rows.T @ (bends[:, None] * rows), 0.0)
    native.renew(state, now)
    for _ in range(3_000):
        j = int(rng.integers(model.dim))
        now += rng.exponential(RECOUNT / 3_200)
        state.x[j] += state.v[j] * (now - state.moved[j])
        state.moved[j], state.memory.flipping[0] = now, j
        native.jump(state, 0, now, None)
    for since, accuracy in ((0.0, 1e-10), (now + RECOUNT, 1e-13)):  # before and after they are summed anew
        later = since if since else now
        native.renew(state, later)
        assert state.memory.since[0] == since
        away = (state.x + state.v * (later - state.moved) - process.anchor)[effects]
        expected = np.stack([away, state.v[effects]]) @ crossed
        lines = state.memory.across
        found = lines[:, 0] + lines[:, 1] * (later - since), lines[:, 1]
        np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy * np.abs(expected).max())


def test_rows_are_proposed_as_often_as_they_bound():
    """A proposal is of the rows with the share that they have in the bound at its time, and then one of the group's."""
    model = regression(PoissonLaw, 3)
    process = CrossedZigZag(model)
    x, v = somewhere(process, np.random.default_rng(6))
    for e in range(process.groups):
        rows = []
        for side in (-1e-9, 1e-9):
            state = state_at(process, x, v, 0.0)
            line = state.memory.clocks[e]
            time, bound = process.native.clock(state, e, 0.0, Fixed(0.5, 0.5, 0.5))
            share = (line[1] + line[2] * time) / bound
            assert bound > HORIZON and 0.0 < share <= 1.0
            again, _ = process.native.clock(state, e, 0.0, Fixed(share + side, 0.5, 0.0))
            assert again == time
            rows.append(int(line[5]))
        assert model.level[rows[0], process.grouping[e]] == process.first_effect + e
        assert rows[1] == -1


def test_each_proposal_looks_at_one_row_at_most():
    process = CrossedZigZag(regression(PoissonLaw, 3))
    run = pdmp.sample(process, initial=process.anchor, events=80, seed=1, progress=False)
    assert 0 < run.stats["data_terms"] <= run.stats["proposals"] and run.stats["bound_violations"] == 0
    assert process.expected_data == pytest.approx(process.tables.totals.sum())


@pytest.mark.parametrize("sort", ["y", "g", "h"])
def test_sorted_rows_are_shuffled_rows(sort):
    """All that the process knows of the rows is the same, but for the order in which they are listed."""
    for law in (NormalLaw, PoissonLaw):
        one, other = (CrossedZigZag(regression(law, 3, sort=order)) for order in (None, sort))
        for name in (
            "anchor",
            "speed",
            "pull",
            "inner",
            "border",
            "own",
            "own_rises",
            "horizon",
            "pairs",
            "pair_curvature",
        ):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.tables.totals, one.tables.totals, rtol=1e-6)
        for e in range(one.groups):  # the rows of each table are those of its group
            rows = other.tables.table[other.tables.first[e] : other.tables.first[e + 1], 1].astype(int)
            assert np.all(other.model.level[rows, other.grouping[e]] == other.first_effect + e)


@pytest.mark.parametrize(("law", "groupings"), [(NormalLaw, 2), (NegativeBinomialLaw, 2), (PoissonLaw, 3)])
def test_the_approximation_is_at_the_mode(law, groupings):
    """Of all but the dispersions, which have the effects integrated out, and the spreads, whose EM steps have ended."""
    model = regression(law, groupings, n=200)
    found, p, first = laplace_crossed(model), model.n_fixed, model.first[0]
    effects, gradient = np.arange(first, model.first[-1]), model.gradient(found.mean)
    laws = np.arange(model.dim - model.n_dispersions, model.dim)
    given = np.setdiff1d(np.arange(model.dim), np.r_[np.arange(p, first), laws])
    assert np.abs((gradient * found.sd)[given]).max() < 1e-2
    for j in laws:
        step = 1e-4 * (np.arange(model.dim) == j)
        hessians = [model.hessian(found.mean + sign * step)[np.ix_(effects, effects)] for sign in (1.0, -1.0)]
        slope = 0.5 * np.subtract(*[np.linalg.slogdet(h)[1] for h in hessians]) / 2e-4
        assert abs((gradient[j] + slope) * found.sd[j]) < 0.25  # by the diagonal of the Hessian
        assert abs(gradient[j]) > 4.0 * abs(gradient[j] + slope)
    for k in range(groupings):  # so few groups say little beside the prior
        s, numbers = _log_spread(model, k, 2.0), model.numbers[p + k]
        zero = derivative(model.kinds[p + k], *numbers, s) + SIZES[k] - 2.0 * math.exp(-2.0 * s)
        assert zero == pytest.approx(0.0, abs=1e-6)
        own = slice(model.first[k], model.first[k + 1])
        square = np.mean((found.mean[own] - found.mean[model.means[k]]) ** 2 + found.sd[own] ** 2)
        assert math.exp(found.mean[p + k]) == pytest.approx(math.sqrt(square), rel=0.5)
    inverse = np.linalg.inv(model.hessian(found.mean)[np.ix_(given, given)])  # given τ and the dispersions
    ratio = found.sd[given] / np.sqrt(np.diag(inverse))
    assert np.all((ratio > 0.7) & (ratio < 2.3))  # every pair of groups has rows: the worst case for the diagonal
    hessian = model.hessian(found.mean)
    variances = np.diag(np.linalg.inv(hessian[np.ix_(effects, effects)]))
    for k in range(groupings):  # the information on log τ without what the rows leave open; of two groups it is rough
        own = variances[model.first[k] - first : model.first[k + 1] - first] * math.exp(-2.0 * found.mean[p + k])
        expected = 1.0 / math.sqrt(2.0 * np.sum((1.0 - own) ** 2))
        assert found.sd[p + k] == pytest.approx(expected, rel=0.4 if k == 2 else 0.05)
    both = np.r_[given, laws]
    expected = np.sqrt(np.diag(np.linalg.inv(hessian[np.ix_(both, both)])))[len(given) :]
    np.testing.assert_allclose(found.sd[laws], expected, rtol=1e-3)


def test_what_is_refused():
    with pytest.raises(TypeError, match="CrossedZigZag takes CrossedIntercepts, got a Gaussian"):
        CrossedZigZag(pdmp.models.Gaussian(0.0, [1.0]))
    n = 6
    column = GroupColumn("1|g", "g", (0, 1), np.arange(n) % 2, np.ones(n), HalfNormal(1.0))
    slope = GroupColumn("x|h", "h", (0, 1), np.arange(n) % 2, np.arange(n) + 1.0, HalfNormal(1.0))
    arguments = np.ones((n, 1)), np.arange(n), PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)]
    for groups, intercept in (([column], 0), ([column, slope], 0), ([column, column], None)):
        with pytest.raises(ValueError, match="crossed intercepts are for rows in memory"):
            CrossedIntercepts(*arguments, groups=groups, intercept=intercept)
