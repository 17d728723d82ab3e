"""Posterior inclusion of coordinates under spike-and-slab priors: exact fractions of time along sticky paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdmp.diagnostics.averages import with_path


def inclusion(run: Any) -> np.ndarray:
    """Posterior inclusion probabilities: the fraction of time for which each coordinate moves, and is not 0.

    Exact along the path, whatever is stored of it, chains pooled in proportion to their lengths.

    Parameters
    ----------
    run : Run
        Of `pdmp.Sticky`.

    Returns
    -------
    ndarray, shape (d,)
        1 for coordinates that never stick.

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
    return sum(r.accumulated["included"] for r in records) / sum(r.length for r in records)


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
