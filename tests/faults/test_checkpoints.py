"""Checkpoints of other models, that cannot be written, that someone else writes; signals; budgets that grow."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import os
import random
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse.linalg
from scipy import special, stats

import pdmp
from pdmp.engine import checkpoint as checkpoints
from pdmp.engine import executors, storage
from pdmp.engine.chain import LOOK
from pdmp.engine.goals import Goal
from tests.checks import in_quick
from tests.toys import Telegraph, Ticks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def normal(x, mean):
    return 0.5 * float((x - mean) @ (x - mean)), x - mean


class Callable:
    def __init__(self, mean):
        self.mean = mean

    def __call__(self, x):
        return normal(x, self.mean)

    def method(self, x):
        return normal(x, self.mean)


class Opaque(Callable):
    """With something that cannot be hashed."""

    def __init__(self, held):
        super().__init__(0.0)
        self.held = held


OPAQUE = {
    "factorisation": (lambda folder: scipy.sparse.linalg.splu(scipy.sparse.eye_array(2, format="csc")), ".*SuperLU"),
    "lock": (lambda folder: threading.Lock(), r"_thread\.lock"),
    "file": (lambda folder: open(folder / "data", "w"), r"_io\.TextIOWrapper"),
    "generator": (lambda folder: (k for k in [1]), "generator"),
    "tree": (lambda folder: scipy.spatial.cKDTree(np.arange(60.0).reshape(20, 3)), ".*KDTree"),  # writes addresses
}


def of_dict(mean):
    table = {"mean": mean}
    return lambda x: normal(x, table["mean"])


def of_list(mean):
    table = [[mean]]
    return lambda x: normal(x, table[0][0])


def of_array(mean):
    table = np.full(5_000, mean)
    return lambda x: normal(x, table[2_500])


def of_default(mean):
    def function(x, mean=mean):
        return normal(x, mean)

    return function


def of_frame(mean):
    table = pytest.importorskip("pandas").DataFrame({"mean": [mean]})
    return lambda x: normal(x, table["mean"][0])


def of_file(mean):
    """What it reads when it is called no hash knows: only its values tell."""
    os.environ["PDMP_TEST_MEAN"] = str(mean)
    return lambda x: normal(x, float(os.environ["PDMP_TEST_MEAN"]))


KINDS = {
    "partial": lambda mean: functools.partial(normal, mean=mean),
    "object": Callable,
    "bound method": lambda mean: Callable(mean).method,
    "dict": of_dict,
    "list": of_list,
    "array": of_array,
    "default argument": of_default,
    "data frame": of_frame,
    "values": of_file,
}


def sample(function, path, **call):
    model = pdmp.models.from_function(function, 2)
    return pdmp.sample(pdmp.ZigZag(model), initial=[0.3, 0.1], checkpoint=path, **{"events": 20, "seed": 1} | call)


@pytest.mark.exact
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_another_posterior_is_refused(kind, tmp_path):
    path = tmp_path / "run"
    run = sample(KINDS[kind](0.0), path)
    np.testing.assert_array_equal(sample(KINDS[kind](0.0), path).mean(), run.mean())
    with pytest.raises(ValueError, match="is of another call: `process` differs"):
        sample(KINDS[kind](0.001), path)


@pytest.mark.exact
@pytest.mark.parametrize("name", OPAQUE)
def test_what_cannot_be_identified_has_no_checkpoint(name, tmp_path, monkeypatch):
    """It is refused before the run, and for a model before the warm-up of `auto`."""
    make, kind = OPAQUE[name]
    held = make(tmp_path)
    text = f"^`checkpoint`: the run could never be resumed, as FunctionModel computes with an object of .* {kind}, "
    for function in (lambda x: normal(x, 0.0 if held else 1.0), Opaque(held)):
        with pytest.raises(ValueError, match=text):
            sample(function, tmp_path / "run")
        with monkeypatch.context() as patch, pytest.raises(ValueError, match=text):
            patch.setattr("pdmp.automatic.preparing.auto", None)
            pdmp.sample(pdmp.models.from_function(function, 2), checkpoint=tmp_path / "run")
        assert not (tmp_path / "run").exists()
    getattr(held, "close", int)()


@dataclasses.dataclass
class Scaled:
    """A target that is a dataclass."""

    scale: float
    names: list = dataclasses.field(default_factory=list)

    def __call__(self, x):
        return 0.5 * x @ x / self.scale, x / self.scale


class Holding:
    """A normal law, beside an object that Python or a library has made."""

    def __init__(self, held):
        self.held = held

    def __call__(self, x):
        return normal(x, 0.0)


#: Objects made from a number, which are known by what they are.
KNOWN = {
    "dataclass": Scaled,
    "function": lambda s: Holding(special.expit if s == 1.0 else special.ndtr),
    "pattern": lambda s: Holding(re.compile(f"a{s}")),
    "normal law": lambda s: Holding(stats.norm(0.0, s)),
    "gamma law": lambda s: Holding(stats.gamma(s)),
    "normal vectors": lambda s: Holding(stats.multivariate_normal([0.0, s])),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", KNOWN)
def test_what_libraries_make_can_be_resumed_and_told_apart(name, tmp_path):
    """Another process begins with another state of `numpy.random`, which the laws of SciPy keep."""
    path, make = tmp_path / "run", KNOWN[name]
    run = sample(make(1.0), path)
    np.random.mtrand._rand.random_sample(3)
    np.testing.assert_array_equal(sample(make(1.0), path).mean(), run.mean())
    with pytest.raises(ValueError, match="is of another call: `process` differs"):
        sample(make(1.25), path)


@pytest.mark.exact
def test_what_a_function_names_that_is_another_is_said(tmp_path, monkeypatch):
    """Such as a time or a folder: by its name, also within a dict or an object."""

    def made(begun, scale, folder="/tmp/a"):
        settings, names = {"scale": scale, "shift": 2.0}, SimpleNamespace(folder=folder)
        return pdmp.models.from_function(
            lambda x: (settings["scale"] * x @ x / 2.0 + 0.0 * begun * len(names.folder), settings["scale"] * x), 1
        )

    def run(*given):
        return pdmp.sample(pdmp.BPS(made(*given)), events=20, seed=1, checkpoint=tmp_path / "run")

    run(3.5, 1.0)
    run(3.5, 1.0)
    with pytest.raises(
        ValueError, match=r"`process` differs \(of what the model's function names, 'begun' changed\); name"
    ):
        run(3.6, 1.0)
    with pytest.raises(ValueError, match=r"function names, 'names.folder', 'settings.scale' changed\); name"):
        run(3.5, 1.25, "/tmp/b")
    with pytest.raises(ValueError, match=r"call: `seed` differs; name another"):
        pdmp.sample(pdmp.BPS(made(3.5, 1.0)), events=20, seed=2, checkpoint=tmp_path / "run")
    other = pdmp.models.from_function(lambda x: (0.75 * x @ x, 1.5 * x), 1)  # which names nothing, and is another
    one = pdmp.models.from_function(lambda x: (0.25 * x @ x, 0.5 * x), 1)
    pdmp.sample(pdmp.BPS(one), events=20, seed=1, checkpoint=tmp_path / "other")
    with pytest.raises(ValueError, match=r"`process` differs; name another"):
        pdmp.sample(pdmp.BPS(other), events=20, seed=1, checkpoint=tmp_path / "other")
    monkeypatch.setattr(checkpoints, "named", lambda model: {})  # as in files of earlier versions
    (tmp_path / "run").unlink()
    run(3.5, 1.0)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"`process` differs; name another"):
        run(3.6, 1.0)


class Solver:
    """Leaves out of its state what can be made again of it, as the message advises."""

    def __init__(self, mean):
        self.mean, self.lock = mean, threading.Lock()

    def __getstate__(self):
        return {"mean": self.mean}

    def __call__(self, x):
        return normal(x, self.mean)


@pytest.mark.exact
def test_what_is_left_out_of_the_state_does_not_prevent_a_checkpoint(tmp_path):
    run = sample(Solver(0.0), tmp_path / "run")
    assert np.array_equal(sample(Solver(0.0), tmp_path / "run").mean(), run.mean())
    with pytest.raises(ValueError, match="`process` differs"):
        sample(Solver(0.1), tmp_path / "run")


class Silent(Solver):
    """Leaves out of its state what its values depend on."""

    def __getstate__(self):
        return {}


@pytest.mark.exact
def test_values_tell_posteriors_apart_that_have_one_state(tmp_path):
    def process(mean):
        return pdmp.ZigZag(pdmp.models.from_function(Silent(mean), 2))

    sample(Silent(0.0), tmp_path / "run").save(tmp_path / "saved.npz")
    with pytest.raises(ValueError, match="is of another call: "):
        sample(Silent(0.1), tmp_path / "run")
    with pytest.raises(ValueError, match="^`process` is not that of the run"):
        pdmp.load(tmp_path / "saved.npz").extend(process(0.1), events=25)
    assert pdmp.load(tmp_path / "saved.npz").extend(process(0.0), events=25).events[0] == 25


@pytest.mark.exact
def test_a_potential_that_is_another_each_time_has_no_checkpoint(tmp_path):
    def noisy(x):
        potential, gradient = normal(x, 0.0)
        noisy.calls += 1
        return potential + 1e-8 * noisy.calls, gradient

    noisy.calls = 0
    with pytest.raises(ValueError, match="FunctionModel does not compute the same potential and gradient again"):
        sample(noisy, tmp_path / "run")


class Keeping:
    """A function that keeps something of its calls beside what it computes with."""

    def __init__(self, keep):
        self.keep, self.last, self.mean, self.state = keep, 0.0, 0.0, {}

    def __call__(self, x):
        self.keep(self, x)
        return normal(x, self.mean)


def keep_and_last(keep):
    def both(self, x):
        keep(x)
        self.last = time.perf_counter()

    return Keeping(both)


RANDOM = random.Random(1)


def counting():
    calls = 0

    def function(x):
        nonlocal calls
        calls += 1
        return normal(x, 0.0)

    return function


def with_default(x, memo={}):  # noqa: B006 - as a memo is written
    return memo.setdefault(x.tobytes(), normal(x, 0.0))


def with_table(table):
    return lambda x: normal(x, table["mean"])


CACHES = {
    "the time": lambda: Keeping(lambda self, x: setattr(self, "last", time.perf_counter())),
    "a memo": lambda: Keeping(lambda self, x: self.state.setdefault(x.tobytes(), normal(x, 0.0))),
    "a list": lambda: keep_and_last([].append),
    "the last ones": lambda: keep_and_last(collections.deque(maxlen=3).append),
    "a set": lambda: keep_and_last(lambda x, seen=set(): seen.add(x.tobytes())),  # noqa: B006
    "random numbers": lambda: keep_and_last(lambda x: RANDOM.random()),
    "a counter": counting,
    "a default": lambda: with_default,
    "what the first call fills": lambda: with_table(collections.defaultdict(float)),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", CACHES)
def test_what_calls_change_is_no_other_posterior(name, tmp_path):
    """A cache, a record of calls: the run is resumed, saved and continued whatever it holds by then."""
    function, path = CACHES[name](), tmp_path / "run"
    run = sample(function, path)
    run.save(tmp_path / "saved")
    longer = sample(function, path, events=40).mean()
    np.testing.assert_array_equal(longer, sample(function, tmp_path / "new", events=40).mean())
    np.testing.assert_array_equal(longer, run.extend(events=40).mean())
    process = pdmp.ZigZag(pdmp.models.from_function(function, 2))
    np.testing.assert_array_equal(longer, pdmp.load(tmp_path / "saved").extend(process, events=40).mean())


@pytest.mark.exact
def test_what_stands_beside_a_cache_is_known(tmp_path):
    """A number that is used, in the same object, even where its effect on values is too small to be seen."""
    function = CACHES["a memo"]()
    run = sample(function, tmp_path / "run")
    function.mean = 1e-14
    with pytest.raises(ValueError, match="is of another call: `process` differs"):
        sample(function, tmp_path / "run")
    with pytest.raises(ValueError, match="what it names has changed"):
        run.extend(events=40)


@pytest.mark.exact
def test_what_begins_to_change_later_has_no_checkpoint(tmp_path):
    function = Keeping(lambda self, x: self.mean and self.state.setdefault(x.tobytes(), 1.0))
    model = pdmp.models.from_function(function, 2)
    function.mean = 1e-12
    with pytest.raises(ValueError, match="changes when it is called, and did not when the model was made; keep it"):
        pdmp.sample(pdmp.ZigZag(model), initial=[0.3, 0.1], checkpoint=tmp_path / "run", events=20, seed=1)
    assert not (tmp_path / "run").exists()


@pytest.mark.exact
def test_what_has_begun_to_change_is_known_to_the_next_model(tmp_path):
    """What the calls of an earlier model changed is added to what those of a new one do, and does not replace it."""
    function = Keeping(lambda self, x: self.mean and self.state.setdefault(x.tobytes(), 1.0))
    pdmp.models.from_function(function, 2)
    function.mean = 1e-12
    run = sample(function, tmp_path / "run")
    assert np.array_equal(sample(function, tmp_path / "run").mean(), run.mean())


def with_velocity(size, kept, held):
    """A process whose velocities are drawn with this size, beside what it keeps for itself and what it holds."""

    class Own(Telegraph):
        def __init__(self):
            super().__init__()
            self._kept, self.held = kept, held

        def velocity(self, x, rng):
            return size * rng.choice([-1.0, 1.0], 2)

    return Own()


@pytest.mark.exact
@pytest.mark.parametrize("held", [None, threading.Lock()], ids=["nothing", "a lock"])
def test_how_a_chain_begins_is_known_and_what_a_process_keeps_for_itself_is_not(held):
    known = checkpoints.digest(with_velocity(1.0, 1, held))
    assert known == checkpoints.digest(with_velocity(1.0, 2, held))
    assert known != checkpoints.digest(with_velocity(2.0, 1, held))


@pytest.mark.exact
def test_values_of_a_model_may_differ_by_rounding_alone():
    model = pdmp.models.Gaussian([1.0, -1.0], [1.0, 4.0])
    found = checkpoints.model_values(model, np.zeros(2))
    assert len(found) == 16 and np.all(np.isfinite(found))
    assert checkpoints.same_values(model, found, [v * (1.0 + 1e-12) for v in found])
    for k in range(16):
        assert not checkpoints.same_values(model, found, [*found[:k], found[k] + 1e-6, *found[k + 1 :]])


@pytest.mark.exact
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_values_of_a_model_tell_what_differs_far_from_the_start_alone(dim):
    def walls(steep):
        def both(x):
            beyond = np.maximum(np.abs(x) - 0.8, 0.0)
            return 0.5 * float(x @ x) + steep * float(beyond @ beyond), x + 2.0 * steep * beyond * np.sign(x)

        return pdmp.models.from_function(both, dim)

    one, other = (checkpoints.model_values(walls(steep), np.zeros(dim)) for steep in (0.0, 5.0))
    assert one[:12] == other[:12] and not checkpoints.same_values(walls(0.0), one, other)


@pytest.mark.exact
def test_a_write_that_fails_keeps_the_run(tmp_path, monkeypatch):
    """The folder is gone for a while: one warning, and the file is there in the end."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.0)
    write, failed = storage.write, []

    def fail_at_first(path, header, arrays):
        if len(failed) < 3:
            failed.append(path)
            raise OSError(28, "No space left on device")
        write(path, header, arrays)

    monkeypatch.setattr(storage, "write", fail_at_first)
    call = {"steps": 2_000, "seed": 1, "initial": np.ones(3)}
    with pytest.warns(UserWarning, match="run' could not be written: .*No space left on device.*") as said:
        run = pdmp.sample(Ticks(), checkpoint=folder / "run", **call)
        while len(failed) < 3:
            pdmp.sample(Ticks(), checkpoint=folder / "run", **call)
    assert all(str(folder / "run") in str(w.message) for w in said)
    np.testing.assert_array_equal(run.mean(), pdmp.sample(Ticks(), **call).mean())
    assert len(list(folder.iterdir())) <= 1  # no lock is left


@pytest.mark.exact
def test_arrays_of_the_same_bytes_are_told_apart():
    """By their type and their shape."""
    arrays = [np.zeros(6), np.zeros(6, np.int64), np.zeros((2, 3)), np.zeros((3, 2)), np.zeros(12, np.float32)]
    assert len({array.tobytes() for array in arrays}) == 1
    assert len({checkpoints.digest(array) for array in (*arrays, arrays[0].copy())}) == 5


@pytest.mark.exact
def test_of_writes_that_fail_the_first_and_the_last_are_said(tmp_path, monkeypatch):
    """They wait for each other all the same."""

    def fail(self):
        tried.append(None)
        raise OSError(28, "No space left on device")

    tried = []
    monkeypatch.setattr(checkpoints.Checkpoint, "_write", fail)
    file = checkpoints.Checkpoint(tmp_path / "run", {}, 1, Telegraph(), np.zeros(1))
    file._written -= 1.1 * checkpoints.CHECKPOINT_SECONDS
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(3):
            file.write_if_due()
        file.write()
        file.write(last=True)
    file.release()
    assert len(tried) == 3
    for one, words in zip(said, ("it is tried again", "is older than this run"), strict=True):
        assert words in str(one.message)


@pytest.mark.exact
def test_a_file_size_limit_keeps_the_run(tmp_path):
    resource = pytest.importorskip("resource")
    path, before = tmp_path / "run", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, before[1]))
    try:
        with pytest.warns(
            UserWarning, match="written: .*What the file holds is older than this run, or nothing: "
        ) as said:
            run = pdmp.sample(Telegraph(), events=200, seed=1, checkpoint=path)
        assert sum("could not be written" in str(w.message) for w in said) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert run.events[0] == 200 and not list(tmp_path.iterdir())


@pytest.mark.exact
@pytest.mark.parametrize(
    "path, message",
    [
        ("", "`checkpoint` must be the name of a file, got ''"),
        (".", "`checkpoint` must be the name of a file"),
        ("/dev/full", "`checkpoint` must be the name of a file"),
        ("a\0b", r"`checkpoint` must be the name of a file, got 'a\\x00b'"),
        ("\ud800", "`checkpoint` must be the name of a file"),
        ("/proc/run", "`checkpoint` '/proc/run' cannot be written"),
    ],
)
def test_a_file_that_cannot_be_is_an_error_before_the_run(path, message):
    with pytest.raises(ValueError, match=message):
        pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=path)
    with pytest.raises(TypeError, match="`checkpoint` must be a path, got 3"):
        pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=3)


@pytest.mark.exact
def test_a_checkpoint_that_may_not_be_read_is_an_error_before_the_run(tmp_path, monkeypatch):
    sample(KINDS["dict"](0.0), path := tmp_path / "run")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(storage, "read", refuse)
    with pytest.raises(ValueError, match="^`checkpoint` .*run' cannot be read: Permission denied.$"):
        sample(KINDS["dict"](0.0), path)


LOCKED = """
import signal, sys, pdmp
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a child of nohup ignores it
from pdmp.engine import checkpoint
checkpoint.CHECKPOINT_SECONDS = 0.05
from tests.toys import Telegraph
import pathlib, threading, time
def say():
    while not pathlib.Path(sys.argv[1]).exists():  # the first checkpoint is written by a run that listens to signals
        time.sleep(0.02)
    print("ready", flush=True)
threading.Thread(target=say, daemon=True).start()
import warnings; warnings.simplefilter("ignore")
run = pdmp.sample(Telegraph(), time=1e12, store="moments", seed=1, checkpoint=sys.argv[1])
print(run.stopped, int(run.events[0]), flush=True)
"""


@pytest.mark.exact
@pytest.mark.skipif(os.name != "posix", reason="locks and signals of POSIX")
@pytest.mark.parametrize("name", in_quick(["SIGTERM", "SIGHUP"], "SIGTERM"))
def test_a_second_run_is_refused_and_a_signal_ends_the_first_as_ctrl_c_does(name, tmp_path):
    path = tmp_path / "run"
    child = subprocess.Popen(
        [sys.executable, "-c", LOCKED, str(path)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": ROOT, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout.readline().strip() == "ready"
        try:
            with pytest.raises(ValueError, match="is being written by another run; name another file"):
                pdmp.sample(Telegraph(), time=1.0, store="moments", seed=1, checkpoint=path)
            child.send_signal(getattr(signal, name))
            stopped, events = child.stdout.readline().split()
        except BaseException:  # else it would run on, and be waited for
            child.kill()
            raise
    assert stopped == "interrupted" and child.returncode == 0
    header, _ = storage.read(path, "checkpoint")
    assert header["chains"]["0"]["stopped"] is None
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert int(events) > 0


@pytest.mark.exact
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("share", [0.5, 0.8, 0.85, 0.9])
def test_a_run_with_goals_that_a_signal_ends_and_that_is_resumed_is_the_same_run(share, tmp_path, monkeypatch):
    """However far each chain is when the signal comes, at a look or on the way; how far depends on the machine."""
    submit, calls, at = executors.Threads.submit, 0, None

    def submit_and_stop(self, chain, seconds):
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return submit(self, chain, seconds)

    def go(path):
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            executor = executors.Segments(thread, 1e-3)
            return pdmp.sample(process, ess=100, rhat=1.5, chains=3, seed=3, executor=executor, checkpoint=path)

    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]]))
    monkeypatch.setattr(executors.Threads, "submit", submit_and_stop)
    whole = go(tmp_path / "whole")
    calls, at = 0, round(share * calls)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the run was interrupted")
        go(tmp_path / "run")
    at = None
    again = go(tmp_path / "run")
    assert again.stopped == whole.stopped == "ess, rhat"
    np.testing.assert_array_equal(again.events, whole.events)
    np.testing.assert_array_equal(again.mean(), whole.mean())


@pytest.mark.exact
def test_nothing_is_examined_before_all_chains_are_at_the_look():
    chains = [SimpleNamespace(stopped=stopped, look=600, failure=None) for stopped in (LOOK, None, LOOK)]
    goal = Goal(Telegraph(), 0.0, ess=10)
    assert not goal.go_on(chains, {}) and goal.draws is None
    assert [(c.stopped, c.look) for c in chains] == [(LOOK, 600), (None, 600), (LOOK, 600)]


@pytest.mark.exact
def test_two_runs_of_one_process_do_not_write_one_checkpoint(tmp_path):
    file = checkpoints.Checkpoint(tmp_path / "run", {}, 1, Telegraph(), np.zeros(2))
    with pytest.raises(ValueError, match="is being written by another run"):
        pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=tmp_path / "run")
    lock = file._lock
    file.release()
    with pytest.raises(OSError):
        os.fstat(lock)  # it is closed: the next runs of the program may open as many files as before
    pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=tmp_path / "run")


@pytest.mark.exact
def test_a_system_without_hangups_has_checkpoints(tmp_path, monkeypatch):
    """As Windows."""
    monkeypatch.delattr(signal, "SIGHUP", raising=False)
    assert pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=tmp_path / "run").events[0] == 10


@pytest.mark.exact
@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_lock_that_the_run_before_removes_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    """Another run would make one of its own, and write the same file."""
    tried, lockf = [], checkpoints.fcntl.lockf

    def removed_at_first(lock, how):
        if not tried:
            os.unlink(tmp_path / "run.lock")
        tried.append(lock)
        lockf(lock, how)

    monkeypatch.setattr(checkpoints.fcntl, "lockf", removed_at_first)
    file = checkpoints.Checkpoint(tmp_path / "run", {}, 1, Telegraph(), np.zeros(1))
    assert len(tried) == 2 and os.path.samestat(os.stat(tmp_path / "run.lock"), os.fstat(file._lock))
    file.release()


@pytest.mark.exact
@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_links_are_not_followed_and_modes_are_the_usual_ones(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "run.part").symlink_to(victim)
    before = os.umask(0o027)
    try:
        pdmp.sample(Telegraph(), events=10, seed=1, checkpoint=tmp_path / "run")
    finally:
        os.umask(before)
    assert victim.read_text() == "precious" and not (tmp_path / "run.part").exists()
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o640


@pytest.mark.exact
def test_a_finished_checkpoint_goes_on_with_a_larger_budget(tmp_path):
    path, call = tmp_path / "run", {"seed": 3, "chains": 2}
    pdmp.sample(Telegraph(), events=40, checkpoint=path, **call)
    more = pdmp.sample(Telegraph(), events=90, checkpoint=path, **call)
    whole = pdmp.sample(Telegraph(), events=90, **call)
    for one, other in zip(more.trajectories, whole.trajectories, strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
        np.testing.assert_array_equal(one.times, other.times)
    np.testing.assert_array_equal(more.var(), whole.var())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="fewer than 30 effective draws")
        assert pdmp.sample(Telegraph(), events=90, checkpoint=path, **call).events.tolist() == [90, 90]
    with pytest.raises(ValueError, match="has already spent more than the budget"):
        pdmp.sample(Telegraph(), events=50, checkpoint=path, **call)


@pytest.mark.exact
def test_what_is_written_after_a_resumption_has_the_chains_that_had_ended_too(tmp_path, monkeypatch):
    """Killed when one of three chains has been kept again: the others' states are still in the file."""
    file = tmp_path / "run.checkpoint"
    call = {"chains": 3, "seed": 4, "warmup": 0.2, "checkpoint": file}
    done = pdmp.sample(Telegraph(), events=60, **call)
    resume = checkpoints.Checkpoint.resume

    def resume_and_die(self, chains, *saved):
        resume(self, chains, *saved)
        self.keep(1, chains[1])
        self.write()
        raise KeyError("killed")

    monkeypatch.setattr(checkpoints.Checkpoint, "resume", resume_and_die)
    with pytest.raises(KeyError, match="killed"):
        pdmp.sample(Telegraph(), events=90, **call)
    monkeypatch.undo()
    header, arrays = checkpoints.read_checkpoint(file)
    assert sorted(header["chains"]) == ["0", "1", "2"]
    more = pdmp.sample(Telegraph(), events=90, **call)
    assert np.all(more.events == 90)
    for one, path in zip(done.trajectories, more.trajectories, strict=True):
        np.testing.assert_array_equal(path.times[: len(one.times)], one.times)
