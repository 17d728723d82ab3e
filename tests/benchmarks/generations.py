"""The machine code of a wheel for each generation of processors, beside what is compiled for this one.

    python -m tests.benchmarks.generations

CPU seconds of a logistic regression with 2,000 rows and 20 columns, the least of ten runs, each with a process of its
own: code for the processor at hand, and for each of the `GENERATIONS` that it runs, with their ratios to that. In the
last column, whether all means are the same bits as with code for the processor at hand.
"""

import argparse
import os
import subprocess
import sys
import time
import warnings

import numpy as np

import pdmp
from pdmp.native.numba_internals import generations

SAMPLERS = {
    "HMC": (lambda model: pdmp.HMC(model, step=0.02), 4_000),
    "BPS": (pdmp.BPS, 60_000),
    "ZigZag": (pdmp.ZigZag, 12_000),
}


def measured():
    """CPU seconds of each sampler, and the sum of the means."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2_000, 20))
    model = pdmp.models.LogisticRegression(X, rng.random(2_000) < 1.0 / (1.0 + np.exp(-X[:, 0])))
    for make, events in SAMPLERS.values():
        process, least = make(model), np.inf
        pdmp.sample(process, events=20, seed=1, progress=False)
        for _ in range(10):
            began = time.process_time()
            run = pdmp.sample(process, events=events, seed=1, progress=False)
            least = min(least, time.process_time() - began)
        yield least, float(run.mean().sum())


def _elsewhere(processor):
    named = dict(zip(("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"), processor or (), strict=False))
    command = [sys.executable, "-m", "tests.benchmarks.generations", "--one"]
    out = subprocess.run(command, env=os.environ | named, check=True, capture_output=True, text=True).stdout
    return np.array(out.split()[-2 * len(SAMPLERS) :], float).reshape(-1, 2).T


def main():
    print(f"{'CPU s':32}" + "".join(f"{name:>16}" for name in SAMPLERS))
    own, means = _elsewhere(None)
    print(f"{'this processor':32}" + "".join(f"{seconds:16.3f}" for seconds in own))
    for processor in generations():
        taken, others = _elsewhere(processor)
        cells = "".join(f"{seconds:8.3f}{ratio:8.2f}" for seconds, ratio in zip(taken, taken / own, strict=True))
        print(f"{' '.join(processor):32}{cells}  {'the same bits' if np.array_equal(means, others) else 'other bits'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", action="store_true", help="the figures of one processor, in this process")
    if parser.parse_args().one:
        for pair in measured():
            print(*map(repr, pair))
    else:
        main()
