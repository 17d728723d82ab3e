"""Planted bugs in several anchors, anchors that move in the warm-up, and pilot runs of regressions."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = "tests/gradients/test_anchors.py"
ANCHORS, CONTROL = "pdmp/gradients/anchors.py", "pdmp/gradients/control_variate.py"
SUBSAMPLED = "pdmp/processes/subsampled_zigzag.py"

BUGS = [
    Bug(f"anchors: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
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
            "the gradient is that of the old anchor",
            ANCHORS,
            "bank.gradients[k, j] = bank.anchor_gradient[j]",
            "bank.gradients[k, j] += 0.0",
            TESTS,
        ),
        ("a far one is not said", "pdmp/diagnostics/summary.py", "(DISTANT**2 - 1.0) * found[1]", "math.inf", TESTS),
    ]
]
