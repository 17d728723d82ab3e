r"""Distances of draws from a reference, with their Monte Carlo errors.

Every distance is an `Estimate`: its value for all draws, and the standard error by `jackknife`.

References
----------
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS, footnote 6 (errors
of means and variances); Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic
gradient MCMC, Stat. Comput. 33 (error of the standard deviations); Gretton, Borgwardt, Rasch, Schölkopf & Smola (2012),
A kernel two-sample test, JMLR 13; Bonneel, Rabin, Peyré & Pfister (2015), Sliced and Radon Wasserstein barycenters of
measures, J. Math. Imaging Vis. 51.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pdmp.diagnostics.effective_size import as_draws
from pdmp.diagnostics.estimates import STRETCHES, Estimate, jackknife
from pdmp.errors import warn
from pdmp.native.arguments import positive, refuse_unreal
from pdmp.native.representation import in_columns

MMD_DRAWS = 2_000  #: most draws of each side, because it takes all pairs


def _reference_moments(mean, sd, d):
    """The reference's means and standard deviations as arrays (d,), or a `ValueError`."""
    mean, sd = np.broadcast_to(np.asarray(mean, dtype=float), (d,)), np.broadcast_to(np.asarray(sd, dtype=float), (d,))
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(sd)) and np.all(sd > 0.0)):
        raise ValueError("the reference's `mean` must be finite and its `sd` positive.")
    return mean, sd


def mean_error(draws: ArrayLike, mean: ArrayLike, sd: ArrayLike, stretches: int = STRETCHES) -> Estimate:
    """Mean over coordinates of |mean of the draws - mean| / sd.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d)
        Draws of one or several chains.
    mean, sd : array_like, shape (d,)
        Means and standard deviations of the reference.
    stretches : int, default 16
        See `jackknife`.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For shapes that do not fit, and numbers that are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import mean_error
    >>> draws = np.random.default_rng(1).standard_normal((1_000, 2))
    >>> error = mean_error(draws, mean=[0.0, 0.0], sd=[1.0, 1.0])
    >>> bool(error.value < 0.1)
    True
    """
    mean, sd = _reference_moments(mean, sd, as_draws(draws).shape[2])
    return jackknife(lambda x: float(np.mean(np.abs(x.mean(axis=0) - mean) / sd)), draws, stretches)


def variance_error(draws: ArrayLike, sd: ArrayLike, relative: bool = False, stretches: int = STRETCHES) -> Estimate:
    """Mean over coordinates of |variance of the draws - sd²| / sd (Mauri & Zanella, 2024), or / sd² if `relative`.

    Parameters
    ----------
    draws, sd, stretches
        As of `mean_error`.
    relative : bool, default False
        Whether to divide by sd² instead of sd.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import variance_error
    >>> draws = np.tile([[-2.0], [2.0]], (50, 1))  # of variance 4
    >>> print(variance_error(draws, sd=[1.0]).value)
    3.0
    """
    _, sd = _reference_moments(0.0, sd, as_draws(draws).shape[2])
    unit = sd**2 if relative else sd
    return jackknife(lambda x: float(np.mean(np.abs(x.var(axis=0) - sd**2) / unit)), draws, stretches)


def sd_error(draws: ArrayLike, sd: ArrayLike, stretches: int = STRETCHES) -> Estimate:
    """ξ = |sd of the draws - sd|₂ / |sd|₂, over the coordinates.

    Parameters
    ----------
    draws, sd, stretches
        As of `mean_error`.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import sd_error
    >>> print(sd_error(np.tile([[-2.0], [2.0]], (50, 1)), sd=[1.0]).value)
    1.0
    """
    _, sd = _reference_moments(0.0, sd, as_draws(draws).shape[2])
    return jackknife(lambda x: float(np.linalg.norm(x.std(axis=0) - sd) / np.linalg.norm(sd)), draws, stretches)


def wasserstein(
    draws: ArrayLike, reference: ArrayLike, stretches: int = STRETCHES, average: ArrayLike | None = None
) -> Estimate:
    """Wasserstein-1 distance of each marginal to that of the reference.

    It is not zero for equal laws: for two samples of n draws from one law it is about sd / √n.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d)
    reference : array_like, shape (P, d)
        The reference's draws.
    stretches : int, default 16
        See `jackknife`.
    average : array_like, shape (d,), optional
        Units of the coordinates: the result is then the mean over the marginals of the distances in these units.

    Returns
    -------
    Estimate
        Of arrays (d,), or of one number with `average`.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import wasserstein
    >>> draws = np.tile([[0.0], [1.0]], (50, 1))
    >>> wasserstein(draws + 3.0, draws).value
    array([3.])
    """
    from scipy.stats import wasserstein_distance

    reference = _reference_draws(reference, draws)

    def measure(x):
        found = np.array([wasserstein_distance(a, b) for a, b in zip(x.T, reference.T, strict=True)])
        return found if average is None else float(np.mean(found / average))

    return jackknife(measure, draws, stretches)


def sliced_wasserstein(
    draws: ArrayLike, reference: ArrayLike, slices: int = 50, seed: int = 0, stretches: int = STRETCHES
) -> Estimate:
    """Mean Wasserstein-1 distance of projections on random directions of unit length.

    Parameters
    ----------
    draws, reference, stretches
        As of `wasserstein`.
    slices : int, default 50
        Number of directions.
    seed : int, default 0
        Of the directions.

    Returns
    -------
    Estimate

    Warns
    -----
    UserWarning
        For fewer draws than dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import sliced_wasserstein
    >>> draws = np.random.default_rng(1).standard_normal((200, 2))
    >>> print(sliced_wasserstein(draws, draws).value)
    0.0
    """
    from scipy.stats import wasserstein_distance

    reference = _reference_draws(reference, draws)
    _warn_of_few(as_draws(draws))
    directions = np.random.default_rng(seed).standard_normal((slices, reference.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    projected = reference @ directions.T

    def measure(x):
        pairs = zip((x @ directions.T).T, projected.T, strict=True)
        return float(np.mean([wasserstein_distance(a, b) for a, b in pairs]))

    return jackknife(measure, draws, stretches)


def mmd(draws: ArrayLike, reference: ArrayLike, bandwidth: float | None = None, stretches: int = STRETCHES) -> Estimate:
    """Unbiased squared maximum mean discrepancy with a Gaussian kernel, which can be negative.

    At most 2,000 equally spaced draws of each side are used.

    Parameters
    ----------
    draws, reference, stretches
        As of `wasserstein`.
    bandwidth : float, optional
        Of the kernel; by default the median distance within the reference.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        For shapes that do not fit, and a bandwidth that is not positive.

    Warns
    -----
    UserWarning
        For fewer draws than dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import mmd
    >>> x = np.random.default_rng(1).standard_normal((400, 1))
    >>> bool(mmd(x[:200] + 1.0, x[200:]).value > 0.1)
    True
    """
    from scipy.spatial.distance import cdist, pdist

    reference = _reference_draws(reference, draws)
    reference = reference[:: max(-(-len(reference) // MMD_DRAWS), 1)]
    draws = as_draws(draws)
    _warn_of_few(draws)
    draws = draws[:, :: max(-(-draws.shape[0] * draws.shape[1] // MMD_DRAWS), 1)]
    if bandwidth is None:
        bandwidth = float(np.median(pdist(reference)))
    positive("bandwidth", bandwidth)

    def kernel(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / (2.0 * bandwidth**2))

    n = len(reference)
    inner = (kernel(reference, reference).sum() - n) / (n * (n - 1))

    def measure(x):
        m = len(x)
        return float((kernel(x, x).sum() - m) / (m * (m - 1)) + inner - 2.0 * kernel(x, reference).mean())

    return jackknife(measure, draws, stretches)


class ErrorTable:
    """Errors of several samplers against one reference.

    Prints as a table that marks the smallest errors, and those within three standard errors of the smallest.

    Attributes
    ----------
    rows : dict of str to dict of str to Estimate
        The measures of each sampler, by its label.
    """

    def __init__(self, rows: dict[str, dict[str, Estimate]]):
        self.rows = rows

    def best(self, measure: str) -> list[str]:
        """Labels whose `measure` is the smallest, or not more than three standard errors above it."""
        found = {label: row[measure] for label, row in self.rows.items()}
        least = min(found.values(), key=lambda e: e.value)
        return [label for label, e in found.items() if not e.differs(least)]

    def __repr__(self):
        measures = list(next(iter(self.rows.values())))
        best = {name: self.best(name) for name in measures}
        table = [["", *measures]]
        for label, row in self.rows.items():
            table.append([label, *(str(row[m]) + (" *" if label in best[m] else "  ") for m in measures)])
        lines = in_columns(table, left=range(len(table[0])))
        return "\n".join([*lines, "* the smallest, or within three standard errors of the difference from it"])


def report(
    draws: ArrayLike | dict[str, ArrayLike],
    reference: ArrayLike,
    mean: ArrayLike | None = None,
    sd: ArrayLike | None = None,
    stretches: int = STRETCHES,
) -> ErrorTable:
    """All errors of one or several samplers against a reference.

    Parameters
    ----------
    draws : dict of str to array_like, or array_like
        Draws of each sampler, of shape (chains, n, d) or (n, d).
    reference : array_like, shape (P, d)
        The reference's draws.
    mean, sd : array_like, shape (d,), optional
        Means and standard deviations of the reference; those of its draws when omitted.
    stretches : int, default 16
        See `jackknife`.

    Returns
    -------
    ErrorTable
        With ``mean`` and ``variance`` (`mean_error`, `variance_error`), ``relative variance``, ``sd`` (`sd_error`),
        ``W1`` (the mean over marginals of each distance over the reference's sd), ``sliced W1`` and ``MMD²``.

    Raises
    ------
    ValueError
        For no sampler, and for shapes that do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from pdmp.diagnostics import report
    >>> rng = np.random.default_rng(1)
    >>> reference = rng.standard_normal((400, 1))
    >>> table = report({"right": rng.standard_normal((400, 1)), "shifted": 2.0 + reference}, reference)
    >>> table.best("mean")
    ['right']
    """
    draws = draws if isinstance(draws, dict) else {"": draws}
    if not draws:
        raise ValueError("`draws` must have at least one sampler.")
    rows = {}
    for label, x in draws.items():
        other = _reference_draws(reference, x)
        m, s = other.mean(axis=0) if mean is None else mean, other.std(axis=0) if sd is None else sd
        rows[label] = {
            "mean": mean_error(x, m, s, stretches),
            "variance": variance_error(x, s, stretches=stretches),
            "relative variance": variance_error(x, s, True, stretches),
            "sd": sd_error(x, s, stretches),
            "W1": wasserstein(x, other, stretches, average=s),
            "sliced W1": sliced_wasserstein(x, other, stretches=stretches),
            "MMD²": mmd(x, other, stretches=stretches),
        }
    return ErrorTable(rows)


def _warn_of_few(draws):
    chains, n, d = draws.shape
    if chains * n < d:
        warn(f"{chains * n} draws in {d} dimensions are too few for a distance between laws: take more draws.")


def _reference_draws(reference, draws):
    """The reference's draws as an array (P, d), or a `ValueError`."""
    d = as_draws(draws).shape[2]
    refuse_unreal("reference", reference)
    reference = np.asarray(reference, dtype=float)
    reference = reference.reshape(-1, reference.shape[-1]) if reference.ndim == 3 else reference
    if reference.ndim != 2 or reference.shape[1] != d or len(reference) < 2 or not np.all(np.isfinite(reference)):
        raise ValueError(f"`reference` must be finite draws of shape (P, {d}), got shape {reference.shape}.")
    return reference
