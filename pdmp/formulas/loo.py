r"""Leave-one-out cross-validation of a regression, of all rows or of some of them.

πᵢ = log p(yᵢ | y without i) is estimated by Pareto-smoothed importance sampling (Vehtari, Gelman & Gabry, 2017). Where
rows are many, it is for m of the N rows, drawn without replacement, and the sum by the difference estimator with π̃ᵢ =
log p(yᵢ | posterior mean) of all rows (Magnusson, Andersen, Jonasson & Vehtari, 2020), the mean in the coordinates of
which rows are computed, whichever were sampled: with eᵢ = πᵢ - π̃ᵢ,

    elpd = Σ π̃ᵢ + N/m Σₛ eⱼ,                    v(elpd) = N² (1 - m/N) var(eₛ) / m,
    σ² = Σ π̃ᵢ² + N/m Σₛ (πⱼ² - π̃ⱼ²) - (elpd² - v(elpd)) / N.

All three are unbiased over the choice of the rows, whatever the point of π̃: for Σ πᵢ, for the estimator's variance, and
for N var(π), the squared standard error of the sum if all rows were taken.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from pdmp.diagnostics.effective_size import draws_ess
from pdmp.engine.export import LEAST_DRAWS, NUMBERS, choose_draws
from pdmp.errors import silenced, warn
from pdmp.formulas.pareto_smoothing import loo_densities
from pdmp.native.arguments import count

if TYPE_CHECKING:
    from pdmp.formulas.fit import Fit

ROWS = 4_000  #: that are taken of a table of which not all are
FEWEST = 25  #: draws of which the law of the largest weights can be fitted
AT_ONCE = 2_000_000  #: log-likelihoods in memory at a time


class Total(NamedTuple):
    """An estimate of a sum over all rows."""

    value: float
    variance: float  #: that comes of having taken some of the rows
    spread: float  #: N times the variance of the terms: the squared error of a sum over N rows that were drawn

    @property
    def errors(self) -> tuple[float, float]:
        """The standard error, and what is of the choice of rows alone."""
        return math.sqrt(max(self.spread, 0.0) + self.variance), math.sqrt(self.variance)


def difference_estimate(values: np.ndarray, near: np.ndarray | None, rows: np.ndarray, n: int) -> Total:
    """The sum of n terms, of which those of `rows` are known, (m,), and all approximately, `near` (n,).

    `near` is None where all are known.
    """
    m = len(values)
    if near is None:
        return Total(float(values.sum()), 0.0, float(n * np.var(values)))
    here = near[rows]
    total = float(near.sum() + n / m * np.sum(values - here))
    variance = n**2 * (1.0 - m / n) * float(np.var(values - here, ddof=1)) / m
    squares = float(np.sum(near**2) + n / m * np.sum(values**2 - here**2))
    return Total(total, variance, squares - (total**2 - variance) / n)


class Loo:
    """Leave-one-out cross-validation; it prints as a small table.

    Parameters
    ----------
    name : str
        Of the fit.
    p_i : ndarray, shape (m,)
        p_loo of the rows.
    rows : ndarray of int, shape (m,)
    near : ndarray, shape (N,), optional
        log p(yᵢ | posterior mean) of all rows, where m < N.
    n : int
        N.

    Attributes
    ----------
    elpd_loo : float
        Expected log predictive density for new data, Σ log p(yᵢ | y without i).
    se : float
        Its standard error, of the choice of rows included.
    subsampling_se : float
        What is of that choice alone; 0 where all rows were taken.
    p_loo : float
        Effective number of parameters.
    loo_i : ndarray, shape (m,)
        log p(yᵢ | y without i) of the rows that were taken, whose places are `rows`.
    pareto_k : ndarray, shape (m,)
        Of these; above `good_k` an estimate is not reliable.
    n_data_points, n_samples : int

    Examples
    --------
    >>> found = fit.loo()  # doctest: +SKIP
    >>> found.elpd_loo, found.se  # doctest: +SKIP
    """

    def __init__(
        self,
        name: str,
        loo_i: np.ndarray,
        p_i: np.ndarray,
        pareto_k: np.ndarray,
        rows: np.ndarray,
        near: np.ndarray | None,
        n: int,
        n_samples: int,
    ) -> None:
        self.name, self.loo_i, self.pareto_k, self.rows, self.near = name, loo_i, pareto_k, rows, near
        self.n_data_points, self.n_samples = n, n_samples
        total = difference_estimate(loo_i, near, rows, n)
        self.elpd_loo, (self.se, self.subsampling_se) = total.value, total.errors
        self.p_loo = float(n * np.mean(p_i))
        self.good_k = min(1.0 - 1.0 / math.log10(n_samples), 0.7) if n_samples > 1 else 0.7

    @property
    def bad(self) -> int:
        """How many rows have a Pareto k above `good_k`."""
        return int(np.sum(~(self.pareto_k <= self.good_k)))

    def __repr__(self) -> str:
        lines = [
            f"Leave-one-out cross-validation of {self.n_data_points:,} rows, {self.n_samples:,} draws: {self.name}",
            f"elpd_loo  {self.elpd_loo:12.2f}   se {self.se:.2f}",
            f"p_loo     {self.p_loo:12.2f}",
        ]
        if self.near is not None:
            lines.append(
                f"estimated from {len(self.rows):,} rows drawn at random, and the densities of all rows at the "
                f"posterior mean: se² contains {self.subsampling_se:.2g}² for the choice of rows"
            )
        lines.append(
            f"Pareto k: {len(self.rows) - self.bad:,} of {len(self.rows):,} are at most {self.good_k:.2f}, the largest "
            f"is {np.max(self.pareto_k):.2f}"
        )
        return "\n".join(lines)


class LooDifference:
    """What `Fit.compare` returns: how much better one fit predicts; it prints as a small table.

    Parameters
    ----------
    one, other : Loo
        Of the same rows.

    Attributes
    ----------
    elpd_difference : float
        elpd of the first less that of the second.
    se : float
        Its standard error, from the differences of single rows, of the choice of rows included.
    subsampling_se : float
        The part of it that comes from that choice alone.

    Examples
    --------
    >>> found = fit.compare(another)  # doctest: +SKIP
    >>> found.elpd_difference, found.se  # doctest: +SKIP
    """

    def __init__(self, one: Loo, other: Loo) -> None:
        self.one, self.other = one, other
        near = None if one.near is None or other.near is None else one.near - other.near
        total = difference_estimate(one.loo_i - other.loo_i, near, one.rows, one.n_data_points)
        self.elpd_difference, (self.se, self.subsampling_se) = total.value, total.errors

    def __repr__(self) -> str:
        width = max(len(self.one.name), len(self.other.name), len("difference"))
        parts = [(loo.name, loo.elpd_loo, loo.se) for loo in (self.one, self.other)]
        parts.append(("difference", self.elpd_difference, self.se))
        lines = [f"{'':{width}}  {'elpd_loo':>12}  {'se':>9}"]
        lines += [f"{name:{width}}  {value:12.2f}  {se:9.2f}" for name, value, se in parts]
        if self.one.near is not None:
            lines.append(
                f"estimated from {len(self.one.rows):,} of {self.one.n_data_points:,} rows drawn at random: the se² of "
                f"the difference contains {self.subsampling_se:.2g}² for the choice of rows"
            )
        return "\n".join(lines)


def most_draws(fit: Fit, rows: int) -> int:
    """Draws of each chain whose log-likelihoods of so many rows are at most `NUMBERS`."""
    return NUMBERS // (rows * fit.run.chains)


def choose_rows(fit: Fit, rows: int | None, seed: int) -> np.ndarray | None:
    """The rows that are taken, in order; None for all."""
    n = fit.n_rows
    if rows is None and most_draws(fit, n) >= LEAST_DRAWS:
        return None
    m = min(ROWS, n) if rows is None else count("rows", rows)
    if m > n:
        raise ValueError(f"`rows` must be at most the {n:,} rows of the fit, got {m:,}.")
    if m < 2:
        raise ValueError(f"`rows` must be at least 2, got {m}.")
    return None if m == n else np.sort(np.random.default_rng(seed).choice(n, m, replace=False))


def loo(self: Fit, *, rows: int | None = None, draws: int | None = None, seed: int = 0) -> Loo:
    """Leave-one-out cross-validation by Pareto-smoothed importance sampling.

    Of all rows, as long as 100 draws of each chain have at most 20 million log-likelihoods: with four chains up to
    50,000 rows. Of more rows 4,000 are drawn, and the sum over all is estimated from these and from the densities
    of all rows at the posterior mean; what that adds to the standard error is in it, and said.

    Parameters
    ----------
    rows : int, optional
        How many rows are drawn; as above when omitted.
    draws : int, optional
        Of each chain; as many as `to_arviz` takes when omitted, or fewer, so that there are at most 20 million
        log-likelihoods.
    seed : int, default 0
        Of the choice of rows, which is the same for two fits of as many rows.

    Returns
    -------
    Loo
        With ``elpd_loo``, ``se``, ``subsampling_se``, ``p_loo``, ``loo_i`` and ``pareto_k``; it prints as a table.

    Warns
    -----
    UserWarning
        Where a Pareto k is too large.

    Raises
    ------
    ValueError
        For more rows than there are, and for rows whose log-likelihood is not finite.

    Notes
    -----
    The estimator of few rows is in `pdmp.formulas.loo`. It is precise where a row changes the posterior little, as
    with many rows and few parameters; effects of groups of few rows make it less so.

    Examples
    --------
    >>> fit.loo()  # doctest: +SKIP
    """
    chosen, n = choose_rows(self, rows, seed), self.n_rows
    taken = np.arange(n) if chosen is None else chosen
    most = most_draws(self, len(taken))
    if most < LEAST_DRAWS and draws is None:
        raise ValueError(
            f"`rows` = {len(taken):,}: {LEAST_DRAWS} draws of each of {self.run.chains} chains have more than "
            f"{NUMBERS:,} log-likelihoods; give rows={NUMBERS // (LEAST_DRAWS * self.run.chains):,}, or draws."
        )
    x = self.run.draws(min(choose_draws(self.run)[0], most) if draws is None else count("draws", draws))
    if x.shape[0] * x.shape[1] < FEWEST:
        raise ValueError(f"loo needs {FEWEST} draws or more of all chains together, got {x.shape[0] * x.shape[1]}.")
    size = max(AT_ONCE // (x.shape[0] * x.shape[1]), 1)
    efficiency = relative_efficiency(self, x)
    fit, x = self.centred(x)
    parts = [pareto_smoothed(fit, x, taken[k : k + size], efficiency) for k in range(0, len(taken), size)]
    loo_i, pareto_k, p_i = (np.concatenate(part) for part in zip(*parts, strict=True))
    near = None if chosen is None else at_mean(fit, x.mean(axis=(0, 1)))
    name = f"{self.formula}, {self.family.name}"
    found = Loo(name, loo_i, p_i, pareto_k, taken, near, n, x.shape[0] * x.shape[1])
    if found.bad:
        warn(
            f"loo: the Pareto k of {found.bad:,} of {len(taken):,} rows is above {found.good_k:.2f}: the draws say too "
            "little of what is expected without one of these rows, and elpd_loo may be too large."
        )
    return found


def relative_efficiency(fit: Fit, x: np.ndarray) -> float:
    """Effective draws of the mean over draws, on average over the parameters; 1 where it is not known."""
    natural = fit.run.constrain(x)
    columns = np.stack([natural[name] for name in fit.priors], axis=-1)
    with np.errstate(all="ignore"), silenced():
        ess = np.asarray(draws_ess(columns, "mean"), dtype=float)
    ess = ess[np.isfinite(ess)]
    return float(ess.mean() / (x.shape[0] * x.shape[1])) if len(ess) else 1.0


def log_likelihoods(fit: Fit, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Of some rows, (..., rows) of draws (..., dim)."""
    found = fit.log_likelihoods(x, rows)
    if not np.all(np.isfinite(found)):
        row = int(rows[int(np.argmax(~np.isfinite(found).reshape(-1, len(rows)).all(axis=0)))])
        raise ValueError(f"loo: the log-likelihood of row {row:,} is not finite in some of the draws.")
    return found


def pareto_smoothed(
    fit: Fit, x: np.ndarray, rows: np.ndarray, efficiency: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """πᵢ, Pareto k and effective parameters of some rows, (rows,) each."""
    values = log_likelihoods(fit, x, rows).reshape(-1, len(rows))
    loo_i, k = loo_densities(values, efficiency)
    return loo_i, k, special.logsumexp(values, axis=0) - math.log(len(values)) - loo_i


def at_mean(fit: Fit, mean: np.ndarray) -> np.ndarray:
    """log p(yᵢ | mean) of all rows, (N,)."""
    n = fit.n_rows
    size = max(AT_ONCE // (len(mean) + 4), 1)
    blocks = [np.arange(k, min(k + size, n)) for k in range(0, n, size)]
    return np.concatenate([log_likelihoods(fit, mean[None], rows)[0] for rows in blocks])


def compare(
    self: Fit, other: Fit, *, rows: int | None = None, draws: int | None = None, seed: int = 0
) -> LooDifference:
    """How much better this fit predicts than another one of the same rows: the difference of their `loo`.

    Parameters
    ----------
    other : Fit
        Of the same response in the same rows, in the same order.
    rows, draws, seed
        As of `loo`; the same rows are drawn for both.

    Returns
    -------
    LooDifference
        ``elpd_difference``, positive where this fit is better, and its standard error ``se`` from the differences
        of single rows. A difference of less than 4, or of less than twice its error, decides nothing.

    Raises
    ------
    TypeError, ValueError
        For another number of rows, other responses, weights, censoring or trials, a density beside probabilities,
        such as "gaussian" and "poisson" of the same counts, and as of `loo`.

    Examples
    --------
    >>> fit.compare(pdmp.regression("visits ~ age", table, "poisson"))  # doctest: +SKIP
    """
    if not (hasattr(other, "observed") and hasattr(other, "loo")):
        raise TypeError(f"`other` must be another fit, got {type(other).__name__}.")
    ours, theirs = self.design.response, other.design.response
    if ours != theirs:
        raise ValueError(f"`other`: the responses differ, {ours!r} and {theirs!r}.")
    reason = self.unlike(other)
    if reason is not None:
        raise ValueError(f"`other`: {reason}.")
    if rows is None and (choose_rows(self, None, seed) is None) != (choose_rows(other, None, seed) is None):
        rows = min(ROWS, self.n_rows)  # of both, as one has too many chains for all
    return LooDifference(*(fit.loo(rows=rows, draws=draws, seed=seed) for fit in (self, other)))
