"""Sums over the rows of a regression whose coded columns are in files: block by block, and added in order.

A block is so many rows as `ENTRIES` numbers, whoever reads it. So a sum is bitwise the same for every number of
workers, with one kind of processor and one version of each library, and no process has more than a block in its
memory.
"""

from __future__ import annotations

import copy
import itertools
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.expressions.tape import CURVATURE, LANES, LOSS
from pdmp.models.numerical import row_chunks
from pdmp.models.regressions.design import Dense, products
from pdmp.native.classes import entry
from pdmp.native.threads import added, each

if TYPE_CHECKING:
    from pdmp.models.regressions.mixed import MixedRegression

ENTRIES = 2**20  #: numbers of a block of coded rows; more where rows are so wide that a matrix is larger
WIDE = 256  #: columns from which on the Hessian costs so much that it is computed only where it is asked for


class Files:
    """Arrays of N rows in .npy files of one folder, which are written and read by ranges of rows.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = pathlib.Path(folder)
        self._known: dict[str, tuple] = {}  # dtype, shape of a row, place of the first in the file

    def path(self, name: str) -> str:
        return os.path.abspath(self.folder / f"{name}.npy")

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def unused(self, name: str) -> str:
        """A name that no array has: what a process has mapped must not be written again."""
        return next(one for k in itertools.count() if (one := f"{name}-{k}") not in self)

    def create(self, name: str, shape: tuple[int, ...], dtype: Any = float) -> None:
        """Of zeros, which take no space yet."""
        array = np.lib.format.open_memmap(self.path(name), "w+", dtype, shape)
        self._known[name] = array.dtype, shape[1:], array.offset

    def remove(self, name: str) -> None:
        del self._known[name]
        os.unlink(self.path(name))

    def write(self, name: str, first: int, rows: np.ndarray) -> None:
        """Rows from `first` on."""
        dtype, width, begin = self._known[name]
        rows = np.ascontiguousarray(rows, dtype)
        # Written, not mapped: on a network's file systems other machines see it once the file is closed.
        with open(self.path(name), "r+b") as file:
            file.seek(begin + first * dtype.itemsize * int(np.prod(width, dtype=int)))
            file.write(rows.data.cast("B") if rows.size else b"")

    def read(self, name: str, first: int, stop: int) -> np.ndarray:
        """Rows first … stop - 1, in memory; an array of no rows for a name that there is not."""
        if name not in self._known:
            return np.zeros(0)
        dtype, width, begin = self._known[name]
        numbers = int(np.prod(width, dtype=int))
        place = begin + first * dtype.itemsize * numbers
        rows = np.fromfile(self.path(name), dtype, (stop - first) * numbers, offset=place)
        return rows.reshape(stop - first, *width)

    def mapped(self, name: str) -> np.ndarray:
        """All rows, memory-mapped, not to be written; an array of no rows for a name that there is not."""
        return np.asarray(np.load(self.path(name), mmap_mode="r")) if name in self._known else np.zeros(0)


class Arrays:
    """The same in memory, for the rows of a model that are there."""

    def __init__(self) -> None:
        self._known: dict[str, np.ndarray] = {}

    def unused(self, name: str) -> str:
        return next(one for k in itertools.count() if (one := f"{name}-{k}") not in self._known)

    def create(self, name: str, shape: tuple[int, ...]) -> None:
        self._known[name] = np.zeros(shape)

    def write(self, name: str, first: int, rows: np.ndarray) -> None:
        self._known[name][first : first + len(rows)] = rows

    def mapped(self, name: str) -> np.ndarray:
        """All rows, which are the caller's from now on."""
        return self._known.pop(name)


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """First and stop of the blocks of n rows of so many numbers."""
    step = max(ENTRIES // max(width, 1), width, 1)
    return [(first, min(first + step, n)) for first in range(0, n, step)]


class Coded(NamedTuple):
    """The rows of a model in files, standardised."""

    files: Files  #: "X", "y", "target", and where there are such "offset", "weight", "level" and "value"
    n: int
    centre: np.ndarray
    scale: np.ndarray
    response_centre: float
    response_scale: float
    group_scale: np.ndarray
    place: Any  #: whose ``map(function, common, items)`` runs a pass

    def __reduce__(self):
        return _nothing, ()  # it stays with the process that coordinates; workers of chains have no need of it


class Blocks:
    """Passes over the rows of a model.

    Parameters
    ----------
    model : MixedRegression
        Of coded rows.
    coded : Coded
    """

    def __init__(self, model: MixedRegression, coded: Coded) -> None:
        self.files, self.n, self.place = coded.files, coded.n, coded.place
        self.width = model.n_fixed + 2 * model.n_groups + 3
        parts = model.design.data, *_beside(model)
        self.shell = _shell(model, *(np.zeros((0, *a.shape[1:]), a.dtype) for a in parts))
        self._look: tuple = (None, None)  # where, and whether with the Hessian

    def __reduce__(self):
        return _nothing, ()

    def map(self, function: Callable, *args: Any) -> Iterator[Any]:
        """``function(block, files, first, *args)`` of each block of rows, a model of its own, in order."""
        where = spans(self.n, self.width)
        parts = max(1, min(self.place.spread, len(where)))
        ends = [k * len(where) // parts for k in range(parts + 1)]
        items = [(where[a:b],) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        for results in self.place.each(_blocks, (self.files, self.shell, function, args), items):
            yield from results

    def total(self, function: Callable, *args: Any) -> tuple:
        """The sum over the blocks of the tuples that the function returns, entry by entry."""
        return added(self.map(function, *args))

    # -- what `laplace` asks ------------------------------------------------------------------------------------------

    def _at(self, x, curved=False):
        """Sums at x: the terms, their gradient, the curvatures, and the Hessian's rows of the dispersions."""
        key = x.tobytes(), curved or self.shell.n_fixed < WIDE
        if self._look[0] not in (key, (key[0], True)):
            self._look = key, self.total(_terms, x, key[1])
        return self._look[1]

    def potential(self, x: np.ndarray) -> float:
        return float(self.shell.potential(x) + self._at(x)[0])

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.shell.gradient(x) + self._at(x)[1]

    def curvature(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, None]:
        """Σ of ℓ'' times products of the fixed columns (p, p), of those of a group (G, K, K), of both (p, K G).

        The second in a list, and last that there are no crossed groups.
        """
        squares, own, border = self._at(x, True)[2:5]
        return squares, [own] if self.shell.n_groups else [], border, None

    def differences(self, x: np.ndarray, step: float) -> Iterator[np.ndarray]:
        """Of each dispersion the derivative of ∇U along it, (d,): exact for the data, a difference for the prior."""
        rows, k = self._at(x)[5], self.shell.n_dispersions
        for q in range(k):
            e = np.zeros(len(x))
            e[len(x) - k + q] = step
            yield rows[q] + (self.shell.gradient(x + e) - self.shell.gradient(x - e)) / (2.0 * step)


class Chunks(Blocks):
    """The same of a model in memory without groups, whose rows are views.

    Parameters
    ----------
    model : MixedRegression
    """

    def __init__(self, model: MixedRegression) -> None:
        self.model, self.files = model, Arrays()
        self.shell = rows_of(model, 0, 0)
        self._look = (None, None)

    def map(self, function: Callable, *args: Any) -> Iterator[Any]:
        def part(first, stop):
            return function(rows_of(self.model, first, stop), self.files, first, *args)

        return each(part, row_chunks(self.model))


def rows_of(model: MixedRegression, first: int, stop: int) -> MixedRegression:
    """The model of rows first … stop - 1 alone, of a model in memory; only `Columns` are copied."""
    return _shell(model, model.design.rows(first, stop), *(a[first:stop] for a in _beside(model)))


DIFFERENCE = 1e-4  #: step of differences along a dispersion


def _nothing():
    return None


def _beside(model):
    return model.target, model.offset, model.weight, model.level, model.value


def _shell(model, X, target, offset, weight, level, value):
    """The model with other rows."""
    other = copy.copy(model)
    other.design, other.n_data = Dense(X, model.n_fixed), len(target)
    other.target, other.offset, other.weight, other.level, other.value = target, offset, weight, level, value
    other.X = other.y = np.zeros(0)
    other.groups, other.blocks, other.coded, other.coords = (), None, None, {}
    return other


def _blocks(common, where):
    """Of one task: the results of its blocks."""
    files, shell, function, args = common
    return [function(block_of(shell, files, first, stop), files, first, *args) for first, stop in where]


def block_of(shell: MixedRegression, files: Files, first: int, stop: int) -> MixedRegression:
    """The model of rows first … stop - 1 alone, in memory."""
    n = stop - first
    level = files.read("level", first, stop) if "level" in files else np.zeros((n, 0), np.int64)
    value = files.read("value", first, stop) if "value" in files else np.zeros((n, 0))
    X, target, offset, weight = (files.read(name, first, stop) for name in ("X", "target", "offset", "weight"))
    return _shell(shell, X, target, offset, weight, level, value)


def _terms(block, files, first, x, curved):
    p, k, K = block.n_fixed, block.n_dispersions, block.n_groups
    groups = int(block.first[1] - block.first[0]) if K else 0
    gradient, laws = np.zeros(block.dim), np.zeros((k, block.dim))
    own, border, curvatures = np.zeros((groups, K, K)), np.zeros((p, K * groups)), np.empty(block.n_data)
    m = block.n_functionals
    potential = _sums(block.native, x, gradient, curvatures, own, border, laws, np.zeros((m, m)), *block.scratch(LANES))
    squares = products(block.design.data, curvatures, p) if curved else np.zeros(0)
    return potential, gradient, squares, own, border, laws


@entry
def _sums(model, x, gradient, curvatures, own, border, laws, hessian, eta, there, data, room):
    """Σ Uᵢ, returned; its gradient; ℓ'' of each row, and sums by columns, groups and dispersions, effects centred."""
    law, p, total, first = model.likelihood, border.shape[0], 0.0, 0
    while first < model.n_data:
        lanes = min(LANES, model.n_data - first)
        out = law.results[model.run_rows(LOSS, x, first, lanes, eta, data, room)]
        for lane in range(lanes):
            total += model.weight_of(first + lane) * room[out, lane]
        place = law.run(CURVATURE, lanes, data, eta, room)
        for lane in range(lanes):
            i = first + lane
            model.distribute(x, i, place, lane, room, gradient)
            model.hessian_of(i, place, lane, room, hessian)
            w = hessian[0, 0]
            curvatures[i] = w
            if model.n_groups > 0:
                for j in range(p):
                    part = w * model.design.feature(i, j)
                    for k in range(model.n_groups):
                        border[j, model.level[i, k] - model.first[0]] += part * model.value[i, k]
            for k in range(model.n_groups):
                for q in range(model.n_groups):
                    own[model.level[i, 0] - model.first[0], k, q] += w * model.value[i, k] * model.value[i, q]
            for q in range(model.n_dispersions):
                part = hessian[0, 1 + q]
                model.design.add_row(i, part, laws[q])
                for k in range(model.n_groups):
                    laws[q, model.level[i, k]] += part * model.value[i, k]
                for r in range(model.n_dispersions):
                    laws[q, model.dim - model.n_dispersions + r] += hessian[1 + q, 1 + r]
        first += lanes
    return total
