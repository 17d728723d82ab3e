"""Planted bugs: sticky processes, and boundaries."""

from __future__ import annotations

from tests.mutations.bugs import Bug

STICKY, STICKY_LAWS = "tests/processes/test_sticky.py", "tests/statistics/test_sticky_laws.py"
GROUPS = "tests/processes/test_sticky_groups.py"
BOUNDED = "tests/processes/test_bounded.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("sticky: from a file each chain has the times of the first", "pdmp/engine/result.py", '"accumulated/"): array for', '"accumulated/"): arrays[f"chain/0/{name}"] for', (f"{STICKY}::test_inclusion_survives_a_file",)),
        ("sticky: time goes to the next model", "pdmp/processes/sticky.py", "            memory.occupied[memory.model[0]] += now - memory.changed[0]\n            memory.changed[0] = now\n            memory.model[0] ^= 1 << k\n", "            memory.model[0] ^= 1 << k\n            memory.occupied[memory.model[0]] += now - memory.changed[0]\n            memory.changed[0] = now\n", (STICKY,)),
        ("sticky Zig-Zag: a flip keeps the time of freezing", "pdmp/processes/extended.py", "sparse.hstack([reaches @ watches.T, rings])", "sparse.hstack([sparse.csr_array((inner.clocks, watches.shape[0]), dtype=np.int32), rings])", (STICKY, STICKY_LAWS)),
        ("inclusion: chains weigh the same", "pdmp/diagnostics/variable_selection.py", 'found = sum(r.accumulated["included"] for r in records) / sum(r.length for r in records)', 'found = sum(r.accumulated["included"] / r.length for r in records) / len(records)', (STICKY,)),
        ("boundary: rounding leaves it beyond the wall", "pdmp/processes/bounded.py", "        x[j] = self.upper[j] if above else self.lower[j]\n", "", (BOUNDED,)),
        ("ellipse: it stays at the wall", "pdmp/flow.py", "else wait + 2.0 * math.pi", "else max(wait, 0.0)", (BOUNDED,)),
        ("sticky groups: time frozen is not counted", "pdmp/processes/sticky_groups.py", "                row[j, TIME_FROZEN] += now - row[j, FROZEN_SINCE]\n", "", (f"{GROUPS}::test_what_is_accumulated_is_what_the_path_says",)),
        ("sticky groups: squares forget effects of groups", "pdmp/processes/sticky_groups.py", "    hessian[:, effects] = inner.border[:, places].T\n", "", (f"{GROUPS}::test_births_and_deaths_balance",)),
    ]
]  # fmt: skip
