"""Leave-one-out densities of many rows at a time by Pareto-smoothed importance sampling.

The largest weights of a row are replaced by the quantiles of a generalised Pareto law that is fitted to them (Vehtari,
Simpson, Gelman, Yao & Gabry, 2024); the law's estimate is that of Zhang & Stephens (2009), with a shape drawn towards
1/2 as by ten observations more.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

PRIOR_SHAPE, PRIOR_COUNT = 0.5, 10.0
NUMBERS = 4_000_000  #: in memory at a time


def fit_pareto(tails: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shape and scale (rows,) of generalised Pareto laws of `tails` (n, rows), ascending, less the threshold."""
    n = len(tails)
    m = 30 + int(math.sqrt(n))
    grid = 1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    b = grid[:, None] / (3.0 * tails[int(n / 4 + 0.5) - 1]) + 1.0 / tails[-1]
    shape = np.log1p(-b[:, None] * tails).mean(axis=1)
    height = n * (np.log(-b / shape) - shape - 1.0)
    weights = np.exp(height - special.logsumexp(height, axis=0))
    weights[weights < 10.0 * np.finfo(float).eps] = 0.0
    mean = np.sum(b * weights, axis=0) / weights.sum(axis=0)
    shape = np.log1p(-mean * tails).mean(axis=0)
    scale = -shape / mean
    return (n * shape + PRIOR_COUNT * PRIOR_SHAPE) / (n + PRIOR_COUNT), scale


def loo_densities(values: np.ndarray, efficiency: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """log p(yᵢ | y without i) and Pareto shapes k, (rows,) each, of log-likelihoods (draws, rows).

    Where most weights are 0 in floating point no law fits: k is infinite there, and weights are as they are. They are
    so too, with k = 0, where the largest are all the same. `efficiency`: effective draws over draws.
    """
    draws, rows = values.shape
    n = tail_length(draws, efficiency)
    size = max(NUMBERS // max(n * (30 + int(math.sqrt(n))), draws), 1)
    parts = [_of_block(values[:, k : k + size], n) for k in range(0, rows, size)]
    loo_i, shapes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return loo_i, shapes


def tail_length(draws: int, efficiency: float) -> int:
    """How many of the largest weights are smoothed."""
    if draws * efficiency > 225.0:
        return min(int(3.0 * math.sqrt(draws / efficiency)), draws - 1)
    return draws // 5


def _of_block(values, n):
    weights = -values
    weights -= weights.max(axis=0)
    order = np.argpartition(weights, -n - 1, axis=0)[-n - 1 :]
    order = np.take_along_axis(order, np.argsort(np.take_along_axis(weights, order, axis=0), axis=0), axis=0)
    sorted_ = np.take_along_axis(weights, order, axis=0)
    plain = math.log(len(values)) - special.logsumexp(-values, axis=0)
    with np.errstate(all="ignore"):
        threshold = np.exp(sorted_[0])
        shape, scale = fit_pareto(np.exp(sorted_[1:]) - threshold)
        p = ((np.arange(n) + 0.5) / n)[:, None]
        smooth = np.minimum(np.log(threshold + scale * np.expm1(-shape * np.log1p(-p)) / shape), 0.0)
        np.put_along_axis(weights, order[1:], smooth, axis=0)
        loo_i = special.logsumexp(weights + values, axis=0) - special.logsumexp(weights, axis=0)
    same, lost = sorted_[1] == sorted_[-1], ~(np.isfinite(loo_i) & np.isfinite(shape))
    loo_i = np.where(same | lost, plain, loo_i)
    return loo_i, np.where(same, 0.0, np.where(lost, math.inf, shape))
