"""Design matrices as compiled code reads them: dense, where they are in a file, or sparse.

A regression asks three things of its features: products with a block of at most 64 rows, weighted sums of them, and
single entries. A `Dense` matrix is either a copy whose rows are filled up to whole cache lines, or, memory-mapped, the
file itself, of which no copy is made. A `Sparse` one is in compressed rows, and costs what is stored of a row; `Tiles`
are for blocks of consecutive rows, and `Columns` of a large table are standardised as they are read, where they are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from pdmp.data.memory import machine_memory
from pdmp.native.arguments import refuse_unreal
from pdmp.native.classes import Compiled, compiled, entry, inlined, vectorised
from pdmp.native.prefetch import LINE, ask, fetch_at, prefetch, read_at
from pdmp.native.threads import chunks, each
from pdmp.native.vectors import BLOCK, add8, aligned, buffer, dot

PIECE = 2**20  #: rows of a large matrix that Python looks at together hold about so many numbers
KEPT_SHARE = 0.25  #: of the memory, up to which a file is expected to stay there
IN_CACHE = 2**15  #: numbers of a piece that a few operations in a row find in the cache


@inlined
def _lanes(x, d, c, width, wide):
    """Put x[c : c + 64] into a buffer, zeros from x[d] on; returns how many eights of a row can be read there."""
    m = min(BLOCK, d - c)
    for j in range(m):
        wide[j] = x[c + j]
    for j in range(m, min(BLOCK, 8 * ((m + 7) // 8))):
        wide[j] = 0.0
    return min((m + 7) // 8, (width - c) // 8)


@vectorised
def _products(data, d, x, rows, start, n, out):
    """out[k] = row rows[start + k] times x, for the block at `start`; the first half of the next block is fetched."""
    wide = buffer()
    m, ahead = min(BLOCK, n - start), min(BLOCK, max(n - start - BLOCK, 0)) // 2
    if start == 0:
        for k in range(m):
            prefetch(data, rows[k])
    for k in range(m):
        out[k] = 0.0
    for c in range(0, d, BLOCK):
        eights = _lanes(x, d, c, data.shape[1], wide)
        for k in range(ahead):
            prefetch(data, rows[start + BLOCK + k])
            out[2 * k] += dot(data, rows[start + 2 * k], c, wide, eights)
            out[2 * k + 1] += dot(data, rows[start + 2 * k + 1], c, wide, eights)
        for k in range(2 * ahead, m):
            out[k] += dot(data, rows[start + k], c, wide, eights)
        for k in range(m):
            for j in range(8 * eights, min(BLOCK, d - c)):
                out[k] += data[rows[start + k], c + j] * wide[j]
        ahead = 0


@vectorised
def _add_rows(data, d, rows, start, n, weights, out):
    """out += Σ weights[k] row k of the block; the second half of the next block is fetched."""
    eight = buffer()
    m, ahead = min(BLOCK, n - start), min(BLOCK, max(n - start - BLOCK, 0)) // 2
    next_row = start + BLOCK + ahead
    for c in range(0, d, 8):
        if c + 8 > data.shape[1]:
            for k in range(m):
                for j in range(c, d):
                    out[j] += weights[k] * data[rows[start + k], j]
            break
        for j in range(8):
            eight[j] = 0.0
        for k in range(ahead):
            prefetch(data, rows[next_row + k])
            add8(eight, weights[2 * k], data, rows[start + 2 * k], c)
            add8(eight, weights[2 * k + 1], data, rows[start + 2 * k + 1], c)
        for k in range(2 * ahead, m):
            add8(eight, weights[k], data, rows[start + k], c)
        ahead = 0
        for j in range(min(8, d - c)):
            out[c + j] += eight[j]


@vectorised
def _add_squares(data, rows, start, m, weights, out, squares):
    for k in range(m):
        i, w = rows[start + k], weights[k]
        for j in range(out.shape[0]):
            g = w * data[i, j]
            out[j] += g
            squares[j] += g * g


@vectorised
def _block_products(data, d, x, first, m, out):
    for k in range(m):
        z = 0.0
        for j in range(d):
            z += data[first + k, j] * x[j]
        out[k] = z


@vectorised
def _add_block(data, d, first, m, weights, out):
    for k in range(m):
        for j in range(d):
            out[j] += weights[k] * data[first + k, j]


@vectorised
def _copy_rows(data, rows, n, tiles):
    for k in range(min(BLOCK, n)):
        prefetch(data, rows[k])
    for start in range(0, n, BLOCK):
        m, ahead = min(BLOCK, n - start), min(BLOCK, max(n - start - BLOCK, 0))
        for k in range(m):
            if k < ahead:
                prefetch(data, rows[start + BLOCK + k])
            for j in range(tiles.shape[1]):
                tiles[start // BLOCK, j, k] = data[rows[start + k], j]


class Full(Compiled):
    """Base of matrices that have all d entries of a row."""

    size: int

    @compiled
    def row_range(self, i):
        """Range of k for which `column(k)` and `entry(i, k)` are what row i has."""
        return 0, self.size

    @compiled
    def column(self, k):
        return k

    @compiled
    def entry(self, i, k):
        return self.feature(i, k)

    @compiled
    def product(self, x, i):
        """Row i times x."""
        z = 0.0
        for j in range(self.size):
            z += self.feature(i, j) * x[j]
        return z

    @compiled
    def product_of(self, x, places, n, i):
        """Row i times x, which is 0 in all columns but the first n of `places`."""
        z = 0.0
        for k in range(n):
            z += self.feature(i, places[k]) * x[places[k]]
        return z

    @compiled
    def add_row(self, i, weight, out):
        for j in range(self.size):
            out[j] += weight * self.feature(i, j)


class Dense(Full):
    """A matrix in memory or in a file, (N, d) or (N, more): what comes after d entries of a row are zeros."""

    data: np.ndarray

    def __init__(self, data, size):
        self.data, self.size = data, size

    @compiled
    def feature(self, i, j):
        return float(self.data[i, j])

    @compiled
    def both_products(self, x, y, i):
        """Row i times x, and times y."""
        z, w = 0.0, 0.0
        for j in range(self.size):
            a = self.data[i, j]
            z += a * x[j]
            w += a * y[j]
        return z, w

    @compiled
    def fetch(self, i):
        prefetch(self.data, i)

    @compiled
    def fetch_entry(self, values, i):
        """Ask for the entry of row i of an array that belongs to the matrix, where that is in a file."""

    @compiled
    def products(self, x, rows, start, n, out):
        """out[k] = row rows[start + k] times x, for the next 64 of the n rows."""
        _products(self.data, self.size, x, rows, start, n, out)

    @compiled
    def add_rows(self, rows, start, n, weights, out):
        """out += Σ weights[k] times row rows[start + k], over the next 64 of the n rows."""
        _add_rows(self.data, self.size, rows, start, n, weights, out)

    @compiled
    def add_squares(self, rows, start, m, weights, out, squares):
        """The same over m rows, and the sum of the squares of its terms."""
        _add_squares(self.data, rows, start, m, weights, out, squares)

    @compiled
    def block_products(self, x, first, m, out):
        """out[k] = row first + k times x."""
        _block_products(self.data, self.size, x, first, m, out)

    @compiled
    def add_block(self, first, m, weights, out):
        """out += Σ weights[k] times row first + k."""
        _add_block(self.data, self.size, first, m, weights, out)

    @compiled
    def copy_rows(self, rows, n, tiles):
        """Copy n rows into tiles, as those of `Tiles`."""
        _copy_rows(self.data, rows, n, tiles)

    def taken(self, rows):
        """The same with its rows in the order `rows`."""
        data = aligned((len(rows), self.data.shape[1]), self.data.dtype)
        np.take(self.data, rows, axis=0, out=data)
        return Dense(data, self.size)

    def some(self, rows):
        """A few of the rows, in memory, for the same compiled code."""
        return self.taken(rows)

    def rows(self, first, stop):
        """Rows first … stop - 1 for Python, (n, d or more), not copied."""
        return self.data[first:stop]

    def __setstate__(self, state):
        self.__dict__.update(state)
        whole_lines = type(self) is Dense and self.data.shape[1] * self.data.itemsize % LINE == 0
        if whole_lines and self.data.ctypes.data % LINE:  # pickles do not keep it
            data = aligned(self.data.shape, self.data.dtype)
            data[...] = self.data
            self.data = data


class Mapped(Dense):
    """A matrix that stays in its file.

    Of one that takes up more than a share of the memory, rows that will be looked at soon are asked for: the operating
    system then reads many of them at a time. A smaller one it keeps in memory once it is read.
    """

    asks: bool

    def __init__(self, data, size):
        super().__init__(data, size)
        self.asks = data.nbytes > KEPT_SHARE * machine_memory()

    @compiled
    def fetch(self, i):
        if self.asks:
            ask(self.data, i)
        else:
            prefetch(self.data, i)

    @compiled
    def fetch_entry(self, values, i):
        if self.asks and values.shape[0] > 0:
            ask(values, i)

    def taken(self, rows):
        return None  # a copy may not fit in memory

    def some(self, rows):
        data = np.array(self.data[rows])
        data.flags.writeable = self.data.flags.writeable  # which is part of an array's type
        return Mapped(data, self.size)


@inlined
def _fetch_entries(data, indices, indptr, i):
    """Ask for what is stored of row i, 16 entries at most; where it begins should be there already."""
    first, last = indptr[i, 0], indptr[i + 1, 0]
    if first < last:
        prefetch(data, first)
        prefetch(indices, first)
        prefetch(data, min(first + 8, last - 1))
        prefetch(indices, min(first + 15, last - 1))


@inlined
def _fetch_rows(data, indices, indptr, rows, start, n):
    """Ask for the block after that at `start`, and for where the rows of the one after it begin."""
    if start == 0:
        for k in range(min(2 * BLOCK, n)):
            prefetch(indptr, rows[k])
        for k in range(min(BLOCK, n)):
            _fetch_entries(data, indices, indptr, rows[k])
    for k in range(start + 2 * BLOCK, min(start + 3 * BLOCK, n)):
        prefetch(indptr, rows[k])
    for k in range(start + BLOCK, min(start + 2 * BLOCK, n)):
        _fetch_entries(data, indices, indptr, rows[k])


class ByRow(Full):
    """A matrix of which `feature` is asked, and sums of rows one by one."""

    @compiled
    def both_products(self, x, y, i):
        return self.product(x, i), self.product(y, i)

    @compiled
    def fetch(self, i):
        pass

    @compiled
    def products(self, x, rows, start, n, out):
        for k in range(min(BLOCK, n - start)):
            out[k] = self.product(x, rows[start + k])

    @compiled
    def add_rows(self, rows, start, n, weights, out):
        for k in range(min(BLOCK, n - start)):
            self.add_row(rows[start + k], weights[k], out)

    @compiled
    def add_squares(self, rows, start, m, weights, out, squares):
        for k in range(m):
            i = rows[start + k]
            first, last = self.row_range(i)
            for place in range(first, last):
                g, j = weights[k] * self.entry(i, place), self.column(place)
                out[j] += g
                squares[j] += g * g

    @compiled
    def block_products(self, x, first, m, out):
        for k in range(m):
            out[k] = self.product(x, first + k)

    @compiled
    def add_block(self, first, m, weights, out):
        for k in range(m):
            self.add_row(first + k, weights[k], out)

    @compiled
    def copy_rows(self, rows, n, tiles):
        pass  # their numbers are read where they are


class Tiles(ByRow):
    """A dense matrix in tiles of 64 rows: data[t, j, k] is entry j of row 64 t + k, so that blocks are long vectors."""

    data: np.ndarray

    def __init__(self, data, size):
        self.data, self.size = data, size

    @compiled
    def feature(self, i, j):
        return float(self.data[i // BLOCK, j, i % BLOCK])

    def taken(self, rows):
        return None  # they have an order of their own


class Sparse(ByRow):
    """A matrix in compressed rows."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    lines: tuple

    def __init__(self, matrix, dtype=np.float64):
        self.matrix, self.size = matrix, matrix.shape[1]
        self.data = np.ascontiguousarray(matrix.data, dtype)
        self.indices, self.indptr = matrix.indices, matrix.indptr.astype(np.int64)

    @property
    def lines(self):
        """The same three as columns, for `prefetch`."""
        return self.data[:, None], self.indices[:, None], self.indptr[:, None]

    @compiled
    def feature(self, i, j):
        for k in range(self.indptr[i], self.indptr[i + 1]):
            if self.indices[k] == j:
                return float(self.data[k])
        return 0.0

    @compiled
    def product(self, x, i):
        z = 0.0
        for k in range(self.indptr[i], self.indptr[i + 1]):
            z += self.data[k] * x[self.indices[k]]
        return z

    @compiled
    def product_of(self, x, places, n, i):
        return self.product(x, i)

    @compiled
    def add_row(self, i, weight, out):
        for k in range(self.indptr[i], self.indptr[i + 1]):
            out[self.indices[k]] += weight * self.data[k]

    @compiled
    def products(self, x, rows, start, n, out):
        data, indices, indptr = self.lines
        _fetch_rows(data, indices, indptr, rows, start, n)
        for k in range(min(BLOCK, n - start)):
            out[k] = self.product(x, rows[start + k])

    @compiled
    def row_range(self, i):
        return self.indptr[i], self.indptr[i + 1]

    @compiled
    def column(self, k):
        return self.indices[k]

    @compiled
    def entry(self, i, k):
        return float(self.data[k])

    def taken(self, rows):
        return Sparse(self.matrix[rows], self.data.dtype)

    some = taken


class Columns(ByRow):
    """Columns of a table where they are, not copied; entry (i, j) is (column j [i] - centre[j]) / scale[j].

    A row is in as many places of the memory as it has entries, so that it takes longer to read than one of `Dense`,
    where a copy would cost more: of large tables of which few rows are looked at again and again. Python reads rows
    as those of an array, each time anew. Columns (N,) of float64 must not change; `owner` is what has to be kept so
    that they do not.
    """

    address: np.ndarray  #: (d,) of the first number of each column
    step: np.ndarray  #: (d,) bytes from a number to the next
    centre: np.ndarray
    inverse: np.ndarray  #: 1 / scale
    asks = False

    def __init__(self, *columns, owner=None):
        self.columns, self.owner, self.size = list(columns), owner, len(columns)
        self.shape = len(columns[0]), self.size
        self.centre, self.inverse = np.zeros(self.size), np.ones(self.size)
        self._point()

    def _point(self):
        self.address = np.array([column.ctypes.data for column in self.columns], np.int64)
        self.step = np.array([column.strides[0] for column in self.columns], np.int64)

    def standardised(self, centre, scale):
        """The same columns, read with these centres and scales."""
        other = Columns(*self.columns, owner=self.owner)
        other.centre, other.inverse = np.array(centre, float), 1.0 / np.asarray(scale, float)
        return other

    @compiled
    def feature(self, i, j):
        return (read_at(self.address[j] + i * self.step[j]) - self.centre[j]) * self.inverse[j]

    @compiled
    def fetch(self, i):
        for j in range(self.size):
            fetch_at(self.address[j] + i * self.step[j])

    @compiled
    def fetch_entry(self, values, i):
        pass

    def some(self, rows):
        some = Columns(*(column[rows] for column in self.columns))
        some.centre, some.inverse = self.centre, self.inverse
        return some

    def rows(self, first, stop):
        """Rows first … stop - 1, standardised, filled up to whole cache lines with zeros."""
        n, line = min(stop, self.shape[0]) - first, LINE // 8
        out = aligned((n, -(-self.size // line) * line), np.float64, zeros=False)
        _fill(self.native, first, out)
        return out

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, where):
        """As of an array: some rows, or all rows of one column."""
        if isinstance(where, tuple):
            rows, j = where
            return (self.columns[j][rows] - self.centre[j]) * self.inverse[j]
        if isinstance(where, slice):
            first, stop, step = where.indices(self.shape[0])
            return self.rows(first, max(first, stop))[::step, : self.size]
        rows = np.column_stack([column[where] for column in self.columns])
        return (rows - self.centre) * self.inverse

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype)

    def __getstate__(self):
        # A pickle has a copy of the columns: addresses mean nothing elsewhere.
        return self.__dict__ | {"columns": [np.array(column) for column in self.columns], "owner": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._point()


@entry
def _fill(design, first, out):
    """Rows of `Columns` from `first` on, with zeros behind them."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = design.feature(first + i, j) if j < design.size else 0.0


@inlined
def row_lipschitz(design, i, scale, weight, out):
    """out = weight |aᵢⱼ| |scale ∘ aᵢ|, aᵢ being row i."""
    total = 0.0
    first, last = design.row_range(i)
    for k in range(first, last):
        a = scale[design.column(k)] * design.entry(i, k)
        total += a * a
    total = weight * math.sqrt(total)
    for j in range(out.shape[0]):
        out[j] = 0.0
    for k in range(first, last):
        out[design.column(k)] = total * abs(design.entry(i, k))


@inlined
def add_parts(design, i, v, sign, along, convex, its_slope, concave, other_slope, out):
    """Add the rates k (convex + concave) of row i to `out`, as of `add_term_parts`; k = sign vⱼ aᵢⱼ, or of all `along`.

    Both parts are of the row's margin, with their slopes, and change places where k is negative.
    """
    first, last = design.row_range(i)
    for place in range(first, last if out.shape[0] > 1 else first + 1):
        j = design.column(place) if out.shape[0] > 1 else 0
        k = sign * v[j] * design.entry(i, place) if out.shape[0] > 1 else along
        out[j, 0] += k * convex if k > 0.0 else k * concave
        out[j, 1] += k * concave if k > 0.0 else k * convex
        out[j, 2] += k * along * (other_slope if k > 0.0 else its_slope)


def name_coefficients(variables, X):
    """`variables` with one for each column instead of "coefficients", if `X` is a table with names of columns."""
    columns = list(getattr(X, "columns", ()))
    names = [str(column) for column in columns]
    if not names or len(set(names)) < len(names) or not all(isinstance(column, str) for column in columns):
        return variables
    taken = set(variables) - {"coefficients"}
    named = {f"({name})" if name in taken else name: () for name in names}
    return named | {name: shape for name, shape in variables.items() if name in taken}


def check_columns(variables, X):
    """Refuse a table of new rows whose columns are not those by which `name_coefficients` has named `variables`."""
    further = {name: shape for name, shape in variables.items() if name in ("intercept", "variance")}
    found = name_coefficients({"coefficients": ()} | further, X)
    if "coefficients" not in variables and "coefficients" not in found and list(found) != list(variables):
        ours, theirs = ([name for name in names if name not in further] for names in (variables, found))
        raise ValueError(f"`X` must have the columns {', '.join(ours)}, in this order, got {', '.join(theirs)}.")


def is_mapped(X):
    """Whether an array lies in a memory-mapped file."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def stays(X):
    """Whether `X` is used as it is, sparse or memory-mapped, rather than copied into whole cache lines."""
    return sparse.issparse(X) or is_mapped(X)


def read_design(X, dtype=None, intercept=False):
    """Features as they are kept for Python, an ndarray or csr_array, and for compiled code; with a column of ones last.

    A memory-mapped array of float32 or float64 in C order is read where it is. Compiled code stores numbers in double
    precision, or as in the file, without `dtype`.
    """
    if dtype is not None:
        dtype = np.dtype(dtype)
        if dtype not in (np.float64, np.float32):
            raise ValueError(f"`dtype` must be float64 or float32, got {dtype}.")
    if sparse.issparse(X):
        return _sparse(X, dtype, intercept)
    if is_mapped(X):
        return _mapped(X, dtype, intercept)
    refuse_unreal("X", X)
    try:
        X = np.ascontiguousarray(X, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"`X` must be a matrix of numbers, got {type(X).__name__}.") from None
    _check_shape(X)
    check_finite(X)
    if intercept:
        X = with_ones(X)
    dtype = np.dtype(np.float64) if dtype is None else dtype
    row = LINE // dtype.itemsize
    data = aligned((len(X), -(-X.shape[1] // row) * row), dtype)
    with np.errstate(over="ignore"):
        data[:, : X.shape[1]] = X
    if dtype == np.float32 and not np.all(np.isfinite(data)):
        raise ValueError(f"`X` has values beyond the range of dtype={dtype}.")
    return X, Dense(data, X.shape[1])


def with_ones(X):
    """`X`, dense or sparse, with a column of ones after the others."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1))]))
    return np.column_stack([X, np.ones(len(X))])


def _sparse(X, dtype, intercept):
    _check_shape(X)
    if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"`X` must be a matrix of numbers, got {X.dtype}.")
    X = sparse.csr_array(X, dtype=float, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    if not np.all(np.isfinite(X.data)):
        raise ValueError(f"`X` must be finite, and has {np.sum(~np.isfinite(X.data))} values that are NaN or infinite.")
    if intercept:
        X = with_ones(X)
    return X, Sparse(X, np.float64 if dtype is None else dtype)


def _mapped(X, dtype, intercept):
    X = np.asarray(X)
    _check_shape(X)
    copying = "or copy it into memory, np.array(X), if it fits"
    if X.dtype not in (np.float32, np.float64) or not X.flags.c_contiguous or not X.flags.aligned:
        order = "C" if X.flags.c_contiguous else "another"
        raise ValueError(
            "a memory-mapped `X` is read where it is, and so must be of float32 or float64 in C order; got "
            f"{X.dtype} in {order} order. Write it so, {copying}."
        )
    if dtype is not None and dtype != X.dtype:
        raise ValueError(f"`dtype` must be that of a memory-mapped `X`, {X.dtype}, got {dtype}; {copying}.")
    if intercept:
        raise ValueError(f"a memory-mapped `X` is not copied to add an intercept: give it a column of ones, {copying}.")
    check_finite(X)
    return X, Mapped(X, X.shape[1])


def pieces(X, numbers=None):
    """Slices of rows, of about `PIECE` entries each, or so many."""
    step = max((numbers or PIECE) // X.shape[1], 1)
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _check_shape(X):
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"`X` must have shape (N, d) with N and d at least 1, got {X.shape}.")


def check_finite(X):
    """A `ValueError` for numbers that are NaN or infinite."""

    # A sum is finite only if all its numbers are, and takes a tenth of the time; where it is not, they are looked at.
    def count_wrong(first, stop):
        with np.errstate(over="ignore", invalid="ignore"):
            finite = math.isfinite(X[first:stop].sum())
        return 0 if finite else int(np.sum(~np.isfinite(X[first:stop])))

    wrong = sum(each(count_wrong, chunks(*X.shape)))
    if wrong:
        raise ValueError(f"`X` must be finite, and has {wrong} values that are NaN or infinite.")


def gram(X, weights=None):
    """Xᵀ diag(weights) X, (d, d), by pieces; without weights XᵀX."""
    if sparse.issparse(X):
        return (X.T @ (X if weights is None else sparse.diags_array(weights) @ X)).toarray()
    ranges = chunks(*X.shape)
    if len(ranges) > 1:
        weights = np.ones(len(X)) if weights is None else weights
        return sum(each(lambda first, stop: products(X[first:stop], weights[first:stop]), ranges))
    total = np.zeros((X.shape[1], X.shape[1]))
    roots = None if weights is None or np.any(weights < 0.0) else np.sqrt(weights)
    for s in pieces(X, IN_CACHE):
        part = np.asarray(X[s], float)
        if roots is not None:
            part = part * roots[s, None]
        total += part.T @ (part if weights is None or roots is not None else part * weights[s, None])
    return total


def products(rows, weights=None, d=None):
    """Σ weightsₖ rowₖ rowₖᵀ over some rows, (d, d), of their first d entries; all of them for None.

    Without BLAS, whose sums depend on its number of threads.
    """
    d = rows.shape[1] if d is None else d
    if not rows.flags.c_contiguous or rows.dtype not in (np.float32, np.float64):
        rows = np.ascontiguousarray(rows, float)
    weights = np.ones(len(rows)) if weights is None else np.ascontiguousarray(weights, float)
    lower = np.zeros((d, d))
    _add_products(Dense(rows, d).native, weights, np.empty((d, BLOCK)), lower)
    return lower + np.tril(lower, -1).T


@entry
def _add_products(design, weights, tile, out):
    n = design.data.shape[0]
    for start in range(0, n, BLOCK):
        _add_tile(design.data, weights, start, min(BLOCK, n - start), tile, out)


@vectorised
def _add_tile(rows, weights, start, m, tile, out):
    """The lower triangle for a block of rows, whose numbers are put column by column so that sums are vectorised."""
    d, scaled = out.shape[0], buffer()
    for k in range(m):
        for j in range(d):
            tile[j, k] = rows[start + k, j]
    for j in range(d):
        for k in range(m, BLOCK):
            tile[j, k] = 0.0
    for j in range(d):
        for k in range(BLOCK):
            scaled[k] = tile[j, k] * (weights[start + k] if k < m else 0.0)
        for q in range(j + 1):
            total = 0.0
            for k in range(BLOCK):
                total += scaled[k] * tile[q, k]
            out[j, q] += total


def row_norms(X, root=None):
    """|Xᵢ| or |rootᵀ Xᵢ| of each row, (N,)."""
    X = X if root is None else X @ root
    if sparse.issparse(X):
        return np.sqrt(X.multiply(X).sum(axis=1))
    return np.concatenate([np.linalg.norm(np.asarray(X[s], float), axis=1) for s in pieces(X)])


def data_and_coordinates(X):
    """Factors of a regression in compressed rows: for each row of `X` where it is not zero, then each coordinate."""
    d = X.shape[1]
    filled = X != 0.0
    sizes = filled.sum(axis=1)
    if np.any(sizes == 0):
        raise ValueError(f"row {int(np.argmin(sizes))} of the features is zero: its factor depends on no coordinate.")
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([sizes, np.ones(d, np.int64)]))])
    return indptr, np.concatenate([np.nonzero(filled)[1], np.arange(d)])
