"""Planted bugs in several anchors, anchors that move in the warm-up, and pilot runs of regressions."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS, PILOTS = "tests/gradients/test_anchors.py", "tests/formulas/test_pilot.py"
ANCHORS, CONTROL = "pdmp/gradients/anchors.py", "pdmp/gradients/control_variate.py"
SUBSAMPLED, PILOT = "pdmp/processes/subsampled_zigzag.py", "pdmp/formulas/pilot.py"

BUGS = [
    Bug(f"anchors: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the farthest", ANCHORS, "if square < least:", "if square > least:", TESTS),
        (
            "distances without units",
            ANCHORS,
            "z = (x[j] - points[k, j]) / self.scale[j]",
            "z = x[j] - points[k, j]",
            TESTS,
        ),
        (
            "the gradient of another anchor",
            ANCHORS,
            "bank.anchor_gradient[j] = bank.gradients[k, j]",
            "bank.anchor_gradient[j] = bank.gradients[0, j]",
            TESTS,
        ),
        (
            "the bound is of the nearest alone",
            ANCHORS,
            "rate = positive(v * (partial + bank.gradients[k, j]))",
            "rate = positive(v * (partial + bank.anchor_gradient[j]))",
            TESTS,
        ),
        (
            "a proposal is thinned by the anchor of its clock",
            SUBSAMPLED,
            "        self.anchors.choose(memory.bank, here)\n",
            "",
            TESTS,
        ),
        (
            "a batch used again has the anchor of its first use",
            CONTROL,
            "        self.anchors.choose(memory.bank, x)\n",
            "",
            TESTS,
        ),
        (
            "they move after the warm-up too",
            ANCHORS,
            "if self.due > 0 and counts[ADAPTING] == 1:\n            if bank.at",
            "if self.due > 0:\n            if bank.at",
            TESTS,
        ),
        ("they move unasked", ANCHORS, "self.due = n_data if renew else 0", "self.due = n_data", TESTS),
        ("a pass is not counted", ANCHORS, "counts[DATA] += model.n_data", "counts[DATA] += 0", TESTS),
        (
            "the gradient is that of the old anchor",
            ANCHORS,
            "bank.gradients[k, j] = bank.anchor_gradient[j]",
            "bank.gradients[k, j] += 0.0",
            TESTS,
        ),
        (
            "the gradients are added up",
            ANCHORS,
            "            bank.anchor_gradient[j] = 0.0\n        model",
            "            bank.anchor_gradient[j] += 0.0\n        model",
            TESTS,
        ),
        (
            "half of the way",
            ANCHORS,
            "bank.points[k, j] + bank.sums[k, j] / weight",
            "bank.points[k, j] + 0.5 * bank.sums[k, j] / weight",
            TESTS,
        ),
        ("the end of a piece in place of its mean", ANCHORS, "0.5 * s * (a + b)", "s * b", TESTS),
        ("squares without the mixed product", ANCHORS, "(a * a + a * b + b * b)", "1.5 * (a * a + b * b)", TESTS),
        ("any anchor moves", ANCHORS, "if away > POOR * spread:", "if away > 0.0:", TESTS),
        ("twice as late whatever was found", ANCHORS, "self.due if far else 2 * bank.due[0]", "2 * bank.due[0]", TESTS),
        ("never later", ANCHORS, "self.due if far else 2 * bank.due[0]", "self.due", TESTS),
        (
            "the path is not forgotten",
            ANCHORS,
            "bank.weights[k], bank.squares[k] = 0.0, 0.0",
            "bank.weights[k] += 0.0",
            TESTS,
        ),
        ("data are not counted on paths", SUBSAMPLED, "        self.anchors.evaluated(memory.bank, n)\n", "", TESTS),
        ("all chains share one", ANCHORS, "points=self.points.copy()", "points=self.points", TESTS),
        (
            "Boomerang takes those that move",
            "pdmp/processes/boomerang.py",
            "    one_anchor(provider, name)\n",
            "",
            TESTS,
        ),
        ("a far one is not said", "pdmp/diagnostics/summary.py", "(DISTANT**2 - 1.0) * found[1]", "math.inf", TESTS),
        (
            "a renewed one is said to be far",
            CONTROL,
            "if self.renew or len(self.points) > 1:\n            return None",
            "if len(self.points) > 1:\n            return None",
            TESTS,
        ),
        ("pilot: speeds are made smaller", PILOT, "np.maximum(sd, process.speed)", "sd", PILOTS),
        ("pilot: the anchor stays", PILOT, "np.where(usable, mean, process.anchor)", "process.anchor", PILOTS),
        ("pilot: coefficients too", PILOT, "usable = few & ", "usable = ", PILOTS),
        ("pilot: always made anew", PILOT, "if away.max() <= FAR and wider <= WIDER:", "if False:", PILOTS),
        (
            "pilot: one round is enough",
            PILOT,
            "        if wider <= WIDER:\n            break\n",
            "        break\n",
            PILOTS,
        ),
        ("pilot: the survey is not counted", PILOT, "passes += 1.0", "passes += 0.0", PILOTS),
    ]
]
