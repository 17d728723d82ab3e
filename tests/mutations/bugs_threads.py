"""Bugs in passes over rows on threads, and in rows that are drawn and asked for ahead."""

from tests.mutations.bugs import Bug

ALIAS = "pdmp/gradients/alias.py"
ASKED = "tests/formulas/test_parts.py::test_rows_of_large_files_are_asked_for"

BUGS = [
    Bug(f"passes: {name}", file, old, new, (tests,), "formulae" if "formulas" in tests else "")
    for name, file, old, new, tests in [
        ("entries of the table are not asked for", ALIAS, "        if self.asks:\n            ask(self.table, k)", "        pass", ASKED),
    ]
]  # fmt: skip
