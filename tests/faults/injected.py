"""A process that runs what it is told in children, which can be killed: ``python -m tests.faults.injected``.

It imports the package once, in plain Python, and forks a child for each line that it reads: kind of run, executor, path
of the checkpoint. It answers with the child's number; the child leads a group of its own, with the workers of its pool,
and writes the digest of its result beside the checkpoint when it ends.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import multiprocessing
import os
import signal
import sys
import warnings

import numpy as np

import discrete
import pdmp
from pdmp.engine import checkpoint as checkpoints
from pdmp.engine import run as run_module
from pdmp.engine.executors import Segments

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
LOGISTIC = pdmp.models.LogisticRegression(X, (X[:, 0] + rng.standard_normal(30) > 0.0).astype(float))
PAIRS = pdmp.models.LinearGaussian(X, X[:, 1])

#: Four kinds of run: of the path everything is kept, a grid, nothing, and a run that stops by its effective draws.
KINDS = {
    "skeleton": lambda: (pdmp.BPS(LOGISTIC, metric="diagonal", refresh_rate=1.0), {"events": 300, "warmup": 0.3}),
    "grid": lambda: (pdmp.LocalBPS(PAIRS), {"time": 12.0, "store": "grid", "draws": 50}),
    "moments": lambda: (
        discrete.SGRRLD(pdmp.gradients.Minibatch(LOGISTIC, 5, draw="reshuffle"), 0.01),
        {"steps": 600, "store": "moments", "warmup": 0.1},
    ),
    "goal": lambda: (pdmp.ZigZag(PAIRS), {"ess": 80, "warmup": 0.2}),
}
EXECUTORS = ("threads", "pool")


def digest(run):
    """Hash of everything that a run has recorded."""
    total = hashlib.sha256()
    for record in run.records:
        arrays = [record.times, record.kinds, record.xs, record.vs, record.counts, *record.integrals, record.grid.rows]
        for array in arrays:
            total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def run(kind, executor, path):
    """Run, or resume, and return the digest."""
    process, call = KINDS[kind]()
    call |= {"seed": 4, "chains": 2, "initial": np.full(3, 0.1), "progress": False, "checkpoint": path}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if executor == "threads":
            return digest(pdmp.sample(process, **call))
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            return digest(pdmp.sample(process, **call, executor=Segments(pool, 0.02)))


def child(kind, executor, path):
    os.setpgid(0, 0)
    checkpoints.CHECKPOINT_SECONDS = 0.01
    run_module.POLL_SECONDS = 0.005
    found = run(kind, executor, path)
    with open(f"{path}.part", "w") as file:
        file.write(found)
    os.replace(f"{path}.part", f"{path}.digest")  # whole, or not there, when the child is killed


def main():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that end are gone
    for line in sys.stdin:
        kind, executor, path = line.split()
        number = os.fork()
        if number == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            code = 1
            try:
                child(kind, executor, path)
                code = 0
            finally:
                os._exit(code)
        print(number, flush=True)


if __name__ == "__main__":
    main()
