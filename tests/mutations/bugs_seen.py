"""Bugs in what commands and comparisons pass on, in pictures, in diagnostics, and rates that are off by 1 %."""

from tests.mutations.bugs import Bug

C, CLI, PLOTS, TUNING = "pdmp/comparison.py", "pdmp/cli.py", "pdmp/plots/comparisons.py", "pdmp/tuning/competition.py"
R, S, E = "pdmp/engine/recording.py", "pdmp/engine/scheduler.py", "pdmp/diagnostics/effective_size.py"
M, V, CONSERVED = "pdmp/diagnostics/monte_carlo_error.py", "pdmp/validation/clocks.py", "pdmp/thinning/conserved.py"
PASSED, HAND, PAIRS = "tests/test_passed_on.py", "tests/diagnostics/test_by_hand.py", "tests/engine/test_pairs.py"
PROPOSALS, PREFLIGHT = "tests/thinning/test_proposals.py", "tests/engine/test_preflight.py"
STANDING = "tests/engine/test_standing_clocks.py"

BUGS = [
    Bug(name, file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("seen: the step rule allows twice the error", C, "STEP_ERROR = 0.1", "STEP_ERROR = 0.2", PASSED),
        ("seen: mini-batches of a fifth of the data", C, "model.n_data // 10, 20", "model.n_data // 5, 20", PASSED),
        ("seen: starts of a reference as wide as the posterior", C, "starts = start + 2.0 * rng", "starts = start + 1.0 * rng", PASSED),
        ("seen: a reference asks little of its second sampler", C, "starts, ess / 4, seed + 1", "starts, ess / 40, seed + 1", PASSED),
        ("seen: a reference asks nothing of the sds", C, "and sd_ess >= ess / 4:", "and sd_ess >= 0.0:", PASSED),
        ("seen: the standard error of one of two runs", C, "np.sqrt(one.var() / one.ess() + two.var() / two.ess())", "np.sqrt(one.var() / one.ess())", PASSED),
        ("seen: a comparison starts elsewhere", C, "np.random.default_rng([seed, 1])", "np.random.default_rng(seed)", PASSED),
        ("seen: a comparison has a warm-up of its own", C, "warmup=discarded,", "warmup=WARMUP,", PASSED),
        ("seen: the median of the errors", C, '"mean_error": float(errors.mean())', '"mean_error": float(np.median(errors))', PASSED),
        ("seen: seconds of all chains", C, 'run.stats["seconds"] / chains + prepared', 'run.stats["seconds"] + prepared', PASSED),
        ("seen: the loss of few draws", C, "2_000_000 // len(y)", "200_000 // len(y)", PASSED),
        ("seen: the command has a wider prior", CLI, "prior_scale=PRIOR_SCALE)", "prior_scale=2.0 * PRIOR_SCALE)", PASSED),
        ("seen: the loss on training rows", CLI, "test=(dataset.test.X, dataset.test.y)", "test=(dataset.train.X, dataset.train.y)", PASSED),
        ("seen: the model has the test rows too", CLI, "train = dataset.train", "train = dataset", PASSED),
        ("seen: the reference has a seed of its own", CLI, "ess=ess, seed=seed, mode=mode", "ess=ess, seed=0, mode=mode", PASSED),
        ("seen: --metric is not passed on", CLI, "metric=metric,", 'metric="ksd",', PASSED),
        ("seen: --seed of a tuning is not passed on", CLI, 'clock="data",\n                seed=seed,', 'clock="data",\n                seed=0,', PASSED),
        ("seen: pdmp sample without a warm-up", CLI, "seed=seed, warmup=0.1)", "seed=seed)", PASSED),
        ("seen: the reference of --quick is not smaller", CLI, "REFERENCE_ESS / (3 if quick else 1)", "REFERENCE_ESS", PASSED),
        ("seen: a tuning takes as long as a run", CLI, "default_passes(model.n_data) / TUNING", "default_passes(model.n_data)", PASSED),
        ("seen: the floor of the picture", PLOTS, "floor = math.sqrt(2.0 / math.pi / table.reference.ess)", "floor = math.sqrt(1.0 / table.reference.ess)", f"{PASSED}::test_the_errors_in_the_picture"),
        ("seen: the scale of the picture", PLOTS, "1.25 * high", "2.5 * high", f"{PASSED}::test_the_errors_in_the_picture"),
        ("seen: negative correlations in the picture", PLOTS, "np.abs(reference.cov / np.outer(reference.sd, reference.sd))", "reference.cov / np.outer(reference.sd, reference.sd)", f"{PASSED}::test_the_coordinates_in_the_picture"),
        ("seen: all arms have one stream", TUNING, "for child in sequence.spawn(len(arms))", "for child in [sequence] * len(arms)", f"{PASSED}::test_what_an_arm_is_told"),
        ("seen: a budget of data in proposals", TUNING, '"data": "data_passes"', '"data": "proposals"', f"{PASSED}::test_the_unit_of_a_budget"),
        ("seen: marks are thinned to the even ones", R, "integrals.marks[2 * k + 1, j]", "integrals.marks[2 * k, j]", f"{HAND}::test_marks_and_grid_rows_when_they_double"),
        ("seen: marks of squares are not thinned", R, "for j in range(2 * d):", "for j in range(d):", f"{HAND}::test_marks_and_grid_rows_when_they_double"),
        ("seen: a grid is thinned to the even rows", R, "grid.rows[2 * k + 1, j]", "grid.rows[2 * k, j]", f"{HAND}::test_marks_and_grid_rows_when_they_double"),
        ("seen: marks of the warm-up", R, "a = max(at, since)", "a = at", f"{PAIRS}::test_a_warm_up_leaves_out_what_was_before"),
        ("seen: batch means with the other variance", E, "np.var(sums[:, :whole] / each, axis=1, ddof=1)", "np.var(sums[:, :whole] / each, axis=1)", f"{HAND}::test_batch_ess_by_hand"),
        ("seen: a narrow chain counts for itself", E, "whole_time**2 * variance / spread", "whole_time * variance / spread * len(length)", f"{HAND}::test_batch_ess_of_chains_by_hand"),
        ("seen: spread of chains without their lengths", E, "spread += time * each *", "spread += each * each *", f"{HAND}::test_batch_ess_of_chains_by_hand"),
        ("seen: few positions are as many of each chain", "pdmp/engine/result.py", "np.rint(ends * (n / ends[-1]))", "np.rint(np.arange(1, len(ends) + 1) * (n / len(ends)))", "tests/engine/test_pooling.py::test_few_positions_represent_the_whole_run"),
        ("seen: chains that differ count too much", E, "np.maximum(3.0 * variance", "np.maximum(9.0 * variance", f"{HAND}::test_batch_ess_of_chains_by_hand"),
        ("seen: batch R-hat with the other variance", E, "np.var(halves, axis=0, ddof=1) / within", "np.var(halves, axis=0) / within", f"{HAND}::test_batch_rhat_by_hand"),
        ("seen: degrees of freedom of an F test", M, "fdtri(chains - 1, 16 * chains,", "fdtri(chains, 16 * chains,", f"{HAND}::test_chains_differ_by_an_f_test"),
        ("seen: clocks with half the variance of squares", V, "math.sqrt(n / 20.0)", "math.sqrt(n / 10.0)", f"{HAND}::test_p_values_by_hand"),
        ("seen: one-sided p values", V, "p_mean=2.0 * stats", "p_mean=stats", f"{HAND}::test_p_values_by_hand"),
        ("seen: horizons are not counted", S, "counts[HORIZONS] += 1", "counts[HORIZONS] += 0", f"{PROPOSALS}::test_horizons_proposals_and_thinned_are_counted"),
        ("seen: exact bounds may be exceeded by a hundredth", S, "excess > CANCELLATION:", "excess > 10.0 * CANCELLATION:", f"{PROPOSALS}::test_a_larger_excess_of_an_exact_bound_is_an_error"),
        ("seen: the largest excess of the first chain", "pdmp/engine/result.py", "max(r.excess[1] for r in self._records)", "self._records[0].excess[1]", f"{PROPOSALS}::test_excesses_are_counted_and_their_largest_is_kept"),
        ("seen: the bound of the energy 1 % too high", CONSERVED, "return now + s, min(rates[0] + slope * s, level)", "return now + s, 1.01 * min(rates[0] + slope * s, level)", f"{PROPOSALS}::test_the_bound_is_the_intensity_of_the_proposals[Boomerang, energy]"),
        ("seen: the bound of batches 1 % too high", CONSERVED, "return now + e / level, level", "return now + e / level, 1.01 * level", f"{PROPOSALS}::test_the_bound_is_the_intensity_of_the_proposals[Boomerang, energy, batches]"),
        ("seen: the bound of the energies 1 % too high", CONSERVED, "bound += level", "bound += 1.01 * level", f"{PROPOSALS}::test_the_bound_is_the_intensity_of_the_proposals[factorised Boomerang, energies]"),
        ("seen: the bound of the sinusoids 1 % too high", "pdmp/thinning/sinusoid.py", "bound = positive(a * math.cos(s)", "bound = 1.01 * positive(a * math.cos(s)", f"{PROPOSALS}::test_the_bound_is_the_intensity_of_the_proposals[Boomerang, sinusoids]"),
        ("seen: the bound of a regression 1 % too high", "pdmp/thinning/regression.py", "bound = left + (right - left) * (t / width)", "bound = 1.01 * (left + (right - left) * (t / width))", f"{PROPOSALS}::test_the_bound_is_the_intensity_of_the_proposals[SBPS, noise]"),
        ("seen: the rate of Boomerang 1 % too low", "pdmp/processes/boomerang.py", "return positive(self.along(state, now))", "return 0.99 * positive(self.along(state, now))", f"{PROPOSALS}::test_the_rate_at_a_proposal_is_the_true_one[Boomerang, grid]"),
        ("seen: seconds begin anew with a resumption", "pdmp/engine/chain.py", 'NUMBERS = ("seconds", "stopped", "warming"', 'NUMBERS = ("stopped", "warming"', f"{PAIRS}::test_seconds_count_across_resumptions"),
        ("seen: data passes are data", "pdmp/engine/checks.py", 'n_data = max(getattr(process.model, "n_data", 0), 1)', "n_data = 1", f"{PAIRS}::test_data_passes_count_across_resumptions"),
        ("seen: draws of a grid are of all copies", "pdmp/engine/result.py", "r.grid.rows[self._grid_rows(i, n), : self.dim]", "r.grid.rows[self._grid_rows(i, n), -self.dim :]", f"{PAIRS}::test_the_grid_of_coupled_chains"),
        ("seen: a kind of event that is one too large", "pdmp/engine/preflight.py", "kind >= len(process.events):", "kind > len(process.events):", PREFLIGHT),
        ("seen: a failed attempt leaves its changes", "pdmp/engine/preflight.py", "            _restore(part, old_part)\n", "            pass\n", PREFLIGHT),
        ("seen: a failed attempt has drawn", "pdmp/engine/preflight.py", "argument.bit_generator.state = old.bit_generator.state", "pass", PREFLIGHT),
        ("seen: events outside their scope pass", "pdmp/engine/preflight.py", "        different[list(may)] = False\n", "        different[:] = different & (name != \"jump\")\n", PREFLIGHT),
        ("seen: the path may change between events", "pdmp/engine/preflight.py", "        different[list(may)] = False\n", "        different[list(may)] = False\n        different[:] = different & (name == \"jump\")\n", PREFLIGHT),
        ("seen: generators in dicts", "pdmp/native/classes.py", "return itertools.chain.from_iterable(value.items())", "return value", PREFLIGHT),
        ("seen: a search for generators that goes round", "pdmp/native/classes.py", "seen[id(value)] = value", "seen[len(seen)] = value", PREFLIGHT),
        ("seen: generators of objects that are called", "pdmp/native/classes.py", "if dataclasses.is_dataclass(value) or _is_of_user(type(value)):", "if dataclasses.is_dataclass(value):", PREFLIGHT),
        ("seen: generators of packages are the user's", "pdmp/native/classes.py", ' and "site-packages" not in file', "", PREFLIGHT),
        ("seen: globals that hold a generator", "pdmp/engine/preflight.py", 'or holds_generator(getattr(value, "py_func", value)):', "or isinstance(value, GENERATORS):", PREFLIGHT),
        ("seen: the time by another name", "pdmp/engine/preflight.py", 'UNREPEATABLE = {"time", "datetime", "secrets", "uuid"}', 'UNREPEATABLE = {"datetime", "secrets", "uuid"}', PREFLIGHT),
        ("seen: any array is an order", "pdmp/process.py", "or self.start[-1] <= len(value))", "or True)", PREFLIGHT),
        ("seen: what is written to fields passes", "pdmp/engine/preflight.py", "        if now != was:\n", "        if now[:2] != was[:2]:\n", PREFLIGHT),
        ("seen: what is written to fields of models passes", "pdmp/engine/preflight.py", "    for part in _parts(process, {}):\n        for field in", "    for part in (process,):\n        for field in", PREFLIGHT),
        ("seen: what is written to arrays of a tuple passes", "pdmp/engine/preflight.py", "(value if isinstance(value, tuple) else (value,))", "(value,)", PREFLIGHT),
        ("seen: what later events change outside their scope passes", "pdmp/engine/chain.py", "& (different[0] | different[1])", "& (different[0] & different[1])", PREFLIGHT),
        ("seen: events at one time are outside their scope", "pdmp/engine/chain.py", "& (moved < then)", "& (moved <= then)", PREFLIGHT),
        ("seen: what events change is seen at the end of chunks", "pdmp/engine/chain.py", "return min(self.chunk, step - done % step), None", "return self.chunk, None", PREFLIGHT),
        ("seen: few that are watched are all touched", "pdmp/engine/chain.py", "max(1, min(len(state.x) // 4, FIRST_CHUNK)), kept", "FIRST_CHUNK, kept", PREFLIGHT),
        ("seen: clocks that stand", "pdmp/engine/chain.py", "            self._check_standing()\n", "", STANDING),
        ("seen: standing is never over", "pdmp/engine/chain.py", "if advanced <= STILL * candidates * now else 0", "if True else 0", STANDING),
        ("seen: ever shorter steps never stand", "pdmp/engine/chain.py", "if advanced <= STILL * candidates * now else 0", "if advanced <= 0.0 else 0", STANDING),
        ("seen: short steps stand", "pdmp/engine/chain.py", "STILL = 1e-13", "STILL = 1e-9", STANDING),
        ("seen: clocks that ring together stand", "pdmp/engine/chain.py", "IDLE_CANDIDATES + REPEATED * len(self.state.heap)", "IDLE_CANDIDATES", STANDING),
        ("seen: a rehearsal of the first proposals only", "pdmp/engine/preflight.py", "REHEARSED_EVENTS, REHEARSED_TERMS = 8, 40_000", "REHEARSED_EVENTS, REHEARSED_TERMS = 0, 40_000", PREFLIGHT),
        ("seen: generators in lists", "pdmp/native/classes.py", "(tuple, list, set, frozenset, collections.deque)", "(tuple, set, frozenset, collections.deque)", PREFLIGHT),
        ("seen: a constructor that asks before it is built", "pdmp/native/representation.py", "            if isinstance(error, AttributeError) and error.obj is self", "            if False", PREFLIGHT),
        ("seen: compiling is said of what is found", "pdmp/native/numba_internals.py", "        if result is None:\n            announce", "        if True:\n            announce", "tests/native/test_disk.py::test_what_compiles_says_how_long_it_took_last_time"),
        ("seen: generators in functions that are called", "pdmp/engine/preflight.py", "            _check_random(where, value, seen)\n\n\ndef _unrepeatable", "            pass\n\n\ndef _unrepeatable", PREFLIGHT),
        ("seen: draws reach 65,536 data", "pdmp/gradients/drawing.py", "memory.rows[k] = int(rng.random() * self.total)", "memory.rows[k] = int(rng.random() * min(self.total, 65_536))", "tests/test_blocks.py::test_draws_reach_all_data"),
        ("seen: bounds of the first piece of the data", "pdmp/processes/gaussian_bounds.py", "for first in range(0, model.n_data, PIECE):", "for first in range(0, min(model.n_data, PIECE), PIECE):", "tests/test_blocks.py::test_blocks_change_nothing"),
        ("seen: covariance of the last piece of the data", "discrete/curvature.py", "square += terms.T @", "square = terms.T @", "tests/test_blocks.py::test_blocks_change_nothing"),
        ("seen: starts by importance from the wide", "pdmp/automatic/start.py", "logs = np.array([0.5 * (z @ z) - target", "logs = np.array([-0.5 * (z @ z) - target", "tests/automatic/test_start.py::test_a_draw_is_taken_with_probability_proportional_to_p_over_q"),
        ("seen: the margin since the prediction alone", "pdmp/thinning/predicted.py", "(FIRST * memory.units[j] + age + s)", "(FIRST * memory.units[j] + s)", "tests/thinning/test_predicted.py::test_errors_are_in_units_of_the_margin"),
        ("seen: the Hessian where the run starts", "pdmp/processes/mass.py", "model.hessian(x if mode is None else mode)", "model.hessian(x)", "tests/processes/test_bps.py::test_the_hessian_is_that_at_the_mode_wherever_the_run_starts"),
        ("seen: maps begin with their file", "pdmp/engine/executors.py", "begin + root.offset - root.offset % mmap.ALLOCATIONGRANULARITY", "begin", "tests/engine/test_executors.py::test_maps_that_begin_further_on_in_their_file"),
        ("seen: data spent are not compared with a budget", "pdmp/engine/run.py", "(PROPOSALS, budget.proposals), (DATA, budget.data))", "(PROPOSALS, budget.proposals))", "tests/engine/test_run.py::test_a_run_is_not_extended_backwards"),
        ("seen: constant in the last block", "pdmp/data/tables.py", "np.minimum(lowest, block.min(axis=0), out=lowest)\n        np.maximum(highest, block.max(axis=0), out=highest)", "lowest, highest = block.min(axis=0), block.max(axis=0)", "tests/data/test_tables.py::test_a_column_that_is_constant_in_some_blocks"),
        ("seen: a look begins anew with a resumption", "pdmp/engine/chain.py", '"warming", "stored", "look")', '"warming", "stored")', "tests/engine/test_goals.py::test_a_run_that_was_killed_between_looks_is_examined_at_the_same_ones"),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"tables: {name}", file, old, new, (f"tests/{test}",))
    for name, file, old, new, test in [
        ("an offset in a file keeps its unit", "pdmp/formulas/batches.py", 'files.write("offset", first, rows[:, p + 1] / response_scale)', 'files.write("offset", first, rows[:, p + 1])', "formulas/test_batches.py::test_an_offset_has_the_unit_of_the_response"),
        ("the spread of slopes is that of intercepts", "pdmp/formulas/fitting.py", "prior=defaults.group_sd(k)", "prior=defaults.group_sd(0)", "formulas/test_regression.py::test_priors_by_name_and_by_default"),
        ("separation is refuted in the first piece only", "pdmp/formulas/fitting.py", "            s.start + np.flatnonzero(", "            np.flatnonzero(", "formulas/test_batches.py::test_what_contradicts_a_separation_is_found_in_every_piece"),
        ("a warm-up that was given is not used", "pdmp/formulas/fitting.py", 'options = {"warmup": 0.2, "chains": chains} | options', 'options = options | {"warmup": 0.2, "chains": chains}', "formulas/test_regression.py::test_options_come_before_those_of_sub_sampled_runs"),
        ("chains that disagree for ever are not said", "pdmp/formulas/inclusion.py", "moving == moving[:1, :1]", "moving == moving[:, :1]", "formulas/test_regression.py::test_the_table_of_inclusion_by_hand"),
        ("values of effects of other rows", "pdmp/models/regressions/mixed.py", '"offset", "weight", "level", "value"):\n            values', '"offset", "weight", "level"):\n            values', "models/test_mixed_regression.py::test_a_regression_of_some_of_the_rows"),
        ("each piece of a file counts alike", "pdmp/models/regressions/mixed.py", "mean += X[s].sum(axis=0) / n", "mean += X[s].mean(axis=0) / len(rows)", "models/test_mixed_regression.py::test_columns_in_a_file_are_standardised_in_place_piece_by_piece"),
        ("a file is standardised before it is looked at", "pdmp/models/regressions/mixed.py", "X = read_design(X)[0]  # before anything is written", "pass", "models/test_mixed_regression.py::test_columns_in_a_file_that_cannot_be_standardised_stay_as_they_are"),
        ("chains of a file go on to the first look", "pdmp/engine/goals.py", "look = max(c.look for c in chains)\n        if look == NEVER", "look = min(c.look for c in chains)\n        if look == NEVER", "engine/test_goals.py::test_chains_of_a_file_go_on_to_the_last_look_of_all"),
        ("blocks turn about the centre of the first", "pdmp/engine/trajectory.py", "around = None if self.centre is None else self.centre[first + which]", "around = None if self.centre is None else self.centre[which]", "engine/test_elliptic_paths.py::test_stretches_of_a_local_path_in_blocks_of_coordinates"),
        ("frozen coordinates turn between ends", "pdmp/engine/trajectory.py", "bend = None if v is None or self.centre is None else _bend(x, v, self.centre[first + which])\n        x = x - start[which]\n", "x = x - start[which]\n        bend = None if v is None or self.centre is None else _bend(x, v, (self.centre[first:last] - start)[which])\n", "engine/test_elliptic_paths.py::test_stretches_of_a_local_path_in_blocks_of_coordinates"),
        ("no R-hat of what is in as often as out", "pdmp/formulas/inclusion.py", "if even.any():", "if False:", "formulas/test_regression.py::test_the_table_of_inclusion_by_hand"),
        ("the last Newton step is not made", "pdmp/models/numerical.py", "            x = x - step\n            if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:\n                return x\n", "            if size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR:\n                return x\n            x = x - step\n", "models/test_regressions.py::test_newton_steps_end_after_the_one_that_is_small_enough"),
        ("no arguments are a mistake", "pdmp/cli.py", ' or ["--help"]', "", "test_cli.py::test_help_without_arguments"),
        ("names of the command keep their blanks", "pdmp/cli.py", '[name.strip() for name in select.split(",")]', 'select.split(",")', "formulas/test_regression.py::test_what_the_command_asks_for"),
        ("an intercept of other groups", "pdmp/formulas/design.py", 't.expr.name == "Intercept" and t.factor.name == term.factor.name for t', 't.expr.name == "Intercept" for t', "formulas/test_regression.py::test_categories_that_vary_between_groups_have_all_levels_without_an_intercept_of_these_groups"),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"papers: {name}", file, old, new, (f"tests/{test}",))
    for name, file, old, new, test in [
        ("redrawn under the settings of a preset", "examples/papers/_common.py", '        settings = about["settings"]\n', '        about["settings"] = settings\n', "examples/test_papers.py::test_an_interrupted_script_is_resumed"),
        ("pieces keep those before them", "examples/papers/_common.py", '"points": table.points[before:]', '"points": table.points', "examples/test_papers.py::test_an_interrupted_script_is_resumed"),
        ("pieces of other settings are resumed", "examples/papers/_common.py", 'if found.get("settings") == kept["settings"]:', 'if found.get("settings"):', "examples/test_papers.py::test_pieces_of_other_settings_are_not_resumed"),
        ("the number of a row is not said to be unmet", "examples/papers/_page.py", 'if r["passed"] is False else "") + shown(r)', 'if r is not chosen and r["passed"] is False else "") + shown(r)', "examples/test_papers.py::test_what_is_not_met_is_said_to_be"),
        ("a reduced run counts as full", "examples/papers/_page.py", 'if about is None or about["preset"] != "full":', "if about is None:", "examples/test_papers.py::test_a_reduced_run_is_no_full_run"),
        ("scores of other batches than the run's", "examples/papers/_mamba.py", "scores(problem.provider(False, share), x, seed=seed + 1)", "scores(problem.provider(False, problem.shares[0]), x, seed=seed + 1)", "tuning/test_options.py::test_discrepancies_are_of_the_batches_of_the_run"),
        ("bands of the runs' own mean", "examples/papers/_mamba.py", "curves.std(axis=0, ddof=1)", "curves.std(axis=0)", "tuning/test_options.py::test_curves_and_measures_of_several_runs"),
        ("published SBPS without a preconditioner", "pdmp/processes/sbps.py", "            precondition=precondition,\n            noise=", "            precondition=None,\n            noise=", "processes/test_sbps_options.py::test_the_published_settings_take_the_others"),
        ("SBPS is known without its matrix", "pdmp/processes/sbps.py", "return self._scale, self._matrix", "return (self._scale,)", "processes/test_sbps_options.py::test_a_checkpoint_knows_the_matrix"),
        ("PPMF starts at the square of the mean count", "pdmp/models/factorisations/ppmf.py", "level = 0.5 * math.log(", "level = math.log(", "models/test_factorisations.py::test_ppmf_starts_at_the_mean_count"),
    ]
]  # fmt: skip

TAPES, NODES, FUNCTIONALS = (
    "tests/expressions/test_tape.py",
    "tests/expressions/test_nodes.py",
    "tests/models/test_sums_of_terms.py",
)
FAMILIES, MODES = "tests/models/test_families.py", "tests/automatic/test_modes.py"
VISITED, SUMS = "tests/engine/test_visited.py", "tests/factors/test_sums.py"
BUGS += [
    Bug(f"seen: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the centre of a sum without data", "pdmp/expressions/tape.py", "else line(SET, x=constant)", "else line(SET)", TAPES),
        ("traced values have a hash", "pdmp/expressions/nodes.py", 'raise TypeError(f"{_line()} looks a traced value up in a set or a dict: use pdmp.terms.where(test, a, b).")', "return self.index", NODES),
        ("functionals are of so many coordinates", "pdmp/expressions/functionals.py", "return list(self.sizes.items()) == list(sizes.items())", "return sum(self.sizes.values()) == sum(sizes.values())", FUNCTIONALS),
        ("functionals of blocks in any order", "pdmp/expressions/functionals.py", "return list(self.sizes.items()) == list(sizes.items())", "return dict(self.sizes) == dict(sizes)", FUNCTIONALS),
        ("masks of divisors are dropped", "pdmp/expressions/functionals.py", 'self * (1.0 / _numbers("a divisor", divisor, self.n))', "self * (1.0 / np.asarray(divisor, float))", FUNCTIONALS),
        ("factors of the first grouping alone", "pdmp/processes/row_bounds.py", "else np.atleast_2d(group):", "else np.atleast_2d(group)[:1]:", "tests/processes/test_row_bounds.py"),
        ("priors are bounded where the path is", "pdmp/processes/regression_boomerang.py", "far = self.anchor[j] + math.sqrt(square)", "far = self.anchor[j] + abs(y)", "tests/processes/test_regression_boomerang.py"),
        ("priors are bounded where the velocity leads", "pdmp/factors/sums.py", "furthest = here + max(sine * v, 0.0) - min(rise * bend, 0.0)", "furthest = here + max(sine * v, 0.0)", "tests/factors/test_sums.py"),
        ("the first offset alone", "pdmp/formulas/design.py", "sum(parts, np.zeros(n))", "sum(parts[:1], np.zeros(n))", "tests/formulas/test_regression.py::test_offsets_add_up"),
        ("predictions of the first family", "pdmp/models/sums_of_terms.py", "observed.predict(flat, rng) for observed in known]", "observed.predict(flat, rng) for observed in known[:1]]", FAMILIES),
        ("ends of what is not censored in between", "pdmp/models/families.py", "if np.any((censored == 2.0) & ~(upper > y)):", "if np.any((censored != 0.0) & ~(upper > y)):", FAMILIES),
        ("categories between others may be empty", "pdmp/models/families.py", "minlength=cuts.size + 1)[1 : cuts.size] == 0)", "minlength=cuts.size + 1)[1 : cuts.size] < 0)", FAMILIES),
        ("the last category between others may be empty", "pdmp/models/families.py", "[1 : cuts.size] == 0)", "[1 : cuts.size - 1] == 0)", FAMILIES),
        ("cuts in any order", "pdmp/models/sums_of_terms.py", "if np.any(np.diff(own) <= 0.0):", "if np.any(np.diff(own) < -1.0):", FAMILIES),
        ("cuts begin in the first places", "pdmp/models/sums_of_terms.py", "start[block.first : block.first + block.size] = values", "start[: block.size] = values", FAMILIES),
        ("a barrier as seen from one end", "pdmp/automatic/modes.py", "max(along) - max(along[0], along[-1])", "max(along) - along[0]", MODES),
        ("a fall in one step", "pdmp/automatic/modes.py", "potentials[k] < potentials[:k].max() - DIP", "potentials[k] < potentials[k - 1] - DIP", MODES),
        ("defaults by keyword hold nothing", "pdmp/native/classes.py", "return value.__defaults__, value.__kwdefaults__, *(", "return value.__defaults__, *(", "tests/engine/test_preflight.py"),
        ("the slope along a direction is told", "pdmp/models/verification.py", "v[group[0]] if len(group) == 1 else 1.0, float(v", "1.0, float(v", "tests/models/test_verification.py::test_the_slopes_that_are_told_are_partial_derivatives"),
        ("steps of the size of coordinates after a run", "pdmp/models/verification.py", "directions(gradient, x, most, resolution, scale)", "directions(gradient, x, most, resolution)", f"{VISITED}::test_steps_are_in_units_of_the_spread_of_the_run"),
        ("steps of a function of the size of coordinates after a run", "pdmp/models/adapters/function.py", "directions(gradient, x, most, self.resolution, scale)", "directions(gradient, x, most, self.resolution)", f"{VISITED}::test_steps_are_in_units_of_the_spread_of_the_run"),
        ("factors of the first level", "pdmp/processes/remainders.py", "self.factors[level, s] if", "self.factors[0, s] if", "tests/processes/test_row_bounds.py::test_each_level_has_factors_of_its_own"),
        ("blocks of up to two functionals", "pdmp/factors/sums.py", "low * m - (low * (low - 1)) // 2 + high - low", "low * m + high - low", f"{SUMS}::test_terms_of_three_functionals"),
        ("enclosures of up to two functionals", "pdmp/factors/sums.py", "e * m - (e * (e - 1)) // 2 + h - e", "e * m + h - e", f"{SUMS}::test_terms_of_three_functionals"),
        ("the first row of a kind is one of the kind before", "pdmp/models/sums_of_terms.py", 'i, "right")) - 1', 'i, "left")) - 1', FUNCTIONALS),
        ("the first chain comes to the others", "pdmp/automatic/modes.py", ">= NEAR for one in x)", ">= NEAR for one in x[:1])", f"{MODES}::test_any_chain_may_come_to_the_others"),
        ("a barrier from the first Gaussian", "pdmp/automatic/modes.py", "> BARRIER for x in used)", "> BARRIER for x in used[:1])", f"{MODES}::test_a_barrier_parts_a_mode_from_every_other"),
        ("effective draws of chains of equal lengths", "pdmp/engine/result.py", "axis=0, weights=[r.length for r in used])", "axis=0)", f"{HAND}::test_effective_draws_without_a_path_are_those_of_its_stretches"),
        ("rays from one point", "pdmp/models/propriety.py", "other = self.along(self.points[1], v, shell, last)", "other = self.along(self.points[0], v, shell, last)", "tests/models/test_propriety.py::test_what_holds_from_one_point_alone_is_not_suspected"),
        ("spikes from one point", "pdmp/models/propriety.py", "self.spike_rate(self.points[1], members, limit) > 0.0", "self.spike_rate(self.points[0], members, limit) > 0.0", "tests/models/test_propriety.py::test_what_holds_from_one_point_alone_is_not_suspected"),
        ("a rehearsal draws no clock but the event's", "pdmp/engine/preflight.py", "redrawn = process.order[process.start[i] : process.start[i + 1]]", "redrawn = [i]", f"{PREFLIGHT}::test_events_of_one_clock_draw_the_others_in_a_rehearsal"),
        ("what rests in one chain rests", "pdmp/diagnostics/summary.py", "np.any(moved, axis=0)", "np.all(moved, axis=0)", "tests/diagnostics/test_summary.py::test_chains_that_never_left_where_they_began"),
        ("records of other numbers", "pdmp/native/addresses.py", "type(old) is type(new) and old == new", "type(old) is type(new)", "tests/native/test_addresses.py"),
    ]
]  # fmt: skip
