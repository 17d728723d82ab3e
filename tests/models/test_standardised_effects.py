"""Correlated effects of groups: their law against SciPy's, in every parametrisation, and coordinates without a neck."""

import math

import numpy as np
import pytest
from scipy import stats

from pdmp.expressions.functionals import Parameters
from pdmp.models import sum_of_terms
from pdmp.models.priors import LKJ, Normal
from pdmp.models.regressions import effect_information as information_module
from pdmp.models.regressions import spread_coordinate as coordinate
from pdmp.models.regressions.effect_information import effect_information, of_rows, standardised
from pdmp.models.regressions.standardised_effects import EffectSet, cholesky_factors, partial_correlations
from pdmp.models.sums_of_terms import Terms
from tests.checks import in_quick

pytestmark = pytest.mark.exact


def normal_rows(groups=5, each=4, d=2, known=1.0):
    """y ~ N(β v + Σ uₖ vₖ, 1) with d columns v of effects, the first constant, and β of the first: a normal law.

    `known` multiplies what rows are counted as, the precision of y.
    """
    rng, n = np.random.default_rng(3), groups * each
    level, v = np.repeat(np.arange(groups), each), np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    y, pairs = rng.standard_normal(n), d * (d - 1) // 2
    p = Parameters(beta=1, t=d, **({"w": pairs} if pairs else {}), **{f"u{k}": groups for k in range(d)})
    eta = v[:, :1] @ p.beta
    for k in range(d):
        eta = eta + getattr(p, f"u{k}")[level] * v[:, k]
    rows = Terms(lambda y, z: 0.5 * known * (y - z) ** 2, [y], [eta])
    priors = {"beta": Normal(0.3, 2.0), "t": Normal(0.0, 1.5)} | ({"w": LKJ(2.0).partial(d)} if pairs else {})
    effects = 1 + d + pairs + np.arange(d * groups).reshape(d, groups).T
    sets = [EffectSet(1 + np.arange(d), 1 + d + np.arange(pairs), effects)]
    return sum_of_terms(p, [rows], priors), sets, (level, v, y)


def with_law(base, sets):
    """The potential of (β, t, w, u) by SciPy, and the volume of correlations by partial ones left out."""

    def potential(x):
        one, total = sets[0], base.potential(x)
        a = cholesky_factors(x[one.spreads], x[one.partials])
        return total - stats.multivariate_normal.logpdf(x[one.effects], cov=a @ a.T).sum()

    return potential


def moved(model, x):
    steps = 1e-6 * np.eye(model.dim)
    return np.array([(model.natural_draws(x + e) - model.natural_draws(x - e)) / 2e-6 for e in steps]).T


@pytest.mark.parametrize("together", [32, 0], ids=["together", "apart"])
@pytest.mark.parametrize("d", in_quick([1, 2, 3], 1, 2))
def test_the_law_is_that_of_effects(d, together, monkeypatch):
    """Up to the Jacobian, which is by differences; with gradients."""
    monkeypatch.setattr(information_module, "TOGETHER", together)
    monkeypatch.setattr(information_module, "MOMENTS", 1)  # wherever it is, the law is the same
    base, sets, _ = normal_rows(d=d, known=3.0)
    model = standardised(base, sets, effect_information(base, sets, base.initial, [0]))
    assert len(model.block_first) == 1 + (1 if together else 5) and bool(np.any(model.by)) == (together == 0)
    x, v, h = model.initial + 0.4, np.random.default_rng(2).standard_normal(model.dim), 1e-5
    slope = (model.potential(x + h * v) - model.potential(x - h * v)) / (2.0 * h)
    assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-6)
    usual, rng, differences = with_law(base, sets), np.random.default_rng(1), []
    for _ in range(4):
        x = model.initial + 0.7 * rng.standard_normal(model.dim)
        y = model.natural_draws(x)
        np.testing.assert_allclose(model.coordinates(y), x, rtol=1e-8, atol=1e-8)
        differences.append(model.potential(x) - usual(y) + np.linalg.slogdet(moved(model, x))[1])
    assert np.ptp(differences) < 1e-7 and abs(differences[0]) < 50.0


@pytest.mark.parametrize("together, inside", [(5, [0, 2]), (6, [0, 2, 3]), (8, [0, 1, 2, 3, 4]), (0, [])])
def test_coefficients_that_follow_effects_are_in_their_block(together, inside, monkeypatch):
    """The intercept, a column that is one of groups, and one that is a little; others are known there.

    The law is the same, and whatever the standard deviation of effects and the coefficients outside are, coordinates
    of the block are independent N(0, 1).
    """
    monkeypatch.setattr(information_module, "TOGETHER", together)
    rng, n = np.random.default_rng(8), 90
    level = np.arange(n) % 3
    X = rng.standard_normal((n, 5))
    X[:, 0], X[:, 2] = 1.0, np.choose(level, [-1.0, 0.0, 1.0]) + 0.1 * X[:, 2]
    p = Parameters(beta=5, t=1, u=3)
    rows = Terms(lambda y, z: (y - z) ** 2, [rng.standard_normal(n)], [X @ p.beta + p.u[level]])
    base = sum_of_terms(p, [rows], {"beta": Normal(0.0, 2.0), "t": Normal(0.0, 1.5)})
    none = np.zeros(0, np.int64)
    sets = [EffectSet(np.array([5]), none, np.arange(6, 9)[:, None])]
    model = standardised(base, sets, effect_information(base, sets, base.initial, list(range(5))))
    members = model.coordinate[: model.block_first[1]].tolist() if inside else []
    assert sorted(members) == sorted([*inside, 6, 7, 8] if inside else [])
    assert np.flatnonzero(model.is_free).tolist() == [j for j in range(5) if j not in inside]
    x, v, h = model.initial + 0.3 * rng.standard_normal(model.dim), rng.standard_normal(model.dim), 1e-5
    slope = (model.potential(x + h * v) - model.potential(x - h * v)) / (2.0 * h)
    assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-6)
    differences, usual = [], normal_law_of(base, sets)
    for _ in range(3):
        x = model.initial + 0.7 * rng.standard_normal(model.dim)
        y = model.natural_draws(x)
        np.testing.assert_allclose(model.coordinates(y), x, rtol=1e-8, atol=1e-8)
        differences.append(model.potential(x) - usual(y) + np.linalg.slogdet(moved(model, x))[1])
    assert np.ptp(differences) < 1e-6
    for shift, spread in ((0.0, 0.0), (2.0, 1.5), (-1.0, -1.0)):
        x = model.initial.copy()
        x[np.flatnonzero(model.is_free)] += shift
        x[5] = spread
        x[members] = np.cos(np.arange(float(len(members))))
        hessian = model.hessian(x)[np.ix_(members, members)]
        assert np.allclose(hessian, np.eye(len(members)), atol=1e-4)


def normal_law_of(base, sets):
    """The potential with independent effects of each set, of widths e^t."""
    return lambda y: (
        base.potential(y) - sum(stats.norm.logpdf(y[s.effects], scale=np.exp(y[s.spreads])).sum() for s in sets)
    )


def test_gradients_of_three_correlated_columns():
    """Of which the factor of the last row is a product of two partial correlations."""
    base, sets, _ = normal_rows(groups=3, each=2, d=3)
    d = sets[0].width
    at = base.initial + 0.3
    informations, scores = [np.stack([np.eye(d) + 0.2 * g for g in range(3)])], [np.ones((3, d))]
    model = standardised(base, sets, of_rows(sets, at, informations, scores, None, 1e-3))
    x = model.initial + 0.5 * np.random.default_rng(4).standard_normal(model.dim)
    steps = 1e-5 * np.eye(model.dim)
    slopes = [(model.potential(x + e) - model.potential(x - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(model.gradient(x), slopes, rtol=1e-5, atol=1e-6)


def test_information_on_effects_is_given_the_coefficients(monkeypatch):
    """Of single groups, with the other effects unknown: 5 groups of 4 rows of precision 3."""
    monkeypatch.setattr(information_module, "TOGETHER", 0)
    base, sets, _ = normal_rows(d=1, known=3.0)
    known = effect_information(base, sets, base.initial, [0])
    assert known.information[0] == pytest.approx(12.0)
    assert known.blocks[0].information.ravel() == pytest.approx([12.0] * 5)
    assert known.coupling.by.ravel() == pytest.approx([12.0] * 5) and known.coupling.others.tolist() == [0]
    assert known.coupling.at == known.at[:1] and known.coupling.effects.tolist() == sets[0].effects.ravel().tolist()


@pytest.mark.parametrize("together", [32, 3, 0])
def test_coordinates_of_effects_apart_are_standard_normal_given_the_others(together, monkeypatch):
    """Of a normal law: whatever the coefficient and the law of effects are, effects are independent N(0, 1)."""
    monkeypatch.setattr(information_module, "TOGETHER", together)
    base, sets, _ = normal_rows(d=2, known=2.0)
    model = standardised(base, sets, effect_information(base, sets, base.initial, [0]))
    places = sets[0].effects.ravel()
    for shift, spread, w in ((0.0, 0.0, 0.0), (1.5, 1.0, 2.0), (-2.0, -1.0, -0.5)):
        x = model.initial.copy()
        x[0] += shift
        x[places] = np.cos(np.arange(10.0))
        x[sets[0].spreads], x[sets[0].partials] = spread, w
        assert np.allclose(model.gradient(x)[places], x[places], atol=1e-8)


@pytest.mark.filterwarnings("ignore:the loss `<lambda>` does not use")  # of effects that no data know
@pytest.mark.parametrize("known", in_quick([0.0, 0.05, 1.0, 40.0], 0.0, 40.0))
def test_coordinates_are_standard_normal_whatever_the_law_of_effects_is(known):
    """Of a normal law: given t and w, coefficients and effects are independent N(0, 1), however much data say."""
    base, sets, _ = normal_rows(d=2, known=known)
    model = standardised(base, sets, effect_information(base, sets, base.initial, [0]))
    places = model.coordinate
    assert len(places) == 11
    for spread, w in ((-3.0, -1.0), (0.0, 0.0), (1.0, 2.0), (2.5, -0.5)):
        x = model.initial.copy()
        x[sets[0].spreads], x[sets[0].partials] = spread, w
        gradient, h = np.zeros((2, len(places), model.dim)), 1e-4
        for k, j in enumerate(places):
            for side in (0, 1):
                model.add_gradient(x + h * (2 * side - 1) * np.eye(model.dim)[j], gradient[side, k])
        hessian = (gradient[1] - gradient[0])[:, places] / (2.0 * h)
        assert np.allclose(hessian, np.eye(len(places)), atol=1e-5)
        assert np.allclose(model.gradient(x)[places], 0.0, atol=1e-5)


def test_effects_that_nobody_knows_have_the_law_of_their_prior():
    """Far down, where standard deviations are e^-40, and far up: finite, with the potential of the prior."""
    base, sets, _ = normal_rows(d=2, known=1.0)
    model = standardised(base, sets, effect_information(base, sets, base.initial, [0]))
    x = model.initial + 0.3
    for theta in (-200.0, -10.0, 30.0):
        x[sets[0].spreads] = theta
        assert np.isfinite(model.potential(x)) and np.all(np.isfinite(model.gradient(x)))
        y = np.empty(model.dim)
        model.natural(x, y, model.room())
        assert np.all(np.isfinite(y)) and np.allclose(y[sets[0].effects], 0.0) == (theta < 0.0)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("eta", [0.7, 1.0, 3.0])
def test_correlations_have_the_lkj_law(d, eta):
    """Partial correlations by their laws: det(R)^(η - 1), exactly, and Beta laws of single correlations.

    20,000 draws of each: a distribution function that is off by 0.017 anywhere would be seen.
    """
    laws, rng = LKJ(eta).partial(d), np.random.default_rng(10 * d)
    pairs = [(i, j) for i in range(d) for j in range(i)]

    def correlation(w):
        root = cholesky_factors(np.zeros((*w.shape[:-1], d)), w)
        return root @ np.swapaxes(root, -1, -2)

    def coordinates(w):
        return np.array([correlation(w)[i, j] for i, j in pairs])

    excess = []
    for w in 0.7 * rng.standard_normal((3, len(laws))):
        own = sum(stats.beta.logpdf(0.5 * (1.0 + np.tanh(x)), q.eta, q.eta) for x, q in zip(w, laws, strict=True))
        own -= 2.0 * np.log(np.cosh(w)).sum()  # the density of w, up to a constant
        h = 1e-5 * np.eye(len(w))
        volume = np.linalg.slogdet([(coordinates(w + e) - coordinates(w - e)) / 2e-5 for e in h])[1]
        excess.append(own - volume - (eta - 1.0) * np.linalg.slogdet(correlation(w))[1])
        np.testing.assert_allclose(partial_correlations(correlation(w)), w, rtol=1e-9)
    assert np.ptp(excess) < 1e-7
    w = np.column_stack([np.arctanh(2.0 * rng.beta(q.eta, q.eta, 20_000) - 1.0) for q in laws])
    found, shape = correlation(w), eta - 1.0 + 0.5 * d
    assert np.allclose(np.diagonal(found, axis1=1, axis2=2), 1.0)
    for i, j in pairs:
        assert stats.kstest(found[:, i, j], stats.beta(shape, shape, -1.0, 2.0).cdf).pvalue > 1e-5


def test_the_order_of_terms_and_of_levels_does_not_matter():
    """Three columns in another order, and groups by other numbers: the same density of the same effects."""
    base, sets, (level, v, y) = normal_rows(d=3, groups=4)
    order, renamed = [2, 0, 1], np.array([3, 1, 0, 2])
    p = Parameters(beta=1, t=3, w=3, u0=4, u1=4, u2=4)
    eta = v[:, :1] @ p.beta
    for k, j in enumerate(order):
        eta = eta + getattr(p, f"u{k}")[renamed[level]] * v[:, j]
    rows = Terms(lambda y, z: 0.5 * (y - z) ** 2, [y], [eta])
    priors = {"beta": Normal(0.3, 2.0), "t": Normal(0.0, 1.5), "w": LKJ(2.0).partial(3)}
    other, one = sum_of_terms(p, [rows], priors), sets[0]
    differences = []
    for k in range(3):
        x = 0.6 * np.random.default_rng(k).standard_normal(base.dim)
        z = x.copy()
        z[one.spreads] = x[one.spreads][order]
        a = cholesky_factors(np.zeros(3), x[one.partials])
        z[one.partials] = partial_correlations((a @ a.T)[np.ix_(order, order)])
        z[one.effects[renamed]] = x[one.effects][:, order]
        volumes = []
        for w in (x[one.partials], z[one.partials]):  # of correlations by partial ones, known in closed form
            volumes.append(-2.0 * np.log(np.cosh(w)).sum() - np.log(np.cosh(w[:2])).sum())
        differences.append(with_law(base, sets)(x) + volumes[0] - with_law(other, sets)(z) - volumes[1])
    assert np.allclose(differences, 0.0, atol=1e-9)


def test_what_rows_say_of_many_groups():
    """Var g = λ + λ² τ² by hand; blocks of single groups with their information and score; columns nobody knows."""
    sets = [EffectSet(np.array([0, 1]), np.array([2]), 3 + np.arange(6).reshape(3, 2))]
    information = np.array([[[4.0, 1.0], [1.0, 0.0]], [[9.0, 0.0], [0.0, 0.0]], [[16.0, 2.0], [2.0, 0.0]]])
    score = np.array([[8.0, 0.0], [-9.0, 0.0], [20.0, 0.0]])
    found = of_rows(sets, np.full(9, 0.3), [information], [score], None, 0.25)
    square = (64.0 + 81.0 + 400.0 - 29.0) / (16.0 + 81.0 + 256.0)
    assert found.at[0] == pytest.approx(0.5 * math.log(square)) and found.at[1] == 0.3
    weak = of_rows(sets, np.full(9, 0.3), [information], [0.1 * score], None, 0.25)
    assert weak.at[0] == pytest.approx(0.5 * math.log(0.25 / 9.0))
    block = found.blocks[0]
    assert np.array_equal(block.information, information) and np.array_equal(block.score, score)
    assert np.array_equal(block.coordinates, sets[0].effects) and block.column.tolist() == [0, 1]
    assert np.allclose(found.shares(sets)[0][:, 0], [k / (k + 1.0 / square) for k in (4.0, 9.0, 16.0)])


def test_the_coordinate_of_standard_deviations():
    """t kθ far down, θ far up; derivatives by differences; there and back."""
    h, k = 1e-5, coordinate.SHARPNESS
    for theta in (-60.0, -8.0, -3.0, -0.1, 0.2, 4.0, 50.0):
        g = coordinate.log_spread(theta)
        slope = (coordinate.log_spread(theta + h) - coordinate.log_spread(theta - h)) / (2.0 * h)
        assert coordinate.rise(theta) == pytest.approx(slope, rel=1e-8)
        bend = math.log(coordinate.rise(theta + h) / coordinate.rise(theta - h)) / (2.0 * h)
        assert coordinate.log_rise_derivative(theta) == pytest.approx(bend, abs=1e-8)
        assert coordinate.coordinate_of(g) == pytest.approx(theta, rel=1e-9)
        assert coordinate.log_spreads(np.array([theta]))[0] == pytest.approx(g, rel=1e-12)
        assert math.log1p(math.exp(min(g, 40.0))) == pytest.approx(math.log1p(math.exp(min(k * theta, 40.0 * k))) / k)
    assert coordinate.middle_of(2.0, np.array([4.0])) == 2.0 - math.log(4.0)
    assert coordinate.middle_of(-9.0, np.array([0.0, 4.0, 9.0, 100.0])) == pytest.approx(math.log(1.0 / 6.0))
    assert coordinate.middle_of(-9.0, np.zeros(3)) == -7.0 - math.log(2.0)
