"""SGRRLD with one and with two threads, side by side: steps per second on logistic regression, N = 10⁶, d = 10.

Each round times both; printed are the medians over the rounds, in steps of the coarse chain (three gradients), and the
median of the rounds' ratios. The fine chain's two half steps follow one upon the other, so the limit of the ratio is
1.5. Neither time has compilation in it. Needs two processors to itself: before and after each round the speed of two
busy threads relative to one is taken, and rounds in which it falls below 1.85 are not counted but tried again::

    python tests/benchmarks/extrapolation.py [--rounds 7] [--terms 20000000]
"""

import argparse
import os
import threading
import time

import numba
import numpy as np

import discrete
import pdmp

N, D, STEP = 10**6, 10, 1e-8
FREE = 1.85


@numba.njit(nogil=True)
def busy(n):
    total = 0.0
    for i in range(n):
        total += (0.5 * i) % 3.0
    return total


def processors_free(n=1_000_000):
    """Speed of two busy threads relative to one."""
    begun = time.perf_counter()
    busy(n)
    one = time.perf_counter() - begun
    threads = [threading.Thread(target=busy, args=(n,)) for _ in range(2)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2.0 * one / (time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--terms", type=int, default=20_000_000, help="data terms of the coarse chain in one timing")
    parser.add_argument("--seconds", type=float, default=120.0, help="to wait for so many free rounds, each line")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 1_000, 100])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(D)))).astype(float)
    model = pdmp.models.LogisticRegression(X, y)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{processors} processors, load {os.getloadavg()[0]:.1f}, {args.rounds} rounds")
    busy(10)
    print(f"{'draw':>10} {'size':>7} {'1 thread':>12} {'2 threads':>12} {'ratio':>6} {'counted':>8}   (steps/s)")
    for draw in ("iid", "reshuffle"):
        for size in args.sizes:
            steps = args.terms // size
            timed, tried, begun = {1: [], 2: []}, -1, time.perf_counter()
            while len(timed[1]) < args.rounds and time.perf_counter() - begun < args.seconds:
                tried += 1
                if tried and processors_free() < FREE:
                    time.sleep(0.3)
                    continue
                averages, speeds = [], []
                for threads in (1, 2):
                    process = discrete.SGRRLD(pdmp.gradients.Minibatch(model, size, draw=draw), STEP, threads=threads)
                    options = {"initial": np.zeros(D), "seed": 1, "store": "moments"}
                    run = pdmp.sample(process, steps=steps if tried else 100, **options)
                    averages.append(run.mean())
                    speeds.append(steps / run.stats["seconds"])
                assert np.array_equal(*averages), "the results differ"
                if tried and processors_free() >= FREE:  # the first round compiles
                    timed[1].append(speeds[0])
                    timed[2].append(speeds[1])
            one, two = np.array(timed[1]), np.array(timed[2])
            said = f"{draw:>10} {size:7} "
            if len(one):
                said += f"{np.median(one):12.0f} {np.median(two):12.0f} {np.median(two / one):6.2f}"
            print(f"{said} {len(one):3} of {tried}", flush=True)


if __name__ == "__main__":
    main()
