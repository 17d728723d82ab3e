"""The derivatives of a traced expression, as tapes."""

from __future__ import annotations

import functools
import itertools

from pdmp.expressions.nodes import Node
from pdmp.expressions.tape import Tape


class Derivatives:
    """Those of an `expression` of `m` functionals, and base of what has one."""

    expression: Node
    m: int

    def __init__(self, expression: Node, m: int) -> None:
        self.expression, self.m = expression, m

    def derivatives(self, order: int) -> list[Node]:
        """All derivatives of one order, of ascending functionals."""
        found = []
        for places in itertools.combinations_with_replacement(range(self.m), order):
            node = self.expression
            for k in places:
                node = node.derivative(k)
            found.append(node)
        return found

    @functools.cached_property
    def tapes(self) -> tuple[Tape, Tape, Tape, Tape]:
        """`LOSS`, `GRADIENT`, `CURVATURE` and `SECOND`."""
        gradient, second = self.derivatives(1), self.derivatives(2)
        return Tape([self.expression]), Tape(gradient), Tape([*gradient, *second]), Tape(second)

    @functools.cached_property
    def third(self) -> Tape:
        """Third derivatives, for `pdmp.expressions.tape.enclose`."""
        return Tape(self.derivatives(3), affine=True)

    @functools.cached_property
    def third_and_fourth(self) -> Tape | None:
        """Third derivatives, and of each its derivatives by all functionals; None where these are not known."""
        third = self.derivatives(3)
        try:
            return Tape([*third, *(node.derivative(k) for node in third for k in range(self.m))], affine=True)
        except TypeError:
            return None
