"""Bugs in what is computed of a run, and in what a process says of itself."""

from tests.mutations.bugs import Bug

AVERAGES, REPORTS = "pdmp/diagnostics/averages.py", "pdmp/processes"
POOLING, GOALS, PATHS = "tests/engine/test_pooling.py", "tests/engine/test_goals.py", "tests/engine/test_trajectory.py"
BOUNDED = "tests/processes/test_bounded.py"

BUGS = [
    Bug(f"runs: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("means alone count as draws of sds", AVERAGES, '(_of_means if name == "mean" else _of_sds)', "_of_means", f"{GOALS}::test_effective_draws_of_an_autoregression"),
        ("a running mean is of all that follows", AVERAGES, "np.cumsum(averages, axis=0) / np.arange(1, n + 1)", "np.cumsum(averages, axis=0) / np.full(n, n)", "tests/discrete/test_richardson_romberg.py"),
        ("a chain without a path is drawn from", AVERAGES, '            raise ValueError(f"chain {i} has no path after its warm-up.")', "            pass", f"{POOLING}::test_a_chain_that_ended_in_its_warm_up"),
        ("the last copy is the first", "pdmp/engine/trajectory.py", "self.block(last * d, (last + 1) * d, kind=last)", "self.block(0, d, kind=last)", f"{PATHS}::test_blocks_of_coupled_copies"),
        ("the whole of a path is its first copy", "pdmp/engine/trajectory.py", "coarse.positions, coarse.times, self", "coarse.positions, coarse.times, fine", f"{PATHS}::test_blocks_of_coupled_copies"),
        ("an old name is no name", "pdmp/engine/result.py", "if name in MOVED else", "if name not in MOVED and False else", "tests/engine/test_run.py::test_names_that_moved_say_where"),
        ("an absorbed path goes on", f"{REPORTS}/bounded.py", 'return "absorbed" if state.memory.ended[0] else None', "return None", f"{BOUNDED}::test_an_absorbing_wall_ends_the_run_and_says_so"),
        ("one copy starts for all", "pdmp/process.py", "np.tile(np.array(x, dtype=float), len(self.copies))", "np.array(x, dtype=float)", "tests/engine/test_pairs.py"),
        ("a batch of the descent has more rows than there are", "pdmp/models/descent.py", "else count(\"size\", size)", "else size", "tests/models/test_descent.py"),
    ]
]  # fmt: skip
