"""Sums of terms: potentials, gradients and Hessians by hand, rows in any order, bounds along a path, and messages."""

import math
import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import pdmp
from pdmp.expressions import nodes
from pdmp.models import sum_of_terms
from pdmp.models.priors import Flat, HalfNormal, Normal
from pdmp.models.sums_of_terms import largest_product
from pdmp.models.transforms import Interval, Log
from pdmp.processes.regression_boomerang import RegressionBoomerang
from tests.checks import run_chain

pytestmark = pytest.mark.exact

N, G = 70, 4  # more rows than lanes
RNG = np.random.default_rng(8)
X = RNG.standard_normal((N, 2)) / 2
X_SPARSE = sparse.random_array((N, 3), density=0.3, rng=np.random.default_rng(1), format="csr")
GROUP, OFFSET, COUNTS = RNG.integers(0, G, N), RNG.standard_normal(N) / 3, RNG.poisson(2.0, N)
Y = RNG.standard_normal(N)


def rows_of(z, c=1.0, places=None):
    """One row of coefficients: `places` are the coordinates of z."""
    out = np.zeros(10)
    np.add.at(out, places, c * np.asarray(z))
    return out


# Coordinates: rate 0-1, effect 2-5, log_tau 6, slope 7-9.
A = [rows_of(X[i], places=[0, 1]) + rows_of([2.0], places=[2 + GROUP[i]]) for i in range(N)]
B = [rows_of(X_SPARSE.toarray()[i], places=[7, 8, 9]) - rows_of([1.0], places=[2 + GROUP[i]]) for i in range(N)]
TAU = rows_of([1.0], places=[6])
#: (loss of its functionals, gradient, Hessian), data being bound, with the coefficients of the functionals.


def poisson(y, offset):
    return (
        lambda e: math.exp(e[0] + offset) - y * (e[0] + offset),
        lambda e: np.array([math.exp(e[0] + offset) - y]),
        lambda e: np.array([[math.exp(e[0] + offset)]]),
    )


def normal(y):
    def parts(e):
        return y - e[0], math.exp(-2.0 * e[1])

    def gradient(e):
        u, w = parts(e)
        return np.array([-u * w, 1.0 - u * u * w])

    def hessian(e):
        u, w = parts(e)
        return np.array([[w, 2.0 * u * w], [2.0 * u * w, 2.0 * u * u * w]])

    return lambda e: e[1] + 0.5 * parts(e)[0] ** 2 * parts(e)[1], gradient, hessian


def bent(e_0, e_1):
    return e_0**2 * np.cos(e_1)


BENT = (
    lambda e: e[0] ** 2 * math.cos(e[1]),
    lambda e: np.array([2.0 * e[0] * math.cos(e[1]), -(e[0] ** 2) * math.sin(e[1])]),
    lambda e: np.array(
        [
            [2.0 * math.cos(e[1]), -2.0 * e[0] * math.sin(e[1])],
            [-2.0 * e[0] * math.sin(e[1]), -(e[0] ** 2) * math.cos(e[1])],
        ]
    ),
)
BY_HAND = [(poisson(COUNTS[i], OFFSET[i]), np.array([A[i]])) for i in range(N)]
BY_HAND += [(normal(Y[i]), np.array([B[i], TAU])) for i in range(N)]
BY_HAND += [
    (BENT, np.array([rows_of([1.0], places=[2 + g]), rows_of([0.5, 1.0], places=[2 + g, 6])])) for g in range(G)
]


def make(**options):
    p = pdmp.Parameters(rate=2, effect=G, log_tau=1, slope=3)
    rows = [
        pdmp.terms(lambda y, z: np.exp(z) - y * z, [COUNTS], [X @ p.rate + 2.0 * p.effect[GROUP] + OFFSET]),
        pdmp.terms(
            lambda y, m, t: t + 0.5 * (y - m) ** 2 * np.exp(-2.0 * t),
            [Y],
            [X_SPARSE @ p.slope - p.effect[GROUP], p.log_tau],
        ),
        pdmp.terms(bent, at=[p.effect[np.arange(G)], 0.5 * p.effect[np.arange(G)] + p.log_tau]),
    ]
    priors = {"rate": Normal(0.5, 2.0), "effect": [Normal(0.0, 1.0 + g) for g in range(G)], "slope": Flat()}
    return sum_of_terms(p, rows, priors, **options)


def prior(x):
    scale = np.array([2.0, 2.0, *(1.0 + np.arange(G)), *[math.inf] * 4])
    u = x - np.array([0.5, 0.5] + [0.0] * 8)
    return 0.5 * np.sum((u / scale) ** 2), u / scale**2, np.diag(scale**-2.0)


MODEL = make()
POINT = 0.4 * np.random.default_rng(2).standard_normal(10)


def test_potential_gradient_and_hessian_are_those_by_hand():
    other = POINT[::-1].copy()
    changes = []
    for x in (POINT, other):
        own = [(law[0](a @ x), a.T @ law[1](a @ x), a.T @ law[2](a @ x) @ a) for law, a in BY_HAND]
        value, gradient, hessian = (
            sum(parts) + more for parts, more in zip(zip(*own, strict=True), prior(x), strict=True)
        )
        changes.append(value - MODEL.potential(x))
        np.testing.assert_allclose(MODEL.gradient(x), gradient, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(MODEL.hessian(x), hessian, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(MODEL.sparse_hessian(x).toarray(), hessian, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(MODEL.gradient_and_hessian(x)[0], gradient, rtol=1e-11, atol=1e-11)
    assert changes[0] == pytest.approx(changes[1], abs=1e-10)  # constants of priors
    # Two effects are in no row together, nor is an effect with a rate of another group's.
    pattern = MODEL.sparse_hessian(POINT).toarray() != 0.0
    assert np.array_equal(pattern[2 : 2 + G, 2 : 2 + G], np.eye(G, dtype=bool)) and not pattern[:2, 2 + G :].any()


def test_hessian_where_two_functionals_have_the_column_of_their_row():
    """The product of both is then on the diagonal twice, in every row."""
    p, g = pdmp.Parameters(u=3), np.array([0, 1, 2, 0, 1, 1])
    rows = pdmp.terms(lambda a, b: np.exp(a) + 0.5 * b * b + a * b, at=[p.u[g], 2.0 * p.u[g] + 1.0])
    model = sum_of_terms(p, [rows], priors={"u": Normal(0.0, 1.0)})
    x = np.array([0.3, -0.2, 0.5])
    expected = 1.0 + np.bincount(g) * (np.exp(x) + 4.0 + 2.0 * 2.0)
    np.testing.assert_allclose(model.hessian(x), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(model.sparse_hessian(x).toarray(), np.diag(expected), rtol=1e-12)


def test_each_row_and_factor_is_its_own():
    start, columns = MODEL.factors()
    total = np.zeros(10)
    for i, (law, a) in enumerate(BY_HAND):
        assert MODEL.term_potential(POINT, i) == pytest.approx(law[0](a @ POINT), rel=1e-12)
        out = np.zeros(10)
        MODEL.add_factor_gradient(POINT, i, out)
        np.testing.assert_allclose(out, a.T @ law[1](a @ POINT), rtol=1e-11, atol=1e-12)
        assert set(np.flatnonzero(out)) <= set(columns[start[i] : start[i + 1]])
        total += out
    assert len(start) == len(BY_HAND) + 10 + 1
    for f in range(len(BY_HAND), len(start) - 1):
        MODEL.add_factor_gradient(POINT, f, total)
        assert columns[start[f] : start[f + 1]].tolist() == [f - len(BY_HAND)]
    np.testing.assert_allclose(total, MODEL.gradient(POINT), rtol=1e-11)
    v = np.where(np.arange(10) == 3, 0.0, POINT[::-1])
    bounds = [MODEL.prior_partial_curvature_bound(v, j) for j in range(10)]
    np.testing.assert_allclose(bounds, np.diag(prior(POINT)[2]) * v * v, rtol=1e-12)
    spread = sum_of_terms(P, [ROWS], {"c": HalfNormal(1.0)})  # which has no bound but at rest
    assert [spread.prior_partial_curvature_bound(np.eye(3)[k], 2) for k in (0, 2)] == [0.0, np.inf]
    assert spread.prior_curvature_within(np.array([0.0, 0.0, 800.0]), np.eye(3)[0], 1.0, 2) == 0.0  # where e^x is inf


def gradient_of(rows):
    return sum(BY_HAND[i][1].T @ BY_HAND[i][0][1](BY_HAND[i][1] @ POINT) for i in rows)


@pytest.mark.parametrize("n", [1, 5, 64, 65, 130])
def test_batches_may_mix_kinds_in_any_order(n):
    rows = np.random.default_rng(n).integers(0, len(BY_HAND), n)
    for order in (rows, np.sort(rows)):
        out = np.ones(10)
        MODEL.add_batch_gradient(POINT, order, n, out)
        np.testing.assert_allclose(out - 1.0, gradient_of(rows), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("rows", [[0], [69], [70, 141], [3, 5, 69, 70, 143], [140, 141], list(range(10, 144))])
def test_some_rows_alone_are_those_rows(rows):
    some = MODEL.some_rows(np.array(rows))
    assert some.n_data == len(rows)
    start, columns = some.factors()
    for place, i in enumerate(rows):
        assert some.term_potential(POINT, place) == MODEL.term_potential(POINT, i)
        assert np.all(np.isin(np.flatnonzero(BY_HAND[i][1].any(axis=0)), columns[start[place] : start[place + 1]]))
    np.testing.assert_allclose(some.gradient(POINT) - prior(POINT)[1], gradient_of(rows), rtol=1e-10, atol=1e-11)
    hessian = sum(BY_HAND[i][1].T @ BY_HAND[i][0][2](BY_HAND[i][1] @ POINT) @ BY_HAND[i][1] for i in rows)
    np.testing.assert_allclose(some.hessian(POINT) - prior(POINT)[2], hessian, rtol=1e-10, atol=1e-11)


def test_a_product_is_bounded_from_above_however_it_is_rounded():
    rng = np.random.default_rng(3)
    for q, one, other in rng.standard_normal((200, 3)).tolist():
        low, high = min(one, other), max(one, other)
        exact = max(Fraction(q) * Fraction(low), Fraction(q) * Fraction(high))
        found = largest_product(q, low, high)
        assert Fraction(found) >= exact and found == pytest.approx(float(exact), rel=1e-11)
    assert largest_product(0.0, -math.inf, math.inf) == 0.0


@pytest.mark.parametrize("reach", [0.0, 0.05, 1.0])
def test_curvature_along_a_path_is_never_above_its_bound(reach):
    rng = np.random.default_rng(7)
    for _ in range(3):
        x, v = 0.3 * rng.standard_normal(10), rng.standard_normal(10)
        v[rng.integers(10)] = 0.0
        whole, partial = MODEL.curvature_bound_within(x, v, reach), np.zeros(10)
        MODEL.partial_curvature_bounds_within(x, v, reach, partial)
        for s in (0.0, reach, *rng.uniform(0.0, reach, 3)):
            along = MODEL.hessian(x + s * v) @ v
            assert v @ along <= whole + 1e-9 * abs(whole)
            assert np.all(v * along <= partial + 1e-9 * np.abs(partial))
        if reach == 0.0:  # where nothing moves, they are the curvatures themselves
            assert whole == pytest.approx(v @ along, rel=1e-6)
            assert partial.sum() >= whole - 1e-9


def positive_model(**options):
    p = pdmp.Parameters(b=2, tau=1)
    rows = pdmp.terms(lambda y, z, t: t + 0.5 * (y - z) ** 2 * np.exp(-2.0 * t), [Y], [X @ p.b, p.tau])
    return sum_of_terms(p, rows, {"b": Normal(1.0, 2.0), "tau": HalfNormal(3.0)}, **options)


def test_a_positive_number_moves_as_its_logarithm_and_is_reported_as_itself():
    model, x = positive_model(), np.array([0.2, -0.3, 0.7])
    draws = model.constrain(np.array([x, 2 * x]))
    np.testing.assert_allclose(draws["tau"], np.exp([0.7, 1.4]))
    np.testing.assert_allclose(draws["b"], [x[:2], 2 * x[:2]])

    def by_hand(x):
        u = Y - X @ x[:2]
        own = N * x[2] + 0.5 * np.sum(u**2) * math.exp(-2.0 * x[2]) + 0.5 * np.sum(((x[:2] - 1.0) / 2.0) ** 2)
        return own + 0.5 * (math.exp(x[2]) / 3.0) ** 2 - x[2]  # and the Jacobian

    assert model.potential(x) - model.potential(0 * x) == pytest.approx(by_hand(x) - by_hand(0 * x), rel=1e-12)
    for j in range(3):
        e = 1e-5 * np.eye(3)[j]
        assert model.gradient(x)[j] == pytest.approx((by_hand(x + e) - by_hand(x - e)) / 2e-5, rel=1e-6)
    assert isinstance(model.transforms["tau"], Log) and "b" not in model.transforms


def test_what_a_loss_does_not_use_and_what_counts_twice_is_said():
    p, y, ones = pdmp.Parameters(b=2, s=1), np.arange(4.0), np.ones((4, 2))
    for loss, data, at, unused in (
        (lambda y, z: z**2, [y], [ones @ p.b], r"data\[0\]"),
        (lambda y, z, w: (y - z) ** 2, [y], [ones @ p.b, p.s], r"at\[1\]"),
        (lambda x, y, z, w: w**2, [y, y], [ones @ p.b, p.s], r"data\[0\], data\[1\], at\[0\]"),
    ):
        with pytest.warns(UserWarning, match=f"the loss `<lambda>` does not use {unused}: was it forgotten"):
            pdmp.terms(loss, data, at)
    rows = pdmp.terms(lambda y, z, w: (y - z) ** 2 * np.exp(w) - w, [y], [ones @ p.b, p.s])
    with pytest.raises(ValueError, match=r"`terms\[2\]` stands in the list before, so that its rows would count twice"):
        sum_of_terms(p, [rows, pdmp.terms(lambda w: w**2, at=[p.s]), rows])


def test_a_pickled_model_is_the_same():
    again = pickle.loads(pickle.dumps(MODEL))
    assert again.potential(POINT) == MODEL.potential(POINT) and np.array_equal(
        again.hessian(POINT), MODEL.hessian(POINT)
    )
    assert again.name_of_row(141) == MODEL.name_of_row(141) == "row 1 of bent"


def test_rows_of_no_data_and_of_sparse_matrices():
    p, x = pdmp.Parameters(b=2), np.array([0.3, -0.2])
    one = sum_of_terms(p, pdmp.terms(lambda z: z**2, at=[p.b[1]]))
    assert one.n_data == 1 and one.gradient(x).tolist() == [0.0, -0.4]
    dense, thin = X_SPARSE.toarray(), sparse.csr_array(X_SPARSE)
    q = pdmp.Parameters(s=3)
    for matrix in (thin, sparse.coo_array(dense), sparse.csr_matrix(dense)):
        a, b = (sum_of_terms(q, pdmp.terms(lambda z: np.exp(z), at=[M @ q.s])) for M in (matrix, dense))
        np.testing.assert_allclose(a.hessian(np.ones(3)), b.hessian(np.ones(3)), rtol=1e-12)


def square(y, z):
    return (y - z) ** 2


P, OTHER, TURNED = pdmp.Parameters(b=2, c=1), pdmp.Parameters(b=5), pdmp.Parameters(c=1, b=2)
ROWS = pdmp.terms(square, [Y], [X @ P.b])


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: pdmp.terms(square, Y, [X @ P.b]), "`data` must be a list"),
        (lambda: pdmp.terms(square, [Y], X @ P.b), "`at` must be a list"),
        (lambda: pdmp.terms(square, [Y], []), "`at` must be a list"),
        (lambda: pdmp.terms(square, [Y], [X]), r"`at\[0\]` must be a functional"),
        (lambda: pdmp.terms(square, [Y], [P.b]), r"`at\[0\]`: b has 2 coordinates"),
        (lambda: pdmp.terms(lambda y, a, b: a * b, [Y], [P.c, OTHER.b[0]]), "different `pdmp.Parameters`"),
        (lambda: pdmp.terms(square, [Y[:3]], [X @ P.b]), "equally many rows"),
        (lambda: pdmp.terms(square, [np.where(Y > 1, np.nan, Y)], [X @ P.b]), r"`data\[0\]` must be finite"),
        (lambda: pdmp.terms(square, [["a"]], [P.c]), r"`data\[0\]` must be an array of numbers"),
        (lambda: pdmp.terms(square, [X], [P.c]), r"`data\[0\]` must be an array of numbers"),
        (lambda: pdmp.terms(square, [[]], [X @ P.b]), r"`data\[0\]` must have at least one row"),
        (lambda: np.zeros((0, 2)) @ P.b, "at least one row"),
        (lambda: X_SPARSE @ P.b, r"needs X of shape \(N, 2\)"),
        (lambda: np.where(X > 1, np.inf, X) @ P.b, "must be finite"),
        (lambda: P.b[2], "needs places in 0 … 1"),
        (lambda: P.b[[-1]], "needs places in 0 … 1"),
        (lambda: P.b[[0.5]], "whole numbers"),
        (lambda: P.b[np.array([True, False])], "whole numbers"),
        (lambda: X @ P.b + P.b, "b has 2 coordinates"),
        (lambda: 2.0 * P.b, "b has 2 coordinates"),
        (lambda: P.b - Y, "b has 2 coordinates"),
        (lambda: P.c * P.c, "not linear"),
        (
            lambda: 1.0 / P.c,
            "^a reciprocal of p.c is not linear in the parameters: give p.c in `at`, and write that in",
        ),
        (lambda: Y / P.c, "^a reciprocal of p.c is not linear"),
        (lambda: P.c**2, "^a power of p.c is not linear"),
        (lambda: 2.0**P.c, "^a power of p.c is not linear"),
        (lambda: np.exp(P.c), "^numpy.exp of p.c is not linear"),
        (lambda: np.add(P.c, Y, where=Y > 0.0), "^numpy.add of p.c is not linear"),
        (
            lambda: np.log1p(X @ P.b),
            "^numpy.log1p of the functional is not linear .*: give the functional in `at`, and",
        ),
        (lambda: pdmp.terms.sqrt(P.c), "^a power of p.c is not linear"),
        (lambda: abs(P.c), "^the absolute value of p.c is not linear"),
        (lambda: P.c % 2, "^a remainder of p.c is not linear"),
        (lambda: 1.0 if P.c else 0.0, "^the value of p.c is not linear"),
        (lambda: P.c > 0.0, "^a comparison of p.c is not linear"),
        (lambda: np.sum(P.b), "^a functional is no array"),
        (
            lambda: np.ma.masked_values(Y, Y[0]) * P.c,
            "^a masked array before a functional: leave rows with masked entries",
        ),
        (lambda: X @ P.b + Y[:3], "of 70 and of 3 rows"),
        (lambda: X @ P.b + "a", "must be a number or one for each row"),
        (lambda: P.d, "there is no block 'd'"),
        (lambda: pdmp.Parameters(), "needs blocks"),
        (lambda: pdmp.Parameters(b=0), "at least 1 coordinate"),
        (lambda: pdmp.Parameters(b=1.5), "must be a number of coordinates"),
        (lambda: pdmp.Parameters(dim=2), "cannot be the name"),
        (lambda: sum_of_terms({"b": 2}, [ROWS]), "`parameters` must be a pdmp.Parameters"),
        (lambda: sum_of_terms(P, []), "at least one entry"),
        (lambda: sum_of_terms(P, [square]), r"`terms\[0\]` must be made by pdmp.terms"),
        (lambda: sum_of_terms(OTHER, [ROWS]), "other parameters"),
        # As many coordinates, in blocks of other names or in another order, are other parameters.
        (
            lambda: sum_of_terms(TURNED, [ROWS]),
            r"other parameters, with the blocks b \(2\), c \(1\); .* has c \(1\), b",
        ),
        (lambda: pdmp.terms(lambda y, a, b: a * b, [Y], [P.c, TURNED.c]), "different `pdmp.Parameters`"),
        (lambda: P.c + TURNED.c, "functionals of different `pdmp.Parameters` cannot be added"),
        (lambda: P.c - np.ma.masked_values(Y, Y[0]), "an offset of a functional has masked entries"),
        (lambda: P.c / np.ma.masked_values(Y + 9.0, Y[0] + 9.0), "a divisor of a functional has masked entries"),
        (lambda: sum_of_terms(P, [ROWS], {"d": Flat()}), "`priors` names 'd'"),
        (lambda: sum_of_terms(P, [ROWS], {"b": 3.0}), r"`priors\['b'\]` must be one of pdmp.models.priors"),
        (lambda: sum_of_terms(P, [ROWS], {"b": [Flat()] * 3}), "one prior, or 2 of them"),
        (lambda: sum_of_terms(P, [ROWS], {"b": [Flat(), HalfNormal(1.0)]}), "all of positive numbers or none"),
        (lambda: sum_of_terms(P, [ROWS], initial={"d": 0.0}), "`initial` names 'd'"),
        (lambda: sum_of_terms(P, [ROWS], initial={"b": [1.0, 2.0, 3.0]}), r"`initial\['b'\]` must have 2 numbers"),
        (lambda: pickle.dumps(ROWS), "cannot be pickled"),
    ],
)
def test_messages(call, said):
    with pytest.raises((TypeError, ValueError, AttributeError), match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_block_without_its_index_is_refused_beside_a_coordinate_too():
    p = pdmp.Parameters(a=1, effect=3)
    for make in (lambda: p.a + p.effect, lambda: p.effect + p.a, lambda: sum([p.a, p.effect]), lambda: p.a - p.effect):
        with pytest.raises(TypeError, match=r"^effect has 3 coordinates: write X @ effect or effect\[index\]\.$"):
            make()


def test_offsets_of_functionals_add_up():
    p, x = pdmp.Parameters(b=2, c=1), np.random.default_rng(4).normal(size=(3, 3))
    one, other = X @ p.b + Y, 2.0 * p.c - 0.5 * Y + 1.0
    for sign, found in ((1.0, one + other), (-1.0, one - other)):
        wanted = x[:, :2] @ X.T + Y + sign * (2.0 * x[:, 2:] - 0.5 * Y + 1.0)
        np.testing.assert_allclose(found.at(x), wanted, rtol=1e-12)
    alike = p.c + np.arange(3.0)  # rows by their offsets alone
    assert alike.n == 3 and pdmp.terms(lambda z: z**2, at=[alike]).n == 3
    model = pdmp.models.sum_of_terms(p, [pdmp.terms(lambda z: z**2, at=[alike])])
    assert model.potential([9.0, 9.0, 0.5]) == pytest.approx(0.5**2 + 1.5**2 + 2.5**2)


def test_a_functional_is_no_array():
    pandas, p = pytest.importorskip("pandas"), pdmp.Parameters(b=2)
    for make in (lambda: pandas.DataFrame(X) @ p.b, lambda: p.b @ X.T):
        with pytest.raises(
            TypeError, match=r"^a functional is no array: the matrix stands first .* table\.to_numpy\(\)"
        ):
            make()
    assert np.array_equal((pandas.DataFrame(X).to_numpy() @ p.b).values, X)


def test_a_prior_of_what_is_reported_and_another_transform():
    p = pdmp.Parameters(tau=1)
    rows = pdmp.terms(lambda y, t: t + 0.5 * y**2 * np.exp(-2 * t), [Y], [p.tau])
    for transform in (Log(2.0), Interval()):
        with pytest.raises(ValueError, match=r"^`transforms` makes 'tau' .*, and HalfNormal\(.*\) is of the e\^x"):
            sum_of_terms(p, [rows], {"tau": HalfNormal(1.0)}, transforms={"tau": transform})
    model = sum_of_terms(p, [rows], {"tau": HalfNormal(1.0)}, transforms={"tau": Log()})
    assert model.constrain(np.zeros(1)) == {"tau": 1.0}


@pytest.mark.parametrize("shared", [2**28, 1])
def test_arrays_that_are_changed_afterwards(shared, monkeypatch):
    monkeypatch.setattr("pdmp.expressions.functionals.SHARED", shared)
    p, own, offset, y = pdmp.Parameters(b=2), X.copy(), OFFSET.copy(), COUNTS.astype(float)
    functional = own @ p.b
    rows = pdmp.families.poisson.rows(y, mu=functional)
    model = sum_of_terms(p, [rows])
    shifted = sum_of_terms(p, [pdmp.terms(lambda y, z: np.exp(z) - y * z, [y], [functional + offset])])
    x = np.array([0.3, -0.2])
    before = model.potential(x), shifted.potential(x), model.predict(x)
    own *= 2.0
    offset += 1.0
    y += 1.0
    after = model.potential(x), shifted.potential(x), model.predict(x)
    if shared == 1:  # large ones are not copied
        assert np.shares_memory(functional.values, own)
    else:
        assert before[:2] == after[:2] and np.array_equal(before[2], after[2])


@pytest.mark.parametrize("y", [1.0, [1.0]])
def test_one_response_is_not_that_of_all_rows(y):
    p = pdmp.Parameters(beta=2, scale=1)
    for data, at in (([y], [np.ones((3, 2)) @ p.beta]), ([y, np.ones(3)], [p.scale])):
        with pytest.raises(ValueError, match=r"equally many rows, got \[1, 3\]; what is the same in all rows is"):
            pdmp.terms(lambda *values: values[0] * values[-1], data, at)


def test_rows_of_other_labels_are_refused_wherever_they_enter_a_functional():
    """As pandas would align them; rows with the same labels, without, and a single one for all pass."""
    pandas = pytest.importorskip("pandas")
    y, g = pandas.Series([1.0, 2.0, 3.0]), pandas.Series([0, 1, 2])
    turned, others, X, p = y[::-1], g[::-1], np.ones((3, 2)), pdmp.Parameters(b=2, effect=3, log_scale=1)

    def loss(y, z):
        return (y - z) ** 2

    refused = [
        lambda: X @ p.b + y + turned,
        lambda: p.effect[g] + turned,
        lambda: turned + p.effect[g],
        lambda: p.effect[g] - turned,
        lambda: turned - p.effect[g],
        lambda: turned * p.effect[g],
        lambda: p.effect[g] / turned,
        lambda: p.effect[g] + p.effect[others],
        lambda: pdmp.terms(loss, [turned], [X @ p.b + y]),
        lambda: pdmp.terms(loss, [y], [p.effect[others]]),
        lambda: pdmp.terms(loss, at=[p.effect[g], 2.0 * p.effect[others] + X @ p.b]),
        lambda: pdmp.families.gaussian.rows(y, mu=-p.effect[others], sigma=p.log_scale),
    ]
    for call in refused:
        with pytest.raises(ValueError, match="has other row labels than .*, and would be taken by place"):
            call()
    x = np.array([[0.5, -1.0, 0.3, 0.4, 2.0, 0.1]])
    for z in (y + p.effect[g], p.effect[g] + y, p.effect[g.to_numpy()] + y, y.to_numpy() + p.effect[g]):
        np.testing.assert_allclose(z.at(x), [[1.3, 2.4, 5.0]])
    np.testing.assert_allclose((y - p.effect[g] - y[:1]).at(x), [[-0.3, 0.6, 0.0]], atol=1e-15)
    one = pdmp.terms(loss, [turned.to_numpy()], [(y * p.effect[g] / y + y.to_numpy()) * 1.0 + p.log_scale])
    assert one.n == 3


def stored_as(dtype, grouped=False):
    """Counts and a scale at a matrix of this type, whose numbers are of float32 all the same."""
    p, of = pdmp.Parameters(rate=2, effect=G, log_tau=1), X.astype(np.float32).astype(dtype)
    functional = 0.5 * p.log_tau - (-(of @ p.rate)) + of[:, ::-1] @ p.rate  # twice at each rate
    functional = functional + p.effect[GROUP] + OFFSET.astype(np.float32) if grouped else functional
    rows = pdmp.terms(lambda y, z, t: np.exp(z) - y * z + (z - t) ** 2, [COUNTS], [functional, p.log_tau])
    more = pdmp.terms(lambda z: 0.5 * z**2, [], [p.effect[np.arange(G)]])
    return sum_of_terms(p, [rows, more], {"rate": Normal(0.0, 1.0), "log_tau": Normal(0.0, 2.0)})


@pytest.mark.parametrize("grouped", [False, pytest.param(True, marks=[pytest.mark.compiled, pytest.mark.release])])
def test_a_matrix_of_float32_is_kept_and_computed_with_in_double(grouped):
    """All that is computed is that of its numbers in double, which are the same."""
    double, single = stored_as(float, grouped), stored_as(np.float32, grouped)
    assert (double.values.dtype, single.values.dtype) == (np.float64, np.float32)
    x, v = np.random.default_rng(3).standard_normal((2, double.dim))
    both = []
    for model in (double, single):
        out = np.zeros(model.dim)
        model.native.partial_curvature_bounds_within(x, v, 0.3, out)
        root = np.linalg.cholesky(np.linalg.inv(model.hessian(x) + np.eye(model.dim)))
        blocks = [np.ravel(part) for piece in model.pieces() for part in model.row_block(*piece, x, root)]
        some = model.some_rows(np.array([1, 5, N + 1]))
        both.append([
            model.potential(x), model.gradient(x), model.hessian(x), model.sparse_hessian(x).toarray(), out, *blocks,
            some.gradient(x), model.native.curvature_bound_within(x, v, 0.3), model.pointwise_log_likelihood(x),
            model.native.remainder_rates(x, x + v, v),
        ])  # fmt: skip
    for a, b in zip(*both, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "make", [pdmp.LocalBPS, RegressionBoomerang, pdmp.ZigZag, lambda model: pdmp.ZigZag(model, thinning="local")]
)
def test_paths_on_a_matrix_of_float32_are_those_of_its_numbers(make):
    one, other = (
        run_chain(make(stored_as(dtype)), np.zeros(3 + G), 2, events=15).finish().xs for dtype in (float, np.float32)
    )
    assert len(one) > 10
    np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-9)


def test_columns_of_double_beside_a_matrix_of_float32_lose_nothing():
    """In one functional, and in two of a term: numbers that float32 cannot hold are computed with as they are."""
    rng = np.random.default_rng(8)
    single, w, x = rng.standard_normal((50, 2)).astype(np.float32), rng.standard_normal(50), rng.standard_normal(3)
    p = pdmp.Parameters(rate=2, base=1)
    of_rate, of_base = single.astype(float) @ x[:2], w * x[2]
    np.testing.assert_allclose((single @ p.rate + w * p.base).at(x[None])[0], of_rate + of_base, rtol=0.0, atol=1e-14)
    rows = pdmp.terms(lambda z, u: 0.5 * (z - 2.0 * u) ** 2, at=[single @ p.rate, w * p.base])
    model = pdmp.models.sum_of_terms(p, [rows], priors={"rate": Flat(), "base": Flat()})
    assert model.potential(x) == pytest.approx(0.5 * np.sum((of_rate - 2.0 * of_base) ** 2), rel=1e-12)


def test_a_matrix_of_float32_takes_its_own_memory():
    """A copy of it, and one beside what all rows share, of n x (10 + 1); in double the last alone is more."""
    n = 20_000
    x, y, p = np.ones((n, 10), np.float32), np.ones(n), pdmp.Parameters(rate=10, log_sigma=1)
    tracemalloc.start()
    try:
        rows = pdmp.terms(lambda y, z, s: s + (y - z) ** 2 * np.exp(-s), [y], [x @ p.rate, p.log_sigma])
        model = sum_of_terms(p, [rows])
        del rows
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert model.values.nbytes == 4 * 11 * n and held < 1.2 * (model.values.nbytes + 8 * n)


def test_what_bounds_alone_need_is_derived_where_it_is_asked_for():
    """Of m functionals there are some m⁴/24 fourth derivatives: a model of many is made without them."""
    p = pdmp.Parameters(b=3)
    rows = pdmp.terms(lambda u, v, w: nodes.softplus(u + nodes.softplus(v + w)), at=[p.b[k] for k in range(3)])
    model = pdmp.models.sum_of_terms(p, [rows], priors={"b": Normal(0.0, 1.0)})
    (derived,) = model._derivatives
    assert model.gradient(np.zeros(3)).shape == (3,) and not {"third", "third_and_fourth"} & set(vars(derived))
    ((third, fourth),) = model.enclosures
    assert third is model.enclosures[0][0] is derived.third and len(third.results) == 10 < len(fourth.results) == 40
