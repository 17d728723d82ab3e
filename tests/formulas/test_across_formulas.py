"""Effects of groups that correlate across the formulas of a family, (1 |p| g): densities, draws, predictions, words."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.formulas import fitting, general, sources
from pdmp.formulas.checks import independence
from pdmp.models.priors import LKJ, Flat, HalfNormal, HalfStudentT, Normal, StudentT
from pdmp.models.regressions import effect_information
from pdmp.models.regressions.mixed import GroupColumn
from pdmp.models.regressions.standardised_effects import StandardisedEffects
from tests.checks import in_quick

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")
pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_steps", "few_radii")]

N, GROUPS = 40, 5


def table():
    rng = np.random.default_rng(8)
    x, g = rng.normal(1.0, 2.0, N), rng.permutation(N) % GROUPS
    return pandas.DataFrame(
        {
            "x": x,
            "w": rng.normal(-2.0, 0.5, N),
            "g": np.array(list("vsutr"))[g],
            "h": np.arange(N) % 3,
            "y": 0.3 * x + rng.normal(size=N),
            "t": rng.gamma(2.0, 1.0, N),
            "k": rng.poisson(2.0, N) * (rng.random(N) < 0.7),
            "way": np.array(["car", "bus", "walk"])[rng.permutation(N) % 3],
        }
    )


def log_likelihood(family, d, v, z, other):
    """Of a table, at linear predictors of both parameters, or of both categories but the first."""
    if family == "gaussian":
        return stats.norm.logpdf(d.y, z, np.exp(other))
    if family == "gamma":
        return stats.gamma.logpdf(d.t, np.exp(other), scale=np.exp(z - other))
    if family == "zero_inflated_poisson":
        counts = special.expit(-other) * stats.poisson.pmf(d.k, np.exp(z))
        return np.log(counts + special.expit(other) * (d.k == 0))
    if family == "exponent":
        return stats.norm.logpdf(d.t, z * np.exp(-other * d.x), v["sigma"])
    eta = np.stack([np.zeros(N), z, other])
    return (eta - special.logsumexp(eta, axis=0))[np.searchsorted(["bus", "car", "walk"], d.way), np.arange(N)]


#: Formulas, family, what names of both predictors begin with, and options.
CASES = {
    "gaussian": ({"y": "y ~ x + (1 + x |p| g)", "sigma": "~ w + (1 |p| g)"}, "", "sigma: ", {}),
    "gamma": ({"t": "t ~ x + (1 + x | p | g) + (1 |q| h)", "shape": "~ w + (1|p|g) + (1|q|h)"}, "", "shape: ", {}),
    "zero_inflated_poisson": ({"k": "k ~ x + (1 |p| g) + (0 + x |p| g)", "zi": "~ w + (1 |p| g)"}, "", "zi: ", {}),
    "categorical": ({"way": "way ~ x + (1 + x |p| g)", "walk": "~ w + (1 |p| g)"}, "car: ", "walk: ", {}),
    "exponent": (
        {"t": "t ~ a * exp(-b * x)", "a": "~ x + (1 + x |p| g)", "b": "~ w + (1 |p| g)"},
        "a: ",
        "b: ",
        {"priors": {"a": Normal(0.0, 2.0), "b": Normal(0.1, 0.5)}},
    ),
}
WAYS = ("together", "apart", "rows", "centred")


def prepared(name):
    formula, first, other, options = CASES[name]
    priors = {"cor(g)": LKJ(2.5), "cor(h)": LKJ(1.5), f"{first}sd(g)": HalfNormal(0.7)} | options.get("priors", {})
    priors = {key: prior for key, prior in priors.items() if key != "cor(h)" or "h)" in str(formula)}
    family = "gaussian" if name == "exponent" else name
    return pdmp.regression(formula, table(), family, priors, sample=False, seed=1), first, other


def flat(natural):
    return np.concatenate([np.ravel(value) for value in natural.values()])


def log_volume(model, x, h=1e-5):
    """log |det| of the derivative of the natural parameters by the coordinates."""
    move = h * np.eye(model.dim)
    columns = [(flat(model.constrain(x + e)) - flat(model.constrain(x - e))) / (2.0 * h) for e in move]
    return np.linalg.slogdet(np.column_stack(columns))[1]


def law_of_effects(v, columns, grouping, eta):
    """log density of effects of these columns, in (prefix, label), and of their correlations, up to a constant."""
    sds = [v[f"{p}sd({grouping})" if one == "1" else f"{p}sd({one}|{grouping})"] for p, one in columns]
    correlation = np.eye(len(columns))
    for (i, (p, one)), (j, (q, other)) in itertools.combinations(enumerate(columns), 2):
        correlation[i, j] = correlation[j, i] = v[f"cor({p}{one}, {q}{other}|{grouping})"]
    u = np.column_stack([v[f"{p}{one}|{grouping}"] for p, one in columns])
    law = stats.multivariate_normal(np.zeros(len(columns)), np.outer(sds, sds) * correlation)
    return law.logpdf(u).sum() + (eta - 1.0) * np.linalg.slogdet(correlation)[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", in_quick(CASES, "gaussian", "categorical"))
def test_the_potential_is_the_density_of_natural_parameters(name, way, monkeypatch):
    """By hand, in each of the coordinates of effects that there are."""
    if way == "apart":
        monkeypatch.setattr(effect_information, "TOGETHER", 0)
    if way == "rows":
        monkeypatch.setattr(effect_information, "INVERTED", 0)
    if way == "centred":
        monkeypatch.setattr(general, "made_for_sampling", lambda predictors, y, data, common: general.made(*common))
    fit, first, other = prepared(name)
    model, d = fit.model, table()
    excess = []
    for k in range(3):
        x = model.initial + 0.3 * np.random.default_rng(k).standard_normal(model.dim)
        v, g, h = model.constrain(x), np.searchsorted(list("rstuv"), d.g), d.h
        z = v[f"{first}Intercept"] + (v[f"{first}x"] + v[f"{first}x|g"][g]) * d.x + v[f"{first}1|g"][g]
        eta = v[f"{other}Intercept"] + v[f"{other}w"] * d.w + v[f"{other}1|g"][g]
        if name == "gamma":
            z, eta = z + v["1|h"][h], eta + v["shape: 1|h"][h]
        found = log_likelihood(name, d, v, *map(np.asarray, (z, eta)))
        np.testing.assert_allclose(model.pointwise_log_likelihood(x), found, rtol=1e-8, atol=1e-9)
        total = found.sum() + law_of_effects(v, [(first, "1"), (first, "x"), (other, "1")], "g", 2.5)
        if name == "gamma":
            total += law_of_effects(v, [("", "1"), (other, "1")], "h", 1.5)
        for one, prior in fit.priors.items():
            shift = {first: v[f"{first}x"] * d.x.mean(), other: v[f"{other}w"] * d.w.mean()}
            value = v[one] + (shift[one.removesuffix("Intercept")] if one.endswith("Intercept") else 0.0)
            total += {
                Normal: lambda q, at: stats.norm.logpdf(at, q.mean, q.sd),
                StudentT: lambda q, at: stats.t.logpdf(at, q.degrees, q.mean, q.scale),
                HalfNormal: lambda q, at: stats.halfnorm.logpdf(at, scale=q.scale),
                HalfStudentT: lambda q, at: stats.t.logpdf(at, q.degrees, scale=q.scale),
                LKJ: lambda q, at: 0.0,
            }[type(prior)](prior, value)
        excess.append(model.potential(x) + total + log_volume(model, x))
        np.testing.assert_allclose(model.reported.unconstrained(v), model.natural_draws(x) if way != "centred" else x)
    assert np.ptp(excess) < 1e-5 * max(1.0, abs(total))
    assert isinstance(model, StandardisedEffects) == (way != "centred")
    along, step = np.random.default_rng(9).standard_normal(model.dim), 1e-6
    slope = (model.potential(x + step * along) - model.potential(x - step * along)) / (2.0 * step)
    assert model.gradient(x) @ along == pytest.approx(slope, rel=1e-4)


def test_effects_on_a_response_and_on_an_imputed_column():
    """By hand; effects on the column are in the law of its values, missing ones too."""
    t = table()
    t.loc[[3, 8, 21], "w"] = np.nan
    formula = {"y": "y ~ mi(w) + (1 |p| g)", "w": "w | mi() ~ x + (1 |p| g)"}
    flat = dict.fromkeys(("Intercept", "mi(w)", "w: Intercept", "w: x"), Flat())
    spreads = dict.fromkeys(("sigma", "sigma(w)", "sd(g)", "w: sd(g)"), HalfNormal(2.0))
    fit = pdmp.regression(formula, t, priors={**flat, **spreads, "cor(g)": LKJ(2.0)}, sample=False)
    excess, g, w = [], np.searchsorted(list("rstuv"), t.g), t.w.to_numpy(copy=True)
    for k in range(3):
        x = fit.model.initial + 0.3 * np.random.default_rng(k).standard_normal(fit.model.dim)
        v = fit.model.constrain(x)
        w[[3, 8, 21]] = v["missing w"]
        total = stats.norm.logpdf(t.y, v["Intercept"] + v["mi(w)"] * w + v["1|g"][g], v["sigma"]).sum()
        total += stats.norm.logpdf(w, v["w: Intercept"] + v["w: x"] * t.x + v["w: 1|g"][g], v["sigma(w)"]).sum()
        total += law_of_effects(v, [("", "1"), ("w: ", "1")], "g", 2.0)
        total += sum(stats.halfnorm.logpdf(v[name], scale=2.0) for name in spreads)
        excess.append(fit.model.potential(x) + total + log_volume(fit.model, x))
    assert np.ptp(excess) < 1e-5 * abs(total)


LOCATION_SCALE = {"y": "y ~ x + (1 + x |p| g)", "sigma": "~ (1 |p| g)"}


def test_names_priors_and_notes():
    """Of effects of several formulas each is called by its own in a correlation; one prior is of all."""
    exact = LKJ(3.0)
    fit = pdmp.regression(LOCATION_SCALE, table(), priors={"cor(g)": exact}, sample=False)
    names = ["cor(1, x|g)", "cor(1, sigma: 1|g)", "cor(x, sigma: 1|g)"]
    assert [name for name, prior in fit.priors.items() if prior == exact] == names and names[1] in repr(fit)
    assert not any("independent" in note for note in fit.notes)
    several = {"t": "t ~ x + (1 |p| g)", "shape": "~ w + (1 + w |p| g) + (1 + x | h)"}
    for prior in ("cor(g)", "shape: cor(h)"):
        fit = pdmp.regression(several, table(), "gamma", {prior: exact}, sample=False)
        found = {name: law == exact for name, law in fit.priors.items() if "cor(" in name}
        own = ["cor(1, shape: 1|g)", "cor(1, shape: w|g)", "cor(shape: 1, shape: w|g)", "shape: cor(1, x|h)"]
        assert {*found} == {*own} and all(found[name] == (("h)" in name) == ("h)" in prior)) for name in own)
    with pytest.raises(ValueError, match="`priors` names 'sigma: cor\\(g\\)', which is no parameter"):
        pdmp.regression(LOCATION_SCALE, table(), priors={"sigma: cor(g)": exact}, sample=False)
    with pytest.raises(ValueError, match=r"the column 'cor\(1, sigma: 1\|g\)' cannot be told apart, as effects"):
        formula = {"y": "y ~ `cor(1, sigma: 1|g)` + (1 |p| g)", "sigma": "~ (1 |p| g)"}
        pdmp.regression(formula, table().assign(**{"cor(1, sigma: 1|g)": table().x}), sample=False)
    pair = {"y": "y ~ x + (1 |p| g)", "sigma": "~ (1 |p| g)"}
    fit = pdmp.regression(pair, table(), priors={"cor(1, sigma: 1|g)": exact}, sample=False)
    assert fit.priors["cor(1, sigma: 1|g)"] == exact


def test_what_is_independent_is_said_by_formula():
    """With the names of that formula where it has all of them, and else with those of the fit."""

    def said(prefix, partners):
        groups = [GroupColumn(name, "g", (), None, None, None, None, partners.get(name, ())) for name in ("1|g", "x|g")]
        return independence([*groups, groups[0]._replace(name="1|h", grouping="h", partners=())], prefix)

    both, across = ("s: 1|g", "s: x|g"), ("1|g", "s: 1|g")
    said_of = "effects of g are independent of each other, those of"
    assert said("s: ", {"1|g": both, "x|g": both}) == [] and said("s: ", {}) == [f"s: {said_of} 1|g; x|g, as by ||"]
    assert said("s: ", {"1|g": across}) == [f"s: {said_of} 1|g and s: 1|g; s: x|g, as by ||"]
    assert said("", {"1|g": across}) == [f"{said_of} 1|g and s: 1|g; x|g, as by ||"]
    three = (*across, "x|g")
    assert said("", {"1|g": three, "x|g": three}) == []


def test_an_identifier_of_one_formula_alone_is_told():
    """As a slip of the other one; not where there is one formula only."""

    def said(formula):
        notes = pdmp.regression(formula, table(), sample=False).notes
        return [note for note in notes if note.startswith("the identifier in ")]

    alone = "the identifier in |{}| g stands in one formula alone: no other's effects correlate"
    assert said({"y": "y ~ x + (1 |p| g)", "sigma": "~ (1 |P| g)"}) == [alone.format("p"), alone.format("P")]
    assert said({"y": "y ~ x + (1 |p| g)", "sigma": "~ x + (1 | g)"}) == [alone.format("p")]
    assert said(LOCATION_SCALE) == [] and said("y ~ x + (1 + x |p| g)") == []


def test_identifiers_of_files(tmp_path, monkeypatch):
    """Of one term, and with a column that is called so."""
    monkeypatch.setattr(sources, "LARGE_FILE", 1)
    path = tmp_path / "t.csv"
    table().to_csv(path, index=False)
    with pytest.raises(ValueError, match="x between two bars is an identifier"):
        pdmp.regression("y ~ w + (1 | x | g)", path, sampler="zigzag", gradients=10)
    with pytest.raises(ValueError, match="correlations of effects, .* are not estimated"):
        pdmp.regression("y ~ w + (1 |p| g) + (0 + w |p| g)", path)


@pytest.mark.parametrize("formula", ["y ~ x + (1 + x |p| g)", "y ~ x + (1 |p| g) + (0 + x |p| g)"])
def test_in_one_formula_an_identifier_changes_nothing(formula):
    for family in ("gaussian", "gamma"):
        t = table().assign(y=lambda d: d.t)
        one, other = (pdmp.regression(text, t, family, sample=False) for text in (formula, "y ~ x + (1 + x | g)"))
        at = other.model.initial + np.linspace(-0.2, 0.2, other.model.dim)
        assert list(one.priors) == list(other.priors) and one.model.potential(at) == other.model.potential(at)
    alone = pdmp.regression("y ~ x + (1 |p| g)", table(), sample=False)
    assert list(alone.priors) == list(pdmp.regression("y ~ x + (1 | g)", table(), sample=False).priors)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("y ~ (1 || p | g)", r"p between \|\| and \| is no identifier: effects with one correlate, \(1 \| p \| g\)"),
        ("y ~ (1 | p || g)", r"those of \(1 \|\| g\) are independent of all others"),
        ("y ~ (1 | p | q | g)", r"\(1 \| p \| q \| g\) has several bars: .* \(x \| p \| g\) in each"),
        ("y ~ (1 | log(x) | g)", "has several bars"),
        ("y ~ (1 | x | g)", "x between two bars is an identifier .* `data` has a column 'x': take another identifier"),
        ({"y": "y ~ (1 |p| g)", "sigma": "~ (1 |p| h)"}, "the identifier p stands before 'g', and elsewhere before ot"),
        ("y ~ (1 |p| g) + (1 |p| h)", "the identifier p stands before 'g', and elsewhere before other groupings"),
        ({"y": "y ~ (1 |p| g) + (1 | g)", "sigma": "~ (1 |p| g)"}, r"the effect \(1 \| g\) stands in two brackets"),
    ],
)
def test_words(formula, said):
    with pytest.raises(ValueError, match=said):
        pdmp.regression(formula, table(), sample=False)


def test_draws_of_the_prior_have_the_law_of_the_effects():
    """Correlations of three columns have beta laws; effects over their standard deviations have these correlations."""
    fit = pdmp.regression(LOCATION_SCALE, table(), priors={"cor(g)": LKJ(2.0)}, sample=False, seed=3)
    v = fit.run.natural(4_000)
    names = [("1|g", "sd(g)"), ("x|g", "sd(x|g)"), ("sigma: 1|g", "sigma: sd(g)")]
    z = [v[effects][:, 0] / v[sd] for effects, sd in names]
    for (i, j), name in zip([(0, 1), (0, 2), (1, 2)], ["1, x", "1, sigma: 1", "x, sigma: 1"], strict=True):
        r = v[f"cor({name}|g)"]
        assert stats.kstest(r, lambda at: stats.beta.cdf(0.5 * (1.0 + at), 2.5, 2.5)).pvalue > 1e-3
        assert np.mean(r * z[i] * z[j]) == pytest.approx(np.mean(r * r), abs=5.0 * np.std(r * z[i] * z[j]) / 63.0)
    again = fit.model.constrain(fit.run.draws(50))
    for name, values in fit.run.natural(50).items():
        np.testing.assert_allclose(again[name][0], values, rtol=1e-6, atol=1e-9, err_msg=name)
    assert fit.prior_predictive(draws=5).replicated.shape == (5, N)


def drawn(fit, new, kind, given, n=6_000, **options):
    """Natural parameters of one point, some of them as they are given, and draws of a prediction there."""
    x = fit.unconstrained(fit.run.natural(1) | {name: np.array([value]) for name, value in given.items()})[0]
    options = {"unseen": "draw", "rng": np.random.default_rng(2)} | options
    found = fit.predicted(np.tile(x, (n, 1)), pandas.DataFrame(new), kind, **options)
    return fit.model.constrain(x), found


@pytest.mark.parametrize("way", ["unseen", "effects"])
def test_effects_of_a_new_group_are_drawn_jointly(way):
    """Of two categories by their log odds, at one row of a new group, and a second row of it, or of a known one."""
    fit = prepared("categorical")[0]
    new = {"x": [2.0, -1.0], "w": [-2.0, -1.0]} | ({"g": ["new", "r"]} if way == "unseen" else {})
    given = {"cor(car: 1, car: x|g)": 0.3, "cor(car: 1, walk: 1|g)": -0.7, "cor(car: x, walk: 1|g)": 0.2}
    v, p = drawn(fit, new, "probability", given, **({} if way == "unseen" else {"effects": "draw"}))
    eta = np.log(p[..., 1:] / p[..., :1])
    sds = np.array([v["car: sd(g)"], v["car: sd(x|g)"], v["walk: sd(g)"]])
    r = list(given.values())
    covariance = np.outer(sds, sds) * np.array([[1.0, r[0], r[1]], [r[0], 1.0, r[2]], [r[1], r[2], 1.0]])
    loads = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0], [1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    wanted, found = loads @ covariance @ loads.T, np.cov(eta.reshape(len(eta), 4).T)
    if way == "unseen":
        wanted[2:], wanted[:, 2:] = 0.0, 0.0
        known = [v["car: Intercept"] - v["car: x"] + v["car: 1|g"][0] - v["car: x|g"][0]]
        known.append(v["walk: Intercept"] - v["walk: w"] + v["walk: 1|g"][0])
        np.testing.assert_allclose(eta[:, 1], np.tile(known, (len(eta), 1)), rtol=1e-9)
    errors = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / len(eta))
    assert np.all(np.abs(found - wanted) <= 5.0 * errors + 1e-9)


def test_responses_of_a_new_group_are_skewed_by_the_correlation():
    """With u and s the effects on the mean and on log sigma: E (y - m)³ = 3 E u exp(2 (m' + s)), m' without s."""
    fit = pdmp.regression({"y": "y ~ 1 + (1 |p| g)", "sigma": "~ (1 |p| g)"}, table(), sample=False)
    a, b, r = 0.8, 0.4, -0.7
    given = {"sd(g)": a, "sigma: sd(g)": b, "cor(1, sigma: 1|g)": r, "sigma: Intercept": -0.7}
    v, y = drawn(fit, {"g": ["new", "r"]}, "response", given, 40_000)
    cubes = (y[:, 0] - v["Intercept"]) ** 3
    wanted = 3.0 * 2.0 * r * a * b * np.exp(2.0 * v["sigma: Intercept"] + 2.0 * b * b)
    error = cubes.std() / 200.0
    assert abs(wanted) > 10.0 * error and cubes.mean() == pytest.approx(wanted, abs=5.0 * error)


def test_one_warning_of_groups_that_are_all_new():
    fit = pdmp.regression(LOCATION_SCALE, table(), sample=False)
    with pytest.warns(UserWarning, match="the fit has seen none of the groups of 'g'") as said:
        fit.predict({"x": [1.0], "g": ["new"]}, unseen="draw", draws=2, kind="response")
    assert len(said) == 1


def test_images_turn_correlations_too():
    """The law of effects is as dense at an image: of a sign, and of two components that are exchanged."""
    for formula, family, options in (
        (
            {"y": "y ~ square(a) + c * x", "a": "~ 1 + (1 + w |p| g)", "c": "~ 1 + (1 |p| g)"},
            "gaussian",
            {"priors": {"a": Normal(0.0, 2.0), "c": Normal(0.0, 2.0)}},
        ),
        ({"y": "y ~ 1 + (1 |p| g)", "mu2": "~ 1 + (1 |p| g)", "theta": "~ (1 |p| g)"}, "mixture_gaussian", {}),
    ):
        fit = pdmp.regression(formula, table(), family, sample=False, **options)
        model = fit.model
        x = model.initial + 0.4 * np.random.default_rng(2).normal(size=model.dim)
        (image,) = model.images(x)
        np.testing.assert_allclose(model.pointwise_log_likelihood(image), model.pointwise_log_likelihood(x), rtol=1e-8)
        columns = [("a: ", "1"), ("a: ", "w"), ("c: ", "1")] if "a" in formula else [("", "1"), ("mu2: ", "1")]
        columns += [] if "a" in formula else [("theta: ", "1")]
        found = [law_of_effects(model.constrain(at), columns, "g", 3.0) for at in (x, image)]
        assert found[1] == pytest.approx(found[0], rel=1e-8) and np.abs(image - x).max() > 0.05


def test_a_stacked_table_has_the_law_of_two_responses():
    """The density by hand, of two normal responses whose effects of groups correlate: as the pages say of mvbind."""
    t = table().assign(z=lambda d: 1.0 - 0.3 * d.x * d.w)
    with pytest.raises(ValueError, match="mvbind.* errors are fits of their own, y ~ … and z ~ …") as error:
        pdmp.regression("mvbind(y, z) ~ x + (1 |p| g)", t)
    with pytest.raises(ValueError, match="are 'y', 'z'; several responses are several fits") as other:
        pdmp.regression({"y": "y ~ x + (1 |p| g)", "z": "z ~ x + (1 |p| g)"}, t)
    stacked = t.melt(["x", "g"], ["y", "z"], "which", "value")
    for shown in (error, other):
        assert "table.melt(['x', 'g'], ['y', 'z'], 'which', 'value')" in str(shown.value)
        assert "value ~ which * x + (0 + which | g), and ~ which for each further" in str(shown.value)
    place = np.searchsorted(list("rstuv"), t.g)
    for mean, spread in (("which * x", "which"), ("0 + which + which:x", "0 + which")):
        formula = {"value": f"value ~ {mean} + (0 + which | g)", "sigma": f"~ {spread}"}
        flat = dict.fromkeys(("Intercept", "which", "x", "which:x", "sigma: Intercept", "sigma: which"), Flat())
        flat = {name: prior for name, prior in flat.items() if "0 +" not in mean or name.endswith(("which", "which:x"))}
        sds = {f"sd(which[{name}]|g)": HalfNormal(3.0) for name in "yz"}
        model = pdmp.regression(formula, stacked, priors=flat | sds, sample=False).model
        excess = []
        for k in range(3):
            x = model.initial + 0.3 * np.random.default_rng(k).standard_normal(model.dim)
            v, total = model.constrain(x), 0.0
            for one in "yz":
                of = [v.get("Intercept", 0.0), v.get("x", 0.0), v.get("sigma: Intercept", 0.0)]
                names = (f"which[{one}]", f"which[{one}]:x", f"sigma: which[{one}]")
                a, b, s = (base + v.get(name, 0.0) for base, name in zip(of, names, strict=True))
                total += stats.norm.logpdf(t[one], a + b * t.x + v[f"which[{one}]|g"][place], np.exp(s)).sum()
                total += stats.halfnorm.logpdf(v[f"sd(which[{one}]|g)"], scale=3.0)
            total += law_of_effects(v, [("", "which[y]"), ("", "which[z]")], "g", 1.0)
            excess.append(model.potential(x) + total + log_volume(model, x))
        assert np.ptp(excess) < 1e-5 * abs(total)


def test_a_third_column_beside_two_that_correlate_is_for_sums_of_terms(monkeypatch):
    """Where two alone would be sampled at one row a proposal."""
    for name in ("SUBSAMPLED_ROWS", "SLOPE_ROWS", "INTERCEPT_ROWS"):
        monkeypatch.setattr(fitting, name, 2)
    for further in ("", " + (0 + w | g)"):
        fit = pdmp.regression(f"k ~ x + w + (1 + x |p| g){further}", table(), "poisson", sample=False)
        assert "cor(1, x|g)" in fit.priors and bool(fit._sampled.keywords) == (not further)
