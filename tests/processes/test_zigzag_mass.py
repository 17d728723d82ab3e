"""The Zig-Zag process with a metric: v = L s, flips of the signs s, rates (sᵢ aᵢ)₊ with a = Lᵀ∇U."""

import numpy as np
import pytest

import pdmp
from pdmp.validation import check_clocks
from tests.targets import LOGISTIC, Plane

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.2], [0.1, -0.2, 3.0]])
MEAN = np.array([1.0, -1.0, 0.5])
TARGET = pdmp.models.Gaussian(MEAN, PRECISION)
METRIC = np.array([[1.5, -0.4, 0.3], [-0.4, 0.8, 0.1], [0.3, 0.1, 2.5]])  # not the target's precision
ROOT = np.linalg.cholesky(np.linalg.inv(METRIC))
X = np.random.default_rng(0).standard_normal((12, 3))
REGRESSION = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float))


def state_at(process, x, s):
    state = process.begin(x, np.random.default_rng(0))
    state.v[:] = ROOT @ s
    process.prepare(state)
    return state


def signs(seed):
    return np.random.default_rng(seed).choice([-1.0, 1.0], 3)


@pytest.mark.parametrize("model", [TARGET, REGRESSION])
def test_rates_and_flips(model):
    """The rates of all signs, the same as `true_rates` says, balance the flow, and a flip changes one sign."""
    process, refreshed = (
        pdmp.ZigZag(model, metric=METRIC, thinning="grid", refresh_rate=rate).resolve(MEAN)
        for rate in (0.0, [0.2, 0.0, 0.1])
    )
    native = process.native
    for seed in range(6):
        x, s = np.random.default_rng(seed).standard_normal(3), signs(seed)
        state, out, stated = state_at(process, x, s), np.zeros(3), np.zeros(3)
        np.testing.assert_array_equal(state.memory.metric.u, s)
        native.signed_rates(state, 0.0, np.random.default_rng(0), out)
        np.testing.assert_allclose(out, s * (ROOT.T @ model.gradient(x)), rtol=1e-10)
        native.true_rates(x, state.v.copy(), np.zeros(3), stated)
        np.testing.assert_allclose(stated, out, rtol=1e-10)
        refreshed.native.true_rates(x, state.v.copy(), np.zeros(3), stated)  # signed where nothing is added
        both = np.maximum(out[0], 0.0) + 0.2, out[1], np.maximum(out[2], 0.0) + 0.1
        np.testing.assert_allclose(stated, both, rtol=1e-10)
        assert out.sum() == pytest.approx(state.v @ model.gradient(x))
        state.memory.flipping[0] = seed % 3
        assert native.jump(state, 0, 0.0, np.random.default_rng(0)) == 0
        s[seed % 3] *= -1.0
        np.testing.assert_array_equal(state.memory.metric.u, s)
        np.testing.assert_allclose(state.v, ROOT @ s, rtol=1e-14)


def test_the_slope_bound_holds_and_is_exact_for_a_quadratic_target():
    process, out = pdmp.ZigZag(TARGET, metric=METRIC).resolve(MEAN), np.zeros(3)
    assert process.exact_bounds and process.describe_bound() == "the bound by the model's `hessian_bounds` for Gaussian"
    for seed in range(6):
        s = signs(seed)
        process.native.rate_slope_bounds(state_at(process, MEAN, s), out)
        np.testing.assert_allclose(out, s * (ROOT.T @ PRECISION @ ROOT @ s), rtol=1e-10, atol=1e-12)
    process, tight = pdmp.ZigZag(REGRESSION, metric=METRIC).resolve(MEAN), 0.0
    assert process.exact_bounds
    for seed in range(200):
        x, s = 2.0 * np.random.default_rng(seed).standard_normal(3), signs(seed)
        process.native.rate_slope_bounds(state_at(process, x, s), out)
        slopes = s * (ROOT.T @ REGRESSION.hessian(x) @ ROOT @ s)
        assert np.all(slopes <= out * (1.0 + 1e-4) + 1e-4)  # Hessians are differences
        tight = max(tight, (slopes / out).max())
    assert tight > 0.5


def test_rates_of_a_quadratic_target_are_inverted():
    run = pdmp.sample(pdmp.ZigZag(TARGET, metric=METRIC), events=400, seed=1)
    assert run.stats["proposals"] == run.stats["events"]["flip"] == 400


@pytest.mark.parametrize("thinning", ["affine", "predicted"])
def test_a_mass_is_a_change_of_coordinates(thinning):
    """With the same seed the path is that of the target in these coordinates, up to rounding.

    Their mean curvature is 1, from which predictions start.
    """
    root = ROOT / np.sqrt(np.trace(ROOT.T @ PRECISION @ ROOT) / 3.0)
    seen = pdmp.models.Gaussian(np.zeros(3), root.T @ PRECISION @ root)
    start = np.array([0.4, -0.3, 0.8])
    x = pdmp.sample(
        pdmp.ZigZag(TARGET, metric=np.linalg.inv(root @ root.T), thinning=thinning, refresh_rate=0.1),
        initial=MEAN + root @ start, events=60, seed=4,
    ).trajectories[0]  # fmt: skip
    y = pdmp.sample(
        pdmp.ZigZag(seen, thinning=thinning, refresh_rate=0.1), initial=start, events=60, seed=4
    ).trajectories[0]  # fmt: skip
    np.testing.assert_allclose(x.times, y.times, rtol=1e-8)
    np.testing.assert_allclose(x.at(0.9 * x.end), MEAN + root @ y.at(0.9 * x.end), rtol=1e-7)


def test_a_vector_is_speeds():
    run, other = (
        pdmp.sample(pdmp.ZigZag(TARGET, **given), events=50, seed=2)
        for given in ({"metric": [4.0, 1.0, 0.25]}, {"metric": pdmp.Metric(scales=[0.5, 1.0, 2.0])})
    )
    np.testing.assert_array_equal(run.mean(), other.mean())


def test_the_hessian():
    process = pdmp.ZigZag(TARGET, metric="dense").resolve(MEAN)
    np.testing.assert_allclose(process.rates.middle, np.eye(3), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("thinning", ["affine", "grid", "predicted"])
def test_clocks(thinning):
    process = pdmp.ZigZag(REGRESSION, metric=METRIC, thinning=thinning, refresh_rate=[0.2, 0.0, 0.1])
    assert check_clocks(process, events=150, seed=6, tolerance=1e-3 if thinning == "affine" else 0.2).p > 1e-6


def test_what_is_refused():
    for options, message in [
        ({"thinning": "inversion"}, "`thinning` with a `metric` must be"),
        ({"metric": "adaptive"}, "`metric` of pdmp.ZigZag must be None, .* got 'adaptive'"),
        ({"metric": np.ones(2)}, "`metric` must be a number or have shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            pdmp.ZigZag(TARGET, **{"metric": METRIC} | options)
    with pytest.raises(ValueError, match='`thinning="affine"` with a `metric` needs'):
        pdmp.ZigZag(Plane(LOGISTIC), metric=np.eye(2), thinning="affine")
    with pytest.raises(ValueError, match="`metric` of pdmp.ZigZag must be diagonal"):
        pdmp.ZigZag(pdmp.gradients.Minibatch(REGRESSION, 1), metric=METRIC)
    with pytest.raises(TypeError, match="needs a process that knows what a wall does"):
        pdmp.Bounded(pdmp.ZigZag(TARGET, metric=METRIC), lower=0.0)
