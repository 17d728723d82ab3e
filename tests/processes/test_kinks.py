"""Potentials that are straight but for their kinks: where widths and rates of refreshment come from; the laws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp.metric import mean_curvature
from pdmp.models import from_function
from pdmp.processes.exact import curvature_at

pytestmark = pytest.mark.exact


def laplace(dim, scale=1.0, **options):
    """Coordinates of variance 2 scale²."""
    return from_function(lambda x: (float(np.abs(x).sum()) / scale, np.sign(x) / scale), dim, **options)


@pytest.mark.parametrize("scale", [1.0, 0.01, 1e-4])
@pytest.mark.parametrize("x", [[0.0, 0.0], [0.3, -0.2], [0.0, 0.7]])
def test_curvature_is_that_of_the_width(scale, x):
    found = curvature_at(laplace(2, scale), scale * np.array(x), "it") * scale**2
    assert 0.3 <= found <= 3.0
    if x[0] == x[1] == 0.0:
        assert 0.3 <= mean_curvature(laplace(2, scale), np.zeros(2)) * scale**2 <= 3.0


def test_a_narrow_smooth_density_keeps_its_curvature():
    """No width is chosen of a density without kinks, bit by bit."""
    for model in (pdmp.models.Gaussian(0.0, [1e4, 1e6]), pdmp.models.Gaussian(0.0, [1.0, 4.0])):
        assert curvature_at(model, model.initial, "it") == model.curvature(model.initial)
    steep = from_function(lambda x: (1e4 * float(np.cosh(x).sum()), 1e4 * np.sinh(x)), 2)
    assert curvature_at(steep, np.zeros(2), "it") == steep.curvature(np.zeros(2))


def test_the_mean_curvature_of_many_coordinates():
    """By random probes from 201 on, which of a diagonal Hessian give the mean itself; here cosh x of each."""
    scales = np.linspace(1.0, 3.0, 201)
    model = from_function(lambda x: (float(scales @ np.cosh(x)), scales * np.sinh(x)), 201)
    x = np.linspace(-1.0, 2.0, 201)
    assert model.curvature(x) == pytest.approx(np.mean(scales * np.cosh(x)), rel=1e-6)


def test_no_curvature_at_all_is_said_with_what_to_do():
    flat = from_function(lambda x: (max(0.0, float(x @ x) - 1.0), 2.0 * x * (x @ x > 1.0)), 2)
    with pytest.raises(ValueError, match="needs the curvature .* which is 0.0: give `initial=` another point"):
        pdmp.sample(pdmp.ZigZag(flat), initial=[0.1, 0.2], events=10, seed=1)


def test_a_model_with_kinks_is_sampled():
    run = pdmp.sample(laplace(1), seed=1)
    assert abs(run.mean()[0]) < 0.2 * math.sqrt(2.0) and 1.5 < run.var()[0] < 2.6


@pytest.mark.parametrize("metric", ["auto", "diagonal"])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_kink_is_no_reference_of_a_boomerang(metric, scale):
    with pytest.raises(ValueError, match="`metric` must be given: U has a kink at `mean`"):
        pdmp.Boomerang(laplace(2, scale), metric=metric)
    assert pdmp.Boomerang(laplace(2, scale), metric=pdmp.Metric(covariance=2.0 * scale**2)).dim == 2
    steep = pdmp.models.Gaussian(0.0, [1e4, 1e6])
    assert pdmp.Boomerang(steep, metric=metric).dim == 2


def test_where_a_potential_is_straight_its_gradient_stands_for_its_curvature():
    """The mean of its squares, as E (∂U)² = E ∂²U."""
    straight = SimpleNamespace(dim=3, curvature=lambda x: 0.0, gradient=lambda x: np.array([1.0, 2.0, -2.0]))
    assert curvature_at(straight, np.zeros(3), "this") == 3.0
