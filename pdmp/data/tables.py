"""Tables of your own: CSV, Parquet, NPZ, NPY and LIBSVM files, recognised by their content.

A table that cannot be used is a ValueError that names the columns and the row. Without the option for it, no column is
dropped or encoded but the index of the rows, and missing values are never filled in. Notes say what was done.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import math
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import NamedTuple

import numpy as np

from pdmp.data.dataset import TEST_FRACTION, Dataset, prepare
from pdmp.data.formats import MISSING as MISSING
from pdmp.data.formats import (
    SEPARATORS,
    UNNAMED,
    Column,
    Columns,
    Matrix,
    absent,
    columns_text,
    is_number,
    listed,
    read_file,
)
from pdmp.errors import warn

BLOCK = 2**23  #: entries of a memory-mapped file that are checked together
MOST_LEVELS = 100
FILL_IN = "remove those rows or fill them in, or have them left out (drop_missing=True, --drop-missing)"
SLIPS = 0.01  #: share of the rows, or one row, up to which what is no number among numbers is taken for a slip
MOST_NUMBERS = 10  #: levels of a category that are numbers; with more, one that is none is taken for a mistake


def read(
    path: str | os.PathLike,
    target: str | int | os.PathLike | None = None,
    *,
    numeric: bool = False,
    positive: str | float | None = None,
    above: float | None = None,
    one_hot: bool | Sequence[str] = False,
    drop_constant: bool = False,
    drop: str | Sequence[str] = (),
    drop_missing: bool = False,
    index: str | None = None,
    sep: str | None = None,
    standardise: bool = True,
    intercept: str | None = "first",
    mmap: bool = False,
    seed: int = 0,
) -> Dataset:
    """A table for regression, from a file of your own.

    Parameters
    ----------
    path : path
        The format is recognised by the content:

        - CSV, also in gzip: separated by commas, semicolons, tabs, vertical bars or spaces, the first row the names of
          the columns;
        - Parquet (with pyarrow);
        - NPZ: arrays `X` (N, d), `y` (N,) and optionally `names` (d,); or one array of shape (N,) for each column;
        - NPY: a matrix, or a structured array with named fields;
        - LIBSVM text, also in gzip: ``label index:value index:value ...`` on each line. It stays sparse.
    target : str, int or path, optional
        What to predict: the name of a column, or of an array in an NPZ file (default ``"y"``); for an NPY matrix the
        number of the column (-1: the last), or the path of another NPY file with one value for each row. LIBSVM files
        contain theirs. It must have two different values, numbers or text: the larger number, or the last text in
        the alphabet, becomes label 1.
    numeric : bool, default False
        Whether the target is a number, such as a count, and not one of two labels.
    positive : str or float, optional
        Of a target with more values: the one that becomes label 1; all others become 0.
    above : float, optional
        Of a target of numbers: those above this one become label 1.
    one_hot : bool or sequence of str, default False
        True: columns of text become columns of zeros and ones, one for each value (``town=Lund``); with an intercept,
        none for the first value in the alphabet. Names of columns: encode these too, even if they are numbers.
    drop_constant : bool, default False
        Leave out columns with the same value in every row, which are otherwise an error.
    drop : str or sequence of str, optional
        Names of columns to leave out.
    drop_missing : bool, default False
        Leave out the rows with a missing value in any column that is used, which are otherwise an error.
    index : str, optional
        The column that numbers or names the rows, which is left out. A first column without a name, as pandas and R
        write it, and the index that pandas keeps in a Parquet file are recognised.
    sep : str, optional
        The character between the values of a CSV file; by default the one that divides its first lines evenly.
    standardise : bool, default True
        Mean zero and standard deviation one in the training part. Sparse columns are not centred.
    intercept : {"first", "last", None}
        Where a column of ones is added.
    mmap : bool, default False
        Leave the matrix of an NPY file (float32 or float64, C order) on the disk; models read its rows as they need
        them. This needs ``standardise=False`` and ``intercept=None``, and a target in another NPY file. The test part
        is the last fifth of the rows, which must therefore be in random order.
    seed : int, default 0
        Of the random split into 80 % of the rows to train and 20 % to test.

    Returns
    -------
    Dataset
        Its attribute `changes` says what was left out or encoded.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        For Parquet without pyarrow.
    ValueError
        For missing or infinite values, text, constant columns, names that occur twice, a target that does not exist or
        does not have two values; the message names the columns and the row.

    Examples
    --------
    >>> import numpy as np
    >>> import pdmp
    >>> rng = np.random.default_rng(0)
    >>> np.savez('table.npz', X=rng.standard_normal((20, 2)), y=rng.integers(0, 2, 20))
    >>> pdmp.data.read('table.npz').X.shape
    (20, 3)
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}.")
    if sep is not None and (not isinstance(sep, str) or len(sep) != 1 or sep in '\r\n"'):
        raise ValueError(f"`sep` must be one character, such as ';' or '\\t', got {sep!r}.")
    drop = _names_of("drop", drop)
    one_hot = one_hot if isinstance(one_hot, bool) else _names_of("one_hot", one_hot)
    if index is not None and not isinstance(index, str):
        raise TypeError(f"`index` must be the name of a column, or None, got a {type(index).__name__}.")
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise ValueError("`seed` must be a whole number from 0 to 2³² - 1: it divides the rows.")
    content = read_file(path, mmap, sep)
    where = path.name
    if mmap:
        if not isinstance(content, Matrix) or not isinstance(content.X, np.memmap):
            raise ValueError(f"`mmap` needs a matrix of numbers in an NPY file; {where} is none.")
        if standardise or intercept is not None or one_hot or drop_constant or drop or drop_missing:
            raise ValueError(
                "`mmap` leaves the file as it is: give standardise=False and intercept=None, and none of one_hot, "
                "drop_constant, drop and drop_missing."
            )
        if content.X.dtype not in (np.float32, np.float64) or not content.X.flags.c_contiguous:
            order = "" if content.X.flags.c_contiguous else " in Fortran order"
            raise ValueError(
                f"`mmap` needs a matrix of float32 or float64 in C order; {where} has {content.X.dtype}{order}."
            )
    changes, kind = [], Labels(numeric, positive, above)
    if isinstance(content, Columns):
        content = _used(content, target, index, drop, drop_missing, changes, where)
        matrix, y, labels, target = _from_columns(content, target, kind, one_hot, intercept, changes, where)
    else:
        if one_hot:
            raise ValueError(f"{where} is a matrix of numbers; `one_hot` is for tables with names.")
        if sep is not None or index is not None:
            name, of = ("sep", "CSV files") if sep is not None else ("index", "tables with names")
            raise ValueError(f"{where} is a matrix of numbers; `{name}` is for {of}.")
        matrix, y, labels, target = _from_matrix(content, target, kind, drop, drop_missing, changes, path)
    names, X = matrix.names, matrix.X
    if mmap:
        _varying(names, X, False, where)
        rows = X.shape[0] - int(np.ceil(TEST_FRACTION * X.shape[0]))
        about = f"{where}: {target}"
        return Dataset(path.stem, X, y, tuple(names), labels, slice(0, rows), slice(rows, None), about)
    before = names
    names, X = _varying(names, X, drop_constant, where)
    if len(names) < len(before):
        constant = columns_text(n for n in before if n not in set(names))
        changes.append(f"left out: {constant}, with the same value in every row")
    if not names:
        raise ValueError(f"{where} has no column but the target {target!r}.")
    stem = path.name.partition(".")[0]
    about = f"{where}: {target}"
    read = prepare(stem, X, y, names, labels, about, standardise=standardise, intercept=intercept, seed=seed)
    return replace(read, changes=tuple(changes))


# ---------------------------------------------------------------------------------------------------------------
# From what a file holds to features and target


def _names_of(option, value):
    """Names of columns, or numbers of those of a matrix, as a tuple."""
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, Iterable) or not all(isinstance(name, (str, int, np.integer)) for name in found):
        raise TypeError(f"`{option}` must be the name of a column, or a list of names, got a {type(value).__name__}.")
    return tuple(found)


def _used(table, target, index, drop, drop_missing, changes, where):
    """The columns and rows of a table that are used."""
    columns = dict(table.columns)
    if table.separator != ",":
        changes.append(f"values are separated by {SEPARATORS.get(table.separator, repr(table.separator))}")
    if table.index:
        name = "the first column, which has no name" if table.index[0] in UNNAMED else columns_text(table.index)
        changes.append(f"left out: {name}, as the index of the rows")
    for option, names in (("index", () if index is None else (index,)), ("drop", drop)):
        for name in names:
            if name in table.index:
                continue
            if name not in columns:
                raise ValueError(
                    f"`{option}` names {name!r}, which is no column of {where}{did_you_mean(name, columns)} Its "
                    f"columns: {listed(columns)}."
                )
            if name == target:
                raise ValueError(f"`{option}` names the target {name!r}.")
            values = columns.pop(name).values
            if option == "index" and len(np.unique(values)) < len(values):
                raise ValueError(
                    f"`index` names {name!r}, which has the same value in several rows of {where}; `drop` leaves out "
                    "any column."
                )
        left = [name for name in names if name not in table.index]
        if left:
            changes.append(f"left out: {columns_text(left)}" + (", as the index of the rows" * (option == "index")))
    if drop_missing and columns:
        gone = np.any([column.missing for column in columns.values()], axis=0)
        counts = {name: int(column.missing.sum()) for name, column in columns.items() if column.missing.any()}
        _say_missing(gone, counts, changes, where)
        kept = np.flatnonzero(~gone)
        columns = {name: _rows(column, kept) for name, column in columns.items()}
        table = table._replace(kept=kept)
    return table._replace(columns=columns)


def _rows(column, kept):
    """Some rows of a column."""
    odd = None
    if column.odd is not None:
        odd = int(np.searchsorted(kept, column.odd))  # it is not missing, but its row may be left out
        odd = odd if odd < len(kept) and kept[odd] == column.odd else None
    return Column(column.values[kept], column.missing[kept], odd)


def _say_missing(gone, counts, changes, where):
    """Add what is left out for want of values to `changes`; a `ValueError` if nothing is left."""
    if not counts:
        return
    most = sorted(counts, key=counts.__getitem__, reverse=True)
    text = ", ".join(f"{name!r} ({counts[name]:,})" for name in most[:6]) + (", …" if len(most) > 6 else "")
    if gone.all():
        raise ValueError(
            f"every row of {where} has a missing value, in columns {text}; leave out the emptiest columns first (drop, "
            "--drop)."
        )
    changes.append(f"left out: {int(gone.sum()):,} of {len(gone):,} rows, with missing values in {text}")


def _from_columns(table, target, kind, one_hot, intercept, changes, where):
    names = list(table.columns)
    if target is None:
        raise ValueError(f"`target` is missing: the column of {where} to predict, one of {listed(names)}.")
    if target not in names:
        raise ValueError(f"{where} has no column {target!r}{did_you_mean(target, names)} Its columns: {listed(names)}.")
    categories = () if isinstance(one_hot, bool) else one_hot
    for name in categories:
        if name not in names or name == target:
            raise ValueError(
                f"`one_hot` names {name!r}, which is no feature of {where}{did_you_mean(name, names)} "
                f"Its columns: {listed(names)}."
            )
    missing = {n: int(np.argmax(c.missing)) for n, c in table.columns.items() if c.missing.any()}
    if missing:
        raise ValueError(
            f"{where} has missing values in {columns_text(missing)}, the first in {table.row(min(missing.values()))}; "
            f"{FILL_IN}."
        )
    columns = {name: column.values for name, column in table.columns.items()}
    y, labels = _target(columns.pop(target), target, kind, changes, where)
    text = {n: {v.lower() for v in c} for n, c in columns.items() if n not in categories and c.dtype.kind == "O"}
    truth = [n for n, values in text.items() if values <= {"true", "false"}]
    columns |= {name: np.array([value.lower() == "true" for value in columns[name]]) for name in truth}
    if truth:
        changes.append(f"coded: {columns_text(truth)}, true as 1 and false as 0")
    text = [n for n, c in columns.items() if c.dtype.kind not in "fiub" and n not in categories]
    for name in text:
        odd = table.columns[name].odd
        if odd is not None and (one_hot is False or len(set(columns[name])) > MOST_NUMBERS):
            raise ValueError(
                f"{table.row(odd)[:1].upper()}{table.row(odd)[1:]}, {where}: {columns[name][odd]!r} in column {name!r} "
                "is not a number; correct it, leave it empty if it is missing, or leave the column out (drop, --drop)."
            )
        slips = [k for k, value in enumerate(columns[name]) if not is_number(value)] if odd is not None else []
        if 0 < len(slips) <= max(1.0, SLIPS * len(columns[name])):
            warn(
                f"{table.row(odd)[:1].upper()}{table.row(odd)[1:]}, {where}: {columns[name][odd]!r} in column {name!r} "
                "is not a number, as nearly all others are, so that the column is encoded as a category: correct it, "
                f"leave it empty if it is missing, or name the category, one_hot=[{name!r}]."
            )
    if text and one_hot is False:
        raise ValueError(
            f"{where} has text in {columns_text(text)}; code them as numbers, leave them out (drop, --drop), or have "
            "them encoded as zeros and ones (one_hot=True, --one-hot)."
        )
    features = {}
    for name, values in columns.items():
        encoded = name in text or name in categories
        new = _indicators(name, values, intercept, where) if encoded else {name: values.astype(float)}
        twice = [other for other in new if other in features or (encoded and other in columns)]
        if twice:
            raise ValueError(f"{where} has a column {twice[0]!r}, the name of an indicator of {name!r}; rename it.")
        features |= new
        if encoded:
            levels, k = len(np.unique(values)), len(new)
            changes.append(f"encoded: {name!r}, {levels} values, as {k} column{'s' * (k != 1)} of zeros and ones")
    X = np.column_stack(list(features.values())) if features else np.empty((len(y), 0))
    return Matrix(list(features), X), y, labels, target


def _indicators(name, values, intercept, where):
    """A column of zeros and ones for each value; with an intercept, for each but the first."""
    levels, place = np.unique(values, return_inverse=True)
    if len(levels) > max(2, min(MOST_LEVELS, len(values) // 2)):
        raise ValueError(
            f"column {name!r} of {where} has {len(levels)} different values in {len(values)} rows; that is not a "
            "category. Leave it out (drop, --drop)."
        )
    written = [f"{level:g}" if isinstance(level, float) else str(level) for level in levels.tolist()]
    first = 0 if intercept is None or len(levels) == 1 else 1
    return {f"{name}={written[k]}": (place == k).astype(float) for k in range(first, len(levels))}


def _from_matrix(matrix, target, kind, drop, drop_missing, changes, path):
    where = path.name
    names, X, y = matrix.names, matrix.X, matrix.y
    if y is not None:
        if target is not None and target != matrix.target:
            raise ValueError(f"{where} brings its own target ({matrix.target}); leave `target` out.")
        target = matrix.target
    elif target is None:
        raise ValueError(
            f"`target` is missing: the number of the column of {where} to predict (0 to {X.shape[1] - 1}, or -1 for "
            "the last), or an NPY file with one value for each row."
        )
    elif not isinstance(target, (bool, os.PathLike)) and re.fullmatch(r"\s*[-+]?\d+\s*", str(target)):
        column = int(target)
        if not -X.shape[1] <= column < X.shape[1]:
            raise ValueError(f"{where} has no column {target}; it has {X.shape[1]}, from 0 to {X.shape[1] - 1}.")
        if isinstance(X, np.memmap):  # the other columns would not be contiguous
            raise ValueError(f"with `mmap` the target must be an NPY file of its own, not column {target} of {where}.")
        column %= X.shape[1]
        y, target = np.array(X[:, column]), f"column {column}"
        X = np.delete(X, column, axis=1)
        names = names[:column] + names[column + 1 :]
    else:
        beside = pathlib.Path(target)
        if not beside.is_file():
            raise ValueError(
                f"`target` must be the number of a column of {where}, from 0 to {X.shape[1] - 1}, or an NPY file; "
                f"there is no file {str(target)!r}."
            )
        read_from = read_file(beside, False)
        if not isinstance(read_from, Matrix) or read_from.X.shape[1] != 1:
            raise ValueError(f"{beside.name} must be an NPY file with one value for each row of {where}.")
        y, target = read_from.X[:, 0], beside.name
    if y.shape != (X.shape[0],):
        raise ValueError(f"the target {target!r} of {where} has shape {y.shape} for {X.shape[0]} rows.")
    if drop:
        for name in drop:
            if name not in names:
                raise ValueError(
                    f"`drop` names {name!r}, which is no feature of {where}{did_you_mean(name, names)} Its columns: "
                    f"{listed(names)}."
                )
        kept = [j for j, name in enumerate(names) if name not in drop]
        names, X = [names[j] for j in kept], X[:, kept]
        changes.append(f"left out: {columns_text(drop)}")
    if drop_missing:
        X, y = _complete_rows(names, X, y, changes, where)
    if absent(y).any():
        raise ValueError(
            f"{where} has missing values in the target {target!r}, the first in row {int(np.argmax(absent(y)))}, "
            f"counted from 0; {FILL_IN}."
        )
    y, labels = _target(y, target, kind, changes, where)
    return Matrix(names, X), y, labels, target


def _complete_rows(names, X, y, changes, where):
    """The rows without a missing value; X is dense or sparse."""
    from scipy import sparse

    if sparse.issparse(X):
        entries = X.tocoo()
        bad = np.isnan(entries.data)
        rows, columns = entries.row[bad], entries.col[bad]
    else:
        rows, columns = np.nonzero(np.isnan(X)) if X.dtype.kind == "f" else (np.zeros(0, int), np.zeros(0, int))
    gone = absent(y)
    counts = {names[j]: int(n) for j, n in enumerate(np.bincount(columns, minlength=len(names))) if n}
    counts |= {"the target": int(gone.sum())} if gone.any() else {}
    gone[rows] = True
    _say_missing(gone, counts, changes, where)
    kept = np.flatnonzero(~gone)
    return X[kept], y[kept]


class Labels(NamedTuple):
    """How a target becomes labels: see `read`."""

    numeric: bool
    positive: str | float | None
    above: float | None


def _target(values, target, kind, changes, where):
    """Labels 0.0 and 1.0 and the two values that they encode; with `numeric` the numbers, and no values."""
    numbers = values.dtype.kind in "fiub"
    if sum((kind.numeric, kind.positive is not None, kind.above is not None)) > 1:
        raise ValueError("give one of `numeric`, `positive` and `above`.")
    if kind.positive is not None or kind.above is not None:
        values, labels = _divided(values, target, kind, where)
        if len(set(values.tolist())) == 1:
            raise ValueError(f"the target {target!r} of {where} has only one label, {labels[int(values[0])]!r}.")
        changes.append(f"label 1 of {target!r}: {labels[1]}, {int(values.sum()):,} of {len(values):,} rows")
        return values.astype(float), labels
    if kind.numeric:
        if not numbers:
            raise ValueError(f"the target {target!r} of {where} has text; with `numeric` it must be numbers.")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"the target {target!r} of {where} has infinite values.")
        return values.astype(float), ()
    found = np.unique(values.astype(float) if values.dtype.kind in "iub" else values).tolist()
    if len(found) == 1:
        raise ValueError(f"the target {target!r} of {where} has only one value, {found[0]!r}; two are needed.")
    if len(found) > 2:
        raise ValueError(
            f"the target {target!r} of {where} has {len(found)} different values ({listed(found, 4)}), not two; say "
            f"which is label 1 (positive=, --positive){' or above which number (above=, --above)' * numbers}."
        )
    is_one = values == found[1]
    if found != [0, 1]:  # True and False are equal to these, too
        changes.append(f"label 1 of {target!r}: {found[1]}, {int(is_one.sum()):,} of {len(values):,} rows")
    return is_one.astype(float), tuple(found)


def _divided(values, target, kind, where):
    """Which values are label 1, as `kind` has it, and what the labels are called."""
    numbers = values.dtype.kind in "fiub"
    if kind.above is not None:
        if not numbers:
            raise ValueError(f"the target {target!r} of {where} has text; with `above` it must be numbers.")
        if isinstance(kind.above, bool) or not isinstance(kind.above, Real) or not math.isfinite(kind.above):
            raise ValueError(f"`above` must be a finite number, got {kind.above!r}.")
        return values > kind.above, (f"not above {kind.above:g}", f"above {kind.above:g}")
    chosen, known = kind.positive, np.unique(values).tolist()
    with contextlib.suppress(TypeError, ValueError):
        if values.dtype.kind == "b":
            chosen = {"true": True, "false": False}.get(str(chosen).lower(), chosen)
        else:
            chosen = float(chosen) if numbers else str(chosen)
    if chosen not in known:
        raise ValueError(
            f"`positive` = {kind.positive!r} is no value of the target {target!r} of {where}"
            f"{did_you_mean(kind.positive, known)} Its values: {listed(known, 6)}."
        )
    others = [value for value in known if value != chosen]
    name = str if values.dtype.kind == "b" else lambda label: label
    return values == chosen, (name(others[0]) if len(others) == 1 else f"not {chosen}", name(chosen))


def _varying(names, X, drop_constant, where):
    """Drop or refuse constant columns; a `ValueError` for numbers that are not finite. X is dense or sparse."""
    if X.shape[1] == 0:
        return names, X
    lowest, highest, nan, infinite = _ends(X)
    missing, endless, same = (list(itertools.compress(names, of)) for of in (nan, infinite, lowest == highest))
    if missing:
        raise ValueError(f"{where} has missing values in {columns_text(missing)}; {FILL_IN}.")
    if endless:
        raise ValueError(f"{where} has infinite values in {columns_text(endless)}.")
    if not same:
        return names, X
    if not drop_constant:
        raise ValueError(
            f"{where} has the same value in every row of {columns_text(same)}; leave them out (drop_constant=True, "
            "--drop-constant)."
        )
    return list(itertools.compress(names, lowest != highest)), X[:, np.flatnonzero(lowest != highest)]


def _ends(X):
    """Of each column the smallest and the largest value, and whether there are missing and infinite ones."""
    from scipy import sparse

    if sparse.issparse(X):
        odd = (np.bincount(X.indices, is_odd(X.data), X.shape[1]) > 0 for is_odd in (np.isnan, np.isinf))
        return *(end.toarray().ravel() for end in (X.min(axis=0), X.max(axis=0))), *odd
    rows, parts = max(1, BLOCK // X.shape[1]), []
    for start in range(0, len(X), rows):  # it may be on the disk
        block = np.asarray(X[start : start + rows])
        nan, infinite = np.isnan(block).any(axis=0), np.isinf(block).any(axis=0)
        parts.append((block.min(axis=0), block.max(axis=0), nan, infinite))
    lowest, highest, nan, infinite = (np.array(part) for part in zip(*parts, strict=True))
    return lowest.min(axis=0), highest.max(axis=0), nan.any(axis=0), infinite.any(axis=0)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = ".") -> str:
    """End of a message: "; did you mean 'x'?" for the closest of `known`, ignoring case, or what stands else."""
    by_lower = {str(k).lower(): k for k in known}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1, cutoff=0.5)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else otherwise
