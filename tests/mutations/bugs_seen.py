"""Bugs in what commands and comparisons pass on, in pictures, in diagnostics, and rates that are off by 1 %."""

from tests.mutations.bugs import Bug

PROPOSALS, PREFLIGHT = "tests/thinning/test_proposals.py", "tests/engine/test_preflight.py"

BUGS = [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("seen: isotropy without a mode", "pdmp/processes/bps.py", "    if mode is None:\n        return False\n    rng, root", "    rng, root", "tests/processes/test_bps.py"),
        ("seen: few positions are as many of each chain", "pdmp/engine/result.py", "np.rint(ends * (n / ends[-1]))", "np.rint(np.arange(1, len(ends) + 1) * (n / len(ends)))", "tests/engine/test_pooling.py::test_few_positions_represent_the_whole_run"),
        ("seen: what is written to fields passes", "pdmp/engine/preflight.py", "        if now != was[1]:\n", "        if len(now) != len(was[1]):\n", PREFLIGHT),
        ("seen: constant in the last block", "pdmp/data/tables.py", "return lowest.min(axis=0), highest.max(axis=0), nan", "return lowest[-1], highest[-1], nan", "tests/data/test_tables.py::test_a_column_that_is_constant_in_some_blocks"),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"tables: {name}", file, old, new, (f"tests/{test}",))
    for name, file, old, new, test in [
        ("frozen coordinates turn between ends", "pdmp/engine/trajectory.py", "bend = 0.0 if bend is None else bend\n", "bend = 0.0 if bend is None else _bend(x, v, (self.centre - centre)[first + which])\n", "engine/test_elliptic_paths.py::test_stretches_of_a_local_path_in_blocks_of_coordinates"),
        ("the last Newton step is not made", "pdmp/models/numerical.py", "        x = x - step\n        if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:\n            return x\n", "        if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:\n            return x\n        x = x - step\n", "models/test_regressions.py::test_newton_steps_end_after_the_one_that_is_small_enough"),
    ]
]  # fmt: skip


FUNCTIONALS = "tests/models/test_sums_of_terms.py"
BUGS += [
    Bug(f"seen: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("functionals are of so many coordinates", "pdmp/expressions/functionals.py", "return list(self.sizes.items()) == list(sizes.items())", "return sum(self.sizes.values()) == sum(sizes.values())", FUNCTIONALS),
        ("functionals of blocks in any order", "pdmp/expressions/functionals.py", "return list(self.sizes.items()) == list(sizes.items())", "return dict(self.sizes) == dict(sizes)", FUNCTIONALS),
        ("a rehearsal draws no clock but the event's", "pdmp/engine/preflight.py", "redrawn = process.order[process.start[i] : process.start[i + 1]]", "redrawn = [i]", f"{PREFLIGHT}::test_events_of_one_clock_draw_the_others_in_a_rehearsal"),
        ("sizes are equal to the last bit", "pdmp/formulas/fitting.py", "alike = known and np.ptp(size) <= CONSTANT * np.max(size)", "alike = known and np.ptp(size) == 0.0", "tests/formulas/test_regression.py::test_standard_deviations_that_data_cannot_tell_apart"),
        ("an empty path is read", "pdmp/diagnostics/variable_selection.py", "            if path.end <= path.warmup:\n                continue\n", "", "tests/engine/test_pooling.py::test_probabilities_of_models"),
        ("long cells are refused", "pdmp/data/formats.py", "    csv.field_size_limit(max(csv.field_size_limit(), len(text)))\n", "", "tests/data/test_tables.py::test_cells_may_be_long"),
        ("true rates add to those before", "pdmp/processes/exact.py", "        out[0] = 0.0\n        for j in range(x.shape[0]):\n            out[0] +=", "        for j in range(x.shape[0]):\n            out[0] +=", PROPOSALS),
        ("a header that is no header", "pdmp/engine/storage.py", "        if not isinstance(header, dict) or any(array is None for array in arrays.values()):\n            raise Damaged\n", "", "tests/faults/test_bad_values.py::test_files_that_lack_a_part_are_damaged"),
        ("a compiled method that is hidden", "pdmp/native/classes.py", "                elif name in methods:\n                    del methods[name]\n", "", "tests/native/test_classes.py::test_a_compiled_method_that_a_plain_one_hides_is_not_compiled"),
        ("options of jitted functions", "pdmp/native/fingerprints.py", '            self.value((getattr(value, "targetoptions", None), getattr(value, "locals", None)))\n', "", "tests/native/test_fingerprints.py::test_what_is_computed_with_makes_a_difference"),
    ]
]  # fmt: skip


PROPRIETY, ENGINE = "pdmp/models/propriety.py", "pdmp/engine/preflight.py"
SIGNS, RATES = "tests/models/test_propriety.py", f"{PREFLIGHT}::test_proposals_come_at_the_rate_that_a_bound_states"
PARTS, CONSTANT = (
    f"{SIGNS}::test_a_part_of_a_class_with_the_wrong_sign_is_asked_about",
    f"{SIGNS}::test_a_constant_with_the_wrong_sign_is_asked_about",
)
BUGS += [
    Bug(f"unsaid: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("plateaus in directions that are computed", PROPRIETY, 'if ray.kind == "grows" and not self.few', 'if ray.kind == "grows" and last == EXACT and not self.few', f"{SIGNS}::test_a_plateau_along_a_diagonal"),
        ("a fall is linear if it goes on", PROPRIETY, "falls[-1] > ratio * falls[-2]", "falls[-1] > (ratio / LINEAR**2) * falls[-2]", PARTS),
        ("terms with data alone are split", PROPRIETY, "for search in (data, whole))", "for search in (data, data))", CONSTANT),
        ("an uncertain sentence hides a proof", ENGINE, "_judged[known] = found or wrong", "_judged[known] = wrong or found", PARTS),
        ("longer than most", "pdmp/diagnostics/summary.py", "max(lengths) > UNEQUAL * min(lengths) > 0.0", "max(lengths) > UNEQUAL * sum(lengths) / len(lengths)", "tests/engine/test_pooling.py::test_chains_of_unequal_lengths_are_said"),
    ]
]  # fmt: skip

VISITED = "pdmp/engine/visited.py"
BUGS += [
    Bug(f"seen: {name}", VISITED, old, new, ("tests/engine/test_visited.py::test_a_process_without_a_step_is_asked_for_less",))
    for name, old, new in [
        ("a process without a step is judged by as few draws", "most=MANY if stepless else MEANS", "most=MEANS"),
        ("and as a step's bias", "WRONG_EXACT if stepless else WRONG", "WRONG"),
    ]
]  # fmt: skip

BUGS += [
]  # fmt: skip

DIFFERENCES = "tests/native/test_fingerprints.py::test_what_is_computed_with_makes_a_difference"
BUGS += [
    Bug(f"seen: {name}", "pdmp/native/fingerprints.py", old, new, (DIFFERENCES,))
    for name, old, new in [
        ("an object that wraps a function is that function", 'hasattr(value, "__wrapped__") and (of_numba or self.library(kind) or self.released(kind)):', 'hasattr(value, "__wrapped__"):'),
        ("nor from a library", "(of_numba or self.library(kind) or", "(of_numba or"),
    ]
]  # fmt: skip
