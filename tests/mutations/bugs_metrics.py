"""Planted bugs in what samplers do with a metric: `Process.in_metric`, the Zig-Zag's mass, preconditioners."""

from __future__ import annotations

from tests.mutations.bugs import Bug

SAMPLERS, MASS = ("tests/automatic/test_samplers.py",), ("tests/processes/test_zigzag_mass.py",)
METRIC = "pdmp/automatic/metric.py"
ZIGZAG = "pdmp/processes/zigzag.py"
BARKER = "discrete/barker.py"

BUGS = [
    Bug(f"metrics: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        (
            "a sparse precision in another order of coordinates",
            "pdmp/metric.py",
            "v[self.order[k]] = solved[k]",
            "v[k] = solved[k]",
            ("tests/processes/test_hmc.py", "tests/test_metric.py"),
        ),
        (
            "the sparse Hessian where the chains were before the window",
            METRIC,
            "found = None if graph is None else mean_hessian(model, x)",
            "found = None if graph is None else mean_hessian(model, starts.points)",
            ("tests/automatic/test_metric.py",),
        ),
        (
            "pivots beside the diagonal of other coordinates",
            "pdmp/native/definite.py",
            "matrix.diagonal()[order]",
            "matrix.diagonal()",
            ("tests/test_metric.py::test_a_sparse_matrix_is_solved_with_in_an_order_without_fill",),
        ),
        # coordinates given the scales
        (
            "derivatives by a scale without those of the linear part",
            "pdmp/models/noncentred.py",
            "-x[rest[k]] * own[columns[e]] - by_shift[k] * shift[columns[e]]",
            "-x[rest[k]] * own[columns[e]]",
            ("tests/models/test_noncentred.py",),
        ),
        # who gets what
        (
            "variances of the marginals alone",
            METRIC,
            "return np.sqrt((self.root**2).sum(axis=1) / (inverse**2).sum(axis=0))",
            "return (self.root**2).sum(axis=1)",
            SAMPLERS,
        ),
        # the Zig-Zag's mass
        (
            "zigzag: rates rise by the speeds squared",
            ZIGZAG,
            "    def square(self, state, j):\n        return 1.0",
            "    def square(self, state, j):\n        return state.v[j] * state.v[j]",
            MASS,
        ),
    ]
]
