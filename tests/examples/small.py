"""Run an example at its smallest: ``python -m tests.examples.small examples/super_efficiency.py [arguments]``.

Every number of the script that is 100 or more, be it data, steps or a time, is divided by `DIVISOR`, and no chain is
longer than `EVENTS`. What the script then finds says nothing; that it runs to its end and writes its pictures does.
Exit code 0 if it ended, whether or not its criteria were met.
"""

import ast
import functools
import pathlib
import sys

from sklearn import datasets

import pdmp
from pdmp.formulas import fitting

DIVISOR = 100
LARGEST = 10**9  #: what is larger than this afterwards becomes this
EVENTS = 30


class Smaller(ast.NodeTransformer):
    """Divides large numbers, powers like 10**5 among them."""

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 100 <= value < float("inf"):
            return node
        least = 20 if value >= 500 else 2  # as many data as there may be groups of, and a batch that is not one datum
        return ast.copy_location(ast.Constant(value=type(value)(min(max(value // DIVISOR, least), LARGEST))), node)

    def visit_keyword(self, node):
        return node if node.arg in ("dpi", "seed", "levels") else self.generic_visit(node)

    def visit_BinOp(self, node):
        both = node.left, node.right
        if isinstance(node.op, ast.Pow) and all(isinstance(part, ast.Constant) for part in both):
            return self.visit_Constant(ast.copy_location(ast.Constant(value=node.left.value**node.right.value), node))
        return self.generic_visit(node)


def with_few_rows(load):
    """A table that scikit-learn ships, every eighth row: in plain Python all take a minute."""

    def loaded(*, return_X_y=False, **options):
        table = load(**options)
        table.data, table.target = table.data[::8], table.target[::8]
        return (table.data, table.target) if return_X_y else table

    return loaded


def shorten():
    """No chain of this process is longer than `EVENTS`, be it of `pdmp.sample` or of `pdmp.regression`."""
    for name in ("load_breast_cancer", "load_diabetes"):
        setattr(datasets, name, with_few_rows(getattr(datasets, name)))
    sample = pdmp.sample

    @functools.wraps(sample)
    def short(*args, **options):
        return sample(*args, **options | {"events": min(options.get("events", EVENTS), EVENTS)})

    pdmp.sample = fitting.sample = short


def run(script):
    """Run the script in this process."""
    shorten()
    tree = ast.fix_missing_locations(Smaller().visit(ast.parse(script.read_text(encoding="utf-8"), str(script))))
    exec(compile(tree, str(script), "exec"), {"__name__": "__main__", "__file__": str(script)})


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, str(pathlib.Path(sys.argv[0]).parent))
    try:
        run(pathlib.Path(sys.argv[0]))
    except SystemExit as end:
        if end.code not in (None, 0, 1):
            raise
