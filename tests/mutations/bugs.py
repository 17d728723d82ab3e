"""The list of planted bugs: each is one edit of one file, and the tests that must fail with it."""

from __future__ import annotations

from typing import NamedTuple

THINNING = "tests/thinning/test_thinning.py"
EXACT = "tests/processes/test_processes_exact.py"
BARKER = "tests/discrete/test_barker.py"
LANGEVIN = "tests/discrete/test_langevin.py"
ROMBERG = "tests/discrete/test_richardson_romberg.py"
GRADIENTS = "tests/gradients/test_gradients.py"
MODELS = "tests/models/test_models.py"
RUNS = "tests/engine/test_run.py"
PATHS = "tests/engine/test_trajectory.py"
EVENTS = "tests/statistics/test_events.py"
PDMP_LAWS = "tests/statistics/test_pdmp_laws.py"
DISCRETE_LAWS = "tests/statistics/test_discrete_laws.py"
PAPER = "tests/statistics/test_sbps_logistic.py"
EFFECTIVE = "tests/diagnostics/test_by_hand.py"


class Bug(NamedTuple):
    """One planted bug."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple
    needs: str = ""  #: a package without which these tests are skipped


BUGS = [
    # the event loop
    Bug(
        "scheduler: accept test reversed",
        "pdmp/engine/scheduler.py",
        "accepted = rng.random() * bound < rate",
        "accepted = rng.random() * bound > rate",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "scheduler: every proposal is accepted",
        "pdmp/engine/scheduler.py",
        "accepted = rng.random() * bound < rate",
        "accepted = bound > 0.0",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "scheduler: neighbours' clocks stay stale after an event",
        "pdmp/engine/scheduler.py",
        "first, last, what = process.start[i], process.start[i + 1], DEPENDENTS",
        "first, last, what = i, i + 1, CLOCKS",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "scheduler: the heap compares with the wrong child",
        "pdmp/engine/scheduler.py",
        "_before(keys[child + 1], heap[child + 1], keys[child], heap[child])",
        "_before(keys[child], heap[child], keys[child + 1], heap[child + 1])",
        (THINNING,),
    ),
    Bug(
        "scheduler: the integral of a path is taken after the move",
        "pdmp/engine/scheduler.py",
        "            integrate_all(integrals, flow, x, v, moved[0], now)\n            for j in range(x.shape[0]):\n"
        "                position = flow.position(j, x[j], v[j], now - moved[0])\n",
        "            for j in range(x.shape[0]):\n"
        "                position = flow.position(j, x[j], v[j], now - moved[0])\n"
        "                integrate(integrals, flow, j, position, v[j], moved[0], now)\n",
        (RUNS, PATHS),
    ),
    Bug(
        "flow: second moment without its cubic term",
        "pdmp/flow.py",
        "v * v * s * s / 3.0",
        "v * v * s * s / 2.0",
        (EXACT, PATHS),
    ),
    Bug(
        "recording: the warm-up counts",
        "pdmp/engine/recording.py",
        "    a = max(moved, integrals.since[0])\n    if now <= a:\n        return\n    if a > moved:",
        "    a = moved\n    if now <= a:\n        return\n    if a > moved:",
        (RUNS, PATHS),
    ),
    # thinning
    Bug(
        "affine: factor 2 lost in the inversion",
        "pdmp/thinning/affine.py",
        "return 2.0 * e / (a + math.sqrt(a * a + 2.0 * b * e))",
        "return 2.0 * e / (a + math.sqrt(a * a + b * e))",
        (THINNING,),
    ),
    Bug(
        "affine: a negative start is taken as zero",
        "pdmp/thinning/affine.py",
        "return -a / b + math.sqrt(2.0 * e / b)",
        "return math.sqrt(2.0 * e / b)",
        (THINNING,),
    ),
    Bug(
        "affine: one exponential for all components",
        "pdmp/thinning/affine.py",
        "    for j in range(a.shape[0]):  # the first arrival of a sum is the earliest of its parts\n"
        "        s = min(s, first_arrival(a[j], b[j], rng.standard_exponential()))",
        "    e = rng.standard_exponential()\n    for j in range(a.shape[0]):\n"
        "        s = min(s, first_arrival(a[j], b[j], e))",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "grid: the second part of a cell starts with a fresh exponential's worth",
        "pdmp/thinning/grid.py",
        "            e -= 0.5 * (left + memory.inner_bound[0]) * (inner - s)\n",
        "",
        (THINNING, EVENTS),
    ),
    Bug(
        "piecewise: the segment is inverted as if flat",
        "pdmp/thinning/piecewise.py",
        "math.sqrt(max(0.0, left * left + 2.0 * q * e))",
        "left",
        (THINNING,),
    ),
    Bug(
        "regression: variance k ρ² in place of k ρ",
        "pdmp/thinning/regression.py",
        "    return math.sqrt(max(0.0, variance) + c2)",
        "    return max(0.0, variance) + c2",
        (THINNING,),
    ),
    Bug(
        "regression: the prior's mean is not weighted",
        "pdmp/thinning/regression.py",
        'u0, u1 = line["weight_g"], line["weight_sg"] + mean / variance',
        'u0, u1 = line["weight_g"], line["weight_sg"] + mean',
        (THINNING,),
    ),
    # BPS and Zig-Zag
    Bug(
        "reflection: factor 1 in place of 2",
        "pdmp/native/velocities.py",
        "c = 2.0 * along / square",
        "c = along / square",
        (EXACT,),
    ),
    Bug(
        "reflection: wrong sign",
        "pdmp/native/velocities.py",
        "c = 2.0 * along / square",
        "c = -2.0 * along / square",
        (EXACT,),
    ),
    Bug(
        "refreshment: velocities from a cube",
        "pdmp/native/velocities.py",
        "v[j] = rng.standard_normal()\n        square",
        "v[j] = 2.0 * rng.random() - 1.0\n        square",
        (EXACT,),
    ),
    Bug(
        "BPS: refreshments are dropped",
        "pdmp/processes/bps.py",
        "            refresh_on_sphere(u, rng)",
        "            pass",
        (EXACT, PDMP_LAWS),
    ),
    Bug(
        "BPS: the refreshment clock is twice too slow",
        "pdmp/processes/bps.py",
        "return now + constant_arrival(self.refresh_rate, rng), CERTAIN",
        "return now + 2.0 * constant_arrival(self.refresh_rate, rng), CERTAIN",
        (EXACT, EVENTS),
    ),
    Bug(
        "BPS: the bounce clock is not redrawn after a refreshment",
        "pdmp/processes/bps.py",
        "dependents=[[BOUNCE], [BOUNCE, REFRESH]]",
        "dependents=[[BOUNCE], [REFRESH]]",
        (EVENTS, PDMP_LAWS),
    ),
    Bug(
        "BPS: bounces at |v·∇U|",
        "pdmp/processes/bps.py",
        "return positive(self.along(state))",
        "return abs(self.along(state))",
        (EXACT, EVENTS),
    ),
    Bug(
        "Zig-Zag: the coordinate is drawn uniformly",
        "pdmp/processes/zigzag.py",
        "state.memory.flipping[0] = draw_component(rates, rng.random() * total)",
        "state.memory.flipping[0] = int(rng.random() * rates.shape[0])",
        (EVENTS,),
    ),
    Bug(
        "Zig-Zag: a rate 5 % too small",
        "pdmp/processes/zigzag.py",
        "out[j] = state.v[j] * state.memory.gradient[j]",
        "out[j] = 0.95 * state.v[j] * state.memory.gradient[j]",
        (EVENTS,),
    ),
    Bug(
        "Gaussian: local clocks look at where coordinates last moved",
        "pdmp/models/targets/gaussian.py",
        "value += q * (x[j] + v[j] * (now - times[j]) - self.mean[j])",
        "value += q * (x[j] - self.mean[j])",
        (MODELS, EVENTS),
    ),
    Bug(
        "Gaussian: half the slope",
        "pdmp/models/targets/gaussian.py",
        "        return value, slope",
        "        return value, 0.5 * slope",
        (MODELS,),
    ),
    # SBPS
    Bug(
        "SBPS: the regression restarts at +G after a bounce",
        "pdmp/processes/sbps.py",
        "regression.observe(line, 0.0, -g, c2)",
        "regression.observe(line, 0.0, g, c2)",
        (EXACT,),
    ),
    Bug(
        "SBPS: observations survive a bounce",
        "pdmp/processes/sbps.py",
        "            self.set_velocity(state)\n            regression.forget(line)\n            if not self.adapts",
        "            self.set_velocity(state)\n            if not self.adapts",
        (EXACT,),
    ),
    Bug(
        "SBPS: the clock of the regression restarts at each proposal",
        "pdmp/processes/sbps.py",
        '        s = now - state.moved[0]\n        if line["count"] == 0.0:',
        '        s = 0.0\n        if line["count"] == 0.0:',
        (EXACT, PAPER),
    ),
    Bug(
        "SBPS: k is forgotten",
        "pdmp/thinning/regression.py",
        'line["slope"] * s + k * spread(',
        'line["slope"] * s + 0.0 * k * spread(',
        (THINNING,),
    ),
    # gradients
    Bug(
        "Minibatch: the noise sd lacks N/√n",
        "pdmp/gradients/minibatch.py",
        "self.drawing.add_squares(self.packed, x, memory, n, out, sd)\n        for j in range(out.shape[0]):\n"
        "            sd[j] = weight * math.sqrt(n * correction *",
        "self.drawing.add_squares(self.packed, x, memory, n, out, sd)\n        for j in range(out.shape[0]):\n"
        "            sd[j] = math.sqrt(correction *",
        (GRADIENTS,),
    ),
    Bug(
        "Minibatch: the variance of G lacks the number in the batch",
        "pdmp/gradients/minibatch.py",
        "memory, n, out)\n        for j in range(out.shape[0]):\n            out[j] *= weight\n"
        "        self.packed.add_prior_gradient(x, out)\n        counts[DATA] += n\n        g = dot(v, out)\n"
        "        return g, at_least(weight * weight * n * correction *",
        "memory, n, out)\n        for j in range(out.shape[0]):\n            out[j] *= weight\n"
        "        self.packed.add_prior_gradient(x, out)\n        counts[DATA] += n\n        g = dot(v, out)\n"
        "        return g, at_least(weight * weight * correction *",
        (GRADIENTS,),
    ),
    Bug(
        "Minibatch: the prior is scaled up with the batch",
        "pdmp/gradients/minibatch.py",
        'into the estimate."""\n        for j in range(out.shape[0]):\n'
        "            out[j] *= weight\n        self.packed.add_prior_gradient(x, out)\n",
        'into the estimate."""\n'
        "        self.packed.add_prior_gradient(x, out)\n        for j in range(out.shape[0]):\n"
        "            out[j] *= weight\n",
        (GRADIENTS,),
    ),
    Bug(
        "ControlVariate: the anchor's batch is not subtracted",
        "pdmp/gradients/control_variate.py",
        "self.drawing.difference(self.model, x, anchor, memory, n, out)",
        "clear(out)\n        self.model.add_batch_gradient(x, memory.rows, n, out)",
        (GRADIENTS,),
    ),
    Bug(
        "ControlVariate: the correction counts twice",
        "pdmp/gradients/control_variate.py",
        "memory, n, out)\n        for j in range(out.shape[0]):\n            out[j] = weight * out[j]",
        "memory, n, out)\n        for j in range(out.shape[0]):\n            out[j] = 2.0 * weight * out[j]",
        (GRADIENTS,),
    ),
    # fixed-step samplers
    Bug(
        "ticks: a state is held for the step that led to it",
        "discrete/tick.py",
        "return now + self.holding_time(k), CERTAIN",
        "return now + self.holding_time(max(k - 1, 0)), CERTAIN",
        (LANGEVIN,),
    ),
    Bug(
        "SGBD: sign of the gradient",
        "discrete/sgbd.py",
        "probability(self.estimator, z, -memory.gradient[j], tau)",
        "probability(self.estimator, z, memory.gradient[j], tau)",
        (BARKER,),
    ),
    Bug("SGBD: wrong constant", "discrete/barker.py", "C = 1.702 ", "C = 1.732 ", (BARKER,)),
    Bug(
        "SGBD: the correction is inverted",
        "discrete/barker.py",
        "g *= C / math.sqrt(C * C - tau * tau * z * z)",
        "g *= math.sqrt(C * C - tau * tau * z * z) / C",
        (BARKER,),
    ),
    Bug(
        "SGBD: the running noise is not corrected for its start",
        "discrete/sgbd.py",
        "tau = memory.mean_sd[j] / (1.0 - memory.start_weight[0])",
        "tau = memory.mean_sd[j]",
        (BARKER,),
    ),
    Bug(
        "SGBD: the spread of z is a variance",
        "discrete/sgbd.py",
        "z = s + SPREAD * s * rng.standard_normal()",
        "z = s + math.sqrt(SPREAD * s) * rng.standard_normal()",
        (BARKER,),
    ),
]

# One line each: name, file, old, new, tests.
BUGS += [
    Bug(*row)
    for row in [
        ("SGBD: sign of the increment", "discrete/sgbd.py", "theta[j] += z if", "theta[j] -= z if", (BARKER,)),
        ("SGBD: β weighs the old value", "discrete/sgbd.py", "memory.mean_sd[j] += self.beta * (memory", "memory.mean_sd[j] += (1.0 - self.beta) * (memory", (BARKER,)),
        ("SGBD: breaking point too late", "discrete/barker.py", "if estimator == EXTREME or estimator == CORRECTED and tau * abs(z) >= C", "if estimator == EXTREME or estimator == CORRECTED and tau * abs(z) >= 1.2 * C", (BARKER,)),
        ("SGBD: held for σ", "discrete/sgbd.py", "return sigma * sigma * self.mean_square_shape", "return sigma * self.mean_square_shape", (BARKER,)),
        ("laws: γ τ² in place of γ² τ²", "discrete/laws.py", "injected + step**2 * p @ noise @ p.T", "injected + step * p @ noise @ p.T", (LANGEVIN,)),
        ("laws: no finite-population factor", "discrete/curvature.py", "return (n_data - n) / max(n_data - 1, 1)", "return 1.0", (LANGEVIN,)),
        ("laws: N in place of N²", "discrete/curvature.py", "return np.full(provider.n_data, float(provider.n_data))", "return np.full(provider.n_data, 1.0)", (LANGEVIN,)),
        ("laws: SGBD's response is halved", "discrete/laws.py", "2.0 * z**2 * stretch * slope, beyond", "z**2 * stretch * slope, beyond", (BARKER,)),
        ("SBPS: observations survive a refreshment", "pdmp/processes/sbps.py", "            refresh_on_sphere(memory.metric.u, rng)\n            self.set_velocity(state)\n            regression.forget(line)", "            refresh_on_sphere(memory.metric.u, rng)\n            self.set_velocity(state)", (EXACT,)),
        ("SBPS: the bound is inverted from the last bounce on", "pdmp/processes/sbps.py", "first_arrival(line, k, s, step", "first_arrival(line, k, 0.0, step", (EXACT,)),
        ("SBPS: bounces in the unscaled gradient", "pdmp/processes/sbps.py", "g += memory.metric.u[j] * memory.metric.pulled[j]", "g += memory.metric.u[j] * memory.gradient[j]", (EXACT,)),
        ("BPS: bounces downhill", "pdmp/processes/bps.py", "return positive(self.along(state))", "return positive(-self.along(state))", (EXACT,)),
        ("Zig-Zag: another coordinate flips", "pdmp/processes/zigzag.py", "j = state.memory.flipping[0] if self.one_clock else i\n        self.rates.flip(state, j)", "j = 0 if self.one_clock else i\n        self.rates.flip(state, j)", (EXACT,)),
        ("Zig-Zag: slope without its velocity", "pdmp/thinning/affine.py", "first_arrival(v * partial, v * slope", "first_arrival(v * partial, slope", (EXACT,)),
        ("positions: all from the first one's time", "pdmp/process.py", "out[j] = flow.position(j, state.x[j], state.v[j], now - state.moved[j])", "out[j] = flow.position(j, state.x[j], state.v[j], now - state.moved[0])", (EXACT,)),
        ("grid: a horizon before the cell's end", "pdmp/thinning/grid.py", "return memory.end[0], HORIZON", "return memory.end[0] - 0.5 * rest, HORIZON", (THINNING,)),
        ("regression: chords lose their right end", "pdmp/thinning/regression.py", "e -= 0.5 * (left + right) * width", "e -= 0.5 * left * width", (THINNING,)),
        ("regression: no noise in the spread", "pdmp/thinning/regression.py", "    return math.sqrt(max(0.0, variance) + c2)", "    return math.sqrt(max(0.0, variance))", (THINNING,)),
        ("regression: the first noise, not the latest", "pdmp/thinning/regression.py", "    line[\"latest_variance\"] = c2\n", "    line[\"latest_variance\"] = c2 if line[\"count\"] == 0.0 else line[\"latest_variance\"]\n", (THINNING,)),
        ("ess: factor 2 in the batch means", "pdmp/diagnostics/effective_size.py", "spread += time * each * np.var", "spread += time * 2.0 * each * np.var", (EFFECTIVE,)),
        ("ess: chains that disagree count in full", "pdmp/diagnostics/effective_size.py", "    if len(means) > 1:", "    if False:", (EFFECTIVE,)),
        ("SBPS: P is adapted after the warm-up", "pdmp/processes/sbps.py", "if self.adapts and state.counts[ADAPTING] == 1:", "if self.adapts:", (PAPER,)),
        ("SBPS: z-scores without the fitted slope", "pdmp/processes/sbps.py", "z = (g - line[\"intercept\"] - line[\"slope\"] * s)", "z = (g - line[\"intercept\"])", (EXACT,)),
        ("SBPS: a replaced slope has the wrong sign", "pdmp/processes/sbps.py", "regression.with_slope(line, positive(", "regression.with_slope(line, -positive(", (EXACT,)),
        ("refreshment: twice the automatic rate", "pdmp/processes/exact.py", "return 0.1 * math.sqrt(curvature_at", "return 0.2 * math.sqrt(curvature_at", (EXACT,)),
        ("heap: ties by the larger index", "pdmp/engine/scheduler.py", "(s == t and i < j)", "(s == t and i > j)", (THINNING,)),
        ("flow: the product's velocities are mixed up", "pdmp/flow.py", "0.5 * s * (x * w + y * v)", "0.5 * s * (x * w + x * v)", (EXACT,)),
        ("Minibatch: no finite-population factor", "pdmp/gradients/drawing.py", "return self.size, self.total / self.size, 1.0 - self.size / self.total", "return self.size, self.total / self.size, 1.0", (GRADIENTS,)),
    ]
]  # fmt: skip
