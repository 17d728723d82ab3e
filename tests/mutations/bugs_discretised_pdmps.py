"""Planted bugs of SG-ZZ, SG-BPS and the splitting schemes."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT = "tests/discrete/test_discretised_pdmps.py"
FROZEN = "discrete/frozen.py"
SGZZ = "discrete/sgzz.py"
SGBPS = "discrete/sgbps.py"
SPLITTING = "discrete/splitting.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("frozen rates: an interval starts anew after each event", FROZEN, "end = (k + 1) * length if self.regular else memory.interval_start[0] + length", "end = now + length", (EXACT,)),
        ("frozen rates: an event due after the interval still happens at its end", FROZEN, "        memory.kind[0] = STEP\n        return end, CERTAIN", "        return end, CERTAIN", (EXACT,)),
        ("SG-ZZ: any coordinate flips, whatever its rate", SGZZ, "rest, chosen = rng.random() * total, 0", "rest, chosen = 0.0, int(rng.random() * v.shape[0])", (EXACT,)),
        ("SG-ZZ: all coordinates flip", SGZZ, "        j = memory.coordinate[0]\n        v[j] = -v[j]", "        for j in range(v.shape[0]):\n            v[j] = -v[j]", (EXACT,)),
        ("SG-BPS: the velocity turns round instead", SGBPS, "        reflect(v, memory.gradient)\n        rescale(v, 1.0)", "        for j in range(v.shape[0]):\n            v[j] = -v[j]", (EXACT,)),
        ("splitting: steps to where the density is zero end the run", SPLITTING, "        if there == math.inf:\n            memory.outside[0] += 1\n        elif not", "        if not", (EXACT,)),
        ("adjusted splitting: a rejection undoes the refreshment as well", SPLITTING, "        self.refresh(v, 0.5 * eps, rng)\n        for j in range(d):\n            memory.start_position[j], memory.start_velocity[j] = x[j], v[j]\n", "        for j in range(d):\n            memory.start_position[j], memory.start_velocity[j] = x[j], v[j]\n        self.refresh(v, 0.5 * eps, rng)\n        for j in range(d):\n", (EXACT,)),
    ]
]  # fmt: skip
