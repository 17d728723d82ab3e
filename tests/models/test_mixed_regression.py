"""Regressions with group effects: terms, priors and natural parameters against SciPy, and bounds."""

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.expressions.tape import CURVATURE, GRADIENT, LOSS
from pdmp.models import families
from pdmp.models.priors import (
    LKJ,
    BetaBernoulli,
    Exponential,
    Flat,
    Gamma,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    Normal,
    StudentT,
    derivative,
    potential,
    second_derivative,
    second_derivative_bound,
    second_derivative_bound_until,
)
from pdmp.models.regressions import design
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import (
    THIRD,
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
    law_of,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression, mean_of, sd_of, standardise
from pdmp.processes.row_bounds import BY_FUNCTIONAL, Plan, in_shells
from tests.checks import assert_unbiased
from tests.models.helpers_mixed_regression import LAWS, ROWS, columns, mixed
from tests.oracles import likelihoods as oracle

pytestmark = pytest.mark.exact


def by_hand(law, X, y, g, offset, weights, natural):
    """Log-density of data and natural parameters, from SciPy's laws alone."""
    beta = np.array([natural["Intercept"], natural["x"], natural["w"]])
    z = X @ beta + offset + natural["1|g"][g] + natural["x|g"][g] * X[:, 1]
    if law is NormalLaw:
        terms = stats.norm.logpdf(y, z, natural["sigma"])
    elif law is StudentTLaw:
        terms = stats.t.logpdf(y, natural["nu"], z, natural["sigma"])
    elif law is LogitLaw:
        terms = stats.bernoulli.logpmf(y, special.expit(z))
    elif law is ProbitLaw:
        terms = stats.bernoulli.logpmf(y, stats.norm.cdf(z))
    elif law is PoissonLaw:
        terms = stats.poisson.logpmf(y, np.exp(z))
    else:
        alpha = natural["alpha"]
        terms = stats.nbinom.logpmf(y, alpha, alpha / (alpha + np.exp(z)))
    middle = np.average(X, axis=0, weights=weights)
    at_means = natural["Intercept"] + natural["x"] * middle[1] + natural["w"] * middle[2]
    prior = stats.norm.logpdf(at_means, 1.0, 2.0) + stats.t.logpdf(natural["x"], 3.0, 0.5, 1.0)
    prior += stats.norm.logpdf(natural["w"], 0.0, 0.1)
    prior += stats.norm.logpdf(natural["sd(g)"], 0.0, 1.5) + stats.t.logpdf(natural["sd(x|g)"], 3.0)
    prior += stats.norm.logpdf(natural["1|g"], 0.0, natural["sd(g)"]).sum()
    prior += stats.norm.logpdf(natural["x|g"], 0.0, natural["sd(x|g)"]).sum()
    if "sigma" in natural:
        prior += stats.t.logpdf(natural["sigma"], 4.0, 0.0, 2.0)
    if "nu" in natural:
        prior += stats.gamma.logpdf(natural["nu"], 2.0, scale=10.0)
    if "alpha" in natural:
        prior += stats.cauchy.logpdf(natural["alpha"])
    return terms * weights, prior


def log_volume(model, x, natural):
    """log |d natural / dx| up to a constant: logarithms, and of effects that are not centred their spread."""
    names = [g.sd_name for g in model.groups] + list(model.likelihood.dispersions)
    total = sum(math.log(natural[name]) for name in names)
    return total + sum(3 * math.log(natural[g.sd_name]) for k, g in enumerate(model.groups) if not model.centred[k])


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_potential_is_the_density_of_natural_parameters(law, centred):
    model, *data = mixed(law, centred)
    rng, differences, expected = np.random.default_rng(1), [], []
    points = model.initial + 0.4 * rng.standard_normal((4, model.dim))
    for x in points:
        natural = {name: value[()] for name, value in model.constrain(x).items()}
        terms, prior = by_hand(law, *data, natural)
        assert np.allclose(model.pointwise_log_likelihood(x), terms, rtol=1e-9, atol=1e-9)
        expected.append(terms)
        differences.append(model.potential(x) + terms.sum() + prior + log_volume(model, x, natural))
    assert np.ptp(differences) < 1e-9 * (1.0 + np.abs(differences).max())
    assert np.allclose(model.pointwise_log_likelihood(points[None]), [expected], rtol=1e-9, atol=1e-9)
    model.check_gradient(points=2, data=4)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_means(law):
    """The expected response of many draws."""
    likelihood, a, c = law(), 0.3, 1.5
    z, n = np.array([-0.5, 0.8]), 40_000
    drawn = likelihood.draw(
        np.broadcast_to(z, (n, 2)), np.full((n, 1), a), np.full((n, 1), c), np.random.default_rng(0)
    )
    assert_unbiased(drawn.reshape(200, -1, 2).mean(axis=1), likelihood.mean(z), resolution=0.15)


def some_datum(law, rng, far=1.0):
    """(z, y, a, b), y as it is stored."""
    z, a, b = rng.normal(0.0, 1.5), rng.normal(0.3, 1.0), rng.normal(1.0, 1.2)
    if law in (LogitLaw, ProbitLaw):
        return z, rng.choice([-1.0, 1.0]), a, b
    if law in (PoissonLaw, NegativeBinomialLaw):
        return z, float(rng.poisson(np.exp(rng.normal(0.0, 1.5)) * far)), a, b
    return z, rng.normal(0.0, 2.0) * rng.choice([1.0, 5.0]) * far, a, b


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_derivatives_are_those_by_hand(law):
    """Of one datum and of many; and those of ℓ'' by differences."""
    rng, m, h = np.random.default_rng(0), 1 + len(law.dispersions), 1e-4

    def at(which, z, y, a, b):
        return law.tapes[which](np.array([[y]]), np.array([[z], [a], [b]]))[:, 0]

    for k in range(60):
        z, y, a, b = some_datum(law, rng, 1.0 if k else 20.0)
        gradient, hessian = (f(law, z, y, a, b) for f in (oracle.gradient, oracle.hessian))
        pairs = itertools.combinations_with_replacement(range(3), 2)
        hessian = [one for one, pair in zip(hessian, pairs, strict=True) if pair[1] < m]
        for which, expected in ((GRADIENT, gradient[:m]), (CURVATURE, [*gradient[:m], *hessian])):
            found = at(which, z, y, a, b)
            size = 1.0 + np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * size)
        constant = at(LOSS, z, y, a, b)[0] - at(LOSS, z + 0.3, y, a, b)[0]
        given = 0.5 * (y + 1.0) if law in (LogitLaw, ProbitLaw) else y
        expected = law.log_density(z + 0.3, given, a, b) - law.log_density(z, given, a, b)
        assert constant == pytest.approx(expected, rel=1e-9, abs=1e-9)
        for k, step in enumerate(np.eye(3)[:m] * h):
            ahead, behind = (
                oracle.hessian(law, z + s * step[0], y, a + s * step[1], b + s * step[2])[0] for s in (1, -1)
            )
            third = at(THIRD, z, y, a, b)[k]
            assert third == pytest.approx((ahead - behind) / (2.0 * h), rel=1e-5, abs=1e-6 * (1.0 + abs(hessian[0])))
    data = [some_datum(law, rng) for _ in range(5)]
    lanes, y = np.array([[z, a, b][:m] for z, _, a, b in data]).T, np.array([[y for _, y, _, _ in data]])
    found = law.tapes[GRADIENT](y, lanes)
    for k, (z, y, a, b) in enumerate(data):
        np.testing.assert_allclose(found[:, k], oracle.gradient(law, z, y, a, b)[:m], rtol=1e-11, atol=1e-12)


def test_a_likelihood_is_pickled_by_its_name():
    for law in LAWS.values():
        assert pickle.loads(pickle.dumps(law)) is law
    for family in (families.gamma, families.gamma.linked(mu="identity")):
        other = pickle.loads(pickle.dumps(law_of(family)))
        assert (other.name, other.dispersions) == ("gamma", ("shape",)) and other.family.links == family.links
    of_its_own = pdmp.Family("gamma", families.gamma.loss, links={"mu": "log", "shape": "log"})
    other = pickle.loads(pickle.dumps(law_of(of_its_own)))
    assert (other.name, other.dispersions) == ("gamma", ("shape",)) and other.family is not families.gamma
    other = pickle.loads(pickle.dumps(law_of(families.binomial, ["trials"])))
    assert other.family is families.binomial and other.given == ("trials",)
    assert [law_of(family) for family in (families.binomial, families.mixture_poisson, families.cumulative)] == [
        None
    ] * 3
    assert law_of(families.poisson, ["trials"]) is None


#: Without those whose draws have no mean, or whose mean is one around a circle.
OF_ONE = [name for name, one in families.FAMILIES.items() if law_of(one) and name not in ("student_t", "von_mises")]


@pytest.mark.parametrize("name", OF_ONE)
def test_responses_of_rows_are_drawn_each_by_itself(name):
    """With dispersions of a draw, (S, 1): each row has zeros, mixtures and so on of its own, of the law's mean."""
    law, z, n = law_of(families.FAMILIES[name]), np.full((2, 4_000), 0.3), 4_000
    a = np.array([[0.2], [-0.3]])
    y, mean = law.draw(z, a, a, np.random.default_rng(11)), law.mean(z, a, a)
    assert y.shape == mean.shape == z.shape and np.ptp(mean, axis=1).max() < 1e-12
    error = y.std(axis=1) / math.sqrt(n)
    assert np.all(error > 0.0) and np.all(np.abs(y.mean(axis=1) - mean[:, 0]) < 5.0 * error)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_bounds_on_remainders_of_rows(law):
    """On and inside each shell, in random directions and steepest ones, no remainder is above its bound."""
    model, worst = mixed(law, centred=True)[0], 0.0
    if law not in (LogitLaw, ProbitLaw):
        model.target[3] = 20.0 * (1.0 + abs(model.target[3]))  # a response that is far out
    rng, anchor = np.random.default_rng(5), model.initial + 0.2
    scale, m, laws = rng.uniform(0.05, 0.3, model.dim), model.n_functionals, model.dim - model.n_dispersions
    plan, rho, scratch = Plan(ROWS, math.sqrt(model.dim) / 3.0), np.zeros(3), model.scratch()
    norms = plan.norms(model.enclosures[0], model.row_block(0, 0, ROWS, anchor, scale), BY_FUNCTIONAL)
    bounds = in_shells(norms)
    for i in range(0, ROWS, 3):
        features = np.zeros(model.dim)
        features[: model.n_fixed] = model.X[i]
        features[model.level[i]] = model.value[i]
        touched = features != 0.0
        touched[laws:] = True
        steepest = scale**2 * features / np.linalg.norm(scale * features)
        for s, radius in enumerate(plan.radii[: min(bounds.factors.shape[1], 6)]):
            for r, straight in itertools.product((radius, 0.7 * radius), (1.0, -1.0, 0.0, 0.0)):
                way = straight * steepest if straight else rng.normal(size=model.dim) * scale
                way[~touched] = 0.0
                x = anchor + way * r * (1.0 - 1e-9) / np.linalg.norm(way / scale)
                z, z0 = (model.native.margin(p, i) for p in (x, anchor))
                model.native.expand_margin(anchor, x, i, z, z0, scratch, rho)
                limits = norms[s, :, i] * 0.5 * r * r
                assert np.all(limits <= bounds.weights[:, i] * bounds.factors[0, s] * 0.5 * r * r * (1.0 + 1e-9))
                rounding = 1e-9 * (1.0 + np.abs(rho[:m]).max())
                assert np.all(np.abs(rho[:m]) <= limits + rounding)
                if s == 0:
                    worst = max(worst, ((np.abs(rho[:m]) - rounding) / np.maximum(limits, 1e-300)).max())
    assert worst > {StudentTLaw: 0.05, NegativeBinomialLaw: 0.1}.get(law, 0.4)


@pytest.mark.parametrize("offset, typical", [(0.0, True), (1e3, False)])
def test_the_stiffness_of_gauges_is_that_of_the_data(offset, typical, monkeypatch):
    """Of crossed groupings Σ weight |ℓ''| where the model begins, in pieces; their weights where that is 0."""
    monkeypatch.setattr(design, "PIECE", 4)
    rng, n = np.random.default_rng(6), 14
    y, offset, weights = np.arange(n) % 2, offset + rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    groups = [
        GroupColumn(f"1|{name}", name, tuple("abcd"[:k]), np.arange(n) // 2 % k, np.ones(n), HalfNormal(1.0))
        for name, k in (("g", 3), ("h", 4))
    ]
    options = {"intercept": 0, "offset": offset, "weights": weights}
    model = GroupIntercepts(np.ones((n, 1)), y, LogitLaw(), ["Intercept"], [Normal(0.3, 2.0)], groups, **options)
    p = special.expit(offset + 0.3)
    expected = np.sum(weights * p * (1.0 - p)) if typical else weights.sum()
    np.testing.assert_allclose(model.stiffness, [0.0, expected], rtol=1e-5)
    rows = np.bincount(groups[1].level, weights, 4)
    np.testing.assert_allclose(model.share, [0.0, 0.0, 0.0, *rows / rows.sum()], rtol=1e-13)
    with pytest.raises(ValueError, match="intercepts of groups are for a fixed intercept and groupings"):
        GroupIntercepts(np.ones((n, 1)), y, LogitLaw(), ["x"], [Normal(0.3, 2.0)], groups)


def test_coefficients_of_groups_are_the_same_law():
    """U(x) with w = β₀ + u is that of `MixedRegression` at the effects u, and so are the natural parameters."""
    rng, n = np.random.default_rng(6), 12
    X, y, g = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, (n, 2))]), rng.poisson(3.0, n), np.arange(n) % 3
    groups = [
        GroupColumn(f"{name}|g", "g", ("a", "b", "c"), g, X[:, j].copy(), HalfNormal(1.5 + j))
        for j, name in enumerate(["1", "w", "x"])
    ]
    arguments = (
        X,
        y,
        NegativeBinomialLaw(),
        ["Intercept", "w", "x"],
        [Normal(0.0, 2.0 - 0.5 * j) for j in range(3)],
        groups,
    )
    options = {"dispersion_priors": [HalfCauchy(1.0)], "intercept": 0}
    model, usual = GroupIntercepts(*arguments, **options), MixedRegression(*arguments, **options)
    usual.centred[:] = 1
    model.check_gradient(points=2, data=4)
    for _ in range(3):
        u = usual.initial + 0.5 * rng.standard_normal(usual.dim)
        x, natural = u.copy(), usual.constrain(u)
        effects = u[6:15].reshape(3, 3).copy()
        for k, column in enumerate(model.columns[1:], 1):  # slopes of the standardised columns
            x[6 + 3 * k : 9 + 3 * k] = u[k] + model.scale[k] * natural[f"{column}|g"]
            effects[0] += model.centre[k] * natural[f"{column}|g"]  # intercepts where the columns are at their means
        x[6:9] = u[0] + effects[0]
        assert model.potential(x) == pytest.approx(usual.potential(u), rel=1e-12)
        for name, value in natural.items():
            assert np.allclose(model.constrain(x)[name], value)
        assert np.allclose(model.margins(x), usual.margins(u))


def test_sorted_rows_are_the_same_posterior():
    rows = np.random.default_rng(0).permutation(ROWS)
    one, other = mixed(NegativeBinomialLaw)[0], mixed(NegativeBinomialLaw, order=rows)[0]
    x = one.initial + 0.3
    assert np.allclose(one.gradient(x), other.gradient(x), rtol=1e-10, atol=1e-10)
    assert np.allclose(one.constrain(x)["1|g"], other.constrain(x)["1|g"])
    _, _, y, *_ = mixed(NormalLaw)
    (key, values), *further = mixed(NormalLaw)[0].observed_data().items()  # in the units of the data
    assert key == "y" and np.array_equal(values, y) and not further


def test_a_weight_of_two_is_two_rows():
    """In the units, in which priors are, too."""
    weights, twice = np.ones(ROWS), np.append(np.arange(ROWS), 3)
    weights[3] = 2.0
    model = mixed(PoissonLaw, weights=weights)[0]
    both = mixed(PoissonLaw, order=twice, weights=None)[0]
    x = model.initial + 0.2
    assert both.n_data == ROWS + 1
    np.testing.assert_allclose(model.gradient(x), both.gradient(x), rtol=1e-12)
    np.testing.assert_allclose(model.potential(x), both.potential(x), rtol=1e-12)


@pytest.mark.parametrize("intercept", [0, None])
def test_columns_in_a_file_are_standardised_in_place_piece_by_piece(intercept, tmp_path, monkeypatch):
    monkeypatch.setattr(design, "PIECE", 3 * 4)  # 14 rows of 3 columns: the last piece is a shorter one
    rng = np.random.default_rng(4)
    X, y = columns(rng), rng.poisson(3.0, ROWS)
    X[:, 0] = 1.0 if intercept is not None else -0.3
    np.save(tmp_path / "X.npy", X)

    def model(X):
        return MixedRegression(X, y, PoissonLaw(), ["Intercept", "x", "w"], [Normal(0.0, 1.0)] * 3, intercept=intercept)

    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    other, one = model(X), model(mapped)
    for name in ("centre", "scale", "X", "numbers"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(mapped, one.X)
    np.testing.assert_allclose(one.gradient([0.2, 0.1, -0.1]), other.gradient([0.2, 0.1, -0.1]), rtol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "mode", "says"),
    [
        (lambda X: X, "r", "a memory-mapped `X` is standardised in place, and this one is read-only"),
        (lambda X: X.astype(np.int64), "r+", "float32 or float64 in C order; got int64"),
        (lambda X: X.T.copy().T, "r+", "float64 in another order"),
        (lambda X: np.where(X == X.max(), np.nan, X), "r+", "`X` must be finite, and has 1 values"),
    ],
)
def test_columns_in_a_file_that_cannot_be_standardised_stay_as_they_are(wrong, mode, says, tmp_path):
    rng = np.random.default_rng(4)
    np.save(tmp_path / "X.npy", wrong(columns(rng)))
    before = (tmp_path / "X.npy").read_bytes()
    X = np.load(tmp_path / "X.npy", mmap_mode=mode)
    with pytest.raises(ValueError) as error:
        MixedRegression(X, np.ones(ROWS), PoissonLaw(), ["a", "b", "c"], [Normal(0.0, 1.0)] * 3, intercept=0)
    assert says in str(error.value) and "\n" not in str(error.value)
    X.flush() if mode == "r+" else None
    assert (tmp_path / "X.npy").read_bytes() == before


def test_effects_that_are_centred_and_others():
    n = 200
    g = np.r_[np.zeros(100, int), np.ones(100, int)]
    groups = [
        GroupColumn("1|g", "g", (0, 1), g, np.ones(n), HalfNormal(1.0)),
        GroupColumn("1|h", "h", tuple(range(100)), np.arange(n) % 100, np.ones(n), HalfNormal(1.0)),
    ]
    model = MixedRegression(
        np.ones((n, 1)), np.arange(n) % 3, PoissonLaw(), ["Intercept"], [Normal(0.0, 1.0)], groups, intercept=0
    )
    assert model.centring() == ["not centred"] * 2
    model.centred[0] = 1
    assert model.centring() == ["centred", "not centred"]
    draws = np.random.default_rng(0).standard_normal((5, model.dim))
    natural = model.constrain(draws)
    assert np.array_equal(natural["1|g"], draws[:, 3:5])
    assert np.allclose(natural["1|h"], draws[:, 5:] * np.exp(draws[:, 2:3]))
    model.centred[:] = 1
    found = [model.prior_potential(x) - model.independent_potential(x) for x in draws]
    laws = [
        [stats.norm.logpdf(one[f"1|{g}"], 0.0, one[f"sd({g})"]).sum() for g in "gh"]
        for one in map(model.constrain, draws)
    ]
    assert np.ptp(np.add(found, np.sum(laws, axis=1))) < 1e-9


class OfCorrelation:
    """The law of artanh r, r a correlation of two variables."""

    def logpdf(self, w):
        return stats.beta.logpdf(0.5 * (1.0 + np.tanh(w)), 2.5, 2.5) - 2.0 * np.log(np.cosh(w))


@pytest.mark.parametrize(
    "prior, law",
    [
        (Normal(1.0, 2.0), stats.norm(1.0, 2.0)),
        (StudentT(3.0, 1.0, 2.0), stats.t(3.0, 1.0, 2.0)),
        (HalfNormal(2.0), stats.halfnorm(scale=2.0)),
        (HalfStudentT(3.0, 2.0), stats.t(3.0, 0.0, 2.0)),
        (HalfCauchy(2.0), stats.halfcauchy(scale=2.0)),
        (Exponential(2.0), stats.expon(scale=2.0)),
        (Gamma(2.5, 2.0), stats.gamma(2.5, scale=2.0)),
        (LKJ(2.5), OfCorrelation()),
        (Flat(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_priors(prior, law):
    x = np.linspace(-2.0, 1.5, 8)
    y = np.exp(x) if prior.positive else x
    expected = np.zeros(8) if law is None else -law.logpdf(y) - (x if prior.positive else 0.0)
    for factor in (1.0, 3.0):
        scaled = prior.scaled(factor)
        shift = math.log(factor) if prior.positive else 0.0
        points = x + shift if prior.positive else factor * x if prior.scales else x
        found = np.array([potential(*scaled.coded(), p) for p in points])
        assert np.ptp(found - expected) < 1e-10
        slopes = [derivative(*scaled.coded(), p) for p in points]
        h = 1e-6
        by_differences = [
            (potential(*scaled.coded(), p + h) - potential(*scaled.coded(), p - h)) / (2 * h) for p in points
        ]
        assert np.allclose(slopes, by_differences, atol=1e-7)
        bends = [second_derivative(*scaled.coded(), p) for p in points]
        by_differences = [
            (derivative(*scaled.coded(), p + h) - derivative(*scaled.coded(), p - h)) / (2 * h) for p in points
        ]
        assert np.allclose(bends, by_differences, atol=1e-7)
    assert np.all(np.diff(slopes) <= second_derivative_bound(*scaled.coded()) * np.diff(points) + 1e-12)
    until = np.array([second_derivative_bound_until(*scaled.coded(), p) for p in points[1:]])
    assert np.all(np.abs(np.diff(slopes)) <= until * np.diff(points) + 1e-12)
    assert not prior.positive or np.all(np.diff(slopes) >= 0.0)  # `RegressionZigZag` relies on that


@pytest.mark.parametrize(
    "call",
    [
        lambda: Normal(0.0, 0.0),
        lambda: HalfNormal(-1.0),
        lambda: Normal(math.nan, 1.0),
        lambda: Normal(-math.inf, 1.0),
        lambda: Normal(10**400, 1.0),
        lambda: HalfNormal(math.inf),
        lambda: HalfNormal(10**400),
        lambda: HalfNormal(True),
        lambda: BetaBernoulli(True, 1.0),
        lambda: BetaBernoulli(1.0, 0.0),
        lambda: BetaBernoulli(1.0, math.inf),
        lambda: BetaBernoulli("1", 1.0),
    ],
)
def test_numbers_of_priors_are_checked(call):
    with pytest.raises(ValueError, match="of (Normal|HalfNormal|BetaBernoulli) must be"):
        call()


def test_means_of_rows_with_weights_as_large_as_can_be():
    values = np.array([[1.0, 5.0], [3.0, -1.0], [8.0, 0.0]])
    for size in (1.0, 1e308, 1e-300):
        weight = size * np.array([1.0, 0.25, 0.75])
        np.testing.assert_allclose(mean_of(values, weight), [(1.0 + 0.75 + 6.0) / 2.0, (5.0 - 0.25) / 2.0], rtol=1e-14)
        assert sd_of(values[:, 0], weight) == pytest.approx(math.sqrt((1.0 + 2.25 + 48.0) / 2.0 - 3.875**2), rel=1e-14)


@pytest.mark.parametrize("intercept", [0, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_of_a_file_are_standardised_as_those_in_memory(intercept, weighted, tmp_path, monkeypatch):
    """In place and in pieces; a column that varies by rounding alone is divided by its size, and one of zeros by 1."""
    monkeypatch.setattr(design, "PIECE", 24)
    rng = np.random.default_rng(0)
    far, near = 1e9 + 1e-6 * (np.arange(14) % 2), 1e-14 * rng.normal(0.0, 1.0, 14)
    X = np.column_stack([np.ones(14), rng.normal(50.0, 2.0, 14), np.full(14, -3.0), np.zeros(14), far, near])
    weight = rng.uniform(0.5, 2.0, 14) if weighted else None
    np.save(tmp_path / "X.npy", X)
    mapped, ours = np.load(tmp_path / "X.npy", mmap_mode="r+"), X.copy()
    centre, scale = standardise(mapped, intercept, weight)
    mean = np.average(X, axis=0, weights=weight)
    sd = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(centre, [0.0, *mean[1:]] if intercept == 0 else np.zeros(6), rtol=1e-13)
    np.testing.assert_allclose(scale, [1.0, sd[1], 3.0, 1.0, far[1], sd[5]], rtol=1e-12)
    np.testing.assert_allclose(mapped, (X - centre) / scale, rtol=1e-12, atol=1e-13)
    for one, other in zip(standardise(ours, intercept, weight), (centre, scale), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(ours, mapped, rtol=1e-12, atol=1e-13)


def test_a_group_column_of_zeros_is_left_as_it_is():
    g = GroupColumn("x|g", "g", ("a", "b"), np.arange(4) % 2, np.zeros(4), HalfNormal(1.0))
    model = MixedRegression(np.ones((4, 1)), [0, 1, 1, 1], LogitLaw(), ["Intercept"], [Normal(0.0, 1.0)], [g])
    assert model.group_scale.tolist() == [1.0] and not model.value.any()


def test_numbers_of_priors_may_be_those_of_numpy():
    made = Normal(np.float32(0.5), np.int64(2)), BetaBernoulli(np.uint8(3), np.float32(1.5))
    assert repr(made) == "(Normal(mean=0.5, sd=2), BetaBernoulli(a=3, b=1.5))"


def labels(law=LogitLaw, n=8, **options):
    rng = np.random.default_rng(2)
    X = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, n)])
    model = MixedRegression(
        X,
        np.arange(n) % 2,
        law(),
        ["Intercept", "x"],
        [Normal(0.0, 1.5), Normal(0.2, 0.5)],
        intercept=0,
        weights=rng.uniform(0.5, 2.0, n),
        **options,
    )
    return model


def test_prior_inclusion_and_slab():
    model = labels(inclusion=[1.0, 0.3])
    assert model.prior_inclusion().tolist() == [1.0, 0.3]
    expected = stats.norm.pdf(0.0, model.numbers[:, 0], model.numbers[:, 1])
    assert np.allclose(model.slab_density(), expected)
    X, priors = np.array([[1.0, 2.0], [2.0, 0.0], [4.0, 1.0]]), [StudentT(3.0, 0.0, 1.0), Normal(0.5, 2.0)]
    for inclusion in ([0.5, 1.0], [0.5, 0.5]):
        with pytest.raises(ValueError, match="`select` needs Normal priors"):
            MixedRegression(X, [0, 1, 1], LogitLaw(), ["x", "z"], priors, inclusion=inclusion)
    model = MixedRegression(X, [0, 1, 1], LogitLaw(), ["x", "z"], priors, inclusion=[1.0, 0.5])
    scaled = model.scale[1] * np.array([0.5, 2.0])  # the prior of the coefficient of a standardised column
    np.testing.assert_allclose(model.slab_density(), [0.0, stats.norm.pdf(0.0, *scaled)], rtol=1e-12)


def test_further_data_of_rows_are_each_in_their_place():
    """Two bounds of a normal law, with weights: terms, densities and the potential of a part against SciPy."""
    rng, n, family = np.random.default_rng(8), 9, families.truncated(families.gaussian, True, True)
    X, y = rng.normal(2.0, 3.0, (n, 1)), rng.normal(0.5, 1.0, n)
    lb, ub, weights = y - rng.uniform(0.1, 2.0, n), y + rng.uniform(0.1, 3.0, n), rng.uniform(0.5, 2.0, n)
    law = law_of(family, ["lb", "ub"])
    model = MixedRegression(
        X, y, law, ["x"], [Normal(0.0, 1.0)], (), [HalfNormal(1.0)], weights=weights, beside={"ub": ub, "lb": lb}
    )
    x = np.array([0.4, -0.2])
    z, sd = x[0] * X[:, 0] / model.scale[0], math.exp(-0.2)
    expected = weights * stats.truncnorm.logpdf(y, (lb - z) / sd, (ub - z) / sd, z, sd)
    np.testing.assert_allclose(model.pointwise_log_likelihood(x), expected, rtol=1e-10)
    constants = -0.5 * weights * math.log(2.0 * math.pi)
    np.testing.assert_allclose([-model.term_potential(x, i) for i in range(n)], expected - constants, rtol=1e-10)
    out = np.array([0.0, -0.2])  # of a coefficient that leaves the model, and comes back
    for one, other in ((x, out), (out, x)):
        rise = model.potential(other) - model.potential(one)
        assert model.native.total_rise(one, other) == pytest.approx(rise, rel=1e-9)
    part = model.some_rows(np.array([7, 2]))
    np.testing.assert_allclose(part.pointwise_log_likelihood(x), expected[[7, 2]], rtol=1e-10)
    assert np.array_equal(part.given, [lb[[7, 2]], ub[[7, 2]]])


def test_some_rows_of_columns_of_a_table_have_no_passes_of_all():
    """What passes over rows keep of the whole model is not that of a part of it."""
    rng = np.random.default_rng(1)
    X = design.Columns(np.ones(20), rng.normal(3.0, 2.0, 20))
    y, priors = np.arange(20) % 2, [Normal(0.0, 1.5)] * 2
    model = MixedRegression(X, y, LogitLaw(), ["Intercept", "x"], priors, intercept=0)
    assert model.blocks.model is model
    part, rows, x = model.some_rows(np.array([3, 17, 4])), [3, 17, 4], np.array([0.3, -0.8])
    assert part.blocks is None and part.n_data == 3
    terms = np.array([model.term_potential(x, i) for i in rows])
    np.testing.assert_allclose([part.term_potential(x, k) for k in range(3)], terms, rtol=1e-13)
