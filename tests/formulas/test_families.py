"""Regressions of every family: densities against SciPy and priors by hand, units, predictions, words, and mistakes."""

import dataclasses
import math
import warnings
from dataclasses import astuple
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.expressions.nodes import softplus
from pdmp.formulas import fitting, general
from pdmp.formulas.beside import read_for_predictions
from pdmp.formulas.design import describe
from pdmp.formulas.families import LAWS, RISES, family_of
from pdmp.formulas.general import FamilyFit, linked, make_general_model, noiseless, read_formulas
from pdmp.formulas.kept import Kept
from pdmp.formulas.prepared import Prepared
from pdmp.formulas.words import (
    Bar,
    bars,
    check_spaces,
    check_words,
    columns_of,
    parts_between,
    pieces_between,
    read_call,
    read_response,
    translated,
)
from pdmp.models.families import FAMILIES, LINKS, Family
from pdmp.models.priors import LKJ, Exponential, Flat, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from pdmp.models.regressions import effect_information as information_module
from pdmp.models.regressions.effect_information import effect_information
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import law_of
from pdmp.models.regressions.standardised_effects import StandardisedEffects
from pdmp.models.sums_of_terms import SumOfTerms
from tests.checks import in_quick
from tests.formulas.test_regression import Frozen
from tests.formulas.test_regression import made as made_compiled
from tests.models.helpers_families import ORACLES, censored_density

pandas = pytest.importorskip("pandas")
Environment = pytest.importorskip("formulae.environment").Environment

pytestmark = [
    pytest.mark.exact,
    pytest.mark.usefixtures("few_steps", "few_radii"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

N, TOP = 18, 3
exp, expit = np.exp, special.expit
FORWARD = {
    "identity": lambda v: v,
    "log": np.log,
    "logit": special.logit,
    "probit": special.ndtri,
    "tan_half": lambda v: np.tan(0.5 * v),
}
DENSITIES = {
    Normal: lambda q, v: stats.norm.logpdf(v, q.mean, q.sd),
    StudentT: lambda q, v: stats.t.logpdf(v, q.degrees, q.mean, q.scale),
    HalfNormal: lambda q, v: stats.halfnorm.logpdf(v, scale=q.scale),
    HalfStudentT: lambda q, v: math.log(2.0) + stats.t.logpdf(v, q.degrees, scale=q.scale),
    HalfCauchy: lambda q, v: stats.halfcauchy.logpdf(v, scale=q.scale),
    Gamma: lambda q, v: stats.gamma.logpdf(v, q.shape, scale=q.scale),
    Exponential: lambda q, v: stats.expon.logpdf(v, scale=q.scale),
    LKJ: lambda q, v: stats.beta.logpdf(0.5 * (1.0 + v), q.eta, q.eta) - math.log(2.0),  # of two variables
}


def table(family, n=N):
    rng = np.random.default_rng(5)
    x = rng.normal(3.0, 2.0, n)
    found = {
        "x": x,
        "w": rng.normal(-20.0, 5.0, n),
        "area": np.array(list("bac"))[np.arange(n) % 3],
        "g": np.array(list("uvst"))[rng.permutation(n) % 4],
        "h": np.arange(n) % 5,
        "n": rng.integers(3, 9, n),
        "c": np.arange(n) % 4 - 1.0,
        "weight": rng.uniform(0.5, 2.0, n),
    }
    numbers = 0.3 * x + rng.normal(0.0, 1.5, n)
    found["y"] = {
        "number": numbers,
        "positive": rng.gamma(1.5, exp(0.1 * x)),
        "share": rng.uniform(0.05, 0.95, n),
        "count": np.minimum(rng.poisson(1.2, n), TOP),
        "label": rng.permutation(n) % 2,
        "angle": 2.0 * np.arctan(numbers),
    }[family.response.removesuffix(" or 0")]
    if family.response.endswith(" or 0"):
        found["y"] = np.where(np.arange(n) % 4 == 1, 0.0, found["y"])
    found["later"] = np.where(found["c"] == 2.0, found["y"] + 1.3, np.nan)
    return pandas.DataFrame(found)


def made(formula, family, data=None, priors=None, link=None, **roles):
    """What `pdmp.regression` samples: model, designs, priors and notes; and what was asked."""
    family = linked(family_of(family), link)
    environment = Environment.capture(0).with_outer_namespace({"np": np, **fitting.FUNCTIONS})
    data = table(family) if data is None else data
    roles = dict.fromkeys(("offset", "weights", "exposure")) | roles
    asked = fitting.translated_formulas(read_formulas(formula, family), data, roles, environment)
    general.check_asked(asked, family, priors, link)
    return *make_general_model(asked, data, family, priors, roles, environment)[:-1], asked, roles


def formulas_of(family):
    """One for the response, and one for the last of the other parameters, each with an offset."""
    left = "y | trials(n)" if "trials" in family.data else "y | cens(c, later)" if "upper" in family.data else "y"
    found = {"y": f"{left} ~ x + area + offset(0.02 * w) + (1 + x | g)"}
    others = [name for name in family.named[1:] if name != "cuts"]
    if family.name in ("zero_inflated_poisson", "skew_normal"):  # numbers of their own on scales besides the logarithm
        return found
    return found | {name: "~ w + offset(0.05 * x) + (1 | h)" for name in {*others[-1:], *family.needs}}


def priors_of(formulas, family):
    """Those that are given: another one for each name of a coefficient, a term and a standard deviation."""
    found = {"x": Normal(0.1, 0.7), "area": StudentT(4.0, -0.2, 1.3)}
    found |= {"sd(g)": HalfNormal(0.8), "sd(x|g)": Exponential(0.6), "cor(g)": LKJ(2.5)}
    found |= {"cuts": StudentT(5.0, 0.1, 2.0)} if family.arrange else {"Intercept": Normal(0.4, 3.0)}
    for k, name in enumerate(name for name in formulas if name != "y"):
        own = {"Intercept": Normal(0.2 + k, 1.1), "w": Normal(0.01, 0.05 + k), "sd(h)": Gamma(2.0, 0.4 + k)}
        found |= {f"{name}: {column}": prior for column, prior in own.items()}
    return found


def by_hand(data, natural, prefix=""):
    """A linear predictor from parameters in the units of the data."""
    if prefix:
        z = natural[prefix + "Intercept"] + natural[prefix + "w"] * data["w"].to_numpy() + 0.05 * data["x"].to_numpy()
        return z + natural[prefix + "1|h"][data["h"]]
    z = natural.get("Intercept", 0.0) + natural["x"] * data["x"].to_numpy() + 0.02 * data["w"].to_numpy()
    z = z + (data["shift"].to_numpy() if "shift" in data else 0.0)
    for level in "bc":
        z = z + natural[f"area[{level}]"] * (data["area"] == level).to_numpy()
    place = np.searchsorted(list("stuv"), data["g"])
    return z + natural["1|g"][place] + natural["x|g"][place] * data["x"].to_numpy()


def functionals(family, data, natural):
    """By hand, on the scale of the links."""
    z = by_hand(data, natural)
    if family.arrange:
        cuts = np.array([natural[f"cut[{j}]"] for j in (1, 2, 3)])
        if not family.has_ascending_cuts:
            return [z, *cuts]
        k = data["y"].to_numpy(int)
        inner = np.clip(k, 1, 2)
        return [cuts[np.minimum(k, 2)] - z, cuts[inner] - cuts[inner - 1]]
    found = {family.named[0]: z}
    for name in family.named[1:]:
        has_formula = f"{name}: w" in natural
        found[name] = by_hand(data, natural, f"{name}: ") if has_formula else FORWARD[family.links[name]](natural[name])
    return list(found.values())


def log_likelihood(family, data, natural):
    eta = functionals(family, data, natural)
    if "upper" in family.data:
        return censored_density(family.name, data["y"], eta, data["c"].to_numpy(), data["later"].fillna(0.0))
    return ORACLES[family.name](data["y"].to_numpy(float), *eta, *([data["n"]] if "trials" in family.data else []))


def log_prior(family, priors, natural, means):
    """Of parameters in the units of the data; intercepts and cuts for rows at the means of the columns."""
    total = 0.0
    slopes = {"": {"x": means["x"]} | {f"area[{a}]": means[a] for a in "bc"}}
    for name, prior in priors.items():
        value, link = natural[name], family.links.get(name, "log")
        prefix = name.partition(": ")[0] + ": " if ": " in name else ""
        if name.endswith("Intercept") or name.startswith("cut["):
            own = slopes.get(prefix, {f"{prefix}w": means["w"]})
            shift = sum(natural[column] * mean for column, mean in own.items())
            value = value + (-shift if name.startswith("cut[") else shift)
        elif name in family.named and link not in ("log", "identity"):
            total -= math.log(value * (1.0 - value))  # of the log odds
            value = special.logit(value)
        total += DENSITIES[type(prior)](prior, value)
    sds, r = np.array([natural["sd(g)"], natural["sd(x|g)"]]), natural["cor(1, x|g)"]
    covariance = np.outer(sds, sds) * np.array([[1.0, r], [r, 1.0]])
    total += stats.multivariate_normal.logpdf(np.column_stack([natural["1|g"], natural["x|g"]]), cov=covariance).sum()
    for name, effects in natural.items():
        if name.endswith(": 1|h"):
            total += stats.norm.logpdf(effects, 0.0, natural[name.replace("1|h", "sd(h)")]).sum()
    return total


def flat(natural):
    return np.concatenate([np.ravel(value) for value in natural.values()])


def log_volume(model, x):
    """log |det| of the derivative of the natural parameters by the coordinates."""
    h = 1e-5
    columns = []
    for j in range(model.dim):
        e = h * np.eye(model.dim)[j]
        columns.append((flat(model.constrain(x + e)) - flat(model.constrain(x - e))) / (2.0 * h))
    return np.linalg.slogdet(np.column_stack(columns))[1]


def near(model, k, size=0.3):
    """A point where cuts ascend."""
    x = model.initial + size * np.random.default_rng(k).standard_normal(model.dim)
    if model.reported.n_cuts:
        first, count = model.reported.places["standardised cuts"]
        x[first : first + count] = np.sort(x[first : first + count])
    return x


#: Coordinates of effects: in one block with the coefficients, each group in one of its own, with coefficients that move
#: with them, the same from sums over rows, and as they are.
WAYS = ("together", "apart", "rows", "centred")


@pytest.fixture
def way(name, monkeypatch):
    """In turn, by family."""
    found = WAYS[list(FAMILIES).index(name) % len(WAYS)]
    if found == "apart":
        monkeypatch.setattr(information_module, "TOGETHER", 0)
    if found == "rows":
        monkeypatch.setattr(information_module, "INVERTED", 0)
    if found == "centred":
        monkeypatch.setattr(general, "made_for_sampling", lambda predictors, y, data, common: general.made(*common))
    return found


@pytest.mark.parametrize(
    "name", in_quick(FAMILIES, "gamma", "hurdle_poisson", "cumulative", "weibull", "beta_binomial")
)
def test_the_potential_is_the_density_of_natural_parameters(name, way):
    family, data = FAMILIES[name], table(FAMILIES[name]).assign(shift=np.linspace(-0.3, 0.2, N))
    formulas = formulas_of(family)
    given = priors_of(formulas, family)
    model, _, priors, _, _, _ = made(formulas, family, data, given, weights="weight", offset="shift")
    terms = {"area[b]": "area", "area[c]": "area", "cor(1, x|g)": "cor(g)"} | {f"cut[{k}]": "cuts" for k in (1, 2, 3)}
    named = {one: terms.get(one, one) for one in priors}
    assert {one: priors[one] for one in priors if named[one] in given} == {
        one: given[own] for one, own in named.items() if own in given
    }
    columns = {"x": data["x"], "w": data["w"]} | {a: data["area"] == a for a in "bc"}
    means = {column: np.average(values, weights=data["weight"]) for column, values in columns.items()}
    excess = []
    for k in range(2):
        x = near(model, k)
        natural = model.constrain(x)
        own = data["weight"].to_numpy() * log_likelihood(family, data, natural)
        np.testing.assert_allclose(model.pointwise_log_likelihood(x), own, rtol=1e-8, atol=1e-9)
        density = own.sum() + log_prior(family, priors, natural, means) + log_volume(model, x)
        excess.append(model.potential(x) + density)
    assert np.ptp(excess) < 1e-5 * max(1.0, abs(model.potential(x)))
    v, h = np.random.default_rng(9).standard_normal(model.dim), 1e-6
    slope = (model.potential(x + h * v) - model.potential(x - h * v)) / (2.0 * h)
    assert model.gradient(x) @ v == pytest.approx(slope, rel=1e-4)
    assert isinstance(model, SumOfTerms if way == "centred" else StandardisedEffects)
    if way != "centred":
        sizes = {"together": {model.dim - model.is_free.sum() - len(model.spread)}, "apart": {1, 2}, "rows": {1, 2}}
        assert set(np.diff(model.block_first)) <= sizes[way] and bool(np.any(model.by)) == (way != "together")
        inside = np.empty(model.dim)
        model.natural(x, inside, model.room())
        np.testing.assert_allclose(model.natural_draws(x), inside, rtol=1e-12, atol=1e-13)
        for asked in ({}, {"kind": "response", "seed": 3}):
            np.testing.assert_allclose(model.predict(x, **asked), model.base.predict(inside, **asked), rtol=1e-9)
        assert model.potential(x) == pytest.approx(
            model.prior_potential(x) + model.block_potential(x, 0, 7) + model.block_potential(x, 7, N), rel=1e-12
        )
        rows, whole, parts = np.array([2, 9]), np.zeros(model.dim), np.zeros(model.dim)
        model.add_batch_gradient(x, rows, 2, whole)
        few = model.some_rows(rows)
        few.add_block_gradient(x, 0, 2, parts)
        np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-14)
        for i in rows:
            model.add_term_gradient(x, i, parts)
        np.testing.assert_allclose(parts, 2.0 * whole, rtol=1e-12, atol=1e-14)
        assert few.potential(x) - few.prior_potential(x) == pytest.approx(sum(model.term_potential(x, i) for i in rows))
        assert model.total_potential(x) == pytest.approx(model.potential(x), rel=1e-12)


def test_predictions_have_the_shape_of_the_draws():
    data = table(FAMILIES["gaussian"], 24)[["y", "x", "w"]]
    model = pdmp.regression({"y": "y ~ x", "sigma": "~ w"}, data, sample=False).model
    draws = np.random.default_rng(0).normal(size=(2, 3, model.dim))
    found = model.predict(draws)
    assert found.shape == (2, 3, 24) == model.predict(draws, kind="response", seed=1).shape
    np.testing.assert_allclose(found[1, 2], model.predict(draws[1, 2]), rtol=1e-12)  # products of other shapes


def test_missing_predictors_are_parameters():
    """Against a density by hand; and, of a normal response, what is left when missing values are integrated out."""
    data = table(FAMILIES["gaussian"], 24)[["y", "x", "w", "h"]]
    data["w"] += 0.4 * data["x"]
    data.loc[[3, 7, 20], "x"], data.loc[[7, 11], "w"], data.loc[5, "y"] = np.nan, np.nan, np.nan
    formulas = {"y": "y ~ mi(x) * h + mi(w)", "x": "x | mi() ~ h", "w": "w | mi() ~ mi(x)"}
    flat = {"Intercept": Flat(), "mi(x)": Flat(), "h": Flat(), "mi(x):h": Flat(), "mi(w)": Flat()}
    flat |= {"x: Intercept": Flat(), "x: h": Flat(), "w: Intercept": Flat(), "w: mi(x)": Flat()}
    positive = ("sigma", "sigma(x)", "sigma(w)")
    flat |= dict.fromkeys(positive, HalfNormal(2.0))
    prepared = pdmp.regression(formulas, data, priors=flat, sample=False)
    assert "3 of 23 values of x are missing, and imputed" in prepared.notes and prepared.n_rows == 23
    rows, model, h = data.drop(5), prepared.model, data["h"].drop(5).to_numpy(float)
    places = {name: np.flatnonzero(rows[name].isna()) for name in "xw"}

    def density(v):
        """Of natural parameters, and the coordinates' volume but for a constant."""
        x, w = (np.array(rows[name], float) for name in "xw")
        x[places["x"]], w[places["w"]] = v["missing x"], v["missing w"]
        eta = v["Intercept"] + v["mi(x)"] * x + v["h"] * h + v["mi(x):h"] * x * h + v["mi(w)"] * w
        found = stats.norm.logpdf(rows["y"], eta, v["sigma"])
        np.testing.assert_allclose(prepared.predicted(at[None], None, "link", "error", None)[0], eta, rtol=1e-9)
        total = found.sum() + stats.norm.logpdf(x, v["x: Intercept"] + v["x: h"] * h, v["sigma(x)"]).sum()
        total += stats.norm.logpdf(w, v["w: Intercept"] + v["w: mi(x)"] * x, v["sigma(w)"]).sum()
        return total + sum(stats.norm.logpdf(v[name], 0.0, 2.0) + np.log(v[name]) for name in positive), found

    excess = []
    for k in range(3):
        at = model.initial + 0.4 * np.random.default_rng(k).standard_normal(model.dim)
        natural = model.constrain(at)
        np.testing.assert_allclose(prepared.coding.unconstrained(natural), at, atol=1e-12)
        total, found = density(natural)
        np.testing.assert_allclose(model.pointwise_log_likelihood(at), found, rtol=1e-9)
        excess.append(model.potential(at) + total)
    assert np.ptp(excess) < 1e-8 * abs(excess[0])
    assert prepared.kept.places.tolist() == [k for k in range(23) if k not in {*places["x"], *places["w"]}]

    chained = {"y": "y ~ mi(w)", "w": "w | mi() ~ mi(x)", "x": "x | mi() ~ h"}  # x is in the formula of w alone
    assert "2 of 23 values of w are missing, and imputed" in pdmp.regression(chained, data, sample=False).notes

    alone = pdmp.regression({"y": "y ~ mi(x) * h", "x": "x | mi() ~ h"}, data.drop([7, 11, 20]), sample=False).model
    first, size = alone.reported.places["standardised missing x"]
    grid, z, excess = np.linspace(-9.0, 9.0, 61), data.loc[3, "h"], []
    for k in range(2):
        at = alone.initial + 0.3 * np.random.default_rng(k).standard_normal(alone.dim)
        points = np.tile(at, (len(grid), 1))
        points[:, first] = grid
        u, v = np.array([alone.potential(point) for point in points]), alone.constrain(at)
        slope = v["mi(x)"] + v["mi(x):h"] * z
        mean = v["Intercept"] + v["h"] * z + slope * (v["x: Intercept"] + v["x: h"] * z)
        without = alone.potential(at) - sum(alone.term_potential(at, i) for i in (3, alone.n_data // 2 + 3))
        exact = stats.norm.logpdf(data.loc[3, "y"], mean, np.hypot(v["sigma"], slope * v["sigma(x)"])) - without
        excess.append(special.logsumexp(-u) + np.log(grid[1] - grid[0]) - exact)
    assert size == 1 and np.ptp(excess) < 1e-8


@pytest.mark.parametrize("formula", ["y ~ h + (1 + x | g)", "y ~ h + s(x, k=6)"])
def test_what_is_normal_given_the_others_integrates_to_the_law_of_responses(formula, monkeypatch):
    """Of correlated effects and of a curve: what the law of their standard deviations, correlation and sigma is."""
    monkeypatch.setattr(general, "made_for_sampling", lambda predictors, y, data, common: general.made(*common))
    data = table(FAMILIES["gaussian"], 24)
    prepared = pdmp.regression(formula, data, sample=False)
    model, y, x, h = prepared.model, *(data[name].to_numpy(float) for name in "yxh")
    columns, hyper = {"Intercept": np.ones(24), "h": h - h.mean()}, ["sigma"]
    if "|" in formula:
        member = (data["g"].to_numpy()[:, None] == np.array(prepared.groups[0].levels)).astype(float)
        hyper += ["sd(g)", "sd(x|g)", "cor(1, x|g)"]
    else:
        linear, (bent,) = prepared.design.smooths[0].coded(data)
        columns["s(x).x"], hyper = linear[:, 0], [*hyper, "sd(s(x))"]
    moves = [model.reported.places[name][0] for name in model.reported.places if name.startswith("standardised sd(")]
    moves += [
        first for name, (first, _) in model.reported.places.items() if name.split()[1] in ("sigma", "correlations")
    ]
    held = np.isin(np.arange(model.dim), moves)
    excess = []
    for k in range(4):
        at = model.initial + held * np.random.default_rng(k).uniform(-0.8, 0.8, model.dim)
        curvature = model.hessian(at)[~held][:, ~held]
        at[~held] -= np.linalg.solve(curvature, model.gradient(at)[~held])
        assert np.abs(model.gradient(at)[~held]).max() < 1e-8  # as it is normal
        integral = -model.potential(at) - 0.5 * np.linalg.slogdet(curvature)[1]
        v = model.constrain(at)
        covariance, mean = v["sigma"] ** 2 * np.eye(24), np.zeros(24)
        for name, column in columns.items():
            centre, width = astuple(prepared.priors[name])
            mean, covariance = mean + centre * column, covariance + width**2 * np.outer(column, column)
        law, jacobian = 0.0, 0.0
        if "|" in formula:
            a, b, r = (v[name] for name in hyper[1:])
            slope = member * x[:, None]
            across = r * a * b * (member @ slope.T)
            covariance = covariance + a**2 * member @ member.T + b**2 * slope @ slope.T + across + across.T
            jacobian = np.log1p(-(r**2))  # of w, r being its tanh, whose law is uniform
        else:
            covariance = covariance + v["sd(s(x))"] ** 2 * bent.value @ bent.value.T
        for name in hyper[: 3 if "|" in formula else 2]:
            *_, width = astuple(prepared.priors[name])
            own = stats.t(4.0, 0.0, width) if name == "sigma" else stats.norm(0.0, width)
            law, jacobian = law + own.logpdf(v[name]), jacobian + np.log(v[name])
        excess.append(integral - stats.multivariate_normal.logpdf(y, mean, covariance) - law - jacobian)
    assert np.ptp(excess) < 1e-8 * abs(excess[0])


def test_three_effects_of_a_group_that_correlate():
    """The potential is the density of natural parameters, of which correlations have the LKJ law."""
    data, eta, labels = table(FAMILIES["gaussian"]), 2.5, ("1", "x", "w")
    formula, given = "y ~ x + (1 + x + w | g)", {"cor(g)": LKJ(eta)}
    model, _, priors, _, _, _ = made(formula, "gaussian", data, given)
    excess = []
    for k in range(3):
        x = near(model, k)
        natural = model.constrain(x)
        density, correlation = model.pointwise_log_likelihood(x).sum(), np.eye(3)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            correlation[i, j] = correlation[j, i] = natural[f"cor({labels[i]}, {labels[j]}|g)"]
        sds = np.array([natural["sd(g)"], natural["sd(x|g)"], natural["sd(w|g)"]])
        law = stats.multivariate_normal(cov=correlation * np.outer(sds, sds))
        density += law.logpdf(np.column_stack([natural[f"{label}|g"] for label in labels])).sum()
        density += (eta - 1.0) * np.linalg.slogdet(correlation)[1]
        for name, prior in priors.items():
            shift = natural["x"] * data["x"].mean() if name == "Intercept" else 0.0
            density += 0.0 if name.startswith("cor(") else DENSITIES[type(prior)](prior, natural[name] + shift)
        excess.append(model.potential(x) + density + log_volume(model, x))
    assert np.ptp(excess) < 1e-5 * max(1.0, abs(model.potential(x)))


#: By how much 1,000 times the response changes a parameter: it is multiplied, or its intercept is moved.
UNITS = {
    "gaussian": ({"Intercept", "x", "1|g", "sd(g)"}, {"sigma: Intercept"}),
    "student_t": ({"Intercept", "x", "1|g", "sd(g)", "sigma"}, set()),
    "skew_normal": ({"Intercept", "x", "1|g", "sd(g)", "sigma"}, set()),
    "exgaussian": ({"Intercept", "x", "1|g", "sd(g)", "sigma", "beta"}, set()),
    "gamma": (set(), {"Intercept"}),
    "weibull": (set(), {"Intercept"}),
    "lognormal": (set(), {"Intercept"}),
    "inverse_gaussian": (set(), {"Intercept", "shape: Intercept"}),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_change_nothing_but_units(name):
    """The response in thousandths and x in tenths: the same posterior of what has no unit."""
    family, data = FAMILIES[name], table(FAMILIES[name])
    last = {family.named[-1]: "~ w"} if name in ("gaussian", "inverse_gaussian") else {}
    formula, times = {"y": "y ~ x + (1 | g)"} | last, 1_000.0
    one, _, priors, _, _, _ = made(formula, family, data)
    two, _, others, _, _, _ = made(formula, family, data.assign(y=times * data["y"], x=10.0 * data["x"]))
    one, two = one.base, two.base
    scaled, moved = UNITS[name]
    shift = np.zeros(one.dim)
    for block, (first, _) in one.reported.places.items():
        if block.removeprefix("standardised ") in moved:
            shift[first] = math.log(times) / (one.reported.predictors[0].unit if block.endswith("d Intercept") else 1.0)
    at = [one.initial + 0.3 * np.random.default_rng(k).standard_normal(one.dim) for k in range(3)]
    for own, other in ((x, two_of(one, x, scaled, times) + shift) for x in at):
        a, b = one.constrain(own), two.constrain(other)
        for parameter in a:
            factor = (times if parameter in scaled else 1.0) / (10.0 if parameter == "x" else 1.0)
            rise = math.log(times) if parameter in moved else 0.0
            np.testing.assert_allclose(b[parameter], factor * a[parameter] + rise, rtol=1e-9, atol=1e-9)
    rises = [two.potential(two_of(one, x, scaled, times) + shift) - one.potential(x) for x in at]
    assert np.ptp(rises) < 1e-8 * abs(one.potential(at[0]))
    assert list(priors) == list(others)


def two_of(one, x, scaled, times):
    """The coordinates of the same point: logarithms of what has a unit are moved."""
    found = x.copy()
    for name in one.reported.constants:
        if name in scaled:
            found[one.reported.places[f"standardised {name}"][0]] += math.log(times)
    return found


def fitted(formula, family, data=None, **roles):
    """A fit at one point, and its natural parameters there."""
    family = family_of(family)
    data = table(family) if data is None else data
    model, designs, priors, notes, asked, roles = made(formula, family, data, **roles)
    kept = Kept(data, list(designs.values()))
    x = near(model, 4)
    columns = {name: roles[name] for name in ("offset", "exposure")}
    given = designs[family.named[0]], priors, notes, columns, asked.response.data
    fit = FamilyFit(asked.formula, family, model, Frozen(x), *given)
    fit.designs, fit.kept = designs, kept
    return fit, model.constrain(x)


NEW = {"x": [1.0, 4.0], "w": [-18.0, -25.0], "area": ["b", "a"], "g": ["t", "u"], "h": [3, 1], "n": [7, 2]}
MEANS = {
    "skew_normal": lambda z, s, a: stats.skewnorm.mean(a, z, exp(s)),
    "lognormal": lambda z, s: stats.lognorm.mean(exp(s), scale=exp(z)),
    "beta_binomial": lambda z, a: np.array([7, 2]) * expit(z),
    "zero_inflated_poisson": lambda z, w: expit(-w) * exp(z),
    "hurdle_poisson": lambda z, w: expit(-w) * exp(z) / -np.expm1(-exp(z)),
    "hurdle_gamma": lambda z, a, w: expit(-w) * exp(z),
    "hurdle_lognormal": lambda z, s, w: expit(-w) * stats.lognorm.mean(exp(s), scale=exp(z)),
    "zero_inflated_binomial": lambda z, w: expit(-w) * np.array([7, 2]) * expit(z),
    "von_mises": lambda z, a: 2.0 * np.arctan(z),
    "exgaussian": lambda z, s, b: z,
    "geometric": lambda z: exp(z),
}


@pytest.mark.parametrize("name", MEANS)
def test_predictions_by_hand(name, way):
    """Of a new table, with and without its noise, and of the data again."""
    family = FAMILIES[name]
    data = table(family).assign(shift=np.linspace(-0.3, 0.2, N))
    fit, natural = fitted(formulas_of(family), family, data, offset="shift")
    new = pandas.DataFrame(NEW).assign(shift=[0.3, -0.2])
    eta = functionals(family, new.assign(g=new["g"]), natural)
    found = fit.predict(new, draws=3)
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, np.broadcast_to(MEANS[name](*eta), (3, 2)), rtol=1e-9)
    np.testing.assert_allclose(fit.predict(data, draws=2), fit.predict(draws=2), rtol=1e-9)
    drawn = fit.predict(new, kind="response", draws=4_000, seed=2)
    if name != "von_mises":
        error = drawn.std(axis=0) / math.sqrt(len(drawn))
        assert np.all(np.abs(drawn.mean(axis=0) - found[0]) < 5.0 * error)
    with pytest.raises(ValueError, match="the group 'zz' of 'g' was not in the data"):
        fit.predict(new.assign(g="zz"))
    levels = fit.predict(new.assign(g=["t", "zz"]), unseen="zero", draws=1)
    assert levels[0, 0] == pytest.approx(found[0, 0]) and levels[0, 1] != pytest.approx(found[0, 1])


def test_categories_are_predicted_by_their_chances():
    data = table(FAMILIES["cumulative"])
    fit, natural = fitted(formulas_of(FAMILIES["cumulative"]), "cumulative", data)
    new = pandas.DataFrame(NEW)
    cuts = np.array([natural[f"cut[{k}]"] for k in (1, 2, 3)])
    above = expit(by_hand(new, natural)[:, None] - cuts)
    np.testing.assert_allclose(fit.predict(new, draws=2), np.tile(above.sum(axis=1), (2, 1)), rtol=1e-9)
    drawn = fit.predict(new, kind="response", draws=20_000, seed=3)
    for k in range(3):
        assert np.all(np.abs((drawn > k).mean(axis=0) - above[:, k]) < 5.0 * 0.5 / math.sqrt(20_000))
    np.testing.assert_allclose(fit.predict(data, draws=2), fit.predict(draws=2), rtol=1e-9)


class Points(Frozen):
    """A run that was at several points."""

    def draws(self, n):
        return np.stack([self.x, 1.1 * self.x - 0.05])[None, np.arange(n) % 2]


@pytest.mark.parametrize("name", ["beta_binomial", "gamma", "weibull", "cumulative"])
def test_what_follows_a_fit_needs(name, way, monkeypatch):
    """Linear predictors, log-likelihoods, columns and responses, at two points, of all rows and of some."""
    family = FAMILIES[name]
    data = table(family)
    fit, _ = fitted(formulas_of(family), family, data, weights="weight")
    fit.run = Points(fit.run.x)
    x, rows = fit.some_draws(2), np.array([1, 4, 13])
    natural = [fit.model.constrain(one) for one in x]
    links = np.array([by_hand(data, one) for one in natural])
    np.testing.assert_allclose(fit.predict(draws=2, kind="link"), links, rtol=1e-9)
    np.testing.assert_allclose(fit.predict(data, draws=2, kind="link"), links, rtol=1e-9)
    some = fit.predicted(x, None, "mean", "error", np.random.default_rng(0), rows=rows)
    np.testing.assert_array_equal(some, fit.predict(draws=2)[:, rows])
    many = fit.predict(draws=5)
    monkeypatch.setattr(general, "AT_ONCE", 2 * N)  # functionals of two draws at a time
    np.testing.assert_array_equal(fit.predict(draws=5), many)
    expected = [(data["weight"] * log_likelihood(family, data, one))[rows] for one in natural]
    np.testing.assert_allclose(fit.log_likelihoods(x, rows), expected, rtol=1e-8)
    np.testing.assert_allclose(fit.log_likelihoods(x, rows), fit.model.pointwise_log_likelihood(x)[:, rows], rtol=1e-12)
    np.testing.assert_array_equal(fit.observed, data["y"])
    np.testing.assert_array_equal(fit.row_weights, data["weight"])
    without = pandas.DataFrame(NEW).drop(columns=["g", "h"])
    zero = [{key: 0.0 * one[key] if "|" in key else one[key] for key in one} for one in natural]
    link = fit.predict(without, draws=2, kind="link", effects="zero")
    np.testing.assert_allclose(link, [by_hand(pandas.DataFrame(NEW), one) for one in zero], rtol=1e-9)


@pytest.mark.parametrize("family", ["cumulative", "cumulative_probit"])
def test_paths_that_end_at_cuts_in_another_order_are_rejected(family):
    """Five of 25 rows are in the category between: a path of a large step meets what has no density."""
    data = {"y": np.repeat([0, 1, 2], [6, 5, 14]), "x": np.random.default_rng(0).normal(size=25)}
    model = pdmp.regression("y ~ x", data, family, sample=False).model
    x = model.initial + [0.3, 0.0, 0.0]
    assert np.isfinite(model.potential(x)) and model.potential(x * [1.0, 0.0, 0.0] + [0.0, 0.2, 0.1]) == math.inf
    run = pdmp.sample(pdmp.HMC(model, step=0.35, duration=0.7), steps=60, seed=1, initial=x, progress=False)
    assert run.stats["outside"] > 0 and np.all(np.diff(run.draws(50)[0, :, 1:]) > 0.0)


RAW = np.random.default_rng(3).normal(size=30)
TIED = {
    "y": np.r_[1.3, 1.3, 1.3, 0.2, RAW[4:]],
    "x": np.r_[1.0, 1.0, 2.0, RAW[3:]],
    "g": np.r_[1, 2, np.arange(28) % 3],
}
TIED |= {"w": np.r_[0.6, 0.9, 0.7, 2.5, np.ones(26)], "shift": np.r_[0.0, 0.1, 0.2, RAW[3:]]}


@pytest.mark.parametrize(
    ("formula", "options", "name", "response", "weight"),
    [
        ({"y": "y ~ x", "mu2": "~ x"}, {}, "sigma1", "1.3", "2"),
        ({"y": "y ~ 1", "mu2": "~ x"}, {}, "sigma1", "1.3", "3"),
        ({"y": "y ~ x + RAW", "mu2": "~ x"}, {}, "sigma2", "1.3", "2"),
        ({"y": "y ~ x + RAW", "mu2": "~ x + (1 | g)"}, {}, None, None, None),
        ({"y": "y ~ x", "mu2": "~ RAW"}, {"offset": "shift"}, None, None, None),
        ({"y": "y ~ RAW", "mu2": "~ x"}, {"offset": "shift"}, "sigma2", "1.3", "2"),
        ({"y": "y ~ x", "mu2": "~ x"}, {"weights": "w"}, "sigma1", "0.2", "2.5"),
        ({"y": "y ~ x", "mu2": "~ RAW", "sigma1": "~ 1"}, {}, None, None, None),
        ({"y": "y ~ 1", "mu2": "~ RAW"}, {"priors": {"sigma1": Gamma(2.1, 1.0)}}, None, None, None),
        ({"y": "y ~ 1", "mu2": "~ RAW"}, {"priors": {"sigma1": Gamma(1.9, 1.0)}}, "sigma1", "1.3", "3"),
        ({"y": "y ~ x + RAW", "mu2": "~ s(x, k=4)"}, {}, "sigma2", "1.3", "2"),
        ({"y": "y ~ s(RAW, k=4)", "mu2": "~ gp(RAW)"}, {}, None, None, None),
    ],
)
def test_a_component_of_a_mixture_on_equal_rows_is_improper(formula, options, name, response, weight):
    """∫ σ^(1 - W) p(σ) dσ, of rows that weigh W, is infinite unless p vanishes fast enough at 0."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        fit = pdmp.regression(formula, TIED | {"RAW": RAW}, "mixture_gaussian", sample=False, **options)
    said = [str(one.message) for one in heard if "rows of equal columns" in str(one.message)]
    assert bool(said) == (name is not None)
    if said:
        start = f"rows of equal columns have the response {response}, as rounded ones do, and weigh {weight} together: "
        assert said[0].startswith(start) and f"where {name} goes to 0 there, and the posterior is improper" in said[0]
        assert f"with a shape above {float(weight) - 1.0:.3g} " in said[0] and said[0].rstrip(".") in repr(fit)


@pytest.mark.parametrize(("family", "said"), [("mixture_gaussian", 1), ("mixture_poisson", 1), ("student_t", 0)])
def test_a_mixture_says_that_its_components_can_be_exchanged(family, said):
    """A run that begins in one of the two labellings has nothing to see."""
    formula = {"y": "y ~ x", "mu2": "~ 1"} if said else "y ~ x"
    data = {"y": np.array([3.0, 1.0, 7.0, 2.0, 9.0, 4.0, 6.0, 5.0]), "x": np.arange(8.0)}
    fit = pdmp.regression(formula, data, family, sample=False)
    wanted = f"the components of {family} can be exchanged: the posterior has two modes unless priors tell them apart"
    assert sum(note.startswith(wanted) for note in fit.notes) == said


def test_effects_of_a_new_group_are_drawn_with_their_correlation():
    """In the rows of one new group, and of groups that are new beside one that is not."""
    new = pandas.DataFrame(NEW)
    fit, natural = fitted(formulas_of(FAMILIES["gamma"]), "gamma")
    link = fit.predict(new.drop(columns=["g", "h"]), draws=4_000, kind="link", effects="draw", seed=1)
    a, b, r, x = natural["sd(g)"], natural["sd(x|g)"], natural["cor(1, x|g)"], np.array(NEW["x"])
    assert abs(r) > 0.1
    covariance = a * a + np.outer(x, x) * b * b + r * a * b * np.add.outer(x, x)
    sds = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(np.cov(link.T) - covariance) < 0.1 * np.outer(sds, sds))  # five standard errors are 0.11
    own = {name: value for name, value in natural.items() if "|" not in name}
    none = by_hand(new, own | {"1|g": np.zeros(4), "x|g": np.zeros(4)})
    assert np.all(np.abs(link.mean(axis=0) - none) < 5.0 * sds / math.sqrt(4_000))
    more = pandas.DataFrame(NEW | {"x": [4.0, 4.0], "g": ["new", "t"]})
    link = fit.predict(more, draws=4_000, kind="link", unseen="draw", seed=2)
    assert link[:, 0].std() == pytest.approx(sds[1], rel=0.06) and link[:, 1].std() < 1e-9


def test_correlated_effects_of_a_new_group_behind_others():
    """Those of h come first, of groups that are known."""
    data = table(family_of("gamma"))
    fit, natural = fitted("y ~ x + (1 | h) + (0 + w | h) + (1 + x | g)", "gamma", data)
    assert [g.name for g in fit.groups] == ["1|h", "w|h", "1|g", "x|g"]
    link = fit.predict(pandas.DataFrame(NEW | {"g": ["new", "t"]}), draws=4_000, kind="link", unseen="draw", seed=2)
    a, b, r, x = natural["sd(g)"], natural["sd(x|g)"], natural["cor(1, x|g)"], NEW["x"][0]
    assert link[:, 0].std() == pytest.approx(math.sqrt(a * a + x * x * b * b + 2.0 * r * a * b * x), rel=0.06)
    assert abs(r) > 0.1 and link[:, 1].std() < 1e-9


def test_drawn_responses_are_not_set_beside_censored_ones():
    """When a drawn one would have been censored is not known; of other responses beside something they are."""
    data = table(FAMILIES["weibull"])
    data["seen"] = np.arange(len(data)) % 3 == 0
    prepared = pdmp.regression("y | cens(seen) ~ x", data, "weibull", sample=False, seed=1)
    for one in (prepared.pp_check, prepared.prior_predictive):
        with pytest.raises(ValueError, match=r"of cens\(\.\.\.\) it is not known when .*SurvfuncRight"):
            one()
    groups = prepared.to_arviz(5)
    assert "prior" in groups and "prior_predictive" not in groups
    fit = fitted("y | cens(seen) ~ x", "weibull", data)[0]
    fit.run.to_arviz = lambda n: {"posterior": SimpleNamespace(sizes={"chain": 1, "draw": 5})}
    assert set(fit.to_arviz(5)) == {"posterior"}
    uncensored = pdmp.regression("y | trunc(lb=1e-9) ~ x", data, "weibull", sample=False, seed=1)
    assert uncensored.pp_check(draws=5).replicated.shape == (
        5,
        len(data),
    ) and "prior_predictive" in uncensored.to_arviz(5)


def test_a_row_of_weight_two_counts_as_two_in_averages():
    """Of families with parameters beside the mean too."""
    data = table(FAMILIES["gamma"])
    fit, _ = fitted({"y": "y ~ x + w", "shape": "~ w"}, "gamma", data, weights="weight")
    each = [fit.predict(data.assign(x=x), draws=1)[0] for x in (1.0, 4.0)]
    found = fit.contrasts("x", at={"x": [1.0, 4.0]}, draws=1).draws[0, 0]
    assert found == pytest.approx(np.average(each[1] - each[0], weights=data["weight"]), rel=1e-10)
    assert found != pytest.approx(np.mean(each[1] - each[0]), rel=1e-3)


@pytest.mark.parametrize("link", RISES)
def test_units_of_default_priors_are_the_slopes_of_links(link):
    for mean in (0.3, 2.0):
        ahead, behind = (float(LINKS[link].forward(mean + h)) for h in (1e-5, -1e-5))
        assert RISES[link](mean) == pytest.approx(abs(ahead - behind) / 2e-5, rel=1e-8)  # of differences


def test_priors_of_what_follows_a_fit():
    """An intercept's is for rows at the means of its own formula; those of other numbers than a parameter are named."""
    data = table(FAMILIES["gamma"])
    fit, _ = fitted({"y": "y ~ x + w", "shape": "~ w"}, "gamma", data)
    found = fit.uncentred({"Intercept": 2.0, "x": 0.5, "shape: Intercept": 1.0})
    x, w = data["x"].mean(), data["w"].mean()
    expected = {"Intercept": 2.0, "x": 0.5 - 2.0 * x, "w": -2.0 * w, "shape: Intercept": 1.0, "shape: w": -w}
    assert found == pytest.approx(expected, rel=1e-12)
    assert all(map(fit.knows_prior, fit.priors)) and fit.uncentred({"x": 0.0, "w": 1.0}) == {"w": 1.0}
    inflated, _ = fitted("y ~ x", "zero_inflated_poisson")
    assert [name for name in inflated.priors if not inflated.knows_prior(name)] == ["zi"]
    ordered, _ = fitted("y ~ x", "cumulative")
    ordered.run.constrain = ordered.model.constrain
    assert [name for name in ordered.priors if not ordered.knows_prior(name)] == ["cut[1]", "cut[2]", "cut[3]"]
    with pytest.raises(ValueError, match=r"the prior of 'cut\[1\]' is of another number; ask for < or >."):
        ordered.hypothesis("cut[1] = 0")


def assert_alike(one, other):
    """Priors but for rounding."""
    assert type(one) is type(other)
    assert astuple(one) == pytest.approx(astuple(other), rel=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_compiled_regressions_have_the_same_priors_and_notes(name, monkeypatch):
    monkeypatch.setattr(general, "modelled", lambda *known: None)
    data = table(FAMILIES[name])
    data.loc[3, "h"] = 9
    formula, given = "y ~ x + area + offset(0.02 * w) + (1 + x || g) + (1 | h)", {"area": Normal(0.3, 1.0)}
    _, _, priors, notes = made_compiled(formula, name, data, given, weights="weight")
    _, _, others, said, _, _ = made(formula, name, data, given, weights="weight")
    assert list(priors) == list(others) and sorted(notes) == sorted(said)
    assert "1 of 6 groups of h have one row" in notes and "area is relative to a" in notes
    for one, prior in priors.items():
        assert_alike(prior, others[one])


#: Families that are not of the table: nothing is known of their units, and one looks at no number besides.
OWN = {
    "huber": Family("huber", lambda y, z: (1.0 + (y - z) ** 2) ** 0.5, draw=lambda rng, z: z, mean=lambda z: z),
    "logistic": Family(
        "logistic",
        lambda y, z, a: a + 2.0 * softplus((y - z) * np.exp(-a)) - (y - z) * np.exp(-a),
        draw=lambda rng, mu, phi: rng.logistic(mu, phi),
        mean=lambda mu, phi: mu,
        links={"mu": "identity", "phi": "log"},
    ),
}


@pytest.mark.parametrize(
    ("name", "left", "effects"),
    [
        *[(one.name, "y", "(1 | g)") for one in FAMILIES.values() if one.name not in LAWS and law_of(one)],
        *[(name, "y", "(1 + x | g)") for name in ("gaussian", "gamma")],
        *[(one.name, "y | trials(n)", "(1 | g)") for one in FAMILIES.values() if "trials" in one.data],
        ("beta_binomial", "y | trials(8)", "(1 + x | g)"),
        *[(one.name, "y | cens(c, later)", "(1 | g)") for one in FAMILIES.values() if "upper" in one.data],
        ("weibull", "y | cens(c)", "(1 + x | g)"),
        ("gaussian", "y | trunc(lb=-20)", "(1 | g)"),
        ("gaussian", "y | trunc(lb=low, ub=high)", "(1 + x | g)"),
        ("lognormal", "y | trunc(ub=high)", "(1 | g)"),
        ("gaussian", "y | se(weight)", "(1 | g)"),
        ("gaussian", "y | se(weight, sigma=True)", "(1 | g)"),
        ("gaussian, log", "y", "(1 | g)"),
        *[(name, "y", "(1 | g)") for name in OWN],
    ],
)
def test_effects_of_every_family_are_those_of_sums_of_terms(name, left, effects, monkeypatch):
    """Density, log-likelihoods, means and draws of rows that are sub-sampled, priors and notes."""
    for number in ("GROUPED_ROWS", "MANY_GROUPS", "INTERCEPT_ROWS", "SLOPE_ROWS", "SUBSAMPLED_ROWS"):
        monkeypatch.setattr(fitting, number, 1)
    monkeypatch.setattr(general, "made_for_sampling", lambda predictors, y, rest, known: general.made(*known))
    name, _, link = name.partition(", ")
    name = OWN.get(name, name)
    data, formula = table(family_of(name), 40), f"{left} ~ x + area + offset(0.02 * w) + {effects}"
    data = data.assign(low=data["y"] - data["weight"], high=data["y"] + data["weight"] ** 2)
    if left == "y | cens(c)":
        data["c"] = np.minimum(data["c"], 1.0)
    if link:
        data["y"] = np.abs(data["y"])
    options = {"priors": {"area": Normal(0.3, 1.0)}, "weights": "weight", "seed": 1, "sample": False}
    options["link"] = link or None
    if "x" in effects:
        options["priors"]["cor(g)"] = LKJ(1.5)
    one = pdmp.regression(formula, data, name, **options)
    if "x" in effects:  # what is prepared are sums of terms
        one = one._sampled.args[0]
    monkeypatch.setattr(fitting, "law_of", lambda *_: None)
    other, model = (
        pdmp.regression(formula, data, name, **options),
        one.model if "x" in effects else one._sampled.args[0].model,
    )
    assert type(model) is GroupIntercepts and type(other.model) is SumOfTerms
    assert list(one.priors) == list(other.priors) and one.notes == other.notes
    for called, prior in one.priors.items():
        assert_alike(prior, other.priors[called])
        assert one.prior_name(called) == other.prior_name(called)
    model.check_gradient(points=1, data=3)
    points = model.initial + 0.2 * np.random.default_rng(2).standard_normal((5, model.dim))
    natural = model.constrain(points)
    x, z = one.unconstrained(natural), other.unconstrained(natural)
    differences = [model.potential(p) - other.model.potential(q) for p, q in zip(points, z, strict=True)]
    if "x" in effects:  # the logarithm of the Jacobian, by differences
        steps = 1e-5 * np.eye(model.dim)
        for k, p in enumerate(points):
            above, below = (other.unconstrained(model.constrain(p + sign * steps)) for sign in (1.0, -1.0))
            differences[k] += np.linalg.slogdet((above - below) / 2e-5)[1]
        assert differences[0] == pytest.approx(model.omitted() - other.model.omitted(), abs=1e-6)
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9, atol=1e-6 if "x" in effects else 1e-9)
    known = [fit.log_likelihoods(at, np.arange(0, 40, 3)) for fit, at in ((one, x), (other, z))]
    np.testing.assert_allclose(*known, rtol=1e-9, atol=1e-9)
    for kind, rows in (("link", None), ("mean", None), ("mean", data[:7]), ("response", None), ("response", data[:7])):
        if kind == "link" or getattr(one.family, {"mean": "mean", "response": "draw"}[kind]) is not None:
            found = [
                fit.predicted(at, rows, kind, "zero", np.random.default_rng(3)) for fit, at in ((one, x), (other, z))
            ]
            np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


def test_rows_of_a_dict_are_counted_and_not_its_columns(monkeypatch):
    for number, value in (("GROUPED_ROWS", 40), ("SUBSAMPLED_ROWS", 40), ("INTERCEPT_ROWS", 1)):
        monkeypatch.setattr(fitting, number, value)
    data = table(family_of("gamma"), 40)
    for given in (data, data.to_dict("list")):
        prepared = pdmp.regression("y ~ x + (1 | g)", given, "gamma", sample=False, seed=1)
        assert type(prepared) is Prepared and type(prepared._sampled.args[0].model) is GroupIntercepts


def test_correlated_effects_that_are_not_sub_sampled_are_those_of_sums_of_terms(monkeypatch):
    for number in ("SLOPE_ROWS", "SUBSAMPLED_ROWS"):
        monkeypatch.setattr(fitting, number, 1)
    general_fit = SimpleNamespace(notes=["of it"], replaced=lambda notes: notes)
    monkeypatch.setattr(fitting, "subsampled", lambda *_: (None, None, "for a reason"))
    monkeypatch.setattr(fitting, "regress", lambda *_: (None, lambda: general_fit))
    found = pdmp.regression("y ~ x + (1 + x | g)", table(FAMILIES["gaussian"], 40), seed=1)
    assert found == ["of it", "rows are not sub-sampled: for a reason"]


@pytest.mark.parametrize(
    ("effects", "priors", "options"),
    [
        ("(1 + x | g)", {"cor(g)": LKJ(3.0)}, {}),
        ("(1 + x | g)", {"cor(1, x|g)": LKJ(3.0), "sd(x|g)": HalfNormal(2.0)}, {"weights": "weight"}),
        ("(1 + x + w | g)", {"cor(g)": LKJ(3.0)}, {}),
        ("(0 + area | g)", {"cor(g)": LKJ(3.0)}, {}),
    ],
)
def test_priors_of_correlations_of_groups_with_few_rows(effects, priors, options, monkeypatch):
    """Of a table so long that rows would be sub-sampled, had groups more of them: as of a short one."""
    data, given = table(FAMILIES["gaussian"], 40), {"priors": priors, "sample": False, "seed": 1, **options}
    short = pdmp.regression(f"y ~ x + area + w + {effects}", data, **given)
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 1)
    long = pdmp.regression(f"y ~ x + area + w + {effects}", data, **given)
    assert type(long.model) is type(short.model)
    assert long.priors == short.priors
    assert any(prior == LKJ(3.0) for prior in long.priors.values())
    assert long.notes == short.notes
    assert long.model.potential(long.model.initial) == short.model.potential(short.model.initial)


def test_what_data_say_of_effects(monkeypatch):
    """Of a normal law by hand: of a group its rows over the variance, given all others, however it is found."""
    monkeypatch.setattr(information_module, "MOMENTS", 6)
    monkeypatch.setattr(information_module, "STEPS", 12)
    monkeypatch.setattr(information_module, "LAST_STEPS", 5)
    rng = np.random.default_rng(8)
    size = np.repeat([1, 3, 10, 30], 3)
    level = np.repeat(np.arange(12), size)
    effect = rng.normal(0.0, 0.5, 12)
    data = pandas.DataFrame({"g": level, "y": effect[level] + rng.standard_normal(len(level))})
    model, _, _, _, _, _ = made({"y": "y ~ 1 + (1 | g)", "sigma": "~ 1"}, "gaussian", data)
    base, sets = model.base, model.reported.effect_sets()
    known = effect_information(base, sets, base.initial, [0])
    log_sigma = known.at[base.reported.places["standardised sigma: Intercept"][0]]
    expected = np.repeat([1, 3, 10, 30], 3) * data["y"].var(ddof=0) * exp(-2.0 * log_sigma)
    np.testing.assert_allclose(known.information[0][:, 0], expected, rtol=1e-6)
    share = known.shares(sets)[0]
    assert share.min() < 0.3 and share.max() > 0.9 and exp(known.at[sets[0].spreads[0]]) == pytest.approx(0.5, rel=0.4)
    # With one block, and with one a group, effects are where the data put them given the law of effects.
    assert np.diff(model.block_first).tolist() == [14]
    for found in (model, information_module.standardised(base, sets, known)):
        inside = found.natural_draws(found.initial)
        np.testing.assert_allclose(inside[sets[0].effects], known.at[sets[0].effects], atol=0.02)


def test_terms_that_correlate():
    """By their bars, also of nested groupings and of the columns of a category; names and priors of correlations."""
    data, exact = table(FAMILIES["gamma"]), LKJ(3.0)
    for formula, together, names in (
        ("(1 + x + w | g)", [[0, 1, 2]], ["cor(1, x|g)", "cor(1, w|g)", "cor(x, w|g)"]),
        ("(0 + x | g) + (w||h)", [[0], [1], [2]], []),
        ("(w | g/h)", [[0, 2], [1, 3]], ["cor(1, w|g)", "cor(1, w|g:h)"]),
        ("(0 + area | h)", [[0, 1, 2]], [f"cor(area[{a}], area[{b}]|h)" for a, b in ("ab", "ac", "bc")]),
        ("(0 + area || h) + (w | h)", [[0], [1], [2], [3, 4]], ["cor(1, w|h)"]),
    ):
        model, designs, priors, _, _, _ = made(f"y ~ x + {formula}", "gamma", data)
        places = [g.name for g in designs["mu"].groups].index
        assert [[*map(places, one.names)] for one in model.reported.predictors[0].sets] == together
        assert [name for name in priors if name.startswith("cor(")] == names
    for name in ("cor(g)", "cor(1, x|g)"):
        assert made("y ~ x + (1 + x | g)", "gamma", data, {name: exact})[2]["cor(1, x|g)"] == exact
    for name, prior, said in (
        ("cor(g)", Normal(0.0, 1.0), r"is of correlations, and Normal\(0, 1\) is no prior of them; try LKJ\(1\)"),
        ("x", LKJ(1.0), r"'x' is a number of either sign, and LKJ\(1\) is no prior of one"),
        ("cor(x|g)", exact, "which is no parameter"),
    ):
        with pytest.raises(ValueError, match=said):
            made("y ~ x + (1 + x | g)", "gamma", data, {name: prior})
    with pytest.raises(ValueError, match=r"the column 'cor\(1, x\|g\)' cannot be told apart"):
        made("y ~ `cor(1, x|g)` + (1 + x | g)", "gamma", data.assign(**{"cor(1, x|g)": data["x"]}))
    counts = table(FAMILIES["poisson"])
    for option, what in (({"select": "all"}, "with `select`"), ({"sampler": "zigzag"}, "with `sampler`")):
        with pytest.raises(ValueError, match=f"are not estimated {what}: write \\(1 \\+ x \\|\\| g\\)"):
            pdmp.regression("y ~ x + (1 + x | g)", counts, family="poisson", **option)


def test_words_of_other_tools():
    data = table(FAMILIES["binomial"]).rename(columns={"w": "my w"})
    data["k"] = np.minimum(data["y"], data["n"]).astype(int)
    one = made("k | trials(n) ~ log(w + 30) + x", "binomial", data.rename(columns={"my w": "w"}))[0]
    x = one.initial + 0.2
    for formula in (
        "p(k, n) ~ np.log(Q('my w') + 30) + x",
        "prop(k, n) ~ log(`my w` + 30) + x",
        'k|trials( n ) ~ log(Q("my w") + 30) + x',
    ):
        assert made(formula, "binomial", data)[0].potential(x) == one.potential(x)


def test_trials_of_new_rows():
    """0 of 0 is a row like any other; means alone have parts of a trial; what is drawn has none."""
    for values, drawn, is_taken in (
        ([0, 3], True, True),
        ([0.0, 2.5], False, True),
        ([0.0, 2.5], True, False),
        ([3, -1], False, False),
    ):
        given = FAMILIES["binomial"], {"trials": "n"}, pandas.DataFrame({"n": values}), drawn
        if is_taken:
            assert read_for_predictions(*given)["trials"].tolist() == values
        else:
            with pytest.raises(ValueError, match=f"must be whole numbers of at least 0, got {values[1]:g}"):
                read_for_predictions(*given)


def test_censoring_is_read_in_words():
    data = table(FAMILIES["weibull"])
    one = made("y | cens(c, later) ~ x", "weibull", data)[0]
    words = np.array(["left", "none", "right", "interval"], dtype=object)[(data["c"] + 1).to_numpy(int)]
    two = made("cens(y, word, later) ~ x", "weibull", data.assign(word=words))[0]
    x = one.initial + 0.1
    assert one.potential(x) == two.potential(x)
    seen = made("y | cens(late) ~ x", "weibull", data.assign(late=data["c"] == 1.0))[0]
    other = made("y | cens(late) ~ x", "weibull", data.assign(late=np.where(data["c"] == 1.0, "right", "none")))[0]
    assert seen.potential(x) == other.potential(x) != one.potential(x)


LEFT_SIDES = {  # the response, further data, arguments of `regression`, whether rows scatter beyond known errors
    "p(k, n)": ("k", {"trials": "n"}, {}, False),
    " prop( k , 7 ) ": ("k", {"trials": "7"}, {}, False),
    "k | trials( n ) + weights(`my w`)": ("k", {"trials": "n"}, {"weights": "my w"}, False),
    "cens(y, c)": ("y", {"censored": "c"}, {}, False),
    "censored(y, c, u)": ("y", {"censored": "c", "upper": "u"}, {}, False),
    "y | cens(c, u)": ("y", {"censored": "c", "upper": "u"}, {}, False),
    "c | rate(t)": ("c", {}, {"exposure": "t"}, False),
    "weighted(log(y), w)": ("log(y)", {}, {"weights": "w"}, False),
    "truncated(y, lb=1, ub=u)": ("y", {"lb": "1", "ub": "u"}, {}, False),
    "constrained(y, 1)": ("y", {"lb": "1"}, {}, False),
    "y | trunc(0, np.inf)": ("y", {"lb": "0"}, {}, False),
    "y | trunc(lb=-inf, ub=3)": ("y", {"ub": "3"}, {}, False),
    "y | trunc(lb = -np.Inf, ub = +Inf)": ("y", {}, {}, False),
    "y | trunc(lb=0) + trunc(ub=1)": ("y", {"lb": "0", "ub": "1"}, {}, False),
    "y | se(s)": ("y", {"se": "s"}, {}, False),
    "y | se(s, sigma = False)": ("y", {"se": "s"}, {}, False),
    **{f"y | se(s, {one})": ("y", {"se": "s"}, {}, True) for one in ("sigma=True", "sigma =TRUE", " sigma= T ")},
}
TWICE = ("trials(n) + trials(m)", "cens(c) + cens(d)", "se(s) + se(s)", "weights(w) + weights(v)", "trials(n, m)")
SE = ("sgma=True", "True", "sigma=True, u", "sigma=True, sigma=True")


def test_left_sides_of_formulas():
    for text, wanted in LEFT_SIDES.items():
        assert tuple(read_response(text)) == wanted, text
    for texts, says in (
        ([*(f"y | {one}" for one in TWICE), "p(k, n) | trials(m)", "cens(y, c) | cens(d)"], "may stand .* once each"),
        ([f"y | se(s, {one})" for one in SE], "takes a column, and sigma=True or"),
        (["y | trunc(lb=0) + trunc(lb=1)", "truncated(y, 0, 1, 2)"], "takes lb=, ub= or both, once each"),
        ([f"y | trunc({one})" for one in ("lb=+np.inf", "ub=-Inf", "0, -np.inf")], "leaves no responses that could be"),
    ):
        for text in texts:
            with pytest.raises(ValueError, match=says):
                read_response(text)


def test_right_sides_of_formulas():
    """As formulae reads them; names and texts in quotes stay as they are."""
    for text, wanted in {
        "Q( \"a b\" ) + Q('c') + fQ('d')": "`a b` + `c` + fQ('d')",
        "x^2 + `a^b` + f('a^b')": "x**2 + `a^b` + f('a^b')",
        "C(x, Sum) + C(x,Treatment )": "C(x, Sum()) + C(x, Treatment())",
        ". - x": "(x + `a b`) - x",
        "np.log(x) * 1.5 + .5 + f('a . b')": "np.log(x) * 1.5 + .5 + f('a . b')",
    }.items():
        assert translated(text, ["y", "x", "a b"], ["y"]) == wanted
    for text, plain, effects in (
        ("(1 || `a||b`) + (x | g)", "(1 | `a||b`) + (x | g)", [("1 | `a||b`", True), ("x | g", False)]),
        ("I(p | q) + f((p | q)) + (x | g)", "I(p | q) + f((p | q)) + (x | g)", [("x | g", False)]),
        ("(1 |p| `a|b`) + (x |\n2 | g)", "(1 | `a|b`) + (x | g)", [("1 | `a|b`", False, "p"), ("x | g", False, "2")]),
        ("(1 | `p` | g) + (x|q|g)", "(1 | `p` | g) + (x|g)", [("1 | `p` | g", False), ("x|g", False, "q")]),
    ):
        assert bars(text) == (plain, [Bar(*one) for one in effects])
    pieces = [("+", "x"), ("-", "`a-b`"), ("+", "f(a + b)"), ("-", "z")]
    assert pieces_between("x - `a-b` + f(a + b) - z") == pieces
    assert parts_between("a, `b,c`, f(d, e)", ",") == ["a", " `b,c`", " f(d, e)"]
    assert read_call(" f(x, g(y, z)) ") == ("f", ["x", "g(y, z)"]) and read_call("f(x) + g(y)") is None
    names = ["a b", "a b c", "d"]
    for text in ("xa b", "a bc", "`a b` + d", "f('a b')", "x.a b"):
        check_spaces(text, names)
    for text in ("x + a  b", "(a b c)"):
        with pytest.raises(ValueError, match="has spaces: write it in backticks"):
            check_spaces(text, names[text == "(a b c)" :])
    check_words("f(x == 1, x == 2) + `s(k=1,k=2)`", None)
    for text in ("f(x, k = 3, k=4)", "1 + g(f(x, k=3, k=4))"):
        with pytest.raises(ValueError, match=r"f\(...\) is given 'k' twice"):
            check_words(text, None)
    for text, says in (("x + te(u, v)", r"t2\(u, v\)"), ("te(u, k=5)", r"t2\(u, z\)"), ("lo()", r"s\(x?\)")):
        with pytest.raises(ValueError, match=f"is no term here; a .* is {says}"):
            check_words(text, SimpleNamespace(namespace={}))
    assert columns_of(SimpleNamespace(columns=["x"], dask=None)) is None and columns_of({"x": [1.0]}) == ["x"]


@pytest.mark.parametrize("words", [False, True])
def test_the_end_of_an_interval_may_be_missing_in_other_rows_alone(words):
    """There nothing looks at it; an interval without an end is a row with a missing value."""
    data = table(FAMILIES["weibull"])
    interval = data["c"] == 2
    if words:
        data["c"] = np.array(["Left", "none", "right", "Interval"], dtype=object)[(data["c"] + 1).to_numpy(int)]
    whole = made("y | cens(c, later) ~ x", "weibull", data)[0]
    ends = data.assign(later=data["later"].where(interval))
    assert ends["later"].isna().any() and interval.sum() > 3
    x = whole.initial + 0.1
    assert made("y | cens(c, later) ~ x", "weibull", ends)[0].potential(x) == whole.potential(x)
    row = data.index[interval][1]
    ends.loc[row, "later"] = np.nan
    found, *_, notes = made("y | cens(c, later) ~ x", "weibull", ends)[:4]
    without = made("y | cens(c, later) ~ x", "weibull", data.drop(index=row).reset_index(drop=True))[0]
    assert found.potential(x) == without.potential(x) != whole.potential(x)
    assert any("1 of" in note and "missing" in note for note in notes), notes


@pytest.mark.parametrize("ascending", [True, False])
def test_more_than_ten_cuts_keep_their_numbers(ascending, monkeypatch):
    """cut[10] is behind cut[9], and not behind cut[1]; draws of the prior of those that ascend are sorted."""
    rng, names = np.random.default_rng(2), [f"cut[{k + 1}]" for k in range(12)]
    first = SimpleNamespace(centre=np.array([2.5]), columns=["x"])
    coding = SimpleNamespace(n_cuts=12, cut_names=names, predictors=[first])
    fit = object.__new__(FamilyFit)
    fit.model, fit.family = SimpleNamespace(reported=coding), SimpleNamespace(has_ascending_cuts=ascending)
    monkeypatch.setattr(pdmp.formulas.Fit, "from_priors", lambda self, values: dict(values))
    values = {name: rng.standard_normal(4) for name in (*names, "x")}
    found = fit.from_priors(values)
    cuts = np.array([values[name] for name in names])
    for name, wanted in zip(names, np.sort(cuts, axis=0) if ascending else cuts, strict=True):
        np.testing.assert_allclose(found[name], wanted + 2.5 * values["x"], rtol=1e-12)


def test_a_function_of_the_users_that_is_called_mi_is_called_and_imputes_nothing():
    data = table(FAMILIES["gaussian"])
    mi = np.cbrt
    found = pdmp.regression("y ~ mi(x) + w", data, sample=False).model
    other = pdmp.regression("y ~ np.cbrt(x) + w", data, sample=False).model
    x = found.initial + 0.1
    assert mi is np.cbrt and found.potential(x) == other.potential(x)
    with pytest.raises(ValueError, match="`mi` is a function of your code, and imputes nothing: rename it"):
        pdmp.regression({"y": "y ~ mi(x) + w", "x": "x | mi() ~ w"}, data, sample=False)


def test_categories_in_their_order():
    data = table(FAMILIES["cumulative"])
    plain = made("y ~ x", "cumulative", data)
    names = np.array(["no", "some", "more", "most"])[data["y"].astype(int)]
    ordered = pandas.Categorical(names, categories=["never", "no", "some", "more", "most"], ordered=True)
    model, _, priors, notes, _, _ = made("y ~ x", "cumulative", data.assign(y=ordered))
    assert notes == ["categories of y are numbered from 0: no < some < more < most"] and plain[3] == []
    assert model.potential(model.initial) == plain[0].potential(model.initial)
    assert list(priors) == ["x", "cut[1]", "cut[2]", "cut[3]"]
    gaps = made("y ~ x", "cumulative", data.assign(y=data["y"] * 2 + 1))
    assert gaps[3] == ["categories of y are numbered from 0: 1 < 3 < 5 < 7"]
    assert gaps[0].potential(model.initial) == model.potential(model.initial)
    one, other = (
        made(formula, "cumulative", data.assign(y=values))[0]
        for formula, values in (("y[more] ~ x", ordered), ("y ~ x", (names == "more").astype(int)))
    )
    x = other.initial + 0.1
    assert one.potential(x) == other.potential(x)  # one level of the response, against all others


def test_families_of_ones_own():
    rayleigh = pdmp.Family(
        "rayleigh",
        loss=lambda y, z: 2 * z + 0.5 * y**2 * np.exp(-2 * z),
        draw=lambda rng, scale: rng.rayleigh(scale),
        mean=lambda scale: scale * np.sqrt(np.pi / 2),
        links={"scale": "log"},
        constant=np.log,
        response="positive",
    )
    data = table(FAMILIES["gamma"])
    fit, natural = fitted("y ~ x", rayleigh, data)
    scale = exp(natural["Intercept"] + natural["x"] * data["x"])
    np.testing.assert_allclose(fit.predict(draws=1)[0], scale * math.sqrt(math.pi / 2), rtol=1e-10)
    own = fit.model.pointwise_log_likelihood(fit.run.x)
    np.testing.assert_allclose(own, stats.rayleigh.logpdf(data["y"], scale=scale), rtol=1e-9)
    assert_alike(fit.priors["Intercept"], Normal(math.log(data["y"].mean()), 2.5))
    silent = pdmp.Family("rayleigh", loss=rayleigh.loss, links={"scale": "log"}, response="positive")
    for kind, what in (("mean", "mean"), ("response", "draw")):
        with pytest.raises(ValueError, match=f"rayleigh knows no `{what}`: give it to pdmp.Family"):
            fitted("y ~ x", silent, data)[0].predict(kind=kind)
    for given, says in (
        ({"priors": {"scal": Normal(0.0, 1.0)}}, "`priors` names 'scal'; parameters of rayleigh are scale"),
        ({"units": ("sigma",)}, "`units` names 'sigma'"),
    ):
        with pytest.raises(ValueError, match=says):
            pdmp.Family("rayleigh", loss=rayleigh.loss, links={"scale": "log"}, response="positive", **given)
    with pytest.raises(TypeError, match="`priors`: that of 'scale' must be one of pdmp.models.priors, got 3"):
        pdmp.Family("rayleigh", loss=rayleigh.loss, links={"scale": "log"}, priors={"scale": 3})


MISTAKES = [
    ("y ~ x", {"family": "gama"}, r"`family` must be one of .*; did you mean 'gamma'\?"),
    ("y ~ x", {"family": 3}, "the name of a family or a pdmp.Family, got int."),
    ("y ~ x", {"family": "binomial"}, r"binomial needs the number of trials: y \| trials\(n\) ~ …; of labels the"),
    ("y | trials(n) ~ x", {"family": "poisson"}, r"poisson takes no `\| trials\(...\)`"),
    ("y | cens(c) ~ x", {"family": "gamma"}, r"gamma takes no `\| cens\(...\)`"),
    ("y | weights(w) ~ x", {"weights": "w"}, "`weights` is given twice: as an argument, and beside the response"),
    ("y | weights(w) + weights(w) ~ x", {}, r"`\| weights\(w\)` or `\| rate\(t\)`, once each, got"),
    ("y | se(n, w) ~ x", {}, r"`\| se\(n, w\)` takes a column, and sigma=True or not"),
    (
        "y | se(n) ~ x",
        {"family": "gamma"},
        "known standard errors are for the family gaussian with its own links, not g",
    ),
    ("y | se(w) ~ x", {}, "`se` must be above 0, got -.* in row"),
    ({"y": "y | se(n) ~ x", "sigma": "~ x"}, {}, r"`\| se\(s\)` leaves no sigma; `\| se\(s, sigma=True\)` has one"),
    ("y | foo(w) ~ x", {}, r"beside the response may stand `\| trials\(n\)`, .*, got `\| foo\(w\)`"),
    ("cbind(k, m) ~ x", {"family": "binomial"}, r"cbind\(k, m\) is of the family multinomial; .* k \| trials\(n\)"),
    ("Surv(t, dead) ~ x", {"family": "weibull"}, r"Surv\(t, dead\) is written t \| cens\(c\), with c 0 where"),
    ("y ~ w + te(x, w)", {}, r"te\(...\) is no term here; a surface is t2\(x, w\)."),
    ("y ~ w:s(x)", {}, r"s\(...\) stands alone between \+, and in no product but mo.* times a number, is s\(x, by=a\)"),
    ("y ~ x - s(w)", {}, r"s\(w\) cannot be taken away: leave it out"),
    ("y ~ s(w) + s(w, k=4)", {}, r"s\(w\) stands there twice"),
    ("((w - x)) ~ x", {}, r"a response that is computed is written I\(\(\(w - x\)\)\)"),
    ("y ~ `cor(1, x|h)` + (1 | g) + (1 + x | h)", {"family": "gamma"}, r"'cor\(1, x\|h\)' cannot be told apart, as ef"),
    ("y ~ x + poly(w, degree=2, degree=3)", {}, r"poly\(...\) is given 'degree' twice"),
    ("y ~ x + s(w, k=5, bs='tp', bs='cr')", {}, r"s\(...\) is given 'bs' twice"),
    ("y ~ s(x, w, n)", {}, r"s\(x, w, n\) takes one or two columns"),
    ("y ~ t2(x)", {}, r"t2\(x\) takes two columns"),
    ("y ~ s(log(x))", {}, r"takes columns of the table as they are: make log\(x\) a column first"),
    ("y ~ s(x, m=2)", {}, r"s\(x, m=2\) knows 'k', 'bs', 'by', not 'm'"),
    ("y ~ s(x, w, bs='cr')", {}, r'bs is "tp" \(thin plates\) or, of single columns, "cr"'),
    ("y ~ s(x, k=2)", {}, r"k is the number of functions, at least 3 and at most 10,000, got 2"),
    ("y ~ gp(x, k=1000000000)", {}, r"k is the number of functions, at least 3 and at most 10,000, got 1000000000"),
    ("y ~ (x + z)**1000000", {}, "the power 1000000 of a sum is above 100"),
    ("y ~ I(x**2) + poly(x, 1000000000)", {}, r"poly\(\) of the degree 1000000000 is above 100"),
    ("y ~ C(np.round(w, 9))", {}, r"'np.round\(w, 9\)' is a category of 120 levels in 120 rows, .* number\.$"),
    ("y ~ s(x, k=few)", {}, r"k is the number of functions, at least 3 and at most 10,000, got few"),
    ("y ~ s(h)", {}, r"s\(h\) has 10 functions, and its columns have 5 distinct values: give k=5 or less"),
    ("y ~ s(x, by=x)", {}, r"s\(x, by=x\): a curve of x is not multiplied by it: leave out `by`"),
    ("y ~ s(area)", {}, "`formula`: the column 'area' must hold numbers"),
    ("y ~ s(x)", {"select": "all"}, r"s\(x\) is not estimated with `select`"),
    ("y ~ x + (1 | mm(g, area))", {"sampler": "zigzag"}, r"mm\(g, area\) is not estimated with `sampler`"),
    ("y ~ x + (1 | mm(g))", {}, r"mm\(g\) is a grouping by itself, of two columns or more, such as"),
    ("y ~ x + (1 | mm(g, h))", {}, r"mm\(g, h\) has groups named by numbers and by text or categories"),
    ("y ~ x", {"link": {"sigm": "log"}}, r"`link` names 'sigm'; parameters of gaussian are mu, sigma\."),
    ("y ~ x", {"family": "categorical", "link": "probit"}, "`link`: of categorical it is the logit, of the odds"),
    ("area ~ x", {"family": "categorical", "offset": "w"}, "for families with one linear predictor, and categorical"),
    ("y ~ x", {"family": "multinomial"}, r"the response of multinomial is counts of each category: cbind\(a, b, c\)"),
    ("y ~ mo(w)", {}, r"mo\(w\) takes whole numbers or an ordered category, got -"),
    ("y ~ mo(h, k=3)", {}, r"mo\(h, k=3\) knows no options, not 'k'"),
    ("y ~ mo(h, by=area)", {}, r"knows no options, not 'by': its product with a column is mo\(h\):area"),
    ("y ~ x - mo(h):w", {}, r"mo\(h\):w cannot be taken away: leave it out"),
    ("y ~ mo(h):h", {}, r"mo\(h\):h has a column twice"),
    ("y ~ w * mo(h, h)", {}, r"mo\(h, h\) has a column twice"),
    ("y ~ mo(h, h):w", {}, r"mo\(h, h\) has a column twice"),
    ("y ~ mo(h):w + w:mo(h)", {}, r"mo\(h\):w stands there twice"),
    ("y ~ mo(h):w + mo(h):x:w", {}, r"in no product but mo\(x\):z or mo\(x\) \* z of one column"),
    ("y ~ mo(h) * log(w)", {}, r"in no product but mo\(x\):z or mo\(x\) \* z of one column"),
    ("y ~ mi(x)", {}, r"mi\(x\) needs a formula of x, .* \"x\": \"x \| mi\(\) ~ z\"}; without one .*: write x"),
    ("y | trunc(lb=0) ~ x", {"family": "weibull"}, r"`lb` must be above 0, as .* is, got 0\."),
    ("y | trunc(lb=-0.5) ~ x", {"family": "lognormal"}, r"`lb` must be above 0, as .* is, got -0\.5\."),
    ("y | mi + weights(w) ~ x", {}, r"`\| mi` is not known: rows with missing responses are left out"),
    ("y | mi() ~ x", {}, r"`\| mi\(\)` is not known: rows with missing responses are left out"),
    ({"y": "y ~ mi(x)", "x": "x | mi() ~ y"}, {}, "'y' is the response, and the formula of 'x' has it too"),
    ("y ~ mi(y) + x", {}, r"'y' is the response, and in mi\(y\) too"),
    ({"y": "y ~ mi(x)", "x": "x | mi() ~ w"}, {}, r"the column 'x' of mi\(x\) has no missing values: write x"),
    ({"y": "y ~ mi(x)", "x": "w | mi() ~ h"}, {}, r"that of the imputed column 'x' is x \| mi\(\) ~ …, got 'w"),
    ({"y": "y ~ x", "x": "x | mi() ~ w"}, {}, "those with a left side .* are 'y', 'x'"),
    ({"y": "y ~ mi(x)", "x": "x | mi() ~ mi(w)"}, {}, r"mi\(w\) needs a formula of w, of which its missing"),
    *(
        ({"y": f"y ~ {y}", "x": f"x | mi() ~ {x}", "w": f"w | mi() ~ {w}"}, options, said)
        for y, x, w, options, said in (
            ("mi(x) + mi(w)", "mi(w)", "h + mi(x)", {}, r"'x', 'w' are imputed from each other: leave mi\(\) out"),
            ("mi(x) * mi(w)", "h", "h", {}, r"in products with other columns, and not .* got mi\(x\):mi\(w\)"),
            ("mi(x) + mi(w) + x", "h", "h", {}, r"the imputed column 'x' stands as mi\(x\) between .* got x"),
            ("log(mi(x)) + mi(w)", "h", "h", {}, r"and not in a function, .* got log\(mi\(x\)\)"),
            ("mi(x) + (mi(w) | g)", "h", "h", {}, r"in effects of groups .* got mi\(w\)"),
            ("mi(x) + mi(w) + s(w)", "h", "h", {}, r"s\(w\) of the imputed column 'w' is no term"),
            ("mi(x) + mi(w)", "h", "h", {"offset": "w"}, "`offset`: the column 'w' is imputed"),
            ("mi(x) + mi(w)", "h", "h", {"select": "all"}, "`select` is for the families"),
            ("mi(x) + mi(w)", "h", "h", {"family": "cumulative"}, r"mi\(...\) is not for cumulative: fill the missing"),
        )
    ),
    ("y ~ gp(x, c=1)", {}, r"c is how far beyond the data its interval goes, above 1, got 1"),
    ("y ~ gp(x, w, h)", {}, r"gp\(x, w, h\) takes one or two columns"),
    ("y ~ gp(x, x)", {}, r"gp\(x, x\) has a column twice"),
    ("y ~ gp(x, k=20, bs='tp')", {}, r"knows 'k', 'c', 'by', 'iso', not 'bs'"),
    ("y | trunc(lb=0) ~ x", {"family": "gamma"}, "truncation is for the families gaussian, lognormal, weibull, expon"),
    ("y | trunc(lb=3) ~ x", {}, "`y` must be at least `lb`, where it is cut off, got .* and 3 in row"),
    *(
        (f"y | {cut} ~ x", {}, r"takes lb=, ub= or both, once each")
        for cut in (
            *("trunc(a=0)", "trunc(-9, 9, 10)", "trunc(-9, lb=-5)", "trunc(lb=-9, lb=-8)"),
            "trunc(lb=-9) + trunc(ub=9, lb=-8)",
        )
    ),
    *((f"y | trunc({end}) ~ x", {}, "leaves no responses that could be seen") for end in ("lb=inf", "0, ub=-Inf")),
    ("cbind(c, h, c) ~ x", {"family": "multinomial"}, r"cbind\(c, h, c\) has c twice: each category is one column"),
    ("y ~ s(x, k=5, k=7)", {}, r"s\(...\) is given 'k' twice"),
    *(
        (f"y ~ x + {one}", {}, r"mm\(...\) is a grouping by itself, \(1 \| mm\(g, h\)\)")
        for one in ("mm(h, c)", "log(mm(h, c) + 1)", "(mm(h, c) | g)", "(1 | C(mm(h, c)))")
    ),
    *(
        (f"y ~ {one}", {}, r"of the numbers of a column it is I\(x\*\*2\)")
        for one in ("x**2", "w:x**2", "g + (x**2 | g)")
    ),
    ("y ~ (x | g | h)", {}, r"g between two bars is an identifier .* column 'g': .* are \(x \| g\) \+ \(x \| h\)"),
    ("y ~ x + (x | g) + (1 | g)", {}, r"the effect \(1 \| g\) stands in two brackets: leave one out"),
    ("y ~ (0 + x || g) + (x | g)", {}, r"the effect \(x \| g\) stands in two brackets"),
    ("y ~ (0 + x:w | g) + (0 + w:x | g)", {}, r"the effect \(w:x \| g\) stands in two brackets"),
    ("y ~ (1 | g:h) + (1 | h:g)", {}, r"the effect \(1 \| h:g\) stands in two brackets"),
    ("y ~ offset(x):w", {}, r"offset\(...\) stands alone between \+: a product is offset\(x \* z\)"),
    ("y ~ bs(x, df=5, df=6)", {}, r"bs\(...\) is given 'df' twice"),
    ("y ~ np.clip(x, a_min=0, a_min=np.exp(w, out=None))", {}, r"clip\(...\) is given 'a_min' twice"),
    ("y ~ t2(x, x)", {}, r"t2\(x, x\) has a column twice"),
    (
        {"y": "y ~ x", "sigm": "~ x"},
        {},
        "`formula` names 'sigm', which is no further parameter of gaussian; it has 'sigma'",
    ),
    ({"sigma": "~ x"}, {}, "`formula` must have one with the response"),
    ({"y": "y ~ x", "mu": "y ~ w"}, {}, "those with a left side .* are 'y', 'mu'"),
    ({"z": "y ~ x"}, {}, "`formula` names 'z', which is neither the response 'y' nor a parameter"),
    ({"y": "y ~ x", "sigma": "x"}, {}, "that of 'sigma' must be text such as"),
    (["y ~ x"], {}, "`formula` must be text .* or a dict .*, got list"),
    ({"y": "y ~ x", "cuts": "~ x"}, {"family": "cumulative"}, "the cuts of cumulative have no formula"),
    ("y ~ 0 + x", {"family": "cumulative"}, "the cuts of cumulative are its intercepts: leave out `0 \\+`"),
    ("area ~ x", {"family": "cumulative"}, "the response 'area' is text, whose order is not known: .* ordered=True"),
    ("w ~ x", {"family": "cumulative"}, "must hold whole numbers, or an ordered category"),
    ("w ~ x", {"family": "gamma"}, "the response 'w' must hold finite numbers above 0 for this family, got -"),
    ("x ~ w", {"family": "beta"}, "the response 'x' must hold numbers above 0 and below 1 for this family"),
    (
        "y ~ x",
        {"family": "gamma", "link": "logit"},
        "`link` of 'mu' must be one of 'log', 'identity', 'sqrt', 'inverse' f",
    ),
    (
        "y ~ x",
        {"family": "cumulative", "link": "log"},
        "`link` of 'mu' must be one of 'logit', 'probit' for cumulative",
    ),
    ("y ~ x", {"family": "gamma", "link": {"sigma": "log"}}, "`link` names 'sigma'; parameters of gamma are mu, shape"),
    ("y ~ x", {"family": "gamma", "link": 3}, "`link` must be a name, or a dict"),
    ("y ~ x", {"family": "gamma", "link": {"shape": "identity"}}, "that of 'shape' matters where it has a formula"),
    ("y ~ x", {"family": "mixture_poisson"}, "mixture_poisson needs a formula of 'mu2', .* can be exchanged"),
    (
        "y ~ x",
        {"family": "gamma", "select": "all"},
        "`select` is for the families 'gaussian', .*, with one formula and their own links",
    ),
    ("y ~ x", {"family": "gamma", "sampler": "bps"}, "`sampler` is for the families 'gaussian'"),
    ("y ~ x", {"family": "gamma", "folder": "."}, "`folder` is for the families 'gaussian'"),
    ("y ~ x", {"family": "gamma", "exposure": "n"}, "`exposure` is for counts with the log link"),
    ("y ~ x", {"family": "gamma", "offset": "nn"}, "`offset` names 'nn', and `data` has no such column"),
    ("y ~ x", {"family": "gamma", "weights": "c"}, "`weights`: the column 'c' must not be negative"),
    (
        "y ~ x",
        {"family": "gamma", "priors": {"alpha": HalfNormal(1.0)}},
        "`priors` names 'alpha', which is no parameter",
    ),
    ("y ~ x", {"family": "gamma", "priors": {"shape": Normal(1.0, 1.0)}}, "'shape' is a positive number"),
    (
        "y ~ shape",
        {"family": "gamma"},
        "the column 'shape' cannot be told apart, as a parameter of the family is called so",
    ),
    ("c ~ `cut[3]`", {"family": "cumulative"}, r"the column 'cut\[3\]' cannot be told apart"),
    ("y ~ x + (1 | row)", {"family": "gamma"}, r"cannot tell sd\(row\) from shape: drop"),
    ("y ~ dates", {"family": "gamma"}, "the column 'dates' is a category of 120 levels in 120 rows"),
    ("y ~ gp(x, w, iso=no)", {}, "iso is True, for one length scale, or False, for one of each column, not no"),
    ("y ~ s(x, w, iso=FALSE)", {}, "knows 'k', 'bs', 'by', not 'iso'"),
    ("y ~ gp(x, tiny)", {}, r"give them in units in which they compare, or iso=False, for a length scale of each"),
    *(
        (f"y | trunc({ends}) ~ x", {"family": "poisson"}, says)
        for ends, says in (
            ("ub=w", r"bounds of counts are numbers, the same in all rows, as trunc\(lb=1\), got ub=w"),
            ("lb=0.5", "whole numbers of at least 0, the lower one first, got 0.5 and inf"),
            ("ub=0", "whole numbers of at least 0, the lower one first, got 0 and 0"),
            ("lb=1, ub=102", "bounds of counts may be 100 apart, and a lower one alone be 50, got 1 and 102"),
            ("lb=1", "`y` of poisson must be whole numbers from 1 on, got 0 in row"),
        )
    ),
]


@pytest.mark.parametrize(("formula", "options", "says"), MISTAKES)
def test_mistakes(formula, options, says, monkeypatch):
    monkeypatch.setattr(general, "sample", None)  # which would be an error of another kind
    monkeypatch.setattr(fitting, "sample_model", None)
    data = table(
        family_of(options["family"])
        if isinstance(options.get("family"), str) and options["family"] in FAMILIES
        else FAMILIES["gamma"],
        120,
    )
    data["shape"], data["cut[3]"], data["cor(1, x|h)"] = data["w"], data["w"], data["w"]
    data["row"], data["dates"], data["tiny"] = np.arange(120), [f"day {k}" for k in range(120)], 1e-3 * data["x"]
    with pytest.raises((ValueError, TypeError), match=says):
        pdmp.regression(formula, data, **{"family": "gaussian"} | options, seed=1)


@pytest.mark.parametrize("family", ["gaussian", "gamma"])
def test_levels_of_an_expression_are_counted_and_not_those_of_its_column(family):
    data = table(FAMILIES["gamma"], 120)
    found = pdmp.regression("y ~ C(w > np.median(w)) + C(np.floor(2.0 * x))", data, family=family, sample=False)
    assert str(found).count("C(w > np.median(w))[") == 1 and 1 < str(found).count("C(np.floor(2.0 * x))[") < 20


def test_files_that_are_read_in_batches_are_refused(tmp_path):
    table(FAMILIES["gamma"]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="gamma with the log link, with formulas of 'mu', is for tables in memory"):
        pdmp.regression("y ~ x", tmp_path, family="gamma", seed=1)
    with pytest.raises(ValueError, match="`.` stands for the columns of a table in memory"):
        pdmp.regression("y ~ .", tmp_path, seed=1)


def test_links_that_are_another_family():
    """Those with compiled regressions of their own keep them."""
    assert linked(FAMILIES["bernoulli"], "probit") is FAMILIES["probit"]
    assert linked(FAMILIES["probit"], "logit") is FAMILIES["bernoulli"]
    assert linked(FAMILIES["cumulative"], {"mu": "probit"}) is FAMILIES["cumulative_probit"]
    assert linked(FAMILIES["gamma"], "log") is FAMILIES["gamma"]
    far = linked(FAMILIES["binomial"], "probit").log_density(3.0, np.array([-12.0, 9.0]), data=(3.0,))
    np.testing.assert_allclose(far, 3.0 * special.log_ndtr([-12.0, 9.0]), rtol=1e-9, atol=1e-15)
    z, gumbel = np.array([-30.0, 0.4, 3.5]), linked(FAMILIES["bernoulli"], "cloglog")
    for y, expected in ((1.0, np.log(-np.expm1(-exp(z)))), (0.0, -exp(z))):
        np.testing.assert_allclose(gumbel.log_density(y, z), expected, rtol=1e-9, atol=1e-12)


def test_powers_and_degrees_up_to_100_are_read():
    """Those of numbers, in functions, whatever they are."""
    for text in ("(x + z)**{}", "poly(x, {})", "poly(x, degree={})"):
        assert describe(f"y ~ {text.format(100)}")
        with pytest.raises(ValueError, match="101.* is above 100"):
            describe(f"y ~ {text.format(101)}")
    assert describe("y ~ I(x**101) + np.abs((x)**101) + I((x + z)**101)")


def test_columns_that_are_imputed_may_have_blanks():
    from pdmp.formulas.imputation import named_in

    assert named_in("x + mi(`a b`) * mi( z ) + `mi(u)` + pmi(v)") == ["a b", "z"]


@pytest.mark.parametrize("link", ["identity", "sqrt", "inverse"])
def test_default_priors_of_positive_responses_with_zeros_have_their_unit(link):
    """They are those of the positive ones: of ten times the response ten times as wide, if the link is the identity."""
    rng = np.random.default_rng(1)
    table = {"x": rng.uniform(1.0, 2.0, 40)}
    table["y"] = table["x"] * rng.gamma(4.0, 0.25, 40)
    gamma, hurdle = (
        pdmp.regression("y ~ x", table, name, link={"mu": link}, sample=False).priors
        for name in ("gamma", "hurdle_gamma")
    )
    assert hurdle["x"] == gamma["x"] and hurdle["Intercept"] == gamma["Intercept"]
    assert hurdle["x"].sd != 2.5


def test_default_priors_of_logarithms_are_those_of_what_is_above_0():
    """Amounts of some 10,000, of which three of four are 0: their logarithms alone say where and how wide mu is."""
    rng = np.random.default_rng(2)
    table = {"x": np.tile([-1.0, 1.0], 40), "paid": np.where(np.arange(80) < 20, rng.lognormal(9.0, 0.5, 80), 0.0)}
    hurdle = pdmp.regression("paid ~ x", table, "hurdle_lognormal", sample=False).priors
    paid = pdmp.regression("paid ~ x", {name: of[:20] for name, of in table.items()}, "lognormal", sample=False).priors
    assert list(hurdle) == [*paid, "hu"]
    assert noiseless(FAMILIES["hurdle_lognormal"], table["paid"], 0.0, ["sigma", "hu"]) is None  # what would fit a 0?
    for name, prior in paid.items():
        assert dataclasses.astuple(hurdle[name]) == pytest.approx(dataclasses.astuple(prior), rel=1e-12)


RISING = np.linspace(0.5, 2.0, 20)


@pytest.mark.parametrize(
    ("family", "link", "response", "middle"),
    [
        ("gaussian", "log", 3.0 * RISING, math.log(3.0 * RISING.mean())),
        ("gaussian", "log", RISING - 4.0, math.log(RISING.std())),  # the mean has no logarithm
        ("gaussian", "inverse", RISING - 4.0, 1.0 / (RISING.mean() - 4.0)),
        ("gamma", "log", 1e-4 * RISING, math.log(1e-4 * RISING.mean())),
        ("gamma", "inverse", 1e-4 * RISING, 1e4 / RISING.mean()),
        ("poisson", "log", np.tile([0, 3], 10), math.log(1.5)),
        ("poisson", "log", 0 * RISING, math.log(0.5 / 20)),
        ("poisson", "sqrt", np.repeat([0, 1], [16, 4]), math.sqrt(0.2)),
        ("poisson", "sqrt", 0 * RISING, math.sqrt(0.5 / 20)),
    ],
)
def test_default_priors_of_intercepts_are_about_the_link_of_the_mean(family, link, response, middle):
    """However small it is; of counts that are all 0 as if there was half of one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the counts of 0
        prior = pdmp.regression("y ~ 1", {"y": response}, family, link={"mu": link}, sample=False).priors["Intercept"]
    assert prior.mean == pytest.approx(middle, rel=1e-12)
