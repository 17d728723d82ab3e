"""What `test_propriety.py` and other test modules share."""

import math

import numpy as np

import pdmp
from pdmp.models import from_function
from pdmp.models.transforms import Log
from tests.digests import MODELS
from tests.targets import KINDS, Cone, Plane, Quartic, Schools

Y, SD = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def target(potential, gradient, dim, **options):
    return from_function(
        lambda x: (float(potential(x)), np.array(gradient(x), float)), dim, check_gradient=False, **options
    )


def student(nu, dim, together=True):
    """Student's t: multivariate, or of independent coordinates."""
    if together:
        return target(lambda x: 0.5 * (nu + dim) * np.log1p(x @ x / nu), lambda x: (nu + dim) * x / (nu + x @ x), dim)
    return target(lambda x: 0.5 * (nu + 1) * np.log1p(x * x / nu).sum(), lambda x: (nu + 1) * x / (nu + x * x), dim)


def curve(rate):
    """A ridge around xy = 1, along which the density falls off like |x|^-(1 + 2 rate)."""

    def gradient(x):
        return (x[0] * x[1] - 1.0) * x[::-1] + 2.0 * rate * x / (1.0 + x * x)

    return target(lambda x: 0.5 * (x[0] * x[1] - 1.0) ** 2 + rate * np.log1p(x * x).sum(), gradient, 2)


def logistic(labels, X):
    return target(
        lambda b: np.logaddexp(0.0, -labels * (X @ b)).sum(),
        lambda b: -(labels / (1.0 + np.exp(labels * (X @ b)))) @ X,
        X.shape[1],
    )


def schools(prior):
    """Eight schools, centred, with minus the log prior density of log τ and its derivative."""

    def potential(x):
        return (
            0.5 * (((Y - x[:8]) / SD) ** 2).sum()
            + 0.5 * ((x[:8] - x[8]) ** 2).sum() * math.exp(-2.0 * x[9])
            + 8.0 * x[9]
            + prior(x[9])[0]
        )

    def gradient(x):
        r = (x[:8] - x[8]) * math.exp(-2.0 * x[9])
        return [*((x[:8] - Y) / SD**2 + r), -r.sum(), 8.0 - r @ (x[:8] - x[8]) + prior(x[9])[1]]

    return target(potential, gradient, 10, variables={"theta": (8,), "mu": (), "tau": ()}, transforms={"tau": Log()})


def in_natural_units():
    """A straight line with unknown log σ, responses of many thousands; where σ is not a float U is infinite."""
    rng = np.random.default_rng(1)
    h = rng.normal(66.0, 4.0, 200)
    y = -6e4 + 1300.0 * h + rng.normal(0.0, 2e4, 200)

    def potential(x):
        sd = np.exp(x[2])
        if not 0.0 < sd < np.inf:
            return np.inf
        return 199.0 * x[2] + 0.5 * (((y - x[0] - x[1] * h) / sd) ** 2).sum()

    def gradient(x):
        r = (y - x[0] - x[1] * h) * np.exp(-x[2])
        return [-r.sum() * np.exp(-x[2]), -(r @ h) * np.exp(-x[2]), 199.0 - r @ r]

    return target(potential, gradient, 3)


def centred(groups, prior):
    """Groups around a mean, centred, with minus the log prior density of log τ and its derivative."""
    rng = np.random.default_rng(1)
    sd = rng.uniform(5.0, 20.0, groups)
    y = rng.normal(5.0, np.hypot(10.0, sd))

    def potential(x):
        away = x[:groups] - x[groups]
        return (
            0.5 * (((y - x[:groups]) / sd) ** 2 + away**2 * math.exp(-2.0 * x[-1])).sum()
            + prior(x[-1])[0]
            + (groups * x[-1])
        )

    def gradient(x):
        away = x[:groups] - x[groups]
        r = away * math.exp(-2.0 * x[-1])
        return [*((x[:groups] - y) / sd**2 + r), -r.sum(), groups - r @ away + prior(x[-1])[1]]

    return target(potential, gradient, groups + 2)


def counts(rows, columns, priors, centre=5.0):
    """Poisson counts with effects of rows and of columns, of which those of rows have a mean that is not 0."""
    y, d = np.random.default_rng(3).poisson(2.0, (rows, columns)), rows + columns

    def potential(x):
        eta = x[:rows, None] + x[rows:d] - centre
        squares = ((x[:rows] - centre) ** 2).sum(), (x[rows:d] ** 2).sum()
        return (np.exp(eta) - y * eta).sum() + sum(
            0.5 * q * np.exp(-2.0 * s) + n * s + prior(s)[0]
            for q, n, s, prior in zip(squares, (rows, columns), x[d:], priors, strict=True)
        )

    def gradient(x):
        away = np.exp(x[:rows, None] + x[rows:d] - centre) - y
        r = (x[:d] - np.repeat([centre, 0.0], [rows, columns])) * np.exp(-2.0 * np.repeat(x[d:], [rows, columns]))
        pulls = [np.square(q).sum() * np.exp(2.0 * s) for q, s in zip((r[:rows], r[rows:]), x[d:], strict=True)]
        spreads = [n - q + prior(s)[1] for n, q, s, prior in zip((rows, columns), pulls, x[d:], priors, strict=True)]
        return [*(np.append(away.sum(axis=1), away.sum(axis=0)) + r), *spreads]

    return target(potential, gradient, d + 2)


def walk(dim, precision=0.0):
    """A random walk, whose level has the precision."""
    D = np.diff(np.eye(dim), axis=0)
    return target(
        lambda x: 50.0 * (np.diff(x) ** 2).sum() + 0.5 * precision * x @ x,
        lambda x: 100.0 * D.T @ np.diff(x) + precision * x,
        dim,
    )


def powers(c, dim, lower=None):
    """|x|^-2c exp(-|x|²/2), or x^-c e^-x on x > 0."""
    if lower is None:
        return target(
            lambda x: c * np.log(x @ x) + 0.5 * x @ x, lambda x: 2 * c * x / (x @ x) + x, dim, initial=np.full(dim, 0.5)
        )
    return target(
        lambda x: c * math.log(x[0]) + x[0] if x[0] > 0.0 else math.inf, lambda x: c / x + 1, 1, initial=[1.0]
    )


X = np.random.default_rng(0).normal(size=(30, 3))
LABELS = np.sign(X @ [1.0, -2.0, 0.5])


def horseshoe():
    """β, log λ and log τ, with a datum near 0."""

    def potential(x):
        s = x[1] + x[2]
        return (
            0.5 * x[0] ** 2 * np.exp(-2.0 * s) + s + np.logaddexp(0.0, 2.0 * x[1:]).sum() - s + 0.5 * (x[0] - 0.1) ** 2
        )

    def gradient(x):
        e = x[0] * np.exp(-2.0 * (x[1] + x[2]))
        return [e + x[0] - 0.1, *(2.0 / (1.0 + np.exp(-2.0 * x[1:])) - x[0] * e)]

    return target(potential, gradient, 3)


def normal(mean, sd, dim=2):
    return target(lambda x: 0.5 * (((x - mean) / sd) ** 2).sum(), lambda x: (x - mean) / sd**2, dim)


PROPER = (
    MODELS
    | {kind: Plane(k) for k, kind in enumerate(KINDS)}
    | {"Cone": Cone(3), "Quartic": Quartic(2), "Quartic with a wall": Quartic(2, 0.0)}
    | {f"t {nu}": student(nu, 1) for nu in (0.5, 1.0, 1.5)}
    | {f"t {nu} of {d}": student(nu, d) for nu in (0.5, 1.5) for d in (2, 20)}
    | {f"t {nu}, 5 times": student(nu, 5, together=False) for nu in (0.5, 1.0, 1.5)}
    | {f"funnel of {d}": pdmp.models.Funnel(d) for d in (2, 10, 100)}
    | {f"mean {mean:g}": normal(mean, 1.0) for mean in (1e3, 1e8, 1e12)}
    | {f"sd {sd:g}": normal(1e10, sd) for sd in (1e5, 1e9)}
    | {f"a walk of {d}, wide prior": walk(d, 1e-8) for d in (30, 200)}
    | {f"centred, {d}, τ flat": centred(d, lambda s: (-s, -1.0)) for d in (30, 100)}
    | {
        "mean 1e3 of 100": normal(1e3, 1.0, 100),
        "narrow": normal(1e-3, 1e-9),
        "schools": Schools(Y, SD),
        "schools centred": Schools(Y, SD, centred=True),
        "schools, τ flat": schools(lambda s: (-s, -1.0)),
        "schools, vague τ": schools(lambda s: (2e-3 * s + 1e-3 * math.exp(-2.0 * s), 2e-3 - 2e-3 * math.exp(-2.0 * s))),
        "horseshoe": horseshoe(),
        "along a curve": curve(0.1),
        "a line in natural units": in_natural_units(),
        "identified": logistic(np.where(np.arange(30) < 5, -LABELS, LABELS), X),
        "a sum, wide prior": target(
            lambda x: 0.5 * (x[0] + x[1] - 1.0) ** 2 + 5e-9 * x @ x, lambda x: x[0] + x[1] - 1.0 + 1e-8 * x, 2
        ),
        "skewed": target(lambda x: (np.exp(x) - 0.01 * x).sum(), lambda x: np.exp(x) - 0.01, 2),
        "Laplace": target(lambda x: np.abs(x).sum(), np.sign, 5),
        "uniform": target(lambda x: 0.0 if np.abs(x).max() < 1.0 else math.inf, lambda x: 0.0 * x, 2),
        "integrable spike": powers(0.9, 1, lower=0.0),
        "integrable spike in the plane": powers(0.9, 2),
        # log e^x is -inf where e^x underflows
        "underflow": target(lambda x: (0.5 * np.log(np.exp(x)) + np.exp(x) - x).sum(), lambda x: np.exp(x) - 0.5, 2),
    }
)


FLAT, HALF_CAUCHY = (lambda s: (0.0, 0.0)), (lambda s: (np.logaddexp(0.0, 2.0 * s) - s, np.tanh(s)))
SPREADS = {
    "schools": (schools(FLAT), schools(lambda s: (-s, -1.0)), -1),
    "groups": (centred(20, FLAT), centred(20, HALF_CAUCHY), -1),
    "rows": (counts(6, 4, (FLAT, HALF_CAUCHY)), counts(6, 4, (HALF_CAUCHY, HALF_CAUCHY)), -2),
    "columns": (counts(6, 4, (HALF_CAUCHY, FLAT)), counts(6, 4, (lambda s: (-s, -1.0), HALF_CAUCHY)), -1),
}
