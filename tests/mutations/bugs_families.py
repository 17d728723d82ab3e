"""Planted bugs in regressions of any family: units, effects, priors, words, predictions, and what is refused."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/formulas/test_families.py"
PREDICTORS, GENERAL, WORDS = (f"pdmp/formulas/{name}.py" for name in ("predictors", "general", "words"))
POTENTIAL = f"{TESTS}::test_the_potential_is_the_density_of_natural_parameters"
UNITS, PRIORS, BY_HAND, CHANCES, CENTRING, READ, CENSORING, ORDER, LINKS, MISTAKES = (
    f"{TESTS}::test_{name}"
    for name in (
        "units_change_nothing_but_units",
        "default_priors",
        "predictions_by_hand",
        "categories_are_predicted_by_their_chances",
        "how_far_effects_are_centred",
        "words_of_other_tools",
        "censoring_is_read_in_words",
        "categories_in_their_order",
        "links_that_are_another_family",
        "mistakes",
    )
)

BUGS = [
    Bug(f"family of a formula: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("a prior of coefficients in standardised units", PREDICTORS, "found[block] = prior.scaled(self.scale[j] / self.unit)", "found[block] = prior", f"{POTENTIAL}[gaussian]"),
        ("the spread of effects without their unit", PREDICTORS, "g.prior.scaled(self.group_scale[k] / self.unit)", "g.prior.scaled(self.group_scale[k])", f"{POTENTIAL}[gaussian]"),
        ("cuts are not moved back from the means", PREDICTORS, "values[CUTS][..., k] + shift", "values[CUTS][..., k]", f"{POTENTIAL}[cumulative]"),
        ("effects raise cuts", PREDICTORS, "-1.0 if family.arrange is not None else 1.0", "1.0", f"{POTENTIAL}[cumulative]"),
        ("effects not centred are multiplied twice", PREDICTORS, "exp(c * t) * u\n", "exp(c * t) * exp(c * t) * u\n", f"{POTENTIAL}[poisson]"),
        ("effects partly centred have another normaliser", PREDICTORS, "return share * exponents + 0.5", "return exponents + 0.5", f"{POTENTIAL}[poisson]"),
        ("weights are left out", PREDICTORS, "return found if weight is None else args[last - 1] * found", "return found", f"{POTENTIAL}[poisson]"),
        ("constants are not weighted", PREDICTORS, "return self.weight * super().constant()", "return super().constant()", f"{POTENTIAL}[poisson]"),
        ("a parameter on the scale of its link", PREDICTORS, "natural[name] = LINKS[self.family.links[name]].inverse(", "natural[name] = np.exp(", f"{POTENTIAL}[zero_inflated_poisson]"),
        ("the shape of a parameter in units is not scaled", PREDICTORS, "own = family.links[parameter], sd if parameter in family.units else 1.0", "own = family.links[parameter], 1.0", PRIORS),
        ("a formula of a parameter begins at 1", PREDICTORS, "known.typical() if known else 1.0", "1.0", PRIORS),
        ("wide coefficients of a logarithm", PREDICTORS, "self.width = OTHER_WIDTH", "self.width = WIDTH", PRIORS),
        ("the slope of a link is left out", PREDICTORS, "self.unit = RISES[link](abs(mean)) * sd", "self.unit = sd", PRIORS),
        ("sigma with a formula has no unit", PREDICTORS, "(math.log(sd) if own else 0.0)", "0.0", f"{UNITS}[gaussian]"),
        ("cuts of predictions are those at the means", PREDICTORS, "return [found[\"mu\"], *(natural[name][:, None] for name in self.cut_names)]", "return [found[\"mu\"], *(values[CUTS][:, k, None] for k in range(self.n_cuts))]", CHANCES),
        ("own rows are predicted without what is not centred", PREDICTORS, "found[place] = found[place] + one.effects(values, k)[:, g.level] * g.value", "found[place] = found[place]", f"{BY_HAND}[lognormal]"),
        ("information is that of a row of the group", PREDICTORS, "return summed(v * (high - low) / (2.0 * h)), summed(v**2 * curvature)", "return summed(v * (high - low) / (2.0 * h)), summed(v * curvature) / np.maximum(g.sizes, 1)", CENTRING),
        ("trials of new rows are those of none", GENERAL, "found.append(numbers(table, column_of(text), \"`formula`: trials\"))", "found.append(np.ones(len(table)))", f"{BY_HAND}[beta_binomial]"),
        ("left is right", GENERAL, '"right": 1.0, "left": -1.0', '"right": -1.0, "left": 1.0', CENSORING),
        ("categories as their names are sorted", GENERAL, "codes, labels = column.cat.codes.to_numpy(), list(column.cat.categories)", "codes, labels = pandas.factorize(column.astype(str), sort=True)", ORDER),
        ("components may be exchanged", GENERAL, "for name, why in family.needs.items():", "for name, why in ():", MISTAKES),
        ("a group a row is as good as none", GENERAL, 'noise = None if family.response in ("count", "label") or not constants_ else constants_[0]', "noise = None", MISTAKES),
        (". has the response too", WORDS, "for name in columns if name not in used]", "for name in columns]", READ),
        ("s(x) is a function that is not known", WORDS, "if name not in INSTEAD:", "if True:", MISTAKES),
        ("the probit of 9 is rounded", "pdmp/models/families.py", 'if a is LINKS["logit"] and b is LINKS["probit"]:', "if False:", LINKS),
        ("a level a row is a category", "pdmp/formulas/design.py", "if most >= MANY_LEVELS and 2 * most > len(table):", "if False:", MISTAKES),
    ]
]  # fmt: skip
