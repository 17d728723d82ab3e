"""Pictures of paths: in the plane of two coordinates, and against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.averages import diagnostic_draws, draw_times
from pdmp.native import arguments
from pdmp.plots.style import (
    COLOURS,
    MARKERS,
    PATH_NUMBERS,
    check_chain,
    check_coordinates,
    choose,
    count_axes,
    many_axes,
    most_correlated,
    sampler_of,
    say,
    short_names,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdmp.engine.result import Run
    from pdmp.engine.trajectory import Trajectory

COLUMNS = 1_000  #: parts of the time axis whose smallest and largest values are drawn where there are many events
VERTICES = 4 * COLUMNS  #: a path with more vertices is drawn in this way
MARKED = 60  #: largest number of events of a path against time that are marked


@styled
def trajectory(
    run: Run, coordinates: Sequence[int | str] | None = None, chain: int = 0, events: int = 200, ax: Axes | None = None
) -> Figure | Axes:
    """Plot the path of one chain after its warm-up: in the plane of two coordinates, and each of them against time.

    Kinds of event differ in colour and marker; only those that change one of the two velocities are marked. A path in
    one dimension is drawn against time.

    Parameters
    ----------
    run : Run
        With ``store="skeleton"``.
    coordinates : (int, int) or (str, str), optional
        Numbers or names; by default the two most correlated ones.
    chain : int, default 0
    events : int, default 200
        Largest number of events to show.
    ax : matplotlib.axes.Axes, optional
        Where to draw the path in the plane alone.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if `ax` is given.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=200, chains=2, seed=1)
    >>> figure = pdmp.plots.trajectory(run)
    >>> len(figure.axes)
    3
    """
    from matplotlib import pyplot

    chain, events = check_chain(run, chain), arguments.count("events", events)
    path, names, d = run.trajectories[chain], short_names(run), run.dim
    wanted = min(d, 2)
    if coordinates is None:
        chosen = list(range(d)) if d < 3 else most_correlated(run, 2)
    else:
        chosen = list(dict.fromkeys(check_coordinates(coordinates, run, wanted)))
        if len(chosen) != wanted:
            raise ValueError(f"`coordinates` must be {wanted} of 0 … {d - 1}, or their names, got {coordinates!r}.")
    begin = int(np.searchsorted(path.times, path.warmup, side="right"))
    shown = path.times[begin : begin + events]
    times = np.unique(np.concatenate([[path.warmup], shown, [path.end] if len(shown) < events else []]))
    times = path.refine(times)
    x = path.at(times)[:, chosen]
    marks = _marks(path, chosen, begin, begin + len(shown))
    title = f"{sampler_of(run)}: {len(shown):,} events"
    if coordinates is None and d > 2:
        title += f"\n{names[chosen[0]]} and {names[chosen[1]]}: the most correlated of {d:,} coordinates"

    def draw(axes, columns):
        first = x[:, 0] if len(columns) > 1 else times
        size = 2.5 if len(shown) > MARKED else 4.5
        draw_path(axes, np.column_stack([first, x[:, columns[-1]]]), path.kind, COLOURS[0], steps=len(columns) == 1)
        axes.plot(first[0], x[0, columns[-1]], "o", ms=5, mfc="white", mec="black", zorder=5)
        for kind, at, where in marks:
            horizontal = where[:, 0] if len(columns) > 1 else at
            axes.plot(horizontal, where[:, columns[-1]], **_marker(path, kind, size))
        if len(columns) > 1:
            axes.set(xlabel=names[chosen[0]], ylabel=names[chosen[1]])
        else:
            axes.set(xlabel="process time", ylabel=names[chosen[columns[0]]])

    columns = (0, 1) if d > 1 else (0,)
    if ax is not None:
        draw(ax, columns)
        return ax
    if d == 1:
        plane = pyplot.subplots(figsize=(9.0, 2.8), layout="constrained")[1]
        draw(plane, columns)
    else:
        figure = pyplot.figure(figsize=(9.0, 3.8), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=[1.0, 1.45])
        plane = figure.add_subplot(grid[:, 0])
        draw(plane, columns)
        above = figure.add_subplot(grid[0, 1])
        below = figure.add_subplot(grid[1, 1], sharex=above)
        draw(above, (0,))
        draw(below, (1,))
        above.set_xlabel("")
        above.tick_params(labelbottom=False)
    if marks:
        plane.figure.legend(*plane.get_legend_handles_labels(), loc="outside upper right", ncols=8)
    plane.figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    return plane.figure


def draw_path(axes: Axes, x: np.ndarray, kind: str, colour: str, steps: bool = False) -> None:
    """Draw positions (n, 2): joined by lines, or as dots if the path stands still between events.

    With `steps` the first column is time, and a path that stands still is drawn as steps.
    """
    if kind != "constant" or steps:
        drawstyle = "steps-post" if kind == "constant" else "default"
        axes.plot(*x.T, lw=0.7, color=colour, alpha=0.9, solid_joinstyle="round", drawstyle=drawstyle)
    else:
        axes.plot(*x.T, lw=0.3, color=colour, alpha=0.35)
        axes.plot(*x.T, ".", ms=1.8, mew=0, color=colour, alpha=0.8)


def _marker(path: Trajectory, kind: int, size: float) -> dict[str, Any]:
    """How events of this kind are marked, and their name."""
    colour, marker = COLOURS[(kind + 1) % len(COLOURS)], MARKERS[kind]
    style = {"ls": "", "marker": marker, "ms": size, "color": colour, "mew": 0.0, "zorder": 4}
    return style | {"label": path.events[kind]}


def _marks(path: Trajectory, chosen: list[int], first: int, last: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Of events first … last - 1 (the start is event 0): kinds, times, positions (n, len(chosen)); by kind.

    Only events that change one of these velocities. None for a path that stands still, on which all events are ticks.
    """
    rows = np.arange(max(first, 1), last)
    if not path.moving or len(rows) == 0:
        return []
    if path.kind == "linear" and len(rows) * path.dim <= PATH_NUMBERS:
        v = path.velocities[:, chosen]
        rows = rows[np.any(v[rows] != v[rows - 1], axis=1)]
    kinds, times = path.kinds[rows - 1], path.times[rows]
    return [(int(k), times[kinds == k], path.at(times[kinds == k])[:, chosen]) for k in np.unique(kinds)]


@styled
def trace(
    run: Run,
    coordinates: Sequence[int | str] | None = None,
    chain: int | None = None,
    between: tuple[float, float] | None = None,
    axes: ArrayLike | None = None,
) -> np.ndarray:
    """Plot coordinates against process time: the path itself, as the flow moves it between events.

    Where there are many events, the smallest and the largest value in each of 1,000 parts of the time shown, which
    looks the same; events are marked where there are few. The warm-up is grey.

    Parameters
    ----------
    run : Run
        With ``store="skeleton"``; of a grid, its points are joined.
    coordinates : sequence of int or str, optional
        Numbers or names; by default all if they are at most four, else the four with the fewest effective draws.
    chain : int, optional
        By default all chains, in different colours.
    between : (float, float), optional
        The process times to show; by default all.
    axes : array_like of matplotlib.axes.Axes, optional
        One for each coordinate; their number is also that of the coordinates chosen by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (k,)

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=200, chains=2, seed=1)
    >>> len(pdmp.plots.trace(run, between=(0.0, 20.0)))
    2
    """
    most = count_axes(axes, 4)
    chosen, text = choose(run, coordinates, most)
    chains = range(run.chains) if chain is None else [check_chain(run, chain)]
    a, b = (0.0, float(run.end.max())) if between is None else map(float, between)
    if not 0.0 <= a < b:
        raise ValueError(f"`between` must be two process times, the first before the second, got {between!r}.")
    panels = many_axes(axes, len(chosen), 1, 6.6, 1.35, sharex=True)[:, 0]
    kinds: dict[str, Any] = {}
    for c in chains:
        if run.store == "grid":
            n = diagnostic_draws(run)
            times = draw_times(run, 1 if n is None else n.shape[1])[c]
            lines = [(times, x) for x in run.draws(len(times))[c][:, chosen].T]
            marks, steps = [], "default"
        else:
            path = run.trajectories[c]
            lines = path_lines(path, chosen, min(a, path.end), min(b, path.end))
            steps = "default" if path.moving else "steps-post"
            first, last = np.searchsorted(path.times, [a, b], side="right")
            marks = [_marks(path, [k], int(first), int(last)) if last - first <= MARKED else [] for k in chosen]
        for row, (panel, (times, x)) in enumerate(zip(panels, lines, strict=True)):
            panel.plot(times, x, lw=0.6, alpha=0.85, color=COLOURS[c % len(COLOURS)], drawstyle=steps)
            for kind, at, where in marks[row] if marks else []:
                (mark,) = panel.plot(at, where[:, 0], **_marker(path, kind, 3.5))
                kinds[path.events[kind]] = mark
    names, warm = short_names(run), min(float(run.warmup.max()), b)
    for panel, k in zip(panels, chosen, strict=True):
        if warm > a:
            panel.axvspan(a, warm, color="0.9", lw=0, zorder=0)
        panel.set(xlim=(a, b), ylabel=names[k])
    panels[-1].set_xlabel("process time")
    if kinds and axes is None:
        panels[0].figure.legend(kinds.values(), kinds.keys(), loc="outside upper right", ncols=8)
    say(panels[0], text, axes is None)
    return panels


def path_lines(path: Trajectory, chosen: list[int], a: float, b: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times and values over [a, b] of each chosen coordinate, that look as its path does.

    All vertices of the path if they are at most `VERTICES`; else, at the middle of each of `COLUMNS` equal parts of the
    time, the smallest and the largest value in it. A path that is too long to be read whole is read at equally spaced
    times.
    """
    inner = path.times[(path.times > a) & (path.times < b)]
    if len(inner) * path.dim > PATH_NUMBERS:
        inner = np.linspace(a, b, max(PATH_NUMBERS // path.dim, VERTICES))[1:-1]
    times = path.refine(np.concatenate([[a], inner, [b]]))
    if len(times) <= VERTICES:
        x = path.at(times)[:, chosen]
        return [(times, column) for column in x.T]
    edges = np.linspace(a, b, COLUMNS + 1)
    times = np.union1d(times, edges)
    x, begin = path.at(times)[:, chosen], np.searchsorted(times, edges)
    last = x[begin[1:]] if path.moving else x[begin[:-1]]  # a part's end belongs to it, if the path is continuous
    low = np.minimum(np.minimum.reduceat(x, begin[:-1]), last)
    high = np.maximum(np.maximum.reduceat(x, begin[:-1]), last)
    middle = np.repeat(0.5 * (edges[:-1] + edges[1:]), 2)
    return [(middle, np.column_stack(pair).ravel()) for pair in zip(low.T, high.T, strict=True)]
