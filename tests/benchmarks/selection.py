"""Selection of many coefficients from many rows: sticking one by one beside groups of one coefficient, side by side.

Run as ``python -m tests.benchmarks.selection`` (``--quick`` for a try). A linear regression with noise of standard
deviation 1, columns of which neighbours have the correlation 1/2, and coefficients of 3.5 to 12 posterior standard
deviations in ten of the first thirty columns, of 4 in every hundredth further one; all others are 0. Both samplers
start at 0 and have one chain. Compile time is left out.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import pdmp
from pdmp.diagnostics.effective_size import draws_ess
from pdmp.processes.sticky_groups import StickyGroups

SIZES = (12.0, -10.0, 8.0, 6.0, -5.0, 4.5, -4.2, 4.0, 3.8, -3.5)  #: in posterior standard deviations, about


def problem(rows, d, inclusion):
    rng = np.random.default_rng(0)
    X = np.empty((rows, d))
    for s in range(0, rows, 10_000):
        Z = rng.standard_normal((min(10_000, rows - s), d))
        X[s : s + 10_000, 0] = Z[:, 0]
        for j in range(1, d):
            X[s : s + 10_000, j] = 0.5 * X[s : s + 10_000, j - 1] + math.sqrt(0.75) * Z[:, j]
    beta = np.zeros(d)
    beta[:30:3] = SIZES
    beta[100::100] = 4.0
    y = X @ (beta * math.sqrt(5.0 / 3.0 / 0.75 / rows)) + rng.standard_normal(rows)
    return pdmp.models.SpikeAndSlabLinearRegression(X, y, 1.0, 0.5, inclusion)


def measure(name, process, duration):
    """One line: seconds, violations, and the effective draws of the indicators that are uncertain."""
    options = {"initial": np.zeros(process.dim), "seed": 1, "progress": False}
    pdmp.sample(process, time=0.01, **options)  # compiled
    began = time.perf_counter()
    run = pdmp.sample(process, time=duration, warmup=0.1, store="grid", draws=4_000, **options)
    seconds = time.perf_counter() - began
    inclusion = run.inclusion()
    uncertain = np.flatnonzero((inclusion > 0.1) & (inclusion < 0.9))
    ess = draws_ess((run.draws(4_000)[..., uncertain] != 0.0).astype(float), "mean") if len(uncertain) else np.zeros(0)
    print(
        f"{name:16} {seconds:8.1f} s  {run.stats['bound_violations']} violations  {inclusion.sum():.1f} included  "
        f"{len(uncertain)} uncertain, effective draws {', '.join(f'{e:.0f}' for e in ess)}",
        flush=True,
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, a shorter run")
    args = parser.parse_args(argv)
    cases = [(2_000, 40, 0.05, 30.0)] if args.quick else [(2_000, 200, 0.05, 3_000.0), (100_000, 2_000, 0.01, 300.0)]
    for rows, d, inclusion, duration in cases:
        print(f"{rows:,} rows, {d:,} columns, prior inclusion {inclusion:g}, {duration:g} units of time")
        model = problem(rows, d, inclusion)
        sd = np.sqrt(1.0 / np.diag(model.hessian()))
        inner = pdmp.ZigZag(model, speed=sd)
        measure("groups of one", StickyGroups(inner, [[j] for j in range(d)]), duration)
        measure("sticking alone", pdmp.StickyZigZag(model, speed=sd), duration)


if __name__ == "__main__":
    main()
