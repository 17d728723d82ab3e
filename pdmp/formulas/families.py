"""Families of regressions by formula: rows of `pdmp.models.families`, by name, and default priors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pdmp.data import did_you_mean
from pdmp.formulas.totals import Totals
from pdmp.models.families import FAMILIES, Family
from pdmp.models.priors import LKJ, HalfNormal, Normal, Prior
from pdmp.models.regressions import likelihoods

WIDTH = 2.5  #: standard deviation of default priors, in units of the response's over the column's
#: What families are called elsewhere.
CALLED = {
    "logit": "bernoulli",
    "logistic": "bernoulli",
    "normal": "gaussian",
    "t": "student_t",
    "student": "student_t",
    "negbinomial": "negative_binomial",
    "zero_inflated_negbinomial": "zero_inflated_negative_binomial",
    "hurdle_negbinomial": "hurdle_negative_binomial",
    "wald": "inverse_gaussian",
    "ordinal": "cumulative",
    "vonmises": "von_mises",
    "betabinomial": "beta_binomial",
}
#: Of families that have compiled regressions of their own: in files, with `select`, and with effects of many groups.
LAWS = {law.family.name: law for law in likelihoods.FAMILIES.values()}


def family_of(name: Any) -> Family:
    """The family of this name, or a `ValueError`."""
    if isinstance(name, Family):
        return name
    if not isinstance(name, str):
        raise TypeError(f"`family` must be the name of a family or a pdmp.Family, got {type(name).__name__}.")
    if name == "logit":
        return FAMILIES["bernoulli"]
    if name not in FAMILIES:
        close = did_you_mean(name, FAMILIES)
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
        self.family, self.totals = family, totals
        self.unit = (totals.y_sd or 1.0) if family.units else 1.0
        if family.units:
            self.middle = totals.excess
        elif family.response == "count":
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
        return self.family.priors[name].scaled(self.unit if name in self.family.units else 1.0)


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
                is_correlation = isinstance(default, LKJ)
                if prior.positive != default.positive or isinstance(prior, LKJ) != is_correlation:
                    what = "a positive number" if default.positive else "a number of either sign"
                    what, whose = ("of correlations", "them") if is_correlation else (what, "one")
                    raise ValueError(
                        f"`priors`: {name!r} is {what}, and {prior} is no prior of {whose}; try {default}."
                    )
                return prior
        return default

    def finish(self) -> None:
        """Raise a `ValueError` for a name that is no parameter."""
        for name in self.given:
            if name not in self.used:
                raise ValueError(f"`priors` names {name!r}, which is no parameter{did_you_mean(name, self.known)}")
