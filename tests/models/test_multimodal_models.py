"""Hyperboloid and mixture sum: potentials as printed, bounds, and their exact laws."""

import math

import numpy as np
import pytest
from scipy import integrate

from pdmp.models import Hyperboloid, MixtureSum

pytestmark = [pytest.mark.exact, pytest.mark.compiled]


def test_the_potential_of_the_hyperboloid():
    """(D.60), written out."""
    y = np.array([0.3, -1.0, 2.0])
    model = Hyperboloid(y, noise_scale=0.5, prior_scale=3.0)
    w = np.array([0.7, -1.1])
    expected = np.sum((y - w[0] * w[1]) ** 2) / (2.0 * 0.25) + (w @ w) / (2.0 * 9.0)
    assert model.potential(w) == pytest.approx(expected, rel=1e-14)
    defaults = Hyperboloid.generated()
    assert (defaults.n_data, defaults.noise_precision) == (1_000, 1.0)
    assert defaults.prior_precision == pytest.approx(1e-4)


@pytest.mark.parametrize("product", [0.4, -0.4, 0.0])
def test_the_mode_of_the_hyperboloid(product):
    model = Hyperboloid(product + np.array([-0.3, 0.1, 0.2]), noise_scale=0.7, prior_scale=2.0)
    mode = model.mode()
    np.testing.assert_allclose(model.gradient(mode), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(model.hessian(mode))[0] > 0.0
    assert model.potential(mode) <= min(model.potential(mode + 0.05 * e) for e in (*np.eye(2), *-np.eye(2)))


@pytest.mark.parametrize("prior", [1.0, 30.0])
def test_the_law_of_the_product_is_that_of_the_posterior(prior):
    """Against quadrature over (w0, w1) itself: given w0 the likelihood and the prior of w1 are Gaussian."""
    model = Hyperboloid(np.array([0.1, 0.5, 0.6]), noise_scale=0.4, prior_scale=prior)
    n, mean, tau, c = 3, 0.4, 1.0 / 0.16, 1.0 / prior**2

    def moments(a):
        a = math.exp(a)  # positive half, on a logarithmic scale; the other half mirrors
        precision = n * tau * a * a + c
        centre = n * tau * a * mean / precision
        log_weight = 0.5 * precision * centre**2 - 0.5 * n * tau * mean**2 - 0.5 * c * a * a
        weight = a * math.exp(log_weight) / math.sqrt(precision)
        return weight * np.array([1.0, a * centre, a * a * (centre**2 + 1.0 / precision)])

    knots = np.linspace(-30.0, 8.0, 40)
    mass, first, second = (
        sum(integrate.quad(lambda a, k=k: moments(a)[k], *ends)[0] for ends in zip(knots[:-1], knots[1:], strict=True))
        for k in range(3)
    )
    found = model.product_moments
    assert found[0] == pytest.approx(first / mass, rel=1e-6)
    assert found[1] == pytest.approx(second / mass - (first / mass) ** 2, rel=1e-6)


def test_the_mixture_as_printed():
    """One datum at a time, from its formula; the barrier between modes in nats."""
    model = MixtureSum.generated(6, dim=2, spread=0.3, width=0.4)
    w = np.array([0.3, -0.8])
    for i in range(6):
        total = 0.0
        for k in range(2):
            up, down = w[k] - 1.0 - model.centres[i, k], w[k] + 1.0 - model.centres[i, 2 + k]
            total -= math.log(math.exp(-(up**2) / 0.32) + math.exp(-(down**2) / 0.32))
        assert model.term_potential(w, i) == pytest.approx(total / 6, rel=1e-12)
    centred = MixtureSum(np.zeros((50, 2)))
    assert centred.gradient(centred.initial) == pytest.approx(0.0, abs=1e-9)  # it starts at the upper mode
    assert centred.initial[0] > 0.5 and centred.variables == {"w": (1,)}
    barrier = centred.potential([0.0]) - centred.potential([1.0])
    assert barrier == pytest.approx(1.0 / (2.0 * 0.25**2) - math.log(2.0), abs=1e-12)
    literal = MixtureSum(np.zeros((50, 2)), scale="sum")
    assert literal.potential([0.0]) - literal.potential([1.0]) == pytest.approx(50.0 * barrier, rel=1e-12)


def test_the_marginals_of_the_mixture():
    model = MixtureSum.generated(40, dim=2, spread=0.1, width=0.3, seed=2)
    w = np.linspace(-5.0, 5.0, 4_001)
    for k in range(2):
        density = model.marginal(k, w)
        assert np.trapezoid(density, w) == pytest.approx(1.0, abs=1e-9)
        other = np.array([model.potential(np.where(np.arange(2) == k, v, 1.0)) for v in (-1.0, 0.2, 0.9)])
        found = -np.log(model.marginal(k, np.array([-1.0, 0.2, 0.9])))
        np.testing.assert_allclose(np.diff(found), np.diff(other), rtol=1e-9)
    assert model.crossing_rate(1, 0.5) == pytest.approx(0.5 * model.marginal(1, 0.0))
    paper = MixtureSum.generated()
    assert paper.crossing_rate(0, 2.0 / math.pi) == pytest.approx(3.41e-4, rel=0.02)


def test_the_bounds_on_slopes_hold_and_are_attained():
    model = MixtureSum.generated(12, dim=2, spread=0.2, width=0.5, scale="sum")
    for seed in range(50):
        x, v = np.random.default_rng(seed).normal(size=(2, 2)) * 1.5
        bounds, hessian = np.zeros(2), model.hessian(x)
        model.partial_curvature_bounds(v, bounds)
        assert v @ hessian @ v <= model.curvature_bound(v) * (1.0 + 1e-12)
        assert np.all(v * (hessian @ v) <= bounds * (1.0 + 1e-12))
    far = np.array([30.0, -30.0])
    assert v @ model.hessian(far) @ v == pytest.approx(model.curvature_bound(v), rel=1e-9)
    np.testing.assert_allclose(v * (model.hessian(far) @ v), bounds, rtol=1e-9)


BAD = {
    "y": (lambda: Hyperboloid([]), "`y`.*shape"),
    "y not finite": (lambda: Hyperboloid([1.0, math.nan]), "`y`"),
    "noise": (lambda: Hyperboloid([1.0], noise_scale=0.0), "`noise_scale`.*positive.*0"),
    "prior": (lambda: Hyperboloid([1.0], prior_scale=-2.0), "`prior_scale`.*-2"),
    "odd centres": (lambda: MixtureSum(np.zeros((4, 3))), "`centres`.*2 D.*3"),
    "centres": (lambda: MixtureSum(np.full((4, 2), np.inf)), "`centres`.*finite"),
    "width": (lambda: MixtureSum(np.zeros((4, 2)), width=0.0), "`width`.*0"),
    "scale": (lambda: MixtureSum(np.zeros((4, 2)), scale="max"), "`scale`.*'max'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        make()


def test_far_away_nothing_overflows():
    model = MixtureSum.generated(5)
    for x in ([400.0, -400.0], [1e5, 0.0]):
        assert np.all(np.isfinite(model.gradient(x))) and math.isfinite(model.potential(x))
