"""Planted bugs of effects that are as far centred as the data say: the model, what the data say, and what is refused."""

from tests.mutations.bugs import Bug

MODEL, FOUND, GROUPS, FITTING = (
    "pdmp/models/regressions/partly_centred.py",
    "pdmp/models/regressions/group_information.py",
    "pdmp/models/regressions/group_intercepts.py",
    "pdmp/formulas/fitting.py",
)
TESTS, FORMULAS = "tests/models/test_partly_centred.py", "tests/formulas/test_regression.py"
LAW, WIDTH, BALANCED, SLOW, EFFECTS = (
    f"{TESTS}::{name}"
    for name in (
        "test_the_law_is_that_of_centred_effects",
        "test_effects_have_the_same_width_whatever_their_spread_is",
        "test_information_is_that_of_balanced_groups",
        "test_the_mode_of_effects_that_data_know_little",
        "test_effects_of_coefficients_of_groups",
    )
)
LITTLE, APART = (
    f"{FORMULAS}::{name}"
    for name in (
        "test_rows_that_say_little_of_effects_are_not_subsampled",
        "test_standard_deviations_that_data_cannot_tell_apart",
    )
)

BUGS = [
    Bug(f"partly centred: {name}", file, old, new, (test,), *needs)
    for name, file, old, new, test, *needs in [
        ("the volume is forgotten", MODEL, "+ math.log1p(ratio))", "+ 0.0 * ratio)", LAW),
        ("the mean does not move with the spread", MODEL, "share * (x[j] + 2.0 * h * self.score[j - begin])", "share * (x[j] + h * self.score[j - begin])", LAW),
        ("coefficients do not feel the shear", MODEL, "by_natural[begin + e] -= self.shear[j, e] * by_natural[j]", "by_natural[begin + e] -= 0.0", LAW),
        ("a rotation is not turned back", MODEL, "slope += self.rotation[m, start + g] *", "slope += self.rotation[g, start + m] *", LAW),
        ("single rows are those of the centred model", MODEL, "return self.centred_model.term_potential(y, i)", "return self.centred_model.term_potential(x, i)", LAW),
        ("draws keep the shear", MODEL, "draws[..., : self.n_fixed] -= draws", "draws[..., : self.n_fixed] -= 0.0 * draws", LAW),
        ("coefficients are taken for known", FOUND, "block = matrix[np.ix_(inside, inside)] -", "block = matrix[np.ix_(inside, inside)] - 0.0 *", WIDTH),
        ("the score has no prior", FOUND, "score[part] = (information[part] + prior) * u", "score[part] = information[part] * u", WIDTH),
        ("coefficients do not move with effects", FOUND, "shear = np.linalg.lstsq(fixed, border, rcond=1e-10)[0]", "shear = 0.0 * border", WIDTH),
        ("the noise at the joint mode", FOUND, "pull += degrees", "pull += 0.0", BALANCED),
        ("slow steps stay slow", FOUND, "np.clip(left_over, 0.0, SLOWEST)", "np.clip(left_over, 0.0, 0.0)", SLOW),
        ("effects have no intercept", GROUPS, "X[:, self.means[0]] = 1.0", "X[:, self.means[0]] = 0.0", EFFECTS),
        ("slopes of effects in other units", GROUPS, "self.groups[k].value / self.group_scale[k]", "self.groups[k].value", EFFECTS),
        ("effects that nobody knows are sub-sampled", FITTING, "if share > UNKNOWN_SHARE:", "if False:", LITTLE, "formulae"),
        ("what is asked for is refused", FITTING, "if free and not selects and model.coded is None and", "if not selects and model.coded is None and", LITTLE, "formulae"),
        ("one row a group is enough", FITTING, "alike and np.all(g.sizes == 1)", "alike and np.all(g.sizes == 0)", APART, "formulae"),
        ("priors do not tell apart", FITTING, 'not {g.sd_name, noise} & set(given)', "True", APART, "formulae"),
        ("weights do not tell apart", FITTING, "            size = size * weight\n", "            size = size\n", APART, "formulae"),
        ("counts are refused too", FITTING, "if noise is not None and alike", "if alike", APART, "formulae"),
        ("twins are told apart", FITTING, "(g.level * len(g.levels) + other.level)) == len(g.levels):", "(g.level * len(g.levels) + other.level)) == 0:", APART, "formulae"),
    ]
]  # fmt: skip
