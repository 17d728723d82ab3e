"""Families of responses: their likelihood, the kind of response that they need, and default priors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pdmp.data import did_you_mean
from pdmp.formulas.totals import Totals
from pdmp.models.priors import Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, Prior
from pdmp.models.regressions.likelihoods import (
    Likelihood,
    LogitLaw,
    NegativeBinomialLaw,
    NormalLaw,
    PoissonLaw,
    ProbitLaw,
    StudentTLaw,
)

WIDTH = 2.5  #: standard deviation of default priors, in units of the response's over the column's


class Family(NamedTuple):
    """One family."""

    name: str
    law: Callable[[], Likelihood]
    kind: str  #: of the response: "number", "label" or "count"
    link: str

    @property
    def in_units(self) -> bool:
        """Whether the linear predictor has the unit of the response."""
        return self.kind == "number"


FAMILIES = {
    "gaussian": Family("gaussian", NormalLaw, "number", "identity"),
    "student_t": Family("student_t", StudentTLaw, "number", "identity"),
    "bernoulli": Family("bernoulli", LogitLaw, "label", "logit"),
    "logit": Family("bernoulli", LogitLaw, "label", "logit"),
    "probit": Family("bernoulli", ProbitLaw, "label", "probit"),
    "poisson": Family("poisson", PoissonLaw, "count", "log"),
    "negative_binomial": Family("negative_binomial", NegativeBinomialLaw, "count", "log"),
}


#: What families are called elsewhere.
CALLED = {
    "binomial": "bernoulli",
    "logistic": "bernoulli",
    "logit": "bernoulli",
    "normal": "gaussian",
    "t": "student_t",
    "negbinomial": "negative_binomial",
}


def family_of(name: str) -> Family:
    """The family of this name, or a `ValueError`."""
    if name not in FAMILIES:
        close = did_you_mean(name, FAMILIES) if isinstance(name, str) else "."
        if name in CALLED:
            close = f"; did you mean {CALLED[name]!r}?"
        raise ValueError(f"`family` must be one of {', '.join(map(repr, FAMILIES))}, got {name!r}{close}")
    return FAMILIES[name]


class Defaults:
    """Default priors for a response and columns, in the units of the data.

    Parameters
    ----------
    family : Family
    totals : Totals
    """

    def __init__(self, family: Family, totals: Totals) -> None:
        self.unit, self.totals = (totals.y_sd or 1.0) if family.in_units else 1.0, totals
        if family.in_units:
            self.middle = totals.excess
        elif family.kind == "count":
            self.middle = math.log(max(totals.y_sum, 0.5)) - math.log(totals.exposure)
        else:
            self.middle = 0.0

    def intercept(self) -> Prior:
        """Around the response's mean, through the link."""
        return Normal(self.middle, WIDTH * self.unit)

    def coefficient(self, j: int) -> Prior:
        """Of fixed column j."""
        return Normal(0.0, WIDTH * self.unit / float(self.totals.sd[j] or self.totals.largest[j] or 1.0))

    def group_sd(self, k: int) -> Prior:
        """Of the standard deviation of the effects of group column k."""
        return HalfNormal(WIDTH * self.unit / float(self.totals.value_sd[k] or self.totals.value_largest[k] or 1.0))

    def dispersion(self, name: str) -> Prior:
        """Of a parameter of the law."""
        return {"sigma": HalfStudentT(4.0, self.unit), "nu": Gamma(2.0, 10.0), "alpha": HalfCauchy(1.0)}[name]


class Priors:
    """Priors that the user named, looked up by the names of a parameter; `finish` refuses those that nothing used."""

    def __init__(self, given: Mapping[str, Prior] | None) -> None:
        self.given = dict(given or {})
        self.used: set[str] = set()
        self.known: list[str] = []

    def find(self, default: Prior, *names: str) -> Prior:
        """The prior under the first of these names that was given, else the default."""
        self.known += names
        for name in names:
            if name in self.given:
                self.used.add(name)
                prior = self.given[name]
                if not isinstance(prior, Prior):
                    raise TypeError(
                        f"`priors`: that of {name!r} must be one of pdmp.models.priors, such as {default}, "
                        f"got {prior!r}."
                    )
                if prior.positive != default.positive:
                    what = "a positive number" if default.positive else "a number of either sign"
                    raise ValueError(f"`priors`: {name!r} is {what}, and {prior} is no prior of one; try {default}.")
                return prior
        return default

    def finish(self) -> None:
        """Raise a `ValueError` for a name that is no parameter."""
        for name in self.given:
            if name not in self.used:
                raise ValueError(f"`priors` names {name!r}, which is no parameter{did_you_mean(name, self.known)}")
