"""Bugs in the goals of a run, and in the effective draws that they count."""

from tests.mutations.bugs import Bug

GOALS = ("tests/engine/test_goals.py",)
G, C, R = "pdmp/engine/goals.py", "pdmp/engine/chain.py", "pdmp/engine/result.py"
T, M, D = "pdmp/engine/trajectory.py", "pdmp/engine/recording.py", "pdmp/engine/run.py"

BUGS = [
    Bug(f"goals: {name}", file, old, new, GOALS)
    for name, file, old, new in [
        ("sds do not count", G, "all(bool(np.all(d >= self.ess)) for d in self.draws.values())", 'bool(np.all(self.draws["mean"] >= self.ess))'),
        ("one of the two is enough", G, "return self.enough() and (", "return self.enough() or ("),
        ("ranks of many numbers at every look", G, "numbers <= QUICK_NUMBERS) or self.enough()", "True) or self.enough()"),
        ("R-hat is not told of a run that stops early", G, "if self.rhat is not None and self.rhats is None:", "if False:"),
        ("looks inside a step", G, "return self.step * math.ceil(round(proposals / self.step, 6))", "return math.ceil(round(proposals, 6))"),
        ("the warm-up counts", G, "self._whole((look - self.warmup) / GROWTH)", "self._whole(look / GROWTH)"),
        ("chains that waited stay behind after a resume", G, "if chain.stopped == LOOK and chain.look < look:", "if False:"),
        ("an extended run looks where it was not", G, "while look < most:", "while look <= most:"),
        ("no bound", G, "budget = replace(budget, proposals=self._whole(DEFAULT_PROPOSALS))", "budget = replace(budget, proposals=self._whole(100 * DEFAULT_PROPOSALS))"),
        ("the least of the means alone is told", G, "name = min(found, key=lambda name: found[name].min())", 'name = "mean"'),
        ("a look is the end of the budget", C, "self.stopped = LOOK if early else reason", "self.stopped = reason"),
        ("a path that waits ends at its last event", C, '"gradients", LOOK, *GOALS)', '"gradients")'),
        ("squares: variance not subtracted", R, "3.0 * var**2 if fourth is None else fourth) - var**2", "3.0 * var**2 if fourth is None else fourth)"),
        ("squares: about the centre", R, "(squares.T + 2.0 * shift * batches.T) / stretch + shift**2 if known", "squares.T / stretch if known"),
        ("fourth powers: the chains weigh the same", R, "fourth + r.length * (weights @ four.reshape(blocks))", "fourth + 0.5 * sum(lengths) * (weights @ four.reshape(blocks))"),
        ("squares: marks of the first event only", M, "integrals.marks[row, d + j] = integrals.second[j] + second", "integrals.marks[row, d + j] = integrals.second[j]"),
        ("squares: a line's ends alone", T, "return h * (square + product) / 3.0,", "return h * square / 2.0,"),
        ("squares: an ellipse from its vertex", T, "-np.arctan2(v, bend)", "0.0 * v"),
        ("pieces: the owner is the last row", T, "row = np.maximum.accumulate(np.where(is_end, 0, np.arange(len(sort))))", "row = np.where(is_end, 0, np.arange(len(sort)))"),
        ("interrupted at a look", D, "if chain.stopped == LOOK:  # interrupted there", "if False:"),
        ("no bar in notebooks", D, "return in_notebook() or (", "return ("),
    ]
]  # fmt: skip

RANKS, LOOK, PORTIONS = (
    f"{GOALS[0]}::test_{name}"
    for name in (
        "ranks_of_many_numbers_wait_for_enough_draws",
        "a_look_ends_where_the_goal_is_missed",
        "effective_draws_are_counted_portion_by_portion",
    )
)
BUGS += [
    Bug(f"goals: {name}", file, old, new, (test,))
    for name, file, old, new, test in [
        ("R-hat that nobody sees at every look", G, "if wanted and ((self.shows_rhat and", "if wanted and ((True and", RANKS),
        ("a look counts on", G, "            if least < self.ess:\n", "            if least < 0.0:\n", LOOK),
        ("a look begins anywhere", G, "key=lambda k: self.slowest.get(k, math.inf)", "key=lambda k: k", LOOK),
        ("a look takes a part for the whole", G, "            if least < self.ess:\n", "            if least < math.inf:\n", LOOK),
        ("the least of a part is told", G, "        if self.partial:\n", "        if False:\n", LOOK),
        ("portions: of the first copy alone", R, "(self.dim * np.arange(len(self.copies))[:, None] + np.arange(part.start, part.stop)).ravel()", "np.tile(np.arange(part.start, part.stop), len(self.copies))", PORTIONS),
        ("portions: a coordinate takes the rows of others", T, "which = number[self._which]", "which = np.minimum(self._which, len(places) - 1)", PORTIONS),
        ("portions: the centre of others", T, "None if self.centre is None else self.centre[places]", "None if self.centre is None else self.centre[: len(places)]", PORTIONS),
    ]
]  # fmt: skip
