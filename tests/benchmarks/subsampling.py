"""Exactly sub-sampled Zig-Zag on logistic regression, from a thousand to ten million data.

    python -m tests.benchmarks.subsampling [--quick] [--sizes 1000 10000 …] [--features normal t]
    python -m tests.benchmarks.subsampling --ratio        importance against uniform draws, N = 10⁵, side by side
    python -m tests.benchmarks.subsampling --disk 100000000 --folder FOLDER     features in a file (4 GB), not in memory
    python -m tests.benchmarks.subsampling --boomerang    Boomerang against Zig-Zag, regressions of two families

Model: d features without intercept, a prior of scale 10, labels drawn from it at coefficients that are standard normal
over √d. Features: "normal" are standard normal; "t" are Student's t with five degrees of freedom, over their standard
deviation. They are generated in blocks into a `numpy.memmap`, and stored for the sampler in single precision.

Data terms per flip, nanoseconds per proposal (data drawn at random from all N: memory latency is part of it), min-ESS
over coordinates, per second and per pass over the data. Set-up (the mode, the alias table) and compilation are apart.

"--disk": the file is read once, forgotten by the operating system's cache, and used as a user would: the model, its
process with the mode and the alias table, and a run until every mean and standard deviation has 400 effective draws.

"--boomerang": counts and Student-t responses; an intercept and nine standard normal columns, each pair with the stated
correlation; ESS of means and of standard deviations, the smallest of all coordinates, by seconds of the processor.
"""

import argparse
import math
import os
import pathlib
import statistics
import tempfile
import time

import numpy as np

import pdmp
from pdmp.gradients import ControlVariate
from pdmp.models.priors import Gamma, HalfStudentT, Normal
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import PoissonLaw, StudentTLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_zigzag import RegressionZigZag

BLOCK = 2**18


def logistic_data(n, d, features, folder, seed=0):
    """A `LogisticRegression` whose design is a file."""
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(d) / np.sqrt(d)
    X = np.lib.format.open_memmap(pathlib.Path(folder) / f"X_{features}_{n}.npy", "w+", np.float32, (n, d))
    y = np.empty(n)
    for start in range(0, n, BLOCK):
        m = min(BLOCK, n - start)
        if features == "normal":
            block = rng.standard_normal((m, d))
        else:
            block = rng.standard_t(5, (m, d)) * np.sqrt(3.0 / 5.0)
        X[start : start + m] = block
        y[start : start + m] = rng.random(m) < 1.0 / (1.0 + np.exp(-block @ beta))
    X.flush()
    return pdmp.models.LogisticRegression(X, y, prior_scale=10.0, dtype=np.float32)


def anchor_of(model):
    """The mode; looked for from that of a thousandth of the data."""
    initial = None
    if model.n_data > 100_000:
        step = 100
        part = pdmp.models.LogisticRegression(np.array(model.X[::step]), model.y[::step], prior_scale=model.prior_scale)
        initial = part.mode()
    return model.mode(initial)


def measure(process, proposals, seed=1):
    """One run: data terms per flip, nanoseconds per proposal, min-ESS, passes over the data, seconds."""
    run = pdmp.sample(process, proposals=proposals, seed=seed, warmup=0.05, store="moments", progress=False)
    stats = run.stats
    return {
        "terms": stats["data_terms"] / max(stats["total_events"], 1),
        "ns": 1e9 * stats["seconds"] / stats["proposals"],
        "ess": float(np.min(run.ess())),
        "passes": stats["data_terms"] / process.model.n_data,
        "seconds": stats["seconds"],
    }


def table(sizes, features, d, proposals, draws=("uniform", "importance")):
    """A row for each N and draw, printed as it is measured; returns them as dicts."""
    rows = []
    print(f"d = {d}, {features} features; {proposals:,} proposals each")
    print(f"{'N':>10} {'draw':>11} {'set-up s':>9} {'terms/flip':>11} {'ns/prop':>8} {'ESS/s':>9} {'ESS/pass':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            model = logistic_data(n, d, features, folder)
            anchor = anchor_of(model)
            for draw in draws:
                began = time.perf_counter()
                process = pdmp.ZigZag(ControlVariate(model, 1, anchor=anchor, draw=draw))
                setup = time.perf_counter() - began
                measure(process, 1_000)
                row = {"n": n, "draw": draw, "setup": setup} | measure(process, proposals)
                rows.append(row)
                print(
                    f"{n:>10} {draw:>11} {setup:>9.2f} {row['terms']:>11.2f} {row['ns']:>8.0f} "
                    f"{row['ess'] / row['seconds']:>9.0f} {row['ess'] / row['passes']:>10.3g}",
                    flush=True,
                )
            del model, process
    return rows


def forget(path):
    """Drop a file from the cache of the operating system, which then reads it from the disk."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk(n, d, features, folder):
    """Seconds of reading the file, of the set-up from it, and of a run."""
    with tempfile.TemporaryDirectory() as small:
        y = logistic_data(100_000, d, features, small).y  # so many that their passes are those of more, on threads
        X = np.load(pathlib.Path(small) / f"X_{features}_100000.npy", mmap_mode="r")
        warm = pdmp.models.LogisticRegression(X, y, prior_scale=10.0)
        warm = pdmp.ZigZag(ControlVariate(warm, 1, draw="importance"))
        pdmp.sample(warm, ess=100, seed=1, progress=False)
    path, labels = folder / f"X_{features}_{n}.npy", folder / f"y_{features}_{n}.npy"
    if not labels.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.save(labels, logistic_data(n, d, features, folder).y)
    forget(path)
    began = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        buffer = bytearray(2**24)
        while file.readinto(buffer):
            pass
    reading = time.perf_counter() - began
    forget(path)
    y = np.load(labels)
    began, spent = time.perf_counter(), time.process_time()
    model = pdmp.models.LogisticRegression(np.load(path, mmap_mode="r"), y, prior_scale=10.0)
    made = time.perf_counter() - began
    provider = ControlVariate(model, 1, draw="importance")
    anchored = time.perf_counter() - began
    process = pdmp.ZigZag(provider)
    setup, spent = time.perf_counter() - began, time.process_time() - spent
    began = time.perf_counter()
    run = pdmp.sample(process, ess=400, seed=1, progress=False)
    print(
        f"N = {n:,}, d = {d}, {features}, {path.stat().st_size / 1e9:.2f} GB: reading {reading:.1f} s; set-up "
        f"{setup:.1f} s ({made:.1f} s the model, {anchored - made:.1f} s the mode, {setup - anchored:.1f} s bounds and "
        f"alias table; {spent:.1f} s of the processors), {setup / reading:.1f} times; "
        f"{time.perf_counter() - began:.1f} s to {np.min(run.ess()):.0f} effective draws, "
        f"{run.stats['data_terms']:,} data terms, {run.stats['bound_violations']} violations"
    )


def verdict(rows):
    """What the figures should be, by importance: constant data terms, time as memory allows, more from each pass."""
    ours = [r for r in rows if r["draw"] == "importance" and r["n"] >= 1_000]
    terms, ns = [r["terms"] for r in ours], [r["ns"] for r in ours]
    each = [r["ess"] / r["passes"] for r in ours]
    large = [t for r, t in zip(ours, terms, strict=True) if r["n"] >= 10_000] or terms
    print(f"data terms per flip, largest / smallest: {max(terms) / min(terms):.3f}")
    print(f"  and from N = 10⁴ on: {max(large) / min(large):.3f}")
    print(f"time per proposal over that of the smallest N: at most {max(ns) / ns[0]:.2f}")
    slope = np.polyfit(np.log([r["n"] for r in ours]), np.log(each), 1)[0] if len(ours) > 1 else np.nan
    print(f"ESS per pass grows as N^{slope:.2f}")


def ratio(d, features, proposals, pairs=5, n=100_000):
    """min-ESS per second, importance over uniform, alternating."""
    with tempfile.TemporaryDirectory() as folder:
        mapped = logistic_data(n, d, features, folder)
        model = pdmp.models.LogisticRegression(np.array(mapped.X), mapped.y, prior_scale=10.0, dtype=np.float32)
        anchor = anchor_of(model)
        both = {
            draw: pdmp.ZigZag(ControlVariate(model, 1, anchor=anchor, draw=draw)) for draw in ("uniform", "importance")
        }
        for process in both.values():
            measure(process, 1_000)
        found = []
        for seed in range(pairs):
            # Uniform draws need about ten times the proposals for the same effective sample size.
            a = measure(both["importance"], proposals, seed)
            b = measure(both["uniform"], 8 * proposals, seed)
            found.append((a["ess"] / a["seconds"], b["ess"] / b["seconds"], a["ns"], b["ns"]))
    ours, theirs, a, b = (statistics.median(c) for c in zip(*found, strict=True))
    ratios = sorted(f[0] / f[1] for f in found)
    print(
        f"N = {n:,}, d = {d}, {features}: min-ESS/s importance {ours:,.0f} ({a:.0f} ns a proposal), uniform "
        f"{theirs:,.0f} ({b:.0f} ns); ratio {statistics.median(ratios):.1f} ({ratios[0]:.1f}-{ratios[-1]:.1f})"
    )


def regression(law, n, d, correlation, seed=0):
    """Counts or Student-t responses with coefficients of half the size of standard normals over √d."""
    rng = np.random.default_rng(seed)
    columns = math.sqrt(1.0 - correlation) * rng.standard_normal((n, d - 1))
    X = np.column_stack([np.ones(n), columns + math.sqrt(correlation) * rng.standard_normal((n, 1))])
    z = X @ (0.5 * rng.standard_normal(d) / math.sqrt(d))
    y = rng.poisson(np.exp(z)) if law is PoissonLaw else z + rng.standard_t(4.0, n)
    spreads = [HalfStudentT(4.0, 2.0), Gamma(2.0, 10.0)] if law is StudentTLaw else []
    names = [f"x{j}" for j in range(d)]
    return MixedRegression(X, y, law(), names, [Normal(0.0, 2.5)] * d, [], spreads, intercept=0)


def boomerang(d, proposals, n=100_000):
    """The table of "--boomerang"."""
    print(f"N = {n:,}, {d} coefficients, {proposals:,} proposals each; rows a unit of time, ESS a CPU second")
    print(
        f"{'law':>14} {'corr.':>6} {'process':>16} {'rows':>7} {'ns/prop':>8} {'of means':>9} {'of sds':>9} {'both':>9}"
    )
    for law in (PoissonLaw, StudentTLaw):
        for correlation in (0.0, 0.9):
            model = regression(law, n, d, correlation)
            found = laplace(model)
            contestants = [("Zig-Zag", RegressionZigZag(model, found.mean, metric=pdmp.Metric(scales=found.sd)))]
            contestants += [
                (f"Boomerang {rate:g}", RegressionBoomerang(model, found.mean, rate)) for rate in (0.25, 1.0)
            ]
            for name, process in contestants:
                pdmp.sample(process, proposals=1_000, seed=1, progress=False)
                began = time.process_time()
                run = pdmp.sample(process, proposals=proposals, seed=1, warmup=0.05, progress=False)
                seconds = time.process_time() - began
                ess = {
                    key: float(np.min(value)) / seconds for key, value in pdmp.diagnostics.effective_draws(run).items()
                }
                print(
                    f"{law.__name__:>14} {correlation:>6} {name:>16} {run.stats['data_terms'] / run.end[0]:>7.2f} "
                    f"{1e9 * seconds / proposals:>8.0f} {ess['mean']:>9,.0f} {ess['sd']:>9,.0f} "
                    f"{min(ess.values()):>9,.0f}",
                    flush=True,
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**k for k in range(3, 8)])
    parser.add_argument("--features", nargs="+", default=["normal", "t"], choices=["normal", "t"])
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--proposals", type=int, default=5_000_000)
    parser.add_argument("--quick", action="store_true", help="up to N = 10⁵, a tenth of the proposals")
    parser.add_argument("--disk", type=int, metavar="N", help="only N data in a file")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("subsampling"), help="of that file")
    parser.add_argument("--ratio", action="store_true", help="only importance against uniform draws")
    parser.add_argument("--boomerang", action="store_true", help="only Boomerang against Zig-Zag")
    args = parser.parse_args()
    if args.quick:
        args.sizes, args.proposals = [n for n in args.sizes if n <= 100_000], args.proposals // 10
    if args.boomerang:
        boomerang(args.dim, args.proposals // 10)
        return
    for features in args.features:
        if args.disk:
            disk(args.disk, args.dim, features, args.folder)
        elif args.ratio:
            ratio(args.dim, features, args.proposals)
        else:
            verdict(table(args.sizes, features, args.dim, args.proposals))


if __name__ == "__main__":
    main()
