"""Readers of files by format: named columns, or a matrix."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
LIBSVM_LINE = re.compile(r"\s*[-+]?[\d.]\S*(\s+(qid|\d+):\S+)+\s*(#.*)?")
HEAD_LINES = 20


class Column(NamedTuple):
    """Values of a column, numbers or text, and which of them are missing."""

    values: np.ndarray
    missing: np.ndarray


class Columns(NamedTuple):
    """Columns by name, and the number of lines before the first row; None if the file is not text."""

    columns: dict[str, Column]
    lines: int | None = None

    def row(self, k):
        """Row k, as error messages call it."""
        return f"row {k}, counted from 0" if self.lines is None else f"row {k + self.lines + 1} of the file"


class Matrix(NamedTuple):
    """A matrix of numbers, names of its columns, and the target with its name if the file contains one."""

    names: list[str]
    X: np.ndarray | csr_array
    y: np.ndarray | None = None
    target: str | None = None


def read_file(path, mmap=False):
    """The content of a file, `Columns` or a `Matrix`; the format is recognised by the first bytes."""
    with open(path, "rb") as file:
        head = file.read(6)
    if head[:4] == b"PAR1":
        return _parquet(path)
    if head[:6] == b"\x93NUMPY":
        return _npy(path, mmap)
    if head[:4] == b"PK\x03\x04":
        return _npz(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
        text = gzip.decompress(content) if head[:2] == b"\x1f\x8b" else content
        lines = text[: 2**16].decode("utf-8-sig", errors="ignore").splitlines()[:HEAD_LINES]
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be unpacked: {error}.") from None
    if any(LIBSVM_LINE.fullmatch(line) for line in lines):
        return _libsvm(path, text)
    return _csv(path, text)


def _csv(path, content):
    try:
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        lines = [line for line in csv.reader(text, skipinitialspace=True, strict=True) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path.name} is not a text file with comma-separated values: {error}.") from None
    if len(lines) < 2:
        raise ValueError(
            f"{path.name} must have a row of names and at least one row of data; it has {len(lines)} rows."
        )
    names = [name.strip() for name in lines[0]]
    if len(names) == 1 and any(c in names[0] for c in ";\t|"):
        raise ValueError(f"{path.name} has a single column {names[0]!r}; the separator must be a comma.")
    check_names(names, path.name)
    if all(_is_number(n) for n in names):
        raise ValueError(f"the first row of {path.name} must be the names of the columns; it holds numbers.")
    for k, row in enumerate(lines[1:]):
        if len(row) != len(names):
            raise ValueError(f"row {k + 2} of {path.name} has {len(row)} values for {len(names)} columns.")
    columns = zip(*lines[1:], strict=True)
    return Columns({name: _from_text(name, column, path) for name, column in zip(names, columns, strict=True)}, lines=1)


def _from_text(name, column, path):
    """A column as numbers if all its values are numbers, else as text."""
    stripped = [value.strip() for value in column]
    missing = np.array([value.lower() in MISSING for value in stripped])
    present = [value for value, none in zip(stripped, missing, strict=True) if not none]
    try:
        values = np.full(len(stripped), np.nan)
        values[~missing] = np.array(present, dtype=float)
    except ValueError:
        values = np.array(stripped)
    else:
        for value in present:
            if "_" in value:
                plain = value.replace("_", "")
                raise ValueError(f"column {name!r} of {path.name} holds {value!r}; if it is a number, write {plain!r}.")
    return Column(values, missing)


def _parquet(path):
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f"{path.name} is a Parquet file, which needs pyarrow: pip install 'pdmp[data]'.") from None
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path.name} is not a Parquet file that can be read: {error}.") from None
    check_names(table.column_names, path.name)
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        missing = column.is_null(nan_is_null=True).to_numpy()
        columns[name] = _from_objects(name, column.to_pylist(), missing, str(column.type), path.name)
    return Columns(columns)


def _from_objects(name, values, missing, kind, where):
    """A column of Python's numbers, of truth values, or of text."""
    if all(none or isinstance(v, str) for v, none in zip(values, missing, strict=True)) and not np.all(missing):
        return Column(np.array(["" if none else v for v, none in zip(values, missing, strict=True)]), missing)
    try:
        numbers = np.array([np.nan if none else float(v) for v, none in zip(values, missing, strict=True)])
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} of {where} is of type {kind}; it must be numbers or text.") from None
    return Column(numbers, missing)


def _npy(path, mmap):
    try:
        array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path.name} cannot be read: {error}.") from None
    if array.dtype.names:
        check_names(list(array.dtype.names), path.name)
        if array.ndim != 1:
            raise ValueError(f"{path.name} has fields in an array of shape {array.shape}; it must have one dimension.")
        return Columns({name: _from_array(name, array[name], path.name) for name in array.dtype.names})
    if array.ndim == 1:
        array = array[:, None]
    return _matrix(array, [str(j) for j in range(array.shape[1])] if array.ndim == 2 else [], path.name)


def _npz(path):
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read: {error}.") from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()) or not arrays:
        raise ValueError(f"{path.name} is an archive, but not one of numpy's arrays; unpack it.")
    if "X" not in arrays:
        lengths = {array.shape for array in arrays.values()}
        if len(lengths) > 1 or len(lengths.pop()) != 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise ValueError(
                f"{path.name} must have a matrix `X` and a target `y`, or one array of the same length for each "
                f"column; it has {shapes}."
            )
        return Columns({name: _from_array(name, array, path.name) for name, array in arrays.items()})
    X, names = arrays.pop("X"), arrays.pop("names", None)
    if "y" not in arrays:
        raise ValueError(f"{path.name} has `X` and no `y`; its arrays: {listed(['X', *arrays])}.")
    names = [str(j) for j in range(X.shape[-1])] if names is None else [str(n) for n in names.ravel()]
    check_names(names, path.name)
    matrix = _matrix(X, names, path.name)
    y = arrays["y"]
    if y.dtype.kind not in "fiubU":
        raise ValueError(f"`y` of {path.name} must be numbers or text, and is of type {y.dtype}.")
    return matrix._replace(y=y, target="y")


def _matrix(array, names, where):
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{where} must have a matrix of shape (N, d) with N and d at least 1, and has {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{where} must have a matrix of numbers, and has one of type {array.dtype}.")
    if len(names) != array.shape[1]:
        raise ValueError(f"{where} has {len(names)} names for {array.shape[1]} columns.")
    return Matrix(names, array)


def _from_array(name, array, where):
    if array.dtype.kind == "U":
        return Column(array, np.array([value.strip().lower() in MISSING for value in array.tolist()]))
    if array.dtype.kind not in "fiub" or array.ndim != 1:
        raise ValueError(
            f"column {name!r} of {where} is of type {array.dtype} and shape {array.shape}; it must be a row of numbers "
            "or text."
        )
    return Column(array, np.isnan(array.astype(float)))


def _libsvm(path, content):
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{path.name} is not LIBSVM text, label index:value ...: {error}.") from None
    X = sparse.csr_array(X)
    X.sum_duplicates()
    first = 0
    if X.shape[1] > 1 and not np.any(X.indices == 0):  # numbered from 1
        X, first = X[:, 1:], 1
    return Matrix([str(j + first) for j in range(X.shape[1])], X, y, "label")


def check_names(names, where):
    """Raise a `ValueError` if names of columns are empty or occur twice."""
    if "" in names:
        raise ValueError(f"{where} has a column without a name, the {names.index('') + 1}th.")
    twice = sorted(n for n in set(names) if names.count(n) > 1) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{where} has several columns of the same name: {listed(twice)}.")


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def columns_text(names):
    """Text such as "column 'a'" or "columns 'a', 'b'"."""
    names = list(names)
    return f"column{'s' if len(names) > 1 else ''} {listed(names)}"


def listed(items, most=12):
    """A list of items for messages; of many only the first few."""
    items = list(items)
    text = ", ".join(map(repr, items[:most]))
    return text if len(items) <= most else f"{text}, … ({len(items)} in all)"
