"""Planted bugs of `pdmp.HMC`, and of potentials that come with their gradients."""

from __future__ import annotations

from tests.mutations.bugs import Bug

HMC = "pdmp/processes/hmc.py"
TESTS = ("tests/processes/test_hmc.py",)

BUGS = [
    Bug("HMC: " + name, file, old, new, TESTS)
    for name, file, old, new in [
        (
            "the old gradient after an acceptance",
            HMC,
            "                    memory.gradient[j] = memory.next_gradient[j]\n",
            "",
        ),
        (
            "a NaN gradient on the way is a rejection",
            HMC,
            "                if self.target.total_potential(y) != math.inf:\n                    return -1\n",
            "",
        ),
        ("a low-rank mass before its scale", "pdmp/metric.py", "        self.stretch(v, metric.products)\n", ""),
    ]
]
