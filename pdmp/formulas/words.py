"""Formulas as they are written in other tools, as formulae reads them; and what to write for what there is not."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pdmp.models.families import COUNTED


def mm(*columns: Any, weights: Any = None, scale: bool = True) -> Any:  # noqa: ARG001 - both are read by `Design`
    """Groupings of which a row has several, (1 | mm(g, h)): formulae is shown the first, and `Design` has all."""
    return columns[0]


def cbind(*columns: Any) -> np.ndarray:
    """Weights of the groups of a row, side by side: mm(g, h, weights=cbind(u, v))."""
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def mi(column: Any) -> Any:
    """A column whose missing values are imputed by a formula of its own (`pdmp.formulas.imputation`)."""
    return column


#: Functions that are called without ``np.``, unless the user's code has others of these names.
FUNCTIONS = {name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs")}
FUNCTIONS |= {"mm": mm, "cbind": cbind, "mi": mi}
#: Two responses, {0} and {1}, of one family that have effects of groups in common.
STACKED = (
    "effects of groups g that correlate between them are those of table.melt(['x', 'g'], ['{0}', '{1}'], 'which', "
    "'value'), with value ~ which * x + (0 + which | g), and ~ which for each further parameter, such as sigma"
)
#: Terms of other tools that there are not, and what comes closest.
INSTEAD = {
    "te": "a surface is t2({0}, {1})",
    "ti": "a surface is t2({0}, {1})",
    "hsgp": "a Gaussian process is gp({0})",
    "me": "the measured column is taken as it is: write {0}",
    "cs": "an effect that is the same for all categories is {0}",
    "ar": "add the response before, shifted by a row, as a column",
    "arma": "add the response before, shifted by a row, as a column",
    "gr": "effects of all groups have one standard deviation, (1 | {0}), or one for each level of a column that is the "
    "same in all rows of a group, (0 + {by} || {0})",
    "mvbind": "responses with independent errors are fits of their own, {0} ~ … and {1} ~ …; where errors correlate, "
    f"{{0}} is also a column in the formula of {{1}}; {STACKED.format('{0}', '{1}')}",
    "lo": "a smooth curve is s({0})",
}
#: The same of what stands behind a bar, beside the response.
BESIDE = {
    "mi": "rows with missing responses are left out; `x | mi() ~ z` is the formula of a column x in mi(x)",
    "dec": "decisions are no family",
    "thres": "the number of cuts is that of the categories that there are",
}
#: What stands there and is an argument of `pdmp.regression`.
ARGUMENTS = {"weights": "weights", "rate": "exposure"}
#: Names and texts, within which letters have no meaning.
QUOTED = r"`[^`]*`|'[^']*'|\"[^\"]*\""
PROPORTIONS = ("p", "prop", "proportion")  #: of formulae: k of n


class Response(NamedTuple):
    """The left side of a formula."""

    text: str  #: of the response alone
    data: Mapping[str, str]  #: further data by their names in `pdmp.Family`: a column, or a number
    roles: Mapping[str, str] = MappingProxyType({})  #: columns that are arguments of `pdmp.regression`
    sigma: bool = False  #: whether rows scatter beyond known standard errors


def split(formula: str) -> tuple[str, str]:
    """The left and the right side of a formula, "" for a side that is empty; both "" for what has no ~."""
    left, tilde, right = formula.partition("~")
    return (left.strip(), right.strip()) if tilde else ("", "")


def read_response(text: str) -> Response:
    """The left side: ``p(k, n)``, ``k | trials(n)``, ``y | cens(c)``, ``y | se(s)``, ``y | weights(w)``, or y."""
    own, bar, rest = text.partition("|")
    own, data, roles, sigma = own.strip(), {}, {}, False
    called = read_call(own)
    if called and called[0] in PROPORTIONS and len(called[1]) == 2:
        own, data["trials"] = called[1]
    elif called and called[0] in ("cens", "censored") and len(called[1]) in (2, 3):
        own, *rest_of = called[1]
        data |= dict(zip(("censored", "upper"), rest_of, strict=False))
    elif called and called[0] in ("truncated", "constrained") and len(called[1]) > 1 and not bar:
        own, *bounds = called[1]
        data |= _bounds(text.strip(), bounds, data)
    elif called and called[0] == "weighted" and len(called[1]) == 2 and not bar:
        own, roles["weights"] = called[1][0], column_of(called[1][1])
    elif called and called[0] == "cbind" and len(called[1]) > 1 and not bar:
        own, *others = called[1]
        names = [column_of(one) for one in called[1]]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"`formula`: {text.strip()} has {name} twice: each category is one column of counts.")
        data |= {COUNTED + column_of(other): other for other in others}
    elif called and called[0] == "Surv":
        raise ValueError(
            f"`formula`: {own} is written {called[1][0]} | cens(c), with c 0 where the event was seen and 1 where not."
        )
    if bar:
        for part in parts_between(rest, "+"):
            found = read_call(part)
            name, given = found or (part.strip(), [])
            if name == "trials" and len(given) == 1 and "trials" not in data:
                data["trials"] = given[0]
            elif name == "cens" and len(given) in (1, 2) and "censored" not in data:
                data |= dict(zip(("censored", "upper"), given, strict=False))
            elif name == "se" and given and "se" not in data:
                data["se"], options = given[0], dict(keywords(given[1:]))
                sigma = options.pop("sigma", "False").lower() in ("true", "t")
                if options or len(given) > 2 or len(given) > len(keywords(given)) + 1:
                    raise ValueError(f"`formula`: `| {part.strip()}` takes a column, and sigma=True or not.")
            elif name == "trunc" and given:
                data |= _bounds(part.strip(), given, data)
            elif name in ARGUMENTS and len(given) == 1 and ARGUMENTS[name] not in roles:
                roles[ARGUMENTS[name]] = column_of(given[0])
            elif name in BESIDE:
                raise ValueError(f"`formula`: `| {part.strip()}` is not known: {_filled(BESIDE[name], given)}.")
            else:
                raise ValueError(
                    f"`formula`: beside the response may stand `| trials(n)`, `| cens(c)`, `| trunc(lb=a)`, "
                    f"`| se(s)`, `| weights(w)` or `| rate(t)`, once each, got `| {part.strip()}`."
                )
    return Response(own, data, roles, sigma)


def _bounds(part, given, before):
    """The ends of trunc(lb, ub) but for infinite ones, each given once."""
    plain, named = [one for one in given if "=" not in one], keywords(given)
    names = [*("lb", "ub", "")[: len(plain)], *(name for name, _ in named)]
    if len(plain) > 2 or not {*names} <= {"lb", "ub"} or len({*names, *before}) < len(names) + len(before):
        raise ValueError(f"`formula`: `| {part}` takes lb=, ub= or both, once each.")
    bounds = dict(zip(names, [*plain, *(bound for _, bound in named)], strict=True))
    for end, nowhere in (("lb", ("inf", "np.inf")), ("ub", ("-inf", "-np.inf"))):
        if bounds.get(end, "").lower().lstrip("+") in nowhere:
            raise ValueError(f"`formula`: `| {part}` leaves no responses that could be seen.")
    return {end: bound for end, bound in bounds.items() if bound.lower().lstrip("+-") not in ("inf", "np.inf")}


def keywords(given: Iterable[str]) -> list[tuple[str, str]]:
    """Names and values of the arguments of a call that have one."""
    parts = [one.partition("=") for one in given if "=" in one]
    return [(name.strip(), value.strip()) for name, _, value in parts]


def translated(text: str, columns: Iterable[str] | None = None, used: Sequence[str] = ()) -> str:
    """One side of a formula as it is described: ``Q("a b")`` in backticks, ``.`` written out, and ``**`` for ``^``.

    `columns` are those of the table, where they are known; ``.`` does not stand for the `used` ones, as the response.
    """
    text = re.sub(r"\bQ\(\s*(['\"])(.+?)\1\s*\)", r"`\2`", text)
    pieces = re.split(f"({QUOTED})", text)  # names and texts as they are, at odd places
    for k in range(0, len(pieces), 2):
        pieces[k] = pieces[k].replace("^", "**")
        pieces[k] = re.sub(r",\s*(Sum|Treatment)\s*\)", r", \1())", pieces[k])  # as C(x, Sum) is written elsewhere
        if re.search(r"(?<![\w.)\]])\.(?![\w.])", pieces[k]):
            if columns is None:
                raise ValueError("`formula`: `.` stands for the columns of a table in memory: name those of a file.")
            others = [f"`{name}`" if not name.isidentifier() else name for name in columns if name not in used]
            if not others:
                raise ValueError("`formula`: `.` stands for all other columns, and the table has no other.")
            pieces[k] = re.sub(r"(?<![\w.)\]])\.(?![\w.])", f"({' + '.join(others)})", pieces[k])
    return "".join(pieces)


#: Operators of Python that formulae does not read, and what to write.
WRITTEN = {ast.Mod: "np.mod(x, z)", ast.FloorDiv: "np.floor_divide(x, z)", ast.BitAnd: "np.logical_and(x, z)"}
WRITTEN |= {ast.BitOr: "np.logical_or(x, z)"}


def bracketed(text: str) -> str:
    """A formula with brackets around powers in its functions, where formulae does not read them as Python and R do.

    It takes ``-x**2`` for the square of -x, and ``x**2**3`` for the cube of a square. Refused are two comparisons in a
    row, of which it takes the first result for a number, and operators that it has not.
    """
    marked = re.sub(QUOTED, lambda found: "x" * len(found.group()), text)
    names = re.sub(r"(?<![\w.])[^\W\d][\w.]*", lambda found: "x" * len(found.group()), re.sub(r"\s", " ", marked))
    added, end = [], 0
    for found in re.finditer(r"(?<=[\w.])\s*\(|\{", marked):
        begin = found.end()
        if begin < end:
            continue  # within the one before
        end = _end(marked.replace("{", "(").replace("}", ")"), begin)
        shift = begin - len("x(")
        try:
            tree = ast.parse(f"x({names[begin : end - 1]})", mode="eval")
        except SyntaxError:
            continue  # formulae says what it cannot read
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and len(node.ops) > 1:
                given = text[shift + node.col_offset : shift + node.end_col_offset]
                raise ValueError(f"{given!r} compares twice: write the product of two tests, (a < x) * (x < b)")
            if isinstance(node, ast.BinOp) and type(node.op) in WRITTEN:
                given = text[shift + node.col_offset : shift + node.end_col_offset]
                raise ValueError(f"{given!r} has an operator that is not read: write {WRITTEN[type(node.op)]}")
            inner = getattr(node, "operand", None)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                inner = node.right
            if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Pow):
                added += [(shift + inner.col_offset, "("), (shift + inner.end_col_offset, ")")]
    cuts = [0, *(place for place, _ in sorted(added)), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(cuts)]
    return "".join(itertools.chain(*itertools.zip_longest(pieces, (mark for _, mark in sorted(added)), fillvalue="")))


class Bar(NamedTuple):
    """What stands in brackets with a bar: effects of groups."""

    text: str  #: within the brackets, with one bar
    independent: bool  #: whether the bar is double
    identifier: str = ""  #: p of (1 | p | g)


def bars(text: str) -> tuple[str, list[Bar]]:
    """A formula as formulae reads it, with ``|`` for ``||`` and for ``|p|``, and its effects of groups."""
    marked = re.sub(QUOTED, lambda quoted: "_" * len(quoted.group()), text)
    found, cuts, opened = [], [], []  # of each open bracket: where, whether of a call, and the bar in it
    for k, letter in enumerate(marked):
        if letter == "(":
            called = bool(re.search(r"[\w.]\s*$", marked[:k])) or bool(opened and opened[-1][1])
            opened.append([k, called, None])
        elif letter == "|" and opened and not opened[-1][1] and opened[-1][2] is None:
            opened[-1][2] = marked[k : k + 2] == "||"
        elif letter == ")" and opened:
            begin, _, double = opened.pop()
            if double is not None:
                inside = text[begin + 1 : k]
                middle = re.fullmatch(r"[^|]*\|(\s*([\w.]+)\s*\|)[^|]*", marked[begin + 1 : k])
                name = inside[slice(*middle.span(2))] if middle else ""
                if re.fullmatch(r"[\w.]+", name):
                    first, last = middle.span(1)
                    cuts.append((begin + 1 + first, begin + 1 + last))
                    found.append(Bar(inside[:first] + inside[last:], False, name))
                else:
                    found.append(Bar(inside.replace("||", "|", 1) if double else inside, double))
    for first, last in reversed(cuts):
        text = text[:first] + text[last:]
    pieces = re.split(f"({QUOTED})", text)  # names and texts as they are, at odd places
    plain = "".join(piece.replace("||", "|") if k % 2 == 0 else piece for k, piece in enumerate(pieces))
    return plain, found


def plainly(formula: str) -> str:
    """A formula as it is described, whatever stands beside the response."""
    left, right = split(formula)
    return f"{translated(read_response(left).text)} ~ {translated(right)}" if right else formula


def _most_arguments(function):
    """How many arguments a function of NumPy computes with: those before the one that it writes to."""
    if isinstance(function, np.ufunc):
        return function.nin
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return math.inf
    return names.index("out") if "out" in names else math.inf


def check_words(text: str, environment: Any) -> None:
    """Refuse terms of other tools that there are not, unless the user's code has a function of that name.

    And an argument that is given twice, of which formulae takes the last, or that NumPy's functions of each number do
    not compute with.
    """
    for found in re.finditer(r"(?<![\w`])(\w+)\(", text):
        call = read_call(text[found.start() : _end(text, found.end())])
        names = [name for name, value in keywords(call[1] if call else ()) if name.isidentifier() and value[:1] != "="]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"`formula`: {found.group(1)}(...) is given {name!r} twice.")
        function = getattr(np, found.group(1), None)
        of_numpy = text[: found.start()].endswith("np.") or FUNCTIONS.get(found.group(1)) is function
        known = function is not None and of_numpy
        most = _most_arguments(function) if known and call else math.inf
        if len(call[1] if call else ()) > most or known and {"out", "where"} & set(names):
            taken, given = min(most, len(call[1]) - 1), ", ".join(call[1])
            raise ValueError(
                f"`formula`: {found.group(1)}(...) takes {taken} of {given}: NumPy would write the result into what "
                "follows, or pass rows over, and not compute with it."
            )
    for found in re.finditer(r"(?<![\w.`])(\w+)\(", text):
        name = found.group(1)
        if name not in INSTEAD:
            continue
        try:
            environment.namespace[name]
        except KeyError:
            given = (read_call(text[found.start() : _end(text, found.end())]) or ("", []))[1]
            raise ValueError(f"`formula`: {name}(...) is no term here; {_filled(INSTEAD[name], given)}.") from None


def check_spaces(text: str, columns: Iterable[str] | None) -> None:
    """Refuse a column whose name has spaces and stands without backticks."""
    plain = " ".join(re.sub(QUOTED, "``", text).split())
    for name in columns or ():
        if re.fullmatch(r"\w+( \w+)+", name) and re.search(rf"(?<![\w.]){name}(?!\w)", plain):
            raise ValueError(f"`formula`: the name of the column {name!r} has spaces: write it in backticks, `{name}`.")


def columns_of(data: Any) -> list[str] | None:
    """Names of the columns of a table in memory; None of files."""
    names = data.keys() if isinstance(data, dict) else getattr(data, "columns", None)
    return None if names is None or hasattr(data, "dask") else [str(name) for name in names]


def column_of(text: str) -> str:
    """A column as it is called, without backticks."""
    return text.strip().strip("`")


def _filled(template, given):
    """The words with the arguments of the call, as far as there are some."""
    plain = [one for one in given if "=" not in one] or ["x"]
    return template.format(*plain, *["z"] * 2, **({"by": "a"} | dict(keywords(given))))


def read_call(text: str) -> tuple[str, list[str]] | None:
    """Name and arguments of a text that is one call; None of others."""
    found = re.match(r"(\w+)\((.*)\)$", text.strip(), re.DOTALL)
    if not found or _end(text.strip(), found.start(2)) != len(text.strip()):
        return None
    return found.group(1), [part.strip() for part in parts_between(found.group(2), ",")]


def pieces_between(text: str) -> list[tuple[str, str]]:
    """What stands between + and - that are in no brackets and no names, each with the sign before it."""
    return [(sign or "+", piece.strip()) for sign, piece in _between(text, "+-") if piece.strip()]


def parts_between(text: str, mark: str) -> list[str]:
    """A text between marks that are in no brackets and no names."""
    return [part for _, part in _between(text, mark)]


def _between(text, marks):
    """Pieces of a text between marks that are in no brackets and no names, each with the mark before it."""
    found, depth, quoted = [["", ""]], 0, False
    for letter in text:
        quoted ^= letter == "`"
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter in marks and depth == 0 and not quoted:
            found.append([letter, ""])
        else:
            found[-1][1] += letter
    return found


def _end(text, first):
    """Behind the bracket that closes the one before `first`."""
    depth = 1
    for k in range(first, len(text)):
        depth += {"(": 1, ")": -1}.get(text[k], 0)
        if depth == 0:
            return k + 1
    return len(text)
