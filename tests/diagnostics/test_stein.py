"""Stein discrepancies against finite differences and plain double sums; bad input."""

import itertools
import math

import numpy as np
import pytest

import pdmp
from pdmp.diagnostics import fssd, ksd, scores, sliced_ksd, stein, stein_thin
from pdmp.diagnostics.stein import sliced
from pdmp.diagnostics.stein.adam import maximise
from pdmp.diagnostics.stein.finite_set import Witness
from pdmp.diagnostics.stein.kernels import array_profile, median_distance
from pdmp.diagnostics.stein.pairs import TILE, Pairs
from pdmp.diagnostics.stein.sliced import _slice_gradient
from pdmp.models import Gaussian

pytestmark = pytest.mark.exact

GAMMA = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
KERNELS = {
    "imq": (stein.imq(1.3), lambda rho: (1.69 + rho) ** -0.5),
    "power": (stein.imq(0.7, -0.3), lambda rho: (0.49 + rho) ** -0.3),
    "gaussian": (stein.gaussian(1.5), lambda rho: np.exp(-rho / 4.5)),
}


def draws(n=9, d=3, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((n, d))


def stein_matrix(x, s, kernel="imq", *, preconditioner=None):
    """The matrix of all k_π(xᵢ, xⱼ)."""
    pairs, out = Pairs(x, s, kernel, preconditioner), np.zeros((len(x), len(x)))
    for i, row in enumerate(out):
        pairs.add_row(i, row)
    return out


def by_differences(k, x, y, s, t, h=1e-3):
    """s·t k + s·∇_y k + t·∇_x k + ∇_x·∇_y k with fourth-order central differences of k(x, y)."""
    rule = [(-2, 1.0 / 12.0), (-1, -2.0 / 3.0), (1, 2.0 / 3.0), (2, -1.0 / 12.0)]
    total = s @ t * k(x, y)
    for e, sj, tj in zip(h * np.eye(len(x)), s, t, strict=True):
        total += sj * sum(w * k(x, y + m * e) for m, w in rule) / h
        total += tj * sum(w * k(x + m * e, y) for m, w in rule) / h
        total += sum(w * u * k(x + m * e, y + n * e) for (m, w), (n, u) in itertools.product(rule, rule)) / h**2
    return total


@pytest.mark.parametrize("gamma", [None, GAMMA, 2.0, np.array([1.0, 2.0, 0.5])], ids=["I", "Γ", "2", "diagonal"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_stein_kernel_is_that_of_finite_differences(name, gamma):
    kernel, phi = KERNELS[name]
    x, s = draws(4)
    full = np.eye(3) if gamma is None else np.diag(np.broadcast_to(gamma, 3)) if np.ndim(gamma) < 2 else gamma
    inverse = np.linalg.inv(full)
    found = stein_matrix(x, s, kernel, preconditioner=gamma)
    for i, j in itertools.product(range(4), range(4)):
        expected = by_differences(lambda a, b: phi((a - b) @ inverse @ (a - b)), x[i], x[j], s[i], s[j])
        assert found[i, j] == pytest.approx(expected, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("n, d", [(8, 3), (9, 3), (9, 4), (TILE + 3, 1), (2, 2)])
@pytest.mark.parametrize("gamma", [None, "covariance"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_sums_are_those_of_the_whole_matrix(n, d, gamma, name):
    """For odd and even numbers of draws and coordinates, more than a tile of draws, weights, and any threads."""
    kernel, (x, s) = KERNELS[name][0], draws(n, d)
    if gamma is not None and n <= d:
        gamma = 1.5
    matrix = stein_matrix(x, s, kernel, preconditioner=gamma)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12, atol=1e-13)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-9
    options = {"kernel": kernel, "preconditioner": gamma}
    assert ksd(x, s, threads=1, **options) == pytest.approx(math.sqrt(matrix.sum()) / n, rel=1e-11)
    off = matrix.sum() - np.trace(matrix)
    assert ksd(x, s, statistic="u", **options) == pytest.approx(off / (n * (n - 1)), rel=1e-9, abs=1e-12)
    weights = np.random.default_rng(2).random(n)
    weights /= weights.sum()
    assert ksd(x, s, weights=weights, **options) == pytest.approx(math.sqrt(weights @ matrix @ weights), rel=1e-11)
    assert ksd(x, s, threads=3, **options) == ksd(x, s, threads=1, **options)


def test_the_preconditioner_is_a_change_of_units_of_the_distances_only():
    x, s = draws(50)
    assert ksd(x, s, preconditioner=np.eye(3)) == pytest.approx(ksd(x, s), rel=1e-12)
    assert ksd(x, s, preconditioner=4.0) == pytest.approx(math.sqrt(2.0) * ksd(x, s, stein.imq(2.0)), rel=1e-12)


def test_scores_are_minus_the_gradient():
    model = Gaussian([1.0, 2.0], [[2.0, 0.3], [0.3, 1.0]])
    x = np.random.default_rng(5).standard_normal((4, 2))
    np.testing.assert_allclose(scores(model, x), -np.array([model.gradient(row) for row in x]), rtol=1e-12)


@pytest.mark.parametrize(
    "error", [ConnectionError("lost"), ValueError("lost"), IndexError("lost"), MemoryError("lost")]
)
def test_what_a_function_raises_is_raised_by_its_scores(error):
    """And by no others, before or after; not as if an argument were wrong."""
    fails = [False]

    def potential(x):
        if fails[0]:
            raise error
        return 0.5 * float(x @ x), x.copy()

    model, x = pdmp.models.from_function(potential, 2), np.array([[1.0, 2.0], [0.5, -1.0]])
    model.failure = KeyError("of before")
    np.testing.assert_allclose(scores(model, x), -x)
    fails[0] = True
    with pytest.raises(type(error), match="^lost$"):
        pdmp.diagnostics.scores(model, x)
    fails[0] = False
    np.testing.assert_allclose(scores(model, x), -x)


# ---------------------------------------------------------------------------------------------------------------
# Finite sets of locations


def test_steps_of_adam_by_hand():
    """The published averages from their sums, each gradient with the weight that it has left."""
    start, c, rate = np.array([1.0, -2.0]), np.array([3.0, 0.5]), 0.3
    v, seen = start, []
    for k in range(1, 6):
        seen.append(c * (1.0 - v))
        ages = np.arange(k)[::-1, None]
        first = np.sum(0.1 * 0.9**ages * seen, axis=0) / (1.0 - 0.9**k)
        second = np.sum(0.001 * 0.999**ages * np.square(seen), axis=0) / (1.0 - 0.999**k)
        v = v + rate * first / (np.sqrt(second) + 1e-8)
        np.testing.assert_allclose(maximise(lambda v: c * (1.0 - v), start, k, rate), v, rtol=1e-10)
    assert start.tolist() == [1.0, -2.0]


def test_fssd_by_hand():
    """One draw's feature in one dimension: s exp(-Δ²/2h²) - Δ/h² exp(-Δ²/2h²)."""
    x, s, v, h = np.array([[0.5], [1.0], [-0.2]]), np.array([[0.3], [-1.0], [0.1]]), np.array([[0.1]]), 0.8
    k = np.exp(-((x - v) ** 2) / (2.0 * h * h))
    xi = (s * k - (x - v) / h**2 * k)[:, 0]
    options = {"kernel": stein.gaussian(h), "optimise": False}
    assert fssd(x, s, v, **options) == pytest.approx(abs(xi.mean()), rel=1e-12)
    assert fssd(x[:, 0], s[:, 0], v, **options) == fssd(x, s, v, **options)
    unbiased = (xi.sum() ** 2 - (xi**2).sum()) / 6.0
    assert fssd(x, s, v, statistic="u", **options) == pytest.approx(unbiased, rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_fssd_is_the_double_sum_of_its_features(name):
    (x, s), (kernel, phi) = draws(7), KERNELS[name]
    v = np.random.default_rng(6).standard_normal((4, 3))
    h = 1e-5
    features = np.zeros((7, 4, 3))
    for p, j in itertools.product(range(7), range(4)):

        def k(a, j=j):
            return phi((a - v[j]) @ (a - v[j]))

        slope = np.array([(k(x[p] + e) - k(x[p] - e)) / (2.0 * h) for e in h * np.eye(3)])
        features[p, j] = s[p] * k(x[p]) + slope
    gram = np.einsum("ajd,bjd->ab", features, features) / 12.0
    expected = (gram.sum() - np.trace(gram)) / 42.0
    assert fssd(x, s, v, optimise=False, statistic="u", kernel=kernel) == pytest.approx(expected, rel=1e-7)
    assert fssd(x, s, v, optimise=False, kernel=kernel) == pytest.approx(math.sqrt(gram.sum()) / 7.0, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["fssd", "power"])
def test_the_locations_climb(criterion):
    rng = np.random.default_rng(8)
    x = rng.standard_normal((100, 2))
    s = -x / 2.0
    for kernel in ("gaussian", "imq"):
        still, moved = (
            fssd(x, s, 5, optimise, seed=1, statistic="u", kernel=kernel, criterion=criterion, iterations=30, rate=0.07)
            for optimise in (False, True)
        )
        assert moved > 1.05 * still


@pytest.mark.parametrize("n", [20, 259])
@pytest.mark.parametrize("criterion", ["fssd", "power"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_gradient_of_the_criterion(name, criterion, n):
    x, s = draws(n)
    v = np.random.default_rng(9).standard_normal((3, 3))

    def objective(v):
        delta = x[:, None] - v
        phi, first, *_ = array_profile(KERNELS[name][0], (delta**2).sum(axis=2))
        flat = (s[:, None] * phi[..., None] + 2.0 * first[..., None] * delta).reshape(n, -1) / 3.0
        mean = flat.mean(axis=0)
        squared = (n * mean @ mean - (flat**2).sum() / n) / (n - 1)
        variance = 4.0 * np.mean((flat @ mean) ** 2) - 4.0 * (mean @ mean) ** 2
        return squared if criterion == "fssd" else squared / math.sqrt(variance + 1e-6)

    witness = Witness(x, s, KERNELS[name][0])
    if criterion == "fssd":
        assert witness.squares(v)[0] == pytest.approx(objective(v), rel=1e-10)
    found = witness.gradient(v, criterion)
    h = 1e-5
    for place in np.ndindex(v.shape):
        e = np.zeros_like(v)
        e[place] = h
        expected = (objective(v + e) - objective(v - e)) / (2.0 * h)
        assert found[place] == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_the_locations_are_different_ones():
    """One location repeated would have the same witness: J of them drawn anew do not."""
    x, s = draws(50)
    one, ten = fssd(x, s, 1, optimise=False, seed=3), fssd(x, s, 10, optimise=False, seed=3)
    assert abs(one - ten) > 1e-6


# ---------------------------------------------------------------------------------------------------------------
# Slices and thinning


def test_a_slice_is_the_stein_kernel_on_a_line():
    """ξ by finite differences of k of the projections."""
    x, s = draws(5)
    g = np.array([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, np.sqrt(0.5)]])
    kernel, phi = KERNELS["gaussian"]
    found = sliced_ksd(x, s, g, optimise=False, kernel=kernel, statistic="u")
    total = 0.0
    for j in range(3):
        u, r = x @ g[j], np.eye(3)[j]
        width = np.median([abs(a - b) for a, b in itertools.combinations(u, 2)])
        for a, b in itertools.permutations(range(5), 2):

            def k(y, z, g=g[j], width=width):
                return phi(((y - z) @ g / width) ** 2)

            # along r only: its derivatives are those of u times r·g
            total += by_differences(
                lambda p, q, k=k, a=a, b=b, r=r: k(x[a] + p[0] * r, x[b] + q[0] * r),
                np.zeros(1),
                np.zeros(1),
                s[a, j : j + 1],
                s[b, j : j + 1],
            )
    assert found == pytest.approx(total / 20.0, rel=1e-6)


@pytest.mark.parametrize("kernel", [stein.imq(1.2, -0.4), stein.gaussian(0.9)], ids=["imq", "gaussian"])
def test_the_gradient_of_a_slice(kernel):
    x, s = draws(12)

    def objective(g):
        unit = g / np.linalg.norm(g)
        u, a = x @ unit / 1.3, unit[1] / 1.3
        delta, apart = u[:, None] - u, s[:, None, 1] - s[:, 1]
        phi, first, second, _ = array_profile(kernel, delta**2)
        xi = np.outer(s[:, 1], s[:, 1]) * phi - 2.0 * first * a * delta * apart
        xi -= 2.0 * a * a * first + 4.0 * a * a * second * delta**2
        return xi.sum() - np.trace(xi)

    g, h = np.array([0.3, 0.8, -0.4]), 1e-6
    found = _slice_gradient(g, x, s[:, 1], 1, kernel, 1.3)
    expected = [(objective(g + e) - objective(g - e)) / (2.0 * h) for e in h * np.eye(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_thinning_is_the_greedy_choice():
    for seed in range(10):
        x, s = draws(12, seed=seed)
        matrix = stein_matrix(x, s, preconditioner="covariance")
        chosen = []
        for _ in range(8):
            cost = 0.5 * np.diag(matrix) + matrix[:, chosen].sum(axis=1)
            chosen.append(int(np.argmin(cost)))
        assert stein_thin(x, s, 8).tolist() == chosen


def test_thinned_draws_are_better_than_the_first_ones():
    rng = np.random.default_rng(11)
    x = np.concatenate([3.0 + rng.standard_normal((200, 2)), rng.standard_normal((300, 2))])
    chosen = stein_thin(x, -x, 40)
    assert ksd(x[chosen], -x[chosen]) < 0.7 * ksd(x[250:290], -x[250:290])
    assert np.mean(chosen >= 200) > 0.8


def test_draws_far_from_the_origin_keep_their_digits():
    """Preconditioned distances are those of the draws moved to the origin; L⁻¹x of 1e12 has lost four digits."""
    x, s = draws(30)
    x = np.round(x * 2.0**10) / 2.0**10  # so that moving them is exact
    near, far = (ksd(x + offset, s, preconditioner=GAMMA) for offset in (0.0, 2.0**40))
    assert far == pytest.approx(near, rel=1e-12)


def test_medians_look_at_the_whole_run():
    rng = np.random.default_rng(12)
    y = np.concatenate([0.01 * rng.standard_normal((1_000, 1)), 10.0 * rng.standard_normal((3_000, 1))])
    assert median_distance(y) > 1.0


def test_u_statistics_with_unequal_weights():
    x, s = draws(6)
    weights = np.array([0.4, 0.2, 0.1, 0.1, 0.1, 0.1])
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, 0.0)
    expected = (pairs * stein_matrix(x, s)).sum() / pairs.sum()
    assert ksd(x, s, statistic="u", weights=weights) == pytest.approx(expected, rel=1e-10)


def test_random_locations_are_as_wide_as_the_draws():
    x, _ = draws(50)
    wide = fssd(1_000.0 * x, -x / 1_000.0, optimise=False)
    assert wide == pytest.approx(fssd(x, -x, optimise=False) / 1_000.0, rel=1e-4)
    away = fssd(x + [30.0, -7.0, 200.0][: x.shape[1]], -x, optimise=False, seed=3)  # and about their mean
    assert away == pytest.approx(fssd(x, -x, optimise=False, seed=3), rel=1e-9)


def test_slices_are_searched_on_other_draws_than_they_are_used_on(monkeypatch):
    x, s = draws(40)
    x[::2] *= 3.0
    found = sliced_ksd(x, s, iterations=0)
    assert found == pytest.approx(sliced_ksd(x[1::2], s[1::2], optimise=False), rel=1e-12)
    monkeypatch.setattr(sliced, "SLICE_DRAWS", 6)  # of 20: every third of them
    few = sliced_ksd(x, s, iterations=3)
    monkeypatch.undo()
    g = sliced._optimise_slices(x[::6], s[::6], np.eye(3), "imq", 3, 0.05)
    np.testing.assert_allclose((g**2).sum(axis=1), 1.0, rtol=1e-12)
    assert few == pytest.approx(sliced_ksd(x[1::2], s[1::2], g, optimise=False), rel=1e-12) and abs(few - found) > 1e-3


@pytest.mark.parametrize("function", [ksd, fssd, sliced_ksd])
@pytest.mark.parametrize("scale", [1e65, 1e160, 1e300])
def test_draws_of_a_chain_that_diverged(function, scale):
    """Sums of squares of 1e160 overflow, covariances before them."""
    x, s = draws(12)
    for statistic in ("v", "u"):
        assert function(scale * x, s, statistic=statistic) == math.inf
        assert function(x, scale * s, statistic=statistic) == math.inf
    with pytest.raises(ValueError, match="leave out the draws of a chain that diverged"):
        stein_thin(scale * x, s, 3)


def test_draws_far_out_still_have_a_number():
    x, s = draws(12)
    for options in ({}, {"kernel": "gaussian"}, {"preconditioner": "covariance"}):
        assert 1e50 < ksd(1e55 * x, -1e55 * x, **options) < 1e60
    assert 1e50 < fssd(1e55 * x, -1e55 * x, 2, optimise=False) < 1e60
    assert 0.0 < ksd(1e55 * x, s) < 10.0


# ---------------------------------------------------------------------------------------------------------------
# Bad input

X, S = draws(6)
CASES = {
    "nan draws": (lambda: ksd(np.where(X > 0.3, np.nan, X), S), "`x` must be finite"),
    "nan scores": (lambda: fssd(X, np.full_like(S, np.inf)), "`scores` must be finite; 6 of 6"),
    "shape of scores": (lambda: ksd(X, S[:5]), "`scores` must have the shape"),
    "shape of x": (lambda: ksd(X[None], S[None]), r"`x` must have shape \(draws, d\)"),
    "weights": (lambda: ksd(X, S, weights=np.full(6, 0.5)), "`weights` must sum to 1, they sum to 3"),
    "shape of weights": (lambda: ksd(X, S, weights=[1.0]), r"`weights` must have shape \(6,\)"),
    "statistic": (lambda: ksd(X, S, statistic="w"), "`statistic`"),
    "kernel": (lambda: ksd(X, S, "laplace"), "`kernel`.*'laplace'"),
    "one draw": (lambda: ksd(X[:1], S[:1], statistic="u"), "at least two draws"),
    "preconditioner": (lambda: ksd(X, S, preconditioner=-1.0), "positive definite"),
    "a singular covariance": (
        lambda: stein_thin(np.round(4.0 * X) @ [[1, 1, 0], [0, 0, 1], [0, 0, 0]], S, 2),
        "the covariance of the 6 draws is not positive definite: there are too few",
    ),
    "the covariance of one draw": (lambda: ksd(X[:1], S[:1], preconditioner="covariance"), "covariance of the 1 draws"),
    "its shape": (lambda: ksd(X, S, preconditioner=np.eye(2)), "`preconditioner` must be a number or of shape"),
    "its name": (lambda: ksd(X, S, preconditioner="mass"), "`preconditioner`.*'mass'"),
    "beta": (lambda: stein.imq(1.0, 0.5), r"`beta` must lie in \(-1, 0\)"),
    "c": (lambda: stein.imq(0.0), "`c`"),
    "bandwidth": (lambda: stein.gaussian(math.nan), "`bandwidth`"),
    "threads": (lambda: ksd(X, S, threads=0), "`threads`"),
    "locations": (lambda: fssd(X, S, np.zeros((3, 2))), r"`locations` must be finite and of shape \(J, 3\)"),
    "a part of a location": (lambda: fssd(X, S, 2.5), "`locations` must be a whole number, at least 1, got 2.5"),
    "no location": (lambda: fssd(X, S, 0), "`locations` must be a whole number, at least 1, got 0"),
    "criterion": (lambda: fssd(X, S, criterion="best"), "`criterion`"),
    "few draws for slices": (lambda: sliced_ksd(X[:3], S[:3]), "`optimise` needs at least four draws"),
    "slices": (lambda: sliced_ksd(X, S, np.zeros((3, 3))), "`slices`"),
    "size": (lambda: stein_thin(X, S, 0), "`size`"),
    "points": (lambda: scores(Gaussian(0.0, [1.0]), X), r"`x` must have shape \(draws, 1\)"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(name):
    make, message = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_the_matrix_that_was_left_out_says_what_to_take():
    with pytest.raises(AttributeError, match="stein_matrix was left out: ksd and stein_thin"):
        stein.stein_matrix  # noqa: B018
