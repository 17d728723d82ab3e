r"""How far samples are from a reference, and how much of that is Monte Carlo noise.

Every measure comes as an `Estimate`: its value on all the draws, and the standard error of that, by a jackknife over
stretches of the chains: the measure is taken again without each stretch in turn. Stretches must be longer than the
draws' correlation; their number is an argument.

References
----------
Mauri & Zanella (2024), Robust approximate sampling via stochastic gradient Barker dynamics, AISTATS, footnote 6 (errors
of means and variances); Coullon, South & Nemeth (2023), Efficient and generalizable tuning strategies for stochastic
gradient MCMC, Stat. Comput. 33 (error of the standard deviations); Gretton, Borgwardt, Rasch, Schölkopf & Smola (2012),
A kernel two-sample test, JMLR 13; Bonneel, Rabin, Peyré & Pfister (2015), Sliced and Radon Wasserstein barycenters of
measures, J. Math. Imaging Vis. 51; Efron (1982), The jackknife, the bootstrap and other resampling plans, SIAM.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from pdmp.diagnostics.effective_size import as_draws

STRETCHES = 16  #: of all chains together, for the jackknife
MMD_DRAWS = 2_000  #: of each side, at most: it takes all pairs


@dataclass(frozen=True)
class Estimate:
    """A measure and its Monte Carlo standard error; numbers, or arrays of one shape."""

    value: object
    error: object

    def __sub__(self, other):
        """The difference of two independent estimates."""
        return Estimate(self.value - other.value, np.hypot(self.error, other.error))

    def differs(self, other, z=3.0):
        """Whether two independent estimates differ by more than z standard errors of their difference."""
        difference = self - other
        return abs(difference.value) > z * difference.error

    def __str__(self):
        if np.ndim(self.value):
            return f"{self.value} ± {self.error}"
        return f"{self.value:.3g} ± {self.error:.1g}"


def jackknife(measure, draws, stretches=STRETCHES):
    """A measure of draws with its standard error.

    Parameters
    ----------
    measure : callable
        From draws (P, d) to a number or an array.
    draws : array_like, shape (chains, n, d) or (n, d)
    stretches : int
        How many to leave out in turn, of all chains together; each chain is cut into equally many.

    Returns
    -------
    Estimate
    """
    draws = as_draws(draws)
    if not np.all(np.isfinite(draws)):
        raise ValueError("`draws` must be finite.")
    chains, n, d = draws.shape
    if isinstance(stretches, bool) or not isinstance(stretches, (int, np.integer)) or stretches < 2:
        raise ValueError(f"`stretches` must be a whole number, at least 2, got {stretches!r}.")
    each = max(-(-stretches // chains), 1)
    if each > n // 2:
        raise ValueError(f"{n} draws of a chain are too few for {each} stretches of it.")
    pieces = [piece for chain in draws for piece in np.array_split(chain, each)]
    value = np.asarray(measure(draws.reshape(-1, d)), dtype=float)
    without = np.array([measure(np.concatenate(pieces[:k] + pieces[k + 1 :])) for k in range(len(pieces))])
    m = len(pieces)
    error = np.sqrt((m - 1.0) / m * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    return Estimate(float(value) if value.ndim == 0 else value, float(error) if value.ndim == 0 else error)


def _reference(mean, sd, d):
    mean, sd = np.broadcast_to(np.asarray(mean, dtype=float), (d,)), np.broadcast_to(np.asarray(sd, dtype=float), (d,))
    if not (np.all(np.isfinite(mean)) and np.all(np.isfinite(sd)) and np.all(sd > 0.0)):
        raise ValueError("the reference's `mean` must be finite and its `sd` positive.")
    return mean, sd


def mean_error(draws, mean, sd, stretches=STRETCHES):
    """Mean over coordinates of |mean of the draws - mean| / sd: an `Estimate`.

    Parameters
    ----------
    draws : array_like, shape (chains, n, d) or (n, d)
    mean, sd : array_like, shape (d,)
        Of the reference.
    stretches : int
        See `jackknife`.
    """
    mean, sd = _reference(mean, sd, as_draws(draws).shape[2])
    return jackknife(lambda x: float(np.mean(np.abs(x.mean(axis=0) - mean) / sd)), draws, stretches)


def variance_error(draws, sd, relative=False, stretches=STRETCHES):
    """Mean over coordinates of |variance of the draws - sd²| / sd, as in the paper, or / sd² if `relative`."""
    _, sd = _reference(0.0, sd, as_draws(draws).shape[2])
    unit = sd**2 if relative else sd
    return jackknife(lambda x: float(np.mean(np.abs(x.var(axis=0) - sd**2) / unit)), draws, stretches)


def sd_error(draws, sd, stretches=STRETCHES):
    """ξ = |sd of the draws - sd|₂ / |sd|₂, over the coordinates."""
    _, sd = _reference(0.0, sd, as_draws(draws).shape[2])
    return jackknife(lambda x: float(np.linalg.norm(x.std(axis=0) - sd) / np.linalg.norm(sd)), draws, stretches)


def wasserstein(draws, reference, stretches=STRETCHES, average=None):
    """Wasserstein-1 distance of each marginal to that of the reference's draws (P', d): an `Estimate` of arrays (d,).

    With `average`, units (d,), the mean over the marginals of the distances in these units, one number. Its floor is
    not zero: two samples of n from one law are about sd / √n apart.
    """
    from scipy.stats import wasserstein_distance

    reference = _other(reference, draws)

    def measure(x):
        found = np.array([wasserstein_distance(a, b) for a, b in zip(x.T, reference.T, strict=True)])
        return found if average is None else float(np.mean(found / average))

    return jackknife(measure, draws, stretches)


def sliced_wasserstein(draws, reference, slices=50, seed=0, stretches=STRETCHES):
    """Mean Wasserstein-1 distance of projections on random directions of unit length: an `Estimate`."""
    from scipy.stats import wasserstein_distance

    reference = _other(reference, draws)
    _warn_of_few(as_draws(draws))
    directions = np.random.default_rng(seed).standard_normal((slices, reference.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    projected = reference @ directions.T

    def measure(x):
        pairs = zip((x @ directions.T).T, projected.T, strict=True)
        return float(np.mean([wasserstein_distance(a, b) for a, b in pairs]))

    return jackknife(measure, draws, stretches)


def mmd(draws, reference, bandwidth=None, stretches=STRETCHES):
    """Unbiased squared maximum mean discrepancy with a Gaussian kernel: an `Estimate`, which can be negative.

    At most 2,000 equally spaced draws of each side are used. The bandwidth is the median distance within the reference
    by default. Fewer draws than dimensions are a `UserWarning`, here and in `sliced_wasserstein`.
    """
    from scipy.spatial.distance import cdist, pdist

    reference = _other(reference, draws)
    reference = reference[:: max(-(-len(reference) // MMD_DRAWS), 1)]
    draws = as_draws(draws)
    _warn_of_few(draws)
    draws = draws[:, :: max(-(-draws.shape[0] * draws.shape[1] // MMD_DRAWS), 1)]
    if bandwidth is None:
        bandwidth = float(np.median(pdist(reference)))
    if not 0.0 < bandwidth < math.inf:
        raise ValueError(f"`bandwidth` must be a positive number, got {bandwidth!r}.")

    def kernel(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / (2.0 * bandwidth**2))

    n = len(reference)
    inner = (kernel(reference, reference).sum() - n) / (n * (n - 1))

    def measure(x):
        m = len(x)
        return float((kernel(x, x).sum() - m) / (m * (m - 1)) + inner - 2.0 * kernel(x, reference).mean())

    return jackknife(measure, draws, stretches)


class Report:
    """Errors of several samplers against one reference; prints as a table in which noise is not a difference.

    Attributes
    ----------
    rows : dict of str to dict of str to Estimate
        For each label its measures.
    """

    def __init__(self, rows):
        self.rows = rows

    def best(self, measure):
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
        widths = [max(len(line[k]) for line in table) for k in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table]
        return "\n".join([*lines, "* least, or no further from it than three standard errors of the difference"])


def report(draws, reference, mean=None, sd=None, stretches=STRETCHES):
    """All errors of one or several samplers against a reference.

    Parameters
    ----------
    draws : dict of str to array_like, or array_like
        Of each sampler, (chains, n, d) or (n, d).
    reference : array_like, shape (P, d)
        The reference's draws.
    mean, sd : array_like, shape (d,), optional
        Of the reference, where they are known better than from its draws.
    stretches : int
        See `jackknife`.

    Returns
    -------
    Report
        With ``mean`` and ``variance`` (`mean_error`, `variance_error`), ``relative variance``, ``sd`` (`sd_error`),
        ``W1`` (the mean over marginals of each distance over the reference's sd), ``sliced W1`` and ``MMD²``.
    """
    draws = draws if isinstance(draws, dict) else {"": draws}
    if not draws:
        raise ValueError("`draws` must have at least one sampler.")
    rows = {}
    for label, x in draws.items():
        other = _other(reference, x)
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
    return Report(rows)


def _warn_of_few(draws):
    chains, n, d = draws.shape
    if chains * n < d:
        warnings.warn(
            f"{chains * n} draws in {d} dimensions: a distance between laws from so few says little.", stacklevel=3
        )


def _other(reference, draws):
    """The reference's draws (P, d)."""
    d = as_draws(draws).shape[2]
    reference = np.asarray(reference, dtype=float)
    reference = reference.reshape(-1, reference.shape[-1]) if reference.ndim == 3 else reference
    if reference.ndim != 2 or reference.shape[1] != d or len(reference) < 2 or not np.all(np.isfinite(reference)):
        raise ValueError(f"`reference` must be finite draws of shape (P, {d}), got shape {reference.shape}.")
    return reference
