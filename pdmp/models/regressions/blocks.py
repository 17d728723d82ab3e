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
from pdmp.models.regressions.likelihoods import THIRD
from pdmp.native.classes import entry
from pdmp.native.prefetch import prefetch
from pdmp.native.threads import CHUNK, added, each

if TYPE_CHECKING:
    from pdmp.models.regressions.mixed import MixedRegression

ROWS_OF_COEFFICIENT = 8  #: rows of a chunk in memory, for each coordinate, at least
ENTRIES = 2**20  #: numbers of a block of coded rows; more where rows are so wide that a matrix is larger
WIDE = 256  #: columns from which on the Hessian costs so much that it is computed only where it is asked for


class Files:
    """Arrays of N rows in .npy files of one folder, which are written and read by ranges of rows."""

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

    def read(self, name: str, first: int, stop: int) -> np.ndarray:
        return self._known[name][first:stop]

    def mapped(self, name: str) -> np.ndarray:
        """All rows, which are the caller's from now on."""
        return self._known.pop(name)


def spans(n: int, width: int) -> list[tuple[int, int]]:
    """First and stop of the blocks of n rows of so many numbers."""
    step = max(ENTRIES // max(width, 1), width, 1)
    return [(first, min(first + step, n)) for first in range(0, n, step)]


def tasks(n: int, width: int, most: int) -> list[tuple[list[tuple[int, int]]]]:
    """The same for at most so many tasks, those of each in a list of its own."""
    where = spans(n, width)
    parts = max(1, min(most, len(where)))
    ends = [k * len(where) // parts for k in range(parts + 1)]
    return [(where[a:b],) for a, b in zip(ends[:-1], ends[1:], strict=True)]


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
    """Passes over the coded rows of a model."""

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
        items = tasks(self.n, self.width, self.place.spread)
        for results in self.place.each(_blocks, (self.files, self.shell, function, args), items):
            yield from results

    def total(self, function: Callable, *args: Any) -> tuple:
        """The sum over the blocks of the tuples that the function returns, entry by entry."""
        return added(self.map(function, *args))

    # -- what `laplace` asks ------------------------------------------------------------------------------------------

    def _at(self, x, curved=False):
        """Sums at x, as of `_terms`."""
        # Rows do not depend on what the laws of effects are.
        of_law = np.r_[self.shell.n_fixed : self.shell.n_fixed + self.shell.n_groups, getattr(self.shell, "lean", -1)]
        key = np.delete(x, of_law[of_law >= 0]).tobytes(), curved or self.shell.n_fixed < WIDE
        if self._look[0] not in (key, (key[0], True)):
            self._look = key, self.total(_terms, x, key[1])
        return self._look[1]

    def potential(self, x: np.ndarray) -> float:
        return float(self.shell.potential(x) + self._at(x)[0])

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.shell.gradient(x) + self._at(x)[1]

    def curvature(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], np.ndarray, Any]:
        """Σ of ℓ'' times products of the fixed columns (p, p), of those of a group (G, K, K), of both (p, E).

        The second of each grouping. Fourth is the sparse part of two coefficients of different groupings, (E, E), of
        which one of each two entries that are the same is there, or None.
        """
        _, _, squares, own, border, _, _ = self._at(x, True)
        crossed = (
            self.crossing.matrix(self.files.read("curvatures", 0, len(self.model.target))) if self.crossing else None
        )
        return squares, self._by_grouping(own), border, crossed

    crossing: Crossing | None = None  #: `Crossing` of the groupings of a model in memory, or None

    def changes_of_blocks(self, x: np.ndarray) -> list[list[np.ndarray]]:
        """Derivatives of the second of these by each dispersion, of crossed groups."""
        return [self._by_grouping(own) for own in self._at(x)[6]]

    def _by_grouping(self, own):
        shell, found = self.shell, []
        for columns in shell.groupings() if shell.n_groups else []:
            part = slice(*(shell.first[[columns[0], columns[-1] + 1]] - shell.first[0]))
            block = own[part, : len(columns)].reshape(len(columns), -1, len(columns))
            found.append(np.ascontiguousarray(block.transpose(1, 0, 2)))
        return found

    def differences(self, x: np.ndarray, step: float) -> Iterator[np.ndarray]:
        """Of each dispersion the derivative of ∇U along it, (d,): exact for the data, a difference for the prior."""
        rows, k = self._at(x)[5], self.shell.n_dispersions
        for q in range(k):
            e = np.zeros(len(x))
            e[len(x) - k + q] = step
            yield rows[q] + (self.shell.gradient(x + e) - self.shell.gradient(x - e)) / (2.0 * step)


class Chunks(Blocks):
    """The same of a model in memory, whose rows are views."""

    def __init__(self, model: MixedRegression) -> None:
        self.model, self.files = model, Arrays()
        self.shell = rows_of(model, 0, 0)
        self._look = (None, None)
        if is_crossed(model):
            self.crossing = Crossing(model)
            self.files.create("curvatures", (model.n_data,))

    def map(self, function: Callable, *args: Any) -> Iterator[Any]:
        def part(first, stop):
            return function(rows_of(self.model, first, stop), self.files, first, *args)

        ranges = row_chunks(self.model)
        if self.model.n_groups:  # each chunk has sums for all coefficients, which take time to be added
            step, n = max(CHUNK, ROWS_OF_COEFFICIENT * self.model.dim), self.model.n_data
            ranges = [(first, min(first + step, n)) for first in range(0, n, step)]
        return each(part, ranges)


def rows_of(model: MixedRegression, first: int, stop: int) -> MixedRegression:
    """The model of rows first … stop - 1 alone, of a model in memory; only `Columns` are copied."""
    return _shell(model, model.design.rows(first, stop), *(a[first:stop] for a in _beside(model)))


DIFFERENCE = 1e-4  #: step of differences along a dispersion


def _nothing():
    return None


def _beside(model):
    return model.target, model.further, model.offset, model.weight, model.level, model.value


def _shell(model, X, target, further, offset, weight, level, value):
    """The model with other rows."""
    other = copy.copy(model)
    other.design, other.n_data = Dense(X, model.n_fixed), len(target)
    other.target, other.further, other.offset, other.weight = target, further, offset, weight
    other.level, other.value = level, value
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
    level = files.read("level", first, stop) if "level" in files else np.zeros((n, 0), np.int32)
    value = files.read("value", first, stop) if "value" in files else np.zeros((n, 0))
    X, target, offset, weight = (files.read(name, first, stop) for name in ("X", "target", "offset", "weight"))
    return _shell(shell, X, target, np.zeros((n, 0)), offset, weight, level, value)


def _terms(block, files, first, x, curved):
    crossed = is_crossed(block)  # where concave rows, as those of a Student-t law that are far off, are left out
    found = sums_of_rows(block, x, clip=crossed, thirds=crossed)
    squares = products(block.design.data, found.curvatures, block.n_fixed) if curved else np.zeros(0)
    if crossed:
        files.write("curvatures", first, found.curvatures)
    return found.potential, found.gradient, squares, found.own, found.border, found.laws, found.changes


class RowSums(NamedTuple):
    """Sums over rows at a point; of p fixed columns, E coefficients of groups and k dispersions."""

    potential: float
    gradient: np.ndarray  #: (d,)
    own: np.ndarray  #: (E, W) of ℓ'' times products of coefficients of one group, W the most columns of a grouping
    border: np.ndarray  #: (p, E) of these and the fixed columns
    laws: np.ndarray  #: (k, d) rows of the Hessian of the dispersions
    changes: np.ndarray  #: (k, E, W) derivatives of `own` by the dispersions, if asked for, else empty
    bulge: np.ndarray  #: (E, p + k) Σ θ of each coefficient, if asked for, else empty
    curvatures: np.ndarray  #: (N,) ℓ'' of each row, times its weight
    thirds: np.ndarray  #: (1 + k, N) θ, half its derivatives by the functionals, if asked for, else (0, 0)


def sums_of_rows(
    model: MixedRegression, x: np.ndarray, loss: bool = True, clip: bool = False, thirds: bool = False
) -> RowSums:
    """Of a model in memory, in one thread; `clip` counts ℓ'' below 0 as 0, and without `loss` the potential is 0."""
    p, n, E, first = model.n_fixed, model.n_functionals, int(model.first[-1] - model.first[0]), int(model.first[0])
    head, column = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if model.n_groups:
        head, column = model.head, np.repeat(np.arange(model.n_groups) - model.head, np.diff(model.first))
    W, k = int(max(np.bincount(head), default=0)), n - 1
    # What belongs to a coefficient is side by side: rows of many groups wait for the memory at each of these.
    of = np.zeros((E, 1 + p + W + k + thirds * (p + k * W)))
    gradient, laws = np.zeros(model.dim), np.zeros((k, model.dim))
    curvatures, third = np.zeros(model.n_data), np.zeros((n, model.n_data) if thirds else (0, 0))
    potential = _sums(
        model.native, x, head, loss, clip, of, gradient, laws, curvatures, third, np.zeros((n, n)),
        *model.scratch(LANES),
    )  # fmt: skip
    parts = np.split(of, np.cumsum([1, p, W, k, thirds * p]), axis=1)
    gradient[first : first + E] = parts[0][:, 0]
    laws[:, first : first + E] = parts[3].T
    changes = parts[5].reshape(E, k, W) if thirds else np.zeros((E, 0, W))
    bulge = np.hstack([parts[4], 0.5 * changes[np.arange(E), :, column]]) if thirds else np.zeros((0, 0))
    border = np.ascontiguousarray(parts[1].T)
    return RowSums(
        potential, gradient, parts[2].copy(), border, laws, changes.transpose(1, 0, 2).copy(), bulge, curvatures, third
    )


@entry
def _sums(model, x, head, loss, clip, of, gradient, laws, curvatures, thirds, hessian, eta, there, data, room):
    """Write `RowSums`, whose potential is returned; effects are centred, and what is of them is in `of`."""
    p, laws_first, total, first = model.n_fixed, model.dim - model.n_dispersions, 0.0, 0
    width = of.shape[1] - 1 - p - model.n_dispersions
    if thirds.shape[0] > 0:
        width = (width - p) // (1 + model.n_dispersions)
    while first < model.n_data:
        lanes = min(LANES, model.n_data - first)
        for lane in range(lanes):
            for k in range(model.n_groups):
                prefetch(of, model.level[first + lane, k] - model.first[0])
        model.write_rows(x, 0, first, lanes, data, eta)
        place = model.run(0, LOSS if loss else CURVATURE, lanes, data, eta, room)
        if loss:
            for lane in range(lanes):
                total += model.weight_of(first + lane) * room[model.results[place], lane]
        if thirds.shape[0] > 0:
            place = model.run(0, THIRD, lanes, data, eta, room)
            for k in range(model.n_functionals):
                for lane in range(lanes):
                    thirds[k, first + lane] = 0.5 * model.weight_of(first + lane) * room[model.results[place + k], lane]
        if loss or thirds.shape[0] > 0:
            place = model.run(0, CURVATURE, lanes, data, eta, room)
        for lane in range(lanes):
            i = first + lane
            weight = model.weight_of(i)
            slope = weight * room[model.results[place], lane]
            model.hessian_of(i, place, lane, room, hessian)
            w = max(hessian[0, 0], 0.0) if clip else hessian[0, 0]
            curvatures[i] = w
            if clip and w == 0.0:
                for q in range(thirds.shape[0]):
                    thirds[q, i] = 0.0
            model.design.add_row(i, slope, gradient)
            for q in range(model.n_dispersions):
                gradient[laws_first + q] += weight * room[model.results[place + 1 + q], lane]
                model.design.add_row(i, hessian[0, 1 + q], laws[q])
                for r in range(model.n_dispersions):
                    laws[q, laws_first + r] += hessian[1 + q, 1 + r]
            for k in range(model.n_groups):
                e, value = model.level[i, k] - model.first[0], model.value[i, k]
                of[e, 0] += slope * value
                for j in range(p):
                    of[e, 1 + j] += w * model.design.feature(i, j) * value
                c = 1 + p + width
                for q in range(model.n_dispersions):
                    of[e, c + q] += hessian[0, 1 + q] * value
                c += model.n_dispersions
                if thirds.shape[0] > 0:
                    for j in range(p):
                        of[e, c + j] += thirds[0, i] * model.design.feature(i, j) * (value * value)
                    c += p
                for r in range(model.n_groups):
                    if head[r] == head[k]:
                        both, s = value * model.value[i, r], r - head[k]
                        of[e, 1 + p + s] += w * both
                        for q in range(thirds.shape[0] - 1):
                            of[e, c + q * width + s] += 2.0 * thirds[1 + q, i] * both
        first += lanes
    return total


def is_crossed(model: MixedRegression) -> bool:
    """Whether a model has coefficients of several groupings."""
    return model.n_groups > 0 and len(model.groupings()) > 1


def by_group(level: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their groups, (N,), and where each group begins, (groups + 1,)."""
    from scipy import sparse

    # Counted, not compared: of many rows several times as fast as a sort.
    n = len(level)
    rows = sparse.csr_array((np.ones(n, np.int8), level, np.arange(n + 1)), shape=(n, groups)).tocsc()
    return rows.indices, rows.indptr


class Crossing:
    """Which coefficients of different groupings of a model in memory have rows in common."""

    def __init__(self, model: MixedRegression) -> None:
        self.model, self.size = model, int(model.first[-1] - model.first[0])
        self.parts = [
            (one, other, *self._pairs(model.level[:, one] - model.first[0], model.level[:, other] - model.first[0]))
            for one, other in itertools.combinations(range(model.n_groups), 2)
            if model.head[one] != model.head[other]
        ]

    def _pairs(self, one, other):
        """The pair of each row, the second places of the pairs in order, and where those of each first begin."""
        order = by_group(other, self.size)[0]
        order = order[by_group(one[order], self.size)[0]]
        one, other = one[order], other[order]
        new = np.r_[True, (one[1:] != one[:-1]) | (other[1:] != other[:-1])]
        pair = np.empty(len(order), np.int32)
        pair[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
        begin = np.concatenate([[0], np.cumsum(np.bincount(one[new], minlength=self.size))])
        return pair, other[new].astype(np.int32), begin.astype(np.int32)

    def matrix(self, rows: np.ndarray) -> Any:
        """Σ rows times products of two coefficients of different groupings, a sparse matrix (E, E).

        An entry is that of the column that comes first, and the other.
        """
        from scipy import sparse

        found, value = None, self.model.value
        for one, other, pair, places, begin in self.parts:
            entries = np.bincount(pair, rows * value[:, one] * value[:, other], len(places))
            part = sparse.csr_array((entries, places, begin), shape=(self.size, self.size))
            found = part if found is None else found + part
        return found
