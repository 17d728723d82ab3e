"""After a fit: effects, contrasts, slopes, hypotheses, checks and cross-validation, against arithmetic by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.formulas import fitting
from pdmp.formulas.design import describe
from pdmp.formulas.families import family_of

pandas = pytest.importorskip("pandas")
Environment = pytest.importorskip("formulae.environment").Environment

pytestmark = pytest.mark.exact

N, CHAINS = 60, 3
NONE = {"offset": None, "exposure": None}


def table():
    rng = np.random.default_rng(5)
    found = {
        "age": rng.uniform(20.0, 70.0, N),
        "dose": rng.gamma(2.0, 1.0, N),
        "treated": np.arange(N) % 2,
        "area": np.array(["city", "rural", "town"])[np.arange(N) // 2 % 3],
        "clinic": np.arange(N) // 3 % 4 + 10,
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

    def diagnostic_draws(self):
        return self.x


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
    assert list(frame) == ["age", "area", "estimate", "error", "lower", "upper"] and len(frame) == 300
    ages = np.linspace(t.age.min(), t.age.max(), 100)
    assert np.allclose(frame.age, np.repeat(ages, 3)) and list(frame.area[:3]) == ["city", "rural", "town"]
    z = np.empty((600, 100, 3))
    for k, area in enumerate(["city", "rural", "town"]):
        z[..., k] = (p["Intercept"] + p["np.log(dose)"] * np.log(t.dose.mean()) + p["treated"] * 0.5)[:, None]
        slope = p["age"] + (p[f"age:area[{area}]"] if k else 0.0)
        z[..., k] += slope[:, None] * ages + (p[f"area[{area}]"][:, None] if k else 0.0)
    z = z.reshape(600, -1)
    assert_estimates(found, LINKS[family](z), 0.8)
    assert_estimates(fit.conditional_effects(["age", "area"], draws=600, scale="link"), z)
    assert found.note == f"with dose = {t.dose.mean():.4g}, treated = 0.5, effects of groups = 0"


def test_values_that_are_chosen():
    """By `at`; of a second column of numbers its mean and one sd to both sides; few numbers as they are."""
    fit, t = made("y ~ age + dose + C(clinic) + treated + e", data=table().assign(e=table().e > 1.0)), table()
    assert list(fit.conditional_effects("clinic").keys["clinic"]) == [10, 11, 12, 13]
    assert list(fit.conditional_effects("treated").keys["treated"]) == [0.0, 1.0]
    assert list(fit.conditional_effects("e").keys["e"]) == [False, True]
    second = np.unique(fit.conditional_effects("age:dose").keys["dose"])
    assert np.allclose(second, t.dose.mean() + t.dose.std(ddof=0) * np.array([-1.0, 0.0, 1.0]))
    at = {"dose": 2.0, "clinic": 12, "age": [30.0, 65.0], "treated": 1}
    found, p = fit.conditional_effects("age", at=at, draws=600), natural(fit)
    assert at["age"] == [30.0, 65.0]  # what was given is as it was
    z = p["Intercept"] + p["treated"] + 2.0 * p["dose"] + p["C(clinic)[12]"]
    assert_estimates(found, z[:, None] + p["age"][:, None] * [30.0, 65.0])
    assert found.note == "with dose = 2, treated = 1, clinic = 12, e = False"


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
    assert list(by_group.keys["clinic"]) == [10, 11, 12, 13]
    z = (p["Intercept"] + np.log(t.e.mean()) + p["age"] * t.age.mean())[:, None]
    assert_estimates(by_group, z + p["1|clinic"] + p["age|clinic"] * t.age.mean())
    with pytest.raises(ValueError, match=r"needs a group: name one, such as at=\{'clinic': 10\}"):
        fit.conditional_effects("age", effects="fitted")
    with pytest.raises(ValueError, match="names the groups 'clinic': their effects need effects=\"fitted\""):
        fit.conditional_effects("clinic")
    with pytest.raises(ValueError, match="`effects` = 'zero' is for a table: give that of the fit as `new`"):
        fit.predict(effects="zero")


@pytest.mark.parametrize(
    "given, says",
    [
        ({"term": "agee"}, "`term` names 'agee', which is no column of the formula; did you mean 'age'?"),
        ({"term": "age:age"}, "`term` must name each column once, got 'age:age'."),
        ({"term": 3}, '`term` must name columns of the table, such as "age", got 3.'),
        ({"term": "age:area:dose"}, "`term` must name one or two columns, got 3: give values of others in `at`."),
        ({"term": "age", "at": {"dose": [1, 2]}}, "`at`: 'dose' must be one value, unless it is what is varied"),
        ({"term": "age", "at": {"doze": 1}}, "`at` names 'doze', which is no column of the formula"),
        ({"term": "age", "at": ["dose"]}, "`at` must be a dict of columns and values"),
        ({"term": "age", "scale": "log"}, "`scale` must be"),
        ({"term": "age", "probability": 95}, "`probability` must be above 0 and below 1, got 95."),
        ({"term": "age", "at": {"area": "moon"}}, "levels"),
        ({"term": "e"}, "`term` names 'e', which is no column of the formula"),  # it is the weights
    ],
)
def test_mistakes_in_conditional_effects(given, says):
    fit = made("y ~ age + dose + area", weights="e")
    with pytest.raises((TypeError, ValueError)) as error:
        fit.conditional_effects(**given)
    assert says in str(error.value)


def test_pictures_of_conditional_effects():
    """A ribbon for each level along numbers; points with bars for a category; on axes that are given too."""
    from matplotlib import pyplot

    fit = made("c ~ age * treated + area", "poisson")
    found = fit.conditional_effects("age:treated", draws=60)
    ax = found.plot()
    assert [line.get_label() for line in ax.lines] == ["0", "1"] and len(ax.collections) == 2
    for k, line in enumerate(ax.lines):
        assert np.array_equal(line.get_xdata(), np.array(found.keys["age"])[k::2])
        assert np.array_equal(line.get_ydata(), found.estimate[k::2])
        ribbon = ax.collections[k].get_paths()[0].vertices
        assert ribbon[:, 1].min() == found.lower[k::2].min() and ribbon[:, 1].max() == found.upper[k::2].max()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "expected c")
    points = fit.conditional_effects("area", draws=60, scale="link")
    other = pyplot.figure().subplots()
    assert points.plot(other) is other and other.get_ylabel() == "log of expected c"
    assert [text.get_text() for text in other.get_xticklabels()] == ["city", "rural", "town"]
    (bars,) = other.containers
    segments = np.array(bars.lines[2][0].get_segments())
    assert np.allclose(segments[:, 0, 1], points.lower) and np.allclose(segments[:, 1, 1], points.upper)
    assert np.array_equal(bars.lines[0].get_ydata(), points.estimate)
    pyplot.close("all")
