"""Sub-sampled Zig-Zag of regressions with dispersions and group intercepts: its rates, bounds, sums and laws."""

import math

import numpy as np
import pytest
from scipy import integrate

import pdmp
from pdmp.models.priors import HalfNormal, Normal
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from pdmp.process import HORIZON
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.sticky import Sticky
from tests.checks import assert_unbiased
from tests.processes.helpers_regression_zigzag import LAWS, moments_on_a_grid, regression

pytestmark = pytest.mark.exact


def somewhere(process, rng, far=1.0):
    return process.anchor + far * process.speed * rng.standard_normal(process.dim), process.velocity(None, rng)


CASES = [(law, 3 * (k % 2), 0) for k, law in enumerate(LAWS.values())] + [(NormalLaw, 3, 1), (LogitLaw, 2, 2)]
NAMES = [
    f"{law.__name__}{', groups' * (groups > 0)}{f', {slopes} slopes' * (slopes > 0)}" for law, groups, slopes in CASES
]


@pytest.mark.parametrize(("law", "groups", "slopes"), CASES, ids=NAMES)
def test_rates_balance_the_flow(law, groups, slopes):
    """λⱼ(x, v) - λⱼ(x, Fⱼv) = vⱼ ∂ⱼU(x), and no anchor changes that."""
    model = regression(law, groups, n=40 if slopes else 24, slopes=slopes)
    rng, found = np.random.default_rng(0), laplace(model)
    for shift in (0.5,):
        process = RegressionZigZag(model, found.mean + shift * found.sd, metric=pdmp.Metric(scales=found.sd))
        x, v = somewhere(process, rng)
        rates, scratch = np.zeros((2, model.dim)), np.zeros(model.dim)
        process.native.true_rates(x, v, scratch, rates[0])
        scratch[:] = 0.0
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
    state = process.begin(x, np.random.default_rng(0))
    state.x[:], state.v[:], state.moved[:] = x - at * v, v, 0.0
    process.prepare(state)
    state.memory.sums[:, 0] = 0.0
    return state


@pytest.mark.parametrize(("law", "groups", "slopes"), CASES, ids=NAMES)
def test_proposals_have_the_true_rates_and_bounds(law, groups, slopes):
    """Each row and coordinate in turn: chance × rate adds up to `true_rates`, below the bound all along the horizon."""
    model = regression(law, groups, n=40 if slopes else 24, slopes=slopes)
    process, rng = RegressionZigZag(model), np.random.default_rng(1)
    native = process.native
    for far in (0.3, 0.5 if law in (NegativeBinomialLaw, StudentTLaw) else 2.0):  # shells of few rows do not reach far
        x, v = somewhere(process, rng, far)
        out, scratch = np.zeros(model.dim), np.zeros(model.dim)
        native.true_rates(x, v, scratch, out)
        found = np.zeros(model.dim)
        for i in range(process.clocks):
            for at in (0.0, 0.7):  # of the horizon
                horizon = process.horizon[i] if i < process.groups else process.prior_horizon
                if i > process.groups:
                    horizon = 0.05
                state = state_at(process, x, v, at * horizon)
                _, bound = native.clock(state, i, 0.0, Fixed(0.5, 0.5))
                now = at * horizon
                if bound == HORIZON:  # so near that nothing is proposed first
                    bound = 1.0
                state.bounds[i] = bound
                memory = state.memory
                parts = np.zeros(model.dim)
                if i < process.groups:
                    line, weights = memory.clocks[i], 0.0
                    data, known = line[1] + line[2] * now, line[3] + line[4] * now
                    rows = (
                        np.flatnonzero(model.level[:, 0] == process.first_effect + i) if groups else range(model.n_data)
                    )
                    for row in rows:
                        memory.clocks[i, 5] = row
                        weight = native.row_weight(row)
                        weights += weight
                        below = 0.0
                        for k in range(len(process.shared) + process.slots):
                            _, part = native.row_part(i, row, k)
                            if part > 0.0:
                                uniform = Fixed(0.0, (below + 0.5 * part) / weight)
                                rate = native.rate(state, i, now, uniform)
                                assert rate <= (data + known) * (1.0 + 1e-9)
                                chance = data / (data + known) * part / process.tables.totals[i]
                                parts[memory.flipping[0]] += chance * rate
                            below += part
                    assert weights == pytest.approx(process.tables.totals[i], rel=1e-12)  # rows drawn in proportion
                    bounds = memory.own[i, : process.slots] + memory.own[i, process.slots :] * now
                    assert bounds.sum() == pytest.approx(known, rel=1e-12)
                    memory.clocks[i, 1:3] = 0.0  # so that a uniform number finds each part, however small
                    for k, one in enumerate(bounds):
                        if one > 0.0:
                            rate = native.rate(state, i, now, Fixed((bounds[:k].sum() + 0.5 * one) / known))
                            assert memory.flipping[0] == process.place_of(i, k)
                            assert rate <= known * (1.0 + 1e-9)
                            parts[memory.flipping[0]] += rate * one / known
                elif i == process.groups:
                    for k in range(len(process.shared)):
                        state = state_at(process, x, v, now)
                        native.clock(state, i, 0.0, Fixed())
                        state.bounds[i] = 1.0
                        bounds = state.memory.known + state.memory.slopes * now
                        total = bounds.sum()
                        if bounds[k] > 1e-12 * total:
                            rate = native.rate(state, i, now, Fixed((bounds[:k].sum() + 0.5 * bounds[k]) / total))
                            assert state.memory.flipping[0] == process.shared[k]
                            assert rate <= total * (1.0 + 1e-9)
                            parts[process.shared[k]] += rate * bounds[k] / total
                else:
                    state = state_at(process, x, v, now)
                    state.bounds[i] = bound
                    top, length = limit_of(process, i)(state, 0.0)
                    rate = native.rate(state, i, now, None)
                    assert now > length or rate <= top * (1.0 + 1e-9)
                    parts[memory.flipping[0]] += 0.0
                    parts[state.memory.flipping[0]] += rate
                if at == 0.7:
                    found += parts
        np.testing.assert_allclose(found, out, rtol=1e-8, atol=1e-9 * np.abs(out).max())


def limit_of(process, i):
    """The bound of clock i, of a mean or a spread: a function of state and time."""
    k = i - process.groups - 1
    if k < process.slots:
        return lambda state, now: process.native.bound_of_mean(state, k, now)
    return lambda state, now: process.native.bound_of_spread(state, k - process.slots, now)


@pytest.mark.parametrize(("law", "slopes"), [(PoissonLaw, 0), (NormalLaw, 2)])
def test_bounds_hold_whatever_flips_in_between(law, slopes):
    """Within the horizon of a clock all other coordinates may flip, at any times."""
    model = regression(law, 3, n=40 if slopes else 24, slopes=slopes)
    process, rng = RegressionZigZag(model), np.random.default_rng(2)
    native, out, scratch, worst = process.native, np.zeros(model.dim), np.zeros(model.dim), 0.0
    for _ in range(5):
        x, v = somewhere(process, rng, rng.uniform(0.0, 2.0))
        for i in range(process.clocks):
            state = state_at(process, x, v, 0.0)
            native.clock(state, i, 0.0, Fixed(0.5, 0.5))
            if i < process.groups:
                end, line, slots = process.horizon[i], state.memory.clocks[i], process.slots
                own = [process.place_of(i, k) for k in range(slots)]
                each = state.memory.own[i].copy()
            elif i == process.groups:
                end, own = process.prior_horizon, []
                line = [0.0, state.memory.known.sum(), state.memory.slopes.sum()]
            else:
                top, end = limit_of(process, i)(state, 0.0)
                k = i - process.groups - 1
                line = [0.0, top, 0.0]
                own = [process.means[k] if k < process.slots else process.spread + k - process.slots]
            flips = rng.choice([-1.0, 1.0], model.dim)
            flips[own] = 1.0  # a coordinate's own clock is drawn anew when it flips
            t = rng.uniform(0.0, end)
            there, velocity = x + t * flips * v, v * rng.choice([-1.0, 1.0], model.dim)
            velocity[own] = v[own]
            state = state_at(process, there, velocity, 0.0)
            bound = line[1] + line[2] * t
            if i < process.groups:
                r = np.linalg.norm(((there - process.anchor) / process.scale)[[*process.shared, *own]])
                assert process.tables.totals[i] * process.growth.at(r, i) <= bound * (1.0 + 1e-9)
                state.memory.here[:] = there
                prior, laws = np.zeros(model.dim), [*process.means, *range(process.spread, process.first_effect)]
                model.native.add_prior_gradient(there, prior)
                assert not set(own) & set(laws)
                for k, j in enumerate(own):  # each of the group's coordinates has a bound of its own
                    rate = max(velocity[j] * (prior[j] + native.known_own(state, i, k)), 0.0)
                    bound = each[k] + each[slots + k] * t
                    assert rate <= bound * (1.0 + 1e-9)
                    worst = max(worst, rate / bound) if bound > 0.0 else worst
            elif i == process.groups:
                state.memory.here[:] = there
                rate = 0.0
                for k, j in enumerate(process.shared):
                    slope = native.prior_derivative(process.priors[k], there[j]) + native.known(state, k, 0.0)
                    rate += max(velocity[j] * slope, 0.0)
            else:
                native.true_rates(there, velocity, scratch, out)
                rate = out[own[0]]
            assert rate <= bound * (1.0 + 1e-9)
            worst = max(worst, rate / bound) if bound > 0.0 else worst
    assert worst > 0.7  # no bound is far above what it bounds


@pytest.mark.parametrize("slopes", [0, 2])
def test_sums_are_those_of_the_path(slopes):
    model = regression(PoissonLaw, 3, slopes=slopes)
    process = RegressionZigZag(model)
    run = pdmp.sample(process, initial=process.anchor, events=120, seed=3, progress=False)
    assert run.stats["bound_violations"] == 0
    state = process.begin(process.anchor, np.random.default_rng(0))
    rng, now = np.random.default_rng(4), 0.0
    for _ in range(60):
        j = int(rng.integers(model.dim))
        now += rng.exponential(0.3)
        state.x[j] += state.v[j] * (now - state.moved[j])
        state.moved[j], state.memory.flipping[0] = now, j
        process.native.jump(state, 0, now, None)
    x = state.x + state.v * (now - state.moved)
    effects = slice(process.first_effect, process.first_effect + 3 * (1 + slopes))
    for t in range(1 + slopes):
        e = np.array([model.native.deviation(x, t, g) for g in range(3)])
        assert process.native.excess(state, t, now) == pytest.approx(-e.sum(), rel=1e-9)
        assert process.native.square_sum(state, t, now) == pytest.approx((e**2).sum(), rel=1e-9)
        speeds = (model.mixing @ state.v[effects].reshape(1 + slopes, 3))[t]
        assert state.memory.sums[t, 5] == pytest.approx((speeds**2).sum(), rel=1e-9)
    away = (x - process.anchor)[effects]
    np.testing.assert_allclose(state.memory.cross[:, 0], away @ process.border, rtol=1e-9, atol=1e-9)


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
@pytest.mark.parametrize("sort", [None, "g"])
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
        found.append(run.inclusion()[1])
    assert_unbiased(np.array(found)[:, None], [truth], resolution=0.45)


def test_each_proposal_looks_at_one_row_at_most():
    process = RegressionZigZag(regression(PoissonLaw, 3))
    run = pdmp.sample(process, initial=process.anchor, events=60, seed=1, progress=False)
    assert 0 < run.stats["data_terms"] <= run.stats["proposals"]
    growth = [process.growth.at(process.pace, g) for g in range(process.groups)]
    assert process.expected_data == pytest.approx(process.tables.totals @ growth)


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


def _correlation(found):
    return found.covariance / np.outer(found.sd[found.dense], found.sd[found.dense])


def test_what_is_refused():
    with pytest.raises(TypeError, match="takes a MixedRegression without groups, or GroupIntercepts, got a Gaussian"):
        RegressionZigZag(pdmp.models.Gaussian(0.0, [1.0]))
    n = 6
    column = GroupColumn("x|g", "g", (0, 1), np.arange(n) % 2, np.arange(n) + 1.0, HalfNormal(1.0))
    arguments = np.ones((n, 1)), np.arange(n), PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)], [column]
    with pytest.raises(TypeError, match="without groups"):
        RegressionZigZag(MixedRegression(*arguments))
    with pytest.raises(ValueError, match="intercepts of groups are for a fixed intercept and one grouping"):
        GroupIntercepts(*arguments, intercept=0)
