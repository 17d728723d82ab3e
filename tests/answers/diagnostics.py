"""Diagnostics: of draws, of runs of unequal chains, of models at draws; summaries and their warnings."""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np

import discrete
import pdmp
from pdmp import diagnostics
from pdmp.diagnostics import averages, effective_size, monte_carlo_error, pooled, stein, summary, tails
from pdmp.processes.sticky_groups import StickyGroups
from tests import toys
from tests.answers import case, once
from tests.recorded import moved

RNG = np.random.default_rng(5)
A, B = moved(RNG.standard_normal((40, 3))), moved(RNG.standard_normal((30, 3)))
CHAINS = moved(np.cumsum(RNG.standard_normal((3, 61, 2)), axis=1) * 0.3 + RNG.standard_normal((3, 61, 2)))
LABELS = (RNG.random(30) < 0.4).astype(int)
LOGISTIC = pdmp.models.LogisticRegression(B, LABELS)
TARGET = pdmp.models.Gaussian(moved([0.5, -1.0]), [[1.0, 0.3], [0.3, 0.5]])


def begins(texts):
    """Sentences by their first words, and by their numbers."""
    return [[" ".join(text.split()[:3]), text] for text in texts]


# -- draws ----------------------------------------------------------------------------------------------------------

REFERENCE = moved(RNG.standard_normal((25, 2)) * [1.0, 3.0] + [0.5, 0.0])


@case
def distances():
    return {
        "wasserstein": diagnostics.wasserstein(A[:, :1], B[:, :1]),
        "sliced": diagnostics.sliced_wasserstein(A, B, seed=1),
        "mmd": diagnostics.mmd(A, B),
        "ksd": diagnostics.ksd(A, [LOGISTIC.gradient(x) for x in A]),
    }


@case
def errors_of_moments():
    mean, sd = [0.3, -0.2], np.array([1.2, 2.5])
    return {
        str(np.shape(x)): [
            [diagnostics.mean_error(x, mean, sd, n), diagnostics.sd_error(x, sd, n)]
            + [diagnostics.variance_error(x, sd, relative, n) for relative in (False, True)]
            for n in (16, 5)
        ]
        + [diagnostics.mean_error(x, 0.1, 2.0), diagnostics.variance_error(x, 2.0), diagnostics.sd_error(x, 2.0)]
        for x in (CHAINS, CHAINS[1].tolist(), CHAINS[:2, :20].astype(np.float32))
    }


@case
def distances_of_chains():
    d, both = diagnostics, np.stack([REFERENCE, 0.5 * REFERENCE])
    return [
        [d.wasserstein(CHAINS, other, 6) for other in (REFERENCE, both)],
        [d.wasserstein(CHAINS, REFERENCE, average=unit) for unit in (2.0, [0.5, 3.0])],
        [d.sliced_wasserstein(CHAINS, REFERENCE, slices=n, seed=k, stretches=4) for n, k in ((50, 0), (7, 3))],
        [d.mmd(CHAINS, other, width, 5) for other in (REFERENCE, both) for width in (None, 0.7)],
    ]


@case
def distances_of_many_draws():
    """Of which every second is taken; and of fewer than there are coordinates."""
    with mock.patch.object(diagnostics.distances, "MMD_DRAWS", 50):
        found = [diagnostics.mmd(CHAINS, REFERENCE), diagnostics.mmd(CHAINS[:, :13], CHAINS[0])]
    wide = moved(np.cos(np.arange(36.0)).reshape(4, 9))
    few = wide, np.stack([wide, 2.0 - wide, wide[::-1]])  # of which twelve are enough
    return found, [
        f(x, 2.0 * wide, stretches=2) for f in (diagnostics.mmd, diagnostics.sliced_wasserstein) for x in few
    ]


@case
def reports():
    """Measures, and in the last table the smallest, of which each measure has others."""
    e, given = diagnostics.Estimate, {"one": CHAINS, "few": 0.9 * CHAINS[:, ::2] + 0.2, "near": 1.02 * CHAINS + 0.02}
    numbers = {"wide": (1.0, 0.1, 0.52, 0.01), "least": (0.7, 0.3, 0.58, 0.01), "sharp": (3.0, 0.1, 0.5, 0.001)}
    tables = [
        diagnostics.report(given, CHAINS),
        diagnostics.report(CHAINS, REFERENCE, [0.4, 0.1], [1.5, 2.0], 4),
        diagnostics.distances.ErrorTable({k: {"m": e(*v[:2]), "v": e(*v[2:])} for k, v in numbers.items()}),
    ]
    return [
        [table.rows, {name: table.best(name) for name in next(iter(table.rows.values()))}]
        + [line.split() for line in repr(table).splitlines()]
        for table in tables
    ]


@case
def estimates():
    one, other = diagnostics.Estimate(1.25, 0.3), diagnostics.Estimate(0.5, 0.04)
    many = diagnostics.Estimate(np.array([1.0, 3.0, -2.0]), np.array([0.1, 0.2, 0.3]))
    return [one - other, other - one, one - many, many - one, str(one), str(other), str(many).split()] + [
        [bool(one.differs(other, z)) for z in (2.0, 3.0)] + [bool(other.differs(one, 2.0)), bool(one.differs(other))],
        [many.differs(one).tolist(), many.differs(one, 6.0).tolist(), one.differs(many, 1.0).tolist()],
    ]


@case
def jackknives():
    means = [
        diagnostics.jackknife(measure, x, n)
        for measure in (lambda x: float(x.std()), lambda x: x.mean(axis=0) ** 2)
        for x in (CHAINS, CHAINS[2], CHAINS[:2, :9])
        for n in (2, 7)
    ]
    return means, diagnostics.jackknife(lambda x: x[:, 0].max(), CHAINS)


TIED = np.round(2.0 * CHAINS) / 2.0
STILL = np.concatenate([CHAINS, np.full((3, 61, 1), 2.0), TIED], axis=2)


@case
def chains():
    return {
        "ess": {method: diagnostics.ess(CHAINS, method) for method in ("mean", "bulk", "tail", "sd")},
        "rhat": {method: diagnostics.rhat(CHAINS, method) for method in ("rank", "split")},
    }


#: Distances of an even number of draws from their median are equal in pairs but for rounding, unless many are equal.
FORMS = {"folded": (TIED, TIED[2])}
for name in effective_size.ESS_METHODS:
    given = FORMS.get(name, (STILL, CHAINS[1], TIED[:, :60]))
    case(lambda name=name, given=given: [diagnostics.ess(x, name) for x in given], f"ess, {name}")
for name in effective_size.RHAT_METHODS:
    given = FORMS.get(name, (STILL, CHAINS[1], TIED[:, :60]))
    case(lambda name=name, given=given: [diagnostics.rhat(x, name) for x in given], f"rhat, {name}")


@case
def effective_sizes_by_default():
    few = [f(x) for f in (diagnostics.ess, diagnostics.rhat) for x in (CHAINS, CHAINS[0].astype(np.float32))]
    with mock.patch.object(effective_size, "COLUMNS", 500):  # a few coordinates at a time
        return few, effective_size.draws_rhat(np.where(STILL == STILL[1, 7, 1], np.inf, STILL), "rank")


@case
def of_stretches():
    """Effective draws and R-hat of batches, and quantiles that weigh chains."""
    sums = [np.cumsum(CHAINS[k, :n].T, axis=1) * 0.2 for k, n in enumerate((20, 33, 8))]
    means, variance = [x.mean(axis=1) for x in sums], np.array([0.7, 1.1])
    of = [effective_size.batch_ess(variance, t, sums, h, means) for t, h in (((10.2, 8.0, 4.3), (0.5, 0.25, 0.5)),)]
    alone = effective_size.batch_ess(variance, [10.2, 0.0], sums[:2], [0.5, 0.0], means[:1])
    near = effective_size.batch_ess(variance, [9.0, 8.0], sums[:2], [0.5, 0.25], [means[0], means[0] + [0.01, 3.0]])
    few = effective_size.batch_ess(variance, [1.9], sums[:1], [0.5], means[:1])
    ordered = pooled.ordered(CHAINS, [1.0, 5.0, 2.0])
    quantiles = [pooled.quantiles(q, CHAINS, [1.0, 5.0, 2.0]) for q in (0.3, [0.01, 0.5, 0.999])]
    return of, alone, near, few, effective_size.batch_rhat([variance, 2.0 * variance], means), ordered, quantiles


# -- stretches of paths ---------------------------------------------------------------------------------------------


@case
def asymptotic_variances():
    x = np.concatenate(
        [CHAINS[0], np.ones((61, 1)), -0.8 * CHAINS[1, :, :1] * (-1.0) ** np.arange(61)[:, None]], axis=1
    )
    return [
        [diagnostics.asymptotic_variance(part, h, method) for part in (x, x.reshape(61, 2, 2), x[:, 0].tolist(), x[:7])]
        for method, h in (("spectral", 0.3), ("batch", 0.3), ("batch", 2.0))
    ] + [diagnostics.asymptotic_variance(x, 1.0), diagnostics.asymptotic_variance(x[:8], 1.0)]


@case
def standard_errors():
    """Of unequal chains, of equal ones, of those that differ in one coordinate by more than they explain."""
    parts = [CHAINS[0], CHAINS[1, :40], CHAINS[2, :25]]
    apart = [part + [0.0, 3.0 * k] for k, part in enumerate(CHAINS)]
    call, equal = ([0.5, 0.25, 1.0], [31.0, 10.5, 25.0]), ([0.5, 0.25, 1.0], [31.0, 16.0, 61.0])
    one = [monte_carlo_error.standard_error(parts[1:2], [0.25], [10.0], m) for m in ("spectral", "batch")]
    found = [monte_carlo_error.standard_error(x, *c) for x, c in ((parts, call), (CHAINS, equal), (apart, equal))]
    flat = [x[:, 1] for x in apart]
    return found, one, monte_carlo_error.estimate(1.5, flat, *equal), monte_carlo_error.estimate(A[:2], parts, *call)


# -- runs -----------------------------------------------------------------------------------------------------------


class Loose(toys.Telegraph):
    """Rates of 1.5 under a bound of 1, after a while."""

    exact_bounds = False

    def __init__(self):
        super().__init__(toys.ABOVE_BOUND)


@once
def batch(size=7):
    return pdmp.gradients.Minibatch(LOGISTIC, size)


def sparse_target(d):
    return pdmp.models.Gaussian(np.where(np.arange(d) == 0, 1.0, 0.2), moved(np.ones(d)))


#: How a run is made, and its budgets.
RUNS = {
    "bps": (lambda: pdmp.BPS(TARGET, refresh_rate=0.5), {}),
    "coupled": (toys.Coupled, {}),
    "walls": (lambda: toys.Walls(3), {"initial": [0.3, -1.0, 0.2]}),
    "loose": (Loose, {"initial": [0.5, -0.2]}),
    "ticks": (toys.Ticks, {}),
    "ellipses": (toys.Ellipses, {}),
    "sgld": (lambda: discrete.SGLD(batch(), 0.05), {"initial": [0.5, 0.2, -0.3]}),
    "sgld, all data": (lambda: discrete.SGLD(LOGISTIC, 0.05), {"initial": [0.5, 0.2, -0.3]}),
    "zig-zag": (lambda: pdmp.ZigZag(LOGISTIC), {"initial": [0.5, 0.2, -0.3]}),
    "hot": (lambda: discrete.SGLD(pdmp.gradients.Noisy(TARGET, 40.0), 0.3), {"initial": [0.0, 0.0]}),
    "sticky": (lambda: pdmp.Sticky(pdmp.ZigZag(sparse_target(2)), kappa=0.4), {}),
    "sticky 12": (lambda: pdmp.Sticky(pdmp.ZigZag(sparse_target(12)), kappa=0.4), {}),
    "many": (lambda: toys.Walls(70), {"initial": np.linspace(-1.0, 1.5, 70)}),
}


@once
def run(kind="bps", store="skeleton", lengths=(60, 110, 35), warmups=(0.1, 0.4, 0.2)):
    """One run of chains of these numbers of events, made one by one; as if it had taken 1, 2, 4 seconds."""
    make, options = RUNS[kind]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        runs = [
            pdmp.sample(make(), events=n * (3 if kind == "coupled" else 1), seed=s, warmup=w, store=store, **options)
            for s, (n, w) in enumerate(zip(lengths, warmups, strict=True))
        ]
    records = [dataclasses.replace(one.records[0], seconds=2.0**k) for k, one in enumerate(runs)]
    return pdmp.Run(runs[0].info, records, process=runs[0].process)


def ended(of, k=1):
    """The same run, but that a chain has ended before its warm-up did."""
    records = [dataclasses.replace(r, warmup=math.inf) if i == k else r for i, r in enumerate(of.records)]
    return pdmp.Run(of.info, records, process=of.process)


def without_paths(of):
    """What all runs have, whatever is stored of them."""
    return {
        "mean": of.mean(True),
        "var": of.var(),
        "mcse": [of.mcse(method=m) for m in ("spectral", "batch")],
        "ess": [of.ess(method) for method in ("spectral", "batch", "mean")],
        "rhat": of.rhat(),
        "draws": [diagnostics.effective_draws(of), diagnostics.effective_draws(of, of=["sd"])],
        "some": diagnostics.effective_draws(of, slice(1, 2)),
        "rates": diagnostics.event_rates(of),
        "bounds": diagnostics.bounds(of),
    }


def product(x):
    return x[0] * x[1]


def square(x):
    """Of one position alone."""
    return np.array([float(x[0]) ** 2, min(x[0], x[1])])


def with_paths(of):
    """What needs draws of it."""
    return {
        "ess": [of.ess(m) for m in ("bulk", "tail")],
        "rhat": of.rhat("split"),
        "times": [diagnostics.draw_times(of, n) for n in (1, 7, 20)],
        "means": [
            [diagnostics.running_mean(of, f, 6), diagnostics.running_mean(of, f, 3, combined=False)]
            for f in (None, product, square)
        ],
        "error": [of.expectation(product, True), of.expectation(square, True)],
        "diagnostic": [averages.diagnostic_draws(of), averages.diagnostic_draws(of, 5)],
    }


for kind, store in itertools.product(("bps", "coupled", "walls"), ("skeleton", "grid", "moments")):
    case(lambda kind=kind, store=store: without_paths(run(kind, store)), f"run, {kind}, {store}")
    if store != "moments":
        case(lambda kind=kind, store=store: with_paths(run(kind, store)), f"path, {kind}, {store}")
case(lambda: without_paths(run("coupled", lengths=(20, 18, 16))), "run, coupled, short")
for kind in ("loose", "ticks", "ellipses", "many"):
    case(lambda kind=kind: without_paths(run(kind)), f"run, {kind}")
for store in ("skeleton", "grid", "moments"):
    case(lambda store=store: without_paths(ended(run(store=store))), f"run, a chain without a path, {store}")


@case
def runs_as_draws():
    """A run for an array, and its chains apart."""
    of = run()
    found = [diagnostics.ess(of), diagnostics.ess(of, "tail"), diagnostics.rhat(of), diagnostics.rhat(of, "split")]
    return (
        found,
        [[one.mean(), one.events] for one in diagnostics.split(run("ticks"))],
        diagnostics.draw_times(of).shape,
    )


@case
def few_draws_of_many():
    """Fewer numbers than there would be, and more draws where nearly all are effective."""
    of = run("bps", lengths=(200, 210, 230), warmups=(0.0, 0.0, 0.0))
    with mock.patch.object(averages, "DIAGNOSTIC_NUMBERS", 360):
        found = [averages.diagnostic_draws(of).shape, diagnostics.effective_draws(of)["mean"]]
    with mock.patch.object(averages, "DIAGNOSTIC_DRAWS", 20):
        return found, of.ess(), of.ess("bulk"), of.rhat(), run("ticks", lengths=(160, 110, 135)).ess()


@case
def sums_of_many_events():
    """At most so many stretches of a chain."""
    with mock.patch.object(averages, "STRETCHES", 9):
        return run().mcse(), diagnostics.effective_draws(run())


@case
def events_of_runs():
    found = {kind: diagnostics.event_rates(run(kind)) for kind in ("bps", "loose", "ellipses")}
    return found, [diagnostics.event_rates(run(store=store)) for store in ("grid", "moments")]


@case
def autocorrelations():
    """Of paths and grids, along given directions, and where nothing moves."""
    end, stats = np.array([9.0, 5.0, 6.0]), {"data_terms": 70, "data_passes": 3.5}
    still = SimpleNamespace(draws=lambda n: STILL[..., :3], chains=3, dim=3, end=end, warmup=0.2 * end, stats=stats)
    found = [
        diagnostics.acf(run(), 7, draws=30),
        diagnostics.acf(run("sgld"), 9, np.array([[1.0, 0.0, 0.5], [0.3, -1.0, 2.0]]), 40),
        diagnostics.acf(run("coupled"), 5, draws=35),
        diagnostics.acf(run("sgld", "grid"), lags=3, draws=12),
        *(diagnostics.acf(still, 6, u, 61) for u in (None, np.eye(3)[1:])),
    ]
    return found, [diagnostics.integrated_time(each["acf"]) for each in found]


@case
def integrated_times():
    shapes = np.stack([0.8 ** np.arange(11), 0.5 ** np.arange(11), np.where(np.arange(11) < 3, 0.9, -0.2)])
    shapes = np.stack([shapes, shapes[::-1] * np.where(np.arange(11) == 4, np.nan, 1.0)])
    return [diagnostics.integrated_time(x) for x in (shapes, shapes[0, 2], shapes[0, 0].tolist(), shapes[0, :, :2])]


for kind, store in itertools.product(("sticky", "sticky 12"), ("skeleton", "moments")):
    case(lambda kind=kind, store=store: diagnostics.inclusion(run(kind, store)), f"inclusion, {kind}, {store}")
    if (kind, store) != ("sticky 12", "moments"):
        case(lambda kind=kind, store=store: models_of(run(kind, store)), f"sparsity, {kind}, {store}")


def models_of(of):
    """Models in their order, of a run and of one of which a chain has no path."""
    return [[list(key), p] for one in (of, ended(of)) for key, p in diagnostics.sparsity(one).items()]


@case
def sparsity_of_groups():
    model = pdmp.models.LinearGaussian(
        A[:, [0, 1, 2, 0, 1]] + 0.3 * np.cos(np.arange(200.0)).reshape(40, 5), B[:, 0].repeat(2)[:40]
    )
    process = StickyGroups(pdmp.ZigZag(model), [[1, 3], [0], [2, 4]], inclusion=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        of = pdmp.sample(process, events=150, seed=3)
    return models_of(pdmp.Run(of.info, of.records * 2, process=of.process)), diagnostics.inclusion(of)


# -- models at draws ------------------------------------------------------------------------------------------------


@case
def rates_of_models():
    x = A[None, :20].repeat(2, axis=0) * np.array([1.0, 0.7])[:, None, None]
    models = LOGISTIC, pdmp.models.Gaussian([0.1, 0.0, -0.4], [1.0, 4.0, 0.3])
    temperature = diagnostics.configurational_temperature
    return [
        [diagnostics.bounce_rate(model, y), diagnostics.flip_rates(model, y), temperature(model, y)]
        + [temperature(model, y[..., :33, :], form) for form in ("virial", "gradient")]
        for model in models
        for y in (x, A)
    ]


@case
def rates_of_normal_laws():
    laws = [2.0], [3.0, 0.5, 1.0], [[1.0, 0.4], [0.4, 2.0]], 1.7, np.full(6, 0.3)
    return [[diagnostics.gaussian_bounce_rate(law), diagnostics.gaussian_flip_rates(law)] for law in laws]


def student(df, where):
    """Independent Student's t distributions with these degrees of freedom, infinite for normal ones."""
    df = np.asarray(df)

    def gradient(x):
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(df), (df + 1.0) * (x - where) / (df + (x - where) ** 2), x - where)

    def potential(x):
        square = (x - where) ** 2
        return float(np.where(np.isfinite(df), 0.5 * (df + 1.0) * np.log1p(square / df), 0.5 * square).sum())

    return SimpleNamespace(dim=len(df), n_data=0, potential=potential, gradient=gradient)


def shared(df, d):
    return SimpleNamespace(
        dim=d,
        n_data=0,
        potential=lambda x: 0.5 * (df + d) * math.log1p(float(x @ x) / df),
        gradient=lambda x: (df + d) * x / (df + float(x @ x)),
    )


def side_by_side(model, other):
    """Two models of independent coordinates."""
    d = model.dim
    return SimpleNamespace(
        dim=d + other.dim,
        n_data=0,
        potential=lambda x: model.potential(x[:d]) + other.potential(x[d:]),
        gradient=lambda x: np.concatenate([model.gradient(x[:d]), other.gradient(x[d:])]),
    )


@case
def tail_indices():
    centre, scale, places = np.array([0.3, -0.2, 5.0]), np.array([1.0, 2.0, 3.0]), np.array([2, 0])
    models = student([1.4, np.inf, 0.8], 0.2), student([3.0, 2.5, 1.9], -1.0), shared(1.2, 3)
    found = [tails.tail_indices(model, centre, scale, places) for model in models]
    far = [tails.power(models[0], centre, ray, most) for ray in np.diag([1.0, 2.0, -1.0]) for most in (1.8, np.inf)]
    return found, far


@case
def heavy_tails():
    rng = np.random.default_rng(8)
    x = moved(np.stack([rng.standard_t(df, (3, 400)) for df in (1.2, 9.0, 2.0, 0.7, 1.0)], axis=2) + [0, 5, 0, -3, 0])
    places, ess = np.array([0, 1, 3, 4]), np.array([400.0, 500.0, 90.0, 300.0, 20.0])
    models = {
        "draws": None,
        "own": student([1.2, np.inf, 2.0, 0.7, np.inf], 0.2),
        "shared": shared(1.2, 5),
        "some": side_by_side(shared(1.3, 2), student(np.full(3, np.inf), 0.0)),
    }
    with mock.patch.object(tails, "TAILS", 3):
        few = [tails.heavy_tails(y, np.arange(5), 9.0 * ess) for y in (x, x * [1.0, 90.0, 1.0, 0.01, 0.1])]
        few += [tails.heavy_tails(x, places, ess), tails.heavy_tails(x, np.arange(5), None, models["own"])]
    return few, {
        name: [tails.heavy_tails(x, p, e, model) for p in (places, np.arange(5)) for e in (ess, None)]
        + [tails.heavy_tails(x[:, :90], places, ess, model)]
        for name, model in models.items()
    }


# -- Stein discrepancies --------------------------------------------------------------------------------------------

WIDE = moved(RNG.standard_normal((11, 3)) * [1.0, 2.0, 0.3] + [5.0, 0.0, 0.0])
PULLS = -(WIDE - [4.5, 0.2, 0.0]) / [1.0, 3.0, 0.2]
SIGNED = (1.0 + 2.0 * np.cos(np.arange(11.0))) / np.sum(1.0 + 2.0 * np.cos(np.arange(11.0)))
KERNELS = {
    "imq": "imq",
    "gaussian": "gaussian",
    "c": stein.imq(1.7),
    "beta": stein.imq(0.6, -0.3),
    "narrow": stein.gaussian(0.8),
}
MATRIX = np.array([[1.0, 0.2, 0.0], [0.2, 3.0, -0.3], [0.0, -0.3, 0.5]])
PRECONDITIONERS = {"none": None, "number": 2.5, "vector": [1.0, 4.0, 0.2], "matrix": MATRIX, "draws": "covariance"}


def by_kernel(kernel):
    some = itertools.product((3, 2), "vu", (None, SIGNED))
    found = [diagnostics.ksd(WIDE[:, :d], PULLS[:, :d], kernel, s, w) for d, s, w in some]
    line = [stein.ksd(WIDE[:, 1], PULLS[:, 1], kernel, s) for s in "vu"]
    return found, line, diagnostics.stein_thin(WIDE, PULLS, 6, kernel)


def by_unit(unit):
    names = "imq", "gaussian"
    found = [diagnostics.ksd(WIDE, PULLS, k, s, preconditioner=unit, threads=2) for k in names for s in "vu"]
    return found, [diagnostics.stein_thin(WIDE, PULLS, 5, k, preconditioner=unit) for k in names]


for name, kernel in KERNELS.items():
    case(lambda kernel=kernel: by_kernel(kernel), f"ksd, {name}")
for name, unit in PRECONDITIONERS.items():
    case(lambda unit=unit: by_unit(unit), f"ksd, preconditioner, {name}")


@case
def fssd():
    given = {"locations": moved([[4.0, 0.5, 0.1], [5.5, -1.0, 0.3]]), "iterations": 3, "rate": 0.05}
    found = [
        diagnostics.fssd(WIDE, PULLS, kernel=kernel, statistic=s, criterion=c, **given)
        for kernel in ("gaussian", "imq", KERNELS["beta"])
        for s in "vu"
        for c in ("fssd", "power")
    ]
    fixed = [diagnostics.fssd(WIDE, PULLS, n, False, k, statistic=s) for n, k in ((4, 0), (2, 7)) for s in "vu"]
    line = [
        diagnostics.fssd(WIDE[:, 0], PULLS[:, 0], [[4.0], [6.0]], False),
        diagnostics.fssd(WIDE, PULLS, 1, iterations=2),
    ]
    return found, fixed, line, diagnostics.fssd(WIDE, PULLS, optimise=False)


@case
def sliced_ksd():
    turned = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0], [0.3, 0.3, 0.3]])
    found = [
        diagnostics.sliced_ksd(WIDE, PULLS, slices, optimise, kernel=kernel, statistic=s, iterations=4, rate=0.1)
        for slices in (None, turned)
        for optimise in (True, False)
        for kernel in ("imq", "gaussian", KERNELS["beta"])
        for s in "vu"
    ]
    with mock.patch.object(diagnostics.stein.sliced, "SLICE_DRAWS", 4):
        few = diagnostics.sliced_ksd(A, -0.8 * A, iterations=3)
    return found, few, diagnostics.sliced_ksd(A, -0.8 * A), diagnostics.sliced_ksd(A[:, 0], -A[:, 0])


@case
def odd_draws():
    """A coordinate that is constant, fewer draws than coordinates, numbers that are too large, one draw."""
    still, far = np.where(np.arange(3) == 1, 0.5, WIDE), np.where(np.arange(3) == 1, 1e61, WIDE)
    f = diagnostics
    measures = f.ksd, lambda x, s: f.fssd(x, s, optimise=False), lambda x, s: f.sliced_ksd(x, s, optimise=False)
    return (
        [
            [measure(x, s) for x, s in ((still, PULLS), (far, PULLS), (WIDE, far), (WIDE[:2], PULLS[:2]))]
            for measure in measures
        ],
        f.ksd(WIDE[:1], PULLS[:1]),
        f.stein_thin(WIDE[:1], PULLS[:1], 2, preconditioner=None),
        [f.ksd(np.repeat(WIDE[:1], 4, axis=0), PULLS[:4], kernel="gaussian")],
        stein.kernels.median_distance(A[:, :2].repeat(60, axis=0)),
    )


@case
def scores():
    noisy = [batch(), pdmp.gradients.Noisy(TARGET, 2.0)]
    return [diagnostics.scores(LOGISTIC, A[:4]), diagnostics.scores(TARGET, A[:5, :2].tolist())] + [
        diagnostics.scores(provider, A[:4, : provider.dim], *seed) for provider in noisy for seed in ((), (0,), (3,))
    ]


# -- predictions ----------------------------------------------------------------------------------------------------

P1 = moved(1.0 / (1.0 + np.exp(-B @ A.T)).T)  #: (draws, n)
P3 = moved(np.exp(RNG.standard_normal((6, 30, 3))))
P3 /= P3.sum(axis=2, keepdims=True)
KINDS3 = RNG.integers(0, 3, 30)
PREDICTIONS = {
    "one": (LABELS, P1[3]),
    "list": (LABELS.tolist(), P1[3].tolist()),
    "draws": (LABELS, P1),
    "two": (LABELS, np.stack([1.0 - P1[3], P1[3]], axis=1)),
    "draws of two": (LABELS, np.stack([1.0 - P1[:4], P1[:4]], axis=2)),
    "a column": (LABELS.astype(float), P1[3][:, None]),
    "three": (KINDS3, P3[2]),
    "draws of three": (KINDS3, P3),
    "as many draws": (LABELS, np.stack([1.0 - P1[:30], P1[:30]], axis=2)),
    "certain": (LABELS == 1, np.where(np.arange(30) % 4 == 0, np.arange(30) % 16 / 16.0, P1[1])),
}


def predicted(y, p):
    d = diagnostics
    return [d.log_loss(y, p), d.log_likelihood(y, p), d.accuracy(y, p), d.ece(y, p), d.mce(y, p)] + [
        [d.reliability(y, p, bins, c), d.ece(y, p, bins, c), d.mce(y, p, bins, c)]
        for bins in (4, 7)
        for c in ("standard", "mamba")
    ]


for name, given in PREDICTIONS.items():
    case(lambda given=given: predicted(*given), f"predicted, {name}")


@case
def log_loss():
    return (
        diagnostics.log_loss(LABELS, P1),
        diagnostics.running_log_loss(LABELS, P1),
        diagnostics.reliability(LABELS, P1),
    )


@case
def running_log_losses():
    sure = np.where(np.arange(30) % 3 == 0, 1.0, P1[:5])
    return diagnostics.running_log_loss(LABELS.tolist(), sure.tolist()), diagnostics.running_log_loss(
        [1], [[0.2], [0.7]]
    )


@case
def root_mean_squared_errors():
    y, x = B[:, 0], 3.0 * A[:8, :1] + B[:, 0] * 0.5
    limits = {"none": (), "lowest": (-1.0,), "both": (-0.5, 0.8)}
    found = {
        name: [diagnostics.rmse(y, x, *limit), diagnostics.rmse(y.tolist(), x[2], *limit)]
        for name, limit in limits.items()
    }
    return found, diagnostics.rmse(y, x, highest=0.3)


# -- summaries ------------------------------------------------------------------------------------------------------


def told(found):
    """All of a summary: its rows, and what it says as text and as HTML."""
    lines, html = repr(found).splitlines(), found._repr_html_().splitlines()
    return found, begins(found.warnings), found.note.splitlines(), lines, html, len(found)


for kind, store in (
    *itertools.product(("bps", "coupled"), ("skeleton", "grid", "moments")),
    *((kind, "skeleton") for kind in ("walls", "loose", "sgld", "zig-zag", "hot", "sticky", "many")),
):
    case(lambda kind=kind, store=store: told(run(kind, store).summary()), f"summary, {kind}, {store}")


@case
def frame_of_a_summary():
    return run().summary().to_dataframe()


@case
def summaries_with_natural_parameters():
    """Chains of unequal lengths; what was chosen, and what was said before."""
    of = run(lengths=(60, 110, 35), warmups=(0.1, 0.4, 0.2))
    draws = averages.diagnostic_draws(of)
    info = {**of.info, "choice": "BPS, for a reason", "cautions": ["with care: do this."], "doubts": ["a doubt: that"]}
    again = pdmp.Run({**info, "wrong_gradient": ["the gradient is wrong: mend it."]}, of.records, process=of.process)
    again.said = frozenset(["with care: do this"])
    natural = {
        "x[0]": draws[..., 0],
        "sigma": np.exp(draws[..., 1]),
        "rho": np.stack([draws[..., 0] ** 2, draws[..., 1]], 2),
    }
    again.transforms, again.constrain = {"a": 1}, lambda x: natural
    rows = summary.natural_rows(again, summary.natural_draws(again, ["x[0]", "x[1]"], draws))
    loaded = SimpleNamespace(transforms={"a": 1}, info={}, constrain=mock.Mock(side_effect=ValueError))
    return (
        told(again.summary()),
        rows,
        summary.natural_rows(loaded, summary.natural_draws(loaded, [], draws)),
        summary.natural_rows(of, summary.natural_draws(of, [], draws)),
    )


@case
def long_summaries():
    """More rows than are shown, and quantiles that no row has."""
    rows = [
        dict(zip(summary.Summary.COLUMNS, (f"x[{k}]", *(k + 0.5**j for j in range(7))), strict=True)) for k in range(63)
    ]
    none = [{**row, "2.5%": math.nan, "97.5%": math.nan} for row in rows[:3]]
    heard = ["one 1: more 2", "two 3: more 4"]
    return [told(summary.Summary(*given)) for given in ((rows, "cost 5", ["note 6"], heard, {heard[1]}), (none,))]


NAMES = [f"x[{k}]" for k in range(6)]
FEW = [500.0, 90.0, 30.5, 399.0, 1e4, 400.0]
UNSURE = [0.0, 0.06, 0.2, 0.3, 0.05, 0.1]
APART = {"apart": [False, False, True, False, True, False], "rhat": [1.0, 1.06, 2.0, 1.3, 3.0, 1.2]}
MANY = {
    "names": [f"x[{k}]" for k in range(2_000)],
    "sd": np.ones(2_000),
    "ess": np.full(2_000, 1e4),
    "rhat": np.where(np.arange(2_000) == 7, 1.2, 1.0),
    "loose": np.where(np.arange(2_000) == 9, 0.4, 0.0),
    "apart": np.zeros(2_000, bool),
    "events": (2_000, 2_000),
}
SAID = {
    "nothing": {},
    "few": {"ess": FEW},
    "few of a choice": {"ess": FEW, "info": {"choice": "HMC"}},
    "heavy": {"ess": FEW, "heavy": {0: 1.9, 4: 0.7, 2: 1.5}},
    "one heavy": {"heavy": {3: 1.03}, "rhat": APART["rhat"], "loose": UNSURE},
    "apart": {"ess": FEW, **APART},
    "loose": {"loose": UNSURE, "apart": [False, False, False, True, False, False]},
    "loose, no refreshments": {"loose": UNSURE, "stats": {"events": {"step": 9}}, "heavy": {2: 1.5}},
    "high": {"rhat": [1.05, 1.051, 1.0, 1.3, 1.2, math.nan]},
    "failed": {"stopped": "failed"},
    "interrupted": {"stopped": "interrupted"},
    "still": {"sd": [1.0, 0.0, 1.0, 0.0, 0.0, 0.0], "ess": [1e4, *[math.nan] * 5]},
    "short": {"ess": [1e4, math.nan, 1e4, 0.003, 1e4, 1e4]},
    "no errors": {"ess": [1e4, 1e4, math.nan, 1e4, 1e4, 1e4]},
    "negative": {"sd": [1.0, 1.0, math.nan, 1.0, math.nan, 1.0]},
    **{f"temperature {t}": {"stats": {"mean_kinetic_temperature": t}} for t in (0.4, 0.5, 0.6, 1.9, 2.0, math.nan)},
    "told before": {"info": {"cautions": ["c 1."], "doubts": ["d 2"], "wrong_gradient": ["w 3."]}},
    "unequal": {"lengths": (3.0, 1.9, 2.5), "store": "grid"},
    "nearly equal": {"lengths": (3.0, 2.0, 2.5), "store": "grid"},
    "unequal, without draws": {"lengths": (3.0, 1.0)},
    "off by chance": MANY,
    "off, and few": {**MANY, "ess": np.where(np.arange(2_000) == 3, 20.0, 1e4)},
    "three off": {**MANY, "rhat": np.where(np.arange(2_000) < 3, 1.1, 1.0), "loose": 0.1 * (np.arange(2_000) < 3)},
    "nothing at all": {"names": [], **dict.fromkeys(("sd", "ess", "rhat", "loose", "apart"), ()), "stopped": "failed"},
    **{
        f"bounds, {distance}": {
            "stats": {"bound_violations": 1_234, "thinned": 9_000},
            "bounds": {"violations": 1_234, "missed": 56.7, "path_distance": distance},
        }
        for distance in (0.5, 0.3, 0.01, 0.009)
    },
}


def said(names=NAMES, info=(), stats=(), events=(40, 3), stopped="events", lengths=(1.0,), store="moments", **changed):
    """What is said of a run with these numbers."""
    six = np.ones(6)
    quiet = {"sd": six, "ess": 1e4 * six, "rhat": six, "loose": 0.0 * six, "apart": six < 0.0, "heavy": {}}
    bounds = changed.pop("bounds", None)
    given = {**quiet, **{key: value if key == "heavy" else np.array(value) for key, value in changed.items()}}
    given["apart"] = given["apart"].astype(bool)
    counts = {"events": {"bounce": 40, "refresh": 3}, "bound_violations": 0, "thinned": 9_000, "max_excess": 0.25}
    of = SimpleNamespace(
        aside=False,
        **{"info": dict(info), "dim": len(names), "stats": counts | dict(stats), "stopped": stopped, "process": "BPS"},
        **{"events": np.array(events), "records": [SimpleNamespace(length=h) for h in lengths], "store": store},
        chains=2,
        quantile=lambda q: np.outer(q, np.arange(1.0, 7.0)),
    )
    with mock.patch.object(summary.events, "bounds", lambda run: bounds):
        found = summary.find_warnings(of, names, *given.values())
    return [[" ".join(text.split()[:3]), text, text.split()[-3:]] for text in found]


for name, given in SAID.items():
    case(lambda given=given: said(**given), f"said, {name}")


# -- single warnings ------------------------------------------------------------------------------------------------


@case
def short_runs():
    """Too few effective draws; chains that never moved; coordinates that rest; parts of many coordinates."""
    short, still = run(lengths=(12, 9, 8)), run(lengths=(60, 110, 35))
    stays = [r.integrals._replace(second=r.integrals.first**2 / r.length) for r in still.records]
    some = [dataclasses.replace(r, integrals=stays[k]) if k != 1 else r for k, r in enumerate(still.records)]
    of = [short, run("coupled", lengths=(8, 7, 6)), run("many"), run("sticky 12", lengths=(40, 30, 20)), run()]
    of += [ended(short, k) for k in (0, 2)] + [
        pdmp.Run(still.info, part, process=still.process) for part in (some, some[:1])
    ]
    for k in (0, 1, 2):
        short = ended(short, k)
    failed = pdmp.Run(still.info, [dataclasses.replace(some[0], stopped="failed")], process=still.process)
    with mock.patch.object(summary, "LOOKED", 8_000), mock.patch.object(summary, "SCARCE", 9.0):
        looked = [begins(summary.short_warning(one)) for one in of]
    return looked, [begins(summary.short_warning(one)) for one in (*of, short, failed)]


@case
def rejected_steps():
    """By what share is accepted, of the states that are looked at, and was expected."""
    asked = []

    class Told(pdmp.interfaces.Report):
        def step_acceptance(self, process, x, rng):
            asked.append([x, rng.random()])
            return process.pair

    def of(pair, n_data, store="skeleton", fewest=80):
        process = SimpleNamespace(report=Told(), model=SimpleNamespace(n_data=n_data), pair=pair)
        return SimpleNamespace(process=process, store=store, events=np.array([99, fewest]), dim=2)

    found = []
    for pair in ((0.55, 0.8), (0.57, 0.8), None):
        for given in ((0,), (25_000,), (31_250,), (40_000,), (0, "moments"), (0, "grid", 63), (0, "grid", 64)):
            with mock.patch.object(summary, "diagnostic_draws", lambda run: CHAINS):
                found.append(begins(summary.step_warning(of(pair, *given))))
    return found, asked


@case
def far_anchors():
    found, still = [], run()
    some = ((48.0, 2.0), 1_000), ((48.0, 2.0), 999), ((16.0, 2.0), 1_000), ((1.0, 0.0), 1_000), (None, 1_000)
    for told_of, thinned in some:
        seen = []
        provider = SimpleNamespace(
            anchor_distances=lambda *given, a=told_of, seen=seen: seen.extend(given) or a, anchor_advice="advice 5"
        )
        for process in (provider, SimpleNamespace(inner=SimpleNamespace(provider=provider), provider=None)):
            of = pdmp.Run(still.info, still.records, process=process)
            of.stats["thinned"] = thinned
            found.append([begins(summary.anchor_warning(of)), list(seen)])
    return found, begins(summary.anchor_warning(still))


@case
def chains_that_stay_apart():
    """Each with its own effective draws and R-hat, of those coordinates that are far apart."""
    x = np.cos(np.arange(360.0) ** 1.3).reshape(2, 60, 3) + np.array([0.0, 50.0])[:, None, None]
    x[1, :, 1] += np.linspace(0.0, 9.0, 60)
    found = []
    for first, second in itertools.product(([90.0, 60.0, 70.0], [60.0, 80.0, 50.0], [40.0, 51.0, 70.0]), repeat=2):
        parts = [SimpleNamespace(ess=lambda method, n=n: np.array(n)) for n in (first, second)]
        with mock.patch.object(summary, "split", lambda run, parts=parts: parts):
            for rhat in ([1.6, 1.6, 1.3], [1.1, 1.3, 1.21], [1.2, 1.0, 1.1]):
                found.append(summary.stay_apart(SimpleNamespace(chains=2, dim=3), x, np.array(rhat)) * 1.0)
    return found, summary.stay_apart(SimpleNamespace(chains=1, dim=3), x[:1], np.full(3, 1.6)) * 1.0


@case
def errors_of_standard_deviations():
    slow = CHAINS * np.repeat([0.2, 3.0, 0.5, 1.5], 16)[:61, None] * [1.0, 0.01]
    return [summary.sd_errors(x) for x in (CHAINS, slow, slow[:1], np.concatenate([slow, np.ones((3, 61, 1))], axis=2))]


@case
def tails_of_runs():
    """By the gradient where coordinates are few and data not too many, else by draws of some."""
    rng, found = np.random.default_rng(9), []
    x = moved(np.stack([rng.standard_t(df, (3, 400)) for df in (0.9, 9.0, 1.4)], axis=2))
    ess = np.array([400.0, 300.0, 90.0])
    for n_data, rests, places, given, choice, most in (
        (0, False, None, None, "it", 20),
        (0, None, np.array([0]), ess, "it", 20),
        (0, False, np.array([1, 2]), ess, "it", 20),
        (0, False, np.array([1, 2]), ess, None, 2),
        (71_428, False, np.array([2, 0]), ess, None, 20),
        (71_429, False, np.array([2, 1]), ess, "it", 20),
        (0, True, np.array([0, 1]), ess, "it", 20),
    ):
        model = student([0.9, np.inf, 1.4], 0.1)
        model.n_data = n_data
        process = SimpleNamespace(model=model, rests=bool(rests), walled=rests is None)
        of = SimpleNamespace(
            aside=False, process=process, dim=3, info={"choice": choice}, store="grid", stopped="time",
            names=lambda: NAMES,
        )  # fmt: skip
        of.quantile = lambda q: np.outer(q, [1.0, 2.0, 3.0])
        with mock.patch.object(tails, "TAILS", most), mock.patch.object(summary, "TAILS", most):
            found.append(summary.tails_of(of, x, places, given))
            with mock.patch.object(summary, "diagnostic_draws", lambda run: x):
                found.append(begins(summary.tail_warning(of)))
    return found


@case
def summaries_of_few():
    """Of a run of which a chain has no path, of very few events, of what is 0 nearly always."""
    short = run(lengths=(14, 5, 6))
    with mock.patch.object(summary, "sd_errors", lambda draws: np.full(draws.shape[2], 0.5)):
        zero = told(run("sticky 12").summary())
    return [told(of.summary()) for of in (ended(run()), short, run("bps", "grid", lengths=(14, 5, 6)))], zero


@case
def hot_chains():
    """Those of fixed steps alone, as far as their draws go."""
    some = (("skeleton",), ("grid",), ("moments",), ("skeleton", (7, 7, 7)), ("grid", (8, 9, 7)))
    kinds = [run("hot", *given) for given in some]
    grids = [r.grid._replace(used=np.array([n])) for r, n in zip(kinds[1].records, (15, 13, 30), strict=True)]
    few = [dataclasses.replace(r, grid=grid) for r, grid in zip(kinds[1].records, grids, strict=True)]
    kinds.append(pdmp.Run(kinds[1].info, few, process=kinds[1].process))
    wrong = pdmp.Run({**kinds[0].info, "wrong_gradient": ["w: 1"]}, kinds[0].records, process=kinds[0].process)
    return [begins(summary._heat(of)) for of in (*kinds, wrong, run(), run("sgld"))]
