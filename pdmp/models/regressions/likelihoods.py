r"""Likelihoods of regressions with dispersion parameters: -log p(y | z) of one datum with the linear predictor z.

A likelihood has up to two dispersion parameters, which move as a and b on the scale of their links. `law_of` makes that
of any family with one linear predictor, one's own too, and of further data of the rows, such as trials; these are by
name, and their dispersions move by the logarithm:

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pdmp.expressions.derivatives import Derivatives
from pdmp.expressions.nodes import CONSTANT, trace
from pdmp.expressions.tape import Tape
from pdmp.models import families
from pdmp.models.families import LINKS, Family, Link, is_known, responses

THIRD = 4  #: tape after those of `Derivatives.tapes`: of the second derivative by z all derivatives


@dataclass(frozen=True, eq=False)
class Law:
    """A family of one linear predictor, and dispersions. Called, it returns itself."""

    name: str
    family: Family
    given: tuple[str, ...] = ()  #: further data of the family that rows have; the others are as usual

    @property
    def dispersions(self) -> tuple[str, ...]:
        """Names of the parameters beside the linear predictor's."""
        return self.family.parameters[1:]

    @property
    def has_unit(self) -> bool:
        """Whether the linear predictor has the unit of the responses as they are stored: both can be standardised.

        Then dispersions with that unit are all that the law has of it, which nobody knows of a family of one's own.
        What stands for a response of 0 has no unit.
        """
        own = {name: link for name, link in self.family.links.items() if name in self.family.units}
        usual = dict.fromkeys(own, "log") | {self.family.parameters[0]: "identity"}
        with_zeros = self.family.response.endswith("or 0")
        return own == usual and not (self.given or with_zeros) and is_known(self.family)

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

    def data(self, given: Sequence[Any]) -> list[Any]:
        """All further data of the family, of those that rows have."""
        own = dict(zip(self.given, given, strict=True))
        return [own.get(name, usual) for name, usual in self.family.data.items()]

    def mean(self, z: Any, a: Any = 0.0, b: Any = 0.0) -> np.ndarray:
        """Expected response, of any shape, with the usual further data; a and b broadcast."""
        return responses(self.family, [z, *(a, b)[: len(self.dispersions)]], self.data(()))

    def log_likelihood(self, z: Any, stored: Any, a: Any, b: Any, given: Sequence[Any] = ()) -> np.ndarray:
        """log p(y | z) up to a constant of y, which is as it is stored."""
        return -self.family.loss(stored, *self.data(given), z, *(a, b)[: len(self.dispersions)])

    def log_density(self, z: Any, y: Any, a: Any, b: Any, given: Sequence[Any] = ()) -> np.ndarray:
        """log p(y | z) with all constants, of arrays that broadcast."""
        return self.family.log_density(y, z, *(a, b)[: len(self.dispersions)], data=self.data(given))

    def log_constant(self, y: Any, given: Sequence[Any] = ()) -> np.ndarray | float:
        """What of that depends on data alone."""
        return self.family.log_constant(y, self.data(given))

    def draw(self, z: Any, a: Any, b: Any, rng: np.random.Generator) -> np.ndarray:
        """Responses drawn for z, with the usual further data; a and b broadcast."""
        return responses(self.family, [z, *(a, b)[: len(self.dispersions)]], self.data(()), rng)

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self) -> Law:
        return self

    def __reduce__(self) -> str | tuple:
        return self.name if FAMILIES.get(self.name) is self else (_carried, self._carried())

    def _carried(self):
        family = self.family
        usual = None if is_known(family) else {"links": family.links, "units": family.units, "data": family.data}
        return (self.name, family, self.given, usual)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is quadratic in z, and e^(-2a) is what the first dispersion does to its curvature."""
        third = self.derived.expression.derivative(0).derivative(0).derivative(0)
        return third.kind == CONSTANT and third.args == 0.0 and self.with_unit == self.dispersions

    @functools.cached_property
    def derived(self) -> Derivatives:
        """The expression and its derivatives."""
        q = len(self.given)
        return Derivatives(
            *trace(
                lambda y, *rest: self.family.loss(y, *self.data(rest[:q]), *rest[q:]), 1 + q, 1 + len(self.dispersions)
            )
        )

    @functools.cached_property
    def tapes(self) -> tuple[Tape, ...]:
        """`LOSS`, `GRADIENT`, `CURVATURE` and `THIRD`."""
        second = self.derived.expression.derivative(0).derivative(0)
        return (*self.derived.tapes, Tape([second.derivative(k) for k in range(self.derived.m)]))


def _carried(name, family, given, usual):
    """In another process, where functions of a family of one's own are not known, and no run needs them."""
    return Law(name, family if usual is None else Family(name, _not_carried, **usual), given)


def _not_carried(*values):
    raise ValueError("this likelihood is of a pdmp.Family of another process.")


def law_of(family: Family, given: Iterable[str] = ()) -> Law | None:
    """The law of a family, rows of which have further data of these names.

    None where it needs others, or more than a linear predictor and two numbers.
    """
    own = tuple(name for name in family.data if name in given)
    others = [name for name, usual in family.data.items() if usual is None and name not in own]
    others += [name for name in given if name not in own]
    if others or family.arrange is not None or family.is_nominal or family.needs or len(family.parameters) > 3:
        return None
    return next((law for law in FAMILIES.values() if law.family is family), None) or Law(family.name, family, own)


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
