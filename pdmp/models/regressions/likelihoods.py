r"""Likelihoods of regressions with dispersion parameters: -log p(y | z) of one datum with the linear predictor z.

A likelihood has up to two dispersion parameters, which move by their logarithms a and b:

=================== ============================================= ==================== ====================
class               law of y                                      e^a                  e^b
=================== ============================================= ==================== ====================
`NormalLaw`         N(z, σ²)                                      σ, `sigma`
`StudentTLaw`       z + σ t_ν                                     σ, `sigma`           ν, `nu`
`LogitLaw`          P(y = 1) = 1 / (1 + e^-z)
`ProbitLaw`         P(y = 1) = Φ(z)
`PoissonLaw`        Poisson(e^z)
`NegativeBinomial`  mean μ = e^z, variance μ + μ² / α             α, `alpha`
=================== ============================================= ==================== ====================

Compiled methods take y as `Likelihood.stored` keeps it: labels are ±1. Constants that depend on y alone are left out
there, and are in `log_density`.

Exact sub-sampling (`pdmp.processes.regression_zigzag`, `pdmp.processes.regression_boomerang`) needs the second
derivatives by (z, a, b), `curvatures`, and bounds on the third ones around any point: `third_bounds` at the point, and
`growth`, the rates at which these grow exponentially with the distance from it.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from pdmp.models.targets.skew_normal import inverse_mills, log_cdf
from pdmp.native.classes import Compiled, compiled, inlined
from pdmp.native.vectors import exp


@inlined
def digamma(x):
    """ψ(x) = d/dx log Γ(x) of x > 0: the asymptotic series from 8 on, ψ(x) = ψ(x + 1) - 1/x below."""
    total = 0.0
    while x < 8.0:
        total -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = 1.0 / 240.0 - r * (1.0 / 132.0 - r * (691.0 / 32760.0))
    series = 1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * series))
    return total + math.log(x) - 0.5 / x - r * series


@inlined
def softplus(z):
    """log(1 + e^z)."""
    return max(z, 0.0) + math.log1p(exp(-abs(z)))


@inlined
def trigamma(x):
    """ψ'(x) of x > 0, in the same way."""
    total = 0.0
    while x < 8.0:
        total += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1.0 / 42.0 - r * (1.0 / 30.0 - r * (5.0 / 66.0 - r * (691.0 / 2730.0)))
    return total + 1.0 / x + 0.5 * r + r / x * (1.0 / 6.0 - r * (1.0 / 30.0 - r * series))


class Likelihood(Compiled):
    """Base of the likelihoods: compiled terms and their derivatives, and in Python what is predicted."""

    #: Names of the dispersion parameters.
    dispersions: ClassVar[tuple[str, ...]] = ()
    #: A bound on the second derivative by z, for every z and y; infinite where there is none.
    curvature = math.inf

    # -- compiled -------------------------------------------------------------------------------------------------

    @compiled
    def loss(self, z, y, a, b):
        return math.nan

    @compiled
    def by_margin(self, z, y, a, b):
        return math.nan

    @compiled
    def by_first(self, z, y, a, b):
        return 0.0

    @compiled
    def by_second(self, z, y, a, b):
        return 0.0

    @compiled
    def second_derivative(self, z, y, a, b):
        return math.nan

    @compiled
    def curvatures(self, z, y, a, b):
        """Second derivatives (zz, za, zb, aa, ab, bb) of the loss."""
        return self.second_derivative(z, y, a, b), 0.0, 0.0, 0.0, 0.0, 0.0

    @compiled
    def third_bounds(self, z, y, a, b):
        """Bounds (zzz, zza, zzb, zaa, zab, zbb, aaa, aab, abb, bbb) on the absolute third derivatives of the loss.

        At (z + ζ, a + α, b + β) they are at most these times exp(g·(|ζ|, |α|, |β|)), g of `growth`.
        """
        return math.nan, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0

    @compiled
    def growth(self, a, b):
        """g, at the same a and b."""
        return 1.0, 0.0, 0.0

    # -- Python ---------------------------------------------------------------------------------------------------

    def stored(self, y):
        """The responses as compiled code reads them."""
        return y

    def mean(self, z):
        """Expected response for z, of any shape."""
        raise NotImplementedError

    def log_density(self, z, y, a, b):
        """log p(y | z) with all constants, of arrays that broadcast; y as given, not as stored."""
        raise NotImplementedError

    def draw(self, z, a, b, rng):
        """Responses drawn for z; a and b broadcast."""
        raise NotImplementedError


class NormalLaw(Likelihood):
    """y ~ N(z, σ²)."""

    dispersions = ("sigma",)

    @compiled
    def loss(self, z, y, a, b):
        e = (y - z) * exp(-a)
        return 0.5 * e * e + a

    @compiled
    def by_margin(self, z, y, a, b):
        return (z - y) * exp(-2.0 * a)

    @compiled
    def by_first(self, z, y, a, b):
        e = (y - z) * exp(-a)
        return 1.0 - e * e

    @compiled
    def second_derivative(self, z, y, a, b):
        return exp(-2.0 * a)

    @compiled
    def curvatures(self, z, y, a, b):
        precision = exp(-2.0 * a)
        return precision, 2.0 * (y - z) * precision, 0.0, 2.0 * (y - z) * (y - z) * precision, 0.0, 0.0

    @compiled
    def third_bounds(self, z, y, a, b):
        # |y - z| + |ζ| <= r exp(|ζ| 2 / σ), as r has the half of σ in it.
        p, r = exp(-2.0 * a), abs(y - z) + 0.5 * exp(a)
        return 0.0, 2.0 * p, 0.0, 4.0 * r * p, 0.0, 0.0, 4.0 * r * r * p, 0.0, 0.0, 0.0

    @compiled
    def growth(self, a, b):
        return 4.0 * exp(-a), 2.0, 0.0

    def mean(self, z):
        return z

    def log_density(self, z, y, a, b):
        return -0.5 * ((y - z) * np.exp(-a)) ** 2 - a - 0.5 * math.log(math.tau)

    def draw(self, z, a, b, rng):
        return z + np.exp(a) * rng.standard_normal(np.shape(z))


class StudentTLaw(Likelihood):
    """y = z + σ t_ν."""

    dispersions = ("sigma", "nu")

    @compiled
    def loss(self, z, y, a, b):
        e, nu = (y - z) * exp(-a), exp(b)
        constant = math.lgamma(0.5 * nu) - math.lgamma(0.5 * (nu + 1.0)) + 0.5 * b
        return 0.5 * (nu + 1.0) * math.log1p(e * e / nu) + a + constant

    @compiled
    def by_margin(self, z, y, a, b):
        e, nu = y - z, exp(b)
        return -(nu + 1.0) * e / (nu * exp(2.0 * a) + e * e)

    @compiled
    def by_first(self, z, y, a, b):
        e, nu = (y - z) * exp(-a), exp(b)
        return 1.0 - (nu + 1.0) * (e * e) / (nu + e * e)

    @compiled
    def by_second(self, z, y, a, b):
        e, nu = (y - z) * exp(-a), exp(b)
        q = e * e / nu
        ratio = digamma(0.5 * nu) - digamma(0.5 * (nu + 1.0))
        return 0.5 * nu * (math.log1p(q) + ratio) - 0.5 * (nu + 1.0) * q / (1.0 + q) + 0.5

    @compiled
    def second_derivative(self, z, y, a, b):
        e, nu = y - z, exp(b)
        w = nu * exp(2.0 * a)
        return (nu + 1.0) * (w - e * e) / ((w + e * e) * (w + e * e))

    @compiled
    def curvatures(self, z, y, a, b):
        nu = exp(b)
        root = math.sqrt(nu) * exp(a)
        t = (y - z) / root
        q = t * t
        w = 1.0 / ((1.0 + q) * (1.0 + q))
        halves = 0.5 * nu * (digamma(0.5 * nu) - digamma(0.5 * (nu + 1.0)))
        halves += 0.25 * nu * nu * (trigamma(0.5 * nu) - trigamma(0.5 * (nu + 1.0)))
        return (
            (nu + 1.0) / (root * root) * (1.0 - q) * w,
            2.0 * (nu + 1.0) / root * t * w,
            t * (1.0 - nu * q) * w / root,
            2.0 * (nu + 1.0) * q * w,
            q * (1.0 - nu * q) * w,
            0.5 * nu * (math.log1p(q) - q * (2.0 * q + 1.0) * w) + halves + 0.5 * q * w,
        )

    @compiled
    def third_bounds(self, z, y, a, b):
        # With t = (y - z) / (√ν σ) these are rational functions of t, whose largest absolute values are the numbers
        # here, rounded up; but that by b alone, in which log(1 + t²) is unbounded, see `growth`.
        nu = exp(b)
        root, n = math.sqrt(nu) * exp(a), nu + 1.0
        t = (y - z) / root
        tail = 0.5 + max(0.0, math.log1p(t * t) - 1.1)
        return (
            1.46 * n / (root * root * root),
            2.0 * n / (root * root),
            (1.0 + 0.38 * n) / (root * root),
            0.87 * n / root,
            0.61 * n / root,
            0.31 * n / root,
            0.4 * n,
            0.5 * nu + 0.2 * n,
            1.3 * nu + 0.1,
            0.5 * nu * (tail + 1.0) + 0.11,
        )

    @compiled
    def growth(self, a, b):
        # log(1 + q) - q (2q + 1) / (1 + q)² is above -0.06, and below log(1 + q) - 1.1 where that is positive; and
        # log(1 + q) changes by at most 2|α| + |β| + |ζ| e^(|α| + |β|/2) / (√ν σ), where `tail` is at least 1/2.
        return 2.0 * exp(-a - 0.5 * b), 4.0, 3.0

    def mean(self, z):
        return z

    def log_density(self, z, y, a, b):
        from scipy import stats

        return stats.t.logpdf(y, np.exp(b), loc=z, scale=np.exp(a))

    def draw(self, z, a, b, rng):
        return z + np.exp(a) * rng.standard_t(np.broadcast_to(np.exp(b), np.shape(z)))


class _Labels(Likelihood):
    """Of labels 0 and 1, stored as ±1."""

    def stored(self, y):
        return 2.0 * y - 1.0

    def draw(self, z, a, b, rng):
        return (rng.random(np.shape(z)) < self.mean(z)).astype(float)


class LogitLaw(_Labels):
    """P(y = 1) = 1 / (1 + e^-z)."""

    curvature = 0.25

    @compiled
    def loss(self, z, y, a, b):
        return softplus(-y * z)

    @compiled
    def by_margin(self, z, y, a, b):
        return -y / (1.0 + exp(y * z))

    @compiled
    def second_derivative(self, z, y, a, b):
        p = 1.0 / (1.0 + exp(-z))
        return p * (1.0 - p)

    @compiled
    def third_bounds(self, z, y, a, b):
        return self.second_derivative(z, y, a, b), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0

    def mean(self, z):
        return 0.5 * (1.0 + np.tanh(0.5 * z))

    def log_density(self, z, y, a, b):
        return -np.logaddexp(0.0, np.where(y > 0.0, -z, z))


class ProbitLaw(_Labels):
    """P(y = 1) = Φ(z)."""

    curvature = 1.0

    @compiled
    def loss(self, z, y, a, b):
        return -log_cdf(y * z)

    @compiled
    def by_margin(self, z, y, a, b):
        return -y * inverse_mills(y * z)

    @compiled
    def second_derivative(self, z, y, a, b):
        m = inverse_mills(y * z)
        return m * (m + y * z)

    @compiled
    def third_bounds(self, z, y, a, b):
        return 0.2958, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0

    @compiled
    def growth(self, a, b):
        return 0.0, 0.0, 0.0

    def mean(self, z):
        from scipy import special

        return special.ndtr(z)

    def log_density(self, z, y, a, b):
        from scipy import special

        return special.log_ndtr(np.where(y > 0.0, z, -z))


class PoissonLaw(Likelihood):
    """y ~ Poisson(e^z)."""

    @compiled
    def loss(self, z, y, a, b):
        return exp(z) - y * z

    @compiled
    def by_margin(self, z, y, a, b):
        return exp(z) - y

    @compiled
    def second_derivative(self, z, y, a, b):
        return exp(z)

    @compiled
    def third_bounds(self, z, y, a, b):
        return exp(z), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0

    def mean(self, z):
        return np.exp(z)

    def log_density(self, z, y, a, b):
        from scipy import special

        return y * z - np.exp(z) - special.gammaln(y + 1.0)

    def draw(self, z, a, b, rng):
        return rng.poisson(np.exp(np.minimum(z, 40.0))).astype(float)


class NegativeBinomialLaw(Likelihood):
    """Counts with mean μ = e^z and variance μ + μ² / α."""

    dispersions = ("alpha",)

    @compiled
    def loss(self, z, y, a, b):
        alpha = exp(a)
        return math.lgamma(alpha) - math.lgamma(y + alpha) + y * (a - z) + (y + alpha) * softplus(z - a)

    @compiled
    def by_margin(self, z, y, a, b):
        return (y + exp(a)) / (1.0 + exp(a - z)) - y

    @compiled
    def by_first(self, z, y, a, b):
        alpha = exp(a)
        share = (y + alpha) / (1.0 + exp(z - a))  # α (y + α) / (α + μ)
        return alpha * (digamma(alpha) - digamma(y + alpha) + softplus(z - a) - 1.0) + share

    @compiled
    def second_derivative(self, z, y, a, b):
        p = 1.0 / (1.0 + exp(a - z))
        return (y + exp(a)) * p * (1.0 - p)

    @compiled
    def curvatures(self, z, y, a, b):
        alpha = exp(a)
        p = 1.0 / (1.0 + exp(a - z))
        q = (y + alpha) * p * (1.0 - p)
        own = alpha * (digamma(alpha) - digamma(y + alpha)) + alpha * alpha * (trigamma(alpha) - trigamma(y + alpha))
        return q, alpha * p - q, 0.0, own + alpha * (softplus(z - a) - 2.0 * p) + q, 0.0, 0.0

    @compiled
    def third_bounds(self, z, y, a, b):
        # Sums of αp, αp², q, α (softplus - p) and Σₖ α / (α + k) over 0 < k < y, each of which is positive and has a
        # logarithm that changes by at most 2|ζ| + 2|α|; the derivative by a of the sum's part is below it.
        alpha = exp(a)
        p = 1.0 / (1.0 + exp(a - z))
        q = (y + alpha) * p * (1.0 - p)
        total = alpha * (digamma(y + alpha) - digamma(alpha)) - min(y, 1.0)
        last = total + alpha * (softplus(z - a) - p + 2.0 * p * p) + 2.0 * q
        return q, 2.0 * q, 0.0, alpha * p * p + 2.0 * q, 0.0, 0.0, last, 0.0, 0.0, 0.0

    @compiled
    def growth(self, a, b):
        return 2.0, 2.0, 0.0

    def mean(self, z):
        return np.exp(z)

    def log_density(self, z, y, a, b):
        from scipy import special

        alpha = np.exp(a)
        constant = special.gammaln(y + alpha) - special.gammaln(alpha) - special.gammaln(y + 1.0)
        return constant + y * (z - a) - (y + alpha) * np.logaddexp(0.0, z - a)

    def draw(self, z, a, b, rng):
        alpha = np.broadcast_to(np.exp(a), np.shape(z))
        return rng.poisson(np.exp(np.minimum(z - a, 40.0)) * rng.standard_gamma(alpha)).astype(float)
