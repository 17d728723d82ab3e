"""Faults that are injected on purpose: kill -9 at random moments, a full disk, folders that cannot be written, damage.

What is resumed is bitwise the run that nobody has disturbed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pdmp
from pdmp.engine import checkpoint as checkpoints
from pdmp.engine import storage
from tests.checks import plain_only
from tests.faults import injected
from tests.toys import Telegraph

pytestmark = [pytest.mark.exact, plain_only]

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KILLS = 48  #: in all
LONGEST = 300.0  #: seconds for a run that nobody kills, on a busy machine


class Server:
    """The process of `tests.faults.injected`, and the children that it forks."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.injected"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": ROOT, "NUMBA_DISABLE_JIT": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def start(self, kind, executor, path):
        """Start a run; the number of its process group."""
        self.process.stdin.write(f"{kind} {executor} {path}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


def alive(number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, 0)
        return True
    return False


def kill(number):
    """kill -9 of a run and of the workers of its pool."""
    for send in (os.kill, os.killpg):  # it may not lead its group yet
        with contextlib.suppress(ProcessLookupError):
            send(number, signal.SIGKILL)
    while alive(number):
        time.sleep(0.001)


def reached(path):
    """The states of the chains in the checkpoint; None if there is none."""
    return str(storage.read(path, "checkpoint")[0]["chains"]) if path.exists() else None


def finished(server, kind, executor, path):
    """The digest of a run that nobody kills, and the seconds it took."""
    begun = time.perf_counter()
    number = server.start(kind, executor, path)
    while alive(number):
        assert time.perf_counter() - begun < LONGEST
        time.sleep(0.005)
    return (path.parent / f"{path.name}.digest").read_text(), time.perf_counter() - begun


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9")
@pytest.mark.parametrize(
    "kind, executor",
    [
        pytest.param(kind, executor, marks=[pytest.mark.release] * (place != turn))
        for place, kind in enumerate(injected.KINDS)
        for turn, executor in enumerate(injected.EXECUTORS)
    ],
)
def test_a_run_that_is_killed_again_and_again_is_the_same_run(kind, executor, server, tmp_path):
    """48 kills at random moments, over four kinds of run and two executors; each run goes on from its checkpoint."""
    combinations = len(injected.KINDS) * len(injected.EXECUTORS)
    kills = -(-KILLS // combinations)
    whole, seconds = finished(server, kind, executor, tmp_path / "whole")
    rng = np.random.default_rng([list(injected.KINDS).index(kind), injected.EXECUTORS.index(executor)])
    path, resumed, done, read = tmp_path / "run", 0, 0, set()
    while done < kills:
        before = reached(path)
        number = server.start(kind, executor, path)
        if done % 2:  # after it has moved on, however long a busy machine takes to start its workers
            while alive(number) and reached(path) == before:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.1 * seconds))
        else:
            time.sleep(rng.uniform(0.0, 0.7 * seconds))
        done += alive(number)
        kill(number)
        if (tmp_path / "run.digest").exists():  # it was done before: another run
            assert (tmp_path / "run.digest").read_text() == whole
            for name in ("run", "run.digest"):
                (tmp_path / name).unlink()
        elif path.exists():  # never half a file
            read.add(reached(path))
            resumed += 1
    assert finished(server, kind, executor, path)[0] == whole
    assert resumed >= 2 and len(read) >= 2  # kills that a checkpoint had come before, and that moved on


@contextlib.contextmanager
def file_size_limit(size):
    """What a full disk does to a file that grows beyond `size` bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.slow
@pytest.mark.parametrize("kind", injected.KINDS)
def test_a_disk_that_is_full_for_a_while(kind, tmp_path, monkeypatch):
    """The checkpoint that was there stays whole, sampling goes on, and what is resumed is the same run."""
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.0)
    whole, path = injected.run(kind, "threads", tmp_path / "whole"), tmp_path / "run"
    process, call = injected.KINDS[kind]()
    few = {"events": 30} if not process.ticks else {"steps": 30}
    call = {"seed": 4, "chains": 2, "initial": np.full(3, 0.1), "progress": False, "checkpoint": path} | call
    for size in (0, 100, 4_000):
        with (
            file_size_limit(size),
            pytest.warns(UserWarning, match="run' could not be written: .*older than this run, or nothing"),
            pytest.warns(UserWarning, match="run' could not be written: .*tried again"),
        ):
            pdmp.sample(process, **{k: v for k, v in call.items() if k not in ("events", "steps", "time", "ess")} | few)
        assert not path.exists() and not (tmp_path / "run.part").exists()
    assert injected.run(kind, "threads", path) == whole
    before = path.read_bytes()
    with file_size_limit(len(before) // 2), pytest.warns(UserWarning, match="could not be written"):
        pdmp.sample(process, **call)
    assert path.read_bytes() == before and injected.run(kind, "threads", path) == whole


@pytest.mark.parametrize("place", ["file/run", "absent/run", "/proc/run"])
def test_places_that_cannot_be_written(place, tmp_path):
    """Root may write into any folder: what it cannot do is make a file below a file, nowhere, or in /proc."""
    (tmp_path / "file").write_text("a file")
    path = tmp_path / place  # an absolute place stays what it is
    if str(path).startswith("/proc") and not os.path.isdir("/proc"):
        pytest.skip("no /proc")
    with pytest.raises(ValueError, match="`checkpoint` .*(is not a directory|cannot be written)"):
        pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=path)
    run = pdmp.sample(Telegraph(), events=10, seed=1)
    with pytest.raises(OSError) as caught:
        run.save(path)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root ignores modes")
def test_a_folder_without_write_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ValueError, match="`checkpoint` .* cannot be written"):
            pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=tmp_path / "run")
    finally:
        tmp_path.chmod(0o700)
