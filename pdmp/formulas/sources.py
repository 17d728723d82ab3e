"""Tables in parts, the files of a folder or the partitions of a Dask DataFrame, and where their parts are read.

A pass over a table is one call for each part, or for each range of rows, whose results are taken in order: in this
process, parts one after the other and ranges of coded rows on threads, or on the workers of a Dask cluster, where a
call that was lost with its worker is made again.
"""

from __future__ import annotations

import contextlib
import glob
import mmap
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import sleep
from typing import Any, NamedTuple

from pdmp.data.formats import layout
from pdmp.engine import requirements, run
from pdmp.engine.executors import LOST_WORKERS, LOST_WORKERS_BY_NAME, Segments, Watch, check_executor, workers_of
from pdmp.formulas.table import MISSING, check_repeated, import_pandas, is_parquet, not_utf8, one_line, unchanged
from pdmp.native.threads import each

LARGE_FILE = 2**28  #: bytes; single files of so many or more are read in batches
BATCH = 2**18  #: rows
CSV_BLOCK = 2**20  #: bytes of a CSV file that are read at a time; its columns have the types that the first ones show
ENDINGS = (".parquet", ".pq", ".parq")  #: of the files of a folder that are read


class Source(NamedTuple):
    """A table in parts."""

    parts: tuple  #: paths, or `dask.delayed` objects of pandas
    columns: list  #: names
    what: str  #: "the file", "the folder" or "the Dask DataFrame"
    given: Any
    index: tuple = ()  #: names of what numbers or names the rows, and is no column


def open_source(data: Any) -> Source | None:
    """The parts of what is read in batches: a folder, a glob, a large file or a Dask DataFrame; None for other data."""
    if hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        columns = [str(name) for name in data.columns]
        return Source(tuple(data.to_delayed()), columns, "the Dask DataFrame", None, (data.index.name,))
    paths = paths_of(data)
    if paths is None:
        return None
    what = "the file" if os.path.isfile(data) else "the folder"
    _, names, index = _open(paths[0], None)
    check_repeated(names)
    return Source(tuple(paths), names, what, data, tuple(index))


def paths_of(data: Any) -> list[str] | None:
    """The files that a path stands for, in sorted order; None for what is no folder, glob or large file."""
    if not isinstance(data, (str, os.PathLike)):
        return None
    if os.path.isfile(data):
        return [os.fspath(data)] if os.path.getsize(data) >= LARGE_FILE else None
    folder, name = os.path.isdir(data), os.fspath(data)
    if not folder and not glob.has_magic(name):
        return None
    found = [os.path.join(name, one) for one in os.listdir(name)] if folder else glob.glob(name)
    hidden = [path for path in found if os.path.basename(path)[0] not in "._"]
    nested = sorted(path for path in hidden if os.path.isdir(path))
    if nested:
        raise ValueError(f"`data`: {nested[0]!r} is a folder, and the files of one folder are read; give a glob.")
    paths = sorted(path for path in hidden if not folder or path.endswith(ENDINGS))
    if not paths:
        raise FileNotFoundError(f"there are no {'Parquet files in the folder' if folder else 'files'} {name!r}.")
    return paths


@contextlib.contextmanager
def all_unchanged(source: Source) -> Iterator[None]:
    """A context in which a table is read; a `ValueError` after it if one of its files has changed, come or gone."""
    if source.given is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        for path in source.parts:
            stack.enter_context(unchanged(path))
        yield
    if source.what != "the file" and tuple(paths_of(source.given) or ()) != source.parts:
        raise ValueError(f"`data`: files of {os.fspath(source.given)!r} came or went while it was read; read it again.")


def _open(path, names, types=None):
    """Tables of Arrow, batch by batch; names of all columns, and of what pandas wrote as the index of the rows.

    `types`: of some columns of CSV files.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("files that are read in batches need pyarrow: pip install 'pdmp[data]'.") from None
    try:
        if is_parquet(path):
            source = parquet.ParquetFile(path)
            schema = source.schema_arrow  # what is an index is none of the columns that `to_pandas` gives
            index = [name for name in (schema.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)]
            known = [name for name in schema.names if name not in index]
            return source.iter_batches(batch_size=BATCH, columns=names), known, index
        source = _open_csv(path, names, types)
        dates = [field.name for field in source.schema if pyarrow.types.is_temporal(field.type)]
        if dates:  # text, as pandas reads them
            source = _open_csv(path, names, dict(types or {}) | dict.fromkeys(dates, "string"))
        known = source.schema.names
    except UnicodeDecodeError:
        raise not_utf8(path) from None
    except (pyarrow.ArrowInvalid, pyarrow.ArrowKeyError, OSError) as error:
        raise ValueError(f"`data`: {str(path)!r} cannot be read: {one_line(error)}") from None
    for field in source.schema if names else ():
        if pyarrow.types.is_binary(field.type):  # what Arrow makes of text in another encoding
            raise not_utf8(path, field.name)
    return source, known, []


def _open_csv(path, names, types):
    import pyarrow
    from pyarrow import csv

    options = csv.ConvertOptions(
        include_columns=names or [],
        null_values=list(MISSING),
        strings_can_be_null=True,
        true_values=["true", "True", "TRUE"],  # else 1 and 0 are truth values among words
        false_values=["false", "False", "FALSE"],
        column_types={name: getattr(pyarrow, kind)() for name, kind in (types or {}).items()},
    )
    sep, encoding = layout(path)
    if sep == " ":
        raise ValueError(f"`data`: spaces separate the values of {str(path)!r}, a large file; separate them by commas.")
    reading = csv.ReadOptions(block_size=CSV_BLOCK, encoding=encoding)
    return csv.open_csv(path, reading, csv.ParseOptions(delimiter=sep), options)


class OtherType(ValueError):
    """A column of a CSV file does not have the type that its first rows show; `kind` is the one to try next."""

    def __init__(self, path: Any, name: str, kind: str) -> None:
        super().__init__(f"`data`: the column {name!r} of the file {str(path)!r} has values of several types.")
        self.path, self.name, self.kind = path, name, kind

    def __reduce__(self) -> tuple:
        return type(self), (self.path, self.name, self.kind)


def _other_type(path, stream, error):
    """What to raise for a value that is not of its column's type: `OtherType`, or why the file cannot be read."""
    found = re.match(r"In CSV column #(\d+):", str(error))
    name = _open(path, None)[1][int(found[1])] if found else None
    if name is None or name not in stream.schema.names:
        return ValueError(f"`data`: {str(path)!r} cannot be read: {one_line(error)}")
    kind = str(stream.schema.field(name).type)
    if kind == "string":
        return not_utf8(path, name)
    return OtherType(path, name, "float64" if kind.startswith(("int", "null")) else "string")


def kinds_of(part: Any, names: list[str], types: Mapping[str, str]) -> dict[str, str]:
    """What columns of a CSV file are, "string", "bool" or "number"; nothing of other parts, and of empty columns.

    `OtherType` for one with hexadecimal numbers: these are text, as pandas reads them, and Arrow makes numbers of them.
    """
    if not isinstance(part, (str, os.PathLike)):
        return {}
    source = _open(part, names, types)[0]
    if not hasattr(source, "schema"):  # a Parquet file says what it has
        return {}
    kinds = {field.name: str(field.type) for field in source.schema}
    whole = [name for name, kind in kinds.items() if "int" in kind]
    if whole and _may_be_hexadecimal(part):
        for batch in _open(part, whole, dict.fromkeys(whole, "string"))[0]:
            for name, column in batch.to_pandas().items():
                if column.str.contains("x", case=False, na=False).any():
                    raise OtherType(part, name, "string")
    return {name: kind if kind in ("string", "bool") else "number" for name, kind in kinds.items() if kind != "null"}


def _may_be_hexadecimal(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b"0x") >= 0 or text.find(b"0X") >= 0


def batches(part: Any, names: list[str], types: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Tables of pandas with these columns of a part.

    `types`: of columns of CSV files, "float64" or "string", where the first rows would say otherwise.
    """
    try:
        for table in _tables(part, names, types):
            table = table.reset_index(drop=True)
            for name in names:  # the categories of one batch need not be those of another
                if table[name].dtype.name == "category":
                    table[name] = table[name].astype(object)
            for pass_ in _SHOWN:
                pass_.add(len(table))
            if len(table):
                yield table
    except OSError as error:
        raise ValueError(f"`data`: {str(part)!r} cannot be read: {one_line(error)}") from None


def reordered(part: Any, names: list[str]) -> list[str]:
    """Columns of ordered categories in another order than that of the alphabet, which batches do not keep."""
    if not (isinstance(part, import_pandas().DataFrame) or isinstance(part, (str, os.PathLike)) and is_parquet(part)):
        return []
    table = next(_tables(part, names), None)
    kept = [] if table is None else [name for name in names if getattr(table[name].dtype, "ordered", False)]
    levels = {name: list(map(str, table[name].cat.categories)) for name in kept}
    return [name for name in kept if levels[name] != sorted(levels[name])]


def _tables(part, names, types=None):
    if isinstance(part, import_pandas().DataFrame):
        for first in range(0, len(part), BATCH):
            yield part.iloc[first : first + BATCH][names]
        return
    import pyarrow

    known = _open(part, None)[1]
    absent = [name for name in names if name not in known]
    if absent:
        raise ValueError(f"`data`: the file {str(part)!r} has no column {absent[0]!r}, which the first file has.")
    check_repeated(known, f"`data`: the file {str(part)!r}")
    stream, *_ = _open(part, names, {name: kind for name, kind in (types or {}).items() if name in names})
    try:
        for batch in stream:
            try:
                table = batch.to_pandas()
            except TypeError as error:  # of pandas, for its own dictionaries of Arrow
                raise ValueError(f"`data`: {str(part)!r} cannot be read: {one_line(error)}") from None
            yield table[names]
    except pyarrow.ArrowInvalid as error:
        raise _other_type(part, stream, error) from None


# ---------------------------------------------------------------------------------------------------------------
# Places


_SHOWN: list[Passes] = []  #: the pass of this process whose rows are counted as they are read


class Passes:
    """A bar for each pass over the rows; `progress` None shows them on a terminal and in a notebook."""

    def __init__(self, progress: bool | None = False) -> None:
        self._wanted, self._bar = run.wants_bar(progress), None

    @contextlib.contextmanager
    def over(self, what: str, rows: int | None = None) -> Iterator[None]:
        """A context in which rows are looked at, so many in all as far as that is known."""
        if self._wanted:
            self._bar = run.open_bar(total=rows, desc=what, unit=" rows", unit_scale=True, leave=False)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()
            self._bar = None

    def add(self, rows: int) -> None:
        """So many more rows were looked at."""
        if self._bar is not None:
            self._bar.update(rows)


class Here:
    """Passes in this process."""

    def __init__(self, passes: Passes | None = None) -> None:
        self.passes = passes or Passes()

    spread = 2**30  #: into how many tasks a pass over ranges of rows is divided at most: each block is one

    def map(self, function: Callable, common: Any, items: Iterable[tuple]) -> Iterator[Any]:
        """``function(common, *item)`` of each item, in order; `dask.delayed` objects are computed."""
        for item in items:
            _SHOWN.append(self.passes)
            try:
                found = function(common, *(a.compute(scheduler="synchronous") if _is_delayed(a) else a for a in item))
            finally:
                _SHOWN.pop()
            yield found

    def each(self, function: Callable, common: Any, items: Iterable[tuple]) -> Iterator[Any]:
        """The same of ranges of rows in files, on threads."""
        return each(lambda *item: function(common, *item), items)


class Workers:
    """Passes on the workers of a Dask cluster."""

    def __init__(self, client: Any, passes: Passes | None = None) -> None:
        self._client, self.passes, self._had = client, passes or Passes(), False

    @property
    def spread(self) -> int:
        """As for `Here`: one for each thread of the workers."""
        return sum(worker["nthreads"] for worker in self._workers().values())

    def _workers(self):
        """What is known of each; where all have died since the last pass, of those that start again."""
        workers, watch = workers_of(self._client), Watch(self._client)
        if not (workers or self._had):
            raise ValueError("`executor`: the Dask cluster has no workers.")
        self._had = True
        while not workers:
            sleep(0.1)
            watch.watch()
            with contextlib.suppress(OSError):  # the connection is lost for now
                workers = workers_of(self._client)
        return workers

    def map(self, function: Callable, common: Any, items: Iterable[tuple]) -> Iterator[Any]:
        """As for `Here`; a `RuntimeError` if a task has lost worker after worker, or for long all workers."""
        import cloudpickle

        # The scheduler keeps what made it, so that it survives the workers that have it. Functions and values of a
        # formula may be those of a script.
        required = requirements.requirements_of([function, common], tables=True)
        shared = self._client.submit(pickle.loads, cloudpickle.dumps((required, common)), pure=False)
        items, futures = list(items), []
        try:
            names = sorted(self._workers())
            for k, item in enumerate(items):
                # Neighbouring parts and rows on one worker, pass after pass: it has the pages of the files in memory.
                near = {"workers": [names[k * len(names) // len(items)]], "allow_other_workers": True}
                item = [self._client.compute(a, **near) if _is_delayed(a) else a for a in item]
                futures.append(self._client.submit(_run, function, shared, *item, pure=False, **near))
            for k, future in enumerate(futures):
                yield self._result(future)
                futures[k] = None  # a result is kept by the cluster as long as its future
        finally:
            self._client.cancel([future for future in [*futures, shared] if future is not None])

    each = map

    def _result(self, future):
        watch = Watch(self._client)
        try:
            while not future.done():
                with contextlib.suppress(TimeoutError):
                    future.result(timeout=1.0)
                watch.watch()
            return future.result()
        except Exception as error:
            if isinstance(error, LOST_WORKERS) or type(error).__name__ in LOST_WORKERS_BY_NAME:
                said = " ".join(str(error).split())
                raise RuntimeError(
                    f"`executor`: a pass over the data has lost worker after worker, give them more memory: {said}"
                ) from None
            raise


def _run(function, shared, *item):
    """In a worker: one call of a pass."""
    required, common = shared
    requirements.check(required, [function, common])
    try:
        return function(common, *item)
    except FileNotFoundError as error:
        # A `ValueError` would be taken for that of a process whose bounds do not apply, and another be chosen.
        raise FileNotFoundError(
            f"`folder`: a worker cannot open {error.filename!r}; all workers must share the file system that it is on."
        ) from None


def _is_delayed(value):
    return hasattr(value, "__dask_graph__") and hasattr(value, "compute")


def client_of(executor: Any) -> Any:
    """The Dask client that an argument `executor` is, or None."""
    client = check_executor(executor)
    client = client.executor if isinstance(client, Segments) else client
    return client if hasattr(client, "scatter") else None
