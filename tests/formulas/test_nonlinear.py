"""Expressions in the place of a linear predictor: densities, derivatives, predictions, words and mistakes."""

import math
import re
import warnings

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.formulas import general, nonlinear
from pdmp.formulas.checks import leanings
from pdmp.formulas.general import parameters_inside
from pdmp.models.priors import Flat, HalfNormal, HalfStudentT, Normal, StudentT

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_steps")]

DECAY = {"y": "y ~ floor + top * exp(-rate * x)", "floor": "~ 1", "top": "~ a + (1 | g)", "rate": "~ z"}
DECAY_PRIORS = {
    "floor": Normal(0.5, 2.0),
    "top": StudentT(4.0, 3.0, 1.5),
    "top: a[v]": Normal(0.0, 1.0),
    "top: sd(g)": HalfNormal(0.7),
    "rate": Normal(-0.5, 0.4),
    "rate: z": Normal(0.1, 0.3),
    "sigma": HalfNormal(1.3),
}


N1 = Normal(0.0, 1.0)
LINE = {"y": "y ~ b * x", "b": "~ 1"}


def table(n=23):
    rng = np.random.default_rng(4)
    found = {
        "x": rng.uniform(0.0, 4.0, n),
        "z": rng.normal(2.0, 1.5, n),
        "a": rng.choice(["u", "v"], n),
        "g": rng.integers(0, 4, n),
        "a b": rng.integers(-2, 3, n).astype(np.int8),
        "dose": rng.choice([0.0, 1.0, 4.0, 20.0], n),
        "m": rng.integers(1, 6, n),
    }
    found |= {"y": rng.normal(2.0, 1.0, n), "k": rng.poisson(3.0, n), "s": rng.uniform(0.5, 2.0, n)}
    found["won"] = rng.binomial(found["m"], 0.4)
    return pandas.DataFrame(found)


def prepared(formula, priors, data=None, family="gaussian", **options):
    return pdmp.regression(formula, table() if data is None else data, family, priors, sample=False, seed=1, **options)


def natural_points(fit, count=4):
    """Draws of the priors, by name, and their coordinates."""
    natural = fit.run.constrain(x := fit.run.draws(count)[0])
    return {name: np.asarray(value) for name, value in natural.items()}, x


def test_the_density_is_that_of_the_expression_and_of_priors_at_the_means_of_the_columns():
    data = table()
    fit = prepared(DECAY, DECAY_PRIORS, data, link={"rate": "log"})
    natural, _ = natural_points(fit)
    natural["top: sd(g)"] = np.full(4, 0.6)  # so that all points have the same Jacobian of effects
    x = fit.unconstrained(natural)
    v, z = 1.0 * (data.a == "v").to_numpy(), data.z.to_numpy()
    found = []
    for i in range(len(x)):
        of = {name: value[i] for name, value in natural.items()}
        top = of["top: Intercept"] + of["top: a[v]"] * v + of["top: 1|g"][data.g]
        rate = np.exp(of["rate: Intercept"] + of["rate: z"] * z)
        mean = of["floor: Intercept"] + top * np.exp(-rate * data.x)
        density = (
            stats.norm.logpdf(data.y, mean, of["sigma"]).sum()
            + stats.norm.logpdf(of["floor: Intercept"], 0.5, 2.0)
            + stats.t.logpdf(of["top: Intercept"] + of["top: a[v]"] * v.mean(), 4.0, 3.0, 1.5)
            + stats.norm.logpdf(of["top: a[v]"])
            + stats.norm.logpdf(of["top: 1|g"], 0.0, 0.6).sum()
            + stats.norm.logpdf(of["rate: Intercept"] + of["rate: z"] * z.mean(), -0.5, 0.4)
            + stats.norm.logpdf(of["rate: z"], 0.1, 0.3)
            + stats.halfnorm.logpdf(of["sigma"], scale=1.3)
        )
        found.append(fit.model.potential(x[i]) + density + math.log(of["sigma"]))  # whose logarithm moves
    np.testing.assert_allclose(found, found[0], rtol=1e-9)
    names = ["floor: Intercept", "top: Intercept", "top: a[v]", "top: sd(g)", "rate: Intercept", "rate: z", "sigma"]
    assert list(fit.priors) == names
    assert fit.notes == ["top: a is relative to u", "coefficients of rate are of its log"]
    assert "gaussian of an expression, 23 rows" in repr(fit)
    assert fit.priors["top: sd(g)"] == HalfNormal(0.7)


def hill(dose, top, half, power):
    return top * dose**power / (half**power + dose**power)


def curve(data, p):
    return stats.norm.cdf(p["b"]) + np.log1p(data.x) * np.sqrt(data.x + 1) - p["b"] / 3


CASES = {
    "counts": (
        {"k": "k ~ c + b * tanh(`a b` / 2)", "c": "~ 1", "b": "~ 1"},
        "poisson",
        {},
        lambda d, p: stats.poisson.logpmf(d.k, np.exp(p["c"] + p["b"] * np.tanh(d["a b"].to_numpy(float) / 2))),
    ),
    "means": (
        {"k": "k ~ c * exp(b * x) + 1", "c + b": "~ 1"},
        "poisson",
        {"link": {"mu": "identity", "c": "log"}},
        lambda d, p: stats.poisson.logpmf(d.k, np.exp(p["c"]) * np.exp(p["b"] * d.x) + 1),
    ),
    "trials": (
        {"won": "won | trials(m) ~ guess + (1 - guess) * inv_logit(b * (x - 2))", "guess": "~ 1", "b": "~ 1"},
        "binomial",
        {"link": {"guess": "logit", "mu": "identity"}},
        lambda d, p: stats.binom.logpmf(
            d.won,
            d.m,
            special.expit(p["guess"]) + (1 - special.expit(p["guess"])) * special.expit(p["b"] * (d.x - 2)),
        ),
    ),
    "doses": (
        {"y": "y ~ e * dose^h / (c^h + dose^h)", "e": "~ 1", "h": "~ 1", "c": "~ 1"},
        "gaussian",
        {"link": {"h": "log", "c": "log"}},
        lambda d, p: stats.norm.logpdf(d.y, hill(d.dose, p["e"], np.exp(p["c"]), np.exp(p["h"])), p["sigma"]),
    ),
    "errors": (
        {"y": "y | se(s) ~ -(b - x)**2 * 0.1 + square(+b)", "b": "~ 1"},
        "gaussian",
        {},
        lambda d, p: stats.norm.logpdf(d.y, -((p["b"] - d.x) ** 2) * 0.1 + p["b"] ** 2, d.s),
    ),
    "above": (
        {"y": "y | trunc(lb=-9) ~ Phi(b) + log1p(x) * sqrt(x + 1) - b / 3", "b": "~ 1"},
        "gaussian",
        {},
        lambda d, p: stats.truncnorm.logpdf(d.y, (-9.0 - curve(d, p)) / p["sigma"], np.inf, curve(d, p), p["sigma"]),
    ),
    "shapes": (
        {"s": "s ~ b * x", "b": "~ 1", "shape": "~ z"},
        "gamma",
        {"weights": "m"},
        lambda d, p: d.m
        * stats.gamma.logpdf(
            d.s,
            np.exp(p["shape: Intercept"] + p["shape: z"] * d.z),
            scale=np.exp(p["b"] * d.x - p["shape: Intercept"] - p["shape: z"] * d.z),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_likelihoods_means_and_draws_are_those_of_the_family_at_the_expression(case):
    formula, family, options, density = CASES[case]
    data = table()
    inside = [name.strip() for key in list(formula)[1:] if key != "shape" for name in key.split("+")]
    fit = prepared(formula, dict.fromkeys(inside, Normal(0.3, 0.5)), data, family, **options)
    links = options.get("link", {}).items()
    assert fit.notes[:2] == [f"coefficients of {name} are of its {link}" for name, link in links if name != "mu"][:2]
    natural, x = natural_points(fit, 3)
    of = [{name.removesuffix(": Intercept") if name[0] in "cbegh" else name: v[i] for name, v in natural.items()}
          for i in range(3)]  # fmt: skip
    wanted = np.array([density(data, one) for one in of])
    np.testing.assert_allclose(fit.log_likelihoods(x, np.arange(len(data))), wanted, rtol=1e-9, atol=1e-9)
    few = np.array([7, 2])
    np.testing.assert_allclose(fit.log_likelihoods(x, few), wanted[:, few], rtol=1e-9, atol=1e-9)
    # New rows are read as those of the fit are, and the link leads from one kind of prediction to the other.
    for kind in ("mean", "link"):
        own = fit.predicted(x, None, kind, "error", None)
        np.testing.assert_allclose(fit.predicted(x, data, kind, "error", None), own, rtol=1e-9, err_msg=kind)
    if family == "poisson":
        link, mean = (fit.predicted(x, None, kind, "error", None) for kind in ("link", "mean"))
        np.testing.assert_allclose(mean, link if options else np.exp(link), rtol=1e-12)
        drawn = fit.predicted(np.repeat(x[:1], 4_000, axis=0), None, "response", "error", np.random.default_rng(0))
        error = np.sqrt(mean[0] / 4_000)  # of 23 means of 4,000 draws each, all within 4.5 standard errors
        assert np.all(np.abs(drawn.mean(axis=0) - mean[0]) < 4.5 * error)


def test_a_power_of_zero_is_zero_and_has_derivatives():
    formula, family, options, _ = CASES["doses"]
    fit = prepared(formula, dict.fromkeys("ehc", Normal(0.3, 0.5)), None, family, **options)
    natural, x = natural_points(fit, 1)
    none = (table().dose == 0.0).to_numpy()
    assert none.any()
    assert np.all(fit.predicted(x, None, "link", "error", None)[0][none] == 0.0)
    gradient, h = fit.model.gradient(x[0]), 1e-6
    steps = np.eye(fit.model.dim) * h
    wanted = [(fit.model.potential(x[0] + e) - fit.model.potential(x[0] - e)) / (2.0 * h) for e in steps]
    # Central differences of a potential of some hundreds have errors of 1e-14 * 100 / h.
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-5)
    assert natural["h: Intercept"].shape == (1,)


#: Parts that are 0 where the dose is: what is written, and NumPy's values of a, b and the doses.
ROOTS = {
    "a ratio": ("(dose / a) ** b / (1 + (dose / a) ** b)", lambda a, b, x: (x / a) ** b / (1.0 + (x / a) ** b)),
    "a growth": ("1 - exp(-(dose / a) ** b)", lambda a, b, x: 1.0 - np.exp(-((x / a) ** b))),
    "a sum": ("a * dose ** (b + 1)", lambda a, b, x: a * x ** (b + 1.0)),
    "a multiple": ("a * dose ** (2 * b)", lambda a, b, x: a * x ** (2.0 * b)),
    "a power": ("a * dose ** b ** 2", lambda a, b, x: a * x ** (b**2)),
    "a function": ("a * dose ** exp(b)", lambda a, b, x: a * x ** np.exp(b)),
    "a product": ("(a * dose) ** b", lambda a, b, x: (a * x) ** b),
    "a negative product": ("(-a * -dose / s) ** (b / 3)", lambda a, b, x: (a * x / table().s) ** (b / 3.0)),
    "a square root": ("b * sqrt(a * dose)", lambda a, b, x: b * np.sqrt(a * x)),
    "a power of a root": ("a * sqrt(b * dose) ** b", lambda a, b, x: a * np.sqrt(b * x) ** b),
    "a number": ("b * (a * dose) ** 1.5", lambda a, b, x: b * (a * x) ** 1.5),
}


@pytest.mark.filterwarnings("ignore:(divide|invalid|overflow)")  # of what `where` leaves out, in plain Python
@pytest.mark.parametrize("what", ROOTS)
def test_parts_that_are_zero_where_data_are_have_derivatives_there(what):
    text, value = ROOTS[what]
    fit = prepared(
        {"y": f"y ~ {text}", "a + b": "~ 1"},
        {"a": Normal(0.3, 0.5), "b": Normal(0.2, 0.4)},
        table().drop(columns="a"),
        link=dict.fromkeys("ab", "log"),
    )
    natural, x = natural_points(fit, 3)
    a, b = (np.exp(natural[f"{name}: Intercept"]) for name in "ab")
    dose = table().dose.to_numpy()
    wanted = [np.broadcast_to(value(a[k], b[k], dose), dose.shape) for k in range(3)]
    assert (dose == 0.0).any()
    np.testing.assert_allclose(fit.predicted(x, None, "link", "error", None), wanted, rtol=1e-12, atol=1e-15)
    steps = np.eye(fit.model.dim) * 1e-6
    for point in x:
        numeric = [(fit.model.potential(point + e) - fit.model.potential(point - e)) / 2e-6 for e in steps]
        # Errors of central differences: 1e-16 of a potential of up to 1e6 over 1e-6.
        scale = 1.0 + abs(fit.model.potential(point))
        np.testing.assert_allclose(fit.model.gradient(point), numeric, rtol=1e-5, atol=1e-9 * scale)
        assert np.all(np.isfinite(fit.model.hessian(point)))


def test_what_may_be_negative_or_zero_elsewhere_is_no_root():
    """Exponents without a sign, sums, and denominators that are 0 where the data are: as Python computes them."""
    a, b, x = np.array([2.0]), np.array([0.5]), np.array([0.0])
    own = {"positive": frozenset("ab")}
    with np.errstate(all="ignore"):
        for text, wanted in (
            ("x ** (a - b)", 0.0),
            ("x ** -b", np.inf),
            ("(a + x) ** b", 2.0**0.5),
            ("(x / (a * x)) ** b", np.nan),
            ("(x - a) ** b", np.nan),
            ("(b * x) ** 2", 0.0),
        ):
            expression = nonlinear.read_expression(text, [name for name in "ab" if name in text])
            expression = nonlinear.replace(expression, **own)
            given = {"a": a, "b": b}
            found = expression([x], [given[name] for name in expression.parameters])
            np.testing.assert_array_equal(found, [wanted], err_msg=text)


NAMES = {
    "letters that Python replaces by others": ("b * \u00b5 + c * \u03bc", ["\u00b5", "\u03bc"]),
    "those in backticks": ("b * `\u00b5` + c * `\ufb01`", ["\u00b5", "\ufb01"]),
    "ligatures": ("b * \ufb01 + c * fi", ["\ufb01", "fi"]),
    "what stands for a name elsewhere": ("b * `a b` + c * name_0_", ["a b", "name_0_"]),
    "operators": ("b * `x^2` + c * `np.exp(x)`", ["x^2", "np.exp(x)"]),
    "numbers": ("b * `2019` + c * `1e3`", ["2019", "1e3"]),
    "infinity": ("b * `inf` + c * nan", ["inf", "nan"]),
    "functions": ("b * exp + c * `log`", ["exp", "log"]),
    "several lines": ("b * one\n  + c *\n two", ["one", "two"]),
}


@pytest.mark.parametrize("what", NAMES)
def test_columns_are_those_of_their_names_in_fits_and_in_new_rows(what):
    text, names = NAMES[what]
    columns = {"\u00b5", "\u03bc", "\ufb01", "fi", "a b", "name_0_", "x^2", "np.exp(x)", "2019", "1e3", "inf", "nan"}
    columns |= {"exp", "log", "one", "two"}
    rng = np.random.default_rng(8)
    data = table().assign(**{name: rng.uniform(k, k + 1.0, 23) for k, name in enumerate(sorted(columns))})
    fit = prepared({"y": f"y ~ {text}", "b + c": "~ 1"}, {"b": N1, "c": Normal(3.0, 0.1)}, data)
    natural, x = natural_points(fit, 2)
    b, c = (natural[f"{name}: Intercept"][:, None] for name in "bc")
    wanted = b * data[names[0]].to_numpy() + c * data[names[1]].to_numpy()
    np.testing.assert_allclose(fit.predicted(x, None, "link", "error", None), wanted, rtol=1e-13)
    new = data.iloc[::-1].reset_index(drop=True)
    np.testing.assert_allclose(fit.predicted(x, new, "link", "error", None), wanted[:, ::-1], rtol=1e-13)


def test_columns_beside_the_response_that_are_called_by_numbers():
    data = table().rename(columns={"s": "7", "m": "3"})
    priors = {"Intercept": Normal(0.3, 2.0)}
    fits = prepared("y | se(`7`) ~ 1", priors, data), prepared("won | trials(`3`) ~ 1", priors, data, "binomial")
    y, sd, won, m = (data[name].to_numpy() for name in ("y", "7", "won", "3"))
    laws = [lambda b: stats.norm.logpdf(y, b, sd), lambda b: stats.binom.logpmf(won, m, special.expit(b))]
    for fit, law in zip(fits, laws, strict=True):
        natural, x = natural_points(fit, 1)
        np.testing.assert_allclose(
            fit.log_likelihoods(x, np.arange(23))[0], law(natural["Intercept"][0]), rtol=1e-12, atol=1e-12
        )


def test_text_in_further_rows_is_no_number():
    fit = pdmp.regression(LINE, table(), priors={"b": N1}, seed=1, chains=1, gradients=40)
    new = table().assign(x="1.0")
    with pytest.raises(ValueError, match="^`new`: the column 'x' of the expression must hold numbers"):
        fit.predict(new)
    with pytest.raises(ValueError, match="^`data`: the column 'x' of the expression must hold numbers"):
        fit.update(new)


def test_truth_values_of_arrow_are_numbers():
    pytest.importorskip("pyarrow")
    data = table().assign(sure=lambda t: t.x > 2.0)
    fits = [
        prepared({"y": "y ~ b + c * sure", "b + c": "~ 1"}, {"b": N1, "c": N1}, data.astype({"sure": kind}))
        for kind in (bool, "boolean", "bool[pyarrow]")
    ]
    assert len({fit.model.potential(np.array([0.1, 0.5, 0.2])) for fit in fits}) == 1


IMAGES = {
    "a product": ("b * c + s", {}, ["the other sign of 'b', 'c'", "'b' and 'c' exchanged"]),
    "a product with a link": ("b * c + s", {"b": "log"}, []),
    "a square": ("square(b) * x + c", {}, ["the other sign of 'b'"]),
    "a square and a product": (
        "square(b) * x * c * d",
        {},
        ["the other sign of 'b'", "the other sign of 'c', 'd'", "'c' and 'd' exchanged"],
    ),
    "three factors": ("b * c * x + c * d * s + b * d", {}, ["the other sign of 'b', 'c', 'd'"]),
    "a mean of two": ("log(exp(b * x) + exp(c * x))", {}, ["'b' and 'c' exchanged"]),
    "two decays": (
        "b * exp(-d * x) + c * exp(-e * x)",
        {"d": "log", "e": "log"},
        ["'b' and 'c' exchanged and 'd' and 'e' exchanged"],
    ),
    "two decays with unlike links": ("b * exp(-d * x) + c * exp(-e * x)", {"d": "log", "e": "logit"}, []),
    "a sum": ("b + c + d * x", {}, []),
    "a decay": ("b + c * exp(-d * x)", {"d": "log"}, []),
    "a decay without a link": ("b + c * exp(-d * x)", {}, []),
    "a root": ("sqrt(square(b * x)) + c * s", {}, ["the other sign of 'b'"]),
    "a Hill curve": ("b * x ** c / (x ** c + d ** c)", {"c": "log", "d": "log"}, []),
    "a line of two names": ("(b + c) * x", {}, []),
    "a product of logarithms": ("log(b) * log(c) + s", {"b": "log", "c": "log"}, ["'b' and 'c' exchanged"]),
}


@pytest.mark.parametrize("what", IMAGES)
def test_modes_that_are_images_of_each_other_are_noted(what):
    text, links, wanted = IMAGES[what]
    names = [name for name in "bcde" if re.search(rf"\b{name}\b", text)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where a mode is found there, it is warned of
        fit = prepared(
            {"y": f"y ~ {text}", " + ".join(names): "~ 1"}, dict.fromkeys(names, Normal(1.0, 0.5)), link=links
        )
    said = [note for note in fit.notes if "is the same with" in note]
    assert said == [
        f"the expression '{text}' is the same with {one}: the posterior has two modes unless priors tell them apart, "
        "of which a run can miss one without a sign"
        for one in wanted
    ]


BOUNDS = "For parameters with bounds use `transforms=`, or pdmp.Bounded"
FAILURES = {
    pdmp.SamplingError: f"failed. {BOUNDS}; else give proper priors, `initial=`, or a process of your choice.",
    ValueError: f"give `initial=` another point. {BOUNDS}.",
}


@pytest.mark.parametrize("kind", FAILURES)
def test_errors_of_sampling_advise_what_a_formula_has(kind, monkeypatch):
    def sample(*_, **__):
        raise kind(FAILURES[kind])

    monkeypatch.setattr(general, "sample", sample)
    with pytest.raises(kind) as caught:
        prepared(LINE, {"b": N1}).sample()
    assert 'link={"its name": "log"}' in str(caught.value) and "=`" not in str(caught.value)
    with pytest.raises(kind, match="transforms="):
        prepared("s ~ x", None, family="gamma").sample()


def test_priors_of_coefficients_have_the_unit_of_the_parameter():
    data = table()
    fit = prepared(DECAY, {"floor": Normal(0.5, 2.0), "top": Normal(30.0, 8.0), "rate": StudentT(3.0, 0.0, 0.25)}, data)
    priors = fit.priors
    assert priors["top: Intercept"] == Normal(30.0, 8.0)
    assert priors["top: a[v]"].sd == pytest.approx(8.0 / np.std(data.a == "v"))
    assert priors["top: sd(g)"].scale == pytest.approx(8.0)
    assert priors["rate: z"].sd == pytest.approx(0.25 / np.std(data.z))
    assert (priors["top: a[v]"].mean, priors["rate: z"].mean) == (0.0, 0.0)
    assert priors["sigma"] == HalfStudentT(4.0, float(np.std(data.y, ddof=0)))
    only = prepared({"y": "y ~ b * x", "b": "~ 0 + a"}, {"b: a": Normal(1.0, 3.0)}, data)
    assert only.priors["b: a[u]"] == only.priors["b: a[v]"] == Normal(1.0, 3.0)
    only = prepared({"y": "y ~ b * x", "b": "~ 0 + z"}, {"b": Normal(1.0, 3.0)}, data)
    assert only.priors["b: z"] == Normal(1.0, 3.0)


def test_names_of_the_response_and_of_parameters_of_the_family_are_no_parameters_inside():
    assert parameters_inside({"y": "y ~ b * x", "b": "~ 1", "sigma": "~ x"}, pdmp.families.gaussian) == ["b"]
    assert parameters_inside({"y": "y ~ x", "b": "~ 1"}, pdmp.families.gaussian) == []
    assert parameters_inside({"y": "y ~ bx + b(x) + a.b", "b": "~ 1"}, pdmp.families.gaussian) == []
    assert parameters_inside({"b": "b ~ 1", "y": "y ~ b"}, pdmp.families.gaussian) == ["b"]
    assert parameters_inside("y ~ x", pdmp.families.gaussian) == []


def test_parameters_of_the_expression_come_first_and_keep_the_needs_and_priors_of_others():
    data = table().assign(is_late=table().x > 2.0)
    fit = prepared({"y": "y ~ b * is_late", "sigma": "~ z", "b": "~ 1"}, {"b": N1}, data)
    assert list(fit.designs) == ["b", "sigma"]
    assert list(fit.priors) == ["b: Intercept", "sigma: Intercept", "sigma: z"]
    x = np.array([[0.7, -0.2, 0.3]])
    late = fit.predicted(x, None, "link", "error", None)[0]
    np.testing.assert_array_equal(late != 0.0, data.is_late)
    with pytest.raises(ValueError, match="item_response needs a formula of 'discrimination'"):
        prepared({"won": "won ~ b * x", "b": "~ 1"}, {"b": N1}, data.assign(won=data.won > 0), "item_response")
    own = pdmp.Family("own", lambda y, z: 0.5 * (y - z) ** 2, priors={"z": Normal(0.0, 3.0)})
    assert list(prepared(LINE, {"b": N1}, data, own).priors) == ["b: Intercept"]


def test_columns_of_a_parameter_are_not_taken_for_those_of_the_mean():
    """A column that is the response is no fit without noise; one that separates labels need not do so in b x."""
    data = table().assign(w=table().y, late=1.0 * (table().x > 2.0))
    assert "b: w" in prepared({"y": "y ~ b * x", "b": "~ w"}, {"b": N1}, data).priors
    assert "b: x" in prepared({"late": "late ~ b * z", "b": "~ x"}, {"b": N1}, data, "bernoulli").priors
    counts = pdmp.families.zero_inflated_poisson
    expression = nonlinear.read_expression("b * x", ["b"])
    family, y = nonlinear.nonlinear(counts, expression, {}), data.k.to_numpy(float)
    assert leanings(family, "b", y, {}) == []
    (found,) = leanings(family, "zi", y, {})
    np.testing.assert_array_equal(found[1], np.where(y == 0.0, 1.0, -1.0))


def test_the_identity_is_a_link_of_a_probability_in_an_expression_alone():
    with pytest.raises(ValueError, match="`link` of 'mu' must be one of 'logit'"):
        prepared("won ~ x", {}, table().assign(won=table().won > 0), "bernoulli", link="identity")
    labels = table().assign(won=table().won > 0)
    fit = prepared(
        {"won": "won ~ p", "p": "~ 1"}, {"p": Normal(0.4, 0.1)}, labels, "bernoulli", link={"mu": "identity"}
    )
    won = labels.won.to_numpy()
    np.testing.assert_allclose(
        fit.log_likelihoods(np.array([[3.0]]), np.arange(23))[0], np.log(np.where(won, 0.3, 0.7))
    )


REFUSED = {
    "a prior": (LINE, {}, {}, "must have a prior of 'b' with a mean and a scale"),
    "a flat prior": (LINE, {"b": Flat()}, {}, 'link={"b": "log"}'),
    "a positive prior": (LINE, {"b": HalfNormal(1.0)}, {}, 'link={"b": "log"}'),
    "a prior of each": ({"y": "y ~ b * x", "b": "~ 0 + a"}, {"b": N1}, {}, "a prior of 'b: a.u.'"),
    "another prior": (LINE, {"b": N1, "c": N1}, {}, "`priors` names 'c'"),
    "no coefficient": ({"y": "y ~ b * x", "b": "~ 0 + (1 | g)"}, {"b": N1}, {}, "must have an intercept or another"),
    "a function": ({"y": "y ~ b * foo(x)", "b": "~ 1"}, {"b": N1}, {}, r"foo\(x\) is not known in an expression"),
    "two arguments": ({"y": "y ~ b * exp(x, x)", "b": "~ 1"}, {"b": N1}, {}, r"exp\(x, x\) is not known"),
    "groups": ({"y": "y ~ b * x + (1 | g)", "b": "~ 1"}, {"b": N1}, {}, "'1 . g' cannot be in an expression"),
    "an item": ({"y": "y ~ b * `a b`[0]", "b": "~ 1"}, {"b": N1}, {}, "'`a b`.0.' cannot be"),
    "an attribute": ({"y": "y ~ b * x.T", "b": "~ 1"}, {"b": N1}, {}, "'x.T' cannot be"),
    "a test": ({"y": "y ~ b * (x > 2)", "b": "~ 1"}, {"b": N1}, {}, "'x > 2' cannot be"),
    "an imaginary number": ({"y": "y ~ b * 2j", "b": "~ 1"}, {"b": N1}, {}, "'2j' cannot be"),
    "a comment": ({"y": "y ~ b * x # + x", "b": "~ 1"}, {"b": N1}, {}, "is no expression"),
    "a keyword": ({"y": "y ~ b * (x if x else 1)", "b": "~ 1"}, {"b": N1}, {}, "'x if x else 1' cannot be"),
    "half an expression": ({"y": "y ~ b *", "b": "~ 1"}, {"b": N1}, {}, "is no expression"),
    "a column that is not there": ({"y": "y ~ b * w", "b": "~ 1"}, {"b": N1}, {}, "'w', and `data` has no such"),
    "text": ({"y": "y ~ b * a", "b": "~ 1"}, {"b": N1}, {}, '{"b": "~ a"}'),
    "the response": ({"y": "y ~ b * y", "b": "~ 1"}, {"b": N1}, {}, "the response 'y' is in its own"),
    "sigma": ({"y": "y ~ b * sigma", "b": "~ 1"}, {"b": N1}, {}, "'sigma' is a parameter of gaussian"),
    "two things": ({"y": "y ~ b * x", "b": "~ 1", "x": "~ 1"}, {"b": N1, "x": N1}, {}, "'x' is a parameter with"),
    "not inside": (LINE | {"c": "~ 1"}, {"b": N1, "c": N1}, {}, "'c', which is no further parameter .* expression"),
    "a link": (LINE, {"b": N1}, {"link": {"b": "sqrt"}}, "`link` of 'b' must be"),
    "a link of nothing": (LINE, {"b": N1}, {"link": {"c": "log"}}, "`link` names 'c'"),
    "an offset": (LINE, {"b": N1}, {"offset": "z"}, "write the column into the expression"),
    "an exposure": (LINE, {"b": N1}, {"exposure": "s"}, "write the column"),
    "categories": ({"k": "k ~ b * x", "b": "~ 1"}, {"b": N1}, {"family": "cumulative"}, "no single predictor"),
    "imputed": ({"y": "y ~ b * x + mi(z)", "b": "~ 1", "z": "z | mi() ~ x"}, {"b": N1}, {}, r"mi\(x\) is for linear"),
    "selected": (LINE, {"b": N1}, {"select": "all"}, "`select` is for the families"),
    "two formulas": ({"y": "y ~ a * x + b", "a + b": "~ 1", "a": "~ x"}, {"a": N1, "b": N1}, {}, "formulas of 'a'"),
    "a division by 0": ({"y": "y ~ b * (1 / 0)", "b": "~ 1"}, {"b": N1}, {}, "'1 / 0' is no finite number"),
    "a logarithm": ({"y": "y ~ b + x * log(0)", "b": "~ 1"}, {"b": N1}, {}, r"'log\(0\)' is no finite number"),
    "a root of a number": ({"y": "y ~ b + sqrt(2 - 3)", "b": "~ 1"}, {"b": N1}, {}, r"'sqrt\(2 - 3\)' is no finite"),
    "an exponential": ({"y": "y ~ b * exp(1000)", "b": "~ 1"}, {"b": N1}, {}, r"'exp\(1000\)' is no finite number"),
    "a large power": (
        {"y": "y ~ (b * x) ** 1e308", "b": "~ 1"},
        {"b": N1},
        {},
        r"'\(b \* x\) \*\* 1e\+308' is too large",
    ),
    "many signs": ({"y": "y ~ " + "-" * 5_000 + "b", "b": "~ 1"}, {"b": N1}, {}, "is too long|is no expression"),
    "very many terms": ({"y": "y ~ " + "b + " * 100_000 + "b", "b": "~ 1"}, {"b": N1}, {}, "is too long"),
    "a root": ({"y": "y ~ b + x * (-2) ** 0.5", "b": "~ 1"}, {"b": N1}, {}, r"'\(-2\) \*\* 0.5' is no finite number"),
    "a huge number": ({"y": "y ~ b * 1e999", "b": "~ 1"}, {"b": N1}, {}, "is no finite number"),
    "a huge power": ({"y": "y ~ b * 9**9**9", "b": "~ 1"}, {"b": N1}, {}, r"'9 \*\* 9 \*\* 9' is no finite number"),
    "a long expression": ({"y": "y ~ " + "b + " * 200 + "b", "b": "~ 1"}, {"b": N1}, {}, "802 parts is too long"),
    "a pole": ({"y": "y ~ b / dose", "b": "~ 1"}, {"b": Normal(1.0, 1.0)}, {}, "the expression is inf in row"),
    "a power with a link": (
        {"y": "y ~ dose ** b", "b": "~ 1"},
        {"b": Normal(1.0, 0.1)},
        {"link": {"b": "identity"}},
        "has no finite derivative",
    ),
    "no derivative": ({"y": "y ~ dose ** b", "b": "~ 1"}, {"b": Normal(1.0, 0.1)}, {}, "has no finite derivative"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_expression_is_refused_with_what_to_write(what):
    formula, priors, options, said = REFUSED[what]
    options = dict(options)
    with pytest.raises(ValueError, match=said):
        prepared(formula, priors, table(), options.pop("family", "gaussian"), **options)


def test_all_functions_are_those_of_their_names():
    known = {
        "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "tanh": np.tanh,
        "sin": np.sin, "cos": np.cos, "expit": special.expit, "inv_logit": special.expit, "erf": special.erf,
        "softplus": lambda u: np.log1p(np.exp(u)), "log1p_exp": lambda u: np.log1p(np.exp(u)), "Phi": stats.norm.cdf,
        "square": np.square,
    }  # fmt: skip
    assert known.keys() == nonlinear.FUNCTIONS.keys()
    u = np.array([0.3, 1.7])
    for name, function in known.items():
        found = nonlinear.read_expression(f"np.{name}(b)", ["b"])([], [u])
        np.testing.assert_allclose(found, function(u), rtol=1e-13, err_msg=name)
    assert nonlinear.read_expression("-b^2 + 3 / -b - +2", ["b"])([], [2.0]) == -4.0 - 1.5 - 2.0


SIGNS = {
    "b": True, "c": False, "x": False, "b + d": True, "b + x": False, "x + b": False, "b * d": True, "b * x": False,
    "b / d": True, "x / b": False, "b / x": False, "b - d": False, "b ** x": True, "b ** c": True, "x ** b": False,
    "exp(c)": True, "exp(-x)": True, "sqrt(b)": True, "sqrt(x)": False, "log(b)": False, "log1p(b)": True, "-b": False,
    "b + 1": True, "b + 0": False, "2 * b": True, "expm1(c)": False, "square(c)": False, "b ^ 2": True,
}  # fmt: skip


@pytest.mark.parametrize("text", SIGNS)
def test_what_is_above_zero_whatever_data_and_parameters_are(text):
    """Parameters with a link are, numbers, and what is made of these: powers with other exponents are not 0 at 0."""
    names = [name for name in "bcd" if re.search(rf"\b{name}\b", text)]
    expression = nonlinear.replace(nonlinear.read_expression(text, names), positive=frozenset("bd"))
    assert expression._is_positive(expression.tree) == SIGNS[text]


def test_a_parameter_that_is_not_in_the_expression_is_named():
    with pytest.raises(ValueError, match=r"`formula` names 'c', which is not in the expression 'b \* x'"):
        nonlinear.read_expression("b * x", ["b", "c"])
