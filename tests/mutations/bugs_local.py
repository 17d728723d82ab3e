"""Planted bugs of factor graphs, the local BPS and the coordinate sampler."""

from __future__ import annotations

from tests.mutations.bugs import Bug

LOCAL = ("tests/factors/test_local.py",)
TERMS = ("tests/factors/test_sums.py",)

BUGS = [
    Bug(f"local: {name}", file, old, new, tests)
    for name, file, old, new, tests in [
        # local BPS
        (
            "a refreshment redraws no factor",
            "pdmp/processes/local_bps.py",
            "dependents = _joined(graph.neighbours, (redraws[0] + np.arange(more + 1), itself))",
            "dependents = _joined(graph.neighbours, (np.arange(more + 1), n + np.arange(more)))",
            LOCAL,
        ),
        (
            "cells have no room for curvature",
            "pdmp/factors/bounds.py",
            "room = self.safety * NEEDED * abs(difference)",
            "room = 0.0 * difference",
            LOCAL,
        ),
        # data that share a clock
        (
            "distances are not in units of the scale",
            "pdmp/factors/shared_clock.py",
            "u, w = (here[j] - self.anchor[j]) / self.scale[j], state.v[j] / self.scale[j]",
            "u, w = (here[j] - self.anchor[j]), state.v[j]",
            LOCAL,
        ),
        # the coordinate sampler
        (
            "the old coordinate moves on",
            "pdmp/processes/coordinate_sampler.py",
            "        state.v[memory.moving[0]] = 0.0\n",
            "",
            LOCAL,
        ),
        # terms that are expressions
        (
            "sums: what joins a quadratic factor has no linear part",
            "pdmp/factors/sums.py",
            "force[indptr[f] + p] += weight * model.numbers[j, 0]",
            "force[indptr[f] + p] += 0.0",
            TERMS,
        ),
        (
            "enclosures: a bound is used beyond its horizon",
            "pdmp/thinning/enclosures.py",
            "    if s >= width:\n        return now + width, HORIZON\n",
            "",
            TERMS,
        ),
    ]
]
