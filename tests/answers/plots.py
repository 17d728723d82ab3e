"""What pictures show: data, labels, limits and markers of every artist, of each picture with each of its options."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import tempfile
from types import SimpleNamespace

import numpy as np

import discrete
import pdmp
from pdmp import plots
from pdmp.comparison import Comparison, Path, Reference, Verdict
from pdmp.plots import pages, paths, proposals, style
from tests.answers import case, once
from tests.recorded import moved
from tests.toys import Ellipses, Telegraph, Walls

COVARIANCE = np.array([[1.0, 0.6], [0.6, 4.0]])


# -- what is kept of a picture ---------------------------------------------------------------------------------------


def colour(value):
    from matplotlib.colors import to_hex

    return to_hex(value, keep_alpha=True)


def line(one):
    looks = [colour(one.get_color()), str(one.get_linestyle()), str(one.get_marker()), one.get_linewidth()]
    looks += [one.get_markersize(), str(one.get_markevery()), one.get_drawstyle(), one.get_zorder()]
    looks += [one.get_alpha(), one.get_label().split()]
    return [np.array(one.get_xydata(), dtype=float).T, looks]


def collection(one):
    corners = [np.asarray(p.vertices) for p in one.get_paths()]
    if hasattr(one, "levels"):  # contours: how far each reaches, as the number of corners is the library's
        shape = [[c.min(axis=0), c.max(axis=0)] if len(c) else [] for c in corners] + [np.array(one.levels)]
    else:
        shape = [c.T for c in corners]
    widths = np.atleast_1d(one.get_linewidth())
    return [type(one).__name__, shape, [colour(c) for c in (*one.get_facecolor(), *one.get_edgecolor())], widths]


def patch(one):
    looks = [colour(one.get_facecolor()), colour(one.get_edgecolor()), one.get_alpha(), one.get_linewidth()]
    if hasattr(one, "get_data"):
        return [np.asarray(one.get_data().values, float), np.asarray(one.get_data().edges), looks]
    return [np.asarray(one.get_path().vertices @ one.get_patch_transform().get_matrix()[:2, :2].T), one.get_xy(), looks]


def text(one):
    return [one.get_text().split(), list(one.get_position()), colour(one.get_color()), one.get_fontsize()]


def ticks(axis):
    """Where labels are, and what they say; round numbers of the library's own choice on plain axes are left out."""
    own = type(axis.get_major_formatter()).__name__ != "ScalarFormatter"
    return [[t.get_position(), t.get_text().split()] for t in axis.get_ticklabels()] if own else []


def axes_of(one):
    legend = one.get_legend()
    return {
        "titles": [one.get_title(loc=where).split() for where in ("left", "center", "right")],
        "labels": [one.get_xlabel().split(), one.get_ylabel().split()],
        "limits": [*one.get_xlim(), *one.get_ylim()],
        "scales": [one.get_xscale(), one.get_yscale(), one.axison],
        "lines": [line(each) for each in one.lines],
        "collections": [collection(each) for each in one.collections],
        "patches": [patch(each) for each in one.patches],
        "texts": [text(each) for each in one.texts],
        "ticks": [ticks(one.xaxis), ticks(one.yaxis)],
        "legend": None if legend is None else [t.get_text().split() for t in legend.get_texts()],
    }


def drawn(what):
    """All axes of a figure, of an array of axes, or one."""
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    try:
        single = hasattr(what, "get_xlim")
        each = what.axes if isinstance(what, Figure) else [what] if single else np.ravel(what).tolist()
        figure = each[0].figure
        legends = [[t.get_text().split() for t in legend.get_texts()] for legend in figure.legends]
        heading = figure.get_suptitle().split() if hasattr(figure, "get_suptitle") else []
        size = [*figure.get_size_inches(), len(figure.axes)]
        return {
            "axes": [axes_of(one) for one in each],
            "figure": [heading, legends, size, list(map(text, figure.texts))],
        }
    finally:
        pyplot.close("all")


def axes(n=None):
    """Axes to draw on: one, or several of a row."""
    from matplotlib import pyplot

    return pyplot.subplots(1, n or 1, figsize=(3.0 * (n or 1), 2.5))[1]


def picture(function, *args, given=None, **options):
    """What a function draws of a run, or of several subjects that are made when it is called."""
    made = [part() if callable(part) else part for part in args]
    options = {k: v() if isinstance(v, functools.partial) else v for k, v in options.items()}
    if given is not None:
        options["ax" if given == 0 else "axes"] = axes(given)
    return drawn(function(*made, **options))


# -- subjects --------------------------------------------------------------------------------------------------------


def of_process(make, initial, **options):
    with pdmp.errors.short_runs():
        return pdmp.sample(make(), initial=moved(initial), **options)


def gaussian():
    return pdmp.models.Gaussian(moved([0.0, 1.0]), np.linalg.inv(COVARIANCE))


def spikes():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((25, 3))
    return pdmp.models.SpikeAndSlabLinearRegression(moved(X), X[:, 0] + 0.2 * X[:, 1] + 0.5 * rng.standard_normal(25))


def bouncing():
    return pdmp.BPS(gaussian(), refresh_rate=0.5)


def affine():
    return pdmp.BPS(gaussian(), thinning="affine")


def long_names():
    model = pdmp.models.from_function(
        lambda x: (0.5 * x @ x, x), 3, variables={"the effect of rain on Sundays": (), "short": (2,)}
    )
    return pdmp.ZigZag(model)


RUNS = {
    "plane": lambda: of_process(bouncing, [0.2, 0.7], events=140, chains=2, seed=1, warmup=0.2),
    "line": lambda: of_process(lambda: pdmp.ZigZag(pdmp.models.Gaussian([0.5], [2.0])), [0.2], events=90, seed=2),
    "wide": lambda: of_process(lambda: Walls(8), np.linspace(-0.5, 0.9, 8), events=500, chains=2, seed=3, warmup=0.1),
    "ticks": lambda: of_process(
        lambda: discrete.SGLD(gaussian(), step=0.1), [0.2, 0.7], steps=90, chains=2, seed=4, warmup=0.1
    ),
    "ellipses": lambda: of_process(Ellipses, [0.3, -1.0, 0.8], events=50, chains=2, seed=5),
    "grid": lambda: of_process(bouncing, [0.2, 0.7], events=120, chains=3, seed=6, warmup=0.1, store="grid", draws=50),
    "moments": lambda: of_process(bouncing, [0.2, 0.7], events=120, chains=2, seed=6, store="moments"),
    "switches": lambda: of_process(Telegraph, [0.1, 0.2], events=110, chains=2, seed=7),
    "thinned": lambda: of_process(affine, [0.3, 0.6], events=25, chains=2, seed=5),
    "named": lambda: of_process(long_names, [0.1, 0.2, 0.3], events=80, chains=2, seed=8),
    "sticky": lambda: of_process(
        lambda: pdmp.Sticky(pdmp.ZigZag(spikes())), [0.1, 0.2, 0.3], events=160, chains=2, seed=9
    ),
    "sticky moments": lambda: of_process(
        lambda: pdmp.Sticky(pdmp.ZigZag(spikes())), [0.1, 0.2, 0.3], events=100, seed=9, store="moments"
    ),
}


@once
def run(name):
    return RUNS[name]()


def of(name):
    return functools.partial(run, name)


@once
def truth():
    rng = np.random.default_rng(5)
    draws = moved(rng.standard_normal((60, 2)) * [1.0, 2.0] + [0.0, 1.0])
    return Reference(np.array([0.1, 0.9]), np.array([1.1, 1.9]), COVARIANCE, draws, 1.0, 400.0)


def table(failed=False, dim=2):
    """A comparison that was written down, not run."""
    rng = np.random.default_rng(0)
    passes = np.array([1.0, 10.0, 100.0])
    settings = {"ticks": "step 0.5", "moves": "", "turns": "mass 2"}
    rows = [
        dict.fromkeys(Comparison.COLUMNS, float("nan"))
        | {"sampler": label, "setting": setting, "data_passes": 50.0 + 25.0 * k, "seconds": 0.004 * 7.0**k}
        | {"events": 300.0 + 200.0 * k, "mean_error": 0.3 - 0.1 * k, "min_ess": 41.0 + k, "bound_violations": float(k)}
        for k, (label, setting) in enumerate(settings.items())
    ]
    rows.append(dict.fromkeys(Comparison.COLUMNS, float("nan")) | {"sampler": "broken", "setting": "none"})
    errors = ([0.9, 0.5, 0.4], [0.8, 0.3, 0.1], [0.7, 0.35, 0.13])
    rms = {label: (passes * (1.0 + 0.3 * k), np.array(errors[k])) for k, label in enumerate(settings)}
    kinds = {"ticks": "constant", "moves": "linear", "turns": "elliptic"}
    mean, sd = np.linspace(0.1, 0.7, dim), np.linspace(1.0, 2.0, dim)
    draws = moved(rng.standard_normal((70, dim)) ** 3 * 0.4 * sd + mean)
    near = np.eye(dim) + 0.4 * np.eye(dim, k=1) + 0.4 * np.eye(dim, k=-1)
    cov = np.outer(sd, sd) * near
    steps = np.cumsum(rng.exponential(0.1, 220))
    verdicts = {
        "ticks": Verdict("biased", "the sd of b is off by 40 %"),
        "moves": Verdict("fine", "all is well"),
        "turns": Verdict("too short", "R-hat of a is 1.2"),
        "broken": Verdict("failed", "see below"),
    }
    return Comparison(
        rows,
        {} if failed else {label: (at, 0.8 * error) for label, (at, error) in rms.items()},
        Reference(mean, sd, cov, draws, 1.0, 400.0),
        [f"b{j}" for j in range(dim)],
        {label: moved(rng.standard_normal((2, 30, dim))) for label in settings},
        {
            label: Path(moved(rng.standard_normal((220, dim)).cumsum(axis=0) * 0.2), steps, steps[::2], kinds[label])
            for label in settings
        },
        "a title",
        ["reference: <known>", "broken failed: why"],
        verdicts,
        {} if failed else rms,
    )


# -- one run ---------------------------------------------------------------------------------------------------------

for name, chosen in {
    "trajectory": (plots.trajectory, of("plane")),
    "trajectory of few events": (plots.trajectory, of("plane"), {"events": 12, "chain": 1}),
    "trajectory the other way": (plots.trajectory, of("plane"), {"coordinates": [1, 0]}),
    "trajectory on axes": (plots.trajectory, of("plane"), {"given": 0, "events": 30}),
    "trajectory of one coordinate": (plots.trajectory, of("line")),
    "trajectory of many": (plots.trajectory, of("wide"), {"events": 40}),
    "trajectory by name": (plots.trajectory, of("named"), {"coordinates": ["short[1]", "short[0]"]}),
    "trajectory of steps": (plots.trajectory, of("ticks"), {"events": 25}),
    "trajectory of arcs": (plots.trajectory, of("ellipses"), {"events": 15}),
    "trace": (plots.trace, of("plane")),
    "trace of a chain": (plots.trace, of("plane"), {"chain": 1, "coordinates": 1}),
    "trace between": (plots.trace, of("switches"), {"between": (3.0, 20.0)}),
    "trace of many": (plots.trace, of("wide")),
    "trace on axes": (plots.trace, of("wide"), {"given": 2}),
    "trace of steps": (plots.trace, of("ticks"), {"between": (0.5, 4.0)}),
    "trace of arcs": (plots.trace, of("ellipses"), {"between": (0.0, 9.0), "coordinates": [2, 0]}),
    "trace of a grid": (plots.trace, of("grid")),
    "event rates": (plots.event_rates, of("plane")),
    "event rates of two clocks": (plots.event_rates, of("switches"), {"given": 0}),
    "event rates of moments": (plots.event_rates, of("moments")),
    "event rates of one chain": (plots.event_rates, of("line")),
    "marginals": (plots.marginals, of("plane")),
    "marginals of a chain": (plots.marginals, of("plane"), {"chain": 1, "coordinates": [1]}),
    "marginals over a run": (plots.marginals, of("plane"), {"reference": of("grid")}),
    "marginals over draws": (plots.marginals, of("plane"), {"reference": np.arange(24.0).reshape(3, 4, 2) / 9.0}),
    "marginals over a line of draws": (plots.marginals, of("line"), {"reference": np.linspace(-1.0, 2.0, 9)}),
    "marginals over densities": (plots.marginals, of("plane"), {"reference": lambda x, j: np.exp(-0.5 * x * x) + j}),
    "marginals of many": (plots.marginals, of("wide"), {"reference": lambda x, j: 0.0 * x + j}),
    "marginals on axes": (plots.marginals, of("wide"), {"given": 3}),
    "marginals with atoms": (plots.marginals, of("sticky")),
    "marginals of a grid": (plots.marginals, of("grid")),
    "pairs": (plots.pairs, of("plane")),
    "pairs of a chain": (plots.pairs, of("plane"), {"chain": 1}),
    "pairs over draws": (plots.pairs, of("plane"), {"reference": np.sin(np.arange(80.0)).reshape(40, 2)}),
    "pairs of many": (plots.pairs, of("wide"), {"given": 4}),
    "pairs in another order": (plots.pairs, of("ellipses"), {"coordinates": [2, 0]}),
    "inclusion": (plots.inclusion, of("sticky")),
    "inclusion of a chain": (plots.inclusion, of("sticky"), {"chain": 1, "coordinates": [2, 0], "given": 0}),
    "inclusion of moments": (plots.inclusion, of("sticky moments")),
    "ranks": (plots.ranks, of("plane")),
    "ranks in bins": (plots.ranks, of("plane"), {"bins": 6, "draws": 90, "coordinates": [1]}),
    "ranks of one chain": (plots.ranks, of("line"), {"draws": 101}),
    "ranks of many": (plots.ranks, of("wide")),
    "ranks on axes": (plots.ranks, of("wide"), {"given": 2, "bins": 5}),
    "ranks of a grid": (plots.ranks, of("grid"), {"bins": 7}),
    "autocorrelation": (plots.autocorrelation, of("plane")),
    "autocorrelation of a chain": (plots.autocorrelation, of("plane"), {"chain": 1, "lags": 3.0}),
    "autocorrelation of many": (plots.autocorrelation, of("wide"), {"given": 0}),
    "autocorrelation of some": (plots.autocorrelation, of("wide"), {"coordinates": [5, 1], "lags": 2.0}),
    "autocorrelation of a grid": (plots.autocorrelation, of("grid")),
    "overview": (plots.overview, of("plane")),
    "overview of some": (plots.overview, of("wide"), {"coordinates": [6, 2]}),
    "overview of many": (plots.overview, of("wide")),
    "overview of one chain": (plots.overview, of("line")),
    "plot": (lambda one: one.plot(), of("switches")),
    "error by cost": (plots.error_by_cost, of("plane"), truth, {"cost": "events"}),
    "error by cost of a chain": (plots.error_by_cost, of("plane"), truth, {"cost": "events", "chain": 1}),
    "error by cost over a run": (plots.error_by_cost, of("plane"), of("grid"), {"cost": "events", "given": 0}),
    "error by gradients": (plots.error_by_cost, of("ticks"), truth, {"cost": "gradients"}),
    "error by passes": (plots.error_by_cost, of("ticks"), truth),
    "error by cost of a grid": (plots.error_by_cost, of("grid"), truth, {"cost": "events"}),
}.items():
    options = chosen[-1] if isinstance(chosen[-1], dict) else {}
    subjects = [part for part in chosen if part is not options]
    case(lambda subjects=subjects, options=options: picture(*subjects, **options), name)


# -- much of a path, and no room for names ---------------------------------------------------------------------------


@contextlib.contextmanager
def replaced(module, **values):
    """A module with other constants for a while."""
    kept = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(module, name, value)


def in_parts(name, **values):
    with replaced(paths, **values):
        one = run(name).trajectories[0]
        return [paths.path_lines(one, [1, 0], 0.7, 0.9 * one.end), picture(plots.trace, of(name))]


for name in ("plane", "ticks", "ellipses"):
    case(lambda n=name: in_parts(n, VERTICES=30, COLUMNS=9), f"a path in parts, {name}")
case(lambda: in_parts("wide", PATH_NUMBERS=160, VERTICES=15, MARKED=2), "a path with more numbers than are read")


@case
def chosen_coordinates():
    """By default, of many."""
    found = []
    for name in ("wide", "sticky", "named", "ellipses"):
        one = run(name)
        chosen = [
            style.choose(one, None, most, by) for most in (1, 2) for by in ("ess", "rhat", "correlation")[: 1 + most]
        ]
        found.append([[places, words.split()] for places, words in chosen])
        found.append([style.slowest(one, 2), style.most_correlated(one, 2), style.short_names(one)])
    with replaced(style, CANDIDATES=4):
        found.append(style.most_correlated(run("wide"), 3))
    found.append([style.choose(run("named"), ["short[1]", 0], 1), style.check_coordinates("short[0]", run("named"))])
    return [found, style.draws_of(run("grid")), style.draws_of(run("plane"), 11), style.chain_weights(run("plane"))]


@case
def names_that_are_cut():
    found = []
    for names in (
        ["a" * 26, "b" * 27, "short", "an effect of the first kind on Mondays"],
        ["the same beginning and 1 the same end", "the same beginning and 2 the same end", "c" * 31],
    ):
        found.append(style.short_names(SimpleNamespace(names=lambda names=names: names)))
    return [[name.split() for name in each] for each in found]


@case
def labels_of_logarithms():
    numbers = [0.0, 1e-7, 2.5e-5, 1e-4, 0.0123456, 1.0, 20.0, 999.5, 1_000.0, 123_456.0, 999_999.0, 1e6, 3.2e7]
    apart = [style.apart(np.array(each), 0.1) for each in ([0.1, 0.5, 0.9], [0.5, 0.52, 0.54], [0.0, 0.01, 0.97, 1.0])]
    return [[style.log_number(y, None) for y in numbers], apart]


def labelled(low, high, which, wanted=()):
    from matplotlib import pyplot

    one = axes()
    one.set(xlim=(low, high) if which == "x" else (1.0, 2.0), ylim=(low, high) if which == "y" else (1.0, 2.0))
    getattr(one, f"set_{which}scale")("log")
    style.log_ticks(one, which, wanted)
    axis = getattr(one, f"{which}axis")
    places = [t for t in axis.get_majorticklocs() if low <= t <= high]
    found = [places, [axis.get_major_formatter()(t, 0) for t in places]]
    pyplot.close("all")
    return found


@case
def logarithmic_axes():
    """Labels at 1, 2, 5; at 1, 3; at powers; at round numbers; where they are wanted."""
    ends = ((1.0, 40.0), (1.0, 3e3), (1.0, 1e9), (1e-9, 1e-2), (3.0, 4.1), (12.0, 13.0), (0.3, 1e6), (2e-5, 3e-5))
    found = [labelled(*each, which) for each in ends for which in "xy"]
    return [*found, labelled(10.0, 300.0, "x", [33.333, 100.0, 222.2]), labelled(10.0, 300.0, "x", [33.0, 34.0, 100.0])]


# -- processes -------------------------------------------------------------------------------------------------------


def batches():
    rng = np.random.default_rng(3)
    X = moved(rng.standard_normal((30, 2)))
    model = pdmp.models.LogisticRegression(X, X[:, 0] > 0.2)
    return pdmp.SBPS(pdmp.gradients.Minibatch(model, 5))


def zigzag():
    return pdmp.ZigZag(pdmp.models.Gaussian([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), thinning="affine")


STARTED = {"initial": functools.partial(moved, [0.3, 0.6]), "skip": 15}
for name, (process, options) in {
    "affine": (affine, STARTED),
    "with defaults": (Telegraph, {}),
    "of another seed and length": (affine, STARTED | {"seed": 3, "proposals": 7, "given": 0}),
    "of the second clock": (Telegraph, STARTED | {"clock": 1, "proposals": 6}),
    "of all coordinates": (zigzag, {"initial": functools.partial(moved, [0.3, 0.6, 1.0]), "skip": 12, "proposals": 6}),
    "that is estimated": (batches, STARTED | {"proposals": 3, "skip": 20}),
    "where a run ended": (of("thinned"), {"proposals": 5, "skip": 6}),
    "where a chain ended": (of("thinned"), {"proposals": 5, "skip": 6, "chain": 1}),
}.items():
    case(lambda p=process, o=options: picture(plots.rate_and_bound, p, **o), f"rate and bound {name}")


@case
def a_piece():
    return proposals.piece(affine(), 6, initial=moved([0.3, 0.6]), seed=2, skip=5)._asdict()


@case
def rungs():
    """Of chains with traces that are kept at different distances."""
    rng = np.random.default_rng(4)
    betas = np.array([0.0, 0.1, 0.4, 1.0])
    records = []
    for spacing, rows in ((1, 12), (2, 6)):
        works = moved(rng.normal(size=(rows, 4)) + 3.0 * betas)
        works[0, 0] = np.inf
        kept = {"betas": betas, "rejections": rng.random(3), "works": works, "spacing": np.array([spacing])}
        records.append(SimpleNamespace(accumulated={f"rungs/{k}": v for k, v in kept.items()}))
    one = SimpleNamespace(records=records, chains=2, store="skeleton")
    return [picture(plots.rungs, one), picture(plots.rungs, one, given=2)]


# -- comparisons, searches and predictions ---------------------------------------------------------------------------

for cost in ("data_passes", "gradients", "seconds", "events"):
    case(lambda c=cost: picture(plots.error_by_cost, table, cost=c), f"comparison by {cost}")
for label, options in {
    "": {},
    " of coordinates": {"coordinates": [2, 0, 1]},
    " of two": {"coordinates": [1, 3]},
}.items():
    case(lambda o=options: picture(plots.compare, functools.partial(table, dim=4), **o), f"comparison{label}")
case(lambda: picture(plots.compare, table), "comparison in the plane")
case(lambda: picture(plots.compare, functools.partial(table, dim=1)), "comparison on the line")


def counted(caption, figure):
    return f"<figure>{caption} {len(figure.axes)}</figure>"


@case
def report():
    """The page with words for its pictures, and of a comparison in which all failed."""
    found = []
    with tempfile.TemporaryDirectory() as folder, replaced(pages, _picture=counted):
        for one, settings in ((table(), {"seed": 7, "a <name>": "a & value"}), (table(failed=True), None)):
            file = pathlib.Path(folder) / "r.html"
            plots.report(one, file, settings)
            page = file.read_text(encoding="utf-8").partition("<body>")[2]
            found.append(page.split())
    return found


def search(**changes):
    rows = []
    for step, batch in ((0.01, 5), (0.03, 5), (0.1, 20)):
        for k in range(3 if step == 0.03 else 2):
            score = 0.7 / (k + 1.0) + step
            rows.append(
                {"step": step, "batch": batch, "round": k, "spent": 12.0 * 3.0**k, "score": score, "kept": k == 0}
            )
            rows[-1] |= {"draws": 40, "why": ""}
    rows.append(dict(rows[0], step=1.0, score=float("inf"), why="it left the support"))
    best = {"step": 0.03, "batch": 5}
    return SimpleNamespace(**{"table": rows, "best": best, "clock": "data", "metric": "ksd"} | changes)


def below_zero():
    found = search(metric="log score")
    for row in found.table:
        row["score"] = 0.3 - row["score"]
    return found


for label, (found, options) in {
    "data passes": (search, {}),
    "seconds": (lambda: search(clock="seconds", metric="fssd"), {}),
    "steps": (lambda: search(clock="steps", metric="rmse"), {"given": 0}),
    "scores below zero": (below_zero, {}),
}.items():
    case(lambda f=found, o=options: picture(plots.tuning, f, **o), f"tuning by {label}")


@case
def reliability():
    rng = np.random.default_rng(6)
    p = rng.random(80)
    y = (rng.random(80) < p**2).astype(int)
    three = rng.dirichlet([1.0, 2.0, 3.0], 60)
    classes = rng.integers(3, size=60)
    found = [picture(plots.reliability, y, p), picture(plots.reliability, y, p, given=0)]
    found += [picture(plots.reliability, y, p, bins=4), picture(plots.reliability, y, p, convention="mamba")]
    return [*found, picture(plots.reliability, classes, three, 5)]
