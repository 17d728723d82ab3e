r"""A bound predicted from noisy observations: local linear regression along the ray, and exact inversion of the result.

Since the last change of velocity the projected gradient was observed at times sᵢ as Gᵢ with noise variance cᵢ². Along a
ray G is nearly affine, so Gᵢ = b₀ + b₁ sᵢ + N(0, cᵢ²), with a flat prior on b₀ and b₁ ~ N(m, τ²). The bound is

    λ(s) = max(0, b₀ + b₁ s + k ρ(s)),    ρ(s)² = (1, s) Σ (1, s)ᵀ + c²,

with the posterior covariance Σ of (b₀, b₁) and the latest c²: k predictive standard deviations above the prediction. It
is inverted exactly as interpolated between nodes; as b₀ + b₁ s + k ρ(s) is convex, the chords lie above it.

References
----------
Pakman, Gilboa, Carlson & Paninski (2017), Stochastic Bouncy Particle Sampler, ICML, eqs 10 to 13 (regression and
bound), and its supplement, section B. The marginal likelihood of m and τ² with a flat prior on b₀ is that of
restricted maximum likelihood (Patterson & Thompson 1971).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pdmp.native.classes import helper, inlined, positive
from pdmp.thinning.piecewise import segment_arrival


class Observations(NamedTuple):
    """Sums over the observations since the last change of velocity, and the fit to them."""

    sums: np.ndarray  #: (7,) of 1/c², s/c², s²/c², G/c², sG/c²; the latest c²; their number
    fit: np.ndarray  #: (5,) b₀, b₁, Σ₀₀, Σ₀₁, Σ₁₁


def no_observations():
    """Empty `Observations`."""
    return Observations(np.zeros(7), np.zeros(5))


@inlined
def forget(observations):
    """Drop all observations: the velocity changed."""
    for k in range(7):
        observations.sums[k] = 0.0


@inlined
def observe(observations, s, g, c2):
    """Add G(s) = g with noise variance c2."""
    sums = observations.sums
    w = 1.0 / c2
    sums[0] += w
    sums[1] += w * s
    sums[2] += w * s * s
    sums[3] += w * g
    sums[4] += w * s * g
    sums[5] = c2
    sums[6] += 1.0


@inlined
def fit(observations, mean, variance):
    """Posterior of (b₀, b₁) under the slope prior N(mean, variance); returns b₁."""
    sums, out = observations.sums, observations.fit
    a, b, d = sums[0], sums[1], sums[2] + 1.0 / variance
    u0, u1 = sums[3], sums[4] + mean / variance
    det = a * d - b * b
    out[2] = d / det
    out[3] = -b / det
    out[4] = a / det
    out[0] = out[2] * u0 + out[3] * u1
    out[1] = out[3] * u0 + out[4] * u1
    return out[1]


#: Of what `learn` changes: mean and log variance of the slope's prior; running means of the information on each; steps.
MEAN, LOG_VARIANCE, MEAN_INFORMATION, VARIANCE_INFORMATION, STEPS = range(5)
LEAST_SD = 0.01  #: of the slope's prior, relative to its mean


def new_prior(mean, variance):
    """What `learn` starts from."""
    return np.array([mean, math.log(variance), 0.0, 0.0, 0.0])


@inlined
def likelihood_gradient(observations, mean, variance):
    """Derivatives of the log marginal likelihood in m and in log τ², and the information on each.

    With W = diag(1/c²), P = W - W1(1ᵀW1)⁻¹1ᵀW, q = sᵀPs and t = sᵀP(G - ms), b₀ and b₁ being integrated out:
    ∂/∂m = t / (1 + τ²q) and ∂/∂τ² = -½ [q / (1 + τ²q) - t² / (1 + τ²q)²].
    """
    sums = observations.sums
    q = sums[2] - sums[1] * sums[1] / sums[0]
    t = sums[4] - sums[1] * sums[3] / sums[0] - mean * q
    spread = 1.0 + variance * q
    share = variance * q / spread
    return t / spread, 0.5 * (variance * t * t / (spread * spread) - share), q / spread, 0.5 * share * share


@inlined
def learn(observations, prior):
    """One step of gradient ascent on the marginal likelihood of three observations or more, in m and in log τ².

    Steps are scaled by the mean information so far, and fall like n^-0.6 (Robbins and Monro's conditions).
    """
    if observations.sums[6] < 3.0:
        return
    g, h, a, b = likelihood_gradient(observations, prior[MEAN], math.exp(prior[LOG_VARIANCE]))
    prior[STEPS] += 1.0
    n = prior[STEPS]
    prior[MEAN_INFORMATION] += (a - prior[MEAN_INFORMATION]) / n
    prior[VARIANCE_INFORMATION] += (b - prior[VARIANCE_INFORMATION]) / n
    step = (n + 1.0) ** -0.6
    if prior[MEAN_INFORMATION] > 0.0:
        sd = math.exp(0.5 * prior[LOG_VARIANCE])
        prior[MEAN] += min(max(step * g / prior[MEAN_INFORMATION], -sd), sd)
    if prior[VARIANCE_INFORMATION] > 0.0:
        prior[LOG_VARIANCE] += min(max(step * h / prior[VARIANCE_INFORMATION], -0.5), 0.5)
    prior[LOG_VARIANCE] = max(prior[LOG_VARIANCE], 2.0 * math.log(LEAST_SD * abs(prior[MEAN]) + 1e-300))


@inlined
def with_slope(observations, slope):
    """Replace the fitted slope, and refit the intercept to it."""
    sums, out = observations.sums, observations.fit
    out[1] = slope
    out[0] = (sums[3] - slope * sums[1]) / sums[0]


@inlined
def spread(observations, s, c2):
    """ρ(s): standard deviation of an observation at s with noise variance c2."""
    out = observations.fit
    return math.sqrt(max(0.0, out[2] + 2.0 * out[3] * s + out[4] * s * s) + c2)


@inlined
def bound_at(observations, k, s):
    """λ(s)."""
    out = observations.fit
    return positive(out[0] + out[1] * s + k * spread(observations, s, observations.sums[5]))


@helper
def first_arrival(observations, k, s, step, cap, e):
    """Arrival after s of λ, interpolated between nodes `step` apart: (wait, λ there), or (cap, 0) when none by then."""
    waited = 0.0
    left = bound_at(observations, k, s)
    while waited < cap:
        width = min(step, cap - waited)
        right = bound_at(observations, k, s + waited + width)
        t = segment_arrival(left, right, width, e)
        if t < math.inf:
            bound = left + (right - left) * (t / width)
            return waited + t, 1e-300 if bound < 1e-300 else bound
        e -= 0.5 * (left + right) * width
        waited += width
        left = right
    return cap, 0.0
