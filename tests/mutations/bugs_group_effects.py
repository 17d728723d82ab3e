"""Planted bugs of correlated effects of groups: their law, what the data say, names, predictions and formulas."""

from tests.mutations.bugs import Bug

MODEL, FOUND, SPREAD, PRIORS = (
    f"pdmp/models/{name}.py"
    for name in (
        "regressions/standardised_effects",
        "regressions/effect_information",
        "regressions/spread_coordinate",
        "priors",
    )
)
PREDICTORS, FIT, WORDS, DESIGN, CHECKS, GENERAL = (
    f"pdmp/formulas/{name}.py" for name in ("predictors", "fit", "words", "design", "checks", "general")
)
TESTS, FORMULAS = "tests/models/test_standardised_effects.py", "tests/formulas/test_families.py"
UPDATES, ACROSS = "tests/formulas/test_update.py", "tests/formulas/test_across_formulas.py"
LAW, NORMAL, LAWS, ROWS, COORDINATE = (
    f"{TESTS}::test_{name}"
    for name in (
        "the_law_is_that_of_effects",
        "coordinates_are_standard_normal_whatever_the_law_of_effects_is",
        "correlations_have_the_lkj_law",
        "what_rows_say_of_many_groups",
        "the_coordinate_of_standard_deviations",
    )
)
POTENTIAL, NEW, TERMS, SAID = (
    f"{FORMULAS}::test_{name}"
    for name in (
        "the_potential_is_the_density_of_natural_parameters",
        "effects_of_a_new_group_are_drawn_with_their_correlation",
        "terms_that_correlate",
        "groupings_without_correlations_are_said",
    )
)

BUGS = [
    Bug(f"correlated effects: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("the volume of a block", MODEL, "total += math.log(root[m + p * n + p])", "total += 0.0", f"{LAW}[2-together]"),
        ("the mean does not move with the law", MODEL, "- by_c[p] * mean[begin + q]", "- 0.0 * by_c[p]", f"{LAW}[2-apart]"),
        ("the factor's second column", MODEL, "rest /= math.cosh(min(abs(w), LARGEST_LOG))", "rest /= 1.0", f"{LAW}[2-together]"),
        ("coefficients do not feel the scores of effects", MODEL, "by_natural[self.others[j]] -= self.by[e, j] * by_score", "by_natural[self.others[j]] -= 0.0", f"{LAW}[1-apart]"),
        ("drawn correlations have the law of two", FIT, "found[names[0]].partial(both.width)", "[found[names[0]]] * len(names)", f"{UPDATES}::test_draws_of_the_priors_of_any_family", "formulae"),
        ("scores that others follow are not pulled back", MODEL, "self.pull_score(begin + p, a[p, p] * by_c[p], by_natural)", "pass", f"{TESTS}::test_coefficients_that_follow_effects_are_in_their_block"),
        ("coefficients are not taken for known", FOUND, "np.linalg.inv(precision[np.ix_(together, together)])", "np.linalg.inv(precision)[np.ix_(together, together)]", f"{TESTS}::test_information_on_effects_is_given_the_coefficients"),
        ("new groups without correlation", FIT, 'np.einsum("sij,jsg->isg", roots, rng.standard_normal((both.width, *shape)))', "rng.standard_normal((both.width, *shape))", NEW, "formulae"),
        ("nested groupings share a law", DESIGN, "sets[term.factor.name, bar] +=", 'sets["", bar] +=', TERMS, "formulae"),
        ("each formula draws new groups by itself", FIT, "and prefix + g.name not in drawn", "", f"{ACROSS}::test_effects_of_a_new_group_are_drawn_jointly", "formulae"),
    ]
]  # fmt: skip
