r"""One posterior from several that each saw a part of the data, where the parts may not leave their machines.

The rows are split into S shards. The posterior is the product of S factors, each of a shard's likelihood and its share
of the prior,

    π(x) ∝ Πₛ p(x)^{1/S} p(yₛ | x),

and each machine samples its own factor. For a prior N(0, τ²) the share is the prior N(0, S τ²) (`prior_share`). Only
draws are sent. Both rules are exact for Gaussian factors, and **approximations** otherwise: no error of theirs shrinks
with more draws, only with more data in each shard. Where the rows may move, sampling them all (`pdmp.sample` with an
`executor`) is exact.

How far off they are shows where the truth is known: four factors Gamma(10, 5), each as of ten observations, have the
product Gamma(37, 20). Both rules put its mean 0.49 of its standard deviations too high, and with factors of a hundred
observations 0.15. Shards that sample as if they had all the data (`swiss` with ``inflated=True``) are right here.

- `consensus`: each draw is a precision-weighted average of one draw of every shard.
- `swiss`: the draws of each shard are shifted and scaled to the common mean and covariance. They keep the shape of the
  shard's factor, so that their number is that of all shards, and skewness is not averaged away.

References
----------
S. L. Scott et al. (2016), Bayes and big data: the consensus Monte Carlo algorithm, equations (1) and (4).
C. Vyner, C. Nemeth & C. Sherlock (2023), SwISS: a scalable Markov chain Monte Carlo divide-and-conquer strategy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pdmp.engine.result import Run
from pdmp.native.arguments import count, refuse_unreal

FAR = 4.0  #: a shard's mean that is as many of its standard deviations off the common one is said
SINGULAR = 1e-12  #: a least eigenvalue of correlations below it is rounding's


@dataclass(frozen=True)
class Combined:
    """Draws of several shards as draws of one posterior; an approximation.

    Attributes
    ----------
    draws : ndarray, shape (n, d)
    mean : ndarray, shape (d,)
        The precision-weighted mean of the shards' means.
    cov : ndarray, shape (d, d)
        The inverse of the sum of their precisions.
    apart : ndarray, shape (S,)
        How far the mean of each shard is from `mean`, as a root mean square over its own principal axes, in its own
        standard deviations: about 1 or less where the factors agree.
    method : str
    warnings : list of str

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> rng = np.random.default_rng(0)
    >>> found = pdmp.shards.swiss([rng.normal(size=(400, 1)), rng.normal(9.0, 1.0, size=(400, 1))])
    >>> len(found.warnings)
    1
    """

    draws: np.ndarray = field(repr=False)
    mean: np.ndarray
    cov: np.ndarray = field(repr=False)
    apart: np.ndarray
    method: str
    warnings: list[str] = field(default_factory=list)

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations, from `cov`."""
        return np.sqrt(np.diag(self.cov))

    def __str__(self) -> str:
        lines = [
            f"{self.method} of {len(self.apart)} shards, an approximation that is exact for Gaussian factors: "
            f"{len(self.draws):,} draws; means of the shards are up to {self.apart.max():.1f} of their sds apart"
        ]
        return "\n".join([*lines, *(f"Warning: {text}" for text in self.warnings)])


def prior_share(scale: ArrayLike, shards: int) -> float | np.ndarray:
    """The scale of a shard's part of the prior N(0, scale²): √S as large, so that the product of all is the prior.

    Parameters
    ----------
    scale : float or array_like
    shards : int
        S.

    Returns
    -------
    float or ndarray

    Raises
    ------
    ValueError
        For a scale that is not positive and finite, or fewer than one shard.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.shards.prior_share(2.0, 4)
    4.0
    """
    scale = _numbers("scale", scale)
    if not np.all(np.isfinite(scale) & (scale > 0.0)):
        raise ValueError(f"`scale` must be positive and finite, got {scale.tolist()}.")
    scale = scale * math.sqrt(count("shards", shards))
    return float(scale) if scale.ndim == 0 else scale


def consensus(shards: Sequence[Run | ArrayLike], draws: int = 1_000) -> Combined:
    r"""Consensus Monte Carlo: averages of draws, weighted by the precisions of the shards.

    x = (Σₛ Wₛ)⁻¹ Σₛ Wₛ xₛ, with Wₛ the inverse of the covariance of shard s.

    Parameters
    ----------
    shards : sequence of Run or array_like, shape (n, d) or (chains, n, d)
        One for each shard, of the likelihood of its rows and its share of the prior.
    draws : int, default 1000
        Draws of a `Run` for each of its chains; of a longer chain there are more in proportion.

    Returns
    -------
    Combined
        As many draws as the shard with the fewest has, in no particular order.

    Raises
    ------
    ValueError
        For shards of different dimensions, numbers that are not finite, or fewer than 2 d draws.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> rng = np.random.default_rng(0)
    >>> found = pdmp.shards.consensus([rng.normal(size=(4_000, 1)), rng.normal(1.0, 1.0, size=(4_000, 1))])
    >>> round(float(found.mean[0]), 1), round(float(found.sd[0]), 1)
    (0.5, 0.7)
    """
    samples, means, covariances, precisions = _moments(shards, draws)
    mean, cov = _common(means, precisions)
    n = min(map(len, samples))
    taken = [x[np.linspace(0, len(x) - 1, n).round().astype(int)] for x in samples]
    # Which draw meets which is arbitrary, but they must be independent: shards that ran with the same seed move alike.
    taken = [x[np.random.default_rng(s).permutation(n)] for s, x in enumerate(taken)]
    combined = sum(x @ w for x, w in zip(taken, precisions, strict=True)) @ cov
    return _report(combined, mean, cov, means, covariances, "consensus Monte Carlo")


def swiss(shards: Sequence[Run | ArrayLike], draws: int = 1_000, inflated: bool = False) -> Combined:
    r"""SwISS: the draws of each shard, moved to the common mean and covariance by an affine map.

    x ↦ μ + Σ^{1/2} Σₛ^{-1/2} (x - μₛ), with symmetric square roots, Σ⁻¹ = Σₛ Σₛ⁻¹ and μ = Σ Σₛ Σₛ⁻¹ μₛ.

    Parameters
    ----------
    shards : sequence of Run or array_like, shape (n, d) or (chains, n, d)
        One for each shard.
    draws : int, default 1000
        Draws of a `Run` for each of its chains; of a longer chain there are more in proportion.
    inflated : bool, default False
        Whether each shard sampled the whole prior times its likelihood to the power S, as if it had all the data: its
        draws are about as wide as the posterior's, and Σ⁻¹ is the mean of the Σₛ⁻¹, not their sum.

    Returns
    -------
    Combined
        The draws of all shards, one shard after the other.

    Raises
    ------
    ValueError
        As `consensus`.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> rng = np.random.default_rng(0)
    >>> found = pdmp.shards.swiss([rng.normal(size=(4_000, 1)), rng.normal(1.0, 1.0, size=(4_000, 1))])
    >>> found.draws.shape, round(float(found.draws.std()), 1)
    ((8000, 1), 0.7)
    """
    samples, means, covariances, precisions = _moments(shards, draws)
    if inflated:
        precisions = [w / len(samples) for w in precisions]
    mean, cov = _common(means, precisions)
    root = _root(cov, 0.5)
    moved = [mean + (x - m) @ (_root(c, -0.5) @ root) for x, m, c in zip(samples, means, covariances, strict=True)]
    return _report(np.concatenate(moved), mean, cov, means, covariances, "SwISS")


def _numbers(name, value):
    """The argument `name` as an array of floats, or a `ValueError`."""
    refuse_unreal(name, value)
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be a `Run` or an array of numbers.") from error


def _draws_of(run, draws):
    """Draws of each chain in proportion to its length, (n, d), if its grid has as many."""
    n = count("draws", draws) * run.chains
    if run.store == "grid":
        time = sum(record.length for record in run.records)
        # One less than a chain has, as its number is rounded.
        kept = min((r.grid.used[0] - 1) * time / r.length for r in run.records if r.length > 0.0)
        n = min(n, max(int(kept), 1))
    return run.thin(n, method="time")


def _moments(shards, draws):
    """Draws (n, d), means, covariances and their inverses of each shard."""
    if not isinstance(shards, (list, tuple)) or len(shards) < 2:
        raise ValueError("`shards` must be a list of two or more, one for each part of the data.")
    samples = []
    for s, shard in enumerate(shards):
        x = _draws_of(shard, draws) if isinstance(shard, Run) else _numbers(f"shards[{s}]", shard)
        if x.ndim == 3:
            x = x.reshape(-1, x.shape[2])
        if x.ndim != 2 or x.shape[1] != (samples[0] if samples else x).shape[1]:
            raise ValueError(
                f"`shards[{s}]` must have the shape (n, d) or (chains, n, d), with the d of the others; got {x.shape}."
            )
        if not np.all(np.isfinite(x)):
            raise ValueError(f"`shards[{s}]` has numbers that are not finite.")
        if len(x) < 2 * x.shape[1] + 1:
            raise ValueError(f"`shards[{s}]` has {len(x)} draws of {x.shape[1]} numbers: too few for a covariance.")
        samples.append(x)
    means = [x.mean(axis=0) for x in samples]
    if len(np.unique(means, axis=0)) < len(means):
        raise ValueError("`shards` has the same draws twice: each part of the data has a run of its own.")
    covariances = [np.atleast_2d(np.cov(x, rowvar=False)) for x in samples]
    for x, c in zip(samples, covariances, strict=True):
        units = 1.0 / np.sqrt(np.diag(c).clip(np.finfo(float).tiny))
        if np.any(np.ptp(x, axis=0) == 0.0) or np.linalg.eigvalsh(units[:, None] * c * units)[0] < SINGULAR:
            raise ValueError("`shards`: a covariance is singular; a coordinate never moved, or two are the same.")
    return samples, means, covariances, [np.linalg.inv(c) for c in covariances]


def _common(means, precisions):
    cov = np.linalg.inv(sum(precisions))
    return cov @ sum(w @ m for w, m in zip(precisions, means, strict=True)), cov


def _root(matrix, power):
    """A power of a symmetric matrix, symmetric itself."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


def _report(x, mean, cov, means, covariances, method):
    apart = np.array(
        [
            math.sqrt((m - mean) @ np.linalg.solve(c, m - mean) / len(mean))
            for m, c in zip(means, covariances, strict=True)
        ]
    )
    warnings = []
    if apart.max() > FAR:
        warnings.append(
            f"the mean of shard {apart.argmax()} is {apart.max():.1f} of its standard deviations from the common one: "
            "the rows were not split at random, or the factors are far from Gaussian; the result may be far off"
        )
    return Combined(x, mean, cov, apart, method, warnings)
