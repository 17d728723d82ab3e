"""Which cases of the quick tier repeat others: what they execute, several quicker ones execute as well.

    pytest -m "exact and not slow" -p tests.mutations.reached --reached=FOLDER
    python -m tests.mutations.repeated FOLDER

The second command writes ``tests/repeated.json``. `pytest` leaves the tests named there to ``pytest --release``. From
the longest on, a case goes if each line that it executes is still executed by three tests that stay, and if another
case of its function stays. A function with a single case stays, and so does what is short.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib

from tests.mutations.matching import ROOT
from tests.mutations.reached import Reached

OTHERS = 3  #: tests that stay, for each line
SHORTEST = 0.1  #: seconds, with the recorder's own
FILE = ROOT / "tests/repeated.json"


def repeated(record):
    """Names of those cases, from the longest on."""
    lines = collections.defaultdict(set)
    for part in record.parts:
        for file, executed in part["lines"].items():
            for line, tests in executed.items():
                for test in tests:
                    lines[part["names"][test]].add((file, line))
    others = collections.Counter(place for test in record.seconds for place in lines[test])
    cases = collections.Counter(test.partition("[")[0] for test in record.seconds)
    found = []
    for test in sorted(record.seconds, key=record.seconds.get, reverse=True):
        function = test.partition("[")[0]
        if record.seconds[test] < SHORTEST:
            break
        if cases[function] > 1 and all(others[place] > OTHERS for place in lines[test]):
            cases[function] -= 1
            others.subtract(lines[test])
            found.append(test)
    return found


def lines_of(functions):
    """One line for each function."""
    return ",\n".join(f'  "{name}": {json.dumps(cases, ensure_ascii=False)}' for name, cases in functions.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="the record of which test executes which line")
    record = Reached(parser.parse_args().folder)
    found = repeated(record)
    written = collections.defaultdict(lambda: collections.defaultdict(list))
    for test in sorted(found):
        module, _, name = test.partition("::")
        function, bracket, case = name.partition("[")
        written[module][function].append(bracket + case)
    modules = (f'"{module}": {{\n{lines_of(functions)}\n}}' for module, functions in written.items())
    FILE.write_text("{\n" + ",\n".join(modules) + "\n}\n", encoding="utf-8")
    seconds = sum(record.seconds[test] for test in found)
    print(f"{len(found)} of {len(record.seconds)} tests, {seconds:.0f} of {sum(record.seconds.values()):.0f} s")


if __name__ == "__main__":
    main()
