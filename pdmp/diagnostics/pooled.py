"""Quantiles of draws of several chains, pooled in proportion to the lengths of the chains."""

from __future__ import annotations

import numpy as np


def ordered(draws, lengths):
    """Draws (chains, n, k) in order, (chains n, k); the share of time at or below each; and what each counts for."""
    chains, n, k = draws.shape
    lengths = np.asarray(lengths, dtype=float)
    weights = np.repeat(lengths / lengths.sum() / n, n)
    values = draws.reshape(chains * n, k)
    order = np.argsort(values, axis=0)
    return np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0), weights[order]


def quantiles(q, values, share, weights):
    """Quantiles (*q.shape, k), by linear interpolation between the middles of the draws' shares of time."""
    middle = share - 0.5 * weights
    found = np.array([np.interp(q, middle[:, j], values[:, j]) for j in range(values.shape[1])])
    return np.moveaxis(found, 0, -1)
