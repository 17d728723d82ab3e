"""Planted bugs of SGD and of SGLD with its options."""

from __future__ import annotations

from tests.mutations.bugs import LANGEVIN, Bug

SGD = "tests/discrete/test_sgd.py"
SCHEDULES = "tests/discrete/test_schedules.py"
LAWS = "tests/statistics/test_langevin_laws.py"

BUGS = [
    Bug(f"Langevin family, {name}", f"discrete/{file}.py", old, new, tests)
    for name, file, old, new, tests in [
        # SGD
        ("SGD: ascends the potential", "sgd", "theta[j] -= gamma * gradient[j]", "theta[j] += gamma * gradient[j]", (SGD,)),
        ("SGD: the step of the next update", "sgd", "gamma = self.schedule.step(memory.taken[0])", "gamma = self.schedule.step(memory.taken[0] + 1)", (SGD,)),
        ("SGD: the safeguard acts on the increment of the step before", "sgd", "        memory.clipped[0] += self.safeguard.apply(gradient)\n        gamma = self.schedule.step(memory.taken[0])\n        for j in range(theta.shape[0]):\n            theta[j] -= gamma * gradient[j]\n", "        gamma = self.schedule.step(memory.taken[0])\n        for j in range(theta.shape[0]):\n            theta[j] -= gamma * gradient[j]\n        memory.clipped[0] += self.safeguard.apply(gradient)\n", (SGD,)),
        ("SGD: takes noisy gradients for exact ones", "sgd", "provider = exact_provider(target, \"GD\", \"discrete.SGD takes\")", "provider = target", (SGD,)),
        ("SGD: squares summable below 1/2", "sgd", "self.schedule.kappa <= 0.5", "self.schedule.kappa < 0.5", (SGD,)),
        ("clipping: clip_norm always rescales", "clipping", "if not norm > self.largest:", "if not norm > 0.0:", (SGD,)),
        ("clipping: by the squared norm", "clipping", "        norm = math.sqrt(square)\n        if not norm > self.largest:", "        norm = square\n        if not norm > self.largest:", (SGD,)),
        ("clipping: normalise to the inverse length", "clipping", "v[j] *= self.length / norm", "v[j] *= norm / self.length", (SGD,)),
        ("clipping: only one side of the values", "clipping", "if v[j] < self.low:", "if v[j] < -self.high:", (SGD,)),
        # schedules
        ("schedules: a power starts at k = 0", "schedules", "return Polynomial(C, 1.0, s)", "return Polynomial(C, 2.0, s)", (SCHEDULES,)),
        ("schedules: cycles are whole cosines", "schedules", "math.cos(math.pi * (k % self.length)", "math.cos(2.0 * math.pi * (k % self.length)", (SCHEDULES,)),
        ("schedules: exploration at the end of a cycle", "schedules", "return k % self.length < self.exploration_steps", "return k % self.length >= self.length - self.exploration_steps", (SCHEDULES,)),
        ("schedules: exploration is held", "sgld", "return 0.0 if self.schedule.explores(k) else self.schedule.step(k)", "return self.schedule.step(k)", (SCHEDULES,)),
        ("schedules: exploration with noise", "sgld", "temperature = 0.0 if self.schedule.explores(k) else self.temperature.step(k)", "temperature = self.temperature.step(k)", (SCHEDULES,)),
        ("schedules: finite sums not condensed", "schedules", "2.0**m * max(", "1.0 * max(", (SCHEDULES,)),
        ("schedules: the half steps' temperature runs ahead", "schedules", "return self.whole.step(k >> 1)\n\n\ndef constant", "return self.whole.step(k)\n\n\ndef constant", (SCHEDULES, LANGEVIN)),
        # SGLD
        ("SGLD: noise √γ in place of √(2γ)", "sgld", "math.sqrt(2.0 * gamma * temperature) * precond", "math.sqrt(gamma * temperature) * precond", (LANGEVIN,)),
        ("SGLD: half the drift", "sgld", "x[j] += -gamma * drift", "x[j] += -0.5 * gamma * drift", (LANGEVIN,)),
        ("SGLD: ascends the potential", "sgld", "x[j] += -gamma * drift", "x[j] += gamma * drift", (LANGEVIN,)),
        ("SGLD: h is taken for γ", "sgld", 'step=0.5 * positive("h", h)', 'step=positive("h", h)', (LANGEVIN,)),
        ("SGLD: σ is taken for h", "sgld", 'positive("sigma", sigma) ** 2', 'positive("sigma", sigma)', (LANGEVIN,)),
        ("SGLD: mean-gradient steps are not divided", "sgld", 'positive("eps", eps) / provider.n_data', 'positive("eps", eps)', (LANGEVIN,)),
        ("SGLD: the temperature is squared", "sgld", "math.sqrt(2.0 * gamma * temperature) * precond", "math.sqrt(2.0 * gamma) * temperature * precond", (LANGEVIN,)),
        ("SGLD: half steps keep the whole steps' temperatures", "sgld", "fine.temperature = Repeated(self.temperature)", "pass", (LANGEVIN,)),
        # corrections
        ("c-SGLD: γτ² in place of γ²τ²", "sgld", "temperature * p - gamma * gamma * p * p * self", "temperature * p - gamma * p * p * self", (LANGEVIN,)),
        ("c-SGLD: the noise of half the gradient", "sgld", "- gamma * gamma * p * p * self", "- 0.25 * gamma * gamma * p * p * self", (LANGEVIN,)),
        ("c-SGLD: the preconditioner enters once", "sgld", "- gamma * gamma * p * p * self", "- gamma * gamma * p * self", (LANGEVIN,)),
        ("c-SGLD: β weighs the old value", "sgld", "memory.mean[j] += self.beta * (", "memory.mean[j] += (1.0 - self.beta) * (", (LANGEVIN,)),
        ("c-SGLD: the average is not corrected for its start", "sgld", "memory.start_weight[0] *= 1.0 - self.beta", "memory.start_weight[0] *= 0.0", (LANGEVIN,)),
        ("c-SGLD: the square of the mean sd for the mean square", "sgld", "sd * sd if self.squared else sd)", "sd)", (LANGEVIN,)),
        ("m-SGLD: γ is taken for h", "sgld", "factor = temperature - 2.0 * gamma * self.coefficient", "factor = temperature - gamma * self.coefficient", (LANGEVIN,)),
        ("m-SGLD: the factor multiplies the variance", "sgld", "math.sqrt(2.0 * gamma * p / temperature) * factor * z[j]", "math.sqrt(2.0 * gamma * p * factor) * z[j]", (LANGEVIN,)),
        ("m-SGLD: the coefficient is 1/2", "sgld", "coefficient: float = 0.125", "coefficient: float = 0.5", (LANGEVIN,)),
        ("e-SGLD: with noise", "sgld", 'if correction == "extreme":\n        return Extreme()', 'if correction == "extreme":\n        return Uncorrected()', (SGD, LANGEVIN)),
        # preconditioners
        ("scheduled: P changes a step late", "preconditioners", "            if self.steps[middle] <= k:", "            if self.steps[middle] < k:", (LANGEVIN,)),
        ("scheduled: the first P for ever", "preconditioners", "                first = middle\n", "                last = middle\n", (LANGEVIN,)),
        ("scheduled: P in place of its root", "preconditioners", "return self.roots[i, j, 0] * z[j]", "return self.entries[i, j] * z[j]", (LANGEVIN,)),
        ("scheduled: the drift of the first P", "preconditioners", "total += self.full[i, j, k] * memory.gradient[k]", "total += self.full[0, j, k] * memory.gradient[k]", (LANGEVIN,)),
        ("scheduled: the noise of the first P", "preconditioners", "total += self.roots[i, j, k] * z[k]", "total += self.roots[0, j, k] * z[k]", (LANGEVIN,)),
        ("scheduled: corrections by the first P", "preconditioners", "return self.entries[self.period(memory), j]", "return self.entries[0, j]", (LANGEVIN,)),
        ("scheduled: the fine chain changes too soon", "preconditioners", "other.steps = 2 * self.steps", "other.steps = self.steps", (LANGEVIN,)),
        ("scheduled: the chains of an extrapolation have one schedule", "sgld", "            fine.preconditioner = self.preconditioner.repeated()\n", "            pass\n", (LANGEVIN,)),
        ("scheduled: an automatic step by no P", "sgld", "(self.preconditioner.adaptive or self.preconditioner.scheduled)", "self.preconditioner.adaptive", (LANGEVIN,)),
        ("RMSprop: the inverse square", "preconditioners", "return 1.0 / (self.eps + math.sqrt(memory.squares[j]))", "return 1.0 / (self.eps + memory.squares[j])", (LANGEVIN,)),
        ("RMSprop: decay weighs the new value", "preconditioners", "1.0 if memory.taken[0] == 0 else 1.0 - self.decay", "1.0 if memory.taken[0] == 0 else self.decay", (LANGEVIN,)),
        ("RMSprop: Γ of the present state only", "preconditioners", "derivatives[j] += weight * (2.0 * gradient[j] * curvature - derivatives[j])", "derivatives[j] = weight * 2.0 * gradient[j] * curvature", (LANGEVIN,)),
        ("RMSprop: the sign of Γ", "preconditioners", "return p * memory.gradient[j] + temperature * p * p", "return p * memory.gradient[j] - temperature * p * p", (LANGEVIN,)),
        ("RMSprop: Γ without the temperature", "preconditioners", "return p * memory.gradient[j] + temperature * p * p", "return p * memory.gradient[j] + p * p", (LANGEVIN,)),
        ("RMSprop: the probe at one point for all", "preconditioners", "point[j] = x[j] + (z if rng.random() < 0.5 else -z)", "point[j] = x[j] + z", (LANGEVIN,)),
    ]
]  # fmt: skip
