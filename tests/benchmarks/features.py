"""Each family and feature of a formula once beside nutpie, on Bambi's model or on one of PyMC where Bambi has none.

    pip install '.[formula]' statsmodels scikit-learn
    python -m venv OTHER; OTHER/bin/pip install bambi nutpie 'matplotlib<3.11'
    PDMP_DATA=FOLDER python -m tests.benchmarks.features --peer OTHER/bin/python [--only NAME …] [--draws 1500]

The tables are those of statsmodels, scikit-learn and MovieLens 100K. The priors are those that `pdmp.regression` names,
and are given to the other; numbers in the tables are standardised, so that an intercept is of the same rows. Of each
model: the largest difference of means over all parameters and effects of groups, in posterior standard deviations; in
brackets in Monte Carlo standard errors, of both together; the ratio of standard deviations that is farthest from 1, and
again; seconds of the processors to 400 effective draws of the mean that has the fewest, set-up and warm-up counted and
compilation not, as a share of a longer run. nutpie has four chains, and as many draws of warm-up as are kept; how many
of them diverged is said behind, as then the ends of the posterior may be missing: `accept` is nearer to 1 there.
"""

import argparse
import gzip
import os
import pathlib
import pickle
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np
import pandas

if __name__ == "__main__" and len(sys.argv) == 1:  # the other side, which has neither this package nor what that needs
    import bambi as bmb
    import nutpie
    import pymc as pm
    import pytensor.tensor as pt

CHAINS = 4
#: What parameters beside the first are called by Bambi.
CALLED = {
    "shape": {"gamma": "alpha", "hurdle_gamma": "alpha", "inverse_gaussian": "lam", "weibull": "alpha"},
    "phi": "kappa", "cuts": "threshold",
}  # fmt: skip
FAMILIES = {
    "student_t": "t", "inverse_gaussian": "wald", "negative_binomial": "negativebinomial", "probit": "bernoulli",
    "zero_inflated_negative_binomial": "zero_inflated_negativebinomial",
    "hurdle_negative_binomial": "hurdle_negativebinomial",
}  # fmt: skip


def standard(x):
    return (x - x.mean()) / x.std()


def of_statsmodels(name, *columns, every=1):
    """Rows of a table, some of whose columns are standardised."""
    import statsmodels.api as sm

    table = getattr(sm.datasets, name).load_pandas().data.iloc[::every].reset_index(drop=True)
    return table.assign(**{column: standard(table[column].astype(float)) for column in columns})


def diabetes():
    from sklearn.datasets import load_diabetes

    table = load_diabetes(as_frame=True).frame
    table["sex"] = np.where(table["sex"] > 0, "one", "other")
    return table.assign(**{name: standard(table[name]) for name in ("age", "bmi", "bp", "s5")})


def wine():
    from sklearn.datasets import load_wine

    return load_wine(as_frame=True).frame.assign(alcohol=lambda t: standard(t["alcohol"]))


def iris():
    from sklearn.datasets import load_iris

    return load_iris(as_frame=True).frame.rename(columns={"petal length (cm)": "petal"})


def visits():
    table = of_statsmodels("randhie", "lncoins", "disea", every=20)
    return table.assign(mdvis=table["mdvis"].astype(int))


def schools():
    table = of_statsmodels("star98", "LOWINC", "PERASIAN")
    above = table["NABOVE"].astype(int)
    return table.assign(above=above, n=above + table["NBELOW"].astype(int))


def crime():
    table = of_statsmodels("statecrime", "poverty", "single")
    return table.assign(share=table["hs_grad"] / 100.0, weight=1.0 + np.arange(len(table)) % 3)


def voters():
    table = of_statsmodels("anes96", "age", "income")
    party = np.array(["dem", "ind", "rep"])[np.digitize(table["PID"], [1.5, 4.5])]
    return table.assign(lean=table["selfLR"].astype(int) - 1, party=party, educ=table["educ"].astype(int))


def firms():
    table = of_statsmodels("grunfeld", "value", "capital")
    return table.assign(invest=table["invest"] / 100.0, half=np.where(table["year"] < 1945, "early", "late"))


def strikes():
    table = of_statsmodels("strikes", "iprod")
    return table.assign(over=(table["duration"] > 60.0).astype(int), seen=np.minimum(table["duration"], 60.0))


def cancer():
    table = of_statsmodels("cancer").assign(cancer=lambda one: one["cancer"].astype(int))
    logarithm = np.log(table["population"])
    return table.assign(size=standard(logarithm), logarithm=logarithm)


def marriages():
    table = of_statsmodels("fair", "age", "religious", every=8)
    had, kids = (table["affairs"] > 0.0).astype(int), np.where(table["children"] > 0, "yes", "no")
    often = np.minimum(np.ceil(table["affairs"]), 12).astype(int)  # of a dozen
    return table.assign(had=had, kids=kids, often=often, dozen=12, share=table["affairs"] / (1.0 + table["affairs"]))


def ratings():
    """Of MovieLens 100K: the first 40 users with 20 ratings or more of the 60 films that are rated most."""
    with gzip.open(pathlib.Path(os.environ["PDMP_DATA"]) / "movielens_100k" / "u.data.gz", "rt") as file:
        table = pandas.read_csv(file, sep="\t", names=["user", "film", "rating", "time"])
    table = table[table["film"].isin(table["film"].value_counts().index[:60])]
    many = table["user"].value_counts()
    table = table[table["user"].isin(sorted(many.index[many >= 20])[:40])].reset_index(drop=True)
    hour = 2.0 * np.pi * (table["time"] % 86_400) / 86_400 - np.pi
    late = standard((table["time"] > table["time"].median()) * 1.0)
    text = {name: table[name].astype(str) for name in ("user", "film")}
    liked = standard(table["rating"] * 1.0)
    return table.assign(**text, angle=hour, late=late, liked=liked, stars=table["rating"] - 1)


# What Bambi lacks: each makes the likelihood of a table `t`, with the parameters of a `Model`


class Model:
    """A model of PyMC whose variables are called as the parameters are here."""

    def __init__(self, t, priors, bases):
        self.t, self.priors, self.bases = t, priors, bases

    def __getitem__(self, name):
        law, numbers = in_pymc(*self.priors[name])
        return getattr(pm, law)(name.replace(", ", ";"), **numbers)  # nutpie takes no names with commas

    def eta(self, more=0.0):
        """The linear predictor of the columns, which are about their means, and a further part."""
        names = [name for name in self.priors if name in self.t.columns or name == "Intercept"]
        values = [1.0 if name == "Intercept" else self.t[name].to_numpy() for name in names]
        return sum((self[name] * value for name, value in zip(names, values, strict=True)), more)

    def effects(self, name, spread, standard):
        return pm.Deterministic(name.replace(", ", ";"), spread * pm.Normal("standard", shape=standard))

    def cuts(self, ordered=False):
        k = sum(name.startswith("cut[") for name in self.priors)
        law, numbers = in_pymc(*self.priors["cut[1]"])
        if ordered:
            numbers |= {"transform": pm.distributions.transforms.ordered, "initval": np.linspace(-1.0, 1.0, k)}
        return getattr(pm, law)("cut", shape=k, **numbers)


def simple(name, **parameters):
    """A law of PyMC with mu, and further parameters here by what they are called there."""

    def build(m, y):
        return getattr(pm, name)("y", mu=m.eta(), **{key: m[own] for key, own in parameters.items()}, observed=y)

    return build


def von_mises(m, y):
    pm.VonMises("y", mu=2.0 * pm.math.arctan(m.eta()), kappa=m["kappa"], observed=y)


def weibull(m, y):
    law = pm.Weibull.dist(alpha=m["shape"], beta=pm.math.exp(m.eta()))
    upper = np.where(m.t["over"] == 1, y, np.inf)
    pm.Censored("y", law, lower=None, upper=upper, observed=y)


def truncated(m, y):
    pm.Truncated("y", pm.Normal.dist(mu=m.eta(), sigma=m["sigma"]), lower=0.0, upper=np.inf, observed=y)


def inflated_beta(m, y):
    law, numbers = in_pymc(*m.priors["zi"])
    odds = getattr(pm, law)("log odds", **numbers)
    zi, seen = pm.Deterministic("zi", pm.math.sigmoid(odds)), y > 0.0
    mu, phi = pm.math.sigmoid(m.eta()), m["phi"]
    pm.Bernoulli("above", p=1.0 - zi, observed=seen.astype(int))
    pm.Beta("y", alpha=(mu * phi)[seen], beta=((1.0 - mu) * phi)[seen], observed=y[seen])


def cumulative_probit(m, y):
    pm.OrderedProbit("y", eta=m.eta(), cutpoints=m.cuts(True), observed=y)


def acat(m, y):
    steps = m.eta()[:, None] - m.cuts()[None, :]
    pm.Categorical("y", logit_p=pt.concatenate([pt.zeros_like(steps[:, :1]), pt.cumsum(steps, axis=1)], 1), observed=y)


def mixture(m, y):
    law, numbers = in_pymc(*m.priors["theta"])
    theta = pm.Deterministic("theta", pm.math.sigmoid(getattr(pm, law)("log odds", **numbers)))
    laws = [pm.Normal.dist(m["mu2: Intercept"], m["sigma2"]), pm.Normal.dist(m.eta(), m["sigma1"])]
    pm.Mixture("y", w=pm.math.stack([1.0 - theta, theta]), comp_dists=laws, observed=y)


def correlated(m, y):
    """LKJ(1) of one correlation is uniform."""
    codes, levels = pandas.factorize(m.t["firm"], sort=True)
    between = pm.Uniform("cor(1;value|firm)", -1.0, 1.0)
    one, other = (pm.Normal(name, shape=len(levels)) for name in ("first", "second"))
    effects = pm.Deterministic("1|firm", m["sd(firm)"] * one)
    slopes = m["sd(value|firm)"] * (between * one + pm.math.sqrt(1.0 - between**2) * other)
    slopes = pm.Deterministic("value|firm", slopes)
    pm.Normal("y", m.eta(effects[codes] + slopes[codes] * m.t["value"].to_numpy()), m["sigma"], observed=y)


def curve(m, y):
    basis = m.bases["s(bmi)"]
    bend = basis @ m.effects("s(bmi)", m["sd(s(bmi))"], basis.shape[1])
    pm.Normal("y", m.eta(bend + m["s(bmi).bmi"] * m.t["bmi"].to_numpy()), m["sigma"], observed=y)


def process(m, y):
    kernel = m["sd(gp(year))"] ** 2 * pm.gp.cov.ExpQuad(1, m["length(gp(year))"])
    x = m.t[["year"]].to_numpy(float)
    half = 0.5 * np.ptp(x)
    basis, roots = pm.gp.HSGP(m=[25], L=[2.0 * half], cov_func=kernel).prior_linearized(x - x.min() - half)
    pm.Normal("y", m.eta(basis @ (roots * pm.Normal("standard", shape=25))), m["sigma"], observed=y)


def monotonic(m, y):
    level = m.t["educ"].to_numpy() - m.t["educ"].min()
    shares = pm.Dirichlet("shares", np.ones(level.max()))
    height = pt.concatenate([[0.0], pt.cumsum(shares)]) * level.max()
    pm.Normal("y", m.eta(m["mo(educ)"] * height[level]), m["sigma"], observed=y)


def polynomial(m, y):
    """Orthonormal polynomials, each of which rises at the end."""
    x = m.t["income"].to_numpy()
    columns = np.linalg.qr(np.vander(x - x.mean(), 3, increasing=True))[0][:, 1:]
    columns *= np.sign(columns[np.argmax(x)])
    pm.Normal("y", m.eta(sum(m[f"poly(income, 2)[{k}]"] * columns[:, k] for k in range(2))), m["sigma"], observed=y)


def imputed(m, y):
    x, other = m.t["bmi"].to_numpy(), m.t["bp"].to_numpy()
    missing, mean = np.isnan(x), m["bmi: Intercept"] + m["bmi: bp"] * other
    spread = m["sigma(bmi)"]
    unknown = pm.Normal("missing bmi", mean[missing], spread, shape=int(missing.sum()))
    pm.Normal("known", mean[~missing], spread, observed=x[~missing])
    whole = pt.set_subtensor(pt.as_tensor(np.where(missing, 0.0, x))[missing], unknown)
    pm.Normal("y", m.eta(m["mi(bmi)"] * whole), m["sigma"], observed=y)


def several(m, y):
    levels = sorted({*m.t["one"], *m.t["two"]})
    codes = [pandas.Categorical(m.t[name], levels).codes for name in ("one", "two")]
    effects = m.effects("1|mm(one, two)", m["sd(mm(one, two))"], len(levels))
    pm.Normal("y", m.eta(0.5 * (effects[codes[0]] + effects[codes[1]])), m["sigma"], observed=y)


def neighbours():
    """The firms, each row with that of the row before as a second."""
    table = firms()
    return table.assign(one=table["firm"], two=np.roll(table["firm"], 7))


def unknown():
    """The diabetes table, where the index of 60 of 442 is not known."""
    table = diabetes()
    table.loc[np.random.default_rng(0).choice(len(table), 60, replace=False), "bmi"] = np.nan
    return table.assign(bmi=(table["bmi"] - table["bmi"].mean()) / table["bmi"].std(ddof=0))


class Case(NamedTuple):
    table: Callable[[], Any]
    formula: Any
    family: str = "gaussian"
    theirs: Any = None  #: formulas of Bambi, the same as here if not given; or what makes a likelihood of PyMC
    options: dict = {}
    priors: dict = {}  #: that replace the default ones of both
    accept: float = 0.8  #: share of proposals that nutpie accepts, to which it adapts its steps


HOURS = "mdvis ~ lncoins + idp + disea"
SHARE = "p(above, n) ~ LOWINC + PERASIAN"
CASES = {
    "gaussian": Case(diabetes, "target ~ bmi + bp + s5 + sex"),
    "student_t": Case(lambda: of_statsmodels("engel", "income"), "foodexp ~ income", "student_t"),
    "skew_normal": Case(
        wine, "malic_acid ~ alcohol", "skew_normal", simple("SkewNormal", sigma="sigma", alpha="alpha")
    ),
    "gamma": Case(strikes, "duration ~ iprod", "gamma"),
    "lognormal": Case(strikes, "duration ~ iprod", "lognormal", simple("LogNormal", sigma="sigma")),
    "inverse_gaussian": Case(strikes, "duration ~ iprod", "inverse_gaussian"),
    "exponential": Case(strikes, "duration ~ iprod", "exponential"),
    "weibull, y | cens(c)": Case(strikes, "seen | cens(over) ~ iprod", "weibull", weibull),
    "gaussian, y | trunc(lb=0)": Case(firms, "invest | trunc(lb=0) ~ value + capital", "gaussian", truncated),
    "beta": Case(crime, "share ~ poverty + single", "beta"),
    "binomial, p(k, n)": Case(schools, SHARE, "binomial"),
    "beta_binomial, k | trials(n)": Case(schools, "above | trials(n) ~ LOWINC + PERASIAN", "beta_binomial", [SHARE]),
    "bernoulli": Case(marriages, "had ~ age * kids + religious", "bernoulli"),
    "probit": Case(marriages, "had ~ age + religious", "probit"),
    "poisson, y | rate(n)": Case(
        cancer, "cancer | rate(population) ~ size", "poisson", ["cancer ~ size + offset(logarithm)"]
    ),
    "negative_binomial": Case(visits, HOURS, "negative_binomial"),
    "zero_inflated_poisson, zi ~ x": Case(
        visits, {"y": HOURS, "zi": "~ disea"}, "zero_inflated_poisson", [HOURS, "psi ~ disea"]
    ),
    "zero_inflated_negative_binomial, zi ~ x": Case(
        visits, {"y": HOURS, "zi": "~ disea"}, "zero_inflated_negative_binomial", [HOURS, "psi ~ disea"]
    ),
    "hurdle_poisson, hu ~ x": Case(
        visits, {"y": HOURS, "hu": "~ disea"}, "hurdle_poisson", [HOURS, "psi ~ disea"]
    ),
    "hurdle_negative_binomial, hu ~ x": Case(
        visits, {"y": HOURS, "hu": "~ disea"}, "hurdle_negative_binomial", [HOURS, "psi ~ disea"]
    ),
    "hurdle_gamma, hu ~ x": Case(
        marriages, {"y": "affairs ~ age + religious", "hu": "~ age"}, "hurdle_gamma",
        ["affairs ~ age + religious", "psi ~ age"],
    ),
    "zero_inflated_beta": Case(marriages, "share ~ age + religious", "zero_inflated_beta", inflated_beta),
    "zero_inflated_binomial, zi ~ x": Case(
        marriages, {"y": "p(often, dozen) ~ age", "zi": "~ age"}, "zero_inflated_binomial",
        ["p(often, dozen) ~ age", "psi ~ age"],
    ),
    "cumulative": Case(voters, "lean ~ age + income", "cumulative"),
    "cumulative_probit": Case(voters, "lean ~ age + income", "cumulative_probit", cumulative_probit),
    "sratio": Case(voters, "lean ~ age + income", "sratio"),
    "acat": Case(voters, "lean ~ age + income", "acat", acat),
    "categorical": Case(voters, "party ~ age + income", "categorical"),
    "von_mises": Case(ratings, "angle ~ liked", "von_mises", von_mises),
    "mixture_gaussian": Case(
        iris, {"y": "petal ~ 1", "mu2": "~ 1"}, "mixture_gaussian", mixture,
        priors={"Intercept": ("Normal", 1.0, 1.0), "mu2: Intercept": ("Normal", 5.0, 1.0)},
    ),
    "(1 | g)": Case(firms, "invest ~ value + capital + (1 | firm)"),
    "(1 + x || g)": Case(firms, "invest ~ value + (1 + value || firm)", theirs=["invest ~ value + (1 + value | firm)"]),
    "(1 + x | g), correlated": Case(firms, "invest ~ value + (1 + value | firm)", theirs=correlated, accept=0.99),
    "(1 | g / h), nested": Case(
        firms, "invest ~ value + (1 | firm / half)", theirs=["invest ~ value + (1 | firm) + (1 | firm:half)"]
    ),
    "(1 | g) + (1 | h), crossed": Case(ratings, "rating ~ late + (1 | user) + (1 | film)"),
    "(1 | g), cumulative": Case(ratings, "stars ~ late + (1 | user)", "cumulative", accept=0.95),
    "(1 | mm(g, h))": Case(neighbours, "invest ~ value + (1 | mm(one, two))", theirs=several),
    "sigma ~ x": Case(
        lambda: of_statsmodels("engel", "income"), {"y": "foodexp ~ income", "sigma": "~ income"},
        theirs=["foodexp ~ income", "sigma ~ income"],
    ),
    "sigma ~ (1 | g)": Case(
        firms, {"y": "invest ~ value", "sigma": "~ 1 + (1 | firm)"}, theirs=["invest ~ value", "sigma ~ 1 + (1 | firm)"]
    ),
    "s(x)": Case(diabetes, "target ~ bp + s(bmi)", theirs=curve, accept=0.99),
    "gp(x)": Case(lambda: of_statsmodels("nile", "volume"), "volume ~ gp(year)", theirs=process),
    "mo(x)": Case(voters, "TVnews ~ age + mo(educ)", theirs=monotonic),
    "poly(x, 2)": Case(lambda: of_statsmodels("engel"), "foodexp ~ poly(income, 2)", theirs=polynomial),
    "mi(x)": Case(unknown, {"y": "target ~ mi(bmi) + bp", "bmi": "bmi | mi() ~ bp"}, theirs=imputed),
    "x:z, a:b": Case(marriages, "rate_marriage ~ age:religious + kids * age", "gaussian"),
    "weights": Case(crime, "share ~ poverty + single", "beta", ["weighted(share, weight) ~ poverty + single"],
                    {"weights": "weight"}),
}  # fmt: skip


# The other side


def in_pymc(law, numbers):
    """Name and arguments of a prior."""
    if law == "Gamma":
        return law, {"alpha": numbers[0], "beta": 1.0 / numbers[1]}
    names = {"StudentT": "nu mu sigma", "HalfStudentT": "nu sigma", "HalfCauchy": "beta", "Exponential": "scale"}
    names |= {"Normal": "mu sigma", "HalfNormal": "sigma"}
    return law, dict(zip(names[law].split(), numbers, strict=True))


def in_bambi(case, frame, priors):
    """A model of PyMC, and what its variables are here: name there -> (names here, sign, means of the columns)."""
    formulas = case.theirs or [case.formula]
    link = {"link": "probit"} if case.family == "probit" else {"link": "log"} if case.family in (
        "gamma", "hurdle_gamma", "inverse_gaussian"
    ) else {}  # fmt: skip
    frame = frame.copy()
    if case.family in ("cumulative", "sratio", "categorical"):
        frame[formulas[0].split()[0]] = pandas.Categorical(frame[formulas[0].split()[0]], ordered=case.family[0] != "c")
    model = bmb.Model(bmb.Formula(*formulas), frame, family=FAMILIES.get(case.family, case.family), **link)
    own_name = {}
    for name, there in CALLED.items():
        own_name[there.get(case.family) if isinstance(there, dict) else there] = name
    own_name["psi"] = "hu" if "hurdle" in case.family else "zi"
    given, found = {}, {}

    def prior(names, **more):
        laws = [in_pymc(*priors[name]) for name in names]
        numbers = {key: np.squeeze([one[1][key] for one in laws]) for key in laws[0][1]}
        numbers = {
            key: number.flat[0] if np.all(number == number.flat[0]) else number for key, number in numbers.items()
        }
        return bmb.Prior(laws[0][0], **numbers, **more)

    for parameter, component in model.components.items():
        own, first = own_name.get(parameter, parameter), parameter == model.family.likelihood.parent
        if not hasattr(component, "terms"):
            more, names = {}, [own]
            if own == "cuts":
                names = [name for name in priors if name.startswith("cut[")]
                if case.family == "cumulative":
                    more["transform"] = pm.distributions.transforms.ordered
                    more["initval"] = np.linspace(-1.0, 1.0, len(names))
            given[parameter] = prior(names[:1], **more)
            found[parameter] = names, 1.0, None
            continue
        target = given if first else given.setdefault(parameter, {})
        prefix, sign = "" if first else f"{own}: ", -1.0 if parameter == "psi" else 1.0
        for name in component.terms:
            there = name if first else f"{parameter}_{name}"
            x, bar, g = name.partition("|")
            if name.startswith("offset("):
                continue
            if bar:
                spread = f"{prefix}sd({g})" if x == "1" else f"{prefix}sd({x}|{g})"
                target[name] = bmb.Prior("Normal", mu=0.0, sigma=prior([spread]))
                found[f"{there}_sigma"], found[there] = ([spread], 1.0, None), ([prefix + name], sign, None)
            else:
                names = [one for one in priors if re.sub(r"\[[^]]*\]", "", one) == prefix + name]
                names = names or [one for one in priors if re.sub(r"^\w+: |\[[^]]*\]", "", one) == name]
                target[name] = prior(names)
                means = {}
                if name == "Intercept" and component.design.common is not None:
                    for other, values in component.common_terms.items():
                        means[other if first else f"{parameter}_{other}"] = np.atleast_1d(values.data.mean(0))
                found[there] = names, sign, means
    model.set_priors(given)
    model.build()
    return model.backend.model, found


def sampled(name, frame, priors, bases, draws):
    """By nutpie: draws by their names here, seconds, and how many draws diverged."""
    case, found = CASES[name], None
    if callable(case.theirs):
        response = re.split(r"[\s|]", case.formula if isinstance(case.formula, str) else case.formula["y"])[0]
        with pm.Model() as model:
            case.theirs(Model(frame, priors, bases), frame[response].to_numpy())
    else:
        model, found = in_bambi(case, frame, priors)
    compiled = nutpie.compile_pymc_model(model, var_names=None if found is None else list(found))
    options = {"chains": CHAINS, "cores": 2, "progress_bar": False, "save_warmup": False}
    spent = time.process_time()
    found_there = nutpie.sample(compiled, draws=draws, tune=draws, seed=1, target_accept=case.accept, **options)
    spent = time.process_time() - spent
    data, diverged = found_there.posterior, int(found_there.sample_stats.diverging.sum())
    values, result = {one.replace(";", ", "): data[one].values for one in data.data_vars}, {}
    if found is None:
        cuts = values.pop("cut", np.zeros((CHAINS, draws, 0)))
        return values | {f"cut[{k + 1}]": cuts[..., k] for k in range(cuts.shape[2])}, spent, diverged
    for there, (names, sign, means) in found.items():
        drawn = values[there]
        for other, mean in (means or {}).items():
            both = values[other].reshape(CHAINS, draws, len(mean), -1)
            drawn = drawn - np.einsum("cdkj,k->cdj", both, mean).reshape(drawn.shape)
        columns = sign * drawn.reshape(CHAINS, draws, -1)
        if len(names) == 1:
            result[names[0]] = columns[..., 0] if columns.shape[2] == 1 else columns
        else:
            result |= {own: columns[..., k] for k, own in enumerate(names)}
    return result, spent, diverged


def serve():
    """Answer what the other process asks, until it ends; what is printed goes to its errors."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while True:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = sampled(*asked)
        except Exception as error:  # noqa: BLE001 - whatever it is, that model has no figures
            answer = f"{type(error).__name__}: {str(error).strip()[:300]}"
        pickle.dump(answer, answers)
        answers.flush()


# This side


def ours(case, frame, draws):
    """Priors, bases of curves, draws by name, and seconds."""
    import pdmp

    options = {"family": case.family, "seed": 1, "progress": False, "chains": CHAINS, **case.options}
    given = {name: getattr(pdmp.models.priors, law)(*numbers) for name, (law, *numbers) in case.priors.items()}
    options["priors"] = given
    prepared = pdmp.regression(case.formula, frame, sample=False, **options)
    bases = {g.name: np.array(g.value) for _, g in prepared.group_columns if g.value.ndim > 1}
    priors = {name: (type(prior).__name__, astuple(prior)) for name, prior in prepared.priors.items()}
    pdmp.regression(case.formula, frame, gradients=200, **options)  # compiles
    spent = time.process_time()
    fit = pdmp.regression(case.formula, frame, ess=draws, **options)
    spent = time.process_time() - spent
    found = fit.run.natural(draws) if hasattr(fit.run, "natural") else fit.run.constrain(fit.run.draws(draws))
    return priors, bases, {name: np.asarray(values) for name, values in found.items()}, spent


def compared(one, other):
    """Of two dicts of draws: the largest difference of means and ratio of sds, their errors, least draws of both."""
    from pdmp import diagnostics

    worst, least = {"mean": (0.0, 0.0, ""), "sd": (1.0, 0.0, "")}, [np.inf, np.inf]
    for name in sorted({*one} & {*other}):
        both = [x.reshape(*x.shape[:2], -1) for x in (one[name], other[name])]
        if both[0].shape[2] != both[1].shape[2]:
            raise ValueError(f"{name}: {both[0].shape} and {both[1].shape}")
        means, sds = ([getattr(x, of)(axis=(0, 1)) for x in both] for of in ("mean", "std"))
        n = [np.asarray(diagnostics.ess(x)) for x in both]
        squares = [np.asarray(diagnostics.ess((x - m) ** 2)) for x, m in zip(both, means, strict=True)]
        kurtosis = [((x - m) ** 4).mean((0, 1)) / s**4 for x, m, s in zip(both, means, sds, strict=True)]
        least = [min(a, float(b.min())) for a, b in zip(least, n, strict=True)]
        off = np.abs(means[0] - means[1]) / sds[1]
        k = int(np.argmax(off))
        error = np.sqrt(1.0 / n[0][k] + 1.0 / n[1][k])
        if off[k] > worst["mean"][0]:
            worst["mean"] = float(off[k]), float(off[k] / error), name
        ratio = sds[0] / sds[1]
        k = int(np.argmax(np.abs(np.log(ratio))))
        error = np.sqrt(sum(0.25 * (w[k] - 1.0) / q[k] for w, q in zip(kurtosis, squares, strict=True)))
        if abs(np.log(ratio[k])) > abs(np.log(worst["sd"][0])):
            worst["sd"] = float(ratio[k]), float(abs(np.log(ratio[k])) / error), name
    return worst, least


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="the Python that has Bambi and nutpie")
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--draws", type=int, default=1_500, help="of each chain of nutpie; and effective ones here")
    asked = parser.parse_args()
    head = ("parameters", "means off", "", "sd ratio", "", "s here", "there")
    print(f"{'':34}", *(f"{text:>10}" for text in head))
    other = subprocess.Popen(
        [asked.peer, "-m", __spec__.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    for name in asked.only:
        case = CASES[name]
        frame = case.table()
        try:
            priors, bases, found, spent = ours(case, frame, asked.draws)
        except ValueError as error:
            print(f"{name:34}", error, flush=True)
            continue
        pickle.dump((name, frame, priors, bases, asked.draws), other.stdin)
        other.stdin.flush()
        answer = pickle.load(other.stdout)
        if isinstance(answer, str):
            print(f"{name:34}", answer, flush=True)
            continue
        theirs, seconds, diverged = answer
        missing = [f"without {one}" for one in priors if one not in theirs]
        missing += [f"{diverged} of {CHAINS * asked.draws} diverged"] if diverged else []
        worst, least = compared(found, theirs)
        size = sum(x[0, 0].size for x in (found[one] for one in {*found} & {*theirs}))
        numbers = [f"{size:10d}"]
        for what in ("mean", "sd"):
            numbers += [f"{worst[what][0]:10.3f}", f"({worst[what][1]:.1f})".rjust(10)]
        numbers += [f"{s * 400.0 / n:10.2f}" for s, n in zip((spent, seconds), least, strict=True)]
        print(f"{name:34}", *numbers, worst["mean"][2], worst["sd"][2], *missing, flush=True)
    other.stdin.close()
    other.wait()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 1:
        serve()
    else:
        main()
