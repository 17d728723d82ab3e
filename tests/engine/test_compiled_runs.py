"""Runs in machine code: the same in threads, pools and after an interruption, and as in plain Python."""

from __future__ import annotations

import concurrent.futures
import io
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine import chain as chain_module
from pdmp.engine import checkpoint as checkpoint_module
from pdmp.engine.executors import Segments
from pdmp.native.messages import announce
from tests.engine.helpers_executors import CALL, spawned
from tests.engine.helpers_run import PROCESSES, ROOT, Pickling, Serial, interrupted, resumed_after_deaths, same
from tests.toys import Telegraph, Ticks, Walls


def test_seconds_budget_and_its_repetition():
    run = pdmp.sample(Telegraph(), seconds=0.05, chains=2, seed=1, store="moments")
    assert run.stopped == "seconds"
    assert 0.1 <= run.stats["seconds"] < 2.0
    again = pdmp.sample(Telegraph(), events=int(run.events[0]), seed=1, store="moments")
    assert again.end[0] == run.end[0]
    np.testing.assert_array_equal(again.records[0].integrals.first, run.records[0].integrals.first)


def test_progress_changes_nothing(monkeypatch):
    call = {"time": 500.0, "warmup": 0.1, "chains": 2, "seed": 3}
    one = pdmp.sample(Telegraph(), **call)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(chain_module.Chain, "compile", lambda chain: announce(12.3))
    assert same(one, pdmp.sample(Telegraph(), progress=True, **call))
    text = sys.stderr.getvalue()
    assert "compiling (once; 12 s last time on this machine)" in text and "100%" in text


def test_threads_serial_and_processes_agree():
    call = {"events": 200, "chains": 3, "seed": 3, "warmup": 0.1}
    one = pdmp.sample(Walls(), **call)
    assert same(one, pdmp.sample(Walls(), executor=Serial(), **call))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert same(one, pdmp.sample(Walls(), executor=pool, **call))
    with spawned(1) as pool:
        assert same(one, pdmp.sample(Walls(), executor=pool, **call))


def real_processes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    model = pdmp.models.LogisticRegression(X, (X[:, 0] > 0.3 * rng.normal(size=200)).astype(float), prior_scale=1.0)
    batch = pdmp.gradients.Minibatch(model, size=20, draw="distinct")
    return {
        "ZigZag": pdmp.ZigZag(pdmp.models.Gaussian(np.zeros(3), np.diag([1.0, 2.0, 3.0]) + 0.5)),
        "SBPS": pdmp.SBPS(batch),
        "SGLD": discrete.SGLD(pdmp.gradients.Minibatch(model, size=20, draw="reshuffle"), step=1e-3),
        "SGRRLD": discrete.SGRRLD(batch, step=1e-3),
    }


@pytest.mark.parametrize(
    "name",
    [
        "ZigZag",
        pytest.param("SGLD", marks=[pytest.mark.exact, pytest.mark.slow]),
        pytest.param("SBPS", marks=[pytest.mark.exact, pytest.mark.slow]),
        pytest.param("SGRRLD", marks=pytest.mark.exact),
    ],
)
def test_real_processes_survive_pickling_and_checkpoints(name, tmp_path, monkeypatch):
    process = real_processes()[name]
    call = {"events": 30 if numba.config.DISABLE_JIT else 300, "chains": 2, "seed": 3, "warmup": 0.2}
    one = pdmp.sample(process, **call)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.0)
    assert same(one, pdmp.sample(process, executor=Segments(Pickling(), 1e-9), **call))
    monkeypatch.setattr(checkpoint_module, "CHECKPOINT_SECONDS", 0.0)
    file, keep, kept = tmp_path / "run.checkpoint", checkpoint_module.Checkpoint.keep, []

    def keep_and_die(self, i, chain):
        keep(self, i, chain)
        kept.append(i)
        if len(kept) == 12:
            self.write()
            raise MemoryError("killed")

    monkeypatch.setattr(checkpoint_module.Checkpoint, "keep", keep_and_die)
    with pytest.raises(pdmp.SamplingError, match="killed"):
        pdmp.sample(process, checkpoint=file, **call)
    assert same(one, pdmp.sample(real_processes()[name], checkpoint=file, **call))


RECORD = """
import sys, pdmp
from tests.toys import Telegraph, Walls, Ticks
for name, process in {"global": Telegraph(), "local": Walls(), "ticks": Ticks()}.items():
    pdmp.sample(process, events=600, warmup=0.1, seed=5, initial=None).save(f"{sys.argv[1]}/{name}.npz")
"""


def test_compiled_and_plain_python_agree_bitwise(tmp_path):
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", RECORD, str(tmp_path)], check=True, cwd=ROOT, env=environment, timeout=120)
    for name, process in {"global": Telegraph(), "local": Walls(), "ticks": Ticks()}.items():
        plain, run = pdmp.load(tmp_path / f"{name}.npz"), pdmp.sample(process, events=600, warmup=0.1, seed=5)
        for one, other in zip(plain.records, run.records, strict=True):
            for part in ("times", "kinds", "xs", "vs", "counts"):
                np.testing.assert_array_equal(getattr(one, part), getattr(other, part), err_msg=f"{name} {part}")
        np.testing.assert_allclose(plain.mean(), run.mean(), rtol=1e-12)
        np.testing.assert_allclose(plain.var(), run.var(), rtol=1e-12)


@pytest.mark.parametrize("how", ["threads", "serial thread pool"])
def test_ctrl_c_returns_the_run_so_far(how):
    pdmp.sample(Telegraph(), events=10, seed=1, store="moments")  # compiled before
    pool = concurrent.futures.ThreadPoolExecutor(1) if how != "threads" else None
    with interrupted():
        run = pdmp.sample(Telegraph(), time=1e12, chains=2, seed=1, store="moments", executor=pool)
    assert run.stopped == "interrupted"
    assert run.stats["total_events"] > 100
    again = pdmp.sample(Telegraph(), events=int(run.events[0]), seed=1, store="moments")
    assert again.end[0] == run.end[0]
    np.testing.assert_array_equal(again.records[0].integrals.first, run.records[0].integrals.first)
    if pool is not None:  # of one thread: the second chain had not begun
        pool.shutdown()
        assert run.chains == 1


def test_ctrl_c_with_another_executor():
    pdmp.sample(Telegraph(), events=10, seed=1, store="moments")
    with interrupted():
        run = pdmp.sample(Telegraph(), time=1e12, chains=2, seed=1, store="moments", executor=Segments(Serial(), 0.1))
    assert run.stopped == "interrupted" and run.stats["total_events"] > 100


@pytest.mark.parametrize("store", ["skeleton", "grid"])
@pytest.mark.parametrize("name", PROCESSES)
def test_resumed_is_uninterrupted(name, store, tmp_path, monkeypatch):
    call = {"events": 200, "chains": 2, "seed": 15, "warmup": 0.3, "store": store}
    call |= {"draws": 12} if store == "grid" else {}
    whole = pdmp.sample(PROCESSES[name](), **call)
    file = tmp_path / "run.checkpoint"
    with monkeypatch.context() as patched:
        resumed = resumed_after_deaths(lambda: pdmp.sample(PROCESSES[name](), checkpoint=file, **call), 20, patched)
    assert same(whole, resumed)
    assert same(whole, pdmp.sample(PROCESSES[name](), checkpoint=file, **call))  # finished: only read


def test_a_checkpoint_keeps_ctrl_c_and_the_seed(tmp_path):
    file = tmp_path / "run.checkpoint"
    pdmp.sample(Telegraph(), events=10, seed=1, store="moments")
    call = {"events": 3_000_000_000, "store": "moments", "chains": 2}
    with interrupted(0.2):
        run = pdmp.sample(Telegraph(), checkpoint=file, **call)
    assert run.stopped == "interrupted"
    with interrupted(0.2):
        more = pdmp.sample(Telegraph(), checkpoint=file, **call)
    assert more.seed == run.seed
    assert np.all(more.events >= run.events) and more.events.sum() > run.events.sum()
    with pytest.raises(ValueError, match="is of another call: `seed` differs; name another file"):
        pdmp.sample(Telegraph(), checkpoint=file, seed=1, **call)


def test_the_compiled_run_and_a_process_pool_agree():
    one = pdmp.sample(Walls(), ess=500, rhat=1.1, chains=2, seed=5)
    with spawned() as pool:
        assert same(one, pdmp.sample(Walls(), ess=500, rhat=1.1, chains=2, seed=5, executor=pool))


def test_a_pool_of_processes():
    process = pdmp.BPS(pdmp.models.Gaussian([1.0, -0.5], [[1.5, 0.4], [0.4, 0.8]]), 0.5)
    one = pdmp.sample(process, **CALL)
    with spawned() as pool:
        assert same(one, pdmp.sample(process, executor=pool, **CALL))


def test_loky():
    loky = pytest.importorskip("loky")
    pool = loky.get_reusable_executor(max_workers=1)
    try:
        assert same(pdmp.sample(Walls(), **CALL), pdmp.sample(Walls(), executor=pool, **CALL))
    finally:
        pool.shutdown()
