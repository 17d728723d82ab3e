"""A planted bug of effects that are as far centred as the data say."""

from tests.mutations.bugs import Bug

FOUND = "pdmp/models/regressions/group_information.py"
TESTS = "tests/models/test_partly_centred.py"

BUGS = [
    Bug(f"partly centred: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("scores do not fall with coefficients", FOUND, "by = curvature[p:, :p].toarray()", "by = 0.0 * curvature[p:, :p].toarray()", f"{TESTS}::test_information_is_that_of_balanced_groups[many]"),
    ]
]  # fmt: skip
