"""A clock that proposes one and the same time for ever ends the run; events that happen at one time do not."""

from __future__ import annotations

import numpy as np
import pytest

import pdmp
from pdmp.engine import chain as chain_module
from tests.checks import new_chain

pytestmark = pytest.mark.exact
CERTAIN, HORIZON, BOUNDED, WAIT_OF_ZERO, ATOMS, PAUSES, SLOWS, BURSTS = range(8)


class Stands(pdmp.Process):
    """Clocks of rate 1 that turn their coordinate, of which the last one stands still from time 10 on."""

    how: int

    def __init__(self, how, clocks=3):
        super().__init__(clocks, clocks, [[i] for i in range(clocks)])
        self.how = how

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        time = now + rng.standard_exponential()
        if i < self.clocks - 1 or time < 10.0:
            return time, CERTAIN_BOUND
        if self.how == HORIZON:
            return max(now, 10.0), pdmp.HORIZON
        if self.how == BOUNDED:
            return max(now, 10.0), 2.0
        if self.how == WAIT_OF_ZERO:
            return now + 1e-20, CERTAIN_BOUND
        if self.how == SLOWS:  # events at 11 - 16/k², of which there are no end before 11
            return max(now, 10.0) + 0.5 * (11.0 - max(now, 10.0)) ** 1.5, CERTAIN_BOUND
        if self.how == BURSTS and state.counts[8] < 5_000:
            return now + 1e-9 * (time - now), CERTAIN_BOUND
        if self.how == ATOMS and state.counts[8] % 300 != 0:
            return now, CERTAIN_BOUND
        if self.how == PAUSES and state.counts[5] % 300 != 0:
            return now, pdmp.HORIZON
        if self.how == PAUSES:
            return time, pdmp.HORIZON
        return max(now, 10.0) if self.how == CERTAIN else time, CERTAIN_BOUND

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return 0.0

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[i] = -state.v[i]
        return 0


CERTAIN_BOUND = pdmp.CERTAIN


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(chain_module, "IDLE_CANDIDATES", 1_000)


@pytest.mark.parametrize("how, at", [(CERTAIN, 10.0), (HORIZON, 10.0), (BOUNDED, 10.0), (WAIT_OF_ZERO, None)])
@pytest.mark.parametrize("store", ["skeleton", "moments"])
def test_a_clock_that_stands_ends_the_run(how, at, store):
    with pytest.raises(
        pdmp.SamplingError, match=r"Clock 2 of Stands does not advance: [\d,]+ candidate times"
    ) as caught:
        pdmp.sample(Stands(how), initial=np.zeros(3), time=50.0, seconds=20.0, seed=3, store=store)
    assert at is None or caught.value.time == at
    assert "`clock` must return `now` plus a waiting time" in str(caught.value)
    assert caught.value.run.stopped == "failed"
    assert np.all(np.isfinite(caught.value.run.mean()))


@pytest.mark.compiled
def test_the_path_before_it_is_that_of_a_shorter_run():
    with pytest.raises(pdmp.SamplingError) as caught:
        pdmp.sample(Stands(HORIZON), initial=np.zeros(3), time=50.0, seconds=20.0, seed=3)
    path = caught.value.run.trajectories[0]
    good = pdmp.sample(Stands(HORIZON), initial=np.zeros(3), time=9.9, seed=3).trajectories[0]
    np.testing.assert_array_equal(path.positions[: len(good.times)], good.positions)
    assert len(path.times) > 5
    last = path.positions[-1] + path.velocities[-1] * (10.0 - path.times[-1])
    np.testing.assert_allclose(caught.value.position, last, rtol=1e-12)


@pytest.mark.parametrize("how", [ATOMS, PAUSES])
def test_many_candidates_at_one_time_do_not(how, monkeypatch):
    monkeypatch.setattr(chain_module, "FIRST_CHUNK", 7)
    monkeypatch.setattr(chain_module.Chain, "_adapt_chunk", lambda chain, took, left: None)
    run = pdmp.sample(Stands(how), initial=np.zeros(3), time=100.0, seed=3)
    assert run.stopped == "time" and run.end[0] == 100.0
    assert run.stats["total_events" if how == ATOMS else "horizons"] > 5_000  # far more than may stand in all


def test_ever_shorter_steps_end_the_run(monkeypatch):
    """Before they are lost in rounding, which of steps like 1/k² would be after hours only."""
    monkeypatch.setattr(chain_module, "FIRST_CHUNK", 500)
    monkeypatch.setattr(chain_module.Chain, "_adapt_chunk", lambda chain, took, left: None)
    with pytest.raises(pdmp.SamplingError, match="Clock 2 of Stands does not advance: .* were 11, or nearly") as caught:
        pdmp.sample(Stands(SLOWS), initial=np.zeros(3), time=50.0, seconds=60.0, seed=3)
    path = caught.value.run.trajectories[0]
    assert 1e-9 < 11.0 - caught.value.time < 1e-6 and 11.0 - path.times[-1] < 1e-6
    assert len(path.times) > 10_000


def test_many_short_steps_do_not():
    """Five thousand within a part in a million of the time."""
    run = pdmp.sample(Stands(BURSTS), initial=np.zeros(3), time=20.0, seed=3)
    assert run.stopped == "time" and run.stats["total_events"] > 5_000


def test_standing_is_counted_from_the_last_advance():
    chain = new_chain(Stands(HORIZON), np.zeros(3), 3, time=50.0)
    chain.advance(seconds=0.0)
    while chain.stopped is None:
        assert chain.stood < 1_000 + 3 * chain_module.REPEATED
        chain.advance(seconds=0.0)  # one chunk
    assert chain.stopped == "failed" and chain.state.now[0] == 10.0


@pytest.mark.parametrize("clocks", [60, 3])
def test_clocks_that_ring_together_do_not(clocks, monkeypatch):
    """All of them at each whole time, which are more than one clock may repeat."""

    monkeypatch.setattr(chain_module, "IDLE_CANDIDATES", 10)
    monkeypatch.setattr(chain_module, "FIRST_CHUNK", 7)
    monkeypatch.setattr(chain_module.Chain, "_adapt_chunk", lambda chain, took, left: None)

    class Together(Stands):
        @pdmp.compiled
        def clock(self, state, i, now, rng):
            return now + 1.0, CERTAIN_BOUND

    run = pdmp.sample(Together(HORIZON, clocks), initial=np.zeros(clocks), time=5.5, seed=1, store="moments")
    assert run.stats["total_events"] == 5 * clocks
