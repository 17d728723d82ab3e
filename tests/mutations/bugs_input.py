"""Bugs in what is done with input of every kind: tables, sizes, seeds, arguments that do not fit, damage."""

from tests.mutations.bugs import Bug

FORMATS = "pdmp/data/formats.py"
READ = "tests/data/test_tables.py"

BUGS = [
    Bug(name, file, old, new, tuple(tests.split()))
    for name, file, old, new, tests in (
        (
            "input: rows are counted without those that were left out",
            FORMATS,
            "k = k if self.kept is None else int(self.kept[k])",
            "k = int(k)",
            READ,
        ),
    )
]
