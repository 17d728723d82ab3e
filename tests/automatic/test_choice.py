"""Which process is chosen, and that it is what was learnt."""

import numpy as np
import pytest

import pdmp
from pdmp.automatic import choice
from pdmp.automatic.choice import boomerang_process, choose, trial_yield
from pdmp.automatic.metric import learn_metric
from pdmp.automatic.start import Gaussian, find_starts
from pdmp.automatic.windows import gradients_of
from pdmp.processes.gaussian_reference import DenseReference
from tests.targets import HEAVY, LOGISTIC, Plane

pytestmark = pytest.mark.exact


def prepared(model, chains=2):
    root = np.random.SeedSequence(2)
    return learn_metric(model, find_starts(model, chains, np.random.default_rng(1)), root)


def many_data(n=400, d=3):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d))
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-X[:, 0]))
    return pdmp.models.LogisticRegression(X, y, prior_scale=1.0)


def test_boomerang_on_a_logistic_regression():
    model = many_data()
    found = prepared(model)
    chosen = choose(model, found, np.random.SeedSequence(3))
    assert isinstance(chosen.process, pdmp.Boomerang)
    assert chosen.line.startswith("Boomerang: the posterior is near normal") and "settled" in chosen.line
    np.testing.assert_array_equal(chosen.process.mean, found.gaussian.centre)
    np.testing.assert_allclose(chosen.process.reference.covariance, found.gaussian.root @ found.gaussian.root.T)


def test_chain_in_heavy_tails():
    model = Plane(HEAVY)
    found = prepared(model)
    chosen = choose(model, found, np.random.SeedSequence(3))
    assert isinstance(chosen.process, pdmp.ForwardEventChain) and chosen.gradients == 0
    assert "far from normal" in chosen.line
    np.testing.assert_array_equal(chosen.process.mass.root, found.gaussian.root)


def test_in_between_a_trial_decides(monkeypatch):
    model = Plane(LOGISTIC)
    found = prepared(model)._replace(residual=0.3)
    yields = {"Boomerang": 0.2, "ForwardEventChain": 0.1}
    monkeypatch.setattr(choice, "trial_yield", lambda run: yields[run.info["sampler"]])
    chosen = choose(model, found, np.random.SeedSequence(3))
    assert isinstance(chosen.process, pdmp.Boomerang)
    assert "200 effective draws per 1,000 gradients of the Boomerang, 100 of the forward event chain" in chosen.line
    assert chosen.gradients >= gradients_of(found.last) * 0.9
    assert np.all(chosen.points != found.points)
    yields["Boomerang"] = 0.1 * choice.MARGIN
    chosen = choose(model, found, np.random.SeedSequence(3))
    assert isinstance(chosen.process, pdmp.ForwardEventChain)
    np.testing.assert_array_equal(chosen.points, found.points)


def test_a_residual_that_is_not_a_number_is_far_from_normal():
    model = Plane(LOGISTIC)
    chosen = choose(model, prepared(model)._replace(residual=np.nan, change=0.7), np.random.SeedSequence(3))
    assert isinstance(chosen.process, pdmp.ForwardEventChain)
    assert "not settled: they changed by 0.7" in chosen.line


def test_a_trial_with_violations_yields_nothing():
    found = prepared(Plane(LOGISTIC))
    assert trial_yield(found.last) > 0.0
    found.last.stats["bound_violations"] = int(0.06 * found.last.stats["thinned"]) + 1
    assert trial_yield(found.last) == 0.0


def test_reference_from_a_root():
    root = np.tril(np.random.default_rng(0).normal(size=(3, 3))) + 2.0 * np.eye(3)
    mine, plain = DenseReference.from_root(root), DenseReference(root @ root.T)
    for name in ("covariance", "precision", "root", "sd"):
        np.testing.assert_allclose(np.abs(getattr(mine, name)), np.abs(getattr(plain, name)), rtol=1e-9)
    scale = np.array([1e-7, 1e7])
    correlations = np.array([[1.0, 0.999_999], [0.999_999, 1.0]])
    extreme = DenseReference.from_root(scale[:, None] * np.linalg.cholesky(correlations))
    np.testing.assert_allclose(extreme.precision * scale[:, None] * scale, np.linalg.inv(correlations), rtol=1e-6)


def test_diagonal_reference():
    model = many_data()
    process = boomerang_process(model, Gaussian(np.ones(3), np.array([1.0, 2.0, 0.5])))
    np.testing.assert_allclose(process.reference.sd, [1.0, 2.0, 0.5])
