"""Bugs in tempering: references, ladders, swaps, paths, the evidence, modes, and what is said."""

from tests.mutations.bugs import Bug

ROOM = "pdmp/automatic/tempering/"
PARTS = ("tests/automatic/test_tempering.py",)

BUGS = [
    Bug(f"tempering: {name}", file if "/" in file else f"{ROOM}{file}.py", old, new, PARTS)
    for name, file, old, new in [
        ("the slope of a normal in place of a t's", "references", "slope = (freedom + d) / (freedom + square)", "slope = 1.0 + 0.0 * square"),
        ("every draw of a t has the same scale", "references", "self.freedoms[k] / (2.0 * rng.standard_gamma(0.5 * self.freedoms[k]))", "self.freedoms[k] / (self.freedoms[k] - 2.0)"),
        ("rungs at equal shares of β", "ladder", "np.interp(np.linspace(0.0, cumulative[-1], n), cumulative, betas)", "np.linspace(0.0, 1.0, n)"),
        ("a path feels the target alone", "process", "force[j] = beta * memory.gradient[j] + (1.0 - beta) * memory.slope[j]", "force[j] = memory.gradient[j]"),
        ("a rejected path is kept", "process", "        if rng.random() < accept:\n            self.keep(memory, r, potential, height)\n        return accept", "        self.keep(memory, r, potential, height)\n        return accept"),
        ("the error as of independent draws", "evidence", "return float(standard_error(np.split(series[:, None], ends), [1.0] * len(each), each)[0])", "return float(series.std() / len(series) ** 0.5)"),
        ("heavy tails are looked into without end", "lines", "if (fell or wasted < WASTED) and potential", "if potential"),
        ("tails do not count", "answers", "    found[f\"the tails of {names[k]}\"] = float(tails[k])\n", ""),
    ]
]  # fmt: skip

#: Constants that U leaves out.
BUGS += [
    Bug(f"omitted constants: {name}", file, old, new, ("tests/models/test_omitted_constants.py",))
    for name, file, old, new in [
        ("correlations by their cosh", "pdmp/models/priors.py", " - 2.0 * a * math.log(2.0)\n    return math.nan", "\n    return math.nan"),
    ]
]  # fmt: skip
#: log Z of fits.
BUGS += [
    Bug(f"log Z of fits: {name}", file, old, new, (f"tests/formulas/test_evidence.py::{test}",))
    for name, file, old, new, test in [
        ("cuts in any order", "pdmp/models/sums_of_terms.py", "math.lgamma(len(places) + 1.0) if alike", "0.0 if alike", "test_constants_that_u_leaves_out"),
        ("the unit of the response is forgotten", "pdmp/models/regressions/mixed.py", "log_constant(self.y, self.given) - math.log(self.response_scale)", "log_constant(self.y, self.given)", "test_constants_that_u_leaves_out"),
        ("the law of effects has no constant", "pdmp/models/regressions/mixed.py", "+ 0.5 * effects * math.log(math.tau)", "+ 0.0 * effects", "test_constants_that_u_leaves_out"),
        ("coefficients of groups as effects", "pdmp/models/regressions/group_intercepts.py", "super().omitted() + moved - ", "super().omitted() - ", "test_constants_of_coefficients_of_groups"),
        ("the same half twice", "pdmp/automatic/tempering/evidence.py", "draws[:, :half].reshape(-1, d), np", "draws[:, half:].reshape(-1, d), np", "test_a_bridge_is_right_within_its_error"),
        ("the normal law without its scale", "pdmp/automatic/tempering/evidence.py", "float(np.log(sd * np.diag(root)).sum())", "float(np.log(sd).sum())", "test_a_bridge_is_right_within_its_error"),
        ("other rows are compared", "pdmp/automatic/tempering/answers.py", "        reason = a.unlike(b)\n", "        reason = None\n", "test_what_has_no_evidence_is_refused"),
    ]
]  # fmt: skip
