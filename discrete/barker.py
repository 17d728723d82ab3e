"""The Barker rule: the sign of an increment from the gradient, and what gradient noise makes of it.

References
----------
Livingstone & Zanella (2022), The Barker proposal, JRSS B 84; Mauri & Zanella (2024), Robust approximate sampling via
stochastic gradient Barker dynamics, AISTATS, section 3.
"""

from __future__ import annotations

import math

from pdmp.compiled import inlined

C = 1.702  #: the logistic function is within 0.0095 of the normal cdf of x / 1.702
SPREAD = 0.1  #: sd of z, in units of σ
VANILLA, CORRECTED, EXTREME = range(3)
ESTIMATORS = {"vanilla": VANILLA, "corrected": CORRECTED, "extreme": EXTREME}


@inlined
def expit(x):
    """1 / (1 + exp(-x)), without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)


@inlined
def probability(estimator, z, g, tau):
    """Probability of +z, given the gradient g of log π with noise sd tau."""
    if estimator == EXTREME or estimator == CORRECTED and tau * abs(z) >= C:
        if z * g == 0.0:
            return 0.5
        return 1.0 if z * g > 0.0 else 0.0
    if estimator == CORRECTED:
        g *= C / math.sqrt(C * C - tau * tau * z * z)
    return expit(z * g)
