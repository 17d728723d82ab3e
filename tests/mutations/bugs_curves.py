"""Planted bugs of curves, monotonic effects, groups of which a row has several, categories and cut-off responses."""

from tests.mutations.bugs import Bug

SMOOTHS, FIT, DESIGN, PREDICTORS, GENERAL, UPDATING, WORDS = (
    f"pdmp/formulas/{name}.py" for name in ("smooths", "fit", "design", "predictors", "general", "updating", "words")
)
FAMILIES, MONOTONIC, EFFECTS = (
    f"pdmp/models/{name}.py"
    for name in ("families", "regressions/monotonic_effects", "regressions/standardised_effects")
)
TESTS = "tests/formulas/test_curves.py"
SPLINE, FEW, KNOTS, PLATES, DENSITY, KERNEL, STEPS, MADE, ROWS, NOMINAL, CHANCES, CUT, TAIL = (
    f"{TESTS}::test_{name}"
    for name in (
        "with_a_knot_a_row_it_is_the_smoothing_spline",
        "few_functions_are_nearly_the_whole_spline",
        "cubic_splines_of_few_knots",
        "plates_of_two_columns_and_products_of_curves",
        "the_potential_is_the_density_of_natural_parameters",
        "a_gaussian_process_has_the_squared_exponential_kernel",
        "monotonic_effects_by_hand",
        "derivatives_and_coordinates_of_effects_that_are_made_of_others",
        "further_rows",
        "categories_without_an_order",
        "chances_of_ordered_categories",
        "responses_that_are_cut_off",
        "what_is_seen_far_out_in_a_tail",
    )
)

ERRORS, OTHERS = f"{TESTS}::test_known_standard_errors", "tests/formulas/test_others.py::test"
FAR_OUT = f"{TESTS}::test_predictions_where_all_that_is_seen_is_far_out"

BUGS = [
    Bug(f"curves: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("a new table has its own means", SMOOTHS, "whole = [linear - self.means[0]]", "whole = [linear - linear.mean(axis=0)]", SPLINE, "formulae"),
        ("products without the straight part of the other", SMOOTHS, "np.hstack([ones, two / b.scale])", "np.hstack([ones, ones])", PLATES, "formulae"),
        ("effects of the first group of a row alone", FIT, 'np.einsum("snm,nm->sn", effects,', 'np.einsum("snm,nm->sn", effects * (np.arange(effects.shape[-1]) < 1),', "tests/formulas/test_curves.py::test_groups_of_new_rows_by_hand", "formulae"),
        ("smooths of further rows are appended as groups", UPDATING, "g.level if is_smooth(one) else", "g.level[:0] if is_smooth(one) else", ROWS, "formulae"),
        ("densities of known errors without their constant", FAMILIES, "(0.0 if sigma else np.log(se))", "0.0", ERRORS, "formulae"),
        ("drawn responses have no scatter beyond their errors", FAMILIES, "np.hypot(rest[-1], rest[0] if sigma else 0.0)", "np.hypot(rest[-1], 0.0)", ERRORS, "formulae"),
        ("weights of another tool are not read", WORDS, 'own, roles["weights"] = called[1][0], column_of(called[1][1])', "own = called[1][0]", f"{OTHERS}_other_words_are_the_same_model", "formulae"),
        ("cuts are a parameter with a formula", GENERAL, 'if one != "cuts"]', "]", f"{OTHERS}_the_page_says_what_is_found", "formulae"),
    ]
]  # fmt: skip
