"""Planted bugs of the Bouncy Particle family."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT = "tests/processes/test_bps.py"
VELOCITIES = "pdmp/native/velocities.py"
DIRECTIONAL = "pdmp/processes/directional_bps.py"

BUGS = [
    Bug(f"BPS family: {name}", file, old, new, (EXACT,))
    for name, file, old, new in [
        ("partial refreshments keep no correlation", VELOCITIES, "u[j] = persistence * u[j] + c * scratch[j]", "u[j] = c * scratch[j] / math.sqrt(1.0 - persistence * persistence)"),
        ("directional: the bound is valid for ever", DIRECTIONAL, "        if wait > h:\n            return now + h, HORIZON\n", ""),
        ("directional: the estimate does not double", DIRECTIONAL, "            ray.third_derivative[0] *= 2.0\n", ""),
    ]
]  # fmt: skip
