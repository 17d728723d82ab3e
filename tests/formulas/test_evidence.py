"""log Z of fits: the constants that U leaves out, against densities that SciPy has, and the estimate against truths."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.automatic.tempering import answers
from pdmp.automatic.tempering.answers import LogBayesFactor
from pdmp.automatic.tempering.evidence import LogEvidence, bridged
from pdmp.formulas import fitting
from pdmp.models import priors as laws
from pdmp.models.priors import Flat, Normal
from pdmp.models.regressions.group_intercepts import GroupIntercepts

pytestmark = pytest.mark.exact


def table(n=24):
    rng = np.random.default_rng(3)
    x, w = rng.normal(2.0, 3.0, n), rng.uniform(0.5, 2.0, n)
    return {
        "x": x,
        "z": rng.standard_normal(n),
        "w": w,
        "g": np.arange(n) % 3,
        "h": rng.permutation(np.arange(n) % 4),
        "y": 20.0 + 0.5 * x + 3.0 * rng.standard_normal(n),
        "k": rng.poisson(np.exp(0.3 + 0.1 * x)),
        "b": rng.permutation(np.arange(n) % 2),
        "o": rng.permutation(np.arange(n) % 4),
        "t": np.full(n, 9),
    }


def log_prior(prior, value):
    """log density of a natural parameter, by SciPy."""
    if isinstance(prior, laws.Normal):
        return stats.norm.logpdf(value, prior.mean, prior.sd)
    if isinstance(prior, laws.StudentT):
        return stats.t.logpdf(value, prior.degrees, prior.mean, prior.scale)
    if isinstance(prior, laws.HalfNormal):
        return stats.halfnorm.logpdf(value, scale=prior.scale)
    if isinstance(prior, laws.HalfStudentT):
        return math.log(2.0) + stats.t.logpdf(value, prior.degrees, scale=prior.scale)
    if isinstance(prior, laws.HalfCauchy):
        return stats.halfcauchy.logpdf(value, scale=prior.scale)
    if isinstance(prior, laws.LKJ):  # of two variables
        return stats.beta.logpdf(0.5 * (1.0 + value), prior.eta, prior.eta) - math.log(2.0)
    shape = getattr(prior, "shape", 1.0)
    return stats.gamma.logpdf(value, shape, scale=prior.scale)


def log_likelihood(name, y, z, natural, t):
    """Of rows, by SciPy."""
    if name == "gaussian":
        return stats.norm.logpdf(y, z, natural["sigma"])
    if name == "student_t":
        return stats.t.logpdf(y, natural["nu"], z, natural["sigma"])
    if name == "bernoulli":
        return stats.bernoulli.logpmf(y, 1.0 / (1.0 + np.exp(-z)))
    if name == "probit":
        return stats.bernoulli.logpmf(y, stats.norm.cdf(z))
    if name == "poisson":
        return stats.poisson.logpmf(y, np.exp(z))
    if name == "negative_binomial":
        return stats.nbinom.logpmf(y, natural["alpha"], 1.0 / (1.0 + np.exp(z) / natural["alpha"]))
    if name == "binomial":
        return stats.binom.logpmf(y, t, 1.0 / (1.0 + np.exp(-z)))
    cuts = np.array([natural[f"cut[{k + 1}]"] for k in range(3)])  # cumulative
    below = np.c_[np.zeros(len(z)), 1.0 / (1.0 + np.exp(z[:, None] - cuts)), np.ones(len(z))]
    return np.log(np.diff(below, axis=1)[np.arange(len(z)), y])


def natural_log_density(fit, family, natural, data, response, groups, weights):
    """log likelihood and log prior of natural parameters, floats and (groups,)."""
    z = np.full(len(data["x"]), natural.get("Intercept", 0.0)) + natural["x"] * data["x"]
    total = 0.0
    for g, columns in groups.items():
        names = [f"{column}|{g}" for column in columns]
        sds = [natural[f"sd({g if column == '1' else f'{column}|{g}'})"] for column in columns]
        correlation = np.eye(len(columns))
        if len(columns) == 2 and f"cor(1, {columns[1]}|{g})" in natural:
            correlation[0, 1] = correlation[1, 0] = natural[f"cor(1, {columns[1]}|{g})"]
        effects = np.stack([natural[name] for name in names])
        covariance = np.outer(sds, sds) * correlation
        total += stats.multivariate_normal.logpdf(effects.T, cov=covariance).sum()
        for column, effect in zip(columns, effects, strict=True):
            z = z + effect[data[g]] * (1.0 if column == "1" else data[column])
    own = log_likelihood(family, data[response], z, natural, data["t"])
    total += own.sum() if weights is None else data[weights] @ own
    centre = np.mean(data["x"]) if weights is None else np.average(data["x"], weights=data[weights])
    for name, prior in fit.priors.items():
        value = natural[name] + (natural["x"] * centre if name == "Intercept" else 0.0)
        value -= natural["x"] * centre if name.startswith("cut[") else 0.0
        total += log_prior(prior, value)
    if family == "cumulative":  # of all orders of the cuts one is possible, and the prior is of that
        total += math.log(6.0)
    return total


CASES = [
    ("y ~ x", "gaussian", {}, {}),
    ("y ~ x", "student_t", {}, {"weights": "w"}),
    ("b ~ x", "bernoulli", {}, {"priors": {"x": laws.StudentT(4.0, 0.1, 0.5)}}),
    ("b ~ x", "probit", {}, {}),
    ("k ~ x", "negative_binomial", {}, {"priors": {"alpha": laws.Exponential(2.0)}}),
    ("k ~ x + (1 | g)", "poisson", {"g": ["1"]}, {}),
    ("y ~ x + (1 + z || g) + (1 | h)", "gaussian", {"g": ["1", "z"], "h": ["1"]}, {}),
    ("k ~ x + (1 + z | g)", "poisson", {"g": ["1", "z"]}, {"priors": {"cor(g)": laws.LKJ(2.0)}}),
    ("o ~ x + (1 | g)", "cumulative", {"g": ["1"]}, {}),
    ("k | trials(t) ~ x", "binomial", {}, {}),
]


def sampled_model(fit):
    """In the coordinates in which it is sampled."""
    model = fit.model
    return fitting.moved(model) if hasattr(model, "likelihood") and not isinstance(model, GroupIntercepts) else model


def constants_are_right(fit, model, family, data, groups, response, weights=None):
    """-U, the constants and the Jacobian of natural parameters are log likelihood and log prior, at some points."""
    rng = np.random.default_rng(1)
    cuts = [name for name in fit.priors if name.startswith("cut[")]
    gauges = np.flatnonzero(getattr(model, "stiffness", np.zeros(0)))
    for _ in range(2):
        x = 0.3 * rng.standard_normal(model.dim) + model.initial
        if cuts:
            first = list(model.variables).index("standardised cuts")
            place = sum(int(np.prod(shape)) for shape in list(model.variables.values())[:first])
            x[place : place + 3] = np.sort(x[place : place + 3]) + [-0.2, 0.0, 0.2]

        def natural(at):
            found = model.constrain(at)
            return np.concatenate([*(np.ravel(found[name]) for name in found), [model.gauge(at, k) for k in gauges]])

        steps = 1e-5 * np.eye(model.dim)
        jacobian = np.array([natural(x + s) - natural(x - s) for s in steps]) / 2e-5
        assert jacobian.shape[0] == jacobian.shape[1]
        found = {name: value if np.ndim(value) else float(value) for name, value in model.constrain(x).items()}
        truth = natural_log_density(fit, family, found, data, response, groups, weights)
        truth += np.linalg.slogdet(jacobian)[1]
        for k in gauges:
            truth += stats.norm.logpdf(model.gauge(x, k), scale=model.stiffness[k] ** -0.5)
        assert model.omitted() - model.potential(x) == pytest.approx(truth, abs=1e-6 * (1.0 + abs(truth)))


@pytest.mark.parametrize("formula, family, groups, options", CASES, ids=lambda value: str(value)[:34])
def test_constants_that_u_leaves_out(formula, family, groups, options, few_steps):
    data = table()
    fit, *_ = pdmp.regression(formula, data, family, sample=False, seed=1, **options)._sampled.args
    response = formula.split()[0]
    constants_are_right(fit, sampled_model(fit), family, data, groups, response, options.get("weights"))


@pytest.mark.parametrize(
    "formula, groups",
    [("k ~ x + (1 + x || g)", {"g": ["1", "x"]}), ("k ~ x + (1 | g) + (1 | h)", {"g": ["1"], "h": ["1"]})],
)
def test_constants_of_coefficients_of_groups(formula, groups, monkeypatch):
    """A further mean of a second grouping is a coordinate that natural parameters do not know: its gauge is normal."""
    for name in ("GROUPED_ROWS", "MANY_GROUPS", "INTERCEPT_ROWS", "SLOPE_ROWS", "SUBSAMPLED_ROWS"):
        monkeypatch.setattr(fitting, name, 1)
    data = table()
    fit, *_ = pdmp.regression(formula, data, "poisson", sample=False, seed=1)._sampled.args
    assert isinstance(fit.model, GroupIntercepts)
    constants_are_right(fit, fit.model, "poisson", data, groups, "k")


# ---------------------------------------------------------------------------------------------------------------
# The estimate


def gaussian_target(d, rng):
    """U of a normal law without its constant, with an integral of e², and a function that draws (chains, n, d)."""
    root = np.tril(0.5 * rng.standard_normal((d, d)), -1) + np.diag(rng.uniform(0.5, 2.0, d))
    inverse = np.linalg.inv(root)
    shift = 2.0 - np.log(np.diag(root)).sum() - 0.5 * d * math.log(math.tau)

    def potential(x):
        z = inverse @ (x - 1.0)
        return 0.5 * z @ z - shift

    return potential, lambda z: 1.0 + z @ root.T


@pytest.mark.parametrize("d, n, correlation", [(2, 200, 0.0), (12, 60, 0.0), (3, 400, 0.8)])
def test_a_bridge_is_right_within_its_error(d, n, correlation):
    """Of 40 seeds at least 36 within two errors. The mean shows a bias: of halves that are used twice, say."""
    scores = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        potential, moved = gaussian_target(d, rng)
        z = rng.standard_normal((2, n, d))
        for i in range(1, n):
            z[:, i] = correlation * z[:, i - 1] + math.sqrt(1.0 - correlation**2) * z[:, i]
        effective = n * (1.0 - correlation) / (1.0 + correlation)
        found = bridged(moved(z), effective, potential, 100, rng)
        scores.append((found.value - 2.0) / found.error)
    assert np.sum(np.abs(scores) < 2.0) >= 36
    assert abs(np.mean(scores)) < 3.5 / math.sqrt(40.0)


def fit_with_draws(formula, data, draws_of, monkeypatch, **options):
    """A fit whose draws, (2, n, d), are those of a function."""
    fit, *_ = pdmp.regression(formula, data, sample=False, seed=1, **options)._sampled.args
    draws = draws_of(fit)
    monkeypatch.setattr(answers, "diagnostic_draws", lambda run: run.found)
    monkeypatch.setattr(answers, "MOST_POINTS", 120)
    run = SimpleNamespace(found=draws, chains=2, seed=1, records=[SimpleNamespace(accumulated={})])
    return fit.replaced(run=run)


def conjugate(y, X, prior, sd_of_prior):
    """log Z of a normal regression for each σ of a grid, the prior of σ in it, and how coefficients are drawn."""
    log_sd = np.linspace(0.0, 3.0, 121)
    mean = np.array([20.0] + [0.0] * (X.shape[1] - 1))
    found, laws_of = [], []
    for sd in np.exp(log_sd):
        precision = X.T @ X / sd**2 + np.diag(sd_of_prior**-2.0)
        covariance = np.linalg.inv(precision)
        laws_of.append((covariance @ (X.T @ y / sd**2 + mean / sd_of_prior**2), covariance))
        whole = X @ np.diag(sd_of_prior**2) @ X.T + sd**2 * np.eye(len(y))
        found.append(stats.multivariate_normal.logpdf(y, X @ mean, whole) + log_prior(prior, sd) + math.log(sd))
    return log_sd, np.array(found), laws_of


def test_log_z_of_fits_and_their_bayes_factor(monkeypatch):
    """Independent draws of the posterior, whose normalising constant is an integral in one dimension."""
    data, rng = table(), np.random.default_rng(11)
    priors = {"Intercept": Normal(20.0, 5.0), "x": Normal(0.0, 1.0), "sigma": laws.HalfStudentT(3.0, 4.0)}
    truths, fits = [], []
    for formula, columns in (("y ~ x", ["x"]), ("y ~ 1", [])):
        X = np.stack([np.ones(24), *(data[name] - data[name].mean() for name in columns)], axis=1)
        sds = np.array([5.0, 1.0])[: X.shape[1]]
        log_sd, densities, laws_of = conjugate(data["y"], X, priors["sigma"], sds)
        truths.append(special.logsumexp(densities) + math.log(log_sd[1] - log_sd[0]))

        def draws_of(fit, X=X, columns=columns, log_sd=log_sd, densities=densities, laws_of=laws_of):
            chance = np.exp(densities - special.logsumexp(densities))
            chosen = rng.choice(len(log_sd), 800, p=chance / chance.sum())
            beta = np.array([rng.multivariate_normal(*laws_of[k]) for k in chosen])
            sigma = np.exp(log_sd[chosen] + (log_sd[1] - log_sd[0]) * (rng.random(800) - 0.5))
            shift = sum((beta[:, 1 + j] * data[name].mean() for j, name in enumerate(columns)), 0.0)
            natural = {"Intercept": beta[:, 0] - shift, "sigma": sigma}
            natural |= {name: beta[:, 1 + j] for j, name in enumerate(columns)}
            return fit.unconstrained(natural).reshape(2, 400, -1)

        own = {name: prior for name, prior in priors.items() if name in ("Intercept", "sigma", *columns)}
        fits.append(fit_with_draws(formula, data, draws_of, monkeypatch, priors=own))
        found = fits[-1].log_evidence
        assert found.error < 0.05 and abs(found.value - truths[-1]) < 3.0 * found.error
        assert abs(found.gap) < 4.0 * found.gap_error and abs(found.second - found.value) < 0.2
    factor = pdmp.evidence(*fits)
    assert factor.value == fits[0].log_evidence.value - fits[1].log_evidence.value
    assert factor.error == math.hypot(fits[0].log_evidence.error, fits[1].log_evidence.error)
    assert "log_evidence" not in fits[0].replaced(run=None).__dict__  # which is of another run


def test_what_has_no_evidence_is_refused(monkeypatch):
    data = table()
    flat = {"priors": {"x": Flat()}}
    at_zero = lambda fit: np.zeros((2, 40, fit.model.dim))  # noqa: E731
    with pytest.raises(ValueError, match="the prior of 'x' is flat: give a proper one in `priors`"):
        _ = fit_with_draws("y ~ x", data, at_zero, monkeypatch, **flat).log_evidence
    with pytest.raises(ValueError, match="without `select`, .* fit.inclusion()"):
        _ = fit_with_draws("y ~ x", data, at_zero, monkeypatch, select="all").log_evidence
    with pytest.raises(ValueError, match="was not sampled"):
        pdmp.evidence(*[pdmp.regression("y ~ x", data, sample=False)] * 2)
    gaps = data | {"x": np.where(np.arange(24) == 3, np.nan, data["x"])}
    imputed = fit_with_draws({"y": "y ~ mi(x)", "x": "x | mi() ~ z"}, gaps, at_zero, monkeypatch)
    with pytest.raises(ValueError, match=r"imputed values .* leave out `mi\(\)`"):
        _ = imputed.log_evidence
    fits = [fit_with_draws("y ~ x", rows, at_zero, monkeypatch) for rows in (data, gaps)]
    with pytest.raises(ValueError, match="different data: 23 rows for 24: fit both to the rows without missing"):
        pdmp.evidence(*fits)
    weighed = fit_with_draws("y ~ x", data, at_zero, monkeypatch, weights="w")
    with pytest.raises(ValueError, match="different data: the weights of the rows differ"):
        pdmp.evidence(fits[0], weighed)
    other = fit_with_draws("y ~ x", data | {"y": data["y"][::-1]}, at_zero, monkeypatch)
    with pytest.raises(ValueError, match="different data: the responses of the rows differ"):
        pdmp.evidence(fits[0], other)
    short = fit_with_draws("y ~ x", data, lambda fit: np.zeros((2, 15, 3)), monkeypatch)
    with pytest.raises(ValueError, match="at least 16 draws of each chain"):
        _ = short.log_evidence


@pytest.mark.parametrize("compared", [pdmp.evidence, lambda a, b: a.compare(b, draws=20)], ids=["evidence", "compare"])
def test_what_rows_say_must_be_of_one_kind(compared, monkeypatch):
    """Probabilities and densities, censored rows and others, one number of trials and another have no ratio.

    Of the same counts; and a column that censors none is as none.
    """
    data = table()
    rng, n = np.random.default_rng(1), len(data["y"])
    data |= {"k": rng.poisson(3.0, n), "t": rng.exponential(1.0, n), "n": 9 + np.arange(n), "m": 10 + np.arange(n)}
    data |= {
        "c": np.arange(n) % 3 == 0,
        "all": np.zeros(n),
        "i": np.where(np.arange(n) == 2, 2, 0),
        "u": data["t"] + 1.0,
        "v": data["t"] + 2.0,
        "z0": np.where(np.arange(n) == 5, 0.0, data["t"]),
    }

    def fit(formula, family):
        at_zero = lambda fit: np.zeros((2, 40, fit.model.dim))  # noqa: E731
        return fit_with_draws(formula, data, at_zero, monkeypatch, family=family)

    for first, second, says in [
        (("k ~ x", "gaussian"), ("k ~ x", "poisson"), "poisson gives a probability of each response, and gaussian a"),
        (("t ~ x", "weibull"), ("t | cens(c) ~ x", "weibull"), "the censoring of the rows differ"),
        (("t | cens(i, u) ~ x", "weibull"), ("t | cens(i, v) ~ x", "weibull"), "the ends of intervals of the rows"),
        (("k | trials(n) ~ x", "binomial"), ("k | trials(m) ~ x", "binomial"), "the trials of the rows differ"),
        (
            ("z0 ~ x", "hurdle_gamma"),
            ("z0 ~ x", "gaussian"),
            "hurdle_gamma gives a probability of a response that is 0",
        ),
    ]:
        for pair in ((first, second), (second, first)):
            with pytest.raises(ValueError, match=says):
                compared(*(fit(*one) for one in pair))
    none, plain = fit("t | cens(all, u) ~ x", "weibull"), fit("t ~ x", "weibull")
    assert none.unlike(plain) is None and plain.unlike(none) is None
    normal = fit("t ~ x", "gaussian")
    for family in ("gamma", "lognormal", "hurdle_gamma", "hurdle_lognormal", "student_t"):
        assert normal.unlike(fit("t ~ x", family)) is None


def test_an_unsettled_evidence_of_a_fit_is_said(monkeypatch):
    """Draws that are wider than the posterior: those of the normal law see its mass, and from them it looks another."""
    rng = np.random.default_rng(2)
    wide = fit_with_draws(
        "y ~ x", table(), lambda fit: fit.model.initial + rng.standard_normal((2, 50, 3)), monkeypatch
    )
    with pytest.warns(UserWarning, match="evidence is not settled: .* give a larger `ess=`"):
        _ = wide.log_evidence


def test_cuts_of_a_sum_of_terms_that_ascend():
    """One order of three is possible of priors that are alike, which the prior is of; of others it is not known."""
    p = pdmp.Parameters(mu=1, cuts=3)
    rows = pdmp.families.cumulative.rows(table()["o"], mu=p.mu, cuts=p.cuts)
    alike, apart = (
        pdmp.models.sum_of_terms(p, [rows], {"mu": Normal(0.0, 1.0), "cuts": own})
        for own in (Normal(0.0, 2.0), [Normal(0.0, 2.0), Normal(0.0, 2.0), Normal(0.0, 3.0)])
    )
    expected = math.log(6.0) - 2.0 * math.log(math.tau) - 3.0 * math.log(2.0)
    assert alike.omitted() == pytest.approx(expected, abs=1e-12) and math.isnan(apart.omitted())


def test_logs_of_many_rows_are_shown_up_to_their_errors():
    assert repr(LogEvidence(-1823898.37594, 0.0103, -1823898.3768, 0.01, 0.019)).startswith(
        "log Z = -1823898.376 ± 0.01 (stepping stones -1823898.377, forward"
    )
    assert repr(LogBayesFactor(3.58471, 0.0039)) == "log Bayes factor 3.5847 ± 0.0039"
    assert repr(LogBayesFactor(0.0, 0.1)) == "log Bayes factor 0 ± 0.1"
    assert repr(LogBayesFactor(-12.345678, math.inf)) == "log Bayes factor -12.35 ± inf"
