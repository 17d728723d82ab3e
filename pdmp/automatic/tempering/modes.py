"""The modes of a fitted mixture: components that no barrier parts are one, and which one a point belongs to."""

from __future__ import annotations

import numpy as np

from pdmp.automatic.modes import BARRIER, barrier
from pdmp.automatic.start import Evaluations
from pdmp.automatic.tempering.references import Mixture


def groups(target: Evaluations, mixture: Mixture) -> np.ndarray:
    """The number of the mode of each component but the last, which is the wide one; (K - 1,).

    Two components are of one mode if U exceeds its larger value at their centres by `BARRIER` nowhere on the straight
    line between them. So is a chain of them, along a curved ridge.
    """
    k = len(mixture.weights) - 1
    found = np.arange(k)
    for i in range(k):
        for j in range(i):
            if found[i] != found[j] and barrier(target, mixture.means[i], mixture.means[j]) <= BARRIER:
                found[found == found[i]] = found[j]
    return np.unique(found, return_inverse=True)[1]


def labels(mixture: Mixture, group: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The mode of each point: that of the component of most density there; x (..., d) to (...)."""
    flat = x.reshape(-1, x.shape[-1])
    found = [
        group[np.argmax(mixture.log_terms(part)[:, :-1], axis=1)]
        for part in np.array_split(flat, 1 + len(flat) // 1_000)
    ]
    return np.concatenate(found).reshape(x.shape[:-1])
