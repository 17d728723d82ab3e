"""Planted bugs of the Metropolised samplers and of SGBD's adaptive scale."""

from __future__ import annotations

from tests.mutations.bugs import BARKER, Bug

METROPOLIS = "tests/discrete/test_metropolis.py"
BASE, RULE, SGBD = (f"discrete/{name}.py" for name in ("metropolis", "barker", "sgbd"))

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("Metropolis: the potential is that of the start for ever", BASE, "            memory.potential[0] = there\n", "", (METROPOLIS,)),
        ("Metropolis: the gradient is kept from before the move", BASE, "                memory.gradient[j] = memory.next_gradient[j]\n", "", (METROPOLIS,)),
        ("breaking point: its approximation", RULE, "np.where(a > 0.0, a / np.where(a < 1.0, near, far), 4.0 / math.sqrt(2.0 * math.pi))", "np.where(a > 0.0, C + 0.0 * near + 0.0 * far, C)", (BARKER,)),
        ("SGBD: the adaptive scale takes this step's noise", SGBD, "largest, s = s, memory.scale[j]", "largest, s = s, min(s, C / (QUANTILE * tau)) if tau > 0.0 else s", (BARKER,)),
    ]
]  # fmt: skip
