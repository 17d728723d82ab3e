"""What a fit says: tables, predictions, effects, hypotheses, checks, cross-validation, pictures and further rows."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
from matplotlib import pyplot

import pdmp
from pdmp.formulas import kept, loo, pareto_smoothing, predictive_checks
from pdmp.formulas.estimates import Estimates
from pdmp.models.priors import Normal
from tests.answers import case, once
from tests.answers.formulas import few_steps, prepared, said, table
from tests.recorded import moved

CHAINS, DRAWS = 3, 60


class Near:
    """A run whose draws were made up, around where a chain would start, of chains that differ."""

    store, records = "skeleton", [SimpleNamespace(length=1.0)] * CHAINS
    chains, events = CHAINS, np.array([DRAWS, DRAWS + 5, DRAWS + 9])

    def __init__(self, model):
        rng, self.model, self.dim = np.random.default_rng(3), model, model.dim
        noise = rng.standard_normal((CHAINS, 1_400, model.dim)) + 0.4 * np.cos(np.arange(1_400.0))[:, None]
        self.x = model.initial + 0.1 + np.array([0.08, 0.15, 0.3])[:, None, None] * noise

    def draws(self, n):
        return self.x[:, :n]

    def constrain(self, x):
        return self.model.constrain(x)

    def __getitem__(self, name):
        return self.constrain(self.x[:, :5])[name]

    def summary(self):
        return SimpleNamespace(warnings=["of what the run warns: and why"], said={"of what the run warns: and why"})


def fitted(formula, family="gaussian", data=None, **options):
    """A fit whose run is `Near`."""
    fit = prepared(formula, family, data, **options)._sampled.args[0]
    fit.run = Near(fit.model)
    return fit


#: Fits of every kind.
FITS = {
    "gaussian": ("y ~ x * a + log(z) + t + (1 | g)", "gaussian", {"weights": "e"}),
    "slopes": ("y ~ x + k + (x | g)", "gaussian", {"offset": "u"}),
    "students": ("y ~ x + a", "student_t", {"offset": "u"}),
    "labels": ("word ~ x + a + (1 | h)", "bernoulli", {}),
    "probit": ("b ~ z", "probit", {}),
    "counts": ("c ~ x + a + offset(v)", "poisson", {"exposure": "e", "offset": "u"}),
    "overdispersed": ("c ~ x + (z || g) + (1 | h)", "negative_binomial", {"exposure": "e", "weights": "z"}),
    "two formulas": ({"y": "pos ~ x * a + (1 + z | g)", "shape": "~ z + t + (1 | h)"}, "gamma", {"weights": "e"}),
    "inflated": ({"y": "c ~ x + (1 | g)", "zi": "~ z"}, "zero_inflated_poisson", {"exposure": "e"}),
    "constant": ("c ~ x", "zero_inflated_poisson", {}),
    "ordered": ("level ~ x + a + (1 | g)", "cumulative", {"offset": "u"}),
    "stages": ("n2 ~ x", "sratio", {}),
    "adjacent": ("k ~ x + z", "acat", {}),
    "categories": ("cat ~ x + a + (1 | h)", "categorical", {}),
    "counts of categories": ("cbind(c, n2, n3) ~ x", "multinomial", {}),
    "trials": ("c | trials(size) ~ x + a", "beta_binomial", {}),
    "twelve trials": ("c | trials(12) ~ x", "binomial", {"offset": "u"}),
    "times": ("pos | cens(cens, later) ~ x + a", "weibull", {}),
    "cut off": ("y | trunc(lb=-9, ub=30) ~ x", "gaussian", {}),
    "cut off at columns": ("pos | trunc(lb=low) ~ x", "lognormal", {}),
    "errors": ("y | se(e, sigma=True) ~ x + (1 | h)", "gaussian", {}),
    "curves": ("y ~ s(x, k=4) + mo(level) + gp(z, k=4)", "gaussian", {}),
    "curves by levels": ("c ~ s(x, by=a, k=4) + s(z, by=e, k=4) + a", "poisson", {}),
    "members": ("y ~ x + (1 + z | mm(h, h2, weights=cbind(v, e)))", "gaussian", {}),
    "skewed": ("y ~ x", "skew_normal", {}),
    "angles": ("angle ~ x", "von_mises", {}),
    "shares": ({"y": "share ~ x", "phi": "~ z"}, "beta", {"link": "probit"}),
    "imputed": ({"y": "y ~ mi(gap) + z", "gap": "gap | mi() ~ x"}, "gaussian", {}),
    "scores": ("b ~ x", "item_response", {}),
    "spread": ("pos ~ x", "inverse_gaussian", {}),
}
FITS["counts cut off"] = ("c | trunc(ub=60) ~ x + a", "poisson", {"exposure": "e"})
FITS["scores"] = ({"y": "b ~ x", "discrimination": "~ z"}, "item_response", {})
FITS["across formulas"] = ({"y": "pos ~ x + (1 + z |q| g)", "shape": "~ t + (1 |q| g)"}, "gamma", {"weights": "e"})


def quietly(function, *args, **options):
    """What a function returns; a case that is not the first to ask for it would not hear what it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


@once
def fit_of(name):
    """One of `FITS`."""
    formula, family, options = FITS[name]
    data = table().assign(low=0.001 + 0.0001 * table()["v"])
    return quietly(fitted, formula, family, data, **options)


@once
def rows():
    """Rows of another table, in which some groups are new."""
    data = table().iloc[[4, 0, 9, 2, 17]].reset_index(drop=True).assign(low=0.2)
    data["x"] += [0.3, -0.2, 0.1, 0.4, 0.0]
    return data


def with_new_groups():
    """The same; two groups of each grouping are new, one of them twice."""
    return rows().assign(
        g=[2, 77, 5, 77, 91], h=["n1", "new", "n0", "new", "other"], h2=["n2", "n1", "newer", "new", "n4"]
    )


def of(name, function, *args, **options):
    """A case of what a function returns."""
    case(lambda: function(*args, **options), name)


def text_of(found):
    """A printed table as its cells, and what stands below it."""
    return [line.split() if len(line.split("  ")) > 2 else line for line in repr(found).splitlines()]


def estimates(found):
    """All of a table of estimates."""
    return [
        found.to_dataframe(),
        text_of(found),
        found.note.split(),
        found.draws.shape,
        found._repr_html_().split("<")[-4:],
    ]


# -- summaries, tables of draws, and predictions ----------------------------------------------------------------------


def rounded(summary):
    """Its data frame; of two draws that are as far from their median rounding decides which is the first."""
    return summary.to_dataframe().assign(rhat=lambda d: np.floor(np.log2(d.rhat)))


def tables(fit):
    """Summaries and draws."""
    one, other = fit.summary(), fit.summary(effects=True)
    frame = fit.to_dataframe(7, effects=True)
    weights = {name: 0.5 + k for k, name in enumerate(fit.intercepts + list(fit.priors)[:2])}
    return {
        "summary": rounded(one),
        "effects": rounded(other),
        "note": [said(line, fit) for line in one.note.splitlines()],
        "warnings": [one.warnings, one.said],
        "draws": [list(fit.to_dataframe(3)), frame],
        "some": fit.some_draws(5),
        "uncentred": fit.uncentred(weights),
        "priors": {name: [fit.prior_name(name), fit.knows_prior(name)] for name in fit.priors},
        "row weights": fit.row_weights,
        "observed": fit.observed,
        "item": fit[list(fit.priors)[-1]],
        "categories": list(map(str, fit.categories)),
        "rows": fit.n_rows,
        "back": fit.unconstrained(fit.model.constrain(fit.some_draws(4))) - fit.some_draws(4) + 1.0,
    }


def predictions(fit):
    """Of the rows of the fit, of a table, and of groups that are new."""
    kinds = ["link", "mean", "response"] if not fit.family.is_nominal else ["response"]
    kinds = [] if fit.family.name == "multinomial" else kinds
    kinds += ["probability"] if fit.categories else []
    if any(one.imputes is not None for one in getattr(getattr(fit, "coding", None), "predictors", ())):
        kinds, new = ["link", "mean", "response"], rows().assign(gap=[1.0, 2.0, 0.5, -1.0, 0.0])
    else:
        new = rows()
    found = {}
    for kind in kinds:
        found[kind] = [fit.predict(draws=7, kind=kind, seed=1), fit.predict(new, draws=7, kind=kind, seed=1)]
        for effects in ("zero", "draw") if fit.groups else ():
            found[f"{kind} {effects}"] = fit.predict(new, draws=5, kind=kind, effects=effects, seed=2)
        for unseen in ("zero", "draw") if any(not g.name == g.grouping for g in fit.groups) else ():
            found[f"{kind} {unseen} of new groups"] = fit.predict(
                with_new_groups(), draws=5, kind=kind, unseen=unseen, seed=3
            )
    if not fit.family.is_nominal:
        found["default"] = fit.predict(new, unseen="zero").mean(axis=0)
    chosen = np.array([7, 2, 19])
    found["some rows"] = [
        fit.predicted(fit.some_draws(4), None, kinds[-1], "error", np.random.default_rng(4), rows=chosen)
    ]
    found["densities"] = fit.log_likelihoods(fit.some_draws(6), chosen)
    return found


for name in FITS:
    if name not in ("probit", "skewed", "angles", "spread", "twelve trials", "cut off", "students"):
        case(lambda name=name: tables(fit_of(name)), f"tables of {name}")
    case(lambda name=name: predictions(fit_of(name)), f"predictions of {name}")


def so_many_draws(n):
    """As many are taken of each chain as ArviZ is given."""
    return mock.patch.object(loo, "choose_draws", lambda run: (n, 1.0))


def validated(fit):
    """Leave-one-out cross-validation of all rows and of some."""
    found = {}
    asked = {"all": {}, "some": {"rows": 8, "draws": 9, "seed": 4}}
    for key, given in asked.items():
        with so_many_draws(12):
            one = fit.loo(**given)
        numbers = [one.elpd_loo, one.se, one.subsampling_se, one.p_loo, one.good_k, one.bad, one.n_data_points]
        found[key] = [
            numbers,
            one.n_samples,
            one.loo_i,
            one.pareto_k,
            one.rows,
            one.near,
            one.name.split(),
            text_of(one),
        ]
    return found


for name in ("gaussian", "counts", "overdispersed", "two formulas", "ordered", "categories", "trials", "times"):
    case(lambda name=name: validated(fit_of(name)), f"loo of {name}")
for name in ("cut off", "errors", "curves", "members", "shares", "imputed"):
    case(lambda name=name: validated(fit_of(name)), f"loo of {name}")


# -- effects, averages, slopes ----------------------------------------------------------------------------------------

EFFECTS = {
    "gaussian": [
        {"term": "x"}, {"term": "a"}, {"term": "x:a", "probability": 0.6}, {"term": ["a", "x"], "scale": "link"},
        {"term": "z", "at": {"x": 1.0, "a": "s", "z": [1.0, 2.0, 5.0]}},
        {"term": "x", "effects": "draw", "seed": 1, "draws": 90}, {"term": "g", "effects": "fitted"}, {"term": "t"},
        {"term": "x:z", "effects": "fitted", "at": {"g": 5, "t": True}},
    ],
    "slopes": [{"term": "k:x"}, {"term": "x", "effects": "draw", "seed": 4}, {"term": "x", "at": {"u": 2.0, "k": 3}}],
    "labels": [{"term": "x:a"}, {"term": "a", "scale": "link", "draws": 50}, {"term": "h:a", "effects": "fitted"}],
    "counts": [{"term": "x", "at": {"e": 10.0}}, {"term": "a"}, {"term": "e"}],
    "two formulas": [{"term": "z:t"}, {"term": "x", "effects": "draw", "seed": 2}],
    "ordered": [{"term": "a"}, {"term": "x", "scale": "probability", "at": {"x": [0.0, 4.0]}}],
    "categories": [{"term": "a"}, {"term": "x", "effects": "draw", "seed": 1, "at": {"x": (1.0, 2.0)}}],
    "counts of categories": [{"term": "x", "at": {"x": np.array([1.0, 3.0])}}],
    "trials": [{"term": "a"}, {"term": "size"}, {"term": "a", "at": {"size": 20}}],
    "cut off at columns": [{"term": "x", "at": {"low": 0.5}}],
    "curves": [{"term": "x"}, {"term": "level"}, {"term": "z:level", "effects": "draw", "seed": 1}],
    "curves by levels": [{"term": "x:a"}, {"term": "z:e"}],
    "imputed": [{"term": "gap"}, {"term": "z:gap"}],
    "shares": [{"term": "z"}],
}  # fmt: skip
for name, asked in EFFECTS.items():
    for given in asked:

        def effect(name=name, given=given):
            found = fit_of(name).conditional_effects(**given)
            return [*estimates(found), found.names, found.label.split()]

        case(effect, f"effects of {name} {given}")

MEANS = {
    "gaussian": [
        {"column": "a"}, {"column": "a", "by": "t", "scale": "link", "probability": 0.5},
        {"column": "t", "effects": "zero"}, {"column": "x", "at": {"x": [0.0, 1.5, 4.0], "z": 2.0}},
        {"column": "a", "effects": "draw", "seed": 3, "draws": 60},
        {"column": "a", "data": "rows", "by": "t"}, {"column": "g"},
        {"column": "a", "at": {"a": ["s", "q"], "g": 8}}, {"column": "a", "by": "x", "at": {"x": [1.0, 2.0]}},
    ],
    "slopes": [{"column": "k", "at": {"u": 0.5}}],
    "counts": [{"column": "a", "at": {"e": 1.0}}, {"column": "a", "scale": "link"}],
    "two formulas": [{"column": "a", "by": "t"}, {"column": "a", "effects": "draw", "seed": 1}],
    "ordered": [{"column": "a"}, {"column": "a", "scale": "link", "effects": "zero"}],
    "trials": [{"column": "a"}],
}  # fmt: skip


def averaged(name, method, **given):
    """Means, contrasts or slopes."""
    given = {key: rows() if isinstance(value, str) and value == "rows" else value for key, value in given.items()}
    return estimates(getattr(fit_of(name), method)(**given))


for name, asked in MEANS.items():
    for given in asked:
        of(f"means of {name} {given}", averaged, name, "marginal_means", **given)
        of(f"contrasts of {name} {given}", averaged, name, "contrasts", **given)
        of(f"ratios of {name} {given}", averaged, name, "contrasts", compare="ratio", **given)
SLOPES = {
    "gaussian": [
        {"column": "x"}, {"column": "z", "by": "a"}, {"column": "x", "by": "a", "at": {"a": ["r", "q"], "x": 2.0}},
        {"column": "x", "data": "rows", "probability": 0.5}, {"column": "x", "effects": "zero", "scale": "link"},
        {"column": "z", "effects": "draw", "seed": 1, "draws": 60}, {"column": "z", "at": {"z": 40.0}},
    ],
    "counts": [{"column": "x"}, {"column": "e", "by": "a"}, {"column": "x", "scale": "link"}],
    "slopes": [{"column": "x", "effects": "draw", "seed": 5}, {"column": "k"}],
    "two formulas": [{"column": "z", "by": "t"}],
    "curves": [{"column": "x", "by": "level"}, {"column": "z"}],
    "labels": [{"column": "x", "by": "h"}],
}  # fmt: skip
for name, asked in SLOPES.items():
    for given in asked:
        of(f"slopes of {name} {given}", averaged, name, "slopes", **given)


# -- hypotheses -------------------------------------------------------------------------------------------------------

HYPOTHESES = {
    "gaussian": [
        *("x > 0", "x < 0.1", "x <= `a[s]`", "x * 2 - a[r] / 3 > -(a[s] ** 2) + 1", "1|g[5] > 1|g[2]"),
        *("`1|g[8]` < sd(g)", "x = 0", "x - 2 * a[s] = 0.3", "Intercept == 0", "sigma = 1.6"),
        *("2 * sd(g) = 1.7", "x / 4 = a[r] - a[s] + 1", "x = 900", "Intercept - 3 * x = 0", "x:a[r] > log(z)"),
    ],
    "two formulas": ["shape: z > 0", "`shape: z` = 0", "`shape: Intercept` = 0.5", "cor(1, z|g) > 0"],
    "ordered": ["cut[2] > cut[1]", "x = 0", "cut[2] - cut[1] > 0.5"],
    "constant": ["zi > 0.2", "x = 0.1"],
    "skewed": ["alpha = 0", "sigma > alpha"],
    "curves": ["s(x).x > 0", "sd(s(x)) < sd(gp(z))", "length(gp(z)) = 1", "mo(level) = 0"],
    "categories": ["`tram: x` > `walk: x`", "`walk: Intercept` > 0"],
    "overdispersed": ["alpha = 1", "sd(z|g) > sd(h)"],
    "across formulas": ["cor(1, shape: 1|g) > cor(1, z|g)", "`cor(z, shape: 1|g)` < 0.2", "shape: 1|g[5] > 0"],
}  # fmt: skip
for name, texts in HYPOTHESES.items():
    case(
        lambda name=name, texts=texts: estimates(fit_of(name).hypothesis(*texts, draws=600, probability=0.8)),
        f"hypotheses of {name}",
    )
    case(lambda name=name, texts=texts: estimates(fit_of(name).hypothesis(texts[0])), f"a hypothesis of {name}")


# -- cross-validation -------------------------------------------------------------------------------------------------

COMPARED = {
    "gaussian": ("y ~ x + (1 | g)", "student_t", {"weights": "e"}), "counts": ("c ~ x", "negative_binomial", {}),
    "two formulas": ("pos ~ x", "weibull", {"weights": "e"}), "ordered": ("level ~ z", "acat", {}),
}  # fmt: skip


def compared(name):
    """Two fits of the same rows, of all and of some."""
    formula, family, options = COMPARED[name]
    one, other, found = fit_of(name), fitted(formula, family, **options), []
    for given in ({}, {"rows": 9, "draws": 10, "seed": 2}):
        with so_many_draws(13):
            both = one.compare(other, **given)
        found.append(
            [both.elpd_difference, both.se, both.subsampling_se, both.other.elpd_loo, both.one.rows, text_of(both)]
        )
    return found


for name in COMPARED:
    case(lambda name=name: compared(name), f"compared with {name}")


@case
def cross_validation_of_many_rows():
    """Of more rows than all are taken of, and of one fit with more chains than the other."""
    with so_many_draws(45), mock.patch.multiple(loo, NUMBERS=2_600, ROWS=14, LEAST_DRAWS=30, AT_ONCE=700):
        one = fit_of("gaussian").loo(seed=3)
        other = fit_of("students").loo(rows=10)
        return [
            [each.elpd_loo, each.se, each.p_loo, each.n_samples, each.rows, each.near, text_of(each)]
            for each in (one, other)
        ]


@case
def smoothed_weights():
    """Of few and many draws, tied weights, an efficiency and lost ones."""
    rng = np.random.default_rng(4)
    values = moved(rng.standard_normal((400, 5)) * [0.1, 0.6, 1.5, 3.0, 0.4])
    values[:, 4] = np.where(np.arange(400) < 300, -1.0, values[:, 4])
    values[3:, 3] -= 800.0
    with mock.patch.object(pareto_smoothing, "NUMBERS", 4_000):
        return [
            pareto_smoothing.loo_densities(part, efficiency)
            for part in (values, values[:90])
            for efficiency in (1.0, 0.4)
        ]


# -- checks -----------------------------------------------------------------------------------------------------------


def share_above(y):
    """A statistic of one's own."""
    return np.mean(y > 1.0) + 0.1 * y[2]


CHECKS = {
    "gaussian": [{}, {"kind": "groups", "by": "a"}, {"by": "g", "probability": 0.5}, {"kind": "statistic"}, {"by": "t"}]
    + [
        {"kind": "statistic", "statistic": one, "draws": 60}
        for one in ("sd", "median", "min", "max", "zeros", share_above)
    ],
    "counts": [
        {},
        {"kind": "density", "draws": 70},
        {"kind": "rootogram", "probability": 0.5},
        {"kind": "statistic", "statistic": "zeros"},
    ],
    "ordered": [{}, {"by": "a"}],
    "two formulas": [{}, {"by": "h", "draws": 40}, {"kind": "statistic", "statistic": "max"}],
    "labels": [{"kind": "statistic", "statistic": "mean"}, {}],
    "trials": [{}],
    "angles": [{"kind": "density"}],
}


def drawn(ax):
    """What a picture shows: its words, lines, bars, bands and ticks."""
    legend = ax.get_legend()
    return {
        "words": [ax.get_xlabel().split(), ax.get_ylabel().split(), ax.get_title(loc="left").split(), ax.get_title()],
        "lines": [[line.get_label().split(), line.get_color(), *line.get_data()] for line in ax.lines],
        "bars": [[bar.get_x(), bar.get_width(), bar.get_y(), bar.get_height()] for bar in ax.patches],
        "bands": [[path.vertices for path in part.get_paths()] for part in ax.collections],
        "ticks": [[label.get_text(), *label.get_position()] for label in ax.get_xticklabels()]
        if ax.get_xticks().size < 13
        else [],
        "legend": []
        if legend is None
        else [legend.get_title().get_text(), *(one.get_text().split() for one in legend.texts)],
        "limits": [*ax.get_xlim(), *ax.get_ylim()],
    }


def pictured(found):
    """A picture on axes of its own, and on those that are given."""
    ax = pyplot.figure(figsize=(5.0, 3.0)).add_subplot()
    assert found.plot(ax) is ax
    shown = drawn(ax)
    pyplot.close(ax.figure)
    return shown


def checked(name, given):
    """Numbers and a picture of a check."""
    found = fit_of(name).pp_check(**given, seed=2)
    words = [found.kind, found.name, found.words, found.note.split(), found.value, found.p_value, found.probability]
    return [
        words,
        found.to_dataframe(),
        found.observed,
        found.replicated.sum(axis=1),
        found.groups,
        pictured(found),
        text_of(found)[:3],
    ]


for name, asked in CHECKS.items():
    for given in asked:
        shown = {key: getattr(value, "__name__", value) for key, value in given.items()}
        case(lambda name=name, given=given: checked(name, given), f"check of {name} {shown}")


@case
def checks_of_some_rows():
    """Where rows are many."""
    with mock.patch.object(kept, "ROWS", 12), mock.patch.multiple(predictive_checks, ROWS=9, NUMBERS=700):
        fit = fitted("y ~ x + a")
        found = [
            fit.pp_check(draws=60, seed=1),
            fit.pp_check(by="a", draws=60, seed=1),
            fit.pp_check("statistic", draws=200, seed=1),
        ]
        return [
            [one.observed, one.replicated.sum(axis=1), one.to_dataframe(), one.note, pictured(one)] for one in found
        ]


PICTURES = {"gaussian": ["x", "a", "x:a", "t:x"], "ordered": ["x"], "categories": ["a"]}
for name, terms in PICTURES.items():
    for term in terms:
        options = {"scale": "probability"} if name == "ordered" else {}
        case(
            lambda name=name, term=term, options=options: pictured(
                fit_of(name).conditional_effects(term, draws=40, **options)
            ),
            f"picture of {name} {term}",
        )


@case
def picture_of_parameters():
    found = {}
    for name in ("gaussian", "two formulas"):
        figure = fit_of(name).plot()
        labels = [[label.get_text(), *label.get_position()] for label in figure.axes[0].get_yticklabels()]
        found[name] = [drawn(figure.axes[0]), labels, figure.axes[0].get_title().split()]
        pyplot.close(figure)
    return found


@case
def long_tables():
    """More rows than are printed; and columns of several kinds."""
    draws = moved(np.random.default_rng(1).standard_normal((30, 70)))
    found = Estimates(
        {"a": np.arange(70), "b": [f"v{k}" for k in range(70)]}, draws, 0.7, {"w": draws[0]}, "a note of it"
    )
    return [*estimates(found), len(found), found._repr_html_().count("<tr>")]


# -- before sampling --------------------------------------------------------------------------------------------------

BEFORE = (
    "gaussian",
    "labels",
    "overdispersed",
    "two formulas",
    "constant",
    "ordered",
    "categories",
    "curves",
    "members",
)
BEFORE += ("times", "errors", "skewed")


def before(name):
    """Draws of the prior, and what they expect."""
    formula, family, options = FITS[name]
    found = prepared(formula, family, **options)
    natural = found.run.natural(6)
    kind = "response" if found.family.is_nominal or found.family.mean is None else "mean"
    seen = "censored" not in found.beside  # else drawn responses are not compared
    one = found.prior_predictive("statistic", draws=9, seed=1) if seen else None
    data = found.to_arviz(5, seed=2)
    return {
        "natural": natural,
        "draws": [found.run.draws(4), found.run.diagnostic_draws()[:, :3], found.run.chains],
        "predicted": found.predict(rows(), kind=kind, draws=6, seed=1, unseen="zero"),
        "check": [one.observed, one.replicated, one.values, one.p_value] if seen else None,
        "arviz": {
            group: {k: v.values for k, v in data[group].items()}
            for group in ("prior", *(["prior_predictive"] if seen else []), "observed_data")
        },
        "frame": found.to_dataframe(3),
    }


for name in BEFORE:
    case(lambda name=name: before(name), f"before sampling {name}")


# -- fits that are sampled --------------------------------------------------------------------------------------------

SAMPLED = {
    "gaussian": ("y ~ x + (1 | g)", "gaussian", {"weights": "e"}),
    "gamma": ("pos ~ x + (1 | g)", "gamma", {}),
    "selected": ("word ~ x + a", "bernoulli", {"select": "all"}),
}


@once
def sampled(name):
    """A fit of a few gradients."""
    formula, family, options = SAMPLED[name]
    budget = {"events": 60} if name == "selected" else {"gradients": 30}
    with few_steps():
        return quietly(pdmp.regression, formula, table(), family, seed=4, chains=2, progress=False, **budget, **options)


def of_run(fit):
    """What a run adds: notes, a summary, and data for ArviZ."""
    data = fit.to_arviz(6, seed=1)
    groups = ("posterior", "posterior_predictive", "log_likelihood", "observed_data")
    summary = fit.summary()
    return {
        "notes": [said(note, fit) for note in fit.notes],
        "summary": [rounded(summary), [text.split()[:3] for text in summary.warnings]],
        "arviz": {group: {k: v.values for k, v in data[group].items()} for group in groups},
        "loo": fit.loo(draws=20).elpd_loo,
        "centred": [
            part if isinstance(part, np.ndarray) else type(part.model).__name__
            for part in fit.centred(fit.run.draws(3))
        ],
        "process": [type(fit.run.process).__name__, fit.run.chains],
    }


for name in SAMPLED:
    case(lambda name=name: of_run(sampled(name)), f"sampled {name}")


@case
def updated():
    """A fit of more rows, and its options."""
    with few_steps():
        fit = sampled("gaussian").update(rows().assign(g=[2, 77, 5, 77, 91]), seed=4, chains=3)
    return [of_run(fit), [list(map(str, g.levels)) for g in fit.groups], fit.n_rows, fit.run.mean()]


def of_inclusion(select, **options):
    """Which coefficients are not 0."""
    fit = pdmp.regression(
        "word ~ x + a + u", table(), "bernoulli", select=select, seed=2, chains=2, events=150, progress=False, **options
    )
    found = fit.inclusion()
    return [
        dict(found),
        found.rows,
        found.median_model,
        found.warnings,
        text_of(found),
        [said(note, fit) for note in fit.notes],
    ]


with_prior = {"priors": {"x": Normal(0.0, 0.5)}}
for key, select, options in (
    ("all", "all", {}),
    ("names", ["x", "a[s]"], with_prior),
    ("zigzag", {"x": 0.2, "u": 0.6}, {"sampler": "zigzag"}),
):
    of(f"inclusion {key}", of_inclusion, select, **options)
