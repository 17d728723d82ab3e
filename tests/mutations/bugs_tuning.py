"""Planted bugs in automatic steps and in what is offered for tuning."""

from __future__ import annotations

from tests.mutations.bugs import Bug

LAWS, TUNING = "tests/discrete/test_laws.py", "tests/tuning/test_tuning.py"
CURVATURE = "discrete/curvature.py"

BUGS = [
    Bug(f"automatic: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("the start in place of the mode", CURVATURE, "found = provider.anchor if provider.anchor is not None else provider.model.mode(x)", "found = None", LAWS),
        ("grid search: each arm starts somewhere else", "pdmp/tuning/competition.py", "        start = _noisy_start(made[0].process, initial, start_noise, seed)\n        for arm in made:\n            arm.initial = start", "        for arm in made:\n            arm.initial = _noisy_start(made[0].process, initial, start_noise, arm.seed)", TUNING),
        ("held out: what diverged is scored", "pdmp/tuning/competition.py", "        if not np.all(np.isfinite(predicted)):\n            return math.inf\n", "", TUNING),
    ]
] + [
    Bug(f"options of arms: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
    ]
]  # fmt: skip
