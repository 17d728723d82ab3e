r"""Monte Carlo errors of time averages, from the path's exact averages over consecutive stretches of time.

The time average of f over a long time T has the variance σ² / T, σ² = 2 ∫₀^∞ cov(f(x(0)), f(x(t))) dt the asymptotic
variance. Averages over stretches of equal length are integrals of the path, not means of draws from it: nothing is
discretised, and a state of a fixed-step chain counts for as long as it is held. Two estimates of
σ² are made from them:

- "batch": each √n consecutive stretches form a batch; σ² is the variance of the batches' averages, times their length;
- "spectral": an autoregression (Yule & Walker, its order by Akaike's criterion) is fitted to the series, whose spectral
  density at frequency zero is σ² over the length of a stretch. It is the default: it needs no batches longer than the
  correlation time, and is accurate for negative correlations too.

References
----------
Geyer (1992), Practical Markov chain Monte Carlo, Stat. Sci. 7; Flegal & Jones (2010), Batch means and spectral variance
estimators in Markov chain Monte Carlo, Ann. Stat. 38; Heidelberger & Welch (1981), A spectral method for confidence
interval generation and run length control in simulations, CACM 24; Thompson (2010), A comparison of methods for
computing autocorrelation time, arXiv:1011.0175 (autoregressions).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.estimates import Estimate
from pdmp.native.arguments import refuse_unreal

METHODS = ("spectral", "batch")
LEAST_STRETCHES = 8  #: with fewer the variance is NaN


def check_method(method):
    """Raise a `ValueError` for an unknown method."""
    if method not in METHODS:
        raise ValueError(f'`method` must be "spectral" or "batch", got {method!r}.')
    return method


def asymptotic_variance(averages: ArrayLike, stretch: float, method: str = "spectral") -> np.ndarray:
    """Asymptotic variance of a time average.

    Parameters
    ----------
    averages : array_like, shape (n, ...)
        Averages over consecutive stretches of time.
    stretch : float
        Their length, in process time.
    method : {"spectral", "batch"}
        See the module's text.

    Returns
    -------
    ndarray, shape (...)
        σ², in units of f² times time; NaN for fewer than 8 stretches.

    Raises
    ------
    ValueError
        If the averages are not finite, or the method is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> averages = np.random.default_rng(0).standard_normal((4_000, 1))
    >>> bool(0.5 < pdmp.diagnostics.asymptotic_variance(averages, stretch=1.0)[0] < 2.0)
    True
    """
    check_method(method)
    refuse_unreal("averages", averages)
    series = np.asarray(averages, dtype=float)
    n, shape = len(series), series.shape[1:]
    if n < LEAST_STRETCHES:
        return np.full(shape, np.nan)
    series = series.reshape(n, -1)
    if not np.all(np.isfinite(series)):
        raise ValueError("`averages` must be finite: the function is not, somewhere along the path.")
    long = _batch(series) if method == "batch" else _spectral(series)
    return (stretch * long).reshape(shape)


def _batch(series):
    """n Var of the mean of a series (n, m), from √n batches."""
    size = int(np.sqrt(len(series)))
    count = len(series) // size
    means = series[len(series) - count * size :].reshape(count, size, -1).mean(axis=1)
    return size * means.var(axis=0, ddof=1)


def _spectral(series):
    """n Var of the mean of a series (n, m), from an autoregression of each column (the Levinson-Durbin recursion)."""
    n, m = series.shape
    series = series - series.mean(axis=0)
    orders = min(int(10.0 * np.log10(n)), n // 4)
    covariance = np.array([np.einsum("ij,ij->j", series[: n - k], series[k:]) / n for k in range(orders + 1)])
    moved = covariance[0] > 0.0
    noise = np.where(moved, covariance[0], 1.0)
    covariance = np.where(moved, covariance, 0.0)
    weights, best = np.zeros((orders, m)), n * np.log(noise)
    found = noise * n / (n - 1.0)
    for p in range(orders):
        reflection = covariance[p + 1] - np.einsum("kj,kj->j", weights[:p], covariance[p:0:-1])
        reflection = reflection / noise
        weights[:p] = weights[:p] - reflection * weights[:p][::-1]
        weights[p] = reflection
        noise = noise * np.maximum(1.0 - reflection**2, 1e-12)
        criterion = n * np.log(noise) + 2.0 * (p + 1)
        better = criterion < best
        best = np.where(better, criterion, best)
        # The innovations' variance, corrected for the p + 1 fitted numbers, the weights and a mean.
        density = noise * n / (n - p - 2) / np.maximum(1.0 - weights[: p + 1].sum(axis=0), 1e-12) ** 2
        found = np.where(better, density, found)
    return np.where(moved, found, 0.0)


def standard_error(series, stretches, lengths, method="spectral", together=None):
    """Standard error of the time average, all chains pooled, from averages over stretches of each chain, (n, ...).

    It is √(σ² / T) from the variation within chains. If the chains' averages differ by more than this explains, it is
    the standard error of the chains' averages: by an F test with 16 degrees of freedom for the estimate of each σ², in
    which the average of a chain of length L has the variance σ² / L, at 0.001, or at 0.01 for all averages `together`
    where they are more than ten. (At 0.001 for each of 10,000 effects, ten of them would have six times too few
    effective draws in every run.)
    """
    from scipy import special

    weights = np.asarray(lengths, dtype=float) / np.sum(lengths)
    series = [np.asarray(one, dtype=float) for one in series]
    if len({one.shape for one in series}) == 1:  # all chains at once, which takes less time
        long = list(asymptotic_variance(np.stack(series, axis=1), 1.0, method))
    else:
        long = [asymptotic_variance(one, 1.0, method) for one in series]
    within = sum(
        w * w * (stretch * one) / length
        for w, one, stretch, length in zip(weights, long, stretches, lengths, strict=True)
    )
    chains = len(series)
    if chains > 1:
        together = int(np.prod(series[0].shape[1:])) if together is None else together
        level = min(1e-3, 1e-2 / max(together, 1))
        means = np.array([np.mean(one, axis=0) for one in series])
        apart = np.tensordot(weights, (means - np.tensordot(weights, means, 1)) ** 2, 1)
        squares = np.sum(weights**2)  # 1 / chains, of equal lengths
        with np.errstate(all="ignore"):
            differ = apart / (chains - 1) > special.fdtri(chains - 1, 16 / squares, 1.0 - level) * within
        within = np.where(differ, apart * squares / (1.0 - squares), within)
    return np.sqrt(within)


def estimate(value, series, stretches, lengths, method="spectral"):
    """A time average with its standard error: an `Estimate` of numbers or of arrays."""
    error = standard_error(series, stretches, lengths, method)
    return Estimate(value, float(error) if np.ndim(error) == 0 else error)


def efficiency(run: Any, method: str = "spectral", ess: np.ndarray | None = None) -> dict[str, float]:
    """Effective sample sizes of a run's means, and the smallest of them per unit of each cost.

    Parameters
    ----------
    run : pdmp.Run
    method : {"spectral", "batch"}, or one of `pdmp.diagnostics.ess`
    ess : ndarray, shape (d,), optional
        Effective sample sizes, if they have been computed; else they are.

    Returns
    -------
    dict of str to float
        ``ess_min`` and ``ess_median``, the smallest and the median over the coordinates; and the smallest
        ``per_second`` (of computing, all chains added up), ``per_event``, ``per_data_pass`` and ``per_gradient``. Costs
        include the warm-up. A gradient is one evaluation from all data or from one mini-batch; without data it is an
        evaluation of the rate, or a step. The entry is NaN where the cost is zero.

    Examples
    --------
    >>> import pdmp
    >>> target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    >>> run = pdmp.sample(pdmp.ZigZag(target), events=2_000, seed=1)
    >>> sorted(pdmp.diagnostics.efficiency(run))
    ['ess_median', 'ess_min', 'per_data_pass', 'per_event', 'per_gradient', 'per_second']
    """
    ess = run.ess(method) if ess is None else ess
    moved = np.extract(np.isfinite(ess), ess)
    least, median = (float(moved.min()), float(np.median(moved))) if len(moved) else (np.nan, np.nan)
    stats = run.stats
    provider = getattr(run.process, "provider", None)
    size = getattr(provider, "size", 0)
    if stats["data_terms"] > 0:
        gradients = stats["data_terms"] / size if size else stats["data_passes"]
    else:
        gradients = stats["thinned"] + stats["horizons"] or stats["total_events"]
    costs = {
        "per_second": stats["seconds"],
        "per_event": stats["total_events"],
        "per_data_pass": stats["data_passes"],
        "per_gradient": gradients,
    }
    found = {name: least / cost if cost > 0 else np.nan for name, cost in costs.items()}
    return {"ess_min": least, "ess_median": median, **found}
