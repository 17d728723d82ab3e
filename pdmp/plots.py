"""Pictures of runs and of comparisons, as matplotlib figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pdmp.comparison import Comparison
    from pdmp.engine.result import Run
    from pdmp.tuning.competition import Tuning

__all__ = ["compare", "ranks", "reliability", "trajectory", "tuning"]

#: Distinct for colour-blind readers too (after Okabe & Ito); grey and black are used for the reference.
COLOURS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07A00", "#56B4E9", "#7B3FA0", "#8C564B"),
    *("#882255", "#44AA99"),
)
STYLE = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "figure.dpi": 110,
    "savefig.dpi": 200,
}
VERTICES = 150  #: number of events shown of the path with the most frequent events
MASSES = (0.99, 0.9, 0.5)  #: posterior masses within the contours


def trajectory(run: Run, coordinates: Sequence[int] = (0, 1), chain: int = 0, events: int = 500) -> Figure:
    """Plot the path of one chain after its warm-up: in the plane of two coordinates, and each of them against time.

    Parameters
    ----------
    run : Run
        With ``store="skeleton"``.
    coordinates : (int, int), default (0, 1)
    chain : int, default 0
    events : int, default 500
        Largest number of events to show.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use('agg')
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=200, chains=2, seed=1)
    >>> figure = pdmp.plots.trajectory(run)
    >>> len(figure.axes)
    3
    """
    from matplotlib import pyplot

    i, j = _check_coordinates((0, 0) if run.dim == 1 else coordinates, run.dim, 2)
    if not 0 <= chain < run.chains:
        raise ValueError(f"`chain` must lie in 0 … {run.chains - 1}, got {chain}.")
    path = run.trajectories[chain]
    begin = np.searchsorted(path.times, path.warmup, side="right")
    inner = path.times[begin : begin + events]
    times = np.unique(np.concatenate([[path.warmup], inner, [path.end] if len(inner) < events else []]))
    times = path.refine(times)
    x = path.at(times)
    names = run.names()
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(9.0, 3.8), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.0, 1.45])
        plane = figure.add_subplot(grid[:, 0])
        _draw_path(plane, x[:, [i, j]], path.kind, COLOURS[0])
        plane.plot(*x[0, [i, j]], "o", ms=5, mfc="white", mec="black", zorder=5)
        plane.set(xlabel=names[i], ylabel=names[j])
        above = None
        for row, k in enumerate((i, j)):
            axes = figure.add_subplot(grid[row, 1], sharex=above)
            above = above or axes
            drawstyle = "default" if path.moving else "steps-post"
            axes.plot(times, x[:, k], lw=0.8, color=COLOURS[row], drawstyle=drawstyle)
            axes.set_ylabel(names[k])
            axes.tick_params(labelbottom=row == 1)
        axes.set_xlabel("process time")
        figure.suptitle(
            f"{run.process if isinstance(run.process, str) else type(run.process).__name__}: {len(inner):,} events"
        )
    return figure


def compare(table: Comparison, coordinates: Sequence[int] | None = None) -> Figure:
    """Plot a comparison: paths, marginals, and the error against data passes.

    Parameters
    ----------
    table : Comparison
        What ``pdmp.compare`` returned.
    coordinates : sequence of int, optional
        Two or three; the first two are those of the paths, all are shown as marginals. By default the two most
        correlated ones, and the one of the others whose marginal is most skewed.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pdmp
    >>> pdmp.plots.compare(table).savefig('compare.png')  # doctest: +SKIP
    """
    from matplotlib import pyplot

    labels = list(table.errors_by_pass)
    if not labels:
        raise ValueError("there is nothing to show: every sampler of this comparison failed.")
    dim = len(table.names)
    chosen = (
        _telling_coordinates(table.reference) if coordinates is None else _check_coordinates(coordinates, dim, None)
    )
    colours = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}
    rows = math.ceil(len(labels) / 4)
    with pyplot.rc_context(STYLE):
        figure = pyplot.figure(figsize=(10.6, 1.0 + 1.95 * rows + 3.0))
        height = figure.get_size_inches()[1]

        def inches(left, right, bottom, top):
            return {"left": left / 10.6, "right": right / 10.6, "bottom": bottom / height, "top": top / height}

        upper = figure.add_gridspec(rows, 4, wspace=0.12, hspace=0.28, **inches(0.65, 10.4, 4.15, height - 0.75))
        marginals = figure.add_gridspec(1, len(chosen), wspace=0.12, **inches(0.65, 5.55, 0.55, 3.2))
        errors = figure.add_gridspec(1, 1, **inches(6.5, 9.35, 0.55, 3.2))
        passes = _show_paths(figure, upper, table, labels, colours, chosen)
        _show_marginals(figure, marginals, table, labels, colours, chosen)
        _show_errors(figure.add_subplot(errors[0]), table, labels, colours)

        def heading(x, y, letter, text):
            figure.text(x / 10.6, y / height, letter, fontsize=12, fontweight="bold", ha="left", va="bottom")
            figure.text((x + 0.25) / 10.6, y / height, text, fontsize=9, ha="left", va="bottom")

        shown = ", ".join(f"{100 * m:.0f}" for m in sorted(MASSES))
        what = f"Paths over {passes:,.0f} data passes from the same start (○); contours: {shown} % of the reference"
        heading(0.15, height - 0.42, "A", what)
        heading(0.15, 3.42, "B", "Marginals; grey: the reference")
        heading(5.95, 3.42, "C", "Error of the means; solid: continuous time, dashed: fixed steps")
        if table.title:
            figure.text(
                10.4 / 10.6, (height - 0.42) / height, table.title, fontsize=9, ha="right", va="bottom", color="0.35"
            )
    return figure


def ranks(run: Run, coordinates: Sequence[int] | None = None, draws: int = 1_000, bins: int = 20) -> Figure:
    """Plot the ranks of each chain's draws among those of all chains, with ArviZ; they are uniform if chains agree.

    Parameters
    ----------
    run : Run
    coordinates : sequence of int, optional
        By default the six with the largest R-hat.
    draws : int, default 1000
        Number of equally spaced draws of each chain.
    bins : int, default 20

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pdmp
    >>> pdmp.plots.ranks(run).savefig('ranks.png')  # doctest: +SKIP
    """
    import warnings

    from matplotlib import pyplot

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import arviz
        except ImportError:
            raise ImportError("`ranks` needs ArviZ: pip install 'pdmp[arviz]'.") from None
        if coordinates is None:
            rhat = np.nan_to_num(run.rhat(), nan=0.0)
            coordinates = np.sort(np.argsort(-rhat, kind="stable")[:6])
        coordinates = [int(k) for k in coordinates]
        if not coordinates or not all(0 <= k < run.dim for k in coordinates):
            raise ValueError(f"`coordinates` must be some of 0 … {run.dim - 1}, got {coordinates}.")
        x, names = run.draws(draws), run.names()
        posterior = {names[k]: x[:, :, k] for k in coordinates}
        with pyplot.rc_context(STYLE):
            if int(arviz.__version__.split(".")[0]) >= 1:
                return arviz.plot_rank(arviz.from_dict({"posterior": posterior})).viz["figure"].item()
            columns = min(3, len(coordinates))
            rows = -(-len(coordinates) // columns)
            figure, axes = pyplot.subplots(rows, columns, figsize=(3.2 * columns, 2.2 * rows + 0.3), squeeze=False)
            arviz.plot_rank(posterior, bins=bins, ax=axes.ravel()[: len(coordinates)], colors="black")
            for left in axes.ravel()[len(coordinates) :]:
                left.remove()
            figure.set_layout_engine("constrained")
            return figure


def reliability(y: ArrayLike, p: ArrayLike, bins: int = 10, convention: str = "standard") -> Figure:
    """Plot a reliability diagram: the share of right predictions against their confidence, and a histogram of it.

    Error bars are binomial standard errors.

    Parameters
    ----------
    y, p, bins, convention :
        As in `pdmp.diagnostics.reliability`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use('agg')
    >>> import pdmp
    >>> len(pdmp.plots.reliability([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).axes)
    2
    """
    from matplotlib import pyplot

    from pdmp.diagnostics import predictive

    found = predictive.reliability(y, p, bins, convention)
    used = found["count"] > 0
    confidence, accuracy, count = (found[name][used] for name in ("confidence", "accuracy", "count"))
    with pyplot.rc_context(STYLE):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(3.6, 4.4), sharex=True, height_ratios=[3, 1], layout="constrained"
        )
        low = float(found["left"][used][0])
        above.plot([low, 1.0], [low, 1.0], lw=0.8, color="0.55", ls=(0, (4, 2)))
        error = np.sqrt(np.maximum(accuracy * (1.0 - accuracy), 0.25 / count) / count)
        above.errorbar(confidence, accuracy, error, fmt="o-", ms=4, lw=1.2, elinewidth=0.8, color=COLOURS[0])
        ece, mce = predictive.ece(y, p, bins, convention), predictive.mce(y, p, bins, convention)
        above.set(ylabel="share of right predictions", ylim=(min(low, float(accuracy.min())) - 0.03, 1.03))
        above.set_title(f"ECE {ece:.3f}, MCE {mce:.3f}")
        below.bar(found["left"], found["count"], found["right"] - found["left"], align="edge", color="0.75", ec="white")
        below.set(xlabel="confidence", ylabel="predictions", xlim=(low - 0.02, 1.02))
    return figure


def tuning(result: Tuning) -> Figure:
    """Plot a search for settings: the score of each arm after each round against what it had spent.

    Parameters
    ----------
    result : Tuning
        What `pdmp.tuning.mamba` or `pdmp.tuning.grid_search` returned.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pdmp
    >>> pdmp.plots.tuning(result).savefig('tuning.png')  # doctest: +SKIP
    """
    from matplotlib import pyplot

    table = result.table
    own = {"round", "spent", "score", "kept", "draws", "why"}
    names = [name for name in table[0] if name not in own]
    paths = {}
    for row in table:
        paths.setdefault(tuple(row[name] for name in names), []).append(row)
    best = tuple(result.best[name] for name in names)
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(7.2, 4.0))
        for arm, rows in paths.items():
            rows = [row for row in rows if math.isfinite(row["score"])]
            won = arm == best
            style = {"color": COLOURS[0], "lw": 1.8, "zorder": 3} if won else {"color": "0.65", "lw": 0.8}
            axes.plot([r["spent"] for r in rows], [r["score"] for r in rows], "o-", ms=4 if won else 3, **style)
        settings = ", ".join(f"{name} {_setting(value)}" for name, value in zip(names, best, strict=True))
        failed = sum(not math.isfinite(row["score"]) for row in table)
        text = f"{len(paths)} settings, dropped where their lines end" + (f"; {failed} failed" if failed else "")
        axes.set_title(f"{text}\nbest: {settings}", fontsize=9, loc="left")
        unit = {"data": "data passes", "seconds": "seconds", "steps": "steps"}[result.clock]
        axes.set_xlabel(f"{unit} spent by a setting")
        axes.set_ylabel(result.metric if result.metric not in ("ksd", "fssd") else result.metric.upper())
        scores = [row["score"] for row in table if math.isfinite(row["score"])]
        if min(scores) > 0.0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(_plain)
            axes.yaxis.set_minor_formatter(_plain if max(scores) < 20.0 * min(scores) else "")
        axes.set_xscale("log")
        spent = sorted({row["spent"] for row in table})
        axes.set_xticks(spent, [f"{value:,.3g}" for value in spent])
        axes.set_xticks([], minor=True)
        figure.tight_layout()
    return figure


def _setting(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _check_coordinates(coordinates, dim, count):
    coordinates = [int(k) for k in coordinates]
    allowed = (2,) if count == 2 or dim < 3 else (2, 3)
    if len(coordinates) not in (*allowed, *((1,) if dim == 1 else ())) or not all(0 <= k < dim for k in coordinates):
        how_many = " or ".join(map(str, allowed))
        raise ValueError(f"`coordinates` must be {how_many} of 0 … {dim - 1}, got {coordinates}.")
    return coordinates


def _telling_coordinates(reference):
    """The two most correlated coordinates, and the one of the others with the most skewed marginal."""
    d = len(reference.mean)
    if d < 3:
        return list(range(d))
    correlation = np.abs(reference.cov / np.outer(reference.sd, reference.sd))
    np.fill_diagonal(correlation, -1.0)
    i, j = sorted(np.unravel_index(np.argmax(correlation), correlation.shape))
    skewness = np.abs(np.mean(((reference.draws - reference.mean) / reference.sd) ** 3, axis=0))
    skewness[[i, j]] = -1.0
    return [int(i), int(j), int(np.argmax(skewness))]


def _draw_path(axes, x, kind, colour):
    if kind != "constant":
        axes.plot(x[:, 0], x[:, 1], lw=0.7, color=colour, alpha=0.9, solid_joinstyle="round")
    else:
        axes.plot(x[:, 0], x[:, 1], lw=0.3, color=colour, alpha=0.35)
        axes.plot(x[:, 0], x[:, 1], ".", ms=1.8, mew=0, color=colour, alpha=0.8)


def _show_paths(figure, grid, table, labels, colours, chosen):
    """Paths at equal cost over the contours of the reference; returns the data passes shown."""
    from scipy.stats import gaussian_kde

    reference = table.reference
    i, j = chosen[0], chosen[min(1, len(chosen) - 1)]
    paths = [table.paths[label] for label in labels]
    moving = [p for p in paths if p.kind != "constant"] or paths
    passes = min(p.events[min(VERTICES, len(p.events) - 1)] for p in moving)
    # Never more than is stored of any fixed-step path.
    passes = min([passes, *(p.passes[-1] for p in paths if p.kind == "constant")])
    centre, width = reference.mean[[i, j]], 4.2 * reference.sd[[i, j]]
    contour = None
    if i != j:
        sample = reference.draws[:: max(len(reference.draws) // 3_000, 1)][:, [i, j]].T
        density = gaussian_kde(sample)
        levels = np.quantile(density(sample), [1.0 - m for m in MASSES])
        u, v = (np.linspace(c - w, c + w, 90) for c, w in zip(centre, width, strict=True))
        contour = u, v, density(np.array(np.meshgrid(u, v)).reshape(2, -1)).reshape(90, 90), levels
    first = None
    for k, label in enumerate(labels):
        axes = figure.add_subplot(grid[k // 4, k % 4], sharex=first, sharey=first)
        first = first or axes
        if contour is not None:
            u, v, z, levels = contour
            axes.contourf(u, v, z, [*levels, np.inf], colors=["0.94", "0.88", "0.80"])
            axes.contour(u, v, z, levels, colors="0.6", linewidths=0.5)
        path = table.paths[label]
        inside = int(np.searchsorted(path.passes, passes, side="right"))
        x = path.positions[:inside]
        if path.kind != "constant" and inside < len(path.passes):  # the last segment, in part
            share = (passes - path.passes[inside - 1]) / (path.passes[inside] - path.passes[inside - 1])
            x = np.vstack([x, x[-1] + share * (path.positions[inside] - x[-1])])
        _draw_path(axes, x[:, [i, j]], path.kind, colours[label])
        axes.plot(*x[0, [i, j]], "o", ms=4, mfc="white", mec="black", mew=0.8, zorder=5)
        axes.set_title(label, color=colours[label], fontweight="bold", pad=3)
        last_in_column = k + 4 >= len(labels)
        axes.tick_params(labelleft=k % 4 == 0, labelbottom=last_in_column, length=2.5)
        if k % 4 == 0:
            axes.set_ylabel(table.names[j])
        if last_in_column:
            axes.set_xlabel(table.names[i], labelpad=2)
    first.set(xlim=(centre[0] - width[0], centre[0] + width[0]), ylim=(centre[1] - width[1], centre[1] + width[1]))
    first.locator_params(nbins=4)
    return passes


def _density(x, points):
    """Kernel density of draws; None if they are all the same."""
    from scipy.stats import gaussian_kde

    x = x[np.isfinite(x)]
    return gaussian_kde(x)(points) if len(x) > 2 and np.ptp(x) > 0.0 else None


def _show_marginals(figure, grid, table, labels, colours, chosen):
    reference = table.reference
    for k, c in enumerate(chosen):
        axes = figure.add_subplot(grid[0, k])
        points = np.linspace(reference.mean[c] - 4.2 * reference.sd[c], reference.mean[c] + 4.2 * reference.sd[c], 200)
        truth = _density(reference.draws[:, c], points)
        axes.fill_between(points, truth, color="0.82", lw=0)
        axes.plot(points, truth, color="0.45", lw=0.8)
        top = truth.max()
        for label in labels:
            density = _density(table.draws[label][:, :, c].ravel(), points)
            if density is None:
                continue
            dashes = (0, (4, 1.2)) if table.paths[label].kind == "constant" else "-"
            axes.plot(points, density, lw=1.0, ls=dashes, color=colours[label])
            top = max(top, min(density.max(), 4.0 * truth.max()))
        axes.set(ylim=(0.0, 1.06 * top), yticks=[], xlim=(points[0], points[-1]))
        axes.set_xlabel(table.names[c], labelpad=2)
        axes.locator_params(axis="x", nbins=4)
        axes.spines["left"].set_visible(False)


def _show_errors(axes, table, labels, colours):
    from matplotlib import ticker

    ends, curves = {}, []
    for label in labels:
        passes, error = table.errors_by_pass[label]
        solid = table.paths[label].kind != "constant"
        axes.plot(passes, error, lw=1.4, ls="-" if solid else (0, (4, 1.2)), color=colours[label])
        ends[label] = error[-1]
        curves.append(error)
    floor = math.sqrt(2.0 / math.pi / table.reference.ess)
    low, high = min(min(c.min() for c in curves), floor), max(c.max() for c in curves)
    axes.set(xscale="log", yscale="log", ylim=(0.75 * low, 1.25 * high))
    axes.axhline(floor, color="0.55", lw=0.8, ls=(0, (1, 1.5)))
    left = axes.get_xlim()[0]
    axes.text(left * 1.06, floor * 1.04, "error of the reference itself", fontsize=7, color="0.4", va="bottom")
    axes.set_xlabel("data passes", labelpad=2)
    axes.set_ylabel("mean |error| / posterior sd")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(_plain)
    axes.yaxis.set_minor_formatter(lambda y, _: "")
    # Names at the ends of the curves, moved apart where they would overlap.
    bottom, top = np.log(axes.get_ylim())
    order = sorted(ends, key=ends.get)
    wanted = (np.log([ends[label] for label in order]) - bottom) / (top - bottom)
    places = _apart(wanted, 0.062)
    inside = {"transform": axes.transAxes, "clip_on": False}
    for label, place, at in zip(order, places, wanted, strict=True):
        axes.plot([1.01, 1.06], [at, place], lw=0.6, color=colours[label], **inside)
        axes.text(1.075, place, label, fontsize=8, color=colours[label], va="center", **inside)
    axes.set_xlim(left, max(table.errors_by_pass[label][0][-1] for label in labels))


def _plain(y, _):
    return f"{y:g}"


def _apart(places, distance):
    """Sorted places in [0, 1], moved as little as possible to be at least `distance` apart."""
    groups = []  # [sum of the wanted centres, members]
    for place in places:
        groups.append([place, 1])
        while len(groups) > 1:
            (a, m), (b, n) = groups[-2], groups[-1]
            if b / n - a / m >= 0.5 * distance * (m + n):
                break
            groups[-2:] = [[a + b, m + n]]
    out = []
    for total, n in groups:
        centre = min(max(total / n, 0.5 * distance * n), 1.0 - 0.5 * distance * (n - 1))
        out += [centre + distance * (k - 0.5 * (n - 1)) for k in range(n)]
    return out
