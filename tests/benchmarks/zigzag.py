"""Local Zig-Zag on a tridiagonal Gaussian: the framework against a loop written by hand for that one case.

Run as ``python -m tests.benchmarks.zigzag [--quick]``. The precision has 2.1 on the diagonal and -1 beside it. Both
sides keep the exact integrals of x and x², and nothing else of the path (the framework also the batch means that its
ess needs); they alternate in one process, and the table shows medians and the ratio of neighbouring pairs. What limits
both at large d is memory latency: an event touches some fifteen cache lines at random places. The column "latency" is
the time of one dependent access at random to as much memory as the chain has, and "accesses" how many of these would
explain the growth of the framework's time for an event since the first row. A Gaussian Markov random field on a grid of
1000 x 1000 runs at the end.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numba
import numpy as np
import scipy.sparse as sparse

import pdmp
from tests.checks import new_chain


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


def grid(n):
    """The precision matrix of a Markov random field on an n x n grid."""
    line = sparse.diags([-np.ones(n - 1), np.full(n, 2.05), -np.ones(n - 1)], [-1, 0, 1])
    return (sparse.kron(line, sparse.eye(n)) + sparse.kron(sparse.eye(n), line)).tocsr()


@numba.njit
def chase(order, steps):
    k = 0
    for _ in range(steps):
        k = order[k, 0]
    return k


def latency(size, steps=1_000_000):
    """Nanoseconds of one dependent access at random within `size` bytes, by a walk along a single cycle of lines."""
    n = max(size // 64, 16)
    order = np.zeros((n, 8), np.int64)
    cycle = np.random.default_rng(0).permutation(n)
    order[cycle, 0] = np.roll(cycle, -1)
    chase(order, n)
    began = time.perf_counter()
    chase(order, steps)
    return 1e9 * (time.perf_counter() - began) / steps


def arrays(tree):
    """All arrays in nested named tuples, a view counted as what it is a view of."""
    if isinstance(tree, np.ndarray):
        yield tree if tree.base is None else tree.base
    elif isinstance(tree, tuple):
        for leaf in tree:
            yield from arrays(leaf)


def memory(process):
    """Bytes that a chain has, without those of its model."""
    chain = new_chain(process, np.zeros(process.dim), 0, events=1, store="moments")
    held = {id(a): a.nbytes for a in arrays((chain.state, chain.recording))}
    return sum(held.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", type=int, nargs="+", default=[10, 1_000, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=3_000_000)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="three pairs of a million events")
    args = parser.parse_args()
    if args.quick:
        args.events, args.pairs = 1_000_000, 3
    print("events per second, medians; ratio = by hand / framework")
    print(
        f"{'d':>8} {'by hand':>12} {'framework':>12} {'ratio':>7} {'range':>15} {'ns/event':>9} {'bytes/d':>8} "
        f"{'latency':>8} {'accesses':>9}"
    )
    first = None
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
        each, size = 1e9 / ours, memory(process)
        wait = latency(size)
        first = (each, wait) if first is None else first
        accesses = (each - first[0]) / (wait - first[1]) if wait > first[1] + 1.0 else 0.0
        print(
            f"{d:>8} {hand:>12,.0f} {ours:>12,.0f} {statistics.median(ratios):>7.2f} {low:>7.2f}-{high:<7.2f} "
            f"{each:>9.0f} {size / d:>8.0f} {wait:>8.1f} {accesses:>9.1f}",
            flush=True,
        )
    process = pdmp.ZigZag(pdmp.models.Gaussian(0.0, grid(1_000)))
    run_framework(process, 1_000, 0)
    speed = run_framework(process, args.events, 1)
    print(f"grid of 1000 x 1000, five entries a row: {speed:,.0f} events per second, {memory(process) / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
