"""The modes of a fitted mixture: components that no barrier parts are one, and which one a point belongs to."""

from __future__ import annotations

import numpy as np

from pdmp.automatic.modes import BARRIER, barrier
from pdmp.automatic.start import Evaluations
from pdmp.automatic.tempering.references import Mixture


def groups(target: Evaluations, mixture: Mixture) -> np.ndarray:
    """The number of the mode of each component but the last, which is the wide one; (K - 1,).

    From the lowest straight line between two centres on, the modes at its ends become one if U on it exceeds the higher
    of their least values by at most `BARRIER`. So do those along a curved ridge; a component whose centre is between
    two modes, where U is high, joins one and does not join both.
    """
    k = len(mixture.weights) - 1
    found, heights = np.arange(k), np.array([target.potential(x) for x in mixture.means[:-1]])
    lines = [
        (barrier(target, mixture.means[i], mixture.means[j]) + max(heights[i], heights[j]), i, j)
        for i in range(k)
        for j in range(i)
    ]
    for height, i, j in sorted(lines):
        own, other = found == found[i], found == found[j]
        if height - max(heights[own].min(), heights[other].min()) <= BARRIER:
            found[own] = found[j]
    return np.unique(found, return_inverse=True)[1]


def labels(mixture: Mixture, group: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The mode of each point: that of the component of most density there; x (..., d) to (...)."""
    flat = x.reshape(-1, x.shape[-1])
    found = [
        group[np.argmax(mixture.log_terms(part)[:, :-1], axis=1)]
        for part in np.array_split(flat, 1 + len(flat) // 1_000)
    ]
    return np.concatenate(found).reshape(x.shape[:-1])
