"""Planted bugs of the underdamped Langevin samplers."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/discrete/test_kinetic.py",)
SGHMC, BAOAB, UBU, KINETIC = (f"discrete/{name}.py" for name in ("sghmc", "baoab", "ubu", "kinetic"))

BUGS = [
    Bug(f"{sampler}: {name}", file, old, new, TESTS)
    for sampler, file, name, old, new in [
        # splitting
        ("SGHMC splitting", SGHMC, "a whole drift at the start", "            ahead, kept = 0.5 * eps, 1.0", "            ahead, kept = eps, 1.0"),
        ("SGHMC splitting", SGHMC, "a whole decay on each side", "decay = math.exp(-0.5 * self.friction * eps)", "decay = math.exp(-self.friction * eps)"),
        ("SGHMC splitting", SGHMC, "the noise is not damped", "v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])", "v[j] = decay * (kept * decay * v[j] - eps * gradient[j]) + noise * z[j]"),
        ("SGHMC splitting", SGHMC, "the second drift is missing", "        if self.scheme == SPLITTING:\n            for j in range(d):", "        if self.scheme == EXPLICIT:\n            for j in range(0):"),
        # semi-implicit
        ("SGHMC semi-implicit", SGHMC, "half a drift", "        elif self.scheme == SEMI_IMPLICIT:\n            ahead = eps", "        elif self.scheme == SEMI_IMPLICIT:\n            ahead = 0.5 * eps"),
        ("SGHMC semi-implicit", SGHMC, "friction twice", "kept = 0.0, 1.0, 1.0 - self.friction * eps", "kept = 0.0, 1.0, 1.0 - 2.0 * self.friction * eps"),
        ("SGHMC semi-implicit", SGHMC, "the gradient from before the drift", "        elif self.scheme == SEMI_IMPLICIT:\n            ahead = eps", "        elif self.scheme > EXPLICIT:\n            ahead = eps"),
        # explicit
        ("SGHMC explicit", SGHMC, "the drift with the new momentum", "        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]\n        for j in range(d):\n            v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])", "        for j in range(d):\n            v[j] = decay * (kept * decay * v[j] - eps * gradient[j] + noise * z[j])\n        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]"),
        ("SGHMC explicit", SGHMC, "the kick without its step", "kept * decay * v[j] - eps * gradient[j]", "kept * decay * v[j] - gradient[j]"),
        ("SGHMC explicit", SGHMC, "the gradient after the drift", "        if self.scheme == EXPLICIT:\n            for j in range(d):\n                x[j] += eps * v[j]\n", ""),
        # all schemes
        ("SGHMC", SGHMC, "noise without the factor 2", "math.sqrt(2.0 * max(", "math.sqrt(max("),
        ("SGHMC", SGHMC, "the noise estimate is added", "self.friction - 0.5 * eps * self.noise_variance", "self.friction + 0.5 * eps * self.noise_variance"),
        ("SGHMC", SGHMC, "the noise estimate twice", "self.friction - 0.5 * eps * self.noise_variance", "self.friction - eps * self.noise_variance"),
        ("SGHMC", SGHMC, "refreshed at the end of L steps but one", "k % self.refresh_every == 0", "k % self.refresh_every == 1"),
        ("SGHMC", SGHMC, "a new batch at every step", "if k % self.batch_every == 0:", "if k % self.batch_every >= 0:"),
        ("SGHMC", SGHMC, "h taken for ε", "eps = step_from_h(h)", "eps = h"),
        ("SGHMC", SGHMC, "the fine chain refreshes twice as often", "fine.refresh_every *= 2", "fine.refresh_every *= 1"),
        ("SGHMC", SGHMC, "the friction's half forgotten in the explicit limit", "if D > 2.0 * scale else D / curvature", "if D > 1e9 * scale else D / curvature"),
        ("SGHMC", SGHMC, "the semi-implicit limit without friction", "4.0 / (D + math.sqrt(D * D + 4.0 * curvature))", "4.0 / math.sqrt(4.0 * curvature)"),
        ("SGHMC", SGHMC, "the limit of one step fewer", "np.linalg.matrix_power(one, self.refresh_every)", "np.linalg.matrix_power(one, self.refresh_every - 1)"),
        ("SGHMC", SGHMC, "no warning for the semi-implicit scheme", "if self.scheme != SPLITTING and self.refresh_every > 0:", "if self.scheme == EXPLICIT and self.refresh_every > 0:"),
        # BAOAB
        ("BAOAB", BAOAB, "the last kick is missing", "            v[j] -= half * gradient[j]", "            v[j] -= 0.0 * gradient[j]"),
        ("BAOAB", BAOAB, "whole kicks", "p = v[j] - half * gradient[j]", "p = v[j] - eps * gradient[j]"),
        ("BAOAB", BAOAB, "half the friction", "half, decay = 0.5 * eps, math.exp(-self.friction * eps)", "half, decay = 0.5 * eps, math.exp(-0.5 * self.friction * eps)"),
        ("BAOAB", BAOAB, "Euler's noise", "noise = math.sqrt(-math.expm1(-2.0 * self.friction * eps))", "noise = math.sqrt(2.0 * self.friction * eps)"),
        ("BAOAB", BAOAB, "a new gradient for the first kick", "for stage in range(0 if k == 0 else 1, 2):", "for stage in range(2):"),
        ("BAOAB", BAOAB, "no gradient at the start", "for stage in range(0 if k == 0 else 1, 2):", "for stage in range(1, 2):"),
        ("BAOAB", BAOAB, "both drifts before the noise", "                    x[j] += half * p\n                    p = decay * p + noise * z[j]\n                    x[j] += half * p", "                    x[j] += eps * p\n                    p = decay * p + noise * z[j]"),
        ("BAOAB", BAOAB, "the law of a half kick", "transition, step * drift, (1.0", "transition, 0.5 * step * drift, (1.0"),
        # UBU
        ("UBU", UBU, "a whole step on each side", "u = 0.5 * D * eps\n", "u = D * eps\n"),
        ("UBU", UBU, "the noise of θ independent of that of p", "x0, y0 = b * e / both * c, b * (both + e) / both * c", "x0, y0 = 0.0, 0.0"),
        ("UBU", UBU, "the two noises of θ exchanged", "x0, y0 = b * e / both * c, b * (both + e) / both * c", "y0, x0 = b * e / both * c, b * (both + e) / both * c"),
        ("UBU", UBU, "the noises of θ uncorrelated", "y1, y2 = shared / x1,", "y1, y2 = 0.0,"),
        ("UBU", UBU, "the momentum's noise of half a step", "math.sqrt(-math.expm1(-4.0 * u))", "math.sqrt(-math.expm1(-2.0 * u))"),
        ("UBU", UBU, "half a kick", "p = e * v[j] - eps * gradient[j]", "p = e * v[j] - 0.5 * eps * gradient[j]"),
        ("UBU", UBU, "θ drifts as without friction", "ahead = -math.expm1(-u) / D", "ahead = 0.5 * eps"),
        ("UBU", UBU, "the series' second sign", "(1.0 / 12.0 - s * (1.0 / 120.0", "(1.0 / 12.0 + s * (1.0 / 120.0"),
        ("UBU", UBU, "c for its root", "root = math.sqrt(positive(\"c\", c))", "root = positive(\"c\", c)"),
        # what they share
        ("Kinetic", KINETIC, "the temperature is a sum over coordinates", "    return total / p.shape[0]", "    return total"),
        ("Kinetic", KINETIC, "momenta start at rest", "return rng.standard_normal(self.dim)", "return 0.0 * rng.standard_normal(self.dim)"),
        ("Kinetic", "discrete/laws.py", "noise only along the axes", "v = axes.T @ noise @ axes", "v = np.diag(np.diag(axes.T @ noise @ axes))"),
        ("Kinetic", "discrete/laws.py", "eigenvectors although they coincide", "APART = 1e-4", "APART = -1.0"),
        ("Kinetic", "discrete/laws.py", "critical damping: the row without the column", "s[i] = s[:, i] = np.linalg.solve", "s[i] = np.linalg.solve"),
        ("Kinetic", "discrete/laws.py", "critical damping without the sampler's own noise", "        known[i] += np.broadcast_to(injected, (d, 2, 2))[i].ravel()\n", ""),
        ("Kinetic", KINETIC, "a step at which two errors cancel", "target, step, error)", "target, limit, error)"),
        ("Kinetic", KINETIC, "the fastest mode counts", "slowest = np.abs(np.linalg.eigvals(linear(step, friction, curvature)[0])).max()", "slowest = np.abs(np.linalg.eigvals(linear(step, friction, curvature)[0])).min()"),
    ]
]  # fmt: skip
