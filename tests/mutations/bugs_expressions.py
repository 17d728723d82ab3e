"""Planted bugs in expressions: enclosures, derivatives, registers, rows of several kinds, and bounds of single rows."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TAPE = "pdmp/expressions/tape.py"
SUMS = "pdmp/models/sums_of_terms.py"
TAPES = "tests/expressions/test_tape.py"
MODELS = "tests/models/test_sums_of_terms.py"


BUGS = [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        (
            "enclosures: an extreme is missed",
            TAPE,
            "        if a <= -0.83 and b >= -0.85:\n            low = min(low, -0.12769)\n",
            "",
            TAPES,
        ),
        (
            "enclosures: the minimum of an even power is at an end",
            TAPE,
            "    if n % 2 == 0 and inside:\n        low = 0.0\n",
            "",
            TAPES,
        ),
        (
            "terms: batches are all of the first row's kind",
            SUMS,
            "and self.kind_of(rows[done + lanes]) == k:",
            "and k >= 0:",
            MODELS,
        ),
    ]
]
