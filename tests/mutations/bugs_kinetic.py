"""Planted bugs of the underdamped Langevin samplers."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/discrete/test_kinetic.py",)
SGHMC, BAOAB, UBU = (f"discrete/{name}.py" for name in ("sghmc", "baoab", "ubu"))

BUGS = [
    Bug(f"{sampler}: {name}", file, old, new, TESTS)
    for sampler, file, name, old, new in [
        # explicit
        ("SGHMC explicit", SGHMC, "the drift with the new momentum", "        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]\n        for j in range(d):\n            v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])", "        for j in range(d):\n            v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])\n        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]"),
        ("SGHMC explicit", SGHMC, "the gradient after the drift", "        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]\n", ""),
        # BAOAB
        ("BAOAB", BAOAB, "both drifts before the noise", "                    x[j] += half * p\n                    p = decay * p + noise * z[j]\n                    x[j] += half * p", "                    x[j] += eps * p\n                    p = decay * p + noise * z[j]"),
        # UBU
        ("UBU", UBU, "the noise of θ independent of that of p", "x0, y0 = b * e / both * c, b * (both + e) / both * c", "x0, y0 = 0.0, 0.0"),
        # what they share
        ("Kinetic", "discrete/laws.py", "critical damping without the sampler's own noise", "        known[i] += np.broadcast_to(injected, (d, 2, 2))[i].ravel()\n", ""),
    ]
]  # fmt: skip
