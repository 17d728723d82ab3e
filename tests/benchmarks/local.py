"""When is local better than global? Local samplers against global ones, side by side.

Run as ``python tests/benchmarks/local.py`` (``--quick`` for a try). In each table the samplers of a row take turns
in one process for the same number of seconds each, and medians over the rounds are shown.

*Chains*: a Gaussian whose precision has 2.1 on the diagonal and -1 beside it, of growing dimension. *Regression*: one
logistic posterior with many data, where local means that a proposal looks at one datum. ESS is that of the worst
coordinate, by batch means of the path. Compile time is left out.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from scipy import sparse

import pdmp


def chain(d):
    """The tridiagonal Gaussian."""
    return pdmp.models.Gaussian(0.0, sparse.diags([-np.ones(d - 1), np.full(d, 2.1), -np.ones(d - 1)], [-1, 0, 1]))


def regression(n, d, seed=0):
    """Standard normal features, the first a constant; coefficients of size 1 / √d."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] = 1.0
    p = 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d) / np.sqrt(d)))
    return pdmp.models.LogisticRegression(X, (rng.random(n) < p).astype(float))


def measure(process, start, seconds, seed):
    """Figures of one run by the clock: a dict."""
    run = pdmp.sample(process, initial=start, seconds=seconds, seed=seed, store="moments", warmup=0.1, progress=False)
    stats = run.stats
    took, ess = stats["seconds"], run.ess()
    return {
        "events/s": stats["total_events"] / took,
        "accepted": stats["total_events"] / max(stats["proposals"], 1),
        "worst ESS/s": float(np.min(ess)) / (0.9 * took),
        "median ESS/s": float(np.median(ess)) / (0.9 * took),
        "data/event": stats["data_terms"] / stats["total_events"],
        "ESS/pass": float(np.min(ess)) / max(stats["data_passes"], 1e-300),
    }


def compare(processes, start, seconds, rounds):
    """Medians over the rounds of `measure`, by name of the process."""
    for process in processes.values():
        pdmp.sample(process, initial=start, events=100, seed=0, store="moments", progress=False)
    found = {name: [] for name in processes}
    for seed in range(rounds):
        for name, process in processes.items():
            found[name].append(measure(process, start, seconds, seed))
    return {name: {k: statistics.median(m[k] for m in rows) for k in rows[0]} for name, rows in found.items()}


def chains(dims, seconds, rounds):
    """The first table."""
    names = "LocalBPS", "ZigZag", "CoordinateSampler", "BPS"
    print("\nchains: worst ESS per second (events per second)")
    print(f"{'d':>7}" + "".join(f"{name:>24}" for name in names) + f"{'LocalBPS/BPS':>14}")
    for d in dims:
        model = chain(d)
        start = np.random.default_rng(1).standard_normal(d)
        found = compare({name: getattr(pdmp, name)(model) for name in names}, start, seconds, rounds)
        cells = [f"{found[name]['worst ESS/s']:,.3g} ({found[name]['events/s']:,.0f})" for name in names]
        ratio = found["LocalBPS"]["worst ESS/s"] / found["BPS"]["worst ESS/s"]
        print(f"{d:>7}" + "".join(f"{cell:>24}" for cell in cells) + f"{ratio:>14.2f}", flush=True)


def regressions(n, d, seconds, rounds):
    """The second table."""
    model = regression(n, d)
    mode = model.mode()
    sd = 1.0 / np.sqrt(np.diag(model.hessian(mode)))
    anchored = pdmp.gradients.ControlVariate(model, size=1, anchor=mode)
    important = pdmp.gradients.ControlVariate(model, size=1, anchor=mode, draw="importance", scale=sd)
    processes = {
        "LocalBPS, columns": pdmp.LocalBPS(model),
        "LocalBPS, rows": pdmp.LocalBPS(model, thinning="rows"),
        "LocalBPS, control variates": pdmp.LocalBPS(anchored),
        "BPS": pdmp.BPS(model),
        "ZigZag": pdmp.ZigZag(model),
    }
    for name, provider in {
        "ZigZag, one datum": pdmp.gradients.Minibatch(model, size=1),
        "ZigZag, control variates": anchored,
        "ZigZag, cv, importance": important,
    }.items():
        try:
            processes[name] = pdmp.ZigZag(provider)
        except TypeError:
            print(f"({name}: this ZigZag takes exact gradients only)")
    began = time.perf_counter()
    found = compare(processes, mode, seconds, rounds)
    print(f"\nlogistic regression, N = {n:,}, d = {d} ({time.perf_counter() - began:.0f} s)")
    columns = "events/s", "accepted", "data/event", "worst ESS/s", "ESS/pass"
    print(f"{'':>28}" + "".join(f"{c:>14}" for c in columns))
    for name, row in found.items():
        print(f"{name:>28}" + "".join(f"{row[c]:>14,.4g}" for c in columns), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--data", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    seconds, rounds = (2.0, 1) if args.quick else (args.seconds, args.rounds)
    chains(args.dims, seconds, rounds)
    for n in args.data:
        regressions(n, 10, seconds, rounds)


if __name__ == "__main__":
    main()
