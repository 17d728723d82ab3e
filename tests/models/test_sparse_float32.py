"""Sparse features in single precision: arithmetic in double precision on the rounded numbers, in every method."""

import numpy as np
import pytest
from scipy import sparse

import discrete
import pdmp
from pdmp.gradients import ControlVariate, Minibatch

pytestmark = [pytest.mark.exact, pytest.mark.compiled]

RNG = np.random.default_rng(11)
X = RNG.standard_normal((40, 4)) * (RNG.random((40, 4)) < 0.4)
Y = (RNG.random(40) < 0.5).astype(float)
POINTS = RNG.standard_normal((3, 4))


def rounded():
    return X.astype(np.float32).astype(float)


def models():
    """In single precision, sparse and dense; in double precision on the rounded numbers; and on those that are not."""
    stored = [sparse.csr_array(X), X]
    single = [pdmp.models.LogisticRegression(x, Y, prior_scale=2.0, dtype=np.float32) for x in stored]
    return *single, *(pdmp.models.LogisticRegression(x, Y, prior_scale=2.0) for x in (rounded(), X))


def test_values_and_derivatives_are_those_of_the_rounded_features():
    sparse32, dense32, double, unrounded = models()
    rows, v = np.array([0, 3, 3, 39]), np.array([0.5, -1.0, 2.0, 0.1])
    for x in POINTS:
        for one in (sparse32, dense32):
            assert one.potential(x) == pytest.approx(double.potential(x), rel=1e-13)
            np.testing.assert_allclose(one.gradient(x), double.gradient(x), rtol=1e-12)
            np.testing.assert_allclose(one.term_gradients(x, rows), double.term_gradients(x, rows), rtol=1e-12)
        np.testing.assert_allclose(dense32.hessian(x), double.hessian(x), rtol=1e-11)
        np.testing.assert_allclose(sparse32.hessian(x), double.hessian(x), rtol=1e-5, atol=1e-6)  # before rounding
        assert abs(sparse32.potential(x) - unrounded.potential(x)) > 1e-12
        assert np.abs(sparse32.gradient(x) - unrounded.gradient(x)).max() > 1e-10
    for one in (sparse32, dense32):
        assert one.native.curvature_bound(v) >= max(v @ double.hessian(x) @ v for x in POINTS)


@pytest.mark.release  # six samplers are compiled, whose machine code differs in the sums that the test above compares
@pytest.mark.parametrize(
    "make",
    [
        lambda m: pdmp.BPS(m, refresh_rate=0.5),
        lambda m: pdmp.ZigZag(ControlVariate(m, 1, anchor=POINTS[0])),
        lambda m: discrete.SGLD(Minibatch(m, 7), step=1e-3),
    ],
    ids=["BPS", "ZigZag", "SGLD"],
)
def test_paths_are_those_of_the_rounded_features(make):
    one, _, double, _ = models()
    paths = [pdmp.sample(make(m), events=25, seed=2, initial=POINTS[0]).trajectories[0] for m in (one, double)]
    np.testing.assert_allclose(paths[0].positions, paths[1].positions, rtol=1e-6, atol=1e-8)
