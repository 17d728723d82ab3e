"""Planted bugs of effects that are as far centred as the data say: the model, what the data say, and what is refused."""

from tests.mutations.bugs import Bug

MODEL, FOUND = "pdmp/models/regressions/partly_centred.py", "pdmp/models/regressions/group_information.py"
TESTS = "tests/models/test_partly_centred.py"
LAW, WIDTH = (
    f"{TESTS}::{name}"
    for name in ("test_the_law_is_that_of_centred_effects", "test_effects_have_the_same_width_whatever_their_spread_is")
)

BUGS = [
    Bug(f"partly centred: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("coefficients do not feel the shear", MODEL, "by_natural[begin + e] -= self.shear[j, e] * by_natural[j]", "by_natural[begin + e] -= 0.0", LAW),
        ("no priors of coefficients in gradients", MODEL, "self.add_independent_gradient(y, by_natural)", "by_natural[0] += 0.0", LAW),
        ("coefficients do not move with effects", FOUND, "shear = np.linalg.lstsq(fixed, border, rcond=1e-10)[0]", "shear = 0.0 * border", WIDTH),
    ]
]  # fmt: skip
