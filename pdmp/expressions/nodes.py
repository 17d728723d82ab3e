"""A scalar Python function as a graph of sums, products and functions, and its derivatives as such graphs.

`trace` calls the user's function with symbols. Equal expressions are one node. Sums are kept as ``constant + Σ c·node``
and products as ``Π node^e``, in which all exponentials are one; so derivatives cancel as they do on paper. Functions
know their derivatives by name: the third derivative of softplus is one function, of which the exact range is known
(`pdmp.expressions.tape`). That is all the algebra.

Nodes take part in NumPy's protocols: ``np.exp``, ``np.where`` and functions of `scipy.special` may be called on them.
"""

from __future__ import annotations

import inspect
import itertools
import linecache
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Kinds of nodes, and what `args` holds of each.
CONSTANT = "constant"  #: the number
DATA = "data"  #: which column
VARIABLE = "variable"  #: which functional
SUM = "sum"  #: (constant, ((coefficient, node), …))
PRODUCT = "product"  #: ((node, exponent), …)
FUNCTION = "function"  #: (name, node)
WHERE = "where"  #: (test, node, node)
TEST = "test"  #: (comparison, node): whether the node is "==", ">" or ">=" 0; 1 or 0

#: f', as an expression in (u, f(u)).
DERIVATIVES: dict[str, Callable] = {
    "exp": lambda u, f: f,
    "log": lambda u, f: u**-1,
    "log1p": lambda u, f: (1.0 + u) ** -1,
    "expm1": lambda u, f: u.graph.function("exp", u),
    "erf": lambda u, f: 1.1283791670955126 * u.graph.function("exp", -u * u),
    "log1mexp": lambda u, f: u.graph.function("reciprocal_expm1", u),
    "reciprocal_expm1": lambda u, f: -(f + f * f),
    "abs": lambda u, f: u.graph.function("sign", u),
    "sign": lambda u, f: u.graph.function("kink", u),
    "kink": lambda u, f: f,
    "sin": lambda u, f: u.graph.function("cos", u),
    "cos": lambda u, f: -u.graph.function("sin", u),
}
#: Each is the derivative of the one before.
CHAINS = (
    ("softplus", "expit", "expit1", "expit2", "expit3", "expit4"),
    ("lgamma", "psi0", "psi1", "psi2", "psi3"),
    ("log_ndtr", "mills", "mills1", "mills2"),
    ("log_i0", "bessel1", "bessel2", "bessel3"),
)
for _chain in CHAINS:
    for _one, _next in itertools.pairwise(_chain):
        DERIVATIVES[_one] = lambda u, f, name=_next: u.graph.function(name, u)
FUNCTIONS = {*DERIVATIVES, *(chain[-1] for chain in CHAINS)}


class Node:
    """One expression: its kind, what it is made of, and on which functionals it depends (`depends`)."""

    def __init__(self, graph: Graph, kind: str, args: Any, index: int) -> None:
        self.graph, self.kind, self.args, self.index = graph, kind, args, index
        self.parts = _parts(kind, args)
        own = [args] if kind == VARIABLE else []
        self.depends = frozenset(own).union(*(part.depends for part in self.parts))
        self._derivatives: dict[int, Node] = {}

    def data(self) -> set[int]:
        """Which data the expression uses."""
        found, waiting, seen = set(), [self], set()
        while waiting:
            node = waiting.pop()
            if node.index in seen:
                continue
            seen.add(node.index)
            waiting += node.parts
            if node.kind == DATA:
                found.add(node.args)
        return found

    def __add__(self, other):
        return self.graph.sum([(1.0, self), (1.0, other)])

    def __sub__(self, other):
        return self.graph.sum([(1.0, self), (-1.0, other)])

    def __rsub__(self, other):
        return self.graph.sum([(-1.0, self), (1.0, other)])

    def __neg__(self):
        return self.graph.sum([(-1.0, self)])

    def __pos__(self):
        return self

    def __mul__(self, other):
        return self.graph.product([(self, 1), (other, 1)])

    def __truediv__(self, other):
        return self.graph.product([(self, 1), (other, -1)])

    def __rtruediv__(self, other):
        return self.graph.product([(other, 1), (self, -1)])

    def __pow__(self, exponent):
        exponent = self.graph.node(exponent)
        if exponent.kind != CONSTANT:
            return exp(exponent * log(self))
        e = exponent.args
        return self.graph.product([(self, int(e) if float(e).is_integer() else e)])

    def __rpow__(self, base):
        return exp(self * log(self.graph.node(base)))

    def __abs__(self):
        return self.graph.function("abs", self)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return self.graph.test("==", self - other)

    def __ne__(self, other):
        return 1.0 - (self == other)

    def __gt__(self, other):
        return self.graph.test(">", self - other)

    def __lt__(self, other):
        return self.graph.test(">", other - self)

    def __ge__(self, other):
        return self.graph.test(">=", self - other)

    def __le__(self, other):
        return self.graph.test(">=", other - self)

    def __and__(self, other):
        return self * other

    def __or__(self, other):
        return self + other - self * other

    def __invert__(self):
        return 1.0 - self

    def __hash__(self):
        raise TypeError(f"{_line()} looks a traced value up in a set or a dict: use pdmp.terms.where(test, a, b).")

    def __bool__(self):
        raise TypeError(f"{_line()} branches on a traced value: use pdmp.terms.where(test, a, b), with a test of data.")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)  # which NumPy and copies ask for
        raise AttributeError(
            f"{_line()} asks a traced value, which is of one row, for {name!r}: compute it beforehand."
        )

    def _refuse(self, *_):
        raise TypeError(
            f"{_line()} asks a traced value for a number, a length or a remainder: use the functions of "
            "pdmp.terms or of NumPy, and give what depends on data alone as one of `data`."
        )

    __float__ = __int__ = __index__ = __len__ = __iter__ = __getitem__ = __round__ = _refuse
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = _refuse

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        take = UFUNCS.get(ufunc.__name__)
        if method != "__call__" or kwargs or take is None:
            known = ", ".join(sorted(FUNCTION_NAMES))
            raise TypeError(
                f"{_line()} calls {ufunc.__name__}, which cannot be differentiated here; these can: {known}."
            )
        for part in inputs:
            if isinstance(part, np.ndarray) and part.size != 1:
                self.graph.node(part)  # which names the line
        return take(*(part.item() if isinstance(part, np.ndarray | np.generic) else part for part in inputs))

    def __array_function__(self, function, types, args, kwargs):
        if function is np.where and len(args) == 3 and not kwargs:
            return where(*args)
        raise TypeError(f"{_line()} calls numpy.{function.__name__}, which takes no traced value.")

    def derivative(self, k: int) -> Node:
        """The derivative by functional k."""
        if k not in self.depends:
            return self.graph.node(0.0)
        if k not in self._derivatives:
            self._derivatives[k] = self._differentiate(k)
        return self._derivatives[k]

    def _differentiate(self, k):
        graph, args = self.graph, self.args
        if self.kind == VARIABLE:
            return graph.node(1.0)
        if self.kind == SUM:
            return graph.sum([(c, part.derivative(k)) for c, part in args[1]])
        if self.kind == PRODUCT:
            return graph.sum(
                [
                    (1.0, graph.product([*((q, f - (q is part)) for q, f in args), (e, 1), (part.derivative(k), 1)]))
                    for part, e in args
                    if k in part.depends
                ]
            )
        if self.kind == FUNCTION:
            name, part = args
            if name not in DERIVATIVES:
                raise TypeError(f"{name} has no derivative of so high an order here.")
            return DERIVATIVES[name](part, self) * part.derivative(k)
        return where(args[0], args[1].derivative(k), args[2].derivative(k))


def _parts(kind, args):
    if kind == SUM:
        return [part for _, part in args[1]]
    if kind == PRODUCT:
        return [part for part, _ in args]
    if kind in (FUNCTION, TEST):
        return [args[1]]
    return list(args) if kind == WHERE else []


def _key(args):
    """What nodes are known by: others by their places."""
    if isinstance(args, Node):
        return None, args.index
    return tuple(map(_key, args)) if isinstance(args, tuple) else args


class Graph:
    """Where equal expressions are one node."""

    def __init__(self) -> None:
        self.nodes: dict[tuple, Node] = {}

    def make(self, kind: str, args: Any) -> Node:
        """The node of this kind and content."""
        key = kind, _key(args)
        if key not in self.nodes:
            self.nodes[key] = Node(self, kind, args, len(self.nodes))
        return self.nodes[key]

    def node(self, value: Any) -> Node:
        """A node as it is, a number as a constant."""
        if isinstance(value, Node):
            if value.graph is not self:
                raise TypeError(f"{_line()} uses a traced value of another expression.")
            return value
        try:
            number = float(value if not isinstance(value, str | bytes) else None)
        except (TypeError, ValueError):
            raise TypeError(
                f"{_line()} combines a traced value with a {type(value).__name__}; data go through `data=`."
            ) from None
        if not math.isfinite(number):
            raise TypeError(f"{_line()} combines a traced value with {number}.")
        return self.make(CONSTANT, number)

    def sum(self, terms: Sequence) -> Node:
        """Σ c·node."""
        constant, parts = 0.0, {}
        for c, value in terms:
            part = self.node(value)
            if part.kind == CONSTANT:
                constant += c * part.args
                continue
            own, inner = part.args if part.kind == SUM else (0.0, ((1.0, part),))
            constant += c * own
            for k, q in inner:
                parts[q.index] = parts.get(q.index, (0.0, q))[0] + c * k, q
        found = tuple((c, part) for _, (c, part) in sorted(parts.items()) if c != 0.0)
        if not found:
            return self.node(constant)
        if constant == 0.0 and len(found) == 1 and found[0][0] == 1.0:
            return found[0][1]
        return self.make(SUM, (constant, found))

    def product(self, factors: Sequence) -> Node:
        """Π node^e; exponents are whole numbers, or real ones of what is positive."""
        coefficient, parts, powers = 1.0, {}, []
        stack = [(self.node(value), e) for value, e in factors]
        while stack:
            part, e = stack.pop()
            if e == 0:
                continue
            whole = e == int(e)
            if part.kind == CONSTANT and (part.args != 0.0 or e > 0) and (part.args >= 0.0 or whole):
                coefficient *= part.args**e
            elif (
                part.kind == SUM
                and part.args[0] == 0.0
                and len(part.args[1]) == 1
                and (part.args[1][0][0] > 0 or whole)
            ):
                c, inner = part.args[1][0]
                coefficient *= c**e
                stack.append((inner, e))
            elif part.kind == PRODUCT and whole:
                stack += [(q, k * e) for q, k in part.args]
            elif part.kind == FUNCTION and part.args[0] == "exp":
                powers.append((float(e), part.args[1]))
            else:
                parts[part.index] = parts.get(part.index, (0, part))[0] + e, part
        if powers:
            exponent = self.sum(powers)
            if exponent.kind == CONSTANT:
                coefficient *= math.exp(exponent.args)
            else:
                part = self.make(FUNCTION, ("exp", exponent))
                parts[part.index] = 1, part
        if coefficient == 0.0:
            return self.node(0.0)
        found = tuple(
            (part, int(e) if float(e).is_integer() else float(e)) for _, (e, part) in sorted(parts.items()) if e != 0
        )
        if not found:
            return self.node(coefficient)
        whole = found[0][0] if len(found) == 1 and found[0][1] == 1 else self.make(PRODUCT, found)
        return whole if coefficient == 1.0 else self.sum([(coefficient, whole)])

    def function(self, name: str, value: Any) -> Node:
        """A function of one argument."""
        return self.make(FUNCTION, (name, self.node(value)))

    def test(self, comparison: str, difference: Any) -> Node:
        """Whether a difference of data is so; 1 or 0."""
        part = self.node(difference)
        if part.depends:
            raise TypeError(f"{_line()} compares a parameter: the test may look at data only, not at parameters.")
        if part.kind == CONSTANT:
            x = part.args
            return self.node(float(x == 0.0 if comparison == "==" else x > 0.0 if comparison == ">" else x >= 0.0))
        return self.make(TEST, (comparison, part))


def _line():
    """The line of the user's code that is being run: the nearest one outside of this package and NumPy."""
    frame, own = sys._getframe(1), (__file__.rpartition("/")[0], np.__file__.rpartition("/")[0])
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    if frame is None:
        return "the expression"
    name, number = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, number).strip()
    return f"line {number} of {name.rpartition('/')[2]}, `{text}`," if text else f"line {number} of {name},"


NUMBERS: dict[str, Callable] = {}  #: functions of plain numbers and arrays, by what nodes call them


def _function(name: str, said: str, of_numbers: Callable, node: str | None = None) -> Callable[[Any], Any]:
    """A function of traced values, and of plain numbers and arrays."""
    node = node or name
    NUMBERS[node] = of_numbers

    def function(u: Any) -> Any:
        return u.graph.function(node, u) if isinstance(u, Node) else of_numbers(u)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = said
    return function


def _scipy(name):
    def of_numbers(u):
        from scipy import special

        return getattr(special, name)(u)

    return of_numbers


def _log_i0(u):
    return np.log(_scipy("i0e")(u)) + np.abs(u)


exp = _function("exp", "e^u.", np.exp)
log = _function("log", "Natural logarithm of u > 0.", np.log)
log1p = _function("log1p", "log(1 + u), u > -1.", np.log1p)
expm1 = _function("expm1", "e^u - 1.", np.expm1)
expit = _function("expit", "1 / (1 + e^-u).", lambda u: 1.0 / (1.0 + np.exp(-u)))
softplus = _function("softplus", "log(1 + e^u).", lambda u: np.logaddexp(0.0, u))
log1mexp = _function("log1mexp", "log(1 - e^-u) of u > 0.", lambda u: np.log(-np.expm1(-u)))
lgamma = _function("lgamma", "log Γ(u) of u > 0.", _scipy("gammaln"))
digamma = _function("digamma", "ψ(u) = d/du log Γ(u) of u > 0.", _scipy("digamma"), "psi0")
erf = _function("erf", "The error function.", _scipy("erf"))
log_ndtr = _function("log_ndtr", "log Φ(u), Φ the distribution function of N(0, 1).", _scipy("log_ndtr"))
log_i0 = _function("log_i0", "log I₀(u) of u >= 0, I₀ the modified Bessel function of the first kind.", _log_i0)
sin = _function("sin", "Sine.", np.sin)
cos = _function("cos", "Cosine.", np.cos)


def sqrt(u: Any) -> Any:
    """√u of u > 0."""
    return u**0.5


def tanh(u: Any) -> Any:
    """Hyperbolic tangent."""
    return 2.0 * expit(2.0 * u) - 1.0


def logaddexp(u: Any, v: Any) -> Any:
    """log(e^u + e^v)."""
    return u + softplus(v - u)


def where(test: Any, then: Any, otherwise: Any) -> Any:
    """`then` where a test of data holds, `otherwise` else. Only the one that holds is looked at."""
    graph = next((part.graph for part in (test, then, otherwise) if isinstance(part, Node)), None)
    if graph is None:
        return np.where(test, then, otherwise) if np.ndim(test) else then if test else otherwise
    test, a, b = graph.node(test), graph.node(then), graph.node(otherwise)
    if test.depends:
        raise TypeError(f"{_line()} has a `where` whose test looks at parameters: it may look at data only.")
    if test.kind == CONSTANT:
        return a if test.args else b
    return a if a is b else graph.make(WHERE, (test, a, b))


def xlogy(u: Any, v: Any) -> Any:
    """u log v, u of data: 0 where u is."""
    return where(u == 0.0, 0.0, u * log(v))


#: What the protocols of NumPy call, by the names of its functions and those of `scipy.special`.
UFUNCS: dict[str, Callable] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "less": operator.lt,
    "greater_equal": operator.ge,
    "less_equal": operator.le,
    "negative": operator.neg,
    "square": lambda u: u * u,
    "reciprocal": lambda u: 1.0 / u,
    "absolute": abs,
    "fabs": abs,
    "exp": exp,
    "log": log,
    "log1p": log1p,
    "expm1": expm1,
    "sqrt": sqrt,
    "tanh": tanh,
    "sin": sin,
    "cos": cos,
    "logaddexp": logaddexp,
    "expit": expit,
    "log_expit": lambda u: -softplus(-u),
    "gammaln": lgamma,
    "psi": digamma,
    "digamma": digamma,
    "erf": erf,
    "log_ndtr": log_ndtr,
    "xlogy": xlogy,
    "softplus": softplus,
}
#: Functions that `pdmp.terms` has as attributes.
FUNCTION_NAMES = (
    "cos", "digamma", "erf", "exp", "expit", "expm1", "lgamma", "log", "log1mexp", "log1p", "log_i0", "log_ndtr",
    "logaddexp", "sin", "softplus", "sqrt", "tanh", "where", "xlogy",
)  # fmt: skip


def trace(function: Callable, n_data: int, n_functionals: int | None = None) -> tuple[Node, int]:
    """The expression of a function f(data…, functionals…) of `n_data` data, and how many functionals it has.

    They are counted from its signature unless they are given. A `TypeError` names the line that cannot be traced.
    """
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"`loss` must be a function of data and functionals, got {function!r}.") from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wanted = sum(p.default is p.empty for p in positional)
    several = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    count = wanted - n_data if n_functionals is None else n_functionals
    if not several and not wanted <= n_data + count <= len(positional) or count < 1:
        raise TypeError(
            f"`loss`: {name} takes {len(positional)} arguments, and there are {n_data} of data and {max(count, 0)} of "
            "functionals (`at`)."
        )
    graph = Graph()
    arguments = [graph.make(DATA, j) for j in range(n_data)] + [graph.make(VARIABLE, k) for k in range(count)]

    def called():
        answer = function(*arguments)
        if isinstance(answer, np.ndarray) and answer.shape == ():
            answer = answer.item()
        if not isinstance(answer, Node | int | float | np.number):
            raise TypeError(f"`loss`: {name} must return one number for a datum, got a {type(answer).__name__}.")
        return graph.node(answer)

    found = called()
    if called() is not found:  # equal expressions are one node
        raise TypeError(
            f"`loss`: {name} is another expression when it is called again, and only one is kept: draw random numbers "
            "beforehand, and give them as one of `data`."
        )
    return found, count
