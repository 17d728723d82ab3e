"""Planted bugs in regressions by formula: terms with groups, likelihoods, priors, coding, units, predictions."""

from __future__ import annotations

from tests.mutations.bugs import Bug

MODEL_TESTS, TESTS = "tests/models/test_mixed_regression.py", "tests/formulas/test_regression.py"
MANY = "test_intercepts_of_many_groups_are_subsampled_from_fewer_rows_on"
MIXED, LAWS, PRIORS = (
    "pdmp/models/regressions/mixed.py",
    "pdmp/models/regressions/likelihoods.py",
    "pdmp/models/priors.py",
)
TABLE_OF_FAMILIES = "pdmp/models/families.py"
INCLUSION, CHECKS = "pdmp/formulas/inclusion.py", "pdmp/formulas/checks.py"
DESIGN, TABLE, FITTING, FIT, FAMILIES = (
    "pdmp/formulas/design.py",
    "pdmp/formulas/table.py",
    "pdmp/formulas/fitting.py",
    "pdmp/formulas/fit.py",
    "pdmp/formulas/families.py",
)

BUGS = [
    Bug(f"formulas: {name}", file, old, new, (f"{MODEL_TESTS}::{test}",))
    for name, file, old, new, test in [
        (
            "the spread of effects has no gradient",
            MIXED,
            "out[self.n_fixed + k] += pull * x[j]",
            "out[self.n_fixed + k] += 0.0",
            "test_gradients",
        ),
        (
            "centred effects lose their normaliser",
            MIXED,
            "total += s * (self.first[k + 1] - self.first[k])",
            "total += 0.0 * s",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "the intercept is not moved back from the means",
            MIXED,
            "self.response_centre - beta @ self.centre",
            "self.response_centre",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "effects of slopes in standardised units",
            MIXED,
            "effects = s / self.group_scale[k] * draws",
            "effects = s * draws",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "a prior in the units of the data",
            MIXED,
            "g.prior.scaled(self.group_scale[k] / s)",
            "g.prior.scaled(1.0 / s)",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "weights count in the potential only",
            MIXED,
            "law, weight = self.likelihood, self.weight_of(i)",
            "law, weight = self.likelihood, 1.0",
            "test_gradients",
        ),
        (
            "Student-t: the degrees of freedom have no normaliser",
            TABLE_OF_FAMILIES,
            "+ lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)",
            "",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "negative binomial: the dispersion's normaliser of no counts",
            TABLE_OF_FAMILIES,
            "return lgamma(alpha) - lgamma(y + alpha) +",
            "return",
            "test_the_potential_is_the_density_of_natural_parameters",
        ),
        (
            "the derivatives of ℓ'' are those of ℓ'",
            LAWS,
            "self.derived.expression.derivative(0).derivative(0)",
            "self.derived.expression.derivative(0)",
            "test_derivatives_are_those_by_hand",
        ),
        (
            "all rows of a block have the response of the first",
            MIXED,
            "eta[0, lane], data[0, lane] = z, self.target[i]",
            "eta[0, lane], data[0, 0] = z, self.target[i]",
            "test_gradients",
        ),
        (
            "the expansion has the mixed derivatives once",
            "pdmp/expressions/tape.py",
            "                rho[g] -= h * there[f, 0]\n",
            "                pass\n",
            "test_bounds_on_remainders_of_rows",
        ),
        (
            "bounds by functional without a root of S",
            "pdmp/processes/row_bounds.py",
            "boxes.square[a, a, lane] * boxes.square[b, b, lane]",
            "boxes.square[a, a, lane]",
            "test_bounds_on_remainders_of_rows",
        ),
        (
            "bounds without the row's weight",
            "pdmp/processes/row_bounds.py",
            "found * rows.weight, 0.0)",
            "found, 0.0)",
            "test_bounds_on_remainders_of_rows",
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
        ("half-normal without its Jacobian", PRIORS, "return 0.5 * z * z - x", "return 0.5 * z * z", "test_priors"),
    ]
] + [
    Bug(f"formulas: {name}", file, old, new, (f"{TESTS}::{test}",), "formulae")
    for name, file, old, new, test in [
        (
            "an exposure counts as an offset",
            TABLE,
            "total += np.log(values)",
            "total += values",
            "test_offsets_add_up",
        ),
        (
            "offset(...) of the formula is forgotten",
            FITTING,
            "added = design.offset + linear_offset",
            "added = 0.0 * design.offset + linear_offset",
            "test_offsets_add_up",
        ),
        (
            "default priors of columns know no column",
            FAMILIES,
            "self.width * self.unit / float(self.totals.sd[j] or",
            "self.width * self.unit / float(1.0 or",
            "test_priors_by_name_and_by_default",
        ),
        ("unseen groups are the first", FIT, "effects[:, new] = 0.0", "pass", "test_unseen_groups"),
        (
            "rows of an unseen group have effects of their own",
            FIT,
            "drawn[:, place.ravel()]",
            "rng.permuted(drawn[:, place.ravel()], axis=0)",
            "test_unseen_groups",
        ),
        (
            "a slope's covariate is not multiplied",
            FIT,
            "z += effects * g.value",
            "z += effects",
            "test_slopes_are_predicted",
        ),
        (
            "new data in the coding of their own levels",
            DESIGN,
            "if first and name not in self._levels:",
            "if True:",
            "test_unseen_groups",
        ),
        (
            "all chains start at the mode",
            "pdmp/models/regressions/laplace.py",
            "self.mean[self.dense] + rng.standard_normal((n, len(self.dense))) @ root.T",
            "self.mean[self.dense]",
            "test_chains_start_apart",
        ),
        (
            "the starts' covariance is turned",
            "pdmp/models/regressions/laplace.py",
            "rng.standard_normal((n, len(self.dense))) @ root.T",
            "rng.standard_normal((n, len(self.dense))) @ root",
            "test_chains_start_apart",
        ),
        (
            "given probabilities of selection are ignored",
            FITTING,
            "inclusion[places] = probability",
            "inclusion[places] = INCLUSION",
            "test_prior_probabilities_of_selection",
        ),
        (
            "terms are selected column by column",
            FITTING,
            "if len(places) > 1}",
            "if len(places) > 9}",
            "test_terms_of_several_columns_are_selected_as_a_whole",
        ),
        (
            "a term and its column may both be named",
            FITTING,
            "for j in single.intersection(places):",
            "for j in single.intersection(()):",
            "test_terms_of_several_columns_are_selected_as_a_whole",
        ),
        (
            "the prior of the model's size is lost with groups",
            FITTING,
            "single], model.model_prior, rate=rate)",
            "single], None, rate=rate)",
            "test_terms_of_several_columns_are_selected_as_a_whole",
        ),
        (
            "the Bayes factor is the posterior odds",
            INCLUSION,
            "found / (1.0 - found) / (np.asarray(prior) / (1.0 - np.asarray(prior)))",
            "found / (1.0 - found)",
            "test_the_table_of_inclusion_by_hand",
        ),
        (
            "the error of an inclusion is that of independent draws",
            INCLUSION,
            "np.sqrt(found * (1.0 - found) / ess)",
            "np.sqrt(found * (1.0 - found) / moving.shape[1])",
            "test_the_table_of_inclusion_by_hand",
        ),
        (
            "all chains have the mean of all",
            INCLUSION,
            "chains.min(axis=0)",
            "chains.mean(axis=0)",
            "test_the_table_of_inclusion_by_hand",
        ),
        (
            "the median model is the whole one",
            INCLUSION,
            'row["probability"] >= 0.5',
            'row["probability"] >= 0.0',
            "test_the_table_of_inclusion_by_hand",
        ),
        (
            "numbers are computed with as they are",
            DESIGN,
            "return _floats(column)",
            "return column",
            "test_numbers_are_floats_before_anything_is_computed",
        ),
        (
            "values are aligned with other rows",
            DESIGN,
            "and not values.index.equals(table.index):",
            "and len(values) != len(table.index):",
            "test_values_of_other_rows_are_refused",
        ),
        (
            "rows numbered anew are those of another table",
            DESIGN,
            "kind = OtherRows if isinstance(error, OtherRows) else ValueError",
            "kind = ValueError",
            "test_values_of_other_rows_are_refused",
        ),
        (
            "truth values are added by or",
            DESIGN,
            "computes = _is_arithmetic(taker)",
            "computes = False",
            "test_truth_values_are_numbers",
        ),
        (
            "labels of few bits overflow",
            DESIGN,
            'dtype.kind in "biu" and',
            'dtype.kind in "b" and',
            "test_numbers_are_floats_before_anything_is_computed",
        ),
        (
            "what functions return stays in few bits",
            DESIGN,
            "_whole(values) if of_labels or of_bits else _floats(values)",
            "values",
            "test_what_functions_return_is_a_float",
        ),
        (
            "functions of NumPy add truth values by or",
            DESIGN,
            "return of_floats, not of_floats",
            "return False, not of_floats",
            "test_what_functions_return_is_a_float",
        ),
        (
            "truth values are numbers where a test is wanted",
            DESIGN,
            "and not computes:",
            "and False:",
            "test_what_functions_return_is_a_float",
        ),
        (
            "labels that functions return wrap",
            DESIGN,
            "return _whole(values) if of_labels or of_bits else",
            "return values if of_labels else _whole(values) if of_bits else",
            "test_labels_that_functions_return_do_not_wrap",
        ),
        (
            "labels are floats too",
            DESIGN,
            "part.name = Label(part.name)",
            "pass",
            "test_integers_that_are_labels_keep_their_names",
        ),
        (
            "the command calls anything",
            "pdmp/cli.py",
            "formulas.design.check_functions(text)",
            "pass",
            "test_a_formula_on_the_command_line_runs_no_other_code",
        ),
        (
            "the command looks at the outermost functions only",
            DESIGN,
            "parts += _arguments(part)",
            "pass",
            "test_a_formula_on_the_command_line_runs_no_other_code",
        ),
        (
            "all of NumPy is harmless",
            DESIGN,
            "isinstance(getattr(np, function, None), np.ufunc) or function in HARMLESS",
            "hasattr(np, function)",
            "test_a_formula_on_the_command_line_runs_no_other_code",
        ),
        (
            "a label is the other",
            DESIGN,
            "return codes.astype(float), said",
            "return 1.0 - codes, said",
            "test_labels_are_in_order",
        ),
    ]
]
ZIGZAG, LAPLACE, INTERCEPTS, ALIAS = (
    "pdmp/processes/regression_zigzag.py",
    "pdmp/models/regressions/laplace.py",
    "pdmp/models/regressions/group_intercepts.py",
    "pdmp/gradients/alias.py",
)
ZIGZAG_TESTS = "tests/processes/test_regression_zigzag.py"
RATES, HOLD = (
    f"{ZIGZAG_TESTS}::test_proposals_have_the_true_rates_and_bounds",
    f"{ZIGZAG_TESTS}::test_bounds_hold_whatever_flips_in_between",
)
THIRD, ROWS = f"{MODEL_TESTS}::test_bounds_on_third_derivatives", f"{MODEL_TESTS}::test_bounds_on_remainders_of_rows"
BUGS += [
    Bug(f"regression zigzag: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        (
            "slopes do not move the intercepts",
            INTERCEPTS,
            "self.mixing[0, 1:] = -self",
            "self.mixing[0, 1:] = -0.0 * self",
            f"{MODEL_TESTS}::test_coefficients_of_groups_are_the_same_law",
        ),
        (
            "slopes are not rescaled",
            INTERCEPTS,
            "self.group_scale[1:] / self.scale[self.means[1:]]))",
            "np.ones(self.n_groups - 1)))",
            f"{MODEL_TESTS}::test_coefficients_of_groups_are_the_same_law",
        ),
        (
            "slopes know only their own effects",
            ZIGZAG,
            "return 1 if k == 0 else 2",
            "return 1",
            RATES,
        ),
        (
            "a row's slope has a feature of 1",
            ZIGZAG,
            "value *= model.value[i, (j - self.first_effect) // self.groups]",
            "value *= 1.0",
            f"{ZIGZAG_TESTS}::test_rates_balance_the_flow",
        ),
        (
            "effects stand still in the bound of their group",
            ZIGZAG,
            "rise += high * abs(self.mixing[t, k]) * fastest",
            "rise += 0.0 * fastest",
            HOLD,
        ),
        (
            "the bound of a group forgets its other coordinates",
            ZIGZAG,
            "fastest += abs(self.mixing[t, q]) * self.speed[self.place_of(g, q)]",
            "fastest += 0.0",
            HOLD,
        ),
        (
            "what is known of a group's coordinates does not rise",
            ZIGZAG,
            "self.speed[j] * positive(known), self.speed[j] * rise",
            "self.speed[j] * positive(known), 0.0 * rise",
            HOLD,
        ),
        (
            "the precision of the effects is that of the start",
            ZIGZAG,
            "low, high = exp(-2.0 * (s + turn)), exp(-2.0 * (s - turn))",
            "low, high = exp(-2.0 * s), exp(-2.0 * s)",
            HOLD,
        ),
        (
            "means have half their speed",
            ZIGZAG,
            "self.mean_speeds = np.abs(self.mixing)",
            "self.mean_speeds = 0.2 * np.abs(self.mixing)",
            HOLD,
        ),
        (
            "the squares of effects have half their speed",
            ZIGZAG,
            "np.sqrt(np.sum(speeds**2, axis=1))",
            "0.0 * np.sum(speeds**2, axis=1)",
            HOLD,
        ),
        (
            "a flip of a slope leaves the speed of its intercept",
            ZIGZAG,
            "sums[t, SPEED] += change * (2.0 * v + change)",
            "sums[t, SPEED] += 0.0",
            f"{ZIGZAG_TESTS}::test_sums_are_those_of_the_path",
        ),
        (
            "the effects of a group have independent coefficients",
            LAPLACE,
            "precision = (model.mixing.T * np.exp(-2.0 * x[p : p + K])) @ model.mixing",
            "precision = np.diag(np.exp(-2.0 * x[p : p + K]))",
            f"{ZIGZAG_TESTS}::test_the_approximation_is_at_the_mode",
        ),
        (
            "slopes of columns that are not fixed are sub-sampled",
            INTERCEPTS,
            "if any(name not in columns for name in names[1:]) or len(set(names)) < len(names):\n        return None",
            "names = [name if name in columns else columns[1] for name in names]",
            f"{TESTS}::test_which_effects_are_subsampled",
        ),
        (
            "two groupings are sub-sampled as one",
            INTERCEPTS,
            "or len({g.grouping for g in groups}) > 1",
            "or len({g.grouping for g in groups}) > 9",
            f"{TESTS}::test_which_effects_are_subsampled",
        ),
        (
            "priors of dispersions have no curvature",
            PRIORS,
            'up to x."""\n    if kind == HALF_NORMAL:\n        z = exp(x) / a\n        return 2.0 * z * z',
            'up to x."""\n    if kind == HALF_NORMAL:\n        z = exp(x) / a\n        return z * z',
            f"{MODEL_TESTS}::test_priors",
        ),
        (
            "the mean of the intercepts has no gradient",
            INTERCEPTS,
            "out[self.means[q]] -= pull",
            "pass",
            f"{MODEL_TESTS}::test_coefficients_of_groups_are_the_same_law",
        ),
        (
            "effects are reported with their mean",
            INTERCEPTS,
            "draws[..., first:last] = (self.mixing @ own).reshape(*draws.shape[:-1], -1)",
            "pass",
            f"{MODEL_TESTS}::test_coefficients_of_groups_are_the_same_law",
        ),
        (
            "the spread of groups is taken as it is now",
            ZIGZAG,
            "low, high = exp(-2.0 * (s + turn)), exp(-2.0 * (s - turn))",
            "low, high = exp(-2.0 * s), exp(-2.0 * s)",
            HOLD,
        ),
        (
            "other groups stand still in the bound of priors",
            ZIGZAG,
            "return self.rises[k]",
            "return 0.0",
            HOLD,
        ),
        (
            "groups stand still in the bound of their mean",
            ZIGZAG,
            "fastest = self.groups * self.mean_speeds[t] + self.sum_of_speeds[t]\n            top",
            "fastest = self.groups * self.mean_speeds[t]\n            top",
            HOLD,
        ),
        (
            "the sum of squares is bounded as it is now",
            ZIGZAG,
            "size = positive(root - sign * fastest * h)",
            "size = root",
            HOLD,
        ),
        (
            "a flip leaves the sum of squares' slope",
            ZIGZAG,
            "sums[t, PRODUCT] += change * d",
            "pass",
            f"{ZIGZAG_TESTS}::test_sums_are_those_of_the_path",
        ),
        (
            "a flip leaves what the intercepts add to the others",
            ZIGZAG,
            "state.memory.cross[k, 1] -= 2.0 *",
            "state.memory.cross[k, 1] -= 1.0 *",
            f"{ZIGZAG_TESTS}::test_sums_are_those_of_the_path",
        ),
        (
            "remainders without their share of the bound",
            ZIGZAG,
            "share = data * part / self.tables.totals[g]",
            "share = data",
            RATES,
        ),
        (
            "the approximation has no border",
            LAPLACE,
            "schur = hessian[:, dense] - _times_blocks(border, blocks) @ border.T",
            "schur = hessian[:, dense]",
            f"{ZIGZAG_TESTS}::test_the_approximation_is_at_the_mode",
        ),
        (
            "a table of a group reaches into the next",
            ALIAS,
            "(self.first[g + 1] - self.first[g])",
            "(self.first[g + 1] - self.first[g] + 1)",
            "tests/gradients/test_alias.py::test_tables_of_groups_draw_from_their_own",
        ),
    ]
]
BATCHES, BATCH_TESTS = "pdmp/formulas/batches.py", "tests/formulas/test_batches.py"
IN_MEMORY = "test_the_model_is_that_of_the_table_in_memory"
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (f"{BATCH_TESTS}::{test}",), "formulae")
    for name, file, old, new, test in [
        ("levels of later batches are unknown", BATCHES, "chosen[place] = True", "pass", IN_MEMORY),
        ("every batch is written to the first rows", BATCHES, "place += len(table)", "place += 0", IN_MEMORY),
        (
            "a batch's labels are its own",
            BATCHES,
            "(np.asarray(table[component.name]) == highest)",
            "(np.asarray(table[component.name]) == np.asarray(table[component.name]).max())",
            IN_MEMORY,
        ),
        (
            "columns of a file are not centred",
            BATCHES,
            "X, value = (rows[:, :p] - centre) / scale,",
            "X, value = rows[:, :p] / scale,",
            IN_MEMORY,
        ),
        (
            "functions of whole columns see a batch",
            BATCHES,
            "_check_by_rows(design, y_of, some)",
            "pass",
            "test_mistakes",
        ),
        (
            "a file that grew is not noticed",
            TABLE,
            "if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):",
            "if False:",
            "test_a_file_that_changes_while_it_is_read",
        ),
        (
            "what separates some rows separates all",
            FITTING,
            "more = np.setdiff1d(np.concatenate(wrong), rows)[:SEPARATION_ROWS]",
            "more = rows[:0]",
            "test_separation_is_looked_for_among_some_rows_and_confirmed_among_all",
        ),
    ]
]

BUGS += [
    Bug(f"formulas: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("many groups of many rows are not enough", FITTING, "and n >= GROUPED_ROWS and", "and n > GROUPED_ROWS and", MANY),
        ("few groups are many", FITTING, "and len(groups[0].levels) >= MANY_GROUPS\n", "\n", MANY),
        ("few rows are many", FITTING, "and n >= GROUPED_ROWS and", "and", MANY),
        ("groups of few rows", FITTING, "INTERCEPT_ROWS if len(groups) == 1 else SLOPE_ROWS", "1 if len(groups) == 1 else SLOPE_ROWS", MANY),
        ("slopes in groups of few rows", FITTING, "INTERCEPT_ROWS if len(groups) == 1 else SLOPE_ROWS", "INTERCEPT_ROWS", "test_which_effects_are_subsampled"),
        ("slopes of many groups", FITTING, "grouped = len(groups) == 1 and n", "grouped = n", MANY),
        ("intercepts of many groups have all gradients", FITTING, "or selects or isinstance(model, GroupIntercepts)):", "or selects):", MANY),
    ]
]  # fmt: skip

SOURCES, PARTS = "pdmp/formulas/sources.py", "tests/formulas/test_parts.py"
BLOCKS, SURVEY, LAPLACE = (
    "pdmp/models/regressions/blocks.py",
    "pdmp/processes/regression_zigzag.py",
    "pdmp/models/regressions/laplace.py",
)
ALIASES = "pdmp/gradients/alias.py"
SAME, SET_UP, TOTALS = "test_parts_are_one_table", "test_set_up_in_blocks", "test_totals_of_blocks"
DRAWN, CHANGES, WRONG = (
    "test_rows_are_drawn_from_blocks_in_proportion",
    "test_a_table_that_changes_while_it_is_read",
    "test_mistakes",
)
BUGS += [
    Bug(f"parts: {name}", file, old, new, (f"{PARTS}::{test}",), "formulae")
    for name, file, old, new, test in [
        (
            "files in the order of their ends",
            SOURCES,
            "paths = sorted(path for path in hidden if",
            "paths = (lambda found: sorted(found, reverse=True))(path for path in hidden if",
            SAME,
        ),
        ("parts begin where they did", BATCHES, "np.cumsum(kept)", "np.cumsum(kept) * 0", SAME),
        (
            "levels of later parts are unknown",
            BATCHES,
            "some.append(chooser.choose(table, complete))",
            "some.append(chooser.choose(table, complete)[: 6 * (len(some) == 0)])",
            SAME,
        ),
        (
            "results as they come",
            SOURCES,
            "yield self._result(future)",
            "yield self._result(futures[k ^ 1] if k ^ 1 < len(futures) and futures[k ^ 1] else future)",
            SAME,
        ),
        ("names of the script do not travel", BATCHES, "named[name] = space[name]", "space[name]", SAME),
        ("a file that was touched", SOURCES, "stack.enter_context(unchanged(path))", "pass", CHANGES),
        ("a file that was added", SOURCES, 'if source.what != "the file" and tuple(', "if False and tuple(", CHANGES),
        ("files that lack a column", SOURCES, "    if absent:\n", "    if False:\n", WRONG),
        (
            "rows stay when the model has gone",
            BATCHES,
            "weakref.finalize(files,",
            "(lambda *_, **options: None)(files,",
            SAME,
        ),
        ("a client without a folder", BATCHES, "if client is not None and folder is None:", "if False:", "test_a_fit"),
        (
            "means of blocks are averaged",
            BATCHES,
            "mean = mean + change * (m / (n + m))",
            "mean = mean + change * 0.5",
            TOTALS,
        ),
        ("spreads within blocks only", BATCHES, "+ change**2 * (n * m / (n + m))", "", TOTALS),
        (
            "products of the last block",
            BATCHES,
            "products = products * np.outer(old / known, old / known) + gram",
            "products = 0.0 * np.outer(old / known, old / known) + gram",
            TOTALS,
        ),
        ("the smallest weight of the last block", BATCHES, "np.minimum(low, least)", "least", TOTALS),
        (
            "rows of groups of the last part",
            BATCHES,
            "[sum(parts) for parts in zip(*sizes, strict=True)]",
            "[parts[-1] for parts in zip(*sizes, strict=True)]",
            TOTALS,
        ),
        ("groups count their own coordinates", BATCHES, "rows[:, p + 3 :: 2] + place)", "rows[:, p + 3 :: 2])", SET_UP),
        (
            "weights of files are 1",
            BATCHES,
            'files.write("weight", first, rows[:, p + 2])',
            'files.write("weight", first, 0.0 * rows[:, p + 2] + 1.0)',
            SET_UP,
        ),
        (
            "ranges begin a row later",
            BLOCKS,
            "place = begin + first * dtype.itemsize * numbers",
            "place = begin + (first + 1) * dtype.itemsize * numbers",
            "test_files_are_written_and_read_by_ranges",
        ),
        (
            "the last block twice",
            "pdmp/native/threads.py",
            "tuple(a + b for a, b in zip(totals, part, strict=True))",
            "tuple(b + b for a, b in zip(totals, part, strict=True))",
            SET_UP,
        ),
        (
            "the prior of each block",
            BLOCKS,
            "return self.shell.gradient(x) + self._at(x)[1]",
            "return 2.0 * self.shell.gradient(x) + self._at(x)[1]",
            SET_UP,
        ),
        (
            "sums of where it was before",
            BLOCKS,
            "if self._look[0] not in (key, (key[0], True)):",
            "if self._look[0] is None:",
            SET_UP,
        ),
        ("dispersions without the prior", BLOCKS, "yield rows[q] + (self", "yield rows[q] + 0.0 * (self", SET_UP),
        (
            "slopes of blocks are intercepts",
            BLOCKS,
            "border[j, model.level[i, k] - model.first[0]] += part * model.value[i, k]",
            "border[j, model.level[i, k] - model.first[0]] += part",
            SET_UP,
        ),
        (
            "slopes of blocks have no part in dispersions",
            BLOCKS,
            "laws[q, model.level[i, k]] += part * model.value[i, k]",
            "laws[q, model.level[i, k]] += part",
            SET_UP,
        ),
        (
            "products of a slope are the slope",
            BLOCKS,
            "+= w * model.value[i, k] * model.value[i, q]",
            "+= w * model.value[i, k]",
            SET_UP,
        ),
        (
            "slopes in files are not centred",
            BATCHES,
            "value[:, 1:] = X[:, means[1:]]",
            "value[:, 1:] *= 1.0",
            SET_UP,
        ),
        (
            "fixed columns of slopes act twice",
            BATCHES,
            "X[:, means] = 0.0",
            "X[:, means[:1]] = 0.0",
            SET_UP,
        ),
        (
            "slopes of other columns are sub-sampled",
            BATCHES,
            "len(means) == 1 or all(list(",
            "len(means) == 1 or any(list(",
            "test_slopes_of_fixed_columns_are_looked_for_in_all_blocks",
        ),
        (
            "spreads of the groups in the last block",
            SURVEY,
            "return squares / model.n_data, of_groups / model.n_data",
            "return squares / model.n_data, of_groups",
            SET_UP,
        ),
        (
            "a second process writes the tables of the first",
            BLOCKS,
            'return next(one for k in itertools.count() if (one := f"{name}-{k}") not in self)',
            "return name",
            DRAWN,
        ),
        (
            "every block's aliases in the first",
            ALIASES,
            "alias = self.first[b] + int(self.table[k, ALIAS])",
            "alias = int(self.table[k, ALIAS])",
            DRAWN,
        ),
        (
            "blocks of the same probability",
            ALIASES,
            "self.blocks = AliasTable(totals if self.totals[0] > 0.0 else",
            "self.blocks = AliasTable(0.0 * totals + 1.0 if self.totals[0] > 0.0 else",
            DRAWN,
        ),
        (
            "killed workers in Dask's words",
            SOURCES,
            "or type(error).__name__ in LOST_WORKERS_BY_NAME:",
            "or False:",
            "test_lost_workers",
        ),
        (
            "a folder that is another one elsewhere",
            SOURCES,
            "except FileNotFoundError as error:",
            "except ZeroDivisionError as error:",
            "test_workers_without_the_folder",
        ),
    ]
]

REFERENCE = f"{TESTS}::test_correlated_coefficients_have_a_reference"
BUGS += [
    Bug(f"formulas: {name}", FITTING, old, new, (REFERENCE,))
    for name, old, new in [
        ("the condition of the covariance", "covariance * np.outer(scale, scale)", "covariance"),
        ("the Boomerang is never taken", "elif free and not model.n_groups and condition(", "elif False and condition("),
        ("the Boomerang is always taken for counts", "not model.n_groups and condition(found.covariance) > CORRELATED", "not model.n_groups"),
        ("the Boomerang is taken however many rows it looks at", "turning if turning.expected_data < model.n_data else process", "turning"),
        ("the Boomerang refreshes at its default rate", "RegressionBoomerang(model, found.mean, REFRESH_RATE)", "RegressionBoomerang(model, found.mean)"),
    ]
]  # fmt: skip

SPARSE = "tests/formulas/test_sparse_anchor.py"
ASKED, FEW, REFUSED = (
    f"{TESTS}::test_the_sampler_that_is_asked_for",
    f"{TESTS}::test_selection_from_few_rows",
    f"{TESTS}::test_samplers_that_have_no_version_for_a_model",
)
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the Boomerang that is asked for is BPS", FITTING, 'boomerang, many = sampler == "boomerang"', 'boomerang, many = sampler == "zigzag"', ASKED),
        ("of many columns bounds count all", FITTING, "RegressionBPS(model, anchor, few_move=many)", "RegressionBPS(model, anchor)", ASKED),
        ("columns that are never 0 make many", FITTING, "free >= MANY_COLUMNS", "len(others) >= MANY_COLUMNS", ASKED),
        ("the sampler that is asked for has no prior of the models", FITTING, "StickyGroups(process, [*whole, *single], model.model_prior", "StickyGroups(process, [*whole, *single], None", ASKED),
        ("few rows: single ones all the same", FITTING, "return not process.inner.expected_data_of(moving) <= passes * model.n_data", "return False", FEW),
        ("few rows: the limit counts rows, not passes", FITTING, "expected_data_of(moving) <= passes * model.n_data", "expected_data_of(moving) <= passes", FEW),
        ("many terms are too many", "pdmp/formulas/design.py", "sys.setrecursionlimit(max(before, 1_000 + 10 * size))", "pass", f"{TESTS}::test_a_formula_of_many_terms_is_read"),
        ("many terms: Python stays as deep", "pdmp/formulas/design.py", "    finally:\n        sys.setrecursionlimit(before)\n", "    finally:\n        pass\n", f"{TESTS}::test_a_formula_of_many_terms_is_read"),
        ("sums of columns: the factor without its rows", FITTING, "root[n, :n], root[n, n] = across, math.sqrt(left)", "root[n, n] = math.sqrt(left)", f"{TESTS}::test_columns_far_from_zero_or_in_small_units_are_no_constants"),
        ("sums of columns: shares by the factor again", FITTING, 'lower=True, trans="T")', "lower=True)", f"{TESTS}::test_columns_far_from_zero_or_in_small_units_are_no_constants"),
        ("many rows are few", FITTING, "passes = FEW_ROWS_PASSES if model.n_data < SUBSAMPLED_ROWS else MANY_ROWS_PASSES", "passes = FEW_ROWS_PASSES", FEW),
        ("few rows are many", FITTING, "passes = FEW_ROWS_PASSES if model.n_data < SUBSAMPLED_ROWS else MANY_ROWS_PASSES", "passes = MANY_ROWS_PASSES", FEW),
        ("few rows: of very many columns they are always few", FITTING, "expected_data_of(moving) <=", "expected_data_of(process.inner.dim) <=", FEW),
        ("few rows: distances are as their squares", "pdmp/processes/regression_boomerang.py", "r = math.sqrt(moving)", "r = float(moving)", FEW),
        ("few rows: the prior of the models is lost", FITTING, "Sticky(ZigZag(model, speed=sd), model.model_prior)", "Sticky(ZigZag(model, speed=sd))", FEW),
        ("few rows: speeds of 1", FITTING, "Sticky(ZigZag(model, speed=sd), model.model_prior)", "Sticky(ZigZag(model), model.model_prior)", FEW),
        ("few rows: terms are taken apart", FITTING, "            if not model.together:\n                return from_all_rows(model, found.sd, found.draws)", "            return from_all_rows(model, found.sd, found.draws)", FEW),
        ("the sampler that is asked for does not stick", FITTING, "return with_jumps(inner, model, np.sqrt(np.diag(covariance))), sparse_starts", "return inner, sparse_starts", ASKED),
        ("a small table has full gradients whatever is asked for", FITTING, 'if sampler == "auto" and not (model.n_data', "if not (model.n_data", ASKED),
        ("the notes name another sampler", FITTING, ".get(type(process.inner), ", ".get(type(process), ", ASKED),
        ("groups are sampled by any sampler", FITTING, "    if model.n_groups:\n        raise ValueError(f'`sampler`", "    if False:\n        raise ValueError(f'`sampler`", REFUSED),
        ("single coefficients do not jump", FITTING, "StickyGroups(process, [*whole, *single]", "StickyGroups(process, whole or single", f"{TESTS}::test_terms_of_several_columns_are_selected_as_a_whole"),
        ("jumps as often with any number of rows", FITTING, "rate = min(1.0, (JUMP_ROWS if", "rate = max(1.0, (JUMP_ROWS if", f"{TESTS}::test_terms_of_several_columns_are_selected_as_a_whole"),
        ("jumps are few for terms as a whole", FITTING, "crossing = 0.0 if whole else ", "crossing = ", f"{TESTS}::test_terms_of_several_columns_are_selected_as_a_whole"),
        ("jumps are many where coefficients cross 0", FITTING, "if crossing * n <= FEW_CROSSINGS", "if True or crossing * n <= FEW_CROSSINGS", f"{TESTS}::test_terms_of_several_columns_are_selected_as_a_whole"),
        ("chains start with a part of a term", FITTING, "out[:, places].all(axis=1, keepdims=True)", "out[:, places]", f"{TESTS}::test_terms_of_several_columns_are_selected_as_a_whole"),
        ("chains start with all coefficients", FITTING, "np.sqrt(np.diag(covariance))), sparse_starts", "np.sqrt(np.diag(covariance))), starts", ASKED),
        ("the anchor is the mode", FITTING, "anchor = sparse_anchor(mode, covariance, kappa, model.model_prior)", "anchor = mode", ASKED),
        ("coefficients are chosen by their own variance", "pdmp/formulas/sparse_anchor.py", "own = np.diag(precision)[outside] - np.sum(share * across, axis=1)", "own = np.diag(precision)[outside]", f"{SPARSE}::test_coefficients_are_chosen_while_the_evidence_rises"),
        ("coefficients are chosen whatever is in", "pdmp/formulas/sparse_anchor.py", "left = pull[outside] - share @ pull[inside]", "left = pull[outside]", f"{SPARSE}::test_coefficients_are_chosen_while_the_evidence_rises"),
        ("coefficients are chosen without the prior of their number", "pdmp/formulas/sparse_anchor.py", "log_odds += math.log((law.a + count) / (law.b + free - 1 - count))", "log_odds += 0.0", f"{SPARSE}::test_coefficients_are_chosen_while_the_evidence_rises"),
        ("one coefficient too many may be 0", "pdmp/formulas/sparse_anchor.py", "(law.b + free - 1 - count)", "(law.b + free - count)", f"{SPARSE}::test_the_prior_of_how_many_are_not_zero"),
        ("chains start with nearly all coefficients", FITTING, "(rng.random(x.shape) >= share)", "(rng.random(x.shape) < share)", ASKED),
        ("the command forgets the sampler", "pdmp/cli.py", '"sampler": sampler, ', '"sampler": "auto", ', f"{TESTS}::test_what_the_command_asks_for"),
    ]
]  # fmt: skip

BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("the pilot is not counted", FITTING, "process.preparation_gradients = math.ceil(passes)", "process.preparation_gradients = 0", f"{TESTS}::test_what_the_pilot_took_is_counted"),
        ("crossed groups however many rows they look at", FITTING, "(CROSSED_SHARE if crossed else 1.0) * model.n_data", "model.n_data", f"{TESTS}::test_crossed_intercepts_are_subsampled"),
        ("responses of other rows", "pdmp/models/regressions/glm.py", "other.y, other.target = self.y[rows], self.target[rows]", "other.y, other.target = self.y, self.target[rows]", "tests/models/test_regressions.py::test_the_mode_of_many_rows_takes_a_few_passes"),
    ]
]  # fmt: skip

CLI = "pdmp/cli.py"
OUT = f"{TESTS}::test_draws_and_predictions_of_the_command"
EFFECTS = f"{TESTS}::test_draws_of_effects_are_named_by_their_groups"
LEVELS = f"{TESTS}::test_levels_that_others_are_compared_with_are_said"

BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("predictions: only the first rows", CLI, "new.iloc[first : first + PREDICTED_ROWS]", "new.iloc[:PREDICTED_ROWS]", OUT),
        ("predictions: an interval of 90 %", CLI, "np.quantile(mean, [0.025, 0.975], axis=0)", "np.quantile(mean, [0.05, 0.95], axis=0)", OUT),
        ("predictions: unseen groups as if never told", CLI, "unseen=unseen, seed=seed)", 'unseen="zero", seed=seed)', EFFECTS),
        ("predictions: columns are missed after the fit", CLI, "formulas.table.check_names(names, new, ", "formulas.table.check_names([], new, ", OUT),
        ("predictions: exposure is not looked for", CLI, "names = {name for name in (*names, *others) if name}", "names = {name for name in names if name}", OUT),
        ("predictions: missing values after the fit", CLI, "        if len(missing):\n", "        if len(missing) > 10**9:\n", OUT),
        ("predictions: unseen groups after the fit", CLI, "        if len(wrong):\n            cure", "        if len(wrong) > 10**9:\n            cure", OUT),
        ("predictions: unseen groups that are to be drawn are refused", CLI, "or name in grouping and not refuses:", "or False:", OUT),
        ("draws: the command forgets the effects", CLI, "found.to_dataframe(effects=effects)", "found.to_dataframe()", EFFECTS),
        ("draws: chains and draws are mixed up", FIT, '"chain": np.repeat(np.arange(self.run.chains), n)', '"chain": np.tile(np.arange(self.run.chains), n)', OUT),
        ("draws: in the coordinates that are sampled", FIT, "        natural = self.run.constrain(draws)\n        columns = {name: natural[name] for name in self.priors}", "        natural = self.run.constrain(draws)\n        columns = {name: draws[..., k] for k, name in enumerate(self.priors)}", OUT),
        ("draws: effects of the wrong groups", FIT, "natural[g.name][..., k] for k, label in enumerate(g.levels)}", "natural[g.name][..., 0] for k, label in enumerate(g.levels)}", EFFECTS),
        ("the level that others are compared with is the last", DESIGN, 'if f"{term.name}[{level}]" not in self.columns]', "][-1:]", LEVELS),
    ]
]  # fmt: skip

CALLED, EARLY = (
    f"{TESTS}::test_columns_that_are_called_as_other_parameters",
    f"{TESTS}::test_a_named_column_is_refused_before_the_table_is_read",
)
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("a column is called as a dispersion is", CHECKS, 'taken |= dict.fromkeys(dispersions, "a', 'taken |= dict.fromkeys((), "a', CALLED),
        ("a column is called as a spread of groups is", FITTING, "check_parameters([*design.columns, *design.terms], names,", "check_parameters([*design.columns, *design.terms], (),", CALLED),
        ("a column is called as that of the chains is", CHECKS, "taken |= dict.fromkeys(OF_DRAWS,", "taken |= dict.fromkeys((),", CALLED),
        ("a column is called as the constant is", DESIGN, '    if "Intercept" in names:', "    if False:", CALLED),
        ("two columns of one name", DESIGN, "if len(set(self.columns)) < len(self.columns):", "if False:", CALLED),
        ("names are looked at after the table is read", FITTING, "check_parameters(sorted(described.fixed), (),", "check_parameters((), (),", EARLY),
    ]
]  # fmt: skip

TYPES, WORDS, UNREADABLE, BETWEEN = (
    f"{BATCH_TESTS}::test_types_that_change_after_the_first_rows",
    f"{BATCH_TESTS}::test_missing_values_are_the_same_however_a_file_is_read",
    f"{BATCH_TESTS}::test_files_that_cannot_be_read",
    f"{BATCH_TESTS}::test_types_that_differ_between_files",
)
BUGS += [
    Bug(f"files: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("missing values as Arrow knows them", SOURCES, "        null_values=list(MISSING),\n", "", WORDS),
        ("missing values in text are text", SOURCES, "strings_can_be_null=True", "strings_can_be_null=False", WORDS),
        ("missing values as another list has them", TABLE, "na_values=list(MISSING)", "na_values=list(MISSING[3:])", WORDS),
        ("fractions after whole numbers are text", SOURCES, '"float64" if kind.startswith(("int", "null")) else "string"', '"string"', TYPES),
        ("the second pass has the types of the first rows", BATCHES, "batches(part, recipe.used, types=recipe.types)", "batches(part, recipe.used)", TYPES),
        ("a column holds numbers of one part of a file", TABLE, ", low_memory=False", ", dtype={'h': object}", TYPES),
        ("a column is numbers in one file and text in another", BATCHES, "    if mixed:  #", "    if False:  #", BETWEEN),
        ("two columns of a file have one name", SOURCES, "    check_repeated(names)\n", "", UNREADABLE),
        ("a second column of one name is renamed", TABLE, "    check_repeated(header.iloc[0])", "    pass", UNREADABLE),
        ("text in another encoding", SOURCES, "            raise not_utf8(path, field.name)", "            pass", UNREADABLE),
    ]
]  # fmt: skip

WHOLE = f"{TESTS}::test_functions_of_whole_columns"
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("whole columns: fixed ones are not looked at", DESIGN, "for term in (*self._fixed, *self._offsets):", "for term in ():", WHOLE),
        ("whole columns: offsets are not looked at", DESIGN, "for term in (*self._fixed, *self._offsets):", "for term in self._fixed:", WHOLE),
        ("whole columns: only the smallest value", DESIGN, "for end in (int(np.argmin(column)), int(np.argmax(column)))", "for end in (int(np.argmin(column)),)", WHOLE),
        ("whole columns: only the largest value", DESIGN, "for end in (int(np.argmin(column)), int(np.argmax(column)))", "for end in (int(np.argmax(column)),)", WHOLE),
        ("whole columns: slopes of groups are not looked at", DESIGN, "if _calls(term.expr) and", "if False and", WHOLE),
        ("whole columns: groups are not looked at", DESIGN, "if _calls(term.factor) else ()", "if False else ()", WHOLE),
        ("whole columns: new tables are coded all the same", DESIGN, "        if self.whole_column is not None:\n", "        if False:\n", WHOLE),
        ("whole columns: the response of a batch", BATCHES, "or not design.is_by_rows(y_of(table), y_of, table)", "", f"{BATCH_TESTS}::test_mistakes"),
    ]
]  # fmt: skip

FAR, IN_PARTS = f"{TESTS}::test_columns_far_from_zero_or_in_small_units_are_no_constants", f"{PARTS}::{TOTALS}"
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("columns far from 0 are constants", "pdmp/formulas/totals.py", "0.0 if design.intercept is None else mean, np", "0.0, np", FAR),
        ("columns in small units are 0", "pdmp/formulas/totals.py", "np.where(largest > 0.0, largest, 1.0)),", "1.0),", FAR),
        ("columns without an intercept are centred", "pdmp/formulas/totals.py", "0.0 if design.intercept is None else mean, np", "mean, np", FAR),
        ("the constant is not named in a sum", FITTING, "others = sorted([design.intercept, *others])", "pass", FAR),
        ("blocks: columns in small units are 0", BATCHES, "np.where(top > 0.0, top, 1.0)\n", "1.0\n", IN_PARTS),
        ("blocks: products about the means of blocks", BATCHES, "products += np.outer(shift, shift) * (n * m / (n + m))", "pass", IN_PARTS),
        ("blocks: sizes of the last one", BATCHES, "products * np.outer(old / known, old / known)", "products", IN_PARTS),
        ("blocks: products about means without an intercept", BATCHES, "        if design.intercept is None:  # about 0", "        if False:", f"{BATCH_TESTS}::test_collinear_columns_of_files"),
    ]
]  # fmt: skip

SELECTED, MANY_ROWS, AT_FIRST, NONE_SEEN, HOLDS, NEW_GROUPS, OF_A_FIT, RESPONSES = (
    f"{TESTS}::test_the_command_prints_what_is_selected",
    f"{TESTS}::test_predictions_of_too_many_rows",
    f"{TESTS}::test_arguments_are_looked_at_before_the_data",
    f"{TESTS}::test_groups_of_which_none_was_seen",
    f"{TESTS}::test_columns_that_are_neither_numbers_nor_categories",
    f"{TESTS}::test_unseen_groups_differ_in_each_of_their_effects",
    f"{TESTS}::test_the_table_of_a_fit_that_selects",
    f"{TESTS}::test_responses_are_drawn_with_each_dispersion_in_its_place",
)
BUGS += [
    Bug(f"formulas: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("the command: what is selected has no errors", CLI, 'typer.echo(f"\\n{inclusion!r}")', "typer.echo(dict(inclusion))", SELECTED),
        ("the command: JSON has no median model", CLI, '{"median_model": inclusion.median_model, "warnings"', '{"median_model": [], "warnings"', SELECTED),
        ("the command: the ending of a picture is seen after the fit", CLI, "        _check_picture(picture)\n", "        pass\n", OUT),
        ("predictions of as many rows as there are", FIT, "if draws * rows > NUMBERS:", "if False:", MANY_ROWS),
        ("predictions: rows of the fit for those of a table", FIT, "rows = self.n_rows if table is None else len(table)", "rows = self.n_rows", MANY_ROWS),
        ("predictions: all new groups have the effects of one", FIT, "drawn[:, place.ravel()]", "drawn[:, :1]", NEW_GROUPS),
        ("predictions: slopes of new groups as spread as intercepts", FIT, "* natural[prefix + fitted.sd_name][:, None]", "* natural[prefix + fitted_groups[0].sd_name][:, None]", NEW_GROUPS),
        ("predictions: nu for sigma", FIT, "draw(z, a[:, None], c[:, None], rng)", "draw(z, c[:, None], a[:, None], rng)", RESPONSES),
        ("predictions: draws of chains are rounded down", FIT, "self.run.draws(-(-n // self.run.chains))", "self.run.draws(n // self.run.chains)", RESPONSES),
        ("inclusion: the prior of another column", FIT, "places[first], prior[places[first]])", "places[first], prior[first])", OF_A_FIT),
        ("inclusion: chains as long as the first", INCLUSION, "/ r.length for r in records])", "/ records[0].length for r in records])", OF_A_FIT),
        ("groups of which none was seen are not said", FIT, "if new.all() and named:", "if False:", NONE_SEEN),
        ("options are looked at after the data", FITTING, "    check_options(options)\n", "", AT_FIRST),
        ("arguments are looked at after the data", FITTING, "    check_arguments(priors, {", "    (lambda *_: None)(priors, {", AT_FIRST),
        ("dates are whatever they are", DESIGN, '("dates", AS_DAYS)', '("", AS_DAYS)', HOLDS),
        ("columns are looked at by formulae alone", FITTING, "        check_columns(described, table)\n", "", HOLDS),
        ("a category of one level is dropped", DESIGN, "            if not labels:\n", "            if False:\n", HOLDS),
        ("large labels merge", DESIGN, ".max() >= 2.0**53", ".max() >= 2.0**64", f"{TESTS}::test_large_labels_do_not_merge"),
        ("longer rows shift the names", TABLE, "header=None, nrows=2", "header=None, nrows=1", f"{TESTS}::test_names_are_not_shifted_by_rows_that_are_longer"),
        ("a slip makes a category", DESIGN, "2 * numeric > len(levels)", "2 * numeric > 2 * len(levels)", f"{TESTS}::test_columns_that_are_neither_numbers_nor_categories"),
        ("levels fill the memory", DESIGN, "if most >= MANY_LEVELS and size > limit:", "if False:", f"{TESTS}::test_levels_that_would_fill_the_memory"),
        ("squares overflow", FITTING, "        if size > LARGEST:", "        if False:", f"{TESTS}::test_values_that_are_too_large"),
    ]
]  # fmt: skip

BARS = f"{PARTS}::test_bars_of_the_passes"
BUGS += [
    Bug(f"bars: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("rows that are read are not counted", SOURCES, "            _SHOWN.append(self.passes)\n", "            _SHOWN.append(Passes())\n", BARS),
        ("of rows that are complete only", SOURCES, "                pass_.add(len(table))", "                pass_.add(len(table.dropna()))", BARS),
        ("passes over coded rows are not counted", BATCHES, "self.place.passes.add(sum(stop - first for first, stop in ranges))", "pass", BARS),
        ("shown without a terminal", SOURCES, "run.wants_bar(progress), None", "True, None", BARS),
        ("of a pass stay open", SOURCES, "                self._bar.close()\n            self._bar = None", "                self._bar = None", BARS),
    ]
]  # fmt: skip

MASKED = f"{TESTS}::test_masked_and_complex_values_of_functions_are_refused"
BUGS += [
    Bug("returned: masked values are numbers", "pdmp/formulas/design.py", "if np.ma.is_masked(values):", "if False:", (MASKED,), "formulae"),
    Bug("returned: complex numbers are their real parts", "pdmp/formulas/design.py", 'None) == "c":', 'None) == "-":', (MASKED,), "formulae"),
]  # fmt: skip

MISSING, OTHER_TYPES, SHARED = (
    f"{TESTS}::test_missing_values_of_functions_are_no_category",
    f"{TESTS}::test_tables_whose_columns_have_other_types_than_those_of_the_fit",
    f"{TESTS}::test_terms_that_share_or_add_categories",
)
BUGS += [
    Bug(f"coding: {name}", DESIGN, old, new, (test,), "formulae")
    for name, old, new, test in [
        ("missing values are the last category", "        if missing:\n", "        if False:\n", MISSING),
        ("missing labels of C(...) are whatever formulae says", "if taker is None or of_labels:", "if taker is None:", MISSING),
        ("short columns are whatever NumPy says", "if shape and shape[0] != n:", "if False:", MISSING),
        ("effects of values that are no numbers", "if not np.all(np.isfinite(values)):", "if False:", MISSING),
        ("truth values are not 0 and 1", "if values.dtype.kind == \"b\" or types.infer_dtype(values) == \"boolean\":", "if False:", OTHER_TYPES),
        ("ordered categories are text in a new table", 'if ours == theirs and column.isin(dtype.categories).all():', "if False:", OTHER_TYPES),
        ("what is no level is the last one", "np.full(coding.matrix.shape[1], np.nan)", "coding.matrix[-1]", OTHER_TYPES),
        ("labels are as in the new table", "of each row of a table, (n,) labels.\"\"\"\n        table = _as_fitted(table, self._first)", "of each row of a table, (n,) labels.\"\"\"", OTHER_TYPES),
        ("levels that a category lacks are asked for", "return values.cat.remove_unused_categories()", "return values", OTHER_TYPES),
        ("nested terms share a category", "[copy.copy(part) for part in", "[part for part in", SHARED),
        ("terms that are added copy a namespace", "part.__deepcopy__ = functools.partial(_copied, part)", "pass", SHARED),
    ]
]  # fmt: skip

BUGS += [
    Bug("coding: text is a truth value for np.where", DESIGN, "(function is np.where and part is taker.args[0]) or", "", (f"{TESTS}::test_text_is_no_truth_value",), "formulae"),
    Bug("coding: text is a truth value for logical functions", DESIGN, " or function in LOGICAL", "", (f"{TESTS}::test_text_is_no_truth_value",), "formulae"),
    Bug("batches: empty columns change types", "pdmp/formulas/batches.py", "if len(table)] or tables[:1]", "]", ("tests/formulas/test_batches.py::test_a_column_that_a_file_has_nothing_in",), "formulae"),
]  # fmt: skip

FLOATS, KINDS, NUMBERED = (
    f"{TESTS}::test_numbers_are_floats_before_anything_is_computed",
    f"{TESTS}::test_other_types_than_those_of_the_fit_are_refused_or_made_the_same",
    f"{TESTS}::test_integers_that_are_labels_keep_their_names",
)
CATEGORIES = "tests/formulas/test_batches.py::test_categories_of_numbers_are_no_numbers"
BUGS += [
    Bug(f"types: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("sides of a comparison that is a label wrap", DESIGN, "of_labels = of_labels and not computes", "pass", FLOATS),
        ("labels without a sign wrap", DESIGN, "is_small or is_unsigned else values", "is_small else values", FLOATS),
        ("labels that were computed are 1.0", DESIGN, "return values.astype(np.int64) if is_exact", "return values.astype(np.int64) if False", NUMBERED),
        ("labels of floats are whole", DESIGN, 'or table[one.name].dtype.kind in "biu"', "or True", NUMBERED),
        ("text is a truth value in a new table", DESIGN, "self._check_types(table, names)", "pass", KINDS),
        ("groups of a new table have no other names", DESIGN, "for name in sorted(names & {name for term in terms for name in term.var_names}):", "for name in sorted(names):", KINDS),
        ("slopes of groups may be text", DESIGN, "*(term.expr for term in self._groups)]\n        for name in sorted(names &", "]\n        for name in sorted(names &", KINDS),
        ("truth values are not made numbers", DESIGN, "column.astype(float if ours == NUMBERS else dtype)", "column.astype(dtype)", KINDS),
        ("categories stay categories", DESIGN, 'elif hasattr(column.dtype, "categories") or', "elif", KINDS),
        ("categories are others in a new table", DESIGN, "if ours == theirs and column.isin(dtype.categories).all():", "if False:", KINDS),
        ("categories of numbers are numbers", "pdmp/formulas/batches.py", "for name in sorted(described.plain() & set()", "for name in sorted(set() & set()", CATEGORIES),
        ("categories of the first file", "pdmp/formulas/batches.py", "map(sources.numeric_categories, source.parts)", "map(sources.numeric_categories, source.parts[:1])", CATEGORIES),
    ]
]  # fmt: skip
