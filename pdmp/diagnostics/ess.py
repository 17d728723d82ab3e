"""Effective sample sizes and R-hat, from draws or from batch means."""

from __future__ import annotations

import numpy as np


def as_draws(draws):
    """Draws as a float array (chains, n, d); (n, d) is one chain."""
    array = np.asarray(draws, dtype=float)
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[1] < 4 or array.shape[2] == 0:
        raise ValueError(f"`draws` must have shape (chains, n, d) or (n, d) with n at least 4, got {np.shape(draws)}.")
    return array


def _each(function, draws, **options):
    from arviz_stats.base import array_stats

    with np.errstate(all="ignore"):
        return np.array(
            [
                float(getattr(array_stats, function)(draws[:, :, j], chain_axis=0, draw_axis=1, **options))
                for j in range(draws.shape[2])
            ]
        )


def ess(draws, method="mean"):
    """Effective sample size of each coordinate.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d), or pdmp.Run
        Equally spaced draws. A run is asked for as many draws as it had events, at most 4,000 for each chain.
    method : str, default "mean"
        "mean": how many independent draws have an average as precise as these; or any other method of
        ``arviz_stats``: "bulk", "tail", "sd", "median", ….

    Returns
    -------
    ndarray, shape (d,)
        Over all chains together; NaN for a coordinate that never moved.
    """
    if hasattr(draws, "trajectories"):
        return draws.ess(method)
    return draws_ess(as_draws(draws), method)


def draws_ess(draws, method):
    """`ess` of an array (chains, n, d)."""
    return _each("ess", draws, method=method)


def rhat(draws, method="rank"):
    """R-hat of each coordinate, (d,), from equally spaced draws of shape (chains, n, d) or a run.

    `method` is any of ``arviz_stats``; chains are split in halves, so that a single one has an R-hat as well.
    """
    if hasattr(draws, "trajectories"):
        return draws.rhat(method)
    return draws_rhat(as_draws(draws), method)


def draws_rhat(draws, method):
    """`rhat` of an array (chains, n, d)."""
    if len(draws) == 1:  # arviz_stats splits chains, but wants two of them
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    return _each("rhat", draws, method=method)


def batch_ess(variance, length, batches, stretch, means):
    """Effective sample size for the mean, from the means over consecutive stretches of a path's time.

    Parameters
    ----------
    variance : ndarray, shape (d,)
        Of the path.
    length : list of float
        Time that each chain ran.
    batches : list of ndarray, shape (d, n)
        Integrals over each chain's stretches.
    stretch : list of float
        Length of each chain's stretches.
    means : list of ndarray, shape (d,)
        Of each chain.

    Returns
    -------
    ndarray, shape (d,)

    Notes
    -----
    A stretch's mean has variance σ² / stretch, σ² the asymptotic variance of the time average, once it is much longer
    than the correlations; T of time are then worth T variance / σ² independent draws.
    """
    total = np.zeros(len(variance))
    for time, sums, each in zip(length, batches, stretch, strict=True):
        if time <= 0.0 or each <= 0.0:
            continue
        whole = min(int(time / each * (1.0 + 1e-12)), sums.shape[1])
        if whole < 4:
            return np.full(len(variance), np.nan)
        asymptotic = each * np.var(sums[:, :whole] / each, axis=1, ddof=1)
        with np.errstate(all="ignore"):
            total += time * variance / asymptotic
    if len(means) > 1:  # chains that disagree by more than their own errors explain
        with np.errstate(all="ignore"):
            total = np.minimum(total, np.maximum(3.0 * variance / np.var(means, axis=0, ddof=1), 1.0) * len(means))
    return total


def batch_rhat(variances, halves):
    """R-hat from the variances of the chains' paths (chains, d), and the means of their halves (2 chains, d)."""
    within = np.mean(variances, axis=0)
    with np.errstate(all="ignore"):
        return np.sqrt(1.0 + np.var(halves, axis=0, ddof=1) / within)
