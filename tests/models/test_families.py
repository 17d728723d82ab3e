"""Families: densities against SciPy, draws against the densities, derivatives, bounds of single rows, and messages."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.models import families, sum_of_terms
from pdmp.models.families import COUNTS, FAMILIES, LINKS, Family
from pdmp.models.priors import Normal
from pdmp.processes.row_bounds import row_bounds
from tests.models.helpers_families import (
    CENSORED,
    ORACLES,
    censored_density,
    exp,
    expit,
)

pytestmark = [
    pytest.mark.exact,
    pytest.mark.usefixtures("few_radii"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]


DISCRETE = ("count", "label")
N, CUTS = 14, np.array([-1.0, 0.3, 1.4])
P = pdmp.Parameters(a=2, b=2, s=1, u=1, cut=3)


def responses(family, n, rng):
    """Of the family's range, whatever the parameters."""
    numbers = rng.normal(0.0, 1.5, n)
    y = {
        "number": numbers,
        "positive": rng.gamma(1.5, 1.0, n),
        "share": rng.uniform(0.01, 0.99, n),
        "count": np.minimum(rng.poisson(1.2, n), 3.0),
        "label": rng.integers(0, 2, n).astype(float),
        "angle": 2.0 * np.arctan(numbers),
    }[family.response.removesuffix(" or 0")]
    return np.where(rng.random(n) < 0.3, 0.0, y) if family.response.endswith(" or 0") else y


def functionals(family, n, rng):
    """Values on the scale of the links."""
    if family.has_ascending_cuts:
        return [rng.normal(0.3, 1.0, n), rng.gamma(2.0, 0.5, n) + 0.05]
    if family.arrange:
        return [rng.normal(0.3, 1.0, n), *(rng.normal(c, 0.4, n) for c in CUTS)]
    return [rng.normal(0.2, 0.7, n) for _ in family.links]


def further(family, n, rng):
    return (
        (rng.integers(3, 9, n).astype(float),)
        if "trials" in family.data
        else (3.0,)
        if family.has_ascending_cuts
        else ()
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_densities_are_those_of_scipy(name):
    family, rng, n = FAMILIES[name], np.random.default_rng(3), 400
    y, eta, data = responses(family, n, rng), functionals(family, n, rng), further(family, n, rng)
    found = family.log_density(y, *eta, data=data)
    given = data if "trials" in family.data else ()
    np.testing.assert_allclose(found, ORACLES[name](y, *eta, *given), rtol=1e-9, atol=1e-10)


def test_the_end_of_what_is_not_censored_in_between_is_not_read():
    rows = FAMILIES["weibull"].rows(
        [1.0, 2.0, 3.0],
        mu=pdmp.Parameters(m=1, s=1).m,
        shape=pdmp.Parameters(m=1, s=1).s,
        censored=[0, 1, 2],
        upper=[np.nan, np.nan, 5.0],
    )
    assert rows.n == 3
    with pytest.raises(ValueError, match="upper"):
        FAMILIES["weibull"].rows([1.0], mu=rows.at[0], shape=rows.at[1], censored=[2], upper=[np.nan])


def test_masked_entries_are_refused():
    p, y = pdmp.Parameters(m=1, s=1), np.ma.masked_values([1.0, -9.0], -9.0)
    with pytest.raises(ValueError, match="`y` has 1 masked entries"):
        FAMILIES["gaussian"].rows(y, mu=p.m, sigma=p.s)
    with pytest.raises(ValueError, match="`trials` has 1 masked entries"):
        FAMILIES["binomial"].rows([0.0, 1.0], mu=p.m, trials=np.ma.masked_values([3.0, -9.0], -9.0))
    with pytest.raises(ValueError, match="`X` has 1 masked entries"):
        np.ma.masked_values([[1.0], [-9.0]], -9.0) @ p.m
    with pytest.raises(ValueError, match=r"`data\[0\]` has 1 masked entries"):
        pdmp.terms(lambda y, m: (y - m) ** 2, [y], [p.m])


@pytest.mark.parametrize("name", CENSORED)
def test_censored_densities(name):
    family, rng, n = FAMILIES[name], np.random.default_rng(5), 300
    y, eta, censored = responses(family, n, rng), functionals(family, n, rng), rng.integers(-1, 3, n).astype(float)
    upper = y * rng.uniform(1.1, 3.0, n)
    found = family.log_density(y, *eta, data=(censored, upper))
    # Differences of distribution functions have rounding errors of their own.
    expected = censored_density(name, y, eta, censored, upper)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert np.all(np.bincount((censored.astype(int)) % 4) > 30)


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_density_and_have_the_mean(name):
    family, rng, n = FAMILIES[name], np.random.default_rng(11), 20_000
    eta = functionals(family, 1, np.random.default_rng(8))
    if family.response.startswith("share"):  # so that little is beyond the grid
        eta[1] += 1.5
    data = () if family.arrange else further(family, 1, rng)
    if family.arrange:
        values = [np.full(n, 0.4), *(np.full(n, c) for c in CUTS)]
    else:
        values = [np.full(n, v[0]) for v in family.inverse(eta)]
    further_values = [np.full(n, d[0]) for d in data] or list(family.data.values()) * (not family.arrange)
    y = family.draw(rng, *values, *further_values)
    mean = family.mean(*values, *further_values)
    assert y.shape == (n,)
    # The error of the mean of draws: 5 standard errors, seen to a hundredth or two of a standard deviation.
    off = y - mean if family.response != "angle" else np.angle(exp(1j * (y - mean)))
    assert abs(off.mean()) < 5.0 * off.std() / math.sqrt(n)
    if family.response in DISCRETE:
        k = np.arange(60.0 if not data else data[0][0] + 1) if family.response == "count" else np.arange(2.0)
        if family.arrange:
            h = np.append(CUTS, CUTS[-1]) - 0.4
            at = (
                ([h, np.array([1.0, *np.diff(CUTS), 1.0])], (3.0,)) if family.has_ascending_cuts else ([0.4, *CUTS], ())
            )
            p = exp(family.log_density(np.arange(4.0), *at[0], data=at[1]))
        else:
            p = exp(family.log_density(k, *eta, data=data))
        assert p.sum() == pytest.approx(1.0, abs=1e-6)
        seen = np.bincount(y.astype(int), minlength=len(p))
        many = n * p > 8.0
        observed, expected = np.append(seen[many], seen[~many].sum()), n * np.append(p[many], p[~many].sum())
        keep = expected > 1e-9
        assert observed[~keep].sum() == 0
        chance = stats.chi2.sf(
            np.sum((observed - expected)[keep] ** 2 / np.maximum(expected[keep], 1.0)), keep.sum() - 1
        )
    else:
        if family.response.endswith(" or 0"):  # the density is of what is above
            none = exp(family.log_density(0.0, *eta)[0])
            assert abs(np.mean(y == 0.0) - none) < 5.0 * math.sqrt(none * (1.0 - none) / n)
            y = y[y > 0.0]
        else:
            none = 0.0
        grid = {
            "number": np.sinh(np.linspace(-16.0, 16.0, 400_001)),
            "positive": np.exp(np.linspace(-60.0, 12.0, 400_001)),
            "share": expit(np.linspace(-30.0, 30.0, 400_001)),
            "angle": np.linspace(-math.pi, math.pi, 400_001),
        }[family.response.removesuffix(" or 0")]
        density = exp(family.log_density(grid, *eta, data=tuple(further_values))) / (1.0 - none)
        below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
        assert below[-1] == pytest.approx(1.0, abs=5e-3)
        chance = stats.kstest(y, lambda t: np.interp(t, grid, below)).pvalue
    assert chance > 1e-5


def rows_of(family, n=N, seed=2, scale=0.5, **more):
    """Rows of a family at functionals of P: each parameter has its own, mu several coordinates."""
    rng = np.random.default_rng(seed)
    X, Z = scale * rng.standard_normal((n, 2)), scale * rng.standard_normal((n, 2))
    y = np.clip(responses(family, n, rng), *family.ends)
    data = {"trials": np.maximum(rng.integers(3, 9, n), y)} if "trials" in family.data else {}
    if family.arrange:
        at = {"mu": X @ P.a, "cuts": P.cut}
    else:
        kinds = [X @ P.a + 0.2, Z @ P.b + 0.1, 0.4 * P.s + 0.3, X[:, :1] @ P.u - 0.2, Z @ P.b + P.s]
        at = dict(zip(family.links, kinds, strict=False))
    return family.rows(y, **data, **at, **more)


def model_of(rows):
    return sum_of_terms(P, [rows], {"a": Normal(0, 1), "b": Normal(0, 1), "s": Normal(0, 1), "u": Normal(0, 1)})


#: Of families of counts.
ENDS = {"from 1": (1, False), "from 2": (2, False), "to 4": (False, 4), "from 2 to 5": (2, 5)}
SEVERAL = [*FAMILIES, *(f"{name} censored" for name in CENSORED)]
SEVERAL += [f"{name} {ends}" for name in COUNTS for ends in list(ENDS)[1:]]


def case(name):
    family, _, what = name.partition(" ")
    if what in ENDS:
        return rows_of(families.truncated(FAMILIES[family], *ENDS[what]))
    if not what:
        return rows_of(FAMILIES[family])
    return rows_of(FAMILIES[family], censored=np.arange(N) % 4 - 1, upper=np.full(N, 12.0))


POINT = np.r_[0.2, -0.3, 0.3, 0.1, 0.2, -0.1, CUTS]


@pytest.mark.parametrize("name", SEVERAL)
def test_derivatives_and_log_likelihoods(name):
    rows = case(name)
    model, h = model_of(rows), 1e-5
    gradient, hessian = model.gradient_and_hessian(POINT)
    for j in range(model.dim):
        step = h * np.eye(model.dim)[j]
        up, down = POINT + step, POINT - step
        assert (model.potential(up) - model.potential(down)) / (2 * h) == pytest.approx(gradient[j], rel=1e-6, abs=1e-7)
        along = (model.gradient(up) - model.gradient(down)) / (2 * h)
        np.testing.assert_allclose(along, hessian[j], rtol=1e-6, atol=2e-6)
    observed, x = rows.observed, POINT[None]
    eta = [f.at(x)[0] for f in rows.at]
    further = observed.further or ((3.0,) if observed.family.has_ascending_cuts else ())
    found = model.pointwise_log_likelihood(np.stack([POINT, 0.9 * POINT]))
    assert found.shape == (2, N)
    np.testing.assert_allclose(
        found[0], observed.family.log_density(observed.y, *eta, data=further), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_array_equal(model.observed_data()["y"], observed.y)


@pytest.mark.parametrize("name", SEVERAL)
def test_no_row_is_above_its_bound(name):
    model, rng = model_of(case(name)), np.random.default_rng(9)
    sd = np.array([0.05, 0.06, 0.04, 0.05, 0.05, 0.03, 0.04, 0.05, 0.04])
    weights, radii, factors = row_bounds(model, POINT, sd)
    scratch, rho, worst = model.scratch(), np.zeros(model.n_functionals), 0.0
    for s in range(0, len(radii), max(len(radii) - 1, 1)):
        for _ in range(3):
            y = sd * rng.standard_normal(model.dim)
            y *= radii[s] / np.sqrt(np.sum((y / sd) ** 2))
            for v in (y, sd * rng.standard_normal(model.dim)):
                speed = np.sqrt(np.sum((v / sd) ** 2))
                for i in range(N):
                    found = abs(model.remainder_along(POINT, POINT + y, v, i, scratch, rho))
                    bound = weights[i] * factors[s] * speed * radii[s] ** 2 / 2
                    assert found <= bound * (1.0 + 1e-9) + 1e-12 * speed, (i, found, bound)
                    worst = max(worst, found / bound if s == 0 and bound > 0.0 else 0.0)
    # Nor is the bound absurd; random directions rarely come near it, and a normal mean alone has no remainder.
    assert worst > (0.001 if name.endswith("from 2") else 0.01)


def test_other_links():
    family, rng = families.gamma.linked(mu="identity", shape="sqrt"), np.random.default_rng(1)
    y, mu, root = rng.gamma(2.0, 1.0, 50), rng.uniform(0.5, 2.0, 50), rng.uniform(0.5, 2.0, 50)
    expected = stats.gamma.logpdf(y, root**2, scale=mu / root**2)
    np.testing.assert_allclose(family.log_density(y, mu, root), expected, rtol=1e-10)
    np.testing.assert_allclose(family.inverse([mu, root]), [mu, root**2])
    p = pdmp.Parameters(m=1, r=1)
    model = sum_of_terms(p, [family.rows(y, mu=p.m, shape=p.r)], initial=[1.0, 1.0])
    expected = stats.gamma.logpdf(y, 1.2**2, scale=0.9 / 1.2**2)
    np.testing.assert_allclose(model.pointwise_log_likelihood([0.9, 1.2]), expected, rtol=1e-10)


def test_angles_whose_direction_is_linear():
    family, rng = families.von_mises.linked(mu="identity"), np.random.default_rng(2)
    y, mu, a = rng.uniform(-math.pi, math.pi, 50), rng.uniform(-2.5, 2.5, 50), rng.uniform(-1.0, 2.0, 50)
    np.testing.assert_allclose(family.log_density(y, mu, a), stats.vonmises.logpdf(y, exp(a), mu), rtol=1e-9)
    p = pdmp.Parameters(m=1, a=1)
    model = sum_of_terms(p, [family.rows(y, mu=p.m, kappa=p.a)])
    found = model.pointwise_log_likelihood([1.4, 0.6])
    np.testing.assert_allclose(found, stats.vonmises.logpdf(y, exp(0.6), 1.4), rtol=1e-9)


def test_of_one_s_own():
    family = Family("own", lambda y, z: z + y * np.exp(-z), links={"mu": "log"}, response="positive")
    assert Family("own", lambda y, z, w: z + w).parameters == ("z", "w")
    rows = family.rows([1.0, 2.0], mu=P.s)
    assert model_of(rows).pointwise_log_likelihood(POINT).shape == (2,)
    with pytest.raises(ValueError, match="know no `mean`"):
        model_of(rows).predict(POINT)


Y, X = np.array([1.0, 2.0]), np.ones((2, 2))


@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: families.gamma.rows([1.0, 0.0, 2.0, -3.0], mu=P.s, shape=P.u),
            "above 0, got 0 in row 1, and 2 such in all",
        ),
        (lambda: families.beta.rows([1.0, 0.5], mu=P.s, phi=P.u), "below 1, got 1 in row 0"),
        (lambda: families.poisson.rows([0.0, 1.5], mu=P.s), "whole numbers"),
        (lambda: families.bernoulli.rows([0.0, 2.0], mu=P.s), "must be 0 or 1"),
        (lambda: families.von_mises.rows([0.0, 90.0], mu=P.s, kappa=P.u), r"radians from -π to π .*, got 90 in row 1"),
        (lambda: families.gaussian.rows([np.nan, 2.0], mu=P.s, sigma=P.u), "must be finite numbers, got nan"),
        (lambda: families.gaussian.rows(X, mu=P.s, sigma=P.u), r"shape \(N,\)"),
        (lambda: families.gaussian.rows(Y, mu=P.s), "gaussian needs `sigma`"),
        (lambda: families.gaussian.rows(Y, mu=P.s, sigma=P.u, nu=P.u), "gaussian has no 'nu'"),
        (lambda: families.binomial.rows(Y, mu=P.s), "needs `trials`"),
        (lambda: families.binomial.rows(Y, mu=P.s, trials=[3.0, 1.0]), "at most `trials`, got 2 of 1 in row 1"),
        (lambda: families.binomial.rows(Y, mu=P.s, trials=[3.0, 2.5]), "`trials`.* whole numbers"),
        (lambda: families.weibull.rows(Y, mu=P.s, shape=P.u, censored=[0, 3]), "`censored` must be"),
        (
            lambda: families.weibull.rows(Y, mu=P.s, shape=P.u, censored=[0, 2], upper=[9.0, 1.0]),
            "`upper` must be above `y`",
        ),
        (lambda: families.weibull.rows(Y, mu=P.s, shape=P.u, censored=[0, 2]), "`censored` is 2, an interval, .* cens"),
        (lambda: families.binomial.rows([0.0, 0.0], mu=P.s, trials=[0.0, 0.0]), "the trials are 0 in every row, which"),
        (
            lambda: families.truncated(families.gaussian, True, True).rows(Y, mu=P.s, sigma=P.u, lb=Y, ub=[9.0, Y[1]]),
            rf"`lb` must be below `ub`, got {Y[1]:g} and {Y[1]:g} in row 1",
        ),
        (lambda: families.cumulative.rows([0.0, 4.0], mu=P.s, cuts=P.cut), "at most 3"),
        (lambda: families.acat.rows([0.0, 4.0], mu=P.s, cuts=P.cut), "at most 3"),
        (lambda: families.categorical(["a", "a"]), "different names of all categories but the first"),
        (lambda: families.cumulative.rows(Y, mu=P.s, cuts=P.cut[[0, 1]]), "`cuts` a block"),
        (lambda: families.cumulative.linked(gap="log"), "cannot be changed"),
        (lambda: families.gamma.linked(nu="log"), "`links` names 'nu'"),
        (lambda: families.gamma.linked(mu="cube"), "must be one of identity"),
        (lambda: Family("own", lambda y, z: z, response="real"), "`response` must be one of"),
        (lambda: Family("own", lambda y, z: z, links={"mu": "log", "nu": "log"}), "must name the 1 functionals"),
        (lambda: model_of(pdmp.terms(lambda z: z**2, at=[P.s])).predict(POINT), "no rows of a family"),
        (lambda: model_of(families.poisson.rows(Y, mu=P.s)).predict(POINT[:2]), r"`x` must have shape"),
        (lambda: model_of(families.poisson.rows(Y, mu=P.s)).predict(POINT, kind="median"), "`kind` must be"),
    ],
)
def test_messages(call, said):
    with pytest.raises((TypeError, ValueError), match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["cumulative", "cumulative_probit"])
def test_where_the_search_for_cuts_begins(name):
    """Ascending, also where the first and the last category are empty; cuts that do not ascend are refused."""
    rng, p = np.random.default_rng(4), pdmp.Parameters(before=1, cut=4, beta=1)
    u = rng.normal(size=200)
    y = 1.0 + np.digitize(u + rng.logistic(size=200), [-0.5, 1.0])
    rows = FAMILIES[name].rows(y, mu=u[:, None] @ p.beta, cuts=p.cut)
    model = sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, 2.5)))
    own = model.initial[1:5]
    assert np.all(np.diff(own) > 0.0) and model.initial[[0, 5]].tolist() == [0.0, 0.0]
    np.testing.assert_allclose(special.expit(own), [(np.sum(y <= j) + 0.5 * (j + 1)) / 202.5 for j in range(4)])
    mode = model.mode()
    assert mode is not None and np.all(np.diff(mode[1:5]) > 0.0)
    priors = dict.fromkeys(p.sizes, Normal(0.0, 2.5))
    given = sum_of_terms(p, [rows], priors, initial={"cut": [-2.0, 0.0, 1.0, 2.0]})
    np.testing.assert_allclose(given.mode(), mode, atol=1e-3)
    for bad in ({"cut": [-2.0, 0.0, 0.0, 2.0]}, [0.0, 1.0, 0.5, 2.0, 3.0, 0.0]):
        with pytest.raises(ValueError, match="`initial`: cut are cuts, which ascend; got "):
            sum_of_terms(p, [rows], initial=bad)
    for k in (1.0, 2.0, 3.0):
        with pytest.raises(ValueError, match=f"`y` has no row of category {k:.0f}, between others: number the"):
            FAMILIES[name].rows(np.where(y == k, 0.0, y), mu=u[:, None] @ p.beta, cuts=p.cut)


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_families_of_models_in_other_processes(copied):
    """A family keeps its links; one of a user's own is not taken for another, whatever it is called."""
    y, p = np.array([0.5, 2.0, 3.0]), pdmp.Parameters(b=1, s=1)
    linked = families.gamma.linked(mu="identity").linked(shape="identity")
    model = sum_of_terms(p, [linked.rows(y, mu=p.b, shape=p.s)])
    x = np.array([3.0, 2.0])
    assert np.array_equal(copied(model).predict(x), [3.0, 3.0, 3.0])
    want = stats.gamma.logpdf(y, 2.0, scale=1.5)
    assert np.allclose(copied(model).pointwise_log_likelihood(x), want, rtol=1e-12)
    again = copied(sum_of_terms(p, [families.gamma.rows(y, mu=p.b, shape=p.s)])).observed[0].family
    assert again is families.gamma
    own = Family("gaussian", lambda y, z: abs(y - z), mean=lambda mu: mu + 100.0, constant=lambda y: -math.log(2.0))
    other = copied(sum_of_terms(p, [own.rows(y, z=p.b)]))
    if copied is copy.deepcopy:
        assert np.array_equal(other.predict(x), [103.0, 103.0, 103.0])
        return
    with pytest.raises(ValueError, match="^these rows know no `mean`: give it to pdmp.Family, in the same process"):
        other.predict(x)
    with pytest.raises(ValueError, match=r"^these rows know no constants: they are of a pdmp\.Family of another"):
        other.pointwise_log_likelihood(x)


@pytest.mark.parametrize("alpha", [(), (0.3,)], ids=["Poisson", "negative binomial"])
def test_counts_above_0_of_small_means(alpha):
    """Where the chance of 0 is 1 but for rounding, they are 1, neither 0 nor infinite."""
    mu = np.repeat([1e-18, 1e-15, 1e-12, 1e-3], 200)
    family = families.truncated(families.negative_binomial if alpha else families.poisson, 1, False)
    drawn = family.draw(np.random.default_rng(0), mu, *alpha)
    assert np.all(drawn[:600] == 1.0) and np.all((drawn >= 1.0) & (drawn < 20.0))


def test_counts_of_means_that_no_generator_takes():
    mu, rng = np.array([1e300, math.exp(40.0), 1e17]), np.random.default_rng(0)
    for family, parameters in ((families.poisson, (mu,)), (families.negative_binomial, (mu, 1e12))):
        drawn = family.draw(rng, *parameters)
        np.testing.assert_allclose(drawn, [math.exp(40.0), math.exp(40.0), 1e17], rtol=1e-5)


def test_responses_may_lie_where_they_are_cut_off():
    """And nowhere beyond."""
    p, y = pdmp.Parameters(m=1, s=1), np.array([0.0, 1.0, 2.0])
    family = families.truncated(families.gaussian, True, True)
    assert family.rows(y, mu=p.m, sigma=p.s, lb=0.0, ub=2.0).n == 3
    for bounds, said in (
        ({"lb": 1e-9, "ub": 2.0}, "at least `lb`, where it is cut off, got 0 and 1e-09 in row 0"),
        ({"lb": 0.0, "ub": 2.0 - 1e-9}, "at most `ub`, where it is cut off, got 2 and 2 in row 2"),
    ):
        with pytest.raises(ValueError, match=said):
            family.rows(y, mu=p.m, sigma=p.s, **bounds)


def test_counts_may_all_be_of_one_category():
    """Of the reference or of another; where all are 0 there are no data."""
    p, family = pdmp.Parameters(bus=1, car=1), families.multinomial(["bus", "car"])
    for counts in ([[3, 4], [0, 0], [0, 0]], [[0, 0], [0, 1], [0, 0]], [[0, 0], [0, 0], [2, 0]]):
        given = {f"count of {name}": values for name, values in zip(("bus", "car"), counts[1:], strict=True)}
        assert family.rows(counts[0], bus=p.bus, car=p.car, **given).n == 2
    given = {"count of bus": [0, 0], "count of car": [0, 0]}
    with pytest.raises(ValueError, match="`y` of multinomial: the counts are 0 in every row, which say nothing"):
        family.rows([0, 0], bus=p.bus, car=p.car, **given)


@pytest.mark.parametrize("y, mu, lb, ub", [(0.5, -40.0, 0.0, 10.0), (9.5, 50.0, 0.0, 10.0), (4.0, 5.0, 0.0, 10.0)])
def test_densities_between_two_bounds_in_one_tail(y, mu, lb, ub):
    """Whichever it is, of a law with the standard deviation 1, near the bound that is nearest to its centre."""
    family = families.truncated(families.gaussian, True, True)
    found = family.log_density(y, mu, 0.0, data=(lb, ub))
    assert found == pytest.approx(stats.truncnorm.logpdf(y, lb - mu, ub - mu, loc=mu), rel=1e-9)


@pytest.mark.parametrize(
    "above, width, rel",
    [
        (0.0, 1e-6, 1e-9),
        (20.0, 1.0, 1e-9),
        (20.0, math.inf, 1e-9),
        (450.0, math.inf, 1e-9),
        (800.0, 1.0, 1e-9),  # from 500 on by quadrature
        (800.0, math.inf, 2e-4),
        (1e6, 1.0, 1e-6),
    ],
)
def test_means_between_two_bounds_however_far_out(above, width, rel):
    """Of an exponential law of mean 3, which has no memory: from `above` on it begins anew."""
    tails = families.TAILS["exponential"]
    mean = float(tails.mean(np.array(3.0 * above), np.array(3.0 * (above + width)), np.array(3.0)))
    within = {1e-6: 0.5e-6 - 1e-12 / 12.0, 1.0: 1.0 - 1.0 / math.expm1(1.0), math.inf: 1.0}[width]
    assert mean / 3.0 - above == pytest.approx(within, rel=rel)


def test_further_data_are_a_number_or_one_for_each_row():
    p = pdmp.Parameters(m=1)
    with pytest.raises(ValueError, match=r"`trials` must be a number, or of shape \(3,\) as `y` is, got \(1,\)"):
        FAMILIES["binomial"].rows([0.0, 1.0, 2.0], mu=p.m, trials=[5.0])
    with pytest.raises(ValueError, match=r"equally many rows, got \[1, 3\]"):
        FAMILIES["poisson"].rows([2.0], mu=np.ones((3, 1)) @ p.m)


COUNTED = {
    "poisson": (lambda mu: stats.poisson(mu), [(0.02,), (1.3,), (6.0,), (60.0,)]),
    "negative_binomial": (
        lambda mu, a: stats.nbinom(a, a / (a + mu)),
        [(0.1, 4.0), (2.0, 0.3), (5.0, 2.0), (40.0, 1.0)],
    ),
    "geometric": (lambda mu: stats.nbinom(1.0, 1.0 / (1.0 + mu)), [(0.05,), (3.0,), (40.0,)]),
    "binomial": (lambda p, n: stats.binom(n, p), [(0.02, 7.0), (0.4, 12.0), (0.9, 30.0)]),
}


@pytest.mark.parametrize("ends", [*ENDS.values(), (4, False), (3, 60)], ids=str)
@pytest.mark.parametrize("name", COUNTED)
def test_counts_that_are_cut_off(name, ends):
    """Densities, means and draws are those of probabilities of SciPy, divided by their sum."""
    family, (law, places) = families.truncated(FAMILIES[name], *ends), COUNTED[name]
    k = np.arange(float(ends[0]), (ends[1] or 3_000.0) + 1.0)
    for values in places:
        p = law(*values).pmf(k)
        total, m = p.sum(), len(family.links)
        eta = [LINKS[link].forward(v) for link, v in zip(family.links.values(), values, strict=False)]
        seen = p > 1e-300
        found = family.log_density(k[seen], *eta, data=values[m:])
        np.testing.assert_allclose(found, np.log(p[seen] / total), rtol=1e-8, atol=1e-8)
        many = [np.full(4_000, v) for v in values]
        assert family.mean(*(v[:1] for v in many))[0] == pytest.approx(k @ p / total, rel=1e-8)
        drawn = family.draw(np.random.default_rng(1), *many)
        assert drawn.min() >= k[0] and drawn.max() <= k[p > 0.0][-1]
        below = np.array([np.mean(drawn <= one) for one in k[:80]])
        assert np.abs(below - np.cumsum(p)[:80] / total).max() < 2.5 / math.sqrt(4_000)


@pytest.mark.parametrize("low", [2, 5, 20, 50])
@pytest.mark.parametrize("log_mu", [-9.0, -3.0, -0.5, 2.0, 8.0])
def test_counts_from_a_bound_on_that_they_hardly_reach(low, log_mu):
    """Incomplete gamma and beta functions have what is above, however little; as the probability of the lowest."""
    mu, y = np.exp(log_mu), float(low)
    above = {
        "poisson": special.gammainc(low, mu),
        "geometric": (mu / (1.0 + mu)) ** low,
        "negative_binomial": special.betainc(low, 1.7, mu / (mu + 1.7)),
        "binomial": special.betainc(low, 41.0, expit(log_mu)),
    }
    for name, chance in above.items():
        family, base = families.truncated(FAMILIES[name], low, False), FAMILIES[name]
        eta, data = (log_mu, math.log(1.7))[: len(base.links)], (low + 40.0,) * len(base.data)
        found = base.log_density(y, *eta, data=data) - family.log_density(y, *eta, data=data)
        if chance > 1e-290:
            assert found == pytest.approx(math.log(chance), rel=1e-8, abs=1e-6), name
        values = [v.item() for v in family.inverse(eta)]
        mean, k = family.mean(*values, *data), np.arange(y, y + (41.0 if data else 20_000.0))
        p = exp(base.log_density(k, *eta, data=data) - base.log_density(y, *eta, data=data))
        if log_mu < 5.0:
            assert mean == pytest.approx(k @ p / p.sum(), rel=1e-6), name
        drawn = family.draw(np.random.default_rng(1), *(np.full(2_000, v) for v in (*values, *data)))
        assert drawn.min() >= y and abs(drawn.mean() - mean) < 5.0 * drawn.std() / math.sqrt(2_000) + 1e-3


def test_bounds_of_counts():
    """Whole numbers, of which 0 is no lower one; responses are between them."""
    assert families.truncated(families.poisson, 0, False) is families.poisson
    for ends, says in (
        ((True, False), "bounds of counts must be whole numbers of at least 0, the lower one first, got 1 and inf"),
        ((0.5, False), "whole numbers"),
        ((0, 2.5), "whole numbers"),
        ((-1, False), "at least 0"),
        ((0, 0), "the lower one first"),
        ((3, 3), "the lower one first"),
        ((math.nan, False), "whole numbers"),
        ((0, 101), "bounds of counts may be 100 apart, and a lower one alone be 50, got 0 and 101: leave out a bound"),
        ((51, False), "a lower one alone be 50"),
    ):
        with pytest.raises(ValueError, match=says):
            families.truncated(families.poisson, *ends)
    for ends, y, said in (
        ((1, False), [1, 0], "`y` of poisson must be whole numbers from 1 on, got 0 in row 1"),
        ((2, 5), [1, 6], "`y` of poisson must be whole numbers from 2 to 5, got 1 in row 0, and 2 such"),
    ):
        with pytest.raises(ValueError, match=said):
            families.truncated(families.poisson, *ends).rows(y, mu=P.s)


@pytest.mark.parametrize("name", COUNTED)
def test_as_many_terms_as_there_may_be(name):
    """Derivatives are not too deep for Python."""
    for ends in ((0, 100), (50, False)):
        model = model_of(rows_of(families.truncated(FAMILIES[name], *ends), n=2))
        assert np.isfinite(model.gradient(POINT)).all() and len(model.enclosures) == 1


@pytest.mark.parametrize(
    ("name", "ends", "given", "expected"),
    [
        ("binomial", (2, False), (1.0, 40.0), 40.0),
        ("binomial", (2, 20), (1.0, 40.0), 20.0),
        ("binomial", (2, 20), (0.0, 40.0), 2.0),
        ("poisson", (2, 20), (math.inf,), 20.0),
        ("poisson", (2, False), (0.0,), 2.0),
        ("poisson", (2, False), (1e16,), 1e16),
        ("negative_binomial", (1, False), (1e16, 1e12), 1e16),
    ],
)
def test_means_and_draws_of_counts_between_bounds_where_the_mean_is_at_an_end(name, ends, given, expected):
    """Of a predictor beyond which floats are 0, 1 or infinite, and of means whose quantiles SciPy does not find."""
    family, values = families.truncated(FAMILIES[name], *ends), [np.full(20, value) for value in given]
    np.testing.assert_allclose(family.mean(*values), expected, rtol=1e-12)
    np.testing.assert_allclose(family.draw(np.random.default_rng(0), *values), expected, rtol=1e-4)
