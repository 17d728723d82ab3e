"""Derivatives of the likelihoods of regressions by hand, and bounds on the third ones around a point."""

import itertools
import math

import numpy as np
from scipy.special import digamma, expit, log_ndtr, polygamma
from scipy.stats import norm

from pdmp.models.regressions.likelihoods import LogitLaw, NegativeBinomialLaw, NormalLaw, PoissonLaw, ProbitLaw


def gradient(law, z, y, a, b):
    """By z, a and b."""
    if law is NormalLaw:
        e = (y - z) * math.exp(-a)
        return -e * math.exp(-a), 1.0 - e * e, 0.0
    if law is LogitLaw:
        return -y * expit(-y * z), 0.0, 0.0
    if law is ProbitLaw:
        return -y * math.exp(norm.logpdf(z) - log_ndtr(y * z)), 0.0, 0.0
    if law is PoissonLaw:
        return math.exp(z) - y, 0.0, 0.0
    if law is NegativeBinomialLaw:
        alpha, soft = math.exp(a), np.logaddexp(0.0, z - a)
        by_a = alpha * (digamma(alpha) - digamma(y + alpha) + soft - 1.0) + (y + alpha) * expit(a - z)
        return (y + alpha) * expit(z - a) - y, by_a, 0.0
    nu, e = math.exp(b), (y - z) * math.exp(-a)
    q, ratio = e * e / nu, digamma(0.5 * nu) - digamma(0.5 * (nu + 1.0))
    by_b = 0.5 * nu * (math.log1p(q) + ratio) - 0.5 * (nu + 1.0) * q / (1.0 + q) + 0.5
    return -(nu + 1.0) * e * math.exp(-a) / (nu + e * e), 1.0 - (nu + 1.0) * (e * e) / (nu + e * e), by_b


def hessian(law, z, y, a, b):
    """By zz, za, zb, aa, ab and bb."""
    if law is NormalLaw:
        p = math.exp(-2.0 * a)
        return p, 2.0 * (y - z) * p, 0.0, 2.0 * (y - z) ** 2 * p, 0.0, 0.0
    if law is LogitLaw:
        return expit(z) * expit(-z), 0.0, 0.0, 0.0, 0.0, 0.0
    if law is ProbitLaw:
        m = math.exp(norm.logpdf(z) - log_ndtr(y * z))
        return m * (m + y * z), 0.0, 0.0, 0.0, 0.0, 0.0
    if law is PoissonLaw:
        return math.exp(z), 0.0, 0.0, 0.0, 0.0, 0.0
    if law is NegativeBinomialLaw:
        alpha, p = math.exp(a), expit(z - a)
        q = (y + alpha) * p * (1.0 - p)
        own = alpha * (digamma(alpha) - digamma(y + alpha)) + alpha**2 * (polygamma(1, alpha) - polygamma(1, y + alpha))
        return q, alpha * p - q, 0.0, own + alpha * (np.logaddexp(0.0, z - a) - 2.0 * p) + q, 0.0, 0.0
    nu = math.exp(b)
    root = math.sqrt(nu) * math.exp(a)
    t = (y - z) / root
    q, n = t * t, nu + 1.0
    w = (1.0 + q) ** -2
    halves = 0.5 * nu * (digamma(0.5 * nu) - digamma(0.5 * n))
    halves += 0.25 * nu * nu * (polygamma(1, 0.5 * nu) - polygamma(1, 0.5 * n))
    bb = 0.5 * nu * (math.log1p(q) - q * (2.0 * q + 1.0) * w) + halves + 0.5 * q * w
    mixed = t * (1.0 - nu * q) * w / root
    return n / root**2 * (1.0 - q) * w, 2.0 * n / root * t * w, mixed, 2.0 * n * q * w, q * (1.0 - nu * q) * w, bb


def third_bounds(law, z, y, a, b):
    """Bounds on zzz, zza, zzb, zaa, zab, zbb, aaa, aab, abb and bbb."""
    found = np.zeros(10)
    if law in (LogitLaw, PoissonLaw):
        found[0] = hessian(law, z, y, a, b)[0]
    elif law is ProbitLaw:
        found[0] = 0.2958
    elif law is NormalLaw:
        p, r = math.exp(-2.0 * a), abs(y - z) + 0.5 * math.exp(a)
        found[[1, 3, 6]] = 2.0 * p, 4.0 * r * p, 4.0 * r * r * p
    elif law is NegativeBinomialLaw:
        alpha, p = math.exp(a), expit(z - a)
        q = (y + alpha) * p * (1.0 - p)
        total = alpha * (digamma(y + alpha) - digamma(alpha)) - min(y, 1.0)
        last = total + alpha * (np.logaddexp(0.0, z - a) - p + 2.0 * p * p) + 2.0 * q
        found[[0, 1, 3, 6]] = q, 2.0 * q, alpha * p * p + 2.0 * q, last
    else:
        nu = math.exp(b)
        root, n = math.sqrt(nu) * math.exp(a), nu + 1.0
        tail = 0.5 + max(0.0, math.log1p(((y - z) / root) ** 2) - 1.1)
        found[:3] = 1.46 * n / root**3, 2.0 * n / root**2, (1.0 + 0.38 * n) / root**2
        found[3:6] = np.array([0.87, 0.61, 0.31]) * n / root
        found[6:] = 0.4 * n, 0.5 * nu + 0.2 * n, 1.3 * nu + 0.1, 0.5 * nu * (tail + 1.0) + 0.11
    return found


def growth(law, a, b):
    """Rates g: at (z + ζ, a + α, b + β) third derivatives are at most the bounds times exp(g·(|ζ|, |α|, |β|))."""
    if law is NormalLaw:
        return 4.0 * math.exp(-a), 2.0, 0.0
    if law in (LogitLaw, PoissonLaw):
        return 1.0, 0.0, 0.0
    if law is ProbitLaw:
        return 0.0, 0.0, 0.0
    return (2.0, 2.0, 0.0) if law is NegativeBinomialLaw else (2.0 * math.exp(-a - 0.5 * b), 4.0, 3.0)


def symmetric(numbers, order, m=3):
    """A symmetric array (m, …, m) of its entries at ascending places."""
    out = np.zeros((m,) * order)
    for place, number in zip(itertools.combinations_with_replacement(range(m), order), numbers, strict=True):
        for turned in itertools.permutations(place):
            out[turned] = number
    return out
