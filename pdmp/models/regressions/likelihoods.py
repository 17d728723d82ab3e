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

Each is a `Law` of a row of `pdmp.models.families`, where expression, draws, means and constants are written.
Derivatives, and what exact sub-sampling needs, come from the expression: what runs a likelihood is compiled once.

Expressions take y as `stored` keeps it: labels are ±1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdmp.expressions.derivatives import Derivatives
from pdmp.expressions.nodes import CONSTANT, trace
from pdmp.expressions.tape import Tape
from pdmp.models import families
from pdmp.models.families import Family

THIRD = 4  #: tape after those of `Derivatives.tapes`: of the second derivative by z all derivatives


@dataclass(frozen=True, eq=False)
class Law:
    """A family of one linear predictor, and dispersions. Called, it returns itself."""

    name: str
    family: Family

    @property
    def dispersions(self) -> tuple[str, ...]:
        """Names of the parameters beside the linear predictor's, all positive."""
        return self.family.parameters[1:]

    @property
    def with_unit(self) -> tuple[str, ...]:
        """Those of these that have the unit of the response."""
        return tuple(name for name in self.dispersions if name in self.family.units)

    def stored(self, y: Any) -> Any:
        """The responses as the expression takes them."""
        return self.family.stored(y)

    def mean(self, z: Any) -> np.ndarray:
        """Expected response, of any shape: of these families it does not depend on the dispersions."""
        ones = [1.0] * len(self.dispersions)
        return self.family.mean(*self.family.inverse([z, *ones]))

    def log_density(self, z: Any, y: Any, a: Any, b: Any) -> np.ndarray:
        """log p(y | z) with all constants, of arrays that broadcast; y as given, or labels as they are stored."""
        if self.family.response == "label":
            y = np.maximum(y, 0.0)
        return self.family.log_density(y, z, *(a, b)[: len(self.dispersions)])

    def draw(self, z: Any, a: Any, b: Any, rng: np.random.Generator) -> np.ndarray:
        """Responses drawn for z; a and b broadcast."""
        return self.family.draw(rng, *self.family.inverse([z, *(a, b)[: len(self.dispersions)]]))

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self) -> Law:
        return self

    def __reduce__(self) -> tuple:
        return _law, (self.name,)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is quadratic in z, and e^(-2a) is what the first dispersion does to its curvature."""
        third = self.derived.expression.derivative(0).derivative(0).derivative(0)
        return third.kind == CONSTANT and third.args == 0.0 and self.with_unit == self.dispersions

    @functools.cached_property
    def derived(self) -> Derivatives:
        """The expression and its derivatives."""
        derived = Derivatives()
        derived.expression, derived.m = trace(self.family.loss, 1, 1 + len(self.dispersions))
        return derived

    @functools.cached_property
    def tapes(self) -> tuple[Tape, ...]:
        """`LOSS`, `GRADIENT`, `CURVATURE` and `THIRD`."""
        second = self.derived.expression.derivative(0).derivative(0)
        return (*self.derived.tapes, Tape([second.derivative(k) for k in range(self.derived.m)]))


def _law(name):
    return FAMILIES[name]


# ---------------------------------------------------------------------------------------------------------------
# The table


NormalLaw = Law("NormalLaw", families.gaussian)
StudentTLaw = Law("StudentTLaw", families.student_t)
LogitLaw = Law("LogitLaw", families.bernoulli)
ProbitLaw = Law("ProbitLaw", families.probit)
PoissonLaw = Law("PoissonLaw", families.poisson)
NegativeBinomialLaw = Law("NegativeBinomialLaw", families.negative_binomial)
#: All of them, by name.
FAMILIES = {law.name: law for law in (NormalLaw, StudentTLaw, LogitLaw, ProbitLaw, PoissonLaw, NegativeBinomialLaw)}
