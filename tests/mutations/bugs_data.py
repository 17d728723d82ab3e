"""Planted bugs in the data sets: splits, identifiers, checks of files, formats, and data made up."""

from __future__ import annotations

from tests.mutations.bugs import Bug

OWN, PUBLISHED = "tests/data/test_tables.py", "tests/data/test_published.py"
MOVIELENS = "pdmp/data/movielens.py"

BUGS = [
    Bug(f"data: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        (
            "pickles are not told from arrays",
            "pdmp/data/archives.py",
            "if dtype.hasobject:\n        raise Pickled",
            "if dtype.hasobject:\n        return True",
            OWN,
        ),
    ]
]
