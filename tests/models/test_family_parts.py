"""Whether the parts of a family are of one law: what is wrong is named, and nothing else is."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import pdmp
from pdmp.expressions.nodes import softplus, where
from pdmp.models import families
from pdmp.models.families import FAMILIES, Family
from pdmp.models.family_parts import compare_parts
from pdmp.models.priors import Normal

pytestmark = pytest.mark.exact

N = 300
RNG = np.random.default_rng(3)
Y = {
    "number": RNG.normal(size=N),
    "positive": RNG.gamma(2.0, 1.0, N),
    "share": RNG.beta(2.0, 2.0, N),
    "count": RNG.poisson(2.0, N).astype(float),
    "label": RNG.integers(0, 2, N).astype(float),
    "angle": RNG.uniform(-3.0, 3.0, N),
}
Y |= {f"{name} or 0": np.where(RNG.random(N) < 0.3, 0.0, Y[name]) for name in ("positive", "share")}
EXPOSURE, SEEN = RNG.gamma(1.0, 10.0, N), (RNG.random(N) < 0.6).astype(float)
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)

RAYLEIGH = {
    "name": "rayleigh",
    "loss": lambda y, z: 2.0 * z + 0.5 * y**2 * np.exp(-2.0 * z),
    "draw": lambda rng, scale: rng.rayleigh(scale),
    "mean": lambda scale: scale * np.sqrt(np.pi / 2.0),
    "links": {"scale": "log"},
    "constant": np.log,
    "response": "positive",
}
NORMAL = {
    "name": "normal",
    "loss": lambda y, z, a: 0.5 * ((y - z) * np.exp(-a)) ** 2 + a,
    "draw": lambda rng, mu, sigma: rng.normal(mu, sigma),
    "mean": lambda mu, sigma: mu,
    "links": {"mu": "identity", "sigma": "log"},
    "constant": lambda y: -HALF_LOG_2PI,
}
POISSON = {
    "name": "counts",
    "loss": lambda y, z: np.exp(z) - y * z,
    "draw": lambda rng, mu: rng.poisson(mu),
    "mean": lambda mu: mu,
    "links": {"mu": "log"},
    "constant": lambda y: -special.gammaln(y + 1.0),
    "response": "count",
}
EXPOSED = POISSON | {
    "loss": lambda y, e, z: e * np.exp(z) - y * z,
    "draw": lambda rng, mu, e: rng.poisson(mu * e),
    "mean": lambda mu, e: mu * e,
    "constant": lambda y, e: -special.gammaln(y + 1.0) + y * np.log(e),
    "data": {"e": None},
}
#: Draws know nothing of what is not seen to its end.
CENSORED = {
    "name": "durations",
    "loss": lambda y, seen, z: np.exp(z) * y - seen * z,
    "draw": lambda rng, rate, seen: rng.exponential(1.0 / rate),
    "mean": lambda rate, seen: 1.0 / rate,
    "links": {"rate": "log"},
    "constant": lambda y, seen: 0.0 * y,
    "response": "positive",
    "data": {"seen": None},
}


def said(parts, columns=None, y=None):
    """All warnings."""
    family = Family(**{"name": "own", **parts}) if isinstance(parts, dict) else parts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare_parts(family, Y[family.response] if y is None else y, columns or {})
    return [str(one.message) for one in caught]


def columns_of(parts):
    return {"e": EXPOSURE, "seen": SEEN, "trials": np.full(N, 40.0)} if parts.get("data") else {}


LOSS, MEAN, CONSTANT = "`draw` and `loss` of", "`mean` of", "`constant` and `loss` of"
OF_SCALE, OF_SIGMA = "write in `loss` all of -log p that depends on scale", "that depends on sigma, such as"
FAULTS = {
    "a log scale is missing": (RAYLEIGH, {"loss": lambda y, z: z + 0.5 * y**2 * np.exp(-2.0 * z)}, LOSS, OF_SCALE),
    "there is no log scale": (RAYLEIGH, {"loss": lambda y, z: 0.5 * y**2 * np.exp(-2.0 * z)}, LOSS, OF_SCALE),
    "another power of the scale": (RAYLEIGH, {"loss": lambda y, z: z + 0.5 * y**2 * np.exp(-z)}, LOSS, OF_SCALE),
    "a scale for its logarithm": (
        RAYLEIGH,
        {"loss": lambda y, z: 2.0 * np.log(z) + 0.5 * (y / z) ** 2},
        LOSS,
        "where it is given the log of scale, not scale, or mend `draw`, though `mean` fits it.",
    ),
    "another link": (RAYLEIGH, {"links": {"scale": "identity"}}, LOSS, "by scale is 1.9"),
    "draws of another scale": (RAYLEIGH, {"draw": lambda rng, s: rng.rayleigh(s**2)}, LOSS, "draw from the law of"),
    "draws of another law": (RAYLEIGH, {"draw": lambda rng, s: rng.exponential(s)}, MEAN, "or mend it."),
    "another mean": (RAYLEIGH, {"mean": lambda s: s}, MEAN, r"at scale = 1.35 it is 1.35, and draws are 1.68"),
    "a factor of the mean": (RAYLEIGH, {"mean": lambda s: 1.05 * s * np.sqrt(np.pi / 2.0)}, MEAN, "has on average"),
    "the sign of the constant": (RAYLEIGH, {"constant": lambda y: -np.log(y)}, CONSTANT, "write in `constant` what"),
    "no draws, sign of the constant": (
        RAYLEIGH,
        {"constant": lambda y: -np.log(y), "draw": None},
        CONSTANT,
        "write in `constant` what of log p depends on y alone",
    ),
    "no draws, no log scale": (
        RAYLEIGH,
        {"loss": lambda y, z: 0.5 * y**2 * np.exp(-2.0 * z), "draw": None},
        CONSTANT,
        "and in `loss` all of -log p that depends on parameters",
    ),
    "no draws, another log scale below 0": (
        RAYLEIGH,
        {"loss": lambda y, z: 2.0 * np.abs(z) + 0.5 * y**2 * np.exp(-2.0 * z), "draw": None},
        CONSTANT,
        "at scale = 0.67 .* and in `loss` all of -log p that depends on parameters",
    ),
    "no log scale of the second": (NORMAL, {"loss": lambda y, z, a: 0.5 * ((y - z) * np.exp(-a)) ** 2}, LOSS, OF_SIGMA),
    "a variance for the second": (
        NORMAL,
        {"loss": lambda y, z, a: 0.5 * (y - z) ** 2 * np.exp(-a) + 0.5 * a},
        LOSS,
        OF_SIGMA,
    ),
    "a location that is off": (
        NORMAL,
        {"loss": lambda y, z, a: 0.5 * ((y - z - 1.0) * np.exp(-a)) ** 2 + a},
        LOSS,
        "all of -log p that depends on mu, such as the logarithm of a scale, or mend",
    ),
    "draws by a variance": (NORMAL, {"draw": lambda rng, mu, sigma: rng.normal(mu, sigma**2)}, LOSS, OF_SIGMA),
    "the mean by the second": (NORMAL, {"mean": lambda mu, sigma: mu + 0.1 * sigma}, MEAN, "at mu = 0.3, sigma = 1.57"),
    "a constant that is too high": (
        NORMAL,
        {"constant": lambda y: 0.0},
        CONSTANT,
        r"a `constant` that is 0\.91\d+ lower",
    ),
    "no draws, a constant too low": (
        NORMAL,
        {"constant": lambda y: -2.0 * HALF_LOG_2PI, "draw": None},
        CONSTANT,
        r"write a `constant` that is 0\.9189 higher\.",
    ),
    "counts by their mean": (POISSON, {"loss": lambda y, z: z - y * np.log(z)}, LOSS, "by the log of mu"),
    "draws of other counts": (
        POISSON,
        {"draw": lambda rng, mu: rng.geometric(1.0 / (1.0 + mu))},
        LOSS,
        "draw from the",
    ),
    "the mean of counts by its link": (POISSON, {"mean": np.log}, MEAN, "at mu = 1.35 it is 0.3"),
    "the constant of counts": (POISSON, {"constant": lambda y: special.gammaln(y + 1.0)}, CONSTANT, "and must be 1"),
    "a constant beyond floats": (POISSON, {"constant": lambda y: 800.0 + 0.0 * y}, CONSTANT, "is inf in all over y"),
    "no draws, the constant of counts": (
        POISSON,
        {"constant": lambda y: -special.gammaln(y), "draw": None},
        CONSTANT,
        "and must be 1",
    ),
    "draws without the further data": (
        EXPOSED,
        {"draw": lambda rng, mu, e: rng.poisson(mu)},
        MEAN,
        "by parameters",
    ),
    "means without the further data": (EXPOSED, {"mean": lambda mu, e: mu}, MEAN, "by parameters"),
    "draws of one number": (RAYLEIGH, {"draw": lambda rng, s: rng.rayleigh(np.mean(s))}, "`draw` of", r"of shape \(\)"),
    "draws of an axis": (RAYLEIGH, {"draw": lambda rng, s: np.sum(s, axis=2)}, "`draw` of", "AxisError: axis 2 is out"),
    "draws that branch": (RAYLEIGH, {"draw": lambda rng, s: s if s > 0.0 else 0.0}, "`draw` of", "fails for arrays of"),
    "draws by another generator": (
        RAYLEIGH,
        {"draw": lambda rng, s: np.random.rayleigh(s)},  # noqa: NPY002
        "`draw` of",
        "gives other numbers for the same `rng`",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_part_that_does_not_fit_is_named(fault):
    right, wrong, which, advice = FAULTS[fault]
    found = said(right | wrong, columns_of(right))
    assert len(found) == 1 and found[0].startswith(f"{which} {right['name']} ") and re.search(advice, found[0])
    assert found[0].endswith(".") and "\n" not in found[0]


def test_a_mean_and_a_constant_are_named_each():
    found = said(RAYLEIGH | {"mean": lambda s: s, "constant": lambda y: 0.0 * y})
    assert [text.startswith(which) for text, which in zip(found, (MEAN, CONSTANT), strict=True)] == [True, True]


PLAIN = [one for one in FAMILIES.values() if one.arrange is None and one.chances is None]


@pytest.mark.parametrize("family", PLAIN, ids=lambda one: one.name)
def test_nothing_is_said_of_families_of_the_table(family):
    """By other links, without draws, of rows that are censored, and as pdmp.Family takes them."""
    first, given = family.parameters[0], {"trials": np.where(np.arange(N) % 3 == 0, 7.0, 40.0)}
    given |= {"censored": 2.0 * SEEN - 1.0, "upper": np.full(N, 50.0)}
    own = {name: values for name, values in given.items() if name in family.data}
    others = [family.linked(**{name: "identity"}) for name in family.parameters[1:]]
    if family.links[first] in ("log", "logit", "probit"):  # of others the mean may be out of its range
        others.append(family.linked(**{first: "identity"}))
    for one in (family, replace(family, draw=None), *others):
        assert said(one, own) == []


def test_nothing_is_said_of_laws_that_are_cut_off_or_have_known_errors():
    ends = {"lb": np.linspace(0.1, 0.9, N), "ub": np.linspace(1.5, 4.0, N)}
    for name in families.TAILS:
        for cut in (["lb"], ["ub"], ["lb", "ub"]):
            family = families.truncated(FAMILIES[name], "lb" in cut, "ub" in cut)
            assert said(family, {one: ends[one] for one in cut}) == []
    for sigma in (False, True):
        assert said(families.known_errors(families.gaussian, sigma), {"se": np.linspace(0.2, 3.0, N)}) == []


def _zero_one(y, m, w):
    inner = np.log(where((y == 0.0) | (y == 1.0), 0.5, y))
    return where((y == 0.0) | (y == 1.0), softplus(-w) + math.log(2.0), softplus(w) - m - (np.exp(m) - 1.0) * inner)


RIGHT = {
    "as it is in the manual": RAYLEIGH,
    "two parameters": NORMAL,
    "counts": POISSON,
    "counts as numbers": POISSON | {"response": "number"},
    "further data": EXPOSED,
    "censored rows": CENSORED,
    "a deviation by itself": NORMAL
    | {"loss": lambda y, z, s: 0.5 * ((y - z) / s) ** 2 + np.log(s), "links": {"mu": "identity", "sigma": "identity"}},
    "weights": POISSON
    | {
        "loss": lambda y, w, z: w * (np.exp(z) - y * z),
        "draw": lambda rng, mu, w: rng.poisson(mu),
        "mean": lambda mu, w: mu,
        "constant": None,
        "data": {"w": 2.0},
    },
    "neither a mean nor a variance": NORMAL
    | {
        "loss": lambda y, z, a: a + np.log1p(((y - z) * np.exp(-a)) ** 2),
        "draw": lambda rng, mu, sigma: mu + sigma * rng.standard_cauchy(np.shape(mu)),
        "constant": lambda y: -math.log(math.pi),
    },
    "a mean far out": NORMAL
    | {
        "loss": lambda y, z, a: 0.5 * ((np.log(y) - z) * np.exp(-a)) ** 2 + a,
        "draw": lambda rng, mu, sigma: rng.lognormal(mu, sigma),
        "mean": lambda mu, sigma: np.exp(mu + 0.5 * sigma**2),
        "constant": lambda y: -HALF_LOG_2PI - np.log(y),
        "response": "positive",
    },
    "a mean that no draws have": NORMAL
    | {
        "loss": lambda y, z, a: 0.5 * ((np.log(y) - z) * np.exp(-3.0 * a)) ** 2 + 3.0 * a,
        "draw": lambda rng, mu, sigma: rng.lognormal(mu, sigma**3),
        "mean": lambda mu, sigma: np.exp(mu + 0.5 * sigma**6),
        "constant": lambda y: -HALF_LOG_2PI - np.log(y),
        "response": "positive",
    },
    "a least value": {
        "loss": lambda y, a: (np.exp(a) + 1.0) * np.log(y / 5.0) - a,
        "draw": lambda rng, tail: 5.0 * (1.0 + rng.pareto(tail)),
        "mean": lambda tail: np.where(tail > 1.0, 5.0 * tail / (tail - 1.0), np.inf),
        "links": {"tail": "log"},
        "constant": lambda y: -math.log(5.0),
        "response": "positive",
    },
    "counts above 0": POISSON
    | {
        "loss": lambda y, z: np.exp(z) - y * z + np.log(-np.expm1(-np.exp(z))),
        "draw": lambda rng, mu: stats.poisson(mu).ppf(1.0 - rng.random(np.shape(mu)) * -np.expm1(-mu)),
        "mean": lambda mu: mu / -np.expm1(-mu),
    },
    "an end that a parameter moves": {
        "loss": lambda y, z: where(y < np.exp(0.01 * z), 0.01 * z, math.inf),
        "draw": lambda rng, top: rng.uniform(0.0, top**0.01),
        "mean": lambda top: 0.5 * top**0.01,
        "links": {"top": "log"},
        "constant": lambda y: 0.0 * y,
        "response": "positive",
    },
    "shares with both ends": {
        "loss": _zero_one,
        "draw": lambda rng, m, p: np.where(
            rng.random(np.shape(m)) < p, rng.integers(0, 2, np.shape(m)), rng.random(np.shape(m)) ** (1.0 / m)
        ),
        "mean": lambda m, p: 0.5 * p + (1.0 - p) * m / (m + 1.0),
        "links": {"m": "log", "p": "logit"},
        "constant": lambda y: 0.0 * y,
    },
    "draws without noise": {
        "loss": lambda y, z: (1.0 + (y - z) ** 2) ** 0.5,
        "draw": lambda rng, z: z,
        "mean": lambda z: z,
    },
    "draws for parameters above 2 alone": RAYLEIGH | {"links": {"scale": "identity"}, "draw": None, "constant": None},
}


def _above_2(rng, scale):
    if np.any(scale <= 2.0):
        raise ValueError("above 2")
    return rng.rayleigh(scale)


RIGHT["draws for parameters above 2 alone"]["draw"] = _above_2


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_said_of_parts_that_fit(name):
    parts = RIGHT[name]
    assert said(parts, columns_of(parts) if parts is not RIGHT["weights"] else {}) == []


def test_nothing_is_said_of_events_that_no_draw_has():
    assert said(EXPOSED, {"e": 1e-6 * EXPOSURE}) == []


def test_marks_of_rows_may_be_three():
    """Right censored, seen and left censored, whatever the column is called."""
    parts = CENSORED | {
        "loss": lambda y, c, z: where(
            c == 0.0, np.exp(z) * y - z, where(c > 0.0, np.exp(z) * y, -np.log(-np.expm1(-np.exp(z) * y)))
        ),
        "constant": None,
    }
    assert said(parts, {"seen": np.resize([-1.0, 0.0, 1.0], N)}) == []


def away(place):
    """Numbers around it and mu: nothing but their responses tells where they are."""
    return NORMAL | {"loss": lambda y, z, a: 0.5 * ((y - place - z) * np.exp(-a)) ** 2 + a}


@pytest.mark.parametrize(
    ("parts", "y"),
    [
        (NORMAL, 1e7 + 1e5 * Y["number"]),
        (away(1e4), 1e4 + Y["number"]),
        (away(1e4), 1e5 + 1e5 * Y["number"]),
        (away(12345.6), 1e5 + 1e5 * Y["number"]),
        (NORMAL, np.round(10.0 * Y["number"])),
        (RIGHT["a least value"], 5.0 * (1.0 + RNG.pareto(1.5, N))),
        (RIGHT["counts above 0"], 1.0 + Y["count"]),
        (RIGHT["counts as numbers"], Y["count"]),
        (RIGHT["shares with both ends"], np.where(SEEN > 0.0, Y["share"], Y["label"])),
    ],
    ids=[
        "far out",
        "far out by itself",
        "and of another scale",
        "and missed",
        "rounded",
        "a least value",
        "counts above 0",
        "counts as numbers",
        "shares with both ends",
    ],
)
def test_nothing_is_said_where_responses_are_all_that_tells_where_the_law_is(parts, y):
    assert said(parts | {"draw": None}, y=y) == []


WRONG = RAYLEIGH | {"mean": lambda scale: scale}


def test_rows_of_a_family_of_one_s_own_are_looked_at_once():
    family, p = Family(**WRONG), pdmp.Parameters(m=1)
    with pytest.warns(UserWarning, match="^`mean` of rayleigh is not that of `draw`"):
        family.rows(Y["positive"], scale=p.m)
    family.rows(Y["positive"], scale=p.m)  # a warning is an error here
    with pytest.warns(UserWarning, match="^`mean` of rayleigh"):
        family.linked(scale="identity").rows(Y["positive"], scale=p.m)
    FAMILIES["gamma"].rows(Y["positive"], mu=p.m, shape=p.m)
    assert "_compared" not in FAMILIES["gamma"].__dict__


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ x + (1 | g)", "y ~ b * x"])
def test_formulas_look_too(formula, monkeypatch):
    """Of sums of terms, of effects that are sub-sampled, and of an expression for the parameter."""
    for number in ("GROUPED_ROWS", "SUBSAMPLED_ROWS"):
        monkeypatch.setattr(pdmp.formulas.fitting, number, 1)
    data = pd.DataFrame({"y": Y["positive"], "x": Y["share"], "g": np.arange(N) % 5})
    left = {"y": formula, "b": "~ 1"} if "b *" in formula else formula
    with pytest.warns(UserWarning, match="^`mean` of rayleigh is not that of `draw`"):
        pdmp.regression(
            left, data, Family(**WRONG), priors={"b": Normal(0.0, 1.0)} if "b *" in formula else None, sample=False
        )
