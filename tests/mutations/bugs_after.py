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
        ("the first rows are kept", KEPT, "np.sort(np.random.default_rng(0).choice(n, ROWS, replace=False)) if n > ROWS else np.arange(n)", "np.arange(min(n, ROWS))", "test_averages_over_some_of_the_rows"),
        ("checks: the groups of other rows", CHECKS, "kept.places if len(kept.places) < len(y) else None", "np.arange(len(groups))", "test_checks_of_some_of_the_rows"),
        ("loo: the error is of the choice of rows alone", LOO, "return math.sqrt(max(self.spread, 0.0) + self.variance), math", "return math.sqrt(self.variance), math", "test_loo_by_hand"),
        ("predictive draws of chains in turn", EXPORTED, "y.reshape(chains, draws, -1)", "y.reshape(draws, chains, -1).swapaxes(0, 1)", "test_predictive_draws_stand_by_chain_and_draw"),
    ]
]  # fmt: skip

GENERAL = "pdmp/formulas/general.py"
OF_PRIORS = "test_priors_of_what_follows_a_fit"
BUGS += [
    Bug(f"any family: {name}", file, old, new, (f"tests/formulas/test_families.py::{test}",))
    for name, file, old, new, test in [
        ("means without their formula", GENERAL, "names = [one.prefix + name for name in one.columns]\n            if one.intercept is not None and", "names = list(one.columns)\n            if one.intercept is not None and", OF_PRIORS),
    ]
]  # fmt: skip

UPDATING, PREDICTORS = "pdmp/formulas/updating.py", "pdmp/formulas/predictors.py"
ROOM = "pdmp/models/regressions"
LAW, OTHER_LAW = "test_the_law_is_that_of_all_rows", "test_the_law_of_other_families_is_that_of_all_rows"
TWO, BEGIN, ALL = (
    "test_rows_in_two_steps_are_those_in_one",
    "test_it_begins_where_the_posterior_is",
    "test_what_is_kept_of_the_table_is_of_all_rows",
)
MISTAKES, UNFIT, DRAWN = "test_mistakes", "test_responses_that_do_not_fit", "test_draws_of_the_priors_of_any_family"
BUGS += [
    Bug(f"updates: {name}", file, old, new, (f"tests/formulas/test_update.py::{test}",), "formulae")
    for name, file, old, new, test in [
        ("new rows have centres of their own", f"{ROOM}/mixed.py", "                setattr(self, name, getattr(before, name))\n            X = (X - self.centre)", "                setattr(self, name, getattr(before, name))\n            X = (X - X.mean(axis=0))", LAW),
        ("offsets of the first rows are lost", f"{ROOM}/mixed.py", "np.concatenate([part if part.size else np.zeros(rows) for part, rows in parts])", "np.concatenate([np.zeros(rows) for _, rows in parts])", LAW),
        ("gauges add to the intercept", f"{ROOM}/group_intercepts.py", "                x[..., self.means[0]] -= x[..., self.means[k]]\n", "", BEGIN),
        ("new groups in front", DESIGN, "(*levels, *sorted(set(zip(*(part[unseen].tolist() for part in parts), strict=True))))", "(*sorted(set(zip(*(part[unseen].tolist() for part in parts), strict=True))), *levels)", LAW),
        ("responses are looked at with the first alone", DESIGN, "check_response(np.concatenate([before, found]), name, kind)[len(before) :]", "found", UNFIT),
        ("the next run begins where the first did", UPDATING, 'OWN = ("initial", "checkpoint")', "OWN = ()", "test_an_update"),
        ("options are those of the first fit", UPDATING, "options={**kept, **options}", "options={**options, **kept}", "test_an_update"),
        ("offsets in no formula", UPDATING, "        offset = offset + linear_offset(table, roles[\"offset\"], roles[\"exposure\"])\n", "        pass\n", LAW),
        ("rows of the second table are one each", KEPT, "of_second = int(rng.hypergeometric(m, n, ROWS))", "of_second = min(m, ROWS) // 2", ALL),
        ("weights of new rows alone", GENERAL, "        weight = np.append(fit.row_weights, weight)\n", "        weight = np.append(np.ones(len(observed.y)), weight)\n", OTHER_LAW),
        ("draws of intercepts are at zero", FIT, "        natural = values | {\n            name: sum(", "        natural = values | {\n            name: values[name] + 0.0 * sum(", DRAWN),
    ]
] + [
]  # fmt: skip
