"""What `test_executors.py` and other test modules share."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import pickle
import signal

import numpy as np

import pdmp
from pdmp.engine import executors


class Elsewhere(concurrent.futures.Executor):
    """Other machines, as far as a segment can tell: everything is pickled, and each worker has a memory of its own.

    The workers take the tasks in turn. Without `files` they cannot open those of this machine. `log` has the bytes that
    were sent and received.
    """

    def __init__(self, workers=2, files=True):
        self._max_workers, self.files = workers, files
        self.opened, self.log, self.tasks = [type(executors._open)() for _ in range(workers)], [], 0

    def submit(self, function, /, *args):
        sent = pickle.dumps((function, args), protocol=4)
        future, kept = concurrent.futures.Future(), (executors._open, executors.platform.node)
        handler = signal.getsignal(signal.SIGINT)
        executors._open = self.opened[self.tasks % len(self.opened)]
        self.tasks += 1
        if not self.files:
            executors.platform.node = lambda: "another machine"
        try:
            function, args = pickle.loads(sent)
            received = pickle.dumps(function(*args), protocol=4)
            self.log.append((len(sent), len(received)))
            future.set_result(pickle.loads(received))
        finally:
            executors._open, executors.platform.node = kept
            if signal.getsignal(signal.SIGINT) is not handler:  # as a worker sets it
                signal.signal(signal.SIGINT, handler)
        return future


def regression(n=2_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return pdmp.models.LogisticRegression(X, (X[:, 0] > 0.3 * rng.normal(size=n)).astype(float), prior_scale=1.0)


CALL = {"events": 300, "chains": 3, "seed": 3, "warmup": 0.1}


def spawned(workers=2):
    """A pool of fresh Python processes."""
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
