"""Pictures of how far a run has come: ranks, autocorrelations, events, and the four to look at first."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics import events
from pdmp.diagnostics.averages import diagnostic_draws, split
from pdmp.native import arguments
from pdmp.plots.densities import marginals
from pdmp.plots.paths import trace
from pdmp.plots.style import (
    COLOURS,
    MARKERS,
    PATH_NUMBERS,
    choose,
    count_axes,
    draws_of,
    many_axes,
    of_chain,
    one_axes,
    sampler_of,
    say,
    short_names,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pdmp.engine.result import Run

LAGS, MOST_DRAWS = 60, 20_000  #: lags of an autocorrelation, and draws of each chain that it is computed from


@styled
def ranks(
    run: Run,
    coordinates: Sequence[int | str] | None = None,
    draws: int = 1_000,
    bins: int = 20,
    axes: ArrayLike | None = None,
) -> Figure | np.ndarray:
    """Plot the ranks of each chain's draws among those of all chains; they are uniform if chains agree.

    A line for each chain: the share of its draws in each bin of ranks, divided by the share that is expected. About
    95 % of a line is expected in the grey band, by the effective draws within chains. A single chain is compared in
    halves.

    Parameters
    ----------
    run : Run
    coordinates : sequence of int or str, optional
        Numbers or names; by default the six with the largest R-hat.
    draws : int, default 1000
        Number of equally spaced draws of each chain; at most those of a grid.
    bins : int, default 20
    axes : array_like of matplotlib.axes.Axes, optional
        One for each coordinate; their number is also that of the coordinates chosen by default.

    Returns
    -------
    matplotlib.figure.Figure or ndarray of matplotlib.axes.Axes, shape (k,)
        The axes if `axes` is given.

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> len(pdmp.plots.ranks(run).axes)
    2
    """
    from scipy.stats import rankdata

    draws, bins = arguments.count("draws", draws), arguments.count("bins", bins)
    most = count_axes(axes, 6)
    chosen, text = choose(run, coordinates, most, by="rhat")
    draws = min(draws, draws_of(run).shape[1]) if run.store == "grid" else draws
    x = run.draws(draws)[:, :, chosen]
    if len(x) == 1:
        half = x.shape[1] // 2
        x = x[0, : 2 * half].reshape(2, half, -1)
    chains, n = x.shape[:2]
    # Of each chain by itself: where chains are apart, all together have hardly any, and any share would be in the band.
    effective = np.mean([one.ess("spectral")[chosen] for one in split(run)], axis=0)
    effective = np.fmin(effective * run.chains / chains, n)
    if axes is None:
        columns = min(3, len(chosen))
        panels = many_axes(None, -(-len(chosen) // columns), columns, 3.2, 2.1).ravel()
        for left in panels[len(chosen) :]:
            left.remove()
        panels = panels[: len(chosen)]
    else:
        panels = many_axes(axes, 1, len(chosen), 0, 0)[0]
    edges = np.linspace(0.0, 1.0, bins + 1)
    for panel, k, column, ess in zip(panels, chosen, np.moveaxis(x, 2, 0), effective, strict=True):
        place = ((rankdata(column) - 0.5) / column.size).reshape(column.shape)
        if ess > 0.0:  # a share of ranks has the variance of so many draws, less what all chains have in common
            width = 2.0 * np.sqrt((bins - 1.0) * (1.0 - 1.0 / chains) / ess)
            panel.axhspan(max(1.0 - width, 0.0), 1.0 + width, color="0.9", lw=0, zorder=0)
        panel.axhline(1.0, color="0.5", lw=0.7)
        for c, one in enumerate(place):
            shares = np.histogram(one, edges)[0] * (bins / n)
            panel.stairs(shares, edges, baseline=None, color=COLOURS[c % len(COLOURS)], lw=1.0)
        panel.set(title=short_names(run)[k], xlim=(0.0, 1.0))
        panel.set_ylim(bottom=0.0)
        panel.set_xlabel("rank among all chains" if run.chains > 1 else "rank among both halves")
    panels[0].set_ylabel("share / expected")
    say(panels[0], text, axes is None)
    return panels[0].figure if axes is None else panels


@styled
def autocorrelation(
    run: Run,
    coordinates: Sequence[int | str] | None = None,
    chain: int | None = None,
    lags: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the autocorrelation of coordinates along the path, against process time, with effective draws.

    The effective draws are those of the path's exact averages, ``run.ess("spectral")``.

    Parameters
    ----------
    run : Run
    coordinates : sequence of int or str, optional
        Numbers or names; by default all if they are at most four, else the four with the fewest effective draws.
    chain : int, optional
        By default all chains, around their common mean.
    lags : float, optional
        The longest lag, in process time; by default the time of five effective draws of the slowest coordinate.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> len(pdmp.plots.autocorrelation(run).lines)
    3
    """
    chosen, text = choose(run, coordinates, 4)
    run = of_chain(run, chain)
    ess, lengths = run.ess("spectral")[chosen], run.end - run.warmup
    length = float(np.min(lengths))
    if lags is None:
        # The time that one effective draw takes is the integral of the autocorrelation over lags of both signs.
        lags = 5.0 * float(np.sum(lengths)) / np.nanmin(ess) if np.any(ess > 0.0) else length
    elif not isinstance(lags, numbers.Real) or not lags > 0.0:
        raise ValueError(f"`lags` must be positive, got {lags!r}.")
    lags = min(lags, 0.25 * length)
    if run.store == "grid":
        found = diagnostic_draws(run)
        draws = 1 if found is None else found.shape[1]
    else:
        most = max(min(MOST_DRAWS, PATH_NUMBERS // (run.chains * run.dim)), 400)
        draws = int(np.clip(LAGS * length / lags, 400, most))
    count = int(np.clip(np.ceil(lags * draws / length), 20, draws // 2)) + 1
    found = events.acf(run, count, np.eye(run.dim)[chosen], draws)
    axes = one_axes(ax)
    axes.axhline(0.0, color="0.5", lw=0.7)
    for k, (j, values) in enumerate(zip(chosen, found["acf"], strict=True)):
        name = f"{short_names(run)[j]}: {ess[k]:,.0f} effective draws"
        marker = {"marker": MARKERS[k % len(MARKERS)], "ms": 3, "markevery": (k, max(count // 8, 1))}
        axes.plot(found["time"], values, lw=1.2, color=COLOURS[k % len(COLOURS)], label=name, **marker)
    axes.set(xlabel="lag (process time)", ylabel="autocorrelation", xlim=(0.0, found["time"][-1]))
    axes.set_ylim(top=1.03)
    axes.legend(loc="upper right")
    say(axes, text, ax is None)
    return axes


@styled
def event_rates(run: Run, ax: Axes | None = None) -> Axes:
    """Plot how many events of each kind come per unit of process time: of each chain, and of all.

    Bars are two Monte Carlo standard errors to each side. A hollow marker has none, as its error is not known: the run
    is too short, or has no skeleton.

    Parameters
    ----------
    run : Run
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.BPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> [label.get_text() for label in pdmp.plots.event_rates(run).get_xticklabels()]
    ['bounce', 'refresh']
    """
    pooled, names = events.event_rates(run), list(run.stats["events"])
    axes = one_axes(ax, 1.6 + 1.1 * len(names), 3.0)
    width, top = 0.7 / run.chains, 0.0
    for c, one in enumerate(split(run)):
        rates = events.event_rates(one)
        x = np.arange(len(names)) + (c - 0.5 * (run.chains - 1)) * width
        value = np.array([rates[name].value for name in names])
        error = 2.0 * np.array([rates[name].error for name in names])
        style = {"fmt": MARKERS[c % len(MARKERS)], "color": COLOURS[c % len(COLOURS)], "label": f"chain {c}"}
        axes.errorbar(x, value, error, ms=4, elinewidth=1.0, **style)
        unknown = ~np.isfinite(error)
        axes.plot(x[unknown], value[unknown], style["fmt"], ms=4, mec=style["color"], mfc="white", zorder=3)
        top = max(top, float(np.max(value + np.where(unknown, 0.0, error))))
    for k, name in enumerate(names):
        axes.plot([k - 0.42, k + 0.42], [pooled[name].value] * 2, color="black", lw=1.0, zorder=0)
    axes.set_xticks(range(len(names)), names)
    axes.set(xlim=(-0.55, len(names) - 0.45), ylabel="events per unit of process time")
    legend = 1 < run.chains <= 8
    rows = -(-run.chains // 2) if legend else 0  # above all bars there is room for the legend
    axes.set_ylim(0.0, (1.08 + 0.1 * rows) * max([top, *(pooled[name].value for name in names)]) or 1.0)
    if legend:
        axes.legend(loc="upper right", ncols=2)
    return axes


@styled
def overview(run: Run, coordinates: Sequence[int | str] | None = None) -> Figure:
    """Plot what one looks at first: the path against time, the marginal, ranks by chain, and the autocorrelation.

    The path shows whether it has settled and how often it crosses the posterior; marginals and ranks, whether chains
    agree; the autocorrelation, how much the run is worth. ``run.plot()`` is this.

    Parameters
    ----------
    run : Run
        With a path, not ``store="moments"``.
    coordinates : sequence of int or str, optional
        Numbers or names, a row for each; by default all if they are at most four, else the four with the fewest
        effective draws.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> len(run.plot().axes)
    8
    """
    from matplotlib import pyplot

    chosen, text = choose(run, coordinates, 4)
    run.draws(1)  # an error of one line without a path
    ratios, size = [2.2, 1.0, 1.0, 1.15], (7.9, 0.75 + 1.45 * len(chosen))
    options = {"squeeze": False, "width_ratios": ratios, "layout": "constrained"}
    figure, panels = pyplot.subplots(len(chosen), 4, figsize=size, **options)
    n = diagnostic_draws(run, 1_000)
    trace.__wrapped__(run, chosen, axes=panels[:, 0])
    marginals.__wrapped__(run, chosen, axes=panels[:, 1])
    if n is not None:
        ranks.__wrapped__(run, chosen, n.shape[1], min(20, max(n.shape[1] // 10, 2)), panels[:, 2])
    for row, k in enumerate(chosen):
        if n is not None:
            autocorrelation.__wrapped__(run, [k], ax=panels[row, 3])
        legend = panels[row, 3].get_legend()
        if legend is not None:
            title = legend.get_texts()[0].get_text().rpartition(": ")[2]
            legend.remove()
            panels[row, 3].set_title(title, fontsize=7.5, loc="right", pad=2)
        panels[row, 2].set_title("")
        panels[row, 1].set_xlabel("")
        panels[row, 3].set_ylabel("")
        panels[row, 2].set_ylabel("")
        for panel in panels[row, [0, 2, 3]] if row < len(chosen) - 1 else ():
            panel.set_xlabel("")
    headings = "path", "marginal", "ranks, share / expected", "autocorrelation"
    for panel, heading in zip(panels[0], headings, strict=True):
        panel.annotate(heading, (0.0, 1.0), (0, 11), "axes fraction", textcoords="offset points", fontweight="bold")
    panels[-1, 1].set_xlabel("value")
    chains = f"{run.chains} chain{'s' if run.chains > 1 else ''}"
    about = f"{sampler_of(run)}, {chains}, {run.stats['total_events']:,} events"
    say(panels[0, 0], f"{about}; {text}" if text else about, True)
    return figure
