r"""The coordinate that stands for the logarithm t of a standard deviation τ of effects: t = log c + g(θ).

The density of t falls as e^t where τ is below what the data tell from 0, and in that long tail a chain makes rare and
long visits. As a function of log(τ + c) the density ends there, at log c. With a smooth end,

    log(1 + e^g(θ)) = s(θ) = log(1 + e^(kθ)) / k,

so that θ is about log(τ + c) - log c above 0, and t about kθ below it, whose tail is k times as short.
"""

from __future__ import annotations

import math

import numpy as np

from pdmp.native.classes import inlined

SHARPNESS = 4.0  #: k
LARGEST = 7.0  #: of the absolute logarithm of c, in standardised units
LEAST = -30.0  #: of kθ, below which g is kθ - log k to rounding errors


@inlined
def soft(theta):
    """s."""
    z = SHARPNESS * theta
    return (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) / SHARPNESS


@inlined
def log_spread(theta):
    """g = log(e^s - 1)."""
    if SHARPNESS * theta < LEAST:
        return SHARPNESS * theta - math.log(SHARPNESS)
    s = soft(theta)
    return s + math.log(-math.expm1(-s))


@inlined
def rise(theta):
    """g', between 1 and k."""
    if SHARPNESS * theta < LEAST:
        return SHARPNESS
    return 1.0 / ((1.0 + math.exp(-SHARPNESS * theta)) * -math.expm1(-soft(theta)))


@inlined
def log_rise_derivative(theta):
    """g'' / g'."""
    if SHARPNESS * theta < LEAST:
        return 0.0
    s, share = soft(theta), 1.0 / (1.0 + math.exp(-SHARPNESS * theta))
    return SHARPNESS * (1.0 - share) + share * math.exp(-s) / math.expm1(-s)


def log_spreads(theta: np.ndarray) -> np.ndarray:
    """g of an array."""
    s = np.logaddexp(0.0, SHARPNESS * np.maximum(theta, LEAST / SHARPNESS)) / SHARPNESS
    low = SHARPNESS * theta - math.log(SHARPNESS)
    return np.where(SHARPNESS * theta < LEAST, low, s + np.log(-np.expm1(-s)))


def coordinate_of(t: float) -> float:
    """Where g is t."""
    s = max(t, 0.0) + math.log1p(math.exp(-abs(t)))  # log(1 + e^t)
    if SHARPNESS * s < math.exp(LEAST):
        return (t + math.log(SHARPNESS)) / SHARPNESS
    return s + math.log(-math.expm1(-SHARPNESS * s)) / SHARPNESS


def middle_of(t: float, information: np.ndarray) -> float:
    """log c: of a quarter of a usual τ = e^t, or of half of the least that data of these precisions tell from 0."""
    known = information[information > 0.0]
    least = -0.5 * math.log(np.median(known)) if len(known) else -math.inf
    return max(t - math.log(4.0), min(max(least, -LARGEST), LARGEST) - math.log(2.0))
