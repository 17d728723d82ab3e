"""Planted bugs of SG-ZZ, SG-BPS and the splitting schemes."""

from __future__ import annotations

from tests.mutations.bugs import Bug

EXACT = "tests/discrete/test_discretised_pdmps.py"
LAWS = "tests/statistics/test_discretised_pdmp_laws.py"
FROZEN = "discrete/frozen.py"
SGZZ = "discrete/sgzz.py"
SGBPS = "discrete/sgbps.py"
SPLITTING = "discrete/splitting.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("frozen rates: an interval starts anew after each event", FROZEN, "end = (k + 1) * length if self.regular else memory.interval_start[0] + length", "end = now + length", (EXACT,)),
        ("frozen rates: every interval as long as the first", FROZEN, "length = self.schedule.step(k)", "length = self.schedule.step(0)", (EXACT,)),
        ("frozen rates: the gradient's batch is kept over an interval", FROZEN, "self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)", "if memory.kind[0] == STEP:\n            self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)", (EXACT,)),
        ("frozen rates: an event due after the interval still happens at its end", FROZEN, "        memory.kind[0] = STEP\n        return end, CERTAIN", "        return end, CERTAIN", (EXACT,)),
        ("frozen rates: paths stand still", FROZEN, "flow=Linear()", "flow=__import__('pdmp.flow').flow.Still()", (EXACT,)),
        ("SG-ZZ: rates without their positive part", SGZZ, "total += positive(v[j] * memory.gradient[j])", "total += abs(v[j] * memory.gradient[j])", (EXACT,)),
        ("SG-ZZ: flips where the potential falls", SGZZ, "total += positive(v[j] * memory.gradient[j])", "total += positive(-v[j] * memory.gradient[j])", (EXACT,)),
        ("SG-ZZ: any coordinate flips, whatever its rate", SGZZ, "rest, chosen = rng.random() * total, 0", "rest, chosen = 0.0, int(rng.random() * v.shape[0])", (EXACT,)),
        ("SG-ZZ: the next coordinate flips", SGZZ, "j = memory.coordinate[0]", "j = (memory.coordinate[0] + 1) % v.shape[0]", (EXACT,)),
        ("SG-ZZ: all coordinates flip", SGZZ, "        j = memory.coordinate[0]\n        v[j] = -v[j]", "        for j in range(v.shape[0]):\n            v[j] = -v[j]", (EXACT,)),
        ("SG-ZZ: the wait is not divided by the rate", SGZZ, "time = rng.standard_exponential() / total", "time = rng.standard_exponential() * total", (EXACT,)),
        ("SG-BPS: bounces in the gradient of the last look", SGBPS, "if self.reflection == EVENT:", "if self.reflection == LOOK:", (EXACT,)),
        ("SG-BPS: the bounce draws another batch", SGBPS, "self.provider.gradient_again(x, memory.provider, memory.gradient, counts)", "self.provider.gradient(x, memory.provider, rng, memory.gradient, counts)", (EXACT,)),
        ("SG-BPS: the velocity turns round instead", SGBPS, "        reflect(v, memory.gradient)\n        rescale(v, 1.0)", "        for j in range(v.shape[0]):\n            v[j] = -v[j]", (EXACT,)),
        ("SG-BPS: refreshments at twice their rate", SGBPS, "refresh = rng.standard_exponential() / self.refresh_rate", "refresh = 0.5 * rng.standard_exponential() / self.refresh_rate", (EXACT,)),
        ("SG-BPS: the later of bounce and refreshment", SGBPS, "if refresh < time:", "if refresh > time:", (EXACT,)),
        ("SG-BPS: a refreshment bounces", SGBPS, "memory.kind[0] = REFRESH", "memory.kind[0] = BOUNCE", (EXACT,)),
        ("SG-BPS: bounces downhill", SGBPS, "rate += v[j] * memory.gradient[j]", "rate -= v[j] * memory.gradient[j]", (EXACT,)),
        ("splitting: steps to where the density is zero end the run", SPLITTING, "        if there == math.inf:\n            memory.outside[0] += 1\n        elif not", "        if not", (EXACT,)),
        ("splitting: steps to where the density is zero are not counted", SPLITTING, "memory.outside[0] += 1", "memory.outside[0] += 0", (EXACT,)),
        ("splitting: the gradient where the step began", SPLITTING, "self.provider.gradient(x, memory.provider, rng, memory.gradient, state.counts)", "self.provider.gradient(memory.start_position, memory.provider, rng, memory.gradient, state.counts)", (EXACT,)),
        ("splitting: the second half of the drift has the old velocity", SPLITTING, "        self.apply_events(v, memory.gradient, eps, rng)\n        for j in range(d):\n            x[j] += 0.5 * eps * v[j]", "        self.apply_events(v, memory.gradient, eps, rng)\n        for j in range(d):\n            x[j] += 0.5 * eps * memory.start_velocity[j]", (EXACT,)),
        ("splitting: a drift twice as long", SPLITTING, "        self.apply_events(v, memory.gradient, eps, rng)\n        for j in range(d):\n            x[j] += 0.5 * eps * v[j]", "        self.apply_events(v, memory.gradient, eps, rng)\n        for j in range(d):\n            x[j] += eps * v[j]", (EXACT,)),
        ("Zig-Zag splitting: half the time for flips", SPLITTING, "rng.random() < -math.expm1(-eps * rate):\n                v[j]", "rng.random() < -math.expm1(-0.5 * eps * rate):\n                v[j]", (EXACT,)),
        ("Zig-Zag splitting: flips by the first order of their probability", SPLITTING, "rng.random() < -math.expm1(-eps * rate):\n                v[j]", "rng.random() < eps * rate:\n                v[j]", (EXACT,)),
        ("Zig-Zag splitting: flips where the potential falls", SPLITTING, "rate = positive(v[j] * gradient[j])", "rate = positive(-v[j] * gradient[j])", (EXACT,)),
        ("Zig-Zag splitting: one flip for all", SPLITTING, "-math.expm1(-eps * rate):\n                v[j] = -v[j]", "-math.expm1(-eps * rate):\n                v[0] = -v[0]", (EXACT,)),
        ("BPS splitting: bounces downhill", SPLITTING, "rate += v[j] * gradient[j]", "rate -= v[j] * gradient[j]", (EXACT,)),
        ("BPS splitting: turns round instead of bouncing", SPLITTING, "            reflect(v, gradient)\n", "            reflect(v, v)\n", (EXACT,)),
        ("BPS splitting: refreshments over a whole step on each side", SPLITTING, "self.refresh(v, 0.5 * eps, rng)\n        for j in range(d):", "self.refresh(v, eps, rng)\n        for j in range(d):", (EXACT,)),
        ("BPS splitting: no refreshment at the end", SPLITTING, "        self.refresh(v, 0.5 * eps, rng)\n        memory.taken[0] += 1", "        memory.taken[0] += 1", (EXACT,)),
        ("adjusted splitting: a rejection keeps the velocity", SPLITTING, "x[j], v[j] = memory.start_position[j], -memory.start_velocity[j]", "x[j], v[j] = memory.start_position[j], memory.start_velocity[j]", (EXACT,)),
        ("adjusted splitting: a rejection reverses the new velocity", SPLITTING, "x[j], v[j] = memory.start_position[j], -memory.start_velocity[j]", "x[j], v[j] = memory.start_position[j], -v[j]", (EXACT,)),
        ("adjusted splitting: the ratio of the targets alone", SPLITTING, "log_accept += memory.gradient[j] * (x[j] - memory.start_position[j])", "log_accept += 0.0 * (x[j] - memory.start_position[j])", (EXACT,)),
        ("adjusted splitting: the proposals' ratio upside down", SPLITTING, "log_accept += memory.gradient[j] * (x[j] - memory.start_position[j])", "log_accept -= memory.gradient[j] * (x[j] - memory.start_position[j])", (EXACT,)),
        ("adjusted splitting: everything is accepted", SPLITTING, "if rng.random() < accept:", "if rng.random() < 1.0:", (EXACT,)),
        ("adjusted splitting: the old potential is kept after a move", SPLITTING, "            memory.potential[0] = there\n", "            memory.potential[0] = memory.potential[0]\n", (EXACT,)),
        ("adjusted splitting: the warm-up counts as well", SPLITTING, "if counts[ADAPTING] == 0:", "if counts[ADAPTING] >= 0:", (EXACT,)),
        ("adjusted splitting: a rejection undoes the refreshment as well", SPLITTING, "        self.refresh(v, 0.5 * eps, rng)\n        for j in range(d):\n            memory.start_position[j], memory.start_velocity[j] = x[j], v[j]\n", "        for j in range(d):\n            memory.start_position[j], memory.start_velocity[j] = x[j], v[j]\n        self.refresh(v, 0.5 * eps, rng)\n        for j in range(d):\n", (EXACT,)),
    ]
]  # fmt: skip
