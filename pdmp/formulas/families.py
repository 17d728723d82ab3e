"""Families of regressions by formula: rows of `pdmp.models.families`, by name, and default priors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pdmp.data.tables import did_you_mean
from pdmp.formulas.totals import Totals
from pdmp.models.families import FAMILIES, LINKS, LOG_ODDS, Family, categorical, multinomial
from pdmp.models.priors import LKJ, HalfCauchy, HalfNormal, Normal, Prior
from pdmp.models.regressions import likelihoods

WIDTH = 2.5  #: standard deviation of default priors, in units of the response's over the column's
OTHER_WIDTH = 1.0  #: instead of `WIDTH`, of coefficients of the logarithm of a parameter beside the first
ROUNDED = 1e-12  #: the standard deviation of a constant of size 1 is below it
#: Slopes of links at a mean.
RISES = {"identity": lambda m: 1.0, "sqrt": lambda m: 0.5 / math.sqrt(m), "inverse": lambda m: m**-2}
MEASURED = ("number", "positive", "positive or 0", "count")  #: responses that have a unit
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
    "negativebinomial": "negative_binomial",
    "zero_inflated_negativebinomial": "zero_inflated_negative_binomial",
    "hurdle_negativebinomial": "hurdle_negative_binomial",
    "cratio": "sratio",  # the same with the logit link, which is symmetric
}
_QUANTILES = "'student_t' is robust as well, and has the quantiles of predictions"
#: Families of other tools that there are not, and what comes closest.
INSTEAD = {
    "asym_laplace": _QUANTILES,
    "asymmetriclaplace": _QUANTILES,
    "laplace": "'student_t' is robust as well",
    "shifted_lognormal": "'lognormal' is the law of times less a shift that is known",
    "wiener": "'lognormal' is a law of the times, whatever the decisions",
    "cox": "'weibull' and 'exponential' have proportional hazards",
}
#: Families of categories without an order, whose predictors are those of the data: what makes them of names.
NOMINAL = {"categorical": categorical, "multinomial": multinomial}
#: Of families that have compiled regressions of their own, in files and with `select`. Others have one where effects of
#: groups are sub-sampled.
LAWS = {law.family.name: law for law in likelihoods.FAMILIES.values()}


def family_of(name: Any) -> Family:
    """The family of this name, or a `ValueError`."""
    if isinstance(name, Family):
        return name
    if not isinstance(name, str):
        raise TypeError(f"`family` must be the name of a family or a pdmp.Family, got {type(name).__name__}.")
    if name == "logit":
        return FAMILIES["bernoulli"]
    if name in NOMINAL:
        return NOMINAL[name](["1"])  # until the categories are known
    if name not in FAMILIES:
        if name in CALLED:
            raise ValueError(f"`family`: {name!r} is called {CALLED[name]!r} here.")
        if name in INSTEAD:
            raise ValueError(f"`family`: there is no {name!r}; {INSTEAD[name]}.")
        close = did_you_mean(name, [*FAMILIES, *NOMINAL])
        raise ValueError(f"`family` must be one of {', '.join(map(repr, [*FAMILIES, *NOMINAL]))}, got {name!r}{close}")
    return FAMILIES[name]


class Scale:
    """Of a parameter: where its predictor is by default, its unit, and its default priors, in the units of the data.

    `totals` are of responses over trials, stored as the family does where parameters have that unit, and of the columns
    and the offset of this parameter; `inside` is the prior of a parameter of an expression, which tells its unit.
    """

    def __init__(self, family: Family, parameter: str, totals: Totals, inside: Prior | None = None) -> None:
        link, is_first = family.links.get(parameter, "identity"), parameter == family.named[0]
        known = family.priors.get(parameter)
        self.totals, self.unit, self.middle, self.width, self.intercept = totals, 1.0, 0.0, WIDTH, None
        sd, mean = totals.y_sd or 1.0, totals.y_mean
        own, self.inside = parameter in family.units, "" if inside is None else parameter
        if inside is not None:
            self.unit, self.width, self.intercept = abs(getattr(inside, inside.scales[-1])), OTHER_WIDTH, inside
        elif link == "identity" and own:
            self.unit, self.middle = sd, totals.excess if is_first else mean
        elif known is not None and not known.positive:
            self.intercept = known
        elif not is_first and link == "log":
            self.width = OTHER_WIDTH
            self.middle = math.log(known.typical() if known else 1.0) + (math.log(sd) if own else 0.0)
        elif is_first and link == "log":
            total = max(totals.y_sum, 0.5) if family.response == "count" else totals.y_sum
            if family.response == "number" or total <= 0.0:
                self.middle = math.log(mean if mean > 0.0 else sd)
            else:
                self.middle = math.log(total) - math.log(totals.exposure)
        elif is_first and parameter in family.links and link in RISES and family.response in MEASURED:
            mean = max(mean, 0.5 / totals.rows) if family.response == "count" else mean or sd
            self.middle = float(LINKS[link].forward(mean))
            self.unit = RISES[link](abs(mean)) * sd

    def of_column(self, j: int) -> Prior:
        """Of the coefficient of fixed column j."""
        return Normal(0.0, self.width * self.unit / _spread(self.totals.sd[j], self.totals.largest[j]))

    def of_columns(
        self, design: Any, named: Priors, prefix: str = "", places: Iterable[int] | None = None
    ) -> list[Prior]:
        """Of all fixed columns or some: those that are named, by the column or its term, or the default ones."""
        term_of = {j: term for term, own in design.terms.items() for j in own}
        found = []
        for j in range(len(design.columns)) if places is None else places:
            if j == design.intercept:  # at the means of the columns
                default = self.intercept or Normal(self.middle, WIDTH * self.unit)
            else:
                default = self.of_column(j)
            alone = [self.inside] if self.inside and j == (design.intercept or 0) else []
            found.append(named.find(default, prefix + design.columns[j], prefix + term_of[j], *alone))
        return found

    def of_effects(self, k: int) -> Prior:
        """Of the standard deviation of the effects of group column k."""
        return HalfNormal(self.width * self.unit / _spread(self.totals.value_sd[k], self.totals.value_largest[k]))


def _spread(sd, largest):
    """The standard deviation of values, or the size of a constant, whose rounded standard deviation need not be 0."""
    return float(sd if sd > ROUNDED * largest else largest or 1.0)


def prior_of_constant(family: Family, parameter: str, sd: float) -> Prior:
    """The default prior of a parameter without a formula: of a positive number, or on the scale of its link."""
    link, own = family.links[parameter], sd if parameter in family.units else 1.0
    usual: Prior = HalfCauchy(WIDTH) if link == "log" else LOG_ODDS if link == "logit" else Normal(0.0, WIDTH)
    return family.priors.get(parameter, usual).scaled(own)


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

    def correlation(self, names: Sequence[str], grouping: str, prefix: str) -> Prior:
        """That of the correlations of these names, by what all of a grouping are called, or by the only name."""
        return self.find(LKJ(1.0), f"{prefix}cor({grouping})", *(names if len(names) == 1 else ()))

    def finish(self) -> None:
        """Raise a `ValueError` for a name that is no parameter."""
        for name in self.given:
            if name not in self.used:
                parameter, x, g = re.fullmatch(r"(.*: |)(?:([^|]*)\|)?(.*)", str(name), re.DOTALL).groups()
                spread = f"{parameter}sd({g})" if x == "1" else f"{parameter}sd({x}|{g})"
                close = did_you_mean(spread if spread in self.known else name, self.known)
                raise ValueError(f"`priors` names {name!r}, which is no parameter{close}")
