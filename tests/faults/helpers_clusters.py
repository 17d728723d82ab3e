"""What `test_clusters.py` and other test modules share."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal

import numpy as np
import pytest

from tests.toys import Telegraph

LONG = {"events": 3_000, "chains": 3, "seed": 6, "warmup": 0.1}


class Killing(Telegraph):
    """Kills its worker in the middle of a segment, once."""

    def __init__(self, path):
        super().__init__()
        self.path, self._home = path, os.getpid()  # not `home`: a checkpoint tells by it

    def helper_threads(self, state):
        if os.getpid() != self._home and state.now[0] > 20.0 and not os.path.exists(self.path):
            pathlib.Path(self.path).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return contextlib.nullcontext()


def parts(folder, n, p, files):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    folder.mkdir()
    rng = np.random.default_rng(5)
    for k in range(files):
        X = rng.standard_normal((n // files, p))
        y = rng.poisson(np.exp(0.5 + 0.3 * X[:, 0] - 0.2 * X[:, 1]))
        table = pandas.DataFrame(X, columns=[f"x{j}" for j in range(p)]).assign(y=y)
        table.to_parquet(folder / f"{k:03}.parquet")
    return folder


def limited(more):
    """Let this process allocate so many bytes beside what it has."""
    import resource

    status = pathlib.Path("/proc/self/status").read_text()
    now = 1024 * int(status.split("VmData:")[1].split()[0])
    resource.setrlimit(resource.RLIMIT_DATA, (now + more, resource.RLIM_INFINITY))


def fails(size):
    try:
        np.ones(size // 8)
    except MemoryError:
        return True
    return False
