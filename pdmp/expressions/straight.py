"""Expressions as methods of compiled classes: a line of Python for each node, and bounds for every value of z.

A likelihood that a class names is compiled where it is used: loops over rows become vectors, which no interpreter
(`pdmp.expressions.tape`) can equal. `methods` writes such code for an expression ℓ(y, z, dispersions). What depends on
dispersions alone is a number of the object, computed once, by `numbers`.

Machine code on disk follows the text that is written here as it follows a method in a file: `pdmp.native.fingerprints`.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Sequence

from pdmp.expressions import special
from pdmp.expressions.nodes import CONSTANT, DATA, FUNCTION, NUMBERS, PRODUCT, SUM, TEST, VARIABLE, WHERE, Node
from pdmp.native.classes import compiled

#: Functions of generated code; `exp` is the one of vectorised loops.
FUNCTIONS = {
    "abs": abs,
    **{name: getattr(math, name) for name in ("log", "log1p", "expm1", "lgamma", "erf", "sqrt")},
    **{name: getattr(special, name) for name in ("exp", "softplus", "expit", "expit1", "expit2", "expit3")},
    **{name: getattr(special, name) for name in ("log_ndtr", "mills", "mills1", "mills2", "psi0", "psi1")},
}
#: Ranges of functions over all arguments; what is not here is not bounded.
RANGES = {
    "expit": (0.0, 1.0),
    "expit1": (0.0, 0.25),
    "expit2": (-0.09622504486493767, 0.09622504486493767),
    "mills1": (-1.0, 0.0),
}
POSITIVE = "positive"  #: max(0, u), of numbers and of arrays


class Writer:
    """The lines of one method; `constants` are the nodes of dispersions alone, shared by all methods of a class."""

    def __init__(self, constants: list[Node]) -> None:
        self.constants, self.lines = constants, []
        self.names: dict[str, str] = {}  # of what has been computed

    def text(self, node: Node) -> str:
        """The name or number by which a node is written."""
        if node.kind == CONSTANT:
            return repr(node.args)
        if _is_fixed(node):
            if all(node is not known for known in self.constants):
                self.constants.append(node)
            return f"self.constant_{next(k for k, known in enumerate(self.constants) if known is node)}"
        if node.kind in (DATA, VARIABLE):
            return "y" if node.kind == DATA else "z"
        return self.line(self.written(node))

    def line(self, code: str) -> str:
        """The name of what is computed by this code."""
        if code not in self.names:
            self.names[code] = f"t{len(self.names)}"
            self.lines.append(f"{self.names[code]} = {code}")
        return self.names[code]

    def written(self, node: Node) -> str:
        """The code of one node."""
        graph, args = node.graph, node.args
        if node.kind == SUM:
            fixed = graph.sum([(1.0, args[0]), *((c, part) for c, part in args[1] if _is_fixed(part))])
            rest = [graph.product([(c, 1), (part, 1)]) for c, part in args[1] if not _is_fixed(part)]
            rest.sort(key=lambda part: (bool(part.depends), _split(part)[1].kind != VARIABLE))
            terms = [self.multiple(part) for part in rest]
            terms += [] if fixed.kind == CONSTANT and fixed.args == 0.0 else [self.text(fixed)]
            return " + ".join(terms).replace("+ -", "- ")
        if node.kind == PRODUCT:
            fixed = [(part, e) for part, e in args if _is_fixed(part)]
            factors = [self.text(graph.product(fixed))] if fixed else []
            for part, e in args:
                if not _is_fixed(part):
                    factors += self.power(part, e)
            return " * ".join(factors)
        if node.kind == FUNCTION:
            if args[0] == POSITIVE:
                u = self.text(args[1])
                return f"0.5 * (abs({u}) + {u})"
            if args[0] not in FUNCTIONS:
                raise TypeError(f"{args[0]} has no compiled form of its own.")
            return f"{args[0]}({self.text(args[1])})"
        if node.kind == TEST:
            return f"1.0 if {self.text(args[1])} {args[0]} 0.0 else 0.0"
        assert node.kind == WHERE
        test, then, otherwise = (self.text(part) for part in args)
        return f"{then} if {test} != 0.0 else {otherwise}"

    def multiple(self, node):
        """A term of a sum: a number of the object times the rest."""
        fixed, rest = _split(node)
        text = self.text(rest)
        if fixed.kind == CONSTANT and abs(fixed.args) == 1.0:
            return text if fixed.args > 0.0 else f"-{text}"
        return f"{self.text(fixed)} * {text}"

    def power(self, part, e):
        """The factors of part^e."""
        base = self.text(part)
        if not isinstance(e, int):
            return [self.line(f"sqrt({base})" if e == 0.5 else f"{base} ** {e!r}")]
        return abs(e) * [base if e > 0 else self.line(f"1.0 / {base}")]


def _reads(node):
    """Whether data are part of it."""
    return node.kind == DATA or any(_reads(part) for part in node.parts)


def _is_fixed(node):
    """Whether it is made of dispersions alone: functionals after the first."""
    return bool(node.depends) and 0 not in node.depends and not _reads(node)


def _split(node):
    """What of a multiple or product is a number or of dispersions alone, and the rest."""
    graph, coefficient = node.graph, 1.0
    if node.kind == SUM and node.args[0] == 0.0 and len(node.args[1]) == 1:
        ((coefficient, node),) = node.args[1]
    factors = node.args if node.kind == PRODUCT else ((node, 1),)
    fixed = graph.product([(coefficient, 1), *((part, e) for part, e in factors if _is_fixed(part))])
    return fixed, graph.product([(part, e) for part, e in factors if not _is_fixed(part)])


def enclosed(node: Node) -> tuple[Node, Node]:
    """The ends, of data and dispersions, of an interval in which a node is for every z.

    A `TypeError` if none is found: of products of several functions of z, and of what is not bounded.
    """
    graph = node.graph
    if 0 not in node.depends:
        return node, node
    if node.kind == SUM:
        parts = [_multiplied(graph.node(c), *enclosed(part)) for c, part in node.args[1]]
        low, high = (graph.sum([(1.0, node.args[0]), *((1.0, part[end]) for part in parts)]) for end in (0, 1))
        return low, high
    if node.kind == PRODUCT:
        moving = [(part, e) for part, e in node.args if 0 in part.depends]
        if len(moving) == 1 and moving[0][1] == 1:
            return _multiplied(
                graph.product([(q, e) for q, e in node.args if q is not moving[0][0]]), *enclosed(moving[0][0])
            )
    if node.kind == FUNCTION and node.args[0] in RANGES:
        low, high = RANGES[node.args[0]]
        return graph.node(low), graph.node(high)
    raise TypeError("a derivative for which no bound is known: state it.")


def _multiplied(c, low, high):
    """c times an interval, c being data, dispersions or a number: exactly 0 where an end is."""
    even = c.kind == PRODUCT and all(isinstance(e, int) and e % 2 == 0 for _, e in c.args)
    if even or c.kind == CONSTANT:
        return (c * low, c * high) if even or c.args >= 0.0 else (c * high, c * low)
    above, below = (c.graph.function(POSITIVE, sign * c) for sign in (1.0, -1.0))
    return above * low - below * high, above * high - below * low


def methods(
    expression: Node, module: str, owner: str, bounded: int = 0, stated: Sequence[Node] | None = None
) -> tuple[dict[str, Callable], list[Node]]:
    """Compiled methods ``loss(z, y)``, ``first_derivative``, ``second_derivative``, and bounds of the latter.

    The expression is of one column of data y, and of functionals z and dispersions; its terms without z are left out of
    the loss. Bounds ``…_derivative_bounds(y)`` are made for no, the second, or both derivatives, as `bounded` is 0, 1
    or 2; `stated` are those bounds, lower and upper of the first and of the second, where `enclosed` finds none. The
    list is of what ``self.constant_k`` is, for `numbers`.
    """
    first = expression.derivative(0)
    second = first.derivative(0)
    loss = expression
    if loss.kind == SUM:
        loss = loss.graph.sum([(c, part) for c, part in loss.args[1] if 0 in part.depends])
    results = {"loss": (loss,), "first_derivative": (first,), "second_derivative": (second,)}
    for place, node in ((0, first), (1, second))[2 - bounded :]:
        name = f"{('first', 'second')[place]}_derivative_bounds"
        results[name] = enclosed(node) if stated is None else tuple(stated[2 * place : 2 * place + 2])
    constants: list[Node] = []
    found = {name: _function(name, nodes, module, owner, constants) for name, nodes in results.items()}
    return found, constants


def _function(name, nodes, module, owner, constants):
    """One method that returns the values of these nodes."""
    writer = Writer(constants)
    values = ", ".join(writer.text(node) for node in nodes)
    arguments = "self, y" if name.endswith("bounds") else "self, z, y"
    source = "".join(f"    {line}\n" for line in [*writer.lines, f"return {values}"])
    source = f"def {name}({arguments}):\n{source}"
    file = f"<{module}.{owner}.{name}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # for debuggers and messages
    scope = {"__name__": module, **FUNCTIONS}
    exec(compile(source, file, "exec"), scope)  # noqa: S102 - written above, of nodes and numbers
    scope[name].__qualname__ = f"{owner}.{name}"
    return compiled(scope[name])


def numbers(constants: Sequence[Node], dispersions: Sequence[float]) -> dict[str, float]:
    """The attributes ``constant_k`` of an object with these dispersions, as the expression takes them."""
    return {f"constant_{k}": _number(node, dispersions) for k, node in enumerate(constants)}


def _number(node, dispersions):
    if node.kind == CONSTANT:
        return node.args
    if node.kind == VARIABLE:
        return dispersions[node.args - 1]
    if node.kind == SUM:
        return node.args[0] + sum(c * _number(part, dispersions) for c, part in node.args[1])
    if node.kind == PRODUCT:
        return math.prod(_number(part, dispersions) ** e for part, e in node.args)
    assert node.kind == FUNCTION
    return float(NUMBERS[node.args[0]](_number(node.args[1], dispersions)))
