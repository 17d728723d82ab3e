"""Bugs that operators plant in the syntax tree of the packages, drawn by a seed, and the tests that see them.

    pytest -m "exact and not slow" -p tests.mutations.reached --reached=FOLDER    once: which test executes what
    python -m tests.mutations.operators --reached FOLDER --seed 1 --count 60 pdmp/engine pdmp/flow.py

One bug is planted in each line that is drawn. Those tests run that execute its statement, the quickest first, in plain
Python, until one fails. Those that no test sees are printed with their share by room. A person reads them: some change
nothing that anybody could see, as a bound of a search, or a guess that a later step corrects.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import pathlib
import random
import re
import sys
from collections.abc import Sequence

from tests.mutations import live
from tests.mutations.matching import ROOT
from tests.mutations.reached import Reached

ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "any": "all", "all": "any"}
NAMES |= {"floor": "ceil", "ceil": "floor", "sum": "max", "argmin": "argmax", "argmax": "argmin", "sin": "cos"}
NAMES |= {"cos": "sin", "mean": "median", "zeros": "ones"}
#: Calls and options without which nearly every value is what it was.
CONVERSIONS = {"float", "list", "tuple", "asarray", "ascontiguousarray", "str", "bool", "cast"}
CHECKS = {"strict", "stacklevel", "encoding"}
SYMMETRIC = {"max", "min", "maximum", "minimum", "hypot", "logaddexp", "allclose", "array_equal"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One bug: what stands at a place of a file, what is put there, and the lines of the statement that it is in.

    Of a constant of a module these are the lines of its functions that name it.
    """

    file: str
    line: int
    start: int
    stop: int
    old: str
    new: str
    operator: str
    lines: Sequence[int]

    def text(self, source):
        return source[: self.start] + self.new + source[self.stop :]


def variants(node):
    """(operator, what is put there, what it stands for) of all single changes to a node or to a part of it."""
    for operator, other in replacements(node):
        yield operator, other, node
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
        yield from (("condition decided", ast.Constant(value), node.test) for value in (False, True))
    elif isinstance(node, ast.comprehension):
        yield from (("condition decided", ast.Constant(True), test) for test in node.ifs)
    elif isinstance(node, ast.AugAssign):
        yield "factor put in", doubled(node.value), node.value
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Name | ast.Subscript | ast.Call):
        if not re.match("isinstance|any|all", ast.unparse(node.value)):
            yield "factor put in", doubled(node.value), node.value
    elif isinstance(node, ast.Subscript):
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        named = [part for part in index if isinstance(part, ast.Name) and not part.id.isupper()]
        yield from (("index fixed", ast.Constant(0), part) for part in named)
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr) and node.value is not None:
        yield from exchanged(node.value)


def exchanged(expression):
    """Names of an expression, and attributes of one object, each replaced by the next of them."""
    names = [part for part in ast.walk(expression) if isinstance(part, ast.Name)]
    called = {id(part.func) for part in ast.walk(expression) if isinstance(part, ast.Call)}
    holders = {id(part.value) for part in ast.walk(expression) if isinstance(part, ast.Attribute)}
    names = [part for part in names if id(part) not in called | holders]
    every = list(dict.fromkeys(part.id for part in names))
    for part in names:
        other = every[(every.index(part.id) + 1) % len(every)]
        if other != part.id:
            yield "name exchanged", ast.Name(other), part
    found = [part for part in ast.walk(expression) if isinstance(part, ast.Attribute) and id(part) not in called]
    for part in found:
        same = list(dict.fromkeys(a.attr for a in found if ast.dump(a.value) == ast.dump(part.value)))
        other = same[(same.index(part.attr) + 1) % len(same)]
        if other != part.attr:
            yield "attribute exchanged", changed(part, attr=other), part


def doubled(node):
    return ast.BinOp(ast.Constant(2.0), ast.Mult(), node)


def replacements(node):
    """(operator, what stands for the node) of the changes to it as a whole."""
    if isinstance(node, ast.BinOp):
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", changed(node, op=ARITHMETIC[type(node.op)]())
        kind = "term dropped" if isinstance(node.op, ast.Add | ast.Sub) else "factor dropped"
        yield kind, node.left
        yield kind, node.right
        if isinstance(node.op, ast.Mult | ast.Div):
            yield "sign put in", ast.UnaryOp(ast.USub(), node)
            yield "factor put in", doubled(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        real = any(isinstance(p, ast.Constant) and isinstance(p.value, float) for p in (node.left, *node.comparators))
        for other in COMPARISONS[type(node.ops[0])][1 if real else 0 :]:  # x <= 0.5 for x < 0.5 is seen by nobody
            yield "comparison", changed(node, ops=[other()])
        yield from (("condition decided", ast.Constant(value)) for value in (False, True))
    elif isinstance(node, ast.BoolOp):
        yield "and for or", changed(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
        for k in range(len(node.values)):
            rest = [*node.values[:k], *node.values[k + 1 :]]
            yield "condition dropped", changed(node, values=rest) if len(rest) > 1 else rest[0]
        yield from (("condition decided", ast.Constant(value)) for value in (False, True))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield "sign dropped", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "truth value", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) <= 100:
        yield "off by one", ast.Constant(node.value + 1)
        if node.value != 0:  # many arrays have one element, whose index may be -1 as well
            yield "off by one", ast.Constant(node.value - 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float) and 0.0 < node.value < 1e300:
        yield "factor", ast.Constant(node.value * 1.5)
    elif isinstance(node, ast.Call):
        yield from calls(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        yield "slice dropped", node.value
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield "call dropped", node.value
    elif isinstance(node, ast.AugAssign):
        yield "assigned for added", ast.Assign([node.target], node.value, lineno=0)
        if type(node.op) in ARITHMETIC:
            yield "arithmetic", changed(node, op=ARITHMETIC[type(node.op)]())
        yield "statement dropped", ast.Pass()
    elif (
        isinstance(node, ast.Break | ast.Continue)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute))
    ):
        yield "statement dropped", ast.Pass()
    elif isinstance(node, ast.IfExp):
        yield "branch", node.body
        yield "branch", node.orelse


def calls(node):
    """Of a call: another function, arguments in another order, one of them in its place, or without an option."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES and not node.keywords:
        func = copy.deepcopy(node.func)
        setattr(func, "attr" if isinstance(func, ast.Attribute) else "id", NAMES[name])
        yield "max for min", changed(node, func=func)
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    if len(node.args) > 1 and not starred and not (name in SYMMETRIC and len(node.args) == 2):
        yield "arguments swapped", changed(node, args=[node.args[1], node.args[0], *node.args[2:]])
    if len(node.args) in (1, 2) and not starred and not name[:1].isupper() and name not in CONVERSIONS:
        yield from (("call dropped", argument) for argument in node.args)
    if not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
        yield "call dropped", node.func.value
    for k in (k for k, option in enumerate(node.keywords) if option.arg not in CHECKS):
        yield "option dropped", changed(node, keywords=[*node.keywords[:k], *node.keywords[k + 1 :]])


def changed(node, **fields):
    """A copy with other fields."""
    return type(node)(**{name: fields.get(name, getattr(node, name)) for name in node._fields}, lineno=0)


def visit(node, lines=None):
    """(node, lines of its statement) of what is computed: without annotations, decorators and messages.

    The lines of a compound statement are those before its body, of a default those of the function's body.
    """
    if isinstance(node, ast.FunctionDef):
        lines = range(node.body[0].lineno, node.end_lineno + 1)
        parts = [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value] if node.value else []
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        parts = node.orelse
    elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        parts = []
    else:
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call) and re.search("warn|require", ast.unparse(node.func)):
            parts = []
    if lines is not None:
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            body = getattr(node, "body", None)
            lines = range(node.lineno, max(body[0].lineno, node.lineno + 1) if body else node.end_lineno + 1)
        yield node, lines
    for part in parts:
        yield from visit(part, lines)


def constants(tree):
    """(node, lines where it is used) of what a module's constants, as ``FEW = 10``, are computed from."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    names = [name for function in functions for name in ast.walk(function) if isinstance(name, ast.Name)]
    for node in tree.body:
        if isinstance(node, ast.Assign) and live.constants_of(node) and not isinstance(node.value, ast.Call):
            used = sorted({name.lineno for name in names if name.id in live.constants_of(node)})
            yield from ((part, used) for part in ast.walk(node.value) if used)


def mutants(path):
    """All bugs of a file."""
    source = path.read_text(encoding="utf-8")
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    file, data, tree = str(path.relative_to(ROOT)), source.encode(), ast.parse(source)
    found = []
    for node, within in (*visit(tree), *constants(tree)):
        for operator, other, place in variants(node):
            begin = lines[place.lineno - 1] + place.col_offset
            end = lines[place.end_lineno - 1] + place.end_col_offset
            start, stop = len(data[:begin].decode()), len(data[:end].decode())
            new = ast.unparse(ast.fix_missing_locations(other))
            if isinstance(other, ast.expr):
                new = f"({new})"
            found.append(Mutant(file, place.lineno, start, stop, source[start:stop], new, operator, within))
    return found


def drawn(paths, seed, count, of_constants=False):
    """Bugs of as many lines, one in each, and how many bugs and lines there are; `of_constants`: of modules alone."""
    files = sorted(
        p for path in paths for p in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))
    )
    places = collections.defaultdict(list)
    for path in files:
        for mutant in mutants(path):
            if of_constants and isinstance(mutant.lines, range):
                continue
            places[mutant.file, mutant.line].append(mutant)
    generator = random.Random(seed)
    lines = generator.sample(sorted(places), min(count, len(places)))
    return [generator.choice(places[line]) for line in lines], sum(map(len, places.values())), len(places)


def tests_of(mutant, reached, limit):
    """The quickest of the tests that execute it, in `limit` seconds, how long they take and how many there are."""
    every = reached.tests(mutant.file, mutant.lines)
    total, chosen = 0.0, []
    for test in every:
        total += reached.seconds[test]
        if total > limit and chosen:
            break
        chosen.append(test)
    return chosen, total, len(every)


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["pdmp", "discrete"])
    parser.add_argument("--reached", required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="of lines, with one bug in each")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests a bug, as they were measured")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--constants", action="store_true", help="in constants of modules alone, as FEW = 10")
    args = parser.parse_args()
    reached = Reached(args.reached)
    bugs, every, lines = drawn(args.paths, args.seed, args.count, args.constants)
    chosen = [tests_of(mutant, reached, args.seconds) for mutant in bugs]
    rooms, survived, unreached = collections.Counter(), collections.Counter(), collections.Counter()
    for k, caught, seconds, said in live.attempts(bugs, chosen, args.jobs):
        mutant, (tests, _, calling) = bugs[k], chosen[k]
        room = "/".join(pathlib.Path(mutant.file).parts[:2])
        rooms[room] += 1
        survived[room] += not caught
        unreached[room] += not tests
        word = "caught" if caught else "SURVIVED"
        print(f"{word} {seconds:4.1f} s  {mutant.file}:{mutant.line} {mutant.operator}", flush=True)
        if not caught:
            print(f"    {mutant.old}\n    -> {mutant.new}\n    {len(tests)} of {calling} tests: {said}", flush=True)
    for room in sorted(rooms):
        print(f"{room:30} {survived[room]:4} of {rooms[room]}, {unreached[room]} in lines that no test executes")
    print(f"{sum(survived.values())} of {len(bugs)} survived, of {every} in {lines} lines")


if __name__ == "__main__":
    sys.exit(main())
