"""Planted bugs in what follows a regression: effects, averages over rows, hypotheses, checks, cross-validation."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/formulas/test_after.py"
FIT, DESIGN, KEPT, GRIDS, EFFECTS, AVERAGES, ESTIMATES, HYPOTHESES, CHECKS, LOO, EXPORTED, PREPARED, PARETO = (
    f"pdmp/formulas/{name}.py"
    for name in (
        *(
            "fit",
            "design",
            "kept",
            "grids",
            "effects",
            "averages",
            "estimates",
            "hypotheses",
            "predictive_checks",
            "loo",
        ),
        *("exported", "prepared", "pareto_smoothing"),
    )
)

BUGS = [
    Bug(f"after: {name}", file, old, new, (f"{TESTS}::{test}",), "formulae")
    for name, file, old, new, test in [
        ("effects of groups are the fitted ones", FIT, "unseen = unseen if named else whose", 'unseen = "zero"', "test_effects_of_groups_by_choice"),
        ("the link is the mean", FIT, '        if kind == "link":\n            return z\n', "", "test_conditional_effects_by_hand"),
        ("the baseline is the last level", DESIGN, "(first, *(level for level in levels if level != first))", "tuple(reversed(levels))", "test_conditional_effects_by_hand"),
        ("the first rows are kept", KEPT, "np.sort(np.random.default_rng(0).choice(n, ROWS, replace=False)) if n > ROWS else np.arange(n)", "np.arange(min(n, ROWS))", "test_averages_over_some_of_the_rows"),
        ("others are at their smallest value", KEPT, "return self.mean if self.levels is None", "return self.low if self.levels is None", "test_conditional_effects_by_hand"),
        ("what is given in `at` is taken from it", GRIDS, "    at = dict(at or {})\n", "    at = at or {}\n", "test_values_that_are_chosen"),
        ("a weight is a column of the formula", GRIDS, "if name in needed}", "}", "test_mistakes_in_conditional_effects"),
        ("ribbons of another level", EFFECTS, "middle, low, high = self.estimate[rows], self.lower[rows], self.upper[rows]", "middle, low, high = self.estimate[rows], self.lower[: len(rows)], self.upper[: len(rows)]", "test_pictures_of_conditional_effects"),
        ("intervals of twice the tail", ESTIMATES, "tail = 0.5 * (1.0 - self.probability)", "tail = 1.0 - self.probability", "test_conditional_effects_by_hand"),
        ("averages: the last block alone", AVERAGES, "total += found.sum(axis=1)", "total = found.sum(axis=1)", "test_slopes_by_hand"),
        ("averages: a new group in each block", AVERAGES, "rng = np.random.default_rng(self.entropy)", "rng = np.random.default_rng()", "test_averages_over_some_of_the_rows"),
        ("averages: all rows count as drawn", AVERAGES, "np.sqrt((1.0 - self.share) / len(of_rows))", "np.sqrt(1.0 / len(of_rows))", "test_averages_over_some_of_the_rows"),
        ("contrasts the wrong way round", AVERAGES, "one, other = found[..., list(second)], found[..., list(first)]", "one, other = found[..., list(first)], found[..., list(second)]", "test_means_and_contrasts_by_hand"),
        ("slopes over the step to one side", AVERAGES, "/ (right - left)", "/ step", "test_slopes_by_hand"),
        ("slopes: `by` is not set on the left", AVERAGES, "**{**given, name: left}", "**{name: left}", "test_slopes_by_hand"),
        ("hypotheses: the probability of the contrary", HYPOTHESES, 'inside = float(np.mean(drawn > 0.0 if sign == ">"', 'inside = float(np.mean(drawn < 0.0 if sign == ">"', "test_hypotheses_by_hand"),
        ("hypotheses: the prior over the posterior", HYPOTHESES, "np.divide(at_zero, before)", "np.divide(before, at_zero)", "test_equations_by_hand"),
        ("hypotheses: the intercept's prior at zero", FIT, "found[name] = found.get(name, 0.0) - slope * float(model.centre[j])", "pass", "test_equations_by_hand"),
        ("hypotheses: a prior of a number that is scaled", HYPOTHESES, "density(priors[name], -constant / slope) / abs(slope)", "density(priors[name], -constant / slope)", "test_equations_by_hand"),
        ("hypotheses: the density of the logarithm", HYPOTHESES, "/ total / (at if prior.positive else 1.0)", "/ total", "test_equations_by_hand"),
        ("hypotheses: kernels add to the variance", HYPOTHESES, "shrink = 1.0 / math.sqrt(1.0 + width**2)", "shrink = 1.0", "test_equations_by_hand"),
        ("hypotheses: a side may close a bracket of the other", HYPOTHESES, "        Expression(side, known, groups)\n", "        pass\n", "test_mistakes_in_hypotheses"),
        ("hypotheses: calls are read", HYPOTHESES, '            self._refuse("has more than arithmetic")', "            pass", "test_mistakes_in_hypotheses"),
        ("checks: frequencies one off", CHECKS, "inside = (y >= values[0]) & (y <= values[-1])", "inside = (y > values[0]) & (y <= values[-1])", "test_checks_by_hand"),
        ("checks: the groups of other rows", CHECKS, "kept.places if len(kept.places) < len(y) else None", "np.arange(len(groups))", "test_checks_of_some_of_the_rows"),
        ("checks: equal statistics are above", CHECKS, "0.5 * np.mean(self.values == self.value)", "np.mean(self.values == self.value)", "test_checks_by_hand"),
        ("loo: densities of the rows that were drawn alone", LOO, "near.sum() + n / m * np.sum(values - here)", "n / m * np.sum(values)", "test_the_difference_estimator_is_unbiased"),
        ("loo: drawn with replacement", LOO, "variance = n**2 * (1.0 - m / n)", "variance = n**2", "test_the_difference_estimator_is_unbiased"),
        ("loo: the estimate's square is unbiased", LOO, "squares - (total**2 - variance) / n", "squares - total**2 / n", "test_the_difference_estimator_is_unbiased"),
        ("loo: the error is of the choice of rows alone", LOO, "        self.se = math.sqrt(max(total.spread, 0.0) + total.variance)\n        self.p_loo", "        self.se = self.subsampling_se\n        self.p_loo", "test_loo_by_hand"),
        ("loo: parameters of the rows that were drawn", LOO, "self.p_loo = float(n * np.mean(p_i))", "self.p_loo = float(np.sum(p_i))", "test_loo_by_hand"),
        ("loo: weights that are lost are not counted", PARETO, "np.where(lost, math.inf, shape)", "np.where(lost, 0.0, shape)", "test_rows_that_the_draws_say_too_little_of"),
        ("loo: shapes without their prior", PARETO, "(n * shape + PRIOR_COUNT * PRIOR_SHAPE) / (n + PRIOR_COUNT)", "shape", "test_smoothed_weights_are_those_of_arviz"),
        ("loo: smoothed weights above the largest", PARETO, "/ shape), 0.0)", "/ shape), np.inf)", "test_smoothed_weights_are_those_of_arviz"),
        ("loo: all rows, however many", LOO, "if rows is None and most_draws(fit, n) >= LEAST_DRAWS:", "if rows is None:", "test_loo_of_more_rows_than_all_are_taken_of"),
        ("loo: comparisons of other rows", LOO, '        if not np.array_equal(a, b):\n', "        if False:\n", "test_comparisons_by_hand"),
        ("loo: comparisons without the rows that were not drawn", LOO, "one.near - other.near", "one.near", "test_comparisons_by_hand"),
        ("predictive draws of chains in turn", EXPORTED, "y.reshape(chains, draws, -1)", "y.reshape(draws, chains, -1).swapaxes(0, 1)", "test_predictive_draws_for_arviz"),
        ("priors: the scale of a positive one twice", PREPARED, "np.log(b * np.abs(rng.standard_t(a, n)))", "np.log(b * b * np.abs(rng.standard_t(a, n)))", "test_a_regression_that_is_not_sampled"),
        ("priors: rates for scales", PREPARED, "np.log(b) + np.log(rng.gamma(a, 1.0, n))", "np.log(rng.gamma(a, 1.0, n)) - np.log(b)", "test_a_regression_that_is_not_sampled"),
        ("priors: flat ones are normal", PREPARED, "            if kind == FLAT:\n", "            if False:\n", "test_a_regression_that_is_not_sampled"),
        ("summaries without their names", "pdmp/diagnostics/summary.py", '.set_index("name")', "", "test_a_summary_as_a_data_frame"),
    ]
]  # fmt: skip

GENERAL = "pdmp/formulas/general.py"
PREDICTORS, NEEDS = "pdmp/formulas/predictors.py", "test_what_follows_a_fit_needs"
OF_PRIORS, NEW_GROUP = "test_priors_of_what_follows_a_fit", "test_effects_of_a_new_group_are_drawn_for_each_formula"
BUGS += [
    Bug(f"any family: {name}", file, old, new, (f"tests/formulas/test_families.py::{test}",))
    for name, file, old, new, test in [
        ("links of ordered categories are of centred columns", PREDICTORS, "if self.n_cuts else []\n        return sum(slopes", "if False else []\n        return sum(slopes", NEEDS),
        ("log-likelihoods without constants", GENERAL, " + observed.constant()[rows]", "", NEEDS),
        ("constants of the first rows", GENERAL, "observed.constant()[rows]", "observed.constant()[: len(rows)]", NEEDS),
        ("further data of the first rows", GENERAL, "else part[rows] for part", "else part[: len(rows)] for part", NEEDS),
        ("functionals of the first rows", GENERAL, "self.n_rows))[:, rows] for", "self.n_rows))[:, : len(rows)] for", NEEDS),
        ("functionals of the first draws again and again", GENERAL, "self.coding.own(observed, x[k : k + size])", "self.coding.own(observed, x[:size])", NEEDS),
        ("functionals of later draws are lost", GENERAL, "for k in range(0, len(x), size)\n        ]\n        return [np.conc", "for k in range(0, size, size)\n        ]\n        return [np.conc", NEEDS),
        ("trials are no column", GENERAL, "return found | ({column_of(trials)} if", "return found | (set() if", NEEDS),
        ("columns of the first formula alone", GENERAL, "for design in self.designs.values() for name in design.names_of_columns()", "for design in [self.design] for name in design.names_of_columns()", NEEDS),
        ("what is kept is of the first formula", GENERAL, "        return self._kept\n", "        return self.design.kept\n", NEEDS),
        ("weights are forgotten", GENERAL, 'return getattr(self.model.observed[0], "weight", np.zeros(0))', "return np.zeros(0)", NEEDS),
        ("effects of new groups in all formulas but these", GENERAL, "table, unseen, rng, named)", "table, unseen, rng)", NEEDS),
        ("effects of a new group are 0", GENERAL, "unseen = unseen if named else effects\n        further", 'unseen = unseen if named else "zero"\n        further', NEW_GROUP),
        ("the intercept's prior is at zero", GENERAL, "found[name] = found.get(name, 0.0) - slope * float(one.centre[j])", "pass", OF_PRIORS),
        ("means without their formula", GENERAL, "names = [one.prefix + name for name in one.columns]\n            if one.intercept is not None and", "names = list(one.columns)\n            if one.intercept is not None and", OF_PRIORS),
        ("priors of log odds are those of the share", GENERAL, "return self.prior_name(name) == name and", "return", OF_PRIORS),
        ("priors of cuts are known", GENERAL, ' and not name.startswith("cut[")', "", OF_PRIORS),
    ]
]  # fmt: skip

UPDATING = "pdmp/formulas/updating.py"
ROOM = "pdmp/models/regressions"
LAW, OTHER_LAW = "test_the_law_is_that_of_all_rows", "test_the_law_of_other_families_is_that_of_all_rows"
TWO, BEGIN, ALL = "test_rows_in_two_steps_are_those_in_one", "test_it_begins_where_the_posterior_is", "test_what_is_kept_of_the_table_is_of_all_rows"
MISTAKES, UNFIT, DRAWN = "test_mistakes", "test_responses_that_do_not_fit", "test_draws_of_the_priors_of_any_family"
BUGS += [
    Bug(f"updates: {name}", file, old, new, (f"tests/formulas/test_update.py::{test}",), "formulae")
    for name, file, old, new, test in [
        ("new rows are not standardised", f"{ROOM}/mixed.py", "            X = (X - self.centre) / self.scale\n", "            X = X - self.centre\n", LAW),
        ("new rows have centres of their own", f"{ROOM}/mixed.py", "                setattr(self, name, getattr(before, name))\n            X = (X - self.centre)", "                setattr(self, name, getattr(before, name))\n            X = (X - X.mean(axis=0))", LAW),
        ("offsets of the first rows are lost", f"{ROOM}/mixed.py", "np.concatenate([part if part.size else np.zeros(rows) for part, rows in parts])", "np.concatenate([np.zeros(rows) for _, rows in parts])", LAW),
        ("effects begin in other units", f"{ROOM}/mixed.py", "effects if self.centred[k] else effects * np.exp(-x[..., p + k, None])", "effects", LAW),
        ("coefficients of groups begin without means", f"{ROOM}/group_intercepts.py", " @ effects + x[..., self.means, None]", " @ effects", BEGIN),
        ("gauges add to the intercept", f"{ROOM}/crossed_intercepts.py", "                x[..., self.means[0]] -= x[..., self.means[k]]\n", "", BEGIN),
        ("new groups in front", DESIGN, "(*levels, *sorted(set(zip(*(part[unseen].tolist() for part in parts), strict=True))))", "(*sorted(set(zip(*(part[unseen].tolist() for part in parts), strict=True))), *levels)", LAW),
        ("groups of another type are new", DESIGN, "if _held(ours) != _held(pandas.Index(part)):", "if False:", MISTAKES),
        ("unseen labels are the last one", DESIGN, "        if np.any(codes < 0):\n", "        if False:\n", UNFIT),
        ("responses are looked at with the first alone", DESIGN, "check_response(np.concatenate([before, found]), name, kind)[len(before) :]", "found", UNFIT),
        ("weights may be negative", UPDATING, "if weights.min() < 0.0:", "if False:", MISTAKES),
        ("the next run begins where the first did", UPDATING, 'OWN = ("initial", "checkpoint")', "OWN = ()", "test_an_update"),
        ("options are those of the first fit", UPDATING, "options={**kept, **options}", "options={**options, **kept}", "test_an_update"),
        ("budgets of the first fit end the next run", UPDATING, "ENDS if given & ENDS else ()", "()", "test_an_update"),
        ("offsets in no formula", UPDATING, "        offset = offset + linear_offset(table, roles[\"offset\"], roles[\"exposure\"])\n", "        pass\n", LAW),
        ("variances without what means differ by", KEPT, " + change**2 * n * m / (n + m) ** 2", "", ALL),
        ("rows of the second table are one each", KEPT, "of_second = int(rng.hypergeometric(m, n, ROWS))", "of_second = min(m, ROWS) // 2", ALL),
        ("new rows in other units, of any family", PREDICTORS, "(X - self.centre) / self.scale])", "X - self.centre])", OTHER_LAW),
        ("units of the functional are kept", PREDICTORS, "own = known.values[:, : len(self.columns)] / self.unit", "own = known.values[:, : len(self.columns)]", OTHER_LAW),
        ("weights of new rows alone", GENERAL, "        weight = np.append(fit.row_weights, weight)\n", "        weight = np.append(np.ones(len(observed.y)), weight)\n", OTHER_LAW),
        ("cuts in the order drawn", GENERAL, "np.sort(np.stack([values[name] for name in coding.cut_names], axis=-1))", "np.stack([values[name] for name in coding.cut_names], axis=-1)", DRAWN),
        ("draws of log odds are the share", GENERAL, "            if self.prior_name(name) != name\n", "            if False\n", DRAWN),
        ("draws of intercepts are at zero", FIT, "        return dict(values) | {\n            name: sum(", "        return dict(values) | {\n            name: values[name] + 0.0 * sum(", DRAWN),
        ("drawn effects have the spread 1", PREPARED, "spread = natural[prefix + g.sd_name][:, None]", "spread = 1.0", DRAWN),
    ]
] + [
    Bug("densities are compared with probabilities", LOO, "    if kinds[0] != kinds[1]:\n", "    if False:\n", (f"{TESTS}::test_comparisons_by_hand",), "formulae"),
    Bug("the largest weights are not in order", PARETO, "np.argsort(np.take_along_axis(weights, order, axis=0), axis=0), axis=0)", "np.argsort(order, axis=0), axis=0)", (f"{TESTS}::test_smoothed_weights_are_those_of_arviz",), "formulae"),
]  # fmt: skip
