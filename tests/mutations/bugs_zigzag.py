"""Planted bugs in Zig-Zag with exact sub-sampling, its bounds, and importance draws."""

from __future__ import annotations

from tests.mutations.bugs import Bug

ALIAS, ZIGZAG = "tests/gradients/test_alias.py", "tests/processes/test_subsampled_zigzag.py"
SUBSAMPLED = "pdmp/processes/subsampled_zigzag.py"
TABLE = "pdmp/gradients/alias.py"

BUGS = [
    Bug(f"zigzag: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        # the alias table
        (
            "alias: a column that becomes small is forgotten",
            TABLE,
            "if _give(table, waiting[low], waiting[high]):\n            waiting[low] = waiting[high]\n            low += 1",
            "if _give(table, waiting[low], waiting[high]):\n            low += 0",
            ALIAS,
        ),
        # importance
        (
            "importance: the sd without weights",
            "pdmp/gradients/control_variate.py",
            "            factor = self.drawing.factor(memory, k)\n            for j",
            "            factor = 1.0\n            for j",
            ALIAS,
        ),
        # the ring
        (
            "ring: batches are never renewed",
            SUBSAMPLED,
            "        drawing.prepare(memory.tickets, turn, memory.provider, rng)\n        memory.turn",
            "        memory.turn",
            ZIGZAG,
        ),
    ]
]
