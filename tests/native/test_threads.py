"""Passes over rows on threads: chunks, their order, and that no number depends on how many threads there are."""

# ruff: noqa: F811 - fixtures

import math
import threading
import time
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import pdmp
from pdmp.gradients import ControlVariate, alias
from pdmp.models.numerical import data_gradient, row_chunks, term_partial_lipschitz
from pdmp.models.regressions import blocks, design, glm
from pdmp.models.regressions.laplace import _definite, laplace
from pdmp.models.regressions.likelihoods import PoissonLaw, StudentTLaw
from pdmp.native import threads
from pdmp.processes import row_bounds as row_bounds_module
from pdmp.processes.regression_boomerang import RegressionBoomerang, shares
from pdmp.processes.regression_zigzag import RegressionZigZag
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import row_bounds
from tests.native.helpers_threads import on, regression, same_on_any  # noqa: F401 - a fixture

pytestmark = pytest.mark.exact
N = 500  # seven chunks of 64 rows, and one of 52
SHORT = ((math.inf, (), 1.25 * np.array([1.0, 1.3]), False),)  # of enclosures of third derivatives, which take seconds
RNG = np.random.default_rng(5)
FEATURES = RNG.standard_normal((N, 3)) * [1.0, 0.5, 2.0] + [0.0, 1.0, 0.0]
LABELS = (RNG.random(N) < 1.0 / (1.0 + np.exp(-FEATURES @ [0.5, -1.0, 0.2]))).astype(float)
AT = np.array([0.2, -0.5, 0.1])


def test_chunks_are_all_rows_once_and_in_order(monkeypatch):
    monkeypatch.setattr(threads, "CHUNK", 1_000)
    monkeypatch.setattr(threads, "threads", lambda: 3)
    for n, width in ((1, 3), (128, 7), (129, 7), (500, 7), (500, 2_000), (5_000, 2_000)):
        step = {3: 320, 7: 128, 2_000: 1_984}[width]  # of 1,000 numbers, or no smaller than a matrix
        expected = [(first, min(first + step, n)) for first in range(0, n, step)]
        assert threads.chunks(n, width) == expected
        assert [i for first, stop in expected for i in range(first, stop)] == list(range(n))
    assert threads.chunks(10**6, None) == [(0, 10**6)] and threads.chunks(0, 3) == [(0, 0)]


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_results_are_taken_in_order_and_not_far_ahead(monkeypatch, workers):
    monkeypatch.setattr(threads, "threads", lambda: workers)
    begun, names = [], set()

    def slow_at_first(k):
        begun.append(k)
        names.add(threading.current_thread())
        time.sleep(0.02 if k % 4 == 0 else 0.0)
        return k

    results = threads.each(slow_at_first, [(k,) for k in range(40)])
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(begun) <= 3 + 2 * workers + 1
    assert list(results) == list(range(3, 40))
    assert len(names) <= workers and (threading.main_thread() in names) == (workers == 1)


def test_an_error_in_a_chunk_is_raised(monkeypatch):
    monkeypatch.setattr(threads, "threads", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        list(threads.each(lambda k: 1 // (k - 5), [(k,) for k in range(20)]))


def test_how_many_threads(monkeypatch):
    assert 1 <= threads.threads() <= threads.cpu_count()
    monkeypatch.setattr(threads, "config", types.SimpleNamespace(NUMBA_NUM_THREADS=1))
    assert threads.threads() == 1
    names = set()
    monkeypatch.setattr(threads, "threads", lambda: 8)
    for few in (threads.FEWEST - 1, 1):
        list(threads.each(lambda k: names.add(threading.current_thread()), [(k,) for k in range(few)]))
    assert names == {threading.main_thread()}


def test_tuples_are_added_in_order():
    parts = [(1e16, np.array([1.0])), (1.0, np.array([2.0])), (-1e16, np.array([3.0]))]
    total, array = threads.added(iter(parts))
    assert total == (1e16 + 1.0) - 1e16 and array.tolist() == [6.0]


def test_products_of_several_blocks_of_rows():
    weights = np.random.default_rng(2).standard_normal(N)
    found = design.products(FEATURES.astype(np.float32), weights)
    X = FEATURES.astype(np.float32).astype(float)
    assert_allclose(found, (X * weights[:, None]).T @ X, rtol=1e-10, atol=1e-10)
    assert_allclose(design.products(X), X.T @ X, rtol=1e-12)
    assert_array_equal(found, found.T)


def make(kind, folder):
    counts = RNG.poisson(1.0 + LABELS)
    if kind == "logistic":
        return pdmp.models.LogisticRegression(FEATURES, LABELS)
    if kind == "float32":
        return pdmp.models.LogisticRegression(FEATURES, LABELS, dtype=np.float32)
    if kind == "file":
        np.save(folder / "X.npy", FEATURES)
        return pdmp.models.LogisticRegression(np.load(folder / "X.npy", mmap_mode="r"), 2.0 * LABELS - 1.0)
    if kind == "offset":
        return pdmp.models.PoissonRegression(FEATURES, counts, offset=0.1 * FEATURES[:, 0])
    if kind == "negative binomial":  # whose second derivatives depend on the responses
        return pdmp.models.NegativeBinomialRegression(FEATURES, counts)
    return pdmp.models.PoissonRegression(sparse.csr_array(FEATURES * (FEATURES > 0.0)), counts)


@pytest.mark.parametrize("kind", ["logistic", "float32", "file", "offset", "negative binomial", "sparse"])
def test_gradients_and_hessians(kind, tmp_path, on):
    on(1)
    model = make(kind, tmp_path)
    assert len(row_chunks(model)) == 8

    def compute():
        both = model.gradient_and_hessian(AT)
        return model.potential(AT), model.gradient(AT), data_gradient(model, AT), model.hessian(AT), *both

    potential, gradient, data, hessian, again, curved = same_on_any(on, compute)
    terms = [model.native.term_potential(AT, i) for i in range(N)]
    assert_allclose(potential, model.native.prior_potential(AT) + sum(terms), rtol=1e-9)
    assert_allclose(data, model.term_gradients(AT, np.arange(N)).sum(axis=0), rtol=1e-9)
    assert_allclose(again, gradient, rtol=1e-12)
    assert_allclose(curved, hessian, rtol=1e-12)
    assert_allclose(hessian, pdmp.Model.hessian(model, AT), rtol=1e-5)  # by differences
    # In the order of the chunks, and no other.
    on(8)
    total = np.zeros(3)
    for first, stop in row_chunks(model):
        part = np.zeros(3)
        model.native.add_block_gradient(AT, first, stop, part)
        total += part
    if pdmp.native.decorators.numba.config.DISABLE_JIT:
        assert_array_equal(data, total)


@pytest.mark.parametrize("kind", ["logistic", "float32", "file"])
def test_what_a_model_is_made_of(kind, tmp_path, on):
    def compute():
        model = make(kind, tmp_path)
        data = model.design.data if kind != "file" else model.target
        return model.gram, model.y, data, model.hessian_bounds()[1]

    found = same_on_any(on, compute)
    assert_allclose(found[1], LABELS)
    bound = np.eye(3) + 0.25 * FEATURES.T @ FEATURES
    assert_allclose(found[3], bound, rtol=1e-6 if kind == "float32" else 1e-12)


def test_bounds_that_differ_from_row_to_row(on):
    """Each chunk has those of its own responses."""
    counts = RNG.poisson(1.0 + np.arange(N) / 50.0)

    def compute():
        model = pdmp.models.NegativeBinomialRegression(FEATURES, counts, 2.0, prior_scale=1.0)
        return model.gram, model.hessian_bounds()[1]

    expected = (0.25 * (counts + 2.0) * FEATURES.T) @ FEATURES
    products, bound = same_on_any(on, compute)
    assert_allclose(products, expected, rtol=1e-10)
    assert_allclose(bound, np.eye(3) + expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["logistic", "file"])
def test_control_variates(kind, tmp_path, on):
    on(0)
    model = make(kind, tmp_path)

    def compute():
        provider = ControlVariate(model, 1, anchor=AT, draw="importance", scale=[0.5, 1.0, 2.0])
        alias = provider.drawing.alias
        return provider.anchor_gradient, provider.contributions(), provider.largest(), alias.probabilities()

    _, contributions, largest, shares = same_on_any(on, compute)
    bounds = term_partial_lipschitz(model, 0, N, 1.0 / np.array([2.0, 1.0, 0.5])) * [0.5, 1.0, 2.0]
    assert_allclose(contributions, bounds.sum(axis=1), rtol=1e-12)
    assert_allclose(largest, bounds.max(axis=0), rtol=1e-12)
    assert_allclose(shares, contributions / contributions.sum(), rtol=1e-9)


@pytest.mark.parametrize("order", ["random", "sorted", "two sizes", "one is all", "zeros"])
def test_an_alias_table_in_parts(order, on):
    weights = np.random.default_rng(3).exponential(size=1_000)
    if order == "sorted":
        weights = np.sort(weights)
    elif order == "two sizes":  # parts of small columns alone, and of large ones
        weights = np.where(np.arange(1_000) < 700, 0.5, 3.0)
    elif order == "one is all":
        weights = np.where(np.arange(1_000) == 999, 1.0, 1e-9)
    elif order == "zeros":
        weights[::3], weights[128:256] = 0.0, 0.0
    tables = {}
    for k in (1, 2, 8):
        on(k)
        tables[k] = alias.AliasTable(weights)
        assert_array_equal(tables[k].table, tables[1].table)
    found = tables[8]
    assert_allclose(found.probabilities(), weights / weights.sum(), rtol=1e-8, atol=1e-15)
    threshold, other = found.table[:, 0], found.table[:, 1].astype(int)
    assert np.all((threshold >= 0.0) & (threshold <= 1.0 + 1e-12))
    possible = np.concatenate([np.flatnonzero(threshold > 0.0), other[threshold < 1.0]])
    assert_allclose(found.table[possible, 2], weights.sum() / weights[possible], rtol=1e-12)
    assert_allclose(found.table[:, 3], found.table[other, 2], rtol=1e-12)
    on(0)
    whole = alias.AliasTable(weights)
    assert_array_equal(whole.table[:, 2], found.table[:, 2])


@pytest.mark.parametrize("law", [PoissonLaw, pytest.param(StudentTLaw, marks=[pytest.mark.slow, pytest.mark.release])])
def test_regressions(law, on, monkeypatch):
    on(0)
    monkeypatch.setattr(row_bounds_module, "PLANS", SHORT)
    model = regression(law, N)
    start = laplace(model)

    def compute():
        found = laplace(model)
        zigzag = RegressionZigZag(model, start.mean, metric=pdmp.Metric(scales=start.sd))
        turning = RegressionBoomerang(model, start.mean, 1.0)
        exact = zigzag.pull, zigzag.inner, zigzag.growth.factors, zigzag.tables.totals, zigzag.tables.table
        return found.mean, *exact, turning.pull, turning.weights, turning.growth.factors, turning.reference.root

    same_on_any(on, compute, rtol=1e-7)
    on(8)
    # The Hessian's rows of the dispersions are exact there, and differences of gradients where rows are in one.
    assert_allclose(laplace(model).covariance, start.covariance, rtol=1e-4, atol=1e-9)


def test_a_wide_hessian_is_computed_where_it_is_asked_for(on, monkeypatch):
    """And the same approximation found, bit by bit; sums at one point are not taken for those at another."""
    on(8)
    model = regression(StudentTLaw, N)
    rows, narrow, x = blocks.Chunks(model), laplace(model), model.initial
    square, differences = rows.curvature(x)[0], list(rows.differences(x, 1e-4))
    asked, products = [], blocks.products
    monkeypatch.setattr(blocks, "WIDE", 3)
    monkeypatch.setattr(blocks, "products", lambda *given: asked.append(given) or products(*given))
    rows, chunks = blocks.Chunks(model), len(row_chunks(model))
    assert np.isfinite(rows.potential(x)) and np.all(np.isfinite(rows.gradient(x))) and not asked
    assert_array_equal(rows.curvature(x)[0], square)
    rows.gradient(x)
    assert len(asked) == chunks > 1
    rows.potential(x + 0.1)
    assert_array_equal(list(rows.differences(x, 1e-4)), differences)
    assert_array_equal(rows.curvature(x)[0], square)
    assert len(asked) == 2 * chunks
    wide = laplace(model)
    assert_array_equal(wide.mean, narrow.mean)
    assert_array_equal(wide.covariance, narrow.covariance)


def test_shares_of_columns_are_the_largest_of_all_chunks(on, monkeypatch):
    on(8)
    monkeypatch.setattr(row_bounds_module, "PLANS", SHORT)  # for parts too
    model = regression(StudentTLaw, N)
    found, levels = laplace(model), np.array([1.0, 0.25])
    support = np.arange(model.dim) == 1
    ranges = row_chunks(model)
    weights, *shells = row_bounds(model, found.mean, found.sd)
    growth = Shells(*shells)
    several = shares(model, found.mean, found.sd, weights, growth, support, levels)
    alone = [
        shares(blocks.rows_of(model, a, b), found.mean, found.sd, weights[a:b], growth, support, levels)
        for a, b in ranges
    ]
    for whole, *parts in zip(several, *alone, strict=True):
        assert_array_equal(whole, np.max(parts, axis=0))
        assert len(parts) == len(ranges) > 1 and not all(np.array_equal(part, whole) for part in parts)


def test_matrices_that_are_not_definite_have_the_absolute_values_of_their_eigenvalues():
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    made = lambda values: (vectors * values) @ vectors.T  # noqa: E731
    assert_allclose(_definite(made([3.0, -2.0, 0.5, 0.0])), made([3.0, 2.0, 0.5, 3e-10]), rtol=0.0, atol=1e-14)
    definite = made([3.0, 2.0, 0.5, 1e-6])
    assert _definite(definite) is definite


def test_large_data_are_looked_at_in_all_chunks(on):
    on(8)
    for i in (0, 63, 64, N - 1):
        X = FEATURES.copy()
        X[i, 1] = math.nan
        for check in (lambda X=X: design.read_design(X), lambda X=X: pdmp.models.LogisticRegression(X, LABELS)):
            with pytest.raises(ValueError, match="`X` must be finite, and has 1 values"):
                check()
        with pytest.raises(ValueError, match="labels in"):
            glm.read_labels(np.where(np.arange(N) == i, 0.5, LABELS), N)
        huge = FEATURES.copy()
        huge[i, 2] = 1e300
        with pytest.raises(ValueError, match="beyond the range"):
            pdmp.models.LogisticRegression(huge, LABELS, dtype=np.float32)
    one = np.where(np.arange(N) == N - 1, 1.0, 0.0)  # the only one of its class
    assert_array_equal(glm.read_labels(one, N), one)
    assert_array_equal(glm.read_labels(2 * one.astype(int) - 1, N), one)


def test_second_derivatives_of_all_terms(tmp_path, on):
    on(0)
    model = make("offset", tmp_path)
    (found,) = same_on_any(on, lambda: (model.second_derivatives(AT),))
    assert_allclose(found, np.exp(FEATURES @ AT + 0.1 * FEATURES[:, 0]), rtol=1e-12)
