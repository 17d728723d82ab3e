"""Planted bugs of the thermostats, and of batches that are used again."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT = "tests/discrete/test_thermostats.py"
LAWS = "tests/statistics/test_thermostat_laws.py"
BATCHES = "tests/gradients/test_batches.py"
SGNHT, MSGNHT, BADODAB = (f"discrete/{name}.py" for name in ("sgnht", "msgnht", "badodab"))

BUGS = [
    Bug(f"thermostats: {name}", file, old, new, (EXACT,))
    for name, file, old, new in [
        ("SGNHT moves with the old momentum", SGNHT, "            v[j] = p\n            x[j] += eps * p", "            x[j] += eps * v[j]\n            v[j] = p"),
        ("SGNHT's default blocks all of one variable", SGNHT, "[int(np.prod(shape)) for shape in self.model.variables.values()]", "[self.dim]"),
        ("MSGNHT's friction with the old thermostat", MSGNHT, "                xi[j] += half * (v[j] * v[j] - 1.0)\n                v[j] *= math.exp(-half * xi[j])", "                v[j] *= math.exp(-half * xi[j])\n                xi[j] += half * (v[j] * v[j] - 1.0)"),
        ("BADODAB's thermostat moves once a step", BADODAB, "        xi[0] += half * d * (mean_square(v) - 1.0) / self.thermal_mass\n        self", "        self"),
    ]
] + [
    Bug(f"thermostats, by law: {name}", file, old, new, (LAWS,))
    for name, file, old, new in [
    ]
] + [
    Bug(f"batches: {name}", file, old, new, (BATCHES,))
    for name, file, old, new in [
        ("a copy outlives its batch", "pdmp/gradients/minibatch.py", "        memory.is_copied[0] = False\n", ""),
    ]
]  # fmt: skip
