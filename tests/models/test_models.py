"""Targets: values and derivatives against independent algebra, readable errors, and models written by users."""

import concurrent.futures
import contextlib
import copy
import functools
import gc
import importlib.util
import io
import itertools
import math
import os
import pathlib
import pickle
import re
import sys
import warnings

import numba
import numpy as np
import pytest
from scipy import integrate, optimize, sparse, special

import pdmp
from pdmp.expressions.special import log_ndtr, mills
from pdmp.models import Gaussian, LinearGaussian, SkewNormal, from_function
from pdmp.native.classes import entry
from tests.models.helpers_models import both, compiled_both

pytestmark = [pytest.mark.exact, pytest.mark.compiled]

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def load_example():
    path = pathlib.Path(__file__).parents[2] / "examples" / "own_model.py"
    spec = importlib.util.spec_from_file_location("own_model", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["own_model"] = module
    spec.loader.exec_module(module)
    return module


own_model = load_example()


def rng(seed=0):
    return np.random.default_rng(seed)


def dense_precision(d=5):
    a = rng(1).standard_normal((d, d))
    return a @ a.T + np.eye(d)


def chain_precision(d=30):
    off = -np.linspace(0.2, 0.9, d - 1)
    return sparse.diags_array([off, np.full(d, 1.9), off], offsets=[-1, 0, 1], format="csc")


def linear_gaussian():
    generator = rng(2)
    A = generator.standard_normal((40, 4))
    return LinearGaussian(A, A @ np.ones(4) + generator.standard_normal(40), noise_scale=0.7, prior_scale=1.5)


def quartic(x):
    return 0.25 * np.sum(x**4) + 0.5 * x @ x, x**3 + x


GAUSSIANS = {
    "diagonal": lambda: Gaussian(np.array([1.0, -2.0, 0.5]), np.array([0.3, 2.0, 11.0])),
    "dense": lambda: Gaussian(np.linspace(-1.0, 1.0, 5), dense_precision()),
    "sparse": lambda: Gaussian(0.3, chain_precision()),
}
MODELS = {
    **GAUSSIANS,
    "linear": linear_gaussian,
    "skew": lambda: SkewNormal(4.0),
    "skew mirrored": lambda: SkewNormal(-1.5),
    "function": lambda: from_function(quartic, 3),
    "own": lambda: own_model.generated()[0],
}


def points(model, n=3):
    generator = rng(5)
    return [model.initial + 0.5 * generator.standard_normal(model.dim) for _ in range(n)]


# ---------------------------------------------------------------------------------------------------------------
# Every model


@pytest.mark.parametrize("name", MODELS)
def test_hessian_is_the_derivative_of_the_gradient(name):
    model = MODELS[name]()
    for x in points(model, 2):
        differences = pdmp.Model.hessian(model, x)
        assert np.allclose(model.hessian(x), differences, rtol=1e-6, atol=1e-6 * np.abs(differences).max())
        assert np.isclose(model.curvature(x), np.trace(differences) / model.dim, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_mode_is_a_minimum(name):
    model = MODELS[name]()
    mode = model.mode()
    scale = math.sqrt(max(np.linalg.eigvalsh(model.hessian(mode))))
    assert np.abs(model.gradient(mode)).max() < 1e-5 * scale
    assert all(model.potential(mode) < model.potential(x) for x in points(model) if not np.array_equal(x, mode))


# ---------------------------------------------------------------------------------------------------------------
# Compiled code against plain Python


@entry
def everything(model, x, v, moved, out, slopes):
    model.add_gradient(x, out)
    model.partial_curvature_bounds(v, slopes)
    total = model.curvature_bound(v)
    for i in range(x.shape[0]):
        value, slope = model.affine_partial(x, v, moved, 1.3, i)
        out[i] += 1e-3 * value
        slopes[i] += 1e-3 * slope
    return total


def plain(model, x, v, moved):
    """The same as `everything`, by the methods of the instance, which are plain Python."""
    out, slopes = np.zeros(model.dim), np.zeros(model.dim)
    model.add_gradient(x, out)
    model.partial_curvature_bounds(v, slopes)
    total = model.curvature_bound(v)
    for i in range(model.dim):
        value, slope = model.affine_partial(x, v, moved, 1.3, i)
        out[i] += 1e-3 * value
        slopes[i] += 1e-3 * slope
    return total, out, slopes


@pytest.mark.parametrize("name", [*GAUSSIANS, "linear"])
def test_compiled_values_are_bitwise_those_of_python(name):
    model = MODELS[name]()
    generator = rng(6)
    for x in points(model):
        v, moved = generator.standard_normal(model.dim), generator.random(model.dim)
        assert model.potential(x) == model.total_potential(x)
        out, slopes = np.zeros(model.dim), np.zeros(model.dim)
        total = everything(model.native, x, v, moved, out, slopes)
        assert np.isfinite(total)
        expected = plain(model, x, v, moved)
        assert total == expected[0]
        assert np.array_equal(out, expected[1]) and np.array_equal(slopes, expected[2])


# ---------------------------------------------------------------------------------------------------------------
# Gaussians


@pytest.mark.parametrize("name", GAUSSIANS)
def test_gaussian_against_dense_algebra(name):
    model = GAUSSIANS[name]()
    Q, mean = model.hessian(), model.mode()
    expected = {
        "diagonal": lambda: np.diag([0.3, 2.0, 11.0]),
        "dense": dense_precision,
        "sparse": chain_precision().toarray,
    }
    assert np.allclose(Q, expected[name](), rtol=1e-14)
    for x in points(model):
        assert math.isclose(model.potential(x), 0.5 * (x - mean) @ Q @ (x - mean), rel_tol=1e-12)
        assert np.allclose(model.gradient(x), Q @ (x - mean), rtol=1e-12, atol=1e-12)
    assert np.allclose(model.covariance() @ Q, np.eye(model.dim), atol=1e-10)
    indptr, indices = model.neighbours()
    assert indptr.dtype == indices.dtype == np.int64
    for i in range(model.dim):
        assert np.array_equal(indices[indptr[i] : indptr[i + 1]], np.flatnonzero(Q[i]))


@pytest.mark.parametrize("name", [*GAUSSIANS, "linear"])
def test_slopes_are_exact(name):
    model = MODELS[name]()
    Q, generator = model.hessian(), rng(7)
    for _ in range(3):
        v = generator.standard_normal(model.dim)
        slopes = np.full(model.dim, np.nan)
        model.partial_curvature_bounds(v, slopes)
        assert np.allclose(slopes, v * (Q @ v), rtol=1e-12, atol=1e-12)
        assert math.isclose(model.curvature_bound(v), v @ Q @ v, rel_tol=1e-12)


def test_large_sparse_gaussian_is_checked_and_stored_sparsely():
    d = 20_000
    off = -np.ones(d - 1)
    # Not diagonally dominant by a strict margin everywhere: the pivots decide.
    model = Gaussian(0.0, sparse.diags_array([off, np.full(d, 2.0), off], offsets=[-1, 0, 1]))
    assert len(model.neighbours()[1]) == 3 * d - 2 and model.curvature() == 2.0
    with pytest.raises(ValueError, match="only made up to dim = 5000"):
        model.covariance()
    with pytest.raises(ValueError, match="only made up to dim = 5000"):
        Gaussian(0.0, np.linspace(1.0, 2.0, 5_001)).covariance()
    with pytest.raises(ValueError, match="`precision` must be positive definite; a pivot"):
        Gaussian(0.0, sparse.diags_array([off, np.full(d, 1.99), off], offsets=[-1, 0, 1]))


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_check_agrees_with_eigenvalues(store):
    # Small integers: singular matrices, and pivots that are exactly zero, are common among them.
    generator = rng(9)
    verdicts = [0, 0, 0]
    for _ in range(400):
        d = generator.integers(2, 6)
        a = np.triu(generator.integers(-1, 2, (d, d)), 1)
        Q = (a + a.T + np.diag(generator.integers(1, 3, d))).astype(float)
        low = np.linalg.eigvalsh(Q)[0]
        verdicts[0 if low > 1e-9 else 1 if low > -1e-9 else 2] += 1
        try:
            Gaussian(0.0, store(Q))
            assert low > 1e-9, Q
        except ValueError as error:
            assert "positive definite" in str(error) and low < 1e-9, Q
    assert min(verdicts) > 20


def test_a_pivot_that_is_a_rounding_error_is_a_zero():
    Q = [[2.0, 0, 0, -1, 1], [0, 1, 1, 0, 1], [0, 1, 2, 1, 1], [-1, 0, 1, 2, 0], [1, 1, 1, 0, 2]]
    with pytest.raises(ValueError, match="`precision` must be positive definite; a pivot"):
        Gaussian(0.0, sparse.csr_array(Q))


@pytest.mark.parametrize("store", [np.array, sparse.csr_array])
def test_scales_may_differ_widely(store):
    scale = np.array([1e-12, 1.0, 1e12])
    Q = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]) * np.outer(scale, scale)
    assert np.allclose(Gaussian(0.0, store(Q)).hessian(), Q, rtol=1e-15, atol=0.0)


def test_zeros_of_the_precision_are_not_neighbours():
    Q = sparse.csr_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
    Q.data[[1, 2]] = 0.0
    assert np.array_equal(Gaussian(0.0, Q).neighbours()[1], [0, 1])
    assert np.array_equal(Gaussian(0.0, np.diag([1.0, 2.0])).neighbours()[1], [0, 1])


@pytest.mark.parametrize(
    ("mean", "precision", "message"),
    [
        (0.0, 1.0, r"`precision` must have shape \(d,\) or \(d, d\), or be sparse; got \(\)"),
        (0.0, np.ones((2, 3)), r"`precision` must have shape .* got \(2, 3\)"),
        (0.0, sparse.csr_array(np.ones((2, 3))), r"`precision` must have shape .* got \(2, 3\)"),
        (0.0, [1.0, np.nan], "`precision` must be finite"),
        (0.0, np.array([[1.0, np.inf], [np.inf, 1.0]]), "`precision` must be finite"),
        (0.0, sparse.csr_array(np.array([[np.nan]])), "`precision` must be finite"),
        (0.0, [1.0, 0.0], "`precision` must be positive definite; entry 1 of the diagonal is 0"),
        (0.0, [[1.0, 2.0], [2.0, 1.0]], "`precision` must be positive definite; its smallest eigenvalue is -1"),
        (0.0, sparse.csr_array([[1.0, 2.0], [2.0, 1.0]]), "`precision` must be positive definite; a pivot"),
        (0.0, sparse.csr_array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]]), "`precision` must be positive definite; a pivot"),
        (0.0, sparse.csr_array([[1.0, 0.0], [0.0, -1.0]]), "`precision` must be positive definite; entry 1 of its"),
        (0.0, [[1.0, 0.5], [0.4, 1.0]], "`precision` must be symmetric; it differs from its transpose by up to 0.1"),
        (0.0, sparse.csr_array([[1.0, 0.5], [0.4, 1.0]]), "`precision` must be symmetric"),
        ([0.0, 0.0], [1.0, 1.0, 1.0], r"`mean` must be a number or have shape \(3,\), as `precision` says; got \(2,\)"),
        ([0.0, np.nan], [1.0, 1.0], "`mean` must be finite"),
    ],
)
def test_gaussian_refuses(mean, precision, message):
    with pytest.raises(ValueError, match=message):
        Gaussian(mean, precision)


# ---------------------------------------------------------------------------------------------------------------
# Linear Gaussian


def test_linear_gaussian_posterior_is_that_of_dense_algebra():
    # Independently: condition the joint Gaussian of (θ, x).
    model = linear_gaussian()
    A, y, s, p = model.A, model.y, 0.7, 1.5
    joint = p**2 * A @ A.T + s**2 * np.eye(len(y))
    gain = p**2 * A.T @ np.linalg.inv(joint)
    mean, covariance = model.posterior()
    assert np.allclose(mean, gain @ y, rtol=1e-10)
    assert np.allclose(covariance, p**2 * np.eye(4) - gain @ A * p**2, atol=1e-12)
    assert np.allclose(covariance @ model.hessian(), np.eye(4), atol=1e-12)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [None, np.linspace(-1.0, 1.0, 40)])
def test_a_rearranged_regression_is_the_same_posterior(stored, offset):
    """Also in what is computed from the features as a whole, row by row."""
    random = rng(12)
    X, order = random.standard_normal((40, 3)), random.permutation(40)
    x, root = random.standard_normal(3), random.standard_normal((3, 3))
    counts, labels = random.poisson(2.0, 40), X[:, 0] > 0.0
    for law, y in ((pdmp.models.PoissonRegression, counts), (pdmp.models.LogisticRegression, labels)):
        model = law(stored(X), y, offset=offset)
        other = model.rearranged(order)
        for one, two in zip(other.gradient_and_hessian(x), model.gradient_and_hessian(x), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(other.hessian(x), model.hessian(x), rtol=1e-11, atol=1e-12)
        assert other.potential(x) == pytest.approx(model.potential(x), rel=1e-12)
    if type(other) is not type(model):
        return  # tiles, which say by `row_width` that they are not asked row by row
    for name in ("term_gradient_norms", "term_lipschitz_norms"):
        norms = getattr(model, name)(root, 0, 40)
        np.testing.assert_allclose(getattr(other, name)(root, 0, 40), norms[order], rtol=1e-12)


class Boxed(pdmp.Model):
    """Terms whose partial derivatives are known to be at most so large."""

    most: np.ndarray

    def __init__(self):
        super().__init__(dim=3, n_data=2)
        self.most = np.array([[1.0, 2.0, 0.5], [0.0, 3.0, 1.0]])

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.0

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += 0.0

    @pdmp.compiled
    def term_gradient_bounds(self, i, out):
        for j in range(self.dim):
            out[j] = self.most[i, j]


def test_norms_in_other_coordinates_hold_whatever_the_signs_are():
    """Those of every corner of the box of gradients are below, and in one of these each coordinate is as far out."""
    model, root = Boxed(), np.array([[1.0, -2.0, 0.5], [-0.3, 1.0, 4.0], [2.0, 0.7, -1.0]])
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    for first in (0, 1):
        moved = np.abs(np.array([corners * most @ root for most in model.most[first:]]))
        expected = np.sqrt(np.sum(moved.max(axis=1) ** 2, axis=1))
        np.testing.assert_allclose(model.term_gradient_norms(root, first, 2), expected, rtol=1e-13)
        assert np.all(np.linalg.norm(moved, axis=2) <= expected[:, None] * (1.0 + 1e-12))


def test_linear_gaussian_predictions():
    model = linear_gaussian()
    x = np.random.default_rng(2).standard_normal((2, 4))
    assert np.allclose(model.predict(x, model.A[:3]), [[row @ a for a in model.A[:3]] for row in x], rtol=1e-12)
    density = model.log_likelihood(x, model.A, model.y)
    terms = [[model.term_potential(row, i) for i in range(40)] for row in x]
    assert density.shape == (2, 40)
    assert np.allclose(density, -np.array(terms) - 0.5 * math.log(2 * math.pi * 0.7**2), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones(3), np.ones(3)), r"`A` must have shape \(N, d\), N and d at least 1; got \(3,\)"),
        ((np.ones((0, 3)), np.ones(0)), r"`A` must have shape .* got \(0, 3\)"),
        ((np.ones((3, 2)), np.ones(2)), r"`x` must have one entry for each row of `A`, shape \(3,\); got \(2,\)"),
        ((np.full((3, 2), np.nan), np.ones(3)), "`A` must be finite"),
        ((np.ones((3, 2)), [1.0, np.inf, 0.0]), "`x` must be finite"),
        ((np.ones((3, 2)), np.ones(3), 0.0), "`noise_scale` must be a positive number, got 0.0"),
        ((np.ones((3, 2)), np.ones(3), 1.0, -1.0), "`prior_scale` must be a positive number, got -1.0"),
        ((np.ones((3, 2)), np.ones(3), 1.0, np.nan), "`prior_scale` must be a positive number, got nan"),
        ((np.ones((3, 2)), np.ones(3), [1.0, 2.0]), "`noise_scale` must be a positive number"),
    ],
)
def test_linear_gaussian_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearGaussian(*arguments)


def test_rows_of_other_labels_are_refused_in_likelihoods():
    pandas = pytest.importorskip("pandas")
    A, y = pandas.DataFrame(np.eye(3)[:, :2]), pandas.Series([1.0, 2.0, 3.0])
    model = LinearGaussian(A, y)
    with pytest.raises(ValueError, match="`y` has other row labels than `A`"):
        model.log_likelihood(np.zeros(2), A, y[::-1])


# ---------------------------------------------------------------------------------------------------------------
# Skew-normal


def test_normal_tails_against_scipy():
    z = np.concatenate(
        [-np.logspace(6, -3, 400), np.linspace(-9.0, 9.0, 2001), [-8.0, np.nextafter(-8.0, -9.0), 0.0, 37.0, 1e3]]
    )
    assert np.allclose([log_ndtr(t) for t in z], special.log_ndtr(z), rtol=1e-13, atol=0.0)
    # φ/Φ by the scaled complementary error function, which neither overflows nor cancels
    expected = math.sqrt(2.0 / math.pi) / special.erfcx(-z[z < 30] / math.sqrt(2.0))
    assert np.allclose([mills(t) for t in z[z < 30]], expected, rtol=5e-14, atol=0.0)
    assert np.isfinite(SkewNormal(5.0).potential([-1e6])) and np.isfinite(SkewNormal(5.0).gradient([-1e6])).all()


@pytest.mark.parametrize("shape", [0.0, 1.0, 5.0, -20.0])
def test_skew_normal_moments_by_quadrature(shape):
    model = SkewNormal(shape)
    cuts = [-10.0, -1.0, -0.2, 0.0, 0.2, 1.0, 10.0]

    def integral(f):
        return math.fsum(
            integrate.quad(lambda t: f(t) * math.exp(-model.total_potential([t])), a, b, epsabs=1e-13)[0]
            for a, b in zip(cuts, cuts[1:], strict=False)
        )

    mass = integral(lambda t: 1.0)
    assert math.isclose(mass, 0.5 * math.sqrt(2.0 * math.pi), rel_tol=1e-10)  # the density is 2 φ Φ
    mean = integral(lambda t: t) / mass
    assert math.isclose(model.exact_mean, mean, abs_tol=1e-10)
    assert math.isclose(model.exact_variance, integral(lambda t: (t - mean) ** 2) / mass, rel_tol=1e-9)


def test_skew_normal_curvature_is_between_its_limits_and_nothing_is_promised():
    model = SkewNormal(6.0)
    curvatures = np.array([model.hessian([x])[0, 0] for x in np.linspace(-30.0, 10.0, 300)])
    assert np.all(curvatures >= 1.0) and np.all(curvatures <= 37.0 * (1 + 1e-9)) and curvatures[0] > 36.9
    assert not model.has("curvature_bound") and not model.has("partial_curvature_bounds")


@pytest.mark.parametrize("shape", [np.nan, np.inf, [1.0]])
def test_skew_normal_refuses(shape):
    with pytest.raises(ValueError, match="`shape` must be a finite number"):
        SkewNormal(shape)


# ---------------------------------------------------------------------------------------------------------------
# Functions


def test_function_is_called_from_compiled_code():
    model = from_function(quartic, 3)
    for x in points(model):
        potential, gradient = compiled_both(model, x)
        assert potential == quartic(x)[0] == model.potential(x)
        assert np.array_equal(gradient, quartic(x)[1]) and np.array_equal(gradient, model.gradient(x))
    for outside in (math.inf, math.nan):
        wall = from_function(lambda x, outside=outside: (0.5 * x @ x if x[0] < 2.0 else outside, x), 2)
        potential, gradient = compiled_both(wall, np.array([3.0, 1.0]))
        assert not math.isfinite(potential) and np.isnan(gradient).all()
        assert np.array_equal(compiled_both(wall, np.ones(2))[1], np.ones(2))


def test_mean_curvatures():
    """Of the absolute values where the trace is negative, and above 200 dimensions by probes."""
    diagonal = np.array([1.0, -6.0, 2.0])
    saddle = from_function(lambda x: (0.5 * diagonal @ x**2, diagonal * x), 3)
    assert saddle.curvature(np.zeros(3)) == pytest.approx(3.0, rel=1e-6)
    many = np.linspace(1.0, 3.0, 240)
    assert from_function(lambda x: (0.5 * many @ x**2, many * x), 240).curvature(np.ones(240)) == pytest.approx(2.0)


def test_functions_share_their_machine_code():
    first, second = from_function(quartic, 3), from_function(lambda x: (0.5 * x @ x, x), 3)
    x = np.ones(3)
    assert compiled_both(first, x)[0] == 2.25 and compiled_both(second, x)[0] == 1.5
    if JIT:
        assert sum("FunctionModel" in str(signature) for signature in both.signatures) == 1


def test_function_may_return_other_types_and_keep_what_it_is_given():
    seen = []

    def function(x):
        seen.append(x)
        return np.array(0.5 * x @ x), [float(t) for t in x]

    model = from_function(function, 2, initial=[1.0, 2.0])
    assert np.array_equal(model.initial, [1.0, 2.0])
    x, out = np.array([1.0, 1.0]), np.array([100.0, 200.0])
    both(model.native, x, out)
    assert np.array_equal(out, [101.0, 201.0])
    x[:] = 2.0, 3.0
    both(model.native, x, out)
    assert np.array_equal(out, [103.0, 204.0])
    assert np.array_equal(seen[-4], [1.0, 1.0]) and np.array_equal(seen[-1], [2.0, 3.0])


def test_a_hessian_by_differences_is_symmetric_at_any_scale():
    """Steps are of the size of x: at 10¹² those of a coordinate near 0 would change nothing."""

    def function(x):
        u, w = x[0] * 1e-12, x[1]
        return u**2 + u * w + np.cosh(w), np.array([(2.0 * u + w) * 1e-12, u + np.sinh(w)])

    x = np.array([3e12, 0.7])
    found = from_function(function, 2, initial=x).hessian(x)
    expected = np.array([[2e-24, 1e-12], [1e-12, np.cosh(0.7)]])
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("wrong", [lambda x: np.abs(x) > 0.2, lambda x: np.abs(x) < 0.2], ids=["further", "nearer"])
def test_slopes_of_an_adapter_are_compared_at_two_distances(wrong):
    model = from_function(lambda x: (0.5 * x @ x, x * (1.0 + 0.5 * wrong(x))), 2, check_gradient=False)
    with pytest.warns(
        UserWarning, match="^the gradient is not the slope of its log density: coordinate x.[01]. of it"
    ) as caught:
        model.warn_of_wrong_slopes("the gradient")
    told, slope = map(float, re.search(r"is (\S+), and the slope (\S+)\. Look", str(caught[0].message)).groups())
    assert told == pytest.approx(1.5 * slope, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_function(lambda x: (0.5 * x @ x, x), 2, check_gradient=False).warn_of_wrong_slopes("the gradient")


def test_a_gradient_in_a_work_array_is_a_copy_of_it():
    """Of a function that returns the same array again: what one call gave is not changed by the next."""
    work = np.zeros(2)

    def function(x):
        work[:] = x
        return 0.5 * float(x @ x), work

    model = from_function(function, 2)
    assert model.callback.reuses
    first = model.callback.evaluate(np.array([1.0, -2.0]))[1]
    model.callback.evaluate(np.array([5.0, 6.0]))
    assert first.tolist() == [1.0, -2.0]


class Sums:
    """What a function may keep: an object that it adds to, and empties."""

    def __init__(self):
        self.u, self.parts = 0.0, {}

    def add(self, k, value):
        self.u += 0.5 * value * value
        self.parts[k] = value


WORKS_IN = {
    "an array": (lambda work, x: work.__setitem__(slice(None), x), lambda work: work.fill(0.0), np.zeros(2)),
    "a large array": (lambda work, x: work.__iadd__(x[0]), lambda work: work.fill(0.0), np.zeros(400_000)),
    "a list": (lambda work, x: work.extend(x), lambda work: work.clear(), []),
    "a dictionary": (lambda work, x: work.update(enumerate(x)), lambda work: work.clear(), {}),
    "an object": (lambda work, x: work.add(0, float(x[0])), lambda work: work.__init__(), Sums()),
    "nothing": (lambda work, x: None, lambda work: None, np.zeros(2)),
    "its own copy": (lambda work, x: work.copy().fill(x[0]), lambda work: None, np.zeros(2)),
}


@pytest.mark.parametrize("what", WORKS_IN)
def test_a_function_that_works_in_what_it_names_and_clears_it_takes_turns(what):
    """Before and after a call all is as it was, and yet two threads would run through one another."""
    begin, clear, work = WORKS_IN[what]

    def helper(x):
        begin(work, x)
        found = 0.5 * float(x @ x)
        clear(work)
        return found

    def function(x):
        return helper(x), x

    def later(x):
        return sum(k for k in range(300)) * 0.0 + helper(x), x

    turns = what not in ("nothing", "its own copy")
    in_a_line = eval("lambda x: (begin(work, x), 0.5 * float(x @ x), clear(work))[1:2] + (x,)", locals())
    for one in (function, later, in_a_line):
        model = from_function(one, 2)
        assert model.callback.reuses == turns and sys.gettrace() is None and not model.callback.changing
        assert gc.isenabled()


@contextlib.contextmanager
def in_environment():
    os.environ["PDMP_TEST_CALL"] = "1"
    try:
        yield
    finally:
        del os.environ["PDMP_TEST_CALL"]


@contextlib.contextmanager
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


REPLACED = {
    "output": lambda: contextlib.redirect_stdout(io.StringIO()),
    "errors": lambda: contextlib.redirect_stderr(io.StringIO()),
    "the folder": lambda: contextlib.chdir(pathlib.Path(__file__).parent),
    "the environment": in_environment,
    "filters of warnings": without_warnings,
    "errors of NumPy, which each thread has": lambda: np.errstate(all="ignore"),
}


@pytest.mark.parametrize("what", REPLACED)
def test_a_function_that_replaces_what_all_threads_share_takes_turns(what):
    """For the time of a call: two that overlap would leave it replaced, and all that is printed later be lost."""

    def function(x):
        with REPLACED[what]():
            return 0.5 * float(x @ x), x

    assert from_function(function, 2).callback.reuses == (not what.startswith("errors of NumPy"))


def test_parallel_loops_of_numba_take_turns():
    """Where two overlap, numba's own threads end the process."""

    @numba.njit
    def plain(x):
        return 0.5 * (x @ x)

    @numba.njit(parallel=True)
    def parallel(x):
        return 0.5 * (x @ x)

    for loop, turns in ((plain, False), (parallel, numba.config.DISABLE_JIT == 0)):
        model = from_function(lambda x, loop=loop: (0.5 * x @ x if len(x) else loop(x), x), 2)  # named, never compiled
        assert model.callback.reuses == turns


def test_a_debuggers_trace_stays_where_functions_are_looked_at():
    def trace(*_):
        return None

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        work = [0.0]
        from_function(lambda x: (0.5 * float(x @ x) + work[0], x), 2)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    ("of_potential", "of_gradient"), [(np.float32, np.float32), (float, np.float32), (np.float32, np.float64)]
)
def test_function_in_single_precision_passes_the_comparison(of_potential, of_gradient):
    """Of which one part alone may be returned as such."""

    def function(x, constant):
        potential, gradient = np.float32(constant) + np.float32(0.5 * x @ x), x.astype(np.float32)
        return of_potential(potential), gradient.astype(of_gradient)

    model = from_function(functools.partial(function, constant=0.5e2), 3, initial=[3.0, 1.0, 2.0])
    assert np.array_equal(model.gradient([3.0, 1.0, 2.0]), [3.0, 1.0, 2.0])
    with pytest.warns(UserWarning, match=r"could not be compared with its potential in x\[0\], x\[1\], x\[2\]: U is"):
        model = from_function(functools.partial(function, constant=0.5e5), 3, initial=[3.0, 1.0, 2.0])
    assert np.array_equal(model.gradient([3.0, 1.0, 2.0]), [3.0, 1.0, 2.0])


def test_exception_in_the_function_is_kept():
    def function(x):
        if x[0] > 10.0:
            raise ZeroDivisionError("too far")
        return 0.5 * x @ x, x

    model = from_function(function, 2)
    assert model.failure is None
    potential, gradient = compiled_both(model, np.array([11.0, 0.0]))
    assert math.isnan(potential) and np.all(np.isnan(gradient))
    assert isinstance(model.failure, ZeroDivisionError) and str(model.failure) == "too far"
    with pytest.raises(ZeroDivisionError, match="too far"):
        model.gradient([11.0, 0.0])
    model.failure = None
    assert compiled_both(model, np.ones(2))[0] == 1.0 and model.failure is None


def test_shape_that_changes_in_a_run_is_a_failure():
    model = from_function(lambda x: (0.5 * x @ x, x if x[0] < 10.0 else x[:1]), 2)
    assert math.isnan(compiled_both(model, np.array([11.0, 0.0]))[0])
    assert "must return a gradient of shape (2,), got (1,)" in str(model.failure)


def test_function_in_threads():
    model = from_function(quartic, 3)
    xs = rng(12).standard_normal((200, 3))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda x: compiled_both(model, x), xs))
    for x, (potential, gradient) in zip(xs, answers, strict=True):
        assert potential == quartic(x)[0] and np.array_equal(gradient, quartic(x)[1])


def test_function_model_can_be_pickled_and_copied():
    model = from_function(quartic, 3, variables={"a": (1,), "b": (2,)}, n_data=7)
    x = np.array([0.5, 1.0, -2.0])
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert compiled_both(other, x)[0] == quartic(x)[0]
        assert other.variables == {"a": (1,), "b": (2,)} and other.n_data == 7
    assert pickle.loads(pickle.dumps(model)).address != model.address


def half_square(x):
    return 0.5 * x @ x, x


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        ("x", {}, TypeError, r"`potential_and_gradient` must be a function x -> \(U, gradient\), got a str"),
        (half_square, {"dim": 2.5}, ValueError, "`dim` must be a whole number, at least 1, got 2.5"),
        (half_square, {"dim": 0}, ValueError, "`dim` must be a whole number, at least 1, got 0"),
        (half_square, {"initial": np.zeros(3)}, ValueError, r"`initial` must have shape \(2,\), got \(3,\)"),
        (half_square, {"variables": {"a": (3,)}}, ValueError, "do not add up to the dimension 2"),
        (lambda x: x, {}, TypeError, r"must return the pair \(U, gradient\), got a ndarray; pdmp.models.from_jax"),
        (lambda x: (x, x), {}, ValueError, r"must return a number for U, got an array of shape \(2,\)"),
        (lambda x: (0.0, x[:1]), {}, ValueError, r"must return a gradient of shape \(2,\), got \(1,\)"),
        (lambda x: (0.0, x[None]), {}, ValueError, r"must return a gradient of shape \(2,\), got \(1, 2\)"),
        (lambda x: ("a", x), {}, TypeError, "must return real numbers, U is"),
        (lambda x: (0.0, x * 1j), {}, TypeError, "must return real numbers, the gradient is complex128"),
        (lambda x: (np.inf, x), {}, ValueError, "must be finite at `initial`, U is inf"),
        (lambda x: (0.0, x + np.nan), {}, ValueError, "must be finite at `initial`, the gradient is"),
        (
            lambda x: (0.5 * x @ x, -x),
            {},
            ValueError,
            r"does not fit its U: coordinate x\[0\] of it, at x = \[.*\], is [-\d.]+, the slope of U is [-\d.]+\. The",
        ),
        (lambda x: (0.5 * x @ x, 1.01 * x), {}, ValueError, "does not fit its U: coordinate"),
        (lambda x: (0.5 * x @ x, x * [1.0, 1.01]), {}, ValueError, r"does not fit its U: coordinate x\[1\] of it"),
        (lambda x: (0.5 * x @ x, x * (np.arange(201) != 7)), {"dim": 201}, ValueError, r"coordinate x\[7\] of it"),
        (lambda x: (1 / 0, x), {}, ZeroDivisionError, "division by zero"),
    ],
)
def test_from_function_refuses(function, arguments, error, message):
    with pytest.raises(error, match=message):
        from_function(function, **{"dim": 2, **arguments})


@pytest.mark.parametrize("which", ["U", "gradient"])
@pytest.mark.parametrize("change", [1e-5, 0.3])
def test_a_function_whose_value_changes_from_call_to_call_is_refused(which, change):
    """As by random numbers, or by a counter that an earlier call has left: a hundred thousandth is seen."""
    calls = []

    def both(x, change=change):
        calls.append(x)
        more = change * len(calls)
        return 0.5 * x @ x + (more if which == "U" else 0.0), x + (more * (np.arange(2) == 1) if which != "U" else 0.0)

    with pytest.raises(ValueError, match=rf"returns another {which} when it is called again at x = .*on x alone"):
        from_function(both, 2)
    from_function(both, 2, check_gradient=False)
    from_function(functools.partial(both, change=1e-8), 2)  # less than sums in another order leave of float32


def test_wrong_gradient_is_reported_with_both_numbers_and_can_be_let_through():
    def wrong(x):
        return 5.0 * x @ x, 20.0 * x

    with pytest.raises(ValueError) as caught:
        from_function(wrong, 2, initial=[1.0, 2.0])
    given, right = map(float, re.findall(r"is (-?[\d.]+\d)", str(caught.value)))
    assert math.isclose(given / right, 2.0, rel_tol=1e-3)
    from_function(wrong, 2, check_gradient=False)


def test_a_log_density_whose_derivative_is_cut_is_named():
    """As of automatic differentiation where a gradient is stopped, half of it; or whose values change."""

    class Cut:
        of_log_density, calls = True, 0

        def __init__(self, change):
            self.change = change

        def __call__(self, x):
            self.calls += 1
            return 0.5 * x @ x + self.change * self.calls, 0.5 * x if self.change == 0.0 else x

    with pytest.raises(
        ValueError, match=r"^the derivative of `log_density` is not .* x\[0\], at x = .*, it is [-\d.]+, and"
    ):
        from_function(Cut(0.0), 2)
    with pytest.raises(ValueError, match="^`log_density` returns another U when it is called again .* earlier call.$"):
        from_function(Cut(0.1), 2)


def test_no_wrong_partial_derivative_of_a_function_hides():
    """Of any coordinate, of a few and of many, off by a tenth or by a constant; each vanishes at `initial`."""
    seen = []

    def both(x, wrong=-1, factor=1.0, constant=0.0):
        seen.append(x)
        gradient = np.tanh(x) + x - 0.1 * np.roll(x, 1) - 0.1 * np.roll(x, -1)
        gradient[wrong] = factor * gradient[wrong] + constant
        return float(np.log(np.cosh(x)).sum() + 0.5 * x @ x - 0.1 * x @ np.roll(x, 1)), gradient

    for dim, coordinates in ((6, range(6)), (300, (0, 17, 150, 298))):
        seen.clear()
        from_function(both, dim)
        assert len(seen) <= 60
        for wrong in coordinates:
            for how in ({"factor": 1.1}, {"constant": 0.3}):
                with pytest.raises(ValueError, match=rf"coordinate x\[{wrong}\] of it"):
                    from_function(functools.partial(both, wrong=wrong, **how), dim)


def large(x, constant=0.0, precision=1.0, share=0.1):
    """Normal, the last coordinate with another precision, U with a constant and the last partial derivative off."""
    gradient = x * np.append(np.ones(len(x) - 1), precision)
    return constant + 0.5 * float(x @ gradient), gradient * np.append(np.ones(len(x) - 1), 1.0 + share)


@pytest.mark.parametrize("constant", [-1e9, 1e8, 1e9])
def test_a_large_constant_hides_no_wrong_gradient(constant):
    with pytest.raises(ValueError, match=r"coordinate x\[2\] of it"):
        from_function(functools.partial(large, constant=constant), 3)
    from_function(functools.partial(large, constant=constant, share=0.0), 3)


@pytest.mark.parametrize("constant", [1e12, -1e12])
def test_a_comparison_that_rounding_makes_blind_says_so(constant):
    """Where each partial derivative is hidden, and where one is too small beside the others."""
    with pytest.warns(UserWarning, match=r"could not be compared with its potential in x\[0\], x\[1\], x\[2\], …: U"):
        from_function(functools.partial(large, constant=constant), 4)
    with pytest.warns(UserWarning, match=r"the gradient of FunctionModel could not be compared .* in x\[2\]: U is"):
        from_function(functools.partial(large, constant=constant / 1e3, precision=1e-6), 3, initial=np.full(3, 3.0))


@pytest.mark.parametrize("precision", [1e-2, 1e-3])
def test_a_weak_coordinate_among_many_is_compared(precision):
    with pytest.raises(ValueError, match=r"coordinate x\[299\] of it"):
        from_function(functools.partial(large, precision=precision), 300)
    from_function(functools.partial(large, precision=precision, share=0.0), 300)


@pytest.mark.parametrize(("digits", "dim"), [(8, 4), (7, 4), (5, 6)])
def test_a_function_of_few_digits_fits_its_gradient(digits, dim):
    """U to so many digits, as a solver gives it: differences over small steps are noise."""
    model = from_function(lambda x: (round(10.0 + float(np.cosh(x).sum()), digits), np.sinh(x)), dim)
    assert model.dim == dim


@pytest.mark.parametrize("initial", [[1e-3, 2.0], [5.0, 40.0]])
def test_comparison_of_slopes_respects_the_support(initial):
    def gamma(x):  # x > 0; numpy complains elsewhere
        if np.any(x <= 0.0):
            raise ValueError("outside")
        return np.sum(x - 2.0 * np.log(x)), 1.0 - 2.0 / x

    model = from_function(gamma, 2, initial=initial)
    assert np.allclose(model.gradient(initial), 1.0 - 2.0 / np.array(initial), rtol=1e-15)


# ---------------------------------------------------------------------------------------------------------------
# A user's own model


def test_own_model_has_the_known_maximum():
    model, _ = own_model.generated()

    def potential(x):
        eta = model.X @ x
        return np.sum(np.exp(eta) - model.y * eta) + 0.5 * model.prior_precision * x @ x

    x = points(model)[0]
    assert math.isclose(model.potential(x), potential(x), rel_tol=1e-12)
    assert np.allclose(model.mode(), optimize.minimize(potential, np.zeros(4), tol=1e-10).x, atol=1e-4)


def test_misspelt_method_is_named():
    message = "^Bad.add_term_gradiant: is it a misspelling of the model's method `add_term_gradient`\\?$"
    with pytest.raises(TypeError, match=message):

        class Bad(pdmp.Model):
            @pdmp.compiled
            def term_potential(self, x, i):
                return 0.0

            @pdmp.compiled
            def add_term_gradiant(self, x, i, out):
                pass


def test_forgotten_decorator_is_named():
    with pytest.raises(TypeError, match="^Bad.term_potential is a method of a model that must be marked @compiled.$"):

        class Bad(pdmp.Model):
            def term_potential(self, x, i):
                return 0.0

            @pdmp.compiled
            def add_term_gradient(self, x, i, out):
                pass


def test_a_misspelt_bound_is_named():
    with pytest.raises(TypeError, match="^Bad.curvature_bond: is it a misspelling of .*`curvature_bound`"):

        class Bad(pdmp.Model):
            @pdmp.compiled
            def potential(self, x):
                return 0.0

            @pdmp.compiled
            def add_gradient(self, x, out):
                pass

            @pdmp.compiled
            def curvature_bond(self, v):
                return 1.0


def test_missing_method_is_named():
    with pytest.raises(
        TypeError, match="^Bad is a model with `add_term_gradient`, but without the method `term_potential`.$"
    ):

        class Bad(pdmp.Model):
            @pdmp.compiled
            def add_term_gradient(self, x, i, out):
                pass


def test_field_that_is_never_set_is_named():
    class Forgetful(pdmp.Model):
        weight: float

        @pdmp.compiled
        def potential(self, x):
            return self.weight

        @pdmp.compiled
        def add_gradient(self, x, out):
            pass

    with pytest.raises(TypeError, match="Forgetful declares the field `weight` but never sets it"):
        Forgetful(dim=1).potential([0.0])


def test_points_are_checked():
    model = linear_gaussian()
    with pytest.raises(ValueError, match=r"`x` must have shape \(4,\), got \(3,\)"):
        model.potential(np.zeros(3))
    for shape in ((1, 4), (4, 1), (2, 2)):  # of four numbers all the same
        with pytest.raises(ValueError, match=re.escape(f"`x` must have shape (4,), got {shape}")):
            model.potential(np.zeros(shape))
    with pytest.raises(ValueError, match="`rows` must lie in 0 … 39"):
        model.term_gradients(np.zeros(4), [40])


def test_a_kink_is_not_a_mode():
    """|x|, at whose minimum the gradient is 1 on one side and -1 on the other."""
    model = pdmp.models.from_function(lambda x: (abs(x[0] - 0.3), np.sign(x - 0.3)), 1)
    assert model.mode() is None


def test_a_minimum_at_infinity_is_not_a_mode():
    X = np.array([[1.0, 0.9], [2.0, 2.2], [-1.0, -1.1], [-1.5, -1.0]])
    model = pdmp.models.LogisticRegression(X, [1.0, 1.0, 0.0, 0.0], prior_scale=np.inf)
    assert model.mode() is None


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("initial", 7.0, np.zeros(2)),
        ("initial", np.zeros(3), [1.0, 2.0]),
        ("variables", 7.0, {"a": (2,)}),
        ("transforms", np.ones(2), {}),
        ("n_data", 2.5, 0),
        ("dim", np.array([2.0]), np.int64(2)),
        ("divisible", 1.0, False),
        ("resolution", 7.0, 1e-7),
        ("resolution", 1, 1e-3),
        ("resolution", 0.0, 2.0**-52),
    ],
)
def test_what_every_model_needs_is_not_hidden(name, wrong, right):
    """By a field of a class of one's own that has the same name, and means another thing."""

    class Bowl(pdmp.Model):
        def __init__(self, value):
            super().__init__(2)
            setattr(self, name, value)

        @pdmp.compiled
        def potential(self, x):
            return 0.5 * (x[0] * x[0] + x[1] * x[1])

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += x[0]
            out[1] += x[1]

    with pytest.raises(TypeError, match=f"Bowl sets `self.{name}`, which hides what every model needs under this name"):
        Bowl(wrong)
    assert Bowl(right).potential(np.ones(2)) == 1.0


@pytest.mark.exact
def test_a_base_of_models_may_have_helpers_alone():
    """It is no target: an object of it is refused; those of its subclasses have the helpers."""

    class Scaled(pdmp.Model):
        scale: float

        def __init__(self, scale):
            self.scale = float(scale)
            super().__init__(dim=1)

        @pdmp.compiled
        def scaled(self, x):
            return self.scale * x

    class Quadratic(Scaled):
        @pdmp.compiled
        def potential(self, x):
            return 0.5 * self.scaled(x[0] ** 2)

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += self.scaled(x[0])

    assert Quadratic(3.0).potential(np.array([2.0])) == 6.0
    with pytest.raises(TypeError, match="^Scaled is a model without the methods `term_potential` and `add_term_grad"):
        Scaled(3.0)
