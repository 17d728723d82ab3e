"""Local Zig-Zag on a tridiagonal Gaussian: the framework against a loop written by hand for that one case.

Run as ``python tests/benchmarks/zigzag.py``. The precision has 2.1 on the diagonal and -1 beside it. Both sides keep
the exact integrals of x and x², and nothing else of the path (the framework also the batch means that its ess needs);
they alternate in one process, and the table shows medians and the ratio of neighbouring pairs. What limits both at
large d is memory latency: an event touches some fifteen cache lines at random places.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numba
import numpy as np
import scipy.sparse as sparse

import pdmp


@numba.njit(error_model="numpy", nogil=True, _nrt=False)
def arrival(a, b, e):
    if b > 0.0:
        if a >= 0.0:
            return 2.0 * e / (a + np.sqrt(a * a + 2.0 * b * e))
        return -a / b + np.sqrt(2.0 * e / b)
    if a <= 0.0:
        return np.inf
    rest = a * a + 2.0 * b * e
    if rest <= 0.0:
        return np.inf
    return 2.0 * e / (a + np.sqrt(rest))


@numba.njit(error_model="numpy", nogil=True, _nrt=False)
def sift(times, heap, place, i):
    k = place[i]
    t = times[i]
    while k > 0:
        up = (k - 1) >> 1
        if times[heap[up]] <= t:
            break
        heap[k] = heap[up]
        place[heap[k]] = k
        k = up
    n = heap.shape[0]
    while True:
        c = 2 * k + 1
        if c >= n:
            break
        if c + 1 < n and times[heap[c + 1]] < times[heap[c]]:
            c += 1
        if times[heap[c]] >= t:
            break
        heap[k] = heap[c]
        place[heap[k]] = k
        k = c
    heap[k] = i
    place[i] = k


@numba.njit(error_model="numpy", nogil=True, _nrt=False)
def by_hand(indptr, indices, data, x, v, moved, times, heap, place, first, second, events, rng):
    for j in range(x.shape[0]):
        a, b = 0.0, 0.0
        for k in range(indptr[j], indptr[j + 1]):
            a += data[k] * x[indices[k]]
            b += data[k] * v[indices[k]]
        times[j] = arrival(v[j] * a, v[j] * b, rng.standard_exponential())
        sift(times, heap, place, j)
    now = 0.0
    for _ in range(events):
        i = heap[0]
        now = times[i]
        s = now - moved[i]
        first[i] += s * (x[i] + 0.5 * v[i] * s)
        second[i] += s * (x[i] * x[i] + x[i] * v[i] * s + v[i] * v[i] * s * s / 3.0)
        x[i] += v[i] * s
        moved[i] = now
        v[i] = -v[i]
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            a, b = 0.0, 0.0
            for k in range(indptr[j], indptr[j + 1]):
                m = indices[k]
                a += data[k] * (x[m] + v[m] * (now - moved[m]))
                b += data[k] * v[m]
            times[j] = now + arrival(v[j] * a, v[j] * b, rng.standard_exponential())
            sift(times, heap, place, j)
    return now


def tridiagonal(d):
    """The precision matrix."""
    return sparse.diags([-np.ones(d - 1), np.full(d, 2.1), -np.ones(d - 1)], [-1, 0, 1]).tocsr()


def run_by_hand(precision, events, seed):
    """Events per second of the loop above."""
    d = precision.shape[0]
    arrays = [np.zeros(d), np.random.default_rng(seed).choice([-1.0, 1.0], d), np.zeros(d), np.full(d, np.inf)]
    arrays += [np.arange(d), np.arange(d), np.zeros(d), np.zeros(d)]
    rows = precision.indptr.astype(np.int64), precision.indices.astype(np.int64), precision.data
    began = time.perf_counter()
    by_hand(*rows, *arrays, events, np.random.default_rng(seed))
    return events / (time.perf_counter() - began)


def run_framework(process, events, seed):
    """Events per second of `pdmp.sample`, by its own clock: from the first event to the last."""
    run = pdmp.sample(process, events=events, seed=seed, store="moments", progress=False)
    return events / run.stats["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=[10, 1_000, 100_000])
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--pairs", type=int, default=7)
    args = parser.parse_args()
    print("events per second, medians; ratio = by hand / framework")
    print(f"{'d':>8} {'by hand':>12} {'framework':>12} {'ratio':>7} {'range':>15}")
    for d in args.dims:
        precision = tridiagonal(d)
        process = pdmp.ZigZag(pdmp.models.Gaussian(np.zeros(d), precision))
        run_by_hand(precision, 1_000, 0), run_framework(process, 1_000, 0)
        pairs = [
            (run_by_hand(precision, args.events, s), run_framework(process, args.events, s)) for s in range(args.pairs)
        ]
        hand, ours = (statistics.median(c) for c in zip(*pairs, strict=True))
        ratios = sorted(a / b for a, b in pairs)
        low, high = ratios[0], ratios[-1]
        print(f"{d:>8} {hand:>12,.0f} {ours:>12,.0f} {statistics.median(ratios):>7.2f} {low:>7.2f}-{high:.2f}")


if __name__ == "__main__":
    main()
