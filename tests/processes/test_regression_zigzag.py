"""Sub-sampled Zig-Zag of regressions with dispersions and coefficients of groups: rates, bounds, sums and laws."""

import functools
import math
import pickle

import numpy as np
import pytest
from scipy import integrate

import pdmp
from pdmp.automatic import subsampling
from pdmp.expressions.tape import CURVATURE
from pdmp.models import families
from pdmp.models.priors import Gamma, HalfNormal, Normal, derivative
from pdmp.models.regressions import blocks
from pdmp.models.regressions.blocks import Chunks, Crossing, by_group, sums_of_rows
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import _log_spread, laplace
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    StudentTLaw,
    law_of,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.process import HORIZON
from pdmp.processes.regression_zigzag import RECOUNT, RegressionZigZag
from pdmp.processes.row_bounds import BY_FUNCTIONAL, Plan, in_shells
from pdmp.processes.row_expansion import units_of
from pdmp.processes.sticky import Sticky
from tests.checks import assert_unbiased, in_ci, plain_only
from tests.processes.helpers_regression_zigzag import LAWS, OWN, SIZES, crossed, moments_on_a_grid, regression

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]


@functools.cache
def made(name):
    """A process of one of the models, with an anchor that is not the mode."""
    model = MODELS[name]()
    found = laplace(model)
    return RegressionZigZag(model, found.mean + 0.5 * found.sd, metric=pdmp.Metric(scales=found.sd))


def somewhere(process, rng, far=1.0):
    return process.anchor + far * process.speed * rng.standard_normal(process.dim), process.velocity(None, rng)


#: By what groups they have, models of each law.
MODELS = {
    **{name: lambda law=law: regression(law) for name, law in list(LAWS.items())[::2]},
    **{f"{name}, groups": lambda law=law: regression(law, 3) for name, law in list(LAWS.items())[1::2]},
    **{f"{law.__name__}, crossed": lambda law=law: crossed(law) for law in (NormalLaw, LogitLaw)},
    "gamma, groups": lambda: regression(law_of(families.gamma), 3),
    "gamma, many groups": lambda: regression(law_of(families.gamma), 5, n=20),
    "NormalLaw, correlated slopes of many groups": lambda: regression(NormalLaw, 5, n=24, slopes=1, eta=1.0),
    "zero_inflated_poisson, slopes": lambda: regression(law_of(families.zero_inflated_poisson), 3, n=40, slopes=1),
    "own, groups": lambda: regression(law_of(OWN, ["high", "low"]), 3),
    "binomial, groups": lambda: regression(law_of(families.binomial, ["trials"]), 3),
    "weibull, censored, slopes": lambda: regression(law_of(families.weibull, ["censored", "upper"]), 3, n=40, slopes=1),
    "gaussian, known errors, groups": lambda: regression(law_of(families.known_errors(families.gaussian), ["se"]), 3),
    "lognormal, truncated, groups": lambda: regression(
        law_of(families.truncated(families.lognormal, True, False), ["lb"]), 3
    ),
    "NormalLaw, slopes": lambda: regression(NormalLaw, 3, n=40, slopes=1),
    "NormalLaw, correlated slopes": lambda: regression(NormalLaw, 3, n=40, slopes=1, eta=2.0),
    "gamma, correlated slopes": lambda: regression(law_of(families.gamma), 4, n=40, slopes=1, eta=0.7),
    "NegativeBinomialLaw, 2 slopes": lambda: regression(NegativeBinomialLaw, 3, n=40, slopes=2),
    "LogitLaw, 2 slopes": lambda: regression(LogitLaw, 2, n=40, slopes=2),
    "PoissonLaw, 3 crossed": lambda: crossed(PoissonLaw, 3),
    "PoissonLaw, crossed, slopes of the first": lambda: crossed(PoissonLaw, slope=0),
    "NormalLaw, crossed, slopes of the second": lambda: crossed(NormalLaw, 3, slope=1),
}


@pytest.mark.parametrize(("scale", "settles"), [(0.3, False), (1.0, True)])
def test_no_approximation_is_made_at_a_saddle(scale, settles):
    """Responses of 5 and -5 and a search that begins in the middle: with a small scale there is a mode at both."""
    priors = [HalfNormal(scale), Gamma(2.0, 1.0)]
    y = np.repeat([5.0, -5.0], 10)
    model = MixedRegression(
        np.ones((20, 1)), y, StudentTLaw(), ["Intercept"], [Normal(0.0, 10.0)], [], priors, intercept=0
    )
    assert model.initial[0] == 0.0
    found = laplace(model)
    assert (found is not None) == settles
    assert not settles or found.mean[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("groupings", "slope"), [(2, None), (3, None), (2, 0), (3, 1)])
def test_the_law_of_crossed_groups_is_that_of_mixed_regression(groupings, slope):
    """U of the coefficients is U of the effects and a normal law of the gauges, whatever the shifts."""
    model, usual = (
        crossed(NormalLaw, groupings, slope=slope, kind=kind) for kind in (GroupIntercepts, MixedRegression)
    )
    usual.centred[:] = 1
    rng, first, last, found = np.random.default_rng(0), model.first[0], model.first[-1], []
    heads = np.flatnonzero(model.head == np.arange(model.n_groups))
    assert model.dim == usual.dim + groupings - 1
    assert (model.stiffness > 0.0).tolist() == [k in heads[1:] for k in range(model.n_groups)]
    for _ in range(4):
        u, shifts = usual.initial + 0.5 * rng.standard_normal(usual.dim), rng.standard_normal(groupings - 1)
        x, gauges = np.r_[u[:last], np.zeros(groupings - 1), u[last:]], 0.0
        x[model.means[heads]] = np.r_[u[0] - shifts.sum(), shifts]
        for columns in model.groupings():
            own = slice(model.first[columns[0]], model.first[columns[-1] + 1])
            mixing = np.linalg.inv(model.mixing[np.ix_(columns, columns)])
            means = x[model.means[list(columns)], None]
            x[own] = (mixing @ x[own].reshape(len(columns), -1) + means).ravel()
        for k in heads[1:]:
            own = model.of_column(k)
            assert model.share[own].sum() == pytest.approx(1.0)
            gauges += 0.5 * model.stiffness[k] * (model.share[own] @ x[first:last][own]) ** 2
        found.append(model.potential(x) - usual.potential(u) - gauges)
        for name, value in usual.constrain(u).items():
            np.testing.assert_allclose(model.constrain(x)[name], value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.margins(x), usual.margins(u), rtol=1e-9)
        natural = model.unconstrained(model.constrain(x))
        for name, value in usual.constrain(u).items():
            np.testing.assert_allclose(model.constrain(natural)[name], value, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose([model.native.gauge(natural, k) for k in heads[1:]], 0.0, atol=1e-12)
    # A shift moves each gauge by itself: their law is normal whatever the rest, and integrates to a constant.
    np.testing.assert_allclose(found, 0.0, atol=1e-8)


def test_natural_parameters_of_correlated_effects_lead_back_to_them():
    model = regression(NormalLaw, 3, n=40, slopes=1, eta=2.0)
    x = model.initial + 0.5 * np.random.default_rng(0).standard_normal((5, model.dim))
    natural = model.constrain(x)
    assert np.abs(natural[model.correlation_name]).max() > 0.3
    again = model.constrain(model.unconstrained(natural))
    for name, value in natural.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_rates_balance_the_flow(name):
    """λⱼ(x, v) - λⱼ(x, Fⱼv) = vⱼ ∂ⱼU(x)."""
    process = made(name)
    model = process.model
    model.check_gradient(points=1, data=3)
    x, v = somewhere(process, np.random.default_rng(0))
    rates, scratch = np.zeros((2, model.dim)), np.zeros(model.dim)
    process.native.true_rates(x, v, scratch, rates[0])
    process.native.true_rates(x, -v, scratch, rates[1])
    expected = v * model.gradient(x)
    np.testing.assert_allclose(rates[0] - rates[1], expected, rtol=1e-9, atol=1e-9 * np.abs(rates).max())


@pytest.mark.parametrize("groups", [0, 3])
def test_an_anchor_or_speeds_alone_are_kept(groups):
    """What is not given is that of the posterior's mode."""
    model = regression(PoissonLaw, groups)
    found = laplace(model)
    anchor, speed = found.mean + 0.5 * found.sd, np.linspace(0.1, 0.4, model.dim)
    for given, expected in (
        ({"anchor": anchor}, (anchor, found.sd)),
        ({"metric": pdmp.Metric(scales=speed)}, (found.mean, speed)),
    ):
        process = RegressionZigZag(model, **given)
        np.testing.assert_allclose((process.anchor, process.speed), expected, rtol=1e-12)


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


def rows_of(process, u):
    """The rows of group u, in its grouping."""
    return np.flatnonzero((units_of(process.model, process.layout) == u).any(axis=0))


@pytest.mark.parametrize("name", MODELS)
def test_proposals_have_the_true_rates_and_bounds(name):
    """Each row and coordinate in turn: chance × rate adds up to `true_rates`, below the bound all along the horizon."""
    process, rng, near = (
        made(name),
        np.random.default_rng(1),
        any(word in name for word in ("Binomial", "Student", "weib")),
    )
    model, native, m = process.model, process.native, len(process.shared)
    for far in (0.3, 0.5 if near else 2.0):  # shells of few rows do not reach far
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
                line, total, weights = memory.clocks[i], process.tables.totals[i], 0.0
                data, known = line[1] + line[2] * now, line[3] + line[4] * now
                for row in rows_of(process, i):
                    memory.clocks[i, 5] = row
                    places, parts = zip(*(native.row_part(i, row, n) for n in range(native.parts_of(i))), strict=True)
                    parts = np.array(parts)
                    assert np.all(weights_of(process, row, i) <= parts * (1.0 + 1e-6))  # thirds are differences there
                    assert parts.sum() == pytest.approx(native.row_weight(i, row), rel=1e-12)
                    weights += parts.sum()
                    for n, part in enumerate(parts):
                        if part > 0.0:
                            uniform = Fixed((parts[:n].sum() + 0.5 * part) / parts.sum())
                            rate = native.rate(state, i, now, uniform)
                            assert memory.flipping[0] == places[n]
                            assert rate <= (data + known) * (1.0 + 1e-9)
                            found[places[n]] += rate * data / (data + known) * part / total
                assert weights == pytest.approx(total, rel=1e-12)  # rows are drawn in proportion
                own, width = columns_of(process, i), memory.own.shape[1] // 2
                bounds = np.array([memory.own[i, n] + memory.own[i, width + n] * now for n in range(len(own))])
                assert bounds.sum() == pytest.approx(known, rel=1e-12, abs=1e-300)
                memory.clocks[i, 5] = -1.0
                for n, one in enumerate(bounds):
                    if one > 0.0:
                        rate = native.rate(state, i, now, Fixed((bounds[:n].sum() + 0.5 * one) / known))
                        assert memory.flipping[0] == model.first[own[n]] + process.units[i, 2]
                        assert rate <= (data + known) * (1.0 + 1e-9)
                        found[memory.flipping[0]] += rate * one / (data + known)
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


def columns_of(process, u):
    """The group columns of a group."""
    return range(*process.units[u, :2])


@functools.cache
def bounds_of(process):
    """r²/2 times the norms of all rows' third derivatives, and the third derivatives themselves: (m, n) of each."""
    model, anchor, law, h = process.model, process.anchor, process.model.likelihood, 1e-4
    rows, m = model.row_block(0, 0, model.n_data, anchor, process.scale), model.n_functionals
    plan, thirds = Plan(model.n_data, process.typical_distance), np.zeros((m, model.n_data))
    for i in range(model.n_data):
        at = np.r_[model.native.margin(anchor, i), anchor[model.dim - model.n_dispersions :], 0.0, 0.0][:3]
        for k, step in enumerate(h * np.eye(3)[:m]):
            y = np.r_[model.target[i], model.further[i]][:, None]
            ahead, behind = (law.tapes[CURVATURE](y, eta[:, None])[m, 0] for eta in (at + step, at - step))
            thirds[k, i] = abs(ahead - behind) * model.weight[i] / (4.0 * h)
    norms = plan.norms(model.enclosures[0], rows, BY_FUNCTIONAL)[0]
    return 0.5 * process.typical_distance**2 * norms, thirds


def weights_of(process, row, u):
    """σⱼ ωᵢⱼ of a row's coordinates in the clock of its group u, from the bounds of the model alone."""
    model, speed, levels = process.model, process.speed, process.model.level[row]
    bounds, thirds = (part[:, row] for part in bounds_of(process))
    parts = [speed[levels[k]] * abs(model.value[row, k]) * bounds[0] for k in columns_of(process, u)]
    if process.squares:
        size = np.abs(speed[levels] * model.value[row])
        square = np.where(process.joint != 0.0, size.sum() ** 2, np.sum(size**2))
        reach = process.typical_reach if process.crossed else process.typical_distance
        bounds = bounds + thirds * square * reach**2
    if process.units[u, 0] == 0:
        fixed = len(process.shared) - model.n_dispersions
        parts += [speed[j] * abs(model.X[row, j]) * bounds[0] for j in process.shared[:fixed]]
        parts += [speed[j] * one for j, one in zip(process.shared[fixed:], bounds[1:], strict=True)]
    return np.array(parts)


def limit_of(process, i):
    """The bound of clock i, of a mean, a spread or φ: a function of state and time."""
    k = i - process.groups - 1
    if k == 2 * process.slots:
        return lambda state, now: process.native.bound_of_lean(state, now)
    if k < process.slots:
        return lambda state, now: process.native.bound_of_mean(state, k, now)
    return lambda state, now: process.native.bound_of_spread(state, k - process.slots, now)


def quick(model, which):
    """A process where what the law of the effects depends on moves, and their coefficients hardly do."""
    sd = laplace(model).sd.copy()
    sd[model.first[0] : model.first[-1]] *= 0.05
    sd[model.means] *= 0.05
    if which == "lean":
        sd[model.lean] *= 40.0
    else:
        sd[model.n_fixed : model.n_fixed + 2] *= 5.0
    return RegressionZigZag(model, metric=pdmp.Metric(scales=sd))


@pytest.mark.parametrize(
    "model",
    [
        lambda: regression(PoissonLaw, 3),
        lambda: regression(NormalLaw, 3),
        pytest.param(lambda: regression(NormalLaw, 3, n=40, slopes=2), marks=pytest.mark.slow),
        lambda: regression(NormalLaw, 3, n=40, slopes=1, eta=2.0),
        lambda: quick(regression(NormalLaw, 3, n=40, slopes=1, eta=2.0), "lean"),
        lambda: quick(regression(PoissonLaw, 3, n=40, slopes=1, eta=0.7), "spreads"),
        lambda: regression(law_of(families.gamma), 5, n=20),
        lambda: crossed(PoissonLaw),
        lambda: crossed(NormalLaw, slope=0),
        pytest.param(lambda: crossed(LogitLaw, 3, intercept=0.05), marks=pytest.mark.slow),
    ],
    ids=["counts", "normal", "slopes", "correlated slopes", "correlated, φ", "correlated, spreads", "many groups"]
    + ["crossed counts", "crossed, slopes", "crossed, a narrow prior"],
)
def test_bounds_hold_whatever_flips_in_between(model):
    """Within the horizon of a clock all other coordinates may flip, at any times; D was computed at any time before."""
    process, rng = model(), np.random.default_rng(2)
    process = process if isinstance(process, RegressionZigZag) else RegressionZigZag(process)
    model = process.model
    native, worst, K, spare = process.native, np.zeros(4), process.slots, (model.scratch(), np.zeros(3))
    for _ in range(5):
        x, v = somewhere(process, rng, rng.uniform(0.0, 2.0))
        before = rng.uniform(0.0, 0.24)
        for i in range(process.clocks):
            state = state_at(process, x, v, before)
            outwards = np.sign(x - process.anchor) * process.speed / v  # as far as anything can go
            far_away = rng.random() < 0.5
            ways = outwards if far_away else rng.choice([-1.0, 1.0], model.dim)
            if process.squares:
                earlier = state_at(process, x - before * ways * v, v, 0.0)
                native.renew(earlier, 0.0)
                state.memory.reach[:] = earlier.memory.reach
            native.clock(state, i, before, Fixed(0.5, 0.5, 0.5))
            line, own = state.memory.clocks[i], []
            if i < process.groups:
                end, each = process.horizon[i], state.memory.own[i]
                own = [native.place_of(i, k) for k in columns_of(process, i)]
            elif i == process.groups:
                end, bounds, slopes = process.prior_horizon, state.memory.known, state.memory.slopes
            else:
                top, end = limit_of(process, i)(state, before)
                k = i - process.groups - 1
                own = [process.means[k] if k < K else process.spread + k - K if k < 2 * K else process.lean]
            flips = outwards if far_away else rng.choice([-1.0, 1.0], model.dim)
            flips[own] = 1.0  # a coordinate's own clock is drawn anew when it flips
            t = rng.uniform(0.0, end)
            there, velocity = x + t * flips * v, v * rng.choice([-1.0, 1.0], model.dim)
            velocity[own] = v[own]
            after = state_at(process, there, velocity, 0.0)
            after.memory.here[:] = there
            if process.squares:
                native.renew(after, 0.0)
            prior, out = np.zeros(model.dim), np.zeros(model.dim)
            model.native.add_prior_gradient(there, prior)
            native.true_rates(there, velocity, np.zeros(model.dim), out)
            if i < process.groups:
                data, total, width, pairs = line[1] + line[2] * t, process.tables.totals[i], len(each) // 2, []
                for n, (j, k) in enumerate(zip(own, columns_of(process, i), strict=True)):
                    gauge = model.stiffness[k] * model.share[j - process.first_effect] * model.native.gauge(there, k)
                    partial = native.known_own(after, i, k, 0.0) + prior[j] - gauge  # which is in both
                    pairs.append((velocity[j] * partial, each[n] + each[width + n] * t, 0))
                for row in rows_of(process, i):
                    for n, part in enumerate(weights_of(process, row, i)):
                        q = native.row_part(i, row, n)[0]
                        pairs.append((velocity[q] * native.rest_of(there, row, q, *spare), data * part / total, 1))
            elif i == process.groups:
                pairs = []
                for k, j in enumerate(process.shared):
                    slope = model.derivative_of_prior(process.priors[k], there[j]) + native.known(after, k, 0.0)
                    pairs.append((velocity[j] * slope, bounds[k] + slopes[k] * t, 2))
            else:
                pairs = [(out[own[0]], top, 3)]
            for rate, bound, what in pairs:
                assert rate <= bound * (1.0 + 1e-9)
                worst[what] = max(worst[what], rate / bound) if bound > 0.0 else worst[what]
            if i < process.groups:  # the multiple of the weights, from the positions of all coefficients
                far = (np.abs(there - process.anchor) / process.scale)[process.first_effect :]
                far = np.array([far[model.of_column(k)].max() for k in range(K)])
                others = np.delete(far, columns_of(process, i))
                square = np.sum((((there - process.anchor) / process.scale)[[*process.shared, *own]]) ** 2)
                r = math.sqrt(square + np.sum(others**2))
                ratio = process.growth.share(r, i) * (r / process.typical_distance) ** 2
                if process.crossed:
                    ratio = max(ratio, (far.max() / process.typical_reach) ** 2)
                assert total * ratio <= data * (1.0 + 1e-9)
    assert np.all(worst > [0.7, 0.002, 0.5, 0.5])  # no bound is far above what it bounds, but of rows in tiny groups


@pytest.mark.parametrize("which", ["lean", "spreads"])
def test_bounds_of_what_the_law_of_effects_depends_on_hold_at_many_places(which):
    """Far out, where what the prior and what the effects say cancel, or one of them says nothing."""
    process, rng = quick(regression(NormalLaw, 3, n=40, slopes=1, eta=2.0), which), np.random.default_rng(2)
    worst = np.zeros(process.clocks)
    for _ in range(200):
        x, v = somewhere(process, rng, 4.0)
        state = state_at(process, x, v, 0.0)
        state.bounds[:] = 1.0
        for i in range(process.groups + 1, process.clocks):
            top, horizon = limit_of(process, i)(state, 0.0)
            for t in (0.0, horizon * rng.random()):
                rate = process.native.rate(state, i, t, None)
                assert rate <= top * (1.0 + 1e-9)
                worst[i] = max(worst[i], rate / top) if top > 0.0 else worst[i]
    assert np.all(worst[process.groups + 1 :] > 0.95)


@pytest.mark.parametrize("k", [0, 1])
def test_the_size_of_effects_changes_with_them_and_with_their_mean(k):
    """Where all are on one side of it, and it moves away from them, which is the most that they can."""
    model = regression(NormalLaw, 3, n=40, slopes=1)
    process = RegressionZigZag(model)
    x, v, h = process.anchor.copy(), -process.speed, 1e-3
    x[model.means[k]] += 100.0 * process.speed[model.means[k]]
    v[model.means[k]] *= -1.0
    state, native = state_at(process, x, v, 0.0), process.native
    most = native.root_pace(state, k, 0.0, h)
    before, after = (math.sqrt(native.square_sum(state, k, now)) for now in (0.0, h))
    assert 0.7 * most < (after - before) / h <= most * (1.0 + 1e-9)
    assert most > 1.5 * native.root_of_speeds[k]  # the means have their part in it


@pytest.mark.parametrize(
    "model",
    [
        lambda: regression(PoissonLaw, 3),
        lambda: regression(PoissonLaw, 3, slopes=2),
        lambda: regression(PoissonLaw, 3, slopes=1, eta=1.0),
        lambda: regression(NormalLaw, 5, n=20),
        lambda: crossed(StudentTLaw, slope=1),
    ],
    ids=["intercepts", "slopes", "correlated slopes", "many groups", "crossed, slopes"],
)
def test_sums_are_those_of_the_path(model):
    model = model()
    process = RegressionZigZag(model)
    state = process.begin(process.anchor, np.random.default_rng(0))
    native, rng, now = process.native, np.random.default_rng(4), 0.0
    if process.squares:
        native.renew(state, now)
    for _ in range(60):
        j = int(rng.integers(model.dim))
        now += rng.exponential(0.3)
        state.x[j] += state.v[j] * (now - state.moved[j])
        state.moved[j], state.memory.flipping[0] = now, j
        native.jump(state, 0, now, None)
    x, first, sums = state.x + state.v * (now - state.moved), process.first_effect, state.memory.sums
    effects = slice(first, int(model.first[-1]))
    for t in range(process.slots):
        e = np.array([model.native.deviation(x, t, g) for g in range(native.size(t))])
        assert native.excess(state, t, now) == pytest.approx(-e.sum(), rel=1e-9)
        assert native.square_sum(state, t, now) == pytest.approx((e**2).sum(), rel=1e-9)
        own = [state.v[effects][model.of_column(q)] for q in range(t, model.end[t])]
        speeds = model.mixing[t, t : model.end[t]] @ np.stack(own)
        assert sums[t, 5] == pytest.approx((speeds**2).sum(), rel=1e-9)
        ends = range(t, model.end[t])
        most = [process.speed[effects][model.of_column(q)] + process.speed[model.means[q]] for q in ends]
        most = np.abs(model.mixing[t, t : model.end[t]]) @ np.stack(most)  # the largest slope of each effect
        np.testing.assert_allclose(process.effect_speeds[model.of_column(t)], most, rtol=1e-12)
        if process.stiffness[t] > 0.0:
            gauges = model.native.gauge(x, t), model.native.gauge(state.v, t)
            np.testing.assert_allclose(sums[t, 6:], gauges, rtol=1e-9, atol=1e-9)
    away, v, cross = (x - process.anchor)[effects], state.v[effects], state.memory.cross
    np.testing.assert_allclose(cross[:, 0], away @ process.border, rtol=1e-9, atol=1e-9)
    if process.squares:
        np.testing.assert_allclose(cross[:, 2], away**2 @ process.bulge, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(cross[:, 3], away * v @ process.bulge, rtol=1e-9, atol=1e-9)


def test_shifts_change_nothing_of_means_and_spreads():
    """Of a constant that is added to one grouping and its mean, and subtracted from another, they do not know."""
    model = crossed(PoissonLaw, 3)
    process = RegressionZigZag(model)
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
    process = RegressionZigZag(crossed(law, groupings))
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
    state.x[process.first_effect + 1], state.memory.reach[-1] = math.nan, -math.inf
    native.renew(state, 0.0)  # what is not a number is seen, whatever comes after it
    assert np.isnan(state.memory.reach[: process.slots]).any()


@pytest.mark.parametrize(
    ("law", "groupings", "joint"),
    [(StudentTLaw, 2, [0.0, 0.0, 0.0]), (PoissonLaw, 3, [0.0]), (NormalLaw, 3, [0.0, -1.0])],
)
def test_the_crossing_is_that_of_the_path(law, groupings, joint):
    """After thousands of flips, by which its lines are moved; they are summed anew now and then.

    Of σ of normal responses ℓ'' falls as σ⁻², so that half its derivative by log σ is -ℓ'' in all rows.
    """
    model = crossed(law, groupings)
    process = RegressionZigZag(model)
    state = process.begin(process.anchor, np.random.default_rng(0))
    native, rng, now = process.native, np.random.default_rng(5), 0.0
    effects = slice(process.first_effect, process.first_effect + process.groups)
    bends, rows = sums_of_rows(model, process.anchor).curvatures, np.zeros((model.n_data, process.groups))
    rows[np.arange(model.n_data)[:, None], model.level - process.first_effect] = 1.0
    assert process.pairs.nbytes + process.pair_curvature.nbytes <= 12 * groupings * (groupings - 1) * model.n_data
    across = np.where(process.column[:, None] != process.column, rows.T @ (bends[:, None] * rows), 0.0)
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
        expected = np.stack([away, state.v[effects]]) @ across
        lines = state.memory.across
        found = lines[:, 0] + lines[:, 1] * (later - since), lines[:, 1]
        np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy * np.abs(expected).max())
        native.advance_sums(state.memory, later)
        expected = [away @ expected[0], state.v[effects] @ expected[0], state.v[effects] @ expected[1]]
        np.testing.assert_allclose(state.memory.joint, expected, rtol=accuracy, atol=10.0 * accuracy * process.groups)
    np.testing.assert_allclose(process.joint, joint, rtol=1e-9)
    sigma, expected = process.speed[effects], 2.0 * process.speed[effects] ** 2 @ np.abs(process.bulge)
    expected[len(expected) - model.n_dispersions :] += np.abs(joint[1:]) * (2.0 * sigma @ np.abs(across) @ sigma)
    np.testing.assert_allclose(process.bulge_rises, expected, rtol=1e-9)  # slopes where no distance is above σ


def test_rows_are_proposed_as_often_as_they_bound():
    """A proposal is of the rows with the share that they have in the bound at its time, and then one of the group's."""
    model = crossed(PoissonLaw, 3)
    process = RegressionZigZag(model)
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
        assert model.level[rows[0], process.column[e]] == process.first_effect + e
        assert rows[1] == -1


def replicates(process, time, runs=16):
    """Means and variances of independent runs, none of them with a violation."""
    found, means, variances = laplace(process.model), [], []
    for seed in range(runs):
        start = found.draws(1, np.random.default_rng(100 + seed))[0]
        run = pdmp.sample(process, initial=start, time=time, seed=seed, warmup=0.05, progress=False)
        assert run.stats["bound_violations"] == 0
        means.append(run.mean())
        variances.append(run.var())
    return np.array(means), np.array(variances)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n"), [(NormalLaw, 60), pytest.param(NegativeBinomialLaw, 200, marks=pytest.mark.release), (PoissonLaw, 20)]
)
def test_laws_with_dispersions(law, n):
    """Of an intercept and a dispersion, or a slope, against quadrature."""
    model = regression(law, n=n, columns=2 if law is PoissonLaw else 1)
    found = laplace(model)
    axes = [np.linspace(m - 7.0 * s, m + 7.0 * s, 57) for m, s in zip(found.mean, found.sd, strict=True)]
    potential = np.vectorize(lambda *x: -model.potential(np.array(x)))
    mean, variance = moments_on_a_grid(potential, axes)
    means, variances = replicates(RegressionZigZag(model), 150.0 if law is PoissonLaw else 60.0)
    assert_unbiased(means, mean, resolution=0.75 * np.sqrt(variance))
    assert_unbiased(variances, variance, resolution=1.2 * variance)


@pytest.mark.slow
@pytest.mark.parametrize("sort", in_ci([None, "g"], None))
def test_law_with_groups(sort):
    """Two groups of counts: β₀ and log τ by quadrature of the integrals over each w; rows in either order."""
    model = regression(PoissonLaw, 2, n=40, columns=1, sort=sort)
    first, found = int(model.first[0]), laplace(model)
    w = np.linspace(-4.0, 4.0, 401)
    likelihoods = []
    for g in range(2):
        rows = np.flatnonzero(model.level[:, 0] == first + g)
        x = np.zeros(model.dim)
        terms = np.zeros(len(w))
        for k, value in enumerate(w):
            x[first + g] = value
            terms[k] = -sum(model.native.term_potential(x, i) for i in rows)
        likelihoods.append(np.exp(terms - terms.max()))

    def density(b, s):
        total = 0.0
        for part in likelihoods:
            law = np.exp(-0.5 * ((w - b[..., None]) / np.exp(s[..., None])) ** 2 - s[..., None])
            total = total + np.log(integrate.simpson(part * law, x=w, axis=-1) + 1e-200)
        prior = np.vectorize(lambda b, s: 0.5 * (b / 2.0) ** 2 + 0.5 * (np.exp(s) / 1.5) ** 2 - s)
        return total - prior(b, s)

    axes = [np.linspace(-6.0, 6.0, 81), np.linspace(-4.5, 2.5, 141)]
    mean, variance = moments_on_a_grid(density, axes)
    process = RegressionZigZag(model, found.mean, metric=pdmp.Metric(scales=np.r_[np.sqrt(variance), found.sd[2:]]))
    means, variances = replicates(process, 150.0)
    assert_unbiased(means[:, :2], mean, resolution=0.6 * np.sqrt(variance))
    assert_unbiased(variances[:, :2], variance, resolution=1.2 * variance)


@pytest.mark.slow
def test_inclusion_of_a_column_of_counts():
    """A coefficient that may be 0, by quadrature over both models."""
    n, sd, prior = 30, 0.8, 0.3
    rng = np.random.default_rng(8)
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    model = MixedRegression(
        X,
        rng.poisson(np.exp(0.5 + 0.3 * X[:, 1])),
        PoissonLaw(),
        ["Intercept", "x"],
        [Normal(0.0, 2.0), Normal(0.0, sd)],
        intercept=0,
        inclusion=[1.0, prior],
    )
    axes = [np.linspace(-1.0, 2.0, 61), np.linspace(-1.2, 1.2, 81)]
    slab = np.array([[math.exp(-model.potential([b, c])) for c in axes[1]] for b in axes[0]])
    spike = np.array([math.exp(-model.potential([b, 0.0])) for b in axes[0]])
    density = float(model.slab_density()[1])  # the potential leaves out the normaliser of the slab
    included = prior * density * integrate.simpson(integrate.simpson(slab, x=axes[1]), x=axes[0])
    truth = included / (included + (1.0 - prior) * integrate.simpson(spike, x=axes[0]))
    assert 0.1 < truth < 0.9
    process, found = Sticky(RegressionZigZag(model)), []
    for seed in range(30):
        run = pdmp.sample(process, initial=process.anchor, time=150.0, seed=seed, warmup=0.05, progress=False)
        assert run.stats["bound_violations"] == 0
        found.append(pdmp.diagnostics.inclusion(run)[1])
    assert_unbiased(np.array(found)[:, None], [truth], resolution=0.45)


@pytest.mark.parametrize("model", [lambda: regression(PoissonLaw, 3), lambda: crossed(PoissonLaw, 3)])
def test_each_proposal_looks_at_one_row_at_most_and_a_run_goes_on_from_its_checkpoint(model, tmp_path):
    process = RegressionZigZag(model())
    options = {"initial": process.anchor, "seed": 1, "chains": 1, "progress": False}
    whole = pdmp.sample(process, events=40, **options)
    for events in (20, 40):
        parts = pdmp.sample(process, events=events, checkpoint=tmp_path / "run", **options)
    assert parts.stats["proposals"] == whole.stats["proposals"]
    np.testing.assert_array_equal(parts.draws(20), whole.draws(20))
    assert 0 < whole.stats["data_terms"] <= whole.stats["proposals"] and whole.stats["bound_violations"] == 0
    assert process.expected_data == pytest.approx(process.tables.totals.sum())


@pytest.mark.parametrize("sort", ["y", "g", "h"])
def test_sorted_rows_are_shuffled_rows(sort):
    """All that the process knows of the rows is the same, but for the order in which they are listed."""
    for law in (NormalLaw, PoissonLaw):
        one, other = (RegressionZigZag(crossed(law, 3, sort=order)) for order in (None, sort))
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
            assert np.all(other.model.level[rows, other.column[e]] == other.first_effect + e)


def test_the_approximation_is_at_the_mode():
    model = regression(NegativeBinomialLaw)
    found = laplace(model)
    assert np.abs(model.gradient(found.mean) * found.sd).max() < 1e-2
    covariance = np.linalg.inv(model.hessian(found.mean))  # of the Student-t prior `laplace` has a bound
    np.testing.assert_allclose(found.covariance, covariance, rtol=5e-3, atol=1e-4)
    starts = found.draws(4_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(starts.T) / np.outer(found.sd, found.sd), _correlation(found), atol=0.08)
    for grouped in (regression(NormalLaw, 3, n=60), regression(PoissonLaw, 3, n=120, slopes=1)):
        found, p = laplace(grouped), grouped.n_fixed
        given = np.setdiff1d(np.arange(grouped.dim), np.arange(p, p + grouped.n_groups))
        assert np.abs((grouped.gradient(found.mean) * found.sd)[given]).max() < 1e-2
        hessian = grouped.hessian(found.mean)[np.ix_(given, given)]  # given τ
        np.testing.assert_allclose(found.sd[given], np.sqrt(np.diag(np.linalg.inv(hessian))), rtol=2e-3)


@plain_only
def test_the_prior_of_a_leaning_effect_is_bounded_by_how_fast_it_changes():
    """With e₀ = M₀₀ d₀ + (M₀₁ - φ M₁₁) d₁, |e₀'| <= s₀ + |φ| s₁ + |φ'| |e₁| at the worst within the horizon h."""
    process = made("NormalLaw, correlated slopes")
    process.effect_speeds = np.where(np.arange(len(process.effect_speeds)) % 2, 0.2, 3.0) * process.effect_speeds
    x, v = somewhere(process, np.random.default_rng(1), 0.3)
    for u in range(process.groups):
        state, h = state_at(process, x, v, 0.0), process.horizon[u]
        process.clock(state, u, 0.0, Fixed(0.5, 0.5, 0.5))
        j = process.place_of(u, 0)
        s0, s1 = (process.effect_speeds[process.place_of(u, t) - process.first_effect] for t in (0, 1))
        turn = process.speed[process.lean]
        e0, e1 = (process.effect(state, u, t, 0.0) for t in (0, 1))
        pace = s0 + (abs(x[process.lean]) + turn * h) * s1 + turn * (abs(e1) + s1 * h)
        (m, change), high = (
            process.mixed(state, 0, 0, 0.0),
            np.exp(-2.0 * (x[process.spread] - process.speed[process.spread] * h)),
        )
        rise = process.own_rises[j - process.first_effect] + high * (change * (abs(e0) + pace * h) + abs(m) * pace)
        width = state.memory.own.shape[1] // 2
        assert state.memory.own[u, width] == pytest.approx(process.speed[j] * rise, rel=1e-12)


def test_the_regression_of_correlated_effects_is_where_their_products_are():
    """That of the sums of the effects' squares and products, with what the rows leave open; and its error."""
    model = regression(NormalLaw, 5, n=500, slopes=1, eta=1.0)
    found, s, first = laplace(model), model.n_fixed, int(model.first[0])
    x, effects = found.mean, np.arange(first, int(model.first[-1]))
    u, v = (np.array([model.native.deviation(x, k, g) for g in range(5)]) for k in (0, 1))
    covariance = np.linalg.inv(model.hessian(x)[np.ix_(effects, effects)])
    a, b = model.mixing_at(x)[0], model.mixing[1, 1]
    between = sum(b * (a @ covariance[np.ix_([g, 5 + g], [g, 5 + g])])[1] for g in range(5))
    size = v @ v + b * b * np.trace(covariance[5:, 5:])
    assert abs(u @ v + between) < 0.1 * found.sd[model.lean] * size  # else the derivative is not 0
    assert 0.7 < found.sd[model.lean] / (math.exp(x[s]) / math.sqrt(size)) < 2.0
    assert math.exp(x[s] - x[s + 1]) > 5.0  # spreads are not the same


@pytest.mark.parametrize("eta", [None, 1.0])
def test_correlated_effects_of_which_little_is_known_are_sampled_otherwise(eta, monkeypatch):
    """Others only where their standard deviation takes long besides."""
    monkeypatch.setattr(subsampling, "UNKNOWN_SHARE", 0.0)
    monkeypatch.setattr(subsampling, "WAITING_ROWS", 0.0)
    model = regression(NormalLaw, 3, n=40, slopes=1, eta=eta)
    said = subsampling.little_known(model, laplace(model))
    assert said == ("" if eta is None else "they say too little of the effects 1|g")


def _correlation(found):
    return found.covariance / np.outer(found.sd[found.dense], found.sd[found.dense])


@pytest.mark.parametrize(
    ("law", "groupings"),
    [(NormalLaw, 2), pytest.param(NegativeBinomialLaw, 2, marks=pytest.mark.slow), (PoissonLaw, 3)],
)
def test_the_approximation_of_crossed_groups_is_at_the_mode(law, groupings):
    """Of all but the dispersions, which have the effects integrated out, and the spreads, whose EM steps have ended."""
    model = crossed(law, groupings, n=200)
    found, p, first = laplace(model), model.n_fixed, model.first[0]
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


@pytest.mark.parametrize("slope", [None, 0, 1])
def test_sums_over_the_rows_of_crossed_groups_are_those_of_matrices(slope, monkeypatch):
    """Of a law whose curvature depends on all; in one chunk, and in several."""
    model, rng = crossed(NegativeBinomialLaw, 3, n=90, slope=slope), np.random.default_rng(5)
    model.level[45:] = model.level[:45]  # pairs of several rows
    x = model.initial + 0.1 * rng.normal(size=model.dim)
    first, E, rows = int(model.first[0]), int(model.first[-1] - model.first[0]), np.arange(model.n_data)
    Z, grouping = np.zeros((model.n_data, E)), np.zeros(E, np.int64)
    for k in range(model.n_groups):
        Z[rows, model.level[:, k] - first] = model.value[:, k]
        grouping[model.of_column(k)] = model.head[k]
    found = sums_of_rows(model, x, thirds=True)
    whole = Z.T @ (found.curvatures[:, None] * Z)
    apart = grouping[:, None] < grouping
    np.testing.assert_allclose(Crossing(model).matrix(found.curvatures).toarray(), whole * apart, rtol=1e-12)
    for k, columns in enumerate(model.groupings()):
        block = Chunks(model).curvature(x)[1][k]
        for a, one in enumerate(columns):
            for b, other in enumerate(columns):
                expected = np.diag(whole[model.of_column(one), model.of_column(other)])
                np.testing.assert_allclose(block[:, a, b], expected, rtol=1e-12)
    h = 1e-5 * (np.arange(model.dim) == model.dim - 1)
    above, below = (sums_of_rows(model, x + sign * h) for sign in (1.0, -1.0))
    np.testing.assert_allclose(found.changes[0], (above.own - below.own) / 2e-5, rtol=1e-5, atol=1e-8)
    wide = Z**2 * found.thirds[1][:, None]
    np.testing.assert_allclose(found.bulge[:, -1], wide.sum(axis=0), rtol=1e-12)
    one = laplace(model)
    monkeypatch.setattr(blocks, "CHUNK", 17)
    monkeypatch.setattr(blocks, "ROWS_OF_COEFFICIENT", 0)
    many = laplace(model)
    np.testing.assert_allclose(many.mean, one.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(many.sd, one.sd, rtol=1e-7)


def test_rows_are_counted_into_the_order_of_their_groups():
    level = np.random.default_rng(3).choice([0, 1, 2, 4], 50).astype(np.int32)  # no row of one of the groups
    order, begin = by_group(level, 6)
    np.testing.assert_array_equal(order, np.argsort(level, kind="stable"))
    np.testing.assert_array_equal(begin, np.searchsorted(np.sort(level), np.arange(7)))


def test_what_is_refused():
    with pytest.raises(TypeError, match="takes a MixedRegression without groups, or GroupIntercepts, got a Gaussian"):
        RegressionZigZag(pdmp.models.Gaussian(0.0, [1.0]))
    n = 6
    column = GroupColumn("x|g", "g", (0, 1), np.arange(n) % 2, np.arange(n) + 1.0, HalfNormal(1.0))
    arguments = np.ones((n, 1)), np.arange(n), PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)], [column]
    with pytest.raises(TypeError, match="without groups"):
        RegressionZigZag(MixedRegression(*arguments))
    with pytest.raises(ValueError, match="intercepts of groups are for a fixed intercept and groupings"):
        GroupIntercepts(*arguments, intercept=0)


def test_a_law_of_ones_own_is_carried_without_its_functions():
    """To processes of chains, which have no need of them: all they look at are tapes and links."""
    model = regression(law_of(OWN, ["high", "low"]), 3)
    other, x = pickle.loads(pickle.dumps(model)), model.initial + 0.1
    assert other.potential(x) == model.potential(x)
    assert np.array_equal(other.gradient(x), model.gradient(x))
    assert np.array_equal(other.constrain(x)["shape"], model.constrain(x)["shape"])
    with pytest.raises(ValueError, match=r"of a pdmp.Family of another process"):
        other.pointwise_log_likelihood(x)


def test_bounds_of_many_rows_hardly_grow_as_far_as_paths_go():
    """Of censored rows, whose bounds at eleven standard deviations are far above those near the mode, or infinite."""
    model = regression(law_of(families.lognormal, ["censored", "upper"]), 3)
    found = laplace(model)
    few = model.row_block(0, 0, model.n_data, found.mean, 0.06 * found.sd)  # as if there were 300 times as many
    plan = Plan(10**6, 1.0)
    factors = np.append(in_shells(plan.norms(model.enclosures[0], few, BY_FUNCTIONAL)).factors[0], np.inf)
    for distance, most in ((1.0, 1.0), (2.5, 2.0), (4.0, 3.0), (6.0, 10.0)):
        assert factors[np.searchsorted(plan.radii, distance)] <= most, (distance, factors)
