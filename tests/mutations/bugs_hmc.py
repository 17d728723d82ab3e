"""Planted bugs of `pdmp.HMC`, and of potentials that come with their gradients."""

from __future__ import annotations

from tests.mutations.bugs import Bug

HMC = "pdmp/processes/hmc.py"
TESTS = ("tests/processes/test_hmc.py",)

BUGS = [
    Bug("HMC: " + name, file, old, new, TESTS)
    for name, file, old, new in [
        (
            "around: the velocity of the state stays",
            HMC,
            "memory.place[j], v[j] = memory.metric.u[j], 0.0",
            "memory.place[j] = memory.metric.u[j]",
        ),
        (
            "around: z of the state before",
            HMC,
            "        if split:\n            self.standardise(state)\n",
            "        if split and memory.counted[0] == 0.0:\n            self.standardise(state)\n",
        ),
        (
            "the old gradient after an acceptance",
            HMC,
            "                for j in range(d):\n                    memory.gradient[j] = memory.next_gradient[j]\n",
            "",
        ),
    ]
]
