"""Mistakes in the parts that a user writes, of which each let a run end with wrong numbers and without a word."""

import math
import random
import re

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.engine import preflight
from pdmp.engine.preflight import _check_dependents
from pdmp.engine.storage import copied
from pdmp.process import DATA
from tests.engine.helpers_run import method

pytestmark = pytest.mark.exact

rng = np.random.default_rng(1)
MODEL = pdmp.models.LogisticRegression(rng.standard_normal((40, 2)), np.arange(40) % 2, prior_scale=1.0)


class Normal(pdmp.Process):
    """N(0, 1), by a velocity that turns; thinned under the bound 5."""

    events = ("turn",)

    def __init__(self):
        super().__init__(dim=1)

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential() / 5.0, 5.0

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return max(state.v[0] * (state.x[0] + state.v[0] * (now - state.moved[0])), 0.0)

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        return 0


def another(base, **methods):
    """A class with other methods; those that are given `self, x, rng` or less are Python's."""
    python = {"velocity", "memory"}
    marked = {name: f if name in python or not callable(f) else pdmp.compiled(f) for name, f in methods.items()}
    return type("Mine", (base,), marked | {"__module__": __name__})


# -- what the event loop keeps ---------------------------------------------------------------------------------------


REST = {
    "clock": "return now + rng.standard_exponential() / 5.0, 5.0",
    "rate": "return 1.0",
    "jump": "state.v[0] = -state.v[0]\nreturn 0",
}


def writing(name, line):
    """A method that begins with this line."""
    return method(name, f"{line}\n{REST[name]}", globals())


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("jump", "state.now[0] += 0.1"),
        ("jump", "state.moved[0] -= 0.1"),
        ("jump", "state.counts[1] += 1"),
        ("rate", "state.bounds[0] = 2.0"),
        ("rate", "state.keys[0] += 0.1"),
        ("rate", "state.excess[1] = 3.0"),
        ("clock", "state.pending[1] = 2"),
        ("clock", "state.place[0] = 1"),
    ],
)
def test_what_the_event_loop_keeps_is_not_written_to(name, line):
    changed = re.escape(f"`{name}` of Mine changes `{line.split()[0]}`: the event loop keeps it.")
    with pytest.raises(TypeError, match=f"^{changed}$"):
        pdmp.sample(another(Normal, **{name: writing(name, line)})(), events=20, seed=1)


# -- which clocks are drawn anew ------------------------------------------------------------------------------------


class Pair(pdmp.Process):
    """Two independent N(0, 1); an event of either clock turns both velocities where `together`."""

    together: bool

    def __init__(self, together, dependents):
        super().__init__(2, 2, dependents=dependents)
        self.together = together

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        a = state.v[i] * state.x[i]
        waiting = math.sqrt(max(a, 0.0) ** 2 + 2.0 * rng.standard_exponential()) - a
        return now + waiting, pdmp.CERTAIN

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        if self.together:
            state.v[1 - i] = -state.v[1 - i]
        return 0


ThinnedPair = another(
    Pair,
    clock=lambda self, state, i, now, rng: (now + rng.standard_exponential() / 5.0, 5.0),
    rate=lambda self, state, i, now, rng: max(state.v[i] * (state.x[i] + state.v[i] * (now - state.moved[0])), 0.0),
)


@pytest.mark.parametrize("cls, compared", [(Pair, "waiting time"), (ThinnedPair, "rate")])
def test_a_clock_whose_law_an_event_changes_is_among_its_dependents(cls, compared, monkeypatch):
    said = (
        rf"an event of clock (\d) of {cls.__name__} changes the law of clock \d, whose {compared}.*`dependents\[\1\]`"
    )
    for together, rows in ((False, [[0], [1]]), (True, None), (True, [[0, 1], [0, 1]])):
        assert pdmp.sample(cls(together, rows), initial=[1.0, 0.5], events=20, seed=1).events == 20
    with pytest.raises(TypeError, match=said):
        pdmp.sample(cls(True, [[0], [1]]), initial=[1.0, 0.5], events=20, seed=1)
    monkeypatch.setattr(preflight, "REHEARSED_CLOCKS", 2)  # as many as there are
    with pytest.raises(TypeError, match=said):
        pdmp.sample(cls(True, [[0], [1]]), initial=[1.0, 0.5], events=20, seed=1)


@pytest.mark.parametrize("i", [0, 1])
def test_the_rates_that_an_event_changes_are_said_at_the_time_of_their_proposal(i):
    """And not at that of another clock, or of the event."""
    process, times, k = ThinnedPair(True, [[0], [1]]), np.array([2.0, 3.0]), 1 - i
    before = process.begin(np.array([1.0, 0.5]), np.random.default_rng(1))
    before.v[:], before.bounds[:] = 1.0, 5.0
    after = copied(before)
    after.v[k] = -1.0
    was, new = before.x[k] + times[k], times[k] - before.x[k]
    said = rf"^an event of clock {i} .* the law of clock {k}, whose rate is {new:g} after it and was {was:g}, but `dep"
    with pytest.raises(TypeError, match=said):
        _check_dependents(process, i, before, after, times, np.random.default_rng(1))


# -- random numbers and arrays of methods that Python runs -----------------------------------------------------------


def drawn():
    return np.array([random.choice([-1.0, 1.0])])


@pytest.mark.parametrize(
    ("name", "given", "source"),
    [
        ("velocity", lambda self, x, rng: np.array([np.random.choice([-1.0, 1.0])]), "np.random"),  # noqa: NPY002
        ("velocity", lambda self, x, rng: drawn(), "random"),
        ("memory", lambda self, x, rng: (np.random.default_rng().standard_normal(2),), "np.random"),
    ],
)
def test_a_start_that_no_seed_repeats_is_refused(name, given, source):
    with pytest.raises(TypeError, match=f"^`{name}` of Mine uses `{source}`, whose numbers no `seed` repeats"):
        pdmp.sample(another(Normal, **{name: given})(), events=20, seed=1)


KEPT = np.zeros(1)


def test_chains_do_not_share_a_memory():
    """Nor does a run leave anything in it for the next one."""

    def memory(self, x, rng):
        return (KEPT,)

    def jump(self, state, i, now, rng):
        state.memory[0][0] += 1.0
        state.v[0] = -math.copysign(1.0 - 0.5 * (state.memory[0][0] % 2.0), state.v[0])
        return 0

    process = another(Normal, memory=memory, jump=jump)()
    both = pdmp.sample(process, events=30, chains=2, seed=1)
    again = pdmp.sample(process, events=30, chains=2, seed=1)
    for one, other in zip(both.trajectories, again.trajectories, strict=True):
        np.testing.assert_array_equal(one.times, other.times)
    assert KEPT[0] == 0.0


# -- numbers that are not finite, late -------------------------------------------------------------------------------


class Walk(discrete.Ticking):
    """Langevin's step, until step `last`, which leaves a NaN and says that all is well."""

    last: int

    def __init__(self, last=10**9):
        super().__init__(MODEL, 0.01)
        self.last = last

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        memory = state.memory
        self.provider.gradient(state.x, memory.provider, rng, memory.gradient, state.counts)
        for j in range(state.x.shape[0]):
            state.x[j] += math.sqrt(0.02) * rng.standard_normal() - 0.01 * memory.gradient[j]
        memory.taken[0] += 1
        if memory.taken[0] == self.last:
            state.x[1] = math.nan
        return 0


def jump_to_infinity(self, state, i, now, rng):
    state.v[i] = -state.v[i] if now < 20.0 else math.inf
    return 0


class Pair(Normal):
    """Two coordinates that turn at rate 1, each by itself."""

    def __init__(self):
        pdmp.Process.__init__(self, 2, 2, [[0], [1]], local=True)

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), pdmp.CERTAIN

    jump = pdmp.compiled(jump_to_infinity)


@pytest.mark.parametrize("store", ["skeleton", "moments"])
@pytest.mark.parametrize("last", [57, 60])
def test_a_step_that_leaves_a_nan_ends_the_run_there(last, store):
    """Also the last one of the budget; what was sampled before is the path without it."""
    with pytest.raises(pdmp.SamplingError, match=f"^Walk diverged at step {last}: .*after event {last - 1},") as caught:
        pdmp.sample(Walk(last), steps=60, chains=2, seed=1, store=store)
    failed = pdmp.diagnostics.split(caught.value.run)[caught.value.chain]
    right = pdmp.sample(Walk(), steps=last, chains=2, seed=1, store=store)
    right = pdmp.diagnostics.split(right)[caught.value.chain]
    np.testing.assert_allclose(failed.mean(), right.mean(), rtol=1e-12)  # its last state is held for no time
    np.testing.assert_allclose(failed.var(), right.var(), rtol=1e-12)
    assert failed.events[0] == last - 1


def test_a_jump_of_a_local_process_to_infinity_ends_the_run_there():
    with pytest.raises(pdmp.SamplingError, match="of Pair is not finite") as caught:
        pdmp.sample(Pair(), time=100.0, seed=1)
    assert 20.0 < caught.value.run.end[0] < 25.0 and np.all(np.isfinite(caught.value.run.mean()))


# -- steps -----------------------------------------------------------------------------------------------------------


class Counting(discrete.Brownian):
    @pdmp.compiled
    def move(self, x, v, memory, z, rng, counts):
        x[0] += z[0]
        memory.taken[0] += 1
        return True


def test_a_step_that_is_counted_twice_is_refused():
    with pytest.raises(TypeError, match="^a step of Counting adds 2 to `memory.taken"):
        pdmp.sample(Counting(MODEL, 0.1), steps=10, seed=1)


def test_holding_times_of_a_users_may_depend_on_the_step():
    def holding_time(self, k):
        return 0.1 * (k + 1)

    run = pdmp.sample(another(Walk, holding_time=holding_time)(), steps=4, seed=1)
    np.testing.assert_allclose(run.trajectories[0].times, [0.0, 0.1, 0.3, 0.6, 1.0])


# -- estimators of the gradient, and bounds --------------------------------------------------------------------------


class Few(pdmp.gradients.Provider):
    """Ten terms, with replacement."""

    exact = False
    terms_per_call = 10

    @pdmp.compiled
    def gradient(self, x, memory, rng, out, counts):
        for j in range(out.shape[0]):
            out[j] = 0.0
        for _ in range(10):
            self.model.add_term_gradient(x, rng.integers(0, self.model.n_data), out)
        for j in range(out.shape[0]):
            out[j] *= self.model.n_data / 10
        self.model.add_prior_gradient(x, out)
        counts[DATA] += 10


def estimate(write=True, scale=4.0, prior=True, rows=40, count=10, moves=0.0, other=0, where=1):
    def gradient(self, x, memory, rng, out, counts):
        for j in range(out.shape[0]):
            out[j] *= 0.0 if write else 1.0
        for _ in range(10):
            self.model.add_term_gradient(x, rng.integers(0, rows), out)
        for j in range(out.shape[0]):
            out[j] *= scale
        if prior:
            self.model.add_prior_gradient(x, out)
        counts[DATA] += count
        counts[where] += other
        x[0] += moves

    return another(Few, gradient=gradient)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"write": False}, r"`gradient` of Mine adds to `out\[0\]`"),
        ({"count": 0}, "`gradient` of Mine counts no data"),
        ({"other": 1}, "`gradient` of Mine changes `counts` elsewhere"),
        ({"other": 1, "where": DATA + 1}, "`gradient` of Mine changes `counts` elsewhere"),
        ({"moves": 1e-9}, r"`gradient` of Mine changes its argument `x\[0\]`"),
    ],
)
def test_a_wrong_estimator_is_refused(options, said):
    with pytest.raises(TypeError, match=f"^{said}"):
        pdmp.sample(discrete.SGLD(estimate(**options)(MODEL), 0.001), steps=10, seed=1)


@pytest.mark.parametrize(
    ("options", "many"),
    [
        ({"scale": 1.0}, 1_000),
        pytest.param({"prior": False}, "(1000|15000)", marks=pytest.mark.slow),
        ({"rows": 20}, 1_000),
        pytest.param({"scale": 4.4}, 15_000, marks=pytest.mark.slow),
    ],
)
def test_an_estimator_of_another_gradient_is_warned_of(options, many):
    """A bias above 8 / √1000 = 0.25 standard deviations of one estimate is seen, and mostly one above 0.13.

    From 3 / √1000 = 0.09 on 15,000 estimates are taken. The last one here is 0.15 standard deviations off.
    """
    with pytest.warns(
        UserWarning, match=f"^`gradient` of Mine is not that of LogisticRegression on average: the mean of {many} "
    ):
        pdmp.sample(discrete.SGLD(estimate(**options)(MODEL), 0.001), steps=1_500, seed=1)


@pytest.mark.parametrize("provider", [Few, estimate()])
def test_a_right_estimator_is_not(provider, recwarn):
    pdmp.sample(discrete.SGLD(provider(MODEL), 0.001), steps=20, seed=1)
    assert not [w for w in recwarn if "on average" in str(w.message)]


def test_an_estimator_that_says_it_is_exact_is_believed_only_if_it_is():
    with pytest.raises(TypeError, match="^Mine says `exact = True`, but two calls of its `gradient`"):
        pdmp.sample(discrete.SGLD(another(Few, exact=True)(MODEL), 0.01), steps=10, seed=1)


class Moving(pdmp.thinning.Bound):
    name = "a bound"
    straight = True

    @pdmp.compiled
    def propose(self, process, state, i, now, rng):
        state.x[0] += 1e-3
        return now + rng.standard_exponential() / 50.0, 50.0


def test_a_bound_of_a_users_that_moves_the_path_is_refused():
    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), refresh_rate=1.0, thinning=Moving())
    with pytest.raises(
        TypeError, match=r"^`clock` of BPS, or a method of Moving, changes `state.x\[0\]`: only an event"
    ):
        pdmp.sample(process, events=20, seed=1)


class Watching(pdmp.thinning.Bound):
    """Keeps a random number where a gradient is known, as a bound that learns from some of them does."""

    name = "a bound"

    @pdmp.compiled
    def propose(self, process, state, i, now, rng):
        return now + rng.standard_exponential() / 50.0, 50.0

    @pdmp.compiled
    def observe(self, process, state, i, now, rng):
        state.memory.bound.rates[0] = rng.random()


@pytest.mark.parametrize("process", [pdmp.BPS, pdmp.Boomerang, pdmp.ZigZag])
def test_a_bound_that_observes_has_the_generator(process):
    target = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])
    assert pdmp.sample(process(target, thinning=Watching()), events=20, seed=1).events[0] == 20


class MovingLate(Moving):
    """Moves the path from time 20 on; in between nothing is wrong with it."""

    @pdmp.compiled
    def propose(self, process, state, i, now, rng):
        if now > 20.0:
            state.x[0] += 1e-9
        return now + rng.standard_exponential() / 50.0, 50.0


def test_a_bound_of_a_users_that_moves_the_path_later_ends_the_run():
    process = pdmp.BPS(pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0]), refresh_rate=1.0, thinning=MovingLate())
    with pytest.raises(
        pdmp.SamplingError, match=r"^`clock` of BPS, or a method of MovingLate, changes `state.x"
    ) as caught:
        pdmp.sample(process, time=200.0, seed=1)
    assert 20.0 < caught.value.run.end[0] < 120.0


class Replaced(Normal):
    """Its jump is another one by the time of a run."""


@pytest.mark.parametrize("cls", [Replaced, pdmp.BPS])
def test_a_method_that_was_replaced_is_refused(cls, monkeypatch):
    monkeypatch.setattr(cls, "jump", pdmp.compiled(writing("jump", "state.now[0] += 0.1")))
    process = Replaced() if cls is Replaced else pdmp.BPS(MODEL, refresh_rate=1.0)
    with pytest.raises(TypeError, match=f"^`jump` of {cls.__name__} was replaced after the class was defined"):
        pdmp.sample(process, events=10, seed=1)
    monkeypatch.undo()
    assert pdmp.sample(process, events=10, seed=1).events[0] == 10


def test_a_potential_beside_terms_is_refused_by_what_it_is():
    class Link(pdmp.models.LogisticRegression):
        @pdmp.compiled
        def potential(self, x):
            return 0.5 * x[0] * x[0]

    with pytest.raises(TypeError, match=r"^`potential` of Link stands beside terms: .* `prior_potential`"):
        pdmp.sample(pdmp.BPS(Link(np.eye(2), [0, 1])), events=10, seed=1)


class Drifting(pdmp.Model):
    """A potential whose computing moves the point."""

    def __init__(self):
        super().__init__(dim=2)

    @pdmp.compiled
    def prior_potential(self, x):
        return 0.5 * (x[0] ** 2 + x[1] ** 2)

    @pdmp.compiled
    def add_prior_gradient(self, x, out):
        for j in range(2):
            out[j] += x[j]
        x[1] += 1e-12


def test_a_model_that_moves_the_point_is_refused():
    with pytest.raises(TypeError, match=r"`add_prior_gradient` of Drifting changes its argument `x\[1\]`"):
        pdmp.sample(pdmp.BPS(Drifting(), refresh_rate=1.0), initial=[1.0, 1.0], events=20, seed=1)


# -- checkpoints -----------------------------------------------------------------------------------------------------


class Beginning(Normal):
    """Begins with a velocity and a memory that depend on what is no field."""

    def __init__(self, speed=1.0, kept=0, name="a"):
        super().__init__()
        self.speed, self.kept, self.name = speed, np.full(2, kept), name

    def velocity(self, x, rng):
        return np.array([self.speed])

    def memory(self, x, rng):
        return (self.kept.astype(float),)


def beginning(**methods):
    return type("Beginning", (Beginning,), {"__module__": __name__, **methods})()


@pytest.mark.parametrize(
    "other",
    [
        lambda: Beginning(0.9),
        lambda: Beginning(kept=1),
        lambda: Beginning(name="b"),
        lambda: beginning(velocity=lambda self, x, rng: np.array([0.7])),
        lambda: beginning(memory=lambda self, x, rng: (np.ones(2),)),
    ],
    ids=["speed", "kept", "name", "velocity", "memory"],
)
def test_a_checkpoint_knows_how_a_chain_begins(other, tmp_path):
    """By attributes that are no fields, and by methods that Python runs."""
    path = tmp_path / "run.npz"
    run = pdmp.sample(Beginning(), events=20, seed=1, checkpoint=path)
    assert pdmp.sample(Beginning(), events=30, seed=1, checkpoint=path).events[0] == 30
    with pytest.raises(ValueError, match="is of another call: `process` differs"):
        pdmp.sample(other(), events=40, seed=1, checkpoint=path)
    run.save(tmp_path / "saved.npz")
    assert pdmp.load(tmp_path / "saved.npz").extend(Beginning(), events=25).events[0] == 25
    with pytest.raises(ValueError, match="^`process` is not that of the run"):
        pdmp.load(tmp_path / "saved.npz").extend(other(), events=25)
