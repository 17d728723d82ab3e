"""Planted bugs: sticky processes, and boundaries."""

from __future__ import annotations

from tests.mutations.bugs import Bug

STICKY, STICKY_LAWS = "tests/processes/test_sticky.py", "tests/statistics/test_sticky_laws.py"
BOUNDED, BOUNDED_LAWS = "tests/processes/test_bounded.py", "tests/statistics/test_bounded_laws.py"

BUGS = [
    Bug(name, file, old, new, tests)
    for name, file, old, new, tests in [
        ("sticky: the odds upside down", "pdmp/processes/sticky.py", "return inclusion / (1.0 - inclusion) * slab_density", "return (1.0 - inclusion) / inclusion * slab_density", (STICKY, STICKY_LAWS)),
        ("sticky: probabilities instead of odds", "pdmp/processes/sticky.py", "return inclusion / (1.0 - inclusion) * slab_density", "return inclusion * slab_density", (STICKY, STICKY_LAWS)),
        ("sticky: thawing forgets the speed", "pdmp/processes/sticky.py", "rate = self.kappa[j] * abs(state.memory.coordinates[j, KEPT_VELOCITY])", "rate = self.kappa[j]", (STICKY, STICKY_LAWS)),
        ("sticky: the size of the model is off by one", "pdmp/processes/sticky.py", "(self.shape + k) /", "(self.shape + k + 1) /", (f"{STICKY}::test_a_prior_of_the_models_size",)),
        ("sticky: the size of the model does not fall", "pdmp/processes/sticky.py", "memory.included[0] -= 1", "pass", (f"{STICKY}::test_a_prior_of_the_models_size",)),
        ("sticky: others keep their rates when the size changes", "pdmp/processes/sticky.py", "final=law is not None", "final=False", (f"{STICKY}::test_a_prior_of_the_models_size",)),
        ("sticky: the velocity comes back reversed", "pdmp/processes/sticky.py", "state.v[j] = row[j, KEPT_VELOCITY]\n", "state.v[j] = -row[j, KEPT_VELOCITY]\n", (STICKY,)),
        ("sticky: thawing by the first frozen coordinate", "pdmp/processes/sticky.py", "                        if rest < 0.0:\n                            break\n", "                        break\n", (STICKY, STICKY_LAWS)),
        ("sticky: it freezes where it is", "pdmp/processes/sticky.py", "state.x[j], state.v[j] = 0.0, 0.0", "state.v[j] = 0.0", (STICKY,)),
        ("sticky: what has just thawed freezes again", "pdmp/processes/sticky.py", "(x == 0.0 and v < 0.0)", "(x == 0.0 and v > 0.0)", (STICKY,)),
        ("sticky: the warm-up counts", "pdmp/processes/sticky.py", "        memory.coordinates[:, TIME_FROZEN] = 0.0\n", "", (STICKY,)),
        ("sticky: frozen since before the warm-up's end", "pdmp/processes/sticky.py", "np.maximum(memory.coordinates[:, FROZEN_SINCE], now)", "memory.coordinates[:, FROZEN_SINCE]", (STICKY,)),
        ("sticky: the last stretch is lost", "pdmp/processes/sticky.py", "np.where(frozen, end - memory.coordinates[:, FROZEN_SINCE], 0.0)", "0.0 * frozen", (STICKY,)),
        ("sticky: time goes to the next model", "pdmp/processes/sticky.py", "            memory.occupied[memory.model[0]] += now - memory.changed[0]\n            memory.changed[0] = now\n            memory.model[0] ^= 1 << k\n", "            memory.model[0] ^= 1 << k\n            memory.occupied[memory.model[0]] += now - memory.changed[0]\n            memory.changed[0] = now\n", (STICKY,)),
        ("sticky: always is never", "pdmp/processes/sticky.py", 'self.kappa[_coordinates("always", always, d)] = 0.0', 'self.kappa[_coordinates("always", always, d)] += 0.0', (STICKY,)),
        ("sticky: the slab's density without 2π", "pdmp/models/regressions/glm.py", "return np.sqrt(self.precision / (2.0 * math.pi))", "return np.sqrt(self.precision)", (STICKY, STICKY_LAWS)),
        ("sticky BPS: reflection in the whole gradient", "pdmp/processes/sticky_bps.py", "                along += u[j] * a[j]\n                square += a[j] * a[j]\n", "                along += u[j] * a[j]\n            square += a[j] * a[j]\n", (STICKY, STICKY_LAWS)),
        ("sticky BPS: bounces move what is frozen", "pdmp/processes/sticky_bps.py", "                if u[j] != 0.0:\n                    u[j] -= 2.0", "                if True:\n                    u[j] -= 2.0", (STICKY, STICKY_LAWS)),
        ("sticky BPS: velocities on the sphere", "pdmp/processes/sticky_bps.py", "u[j] = self.persistence * u[j] + rest * rng.standard_normal()", "u[j] = self.persistence * u[j] + rest * rng.uniform(-1.0, 1.0)", (STICKY, STICKY_LAWS)),
        ("sticky Boomerang: reflection in the Euclidean metric", "pdmp/processes/sticky_boomerang.py", "along / square * sd[j] * sd[j] * gradient[j]", "along / square * gradient[j]", (STICKY, STICKY_LAWS)),
        ("sticky Boomerang: waves without the frozen", "pdmp/processes/sticky_boomerang.py", "a, c = 0.5 * (start - opposite), 0.5 * (start + opposite)", "a, c = 0.0, start", (STICKY, STICKY_LAWS)),
        ("sticky Boomerang: refreshments of unit variance", "pdmp/processes/sticky_boomerang.py", "v[j] = sd[j] * rng.standard_normal()", "v[j] = rng.standard_normal()", (STICKY, STICKY_LAWS)),
        ("sticky Zig-Zag: neighbours keep their clocks", "pdmp/processes/extended.py", "own = sparse.hstack([watches @ watches.T, watches @ one @ rings])", "own = sparse.hstack([watches @ watches.T, 0 * (watches @ one @ rings)])\n    own.eliminate_zeros()", (STICKY, STICKY_LAWS)),
        ("sticky Zig-Zag: a flip keeps the time of freezing", "pdmp/processes/extended.py", "sparse.hstack([reaches @ watches.T, rings])", "sparse.hstack([sparse.csr_array((inner.clocks, watches.shape[0]), dtype=np.int32), rings])", (STICKY, STICKY_LAWS)),
        ("extended: one clock is not redrawn", "pdmp/processes/extended.py", "indices = np.insert(inner.order[:last], inner.start[:-1], n)", "indices = np.insert(inner.order[:last], inner.start[1:], n)", (BOUNDED,)),
        ("inclusion: chains weigh the same", "pdmp/diagnostics/variable_selection.py", 'return sum(r.accumulated["included"] for r in records) / sum(r.length for r in records)', 'return sum(r.accumulated["included"] / r.length for r in records) / len(records)', (STICKY,)),
        ("inclusion: the skeleton's coordinates are all", "pdmp/diagnostics/variable_selection.py", "name = tuple(sticking[row].tolist())", "name = tuple(np.flatnonzero(row).tolist())", (STICKY,)),
        ("boundary: rounding leaves it beyond the wall", "pdmp/processes/bounded.py", "        x[j] = self.upper[j] if above else self.lower[j]\n", "", (BOUNDED,)),
        ("boundary: the lower wall reflects outwards", "pdmp/processes/bounded.py", "v[j] = -w if above else w", "v[j] = -w", (BOUNDED,)),
        ("boundary: half a reflection", "pdmp/processes/bounded.py", "v[self.indices[q]] -= 2.0 * along / square * self.data[q]", "v[self.indices[q]] -= along / square * self.data[q]", (BOUNDED, BOUNDED_LAWS)),
        ("boundary: the metric is forgotten in the square", "pdmp/processes/bounded.py", "across += self.data[q] * self.mirrors[k, self.indices[q]]", "across += self.data[q] * self.data[q]", (BOUNDED,)),
        ("boundary: a box ignores the metric", "pdmp/processes/bounded.py", "self.box_mirrors = np.array([covariance(a) for a in np.eye(d)])", "self.box_mirrors = np.eye(d)", (BOUNDED, BOUNDED_LAWS)),
        ("boundary: Zig-Zag turns round", "pdmp/processes/bounded.py", "                v[self.indices[q]] = -v[self.indices[q]]\n", "                v[self.indices[q]] = -v[self.indices[q]] if q == first else v[self.indices[q]]\n", (BOUNDED, BOUNDED_LAWS)),
        ("boundary: hits counted from the last event", "pdmp/processes/bounded.py", "            s = now - last_moved(state.moved, j)\n", "            s = 0.0\n", (BOUNDED, BOUNDED_LAWS)),
        ("boundary: the wall of an ellipse without its centre", "pdmp/processes/bounded.py", "self.offsets[k] - WALL_MARGIN * size - self.around[k]", "self.offsets[k] - WALL_MARGIN * size", (BOUNDED,)),
        ("boundary: the other wall is noted", "pdmp/processes/bounded.py", "1 if rise < fall else 0", "0 if rise < fall else 1", (BOUNDED,)),
        ("boundary: absorbed, and on it goes", "pdmp/processes/bounded.py", "            state.memory.ended[0] = True\n", "            pass\n", (BOUNDED,)),
        ("boundary: a start outside goes unsaid", "pdmp/processes/bounded.py", "        self.check_inside(x)\n", "", (BOUNDED,)),
        ("boundary: a half-space is passed", "pdmp/processes/bounded.py", "- WALL_MARGIN * size - self", "+ 1e-3 * size - self", (BOUNDED,)),
        ("ellipse: the falling passage", "pdmp/flow.py", "math.atan2(w + 0.0, y) - math.acos(", "math.atan2(w + 0.0, y) + math.acos(", (BOUNDED,)),
        ("ellipse: it stays at the wall", "pdmp/flow.py", "else wait + 2.0 * math.pi", "else max(wait, 0.0)", (BOUNDED,)),
        ("grid: cells look past a clock that comes after one that has just rung", "pdmp/thinning/bound.py", "for k in range(min(7, state.heap.shape[0])):", "for k in range(min(1, state.heap.shape[0])):", (BOUNDED,)),
        ("flow: a passage backwards in time", "pdmp/flow.py", "return max(level - y, 0.0) / w if w > 0.0 else math.inf", "return (level - y) / w if w > 0.0 else math.inf", (BOUNDED,)),
        ("boundary: mirrors of a mass that is made later are forgotten", "pdmp/processes/bounded.py", "        resolved._mirror_in(resolved.inner)\n", "", (BOUNDED,)),
        ("boundary: a diagonal mass turns as if it were its inverse", "pdmp/processes/mass.py", "mass.u[j] = state.v[j] / mass.root[j]", "mass.u[j] = state.v[j] * mass.root[j]", (BOUNDED,)),
        ("boundary: a dense mass turns by its diagonal", "pdmp/processes/mass.py", "rest -= mass.root[i, j] * mass.u[j]", "rest -= 0.0", (BOUNDED,)),
        ("boundary: BPS keeps its old direction", "pdmp/processes/bps.py", "        self.mass.velocity_changed(state)\n", "        pass\n", (BOUNDED,)),
        ("boundary: the ray goes on through the wall", "pdmp/processes/directional_bps.py", "state.memory.began[0], state.memory.at[0], state.memory.carried[0] = math.nan, math.nan, 0.0", "state.memory.at[0] = math.nan", (BOUNDED,)),
        ("boundary: the coordinate that moves is not known at the start", "pdmp/processes/extended.py", "        self.inner.prepare(state._replace(memory=state.memory.inner))", "        pass", (BOUNDED,)),
        ("process: velocities of zero pass", "pdmp/process.py", "not (self.rests or np.any(v))", "False", ("tests/processes/test_bad_input.py",)),
        ("local BPS: reducible graphs go unsaid", "pdmp/processes/local_bps.py", "np.diff(self.factors.graph.indptr).max() > 1", "False", ("tests/factors/test_local.py",)),
        ("calibration: ties count as more", "pdmp/validation/simulation.py", " + rng.integers((found == parameter).sum(axis=0) + 1)", "", ("tests/validation/test_calibration.py",)),
        ("chain: an absorbed run stops for the time", "pdmp/engine/chain.py", "elif status == scheduler.TIME_UP and self.process.ended(self.state) is not None:", "elif False:", (BOUNDED,)),
    ]
]  # fmt: skip
