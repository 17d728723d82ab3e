"""Planted bugs of effects that are as far centred as the data say: the model, what the data say, and what is refused."""

from tests.mutations.bugs import Bug

MODEL, FOUND = (f"pdmp/models/regressions/{name}.py" for name in ("standardised_effects", "group_information"))
TESTS = "tests/models/test_partly_centred.py"
LAW, WIDTH = (
    f"{TESTS}::{name}"
    for name in ("test_the_law_is_that_of_centred_effects", "test_effects_have_the_same_width_whatever_their_spread_is")
)

BUGS = [
    Bug(f"partly centred: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("derivatives are not turned back", MODEL, "self.turn(by_natural, True)", "self.turn(by_natural, False)", LAW),
        ("no priors of coefficients in gradients", MODEL, "self.base.add_prior_gradient(y, by_natural)", "by_natural[0] += 0.0", LAW),
        ("coefficients do not move with effects", FOUND, "shear = np.linalg.lstsq(fixed, border, rcond=1e-10)[0]", "shear = 0.0 * border", WIDTH),
    ]
]  # fmt: skip
