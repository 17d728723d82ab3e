"""Planted bugs of the Richardson-Romberg extrapolation."""

from __future__ import annotations

from tests.mutations.bugs import ROMBERG, Bug

FILE = "discrete/richardson_romberg.py"

BUGS = [
    Bug(f"Richardson-Romberg: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("SGRRHMC: the coarse chain's momentum stays", FILE, "            state.v[d + j] = memory.v[j]\n", "", (ROMBERG,)),
        ("threads: a step is posted before its increments are there", FILE, "self._combine(first, second, memory.normals, d, rng)\n                memory.coarse_counts[ADAPTING] = state.counts[ADAPTING]\n                store(memory.jobs.posted, memory.coarse.taken[0] + 1)", "memory.coarse_counts[ADAPTING] = state.counts[ADAPTING]\n                store(memory.jobs.posted, memory.coarse.taken[0] + 2)\n                self._combine(first, second, memory.normals, d, rng)", (ROMBERG,)),
        ("threads: the helper outlives the loop", "discrete/threads.py", "        self._state.memory.jobs.is_open[0] = 0\n        if self._thread is not None:\n            self._thread.join()\n            set_failure(", "        if self._thread is not None:\n            set_failure(", (ROMBERG,)),
    ]
]  # fmt: skip
