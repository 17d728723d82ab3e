"""A process that is written wrongly does not run: one clear line for each mistake, before anything compiles."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import itertools
import random
import re
import time
import types
import uuid
import warnings
from random import random as uniform  # noqa: F401 - of lines below

import numba
import numpy as np
import pytest
import scipy.stats
from numba.core import config
from numpy.random import standard_normal  # noqa: F401 - likewise

import discrete
import pdmp
from pdmp.engine import checks, preflight
from pdmp.engine import run as run_module
from pdmp.engine.chain import Chain
from pdmp.flow import Linear
from pdmp.interfaces.report import Report
from pdmp.native.classes import Compiled, check_attributes, holds_generator, positive_part
from pdmp.native.fingerprints import array_digest
from pdmp.native.velocities import dot  # noqa: F401 - likewise
from pdmp.process import Prepared, count_data
from pdmp.thinning import Bound, affine_proposal
from tests.checks import new_chain, plain_only
from tests.engine.helpers_run import method
from tests.toys import Walls

pytestmark = pytest.mark.exact
TARGET = pdmp.models.LogisticRegression(np.eye(4, 3), [0, 1, 0, 1])


class Right(pdmp.Process):
    """Two coordinates that change direction at rate 1: nothing is wrong with it."""

    short: np.ndarray
    target: object
    late: float

    _required = ()

    local_events = False

    def __init__(self, late=0.0):
        super().__init__(2, 2, local=self.local_events)
        self.short, self.target, self.late = np.ones(1), TARGET, late

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        return 0


def helper(x):
    return x * np.random.random()  # noqa: NPY002


@numba.njit
def compiled_helper(x):
    return x * np.random.random()  # noqa: NPY002


#: Clocks of two kinds, as the lines of their methods.
BOUNDED = "return now + rng.standard_exponential() / 2.0, 2.0"
WAITING = "return rng.standard_exponential(), pdmp.CERTAIN"
GENERATOR = np.random.default_rng(1)
WRONG = {
    "no rate": (dict(clock=BOUNDED), "`clock` of Mine returned the bound 2, but the class has no `rate`: write"),
    "no rate of one clock": (
        dict(clock="return now + rng.standard_exponential() / 2.0, pdmp.CERTAIN if i == 0 else 2.0"),
        "returned the bound 2, but the class has no `rate`",
    ),
    "jump returns nothing": (
        dict(jump="state.v[i] = -state.v[i]"),
        "`jump` of Mine returns nothing: it must return the kind of event",
    ),
    "on one path": (
        dict(jump="if state.x[0] > 1e6:\n    return\nstate.v[i] = -state.v[i]\nreturn 0"),
        "`jump` of Mine returns nothing",
    ),
    "rate returns nothing": (dict(clock=BOUNDED, rate="rng.random()"), "`rate` of Mine returns nothing: it must"),
    "rate returns two": (
        dict(clock=BOUNDED, rate="return 1.0, 2.0"),
        r"`rate` of Mine must return the rate, .*got \(",
    ),
    "unknown kind": (dict(jump="return 1"), "`jump` of Mine must return the kind .* 0 … 0, or -1 .*; got 1"),
    "kind is a float": (dict(jump="return 0.5"), "`jump` of Mine must return the kind of event, .*; got 0.5"),
    "np.random": (
        dict(clock="return now + np.random.standard_exponential(), pdmp.CERTAIN"),
        "`clock` of Mine uses `np.random`, .* draw from the argument `rng`",
    ),
    "random": (
        dict(clock="return now + random.expovariate(1.0), pdmp.CERTAIN"),
        "`clock` of Mine uses `random`, whose numbers no `seed` repeats",
    ),
    "from numpy.random": (
        dict(jump="state.v[i] = standard_normal()\nreturn 0"),
        "`jump` of Mine uses `standard_normal`, whose",
    ),
    "from random": (dict(jump="state.v[i] = uniform()\nreturn 0"), "`jump` of Mine uses `uniform`, whose numbers"),
    "import": (
        dict(clock="import time\nreturn now + time.time() % 1.0, pdmp.CERTAIN"),
        "`clock` of Mine uses `time.time`, whose numbers no `seed` repeats",
    ),
    "from import": (
        dict(clock="from os import urandom\nreturn now + urandom(1)[0], pdmp.CERTAIN"),
        "`clock` of Mine uses `os.urandom`, whose numbers no `seed`",
    ),
    "no bound": (dict(clock="return now + 1.0, np.nan"), "`clock` of Mine returns the bound nan: it must be a number"),
    "in a helper": (dict(clock=BOUNDED, rate="return helper(1.0)"), "`rate` of Mine uses `np.random`"),
    "in a compiled one": (dict(clock=BOUNDED, rate="return compiled_helper(1.0)"), "`rate` of Mine uses `np.random`"),
    "generator of a file": (
        dict(clock=BOUNDED, rate="return GENERATOR.random()"),
        "`rate` of Mine uses `GENERATOR`, whose numbers no `seed` repeats",
    ),
    "another's velocity": (
        dict(jump="state.v[1 - i] = -state.v[1 - i]\nreturn 0", local=True),
        r"`jump` of Mine changes `state.v\[1\]`: an event of clock 0 may change what its row of `scope` names, \[0\]",
    ),
    "another's position": (
        dict(jump="state.x[1 - i] = 0.5\nreturn 0", local=True),
        r"`jump` of Mine changes `state.x\[1\]`",
    ),
    "clock moves": (
        dict(clock="state.x[i] += 1.0\nreturn now + rng.standard_exponential(), pdmp.CERTAIN"),
        r"`clock` of Mine changes `state.x\[0\]`: only an event may change it",
    ),
    "rate turns": (
        dict(clock=BOUNDED, rate="state.v[i] = -state.v[i]\nreturn 1.0"),
        r"`rate` of Mine changes `state.v\[0\]`: only an event may change it",
    ),
    "waiting times": (
        dict(clock=WAITING),
        r"`clock` of Mine returned the time \S+ when `now` was \S+: it must return `now` plus a waiting time",
    ),
    "constant waiting times": (
        dict(clock="return 1.0, pdmp.CERTAIN"),
        "`clock` of Mine returned the time 1 when `now` was 1: it must return `now` plus a waiting time",
    ),
    "short array": (
        dict(jump="self.target.add_term_gradient(state.x, 0, self.short)\nreturn 0"),
        r"`jump` of Mine fails in plain Python: IndexError: .*test_preflight.py, in its call of `\w+`",
    ),
    "short array, helper": (
        dict(jump="state.v[i] = dot(state.x, self.short)\nreturn 0"),
        "`jump` of Mine fails in plain Python: IndexError: .*test_preflight.py, in its call of `dot`",
    ),
}


def mine(local=False, **methods):
    """A class with these methods, each a function or its lines."""
    made = {name: method(name, m, globals()) if isinstance(m, str) else m for name, m in methods.items()}
    names = {name: pdmp.compiled(function) for name, function in made.items()}
    return type("Mine", (Right,), names | {"__module__": __name__, "local_events": local})


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_process_does_not_run(name, monkeypatch):
    methods, message = WRONG[name]
    monkeypatch.setattr(Chain, "compile", lambda chain: pytest.fail("it is compiled before the mistake is found"))
    with pytest.raises(TypeError, match=message) as caught:
        pdmp.sample(mine(**methods)(), time=10.0, seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", ["clock", "rate"])
def test_what_changes_the_path_later_ends_the_run_there_whatever_the_chunks(name, local, monkeypatch):
    methods = {
        "clock": "if now > self.late:\n    state.x[i] += 1e-9\nreturn now + rng.standard_exponential(), pdmp.CERTAIN"
    }
    if name == "rate":
        methods = {"clock": BOUNDED, "rate": "if now > self.late:\n    state.v[1 - i] *= 1.1\nreturn 1.0"}
    what = rf"`{name}` of Mine changes `state.[xv]\[[01]\]`: only an event may change it \("
    if local:  # where what stands between events is compared
        what += r"|coordinate [01] outside the row of `scope` of its clock, or a clock or a rate changed it, so that"
    said = []
    for first in (16, 1_000):
        monkeypatch.setattr("pdmp.engine.chain.FIRST_CHUNK", first)
        with pytest.raises(pdmp.SamplingError, match=what) as caught:
            pdmp.sample(mine(local, **methods)(late=300.0), time=5_000.0, seed=1)
        assert 300.0 < caught.value.run.end.max() < 1_500.0
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert pdmp.sample(mine(local, **methods)(late=1e9), time=700.0, seed=1).stopped == "time"


def test_events_of_one_clock_draw_the_others_in_a_rehearsal(monkeypatch):
    monkeypatch.setattr(Chain, "compile", lambda chain: pytest.fail("it is compiled before the mistake is found"))
    other = "now + 1e9 if state.v[0] == self.short[0] else now - 1.0"
    clock = f"return (now + rng.standard_exponential() if i == 0 else {other}), pdmp.CERTAIN"
    process = mine(clock=clock, velocity=lambda self, x, rng: np.ones(2))()
    with pytest.raises(TypeError, match="`now` plus a waiting time"):
        pdmp.sample(process, time=10.0, seed=1)


def test_a_waiting_time_is_found_whatever_the_seed():
    for seed in range(20):
        with pytest.raises(TypeError, match="`now` plus a waiting time"):
            pdmp.sample(mine(clock=WAITING)(), time=10.0, seed=seed)


class Still(discrete.Brownian):
    @pdmp.compiled
    def move(self, x, v, memory, z, rng, counts):
        x[0] += z[0]


class Unbounded(pdmp.models.Gaussian):
    @pdmp.compiled
    def curvature_bound(self, v):
        if v[0] > 0.0:
            return 1.0


def test_a_method_that_returns_nothing_is_refused_by_name():
    target = pdmp.models.Gaussian([0.0], [1.0])
    with pytest.raises(TypeError, match="`move` of Still returns nothing: it must return True, or False if a number"):
        pdmp.sample(Still(target, step=0.1), steps=10, seed=1)
    with pytest.raises(
        TypeError, match="`curvature_bound` of Unbounded returns nothing: .* a value, as that of Gaussian"
    ):
        pdmp.sample(pdmp.BPS(Unbounded([0.0], [1.0])), time=1.0, seed=1)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState, np.random.PCG64, random.Random])
@pytest.mark.parametrize("wrapped", [lambda value: value, lambda value: [value]])
def test_a_generator_is_not_kept_in_an_object(kind, wrapped):
    """A run would draw from it where the last one stopped: another path for the same seed."""

    class Noisy(Right):
        source: object

        def __init__(self, source):
            super().__init__()
            self.source = source

    with pytest.raises(
        TypeError, match="`self.source` of Noisy is a random generator, whose numbers no `seed` of a run"
    ):
        Noisy(wrapped(kind(1)))
    late = Noisy(None)
    late.source = wrapped(kind(1))
    with pytest.raises(TypeError, match="`self.source` of Noisy is a random generator"):
        pdmp.sample(late, time=1.0, seed=1)


@dataclasses.dataclass(eq=False)
class Box:
    """What holds a generator, or anything else."""

    content: object

    def __call__(self):
        return self.content.random()

    def random(self):
        return 0.5


class Slots:
    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content


class Plain:
    def __init__(self, content):
        self.content = content

    def draw(self):
        return self.content.random()


Pair = collections.namedtuple("Pair", "scale source")


def circle(content):
    ring = {}
    ring |= {"again": (ring,), "content": content}
    return ring


def shared(content):
    """Thirty objects within each other, each of which holds the next one twice."""
    for _ in range(30):
        inner, content = content, Plain(content)
        content.again = inner
    return content


def objects(content):
    array = np.empty((1, 2), object)
    array[0, 1] = content
    return array


def closure(content):
    return lambda: content.random()


def by_keyword(gen):
    def draw(*, source=gen):
        return source

    return draw


HOLDERS = {
    "tuple in a tuple": lambda gen: ((1.0, gen),),
    "named tuple in a tuple": lambda gen: (Pair(1.0, gen),),
    "dict": lambda gen: {"g": gen},
    "dict of dicts": lambda gen: {"a": {"b": [gen]}},
    "list of lists": lambda gen: [[gen]],
    "set": lambda gen: {gen},
    "dataclass": Box,
    "slots": Slots,
    "object in a list": lambda gen: [Plain(gen)],
    "array of objects": objects,
    "method of it": lambda gen: gen.random,
    "default by keyword": by_keyword,
    "method of what holds it": lambda gen: Plain(gen).draw,
    "partial": lambda gen: functools.partial(gen.random),
    "argument of a partial": lambda gen: functools.partial(max, gen),
    "option of a partial": lambda gen: functools.partial(max, key=gen),
    "closure": closure,
    "circle": circle,
    "shared": shared,
    "deep": lambda gen: functools.reduce(lambda held, _: {"a": held}, range(100), gen),
}


class Keeping(Right):
    source: object

    def __init__(self, source):
        super().__init__()
        self.source = source


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_generator_is_not_kept_in_what_an_object_keeps(holder):
    held = HOLDERS[holder]
    with pytest.raises(TypeError, match="`self.source` of Keeping (is|holds) a random generator, whose numbers no"):
        Keeping(held(np.random.default_rng(1)))
    Keeping(held(Box(None)))  # the same without one
    late = Keeping(None)
    late.source = held(np.random.default_rng(1))
    with pytest.raises(TypeError, match="`self.source` of Keeping (is|holds) a random generator"):
        pdmp.sample(late, time=1.0, seed=1)


def test_a_generator_that_the_class_keeps_is_refused():
    mine = type("Mine", (Right,), {"__annotations__": {"source": "object"}, "source": [np.random.default_rng(1)]})
    with pytest.raises(TypeError, match="`self.source` of Mine is a random generator"):
        mine()


class Remembering(pdmp.models.Gaussian):
    """A model that counts the calls of its gradient."""

    calls: np.ndarray

    def __init__(self):
        super().__init__(np.zeros(2), np.ones(2))
        self.calls = np.zeros(1, int)

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        self.calls[0] += 1
        out += x


class InPairs(Right):
    pair: tuple

    def __init__(self):
        super().__init__()
        self.pair = np.zeros(2), np.zeros(3)

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        self.pair[1][2] = now
        return 0


class InLists(Right):
    seen: object

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        self.seen[-1] = now
        return now + rng.standard_exponential(), pdmp.CERTAIN


SEEN, STORE, TICKS = [0], {}, itertools.count()


def kept_by_default(kept=[0]):  # noqa: B006
    kept[0] += 1
    return kept[0]


def kept_by_itself():
    kept_by_itself.calls += 1
    return kept_by_itself.calls


kept_by_itself.calls = 0


def kept_around():
    calls = 0

    def count():
        nonlocal calls
        calls += 1
        return calls

    return count


kept_in_a_closure = kept_around()


class Counted(Right):
    calls = 0


#: Clocks that count their calls.
COUNTED = [
    "SEEN[0] += 1\nreturn now + rng.standard_exponential() * SEEN[0], pdmp.CERTAIN",
    "STORE[now] = 1.0\nreturn now + rng.standard_exponential() * len(STORE), pdmp.CERTAIN",
    "return now + rng.standard_exponential() * kept_by_default(), pdmp.CERTAIN",
    "return now + rng.standard_exponential() * kept_by_itself(), pdmp.CERTAIN",
    "return now + rng.standard_exponential() * kept_in_a_closure(), pdmp.CERTAIN",
    "Counted.calls += 1\nreturn now + rng.standard_exponential() * Counted.calls, pdmp.CERTAIN",
    "return now + rng.standard_exponential() * (1 + next(TICKS)), pdmp.CERTAIN",
]


def test_what_methods_name_is_not_written_to_in_plain_python():
    """Lists, closures and the like, which compiled code has as constants or refuses; a table that is read is right."""
    if not config.DISABLE_JIT:
        pytest.skip("numba refuses these")
    for clock in COUNTED:
        with pytest.raises(TypeError, match=r"^what `\w+` of Mine names outside of it is written to while a run goes"):
            pdmp.sample(mine(clock=clock)(), time=10.0, seed=1)

    SEEN[0] = 1

    def late(self, state, i, now, rng):
        SEEN[0] += now > 50.0
        return now + SEEN[0] * rng.standard_exponential(), pdmp.CERTAIN

    with pytest.warns(UserWarning, match=r"^what `\w+` of Mine names outside of it is written to while a run goes on"):
        pdmp.sample(mine(clock=late)(), time=60.0, seed=1)
    run = pdmp.sample(mine(clock=late)(), time=40.0, seed=1)  # without a warning
    SEEN[0] += 1
    with pytest.raises(ValueError, match=r"^what `\w+` of Mine names outside of it has changed, and two posteriors"):
        run.extend(time=45.0)


WRITTEN = {
    "list": (lambda: InLists([0.0]), "seen` of InLists"),
    "dict": (lambda: InLists({-1: 0.0}), "seen` of InLists"),
    "object": (lambda: InLists(collections.UserList([0.0])), "seen` of InLists"),
    "jump": (
        lambda: mine(
            jump="self.short[0] += 1.0\nif self.short[0] % 3.0 == 0.0:\n    state.v[i] = -state.v[i]\nreturn 0"
        )(),
        "short` of Mine",
    ),
    "clock": (
        lambda: mine(
            clock="self.short[0] *= 2.0\nreturn now + self.short[0] * rng.standard_exponential(), pdmp.CERTAIN"
        )(),
        "short` of Mine",
    ),
    "rate": (lambda: mine(clock=BOUNDED, rate="self.short[-1] = now\nreturn 1.0")(), "short` of Mine"),
    "model": (lambda: pdmp.BPS(Remembering(), refresh_rate=1.0), "calls` of Remembering"),
    "pair": (InPairs, "pair` of InPairs"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_field_holds_is_not_written_to(name, monkeypatch):
    """A second run with the same seed would go another way."""
    make, said = WRITTEN[name]
    monkeypatch.setattr(Chain, "compile", lambda chain: pytest.fail("it is compiled before the mistake is found"))
    with pytest.raises(TypeError, match=f"^`{said} is written to while a run goes on, .* of the process's `mem"):
        pdmp.sample(make(), time=10.0, seed=1)


def test_an_array_in_a_field_that_is_written_to_late_is_said_after_the_run():
    with pytest.warns(UserWarning, match=r"^`short` of Mine is written to while a run goes on, so that no `seed`"):
        pdmp.sample(
            mine(jump="if now > 50.0:\n    self.short[0] += 1.0\nstate.v[i] = -state.v[i]\nreturn 0")(),
            time=60.0,
            seed=1,
        )
    pdmp.sample(
        mine(jump="if now > 50.0:\n    self.short[0] += 1.0\nstate.v[i] = -state.v[i]\nreturn 0")(), time=40.0, seed=1
    )  # without a warning


class Declared(Right):
    number: int
    flag: bool

    def __init__(self, number=1, flag=False, late=0.0, dim=2, clocks=2):
        pdmp.Process.__init__(self, dim, clocks)
        self.short, self.target, self.late, self.number, self.flag = np.ones(1), TARGET, late, number, flag


@pytest.mark.parametrize(
    ("field", "kind", "wrong", "right"),
    [
        ("number", "int", [1.5, "2", None], [2.0, np.int8(2), True]),
        ("flag", "bool", [2, "no", 0.5], [1, np.True_]),
        ("late", "float", ["0.5", b"1", None], [1, np.float32(0.5)]),
    ],
)
def test_fields_that_are_not_what_they_are_declared_as_are_not_rounded(field, kind, wrong, right):
    for value in wrong:
        with pytest.raises(TypeError, match=f"^`{field}` of Declared is declared as {kind}, and was given "):
            pdmp.sample(Declared(**{field: value}), time=1.0, seed=1)
    for value in right:
        assert getattr(Declared(**{field: value}).native, field) == value


@pytest.mark.parametrize("name", ["dim", "clocks"])
@pytest.mark.parametrize("value", [2.5, "2", True, None, 0, -1, float("nan")])
def test_sizes_are_whole_numbers(name, value):
    with pytest.raises(ValueError, match=f"^`{name}` must be a whole number, at least 1, got "):
        Declared(**{name: value})
    if name == "dim":
        with pytest.raises(ValueError, match="^`dim` must be a whole number, at least 1, got "):
            pdmp.Model(dim=value)
    with pytest.raises(ValueError, match="^`n_data` must be a whole number, at least 0, got "):
        pdmp.Model(dim=2, n_data=value if value not in (0, True) else -2)


class Ring(pdmp.Process):
    """Coordinates that turn at rate 1; later, some events change the next but one as well."""

    late: int
    every: int
    moves: bool

    def __init__(self, late, every=1, moves=False, clocks=20):
        super().__init__(clocks, clocks, local=True)
        self.late, self.every, self.moves = late, every, moves

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        done = state.counts[pdmp.process.CANDIDATES]
        if done > self.late and i % self.every == 0:
            if self.moves:
                state.x[(i + 2) % self.dim] += 1.0
            else:
                state.v[(i + 2) % self.dim] *= -1.0
        return 0


@pytest.mark.parametrize(
    "how", [{}, {"moves": True}, {"every": 7}, {"clocks": 3}], ids=["0", "moves", "every", "clocks"]
)
def test_what_events_change_is_seen_later_too(how):
    with pytest.raises(pdmp.SamplingError, match=r"`jump` of Ring changed coordinate \d+ outside the row of") as caught:
        pdmp.sample(Ring(200, **how), events=3_000, seed=1)
    events = caught.value.run.stats["total_events"]
    assert 200 < events < 1_500
    with pytest.raises(pdmp.SamplingError, match=f"after event {events},"):  # whatever the size of a chunk
        pdmp.sample(Ring(200, **how), events=3_000, seed=1, store="moments")


def test_looking_at_what_events_change_changes_nothing(monkeypatch):
    """With two events at each time, of which the second is at the time from which on it is looked at."""
    watched = pdmp.sample(Ring(10**9), events=5_000, seed=1).trajectories[0]
    pdmp.sample(Together(), time=2_000.0, seed=1)
    monkeypatch.setattr(run_module, "watch_of", lambda process: None)
    np.testing.assert_array_equal(pdmp.sample(Ring(10**9), events=5_000, seed=1).trajectories[0].times, watched.times)


class Together(Ring):
    def __init__(self):
        pdmp.Process.__init__(self, 3, 3, [[0], [1], [2]], scope=[[0, 1], [0, 1], [2]])
        self.late, self.every, self.moves = 10**9, 1, False

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return (now + 1.0, pdmp.CERTAIN) if i < 2 else (now + rng.standard_exponential(), pdmp.CERTAIN)


def test_a_search_for_generators_ends():
    kept = Keeping([[float(i)] for i in range(60_000)])
    assert len(kept.source) == 60_000
    assert not holds_generator(circle(None))


def test_generators_of_installed_packages_are_their_own():
    Keeping(scipy.stats.norm(0.0, 1.0))
    assert holds_generator(scipy.stats.norm(0.0, 1.0).dist._random_state)


def test_what_a_function_is_a_method_of_may_hold_a_generator():
    """As an object may, which has simulated the data of its potential."""

    class Study:
        def __init__(self):
            self.rng = np.random.default_rng(1)

        def potential(self, x):
            return 0.5 * float(x @ x), x

    model = pdmp.models.from_function(Study().potential, dim=1)
    assert model.gradient([2.0]) == [2.0]


T0, D0, B0 = (np.random.default_rng(1),), {"g": np.random.default_rng(1)}, [Box(np.random.default_rng(1))]
DRAW, PART = np.random.default_rng(1).random, functools.partial(np.random.default_rng(1).random)


class Settings:
    source = np.random.default_rng(1)
    late = 1.0


@pytest.mark.parametrize(
    "expression, named",
    [
        ("T0[0].random()", "T0"),
        ('D0["g"].random()', "D0"),
        ("B0[0]()", "B0"),
        ("DRAW()", "DRAW"),
        ("PART()", "PART"),
        ("Settings.source.random()", "Settings.source"),
        ("np.random.default_rng().random()", "np.random"),
        ("default_rng().random()", "default_rng"),
        ("SystemRandom().random()", "SystemRandom"),
        ("time.time()", "time.time"),
        ("clock_of_today()", "clock_of_today"),
        ("datetime.datetime.now().microsecond", "datetime.datetime"),
        ("today.now().microsecond", "today"),
        ("os.urandom(1)[0]", "os.urandom"),
        ("urandom(1)[0]", "urandom"),
        ("uuid.uuid4().int % 7", "uuid.uuid4"),
        ("secrets.randbelow(7)", "secrets.randbelow"),
        ("token_bytes(1)[0]", "token_bytes"),
        pytest.param(" + ".join(f"now.a{k}" for k in range(300)) + " + np.random.random()", "np.random", id="300"),
    ],
)
def test_what_no_seed_repeats_is_refused_by_name(expression, named):
    import datetime
    import os
    import secrets
    import time
    import uuid

    scope = dict(time=time, clock_of_today=time.time, datetime=datetime, today=datetime.datetime, os=os, uuid=uuid)
    scope |= dict(secrets=secrets, urandom=os.urandom, token_bytes=secrets.token_bytes)
    scope |= dict(default_rng=np.random.default_rng, SystemRandom=random.SystemRandom)
    rate = method("rate", f"return {expression}", globals() | scope)
    with pytest.raises(TypeError, match=rf"`rate` of Mine uses `{named}`, whose numbers no `seed` repeats"):
        pdmp.sample(mine(clock=BOUNDED, rate=rate)(), time=1.0, seed=1)


def test_an_import_on_the_line_that_uses_it_is_seen_as_later_versions_of_python_compile_it(monkeypatch):
    """From 3.13 on a name is stored and loaded by one instruction."""
    step = collections.namedtuple("step", "opname argval")
    steps = [step("IMPORT_NAME", "time"), step("STORE_FAST_LOAD_FAST", ("time", "time")), step("LOAD_ATTR", "time")]
    monkeypatch.setattr(preflight.dis, "get_instructions", lambda function: steps)
    with pytest.raises(TypeError, match="^`clock` uses `time.time`, whose numbers no `seed` repeats"):
        preflight._check_random("`clock`", lambda: None, set())


def test_a_default_that_is_a_generator_is_refused():
    def drawn(x, source=(GENERATOR,)):
        return source[0].random() * x

    rate = method("rate", "return drawn(1.0)", globals() | {"drawn": drawn})
    with pytest.raises(TypeError, match="`rate` of Mine uses `drawn`, whose numbers no `seed` repeats"):
        pdmp.sample(mine(clock=BOUNDED, rate=rate)(), time=1.0, seed=1)


def test_constants_of_a_file_and_the_number_of_its_functions_are_no_generators():
    table = {"a": (1.0, [2.0]), "b": np.ones(3)}
    for expression in ('table["a"][1][0]', "Settings.late", "np.floor(os.path.getsize(__file__)) * 0.0 + 1.0"):
        rate = method("rate", f"return {expression}", globals() | {"table": table, "os": __import__("os")})
        preflight._check_random("`rate` of Mine", rate, set())


def test_a_generator_in_a_model_is_refused():
    class Noisy(pdmp.models.Gaussian):
        def __init__(self, rng):
            super().__init__([0.0], [1.0])
            self.noise = rng

    with pytest.raises(TypeError, match="`self.noise` of Noisy is a random generator"):
        Noisy(np.random.default_rng(1))


@pytest.mark.parametrize(
    "base, field, owner",
    [
        (pdmp.Process, "rate", "Process"),
        (Right, "clock", "Right"),
        (Right, "memory", "Process"),
        (pdmp.Model, "potential", "Model"),
        (pdmp.Model, "factors", "Derived"),
    ],
)
def test_a_field_with_the_name_of_a_method_is_refused_when_the_class_is_defined(base, field, owner):
    message = f"Mine.{field} is declared as a field, but `{field}` is a method of {owner}: give the field another name"
    with pytest.raises(TypeError, match=message):
        type("Mine", (base,), {"__annotations__": {field: "float"}, "_required": ()})


def test_an_attribute_that_hides_a_method_is_refused():
    class Mine(Right):
        def __init__(self, rate):
            super().__init__()
            self.rate = rate

    with pytest.raises(
        TypeError, match="Mine sets `self.rate`, which hides the method `rate` of Process: give it another"
    ):
        Mine(2.0)


@pytest.mark.parametrize(
    "attribute, value, right",
    [
        ("report", 1.0, Report()),
        ("events", 3, ("flip",)),
        ("events", "flip", ["flip"]),
        ("events", (1, 2), ("flip", "flop")),
        ("prepared", 0.5, Prepared()),
        ("prepared", [0.0, 0.0], Prepared(np.zeros((2, 2)))),
        ("local", 2.0, True),
        ("local", np.ones(2), False),
        ("order", 2, np.array([0, 1, 0, 1])),
        ("order", np.array([1, 0]), np.array([1, 0, 1, 0])),
        ("order", np.ones(4), np.array([0, 1, 1, 0])),
        ("start", 0.5, np.array([0, 2, 4])),
        ("scope", 0.5, np.array([0, 1])),
        ("flow", 0.5, Linear()),
        ("model", 0.5, None),
        ("dim", 1.0, 1),
        ("clocks", 2.5, 2),
        ("clocks", 1, 2),
    ],
)
def test_an_attribute_that_hides_what_the_base_needs_is_refused(attribute, value, right):
    class Mine(Right):
        def __init__(self, value):
            super().__init__()
            setattr(self, attribute, value)

    with pytest.raises(
        TypeError, match=f"^Mine sets `self.{attribute}`, which hides what every process needs .*: give it another name"
    ):
        Mine(value)
    late = Mine(right)
    setattr(late, attribute, value)
    with pytest.raises(TypeError, match=f"^Mine sets `self.{attribute}`, which hides"):
        pdmp.sample(late, time=1.0, seed=1)


@pytest.mark.parametrize("value", [5.0, None, property(lambda self: 5.0)])
def test_an_attribute_of_a_class_that_hides_a_method_is_refused(value):
    with pytest.raises(TypeError, match=r"^Mine.rate = .* hides the method `rate`: give it another name.$"):
        type("Mine", (pdmp.BPS,), {"rate": value})
    with pytest.raises(TypeError, match=r"^Mine.add_gradient = .* hides the method `add_gradient`: give it"):
        type("Mine", (pdmp.models.Gaussian,), {"add_gradient": value})


def test_a_bound_that_is_none_is_refused():
    class Mine(pdmp.BPS):
        def __init__(self, target):
            super().__init__(target)
            self.thinning = None

    with pytest.raises(TypeError, match="^Mine sets `self.thinning`, which hides what every process needs under this"):
        Mine(pdmp.models.Gaussian([0.0], [1.0]))


@pytest.mark.parametrize("base, kind", [(Right, "process"), (pdmp.models.Gaussian, "model")])
def test_what_compiled_code_works_on_is_not_set(base, kind):
    class Mine(base):
        def __init__(self):
            super().__init__(*() if base is Right else ([0.0], [1.0]))
            self.native = 1.0

    with pytest.raises(TypeError, match=f"^Mine sets `self.native`, which hides what every {kind} needs"):
        Mine()


def lonely(self):
    self.late = 1.0


def asking(self):
    self.late = 1.0 / self.dim


@pytest.mark.parametrize("init", [lonely, asking])
@pytest.mark.parametrize(
    "base, kind", [(Right, "process"), (pdmp.models.Gaussian, "model"), (pdmp.gradients.Full, "provider")]
)
def test_a_constructor_without_that_of_the_base_is_refused(init, base, kind):
    mine = type("Mine", (base,), {"__init__": init})
    with pytest.raises(
        TypeError, match=rf"`__init__` of Mine never calls `super\(\).__init__\(...\)`, which every {kind} needs"
    ):
        mine()


def test_a_right_one_runs():
    assert pdmp.sample(Right(), time=10.0, seed=1).stats["total_events"] > 5


def test_a_bound_without_a_rate_that_shows_itself_late_ends_the_run():
    chain = new_chain(
        mine(clock="return now + rng.standard_exponential() / 2.0, pdmp.CERTAIN if now < self.late else 2.0")(late=3.0),
        [0.0, 0.0],
        1,
        time=50.0,
    )
    assert chain.advance().failure is not None
    assert "returned the bound 2, but the class has no `rate`" in chain.failure[0]


def test_a_clock_that_fails_behind_a_horizon_is_not_told_that_it_needs_a_rate():
    chain = new_chain(
        mine(clock="return (self.late, pdmp.HORIZON) if now < self.late else (np.nan, pdmp.CERTAIN)")(late=3.0),
        [0.0, 0.0],
        1,
        time=50.0,
    )
    assert chain.advance().failure[0] == "the gradient or the rate of Mine is not finite"


@pytest.mark.slow
def test_the_samplers_of_the_packages_pass(monkeypatch):
    """As those that are derived from them must: what is checked holds for each of them."""
    model = pdmp.models.LogisticRegression(np.random.default_rng(1).standard_normal((30, 3)), np.arange(30) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        processes = pdmp.comparison.configured(model, model.mode(), pdmp.comparison.registered())
        monkeypatch.setattr(preflight, "_trusted", {"numba", "numpy"})
        for process in processes.values():
            for part in preflight._parts(process, {}):
                check_attributes(part)
            process = process.resolve(model.mode())
            preflight.rehearse(process, new_chain(process, model.mode(), 1, events=10))
    assert len(processes) > 15


class Counts(Right):
    """Looks at three data at each event."""

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        count_data(state.counts, 3)
        return 0


def test_data_are_counted_by_name():
    stats = pdmp.sample(Counts(), events=10, seed=1).stats
    assert stats["data_terms"] == 30


def test_dimension_and_number_of_clocks_are_fields():
    class Scaled(Right):
        @pdmp.compiled
        def clock(self, state, i, now, rng):
            return now + self.dim * self.clocks * rng.standard_exponential(), pdmp.CERTAIN

    one, four = (pdmp.sample(p, events=1, seed=1).end[0] for p in (Right(), Scaled()))
    assert four == pytest.approx(4.0 * one, rel=1e-15)


def test_what_a_failed_attempt_has_changed_is_restored(monkeypatch):
    """Compiled code is tried after plain helpers, from the same state and generator."""
    monkeypatch.setattr(preflight, "config", types.SimpleNamespace(DISABLE_JIT=False))
    monkeypatch.setattr(preflight, "_plain", lambda owner, known: owner.native)
    seen = []

    def method(array, memory, rng):
        seen.append((*array, *memory.inner[0], rng.random()))
        array += 1.0
        memory.inner[0][:] += 2.0
        if len(seen) == 1:
            raise ZeroDivisionError
        return 7

    memory = collections.namedtuple("Memory", "inner")((np.array([3.0, 4.0]),))
    owner = types.SimpleNamespace(native=types.SimpleNamespace(method=method))
    array = np.array([1.0, 2.0])
    assert preflight._call(owner, "method", array, memory, np.random.default_rng(1)) == 7
    assert seen[0] == seen[1] and list(array) == [2.0, 3.0] and list(memory.inner[0]) == [5.0, 6.0]


class Bounds(pdmp.models.Gaussian):
    """N(0, I), whose bounds are written, added to what `out` holds, or left out in one coordinate."""

    wrong: int

    def __init__(self, wrong):
        super().__init__([0.0, 0.0], [1.0, 1.0])
        self.wrong = wrong

    @pdmp.compiled
    def partial_curvature_bounds(self, v, out):
        for j in range(self.dim):
            if self.wrong != 2 or j == 0:
                out[j] = v[j] * v[j] + (out[j] if self.wrong == 1 else 0.0)


@pytest.mark.parametrize(("wrong", "place"), [(1, 0), (2, 1)])
def test_bounds_that_are_added_to_earlier_ones_are_refused(wrong, place):
    """The bounds would grow from proposal to proposal, and the run never end."""
    with pytest.raises(TypeError, match=rf"`partial_curvature_bounds` of Bounds adds to `out\[{place}\]`, or leaves"):
        pdmp.sample(pdmp.ZigZag(Bounds(wrong), thinning="affine"), events=10, seed=1)
    assert pdmp.sample(pdmp.ZigZag(Bounds(0), thinning="affine"), events=10, seed=1).events[0] == 10


class Estimated(pdmp.gradients.Provider):
    """a ∇U + (b, 0, 0), with noise unless it is exact."""

    a: float
    b: float
    noise: float

    def __init__(self, a=1.0, b=0.0, noise=0.0, exact=True, model=TARGET):
        super().__init__(model)
        self.a, self.b, self.noise, self.exact = a, b, noise, exact

    @pdmp.compiled
    def gradient(self, x, memory, rng, out, counts):
        for j in range(out.shape[0]):
            out[j] = 0.0
        self.model.add_gradient(x, out)
        for j in range(out.shape[0]):
            out[j] = self.a * out[j] + self.noise * rng.standard_normal()
        out[0] += self.b
        count_data(counts, self.model.n_data)


@pytest.mark.parametrize(("a", "b"), [(-1.0, 0.0), (1.01, 0.0), (1.0, 0.1)])
def test_a_gradient_that_is_called_exact_is_that_of_the_model(a, b):
    right = TARGET.gradient
    sentence = (
        r"^`gradient` of Estimated is not the gradient of LogisticRegression, though `exact` says so: coordinate (\d), "
        r"at x = \[(.*)\], is (.*), not (.*)\.$"
    )
    with pytest.raises(TypeError, match=sentence) as caught:
        pdmp.sample(discrete.SGLD(Estimated(a, b), step=0.1), steps=10, seed=1)
    j, x, given, found = re.match(sentence, str(caught.value)).groups()
    truth = right(np.array([float(number) for number in x.split(",")]))[int(j)]
    assert float(found) == pytest.approx(truth, rel=1e-3)
    assert float(given) == pytest.approx(a * truth + b * (j == "0"), rel=1e-3)


def test_rounding_is_that_of_the_largest_coordinate_of_a_gradient():
    """A small one, a sum of terms that cancel, may be rounding alone: no mean of estimates is doubted for it."""
    X, y = np.random.default_rng(2).standard_normal((30, 2)) * [1.0, 1e-6], np.arange(30) % 2
    model = pdmp.models.LogisticRegression(X, y, prior_scale=1e6)
    for exact in (True, False):
        estimated = Estimated(1.0 + 1e-9, exact=exact, model=model)
        pdmp.sample(discrete.SGLD(estimated, step=0.1), steps=10, initial=np.zeros(2), seed=1)  # warnings are errors


class Beyond(pdmp.Model):
    """Of nothing below 1, where the model's own start is, and improper above."""

    @pdmp.compiled
    def potential(self, x):
        return 0.5 * x[0] ** 2 if x[0] > 1.0 and x[1] > 1.0 else np.inf

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += x[0]


def test_whether_a_density_is_improper_is_seen_from_where_the_run_starts():
    with pytest.warns(UserWarning, match=r"^U of Beyond does not grow along x\[1\] → ∞: the posterior is improper"):
        pdmp.sample(discrete.MALA(Beyond(dim=2), step=0.1), steps=3, initial=[2.0, 2.0], seed=1)


def test_a_metropolis_test_needs_the_potential_too():
    with pytest.raises(TypeError, match="^`target` of discrete.MALA must be .*, because it needs the potential, too"):
        discrete.MALA(Estimated(), step=0.1)


class Late(Bound):
    """The slope 5, whose times are `times` as long, or the bounds `more` above it; beyond `horizon` nothing is said."""

    times: float
    more: float
    horizon: float
    shaken: float
    straight = True

    def __init__(self, times=1.0, more=0.0, horizon=np.inf, shaken=0.0):
        self.times, self.more, self.horizon, self.shaken = times, more, horizon, shaken

    @pdmp.compiled
    def propose(self, process, state, i, now, rng):
        rates, slopes = state.memory.bound.rates, state.memory.bound.slope_bounds
        process.signed_rates(state, now, rng, rates)
        slopes[0] = 5.0
        time, bound = affine_proposal(rates, slopes, now, rng)
        if time > now + self.horizon:
            return now + self.horizon, pdmp.HORIZON
        return now + self.times * (time - now), bound + self.more + self.shaken * rng.random()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, None),
        ({"horizon": 0.4}, None),
        ({"shaken": 9.0, "times": 0.5}, None),  # bounds at random are left alone
        ({"times": 0.5}, 0.5),
        ({"times": 0.8}, 0.8),
        ({"times": 1.3}, 1.3),
        ({"times": 0.75, "horizon": 1.2}, 0.75),
        ({"more": 2.0}, 1.65),
        ({"times": 0.92}, 0.92),
        ({"times": 1.08}, 1.08),
    ],
)
def test_proposals_come_at_the_rate_that_a_bound_states(options, found):
    """Errors of a quarter from 1,000 proposals at the start, of 8 % from 15,000 where those leave it open."""
    model = pdmp.models.Gaussian([1.0, -1.0], precision=[4.0, 1.0])
    process = pdmp.BPS(model, refresh_rate=1.0, thinning=Late(**options))
    chain = new_chain(process, [0.3, 0.4], 1, time=1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preflight.rehearse(process, chain)
    if found is None:
        assert not caught
        return
    (text,) = [str(warning.message) for warning in caught]
    sentence = (
        r"Late proposes at other times than the bounds that it returns say: times between (.*) proposals of clock 0 "
        r"are (.*) times as long as theirs\."
    )
    many, mean = re.match(sentence, text).groups()
    slight = abs(found - 1.0) < 0.1
    assert slight == (999 < int(many.replace(",", "")) <= 14_999)
    assert float(mean) == pytest.approx(found, rel=0.03 if slight else 0.15)


class Hasty(Right):
    """Right by its bounds, but for the second clock if `late` is above 0: that proposes `late` times as late."""

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        wait = rng.standard_exponential()
        return now + (self.late * wait if i == 1 and self.late > 0.0 else wait), 1.0

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return 1.0


def _said_of_proposals(process, initial):
    process = process.resolve(np.array(initial))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preflight.rehearse(process, new_chain(process, initial, 1, time=1.0))
    return [str(one.message) for one in caught if "proposes at other times" in str(one.message)]


class Stated(pdmp.ZigZag):
    factor: float

    def __init__(self, target, factor, **options):
        super().__init__(target, **options)
        self.factor = factor

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        time, bound = self.thinning.propose(self, state, i, now, rng)
        return time, self.factor * bound


@pytest.mark.parametrize(
    "around", [lambda p: p, lambda p: pdmp.Bounded(p, lower=-15.0), lambda p: pdmp.Sticky(p, kappa=1.0)]
)
def test_bounds_of_a_clock_with_a_regression_are_compared_within_another_process_too(around):
    """In plain Python what its model calls is plain as well, also where it is machine code in runs."""
    model = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0])
    for factor in (1.0, 1.5):
        said = _said_of_proposals(around(Stated(model, factor)), [0.3, 0.2])
        assert len(said) == (factor > 1.0) and all(text.startswith("Stated proposes") for text in said)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there all of it is plain")
def test_no_method_of_ours_calls_what_plain_python_cannot():
    """But for models by address, which a rehearsal asks in machine code."""
    assert all(getattr(pdmp.models, name) for name in pdmp.models.__all__)  # all of them are there
    found, classes = set(), Compiled.__subclasses__()
    while classes:
        cls, known = classes.pop(), {}
        classes += cls.__subclasses__()
        for one in cls._methods.values() if preflight.is_trusted(cls.__module__) else ():
            preflight._plain_function(one, known)
        for function in known.values():
            names = {name: function.__globals__.get(name) for name in function.__code__.co_names}
            found |= {(cls.__name__, name) for name, value in names.items() if "Intrinsic" in type(value).__name__}
    assert {owner for owner, _ in found} <= {"Called"}


def test_a_large_model_of_ours_keeps_its_machine_code_in_a_rehearsal(monkeypatch):
    model = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0])
    process = Stated(model, 1.0)
    for more in (0, -1):
        monkeypatch.setattr(preflight, "REHEARSED_NUMBERS", model.n_data * model.dim + more)
        kinds = {type(native.provider.model) for native in (preflight._plain(process, {}), process.native)}
        assert len(kinds) == 2 + more


def test_so_many_proposals_are_drawn_that_large_models_take_no_longer(monkeypatch):
    """Never fewer than say something; 15 times as many, where a first look leaves it open, only of small models."""
    model, asked = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0]), []
    monkeypatch.setattr(preflight, "_spacings", lambda seen: asked.append(len(seen)) or (0.9, 500))
    for most, wanted in ((399, []), (400, [400, 400]), (2_000, [1_000, 2_000])):
        asked.clear()
        monkeypatch.setattr(preflight, "PROPOSED_NUMBERS", most * model.n_data * model.dim)
        _said_of_proposals(Stated(model, 1.0), [0.3, 0.2])
        assert asked == wanted


def test_a_bound_that_is_always_accepted_is_no_intensity():
    """`CoordinateSampler` states 1 for refreshments, where its rate is whatever bound is stated."""

    class Own(pdmp.CoordinateSampler):
        @pdmp.compiled
        def clock(self, state, i, now, rng):
            return pdmp.CoordinateSampler.clock(self, state, i, now, rng)

    assert _said_of_proposals(Own(pdmp.models.Gaussian([1.0, -1.0], np.eye(2))), [0.3, 0.2]) == []


@pytest.mark.parametrize("late", [0.0, 0.5, 2.0])
def test_proposals_of_the_second_clock_are_compared_too(late):
    process = Hasty(late)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        preflight.rehearse(process, new_chain(process, [0.3, 0.4], 1, time=1.0))
    said = [str(one.message) for one in caught]
    assert len(said) == (late > 0.0)
    if said:
        mean = re.match(r"Hasty proposes at other times .* proposals of clock 1 are (.*) times as long", said[0])
        assert float(mean[1]) == pytest.approx(late, rel=0.15)  # five standard errors of 1,000 proposals


class Rows(pdmp.Model):
    """(x - yᵢ)²/2 of each row, or of each pair of neighbours (yᵢ₊₁ - x yᵢ)²/2."""

    y: np.ndarray
    pairs: bool

    def __init__(self, y, n_data, pairs=False):
        super().__init__(dim=1, n_data=n_data)
        self.y, self.pairs = np.asarray(y, float), pairs

    @pdmp.compiled
    def term_potential(self, x, i):
        rest = self.y[i + 1] - x[0] * self.y[i] if self.pairs else x[0] - self.y[i]
        return 0.5 * rest * rest

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += -self.y[i] * (self.y[i + 1] - x[0] * self.y[i]) if self.pairs else x[0] - self.y[i]


class Twice(Rows):
    """With a second field of as many rows."""

    z: np.ndarray

    def __init__(self, y, n_data, z):
        super().__init__(y, n_data)
        self.z = np.asarray(z, dtype=float)


def test_a_number_of_data_that_is_one_off_is_said():
    """One too small by a warning, one too large by an error; and pairs of a time series are one fewer than its rows."""
    y = np.arange(6.0)
    with pytest.warns(UserWarning, match="'y' of Rows has 6 rows, and no term reads the last: `n_data` = 5 seems one"):
        preflight.check_target(Rows(y, 5))
    for model in (Rows(y, 6), Rows(y, 4), Rows(y, 5, pairs=True), Rows(y[:2], 1)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            preflight.check_target(model)
    with pytest.warns(
        UserWarning, match="'y', 'z' of .* have 6 rows, and no term reads the last 2: `n_data` = 4 seems 2"
    ):
        preflight.check_target(Twice(y, 4, z=y))
    with pytest.warns(UserWarning, match="have 6 rows, and no term reads the last 5: `n_data` = 1 seems 5 too small"):
        preflight.check_target(Twice(y, 1, z=y))
    with pytest.raises(ValueError, match="'y' of Rows has 6 rows, and `n_data` is 7"):
        pdmp.sample(pdmp.BPS(Rows(y, 7)), events=10, seed=1, progress=False)


class OfPrior(pdmp.Model):
    """Two numbers a row, in one long array, and the widths of the prior, which no term reads."""

    y: np.ndarray
    width: np.ndarray

    def __init__(self, dim):
        super().__init__(dim=dim, n_data=4)
        self.y, self.width = np.arange(8.0), np.ones(5)

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * (x[0] / self.width[0]) ** 2

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        out[0] += x[0] / self.width[0] ** 2

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[0] - self.y[2 * i] - self.y[2 * i + 1]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += x[0] - self.y[2 * i] - self.y[2 * i + 1]


def test_an_array_of_as_many_numbers_as_coordinates_is_no_further_row():
    with pytest.warns(UserWarning, match="'width' of OfPrior has 5 rows, and no term reads the last: `n_data` = 4"):
        preflight.check_last_row(OfPrior(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preflight.check_last_row(OfPrior(5))


def test_products_of_all_chains_are_counted(monkeypatch):
    """8 bytes for each of the d² of a chain, those of one process and of a model alike."""
    asked = {}
    monkeypatch.setattr(checks, "check_size", lambda what, size, *advice: asked.update({what: size}))
    model = pdmp.models.Gaussian(np.zeros(7), np.ones(7))
    for of in (model, pdmp.BPS(model)):
        asked.clear()
        checks.check_memory(of, 3, 10, True)
        assert asked["`covariance=True` in 7 dimensions"] == 8.0 * 3 * 49
        assert asked["`draws` = 10 positions of 3 chains"] == 16.0 * 3 * 10 * 7
        asked.clear()
        checks.check_memory(of, 3, None, False)
        assert list(asked) == ["`chains` = 3"]


def test_what_a_density_is_and_what_a_sign_may_be_are_told_apart(monkeypatch):
    """The one ends what depends on averages; the other is asked again in a summary."""
    model = pdmp.models.Gaussian([0.0], [1.0])
    monkeypatch.setattr(preflight, "_judged", {})
    assert preflight.improper(model) == "" and preflight.suspected(model) == ()
    for of_density, improper, suspected in ((True, "so", ""), (False, "", "so")):
        preflight._judged[model] = types.SimpleNamespace(text="so", of_density=of_density)
        assert preflight.improper(model) == improper and "".join(preflight.suspected(model)) == suspected


@pytest.mark.parametrize("entry", [0, 4_321, 9_999])
def test_any_entry_of_a_large_array_is_looked_at(entry):
    """In pieces of a thousand, of which the last ends with the array."""
    array = np.arange(10_000.0)
    before = array_digest(array, 1_000), array_digest(array, 10**6)
    array[entry] += 1.0
    assert array_digest(array, 1_000) != before[0] and array_digest(array, 10**6) != before[1]


class Tabled(Walls):
    """With a table of the user's."""

    table: np.ndarray


def test_all_of_a_users_array_of_some_megabytes_is_looked_at():
    """Of one of ours only pieces are, as nothing of ours writes to its fields."""
    process = Tabled(2)
    process.table = np.zeros(3_000_000)
    before = preflight.contents(process)
    process.table[2_000] = 1.0
    assert "`table` of Tabled is written to" in preflight.written_to(process, before)


class LastOfMany(Walls):
    """Of sixty clocks, more than are rehearsed, the last returns a kind of event that there is not."""

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        return 7 if i == 59 else 0


def test_the_first_and_the_last_of_many_clocks_are_rehearsed():
    with pytest.raises(TypeError, match="`jump` of LastOfMany must return .* got 7"):
        pdmp.sample(LastOfMany(60), time=1e-9, seed=1)


def test_what_waits_gives_no_numbers():
    sources = (time.time, time.perf_counter, uuid.uuid4, random, np.random, np.random.RandomState)
    assert all(map(preflight._differs_each_time, sources))
    assert not any(map(preflight._differs_each_time, (time.sleep, np.sin, 3.0, "time")))


class Wrong(Linear):
    """Straight lines, of whose integrals one is wrong."""

    what: str

    def __init__(self, what=""):
        self.what = what

    @pdmp.compiled
    def moments(self, j, x, v, c, s):
        x = x - c
        first, second = s * (x + 0.5 * v * s), s * (x * x + x * v * s + v * v * s * s / 3.0)
        if self.what == "first":
            first -= 0.1 * v * s * s
        if (
            self.what == "second"
            or self.what == "of one coordinate"
            and j == 1
            or self.what == "of long times"
            and s > 2
        ):
            second -= v * v * s * s * s / 3.0
        return first, (np.nan if self.what == "nan" else second)

    @pdmp.compiled
    def product(self, j, x, v, c, k, y, w, e, s):
        x, y = x - c, y - e
        cubic = 0.0 if self.what == "product" else s * s * v * w / 3.0
        return s * (x * y + 0.5 * s * (x * w + y * v) + cubic)


class OnLines(pdmp.BPS):
    def __init__(self, model, flow):
        super().__init__(model)
        self.flow = flow


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("first", r"`moments` of Wrong is not the integral of its `position`: of x\(u\) - c over s = .*, it says"),
        ("second", r"`moments` of Wrong .* of \(x\(u\) - c\)² over s = .*, it says .*, and .* was found\.$"),
        ("of one coordinate", r"`moments` of Wrong .* of \(x\(u\) - c\)² over s = .*, with .* = \(1, "),
        ("of long times", r"`moments` of Wrong .* of \(x\(u\) - c\)² over s = 9, with"),
        ("nan", r"`moments` of Wrong .* of \(x\(u\) - c\)² over s = 0\.2, .*, it says nan"),
        ("product", r"`product` of Wrong .* of \(x\(u\) - c\)\(y\(u\) - e\) over s = "),
    ],
)
def test_integrals_of_a_flow_are_those_of_its_position(what, said):
    """Averages along a path are these: the path itself, and what is drawn from it, would be right."""
    model = pdmp.models.Gaussian([0.0, 1.0, 0.0], precision=[1.0, 4.0, 2.0])
    with pytest.raises(TypeError, match=said):
        pdmp.sample(OnLines(model, Wrong(what)), events=50, seed=1)
    run = pdmp.sample(OnLines(model, Wrong()), events=50, seed=1)
    assert np.array_equal(run.mean(), pdmp.sample(pdmp.BPS(model), events=50, seed=1).mean())


class Turning(Linear):
    """Circles around 0, `speed` times as fast as in a unit of time: right integrals that few terms do not have."""

    speed: float
    wrong: int

    def __init__(self, speed, wrong=-1):
        self.speed, self.wrong = speed, wrong

    @pdmp.compiled
    def position(self, j, x, v, s):
        return x * np.cos(self.speed * s) + v * np.sin(self.speed * s)

    @pdmp.compiled
    def moments(self, j, x, v, c, s):
        a = self.speed
        first = (x * np.sin(a * s) + v * (1.0 - np.cos(a * s))) / a
        twice = 0.5 * np.sin(2.0 * a * s) / a
        second = 0.5 * x * x * (s + twice) + 0.5 * v * v * (s - twice) + x * v * np.sin(a * s) ** 2 / a
        if j == self.wrong:
            second *= 1.1
        return first - c * s, second - 2.0 * c * first + c * c * s

    @pdmp.compiled
    def product(self, j, x, v, c, k, y, w, e, s):
        a = self.speed
        one = (x * np.sin(a * s) + v * (1.0 - np.cos(a * s))) / a
        other = (y * np.sin(a * s) + w * (1.0 - np.cos(a * s))) / a
        twice = 0.5 * np.sin(2.0 * a * s) / a
        both = 0.5 * x * y * (s + twice) + 0.5 * v * w * (s - twice) + 0.5 * (x * w + y * v) * np.sin(a * s) ** 2 / a
        return both - e * one - c * other + c * e * s


@pytest.mark.parametrize("speed", [1.0, 3.0, 11.0, 40.0, 90.0, 150.0, 400.0, 1000.0, 3000.0])
def test_a_flow_that_turns_many_times_is_judged_where_it_is_seen(speed):
    """Not where it turns many times between two places; and of each coordinate at the times at which it is seen."""
    preflight._rehearse_flow(Turning(speed), 3)  # right, and not refused
    refused = pytest.raises(TypeError, match=r"`moments` of Turning .* = \(2, ")
    with refused if speed < 500.0 else contextlib.nullcontext():
        preflight._rehearse_flow(Turning(speed, wrong=2), 3)


#: What a rate beside the jump of BPS is, at the signed rate s; and whether the law of U is that of such a process.
RATES = {
    "its own": ("positive_part(s)", True),
    "more in both directions": ("positive_part(s) + 0.3 * abs(s) + 0.1", True),
    "less": ("0.6 * positive_part(s)", False),
    "without a sign": ("abs(s)", False),
    "none": ("0.0 * s", False),
    "the other sign": ("positive_part(-s)", False),
    "at random": ("positive_part(s) * rng.random()", True),  # left alone
}


def _rated(base, text):
    names = {"pdmp": pdmp, "positive_part": positive_part, "Base": base, "__name__": __name__}
    exec(
        "class Rated(Base):\n"
        "    @pdmp.compiled\n"
        "    def rate(self, state, i, now, rng):\n"
        "        self.evaluate(state, now, rng)\n"
        f"        s = {text.partition('|')[0]}\n"
        f"        return {text.partition('|')[2]}\n",
        names,
    )
    return names["Rated"]


def _said_of_rates(process, start):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        process = process.resolve(np.array(start))
        preflight.rehearse(process, new_chain(process, start, 1, time=1.0))
    return [str(one.message) for one in caught if "does not belong to its jump" in str(one.message)]


@plain_only
@pytest.mark.parametrize("what", RATES)
def test_a_rate_beside_a_jump_of_ours_belongs_to_it(what):
    """At the mode, too, where every rate is 0."""
    text, is_right = RATES[what]
    model = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0])
    process = _rated(pdmp.BPS, "state.v @ state.memory.gradient|" + text)(model)
    said = _said_of_rates(process, model.mode())
    assert len(said) == (not is_right)
    if said:
        pattern = (
            "`rate` of Rated does not belong to its jump, that of BPS: near the start the rate of clock 0 is larger by "
            r"(\S+) than at the opposite velocity, where the law of U needs (\S+)\. "
        )
        got, wanted = map(float, re.match(pattern, said[0]).groups())
        ratio = {"less": 0.6, "without a sign": 0.0, "none": 0.0, "the other sign": -1.0}[what]
        assert wanted != 0.0 and got == pytest.approx(ratio * wanted, rel=1e-3, abs=1e-6)


@plain_only
@pytest.mark.parametrize("thinning", ["auto", "grid"])
def test_rates_of_single_coordinates_are_compared_too(thinning):
    """Of one clock for all coordinates their sum; of a Gaussian, whose clocks are exact, each one."""
    text = "state.v[i] * state.memory.gradient[i]|positive_part(s)"
    logistic = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0])
    process = _rated(pdmp.ZigZag, text)(logistic)
    assert process.clocks == 1
    assert len(_said_of_rates(process, [0.3, 0.2])) == 1
    whole = "state.v * state.memory.gradient|positive_part(s[0]) + positive_part(s[1]) + 9.0"
    process = _rated(pdmp.ZigZag, whole)(logistic, refresh_rate=[0.0, 9.0])  # of the second alone
    assert process.clocks == 1 and _said_of_rates(process, [0.3, 0.2]) == []
    gaussian = pdmp.models.Gaussian([1.0, -1.0], precision=[[4.0, 1.0], [1.0, 2.0]])
    for rate, wrong in (("positive_part(s)", 0), ("0.5 * positive_part(s) if i == 1 else positive_part(s)", 1)):
        one = _rated(pdmp.ZigZag, text.partition("|")[0] + "|" + rate)(gaussian)
        assert one.clocks == 2
        said = _said_of_rates(one, [0.3, 0.2])
        assert len(said) == wrong and all("the rate of clock 1 is" in text for text in said)


@plain_only
@pytest.mark.parametrize("around", [lambda p: pdmp.Bounded(p, lower=-9.0), lambda p: pdmp.Sticky(p, kappa=1.0)])
def test_rates_of_a_process_within_another_are_compared_too(around):
    logistic = pdmp.models.LogisticRegression(np.eye(6, 2) + 0.3, [0, 1, 0, 1, 1, 0])
    for factor in (0.9, 1.0):
        process = around(_rated(pdmp.ZigZag, f"{factor}|s * pdmp.ZigZag.rate(self, state, i, now, rng)")(logistic))
        assert len(_said_of_rates(process, [0.3, 0.2])) == (factor < 1.0)


@plain_only
def test_rates_beside_a_jump_of_ones_own_are_left_alone():
    rated = _rated(pdmp.BPS, "state.v @ state.memory.gradient|0.6 * positive_part(s)")

    class Jumping(rated):
        @pdmp.compiled
        def jump(self, state, i, now, rng):
            state.v[:] = -state.v
            return i

    model = pdmp.models.Gaussian([1.0, -1.0], precision=[4.0, 1.0])
    assert _said_of_rates(Jumping(model), [0.3, 0.4]) == [] != _said_of_rates(rated(model), [0.3, 0.4])


def test_a_class_without_the_name_of_a_module():
    """Made by `exec` in an empty namespace, as templates do."""
    names = {}
    exec(
        "import pdmp\n"
        "class Target(pdmp.Model):\n"
        "    @pdmp.compiled\n"
        "    def potential(self, x):\n"
        "        return 0.5 * (x[0] ** 2 + x[1] ** 2)\n"
        "    @pdmp.compiled\n"
        "    def add_gradient(self, x, out):\n"
        "        out[0] += x[0]\n"
        "        out[1] += x[1]\n",
        names,
    )
    run = pdmp.sample(pdmp.BPS(names["Target"](dim=2)), events=40, seed=1)
    assert run.events.sum() >= 40
    with pytest.raises(ValueError, match="dim"):
        names["Target"](dim=-1)


def test_the_method_of_a_base_is_called_by_a_name_of_its_own():
    class Based(pdmp.ZigZag):
        base_rate = pdmp.ZigZag.rate

        @pdmp.compiled
        def rate(self, state, i, now, rng):
            return self.base_rate(state, i, now, rng)

    class Super(pdmp.ZigZag):
        @pdmp.compiled
        def rate(self, state, i, now, rng):
            return super().rate(state, i, now, rng)

    one, other = (pdmp.sample(kind(TARGET), events=60, seed=1) for kind in (Based, pdmp.ZigZag))
    np.testing.assert_array_equal(one.mean(), other.mean())
    with pytest.raises(
        TypeError, match=r"^`rate` of Super calls super\(\), .*`base_rate = ZigZag.rate`, and call `self.b"
    ):
        pdmp.sample(Super(TARGET), events=60, seed=1)
