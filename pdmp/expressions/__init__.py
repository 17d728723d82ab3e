"""Likelihoods from expressions: tracing, derivatives, the interpreter, enclosures; and linear functionals of x."""

from pdmp.expressions import functionals, nodes, special, tape
from pdmp.expressions.functionals import Functional, Parameters

__all__ = ["Functional", "Parameters", "functionals", "nodes", "special", "tape"]
