r"""Priors of single parameters, by name.

======================= ================================================== ============================
`Normal`, `StudentT`    of a number on the whole line
`Flat`                  a constant, improper, on the whole line
`LKJ`                   of correlations, -1 < r < 1; the model moves artanh r, and the potential has the Jacobian
`HalfNormal`,
`HalfStudentT`,         of a positive number y; the model moves log y, and the potential has the Jacobian, -log y
`HalfCauchy`,
`Exponential`, `Gamma`
======================= ================================================== ============================

A prior is coded for compiled code by its ``kind`` and three numbers (`coded`), and evaluated there by `potential` and
`derivative`, at the coordinate that is moved: the number itself, or the logarithm of a positive one.
"""

from __future__ import annotations

import ast
import contextlib
import math
import sys
from dataclasses import astuple, dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from pdmp.native.classes import inlined
from pdmp.native.vectors import exp

FLAT, NORMAL, STUDENT_T, HALF_NORMAL, HALF_STUDENT_T, GAMMA, CORRELATION = range(7)
LARGEST = sys.float_info.max  #: of an integer as well


@dataclass(frozen=True)
class Prior:
    """Base of the priors; each is a frozen dataclass of its numbers.

    Examples
    --------
    >>> from pdmp.models.priors import Normal, Prior
    >>> isinstance(Normal(0.0, 2.0), Prior)
    True
    >>> Normal(1.0, 2.0).scaled(10.0)
    Normal(mean=10.0, sd=20.0)
    """

    kind: ClassVar[int]
    positive: ClassVar[bool] = False  #: whether it is of a positive number
    scales: ClassVar[tuple[str, ...]] = ()  #: numbers in units of the parameter
    fixed: ClassVar[tuple[float, ...]] = ()  #: numbers of the kind that come before its own

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.integer | np.floating):  # the largest count of a table, say
                value = value.item()
                object.__setattr__(self, field.name, value)
            at_least = -math.inf if field.name == "mean" else 0.0
            real = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not real or not at_least < value or abs(value) > LARGEST:
                what = "a finite number" if field.name == "mean" else "positive and finite"
                raise ValueError(f"`{field.name}` of {type(self).__name__} must be {what}, got {value!r}.")

    def __str__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{value:.4g}' for value in astuple(self))})"

    def scaled(self, factor: float) -> Self:
        """The prior of `factor` times the parameter, `factor` > 0."""
        return replace(self, **{name: getattr(self, name) * factor for name in self.scales})

    def typical(self) -> float:
        """A value to start from: the mean, or the scale."""
        return float(getattr(self, "shape", 1.0) * self.scale if self.positive else getattr(self, "mean", 0.0))

    def shifted(self, amount: float) -> Self:
        """The prior of the parameter plus `amount`."""
        return replace(self, **{"mean": self.mean + amount}) if hasattr(self, "mean") else self

    def coded(self) -> tuple[int, float, float, float]:
        """Kind and numbers for compiled code."""
        return self.kind, *(*self.fixed, *map(float, astuple(self)), 0.0, 0.0, 0.0)[:3]


def read_prior(text: str) -> Prior:
    """The prior that is written so, as they are printed: ``Normal(0, 2.5)``, ``HalfStudentT(degrees=4, scale=1)``.

    Raises
    ------
    ValueError
        For a law that there is not, or for arguments that are no numbers of it.
    """
    found = None
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        found = ast.parse(text.strip(), mode="eval").body
    known = (Normal, StudentT, Flat, HalfNormal, HalfStudentT, HalfCauchy, Exponential, Gamma, LKJ)
    laws = {law.__name__: law for law in known}
    if not isinstance(found, ast.Call) or not isinstance(found.func, ast.Name) or found.func.id not in laws:
        raise ValueError(f"{text!r} is no prior, such as Normal(0, 2.5); there are {', '.join(laws)}.")
    law = laws[found.func.id]
    try:
        numbers = [ast.literal_eval(one) for one in found.args]
        return law(*numbers, **{one.arg: ast.literal_eval(one.value) for one in found.keywords})
    except (TypeError, ValueError) as error:
        wanted = ", ".join(field.name for field in fields(law))
        raise ValueError(f"{text!r} is no {law.__name__}({wanted}) of numbers: {error}") from None


@dataclass(frozen=True)
class Flat(Prior):
    """A constant: no prior.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.Flat()
    Flat()
    """

    kind = FLAT


@dataclass(frozen=True)
class Normal(Prior):
    """N(mean, sd²).

    Examples
    --------
    >>> import pdmp
    >>> narrow = pdmp.models.priors.Normal(0.0, 0.1)
    >>> narrow
    Normal(mean=0.0, sd=0.1)
    >>> fit = pdmp.regression('visits ~ age', table, 'poisson', priors={'age': narrow})  # doctest: +SKIP
    """

    mean: float
    sd: float

    kind, scales = NORMAL, ("mean", "sd")


@dataclass(frozen=True)
class StudentT(Prior):
    """Student's t law with `degrees` degrees of freedom around `mean`.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.StudentT(4.0, 0.0, 2.5)
    StudentT(degrees=4.0, mean=0.0, scale=2.5)
    """

    degrees: float
    mean: float
    scale: float

    kind, scales = STUDENT_T, ("mean", "scale")


@dataclass(frozen=True)
class HalfNormal(Prior):
    """|N(0, scale²)|.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.HalfNormal(1.0)
    HalfNormal(scale=1.0)
    """

    scale: float

    kind, positive, scales = HALF_NORMAL, True, ("scale",)


@dataclass(frozen=True)
class HalfStudentT(Prior):
    """The absolute value of `scale` times Student's t with `degrees` degrees of freedom.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.HalfStudentT(3.0, 2.5)
    HalfStudentT(degrees=3.0, scale=2.5)
    """

    degrees: float
    scale: float

    kind, positive, scales = HALF_STUDENT_T, True, ("scale",)


@dataclass(frozen=True)
class HalfCauchy(Prior):
    """`HalfStudentT` with one degree of freedom.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.HalfCauchy(5.0)
    HalfCauchy(scale=5.0)
    """

    scale: float

    kind, positive, scales, fixed = HALF_STUDENT_T, True, ("scale",), (1.0,)


@dataclass(frozen=True)
class Exponential(Prior):
    """The exponential law with the mean `scale`.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.Exponential(2.0)
    Exponential(scale=2.0)
    """

    scale: float

    kind, positive, scales, fixed = GAMMA, True, ("scale",), (1.0,)


@dataclass(frozen=True)
class Gamma(Prior):
    """The gamma law with this shape and scale: mean shape · scale.

    Examples
    --------
    >>> import pdmp
    >>> pdmp.models.priors.Gamma(2.0, 0.5)
    Gamma(shape=2.0, scale=0.5)
    """

    shape: float
    scale: float

    kind, positive, scales = GAMMA, True, ("scale",)


@dataclass(frozen=True)
class LKJ(Prior):
    """A law of correlation matrices R, with the density det(R)^(eta - 1): uniform for 1, near the identity for more.

    Each correlation of d variables is 2 b - 1 with b ~ Beta(eta - 1 + d/2, eta - 1 + d/2) [1]_. Where it stands for a
    coordinate of a model, that is artanh of the correlation of two variables.

    References
    ----------
    .. [1] Lewandowski, Kurowicka & Joe (2009), Generating random correlation matrices based on vines and extended onion
       method, J. Multivariate Anal. 100, section 2 and equation 16.

    Examples
    --------
    >>> import pdmp
    >>> near = pdmp.models.priors.LKJ(4.0)
    >>> fit = pdmp.regression('visits ~ age + (1 + age | clinic)', table, 'gamma', priors={'cor(clinic)': near})
    ... # doctest: +SKIP
    >>> near.partial(3)
    [LKJ(eta=4.5), LKJ(eta=4.5), LKJ(eta=4.0)]
    """

    eta: float = 1.0

    kind = CORRELATION

    def partial(self, d: int) -> list[LKJ]:
        """The laws of the canonical partial correlations of d variables, which are independent.

        Of the pairs (1, 0), (2, 0), (2, 1), (3, 0), …: that of i and j < i given those before j, from 0 on, has the
        law of a correlation of two variables with eta + (d - 2 - j) / 2.
        """
        return [LKJ(self.eta + 0.5 * (d - 2 - j)) for i in range(1, d) for j in range(i)]


@dataclass(frozen=True)
class BetaBernoulli:
    """The law of which coefficients are not 0: each with the probability w, the same for all, and w ~ Beta(a, b).

    The number of them, of m that may be 0, is beta-binomial; uniform on 0 … m for a = b = 1 [1]_.

    References
    ----------
    .. [1] Scott & Berger (2010), Bayes and empirical-Bayes multiplicity adjustment in the variable-selection problem,
       Ann. Statist. 38.

    Examples
    --------
    >>> import pdmp
    >>> uniform = pdmp.models.priors.BetaBernoulli(1, 1)
    >>> fit = pdmp.regression(
    ...     'visits ~ age + dose', table, 'poisson', select='all', priors={'inclusion': uniform}
    ... )  # doctest: +SKIP
    """

    a: float = 1.0
    b: float = 1.0

    __post_init__, __str__ = Prior.__post_init__, Prior.__str__


def log_mass(kind: int, a: float, b: float, c: float) -> float:
    """log of the integral of exp(-`potential`) over all x; nan of a flat prior, which has none."""
    if kind == NORMAL:
        return math.log(b) + 0.5 * math.log(math.tau)
    if kind in (STUDENT_T, HALF_STUDENT_T):
        whole = math.lgamma(0.5 * a) - math.lgamma(0.5 * a + 0.5) + 0.5 * math.log(math.pi * a)
        return whole + (math.log(c) if kind == STUDENT_T else math.log(0.5 * b))
    if kind == HALF_NORMAL:
        return math.log(a) + 0.5 * math.log(0.5 * math.pi)
    if kind == GAMMA:
        return math.lgamma(a) + a * math.log(b)
    if kind == CORRELATION:
        return math.lgamma(a) - math.lgamma(a + 0.5) + 0.5 * math.log(math.pi) - 2.0 * a * math.log(2.0)
    return math.nan


def log_masses(kinds: np.ndarray, numbers: np.ndarray) -> float:
    """The sum of it over priors."""
    return sum((log_mass(int(kind), *own.tolist()) for kind, own in zip(kinds, numbers, strict=True)), 0.0)


@inlined
def potential(kind, a, b, c, x):
    """Minus the log density at the coordinate x, up to a constant."""
    if kind == NORMAL:
        z = (x - a) / b
        return 0.5 * z * z
    if kind == STUDENT_T:
        z = (x - b) / c
        return 0.5 * (a + 1.0) * math.log1p(z * z / a)
    if kind == HALF_NORMAL:
        z = exp(x) / a
        return 0.5 * z * z - x
    if kind == HALF_STUDENT_T:
        z = exp(x) / b
        return 0.5 * (a + 1.0) * math.log1p(z * z / a) - x
    if kind == GAMMA:
        return exp(x) / b - a * x
    if kind == CORRELATION:  # (1 - r²)^a of r = tanh x, with the Jacobian: 2 a log cosh x, less what is constant
        return 2.0 * a * (abs(x) + math.log1p(exp(-2.0 * abs(x))))
    return 0.0


@inlined
def derivative(kind, a, b, c, x):
    """Its derivative by x."""
    if kind == NORMAL:
        return (x - a) / (b * b)
    if kind == STUDENT_T:
        return (a + 1.0) * (x - b) / (a * c * c + (x - b) * (x - b))
    if kind == HALF_NORMAL:
        z = exp(x) / a
        return z * z - 1.0
    if kind == HALF_STUDENT_T:
        z = exp(x) / b
        return (a + 1.0) - (a + 1.0) * a / (a + z * z) - 1.0
    if kind == GAMMA:
        return exp(x) / b - a
    if kind == CORRELATION:
        return 2.0 * a * math.tanh(x)
    return 0.0


@inlined
def second_derivative(kind, a, b, c, x):
    """Its second derivative by x."""
    if kind == NORMAL:
        return 1.0 / (b * b)
    if kind == STUDENT_T:
        square, scale = (x - b) * (x - b), a * c * c
        return (a + 1.0) * (scale - square) / ((scale + square) * (scale + square))
    if kind == HALF_NORMAL:
        z = exp(x) / a
        return 2.0 * z * z
    if kind == HALF_STUDENT_T:
        q = exp(2.0 * (x - math.log(b))) / a
        return 2.0 * (a + 1.0) * q / ((1.0 + q) * (1.0 + q))
    if kind == GAMMA:
        return exp(x) / b
    if kind == CORRELATION:
        r = math.tanh(x)
        return 2.0 * a * (1.0 - r * r)
    return 0.0


def second_derivatives(kinds: np.ndarray, numbers: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of each coordinate, (d,)."""
    return np.array([second_derivative(kind, *n, z) for kind, n, z in zip(kinds, numbers, x, strict=True)])


@inlined
def second_derivative_bound(kind, a, b, c):
    """At least the second derivative by x, for every x; infinite for positive numbers, where there is none."""
    if kind == FLAT:
        return 0.0
    if kind == NORMAL:
        return 1.0 / (b * b)
    if kind == STUDENT_T:
        return (a + 1.0) / (a * c * c)
    if kind == CORRELATION:
        return 2.0 * a
    return math.inf


@inlined
def second_derivative_bound_until(kind, a, b, c, x):
    """At least the absolute second derivative at every coordinate up to x."""
    if kind == HALF_NORMAL:
        z = exp(x) / a
        return 2.0 * z * z
    if kind == HALF_STUDENT_T:
        return 0.5 * (a + 1.0)
    if kind == GAMMA:
        return exp(x) / b
    return second_derivative_bound(kind, a, b, c)
