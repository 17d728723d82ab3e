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
        ("the link is the mean", FIT, '        if kind == "link":\n            return z\n', "", "test_conditional_effects_by_hand"),
        ("the first rows are kept", KEPT, "np.sort(np.random.default_rng(0).choice(n, ROWS, replace=False)) if n > ROWS else np.arange(n)", "np.arange(min(n, ROWS))", "test_averages_over_some_of_the_rows"),
        ("checks: the groups of other rows", CHECKS, "kept.places if len(kept.places) < len(y) else None", "np.arange(len(groups))", "test_checks_of_some_of_the_rows"),
        ("loo: the error is of the choice of rows alone", LOO, "        self.se = math.sqrt(max(total.spread, 0.0) + total.variance)\n        self.p_loo", "        self.se = self.subsampling_se\n        self.p_loo", "test_loo_by_hand"),
        ("predictive draws of chains in turn", EXPORTED, "y.reshape(chains, draws, -1)", "y.reshape(draws, chains, -1).swapaxes(0, 1)", "test_predictive_draws_for_arviz"),
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
