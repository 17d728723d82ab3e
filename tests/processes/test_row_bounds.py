"""Bounds of single rows: what a row has beyond its expansion, at random points within the shells."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.models import sum_of_terms
from pdmp.models.priors import Normal
from pdmp.processes import row_bounds as row_bounds_module
from pdmp.processes.remainders import Shells
from pdmp.processes.row_bounds import Plan, Small, _norm, in_shells, row_bounds
from tests.checks import plain, plain_only

pytestmark = [
    pytest.mark.exact,
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:the loss `<lambda>` does not use"),
]

N = 12
RNG = np.random.default_rng(4)
X, Z, Y = RNG.standard_normal((N, 2)) / 2, RNG.standard_normal((N, 2)) / 2, RNG.standard_normal(N)
COUNTS, LABELS = RNG.poisson(2.0, N) * (np.arange(N) % 3 > 0), np.arange(N) % 2
t = pdmp.terms
P = pdmp.Parameters(a=2, b=2, c=1)
A, B, C = X @ P.a, Z @ P.b, P.c

ONE = {
    "poisson": (lambda y, z: t.exp(z) - y * z, COUNTS, [A]),
    "logistic": (lambda y, z: t.softplus(z) - y * z, LABELS, [A]),
    "probit": (lambda y, z: -t.log_ndtr((2 * y - 1) * z), LABELS, [A]),
    "cloglog": (lambda y, z: t.where(y > 0, -t.log1mexp(t.exp(z)), t.exp(z)), LABELS, [A + 0.5]),
    "student": (lambda y, z: 2.5 * t.log1p((y - z) ** 2 / 4), Y, [A]),
    "cosine": (lambda y, z: t.cos(z - y), Y, [A]),
}
SEVERAL = {
    "normal": (lambda y, m, s: s + 0.5 * (y - m) ** 2 * t.exp(-2 * s), Y, [A, C]),
    "negative binomial": (
        lambda y, z, s: -t.lgamma(y + t.exp(s)) + t.lgamma(t.exp(s)) - s * t.exp(s)
        + (y + t.exp(s)) * t.logaddexp(z, s) - y * z,
        COUNTS,
        [A, 0.3 * C + 1.0],
    ),
    "zero-inflated": (
        lambda y, z, w: t.where(y > 0, t.exp(z) - y * z + t.softplus(w), t.softplus(w) - t.logaddexp(w, -t.exp(z))),
        COUNTS,
        [A, B],
    ),
    "three": (lambda y, z, w, s: s + 0.5 * (y - z) ** 2 * t.exp(-2 * s) + t.softplus(w - z), Y, [A, B, 0.5 * C]),
    "shared": (lambda y, z, w, s: t.exp(0.5 * (z - w)) + t.sin(s + z), Y, [A, A + 0.5 * B, C]),
    "product": (lambda y, z, w: (y - z * w) ** 2, Y, [A + 1.0, A + B]),
}  # fmt: skip
EVERY = {**ONE, **SEVERAL}


def model_of(name):
    loss, data, at = EVERY[name]
    return sum_of_terms(P, pdmp.terms(loss, [data], at), {block: Normal(0.0, 1.0) for block in "abc"})


def ratios(model, anchor, root, weights, radius, factor, rng, draws=12):
    """|v·Rᵢ| over their bounds, at points of this norm and less and in random directions, and the worst ones."""
    scratch, rho, worst = model.scratch(), np.zeros(model.n_functionals), np.zeros(N)
    whole = np.diag(root) if root.ndim == 1 else root
    covariance = whole @ whole.T
    for draw in range(draws):
        for i in range(N):
            own = np.zeros(model.dim)
            model.add_term_gradient(rng.standard_normal(model.dim), i, own)  # a direction in which the row depends on x
            for y in (whole @ rng.standard_normal(model.dim), covariance @ own):
                size = math.sqrt(y @ np.linalg.solve(covariance, y))
                if size == 0.0:
                    continue
                share = 1.0 if draw % 2 else rng.uniform()
                y = y * (-1) ** draw * share * radius / size
                v = y if draw % 3 else whole @ rng.standard_normal(model.dim)
                speed = math.sqrt(v @ np.linalg.solve(covariance, v))
                found = abs(model.remainder_along(anchor, anchor + y, v, i, scratch, rho))
                bound = weights[i] * factor * speed * (share * radius) ** 2 / 2
                # What is computed is a small difference, of gradients of the order of 1.
                assert found <= bound * (1.0 + 1e-9) + 1e-12 * speed, (i, found, bound)
                worst[i] = max(worst[i], found / bound if bound > 0.0 else 0.0)
    return worst


@pytest.mark.usefixtures("few_radii")
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_no_row_is_above_its_bound(name, dense):
    model, rng = model_of(name), np.random.default_rng(9)
    anchor = 0.2 * rng.standard_normal(5)
    sd = np.array([0.1, 0.15, 0.2, 0.1, 0.05])
    root = np.linalg.cholesky(np.diag(sd) @ (0.6 * np.eye(5) + 0.4) @ np.diag(sd)) if dense else sd
    weights, radii, factors = row_bounds(model, anchor, root)
    assert np.all(weights >= 0.0) and factors[0] == 1.0 and np.all(np.diff(factors) >= 0.0)
    worst = 0.0
    for s in (0, len(radii) - 1):
        found = ratios(model, anchor, root, weights, radii[s], factors[s], rng, 6)
        worst = worst if s else found.max()
    assert worst > (0.2 if name in ONE else 0.02)  # nor is the bound absurd


@pytest.mark.parametrize("cuts", [False, True])
def test_shells_of_every_plan(cuts, monkeypatch):
    from pdmp.processes import row_bounds as module

    monkeypatch.setattr(module, "PLANS", ((math.inf, (0.5,), np.array([0.6, 1.1, 2.0]), cuts),))
    for name in ("zero-inflated", "poisson", "three"):
        model, anchor, sd = model_of(name), 0.1 * np.arange(5), np.full(5, 0.15)
        weights, radii, factors = row_bounds(model, anchor, sd)
        for radius, factor in zip(radii, factors, strict=True):
            ratios(model, anchor, sd, weights, radius, factor, np.random.default_rng(1), 2)


def test_of_one_functional_it_is_the_integral_of_the_largest_third_derivative():
    """Of e^z: 2 ∫ (1 - s) e^(η + s h) ds (√S)³, over steps of s."""
    model, sd = model_of("poisson"), np.full(5, 0.01)
    weights, radii, _ = row_bounds(model, np.zeros(5), sd)
    norm = 0.01 * np.sqrt((X**2).sum(axis=1))
    h = radii[0] * norm
    exact = 2.0 * (np.exp(h) - 1.0 - h) / h**2 * norm**3
    assert np.all(weights >= exact) and np.all(weights <= exact * np.exp(0.35 * h))


@plain_only
def test_the_norm_of_a_power_of_one_vector_is_its_own():
    """λ |Lᵀu|³ of λ u ⊗ u ⊗ u, of each lane, and of its second power where there are two orthogonal ones."""
    m, n, rng = 3, 4, np.random.default_rng(6)
    root = np.tril(rng.standard_normal((n, m, m))).transpose(1, 2, 0)
    small = Small(
        root, *np.zeros((2, m, m, n)), *np.zeros((3, m, m, m, n)), np.zeros(n), np.zeros((1, n)), np.zeros((4, n))
    )
    u, size = rng.standard_normal((m, n)), np.array([2.0, -0.3, 0.0, 5.0])  # a row without a remainder too
    plain(_norm)(size * np.einsum("an,bn,cn->abcn", u, u, u), n, small)
    exact = np.abs(size) * np.linalg.norm(np.einsum("ian,in->an", root, u), axis=0) ** 3
    assert np.all(small.norm >= exact * (1.0 - 1e-13)) and np.all(small.norm <= exact * (1.0 + 1e-11))
    small.root[:], cube = np.eye(m)[..., None], np.zeros((m, m, m, n))
    cube[0, 0, 0], cube[1, 1, 1] = size, 0.5 * size
    plain(_norm)(cube, n, small)
    np.testing.assert_allclose(small.norm, np.abs(size) * (1.0 + 0.5**16) ** 0.0625, rtol=1e-11)


def test_what_is_quadratic_has_no_remainder():
    model = sum_of_terms(P, pdmp.terms(lambda y, z, w: (y - z - 2 * w) ** 2, [Y], [A, B]))
    weights, _, _ = row_bounds(model, np.ones(5), np.ones(5))
    assert weights.tolist() == [0.0] * N


@pytest.mark.parametrize("row", [0, 7, N - 1])
@pytest.mark.parametrize("odd", [lambda z: abs(z) ** 3 / (1 + z), lambda z: t.exp(1e5 * z) - t.exp(2e5 * z)])
def test_a_row_without_a_bound_is_named(odd, row):
    """Of the second no derivative can be told at all, as one infinity is subtracted from another."""

    def jump(y, z):
        return t.where(y > 100, odd(z), t.exp(z))

    data = Y.copy()
    data[row] = 101.0
    first = pdmp.terms(lambda y, z: (y - z) ** 2, [Y], [A])
    model = sum_of_terms(P, [first, pdmp.terms(jump, [data], [A])])
    with pytest.raises(ValueError, match=f"no finite bound for row {row} of jump within .* standard dev") as caught:
        row_bounds(model, np.zeros(5), np.full(5, 3.0))
    assert "\n" not in str(caught.value)


def test_each_level_has_factors_of_its_own():
    levels = [[1.0, 3.0], [1.5, 8.0], [1.0, 2.0]]
    shells = Shells([1.0, 2.5], levels)
    for level, (near, far) in enumerate(levels):
        found = [shells.share(r, level) for r in (0.0, 1.0, 1.1, 2.5, 2.6)]
        assert found == [near, near, far, far, math.inf]
        assert shells.at(2.0, level) == 2.0 * far


def test_weights_and_factors_of_shells(monkeypatch):
    found = np.array([[[1.0, 0.0, 2.0]], [[1.5, 0.0, 8.0]], [[9.0, 0.0, 6.0]], [[math.inf, 0.0, 9.0]]])
    bounds = in_shells(found)
    assert bounds.weights.tolist() == [[1.0, 0.0, 2.0]] and bounds.factors.tolist() == [[1.0, 4.0, 9.0]]
    # A weight of nought is raised, and a shell for which all would be raised too much is left out.
    raised = in_shells(np.array([[[1.0, 0.0]], [[2.0, 1.0]], [[1.0, 1e7]]]))
    assert raised.weights.tolist() == [[1.0, 1e-6]] and raised.factors.shape == (1, 2)
    assert raised.factors[0, 1] == pytest.approx(1e6)
    groups = in_shells(found[:3], group=np.array([0, 1, 1]), groups=2)
    assert groups.factors.tolist() == [[1.0, 1.5, 9.0], [1.0, 4.0, 4.0]]
    crossed = in_shells(np.array([[[1.0] * 3], [[2.0, 3.0, 4.0]]]), group=np.array([[0, 1, 1], [2, 2, 3]]), groups=4)
    assert crossed.factors.tolist() == [[1.0, 2.0], [1.0, 4.0], [1.0, 3.0], [1.0, 4.0]]
    rng = np.random.default_rng(1)
    norms, share = np.cumsum(rng.exponential(size=(3, 2, 50)), axis=0), rng.random((2, 50))
    whole = in_shells(norms.copy(), share, np.arange(50) % 4, 4)
    monkeypatch.setattr(row_bounds_module, "PIECE", 7)
    parts = in_shells(norms.copy(), share, np.arange(50) % 4, 4)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    plan = Plan(100, 2.0)
    assert np.all(np.diff(plan.steps) > 0.0) and np.allclose(plan.shares.sum(axis=1), 1.0)
