"""Effective sample sizes and R-hat, from draws or from batch means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import warn
from pdmp.native.arguments import one_of, refuse_unreal
from pdmp.native.representation import short

COLUMNS = 500_000  #: most numbers that are ranked at a time, to limit the memory


def as_draws(draws):
    """Draws as a float array (chains, n, d); (n, d) is one chain."""
    refuse_unreal("draws", draws)
    try:
        array = np.asarray(draws, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"`draws` must be an array of numbers, got {short(draws)}.") from None
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[1] < 4 or array.shape[2] == 0:
        raise ValueError(f"`draws` must have shape (chains, n, d) or (n, d) with n at least 4, got {np.shape(draws)}.")
    bad = ~np.isfinite(array).all(axis=2)
    if bad.any():
        raise ValueError(f"`draws` must be finite; {int(bad.sum())} of {bad.size} are not.")
    return array


def _constant(draws):
    return np.ptp(draws, axis=(0, 1)) == 0.0


def _warn_of_constants(draws):
    constant = np.flatnonzero(_constant(draws))
    if len(constant):
        warn(f"coordinates {constant.tolist()} of `draws` are constant: they never moved.")


#: What `method` may be: of effective sample sizes and of R-hat.
ESS_METHODS = ("mean", "bulk", "tail", "sd", "median", "mad", "z_scale", "folded", "identity")
TAILS = (0.05, 0.95)  #: whose quantiles "tail" is of, the smaller of the two
RHAT_METHODS = ("rank", "split", "folded", "z_scale", "identity")


def _each(function, draws, **options):
    from arviz_stats.base import array_stats

    with np.errstate(all="ignore"):
        return np.array(
            [
                float(getattr(array_stats, function)(draws[:, :, j], chain_axis=0, draw_axis=1, **options))
                for j in range(draws.shape[2])
            ]
        )


def ess(draws: ArrayLike | Any, method: str = "mean") -> np.ndarray:
    """Effective sample size of each coordinate.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d), or pdmp.Run
        Equally spaced draws. Of a run, as many draws as it had events are taken, at most 4,000 of each chain.
    method : str, default "mean"
        "mean": how many independent draws have an average as precise as these; or any other method of
        ``arviz_stats``: "bulk", "tail", "sd", "median", ….

    Returns
    -------
    ndarray, shape (d,)
        Over all chains together; NaN for a coordinate that never moved.

    Raises
    ------
    ValueError
        For draws of another shape, fewer than four, or not finite.

    Warns
    -----
    UserWarning
        For coordinates that never moved.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import ess
    >>> draws = np.random.default_rng(1).standard_normal((4, 1_000, 2))
    >>> found = ess(draws)
    >>> found.shape, bool(np.all(found > 3_000))
    ((2,), True)
    """
    if hasattr(draws, "trajectories"):
        return draws.ess(method)
    draws = as_draws(draws)
    _warn_of_constants(draws)
    return draws_ess(draws, method)


def draws_ess(draws, method):
    """`ess` of an array (chains, n, d)."""
    one_of("method", method, ESS_METHODS)
    options: dict[str, Any] = {"method": method} | ({"prob": TAILS} if method == "tail" else {})
    return np.where(_constant(draws), np.nan, _each("ess", draws, **options))


def rhat(draws: ArrayLike | Any, method: str = "rank") -> np.ndarray:
    """R-hat of each coordinate, about 1 where the chains agree.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d), or pdmp.Run
        Equally spaced draws. Chains are split in halves, so that a single one has an R-hat as well.
    method : str, default "rank"
        Any of ``arviz_stats``.

    Returns
    -------
    ndarray, shape (d,)
        NaN for a coordinate that never moved.

    Raises
    ------
    ValueError
        For draws of another shape, fewer than four, or not finite.

    Warns
    -----
    UserWarning
        For coordinates that never moved.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import rhat
    >>> draws = np.random.default_rng(1).standard_normal((2, 500, 1))
    >>> draws[1] += 1.0  # one of the two chains is elsewhere
    >>> bool(rhat(draws)[0] > 1.1)
    True
    """
    if hasattr(draws, "trajectories"):
        return draws.rhat(method)
    draws = as_draws(draws)
    _warn_of_constants(draws)
    return draws_rhat(draws, method)


def draws_rhat(draws, method):
    """`rhat` of an array (chains, n, d)."""
    one_of("method", method, RHAT_METHODS)
    if method == "rank":
        return _rank_rhat(draws)
    if len(draws) == 1:  # arviz_stats splits chains, but takes no single one
        half = draws.shape[1] // 2
        draws = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    return _each("rhat", draws, method=method)


def _rank_rhat(draws):
    """Rank-normalised split R-hat, the larger of that of the draws and of their distances from the median, (d,).

    It equals ArviZ's to rounding, but handles many coordinates at a time: 100,000 of them take seconds, not minutes.
    Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and localization: an improved
    R-hat.
    """
    from scipy import special

    half = draws.shape[1] // 2
    halves = draws[:, :half], draws[:, draws.shape[1] - half :]
    chains, out = 2 * len(draws), np.empty(draws.shape[2])
    count = chains * half
    width = max(COLUMNS // count, 1)
    scores = special.ndtri((0.5 * np.arange(2 * count + 1) - 0.375) / (count + 0.25))  # of ranks 0, 1/2, 1, …
    for begin in range(0, len(out), width):
        x = np.concatenate([part[:, :, begin : begin + width] for part in halves])
        x = np.ascontiguousarray(np.moveaxis(x, 2, 0).reshape(-1, count))
        bad, found = ~np.isfinite(x).all(axis=1), []
        x[bad] = 0.0
        for ranks in _ranks_and_folded(x):
            z = scores[ranks].reshape(-1, chains, half)
            with np.errstate(all="ignore"):
                within = z.var(axis=2, ddof=1).mean(axis=1)
                between = z.mean(axis=2).var(axis=1, ddof=1)
                found.append(np.sqrt((half - 1.0) / half + between / within))
        found = np.maximum(*found)
        out[begin : begin + width] = np.where(bad | (np.ptp(x, axis=1) == 0.0), np.nan, found)
    return out


def _ranks_and_folded(x):
    """`_twice_ranks` of each row of x (m, n), and of the distances from its median."""
    order = np.argsort(x, axis=1)
    ordered = np.take_along_axis(x, order, axis=1)
    yield _twice_ranks(order, ordered)
    count = x.shape[1]
    middle = 0.5 * (ordered[:, (count - 1) // 2] + ordered[:, count // 2])
    # Of sorted numbers the distances fall and then rise: to a sort that merges runs that is hardly any work.
    distances = np.abs(ordered - middle[:, None])
    again = np.argsort(distances, axis=1, kind="stable")
    yield _twice_ranks(np.take_along_axis(order, again, axis=1), np.take_along_axis(distances, again, axis=1))


def _twice_ranks(order, ordered):
    """Twice the ranks 1 … n within each row, the mean rank for equal values; from its order, and in that order."""
    count = order.shape[1]
    twice = np.tile(2 * np.arange(1, count + 1), (len(order), 1))
    row, place = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    if len(row):
        begins = np.flatnonzero(np.concatenate([[True], (np.diff(row) > 0) | (np.diff(place) > 1)]))
        sizes = np.diff(np.append(begins, len(row))) + 1
        mean = 2 * place[begins] + sizes + 1  # of the ranks place + 1 … place + size, twice
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        twice[np.repeat(row[begins], sizes), np.repeat(place[begins], sizes) + within] = np.repeat(mean, sizes)
    ranks = np.empty_like(twice)
    np.put_along_axis(ranks, order, twice, axis=1)
    return ranks


def batch_ess(variance, length, batches, stretch, means):
    """Effective sample size for the mean, from integrals over consecutive stretches of a path's time, (d, n) by chain.

    A stretch's mean has variance σ² / stretch, σ² the asymptotic variance of the time average, once it is much longer
    than the correlations. The average over chains of lengths Tᵢ has variance Σ Tᵢ σᵢ² / T², T = Σ Tᵢ, and is worth
    T² variance / Σ Tᵢ σᵢ² independent draws.
    """
    whole_time, spread = 0.0, np.zeros(len(variance))
    for time, sums, each in zip(length, batches, stretch, strict=True):
        if time <= 0.0 or each <= 0.0:
            continue
        whole = min(int(time / each * (1.0 + 1e-12)), sums.shape[1])
        if whole < 4:
            return np.full(len(variance), np.nan)
        spread += time * each * np.var(sums[:, :whole] / each, axis=1, ddof=1)
        whole_time += time
    with np.errstate(all="ignore"):
        total = whole_time**2 * variance / spread
    if len(means) > 1:  # the chains' means may differ by more than their own errors explain
        with np.errstate(all="ignore"):
            total = np.minimum(total, np.maximum(3.0 * variance / np.var(means, axis=0, ddof=1), 1.0) * len(means))
    return total


def batch_rhat(variances, halves):
    """R-hat from the variances of the chains' paths (chains, d), and the means of their halves (2 chains, d)."""
    within = np.mean(variances, axis=0)
    with np.errstate(all="ignore"):
        return np.sqrt(1.0 + np.var(halves, axis=0, ddof=1) / within)
