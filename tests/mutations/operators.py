"""Bugs that operators plant in the syntax tree of the packages, drawn by a seed, and the tests that see them.

    pytest -m "exact and not slow" -p tests.mutations.reached --reached FOLDER    once: which test calls what
    python -m tests.mutations.operators --reached FOLDER --seed 1 --count 60 pdmp/engine pdmp/flow.py

Of each bug those tests run that call its function, the quickest first, in plain Python, until one fails. Those that no
test sees are printed with their share by room. A person reads them: some change nothing that anybody could see, as a
bound of a search, or a guess that a later step corrects.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import pathlib
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from tests.mutations import plain as forked
from tests.mutations.__main__ import copy_tree
from tests.mutations.matching import ROOT
from tests.mutations.reached import read

SERVER = forked.server() if __name__ == "__main__" else None
SECONDS = 60.0  #: of tests a bug, as they were measured
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
NAMES |= {"cos": "sin", "mean": "median", "empty": "ones", "zeros": "ones"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One bug: what stands at a place of a file, what is put there, and the function that it is in."""

    file: str
    line: int
    start: int
    stop: int
    old: str
    new: str
    operator: str
    function: str  #: file:line, as `tests.mutations.reached` names it

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
        yield "factor put in", doubled(node.value), node.value
    elif isinstance(node, ast.Subscript):
        index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        yield from (("index fixed", ast.Constant(0), part) for part in index if isinstance(part, ast.Name))
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
        for other in COMPARISONS[type(node.ops[0])]:
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
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "off by one", ast.Constant(node.value + 1)
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
    if len(node.args) > 1 and not starred:
        yield "arguments swapped", changed(node, args=[node.args[1], node.args[0], *node.args[2:]])
    if len(node.args) in (1, 2) and not starred and not name[:1].isupper():
        yield from (("call dropped", argument) for argument in node.args)
    if not node.args and not node.keywords and isinstance(node.func, ast.Attribute):
        yield "call dropped", node.func.value
    for k in range(len(node.keywords)):
        yield "option dropped", changed(node, keywords=[*node.keywords[:k], *node.keywords[k + 1 :]])


def changed(node, **fields):
    """A copy with other fields."""
    return type(node)(**{name: fields.get(name, getattr(node, name)) for name in node._fields}, lineno=0)


def visit(node, function, path=()):
    """(node, function) of what is computed: without annotations, decorators, messages and types for checkers."""
    if isinstance(node, ast.FunctionDef):
        function = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        parts = [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.body]
    elif isinstance(node, ast.AnnAssign):
        parts = [node.value] if node.value else []
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        parts = node.orelse
    elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        parts = []
    else:
        parts = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Call) and "warn" in ast.unparse(node.func):
            parts = []
    if function is not None:
        yield node, function
    for part in parts:
        yield from visit(part, function)


def mutants(path):
    """All bugs of a file."""
    source = path.read_text(encoding="utf-8")
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    file, data = str(path.relative_to(ROOT)), source.encode()
    found = []
    for node, function in visit(ast.parse(source), None):
        for operator, other, place in variants(node):
            begin = lines[place.lineno - 1] + place.col_offset
            end = lines[place.end_lineno - 1] + place.end_col_offset
            start, stop = len(data[:begin].decode()), len(data[:end].decode())
            new = ast.unparse(ast.fix_missing_locations(other))
            if isinstance(other, ast.expr):
                new = f"({new})"
            found.append(
                Mutant(file, place.lineno, start, stop, source[start:stop], new, operator, f"{file}:{function}")
            )
    return found


def tests_of(mutant, reached):
    """The tests that call its function, the quickest first, and whether those left out are for their time."""
    calling = sorted((seconds, test) for test, (seconds, places) in reached.items() if mutant.function in places)
    total, chosen = 0.0, []
    for seconds, test in calling:
        total += seconds
        if total > SECONDS and chosen:
            break
        chosen.append(test)
    return chosen, len(calling)


def plant(mutant, chosen, seconds=400):
    """Whether one of the tests fails, and what pytest said last."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(folder)
        path = tree / mutant.file
        path.write_text(mutant.text(path.read_text(encoding="utf-8")), encoding="utf-8")
        code, printed = forked.run(SERVER, tree, chosen, seconds)
    said = [line for line in printed.splitlines() if line.strip()]
    if code == 4:
        raise RuntimeError(
            f"pytest could not run {chosen}; the folder of --reached is of other tests: {printed[-2000:]}"
        )
    return code not in (0, 5), time.perf_counter() - began, said[-1] if said else ""


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=["pdmp", "discrete"])
    parser.add_argument("--reached", required=True, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    reached = read(args.reached)
    files = [p for path in args.paths for p in ([ROOT / path] if path.endswith(".py") else (ROOT / path).rglob("*.py"))]
    every = [mutant for path in sorted(files) for mutant in mutants(path)]
    drawn = random.Random(args.seed).sample(every, min(args.count, len(every)))
    chosen = [tests_of(mutant, reached) for mutant in drawn]
    rooms, survived = collections.Counter(), collections.Counter()
    with ThreadPoolExecutor(args.jobs) as pool:
        outcomes = pool.map(plant, drawn, [tests for tests, _ in chosen])
        for mutant, (tests, calling), (caught, seconds, said) in zip(drawn, chosen, outcomes, strict=True):
            room = "/".join(pathlib.Path(mutant.file).parts[:2])
            rooms[room] += 1
            if not tests:
                caught, said = False, "no test calls it"
            survived[room] += not caught
            word = "caught" if caught else "SURVIVED"
            print(f"{word} {seconds:4.0f} s  {mutant.file}:{mutant.line} {mutant.operator}", flush=True)
            if not caught:
                print(f"    {mutant.old}\n    -> {mutant.new}\n    {len(tests)} of {calling} tests: {said}", flush=True)
    for room in sorted(rooms):
        print(f"{room:30} {survived[room]:4} of {rooms[room]}")
    print(f"{sum(survived.values())} of {len(drawn)} survived, of {len(every)} that there are")


if __name__ == "__main__":
    sys.exit(main())
