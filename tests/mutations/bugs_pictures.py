"""Bugs in what pictures draw, in verdicts and reports, and in what the options of `pdmp compare` pass on."""

from tests.mutations.bugs import Bug

STYLE, PATHS, DENSITIES = "pdmp/plots/style.py", "pdmp/plots/paths.py", "pdmp/plots/densities.py"
CONVERGENCE, PROPOSALS, PAGES = "pdmp/plots/convergence.py", "pdmp/plots/proposals.py", "pdmp/plots/pages.py"
ERRORS, CLI = "pdmp/plots/comparisons.py", "pdmp/cli.py"
T = "tests/plots/test_"
PASSED = "tests/test_passed_on.py"

BUGS = [
    Bug(f"pictures: {name}", file, old, new, (tests,))
    for name, file, old, new, tests in [
        ("chains count equally", STYLE, "return lengths / lengths.sum()", "return np.full(len(lengths), 1.0 / len(lengths))", f"{T}style.py"),
        ("the command leaves its figures", CLI, "with plots.style.closing():\n        make()", "if True:\n        make()", "tests/test_scripts.py"),
        ("a part has its first value only", PATHS, "np.maximum.reduceat(x, begin[:-1])", "x[begin[:-1]]", f"{T}paths.py"),
        ("contours of the complements", DENSITIES, "[1.0 - m for m in MASSES]", "sorted(MASSES)", f"{T}densities.py"),
        ("the band of chains that are apart", CONVERGENCE, 'np.mean([one.ess("spectral")[chosen] for one in split(run)], axis=0)', 'run.ess("spectral")[chosen] / run.chains', f"{T}convergence.py"),
        ("the halves of one chain are its odd and even draws", CONVERGENCE, "x = x[0, : 2 * half].reshape(2, half, -1)", "x = np.stack([x[0, : 2 * half : 2], x[0, 1 : 2 * half : 2]])", f"{T}convergence.py"),
        ("a bound beyond its time", PROPOSALS, "bounds[-1] = times[times <= now], values[times <= now]", "bounds[-1] = times, values", f"{T}proposals.py"),
        ("every sampler has the cost of the first", ERRORS, 'totals = {row["sampler"]: row[key] / row["data_passes"] for row in table.rows}', 'totals = {row["sampler"]: table.rows[0][key] / table.rows[0]["data_passes"] for row in table.rows}', f"{T}comparisons.py"),
        ("--samplers keeps all of a class", CLI, "return {label: process for label, process in found.items() if label in labels or not labels}", "return found", PASSED),
    ]
]  # fmt: skip
