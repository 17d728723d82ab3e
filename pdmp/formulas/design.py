"""Formulas and tables as matrices: formulae codes the columns; groups are numbered, and never become a dense matrix."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import io
import itertools
import logging
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pdmp.data.formats import is_number, listed
from pdmp.data.memory import in_words, machine_memory
from pdmp.data.tables import MOST_NUMBERS, SLIPS
from pdmp.errors import warn
from pdmp.formulas.kept import Kept
from pdmp.formulas.smooths import KINDS, Said, Warp, smooth_of, taken_out
from pdmp.formulas.table import check_names, complete_rows, import_formulae, import_pandas, numbers, places, plain
from pdmp.formulas.words import FUNCTIONS, QUOTED, bars, bracketed, plainly
from pdmp.models.families import RANGES
from pdmp.models.regressions.design import Columns
from pdmp.models.regressions.mixed import GroupColumn

LARGE = 2**28  #: bytes of the fixed columns from which on they are not copied, where that can be
MANY_LEVELS = 100  #: of a category, from which on it is looked whether its columns have room
HIGHEST = 100  #: powers of sums of terms, and degrees of polynomials
DUMMIES = ("C", "S", "T")  #: functions of formulae that make a column of each level
#: What a column may hold that is neither a number nor a category, by what pandas calls it, and how to make it a number.
AS_FLOAT = "{table} = {table}.astype(float)"
AS_DAYS = "make it a number, such as (pandas.to_datetime({table}) - pandas.Timestamp('2020-01-01')).dt.days"
AS_SECONDS = "make it a number, {table} = {table} / pandas.Timedelta('1D')"
AS_TEXT = "make it one, {table} = {table}.astype('string') or pandas.to_numeric({table})"
AS_REAL = "take np.real, np.imag or np.abs of it"
HELD = {
    **dict.fromkeys(("date", "datetime", "datetime64", "period"), ("dates", AS_DAYS)),
    **dict.fromkeys(("timedelta", "timedelta64"), ("lengths of time", AS_SECONDS)),
    **dict.fromkeys(("decimal", "integer", "floating", "mixed-integer-float"), ("numbers as objects", AS_FLOAT)),
    **dict.fromkeys(("mixed-integer", "mixed"), ("values of several types", AS_TEXT)),
    **dict.fromkeys(("time", "bytes", "interval"), ("what is neither a number nor text", AS_TEXT)),
    "complex": ("complex numbers", AS_REAL),
}
ARITHMETIC = ("+", "-", "*", "/", "**")
LOGICAL = (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)  #: of truth values
#: Functions of NumPy that a formula of the command may call besides `numpy.ufunc`; others read and write files.
HARMLESS = (
    *("where", "clip", "round", "around", "nan_to_num", "interp", "digitize", "searchsorted", "isin", "sinc", "real"),
    *("mean", "median", "std", "var", "min", "max", "sum", "prod", "quantile", "percentile", "cumsum", "cumprod"),
)
TRUTH, NUMBERS, LABELS = "truth values", "numbers", "text or categories"  #: what a column holds
CALLED_AGAIN = 64  #: rows of a fit in which functions of the formula must have their values when it predicts
LOOKED_AT = 20  #: columns of a term, at most, that are computed again of some rows
ROWS_OF_A_PART = 100_000  #: of a large table, of which its terms are computed again


class Described(NamedTuple):
    """A formula as formulae understood it; the columns it needs."""

    formula: str
    model: Any
    names: frozenset
    fixed: frozenset  #: terms that are columns of the table as they are
    #: Of a term of effects and its grouping, the number of the bar that they stand before; and of those that correlate,
    #: or its identifier.
    brackets: Mapping[tuple[str, str], int]
    correlated: Mapping[tuple[str, str], int | str]
    smooths: tuple[Said, ...] = ()

    def correlates(self) -> bool:
        """Whether effects of two terms are correlated; those of columns of one category may be besides."""
        sets = [(bar, grouping) for (_, grouping), bar in self.correlated.items()]
        return len(set(sets)) < len(sets)

    def beyond(self) -> list[str]:
        """Terms that only regressions as sums of terms have."""
        members = [factor.name for factor in self.factors if any(call.callee == "mm" for call in _calls(factor))]
        return [*(one.name for one in self.smooths), *members]

    @property
    def columns(self) -> list:
        """Terms that columns are of: the fixed ones, and those of effects of groups."""
        return [*self.model.common_terms, *(term.expr for term in self.model.group_terms)]

    @property
    def factors(self) -> list:
        """Terms that groups are named by."""
        return [term.factor for term in self.model.group_terms]

    def calls(self) -> list:
        """All functions that are called, those inside of others too, and what they take."""
        return _with_arguments(itertools.chain(*map(_calls, [self.model.response.term, *self.columns, *self.factors])))

    def plain(self, of_groups: bool = False) -> set[str]:
        """Columns that are used as they are, not as arguments of functions only; those of fixed columns, or groups."""
        terms = self.factors if of_groups else [self.model.response.term, *self.columns]
        return {part.name for term in terms for part in _parts(term) if not hasattr(part, "call")} & self.names


class OtherRows(ValueError):
    """A function of a formula returned values of other rows than those of the table, or in another order."""


class Label(str):
    """Name of a column, in the formula, whose values are labels there: of a category or a grouping."""


class FloatColumns:
    """A table as formulae computes with it: numbers are float64, as those of fewer bits, and all integers, overflow."""

    def __init__(self, table: Any) -> None:
        self.table, self.shape, self.index = table, table.shape, table.index

    def __getitem__(self, name: str) -> Any:
        column = self.table[name]
        if not isinstance(name, Label):
            return _floats(column)
        if column.dtype.kind == "f" and len(column) and np.abs(column.to_numpy(dtype=float)).max() >= 2.0**53:
            if np.isinf(column.to_numpy(dtype=float)).any():
                raise ValueError(f"the column {name!r} of `data` has labels that are infinite: leave those rows out.")
            raise ValueError(
                f"the column {name!r} of `data` has labels above 2^53 as floats, which merge, as whole numbers with "
                "missing ones are read: leave those rows out before, or give it as text."
            )
        is_half = column.dtype.kind == "f" and getattr(column.dtype, "itemsize", 8) == 2
        return _converted(column, np.float32) if is_half else column  # pandas has no such labels


def _kind(values):
    """The letter by which NumPy calls a type, "O" of what has none."""
    return getattr(getattr(values, "dtype", None), "kind", "O")


def _floats(values):
    """Numbers of a column as float64; anything else as it is."""
    dtype = getattr(values, "dtype", None)
    if dtype is None or dtype == np.float64 or dtype.kind == "c":
        return values
    is_number = dtype.kind == "b" or import_pandas().api.types.is_numeric_dtype(dtype)
    return _converted(values, float) if is_number else values


def _whole(values):
    """Whole numbers of few bits or without sign, and truth values, as int64: 1, not 1.0, where they are labels."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "ordered", False) and hasattr(values, "cat"):
        return values.cat.remove_unused_categories()  # which formulae refuses, also of some rows of a table
    is_small = dtype is not None and dtype.kind in "biu" and getattr(dtype, "itemsize", 8) < 8
    # Of uint64 a function of the user's would compute 2^64 - 1 for 1 - 2.
    is_unsigned = dtype is not None and dtype.kind == "u" and (len(values) == 0 or int(values.max()) < 2**63)
    return _converted(values, np.int64) if is_small or is_unsigned else values


def _as_integers(part, values, table):
    """Results of arithmetic of integers, computed as floats, as the labels 1 or 2, not 1.0, if they are whole."""
    values, names = np.asarray(values), [one.name for one in _with_arguments([part]) if hasattr(one, "name")]
    are_whole = all(table[name].dtype.kind in "biu" for name in names)
    is_exact = are_whole and values.dtype.kind == "f" and bool(np.all(np.abs(values) < 2.0**53))
    return values.astype(np.int64) if is_exact and np.array_equal(values, np.floor(values)) else values


def _converted(values, dtype):
    pandas = import_pandas()
    if isinstance(values, pandas.Series):
        return pandas.Series(values.to_numpy(dtype=dtype), index=values.index, name=values.name)
    return values.astype(dtype)


def _prepare(part, of_labels=False, taker=None):
    """Have a part of a term compute with floats, but for labels: below C(...), S(...) or T(...), and in groupings.

    What is computed there, such as the sides of C(x - z > 0), is computed with floats as well.

    `taker`: the function or the operator that takes its values; of a whole function of a term None.
    """
    of_labels = of_labels or getattr(part, "callee", None) in DUMMIES
    if of_labels and hasattr(part, "name"):
        part.name = Label(part.name)
    part.eval = functools.partial(_evaluated, part, of_labels, taker)
    for one in _arguments(part):
        _prepare(one, of_labels, part)


def _evaluated(part, of_labels, taker, table, environment):
    """The values of a part of a term for its taker: as floats, or labels of 64 bits, whatever a function returned.

    Truth values stay what they are unless they are computed with: a function may choose rows by them.
    """
    values, name, pandas = type(part).eval(part, table, environment), getattr(part, "callee", part), import_pandas()
    if isinstance(values, (pandas.Series, pandas.DataFrame)) and not values.index.equals(table.index):
        raise OtherRows(
            f"{name}(...) returns a pandas {type(values).__name__} whose index is not that of "
            "its columns, so that values may belong to other rows: keep the index, or return `.to_numpy()`"
        )
    if np.ma.is_masked(values):
        raise ValueError(f"{name}(...) returns masked entries: leave these rows of the table out")
    _check_truth(part, values, taker, environment)
    if taker is None or of_labels:
        _check_rows(name, values, len(table.index), of_labels)
    if taker is None and _kind(values) == "c":
        raise ValueError(f"{name}(...) returns complex numbers: {AS_REAL}")
    computes, of_bits = taker is None and not of_labels, False
    if of_labels and _is_arithmetic(part) and not _is_arithmetic(taker):
        values = _as_integers(part, values, table)
    if hasattr(taker, "symbol"):
        computes = _is_arithmetic(taker)
        of_labels = of_labels and not computes
    elif taker is not None:
        computes, of_bits = _computes(taker.callee, environment)
    if _kind(values) == "b" and not computes:
        return values
    return _whole(values) if of_labels or of_bits else _floats(values)


def _is_arithmetic(part):
    return getattr(part, "symbol", None) in ARITHMETIC


def _check_rows(name, values, n, of_labels):
    """Refuse a column of another length, and labels that are missing, which would be those of the last category."""
    shape = np.shape(values) if hasattr(values, "dtype") else ()
    if shape and shape[0] != n:
        raise ValueError(f"{name}(...) returns {shape[0]:,} values for {n:,} rows")
    if shape and (of_labels or values.dtype.kind not in "fiubc"):
        missing = int(np.sum(import_pandas().isna(values)))
        if missing:
            raise ValueError(f"{name}(...) returns {missing:,} missing values: leave these rows of the table out")


def _check_truth(part, values, taker, environment):
    """Refuse text where a function of NumPy chooses rows by truth values: "no" is as true as "yes"."""
    from formulae.terms.call_resolver import get_function_from_module

    if getattr(taker, "callee", None) is None or _kind(values) in "biufc":
        return
    function = get_function_from_module(taker.callee, environment)
    chooses = (function is np.where and part is taker.args[0]) or function in LOGICAL
    if chooses and any(isinstance(value, str) for value in np.atleast_1d(values)):
        name = getattr(part, "name", getattr(part, "callee", "its argument"))
        raise ValueError(
            f"{taker.callee}(...) takes {name} for truth values, and text is always true: compare it, "
            f"as in {taker.callee}({name} == 'yes', …)"
        )


def _computes(name, environment):
    """Whether a function is one of NumPy's, row by row, that computes with floats; whether one that has no floats."""
    from formulae.terms.call_resolver import get_function_from_module

    function = get_function_from_module(name, environment)
    if not isinstance(function, np.ufunc):
        return False, False
    of_floats = any(set(types[: function.nin]) <= set("efdg") for types in function.types)
    return of_floats, not of_floats


def check_columns(described: Described, table: Any, environment: Any, whole: Any = None) -> None:
    """Refuse columns of the formula that hold neither numbers nor categories, and more levels than memory has room for.

    Of `whole`, the table with the rows that are left out, text is looked for among numbers: a line of totals makes a
    category of its columns, though it is left out itself.
    """
    pandas = import_pandas()
    plain, groups = described.plain(), described.plain(of_groups=True)
    parts = [part for term in described.columns for part in _parts(term) if hasattr(part, "call")]
    computed = set().union(*(part.var_names for part in parts if part.call.callee not in DUMMIES))
    for name in sorted(described.names):
        column = table[name]
        if column.dtype.kind in "biuf" and "decimal" not in str(column.dtype):
            if column.dtype.kind in "iu" and name in plain | computed:
                _check_whole(name, column)
            continue
        held = pandas.api.types.infer_dtype(column, skipna=True)
        if isinstance(column.dtype, pandas.CategoricalDtype):
            continue
        if held == "string":
            _check_written_alike(column.dropna().unique(), f"the column {name!r}")
        if held == "string" and name in plain:
            _check_text(name, column if whole is None else whole[name])
        if held not in HELD:
            continue
        refused = held == "complex" or not all(isinstance(value, Hashable) for value in column)  # no function takes it
        if name not in plain | groups and not refused:
            continue
        said, cure = HELD[held]
        if name not in plain and held != "complex":
            cure = "{table} = {table}.astype('string')"  # of which missing values stay missing
        types = ", ".join(sorted({type(value).__name__ for value in column.iloc[:10_000]})[:3])
        table_column = f"table[{name!r}]"
        raise ValueError(f"`formula`: the column {name!r} holds {said} ({types}): {cure.format(table=table_column)}.")
    _check_levels(described, table, environment, pandas)


def _check_whole(name, column):
    """Warn of whole numbers that floats round, as times in nanoseconds are: of differences much may be lost."""
    largest = max((abs(int(value)) for value in (column.min(), column.max()) if value == value), default=0)
    if largest > 2**53:
        warn(
            f"the column {name!r} has whole numbers above 2^53, which floats round to multiples of "
            f"{np.spacing(float(largest)):.0f}: if differences matter, subtract one of the values before the fit."
        )


def _check_written_alike(values, what):
    """Refuse truth values that are words in some rows and 0 or 1 in others."""
    found = {str(value).lower().removesuffix(".0") for value in values}
    if found <= {"0", "1", "true", "false"} and found & {"0", "1"} and found & {"true", "false"}:
        raise ValueError(
            f"{what} has truth values as words in some rows, and as 0 or 1 in others: write them in one way."
        )


def _check_text(name, column):
    """Refuse text most of whose levels are numbers, perhaps with commas: a slip would make a category of a column.

    A note says so if the levels are few, and may be codes, and nearly all rows hold numbers.
    """
    levels = [str(value) for value in column.dropna().unique()]
    # Python reads "1_000", and digits and spaces that are not ASCII, where readers of tables do not.
    odd = [text for text in levels if not is_number(text) or not text.isascii() or "_" in text]
    numeric = sum(is_number(text.replace(",", "")) for text in levels)
    if odd and len(levels) > MOST_NUMBERS and 2 * numeric > len(levels):
        raise ValueError(
            f"`formula`: the column {name!r} holds numbers but for {odd[0]!r}, and so is text: correct that, leave it "
            f"empty if it is missing, or write C({name}) for a category."
        )
    slips = np.flatnonzero(column.isin(odd).to_numpy())
    if odd and numeric > 1 and len(slips) <= max(1.0, SLIPS * len(column)):
        k, further = slips[0], f", and {len(slips) - 1:,} more such rows" * (len(slips) > 1)
        warn(
            f"the column {name!r} holds numbers but for {str(column.iloc[k])!r} in row {column.index[k]}{further}, and "
            f"so is taken for a category of {len(levels)} levels: correct that, leave it empty if it is missing, or "
            f"write C({name}) for a category."
        )


def _check_levels(described, table, environment, pandas):
    """Refuse categories of nearly a level a row, or whose columns would take more than a quarter of the memory."""
    total, most, name = 0, 0, ""
    for term in described.model.common_terms:
        columns = 1
        for part in _parts(term):
            called = part.call.callee if hasattr(part, "call") else None
            if called is not None and called not in DUMMIES:
                continue
            part = part.call.args[0] if called and part.call.args else part  # noqa: PLW2901
            one = str(getattr(part, "name", part))
            if one not in described.names:  # an expression, C(x > 0)
                levels = _levels_of(part, table, environment, pandas)
            elif called or not pandas.api.types.is_numeric_dtype(table[one]):
                levels = int(table[one].nunique())
            else:
                continue
            columns *= levels
            most, name = max((most, name), (levels, one))
        total += columns
    size, limit = 8.0 * total * max(len(table), total), machine_memory() / 4.0
    dates = f", as of dates (pandas.to_datetime(table[{name!r}]) - pandas.Timestamp('2020-01-01')).dt.days"
    if most >= MANY_LEVELS and 2 * most > len(table):
        raise ValueError(
            f"`formula`: the column {name!r} is a category of {most:,} levels in {len(table):,} rows, with a "
            f"coefficient each: leave it out, write effects of groups, (1 | {name}), or make it a number"
            f"{dates if name in described.names else ''}."
        )
    if most >= MANY_LEVELS and size > limit:
        raise ValueError(
            f"`formula`: the column {name!r} has {most:,} levels, with a column of the design each, which would take "
            f"{in_words(size)}, above {in_words(limit)}, a quarter of this machine's memory: write effects of groups, "
            f"(1 | {name})."
        )


def _levels_of(part, table, environment, pandas):
    """How many values an expression has in a table; 1 of one that fails, which is said where it is evaluated."""
    from formulae.transforms import TRANSFORMS

    try:
        values = part.eval(FloatColumns(table), environment.with_outer_namespace(TRANSFORMS))
        return max(int(pandas.Series(np.ravel(values)).nunique()), 1)
    except Exception:  # noqa: BLE001 - anything that a function of the user's may raise
        return 1


def _check_powers(formula):
    """Refuse powers of sums and degrees of polynomials that have more terms than anyone can mean: they take hours."""
    within, before = [], ""  # for each parenthesis that is open, whether it is of a function
    for token in re.findall(r"[^\W\d][\w.]*|\d+|\*\*|\S", formula):
        if token == "(":
            within.append(bool(re.match(r"[^\W\d]", before)))
        elif token == ")" and within:
            within.pop()
        elif before == "**" and token.isdigit() and int(token) > HIGHEST and not any(within):
            raise ValueError(f"`formula`: the power {token} of a sum is above {HIGHEST}.")
        before = token
    for degree in re.findall(r"\bpoly\([^()]*,\s*(?:degree\s*=\s*)?(\d+)", formula):
        if int(degree) > HIGHEST:
            raise ValueError(f"`formula`: poly() of the degree {degree} is above {HIGHEST}.")


@contextlib.contextmanager
def _deep(size):
    """A formula of hundreds of terms is a tree as deep as these are many, which formulae walks by recursion."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 1_000 + 10 * size))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@contextlib.contextmanager
def _heard():
    """What formulae logs, in place of its log."""
    said, logger = [], logging.getLogger("formulae")

    def hear(record):
        said.append(record.getMessage())
        return False

    logger.addFilter(hear)
    try:
        yield said
    finally:
        logger.removeFilter(hear)


def describe(formula: str) -> Described:
    """Parse a formula; an error for what is none, or has no response."""
    model_description = import_formulae("model_description").model_description
    if not isinstance(formula, str):
        raise TypeError(f'`formula` must be text such as "y ~ x + (1 | g)", got {type(formula).__name__}.')
    try:
        with _deep(len(formula)):
            rest, smooths = taken_out(bracketed(formula))
            rest, found = bars(rest)
            _check_bars(found)
            _check_sides(rest)
            _check_powers(rest)
            with _heard() as said:  # of x**2, which formulae takes for x
                model = model_description(rest)
            if said:
                raise ValueError(
                    "a power outside of functions is one of sums; of the numbers of a column it is I(x**2)"
                )
            within = [_distinct(model_description(f"0 + ({bar.text})").group_terms) for bar in found]
            _check_effects(within)
            model.common_terms, model.group_terms = map(_distinct, (model.common_terms, model.group_terms))
            brackets = {(term.expr.name, term.factor.name): k for k, terms in enumerate(within) for term in terms}
            correlated = {name: found[k].identifier or k for name, k in brackets.items() if not found[k].independent}
            numeric = [
                model.response and model.response.term,
                *model.common_terms,
                *(t.expr for t in model.group_terms),
            ]
            for term in model.common_terms:
                # Those of `g / x` share one, of which the second coding would replace the first.
                term.components = [copy.copy(part) for part in _parts(term)]
                for part in term.components:
                    # Of a term that formulae adds: not with everything that the formula's names reach.
                    part.__deepcopy__ = functools.partial(_copied, part)
            for term in numeric:
                if len(_parts(term)) > 1 and any(call.callee == "offset" for call in _calls(term)):
                    raise ValueError("offset(...) stands alone between +: a product is offset(x * z)")
            for call in itertools.chain(*map(_calls, numeric)):
                _refuse_members([call])
                _prepare(call)
            for term in model.group_terms:
                for call in _calls(term.factor):
                    _refuse_members(_arguments(call))
                    _prepare(call, of_labels=True)
    except Exception as error:
        said = _in_words(error)
        raise ValueError(f"`formula` {formula!r} cannot be read: {said or type(error).__name__}.") from None
    if model.response is None:
        raise ValueError(f"`formula` must have a response on the left of ~, got {formula!r}.")
    names = frozenset(name for name in model.var_names if name)  # "" of numbers
    if "Intercept" in names:
        raise ValueError(
            "`formula` names 'Intercept', which is what the constant is called, and is there without being named: "
            "leave it out, with the 0 before it; a column has to be renamed."
        )
    if model.response.term.name in {term.name for term in model.common_terms}:
        raise ValueError(f"`formula` {formula!r} has its response {model.response.term.name!r} on the right of ~ too.")
    fixed = names & {term.name for term in model.common_terms}
    names = names.union(*(one.names for one in smooths))
    return Described(formula, model, names, fixed, brackets, correlated, smooths)


def _check_sides(formula):
    """Raise an error where formulae would leave out a part.

    It does so with what is behind the first complete expression, with a level such as ``g['a']`` on the right, and with
    all but the first term of a response such as ``y - x``, whose signs are there those of terms: the difference is
    ``I(y - x)``.
    """
    from formulae.expr import Binary, Grouping, Unary
    from formulae.parser import Parser
    from formulae.scanner import Scanner

    tokens = Scanner(formula).scan()
    for one, then in itertools.pairwise(tokens):
        if one.kind == "NUMBER" and re.fullmatch(r"[eE]\d*", then.lexeme):
            raise ValueError(f"{one.lexeme}{then.lexeme} is no number here: write 1000 for 1e3, and 0.001 for 1e-3")
    parser = Parser(tokens)
    both = parser.parse()
    response, parts = getattr(both, "left", None), [getattr(both, "right", None)]
    if not parser.at_end():
        raise ValueError(f"{parser.peek().lexeme!r} has no meaning where it stands; a test is written I(x > 0)")
    for part in parts:  # which grows
        if getattr(part, "level", None) is not None:
            name, level = part.name.lexeme, part.level.value
            raise ValueError(f"{name}[{level!r}] names a level, as a response can: write I({name} == {level!r})")
        inner = (getattr(part, name, None) for name in ("left", "right", "expression", "value"))
        parts += [one for one in (*inner, *getattr(part, "args", ())) if hasattr(one, "accept")]
    while isinstance(response, Grouping):
        response = response.expression
    if isinstance(response, Binary | Unary) and "~" in formula:
        left = formula.partition("~")[0].strip()
        raise ValueError(f"a response that is computed is written I({left})")
    _check_operators(getattr(both, "right", both))


def _check_operators(node):
    """Refuse what formulae does not do: to multiply a sum by itself, and to take away a product in another order."""
    from formulae.expr import Binary, Grouping
    from formulae.resolver import Resolver

    while isinstance(node, Grouping):
        node = node.expression
    if not isinstance(node, Binary):
        return
    _check_operators(node.left)
    _check_operators(node.right)
    if node.operator.kind not in ("STAR", "MINUS"):
        return
    left, right = (Resolver(side).resolve() for side in (node.left, node.right))
    own, other = _products(left), _products(right)
    if node.operator.kind == "STAR" and own == other and len(own) > 1:
        raise ValueError("a sum that is multiplied by itself is read as the sum: write (x + z)**2")
    for product in other & _products(left - right) if node.operator.kind == "MINUS" else ():
        raise ValueError(
            f"what is taken away, {':'.join(sorted(product))}, stays, as it is written in another order than it has "
            "there"
        )


def _distinct(terms):
    """The terms without those that are earlier ones in another order, as z:x is x:z."""
    first = {}
    for term in terms:
        first.setdefault(_meaning(term), term)
    return [*first.values()]


def _meaning(term):
    """What a term is a product of, and what the one it varies over is, in any order."""
    sides = getattr(term, "expr", term), getattr(term, "factor", None)
    return tuple(frozenset(part.name for part in _parts(one)) or getattr(one, "name", "") for one in sides)


def _products(part):
    """The names of what each term of a model is a product of."""
    return {frozenset(c.name for c in _parts(term)) for term in getattr(part, "common_terms", [part])} - {frozenset()}


def check_functions(formula: str) -> None:
    """Refuse a formula that calls more than formulae's own functions and those of NumPy that compute.

    A formula calls whatever function its namespace reaches, ``os.system`` too: this is for one that others may have
    written.
    """
    described = describe(plainly(formula))
    from formulae.categorical import ENCODINGS
    from formulae.transforms import TRANSFORMS

    for part in described.calls():
        name = getattr(part, "callee", "I")
        room, _, function = name.partition(".")
        of_numpy = room == "np" and (isinstance(getattr(np, function, None), np.ufunc) or function in HARMLESS)
        if not of_numpy and name not in FUNCTIONS and name not in TRANSFORMS and name not in ENCODINGS:
            raise ValueError(
                f"`formula` calls {name!r}: on the command line it may call functions of formulae, such as scale(x), "
                "and those of NumPy that compute, such as np.log(x); pdmp.regression in Python takes any."
            )


def check_shadowed(described: Described, environment: Any) -> None:
    """Refuse a call of a function of the user's code whose name one of formulas has, which would be called instead."""
    from formulae.transforms import TRANSFORMS

    names = [getattr(part, "callee", "") for part in described.calls()] + [said.kind for said in described.smooths]
    for name in dict.fromkeys(names):
        own = environment.namespace.get(name)
        if callable(own) and (name in KINDS or name in TRANSFORMS) and own is not TRANSFORMS.get(name):
            raise ValueError(
                f"`formula`: `{name}` is a function of your code, and one of formulas, which would be called: rename "
                "yours, or delete it if that of formulas is meant."
            )


def check_predictable(described: Described, table: Any) -> None:
    """Refuse a formula whose fit to this table could not be predicted for another; after `check_functions`."""
    from formulae.environment import Environment

    if any(_calls(term) for term in [*described.columns, *described.factors]):
        rows, _ = complete_rows(table, described.names)
        Design(described, rows, Environment([{"np": np, **FUNCTIONS}])).check_by_rows()


class Design:
    """The fixed columns and the groups of a table, and of further tables in the same coding.

    Parameters
    ----------
    described : Described
    table : pandas.DataFrame
        Without missing values in the columns of the formula.
    environment : formulae.environment.Environment
        Where the functions of the formula are looked up.
    in_place : bool, default False
        Whether columns of a large table without groups may be used where they are.

    Attributes
    ----------
    terms : dict of str to list of int
        Columns of each term.
    offset : ndarray, shape (N,)
        The sum of the formula's own ``offset(...)``.
    together : dict of tuple to list of int
        Places of groups whose effects correlate, such as of (1 + x | g), by grouping and number or identifier of the
        bar.
    whole_column : str or None
        A term whose values of a row depend on the other rows of its table, such as ``x - np.mean(x)``; `new` refuses
        it. Functions that remember the table of the fit, ``scale(x)``, are none.
    response_labels : ndarray or None
        Values of a response of labels or categories, in the order of their numbers.
    """

    response_labels: np.ndarray | None = None

    def __init__(self, described: Described, table: Any, environment: Any, in_place: bool = False) -> None:
        self.model, self.formula = described.model, described.formula
        check_shadowed(described, environment)
        self._groups, self.model.group_terms = self.model.group_terms, []
        floats = FloatColumns(table)
        self._evaluate(lambda: self.model.eval(floats, environment))
        for term in self._groups:
            if _parts(term.expr):  # which terms share, and that are coded for each
                term.expr = copy.copy(term.expr)
                term.expr.components = [copy.copy(part) for part in term.expr.components]
            self._evaluate(lambda term=term: term.set_type(floats, environment))
        for term, full in zip(self._groups, self._codings_of_groups(described.brackets), strict=True):
            self._evaluate(lambda term=term, full=full: term.expr.set_data(full))
        self._fixed = [term for term in self.model.common_terms if term.kind != "offset"]
        self._offsets = [term for term in self.model.common_terms if term.kind == "offset"]
        if not self._fixed:
            raise ValueError(f"`formula` must have an intercept or another fixed column, got {self.formula!r}.")
        self.truths = self._find_truths(table)
        self.columns, self.terms = [], {}
        for term in self._fixed:
            labels = list(term.labels)
            if not labels:
                raise ValueError(f"`formula`: {term.name!r} has one level only: leave it out.")
            self.terms[term.name] = list(range(len(self.columns), len(self.columns) + len(labels)))
            self.columns += labels
        self._check_spans()
        n = len(table)
        in_place &= not self._groups and not described.smooths and 8 * n * len(self.columns) >= LARGE
        if in_place and int(import_pandas().__version__.partition(".")[0]) >= 3:  # before, tables change in place
            self.X = self._where_they_are(table)
        else:
            self.X = self._stack([term.data for term in self._fixed], n)
        self.smooths, bent = [smooth_of(said, table) for said in described.smooths], []
        self.warps: dict[str, Warp] = {}
        for one in self.smooths:
            self.terms |= {name: [len(self.columns) + k] for k, name in enumerate(one.columns)}
            self.columns += one.columns
            self.warps |= one.warps
            linear, parts = one.coded(table)
            self.X, bent = np.hstack([self.X, linear]), [*bent, *parts]
        if len(set(self.columns)) < len(self.columns):
            repeated = next(name for name in self.columns if self.columns.count(name) > 1)
            raise ValueError(f"`formula` gives two columns the name {repeated!r}: rename the column.")
        self.intercept = self.columns.index("Intercept") if "Intercept" in self.columns else None
        self.offset = sum((np.asarray(t.data, float).reshape(n) for t in self._offsets), np.zeros(n))
        self._check_finite(self.X, table)
        if not np.all(np.isfinite(self.offset)):
            raise ValueError("`formula`: offset(...) is not finite in some rows.")
        for part in itertools.chain(*map(_parts, self._fixed)):
            coding = getattr(part, "contrast_matrix", None)
            if coding is not None:  # pandas says -1 of what is no level, which is the last row
                coding.matrix = np.vstack([coding.matrix, np.full(coding.matrix.shape[1], np.nan)])
        self._first = table[[name for name in table.columns if name in described.names]].iloc[:1]
        self._levels: dict[str, tuple] = {}
        self.groups = self._number(table, [term.expr.data for term in self._groups], first=True)
        self.together = self._find_together(described.correlated)
        self.groups += bent
        self.response = self.model.response.term.name
        self.whole_column = self._find_whole_column(table, lambda term: term.data)
        self.kept = Kept(table, [self])
        places = np.unique(np.linspace(0, n - 1, CALLED_AGAIN).astype(int))
        self._called = [term for term in self._coded_terms() if _calls(term)]
        self._rows_again = table[list(self._first.columns)].iloc[places if self._called else places[:1]]
        self._values_again = [np.asarray(_rows_of(term.data, n)[places], dtype=float) for term in self._called]
        for term in self._coded_terms():
            term.data = term.data[:1].copy()  # what formulae has of all rows is not looked at again

    def _coded_terms(self):
        """Those that formulae has values of."""
        return [*self._fixed, *self._offsets, *(term.expr for term in self._groups)]

    def _check_functions(self):
        """Refuse a function of the user's that gives other values now than when the fit was made."""
        for term, values in zip(self._called, self._values_again, strict=True):
            found = _rows_of(self._evaluate(lambda term=term: _coding_of(term)(self._rows_again)), len(values))
            if not np.allclose(found, values, rtol=1e-9, atol=1e-9 * np.abs(values).max()):
                raise ValueError(
                    f"`formula`: {term.name!r} has other values in rows of the fit than when it was made: what it "
                    "calls has changed since then. Fit it again, or restore the function."
                )

    def _codings_of_groups(self, brackets):
        """Of each term of effects of groups, by name, which of its categories have a column for each level.

        Columns are those that the terms before, in the same brackets, leave open: of (1 + z:a | g) each level of a has
        a slope, and of (1 + a | g) all but one have an effect of their own.
        """
        keys = [(term.factor.name, brackets.get((term.expr.name, term.factor.name))) for term in self._groups]
        spanned, found = collections.defaultdict(set), []
        for term, key in zip(self._groups, keys, strict=True):
            if term.expr.name == "Intercept":
                spanned[key] |= _spans(term.expr)
        for term, key in zip(self._groups, keys, strict=True):
            cats, known = [part for part in _parts(term.expr) if part.kind == "categoric"], spanned[key]
            needed, full = _spans(term.expr) - known, set()
            if cats and needed:
                names = {part.name for part in cats}
                full = {name for name in names if any(name not in of for of, _ in needed)}
                if {of for of, _ in needed} != {frozenset({*names - full, *some}) for some in _subsets(full)}:
                    inside = " * ".join(part.name for part in _parts(term.expr))
                    raise ValueError(
                        f"({term.expr.name} | {term.factor.name}) needs the terms within it too: write "
                        f"({inside} | {term.factor.name})"
                    )
            known |= needed
            found.append({part.name: part.name in full for part in cats})
        return found

    def _check_spans(self):
        """Refuse a formula of whose columns formulae leaves some out."""
        levels, widths, found = {}, {}, {}
        for part in itertools.chain(*map(_parts, self._fixed)):
            if part.kind == "categoric":
                levels[part.name] = len(part.levels)
            elif np.ndim(part.value) == 0:
                raise ValueError(f"`formula`: {part.name} is one number, and not one for each row.")
            else:
                widths[part.name] = np.asarray(part.value).reshape(len(part.value), -1).shape[1]
        for of, numeric in set().union(*map(_spans, self._fixed)):
            found[of, numeric] = math.prod(levels[name] - 1 for name in of) * math.prod(widths[n] for n in numeric)
        wanted, have = sum(found.values()), len(self.columns)
        if have < wanted:
            raise ValueError(
                f"`formula`: {self.formula!r} would be coded in {have} columns, and its terms have {wanted}: write "
                "lower interactions too, as a * b * c has them, or, without an intercept, 0 + a:b:c."
            )

    def _evaluate(self, call):
        """What formulae computes; its errors as one line."""
        try:
            with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):  # it prints some of its errors
                return call()
        except KeyError as error:
            raise ValueError(f"`formula` {self.formula!r} names {error.args[0]!r}, which is not defined.") from None
        except Exception as error:
            kind = OtherRows if isinstance(error, OtherRows) else ValueError
            raise kind(f"`formula` {self.formula!r} cannot be evaluated: {_in_words(error)}.") from None

    def _where_they_are(self, table):
        """The fixed columns as `Columns`: those of the table, and what functions have made of them."""
        found = []
        for term in self._fixed:
            if term.name == "Intercept":
                term.data = np.broadcast_to(np.ones(1), len(table))
            data = np.asarray(term.data, dtype=float)
            found += [data] if data.ndim == 1 else list(data.T)
        return Columns(*found, owner=table)

    def _stack(self, parts, n):
        parts = [np.asarray(part, dtype=float).reshape(n, -1) for part in parts]
        return np.column_stack(parts)

    def _find_whole_column(self, table, values_of, named=True):
        """The first term that is not a function of each row alone."""
        pandas = import_pandas()
        named_terms = [(term.name, term) for term in (*self._fixed, *self._offsets)]
        for name, term in (*named_terms, *((term.name, term.expr) for term in self._groups)):
            if _calls(term) and not self.is_by_rows(values_of(term), _coding_of(term), table):
                return name
            for part in _parts(term) if len(_parts(term)) > 1 else ():  # where others are 0 its values do not show
                if hasattr(part, "call") and not self._is_part_by_rows(part, table):
                    return name
        for term in self._groups:
            if not named:
                continue
            for component in term.factor.components if _calls(term.factor) else ():
                codes, labels = pandas.factorize(self._values(component, table), sort=True)

                def again(rows, component=component, labels=labels):
                    return places(labels, self._values(component, rows))

                if not self.is_by_rows(codes, again, table):
                    return term.name
        return None

    def _is_part_by_rows(self, part, table):
        def again(rows):
            return part.eval_new_data(FloatColumns(rows))

        return self.is_by_rows(self._evaluate(lambda: again(table)), again, table)

    def is_by_rows(self, values: np.ndarray, again: Callable[[Any], Any], table: Any) -> bool:
        """Whether a function `again` of tables gives the same values of some rows alone as of the whole table.

        These are the rows of its smallest and its largest values, each alone, and every third row from each of the
        first three on, or fewer of a large table. What a column is changed by in a few rows, as a code of missing
        values by the median, differs between such parts.
        """
        values = _rows_of(values, len(table)).astype(float)
        ends = {end for column in values.T for end in (int(np.argmin(column)), int(np.argmax(column)))}
        size, step = np.abs(values).max(axis=0), max(3, len(table) // ROWS_OF_A_PART)
        for rows in (*([row] for row in sorted(ends)), *(slice(first, None, step) for first in range(3))):
            part = table.iloc[rows]
            if len(part) == 0:
                continue
            try:
                found = _rows_of(self._evaluate(lambda part=part: again(part)), len(part)).astype(float)
            except OtherRows:  # an index that is that of the whole table by chance
                raise
            except ValueError:  # what cannot be computed of fewer rows
                return False
            if not np.allclose(found, values[rows], rtol=1e-9, atol=1e-9 * size):
                return False
        return True

    def names_of_columns(self) -> dict[str, set[str]]:
        """Names of columns: those of the "fixed" part, what effects of groups multiply included; and of "groups"."""
        fixed = [name for term in self.model.common_terms for name in getattr(term, "var_names", ())]
        fixed += [name for term in self._groups for name in term.expr.var_names]
        fixed += [name for one in self.smooths for name in one.said.names]
        of_groups = [name for term in self._groups for part in term.factor.components for name in part.var_names]
        return {"fixed": {name for name in fixed if name}, "groups": {name for name in of_groups if name}}

    def categories(self) -> dict[str, tuple]:
        """Levels of the columns that the fixed part takes for categories, the one without a column of its own first."""
        found: dict[str, tuple] = {}
        terms = sorted([*self._fixed, *(term.expr for term in self._groups)], key=lambda term: len(_parts(term)))
        for term in terms:  # single ones first: of products each level may have a column
            for part in _parts(term):
                if part.kind != "categoric":
                    continue
                names = sorted(name for name in part.var_names if name)
                levels, without = tuple(map(plain, part.levels)), list(map(plain, self._without(term, part)))
                first = without[0] if len(without) == 1 else levels[0]
                if len(names) == 1 and (not hasattr(part, "call") or part.call.callee in DUMMIES):
                    found.setdefault(names[0], (first, *(level for level in levels if level != first)))
        curves = {one.said.by: one.by.levels for one in self.smooths if one.by.levels != (None,)}
        monotonic = {one.said.columns[0]: tuple(one.labels) for one in self.smooths if getattr(one, "labels", None)}
        return curves | monotonic | found

    def _without(self, term, part):
        """Levels of a category that have no column."""
        return [level for level in part.levels if f"{term.name}[{level}]" not in self.columns]

    def _find_truths(self, table):
        """Columns of truth values in products, without an intercept or in effects of groups, where 0 is no baseline."""
        terms = [term.expr for term in self._groups]
        whole = any(term.name == "Intercept" for term in self._fixed)
        terms += [term for term in self._fixed if len(_parts(term)) > 1 or not whole]
        names = dict.fromkeys(part.name for term in terms for part in _parts(term) if not hasattr(part, "call"))
        return [name for name in names if name in table and table[name].dtype.kind == "b"]

    def baselines(self) -> list[str]:
        """Of categories among the fixed columns: the level that the others are compared with, if there is one.

        And which truth values count as 0 and 1 where a category would have a column for each.
        """
        said = [f"{name} counts as 0 and 1: C({name}) is a category" for name in self.truths]
        for term in self._fixed:
            if term.kind == "categoric":
                without = self._without(term, term.components[0])
                of_mean = np.nanmin(term.components[0].contrast_matrix.matrix) < 0.0
                whole = "the mean of its levels; minus the sum of the others is that of "
                said += [f"{term.name} is relative to {whole if of_mean else ''}{level}" for level in without]
        return said

    def _check_finite(self, X, table):
        for j in range(X.shape[1]):
            finite = np.isfinite(X[:, j])
            if not finite.all():
                row = table.index[np.argmin(finite)]
                raise ValueError(f"`formula`: the column {self.columns[j]!r} is not finite in row {row}.")

    def _members(self, term, table):
        """Values of the factors of a grouping, for each group of a row: one, or of (1 | mm(g, h)) several."""
        call = getattr(term.factor.components[0], "call", None)
        if getattr(call, "callee", None) != "mm":
            return [[self._values(component, table) for component in term.factor.components]]
        if len(call.args) < 2 or not call.kwargs.keys() <= {"weights", "scale"} or len(term.factor.components) > 1:
            raise ValueError(
                f"`formula`: {term.factor.name} is a grouping by itself, of two columns or more, such as "
                "(1 | mm(g, h)) or (1 | mm(g, h, weights=cbind(u, v))); scale=False takes weights as they are."
            )
        columns, env = FloatColumns(table), term.factor.components[0].env
        found = [np.asarray(part.eval(columns, env)) for part in call.args]
        held = {_held(import_pandas().Index(one)) for one in found}
        if len(held) > 1:
            raise ValueError(f"`formula`: {term.factor.name} has groups named by {' and by '.join(sorted(held))}.")
        return [[one] for one in found]

    def _shares(self, term, table, several):
        """What the effects of the groups of a row are multiplied by, (n, several): of mm(g, h) its weights."""
        call, columns = term.factor.components[0].call, FloatColumns(table)
        given = {name: part.eval(columns, term.factor.components[0].env) for name, part in call.kwargs.items()}
        if "weights" not in given:
            return np.full((len(table), several), 1.0 / several)
        shares, name = np.asarray(given["weights"], dtype=float), term.factor.name
        if shares.shape != (len(table), several):
            columns = 1 if shares.ndim == 1 else shares.shape[1]
            raise ValueError(f"`formula`: {name} has {several} groups a row, and {columns} columns of weights.")
        bad = ~np.all(np.isfinite(shares), axis=1)
        if given.get("scale", True):
            bad |= np.any(shares < 0.0, axis=1) | (shares.sum(axis=1) == 0.0)
        if bad.any():
            row = table.index[np.argmax(bad)]
            raise ValueError(
                f"`formula`: the weights of {name} are {shares[bad][0].tolist()} in row {row}: they must be finite "
                "and, unless scale=False, not negative nor all 0, as they are divided by their sum."
            )
        return shares / shares.sum(axis=1, keepdims=True) if given.get("scale", True) else shares

    def _values(self, component, table):
        """Values of one factor of a grouping."""
        if hasattr(component, "call"):
            values = component.call.eval(FloatColumns(table), component.env)
            return np.asarray(getattr(values, "data", values))
        return np.asarray(FloatColumns(table)[Label(component.name)])

    def _number(self, table, expressions, named=True, first=False):
        """The groups of a table. `first`: their levels are those of this table; else rows of others have -1."""
        pandas, n, found = import_pandas(), len(table), []
        for term, expression in zip(self._groups, expressions, strict=True):
            name = term.factor.name
            members = self._members(term, table) if named else []
            if first and name not in self._levels:
                coded = [pandas.factorize(np.concatenate(part), sort=True) for part in zip(*members, strict=True)]
                rows = np.arange(len(coded[0][1]))[:, None]  # of one factor each label is there
                if len(coded) > 1:
                    rows = np.unique(np.column_stack([codes for codes, _ in coded]), axis=0)
                self._levels[name] = tuple(tuple(labels[k] for k, (_, labels) in zip(row, coded)) for row in rows)  # noqa: B905
            levels = self._levels[name]
            level = np.full(n, -1, np.int32)
            if named:
                each = [_codes(parts, levels) for parts in members]
                level = np.stack(each, axis=-1) if len(each) > 1 else each[0]
            shares = self._shares(term, table, level.shape[1]) if level.ndim > 1 else None
            labels = tuple(":".join(map(str, one)) if len(one) > 1 else plain(one[0]) for one in levels)
            if len(set(labels)) < len(labels):
                twice = next(label for label in labels if labels.count(label) > 1)
                raise ValueError(f"`formula`: two groups of {name} are called {twice!r}: rename levels with a colon.")
            values = np.asarray(expression, dtype=float).reshape(n, -1)
            names = ["1"] if term.expr.name == "Intercept" else list(term.expr.labels)
            if not np.all(np.isfinite(values)):
                row = table.index[np.argmin(np.isfinite(values).all(axis=1))]
                raise ValueError(f"`formula`: {term.expr.name!r} of ({term.name}) is not finite in row {row}.")
            for k, label in enumerate(names):
                # Ones of an intercept take no memory.
                value = np.broadcast_to(1.0, n) if term.expr.name == "Intercept" else values[:, k].copy()
                if shares is not None:
                    value = value[:, None] * shares
                found.append(GroupColumn(f"{label}|{name}", name, labels, level, value, None))
        return found

    def _find_together(self, correlated):
        """Places in `groups` of effects that correlate."""
        sets, place = collections.defaultdict(list), 0
        for term in self._groups:
            width = 1 if term.expr.name == "Intercept" else len(list(term.expr.labels))
            bar = correlated.get((term.expr.name, term.factor.name))
            if bar is not None:
                sets[term.factor.name, bar] += range(place, place + width)
            place += width
        return sets

    def labels(self, table: Any, grouping: str) -> np.ndarray:
        """The groups of each row of a table, (n, 1) labels, or of mm(g, h) several."""
        table = _as_fitted(table, self._first)
        term = next(term for term in self._groups if term.factor.name == grouping)
        each = [[part.astype(str) for part in parts] for parts in self._members(term, table)]
        labels = [[":".join(row) for row in zip(*parts, strict=True)] for parts in each]
        return np.array(labels, dtype=object).T

    def extended(self, table: Any) -> Design:
        """The same coding with the groups of another table besides, behind those that it has, in order."""
        pandas, found, fitted = import_pandas(), copy.copy(self), _as_fitted(table, self._first)
        found._levels = dict(self._levels)
        for term in self._groups:
            name, levels = term.factor.name, self._levels[term.factor.name]
            parts = [np.concatenate(part) for part in zip(*self._members(term, fitted), strict=True)]
            for k, part in enumerate(parts):
                ours = pandas.Index([one[k] for one in levels])
                if _held(ours) != _held(pandas.Index(part)):
                    raise ValueError(
                        f"`new`: the groups of {name!r} are {_held(pandas.Index(part))}, and {_held(ours)} in the data "
                        "of the fit."
                    )
            unseen = _codes(parts, levels) < 0
            found._levels[name] = (*levels, *sorted(set(zip(*(part[unseen].tolist() for part in parts), strict=True))))
        return found

    def check_by_rows(self, table: Any = None, named: bool = True) -> None:
        """Refuse to code another table where a term is computed of the whole column: of the fit's, or of that one."""
        whole = self.whole_column
        if whole is None and table is None:
            self._check_functions()
        if whole is None and table is not None:
            whole = self._find_whole_column(table, lambda term: self._evaluate(lambda: _coding_of(term)(table)), named)
        if whole is not None:
            raise ValueError(
                f"`formula`: {whole!r} is computed of the whole column, so that another table's rows would "
                "be coded otherwise: add the column to the tables beforehand, or write scale(x) or center(x), which "
                "keep the fit's."
            )

    def _warn_beyond_knots(self, columns):
        """Warn of rows outside of the data of a B-spline, where it goes on as the polynomial of its last piece."""
        for part in itertools.chain(*map(_parts, self._fixed)):
            knots = getattr(getattr(getattr(part, "call", None), "stateful_transform", None), "_knots", None)
            if knots is None:
                continue
            x = np.asarray(part.call.args[0].eval(columns, part.env), dtype=float)
            beyond = x[(x < knots[0]) | (x > knots[-1])]
            if len(beyond):
                farthest = beyond[np.argmax(np.abs(beyond - 0.5 * (knots[0] + knots[-1])))]
                warn(
                    f"`new`: {part.name} had data from {knots[0]:.4g} to {knots[-1]:.4g}, and new rows go to "
                    f"{farthest:.4g}: out there it goes on as a polynomial, which says little; s(x) goes on as a line."
                )

    def new(self, table: Any, named: bool = True) -> tuple[np.ndarray, np.ndarray, list[GroupColumn]]:
        """Fixed columns (n, p), offset (n,) and groups of another table; the level of an unseen group is -1.

        `named`: whether the table has the columns that groups are named by; without them every group is unseen.
        """
        self.check_by_rows()
        used = self.names_of_columns()
        names = used["fixed"] | (used["groups"] if named else set())
        check_names(names, table, "`formula`", "`new`")
        for name in sorted(names):
            if table[name].isna().any():
                raise ValueError(f"`new`: the column {name!r} has missing values.")
            if table[name].dtype.kind == "c" or import_pandas().api.types.infer_dtype(table[name]) == "complex":
                raise ValueError(f"`new`: the column {name!r} holds complex numbers: {AS_REAL}.")
        self._check_truth(table, names)
        table = _as_fitted(table, self._first)
        self._check_types(table, names)
        n, floats = len(table), FloatColumns(table)
        X = self._stack([self._evaluate(lambda t=t: t.eval_new_data(floats)) for t in self._fixed], n)
        self._check_finite(X, table)
        self.check_by_rows(table, named)
        self._warn_beyond_knots(floats)
        parts = [np.broadcast_to(self._evaluate(lambda t=t: t.eval_new_data(floats)), n) for t in self._offsets]
        expressions = [self._evaluate(lambda t=t: t.expr.eval_new_data(floats)) for t in self._groups]
        smooths = [one.coded(table, "`new`") for one in self.smooths]
        X = np.hstack([X, *(linear for linear, _ in smooths)])
        groups = [*self._number(table, expressions, named), *(one for _, bent in smooths for one in bent)]
        return X, sum(parts, np.zeros(n)), groups

    def _check_truth(self, table, names):
        """Refuse truth values where the fit had other numbers than 0 and 1, and other ones where it had truth values.

        True would be the group 1, or the category 1, of several, and 2 twice the effect of what is true.
        """
        for name in sorted(names):
            found, was = _held(table[name]), _held(self._first[name])
            if {found, was} != {TRUTH, NUMBERS}:
                continue
            if found == NUMBERS and not table[name].between(0, 1).all():
                odd = next(value for value in table[name] if not 0 <= value <= 1)
                raise ValueError(
                    f"`new`: the column {name!r} is {odd:g} in some row, and holds truth values in the data of the "
                    "fit: write them as there, or as 0 and 1."
                )
            column = self.kept.columns.get(name)
            known = self.kept.groupings.get(name, ()) if column is None else column.levels or (column.low, column.high)
            odd = [value for value in known if not is_number(str(value)) or not 0 <= float(value) <= 1]
            if found == TRUTH and odd:
                raise ValueError(
                    f"`new`: the column {name!r} holds truth values, and numbers such as {odd[-1]} in the data of the "
                    "fit."
                )

    def _check_types(self, table, names):
        """Refuse text where the fit had numbers, and the reverse: a function may take "no" for a truth value.

        But for groups, of which other ones may be named in another way.
        """
        terms = [*self.model.common_terms, *(term.expr for term in self._groups)]
        for name in sorted(names & {name for term in terms for name in term.var_names}):
            found, was = _held(table[name]), _held(self._first[name])
            if found != was and {found, was} != {TRUTH, NUMBERS}:
                raise ValueError(f"`new`: the column {name!r} holds {found}, and {was} in the data of the fit.")

    def read_response(self, table: Any, environment: Any, kind: str) -> tuple[np.ndarray, str]:
        """The response of `kind`, one of `pdmp.models.families.RANGES`, and a sentence on how it was coded, or ""."""
        if kind != "label":
            return check_response(self.evaluate_response(table, environment), self.response, kind), ""
        codes, self.response_labels, said = read_labels(self.response_values(table, environment), self.response)
        return codes, "" if plain_response(self.model) is None else said

    def response_values(self, table: Any, environment: Any) -> Any:
        """The response's column, whatever it holds, or what its function makes of it."""
        name = plain_response(self.model)
        return self.evaluate_response(table, environment) if name is None else table[name]

    def read_further_response(self, table: Any, environment: Any, kind: str, before: np.ndarray) -> np.ndarray:
        """The response of rows after those of the fit, whose responses are `before`, in the same coding."""
        values, name = self.response_values(table, environment), self.response
        if plain_response(self.model) is None and not self.is_by_rows(
            values, lambda rows: self.evaluate_response(rows, environment), table
        ):
            raise ValueError(
                f"`formula`: the response {name!r} is computed of the whole column, so that new rows would be coded "
                "otherwise: add the column to the tables beforehand."
            )
        if self.response_labels is None:
            found = self.evaluate_response(table, environment)
            return check_response(np.concatenate([before, found]), name, kind)[len(before) :]
        codes = places(self.response_labels, np.asarray(values))
        if np.any(codes < 0):
            odd = np.asarray(values)[int(np.argmax(codes < 0))]
            raise ValueError(
                f"`new`: the response {name!r} is {plain(odd)!r} in some row, and the fit has seen "
                f"{', '.join(map(str, self.response_labels))} only: fit all rows."
            )
        return codes.astype(float)

    def evaluate_response(self, table: Any, environment: Any) -> np.ndarray:
        """The response of a table as numbers, (n,)."""
        column, name = plain_response(self.model), self.response
        if column is not None:
            return numbers(table, column, "the response")
        from formulae.matrices import ResponseMatrix

        matrix = ResponseMatrix(self.model.response)
        self._evaluate(lambda: matrix.evaluate(FloatColumns(table), environment))
        y = np.asarray(matrix.design_matrix, dtype=float)
        if y.ndim != 1:
            raise ValueError(f"the response {name!r} must be one column, got {y.shape[-1]}.")
        if not np.all(np.isfinite(y)):
            raise ValueError(f"the response {name!r} is not finite in {int(np.sum(~np.isfinite(y)))} rows.")
        return y


def plain_response(model: Any) -> str | None:
    """The column that the response is as it is; None of one that is computed."""
    part = model.response.term.components[0]
    return None if hasattr(part, "call") or part.reference is not None else part.name


def _parts(term):
    """What a term is a product of."""
    return getattr(term, "components", ())


def _subsets(names):
    """All subsets of a set."""
    return itertools.chain(*(itertools.combinations(sorted(names), k) for k in range(len(names) + 1)))


def _spans(term):
    """Which products of categories and numbers a term spans: (categories, numbers), by name.

    A product of categories spans those of some of them as well.
    """
    cats = [part.name for part in _parts(term) if part.kind == "categoric"]
    numeric = frozenset(part.name for part in _parts(term) if part.kind != "categoric")
    return {(frozenset(some), numeric) for some in _subsets(cats)}


def _in_words(error):
    """What an error says, on one line; of formulae's own the cause where its words name none."""
    said = " ".join(str(error).split()).rstrip(".")
    if said.startswith(("'Call' object has no attribute", "'Grouping' object has no attribute")):
        return "it calls what a function returns, or what stands in brackets: name that before, f = ..., and write f(x)"
    if said.startswith("Call result is of an unrecognized type"):
        return "a function of columns gives objects, not numbers: make its columns floats before, by astype(float)"
    return said


def _calls(term):
    """The functions of columns in a term."""
    return [component.call for component in _parts(term) if hasattr(component, "call")]


def _arguments(part):
    """The parts that a function or an operator of a formula takes."""
    return [*getattr(part, "args", ()), *getattr(part, "kwargs", {}).values()]


def _with_arguments(parts):
    """These parts, and behind them what they take, and what that takes."""
    found = list(parts)
    for part in found:  # which grows
        found += _arguments(part)
    return found


def _rows_of(values, n):
    """The first columns of values (n, ...), or of one number for all rows."""
    values = np.asarray(values)
    return (np.full(n, values) if values.ndim == 0 else values).reshape(n, -1)[:, :LOOKED_AT]


def _coding_of(term):
    """A function of tables: the values of a term, coded as those of the fit."""
    return lambda table: term.eval_new_data(FloatColumns(table))


def _check_bars(found):
    """Refuse bars of which it is not plain what they say."""
    for bar in found:
        parts = [part.strip() for part in re.sub(QUOTED, "_", bar.text).split("|")]
        if len([*filter(None, parts)]) == 3 and (bar.independent or len(parts) > 3):
            x, p, g = filter(None, parts)
            raise ValueError(
                f"{p} between || and | is no identifier: effects with one correlate, ({x} | {p} | {g}), and those of "
                f"({x} || {g}) are independent of all others"
            )
        if len(parts) > 2:
            raise ValueError(
                f"({bar.text}) has several bars: effects of two groupings are (x | g) + (x | h), and those that "
                "correlate across formulas have a name before their grouping, (x | p | g) in each"
            )


def partnered(designs: Mapping[str, Design]) -> list[str]:
    """Tell groups of designs, by what their names begin with, of the columns whose effects correlate with their own.

    They are of several formulas where bars have the same identifier; notes say which has effects of one of them alone.
    """
    found, notes = collections.defaultdict(list), []
    for prefix, design in designs.items():
        for (grouping, bar), own in design.together.items():
            key = (grouping, bar, "" if isinstance(bar, str) else prefix)
            found[key] += [(design, k, prefix + design.groups[k].name) for k in own]
    for (grouping, bar, _), columns in found.items():
        if isinstance(bar, str) and len(designs) > 1 and len({id(design) for design, *_ in columns}) == 1:
            notes.append(
                f"the identifier in |{bar}| {grouping} stands in one formula alone: no other's effects correlate"
            )
        names = tuple(name for *_, name in columns)
        for design, k, _ in columns if len(names) > 1 else ():
            design.groups[k] = design.groups[k]._replace(partners=names)
    return notes


def check_identifiers(described: Iterable[Described], columns: Iterable[str]) -> None:
    """Refuse an identifier of bars that is a column, as a second grouping would be, or joins no effects of several."""
    found = collections.defaultdict(set)
    for k, one in enumerate(described):
        for name, bar in one.correlated.items():
            if isinstance(bar, str):
                found[bar, k, one.brackets[name]].add(name[1])
    for (p, *own), groupings in found.items():
        if p in columns:
            raise ValueError(
                f"`formula`: {p} between two bars is an identifier of effects that correlate, and `data` has a column "
                f"{p!r}: take another identifier; effects of two groupings are (x | g) + (x | h)."
            )
        others = [known for (q, *place), known in found.items() if q == p and place != own]
        if others and groupings.isdisjoint(set().union(*others)):
            raise ValueError(
                f"`formula`: the identifier {p} stands before {listed(sorted(groupings))}, and elsewhere before other "
                "groupings: effects of one grouping correlate; take another identifier."
            )


def _check_effects(within):
    """Refuse an effect that stands in two brackets."""
    seen = set()
    for terms in within:
        for term in terms:
            if _meaning(term) in seen:
                name = "1" if term.expr.name == "Intercept" else term.expr.name
                raise ValueError(
                    f"the effect ({name} | {term.factor.name}) stands in two brackets: leave one out, by 0 + if need be"
                )
        seen |= {*map(_meaning, terms)}


def _refuse_members(parts):
    """Refuse mm(...) where it is no grouping by itself: formulae is shown its first column alone."""
    if any(getattr(one, "callee", None) == "mm" for one in _with_arguments(parts)):
        raise ValueError("mm(...) is a grouping by itself, (1 | mm(g, h)), and in no function and no column")


def _copied(part, memo):
    return copy.copy(part)


def _as_fitted(table, first):
    """A table whose columns have the types that they have in `first`, rows of the fit's, if their values are of those.

    Numbers 0 and 1 may be truth values, and text or numbers categories, with the order of those; and the reverse.
    """
    changed = {}
    for name in set(first.columns) & set(table.columns):
        column, dtype = table[name], first[name].dtype
        ours, theirs = (_held(getattr(one.dtype, "categories", one)) for one in (first[name], column))
        if column.dtype == dtype or ours != theirs and not column.isin([0, 1]).all():
            continue
        if hasattr(dtype, "categories"):
            if ours == theirs and column.isin(dtype.categories).all():
                changed[name] = column.astype(dtype)
        elif hasattr(column.dtype, "categories") or {ours, theirs} == {TRUTH, NUMBERS}:
            with contextlib.suppress(ValueError, TypeError):
                changed[name] = column.astype(float if ours == NUMBERS else dtype)
    return table.assign(**changed) if changed else table


def _held(values):
    """What a column or an index holds, in words."""
    types = import_pandas().api.types
    if isinstance(values.dtype, import_pandas().CategoricalDtype):
        return LABELS
    if values.dtype.kind == "b" or types.infer_dtype(values) == "boolean":
        return TRUTH
    return NUMBERS if types.is_numeric_dtype(values) else LABELS


def _codes(parts, levels):
    """Place of each row among `levels`, tuples of one label for each part; -1 for others."""
    return places([one[0] for one in levels] if len(parts) == 1 else levels, *parts)


def check_response(y: np.ndarray, name: str, kind: str) -> np.ndarray:
    """The response, or a `ValueError` where it is not of its kind, or the same in every row."""
    inside, allowed = RANGES[kind]
    allowed = "counts 0, 1, 2, …" if kind == "count" else allowed
    if not np.all(inside(y)):
        raise ValueError(f"the response {name!r} must hold {allowed} for this family, got {y[~inside(y)][0]:g}.")
    if kind != "count" and np.all(y == y[0]) and len(y) > 1:
        raise ValueError(f"the response {name!r} is {y[0]:g} in every row.")
    return y


def read_labels(column: Any, name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """Labels 0.0 and 1.0; what they are of; and which is which unless that is plain."""
    pandas = import_pandas()
    codes, labels = pandas.factorize(np.asarray(column), sort=True)
    if len(labels) != 2:
        _check_written_alike(labels, f"the response {name!r}")
        shown = ", ".join(str(plain(label)) for label in labels[:4])
        raise ValueError(
            f"the response {name!r} must have two values for this family, got {len(labels)}: {shown}"
            f"{', …' if len(labels) > 4 else ''}."
        )
    found = list(map(plain, labels))
    said = "" if found in ([0, 1], [False, True]) else f"label 1 of {name} is {found[1]!r}, and 0 is {found[0]!r}"
    are_codes = getattr(column, "dtype", None) == np.float64 and found == [0, 1]  # which saves a copy
    return np.asarray(column) if are_codes else codes.astype(float), labels, said
