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
from pdmp.expressions.nodes import Node
from pdmp.expressions.tape import Tape
from pdmp.native.classes import entry

FEWEST = 500  #: rows: the sum of fewer takes microseconds
FEWER = 4  #: times as many rows must there be as there are in their place
POINTS = 4  #: at which functionals that rows share are compared
ROUNDING = 1e-9  #: share by which what is equal may differ


class Squares(NamedTuple):
    """What rows are squares of."""

    target: np.ndarray  #: t, (n,)
    scale: np.ndarray  #: √ω, (n,)
    usual: int  #: the row of which h is, with ω = 1
    other: int  #: that of which g is
    times: float  #: Σ γ
    constant: float  #: Σ α


def varying_functional(at: tuple[Functional, ...], expression: Node, n: int) -> int | None:
    """Which functional is the only one that differs in n rows, if the expression is quadratic in it."""
    several = [k for k, functional in enumerate(at) if functional.n > 1]
    if n < FEWEST or len(several) != 1 or at[several[0]].values.dtype != float:
        return None
    z = several[0]
    first = expression.derivative(z)
    return z if z in first.depends and z not in first.derivative(z).depends else None


def squares_of(expression: Node, data: list[np.ndarray], n: int, m: int, z: int) -> Squares | None:
    """What rows that are quadratic in functional z are squares of; None if they are of different kinds.

    Losses are smooth in s, so that what agrees at a few random points agrees everywhere.
    """
    slope = expression.derivative(z)
    tape = Tape([expression, slope, slope.derivative(z)])
    columns = np.array(data).reshape(-1, n)
    points = np.random.default_rng(0).normal(0.0, 0.5, (POINTS, m))

    def values(s, at_z):
        eta = np.repeat(s[:, None], n, axis=1)
        eta[z] = at_z
        with np.errstate(all="ignore"):
            return tape(columns, eta)

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
    size = ROUNDING * np.abs(rest).max()
    times = change[1] / change[1, other] if abs(change[1, other]) > size else np.zeros(n)
    if not np.all(np.abs(change - times * change[:, [other]]) <= size):
        return None
    constant = math.fsum(rest[0] - times * rest[0, other])
    return Squares(target, np.sqrt(weight), usual, other, math.fsum(times), constant)


def _agree(one, other):
    return np.all(np.abs(one - other) <= ROUNDING * (np.abs(one) + np.abs(other)))


def cells_of(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In which cell each row is, (n,), and which of the entries have columns that others have not, of (n, W) columns.

    Cells are numbered in the order of their first rows.
    """
    differ = np.flatnonzero(np.any(columns != columns[0], axis=0))
    cell = np.zeros(len(columns), np.int64)
    for j in differ:
        _, own = np.unique(columns[:, j], return_inverse=True)
        _, cell = np.unique(cell * (own.max() + 1) + own, return_inverse=True)
    return cell, differ


def are_few(columns: np.ndarray, n: int) -> bool:
    """Whether few rows have the sum of n rows of squares with entries in these columns, (n, W), or (1, W) of all."""
    cell, differ = cells_of(columns)
    return n >= FEWEST and FEWER * ((int(cell.max()) + 1) * len(differ) + columns.shape[1] + 1 - len(differ)) <= n


def reduced(functional: Functional, squares: Squares) -> tuple[Functional, np.ndarray] | None:
    """Fewer rows of the functional, and their targets, with the same sum of squares; None if they are not fewer."""
    columns, n = functional.columns, len(squares.target)
    if not are_few(columns, n):
        return None
    (cell, differ), width = cells_of(columns), columns.shape[1]
    cell, own = np.broadcast_to(cell, n).copy(), len(differ)
    cells = int(cell.max()) + 1
    order = np.r_[differ, np.setdiff1d(np.arange(width), differ)].astype(np.int64)
    of_cells, shared = np.zeros((cells, own, width + 1)), np.zeros((width + 1 - own, width + 1))
    values = np.ascontiguousarray(np.broadcast_to(functional.values, (n, width)))
    _rotate_rows(values, squares.target, squares.scale, cell, order, np.empty(width + 1), of_cells, shared)
    _, first = np.unique(cell, return_index=True)
    places = np.broadcast_to(columns, (n, width))[np.r_[np.repeat(first, own), np.zeros(len(shared), np.int64)]]
    rows = np.concatenate([of_cells.reshape(-1, width + 1), shared])
    kept = np.any(rows != 0.0, axis=1)
    kept[-1] = True
    found = Functional(np.ascontiguousarray(places[kept][:, order]), rows[kept, :width].copy(), None, functional.sizes)
    return found, rows[kept, width].copy()


@entry
def _rotate_rows(values, target, scale, cell, order, row, of_cells, shared):
    """Rotate each row into the triangle of its cell, and what is left of it into the one that all share."""
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
