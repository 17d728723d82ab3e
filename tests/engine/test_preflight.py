"""A process that is written wrongly does not run: one clear line for each mistake, before anything compiles."""

from __future__ import annotations

import random
from random import random as uniform

import numba
import numpy as np
import pytest
from numpy.random import standard_normal

import pdmp
from pdmp.native.velocities import dot
from pdmp.process import count_data
from tests.checks import new_chain

pytestmark = pytest.mark.exact
TARGET = pdmp.models.LogisticRegression(np.eye(4, 3), [0, 1, 0, 1])


class Right(pdmp.Process):
    """Two coordinates that change direction at rate 1: nothing is wrong with it."""

    short: np.ndarray
    target: object
    late: float

    _required = ()

    def __init__(self, late=0.0):
        super().__init__(2, 2)
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


def bounded_clock(self, state, i, now, rng):
    return now + rng.standard_exponential(), 2.0


def second_clock_bounded(self, state, i, now, rng):
    return now + rng.standard_exponential(), pdmp.CERTAIN if i == 0 else 2.0


def bounded_later(self, state, i, now, rng):
    return now + rng.standard_exponential(), pdmp.CERTAIN if now < self.late else 2.0


def silent_jump(self, state, i, now, rng):
    state.v[i] = -state.v[i]


def jump_silent_on_one_path(self, state, i, now, rng):
    if state.x[0] > 1e6:
        return
    state.v[i] = -state.v[i]
    return 0


def jump_of_unknown_kind(self, state, i, now, rng):
    return 1


def jump_of_a_float(self, state, i, now, rng):
    return 0.5


def silent_rate(self, state, i, now, rng):
    rng.random()


def rate_of_a_pair(self, state, i, now, rng):
    return 1.0, 2.0


def clock_by_numpy(self, state, i, now, rng):
    return now + np.random.standard_exponential(), pdmp.CERTAIN  # noqa: NPY002


def clock_by_random(self, state, i, now, rng):
    return now + random.expovariate(1.0), pdmp.CERTAIN


def jump_by_an_imported_function(self, state, i, now, rng):
    state.v[i] = standard_normal()  # noqa: NPY002
    return 0


def jump_by_another(self, state, i, now, rng):
    state.v[i] = uniform()
    return 0


def rate_by_a_helper(self, state, i, now, rng):
    return helper(1.0)


def rate_by_a_compiled_helper(self, state, i, now, rng):
    return compiled_helper(1.0)


def jump_with_a_short_array(self, state, i, now, rng):
    self.target.add_term_gradient(state.x, 0, self.short)
    return 0


def jump_with_a_short_array_for_a_helper(self, state, i, now, rng):
    state.v[i] = dot(state.x, self.short)
    return 0


WRONG = {
    "no rate": (dict(clock=bounded_clock), "`clock` of Mine returned the bound 2, but the class has no `rate`: write"),
    "no rate of one clock": (dict(clock=second_clock_bounded), "returned the bound 2, but the class has no `rate`"),
    "jump returns nothing": (
        dict(jump=silent_jump),
        "`jump` of Mine returns nothing: it must return the kind of event",
    ),
    "on one path": (dict(jump=jump_silent_on_one_path), "`jump` of Mine returns nothing"),
    "rate returns nothing": (dict(clock=bounded_clock, rate=silent_rate), "`rate` of Mine returns nothing: it must"),
    "rate returns two": (
        dict(clock=bounded_clock, rate=rate_of_a_pair),
        r"`rate` of Mine must return the rate, .*got \(",
    ),
    "unknown kind": (dict(jump=jump_of_unknown_kind), "`jump` of Mine must return the kind .* 0 … 0, or -1 .*; got 1"),
    "kind is a float": (dict(jump=jump_of_a_float), "`jump` of Mine must return the kind of event, .*; got 0.5"),
    "np.random": (dict(clock=clock_by_numpy), "`clock` of Mine uses `np.random`, .* draw from the argument `rng`"),
    "random": (dict(clock=clock_by_random), "`clock` of Mine uses `random`, whose numbers no `seed` repeats"),
    "from numpy.random": (dict(jump=jump_by_an_imported_function), "`jump` of Mine uses `standard_normal`, whose"),
    "from random": (dict(jump=jump_by_another), "`jump` of Mine uses `uniform`, whose numbers"),
    "in a helper": (dict(clock=bounded_clock, rate=rate_by_a_helper), "`rate` of Mine uses `np.random`"),
    "in a compiled one": (dict(clock=bounded_clock, rate=rate_by_a_compiled_helper), "`rate` of Mine uses `np.random`"),
    "short array": (
        dict(jump=jump_with_a_short_array),
        r"`jump` of Mine fails in plain Python: IndexError: .*test_preflight.py, in its call of `\w+`",
    ),
    "short array, helper": (
        dict(jump=jump_with_a_short_array_for_a_helper),
        "`jump` of Mine fails in plain Python: IndexError: .*test_preflight.py, in its call of `dot`",
    ),
}


def mine(**methods):
    return type(
        "Mine", (Right,), {name: pdmp.compiled(method) for name, method in methods.items()} | {"__module__": __name__}
    )


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_process_does_not_run(name):
    methods, message = WRONG[name]
    with pytest.raises(TypeError, match=message) as caught:
        pdmp.sample(mine(**methods)(), time=10.0, seed=1)
    assert "\n" not in str(caught.value)


def test_a_right_one_runs():
    assert pdmp.sample(Right(), time=10.0, seed=1).stats["total_events"] > 5


def test_a_bound_without_a_rate_that_shows_itself_late_ends_the_run():
    chain = new_chain(mine(clock=bounded_later)(late=3.0), [0.0, 0.0], 1, time=50.0)
    assert chain.advance().failure is not None
    assert "returned the bound 2, but the class has no `rate`" in chain.failure[0]


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
