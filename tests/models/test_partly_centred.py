"""Effects as far centred as the data say what each is: the same law in coordinates without a neck."""

import numpy as np
import pytest

from pdmp.models.priors import HalfNormal, HalfStudentT, Normal
from pdmp.models.regressions import effect_information
from pdmp.models.regressions import group_information as information_module
from pdmp.models.regressions.group_information import group_information, in_their_coordinates
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import NormalLaw, PoissonLaw
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression
from tests.models.helpers_mixed_regression import LAWS, mixed

pytestmark = pytest.mark.exact


def intercepts(law=NormalLaw, sizes=(2, 9, 4), spread=1.0, kind=MixedRegression, **options):
    """(1 | g) with groups of these sizes and effects with this standard deviation."""
    rng, g = np.random.default_rng(2), np.repeat(np.arange(len(sizes)), sizes)
    x, u = rng.normal(1.0, 1.0, len(g)), spread * rng.standard_normal(len(sizes))
    z = 0.3 * x + u[g]
    y = z + rng.standard_normal(len(g)) if law is NormalLaw else rng.poisson(np.exp(z))
    column = GroupColumn("1|g", "g", tuple(range(len(sizes))), g, np.ones(len(g)), HalfNormal(2.0))
    laws = [HalfStudentT(4.0, 1.0)] if law is NormalLaw else []
    X = np.column_stack([np.ones(len(g)), x])
    priors = [Normal(0.0, 2.0), Normal(0.0, 2.0)]
    return kind(X, y, law(), ["Intercept", "x"], priors, [column], laws, intercept=0, **options)


def jacobian(model, x):
    steps = 1e-6 * np.eye(model.dim)
    return np.array([(model.natural_draws(x + e) - model.natural_draws(x - e)) / 2e-6 for e in steps]).T


@pytest.mark.parametrize("together", [32, 0], ids=["together", "apart"])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_law_is_that_of_centred_effects(law, together, monkeypatch):
    """Up to the Jacobian, which is by differences; with gradients, single rows and natural parameters."""
    monkeypatch.setattr(effect_information, "TOGETHER", together)
    usual = mixed(law, centred=True)[0]
    model = in_their_coordinates(usual)
    assert len(model.block_first) == (2 if together else 7) and bool(np.any(model.by)) == (together == 0)
    model.check_gradient(points=2, data=3)
    rng, rows, differences = np.random.default_rng(1), np.array([3, 11]), []
    for _ in range(3):
        x, there = model.initial + 0.5 * rng.standard_normal(model.dim), np.empty(model.dim)
        u = model.natural_draws(x)
        model.natural(x, there, model.room())
        assert np.allclose(there, u, rtol=1e-12) and np.allclose(model.coordinates(u), x)
        differences.append(model.potential(x) - usual.potential(u) + np.linalg.slogdet(jacobian(model, x))[1])
        for name, value in usual.constrain(u).items():
            assert np.allclose(model.constrain(x)[name], value)
        few = model.some_rows(rows)
        assert few.potential(x) - few.prior_potential(x) == pytest.approx(
            sum(model.term_potential(x, i) for i in rows), rel=1e-12
        )
        assert model.potential(x) == pytest.approx(
            model.prior_potential(x) + model.block_potential(x, 0, 5) + model.block_potential(x, 5, 14), rel=1e-12
        )
        assert model.total_rise(model.initial, x) == pytest.approx(model.potential(x) - model.potential(model.initial))
        whole, parts = np.zeros(model.dim), np.zeros(model.dim)
        model.add_batch_gradient(x, rows, 2, whole)
        for i in rows:
            model.add_term_gradient(x, i, parts)
        assert np.allclose(whole, parts)
    assert np.ptp(differences) < 1e-7


@pytest.mark.parametrize("sizes", [(4, 18, 8), (30, 30, 30, 30), (1, 1, 1, 100)])
def test_effects_have_the_same_width_whatever_their_spread_is(sizes):
    """Of a normal law: given τ and σ, ξ is standard normal at every τ, and does not depend on coefficients."""
    usual = intercepts(sizes=sizes)
    model = in_their_coordinates(usual)
    p, effects = 2, slice(3, 3 + len(sizes))
    for log_spread in (-6.0, 0.0, 3.0):
        x = model.initial.copy()
        x[p] = log_spread
        moving = [*range(p), *range(3, 3 + len(sizes))]
        hessian = model.hessian(x)[np.ix_(moving, moving)]
        assert np.allclose(hessian[p:], np.eye(len(moving))[p:], atol=0.05)
        assert np.linalg.eigvalsh(hessian)[0] > 0.5
        assert np.abs(model.gradient(x)[effects]).max() < 0.2  # and the mean is 0


def test_effects_of_two_groupings_have_each_the_score_of_their_own_spread():
    """At the mode, 0.1 and 3 for spreads: U has its minimum in ξ at 0 for both."""
    rng, n = np.random.default_rng(8), 240
    g, h = np.arange(n) % 5, np.arange(n) // 5 % 6
    y = 0.1 * rng.standard_normal(5)[g] + 3.0 * rng.standard_normal(6)[h] + rng.standard_normal(n)
    groups = [
        GroupColumn(f"1|{name}", name, tuple(range(m)), rows, np.ones(n), HalfNormal(2.0))
        for name, m, rows in (("g", 5, g), ("h", 6, h))
    ]
    usual = MixedRegression(
        np.ones((n, 1)), y, NormalLaw(), ["Intercept"], [Normal(0.0, 5.0)], groups, [HalfNormal(1.0)]
    )
    found, model = group_information(usual), in_their_coordinates(usual)
    x = model.initial.copy()
    x[1:3] = found.at[1:3]
    assert found.at[2] - found.at[1] > 1.5
    assert np.abs(model.gradient(x)[3:14]).max() < 0.05


@pytest.mark.parametrize("inverted", [800, 0], ids=["few", "many"])
def test_information_is_that_of_balanced_groups(inverted, monkeypatch):
    """Given the coefficients 50 rows say 50 / σ² of each group; the scores fall by as much times the intercept."""
    monkeypatch.setattr(effect_information, "TOGETHER", 0)
    monkeypatch.setattr(information_module, "INVERTED", inverted)
    usual = intercepts(sizes=(50,) * 4)
    usual.X[:, 1] = 0.0
    found = group_information(usual)
    precision = np.exp(-2.0 * found.at[-1])
    # σ is what it was before the last step.
    assert np.allclose(found.information[0], 50.0 * precision, rtol=0.02)
    assert np.allclose(found.blocks[0].information.ravel(), found.information[0].ravel(), rtol=1e-3)
    assert np.allclose(found.coupling.by[:, 0], found.information[0].ravel(), rtol=1e-3)
    assert np.allclose(found.coupling.by[:, 1], 0.0, atol=1e-8)
    assert np.array_equal(found.coupling.at, found.at[:2]) and found.coupling.effects.tolist() == [3, 4, 5, 6]
    law = np.exp(-2.0 * found.at[2])
    expected = (found.information[0].ravel() + law) * found.at[3:7]
    assert np.allclose(found.blocks[0].score.ravel(), expected, rtol=0.1)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_derivatives_of_each_prior_are_those_of_the_model(law):
    model, h = mixed(law)[0], 1e-5
    x, p = model.initial + 0.3 * np.random.default_rng(5).standard_normal(model.dim), model.n_fixed
    dispersions = range(model.n_dispersions)
    places = [(j, j) for j in range(p)] + [(p + model.n_groups + q, model.first[-1] + q) for q in dispersions]
    for q, j in places:  # of the q-th prior, and its coordinate
        slopes = np.zeros((3, model.dim))
        for k in range(3):
            model.add_prior_gradient(x + (k - 1) * h * np.eye(model.dim)[j], slopes[k])
        rise, bend, bound = model.prior_derivatives(np.array([q]), x[[j]])[:, 0]
        assert rise == pytest.approx(slopes[1, j], rel=1e-12)
        assert bend == pytest.approx((slopes[2, j] - slopes[0, j]) / (2.0 * h), rel=1e-6, abs=1e-8)
        assert bound >= bend - 1e-12


@pytest.mark.parametrize("inverted", [800, 0], ids=["few", "many"])
def test_the_mode_of_effects_that_data_know_little(inverted, monkeypatch):
    """EM ends soon, and where a slow one does: at the standard deviation of the largest posterior density."""
    monkeypatch.setattr(information_module, "INVERTED", inverted)
    asked = []
    sums = information_module._sums
    monkeypatch.setattr(information_module, "_sums", lambda *a: asked.append(1) or sums(*a))
    usual = intercepts(PoissonLaw, sizes=(3,) * 30, spread=0.2)
    usual.centred[:] = 1
    found = group_information(usual)
    assert len(asked) < 25
    gradient = usual.gradient(found.at)
    effects = slice(usual.first[0], usual.first[-1])
    assert np.abs(gradient[effects]).max() * np.exp(found.at[2]) < 0.1  # given τ
    shares = 1.0 / (1.0 + found.information[0] * np.exp(2.0 * found.at[2]))
    assert 0.3 < np.median(shares) < 1.0


def test_effects_of_coefficients_of_groups():
    """`GroupIntercepts`, of one grouping and of crossed ones, gives the model that was written with effects."""
    rng, n = np.random.default_rng(6), 12
    g, h = np.arange(n) % 3, np.arange(n) % 4
    X, y = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, n)]), rng.normal(2.0, 1.0, n)
    slopes = [GroupColumn("1|g", "g", (0, 1, 2), g, np.ones(n), HalfNormal(1.5))]
    slopes.append(GroupColumn("x|g", "g", (0, 1, 2), g, X[:, 1].copy(), HalfNormal(0.5)))
    crossed = [slopes[0], GroupColumn("1|h", "h", (0, 1, 2, 3), h, np.ones(n), HalfNormal(1.0))]
    for kind, groups in ((GroupIntercepts, slopes), (GroupIntercepts, crossed)):
        arguments = X, y, NormalLaw(), ["Intercept", "x"], [Normal(0.0, 2.0)] * 2, groups, [HalfNormal(1.0)]
        usual, made = (k(*arguments, intercept=0, scale_response=True) for k in (MixedRegression, kind))
        other = made.as_effects()
        x = rng.standard_normal(usual.dim)
        assert type(other) is MixedRegression and other.variables == usual.variables
        assert other.potential(x) == usual.potential(x) and np.array_equal(other.gradient(x), usual.gradient(x))
        assert np.array_equal(other.initial, usual.initial) and np.array_equal(other.X, usual.X)
        assert usual.as_effects() is usual and not made.X[:, 0].any()
        natural = usual.constrain(x)
        again = made.constrain(made.unconstrained(natural))
        assert again.keys() == natural.keys() and all(np.allclose(again[name], natural[name]) for name in natural)


def test_information_that_is_not_found(monkeypatch):
    monkeypatch.setattr(information_module, "STEPS", 1)
    usual = intercepts()
    assert group_information(usual) is None and in_their_coordinates(usual) is usual
