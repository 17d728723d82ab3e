"""Posterior inclusion of coordinates under spike-and-slab priors: exact fractions of time along sticky paths.

Of a coordinate that rested K times the share of time says no more than K does: K + 1 independent rests of a mean length
m, in a time T, have the error √(2 (K + 1)) m / T. How long a rest lasts on average is known, as a coordinate
leaves at a known rate, so that a few that were short by chance are not taken for all there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdmp.diagnostics import monte_carlo_error
from pdmp.diagnostics.averages import diagnostic_draws, with_path
from pdmp.diagnostics.estimates import Estimate

MOST = 0.5  #: the largest error of a probability that is said
VELOCITIES = 100  #: draws of the velocity, for its mean size


def inclusion(run: Any, errors: bool = False) -> np.ndarray | Estimate:
    """Posterior inclusion probabilities: the fraction of time for which each coordinate moves, and is not 0.

    Exact along the path, whatever is stored of it, chains pooled in proportion to their lengths.

    Parameters
    ----------
    run : Run
        Of `pdmp.Sticky`.
    errors : bool, default False
        With Monte Carlo errors. They are no smaller than the number of changes between 0 and not 0 allows, and NaN for
        a coordinate that never changed and for ``store="moments"``.

    Returns
    -------
    ndarray, shape (d,), or Estimate
        1 for coordinates that never stick. With `errors` an `Estimate` of two arrays (d,).

    Raises
    ------
    ValueError
        For a run of another process, or without a path after the warm-up.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 0.0, 2.1]
    >>> model = pdmp.models.SpikeAndSlabLinearRegression(X, y)
    >>> run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), events=2_000, seed=1)
    >>> pdmp.diagnostics.inclusion(run).shape
    (2,)
    """
    records = _records(run)
    found = sum(r.accumulated["included"] for r in records) / sum(r.length for r in records)
    return Estimate(found, changes(run, found)[0]) if errors else found


def changes(run: Any, found: np.ndarray, draws: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Monte Carlo errors (d,) of inclusion probabilities, and how often each coordinate rested in each chain.

    Of equally spaced draws (chains, n, d), if they have been taken; else they are.
    """
    draws = diagnostic_draws(run) if draws is None and run.store != "moments" else draws
    if draws is None:
        return np.full(run.dim, np.nan), np.zeros((run.chains, run.dim), int)
    rest, n = draws == 0.0, draws.shape[1]
    rests = rest[:, 0] + np.sum(rest[:, 1:] & ~rest[:, :-1], axis=1)
    total, length = rests.sum(axis=0), sum(r.length for r in run.records)
    total = np.where((total == 0) & (found > 0.0) & (found < 1.0), 1, total)  # shorter than between two draws
    with np.errstate(all="ignore"):
        error = monte_carlo_error.standard_error([1.0 * one for one in rest], [1.0] * len(rest), [float(n)] * len(rest))
        mean = np.fmax((1.0 - found) * length / total, mean_rest(run, found))
        error = np.fmin(np.fmax(error, found * np.sqrt(2.0 * (total + 1.0)) * mean / length), MOST)
    return np.where((found > 0.0) & (found < 1.0), error, np.nan), rests


def mean_rest(run, found):
    """For how long coordinates rest on average, (d,): 1 / (κ E|v|), as velocities come to 0 in proportion to |v|.

    NaN where that is unknown: of a loaded run, and where groups, or coordinates as groups of one, jump from 0.
    """
    process = run.process
    if isinstance(process, str) or not hasattr(process, "kappa") or process.has_groups:
        return np.full(len(found), np.nan)
    rng, ratio = np.random.default_rng(0), 1.0
    speed = np.mean([np.abs(process.inner.velocity(np.zeros(run.dim), rng)) for _ in range(VELOCITIES)], axis=0)
    if process.shape > 0.0:
        others = np.sum(found[process.sticking]) - np.where(process.kappa > 0.0, found, 0.0)
        ratio = (process.shape + others) / np.maximum(process.other_shape + process.units - 1 - others, 1e-9)
    rate = process.kappa * speed * ratio
    return np.divide(1.0, rate, out=np.full(run.dim, np.nan), where=rate > 0.0)


def sparsity(run: Any) -> dict[tuple[int, ...], float]:
    """Posterior probabilities of the models: of each set of coordinates that is included while the others are 0.

    Parameters
    ----------
    run : Run
        Of a sticky process. With at most ten coordinates that stick these are accumulated along the path; with more
        they are read from the skeleton.

    Returns
    -------
    dict of tuple of int to float
        For each model that was visited, its coordinates among those that can be 0, and its probability; the most
        probable model first.

    Raises
    ------
    ValueError
        As `inclusion`; and for more than ten coordinates, unless the skeleton was stored.

    Examples
    --------
    >>> import pdmp
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [2.0, 0.0, 2.1]
    >>> model = pdmp.models.SpikeAndSlabLinearRegression(X, y)
    >>> run = pdmp.sample(pdmp.Sticky(pdmp.ZigZag(model)), events=2_000, seed=1)
    >>> most_probable = next(iter(pdmp.diagnostics.sparsity(run)))
    >>> most_probable
    (0,)
    """
    records = _records(run)
    sticking, length = records[0].accumulated["sticking"], sum(r.length for r in records)
    unit = records[0].accumulated.get("unit", np.arange(len(sticking)))  # which coordinates leave together
    found = {}
    if len(records[0].accumulated["models"]):
        total = sum(r.accumulated["models"] for r in records)
        for k in np.flatnonzero(total):
            found[tuple(int(j) for b, j in zip(unit, sticking, strict=True) if k >> int(b) & 1)] = float(total[k])
    else:
        for path in run.trajectories:
            if path.end <= path.warmup:
                continue
            for h, x, v in path.segments():
                rows, place = np.unique((x[:, sticking] != 0.0) | (v[:, sticking] != 0.0), axis=0, return_inverse=True)
                spent = np.bincount(place.ravel(), weights=h, minlength=len(rows))
                for row, time in zip(rows, spent, strict=True):
                    name = tuple(sticking[row].tolist())
                    found[name] = found.get(name, 0.0) + float(time)
    return {name: time / length for name, time in sorted(found.items(), key=lambda item: -item[1])}


def _records(run):
    records = with_path(run)
    if not all("included" in r.accumulated for r in records):
        raise ValueError(
            f"inclusion is for runs of sticky processes, such as pdmp.Sticky; this is one of "
            f"{run.info['sampler']}, whose coordinates are never exactly 0."
        )
    return records
