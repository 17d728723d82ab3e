"""Bugs in the goals of a run, and in the effective draws that they count."""

from tests.mutations.bugs import Bug

GOALS = ("tests/engine/test_goals.py",)
G, R = "pdmp/engine/goals.py", "pdmp/engine/result.py"

BUGS = [
    Bug(f"goals: {name}", file, old, new, GOALS)
    for name, file, old, new in [
        ("sds do not count", G, "all(bool(np.all(d >= self.ess)) for d in self.draws.values())", 'bool(np.all(self.draws["mean"] >= self.ess))'),
    ]
]  # fmt: skip

PORTIONS = "tests/engine/test_goals.py::test_effective_draws_are_counted_portion_by_portion"
BUGS += [
    Bug(f"goals: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("portions: of the first copy alone", "pdmp/diagnostics/averages.py", "(run.dim * np.arange(len(run.copies))[:, None] + np.arange(part.start, part.stop)).ravel()", "np.tile(np.arange(part.start, part.stop), len(run.copies))", PORTIONS),
    ]
]  # fmt: skip
