"""Executors: the same bits wherever a segment runs, and what travels there."""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import importlib.util
import mmap
import multiprocessing
import os
import pathlib
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine import chain as chain_module
from pdmp.engine import executors
from pdmp.engine.chain import Chain
from pdmp.engine.executors import Contents, Parcel, Segments, Workers, advance_segment, check_executor
from pdmp.models.regressions.design import is_mapped
from pdmp.native import threads
from tests.engine.helpers_executors import CALL, Elsewhere, regression, spawned
from tests.engine.helpers_run import PROCESSES, Serial, same
from tests.toys import Telegraph, Walls

pytestmark = pytest.mark.exact

ROOT = pathlib.Path(__file__).parents[2]
WHOLE = 1e-9  #: a segment so short that it has one chunk


# -- the same bits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("store", "files"), [("skeleton", False), ("grid", True), ("moments", False)])
@pytest.mark.parametrize("name", PROCESSES)
def test_segments_elsewhere_change_nothing(name, store, files, monkeypatch):
    call = CALL | {"store": store} | ({"draws": 20} if store == "grid" else {})
    one = pdmp.sample(PROCESSES[name](), **call)
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.003)
    pool = Elsewhere(files=files)
    assert same(one, pdmp.sample(PROCESSES[name](), executor=Segments(pool, WHOLE), **call))
    assert pool.tasks > 2 * CALL["chains"]


@pytest.mark.parametrize("name", ["global", "local"])
def test_blocks_of_full_buffers_stay_in_order(name, monkeypatch):
    """A buffer of a few rows is emptied several times in each of several segments."""
    one = pdmp.sample(PROCESSES[name](), **CALL)
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 500)
    advance, blocks = executors.advance_segment, []

    def counting(*args):
        packed = advance(*args)
        blocks.append(len(pickle.loads(packed)[1]))
        return packed

    monkeypatch.setattr(executors, "advance_segment", counting)
    monkeypatch.setattr(executors, "SEGMENT_BYTES", 2_000)
    run = pdmp.sample(PROCESSES[name](), executor=Segments(InProcess(), 1e9), **CALL)
    assert max(blocks) > 2 and len(blocks) > 2 * CALL["chains"]
    assert same(one, run)
    for path in (p.whole for p in run.trajectories):
        assert np.all(np.diff(path.times) >= 0.0)


class InProcess(concurrent.futures.Executor):
    def submit(self, function, /, *args):
        future = concurrent.futures.Future()
        future.set_result(function(*args))
        return future


def test_a_segment_ends_when_much_is_recorded(monkeypatch):
    """So that what travels at once is bounded, however fast a worker is."""
    monkeypatch.setattr(chain_module, "BUFFER_BYTES", 500)
    monkeypatch.setattr(executors, "SEGMENT_BYTES", 2_000)
    pool = Elsewhere()
    run = pdmp.sample(Telegraph(), executor=Segments(pool, 1e9), **CALL)
    assert same(run, pdmp.sample(Telegraph(), **CALL))
    stored = 300 * 41  # bytes of a row: a time, a kind, two positions and two velocities
    assert pool.tasks >= CALL["chains"] * (stored // 3_000)
    assert max(received for _, received in pool.log) < 2_000 + 1_000 + 4_000


@pytest.mark.parametrize("files", [True, False])
def test_goals_are_shared(files):
    """The chains look together, and stop together, wherever they run; so does an extended run."""
    call = {"chains": 2, "seed": 5, "warmup": 0.2, "rhat": 1.5}
    one, pool = pdmp.sample(Walls(), ess=700, **call), Elsewhere(files=files)
    run = pdmp.sample(Walls(), ess=700, executor=Segments(pool, 0.01), **call)
    assert one.stopped == "ess, rhat" and same(one, run)
    assert same(one.extend(ess=1_500, rhat=1.4), run.extend(ess=1_500, rhat=1.4, executor=Segments(pool, 0.01)))


def test_the_budget_of_each_chain_is_its_own():
    run = pdmp.sample(Telegraph(), executor=Segments(Elsewhere(), WHOLE), events=90, chains=3, seed=1)
    np.testing.assert_array_equal(run.events, [90, 90, 90])
    longer = run.extend(events=140, executor=Segments(Elsewhere(), WHOLE))
    assert same(longer, pdmp.sample(Telegraph(), events=140, chains=3, seed=1))


def test_another_model_is_another_parcel():
    """Workers that have kept the model of one run sample that of the next."""
    pool, call = Elsewhere(files=False), {"events": 60, "chains": 2, "seed": 1}
    for precision in (1.0, 4.0, 9.0):
        process = pdmp.ZigZag(pdmp.models.Gaussian([0.0, 0.0], [precision, 1.0]))
        assert same(pdmp.sample(process, **call), pdmp.sample(process, executor=Segments(pool, WHOLE), **call))
    assert all(len(opened) == 3 for opened in pool.opened)


def test_a_changed_array_is_sent_anew():
    model, call, pool = regression(200), {"steps": 30, "chains": 2, "seed": 1, "initial": np.zeros(4)}, Elsewhere()
    process = discrete.SGLD(pdmp.gradients.Minibatch(model, size=20, draw="iid"), step=1e-3)
    for _ in range(2):
        assert same(pdmp.sample(process, **call), pdmp.sample(process, executor=Segments(pool, WHOLE), **call))
        model.design.data *= 0.5


# -- what travels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [True, False])
def test_the_model_travels_once_a_worker(files):
    model = regression(1_000)
    process = discrete.SGLD(pdmp.gradients.Minibatch(model, size=20, draw="iid"), step=1e-3)
    pool, size = Elsewhere(files=files), model.design.data.nbytes
    call = {"initial": np.zeros(4), "steps": 200, "chains": 4, "seed": 3, "store": "moments"}
    pdmp.sample(process, executor=Segments(pool, WHOLE), **call)
    carriers = [sent for sent, _ in pool.log if sent > size]
    assert len(carriers) == (0 if files else 2) and pool.tasks > 8
    state = 12_000 + 2 * 256 * 4 * 8  # with the positions that are kept aside
    assert max(sent for sent, _ in pool.log if sent < size) < state < size
    assert max(received for _, received in pool.log) < state


def test_a_segment_carries_what_was_recorded_once():
    pool = Elsewhere()
    pdmp.sample(Telegraph(), executor=Segments(pool, WHOLE), events=4_000, seed=3)
    assert sum(received for _, received in pool.log) < 4_000 * 41 + 3_000 * pool.tasks
    assert max(sent for sent, _ in pool.log) < 3_000


@pytest.mark.parametrize("changed", [False, True])
def test_memory_mapped_files_stay_where_they_are(changed, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", rng.normal(size=(10_000, 4)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")[1_000:]
    model = pdmp.models.LogisticRegression(X, rng.integers(0, 2, 9_000), prior_scale=1.0)
    chain = chain_of(pdmp.ZigZag(model))
    contents, size = Contents(chain), X.nbytes
    try:
        assert contents.parcel.spans[-1][1] < 0.7 * size
        if changed:
            os.utime(tmp_path / "X.npy", (1, 1))
            assert contents.parcel.open() is None
        found = (contents.whole() if changed else contents.parcel).open().process.model
    finally:
        contents.close()
        contents.parcel.close()
    np.testing.assert_array_equal(found.X, X)
    mapped = is_mapped(found.X) and not found.design.data.flags.writeable
    assert mapped != changed
    x = np.ones(4)
    assert found.potential(x) == model.potential(x)


@pytest.mark.parametrize("offset", [8, mmap.ALLOCATIONGRANULARITY, 3 * mmap.ALLOCATIONGRANULARITY + 16])
def test_maps_that_begin_further_on_in_their_file(offset, tmp_path):
    np.arange(20_000.0).tofile(tmp_path / "a")
    array = np.memmap(tmp_path / "a", float, "r", offset=offset, shape=(5_000,))[100:]
    pickled, buffers = executors._pickled(array, mapped=True)
    assert not buffers and len(pickled) < 1_000  # the name of the file, and where in it
    np.testing.assert_array_equal(pickle.loads(pickled), np.arange(20_000.0)[offset // 8 + 100 : offset // 8 + 5_000])


@pytest.mark.parametrize("place", [0, 11_111, 39_999])
@pytest.mark.parametrize("knows", [True, False])
def test_a_file_that_was_replaced_is_sent_as_it_is_mapped(place, knows, tmp_path, monkeypatch):
    """As a nightly job writes tables: a worker would open the new file, of the same name."""
    values = np.arange(40_000.0)
    values.tofile(tmp_path / "a")
    array = np.memmap(tmp_path / "a", float, "r")
    if not knows:  # what is mapped, as on a machine without /proc
        monkeypatch.setattr(executors, "open", lambda *_: exec("raise OSError"), raising=False)
        monkeypatch.setattr(executors, "PIECES", 128)  # which cover all of it
    assert len(executors._pickled(array, mapped=True)[0]) < 1_000
    if knows:  # where the system knows which file is mapped, whatever pieces of it say
        monkeypatch.setattr(executors, "PIECES", 0)
    values[place] = -1.0
    values.tofile(tmp_path / "b")
    os.replace(tmp_path / "b", tmp_path / "a")
    pickled, buffers = executors._pickled(array, mapped=True)
    np.testing.assert_array_equal(pickle.loads(pickled, buffers=buffers), np.arange(40_000.0))
    values[:100].tofile(tmp_path / "a")
    pickled, buffers = executors._pickled(np.memmap(tmp_path / "a", float, "r")[:0], mapped=True)
    assert len(pickle.loads(pickled, buffers=buffers)) == 0


def test_a_private_map_is_not_read_from_its_file(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(5_000))
    array = np.load(tmp_path / "a.npy", mmap_mode="c")
    array += 1.0
    pickled, buffers = executors._pickled(array, mapped=True)
    np.testing.assert_array_equal(pickle.loads(pickled, buffers=buffers), np.ones(5_000))


def chain_of(process):
    sequence, start = np.random.SeedSequence(0), np.zeros(process.model.dim if process.model is not None else 2)
    budget = chain_module.Budget(events=10)
    return Chain(process.resolve(start), 0, start, sequence, budget=budget, warmup=0.0, store="moments")


def test_arrays_that_arrive_read_only_can_be_written():
    model = regression()
    contents = Contents(chain_of(pdmp.ZigZag(model)))
    whole = contents.whole()
    contents.close()
    for array in whole.contents:
        array.flags.writeable = False
    try:
        found = whole.open().process.model
    finally:
        whole.close()
    assert found.design.data.flags.writeable and found.design.data.ctypes.data % 64 == 0
    np.testing.assert_array_equal(found.design.data, model.design.data)


def test_workers_of_one_machine_share_the_file():
    model = regression()
    contents = Contents(chain_of(pdmp.ZigZag(model)))
    try:
        arrays = contents.parcel._map()
        k = [a.nbytes for a in arrays].index(model.design.data.nbytes)
        assert arrays[k].ctypes.data % 64 == 0
        arrays[k][:] = 0  # in this mapping only
        assert np.any(contents.parcel._map()[k])
        other = Parcel("0" * 32, contents.parcel.file, contents.parcel.spans)
        assert other.open() is None  # the file of another run
    finally:
        contents.close()
    assert contents.parcel.open() is None


def test_without_room_for_a_file_the_contents_travel(monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(executors.tempfile, "TemporaryFile", full)
    assert same(
        pdmp.sample(Telegraph(), **CALL), pdmp.sample(Telegraph(), executor=Segments(Elsewhere(), WHOLE), **CALL)
    )


def test_a_worker_keeps_few_parcels(monkeypatch):
    parcels = []
    opened = type(executors._open)()
    monkeypatch.setattr(executors, "_open", opened)
    for _ in range(6):
        contents = Contents(chain_of(Telegraph()))
        parcels.append(contents.parcel.token)
        contents.parcel.open()
        contents.close()
    assert list(opened) == parcels[-executors.OPEN_PARCELS :]


def test_workers_with_another_processor_are_told_of_once(monkeypatch):
    """Their machine code may have other last bits."""
    here, asked = executors.processor(), []

    def processor():
        asked.append(None)  # by the second worker of two, in its segments: each is asked for once there
        return ("sapphirerapids", here[1]) if isinstance(asking[-1], bool) and asking[-1] else here

    asking = [None]

    class Mixed(Elsewhere):
        def submit(self, function, /, *args):
            asking.append(self.tasks % 2 == 1)
            try:
                return super().submit(function, *args)
            finally:
                asking.append(None)

    call = {"events": 200, "chains": 3, "seed": 2, "warmup": 0.1}
    alone = pdmp.sample(Telegraph(), **call)
    monkeypatch.setattr(executors, "processor", processor)
    with pytest.warns(UserWarning) as caught:
        run = pdmp.sample(Telegraph(), executor=Segments(Mixed(), 1.0), **call)
    said = [str(one.message) for one in caught if "processors" in str(one.message)]
    assert len(said) == 1 and f"for processors 'sapphirerapids', and this process for {here[0]!r}" in said[0]
    assert same(run, alone) and len(asked) >= 6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pdmp.sample(Telegraph(), executor=Segments(Elsewhere(), 1.0), **call)
    assert not [one for one in caught if "processors" in str(one.message)]


def test_what_waits_for_the_contents_does_not_carry_them_too():
    """Of many chains that were returned, as many carry the contents as there are workers."""

    class Later(Elsewhere):
        def submit(self, function, /, *args):
            self.queue = [*getattr(self, "queue", []), (args, concurrent.futures.Future())]
            return self.queue[-1][1]

    pool, chains = Later(workers=3), [chain_of(Telegraph()) for _ in range(7)]
    for number, chain in enumerate(chains):
        chain.number = number
    place = Workers(pool, chains, threading.Event(), 5.0)
    with place:
        futures = [place.submit(chain, 1.0) for chain in chains]
        assert futures.pop() is None  # two for each worker
        for chain, future in zip(chains, futures, strict=False):
            future.set_result(None)
            place.collect(chain, future)
        again = [place.submit(chain, 1.0) for chain in chains[:6]]
        assert [f is None for f in again] == [False, False, False, True, True, True]
        assert [args[0].contents is None for args, _ in pool.queue[6:]] == [False, False, False]
        again[0].set_result(advance_segment(*pool.queue[6][0]))
        place.collect(chains[0], again[0])
        assert chains[0].stopped == "events"
        assert place.submit(chains[3], 1.0) is not None and pool.queue[-1][0][0].contents is None
    executors._open.clear()


# -- failures --------------------------------------------------------------------------------------------------------


class Unpicklable(Exception):
    def __init__(self, one, two):
        super().__init__("of two arguments")


class Raising(Telegraph):
    def helper_threads(self, state):
        if state.now[0] > 3.0:
            raise Unpicklable(1, 2)
        return contextlib.nullcontext()


def test_a_failure_elsewhere_names_its_cause(monkeypatch):
    monkeypatch.setattr(chain_module, "CHUNK_SECONDS", 0.0)
    pool = Elsewhere()
    with pytest.raises(pdmp.SamplingError, match="Unpicklable in a step of Raising: of two arguments") as caught:
        pdmp.sample(Raising(), executor=Segments(pool, WHOLE), events=10_000, seed=1)
    assert "of two arguments" in str(caught.value.__cause__) and caught.value.run.stats["total_events"] > 1
    assert not any(pool.opened[(pool.tasks - 1) % 2])  # the process that failed is not used again


def test_ctrl_c_in_a_worker_ends_its_segment_only():
    """A terminal sends it to the workers too: they return what they have, and live on."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        with executors._interruption(("another machine", 1)) as event:
            signal.raise_signal(signal.SIGINT)
            chain = chain_of(Telegraph()).advance(interrupted=event)
        assert event.is_set() and chain.stopped is None and chain.failure is None
        with executors._interruption(("another machine", 1)) as event:
            assert not event.is_set()  # of the next segment
    finally:
        signal.signal(signal.SIGINT, handler)


def test_ctrl_c_where_the_run_was_called_is_raised_after_the_segment():
    """Within machine code, or on the way to a function of the user's, it would be lost or end the process."""
    handler, here = signal.getsignal(signal.SIGINT), (platform.node(), os.getpid())
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background ignores it
        with executors._interruption(here) as event:
            assert not event.is_set()
        with pytest.raises(KeyboardInterrupt), executors._interruption(here) as event:
            signal.raise_signal(signal.SIGINT)
            assert event.is_set()
            before = "the end of the segment"
        assert before == "the end of the segment" and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt), executors._interruption(here):
            signal.raise_signal(signal.SIGINT)
            before = "at once"
            signal.raise_signal(signal.SIGINT)
            before = "never"
        assert before == "at once" and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with executors._interruption(here) as event:
            signal.raise_signal(signal.SIGINT)
        assert not event.is_set()
    finally:
        signal.signal(signal.SIGINT, handler)


def test_ctrl_c_within_a_function_of_the_users_keeps_its_call(tmp_path):
    """In a segment in the main thread: the gradient is computed to its end, so that no call fails."""
    going, ended = tmp_path / "going", tmp_path / "ended"

    def normal(x):
        if going.exists() and abs(x[0]) > 2.0:
            going.unlink()
            signal.raise_signal(signal.SIGINT)
            ended.touch()
        return 0.5 * x @ x, x

    model = pdmp.models.from_function(normal, 2)
    executor = Serial()
    executor.submit = lambda *call: going.touch() or Serial.submit(executor, *call)
    handler = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.warns(UserWarning, match="the run was interrupted"):
            run = pdmp.sample(pdmp.BPS(model), executor=Segments(executor, 0.05), time=1e9, seed=1, warmup=0)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert run.stopped == "interrupted" and ended.exists()


SCALE = contextvars.ContextVar("scale", default=1.0)
LOCAL = threading.local()


def scaled(scale):
    """A normal density whose standard deviation is that of the thread in which it is called."""

    def potential(x):
        return 0.5 * (x @ x) / scale() ** 2, x / scale() ** 2

    return pdmp.models.from_function(potential, 2, initial=np.array([1.0, -2.0]))


@pytest.mark.parametrize(
    "where", ["threads", "a pool that has begun", "automatic", pytest.param("tempered", marks=pytest.mark.slow)]
)
def test_threads_of_a_run_have_the_context_of_the_caller(where):
    def run_in_context():
        SCALE.set(10.0)
        call = {"seed": 1, "chains": 2}
        with np.errstate(divide="raise"), contextlib.ExitStack() as stack:
            model = scaled(lambda: SCALE.get() if np.geterr()["divide"] == "raise" else 1.0)
            if where == "automatic":
                return pdmp.sample(model, gradients=200, **call)
            if where == "tempered":
                return pdmp.sample(model, gradients=2000, tempered=True, **call)
            if where == "a pool that has begun":
                pool = call["executor"] = stack.enter_context(concurrent.futures.ThreadPoolExecutor(2))
                list(pool.map(abs, range(10)))
            return pdmp.sample(pdmp.ZigZag(model), events=300, **call)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it is short
        run = contextvars.copy_context().run(run_in_context)
    # With a standard deviation of 1 a path of 300 events never comes beyond 6.
    assert np.abs(run.draws(50)).max() > 6.0


def test_passes_over_rows_have_the_context_of_the_caller():
    token = SCALE.set(10.0)
    try:
        assert list(threads.each(lambda _: SCALE.get(), [(k,) for k in range(40)])) == [10.0] * 40
    finally:
        SCALE.reset(token)


def test_a_function_that_is_another_one_in_each_thread_is_refused():
    LOCAL.scale = 10.0
    model = scaled(lambda: getattr(LOCAL, "scale", 1.0))
    with pytest.raises(pdmp.SamplingError, match=r"another gradient in a thread of the run .* threading\.local"):
        pdmp.sample(pdmp.ZigZag(model), events=100, seed=1, chains=2)
    noise = np.random.default_rng(1)
    noisy = pdmp.models.from_function(
        lambda x: (0.5 * (x @ x), x + 1e-3 * noise.standard_normal(2)), 2, check_gradient=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert pdmp.sample(pdmp.BPS(noisy), events=100, seed=1, chains=2).events.tolist() == [100, 100]


def test_a_process_that_cannot_be_pickled_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    process = Telegraph()
    process.lock = threading.Lock()
    with pytest.raises(TypeError, match="`executor`: the process cannot be sent to workers .*lock.* cloudpickle"):
        pdmp.sample(process, executor=Elsewhere(), events=10, seed=1)


def test_classes_that_workers_cannot_import_travel_too(monkeypatch):
    """As those of a script or notebook do, by value."""
    pytest.importorskip("cloudpickle")

    class Slower(Telegraph):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        factor: float

        @pdmp.compiled
        def rate(self, state, i, now, rng):
            return 0.6 * self.factor

    call = {"events": 80, "chains": 2, "seed": 1}
    one = pdmp.sample(Slower(0.5), **call)
    assert same(one, pdmp.sample(Slower(0.5), executor=Segments(Elsewhere(), WHOLE), **call))
    assert one.stats["thinned"] > 0
    contents = Contents(chain_of(Slower(0.5)))
    found = contents.parcel.open().process
    contents.close()
    contents.parcel.close()
    assert type(found) is not Slower and type(found).__name__ == "Slower" and isinstance(found, Telegraph)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "script.py", raising=False)
    assert not executors.imports_main(Elsewhere()) and executors.imports_main(spawned(1))


def test_what_is_no_executor_is_refused():
    with pytest.raises(TypeError, match="`executor` must be a concurrent.futures.Executor, .* got int"):
        check_executor(4)
    with multiprocessing.pool.ThreadPool(1) as pool:
        with pytest.raises(TypeError, match="must not be a multiprocessing.Pool, .*ProcessPoolExecutor"):
            pdmp.sample(Telegraph(), events=10, executor=pool)
    for segment in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="`seconds` must be a positive number"):
            Segments(None, segment)
    with pytest.raises(TypeError, match="`executor` of Segments must be an executor, got Segments"):
        Segments(Segments(None, 1.0), 2.0)
    with pytest.raises(TypeError, match="`executor` must be a concurrent.futures.Executor, .* got int"):
        Segments(4, 1.0)

    class Asynchronous:
        asynchronous = True
        scatter = get_executor = None

    with pytest.raises(ValueError, match="`executor` is an asynchronous Dask client"):
        check_executor(Asynchronous())


# -- pools of other packages -----------------------------------------------------------------------------------------


class Applied:
    """The interface of `ray.util.multiprocessing.Pool`."""

    def __init__(self):
        self.pool = multiprocessing.pool.ThreadPool(2)

    def apply_async(self, func, args=None, kwargs=None, callback=None, error_callback=None):
        return self.pool.apply_async(func, args, kwargs, callback, error_callback)


def test_pools_with_apply_async():
    pool = Applied()
    assert same(pdmp.sample(Telegraph(), **CALL), pdmp.sample(Telegraph(), executor=Segments(pool, WHOLE), **CALL))
    with pytest.raises(ZeroDivisionError):
        check_executor(pool).submit(divmod, 1, 0).result()
    future = check_executor(pool).submit(divmod, 7, 2)
    assert future.result() == (3, 1)
    pool.pool.terminate()


SCRIPT = """
import sys
import numpy as np
import pdmp
from mpi4py.futures import MPIPoolExecutor
from pdmp.engine.executors import Segments
from tests.engine.helpers_executors import CALL, regression
from tests.engine.helpers_run import same

if __name__ == "__main__":
    process = pdmp.ZigZag(regression(100))
    one = pdmp.sample(process, **CALL)
    with MPIPoolExecutor() as pool:
        assert pool.num_workers == 2
        assert same(one, pdmp.sample(process, executor=Segments(pool, 1e-9), **CALL))
    print("the same")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="needs MPI")
def test_mpi(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment = os.environ | root | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"}
    command = [*"mpiexec -n 3 --oversubscribe".split(), sys.executable, *"-m mpi4py.futures script.py".split()]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == "the same", done.stderr
