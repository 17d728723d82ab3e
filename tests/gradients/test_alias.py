"""Alias tables, bounds on single terms, importance sub-sampling: identities, by enumeration where there is chance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pdmp.gradients import ControlVariate
from pdmp.gradients.alias import ALIAS, QUEUE, THRESHOLD, AliasBlocks, AliasTable, table_of_block
from pdmp.models import LinearGaussian, LogisticRegression
from pdmp.models.derived import Derived
from pdmp.models.numerical import term_partial_bounds, term_partial_lipschitz
from tests.checks import plain_only
from tests.gradients.helpers_gradients import Bowl, calls, quartic

pytestmark = pytest.mark.exact

RNG = np.random.default_rng(81)
FEATURES = RNG.standard_t(3, size=(12, 3))
LABELS = (RNG.random(12) < 0.5).astype(float)
LABELS[:2] = 0.0, 1.0
LOGISTIC = LogisticRegression(FEATURES, LABELS, prior_scale=[0.5, 1.0, 4.0])
LINEAR = LinearGaussian(FEATURES, FEATURES @ [1.0, 0.0, -1.0] + RNG.standard_normal(12), 0.7, 2.0)
X, Y = np.array([0.3, -0.4, 1.0]), np.array([0.2, 0.1, -0.5])


class Script:
    """A generator that plays back the numbers it is given."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


@pytest.mark.parametrize(("n", "part"), [(1, 9), (2, 9), (7, 9), (7, 2), (1000, 64)])
def test_an_alias_table_has_the_probabilities_of_its_weights(n, part, monkeypatch):
    """Also where it is balanced in parts, and then what is left of them."""
    monkeypatch.setattr("pdmp.gradients.alias.PART", part)
    for seed, power in ((0, 1.0), (1, 8.0)):
        weights = np.random.default_rng(seed).random(n) ** power
        weights[3:5] = 0.0
        alias = AliasTable(weights)
        assert alias.total == pytest.approx(weights.sum(), rel=1e-14)
        assert_allclose(alias.probabilities(), weights / weights.sum(), rtol=1e-9, atol=1e-15)
        threshold, other = alias.table[:, 0], alias.table[:, 1].astype(int)
        assert np.all((threshold >= 0.0) & (threshold <= 1.0 + 1e-15))
        possible = np.concatenate([np.flatnonzero(threshold > 0.0), other[threshold < 1.0]])
        assert np.all(weights[possible] > 0.0)
        assert_allclose(alias.table[possible, 2], weights.sum() / weights[possible], rtol=1e-14)
        assert_allclose(alias.table[:, 3], alias.table[other, 2], rtol=1e-15)
        assert alias.table.ctypes.data % 64 == 0


def test_a_draw_takes_the_column_or_its_alias():
    alias, drawn = AliasTable([1.0, 2.0, 5.0]), np.zeros(3)
    for k in range(3):
        for u in (np.arange(3000) + 0.5) / 3000:
            i, weight = alias.native.resolve(k, Script(u))
            assert weight == pytest.approx(8.0 / [1.0, 2.0, 5.0][i])
            drawn[i] += 1.0 / 9000
    assert_allclose(drawn, [1 / 8, 2 / 8, 5 / 8], atol=1e-3)


def test_bad_weights():
    for weights, message in [
        ([], r"`weights` must have shape \(N,\)"),
        ([[1.0]], r"`weights` must have shape \(N,\)"),
        ([1.0, -1.0], "`weights` must be finite and at least 0; entry 1 is -1.0"),
        ([np.nan, 1.0], "`weights` must be finite and at least 0; entry 0 is nan"),
        ([0.0, 0.0], "`weights` must have a finite sum above 0, got 0.0"),
        ([1e308, 1e308], "`weights` must have a finite sum above 0, got inf"),
    ]:
        with pytest.raises(ValueError, match=message):
            AliasTable(weights)


# ---------------------------------------------------------------------------------------------------------------
# Bounds on single terms


def test_bounds_of_logistic_regression_are_the_papers():
    norms = np.linalg.norm(FEATURES, axis=1)[:, None]
    assert_allclose(term_partial_bounds(LOGISTIC, 0, 12), np.abs(FEATURES), rtol=1e-15)
    assert_allclose(term_partial_lipschitz(LOGISTIC, 2, 9), 0.25 * (np.abs(FEATURES) * norms)[2:9], rtol=1e-14)
    scale = np.array([0.1, 2.0, 3.0])
    scaled = 0.25 * np.abs(FEATURES) * np.linalg.norm(FEATURES * scale, axis=1)[:, None]
    assert_allclose(term_partial_lipschitz(LOGISTIC, 0, 12, scale), scaled, rtol=1e-14)
    assert_allclose(term_partial_lipschitz(LINEAR, 0, 12), np.abs(FEATURES) * norms / 0.49, rtol=1e-14)
    # In other coordinates: what any model with bounds of its partials says, and what is known of the slope of a sum.
    root = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -0.3], [0.1, 0.0, 0.7]])
    sizes = np.linalg.norm(root, axis=1)
    slopes = 0.25 * np.abs(FEATURES) * np.linalg.norm(FEATURES * sizes, axis=1)[:, None] @ np.abs(root)
    slopes = np.linalg.norm(slopes, axis=1) * np.linalg.norm(root / sizes[:, None], 2)
    assert_allclose(Derived.term_lipschitz_norms(LOGISTIC, root, 2, 9), slopes[2:9], rtol=1e-13)
    wide = np.linalg.norm(np.abs(FEATURES) @ np.abs(root), axis=1)
    assert_allclose(Derived.term_gradient_norms(LOGISTIC, root, 2, 9), wide[2:9], rtol=1e-14)
    assert_allclose(LOGISTIC.term_gradient_norms(root, 2, 9), np.linalg.norm(FEATURES @ root, axis=1)[2:9], rtol=1e-14)


@pytest.mark.parametrize("model", [LOGISTIC, LINEAR])
def test_no_term_is_above_its_bounds_and_some_reach_them(model):
    rows, scale = np.arange(12), np.array([0.5, 2.0, 1.0])
    lipschitz, highest = term_partial_lipschitz(model, 0, 12, scale), np.zeros((12, 3))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(3) * rng.exponential(2.0)
        y = x + rng.standard_normal(3) * rng.exponential(1.0)
        if seed % 3 == 0:  # the worst case: along the scaled feature, across the steepest point
            a = FEATURES[rng.integers(12)]
            y = 1e-3 * scale**2 * a
            x = -y
        difference = np.abs(model.term_gradients(x, rows) - model.term_gradients(y, rows))
        highest = np.maximum(highest, difference / (lipschitz * np.linalg.norm((x - y) / scale)))
        if model is LOGISTIC:
            assert np.all(np.abs(model.term_gradients(x, rows)) <= term_partial_bounds(model, 0, 12) * (1.0 + 1e-12))
    assert highest.max() <= 1.0 + 1e-9
    assert highest.max(axis=1).min() > 0.99


def test_what_is_not_known_is_none():
    assert term_partial_bounds(LINEAR, 0, 12) is None
    assert term_partial_bounds(quartic(5, 2), 0, 5) is None
    assert term_partial_lipschitz(quartic(5, 2), 0, 5) is None
    prior = "prior_partial", "prior_partial_curvature_bound"
    assert not quartic(5, 2).has(*prior) and not Bowl().has(*prior)
    assert LOGISTIC.has(*prior) and LINEAR.has(*prior)
    with pytest.raises(ValueError, match="`first` and `last` must lie in 0 … 12 in this order, got 3, 13"):
        term_partial_bounds(LOGISTIC, 3, 13)


# ---------------------------------------------------------------------------------------------------------------
# The estimator


@pytest.mark.parametrize("model", [LOGISTIC, LINEAR])
@pytest.mark.parametrize("scale", [1.0, np.array([0.1, 1.0, 5.0])])
def test_importance_draws_in_proportion_to_the_bounds_and_is_unbiased(model, scale):
    provider = ControlVariate(model, 1, anchor=Y, draw="importance", scale=scale)
    contributions = (term_partial_lipschitz(model, 0, 12, scale * np.ones(3)) * scale).sum(axis=1)
    assert_allclose(provider.contributions(), contributions, rtol=1e-14)
    assert_allclose(
        provider.largest(), (term_partial_lipschitz(model, 0, 12, scale * np.ones(3)) * scale).max(axis=0), rtol=1e-14
    )
    assert_allclose(provider.drawing.alias.probabilities(), contributions / contributions.sum(), rtol=1e-12)
    # The expectation over columns k and over which of the two is taken, in closed form.
    table, total = provider.drawing.alias.table, np.zeros(3)
    for k in range(12):
        for share, i, weight in (
            (table[k, 0], k, table[k, 2]),
            (1.0 - table[k, 0], int(table[k, 1]), table[k, 3]),
        ):
            total += share / 12 * weight * (model.term_gradients(X, i) - model.term_gradients(Y, i))[0]
    assert_allclose(total + model.gradient(Y) - prior(model, Y) + prior(model, X), model.gradient(X), rtol=1e-11)


def prior(model, x):
    return model.gradient(x) - model.term_gradients(x, range(12)).sum(axis=0)


@pytest.mark.parametrize("method", ["gradient", "gradient_and_projection", "gradient_and_sd"])
def test_a_batch_is_weighted_and_its_variance_is_that_of_the_weighted_terms(method):
    provider = ControlVariate(LOGISTIC, 3, anchor=Y, draw="importance")
    memory, v = provider.memory(None), np.array([1.0, -2.0, 0.5])
    out, extra, counts = calls(provider, method, X, v, memory=memory)
    p = provider.contributions() / provider.contributions().sum()
    rows = memory.rows
    assert_allclose(memory.weights, 1.0 / (3.0 * p[rows]), rtol=1e-13)
    each = (LOGISTIC.term_gradients(X, rows) - LOGISTIC.term_gradients(Y, rows)) / p[rows, None]
    expected = each.mean(axis=0) + LOGISTIC.gradient(Y) - prior(LOGISTIC, Y) + prior(LOGISTIC, X)
    assert_allclose(out[0], expected, rtol=1e-11)
    assert counts == 3 and len(set(memory.columns)) > 1 and len(set(rows)) > 1
    if method == "gradient_and_projection":
        assert extra[0, 0] == pytest.approx(v @ expected, rel=1e-11)
        assert extra[0, 1] == pytest.approx((each @ v).var(ddof=1) / 3.0, rel=1e-9)
    if method == "gradient_and_sd":
        assert_allclose(extra[0], each.std(axis=0, ddof=1) / np.sqrt(3.0), rtol=1e-9)


class Fetched:
    """A model that notes the rows that are asked for."""

    def __init__(self):
        self.rows = []

    def fetch(self, i):
        self.rows.append(i)


@plain_only
def test_draws_ahead_are_those_of_the_same_numbers_one_by_one():
    """From the first on, in their order; each row is asked for half a ring before it is drawn, and once."""
    first, weights = [0, 3, 10, 11], np.random.default_rng(5).random(11) ** 3
    made = [table_of_block(weights[a:b]) for a, b in zip(first[:-1], first[1:], strict=True)]
    blocks = AliasBlocks(np.concatenate([table for table, _ in made]), first, [total for _, total in made]).native
    queue, model, n = AliasBlocks.queue(blocks), Fetched(), 2 * QUEUE + 9
    rng, same = np.random.default_rng(4), np.random.default_rng(4)
    drawn = [blocks.next(0, queue, model, rng) for _ in range(n)]
    expected = []
    for _ in range(n):
        b, _ = blocks.blocks.draw(same)
        k, number = first[b] + int(same.random() * (first[b + 1] - first[b])), same.random()
        expected.append(k if number < blocks.table[k, THRESHOLD] else first[b] + int(blocks.table[k, ALIAS]))
    assert drawn == expected and set(drawn[:QUEUE]) > {0, 10}
    assert model.rows[:n] == drawn and len(model.rows) == n + QUEUE // 2
