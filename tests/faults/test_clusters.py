"""Clusters whose workers and whose coordinator are killed: the run is bitwise that of one thread."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import pdmp
from pdmp.engine import executors
from pdmp.engine.checkpoint import Checkpoint
from pdmp.engine.executors import Segments
from pdmp.formulas import fitting
from tests.checks import plain_only
from tests.engine.helpers_executors import CALL, regression
from tests.engine.helpers_requirements import MODULE, module
from tests.engine.helpers_run import same
from tests.faults.helpers_clusters import LONG, Killing, parts
from tests.toys import Telegraph

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.exact,
    pytest.mark.skipif(os.name != "posix", reason="kill -9"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            yield client


@pytest.mark.slow
@pytest.mark.parametrize("files", [True, False])
def test_a_dask_client(client, files, monkeypatch):
    """Workers that cannot open the file are sent the model by scatter, once."""
    if not files:
        monkeypatch.setattr(executors.Contents, "_write", lambda self, *_: "")
    scatter, scattered = distributed.Client.scatter, []

    def counting(self, data, **options):
        scattered.append(data)
        return scatter(self, data, **options)

    monkeypatch.setattr(distributed.Client, "scatter", counting)
    process = pdmp.ZigZag(regression(30))
    one = pdmp.sample(process, **CALL)
    assert same(one, pdmp.sample(process, executor=Segments(client, 1e-9), **CALL))
    assert len(scattered) == (0 if files else 1)
    assert same(one, pdmp.sample(process, executor=client.get_executor(), **CALL))
    process.lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to workers .*lock"):
        pdmp.sample(process, executor=client, **CALL)


@plain_only
@pytest.mark.slow
def test_a_killed_worker_of_dask(client, tmp_path):
    run = pdmp.sample(Killing(str(tmp_path / "died")), executor=Segments(client, 0.05), **LONG)
    assert (tmp_path / "died").exists()
    assert same(run, pdmp.sample(Telegraph(), **LONG))


@plain_only
@pytest.mark.slow
def test_a_cluster_that_has_no_worker_yet(monkeypatch):
    """It is said once that the run waits for one; then the run is what it would have been."""
    monkeypatch.setattr(executors, "ALONE_SECONDS", 0.3)
    said = []
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:

            def warn(text):
                said.append(text)
                cluster.scale(1)

            monkeypatch.setattr(executors, "warn", warn)
            run = pdmp.sample(Telegraph(), executor=client, events=300, seed=6)
    assert len(said) == 1 and "the Dask cluster has no workers. What is left waits for one" in said[0]
    assert same(run, pdmp.sample(Telegraph(), events=300, seed=6))


@plain_only  # compiled, it would be over before
@pytest.mark.slow
def test_contents_that_every_worker_has_lost(client, monkeypatch):
    """They are scattered again. (`client.restart()` would lose them too, but may itself leave no worker at all.)"""
    monkeypatch.setattr(executors.Contents, "_write", lambda self, *_: "")
    recovers, found = executors.Cluster._recovers, []

    def losing(self, parcel, packed, seconds):
        scattered.add(self._whole)
        if len(scattered) == 2 and not lost:  # before any worker has read them
            lost.append(client.cancel(self._whole, force=True))
        return send(self, parcel, packed, seconds)

    def spy(self, error):
        found.append(recovers(self, error))
        return found[-1]

    send, scattered, lost = executors.Cluster._send, {None}, []
    monkeypatch.setattr(executors.Cluster, "_send", losing)
    monkeypatch.setattr(executors.Cluster, "_recovers", spy)
    run = pdmp.sample(Telegraph(), executor=Segments(client, 0.02), **LONG)
    assert lost and len(scattered) > 2 and found and all(found)
    assert same(run, pdmp.sample(Telegraph(), **LONG))


SCRIPT = """
import sys
import distributed
import pdmp
from pdmp.engine import chain, checkpoint
from pdmp.engine.executors import Segments
from tests.faults.helpers_clusters import LONG, Killing

if __name__ == "__main__":
    checkpoint.CHECKPOINT_SECONDS = 0.05
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            run = pdmp.sample(Killing(sys.argv[1]), executor=Segments(client, 0.02), checkpoint=sys.argv[2], **LONG)
    run.save(sys.argv[3])
"""


@plain_only
@pytest.mark.slow
def test_a_killed_worker_and_a_killed_coordinator(tmp_path):
    """kill -9 of a worker, then of the process that coordinates, when its checkpoint tells of a part of the run."""
    (tmp_path / "script.py").write_text(SCRIPT)
    died, checkpoint, saved = (tmp_path / name for name in ("died", "run.checkpoint", "run.npz"))
    command = [sys.executable, str(tmp_path / "script.py"), str(died), str(checkpoint), str(saved)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": os.environ.get("NUMBA_DISABLE_JIT", "0")}
    spent = 0
    for kill in (True, False):
        with open(tmp_path / "log", "ab") as log:
            coordinator = subprocess.Popen(
                command, cwd=tmp_path, env=environment, start_new_session=True, stdout=log, stderr=log
            )
        try:
            deadline = time.monotonic() + 600.0
            while kill and not (died.exists() and spent > LONG["events"] // 3):
                assert time.monotonic() < deadline and coordinator.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.05)
                if checkpoint.exists():
                    header, arrays = executors_checkpoint(checkpoint)
                    spent = sum(int(arrays[f"chain/{i}/0/counts"][1]) for i in header["chains"])
            if kill:
                coordinator.kill()
            assert coordinator.wait(600.0) == (-signal.SIGKILL if kill else 0), (tmp_path / "log").read_text()
        finally:
            try:
                os.killpg(coordinator.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    assert spent < LONG["chains"] * LONG["events"]  # it was killed on the way
    run, one = pdmp.load(saved), pdmp.sample(Telegraph(), **LONG)
    assert same(run, one)


def executors_checkpoint(path):
    from pdmp.engine.storage import read

    return read(path, "checkpoint")


def exchange(text):
    """In a worker: a module of that text instead of one of another version."""
    module(text)


@plain_only
@pytest.mark.slow
def test_a_worker_with_another_version_of_a_module(client, tmp_path, monkeypatch):
    """It refuses a chain, and rows of a formula; which one it is, and what differs, is said."""
    monkeypatch.setitem(sys.modules, "users_module", None)
    users, pids = module(MODULE), client.run(os.getpid)
    client.run(exchange, MODULE)
    process = pdmp.ZigZag(pdmp.models.from_function(users.function, 2))
    assert same(pdmp.sample(process, **CALL), pdmp.sample(process, executor=client, **CALL))
    address = max(pids)
    client.run(exchange, MODULE.replace("SHIFT = 0.0", "SHIFT = 3.0").replace("return x + LINKS", "return x - LINKS"))
    client.run(exchange, MODULE, workers=[min(pids)])
    text = rf"^`executor`: the worker on .* \(process {pids[address]}\) has another users_module\."
    with pytest.raises(pdmp.SamplingError, match=text + "function, of the file"):
        pdmp.sample(process, executor=client, **CALL | {"chains": 12})
    folder = parts(tmp_path / "t", 60, 2, 6)
    (tmp_path / "shared").mkdir()
    options = {"events": 50, "chains": 1, "seed": 1, "progress": False, "folder": tmp_path / "shared"}
    with pytest.raises(pdmp.SamplingError, match=text + "formula, of the file"):
        pdmp.regression("y ~ x0 + users.formula(x1)", folder, "poisson", executor=client, **options)


SCHEDULER = """
import sys
import time
import distributed

if __name__ == "__main__":
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(600.0)
"""


@plain_only
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # Dask warns of what it closes
def test_a_killed_scheduler(tmp_path, monkeypatch):
    """kill -9 of the scheduler: what came back is on the error and in the checkpoint, from which the call goes on."""
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    keep, kept = Checkpoint.keep, []
    long = LONG | {"events": 30_000}  # dozens of segments, also where one takes a tenth of the time

    def killing(self, i, chain):
        keep(self, i, chain)
        kept.append(i)
        if len(kept) == 4:
            os.killpg(scheduler.pid, signal.SIGKILL)

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    scheduler = subprocess.Popen(
        [sys.executable, str(tmp_path / "scheduler.py")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    try:
        with distributed.Client(scheduler.stdout.readline().strip(), timeout=3.0) as client:
            with monkeypatch.context() as patch:
                patch.setattr(Checkpoint, "keep", killing)
                with pytest.raises(pdmp.SamplingError, match="connection to the Dask scheduler is lost") as caught:
                    pdmp.sample(Telegraph(), executor=Segments(client, 0.02), checkpoint=tmp_path / "run", **long)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(scheduler.pid, signal.SIGKILL)
        scheduler.communicate()
    run, one = caught.value.run, pdmp.sample(Telegraph(), **long)
    assert caught.value.__cause__ is not None and 0 < run.events.sum() < one.events.sum()
    assert same(pdmp.sample(Telegraph(), checkpoint=tmp_path / "run", **long), one)


# ---------------------------------------------------------------------------------------------------------------
# Regressions whose data are on the workers


def deadly(x, path, home):
    """x; kills the worker that computes it, once."""
    if os.getpid() != home and not os.path.exists(path):
        pathlib.Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


@plain_only
@pytest.mark.slow
def test_a_regression_whose_workers_are_killed(client, tmp_path, monkeypatch):
    """One in the set-up, all before a process is chosen, one in a chain: draws are those without a cluster."""
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 20)
    folder, died = parts(tmp_path / "t", 60, 2, 3), str(tmp_path / "died")
    (tmp_path / "shared").mkdir()
    send, sent = executors.Cluster._send, []

    def killing(self, parcel, packed, seconds):
        future = send(self, parcel, packed, seconds)
        sent.append(1)
        if len(sent) == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return future

    options = {"events": 600, "chains": 2, "seed": 1, "progress": False}
    bomb = functools.partial(deadly, path=died, home=os.getpid())  # noqa: F841 - the formula names it
    one = pdmp.regression("y ~ x0 + bomb(x1)", folder, "poisson", **options)
    monkeypatch.setattr(executors.Cluster, "_send", killing)
    choose, alone = fitting.subsampled, []

    def without_workers(*args):
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        while client.scheduler_info()["workers"]:
            time.sleep(0.01)
        alone.append(1)
        return choose(*args)

    monkeypatch.setattr(fitting, "subsampled", without_workers)
    more = {"executor": Segments(client, 0.02), "folder": tmp_path / "shared"}
    found = pdmp.regression("y ~ x0 + bomb(x1)", folder, "poisson", **options, **more)
    assert os.path.exists(died) and len(sent) > 3 and alone
    assert str(one.summary()) == str(found.summary())
    assert np.array_equal(one["x0"], found["x0"]) and np.array_equal(one["bomb(x1)"], found["bomb(x1)"])
