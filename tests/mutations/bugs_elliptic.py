"""Planted bugs: elliptic paths, the Boomerang samplers and their bounds."""

from tests.mutations.bugs import Bug

PATHS = ("tests/test_flow.py", "tests/engine/test_elliptic_paths.py")
SAMPLERS = ("tests/processes/test_boomerang.py",)
CONSERVED, SINUSOID = "pdmp/thinning/conserved.py", "pdmp/thinning/sinusoid.py"
BOOMERANG, FACTORISED = "pdmp/processes/boomerang.py", "pdmp/processes/factorised_boomerang.py"
REFERENCE, BOUNDS = "pdmp/processes/gaussian_reference.py", "pdmp/processes/gaussian_bounds.py"
ROWS = "pdmp/processes/regression_boomerang.py"
ROW_TESTS = "tests/processes/test_regression_boomerang.py"
BALANCE, PATH, MAXIMUM, WEIGHTS = (
    f"{ROW_TESTS}::test_{name}"
    for name in (
        "rates_balance_the_flow",
        "no_rate_is_above_its_bound_along_a_path",
        "the_bound_of_rows_is_the_maximum_over_a_turn",
        "weights_of_rows_by_matrices",
    )
)

BUGS = [
    Bug(*bug)
    for bug in [
        ("rows: a shell's factor is that of the next nearer one", "pdmp/processes/remainders.py", "r > self.radii[s]:", "s + 1 < self.radii.shape[0] and r > self.radii[s + 1]:", (PATH,)),
        ("rows: a path that leaves the ball is not finite", "pdmp/engine/chain.py", "text or process.lost(state) or f", "text or f", ("tests/processes/test_regression_boomerang.py::test_a_path_that_leaves_the_ball_of_the_bounds_says_so",)),
        ("rows: what holds since the last event is not asked again", "pdmp/processes/remainders.py", "state.memory.since[:] = math.nan", "pass", ("tests/processes/test_regression_boomerang.py::test_a_path_that_leaves_the_ball_of_the_bounds_says_so",)),
        ("rows: a path is always beyond the last shell", "pdmp/processes/remainders.py", "if r > self.shells.radii[-1]:", "if True:", ("tests/processes/test_regression_boomerang.py::test_a_path_that_leaves_the_ball_of_the_bounds_says_so",)),
        ("rows: what is extended is never beyond", "pdmp/processes/extended.py", "self.inner.lost(state._replace(memory=state.memory.inner))", "None", ("tests/processes/test_regression_boomerang.py::test_a_path_that_leaves_the_ball_of_the_bounds_says_so",)),
        ("rows: beyond the last shell its factor holds", "pdmp/processes/remainders.py", "if s < self.radii.shape[0] else math.inf", "if s < self.radii.shape[0] else self.factors[level, -1]", ("tests/processes/test_few_that_move.py::test_beyond_the_last_shell_the_path_is_lost",)),
        ("rows: S without the dispersions' correlations", "pdmp/models/regressions/mixed.py", "square[0, 1:] = square[1:, 0] = root[own:] @ parts.T", "square[0, 1:] = square[1:, 0] = 0.0", (WEIGHTS,)),
        ("rows: levels of the square root", "pdmp/processes/regression_boomerang.py", "levels[:, None] ** 1.5 * factors", "levels[:, None] ** 0.75 * factors", ("tests/processes/test_few_that_move.py::test_shares_by_hand",)),
        ("ellipses: around the origin", "pdmp/flow.py", "else x - self.mean[j]", "else x", PATHS),
        ("ellipses: a coordinate at rest falls", "pdmp/flow.py", "0.0 if x == 0.0 and v == 0.0 else x - self.mean[j]", "x - self.mean[j]", PATHS),
        ("ellipses: the velocity turns the wrong way", "pdmp/flow.py", "(v * sine + self.bend(j, x, v) * cosine)", "(v * sine - self.bend(j, x, v) * cosine)", PATHS),
        ("ellipses: short arcs lose their digits", "pdmp/flow.py", "    if abs(s) >= 1.0:\n", "    if abs(s) >= 0.0:\n", PATHS),
        ("ellipses: the product of bend and velocity", "pdmp/flow.py", "0.5 * (v * d + w * b) * rise * rise", "0.5 * (v * d - w * b) * rise * rise", PATHS),
        ("ellipses: the square of the bend", "pdmp/flow.py", "0.5 * b * d * (3.0 * lag - swing * rise)", "0.5 * b * d * (lag - swing * rise)", PATHS),
        ("trajectory: local steps are not about the centre", "pdmp/engine/trajectory.py", "x = x - shift\n            first, second = h * x, h * x * x", "first, second = h * x, h * x * x", ("tests/engine/test_trajectory.py",)),
        ("trajectory: local steps have no length", "pdmp/engine/trajectory.py", "return s * x[k]\n            along", "return x[k]\n            along", ("tests/engine/test_trajectory.py",)),
        ("trajectory: ellipses of full turns count once", "pdmp/engine/trajectory.py", "(np.full(len(h), math.tau), turns)", "(np.full(len(h), math.tau), np.minimum(turns, 1.0))", PATHS),
        ("trajectory: arcs are not divided", "pdmp/engine/trajectory.py", "np.ceil(lengths / ARC), 0.0)", "1.0, 0.0)", PATHS),
        ("trajectory: what is at rest at zero falls", "pdmp/engine/trajectory.py", "np.where((x == 0.0) & (v == 0.0), 0.0, x - centre)", "x - centre", PATHS),
        ("trajectory: the mixed integral of the covariance", "pdmp/engine/trajectory.py", "mixed -= x.T @ (across * bend) + v.T @ (ac * bend)", "mixed -= x.T @ (across * bend)", PATHS),
        ("trajectory: local variances without the bend", "pdmp/engine/trajectory.py", "- 2.0 * ac * v * bend + cc * bend * bend", "- 2.0 * ac * v * bend", PATHS),
        ("trajectory: a block keeps the whole centre", "pdmp/engine/trajectory.py", "else self.centre[first:last]", "else self.centre[: last - first]", PATHS),
        ("load: the centre is lost", "pdmp/engine/chain.py", 'getattr(self.process.flow, "mean", np.zeros(0))', 'np.zeros_like(getattr(self.process.flow, "mean", np.zeros(0)))', PATHS),
        ("plots: chords instead of curves", "pdmp/plots/paths.py", "    times = path.refine(times)\n", "", PATHS),
        ("boomerang: the reference's force is forgotten", BOOMERANG, "memory.gradient[j] -= memory.scratch[j]", "memory.gradient[j] -= 0.0 * memory.scratch[j]", SAMPLERS),
        ("boomerang: the rate of the old velocity", BOOMERANG, "total += self.flow.velocity(j, state.x[j], state.v[j], s) * state.memory.gradient[j]", "total += state.v[j] * state.memory.gradient[j]", SAMPLERS),
        ("boomerang: a reflection of half the size", BOOMERANG, "2.0 * dot / square * raised[j]", "1.0 * dot / square * raised[j]", SAMPLERS),
        ("boomerang: a reflection in the wrong metric", BOOMERANG, "self.reference.raised(gradient, raised)", "self.reference.flatten(gradient, raised)", SAMPLERS),
        ("boomerang: energy of the positions alone", BOOMERANG, "                total += state.v[j] * memory.scratch[j]\n", "                total += 0.0\n", SAMPLERS),
        ("boomerang: an energy from before the refreshment", BOOMERANG, "if memory.energy[1] != state.moved[0]:", "if math.isnan(memory.energy[1]):", SAMPLERS),
        ("boomerang: the second wave", BOOMERANG, "self.along(state, eighth) - math.sqrt(0.5) * (a + b)", "self.along(state, eighth) - math.sqrt(0.5) * (a - b)", SAMPLERS),
        ("boomerang: cells wider than a turn", BOOMERANG, "return Narrow(thinning, WIDEST) if", "return Narrow(thinning, 100.0) if", SAMPLERS),
        ("boomerang: data by importance in other units", BOOMERANG, "return provider.rescaled(reference.sd)", "return provider.rescaled(reference.sd**3)", SAMPLERS),
        ("factorised boomerang: variances for standard deviations", FACTORISED, "memory.gradient[j] -= (memory.here[j] - self.mean[j]) / (self.reference.sd[j] * self.reference.sd[j])", "memory.gradient[j] -= (memory.here[j] - self.mean[j]) / self.reference.sd[j]", SAMPLERS),
        ("factorised boomerang: refreshments of unit variance", FACTORISED, "state.v[j] = self.reference.sd[j] * rng.standard_normal()", "state.v[j] = rng.standard_normal()", SAMPLERS),
        ("factorised boomerang: neighbours where they were", FACTORISED, "memory.here[j] = self.flow.position(j, x, v, s)", "memory.here[j] = x", SAMPLERS),
        ("factorised boomerang: its own reference is forgotten", FACTORISED, "cosine - y / variance, sine - v / variance", "cosine - y / variance, sine", SAMPLERS),
        ("factorised boomerang: a refreshment leaves the neighbours' clocks", FACTORISED, "np.insert(indices, indptr[1:], d + np.arange(d))", "np.insert(indices, indptr[1:], np.arange(d))", SAMPLERS),
        ("factorised boomerang: the wrong coordinate is refreshed", FACTORISED, "j = i if i < d else i - d\n", "j = i if i < d else 2 * d - 1 - i\n", SAMPLERS),
        ("reference: draws without the factor's rows below", REFERENCE, "for i in range(out.shape[0] - 1, -1, -1):", "for i in range(out.shape[0]):", SAMPLERS),
        ("reference: the Hessian for its inverse", REFERENCE, "return DiagonalReference(1.0 / diagonal)", "return DiagonalReference(diagonal)", SAMPLERS),
        ("conserved: a constant of half the size", CONSERVED, "level = self.offset * radius + 0.5 * self.growth * square", "level = self.offset * radius + 0.25 * self.growth * square", SAMPLERS),
        ("conserved: a line of half the slope", CONSERVED, "slope = self.offset * radius + self.growth * square", "slope = self.offset * radius + 0.25 * self.growth * square", SAMPLERS),
        ("conserved parts: no common term", CONSERVED, "self.offset[j] + self.common[j] * math.sqrt(square)", "self.offset[j]", SAMPLERS),
        ("conserved parts: a coordinate's own term is left out", CONSERVED, "slopes[j] - 0.5 * self.growth[j, j]", "slopes[j] - self.growth[j, j]", SAMPLERS),
        ("capped lines: the triangle until the cap", CONSERVED, "area = 0.5 * (level - positive) * (level + positive) / slope", "area = (level - positive) * (level + positive) / slope", SAMPLERS),
        ("bounds: the lower one is forgotten", BOUNDS, "return float(max(abs(lower[0] - 1.0), abs(upper[-1] - 1.0)))", "return float(abs(upper[-1] - 1.0))", SAMPLERS),
        ("bounds: entries without what is between", BOUNDS, " + 0.5 * np.outer(room, room)", "", SAMPLERS),
        ("bounds: the anchor is taken for the mean", BOUNDS, "away = (provider.anchor - mean) / sd", "away = 0.0 * (provider.anchor - mean) / sd", SAMPLERS),
        ("bounds: one datum for all", BOUNDS, "return Conserved(model.n_data * largest + prior, rest, False)", "return Conserved(largest + prior, rest, False)", SAMPLERS),
        ("sinusoids: no whole turns", SINUSOID, "    e -= 2.0 * turns\n", "", SAMPLERS),
        ("sinusoids: the hump that is under way", SINUSOID, "        e -= left\n        begin", "        begin", SAMPLERS),
        ("products: zeros of one factor only", SINUSOID, "    if abs(c0) < amplitude:\n", "    if abs(c0) < 0.0:\n", SAMPLERS),
        ("products: no whole turns", SINUSOID, "        return math.tau * turns + t\n", "        return t\n", SAMPLERS),
        ("narrow: any width", "pdmp/thinning/narrow.py", "width[0] = min(width[0], self.widest)", "width[0] = width[0]", SAMPLERS),
        ("models: half the bound on terms", "pdmp/models/regressions/logistic_signed.py", "return 0.25 * self.term_gradient_norms(root, first, last) ** 2", "return 0.1 * self.term_gradient_norms(root, first, last) ** 2", SAMPLERS),
        ("models: Lipschitz norms without the units", "pdmp/models/numerical.py", " * np.linalg.norm(root / scale[:, None], 2)", "", SAMPLERS),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"regression boomerang: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the prior is not in the reference", ROWS, "out[j] = self.pull[j] - self.curvature[j] * (x[j] - self.anchor[j])", "out[j] = self.pull[j]", BALANCE),
        ("the reference has no prior", ROWS, "precision = self.hessian + np.diag(self.curvature)", "precision = self.hessian", BALANCE),
        ("priors are flat at the anchor", "pdmp/models/priors.py", "return 2.0 * (a + 1.0) * q / ((1.0 + q) * (1.0 + q))", "return (a + 1.0) * q / ((1.0 + q) * (1.0 + q))", "tests/models/test_mixed_regression.py::test_priors"),
        ("a kink is a reference", "pdmp/processes/gaussian_reference.py", "if over_kink(model, mean, curvature) < 0.5 * curvature:", "if False:", "tests/processes/test_kinks.py"),
        ("a dense reference of Sticky", ROWS, "return self if isinstance(self.reference, DiagonalReference) else super().among_moving()", "return self", "tests/processes/test_moving_regressions.py::test_what_is_refused"),
        ("the bound of where the path is now", ROWS, "middle, swing = 0.5 * (y + w), math.hypot(0.5 * (y - w), across)", "middle, swing = 0.5 * (y + w), 0.5 * abs(y - w)", MAXIMUM),
        ("the bound at the farthest point alone", ROWS, "u = min(max((4.0 * middle - rest) / 3.0, middle - swing), middle + swing)", "u = middle + swing", MAXIMUM),
        ("the bound of the whole energy", ROWS, "farthest = rest + middle + swing\n", "farthest = rest + 2.0 * middle\n", MAXIMUM),
        ("the known part rises by its cosine alone", ROWS, "return math.hypot(waves[0], waves[1])", "return abs(waves[0])", PATH),
        ("priors that are not normal have no remainder", ROWS, "rest += 0.5 * square * (largest + self.curvature[j])", "rest += 0.0 * square * largest", PATH),
        ("the chance of a row is forgotten", ROWS, "* (self.total / self.weights[row])", "* self.total", f"{ROW_TESTS}::test_proposals_have_the_true_rates"),
        ("bounces off the whole of the row's last gradient", ROWS, "memory.gradient[j] = 0.0\n        self.model", "memory.gradient[j] *= 1.0\n        self.model", f"{ROW_TESTS}::test_bounces"),
        ("bounces of half the size", ROWS, "state.v[j] -= 2.0 * dot / square", "state.v[j] -= dot / square", f"{ROW_TESTS}::test_bounces"),
        ("bounds from before the refreshment", ROWS, "if memory.since[0] != state.moved[0]:", "if math.isnan(memory.since[0]):", f"{ROW_TESTS}::test_bounds_belong_to_the_last_event"),
    ]
]  # fmt: skip

LINES = "pdmp/processes/regression_bps.py"
MOVING_TESTS = "tests/processes/test_moving_regressions.py"
FLOW_OF_BOTH, ELLIPSE, TURN, LINE, CHORDS, INVERTED, PROPOSED, BOUNCES, STICKS = (
    f"{MOVING_TESTS}::test_{name}"
    for name in (
        "rates_balance_the_flow",
        "no_rate_is_above_its_bound_on_an_ellipse",
        "the_bound_of_rows_is_the_maximum_over_a_turn",
        "no_rate_is_above_its_bound_on_a_line",
        "the_bound_on_a_line_is_a_chord",
        "the_known_part_of_normal_priors_is_inverted",
        "proposals_have_the_true_rates",
        "bounces_and_refreshments",
        "sticking",
    )
)
BUGS += [
    Bug(f"regressions that move: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the reference is not taken off", ROWS, "np.diag(self.curvature - self.reference.sd**-2.0)", "np.diag(self.curvature)", FLOW_OF_BOTH),
        ("the prior's curvature is counted twice", ROWS, "self.pull[j] - self.curvature[j] * (x[j] - self.anchor[j])", "self.pull[j]", FLOW_OF_BOTH),
        ("lines without the Hessian", LINES, "out[j] += self.hessian[k, j] * y", "out[j] += 0.0 * y", FLOW_OF_BOTH),
        ("variances for standard deviations", ROWS, "return DiagonalReference(np.diag(covariance).copy())", "return DiagonalReference(np.diag(covariance) ** 2)", FLOW_OF_BOTH),
        ("rows near what is frozen", ROWS, "rest += memory.here[j] * memory.scratch[j]", "rest += 0.0", TURN),
        ("the largest where nothing is frozen", ROWS, "(4.0 * middle - rest) / 3.0", "4.0 * middle / 3.0", TURN),
        ("the largest out of reach", ROWS, "u = min(max((4.0 * middle - rest) / 3.0, middle - swing), middle + swing)", "u = (4.0 * middle - rest) / 3.0", TURN),
        ("waves without the frozen", ROWS, "constant += self.matrix[j, k] * memory.scratch[k]", "constant += 0.0", ELLIPSE),
        ("the second wave is half of what it is", ROWS, "waves[3] += 0.5 * (v * by_v - y * by_y)", "waves[3] += 0.25 * (v * by_v - y * by_y)", ELLIPSE),
        ("the second wave is not in the bound", ROWS, "math.hypot(waves[0], waves[1]) + math.hypot(waves[2], waves[3]) + rest", "math.hypot(waves[0], waves[1]) + rest", ELLIPSE),
        ("waves of priors that are not normal", ROWS, "                total += self.flow.velocity(j, state.x[j], state.v[j], s) * part\n", "                total += 0.0 * part\n", ELLIPSE),
        ("ellipses reflect in the whole gradient", ROWS, "                memory.gradient[j] = 0.0\n        return", "                pass\n        return", BOUNCES),
        ("ellipses refresh what is frozen", ROWS, "                if not self.frozen(state, j):\n                    state.v[j] =", "                if True:\n                    state.v[j] =", BOUNCES),
        ("ellipses bounce off the last gradient of K", ROWS, "            self.known(state.x, memory.gradient)\n", "            pass\n", BOUNCES),
        ("lines reflect in the whole gradient", LINES, "                gradient[j] = 0.0\n", "                pass\n", BOUNCES),
        ("lines refresh what is frozen", LINES, "                if v[j] != 0.0:\n                    v[j] =", "                if True:\n                    v[j] =", BOUNCES),
        ("lines refresh with unit variance", LINES, "v[j] = self.reference.sd[j] * rng.standard_normal()", "v[j] = rng.standard_normal()", BOUNCES),
        ("a parabola without its middle term", LINES, "(2.0 * line[PRODUCT] + line[SPEED] * s) * s", "line[SPEED] * s * s", CHORDS),
        ("the known part does not rise", LINES, "slope += self.hessian[j, k] * state.v[k]", "slope += 0.0", INVERTED),
        ("the known part rises without its priors", LINES, "slope += v * second_derivative(", "slope += 0.0 * second_derivative(", INVERTED),
        ("priors that are not normal do not rise", LINES, "slope += v * v * second_derivative_bound_until(", "slope += 0.0 * second_derivative_bound_until(", LINE),
        ("priors that are not normal have no rate", LINES, "total += v * derivative(kind, n[j, 0], n[j, 1], n[j, 2], state.x[j] + v * s)", "total += 0.0", PROPOSED),
        ("lines are those of the first event", LINES, "if state.memory.since[0] != state.moved[0]:", "if math.isnan(state.memory.since[0]):", f"{MOVING_TESTS}::test_what_is_known_belongs_to_the_last_event"),
    ]
]  # fmt: skip

FEW_TESTS = "tests/processes/test_few_that_move.py"
BY_HAND, BELOW, NEXT, LAST, READ, SAME, ALL_CHUNKS = (
    f"{FEW_TESTS}::test_shares_by_hand",
    f"{FEW_TESTS}::test_no_rate_is_above_its_bound",
    f"{FEW_TESTS}::test_the_level_is_the_next_one_above_the_share",
    f"{FEW_TESTS}::test_levels",
    f"{FEW_TESTS}::test_rows_are_read_where_columns_count",
    f"{FEW_TESTS}::test_the_same_path_where_rows_are_drawn_alike",
    "tests/native/test_threads.py::test_shares_of_columns_are_the_largest_of_all_chunks",
)
BUGS += [
    Bug(f"few that move: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the shares of the first chunk", ROWS, "(np.max(part, axis=0) for part in found)", "(part[0] for part in found)", ALL_CHUNKS),
        ("what stands away does not count", LINES, "moves = state.v[j] != 0.0 or state.x[j] != self.anchor[j]", "moves = state.v[j] != 0.0", NEXT),
        ("what moves through the anchor does not count", LINES, "moves = state.v[j] != 0.0 or state.x[j] != self.anchor[j]", "moves = state.x[j] != self.anchor[j]", SAME),
        ("the support counts twice", LINES, "            self.share[inside] = 0.0\n", "            pass\n", NEXT),
        ("the support does not count", LINES, "count, total, k = state.memory, 0, self.share_of_support, 0", "count, total, k = state.memory, 0, 0.0, 0", NEXT),
        ("the level below", LINES, "self.levels[k + 1] >= total", "self.levels[k] >= total", NEXT),
        ("beyond the last level", LINES, "while k + 1 < self.levels.shape[0] and", "while k + 2 < self.levels.shape[0] and", LAST),
        ("the support is not read where it stands", LINES, "if moves or self.anchor[j] != 0.0:", "if moves:", NEXT),
        ("rows are read where the event was", LINES, "model, s = state.memory, self.model, now - state.moved[0]", "model, s = state.memory, self.model, 0.0 * now", READ),
        ("rows that are not counted", LINES, "        state.counts[DATA] += 1\n", "        pass\n", READ),
    ]
]  # fmt: skip
