"""The Bouncy Particle family on logistic regression beside exact Zig-Zag, in one process: min-ESS per second.

N = 1,000 with d = 20, and N = 100,000 with d = 10, both with standard normal features. Each round runs every sampler
for about the same time, one after the other; printed are medians over the rounds, and the median of the ratios to exact
Zig-Zag in each. Runs keep their moments alone, ESS comes from batch means of each coordinate's path after a warm-up of
a tenth, and no time has compilation in it::

    python tests/benchmarks/bps.py [--rounds 5] [--seconds 10] [--quick]
"""

import os

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse  # noqa: E402

import numpy as np  # noqa: E402
from scipy import special  # noqa: E402

import pdmp  # noqa: E402

SIZES = ((1_000, 20), (100_000, 10))


def problem(n_data, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_data, d))
    X[:, 0] = 1.0
    y = (rng.random(n_data) < special.expit(X @ rng.standard_normal(d) / np.sqrt(d))).astype(float)
    return pdmp.models.LogisticRegression(X, y)


def samplers(model):
    return {
        "Zig-Zag": pdmp.ZigZag(model),
        "BPS": pdmp.BPS(model),
        "BPS, mass": pdmp.BPS(model, metric="auto"),
        "directional BPS": pdmp.DirectionalBPS(model),
        "generalised BPS": pdmp.GeneralisedBPS(model),
        "event chain": pdmp.ForwardEventChain(model),
    }


def events_in(process, seconds, start):
    """About how many events fit into these seconds."""
    events = 20
    while True:
        run = pdmp.sample(process, events=events, seed=1, store="moments", covariance=False, initial=start)
        took = run.stats["seconds"]
        if took > 0.1 * seconds:
            return max(int(events * seconds / took), 200)
        events *= 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works")
    arguments = parser.parse_args()
    rounds, seconds = (1, 0.5) if arguments.quick else (arguments.rounds, arguments.seconds)
    for n_data, d in SIZES:
        model = problem(n_data, d)
        start, processes = model.mode(), samplers(model)
        sizes = {name: events_in(process, seconds, start) for name, process in processes.items()}
        speed, rate = {name: [] for name in processes}, {name: [] for name in processes}
        for k in range(rounds):
            for name, process in processes.items():
                run = pdmp.sample(
                    process,
                    events=sizes[name],
                    seed=k + 2,
                    store="moments",
                    covariance=False,
                    initial=start,
                    warmup=0.1,
                )
                assert run.stats["bound_violations"] == 0
                speed[name].append(sum(run.stats["events"].values()) / run.stats["seconds"])
                rate[name].append(run.ess().min() / run.stats["seconds"])
        print(f"N = {n_data:,}, d = {d}")
        print(f"{'':<18}{'events/s':>12}{'min-ESS/s':>12}{'to Zig-Zag':>12}")
        for name in processes:
            ratio = np.median(np.array(rate[name]) / np.array(rate["Zig-Zag"]))
            print(f"{name:<18}{np.median(speed[name]):>12,.0f}{np.median(rate[name]):>12,.1f}{ratio:>12.2f}")


if __name__ == "__main__":
    main()
