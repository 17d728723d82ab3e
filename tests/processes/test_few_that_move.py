"""Bounds of the sub-sampled Bouncy Particle Sampler that count the coordinates that move."""

import functools
import math

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import BetaBernoulli, Normal
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import LogitLaw, NegativeBinomialLaw, NormalLaw, StudentTLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.process import CERTAIN, DATA, HORIZON
from pdmp.processes.regression_boomerang import BOUNCE, ROW, shares
from pdmp.processes.regression_bps import LEVELS, RegressionBPS
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import row_bounds
from pdmp.processes.sticky import Sticky
from pdmp.processes.sticky_groups import StickyGroups
from tests.checks import in_quick
from tests.processes.helpers_moving_regressions import Late
from tests.processes.helpers_regression_boomerang import along, state_at
from tests.processes.helpers_regression_zigzag import DISPERSIONS, LAWS

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

#: Student's t, the dearest, by ``pytest --full``: it has two dispersions, and the negative binomial one.
EVERY = pytest.mark.parametrize(
    "law", in_quick(list(LAWS.values()), *(law for law in LAWS.values() if law is not StudentTLaw)), ids=LAWS
)
COLUMNS = 12
SUPPORT = [0, 3, 11]  #: of the anchor, with the last column
#: Of columns, those that move, and those that stand away from the anchor: of the support or not.
CASES = [([0, 3, 11], []), ([0, 3, 5], []), ([5], [11]), ([3, 5], [1, 11]), ([], [0, 2]), (list(range(COLUMNS)), [])]


def regression(law, n=20):
    """Many columns, of several scales, with an offset and weights."""
    rng = np.random.default_rng(21)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, COLUMNS - 1)) * np.linspace(0.5, 2.0, COLUMNS - 1)])
    z = 0.3 * X[:, 3] - 0.2 * X[:, 11]
    likelihood = law()
    if law is NormalLaw or likelihood.dispersions and law.__name__ == "StudentTLaw":
        y = z + rng.standard_normal(n)
    else:
        y = (rng.random(n) < 0.5).astype(float) if law.__name__ in ("LogitLaw", "ProbitLaw") else rng.poisson(np.exp(z))
    return MixedRegression(
        X,
        y,
        likelihood,
        ["Intercept", *(f"x{j}" for j in range(1, COLUMNS))],
        [Normal(0.0, 1.0)] * COLUMNS,
        dispersion_priors=[DISPERSIONS[name] for name in likelihood.dispersions],
        intercept=0,
        offset=rng.normal(0.0, 0.1, n),
        weights=rng.uniform(0.5, 1.5, n),
    )


def sparse_anchor(model):
    """The mode, but 0 outside the support."""
    anchor = laplace(model).mean.copy()
    anchor[np.setdiff1d(np.arange(COLUMNS), SUPPORT)] = 0.0
    return anchor


@functools.cache
def both(law):
    """The process that counts the coordinates that move, and that of all, of one model and anchor."""
    model = regression(law)
    anchor = sparse_anchor(model)
    return model, anchor, RegressionBPS(model, anchor, few_move=True), RegressionBPS(model, anchor)


def standing(process, rng, moving, away):
    """A position and a velocity; dispersions move."""
    x, v, sd = process.anchor.copy(), np.zeros(process.dim), process.reference.sd
    which = [*moving, *range(COLUMNS, process.dim)]
    v[which] = sd[which] * rng.standard_normal(len(which))
    x[[*which, *away]] += sd[[*which, *away]] * rng.standard_normal(len(which) + len(away))
    return x, v


@EVERY
def test_shares_by_hand(law):
    """Of columns, and of Λᵢ by columns √ρ times as large, with the same linear predictors."""
    model = regression(law)
    anchor, sd = sparse_anchor(model), laplace(model).sd
    support, levels = anchor != 0.0, np.array([1.0, 0.3, 0.01])
    weights, *shells = row_bounds(model, anchor, sd)
    share, together, factors = shares(model, anchor, sd, weights, Shells(*shells), support, levels)
    squares = (model.X * sd[:COLUMNS]) ** 2
    parts = squares / squares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share, np.append(parts.max(axis=0), np.zeros(model.dim - COLUMNS)), rtol=1e-12)
    assert together == pytest.approx(parts[:, SUPPORT].sum(axis=1).max(), rel=1e-12)
    assert together < share[SUPPORT].sum() - 0.1
    np.testing.assert_array_equal(factors[0], shells[1])
    assert np.all(np.diff(factors, axis=0) <= 0.0) and np.all(np.diff(factors, axis=1) >= 0.0)
    if not model.n_dispersions:
        np.testing.assert_allclose(factors, levels[:, None] ** 1.5 * factors[0])
    for level, factor in zip(levels[1:], factors[1:], strict=True):
        smaller = regression(law)
        smaller.design.data[:] *= math.sqrt(level)
        there = anchor.copy()
        there[:COLUMNS] /= math.sqrt(level)
        found, radii, own = row_bounds(smaller, there, sd)  # in boxes as small as can be
        n = min(len(own), len(factor))
        assert np.all(np.max(found / weights) * own[:n] <= 1.5 * np.max(factor[:n] / own[:n]) * own[:n] + 1e-12)
        assert np.max(found / weights) <= factor[0] * (1.0 + 1e-9) or model.n_dispersions
    if law not in (StudentTLaw, NegativeBinomialLaw):  # of which the dispersions are what counts
        assert factors[2, 0] < 0.9 * factors[0, 0]


@pytest.mark.parametrize(
    ("law", "moving", "away"), [(list(LAWS.values())[k % 6], *case) for k, case in enumerate(CASES + CASES[1:4])]
)
def test_no_rate_is_above_its_bound(law, moving, away):
    """Each row, where a proposal may come; nor is the bound above that for all columns."""
    model, anchor, few, every = both(law)
    rng, loss = np.random.default_rng(3), np.zeros(3)
    np.testing.assert_array_equal(few.weights, every.weights)
    assert few.support.tolist() == SUPPORT  # of columns, though a dispersion's anchor is not 0 either
    share, proposed = few.total / few.weights, 0
    for _ in range(2):
        x, v = standing(few, rng, moving, away)
        if not np.any(v):
            assert few.native.clock(state_at(few, x, v), ROW, 0.0, Late(1.0)) == (math.inf, CERTAIN)
            return
        state, other = state_at(few, x, v), state_at(every, x, v)
        for now in (0.0, 0.4, 1.7):
            first = [p.native.clock(s, ROW, now, Late(1e-12))[1] for p, s in ((few, state), (every, other))]
            assert first[0] <= first[1] * (1.0 + 1e-12) or first[1] == HORIZON
            sd, level = few.reference.sd, state.memory.count[1]
            w = np.linalg.norm(v / sd)
            ends = [np.linalg.norm((x + v * t - anchor) / sd) for t in (now, now + 1.0)]
            ends = [few.total * few.growth.share(max(ends), level) * w * 0.5 * r**2 for r in ends]
            assert first[0] == pytest.approx(ends[0], rel=1e-4) or HORIZON in first
            for e in (1e-9, 0.01, 0.1, 0.5, 2.0, 20.0):
                time, bound = few.native.clock(state, ROW, now, Late(e))
                if not math.isfinite(time) or bound == HORIZON:
                    continue
                assert bound == pytest.approx(ends[0] + (ends[1] - ends[0]) * (time - now), rel=1e-6)
                rates = [abs(along(few, x + v * time, v, k, loss)) * share[k] for k in range(model.n_data)]
                assert max(rates) <= bound * (1.0 + 1e-9)
                proposed += 1
    assert proposed > 3


@EVERY
def test_the_level_is_the_next_one_above_the_share(law):
    """ρ adds the shares of columns that move or stand away from the anchor to that of its support."""
    model = regression(law)
    scale, rng = laplace(model).sd * np.linspace(0.3, 3.0, model.dim), np.random.default_rng(5)
    process = RegressionBPS(model, sparse_anchor(model), metric=pdmp.Metric(scales=scale), few_move=True)
    squares = (model.X * process.reference.sd[:COLUMNS]) ** 2
    parts = squares / squares.sum(axis=1, keepdims=True)
    together = parts[:, SUPPORT].sum(axis=1).max()
    for moving, away in CASES:
        x, v = standing(process, rng, moving, away)
        state = state_at(process, x, v)
        process.native.see_line(state)
        beyond = sorted({*moving, *away} - {*SUPPORT})
        share = together + parts[:, beyond].max(axis=0).sum()
        k = max(k for k, level in enumerate(LEVELS) if level >= share or k == 0)
        assert state.memory.count[1] == k
        places = state.memory.places[: state.memory.count[0]].tolist()
        assert places == sorted({*SUPPORT, *beyond})
    every = both(law)[3]
    state = state_at(every, x, v)
    every.native.see_line(state)
    assert state.memory.count[1] == 0


def test_levels():
    """From all columns to one in a million, two for each halving; a share below the last one has that."""
    assert LEVELS[0] == 1.0 and LEVELS[-1] < 1e-6
    np.testing.assert_allclose(LEVELS[2:] / LEVELS[:-2], 0.5)
    model = regression(LogitLaw)
    process = RegressionBPS(model, sparse_anchor(model), few_move=True)
    process.share[:], process.share_of_support = 0.0, 0.5 * LEVELS[-1]
    state = state_at(process, *standing(process, np.random.default_rng(0), [0, 3], []))
    process.native.see_line(state)
    assert state.memory.count[1] == len(LEVELS) - 1


@EVERY
@pytest.mark.parametrize(("moving", "away"), CASES[:-1])
def test_rows_are_read_where_columns_count(law, moving, away):
    """Rate and bounce are those from all columns, at a proposal after another one; one row is counted."""
    model, _, few, every = both(law)
    rng = np.random.default_rng(7)
    x, v = standing(few, rng, [*range(COLUMNS)], [])
    states = state_at(few, x, v), state_at(every, x, v)
    for at in (0.0, 2.0):  # all columns have counted before
        if at:
            x, v = standing(few, rng, moving, away)
            for state in states:
                state.x[:], state.v[:], state.moved[0] = x, v, at
        for process, state in zip((few, every), states, strict=True):
            process.native.clock(state, ROW, at, Late(1e-9))
        for now, i in ((at, 3), (at + 0.3, 11), (at + 0.7, 4)):
            rates = []
            for process, state in zip((few, every), states, strict=True):
                state.memory.row[0], state.bounds[ROW], before = i, 1.0, int(state.counts[DATA])
                rates.append(process.native.rate(state, ROW, now, None))
                assert state.counts[DATA] == before + 1
            assert rates[0] == pytest.approx(rates[1], rel=1e-8, abs=1e-12)
            np.testing.assert_allclose(states[0].memory.loss, states[1].memory.loss, rtol=1e-8, atol=1e-12)
    if np.any(v):
        jumps = [p.native.jump(s, ROW, now, None) for p, s in zip((few, every), states, strict=True)]
        assert jumps == [BOUNCE, BOUNCE]
        np.testing.assert_allclose(states[0].v, states[1].v, rtol=1e-8, atol=1e-12)


def test_beyond_the_last_shell_the_path_is_lost():
    few = both(NormalLaw)[2]
    x, v = standing(few, np.random.default_rng(0), [5], [])
    x[5] = few.anchor[5] + 2.0 * few.growth.radii[-1] * few.reference.sd[5]
    time, bound = few.native.clock(state_at(few, x, v), ROW, 0.0, Late(1.0))
    assert math.isnan(time) and bound == HORIZON


@pytest.mark.parametrize("inner", [Sticky, StickyGroups])
def test_the_same_path_where_rows_are_drawn_alike(inner):
    """If factors are those of all columns, columns that do not count make no difference to a sticky path."""
    model = regression(LogitLaw, 200)
    anchor, law = sparse_anchor(model), BetaBernoulli(1.0, 3.0)
    few, every = RegressionBPS(model, anchor, few_move=True), RegressionBPS(model, anchor)
    few.growth.factors[:] = every.growth.factors
    runs = []
    for process in (few, every):
        sticky = Sticky(process, law, [0]) if inner is Sticky else StickyGroups(process, [[1, 2], [5]], law, [0])
        runs.append(pdmp.sample(sticky, initial=anchor, proposals=1_200, seed=3, progress=False))
    assert runs[0].stats["events"]["freeze"] > 0 and runs[0].stats["events"]["thaw"] > 0
    np.testing.assert_allclose(runs[0].records[0].xs, runs[1].records[0].xs, rtol=1e-6, atol=1e-8)
    assert runs[0].stats["data_terms"] == runs[1].stats["data_terms"]


def test_rows_that_are_expected_are_those_of_all_columns():
    """Selection asks for them where rows are few: there many coefficients move, more than the anchor says."""
    _, _, few, every = both(NormalLaw)
    assert few.expected_data_of(4) == every.expected_data_of(4)
