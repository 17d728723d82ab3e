"""Planted bugs in the factorisations, independent component analysis and the neural network."""

from __future__ import annotations

from tests.mutations.bugs import Bug

TESTS = ("tests/models/test_factorisations.py",)
BASE, ICA, NN = (f"pdmp/models/factorisations/{name}.py" for name in ("factorisation", "ica", "bayesian_nn"))

BUGS = [
    Bug(f"factorisations: {name}", file, old, new, TESTS)
    for name, file, old, new in [
        ("only users are drawn to their ratings", BASE, "    for k in range(rank):\n        out[b + k] += weight * x[a + k]\n", ""),
        ("projections of all that is in the rows", BASE, "        first, second = 0.0, 0.0\n        for k in range(n):", "        first, second = 0.0, 0.0\n        for k in range(rows.shape[0]):"),
        ("projections without the determinant", ICA, "            share += v[j] * shift[j]\n", ""),
        ("projections add up over chunks", NN, "            p[:m] = 0.0\n", ""),
    ]
] + [
    Bug(f"factorisations, by law: {name}", file, old, new, (f"tests/statistics/test_factorisation_laws.py::{test}",))
    for name, file, old, new, test in [
    ]
]  # fmt: skip
