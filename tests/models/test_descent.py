"""The search for a mode with batches: where it ends, what it says of that, and what starts and anchors make of it."""

import math

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.gradients import ControlVariate, Minibatch
from pdmp.models import BayesianNN, Gaussian, LogisticRegression, MatrixFactorization, descent, find_mode
from pdmp.models.factorisations import bayesian_nn, factorisation
from pdmp.models.numerical import quick_mode
from tests.checks import in_quick, plain_only

pytestmark = [pytest.mark.exact, plain_only]

RNG = np.random.default_rng(1)
X = RNG.standard_normal((200, 3)) * [1.0, 3.0, 0.3]
LOGISTIC = LogisticRegression(X, (X @ [1.0, -0.5, 2.0] + RNG.logistic(size=200) > 0.0).astype(int), prior_scale=0.4)


def ratings():
    rng = np.random.default_rng(2)
    users, items = rng.integers(0, 6, 60), rng.integers(0, 5, 60)
    return MatrixFactorization(users, items, rng.normal(3.0, 1.0, 60), 2, n_users=6, n_items=5)


@pytest.fixture
def many(monkeypatch):
    """A factorisation for which 60 ratings are many."""
    assert not ratings().searches_by_batches
    monkeypatch.setattr(factorisation, "LARGEST_SEARCH", 50)
    return ratings()


def error(model, x):
    return math.sqrt(np.sum(model.gradient(x) ** 2) / np.trace(model.hessian(x)))


@pytest.mark.parametrize("tolerance", [0.1, 1e-4])
def test_it_ends_within_the_tolerance_and_says_how_far(tolerance):
    found = find_mode(LOGISTIC, [2.0, 2.0, -2.0], tolerance, data_passes=100)
    assert found.reached and found.error <= tolerance == found.tolerance
    assert found.error == pytest.approx(error(LOGISTIC, found.x), rel=1e-6)
    assert found.potential == LOGISTIC.potential(found.x)
    assert 10.0 < found.data_passes < 50.0
    root = np.linalg.cholesky(LOGISTIC.hessian(found.x))
    assert np.linalg.norm(root.T @ (found.x - LOGISTIC.mode())) < 5.0 * tolerance
    assert f"the mode within {tolerance:g} standard deviations" in str(found)


def test_the_error_is_the_distance_in_standard_deviations():
    """On a target without data nothing descends; a start that is good enough is the answer."""
    model = Gaussian(np.array([1.0, 2.0]), 4.0 * np.eye(2))
    found = find_mode(model, [1.0 + 0.5 * 0.6, 2.0 - 0.5 * 0.8], tolerance=1.0)
    assert found.error == pytest.approx(math.sqrt(0.5)) and found.data_passes < 5.0
    np.testing.assert_array_equal(found.x, [1.3, 1.6])
    np.testing.assert_allclose(find_mode(model, [5.0, -5.0], tolerance=1e-6).x, [1.0, 2.0], atol=1e-6)


@pytest.mark.parametrize("size", in_quick([20, 50], 20))
def test_the_descent_alone_comes_close(size, monkeypatch):
    """With the prior, and the batch scaled up to all the data: without either it ends 0.5 or more away."""
    monkeypatch.setattr(descent._Search, "polish", lambda search: None)
    found = [find_mode(LOGISTIC, [1.0, 1.0, -1.0], data_passes=1_000, size=size, step=0.05, seed=s) for s in range(3)]
    assert error(LOGISTIC, np.ones(3)) > 2.0
    for each in found:
        assert each.error == pytest.approx(error(LOGISTIC, each.x))
        assert each.data_passes == pytest.approx(100.0 + 2 + 1, abs=1.0)
    # Each is some 0.15 off by the noise of its last batches.
    assert error(LOGISTIC, np.mean([each.x for each in found], axis=0)) < 0.3


def test_its_steps_decrease_to_zero(monkeypatch):
    seen = []
    monkeypatch.setattr(
        descent, "_estimate_gradient", lambda model, x, rows, out: (seen.append(x.copy()), out.fill(3.0))
    )
    descent._Search(LOGISTIC, 0.1, 100.0).descend(np.zeros(3), 20, 0.5, 0)
    steps = -np.diff(np.array(seen)[:, 0])
    np.testing.assert_allclose(steps, 0.5 * (1.0 - np.arange(len(steps)) / (len(steps) + 1)), rtol=1e-12)
    assert len(seen) == 100


def test_a_budget_that_is_too_small_is_said(many):
    found = find_mode(many, tolerance=1e-6, data_passes=10)
    assert not found.reached and found.error > 1e-6 and 10.0 < found.data_passes < 40.0
    assert found.potential < many.potential(many.initial)
    assert str(found).startswith("no mode within 1e-06 standard deviations")


def test_a_step_that_is_far_too_long_leads_nowhere_and_the_start_is_kept():
    found = find_mode(LOGISTIC, np.zeros(3), data_passes=20, step=1e300)
    assert np.all(np.isfinite(found.x)) and found.potential <= LOGISTIC.potential(np.zeros(3))


def test_nothing_finite_is_no_mode():
    model = pdmp.models.from_function(lambda x: (math.inf if x.any() else 0.0, np.full(2, 1.0)), 2)
    found = find_mode(model, np.ones(2))
    assert found.error == math.inf and not found.reached and np.array_equal(found.x, np.ones(2))


def test_the_mode_of_much_data(many):
    assert many.searches_by_batches
    mode = many.mode()
    assert np.array_equal(mode, find_mode(many).x) and error(many, mode) < 0.1
    assert error(many, many.mode(mode + 0.3)) < 0.1
    assert quick_mode(many) is None
    assert np.array_equal(quick_mode(LOGISTIC), LOGISTIC.mode())


def test_the_mode_of_a_large_network(monkeypatch):
    network = BayesianNN(X[:40], np.arange(40) % 2, hidden=2, activation="tanh")
    assert not network.searches_by_batches
    monkeypatch.setattr(bayesian_nn, "LARGEST_SEARCH", 100)
    assert network.searches_by_batches and error(network, network.mode()) < 0.1


def test_control_variates_are_anchored_there(many):
    anchored = ControlVariate(many, 5)
    assert np.array_equal(anchored.anchor, find_mode(many).x)
    run = pdmp.sample(discrete.SGLD(anchored, 1e-6), steps=3, seed=1)
    assert np.array_equal(run.trajectories[0].positions[0], anchored.anchor)


def test_an_anchor_that_is_no_mode_is_said(many, monkeypatch):
    short = find_mode(many, data_passes=2, tolerance=1e-3)
    for room in ("models.numerical", "gradients.control_variate"):
        monkeypatch.setattr(f"pdmp.{room}.find_mode", lambda model, initial=None: short)
    assert many.mode() is None
    with pytest.warns(UserWarning, match="`anchor`: MatrixFactorization has no mode within 0.001 .*biases nothing"):
        assert np.array_equal(ControlVariate(many, 5).anchor, short.x)


def test_runs_do_not_search_before_they_start(many, monkeypatch):
    for room in ("models.numerical", "gradients.control_variate"):
        monkeypatch.setattr(f"pdmp.{room}.find_mode", None)
    run = pdmp.sample(discrete.SGLD(Minibatch(many, 5), 1e-6), steps=3, seed=1)
    assert np.array_equal(run.trajectories[0].positions[0], many.initial)


@pytest.mark.parametrize(
    "options",
    [{"tolerance": 0.0}, {"data_passes": -1}, {"size": 0}, {"step": math.inf}, {"seed": -1}, {"initial": [0.0]}],
    ids=lambda options: next(iter(options)),
)
def test_bad_arguments(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
        find_mode(LOGISTIC, **options)


def test_it_ends_with_the_first_point_within_the_tolerance(monkeypatch):
    """Though L-BFGS would go on."""
    evaluate, within = descent._Search.evaluate, []

    def watched(search, x):
        try:
            return evaluate(search, x)
        finally:
            within.append(search.error <= search.tolerance)

    monkeypatch.setattr(descent._Search, "evaluate", watched)
    assert find_mode(LOGISTIC, [2.0, 2.0, -2.0], 0.02, data_passes=100).reached
    assert len(within) > 2 and within[-1] and not any(within[:-1])


def test_it_goes_on_where_the_curvature_has_changed_on_the_way():
    """Where it begins U bends 70 times as much as at the mode, so that an end seems eight times as near as it is."""
    model = pdmp.models.from_function(lambda x: (float(np.cosh(x).sum()), np.sinh(x)), 1)
    found = find_mode(model, [5.0], tolerance=0.1)
    assert found.reached and abs(found.x[0]) < 0.1 and found.error == pytest.approx(error(model, found.x), rel=1e-3)
