"""Planted bugs of the Metropolised samplers and of SGBD's adaptive scale."""

from __future__ import annotations

from tests.mutations.bugs import BARKER, Bug

METROPOLIS = "tests/discrete/test_metropolis.py"
BARKER_LAWS = "tests/statistics/test_barker_laws.py"
BASE, MALA, RULE, SGBD = (f"discrete/{name}.py" for name in ("metropolis", "mala", "barker", "sgbd"))

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("Metropolis: the ratio of the densities is inverted", BASE, "memory.potential[0] - there + self", "there - memory.potential[0] + self", (METROPOLIS,)),
        ("Metropolis: the proposal's ratio is forgotten", BASE, "memory.potential[0] - there + self.log_ratio(memory, size)", "memory.potential[0] - there", (METROPOLIS,)),
        ("Metropolis: the potential is that of the start for ever", BASE, "            memory.potential[0] = there\n", "", (METROPOLIS,)),
        ("Metropolis: the gradient is kept from before the move", BASE, "                memory.gradient[j] = memory.next_gradient[j]\n", "", (METROPOLIS,)),
        ("Metropolis: adapts after the warm-up too", BASE, "elif self.adapt:", "if self.adapt:", (METROPOLIS,)),
        ("Metropolis: adapts the wrong way", BASE, "(accept - self.target_acceptance)", "(self.target_acceptance - accept)", (METROPOLIS,)),
        ("Metropolis: adapts in units of the step, not of its logarithm", BASE, "math.exp(memory.log_factor[0])\n        if not", "(1.0 + memory.log_factor[0])\n        if not", (METROPOLIS,)),
        ("Metropolis: states are held for the step of the schedule", BASE, "        return self.duration\n", "        return self.schedule.step(k)\n", (METROPOLIS,)),
        ("Metropolis: the potential costs nothing", BASE, "        there = self.provider.packed.total_potential(memory.proposal)\n        counts[DATA] += terms\n", "        there = self.provider.packed.total_potential(memory.proposal)\n", (METROPOLIS,)),
        ("Metropolis: walls are looked behind", BASE, "if there == math.inf:", "if there == -math.inf:", (METROPOLIS,)),
        ("Metropolis: both together are counted as two", "discrete/metropolis.py", "flag(\"adapt\", adapt), provider.model.has(\"potential_and_gradient\")", "flag(\"adapt\", adapt), False", (METROPOLIS,)),
        ("Metropolis: the gradient of the last proposal is added up", "discrete/metropolis.py", "            out[j] = 0.0\n        return self.provider.packed.potential_and_gradient(x, out)", "            out[j] += 0.0\n        return self.provider.packed.potential_and_gradient(x, out)", (METROPOLIS,)),
        ("MALA: the first 64 coordinates count", MALA, "for j in range(memory.increment.shape[0]):", "for j in range(min(memory.increment.shape[0], 64)):", (METROPOLIS,)),
        ("Barker: the first 64 coordinates count", RULE, "for j in range(memory.increment.shape[0]):", "for j in range(min(memory.increment.shape[0], 64)):", (METROPOLIS,)),
        ("MALA: noise √γ", MALA, "math.sqrt(2.0 * size)", "math.sqrt(size)", (METROPOLIS,)),
        ("MALA: the way back starts with the old gradient", MALA, "root * (before[j] + after[j])", "root * (before[j] + before[j])", (METROPOLIS,)),
        ("MALA: the ratio of the noises is inverted", MALA, "0.5 * (xi * xi - back * back)", "0.5 * (back * back - xi * xi)", (METROPOLIS,)),
        ("MALA: √γ in place of √(γ/2)", MALA, "math.sqrt(0.5 * size)", "math.sqrt(size)", (METROPOLIS,)),
        ("MALA: the gradient is not pulled back", MALA, "size * memory.metric.pulled[j]", "size * memory.gradient[j]", (METROPOLIS,)),
        ("MALA: the metric is taken for its inverse's root", BASE, "root = np.diag(root) if root.ndim == 1 else root\n", "root = np.diag(root**2) if root.ndim == 1 else root\n", (METROPOLIS,)),
        ("Barker: the sign of the gradient", RULE, "along = -w[j] * pulled[j]", "along = w[j] * pulled[j]", (METROPOLIS,)),
        ("Barker: the proposal's term with the increment forth, not back", RULE, "- softplus(-w * after)", "- softplus(w * after)", (METROPOLIS,)),
        ("Barker: one sign, but the ratio of many", RULE, "        if self.single:\n            total = softplus(-here) - softplus(there)\n", "        if self.single:\n            total = softplus(-here) - softplus(-there)\n", (METROPOLIS,)),
        ("Barker: one sign, and all increments along the diagonal", RULE, "if not self.gaussian and rng.random() < 0.5:", "if not self.gaussian and rng.random() < -0.5:", (METROPOLIS,)),
        ("Barker: Gaussian increments are bimodal", RULE, "w[j] = sigma * rng.standard_normal()\n", "w[j] = sigma + 0.1 * sigma * rng.standard_normal()\n", (METROPOLIS,)),
        ("Barker: the scale of a coordinate is forgotten", RULE, "sigma = size * self.shape[j]", "sigma = size * self.shape[0]", (METROPOLIS,)),
        ("Barker: softplus without its larger part", RULE, "return max(x, 0.0) + math.log1p", "return math.log1p", (METROPOLIS,)),
        ("Barker: held for σ", RULE, "return size**2 * float(np.mean(self.shape**2))", "return size * float(np.mean(self.shape**2))", (METROPOLIS,)),
        ("breaking point: its approximation", RULE, "np.where(a > 0.0, a / np.where(a < 1.0, near, far), 4.0 / math.sqrt(2.0 * math.pi))", "np.where(a > 0.0, C + 0.0 * near + 0.0 * far, C)", (BARKER,)),
        ("breaking point: the limit at zero", RULE, "4.0 / math.sqrt(2.0 * math.pi)", "2.0 / math.sqrt(2.0 * math.pi)", (BARKER,)),
        ("SGBD: the adaptive scale without its margin", SGBD, "else C / (QUANTILE * tau)", "else C / tau", (BARKER,)),
        ("SGBD: the margin of one standard deviation", SGBD, "QUANTILE = 1.0 + 2.33 * SPREAD", "QUANTILE = 1.0 + SPREAD", (BARKER,)),
        ("SGBD: the adaptive scale has no upper end", SGBD, "new = largest if QUANTILE * tau * largest <= C else C", "new = largest if tau == 0.0 else C", (BARKER,)),
        ("SGBD: an adaptive state is held for the scale that led to it", SGBD, "hold += new * new", "hold += s * s", (BARKER,)),
        ("SGBD: the adaptive scale takes this step's noise", SGBD, "largest, s = s, memory.scale[j]", "largest, s = s, min(s, C / (QUANTILE * tau)) if tau > 0.0 else s", (BARKER,)),
        ("SGBD: this step's own scale is the last one", SGBD, "if self.current or memory.taken[0] == 0:", "if memory.taken[0] == 0:", (BARKER,)),
        ("SGBD: this step's own scale always", SGBD, "if self.current or memory.taken[0] == 0:", "if True:", (BARKER,)),
        ("SGBD: noise= is ignored where nothing adapts", SGBD, "if self.current and not self.adaptive:", "if False:", (BARKER,)),
        ("SGBD: h is taken for σ", SGBD, "np.sqrt(h) if h.ndim else math.sqrt(h)", "h if h.ndim else float(h)", (BARKER,)),
        ("SGBD: beyond the breaking point below it", SGBD, "if tau * abs(z) >= C:", "if tau * abs(z) < C:", (BARKER,)),
        ("SGBD: the fraction beyond is one of steps", SGBD, "beyond / updates if", "beyond / int(state.memory.taken[0]) if", (BARKER,)),
        ("SGBD: batches have the finite-population factor also with replacement", "pdmp/gradients/drawing.py", "        return self.size, self.total / self.size, 1.0\n", "        return self.size, self.total / self.size, 1.0 - self.size / self.total\n", (BARKER_LAWS,)),
    ]
]  # fmt: skip
