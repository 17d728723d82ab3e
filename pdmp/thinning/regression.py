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

import numpy as np

from pdmp.native.classes import helper, inlined, positive_part
from pdmp.thinning.piecewise import segment_arrival

#: A record of sums over the observations since the last change of velocity, and of the line fitted to them.
LINE = np.dtype(
    [
        ("weight", float),  # Σ 1/c²
        ("weight_s", float),  # Σ s/c²
        ("weight_ss", float),  # Σ s²/c²
        ("weight_g", float),  # Σ G/c²
        ("weight_sg", float),  # Σ sG/c²
        ("latest_variance", float),  # c² of the latest observation
        ("count", float),  # number of observations
        ("intercept", float),  # b₀
        ("slope", float),  # b₁
        ("intercept_variance", float),  # Σ₀₀
        ("covariance", float),  # Σ₀₁
        ("slope_variance", float),  # Σ₁₁
    ]
)

#: A record of the normal prior of the slope, as `learn` changes it.
PRIOR = np.dtype(
    [
        ("mean", float),  # m
        ("log_variance", float),  # log τ²
        ("mean_information", float),  # running mean of the information on m
        ("variance_information", float),  # running mean of the information on log τ²
        ("steps", float),  # number of steps of gradient ascent
    ]
)


def new_line():
    """Array of one `LINE` without observations."""
    return np.zeros(1, LINE)


def new_prior(mean, variance):
    """Array of one `PRIOR`: what `learn` starts from."""
    prior = np.zeros(1, PRIOR)
    prior["mean"], prior["log_variance"] = mean, math.log(variance)
    return prior


@inlined
def forget(line):
    """Drop all observations, because the velocity has changed."""
    line["weight"], line["weight_s"], line["weight_ss"] = 0.0, 0.0, 0.0
    line["weight_g"], line["weight_sg"] = 0.0, 0.0
    line["latest_variance"], line["count"] = 0.0, 0.0


@inlined
def observe(line, s, g, c2):
    """Add G(s) = g with noise variance c2."""
    w = 1.0 / c2
    line["weight"] += w
    line["weight_s"] += w * s
    line["weight_ss"] += w * s * s
    line["weight_g"] += w * g
    line["weight_sg"] += w * s * g
    line["latest_variance"] = c2
    line["count"] += 1.0


@inlined
def fit(line, mean, variance):
    """Posterior of (b₀, b₁) under the slope prior N(mean, variance); returns b₁."""
    a, b, d = line["weight"], line["weight_s"], line["weight_ss"] + 1.0 / variance
    u0, u1 = line["weight_g"], line["weight_sg"] + mean / variance
    det = a * d - b * b
    line["intercept_variance"] = d / det
    line["covariance"] = -b / det
    line["slope_variance"] = a / det
    line["intercept"] = line["intercept_variance"] * u0 + line["covariance"] * u1
    line["slope"] = line["covariance"] * u0 + line["slope_variance"] * u1
    return line["slope"]


#: The standard deviation of the slope's prior is kept above this part of its mean.
LEAST_SD = 0.01


@inlined
def likelihood_gradient(line, mean, variance):
    """Derivatives of the log marginal likelihood in m and in log τ², and the information on each.

    With W = diag(1/c²), P = W - W1(1ᵀW1)⁻¹1ᵀW, q = sᵀPs and t = sᵀP(G - ms), b₀ and b₁ being integrated out:
    ∂/∂m = t / (1 + τ²q) and ∂/∂τ² = -½ [q / (1 + τ²q) - t² / (1 + τ²q)²].
    """
    q = line["weight_ss"] - line["weight_s"] * line["weight_s"] / line["weight"]
    t = line["weight_sg"] - line["weight_s"] * line["weight_g"] / line["weight"] - mean * q
    spread = 1.0 + variance * q
    share = variance * q / spread
    return t / spread, 0.5 * (variance * t * t / (spread * spread) - share), q / spread, 0.5 * share * share


@inlined
def learn(line, prior):
    """One step of gradient ascent on the marginal likelihood of three observations or more, in m and in log τ².

    Steps are scaled by the mean information so far, and fall like n^-0.6 (Robbins and Monro's conditions).
    """
    if line["count"] < 3.0:
        return
    g, h, a, b = likelihood_gradient(line, prior["mean"], math.exp(prior["log_variance"]))
    prior["steps"] += 1.0
    n = prior["steps"]
    prior["mean_information"] += (a - prior["mean_information"]) / n
    prior["variance_information"] += (b - prior["variance_information"]) / n
    step = (n + 1.0) ** -0.6
    if prior["mean_information"] > 0.0:
        sd = math.exp(0.5 * prior["log_variance"])
        prior["mean"] += min(max(step * g / prior["mean_information"], -sd), sd)
    if prior["variance_information"] > 0.0:
        prior["log_variance"] += min(max(step * h / prior["variance_information"], -0.5), 0.5)
    prior["log_variance"] = max(prior["log_variance"], 2.0 * math.log(LEAST_SD * abs(prior["mean"]) + 1e-300))


@inlined
def with_slope(line, slope):
    """Replace the fitted slope, and refit the intercept to it."""
    line["slope"] = slope
    line["intercept"] = (line["weight_g"] - slope * line["weight_s"]) / line["weight"]


@inlined
def spread(line, s, c2):
    """ρ(s): standard deviation of an observation at s with noise variance c2."""
    variance = line["intercept_variance"] + 2.0 * line["covariance"] * s + line["slope_variance"] * s * s
    return math.sqrt(max(0.0, variance) + c2)


@inlined
def bound_at(line, k, s):
    """λ(s)."""
    return positive_part(line["intercept"] + line["slope"] * s + k * spread(line, s, line["latest_variance"]))


@helper
def first_arrival(line, k, s, step, cap, e):
    """Arrival after s of λ, interpolated between nodes `step` apart: (wait, λ there), or (cap, 0) when none by then."""
    waited = 0.0
    left = bound_at(line, k, s)
    while waited < cap:
        width = min(step, cap - waited)
        right = bound_at(line, k, s + waited + width)
        t = segment_arrival(left, right, width, e)
        if t < math.inf:
            bound = left + (right - left) * (t / width)
            return waited + t, 1e-300 if bound < 1e-300 else bound
        e -= 0.5 * (left + right) * width
        waited += width
        left = right
    return cap, 0.0
