"""Planted bugs in regressions by formula: terms with groups, likelihoods, priors, coding, units, predictions."""

from __future__ import annotations

from tests.mutations.bugs import Bug

MODEL_TESTS, TESTS = "tests/models/test_mixed_regression.py", "tests/formulas/test_regression.py"
MIXED = "pdmp/models/regressions/mixed.py"
TABLE_OF_FAMILIES = "pdmp/models/families.py"
DESIGN, FIT = "pdmp/formulas/design.py", "pdmp/formulas/fit.py"

BUGS = [
    Bug(f"formulas: {name}", file, old, new, (f"{MODEL_TESTS}::{test}",))
    for name, file, old, new, test in [
        (
            "Student-t: the degrees of freedom have no normaliser",
            TABLE_OF_FAMILIES,
            "+ lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)",
            "",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "boxes without the group's coordinates",
            MIXED,
            "square[0, 0] += np.square(root[self.level[rows, k]] * self.value[rows, k])",
            "square[0, 0] += 0.0",
            "test_bounds_on_remainders_of_rows",
        ),
        (
            "a factor is that of the last row",
            "pdmp/processes/row_bounds.py",
            "np.maximum.at(factors, (places, s), ratio)",
            "factors[places, s] = ratio",
            "test_bounds_on_remainders_of_rows",
        ),
    ]
]
ZIGZAG, LAPLACE, INTERCEPTS = (
    "pdmp/processes/regression_zigzag.py",
    "pdmp/models/regressions/laplace.py",
    "pdmp/models/regressions/group_intercepts.py",
)
ZIGZAG_TESTS = "tests/processes/test_regression_zigzag.py"
HOLD = f"{ZIGZAG_TESTS}::test_bounds_hold_whatever_flips_in_between"
SUMS = f"{ZIGZAG_TESTS}::test_sums_are_those_of_the_path"
RATES, EXPANSION = f"{ZIGZAG_TESTS}::test_proposals_have_the_true_rates_and_bounds", "pdmp/processes/row_expansion.py"
BUGS += [
    Bug(f"regression zigzag: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("slopes are not rescaled", INTERCEPTS, "self.mixing[k, k] = self.group_scale[k] / self.scale[j]", "self.mixing[k, k] = 1.0", f"{MODEL_TESTS}::test_coefficients_of_groups_are_the_same_law"),
        ("the bound of a group forgets its other coordinates", ZIGZAG, "= self.mean_speeds[k] + speeds\n", "= self.mean_speeds[k] + self.speed[model.first[k] : model.first[k + 1]]\n", SUMS),
        ("the crossing stands still", ZIGZAG, "across[e, 1] * (now - state.memory.since[0])", "0.0", RATES),
        ("the effects of a group have independent coefficients", LAPLACE, "prior = (M.T * precision[part]) @ M", "prior = np.diag(precision[part])", f"{ZIGZAG_TESTS}::test_the_approximation_is_at_the_mode"),
        ("what rows leave open tells of the spread", LAPLACE, "1.0 - part * math.exp(-2.0 * x[spread + k])", "1.0 - 0.0 * part", f"{ZIGZAG_TESTS}::test_the_approximation_of_crossed_groups_is_at_the_mode"),
    ]
]  # fmt: skip
BATCHES = "pdmp/formulas/batches.py"


SOURCES, PARTS = "pdmp/formulas/sources.py", "tests/formulas/test_parts.py"
BLOCKS, LAPLACE = "pdmp/models/regressions/blocks.py", "pdmp/models/regressions/laplace.py"
SAME, SET_UP = "test_parts_are_one_table", "test_set_up_in_blocks"
DRAWN = "test_rows_are_drawn_from_blocks_in_proportion"
BUGS += [
    Bug(f"parts: {name}", file, old, new, (f"{PARTS}::{test}",), "formulae")
    for name, file, old, new, test in [
        (
            "results as they come",
            SOURCES,
            "yield self._result(future)",
            "yield self._result(futures[k ^ 1] if k ^ 1 < len(futures) and futures[k ^ 1] else future)",
            SAME,
        ),
        (
            "slopes in files are not centred",
            BATCHES,
            "value[:, 1:] = X[:, means[1:]]",
            "value[:, 1:] *= 1.0",
            SET_UP,
        ),
        (
            "a second process writes the tables of the first",
            BLOCKS,
            'return next(one for k in itertools.count() if (one := f"{name}-{k}") not in self)',
            "return name",
            DRAWN,
        ),
    ]
]


SPARSE = "tests/automatic/test_sparse_anchor.py"
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("coefficients are chosen without the prior of their number", "pdmp/automatic/sparse_anchor.py", "log_odds += math.log((law.a + count) / (law.b + free - 1 - count))", "log_odds += 0.0", f"{SPARSE}::test_coefficients_are_chosen_while_the_evidence_rises"),
        ("the dearest process is taken", "pdmp/automatic/subsampling.py", "min(costs, key=costs.__getitem__)", "max(costs, key=costs.__getitem__)", "tests/automatic/test_subsampling.py::test_the_least_cost_of_those_that_apply_is_taken"),
    ]
]  # fmt: skip


OUT = f"{TESTS}::test_draws_and_predictions_of_the_command"

BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("draws: in the coordinates that are sampled", FIT, "        natural = self.run.constrain(draws)\n        columns = {name: natural[name] for name in self.priors}", "        natural = self.run.constrain(draws)\n        columns = {name: draws[..., k] for k, name in enumerate(self.priors)}", OUT),
    ]
]  # fmt: skip


OTHER_TYPES = f"{TESTS}::test_tables_whose_columns_have_other_types_than_those_of_the_fit"
BUGS += [
    Bug(f"coding: {name}", DESIGN, old, new, (test,), "formulae")
    for name, old, new, test in [
        ("what is no level is the last one", "np.full(coding.matrix.shape[1], np.nan)", "coding.matrix[-1]", OTHER_TYPES),
        ("labels are as in the new table", "or of mm(g, h) several.\"\"\"\n        table = _as_fitted(table, self._first)", "or of mm(g, h) several.\"\"\"", OTHER_TYPES),
    ]
]  # fmt: skip

MISTAKES = "tests/formulas/test_families.py::test_mistakes"
BUGS += [
    Bug(f"parts left out: {name}", file, old, new, (MISTAKES,))
    for name, file, old, new in [
        ("groups in a function of a grouping", DESIGN, "_refuse_members(_arguments(call))", "_refuse_members([])"),
        ("an end of trunc by place and by name", "pdmp/formulas/words.py", "len({*names, *before}) < len(names) + len(before)", "len({*names, *before}) < 0"),
    ]
]  # fmt: skip
BUGS += [
    Bug(f"formulas: {name}", DESIGN, old, new, (f"{TESTS}::test_mistakes",), "formulae")
    for name, old, new in [
    ]
]  # fmt: skip
