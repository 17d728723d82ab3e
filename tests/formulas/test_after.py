"""After a fit: effects, contrasts, slopes, hypotheses, checks and cross-validation, against arithmetic by hand."""

import contextlib
import copy
import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.formulas import fitting
from pdmp.formulas.design import describe
from pdmp.formulas.families import family_of
from pdmp.formulas.predictors import Together
from pdmp.models.priors import LKJ
from pdmp.models.regressions.mixed import GroupColumn
from pdmp.models.regressions.moved_coordinates import coordinates_of
from pdmp.models.regressions.standardised_effects import StandardisedEffects

pandas = pytest.importorskip("pandas")
Environment = pytest.importorskip("formulae.environment").Environment

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]

N, CHAINS = 60, 3


def table():
    rng = np.random.default_rng(5)
    found = {
        "age": rng.uniform(20.0, 70.0, N),
        "dose": rng.gamma(2.0, 1.0, N),
        "treated": (np.arange(N) % 3 == 1).astype(int),  # groups of unequal sizes
        "area": np.array(["city", "rural", "town", "city", "rural"])[np.arange(N) // 2 % 5],
        "clinic": np.array([0, 1, 2, 3, 0, 2, 0])[np.arange(N) // 3 % 7] + 10,
        "e": rng.uniform(0.5, 2.0, N),
    }
    found["y"] = 2.0 + 0.1 * found["age"] + rng.standard_normal(N)
    found["c"] = rng.poisson(3.0, N)
    found["b"] = np.where(rng.random(N) < 0.5, "well", "ill")
    return pandas.DataFrame(found)


class Made:
    """A run whose draws were made up: chains of different spread and mean."""

    def __init__(self, model, seed=0, spread=0.1):
        rng = np.random.default_rng(seed)
        self.model, self.chains, self.dim = model, CHAINS, model.dim
        size = spread * np.array([0.5, 1.0, 2.0])[:, None, None]
        self.x = model.initial + 0.2 * spread + size * rng.standard_normal((CHAINS, 400, model.dim))

    def draws(self, n):
        return self.x[:, :n]

    def constrain(self, x, model=None):
        return self.model.constrain(x)

    store, records = "skeleton", [SimpleNamespace(length=1.0)] * CHAINS
    events = np.full(CHAINS, 400)

    def summary(self):
        return SimpleNamespace(warnings=["what the run warns of: and why"], said={"what the run warns of: and why"})


def made(formula, family="gaussian", data=None, seed=0, spread=0.1, **options):
    """A fit with draws that were made up, its table, and its natural parameters, (draws,) each, of `n` draws."""
    data = table() if data is None else data
    roles = dict.fromkeys(("offset", "weights", "exposure", "select")) | options
    environment = Environment.capture(0).with_outer_namespace({"np": np})
    priors = roles.pop("priors", None)
    model, design, used, notes = fitting.make_model(
        describe(formula), data, family_of(family), priors, *roles.values(), environment=environment
    )
    columns = {role: roles[role] for role in ("offset", "exposure")}
    return pdmp.formulas.Fit(formula, family_of(family), model, Made(model, seed, spread), design, used, notes, columns)


def natural(fit, draws=600):
    """Draws of the parameters as a prediction of so many takes them."""
    return fit.model.constrain(fit.run.draws(draws // CHAINS).reshape(-1, fit.model.dim))


def of_draws(x, probability=0.95):
    """Mean, sd and interval over the draws, the first axis."""
    tail = 0.5 * (1.0 - probability)
    return x.mean(axis=0), x.std(axis=0), np.quantile(x, tail, axis=0), np.quantile(x, 1.0 - tail, axis=0)


def assert_estimates(found, x, probability=0.95):
    frame = found.to_dataframe()
    for name, wanted in zip(("estimate", "error", "lower", "upper"), of_draws(x, probability), strict=True):
        assert np.allclose(frame[name], wanted, rtol=1e-9), name
        assert np.array_equal(frame[name], getattr(found, name))


# -- conditional effects ----------------------------------------------------------------------------------------------

LINKS = {"gaussian": lambda z: z, "poisson": np.exp, "bernoulli": special.expit, "probit": special.ndtr}


@pytest.mark.parametrize("family, response", [("gaussian", "y"), ("poisson", "c"), ("bernoulli", "b"), ("probit", "b")])
def test_conditional_effects_by_hand(family, response):
    """Of age by area, with an interaction, a function of a third column at its mean, and effects of groups at zero."""
    fit = made(f"{response} ~ age * area + np.log(dose) + treated + (1 | clinic)", family)
    found = fit.conditional_effects("age:area", draws=600, probability=0.8, seed=1)
    t, p = table(), natural(fit)
    frame = found.to_dataframe()
    ages = np.linspace(t.age.min(), t.age.max(), 100)
    assert np.allclose(frame.age, np.repeat(ages, 3)) and list(frame.area[:3]) == ["city", "rural", "town"]
    z = np.empty((600, 100, 3))
    for k, area in enumerate(["city", "rural", "town"]):
        z[..., k] = (p["Intercept"] + p["np.log(dose)"] * np.log(t.dose.mean()) + p["treated"] / 3.0)[:, None]
        slope = p["age"] + (p[f"age:area[{area}]"] if k else 0.0)
        z[..., k] += slope[:, None] * ages + (p[f"area[{area}]"][:, None] if k else 0.0)
    z = z.reshape(600, -1)
    assert_estimates(found, LINKS[family](z), 0.8)
    assert_estimates(fit.conditional_effects(["age", "area"], draws=600, scale="link"), z)


def test_the_reference_of_a_category_is_its_usual_value():
    fit, at = made("y ~ age + C(area, Treatment('town')) + C(clinic, Treatment(11))"), {"age": [30.0, 65.0]}
    assert fit.conditional_effects("age", at=at).note.endswith("area = town, clinic = 11")
    assert at["age"] == [30.0, 65.0]  # what was given is as it was


def test_effects_of_groups_by_choice():
    """Zero, of a new group, whose spread intervals then have, and of a group that is named; offset and exposure."""
    fit = made("c ~ age + (1 + age | clinic)", "poisson", exposure="e", spread=0.5)
    t, p = table(), natural(fit)
    at = {"age": [40.0, 60.0]}
    base = (p["Intercept"] + np.log(t.e.mean()))[:, None] + p["age"][:, None] * [40.0, 60.0]
    assert_estimates(fit.conditional_effects("age", at=at, draws=600), np.exp(base))
    group = p["1|clinic"][:, 2, None] + p["age|clinic"][:, 2, None] * [40.0, 60.0]
    found = fit.conditional_effects("age", at=at | {"clinic": 12}, effects="fitted", draws=600)
    assert_estimates(found, np.exp(base + group))
    drawn = fit.conditional_effects("age", at=at, effects="draw", draws=600, scale="link", seed=3).draws - base
    rng = np.random.default_rng(3)
    one, slope = rng.standard_normal((2, 600))
    assert np.allclose(drawn[:, 0], one * p["sd(clinic)"] + 40.0 * slope * p["sd(age|clinic)"])
    assert np.allclose(drawn[:, 1], one * p["sd(clinic)"] + 60.0 * slope * p["sd(age|clinic)"])
    by_group = fit.conditional_effects("clinic", effects="fitted", draws=600, scale="link")
    z = (p["Intercept"] + np.log(t.e.mean()) + p["age"] * t.age.mean())[:, None]
    assert_estimates(by_group, z + p["1|clinic"] + p["age|clinic"] * t.age.mean())
    with pytest.raises(ValueError, match=r"needs a group: name one, such as at=\{'clinic': 10\}"):
        fit.conditional_effects("age", effects="fitted")
    with pytest.raises(ValueError, match="names the groups 'clinic': their effects need effects=\"fitted\""):
        fit.conditional_effects("clinic")
    with pytest.raises(ValueError, match="`effects` = 'zero' is for a table: give that of the fit as `new`"):
        fit.predict(effects="zero")


def test_correlations_of_three_columns_stand_in_their_places():
    values = {("1", "x"): [0.1, -0.2], ("1", "log(w)"): [0.3, 0.4], ("x", "log(w)"): [-0.5, 0.6]}
    natural = {f"mu: cor({a}, {b}|g)": np.array(value) for (a, b), value in values.items()}
    columns = [GroupColumn(name, "g", (), None, None, None) for name in ("1|g", "x|g", "log(w)|g")]
    found = Together([("mu: ", g) for g in columns]).matrix(natural)
    wanted = (
        [[1.0, 0.1, 0.3], [0.1, 1.0, -0.5], [0.3, -0.5, 1.0]],
        [[1.0, -0.2, 0.4], [-0.2, 1.0, 0.6], [0.4, 0.6, 1.0]],
    )
    assert np.array_equal(found, wanted)


# -- averages over rows -----------------------------------------------------------------------------------------------


@pytest.fixture
def counts():
    return made("c ~ age * area + poly(dose, 2) + treated * area + (1 | clinic)", "poisson", exposure="e")


def by_hand(fit, rows, effects=True, draws=600):
    """exp of the linear predictors of the fit `counts`, (draws, rows), coded here."""
    t, p = table(), natural(fit, draws)
    names = ["age", "treated", "Intercept"]
    z = sum(p[name][:, None] * np.asarray(rows[name], float) for name in names[:2]) + p["Intercept"][:, None]
    for area in ("rural", "town"):
        here = (rows.area == area).to_numpy(float)
        slope = p[f"age:area[{area}]"][:, None] * rows.age.to_numpy()
        z += here * (
            p[f"area[{area}]"][:, None] + slope + p[f"treated:area[{area}]"][:, None] * rows.treated.to_numpy()
        )
    # Orthogonal polynomials of the dose, by their values on the fit's rows.
    basis = fit.design.new(t)[0][:, [fit.design.columns.index(f"poly(dose, 2)[{k}]") for k in (0, 1)]]
    powers = np.vander(t.dose, 3)
    coded = np.vander(rows.dose, 3) @ np.linalg.lstsq(powers, basis, rcond=None)[0]
    z += sum(p[f"poly(dose, 2)[{k}]"][:, None] * coded[:, k] for k in (0, 1)) + np.log(rows.e.to_numpy())
    if effects:
        z += p["1|clinic"][:, rows.clinic.to_numpy() - 10]
    return z


def test_means_and_contrasts_by_hand(counts):
    """Of levels of a category, by another column: all rows get them; differences and ratios, on both scales."""
    t = table()
    means = {
        (one, area): np.exp(by_hand(counts, t.assign(treated=one, area=area))).mean(axis=1)
        for one in (0, 1)
        for area in ("city", "rural", "town")
    }
    found = counts.marginal_means("area", by="treated", draws=600, probability=0.9)
    assert list(zip(found.keys["treated"], found.keys["area"], strict=True)) == list(means)
    assert_estimates(found, np.stack(list(means.values()), axis=-1), 0.9)
    pairs = [("city", "rural"), ("city", "town"), ("rural", "town")]
    differences = np.stack([means[one, b] - means[one, a] for one in (0, 1) for a, b in pairs], axis=-1)
    found = counts.contrasts("area", by="treated", draws=600, probability=0.8)
    assert found.keys["area"] == ["rural - city", "town - city", "town - rural"] * 2
    assert found.keys["treated"] == [0.0] * 3 + [1.0] * 3
    assert_estimates(found, differences, 0.8)
    ratios = np.stack([means[one, b] / means[one, a] for one in (0, 1) for a, b in pairs], axis=-1)
    found = counts.contrasts("area", by="treated", compare="ratio", draws=600, probability=0.6)
    assert found.keys["area"] == ["rural / city", "town / city", "town / rural"] * 2
    assert_estimates(found, ratios, 0.6)
    links = [by_hand(counts, t.assign(age=age, treated=1), effects=False).mean(axis=1) for age in (30.0, 50.0)]
    at = {"age": [30.0, 50.0], "treated": 1}
    found = counts.contrasts("age", at=at, effects="zero", scale="link", draws=600)
    assert found.keys["age"] == ["50 - 30"]
    assert_estimates(found, (links[1] - links[0])[:, None])
    # One value for other columns, which all rows get, in averages, contrasts and slopes alike.
    at = {"treated": 1, "dose": 2.5, "clinic": 12}
    there = [np.exp(by_hand(counts, t.assign(**at, area=area))).mean(axis=1) for area in ("city", "rural", "town")]
    assert_estimates(counts.marginal_means("area", at=at, draws=600), np.stack(there, axis=-1))
    later, earlier = [1, 2, 2], [0, 0, 1]
    found = counts.contrasts("area", at=at | {"area": ["city", "rural", "town"]}, draws=600)
    assert_estimates(found, np.stack([there[b] - there[a] for a, b in zip(earlier, later, strict=True)], axis=-1))
    small = 1e-6
    two = [np.exp(by_hand(counts, t.assign(**at, age=t.age + side * small))).mean(axis=1) for side in (-1.0, 1.0)]
    found = counts.slopes("age", at=at, draws=600)
    assert np.allclose(found.draws[:, 0], (two[1] - two[0]) / (2.0 * small), rtol=1e-4, atol=1e-7)
    for effects in ("zero", "draw"):  # in which the group would change nothing
        for method in (counts.contrasts, counts.marginal_means, counts.conditional_effects):
            with pytest.raises(
                ValueError, match=f"`at` names a group of 'clinic', and `effects` is '{effects}', for which"
            ):
                method("area", at={"clinic": 13}, effects=effects)


def test_slopes_by_hand(counts, monkeypatch):
    """Derivatives of products with levels, and of polynomials, through the link; in blocks of rows; at a value."""
    from pdmp.formulas import averages

    t, p = table(), natural(counts)
    mean = np.exp(by_hand(counts, t))
    slope = p["age"][:, None] + sum(
        p[f"age:area[{area}]"][:, None] * (t.area == area).to_numpy(float) for area in ("rural", "town")
    )
    monkeypatch.setattr(averages, "NUMBERS", 600 * 7)
    found = counts.slopes("age", draws=600)
    assert np.allclose(found.draws[:, 0], (mean * slope).mean(axis=1), rtol=2e-5) and found.keys == {"slope": ["age"]}
    small = 1e-6
    two = [by_hand(counts, t.assign(area="town", dose=t.dose + side * small)) for side in (-1.0, 1.0)]
    found = counts.slopes("dose", by="area", draws=600, scale="link")
    assert found.keys == {"area": ["city", "rural", "town"], "slope": ["dose"] * 3}
    assert np.allclose(found.draws[:, 2], (two[1] - two[0]).mean(axis=1) / (2.0 * small), rtol=1e-3, atol=1e-6)
    # Links of the dose are the same in all areas, as only age and treated are in products.
    assert np.allclose(found.draws[:, 0], found.draws[:, 2])
    beyond = t.assign(age=t.age + 60.0)  # all but a few rows are older than any of the fit's
    there = np.exp(by_hand(counts, beyond)) * slope
    found = counts.slopes("age", data=beyond, draws=600, probability=0.7)
    assert np.allclose(found.draws[:, 0], there.mean(axis=1), rtol=2e-5)
    assert_estimates(found, found.draws, 0.7)
    at_forty = np.exp(by_hand(counts, t.assign(age=40.0)))
    found = counts.slopes("age", at={"age": 40.0}, draws=600)
    assert np.allclose(found.draws[:, 0], (at_forty * slope).mean(axis=1), rtol=1e-6)


def test_slopes_stay_within_the_values_of_their_column():
    """Beyond which a function may not be defined: at the smallest to the right, at the largest to the left."""
    dose = np.linspace(0.0, 4.0, N)
    fit = made("y ~ I(np.sqrt(dose) ** 3) + I(np.sqrt(4.0 - dose) ** 3)", data=table().assign(dose=dose))
    p = natural(fit)
    a, b = (p[name][:, None] for name in fit.base.columns if name != "Intercept")
    found = fit.slopes("dose", draws=600).draws[:, 0]
    slopes = 1.5 * (a * np.sqrt(dose) - b * np.sqrt(4.0 - dose))
    assert np.allclose(found, slopes.mean(axis=1), rtol=1e-4, atol=1e-4)
    # The row that is named is not that of a step, which comes first.
    steep = made("y ~ np.sqrt(dose) + np.floor(dose)", data=table().assign(dose=dose[::-1]))
    with pytest.raises(ValueError, match=r"infinitely steep in 'dose' at 1 rows, such as at 0.*contrasts\('dose'\)"):
        steep.slopes("dose", draws=600)


@pytest.mark.parametrize(
    ("term", "on_step", "slope"),
    [
        ("I(age >= 45)", [45], 0.0),
        ("I(age == 20)", [20], 0.0),  # the smallest, of which only one side is seen
        ("np.floor(age / 10)", [30, 40, 50, 60, 70], 0.0),
        ("np.where(age < 45, 0.0, age)", [45], lambda age: np.where(age < 45, 0.0, np.where(age == 45, 0.5, 1.0))),
        ("I(age > 44.9999)", [], 0.0),  # within the difference, but no row is on it
        ("np.maximum(age - 45.0001, 0)", [], lambda age: 1.0 * (age > 45)),  # a kink within it
    ],
)
def test_slopes_of_rows_on_a_step(term, on_step, slope):
    """They are the slopes beside it, on average of its sides, with a warning; a kink or a step nearby needs none."""
    age = np.round(table().age).clip(20, 70)
    age[:4] = 20, 70, 45, 30
    fit = made(f"y ~ dose + age + {term}", data=table().assign(age=age))
    column = next(name for name in fit.base.columns if name not in ("Intercept", "dose", "age"))
    p, count = natural(fit), int(np.isin(age, on_step).sum())
    said = pytest.warns(UserWarning, match=rf"{count} of {N} rows lie on a step .*'age'.*contrasts\('age'")
    with said if count else contextlib.nullcontext():
        found = fit.slopes("age", draws=600).draws[:, 0]
    beside = np.mean(slope(age) if callable(slope) else slope)
    assert np.allclose(found, p["age"] + p[column] * beside, rtol=1e-5, atol=1e-6)


def test_rows_on_a_step_are_counted_where_they_are_most(monkeypatch):
    """Of several values of another column, in blocks of rows."""
    from pdmp.formulas import averages

    age = np.round(table().age).clip(20, 70)
    age[:5] = 45, 30, 45, 30, 30
    fit = made("y ~ I((age >= 45) + (age >= 30) * (treated == 0))", data=table().assign(age=age))
    monkeypatch.setattr(averages, "NUMBERS", 60 * 7)
    with pytest.warns(UserWarning, match=rf"{int(np.isin(age, [30, 45]).sum())} of {N} rows lie on a step"):
        found = fit.slopes("age", by="treated", draws=60)
    assert found.keys["treated"] == [0, 1] and np.allclose(found.draws, 0.0, atol=1e-6)


@pytest.mark.parametrize("at_a_time", [20, 7])
def test_a_row_of_weight_two_counts_as_two_in_averages(at_a_time, monkeypatch):
    """Rows that were drawn are weighed among themselves, in blocks too; those of another table count once."""
    from pdmp.formulas import averages, kept

    monkeypatch.setattr(kept, "ROWS", 20)
    monkeypatch.setattr(averages, "NUMBERS", 600 * at_a_time)
    w = np.repeat([0.5, 1.0, 2.0, 3.5], N // 4)[table().age.rank().astype(int) - 1]  # the old count more
    fit = made("c ~ age + treated", "poisson", data=table().assign(w=w), weights="w")
    rows, own = fit.kept.rows, w[fit.kept.places]
    assert len(rows) == 20 and len(set(own)) == 4
    treated, untreated = (fit.predict(rows.assign(treated=one), draws=600) for one in (1, 0))
    found = fit.contrasts("treated", draws=600)
    each = treated - untreated
    assert np.allclose(found.draws[:, 0], np.average(each, axis=1, weights=own), rtol=1e-10)
    assert not np.allclose(found.draws[:, 0], each.mean(axis=1), rtol=1e-3)
    of_rows = each.mean(axis=0)
    off = own / own.mean() * (of_rows - np.average(of_rows, weights=own))
    assert found.note.endswith(f"adds errors of up to {math.sqrt((1.0 - 20 / N) / 20) * off.std():.2g}")
    once = fit.contrasts("treated", draws=600, data=rows)
    assert np.allclose(once.draws[:, 0], each.mean(axis=1), rtol=1e-10)


def test_averages_over_some_of_the_rows(monkeypatch):
    """Rows that were drawn, and what that adds to errors; another table; one new group is the same in all blocks."""
    from pdmp.formulas import averages, kept

    monkeypatch.setattr(kept, "ROWS", 20)
    fit, t = made("c ~ age + treated + (1 | clinic)", "poisson"), table()
    chosen, p = fit.design.kept.places, natural(fit)
    assert chosen[-1] > 45  # not the first ones
    ages = fit.conditional_effects("age", draws=3).keys["age"]  # what is usual is of all rows
    assert (ages[0], ages[-1]) == (t.age.min(), t.age.max()) and not {t.age.idxmin(), t.age.idxmax()} <= set(chosen)
    column = fit.kept.columns["age"]
    assert (column.mean, column.sd) == pytest.approx((t.age.mean(), t.age.std(ddof=0)), rel=1e-12)
    assert (
        len(chosen) == 20
        and np.all(np.diff(chosen) > 0)
        and fit.design.kept.rows.equals(t[["age", "treated", "clinic", "c"]].iloc[chosen])
    )
    z = p["Intercept"][:, None] + p["age"][:, None] * t.age.to_numpy() + p["treated"][:, None] * t.treated.to_numpy()
    mean = np.exp(z + p["1|clinic"][:, t.clinic.to_numpy() - 10])
    slope = mean * p["age"][:, None]
    found = fit.slopes("age", draws=600)
    assert np.allclose(found.draws[:, 0], slope[:, chosen].mean(axis=1), rtol=2e-5)
    error = slope[:, chosen].mean(axis=0).std() * math.sqrt((1.0 - 20 / 60) / 20)
    assert found.note == f"averages over 20 rows, drawn from 60, which adds errors of up to {error:.2g}"
    # Of several estimates the largest of these errors, of differences where these are estimated.
    links = z[:, chosen] + p["1|clinic"][:, t.clinic.to_numpy()[chosen] - 10]
    shifts = [
        np.exp(links + (one - t.treated.to_numpy()[chosen]) * p["treated"][:, None]).mean(axis=0) for one in (0, 1)
    ]
    share = math.sqrt((1.0 - 20 / 60) / 20)
    for found, of_rows in (
        (fit.marginal_means("treated", draws=600), shifts),
        (fit.contrasts("treated", draws=600), [shifts[1] - shifts[0]]),
    ):
        assert len({round(one.std(), 6) for one in of_rows}) == len(of_rows)
        assert found.note.endswith(f"which adds errors of up to {share * max(one.std() for one in of_rows):.2g}")
    whole = fit.slopes("age", draws=600, data=t)
    assert np.allclose(whole.draws[:, 0], slope.mean(axis=1), rtol=2e-5) and whole.note == "averages over 60 rows"
    monkeypatch.setattr(averages, "NUMBERS", 600 * 7)
    drawn = fit.marginal_means("treated", effects="draw", draws=600, data=t, seed=2, scale="link").draws
    plain = fit.marginal_means("treated", effects="zero", draws=600, data=t, scale="link").draws
    assert np.allclose(drawn[:, 1] - drawn[:, 0], p["treated"]) and np.allclose(
        drawn[:, 0] - plain[:, 0], drawn[:, 1] - plain[:, 1]
    )
    again, other = (
        fit.marginal_means("treated", effects="draw", draws=600, data=t, seed=seed, scale="link").draws
        for seed in (2, 3)
    )
    assert np.array_equal(again, drawn) and not np.allclose(other, drawn)
    assert ((drawn - plain)[:, 0] / p["sd(clinic)"]).std() == pytest.approx(1.0, rel=0.15)  # five standard errors


EFFECTS, CHECK = "conditional_effects", "pp_check"


@pytest.mark.parametrize(
    "method, given, says",
    [
        (EFFECTS, {"term": "agee"}, "`term` names 'agee', which is no column of the formula; did you mean 'age'?"),
        (EFFECTS, {"term": "age:age"}, "`term` must name each column once, got 'age:age'."),
        (EFFECTS, {"term": 3}, '`term` must name columns of the table, such as "age", got 3.'),
        (
            EFFECTS,
            {"term": "age:area:dose"},
            "`term` must name one or two columns, got 3: give values of others in `at`.",
        ),
        (
            EFFECTS,
            {"term": "age", "at": {"dose": [1, 2]}},
            "`at`: 'dose' must be one value, unless it is what is varied",
        ),
        (EFFECTS, {"term": "age", "at": {"doze": 1}}, "`at` names 'doze', which is no column of the formula"),
        (EFFECTS, {"term": "age", "at": ["dose"]}, "`at` must be a dict of columns and values"),
        (EFFECTS, {"term": "age", "scale": "log"}, "`scale` must be"),
        (EFFECTS, {"term": "age", "probability": 95}, "`probability` must be above 0 and below 1, got 95."),
        (EFFECTS, {"term": "age", "at": {"area": "moon"}}, "levels"),
        (EFFECTS, {"term": "e"}, "`term` names 'e', which is no column of the formula"),  # it is the weights
        (CHECK, {"kind": "rootogram"}, "`kind`: a rootogram is of counts, and 'y' has other numbers"),
        (CHECK, {"kind": "box"}, "`kind` must be"),
        (CHECK, {"kind": "groups"}, "`by` must name a column of the formula, age, dose, area, clinic, e, got None."),
        (CHECK, {"by": "ares"}, "`by` must name a column of the formula, age, dose, area, clinic, e, got 'ares'."),
        (CHECK, {"by": "age"}, "`by`: 'age' has 60 values in 60 rows: too many."),
        (CHECK, {"kind": "density", "by": "area"}, "`by` is for kind=\"groups\", not 'density'."),
        (CHECK, {"kind": "statistic", "statistic": "mode"}, "`statistic` must be"),
        (CHECK, {"statistic": 3, "kind": "statistic"}, "`statistic` must be a name or a function of an array, got"),
        ("contrasts", {"column": "age"}, "say which, such as at={'age': [29.99, 60.16]}, or"),
        ("contrasts", {"column": "area", "by": "area"}, "`by` must be another column than 'area'."),
        ("contrasts", {"column": "area", "by": ["age"]}, "`by` must be the name of a column, got ['age']."),
        ("contrasts", {"column": "area", "at": {"area": "city"}}, "`contrasts`: 'area' has one value only, 'city'."),
        ("contrasts", {"column": "area", "at": {"age": [1, 2]}}, "`at`: 'age' must be one value, unless it is what is"),
        (
            "contrasts",
            {"column": "clinic", "effects": "zero"},
            "effects of the groups 'clinic' need effects=\"fitted\"",
        ),
        ("contrasts", {"column": "area", "compare": "odds"}, "`compare` must be"),
        ("slopes", {"column": "area"}, "`slopes`: 'area' is a category: ask for contrasts('area')."),
        ("slopes", {"column": "ages"}, "`slopes` names 'ages', which is no column of the formula; did you mean 'age'?"),
        ("marginal_means", {"column": "area", "by": "b"}, "`by` names 'b', which is no column of the formula"),
    ],
)
def test_mistakes_after_a_fit(method, given, says):
    fit = made("y ~ age + dose + area + (1 | clinic)", weights="e")
    with pytest.raises((TypeError, ValueError)) as error:
        getattr(fit, method)(**given)
    assert says in str(error.value)
    fit.model.coded = "in files"
    with pytest.raises(ValueError, match="the rows of the fit were read in batches: give a table of some of them as"):
        fit.slopes("age")


# -- hypotheses -------------------------------------------------------------------------------------------------------


def test_hypotheses_by_hand():
    """Several at once: estimates, probabilities and evidence ratios, of names with brackets, colons and bars."""
    fit = made("y ~ age * area + np.log(dose) + I(treated > 0) + (1 | clinic)", spread=0.8)
    p = natural(fit, 1_200)
    wanted = {
        "age > 0": p["age"],
        "area[rural] - 2*`age:area[town]` < area[town] / 3": p["area[rural]"]
        - 2.0 * p["age:area[town]"]
        - p["area[town]"] / 3.0,
        "age:area[rural] >= age:area[town]": p["age:area[rural]"] - p["age:area[town]"],
        "-(np.log(dose) + 1) ** 2 < sigma * -1.5e0": -((p["np.log(dose)"] + 1.0) ** 2) + 1.5 * p["sigma"],
        "I(treated > 0) > Intercept": p["I(treated > 0)"] - p["Intercept"],
        "1|clinic[12] > `1|clinic[13]` + sd(clinic)": p["1|clinic"][:, 2] - p["1|clinic"][:, 3] - p["sd(clinic)"],
    }
    found = fit.hypothesis(*wanted, draws=1_200)
    assert_estimates(found, np.stack(list(wanted.values()), axis=-1))
    frame = found.to_dataframe()
    for row, text in enumerate(wanted):
        theta = wanted[text] * (-1.0 if "<" in text else 1.0)
        share = np.mean(theta > 0.0)
        assert 0.0 < share < 1.0 and frame.probability[row] == share
        assert frame.evidence_ratio[row] == pytest.approx(share / (1.0 - share))
    fit.run.x[:, ::3, 1] = 0.0  # as of coefficients that may be 0: that is contrary to > and <, and not to >= and <=
    drawn = natural(fit, 1_200)[fit.model.columns[1]]
    for sign, right in ((">", drawn > 0.0), ("<", drawn < 0.0), (">=", drawn >= 0.0), ("<=", drawn <= 0.0)):
        found = fit.hypothesis(f"{fit.model.columns[1]} {sign} 0", draws=1_200).further
        share, contrary = right.mean(), 1.0 - right.mean()
        assert found == {"probability": [share], "evidence_ratio": [pytest.approx(share / contrary)]}
    certain = fit.hypothesis("sigma > -1", "sigma < -1", draws=1_200)
    assert certain.further == {"probability": [1.0, 0.0], "evidence_ratio": [math.inf, 0.0]}


def test_names_that_begin_with_another_name_are_found_whole():
    from pdmp.formulas.hypotheses import Expression

    names = ["s(x)", "C(g)[b]", "s(x)[2]", "C(g)[b]:x", "x"]
    values = {name: np.array([1.0, 10.0]) * 7.0**k for k, name in enumerate(names)}
    for known in (names, names[::-1]):
        found = Expression("s(x)[2] - 2 * C(g)[b]:x + s(x) * C(g)[b] - x", known).at(values)
        a, b, c, d, e = values.values()
        np.testing.assert_allclose(found, c - 2.0 * d + a * b - e)


def test_the_density_of_a_positive_parameter_does_not_spill_below_zero():
    """Half-normal draws, as dense at 0 as anywhere: kernels on the logarithm; of another number they spill."""
    from pdmp.formulas.hypotheses import Expression, density_at_zero
    from pdmp.models.priors import HalfNormal, Normal

    s = np.abs(2.0 * np.random.default_rng(3).standard_normal(40_000))
    for place in (0.02, 0.1, 1.0):
        truth = 2.0 * stats.norm.pdf(place, scale=2.0)
        for text, scale in ((f"s - {place}", 1.0), (f"{4 * place} - 4 * s", 4.0)):
            theta, values = Expression(text, ["s"]), {"s": s}
            drawn = theta.at(values)
            found = density_at_zero(SimpleNamespace(priors={"s": HalfNormal(2.0)}), theta, values, drawn)
            assert found == pytest.approx(truth / scale, rel=0.1)
            if place < 0.05:
                other = density_at_zero(SimpleNamespace(priors={"s": Normal(0.0, 2.0)}), theta, values, drawn)
                assert other < 0.7 * truth / scale


@pytest.mark.parametrize(
    ("above", "below", "is_known"), [(20, 80, True), (19, 81, False), (80, 20, True), (81, 19, False)]
)
def test_a_density_needs_twenty_draws_on_each_side(above, below, is_known):
    from pdmp.formulas.hypotheses import posterior_density

    x = np.concatenate([np.linspace(0.1, 2.0, above), -np.linspace(0.1, 3.0, below), np.zeros(30)])
    assert math.isnan(posterior_density(x)) != is_known


def test_equations_by_hand():
    """The ratio of densities: the posterior's of normal draws is theirs; the prior's is that of the weighted sum."""
    from pdmp.models.priors import Gamma, HalfStudentT, Normal, StudentT

    priors = {"age": Normal(0.1, 0.2), "dose": Normal(-0.3, 0.5), "Intercept": Normal(7.0, 3.0)}
    priors |= {"treated": StudentT(4.0, 0.0, 1.0), "sigma": HalfStudentT(3.0, 2.0), "sd(clinic)": Gamma(2.0, 0.5)}
    fit, t = made("y ~ age + dose + treated + (1 | clinic)", priors=priors), table()
    rng, x, p = np.random.default_rng(1), fit.run.x, fit.model.constrain
    x[...] = fit.model.initial + 0.6 * rng.standard_normal((CHAINS, 400, fit.model.dim))
    normal = stats.norm.pdf
    means, sds = [0.1, -0.3], [0.2, 0.5]
    centre = {"age": t.age.mean(), "dose": t.dose.mean()}

    def posterior(theta):
        return normal(0.0, theta.mean(), theta.std())

    d = p(x.reshape(-1, fit.model.dim))
    theta = d["age"] - 2.0 * d["dose"] - 0.5
    prior = normal(0.0, means[0] - 2.0 * means[1] - 0.5, math.hypot(sds[0], 2.0 * sds[1]))
    found = fit.hypothesis("age - 2*dose = 0.5", "age == 0.1", "treated = 0.2", draws=1_200)
    ratios = [
        posterior(theta) / prior,
        posterior(d["age"] - 0.1) / normal(0.0, 0.0, 0.2),
        posterior(d["treated"] - 0.2) / stats.t.pdf(0.2, 4.0),
    ]
    assert found.further["evidence_ratio"] == pytest.approx(ratios, rel=0.12)  # four errors of kernels of 1,200 draws
    assert found.further["probability"] == pytest.approx([r / (1.0 + r) for r in found.further["evidence_ratio"]])
    assert "fewer than" not in found.note
    # The priors' parts exactly.
    from pdmp.formulas.hypotheses import density, posterior_density, prior_density, read

    known = list(fit.priors)

    def prior_at_zero(text):
        return prior_density(fit, read(text, known, [])[0])

    assert prior_at_zero("age - 2*dose = 0.5") == pytest.approx(prior)
    for text in ("(age - 0.3) * 4 = 2 * (dose + 1) - 3**2", "-(2 * (1 + dose) - 9) / 4 + (age - 0.3) = 0"):
        scale = 4.0 if text.endswith("2") else 1.0
        constant, slopes = scale * np.array([-0.3 - 0.5 + 2.25, 0.0]), scale * np.array([1.0, -0.5])
        law = normal(0.0, constant.sum() + slopes @ means, np.hypot(*(slopes * sds)))
        assert prior_at_zero(text) == pytest.approx(law)
    assert prior_at_zero("(treated + 1) / 4 = 0.35") == pytest.approx(4.0 * stats.t.pdf(0.4, 4.0))
    assert prior_at_zero("treated/4 = 0.2 - 0.1") == pytest.approx(4.0 * stats.t.pdf(0.4, 4.0))
    assert prior_at_zero("2 * sigma = 3") == pytest.approx(stats.t.pdf(0.75, 3.0) / 2.0)
    assert prior_at_zero("sd(clinic) = 1.2") == pytest.approx(stats.gamma.pdf(1.2, 2.0, scale=0.5))
    # That of the intercept is for rows at the means: 7 ± 3 is of Intercept + 0.1 mean(age) + … .
    fit = made("y ~ age + dose", priors={name: priors[name] for name in ("age", "dose", "Intercept")})
    mean = 7.0 - centre["age"] * 0.1 + centre["dose"] * 0.3
    sd = math.sqrt(9.0 + (0.2 * centre["age"]) ** 2 + (0.5 * centre["dose"]) ** 2)
    assert prior_at_zero("Intercept = 1") == pytest.approx(normal(1.0, mean, sd))
    # Kernels have the variance of the draws: of few normal draws no bias of that kind is left.
    z = stats.norm.ppf((np.arange(1_000) + 0.5) / 1_000)
    assert posterior_density(2.0 * (z - 1.5)) == pytest.approx(normal(1.5) / 2.0, rel=0.005)
    assert math.isnan(posterior_density(z - 2.1))  # 18 of them are beyond, and 23 here
    assert math.isnan(posterior_density(2.1 - z)) and posterior_density(2.0 - z) == posterior_density(z - 2.0)
    assert posterior_density(z - 2.0) == pytest.approx(normal(2.0), rel=0.03)
    assert density(Normal(1.0, 2.0), 0.5) == pytest.approx(normal(0.5, 1.0, 2.0))


def test_the_prior_of_a_correlation_is_of_another_number():
    """LKJ's is of artanh of it: of effects that are sub-sampled as of others."""
    fit = made("y ~ age + (1 | clinic)")
    fit.priors["cor(1, age|clinic)"] = LKJ(1.0)
    assert type(fit) is pdmp.formulas.Fit and not fit.knows_prior("cor(1, age|clinic)") and fit.knows_prior("age")


@pytest.mark.parametrize(
    "text, says",
    [
        ("age", "need one of <, > and =, such as \"age > 0\", got 'age'."),
        ("0 < age < 1", "need one of <, > and ="),
        ("age >", "need something on both sides"),
        ("-agee > 0", "names 'agee', which is no parameter; did you mean 'age'?"),
        ("`age:dose` > 0", "names 'age:dose', which is no parameter"),
        ("age:dose > 0", "'age:dose' cannot be read: write sums, products and powers"),
        ("__import__('os').system('ls') > 0", "has more than arithmetic"),
        ("_0_ > 0", "names '_0_', which is no parameter"),
        ("age + _0_ > 0", "names '_0_', which is no parameter"),
        ("age + True > 0", "has more than arithmetic"),
        ("age // 2 > 0", "has more than arithmetic"),
        ("(age > 0", "'(age' cannot be read"),
        ("age) > (0", "'age)' cannot be read"),
        ("1|clinic[9] > 0", "'clinic' has no group '9'"),
        ("sigma ** 0.5 - age = 0", "is not known, as it is not a weighted sum of parameters; ask for < or >."),
        ("age = sigma", "is not known, as the prior of 'sigma' is not Normal; ask for < or >."),
        ("1|clinic[11] = 0", "is not known, as '1|clinic[11]' is an effect of a group; ask for < or >."),
        ("dose = 0", "is not known, as that of 'dose' is flat; give a proper one in `priors`, or ask for < or >."),
        ("sigma = -1", "is not known, as -1 is not inside of the range of 'sigma'; ask for < or >."),
        ("age - age = 0", "has no parameter"),
        ("1 / (age - age) > 0", "is not finite in 60 draws."),
        (3, 'must be texts such as "age > 0", got 3.'),
    ],
)
def test_mistakes_in_hypotheses(text, says):
    from pdmp.models.priors import Flat

    fit = made("y ~ age + dose + (1 | clinic)", priors={"dose": Flat()})
    with pytest.raises((TypeError, ValueError)) as error:
        fit.hypothesis(text, draws=60)
    assert says in str(error.value)


# -- leave-one-out cross-validation -----------------------------------------------------------------------------------


def test_the_difference_estimator_is_unbiased():
    """Over all choices of 3 of 7 rows: the sum, the variance of its estimates, and the spread of the terms."""
    from pdmp.formulas.loo import difference_estimate

    rng = np.random.default_rng(2)
    values = -1.0 - rng.gamma(1.0, 1.0, 7)
    near = values + rng.normal(0.3, 0.4, 7)
    found = [
        difference_estimate(values[list(rows)], near, np.array(rows), 7) for rows in itertools.combinations(range(7), 3)
    ]
    totals, variances, spreads = np.array(found).T
    assert totals.mean() == pytest.approx(values.sum(), rel=1e-12)
    assert variances.mean() == pytest.approx(totals.var(), rel=1e-12)
    assert spreads.mean() == pytest.approx(7.0 * values.var(), rel=1e-12)
    assert difference_estimate(values, None, np.arange(7), 7) == (values.sum(), 0.0, 7.0 * np.var(values))


def test_smoothed_weights_are_those_of_arviz():
    """Of light and heavy tails, few and many draws, chains together; in blocks too."""
    from arviz_stats.base import array_stats

    from pdmp.formulas import pareto_smoothing

    rng = np.random.default_rng(6)
    for draws, efficiency in ((40, 1.0), (230, 1.4), (900, 0.6)):
        values = -1.0 - rng.gamma(0.7, 1.0, (draws, 9)) * np.geomspace(0.01, 3.0, 9)
        wanted = array_stats.loo(values[None], chain_axis=0, draw_axis=1, r_eff=efficiency)
        found = pareto_smoothing.loo_densities(values, efficiency)
        assert np.allclose(found, wanted[:2], rtol=1e-9) and found[1].min() < 0.4 < found[1].max()
        n = pareto_smoothing.tail_length(draws, efficiency)
        for size in (1, 4, 8):  # blocks of one, and one row that is left
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pareto_smoothing, "NUMBERS", size * max(n * (30 + int(math.sqrt(n))), draws))
                assert np.allclose(found, pareto_smoothing.loo_densities(values, efficiency), rtol=1e-12)


def plain_importance(fit, draws):
    """log p(yᵢ | y without i) by the harmonic mean: as smoothed weights have it where they are light."""
    from scipy.special import logsumexp

    values = fit.model.pointwise_log_likelihood(fit.run.draws(draws)).reshape(-1, fit.model.n_data)
    return math.log(len(values)) - logsumexp(-values, axis=0), logsumexp(values, axis=0) - math.log(len(values))


def test_loo_by_hand():
    """Of all rows in order, weights and groups included; and of some of them within their stated error."""
    fit = made("c ~ age + treated + (1 | clinic)", "poisson", weights="e", spread=0.03)
    found = fit.loo(draws=200)
    wanted, density = plain_importance(fit, 200)
    assert np.allclose(found.loo_i, wanted, atol=3e-3) and np.array_equal(found.rows, np.arange(N))
    assert found.elpd_loo == found.loo_i.sum() and found.se == pytest.approx(math.sqrt(N * found.loo_i.var()))
    assert found.p_loo == pytest.approx(np.sum(density - found.loo_i), abs=1e-6) and found.p_loo > 0.05
    assert found.good_k == pytest.approx(1.0 - 1.0 / math.log10(600)) and found.bad == 0
    some = [fit.loo(rows=15, draws=200, seed=seed) for seed in range(40)]
    # Their mean is that of all rows, within four errors, and their spread the one that they state, within a third.
    totals, stated = np.array([(one.elpd_loo, one.subsampling_se) for one in some]).T
    spread = math.sqrt(np.mean(stated**2))
    assert abs(totals.mean() - found.elpd_loo) < 4.0 * spread / math.sqrt(40.0) and 0.0 < spread < 0.2 * found.se
    assert totals.std() == pytest.approx(spread, rel=0.35)
    for one in some[:3]:
        assert np.allclose(one.loo_i, found.loo_i[one.rows]) and len(set(one.rows.tolist())) == 15
        v = (N * np.std((one.loo_i - one.near[one.rows]), ddof=1)) ** 2 * (1.0 - 15 / N) / 15
        assert one.subsampling_se == pytest.approx(math.sqrt(v)) and one.se > one.subsampling_se
        near = one.near[one.rows]
        squares = np.sum(one.near**2) + N / 15 * np.sum(one.loo_i**2 - near**2)
        elpd = one.near.sum() + N / 15 * np.sum(one.loo_i - near)
        assert one.elpd_loo == pytest.approx(elpd) and one.se**2 == pytest.approx(squares - (elpd**2 - v) / N + v)
    at_mean = fit.model.pointwise_log_likelihood(fit.run.draws(200).mean(axis=(0, 1)))
    assert np.allclose(some[0].near, at_mean)
    assert np.mean([one.se**2 - one.subsampling_se**2 for one in some]) == pytest.approx(found.se**2, rel=0.15)
    assert np.mean([one.p_loo for one in some]) == pytest.approx(found.p_loo, rel=0.2)


def test_rows_of_a_fit_in_other_coordinates():
    """Those whose effects are partly centred: log-likelihoods of some rows from draws that were moved back."""
    from pdmp.models.regressions.group_information import in_their_coordinates

    fit, usual = (made("y ~ age + (1 | clinic)", spread=0.3) for _ in range(2))
    fit.model = in_their_coordinates(fit.model)
    fit.run = Made(fit.model, spread=0.3)
    x, t = fit.run.draws(50), table()
    p = {name: values[..., None] for name, values in fit.model.constrain(x).items() if values.ndim == 2}
    z = p["Intercept"] + p["age"] * t.age.to_numpy() + fit.model.constrain(x)["1|clinic"][..., t.clinic - 10]
    density = stats.norm.logpdf(t.y.to_numpy(), z, p["sigma"])
    rows, (other, moved) = np.array([3, 17, 59]), fit.centred(x)
    assert np.allclose(other.log_likelihoods(moved, rows), density[..., rows], rtol=1e-9)
    assert not np.allclose(moved, x) and other.n_rows == N
    assert usual.centred(x)[1] is x
    from pdmp.formulas.loo import relative_efficiency
    from pdmp.formulas.pareto_smoothing import loo_densities

    with pytest.warns(UserWarning, match="the Pareto k of"):
        found = fit.loo(draws=50)
    wanted = loo_densities(density.reshape(-1, N), relative_efficiency(fit, x))
    assert np.allclose(found.loo_i, wanted[0], rtol=1e-7) and np.allclose(found.pareto_k, wanted[1], rtol=1e-6)


def test_loo_of_more_rows_than_all_are_taken_of(monkeypatch):
    """From where 100 draws of each chain have too many log-likelihoods; in blocks; errors of `rows`."""
    from pdmp.formulas import loo

    fit = made("y ~ age + (1 | clinic)", spread=0.03)
    whole = fit.loo(draws=120)
    mean = fit.run.x.mean(axis=(0, 1))
    for size in (7, 59, 60):  # a block of one row is left by the second
        monkeypatch.setattr(loo, "AT_ONCE", 120 * CHAINS * size)
        assert np.allclose(fit.loo(draws=120).loo_i, whole.loo_i, rtol=1e-12)
        monkeypatch.setattr(loo, "AT_ONCE", (len(mean) + 4) * size)
        assert np.allclose(loo.at_mean(fit, mean), fit.model.pointwise_log_likelihood(mean), rtol=1e-12)
    monkeypatch.setattr(loo, "NUMBERS", 100 * CHAINS * N - 1)
    monkeypatch.setattr(loo, "choose_draws", lambda run: (399, 1.0))
    for given, says in [
        ({"rows": 61}, "`rows` must be at most the 60 rows of the fit, got 61."),
        ({"rows": 1}, "`rows` must be at least 2, got 1."),
        ({"rows": 60}, "give rows=59, or draws."),
    ]:
        with pytest.raises(ValueError) as error:
            fit.loo(**given)
        assert says in str(error.value)
    assert fit.loo(rows=60, draws=100).near is None


def test_rows_that_the_draws_say_too_little_of():
    """A row whose weights have heavy tails is counted, and warned of; one that is impossible is an error."""
    data = table()
    data.loc[7, "y"] = 60.0
    fit = made("y ~ age", data=data, spread=0.2)
    with pytest.warns(UserWarning, match="loo: the Pareto k of 8 of 60 rows is above 0.64: the draws say too little"):
        found = fit.loo(draws=200)
    assert found.bad == 8 and np.argmax(found.pareto_k) == 7
    wide = made("y ~ age", data=data, spread=0.8)  # whose weights are so unequal that most are 0 in floating point
    with pytest.warns(UserWarning, match="loo: the Pareto k of 60 of 60 rows is above 0.64"):
        found = wide.loo(draws=200)
    assert np.all(np.isinf(found.pareto_k)) and np.allclose(found.loo_i, plain_importance(wide, 200)[0])
    wide.run.x[...] = wide.run.x[0, 0]  # all weights the same
    found = wide.loo(draws=200)
    assert found.bad == 0 and np.allclose(found.loo_i, wide.model.pointwise_log_likelihood(wide.run.x[0, 0]))
    with pytest.raises(ValueError, match="loo needs 25 draws or more of all chains together, got 24."):
        fit.loo(draws=8)
    fit.model.y[9] = math.inf
    with pytest.raises(ValueError, match="loo: the log-likelihood of row 9 is not finite in some of the draws"):
        fit.loo(draws=20)


def test_rows_above_the_limit_of_so_many_draws_are_counted():
    """1 - 1 / log₁₀ of the draws, 0.7 at most; what is not known counts as above."""
    from pdmp.formulas.loo import Loo

    k = np.array([0.1, 0.5, 0.66, 0.69, 0.71, np.nan, np.inf])
    for draws, limit, bad in ((600, 0.64, 5), (100, 0.5, 5), (4_000, 0.7, 3), (1, 0.7, 3)):
        found = Loo("fit", np.zeros(7), np.arange(7.0), k, np.arange(7), None, 7, draws)
        assert found.good_k == pytest.approx(limit, abs=1e-3) and found.bad == bad and found.p_loo == 21.0
        assert f"Pareto k: {7 - bad} of 7 are at most {limit:.2f}, " in repr(found)


def test_comparisons_by_hand():
    """Differences of rows, of all or of the same ones; what cannot be compared is refused."""
    one, other = made("y ~ age", spread=0.03), made("y ~ dose + (1 | clinic)", spread=0.03, seed=1)
    one.run.x[..., 1] += 0.8  # so that one depends on age
    found = one.compare(other, draws=200)
    pairs = one.loo(draws=200).loo_i - other.loo(draws=200).loo_i
    assert found.elpd_difference == pytest.approx(pairs.sum()) and found.subsampling_se == 0.0
    assert found.se == pytest.approx(math.sqrt(N * pairs.var()))
    assert other.compare(one, draws=200).elpd_difference == pytest.approx(-pairs.sum())
    some = one.compare(other, rows=20, draws=200, seed=4)
    rows = some.one.rows
    assert np.array_equal(rows, some.other.rows) and len(rows) == 20
    near = some.one.near - some.other.near
    assert some.elpd_difference == pytest.approx(near.sum() + 3.0 * np.sum(pairs[rows] - near[rows]))
    left = np.std(pairs[rows] - near[rows], ddof=1)
    assert some.subsampling_se == pytest.approx(N * left * math.sqrt((1.0 - 20 / N) / 20))
    assert some.subsampling_se < 0.2 * found.se and some.se == pytest.approx(found.se, rel=0.3)
    missing = table()
    missing.loc[3, "dose"] = np.nan
    moved = table().iloc[::-1].reset_index(drop=True)
    for wrong, says in [
        (made("y ~ dose", data=missing), "`other`: 59 rows for 60: fit both to the rows without missing"),
        (made("c ~ age"), "`other`: the responses differ, 'y' and 'c'."),
        (made("y ~ age", data=moved), "`other`: the responses of the rows differ: fit both to the same rows in the"),
        (made("y ~ age", weights="e"), "`other`: the weights of the rows differ"),
    ]:
        with pytest.raises(ValueError) as error:
            one.compare(wrong, draws=20)
        assert says in str(error.value)
    with pytest.raises(TypeError, match="`other` must be another fit, got int"):
        one.compare(3)


def test_the_same_rows_are_taken_where_one_fit_has_more_chains(monkeypatch):
    """Of which 100 draws of each have too many log-likelihoods for all rows: then of the other some rows as well."""
    from pdmp.formulas import loo

    one, other = made("y ~ age", spread=0.03), made("y ~ dose", spread=0.03, seed=1)
    other.run.x, other.run.chains = np.concatenate([other.run.x, 0.01 + other.run.x]), 2 * CHAINS
    monkeypatch.setattr(loo, "ROWS", 25)
    monkeypatch.setattr(loo, "NUMBERS", 100 * CHAINS * N)
    monkeypatch.setattr(loo, "choose_draws", lambda run: (120, 1.0))
    assert one.loo().near is None and len(other.loo().rows) == 25
    for first, second in ((one, other), (other, one)):
        found = first.compare(second)
        assert len(found.one.rows) == 25 and np.array_equal(found.one.rows, found.other.rows)
        near = found.one.near - found.other.near
        apart = found.one.loo_i - found.other.loo_i - near[found.one.rows]
        assert found.elpd_difference == pytest.approx(near.sum() + N / 25 * apart.sum())


def test_probabilities_are_not_compared_with_densities():
    fit = made("y ~ age", spread=0.03)
    for name in ("student_t", "gamma", "beta", "von_mises", "poisson", "binomial", "cumulative", "bernoulli", "acat"):
        other = copy.copy(fit)
        other.family = family_of(name)
        if name in ("student_t", "gamma", "beta", "von_mises"):
            assert fit.compare(other, draws=200).elpd_difference == 0.0
            continue
        for a, b in ((fit, other), (other, fit)):
            with pytest.raises(
                ValueError, match=f"{name} gives a probability of each response, and gaussian a density"
            ):
                a.compare(b, draws=20)


# -- checks of predictions --------------------------------------------------------------------------------------------


def replications(fit, draws, seed):
    return fit.predict(kind="response", draws=draws, seed=seed)


def test_checks_by_hand():
    """Densities, frequencies, means of groups and a statistic, with their intervals, of the same replications."""
    t = table()
    fit, counts = made("y ~ age + area + (1 | clinic)"), made("c ~ age + area", "poisson")
    y, c = replications(fit, 90, 3), replications(counts, 90, 3)
    found = fit.pp_check(draws=90, seed=3)
    assert found.kind == "density" and np.array_equal(found.replicated, y) and np.array_equal(found.observed, t.y)
    frame = found.to_dataframe()
    each = np.array([stats.gaussian_kde(one)(frame.y) for one in y[:50]])
    assert np.allclose(frame.observed, stats.gaussian_kde(t.y)(frame.y)) and np.allclose(frame.replicated, each.mean(0))
    assert np.allclose(frame.lower, np.quantile(each, 0.025, axis=0))
    found = counts.pp_check(draws=90, seed=3, probability=0.8)
    frame = found.to_dataframe()
    assert found.kind == "rootogram" and list(frame.c) == list(range(len(frame))) and frame.c.max() >= t.c.max()
    each = np.array([[np.sum(one == k) for k in frame.c] for one in c])
    assert list(frame.observed) == [np.sum(t.c == k) for k in frame.c] and frame.observed.sum() == N
    assert np.allclose(frame.replicated, each.mean(axis=0)) and frame.replicated.sum() == pytest.approx(N, rel=0.01)
    assert np.allclose(frame.upper, np.quantile(each, 0.9, axis=0))
    found = fit.pp_check(by="clinic", draws=90, seed=3)
    frame = found.to_dataframe()
    (bars,) = found.plot().containers
    ends = np.array([line[:, 1] for line in bars.lines[2][0].get_segments()])
    assert np.allclose(ends, frame[["lower", "upper"]])
    assert list(frame.clinic) == [10, 11, 12, 13] and list(frame.rows) == [np.sum(t.clinic == k) for k in frame.clinic]
    assert np.allclose(frame.observed, t.groupby("clinic").y.mean())
    each = np.stack([y[:, t.clinic == k].mean(axis=1) for k in frame.clinic], axis=-1)
    assert np.allclose(frame.replicated, each.mean(axis=0)) and np.allclose(frame.lower, np.quantile(each, 0.025, 0))
    zeros = np.mean(c == 0.0, axis=1)
    found = counts.pp_check("statistic", statistic="zeros", draws=90, seed=3)
    assert np.array_equal(found.values, zeros) and found.value == np.mean(t.c == 0)
    assert found.p_value == np.mean(zeros > found.value) + 0.5 * np.mean(zeros == found.value)
    own = counts.pp_check("statistic", statistic=np.ptp, draws=90, seed=3)
    assert np.array_equal(own.values, np.ptp(c, axis=1)) and own.words == {"statistic": "ptp"}
    of_two = counts.pp_check(
        "statistic", statistic=lambda one: 7 if np.array_equal(one, c[0]) else one.mean(), draws=90, seed=3
    )
    assert np.array_equal(of_two.values, [7.0, *c[1:].mean(axis=1)])  # whole in the first replication alone
    for name, function in [("sd", np.std), ("median", np.median), ("min", np.min), ("max", np.max), ("mean", np.mean)]:
        assert np.array_equal(
            counts.pp_check("statistic", statistic=name, draws=90, seed=3).values, function(c, axis=1)
        )


def test_what_is_drawn_by_default_and_by_how_many_groups(monkeypatch):
    """Counts of up to 60 values as a rootogram; groups of numbers with a fraction where half of the rows share one."""
    t = table()
    for most, kind in ((59, "rootogram"), (60, "density")):
        counts = made("c ~ age", "poisson", data=t.assign(c=np.where(np.arange(N) == 7, most, np.arange(N) % 2)))
        assert counts.pp_check(draws=20, seed=1).kind == kind
    assert made("y ~ age", data=t.assign(y=t.y.round())).pp_check(draws=20, seed=1).kind == "rootogram"
    for values, is_refused in ((30, False), (31, True)):
        fit = made("y ~ age + half", data=t.assign(half=np.arange(N) % values + 0.5))
        if is_refused:
            with pytest.raises(ValueError, match="`by`: 'half' has 31 values in 60 rows: too many"):
                fit.pp_check(by="half", draws=20, seed=1)
        else:
            assert len(fit.pp_check(by="half", draws=20, seed=1).to_dataframe()) == 30
    fit = made("y ~ age + each", data=t.assign(each=np.arange(N)))
    monkeypatch.setattr("pdmp.formulas.predictive_checks.MOST_GROUPS", N)
    assert len(fit.pp_check(by="each", draws=20, seed=1).to_dataframe()) == N
    monkeypatch.setattr("pdmp.formulas.predictive_checks.MOST_GROUPS", N - 1)
    with pytest.raises(ValueError, match="`by`: 'each' has 60 values"):
        fit.pp_check(by="each", draws=20, seed=1)


def test_up_to_five_numbers_of_a_column_are_all_looked_at():
    """Else a hundred from its smallest to its largest; beside another column its mean and one sd to each side."""
    t = table().assign(five=np.arange(N) % 5 * 1.5, six=np.arange(N) % 6 * 1.5)
    fit = made("y ~ five + six", data=t)
    columns = fit.kept.columns
    assert columns["five"].distinct == (0.0, 1.5, 3.0, 4.5, 6.0) and columns["six"].distinct == ()
    keys = fit.conditional_effects("six:five", draws=3).keys
    assert np.array_equal(keys["six"][::5], np.linspace(0.0, 7.5, 100)) and keys["five"][:5] == [
        0.0,
        1.5,
        3.0,
        4.5,
        6.0,
    ]
    keys, mean, sd = fit.conditional_effects("five:six", draws=3).keys, t.six.mean(), t.six.std(ddof=0)
    assert np.allclose(keys["six"][:3], [mean - sd, mean, mean + sd]) and len(keys["six"]) == 15
    assert list(fit.marginal_means("five", draws=3).keys["five"]) == [0.0, 1.5, 3.0, 4.5, 6.0]
    with pytest.raises(ValueError, match="the column 'six' holds more than 5 numbers: say which"):
        fit.marginal_means("six", draws=3)


def test_frequencies_begin_at_the_smallest_of_both_and_equal_statistics_count_half():
    from pdmp.formulas.predictive_checks import PredictiveCheck

    few, many = np.array([3.0, 5.0, 5.0]), np.array([[1.0, 4.0, 5.0], [2.0, 2.0, 7.0], [5.0, 5.0, 4.0]])
    above = np.array([4.0, 9.0, 4.0])  # than all that is replicated
    for observed, replicated, first in ((few, many, 1), (many[0], np.array([few, few]), 1), (above, many, 1)):
        frame = PredictiveCheck("rootogram", "c", observed, replicated, 0.5).to_dataframe()
        assert frame.c[0] == first and frame.observed.sum() == 3 and len(set(frame.observed)) > 1
        for k, seen, drawn in zip(frame.c, frame.observed, frame.replicated, strict=True):
            assert seen == np.sum(observed == k) and drawn == pytest.approx(np.mean(np.sum(replicated == k, axis=1)))
    with pytest.MonkeyPatch.context() as patch:  # of 1, 2 and 3: two of three draws are above, one of them is 3
        patch.setattr("pdmp.formulas.predictive_checks.MOST_BARS", 3)
        cut = PredictiveCheck("rootogram", "c", many[0], np.array([few, few]), 0.5)
        assert list(cut.to_dataframe().c) == [1.0, 2.0, 3.0]
        assert cut.plot().get_xlabel() == "c (67 % of what is replicated is above)"
        patch.setattr("pdmp.formulas.predictive_checks.MOST_BARS", 4)
        for rest, said in ((3, "c (0.3 % of what is replicated is above)"), (1, "c")):  # of 1,000 numbers
            rare = np.where(np.arange(1_000) < rest, 9, 0).reshape(2, 500)
            check = PredictiveCheck("rootogram", "c", np.arange(500) % 4, rare, 0.5)
            assert check.plot().get_xlabel() == said
    check = PredictiveCheck("statistic", "c", few, many, 0.5, None, lambda y: y.max(axis=-1), {"statistic": "max"})
    assert check.value == 5.0 and check.values.tolist() == [5.0, 7.0, 5.0] and check.p_value == 1 / 3 + 0.5 * 2 / 3


def test_checks_of_some_of_the_rows(monkeypatch):
    from pdmp.formulas import kept, predictive_checks

    monkeypatch.setattr(kept, "ROWS", 24)
    fit, t = made("y ~ age + area"), table()
    places = fit.design.kept.places
    x = fit.run.draws(14).reshape(-1, fit.model.dim)
    fit.run.x[..., 1] += np.linspace(-2.0, 2.0, 400)  # so that rows differ
    for kind in ("mean", "link"):
        whole, some = (fit.predicted(x, None, kind, "error", None, rows=rows) for rows in (None, places))
        assert np.array_equal(some, whole[:, places]) and not np.allclose(some, whole[:, :24])
    found = fit.pp_check(by="area", draws=40, seed=1)
    assert np.array_equal(found.observed, t.y.to_numpy()[places]) and found.note == "24 of 60 rows, drawn"
    z = fit.predict(kind="mean", draws=40)[:, places]
    sigma = natural(fit, 42)["sigma"][:40, None]
    assert np.allclose(((found.replicated - z) / sigma).std(), 1.0, atol=0.1)
    monkeypatch.setattr(predictive_checks, "NUMBERS", 40 * N - 1)
    monkeypatch.setattr(predictive_checks, "ROWS", 50)
    found = fit.pp_check("density", draws=40, seed=1)
    drawn = np.sort(np.random.default_rng(0).choice(N, 50, replace=False))
    assert np.array_equal(found.observed, t.y.to_numpy()[drawn]) and not np.array_equal(drawn, np.arange(50))
    assert found.replicated.shape == (40, 50) and found.note == "50 of 60 rows, drawn"
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert found.plot(pyplot.figure().subplots()).get_title(loc="left") == found.note
    pyplot.close()
    assert fit.pp_check("density", draws=39, seed=1).note == ""


def test_the_table_of_a_fit_by_hand():
    """Every column of every parameter, of chains with other means and spreads; effects by the labels of groups."""
    from arviz_stats.base import array_stats

    places = table().clinic - 2  # whose order as numbers is not that of their text
    fit = made("y ~ age + area + (1 + age || place)", data=table().assign(place=places), spread=0.5)
    natural, levels = fit.model.constrain(fit.run.x), [8, 9, 10, 11]
    wanted = {name: natural[name] for name in fit.priors}
    effects = {f"{g}[{label}]": natural[g][..., k] for g in ("1|place", "age|place") for k, label in enumerate(levels)}
    for given, columns in (({}, wanted), ({"effects": True}, wanted | effects)):
        summary = fit.summary(**given)
        assert [row["name"] for row in summary.rows] == list(columns)
        for row, x in zip(summary.rows, columns.values(), strict=True):
            ess, rhat = (
                float(getattr(array_stats, f)(x, chain_axis=0, draw_axis=1, method=m))
                for f, m in (("ess", "mean"), ("rhat", "rank"))
            )
            low, high = np.quantile(x, [0.025, 0.975])
            numbers = (x.mean(), x.std(), low, high, x.std() / math.sqrt(ess), ess, rhat)
            assert list(row.values())[1:] == pytest.approx(numbers, rel=1e-9)
        frame = fit.to_dataframe(7, **given)
        assert list(frame) == ["chain", "draw", *columns] and len(frame) == 7 * CHAINS
        for _, row in frame.iterrows():
            chain, draw = int(row["chain"]), int(row["draw"])
            assert row[2:].tolist() == [x[chain, draw] for x in columns.values()]
        assert len(set(zip(frame.chain, frame.draw, strict=True))) == len(frame)
    assert summary.warnings == ["what the run warns of: and why"]
    found = fit.hypothesis("1|place[9] > `age|place[10]`", draws=1_200).draws[:, 0]
    assert np.array_equal(found, (natural["1|place"][..., 1] - natural["age|place"][..., 2]).ravel())
    # Draws of all chains, one chain after the other, where they are no multiple of the chains too.
    assert np.array_equal(fit.some_draws(7), fit.run.x[:, :3].reshape(9, -1)[:7])


def test_a_further_group_leaves_the_others_as_they_are():
    """Of ArviZ's data as it is: what is given comes back in the group, and the draws are what they were."""
    from pdmp.formulas import exported

    run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), time=9.0, chains=2, seed=1, progress=False)
    data, y = run.to_arviz(6), np.arange(2.0 * 5 * 3).reshape(2, 5, 3)
    draws = {name: np.array(values) for name, values in data["posterior"].data_vars.items()}
    found = exported.with_group(data, "posterior_predictive", {"c": y})
    assert np.array_equal(found["posterior_predictive"]["c"], y)
    assert draws and all(np.array_equal(found["posterior"][name], values) for name, values in draws.items())


def test_predictive_draws_stand_by_chain_and_draw(monkeypatch):
    """Responses with their noise, by the seed; none where there are more than 20 million of all chains."""
    from pdmp.formulas import exported

    fit, given = made("c ~ age + (1 | clinic)", "poisson"), []
    data = {"posterior": SimpleNamespace(sizes={"chain": CHAINS, "draw": 20})}
    fit.run.to_arviz = lambda n: given.append(n) or data
    monkeypatch.setattr(exported, "with_group", lambda data, name, values: (data, name, values))
    found, name, values = fit.to_arviz(25, seed=4)
    assert found is data and name == "posterior_predictive" and list(values) == ["c"] and given == [25]
    assert np.array_equal(values["c"].reshape(-1, N), replications(fit, 20 * CHAINS, 4))
    assert values["c"].shape == (CHAINS, 20, N)
    monkeypatch.setattr(exported, "NUMBERS", 20 * CHAINS * N - 1)
    assert fit.to_arviz(20) is data


# -- before sampling --------------------------------------------------------------------------------------------------


def test_a_regression_that_is_not_sampled():
    """Its draws are of the priors, in the units of the data."""
    from pdmp.models.priors import Exponential, Flat, HalfNormal, HalfStudentT, Normal, StudentT

    priors = {"age": Normal(0.5, 0.2), "dose": StudentT(5.0, -1.0, 0.3), "Intercept": Normal(4.0, 2.0)}
    priors |= {"sd(clinic)": HalfNormal(0.7), "sd(age|clinic)": Exponential(0.1), "sigma": HalfStudentT(4.0, 2.0)}
    formula, t = "y ~ age + dose + (1 + age || clinic)", table()
    prepared = pdmp.regression(formula, t, priors=priors, sample=False, seed=3, events=40, chains=1, progress=False)
    n = 20_000
    p = {name: values[0] for name, values in prepared.model.constrain(prepared.run.draws(n)).items()}
    laws = {
        "age": stats.norm(0.5, 0.2),
        "dose": stats.t(5.0, -1.0, 0.3),
        "sd(clinic)": stats.halfnorm(scale=0.7),
        "sd(age|clinic)": stats.expon(scale=0.1),
    }
    at_means = p["Intercept"] + p["age"] * t.age.mean() + p["dose"] * t.dose.mean()
    found = {name: p[name] for name in laws} | {"Intercept": at_means, "effects": p["1|clinic"][:, 1] / p["sd(clinic)"]}
    found["effects of age"] = p["age|clinic"][:, 3] / p["sd(age|clinic)"]
    laws |= {"Intercept": stats.norm(4.0, 2.0), "effects": stats.norm(), "effects of age": stats.norm()}
    for name, values in found.items():
        law = laws[name]
        assert stats.kstest(values, law.cdf).pvalue > 1e-4, name  # sees what is off by 0.015 of a probability
    of_sigma = stats.kstest(p["sigma"], lambda s: 2.0 * stats.t.cdf(s / 2.0, 4.0) - 1.0)
    assert of_sigma.pvalue > 1e-4
    drawn = prepared.prior_predictive(draws=300, seed=1)
    x = prepared.some_draws(300)
    z = prepared.model.margins(x)
    sigma = prepared.model.constrain(x)["sigma"]
    assert drawn.replicated.shape == (300, N) and drawn.kind == "density"
    assert ((drawn.replicated - z) / sigma[:, None]).std() == pytest.approx(1.0, abs=0.03)
    assert np.array_equal(prepared.predict(draws=300), z)
    with pytest.raises(ValueError, match="the regression was not sampled: call `.sample\\(\\)`"):
        prepared.loo()
    many = made("c ~ age", "poisson", data=t.assign(c=t.c * 200))
    with pytest.raises(ValueError, match="more than the 400 bars of a rootogram"):
        many.pp_check("rootogram")
    assert many.pp_check().kind == "density"
    flat = pdmp.regression("y ~ age", t, priors={"age": Flat()}, sample=False)
    with pytest.raises(ValueError, match="the prior of 'age' is Flat: it has no draws; give a proper one."):
        flat.prior_predictive()
    with pytest.raises(ValueError, match="draws of the prior are not made for a regression with `select`"):
        pdmp.regression("y ~ age", t, select="all", sample=False).prior_predictive()


@pytest.mark.slow
def test_what_was_prepared_is_sampled():
    options = {"sampler": "zigzag", "events": 300, "chains": 2, "seed": 3, "progress": False}
    prepared = pdmp.regression("y ~ age + treated", table(), sample=False, **options)
    assert np.array_equal(prepared.sample()["age"], pdmp.regression("y ~ age + treated", table(), **options)["age"])


def test_a_fit_whose_rows_were_read_in_batches(tmp_path, monkeypatch):
    """What needs the rows takes a table, and says so; the rest is that of the table in memory."""
    pytest.importorskip("pyarrow")
    from pdmp.formulas import sources

    monkeypatch.setattr(sources, "LARGE_FILE", 0)
    path, t = tmp_path / "t.csv", table()
    t.to_csv(path, index=False)
    fit = made("c ~ age * area", "poisson", data=str(path), spread=0.01)
    whole = made("c ~ age * area", "poisson", spread=0.01)
    assert fit.model.coded is not None and fit.model.columns == whole.model.columns
    found = fit.conditional_effects("age:area", at={"age": [30.0, 40.0]}, draws=60)
    assert np.allclose(
        found.estimate, whole.conditional_effects("age:area", at={"age": [30.0, 40.0]}, draws=60).estimate
    )
    assert found.note == "means and ranges are those of the first 60 rows that were read"
    with pytest.raises(ValueError, match="were read in batches: give a table of some of them as `data`"):
        fit.slopes("age")
    assert np.allclose(fit.slopes("age", data=t, draws=60).draws, whole.slopes("age", draws=60).draws)
    with pytest.raises(ValueError, match="of rows that were read in batches no column is at hand to group them by"):
        fit.pp_check(by="area")
    monkeypatch.setattr("pdmp.formulas.predictive_checks.NUMBERS", 59 * 30)
    some = fit.pp_check("rootogram", draws=30, seed=1)
    assert some.note == "59 of 60 rows, drawn" and some.replicated.shape == (30, 59)
    one, other = fit.loo(rows=20, draws=300), whole.loo(rows=20, draws=300)
    assert one.elpd_loo == pytest.approx(other.elpd_loo) and np.array_equal(one.rows, other.rows)
    assert fit.compare(whole, draws=300).elpd_difference == pytest.approx(0.0, abs=1e-9)


def test_truth_values_of_a_fit_are_no_other_numbers():
    """2 is not twice as true, nor True the group 1 of 0, 1 and 2."""
    rng, n = np.random.default_rng(1), 30
    t = pandas.DataFrame({"y": rng.normal(size=n), "x": rng.normal(size=n), "b": np.arange(n) % 5 == 0})
    t["k"], t["g"], t["few"], t["pair"] = (
        np.arange(n) % 3 + 1,
        np.arange(n) % 4,
        np.arange(n) % 2,
        np.arange(n) // 2 % 2,
    )
    prepared = pdmp.regression("y ~ x + b + C(k) + few + C(pair) + (1 | g)", t, sample=False, seed=1)
    new = t[:6]
    for changed, says in (
        (new.assign(b=new.b + 1), "the column 'b' is 2 in some row, and holds truth values in the data of the fit: w"),
        (new.assign(b=-0.5), "the column 'b' is -0.5 in some row, and holds truth values in the data of the fit: writ"),
        (new.assign(g=True), "the column 'g' holds truth values, and numbers such as 3 in the data of the fit."),
        (new.assign(k=True), "the column 'k' holds truth values, and numbers such as 3 in the data of the fit."),
        (new.assign(x=False), f"the column 'x' holds truth values, and numbers such as {t.x.max()} in the data of the"),
    ):
        with pytest.raises(ValueError, match=f"^`new`: {re.escape(says)}"):
            prepared.predict(changed, draws=5)
    prepared.predict(new.drop(columns="g"), effects="zero", draws=5)


def test_slopes_by_a_column_of_complex_numbers(counts):
    rows = counts.kept.rows
    with pytest.raises(ValueError, match="`data`: the column 'age' must be real, got complex numbers"):
        counts.slopes("age", data=rows.assign(age=rows.age + 1j))
    with pytest.raises(ValueError, match="`new`: the column 'age' holds complex numbers"):
        counts.predict(rows.assign(age=rows.age + 1j))


@pytest.mark.parametrize(
    "formula, family",
    [
        ("c ~ age + (1 | clinic)", "zero_inflated_poisson"),
        ("y ~ dose + (1 + dose | clinic)", "gaussian"),
        ("y ~ s(age) + (1 | clinic)", "student_t"),
    ],
)
def test_the_model_of_a_prepared_regression_is_what_is_sampled(formula, family, monkeypatch):
    """At draws of the prior, whose natural parameters it has: the law of effects was not in it."""
    from pdmp.formulas import general

    prepared, asked = pdmp.regression(formula, table(), family, sample=False, seed=3), []

    def sample(model, **_):
        asked.append(model)
        raise InterruptedError

    monkeypatch.setattr(general, "sample", sample)
    with pytest.raises(InterruptedError):
        prepared.sample()
    x = prepared.run.draws(6)[0]
    assert [prepared.model.potential(one) for one in x] == [asked[0].potential(one) for one in x]
    natural, found = prepared.run.natural(6), prepared.model.constrain(x)
    for name, values in natural.items():
        assert np.allclose(found[name], values, rtol=1e-6, atol=1e-9)


def test_predictions_are_the_same_in_whatever_coordinates_draws_are():
    """Those in which a regression with effects is sampled by full gradients; of its own rows and of others."""
    fit, rows = made("y ~ age + (1 | clinic)"), table()
    model = fitting.moved(fit.model)
    assert isinstance(model, StandardisedEffects)
    run = copy.copy(fit.run)
    run.model, run.x = model, coordinates_of(model, model.base.unconstrained(fit.model.constrain(fit.run.x)))
    other = fit.replaced(model=model, run=run)
    for new in (None, rows[7:12]):
        np.testing.assert_allclose(other.predict(new, draws=30), fit.predict(new, draws=30), rtol=1e-9)
