"""Planted bugs in the search for a mode with batches, and in who asks for it."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/models/test_descent.py",)
DESCENT = "pdmp/models/descent.py"

BUGS = [
    Bug(f"descent: {name}", file, old, new, TESTS)
    for name, file, old, new in [
        ("the bias of the first averages", DESCENT, "math.sqrt(1.0 - 0.999**k) / (1.0 - 0.9**k)", "1.0"),
        ("the search does not end", DESCENT, "            if self.error <= self.tolerance:\n                raise _Reached\n", ""),
    ]
]  # fmt: skip
