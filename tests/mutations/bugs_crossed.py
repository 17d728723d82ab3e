"""Planted bugs of crossed intercepts: the model, its approximation at the mode, the sub-sampled Zig-Zag process."""

from tests.mutations.bugs import Bug

ZIGZAG = "pdmp/processes/crossed_zigzag.py"
RATES = "tests/processes/test_crossed_zigzag.py::test_proposals_have_the_true_rates_and_bounds"

BUGS = [
    Bug(f"crossed: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("the crossing is nobody's", ZIGZAG, "total += across[e, 0] + across[e, 1] * (now - state.memory.since[0])", "total += 0.0", RATES),
        ("the crossing stands still", ZIGZAG, "across[e, 1] * (now - state.memory.since[0])", "0.0", RATES),
    ]
]  # fmt: skip
