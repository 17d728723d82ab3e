"""Planted bugs of crossed intercepts: the model, its approximation at the mode, the sub-sampled Zig-Zag process."""

from tests.mutations.bugs import Bug

MODEL, LAPLACE, ZIGZAG, FITTING = (
    "pdmp/models/regressions/crossed_intercepts.py",
    "pdmp/models/regressions/laplace_crossed.py",
    "pdmp/processes/crossed_zigzag.py",
    "pdmp/formulas/fitting.py",
)
TESTS = "tests/processes/test_crossed_zigzag.py"
SAME_LAW, BALANCE, RATES, HOLD, SHIFTS, SUMS, CROSSING, SHARE, MODE = (
    f"{TESTS}::{name}"
    for name in (
        "test_the_law_is_that_of_mixed_regression",
        "test_rates_balance_the_flow",
        "test_proposals_have_the_true_rates_and_bounds",
        "test_bounds_hold_whatever_flips_in_between",
        "test_shifts_change_nothing_of_means_and_spreads",
        "test_sums_are_those_of_the_path",
        "test_the_crossing_is_that_of_the_path",
        "test_rows_are_proposed_as_often_as_they_bound",
        "test_the_approximation_is_at_the_mode",
    )
)
CHOSEN = "tests/formulas/test_regression.py::test_crossed_intercepts_are_subsampled"

BUGS = [
    Bug(f"crossed: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("the intercept is the first mean", MODEL, "for k in range(self.n_groups):\n total += x[self.means[k]]", "for k in range(1):\n total += x[self.means[k]]", SAME_LAW),
        ("the gauge is no square", MODEL, "total += 0.5 * self.stiffness[k] * (gauge * gauge)", "total += 0.5 * self.stiffness[k] * abs(gauge)", SAME_LAW),
        ("the gauge has no gradient", MODEL, "+ pull * self.share[j - self.first[0]]", "", SAME_LAW),
        ("means do not feel their effects", MODEL, "out[self.means[k]] -= precision * u", "out[self.means[k]] -= 0.0 * u", SAME_LAW),
        ("the intercept is not the sum in natural units", MODEL, "means.sum(axis=-1)", "means[..., 0]", SAME_LAW),
        ("an approximation that was not found is used", "pdmp/processes/anchored_zigzag.py", "if found is None:", "if False:", "tests/processes/test_regression_boomerang.py::test_an_anchor_is_asked_for_where_there_is_no_mode"),
        ("the crossing is nobody's", ZIGZAG, "total += across[e, 0] + across[e, 1] * (now - state.memory.since[0])", "total += 0.0", RATES),
        ("the crossing stands still", ZIGZAG, "across[e, 1] * (now - state.memory.since[0])", "0.0", RATES),
        ("groups are crossed in one direction", ZIGZAG, "(upper + upper.T).tocsr()", "upper.tocsr()", BALANCE),
        ("groups are crossed with those of the first grouping", ZIGZAG, "itertools.combinations(level.T, 2)", "itertools.islice(itertools.combinations(level.T, 2), len(level.T) - 1)", BALANCE),
        ("a flip turns no line", ZIGZAG, "across[self.pairs[n], 1] += rise", "across[self.pairs[n], 1] += 0.0", CROSSING),
        ("lines turn where they began", ZIGZAG, "across[self.pairs[n], 0] -= rise * s", "across[self.pairs[n], 0] -= 0.0", CROSSING),
        ("lines are counted once", ZIGZAG, "if not now - state.memory.since[0] < RECOUNT:", "if state.memory.since[0] < 0.0:", CROSSING),
        ("the crossing is not in the bound", ZIGZAG, "abs(crossed) @ sigmas", "0.0 * sigmas", HOLD),
        ("the rows' share of a proposal is that of the beginning", ZIGZAG, "< row[e, LEVEL] + row[e, SLOPE] * s:", "< row[e, LEVEL]:", SHARE),
        ("a row is looked at for what is known", ZIGZAG, "row[e, ROW] = -1.0", "row[e, ROW] = 0.0", SHARE),
        ("squares have no known part", ZIGZAG, "+ state.memory.cross[k, 2]", "", RATES),
        ("the gauge is not in the rate", ZIGZAG, "return total + self.model.stiffness[k] * self.model.share[e] * gauge", "return total", RATES),
        ("distances do not grow", ZIGZAG, "far = memory.reach[q] + (now - memory.reach[self.slots])", "far = memory.reach[q]", HOLD),
        ("spreads have the groups of all", ZIGZAG, "return self.model.first[k + 1] - self.model.first[k]", "return self.groups", RATES),
        ("the prior of the intercept stays as it is", ZIGZAG, " + curvature * self.pace_of_means * h", "", HOLD),
        ("log τ is known twice as well", LAPLACE, "1.0 / math.sqrt(2.0 * np.sum(", "1.0 / math.sqrt(4.0 * np.sum(", MODE),
        ("other means do not move the intercept", ZIGZAG, "total = sign * self.prior_derivative(q, self.overall(state, now))", "total = sign * self.prior_derivative(q, self.at(state, j, now))", SHIFTS),
        ("the rate of a mean knows its own shift alone", ZIGZAG, "self.prior_derivative(self.means[0], self.overall(state, now)) + pull", "self.prior_derivative(self.means[0], self.at(state, self.means[k], now)) + pull", SHIFTS),
        ("effects of few rows are all spread", LAPLACE, "+ variances[own.start - first : own.stop - first]", "", MODE),
        ("dispersions at the joint mode", LAPLACE, "gradient[laws] += curvature.spread_slopes(laws)", "gradient[laws] += 0.0", MODE),
        ("spreads of the first grouping's groups", "pdmp/models/regressions/laplace.py", "model.first[column + 1] - model.first[column]", "model.first[1] - model.first[0]", MODE),
        ("too few rows are enough", FITTING, "(CROSSED_SHARE if crossed else 1.0) * model.n_data", "(1e300 if crossed else 1.0) * model.n_data", CHOSEN, "formulae"),
        ("crossed groups of few rows", FITTING, "min(g.usual_rows for g in groups) >= INTERCEPT_ROWS", "min(g.usual_rows for g in groups) >= 1", CHOSEN, "formulae"),
    ]
]  # fmt: skip
