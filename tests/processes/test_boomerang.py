"""Boomerang and factorised Boomerang: arrivals, rates, reflections, bounds and what they refuse; to rounding."""

import math

import numpy as np
import pytest
from numba.core import config
from scipy import sparse

import pdmp
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, LogisticRegression, SkewNormal
from pdmp.models.numerical import prior_gradient
from pdmp.process import CERTAIN, HORIZON
from pdmp.processes import gaussian_bounds, gaussian_reference
from pdmp.thinning import Constant, Grid, Inversion, Maxima, Narrow
from pdmp.thinning.conserved import capped_arrival
from pdmp.thinning.sinusoid import product_arrival, sinusoid_arrival
from tests.checks import plain
from tests.targets import MEAN, MODEL, PRECISION, Quartic

pytestmark = pytest.mark.exact

WRONG = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]])


def rng(seed=0):
    return np.random.default_rng(seed)


def logistic(n_data=15, d=3, seed=1):
    X = rng(seed).normal(size=(n_data, d))
    y = (rng(seed + 1).random(n_data) < 1.0 / (1.0 + np.exp(-X.sum(axis=1)))).astype(float)
    return LogisticRegression(X, y, prior_scale=1.5)


LOGISTIC = logistic()
A = rng(3).normal(size=(12, 3))
LINEAR = LinearGaussian(A, A @ np.ones(3) + rng(4).normal(size=12))


class Draw:
    """A random stream that is known in advance."""

    def __init__(self, exponential=1.0, normals=()):
        self.standard_exponential = lambda: exponential
        self.standard_normal = iter(normals).__next__


def integral(f, t):
    """∫₀ᵗ max(0, f) of a function with period 2π."""
    turn, rest = np.linspace(0.0, math.tau, 20_001), np.linspace(0.0, t % math.tau, 20_001)
    whole, part = (np.trapezoid(np.maximum(f(s), 0.0), s) for s in (turn, rest))
    return t // math.tau * whole + part


# ---------------------------------------------------------------------------------------------------------------
# Arrivals


@pytest.mark.parametrize("e", [1e-4, 0.03, 0.7, 5.0, 41.3])
def test_sinusoids_integrate_to_the_exponential_where_they_arrive(e):
    for a, b in rng(1).normal(size=(12, 2)):
        for k in (1.0, 2.0):
            t = plain(sinusoid_arrival)(a, b, k, e)
            found = integral(lambda s, k=k, a=a, b=b: a * np.cos(k * s) + b * np.sin(k * s), t)
            assert found == pytest.approx(e, rel=1e-5, abs=2e-7)
            assert a * math.cos(k * t) + b * math.sin(k * t) >= -1e-7
    assert plain(sinusoid_arrival)(0.0, 0.0, 2.0, e) == math.inf
    for start in (0.0, 0.5 * math.pi, math.pi, -0.5 * math.pi):  # at the edges of a hump
        t = plain(sinusoid_arrival)(math.cos(start), -math.sin(start), 1.0, e)
        assert integral(lambda s, start=start: np.cos(s + start), t) == pytest.approx(e, rel=1e-5, abs=2e-7)


@pytest.mark.parametrize("e", [1e-4, 0.03, 0.7, 5.0, 41.3])
def test_products_integrate_to_the_exponential_where_they_arrive(e):
    for seed, (v, y, c0, c1, c2) in enumerate(rng(2).normal(size=(20, 5))):
        c0 *= 3.0 if seed % 3 == 0 else 0.3  # two zeros or none in the second factor

        def f(s, v=v, y=y, c0=c0, c1=c1, c2=c2):
            return (v * np.cos(s) - y * np.sin(s)) * (c0 + c1 * np.cos(s) + c2 * np.sin(s))

        t = plain(product_arrival)(v, y, c0, c1, c2, e)
        assert integral(f, t) == pytest.approx(e, rel=1e-5, abs=2e-7)
        assert f(t) > -1e-9


def test_products_that_are_never_positive_never_arrive():
    assert plain(product_arrival)(0.8, -0.6, 0.0, -0.8, -0.6, 1.0) == math.inf  # minus a square
    assert plain(product_arrival)(0.8, -0.6, 0.0, 0.0, 0.0, 1.0) == math.inf
    assert plain(product_arrival)(0.0, 0.0, 1.0, 1.0, 0.0, 1.0) == math.inf
    assert math.isnan(plain(product_arrival)(1.0, 0.0, math.nan, 1.0, 0.0, 1.0))


def test_capped_lines_integrate_to_the_exponential_where_they_arrive():
    slope, level = 2.0, 3.0
    for rate, e in ((-1.0, 0.4), (-1.0, 12.0), (1.0, 0.1), (1.0, 9.0)):
        t = plain(capped_arrival)(rate, slope, level, e)
        assert integral(lambda s, r=rate: np.minimum(r + slope * s, level), t) == pytest.approx(e, rel=1e-4)
    assert plain(capped_arrival)(0.0, 0.0, 0.0, 1.0) == math.inf


# ---------------------------------------------------------------------------------------------------------------
# Rates and reflections, through the processes' own methods


def state_at(process, x, v, moved=0.0):
    state = process.begin(np.array(x, dtype=float), rng())
    state.v[:] = v
    state.moved[:] = moved
    return state


def excess_gradient(model, x, m, covariance):
    """∇E, written from its definition."""
    return model.gradient(x) - np.linalg.solve(covariance, x - m)


def turned(x, v, m, s):
    return m + (x - m) * math.cos(s) + v * math.sin(s), v * math.cos(s) - (x - m) * math.sin(s)


BOOMERANGS = {
    "Gaussian, dense": lambda: pdmp.Boomerang(MODEL, mean=[0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=WRONG)),
    "Gaussian, diagonal": lambda: pdmp.Boomerang(MODEL, metric=pdmp.Metric(covariance=[1.0, 2.0, 0.5])),
    "logistic": lambda: pdmp.Boomerang(LOGISTIC, metric=pdmp.Metric(covariance=WRONG)),
}


@pytest.mark.parametrize("name", BOOMERANGS)
def test_boomerang_balances_the_flow(name):
    """λ(x, v) - λ(x, Rv) = v·∇E, λ(x, -Rv) = λ(x, v), Rv has the Σ⁻¹-norm of v, and R is an involution."""
    process = BOOMERANGS[name]()
    m, model = process.mean, process.model
    covariance = np.diag(process.reference.sd**2) if name.endswith("diagonal") else process.reference.covariance
    for seed in range(10):
        x, v = rng(seed).standard_normal((2, 3))

        def rate(v, x=x):
            return process.native.rate(state_at(process, x, v), 0, 0.0, rng())

        along = v @ excess_gradient(model, x, m, covariance)
        assert rate(v) == pytest.approx(max(0.0, along), rel=1e-11)
        state = state_at(process, x, v)
        assert process.native.jump(state, 0, 0.0, rng()) == 0
        w = state.v.copy()
        assert rate(v) - rate(w) == pytest.approx(along, rel=1e-10)
        assert rate(-w) == pytest.approx(rate(v), rel=1e-10, abs=1e-12)
        assert w @ np.linalg.solve(covariance, w) == pytest.approx(v @ np.linalg.solve(covariance, v), rel=1e-12)
        np.testing.assert_array_equal(state.x, x)
        again = state_at(process, x, w)
        process.native.jump(again, 0, 0.0, rng())
        np.testing.assert_allclose(again.v, v, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", BOOMERANGS)
def test_rates_are_those_of_the_turned_position_and_velocity(name):
    process = BOOMERANGS[name]()
    covariance = np.diag(process.reference.sd**2) if name.endswith("diagonal") else process.reference.covariance
    for seed in range(5):
        x, v = rng(seed).standard_normal((2, 3))
        state, out = state_at(process, x, v, moved=0.4), np.zeros(1)
        for now in (0.4, 1.3, 7.0):
            there, w = turned(x, v, process.mean, now - 0.4)
            process.native.signed_rates(state, now, rng(), out)
            expected = w @ excess_gradient(process.model, there, process.mean, covariance)
            assert out[0] == pytest.approx(expected, rel=1e-10, abs=1e-12)
            truth, scratch = np.zeros(2), np.zeros(3)
            process.native.true_rates(there, w, scratch, truth)
            assert truth[0] == pytest.approx(expected, rel=1e-10, abs=1e-12) and truth[1] == 0.5
        y = np.linalg.solve(np.linalg.cholesky(covariance), np.array([x - process.mean, v]).T)
        assert process.native.energy(state) == pytest.approx((y**2).sum(), rel=1e-12)
        state.v[:], state.moved[0] = 0.0, 1.4  # a refreshment
        assert process.native.energy(state) == pytest.approx((y[:, 0] ** 2).sum(), rel=1e-12)


@pytest.mark.parametrize("name", ["Gaussian, dense", "Gaussian, diagonal"])
def test_on_a_gaussian_the_rate_is_two_waves(name):
    process = BOOMERANGS[name]()
    for seed in range(5):
        x, v = rng(seed).standard_normal((2, 3))
        state, out = state_at(process, x, v), np.zeros(1)
        a, b, c, d, _ = process.native.harmonics(state, 0.6, rng())
        for t in (0.0, 0.3, 2.0, 9.0):
            process.native.signed_rates(state, 0.6 + t, rng(), out)
            waves = a * math.cos(t) + b * math.sin(t) + c * math.cos(2.0 * t) + d * math.sin(2.0 * t)
            assert out[0] == pytest.approx(waves, rel=1e-10, abs=1e-11)
        if name == "Gaussian, diagonal":  # the mean is the mode
            assert abs(a) + abs(b) < 1e-12


def test_where_the_mean_is_the_mode_of_a_gaussian_bounces_are_exact():
    process = pdmp.Boomerang(MODEL, metric=pdmp.Metric(covariance=WRONG))
    for seed in range(10):
        x, v = rng(seed).standard_normal((2, 3))
        time, bound = process.native.clock(state_at(process, x, v), 0, 0.0, Draw(0.8))

        def along(s, x=x, v=v):
            cos, sin = np.cos(s)[:, None], np.sin(s)[:, None]
            y, w = (x - MEAN) * cos + v * sin, v * cos - (x - MEAN) * sin
            return np.einsum("ki,ij,kj->k", w, PRECISION - np.linalg.inv(WRONG), y)

        assert integral(along, time) == pytest.approx(0.8, rel=1e-4)
        assert bound == CERTAIN


def test_a_gaussian_with_its_own_reference_never_bounces():
    process = pdmp.Boomerang(MODEL)
    np.testing.assert_allclose(process.reference.covariance, np.linalg.inv(PRECISION), rtol=1e-12)
    np.testing.assert_array_equal(process.mean, MEAN)
    state = state_at(process, [3.0, 1.0, -1.0], [1.0, 0.3, 0.2])
    assert process.native.clock(state, 0, 0.0, rng()) == (math.inf, CERTAIN)


FACTORISED = {
    "inversion": lambda: pdmp.FactorisedBoomerang(
        MODEL, mean=[0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=[1.0, 2.0, 0.5])
    ),
    "hessian": lambda: pdmp.FactorisedBoomerang(
        MODEL, [0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=[1.0, 2.0, 0.5]), thinning="hessian"
    ),
    "logistic": lambda: pdmp.FactorisedBoomerang(LOGISTIC),
}


@pytest.mark.parametrize("name", FACTORISED)
def test_factorised_boomerang_balances_the_flow(name):
    """Σⱼ λⱼ(x, v) - λⱼ(x, Fⱼv) = v·∇E, and λⱼ(x, -Fⱼv) = λⱼ(x, v), with λⱼ = (vⱼ ∂ⱼE)₊."""
    process = FACTORISED[name]()
    covariance = np.diag(process.reference.sd**2)
    for seed in range(5):
        x, v = rng(seed).standard_normal((2, 3))
        gradient = excess_gradient(process.model, x, process.mean, covariance)
        out, truth = np.zeros(3), np.zeros(6)
        process.native.signed_rates(state_at(process, x, v), 0.0, rng(), out)
        np.testing.assert_allclose(out, v * gradient, rtol=1e-10, atol=1e-12)
        process.native.true_rates(x, v, np.zeros(3), truth)
        np.testing.assert_allclose(truth, np.append(out, np.full(3, 0.5)), rtol=1e-10, atol=1e-12)
        for j in range(3):
            flipped = v.copy()
            flipped[j] *= -1.0
            other, back = np.zeros(3), np.zeros(3)
            process.native.signed_rates(state_at(process, x, flipped), 0.0, rng(), other)
            process.native.signed_rates(state_at(process, x, -flipped), 0.0, rng(), back)
            assert max(out[j], 0.0) - max(other[j], 0.0) == pytest.approx(v[j] * gradient[j], rel=1e-10)
            assert back[j] == pytest.approx(out[j], rel=1e-10)
        if name != "inversion":
            total = process.native.rate(state_at(process, x, v), 0, 0.0, rng())
            assert total == pytest.approx(np.maximum(v * gradient, 0.0).sum(), rel=1e-10)


def test_the_two_factors_of_each_rate():
    """Also when coordinates last changed at different times, and one of them stands still at zero."""
    process = FACTORISED["inversion"]()
    x, v, moved = np.array([0.4, 0.0, -1.0]), np.array([1.0, 0.0, 0.7]), np.array([0.0, 0.3, 0.7])
    for still in (True, False):
        v[1] = 0.0 if still else -0.5
        state = state_at(process, x, v, moved)
        for i in range(3):
            if still and i == 1:
                assert process.native.clock(state, i, 1.1, Draw(0.4))[0] == math.inf
                continue
            f = process.native.sinusoid_factors(state, i, 1.1)
            for t in (0.0, 0.5, 3.0):
                parts = [turned(x[j], v[j], process.mean[j], 1.1 + t - moved[j]) for j in range(3)]
                there, w = np.array(parts).T
                if still:
                    there[1] = w[1] = 0.0
                gradient = excess_gradient(MODEL, there, process.mean, np.diag([1.0, 2.0, 0.5]))
                cos, sin = math.cos(t), math.sin(t)
                assert f[0] * cos - f[1] * sin == pytest.approx(w[i], rel=1e-12)
                assert f[2] + f[3] * cos + f[4] * sin == pytest.approx(gradient[i], rel=1e-11, abs=1e-12)


def test_flips_and_refreshments_touch_one_coordinate_and_its_neighbours_clocks():
    process = FACTORISED["inversion"]()
    assert (process.clocks, process.local) == (6, True)
    rows = [process.order[process.start[i] : process.start[i + 1]].tolist() for i in range(6)]
    assert rows == [[0, 1], [0, 1, 2], [1, 2], [0, 1, 3], [0, 1, 2, 4], [1, 2, 5]]
    state = state_at(process, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert process.native.touches(state, 5) == (2, 3) and process.native.touches(state, 2) == (2, 3)
    assert process.native.jump(state, 1, 0.0, rng()) == 0 and state.v.tolist() == [1.0, -1.0, 1.0]
    assert process.native.jump(state, 4, 0.0, Draw(normals=[0.7])) == 1
    np.testing.assert_allclose(state.v, [1.0, 0.7 * math.sqrt(2.0), 1.0], rtol=1e-15)
    assert process.channels()[4] == "refresh 1"


@pytest.mark.parametrize("name", FACTORISED)
def test_each_coordinate_is_refreshed_at_the_rate(name):
    """By a clock of its own, or by one for all three, which chooses among them."""
    process = FACTORISED[name]()
    state, generator, chosen = state_at(process, [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]), rng(1), []
    for k in range(30):
        wait = rng(k).standard_exponential() / (0.5 * (3.0 if process.one_clock else 1.0))
        assert process.native.clock(state, process.clocks - 1, 2.0, rng(k)) == (pytest.approx(2.0 + wait), CERTAIN)
        process.native.clock(state, process.clocks - 1, 2.0, generator)
        chosen.append(process.native.touches(state, process.clocks - 1)[0])
    assert set(chosen) == ({0, 1, 2} if process.one_clock else {2})


# ---------------------------------------------------------------------------------------------------------------
# The reference


def test_references():
    dense = gaussian_reference.DenseReference(WRONG)
    diagonal = gaussian_reference.DiagonalReference(np.array([1.0, 2.0, 0.5]))
    z = [0.3, -1.2, 0.8]
    for reference, covariance in ((dense, WRONG), (diagonal, np.diag([1.0, 2.0, 0.5]))):
        out, y, v = np.zeros(3), np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.2, -0.3])
        reference.draw(Draw(normals=z), out)
        np.testing.assert_allclose(out, np.linalg.cholesky(covariance) @ z, rtol=1e-14)
        reference.flatten(y, out)
        np.testing.assert_allclose(out, np.linalg.solve(covariance, y), rtol=1e-13)
        assert reference.inner(v, y + 1.0, np.ones(3)) == pytest.approx(v @ np.linalg.solve(covariance, y), rel=1e-13)
        reference.raised(y, out)
        np.testing.assert_allclose(out, covariance @ y, rtol=1e-13)
        np.testing.assert_allclose(reference.root @ reference.root.T, covariance, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(
            reference.sandwich(PRECISION), reference.root.T @ PRECISION @ reference.root, atol=1e-14
        )


def test_defaults_of_the_reference():
    mode = LOGISTIC.mode()
    process = pdmp.Boomerang(LOGISTIC)
    np.testing.assert_allclose(process.mean, mode, atol=1e-12)
    np.testing.assert_allclose(process.reference.covariance, np.linalg.inv(LOGISTIC.hessian(mode)), rtol=1e-9)
    for diagonal in (pdmp.Boomerang(LOGISTIC, metric="diagonal"), pdmp.FactorisedBoomerang(LOGISTIC)):
        np.testing.assert_allclose(diagonal.reference.sd ** (-2.0), np.diag(LOGISTIC.hessian(mode)), rtol=1e-9)
    np.testing.assert_allclose(pdmp.FactorisedBoomerang(MODEL).reference.sd ** (-2.0), np.diag(PRECISION), rtol=1e-14)
    anchored = pdmp.Boomerang(ControlVariate(LOGISTIC, 1, anchor=[0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(anchored.mean, [0.1, 0.2, 0.3])
    by_importance = pdmp.Boomerang(
        ControlVariate(LOGISTIC, 1, draw="importance"), metric=pdmp.Metric(covariance=[1.0, 2.0, 0.5])
    )
    np.testing.assert_array_equal(by_importance.provider.scale, np.sqrt([1.0, 2.0, 0.5]))
    np.testing.assert_array_equal(
        pdmp.Boomerang(MODEL, metric=pdmp.Metric(covariance=2.0)).reference.sd, np.full(3, math.sqrt(2.0))
    )


# ---------------------------------------------------------------------------------------------------------------
# Bounds


def test_bounds_on_hessians_hold():
    for model in (MODEL, LINEAR, LOGISTIC):
        lower, upper = model.hessian_bounds()
        for seed in range(5):
            hessian = model.hessian(2.0 * rng(seed).standard_normal(3))
            assert np.linalg.eigvalsh(hessian - lower)[0] > -1e-10
            assert np.linalg.eigvalsh(upper - hessian)[0] > -1e-10
            for reference in (
                gaussian_reference.DenseReference(WRONG),
                gaussian_reference.DiagonalReference(np.array([1.0, 2.0, 0.5])),
            ):
                excess = reference.root.T @ hessian @ reference.root - np.eye(3)
                spread = gaussian_bounds.spread((lower, upper), reference)
                assert np.abs(np.linalg.eigvalsh(excess)).max() <= spread * (1.0 + 1e-12)
                entries = gaussian_bounds.entry_spread((lower, upper), reference)
                assert np.all(np.abs(excess) <= entries + 1e-12)
    for model in (LINEAR, LOGISTIC):
        lower, upper = model.prior_hessian_bounds()
        step, origin = 0.5 * np.ones(3), np.zeros(3)
        change = prior_gradient(model, step) - prior_gradient(model, origin)
        np.testing.assert_allclose(change, lower @ step, rtol=1e-12)
        np.testing.assert_array_equal(lower, upper)
    unit = gaussian_reference.DiagonalReference(np.ones(2))
    assert gaussian_bounds.spread((np.diag([0.2, 1.0]), np.diag([1.1, 1.3])), unit) == pytest.approx(0.8, rel=1e-14)
    assert SkewNormal(2.0).hessian_bounds() is None and SkewNormal(2.0).prior_hessian_bounds() is None


@pytest.mark.parametrize("model", [LOGISTIC, LINEAR])
def test_bounds_on_single_terms_hold(model):
    root = np.linalg.cholesky(WRONG)
    base = super(LogisticRegression, LOGISTIC) if model is LOGISTIC else model
    norms = model.term_gradient_norms(root, 0, model.n_data)
    lipschitz = [model.term_lipschitz_norms(root, 2, 7), base.term_lipschitz_norms(root, 2, 7)]
    if norms is not None:
        assert np.all(norms <= base.term_gradient_norms(root, 0, model.n_data) * (1.0 + 1e-12))
    for seed in range(20):
        y, z = 3.0 * rng(seed).standard_normal((2, 3))
        first, second = (model.term_gradients(root @ p, np.arange(model.n_data)) @ root for p in (y, z))
        if norms is not None:
            assert np.all(np.linalg.norm(first, axis=1) <= norms * (1.0 + 1e-12))
        for bound in lipschitz:
            change = np.linalg.norm(first - second, axis=1)[2:7]
            assert np.all(change <= bound * np.linalg.norm(y - z) * (1.0 + 1e-12))


def sampled(process, seeds=12):
    """States of a process, far out as well."""
    for seed in range(seeds):
        scale = 0.3 if seed % 3 == 0 else 1.0 if seed % 3 == 1 else 6.0
        x, v = scale * rng(seed).standard_normal((2, process.dim))
        yield state_at(process, x, v)


SUBSAMPLED = {
    "batches of 1": lambda model: Minibatch(model, 1),
    "batches of 3": lambda model: Minibatch(model, 3),
    "distinct": lambda model: Minibatch(model, 3, draw="distinct"),
    "control variates": lambda model: ControlVariate(model, 1),
    "control variates elsewhere": lambda model: ControlVariate(model, 2, anchor=[0.5, 0.1, 1.5]),
    "by importance": lambda model: ControlVariate(model, 1, draw="importance"),
}


@pytest.mark.parametrize("name", ["exact", *SUBSAMPLED])
@pytest.mark.parametrize("sampler", [pdmp.Boomerang, pdmp.FactorisedBoomerang])
def test_rates_stay_below_their_bounds(sampler, name):
    """Everywhere on the ellipse, and from the line as well; bounds are not loose by orders of magnitude either."""
    provider = Full(LOGISTIC) if name == "exact" else SUBSAMPLED[name](LOGISTIC)
    process = sampler(provider, mean=[0.1, 0.4, 0.6], metric=pdmp.Metric(covariance=[0.5, 0.3, 1.0]))
    generator, tightest = rng(5), 0.0
    for state in sampled(process):
        for e in (1e-3, 0.2, 3.0):
            time, bound = process.native.clock(state, 0, 0.25, Draw(e))
            if bound == CERTAIN:
                continue
            rate = max(process.native.rate(state, 0, time, generator) for _ in range(40))
            assert rate <= bound * (1.0 + 1e-9)
            tightest = max(tightest, rate / bound)
    assert tightest > (0.6 if name == "exact" else 0.03)


def test_the_constant_bound_is_reached_halfway_between_the_axes():
    """E = y², where v·∇E = sin 2t on the unit circle: ½ B R² with B = 2 is its maximum."""
    process = pdmp.Boomerang(Gaussian([0.0], [3.0]), metric=pdmp.Metric(covariance=1.0), thinning="hessian")
    state, out = state_at(process, [1.0], [0.0]), np.zeros(1)
    assert process.native.clock(state, 0, 0.0, Draw(50.0))[1] == pytest.approx(1.0, rel=1e-12)
    process.native.signed_rates(state, 0.75 * math.pi, rng(), out)
    assert out[0] == pytest.approx(1.0, rel=1e-12)


def test_the_sum_of_the_bounds_on_single_coordinates():
    provider = SUBSAMPLED["control variates elsewhere"](LOGISTIC)
    process = pdmp.FactorisedBoomerang(provider, mean=LOGISTIC.mode(), metric=pdmp.Metric(covariance=[0.5, 0.3, 1.0]))
    bound, sd = process.thinning, process.reference.sd
    away = (provider.anchor - process.mean) / sd
    offset = np.abs(sd * LOGISTIC.gradient(provider.anchor) - away) + bound.growth @ np.abs(away)
    np.testing.assert_allclose(bound.offset, offset + bound.common * np.linalg.norm(away), rtol=1e-12)
    assert np.all(bound.common > 0.0) and np.all(bound.offset > 0.0)
    for state in sampled(process):
        r = np.hypot(state.x - process.mean, state.v) / process.reference.sd
        parts = r * (bound.offset + bound.growth @ r + bound.common * np.linalg.norm(r))
        expected = np.sum(parts - 0.5 * np.diag(bound.growth) * r * r)
        assert process.native.clock(state, 0, 0.0, Draw(0.7))[1] == pytest.approx(expected, rel=1e-12)


def test_a_cell_of_the_grid_is_a_part_of_a_turn():
    assert isinstance(pdmp.Boomerang(Quartic(2), mean=[0.0, 0.0], metric=pdmp.Metric(covariance=1.0)).thinning, Narrow)
    for bound in ("grid", Grid(4.0), Maxima()):
        process = pdmp.Boomerang(Quartic(2), mean=[0.0, 0.0], metric=pdmp.Metric(covariance=1.0), thinning=bound)
        assert not process.exact_bounds
        state = state_at(process, [1e-3, 0.0], [0.0, 1e-3])  # hardly any rate: nothing else would stop its growth
        now = 0.0
        for _ in range(50):
            time, kind = process.native.clock(state, 0, now, Draw(5.0))
            assert kind == HORIZON and time - now <= 0.5 * (1.0 + 1e-12)
            now = time


# ---------------------------------------------------------------------------------------------------------------
# Paths


CASES = {
    "sinusoids": lambda: pdmp.Boomerang(MODEL, mean=[0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=WRONG)),
    "hessian": lambda: pdmp.Boomerang(LOGISTIC),
    "by importance": lambda: pdmp.Boomerang(ControlVariate(LOGISTIC, 1, draw="importance")),
    "factorised, inversion": lambda: FACTORISED["inversion"](),
    "factorised, batches": lambda: pdmp.FactorisedBoomerang(Minibatch(LOGISTIC, 2)),
}
if config.DISABLE_JIT:  # compiled, each takes some seconds
    CASES |= {
        "grid": lambda: pdmp.Boomerang(LOGISTIC, thinning="grid"),
        "diagonal": lambda: pdmp.Boomerang(LOGISTIC, metric="diagonal"),
        "factorised, hessian": lambda: pdmp.FactorisedBoomerang(LOGISTIC),
        "factorised, grid": lambda: pdmp.FactorisedBoomerang(LOGISTIC, thinning="grid"),
    }


@pytest.mark.parametrize("size", [1, 3])
def test_each_look_at_the_rate_counts_its_data(size):
    process = pdmp.Boomerang(Minibatch(LOGISTIC, size))
    run = pdmp.sample(process, events=30, seed=1)
    assert run.stats["data_terms"] == size * run.stats["thinned"] > 0
    assert run.stats["bound_violations"] == 0


def test_a_sparse_target_of_many_dimensions():
    d = 100
    precision = sparse.diags([-np.ones(d - 1), np.full(d, 2.5), -np.ones(d - 1)], [-1, 0, 1])
    process = pdmp.FactorisedBoomerang(Gaussian(np.ones(d), precision))
    np.testing.assert_allclose(process.reference.sd ** (-2.0), 2.5)
    run = pdmp.sample(process, events=100, seed=2, store="moments")
    assert run.stats["bound_violations"] == 0 and run.stats["thinned"] == 0


# ---------------------------------------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize("make", [pdmp.Boomerang, pdmp.FactorisedBoomerang])
def test_what_does_not_fit_is_refused(make):
    name = make.__name__
    for provider in (Noisy(MODEL, 1.0), Minibatch(LOGISTIC, 3, draw="epoch"), Minibatch(LOGISTIC, 3, draw="reshuffle")):
        with pytest.raises(TypeError, match=rf"pdmp.{name} takes the exact gradient .*independent mini-batches"):
            make(provider)
    for value in (-1.0, math.inf, "auto", None):
        with pytest.raises(ValueError, match="`refresh_rate` must be a finite number"):
            make(MODEL, refresh_rate=value)
    with pytest.warns(UserWarning, match="`refresh_rate` = 0: .*reducible"):
        make(MODEL, refresh_rate=0.0)
    for mean, text in (([0.0, 0.0], "`mean` must have shape"), ([0.0, 0.0, math.nan], "`mean` must be finite")):
        with pytest.raises(ValueError, match=text):
            make(MODEL, mean=mean)
    for metric, text in (
        ([1.0, 1.0], "`metric` must be a number or have shape"),
        ([1.0, -1.0, 1.0], "`metric` must be positive definite; entry 1 is -1"),
        ([1.0, math.inf, 1.0], "`metric` must be finite"),
        ("full", f"`metric` of pdmp.{name} must be None, a number, an array"),
    ):
        with pytest.raises(ValueError, match=text):
            make(MODEL, metric=metric)
    with pytest.raises(ValueError, match='`thinning` must be "auto"'):
        make(MODEL, thinning="affine")
    with pytest.raises(ValueError, match="needs a quadratic potential: LogisticRegression has no `affine_partial`"):
        make(LOGISTIC, thinning="sinusoids" if make is pdmp.Boomerang else "inversion")
    with pytest.raises(ValueError, match="SkewNormal has no `hessian_bounds`"):
        make(SkewNormal(2.0), thinning="hessian")
    with pytest.raises(ValueError, match="straight paths only"):
        make(MODEL, thinning=Inversion())
    with pytest.raises(ValueError, match='`thinning` must be "auto" for mini-batches'):
        make(Minibatch(LOGISTIC, 1), thinning="grid")
    with pytest.raises(ValueError, match="LinearGaussian has no `term_gradient_bounds`"):
        make(Minibatch(LINEAR, 1))
    assert make(MODEL, thinning=Constant(3.0)).thinning.level == 3.0


class DoubleWell(pdmp.Model):
    """U = x⁴/4 - x²/2, whose Hessian at 0 is -1."""

    def __init__(self):
        super().__init__(dim=1)

    @pdmp.compiled
    def potential(self, x):
        return 0.25 * x[0] ** 4 - 0.5 * x[0] ** 2

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0] ** 3 - x[0]


def test_matrices_that_are_no_covariance():
    for covariance, text in (
        (np.diag([1.0, 1.0, -1.0]) + 0.1, "positive definite; its smallest eigenvalue is -"),
        (np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "`covariance` must be symmetric"),
        (np.ones((3, 3)), "positive definite"),
        (np.eye(2), "have shape"),
    ):
        with pytest.raises(ValueError, match=text):
            pdmp.Boomerang(MODEL, metric=pdmp.Metric(covariance=covariance))
    with pytest.raises(ValueError, match="`metric` of pdmp.FactorisedBoomerang must be diagonal"):
        pdmp.FactorisedBoomerang(MODEL, metric=pdmp.Metric(covariance=np.eye(3)))
    with pytest.raises(ValueError, match="`metric` must be given: the Hessian at `mean`"):
        pdmp.Boomerang(DoubleWell(), mean=[0.0])
    with pytest.raises(ValueError, match="diagonal entries that are not positive"):
        pdmp.FactorisedBoomerang(DoubleWell(), mean=[0.0])


def test_a_gradient_that_is_not_finite_stops_the_run_and_says_where():
    process = pdmp.Boomerang(Quartic(2, wall=0.0), mean=[0.5, 0.5], metric=pdmp.Metric(covariance=1.0))
    with pytest.raises(pdmp.SamplingError, match="gradient or the rate of Quartic is not finite"):
        pdmp.sample(process, events=1_000, seed=1, initial=[0.5, 0.5])


def test_scales_of_a_dense_reference_are_standard_deviations():
    """Of each coordinate alone, not given the others; from the covariance and from a root of it."""
    for found in (
        gaussian_reference.DenseReference(WRONG),
        gaussian_reference.DenseReference.from_root(np.linalg.cholesky(WRONG)),
    ):
        np.testing.assert_allclose(found.sd, np.sqrt(np.diag(WRONG)), rtol=1e-12)
