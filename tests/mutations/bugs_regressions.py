"""Planted bugs in the regressions: terms, bounds, layouts of features, closed forms, and estimators of scikit-learn."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/models/test_regressions.py"
GLM = "pdmp/models/regressions/glm.py"
STRAIGHT = "pdmp/expressions/straight.py"
SPIKES = "pdmp/models/regressions/spike_and_slab.py"

BUGS = [
    Bug(f"regressions: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("straight lines: the bound of the other label", STRAIGHT, "above * low - below * high, above * high - below * low", "below * low - above * high, below * high - above * low", "test_bounds_on_single_terms_hold_in_20000_states"),
        ("glm: the offset counts in single terms only", GLM, "            weights[k] += model.offset[rows[start + k]]", "            weights[k] += 0.0", "test_batches_are_sums_of_terms_in_every_layout"),
        ("spikes: no spread between models", SPIKES, "seconds += p * np.outer(here - mean, here - mean)", "seconds += 0.0", "test_enumeration_against_marginal_likelihoods"),
    ]
]  # fmt: skip


DESIGN = "pdmp/models/regressions/design.py"
PASSES = "test_the_mode_of_many_rows_takes_a_few_passes"
BUGS += [
    Bug(f"mode of many rows: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("all features", DESIGN, "np.take(self.data, rows, axis=0, out=data)", "data = self.data[: len(rows)]", PASSES),
    ]
]  # fmt: skip


LOGISTIC, TERMS = (f"pdmp/models/regressions/{name}.py" for name in ("logistic", "logistic_terms"))
LAYOUT, OFFSET = "test_logistic_regression_is_the_same_in_every_layout", "test_logistic_regression_with_an_offset"
BUGS += [
    Bug(f"one logistic regression: {name}", file, old, new, (f"{TESTS}::{test}",))
    for name, file, old, new, test in [
        ("labels of sparse features are all 1", LOGISTIC, "return 1.0 if self.signed else self.target[i]", "return 1.0", LAYOUT),
    ]
]  # fmt: skip
