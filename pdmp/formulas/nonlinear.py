"""Predictors that are no sums: ``y ~ top * exp(-rate * x)``, of columns and of parameters with formulas of their own.

The family of the response has one linear predictor less then, that of its mean, and one for each parameter of the
expression, η = g(x, θ_1, …, θ_k). Its loss, means and draws are those of the family at η, so that derivatives, their
enclosures and sub-sampling follow from the expression as from any other loss. Bürkner (2018), Advanced Bayesian
multilevel modeling with the R package brms, The R Journal 10, has such formulas.
"""

from __future__ import annotations

import ast
import contextlib
import keyword
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pdmp.data.formats import listed
from pdmp.data.tables import did_you_mean
from pdmp.errors import SamplingError
from pdmp.expressions import nodes
from pdmp.formulas.beside import USED
from pdmp.formulas.table import is_numeric
from pdmp.models.families import LINKS, Family
from pdmp.models.priors import Flat, Normal, Prior
from pdmp.models.regressions.moved_coordinates import natural_of

MOST_PARTS = 500  #: of an expression: names, numbers, operators and calls
LONGEST = 10_000  #: letters of an expression that is quoted in an error
LARGEST_POWER = 1e6
OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS = {
    name: getattr(nodes, name)
    for name in ("exp", "log", "log1p", "expm1", "sqrt", "tanh", "sin", "cos", "expit", "softplus", "erf")
}
FUNCTIONS |= {
    "inv_logit": nodes.expit,
    "log1p_exp": nodes.softplus,
    "Phi": lambda u: nodes.exp(nodes.log_ndtr(u)),
    "square": lambda u: u * u,
}


@dataclass(frozen=True)
class Expression:
    """What stands in the place of a linear predictor.

    `parameters` are the names that have a formula, in its order, and `columns` all others; `called` says what a name in
    the tree stands for. Powers of data with an exponent among the `positive` parameters are 0 where the data are.
    """

    text: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    tree: ast.expr
    called: Mapping[str, str]
    positive: frozenset[str] = frozenset()

    @property
    def data(self) -> dict[str, str]:
        """The columns, as further data of the rows."""
        return {USED + name: f"`{name}`" for name in self.columns}

    def __call__(self, columns: Sequence[Any], parameters: Sequence[Any]) -> Any:
        """Its value at arrays, or at traced values."""
        values = dict(zip((*self.columns, *self.parameters), (*columns, *parameters), strict=True))
        return self._value(self.tree, values)

    def _value(self, node, values):
        if isinstance(node, ast.BinOp):
            left, right = self._value(node.left, values), self._value(node.right, values)
            found = OPERATORS[type(node.op)](left, right)
            data = self._data(node.left, values) if self._is_root(node) else None
            return found if data is None else nodes.where(data == 0.0, 0.0, found)  # and so are its derivatives
        if isinstance(node, ast.UnaryOp):
            return OPERATORS[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.Call):
            found = FUNCTIONS[node.func.id](self._value(node.args[0], values))
            data = self._data(node.args[0], values) if self._is_root(node) else None
            return found if data is None else nodes.where(data == 0.0, 0.0, found)
        return float(node.value) if isinstance(node, ast.Constant) else values[self.called[node.id]]

    def _is_root(self, node):
        """Whether a part is a power that is 0 where its base is, and of whose derivatives one may be infinite there."""
        if not self._names(node).intersection(self.parameters):
            return False
        if isinstance(node, ast.Call):
            return node.func.id == "sqrt"
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
            return False
        whole = isinstance(node.right, ast.Constant) and float(node.right.value).is_integer()
        return self._is_positive(node.right) and not whole

    def _is_positive(self, node):
        """Whether a part is above 0 whatever data and parameters are."""
        if isinstance(node, ast.BinOp):
            parts = [node.left] if isinstance(node.op, ast.Pow) else [node.left, node.right]
            return not isinstance(node.op, ast.Sub) and all(map(self._is_positive, parts))
        if isinstance(node, ast.Call):
            of_any = node.func.id in ("exp", "expit", "inv_logit", "softplus", "log1p_exp", "Phi")
            return of_any or node.func.id in ("sqrt", "square", "log1p", "expm1") and self._is_positive(node.args[0])
        if isinstance(node, ast.Constant):
            return node.value > 0
        return isinstance(node, ast.Name) and self.called[node.id] in self.positive

    def _data(self, node, values):
        """The factor of data of a product, which is 0 where that is; None of what is no such product."""
        names = self._names(node)
        if not names.intersection(self.parameters):
            return self._value(node, values) if names else None
        if isinstance(node, ast.UnaryOp):
            return self._data(node.operand, values)
        if self._is_root(node):
            return self._data(node.left if isinstance(node, ast.BinOp) else node.args[0], values)
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Div)):
            return None
        left, right = self._data(node.left, values), self._data(node.right, values)
        if left is None and isinstance(node.op, ast.Div):
            return None
        return right if left is None else left if right is None else OPERATORS[type(node.op)](left, right)

    def _names(self, node):
        return {self.called[one.id] for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in self.called}


def read_expression(text: str, parameters: Sequence[str]) -> Expression:
    """The right side of a formula, some of whose names are `parameters`; a `ValueError` for what is no expression."""
    names: list[str] = []

    def plain(found):
        """A name that Python reads as it is, unlike those in which it replaces letters by others."""
        text, (quoted, module) = found.group(0), found.groups()
        if module or text == "^" or keyword.iskeyword(text):
            return "" if module else text.replace("^", "**")
        names.append(text if quoted is None else quoted)
        return f"name_{len(names) - 1}_"

    def named(node):
        """A part as it was written."""
        quoted = [name if name.isidentifier() else f"`{name}`" for name in names]
        return re.sub(r"\bname_(\d+)_\b", lambda found: quoted[int(found.group(1))], ast.unparse(node))

    parts_replaced = r"`([^`]*)`|\b(np\s*\.)(?=\s*\w+\()|\^|(?<![\w.])[^\W\d]\w*(?!\w|\s*\()"
    plainly = " ".join(re.sub(parts_replaced, plain, text).split())
    try:
        if "#" in plainly:  # else the rest would be a comment
            raise SyntaxError
        tree = ast.parse(plainly, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        if len(text) > LONGEST:
            raise ValueError(f"`formula`: an expression of {len(text):,} letters is too long.") from None
        raise ValueError(f"`formula`: {text!r} is no expression: {_written(parameters)}.") from None
    called: dict[str, str] = {}

    def check(node):
        if isinstance(node, (ast.BinOp, ast.UnaryOp)) and type(node.op) in OPERATORS:
            parts = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name not in FUNCTIONS or len(node.args) != 1 or node.keywords:
                known = listed(list(FUNCTIONS), 20)
                raise ValueError(
                    f"`formula`: {named(node)} is not known in an expression, whose functions, of one number "
                    f"each, are {known}; what is of columns alone may be a column{did_you_mean(name, list(FUNCTIONS))}"
                )
            parts = node.args
        elif isinstance(node, ast.Name):
            called[node.id], parts = names[int(node.id.split("_")[1])], []
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            parts = []
        else:
            raise ValueError(f"`formula`: {named(node)!r} cannot be in an expression: {_written(parameters)}.")
        for part in parts:
            check(part)

    parts = list(ast.walk(tree))
    if len(parts) > MOST_PARTS:
        raise ValueError(
            f"`formula`: an expression of {len(parts)} parts is too long, at most {MOST_PARTS}: give a pdmp.Family."
        )
    check(tree)
    for part in parts:
        if isinstance(part, ast.expr) and not any(getattr(one, "id", None) in called for one in ast.walk(part)):
            _check_number(part)
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Pow) and isinstance(part.right, ast.Constant):
            if abs(part.right.value) > LARGEST_POWER:
                raise ValueError(f"`formula`: the power {named(part)!r} is too large, at most {LARGEST_POWER:g}.")
    found = tuple(dict.fromkeys(called.values()))
    missing = [name for name in parameters if name not in found]
    if missing:
        raise ValueError(f"`formula` names {missing[0]!r}, which is not in the expression {text!r}.")
    return Expression(text, tuple(parameters), tuple(name for name in found if name not in parameters), tree, called)


def _check_number(part):
    """Refuse a part without names that is no finite number, as Python computes it."""
    if isinstance(part, ast.Name):  # of a function, which is part of its call
        return
    try:
        with np.errstate(all="ignore"):
            value = Expression("", (), (), part, {})([], [])
    except (ZeroDivisionError, OverflowError):
        value = math.inf
    if isinstance(value, complex) or not math.isfinite(value):
        raise ValueError(f"`formula`: {ast.unparse(part)!r} is no finite number.")


def _written(parameters):
    return (
        f"with formulas for {listed(list(parameters))} it is of numbers, columns and parameters, with + - * / ** and "
        "functions; what is of columns alone may be a column"
    )


def nonlinear(family: Family, expression: Expression, links: Mapping[str, str]) -> Family:
    """The family with an expression for its first linear predictor; `links`: of its parameters, if not the identity."""
    if family.arrange is not None or family.is_nominal:
        raise ValueError(f"`formula`: {family.name} has no single predictor that an expression could be.")
    first, *others = family.named
    for name in expression.columns:
        if name in family.named:
            raise ValueError(f"`formula`: {name!r} is a parameter of {family.name}, and cannot be in an expression.")
    own = dict.fromkeys(expression.parameters, "identity") | dict(links)
    expression = replace(expression, positive=frozenset(name for name in links if links[name] != "identity"))
    for name, link in links.items():
        if link not in ("identity", "log", "logit"):
            raise ValueError(f'`link` of {name!r} must be "identity", "log" or "logit", got {link!r}.')
    inverse = LINKS[family.links[first]].inverse
    m, q, k = len(family.data), len(expression.columns), len(expression.parameters)

    def predictor(values, further):
        """η of parameters on their own scale."""
        return expression(further[m : m + q], values[:k])

    def loss(y, *rest):
        known, eta = rest[: m + q], rest[m + q :]
        values = [LINKS[own[name]].inverse(z) for name, z in zip(expression.parameters, eta[:k], strict=True)]
        return family.loss(y, *known[:m], predictor(values, known), *eta[k:])

    def split(values):
        """Parameters and further data as the family's own functions take them."""
        count = k + len(others)
        parameters, further = values[:count], values[count:]
        return inverse(predictor(parameters, further)), *parameters[k:], *further[:m]

    draw, mean, constant = family.draw, family.mean, family.constant
    found = replace(
        family,
        loss=loss,
        draw=draw and (lambda rng, *values: draw(rng, *split(values))),
        mean=mean and (lambda *values: mean(*split(values))),
        constant=constant and (lambda y, *further: constant(y, *further[:m])),
        links=own | {name: family.links[name] for name in others},
        data={**family.data, **dict.fromkeys(expression.data)},
        priors={name: prior for name, prior in family.priors.items() if name != first},
        units=tuple(name for name in family.units if name != first),
        needs={name: why for name, why in family.needs.items() if name != first},
        predictor=predictor,
    )
    object.__setattr__(found, "_within", family)  # whose own parts are compared
    return found


def check_columns(expression: Expression, table: Any, response: str) -> None:
    """Refuse names that are two things, the response, and columns that are no numbers."""
    for name in expression.parameters:
        if name in table.columns:
            raise ValueError(f"`formula`: {name!r} is a parameter with a formula, and a column of `data`: rename one.")
    for name in expression.columns:
        if name == response:
            raise ValueError(f"`formula`: the response {name!r} is in its own expression.")
        if not is_numeric(table[name]):
            raise ValueError(
                f"`formula`: the column {name!r} of the expression holds no numbers. A parameter that differs between "
                f'its values has the formula {{"{expression.parameters[0]}": "~ {name}"}}.'
            )


def check_start(family: Family, model: Any) -> None:
    """Refuse an expression that is not finite where the parameters begin, at the means of their priors."""
    coding, observed = model.reported, model.observed[0]
    eta = coding.own(observed, natural_of(model, model.initial)[None])
    with np.errstate(all="ignore"):
        values = np.ravel(family.first_predictor(eta, observed.further))
    if not np.all(np.isfinite(values)):
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"`formula`: the expression is {values[row]} in row {row} of those that are used, with the parameters at "
            "the means of their priors."
        )
    if not np.all(np.isfinite(model.gradient(model.initial))):
        raise ValueError(
            "`formula`: the expression has no finite derivative with the parameters at the means of their priors. An "
            'exponent that is above 0 has link={"its name": "log"}, and a prior of its logarithm.'
        )


#: What errors of sampling advise for models at large, and what a formula has for it.
ADVICE = {
    "For parameters with bounds use `transforms=`, or pdmp.Bounded": (
        'A parameter that is above 0 has link={"its name": "log"}, and a prior of its logarithm'
    ),
    "else give proper priors, `initial=`, or a process of your choice": "else give priors that keep it where there is "
    "a value",
    "give `initial=` another point": "give priors whose means are such a place",
}


@contextlib.contextmanager
def advising(family: Family) -> Iterator[None]:
    """A context in which a regression is sampled: errors of one with an expression name what formulas have."""
    try:
        yield
    except (ValueError, SamplingError) as error:
        said = str(error)
        for general, own in ADVICE.items():
            said = said.replace(general, own)
        if family.predictor is not None:
            error.args = (said, *error.args[1:])
        raise


def prior_of(name: str, design: Any, priors: Mapping[str, Any] | None) -> Prior:
    """The prior of a parameter where its columns are at their means, which tells the unit of all its coefficients."""
    given = priors or {}
    term_of = {j: term for term, own in design.terms.items() for j in own}
    wanted = list(range(len(design.columns))) if design.intercept is None else [design.intercept]
    found = []
    for j in wanted:
        names = [f"{name}: {design.columns[j]}", f"{name}: {term_of.get(j, '')}", *([name] if len(wanted) == 1 else [])]
        found.append(next((given[one] for one in names if one in given), None))
        if not isinstance(found[-1], Prior) or isinstance(found[-1], Flat) or found[-1].positive:
            key = name if design.intercept is not None else f"{name}: {design.columns[j]}"
            raise ValueError(
                f"`priors` must have a prior of {key!r} with a mean and a scale, such as {Normal(0.0, 1.0)}: nothing "
                f'else tells the unit of a parameter of an expression. What is above 0 has link={{"{name}": "log"}}, '
                "and a prior of its logarithm."
            )
    return found[0]
