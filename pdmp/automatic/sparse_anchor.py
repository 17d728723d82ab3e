"""Where a sticky sampler of a regression has its anchor: at a mode with the coefficients at 0 that are likely to be.

At the mode of the slab posterior each coefficient that should be 0 is about one standard deviation away from it. With
many of them a path whose coordinates are frozen at 0 is always far from such an anchor, and rows are looked at the more
often. Any anchor is exact; this one only saves rows.

References
----------
Carlin & Chib (1995), Bayesian model choice via Markov chain Monte Carlo methods, JRSS B 57; Dickey (1971), The weighted
likelihood ratio, Ann. Math. Statist. 42 (the ratio of the posterior's and the prior's density at 0).
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.models.priors import BetaBernoulli


def sparse_anchor(
    mean: np.ndarray, covariance: np.ndarray, kappa: np.ndarray, law: BetaBernoulli | None = None
) -> np.ndarray:
    """Mode (d,) of a normal approximation with some coefficients at 0, chosen one by one while a further one is likely.

    `mean` (d,) and `covariance` (d, d) are of the posterior under the slab. `kappa` (d,): prior odds times the slab's
    density at 0, of coefficients that may be 0, and 0 for all others; with a `law` of how many are not 0 the odds are
    1.
    """
    precision = np.linalg.inv(covariance)
    pull, chosen, free = precision @ mean, kappa == 0.0, int(np.sum(kappa > 0.0))
    anchor, count = np.zeros(len(mean)), 0
    while True:
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        anchor[inside] = np.linalg.solve(precision[np.ix_(inside, inside)], pull[inside])
        if len(outside) == 0:
            return anchor
        # Of each further coefficient, given that the rest is 0: its precision, and its mean times that.
        across = precision[np.ix_(outside, inside)]
        share = np.linalg.solve(precision[np.ix_(inside, inside)], across.T).T
        own = np.diag(precision)[outside] - np.sum(share * across, axis=1)
        left = pull[outside] - share @ pull[inside]
        log_odds = np.log(kappa[outside]) + 0.5 * np.log(math.tau / own) + 0.5 * left**2 / own
        if law is not None:
            log_odds += math.log((law.a + count) / (law.b + free - 1 - count))
        best = int(np.argmax(log_odds))
        if log_odds[best] <= 0.0:
            return anchor
        chosen[outside[best]], count = True, count + 1
