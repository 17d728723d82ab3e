"""Bugs in what a run gives to other packages, and in how things are printed."""

from tests.mutations.bugs import Bug

EXPORT = ("tests/engine/test_export.py",)
E = "pdmp/engine/export.py"
Q = "pdmp/diagnostics/pooled.py"

BUGS = [
    Bug(f"export: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("any number of log-likelihoods", E, "if log_likelihood or (log_likelihood is None and count * terms <= NUMBERS):", "if log_likelihood is not False:", EXPORT),
        ("quantiles: chains weigh the same", Q, "np.repeat(lengths / lengths.sum() / n, n)", "np.full(chains * n, 1.0 / (chains * n))", EXPORT),
    ]
]  # fmt: skip
