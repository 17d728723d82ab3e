"""Formulas of the documentation of brms and Bambi, a table that has their columns, and the page of them.

    python -m tests.formulas.helpers_others

writes docs/choose/formulas_of_others.md anew.
"""

import contextlib
import io
import json
import pathlib
import warnings
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas

import pdmp
from pdmp.formulas import general
from pdmp.formulas.predictors import made
from pdmp.models.priors import Normal

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "choose" / "formulas_of_others.md"
ROWS = 120


class Example(NamedTuple):
    """What is typed here for a formula of theirs."""

    here: Any
    family: str = "gaussian"
    instead: tuple | None = None  #: where that is refused: a formula, and perhaps a family, that run
    there: str = ""  #: how it stands there, if it is not the same
    options: dict = {}


EPILEPSY = "count ~ zAge + zBase * Trt + (1 | patient)"
INHALER, RATING = "rating ~ period + carry + treat", "rating ~ treat + period + carry + (1 | subject)"
KIDNEY, FISH = "time | cens(censored) ~ age * sex + disease + (1 | patient)", "count ~ persons + child + camper"
HERDS = "incidence | trials(size) ~ period + (1 | herd)"
BRMS = [
    Example(EPILEPSY, "poisson"),
    Example(f"{EPILEPSY} + (1 | obs)", "poisson"),
    Example("count ~ Trt + (1 | gr(patient, by=Trt))", "poisson", ("count ~ Trt + (0 + Trt || patient)", "poisson")),
    Example("count | rate(t) ~ x", "negbinomial", ("count | rate(t) ~ x", "negative_binomial")),
    Example("count ~ x + offset(log(t))", "poisson"),
    Example("count | trunc(ub=50) ~ x", "poisson"),
    Example("seen | trunc(lb=1) ~ x", "poisson"),
    Example(FISH, "zero_inflated_poisson"),
    Example({"count": FISH, "zi": "~ child"}, "zero_inflated_poisson"),
    Example(FISH, "geometric"),
    Example(INHALER, "sratio"),
    Example(INHALER, "cratio", (INHALER, "sratio")),
    Example("rating ~ period + cs(treat)", "sratio", ("rating ~ period + treat", "sratio")),
    Example("rating | thres(3) ~ treat", "acat", ("rating ~ treat", "acat")),
    Example(RATING, "cumulative"),
    Example({"rating": "rating ~ belief", "disc": "~ 0 + belief"}, "cumulative_probit",
            ("rating ~ belief", "cumulative_probit"), 'bf(rating ~ belief, disc ~ 0 + belief), cumulative("probit")'),
    Example(KIDNEY, "weibull"),
    Example("time | cens(censored) ~ age + sex + disease + (1 + age | patient)", "lognormal"),
    Example("time | cens(censored) ~ age", "cox", ("time | cens(censored) ~ age", "weibull")),
    Example("Surv(time, event) ~ age", "exponential", ("time | cens(censored) ~ age", "exponential")),
    Example("time | trunc(lb=0.001) ~ x", "lognormal"),
    Example(HERDS, "binomial"),
    Example("incidence | vint(size) ~ period", "beta_binomial", ("incidence | trials(size) ~ period", "beta_binomial"),
            'incidence | vint(size) ~ period, custom_family("beta_binomial2", …)'),
    Example({"symptom_post": "symptom_post ~ group", "sigma": "~ group"}),
    Example({"y": "y ~ x", "sigma": "~ 0 + x"}),
    Example("y ~ 0 + Intercept + x", instead=("y ~ x",)),
    Example("y ~ x + I(x^2)"),
    Example("y ~ (x + z)^2"),
    Example("y | weights(w1) ~ x"),
    Example({"y": "y ~ s(x1) + s(x2) + (1 | fac)", "sigma": "~ s(x0) + (1 | fac)"}),
    Example({"rentsqm": "rentsqm ~ t2(area, yearc) + (1 | district)", "sigma": "~ t2(area, yearc) + (1 | district)"}),
    Example("y ~ s(x1, by=fac) + fac"),
    Example("y ~ gp(x1)"),
    Example("y ~ gp(x1, x2)"),
    Example("y ~ gp(x1, x2, iso=FALSE)"),
    Example("y ~ gp(x1, by=fac)"),
    Example("ls ~ mo(income)"),
    Example("ls ~ mo(income) + age + (1 | city)"),
    Example("ls ~ mo(income) * age"),
    Example({"bmi": "bmi ~ age * mi(chl)", "chl": "chl | mi() ~ age"},
            there="bf(bmi ~ age * mi(chl)) + bf(chl | mi() ~ age)"),
    Example("bmi | mi() ~ age", instead=("bmi ~ age",)),
    Example("y ~ me(x, sdx)", instead=("y ~ x",)),
    Example("y ~ x + ar(p=1)", instead=("y ~ x + before",)),
    Example("yi | se(sei) ~ 1 + (1 | study)"),
    Example("yi | se(sei, sigma=TRUE) ~ 1 + (1 | study)"),
    Example("phen ~ cofactor + (1 | gr(phylo, cov=A))", instead=("phen ~ cofactor + (1 | phylo)",)),
    Example("y ~ x + (1 | mm(s1, s2))"),
    Example("y ~ x + (1 | mm(s1, s2, weights=cbind(w1, w2)))"),
    Example("mvbind(tarsus, back) ~ sex + (1 | dam)", instead=("tarsus ~ sex + (1 | dam)",)),
    Example("tarsus ~ sex + (1 | p | dam)"),
    Example({"y": "y ~ x + (1 + x |p| fac)", "sigma": "~ (1 |p| fac)"}),
    Example({"y": "y ~ a1 - a2^x", "a1 + a2": "~ 1"}, there="bf(y ~ a1 - a2^x, a1 + a2 ~ 1, nl = TRUE)",
            options={"priors": {"a1": Normal(1.0, 2.0), "a2": Normal(0.0, 1.0)}, "link": {"a2": "log"}}),
    Example({"y": "y ~ x", "mu2": "~ x"}, "mixture_gaussian", there="bf(y ~ x, mu2 ~ x), mixture(gaussian, gaussian)"),
    Example("rt | dec(correct) ~ x", "wiener", ("rt ~ x", "lognormal")),
    Example("rt ~ x + (x | subject)", "shifted_lognormal", ("rt ~ x + (x | subject)", "lognormal")),
    Example("rt ~ x", "exgaussian"),
    Example("y ~ x", "asym_laplace", ("y ~ x", "student_t")),
    Example("rt ~ x", "hurdle_gamma"),
    Example("share ~ x", "zero_inflated_beta"),
    Example("way ~ x + z", "categorical"),
    Example("cbind(n1, n2, n3) ~ x", "multinomial"),
    Example("r2 ~ 1 + (1 | item) + (1 | subject)", "bernoulli"),
    Example("r2 ~ x", "bernoulli", None, 'r2 ~ x, bernoulli("cloglog")', {"link": "cloglog"}),
    Example("angle ~ z", "von_mises"),
]  # fmt: skip
BAMBI = [
    Example("Reaction ~ 1 + Days + (1 + Days | subject)"),
    Example("log_radon ~ 0 + county + floor"),
    Example("log_radon ~ 1 + floor * log_u + (1 + floor | county)"),
    Example("vote['clinton'] ~ group + group:age", "bernoulli"),
    Example("p(incidence, size) ~ x", "binomial"),
    Example("c(n1, n2, n3) ~ x", "multinomial", ("cbind(n1, n2, n3) ~ x", "multinomial")),
    Example("y ~ bs(x1, df=6, intercept=True)"),
    Example("y ~ hsgp(x, m=10, c=2)", instead=("y ~ gp(x, k=10, c=2)",)),
    Example("y ~ hsgp(x, by=group, m=10, c=2)", instead=("y ~ gp(x, by=group, k=10, c=2)",)),
    Example("censored(time, censored) ~ age", "weibull"),
    Example("truncated(y, lb=-9) ~ x"),
    Example("constrained(time, lb=0) ~ x"),
    Example("weighted(y, w1) ~ x"),
    Example({"count": "count ~ livebait + child", "psi": "~ child"}, "zero_inflated_poisson",
            ({"count": "count ~ livebait + child", "zi": "~ child"}, "zero_inflated_poisson")),
    Example("claim ~ C(income) + sex", "wald", ("claim ~ C(income) + sex", "inverse_gaussian")),
    Example("np.log(time) ~ x"),
    Example("scale(y) ~ scale(x)"),
    Example("y ~ poly(x, 4)"),
    Example("y ~ center(x) + {x ** 2}"),
    Example("count ~ offset(np.log(t))", "negativebinomial", ("count ~ offset(np.log(t))", "negative_binomial")),
    Example("bmi ~ bs(age, df=4)", "asymmetriclaplace", ("bmi ~ bs(age, df=4)", "student_t")),
    Example("y ~ x", "t", ("y ~ x", "student_t")),
    Example("y ~ x + (x | s1:s2)"),
    Example("y ~ x + (1 | s1/s2)"),
    Example("claim ~ x", "hurdle_lognormal"),
    Example("p(incidence, size) ~ x", "zero_inflated_binomial"),
    Example("rating ~ 0 + x", "sratio", ("rating ~ x", "sratio")),
]  # fmt: skip


def table():
    """Columns of all of them, of no meaning."""
    rng = np.random.default_rng(0)
    numbers = "zAge zBase age x x0 x1 x2 z y area yearc chl symptom_post rentsqm ls bmi yi phen cofactor tarsus back"
    found = {name: rng.standard_normal(ROWS) for name in f"{numbers} before loss dev Reaction log_radon log_u".split()}
    counts = "count n1 n2 n3 persons child Days livebait"
    found |= {name: rng.integers(0, 8, ROWS) for name in counts.split()}
    found |= {"seen": found["count"] + 1}
    found |= {name: rng.gamma(2.0, 1.0, ROWS) + 0.01 for name in "time t w1 w2 sei sdx rt claim".split()}
    labels = "carry treat camper censored event r2 correct floor"
    found |= {name: rng.integers(0, 2, ROWS) for name in labels.split()}
    found |= {name: rng.choice(list("abc"), ROWS) for name in "disease fac group way period belief".split()}
    found |= {name: rng.choice(["f", "m"], ROWS) for name in ("sex", "Trt")}
    found |= {"vote": rng.choice(["clinton", "trump"], ROWS)}
    groups = "patient subject herd city district county study phylo dam item s1 s2"
    found |= {name: np.char.add("g", rng.integers(0, 10, ROWS).astype(str)) for name in groups.split()}
    found |= {"obs": np.arange(ROWS), "rating": rng.integers(0, 4, ROWS), "income": rng.integers(0, 5, ROWS)}
    found["chl"][::7] = np.nan
    size = rng.integers(4, 12, ROWS)
    found |= {"size": size, "incidence": rng.binomial(size, 0.3), "share": rng.beta(2.0, 2.0, ROWS)}
    return pandas.DataFrame(found | {"angle": rng.vonmises(0.0, 1.0, ROWS)})


def error_of(formula, data, family="gaussian", **options):
    """What is said where it is refused, in one line; "" where it is ready to be sampled.

    The coordinates in which it would be sampled are not looked for.
    """
    plain = mock.patch.object(general, "made_for_sampling", lambda predictors, y, data, common: made(*common))
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), plain:
        warnings.simplefilter("ignore")
        try:
            pdmp.regression(formula, data, family, sample=False, **options)
        except (ValueError, TypeError) as error:
            return " ".join(str(error).split())
    return ""


def cell(text):
    return "`" + text.replace("|", "\\|") + "`"


def written(formula, family="gaussian", options=()):
    """A call as the page has it, without the table."""
    named = {**({} if family == "gaussian" else {"family": family}), **dict(options)}
    text = json.dumps(formula) if isinstance(formula, dict) else f'"{formula}"'
    return cell(
        ", ".join([text, *(f"{name}={repr(value).replace(chr(39), chr(34))}" for name, value in named.items())])
    )


def as_there(one, of_brms):
    """How their documentation has it."""
    sides = [one.here] if isinstance(one.here, str) else list(one.here.values())
    if not isinstance(one.here, str):
        sides[1:] = [f"{name} {side}" for name, side in list(one.here.items())[1:]]
    if not of_brms:
        return ", ".join([*sides, *([] if one.family == "gaussian" else [f'family="{one.family}"'])])
    text = f"bf({', '.join(sides)})" if len(sides) > 1 else sides[0]
    return text if one.family == "gaussian" else f"{text}, {one.family}()"


def rows(examples, data):
    """Of a table of the page."""
    for one in examples:
        says = error_of(one.here, data, one.family, **one.options)
        call = written(one.here, one.family, one.options) if not says else written(*one.instead)
        yield f"| {cell(one.there or as_there(one, examples is BRMS))} | {call} | {says.replace('|', chr(92) + '|')} |"


HEAD = """# Formulas of brms and Bambi

The tables have {n} formulas of their documentation. The second column has the arguments of `pdmp.regression`, without
the table. The third has the error if you type the formula and the family as in the first. A test runs all of them, on a
table with columns of the same kinds, and compares this page with what it finds.

"""


def page():
    """All of it, with what the program says."""
    data, text = table(), HEAD.format(n=len(BRMS) + len(BAMBI))
    parts = [
        "\n".join(
            [f"## {name}\n", "| there | here | error for what is there |", "|---|---|---|", *rows(examples, data)]
        )
        for name, examples in (("brms", BRMS), ("Bambi", BAMBI))
    ]
    return text + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
