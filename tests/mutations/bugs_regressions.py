"""Planted bugs in the regressions: terms, bounds, layouts of features, closed forms, and estimators of scikit-learn."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/models/test_regressions.py"
GLM, DESIGN, ROWS = (
    "pdmp/models/regressions/glm.py",
    "pdmp/models/regressions/design.py",
    "pdmp/models/regressions/logistic_terms.py",
)
LAWS, STRAIGHT = "pdmp/models/regressions/by_law.py", "pdmp/expressions/straight.py"
NIG, CAUCHY = (
    "pdmp/models/regressions/normal_inverse_gamma.py",
    "pdmp/models/regressions/half_cauchy_logistic.py",
)
LINEAR = "pdmp/models/regressions/linear_gaussian.py"
SPIKES, STICKY, SKLEARN = (
    "pdmp/models/regressions/spike_and_slab.py",
    "pdmp/processes/sticky.py",
    "pdmp/models/adapters/scikit_learn.py",
)

BUGS = [
    Bug(f"regressions: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("linear in place: the sign of the residual", LINEAR, "self.design.product(x, i) - self.y[i]", "self.design.product(x, i) + self.y[i]", "test_linear_gaussian_is_the_same_in_every_layout"),
        ("linear in place: a factor where it was, not where it is", LINEAR, "a * (x[j] + v[j] * (now - times[j]))", "a * x[j]", "test_linear_gaussian_is_the_same_in_every_layout"),
        ("linear in place: the noise is forgotten", LINEAR, "return self.noise_precision * residual * along, self", "return residual * along, self", "test_linear_gaussian_is_the_same_in_every_layout"),
        ("straight lines: a power of data is lost", STRAIGHT, "return abs(e) * [base if e > 0", "return 1 * [base if e > 0", "test_derivatives"),
        ("straight lines: the sign of a term is lost", STRAIGHT, 'return text if fixed.args > 0.0 else f"-{text}"', "return text", "test_derivatives"),
        ("straight lines: a negative multiple keeps the ends", STRAIGHT, "else (c * high, c * low)", "else (c * low, c * high)", "test_bounds_on_single_terms_hold_in_100000_states"),
        ("straight lines: half the range of a function", STRAIGHT, '"expit1": (0.0, 0.25)', '"expit1": (0.0, 0.125)', "test_bounds_on_single_terms_hold_in_100000_states"),
        ("Poisson: the slope of a concave part is forgotten", LAWS, "out[row, 2] += k * along * e", "out[row, 2] += k * e", "test_convex_and_concave_parts"),
        ("Poisson: convex and concave swapped", LAWS, "        if k > 0.0:\n            out[row, 0] += k * e", "        if k < 0.0:\n            out[row, 0] += k * e", "test_convex_and_concave_parts"),
        ("Poisson: the bound is that of where the piece begins", LAWS, "self.second_derivative(self.margin(x, i) + max(0.0, s * along), self", "self.second_derivative(self.margin(x, i), self", "test_bounds_on_a_piece_of_the_path_hold"),
        ("Poisson: negative parts are bounded at the wrong end", LAWS, "out[j] += q * (most if q > 0.0 else least)", "out[j] += q * most", "test_bounds_on_a_piece_of_the_path_hold"),
        ("Student-t: the density is taken to be log-concave", LAWS, "return -first, first, -0.125 * second, second", "return -first, first, 0.0 * second, second", "test_bounds_on_single_terms_hold_in_100000_states"),
        ("Student-t: half the bound on the slope", LAWS, "first, second = 0.5 * (exp(b)", "first, second = 0.25 * (exp(b)", "test_bounds_on_single_terms_hold_in_100000_states"),
        ("half-Cauchy: a label is 0", CAUCHY, "super().__init__(x[:, None], np.ones(len(x)), prior_scale)", "super().__init__(x[:, None], np.arange(len(x)) > 0, prior_scale)", "test_half_cauchy"),
        ("straight lines: the bound of the other label", STRAIGHT, "above * low - below * high, above * high - below * low", "below * low - above * high, below * high - above * low", "test_bounds_on_single_terms_hold_in_100000_states"),
        ("logistic rows: unsigned parts", ROWS, "z, along = sign * self.margin(x, i), sign * self.design.product(v, i)", "z, slope = sign * self.margin(x, i), self.design.product(v, i)", "test_convex_and_concave_parts"),
        ("glm: the offset counts in single terms only", GLM, "            weights[k] += model.offset[rows[start + k]]", "            weights[k] += 0.0", "test_batches_are_sums_of_terms_in_every_layout"),
        ("glm: a copy in another order keeps the offsets", GLM, "design, self.target[rows]\n        other.offset = self.offset[rows] if", "design, self.target[rows]\n        other.offset = self.offset if", "test_a_copy_in_another_order"),
        ("glm: differences are sums", GLM, "            weights[k] -= others[k]", "            weights[k] += others[k]", "test_batches_are_sums_of_terms_in_every_layout"),
        ("glm: every block has the first block's factors", GLM, "factors[start + k] * (weights[k]", "factors[k] * (weights[k]", "test_batches_are_sums_of_terms_in_every_layout"),
        ("glm: slopes of coordinates without low curvatures", GLM, "out[j] += max(low * q, high * q)", "out[j] += high * q", "test_bounds_of_the_clocks_hold"),
        ("glm: Lipschitz constants without the scale", GLM, "a = scale[self.design.column(k)] * self.design.entry(i, k)", "a = self.design.entry(i, k)", "test_bounds_of_the_clocks_hold"),
        ("glm: no prior in the directional slope", GLM, "return positive(total) + self.prior_curvature_bound(v)", "return positive(total)", "test_bounds_of_the_clocks_hold"),
        ("glm: the intercept has the prior of the others", GLM, "        precision[-1] = 0.0\n", "        pass\n", "test_logistic_regression_is_the_same_in_every_layout"),
        ("design: the last entries of a row in a file are not read", DESIGN, "for j in range(8 * eights, min(BLOCK, d - c)):", "for j in range(8 * eights, 0):", "test_batches_are_sums_of_terms_in_every_layout"),
        ("design: nor added", DESIGN, "                for j in range(c, d):", "                for j in range(c, c):", "test_batches_are_sums_of_terms_in_every_layout"),
        ("design: half a block's rows are those of the other half", DESIGN, "out[2 * k + 1] += dot(data, rows[start + 2 * k + 1], c", "out[2 * k + 1] += dot(data, rows[start + 2 * k], c", "test_batches_are_sums_of_terms_in_every_layout"),
        ("design: a memory-mapped array is copied", DESIGN, "    return X, Mapped(X, X.shape[1])", "    return X, Mapped(np.array(X), X.shape[1])", "test_features_in_a_file_are_not_copied"),
        ("design: weights of the first rows for every piece", DESIGN, "part * weights[s, None]", "part * weights[: len(part), None]", "test_large_matrices_are_looked_at_in_pieces"),
        ("NIG: the Jacobian counts twice", NIG, "self.weight = self.shape + 0.5 * rank", "self.weight = self.shape + 0.5 * rank + 1.0", "test_the_posterior_is_that_of_the_closed_form"),
        ("NIG: half a residual's square is a whole one", NIG, "out[self.dim - 1] += 0.5 * (1.0 - e * r * r)", "out[self.dim - 1] += 0.5 - e * r * r", "test_derivatives"),
        ("NIG: a flat prior takes no degree of freedom", NIG, "shape = self.shape + 0.5 * (n - d + rank)", "shape = self.shape + 0.5 * n", "test_moments_and_marginals_by_quadrature"),
        ("NIG: the scale forgets the prior's mean", NIG, "(residuals @ residuals + away @ self.prior_precision @ away)", "(residuals @ residuals)", "test_the_posterior_is_that_of_the_closed_form"),
        ("NIG: degrees of freedom are not doubled", NIG, "df=2.0 * self.shape)", "df=self.shape)", "test_moments_and_marginals_by_quadrature"),
        ("NIG: the curvature of the cross term has the other sign", NIG, "        there = second - 2.0 * w * first + w * w * p", "        there = second + 2.0 * w * first + w * w * p", "test_bounds_on_a_piece_of_the_path_hold"),
        ("NIG: the variance is least where it is largest", NIG, "exp(-min(x[last], x[last] + w * s))", "exp(-max(x[last], x[last] + w * s))", "test_bounds_on_a_piece_of_the_path_hold"),
        ("spikes: a model with k coefficients weighs as one with none", SPIKES, " - model.sum() * log_scale", "", "test_enumeration_against_marginal_likelihoods"),
        ("spikes: no spread between models", SPIKES, "seconds += p * np.outer(here - mean, here - mean)", "seconds += 0.0", "test_enumeration_against_marginal_likelihoods"),
        ("spikes: what is always in the model sticks", STICKY, "    slab_density[certain] = 0.0\n", "", "test_sticky_processes_take_the_spikes_from_the_model"),
        ("scikit-learn: the prior's variance is its scale", SKLEARN, "else math.sqrt(estimator.C)", "else estimator.C", "test_the_mode_is_the_estimator"),
        ("scikit-learn: the Poisson loss is a sum", SKLEARN, "1.0 / math.sqrt(n * estimator.alpha)", "1.0 / math.sqrt(estimator.alpha)", "test_the_mode_is_the_estimator"),
        ("scikit-learn: liblinear's intercept is free", SKLEARN, "        intercept = scale * estimator.intercept_scaling\n", "        pass\n", "test_the_mode_is_the_estimator"),
    ]
]  # fmt: skip

DIGITS = ("tests/expressions/test_straight.py::test_generated_methods_keep_their_digits",)
BUGS += [
    Bug("straight lines: dispersions are not in the order of the law", STRAIGHT, "return dispersions[node.args - 1]", "return dispersions[-node.args]", DIGITS),
    Bug("negative binomial: the size instead of its logarithm", LAWS, "return (math.log(self.successes),)", "return (self.successes,)", DIGITS),
]  # fmt: skip

NUMERICAL, SIGNED = "pdmp/models/numerical.py", "pdmp/models/regressions/logistic_signed.py"
PASSES = "test_the_mode_of_many_rows_takes_a_few_passes"
BUGS += [
    Bug(f"mode of many rows: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("of some of them alone", NUMERICAL, "        x, last = found, np.inf\n", "        return found\n", PASSES),
        ("one step", NUMERICAL, "< NEWTON_ERROR:", "< np.inf:", PASSES),
        ("steps without end", NUMERICAL, "size * min(size / last if np.isfinite(last) else 1.0, 1.0) < NEWTON_ERROR", "size < 1e-9", PASSES),
        ("rows of others", "pdmp/models/regressions/mixed.py", '"offset", "weight", "level"', '"offset", "level"', PASSES),
        ("all features", SIGNED, "np.take(self.data, rows, axis=0, out=other.data)", "other.data = self.data[: len(rows)]", PASSES),
        ("other rows of a file", "pdmp/models/regressions/design.py", "data = np.array(self.data[rows])", "data = np.array(self.data[: len(rows)])", PASSES),
        ("targets of others", GLM, "self.y[rows], self.target[rows]\n        other.offset = self.offset[rows] if self.offset.size else self.offset\n        return other", "self.y[rows], self.target[: len(rows)]\n        other.offset = self.offset[rows] if self.offset.size else self.offset\n        return other", PASSES),
        ("offsets of others", GLM, "self.y[rows], self.target[rows]\n        other.offset = self.offset[rows]", "self.y[rows], self.target[rows]\n        other.offset = self.offset[: len(rows)]", PASSES),
    ]
]  # fmt: skip
