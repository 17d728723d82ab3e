"""What a regression on 10⁶ to 10¹⁰ rows costs on 1 to 1,000 workers: measured here, simulated from it.

`pdmp.regression` on a folder of Parquet files has a set-up, passes over all rows that are spread over the workers,
and chains, which look at single rows. Measured here, on one machine: a pass per row, the coding of a row, a task of a
Dask cluster and the addition of its sums; a proposal; and how long it takes to get the row that a proposal looks at,
from a memory-mapped file whose pages are in memory, from the disk, or from a worker (of a cluster on this machine: a
network adds its latency). Rows are drawn in proportion to bounds that do not depend on where the chain is, so they
can be asked for ahead of the path: the simulated chain has a batch of D rows while the next D are on their way, from
all workers, each with the latencies that were measured.

The events for an effective draw do not depend on the number of rows, so that only the set-up grows with it; the
script measures them at two numbers of rows. All chains together look at some ten thousand rows for 400 effective
draws, so that the way of these rows hardly matters, and the set-up is all that is to be spread. Assumed, not
measured: that a worker has 64 GB for the pages of its rows, and reads what does not fit at the speed of the disk
here; and that chains, four, have a worker of their own where there are as many.

    python examples/cluster_cost.py [--quick] [--output FOLDER]

Work is measured in seconds of a processor, latencies and the disk by the clock, which is right where nothing else runs.
Writes cluster_cost.png and prints a table; exit code 1 if what it measured contradicts the above. Needs
`pip install 'pdmp[formula,data,dask]'`. Time: `--quick` half a minute, otherwise a few minutes.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import pdmp
from pdmp.formulas.design import describe
from pdmp.formulas.families import family_of
from pdmp.formulas.fitting import make_model
from pdmp.processes.regression_zigzag import RegressionZigZag

COLUMNS = 9
DRAWS, CHAINS, WARMUP = 400.0, 4, 0.2
MEMORY = 64e9  #: bytes of a worker's pages, assumed
NEWTON = 8  #: passes of Newton's method, about
BLOCKS = 2.0**20  #: numbers in a block of rows, whose sums are one result
ROWS = [10**k for k in range(6, 11)]
WORKERS = [1, 10, 100, 1_000]
DEPTHS = [1, 10, 100, 1_000, 10_000, 100_000]
DEPTH = 10_000


def write_rows(folder, n, files=4):
    """Parquet files of n rows in all: logistic regression."""
    import pandas

    rng = np.random.default_rng(1)
    beta = rng.standard_normal(COLUMNS) / np.sqrt(COLUMNS)
    for k in range(files):
        X = rng.standard_normal((n // files, COLUMNS))
        y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ beta))).astype(int)
        table = pandas.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)]).assign(y=y)
        table.to_parquet(folder / f"{k}.parquet")
    return folder


def model_of(folder):
    """The model, and the seconds that it took to code it."""
    from formulae.environment import Environment

    formula = "y ~ " + " + ".join(f"x{j}" for j in range(COLUMNS))
    began = time.process_time()
    found = make_model(describe(formula), folder, family_of("bernoulli"), None, None, None, None, None, Environment([]))
    return found[0], time.process_time() - began


def seconds(call, times, clock=time.process_time):
    """Of the fastest of so many calls, of a processor, as other programs may run here; or by the clock."""
    found = []
    for _ in range(times):
        began = clock()
        call()
        found.append(clock() - began)
    return min(found)


def take(path, rows):
    """Rows of a file, on the worker that has it."""
    return np.load(path, mmap_mode="r")[rows]


def chain(model, events):
    """Of a run: seconds of an event, proposals and rows for each, events for an effective draw of the worst mean."""
    process = RegressionZigZag(model)
    began = time.process_time()
    run = pdmp.sample(process, events=events, chains=1, seed=1, progress=False)
    spent, flips = time.process_time() - began, run.stats["total_events"]
    each = flips / max(float(np.min(run.ess())), 1e-9)
    return spent / flips, run.stats["data_terms"] / flips, each


def measure(n, events, folder):
    """All that is measured here, seconds."""
    found = {}
    little, large = write_rows(folder / "a", n // 4), write_rows(folder / "b", n)
    chain(model_of(little)[0], 100)  # compiled
    few, fixed = min((model_of(little) for _ in range(2)), key=lambda one: one[1])
    fewer = chain(few, events)
    model, coding = min((model_of(large) for _ in range(2)), key=lambda one: one[1])
    found["code"] = max(coding - fixed, 0.1 * coding) / (model.n_data - few.n_data)
    found["fixed"] = max(fixed - found["code"] * few.n_data, 0.0)
    x, rng = model.initial, np.random.default_rng(0)
    found["pass"] = seconds(lambda: model.blocks.gradient(x + 1e-3 * rng.standard_normal(model.dim)), 5) / model.n_data
    found["event"], found["rows"], found["each"] = chain(model, events)
    found["each, a quarter of the rows"] = fewer[2]

    path, mapped = model.coded.files.path("X"), model.X
    width = mapped.shape[1]
    rows = rng.integers(0, model.n_data, 2_000)
    found["map"] = seconds(lambda: [float(mapped[i, 0]) for i in rows], 5) / len(rows)
    handle, size = os.open(path, os.O_RDONLY), 8 * width
    if hasattr(os, "posix_fadvise"):
        cold = folder / "cold"
        cold.write_bytes(pathlib.Path(path).read_bytes())
        os.close(handle)
        handle = os.open(cold, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    some = rng.permutation(model.n_data)[:500]
    began = time.perf_counter()
    for i in some:
        os.pread(handle, size, 128 + int(i) * size)
    found["disk"] = (time.perf_counter() - began) / len(some)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    began = time.perf_counter()
    while os.read(handle, 2**22):
        pass
    found["byte"] = (time.perf_counter() - began) / (model.n_data * size)
    os.close(handle)
    return found | workers(path, model.n_data)


def workers(path, n):
    """Latencies of a request to a worker, and seconds of a row more, of a request more, and of a task of a pass."""
    import distributed

    rng = np.random.default_rng(2)
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            places = sorted(client.scheduler_info()["workers"])

            def ask(rows, worker=0):
                return client.submit(take, path, rng.integers(0, n, rows), workers=[places[worker]], pure=False)

            ask(1).result()
            latencies = []
            for _ in range(60):
                began = time.perf_counter()
                ask(1).result()
                latencies.append(time.perf_counter() - began)
            many = seconds(lambda: ask(20_000).result(), 5, time.perf_counter)
            requests = 50
            request = seconds(lambda: client.gather([ask(1, k % 2) for k in range(requests)]), 5) / requests
    sums = [np.zeros((COLUMNS + 1, COLUMNS + 1)) for _ in range(2)]
    return {
        "latencies": np.array(latencies),
        "row": max(many - min(latencies), 0.0) / 20_000,
        "request": request,
        "add": seconds(lambda: [a + b for a, b in zip([sums] * 8, [sums] * 8, strict=True)], 50),
    }


def set_up(found, n, w):
    """Seconds of all passes: the rows of a worker, the tasks of a pass one after the other, its results added."""
    width = 8.0 * (COLUMNS + 4)
    share, blocks = n / w, n * (COLUMNS + 4) / BLOCKS
    spills = share * width > MEMORY
    one = max(share * found["pass"], share * width * found["byte"] if spills else 0.0)
    passes = NEWTON + 2  # and the bounds, and the moments
    tasks = (passes + 2) * (w * found["request"] + blocks * found["add"])
    return found["fixed"] + share * found["code"] + passes * one + tasks


def events_per_second(found, depth, w, rng, batches=60):
    """Of one chain that has `depth` rows while the next ones come from w workers; 0: from memory-mapped files.

    A batch is asked for when the one before it has come; each worker that has some of its rows takes a latency that was
    measured, all at the same time, and what asks them sends one request after the other.
    """
    if depth == 0:
        return 1.0 / (found["event"] + found["rows"] * found["map"])
    asked = max(round(w * -np.expm1(-depth / w)), 1)  # workers that have some of the rows
    use = depth * found["event"] / found["rows"]  # until they are used up
    ready, now = 0.0, 0.0
    waits = found["latencies"]
    for _ in range(batches):
        ready += (asked - 1) * found["request"] + rng.choice(waits, asked).max() + depth * found["row"]
        now = max(now, ready)  # a batch is used when it is there
        ready = max(ready, now)  # and the next one is on its way meanwhile
        now += use
    return batches * depth / found["rows"] / now


def on_disk(found):
    """Events per second where each row is read from the disk."""
    return 1.0 / (found["event"] + found["rows"] * found["disk"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path())
    args = parser.parse_args()
    n, events = (40_000, 20_000) if args.quick else (1_000_000, 200_000)
    with tempfile.TemporaryDirectory() as name:
        for part in "ab":
            (pathlib.Path(name) / part).mkdir()
        found = measure(n, events, pathlib.Path(name))
    median = float(np.median(found["latencies"]))
    print(f"measured on {n:,} rows of {COLUMNS} columns")
    for what, key in [("a row coded", "code"), ("a row in a pass", "pass"), ("an event", "event")]:
        print(f"{what:>34} {1e6 * found[key]:10.3g} µs")
    needed = DRAWS * found["each"] / (1.0 - WARMUP)
    print(f"{'rows looked at for an event':>34} {found['rows']:10.3g}")
    print(f"{f'and for {DRAWS:.0f} effective draws':>34} {needed * found['rows']:10,.0f}")
    print(
        f"{'events for an effective draw':>34} {found['each']:10.3g}  "
        f"({found['each, a quarter of the rows']:.3g} of n/4)"
    )
    for what, value in [
        ("a row from a map, in memory", found["map"]),
        ("a row from the disk", found["disk"]),
        ("a request to a worker, fastest", min(found["latencies"])),
        ("a request to a worker, median", median),
        ("one of many requests, or a task", found["request"]),
        ("a row more in a request", found["row"]),
        ("the sums of a block added", found["add"]),
    ]:
        print(f"{what:>34} {1e6 * value:10.3g} µs")

    rng, speeds, total = np.random.default_rng(3), {}, {}
    depths = {w: [events_per_second(found, d, w, rng) for d in DEPTHS] for w in WORKERS}
    print(f"\n{'':27} events/s of a chain, rows from          seconds to {DRAWS:.0f} draws")
    print(
        f"{'rows':>8} {'workers':>7} {'set-up':>10} {'map':>9} {'disk':>8} {'1 ahead':>8} "
        f"{f'{DEPTH:,} ahead':>12} {'map':>10} {'ahead':>10}"
    )
    for rows in ROWS:
        for w in WORKERS:
            start, chains = set_up(found, rows, w), min(CHAINS, w)
            speeds["map"] = events_per_second(found, 0, w, rng)
            speeds["one"], speeds["ahead"] = (events_per_second(found, d, w, rng) for d in (1, DEPTH))
            total[rows, w] = tuple(start + needed / chains / speeds[way] for way in ("map", "ahead"))
            print(
                f"{rows:8.0e} {w:7,} {start:8.4g} s {speeds['map']:9,.0f} {on_disk(found):8,.0f} {speeds['one']:8,.0f} "
                f"{speeds['ahead']:12,.0f} {total[rows, w][0]:10.4g} {total[rows, w][1]:10.4g}"
            )

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for w, colour in zip(WORKERS, ["#777777", "#2c7fb8", "#12508f", "#a32814"], strict=True):
        label = f"{w:,} worker{'s' if w > 1 else ''}"
        axes[0].loglog(ROWS, [total[rows, w][1] for rows in ROWS], "o-", color=colour, label=label)
        axes[1].loglog(DEPTHS, depths[w], "o-", color=colour, label=f"from {label}")
    axes[1].axhline(events_per_second(found, 0, 1, rng), color="black", ls=":", label="from a map, in memory")
    axes[1].axhline(on_disk(found), color="black", ls="--", label="from the disk")
    axes[0].set(xlabel="rows", ylabel=f"seconds to {DRAWS:.0f} effective draws", title="rows asked for ahead")
    axes[1].set(xlabel="rows asked for ahead", ylabel="events per second of a chain")
    for one in axes:
        one.legend(frameon=False)
    file = args.output / "cluster_cost.png"
    figure.savefig(file, dpi=150)
    plt.close(figure)

    last = ROWS[-1]
    rows = [
        ("events for a draw: n over n/4 rows", found["each"] / found["each, a quarter of the rows"], 0.6, 1.6),
        ("ahead of one by one, events/s, 10 workers", depths[10][4] / depths[10][0], 2.0, np.inf),
        ("1 over 1,000 workers, most rows, seconds", total[last, 1][1] / total[last, WORKERS[-1]][1], 10.0, np.inf),
    ]
    passed = True
    for what, value, low, high in rows:
        passed &= bool(low < value < high)
        print(f"{what}: {value:.3g} ({low:g} to {high:g}) {'passed' if low < value < high else 'FAILED'}")
    print(f"picture: {file}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
