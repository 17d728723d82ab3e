"""Tables in parts, coded batch by batch into memory-mapped files, so that no table has to fit in memory.

The parts, see `pdmp.formulas.sources`, are read twice. The first pass counts rows and missing values, and finds the
levels of categories and groups, of which it keeps one row each; these rows and the first ones code the formula. The
second pass codes every batch in the same way, into one file. A third pass, over that file, finds means and products
of columns; a fourth one standardises. Rows are in the order of the parts, and rows with a missing value in a column
that is used are left out.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
import weakref
from collections import Counter
from typing import Any

import numpy as np

from pdmp.data.formats import is_number
from pdmp.engine import requirements
from pdmp.formulas import sources
from pdmp.formulas.design import (
    CALLED_AGAIN,
    Described,
    Design,
    check_columns,
    check_response,
    describe,
    plain_response,
)
from pdmp.formulas.sources import Here, OtherType, Passes, Source, Workers, all_unchanged, batches, kinds_of
from pdmp.formulas.table import (
    check_names,
    check_roles,
    import_pandas,
    left_out,
    linear_offset,
    numeric_categories,
    weigh,
    weights_of,
    with_truth_values,
)
from pdmp.formulas.totals import Totals
from pdmp.models.regressions.blocks import Coded, Files, tasks

FIRST_ROWS = 1_000  #: that are among those by which the formula is coded
#: Functions of a formula that have a memory of the whole column, and those that make categories of numbers.
WHOLE_COLUMN = ("center", "scale", "standardize", "poly", "bs", "cc", "cr", "tp")
CATEGORIES = ("C", "S", "T", "B", "binary")
IDENTIFIER, ATTRIBUTE = re.compile(r"[^\W\d]\w*"), re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


def read_in_batches(
    source: Source,
    described: Described,
    kind: str,
    roles: dict[str, str | None],
    environment: Any,
    client: Any = None,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | None = False,
) -> tuple[Design, Rows, Totals, list[str]]:
    """Code a formula over a table in parts: the design, whose `X` is a view of the file of coded rows, and notes.

    `kind` is of the response, `roles` the columns "offset", "exposure" and "weights". On the workers of `client` all
    passes run, and all of them must share `folder`, that of the coded rows; `progress` shows a bar for each pass.
    """
    if client is not None and folder is None:
        raise ValueError("`folder` must name a folder that all workers of `executor` share, for the coded rows.")
    if folder is not None and not os.path.isdir(folder):
        raise ValueError(f"`folder`: there is no folder {os.fspath(folder)!r}.")
    files = Files(tempfile.mkdtemp(prefix="pdmp-", dir=folder))
    weakref.finalize(files, shutil.rmtree, files.folder, ignore_errors=True)  # it goes when the model does
    passes = Passes(progress)
    place = Here(passes) if client is None else Workers(client, passes)
    with all_unchanged(source):
        return _read(source, described, kind, roles, environment, files, place)


def _read(source, described, kind, roles, environment, files, place):
    for name in WHOLE_COLUMN:
        if re.search(rf"\b{name}\s*\(", described.formula):
            raise ValueError(
                f"`formula`: {name}(...) needs the whole column, and {source.what} is read in batches. Name the column "
                "itself: columns are standardised inside."
            )
    check_names(described.names, source, "`formula`")
    check_roles(roles, source)
    used = [c for c in source.columns if c in described.names | {name for name in roles.values() if name is not None}]
    for name in sorted(described.plain() & set().union(*map(numeric_categories, source.parts))):
        raise ValueError(
            f"`formula`: the column {name!r} is a category of numbers in {source.what}, and would be read as numbers: "
            f"write C({name}) for a category."
        )
    order = [name for name in sources.reordered(source.parts[0], used) if name in described.names]
    groupings = [
        [name for component in term.factor.components for name in sorted(component.var_names)]
        for term in described.model.group_terms
    ]
    response = plain_response(described.model)
    keys = [
        [name]
        for name in used
        if re.search(rf"\b({'|'.join(CATEGORIES)})\s*\([^)]*\b{re.escape(name)}\b", described.formula)
    ]
    keys += groupings + ([[response]] if kind == "label" and response else [])

    with place.passes.over("reading"):
        some, total, kept, idle, missing, types, aside = _scan(source, used, keys, place, roles["weights"])
    n = sum(kept)
    notes = left_out(total, idle, total - idle - n, [name for name in used if missing[name]])
    check_columns(described, some, environment, _stacked([some, *aside]))
    recipe = Recipe(described, some, environment, kind, roles, used, response is not None, types)
    design, y_of, said = recipe.coding
    _check_by_rows(design, y_of, some)
    notes += [said] if said else []
    notes += [f"levels of {name} are in the order of the alphabet, not in that of {source.what}" for name in order]

    rows = Rows(files, place, n, len(design.columns), len(design.groups))
    files.create("coded", (n, rows.width))
    first = np.concatenate([[0], np.cumsum(kept)])
    items = [(part, int(first[k]), kept[k]) for k, part in enumerate(source.parts)]
    with place.passes.over("coding", total):
        sizes, responses = zip(*place.map(_code, (recipe, files, rows.width), items), strict=True)
    if kind != "label":
        check_response(np.array([y for some in responses for y in some][:n]), design.response, kind)
    totals = rows.totals(design, [sum(parts) for parts in zip(*sizes, strict=True)])
    design.X = files.mapped("coded")[:, rows.fixed]
    design.groups = [g._replace(level=np.zeros(0, np.int64), value=np.zeros(0)) for g in design.groups]
    return design, rows, totals, [f"{source.what} was read in batches of {sources.BATCH:,} rows", *notes]


# ---------------------------------------------------------------------------------------------------------------
# The first pass


class Chooser:
    """Chooses rows of a table that comes in batches: the first ones, and one of each level of a key."""

    def __init__(self, keys):
        self.keys, self.seen, self.rows = keys, {}, 0

    def choose(self, table, rows=None):
        """The chosen rows of the next batch, which stands for so many rows."""
        pandas = import_pandas()
        categories = [[name] for name in table.columns if not pandas.api.types.is_numeric_dtype(table[name])]
        chosen = np.zeros(len(table), bool)
        chosen[: max(FIRST_ROWS - self.rows, 0)] = True
        for names in map(list, dict.fromkeys(map(tuple, [*self.keys, *categories]))):
            known = self.seen.setdefault(tuple(names), set())
            distinct = table[names].reset_index(drop=True).drop_duplicates()
            for place, label in zip(distinct.index, distinct.itertuples(index=False, name=None), strict=True):
                if label not in known:
                    known.add(label)
                    chosen[place] = True
        self.rows += len(table) if rows is None else rows
        return table[chosen]


def _scan(source, used, keys, place, weights, types=None):
    """The first rows and one of each level; how many there are, complete by part, of weight 0; missing by column.

    And the types of columns of CSV files, where the first rows would say otherwise, and rows that are left out and
    have words in columns of text. `types`: those known already.
    """
    types = dict(types or {})
    chooser, some, total, kept, idle, missing, aside = Chooser(keys), [], 0, [], 0, Counter(), []
    kinds = {name: set() for name in used}
    items, common = [(part,) for part in source.parts], (used, keys, weights, dict(types))
    for table, rows, complete, unused, absent, words, other, held in place.map(_scan_part, common, items):
        total += rows
        aside += words
        idle += unused
        kept.append(complete)
        missing += absent
        for name, kind in other.items():
            types[name] = "string" if types.get(name) == "string" else kind
        for name, kind in held.items():
            kinds[name].add(kind)
        if table is not None:
            some.append(chooser.choose(table, complete))
    mixed = [name for name in used if len(kinds[name]) > 1]
    if mixed:  # numbers and truth values of one file are text, as a column of one file with them and text is
        return _scan(source, used, keys, place, weights, types | dict.fromkeys(mixed, "string"))
    if total == 0:
        raise ValueError("`data` has no rows.")
    return _stacked(some), total, kept, idle, missing, types, aside


def _scan_part(common, part):
    used, keys, weights, types = common
    while True:  # from the beginning, when a value has another type than the first rows
        try:
            return (*_scan_rows(used, keys, weights, types, part), types, kinds_of(part, used, types))
        except OtherType as found:
            types = types | {found.name: found.kind}


def _scan_rows(used, keys, weights, types, part):
    chooser, some, total, idle, missing, aside = Chooser(keys), [], 0, 0, Counter(), {}
    for table in batches(part, used, types=types):
        out = weigh(table, weights)
        total, idle = total + len(table), idle + int(out.sum())
        missing += Counter(table[~out].isna().sum().to_dict())
        some.append(chooser.choose(_complete(table, weights)))
        for name in set(used) - set(aside):
            rows = _with_a_word(table[_left_out(table, weights)], name)
            if len(rows):
                aside[name] = rows
    return _stacked(some), total, chooser.rows, idle, missing, list(aside.values())


def _with_a_word(table, name):
    """The first row whose value in this column is text, and no number; none of a column of numbers."""
    if import_pandas().api.types.is_numeric_dtype(table[name]):
        return table[:0]
    words = [value for value in table[name].dropna().unique() if isinstance(value, str) and not is_number(value)]
    return table[table[name].isin(words[:1]).to_numpy()][:1]


def _left_out(table, weights):
    return weigh(table, weights) | table.isna().any(axis=1).to_numpy()


def _complete(table, weights):
    """The rows that are used."""
    return with_truth_values(table[~_left_out(table, weights)])


def _stacked(tables):
    """Tables as one, or None; those without rows, of which a column may have no type, do not change that of others."""
    tables = [table for table in tables if len(table)] or tables[:1]
    return import_pandas().concat(tables, ignore_index=True) if tables else None


# ---------------------------------------------------------------------------------------------------------------
# The second pass


class Recipe:
    """How rows are coded: the formula, and the rows that show all levels. Workers code by the same ones."""

    def __init__(self, described, some, environment, kind, roles, used, plain, types, sent=None):
        self.described, self.some, self.environment = described, some, environment
        self.kind, self.roles, self.used, self.plain, self.types = kind, roles, used, plain, types
        self.sent = sent  #: in a worker: the coded rows of the process that sent it

    def __reduce__(self):
        # Of where the formula was written, what it names: the rest may be anything.
        formula, space = self.described.formula, self.environment.namespace
        named = {}
        for name in IDENTIFIER.findall(formula):
            with contextlib.suppress(KeyError):
                named[name] = space[name]
        # What it reads of modules, as a function, so that a worker can tell whether it has the same there.
        read = [text for text in ATTRIBUTE.findall(formula) if text.partition(".")[0] in named]
        reading = eval(f"lambda: [{', '.join(read)}]", {"__name__": "formula", **named})
        own = self.kind, self.roles, self.used, self.plain, self.types
        return _recipe, (formula, self.some, named, reading, *own, None if self.some is None else self.coded)

    @functools.cached_property
    def coded(self):
        """Some rows, coded: numbers by which it is seen whether functions have the same values elsewhere."""
        design, y_of, _ = self.coding
        rows = self.some.iloc[np.unique(np.linspace(0, len(self.some) - 1, CALLED_AGAIN).astype(int))]
        X, offset, groups = design.new(rows)
        columns = [part for g in groups for part in (g.level, g.value)]
        return np.column_stack([X, offset + np.zeros(len(rows)), y_of(rows), *columns])

    def check(self):
        """A `SamplingError` where functions of the formula have other values in this worker, as of its environment."""
        sent, alike = self.sent, self.sent is None
        if not alike and self.coded.shape == sent.shape:
            alike = np.allclose(self.coded, sent, rtol=1e-9, atol=0.0, equal_nan=True)
        if not alike:
            requirements.refuse(
                f"computes other columns of {self.described.formula!r} with the same functions",
                "give it the same files, working directory and environment",
            )
        self.sent = None  # once is enough

    @functools.cached_property
    def coding(self):
        """The design; a function of a table that gives its responses; a sentence on how they are coded, or ""."""
        design = Design(self.described, self.some, self.environment)
        environment = self.environment
        if self.kind != "label":
            return design, lambda table: design.evaluate_response(table, environment), ""
        _, said = design.read_response(self.some, environment, self.kind)  # that there are two labels
        if not self.plain:
            return design, lambda table: design.evaluate_response(table, environment), said
        name = plain_response(design.model)
        highest = np.unique(np.asarray(self.some[name]))[-1]
        return design, lambda table: (np.asarray(table[name]) == highest).astype(float), said


def _recipe(formula, some, named, reading, *rest):
    from formulae.environment import Environment

    return Recipe(describe(formula), some, Environment([named]), *rest)


def _check_by_rows(design, y_of, table):
    """Refuse functions of whole columns, such as np.mean: the columns of some rows depend on the others then."""
    if design.whole_column is not None or not design.is_by_rows(y_of(table), y_of, table):
        raise ValueError(
            f"`formula` has a function of whole columns, {design.whole_column or design.response!r}, and the data are "
            "read in batches: compute it beforehand."
        )


def _code(common, part, first, kept):
    """Code a part into the rows from `first` on: how many rows each group of each column has; responses to check."""
    recipe, files, width = common
    recipe.check()
    design, y_of, _ = recipe.coding
    roles, place, wrong, low, high = recipe.roles, first, [], np.inf, -np.inf
    sizes = [np.zeros(len(g.levels), np.int64) for g in design.groups]
    for table in batches(part, recipe.used, types=recipe.types):
        table = _complete(table, roles["weights"])
        if not len(table):
            continue
        X, offset, groups = design.new(table)
        if not recipe.plain:
            _check_by_rows(design, y_of, table)
        coded = np.zeros((len(table), width))
        p = X.shape[1]
        coded[:, :p] = X
        coded[:, p] = y = y_of(table)
        coded[:, p + 1] = offset + linear_offset(table, roles["offset"], roles["exposure"])
        weight = weights_of(table, roles)
        coded[:, p + 2] = 1.0 if weight is None else weight
        for k, g in enumerate(groups):
            coded[:, p + 3 + 2 * k], coded[:, p + 4 + 2 * k] = g.level, g.value
            sizes[k] += np.bincount(g.level, minlength=len(g.levels))
        if place + len(table) - first <= kept:
            files.write("coded", place, coded)
        place += len(table)
        wrong = wrong or list(y[(y < 0.0) | (y != np.floor(y))][:1])  # for counts
        low, high = min(low, y.min()), max(high, y.max())
    if place != first + kept:
        raise ValueError("`data` has changed while it was read: another number of rows in the second pass.")
    return sizes, [*wrong, low, high] if kept else []


# ---------------------------------------------------------------------------------------------------------------
# The third and the fourth pass


class Rows:
    """Coded rows in a file: fixed columns, response, offset, weight, and level and value by group column."""

    def __init__(self, files, place, n, p, groups):
        self.files, self.place, self.n, self.p, self.groups = files, place, n, p, groups
        self.width = p + 3 + 2 * groups
        self.fixed = slice(0, p)

    def _map(self, function, common):
        items = tasks(self.n, self.width, self.place.spread)
        with self.place.passes.over(PASSES.get(function, "looking"), self.n):
            for (ranges,), results in zip(
                items, self.place.each(_each, (function, self.files, common), items), strict=True
            ):
                self.place.passes.add(sum(stop - first for first, stop in ranges))
                yield from results

    def column(self, name):
        """Column "y", "offset" or "weight" of all rows, a view of the file."""
        return self.files.mapped("coded")[:, self.p + ("y", "offset", "weight").index(name)]

    @np.errstate(over="ignore", invalid="ignore")
    def totals(self, design, sizes):
        """Means, spreads and products of the columns: of two blocks by those of each (Chan, Golub & LeVeque, 1983)."""
        n, mean, square, low, high, exposure = 0.0, 0.0, 0.0, np.inf, -np.inf, 0.0  # n: the sum of weights
        products, size = 0.0, np.zeros(self.p)  # of the columns over their sizes
        for m, other, spread, least, most, gram, top, risk in self._map(_moments, self.p):
            change = other - mean
            square = square + spread + change**2 * (n * m / (n + m))
            mean = mean + change * (m / (n + m))
            old, size = size, np.maximum(size, top)
            known = np.where(size > 0.0, size, 1.0)
            shift = change[: self.p] / known
            products = products * np.outer(old / known, old / known) + gram * np.outer(top / known, top / known)
            products += np.outer(shift, shift) * (n * m / (n + m))
            n, exposure = n + m, exposure + risk
            low, high = np.minimum(low, least), np.maximum(high, most)
        values, each = self.p + 4 + 2 * np.arange(self.groups), self.n / n
        sd, largest = np.sqrt(square / n), np.maximum(np.abs(low), np.abs(high))
        if design.intercept is None:  # about 0
            about = mean[: self.p] / np.where(size > 0.0, size, 1.0)
            products = products + n * np.outer(about, about)
        p = self.p
        return Totals(
            rows=self.n,
            y_mean=float(mean[p]),
            y_sum=float(mean[p] * self.n),
            y_sd=float(sd[p]),
            y_largest=float(largest[p]),
            excess=float(mean[p] - mean[p + 1]),
            exposure=float(exposure * each),
            any_offset=bool(largest[p + 1] > 0.0),
            weights=(float(low[p + 2]), float(high[p + 2])),
            mean=mean[:p],
            sd=sd[:p],
            largest=largest[:p],
            products=products * each,
            value_sd=sd[values],
            value_largest=largest[values],
            value_square=sd[values] ** 2 + mean[values] ** 2,
            sizes=list(sizes),
        )

    def are_fixed(self, means):
        """Whether each group column after the first has the values of its fixed column, whose place is in `means`."""
        return len(means) == 1 or all(list(self._map(_are_fixed, (self.p, means[1:]))))

    def standardised(self, design, totals, likelihood, in_units, weighted, means=None):
        """The rows as a model keeps them; the file of coded rows goes.

        `means`: fixed columns that are to be zeros, as `GroupIntercepts` has them, one for each group column, whose
        values are those of its fixed column.
        """
        centre, scale = np.zeros(self.p), np.where(totals.sd > 1e-12 * totals.largest, totals.sd, totals.largest)
        scale[scale == 0.0] = 1.0
        if design.intercept is not None:
            centre = totals.mean.copy()
            centre[design.intercept], scale[design.intercept] = 0.0, 1.0
        response_centre = totals.y_mean if in_units and design.intercept is not None else 0.0
        response_scale = 1.0
        if in_units:
            response_scale = totals.y_sd if totals.y_sd > 1e-12 * totals.y_largest else (totals.y_largest or 1.0)
        group_scale = np.sqrt(totals.value_square)
        group_scale[group_scale == 0.0] = 1.0
        files, n, levels = self.files, self.n, np.cumsum([0, *(len(g.levels) for g in design.groups)])
        files.create("X", (n, self.p))
        for name, wanted in (("y", True), ("target", True), ("offset", totals.any_offset), ("weight", weighted)):
            if wanted:
                files.create(name, (n,))
        if self.groups:
            files.create("level", (n, self.groups), np.int32)
            files.create("value", (n, self.groups))
        first = self.p + self.groups + levels[:-1]
        common = centre, scale, response_centre, response_scale, group_scale, first, likelihood, means
        for _ in self._map(_standardise, common):
            pass
        design.X = np.zeros((0, self.p))
        files.remove("coded")
        return Coded(files, n, centre, scale, response_centre, response_scale, group_scale, self.place)


def _each(common, where):
    function, files, rest = common
    return [function(files.read("coded", first, stop), files, first, rest) for first, stop in where]


def _moments(rows, files, first, p):
    """Of a block: weights, means, sums of squares about them, smallest, largest; of fixed columns products; Σ e^offset.

    The products are of the columns about their means over their sizes, max |x|, which follow.
    """
    weight = rows[:, p + 2 : p + 3]
    low, high = rows.min(axis=0), rows.max(axis=0)
    top = np.maximum(np.abs(low), np.abs(high))[:p]
    with np.errstate(over="ignore", invalid="ignore"):  # columns that are too large are refused afterwards
        mean = (weight * rows).sum(axis=0) / weight.sum()
        part = (rows[:, :p] - mean[:p]) / np.where(top > 0.0, top, 1.0)
        products = np.einsum("ij,ik->jk", weight * part, part)  # no BLAS, whose sums depend on its threads
        squares = (weight * (rows - mean) ** 2).sum(axis=0)
        exposure = float(weight[:, 0] @ np.exp(rows[:, p + 1]))
    return float(weight.sum()), mean, squares, low, high, products, top, exposure


def _are_fixed(rows, files, first, common):
    p, columns = common
    return np.array_equal(rows[:, p + 6 :: 2], rows[:, columns])


def _standardise(rows, files, first, common):
    centre, scale, response_centre, response_scale, group_scale, place, likelihood, means = common
    p = len(centre)
    X, value = (rows[:, :p] - centre) / scale, rows[:, p + 4 :: 2] / group_scale
    if means is not None:
        value[:, 1:] = X[:, means[1:]]
        X[:, means] = 0.0
    y = np.ascontiguousarray(rows[:, p])
    files.write("X", first, X)
    files.write("y", first, y)
    files.write("target", first, (likelihood.stored(y) - response_centre) / response_scale)
    if "offset" in files:
        files.write("offset", first, rows[:, p + 1] / response_scale)
    if "weight" in files:
        files.write("weight", first, rows[:, p + 2])
    if "level" in files:
        files.write("level", first, rows[:, p + 3 :: 2] + place)
        files.write("value", first, value)


PASSES = {_moments: "means", _standardise: "standardising"}  #: what bars of passes over coded rows are called
