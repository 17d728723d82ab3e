"""Planted bugs in the regressions: terms, bounds, layouts of features, closed forms, and estimators of scikit-learn."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS, ANSWERS = "tests/models/test_regressions.py", "tests/test_answers.py::test_an_answer_is_what_was_recorded"
GLM = "pdmp/models/regressions/glm.py"
STRAIGHT = "pdmp/expressions/straight.py"
SPIKES = "pdmp/models/regressions/spike_and_slab.py"

BUGS = [
    Bug(f"regressions: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("straight lines: the bound of the other label", STRAIGHT, "above * low - below * high, above * high - below * low", "below * low - above * high, below * high - above * low", "tests/expressions/test_straight.py::test_bounds_hold_and_are_reached"),
        ("glm: the offset counts in single terms only", GLM, "            weights[k] += model.offset[rows[start + k]]", "            weights[k] += 0.0", f"{ANSWERS}[regressions.poisson_dense_scales_and_offset]"),
        ("spikes: no spread between models", SPIKES, "seconds += p * np.outer(here - mean, here - mean)", "seconds += 0.0", f"{TESTS}::test_enumeration_against_marginal_likelihoods"),
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
BUGS += [
    Bug(f"one logistic regression: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("labels of sparse features are all 1", LOGISTIC, "return 1.0 if self.signed else self.target[i]", "return 1.0", f"{ANSWERS}[regressions.logistic_sparse]"),
    ]
]  # fmt: skip
