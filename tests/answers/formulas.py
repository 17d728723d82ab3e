"""Regressions by formula before they are sampled: coding, priors, units and densities of every family and term."""

from __future__ import annotations

import contextlib
import re
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import dask.dataframe
import numpy as np
import pandas

import pdmp
from pdmp.automatic import subsampling
from pdmp.formulas import batches, fitting, general, sources
from pdmp.models.families import FAMILIES
from pdmp.models.priors import LKJ, BetaBernoulli, Flat, Gamma, HalfCauchy, HalfNormal, Normal, StudentT
from pdmp.models.regressions import effect_information
from pdmp.models.regressions.laplace import laplace
from pdmp.processes import row_bounds
from tests.answers import case, once
from tests.recorded import moved

N = 31
WORDS = re.compile(r"'[^']*'|[^\s,;]+")


@once
def table():
    """Columns of every kind, and a response of every kind, in rows of no order."""
    rng = np.random.default_rng(11)
    x, z, e = moved(rng.normal(3.0, 2.0, N)), moved(rng.gamma(2.0, 1.0, N)), moved(rng.uniform(0.5, 2.0, N))
    number = moved(0.4 * x + rng.normal(-1.0, 1.5, N))
    found = {"x": x, "z": z, "e": e, "v": moved(rng.uniform(0.1, 0.9, N)), "u": moved(rng.normal(-2.0, 0.7, N))}
    found |= {"a": rng.choice(["q", "r", "s"], N, p=[0.5, 0.2, 0.3]), "s2": rng.choice(["k", "m", "j"], N)}
    found |= {"g": rng.permutation(np.arange(N) * np.arange(N) % 7 % 4) * 3 + 2, "t": rng.random(N) < 0.3}
    found |= {"h": np.char.add("n", rng.permutation(np.arange(N) % 9 % 5).astype(str))}
    found |= {"h2": np.char.add("n", rng.permutation(np.arange(N) % 5).astype(str)), "k": rng.integers(2, 7, N)}
    found |= {"y": number, "pos": moved(rng.gamma(1.5, np.exp(0.1 * x))), "share": moved(rng.uniform(0.05, 0.95, N))}
    found |= {"angle": 2.0 * np.arctan(number), "c": rng.poisson(1.3, N), "b": rng.random(N) < 0.6}
    found |= {"size": rng.integers(5, 11, N), "word": np.where(rng.random(N) < 0.4, "no", "yes")}
    found |= {"cat": rng.choice(["tram", "bus", "walk"], N), "n2": rng.integers(0, 6, N), "n3": rng.integers(0, 9, N)}
    found |= {"cens": np.arange(N) % 4 - 1, "a b": moved(np.cos(x)), "small": 1e-3 * moved(rng.normal(0.0, 1.0, N))}
    frame = pandas.DataFrame(found, index=100 + np.arange(N))
    frame["level"] = pandas.Categorical.from_codes(rng.integers(0, 4, N), ["low", "mid", "high", "top"], ordered=True)
    frame["unused"] = pandas.Categorical(frame["a"], ["s", "none", "q", "r"])
    frame["later"] = np.where(frame["cens"] == 2, frame["pos"] + 1.3, np.nan)
    frame["said"] = frame["cens"].map({-1: "Left", 0: "none", 1: "right", 2: "interval"})
    frame["gap"] = np.where(np.arange(N) % 6 == 2, np.nan, x - z)
    frame["hole"] = np.where(np.arange(N) % 8 == 5, np.nan, z)
    return frame


RESPONSES = {"number": "y", "positive": "pos", "share": "share", "count": "c", "label": "b", "angle": "angle"}
RESPONSES |= {"positive or 0": "I(pos * b)", "share or 0": "I(share * b)"}


def response_of(family):
    """The left side of a formula for a family by name."""
    if family in ("categorical", "multinomial"):
        return {"categorical": "cat", "multinomial": "cbind(c, n2, n3)"}[family]
    if FAMILIES[family].arrange is not None:
        return "level"
    return RESPONSES[FAMILIES[family].response] + (" | trials(size)" if "trials" in FAMILIES[family].data else "")


@contextlib.contextmanager
def few_steps():
    """Where effects are found to be, and rows are enclosed, does not matter to the law, and takes long."""
    few = mock.patch.multiple(effect_information, MOMENTS=1, STEPS=2, LAST_STEPS=1)
    with few, mock.patch.object(row_bounds, "PLANS", row_bounds.PLANS[-1:]):
        yield


def prepared(formula, family="gaussian", data=None, **options):
    """A regression that is not sampled."""
    with few_steps():
        return pdmp.regression(formula, table() if data is None else data, family, sample=False, seed=1, **options)


def said(text, found):
    """Names and labels in a sentence, in order, and its numbers."""
    data = found.kept.rows
    known = {*map(str, data.columns), *found.priors, *(g.name for g in found.groups), *found.design.columns}
    known |= {str(v) for name in data.columns if data[name].dtype.kind not in "f" for v in data[name].unique()}
    known |= {"independent", *(g.grouping for g in found.groups)}
    pieces = (word.strip("'().:") for word in WORDS.findall(text))
    return [[piece for piece in pieces if piece in known], f"{text} in so many words"]


def point(model, spread=0.3):
    """Coordinates of which no two are alike."""
    return model.initial + spread * np.sin(1.0 + np.arange(model.dim))


def law(prior):
    """What a prior is, in numbers."""
    return [type(prior).__name__, *prior.coded()]


def described(found, inside=True):
    """What a regression is: names, priors, notes, and its density, also in the coordinates in which it is sampled.

    `inside`: whether these are where a few steps of a search end, which rounding moves for some curves.
    """
    model, other = found.model.as_effects(), found._sampled.args[0].model
    x, at = point(model), point(other)
    sampled = [other.initial, other.potential(at), other.gradient(at)] if inside else [other.dim]
    return {
        "family": found.family.described.split(),
        "rows": found.n_rows,
        "priors": {name: [found.prior_name(name), *law(prior)] for name, prior in found.priors.items()},
        "at means": found.intercepts,
        "groups": {g.name: [g.grouping, list(map(str, g.levels)), g.sizes, g.partners] for g in found.groups},
        "categories": [found.design.response, *map(str, found.categories)],
        "notes": [said(note, found) for note in found.notes],
        "natural": model.constrain(x),
        "model": [model.potential(x), model.gradient(x)],
        "sampled": [type(other).__name__, *sampled],
        "columns": sorted(found.names_of_columns()),
        "usual": found.kept.columns,
        "labels": found.kept.groupings,
        "text": repr(found).splitlines(),
    }


def heard(function):
    """What is found, and what is warned of, with the words that are in quotes."""
    with warnings.catch_warnings(record=True) as heard_of:
        warnings.simplefilter("always")
        found = function()
    texts = [str(one.message) for one in heard_of if issubclass(one.category, UserWarning)]
    return [found, [[re.findall(r"'[^']*'|\([^)]*\|[^)]*\)", text), text] for text in texts]]


#: Where coordinates are found by a search that ends before its goal.
UNSETTLED = (
    "y ~ s(x, k=5)",
    "y ~ s(x, k=5, bs='cr') + z",
    "y ~ s(x, z, k=7)",
    "y ~ t2(x, z, k=3)",
    "categories with groups",
)


def asks(name, formula, family="gaussian", data=None, **options):
    """A case of one regression."""
    inside = name not in UNSETTLED
    case(lambda: heard(lambda: described(prepared(formula, family, data and data(), **options), inside)), name)


def of(name, function, *args, **options):
    """A case of what a function returns."""
    case(lambda: function(*args, **options), name)


# -- families, with formulas of their parameters, and links -----------------------------------------------------------

for name in (*FAMILIES, "categorical", "multinomial"):
    left = response_of(name)
    further = [] if name not in FAMILIES or FAMILIES[name].arrange else list(FAMILIES[name].named[1:])
    needed = list(FAMILIES[name].needs) if name in FAMILIES else []
    asks(f"family {name}", {"y": f"{left} ~ x + a"} | dict.fromkeys(needed, "~ z"), name)
    for parameter in further if name not in ("poisson", "bernoulli") else ():
        sides = {one: "~ z + offset(0.1 * u)" for one in dict.fromkeys([*needed, parameter])}
        asks(f"family {name}, {parameter}", {"y": f"{left} ~ x"} | sides, name)
for name in ("gaussian", "student_t", "bernoulli", "probit", "poisson", "negative_binomial", "gamma", "cumulative"):
    options = {"offset": "u", "weights": "e"} | ({"exposure": "z"} if response_of(name) == "c" else {})
    right = "a + x + offset(v) + (1 | g)" if name == "cumulative" else "0 + a + x + offset(v) + (1 | g) + (0 + z | h)"
    asks(f"groups of {name}", f"{response_of(name)} ~ {right}", name, **options)
for name, links in {
    "gaussian": ["log", "inverse", {"sigma": "identity"}],
    "gamma": ["identity", "sqrt", "inverse"],
    "poisson": ["identity", "sqrt", "inverse", "log"],
    "negative_binomial": ["sqrt"],
    "bernoulli": ["probit", "logit", "cloglog"],
    "probit": ["logit"],
    "beta": ["probit", {"mu": "probit", "phi": "sqrt"}],
    "cumulative": ["probit"],
    "lognormal": ["log"],
    "zero_inflated_poisson": [{"mu": "sqrt", "zi": "probit"}],
    "exponential": ["inverse"],
}.items():
    for link in links:
        further = [one for one in link if one not in ("mu",)] if isinstance(link, dict) else []
        left = "pos" if name == "gaussian" and link in ("log", "inverse") else response_of(name)
        asks(f"link {link} of {name}", {"y": f"{left} ~ x + a"} | dict.fromkeys(further, "~ z"), name, link=link)
asks("family logit", "word ~ x", "logit")
for left in ("word", "word['no']", "word[yes]", "t", "I(x > 3)", "s2 == 'k'"):
    asks(f"label {left}", f"{left if '==' not in left else f'I({left})'} ~ z", "bernoulli")
for left in ("k", "t", "level", "n2"):
    asks(f"ordered {left}", f"{left} ~ z + a", "sratio")
for left in ("cat", "k", "unused", "t"):
    asks(f"categories {left}", f"{left} ~ z", "categorical")
asks("a formula of a category", {"y": "cat ~ x", "walk": "~ z"}, "categorical")

# -- terms ------------------------------------------------------------------------------------------------------------

TERMS = """
x * a ; x:z + a:s2 ; a / x ; (x + z + e)**2 - x:z ; 0 + a + x ; 1 ; C(g) ; C(a, Treatment('s')) ; C(g, Sum(5))
C(a, Sum('q')) + t ; unused + level ; np.log(z) + np.exp(-x / 3) ; log(z) + I(x**2) + {x * z} ; poly(x, 3)
bs(x, df=5) ; bs(z, df=4, degree=2, intercept=True) ; scale(x) + center(z) ; standardize(x):a
`a b` + Q('a b'):x ; (x + e)^2 + I(x^2) ; (x + z)^2 ; small + x ; t + t:x ; np.where(t, x, z)
offset(z) + offset(2 * u) + x ; s(x, k=5) ; s(x, k=5, bs='cr') + z ; s(x, z, k=7) ; s(x, by=a, k=4) + a
s(x, by=e, k=4) ; t2(x, z, k=3) ; t2(x, z, k=3, bs='tp', by=t) ; t2(x, z, k=3, by=e) ; gp(x, k=4)
gp(z, k=5, c=2.5) + x ; mo(k) ; mo(level) + x ; s(x, k=4) + s(z, k=4) + mo(k) + (1 | h) ; x + (1 | g)
x + (z | g) ; x + (x || g) ; (1 | g / s2) ; (0 + x | g) ; (1 | g:s2) + (0 + z | h) ; x + (1 + x + z | g)
(a | g) ; (0 + a || g) ; (1 | g) + (x | h) ; (1 | mm(h, h2)) ; x + (1 + z | mm(h, h2, weights=cbind(v, e)))
gp(x, z, k=3, iso=FALSE) ; gp(x, u, k=3, by=t, iso=False) + t
(1 | mm(h, h2, weights=cbind(v, e), scale=False)) ; (1 | C(k)) + x ; (1 | t) ; (scale(x) || h)
(poly(x, 2) | g)
"""
for right in re.split(r"\s*[;\n]\s*", TERMS.strip()):
    asks(f"y ~ {right}", f"y ~ {right}")
for family, right in {
    "poisson": "s(x, k=5) + gp(z, k=4)",
    "gamma": "mo(k) + s(x, by=t, k=4)",
    "cumulative": "s(x, k=4) + mo(k)",
}.items():
    asks(f"{family} {right}", f"{response_of(family)} ~ {right}", family)
asks("curves of two parameters", {"y": "y ~ s(x, k=4) + (1 | g)", "sigma": "~ gp(z, k=4) + (0 + x | h)"})
asks("categories with groups", "cat ~ x + (1 | h)", "categorical")
asks("all other columns", "y ~ .", data=lambda: table()[["y", "x", "a", "t", "e"]], weights="e")
asks("a response that is computed", "np.log(pos) ~ x")
asks("a response that is scaled", "scale(y) ~ x + (1 | g)")

# -- what stands beside the response, and arguments -------------------------------------------------------------------

BESIDE = {
    "binomial": ["c | trials(size)", "c | trials(12)", "p(c, size)", "c | trials(size) + weights(e)"],
    "weibull": [
        "pos | cens(cens, later)",
        "pos | cens(said, later)",
        "cens(pos, t)",
        "pos | cens(b) + trunc(lb=0.001)",
    ],
    "lognormal": ["pos | trunc(ub=60)", "truncated(pos, 0.001, 99)", "pos | cens(b)"],
    "gaussian": ["y | trunc(lb=-9)", "y | trunc(-9, 30)", "y | trunc(ub=30)", "constrained(y, lb=-9, ub=inf)"],
    "student_t": ["y | weights(e)", "weighted(y, e)"],
    "poisson": ["c | rate(e)"],
    "exponential": ["pos | cens(b)", "pos | weights(e)"],
    "beta_binomial": ["p(c, size)"],
    "gamma": ["pos | weights(e)"],
    "geometric": ["c | trunc(ub=40)", "c | trunc(0, 60) + weights(e)"],
    "negative_binomial": ["truncated(c, ub=50)"],
}
for family, lefts in BESIDE.items():
    for left in lefts:
        asks(f"{left} of {family}", f"{left} ~ x", family)
for left in ("y | se(e)", "y | se(e, sigma=True)", "y | se(0.3)", "y | se(e, sigma=TRUE) + weights(v)"):
    asks(f"{left} and groups", f"{left} ~ x + (1 | h)")
for family in ("gaussian", "gamma", "negative_binomial", "zero_inflated_poisson"):
    left = response_of(family)
    asks(f"weights of {family}", f"{left} ~ x + (1 | g)" if family != "gamma" else f"{left} ~ x", family, weights="e")
    asks(f"offset of {family}", f"{left} ~ x", family, offset="u")
    if left == "c":
        asks(f"exposure of {family}", "c ~ x + offset(u)", family, exposure="e", offset="v", weights="z")

# -- priors that are given --------------------------------------------------------------------------------------------

PRIORS = {
    "x": Normal(0.1, 0.7), "a": StudentT(4.0, -0.2, 1.3), "Intercept": Normal(0.4, 3.0), "sd(g)": HalfNormal(0.8),
    "sd(z|g)": HalfCauchy(0.6), "sigma": Gamma(2.0, 0.7), "cor(g)": LKJ(2.5), "a[s]": Normal(2.0, 0.3),
}  # fmt: skip
asks("priors", "y ~ x + a + (z | g)", priors=PRIORS)
asks("priors of independent effects", "y ~ x + a + (z || g)", priors={k: v for k, v in PRIORS.items() if k != "cor(g)"})
asks("a prior of one correlation", "y ~ x + (z | g)", priors={"cor(1, z|g)": LKJ(3.0)})
asks("flat priors", "y ~ x + z", "student_t", priors={"x": Flat(), "nu": Gamma(3.0, 5.0)})
asks("priors of curves", "y ~ s(x, k=4) + gp(z, k=4) + mo(k)", priors={
    "sd(s(x))": HalfNormal(0.3), "s(x).x": Normal(0.2, 0.1), "sd(gp(z))": HalfCauchy(0.9),
    "length(gp(z))": Gamma(3.0, 0.4), "mo(k)": Normal(0.1, 0.6),
})  # fmt: skip
asks("priors of two formulas", {"y": "pos ~ x", "shape": "~ z + (1 | g)"}, "gamma", priors={
    "shape: z": Normal(0.2, 0.4), "shape: Intercept": Normal(0.1, 0.9), "shape: sd(g)": HalfNormal(0.2),
})  # fmt: skip
asks(
    "priors across formulas",
    {"y": "y ~ x + (1 + z |q| g)", "sigma": "~ (1 |q| g) + (1 | h)"},
    priors={"cor(g)": LKJ(2.5)},
)
asks("priors of cuts", "level ~ x", "acat", priors={"cuts": StudentT(5.0, 0.1, 2.0)})
asks("a prior by its link", "c ~ x", "zero_inflated_poisson", priors={"logit(zi)": Normal(-1.0, 0.6)})
asks("a prior of alpha", "c ~ x", "negative_binomial", priors={"alpha": HalfNormal(2.0)})
asks(
    "priors of categories",
    "cat ~ x",
    "categorical",
    priors={"tram: x": Normal(0.3, 0.2), "walk: Intercept": Normal(1.0, 0.5)},
)

# -- missing values, and columns that are imputed ---------------------------------------------------------------------

asks("missing values", "y ~ gap + hole + (1 | g)", weights="e")
asks("imputed", {"y": "y ~ mi(gap) * z + a", "gap": "gap | mi() ~ z + (1 | g)"}, priors={
    "sigma(gap)": HalfNormal(0.7), "gap: z": Normal(0.2, 0.4), "mi(gap)": Normal(0.3, 0.6),
})  # fmt: skip
asks(
    "two imputed columns",
    {"y": "c ~ mi(gap) + mi(hole)", "gap": "gap | mi() ~ mi(hole)", "hole": "hole | mi() ~ x"},
    "poisson",
)
asks("imputed in a second formula", {"y": "y ~ x", "sigma": "~ mi(gap)", "gap": "gap | mi() ~ a"}, weights="e")

# -- warnings and notes -----------------------------------------------------------------------------------------------


def with_columns(**columns):
    """The table with further columns, functions of it."""
    return lambda: table().assign(**columns)


asks("a sum of columns", "y ~ x + z + both", data=with_columns(both=lambda d: 2.0 * d.x - d.z + 3.0))
asks("a column of nothing", "y ~ x + nothing", data=with_columns(nothing=0.0))
asks("a constant", "y ~ x + same", data=with_columns(same=4.0))
asks("columns without an intercept", "y ~ 0 + x + twice", data=with_columns(twice=lambda d: 2.0 * d.x))
asks("effects of fixed columns", "y ~ C(g) + x + (1 | g)")
asks("steps of columns", "y ~ k + mo(k)")
asks("labels that are separated", "apart ~ x + z", "bernoulli", with_columns(apart=lambda d: d.x > 3.0))
asks("counts that are labels", "b ~ x", "poisson")
asks("groups of one row", "y ~ x + (1 | few)", data=with_columns(few=np.r_[0, 1, 2, 2, np.arange(N - 4) % 4 + 3]))
asks("a slip among numbers", "y ~ odd", data=with_columns(odd=["1", "2", "3o"] + ["1", "2"] * 14))


# -- selection, and the process that is chosen ------------------------------------------------------------------------

SELECT = {
    "all": "all", "names": ["x", "a"], "a column of a term": ["a[s]", "z"],
    "probabilities": {"x": 0.2, "a": 0.7, "z": 0.35},
}  # fmt: skip


def selecting(family, select, priors=None, sampler="auto"):
    """Prior odds, terms, the anchor, and the processes for a model."""
    found = prepared(f"{response_of(family)} ~ x + a + z + u", family, select=select, priors=priors, sampler=sampler)
    model = found._sampled.args[0].model
    near = laplace(model)
    anchor, starts, many, text = subsampling.sparse(model, near)
    with few_steps():
        offers = subsampling.candidates(model, True, sampler == "auto")
        process, _, how = subsampling.subsampled(model, True, sampler)
        costs = {name: [one.cost(), one.said] for name, one in offers.items()}
    return {
        "inclusion": model.inclusion,
        "together": model.together,
        "prior": model.prior_inclusion(),
        "notes": found.notes,
        "anchor": [anchor, many, text, starts(5, np.random.default_rng(2))],
        "offers": costs,
        "chosen": [type(process).__name__, how, getattr(process, "rate", None)],
        "little": subsampling.condition(near.covariance),
    }


for name, select in SELECT.items():
    case(lambda select=select: selecting("bernoulli", select), f"select {name}")
for family in ("gaussian", "poisson"):
    case(lambda family=family: selecting(family, "all", {"inclusion": BetaBernoulli(1.0, 3.0)}), f"select of {family}")
for name in ("zigzag", "bps", "boomerang"):
    case(lambda name=name: selecting("bernoulli", ["x", "z"], sampler=name), f"select by {name}")


@case
@few_steps()
def without_selection():
    """Which process a large table would get, by what is known of its mode."""
    found = {}
    for family in ("gaussian", "bernoulli", "negative_binomial"):
        model = prepared(f"{response_of(family)} ~ x + I(x + 0.1 * z)", family)._sampled.args[0].model
        for free in (True, False):
            offers = subsampling.candidates(model, False, free)
            found[f"{family} {free}"] = {name: [one.cost(), one.said.split()[:4]] for name, one in offers.items()}
        for sampler in ("auto", "zigzag", "bps", "boomerang"):
            process, starts, how = subsampling.subsampled(model, False, sampler)
            drawn = None if process is None else starts(3, np.random.default_rng(1))
            found[f"{family} {sampler}"] = [type(process).__name__, how, drawn]
    return found


@case
@few_steps()
def coordinates_of_effects():
    """Which coordinates regressions with groups are sampled in, by rows, groups and what is asked."""
    found = {}
    with mock.patch.multiple(
        fitting, INTERCEPT_ROWS=3, SLOPE_ROWS=4, GROUPED_ROWS=20, MANY_GROUPS=5, SUBSAMPLED_ROWS=40
    ):
        for right in ("x + (1 | g)", "x + (1 | h)", "x + (x || g)", "z + (x || g)", "(1 | g) + (1 | h)", "(0 + x | h)"):
            for sampler in ("auto", "zigzag"):
                model = prepared(f"y ~ {right}", sampler=sampler)._sampled.args[0].model
                found[f"{right} {sampler}"] = [type(model).__name__, model.initial, model.gradient(point(model))]
                found[f"{right} {sampler}"] += [str(subsampling.subsampled(model, False, sampler)[2])]
        model = prepared("b ~ x + (1 | g)", "bernoulli", select=["x"])._sampled.args[0].model
        found["select"] = [type(model).__name__, model.gradient(point(model))]
    return found


# -- tables of every kind, and files ----------------------------------------------------------------------------------

COLUMNS = ["y", "x", "a", "g", "t", "c", "word", "e", "u", "gap"]
FORMS = {
    "dict of lists": lambda d: {name: d[name].tolist() for name in COLUMNS},
    "dict of arrays": lambda d: {name: d[name].to_numpy() for name in COLUMNS},
    "few bits": lambda d: d.astype({"x": "float32", "c": "int8", "g": "uint8", "e": "float16", "y": "float32"}),
    "categories": lambda d: d.astype({"a": "category", "g": "category", "word": "category"}),
    "types of pandas": lambda d: d.convert_dtypes(),
    "another index": lambda d: d.set_index(pandas.Index(list(range(N))[::-1])),
    "another order of columns": lambda d: d[COLUMNS[::-1]],
}  # fmt: skip
FORMULA = "y ~ x * a + C(g) + gap + t + word"
for name, form in FORMS.items():
    asks(f"data {name}", FORMULA, data=lambda form=form: form(table()), weights="e", offset="u")


def of_files(formula, family, kind, parts=1, change=None, **options):
    """A regression on files, in memory and in batches of seven rows."""
    data = table()[COLUMNS]
    data = data if change is None else change(data)
    ends = np.linspace(0, N, parts + 1).round().astype(int)
    found, sums, totals = {}, [], batches.Rows.totals
    with tempfile.TemporaryDirectory() as folder:
        for k in range(parts):
            part, path = data.iloc[ends[k] : ends[k + 1]], Path(folder) / f"{k}.{kind}"
            part.to_csv(path, index=False, float_format="%.17g", na_rep="NA") if kind != "parquet" else part.to_parquet(
                path
            )
        given = path if parts == 1 else f"{folder}/*.{kind}"
        if parts == 1:
            found["in memory"] = described(prepared(formula, family, path, **options))
        small = mock.patch.multiple(sources, LARGE_FILE=1, BATCH=7, CSV_BLOCK=600)
        summed = mock.patch.object(batches.Rows, "totals", lambda *given: sums.append(totals(*given)) or sums[-1])
        with small, summed, mock.patch.object(batches, "FIRST_ROWS", 3):
            if kind == "dask":
                given = dask.dataframe.from_pandas(data, npartitions=3)
            one = prepared(formula, family, given if kind == "dask" else str(given), **options)
            found["in batches"] = described(one)
            model = one.model
            rows = [np.asarray(model.X), np.asarray(model.y), model.centre, model.scale, model.centring]
            found["in batches"]["coded"] = [part for part in rows if isinstance(part, np.ndarray)]
    found["in batches"]["sums"] = sums[0]._asdict()
    for one in found.values():
        one["notes"] = [[each[0], each[1].replace(folder, "")] for each in one["notes"]]
    return found


LATE = {
    "a": lambda d: d.assign(a=d.a.where(np.arange(N) < 26, "zz")),
    "x": lambda d: d.assign(x=np.r_[np.arange(20), d.x[20:]]),
}
for kind in ("csv", "parquet"):
    for k, (formula, family, options) in enumerate([
        ("y ~ x * a + C(g) + gap + t", "gaussian", {"weights": "e", "offset": "u"}),
        ("y ~ 0 + a + x + offset(e)", "student_t", {}),
        ("word ~ x + a", "bernoulli", {"select": "all", "offset": "u"}),
        ("c ~ x + (x || g) + (1 | a:word)", "negative_binomial", {"exposure": "e"}),
    ]):  # fmt: skip
        of(f"{kind} {formula}", of_files, formula, family, kind, 1 + 2 * (k % 2), **options)
of("a Dask DataFrame", of_files, "y ~ x * a + t", "gaussian", "dask", 2, weights="e")
for name, change in LATE.items():
    of(f"files in which {name} changes late", of_files, "y ~ x + a", "gaussian", "csv", 3, change)


@case
def effects_of_files():
    """Coordinates of intercepts and slopes of rows in files."""
    with mock.patch.multiple(
        fitting, INTERCEPT_ROWS=3, SLOPE_ROWS=4, GROUPED_ROWS=20, MANY_GROUPS=3, SUBSAMPLED_ROWS=25
    ):
        with tempfile.TemporaryDirectory() as folder, mock.patch.multiple(sources, LARGE_FILE=1, BATCH=7):
            table()[COLUMNS].to_parquet(Path(folder) / "t.parquet")
            found = {}
            for right in ("x + (1 | g)", "x + (x || g)", "(x || g)", "x + (1 | g) + (1 | a)"):
                arguments = {"offset": None, "weights": "e", "exposure": None, "select": None, "environment": None}
                model = fitting.make_model(
                    fitting.describe(f"y ~ {right}"),
                    f"{folder}/*.parquet",
                    fitting.family_of("gaussian"),
                    None,
                    **arguments,
                )[0]
                x = point(model)
                found[right] = [type(model).__name__, model.potential(x), model.gradient(x), model.constrain(x)]
            return found


# -- further rows -----------------------------------------------------------------------------------------------------


def further(formula, family="gaussian", draws=4, **options):
    """The model of twenty rows and eleven others, groups among them that are new."""
    data = table().assign(
        g=np.r_[np.arange(20) % 3, np.arange(N - 20) % 5], h=np.r_[np.arange(20) % 4, np.arange(N - 20) % 4 + 1]
    )
    data.loc[data.index[22], "x"] = np.nan
    found = prepared(formula, family, data.iloc[:20], **options)
    fit, origin = (found._sampled.args[k] for k in range(2))
    fit.run = mock.Mock(chains=1, dim=fit.model.dim)
    fit.run.draws = lambda n: (point(fit.model) + 0.1 * np.cos(np.arange(n))[:, None])[None]
    with few_steps():
        room = general if hasattr(fit, "designs") else fitting
        changed, notes = room.extended_model(origin, fit, data.iloc[20:])
    more, model, now = fit.replaced(**changed), changed["model"], changed["kept"]
    designs, groups, x = (
        changed.get("designs", {"": changed["design"]}),
        [g for _, g in more.group_columns],
        point(model),
    )
    new = {name: design.new(data.iloc[20:22])[:2] for name, design in designs.items()}
    return {
        "model": [type(model).__name__, model.initial, model.potential(x), model.gradient(x), model.constrain(x)],
        "groups": [[g.name, list(map(str, g.levels)), g.sizes] for g in groups],
        "new": new,
        "kept": [now.n, now.places, now.columns, now.groupings, now.rows],
        "notes": [said(note, fit) for note in notes],
    }


UPDATES = {
    "y ~ x * a + (1 | g) + (0 + z | h)": ("gaussian", {"weights": "e", "offset": "u"}),
    "word ~ x + t": ("bernoulli", {"select": "all"}),
    "c ~ x + offset(u)": ("negative_binomial", {"exposure": "e"}),
    "pos ~ x + (1 + z | g)": ("gamma", {"weights": "e"}),
    "level ~ x + z": ("cumulative", {"offset": "u"}),
    "y ~ s(x, k=4) + mo(k) + (1 | g)": ("student_t", {}),
    "cat ~ x + (1 | g)": ("categorical", {}),
    "c | trials(size) ~ z": ("binomial", {}),
    "pos | cens(cens, later) ~ z": ("weibull", {}),
}
for formula, (family, options) in UPDATES.items():
    of(f"further rows of {formula}", further, formula, family, **options)
of("further rows of two formulas", further, {"y": "y ~ x", "sigma": "~ z + offset(u) + (1 | h)"})
