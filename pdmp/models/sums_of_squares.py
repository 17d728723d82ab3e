r"""Rows that are squares of residuals, and fewer rows that have the same sum.

Where a loss is quadratic in the one functional z that differs from row to row, and all rows have the others s in
common,

    lᵢ(z, s) = ½ ωᵢ h(s) (tᵢ - z)² + γᵢ g(s) + αᵢ,    zᵢ = aᵢ·x,

as that of a normal response with an unknown standard deviation, the sum over rows depends on the matrix A with rows
√ωᵢ (aᵢ, tᵢ) by AᵀA alone, and so do the rows of R where A = Q R has orthonormal columns in Q. A row of effects of
groups has few entries in columns that other rows have not: rows with the same such columns are a cell. Of each cell as
many rows of R are kept as it has such columns, after which the others have zeros there and go on to a triangle that all
cells share. So the sum of any number of rows costs one of cells. Nothing is squared, and nothing lost: rotations of
Givens keep what they rotate to the last digits.

References
----------
Bates, Mächler, Bolker & Walker (2015), Fitting linear mixed-effects models using lme4, J. Stat. Softw. 67, section 3:
the sum depends on such a triangle. Golub & Van Loan (2013), Matrix Computations, section 5.2.5: rotations row by row.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from pdmp.expressions.functionals import Functional
from pdmp.expressions.nodes import PRODUCT, SUM, VARIABLE, WHERE, Node
from pdmp.expressions.tape import Tape
from pdmp.native.classes import Compiled, entry

FEWEST = 500  #: rows: the sum of fewer takes microseconds
FEWER = 4  #: times as many rows must there be as there are in their place
WIDEST = 200  #: entries of a row: a rotation costs their square
SOMEWHERE = 0.7  #: size of the other functionals where residuals are computed
ROUNDING = 1e-12  #: share by which what is equal may differ
Product = tuple[int, tuple[tuple[int, float], ...]]  #: a power of z; functions by the number of their node, and powers


class Squares(NamedTuple):
    """What rows are squares of."""

    target: np.ndarray  #: t, (n,)
    scale: np.ndarray  #: √ω, (n,)
    usual: int  #: the row of which h is, with ω = 1
    other: int  #: that of which g is
    times: float  #: Σ γ
    constant: float  #: Σ α


class Triangles(Compiled):
    """The rows of R: of each cell, (cells, own entries, W + 1), and those that all share, (others + 1, W + 1)."""

    of_cells: np.ndarray
    shared: np.ndarray

    def __init__(self, cells: int, own: int, width: int) -> None:
        self.of_cells = np.zeros((cells, own, width + 1))
        self.shared = np.zeros((width + 1 - own, width + 1))

    def rows(self) -> np.ndarray:
        """All of them, one after the other."""
        return np.concatenate([self.of_cells.reshape(-1, self.shared.shape[1]), self.shared])


def varying_functional(at: tuple[Functional, ...], expression: Node, n: int) -> int | None:
    """Which functional is the only one that differs in n rows, if the expression is quadratic in it."""
    several = [k for k, functional in enumerate(at) if functional.n > 1]
    if n < FEWEST or len(several) != 1 or at[several[0]].values.dtype != float:
        return None
    z = several[0]
    first = expression.derivative(z)
    return z if z in first.depends and z not in first.derivative(z).depends else None


def products_of(expression: Node, data: np.ndarray, z: int, centre: np.ndarray) -> dict[Product, np.ndarray] | None:
    """Write the loss of rows of data (q, n) as Σ c (z - centre)ᵃ f, the f being functions of the other functionals.

    The factors c (n,) of all rows, by the power a and by f: the numbers of the nodes that it is a product of, with
    their powers. None if data stand within a function. Functions are different here unless they are one node, so that
    some losses of this form are not recognised, but no other loss is.
    """
    differ = {j for j, column in enumerate(data) if np.any(column != column[0])}
    n = data.shape[1]

    def is_common(part):
        return z not in part.depends and not part.data() & differ

    def of_data(part):
        with np.errstate(all="ignore"):
            return np.broadcast_to(Tape([part])(data, np.zeros((max(z, *expression.depends) + 1, n)))[0], n)

    def times(one, other):
        found: dict[Product, np.ndarray] = {}
        for (a, powers), x in one.items():
            for (b, more), y in other.items():
                exponents = dict(powers)
                for index, e in more:
                    exponents[index] = exponents.get(index, 0) + e
                key = a + b, tuple(sorted((index, e) for index, e in exponents.items() if e))
                found[key] = found.get(key, 0.0) + x * y
        return found

    def of_power(part, e):
        if part.depends and is_common(part):
            return {(0, ((part.index, e),)): np.ones(n)}
        if not part.depends:
            with np.errstate(all="ignore"):
                return {(0, ()): of_data(part) ** float(e)}
        inner = of(part)
        if inner is None or e != int(e) or not 0 < e <= 4:
            return None
        return functools.reduce(times, [inner] * int(e))

    def added_up(parts):
        found: dict[Product, np.ndarray] = {}
        for factor, inner in parts:
            if inner is None:
                return None
            for key, x in inner.items():
                found[key] = found.get(key, 0.0) + factor * x
        return found

    def of(part):
        if not part.depends:
            return {(0, ()): of_data(part)}
        if part.kind == VARIABLE and part.args == z:
            return {(1, ()): np.ones(n), (0, ()): centre}
        if part.kind == SUM:
            constant, terms = part.args
            return added_up([(constant, {(0, ()): np.ones(n)}), *((c, of(term)) for c, term in terms)])
        if part.kind == PRODUCT:
            factors = [of_power(factor, e) for factor, e in part.args]
            return None if any(factor is None for factor in factors) else functools.reduce(times, factors)
        if part.kind == WHERE and not part.args[0].depends:
            test = of_data(part.args[0])
            return added_up([(test, of(part.args[1])), (1.0 - test, of(part.args[2]))])
        return of_power(part, 1) if is_common(part) else None

    return of(expression)


def squares_of(expression: Node, data: np.ndarray, m: int, z: int) -> Squares | None:
    """What rows of data (q, n) that are quadratic in functional z are squares of; None if they are of several kinds."""
    slope, n = expression.derivative(z), data.shape[1]
    tape = Tape([expression, slope, slope.derivative(z)])

    def values(at_z):
        eta = np.repeat(SOMEWHERE * np.cos(np.arange(float(m)))[:, None], n, axis=1)
        eta[z] = at_z
        with np.errstate(all="ignore"):
            return tape(data, eta)

    _, slopes, bends = values(0.0)
    if not (np.all(np.isfinite(slopes)) and np.all(np.isfinite(bends)) and np.all(bends != 0.0)):
        return None
    target = -slopes / bends
    found = products_of(expression, data, z, target)
    if found is None or any(not np.all(np.isfinite(x)) for x in found.values()) or any(a > 2 for a, _ in found):
        return None
    of_power: list[dict] = [{key: x for (b, key), x in found.items() if b == a} for a in range(3)]
    rounding = ROUNDING * (np.abs(target) + 0.01 * np.abs(target).max())
    # Of (z - target)² each row has a positive multiple of one function, of z - target nothing.
    weight, usual = _multiples(of_power[2], n)
    if weight is None or not np.all(weight > 0.0):
        return None
    if any(np.any(np.abs(x) > rounding * np.abs(of_power[2].get(key, 0.0))) for key, x in of_power[1].items()):
        return None
    # What is left is a multiple of one function, but for a number.
    left = {key: np.abs(x) > rounding**2 * np.abs(of_power[2].get(key, 0.0)) for key, x in of_power[0].items() if key}
    times, other = _multiples({key: np.where(more, of_power[0][key], 0.0) for key, more in left.items()}, n)
    rest = values(target)[0]
    if times is None or not np.all(np.isfinite(rest)):
        return None
    return Squares(target, np.sqrt(weight), usual, other, math.fsum(times), math.fsum(rest - times * rest[other]))


def _multiples(columns: dict[Any, np.ndarray], n: int) -> tuple[np.ndarray | None, int]:
    """What multiple of one row each of n rows is in all columns, (n,), and that row; None if some are of none."""
    columns = {key: x for key, x in columns.items() if np.any(x != 0.0)}
    if not columns:
        return np.zeros(n), 0
    first, *_ = columns.values()
    row = int(np.argmax(np.abs(first)))
    found = first / first[row]
    return (found if all(_agree(x, found * x[row]) for x in columns.values()) else None), row


def _agree(one, other):
    return np.all(np.abs(one - other) <= ROUNDING * (np.abs(one) + np.abs(other)))


class Cells(NamedTuple):
    """Rows whose entries are in the same columns."""

    cell: np.ndarray  #: of each row, (n,) or, if all are of one, (1,)
    own: np.ndarray  #: which entries have columns that differ between cells

    @classmethod
    def of(cls, columns: np.ndarray) -> Cells:
        """Of (n, W) columns, or (1, W) of all rows."""
        differ = np.flatnonzero(np.any(columns != columns[0], axis=0))
        cell = np.zeros(len(columns), np.int64)
        for j in differ:
            _, own = np.unique(columns[:, j], return_inverse=True)
            _, cell = np.unique(cell * (own.max() + 1) + own, return_inverse=True)
        return cls(cell, differ)

    def rows(self, width: int) -> int:
        """How many rows have the sum of squares of all, with so many entries in a row."""
        return (int(self.cell.max()) + 1) * len(self.own) + width + 1 - len(self.own)

    def are_few(self, n: int, width: int) -> bool:
        """Whether these are few of n."""
        return n >= FEWEST and width <= WIDEST and FEWER * self.rows(width) <= n


def reduced(functional: Functional, cells: Cells, squares: Squares) -> tuple[Functional, np.ndarray]:
    """Rows of the functional, and their targets, with the same sum of squares."""
    columns, n, width = functional.columns, len(squares.target), functional.columns.shape[1]
    cell, differ, own = np.broadcast_to(cells.cell, n).copy(), cells.own, len(cells.own)
    order = np.r_[differ, np.setdiff1d(np.arange(width), differ)].astype(np.int64)
    triangles = Triangles(int(cell.max()) + 1, own, width)
    values = np.ascontiguousarray(np.broadcast_to(functional.values, (n, width)))
    _rotate_rows(values, squares.target, squares.scale, cell, order, np.empty(width + 1), triangles.native)
    _, first = np.unique(cell, return_index=True)
    places = np.broadcast_to(columns, (n, width))[np.r_[np.repeat(first, own), np.zeros(width + 1 - own, np.int64)]]
    rows = triangles.rows()
    kept = np.any(rows != 0.0, axis=1)
    kept[-1] = True
    found = Functional(np.ascontiguousarray(places[kept][:, order]), rows[kept, :width].copy(), None, functional.sizes)
    return found, rows[kept, width].copy()


@entry
def _rotate_rows(values, target, scale, cell, order, row, triangles):
    """Rotate each row into the triangle of its cell, and what is left of it into the one that all share."""
    of_cells, shared = triangles.of_cells, triangles.shared
    own, width = of_cells.shape[1], order.shape[0]
    for i in range(cell.shape[0]):
        for j in range(width):
            row[j] = scale[i] * values[i, order[j]]
        row[width] = scale[i] * target[i]
        for k in range(width + 1):
            kept = of_cells[cell[i], k] if k < own else shared[k - own]
            if row[k] != 0.0:
                size = math.hypot(kept[k], row[k])
                c, s = kept[k] / size, row[k] / size
                for j in range(k, width + 1):
                    a, b = kept[j], row[j]
                    kept[j] = c * a + s * b
                    row[j] = c * b - s * a
