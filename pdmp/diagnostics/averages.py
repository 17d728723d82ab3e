"""Averages along the paths of a run, whatever is stored of them, and how many independent draws they are worth.

Of coupled copies, averages are the sums of the copies' averages with the weights ``run.copies``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pdmp.diagnostics import monte_carlo_error
from pdmp.diagnostics.effective_size import batch_ess, batch_rhat, draws_ess, draws_rhat
from pdmp.errors import silenced
from pdmp.native.arguments import count

#: Largest number of draws of each chain for diagnostics, and of numbers in all these draws.
DIAGNOSTIC_DRAWS, DIAGNOSTIC_NUMBERS = 4_000, 20_000_000
PORTION, PORTIONS = 32, 32  #: coordinates whose effective draws are counted together, at least; parts at most
STRETCHES = 1_024  #: largest number of stretches of a chain whose averages give Monte Carlo errors


def split(run: Any) -> list[Any]:
    """A run for each chain of a run; they cannot be continued.

    Parameters
    ----------
    run : Run
        Of any number of chains.

    Returns
    -------
    list of Run
        As many as there are chains, in their order.

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), events=100, chains=2, seed=1)
    >>> [one.mean().shape for one in pdmp.diagnostics.split(run)]
    [(1,), (1,)]
    """
    return [type(run)(run.info, [record]) for record in run.records]


def with_path(run):
    """The records of the chains that have a path after the warm-up."""
    used = [r for r in run.records if r.length > 0.0]
    if not used:
        raise ValueError("there is no path after the warm-up: the run ended before, or had no event.")
    return used


def check_paths(run):
    """Raise a `ValueError` if a chain has no path after the warm-up."""
    for i, r in enumerate(run.records):
        if r.length <= 0.0:
            raise ValueError(f"chain {i} has no path after its warm-up.")


def need_path(run, what, *stores):
    """Raise a `ValueError` if the store is one of these, which keep nothing of what is needed."""
    if run.store in stores:
        better = '`store="skeleton"`' if "grid" in stores else '`store="skeleton"` or `store="grid"`'
        raise ValueError(f'`{what}` needs the path, of which `store="{run.store}"` keeps none; use {better}.')


# ---------------------------------------------------------------------------------------------------------------
# Averages


def variance(run):
    """Time average of (x - mean)², (d,); extrapolation can make it negative."""
    used, mean = with_path(run), np.tile(run.mean(), len(run.copies))
    total = 0.0
    for r in used:
        shift = r.integrals.centre - mean
        total = total + r.integrals.second + shift * (2.0 * r.integrals.first + shift * r.length)
    blocks = (total / sum(r.length for r in used)).reshape(len(run.copies), run.dim)
    return np.array(run.copies) @ blocks


def weighted(run, f):
    """f as a function of all coupled copies: the weighted sum of its values."""
    if len(run.copies) == 1:
        return f
    d = run.dim
    return lambda x: sum(w * np.asarray(f(x[c * d : (c + 1) * d])) for c, w in enumerate(run.copies))


def integral(run, i, f):
    """∫ f along the path of chain i after its warm-up."""
    r, f = run.records[i], weighted(run, f)
    if run.store == "grid":
        rows = r.grid.rows[: int(r.grid.used[0])]
        return (apply(f, rows.T) * (r.length / max(len(rows), 1))).sum(axis=-1)
    return run.trajectories[i].whole.integral(f, r.warmup, r.end)


def running_mean(run: Any, f: Callable | None = None, n: int = 100, combined: bool = True) -> np.ndarray:
    """Time averages of x, or of f(x), from the end of the warm-up to each of the n times ``draw_times(run, n)``.

    Parameters
    ----------
    run : pdmp.Run
    f : callable, optional
        As in `pdmp.Run.expectation`.
    n : int, default 100
    combined : bool, default True
        Of coupled copies, such as the fine and the coarse chain of Richardson-Romberg extrapolation: extrapolate.
        Otherwise the averages of each copy.

    Returns
    -------
    ndarray, shape (chains, n, ...)
        Or (chains, n, copies, ...) if not `combined`. Under ``store="grid"`` the averages over the grid.

    Raises
    ------
    ValueError
        Under ``store="moments"``, which keeps nothing of the path; for more times than a grid has.

    Examples
    --------
    >>> import pdmp
    >>> model = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(model), events=400, store="grid", draws=100, seed=1)
    >>> pdmp.diagnostics.running_mean(run, n=20).shape
    (1, 20, 2)
    """
    need_path(run, "running_mean", "moments")
    check_paths(run)
    n, d, copies = count("n", n), run.dim, range(len(run.copies))
    one = (lambda x: x) if f is None else f
    value = weighted(run, one) if combined else lambda x: np.array([one(x[c * d : (c + 1) * d]) for c in copies])
    out = []
    for i, r in enumerate(run.records):
        if run.store == "grid":
            out.append(_grid_means(r.grid.rows, value, grid_rows(run, i, n)))
            continue
        averages = run.trajectories[i].whole.stretches(n, value, r.warmup, r.end)
        out.append(np.cumsum(averages, axis=0) / np.arange(1, n + 1).reshape(-1, *[1] * (averages.ndim - 1)))
    return np.array(out)


def _grid_means(points, f, rows):
    """Averages of f over the points of a grid up to each of `rows`; f may be large, so its values are not kept."""
    total, means, place = 0.0, [], 0
    for end in rows:
        for x in points[place : end + 1]:
            total = total + np.asarray(f(x.copy()), dtype=float)
        place = end + 1
        means.append(total / place)
    return np.array(means)


# ---------------------------------------------------------------------------------------------------------------
# Draws


def grid_rows(run, i, n):
    """Rows of the grid of chain i that are nearest to n equally spaced times."""
    r = run.records[i]
    used = int(r.grid.used[0])
    if n > used:
        fewest = min(int(one.grid.used[0]) for one in run.records)
        raise ValueError(
            f"`n` = {n} draws are more than the {used} that chain {i} has on its grid: ask for `n={fewest}` or fewer, "
            "or sample longer and with a larger `draws=`."
        )
    times = np.arange(1, n + 1) * (r.length / n)
    return np.clip(np.rint(times / r.grid.spacing[0]).astype(int) - 1, 0, used - 1)


def grid_size(run):
    """The number of draws on the grid of each chain; None without a grid."""
    return min(int(r.grid.used[0]) for r in run.records) if run.store == "grid" else None


def draw_times(run: Any, n: int = 1_000) -> np.ndarray:
    """The times at which ``run.draws(n)`` are taken.

    Parameters
    ----------
    run : Run
        With a path, or equally spaced draws of it, ``store="grid"``.
    n : int, default 1_000
        How many draws of each chain.

    Returns
    -------
    ndarray, shape (chains, n)
        In units of time of the process.

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0], [1.0])), time=8.0, seed=1)
    >>> pdmp.diagnostics.draw_times(run, 4).tolist()
    [[2.0, 4.0, 6.0, 8.0]]
    """
    need_path(run, "draw_times", "moments")
    n = count("n", n)
    if run.store == "grid":
        rows = (grid_rows(run, i, n) for i in range(run.chains))
        return np.array([r.warmup + (k + 1) * r.grid.spacing[0] for r, k in zip(run.records, rows, strict=True)])
    return np.array([r.warmup + np.arange(1, n + 1) * (r.length / n) for r in run.records])


def looked_at(run):
    """The run itself; of ``store="moments"`` as one of the grid that it keeps for checks, unless that is too large."""
    if run.store != "moments" or not all(int(r.grid.used[0]) for r in run.records):
        return run
    seen = copy.copy(run)
    seen.store, seen.aside = "grid", True
    return seen


def diagnostic_draws(run, most=DIAGNOSTIC_DRAWS):
    """At most `most` draws of each chain for diagnostics, (chains, n, d); None if there are fewer than 4."""
    n = min(most, int(run.events.min())) if run.store != "grid" else grid_size(run)
    n = min(n, max(DIAGNOSTIC_NUMBERS // (run.chains * run.dim), 50))
    if n < 4 or any(r.length <= 0.0 for r in run.records):
        return None
    return run.draws(n)


# ---------------------------------------------------------------------------------------------------------------
# Monte Carlo errors


def _places(run, part):
    """Coordinates `part` of every coupled copy, for arrays of all of them; None is all."""
    if part is None or part == slice(0, run.dim):
        return slice(None)
    return (run.dim * np.arange(len(run.copies))[:, None] + np.arange(part.start, part.stop)).ravel()


def _path(run, i, places):
    """The path of chain i, of these coordinates; and how many stretches: half as many as events, at most 1,024."""
    path, r = run.trajectories[i].whole, run.records[i]
    events = len(path.times) - int(np.searchsorted(path.times, r.warmup, side="right"))
    most = max(DIAGNOSTIC_NUMBERS // (len(run.copies) * run.dim * run.chains), 64)
    n = max(min(STRETCHES, most, events // 2), 1)
    return path if isinstance(places, slice) else path.narrowed(places), n


def stretches(
    run: Any, f: Callable | None = None, part: slice | None = None
) -> tuple[list[np.ndarray], list[float], list[float]]:
    """Averages of x or of f(x) over equal stretches of each chain (n, ...), the stretches' lengths, and the chains'.

    From the skeleton, with half as many stretches as events, at most 1,024; else from what the run recorded. Of the
    coordinates `part` alone, if they are given.
    """
    places = _places(run, part)
    if f is not None:
        need_path(run, "the Monte Carlo error of an expectation", "moments")
    weights, series, each, used = np.array(run.copies), [], [], with_path(run)
    for i, r in enumerate(run.records):
        if r.length <= 0.0:
            continue
        if run.store == "skeleton":
            path, n = _path(run, i, places)
            averages = path.stretches(n, None if f is None else weighted(run, f), r.warmup, r.end)
            stretch = r.length / n
        elif f is None:
            stretch = float(r.integrals.stretch[0])
            found, centre = r.batches_of(places).T, r.integrals.centre[places]
            averages = (found / stretch if stretch > 0.0 else np.zeros((0, len(centre)))) + centre
        else:
            rows, stretch = r.grid.rows[: int(r.grid.used[0])], float(r.grid.spacing[0])
            averages = np.moveaxis(apply(weighted(run, f), rows.T), -1, 0)
        if f is None:
            averages = weights @ averages.reshape(len(averages), len(weights), averages.shape[1] // len(weights))
        series.append(averages)
        each.append(stretch)
    return series, each, [r.length for r in used]


def square_stretches(run, mean, part=None):
    """As `stretches`, of (x - mean)², and the average of (x - mean)⁴, None where it is unknown."""
    series, each, lengths, fourth = [], [], [], 0.0
    weights, blocks, places = np.array(run.copies), (len(run.copies), -1), _places(run, part)
    for i, r in enumerate(run.records):
        if r.length <= 0.0:
            continue
        shift, four = r.integrals.centre[places] - mean, None
        if run.store == "skeleton":
            path, n = _path(run, i, places)
            averages, four = path.square_stretches(n, mean, r.warmup, r.end)
            stretch = r.length / n
        else:
            stretch = float(r.integrals.stretch[0])
            averages = []
            if stretch > 0.0 and r.has_squares:
                squares, batches = r.batches_of(places, 1).T, r.batches_of(places).T
                averages = (squares + 2.0 * shift * batches) / stretch + shift**2
            if run.store == "grid":
                four = np.mean(np.square(np.square(r.grid.rows[: int(r.grid.used[0]), places] - mean)), axis=0)
        series.append(weights @ np.reshape(averages, (-1, len(weights), len(mean) // len(weights))))
        each.append(stretch)
        lengths.append(r.length)
        fourth = None if four is None else fourth + r.length * (weights @ four.reshape(blocks))
    return series, each, lengths, None if fourth is None else fourth / sum(lengths)


def portions(run):
    """Parts of the coordinates, at most `PORTIONS`, whose effective draws are counted one after the other."""
    width = max(PORTION, -(-run.dim // PORTIONS))
    return [slice(first, min(first + width, run.dim)) for first in range(0, run.dim, width)]


def effective_draws(run: Any, part: slice | None = None, of: Sequence[str] = ("mean", "sd")) -> dict[str, np.ndarray]:
    """Effective draws of the mean and of the sd of each coordinate, all chains together.

    How many independent draws would have the same Monte Carlo error: var / mcse² of the exact path, of x for the
    mean and of (x - mean)² for the sd. The budget `ess` of `pdmp.sample` counts the fewest of them.

    Parameters
    ----------
    run : pdmp.Run
    part : slice, optional
        Of these coordinates alone: the same numbers.
    of : sequence of {"mean", "sd"}

    Returns
    -------
    dict of str to ndarray, shape (d,)
        "mean", which is ``run.ess("spectral")``, and "sd". NaN for a coordinate that never moved, for too short a
        path, and for the sd if extrapolation made a variance negative; infinite for it if (x - mean)² is constant.
        Under ``store="moments"`` draws from a normal distribution are counted, whose squares vary by 2 var².

    Examples
    --------
    >>> import pdmp
    >>> run = pdmp.sample(pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])), ess=100, seed=1)
    >>> draws = pdmp.diagnostics.effective_draws(run)
    >>> bool(min(draws["mean"].min(), draws["sd"].min()) >= 100)
    True
    """
    if part is None:
        parts = [effective_draws(run, each, of) for each in portions(run)]
        return {name: np.concatenate([found[name] for found in parts]) for name in of}
    var = variance(run)[part]
    return {name: (_of_means if name == "mean" else _of_sds)(run, part, var) for name in of}


def _of_means(run, part, var):
    """Effective draws of the means of the coordinates `part`, whose variances these are."""
    error = monte_carlo_error.standard_error(*stretches(run, part=part), together=run.dim)
    with np.errstate(all="ignore"):
        return np.where(error > 0.0, var / error**2, np.nan)


def _of_sds(run, part, var):
    """Those of the standard deviations."""
    series, each, lengths, fourth = square_stretches(run, np.tile(run.mean()[part], len(run.copies)), part)
    square_error = monte_carlo_error.standard_error(series, each, lengths, together=run.dim)
    with np.errstate(all="ignore"):
        spread = (3.0 * var**2 if fourth is None else fourth) - var**2
        squares = np.where((var > 0.0) & (abs(spread) <= 1e-12 * var**2), np.inf, spread / square_error**2)
    # Extrapolation can make a variance of x or of its squares negative: nothing is known then.
    return np.where(np.isnan(square_error) | (var <= 0.0) | (squares < 0.0), np.nan, squares)


def ess_of(run, method):
    """See `pdmp.Run.ess`, of the methods that count draws."""
    if run.store == "moments":
        if method != "mean":
            raise ValueError(f'`method` {method!r} needs draws, of which `store="moments"` keeps none; use "mean".')
        used, d = with_path(run), run.dim
        lengths = [r.length for r in used]
        var = np.average([_chain_variance(r, d) for r in used], axis=0, weights=lengths)
        spans = [float(r.integrals.stretch[0]) for r in used]
        means = [r.integrals.centre[:d] + r.integrals.first[:d] / r.length for r in used]
        return batch_ess(var, lengths, [r.batches[:d] for r in used], spans, means)
    most = DIAGNOSTIC_DRAWS
    while True:
        draws = diagnostic_draws(run, most)
        if draws is None:
            return np.full(run.dim, np.nan)
        ess = draws_ess(draws, method)
        if run.store == "grid" or most >= 16 * DIAGNOSTIC_DRAWS or draws.shape[1] < most:
            return ess
        if not np.any(ess > 0.2 * draws.shape[0] * draws.shape[1]):
            return ess
        most *= 4


def rhat_of(run, method):
    """See `pdmp.Run.rhat`."""
    if run.store != "moments":
        draws = diagnostic_draws(run)
        return np.full(run.dim, np.nan) if draws is None else draws_rhat(draws, method)
    halves, d, used = [], run.dim, with_path(run)
    for r in used:
        stretch = float(r.integrals.stretch[0])
        whole = int(r.length / stretch * (1.0 + 1e-12)) // 2
        if whole == 0:
            return np.full(d, np.nan)
        for part in (slice(0, whole), slice(whole, 2 * whole)):
            halves.append(r.integrals.centre[:d] + r.batches[:d, part].sum(axis=1) / (whole * stretch))
    return batch_rhat([_chain_variance(r, d) for r in used], halves)


def _chain_variance(record, d):
    """Variance along one chain's path, first copy, (d,)."""
    return record.integrals.second[:d] / record.length - (record.integrals.first[:d] / record.length) ** 2


# ---------------------------------------------------------------------------------------------------------------
# Functions of a position, of many positions


SINGLES = 200  #: columns for which a function of many is called alone, at least


def apply(f, x):
    """f of each column of x (d, M): an array (..., M).

    f is called once for all columns if that gives the right shape and the same values as a call for every third column,
    and as calls for single ones, of which some are compared: `SINGLES` in order, and those of the smallest and the
    largest values and coordinates. This is tried first with few columns, as f may be written for single points only.
    """
    x = np.ascontiguousarray(x)
    m = x.shape[1]
    single = np.asarray(f(x[:, 0].copy()), dtype=float)
    if m > 2 * SINGLES and _together(f, x[:, :11], single.shape) is not None:
        values = _together(f, x, single.shape)
        if values is not None:
            return values
    out = np.empty((*single.shape, m))
    out[..., 0] = single
    for k in range(1, m):
        out[..., k] = f(x[:, k].copy())
    return out


def _together(f, x, shape):
    """f of all columns of x in one call, or None if that is not f of each column."""
    m = x.shape[1]
    try:
        with np.errstate(all="ignore"), silenced():
            values = np.asarray(f(x.copy()), dtype=float)
            parts = [np.asarray(f(x[:, k::3].copy()), dtype=float) for k in range(3)]
    except Exception:  # noqa: BLE001 - whatever a function of one point does with many
        return None
    if values.shape != (*shape, m):
        return None
    # A norm or a maximum of all columns is another of a part of them, wherever it is used.
    if not all(
        part.shape == values[..., k::3].shape and _same(part, values[..., k::3]) for k, part in enumerate(parts)
    ):
        return None
    # Which of the coordinates is the largest may be compared with the maximum of all columns.
    checks = {*np.linspace(0, m - 1, min(m, SINGLES)).astype(int)}
    for rows in (values.reshape(-1, m)[:8], x[:16], (x[:16] - x.mean(axis=0))):
        checks |= {*np.argmin(rows, axis=1), *np.argmax(rows, axis=1)}
    return values if all(_same(values[..., k], f(x[:, k].copy())) for k in sorted(checks)) else None


def _same(a, b):
    return np.allclose(a, np.asarray(b, dtype=float), rtol=1e-10, atol=1e-12, equal_nan=True)
