"""Tables as pandas reads them, and the numbers of single columns."""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pdmp.data.formats import layout, listed
from pdmp.data.tables import did_you_mean
from pdmp.native.arguments import refuse_unreal, same_rows

#: What a CSV file may have where a value is missing: the list of pandas, whichever version reads, and of batches too.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)

ORDER_LOST = "order lost"  #: among the `attrs` of a table: its columns whose order as categories is not known


def import_pandas():
    """The package, or an `ImportError` that says how to get it."""
    try:
        import pandas
    except ImportError:
        raise ImportError("regressions by formula need pandas and formulae: pip install 'pdmp[formula]'.") from None
    return pandas


def import_formulae(module: str) -> Any:
    """A module of the package formulae, or an `ImportError` that says how to get it."""
    import_pandas()
    try:
        return importlib.import_module(f"formulae.{module}")
    except ImportError:
        raise ImportError("regressions by formula need formulae: pip install 'pdmp[formula]'.") from None


def read_table(data: Any, asked: str = "`data`", as_text: Sequence[str] = ()) -> Any:
    """A pandas.DataFrame of a table, of pandas or a package that it or narwhals knows, a dict of columns or a path.

    `asked` is what messages call it; `as_text` columns of a CSV file that hold text, even if each of it is a number.
    """
    pandas = import_pandas()
    if isinstance(data, (str, os.PathLike)):
        path = pathlib.Path(data)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {str(path)!r}.")
        with unchanged(path):
            table = _read_file(path, pandas, as_text)
    elif isinstance(data, pandas.DataFrame):
        table = data
    elif isinstance(data, dict):
        table = _of_columns(data, asked, pandas)
    elif hasattr(data, "to_pandas"):
        try:
            table = data.to_pandas()
        except Exception as error:  # such as a column of a type that pandas lacks, even if the formula does not name it
            said = f"{asked} cannot be read by pandas: {one_line(error).rstrip('.')}. Leave out columns of other types."
            raise ValueError(said) from None
    else:
        table = _from_any(data, asked)
    check_repeated(table.columns)
    if table.columns.nlevels == 1 and not all(isinstance(name, str) for name in table.columns):
        table = table.rename(columns=str)
    if len(table) == 0:
        raise ValueError(f"{asked} has no rows.")
    kinds = {name: "category" for name, dtype in table.dtypes.items() if str(dtype).startswith("dictionary<")}
    # Numbers as other processors hold them pandas neither groups nor counts.
    kinds |= {n: t.newbyteorder("=") for n, t in table.dtypes.items() if getattr(t, "byteorder", "=") in "<>"}
    return table.astype(kinds) if kinds else table


def _read_file(path, pandas, as_text=()):
    """The table of a CSV or a Parquet file; a `ValueError` of one line for one that cannot be read."""
    try:
        if is_parquet(path):
            table = pandas.read_parquet(path)
            for name, is_ordered in numeric_categories(path).items():
                if name in table.columns and table[name].dtype.name != "category":
                    table[name] = pandas.Categorical(table[name])
                    if is_ordered:
                        table.attrs.setdefault(ORDER_LOST, []).append(name)
            return table
        sep, encoding = layout(path)
        options = {"sep": r"\s+" if sep == " " else sep, "encoding": encoding, "keep_default_na": False}
        # With the first row, which must not be longer: its first values would be an index, and names be shifted.
        header = pandas.read_csv(path, header=None, nrows=2, dtype=str, **options)
        # Of the whole file at once: else a column may hold numbers of one part and text of another.
        types = dict.fromkeys(as_text, str)
        table = pandas.read_csv(path, na_values=list(MISSING), low_memory=False, dtype=types, **options)
        for name in set(table.columns) - set(as_text):
            # Whole numbers above those of 64 bits pandas leaves as text where others are negative.
            values = () if pandas.api.types.is_numeric_dtype(table[name]) else table[name].dropna().unique()
            if len(values) and all(re.fullmatch(r"[+-]?[0-9]+", str(value)) for value in values):
                table[name] = table[name].astype(float)
    except UnicodeDecodeError:
        raise not_utf8(path) from None
    except pandas.errors.EmptyDataError:
        raise ValueError(f"`data`: the file {str(path)!r} is empty.") from None
    except (ValueError, TypeError, OSError) as error:  # a TypeError of pandas for its own dictionaries of Arrow
        raise ValueError(f"`data`: {str(path)!r} cannot be read: {one_line(error)}") from None
    check_repeated(header.iloc[0])  # pandas calls the second one "x.1"
    return table


def numeric_categories(part: Any) -> dict[str, bool]:
    """Columns of a Parquet file that pandas wrote as categories of numbers, and whether these are ordered.

    Arrow reads them as numbers, and so do some versions of pandas.
    """
    if not isinstance(part, (str, os.PathLike)) or not is_parquet(part):
        return {}
    import pyarrow
    from pyarrow import parquet

    try:
        schema = parquet.read_schema(part)
    except (pyarrow.ArrowException, OSError):  # which is said where the rows are read
        return {}
    described = (schema.pandas_metadata or {}).get("columns", [])
    ordered = {
        column["name"]: bool((column["metadata"] or {}).get("ordered"))
        for column in described
        if column["pandas_type"] == "categorical"
    }
    return {field.name: ordered[field.name] for field in schema if field.name in ordered and not _is_text(field.type)}


def _is_text(kind):
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return types.is_string(kind) or types.is_large_string(kind)


def is_parquet(path: Any) -> bool:
    """Whether a file is one of Parquet, and not CSV; an `OSError` for what is neither."""
    with open(path, "rb") as file:
        begin = file.read(8)
    if begin.startswith((b"PK\x03\x04", b"\x93NUMPY")):
        raise OSError("it is a file of NumPy arrays or an archive, and no table: give {name: column, …} of it")
    return begin.startswith(b"PAR1")


def not_utf8(path: Any, column: str | None = None) -> ValueError:
    """What is said of a text file, or of one of its columns, in another encoding."""
    where = f"the file {str(path)!r}" if column is None else f"the column {column!r} of the file {str(path)!r}"
    return ValueError(
        f"`data`: {where} is not encoded in UTF-8; save it so, or give the table that "
        'pandas.read_csv(path, encoding="latin-1") reads.'
    )


def one_line(error: BaseException) -> str:
    """The text of an error of another package as one line, with a full stop."""
    return " ".join(str(error).split()).rstrip(".") + "."


def check_repeated(columns: Iterable[Any], where: str = "`data`") -> None:
    """Raise a `ValueError` for two columns of one name, unless it is empty."""
    names = [str(name) for name in columns]
    repeated = sorted({name for name in names if name} - {name for name in names if names.count(name) == 1})
    if repeated:
        raise ValueError(f"{where} has more than one column {repeated[0]!r}.")


@contextlib.contextmanager
def unchanged(path: str | os.PathLike[str]) -> Iterator[None]:
    """A context in which a file is read; a `ValueError` after it if its size or its time has changed meanwhile."""
    before = os.stat(path)
    yield
    after = os.stat(path)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise ValueError(f"`data`: the file {str(path)!r} has changed while it was read; read it again.")


def _of_columns(data, asked, pandas):
    """The table of a dict; a `ValueError` that names the columns which are none, or not of one length."""
    sizes = {
        name: len(column)
        for name, column in data.items()
        if hasattr(column, "__len__") and not isinstance(column, str) and getattr(column, "shape", None) != ()
    }
    if data and not sizes:
        name = next(iter(data))
        raise ValueError(f"{asked}: the column {name!r} must be a list or an array, such as [{data[name]!r}].")
    for name, column in data.items():
        if len(shape := getattr(column, "shape", ())) > 1:
            raise ValueError(f"{asked}: the column {name!r} must have one value for each row, got an array of {shape}.")
    same_rows(**{f"{asked[1:-1]}[{name!r}]": column for name, column in data.items()})
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{name!r} of {size:,}" for name, size in list(sizes.items())[:8])
        raise ValueError(f"{asked}: its columns must have one length, got {said} rows.")
    return pandas.DataFrame(data)


def _from_any(data, asked):
    try:
        import narwhals

        return narwhals.from_native(data).to_pandas()
    except (ImportError, TypeError, AttributeError):
        raise TypeError(
            f"{asked} must be a table (pandas, Polars, Arrow), a dict of columns or the path of a CSV or Parquet file, "
            f"got {type(data).__name__}."
        ) from None


def plain(label: Any) -> Any:
    """A label as Python has it: a number of NumPy as one of Python's."""
    return label.item() if hasattr(label, "item") else label


def labels_of(column: Any) -> list:
    """Different values of a column, in the order of a category of pandas, else sorted."""
    return [plain(label) for label in import_pandas().factorize(column, sort=True)[1]]


def places(labels: Sequence, *columns: Any) -> np.ndarray:
    """The position of each row's label among `labels`, -1 where it is none of them, as int32.

    A label is a value of the column, or of several columns a tuple with a value of each. Pandas alone finds 259 where
    labels of the type uint8 have 3.
    """
    pandas = import_pandas()
    if len(columns) == 1:
        return _signed(labels).get_indexer(_signed(columns[0])).astype(np.int32)
    known = [_signed(part) for part in zip(*labels, strict=True)] or [[]] * len(columns)
    rows = pandas.MultiIndex.from_arrays([_signed(column) for column in columns])
    return pandas.MultiIndex.from_arrays(known).get_indexer(rows).astype(np.int32)


def _signed(values):
    """An index of values, in which whole numbers have a sign."""
    pandas = import_pandas()
    index = pandas.Index(values)
    if index.dtype.kind != "u":
        return index
    if len(index) and index.max() >= 2**63:
        return index.astype(object)
    return index.astype(np.int64 if isinstance(index.dtype, np.dtype) else "Int64")


def check_names(names: Iterable[str], table: Any, asked: str, where: str = "`data`") -> None:
    """Raise a `ValueError` for a name that is no column, with the column that is close; the index is none.

    And for an ordered category whose order the file did not keep.
    """
    for name in sorted(set(names) & set(getattr(table, "attrs", {}).get(ORDER_LOST, ()))):
        raise ValueError(
            f"{asked} names {name!r}, an ordered category of numbers, of which the file does not keep the order: read "
            f"it by pandas, and order it, pandas.Categorical(table[{name!r}], categories=[...], ordered=True)."
        )
    known, index = [str(name) for name in table.columns], getattr(table, "index", ())
    for name in sorted(set(names) - set(known)):
        if name in map(str, getattr(index, "names", index)):
            raise ValueError(
                f"{asked} names {name!r}, which is the index of the rows of {where}, not a column: make it one by "
                "`reset_index()`."
            )
        close = did_you_mean(name, known, f"; it has {listed(known, 8)}.")
        raise ValueError(f"{asked} names {name!r}, and {where} has no such column{close}")


def check_roles(roles: Mapping[str, str | None], table: Any, where: str = "`data`") -> set[str]:
    """The columns that arguments such as `weights` name; a `ValueError` for one that there is not."""
    given = {role: name for role, name in roles.items() if name is not None}
    for role, name in given.items():
        check_names([name], table, f"`{role}`", where)
    return set(given.values())


def is_numeric(column: Any) -> bool:
    """Whether a column holds numbers."""
    types = import_pandas().api.types
    return bool(types.is_numeric_dtype(column) or types.is_bool_dtype(column))  # those of Arrow, too


def weigh(table: Any, weights: str | None) -> np.ndarray:
    """Which rows have weight 0, (n,): they are left out, whatever else they hold; a `ValueError` for negative ones."""
    idle = np.zeros(len(table), bool)
    if weights is not None:
        known = table[weights].notna().to_numpy()
        values = numbers(table[known], weights, "`weights`")
        if np.any(values < 0.0):
            raise ValueError(
                f"`weights`: the column {weights!r} must not be negative, nor 0 in every row, got {values.min():g}."
            )
        idle[known] = values == 0.0
    return idle


def complete_rows(
    table: Any, names: Iterable[str], asked: str = "`data`", imputed: Iterable[str] = (), weights: str | None = None
) -> tuple[Any, list[str]]:
    """The rows with a weight above 0 in which none of these columns but `imputed` is missing; what was left out."""
    names = [name for name in table.columns if name in set(names)]
    idle = weigh(table, weights)
    if len(names) < len(table.columns):  # `table[names]` would be a copy
        table = import_pandas().DataFrame({name: table[name] for name in names}, index=table.index, copy=False)
    if idle.any():
        table = table[~idle]
    missing = table.isna()
    missing[list(imputed)] = False
    rows = missing.any(axis=1).to_numpy()
    said = left_out(len(idle), int(idle.sum()), int(rows.sum()), [name for name in names if missing[name].any()], asked)
    return with_truth_values(table[~rows]), said


def left_out(n: int, idle: int, missing: int, names: Sequence[str], asked: str = "`data`") -> list[str]:
    """What is said of the rows that are left out: of weight 0, and of the others those with missing values."""
    said = [f"{idle:,} of {n:,} rows have weight 0, and are left out"] if idle else []
    if missing:
        said.append(f"{missing:,} of {n:,} rows have missing values, in {listed(list(names))}, and are left out")
    if idle == n:
        raise ValueError(f"`weights`: the column must not be negative, nor 0 in every row of {asked}.")
    if missing + idle == n:
        also = " or weight 0" * bool(idle)
        raise ValueError(f"{asked}: every row has a missing value, in {listed(list(names))}{also}.")
    return said


def with_truth_values(table: Any) -> Any:
    """A table without missing values, whose columns of objects that are all truth values hold these.

    A column of truth values of which some are missing holds objects; ``astype(bool)`` of the whole column would make
    None false and NaN true.
    """
    infer = import_pandas().api.types.infer_dtype
    held = [
        name for name in table.columns if table[name].dtype == object and infer(table[name], skipna=False) == "boolean"
    ]
    return table.astype(dict.fromkeys(held, bool)) if held else table


def numbers(table: Any, name: str, asked: str) -> np.ndarray:
    """A column as floats, or a `ValueError` that names it: for text, and values that are not finite."""
    try:
        refuse_unreal("", table[name])
    except ValueError as error:
        raise ValueError(f"{asked}: the column {name!r}{str(error).removeprefix('``')}") from None
    try:
        values = table[name].to_numpy(dtype=float)
    except (TypeError, ValueError):
        kinds = sorted(set(map(str, table[name].dropna())))
        labels = (
            f"; it has the values {kinds[0]!r} and {kinds[1]!r}: is the family bernoulli?" if len(kinds) == 2 else "."
        )
        raise ValueError(f"{asked}: the column {name!r} must hold numbers{labels}") from None
    if not np.all(np.isfinite(values)):
        row = table.index[np.argmin(np.isfinite(values))]
        raise ValueError(f"{asked}: the column {name!r} is not finite in row {row}.")
    return values


def weights_of(table: Any, roles: Mapping[str, str | None]) -> np.ndarray | None:
    """Of the rows, or None where no column of `weights` was given."""
    return None if roles["weights"] is None else numbers(table, roles["weights"], "`weights`")


def linear_offset(table: Any, offset: str | None, exposure: str | None) -> np.ndarray:
    """What the columns `offset` and `exposure` add to the linear predictor, (n,)."""
    total = np.zeros(len(table))
    if offset is not None:
        total += numbers(table, offset, "`offset`")
    if exposure is not None:
        values = numbers(table, exposure, "`exposure`")
        if not np.all(values > 0.0):
            raise ValueError(f"`exposure`: the column {exposure!r} must be positive, got {values.min():g}.")
        total += np.log(values)
    return total
