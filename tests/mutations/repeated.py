"""Which tests the quick tier can leave out: what they execute, several quicker ones execute as well.

    pytest -m "exact and not slow" -p tests.mutations.reached --reached=FOLDER
    python -m tests.mutations.repeated FOLDER

The second command writes ``tests/repeated.json``. `pytest` leaves the tests named there to ``pytest --release``, or to
``pytest --full``. From the longest on, a case goes to the first if each line that it executes is still executed by
three tests that stay, and if another case of its function stays. Of what is left the longest tests go to the second if
each of their lines is. What is short stays.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib

from tests.mutations.matching import ROOT
from tests.mutations.reached import Reached

OTHERS = 3  #: tests that stay, for each line
SHORTEST = {"release": 0.04, "full": 0.015}  #: seconds, with the recorder's own
FILE = ROOT / "tests/repeated.json"


def repeated(record):
    """Names of those tests by their tier, from the longest on."""
    lines = collections.defaultdict(set)
    for part in record.parts:
        for file, executed in part["lines"].items():
            for line, tests in executed.items():
                for test in tests:
                    lines[part["names"][test]].add((file, line))
    others = collections.Counter(place for test in record.seconds for place in lines[test])
    cases = collections.Counter(test.partition("[")[0] for test in record.seconds)
    found = {"release": [], "full": []}
    for tier, here in found.items():
        for test in sorted(record.seconds, key=record.seconds.get, reverse=True):
            function = test.partition("[")[0]
            if record.seconds[test] < SHORTEST[tier]:
                break
            if test in found["release"] or tier == "release" and cases[function] == 1:
                continue
            if lines[test] and all(others[place] > OTHERS for place in lines[test]):
                cases[function] -= 1
                others.subtract(lines[test])
                here.append(test)
    return found


def text_of(tests):
    """Names by module and function: a line for each function, with the ends of its cases."""
    modules = collections.defaultdict(lambda: collections.defaultdict(list))
    for test in sorted(tests):
        module, _, name = test.partition("::")
        function, bracket, case = name.partition("[")
        modules[module][function].append(bracket + case)
    parts = [
        f'"{module}": {{\n'
        + ",\n".join(f'  "{name}": {json.dumps(cases, ensure_ascii=False)}' for name, cases in functions.items())
        + "\n}"
        for module, functions in modules.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="the record of which test executes which line")
    record = Reached(parser.parse_args().folder)
    found = repeated(record)
    written = ",\n".join(f'"{tier}": {text_of(tests)}' for tier, tests in found.items())
    FILE.write_text(f"{{\n{written}\n}}\n", encoding="utf-8")
    for tier, tests in found.items():
        seconds, every = sum(record.seconds[test] for test in tests), sum(record.seconds.values())
        print(f"for --{tier}: {len(tests)} of {len(record.seconds)} tests, {seconds:.0f} of {every:.0f} s")


if __name__ == "__main__":
    main()
