"""Named blocks of coordinates, and linear functionals of them, a number for each row of the data.

With ``p = Parameters(rate=5, effect=30, log_shape=1)`` a functional is a product ``X @ p.rate`` (dense or sparse X), a
look-up ``p.effect[group]``, one coordinate ``p.log_shape``, and sums, differences and multiples of these, by numbers or
by one number for each row; an array that is added is an offset.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from pdmp.data.memory import check_size
from pdmp.native.arguments import refuse_unreal, row_labels, same_rows

SHARED = 2**28  #: bytes from which on a matrix is not copied
#: What of NumPy's functions is linear, and the operator that it is.
LINEAR = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "matmul": "matmul"}
PADDED = 8  #: entries of a sparse matrix as rows of equal length, over those that are not 0, up to which it is taken


class Functional:
    """A linear functional of x for each row: ``offset[i] + Σⱼ values[i, j] x[columns[i, j]]``.

    `columns` and `values` are of shape (1 or N, W), one row standing for all; `values` are in double, or float32 as the
    matrix is that they are from. `sizes` are the blocks of the parameters, `index` the labels of the rows, if any.
    """

    __pandas_priority__ = 5000  #: pandas leaves ``series + functional`` to it: that is a series of objects else

    def __init__(
        self,
        columns: np.ndarray,
        values: np.ndarray,
        offset: np.ndarray | None,
        sizes: Mapping[str, int],
        index: Any = None,
    ) -> None:
        self.columns, self.values, self.offset, self.sizes, self.index = columns, values, offset, sizes, index

    @property
    def dim(self) -> int:
        """Coordinates of the parameters."""
        return sum(self.sizes.values())

    def is_of(self, sizes: Mapping[str, int]) -> bool:
        """Whether the parameters are those with these blocks, in this order."""
        return list(self.sizes.items()) == list(sizes.items())

    @property
    def n(self) -> int:
        """Rows; 1 if they are all alike."""
        return max(len(self.columns), len(self.values), 1 if self.offset is None else len(self.offset))

    def at(self, x: np.ndarray) -> np.ndarray:
        """Values at draws x (S, dim): (S, n)."""
        if len(self.columns) == 1:
            found = x[:, self.columns[0]] @ self.values.T
        else:
            found = np.zeros((len(x), len(self.columns)))
            for w in range(self.columns.shape[1]):
                found += x[:, self.columns[:, w]] * self.values[:, w]
        return found if self.offset is None else found + self.offset

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Functional:
        """``X @ block``, ``array * functional`` and so on; whatever is not linear is refused."""
        if method != "__call__":
            return self @ None
        name = LINEAR.get(ufunc.__name__)
        if name is None or options:
            self._not_linear(f"numpy.{ufunc.__name__}")
        left, right = inputs
        if isinstance(right, Functional) and not isinstance(left, Functional):
            return getattr(right, f"__r{name}__")(left)
        return getattr(left, f"__{name}__")(right)

    def _not_linear(self, what: str) -> NoReturn:
        name = f"p.{self.name}" if isinstance(self, Block) else "the functional"
        raise TypeError(
            f"{what} of {name} is not linear in the parameters: give {name} in `at`, and write that in the loss, "
            "of the argument that stands for it."
        )

    def _numbers(self, what: str, values: Any) -> np.ndarray:
        """A number, or one for each row, as an array (1 or n,)."""
        if np.ma.is_masked(values):
            raise ValueError(f"{what} of a functional has masked entries: leave these rows out.")
        array = np.asarray(values)
        if array.dtype.kind not in "fiub" or array.ndim > 1:
            kind = type(values).__name__
            raise TypeError(f"{what} of a functional must be a number or one for each row, got {kind}.")
        array = _finite(f"{what} of a functional", array.reshape(-1)).astype(float, copy=False)  # to compute with
        _equally_many(self.n, len(array))
        return array

    def _labels(self, what: str, other: Any) -> Any:
        """The labels of the rows of the functional together with `other`, which must have the same, if any."""
        same_rows(**{"the functional": self, what: other})
        return row_labels(other) if self.index is None else self.index

    def __add__(self, other: Any) -> Functional:
        if isinstance(other, Functional):
            if not other.is_of(self.sizes):
                raise ValueError("functionals of different `pdmp.Parameters` cannot be added.")
            if isinstance(other, Block) and other.size > 1:
                other._several()
            _equally_many(self.n, other.n)
            offset = self.offset if other.offset is None else other.offset
            if self.offset is not None and other.offset is not None:
                offset = self.offset + other.offset
            columns, values = _join(self.columns, other.columns), _join(self.values, other.values)
            return Functional(columns, values, offset, self.sizes, self._labels("the functional that is added", other))
        offset = self._numbers("an offset", other)
        whole = np.broadcast_to(offset, max(self.n, offset.size)) + (0.0 if self.offset is None else self.offset)
        return Functional(self.columns, self.values, np.array(whole), self.sizes, self._labels("the offset", other))

    def __mul__(self, factor: Any) -> Functional:
        if isinstance(factor, Functional):
            raise TypeError("a product of two functionals is not linear: write it in the loss, with both in `at`.")
        numbers = self._numbers("a factor", factor)
        offset = None if self.offset is None else self.offset * numbers
        index = self._labels("the factor", factor)
        return Functional(self.columns, self.values * numbers.reshape(-1, 1), offset, self.sizes, index)

    def __truediv__(self, divisor: Any) -> Functional:
        found = self * (1.0 / self._numbers("a divisor", divisor))
        found.index = self._labels("the divisor", divisor)
        return found

    def __neg__(self) -> Functional:
        offset = None if self.offset is None else -self.offset
        return Functional(self.columns, -self.values, offset, self.sizes, self.index)

    def __sub__(self, other: Any) -> Functional:
        return -(-self + other)

    def __rsub__(self, other: Any) -> Functional:
        return -self + other

    def __matmul__(self, other: Any) -> Any:
        raise TypeError(
            "a functional is no array: the matrix stands first and is an array itself, as in X @ p.rate, or "
            "table.to_numpy() @ p.rate for a pandas.DataFrame."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The functional as one object, as for SciPy, which then leaves a product to it; pandas does not."""
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("pandas."):
            return self @ None
        if caller.startswith("numpy.ma"):
            raise TypeError(
                "a masked array before a functional: leave rows with masked entries out, and give an array."
            )
        array = np.empty((), object)
        array[()] = self
        return array

    __radd__, __rmul__ = __add__, __mul__
    __pow__ = __rpow__ = lambda self, *_: self._not_linear("a power")
    __rtruediv__ = lambda self, _: self._not_linear("a reciprocal")  # noqa: E731
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = lambda self, _: self._not_linear("a remainder")
    __abs__ = lambda self: self._not_linear("the absolute value")  # noqa: E731
    __bool__ = __float__ = __int__ = lambda self: self._not_linear("the value")
    __lt__ = __le__ = __gt__ = __ge__ = lambda self, _: self._not_linear("a comparison")


class Block(Functional):
    """A block of coordinates; of one, the coordinate itself as a functional."""

    def __init__(self, name: str, first: int, sizes: Mapping[str, int]) -> None:
        self.name, self.first, self.size = name, first, sizes[name]
        super().__init__(np.arange(first, first + self.size)[None], np.ones((1, self.size)), None, sizes)

    def __repr__(self) -> str:
        return f"<block {self.name!r} of {self.size} coordinates>"

    def __rmatmul__(self, X: Any) -> Functional:
        """``X @ block``, X of shape (N, size)."""
        refuse_unreal("X", X)
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.size:
            raise ValueError(
                f"`X @ {self.name}` needs X of shape (N, {self.size}), as {self.name} has so many coordinates; got "
                f"{tuple(shape)}."
            )
        if not shape[0]:
            raise ValueError(f"`X @ {self.name}` needs at least one row.")
        if not sparse.issparse(X):
            return Functional(self.columns, _finite(f"X of `X @ {self.name}`", X), None, self.sizes, row_labels(X))
        rows = sparse.csr_array(X)
        rows.sum_duplicates()
        counts = np.diff(rows.indptr)
        width = max(int(counts.max(initial=0)), 1)
        if width * shape[0] > PADDED * max(rows.nnz, shape[0]):
            return Functional(self.columns, _finite(f"X of `X @ {self.name}`", rows.toarray()), None, self.sizes)
        columns, values = np.full((shape[0], width), self.first), np.zeros((shape[0], width))
        place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts), np.repeat(np.arange(shape[0]), counts)
        columns[place[1], place[0]] = self.first + rows.indices
        values[place[1], place[0]] = _finite(f"X of `X @ {self.name}`", rows.data)
        return Functional(columns, values, None, self.sizes)

    def __getitem__(self, index: Any) -> Functional:
        """A look-up: one coordinate of the block for each row, by its place, an integer or an array of them."""
        refuse_unreal(f"{self.name}[index]", index)
        places = np.atleast_1d(np.asarray(index))
        if places.dtype.kind not in "iu" or places.ndim != 1:
            kind = f"an array of {places.dtype} of shape {places.shape}"
            raise TypeError(f"`{self.name}[index]` needs whole numbers, one for each row, got {kind}.")
        if places.size == 0 or places.min() < 0 or places.max() >= self.size:
            raise ValueError(f"`{self.name}[index]` needs places in 0 … {self.size - 1}.")
        return Functional(
            self.first + places.astype(np.int64)[:, None], np.ones((1, 1)), None, self.sizes, row_labels(index)
        )

    def _several(self, *_: Any) -> Any:
        raise TypeError(f"{self.name} has {self.size} coordinates: write X @ {self.name} or {self.name}[index].")

    def __add__(self, other: Any) -> Functional:
        return self._several() if self.size > 1 else super().__add__(other)

    def __mul__(self, factor: Any) -> Functional:
        return self._several() if self.size > 1 else super().__mul__(factor)

    def __neg__(self) -> Functional:
        return self._several() if self.size > 1 else super().__neg__()

    __radd__, __rmul__ = __add__, __mul__


class Parameters:
    """Named blocks of the coordinates of a posterior.

    Parameters
    ----------
    **sizes : int
        How many coordinates each block has, by its name, in the order of the coordinates.

    Raises
    ------
    TypeError, ValueError
        For a size that is not a whole number of at least 1, and without blocks.

    See Also
    --------
    pdmp.terms : Rows of a likelihood, at functionals of these.

    Examples
    --------
    >>> import numpy as np, pdmp
    >>> p = pdmp.Parameters(rate=2, effect=3)
    >>> p.dim
    5
    >>> eta = np.ones((4, 2)) @ p.rate + p.effect[np.array([0, 1, 2, 2])]
    >>> eta.columns[3]
    array([0, 1, 4])
    """

    dim: int
    sizes: Mapping[str, int]

    def __init__(self, **sizes: int) -> None:
        if not sizes:
            raise ValueError("`Parameters` needs blocks: pdmp.Parameters(rate=5, log_shape=1).")
        for name, size in sizes.items():
            if isinstance(size, bool) or not isinstance(size, int | np.integer):
                raise TypeError(f"`{name}` must be a number of coordinates, got {size!r}.")
            if size < 1:
                raise ValueError(f"`{name}` must have at least 1 coordinate, got {size}.")
            check_size(f"`{name}` of {size:,} coordinates", 16.0 * min(size, 2**62))
            if name in ("dim", "sizes"):
                raise ValueError(f"`{name}` cannot be the name of a block, as it is an attribute of Parameters.")
        self.sizes, first = {name: int(size) for name, size in sizes.items()}, 0
        self.dim = sum(self.sizes.values())
        for name, size in self.sizes.items():
            setattr(self, name, Block(name, first, self.sizes))
            first += size

    def __getattr__(self, name: str) -> Block:
        raise AttributeError(f"there is no block {name!r}; there are {', '.join(self.__dict__.get('sizes', ()))}.")

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{name}={size}' for name, size in self.sizes.items())})"


def _finite(what, values):
    if np.ma.is_masked(values):
        raise ValueError(f"{what} has masked entries: leave these rows out.")
    given = np.asarray(values)
    dtype = np.dtype(np.float32 if given.dtype == np.float32 else float)
    # A copy, as the caller may change its own, unless that would be large.
    array = np.array(given, dtype, order="C", copy=None if dtype.itemsize * given.size >= SHARED else True)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{what} must be finite, and has {np.sum(~np.isfinite(array))} values that are not.")
    return array


def _equally_many(n, other):
    if n != other and 1 not in (n, other):
        raise ValueError(f"functionals of {n} and of {other} rows cannot be combined.")


def in_one_precision(arrays):
    """Arrays in float32 if one of them is and the others, such as ones, lose nothing by it; else as they are."""
    if not any(a.dtype == np.float32 for a in arrays):
        return arrays
    with np.errstate(over="ignore"):
        short = [a.astype(np.float32, copy=False) for a in arrays]
    return short if all(map(np.array_equal, short, arrays)) else arrays


def _join(a, b):
    a, b = in_one_precision([a, b])
    n = math.lcm(len(a), len(b)) if 1 in (len(a), len(b)) else len(a)
    return np.hstack([np.broadcast_to(a, (n, a.shape[1])), np.broadcast_to(b, (n, b.shape[1]))])
