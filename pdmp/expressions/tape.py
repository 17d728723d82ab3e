r"""Expressions as instructions for one compiled interpreter: values of blocks of rows, and rigorous enclosures.

A `Tape` is a table of instructions, ``register <- operation(registers)``. One compiled function runs every tape
(`evaluate`), a second one encloses its results where each functional is anywhere in an interval (`enclose`): so no
expression is ever compiled, and what runs a tape is compiled once for all of them. An instruction is carried out for
all rows of a block (*lanes*) before the next, so that its cost is that of the arithmetic and loops are vectorised.

Enclosures. Each operation widens its result by more than its rounding errors, relative to what it was computed from,
so the exact range lies within. What has no finite enclosure is infinite or NaN, and so are bounds made from it. Of
functions that are not monotone the extremes are known. A sum that is affine in the functionals is known better than by
the box alone: where η is within r of η₀ in the norm of S⁻¹, c·η is within r √(c·Sc) of c·η₀.

References
----------
Moore, Kearfott & Cloud (2009), Introduction to Interval Analysis, SIAM. Streeter & Dillon (2022), Automatically
bounding the Taylor remainder series, arXiv 2212.11429 (the use for remainders).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pdmp.expressions.nodes import CONSTANT, DATA, FUNCTION, PRODUCT, SUM, TEST, VARIABLE, WHERE, Node
from pdmp.expressions.special import (
    SPLIT,
    bessel1,
    bessel2,
    bessel3,
    expit,
    expit1,
    expit2,
    expit3,
    expit4,
    log1mexp,
    log1mexp_above,
    log_i0,
    log_ndtr,
    mills,
    mills1,
    mills2,
    psi0,
    psi1,
    psi2,
    psi3,
    reciprocal_expm1,
    reciprocal_expm1_above,
    softplus,
)
from pdmp.native.classes import Compiled, entry, helper, inlined
from pdmp.native.vectors import exp

#: Operations. Registers are a, b, c; x is the instruction's number.
(
    SET,  # x
    READ,  # column a of the data
    TAKE,  # functional a
    SCALE,  # x a
    ADD,  # a + x b
    SHIFT,  # a + x
    MULTIPLY,  # a b
    POWER,  # a to the whole number b
    ROOT,  # a to the number x, of a > 0
    CHOOSE,  # b if a is not 0 else c
    EQUAL,  # 1 if a == 0 else 0
    ABOVE,  # 1 if a > 0 else 0
    AT_LEAST,  # 1 if a >= 0 else 0
    AFFINE,  # a again, of which is known that it is b + Σ number[c + k] η_k
) = range(14)
FIRST_FUNCTION = 14
NAMES = (
    "exp", "log", "log1p", "expm1", "erf", "lgamma", "softplus", "expit", "expit1", "expit2", "expit3", "expit4",
    "psi0", "psi1", "psi2", "psi3", "log_ndtr", "mills", "mills1", "mills2", "log1mexp", "reciprocal_expm1", "abs",
    "sign", "kink", "sin", "cos", "log_i0", "bessel1", "bessel2", "bessel3",
)  # fmt: skip
(
    EXP, LOG, LOG1P, EXPM1, ERF, LGAMMA, SOFTPLUS, EXPIT, EXPIT1, EXPIT2, EXPIT3, EXPIT4, PSI0, PSI1, PSI2, PSI3,
    LOG_NDTR, MILLS, MILLS1, MILLS2, LOG1MEXP, RECIPROCAL_EXPM1, ABS, SIGN, KINK, SIN, COS, LOG_I0,
    BESSEL1, BESSEL2, BESSEL3,
) = range(FIRST_FUNCTION, FIRST_FUNCTION + len(NAMES))  # fmt: skip
OPERATIONS = dict(zip(NAMES, range(FIRST_FUNCTION, FIRST_FUNCTION + len(NAMES)), strict=True))
COMPARISONS = {"==": EQUAL, ">": ABOVE, ">=": AT_LEAST}

#: Tapes of an expression: itself; its gradient; gradient and Hessian; the Hessian, to be enclosed.
LOSS, GRADIENT, CURVATURE, SECOND = range(4)
#: Of one of several tapes: its instructions; where its results are listed; the first that depends on the functionals.
BEGIN, STOP, RESULT, DEPENDENT = range(4)

LANES = 64  #: rows of a block
ROUNDING = 4.5e-16  #: two units in the last place
LIBRARY = 1e-12  #: relative error of exponentials, logarithms and series, with a margin
SMALL_DIFFERENCE = 1e-15  #: error of a difference, relative to what is subtracted
MILLS1_ERROR, MILLS2_ERROR, BESSEL_ERROR = 1e-9, 1e-7, 1e-9  #: of small differences, with a margin
LARGEST = 708.0  #: argument above which `exp` is clipped, which would let a potential fall that grows
FAR = 1e8  #: arguments of sine and cosine beyond which nothing is known of the phase
TINY = 1e-300  #: what underflow may lose


class Scratch(NamedTuple):
    """What evaluating rows needs, a lane for each."""

    eta: np.ndarray  #: (m, lanes)
    there: np.ndarray  #: (m, lanes)
    data: np.ndarray  #: (q, lanes)
    room: np.ndarray  #: (registers, lanes)


class Rows(NamedTuple):
    """Rows of one expression, as a model gives them by ``row_block(k, first, stop, x, root)``."""

    eta: np.ndarray  #: (m, n) functionals at x
    data: np.ndarray  #: (q, n)
    square: np.ndarray  #: (m, m, n) S
    weight: np.ndarray  #: (n,) or (0,) by what the losses are multiplied


class Tape(Compiled):
    """Expressions of the same data and functionals, to be computed together.

    Parameters
    ----------
    nodes : sequence of Node
        What is computed, of one graph.
    affine : bool, default False
        Whether sums that are affine in the functionals are known better than by the box: for `enclose`.
    """

    code: np.ndarray  #: (n, 5) operation, register of the result, a, b, c
    number: np.ndarray  #: (n + further,) x of each instruction, and coefficients of affine sums
    fixed: int  #: instructions that depend on data alone: the first ones
    registers: int  #: how many there are: `evaluate` and `enclose` need arrays of so many rows
    results: np.ndarray  #: registers of the nodes

    def __init__(self, nodes: Sequence[Node], affine: bool = False) -> None:
        order = _in_order(nodes)
        rows, further = [], []
        place: dict[int, int] = {}
        for node in order:
            place[node.index] = _write(node, place, rows, further if affine else None)
        code, number = [list(row[:5]) for row in rows], [row[5] for row in rows]
        for row in code:
            if row[0] == AFFINE:
                row[4] += len(code)
        self.results = np.array([place[node.index] for node in nodes], np.int64)
        depends = np.zeros(len(code), bool)
        for k, (operation, _, *_rest) in enumerate(code):
            depends[k] = operation == TAKE or any(depends[a] for a in _operands(code[k]))
        ranked = np.argsort(depends, kind="stable")
        code, self.registers, self.results = _allocate(code, ranked, self.results)
        self.code = np.array(code, np.int64).reshape(-1, 5)
        self.number = np.array([number[k] for k in ranked] + further, float)
        self.fixed = int(np.sum(~depends))

    def room(self, lanes: int = LANES) -> np.ndarray:
        """An array for the registers, (registers, lanes)."""
        return np.zeros((self.registers, lanes))

    def __call__(self, data: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Values (results, n) at data (q, n) and functionals (m, n); for Python."""
        n = np.shape(eta)[1]
        room, data = np.zeros((self.registers, n)), np.ascontiguousarray(data, float).reshape(-1, n)
        _evaluate_rows(self.native, n, data, np.ascontiguousarray(eta, float), room)
        return room[self.results]


def _in_order(nodes):
    """Every node once, after those that it is made of; what depends on data alone is not moved."""
    seen, order, stack = set(), [], [(node, False) for node in reversed(nodes)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
        elif node.index not in seen:
            seen.add(node.index)
            stack.append((node, True))
            stack += [(part, False) for part in node.parts]
    return order


def _write(node, place, rows, further):
    """Append the instructions of one node; the line that has its value. Lines name lines, not registers yet."""

    def line(operation, a=0, b=0, c=0, x=0.0):
        rows.append((operation, 0, a, b, c, x))
        return len(rows) - 1

    args = node.args
    if node.kind == CONSTANT:
        return line(SET, x=args)
    if node.kind == DATA:
        return line(READ, args)
    if node.kind == VARIABLE:
        return line(TAKE, args)
    if node.kind == SUM:
        constant, terms = args
        linear = [(c, part) for c, part in terms if part.kind == VARIABLE]
        known = [(c, part) for c, part in terms if not part.depends]
        rest = [(c, part) for c, part in terms if part.depends and part.kind != VARIABLE]
        # What may cancel, such as normalisers, is added up before what depends on more.
        rest.sort(key=lambda term: len(term[1].depends))
        total = None
        for c, part in (*known, *linear, *rest):
            total = line(SCALE, place[part.index], x=c) if total is None else line(ADD, total, place[part.index], x=c)
            if known and part is known[-1][1]:
                base = total
        if constant != 0.0:
            total = line(SHIFT, total, x=constant)
        if further is not None and len(linear) > 1 and not rest:
            size = max(part.args for _, part in linear) + 1
            coefficients = [0.0] * size
            for c, part in linear:
                coefficients[part.args] = c
            centre = line(SHIFT, base, x=constant) if known else line(SET, x=constant)
            total = line(AFFINE, total, centre, len(further), x=float(size))
            further += coefficients
        return total
    if node.kind == PRODUCT:
        total = None
        for part, e in args:
            factor = place[part.index]
            if e != 1:
                whole = isinstance(e, int)
                factor = line(POWER, factor, e) if whole else line(ROOT, factor, x=e)
            total = factor if total is None else line(MULTIPLY, total, factor)
        return total
    if node.kind == FUNCTION:
        return line(OPERATIONS[args[0]], place[args[1].index])
    if node.kind == TEST:
        return line(COMPARISONS[args[0]], place[args[1].index])
    assert node.kind == WHERE
    return line(CHOOSE, *(place[part.index] for part in args))


def _operands(row):
    """The lines that an instruction reads: the first ones of a, b and c."""
    operation, _, a, b, c = row
    if operation in (SET, READ, TAKE):
        return []
    if operation in (ADD, MULTIPLY, AFFINE):
        return [a, b]
    return [a, b, c] if operation == CHOOSE else [a]


def _allocate(code, ranked, results):
    """Instructions in this order with registers for lines; a register is free again after its last reader."""
    last = {k: math.inf for k in results.tolist()}
    for position, k in enumerate(ranked):
        for line in _operands(code[k]):
            last[line] = max(last.get(line, 0), position)
    register, free, used, found = {}, [], 0, []
    for position, k in enumerate(ranked):
        operation, _, *rest = code[k]
        lines = _operands(code[k])
        if free:
            out = free.pop()
        else:
            out, used = used, used + 1
        found.append([operation, out, *(register[line] for line in lines), *rest[len(lines) :]])
        register[int(k)] = out
        # Not before the result has its register: `enclose` writes a result while it reads its operands.
        for line in set(lines):
            if last[line] == position:
                free.append(register[line])
        if int(k) not in last:  # nobody reads it
            free.append(out)
    return found, max(used, 1), np.array([register[k] for k in results.tolist()], np.int64)


# ---------------------------------------------------------------------------------------------------------------
# Points


@inlined
def whole_power(x, n):
    """x to the whole number n, by products."""
    total, base, k = 1.0, x, abs(n)
    while k > 0:
        if k & 1:
            total *= base
        base *= base
        k >>= 1
    return 1.0 / total if n < 0 else total


@helper
def value_of(operation, x):
    """A function of one number."""
    if operation == EXP:
        return math.inf if x > LARGEST else exp(x)
    if operation == LOG:
        return math.log(x) if x > 0.0 else (-math.inf if x == 0.0 else math.nan)
    if operation == LOG1P:
        return math.log1p(x) if x > -1.0 else (-math.inf if x == -1.0 else math.nan)
    if operation == EXPM1:
        return math.expm1(x) if x < 709.0 else math.inf
    if operation == ERF:
        return math.erf(x)
    if operation == LGAMMA:
        return math.lgamma(x) if x > 0.0 else math.nan
    if operation == SOFTPLUS:
        return softplus(x)
    if operation == EXPIT:
        return expit(x)
    if operation == EXPIT1:
        return expit1(x)
    if operation == EXPIT2:
        return expit2(x)
    if operation == EXPIT3:
        return expit3(x)
    if operation == EXPIT4:
        return expit4(x)
    if operation == PSI0:
        return psi0(x)
    if operation == PSI1:
        return psi1(x)
    if operation == PSI2:
        return psi2(x)
    if operation == PSI3:
        return psi3(x)
    if operation == LOG_NDTR:
        return log_ndtr(x)
    if operation == MILLS:
        return mills(x)
    if operation == MILLS1:
        return mills1(x)
    if operation == MILLS2:
        return mills2(x)
    if operation == LOG1MEXP:
        return log1mexp(x)
    if operation == RECIPROCAL_EXPM1:
        return reciprocal_expm1(x)
    if operation == ABS:
        return abs(x)
    if operation == SIGN:
        return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else x)
    if operation == KINK:
        return 0.0 * x
    if operation == SIN:
        return math.sin(x)
    if operation == COS:
        return math.cos(x)
    if operation == LOG_I0:
        return log_i0(x)
    if operation == BESSEL1:
        return bessel1(x)
    if operation == BESSEL2:
        return bessel2(x)
    if operation == BESSEL3:
        return bessel3(x)
    return math.nan


@helper
def evaluate(code, number, first, stop, n, data, eta, registers):
    """Carry out instructions first … stop - 1 for n lanes; data (q, lanes), eta (m, lanes), registers (…, lanes)."""
    for k in range(first, stop):
        operation, out, a, b, c, x = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4], number[k]
        if operation == ADD:
            for i in range(n):
                registers[out, i] = registers[a, i] + x * registers[b, i]
        elif operation == MULTIPLY:
            for i in range(n):
                registers[out, i] = registers[a, i] * registers[b, i]
        elif operation == SCALE:
            for i in range(n):
                registers[out, i] = x * registers[a, i]
        elif operation == TAKE:
            for i in range(n):
                registers[out, i] = eta[a, i]
        elif operation == READ:
            for i in range(n):
                registers[out, i] = data[a, i]
        elif operation == EXP:
            for i in range(n):
                registers[out, i] = math.inf if registers[a, i] > LARGEST else exp(registers[a, i])
        elif operation == SET:
            for i in range(n):
                registers[out, i] = x
        elif operation == SHIFT:
            for i in range(n):
                registers[out, i] = registers[a, i] + x
        elif operation == POWER:
            if b == 2:
                for i in range(n):
                    registers[out, i] = registers[a, i] * registers[a, i]
            elif b == -1:
                for i in range(n):
                    registers[out, i] = 1.0 / registers[a, i]
            else:
                for i in range(n):
                    registers[out, i] = whole_power(registers[a, i], b)
        elif operation == ROOT:
            for i in range(n):
                u = registers[a, i]
                registers[out, i] = (math.sqrt(u) if x == 0.5 else u**x) if u >= 0.0 else math.nan
        elif operation == CHOOSE:
            for i in range(n):
                registers[out, i] = registers[b, i] if registers[a, i] != 0.0 else registers[c, i]
        elif operation == EQUAL:
            for i in range(n):
                registers[out, i] = 1.0 if registers[a, i] == 0.0 else 0.0
        elif operation == ABOVE:
            for i in range(n):
                registers[out, i] = 1.0 if registers[a, i] > 0.0 else 0.0
        elif operation == AT_LEAST:
            for i in range(n):
                registers[out, i] = 1.0 if registers[a, i] >= 0.0 else 0.0
        elif operation == AFFINE:
            for i in range(n):
                registers[out, i] = registers[a, i]
        elif operation == EXPIT:
            for i in range(n):
                registers[out, i] = expit(registers[a, i])
        elif operation == EXPIT1:
            for i in range(n):
                registers[out, i] = expit1(registers[a, i])
        elif operation == SOFTPLUS:
            for i in range(n):
                registers[out, i] = softplus(registers[a, i])
        elif operation == LOG1MEXP or operation == RECIPROCAL_EXPM1:
            few = 0
            for i in range(n):
                few += not registers[a, i] > SPLIT
            if few:
                for i in range(n):
                    registers[out, i] = value_of(operation, registers[a, i])
            elif operation == LOG1MEXP:
                for i in range(n):
                    registers[out, i] = log1mexp_above(registers[a, i])
            else:
                for i in range(n):
                    registers[out, i] = reciprocal_expm1_above(registers[a, i])
        else:
            for i in range(n):
                registers[out, i] = value_of(operation, registers[a, i])


@entry
def _evaluate_rows(tape, n, data, eta, registers):
    """All of it, for Python."""
    evaluate(tape.code, tape.number, 0, tape.code.shape[0], n, data, eta, registers)


@helper
def expand(code, number, results, tapes, m, data, eta, there, room, rho):
    """rho (m,) = ∇l(η) - ∇l(η₀) - H(η₀) (η - η₀) of the row in lane 0, η₀ being in `there`, which is overwritten.

    Of several tapes; `tapes` says where those of l are among them.
    """
    evaluate(code, number, tapes[CURVATURE, BEGIN], tapes[CURVATURE, STOP], 1, data, there, room)
    first = tapes[CURVATURE, RESULT]
    place = first + m
    for f in range(m):
        rho[f] = -room[results[first + f], 0]
        there[f, 0] = eta[f, 0] - there[f, 0]
    for f in range(m):
        for g in range(f, m):
            h = room[results[place], 0]
            place += 1
            rho[f] -= h * there[g, 0]
            if g != f:
                rho[g] -= h * there[f, 0]
    evaluate(code, number, tapes[GRADIENT, BEGIN], tapes[GRADIENT, STOP], 1, data, eta, room)
    first = tapes[GRADIENT, RESULT]
    for f in range(m):
        rho[f] += room[results[first + f], 0]


# ---------------------------------------------------------------------------------------------------------------
# Intervals


@inlined
def down(x):
    """Below x by more than a rounding error."""
    return x - (ROUNDING * abs(x) + TINY)


@inlined
def up(x):
    """Above x by more than a rounding error."""
    return x + (ROUNDING * abs(x) + TINY)


@inlined
def wide(low, high, error):
    """An interval with the ends' relative errors added."""
    return low - (error * abs(low) + TINY), high + (error * abs(high) + TINY)


@inlined
def times(a, b, c, d):
    """[a, b] [c, d]; 0 times an infinite end is NaN, and makes the bound of the row infinite."""
    p, q, r, s = a * c, a * d, b * c, b * d
    if p != p or q != q or r != r or s != s:
        return -math.inf, math.inf
    return down(min(min(p, q), min(r, s))), up(max(max(p, q), max(r, s)))


@inlined
def interval_power(a, b, n):
    """[a, b] to the whole number n."""
    if not (a <= b):
        return -math.inf, math.inf
    inside = a <= 0.0 and 0.0 <= b
    if n < 0 and inside:
        if n % 2 == 0:
            return 0.0, math.inf
        return -math.inf, math.inf
    p, q = whole_power(a, n), whole_power(b, n)
    error = 2.0 * ROUNDING * (abs(n) + 1)
    low, high = min(p, q), max(p, q)
    if n % 2 == 0 and inside:
        low = 0.0
    low, high = wide(low, high, error)
    return (max(low, 0.0) if n % 2 == 0 else low), high


@inlined
def _extreme(operation, a, b, p, q):
    """The range over [a, b] of a function that has extremes, p and q being its values at the ends."""
    low, high = min(p, q), max(p, q)
    if operation == EXPIT1:
        if a <= 0.0 and 0.0 <= b:
            high = 0.25
    elif operation == EXPIT2:
        if a <= -1.316957896924 and b >= -1.316957896925:
            high = 0.09622504486493764
        if a <= 1.316957896925 and b >= 1.316957896924:
            low = -0.09622504486493764
    elif operation == EXPIT3:
        if a <= 0.0 and 0.0 <= b:
            low = -0.125
        if (a <= 2.29243166957 and b >= 2.29243166956) or (a <= -2.29243166956 and b >= -2.29243166957):
            high = max(high, 1.0 / 24.0)
    elif operation == EXPIT4:  # extremes ± 0.127680 at ± 0.8425 and ± 0.019066 at ∓ 3.1443
        if a <= 0.85 and b >= 0.83:
            high = max(high, 0.12769)
        if a <= -0.83 and b >= -0.85:
            low = min(low, -0.12769)
        if a <= 3.15 and b >= 3.13:
            low = min(low, -0.01907)
        if a <= -3.13 and b >= -3.15:
            high = max(high, 0.01907)
    elif operation == LGAMMA:
        if a <= 1.46163214497 and b >= 1.46163214496:
            low = -0.12148629053584962
    elif operation == MILLS2:
        if a <= 1.0025 and b >= 1.0022:
            high = 0.2957189
    elif operation == BESSEL3:
        if a <= 1.02889 and b >= 1.02888:
            low = -0.22446168674656
    return low, high


@helper
def enclosure_of(operation, a, b):
    """The range of a function over [a, b], outward."""
    if not (a <= b):
        return -math.inf, math.inf
    if operation == EXP:  # `exp` clips its argument
        low, high = wide(exp(a), exp(b), LIBRARY)
        return (low if a > -700.0 else 0.0), (high if b < LARGEST else math.inf)
    if operation == LOG:
        return (
            (down(math.log(a)) - LIBRARY * abs(math.log(a)) if a > 0.0 else -math.inf),
            (up(math.log(b)) + LIBRARY * abs(math.log(b)) if b > 0.0 else math.inf),
        )
    if operation == LOG1P:
        return (
            (math.log1p(a) - (LIBRARY * abs(math.log1p(a)) + TINY) if a > -1.0 else -math.inf),
            (math.log1p(b) + (LIBRARY * abs(math.log1p(b)) + TINY) if b > -1.0 else math.inf),
        )
    if operation == EXPM1:
        low, high = value_of(EXPM1, a), value_of(EXPM1, b)
        return wide(low, high, LIBRARY)
    if operation == ABS:
        low = 0.0 if a <= 0.0 and 0.0 <= b else min(abs(a), abs(b))
        return low, max(abs(a), abs(b))
    if operation == SIGN:
        return (1.0 if a > 0.0 else -1.0), (-1.0 if b < 0.0 else 1.0)
    if operation == KINK:
        return (-math.inf, math.inf) if a <= 0.0 and 0.0 <= b else (0.0, 0.0)
    if operation == SIN or operation == COS:
        if not (max(abs(a), abs(b)) < FAR):
            return -1.0 - LIBRARY, 1.0 + LIBRARY
        shift = 0.0 if operation == SIN else 0.5 * math.pi
        p, q = value_of(operation, a), value_of(operation, b)
        low, high = min(p, q), max(p, q)
        # The largest value is at (2k + 1/2)π, the smallest at (2k - 1/2)π; near them both ends count as beyond.
        turn, reach = 2.0 * math.pi, 1e-9 * (1.0 + max(abs(a), abs(b)))
        first = (a - reach + shift) / turn
        last = (b + reach + shift) / turn
        if math.floor(last - 0.25) > math.floor(first - 0.25):
            high = 1.0
        if math.floor(last + 0.25) > math.floor(first + 0.25):
            low = -1.0
        return low - LIBRARY, high + LIBRARY
    if operation == LGAMMA or (PSI0 <= operation and operation <= PSI3):
        if not a > 0.0:  # monotone up to the pole at 0, on both sides of which nothing is known
            return -math.inf, math.inf
    if operation == LOG1MEXP or operation == RECIPROCAL_EXPM1:
        if not a > 0.0:
            return -math.inf, math.inf
    if abs(a) == math.inf or abs(b) == math.inf:
        return -math.inf, math.inf
    p, q = value_of(operation, a), value_of(operation, b)
    if not (p == p and q == q):
        return -math.inf, math.inf
    low, high = _extreme(operation, a, b, p, q)
    error = LIBRARY
    if operation == MILLS1:
        error = MILLS1_ERROR
    elif operation == MILLS2:
        error = MILLS2_ERROR
    elif operation == BESSEL2 or operation == BESSEL3:
        error = BESSEL_ERROR
    elif operation == LGAMMA:
        return low - LIBRARY * (1.0 + abs(low)), high + LIBRARY * (1.0 + abs(high))
    elif operation == PSI0:
        return low - LIBRARY * (1.0 + abs(low)), high + LIBRARY * (1.0 + abs(high))
    elif EXPIT2 <= operation and operation <= EXPIT4:
        # Near their zeros these are small differences of what is of the size of the first derivative.
        size = SMALL_DIFFERENCE * expit1(0.0 if a <= 0.0 and 0.0 <= b else min(abs(a), abs(b)))
        return low - (max(error * abs(low), size) + TINY), high + (max(error * abs(high), size) + TINY)
    return wide(low, high, error)


@helper
def enclose(code, number, fixed, n, data, low_eta, high_eta, centre, square, radius, low, high):
    """`enclose_part` of all instructions of a tape, of which the first `fixed` depend on data alone."""
    enclose_part(code, number, 0, fixed, code.shape[0], n, data, low_eta, high_eta, centre, square, radius, low, high)


@helper
def enclose_part(code, number, first, fixed, stop, n, data, low_eta, high_eta, centre, square, radius, low, high):
    """Enclose the results for n lanes, registers `low` and `high`; functionals, (m, lanes), are in a box near `centre`.

    Instructions `first` … `fixed` - 1 depend on data alone. `centre` is what they are within `radius` of in the norm of
    the inverse of `square` (m, m, lanes): infinite where nothing is known but the box.
    """
    evaluate(code, number, first, fixed, n, data, centre, low)
    for k in range(first, fixed):
        out = code[k, 1]
        for i in range(n):
            high[out, i] = low[out, i]
    for k in range(fixed, stop):
        operation, out, a, b, c, x = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4], number[k]
        if operation == TAKE:
            for i in range(n):
                low[out, i], high[out, i] = low_eta[a, i], high_eta[a, i]
        elif operation == SCALE:
            for i in range(n):
                p, q = x * low[a, i], x * high[a, i]
                low[out, i], high[out, i] = down(min(p, q)), up(max(p, q))
        elif operation == ADD:
            for i in range(n):
                p, q = x * low[b, i], x * high[b, i]
                p, q = min(p, q), max(p, q)
                one, other = low[a, i], high[a, i]
                low[out, i] = (one + p) - (ROUNDING * (abs(one) + abs(p)) + TINY)
                high[out, i] = (other + q) + (ROUNDING * (abs(other) + abs(q)) + TINY)
        elif operation == SHIFT:
            for i in range(n):
                one, other = low[a, i], high[a, i]
                low[out, i] = (one + x) - ROUNDING * (abs(one) + abs(x))
                high[out, i] = (other + x) + ROUNDING * (abs(other) + abs(x))
        elif operation == MULTIPLY:
            for i in range(n):
                low[out, i], high[out, i] = times(low[a, i], high[a, i], low[b, i], high[b, i])
        elif operation == POWER:
            for i in range(n):
                low[out, i], high[out, i] = interval_power(low[a, i], high[a, i], b)
        elif operation == ROOT:
            for i in range(n):
                one, other = low[a, i], high[a, i]
                if one > 0.0 and other >= one:
                    p, q = one**x, other**x
                    low[out, i], high[out, i] = wide(min(p, q), max(p, q), LIBRARY)
                else:
                    low[out, i], high[out, i] = 0.0, math.inf
                    if x > 0.0 and one == 0.0:
                        high[out, i] = other**x * (1.0 + LIBRARY)
        elif operation == CHOOSE:
            for i in range(n):
                place = b if low[a, i] != 0.0 else c
                low[out, i], high[out, i] = low[place, i], high[place, i]
        elif operation == AFFINE:
            m = int(x)
            for i in range(n):
                size, most, middle = 0.0, 0.0, low[b, i]
                reach = abs(middle)
                for j in range(m):
                    middle += number[c + j] * centre[j, i]
                    reach += abs(number[c + j] * centre[j, i])
                    for q in range(m):
                        part = number[c + j] * number[c + q] * square[max(j, q), min(j, q), i]
                        size += part
                        most += abs(part)
                if size < 1e-4 * most:  # what cancels has rounding errors of the size of what it is made of
                    size = max(size, 0.0) + 1e-13 * most
                half = radius * math.sqrt(max(size, 0.0)) * (1.0 + 1e-9) + 1e-14 * reach + TINY
                one, other = low[a, i], high[a, i]
                if half < math.inf:
                    one, other = max(one, middle - half), min(other, middle + half)
                low[out, i], high[out, i] = one, other
        else:
            for i in range(n):
                low[out, i], high[out, i] = enclosure_of(operation, low[a, i], high[a, i])
