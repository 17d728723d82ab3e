"""Rows added to a fit: the law is that of all rows with the priors that the fit had, whatever the coordinates."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.formulas import fitting, general, kept
from pdmp.formulas.table import places
from pdmp.formulas.updating import Origin
from pdmp.models.priors import LKJ, BetaBernoulli, Flat, HalfNormal
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.models.regressions.standardised_effects import StandardisedEffects
from tests.formulas.test_after import Made

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_steps", "few_radii")]

N, FIRST = 130, 83  #: rows, and those of the first fit


def table():
    """Rows of which the first ones lack two groups of g, and have other means and spreads than the rest."""
    rng, n = np.random.default_rng(8), N
    found = pandas.DataFrame(
        {
            "x": rng.normal(3.0, 2.0, n) + np.linspace(0.0, 4.0, n),
            "w": rng.normal(size=n),
            "g": rng.integers(1, 5, n),
            "h": np.array(["r", "s", "t"])[rng.integers(0, 3, n)],
            "area": np.array(["city", "rural", "town"])[rng.integers(0, 3, n)],
            "e": rng.uniform(0.5, 2.0, n),
            "k": rng.uniform(0.2, 1.5, n),
            "n": rng.integers(4, 9, n),
            "cens": np.array(["none", "right", "left", "interval"])[rng.integers(0, 4, n)],
        }
    )
    found["y"] = 1.0 + 0.4 * found.x + rng.normal(size=n)
    found["early"], found["late"] = (np.where((np.arange(n) < FIRST) == first, found.w, 0.0) for first in (True, False))
    found["p"] = rng.gamma(2.0, 1.0, n)
    found["upper"] = found.p + rng.uniform(0.1, 1.0, n)
    found.loc[found.cens != "interval", "upper"] = np.nan
    found["c"], found["m"] = rng.poisson(2.0, n), rng.binomial(found.n, 0.4)
    found["b"] = np.where(rng.random(n) < 0.4, "ill", "well")
    found["o"] = pandas.Categorical(
        np.array(["low", "mid", "high"])[rng.integers(0, 3, n)], ["low", "mid", "high"], True
    )
    found.loc[[FIRST + 3, FIRST + 20, N - 1], "g"] = [0, 7, 7]
    return found


def unsampled(formula, data, family, **options):
    """A fit with draws that were made up, and what it was made with."""
    fit, origin, _ = pdmp.regression(formula, data, family, sample=False, seed=1, **options)._sampled.args
    fit.run = Made(fit.model)
    return fit, origin


def values(model, natural):
    """Potentials, but for the law of the effects of other families, whose coordinates depend on the rows."""
    plain = getattr(model, "base", model)
    return np.array([plain.potential(x) for x in model_coordinates(model, natural)])


def model_coordinates(model, natural):
    return getattr(model, "reported", model).unconstrained(natural)


def points(model, n=4):
    """Natural parameters near where the model begins."""
    x = model.initial + 0.2 * np.random.default_rng(3).normal(size=(n, model.dim))
    x[:, :1] += 0.1
    return model.constrain(x)


def in_order(natural, ours, theirs):
    """The same with effects in the order of the groups of another model."""
    found = dict(natural)
    for (prefix, a), (_, b) in zip(ours, theirs, strict=True):
        found[prefix + a.name] = natural[prefix + a.name][..., [a.levels.index(label) for label in b.levels]]
    return found


SIX = [
    ("y ~ x + area + (1 + x || g)", "gaussian", MixedRegression, {"weights": "k", "offset": "w"}),
    ("y ~ x + (1 + x || h)", "student_t", GroupIntercepts, {"sampler": "zigzag"}),
    ("y ~ x + (1 + x | h)", "gaussian", GroupIntercepts, {"weights": "k"}),
    ("y ~ w + (1 | h)", "gaussian", GroupIntercepts, {"weights": "k"}),  # sub-sampled from now on
    ("b ~ x + area", "bernoulli", MixedRegression, {"offset": "late", "select": {"x": 0.2, "area": 0.6}}),
    ("b ~ 0 + area + w", "probit", MixedRegression, {"weights": "k", "offset": "early"}),
    ("c ~ w + (1 | g) + (1 | h)", "poisson", GroupIntercepts, {"exposure": "e", "sampler": "zigzag"}),
    ("c ~ scale(x) + (1 | g:h)", "negative_binomial", MixedRegression, {"exposure": "e"}),
    ("m | trials(n) ~ x + (1 | h)", "binomial", GroupIntercepts, {"weights": "k"}),
    ("p | cens(cens, upper) ~ x + (1 | h)", "lognormal", GroupIntercepts, {}),
    ("c ~ x + offset(w)", "poisson", MixedRegression, {"exposure": "e"}),
]


@pytest.mark.parametrize("formula, family, kind, options", SIX)
def test_the_law_is_that_of_all_rows(formula, family, kind, options, monkeypatch):
    monkeypatch.setattr(fitting, "SLOPE_ROWS", 10)
    if "x | h" in formula or family in ("binomial", "lognormal"):
        monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", FIRST)
    elif formula == "y ~ w + (1 | h)":
        monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", N)
    t = table()
    first, more = t[:FIRST], t[FIRST:]
    fit, origin = unsampled(
        formula, first, family, priors={"Intercept": Flat()} if "0 +" not in formula else None, **options
    )
    changed, notes = fitting.extended_model(origin, fit, more)
    model, design = changed["model"], changed["design"]
    assert type(model) is kind and model.n_data == N
    priors, remembered = dict(fit.priors), "scale(x)" in formula
    if remembered:  # what the first rows have: all rows are coded by these beforehand
        t = t.assign(x=(t.x - first.x.mean()) / first.x.std(ddof=0))
        formula, priors["x"] = formula.replace("scale(x)", "x"), priors.pop("scale(x)")
    whole = pdmp.regression(formula, t, family, priors=priors, sample=False, seed=1, **options)
    other = whole._sampled.args[0].model
    natural = points(model)
    theirs = {**natural, "x": natural["scale(x)"]} if remembered else natural
    ours = [("", g) for g in model.groups]
    theirs = in_order(theirs, ours, [("", g) for g in other.groups])
    a, b = values(model, natural), values(other, theirs)
    np.testing.assert_allclose(a - a[0], b - b[0], rtol=1e-8, atol=1e-7)
    for name, value in model.constrain(model_coordinates(model, natural)).items():
        np.testing.assert_allclose(value, natural[name], rtol=1e-9, atol=1e-9)
    assert notes[0] == f"{N - FIRST} rows were added to {FIRST}, whose priors and units are kept"
    if "| g)" in formula:
        assert notes[1:] == ["2 groups of g are new"] and model.groups[0].levels == (1, 2, 3, 4, 0, 7)
    np.testing.assert_array_equal(model.y[:FIRST], fit.model.y)
    np.testing.assert_array_equal(model.prior_inclusion(), other.prior_inclusion())
    assert model.together == other.together
    assert design.X.shape == (0, len(model.columns))


def test_columns_of_two_tables_are_one():
    """Of different sizes, means and spreads; few numbers stay few, and levels have their order."""

    def column(values, few=True):
        ends = (values.mean(), values.std(), values.min(), values.max())
        return kept.Column(None, *map(float, ends), tuple(np.unique(values).tolist()) if few else ())

    a, b = np.array([1.0, 1.0, 4.0]), np.array([7.0, -3.0, 1.0, 7.0, 8.0])
    many = np.array([7.0, 9.0, 4.0])
    for first, second, few in ((a, b, True), (b, a, True), (b, many, True), (a, many, True), (a, b, False)):
        both = np.concatenate([first, second])
        found = kept._joined(column(first), len(first), column(second, few), len(second))
        wanted = column(both, few and len(np.unique(both)) <= kept.DISTINCT)
        np.testing.assert_allclose(found[1:5], wanted[1:5], rtol=1e-12)
        assert found.distinct == wanted.distinct
    one, other = (kept.Column(levels, *[np.nan] * 4, ()) for levels in (("b", "a"), ("a", "d", "c")))
    assert kept._joined(one, 2, other, 3).levels == ("b", "a", "d", "c")


def test_the_prior_of_models_stays():
    law, t = BetaBernoulli(2.0, 5.0), table()
    fit, origin = unsampled("b ~ x + area", t[:FIRST], "bernoulli", select="all", priors={"inclusion": law})
    model = fitting.extended_model(origin, fit, t[FIRST:])[0]["model"]
    assert model.model_prior is law and model.inclusion[1] == pytest.approx(2.0 / 7.0)


FAMILIES = [
    ({"p": "p ~ x + area + (1 | g)", "shape": "~ w + (1 | g)"}, "gamma", {"weights": "k", "offset": "w"}),
    ("o ~ x + (1 + w | h)", "cumulative", {}),
    pytest.param("y ~ x + (1 + x + w | g) + (1 | h)", "gaussian", {"weights": "k"}, marks=pytest.mark.slow),
    ("m | trials(n) ~ x", "binomial", {"offset": "late"}),
    ("m | trials(12) ~ x", "beta_binomial", {"offset": "early"}),
    ("p | cens(cens, upper) ~ x", "lognormal", {}),
    ({"c": "c ~ x", "zi": "~ w"}, "zero_inflated_poisson", {"exposure": "e"}),
    ({"y": "y ~ x + (1 + w |q| g)", "sigma": "~ (1 |q| g)"}, "gaussian", {}),
]


def _log_jacobian(model, x):
    """log |dy / dx|, by differences."""
    moved = np.concatenate([x + 1e-5 * np.eye(model.dim), x - 1e-5 * np.eye(model.dim)])
    y = model.natural_draws(moved)
    return np.linalg.slogdet((y[: model.dim] - y[model.dim :]) / 2e-5)[1]


def _law_of_effects(reported, natural, k):
    """Minus the log density of the coordinates of effects, without constants."""
    total = 0.0
    scales = {p.prefix + g.name: s / p.unit for p in reported.predictors for g, s in zip(p.groups, p.group_scale)}  # noqa: B905
    for p in reported.predictors:
        for one in p.sets:
            units = np.array([scales[name] for name in one.names])
            sd = np.array([natural[name][k] for name in one.sd_names]) * units
            u = np.stack([natural[name][k] for name in one.names], axis=-1) * units
            correlation = np.eye(len(sd))
            pairs = [(i, j) for i in range(len(sd)) for j in range(i)]
            for name, (i, j) in zip(one.correlation_names, pairs, strict=True):
                correlation[i, j] = correlation[j, i] = natural[name][k]
            law = stats.multivariate_normal(np.zeros(len(sd)), correlation * np.outer(sd, sd))
            total -= np.sum(law.logpdf(u)) + 0.5 * u.size * np.log(2.0 * np.pi)
    return total


@pytest.mark.parametrize("formula, family, options", FAMILIES)
def test_the_law_of_other_families_is_that_of_all_rows(formula, family, options):
    t = table()
    flat = {"Intercept": Flat()} if family != "cumulative" else {"cuts": Flat()}
    if isinstance(formula, dict):
        flat[f"{list(formula)[1]}: Intercept"] = Flat()
    fit, origin = unsampled(formula, t[:FIRST], family, priors=flat, **options)
    changed, notes = general.extended_model(origin, fit, t[FIRST:])
    model, seen = changed["model"], changed["kept"]
    own = {name: prior for name, prior in fit.priors.items() if not name.startswith(("cut[", "cor("))}
    whole = pdmp.regression(formula, t, family, priors=flat | own, sample=False, seed=1, **options)._sampled.args[0]
    natural = points(model)
    if any(p.groups for p in model.reported.predictors):
        assert isinstance(model, StandardisedEffects)
        x, reported = model.reported.unconstrained(natural), model.reported
        inside = model.coordinates(x)
        np.testing.assert_allclose(model.natural_draws(inside), x, rtol=1e-8, atol=1e-8)
        for a, b in zip(reported.predictors, whole.coding.predictors, strict=True):
            assert [one.names for one in a.sets] == [one.names for one in b.sets]
        # The law of the effects: what the potential has more than that of rows, less the Jacobian, up to a constant.
        laws = [model.potential(at) - model.base.potential(own) for at, own in zip(inside, x, strict=True)]
        found = np.array(laws) + [_log_jacobian(model, at) for at in inside]
        wanted = np.array([_law_of_effects(reported, natural, k) for k in range(len(x))])
        np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=1e-5, atol=1e-4)
        assert np.std(wanted) > 0.5
    if family == "cumulative":
        cuts = np.sort(np.stack([natural[f"cut[{k}]"] for k in (1, 2)]), axis=0) + np.array([[-0.2], [0.2]])
        natural |= {"cut[1]": cuts[0], "cut[2]": cuts[1]}
    theirs = in_order(
        natural,
        [(p.prefix, g) for p in model.reported.predictors for g in p.groups],
        [(p.prefix, g) for p in whole.coding.predictors for g in p.groups],
    )
    a, b = values(model, natural), values(whole.model, theirs)
    np.testing.assert_allclose(a - a[0], b - b[0], rtol=1e-7, atol=1e-6)
    assert model.reported.rows == N and seen.n == N and notes[0].startswith("47 rows were added to 83, ")
    np.testing.assert_array_equal(model.observed[0].y, whole.observed)
    np.testing.assert_array_equal(model.observed[0].further, whole.model.observed[0].further)


def test_components_can_be_exchanged_after_an_update():
    t = table()
    fit, origin = unsampled({"y": "y ~ 1", "mu2": "~ 1"}, t[:FIRST], "mixture_gaussian")
    model = general.extended_model(origin, fit, t[FIRST:])[0]["model"]
    x = model.initial + 0.1 * np.arange(model.dim)
    (image,) = model.images(x)
    assert np.abs(image - x).max() > 0.05
    np.testing.assert_allclose(model.pointwise_log_likelihood(image), model.pointwise_log_likelihood(x), rtol=1e-8)


def test_rows_in_two_steps_are_those_in_one():
    """Bitwise, but for the order of groups that both bring."""
    t = table()
    options = {"weights": "k", "offset": "w"}
    fit, origin = unsampled("y ~ x + area + (1 + x || g)", t[:FIRST], "gaussian", **options)
    one = fitting.extended_model(origin, fit, t[FIRST:])[0]["model"]
    some = fitting.extended_model(origin, fit, t[FIRST:100])[0]
    fit = fit.replaced(**some, run=Made(some["model"]))
    two = fitting.extended_model(origin, fit, t[100:])[0]["model"]
    for name in (
        "X",
        "y",
        "target",
        "offset",
        "weight",
        "level",
        "value",
        "first",
        "kinds",
        "numbers",
        "centre",
        "scale",
    ):
        np.testing.assert_array_equal(getattr(two, name), getattr(one, name), err_msg=name)
    x = one.initial + 0.1
    assert one.potential(x) == two.potential(x)


def test_it_begins_where_the_posterior_is(monkeypatch):
    monkeypatch.setattr(fitting, "SLOPE_ROWS", 10)
    t = table()
    for formula, family, options in [
        ("c ~ w + (1 | g) + (1 | h)", "poisson", {"exposure": "e", "sampler": "zigzag"}),
        ("y ~ x + (1 + x || h)", "gaussian", {"sampler": "zigzag"}),
        ({"p": "p ~ x + (1 | g)", "shape": "~ w"}, "gamma", {}),
        ("y ~ x + (1 + x | g)", "student_t", {}),
    ]:
        fit, origin = unsampled(formula, t[:FIRST], family, **options)
        make = general.extended_model if isinstance(fit, general.FamilyFit) else fitting.extended_model
        model = make(origin, fit, t[FIRST:])[0]["model"]
        there = model.constrain(model.initial)
        expected = fit.model.constrain(fit.some_draws(1_000).mean(axis=0))
        for name, value in expected.items():
            own = there[name] if np.ndim(value) == 0 else there[name][: len(value)]
            np.testing.assert_allclose(own, value, rtol=1e-8, atol=1e-9)
        if "1|g" in there:
            np.testing.assert_allclose(there["1|g"][4:], 0.0, atol=1e-12)


def test_what_is_kept_of_the_table_is_of_all_rows(monkeypatch):
    t = table()
    formula = "y ~ x + n + area + np.log(p) + I(w > 0) + (1 | g)"
    whole = pdmp.regression(formula, t, sample=False).kept
    fit, origin = unsampled(formula, t[:FIRST], "gaussian")
    found = fitting.extended_model(origin, fit, t[FIRST:])[0]["kept"]
    assert (
        found.n == N
        and found.columns.keys() == whole.columns.keys()
        and set(found.groupings["g"]) == {0, 1, 2, 3, 4, 7}
    )
    for name, one in whole.columns.items():
        assert found.columns[name].levels == one.levels and found.columns[name].distinct == one.distinct
        np.testing.assert_allclose(found.columns[name][1:5], one[1:5], rtol=1e-12)
    pandas.testing.assert_frame_equal(found.rows, whole.rows)
    np.testing.assert_array_equal(found.places, np.arange(N))
    monkeypatch.setattr(kept, "ROWS", 40)
    few, origin = unsampled(formula, t[:FIRST], "gaussian")
    some = fitting.extended_model(origin, few, t[FIRST:])[0]["kept"]
    assert len(some.places) == 40 == len(np.unique(some.places)) and np.all(np.diff(some.places) > 0)
    pandas.testing.assert_frame_equal(some.rows, t[list(some.rows.columns)].iloc[some.places])
    of_second = [
        int(np.sum(kept.Kept.extended(few.kept, t[FIRST : FIRST + m], [few.design]).places >= FIRST))
        for m in range(20, 47)
    ]
    expected = sum(40.0 * m / (FIRST + m) for m in range(20, 47))
    assert abs(sum(of_second) - expected) < 4.0 * np.sqrt(
        27 * 40 * 0.25 * 0.75
    )  # of rows drawn from all, a binomial or less


def test_the_options_of_an_update():
    """One thing that ends a run replaces all that the fit had; what is of its coordinates or file is left out."""
    options = {"chains": 2, "gradients": 50, "rhat": 1.1, "initial": np.zeros(3), "checkpoint": "c"}
    kept = {"chains": 2, "gradients": 50, "rhat": 1.1}
    for given, wanted in [
        ({}, kept),
        ({"chains": 3}, kept | {"chains": 3}),
        ({"ess": 90.0, "checkpoint": "d"}, {"chains": 2, "ess": 90.0, "checkpoint": "d"}),
        ({"time": 7.0}, {"chains": 2, "time": 7.0}),
        ({"ess": None}, kept),
    ]:
        assert Origin(None, {}, options, ["old"]).further(["new"], given).run_options == wanted


@pytest.mark.slow
def test_an_update(monkeypatch):
    """By the public name: options of the fit, the same seed, notes, and a fit that was not changed."""
    t = table()
    options = {"chains": 2, "gradients": 50, "progress": False}
    fit = pdmp.regression("y ~ x + (1 | g)", t[:FIRST], seed=1, priors={"sd(g)": HalfNormal(0.3)}, **options)
    before = str(fit.summary())
    more = t[FIRST:].assign(x=t.x.where(t.index != 90))
    found, again = fit.update(more, seed=5), fit.update(more.to_dict("list"), seed=5)
    assert found.n_rows == N - 1 and found.run.chains == 2 and found.priors == fit.priors
    assert np.array_equal(found["x"], again["x"]) and str(fit.summary()) == before
    seen = []

    def recorded(model, seed, selects, options, sampler, only=False):
        seen.append(options)
        raise KeyError

    monkeypatch.setattr(fitting, "sample_model", recorded)
    own = {"initial": np.zeros(3), "checkpoint": "c"}
    fit.with_rows.args[2].options.update(own)
    for given, wanted in [
        ({"chains": 3}, options | {"chains": 3}),
        ({"ess": 90.0, "checkpoint": "d"}, {"chains": 2, "ess": 90.0, "progress": False, "checkpoint": "d"}),
        ({"ess": None}, options),
    ]:
        with pytest.raises(KeyError):
            fit.update(more, seed=5, **given)
        assert seen.pop() == wanted
    with pytest.raises(TypeError, match="`regression` has no option 'chain'; did you mean 'chains'?"):
        fit.update(more, chain=3)
    with pytest.raises(KeyError):
        pdmp.regression("y ~ x", t, **own)
    assert seen.pop() == own


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda t: t.drop(columns="x"), "the fit names 'x', and `new` has no such column"),
        (lambda t: t.drop(columns="y"), "the fit names 'y', and `new` has no such column"),
        (lambda t: t.drop(columns="k"), "the fit names 'k', and `new` has no such column"),
        (
            lambda t: t.assign(x="a"),
            "`new`: the column 'x' holds text or categories, and numbers in the data of the fit",
        ),
        (lambda t: t.assign(y="a"), "the response: the column 'y' must hold numbers"),
        (
            lambda t: t.assign(g="a"),
            "`new`: the groups of 'g' are text or categories, and numbers in the data of the fit",
        ),
        (lambda t: t.assign(area="sea"), "sea"),
        (lambda t: t.assign(k=-1.0), "`weights`: the column 'k' must not be negative, nor 0 in every row, got -1"),
        (lambda t: t.assign(x=np.nan), "`new`: every row has a missing value, in 'x'"),
        (lambda t: t[:0], "`new` has no rows"),
        (lambda t: t.assign(x=np.inf), "not finite"),
        (lambda t: 3, "`new` must be a table"),
    ],
)
def test_mistakes(change, says):
    t = table()
    fit, origin = unsampled("y ~ x + area + (1 | g)", t[:FIRST], "gaussian", weights="k")
    with pytest.raises((ValueError, TypeError), match=says):
        fitting.extended_model(origin, fit, change(t[FIRST:]))


def of_kind(values, kind):
    """A column of whole numbers as this type, or as a category of it."""
    column = pandas.Series(values, dtype=kind.removeprefix("category "))
    return column.astype("category") if kind.startswith("category") else column


SIGNLESS = ("uint8", "uint64", "UInt8", "category uint8", "category UInt8")


@pytest.mark.parametrize("ours, theirs", [*((one, "int64") for one in SIGNLESS), *(("int64", one) for one in SIGNLESS)])
def test_numbers_without_a_sign_are_the_labels_that_they_are(ours, theirs):
    """Pandas looks for 259 among labels of eight bits as for 3: in one column and in two, and in a response."""
    far = 7 if theirs != "int64" else 256 + 2
    t, new = pandas.DataFrame({"g": of_kind([1, 2, 3], ours)}), of_kind([3, far, 2], theirs)
    found = places([*t["g"]], new)
    assert found.tolist() == [2, -1, 1] and found.dtype == np.int32
    assert places([], new).tolist() == places([], new, new).tolist() == [-1, -1, -1]
    assert places([(g, "a") for g in t["g"]], new, ["a"] * 3).tolist() == [2, -1, 1]
    assert places([("a", g) for g in t["g"]], ["a"] * 3, new).tolist() == [2, -1, 1]


def test_labels_that_have_no_sign_at_all():
    """Above 2^63, beside small ones of either kind."""
    great = np.uint64(2**64 - 1)
    assert places([great, np.uint64(5)], pandas.array([5, 7], dtype="int64")).tolist() == [1, -1]
    assert places([great, np.uint64(5)], np.array([2**64 - 1, 2**63], dtype="uint64")).tolist() == [0, -1]
    assert places([-1, 5], np.array([2**64 - 1, 5], dtype="uint64")).tolist() == [-1, 1]


@pytest.mark.parametrize("family", ["bernoulli", "cumulative", "categorical"])
def test_a_response_that_only_pandas_takes_for_another(family):
    t = table()[["x"]].assign(y=np.resize(np.uint8([1, 2, 2, 1] if family == "bernoulli" else [0, 1, 2, 1]), N))
    fit, origin = unsampled("y ~ x", t[:FIRST], family)
    make = general.extended_model if isinstance(fit, general.FamilyFit) else fitting.extended_model
    later = t[FIRST:].assign(y=t["y"][FIRST:].astype(int))
    assert make(origin, fit, later)
    with pytest.raises(ValueError, match="the response 'y' is 258 in some row, and the fit has seen"):
        make(origin, fit, later.assign(y=258))


def test_new_groups_of_numbers_without_a_sign():
    """They are new groups in predictions, for which one asks, and in an update."""
    t = table()
    for g in (t["g"].astype("uint8"), t["g"].astype("uint8").astype("category")):
        fit, origin = unsampled("y ~ x + (1 | g)", t[:FIRST].assign(g=g[:FIRST]), "gaussian")
        new = pandas.DataFrame({"x": [1.0, 1.0], "g": [3, 259]})
        with pytest.raises(ValueError, match="the group '259' of 'g' was not in the data"):
            fit.predict(new, draws=2)
        three, none = fit.predict(new, draws=2, unseen="zero").T
        assert np.array_equal(three, fit.predict(new[:1], draws=2)[:, 0]) and not np.any(three == none)
        later = t[FIRST:].assign(g=np.where(np.arange(N - FIRST) < 9, 259, t["g"][FIRST:]))
        changed, notes = fitting.extended_model(origin, fit, later)
        assert 259 in changed["model"].groups[0].levels and notes[1] == "2 groups of g are new"


def test_responses_that_do_not_fit():
    t = table()
    later = t[FIRST:]
    for formula, family, changed, says in [
        (
            "b ~ x",
            "bernoulli",
            later.assign(b="dead"),
            "`new`: the response 'b' is 'dead' in some row, and the fit has seen ill, well",
        ),
        ("c ~ x", "poisson", later.assign(c=0.5), "must hold counts 0, 1, 2"),
        ("o ~ x", "cumulative", later.assign(o="top"), "'top' in some row, and the fit has seen low, mid, high only"),
        ("p ~ x", "gamma", later.assign(p=-1.0), "must hold finite numbers above 0"),
        (
            "I(y - np.mean(y)) ~ x",
            "gaussian",
            later,
            "response 'I\\(y - np.mean\\(y\\)\\)' is computed of the whole column",
        ),
        ("y ~ I(x - np.mean(x))", "gaussian", later, "is computed of the whole column"),
    ]:
        fit, origin = unsampled(formula, t[:FIRST], family)
        make = general.extended_model if isinstance(fit, general.FamilyFit) else fitting.extended_model
        with pytest.raises(ValueError, match=says):
            make(origin, fit, changed)
    fit, origin = unsampled("np.log(p) ~ x", t[:FIRST], "gaussian")
    model = fitting.extended_model(origin, fit, later)[0]["model"]
    np.testing.assert_array_equal(model.y, np.log(t.p))
    fit, origin = unsampled("scale(y) ~ x", t[:FIRST], "gaussian")
    model = fitting.extended_model(origin, fit, later)[0]["model"]
    np.testing.assert_allclose(model.y, (t.y - t.y[:FIRST].mean()) / t.y[:FIRST].std(ddof=0), rtol=1e-12)
    with pytest.raises(ValueError, match="was not sampled: call `.sample"):
        pdmp.regression("y ~ x", t, sample=False).update(t)


def test_imputed_columns_take_no_further_rows(monkeypatch):
    t = table()
    t.loc[[3, 7], "x"] = np.nan
    monkeypatch.setattr(general, "sample", lambda model, **options: SimpleNamespace(info={}))
    fit = pdmp.regression({"y": "y ~ mi(x)", "x": "x | mi() ~ w"}, t, sample=False, seed=1)
    sampled = general.sampled(*fit._sampled.args)
    with pytest.raises(ValueError, match="^update is not for fits with imputed columns: fit all rows, the old and the"):
        sampled.update(t)


def test_draws_of_the_priors_of_any_family():
    """In natural parameters, and back from the coordinates of the model; cuts ascend."""
    t, n = table(), 20_000
    formulas = {"p": "p ~ x + (1 | g)", "shape": "~ w"}
    gamma = pdmp.regression(formulas, t, "gamma", sample=False, seed=4)
    found = gamma.run.natural(n)
    laws = {"x": gamma.priors["x"], "shape: w": gamma.priors["shape: w"]}
    for name, prior in laws.items():
        assert stats.kstest(found[name], stats.norm(0.0, prior.sd).cdf).pvalue > 1e-4, name
    for prefix, column in (("", "x"), ("shape: ", "w")):
        at_means = found[prefix + "Intercept"] + found[prefix + column] * t[column].mean()
        prior = gamma.priors[prefix + "Intercept"]
        assert stats.kstest(at_means, stats.norm(prior.mean, prior.sd).cdf).pvalue > 1e-4, prefix
    assert stats.kstest(found["1|g"][:, 2] / found["sd(g)"], stats.norm().cdf).pvalue > 1e-4
    inflated = pdmp.regression("c ~ x", t, "zero_inflated_poisson", sample=False, seed=4)
    odds = inflated.run.natural(n)["zi"]
    assert stats.kstest(np.log(odds / (1.0 - odds)), stats.norm(0.0, 1.5).cdf).pvalue > 1e-4
    ordinal = pdmp.regression("o ~ x", t, "cumulative", sample=False, seed=4)
    natural = ordinal.run.natural(n)
    cuts = np.stack([natural[f"cut[{k}]"] - natural["x"] * t.x.mean() for k in (1, 2)])
    assert np.all(cuts[0] < cuts[1])
    both = stats.t(3, 0.0, 2.5)
    assert stats.kstest(cuts[0], lambda c: 1.0 - (1.0 - both.cdf(c)) ** 2).pvalue > 1e-4
    correlated = pdmp.regression("y ~ x + (1 + x + w | g)", t, sample=False, seed=4, priors={"cor(g)": LKJ(2.0)})
    natural = correlated.run.natural(n)
    share = stats.beta(2.5, 2.5)  # eta - 1 + d / 2, of each pair
    units = [natural[f"{name}|g"][:, 1] / natural["sd(g)" if name == "1" else f"sd({name}|g)"] for name in "1xw"]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        known = natural[f"cor({'1xw'[i]}, {'1xw'[j]}|g)"]
        assert stats.kstest(0.5 + 0.5 * known, share.cdf).pvalue > 1e-4
        rest = (units[j] - known * units[i]) / np.sqrt(1.0 - known**2)
        assert stats.kstest(rest, stats.norm().cdf).pvalue > 1e-4
        assert abs(np.corrcoef(rest, units[i])[0, 1]) < 4.0 / np.sqrt(n)
    for one in (gamma, inflated, ordinal, correlated):
        wanted, there = one.run.natural(7), one.run.constrain(one.run.draws(7))
        for name, value in wanted.items():
            np.testing.assert_allclose(there[name][0], value, rtol=1e-7, atol=1e-9, err_msg=name)
    with pytest.raises(ValueError, match="the prior of 'x' is Flat: it has no draws"):
        pdmp.regression("p ~ x", t, "gamma", priors={"x": Flat()}, sample=False).prior_predictive()


def nowhere(data):
    """Rows of weight 0 between the others, with placeholders: values, groups, levels and responses that no row has."""
    out = data.iloc[[0, 1, 2]].assign(k=0.0, x=[1e9, -3e8, np.nan], w=1e9, g=99, h="nowhere", area="sea", e=1e7)
    out = out.assign(n=10**6, y=[1e9, -1e9, 0.0], p=1e9, c=10**6, m=10**6, b="neither", early=1e9, late=1e9)
    both = pandas.concat([data[:5], out, data[5:]], ignore_index=True)
    return both.assign(o=pandas.Categorical(both.o, data.o.cat.categories, True))


@pytest.mark.parametrize(
    "formula, family",
    [
        pytest.param("y ~ scale(x) * area + s(w, k=5) + (1 + x | g)", "gaussian", marks=pytest.mark.slow),
        ("y ~ x + area + (1 | h)", "student_t"),
        ("c | rate(e) ~ mo(n) + x", "negative_binomial"),
        pytest.param("m | trials(n) ~ gp(x)", "binomial", marks=pytest.mark.slow),
        ("b ~ scale(x) + offset(w)", "bernoulli"),
        pytest.param("o ~ x + area", "cumulative", marks=pytest.mark.slow),
        ("h ~ x", "categorical"),
        ({"y": "y ~ mi(x) + w", "x": "x | mi() ~ w"}, "gaussian"),
    ],
)
def test_rows_of_weight_0_are_not_read(formula, family):
    """The same priors, law, predictions, LOO and further rows as without them."""
    t = table()
    t.loc[3, "x"] = np.nan if "mi(" in str(formula) else t.x[3]
    (one, first), (other, second) = (unsampled(formula, data, family, weights="k") for data in (t, nowhere(t)))
    assert f"3 of {N + 3} rows have weight 0, and are left out" in other.notes and other.n_rows == N
    assert one.priors == other.priors and repr(one.kept.columns) == repr(other.kept.columns)
    x = one.run.draws(3).reshape(-1, one.model.dim)
    np.testing.assert_array_equal([one.model.potential(v) for v in x], [other.model.potential(v) for v in x])
    asked = {"kind": "probability" if one.categories else "mean", "draws": 4, "seed": 1}
    np.testing.assert_array_equal(one.predict(**asked), other.predict(**asked))
    if "mi(" in str(formula):
        return
    rows = np.arange(N)
    np.testing.assert_array_equal(one.log_likelihoods(x, rows), other.log_likelihoods(x, rows))
    more = t[::3]
    of_more = [
        (general if isinstance(fit, general.FamilyFit) else fitting).extended_model(origin, fit, data)
        for fit, origin, data in ((one, first, more), (other, second, nowhere(more)))
    ]
    a, b = (found[0]["model"] for found in of_more)
    assert a.dim == b.dim and a.n_data == b.n_data
    np.testing.assert_array_equal(a.potential(a.initial), b.potential(a.initial))


@pytest.mark.parametrize("formula, family", [("y ~ x + area + (1 + x || h)", "student_t"), ("c ~ x + w", "poisson")])
def test_a_row_of_weight_2_is_as_two_rows(formula, family):
    """In the units and the default priors too; and the scale of weights decides neither."""
    t = table().assign(k=lambda t: 1.0 + t.g % 3)
    one, _ = unsampled(formula, t, family, weights="k")
    other, _ = unsampled(formula, t.loc[t.index.repeat(t.k.astype(int))], family)
    x = one.run.draws(3).reshape(-1, one.model.dim)
    np.testing.assert_allclose([one.model.potential(v) for v in x], [other.model.potential(v) for v in x], rtol=1e-11)
    small, _ = unsampled(formula, t.assign(k=1e-9 * t.k), family, weights="k")
    for name in one.priors:
        codes = [np.array(fit.priors[name].coded()) for fit in (one, other, small)]
        np.testing.assert_allclose(codes[1:], [codes[0]] * 2, rtol=1e-12)


@pytest.mark.parametrize(
    "weights, says", [([0.0], "nor 0 in every row"), ([1.0, -1.0], "-1"), ([np.inf], "not finite")]
)
def test_weights_that_are_none(weights, says):
    t = table().assign(k=np.resize(weights, N))
    for family in ("gaussian", "skew_normal"):
        with pytest.raises(ValueError, match=f"`weights`: the column.* {says}"):
            pdmp.regression("y ~ x", t, family, weights="k", sample=False)
