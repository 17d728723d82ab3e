"""Planted bugs in details: options, statistics, limits, chosen steps; diagnostics and tuning."""

from __future__ import annotations

from tests.mutations.bugs import BARKER, Bug

TUNING = "tests/tuning/test_tuning.py"
PDMPS = "tests/discrete/test_discretised_pdmps.py"
PREDICTIVE = "tests/diagnostics/test_predictive.py"

BUGS = [
    Bug(f"details: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("SGBD: the first adaptive step is the largest", "discrete/sgbd.py", "                if self.current or memory.taken[0] == 0:\n                    s = new\n", "", BARKER),
        ("SG-BPS: a bounce in a gradient that is not finite", "discrete/sgbps.py", "            if not finite(memory.gradient):\n                return False\n", "", PDMPS),
        ("halving: rounds by logarithms", "pdmp/tuning/halving.py", "    while left >= eta:  # not by logarithms: log 243 / log 3 is 4.999…\n        left //= eta\n        n += 1\n", "    n = int(math.log(arms) / math.log(eta))\n", TUNING),
        ("log-loss: the mean of the losses, not of the probabilities", "pdmp/diagnostics/predictive.py", "mean = np.cumsum(p, axis=0) / np.arange(1, len(p) + 1)[:, None]", "mean = p", PREDICTIVE),
    ]
]  # fmt: skip
