"""Readers of files by format: named columns, or a matrix."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import os
import pathlib
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdmp.data.archives import read_npy, read_npz
from pdmp.data.memory import check_size

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
LIBSVM_LINE = re.compile(r"\s*[-+]?[\d.]\S*(\s+(qid|\d+):\S+)+\s*(#.*)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d+(,\d+)?([eE][-+]?\d+)?")
HEAD_LINES = 20
HEAD_BYTES = 2**16
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
UNNAMED = ("", "Unnamed: 0")  #: what pandas and R call the first column if it is the index of the rows
#: Memory that cells of text take, in bytes for each byte of a file with separators, or of a LIBSVM file.
CELLS, SPARSE = 10, 4
MOST_COLUMNS = 2**24  #: of a LIBSVM file
UNPACKED = 2**20  #: bytes that are unpacked together


class Column(NamedTuple):
    """Values of a column, numbers or text, and which of them are missing."""

    values: np.ndarray
    missing: np.ndarray
    odd: int | None = None  #: of text most of which are numbers: the first row where it is none


class Columns(NamedTuple):
    """Columns by name, and the number of lines before the first row; None if the file is not text."""

    columns: dict[str, Column]
    lines: int | None = None
    index: tuple[str, ...] = ()  #: columns that number or name the rows, and are not among `columns`
    separator: str = ","
    kept: np.ndarray | None = None  #: numbers of the rows, if some were left out

    def row(self, k):
        """Row k, as error messages call it."""
        k = k if self.kept is None else int(self.kept[k])
        return f"row {k}, counted from 0" if self.lines is None else f"row {k + self.lines + 1} of the file"


class Matrix(NamedTuple):
    """A matrix of numbers, names of its columns, and the target with its name if the file contains one."""

    names: list[str]
    X: np.ndarray | csr_array
    y: np.ndarray | None = None
    target: str | None = None


def read_file(path, mmap=False, sep=None):
    """The content of a file, `Columns` or a `Matrix`; the format is recognised by the first bytes."""
    path = pathlib.Path(path)
    with open(path, "rb") as file:
        head = file.read(6)
    if head[:4] == b"PAR1":
        return _parquet(path)
    if head[:6] == b"\x93NUMPY":
        return _npy(path, mmap)
    if head[:4] == b"PK\x03\x04":
        return _npz(path)
    packed = head[:2] == b"\x1f\x8b"
    try:
        size = _unpacked_size(path) if packed else path.stat().st_size
        with (gzip.open if packed else open)(path, "rb") as file:
            lines = file.read(HEAD_BYTES).decode("utf-8-sig", errors="ignore").splitlines()[:HEAD_LINES]
            libsvm = sep is None and any(LIBSVM_LINE.fullmatch(line) for line in lines)
            check_size(
                f"{path.name}, {size / 1e9:,.3g} GB of text,",
                size * (SPARSE if libsvm else CELLS),
                "save it as NPY, NPZ or Parquet" if not libsvm else "",
            )
            file.seek(0)
            content = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged, and cannot be unpacked ({type(error).__name__}).") from None
    return _libsvm(path, content) if libsvm else _csv(path, content, sep)


def _unpacked_size(path):
    """Bytes in a gzip file, which are counted without being kept."""
    size = 0
    with gzip.open(path, "rb") as file:
        while block := file.read(UNPACKED):
            size += len(block)
    return size


# ---------------------------------------------------------------------------------------------------------------
# Text


def _csv(path, content, sep):
    text = _decoded(path, content)
    sep = _separator(text) if sep is None else sep
    _refuse_decimal_commas(path, text, sep)
    try:
        lines = [line for line in _cells(text, sep) if line]
    except csv.Error:
        raise ValueError(
            f"{path.name} is not a text file with values separated by {SEPARATORS.get(sep, repr(sep))}: its quotation "
            "marks do not match."
        ) from None
    if len(lines) < 2:
        raise ValueError(
            f"{path.name} must have a row of names and at least one row of data; it has {len(lines)} rows."
        )
    names = [name.strip() for name in lines[0]]
    if all(len(row) == len(names) + 1 for row in lines[1:]):  # as R writes names of rows
        if not any(row[-1] for row in lines[1:]):
            raise ValueError(f"the rows of {path.name} end with a separator, and the row of names does not.")
        names = ["", *names]
    if all(is_number(n) for n in names):
        raise ValueError(f"the first row of {path.name} must be the names of the columns; it holds numbers.")
    index = (names[0],) if names[0] in UNNAMED and len(names) > 1 else ()
    check_names(names[len(index) :], path.name)
    for k, row in enumerate(lines[1:]):
        if len(row) != len(names):
            raise ValueError(f"row {k + 2} of {path.name} has {len(row)} values for {len(names)} columns.")
    columns = itertools.islice(zip(names, zip(*lines[1:], strict=True), strict=True), len(index), None)
    return Columns({name: _from_text(name, column, path) for name, column in columns}, 1, index, sep)


def layout(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The separator of a text file with named columns and its encoding, as its beginning shows them."""
    path = pathlib.Path(path)
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return ",", "utf-8"  # what reads it says why it cannot be read
    encoding = _encoding(head)
    text = head.decode(encoding, errors="ignore")
    if len(head) == HEAD_BYTES:
        text = text[: text.rfind("\n") + 1] or text
    sep = _separator(text)
    _refuse_decimal_commas(path, text, sep)
    return sep, encoding.removesuffix("-sig")


def _encoding(content):
    """UTF-8, or UTF-16 with a byte order mark."""
    return "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _refuse_decimal_commas(path, text, sep):
    """Raise a `ValueError` for a column whose first rows are numbers with commas for points: it would be text."""
    rows = []
    with contextlib.suppress(csv.Error):
        rows = [row for row in itertools.islice(_cells(text, sep), HEAD_LINES) if row]
    for name, *cells in zip(*rows, strict=False) if sep != "," else ():
        cells = [cell for cell in map(str.strip, cells) if cell.lower() not in MISSING]
        if any("," in cell for cell in cells) and all(map(DECIMAL_COMMA.fullmatch, cells)):
            raise ValueError(
                f"column {name.strip()!r} of {path.name} has numbers with decimal commas, such as {cells[0]!r}; write "
                "them with points."
            )


def _decoded(path, content):
    """The text of a file."""
    encoding = _encoding(content)
    wide = encoding == "utf-16"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        at = "" if wide else f": row {row} has the byte 0x{content[error.start]:02x}"
        raise ValueError(f"{path.name} is not a text file in UTF-8{at}; save it in UTF-8.") from None
    if any(bad in text for bad in "\0\ufeff\ufffe"):
        raise ValueError(f"{path.name} is not a text file, nor of another format that is read.")
    return text


def _cells(text, sep):
    """The rows of a text, each a list of its cells."""
    lines = io.StringIO(text, newline="")
    lines = (line.strip() for line in lines) if sep == " " else lines
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    return csv.reader(lines, delimiter=sep, skipinitialspace=True, strict=True)


def _separator(text):
    """The separator that divides the first lines into the same number of cells, the most of them; else a comma.

    Of two, the one that divides the row of names as the others: a decimal comma divides other rows only.
    """
    regular, irregular = {}, {}
    for sep in SEPARATORS:
        try:
            header, *widths = (len(row) for row in itertools.islice(_cells(text, sep), HEAD_LINES) if row)
        except (csv.Error, ValueError):  # no line
            continue
        width = widths[0] if widths else header
        same = set(widths) <= {width} and width - header in (0, 1)
        (regular if same else irregular)[sep] = (width if same else header, header)
    spaced = regular.pop(" ", (1, 1))[0] > 1
    irregular.pop(" ", None)
    for found in (regular, irregular):
        best = max(found, key=found.__getitem__, default=",")
        if found.get(best, (1, 1))[0] > 1:
            return best
    return " " if spaced else ","


def _from_text(name, column, path):
    """A column as numbers if all its values are numbers, else as text."""
    stripped = [value.strip() for value in column]
    missing = np.array([value.lower() in MISSING for value in stripped])
    present = [value for value, none in zip(stripped, missing, strict=True) if not none]
    values = np.full(len(stripped), np.nan)
    try:
        values[~missing] = np.array(present, dtype=float)
    except ValueError:
        numbers = [is_number(value) for value in stripped]
        odd = next(k for k, none in enumerate(missing) if not none and not numbers[k])
        mostly = 2 * sum(numbers) > len(present)
        return Column(np.array(stripped, dtype=object), missing, odd if mostly else None)
    for k, value in enumerate(stripped):
        if "_" in value and not missing[k]:
            raise ValueError(
                f"column {name!r} of {path.name} holds {value!r}; if it is a number, write {value.replace('_', '')!r} "
                f"(row {k + 2} of the file)."
            )
    return Column(values, missing)


# ---------------------------------------------------------------------------------------------------------------
# Other formats


def _parquet(path):
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f"{path.name} is a Parquet file, which needs pyarrow: pip install 'pdmp[data]'.") from None
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            rows, width = file.metadata.num_rows, file.metadata.num_columns
            check_size(f"{path.name}, {rows:,} rows of {width:,} columns,", 8.0 * rows * width)
            table = file.read()
            names, kinds = table.column_names, [str(column.type) for column in table.columns]
            missing = [column.is_null(nan_is_null=True).to_numpy() for column in table.columns]
            values = [column.to_pylist() for column in table.columns]
            index = [n for n in (table.schema.pandas_metadata or {}).get("index_columns", []) if isinstance(n, str)]
    except (ArrowException, OSError, KeyError, UnicodeDecodeError, AttributeError, TypeError) as error:
        name = type(error).__name__
        raise ValueError(f"{path.name} is not a Parquet file that can be read, or is damaged ({name}).") from None
    check_names(names, path.name)
    columns = {
        name: _from_objects(name, *parts, path.name)
        for name, *parts in zip(names, values, missing, kinds, strict=True)
        if name not in index
    }
    return Columns(columns, index=tuple(n for n in index if n in names))


def _from_objects(name, values, missing, kind, where):
    """A column of Python's numbers, of truth values, or of text."""
    if all(none or isinstance(v, str) for v, none in zip(values, missing, strict=True)) and not np.all(missing):
        text = ["" if none else v for v, none in zip(values, missing, strict=True)]
        return Column(np.array(text, dtype=object), missing)
    try:
        numbers = np.array([np.nan if none else float(v) for v, none in zip(values, missing, strict=True)])
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"column {name!r} of {where} is of type {kind}; it must be numbers or text.") from None
    return Column(numbers, missing)


def _npy(path, mmap):
    array = read_npy(path, mmap)
    if array.dtype.names:
        check_names(list(array.dtype.names), path.name)
        if array.ndim != 1:
            raise ValueError(f"{path.name} has fields in an array of shape {array.shape}; it must have one dimension.")
        return Columns({name: _from_array(name, array[name], path.name) for name in array.dtype.names})
    if array.ndim == 1:
        array = array[:, None]
    return _matrix(array, [str(j) for j in range(array.shape[1])] if array.ndim == 2 else [], path.name)


def _npz(path):
    arrays = read_npz(path)
    if not arrays or any(array is None for array in arrays.values()):
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
    if X.ndim != 2:
        raise ValueError(f"`X` of {path.name} must be a matrix of shape (N, d), and has shape {X.shape}.")
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
    if array.dtype.kind not in "fiubU" or array.ndim != 1:
        raise ValueError(
            f"column {name!r} of {where} is of type {array.dtype} and shape {array.shape}; it must be a row of numbers "
            "or text."
        )
    return Column(array, absent(array))


def absent(array):
    """Which entries of a row of numbers or text are missing."""
    if array.dtype.kind == "U":
        return np.array([value.strip().lower() in MISSING for value in array.tolist()], bool)
    return np.isnan(array.astype(float))


def _libsvm(path, content):
    from scipy import sparse
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except (ValueError, IndexError, OverflowError):
        raise ValueError(f"{path.name} is not LIBSVM text, label index:value ...{_bad_line(content)}") from None
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"{path.name} has an index of {X.shape[1] - 1:,}; at most {MOST_COLUMNS:,} columns are read. Number those "
            "that occur anew."
        )
    X = sparse.csr_array(X)
    X.sum_duplicates()
    first = 0
    if X.shape[1] > 1 and not np.any(X.indices == 0):  # numbered from 1
        X, first = X[:, 1:], 1
    return Matrix([str(j + first) for j in range(X.shape[1])], X, y, "label")


def _bad_line(content):
    """End of a message: the first line that is not as it should be."""
    for k, line in enumerate(io.BytesIO(content)):
        label, *pairs = line.partition(b"#")[0].split() or [b"0"]
        try:
            pairs = [pair.split(b":") for pair in pairs if not pair.startswith(b"qid:")]
            indices = [(int(index), float(value))[0] for index, value in pairs]
            well = float(label) is not None and min(indices, default=0) >= 0
        except ValueError:
            well = False
        if not well or any(i >= j for i, j in itertools.pairwise(indices)):
            return f"; row {k + 1}, {line[:40].decode(errors='replace').strip()!r}, is not (indices must increase)."
    return "."


def check_names(names, where):
    """Raise a `ValueError` if names of columns are empty or occur twice."""
    if "" in names:
        raise ValueError(f"{where} has a column without a name, the {names.index('') + 1}th.")
    twice = sorted(n for n in set(names) if names.count(n) > 1) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{where} has several columns of the same name: {listed(twice)}.")


def is_number(text):
    """Whether a text is a number as Python writes it."""
    try:
        float(text)
    except (ValueError, UnicodeDecodeError):
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


def same_rows(**given: object) -> None:
    """Raise a `ValueError` for arguments whose rows have different labels, as those of pandas have: one of two tables.

    Values are taken by their places in the end, so that they would be those of other rows. What has no labels, as an
    array, is taken by place; `given` are arguments by name, None for nothing.
    """
    labelled = {name: index for name, value in given.items() if (index := row_labels(value)) is not None}
    for name, index in labelled.items():
        first, other = next(iter(labelled.items()))
        if index.equals(other):
            continue
        if hasattr(given[name], "loc") and hasattr(given[first], "loc"):
            cure = f"select its rows by label, {name}.loc[{first}.index], or give {name}.to_numpy()"
        else:  # a functional
            cure = "select the rows of one by the labels of the other, one.loc[other.index], or give one.to_numpy()"
        name, first = (f"`{text}`" if not text.startswith("the ") else text for text in (name, first))
        raise ValueError(
            f"{name} has other row labels than {first}, and would be taken by place: {cure} if the places are meant."
        )


def row_labels(value: object) -> Any:
    """The labels of the rows of a table or a column of pandas, or of a functional; None of what has none.

    A single row stands for all, whatever its label.
    """
    index = getattr(value, "index", None)
    return index if hasattr(index, "equals") and len(index) > 1 else None
