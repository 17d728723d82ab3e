"""Bugs in what a run gives to other packages, and in how things are printed."""

from tests.mutations.bugs import Bug

EXPORT, PRINTED = ("tests/engine/test_export.py",), ("tests/native/test_representation.py",)
E, R = "pdmp/engine/export.py", "pdmp/engine/result.py"
Q = "pdmp/diagnostics/pooled.py"
S, N = "pdmp/diagnostics/summary.py", "pdmp/native/representation.py"

BUGS = [
    Bug(f"export: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        ("as many draws as there may be", E, "if misfit < best[0]:", "if True:", EXPORT),
        ("coordinates of unknown effective draws decide too", E, "known = np.flatnonzero(np.all([", "known = np.flatnonzero(np.any([", EXPORT),
        ("the potential for the log density", E, "lp = np.array([-model.potential(x)", "lp = np.array([model.potential(x)", EXPORT),
        ("chains and draws are mixed up", E, "np.repeat(np.arange(run.chains), n)", "np.tile(np.arange(run.chains), n)", EXPORT),
        ("any number of log-likelihoods", E, "if log_likelihood or (log_likelihood is None and count * terms <= NUMBERS):", "if log_likelihood is not False:", EXPORT),
        ("terms, not their log-likelihoods", "pdmp/models/numerical.py", "out[k, i] = -model.term_potential(points[k], i)", "out[k, i] = model.term_potential(points[k], i)", EXPORT),
        ("quantiles: chains weigh the same", Q, "np.repeat(lengths / lengths.sum() / n, n)", "np.full(chains * n, 1.0 / (chains * n))", EXPORT),
        ("quantiles: at the ends of the draws' shares", Q, "share - 0.5 * weights", "share", EXPORT),
        ("intervals of 90 %", S, "ENDS = (0.025, 0.975)", "ENDS = (0.05, 0.95)", EXPORT),
        ("intervals: columns of NaN", S, 'if all(math.isnan(row["2.5%"]) for row in self.rows):', "if False:", EXPORT),
        ("intervals: the first, not the shortest", R, "k = first[np.argmin(x[last[first]] - x[first])]", "k = first[0]", EXPORT),
        ("natural parameters: mcse is not divided", S, "sd / np.sqrt(ess), ess, draws_rhat(x", "sd / ess, ess, draws_rhat(x", EXPORT),
        ("tables: names are markup", S, "head, *rows = ([html.escape(cell) for cell in row] for row in self._table())", "head, *rows = self._table()", EXPORT),
        ("printed: defaults too", N, "or not _equal(value, parameter.default)", "or True", PRINTED),
        ("printed: long arrays", N, "if np.prod(shape) > SHORT_ARRAY or len(shape) > 2:", "if len(shape) > 2:", PRINTED),
        ("printed: arrays equal any default", N, "except (TypeError, ValueError):  # an array\n        return False", "except (TypeError, ValueError):  # an array\n        return True", PRINTED),
        ("printed: a default that does not equal itself", N, "value is default or bool(value == default)", "bool(value == default)", PRINTED),
    ]
]  # fmt: skip
