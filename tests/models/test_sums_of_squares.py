"""Fewer rows with the same sum: potentials, gradients and Hessians against NumPy's sums over all rows."""

import numpy as np
import pytest

import pdmp
from pdmp.expressions import nodes
from pdmp.expressions.tape import Tape
from pdmp.models import sum_of_terms
from pdmp.models.priors import Normal
from pdmp.models.sums_of_squares import Cells, squares_of, varying_functional

pytestmark = pytest.mark.exact

N, G = 640, 6
RNG = np.random.default_rng(4)
X = np.column_stack([np.ones(N), RNG.standard_normal((N, 2))])
LEVEL, OTHER = RNG.integers(0, G, N), RNG.integers(0, 3, N)
Y, OFFSET, WEIGHT = RNG.normal(3.0, 2.0, N), RNG.standard_normal(N), RNG.uniform(0.3, 3.0, N)
WIDE = pdmp.Parameters(beta=201, log_sigma=1)
P = pdmp.Parameters(beta=3, u=G, v=G, w=3, log_sigma=1, shift=1)


def gaussian(y, z, s):
    return s + 0.5 * (y - z) ** 2 * nodes.exp(-2.0 * s)


def weighted(y, omega, z, s):
    return omega * gaussian(y, z, s)


def known(y, se, z, s):
    """Of which only the square depends on the errors, and the rest on s."""
    return 3.0 * nodes.tanh(s) + ((y - z) / se) ** 2


def of_log(y, z, s):
    return nodes.log(y + 50.0) + s + 0.5 * (nodes.log(y + 50.0) - z) ** 2 * nodes.exp(-2.0 * s)


def two(y, z, s, t):
    return s + nodes.exp(t) + 0.5 * (y - z) ** 2 * nodes.exp(-2.0 * s - t)


FIXED, LOG_SIGMA = X @ P.beta, P.log_sigma
#: The loss, its data, functionals, and how many rows have the sum: 6 cells of as many own entries, and a triangle.
CASES = {
    "fixed": (gaussian, [Y], [FIXED, LOG_SIGMA], 4),
    "intercepts": (gaussian, [Y], [FIXED + P.u[LEVEL], LOG_SIGMA], 6 + 4),
    "slopes": (gaussian, [Y], [FIXED + P.u[LEVEL] + P.v[LEVEL] * X[:, 1], LOG_SIGMA], 12 + 4),
    "crossed": (gaussian, [Y], [FIXED + P.u[LEVEL] + P.w[OTHER] * X[:, 2], LOG_SIGMA], 18 * 2 + 4),
    "offset": (gaussian, [Y], [FIXED + P.u[LEVEL] + OFFSET, LOG_SIGMA], 6 + 4),
    "weights": (weighted, [Y, WEIGHT], [FIXED + P.u[LEVEL], LOG_SIGMA], 6 + 4),
    "known errors": (known, [Y, WEIGHT], [FIXED - P.u[LEVEL] * 0.5, P.log_sigma], 6 + 4),
    "logarithms": (of_log, [Y], [FIXED + P.u[LEVEL], LOG_SIGMA], 6 + 4),
    "two scales": (two, [Y], [FIXED + P.u[LEVEL], LOG_SIGMA, P.shift], 6 + 4),
    "scale first": (lambda y, s, z: gaussian(y, z, s), [Y], [LOG_SIGMA, FIXED + P.u[LEVEL]], 6 + 4),
    "a scale with an offset": (gaussian, [Y], [FIXED + P.u[LEVEL] + OFFSET, 0.5 * P.log_sigma + 0.7], 6 + 4),
    "offsets of both": (two, [Y], [FIXED + 3.0, P.log_sigma - 0.4, P.shift + P.log_sigma + 0.2], 4),
    "no data": (
        lambda z, s: s + 0.5 * (2.0 - z) ** 2 * nodes.exp(-2.0 * s),
        [],
        [FIXED + P.u[LEVEL], LOG_SIGMA],
        6 + 4,
    ),
    "powers": (
        lambda y, a, z, s: 0.5 * a * ((y - z) * (s + 2.0) ** 2) ** 2 + a * (s * s * (1.0 + s)) ** 2,
        [Y, WEIGHT],
        [FIXED, LOG_SIGMA],
        4,
    ),
    "noise alone": (lambda y, z: 0.5 * (y - z) ** 2, [Y], [FIXED + P.u[LEVEL]], 6 + 4),
}
PRIORS = {name: Normal(0.0, 1.5) for name in P.sizes}


def by_rows(loss, data, at, x):
    """The sum over all rows and its gradient, by a complex step: the losses are analytic."""

    def total(z):
        eta = [(z[f.columns] * f.values).sum(axis=1) + (0.0 if f.offset is None else f.offset) for f in at]
        terms = loss(*data, *(np.broadcast_to(e, N) if len(e) == 1 else e for e in eta))
        return np.sum(terms)

    h = 1e-30
    steps = x + 1j * h * np.eye(len(x))
    return total(x), np.array([total(step).imag / h for step in steps])


@pytest.mark.parametrize("case", CASES)
def test_the_sum_is_that_of_all_rows(case):
    loss, data, at, count = CASES[case]
    model = sum_of_terms(P, [pdmp.terms(loss, data, at)], PRIORS)
    assert model.n_data == N and model.rows_summed == count and model.row_width() is None
    for seed in (0, 1):
        x = 0.6 * np.random.default_rng(seed).standard_normal(P.dim)
        value, gradient = by_rows(numpy_of(loss), data, at, x)
        assert model.potential(x) - model.prior_potential(x) == pytest.approx(value, rel=1e-12)
        found = np.zeros(P.dim)
        model.add_block_gradient(x, 0, N, found)
        np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
        np.testing.assert_allclose(model.data_sums(x)[0], gradient, rtol=1e-9, atol=1e-9 * np.abs(gradient).max())
        assert np.sum(-model.pointwise_log_likelihood(x)) == pytest.approx(value, rel=1e-11)


def numpy_of(loss):
    """The same loss of arrays of complex numbers."""
    functions = {"exp": np.exp, "log": np.log, "tanh": np.tanh}

    def computed(*args):
        kept = {name: getattr(nodes, name) for name in functions}
        for name, function in functions.items():
            setattr(nodes, name, function)
        try:
            return loss(*args)
        finally:
            for name, function in kept.items():
                setattr(nodes, name, function)

    return computed


def test_parts_of_the_rows_are_their_own():
    """Blocks, batches, single rows and some rows look at the rows themselves; and they add up to the sum."""
    loss, data, at, count = CASES["slopes"]
    model, x = sum_of_terms(P, [pdmp.terms(loss, data, at)], PRIORS), np.linspace(-0.5, 0.5, P.dim)
    whole, parts, batch, single, some = np.zeros((5, P.dim))
    model.add_block_gradient(x, 0, N, whole)
    model.add_block_gradient(x, 0, 300, parts)
    model.add_block_gradient(x, 300, N, parts)
    np.testing.assert_allclose(parts, whole, rtol=1e-10, atol=1e-10)
    rows = np.array([5, 77, 639])
    model.add_batch_gradient(x, rows, 3, batch)
    for i in rows:
        model.add_term_gradient(x, i, single)
    few = model.some_rows(rows)
    few.add_block_gradient(x, 0, 3, some)
    np.testing.assert_allclose(batch, single, rtol=1e-12)
    np.testing.assert_allclose(some, single, rtol=1e-12)
    assert few.rows_summed == few.n_data == 3 and few.row_width() is not None
    assert len(few.layout) == 1 and [k for k, *_ in few.pieces(summed=True)] == [0]
    assert model.rows_of(0) == N and model.rows_of(1) == count and len(model.kinds_of_rows) == 1
    assert model.pieces()[-1][2] == N and model.pieces(summed=True) == [(1, N, N + count)]
    assert len(model.factors()[0]) == N + P.dim + 1  # a factor a row and a prior, and where they begin


@pytest.mark.parametrize("first", [True, False])
def test_rows_of_other_kinds_stay(first):
    """Of normal responses, and of counts whose rows are summed as they are, in either order."""
    counts = RNG.poisson(2.0, N).astype(float)
    loss, data, at, count = CASES["intercepts"]
    poisson = pdmp.terms(lambda y, z: nodes.exp(z) - y * z, [counts], [X @ P.beta * 0.2])
    normal = pdmp.terms(loss, data, at)
    model = sum_of_terms(P, [normal, poisson] if first else [poisson, normal], PRIORS)
    alone = [sum_of_terms(P, [rows], PRIORS) for rows in (normal, poisson)]
    x = np.linspace(-0.4, 0.4, P.dim)
    assert model.n_data == 2 * N and model.rows_summed == N + count
    expected = sum(one.gradient(x) for one in alone) - x / 1.5**2
    np.testing.assert_allclose(model.gradient(x), expected, rtol=1e-10, atol=1e-10)
    assert model.potential(x) == pytest.approx(sum(one.potential(x) for one in alone) - one_prior(x), rel=1e-12)
    hessian = sum(one.hessian(x) for one in alone) - np.eye(P.dim) / 1.5**2
    np.testing.assert_allclose(model.hessian(x), hessian, rtol=1e-9, atol=1e-9)
    assert len(model.pointwise_log_likelihood(x)) == 2 * N


def one_prior(x):
    return float(0.5 * np.sum(x**2) / 1.5**2)


def test_what_is_no_sum_of_few_squares():
    """Other laws, scales that differ, single precision, kinds of rows that are told apart, few rows and many cells."""
    sign = np.where(Y > 3.0, 1.0, -1.0)
    many = FIXED + P.u[LEVEL] + P.v[RNG.integers(0, G, N)] + P.w[OTHER]
    for loss, data, at in (
        (lambda y, z: nodes.softplus(y * z), [sign], [FIXED]),
        (gaussian, [Y], [FIXED, P.v[LEVEL]]),
        (lambda y, z, s: nodes.where(y > 3.0, 2.0 * s, s * s) + gaussian(y, z, s), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: 0.5 * (y * s - z) ** 2, [Y], [FIXED, LOG_SIGMA]),
        (lambda y, a, z, s: 0.5 * (y - z) ** 2 * nodes.exp(a * s), [Y, sign], [FIXED, LOG_SIGMA]),
        (lambda y, a, z, s: 0.5 * a * (y - z) ** 2 * nodes.exp(s), [Y, sign], [FIXED, LOG_SIGMA]),
        # These look alike at points around 0, or where functions have ended.
        (lambda y, z, s: gaussian(y, z, s) + abs(s - y - 90.0), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: gaussian(y, z, s) + nodes.softplus(s + y * y + 90.0), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: gaussian(y, z, s) + 1.0 / (s * s + y + 9e9), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: s + (y - z) ** 2 * nodes.expit(s + y * y + 90.0), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: 0.5 * (y - z) ** 2 + 0.5 * ((1e7 + 1e5 * y - s) / 1e6) ** 2, [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: 0.5 * (y - z) ** 2 + (s + y) ** 2, [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: 0.5 * (y - z) ** 2 + nodes.where(y > 0.0, s, s * s), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: nodes.where(y > 0.0, 1.0, s * s) * (y - z) ** 2, [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: 0.5 * (y - z) ** 2 * (1.0 + y * y * nodes.exp(-(s * s))), [Y], [FIXED, LOG_SIGMA]),
        (lambda y, z, s: y * nodes.softplus(s + 40.0) + s + 0.5 * (y - z) ** 2, [Y], [FIXED, LOG_SIGMA]),
        (gaussian, [Y], [np.hstack([X, np.ones((N, 198))]) @ WIDE.beta, WIDE.log_sigma]),
        (gaussian, [Y], [X.astype(np.float32) @ P.beta, LOG_SIGMA]),
        (gaussian, [Y[:499]], [X[:499] @ P.beta, LOG_SIGMA]),
        (gaussian, [Y], [many, LOG_SIGMA]),
    ):
        rows = pdmp.terms(loss, data, at)
        parameters = P if rows.at[0].is_of(P.sizes) else WIDE
        model = sum_of_terms(parameters, [rows])
        assert model.rows_summed == model.n_data == rows.n and rows.with_the_same_sum() is None


def test_digits_are_kept_where_responses_are_far_from_0_and_columns_alike():
    """Responses of 1e6 with noise of 1, and columns that differ by 1e-5: the potential has the digits of residuals."""
    rng, n = np.random.default_rng(0), 2_000
    a = rng.standard_normal(n)
    table = np.column_stack([np.ones(n), a, a + 1e-5 * rng.standard_normal(n)])
    p = pdmp.Parameters(beta=3, log_sigma=1)
    y = 1e6 + rng.standard_normal(n)
    model = sum_of_terms(p, [pdmp.terms(gaussian, [y], [table @ p.beta, p.log_sigma])])
    assert model.rows_summed == 4
    best = np.append(np.linalg.lstsq(table, y, rcond=None)[0], 0.0)
    for step in (0.0, 1e-2, 1.0):
        x = best + step * np.array([1.0, -50.0, 50.0, 0.1])
        expected = n * x[3] + 0.5 * np.sum((y - table @ x[:3]) ** 2) * np.exp(-2.0 * x[3])
        assert model.potential(x) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    "g",
    [
        lambda s: nodes.softplus(s - 500.0),
        lambda s: abs(s - 500.0),
        lambda s: (s / 1e4) ** 4 - 5.0 * nodes.expit((s - 1_000.0) / 30.0) + 1e3,
        lambda s: nodes.exp(-0.5 * ((s - 500.0) / 4.0) ** 2),
    ],
)
def test_what_is_far_away_counts(g):
    """A function that all rows have multiples of, which is flat where parameters begin; and one of the scale."""
    times = np.random.default_rng(5).exponential(size=N)
    p = pdmp.Parameters(beta=3, s=1)
    at = [X @ p.beta, p.s]
    for loss in (
        lambda y, d, z, s: gaussian(y, z, 0.0) + d * g(s),
        lambda y, d, z, s: d * gaussian(y, z, 0.0) * (2.0 + g(s)),
    ):
        rows = pdmp.terms(loss, [Y, times], at)
        model = sum_of_terms(p, [rows])
        assert model.rows_summed == 4
        own = Tape([rows.expression])
        for s in (0.0, 300.0, 497.0, 510.0, 2e3):
            x = np.array([0.3, -0.2, 0.5, s])
            expected = own(np.array([Y, times]), np.array([X @ x[:3], np.full(N, s)]))[0].sum()
            assert model.potential(x) == pytest.approx(expected, rel=1e-11)


OF_SCALES = (
    lambda s: s,
    lambda s: nodes.exp(-2.0 * s),
    lambda s: nodes.softplus(s - 50.0),
    lambda s: s * s,
    lambda s: nodes.exp(-((s - 30.0) ** 2)),
    lambda s: abs(s - 20.0),
)
OF_DATA = (
    lambda y, d: 1.0,
    lambda y, d: d,
    lambda y, d: nodes.where(d > 0.5, 1.0, 3.0),
    lambda y, d: nodes.where(d > 0.5, d, 2.0 * d),
    lambda y, d: y,
)


def test_losses_at_random_are_summed_or_left():
    """Sums of random products, from data of several sizes, at parameters far out: never another sum."""
    rng, p, summed = np.random.default_rng(7), pdmp.Parameters(beta=3, s=1, t=1), 0
    at = [X @ p.beta, p.s, p.t]
    for trial in range(30):
        f, g = (rng.integers(len(of), size=4) for of in (OF_SCALES, OF_DATA))
        y, d = 1e4 * (trial % 2) + rng.choice([1.0, 1e3]) * rng.standard_normal(N), rng.exponential(size=N)

        def loss(y, d, z, s, t, f=f, g=g, trial=trial):
            residual = (y - z) ** 2 if trial % 3 else (y + d - 2.0 * z) ** 2
            found = 0.5 * OF_DATA[g[0]](y, d) * residual * OF_SCALES[f[0]](s) + OF_DATA[g[1]](y, d) * OF_SCALES[f[1]](s)
            found += 1e-3 * t * t + d
            if trial % 4 == 0:
                found += OF_DATA[g[2]](y, d) * OF_SCALES[f[2]](t) * OF_SCALES[f[1]](s)
            return found + (s + OF_DATA[g[3]](y, d) * t) ** 2 if trial % 7 == 0 else found

        rows = pdmp.terms(loss, [y, d], at)
        model = sum_of_terms(p, [rows])
        summed += model.rows_summed < N
        for far in (0.3, 10.0, 50.0):
            x = far * rng.standard_normal(p.dim)
            values = Tape([rows.expression])(
                np.array([y, d]), np.array([X @ x[:3], *np.repeat(x[3:, None], N, axis=1)])
            )
            assert abs(model.potential(x) - values[0].sum()) <= 1e-10 * np.abs(values[0]).sum()
    assert 5 <= summed <= 25


def test_rows_by_a_test_of_data():
    """Twice the weight where a datum is positive."""

    def loss(y, z, s):
        return s + nodes.where(y > 0.0, (y - z) ** 2, 0.5 * (y - z) ** 2) * nodes.exp(-2.0 * s)

    expression, _ = nodes.trace(loss, 1, 2)
    found = squares_of(expression, Y[None], 2, 0)
    np.testing.assert_allclose(found.scale**2, np.where(Y > 0.0, 1.0, 0.5), rtol=1e-12)
    np.testing.assert_allclose(found.target, Y, rtol=1e-12)
    assert found.times == pytest.approx(N)


def test_squares_by_hand():
    """ω = a, t = y + 1, g(s) = s of rows 0 and 2, and 2 s + 5 of row 1."""
    y, a = np.array([1.0, 4.0, -2.0]), np.array([1.0, 0.25, 4.0])
    times, plus = np.array([1.0, 2.0, 1.0]), np.array([0.0, 5.0, 0.0])

    def loss(y, a, c, d, z, s):
        return 0.5 * a * (y + 1.0 - z) ** 2 * nodes.exp(s) + c * s + d

    expression, m = nodes.trace(loss, 4, 2)
    found = squares_of(expression, np.array([y, a, times, plus]), m, 0)
    np.testing.assert_allclose(found.target, y + 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.scale, np.sqrt(a / 4.0), rtol=1e-12)
    assert found.usual == 2 and found.other == 1
    assert found.times == pytest.approx(2.0) and found.constant == pytest.approx(
        -5.0
    )  # s + 2 s + 5 + s = 2 (2 s + 5) - 5
    at = (P.u[LEVEL], P.log_sigma)
    assert varying_functional(at, expression, 500) == 0 and varying_functional(at, expression, 499) is None


def test_cells():
    """By the columns that differ between rows; 2 x 3 of which 5 are there."""
    columns = np.array([[7, 1, 4], [7, 2, 5], [7, 1, 6], [7, 2, 5], [7, 2, 4], [7, 1, 5]])
    cells = Cells.of(columns)
    assert cells.own.tolist() == [1, 2] and len(set(cells.cell.tolist())) == 5
    same = [(i, j) for i in range(6) for j in range(6) if i < j and cells.cell[i] == cells.cell[j]]
    assert same == [(1, 3)]
    assert cells.rows(3) == 5 * 2 + 2 and not cells.are_few(6, 3)
    assert cells.are_few(4 * 12 + 452, 3) and not cells.are_few(499, 3)
    whole = Cells.of(columns[:1])
    assert whole.rows(3) == 4 and len(whole.own) == 0 and whole.cell.tolist() == [0]
    many = Cells.of(np.arange(150)[:, None])
    assert many.rows(1) == 151 and many.are_few(604, 1) and not many.are_few(603, 1)
    assert many.are_few(1_800, 200) and not many.are_few(9_999, 201)
