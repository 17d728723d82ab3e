"""Planted bugs of effects that are as far centred as the data say: the model, what the data say, and what is refused."""

from tests.mutations.bugs import Bug

MODEL, FOUND = (f"pdmp/models/regressions/{name}.py" for name in ("standardised_effects", "group_information"))
TESTS = "tests/models/test_partly_centred.py"
LAW = f"{TESTS}::test_the_law_is_that_of_centred_effects"

BUGS = [
    Bug(f"partly centred: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("scores do not fall with coefficients", FOUND, "by = curvature[p:, :p].toarray()", "by = 0.0 * curvature[p:, :p].toarray()", f"{TESTS}::test_information_is_that_of_balanced_groups[many]"),
    ]
]  # fmt: skip
