"""Planted bugs in the bounds of `pdmp.thinning`, and in the check of clocks."""

from __future__ import annotations

from tests.mutations.bugs import Bug

BOUNDS, CLOCKS = "tests/thinning/test_bounds.py", "tests/validation/test_clocks.py"
CALIBRATION = "tests/validation/test_calibration.py"
PREDICTED, PROPOSALS = "tests/thinning/test_predicted.py", "tests/thinning/test_proposals.py"

BUGS = [
    Bug(f"bounds: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("constant: negative levels count", "pdmp/thinning/constant.py", "total += positive_part(levels[j])", "total += levels[j] - 0.1 * abs(levels[j])", BOUNDS),
        ("affine: a bound that is not finite passes", "pdmp/thinning/affine.py", "    if not math.isfinite(slopes):\n        return now, math.nan\n", "", BOUNDS),
        ("concave-convex: one tangent only", "pdmp/thinning/concave_convex.py", "meeting = min(h, max(0.0, (g1 - g0 - slope1 * h) / (slope0 - slope1)))", "meeting = 0.0", BOUNDS),
        ("concave-convex: the second line is forgotten", "pdmp/thinning/concave_convex.py", "        t, e = positive_arrival(height(memory, j, h, s), memory.right[j], h - s, e)\n", "        t = math.inf\n", PROPOSALS),
        ("predicted: Boomerang computes the gradient at each refreshment", "pdmp/processes/boomerang.py", "        if math.isnan(memory.at[0]):\n            self.evaluate(state, now, rng)\n        rates[0]", "        self.evaluate(state, now, rng)\n        rates[0]", PREDICTED),
        ("positive arrival: the line's negative part counts", "pdmp/thinning/piecewise.py", "        begin = width * (left / (left - right))\n        left = 0.0\n", "        left = 0.0\n", BOUNDS),
        ("clocks: hazards are not reset", "pdmp/validation/clocks.py", "        work.hazards[c] = 0.0\n", "", CLOCKS),
        ("clocks: a jump near the end is not seen", "pdmp/validation/clocks.py", "if (a > 0.0) != (b > 0.0) and error > worst_error:", "if error > 1e9:", CLOCKS),
        ("calibration: expected counts of equal bins", "pdmp/validation/simulation.py", "n * np.diff(edges) / (self.draws + 1)", "np.full(bins, n / bins)", CALIBRATION),
    ]
]  # fmt: skip
