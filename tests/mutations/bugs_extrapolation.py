"""Planted bugs of the Richardson-Romberg extrapolation."""

from __future__ import annotations

from tests.mutations.bugs import ROMBERG, Bug

FILE = "discrete/richardson_romberg.py"

BUGS = [
    Bug(f"Richardson-Romberg: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("the coarse chain's noise is its own", FILE, "z[j] = shared * (first[j] + second[j])", "z[j] = rng.standard_normal()", (ROMBERG,)),
        ("the shared noise is not divided by √2", FILE, "root = math.sqrt(0.5)", "root = 1.0", (ROMBERG,)),
        ("the fine chain takes whole steps", "discrete/schedules.py", "return 0.5 * self.whole.step(k >> 1)", "return self.whole.step(k >> 1)", (ROMBERG,)),
        ("the fine chain's schedule runs ahead", "discrete/schedules.py", "return 0.5 * self.whole.step(k >> 1)", "return 0.5 * self.whole.step(k)", (ROMBERG,)),
        ("weights the wrong way round", FILE, "(2.0**order / (2.0**order - 1.0), -1.0 / (2.0**order - 1.0))", "(-1.0 / (2.0**order - 1.0), 2.0**order / (2.0**order - 1.0))", (ROMBERG,)),
        ("the fine chain alone", FILE, "(2.0**order / (2.0**order - 1.0), -1.0 / (2.0**order - 1.0))", "(1.0, 0.0)", (ROMBERG,)),
        ("correlation's rest not a square root", FILE, "np.sqrt(np.maximum(values, 0.0))", "np.maximum(values, 0.0)", (ROMBERG,)),
        ("fine gradient at the coarse state", FILE, "self.fine.move(state.x[:d], state.v[:d]", "self.fine.move(state.x[d:], state.v[:d]", (ROMBERG,)),
        ("chains drift apart in time", FILE, "(k + 1) * length if self.constant == 1 else began + length)", "(k + 1) * length if self.constant == 1 else now + length)", (ROMBERG,)),
        ("the second half step re-uses the first's noise", FILE, "first if one else second", "first", (ROMBERG,)),
    ]
]  # fmt: skip
