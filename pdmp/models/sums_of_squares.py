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

import math
from typing import NamedTuple

import numpy as np

from pdmp.expressions.functionals import Functional
from pdmp.expressions.nodes import FUNCTION, PRODUCT, Node
from pdmp.expressions.tape import Tape
from pdmp.native.classes import Compiled, entry

FEWEST = 500  #: rows: the sum of fewer takes microseconds
FEWER = 4  #: times as many rows must there be as there are in their place
WIDEST = 200  #: entries of a row: a rotation costs their square
SPREADS = (0.5, 1.0, 3.0, 30.0, 100.0)  #: of points at which rows are compared, and of their opposites
ROUNDING = 1e-9  #: share by which what is equal may differ
KINKED = {"abs", "sign", "kink"}


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


def is_sum_of_products(node: Node, differ: set[int], seen: set[int] | None = None) -> bool:
    """Whether it is a sum of what data say, each times a smooth function of the functionals alone.

    So is a power of such a sum. Then rows that agree on what is compared at a few points agree everywhere. `differ`:
    which data are not the same in all rows.
    """
    seen = set() if seen is None else seen
    if node.index in seen or not node.depends:
        return True
    seen.add(node.index)
    mixed = bool(node.data() & differ)
    if node.kind == FUNCTION and (mixed or node.args[0] in KINKED):
        return False
    for part, e in node.args if node.kind == PRODUCT else ():
        if part.depends and part.data() & differ and (e < 0 or e != int(e)):
            return False
    return all(is_sum_of_products(part, differ, seen) for part in node.parts)


def squares_of(expression: Node, data: np.ndarray, m: int, z: int) -> Squares | None:
    """What rows of data (q, n) that are quadratic in functional z are squares of; None if they are of several kinds."""
    differ = {j for j, column in enumerate(data) if np.any(column != column[0])}
    if not is_sum_of_products(expression, differ):
        return None
    slope = expression.derivative(z)
    tape = Tape([expression, slope, slope.derivative(z)])
    n = data.shape[1]
    points = np.random.default_rng(0).standard_normal((len(SPREADS), m)) * np.array(SPREADS)[:, None]
    points = np.concatenate([points, -points])

    def values(s, at_z):
        eta = np.repeat(s[:, None], n, axis=1)
        eta[z] = at_z
        with np.errstate(all="ignore"):
            return tape(data, eta)

    slopes, bends = np.array([values(s, 0.0)[1:] for s in points]).swapaxes(0, 1)
    if not (np.all(np.isfinite(slopes)) and np.all(np.isfinite(bends)) and np.all(bends > 0.0)):
        return None
    target, usual = -slopes[0] / bends[0], int(np.argmax(bends[0]))
    weight = bends[0] / bends[0, usual]
    if not (_agree(slopes, -bends * target) and _agree(bends, weight * bends[:, [usual]])):
        return None
    rest = np.array([values(s, target)[0] for s in points])
    change = rest - rest[0]
    other = int(np.argmax(np.abs(change[1])))
    size = ROUNDING * (np.abs(rest).max(axis=1) + np.abs(rest[0]).max())
    size += bends.max(axis=1) * (1e-15 * np.abs(target).max()) ** 2  # squares of what rounding leaves of residuals
    times = change[1] / change[1, other] if abs(change[1, other]) > size[1] else np.zeros(n)
    if not np.all(np.abs(change - times * change[:, [other]]) <= size[:, None]):
        return None
    constant = math.fsum(rest[0] - times * rest[0, other])
    return Squares(target, np.sqrt(weight), usual, other, math.fsum(times), constant)


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
