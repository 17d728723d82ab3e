"""Workers that may allocate less than the data take: the draws are those of one process without a limit."""

import os
import sys

import numpy as np
import pytest

import pdmp
from pdmp.formulas import fitting
from tests.faults.helpers_clusters import fails, limited, parts

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

ROWS, COLUMNS, FILES = 800_000, 20, 20  #: 128 MB of coded rows
LIMIT = 64 * 2**20  #: bytes that a worker may allocate beside what it has when it has compiled


@pytest.mark.release
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA counts all allocations on Linux only")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_shards_larger_than_the_memory_of_a_worker(tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 1_000)
    folder, little = parts(tmp_path / "t", ROWS, COLUMNS, FILES), parts(tmp_path / "little", 2_000, COLUMNS, 4)
    (tmp_path / "shared").mkdir()
    formula = "y ~ " + " + ".join(f"x{j}" for j in range(COLUMNS))
    options = {"events": 20_000, "chains": 2, "seed": 1, "progress": False}
    alone = pdmp.regression(formula, folder, "poisson", **options)
    assert os.path.getsize(alone.model.coded.files.path("X")) >= 2 * LIMIT
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster:
        with distributed.Client(cluster) as client:
            more = options | {"executor": client, "folder": tmp_path / "shared"}
            pdmp.regression(formula, little, "poisson", **more)  # so that both have compiled
            client.run(limited, LIMIT)
            assert all(client.run(fails, 2 * LIMIT).values())
            found = pdmp.regression(formula, folder, "poisson", **more)
    assert all(np.array_equal(alone[f"x{j}"], found[f"x{j}"]) for j in range(COLUMNS))
