"""The code of the pages: ``python -m tests.site.pages docs/start/index.md ...`` runs the blocks of each page, in order.

The blocks of a page share one namespace, as if a reader typed them one after the other. Numbers and chains are made
small, see `tests.examples.small`. A block is left out after a line ``<!-- needs: PACKAGE -->`` if the package is not
installed, and after ``<!-- not run: REASON -->``; what a page has left out is printed.
"""

import ast
import importlib.util
import pathlib
import re
import sys
import warnings
from typing import NamedTuple

from pdmp.automatic import metric
from pdmp.automatic.tempering import lines, rounds
from tests.examples import small

BLOCK = re.compile(r"^(?:<!-- (needs|not run): (.+?) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    condition: str  #: "", "needs" or "not run"
    value: str  #: of the condition
    line: int


def blocks(page):
    """The fenced blocks of a page that have a language."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m[3], m[4], m[1] or "", m[2] or "", text.count("\n", 0, m.start(4)) + 1) for m in BLOCK.finditer(text)
    ]


def run(page):
    """Run its Python, small; an error names page and line."""
    namespace, left_out = {"__name__": "__main__"}, []
    for block in blocks(page):
        if block.language != "python":
            continue
        missing = block.condition == "needs" and importlib.util.find_spec(block.value) is None
        if missing or block.condition == "not run":
            left_out.append(f"{page.name}:{block.line}: {block.condition} {block.value}")
            continue
        tree = ast.parse("\n" * (block.line - 1) + block.text, str(page))
        exec(compile(ast.fix_missing_locations(small.Smaller().visit(tree)), str(page), "exec"), namespace)
    return left_out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    small.shorten()
    small.LARGEST = 300
    metric.FIRST_WINDOW, metric.WINDOWS = 12, 1  # of the warm-up of the automatic sampler
    rounds.SCANS, lines.EVALUATIONS = 8, 300
    for name in sys.argv[1:]:
        print(f"{name}:", "; ".join(run(pathlib.Path(name))) or "all")
