"""Quantiles of draws of several chains, pooled in proportion to the lengths of the chains, a block at a time."""

from __future__ import annotations

import numpy as np

NUMBERS = 1_000_000  #: of a block: what is computed of draws takes several copies of it


def blocks(draws):
    """Draws (chains, n, k), block of coordinates by block."""
    width = max(NUMBERS // max(draws.shape[0] * draws.shape[1], 1), 1)
    return [draws[:, :, begin : begin + width] for begin in range(0, draws.shape[2], width)]


def ordered(draws, lengths):
    """Draws (chains, n, k) in order, (chains n, k); the share of time at or below each; and what each counts for."""
    chains, n, k = draws.shape
    lengths = np.asarray(lengths, dtype=float)
    weights = np.repeat(lengths / lengths.sum() / n, n)
    values = draws.reshape(chains * n, k)
    order = np.argsort(values, axis=0)
    return np.take_along_axis(values, order, axis=0), np.cumsum(weights[order], axis=0), weights[order]


def quantiles(q, draws, lengths):
    """Quantiles (*q.shape, k) of draws, by linear interpolation between the middles of their shares of time."""
    found = []
    for part in blocks(draws):
        values, share, weights = ordered(part, lengths)
        middle = share - 0.5 * weights
        found += [np.interp(q, middle[:, j], values[:, j]) for j in range(values.shape[1])]
    return np.moveaxis(np.array(found), 0, -1)
