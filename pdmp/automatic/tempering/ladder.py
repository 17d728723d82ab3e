r"""Rungs of a ladder: as many, and where, as the communication barrier asks for.

Between two rungs swaps are rejected at a rate r; the barrier Λ = Σ r hardly depends on where the rungs are, if there
are enough of them. Round trips are most frequent if all pairs reject alike, and hardly more frequent with more than
2Λ + 1 rungs.

References
----------
Syed, Bouchard-Côté, Deligiannidis & Doucet (2022), Non-reversible parallel tempering: a scalable highly parallel MCMC
scheme, JRSS B 84: the barrier is estimated by equation (22), equal shares are algorithm 2, and the number of rungs
section 5.3.
"""

from __future__ import annotations

import math

import numpy as np

FEWEST, MOST = 3, 64  #: rungs, both ends included
LEAST_REJECTION = 1e-3  #: that a pair counts for, so that no two rungs come to be the same


def first_rungs(n: int, least: float = 1e-3) -> np.ndarray:
    """0, and n - 1 inverse temperatures from `least` to 1 in equal ratios."""
    return np.append(0.0, np.geomspace(least, 1.0, n - 1))


def wanted(barrier: float) -> int:
    """The number of rungs for a barrier Λ: 2Λ + 1, rounded up."""
    return min(max(math.ceil(2.0 * barrier) + 1, FEWEST), MOST)


def rungs(betas: np.ndarray, rejections: np.ndarray, n: int) -> np.ndarray:
    """n inverse temperatures, between neighbours of which the barrier has equal shares.

    From mean probabilities (m - 1,) that swaps of neighbours among `betas` (m,), from 0 to 1, were rejected.
    """
    cumulative = np.append(0.0, np.cumsum(np.maximum(rejections, LEAST_REJECTION)))
    found = np.interp(np.linspace(0.0, cumulative[-1], n), cumulative, betas)
    found[0], found[-1] = 0.0, 1.0
    return found
