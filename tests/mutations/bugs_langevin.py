"""Planted bugs of SGD and of SGLD with its options."""

from __future__ import annotations

from tests.mutations.bugs import LANGEVIN, Bug

SGD = "tests/discrete/test_sgd.py"

BUGS = [
    Bug(f"Langevin family, {name}", f"discrete/{file}.py", old, new, tests)
    for name, file, old, new, tests in [
        # SGD
        ("SGD: the safeguard acts on the increment of the step before", "sgd", "        memory.clipped[0] += self.safeguard.apply(gradient)\n        gamma = self.schedule.step(memory.taken[0])\n        for j in range(theta.shape[0]):\n            theta[j] -= gamma * gradient[j]\n", "        gamma = self.schedule.step(memory.taken[0])\n        for j in range(theta.shape[0]):\n            theta[j] -= gamma * gradient[j]\n        memory.clipped[0] += self.safeguard.apply(gradient)\n", (SGD,)),
        # preconditioners
        ("preconditioners: the root is transposed", "preconditioners", "        for k in range(j + 1):\n            total += self.roots[i, j, k] * z[k]", "        for k in range(j, self.roots.shape[1]):\n            total += self.roots[i, k, j] * z[k]", (LANGEVIN,)),
    ]
]  # fmt: skip
