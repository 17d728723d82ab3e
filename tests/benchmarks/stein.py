"""The kernelised Stein discrepancy side by side: this package, numpy through matrix products, and `stein_thinning`.

All on two threads and the same draws, d = 10, inverse multiquadric kernel; medians of alternating rounds. The numpy
version is the fastest plain one: blocks of rows, all inner products by matrix products (which use BLAS's threads).
`stein_thinning` (PyPI, ``pip install stein-thinning``) is left out if it is not installed; it makes P × P matrices.
Beside them the flop limit: how fast a small compiled loop makes the same mix of operations (subtractions, fused
multiply-adds, a square root and a division for each pair) on numbers in registers, so that nothing but arithmetic
counts; and FSSD-opt at 20,000 draws with ten locations and 100 iterations::

    python tests/benchmarks/stein.py [--draws 20000] [--rounds 5] [--quick] [--large]
"""

import os

THREADS = 2
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{library}_NUM_THREADS"] = str(THREADS)
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:THREADS]))

import argparse  # noqa: E402
import concurrent.futures  # noqa: E402
import math  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402

import numba  # noqa: E402
import numpy as np  # noqa: E402

from pdmp.diagnostics import fssd, ksd  # noqa: E402
from pdmp.native.classes import FAST  # noqa: E402

D, BLOCK = 10, 1_000
LANES = 64  #: independent pairs in the loop of the flop limit


def numpy_ksd(x, s):
    """KSD in blocks of rows, inner products by matrix products."""
    n, d = x.shape
    squares, along, total = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", x, s), 0.0
    for i in range(0, n, BLOCK):
        a, b = x[i : i + BLOCK], s[i : i + BLOCK]
        rho = squares[i : i + BLOCK, None] + squares - 2.0 * (a @ x.T)
        cross = along[i : i + BLOCK, None] + along - a @ s.T - b @ x.T
        inverse = 1.0 / (1.0 + rho)
        root = np.sqrt(inverse)
        cube = root * inverse
        total += np.sum(root * (b @ s.T) + cube * (cross + d) - 3.0 * cube * inverse * rho)
    return math.sqrt(total) / n


@numba.njit(fastmath=FAST, nogil=True, error_model="numpy")
def arithmetic(pairs, start):
    """The operations of `pairs` pairs in ten dimensions, without their memory."""
    rho, cross, dot = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    total, a, b = 0.0, start, 1.0 + start
    for _ in range(pairs // LANES):
        for j in range(LANES):
            x, y = a + j * 1e-3, b - j * 1e-3
            r, c, e = 0.0, 0.0, 0.0
            for k in range(D):
                u, v = x - k * a, y - k * b
                r += u * u
                c += u * v
                e += v * y
            rho[j], cross[j], dot[j] = r, c, e
        for j in range(LANES):
            root = 1.0 / math.sqrt(1.0 + rho[j])
            inverse = root * root
            cube = root * inverse
            total += dot[j] * root + cube * (cross[j] + D) - 3.0 * cube * inverse * rho[j]
        a += 1e-9
    return total


def limit(n):
    """Seconds that the arithmetic of all pairs of n draws takes on all threads."""
    pairs = n * (n - 1) // 2 // THREADS
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        before = time.perf_counter()
        list(pool.map(arithmetic, [pairs] * THREADS, [1e-3] * THREADS))
        return time.perf_counter() - before


def seconds(function):
    before = time.perf_counter()
    value = function()
    return time.perf_counter() - before, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="4,000 draws, two rounds")
    parser.add_argument("--large", action="store_true", help="200,000 draws as well, and the memory that they take")
    options = parser.parse_args()
    n, rounds = (4_000, 2) if options.quick else (options.draws, options.rounds)
    x = np.random.default_rng(0).standard_normal((n, D))
    s = -x
    sides = {"pdmp": lambda: ksd(x, s, threads=THREADS), "numpy": lambda: numpy_ksd(x, s)}
    try:
        from stein_thinning.native import make_imq
        from stein_thinning.stein import ksd as peer

        kernel = make_imq(x, preconditioner="id")
        sides["stein_thinning"] = lambda: peer(lambda i, j: kernel(x[i], x[j], s[i], s[j]), n)[-1]
    except ImportError:
        print("stein_thinning is not installed")
    ksd(x[:300], s[:300])
    arithmetic(10_000, 0.1)
    times = {name: [] for name in [*sides, "limit"]}
    for _ in range(rounds):
        for name, side in sides.items():
            took, value = seconds(side)
            times[name].append(took)
            if name != "pdmp" and len(times[name]) == 1:
                print(f"{name}: KSD {float(np.squeeze(value)):.8f}, here {ksd(x, s):.8f}")
        times["limit"].append(limit(n))
    ours = np.array(times["pdmp"])
    print(f"\n{n:,} draws, d = {D}, {THREADS} threads, medians of {rounds} rounds")
    for name, each in times.items():
        ratio = np.median(np.array(each) / ours)
        print(f"  {name:16s}{np.median(each):9.3f} s   {ratio:8.2f} times pdmp's")
    fssd(x[:300], s[:300])
    print(f"  FSSD-opt, J = 10, 100 iterations: {seconds(lambda: fssd(x, s, 10))[0]:.3f} s")
    if options.large:
        x = np.random.default_rng(1).standard_normal((200_000, D))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took, value = seconds(lambda: ksd(x, -x, threads=THREADS))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"  200,000 draws: {took:.1f} s, {(after - before) / 1024:.0f} MB more, KSD {value:.6f}")


if __name__ == "__main__":
    main()
