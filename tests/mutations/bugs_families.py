"""Planted bugs in regressions of any family: units, effects, priors, words, predictions, and what is refused."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/formulas/test_families.py"
PREDICTORS, GENERAL = (f"pdmp/formulas/{name}.py" for name in ("predictors", "general"))
POTENTIAL = f"{TESTS}::test_the_potential_is_the_density_of_natural_parameters"
CHANCES, ORDER = (
    f"{TESTS}::test_{name}" for name in ("categories_are_predicted_by_their_chances", "categories_in_their_order")
)

BUGS = [
    Bug(f"family of a formula: {name}", file, old, new, (test,), "formulae")
    for name, file, old, new, test in [
        ("a parameter on the scale of its link", PREDICTORS, "natural[name] = self._link(name).inverse(", "natural[name] = np.exp(", f"{POTENTIAL}[zero_inflated_poisson]"),
        ("cuts of predictions are those at the means", PREDICTORS, "return [found[\"mu\"], *(natural[name][:, None] for name in self.cut_names)]", "return [found[\"mu\"], *(values[CUTS][:, k, None] for k in range(self.n_cuts))]", CHANCES),
        ("categories as their names are sorted", GENERAL, "codes, labels = column.cat.codes.to_numpy(), list(column.cat.categories)", "codes, labels = pandas.factorize(column.astype(str), sort=True)", ORDER),
    ]
]  # fmt: skip
