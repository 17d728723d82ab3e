"""Planted bugs of the thermostats, and of batches that are used again."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT = "tests/discrete/test_thermostats.py"
LAWS = "tests/statistics/test_thermostat_laws.py"
BATCHES = "tests/gradients/test_batches.py"
LOGISTIC = "pdmp/models/regressions/logistic_signed.py"
SGNHT, MSGNHT, BADODAB, SHARED = (f"discrete/{name}.py" for name in ("sgnht", "msgnht", "badodab", "thermostat"))

BUGS = [
    Bug(f"thermostats: {name}", file, old, new, (EXACT,))
    for name, file, old, new in [
        ("SGNHT moves with the old momentum", SGNHT, "            v[j] = p\n            x[j] += eps * p", "            x[j] += eps * v[j]\n            v[j] = p"),
        ("SGNHT's thermostat sees the old momentum", SGNHT, "            p = v[j] - eps", "            squares[b] += v[j] * v[j]\n            p = v[j] - eps"),
        ("SGNHT's thermostat sees |p|², not |p|²/d", SGNHT, "squares[b] / self.sizes[b] - 1.0", "squares[b] - self.sizes[b]"),
        ("SGNHT's noise has half the variance", SGNHT, "math.sqrt(2.0 * self.diffusion * eps), 0.0", "math.sqrt(self.diffusion * eps), 0.0"),
        ("SGNHT's friction is the diffusion", SGNHT, "xi[b] * v[j])", "self.diffusion * v[j])"),
        ("SGNHT's thermostat the wrong way round", SGNHT, "xi[b] += eps", "xi[b] -= eps"),
        ("SGNHT's blocks share the first one's size", SGNHT, "/ self.sizes[b]", "/ self.sizes[0]"),
        ("SGNHT's from_h with a = ε² A", SGNHT, "diffusion=positive(\"a\", a) / eps", "diffusion=a / h"),
        ("SGNHT's default blocks all of one variable", SGNHT, "[int(np.prod(shape)) for shape in self.model.variables.values()]", "[self.dim]"),
        ("MSGNHT's friction over a whole step before the kick", MSGNHT, "v[j] *= math.exp(-half * xi[j])", "v[j] *= math.exp(-eps * xi[j])"),
        ("MSGNHT's friction with the old thermostat", MSGNHT, "                xi[j] += half * (v[j] * v[j] - 1.0)\n                v[j] *= math.exp(-half * xi[j])", "                v[j] *= math.exp(-half * xi[j])\n                xi[j] += half * (v[j] * v[j] - 1.0)"),
        ("MSGNHT's noise is not damped", MSGNHT, "(v[j] - eps * gradient[j] + noise * z[j])\n", "(v[j] - eps * gradient[j]) + noise * z[j]\n"),
        ("MSGNHT's gradient where the step began", MSGNHT, "                x[j] += half * v[j]\n        else", "                x[j] += eps * v[j]\n        else"),
        ("MSGNHT by Euler shares a thermostat", MSGNHT, "xi[j] * v[j]) + noise", "xi[0] * v[j]) + noise"),
        ("MSGNHT by Euler adds its friction", MSGNHT, "-eps * (gradient[j] + xi[j] * v[j])", "-eps * (gradient[j] - xi[j] * v[j])"),
        ("BADODAB's noise is that of a free particle", BADODAB, "eps * relative_variance(2.0 * xi[0] * eps)", "eps"),
        ("BADODAB's noise with half the exponent", BADODAB, "relative_variance(2.0 * xi[0] * eps)", "relative_variance(xi[0] * eps)"),
        ("BADODAB's kick is whole", BADODAB, "            v[j] -= half * gradient[j]\n            x[j]", "            v[j] -= eps * gradient[j]\n            x[j]"),
        ("BADODAB forgets the thermostat's mass", BADODAB, "        xi[0] += half * d * (mean_square(v) - 1.0) / self.thermal_mass\n        decay", "        xi[0] += half * (mean_square(v) - 1.0)\n        decay"),
        ("BADODAB's thermostat moves once a step", BADODAB, "        xi[0] += half * d * (mean_square(v) - 1.0) / self.thermal_mass\n        self", "        self"),
        ("BADODAB starts without a gradient", BADODAB, "if k == 0:", "if k < 0:"),
        ("BADODAB draws a gradient for each kick", BADODAB, "if k == 0:", "if k >= 0:"),
        ("BADODAB loses digits at small friction", BADODAB, "-math.expm1(-x) / x", "(1.0 - math.exp(-x)) / x"),
        ("thermostats start at 0", SHARED, "np.full(self.thermostats, self.diffusion)", "np.zeros(self.thermostats)"),
        ("only the first thermostat is watched", SHARED, "eps * thermostat[b] < -1.0", "eps * thermostat[0] < -1.0"),
        ("thermostats that are not finite go on", SHARED, "if not finite(thermostat):", "if False:"),
        ("the statistics have the warm-up in them", SHARED, "if counts[ADAPTING] == 0:", "if True:"),
    ]
] + [
    Bug(f"thermostats, by law: {name}", file, old, new, (LAWS,))
    for name, file, old, new in [
        ("SGNHT's noise is 3 % too large", SGNHT, "math.sqrt(2.0 * self.diffusion * eps), 0.0", "math.sqrt(2.1218 * self.diffusion * eps), 0.0"),
        ("MSGNHT's second half of the friction is forgotten", MSGNHT, "v[j] = math.exp(-half * xi[j]) * (", "v[j] = ("),
        ("BADODAB's second drift is whole", BADODAB, "            v[j] = decay * v[j] + noise * z[j]\n            x[j] += half * v[j]", "            v[j] = decay * v[j] + noise * z[j]\n            x[j] += eps * v[j]"),
    ]
] + [
    Bug(f"batches: {name}", file, old, new, (BATCHES,))
    for name, file, old, new in [
        ("a copy outlives its batch", "pdmp/gradients/minibatch.py", "        memory.is_copied[0] = False\n", ""),
        ("only the first rows are copied", "pdmp/models/regressions/logistic_rows.py", "tiles[start // BLOCK, j, k] = data[rows[start + k], j]", "tiles[start // BLOCK, j, k] = data[rows[k], j]"),
        ("control variates forget the anchor's weights", "pdmp/models/regressions/logistic_rows.py", "weights[k] -= others[k]", "weights[k] -= 0.0"),
        ("a batch used again is not counted", "pdmp/gradients/minibatch.py", "            self.packed.add_copied_gradient(x, memory.copied, n, out)\n", "            self.packed.add_copied_gradient(x, memory.copied, n, out)\n            counts[DATA] -= n\n"),
    ]
]  # fmt: skip
