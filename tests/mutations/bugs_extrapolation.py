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
        ("fine gradient at the coarse state", FILE, "x, z = state.x[:d], first if one else second", "x, z = state.x[d:], first if one else second", (ROMBERG,)),
        ("chains drift apart in time", FILE, "(k + 1) * length if self.regular else began + length)", "(k + 1) * length if self.regular else now + length)", (ROMBERG,)),
        ("the second half step re-uses the first's noise", FILE, "first if one else second", "first", (ROMBERG,)),
        ("Σ in place of Σᵀ", FILE, "self.shared = np.ascontiguousarray(sigma.T)", "self.shared = np.ascontiguousarray(sigma)", (ROMBERG,)),
        ("remainder I - ΣΣᵀ", FILE, "np.eye(len(sigma)) - sigma.T @ sigma)", "np.eye(len(sigma)) - sigma @ sigma.T)", (ROMBERG,)),
        ("Σ above 1 is let through", FILE, "if not values[0] >= -1e-12:", "if not values[0] >= -1.0:", (ROMBERG,)),
        ("a matrix Σ is not scaled by √½", FILE, "both, w = root * (first[k] + second[k])", "both, w = (first[k] + second[k])", (ROMBERG,)),
        ("paper's weights are those of holding", FILE, 'self.paper_weights = weights == "paper"', "self.paper_weights = False", (ROMBERG,)),
        ("paper's weights with the step before", FILE, "0.5 * self.holding_time(k + 1), CERTAIN", "0.5 * length, CERTAIN", (ROMBERG,)),
        ("paper's weights: the first state counts", FILE, "            if k == 0:\n                return 0.0, CERTAIN\n", "            if k == 0:\n                return length, CERTAIN\n", (ROMBERG,)),
        ("paper's weights: constant steps a step late", FILE, "return k * length if self.regular else began + length, CERTAIN", "return (k + 1) * length if self.regular else began + length, CERTAIN", (ROMBERG,)),
        ("paper's weights: the last states have half of theirs", FILE, "if not self.paper_weights or k == 0 or", "if self.paper_weights or k == 0 or", (ROMBERG,)),
        ("paper's weights: the end is that of the step before", FILE, "length = self.holding_time(k)\n        return float", "length = self.holding_time(k - 1)\n        return float", (ROMBERG,)),
        ("a path ends at its last event whatever the process holds", "pdmp/engine/chain.py", "return self.process.held_until(self.state, float(self.state.now[0]))", "return float(self.state.now[0])", (ROMBERG,)),
        ("the order's default is 1 whatever the sampler", FILE, "order = sampler.bias_order if order is None else count(\"order\", order, most=MOST_ORDER)", "order = 1 if order is None else order", (ROMBERG,)),
        ("weights p in place of 2ᵖ", FILE, "self.copies = (2.0**order / (2.0**order - 1.0)", "self.copies = ((order + 1.0) / (2.0**order - 1.0)", (ROMBERG,)),
        ("SGRRHMC: the coarse chain's momentum is lost", FILE, "memory.v[j] = state.v[d + j]", "memory.v[j] = 0.0", (ROMBERG,)),
        ("SGRRHMC: the coarse chain's momentum stays", FILE, "            state.v[d + j] = memory.v[j]\n", "", (ROMBERG,)),
        ("SGRRHMC: momenta start differently", FILE, "return np.concatenate([one, one])", "return np.concatenate([one, -one])", (ROMBERG,)),
        ("SGRRHMC: the friction of from_h is α", FILE, "friction=positive(\"alpha\", alpha) / eps, noise", "friction=alpha, noise", (ROMBERG,)),
        ("SGRRHMC: the fine chain refreshes twice as often", "discrete/sghmc.py", "fine.refresh_every *= 2", "fine.refresh_every *= 1", (ROMBERG,)),
        ("the coarse chain's batches are the fine one's", FILE, "if not (self.coarse.move(x, memory.v, memory.coarse", "if not (self.coarse.move(x, memory.v, memory.fine", (ROMBERG,)),
        ("the coarse chain's data are not counted", FILE, "state.counts[DATA] += memory.coarse_counts[DATA]", "state.counts[DATA] += 0", (ROMBERG,)),
        ("curves: a grid's first point is counted alone", "pdmp/engine/result.py", "place = end + 1\n            means.append", "place = end\n            means.append", (ROMBERG,)),
        ("curves: the coarse chain twice", "pdmp/engine/result.py", "one(x[c * d : (c + 1) * d]) for c in copies", "one(x[d:]) for c in copies", (ROMBERG,)),
        ("curves: averages of each stretch", "pdmp/engine/result.py", "np.cumsum(averages, axis=0) / np.arange(1, n + 1).reshape", "averages / np.ones(n).reshape", (ROMBERG,)),
        ("curves: from the start of the chain", "pdmp/engine/result.py", "averages = self.paths[i].stretches(n, value, r.warmup, r.end)\n            out", "averages = self.paths[i].stretches(n, value, 0.0, r.end)\n            out", (ROMBERG,)),
        ("threads: a step is posted before its increments are there", FILE, "self._combine(first, second, memory.normals, d, rng)\n                memory.coarse_counts[ADAPTING] = state.counts[ADAPTING]\n                store(memory.jobs.posted, memory.coarse.taken[0] + 1)", "memory.coarse_counts[ADAPTING] = state.counts[ADAPTING]\n                store(memory.jobs.posted, memory.coarse.taken[0] + 2)\n                self._combine(first, second, memory.normals, d, rng)", (ROMBERG,)),
        ("threads: a step is carried out twice", FILE, "if compare_and_swap(jobs.claimed, taken, taken + 1):", "if compare_and_swap(jobs.claimed, taken, taken + 1) or jobs.done[0] > taken:", (ROMBERG,)),
        ("threads: a failure of the helper is not seen", FILE, "memory.jobs.failed[0] = 1", "memory.jobs.failed[0] = 0", (ROMBERG,)),
        ("threads: the helper outlives the loop", "discrete/threads.py", "        self._state.memory.jobs.is_open[0] = 0\n        if self._thread is not None:\n            self._thread.join()\n            self._process", "        if self._thread is not None:\n            self._process", (ROMBERG,)),
        ("threads: the position changes before the tick", FILE, "        x = memory.x\n", "        x = state.x[d:]\n", (ROMBERG,)),
        ("stream: uniforms of 27 bits are too small", "discrete/streams.py", "(high >> 5) * 67108864.0", "(high >> 6) * 67108864.0", (ROMBERG,)),
        ("stream: the counter stands still", "discrete/streams.py", "words[3] = (counter + 2) & mask", "words[3] = (counter + 1) & mask", (ROMBERG,)),
        ("stream: normals of variance 1/2", "discrete/streams.py", "math.sqrt(-2.0 * math.log(1.0 - self.random()))", "math.sqrt(-math.log(1.0 - self.random()))", (ROMBERG,)),
    ]
]  # fmt: skip
