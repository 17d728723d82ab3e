r"""Families of responses: one table, a row of which is all that is written of a likelihood.

A row is an expression l for one datum and what is predicted of it:

    log p(y | η) = constant(y) - l(stored(y), η_1, …, η_m),        parameter k = inverse link(η_k)

The expression is in the functionals η, in the parametrisation whose third derivatives are enclosed most tightly: sums
of functionals, such as the logarithm of a ratio, are affine there, so that their enclosures are exact. From it follow
gradients, Hessians and the bounds of exact sub-sampling (`pdmp.expressions`), and with the constant log-likelihoods.

Sources of the parametrisations: Bürkner (2017), brms, Journal of Statistical Software 80 (names, hurdles, inflation,
censoring); Ferrari & Cribari-Neto (2004), Journal of Applied Statistics 31, eq. 4 (beta); Lambert (1992), Technometrics
34, eq. 1 (inflation); Mullahy (1986), Journal of Econometrics 33 (hurdles); McCullagh (1980), JRSS B 42, section 1.2
(cumulative); Tutz (1990), British Journal of Mathematical and Statistical Psychology 43 (sratio); Agresti (2010),
Analysis of Ordinal Categorical Data, section 4.1 (acat); Azzalini (1985), Scandinavian Journal of Statistics 12, eq. 4
(skew normal); Hohle (1965), Journal of Experimental Psychology 69 (ex-Gaussian); Tweedie (1957), Annals of Mathematical
Statistics 28, eq. 1 (inverse Gaussian); Birnbaum (1968), in Lord & Novick, ch. 17 (item response); Fisher & Lee (1992),
Biometrics 48, section 2 (von Mises).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pdmp.errors import OURS
from pdmp.expressions.functionals import Block, Functional
from pdmp.expressions.nodes import (
    cos,
    exp,
    expit,
    expm1,
    lgamma,
    log,
    log1mexp,
    log1p,
    log_i0,
    log_ndtr,
    sin,
    softplus,
    where,
)
from pdmp.models.family_parts import compare_parts
from pdmp.models.priors import Exponential, Gamma, HalfCauchy, HalfNormal, HalfStudentT, Normal, Prior, StudentT
from pdmp.models.sums_of_terms import Terms
from pdmp.native.arguments import real, refuse_unreal, same_rows

#: What is stored of a response that is 0: below the logarithm of every number, of which the least is -745.
NOTHING = -1e3
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
LARGEST = math.exp(40.0)  #: mean of a count that is drawn


@dataclass(frozen=True)
class Link:
    """A link and its inverse, of numbers, arrays and traced values."""

    forward: Callable
    inverse: Callable


LINKS = {
    "identity": Link(lambda u: u, lambda z: z),
    "log": Link(log, exp),
    "logit": Link(lambda u: log(u) - log1p(-u), expit),
    "probit": Link(lambda u: _scipy("ndtri", u), lambda z: exp(log_ndtr(z))),
    "cloglog": Link(lambda u: log(-log1p(-u)), lambda z: -expm1(-exp(z))),
    "sqrt": Link(lambda u: u**0.5, lambda z: z * z),
    "inverse": Link(lambda u: u**-1, lambda z: z**-1),
    "tan_half": Link(lambda u: sin(u) / (1.0 + cos(u)), lambda z: 2.0 * np.arctan(z)),
}
#: Ranges of a response: a test, and words for what is allowed.
RANGES: dict[str, tuple[Callable, str]] = {
    "number": (lambda y: np.isfinite(y), "finite numbers"),
    "positive": (lambda y: (y > 0.0) & (y < math.inf), "finite numbers above 0"),
    "share": (lambda y: (y > 0.0) & (y < 1.0), "numbers above 0 and below 1"),
    "positive or 0": (lambda y: (y >= 0.0) & (y < math.inf), "finite numbers of at least 0"),
    "share or 0": (lambda y: (y >= 0.0) & (y < 1.0), "numbers of at least 0 and below 1"),
    "count": (lambda y: (y >= 0.0) & (y < math.inf) & (y == np.floor(y)), "whole numbers of at least 0"),
    "label": (lambda y: (y == 0.0) | (y == 1.0), "0 or 1"),
    "angle": (
        lambda y: np.abs(y) <= math.pi,
        "radians from -π to π (else np.angle(np.exp(1j * y)), of degrees with np.radians(y))",
    ),
}


@dataclass(frozen=True, eq=False)
class Family:
    """A likelihood, and what is predicted with it.

    Parameters
    ----------
    name : str
    loss : callable
        l(y, further data…, functionals…) -> minus the log density of one datum, up to `constant`: what `pdmp.terms`
        takes.
    draw : callable, optional
        (rng, parameters…, further data…) -> responses, of arrays that broadcast.
    mean : callable, optional
        (parameters…, further data…) -> expected responses.
    links : dict of str to str, optional
        The parameters, in the order of the functionals, with the link by which each is one: "identity", "log",
        "logit", "probit", "cloglog", "sqrt", "inverse" or, of angles, "tan_half". The names are those of the loss, all
        by identity, when omitted.
    constant : callable, optional
        (y, further data…) -> what of log p depends on data alone; 0 when omitted.
    response : {"number", "positive", "positive or 0", "share", "share or 0", "count", "label", "angle"}, \
default "number"
        What y may be.
    data : dict of str to (float or None), optional
        Further data by name, with the value of those that are not given; None for those that must be.
    stored : callable, optional
        (y) -> the responses as the loss takes them; as they are when omitted.
    arrange : callable, optional
        Of families with cuts: (y, mu, cuts) -> the functionals of the loss, those of draws, and further data.
    chances : callable, optional
        Of families of categories: (parameters…) -> the probability of each category, on a new last axis. Draws and, of
        those with cuts, means follow from it.
    priors : dict of str to Prior, optional
        What `pdmp.regression` takes by default for parameters without a formula of their own: of positive numbers for
        the log link, else of the number on the scale of its link.
    units : sequence of str, optional
        Parameters with the unit of what `stored` gives: their default priors are in units of its standard deviation.
        The first parameter is one where it has the identity link, when omitted.
    needs : dict of str to str, optional
        Parameters that a regression must give a formula, and why.
    predictor : callable, optional
        (parameters…, further data…) -> what the mean is a function of, where it is not the first functional
        (`pdmp.formulas.nonlinear`).
    ends : (float, float), optional
        Of counts that are cut off, the least and the largest that could be seen (`truncated`); all when omitted.

    Raises
    ------
    TypeError, ValueError
        For a link or a range of responses that there is not, or names that do not fit the loss.

    See Also
    --------
    pdmp.terms : Rows of any expression.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> family = pdmp.Family(
    ...     "exponential", loss=lambda y, z: z + y * np.exp(-z), draw=lambda rng, mu: rng.exponential(mu),
    ...     mean=lambda mu: mu, links={"mu": "log"}, response="positive",
    ... )
    >>> p = pdmp.Parameters(beta=1)
    >>> model = pdmp.models.sum_of_terms(p, [family.rows([1.0, 2.0, 6.0], mu=np.ones((3, 1)) @ p.beta)])
    >>> np.round(model.predict(model.mode()), 3)
    array([3., 3., 3.])
    """

    name: str
    loss: Callable
    draw: Callable | None = None
    mean: Callable | None = None
    links: Mapping[str, str] | None = None
    constant: Callable | None = None
    response: str = "number"
    data: Mapping[str, float | None] = field(default_factory=dict)
    stored: Callable = np.asarray
    arrange: Callable | None = None
    chances: Callable | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)
    units: Sequence[str] | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    predictor: Callable | None = None
    ends: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        if self.response not in RANGES:
            raise ValueError(f"`response` must be one of {', '.join(map(repr, RANGES))}, got {self.response!r}.")
        own = list(inspect.signature(self.loss).parameters.values())
        several = any(p.kind == p.VAR_POSITIONAL for p in own)
        wanted = [p.name for p in own[1 + len(self.data) :]]
        if self.links is None:
            object.__setattr__(self, "links", dict.fromkeys(wanted, "identity"))
        if not isinstance(self.links, Mapping):
            raise TypeError(f"`links` must be a dict of the functionals' names, got {type(self.links).__name__}.")
        for name, link in self.links.items():
            if not isinstance(link, str) or link not in LINKS:
                raise ValueError(f"`links`: that of {name!r} must be one of {', '.join(LINKS)}, got {link!r}.")
        if not several and len(wanted) != len(self.links):
            raise ValueError(
                f"`links` must name the {len(wanted)} functionals of the loss, {', '.join(wanted)}; it names "
                f"{', '.join(self.links)}."
            )
        if self.chances is not None and self.draw is None:
            object.__setattr__(self, "draw", lambda rng, *v: _draw_category(rng, self.chances(*v)))
        if self.chances is not None and self.arrange is not None and self.mean is None:
            object.__setattr__(self, "mean", lambda *v: (p := self.chances(*v)) @ np.arange(p.shape[-1]))
        if self.units is None:
            first = self.parameters[0]
            has = self.links[first] == "identity" and self.response == "number"
            object.__setattr__(self, "units", (first,) if has else ())
        for name, prior in self.priors.items():
            if not isinstance(prior, Prior):
                raise TypeError(f"`priors`: that of {name!r} must be one of pdmp.models.priors, got {prior!r}.")
        for asked, names in (("priors", self.priors), ("units", self.units), ("needs", self.needs)):
            for name in names:
                if name not in self.named:
                    raise ValueError(
                        f"`{asked}` names {name!r}; parameters of {self.name} are {', '.join(self.named)}."
                    )

    def __reduce__(self) -> tuple:
        # Functions of a user's own are not carried to another process, whatever its family is called.
        return _by_name, (self.name if is_known(self) else None, self.links)

    def __deepcopy__(self, memo: dict) -> Family:
        return self  # which cannot be changed

    @property
    def parameters(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.links)

    @property
    def named(self) -> tuple[str, ...]:
        """What `rows` is given a functional of: the parameters, or mu and the cuts."""
        return ("mu", "cuts") if self.arrange is not None else self.parameters

    @property
    def has_ascending_cuts(self) -> bool:
        """Whether there are cuts, and they must ascend."""
        return self.arrange is _cuts

    @property
    def is_counted(self) -> bool:
        """Whether the data of a row are counts of several categories."""
        return any(name.startswith(COUNTED) for name in self.data)

    @property
    def is_nominal(self) -> bool:
        """Whether responses are categories without an order, with a functional each but the first."""
        return self.chances is not None and self.arrange is None

    def linked(self, **links: str) -> Family:
        """The same family with other links of some of its parameters.

        Parameters
        ----------
        **links : str
            By the name of a parameter, as in `links`.

        Returns
        -------
        Family

        Raises
        ------
        ValueError
            For names of parameters and links that there are not.
        """
        if self.arrange is not None:
            raise ValueError(f"`links`: those of {self.name} cannot be changed.")
        for name, link in links.items():
            if name not in self.links:
                raise ValueError(f"`links` names {name!r}; parameters of {self.name} are {', '.join(self.links)}.")
            if not isinstance(link, str):
                raise TypeError(f"`{name}` must be the name of a link, got {type(link).__name__}.")
        new, count = {**self.links, **links}, len(self.data) + 1
        changed = [(LINKS[old], LINKS.get(new[name]), old != new[name]) for name, old in self.links.items()]

        def moved(z, a, b, differ):
            if not differ:
                return z
            if a is LINKS["logit"] and b is LINKS["probit"]:  # without rounding a probability to 1
                return log_ndtr(z) - log_ndtr(-z)
            if a is LINKS["logit"] and b is LINKS["cloglog"]:
                return exp(z) + log1mexp(exp(z))
            return a.forward(b.inverse(z))

        def loss(*args):
            eta = [moved(z, *change) for z, change in zip(args[count:], changed, strict=True)]
            return self.loss(*args[:count], *eta)

        found = replace(self, loss=loss, links=new)
        object.__setattr__(found, "_base", self.__dict__.get("_base", self))
        return found

    def rows(self, y: ArrayLike, /, **given: Any) -> Terms:
        """Rows of this family, for `pdmp.models.sum_of_terms`.

        Parameters
        ----------
        y : array_like, shape (N,)
            Responses.
        **given : Functional or array_like
            A functional for each parameter, on the scale of its link, such as ``mu=X @ p.beta, shape=p.log_shape``; and
            further data of the family, such as ``trials``. Cuts of a cumulative family are a whole block.

        Returns
        -------
        Terms

        Raises
        ------
        TypeError, ValueError
            For a parameter that is missing or unknown, and for responses outside of the family's range.

        Warns
        -----
        UserWarning
            Once for a family of one's own, the loss, draw, mean and constant of which are not of one law.
        """
        same_rows(y=y, **given)
        y = self.read(y)
        known = (*self.named, *(self.data if self.arrange is None else ()))
        for name in given:
            if name not in known:
                raise TypeError(f"{self.name} has no {name!r}; it has {', '.join(known)}.")
        for name in known:
            if name not in given and self.data.get(name) is None:
                raise TypeError(f"{self.name} needs `{name}`.")
        columns = {name: real(name, given[name]) for name in self.data if name in given}
        for name, values in columns.items():
            if values.shape not in ((), y.shape):
                raise ValueError(f"`{name}` must be a number, or of shape {y.shape} as `y` is, got {values.shape}.")
            columns[name] = np.broadcast_to(values, y.shape)
        self.check_data(y, columns)
        if self.arrange is None:
            at = drawn_at = [given[name] for name in self.links]
            rest = {name: value for name, value in self.data.items() if name not in columns}
        else:
            at, drawn_at, rest = self.arrange(y, given["mu"], given["cuts"])

        def loss(*args):
            own = dict(zip(columns, args[1 : 1 + len(columns)], strict=True))
            return self.loss(args[0], *(own.get(name, rest.get(name)) for name in self.data), *args[1 + len(columns) :])

        loss.__name__ = self.name
        found = Terms(loss, [self.stored(y), *columns.values()], at)
        further = () if self.arrange else tuple(columns.get(name, value) for name, value in self.data.items())
        found.observed = Observed(self, y, further, tuple(drawn_at))
        if self.has_ascending_cuts:
            found.ascending = given["cuts"], _usual_cuts(y, given["cuts"].size)
        return found

    def read(self, y: ArrayLike) -> np.ndarray:
        """Responses (N,), or a `ValueError`."""
        refuse_unreal("y", y)
        y = np.asarray(y)
        if y.ndim != 1 or y.dtype.kind not in "fiub" or not len(y):
            raise TypeError(f"`y` must be numbers of shape (N,), got {y.dtype} of {y.shape}.")
        y = y.astype(float)
        (inside, allowed), (low, high) = RANGES[self.response], self.ends
        bad = np.flatnonzero(~(inside(y) & (y >= low) & (y <= high)))
        if low > -math.inf:
            allowed = f"whole numbers from {low:g} {f'to {high:g}' if high < math.inf else 'on'}"
        if len(bad):
            raise ValueError(
                f"`y` of {self.name} must be {allowed}, got {y[bad[0]]:g} in row {bad[0]}, and {len(bad)} such in all."
            )
        return y

    def check_data(self, y: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Refuse further data that do not fit y; of those that are not looked at it makes numbers, in place."""
        for name in (name for name in columns if name.startswith(COUNTED)):
            self.replaced(name).read(columns[name])
        if "trials" in columns:
            self.replaced("trials").read(columns["trials"])
            _check_seen(self, columns["trials"], "trials")
            if np.any(y > columns["trials"]):
                i = int(np.argmax(y > columns["trials"]))
                raise ValueError(f"`y` must be at most `trials`, got {y[i]:g} of {columns['trials'][i]:g} in row {i}.")
        if self.is_counted:
            _check_seen(self, y + sum(columns[name] for name in columns if name.startswith(COUNTED)), "counts")
        if "se" in columns and not columns["se"].min() > 0.0:
            raise ValueError(f"`se` must be above 0, got {columns['se'].min():g} in row {np.argmin(columns['se'])}.")
        if {"lb", "ub"} <= columns.keys() and np.any(columns["lb"] >= columns["ub"]):
            i = int(np.argmax(columns["lb"] >= columns["ub"]))
            raise ValueError(f"`lb` must be below `ub`, got {columns['lb'][i]:g} and {columns['ub'][i]:g} in row {i}.")
        for name, sign in (("lb", 1.0), ("ub", -1.0)):
            if name in columns and not np.all(sign * (y - columns[name]) >= 0.0):
                i = int(np.argmin(sign * (y - columns[name])))
                raise ValueError(
                    f"`y` must be at {'least' if sign > 0.0 else 'most'} `{name}`, where it is cut off, got {y[i]:g} "
                    f"and {columns[name][i]:g} in row {i}."
                )
            if name in columns and self.response == "positive" and columns[name].min() <= 0.0:
                raise ValueError(f"`{name}` must be above 0, as {self.name} is, got {columns[name].min():g}.")
        if "censored" in self.data:
            censored = columns.get("censored", np.zeros_like(y))
            if not np.isin(censored, (-1.0, 0.0, 1.0, 2.0)).all():
                raise ValueError("`censored` must be 0 for seen, 1 right, -1 left and 2 interval censored.")
            if "upper" not in columns and np.any(censored == 2.0):
                raise ValueError(
                    "`censored` is 2, an interval, in some row, which ends at `upper`: y | cens(c, upper) in a formula."
                )
            upper = columns.get("upper", np.zeros_like(y))
            if np.any((censored == 2.0) & ~(upper > y)):
                i = int(np.argmax((censored == 2.0) & ~(upper > y)))
                raise ValueError(f"`upper` must be above `y` where `censored` is 2, got {upper[i]:g} in row {i}.")
            if "upper" in columns:  # what is not looked at has a number all the same
                columns["upper"] = np.where(censored == 2.0, upper, 2.0 * y)
        own = self.__dict__.get("_within", self)
        if "_compared" not in own.__dict__ and is_own(own):
            object.__setattr__(own, "_compared", True)  # once, whatever comes of it
            compare_parts(own, y, columns)

    @property
    def described(self) -> str:
        """The family and the link of its first parameter, in words."""
        if self.predictor is not None:
            return f"{self.name} of an expression"
        for (name, link), family in VARIANTS.items():
            if family is self.__dict__.get("_base", self):
                return f"{name} with the {link} link"
        return f"{self.name} with the {'logit' if self.is_nominal else self.links[self.parameters[0]]} link"

    def replaced(self, name: str) -> Family:
        """For messages about further data of counts."""
        return replace(self, name=f"{self.name}: `{name}`", response="count", ends=Family.ends)

    def inverse(self, eta: Sequence[ArrayLike]) -> list[np.ndarray]:
        """Parameters of functionals."""
        with np.errstate(over="ignore"):
            links = list(self.links.values()) if self.arrange is None else ["identity"] * len(eta)
            return [np.asarray(LINKS[link].inverse(z)) for link, z in zip(links, eta, strict=True)]

    def first_predictor(self, eta: Sequence[np.ndarray], further: Sequence = ()) -> np.ndarray:
        """What the mean is a function of: the first functional, or the expression that stands for it."""
        return eta[0] if self.predictor is None else self.predictor(self.inverse(eta), further)

    def log_density(self, y: ArrayLike, *eta: ArrayLike, data: Sequence = ()) -> np.ndarray:
        """log p(y) with all constants, at functionals η on the scale of the links; arrays broadcast.

        Parameters
        ----------
        y : array_like
        *eta : array_like
        data : sequence of array_like
            Further data; those that have a usual value may be left out.

        Returns
        -------
        ndarray
        """
        y, further = real("y", y), (*data, *list(self.data.values())[len(data) :])
        with np.errstate(all="ignore"):
            found = -np.asarray(self.loss(self.stored(y), *further, *eta), float)
            return found + self.log_constant(y, further)

    def log_constant(self, y: np.ndarray, further: Sequence = ()) -> np.ndarray | float:
        """What of it depends on data alone."""
        return 0.0 if self.constant is None else self.constant(y, *further)


@dataclass(frozen=True, eq=False)
class Observed:
    """What rows of a family know of themselves."""

    family: Family
    y: np.ndarray
    further: tuple
    at: tuple  #: functionals that draws look at

    def constant(self) -> np.ndarray:
        """Of each row."""
        if self.family is None:
            raise ValueError("these rows know no constants: they are of a pdmp.Family of another process.")
        return np.broadcast_to(np.asarray(self.family.log_constant(self.y, self.further), float), self.y.shape)

    def predict(self, x: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """Means at draws x (S, dim), or responses drawn with `rng`: (S, N)."""
        family, what = self.family, "mean" if rng is None else "draw"
        if family is None or getattr(family, what) is None:
            raise ValueError(f"these rows know no `{what}`: give it to pdmp.Family, in the same process.")
        shape = len(x), len(self.y)
        return responses(family, [np.broadcast_to(f.at(x), shape) for f in self.at], self.further, rng)


def responses(
    family: Family, eta: Sequence[np.ndarray], further: Sequence = (), rng: np.random.Generator | None = None
) -> np.ndarray:
    """Expected responses, or responses drawn with `rng`, at functionals that broadcast."""
    what = "mean" if rng is None else "draw"
    if getattr(family, what) is None:
        raise ValueError(f"{family.name} knows no `{what}`: give it to pdmp.Family.")
    values = family.inverse(np.broadcast_arrays(*eta))
    return np.asarray(family.mean(*values, *further) if rng is None else family.draw(rng, *values, *further), float)


def is_known(family: Family) -> bool:
    """Whether it is of the table, by any links."""
    base = family.__dict__.get("_base", family)
    return FAMILIES.get(base.name) is base or family.loss is _categorical


def is_own(family: Family) -> bool:
    """Whether a function of it is of the user's, without cuts and categories."""
    base = family.__dict__.get("_base", family)
    parts = [part for part in (base.loss, base.draw, base.mean, base.constant) if part is not None]
    plain = base.arrange is None and base.chances is None
    return plain and any((getattr(part, "__module__", None) or "").partition(".")[0] not in OURS for part in parts)


def _by_name(name, links):
    if name == "categorical":
        return categorical(tuple(links))
    family = FAMILIES.get(name)
    return family if family is None or family.links == links else family.linked(**links)


def _scipy(name, *args):
    from scipy import special

    return getattr(special, name)(*args)


def _stats(name, *args):
    from scipy import stats

    return getattr(stats, name)(*args)


# ---------------------------------------------------------------------------------------------------------------
# Parts of several rows of the table


def _check_seen(family, counts, what):
    """Refuse rows that are all of nothing: the posterior would be the prior."""
    if len(counts) and not np.any(counts > 0.0):
        raise ValueError(f"`y` of {family.name}: the {what} are 0 in every row, which say nothing.")


def _binomial_constant(y, trials):
    return -np.log1p(trials) - _scipy("betaln", y + 1.0, trials - y + 1.0)


def _negative_binomial(y, z, a):
    alpha = exp(a)
    return lgamma(alpha) - lgamma(y + alpha) + y * (a - z) + (y + alpha) * softplus(z - a)


def _student_t(y, z, a, b):
    nu, q = exp(b), (y - z) ** 2 * exp(-2.0 * a - b)
    return 0.5 * (nu + 1.0) * log1p(q) + a + 0.5 * b + lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)


def _gaussian(y, z, a):
    return 0.5 * (y - z) ** 2 * exp(-2.0 * a) + a


def _beta(y, z, a):
    p, q = exp(a) * expit(z), exp(a) * expit(-z)
    return lgamma(p) + lgamma(q) - lgamma(exp(a)) - p * log(y) - q * log1p(-y)


def _beta_binomial(y, trials, z, a):
    p, q = exp(a) * expit(z), exp(a) * expit(-z)
    known = lgamma(p) - lgamma(y + p) + lgamma(q) - lgamma(trials - y + q)
    return known + lgamma(trials + exp(a)) - lgamma(exp(a))


def _skew_normal(y, z, a, b):
    u = (y - z) * exp(-a)
    return a + 0.5 * u**2 - log_ndtr(b * u)


def _exgaussian(y, z, a, b):
    """By the mean z of all, log sd a of the normal part and log mean b of the exponential one."""
    u = (y - z) * exp(-b)
    return b + u + 1.0 - 0.5 * exp(2.0 * (a - b)) - log_ndtr((y - z) * exp(-a) + exp(b - a) - exp(a - b))


def _inflated(y, w, loss):
    """With P(y = 0) = expit(w) besides."""
    return softplus(w) + where(y == 0.0, loss(0.0) - softplus(w + loss(0.0)), loss(y))


def _hurdle(nothing):
    """P(y = 0) = expit(w), and else what is above 0 anyway; `nothing` is what is stored of 0."""
    return lambda stored, w, loss: where(stored == nothing, softplus(-w), softplus(w) + loss(stored))


def _survival(seen, log_survival, log_distribution):
    """Exactly seen, or censored: right 1, left -1, or 2 between two times."""

    def loss(ly, censored, upper, z, *rest):
        def beyond(t):
            return log_survival(t, z, *rest)

        gap = where(censored == 2.0, -log1mexp(log_distribution.gap(ly, log(upper), z, *rest)) - beyond(ly), 0.0)
        ends = where(censored == 1.0, -beyond(ly), -log_distribution(ly, z, *rest))
        return where(censored == 0.0, seen(ly, z, *rest), where(censored == 2.0, gap, ends))

    return loss


def _hazard(ly, z, a=0.0):
    """log of the integrated hazard."""
    return exp(a) * (ly - z)


def _weibull_left(ly, z, a=0.0):
    return log1mexp(exp(_hazard(ly, z, a)))


#: log S(t) - log S(upper), of hazards: a difference that is positive as it is written.
_weibull_left.gap = lambda ly, lu, z, a=0.0: exp(_hazard(ly, z, a)) * expm1(exp(a) * (lu - ly))


def _lognormal_left(ly, z, a):
    return log_ndtr((ly - z) * exp(-a))


_lognormal_left.gap = lambda ly, lu, z, a: log_ndtr((z - ly) * exp(-a)) - log_ndtr((z - lu) * exp(-a))
CENSORED = {"censored": 0.0, "upper": 1.0}
COUNTED = "count of "  #: what further data of multinomial families begin with
SURVIVAL = {"response": "positive", "stored": np.log, "data": CENSORED}


def _survival_constant(shift):
    return lambda y, censored, upper: np.where(np.asarray(censored) == 0.0, -np.log(y) - shift, 0.0)


def _all_cuts(y, mu, cuts):
    """mu and all cuts, of which loss and draws are; no further data."""
    if not isinstance(mu, Functional) or not isinstance(cuts, Block):
        raise TypeError("`mu` must be a functional and `cuts` a block of parameters, p.cut.")
    if y.max() > cuts.size:
        raise ValueError(f"`y` must be at most {cuts.size}, the number of cuts, got {y.max():.0f}.")
    each = (mu, *(cuts[j] for j in range(cuts.size)))
    return each, each, {}


def _cuts(y, mu, cuts):
    """Upper cut and gap of each row, of which the loss is one; mu and all cuts; and the highest category."""
    _, each, _ = _all_cuts(y, mu, cuts)
    k, last = y.astype(np.int64), cuts.size - 1
    empty = np.flatnonzero(np.bincount(k, minlength=cuts.size + 1)[1 : cuts.size] == 0)
    if len(empty):  # nothing would keep the cuts of that category in their order, and others would overlap
        raise ValueError(
            f"`y` has no row of category {empty[0] + 1}, between others: number the categories without it, with one "
            "cut less."
        )
    upper, inner = np.minimum(k, last), np.clip(k, 1, max(last, 1))
    gap = cuts[np.minimum(inner, last)] - cuts[inner - 1] if last else cuts[0 * k]
    return (cuts[upper] - mu, gap), each, {"top": float(cuts.size)}


def _usual_cuts(y, count):
    """Log odds of what is below each cut, ascending although categories may be empty."""
    below = np.searchsorted(np.sort(y), np.arange(count), "right") + 0.5 * np.arange(1, count + 1)
    share = below / (len(y) + 0.5 * (count + 1))
    return np.log(share / (1.0 - share))


def _chances(loss, further=0):
    """Chances of as many categories as there are values, and `further`, by their loss; the last axis is new."""

    def chances(*values):
        with np.errstate(all="ignore"):
            losses = [loss(float(k), *values) for k in range(len(values) + further)]
            return np.fmax(np.exp(-np.stack(np.broadcast_arrays(*losses), axis=-1)), 0.0)

    return chances


def _draw_category(rng, chances):
    below = np.cumsum(chances, axis=-1)[..., :-1]
    return np.sum(rng.random(below.shape[:-1])[..., None] > below, axis=-1).astype(float)


def _log_sum(z):
    """log Σ e^z, of symbols."""
    total = z[0]
    for one in z[1:]:
        total = total + softplus(one - total)
    return total


def _sratio(y, mu, *cuts):
    """Steps from one category to the next: each ends there with the chance expit(cut - mu)."""
    total = 0.0
    for j, cut in enumerate(cuts):
        total = total + where(y > j, softplus(cut - mu), where(y == j, softplus(mu - cut), 0.0))
    return total


def _scores(mu, *cuts):
    """Log chances of categories up to a constant: each is above the one before by mu - cut."""
    found = [0.0 * mu]
    for cut in cuts:
        found.append(found[-1] + (mu - cut))
    return found


def _acat(y, mu, *cuts):
    known = sum((where(y > j, mu - cut, 0.0) for j, cut in enumerate(cuts)), 0.0 * mu)
    return _log_sum(_scores(mu, *cuts)) - known


def _categorical(y, *z):
    known = sum((where(y == j, one, 0.0) for j, one in enumerate(z, 1)), 0.0 * z[0])
    return _log_sum([0.0 * z[0], *z]) - known


def categorical(names: Sequence[str]) -> Family:
    """Categories 0, 1, … without an order: the first is the reference, and each other has its log odds against it.

    Parameters
    ----------
    names : sequence of str
        Of all categories but the first, as which their functionals are given.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        For names that are not different ones.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> family, p = pdmp.families.categorical(["bus", "car"]), pdmp.Parameters(bus=1, car=1)
    >>> model = pdmp.models.sum_of_terms(p, [family.rows([0, 0, 1, 2, 2, 2], bus=p.bus, car=p.car)])
    >>> np.round(model.mode(), 3)
    array([-0.693,  0.405])
    """
    names = [str(name) for name in names]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"`names` must be different names of all categories but the first, got {names}.")
    return Family(
        "categorical",
        _categorical,
        links=dict.fromkeys(names, "identity"),
        response="count",
        chances=_chances(_categorical, 1),
        priors=dict.fromkeys(names, StudentT(3.0, 0.0, 2.5)),
    )


def multinomial(names: Sequence[str]) -> Family:
    """Counts of categories, of which each row has one of each: y is that of the first, the reference.

    Parameters
    ----------
    names : sequence of str
        Of all categories but the first, as which their functionals are given; their counts are "count of …".

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        For names that are not different ones.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> family, p = pdmp.families.multinomial(["bus"]), pdmp.Parameters(bus=1)
    >>> rows = family.rows([3, 4], bus=p.bus, **{"count of bus": [1, 6]})
    >>> np.round(pdmp.models.sum_of_terms(p, [rows]).mode(), 3)
    array([0.])
    """
    base, m = categorical(names), len(names)

    def loss(y, *rest):
        counts, z = rest[:m], rest[m:]
        total = sum(counts, y)
        return total * _log_sum([0.0 * z[0], *z]) - sum((c * one for c, one in zip(counts, z, strict=True)), 0.0 * z[0])

    def constant(y, *counts):
        return _scipy("gammaln", sum(counts, y) + 1.0) - sum(_scipy("gammaln", c + 1.0) for c in (y, *counts))

    data: dict[str, float | None] = {COUNTED + name: None for name in base.parameters}
    return replace(base, name="multinomial", loss=loss, draw=_no_draw, constant=constant, data=data)


def _no_draw(rng, *values):
    raise ValueError("draws of multinomial counts are not made: probabilities are, as predict(kind='probability') has.")


def _cumulative(name, log_distribution, inner):
    """By the upper cut h and the gap g below it; of the highest category h is the lower cut."""

    def loss(y, top, h, g):
        return where(y == 0.0, -log_distribution(h), where(y == top, -log_distribution(-h), inner(h, g)))

    def of_all(k, mu, *cuts):
        last, low = len(cuts) - 1, max(int(k) - 1, 0)
        return loss(k, last + 1.0, cuts[min(int(k), last)] - mu, cuts[min(low + 1, last)] - cuts[low])

    return Family(
        name,
        loss,
        links={"upper": "identity", "gap": "identity"},
        response="count",
        data={"top": None},
        arrange=_cuts,
        chances=_chances(of_all),
        priors=CUTS,
    )


def _draw_label(rng, p):
    return (rng.random(np.shape(p)) < p).astype(float)


def _draw_count(rng, mu):
    return rng.poisson(np.minimum(mu, LARGEST)).astype(float)


def _draw_skew_normal(rng, mu, sigma, alpha):
    d, shape = alpha / np.sqrt(1.0 + alpha**2), np.shape(mu)
    return mu + sigma * (d * np.abs(rng.standard_normal(shape)) + np.sqrt(1.0 - d**2) * rng.standard_normal(shape))


def _draw_beta(rng, mu, phi):
    return rng.beta(mu * phi, (1.0 - mu) * phi)


def mixture(name: str, one: Family, other: Family) -> Family:
    """A mixture of two families of the same responses: with the chance expit(θ) the first.

    Parameters
    ----------
    name : str
    one, other : Family
        Without further data, and with the same constant, such as one family twice. Parameters are those of both, with 1
        and 2 after their names, and theta by the logit link.

    Returns
    -------
    Family
    """
    m, parts = len(one.links), (one, other)
    links = {f"{p}{k}": link for k, part in enumerate(parts, 1) for p, link in part.links.items()}

    def loss(y, *eta):
        first, second, w = one.loss(y, *eta[:m]), other.loss(y, *eta[m:-1]), eta[-1]
        return softplus(w) + second - softplus(w + second - first)

    def draw(rng, *v):
        return np.where(rng.random(np.shape(v[-1])) < v[-1], one.draw(rng, *v[:m]), other.draw(rng, *v[m:-1]))

    return Family(
        name,
        loss,
        draw=draw,
        mean=lambda *v: v[-1] * one.mean(*v[:m]) + (1.0 - v[-1]) * other.mean(*v[m:-1]),
        links={**links, "theta": "logit"},
        constant=one.constant,
        response=one.response,
        stored=one.stored,
        priors={f"{p}{k}": law for k, part in enumerate(parts, 1) for p, law in part.priors.items()}
        | {"theta": LOG_ODDS},
        units=[f"{p}{k}" for k, part in enumerate(parts, 1) for p in part.units],
        needs={f"{other.parameters[0]}2": "the two components can be exchanged unless their priors differ"},
    )


# ---------------------------------------------------------------------------------------------------------------
# The table

SIGMA, ALPHA = {"sigma": HalfStudentT(4.0, 1.0)}, {"alpha": HalfCauchy(1.0)}
CUTS = {"cuts": StudentT(3.0, 0.0, 2.5)}
LOG_ODDS = Normal(0.0, 1.5)  #: of which the probability is about uniform

gaussian = Family(
    "gaussian",
    _gaussian,
    draw=lambda rng, mu, sigma: mu + sigma * rng.standard_normal(np.shape(mu)),
    mean=lambda mu, sigma: mu,
    links={"mu": "identity", "sigma": "log"},
    constant=lambda y: -HALF_LOG_2PI,
    priors=SIGMA,
    units=("mu", "sigma"),
)
student_t = Family(
    "student_t",
    _student_t,
    draw=lambda rng, mu, sigma, nu: mu + sigma * rng.standard_t(np.broadcast_to(nu, np.shape(mu))),
    mean=lambda mu, sigma, nu: mu,
    links={"mu": "identity", "sigma": "log", "nu": "log"},
    constant=lambda y: -0.5 * math.log(math.pi),
    priors=SIGMA | {"nu": Gamma(2.0, 10.0)},
    units=("mu", "sigma"),
)
LABEL = {"mean": lambda mu: mu, "draw": _draw_label, "response": "label", "stored": lambda y: 2.0 * y - 1.0}
bernoulli = Family("bernoulli", lambda y, z: softplus(-y * z), links={"mu": "logit"}, **LABEL)
probit = Family("probit", lambda y, z: -log_ndtr(y * z), links={"mu": "probit"}, **LABEL)
#: Two-parameter logistic: a functional "ability - difficulty" and a discrimination.
item_response = Family(
    "item_response",
    lambda y, z, a: softplus(-y * exp(a) * z),
    draw=lambda rng, mu, discrimination: _draw_label(rng, expit(discrimination * mu)),
    mean=lambda mu, discrimination: expit(discrimination * mu),
    links={"mu": "identity", "discrimination": "log"},
    response="label",
    stored=LABEL["stored"],
    priors={"discrimination": HalfNormal(1.0)},
    needs={"discrimination": "only its product with mu is in the likelihood"},
)
COUNT = {"response": "count", "constant": lambda y, *_: -_scipy("gammaln", y + 1.0)}
poisson = Family(
    "poisson", lambda y, z: exp(z) - y * z, draw=_draw_count, mean=lambda mu: mu, links={"mu": "log"}, **COUNT
)
negative_binomial = Family(
    "negative_binomial",
    _negative_binomial,
    draw=lambda rng, mu, alpha: _draw_count(rng, mu / alpha * rng.standard_gamma(np.broadcast_to(alpha, np.shape(mu)))),
    mean=lambda mu, alpha: mu,
    links={"mu": "log", "alpha": "log"},
    **COUNT,
    priors=ALPHA,
)
#: Failures before the first success: the negative binomial law with alpha 1.
geometric = Family(
    "geometric",
    lambda y, z: (y + 1.0) * softplus(z) - y * z,
    draw=lambda rng, mu: _draw_count(rng, mu * rng.standard_exponential(np.shape(mu))),
    mean=lambda mu: mu,
    links={"mu": "log"},
    response="count",
)


class Counts(NamedTuple):
    """How the probabilities of a law of counts follow from each other, and the law of SciPy."""

    step: Callable  #: (k, further data…, functionals…) -> log P(y = k) - log P(y = k - 1), of k > 0
    law: Callable  #: of the parameters and further data


#: Of families by name.
COUNTS = {
    "poisson": Counts(lambda k, z: z - math.log(k), lambda mu: _stats("poisson", mu)),
    "negative_binomial": Counts(
        lambda k, z, a: log(k - 1.0 + exp(a)) - math.log(k) - softplus(a - z),
        lambda mu, alpha: _stats("nbinom", alpha, alpha / (alpha + mu)),
    ),
    "geometric": Counts(lambda k, z: -softplus(-z), lambda mu: _stats("nbinom", 1.0, 1.0 / (1.0 + mu))),
    "binomial": Counts(
        lambda k, n, z: where(n >= k, log(n - k + 1.0) - math.log(k), NOTHING) + z,
        lambda mu, n: _stats("binom", n, mu),
    ),
}
MOST_TERMS = 100  #: of a sum: derivatives of many more are too deep for Python
FARTHEST = 700.0  #: predictor, for means that are 0, 1 or infinite as floats
RARE = 1e-8  #: a probability below which what is left of 1 is known too badly


def _log_terms(step, low, high):
    """log Σ P(y) / P(low) of low <= y <= high."""
    total = 0.0
    for k in range(high, low, -1):
        total = softplus(step(k) + total)
    return total


def _mean_of_terms(step, low, high):
    """E(y | low <= y <= high)."""
    above = total = 0.0
    for k in range(high, low, -1):
        odds = step(k) + total
        above, total = expit(odds) * (1.0 + above), softplus(odds)
    return low + above


def _quantile_of_terms(u, step, low, high):
    """The least y with P(y or less | low <= y <= high) >= u."""
    height = -_log_terms(step, low, high)
    y, below = np.full(np.shape(u), float(low)), np.exp(height)
    for k in range(low + 1, high + 1):
        y += u > below
        height = height + step(k)
        below = below + np.exp(height)
    return y


def _between(family, low, high):
    """Counts that are seen from `low` on, up to `high` if that is finite."""
    counts, is_open = COUNTS[family.name], high == math.inf
    last = 2 * low + 10 if is_open else int(high)  # if few are from `low` on, next to none are above it

    def stepping(args):
        return lambda k: counts.step(k, *args)

    def by_parameters(values):
        """Further data and functionals."""
        eta = [LINKS[link].forward(v) for link, v in zip(family.links.values(), values, strict=False)]
        return *values[len(eta) :], *(np.clip(z, -FARTHEST, FARTHEST) for z in eta)

    def log_chance(args):
        """log P(y >= low), from -log P(y < low), which is log(1 + T / S) where it is small.

        S are the terms below `low`, and T those from there to `last`.
        """
        none, step = family.loss(0.0, *args), stepping(args)
        if low == 1:
            return log1mexp(none)
        below = _log_terms(step, 0, low - 1)
        ratio = sum(map(step, range(1, low + 1))) + _log_terms(step, low, last) - below
        odds = 2.0 * (ratio - math.log(RARE))  # of which of both is taken
        return log1mexp(expit(odds) * (none - below) + expit(-odds) * softplus(ratio))

    def loss(y, *args):
        if is_open:
            return family.loss(y, *args) + log_chance(args)
        return family.loss(y, *args) - family.loss(float(low), *args) + _log_terms(stepping(args), low, last)

    def constant(y, *further):
        return family.log_constant(y, further) - (0.0 if is_open else family.log_constant(float(low), further))

    @np.errstate(all="ignore")
    def draw(rng, *values):
        u, args = rng.random(np.shape(values[0])), by_parameters(values)
        found = _quantile_of_terms(u * (1.0 - 1e-12), stepping(args), low, last)  # whatever a sum is short of 1
        if not is_open:
            return found
        mu, *others = np.minimum(values[0], LARGEST), *values[1:]
        below = counts.law(mu, *others).cdf(low - 1)
        whole = below == 0.0  # quantiles of large means can be NaN, or take for ever
        place = np.minimum(below + (1.0 - below) * u, 1.0 - 2.0**-53)  # of 1 it would be infinite
        usual = counts.law(np.where(whole, 0.5, mu), *others).ppf(place)
        if whole.any():
            usual = np.where(whole, family.draw(rng, *values), usual)
        return np.where(np.exp(log_chance(args)) > RARE, np.maximum(usual, low), found)

    @np.errstate(all="ignore")
    def mean(*values):
        args = by_parameters(values)
        step, found = stepping(args), _mean_of_terms(stepping(args), low, last)
        if not is_open:
            return found
        chance = np.exp(log_chance(args))
        usual = (family.mean(*values) - (1.0 - chance) * _mean_of_terms(step, 0, low - 1)) / chance
        return np.where(chance > RARE, usual, found)

    return replace(family, loss=loss, draw=draw, mean=mean, constant=constant, ends=(float(low), high))


def _of_zeros(kind, zi, base, chance):
    """`base` with a parameter more, the probability of zeros."""
    m = len(base.links)
    return Family(
        f"{kind}_{base.name}",
        lambda y, *rest: chance(y, rest[-1], lambda at: base.loss(at, *rest[:-1])),
        draw=lambda rng, *v: (rng.random(np.shape(v[0])) >= v[m]) * base.draw(rng, *v[:m], *v[m + 1 :]),
        mean=lambda *v: (1.0 - v[m]) * base.mean(*v[:m], *v[m + 1 :]),
        links={**base.links, zi: "logit"},
        constant=base.constant,
        response=base.response,
        data=base.data,
        stored=base.stored,
        priors={**base.priors, zi: LOG_ODDS},
        units=base.units,
    )


def _with_zero(kind, zi, base):
    """`base` with 0 among its responses; what its own loss is there is not looked at, and is that of 1/2."""
    inside = float(base.stored(0.5))

    def seen(y):
        return np.where(y == 0.0, 0.5, y)

    with_zero = replace(
        base,
        loss=lambda stored, *eta: base.loss(where(stored == NOTHING, inside, stored), *eta),
        constant=lambda y: np.where(y == 0.0, 0.0, base.constant(seen(y))),
        response=f"{base.response} or 0",
        stored=lambda y: np.where(y == 0.0, NOTHING, base.stored(seen(y))),
    )
    return _of_zeros(kind, zi, with_zero, _hurdle(NOTHING))


zero_inflated_poisson, zero_inflated_negative_binomial = (
    _of_zeros("zero_inflated", "zi", base, _inflated) for base in (poisson, negative_binomial)
)
hurdle_poisson, hurdle_negative_binomial = (
    _of_zeros("hurdle", "hu", _between(base, 1, math.inf), _hurdle(0.0)) for base in (poisson, negative_binomial)
)
TRIALS = {"response": "count", "data": {"trials": None}, "constant": _binomial_constant}
binomial = Family(
    "binomial",
    lambda y, trials, z: trials * softplus(z) - y * z,
    draw=lambda rng, mu, trials: rng.binomial(np.asarray(trials).astype(np.int64), mu).astype(float),
    mean=lambda mu, trials: trials * mu,
    links={"mu": "logit"},
    **TRIALS,
)
zero_inflated_binomial = _of_zeros("zero_inflated", "zi", binomial, _inflated)
beta_binomial = Family(
    "beta_binomial",
    _beta_binomial,
    draw=lambda rng, mu, phi, trials: rng.binomial(
        np.asarray(trials).astype(np.int64), _draw_beta(rng, mu, phi)
    ).astype(float),
    mean=lambda mu, phi, trials: trials * mu,
    links={"mu": "logit", "phi": "log"},
    **TRIALS,
    #: Of few trials many values of phi have about the binomial law: what is far above 100 is left out.
    priors={"phi": Exponential(100.0)},
)
gamma = Family(
    "gamma",
    lambda ly, z, a: exp(a) * (z - ly + exp(ly - z) - a) + lgamma(exp(a)),
    draw=lambda rng, mu, shape: mu / shape * rng.standard_gamma(np.broadcast_to(shape, np.shape(mu))),
    mean=lambda mu, shape: mu,
    links={"mu": "log", "shape": "log"},
    constant=lambda y: -np.log(y),
    response="positive",
    stored=np.log,
    priors={"shape": HalfCauchy(5.0)},
)
hurdle_gamma = _with_zero("hurdle", "hu", gamma)
inverse_gaussian = Family(
    "inverse_gaussian",
    lambda y, z, a: 0.5 * (y * exp(a - 2.0 * z) - 2.0 * exp(a - z) + exp(a) / y - a),
    draw=lambda rng, mu, shape: rng.wald(mu, np.broadcast_to(shape, np.shape(mu))),
    mean=lambda mu, shape: mu,
    links={"mu": "log", "shape": "log"},
    constant=lambda y: -HALF_LOG_2PI - 1.5 * np.log(y),
    response="positive",
    priors={"shape": HalfCauchy(5.0)},
    units=("shape",),
)
beta = Family(
    "beta",
    _beta,
    draw=_draw_beta,
    mean=lambda mu, phi: mu,
    links={"mu": "logit", "phi": "log"},
    constant=lambda y: -np.log(y) - np.log1p(-y),
    response="share",
    priors={"phi": HalfCauchy(10.0)},
)
zero_inflated_beta = _with_zero("zero_inflated", "zi", beta)
skew_normal = Family(
    "skew_normal",
    _skew_normal,
    draw=_draw_skew_normal,
    mean=lambda mu, sigma, alpha: mu + sigma * alpha * np.sqrt(2.0 / math.pi / (1.0 + alpha**2)),
    links={"mu": "identity", "sigma": "log", "alpha": "identity"},
    constant=lambda y: math.log(2.0) - HALF_LOG_2PI,
    priors=SIGMA | {"alpha": Normal(0.0, 4.0)},
    units=("mu", "sigma"),
)
#: A normal number and an exponential one, of mean beta, added; mu is the mean of the sum.
exgaussian = Family(
    "exgaussian",
    _exgaussian,
    draw=lambda rng, mu, sigma, beta: (
        mu + sigma * rng.standard_normal(np.shape(mu)) + beta * (rng.standard_exponential(np.shape(mu)) - 1.0)
    ),
    mean=lambda mu, sigma, beta: mu,
    links={"mu": "identity", "sigma": "log", "beta": "log"},
    priors=SIGMA | {"beta": HalfStudentT(4.0, 1.0)},
    units=("mu", "sigma", "beta"),
)
#: mu is the direction that angles y have on average: as tan(mu / 2) = z, cos(y - mu) is rational in z.
von_mises = Family(
    "von_mises",
    lambda y, z, a: log_i0(exp(a)) - exp(a) * (2.0 * (cos(y) + sin(y) * z) / (1.0 + z * z) - cos(y)),
    draw=lambda rng, mu, kappa: rng.vonmises(mu, np.broadcast_to(kappa, np.shape(mu))),
    mean=lambda mu, kappa: mu,
    links={"mu": "tan_half", "kappa": "log"},
    constant=lambda y: -2.0 * HALF_LOG_2PI,
    response="angle",
    #: Of mu that every direction is as probable as any other.
    priors={"mu": StudentT(1.0, 0.0, 1.0), "kappa": HalfCauchy(5.0)},
)
#: mu is the scale: log y is by e^-shape times a Gumbel variable above log mu.
weibull = Family(
    "weibull",
    _survival(
        lambda ly, z, a: exp(_hazard(ly, z, a)) - _hazard(ly, z, a) - a,
        lambda ly, z, a: -exp(_hazard(ly, z, a)),
        _weibull_left,
    ),
    draw=lambda rng, mu, shape, *_: mu * rng.standard_exponential(np.shape(mu)) ** (1.0 / shape),
    mean=lambda mu, shape, *_: mu * _scipy("gamma", 1.0 + 1.0 / shape),
    links={"mu": "log", "shape": "log"},
    constant=_survival_constant(0.0),
    **SURVIVAL,
    priors={"shape": HalfCauchy(2.0)},
)
exponential = Family(
    "exponential",
    _survival(lambda ly, z: exp(ly - z) - (ly - z), lambda ly, z: -exp(ly - z), _weibull_left),
    draw=lambda rng, mu, *_: mu * rng.standard_exponential(np.shape(mu)),
    mean=lambda mu, *_: mu,
    links={"mu": "log"},
    constant=_survival_constant(0.0),
    **SURVIVAL,
)
#: mu and sigma are of log y.
lognormal = Family(
    "lognormal",
    _survival(_gaussian, lambda ly, z, a: log_ndtr((z - ly) * exp(-a)), _lognormal_left),
    draw=lambda rng, mu, sigma, *_: np.exp(mu + sigma * rng.standard_normal(np.shape(mu))),
    mean=lambda mu, sigma, *_: np.exp(mu + 0.5 * sigma**2),
    links={"mu": "identity", "sigma": "log"},
    constant=_survival_constant(HALF_LOG_2PI),
    **SURVIVAL,
    priors=SIGMA,
    units=("mu", "sigma"),
)
#: Without censoring, which says nothing of zeros.
hurdle_lognormal = _with_zero(
    "hurdle",
    "hu",
    replace(lognormal, loss=_gaussian, constant=lambda y: -HALF_LOG_2PI - np.log(y), data={}),
)
cumulative = _cumulative(
    "cumulative", lambda h: -softplus(-h), lambda h, g: softplus(-h) + softplus(h - g) - log1mexp(g)
)
cumulative_probit = _cumulative(
    "cumulative_probit",
    log_ndtr,
    lambda h, g: -log_ndtr(h) - log1mexp(log_ndtr(h) - log_ndtr(h - g)),
)
#: Stopping ratios and adjacent categories, both by the logit link; their cuts need not ascend.
ALL_CUTS = {"links": {"location": "identity", "cuts": "identity"}, "response": "count", "arrange": _all_cuts}
sratio = Family("sratio", _sratio, chances=_chances(_sratio), **ALL_CUTS, priors=CUTS)
acat = Family("acat", _acat, chances=_chances(_acat), **ALL_CUTS, priors=CUTS)
mixture_gaussian = mixture("mixture_gaussian", gaussian, gaussian)
mixture_poisson = mixture("mixture_poisson", poisson, poisson)

#: All of them, by name.
FAMILIES = {found.name: found for found in list(globals().values()) if isinstance(found, Family)}
#: Families that are another one with another link of its first parameter.
VARIANTS = {
    ("bernoulli", "logit"): bernoulli,
    ("bernoulli", "probit"): probit,
    ("cumulative", "logit"): cumulative,
    ("cumulative", "probit"): cumulative_probit,
    ("sratio", "logit"): sratio,
    ("acat", "logit"): acat,
}

# ---------------------------------------------------------------------------------------------------------------
# Truncation


class Tails(NamedTuple):
    """Of a family: what is below and above t, as the loss has t, at functionals; and its law by parameters."""

    log_distribution: Callable
    log_survival: Callable
    quantile: Callable  #: (u, a, b, parameters…) -> y with the probability u of a < … < y, given a < … < b
    mean: Callable  #: (a, b, parameters…) -> E(y | a < y < b)


def _upwards(a, b):
    """Ends of an interval of a standard normal law, mirrored where it is nearer to the lower tail; whether it was."""
    lower = a + b < 0.0
    return np.where(lower, -b, a), np.where(lower, -a, b), lower


def _log_between(a, b):
    """log P(a < x < b) of a standard normal x."""
    a, b, _ = _upwards(a, b)
    first = _scipy("log_ndtr", -a)
    return first + np.log(-np.expm1(_scipy("log_ndtr", -b) - first))


def _normal_quantile(u, a, b, mu, sigma):
    a, b, lower = _upwards((a - mu) / sigma, (b - mu) / sigma)
    first = _scipy("log_ndtr", -a)
    part = np.expm1(_scipy("log_ndtr", -b) - first)
    z = -_scipy("ndtri_exp", first + np.log1p(np.where(lower, 1.0 - u, u) * part))
    return mu + sigma * np.where(lower, -z, z)


def _normal_mean(a, b, mu, sigma):
    a, b, lower = _upwards((a - mu) / sigma, (b - mu) / sigma)
    first = _scipy("log_ndtr", -a)
    hazard = np.exp(-0.5 * a**2 - HALF_LOG_2PI - first)  # of one end alone
    z = hazard * np.expm1(-0.5 * (b - a) * (b + a)) / np.expm1(_scipy("log_ndtr", -b) - first)
    return mu + sigma * np.where(lower, -z, z)


def _logs(a, b):
    """Logarithms of the ends of an interval of positive numbers."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(a, 0.0)), np.log(b)


def _lognormal_quantile(u, a, b, mu, sigma):
    a, b = _logs(a, b)
    return np.exp(_normal_quantile(u, a, b, mu, sigma))


def _lognormal_mean(a, b, mu, sigma):
    a, b = ((t - mu) / sigma for t in _logs(a, b))
    return np.exp(mu + 0.5 * sigma**2 + _log_between(a - sigma, b - sigma) - _log_between(a, b))


def _hazards(a, b, mu, shape):
    """Cumulative hazards at the lower end, and from there to the upper one."""
    ends = [(np.maximum(t, 0.0) / mu) ** shape for t in (a, b)]
    return ends[0], ends[1] - ends[0]


def _weibull_quantile(u, a, b, mu, shape=1.0):
    first, between = _hazards(a, b, mu, shape)
    return mu * (first - np.log1p(u * np.expm1(-between))) ** (1.0 / shape)


def _weibull_mean(a, b, mu, shape=1.0):
    p, (first, between) = 1.0 + 1.0 / shape, _hazards(a, b, mu, shape)
    above = [_scipy("gammaincc", p, t) for t in (first, first + between)]
    part = np.where(
        above[0] < 0.5, above[0] - above[1], np.diff(_scipy("gammainc", p, [first, first + between]), axis=0)[0]
    )
    far = first > FAR  # there both are 0 by underflow, and the quantile is nearly a line
    chance = np.exp(-first) * -np.expm1(-between)
    usual = mu * _scipy("gamma", p) * part / np.where(far, 1.0, chance)
    return np.where(far, sum(w * _weibull_quantile(u, a, b, mu, shape) for u, w in zip(*NODES, strict=True)), usual)


FAR = 500.0  #: cumulative hazard
#: Places on (0, 1) and weights of Gauss-Legendre quadrature.
NODES = [(0.5 * (1.0 + x), 0.5 * w) for x, w in [np.polynomial.legendre.leggauss(64)]][0]
_OF_NORMAL = _lognormal_left, lambda t, z, a: _lognormal_left(-t, -z, a)
TAILS = {
    "gaussian": Tails(*_OF_NORMAL, _normal_quantile, _normal_mean),
    "lognormal": Tails(*_OF_NORMAL, _lognormal_quantile, _lognormal_mean),
    "weibull": Tails(_weibull_left, lambda t, z, a: -exp(_hazard(t, z, a)), _weibull_quantile, _weibull_mean),
    "exponential": Tails(_weibull_left, lambda t, z: -exp(t - z), _weibull_quantile, _weibull_mean),
}


def truncated(family: Family, lower: float, upper: float) -> Family:
    """A family whose responses are seen only where they are from `lb` on, or up to `ub`, or between both.

    With further data of these names, and

        log p(y | lb <= y <= ub) = log p(y) - log P(lb <= y <= ub).

    Between two bounds that is a difference of probabilities beyond the one that y is nearer to. Of counts the bounds
    are whole numbers, the same in all rows, and the probability is a sum: up to `upper`, or of what is below `lower`.

    Parameters
    ----------
    family : Family
        Of `gaussian`, `lognormal`, `weibull` and `exponential`, or, of counts, of `poisson`, `negative_binomial`,
        `geometric` and `binomial`, with its own links.
    lower, upper : bool, or float of counts
        Which bounds there are; of counts what they are, False where there is none.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        For another family, without a bound, and for bounds of counts that are not whole, or more than 100 apart.

    Examples
    --------
    >>> import pdmp
    >>> family, p = pdmp.families.truncated(pdmp.families.gaussian, True, False), pdmp.Parameters(mu=1, sigma=1)
    >>> rows = family.rows([0.2, 1.1, 2.5], mu=p.mu, sigma=p.sigma, lb=0.0)
    """
    if FAMILIES.get(family.name) is not family or family.name not in {*TAILS, *COUNTS}:
        raise ValueError(
            f"truncation is for the families {', '.join([*TAILS, *COUNTS])} with their own links, not "
            f"{family.described}."
        )
    if family.name in COUNTS:
        low, high = lower or 0, math.inf if upper is False else upper
        if lower is True or upper is True or low % 1.0 or upper % 1.0 or not 0 <= low < high:
            raise ValueError(
                f"bounds of counts must be whole numbers of at least 0, the lower one first, got {low:g} and {high:g}."
            )
        if (2 * low if high == math.inf else high - low) > MOST_TERMS:
            raise ValueError(
                f"bounds of counts may be {MOST_TERMS} apart, and a lower one alone be {MOST_TERMS // 2}, got {low:g} "
                f"and {high:g}: leave out a bound that the counts hardly come near."
            )
        return family if (low, high) == (0, math.inf) else _between(family, int(low), high)
    if not (lower or upper):
        raise ValueError("truncation needs a lower bound, an upper one, or both.")
    tails, m, is_log = TAILS[family.name], len(family.data), family.stored is np.log
    bounds = ["lb"] * lower + ["ub"] * upper

    def inside(y, eta, lb=None, ub=None):
        """log P(lb < y < ub)."""
        a, b = (t if t is None or not is_log else log(t) for t in (lb, ub))
        if ub is None:
            return tails.log_survival(a, *eta)
        if lb is None:
            return tails.log_distribution(b, *eta)
        above, below = ([tail(t, *eta) for t in (a, b)] for tail in (tails.log_survival, tails.log_distribution))
        return where(y - a < b - y, above[0] + log1mexp(above[0] - above[1]), below[1] + log1mexp(below[1] - below[0]))

    def loss(y, *rest):
        known, eta = rest[m : m + len(bounds)], rest[m + len(bounds) :]
        return family.loss(y, *rest[:m], *eta) + inside(y, eta, **dict(zip(bounds, known, strict=True)))

    def split(values):
        ends = dict(zip(bounds, values[-len(bounds) :], strict=True))
        return values[: -len(bounds) - m], ends.get("lb", -math.inf), ends.get("ub", math.inf)

    def draw(rng, *values):
        parameters, a, b = split(values)
        return np.clip(tails.quantile(rng.random(np.shape(parameters[0])), a, b, *parameters), a, b)

    def mean(*values):
        parameters, a, b = split(values)
        return np.clip(tails.mean(a, b, *parameters), a, b)

    constant = family.constant
    return replace(
        family,
        loss=loss,
        draw=draw,
        mean=mean,
        constant=constant and (lambda y, *further: constant(y, *further[:m])),
        data={**family.data, **dict.fromkeys(bounds)},
    )


def known_errors(family: Family, sigma: bool = False) -> Family:
    """Numbers whose standard errors `se` are known, as of a meta-analysis: y ~ N(mu, se²), or N(mu, se² + sigma²).

    Parameters
    ----------
    family : Family
        `gaussian`, with its own links.
    sigma : bool, default False
        Whether rows scatter beyond their errors.

    Returns
    -------
    Family

    Raises
    ------
    ValueError
        For another family.

    Examples
    --------
    >>> import pdmp
    >>> family, p = pdmp.families.known_errors(pdmp.families.gaussian), pdmp.Parameters(mu=1)
    >>> model = pdmp.models.sum_of_terms(p, [family.rows([0.0, 3.0], mu=p.mu, se=[2.0, 1.0])])
    >>> model.mode().round(3)
    array([2.4])
    """
    if family is not gaussian:
        raise ValueError(
            f"known standard errors are for the family gaussian with its own links, not {family.described}."
        )

    def loss(y, se, z, a=None):
        if a is None:
            return 0.5 * ((y - z) / se) ** 2
        variance = se * se + exp(2.0 * a)
        return 0.5 * ((y - z) ** 2 / variance + log(variance))

    def draw(rng, mu, *rest):
        return mu + np.hypot(rest[-1], rest[0] if sigma else 0.0) * rng.standard_normal(np.shape(mu))

    names = ("mu", "sigma") if sigma else ("mu",)
    return Family(
        "gaussian",
        loss if sigma else lambda y, se, z: loss(y, se, z),
        draw=draw,
        mean=lambda mu, *_: mu,
        links={name: gaussian.links[name] for name in names},
        constant=lambda y, se: -HALF_LOG_2PI - (0.0 if sigma else np.log(se)),
        data={"se": None},
        priors=SIGMA if sigma else {},
        units=names,
    )
