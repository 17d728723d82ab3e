"""Factorisations, independent components, a neural network: derivatives, invariances, predictions, bad input."""

import math
import re

import numba
import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.models import BPMF, ICA, PPMF, BayesianNN, MatrixFactorization
from pdmp.models.factorisations import bayesian_nn, factorisation
from pdmp.models.numerical import quick_mode
from pdmp.native import prefetch
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, pytest.mark.compiled]

N, USERS, ITEMS, RANK = 40, 5, 6, 3


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """So that few data are several chunks; machine code keeps the constant that it was made with."""
    if numba.config.DISABLE_JIT:
        monkeypatch.setattr(bayesian_nn, "CHUNK", 32)


def rng(seed=0):
    return np.random.default_rng(seed)


def pairs():
    generator = rng(3)
    users, items = generator.integers(0, USERS, N), generator.integers(0, ITEMS - 1, N)
    return users, items, {"n_users": USERS, "n_items": ITEMS}  # nobody rated the last item


def mf(**options):
    users, items, sizes = pairs()
    scales = {"noise_scale": 0.7, "user_scale": 1.3, "item_scale": 0.8}
    return MatrixFactorization(users, items, rng(4).normal(3.0, 1.0, N), RANK, **sizes, **scales, **options)


def bpmf(**options):
    users, items, sizes = pairs()
    options = {"noise_precision": 2.0, "shape": 1.5, "rate": 2.5, **options}
    return BPMF(users, items, rng(4).normal(3.0, 1.0, N), RANK, **sizes, **options)


def ppmf():
    users, items, sizes = pairs()
    shapes = {"user_shape": 0.4, "item_shape": 0.7, "activity_shape": 1.2, "popularity_shape": 0.9}
    return PPMF(users, items, rng(4).poisson(2.0, N), RANK, **sizes, **shapes, activity_mean=2.0, popularity_mean=0.5)


def ica():
    return ICA(rng(5).logistic(size=(N + 40, 3)) @ rng(6).normal(size=(3, 3)), prior_scale=1.5)


def network(activation, hidden, n=N, **options):
    generator = rng(7)
    return BayesianNN(generator.normal(size=(n, 4)), np.arange(n) % 3, hidden, activation, prior_scale=1.4, **options)


FACTORISATIONS = {"mf": mf, "bpmf": bpmf, "bpmf as given": lambda: bpmf(centre=False), "ppmf": ppmf}
NETWORKS = {
    "softmax": lambda: network("softmax", 4),
    "sigmoid": lambda: network("sigmoid", (3, 2)),
    "relu": lambda: network("relu", [4, 3]),
    "tanh": lambda: network("tanh", (2, 2, 3)),
    "several chunks": lambda: network("tanh", 2, n=150),
}
MODELS = {**FACTORISATIONS, "ica": ica, **NETWORKS}


def point(model, seed=1):
    return 0.6 * rng(seed).standard_normal(model.dim)


def close(found, expected, tolerance):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max()))


@plain_only
@pytest.mark.parametrize("name", ["mf", "bpmf", "ppmf"])
@pytest.mark.parametrize("size", [1, 7])
def test_ratings_are_looked_at_in_pieces(name, size, monkeypatch):
    """None is left out or twice, and the last piece may be smaller."""
    model = FACTORISATIONS[name]()
    x = point(model)
    assert model.n_data > 3 * size and model.n_data % 7
    expected = model.predict(x), model.curvatures(x), model.log_likelihood(x)
    monkeypatch.setattr(factorisation, "PIECE", size)
    for found, whole in zip((model.predict(x), model.curvatures(x), model.log_likelihood(x)), expected, strict=True):
        np.testing.assert_allclose(found, whole, rtol=1e-12)


@plain_only
@pytest.mark.parametrize("name", MODELS)
def test_what_is_asked_of_the_memory_for_a_datum_is_its_row(name, monkeypatch):
    asked = []
    monkeypatch.setattr(prefetch, "_fetch", lambda *of: asked.append(of))
    model = MODELS[name]()
    model.native.fetch(7)
    [(array, row)] = asked
    assert array is model.data and row == 7 and len(array) == model.n_data


# ---------------------------------------------------------------------------------------------------------------
# Derivatives


@plain_only
@pytest.mark.parametrize("name", ["mf", "ica", "softmax"])
def test_the_slab_is_the_density_of_each_coordinate_at_0(name):
    model, density = MODELS[name](), MODELS[name]().slab_density()
    t = np.linspace(-12.0, 12.0, 1_201)
    for j in (0, model.dim // 2, model.dim - 1):
        potential = np.array([model.prior_potential(s * np.eye(model.dim)[j]) for s in t])
        assert density[j] == pytest.approx(1.0 / (0.02 * np.exp(potential[600] - potential).sum()), rel=1e-9)


@plain_only
@pytest.mark.parametrize("name", MODELS)
def test_sums_over_batches_are_those_of_their_terms(name):
    model, x, generator = MODELS[name](), point(MODELS[name]()), rng(2)
    each = model.term_gradients(x, np.arange(model.n_data))
    rows, v, scratch = generator.integers(0, model.n_data, 70), generator.normal(size=model.dim), np.zeros(model.dim)
    n = 67  # more than a block of 64, and not all that is in `rows`
    batch = each[rows[:n]]
    out = np.ones(model.dim)
    model.add_batch_gradient(x, rows, n, out)
    close(out, 1.0 + batch.sum(axis=0), 1e-11)
    out = np.ones(model.dim)
    model.add_block_gradient(x, 3, model.n_data - 2, out)
    close(out, 1.0 + each[3 : model.n_data - 2].sum(axis=0), 1e-11)
    out, squares = np.ones(model.dim), np.ones(model.dim)
    model.add_batch_squares(x, rows, n, scratch, out, squares)
    close(out, 1.0 + batch.sum(axis=0), 1e-11)
    close(squares, 1.0 + (batch**2).sum(axis=0), 1e-11)
    out, projections = np.ones(model.dim), batch @ v
    first, second = model.add_batch_projection(x, v, rows, n, scratch, out)
    close(out, 1.0 + batch.sum(axis=0), 1e-11)
    close([first, second], [projections.sum(), projections @ projections], 1e-11)
    y, weights = point(model, 8), generator.random(n)
    model.weighted_difference(x, y, rows, weights, n, scratch, out)
    close(out, weights @ (batch - model.term_gradients(y, rows[:n])), 1e-11)


@plain_only
@pytest.mark.parametrize("name", [*FACTORISATIONS, "ica"])
def test_second_derivatives(name):
    model, x = MODELS[name](), point(MODELS[name]())
    hessian = pdmp.Model.hessian(model, x)
    close(model.hessian(x), hessian, 1e-6)
    close(model.curvatures(x), np.diag(hessian), 1e-6)
    assert model.curvature(x) == pytest.approx(np.diag(hessian).mean(), rel=1e-6)


def log_density(model, x, xp=np):
    """As the papers write it, from libraries of densities where there are any; up to a constant."""
    parts, start = {}, 0
    for name, shape in model.variables.items():
        parts[name], start = x[start : start + math.prod(shape)].reshape(shape), start + math.prod(shape)
    if isinstance(model, ICA):
        w = parts["W"]
        y = model.data @ w.T
        data = model.n_data * xp.linalg.slogdet(w)[1] - 2.0 * xp.sum(xp.log(xp.cosh(0.5 * y)))
        return data - 0.5 * xp.sum(x**2) / 1.5**2
    if isinstance(model, BayesianNN):
        h, layers = model.data, len(model.sizes) - 1
        for k in range(1, layers + 1):
            h = h @ parts[f"W{k}"] + parts[f"b{k}"]
            if k < layers and model.activation == "softmax":
                h = xp.exp(h) / xp.sum(xp.exp(h), axis=1, keepdims=True)
            elif k < layers:
                h = {"tanh": xp.tanh(h), "relu": xp.maximum(h, 0.0), "sigmoid": 1.0 / (1.0 + xp.exp(-h))}[
                    model.activation
                ]
        logs = h - xp.log(xp.sum(xp.exp(h), axis=1, keepdims=True))
        return xp.sum(logs[np.arange(model.n_data), model.labels]) - 0.5 * xp.sum(x**2) / 1.4**2
    i, j, r = model.data["user"], model.data["item"], model.data["rating"].astype(float)
    if isinstance(model, MatrixFactorization):
        w, h = parts["W"], parts["H"]
        data = -0.5 * xp.sum((r - xp.sum(w[i] * h[j], axis=1)) ** 2) / 0.7**2
        return data - 0.5 * xp.sum(w**2) / 1.3**2 - 0.5 * xp.sum(h**2) / 0.8**2
    if isinstance(model, BPMF):
        total = -0.5 * 2.0 * xp.sum((r - xp.sum(parts["U"][i] * parts["V"][j], axis=1)) ** 2)
        for name in "UV":
            log = parts[f"precision_{name}"]
            precision, mean = xp.exp(log), parts[f"mean_{name}"]
            for z in (parts[name] - mean, mean):
                total += xp.sum(0.5 * log - 0.5 * precision * z**2)
            total += xp.sum(1.5 * log - 2.5 * precision)  # Gamma(1.5, rate 2.5), and the Jacobian
        return total
    t, b, e, n = (xp.exp(parts[name]) for name in ("theta", "beta", "epsilon", "nu"))
    rate = xp.sum(t[i] * b[j], axis=1)
    total = xp.sum(r * xp.log(rate) - rate)
    for factors, own, a, shape, mean in ((t, e, 0.4, 1.2, 2.0), (b, n, 0.7, 0.9, 0.5)):
        # Gamma(a, rate own) of each factor and Gamma(shape, rate shape / mean) of its rate, with their Jacobians
        total += xp.sum(a * xp.log(own)[:, None] + a * xp.log(factors) - own[:, None] * factors)
        total += xp.sum(shape * xp.log(own) - shape / mean * own)
    return total


@plain_only
@pytest.mark.parametrize("name", ["mf", "bpmf", "ppmf", "ica", *NETWORKS])
def test_the_potentials_are_those_of_the_papers(name):
    model = MODELS[name]()
    x, y = point(model), point(model, 2)
    expected = log_density(model, y) - log_density(model, x)
    assert model.potential(x) - model.potential(y) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["sigmoid"])
def test_a_compiled_gradient_is_that_of_the_paper(name):
    """Of one model in machine code, the one with the most of it; the benchmark holds the others against numpy."""
    model, x = MODELS[name](), point(MODELS[name]())
    gradient = model.gradient(x)
    for seed in range(3):
        v = rng(seed).standard_normal(model.dim)
        slope = (log_density(model, x + 1e-6 * v) - log_density(model, x - 1e-6 * v)) / 2e-6
        assert v @ gradient == pytest.approx(-slope, rel=1e-6)


@plain_only
def test_the_log_densities_are_those_of_scipy():
    """With their constants, from distributions that somebody else wrote."""
    model, x = ppmf(), point(ppmf())
    y = point(model, 2)

    def prior(x):
        parts, total = model.constrain(x), x.sum()  # the Jacobian
        for factors, own, a, shape, mean in (("theta", "epsilon", 0.4, 1.2, 2.0), ("beta", "nu", 0.7, 0.9, 0.5)):
            total += stats.gamma.logpdf(parts[factors], a, scale=1.0 / parts[own][:, None]).sum()
            total += stats.gamma.logpdf(parts[own], shape, scale=mean / shape).sum()
        return total

    assert model.prior_potential(x) - model.prior_potential(y) == pytest.approx(prior(y) - prior(x), rel=1e-10)
    counts, rates = model.data["rating"].astype(float), model.predict(x)
    close(model.log_likelihood(x), stats.poisson.logpmf(counts, rates), 1e-12)
    close(model.log_likelihood(np.stack([y, x]))[1], stats.poisson.logpmf(counts, rates), 1e-12)
    close(model.log_likelihood(x, lowest=1.0, highest=5.0), stats.poisson.logpmf(counts, np.clip(rates, 1, 5)), 1e-12)
    gaussian, z = bpmf(), point(bpmf())
    parts = gaussian.constrain(z)
    total = sum(z[-2 * RANK :])
    for name in "UV":
        sd = parts[f"precision_{name}"] ** -0.5
        total += stats.norm.logpdf(parts[name], parts[f"mean_{name}"], sd).sum()
        total += stats.norm.logpdf(parts[f"mean_{name}"], 0.0, sd).sum()
        total += stats.gamma.logpdf(parts[f"precision_{name}"], 1.5, scale=1.0 / 2.5).sum()
    at_zero = gaussian.prior_potential(np.zeros(gaussian.dim))
    zero = (stats.norm.logpdf(0.0) * (USERS + ITEMS + 2) + 2.0 * stats.gamma.logpdf(1.0, 1.5, scale=0.4)) * RANK
    assert gaussian.prior_potential(z) - at_zero == pytest.approx(zero - total, rel=1e-10)
    users, items, ratings = np.array([0, 4]), np.array([5, 1]), np.array([4.0, 2.5])
    means = gaussian.predict(z, users, items)
    product = np.sum(parts["U"][users] * parts["V"][items], axis=1)
    close(means, product + gaussian.offset, 1e-12)
    expected = stats.norm.logpdf(ratings, means, 2.0**-0.5)
    close(gaussian.log_likelihood(z, users, items, ratings), expected, 1e-12)
    close(gaussian.log_likelihood(np.stack([2.0 * z, z]), users, items, ratings)[1], expected, 1e-12)
    assert gaussian.offset == pytest.approx(rng(4).normal(3.0, 1.0, N).mean())
    close(gaussian.observed_data()["ratings"], rng(4).normal(3.0, 1.0, N), 1e-6)
    own = stats.norm.logpdf(rng(4).normal(3.0, 1.0, N), gaussian.predict(z), 2.0**-0.5)
    close(gaussian.pointwise_log_likelihood(np.stack([z, 2.0 * z]))[0], own, 1e-5)  # ratings are kept in 32 bits


# ---------------------------------------------------------------------------------------------------------------
# Invariances


@plain_only
@pytest.mark.parametrize("shift", [-2_000.0, 2_000.0])
def test_a_number_added_to_all_scores_changes_no_chance(shift):
    """Wherever the scores are, though the exponential of each of them is 0, or too large for a number."""
    model = network("tanh", 2)
    x = point(model)
    y = x.copy()
    y[-3:] += shift  # the offsets of the three classes
    terms = [[model.term_potential(z, i) for i in range(N)] for z in (x, y)]
    close(*terms, 1e-10)  # of scores about 2,000 the last digits are 2e-13


@plain_only
@pytest.mark.parametrize("name", ["mf", "bpmf"])
def test_rotated_factors_predict_the_same(name):
    model, x = MODELS[name](), point(MODELS[name]())
    q = np.linalg.qr(rng(1).normal(size=(RANK, RANK)))[0]
    y = x.copy()
    for table in model.tables(y):
        table[:] = table @ q
    close(model.predict(y), model.predict(x), 1e-12)
    terms = [[model.term_potential(z, i) for i in range(N)] for z in (x, y)]
    close(*terms, 1e-12)
    if name == "mf":
        assert model.potential(y) == pytest.approx(model.potential(x), rel=1e-13)
        gradient, rotated = model.gradient(x), model.gradient(y)
        for a, b in zip(model.tables(gradient), model.tables(rotated), strict=True):
            close(b, a @ q, 1e-11)


@plain_only
def test_exchanged_columns_leave_the_poisson_factorisation_alone():
    model, x = ppmf(), point(ppmf())
    y = x.copy()
    for table in model.tables(y):
        table[:] = table[:, [2, 0, 1]]
    assert model.potential(y) == pytest.approx(model.potential(x), rel=1e-13)


@plain_only
def test_rows_of_the_unmixing_matrix_have_neither_order_nor_sign():
    model, x = ica(), point(ica())
    w = x.reshape(3, 3)
    other = (np.array([-1.0, 1.0, -1.0])[:, None] * w[[2, 0, 1]]).ravel()
    assert model.potential(other) == pytest.approx(model.potential(x), rel=1e-13)


@plain_only
@pytest.mark.parametrize("name", NETWORKS)
def test_hidden_units_have_no_order(name):
    model, x = MODELS[name](), point(MODELS[name]())
    parts, order = model.constrain(x), np.roll(np.arange(model.sizes[1]), 1)
    parts["W1"], parts["b1"], parts["W2"] = parts["W1"][:, order], parts["b1"][order], parts["W2"][order]
    y = np.concatenate([part.ravel() for part in parts.values()])
    assert not np.array_equal(x, y)
    assert model.potential(y) == pytest.approx(model.potential(x), rel=1e-12)


# ---------------------------------------------------------------------------------------------------------------
# Details


@plain_only
def test_the_gradient_of_a_singular_matrix_is_zero():
    model = ica()
    w = np.ones(9)
    assert model.potential(w) == math.inf
    np.testing.assert_array_equal(model.term_gradients(w, [0, 1]), 0.0)
    out, squares = np.zeros(9), np.zeros(9)
    assert model.add_batch_projection(w, w, np.arange(5), 5, out, out) == (0.0, 0.0)
    model.add_batch_squares(w, np.arange(5), 5, out, out, squares)
    np.testing.assert_array_equal(out, 0.0)
    small = ICA(np.eye(3))
    close(small.gradient(1e3 * np.eye(3).ravel()[[3, 4, 5, 0, 1, 2, 6, 7, 8]])[[1, 3, 8]], 1e3 + 1.0 - 3e-3, 1e-12)


@plain_only
def test_softmax_of_numbers_far_apart():
    """Whichever of them is the largest, no exponential overflows."""
    z = np.array([[900.0, 1.0, -900.0], [1.0, 900.0, 899.0], [-900.0, 1.0, 900.0]])
    bayesian_nn._softmax(z)
    e = 1.0 / (1.0 + math.exp(-1.0))
    np.testing.assert_allclose(z, [[1.0, 0.0, 0.0], [0.0, e, 1.0 - e], [0.0, 0.0, 1.0]], atol=1e-15)


@plain_only
def test_ica_begins_from_directions_without_data_as_from_a_thousandth_of_the_widest():
    """Observations on a line: of the symmetric matrix W the least variance is taken for 10⁻⁶ of the largest."""
    line, scale = np.array([3.0, 4.0]) / 5.0, math.pi / math.sqrt(3.0)
    values = np.linalg.eigvalsh(ICA(np.outer([-20.0, 20.0, -20.0, 20.0], line)).initial.reshape(2, 2))
    np.testing.assert_allclose(values, [scale / 20.0, scale / 20e-3], rtol=1e-6)


@plain_only
def test_the_inverse_has_the_largest_pivots():
    """1e-14 is nothing beside the other entries, and is one to divide by only where nothing else is left."""
    model = ica()
    w = np.array([[0.0, 1.0, 0.5], [1.0, 0.3, -0.2], [1e-14, 0.7, 1.1]])
    near = np.where(np.arange(9) == 6, 0.0, w.ravel())
    close(model.gradient(w.ravel()), model.gradient(near), 1e-10)
    assert model.potential(w.ravel()) == pytest.approx(model.potential(near), rel=1e-12)


@plain_only
def test_ica_scores_and_starts():
    model, x = ica(), point(ica())
    w = x.reshape(3, 3)
    close(model.log_likelihood(x).sum(), -(model.potential(x) - 0.5 * x @ x / 1.5**2), 1e-12)
    expected = stats.logistic.logpdf(model.data @ w.T).sum(axis=1) + math.log(abs(np.linalg.det(w)))
    close(model.log_likelihood(x), expected, 1e-12)
    close(model.log_likelihood(np.stack([2.0 * x, x]))[1], expected, 1e-12)
    close(model.predict(np.stack([2.0 * x, x])), [2.0 * model.data @ w.T, model.data @ w.T], 1e-12)
    many = ICA(rng(5).logistic(size=(500, 2)) @ rng(6).normal(size=(2, 2)))
    for start in (many.initial, many.fast_ica()):
        close(np.cov(many.predict(start).T, ddof=0), math.pi**2 / 3.0 * np.eye(2), 0.02)


@plain_only
def test_the_mode_of_much_data_is_searched_for_with_batches():
    users = np.zeros(400_000, int)
    big = MatrixFactorization(users, users, users + 1.0, 3)
    assert big.searches_by_batches and quick_mode(big) is None
    small = MatrixFactorization([0, 0, 1], [0, 1, 1], [1.0, 2.0, 3.0], 1)
    assert np.abs(small.gradient(small.mode())).max() < 1e-6
    assert network("tanh", 400, n=6_000).searches_by_batches


@plain_only
def test_networks_predict_probabilities():
    for make in NETWORKS.values():
        model, x = make(), point(make())
        p = model.predict(np.stack([x, 2.0 * x]))
        assert p.shape == (2, model.n_data, 3)
        close(p.sum(axis=-1), 1.0, 1e-12)
        likelihood = model.log_likelihood(x)
        close(likelihood, [-model.term_potential(x, i) for i in range(model.n_data)], 1e-12)
        close(likelihood, np.log(p[0])[np.arange(model.n_data), model.labels], 1e-12)
        close(model.log_likelihood(x, model.data[:2], [0, 1]), likelihood[:2], 1e-12)
        close(model.log_likelihood(np.stack([2.0 * x, x]))[1], likelihood, 1e-12)
    huge = model.predict(1e3 * x)
    assert np.all(np.isfinite(huge)) and math.isfinite(model.potential(1e3 * x))


@plain_only
def test_data_are_kept_small():
    model = mf()
    assert model.data.itemsize == 12
    assert [model.data[n].dtype for n in ("user", "item", "rating")] == [np.int32, np.int32, np.float32]


# ---------------------------------------------------------------------------------------------------------------
# Bad input

WHO, WHAT, R = [0, 1, 2], [0, 1, 1], [1.0, 2.0, 3.0]
X3 = np.eye(3)
BAD = {
    "user beyond": (ValueError, lambda: BPMF(WHO, WHAT, R, 2, n_users=2), "`users` must lie in 0 … 1.*largest is 2"),
    "item beyond": (ValueError, lambda: BPMF(WHO, WHAT, R, 2, n_items=1), "`items` must lie in 0 … 0"),
    "negative": (ValueError, lambda: MatrixFactorization([0, -1, 2], WHAT, R), "`users`.*from 0.*-1"),
    "not whole": (ValueError, lambda: MatrixFactorization(WHO, [0.5, 1, 1], R), "`items` must be whole"),
    "not a number": (ValueError, lambda: MatrixFactorization(["a", "b", "c"], WHAT, R), "`users` must be whole"),
    "huge": (ValueError, lambda: MatrixFactorization([0, 1, 2**31], WHAT, R), "`users` must be below"),
    "empty": (ValueError, lambda: MatrixFactorization([], [], []), r"`users`.*\(0,\)"),
    "lengths": (ValueError, lambda: BPMF(WHO, WHAT[:2], R, 2), "`items`.*3; got 2"),
    "ratings": (ValueError, lambda: BPMF(WHO, WHAT, [1.0, math.nan, 3.0], 2), "`ratings` must be finite; the one at 1"),
    "ratings infinite": (ValueError, lambda: BPMF(WHO, WHAT, [1.0, 2.0, 1e300], 2), "`ratings` must be finite"),
    "rank": (ValueError, lambda: BPMF(WHO, WHAT, R, 0), "`rank` must be a whole number, at least 1, got 0"),
    "rank type": (ValueError, lambda: PPMF(WHO, WHAT, R, 2.5), "`rank` must be a whole number, at least 1, got 2.5"),
    "users type": (ValueError, lambda: PPMF(WHO, WHAT, R, 2, n_users="3"), "`n_users`"),
    "counts": (ValueError, lambda: PPMF(WHO, WHAT, [1, 2.5, 3], 2), "`ratings` must be counts.*at 1 is 2.5"),
    "counts negative": (ValueError, lambda: PPMF(WHO, WHAT, [1, -2, 3], 2), "`ratings` must be counts"),
    "shape": (ValueError, lambda: PPMF(WHO, WHAT, R, 2, item_shape=0.0), "`item_shape` must be a positive"),
    "precision": (ValueError, lambda: BPMF(WHO, WHAT, R, 2, noise_precision=-1.0), "`noise_precision`"),
    "scale": (ValueError, lambda: MatrixFactorization(WHO, WHAT, R, user_scale=math.inf), "`user_scale`"),
    "observations": (ValueError, lambda: ICA([1.0, 2.0]), "`X` must have shape"),
    "observations not finite": (ValueError, lambda: ICA([[1.0, math.inf]]), "`X` must be finite"),
    "ica scale": (ValueError, lambda: ICA(X3, prior_scale=0.0), "`prior_scale`"),
    "labels missing": (ValueError, lambda: BayesianNN(X3, [0, 2, 3]), r"`y`.*none of \[1\]"),
    "labels negative": (ValueError, lambda: BayesianNN(X3, [-1, 0, 1]), "`y` must hold the labels"),
    "labels not whole": (ValueError, lambda: BayesianNN(X3, [0.5, 0, 1]), "`y` must hold the labels"),
    "labels text": (ValueError, lambda: BayesianNN(X3, ["a", "b", "c"]), "`y` must hold the labels"),
    "one label": (ValueError, lambda: BayesianNN(X3, [0, 0, 0]), "`y`.*single class"),
    "label beyond": (ValueError, lambda: BayesianNN(X3, [0, 1, 2], n_classes=2), "`n_classes`.*largest label 2"),
    "label length": (ValueError, lambda: BayesianNN(X3, [0, 1]), r"`y` must have shape \(3,\)"),
    "hidden": (ValueError, lambda: BayesianNN(X3, [0, 1, 1], hidden=0), "`hidden` must be a whole number, at least 1"),
    "no hidden": (ValueError, lambda: BayesianNN(X3, [0, 1, 1], hidden=[]), "`hidden`"),
    "hidden type": (ValueError, lambda: BayesianNN(X3, [0, 1, 1], hidden=2.5), "`hidden` must be a whole number"),
    "activation": (ValueError, lambda: BayesianNN(X3, [0, 1, 1], 2, "gelu"), "`activation`.*'gelu'"),
    "dtype": (ValueError, lambda: BayesianNN(X3, [0, 1, 1], dtype=int), "`dtype`"),
    "inputs": (ValueError, lambda: BayesianNN(X3 * math.nan, [0, 1, 1]), "`X` must be finite"),
    "predict users": (ValueError, lambda: mf().predict(np.zeros(33), [USERS], [0]), "`users` must lie in"),
    "predict half": (ValueError, lambda: mf().predict(np.zeros(33), [0]), "`users` and `items`"),
    "predict shape": (ValueError, lambda: mf().predict(np.zeros(3)), r"`x` must have shape \(\.\.\., 33\)"),
    "ratings matrix": (ValueError, lambda: BPMF(WHO, WHAT, [R], 2), r"`ratings` must have shape \(N,\), got \(1, 3\)"),
    "predict lengths": (ValueError, lambda: mf().predict(np.zeros(33), [0, 1], [0]), "`items`.*`users`, 2; got 1"),
    "rated half": (
        ValueError,
        lambda: mf().log_likelihood(np.zeros(33), [0], [0]),
        "`users`, `items` and `ratings` must be given together",
    ),
    "ica point": (ValueError, lambda: ica().predict(np.zeros(3)), r"`x` must have shape \(\.\.\., 9\)"),
    "network point": (
        ValueError,
        lambda: network("relu", 4).predict(np.zeros(3)),
        r"`x` must have shape \(\.\.\., 35\)",
    ),
    "network columns": (
        ValueError,
        lambda: network("relu", 4).predict(np.zeros(35), np.eye(3)),
        "`X` must have 4 columns, got 3",
    ),
    "network half": (
        ValueError,
        lambda: network("relu", 4).log_likelihood(np.zeros(35), np.eye(4)),
        "`X` and `y` must be given together",
    ),
    "inputs text": (ValueError, lambda: BayesianNN([["a"]], [0]), "`X` must be a matrix of numbers, got list"),
    "classes type": (
        ValueError,
        lambda: BayesianNN(X3, [0, 1, 1], n_classes=2.5),
        "`n_classes` must be a whole number",
    ),
    "predict columns": (ValueError, lambda: ica().predict(np.zeros(9), np.eye(2)), "`X` must have 3 columns"),
}


@plain_only
@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    error, make, message = BAD[name]
    with pytest.raises(error, match=message):
        make()


def test_the_poisson_rate_is_that_of_special_functions():
    """xlogy: a count of zero at a rate of zero is certain."""
    assert special.xlogy(0.0, 0.0) == 0.0
    model = PPMF([0], [0], [0.0], 1)
    assert model.log_likelihood(np.full(4, -400.0))[0] == pytest.approx(0.0)
    assert model.potential(np.array([0.0, 0.0, 710.0, 0.0])) == np.inf  # as of compiled code, where e^710 is infinite


@pytest.mark.exact
def test_ppmf_starts_at_the_mean_count():
    """Nearly equal factors, and the best ε and ν for these."""
    rng = np.random.default_rng(7)
    users, items, counts = rng.integers(0, 12, 400), rng.integers(0, 15, 400), rng.poisson(3.0, 400)
    model = PPMF(users, items, counts, 6, activity_mean=2.0, popularity_mean=0.5)
    assert model.predict(model.initial[None], users, items).mean() == pytest.approx(counts.mean(), rel=0.05)
    rates = slice(6 * (model.n_users + model.n_items), None)  # of which the counts do not depend
    np.testing.assert_allclose(model.gradient(model.initial)[rates], 0.0, atol=1e-9)


def test_labels_that_are_missing_are_named():
    for y, missing in (([1, 2, 1], [0]), ([0, 3, 0], [1, 2]), ([2, 2, 2], [0, 1])):
        with pytest.raises(ValueError, match=re.escape(f"and has none of {missing}; give `n_classes`")):
            BayesianNN(X3, y)


@pytest.mark.parametrize("name", NETWORKS)
def test_labels_go_with_the_rows_of_a_rearranged_network(name):
    model = NETWORKS[name]()
    order = rng(2).permutation(model.n_data)
    other, x = model.rearranged(order), rng(1).normal(size=model.dim)
    assert other.potential(x) == pytest.approx(model.potential(x), rel=1e-12)
    for i in (0, 7):
        assert other.term_potential(x, i) == pytest.approx(model.term_potential(x, order[i]), rel=1e-12)
