"""log Z of fits: the constants that U leaves out, against densities that SciPy has, and the estimate against truths."""

import math

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.formulas import fitting
from pdmp.models import priors as laws
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
