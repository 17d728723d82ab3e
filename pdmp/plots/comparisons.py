"""Pictures of comparisons, of predictions and of tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.averages import diagnostic_draws, draw_times, running_mean
from pdmp.native.arguments import one_of
from pdmp.plots.densities import MASSES
from pdmp.plots.paths import draw_path
from pdmp.plots.style import (
    COLOURS,
    DASHES,
    kernel_density,
    log_ticks,
    names_at_ends,
    of_chain,
    one_axes,
    sampler_of,
    some_of,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdmp.comparison import Comparison, Reference
    from pdmp.engine.result import Run
    from pdmp.tuning.competition import Tuning

VERTICES = 150  #: number of events shown of the path with the most frequent events
CONTOURED = 1_500  #: draws whose density has contours, at most
CURVE = 200  #: points of a run's error
#: Costs: their column in the table of a comparison, and what they are called.
COSTS = {
    "data_passes": ("data_passes", "data passes"),
    "gradients": ("data_passes", "gradients from all data"),
    "seconds": ("seconds", "seconds of computing"),
    "events": ("events", "events"),
}


@styled
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
    chosen = _telling_coordinates(table.reference) if coordinates is None else _check_coordinates(coordinates, dim)
    colours = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}
    rows = math.ceil(len(labels) / 4)
    figure = pyplot.figure(figsize=(10.6, 1.0 + 1.95 * rows + 3.0))
    height = figure.get_size_inches()[1]

    def inches(left, right, bottom, top):
        return {"left": left / 10.6, "right": right / 10.6, "bottom": bottom / height, "top": top / height}

    upper = figure.add_gridspec(rows, 4, wspace=0.12, hspace=0.28, **inches(0.65, 10.4, 4.15, height - 0.75))
    marginals = figure.add_gridspec(1, len(chosen), wspace=0.12, **inches(0.65, 5.55, 0.55, 3.2))
    errors = figure.add_gridspec(1, 1, **inches(6.5, 9.35, 0.55, 3.2))
    passes = _show_paths(figure, upper, table, labels, colours, chosen)
    _show_marginals(figure, marginals, table, labels, colours, chosen)
    below = figure.add_subplot(errors[0])
    dashed = [label for label in labels if table.paths[label].kind == "constant"]
    _draw_errors(below, table.errors_by_pass, dashed, colours, math.sqrt(2.0 / math.pi / table.reference.ess))
    below.set_xlabel("data passes", labelpad=2)
    below.set_ylabel("mean |error| / posterior sd")

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


@styled
def reliability(
    y: ArrayLike, p: ArrayLike, bins: int = 10, convention: str = "standard", ax: Axes | None = None
) -> Figure | Axes:
    """Plot a reliability diagram: the share of right predictions against their confidence, and a histogram of it.

    Error bars are binomial standard errors.

    Parameters
    ----------
    y, p, bins, convention :
        As in `pdmp.diagnostics.reliability`.
    ax : matplotlib.axes.Axes, optional
        Where to draw the diagram, without the histogram.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if `ax` is given.

    Examples
    --------
    >>> import pdmp
    >>> len(pdmp.plots.reliability([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]).axes)
    2
    """
    from matplotlib import pyplot

    from pdmp.diagnostics import predictive

    found = predictive.reliability(y, p, bins, convention)
    used = found["count"] > 0
    confidence, accuracy, count = (found[name][used] for name in ("confidence", "accuracy", "count"))
    above, below = ax, None
    if above is None:
        options = {"figsize": (3.6, 4.4), "height_ratios": [3, 1], "layout": "constrained"}
        _, (above, below) = pyplot.subplots(2, 1, sharex=True, **options)
    low = float(found["left"][used][0])
    above.plot([low, 1.0], [low, 1.0], lw=0.8, color="0.55", ls=(0, (4, 2)))
    error = np.sqrt(np.maximum(accuracy * (1.0 - accuracy), 0.25 / count) / count)
    above.errorbar(confidence, accuracy, error, fmt="o-", ms=4, lw=1.2, elinewidth=0.8, color=COLOURS[0])
    ece, mce = predictive.ece(y, p, bins, convention), predictive.mce(y, p, bins, convention)
    above.set(ylabel="share of right predictions", ylim=(min(low, float(accuracy.min())) - 0.03, 1.03))
    above.set_title(f"ECE {ece:.3f}, MCE {mce:.3f}")
    if below is None:
        above.set_xlabel("confidence")
        return above
    below.bar(found["left"], found["count"], found["right"] - found["left"], align="edge", color="0.75", ec="white")
    below.set(xlabel="confidence", ylabel="predictions", xlim=(low - 0.02, 1.02))
    return above.figure


@styled
def tuning(result: Tuning, ax: Axes | None = None) -> Figure | Axes:
    """Plot a search for settings: the score of each arm after each round against what it had spent.

    Parameters
    ----------
    result : Tuning
        What `pdmp.tuning.mamba` or `pdmp.tuning.grid_search` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if `ax` is given.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.plots.tuning(result).savefig('tuning.png')  # doctest: +SKIP
    """
    table = result.table
    own = {"round", "spent", "score", "kept", "draws", "why"}
    names = [name for name in table[0] if name not in own]
    paths = {}
    for row in table:
        paths.setdefault(tuple(row[name] for name in names), []).append(row)
    best = tuple(result.best[name] for name in names)
    axes = one_axes(ax, 7.2, 4.0)
    for arm, rows in paths.items():
        rows = [row for row in rows if math.isfinite(row["score"])]
        won = arm == best
        style = {"color": COLOURS[0], "lw": 1.8, "zorder": 3} if won else {"color": "0.65", "lw": 0.8}
        axes.plot([r["spent"] for r in rows], [r["score"] for r in rows], "o-", ms=4 if won else 3, **style)
    settings = ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in zip(names, best, strict=True)
    )
    failed = sum(not math.isfinite(row["score"]) for row in table)
    text = f"{len(paths)} settings, dropped where their lines end" + (f"; {failed} failed" if failed else "")
    axes.set_title(f"{text}\nbest: {settings}", fontsize=9, loc="left")
    unit = {"data": "data passes", "seconds": "seconds", "steps": "steps"}[result.clock]
    axes.set_xlabel(f"{unit} spent by a setting")
    axes.set_ylabel(result.metric if result.metric not in ("ksd", "fssd") else result.metric.upper())
    scores = [row["score"] for row in table if math.isfinite(row["score"])]
    if min(scores) > 0.0:
        axes.set_yscale("log")
        log_ticks(axes, "y")
    axes.set_xscale("log")
    log_ticks(axes, "x", sorted({row["spent"] for row in table}))
    return axes.figure if ax is None else axes


def _check_coordinates(coordinates, dim):
    coordinates = [coordinates] if isinstance(coordinates, str) or np.ndim(coordinates) == 0 else list(coordinates)
    allowed = (2,) if dim < 3 else (2, 3)
    whole = all(isinstance(k, (int, np.integer)) and 0 <= k < dim for k in coordinates)
    if len(coordinates) not in (*allowed, *((1,) if dim == 1 else ())) or not whole:
        how_many = " or ".join(map(str, allowed))
        raise ValueError(f"`coordinates` must be {how_many} of 0 … {dim - 1}, got {coordinates}.")
    return [int(k) for k in coordinates]


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
        sample = some_of(reference.draws, CONTOURED)[:, [i, j]].T
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
        draw_path(axes, x[:, [i, j]], path.kind, colours[label])
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


def _show_marginals(figure, grid, table, labels, colours, chosen):
    reference = table.reference
    for k, c in enumerate(chosen):
        axes = figure.add_subplot(grid[0, k])
        points = np.linspace(reference.mean[c] - 4.2 * reference.sd[c], reference.mean[c] + 4.2 * reference.sd[c], 200)
        truth = kernel_density(reference.draws[:, c], points)
        axes.fill_between(points, truth, color="0.82", lw=0)
        axes.plot(points, truth, color="0.45", lw=0.8)
        top = truth.max()
        for label in labels:
            density = kernel_density(table.draws[label][:, :, c].ravel(), points)
            if density is None:
                continue
            dashes = DASHES if table.paths[label].kind == "constant" else "-"
            axes.plot(points, density, lw=1.0, ls=dashes, color=colours[label])
            top = max(top, min(density.max(), 4.0 * truth.max()))
        axes.set(ylim=(0.0, 1.06 * top), yticks=[], xlim=(points[0], points[-1]))
        axes.set_xlabel(table.names[c], labelpad=2)
        axes.locator_params(axis="x", nbins=4)
        axes.spines["left"].set_visible(False)


def _draw_errors(axes, curves, dashed, colours, floor):
    """Curves of errors on logarithmic scales, with their names at their ends, above the error of the reference."""
    for label, (cost, error) in curves.items():
        axes.plot(cost, error, lw=1.4, ls=DASHES if label in dashed else "-", color=colours[label])
    errors = [error for _, error in curves.values()]
    low, high = min(min(e.min() for e in errors), floor), max(e.max() for e in errors)
    axes.set(xscale="log", yscale="log", ylim=(0.75 * low, 1.25 * high))
    axes.axhline(floor, color="0.55", lw=0.8, ls=(0, (1, 1.5)))
    left = axes.get_xlim()[0]
    axes.text(left * 1.06, floor * 1.04, "error of the reference itself", fontsize=7, color="0.4", va="bottom")
    names_at_ends(axes, {label: error[-1] for label, (_, error) in curves.items()}, colours)
    axes.set_xlim(left, max(cost[-1] for cost, _ in curves.values()))
    log_ticks(axes, "x")
    log_ticks(axes, "y")


@styled
def error_by_cost(
    result: Comparison | Run,
    reference: Reference | Run | None = None,
    cost: str = "data_passes",
    chain: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the root mean square error of the means against what they cost, on logarithmic scales.

    The error of one chain's means after part of its budget, in posterior standard deviations, over coordinates and
    chains. Dotted lines fall as Monte Carlo errors do, with the square root of the cost: a curve that is flatter has a
    bias. The cost is taken to be proportional to process time.

    Parameters
    ----------
    result : Comparison or Run
        What ``pdmp.compare`` returned, or a run.
    reference : Reference or Run, optional
        Of a run, and needed for it: what has ``mean`` and ``sd``.
    cost : {"data_passes", "gradients", "seconds", "events"}, default "data_passes"
        Of one chain, warm-up included. A gradient from all data is one data pass.
    chain : int, optional
        Of a run; by default all chains.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        For a run without a reference, an unknown cost, one of which the run spent nothing, or a comparison in which
        every sampler failed.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> long, short = (pdmp.sample(pdmp.ZigZag(model), events=n, chains=2, seed=n) for n in (4_000, 400))
    >>> pdmp.plots.error_by_cost(short, reference=long, cost='events').get_yscale()
    'log'
    """
    one_of("cost", cost, COSTS)
    if hasattr(result, "rms_by_pass"):
        curves, dashed, truth = _curves_of_table(result, COSTS[cost][0]), [], result.reference
        dashed = [label for label in curves if result.paths[label].kind == "constant"]
        if not curves:
            raise ValueError("there is nothing to show: every sampler of this comparison failed.")
    elif reference is None:
        raise ValueError("`reference` is needed for a run: another run, or what pdmp.reference(model) returns.")
    else:
        truth, run = reference, of_chain(result, chain)
        curves, dashed = {sampler_of(run): _curve_of_run(run, truth, cost)}, []
    ess = truth.ess if not callable(truth.ess) else float(np.min(truth.ess("spectral")))
    axes = one_axes(ax, 5.6, 3.6)
    colours = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(curves)}
    _draw_errors(axes, curves, dashed, colours, math.sqrt(1.0 / ess))
    ends, bottom = axes.get_xlim(), axes.get_ylim()
    for label, (x, error) in curves.items():
        guide = error[0] * np.sqrt(x[0] / np.array([x[0], ends[1]]))
        axes.plot([x[0], ends[1]], guide, lw=0.7, ls=(0, (1, 2)), color=colours[label], zorder=0)
    axes.set(xlim=ends, ylim=bottom)
    axes.set_xlabel(COSTS[cost][1], labelpad=2)
    axes.set_ylabel("rms error of means / posterior sd")
    return axes


def _curves_of_table(table, key):
    """Costs and root mean square errors by label, from a comparison's curves by data pass."""
    totals = {row["sampler"]: row[key] / row["data_passes"] for row in table.rows}
    return {label: (passes * totals[label], error) for label, (passes, error) in table.rms_by_pass.items()}


def _curve_of_run(run, truth, cost):
    """Costs (n,) of one chain and the root mean square errors (n,) of its means then."""
    mean, sd = (value() if callable(value) else value for value in (truth.mean, truth.sd))
    if np.shape(mean) != (run.dim,):
        raise ValueError(f"`reference` has dimension {len(mean)}, the run {run.dim}.")
    n = min(CURVE, diagnostic_draws(run).shape[1]) if run.store == "grid" else CURVE
    error = (running_mean(run, n=n) - mean) / sd
    spent = run.stats[{"events": "total_events", "gradients": "data_passes"}.get(cost, cost)] / run.chains
    if not spent > 0.0:
        raise ValueError(f"`cost`: the run spent no {COSTS[cost][1]}; use another cost, such as 'events'.")
    return spent * np.mean(draw_times(run, n) / run.end[:, None], axis=0), np.sqrt(np.mean(error**2, axis=(0, 2)))
