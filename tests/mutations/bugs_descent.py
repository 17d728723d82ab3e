"""Planted bugs in the search for a mode with batches, and in who asks for it."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/models/test_descent.py",)
DESCENT, NUMERICAL = "pdmp/models/descent.py", "pdmp/models/numerical.py"

BUGS = [
    Bug(f"descent: {name}", file, old, new, TESTS)
    for name, file, old, new in [
        ("the batch stands for itself", DESCENT, "out[j] *= model.n_data / rows.shape[0]", "out[j] *= 1.0"),
        ("no prior", DESCENT, "    model.add_prior_gradient(x, out)\n", ""),
        ("steps do not decrease", DESCENT, "rate = step * (1.0 - (k - 1) / steps)", "rate = step"),
        ("the bias of the first averages", DESCENT, "math.sqrt(1.0 - 0.999**k) / (1.0 - 0.9**k)", "1.0"),
        ("the error is the sum of squares", DESCENT, "float(np.mean(gradient**2))", "float(np.sum(gradient**2))"),
        ("reached whatever the error", DESCENT, "return self.error <= self.tolerance", "return True"),
        ("the search does not end", DESCENT, "            if self.error <= self.tolerance:\n                raise _Reached\n", ""),
        ("the start is forgotten", DESCENT, "for point in (start, x):", "for point in (x,):"),
        ("the last point, not the best", DESCENT, "if potential < self.potential and np.all", "if np.all"),
        ("a mode without a word of the tolerance", NUMERICAL, "return found.x if found.reached else None", "return found.x"),
        ("every run searches first", NUMERICAL, "return None if self.searches_by_batches else self.mode()", "return self.mode()"),
        ("no warning of an anchor that is no mode", "pdmp/gradients/control_variate.py", "if found.error < math.inf and not found.reached:", "if False:"),
        ("no factorisation is large", "pdmp/models/factorisations/factorisation.py", "return self.n_data * self.rank > LARGEST_SEARCH", "return False"),
        ("no network is large", "pdmp/models/factorisations/bayesian_nn.py", "return self.n_data * self.dim > LARGEST_SEARCH", "return False"),
    ]
]  # fmt: skip
