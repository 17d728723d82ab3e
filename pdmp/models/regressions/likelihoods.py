r"""Likelihoods of regressions with dispersion parameters: -log p(y | z) of one datum with the linear predictor z.

A likelihood has up to two dispersion parameters, which move by their logarithms a and b:

===================== ============================================= ==================== ====================
name                  law of y                                      e^a                  e^b
===================== ============================================= ==================== ====================
`NormalLaw`           N(z, σ²)                                      σ, `sigma`
`StudentTLaw`         z + σ t_ν                                     σ, `sigma`           ν, `nu`
`LogitLaw`            P(y = 1) = 1 / (1 + e^-z)
`ProbitLaw`           P(y = 1) = Φ(z)
`PoissonLaw`          Poisson(e^z)
`NegativeBinomialLaw` mean μ = e^z, variance μ + μ² / α             α, `alpha`
===================== ============================================= ==================== ====================

Each is a `Law`, a row of the table at the end: one expression for -log p, in the functions of `pdmp.expressions`, and
in Python what is predicted. Derivatives, and what exact sub-sampling needs, come from the expression. ``NormalLaw()``
is its compiled form, of one class for all: what runs a likelihood is compiled once.

Expressions take y as `stored` keeps it: labels are ±1. Constants that depend on y alone are left out there, and are in
`log_density`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdmp.expressions.derivatives import Derivatives
from pdmp.expressions.nodes import exp, lgamma, log1p, log_ndtr, softplus, trace
from pdmp.expressions.tape import BEGIN, RESULT, STOP, Scratch, Tape, evaluate
from pdmp.native.classes import Compiled, compiled

THIRD = 4  #: tape after those of `Derivatives.tapes`: of the second derivative by z all derivatives


@dataclass(frozen=True, eq=False)
class Law:
    """A family: what is written of it. Called, it returns the `Likelihood`."""

    name: str
    loss: Callable  #: (y, z, a, b) -> -log p; only as many of a and b as there are dispersions
    mean: Callable  #: (z) -> expected response, of any shape
    log_density: Callable  #: (z, y, a, b) -> log p(y | z) with all constants, of arrays that broadcast; y as given
    draw: Callable  #: (z, a, b, rng) -> responses drawn for z; a and b broadcast
    dispersions: tuple[str, ...] = ()
    stored: Callable = np.asarray  #: (y) -> the responses as the expression takes them

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self) -> Likelihood:
        return Likelihood(self)

    @functools.cached_property
    def derived(self) -> Derivatives:
        """The expression and its derivatives."""
        derived = Derivatives()
        derived.expression, derived.m = trace(self.loss, 1, 1 + len(self.dispersions))
        return derived

    @functools.cached_property
    def tapes(self) -> tuple[Tape, ...]:
        """`LOSS`, `GRADIENT`, `CURVATURE` and `THIRD`."""
        second = self.derived.expression.derivative(0).derivative(0)
        return (*self.derived.tapes, Tape([second.derivative(k) for k in range(self.derived.m)]))


class Likelihood(Compiled):
    """The expressions of a `Law` as instructions.

    Parameters
    ----------
    law : Law
    """

    code: np.ndarray
    number: np.ndarray
    results: np.ndarray
    tapes: np.ndarray  #: (5, 3)
    registers: int
    count: int  #: functionals: z and the dispersions

    def __init__(self, law: Law) -> None:
        self.law, tapes = law, law.tapes
        self.code, self.number = np.concatenate([t.code for t in tapes]), np.concatenate([t.number for t in tapes])
        self.results = np.concatenate([t.results for t in tapes])
        ends = np.cumsum([0, *(len(t.code) for t in tapes)])
        results = np.cumsum([0, *(len(t.results) for t in tapes)])
        self.tapes = np.stack([ends[:-1], ends[1:], results[:-1]], axis=1)
        self.registers, self.count = max(t.registers for t in tapes), law.derived.m
        self.name, self.dispersions = law.name, law.dispersions
        self.stored, self.mean, self.log_density, self.draw = law.stored, law.mean, law.log_density, law.draw

    def __reduce__(self) -> tuple:
        return _likelihood, (self.name,)

    @compiled
    def run(self, which, n, data, eta, room):
        """Carry out a tape for n lanes, y in data (1, lanes); the place of its first result in `results`."""
        evaluate(self.code, self.number, self.tapes[which, BEGIN], self.tapes[which, STOP], n, data, eta, room)
        return self.tapes[which, RESULT]

    @compiled(allocates=True, inline=False)
    def at(self, which, result, z, y, a, b):
        """One result of a tape, of one datum."""
        data, eta, room = np.empty((1, 1)), np.empty((3, 1)), np.empty((self.registers, 1))
        data[0, 0], eta[0, 0], eta[1, 0], eta[2, 0] = y, z, a, b
        return room[self.results[self.run(which, 1, data, eta, room) + result], 0]

    def scratch(self, lanes: int = 1) -> Scratch:
        """What evaluating so many rows at once needs."""
        return Scratch(*(np.zeros((height, lanes)) for height in (self.count, self.count, 1, self.registers)))


def _likelihood(name):
    return FAMILIES[name]()


# ---------------------------------------------------------------------------------------------------------------
# The table


def _label(y: Any) -> Any:
    return 2.0 * y - 1.0


def _draw_label(mean):
    return lambda z, a, b, rng: (rng.random(np.shape(z)) < mean(z)).astype(float)


def _logistic(z):
    return 0.5 * (1.0 + np.tanh(0.5 * z))


def _normal_cdf(z):
    from scipy import special

    return special.ndtr(z)


def _log_density_of_probit(z, y, a, b):
    from scipy import special

    return special.log_ndtr(np.where(y > 0.0, z, -z))


def _student_t_loss(y, z, a, b):
    nu, q = exp(b), (y - z) ** 2 * exp(-2.0 * a - b)
    return 0.5 * (nu + 1.0) * log1p(q) + a + 0.5 * b + lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)


def _log_density_of_student_t(z, y, a, b):
    from scipy import stats

    return stats.t.logpdf(y, np.exp(b), loc=z, scale=np.exp(a))


def _log_density_of_poisson(z, y, a, b):
    from scipy import special

    return y * z - np.exp(z) - special.gammaln(y + 1.0)


def _negative_binomial_loss(y, z, a):
    alpha = exp(a)
    return lgamma(alpha) - lgamma(y + alpha) + y * (a - z) + (y + alpha) * softplus(z - a)


def _log_density_of_negative_binomial(z, y, a, b):
    from scipy import special

    alpha = np.exp(a)
    constant = special.gammaln(y + alpha) - special.gammaln(alpha) - special.gammaln(y + 1.0)
    return constant + y * (z - a) - (y + alpha) * np.logaddexp(0.0, z - a)


def _draw_negative_binomial(z, a, b, rng):
    gamma = rng.standard_gamma(np.broadcast_to(np.exp(a), np.shape(z)))
    return rng.poisson(np.exp(np.minimum(z - a, 40.0)) * gamma).astype(float)


NormalLaw = Law(
    name="NormalLaw",
    loss=lambda y, z, a: 0.5 * (y - z) ** 2 * exp(-2.0 * a) + a,
    dispersions=("sigma",),
    mean=np.asarray,
    log_density=lambda z, y, a, b: -0.5 * ((y - z) * np.exp(-a)) ** 2 - a - 0.5 * math.log(math.tau),
    draw=lambda z, a, b, rng: z + np.exp(a) * rng.standard_normal(np.shape(z)),
)
StudentTLaw = Law(
    name="StudentTLaw",
    loss=_student_t_loss,
    dispersions=("sigma", "nu"),
    mean=np.asarray,
    log_density=_log_density_of_student_t,
    draw=lambda z, a, b, rng: z + np.exp(a) * rng.standard_t(np.broadcast_to(np.exp(b), np.shape(z))),
)
LogitLaw = Law(
    name="LogitLaw",
    loss=lambda y, z: softplus(-y * z),
    stored=_label,
    mean=_logistic,
    log_density=lambda z, y, a, b: -np.logaddexp(0.0, np.where(y > 0.0, -z, z)),
    draw=_draw_label(_logistic),
)
ProbitLaw = Law(
    name="ProbitLaw",
    loss=lambda y, z: -log_ndtr(y * z),
    stored=_label,
    mean=_normal_cdf,
    log_density=_log_density_of_probit,
    draw=_draw_label(_normal_cdf),
)
PoissonLaw = Law(
    name="PoissonLaw",
    loss=lambda y, z: exp(z) - y * z,
    mean=np.exp,
    log_density=_log_density_of_poisson,
    draw=lambda z, a, b, rng: rng.poisson(np.exp(np.minimum(z, 40.0))).astype(float),
)
NegativeBinomialLaw = Law(
    name="NegativeBinomialLaw",
    loss=_negative_binomial_loss,
    dispersions=("alpha",),
    mean=np.exp,
    log_density=_log_density_of_negative_binomial,
    draw=_draw_negative_binomial,
)
#: All of them, by name.
FAMILIES = {law.name: law for law in (NormalLaw, StudentTLaw, LogitLaw, ProbitLaw, PoissonLaw, NegativeBinomialLaw)}
