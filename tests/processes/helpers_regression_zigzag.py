"""What `test_regression_zigzag.py` and other test modules share."""

import numpy as np
from scipy import integrate, special

from pdmp.expressions.nodes import exp, softplus
from pdmp.models import families
from pdmp.models.families import Family
from pdmp.models.priors import LKJ, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, StudentT
from pdmp.models.regressions.group_intercepts import GroupIntercepts
from pdmp.models.regressions.likelihoods import (
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)
from pdmp.models.regressions.mixed import GroupColumn, MixedRegression

DISPERSIONS = {
    "sigma": HalfStudentT(4.0, 2.0),
    "nu": Gamma(2.0, 10.0),
    "alpha": HalfCauchy(1.0),
    "shape": HalfCauchy(5.0),
    "zi": Normal(0.0, 1.5),
}
#: A location and a scale, and two further columns of a row that move them: nothing of it is in the package's table.
OWN = Family(
    "logistic",
    lambda y, low, high, z, a: a + 2.0 * softplus((y - low - z) * exp(-a)) - high * (y - low - z) * exp(-a),
    links={"mu": "identity", "shape": "log"},
    data={"low": 0.0, "high": 1.0},
)
LAWS = {law.__name__: law for law in (NormalLaw, StudentTLaw, LogitLaw, ProbitLaw, PoissonLaw, NegativeBinomialLaw)}


SIZES = 3, 4, 2  #: groups of crossed groupings


def responses(law, z, rng):
    """Of the linear predictors z."""
    if law in (LogitLaw, ProbitLaw):
        return (rng.random(len(z)) < special.expit(z)).astype(float)
    if law is PoissonLaw:
        return rng.poisson(np.exp(z))
    if law.family is families.gamma:
        return np.exp(z) * rng.gamma(2.0, 0.5, len(z))
    if law.given:
        return np.ceil(2.0 * rng.random(len(z)))
    if law.family is families.zero_inflated_poisson:
        return rng.poisson(np.exp(z)) * (rng.random(len(z)) < 0.6)
    if law is NegativeBinomialLaw:
        return rng.poisson(np.exp(z) * rng.gamma(1.5, 1.0 / 1.5, len(z)))
    return z + (rng.standard_t(4.0, len(z)) if law is StudentTLaw else rng.standard_normal(len(z)))


def regression(law, groups=0, n=24, columns=3, sort=None, slopes=0, eta=None):
    """A model with weights and an offset; rows in groups of several sizes, with slopes of the last columns.

    With `eta` those of one correlate with the intercepts, by LKJ(eta).
    """
    rng = np.random.default_rng(11)
    X = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, n), rng.standard_t(4.0, n)])[:, :columns]
    g = np.minimum(np.arange(n) % 5, groups - 1) if groups else np.zeros(n, int)
    z = 0.4 + 0.3 * (X[:, 1:] - X[:, 1:].mean(axis=0)).sum(axis=1) / columns + 0.5 * np.cos(3.0 * g)
    y, offset, weights = responses(law, z, rng), rng.normal(0.0, 0.1, n), rng.uniform(0.5, 1.5, n)
    order = np.arange(n) if sort is None else np.argsort({"y": y, "x": X[:, -1], "g": g}[sort], kind="stable")
    X, y, g, offset, weights = X[order], y[order], g[order], offset[order], weights[order]
    column = GroupColumn("1|g", "g", tuple(range(groups)), g, np.ones(n), HalfNormal(1.5))
    names = ["Intercept", "x", "w"][:columns]
    own = [
        GroupColumn(f"{names[j]}|g", "g", tuple(range(groups)), g, X[:, j].copy(), HalfNormal(0.5 + 0.2 * j))
        for j in range(columns - slopes, columns)
    ]
    likelihood = law()
    beside = {
        "trials": y + np.arange(n) % 3,
        "censored": np.arange(n) % 4 - 1.0,
        "upper": 1.5 * y,
        "low": np.cos(np.arange(n)),
        "high": 1.0 + 0.2 * np.sin(np.arange(n)),
        "se": 0.5 + np.arange(n) % 2,
        "lb": y - 0.2 * (1.0 + np.arange(n) % 3),
    }
    return (GroupIntercepts if groups else MixedRegression)(
        X,
        y,
        likelihood,
        names,
        [Normal(0.0, 2.0), StudentT(3.0, 0.0, 1.0), Normal(0.0, 1.0)][:columns],
        [column, *own] if groups else [],
        [DISPERSIONS[name] for name in likelihood.dispersions],
        intercept=0,
        offset=offset,
        weights=weights,
        beside={name: beside[name] for name in likelihood.given},
        **({} if eta is None else {"correlation": LKJ(eta)}),
    )


def crossed(law, groupings=2, n=36, columns=2, sort=None, kind=GroupIntercepts, intercept=2.0, slope=None):
    """A model with weights and an offset; groups of several sizes, not every pair of which has a row.

    The groups of the grouping number `slope` have slopes of the last column.
    """
    rng = np.random.default_rng(12)
    X = np.column_stack([np.ones(n), rng.normal(3.0, 2.0, n)])[:, :columns]
    level = [np.minimum(rng.integers(0, size + 1, n), size - 1) for size in SIZES[:groupings]]
    for g, size in zip(level, SIZES[:groupings], strict=True):
        g[:size] = np.arange(size)
    z = 0.4 + 0.1 * (X[:, -1] - X[:, -1].mean()) + sum(0.5 * np.cos((3.0 + k) * g) for k, g in enumerate(level))
    y, offset, weights = responses(law, z, rng), rng.normal(0.0, 0.1, n), rng.uniform(0.5, 1.5, n)
    order = {None: np.arange(n), "y": np.argsort(y), "g": np.argsort(level[0]), "h": np.argsort(level[1])}[sort]
    groups = [
        GroupColumn(f"1|{name}", name, tuple(range(size)), g[order], np.ones(n), HalfNormal(1.5 + 0.1 * size))
        for name, size, g in zip("ghk", SIZES, level, strict=False)
    ]
    if slope is not None:
        own = groups[slope]
        groups.insert(
            slope + 1, own._replace(name=f"x|{own.grouping}", value=X[order, 1].copy(), prior=HalfNormal(0.7))
        )
    likelihood = law()
    return kind(
        X[order],
        y[order],
        likelihood,
        ["Intercept", "x"][:columns],
        [Normal(0.0, intercept), StudentT(3.0, 0.0, 1.0)][:columns],
        groups=groups,
        dispersion_priors=[DISPERSIONS[name] for name in likelihood.dispersions],
        intercept=0,
        offset=offset[order],
        weights=weights[order],
    )


def moments_on_a_grid(log_density, axes):
    """Means and variances of each coordinate, by Simpson's rule."""
    points = np.meshgrid(*axes, indexing="ij")
    values = log_density(*points)
    weight = np.exp(values - values.max())

    def integral(f):
        for axis in reversed(axes):
            f = integrate.simpson(f, x=axis, axis=-1)
        return f

    def expectation(f):
        return integral(weight * f) / integral(weight)

    mean = np.array([expectation(p) for p in points])
    return mean, np.array([expectation((p - m) ** 2) for p, m in zip(points, mean, strict=True)])
