"""Regressions of every family: densities against SciPy and priors by hand, units, predictions, words, and mistakes."""

import math

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.formulas import fitting, general
from pdmp.formulas.families import family_of
from pdmp.formulas.general import FamilyFit, linked, make_general_model, read_formulas
from pdmp.models.families import FAMILIES
from pdmp.models.priors import Exponential, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from tests.formulas.test_regression import Frozen
from tests.models.test_families import ORACLES, censored_density

pandas = pytest.importorskip("pandas")
Environment = pytest.importorskip("formulae.environment").Environment

pytestmark = [pytest.mark.exact, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

N, TOP = 26, 3
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
    }[family.response]
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
    return *make_general_model(asked, data, family, priors, roles, environment), asked, roles


def formulas_of(family):
    """One for the response, and one for the last of the other parameters."""
    left = "y | trials(n)" if "trials" in family.data else "y | cens(c, later)" if "upper" in family.data else "y"
    found = {"y": f"{left} ~ x + area + (1 + x | g)"}
    others = [name for name in family.named[1:] if name != "cuts"]
    return found | {name: "~ w + (1 | h)" for name in {*others[-1:], *family.needs}}


def by_hand(data, natural, prefix=""):
    """A linear predictor from parameters in the units of the data."""
    if prefix:
        z = natural[prefix + "Intercept"] + natural[prefix + "w"] * data["w"].to_numpy()
        return z + natural[prefix + "1|h"][data["h"]]
    z = natural.get("Intercept", 0.0) + natural["x"] * data["x"].to_numpy()
    for level in "bc":
        z = z + natural[f"area[{level}]"] * (data["area"] == level).to_numpy()
    place = np.searchsorted(list("stuv"), data["g"])
    return z + natural["1|g"][place] + natural["x|g"][place] * data["x"].to_numpy()


def functionals(family, data, natural):
    """By hand, on the scale of the links."""
    z = by_hand(data, natural)
    if family.arrange:
        cuts, k = np.array([natural[f"cut[{j}]"] for j in (1, 2, 3)]), data["y"].to_numpy(int)
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
    for name, effects in natural.items():
        if "|" in name and not name.rpartition(": ")[2].startswith("sd("):
            prefix, _, own = name.rpartition(": ")
            spread = natural[(prefix and prefix + ": ") + (f"sd({own[2:]})" if own.startswith("1|") else f"sd({own})")]
            total += stats.norm.logpdf(effects, 0.0, spread).sum()
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
        first, count = model.reported.places["cuts"]
        x[first : first + count] = np.sort(x[first : first + count])
    return x


@pytest.mark.parametrize("name", FAMILIES)
def test_the_potential_is_the_density_of_natural_parameters(name):
    family, data = FAMILIES[name], table(FAMILIES[name])
    model, _, priors, _, _, _ = made(formulas_of(family), family, data)
    means = {"x": data["x"].mean(), "w": data["w"].mean()} | {a: (data["area"] == a).mean() for a in "bc"}
    excess = []
    for k in range(3):
        x = near(model, k)
        natural = model.constrain(x)
        own = log_likelihood(family, data, natural)
        np.testing.assert_allclose(model.pointwise_log_likelihood(x), own, rtol=1e-8, atol=1e-9)
        density = own.sum() + log_prior(family, priors, natural, means) + log_volume(model, x)
        excess.append(model.potential(x) + density)
    assert np.ptp(excess) < 1e-5 * max(1.0, abs(model.potential(x)))
    gradient, h = model.gradient(x), 1e-6
    by_difference = [(model.potential(x + e) - model.potential(x - e)) / (2.0 * h) for e in h * np.eye(model.dim)]
    np.testing.assert_allclose(gradient, by_difference, rtol=1e-4, atol=1e-4)
    assert [set(one.centring(k) for k in range(len(one.groups))) for one in model.reported.predictors][0]
