"""Planted bugs in regressions by formula: terms with groups, likelihoods, priors, coding, units, predictions."""

from __future__ import annotations

from tests.mutations.bugs import Bug

MODEL_TESTS, TESTS = "tests/models/test_mixed_regression.py", "tests/formulas/test_regression.py"
MIXED, FIXED, LAWS, PRIORS = (
    "pdmp/models/regressions/mixed.py",
    "pdmp/models/regressions/fixed_effects.py",
    "pdmp/models/regressions/likelihoods.py",
    "pdmp/models/priors.py",
)
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
            "weight = self.weight[i] if self.weight.shape[0] > 0 else 1.0",
            "weight = 1.0",
            "test_gradients",
        ),
        (
            "Student-t: the degrees of freedom have no normaliser",
            LAWS,
            "(math.log1p(q) + ratio)",
            "math.log1p(q)",
            "test_gradients",
        ),
        (
            "negative binomial: the dispersion's derivative by α, not log α",
            LAWS,
            "return alpha * (digamma(alpha)",
            "return 1.0 * (digamma(alpha)",
            "test_gradients",
        ),
        ("logit: half the bound", LAWS, "    curvature = 0.25\n", "    curvature = 0.125\n", "test_bounds_of_labels"),
        (
            "Lipschitz constants without the weight",
            FIXED,
            "        if self.weight.shape[0] > 0:\n            total *= self.weight[i]\n",
            "        pass\n",
            "test_bounds_of_labels",
        ),
        (
            "a difference of terms is at one point",
            FIXED,
            "self.term_derivative(x, i) - self.term_derivative(y, i)",
            "self.term_derivative(x, i)",
            "test_subsampled_zigzag_has_the_law",
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
            "WIDTH * self.unit / (float(column.std())",
            "WIDTH * self.unit / (1.0 + 0.0 * float(column.std())",
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
            FITTING,
            "anchor + rng.standard_normal((chains, model.dim)) @ np.linalg.cholesky(covariance).T",
            "np.tile(anchor, (chains, 1))",
            "test_chains_start_apart",
        ),
        (
            "the starts' covariance is turned",
            FITTING,
            "@ np.linalg.cholesky(covariance).T",
            "@ np.linalg.cholesky(covariance)",
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
            "a label is the other",
            DESIGN,
            "return codes.astype(float), said",
            "return 1.0 - codes, said",
            "test_labels_are_in_order",
        ),
    ]
]
