r"""Likelihoods of regressions with dispersion parameters: -log p(y | z) of one datum with the linear predictor z.

A likelihood has up to two dispersion parameters, which move as a and b on the scale of their links. `law_of` makes that
of any family with one linear predictor; these are by name, and their dispersions move by the logarithm:

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
from pdmp.models.families import LINKS, Family, Link, is_known

THIRD = 4  #: tape after those of `Derivatives.tapes`: of the second derivative by z all derivatives


@dataclass(frozen=True, eq=False)
class Law:
    """A family of one linear predictor, and dispersions. Called, it returns itself."""

    name: str
    family: Family

    @property
    def dispersions(self) -> tuple[str, ...]:
        """Names of the parameters beside the linear predictor's."""
        return self.family.parameters[1:]

    @property
    def has_unit(self) -> bool:
        """Whether the linear predictor has the unit of the responses as they are stored: both can be standardised."""
        return self.family.parameters[0] in self.family.units

    @property
    def with_unit(self) -> tuple[str, ...]:
        """Dispersions that have that unit too."""
        return tuple(name for name in self.dispersions if self.has_unit and name in self.family.units)

    def link(self, name: str) -> Link:
        """By which a dispersion moves."""
        return LINKS[self.family.links[name]]

    def stored(self, y: Any) -> Any:
        """The responses as the expression takes them."""
        return self.family.stored(y)

    def values(self, z: Any, a: Any, b: Any) -> list[np.ndarray]:
        """The family's parameters, all of one shape, as a number is drawn for each entry."""
        return self.family.inverse(np.broadcast_arrays(z, *(a, b)[: len(self.dispersions)]))

    def mean(self, z: Any, a: Any = 0.0, b: Any = 0.0) -> np.ndarray:
        """Expected response, of any shape; a and b broadcast."""
        return self.family.mean(*self.values(z, a, b))

    def log_likelihood(self, z: Any, stored: Any, a: Any, b: Any) -> np.ndarray:
        """log p(y | z) up to a constant of y, which is as it is stored."""
        return -self.family.loss(stored, *self.family.data.values(), z, *(a, b)[: len(self.dispersions)])

    def log_density(self, z: Any, y: Any, a: Any, b: Any) -> np.ndarray:
        """log p(y | z) with all constants, of arrays that broadcast."""
        return self.family.log_density(y, z, *(a, b)[: len(self.dispersions)])

    def draw(self, z: Any, a: Any, b: Any, rng: np.random.Generator) -> np.ndarray:
        """Responses drawn for z; a and b broadcast."""
        return self.family.draw(rng, *self.values(z, a, b))

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self) -> Law:
        return self

    def __reduce__(self) -> tuple:
        return (law_named, (self.name,)) if self.name in FAMILIES else (law_of, (self.family,))

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is quadratic in z, and e^(-2a) is what the first dispersion does to its curvature."""
        third = self.derived.expression.derivative(0).derivative(0).derivative(0)
        return third.kind == CONSTANT and third.args == 0.0 and self.with_unit == self.dispersions

    @functools.cached_property
    def derived(self) -> Derivatives:
        """The expression and its derivatives."""
        derived = Derivatives()
        usual = self.family.data.values()
        derived.expression, derived.m = trace(
            lambda y, *eta: self.family.loss(y, *usual, *eta), 1, 1 + len(self.dispersions)
        )
        return derived

    @functools.cached_property
    def tapes(self) -> tuple[Tape, ...]:
        """`LOSS`, `GRADIENT`, `CURVATURE` and `THIRD`."""
        second = self.derived.expression.derivative(0).derivative(0)
        return (*self.derived.tapes, Tape([second.derivative(k) for k in range(self.derived.m)]))


def law_named(name: str) -> Law:
    """One of the table."""
    return FAMILIES[name]


def law_of(family: Family) -> Law | None:
    """The law of a family; None where it needs more than a linear predictor and up to two numbers.

    A family of a user's own has none: its functions are not carried to another process.
    """
    found = next((law for law in FAMILIES.values() if law.family is family), None)
    has_one = family.arrange is None and not family.is_nominal and not family.needs and len(family.parameters) <= 3
    if found is None and has_one and None not in family.data.values() and is_known(family):
        return Law(family.name, family)
    return found


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
