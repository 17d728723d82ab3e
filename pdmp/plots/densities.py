"""Pictures of the posterior: marginals, pairs of coordinates, probabilities of selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.variable_selection import inclusion as inclusion_of
from pdmp.plots.style import (
    COLOURS,
    chain_weights,
    choose,
    count_axes,
    draws_of,
    many_axes,
    of_chain,
    one_axes,
    say,
    short_names,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pdmp.engine.result import Run

BINS = 50  #: of a histogram
ATOM = 0.01  #: a coordinate that is exactly 0 for a larger share of time has an atom there
MASSES = (0.99, 0.9, 0.5)  #: within the contours
POINTS = 1_500  #: draws, of all chains together, that are shown as points
MOST_INCLUDED = 30  #: coordinates whose probabilities of selection are shown


@styled
def marginals(
    run: Run,
    coordinates: Sequence[int | str] | None = None,
    reference: Run | ArrayLike | Callable | None = None,
    chain: int | None = None,
    axes: ArrayLike | None = None,
) -> np.ndarray:
    """Plot the marginal of each coordinate as a histogram, all chains together and each by a line, over a reference.

    A coordinate that is exactly 0 for some of the time, as those of sticky processes are, has a bar at 0 with its
    probability, and the histogram is that of the rest.

    Parameters
    ----------
    run : Run
    coordinates : sequence of int or str, optional
        Numbers or names; by default all if they are at most four, else the four with the fewest effective draws.
    reference : Run, array_like or callable, optional
        What the marginals should be: another run, draws of shape (..., d), or densities, a function of points (m,) and
        of the coordinate's number that returns (m,).
    chain : int, optional
        By default all chains.
    axes : array_like of matplotlib.axes.Axes, optional
        One for each coordinate; their number is also that of the coordinates chosen by default.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (k,)

    Examples
    --------
    >>> import pdmp
    >>> from scipy.stats import norm
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 1.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> panels = pdmp.plots.marginals(run, reference=lambda x, j: norm.pdf(x, [0.0, 1.0][j], [1.0, 0.5][j]))
    >>> len(panels)
    2
    """
    most = count_axes(axes, 4)
    chosen, text = choose(run, coordinates, most)
    numbers = range(run.chains) if chain is None else [chain]
    run = of_chain(run, chain)
    draws, weights = draws_of(run), chain_weights(run)
    known = None if reference is None or callable(reference) else _as_draws(reference, run.dim)
    panels = many_axes(axes, 1, len(chosen), 2.5, 2.2)[0]
    for panel, k in zip(panels, chosen, strict=True):
        x = draws[:, :, k]
        truth = None if known is None else known[:, k]
        seen = x.ravel() if truth is None else np.concatenate([x.ravel(), truth])
        edges = np.linspace(*_range(seen), BINS + 1)
        atom = float(weights @ np.mean(x == 0.0, axis=1))
        atom = atom if atom > ATOM and np.ptp(x) > 0.0 else 0.0
        heights = np.array([_heights(one, edges, atom) for one in x])
        panel.stairs(weights @ heights, edges, fill=True, color=COLOURS[0], alpha=0.25, lw=0)
        for c, one in zip(numbers, heights, strict=True):
            panel.stairs(one, edges, color=COLOURS[c % len(COLOURS)], lw=0.7, alpha=0.8)
        if atom:
            top = max(float(heights.max()), 1e-300)
            panel.plot([0.0, 0.0], [0.0, 1.05 * top], color=COLOURS[0], lw=2.0)
            panel.annotate(f"P(= 0) = {atom:.2f}", (0.0, 1.05 * top), (3, 0), textcoords="offset points", fontsize=7)
        if truth is not None:
            panel.stairs(_heights(truth, edges, atom), edges, color="black", lw=1.0)
        elif callable(reference):
            points = np.linspace(edges[0], edges[-1], 200)
            panel.plot(points, np.asarray(reference(points, k), dtype=float), color="black", lw=1.0)
        panel.set(xlabel=short_names(run)[k], yticks=[], xlim=(edges[0], edges[-1]))
        panel.set_ylim(bottom=0.0)
        panel.spines["left"].set_visible(False)
        panel.locator_params(axis="x", nbins=4)
    if reference is not None:
        text = f"{text}; black: the reference" if text else "black: the reference"
    say(panels[0], text, axes is None)
    return panels


def _as_draws(reference, dim):
    """Draws (n, d) of a reference that is a run or an array."""
    x = draws_of(reference) if hasattr(reference, "draws") else np.asarray(reference, dtype=float)
    x = x[:, None] if x.ndim == 1 and dim == 1 else x
    if x.ndim < 2 or x.shape[-1] != dim or not np.all(np.isfinite(x)):
        raise ValueError(f"`reference` must have finite draws of shape (..., {dim}), got {x.shape}.")
    return x.reshape(-1, dim)


def _range(x):
    """The interval to show of draws: all but a thousandth on each side, and a little more."""
    low, high = np.quantile(x, [0.001, 0.999])
    room = 0.05 * (high - low) if high > low else 0.5 * max(abs(low), 1.0)
    return low - room, high + room


def _heights(x, edges, atom):
    """Heights of a histogram, which is a density; without the exact zeros if there is an atom, and with their area."""
    kept = x[x != 0.0] if atom else x
    return np.histogram(kept, edges)[0] / (len(x) * np.diff(edges))


@styled
def pairs(
    run: Run,
    coordinates: Sequence[int | str] | None = None,
    reference: Run | ArrayLike | None = None,
    chain: int | None = None,
    axes: ArrayLike | None = None,
) -> np.ndarray:
    """Plot each pair of coordinates: draws and contours below the diagonal, correlations above it, marginals on it.

    Contours enclose 50, 90 and 99 % of the draws; of the reference's, if there is one. Points of different chains have
    different colours.

    Parameters
    ----------
    run : Run
    coordinates : sequence of int or str, optional
        Numbers or names; by default all if they are at most four, else the four most correlated ones.
    reference : Run or array_like, optional
        Another run, or draws of shape (..., d).
    chain : int, optional
        By default all chains.
    axes : array_like of matplotlib.axes.Axes, optional
        k² axes for k coordinates, row by row.

    Returns
    -------
    ndarray of matplotlib.axes.Axes, shape (k, k)

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), events=500, chains=2, seed=1)
    >>> pdmp.plots.pairs(run).shape
    (2, 2)
    """
    most = max(int(np.sqrt(count_axes(axes, 16))), 1)
    chosen, text = choose(run, coordinates, most, by="correlation")
    numbers = range(run.chains) if chain is None else [chain]
    one = of_chain(run, chain)
    draws, weights, n = draws_of(one)[:, :, chosen], chain_weights(one), len(chosen)
    known = draws.reshape(-1, n) if reference is None else _as_draws(reference, run.dim)[:, chosen]
    panels = many_axes(axes, n, n, 1.7, 1.6)
    marginals.__wrapped__(run, chosen, reference, chain, panels.diagonal())
    panels[0, 0].set_title("")
    limits = [panels[k, k].get_xlim() for k in range(n)]
    step = max(draws.shape[1] * len(draws) // POINTS, 1)
    mean = np.einsum("c,cnk->k", weights, draws) / draws.shape[1]
    covariance = np.einsum("c,cnj,cnk->jk", weights, draws - mean, draws - mean)
    with np.errstate(all="ignore"):
        correlation = covariance / np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    for i in range(n):
        for j in range(n):
            panel = panels[i, j]
            if j < i:
                for c, x in zip(numbers, draws, strict=True):
                    points = x[::step, [j, i]].T
                    panel.plot(*points, ".", ms=1.6, mew=0, alpha=0.6, color=COLOURS[c % len(COLOURS)])
                _contours(panel, known[:, [j, i]], limits[j], limits[i])
                panel.set(xlim=limits[j], ylim=limits[i])
                panel.locator_params(nbins=4)
            elif j > i:
                size = 8 + 6 * abs(np.nan_to_num(correlation[i, j]))
                panel.text(0.5, 0.5, f"{correlation[i, j]:.2f}", ha="center", va="center", fontsize=size)
                panel.set_axis_off()
            panel.tick_params(labelbottom=i == n - 1, labelleft=j == 0 and i > 0)
            panel.set_xlabel(short_names(run)[chosen[j]] if i == n - 1 else "")
            panel.set_ylabel(short_names(run)[chosen[i]] if j == 0 else "")
    say(panels[0, 0], text + ("; contours and black: the reference" if reference is not None else ""), axes is None)
    return panels


def _contours(axes, x, across, up):
    """Contours within which lie these shares of the draws x (n, 2)."""
    from scipy.stats import gaussian_kde

    sample = x[:: max(len(x) // 1_000, 1)].T
    if np.any(np.ptp(sample, axis=1) == 0.0) or abs(np.corrcoef(sample)[0, 1]) > 1.0 - 1e-9:
        return
    u, v = np.linspace(*across, 50), np.linspace(*up, 50)
    density = gaussian_kde(sample)
    heights = density(np.array(np.meshgrid(u, v)).reshape(2, -1)).reshape(50, 50)
    levels = np.quantile(density(sample), [1.0 - m for m in MASSES])
    if np.all(np.diff(levels) > 0.0):
        axes.contour(u, v, heights, levels, colors="black", linewidths=[0.5, 0.7, 0.9])


@styled
def inclusion(
    run: Run, coordinates: Sequence[int | str] | None = None, chain: int | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the posterior probability that each coefficient is not 0, with Monte Carlo errors.

    Probabilities are exact fractions of time along the path; bars are two Monte Carlo standard errors to each side.
    With ``store="moments"`` there are none.

    Parameters
    ----------
    run : Run
        Of a sticky process, such as `pdmp.Sticky`.
    coordinates : sequence of int or str, optional
        Numbers or names; by default all if they are at most 30, else the 30 that are most probably selected.
    chain : int, optional
        By default all chains.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        For a run of another process.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 0.0, 2.1]
    >>> model = pdmp.models.SpikeAndSlabLinearRegression(X, y)
    >>> run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), events=2_000, seed=1)
    >>> pdmp.plots.inclusion(run).get_xlabel()
    'probability of being selected'
    """
    run = of_chain(run, chain)
    found, text = inclusion_of(run, errors=True), ""
    p, error = found.value, np.nan_to_num(found.error)
    if coordinates is None and run.dim > MOST_INCLUDED:
        chosen = sorted(int(k) for k in np.argsort(-p, kind="stable")[:MOST_INCLUDED])
        text = f"{MOST_INCLUDED} of {run.dim:,} coordinates: those that are most probably selected"
    else:
        chosen, text = choose(run, coordinates, run.dim)
    axes = one_axes(ax, 4.6, 0.9 + 0.22 * len(chosen))
    rows = np.arange(len(chosen))
    p, error = p[chosen], 2.0 * error[chosen]
    axes.barh(rows, p, height=0.62, color=COLOURS[0], alpha=0.3)
    sides = [np.minimum(error, p), np.minimum(error, 1.0 - p)]
    axes.errorbar(p, rows, xerr=sides, fmt="o", ms=3.5, color=COLOURS[0], elinewidth=1.0)
    axes.axvline(0.5, color="0.6", lw=0.7, ls=(0, (4, 2)), zorder=0)
    axes.set(xlim=(0.0, 1.02), ylim=(len(chosen) - 0.4, -0.6), xlabel="probability of being selected")
    axes.set_yticks(rows, [short_names(run)[k] for k in chosen])
    say(axes, text, ax is None)
    return axes
