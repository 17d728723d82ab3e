"""Planted bugs: elliptic paths, the Boomerang samplers and their bounds."""

from tests.mutations.bugs import Bug

PATHS = ("tests/test_flow.py", "tests/engine/test_elliptic_paths.py")
SAMPLERS = ("tests/processes/test_boomerang.py",)
SINUSOID = "pdmp/thinning/sinusoid.py"
BOOMERANG = "pdmp/processes/boomerang.py"
ROWS = "pdmp/processes/regression_boomerang.py"
PATH = "tests/processes/test_regression_boomerang.py::test_no_rate_is_above_its_bound_along_a_path"

BUGS = [
    Bug(*bug)
    for bug in [
        ("rows: a shell's factor is that of the next nearer one", "pdmp/processes/remainders.py", "r > self.radii[s]:", "s + 1 < self.radii.shape[0] and r > self.radii[s + 1]:", (PATH,)),
        ("rows: what is extended is never beyond", "pdmp/processes/extended.py", "inner.report.lost(inner, state._replace(memory=state.memory.inner))", "None", ("tests/processes/test_regression_boomerang.py::test_a_path_that_leaves_the_ball_of_the_bounds_says_so",)),
        ("trajectory: what is at rest at zero falls", "pdmp/engine/trajectory.py", "np.where((x == 0.0) & (v == 0.0), 0.0, x - centre)", "x - centre", PATHS),
        ("boomerang: energy of the positions alone", BOOMERANG, "                total += state.v[j] * memory.scratch[j]\n", "                total += 0.0\n", SAMPLERS),
        ("sinusoids: no whole turns", SINUSOID, "    e -= 2.0 * turns\n", "", SAMPLERS),
    ]
]  # fmt: skip


LINES = "pdmp/processes/regression_bps.py"
MOVING_TESTS = "tests/processes/test_moving_regressions.py"
ELLIPSE, INVERTED, PROPOSED = (
    f"{MOVING_TESTS}::test_{name}"
    for name in (
        "no_rate_is_above_its_bound_on_an_ellipse",
        "the_known_part_of_normal_priors_is_inverted",
        "proposals_have_the_true_rates",
    )
)
FLIPS = "pdmp/processes/row_zigzag.py"
BELOW, BALANCE, CHOSEN = (
    f"tests/processes/test_row_zigzag.py::test_{name}"
    for name in ("rates_below_their_bounds", "rates_balance_the_flow", "flips_are_in_proportion_to_the_rates")
)
BUGS += [
    Bug(f"rows that flip: {name}", FLIPS, old, new, (test,))
    for name, old, new, test in [
        ("the sum of the lines, not of their parts above 0", "level += positive_part(own)", "level += own", BELOW),
        ("rows are not divided by their chance", "share = self.total / self.weights[state.memory.row[0]]", "share = 1.0", BELOW),
        ("one rate for all coordinates of a row", "out[0] += positive_part(v[j] * scratch[j])", "out[0] += v[j] * scratch[j]", BALANCE),
        ("the first coordinate flips", "j = draw_component(rates, rng.random() * total)", "j = 0", CHOSEN),
    ]
]  # fmt: skip
BUGS += [
    Bug(f"regressions that move: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("waves of priors that are not normal", ROWS, "                total += self.flow.velocity(j, state.x[j], state.v[j], s) * part\n", "                total += 0.0 * part\n", ELLIPSE),
    ]
]  # fmt: skip
