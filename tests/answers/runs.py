"""Runs of every store and kind of path: estimates, draws, files, budgets, goals, what they say; shards."""

from __future__ import annotations

import itertools
import pathlib
import tempfile

import numpy as np

import discrete
import pdmp
from pdmp.engine import checks, goals
from pdmp.engine.trajectory import Trajectory
from tests.answers import case, once
from tests.recorded import moved
from tests.toys import Coupled, Ellipses, FrozenEllipses, Telegraph, Ticks, Walls

COVARIANCE = np.array([[1.0, 0.6], [0.6, 4.0]])
STORES = {"skeleton": {}, "grid": {"store": "grid", "draws": 21}, "moments": {"store": "moments"}}
DIMS = {"plane": 2, "switches": 2}
TIMED = ("seconds", "wall_seconds")  # what a clock on the wall says


def plane():
    return pdmp.models.Gaussian(moved([0.0, 1.0]), np.linalg.inv(COVARIANCE))


MADE = {
    "plane": lambda: (pdmp.BPS(plane(), refresh_rate=0.5), {"events": 130, "warmup": 0.2}),
    "switches": lambda: (Telegraph(), {"events": 120, "warmup": 0.1}),
    "walls": lambda: (Walls(3), {"events": 150, "warmup": 0.1}),
    "ellipses": lambda: (Ellipses(), {"proposals": 90}),
    "frozen": lambda: (FrozenEllipses(), {"events": 140, "warmup": 0.15}),
    "ticks": lambda: (Ticks(), {"steps": 110, "warmup": 0.2}),
    "coupled": lambda: (Coupled(), {"steps": 40, "warmup": 0.1}),
}


@once
def run_of(name, store="skeleton", chains=3):
    process, options = MADE[name]()
    initial = moved([0.3, -0.4, 0.8][: DIMS.get(name, 3)])
    with pdmp.errors.short_runs():
        return pdmp.sample(process, initial=initial, chains=chains, seed=3, **options, **STORES[store])


def refused(function):
    """What is answered, or that it is refused."""
    try:
        return function()
    except ValueError as error:
        return f"refused: {str(error)[:12]}"


def plain(found):
    """Entries without those of a clock on the wall."""
    return {key: value for key, value in found.items() if key not in TIMED}


def nonlinear(x):
    """Of one position or of many at once."""
    return x[0] ** 2 + np.exp(0.2 * x[-1])


def one_by_one(x):
    """Of one position only."""
    return np.array([float(x.max()), float(x[0] > 0.2)])


def estimates(run):
    yield from (("mean", run.mean), ("mean with error", lambda: run.mean(error=True)))
    yield from (("var", run.var), ("sd", run.sd), ("cov", run.cov))
    for f in (nonlinear, one_by_one):
        yield f"expectation of {f.__name__}", lambda f=f: run.expectation(f)
        yield f"and its error {f.__name__}", lambda f=f: run.expectation(f, error=True)
        yield f"mcse of {f.__name__}", lambda f=f: run.mcse(f)
    yield "a function that never changes", lambda: run.expectation(lambda x: 1.0 + 0.0 * x[0], error=True)
    for method in ("spectral", "batch"):
        yield f"mcse {method}", lambda m=method: run.mcse(method=m)
    for method in ("mean", "bulk", "tail", "sd", "spectral", "batch"):
        yield f"ess {method}", lambda m=method: run.ess(m)
    yield from (("ess", run.ess), ("rhat", run.rhat))
    for method in ("rank", "split"):
        yield f"rhat {method}", lambda m=method: run.rhat(m)


def by_column(frame):
    return [list(frame.columns), frame.to_numpy(dtype=float).T, len(frame)]


def positions(run):
    first = run.names()[-1]
    yield from (("draws", lambda: run.draws(7)), ("one draw", lambda: run.draws(1)))
    yield "many draws", run.draws
    yield "at", lambda: run.at(0.6 * run.end.min())
    yield "at several", lambda: run.at(np.array([0.4, 0.0, 0.9]) * run.end.min())
    yield "by name", lambda: run[first]
    yield "quantile", lambda: run.quantile(0.3)
    yield "quantiles", lambda: run.quantile([0.05, 0.5, 1.0])
    yield "quantile by name", lambda: run.quantile([0.25, 0.6], first)
    yield from (("hdi", run.hdi), ("hdi by name", lambda: run.hdi(0.5, first)))
    yield from (("frame", lambda: by_column(run.to_dataframe())), ("short frame", lambda: run.to_dataframe(4)))
    yield "in time", lambda: run.thin(11, "time")
    for most in (40, 5_000):
        yield f"thinned of {most}", lambda n=most: run.thin(5, target=standard(run.dim), candidates=n)
    yield "thinned without a covariance", lambda: run.thin(4, target=standard(run.dim), preconditioner=None)


def standard(dim):
    return pdmp.models.Gaussian(np.zeros(dim), np.ones(dim))


def made(run):
    summary = run.summary()
    return {
        "stats": plain(run.stats),
        "info": plain(run.info) | {"process": run.info["process"].split(), "budget": dict(run.info["budget"])},
        "repr": repr(run).split(),
        "counts": [run.events, run.warmup, run.end, run.stopped, run.chains, run.dim, run.store, run.seed],
        "names": [run.names(), run.variables, run.copies, sorted(run.said)],
        "constrained": run.constrain(np.arange(2.0 * run.dim).reshape(2, -1)),
        "summary": [summary.rows, summary.warnings],
    }


for name, store in itertools.product(MADE, STORES):
    where = f"{name} {store}"
    case(lambda n=name, s=store: {k: refused(f) for k, f in estimates(run_of(n, s))}, f"estimates of {where}")
    case(lambda n=name, s=store: {k: refused(f) for k, f in positions(run_of(n, s))}, f"positions of {where}")
    case(lambda n=name, s=store: made(run_of(n, s)), f"how {where} was made")


# -- paths -----------------------------------------------------------------------------------------------------------


def path(kind, local):
    """A path in three coordinates, of which one row changes one or all; two of a local one at the same time."""
    rng = np.random.default_rng(4)
    rows, d = 40, 3
    times = np.cumsum(rng.exponential(0.4, rows))
    which = rng.integers(d, size=rows) if local else np.zeros(0, int)
    if local:
        times[20] = times[21]
        which[20], which[21] = 0, 2
    width = 1 if local else d
    xs, vs = moved(rng.normal(size=(rows, width))), rng.normal(size=(rows, width if kind != "constant" else 0))
    if kind == "elliptic":
        frozen = rng.random((rows, width)) < 0.2
        xs[frozen], vs[frozen] = 0.0, 0.0
    given = moved(rng.normal(size=d)), rng.normal(size=d), times, rng.integers(2, size=rows), which, xs, vs
    centre = np.array([0.3, -0.5, 0.0])
    end = times[-1] + 7.5  # a full turn
    return Trajectory(*given, end=end, kind=kind, events=("a", "b"), local=local, warmup=2.0, centre=centre)


def read(one):
    a, b = 3.1, 11.7
    lengths, starts, speeds = zip(*one.segments(a, b, [4.0, 5.5]), strict=True)
    segments = [np.concatenate(part) for part in (lengths, starts, speeds) if part[0] is not None]
    found = {
        "rows": [one.times, one.positions, one.velocities, one.kinds, one.kind, repr(one).split()],
        "at": [one.at(2.5), one.at([9.0, 0.0, 4.0, one.end]), one.at(one.times[4:9], side="left")],
        "discretised": [one.discretise(6), one.discretise(5, 0.0), one.refine(one.times[:6])],
        "refined": one.refine(one.times[:4], angle=0.3),
        "segments": segments,
        "integrals": [one.integral(), one.integral(a=a), one.integral(None, a, b)],
        "of functions": [one.integral(nonlinear), one.integral(one_by_one, a, b)],
        "stretches": [one.stretches(5), one.stretches(3, None, a, b), one.stretches(4, nonlinear, a, b)],
        "squares": [one.square_stretches(4, [0.1, 0.2, 0.3]), one.square_stretches(3, 0.5, a, b)],
        "moments": [one.mean(), one.mean(a, b), one.var(), one.var(a, b), one.cov(), one.cov(a, b)],
        "products": one.products(np.array([0.1, 0.0, -0.2]), a, b),
        "narrowed": one.narrowed(np.array([2, 0])).stretches(3),
    }
    if not one.local:
        found |= {"block": one.block(1, 3).positions, "of a kind": one.block(1, 3, kind=1).positions}
    return found


for kind, local in itertools.product(("linear", "elliptic", "constant"), (False, True)):
    case(lambda k=kind, at=local: read(path(k, at)), f"a path, {kind}{', local' if local else ''}")


@case
def copies():
    """The paths of coupled copies, whose last moves at its own events."""
    found = run_of("coupled").trajectories[1]
    return [found.positions, found.times, found.coarse, found.coarse_times, found.whole.positions, found.mean()]


# -- other forms of a model ------------------------------------------------------------------------------------------


@once
def counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    return pdmp.models.PoissonRegression(moved(X), rng.poisson(np.exp(X[:, 0])).astype(float))


def named():
    """Two parameters, one of which is a logarithm."""
    model = pdmp.models.from_function(
        lambda x: (0.5 * x @ x, x),
        3,
        variables={"tau": (), "beta": (2,)},
        transforms={"tau": pdmp.models.transforms.Log()},
    )
    model.dims, model.coords = {"beta": ["what"]}, {"what": ["left", "right"]}
    return model


@once
def run_on(name, **options):
    model = {"counts": counts, "named": named}[name]()
    initial = moved(np.full(model.dim, 0.1))
    with pdmp.errors.short_runs():
        return pdmp.sample(pdmp.ZigZag(model), initial=initial, events=270, chains=2, seed=1, warmup=0.1, **options)


def natural(run):
    return {
        "by name": [run["tau"], run["beta"], run["log(tau)"]],
        "quantiles": [run.quantile([0.1, 0.7], "tau"), run.quantile(0.4, "beta"), run.hdi(0.8, "beta"), run.hdi(0.8)],
        "frame": run.to_dataframe(3),
        "summary": run.summary().rows,
        "transforms": sorted(run.transforms),
    }


case(lambda: natural(run_on("named")), "natural parameters")


def saved(run):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "run.npz"
        run.save(file)
        return pdmp.load(file)


def arviz(name, load=False, n=20, options=None, **how):
    run = run_on(name, **(options or {}))
    data = (saved(run) if load else run).to_arviz(n, **how)
    children = data.children if hasattr(data, "children") else data.groups()
    groups = {name.strip("/"): data[name] for name in children}
    found = {}
    for name, group in groups.items():
        kept = {str(key): [list(map(str, v.dims)), np.asarray(v)] for key, v in group.data_vars.items()}
        coords = {str(key): np.asarray(v).tolist() for key, v in group.coords.items() if key not in ("chain", "draw")}
        found[name] = {"values": kept, "coords": coords}
    attrs = dict(data["posterior"].attrs)
    return found | {
        "attrs": {k: attrs.get(k) for k in ("sampler", "process", "seed", "spacing", "ess_ratio", "draws_of")}
    }


GRID = {"store": "grid", "draws": 60}
for label, (name, how) in {
    "by default": ("counts", {"n": None}),
    "of twenty draws": ("counts", {}),
    "without likelihoods": ("counts", {"log_likelihood": False}),
    "of a loaded run": ("counts", {"load": True}),
    "of a grid": ("counts", {"n": None, "options": (("store", "grid"), ("draws", 60))}),
    "with dims": ("named", {}),
}.items():
    how["options"] = dict(how.get("options", ()))
    case(lambda n=name, h=how: arviz(n, **h), f"arviz {label}")
case(lambda: arviz("counts", True, model=counts(), log_likelihood=True), "arviz of a loaded run and its model")


@case
def loaded():
    run = saved(run_of("plane"))
    answers = {k: refused(f) for k, f in itertools.chain(estimates(run), positions(run))}
    return answers | made(run) | {"known": [type(run.process).__name__, len(run.said)]}


# -- budgets, goals and going on -------------------------------------------------------------------------------------


def told(run):
    """How far each chain of a run came, by every measure."""
    stats = run.stats
    return {
        "counts": [run.events, run.end, run.warmup, run.stopped, stats["stopped"], run.chains, run.store],
        "stats": [stats[k] for k in ("proposals", "thinned", "horizons", "data_terms", "data_passes", "total_events")],
        "budget": dict(run.info["budget"]),
        "arguments": run.info["arguments"],
        "mean": run.mean(),
        "progress": sorted(plain(run.info)),
    }


TICKS = {"steps": 31, "gradients": 2.5, "data_passes": 3.2, "events": 17, "time": 6.3, "proposals": 25}
MOVES = {"time": 12.5, "events": 40, "proposals": 55}
PAIRS = [{"time": 12.5, "events": 30}, {"proposals": 33, "time": 100.0}]
for options in [{k: v} for k, v in MOVES.items()] + PAIRS:
    label = " and ".join(f"{k} {v}" for k, v in options.items())
    case(lambda o=options: told(pdmp.sample(Telegraph(), initial=moved([0.1, 0.2]), seed=2, **o)), f"budget {label}")
for name, value in TICKS.items():
    case(
        lambda n=name, v=value: told(pdmp.sample(Ticks(), initial=moved([0.1, 0.2, 0.3]), seed=2, chains=2, **{n: v})),
        f"steps with a budget of {name}",
    )
    further = {name: 2 * value}
    case(
        lambda n=name, v=value: told(
            pdmp.sample(Ticks(), initial=moved([0.1, 0.2, 0.3]), seed=2, warmup=0.2, **{n: v}).extend(**{n: 2 * v})
        ),
        f"steps extended to {name}",
    )


@case
def extended():
    """Of each store, from memory and from a file."""
    found = {}
    for store in STORES:
        for name in ("switches", "frozen"):
            run = run_of(name, store)
            more, loaded = {"events": 200}, saved(run)
            found[f"{name} {store}"] = told(run.extend(**more))
            found[f"{name} {store} loaded"] = told(loaded.extend(MADE[name]()[0], **more))
    return found


@case
def resumed():
    """A checkpoint of a shorter call goes on to the budget of a longer one."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for store, options in STORES.items():
            file = pathlib.Path(folder) / store
            for events in (60, 110):
                run = pdmp.sample(
                    Telegraph(), initial=moved([0.1, 0.2]), events=events, seed=5, checkpoint=file, **options
                )
                found.append(told(run))
            found.append(told(run.extend(events=130, checkpoint=file)))
    return found


def reached(process=None, initial=(0.1, 0.2, 0.3), **options):
    """A run with a goal, and where it was looked at."""
    run = pdmp.sample(Walls(3) if process is None else process, initial=moved(initial), seed=6, **options)
    return told(run) | {"ess": run.ess(), "said": sorted(run.said), "rhat": run.rhat()}


for label, options in {
    "ess": {"ess": 60, "chains": 2},
    "rhat": {"rhat": 1.2, "chains": 2},
    "both": {"ess": 40, "rhat": 1.3, "chains": 2, "warmup": 0.3},
    "ess, not reached in proposals": {"ess": 1e4, "proposals": 700},
    "ess, not reached in events": {"ess": 1e4, "events": 650, "chains": 2},
    "rhat, not reached in time": {"rhat": 1.0001, "time": 320.0, "chains": 2},
    "both, not reached": {"rhat": 1.0001, "ess": 1e4, "proposals": 600, "time": 1e5, "chains": 2},
    "ess of moments": {"ess": 50, "chains": 2, "store": "moments"},
    "ess of a grid": {"ess": 50, "chains": 2, "store": "grid", "draws": 100},
}.items():
    case(lambda o=options: reached(**o), f"goal {label}")


@case
def a_goal_by_itself():
    """Looks, limits and shares of the way."""
    found = []
    for process, warmup in ((Walls(3), 0.0), (Walls(80), 0.25), (Coupled(), 0.1)):
        goal = goals.Goal(process, warmup, ess=50.0, rhat=1.1)
        looks = [goal.first]
        for _ in range(5):
            looks.append(goal.after(looks[-1]))
        limits = [
            goal.limit(process, budget, chains, store)
            for budget in (checks.check_budget(process, goals=("ess",)), checks.check_budget(process, proposals=90))
            for chains, store in ((1, "skeleton"), (3, "skeleton"), (3, "moments"))
        ]
        found.append([looks, goal.warmup, goal.reason, goal.bound, limits])
        goal.draws = {"mean": np.array([30.0, np.nan, 70.0]), "sd": np.array([20.0, 35.0, 50.0])}
        goal.rhats = np.array([1.02, 1.3, np.nan])
        found.append([goal.least(), goal.largest(), goal.describe().split(), goal.enough(), goal.reached()])
        goal.draws, goal.further, goal.rhats = {"mean": np.full(3, 60.0)}, {"log Z": 20.0}, np.array([1.02, 1.01, 1.0])
        found.append([goal.least(), goal.largest(), goal.describe().split(), goal.enough(), goal.reached()])
        goal.further = {"log Z": 55.0}
        found.append([goal.least(), goal.describe().split(), goal.enough(), goal.reached()])
    return found


@case
def starts():
    """One for all chains, one for each, the anchor of a control variate, the model's own."""
    found = []
    model = counts()
    for initial in (moved([0.3, 0.4]), moved([[0.3, 0.4], [0.5, 0.6]]), None):
        found.append([r.x for r in pdmp.sample(pdmp.BPS(model), initial=initial, events=3, chains=2, seed=1).records])
    anchored = discrete.SGLD(pdmp.gradients.ControlVariate(model, 5, moved([0.2, 0.1])), step=0.01)
    found.append([r.x for r in pdmp.sample(anchored, steps=2, chains=2, seed=1).records])
    return found


# -- posteriors of parts of the data ---------------------------------------------------------------------------------


@once
def parts():
    rng = np.random.default_rng(8)
    near = [rng.normal(m, s, size=(n, 2)) @ [[1.0, 0.3], [0.0, 0.8]] for m, s, n in ((0.0, 1.0, 31), (0.4, 1.5, 40))]
    return [moved(near[0]), moved(near[1]), moved(rng.normal(0.2, 0.7, size=(2, 18, 2)))]


@case
def shards():
    away = [*parts()[:2], parts()[2] + np.array([9.0, 0.0])]
    found = {
        "consensus": pdmp.shards.consensus(parts()),
        "swiss": pdmp.shards.swiss(parts()),
        "inflated": pdmp.shards.swiss(parts(), inflated=True),
        "apart": pdmp.shards.consensus(away),
        "swiss apart": pdmp.shards.swiss(away),
    }
    runs = [run_of("plane"), run_of("switches")]
    found |= {f"runs, {n} draws": pdmp.shards.swiss(runs, draws=n) for n in (9, 30)}
    found["runs"] = pdmp.shards.consensus(runs)
    shares = [pdmp.shards.prior_share(2.5, 3), pdmp.shards.prior_share([1.0, 4.0], 5)]
    return {k: [v, v.sd, str(v).split()] for k, v in found.items()} | {"shares": shares}
