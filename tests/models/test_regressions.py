"""Regressions: derivatives, bounds and closed forms against algebra of their own; sparse and memory-mapped features."""

import copy
import itertools
import math
import os
import pathlib
import pickle
import subprocess
import sys
import types

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, sparse, special, stats

import pdmp
from pdmp.models import (
    HalfCauchyLogistic,
    LogisticRegression,
    NegativeBinomialRegression,
    NormalInverseGamma,
    NormalInverseGammaRegression,
    PoissonRegression,
    ProbitRegression,
    SpikeAndSlabLinearRegression,
    SpikeAndSlabLogisticRegression,
    StudentTRegression,
    numerical,
)
from pdmp.models.numerical import term_partial_lipschitz
from pdmp.models.regressions import glm, spike_and_slab
from pdmp.models.regressions.design import Columns, read_design, row_norms
from pdmp.native.classes import entry
from tests.checks import in_ci, plain_only

pytestmark = [pytest.mark.exact, pytest.mark.compiled]

N = 150  # two whole blocks of rows, and a part of one


def rng(seed=0):
    return np.random.default_rng(seed)


def features(d=3, n=N):
    X = rng(1).standard_normal((n, d))
    X[np.abs(X) < 0.4] = 0.0
    return X.astype(np.float32).astype(float)


def targets(X):
    generator = rng(2)
    z = X @ np.linspace(0.6, -0.4, X.shape[1]) / math.sqrt(X.shape[1] / 3)
    return {
        "binary": (z + generator.standard_normal(len(z)) > 0.0).astype(float),
        "count": generator.poisson(np.exp(z)).astype(float),
        "real": z + 0.7 * generator.standard_t(3, len(z)),
    }


#: Class, kind of target, options, and the law of one target given its margin, as scipy has it.
FAMILIES = {
    "logistic": (LogisticRegression, "binary", {}, lambda z, y: stats.bernoulli.logpmf(y, special.expit(z))),
    "probit": (ProbitRegression, "binary", {}, lambda z, y: stats.bernoulli.logpmf(y, stats.norm.cdf(z))),
    "Poisson": (PoissonRegression, "count", {}, lambda z, y: stats.poisson.logpmf(y, np.exp(z))),
    "negative binomial": (
        NegativeBinomialRegression,
        "count",
        {"size": 2.5},
        lambda z, y: stats.nbinom.logpmf(y, 2.5, 2.5 / (2.5 + np.exp(z))),
    ),
    "Student-t": (
        StudentTRegression,
        "real",
        {"degrees": 3.0, "noise_scale": 0.7},
        lambda z, y: stats.t.logpdf((y - z) / 0.7, 3.0) - math.log(0.7),
    ),
}
MEANS = {
    "logistic": special.expit,
    "probit": stats.norm.cdf,
    "Poisson": np.exp,
    "negative binomial": np.exp,
    "Student-t": lambda z: z,
}
BOUNDED = ["logistic", "probit", "negative binomial", "Student-t"]
BOUNDED_SLOPES = ["logistic", "negative binomial", "Student-t"]


def build(name, X=None, n=N, d=3, **options):
    cls, kind, own, _ = FAMILIES[name]
    dense = features(d, n)
    return cls(dense if X is None else X, targets(dense)[kind], **own, **options)


def mapped(tmp_path, X, dtype=np.float32, order="C"):
    np.save(tmp_path / "X.npy", np.asarray(X, dtype=dtype, order=order))
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def layouts(tmp_path, d=3):
    X = features(d)
    return {"dense": X, "sparse": sparse.csc_array(X), "mapped": mapped(tmp_path, X)}


def differences(function, x, h=1e-5):
    return np.array([(function(x + h * e) - function(x - h * e)) / (2.0 * h) for e in np.eye(len(x))])


def normal_inverse_gamma(X=None, **options):
    dense = features()
    return NormalInverseGammaRegression(dense if X is None else X, targets(dense)["real"], **options)


EVERY = {
    **{name: lambda name=name: build(name, prior_scale=[2.0, 0.5, 1.0]) for name in FAMILIES},
    "offset": lambda: build("Poisson", offset=np.linspace(-1.0, 1.0, N)),
    "intercept": lambda: build("negative binomial", intercept=True),
    "NIG": lambda: normal_inverse_gamma(prior_mean=0.3, prior_covariance=np.diag([1.0, 2.0, 3.0]) + 0.5),
    "NIG, intercept": lambda: normal_inverse_gamma(intercept=True, shape=2.0, scale=0.5),
    "half-Cauchy": lambda: HalfCauchyLogistic.generated(),
    "spikes": lambda: SpikeAndSlabLinearRegression(features(), targets(features())["real"], inclusion=0.3),
}


def points(model, n=3):
    return 0.5 * rng(5).standard_normal((n, model.dim))


# ---------------------------------------------------------------------------------------------------------------
# Derivatives, and the likelihood of scipy


@plain_only
@pytest.mark.parametrize("name", EVERY)
def test_derivatives(name):
    model = EVERY[name]()
    for x in points(model):
        gradient = model.gradient(x)
        assert_allclose(gradient, differences(model.potential, x), atol=1e-6 * max(1.0, np.abs(gradient).max()))
        hessian = model.hessian(x)
        assert_allclose(hessian, differences(model.gradient, x), atol=1e-6 * np.abs(hessian).max())


@plain_only
@pytest.mark.parametrize("name", EVERY)
def test_mode_is_a_minimum(name):
    model = EVERY[name]()
    mode = model.mode()
    hessian = model.hessian(mode)
    assert np.linalg.eigvalsh(hessian)[0] > 0.0
    assert np.abs(model.gradient(mode)).max() < 1e-6 * math.sqrt(np.abs(hessian).max())


@plain_only
@pytest.mark.parametrize("name", FAMILIES)
def test_the_likelihood_is_that_of_scipy(name):
    offset = np.linspace(-0.5, 0.5, N)
    model = build(name, prior_scale=2.0, offset=offset)
    law = FAMILIES[name][3]
    x = points(model, 4)
    z = x @ model.X.T + offset
    expected = law(z, model.y)
    assert_allclose(model.log_likelihood(x, pointwise=True), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(model.log_likelihood(x), expected.sum(axis=1), rtol=1e-10)
    assert isinstance(model.log_likelihood(x[0]), float)
    assert_allclose(model.log_likelihood(x[1], model.X[:5], model.y[:5], offset[:5]), expected[1, :5].sum(), rtol=1e-9)
    potential = np.array([model.potential(y) for y in x])
    prior = np.sum(x**2, axis=1) / 8.0
    assert_allclose(np.diff(potential - prior), -np.diff(expected.sum(axis=1)), rtol=1e-9, atol=1e-8)
    means = MEANS[name](z)
    assert_allclose(model.predict(x, model.X, offset), means, rtol=1e-12)
    assert model.predict(x.reshape(2, 2, 3), model.X[:6]).shape == (2, 2, 6)
    if name == "negative binomial":
        assert_allclose(stats.nbinom.mean(2.5, 2.5 / (2.5 + means)), means)


# ---------------------------------------------------------------------------------------------------------------
# Layouts: copied, sparse, in a file


@plain_only
def test_logistic_regression_with_an_offset():
    X = features()
    y, offset = targets(X)["binary"], np.linspace(-1.0, 1.0, N)
    model, x = LogisticRegression(X, y, offset=offset), np.array([0.2, -0.4, 0.3])
    expected = stats.bernoulli.logpmf(y, special.expit(X @ x + offset))
    assert_allclose(model.potential(x), 0.5 * x @ x - expected.sum(), rtol=1e-12)
    with pytest.raises(ValueError, match="`offset` must have shape"):
        model.log_likelihood(x, X, y, True)  # `pointwise`, by position


@plain_only
def test_columns_of_a_table_are_read_where_they_are():
    """Of arrays with strides of their own, standardised as they are read, and as a copy in a pickle."""
    table = np.asfortranarray(rng(3).standard_normal((2 * N, 3)) + [10.0, 0.0, -5.0])
    apart = np.repeat(table[::2, 2], 3)[::3]  # whose numbers are 24 bytes apart
    columns = Columns(np.ascontiguousarray(table[::2, 0]), table[::2, 1], apart)
    centre, scale = np.array([10.0, 0.5, -5.0]), np.array([2.0, 1.0, 0.5])
    design, expected = columns.standardised(centre, scale), (table[::2] - centre) / scale
    centre[:], scale[:] = 0.0, 1.0  # they are kept
    for read in (design, pickle.loads(pickle.dumps(design)), copy.copy(design)):
        assert len(read) == N and read.shape == (N, 3)
        assert_allclose(np.asarray(read), expected, rtol=1e-14)
        assert_allclose([[read.feature(i, j) for j in range(3)] for i in (0, 70)], expected[[0, 70]], rtol=1e-14)
        for where in (slice(3, 90), slice(3, 90, 7), slice(90, 3), slice(100, 400), np.array([5, 2, 140]), [0]):
            assert_allclose(read[where], expected[where], rtol=1e-14)
        assert_allclose(read[:, 2], expected[:, 2], rtol=1e-14)
        assert_allclose(read[5:9, 0], expected[5:9, 0], rtol=1e-14)
        some = read.some(np.array([7, 3, 3]))
        assert_allclose(some[:], expected[[7, 3, 3]], rtol=1e-14)
        rows = read.rows(140, 400)  # to the end, with zeros up to whole cache lines
        assert rows.shape == (10, 8) and not rows[:, 3:].any()
        assert_allclose(rows[:, :3], expected[140:], rtol=1e-14)
        x, y = rng(4).standard_normal((2, 3))
        assert_allclose(read.both_products(x, y, 11), expected[11] @ np.array([x, y]).T, rtol=1e-13)
    assert_allclose(columns[:], table[::2], rtol=1e-14)  # as they were


@plain_only
def test_rows_begin_at_cache_lines_after_a_pickle():
    design = read_design(features(8))[1]
    for again in [pickle.loads(pickle.dumps(design)) for _ in range(9)]:
        assert again.data.ctypes.data % 64 == 0 and np.array_equal(again.data, design.data)


@plain_only
def test_entries_that_a_sparse_matrix_has_twice_are_one():
    """Their squares, and single entries, are of the sum."""
    twice = sparse.csr_array(([1.0, 2.0, -4.0, 4.0, 3.0], [1, 1, 0, 0, 2], [0, 2, 4, 5]), shape=(3, 3))
    X, design = read_design(twice)
    assert X.nnz == 2 and twice.nnz == 5
    assert [[design.feature(i, j) for j in range(3)] for i in range(3)] == [[0, 3, 0], [0, 0, 0], [0, 0, 3]]
    out, squares = np.zeros((2, 3))
    design.add_squares(np.arange(3), 0, 3, np.array([1.0, 1.0, 2.0]), out, squares)
    assert out.tolist() == [0.0, 3.0, 6.0] and squares.tolist() == [0.0, 9.0, 36.0]


@plain_only
@pytest.mark.parametrize(
    "columns, intercept, names",
    [
        (["a", "b"], False, {"a": (), "b": ()}),
        (["a", "a"], False, {"coefficients": (2,)}),
        ([0, "a"], False, {"coefficients": (2,)}),
        ([0, 1], True, {"coefficients": (2,), "intercept": ()}),
        (["b", "intercept"], True, {"b": (), "(intercept)": (), "intercept": ()}),
        (["b", "coefficients"], True, {"b": (), "coefficients": (), "intercept": ()}),
    ],
)
def test_names_of_columns_are_names_of_coefficients_where_they_can_be(columns, intercept, names):
    table = pytest.importorskip("pandas").DataFrame(features(2), columns=columns)
    model = LogisticRegression(table, targets(features(2))["binary"], intercept=intercept)
    assert list(model.variables.items()) == list(names.items())
    x = np.ones(model.dim)
    assert_allclose(model.predict(x, table[:5]), model.predict(x, table.to_numpy()[:5]), rtol=0.0)


@plain_only
@pytest.mark.parametrize("width", [2, 3])
def test_labels_of_any_kind_are_looked_at_in_all_rows(width, monkeypatch):
    """Also where those of the first rows are all alike, and where they are few in many pieces."""
    pieces = [(first, min(first + width, 10)) for first in range(0, 10, width)]
    monkeypatch.setattr(glm, "chunks", lambda n, numbers: pieces)
    expected = np.array([0.0] * 6 + [1.0, 0.0, 1.0, 0.0])
    signs = 2.0 * expected - 1.0
    for y in (expected, expected.astype(bool), expected.astype(np.uint8), signs, signs.astype(np.int8), signs.tolist()):
        assert glm.read_labels(y, 10).tolist() == expected.tolist()
        assert glm.read_labels(y[::-1], 10).tolist() == expected[::-1].tolist()
    for bad in (np.where(np.arange(10) == 8, 2.0, expected), np.where(np.arange(10) == 7, 0.0, signs)):
        with pytest.raises(ValueError, match=r"`y` must have labels in \{0, 1\} or \{-1, \+1\}"):
            glm.read_labels(bad, 10)
    with pytest.raises(ValueError, match="both classes, and all 10 labels are 1"):
        glm.read_labels(np.ones(10, int), 10)


@plain_only
def test_a_number_is_no_scale_of_the_intercept_and_an_array_is():
    for given, precision in ((0.5, [4.0, 4.0, 0.0]), ([0.5, 1.0, 2.0], [4.0, 1.0, 0.25]), (np.inf, [0.0] * 3)):
        assert build("logistic", d=2, intercept=True, prior_scale=given).precision.tolist() == precision
    assert build("logistic", d=2, prior_scale=0.5).precision.tolist() == [4.0, 4.0]


@plain_only
def test_features_in_a_file_are_not_copied(tmp_path):
    X = mapped(tmp_path, features())
    for model in (LogisticRegression(X, targets(features())["binary"]), build("Poisson", X), normal_inverse_gamma(X)):
        design = getattr(model, "form", model).design
        assert design.data.dtype == np.float32
        assert np.shares_memory(design.data, X) and np.shares_memory(model.X, X)
        assert model.rearranged(np.arange(N)[::-1]) is None
        few = model.some_rows(np.array([3, 1]))
        if few is not None:  # in memory, and no other type of arrays for compiled methods
            assert numba.typeof(few.native) == numba.typeof(model.native)
        assert not any(a.size >= X.size for k, a in vars(model).items() if isinstance(a, np.ndarray) and k != "X")
    assert np.shares_memory(build("Student-t", X[:50], n=50).X, X)  # so do slices, and views
    assert np.shares_memory(build("Student-t", np.asarray(X)[:50], n=50).X, X)


class Counted:
    """A vector that counts what is written and read."""

    def __init__(self):
        self.written = {}
        self.read = 0

    def __getitem__(self, j):
        self.read += 1
        return self.written.get(j, 0.0)

    def __setitem__(self, j, value):
        self.written[j] = value


@plain_only
@pytest.mark.parametrize("cls", [LogisticRegression, ProbitRegression, PoissonRegression, NormalInverseGammaRegression])
def test_a_sparse_term_costs_what_is_stored_of_it(cls):
    d = 40 if cls is NormalInverseGammaRegression else 1_000_000
    X = sparse.csr_array((np.ones(6), ([0, 0, 1, 2, 2, 2], [3, d - 1, 7, 1, 5, 9])), shape=(3, d))
    model = cls(X, [0, 1, 1])
    size = 0 if d == 40 else 1
    assert all(a.nbytes <= 8 * d for a in vars(model).values() if size and isinstance(a, np.ndarray))
    out = Counted()
    x = np.full(model.dim, 0.1)
    model.add_term_gradient(x, 2, out)
    assert {1, 5, 9} <= set(out.written) <= {1, 5, 9, d} and out.read <= 4
    out = Counted()
    model.add_batch_gradient(x, np.array([0, 1]), 2, out)
    assert {3, 7, d - 1} <= set(out.written) <= {3, 7, d - 1, d}
    assert model.term_gradients(x, 2).nonzero()[1].tolist()[:3] == [1, 5, 9]


LIMITED = """
import resource, sys
import numpy as np, pdmp
from pdmp.models import LogisticRegression, PoissonRegression, ProbitRegression

X = np.load(sys.argv[1], mmap_mode="r")
status = open("/proc/self/status").read()
used = 1024 * int(status.split("VmData:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_DATA, (used + X.nbytes // 4, resource.RLIM_INFINITY))
y = np.arange(len(X)) % 2
for cls in (LogisticRegression, PoissonRegression, ProbitRegression):
    model = cls(X, y)
    x = np.full(model.dim, 0.01)
    batch = pdmp.gradients.Minibatch(model, 5)
    out, counts = np.zeros(model.dim), np.zeros(20, np.int64)
    batch.gradient(x, batch.memory(np.random.default_rng(0)), np.random.default_rng(0), out, counts)
    assert np.isfinite(out).all() and np.any(model.term_gradients(x, 0))
try:
    np.array(X, dtype=np.float32)
except MemoryError:
    print("no room for a copy")
"""


@plain_only
@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="limits of memory are those of Linux")
def test_a_file_larger_than_the_memory_allowed(tmp_path):
    path = tmp_path / "large.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(200_000, 200))  # 160 MB, mostly holes
    X[0] = 1.0
    X.flush()
    del X
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(pdmp.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "no room for a copy", done.stderr[-2000:]


@plain_only
@pytest.mark.parametrize("n", [6, 150])
def test_dependent_columns_make_a_flat_prior_improper(n):
    """Whichever way sums over rows are rounded: a Cholesky factor alone finds two in three of them."""
    for seed in range(20):
        X = rng(seed).standard_normal((n, 3)) + 2.0
        near = X.copy()
        X[:, 2] = X[:, 0] - 1.7 * X[:, 1]
        near[:, 2] = X[:, 2] + 1e-4 * near[:, 2]
        with pytest.raises(ValueError, match="improper: columns of `X` are linearly dependent"):
            NormalInverseGammaRegression(X, X[:, 0], prior_covariance=np.inf)
        NormalInverseGammaRegression(X, near[:, 2], prior_covariance=1e12)
        NormalInverseGammaRegression(near, rng(seed + 50).standard_normal(n), prior_covariance=np.inf)


def test_large_matrices_are_looked_at_in_pieces(monkeypatch):
    from pdmp.models.regressions import design

    monkeypatch.setattr(design, "PIECE", 30)
    X = features()
    weights = rng(3).random(N)
    assert_allclose(design.gram(X, weights), X.T @ np.diag(weights) @ X, rtol=1e-12)
    assert_allclose(design.gram(sparse.csr_array(X), weights), X.T @ np.diag(weights) @ X, rtol=1e-12)
    assert_allclose(row_norms(X), np.linalg.norm(X, axis=1))
    assert_allclose(row_norms(sparse.csr_array(X), np.eye(3)[:, :2]), np.linalg.norm(X[:, :2], axis=1))
    X[140, 1] = np.nan
    with pytest.raises(ValueError, match="`X` must be finite, and has 1 values"):
        read_design(X)


# ---------------------------------------------------------------------------------------------------------------
# Bounds


@plain_only
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_of_terms_in_other_coordinates_hold(name):
    """What `Model.check_bounds` does not look at: norms in other coordinates, and without the Gram matrix."""
    model, generator = build(name, n=20, prior_scale=[2.0, 0.5, 1.0], offset=np.linspace(-1.0, 1.0, 20)), rng(9)
    without_gram, scale = copy.copy(model), np.array([1.0, 0.3, 2.0])
    without_gram.gram = np.zeros((0, 0))
    lipschitz, root = term_partial_lipschitz(model, 0, 20, scale), rng(3).standard_normal((3, 3))
    lipschitz_norms, tiny, tightest = model.term_lipschitz_norms(root, 0, 20), 1e-9, 0.0
    for _ in range(100):
        x, y = 2.0 * generator.standard_normal((2, 3))
        v = generator.standard_normal(3)
        assert math.isclose(model.curvature_bound(v), without_gram.curvature_bound(v), rel_tol=1e-12)
        change = model.term_gradients(x, range(20)) - model.term_gradients(y, range(20))
        distance = np.linalg.norm((x - y) / scale)
        tightest = max(tightest, (np.abs(change) / np.maximum(lipschitz * distance, 1e-300)).max())
        there = model.term_gradients(root @ x, range(20)) - model.term_gradients(root @ y, range(20))
        assert np.all(np.linalg.norm(there @ root, axis=1) <= lipschitz_norms * np.linalg.norm(x - y) + tiny)
        if name in BOUNDED_SLOPES:
            terms = model.term_gradients(x, range(20))
            assert np.all(np.linalg.norm(terms @ root, axis=1) <= model.term_gradient_norms(root, 0, 20) + tiny)
    assert 0.3 < tightest <= 1.0 + tiny


# ---------------------------------------------------------------------------------------------------------------
# Normal-inverse-gamma


@plain_only
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    "form", [lambda d: np.diag(1.0 + np.arange(d)) + 0.5, lambda d: np.linspace(0.5, 2.0, d), lambda d: 2.0]
)
def test_the_posterior_is_that_of_the_closed_form(form, intercept):
    """D3: U - U of the closed form is the same everywhere; and the parameters are those of the textbook.

    What is given for the intercept holds; it is flat where one number is given for all.
    """
    X = features()
    y, mu = targets(X)["real"], np.array([0.5, 0.0, -0.5, 1.5])[: 3 + intercept]
    A, d = np.column_stack([X, np.ones(N)])[:, : len(mu)], len(mu)
    given = form(d)
    V = given if np.ndim(given) == 2 else np.diag(np.broadcast_to(given, (d,)))
    model = NormalInverseGammaRegression(X, y, mu, given, shape=2.0, scale=0.7, intercept=intercept)
    law = model.law
    inverse, rank = np.linalg.inv(V), d
    if intercept and np.ndim(given) == 0:
        inverse[3, 3], rank = 0.0, 3
    Vn = np.linalg.inv(inverse + A.T @ A)
    mean = Vn @ (inverse @ mu + A.T @ y)
    assert_allclose(law.mean, mean, rtol=1e-10)
    assert_allclose(law.precision, np.linalg.inv(Vn), rtol=1e-10, atol=1e-12 * N)
    assert law.shape == 2.0 + (N - d + rank) / 2
    textbook = 0.7 + 0.5 * (y @ y + mu @ inverse @ mu - mean @ np.linalg.inv(Vn) @ mean)
    assert_allclose(law.scale, textbook, rtol=1e-9)
    gaps = [model.potential(x) - law.potential(x) for x in points(model, 20)]
    assert np.ptp(gaps) < 1e-9 * abs(gaps[0])
    mode = np.append(mean, math.log(textbook / (law.shape + 0.5 * d)))
    assert_allclose(model.mode(), mode, rtol=1e-10)
    assert np.abs(model.gradient(mode)).max() < 1e-8
    for x in points(model):
        assert_allclose(model.gradient(x), law.gradient(x), rtol=1e-9, atol=1e-9)
    # the prior: normal given the variance, inverse gamma, and the Jacobian of γ
    x, proper, V = points(model)[0], mu[:rank], V[:rank, :rank]
    prior = stats.multivariate_normal(proper, math.exp(x[-1]) * V).logpdf(x[:rank])
    prior += stats.invgamma(2.0, scale=0.7).logpdf(math.exp(x[-1])) + x[-1]
    other = stats.multivariate_normal(proper, V).logpdf(proper) + stats.invgamma(2.0, scale=0.7).logpdf(1.0)
    here = model.prior_potential(np.append(mu, 0.0)) - model.prior_potential(x)
    assert_allclose(here, prior - other, rtol=1e-10)


@plain_only
@pytest.mark.parametrize("options", [{}, {"prior_covariance": np.inf, "shape": 0.0, "scale": 0.0}])
def test_moments_and_marginals_by_quadrature(options):
    """One coefficient, and the density summed over the data on a grid of (β, γ)."""
    x = rng(3).standard_normal(8)
    y = 0.5 * x + rng(4).standard_normal(8)
    model = NormalInverseGammaRegression(x[:, None], y, **options)
    beta, gamma = np.linspace(-8.0, 9.0, 1201), np.linspace(-4.0, 6.0, 801)
    residuals = ((y[:, None] - x[:, None] * beta) ** 2).sum(axis=0)
    if options:
        inner, count = residuals, 8
    else:
        inner, count = residuals + beta**2 / 100.0 + 2.0, 8 + 1 + 2
    density = np.exp(-0.5 * count * gamma - 0.5 * np.exp(-gamma) * inner[:, None])
    density /= density.sum()
    along_beta, along_gamma = density.sum(axis=1), density.sum(axis=0)
    mean, covariance = model.posterior()
    b, g = along_beta @ beta, along_gamma @ gamma
    assert_allclose(mean, [b, g], atol=2e-5)
    expected = [along_beta @ (beta - b) ** 2, along_gamma @ (gamma - g) ** 2]
    assert_allclose(np.diag(covariance), expected, rtol=2e-3)
    assert abs((beta - b) @ density @ (gamma - g)) < 1e-6 and covariance[0, 1] == 0.0
    step = beta[1] - beta[0]
    assert_allclose(model.law.coefficients_law().pdf(beta[:, None]), along_beta / step, atol=1e-4)
    step = gamma[1] - gamma[0]
    variance = model.law.variance_law().pdf(np.exp(gamma)) * np.exp(gamma)
    assert_allclose(variance, along_gamma / step, atol=1e-4)


@plain_only
def test_names_and_natural_parameters():
    model = normal_inverse_gamma(intercept=True)
    assert model.variables == {"coefficients": (3,), "intercept": (), "variance": ()}
    found = model.constrain(np.arange(10.0).reshape(2, 5))
    assert_allclose(found["variance"], np.exp([4.0, 9.0]))
    assert found["coefficients"].shape == (2, 3) and found["intercept"].tolist() == [3.0, 8.0]
    back = np.column_stack([found["coefficients"], found["intercept"], np.log(found["variance"])])
    assert_allclose(back, np.arange(10.0).reshape(2, 5))
    x = points(model, 2)
    fitted = x[:, :3] @ features().T + x[:, 3:4]
    assert_allclose(model.predict(x, features()), fitted, rtol=1e-12)
    sd = np.exp(0.5 * x[:, -1:])
    expected = stats.norm.logpdf(model.y, fitted, sd)
    assert_allclose(model.log_likelihood(x, pointwise=True), expected, rtol=1e-10)
    assert_allclose(model.log_likelihood(x[0], features()[:3], model.y[:3]), expected[0, :3].sum(), rtol=1e-10)
    terms = [model.term_potential(x[0], i) for i in range(N)]
    assert_allclose(-np.array(terms), expected[0], rtol=1e-10)


@plain_only
def test_half_cauchy():
    model = HalfCauchyLogistic.generated(scale=3.0, n_data=100, seed=4)
    covariates = np.abs(3.0 * np.random.default_rng(4).standard_cauchy(100))
    assert np.array_equal(model.X[:, 0], covariates)
    theta = np.linspace(-3.0, 9.0, 20_001)
    potential = np.logaddexp(0.0, -covariates[:, None] * theta).sum(axis=0) + theta**2 / 2.0
    assert_allclose([model.potential([t]) for t in theta[::4000]], potential[::4000], rtol=1e-12)
    density = np.exp(potential.min() - potential)
    density /= density.sum()
    mean, covariance = model.posterior()
    assert_allclose(mean[0], density @ theta, rtol=1e-7)
    assert_allclose(covariance[0, 0], density @ (theta - mean[0]) ** 2, rtol=1e-6)
    second = np.gradient(np.gradient(potential, theta), theta)[2:-2]
    bound = model.hessian_bounds()[1][0, 0]
    assert second.max() <= bound
    assert_allclose(bound, 1.0 + 0.25 * np.sum(covariates**2), rtol=1e-13)
    assert model.largest_term_gradient() == covariates.max() and model.variables == {"theta": (1,)}


# ---------------------------------------------------------------------------------------------------------------
# Spikes and slabs


def spiky():
    X = features(4)[:, :4]
    y = X @ [1.0, 0.0, 0.3, -0.2] + rng(5).standard_normal(N)
    return SpikeAndSlabLinearRegression(
        X, y, noise_scale=1.1, slab_scale=0.7, inclusion=[0.2, 0.3, 0.4, 0.5], always=[3]
    )


@plain_only
def test_as_many_coefficients_are_enumerated_as_is_said(monkeypatch):
    model = spiky()  # of which three may be 0
    monkeypatch.setattr(spike_and_slab, "ENUMERATED", 3)
    assert len(model.enumerate().models) == 8
    monkeypatch.setattr(spike_and_slab, "ENUMERATED", 2)
    with pytest.raises(ValueError, match="models are enumerated up to 2 coefficients that may be 0, and 3 may"):
        model.enumerate()


@plain_only
def test_enumeration_against_marginal_likelihoods():
    model, logs, means, seconds = spiky(), [], [], []
    for included in itertools.product([False, True], repeat=3):
        m = np.array([*included, True])
        A = model.A[:, m]
        covariance = 1.21 * np.eye(N) + 0.49 * A @ A.T
        prior = np.where(m, [0.2, 0.3, 0.4, 1.0], [0.8, 0.7, 0.6, 1.0])
        logs.append(stats.multivariate_normal(np.zeros(N), covariance).logpdf(model.y) + np.log(prior).sum())
        gain = 0.49 * A.T @ np.linalg.inv(covariance)
        mean, second = np.zeros(4), np.zeros((4, 4))
        mean[m] = gain @ model.y
        second[np.ix_(m, m)] = 0.49 * np.eye(m.sum()) - gain @ A * 0.49
        means.append(mean)
        seconds.append(second + np.outer(mean, mean))
    weights = special.softmax(logs)
    found = model.enumerate()
    assert_allclose(found.probabilities, weights, atol=1e-10)
    assert_allclose(found.inclusion, weights @ found.models, atol=1e-10)
    mean, covariance = model.posterior()
    assert_allclose(mean, weights @ means, atol=1e-10)
    assert_allclose(covariance, np.tensordot(weights, seconds, 1) - np.outer(mean, mean), atol=1e-10)
    # the constant of the evidence is one of the data and the noise: it cancels against another prior
    other = copy.copy(model)
    other.set_spikes([0.5, 0.5, 0.5, 0.5], [3])
    same = [a + 3.0 * math.log(0.5) - b for a, b in zip(logs, _log_priors(), strict=True)]
    expected = special.logsumexp(logs) - special.logsumexp(same)
    assert_allclose(found.log_evidence - other.enumerate().log_evidence, expected, rtol=1e-9)


def _log_priors():
    for included in itertools.product([False, True], repeat=3):
        yield np.log(np.where(included, [0.2, 0.3, 0.4], [0.8, 0.7, 0.6])).sum()


@plain_only
def test_sticky_processes_take_the_spikes_from_the_model():
    model = spiky()
    assert model.prior_inclusion().tolist() == [0.2, 0.3, 0.4, 1.0]
    slab = 1.0 / (0.7 * math.sqrt(2.0 * math.pi))
    bouncing = pdmp.BPS(model, velocities="gaussian"), pdmp.Boomerang(model, metric="diagonal")
    for inner in (pdmp.ZigZag(model), *bouncing):
        process = pdmp.Sticky(inner)
        assert_allclose(process.kappa, [slab * 0.2 / 0.8, slab * 0.3 / 0.7, slab * 0.4 / 0.6, 0.0], rtol=1e-12)
        assert process.sticking.tolist() == [0, 1, 2]
    assert_allclose(pdmp.Sticky(pdmp.ZigZag(model), inclusion=0.5).kappa, slab)  # what is said counts
    assert model.prior_inclusion()[3] == 1.0
    X, y = features(), targets(features())["binary"]
    # arrays: an entry for the intercept too, which is always in the model; what is given stays as it is
    scales, given = np.array([0.5, 1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.4, 0.5])
    model = SpikeAndSlabLogisticRegression(X, y, slab_scale=scales, inclusion=given, intercept=True)
    assert model.prior_inclusion().tolist() == [0.2, 0.3, 0.4, 1.0] and given[3] == 0.5
    kappa = given / (1.0 - given) / (scales * math.sqrt(2.0 * math.pi))
    assert_allclose(pdmp.Sticky(pdmp.ZigZag(model)).kappa, [*kappa[:3], 0.0])
    with pytest.raises(ValueError, match=r"`inclusion` must be a number or of shape \(4,\), got shape \(3,\)"):
        SpikeAndSlabLogisticRegression(X, y, inclusion=given[:3], intercept=True)


# ---------------------------------------------------------------------------------------------------------------
# scikit-learn


def estimators():
    from sklearn import linear_model

    tight = {"tol": 1e-12, "max_iter": 100_000}
    return {
        "logistic": (linear_model.LogisticRegression(C=0.7, **tight), "binary"),
        "logistic, liblinear": (
            linear_model.LogisticRegression(C=0.7, solver="liblinear", intercept_scaling=2.0, **tight),
            "binary",
        ),
        "logistic, no penalty": (linear_model.LogisticRegression(C=np.inf, **tight), "binary"),
        "ridge": (linear_model.Ridge(alpha=2.0), "real"),
        "ridge, no penalty": (linear_model.Ridge(alpha=0.0, solver="svd"), "real"),
        "Poisson": (linear_model.PoissonRegressor(alpha=0.2, solver="newton-cholesky", **tight), "count"),
        "Poisson, no penalty": (linear_model.PoissonRegressor(alpha=0.0, solver="newton-cholesky", **tight), "count"),
    }


@plain_only
@pytest.mark.parametrize("name", estimators())
@pytest.mark.parametrize("intercept", [True, False])
def test_the_mode_is_the_estimator(name, intercept):
    estimator, kind = estimators()[name]
    X = features() + 0.3
    y = targets(features())[kind]
    if name == "logistic":
        y = np.where(y > 0.0, "yes", "no")
    estimator.set_params(fit_intercept=intercept)
    for data in (X, sparse.csr_array(X)):
        if sparse.issparse(data) and name in ("ridge, no penalty",):
            continue
        estimator.fit(data, y)
        model = pdmp.models.from_sklearn(estimator, data, y)
        found = estimator.coef_.ravel()
        if intercept:
            found = np.append(found, estimator.intercept_)
        assert_allclose(model.mode()[: len(found)], found, rtol=1e-6, atol=1e-7)
        assert np.array_equal(model.initial[: len(found)], found)
        if kind == "binary":
            predicted = estimator.predict_proba(data)[:, 1]
        else:
            predicted = estimator.predict(data)
        assert_allclose(model.predict(model.initial, data), predicted, rtol=1e-9, atol=1e-10)
        assert ("intercept" in model.variables) == intercept


@plain_only
@pytest.mark.parametrize("kind", ["binary", "real", "count"])
def test_weights_of_the_estimator_are_noticed(kind):
    """Those that move the mode by less than a standard deviation too; not a fit with the default tolerance."""
    from sklearn import linear_model

    makers = {
        "binary": linear_model.LogisticRegression,
        "real": linear_model.Ridge,
        "count": linear_model.PoissonRegressor,
    }
    X = features()
    y = targets(X)[kind]
    pdmp.models.from_sklearn(makers[kind]().fit(X, y), X, y)  # warnings are errors
    weighted = makers[kind]().fit(X, y, sample_weight=1.0 + 0.5 * (np.arange(N) % 2))
    with pytest.warns(UserWarning, match=r"are 0\.[1-9]\d* posterior .* with sample_weight, or to other data"):
        pdmp.models.from_sklearn(weighted, X, y)


@plain_only
def test_how_far_an_estimator_is_from_the_mode():
    """In standard deviations of the posterior: from a tenth on it is said, from one on it is refused."""
    from sklearn import linear_model

    X, y = features(1, 12), targets(features(1, 12))["count"]
    estimator = linear_model.PoissonRegressor(alpha=0.2, tol=1e-10).fit(X, y)
    model = pdmp.models.from_sklearn(estimator, X, y)
    mode, v = np.append(estimator.coef_, estimator.intercept_), np.array([1.0, -2.0])

    def distance(t):
        x = mode + t * v
        return math.sqrt(model.gradient(x) @ np.linalg.solve(model.hessian(x), model.gradient(x)))

    for away, said in ((0.095, None), (0.105, UserWarning), (0.95, UserWarning), (1.05, ValueError)):
        x = mode + optimize.brentq(lambda t, away=away: distance(t) - away, 0.0, 1.0, rtol=1e-4) * v
        estimator.coef_, estimator.intercept_ = x[:1], x[1]
        if said is None:
            pdmp.models.from_sklearn(estimator, X, y)  # warnings are errors
        elif said is UserWarning:
            with pytest.warns(UserWarning, match="are 0.[19].* posterior standard deviations from the mode"):
                pdmp.models.from_sklearn(estimator, X, y)
        else:
            with pytest.raises(ValueError, match=r"are 1\.05 posterior standard deviations from the mode"):
                pdmp.models.from_sklearn(estimator, X, y)


@plain_only
def test_a_ridge_of_other_data_is_refused_however_far_from_the_mode_it_is():
    """Also where U, a function of log σ² too, is not convex."""
    from sklearn import linear_model

    X = features(2)
    y, before = X @ [1.0, 2.0] + 0.1 * rng(0).standard_normal(len(X)), 1.0
    for off in np.geomspace(0.03, 30.0, 60):
        estimator = linear_model.Ridge(alpha=1e-3, fit_intercept=False).fit(X, y + X @ [off, off])
        with pytest.raises(ValueError, match="posterior standard deviations from the mode") as caught:
            pdmp.models.from_sklearn(estimator, X, y)
        away = float(str(caught.value).split(" are ")[1].split()[0])
        assert away > before
        before = away


@plain_only
@pytest.mark.parametrize("shape", [0.4, 1.0, 1.5])
def test_coefficients_have_no_variance_where_the_shape_is_at_most_1(shape):
    law = NormalInverseGamma([1.0, -2.0], [[2.0, 0.5], [0.5, 1.0]], shape=shape, scale=3.0)
    mean, covariance = law.posterior()
    variance = (
        6.0 * np.linalg.inv([[2.0, 0.5], [0.5, 1.0]]) if shape > 1.0 else np.array([[1.0, -1.0], [-1.0, 1.0]]) * np.inf
    )
    assert_allclose(covariance[:2, :2], variance, rtol=1e-12)
    assert_allclose([mean[2], covariance[2, 2]], [np.log(3.0) - special.digamma(shape), special.polygamma(1, shape)])


@plain_only
def test_what_has_no_bayesian_counterpart():
    from sklearn import linear_model

    X = features()
    data = targets(X)
    from_sklearn = pdmp.models.from_sklearn
    with pytest.raises(
        TypeError, match="`estimator` must be one of .*LogisticRegression, Ridge, PoissonRegressor; got L"
    ):
        from_sklearn(linear_model.Lasso(), X, data["real"])
    with pytest.raises(TypeError, match=r"must be fitted: call Ridge.fit\(X, y\) before"):
        from_sklearn(linear_model.Ridge(), X, data["real"])
    classes = np.arange(N) % 3
    with pytest.raises(ValueError, match="more than two classes"):
        from_sklearn(linear_model.LogisticRegression().fit(X, classes), X, classes)
    with pytest.raises(ValueError, match="more than one targets"):
        both = np.column_stack([data["real"]] * 2)
        from_sklearn(linear_model.Ridge().fit(X, both), X, both)
    with pytest.raises(ValueError, match="must have an L2 penalty or none, .*l1_ratio=1.0.*SpikeAndSlab"):
        lasso = linear_model.LogisticRegression(l1_ratio=1.0, solver="liblinear").fit(X, data["binary"])
        from_sklearn(lasso, X, data["binary"])
    with pytest.raises(ValueError, match="class_weight=None"):
        weighted = linear_model.LogisticRegression(class_weight="balanced").fit(X, data["binary"])
        from_sklearn(weighted, X, data["binary"])
    with pytest.raises(ValueError, match="positive=False"):
        from_sklearn(linear_model.Ridge(positive=True).fit(X, data["real"]), X, data["real"])
    ridge = linear_model.Ridge(alpha=1.0).fit(X, data["real"])
    with pytest.raises(ValueError, match="posterior standard deviations from the mode: it was not fitted to these"):
        from_sklearn(ridge, X, data["real"] + X[:, 0])
    with pytest.raises(ValueError, match="`X` must have the 3 columns that the estimator was fitted to, got 2"):
        from_sklearn(ridge, X[:, :2], data["real"])
    logistic = linear_model.LogisticRegression().fit(X, data["binary"])
    with pytest.raises(ValueError, match=r"`y` must hold the classes \[0.0, 1.0\] of the estimator"):
        from_sklearn(logistic, X, data["binary"] + 1.0)


# ---------------------------------------------------------------------------------------------------------------
# Bad input

X3, Y3 = [[1.0, 2.0], [0.5, -1.0], [0.3, 0.2]], [0, 1, 1]
SPIKES = SpikeAndSlabLinearRegression
NIG = NormalInverseGammaRegression


@plain_only
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ProbitRegression([[1.0, np.nan]], [1]), "`X` must be finite, and has 1 values"),
        (lambda: ProbitRegression([1.0, 2.0], [0, 1]), r"`X` must have shape \(N, d\).* got \(2,\)"),
        (lambda: ProbitRegression([["a"]], [0]), "`X` must be a matrix of numbers, got list"),
        (lambda: ProbitRegression(X3, [1, 1, 1]), "`y` must have both classes"),
        (lambda: ProbitRegression(X3, [0, 1, 2]), r"`y` must have labels in \{0, 1\}"),
        (lambda: ProbitRegression(X3, [0, 1]), r"`y` must have shape \(3,\), one label"),
        (lambda: PoissonRegression(X3, [0.5, 1, 2]), "`y` must hold counts 0, 1, 2, …, got 0.5"),
        (lambda: PoissonRegression(X3, [-1, 1, 2]), "`y` must hold counts 0, 1, 2, …, got -1"),
        (lambda: PoissonRegression(X3, ["a", 1, 2]), "`y` must hold numbers"),
        (lambda: PoissonRegression(X3, Y3, offset=[1.0]), r"`offset` must have shape \(3,\)"),
        (lambda: PoissonRegression(X3, Y3, prior_scale=0.0), "`prior_scale` must be above 0"),
        (lambda: PoissonRegression(X3, Y3, prior_scale=[1.0]), r"`prior_scale` must be a number or of shape \(2,\)"),
        (lambda: PoissonRegression(X3, Y3, dtype=int), "`dtype` must be float64 or float32"),
        (lambda: PoissonRegression(np.full((3, 1), 1e300), Y3, dtype=np.float32), "beyond the range of dtype=float32"),
        (lambda: NegativeBinomialRegression(X3, Y3, size=0.0), "`size` must be a positive number, got 0"),
        (lambda: StudentTRegression(X3, Y3, degrees=-1.0), "`degrees` must be a positive number"),
        (lambda: StudentTRegression(X3, Y3, noise_scale=np.inf), "`noise_scale` must be a positive number"),
        (lambda: StudentTRegression(X3, [0.0, np.nan, 1.0]), "`y` must be finite, and has 1 values"),
        (lambda: ProbitRegression(sparse.csr_array([[1.0, np.inf]]), [0]), "`X` must be finite, and has 1 values"),
        (lambda: ProbitRegression(sparse.csr_array([[1j, 1.0]]), [0]), "`X` must be real, got complex"),
        (lambda: ProbitRegression(sparse.csr_array((0, 3)), []), r"`X` must have shape .* got \(0, 3\)"),
        (
            lambda: build("Poisson").predict(np.zeros(3), np.zeros((2, 4))),
            r"`X` must have shape \(n, 3\), got \(2, 4\)",
        ),
        (
            lambda: build("Poisson").predict(np.zeros(4), np.zeros((2, 3))),
            r"`x` must have shape \(..., 3\), got \(4,\)",
        ),
        (lambda: build("Poisson").log_likelihood(np.zeros(3), np.zeros((2, 3))), "give both `X` and `y`, or neither"),
        (lambda: NIG(X3, Y3, shape=-1.0), "`shape` must be a finite number, at least 0, got -1"),
        (lambda: NIG(X3, Y3, prior_mean=[1.0]), r"`prior_mean` must be a finite number or of shape \(2,\)"),
        (lambda: NIG(X3, Y3, prior_covariance=-1.0), "`prior_covariance` must be positive"),
        (lambda: NIG(X3, Y3, prior_covariance=[[1.0, 2.0], [2.0, 1.0]]), "the matrix given is not positive definite"),
        (lambda: NIG(X3, Y3, prior_covariance=[[1.0, 2.0], [0.0, 9.0]]), "finite and symmetric"),
        (lambda: NIG(X3, Y3, prior_covariance=[[1.0, 1e-6], [0.0, 9.0]]), "finite and symmetric"),
        (lambda: NIG(X3, Y3, prior_covariance=[[1.0, np.inf], [np.inf, 9.0]]), "finite and symmetric"),
        (lambda: NIG([[1.0, 1.0]] * 3, Y3, prior_covariance=np.inf), "improper: columns of `X` are linearly dependent"),
        (
            lambda: NIG([[1.0], [2.0]], [1.0, 2.0], 0.0, np.inf, 0.0, 0.0),
            "improper: there are too few data, or they are",
        ),
        (lambda: NIG(X3, Y3).predict(np.zeros(2), X3), r"`x` must have shape \(\.\.\., 3\), got \(2,\)"),
        (lambda: NIG(X3, Y3).predict(np.zeros(3), np.ones((3, 1))), r"`X` must have shape \(n, 2\), got \(3, 1\)"),
        (
            lambda: NormalInverseGamma(np.zeros(2), np.eye(3), 1.0, 1.0),
            r"of shapes \(d,\) and \(d, d\), got \(2,\) and",
        ),
        (lambda: NormalInverseGamma(np.zeros(2), [[1, 0], [0, np.nan]], 1.0, 1.0), "`precision` must be finite"),
        (lambda: NormalInverseGamma(np.zeros(2), [[1, 2], [2, 1]], 1.0, 1.0), "`precision` must be positive definite"),
        (lambda: NormalInverseGamma(np.zeros(2), [[1, 0.5], [0, 1]], 1.0, 1.0), "`precision` must be symmetric"),
        (lambda: LogisticRegression(X3, [0, 1, 1], dtype=int), "`dtype` must be float64 or float32, got int64"),
        (lambda: LogisticRegression([["a"]], [0]), "`X` must be a matrix of numbers, got list"),
        (lambda: LogisticRegression([[1.0, np.inf]], [0]), "`X` must be finite, and has 1 value"),
        (lambda: LogisticRegression([[1e300], [0.0]], [0, 1], dtype=np.float32), "beyond the range of dtype=float32"),
        (lambda: LogisticRegression(X3, ["no", "yes", "no"]), r"`y` must have labels in \{0, 1\} or \{-1, \+1\}, got"),
        (lambda: LogisticRegression(np.ones(3), [0, 1, 1]), r"`X` must have shape \(N, d\) with N and d .* got \(3,\)"),
        (lambda: SPIKES(np.ones(3), Y3), r"`X` must have shape \(N, d\), N and d at least 1; got \(3,\)"),
        (lambda: SPIKES(sparse.csr_array(X3), Y3), "`X` must be dense for SpikeAndSlabLinear"),
        (lambda: HalfCauchyLogistic([[1.0]]), r"`x` must have shape \(N,\)"),
        (lambda: HalfCauchyLogistic([1.0], np.inf), "`prior_scale` must be a positive number, got inf"),
        (lambda: SPIKES(X3, Y3, inclusion=0.0), "`inclusion` must be above 0 and at most 1, got 0"),
        (lambda: SPIKES(X3, Y3, inclusion=[0.5] * 3), r"`inclusion` must be a number or of shape \(2,\)"),
        (lambda: SPIKES(X3, Y3, always=[0, 1]), "no coefficient is left that may be 0"),
        (lambda: SPIKES(X3, Y3, always=[2]), r"`always` must name coordinates 0 … 1"),
        (
            lambda: SPIKES(np.eye(17), np.ones(17)).enumerate(),
            "up to 16 coefficients .* and 17 may: use pdmp.Sticky",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@plain_only
def test_files_that_cannot_be_read_where_they_are(tmp_path):
    y = targets(features())["binary"]
    with pytest.raises(ValueError, match="must be of float32 or float64 in C order; got float64 in another order"):
        ProbitRegression(mapped(tmp_path, features(), np.float64, order="F"), y)
    with pytest.raises(ValueError, match="got int64 in C order"):
        ProbitRegression(mapped(tmp_path, features(), np.int64), y)
    with pytest.raises(ValueError, match="`dtype` must be that of a memory-mapped `X`, float32, got float64"):
        ProbitRegression(mapped(tmp_path, features()), y, dtype=np.float64)
    with pytest.raises(ValueError, match="not copied to add an intercept: give it a column of ones"):
        LogisticRegression(mapped(tmp_path, features()), y, intercept=True)
    wrong = features()
    wrong[5, 1] = np.inf
    with pytest.raises(ValueError, match="`X` must be finite"):
        LogisticRegression(mapped(tmp_path, wrong), y)


# ---------------------------------------------------------------------------------------------------------------
# Automatic differentiation, and compiled code


@entry
def evaluate(model, x, v, rows, out, squares, scratch):
    model.add_batch_squares(x, rows, rows.shape[0], scratch, out, squares)
    return model.add_batch_projection(x, v, rows, rows.shape[0], scratch, out)


@pytest.mark.parametrize("kind", in_ci(["mapped", "sparse"], "mapped"))
def test_kernels_in_compiled_code(kind, tmp_path):
    """Against numpy; in plain Python as well. Rows of eleven: one vector of eight, and three entries after it."""
    model, X = build("Poisson", layouts(tmp_path, 11)[kind], d=11), features(11)
    x, v = 0.2 * points(model, 2)
    rows = rng(3).integers(0, N, 140)
    out, squares, scratch = np.zeros((3, 11))
    first, second = evaluate(model.native, x, v, rows, out, squares, scratch)
    terms = ((np.exp(X @ x) - model.y)[:, None] * X)[rows]
    assert_allclose(out, 2.0 * terms.sum(axis=0), rtol=1e-12)
    assert_allclose(squares, (terms**2).sum(axis=0), rtol=1e-12)
    assert_allclose([first, second], [(terms @ v).sum(), ((terms @ v) ** 2).sum()], rtol=1e-12)


def many_rows(kind, folder=None, n=2_000):
    """A regression of labels or counts, in memory or in a file."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, 3)) + [0.0, 0.5, 0.0]
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ [0.5, -1.0, 0.2]))).astype(float)
    if kind == "logistic":
        return pdmp.models.LogisticRegression(X, y)
    if kind == "file":
        np.save(folder / "X.npy", X)
        return pdmp.models.LogisticRegression(np.load(folder / "X.npy", mmap_mode="r"), y, offset=0.1 * X[:, 0])
    if kind == "sparse counts":
        return pdmp.models.PoissonRegression(sparse.csr_array(X * (np.abs(X) > 0.5)), rng.poisson(1.0 + y))
    raise ValueError(kind)


@pytest.mark.exact
@pytest.mark.parametrize("kind", ["logistic", "file", "sparse counts"])
def test_the_mode_of_many_rows_takes_a_few_passes(kind, tmp_path, monkeypatch):
    model = many_rows(kind, tmp_path)
    exact = model.mode()
    monkeypatch.setattr(numerical, "MANY_ROWS", 2_000)
    monkeypatch.setattr(numerical, "SOME_ROWS", 250)
    passes, gradient, hessian = [], type(model).gradient, type(model).hessian
    monkeypatch.setattr(type(model), "gradient", lambda self, x: passes.append(self.n_data) or gradient(self, x))
    monkeypatch.setattr(type(model), "hessian", lambda self, x: passes.append(self.n_data) or hessian(self, x))
    found = model.mode()
    assert 3 <= passes.count(2_000) <= 7 and set(passes) == {250, 2_000}
    away = exact - found
    assert 0.0 < math.sqrt(away @ model.hessian(exact) @ away) < 5.0 * numerical.NEWTON_ERROR
    rows = np.array([3, 100, 1_999])
    part, x = model.some_rows(rows), np.array([0.3, -0.2, 0.1])
    np.testing.assert_allclose(
        part.gradient(x) - part.term_gradients(x, []).sum(axis=0),
        gradient(model, x) - model.term_gradients(x, np.setdiff1d(np.arange(2_000), rows)).sum(axis=0),
        rtol=1e-8,  # differences of large sums
    )
    assert part.n_data == 3 and model.n_data == 2_000
    assert_allclose(part.y, model.y[rows])


@pytest.mark.exact
def test_some_of_very_many_rows():
    """From all over the data; of very many one in a hundred, in runs of neighbours."""
    rows = numerical._spread_rows(10**6)
    assert len(rows) == numerical.SOME_ROWS and rows[0] == 0 and rows[-1] == 10**6 - 1
    rows = numerical._spread_rows(10**7 + 3)
    assert 0.99 < len(rows) / 10**5 <= 1.0 and rows[0] == 0 and rows[-1] == 10**7 + 2
    steps = np.diff(rows)
    assert np.all(steps > 0) and np.sum(steps == 1) == len(rows) * 63 // 64
    assert np.ptp(steps[steps > 1]) <= 1


@pytest.mark.exact
def test_newton_steps_end_after_the_one_that_is_small_enough():
    """Of U = x² / 2 with a Hessian 5 % too large, each step leaves 1 / 21 of the distance; two leave 2 NEWTON_ERROR."""
    model = types.SimpleNamespace(
        n_data=10**5,
        some_rows=lambda rows: types.SimpleNamespace(mode=lambda x: np.ones(1)),
        gradient_and_hessian=lambda x: (x, np.array([[1.05]])),
        gradient=lambda x: x,
    )
    assert numerical.mode_by_rows(model, np.zeros(1))[0] == pytest.approx(21.0**-3, rel=1e-9)


@pytest.mark.exact
def test_the_mode_of_many_rows_without_what_serves(monkeypatch):
    """Where some of the rows have no mode, or Newton steps lead nowhere, all rows are searched with as usual."""
    model = many_rows("logistic")
    exact = model.mode()
    monkeypatch.setattr(numerical, "MANY_ROWS", 2_000)
    monkeypatch.setattr(numerical, "SOME_ROWS", 250)
    for part in (None, types.SimpleNamespace(mode=lambda x: None), types.SimpleNamespace(mode=lambda x: x + 30.0)):
        monkeypatch.setattr(type(model), "some_rows", lambda self, rows, part=part: part)
        np.testing.assert_allclose(model.mode(), exact, rtol=1e-9)


def test_rows_of_other_labels_and_complex_numbers_are_refused():
    """By one rule, wherever rows stand beside rows; and new rows with the columns in another order."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(features(2), columns=["a", "b"])
    y = pandas.Series(targets(X.to_numpy())["count"])
    turned, x, p = y.iloc[::-1], np.array([0.2, -0.1]), pdmp.Parameters(b=2, s=1)
    model, normal = PoissonRegression(X, y, offset=0.1 * y), NormalInverseGammaRegression(X, y)
    others = [
        lambda: PoissonRegression(X, turned),
        lambda: PoissonRegression(X, y, offset=turned),
        lambda: PoissonRegression(X.to_numpy(), y, offset=turned),
        lambda: NormalInverseGammaRegression(X, turned),
        lambda: SpikeAndSlabLinearRegression(X, turned),
        lambda: pdmp.models.LinearGaussian(X, turned),
        lambda: model.predict(x, X, turned),
        lambda: model.log_likelihood(x, X, turned),
        lambda: pdmp.terms(lambda y, k, m: k * (y - m) ** 2, [y, turned], [p.s]),
        lambda: pdmp.families.binomial.rows(y, mu=p.s, trials=turned + 9.0),
        lambda: pdmp.regression("y ~ x", {"y": y, "x": turned}),
        lambda: pdmp.models.BayesianNN(X, turned),
        lambda: pdmp.models.MatrixFactorization(y, turned, y),
        lambda: pdmp.models.PPMF(y, y, turned),
        lambda: pdmp.data.prepare("small", X, turned, ["a", "b"]),
        lambda: pdmp.data.prepare_ratings("small", y, y, turned),
    ]
    for call in others:
        with pytest.raises(ValueError, match="has other row labels than .*, and would be taken by place"):
            call()
    assert PoissonRegression(X, turned.to_numpy()).n_data == N
    for call in (lambda: model.predict(x, X[["b", "a"]]), lambda: normal.predict(np.append(x, 0.0), X[["b", "a"]])):
        with pytest.raises(ValueError, match="`X` must have the columns a, b, in this order, got b, a"):
            call()
    unreal = [
        lambda: model.predict(x + 0j, X),
        lambda: model.predict(x, X + 1j),
        lambda: model.predict(x, X, y * 1j),
        lambda: model.pointwise_log_likelihood(x + 1j),
        lambda: normal.constrain(np.append(x, 1j)),
        lambda: PoissonRegression(X + 1j, y),
        lambda: LogisticRegression(X, (y > 0) + 0j),
        lambda: PoissonRegression(X, y, prior_scale=[1.0, 1j]),
        lambda: pdmp.models.Gaussian([0.0, 1j], [1.0, 1.0]),
        lambda: pdmp.families.poisson.log_density(y + 0j, 0.1),
    ]
    for call in unreal:
        with pytest.raises(ValueError, match="complex numbers"):
            call()
