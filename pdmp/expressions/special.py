"""Special functions of compiled code: points. Relative errors are below 1e-12 where it is not said otherwise."""

from __future__ import annotations

import math

from pdmp.native.classes import helper, inlined
from pdmp.native.vectors import exp, log1p

SPLIT = 0.7  #: below that log(1 - e^-u) would cancel by the form for larger u
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
SQRT_HALF = math.sqrt(0.5)
TAIL = -8.0  #: below this argument Φ is computed from the continued fraction of the inverse Mills ratio
DEPTH = 16  #: of that fraction: at -8 the remainder is below rounding
LARGE = 30.0  #: argument from which ratios of Bessel functions are computed by their asymptotic series
LEVELS = 50  #: of the continued fraction below: at 30 the remainder is below rounding


@inlined
def expit(z):
    """1 / (1 + e^-z)."""
    return 1.0 / (1.0 + exp(-z))


@inlined
def expit1(z):
    """Its derivative."""
    e = exp(-abs(z))
    return e / ((1.0 + e) * (1.0 + e))


@inlined
def expit2(z):
    """The second."""
    e = exp(-abs(z))
    q = e / ((1.0 + e) * (1.0 + e)) * ((1.0 - e) / (1.0 + e))
    return -q if z > 0.0 else q


@inlined
def expit3(z):
    """The third."""
    q = expit1(z)
    return q * (1.0 - 6.0 * q)


@inlined
def expit4(z):
    """The fourth."""
    q = expit1(z)
    return expit2(z) * (1.0 - 12.0 * q)


@inlined
def softplus(z):
    """log(1 + e^z)."""
    return max(z, 0.0) + log1p(exp(-abs(z)))


@helper
def psi0(x):
    """ψ(x) of x > 0: the asymptotic series from 10 on, ψ(x) = ψ(x + 1) - 1/x below."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < 10.0:
        total -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    s = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))))))
    return total + math.log(x) - 0.5 / x - s


@helper
def psi1(x):
    """ψ'(x) of x > 0, in the same way."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < 10.0:
        total += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    s = r * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730 - r * 7 / 6))))))
    return total + 1.0 / x + 0.5 * r + s / x


@helper
def psi2(x):
    """ψ''(x) of x > 0, in the same way."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < 10.0:
        total -= 2.0 / (x * x * x)
        x += 1.0
    r = 1.0 / (x * x)
    s = 1 + 1 / x + r * (1 / 2 - r * (1 / 6 - r * (1 / 6 - r * (3 / 10 - r * (5 / 6 - r * (691 / 210 - r * 35 / 2))))))
    return total - r * s


@helper
def psi3(x):
    """ψ'''(x) of x > 0, in the same way."""
    if not x > 0.0:
        return math.nan
    total = 0.0
    while x < 12.0:
        total += 6.0 / (x * x * x * x)
        x += 1.0
    r = 1.0 / (x * x)
    s = 2 + 3 / x + r * (2 - r * (1 - r * (4 / 3 - r * (3 - r * (10 - r * 691 / 15)))))
    return total + s * r / x


@inlined
def _fraction(t):
    """φ(t) / Φ(-t) for t >= 8, by Laplace's continued fraction t + 1/(t + 2/(t + 3/(t + …)))."""
    tail = t
    for k in range(DEPTH, 0, -1):
        tail = t + k / tail
    return tail


@helper
def mills(z):
    """φ(z) / Φ(z), φ and Φ being the density and the distribution function of N(0, 1)."""
    if z < TAIL:
        return _fraction(-z)
    return math.exp(-0.5 * (z * z) - HALF_LOG_2PI) / (0.5 * math.erfc(-z * SQRT_HALF))


@helper
def log_ndtr(z):
    """log Φ(z)."""
    if z < TAIL:
        return -0.5 * (z * z) - HALF_LOG_2PI - math.log(_fraction(-z))
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(z * SQRT_HALF))
    return math.log(0.5 * math.erfc(-z * SQRT_HALF))


@helper
def mills1(z):
    """The derivative of `mills`, between -1 and 0."""
    if z < -30.0:  # the asymptotic series: there m + z is a small difference
        r = 1.0 / (z * z)
        return -(1.0 - r * (1.0 - r * (6.0 - r * (50.0 - r * (518.0 - r * 6354.0)))))
    m = mills(z)
    return -m * (m + z)


@helper
def mills2(z):
    """The second derivative of `mills`, between 0 and 0.2958; relative errors up to 1e-8 near -20."""
    if z < -20.0:  # by differentiating that series
        r = 1.0 / (z * z)
        return -2.0 * r / z * (1.0 - r * (12.0 - r * (150.0 - r * (2072.0 - r * (31770.0 - r * 538692.0)))))
    m = mills(z)
    return max(m * ((m + z) * (2.0 * m + z) - 1.0), 0.0)


@inlined
def reciprocal_expm1_above(u):
    """1 / (e^u - 1) of u > `SPLIT`; loops over it are vectorised."""
    t = exp(-u)
    return t / (1.0 - t)


@helper
def reciprocal_expm1(u):
    """1 / (e^u - 1), the derivative of log(1 - e^-u); of u > 0."""
    if u > SPLIT:
        return reciprocal_expm1_above(u)
    return 1.0 / math.expm1(u) if u > 0.0 else math.nan


@inlined
def log1mexp_above(u):
    """log(1 - e^-u) of u > `SPLIT`; loops over it are vectorised."""
    return log1p(-exp(-u))


@helper
def log1mexp(u):
    """log(1 - e^-u) of u > 0; -∞ of u < 0, as of an interval that is empty: of cuts that do not ascend."""
    if u > SPLIT:
        return log1mexp_above(u)
    if u > 0.0:
        return math.log(-math.expm1(-u))
    return -math.inf if u < 0.0 else math.nan


def _bessel_series(terms):
    """a_k of I₁(x) / I₀(x) = Σ a_k x^-k, from A' = 1 - A/x - A² of that ratio."""
    a = [1.0]
    for k in range(1, terms):
        a.append(0.5 * ((k - 2) * a[k - 1] - sum(a[j] * a[k - j] for j in range(1, k))))
    return tuple(a)


SERIES = _bessel_series(16)


@inlined
def _bessel_fractions(x):
    """r and s of A(x) = I₁(x) / I₀(x) = x r, r = 1 / (2 + x² s), s = 1 / (4 + x² / (6 + x² / (8 + …)))."""
    tail = 0.0
    for k in range(LEVELS, 2, -1):
        tail = x * x / (2.0 * k + tail)
    s = 1.0 / (4.0 + tail)
    return 1.0 / (2.0 + x * x * s), s


@helper
def log_i0(x):
    """log I₀(x) of x >= 0, I₀ the modified Bessel function of the first kind: its series, or that for large x."""
    if not x >= 0.0:
        return math.nan
    total = 0.0
    if x >= LARGE:
        for k in range(len(SERIES) - 1, 1, -1):
            total = (total + SERIES[k] / (k - 1)) / x
        return x - 0.5 * math.log(x) - HALF_LOG_2PI - total
    term, k = 1.0, 0
    while term > 1e-17 * total:
        k += 1
        term *= 0.25 * x * x / (k * k)
        total += term
    return math.log1p(total)


@helper
def bessel1(x):
    """Its derivative, A(x) = I₁(x) / I₀(x), between 0 and 1."""
    if not x >= 0.0:
        return math.nan
    if x >= LARGE:
        total = 0.0
        for k in range(len(SERIES) - 1, -1, -1):
            total = total / x + SERIES[k]
        return total
    r, _ = _bessel_fractions(x)
    return x * r


@helper
def bessel2(x):
    """The second, 1 - A/x - A², which falls from 1/2 to 0."""
    if not x >= 0.0:
        return math.nan
    if x >= LARGE:
        total = 0.0
        for k in range(len(SERIES) - 1, 0, -1):
            total = (total - k * SERIES[k]) / x
        return total / x
    r, _ = _bessel_fractions(x)
    return 1.0 - r - (x * r) * (x * r)


@helper
def bessel3(x):
    """The third, between -0.22447 and 0; relative errors up to 2e-11."""
    if not x >= 0.0:
        return math.nan
    if x >= LARGE:
        total = 0.0
        for k in range(len(SERIES) - 1, 0, -1):
            total = (total + k * (k + 1) * SERIES[k]) / x
        return total / (x * x)
    r, s = _bessel_fractions(x)
    return x * r * (r - s - 2.0 * (1.0 - r - (x * r) * (x * r)))
