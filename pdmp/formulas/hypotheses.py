r"""What the draws say of hypotheses on parameters, such as ``"treated - 2 * age = 0"``.

A hypothesis is an inequality or an equation of two arithmetic expressions of numbers and names of parameters; no other
code is run. With θ the left side less the right one, the evidence ratio of θ > 0 is P(θ > 0 | y) / P(θ ≤ 0 | y), and
that of θ = 0 the density of θ at 0 in the posterior over that in the prior, which is the Bayes factor of the
hypothesis against its alternative (Dickey, 1971; "Savage-Dickey"). The posterior's is estimated by kernels whose
centres are drawn towards the mean, so that their mixture has the draws' variance (West, 1993).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pdmp.data.formats import listed
from pdmp.data.tables import did_you_mean
from pdmp.formulas.estimates import Estimates, check_probability
from pdmp.models.priors import Flat, Normal, Prior, log_mass, potential
from pdmp.native.arguments import count

if TYPE_CHECKING:
    from pdmp.formulas.fit import Fit

FEW = 20  #: draws on the other side of 0 below which the density there is not estimated
OPERATORS: dict[type, Any] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
INEQUALITIES: dict[str, Any] = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


class Expression:
    """An arithmetic expression of parameters: names are found as they are written, the longest first, or in backticks.

    Of `groups`, effects of groups, one is written "1|g[label]".
    """

    def __init__(self, text: str, known: Sequence[str], groups: Sequence[str] = ()) -> None:
        self.text, self.names = text, []
        if placeholder := re.search(r"\b_\d+_", text):
            self._unknown(placeholder.group(0), known)
        placed = self._place(text, sorted(known, key=len, reverse=True), groups)
        try:
            self.tree = ast.parse(placed.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            self._refuse("cannot be read")
        self._check(self.tree, known)

    def _place(self, text, known, groups):
        """The text with a word of Python in place of each name."""
        quoted = [r"`([^`]*)`"]
        words = [rf"(?<![\w.]){re.escape(name)}(?![\w.(\[:|])" for name in known]
        words = [
            word if re.search(r"\w$", name) else rf"(?<![\w.]){re.escape(name)}"
            for word, name in zip(words, known, strict=True)
        ]
        effects = [rf"(?<![\w.]){re.escape(name)}\[[^\]]*\]" for name in groups]

        def word(found):
            name = found.group(0).strip("`")
            if found.group(0).startswith("`"):
                of_group = any(name.startswith(f"{g}[") for g in groups)
                if name not in known and not of_group:
                    self._unknown(name, known)
            if name not in self.names:
                self.names.append(name)
            return f" _{self.names.index(name)}_ "

        return re.sub("|".join([*quoted, *effects, *words]), word, text)

    def _unknown(self, name, known):
        close = did_you_mean(name, known, f"; they are {listed(list(known), 8)}.")
        raise ValueError(f"`hypotheses`: {self.text.strip()!r} names {name!r}, which is no parameter{close}")

    def _refuse(self, why):
        raise ValueError(
            f"`hypotheses`: {self.text.strip()!r} {why}: write sums, products and powers of parameters and numbers, "
            'such as "age - 2 * dose > 0", a name of several words in backticks.'
        ) from None

    def _check(self, node, known):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            self._check(node.left, known)
            self._check(node.right, known)
        elif isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            self._check(node.operand, known)
        elif isinstance(node, ast.Name):
            if not re.fullmatch(r"_\d+_", node.id) or int(node.id[1:-1]) >= len(self.names):
                self._unknown(node.id, known)
        elif not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):
            self._refuse("has more than arithmetic")

    def at(self, values: Mapping[str, Any]) -> np.ndarray:
        """Its value where the parameters have these."""
        return self._value(self.tree, values)

    def _value(self, node, values):
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](self._value(node.left, values), self._value(node.right, values))
        if isinstance(node, ast.UnaryOp):
            return OPERATORS[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.Name):
            return values[self.names[int(node.id[1:-1])]]
        return np.float64(node.value)

    def linear(self) -> tuple[float, dict[str, float]] | None:
        """Its constant and the coefficients of its names, or None where it is not linear."""
        try:
            constant, slopes = self._linear(self.tree)
        except ArithmeticError:
            return None
        return constant, {name: slope for name, slope in slopes.items() if slope != 0.0}

    def _linear(self, node):
        if isinstance(node, ast.Constant):
            return float(node.value), {}
        if isinstance(node, ast.Name):
            return 0.0, {self.names[int(node.id[1:-1])]: 1.0}
        if isinstance(node, ast.UnaryOp):
            sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
            constant, slopes = self._linear(node.operand)
            return sign * constant, {name: sign * slope for name, slope in slopes.items()}
        (a, u), (b, v) = self._linear(node.left), self._linear(node.right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            sign = 1.0 if isinstance(node.op, ast.Add) else -1.0
            return a + sign * b, {n: u.get(n, 0.0) + sign * v.get(n, 0.0) for n in {**u, **v}}
        if not u and not v:
            return float(OPERATORS[type(node.op)](a, b)), {}
        if isinstance(node.op, ast.Mult) and not (u and v):
            factor, slopes, constant = (a, v, b) if v else (b, u, a)
            return factor * constant, {name: factor * slope for name, slope in slopes.items()}
        if isinstance(node.op, ast.Div) and not v:
            return a / b, {name: slope / b for name, slope in u.items()}
        raise ArithmeticError("not linear")


def read(text: str, known: Sequence[str], groups: Sequence[str]) -> tuple[Expression, str]:
    """θ, the left side less the right one, and "=" or one of `INEQUALITIES`."""
    if not isinstance(text, str):
        raise TypeError(f'`hypotheses` must be texts such as "age > 0", got {text!r}.')
    hidden = text  # signs inside of names are none of the hypothesis
    for name in sorted([*known, *re.findall(r"`[^`]*`", text)], key=len, reverse=True):
        if re.search(r"[<>=]", name):
            hidden = hidden.replace(name, "x" * len(name))
    signs = list(re.finditer(r"<=|>=|==|[<>=]", hidden))
    if len(signs) != 1:
        raise ValueError(f'`hypotheses` need one of <, > and =, such as "age > 0", got {text!r}.')
    left, right = text[: signs[0].start()], text[signs[0].end() :]
    if not left.strip() or not right.strip():
        raise ValueError(f'`hypotheses` need something on both sides, such as "age > 0", got {text!r}.')
    for side in (left, right):  # each by itself, before they are one text
        Expression(side, known, groups)
    sign = signs[0].group(0)
    return Expression(f"({left.strip()}) - ({right.strip()})", known, groups), "=" if sign == "==" else sign


def density(prior: Prior, at: float) -> float:
    """The density of a proper prior at a number."""
    if prior.positive and at <= 0.0:
        return 0.0 if at < 0.0 else math.nan
    place = math.log(at) if prior.positive else at
    # By its potential, which is that of the logarithm of a positive number.
    coded = prior.coded()
    return math.exp(-potential(*coded, place) - log_mass(*coded)) / (at if prior.positive else 1.0)


def prior_density(fit: Fit, theta: Expression) -> float:
    """The prior density of θ at 0, or a `ValueError` where it is not known."""
    asked = f"`hypotheses`: the prior density of {theta.text} at 0 is not known,"
    found = theta.linear()
    if found is None:
        raise ValueError(f"{asked} as it is not a weighted sum of parameters; ask for < or >.")
    constant, slopes = found
    priors = fit.priors
    for name in slopes:
        if name not in priors:
            raise ValueError(f"{asked} as {name!r} is an effect of a group; ask for < or >.")
        if not fit.knows_prior(name):
            raise ValueError(f"{asked} as the prior of {name!r} is of another number; ask for < or >.")
        if isinstance(priors[name], Flat):
            raise ValueError(f"{asked} as that of {name!r} is flat; give a proper one in `priors`, or ask for < or >.")
    if getattr(fit.model, "inclusion", None) is not None:
        raise ValueError(f"{asked} as coefficients may be 0 exactly: see `inclusion`.")
    if not slopes:
        raise ValueError(f"`hypotheses`: {theta.text} has no parameter.")
    slopes = fit.uncentred(slopes)
    if all(isinstance(priors[name], Normal) for name in slopes):
        mean = constant + sum(slope * priors[name].mean for name, slope in slopes.items())
        sd = math.sqrt(sum((slope * priors[name].sd) ** 2 for name, slope in slopes.items()))
        return math.exp(-0.5 * (mean / sd) ** 2) / (sd * math.sqrt(math.tau))
    if len(slopes) > 1:
        other = next(name for name in slopes if not isinstance(priors[name], Normal))
        raise ValueError(f"{asked} as the prior of {other!r} is not Normal; ask for < or >.")
    ((name, slope),) = slopes.items()
    value = density(priors[name], -constant / slope) / abs(slope)
    if not value > 0.0:
        raise ValueError(f"{asked} as {-constant / slope:g} is not inside of the range of {name!r}; ask for < or >.")
    return value


def posterior_density(draws: np.ndarray) -> float:
    """The density of draws at 0; NaN where fewer than `FEW` of them are on one side of it."""
    if min(np.sum(draws > 0.0), np.sum(draws < 0.0)) < FEW:
        return math.nan
    mean, sd, n = draws.mean(), draws.std(), len(draws)
    width = (4.0 / (3.0 * n)) ** 0.2  # in units of sd
    shrink = 1.0 / math.sqrt(1.0 + width**2)
    centres, spread = mean + shrink * (draws - mean), sd * width * shrink
    return float(np.mean(np.exp(-0.5 * (centres / spread) ** 2)) / (spread * math.sqrt(math.tau)))


def density_at_zero(fit: Fit, theta: Expression, values: Mapping[str, np.ndarray], drawn: np.ndarray) -> float:
    """The posterior density of θ at 0; of a positive parameter by that of its logarithm, as kernels spill below 0."""
    constant, slopes = theta.linear()
    if len(slopes) > 1 or not fit.priors[next(iter(slopes))].positive:
        return posterior_density(drawn)
    ((name, slope),) = slopes.items()
    place = -constant / slope
    return posterior_density(np.log(values[name] / place)) / (place * abs(slope))


def hypothesis(self: Fit, *texts: str, probability: float = 0.95, draws: int = 4_000) -> Estimates:
    """What the posterior says of inequalities and equations of parameters.

    Parameters
    ----------
    *texts : str
        Such as ``"age > 0"``, ``"area[rural] < area[town]"``, ``"treated - 2 * age = 0"``: arithmetic of numbers
        and the names in the summary, as they are or in backticks, and of effects, ``"1|clinic[3] > 0"``.
    probability : float, default 0.95
        Of the intervals.
    draws : int, default 4,000
        Of all chains together.

    Returns
    -------
    Estimates
        Of the left side less the right one: its mean, error and interval; "probability", that the hypothesis is
        true; and "evidence_ratio": of < and > that over the probability of the contrary, ``inf`` where no draw is
        there; of = the density at 0 in the posterior over that in the prior, the Bayes factor against the
        alternative that the parameters are free, from which "probability" is for prior odds of 1. NaN, and said,
        where 0 is so far out that fewer than 20 draws are beyond it.

    Raises
    ------
    TypeError, ValueError
        For a text that is no such hypothesis, and an equation whose prior density is not known: of flat priors,
        effects of groups, products of parameters, and sums with parameters whose priors are not Normal.

    Examples
    --------
    >>> fit.hypothesis("age > 0", "treated = 0")  # doctest: +SKIP
    """
    check_probability(probability)
    if not texts:
        raise ValueError('`hypotheses` must be one or more texts, such as "age > 0".')
    known, groups = list(self.priors), [g.name for g in self.groups]
    read_in = [read(text, known, groups) for text in texts]
    natural = self.run.constrain(self.some_draws(count("draws", draws)))
    values = {name: natural[name] for name in known}
    for theta, _ in read_in:
        for name in theta.names:
            if name not in values:
                values[name] = _effect(self, natural, name)
    found, chances, ratios, far = [], [], [], []
    for text, (theta, sign) in zip(texts, read_in, strict=True):
        with np.errstate(all="ignore"):
            drawn = np.broadcast_to(theta.at(values), len(next(iter(values.values())))).astype(float)
        if not np.all(np.isfinite(drawn)):
            raise ValueError(f"`hypotheses`: {text!r} is not finite in {int(np.sum(~np.isfinite(drawn))):,} draws.")
        found.append(drawn)
        if sign == "=":
            before, at_zero = prior_density(self, theta), density_at_zero(self, theta, values, drawn)
            with np.errstate(all="ignore"):
                ratios.append(float(np.divide(at_zero, before)))
            chances.append(1.0 - 1.0 / (1.0 + ratios[-1]))
            if math.isnan(at_zero):
                far.append(text)
        else:
            inside = np.mean(INEQUALITIES[sign](drawn, 0.0))  # selected coefficients are 0 in some of the draws
            chances.append(float(inside))
            ratios.append(float(inside / (1.0 - inside)) if inside < 1.0 else math.inf)
    notes = []
    if any(sign != "=" for _, sign in read_in):
        notes.append("of < and >: the posterior probability, and that over the probability of the contrary")
    if any(sign == "=" for _, sign in read_in):
        notes.append(
            "of =: the Bayes factor against the alternative (Savage-Dickey), and the probability with even prior odds"
        )
    notes += [
        f"{text}: fewer than {FEW} of {len(found[0]):,} draws lie on one side, so that the density there is not known"
        for text in far
    ]
    further = {"probability": chances, "evidence_ratio": ratios}
    keys = {"hypothesis": list(texts)}
    return Estimates(keys, np.stack(found, axis=-1), probability, further, "\n".join(notes))


def _effect(fit, natural, name):
    """Draws of the effect of one group, "1|g[label]"."""
    for g in fit.groups:
        if name.startswith(f"{g.name}[") and name.endswith("]"):
            label, labels = name[len(g.name) + 1 : -1], list(map(str, g.levels))
            if label not in labels:
                raise ValueError(f"`hypotheses`: {g.grouping!r} has no group {label!r}{did_you_mean(label, labels)}")
            return natural[g.name][:, labels.index(label)]
    raise ValueError(f"`hypotheses` names {name!r}, which is no parameter.")
