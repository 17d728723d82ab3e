"""Planted bugs in the bounds of `pdmp.thinning`, and in the check of clocks."""

from __future__ import annotations

from tests.mutations.bugs import Bug

BOUNDS, THINNING, CLOCKS = (
    "tests/thinning/test_bounds.py",
    "tests/thinning/test_thinning.py",
    "tests/validation/test_clocks.py",
)
CALIBRATION = "tests/validation/test_calibration.py"
PREDICTED = "tests/thinning/test_predicted.py"

BUGS = [
    Bug(f"bounds: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("constant: the wait does not know the level", "pdmp/thinning/constant.py", "rng.standard_exponential() / self.level, self.level", "rng.standard_exponential(), self.level", BOUNDS),
        ("constant: negative levels count", "pdmp/thinning/constant.py", "total += positive(levels[j])", "total += levels[j] - 0.1 * abs(levels[j])", BOUNDS),
        ("Lipschitz: a mean in place of a sum", "pdmp/thinning/hessian.py", "b[0] = self.constant * square", "b[0] = self.constant * square / v.shape[0]", BOUNDS),
        ("Hessian: only its diagonal", "pdmp/thinning/hessian.py", "b[0] += abs(v[j]) * row", "b[0] = abs(v[j]) * row", BOUNDS),
        ("Hessian: signs of the velocity", "pdmp/thinning/hessian.py", "row += self.matrix[j, k] * abs(v[k])", "row += self.matrix[j, k] * v[k]", BOUNDS),
        ("local Hessian: the horizon is overrun", "pdmp/thinning/hessian.py", "        if s >= width:\n            return now + width, HORIZON\n", "        if s == math.inf:\n            return now + width, HORIZON\n", BOUNDS),
        ("affine: a bound that is not finite passes", "pdmp/thinning/affine.py", "    if not math.isfinite(slopes):\n        return now, math.nan\n", "", BOUNDS),
        ("concave-convex: one tangent only", "pdmp/thinning/concave_convex.py", "meeting = min(h, max(0.0, (g1 - g0 - slope1 * h) / (slope0 - slope1)))", "meeting = 0.0", BOUNDS),
        ("concave-convex: the chord is taken at the end", "pdmp/thinning/concave_convex.py", "c0 + (c1 - c0) * (meeting / h) + max(", "c1 + max(", BOUNDS),
        ("concave-convex: the second line is forgotten", "pdmp/thinning/concave_convex.py", "        t, e = positive_arrival(height(memory, j, h, s), memory.right[j], h - s, e)\n", "        t = math.inf\n", BOUNDS),
        ("logistic parts: convex and concave swapped", "pdmp/models/regressions/logistic_signed.py", "out[j, 0] += k * c if k > 0.0 else k * g", "out[j, 0] += k * g if k > 0.0 else k * c", BOUNDS),
        ("polynomial: the power lags behind", "pdmp/thinning/polynomial.py", "slope += k * table[j, k] * power", "slope += table[j, k] * power", BOUNDS),
        ("grid: no room for curvature", "pdmp/thinning/grid.py", "room = self.safety * NEEDED * abs(second_difference(a, b, c))", "room = 0.0", BOUNDS),
        ("grid: a cell outlives the event", "pdmp/thinning/grid.py", "return memory.events[0] == events_so_far(state) and memory.clock[0] == i", "return memory.clock[0] == i", BOUNDS),
        ("grid: many proposals of one cell leave no width", "pdmp/thinning/grid.py", "memory.width[0] = max(memory.width[0], SHRINKAGE * memory.accurate_width[0])", "memory.width[0] = max(memory.width[0], 0.0)", BOUNDS),
        ("grid: wide cells jump over a peak", "pdmp/thinning/grid.py", "and difference * width <= memory.tolerance[0]:", "and difference * width <= 1e9:", BOUNDS),
        ("grid: the rest of a cell begins anew", "pdmp/thinning/grid.py", "left, s = memory.begin_bound[0], now - memory.begin[0]", "left, s = memory.begin_bound[0], 0.0", BOUNDS),
        ("grid: the inner point is the middle", "pdmp/thinning/grid.py", "PART = 0.3\n", "PART = 0.5\n", BOUNDS),
        ("grid: room for the shorter chord only", "pdmp/thinning/grid.py", "max(PART, 1.0 - PART) ** 2", "min(PART, 1.0 - PART) ** 2", THINNING),
        ("grid: violations change nothing", "pdmp/thinning/grid.py", "        memory.width[0] *= 0.7\n", "        memory.width[0] *= 1.0\n", THINNING),
        ("maxima: the search keeps the wrong side", "pdmp/thinning/maxima.py", "                if t > b:\n                    a, low = b, middle\n", "                if t < b:\n                    a, low = b, middle\n", BOUNDS),
        ("maxima: the ends of a cell are not looked at", "pdmp/thinning/maxima.py", "top = max(low, high)", "top = low", BOUNDS),
        ("bound: a cell passes over the next ring", "pdmp/thinning/bound.py", "            other = state.keys[k]\n", "            other = np.inf\n", BOUNDS),
        ("predicted: the margin forgets how old the gradient is", "pdmp/thinning/predicted.py", "room * scale * (FIRST * unit + age)", "room * scale * FIRST * unit", PREDICTED),
        ("predicted: the known slope is not used", "pdmp/thinning/predicted.py", "(FIRST * unit + age), rises[j] + rise", "(FIRST * unit + age), rise", PREDICTED),
        ("predicted: horizons count as proposals", "pdmp/thinning/predicted.py", "if state.bounds[i] > HORIZON:", "if state.bounds[i] > -1.0:", PREDICTED),
        ("predicted: no floor where the rate should be negative", "pdmp/thinning/predicted.py", "memory.starts[m] += FLOOR * start", "memory.starts[m] += 0.0 * start", PREDICTED),
        ("predicted: the warm-up adapts as slowly as the rest", "pdmp/thinning/predicted.py", "WARM_GAIN if state.counts[ADAPTING] == 1 else GAIN", "GAIN", PREDICTED),
        ("predicted: a violation lowers the margin", "pdmp/thinning/predicted.py", "if total <= state.bounds[i] * (1.0 + ROUNDING):", "if total > state.bounds[i] * (1.0 + ROUNDING):", PREDICTED),
        ("predicted: the spread is that of the rises themselves", "pdmp/thinning/predicted.py", "((rest / unit) * (rest / unit) - memory.spread[j])", "((y / unit) * (y / unit) - memory.spread[j])", PREDICTED),
        ("predicted: a failed prediction does not widen the margin", "pdmp/thinning/predicted.py", "(error - room) / room if error > room else 0.0", "0.0", PREDICTED),
        ("predicted: BPS computes the gradient after each bounce", "pdmp/processes/bps.py", "        self.signed_rates(state, now, rng, rates)\n        squares[0] = self.metric.square(state)\n", "        state.memory.at[0] = math.nan\n        self.signed_rates(state, now, rng, rates)\n        squares[0] = self.metric.square(state)\n", PREDICTED),
        ("predicted: Boomerang computes the gradient at each refreshment", "pdmp/processes/boomerang.py", "        if math.isnan(memory.at[0]):\n            self.evaluate(state, now, rng)\n        rates[0]", "        self.evaluate(state, now, rng)\n        rates[0]", PREDICTED),
        ("predicted: Boomerang's known slope has the wrong sign", "pdmp/processes/boomerang.py", "rises[0] -= (self.flow.position", "rises[0] += (self.flow.position", PREDICTED),
        ("positive arrival: the line's negative part counts", "pdmp/thinning/piecewise.py", "        begin = width * (left / (left - right))\n        left = 0.0\n", "        left = 0.0\n", BOUNDS),
        ("scheduler: a negative bound is taken", "pdmp/engine/scheduler.py", "if math.isnan(bound) or bound < HORIZON:", "if math.isnan(bound):", BOUNDS),
        ("concave-convex: cells that end where nothing is defined", "pdmp/thinning/concave_convex.py", "for _ in range(60):  # cut", "for _ in range(1):  # cut", BOUNDS),
        ("clocks: what the best clock would show", "pdmp/validation/clocks.py", "return max(clock.resolution for clock in self.clocks)", "return min(clock.resolution for clock in self.clocks)", CLOCKS),
        ("clocks: hazards are not reset", "pdmp/validation/clocks.py", "        work.hazards[c] = 0.0\n", "", CLOCKS),
        ("clocks: ten times the tolerance", "pdmp/validation/clocks.py", "if worst_error > tolerance and", "if worst_error > 10.0 * tolerance and", CLOCKS),
        ("clocks: the negative part counts", "pdmp/validation/clocks.py", "            continue\n        for c in range(rates.shape[1]):\n            fine, coarse = 0.0, 0.0\n            for k in range(7):\n                rate = positive(rates[k, c])\n", "            continue\n        for c in range(rates.shape[1]):\n            fine, coarse = 0.0, 0.0\n            for k in range(7):\n                rate = rates[k, c]\n", CLOCKS),
        ("clocks: a jump near the end is not seen", "pdmp/validation/clocks.py", "if (a > 0.0) != (b > 0.0) and error > worst_error:", "if error > 1e9:", CLOCKS),
        ("clocks: the variance of the second moment", "pdmp/validation/clocks.py", "math.sqrt(n / 20.0) * abs(second - 2.0)", "math.sqrt(n) * abs(second - 2.0)", CLOCKS),
        ("clocks: BPS claims the rate of its speeds", "pdmp/processes/bps.py", "            out[BOUNCE] += v[j] * scratch[j]\n", "            out[BOUNCE] += abs(v[j]) * scratch[j]\n", CLOCKS),
        ("clocks: Boomerang claims the rate of the whole potential", "pdmp/processes/boomerang.py", "out[BOUNCE] = -self.reference.inner(v, x, self.mean)", "out[BOUNCE] = 0.0", "tests/processes/test_boomerang.py"),
        ("clocks: factorised Boomerang claims rates that forget the mean", "pdmp/processes/factorised_boomerang.py", "partial = scratch[j] - (x[j] - self.mean[j]) /", "partial = scratch[j] - x[j] /", "tests/processes/test_boomerang.py"),
        ("clocks: sub-sampled Zig-Zag claims a sum for a mean", "pdmp/processes/subsampled_zigzag.py", "(known + inverse * partial)) / inverse", "(known + inverse * partial))", "tests/processes/test_subsampled_zigzag.py"),
        ("clocks: factors claim rates around the origin", "pdmp/factors/terms.py", "self.blocks[at] * (x[j] - self.mean[j])\n                    at += 1", "self.blocks[at] * x[j]\n                    at += 1", "tests/factors/test_local.py"),
        ("calibration: expected counts of equal bins", "pdmp/validation/simulation.py", "n * np.diff(edges) / (self.draws + 1)", "np.full(bins, n / bins)", CALIBRATION),
        ("calibration: ranks from above", "pdmp/validation/simulation.py", "(found < parameter).sum(axis=0)", "(found < found[0]).sum(axis=0)", CALIBRATION),
    ]
]  # fmt: skip
