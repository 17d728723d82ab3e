"""Large files in batches: coded columns go into a memory-mapped file, so that no table has to fit in memory.

The file is read twice. The first pass counts rows and missing values, and finds the levels of categories and groups, of
which it keeps one row each; these rows and the first ones code the formula. The second pass codes every batch in the
same way. Rows are in the order of the file, and rows with a missing value in a column that is used are left out.
"""

from __future__ import annotations

import os
import pathlib
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pdmp.data.formats import listed
from pdmp.formulas.design import Described, Design, Groups, check_response
from pdmp.formulas.table import check_names, import_pandas, linear_offset, numbers, unchanged

LARGE_FILE = 2**28  #: bytes; files of so many or more are read in batches
BATCH = 2**18  #: rows
FIRST_ROWS = 1_000  #: that are among those by which the formula is coded
#: Functions of a formula that have a memory of the whole column, and those that make categories of numbers.
WHOLE_COLUMN = ("center", "scale", "standardize", "poly", "bs", "cc", "cr", "tp")
CATEGORIES = ("C", "S", "T", "B", "binary")


class InBatches(NamedTuple):
    """What a model needs of a table."""

    design: Design  #: whose `X` is memory-mapped, and whose `groups` and `offset` are of all rows
    y: np.ndarray
    offset: np.ndarray
    weight: np.ndarray | None
    notes: list[str]


def is_large(data: Any) -> bool:
    """Whether this is the path of a file that is read in batches."""
    return isinstance(data, (str, os.PathLike)) and os.path.isfile(data) and os.path.getsize(data) >= LARGE_FILE


def read_in_batches(
    path: str | os.PathLike[str],
    described: Described,
    kind: str,
    roles: dict[str, str | None],
    environment: Any,
) -> InBatches:
    """Code a formula over a CSV or Parquet file.

    Parameters
    ----------
    path : path
    described : Described
    kind : str
        Of the response: "number", "label" or "count".
    roles : dict of str to str
        The columns "offset", "exposure" and "weights".
    environment : formulae.environment.Environment

    Raises
    ------
    ImportError
        Without pyarrow.
    ValueError
        As for a table in memory; and for functions of whole columns.
    """
    with unchanged(path):
        return _read(pathlib.Path(path), described, kind, roles, environment)


def _read(path, described, kind, roles, environment):
    for name in WHOLE_COLUMN:
        if re.search(rf"\b{name}\s*\(", described.formula):
            raise ValueError(
                f"`formula`: {name}(...) needs the whole column, and {str(path)!r} is read in batches. Name the column "
                "itself: columns are standardised inside."
            )
    columns = _Columns(_open(path, None)[1])
    check_names(described.names, columns, "`formula`")
    for role, name in roles.items():
        if name is not None:
            check_names([name], columns, f"`{role}`")
    used = [c for c in columns.columns if c in described.names | {name for name in roles.values() if name is not None}]
    groupings = [_names_of(term.factor.components) for term in described.model.group_terms]
    response = described.model.response.term.components[0]
    plain = not hasattr(response, "call") and response.reference is None
    keys = [
        [name]
        for name in used
        if re.search(rf"\b({'|'.join(CATEGORIES)})\s*\([^)]*\b{re.escape(name)}\b", described.formula)
    ]
    keys += groupings + ([[response.name]] if kind == "label" and plain else [])

    some, total, kept, missing = _scan(path, used, keys)
    notes = []
    if kept < total:
        where = listed([name for name in used if missing[name]])
        if kept == 0:
            raise ValueError(f"`data`: every row has a missing value, in {where}.")
        notes.append(f"{total - kept:,} of {total:,} rows have missing values, in {where}, and are left out")
    design = Design(described, some, environment)
    _check_by_rows(design, some)
    y_of, said = _response_reader(design, some, environment, kind, plain, response)
    notes += [said] if said else []

    X, y, offset = scratch((kept, len(design.columns))), np.zeros(kept), np.zeros(kept)
    weight = np.zeros(kept) if roles["weights"] is not None else None
    level = [np.zeros(kept, np.int64) for _ in design.groups]
    value = [np.zeros(kept) for _ in design.groups]
    first = 0
    for table in _batches(path, used):
        rows = slice(first, first + len(table))
        first = rows.stop
        X[rows], offset[rows], groups = design.new(table)
        offset[rows] += linear_offset(table, roles["offset"], roles["exposure"])
        y[rows] = y_of(table)
        if weight is not None:
            weight[rows] = numbers(table, roles["weights"], "`weights`")
        for k, g in enumerate(groups):
            level[k][rows], value[k][rows] = g.level, g.value
    if kind != "label":
        check_response(y, design.response, kind)
    design.X = X
    design.groups = [Groups(g.name, g.grouping, g.levels, level[k], value[k]) for k, g in enumerate(design.groups)]
    return InBatches(design, y, offset, weight, [f"the file was read in batches of {BATCH:,} rows", *notes])


class _Columns(NamedTuple):
    """Names of the columns of a file, as those of a table."""

    columns: list


def _names_of(components):
    """Columns of a grouping factor."""
    return [name for component in components for name in sorted(component.var_names)]


def _open(path, names):
    """Tables of Arrow, batch by batch, and the names of all columns."""
    try:
        import pyarrow
        from pyarrow import csv, parquet
    except ImportError:
        raise ImportError("files that are read in batches need pyarrow: pip install 'pdmp[data]'.") from None
    with open(path, "rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        source = parquet.ParquetFile(path)
        return source.iter_batches(batch_size=BATCH, columns=names), source.schema_arrow.names
    options = csv.ConvertOptions(include_columns=names or [], strings_can_be_null=True)
    try:
        source = csv.open_csv(path, convert_options=options)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"`data`: {str(path)!r} cannot be read: {' '.join(str(error).split())}") from None
    return source, source.schema.names


def _batches(path: pathlib.Path, names: list[str], whole: bool = False) -> Iterator[Any]:
    """Tables of pandas with these columns; of the rows without missing values, unless `whole`."""
    try:
        for batch in _open(path, names)[0]:
            table = batch.to_pandas()[names]
            for name in names:  # the categories of one batch need not be those of another
                if table[name].dtype.name == "category":
                    table[name] = table[name].astype(object)
            if not whole:
                table = table[~table.isna().any(axis=1).to_numpy()]
            if len(table):
                yield table
    except OSError as error:
        raise ValueError(f"`data`: {str(path)!r} cannot be read: {' '.join(str(error).split())}") from None


def _scan(path, used, keys):
    """The first rows and one of each level; how many rows there are, how many complete; missing values by column."""
    pandas = import_pandas()
    seen, kept_rows, total, kept, missing = {}, [], 0, 0, dict.fromkeys(used, 0)
    for table in _batches(path, used, whole=True):
        total += len(table)
        absent = table.isna()
        for name in used:
            missing[name] += int(absent[name].sum())
        table = table[~absent.any(axis=1).to_numpy()]
        categories = [[name] for name in used if not pandas.api.types.is_numeric_dtype(table[name])]
        chosen = np.zeros(len(table), bool)
        chosen[: max(FIRST_ROWS - kept, 0)] = True
        for names in _unique([*keys, *categories]):
            known = seen.setdefault(tuple(names), set())
            distinct = table[names].reset_index(drop=True).drop_duplicates()
            for place, label in zip(distinct.index, distinct.itertuples(index=False, name=None), strict=True):
                if label not in known:
                    known.add(label)
                    chosen[place] = True
        kept += len(table)
        kept_rows.append(table[chosen])
    if total == 0:
        raise ValueError("`data` has no rows.")
    return pandas.concat(kept_rows, ignore_index=True), total, kept, missing


def _unique(keys: Iterable[list[str]]) -> list[list[str]]:
    return [list(key) for key in dict.fromkeys(map(tuple, keys))]


def _check_by_rows(design, table):
    """Refuse functions of whole columns, such as np.mean: the columns of some rows depend on the others then."""
    half = table.iloc[: (len(table) + 1) // 2]
    X, offset, groups = design.new(half)
    same = np.allclose(X, design.X[: len(half)]) and np.allclose(offset, design.offset[: len(half)])
    if not same or not all(
        np.allclose(g.value, w.value[: len(half)]) for g, w in zip(groups, design.groups, strict=True)
    ):
        raise ValueError(
            "`formula` has a function of whole columns, and the file is read in batches: compute it beforehand."
        )


def _response_reader(design, some, environment, kind, plain, response):
    """A function of a table that gives its responses, and a sentence on how they are coded, or ""."""
    if kind != "label":
        return lambda table: design.evaluate_response(table, environment), ""
    _, said = design.read_response(some, environment, kind)  # that there are two labels
    if not plain:
        return lambda table: design.evaluate_response(table, environment), said
    highest = np.unique(np.asarray(some[response.name]))[-1]
    return lambda table: (np.asarray(table[response.name]) == highest).astype(float), said


def scratch(shape: tuple[int, ...]) -> np.ndarray:
    """A memory-mapped array of zeros in a file without a name, which goes when the array does."""
    with tempfile.TemporaryFile(prefix="pdmp-") as file:
        return np.memmap(file, float, "w+", shape=shape)
