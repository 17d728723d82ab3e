"""What `pdmp.sample` and `pdmp.auto` of a model choose by themselves, from starts to rungs, and what they say of it."""

from __future__ import annotations

import contextlib
import math
import sys

import numpy as np
from scipy import sparse

import discrete
import pdmp
from pdmp.automatic import metric as learning
from pdmp.automatic import modes, preparing, sampling, start, subsampling, tails, windows
from pdmp.automatic.metric import Metric
from pdmp.automatic.start import Evaluations, Gaussian, Path
from pdmp.automatic.tempering import answers, evidence, ladder, references, rounds
from pdmp.automatic.tempering import modes as tempered_modes
from pdmp.automatic.tempering import preparing as tempered_preparing
from pdmp.automatic.tempering.process import Tempered
from pdmp.metric import LowRank, from_root
from tests.answers import case, once
from tests.answers.discrete import parts
from tests.recorded import moved

PRECISION = moved([[2.0, 0.6], [0.6, 1.5]])
MEAN = np.array([1.0, -0.5])
ROOT = np.linalg.cholesky(np.linalg.inv(PRECISION))
models = pdmp.models


@contextlib.contextmanager
def constants(**values):
    """Other numbers in the place of those of the modules, so that few steps reach what else needs many."""
    before = []
    for module in [m for name, m in sys.modules.items() if name.startswith("pdmp.automatic")]:
        of = values if module is not modes else {k: v for k, v in values.items() if k != "SHARE"}
        before += [(module, name, getattr(module, name)) for name in of if name in vars(module)]
    try:
        for module, name, _ in before:
            setattr(module, name, values[name])
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def function(potential, gradient, dim=2, **options):
    return models.from_function(lambda x: (potential(x), gradient(x)), dim, **options)


def two_modes(x, weights=(0.3, 0.7), sds=(1.0, 0.5)):
    """Two normals, whose integral is e²."""
    centres, sds = np.array([[-2.5, 1.0], [2.5, -1.0]]), np.array(sds)
    logs = np.log(weights) - 0.5 * ((x - centres) ** 2).sum(axis=1) / sds**2 - 2.0 * np.log(sds) - math.log(math.tau)
    total = np.logaddexp.reduce(logs)
    return -total - 2.0, (np.exp(logs - total) / sds**2) @ (x - centres)


def raising(x):
    """An error in some places."""
    if x[0] > 1.5:
        raise ZeroDivisionError
    return 0.5 * x @ PRECISION @ x, PRECISION @ x


@once
def targets():
    """Small targets, of every kind that the preparation tells apart."""
    rng = np.random.default_rng(4)
    x = moved(rng.standard_normal((30, 2)))
    y = moved(rng.standard_normal(30))
    p = pdmp.Parameters(mean=1, log_sd=1, effect=3)
    at = [p.mean[np.zeros(7, int)], p.effect[np.array([0, 2, 2, 1, 0, 2, 1])]]
    rows = pdmp.terms(lambda y, m, u: 0.5 * (y - m - u) ** 2, [y[:7]], at)
    prior = pdmp.terms(
        lambda u, s: s + 0.5 * u * u * np.exp(-2.0 * s), at=[p.effect[np.arange(3)], p.log_sd[np.zeros(3, int)]]
    )
    priors = {
        "mean": models.priors.Normal(0.0, 2.0),
        "log_sd": models.priors.Normal(0.0, 2.0),
        "effect": models.priors.Flat(),
    }
    return {
        "Gaussian": models.Gaussian(MEAN, PRECISION),
        "quartic": function(
            lambda x: 0.5 * x @ PRECISION @ x + 0.1 * np.sum(x**4), lambda x: PRECISION @ x + 0.4 * x**3
        ),
        "Funnel": models.Funnel(2),
        "Banana": models.Banana(),
        "two modes": models.from_function(two_modes, 2),
        "logistic": models.LogisticRegression(x, (y > 0.0).astype(int)),
        "hierarchy": models.sum_of_terms(p, [rows, prior], priors),
        "Student": function(
            lambda x: 2.0 * np.log1p((x[0] - 0.3) ** 2 / 3.0) + 0.5 * x[1] ** 2,
            lambda x: np.array([4.0 * (x[0] - 0.3) / (3.0 + (x[0] - 0.3) ** 2), x[1]]),
        ),
        "half-line": function(
            lambda x: float(x[0] - 4.0 * math.log(x[0]) + 0.5 * x[1] ** 2) if x[0] > 0.0 else math.inf,
            lambda x: np.array([1.0 - 4.0 / x[0], x[1]]),
            initial=[4.0, 0.0],
        ),
        "undefined": models.from_function(undefined, 2),
        "raising": models.from_function(raising, 2),
        "named": models.from_function(
            lambda x: (0.5 * (x - 1.0) @ PRECISION @ (x - 1.0), PRECISION @ (x - 1.0)),
            2,
            variables={"a": (), "b": (1,)},
        ),
        "field": models.GaussianMarkovRandomField(grid()),
    }


def grid():
    import networkx

    return networkx.path_graph(5)


def target(name):
    return targets()[name]


def said(text):
    """A sentence's numbers, and which of the words by which the package chooses are in it."""
    words = (
        "not settled",
        "settled",
        "near normal",
        "far from normal",
        "where the chains",
        "no other mode",
        "one step",
    )
    words += (
        "covariance",
        "variances",
        "directions",
        "sparse Hessian",
        "non-centred",
        "tails of index",
        "rows",
        "Boomerang",
    )
    return [text, [word for word in words if word in text]]


def seed(k=0):
    return np.random.SeedSequence(k)


def rng(k=0):
    return np.random.default_rng(k)


def moved_parts(coordinates):
    """The numbers by which coordinates are moved."""
    return None if coordinates is None else {k: v for k, v in vars(coordinates).items() if isinstance(v, np.ndarray)}


def own(process):
    """The settings of a process that was prepared."""
    kept = ("step", "duration", "target_acceptance", "metric", "around", "coordinates", "neck", "adapts", "schedule")
    kept += ("refresh_rate", "friction", "preconditioner", "moment", "path", "longest", "shape")
    found = {name: parts(value) for name, value in vars(process).items() if name in kept}
    found |= {"is": type(process).__name__, "moved": moved_parts(getattr(process, "coordinates", None))}
    return found


def prepared(process):
    ready = process.prepared
    return {
        "process": own(process),
        "starts": ready.starts,
        "choice": said(ready.choice),
        "gradients": ready.gradients,
        "cautions": list(ready.cautions),
    }


def auto(name, first=40, **options):
    """Few chains and short windows."""
    dense = {key: options.pop(key) for key in ("DENSE",) if key in options}
    with constants(FIRST_WINDOW=first, **dense):
        return prepared(pdmp.auto(target(name), **({"chains": 2, "seed": 1} | options)))


AUTO = {name: {} for name in ("Gaussian", "quartic", "Banana", "two modes", "logistic", "half-line", "named")}
AUTO |= {
    "Student": {"first": 120},
    "field": {"DENSE": 1},
    "Gaussian in many dimensions": {"DENSE": 1},
    "Funnel in many dimensions": {"DENSE": 1},
    "named as it is": {"first": 120, "chains": 4},
    "Gaussian from a point": {"initial": [3.0, 1.0]},
    "Gaussian from points": {"initial": [[3.0, 1.0], [-2.0, 0.5]]},
    "Gaussian, diagonal": {"metric": "diagonal"},
    "quartic, target acceptance": {"target_acceptance": 0.6},
}
SAMPLERS = {
    "HMC": (pdmp.HMC, {"duration": 1.0}),
    "HMC of a step": (pdmp.HMC, {"step": 0.5}),
    "BPS": (pdmp.BPS, {"refresh_rate": 0.5}),
    "ZigZag": (pdmp.ZigZag, {}),
    "Boomerang": (pdmp.Boomerang, {}),
    "GeneralisedBPS": (pdmp.GeneralisedBPS, {}),
    "MALA": (discrete.MALA, {}),
    "Barker": (discrete.Barker, {"increments": "gaussian"}),
    "SGLD": (discrete.SGLD, {}),
    "UBU": (discrete.UBU, {}),
    "callable": (lambda target, metric: pdmp.BPS(target, metric=pdmp.Metric(covariance=metric.covariance)), {}),
}
for name, (sampler, options) in SAMPLERS.items():
    AUTO[f"quartic by {name}"] = {"sampler": sampler, "options": options}
AUTO["Gaussian by MALA, diagonal"] = {"sampler": discrete.MALA, "metric": "diagonal"}
AUTO["Gaussian by BPS, diagonal"] = {"sampler": pdmp.BPS, "metric": "diagonal"}

for name, options in AUTO.items():
    base = next(key for key in ("two modes", "half-line", name.split(",")[0].split(" ")[0]) if name.startswith(key))
    case(lambda base=base, options=options: auto(base, **options), f"auto {name}")


@case
def auto_of_a_provider():
    provider = pdmp.gradients.Minibatch(target("logistic"), 7)
    return auto("logistic", sampler=discrete.SGLD, options={"provider": provider, "step": 0.01})


# -- runs of a model ----------------------------------------------------------------------------------------------


def info(run):
    kept = ("budget", "goal", "choice", "warmup", "store", "chains", "preparation_gradients", "cautions", "ess", "rhat")
    stats = {key: value for key, value in run.stats.items() if "second" not in key}
    return {"info": {key: run.info[key] for key in kept if key in run.info}, "stats": stats, "mean": run.mean()}


@case
def sample_of_a_model():
    found, model = {}, target("quartic")
    with constants(FIRST_WINDOW=40):
        for name, options in {
            "gradients": {"gradients": 60},
            "warm-up": {"gradients": 60, "warmup": 0.5, "store": "grid", "draws": 10},
            "from a point": {"events": 15, "initial": [2.0, 1.0], "target_acceptance": 0.6},
            "moments": {"events": 15, "store": "moments"},
        }.items():
            found[name] = info(pdmp.sample(model, **({"chains": 2, "seed": 1, "progress": False} | options)))
    return found


@case
def goals():
    """The budget of a model that is given none, or a goal alone."""
    given = [{}, {"ess": 50}, {"rhat": 1.1}, {"gradients": 5}, {"ess": 50, "seconds": 3.0}, {"steps": None}]
    every = [sampling._with_default_goals(b, c, t) for b in given for c in (None, 1, 3) for t in (False, True)]
    return [every, list(sampling.arguments())]


# -- starts -------------------------------------------------------------------------------------------------------


def path_of(path):
    if path.gaussian is None:
        return [path.elbo, path.converged]
    gaussians = [[g.centre, np.abs(g.root)] for g in (path.gaussian, path.mode) if g is not None]  # signs are free
    return [gaussians, *path[1:4], path.neck]


@case
def gaussians():
    x, found = moved([[0.3, 1.0], [2.0, -1.5]]), []
    for root in (ROOT, np.array([0.5, 2.0])):
        one = Gaussian(MEAN, root)
        found.append([one.at(x[0]), one.standardised(x[0]), one.standardised(x), one.widths(), one.log_volume()])
        found[-1] += [one.times_covariance(x[1]), start.elbo(Evaluations(target("quartic")), one, x)]
        found[-1].append(start.elbo(Evaluations(target("half-line")), one, x))
    return found


def paths(name, x):
    """Paths of each kind from a point, and what they cost."""
    found = {}
    for kind, options in {"dense": {}, "wide": {"wide": True}, "limited": {"dense": False}}.items():
        evaluations = Evaluations(target(name))
        path = start.find_path(evaluations, np.array(x), rng(), **options)
        again = start.find_path(evaluations, np.array(x) + 0.1, rng(1), (path,), **options)
        found[kind] = [path_of(path), evaluations.count, again is path, path_of(again)]
    return found


for name, x in {
    "Gaussian": [3.0, 2.0],
    "Banana": [2.0, -1.0],
    "two modes": [0.5, 3.0],
    "Student": [9.0, 1.0],
    "half-line": [4.0, 2.0],
    "raising": [1.4, 3.0],
}.items():
    case(lambda name=name, x=x: paths(name, x), f"paths of {name}")


def starts_of(name, chains=3, initial=None, **values):
    with constants(**values):
        found = start.find_starts(target(name), chains, rng(2), initial)
    of = [path_of(path) for path in found.paths]
    names = preparing.names_of(target(name))
    rest = [found.points, found.gaussian, found.centre, found.evaluations, found.converged, found.elbos]
    return [of, rest, found.warning(names)]


for name, options in {
    "Gaussian": {},
    "Gaussian from a point": {"initial": [5.0, 1.0]},
    "Gaussian from points": {"initial": [[5.0, 1.0], [-3.0, 0.0], [0.0, 2.0]]},
    "Gaussian in many dimensions": {"DENSE": 1},
    "two modes": {},
    "Banana": {"chains": 1},
    "half-line from a point": {"initial": [0.2, 1.0]},
    "half-line from outside": {"initial": [-0.5, 1.0]},
}.items():
    base = next(key for key in ("two modes", "half-line", name.split(" ")[0]) if name.startswith(key))
    case(lambda base=base, options=options: starts_of(base, **options), f"starts of {name}")


@case
def necks():
    """The end of a path down a funnel that has none, and which paths count where others have an end."""
    wide, narrow = Gaussian(np.zeros(2), np.ones(2)), Gaussian(np.array([0.1, -9.0]), np.array([1e-3, 1e-9]))
    found = [start._neck((np.zeros(2), wide, 100.0), np.array([0.1, -9.0]), narrow, u) for u in (99.0, 79.0, 50.0)]
    with_one = [
        Path(narrow, 50.0, False, neck=found[2]),
        Path(wide, 20.0, True),
        Path(wide, 12.0, True),
        Path(None, -math.inf, False),
    ]
    one = start.Starts(np.zeros((1, 2)), wide, tuple(with_one), np.zeros(2), 9, np.array([True]))
    there = one._replace(gaussian=narrow)
    behind = [
        start._behind(with_one),
        start._usable(with_one),
        start._usable(with_one[:1]),
        start._behind(with_one[1:]),
    ]
    return [
        found,
        behind,
        one.warning(["a", "b"]),
        there.warning(["a", "b"]),
        one._replace(paths=tuple(with_one[1:])).warning(["a", "b"]),
    ]


@case
def steps_of_paths():
    """Backtracking, quasi-Newton steps of what is remembered, and draws about a point."""
    evaluations, x = Evaluations(target("half-line")), moved([2.0, 1.0])
    gradient = evaluations.gradient(x)
    found = [
        start.backtrack(evaluations, x, evaluations.potential(x), gradient, t * gradient) for t in (0.5, 4.0, 300.0)
    ]
    found.append(start.backtrack(evaluations, x, evaluations.potential(x), -gradient, gradient))
    pairs, last, points = [], None, moved(rng(3).standard_normal((14, 2)))
    for y in points:
        slope = PRECISION @ y
        pairs, last = start.remembered(pairs, last, y, slope), (y, slope)
    found += [pairs, start.two_loops(pairs, points[0], lambda q: 0.5 * q), len(start.remembered(pairs, last, *last))]
    found += [
        start.dispersed(evaluations, np.array([0.5, 1.0]), rng(k), w) for k, w in enumerate((2.0, np.array([9.0, 0.1])))
    ]
    found += [
        start.draw_by_importance(evaluations, Gaussian(np.array([1.0, 0.0]), root), rng(1))
        for root in (ROOT, np.ones(2))
    ]
    return [*found, [start.is_typical(z) for z in (np.full(2, 1.4), np.full(2, 2.9))], evaluations.count]


# -- the metric ---------------------------------------------------------------------------------------------------


def learnt(root=ROOT, points=None, **fields):
    x = MEAN + 1.1 * moved(rng(5).standard_normal((40, 2))) @ np.diag([0.9, 1.1])
    points = MEAN + 0.3 * moved(rng(6).standard_normal((3, 2))) if points is None else points
    made = Metric(Gaussian(MEAN, root), 0.2, points, 0.9, False, from_root(root), 0.3, 2, 400, x)
    return made._replace(**fields)


@case
def metrics():
    """What a learnt metric says of itself, dense, of variances and of directions besides, near and far from normal."""
    low = LowRank(np.array([0.5, 2.0]), np.array([[0.6, 0.8]]), np.array([0.7]))
    given = {
        "dense": learnt(),
        "variances": learnt(np.array([0.5, 2.0])),
        "directions": learnt(np.array([0.5, 2.0]), mass=low),
    }
    given |= {
        "far": learnt(far=True, change=0.6),
        "bent": learnt(far=True, widest=2.3),
        "bent, as long as it may": learnt(far=True, widest=5.0),
        "wide, near normal": learnt(widest=2.3),
        "changed": learnt(change=0.6),
        "asked": learnt(far=True, target_acceptance=0.7),
    }
    found = {}
    for name, one in given.items():
        of = [one.settled, one.mean, one.root, one.covariance, one.variances, one.duration, one.acceptance]
        found[name] = [of, one.diagonal()._asdict() | {"mass": one.diagonal().mass.root}]
    return found


@case
def fits():
    """Gaussians fitted to draws and gradients, of all directions, of variances, and of few directions besides."""
    model, x = target("quartic"), moved(rng(7).standard_normal((30, 2)))
    gradients = np.array([model.gradient(y) for y in x])
    dense, own = learning.fitted_gaussian(x, gradients), learning.fitted_gaussian(x, gradients, False)
    wide = moved(rng(8).standard_normal((9, 40)) * np.linspace(0.5, 3.0, 40))
    steep = moved(wide / np.linspace(0.5, 3.0, 40) ** 2 + rng(9).standard_normal((9, 40)) * 3.0)
    few = learning.low_rank(np.linspace(0.4, 2.5, 40), wide, steep)
    some = learning.low_rank(own.root, 3.0 * x, 0.2 * gradients)
    none = learning.low_rank(own.root, x, gradients)
    both = learning.combined(few, LowRank(np.ones(40), np.eye(40)[3:5], np.array([0.3, -0.4])))
    kept = [
        [type(one).__name__, one.identity(), np.abs(one.transform(np.ones(len(one.transform(z)))))]
        for one, z in ((few, wide[0]), (some, x[0]), (none, x[0]))
    ]
    products = both.transform(both.transposed(wide))
    distances = [learning.distance(ROOT, dense.root), learning.distance(np.array([0.5, 2.0]), own.root)]
    residuals = [learning.residual_gradient(g, x, gradients) for g in (dense, own)]
    return [dense.centre, np.abs(dense.root), own, [len(k[1]) for k in kept], kept[2], products, distances, residuals]


@case
def hessians():
    """Means of sparse Hessians, their change, and points among which they are taken."""
    model, x = target("field"), moved(rng(1).standard_normal((7, targets()["field"].dim)))
    found = learning.mean_hessian(model, x)
    other = learning.mean_hessian(model, 2.0 * x)
    with constants(ENTRIES=0):
        none = learning.mean_hessian(model, x) is None
    some = [learning.some_of(np.arange(float(n))) for n in (3, 49, 130)]
    return [
        found.identity(),
        learning.change_of(found, other),
        learning.change_of(from_root(np.ones(model.dim)), found),
        none,
        some,
    ]


@case
def necks_of_draws():
    """The coordinate by which the sizes of the gradients of the others change."""
    model, found = target("Funnel"), []
    for k in range(3):
        x = moved(rng(k).standard_normal((60, 2)))
        x[:, 1] *= np.exp(0.5 * x[:, 0])
        found.append(learning.neck_of(x, np.array([model.gradient(y) for y in x])))
    x = moved(rng(9).standard_normal((60, 2)))
    return [*found, learning.neck_of(x, x @ PRECISION)]


def metric_of(name, first=40, chains=3, acceptance=None, reparametrise=False, **values):
    with constants(FIRST_WINDOW=first, **values):
        starts = start.find_starts(target(name), chains, rng(2))
        found = learning.learn_metric(target(name), starts, seed(3), acceptance, reparametrise)
    return {key: parts(value) for key, value in found._asdict().items()} | {"moved": moved_parts(found.coordinates)}


for name, options in {
    "Gaussian": {},
    "quartic": {"acceptance": 0.6},
    "Funnel": {},
    "logistic": {"chains": 1},
    "Student": {"reparametrise": True, "first": 120, "chains": 2},
    "quartic in many dimensions": {"DENSE": 1, "CUTOFF": 1.05, "first": 15, "chains": 2},
    "field in many dimensions": {"DENSE": 1},
    "field without its graph": {"DENSE": 1, "ENTRIES": 0, "CUTOFF": 1.3},
}.items():
    case(lambda name=name, options=options: metric_of(name.partition(" ")[0], **options), f"metric of {name}")


def window(name="quartic", gradients=40, chains=3, **options):
    process = learning.hamiltonian(target(name), from_root(ROOT), False, **options)
    points = MEAN + np.arange(2.0 * chains).reshape(chains, 2) * 0.3
    return windows.run_window(process, points, seed(4), gradients), points


@case
def after_a_window():
    """Points, steps and ends of chains, of which one has gone astray."""
    run, points = window()
    out = np.array([False, True, False])
    starts = start.find_starts(target("quartic"), 3, rng(2))
    run.records[1].statistics["mean_step"] *= 0.05
    kept = [learning.spaced_points(target("quartic"), run), learning.spaced_points(target("quartic"), run, None, out)]
    kept += [
        learning.step_of(run),
        learning.astray(run, starts),
        learning.astray(run, starts._replace(converged=out & False)),
    ]
    kept += [learning.beside(run, windows.ends(run, points), out), windows.ends(run, points), windows.gradients_of(run)]
    return [
        *kept,
        modes.comes_to(run, Gaussian(MEAN, ROOT), learnt().visited),
        modes.comes_to(run, Gaussian(MEAN, ROOT), learnt().visited + 50.0),
    ]


@case
def hamiltonians():
    found = []
    for far in (False, True):
        for options in ({}, {"step": 0.3, "target_acceptance": 0.7, "around": MEAN}):
            found.append(own(learning.hamiltonian(target("quartic"), from_root(ROOT), far, **options)))
    return found


@case
def what_a_window_raised():
    """Chains of a function that raises in some places."""

    def both(x):
        if x[0] > 2.0:
            raise ZeroDivisionError("beyond 2")
        return 0.5 * x @ x, x

    process = learning.hamiltonian(models.from_function(both, 2), from_root(np.ones(2)), False)
    points = np.array([[1.9, 0.0], [-1.0, 0.0]])
    run = windows.run_window(process, points, seed(4), 30)
    return [windows.ends(run, points), windows.gradients_of(run), [record.stopped for record in run.records]]


@case
def gains():
    """Which coordinates a hierarchy and one of heavy tails are given, and what that costs."""
    found, model = [], target("hierarchy")
    x = moved(rng(3).standard_normal((40, 5)) * [0.3, 0.8, 1.0, 0.7, 0.5])
    for scale in (1.0, 0.01):
        y = x * [1.0, scale, 1.0, 1.0, 1.0]
        coordinates, cost = learning.coordinates_from(model, None, y)
        found.append([moved_parts(coordinates), cost])
        if coordinates is not None:
            found[-1] += [learning.gains(model, coordinates, y), learning.coordinates_from(model, coordinates, y)[1]]
            found[-1] += [coordinates.standardised(y), coordinates.gradient(y[0])]
    heavy = moved(rng(5).standard_t(3.0, (80, 2)) * [1.0, 0.3])
    coordinates, cost = learning.coordinates_from(target("Student"), None, heavy)
    return [*found, moved_parts(coordinates), cost]


# -- tails --------------------------------------------------------------------------------------------------------


@once
def heavy():
    """Tails of several kinds: two coordinates of one joint Student law, one of its own, and a normal one."""
    inverse = np.linalg.inv([[1.0, 0.4], [0.4, 2.0]])

    def both(x):
        joint = x[:2] @ inverse @ x[:2]
        u = 2.5 * math.log1p(joint / 3.0) + 1.5 * math.log1p((x[2] - 1.0) ** 2 / 2.0) + 0.5 * x[3] ** 2
        first = 5.0 * inverse @ x[:2] / (3.0 + joint)
        return u, np.array([*first, 3.0 * (x[2] - 1.0) / (2.0 + (x[2] - 1.0) ** 2), x[3]])

    return models.from_function(both, 4)


@case
def tails_of_groups():
    r = rng(2)
    scale = np.sqrt(3.0 / r.chisquare(3.0, 120))
    joint = (r.standard_normal((120, 2)) @ np.linalg.cholesky([[1.0, 0.4], [0.4, 2.0]]).T) * scale[:, None]
    x = moved(np.column_stack([joint, 1.0 + r.standard_t(2.0, 120), r.standard_normal(120)]))
    found, cost = tails.light_tailed(heavy(), x)
    out = tails._Out(heavy(), np.median(x, axis=0), np.ones(4))
    powers = [out.power([j]) for j in range(4)] + [out.power([0, 1], 4), out.power([0, 2])]
    fitted = [tails._fitted(x, np.array(group), index) for group, index in (([0, 1], 3.0), ([2], 2.0))]
    return [
        moved_parts(found),
        cost,
        powers,
        out.gradients,
        [parts(one) for one in fitted],
        tails.light_tailed(target("Gaussian"), x[:, 2:]),
    ]


# -- modes --------------------------------------------------------------------------------------------------------


def hidden(weights, sds=(1.0, 0.5), model=None):
    """Chains that are all in the left of two modes, or of three."""
    model = model or models.from_function(lambda x: two_modes(x, weights, sds), 2)
    left, visited = np.array([-2.5, 1.0]), moved(rng(2).standard_normal((60, 2)))
    starts = start.find_starts(model, 2, rng(1), initial=left + visited[:2] * 0.3)._replace(centre=np.zeros(2))
    gaussian = Gaussian(left, np.eye(2))
    metric = learnt()._replace(
        gaussian=gaussian, mass=from_root(np.eye(2)), points=starts.points, visited=left + visited
    )
    with constants(FIRST_WINDOW=20):
        sought = modes.hidden_modes(model, starts, metric, seed(5))
    return [*sought, modes.warning(sought.hidden, metric.gaussian, ["a", "b"])]


for name, weights in {"alike": (0.5, 0.5), "more elsewhere": (0.05, 0.95), "less elsewhere": (0.95, 0.05)}.items():
    case(lambda weights=weights: hidden(weights), f"hidden mode, {name}")


@case
def modes_said():
    one = [modes.Hidden(Gaussian(np.array([4.0, -1.0, 2.0, 0.5]), np.ones(4)), behind) for behind in (-1.0, 2.0, 30.0)]
    metric = learnt()._replace(gaussian=Gaussian(np.zeros(4), np.array([1.0, 0.1, 2.0, 0.2])))
    names = ["a", "b", "c", "d"]
    few = learnt()._replace(gaussian=Gaussian(np.zeros(2), np.ones(2)))
    short = [modes.Hidden(Gaussian(np.array([4.0, -1.0]), np.ones(2)), 0.5)]
    return [
        [modes.warning(part, metric.gaussian, names) for part in ([], one, one[1:2], one[2:])],
        modes.warning(short, few.gaussian, ["a", "b"]),
        [word for word in modes.warning(one, metric.gaussian, names).split() if "=" in word or word in names],
    ]


@case
def ways_to_modes():
    """Points and directions from which further modes are looked for, and the ways down and between."""
    model = target("two modes")
    evaluations, left = Evaluations(model), Gaussian(np.array([-2.5, 1.0]), np.array([[1.0, 0.0], [0.3, 0.8]]))
    begin = modes.origins(evaluations, MEAN, left, rng(3))
    found = [[next(begin) for _ in range(5)], modes.dips(evaluations, left, 60.0), modes.along(left)]
    known = (Path(left, start.elbo(evaluations, left, rng(1).standard_normal((8, 2))), True),)
    found += [modes.descend(evaluations, np.array(x), left, known) for x in ([9.0, -4.0], [-2.0, 0.8], [1.0, -2.0])]
    x = np.array([9.0, -4.0])
    slope = evaluations.gradient(x)
    found += [modes.first_valley(evaluations, x, evaluations.potential(x), slope, n) for n in (0.5, 30.0)]
    found += [
        modes.barrier(evaluations, np.array([-2.5, 1.0]), np.array([2.5, -1.0])),
        modes.barrier(evaluations, x, x - 6.0),
    ]
    found += [modes.is_near(left, np.array(y)) for y in ([-2.0, 1.0], [0.4, 1.0], [2.0, 1.0])]
    found += [modes.is_visited(left, np.array(y)) for y in ([[9.0, 1.0], [-2.0, 1.0]], [[9.0, 1.0]])]
    return [*found, evaluations.count]


# -- sentences and choices ----------------------------------------------------------------------------------------


@case
def sentences():
    """The sentence of each kind of metric and process."""
    hmc = learning.hamiltonian(target("quartic"), from_root(ROOT), False, step=0.3)
    coarse = learning.hamiltonian(target("quartic"), from_root(ROOT), False, step=9.0)
    few = LowRank(np.array([0.5, 2.0]), np.array([[0.6, 0.8]]), np.array([0.7]))
    graph = pdmp.metric.Sparse.of(sparse.csc_array(PRECISION))
    given = {
        "dense": (hmc, learnt(), 0),
        "one step": (coarse, learnt(windows=1), 1),
        "far": (pdmp.BPS(target("quartic")), learnt(residual=0.6, change=0.9), 2),
        "variances": (hmc, learnt(np.array([0.5, 2.0])), 0),
        "directions": (hmc, learnt(np.array([0.5, 2.0]), mass=few), 0),
        "graph": (hmc, learnt(np.array([0.5, 2.0]), mass=graph), 0),
    }
    return {name: said(preparing.describe(*arguments)) for name, arguments in given.items()}


@case
def names():
    return {name: preparing.names_of(model) for name, model in targets().items()}


@once
def counted(rows=20, flat=False):
    """Counts of about twenty each."""
    r = rng(0)
    x = np.column_stack([np.ones(rows), moved(r.standard_normal(rows))])
    counts = r.poisson(np.exp(x @ [3.0, 0.2])).astype(float)
    p = pdmp.Parameters(rate=2)
    terms = pdmp.terms(lambda y, z: np.exp(z) - y * z, [counts], [x @ p.rate])
    prior = models.priors.Flat() if flat else models.priors.Normal(0.0, 2.5)
    return models.sum_of_terms(p, [terms], priors={"rate": prior})


@case
def subsamples():
    """Whether single rows are looked at, and why not."""
    found = {}
    for name, values in {
        "few": {},
        "many dimensions": {"FEWEST_ROWS": 20, "LARGEST_DIM": 1},
        "share": {"FEWEST_ROWS": 20},
        "reach": {"FEWEST_ROWS": 20, "ROOM": 1e9},
        "all": {"FEWEST_ROWS": 20, "SHARE": math.inf},
    }.items():
        with constants(**values):
            one = subsampling.subsampled(counted())
        found[name] = [said(one.said), None if one.process is None else one.starts(3, rng(1))]
    return found | {"none": subsampling.subsampled(target("logistic"))}


# -- tempering ----------------------------------------------------------------------------------------------------


@case
def auto_by_single_rows():
    with constants(FEWEST_ROWS=20, SHARE=math.inf, FIRST_WINDOW=15):
        return [
            prepared(pdmp.auto(counted(), chains=2, seed=1, **options))
            for options in ({}, {"initial": [3.0, 0.2]}, {"sampler": pdmp.HMC, "target_acceptance": 0.7})
        ]


def undefined(x):
    """No number in some places."""
    return (np.nan, x) if x[0] > 4.0 else (0.5 * x @ PRECISION @ x, PRECISION @ x)


@once
def tempered(name="two modes", scans=45, chains=2, **options):
    """A tempered run of few scans, after short rounds."""
    model = target(name)
    with constants(FIRST_WINDOW=20, SCANS=10, PATHS=6, EVALUATIONS=300, ROWS=options.pop("ROWS", 4096)):
        return pdmp.sample(model, tempered=True, chains=chains, seed=2, events=scans, progress=False, **options)


def asked(run):
    """Everything that a tempered run answers."""
    found = info(run) | {"modes": run.modes(), "shown": repr(run.modes()).split(), "log evidence": run.log_evidence}
    found["said"] = repr(run.log_evidence).split()
    report, draws = answers.TemperedReport(), run.draws(20)
    found["doubts"] = [report.doubts(run, None), report.doubts(run, 400), report.further_draws(run)]
    found["indicators"] = answers.indicators(run, draws).sum(axis=0)
    found["kept"] = {
        k: v for k, v in run.records[0].accumulated.items() if k.startswith(("rungs", "reference", "known"))
    }
    return found


for name, options in {
    "two modes": {},
    "two modes, unequal starts": {"initial": (2.0, -1.0), "target_acceptance": 0.6},
    "Gaussian": {"chains": 1},
    "named": {"store": "grid", "draws": 20},
    "undefined": {"ROWS": 16},
}.items():
    case(lambda name=name, options=options: asked(tempered(name.partition(",")[0], **options)), f"tempered {name}")


class Told:
    """A run of two chains with so many draws, of two modes at ±6 that are told apart by the first coordinate."""

    dim, chains, store = 2, 2, "skeleton"

    def __init__(self, draws, potentials=None, known=(), spacing=(1, 1), lowest=0.0, omitted=0.0):
        one = references.Mixture(
            [1.0, 1.5, 1.0], [[-6.0, 0.0], [6.0, 0.0], [0.0, 0.0]], [np.eye(2), np.eye(2), 9.0 * np.eye(2)], [5.0] * 3
        )
        self.found, self.events = draws, np.full(2, len(draws[0]))
        potentials = (0.5 * draws**2).sum(axis=-1) if potentials is None else potentials
        self.records = [type("Record", (), {"length": 1.0})() for _ in draws]
        for k, record in enumerate(self.records):
            works = moved(rng(k).standard_normal((len(potentials[k]), 3)) * [2.0, 1.0, 0.7] + [3.0, 1.0, lowest])
            record.accumulated = {
                "rungs/betas": np.array([0.0, 0.3, 1.0]),
                "rungs/omitted": np.array([omitted]),
                "rungs/spacing": np.array([spacing[k]]),
                "rungs/potentials": potentials[k],
                "rungs/works": works,
                **{f"reference/{name}": getattr(one, name) for name in ("weights", "means", "roots", "freedoms")},
                "reference/modes": np.array([0, 1]),
                "known/centres": np.array([c for c, _ in known]).reshape(-1, 2),
                "known/roots": np.array([np.eye(2) for _ in known]).reshape(-1, 2, 2),
                "known/masses": np.array([m for _, m in known]),
            }

    def names(self):
        return ["a", "b"]

    def draws(self, n):
        return self.found[:, :n]


def two_chains(shares, n=60):
    """Draws of each chain, of which this share is at 6, the others at -6, in stretches."""
    draws = moved(rng(1).standard_normal((2, n, 2)))
    for chain, share in zip(draws, shares, strict=True):
        chain[:, 0] += np.where(np.arange(n) % 10 < 10.0 * share, 6.0, -6.0)
    return draws


def told(run):
    report = answers.TemperedReport()
    found = {"doubts": [report.doubts(run, None), report.doubts(run, 400)], "draws": report.further_draws(run)}
    found["missed"] = answers._missed(run, run.found, 0.5)
    found |= {"disagree": answers._disagreement(run, run.found), "places": [answers._place(run, k) for k in (0, 1)]}
    found["places"] = [text.split() for text in found["places"]]
    found |= {
        "traces": answers.traces(run, "potentials"),
        "evidence": [answers.evidence_of(run), answers.integral_of(run)],
    }
    return found | {"modes": answers.modes_of(run), "shown": repr(answers.modes_of(run)).split()}


TOLD = {
    "alike": lambda: Told(two_chains([0.3, 0.3]), known=[([0.0, 20.0], -0.5), ([6.0, 0.0], 9.0)]),
    "that disagree": lambda: Told(two_chains([0.2, 0.7]), omitted=1.5, known=[([6.0, 0.0], -9.0)]),
    "that disagree of log p": lambda: Told(
        two_chains([0.3, 0.3]), [(0.5 * two_chains([0.3, 0.3])[0] ** 2).sum(axis=-1) + k for k in (0.0, 9.0)]
    ),
    "of other spacings": lambda: Told(
        two_chains([0.4, 0.2]), [moved(rng(k).standard_normal(n)) for k, n in enumerate((60, 17))], spacing=(1, 4)
    ),
    "in one mode": lambda: Told(two_chains([0.0, 0.0])),
    "of no evidence": lambda: Told(two_chains([0.3, 0.5]), lowest=-9.0, omitted=math.nan),
}
for name, make in TOLD.items():
    case(lambda make=make: told(make()), f"told of chains {name}")


@case
def told_of_few_scans():
    """Nothing is known of four scans, and little of a few restarts."""
    report, draws = answers.TemperedReport(), two_chains([0.3, 0.3], n=6)
    stats = [{"restarts": r, "undefined": u} for r, u in ((49.0, 0.0), (50.0, 3.0), (7.0, 1200.0))]
    few = [
        report.doubts(Told(draws), None),
        [word in report.doubts(Told(draws), None)[0] for word in ("few", "budget")],
    ]
    return [few, [report.warnings(None, one) for one in stats]]


@case
def shown():
    """Modes of more coordinates than are shown."""
    mode = answers.ModeShare(0.61234, 0.0123, np.linspace(-1.0, 9.5, 8), np.linspace(0.1, 2.0, 8))
    other = answers.ModeShare(0.38766, 0.0123, np.linspace(-123.0, 9.5, 8), np.linspace(0.1, 2.0, 8))
    return [repr(answers.Modes([mode, other], [f"x[{j}]" for j in range(n)])).split() for n in (8, 7)]


@case
def bayes_factor():
    found = pdmp.automatic.evidence(tempered(), tempered("Gaussian", chains=1))
    back = pdmp.automatic.evidence(tempered("Gaussian", chains=1), tempered())
    return [found, back, repr(found).split()]


@case
def auto_tempered():
    found = {}
    with constants(FIRST_WINDOW=20, SCANS=8, PATHS=6, EVALUATIONS=300):
        for name, options in {"two modes": {}, "Student": {"target_acceptance": 0.9, "initial": [1.0, 0.0]}}.items():
            process = pdmp.auto(target(name), tempered=True, chains=2, seed=3, **options)
            kept = {"reference", "betas", "roots", "steps", "pool", "acceptance", "longest", "modes", "known", "learns"}
            kept.add("narrowest")
            found[name] = prepared(process) | {k: parts(v) for k, v in vars(process).items() if k in kept}
    return found


def works(n=(40, 25), k=4, order=None):
    """Works of two unequal chains at four rungs, which fall towards the target."""
    r, betas = rng(6), np.array([0.0, 0.1, 0.4, 1.0])
    return [moved(r.standard_normal((m, k)) * [3.0, 1.5, 1.0, 0.8] + [4.0, 2.5, 1.0, -0.5]) for m in n], betas


@case
def evidences():
    """By Bennett's ratio and by stepping stones, of chains of unequal lengths and of infinite potentials."""
    parts, betas = works()
    outside = [parts[0].copy(), parts[1]]
    outside[0][3:9, 0] = np.inf
    never = [parts[0].copy(), parts[1].copy()]
    for part in never:
        part[:, 0] = np.inf
    found = [evidence.log_evidence(one, betas) for one in (parts, parts[:1], outside, never)]
    fermi = evidence.fermi(np.array([-800.0, -1.0, 0.0, 2.0, np.inf]))
    ratios = [
        evidence.bennett(parts[0][:, 0], parts[0][:, 1]),
        evidence.bennett(parts[0][:, 0] + 500.0, parts[0][:, 1]),
    ]
    means = [evidence.log_mean_exp(a) for a in (parts[0][:, 0], np.array([-np.inf, 1.0]), np.array([-np.inf, -np.inf]))]
    return [found, [repr(one).split() for one in found], fermi, ratios, means]


@case
def rungs():
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    return [
        [ladder.first_rungs(5), ladder.first_rungs(4, 0.1)],
        [ladder.wanted(b) for b in (0.0, 0.9, 1.0, 1.2, 7.3, 90.0)],
        [
            ladder.rungs(betas, np.array(r), n)
            for r, n in (([0.5, 0.2, 0.1], 4), ([0.0, 0.7, 0.0], 6), ([0.1, 0.2, 0.9], 3))
        ],
    ]


def mixture():
    roots = np.array([ROOT, [[0.7, 0.0], [-0.2, 1.1]], 3.0 * np.eye(2)])
    return references.Mixture([0.5, 1.0, 0.3], moved([[-2.5, 1.0], [2.5, -1.0], [0.0, 0.3]]), roots, [7.0, 5.0, 5.0])


@case
def reference():
    """Its density, gradient, terms, draws and precision."""
    one, x, out = mixture(), moved(rng(3).standard_normal((6, 2)) * 3.0), np.empty(2)
    memory, found = one.memory(), []
    for point in x:
        found.append([one.potential_and_gradient(point, memory, out), out.copy()])
    draws, r, z = [], rng(4), np.empty(2)
    for _ in range(12):
        one.draw(r, z, out)
        draws.append(out.copy())
    return [found, draws, one.log_terms(x), one.precision(), parts(one)]


@case
def references_made():
    """The wide one, a fit to draws, what it is defended by, and its kinds of parts."""
    r = rng(8)
    x = moved(
        np.vstack([r.standard_normal((90, 2)) @ ROOT.T + [-2.5, 1.0], 0.5 * r.standard_normal((60, 2)) + [2.5, -1.0]])
    )
    fit = references.fitted(x, rng(1))
    order = np.argsort(fit[0])
    covariances = np.array([ROOT @ ROOT.T, 0.25 * np.eye(2)])
    far = references.wide(np.array([[-2.5, 1.0], [2.5, -1.0]]), covariances, MEAN)
    near = [rounds.Mode(np.array([-2.5, 1.0]), ROOT, 1.0), rounds.Mode(np.array([9.0, 9.0]), 0.5 * np.eye(2), 0.4)]
    near += [
        rounds.Mode(np.array([-9.0, 9.0]), 0.5 * np.eye(2), -9.0),
        rounds.Mode(np.array([2.5, -1.0]), 0.01 * np.eye(2), 3.0),
    ]
    made = references.defended(fit, far, near, 1.0)
    larger = references.wide(np.array([[-2.5, 1.0], [2.5, -1.0]]), covariances, MEAN, times=3.0)
    return [[part[order] for part in fit], parts(far), parts(larger), parts(made)]


@case
def modes_of_a_reference():
    evaluations, one, x = Evaluations(target("two modes")), mixture(), moved(rng(3).standard_normal((2, 7, 2)) * 3.0)
    group = tempered_modes.groups(evaluations, one)
    return [
        group,
        tempered_modes.labels(one, group, x),
        tempered_modes.labels(one, np.array([1, 0]), x[0]),
        evaluations.count,
    ]


@case
def ladders():
    """A round of a first ladder, the ladders that follow from it, and how badly a reference fits."""
    model, points = target("two modes"), np.array([[-2.5, 1.0], [2.5, -1.0]])
    far = references.wide(points, np.array([np.eye(2), 0.25 * np.eye(2)]), MEAN)
    with constants(FIRST_RUNGS=5):
        first = rounds.first_ladder(far, PRECISION, points, 3, 8)
    process = first.process(model, True, 0.7)
    seen = rounds.run_round(process, first.starts, seed(3), 12)
    again = rounds.next_ladder(first, seen, 4, PRECISION, 30, None, rng(2))
    other = rounds.next_ladder(first, seen, 0, PRECISION, 30, mixture(), rng(2))
    kept = [seen.draws, seen.rejections, seen.steps, seen.squares, seen.positions, seen.evidence, seen.gradients]
    misfit = [rounds.misfit(model, m, points + 0.2, ROOT) for m in (far, mixture())]
    folded = [[parts(m.reference), *m[1:]] for m in (first, again, other)]
    return [folded, kept, misfit, rounds.inverse_root(PRECISION), process.acceptance, process.longest, process.learns]


@case
def ladder_learnt():
    given = [
        rounds.Mode(np.array([2.5, -1.0]), 0.5 * np.eye(2), 1.6),
        rounds.Mode(np.array([-2.5, 1.0]), np.eye(2), 0.8),
    ]
    found = []
    with constants(SCANS=8, FIRST_RUNGS=6):
        for modes_known, options in ((given, {}), (given[:1], {"acceptance": 0.6, "far": True})):
            learnt, spent, barrier = rounds.learn_ladder(target("two modes"), modes_known, MEAN, 2, seed(4), **options)
            found.append([parts(learnt.reference), *learnt[1:], spent, barrier])
    return found


@case
def known_modes():
    with constants(PATHS=6, FIRST_WINDOW=20):
        model = target("two modes")
        starts = start.find_starts(model, 2, rng(1))
        metric = learning.learn_metric(model, starts, seed(3))
        found = tempered_preparing.known_modes(
            model, starts, metric, [modes.Hidden(Gaussian(np.array([2.5, -1.0]), 0.5 * np.eye(2)), 1.5)], seed(4)
        )
    return found


@case
def tempered_sentences():
    process = Tempered(
        target("two modes"),
        mixture(),
        np.array([0.0, 0.4, 1.0]),
        np.array([np.eye(2)] * 3),
        np.ones(3),
        np.zeros((1, 3, 2)),
    )
    process.modes = np.array([0, 1])
    one = Tempered(
        target("two modes"),
        mixture(),
        np.array([0.0, 1.0]),
        np.array([np.eye(2)] * 2),
        np.ones(2),
        np.zeros((1, 2, 2)),
        longest=4,
    )
    return [
        [tempered_preparing.describe(p, 1234, b), [type(p.longest).__name__]] for p, b in ((process, 1.26), (one, 0.3))
    ]
