"""What is drawn of thinning: the path is that of `pdmp.sample`, the rate is the true one, the bound is above it."""

import numpy as np
import pytest

import discrete
import pdmp
from pdmp import plots
from pdmp.plots.proposals import piece
from pdmp.process import DATA
from tests.plots.helpers_plane import PLANE
from tests.toys import Telegraph

pytestmark = pytest.mark.exact

HALF = 0.6  #: the rate of the second clock of a telegraph, whose bound is 1


@pytest.mark.compiled
def test_the_piece_is_the_path_of_a_run():
    process = pdmp.BPS(PLANE, thinning="affine")
    found = piece(process, 12, initial=[0.5, 0.5], seed=3, skip=40)
    run = pdmp.sample(process, initial=[0.5, 0.5], seed=3, time=found.times[-1] + 1e-9)
    path = run.trajectories[0]
    bounces = path.times[1:][path.kinds == 0]
    assert len(found.proposals) == 12 and 0 < found.accepted.sum() <= 12
    inside = bounces[(bounces > found.times[0]) & (bounces <= found.times[-1])]
    np.testing.assert_allclose(found.proposals[found.accepted], inside, rtol=1e-12)
    others = path.times[1:][path.kinds == 1]
    np.testing.assert_allclose(found.others, others[(others > found.times[0]) & (others <= found.times[-1])])


def test_the_rate_is_that_of_the_gradient():
    process = pdmp.BPS(PLANE, thinning="affine")
    found = piece(process, 6, 0, [0.5, 0.5], seed=3, skip=0)
    path = pdmp.sample(process, initial=[0.5, 0.5], seed=3, time=found.times[-1] + 1.0).trajectories[0]
    x = path.at(found.times, side="left")
    k = np.searchsorted(path.times, found.times, side="left") - 1
    # At an event itself the last velocity before it counts at the end of a segment, the new one at the next beginning.
    starts = np.flatnonzero(np.diff(found.times, prepend=-1.0) == 0.0)
    k[starts] = np.searchsorted(path.times, found.times[starts] * (1.0 + 1e-14), side="right") - 1
    by_hand = [max(float(path.velocities[max(j, 0)] @ PLANE.gradient(y)), 0.0) for j, y in zip(k, x, strict=True)]
    np.testing.assert_allclose(found.rates, by_hand, atol=1e-8)
    assert found.rates.max() > 0.5 and not found.estimated and found.clock == "bounce"


@pytest.mark.parametrize(
    "make", [lambda: pdmp.BPS(PLANE, thinning="affine"), lambda: pdmp.ZigZag(PLANE, thinning="affine")]
)
def test_the_bound_is_above_the_rate(make):
    """Of proved bounds; drawn from one drawing of the clock to the next, and through the proposals."""
    found = piece(make(), 15, initial=[0.5, 0.5], seed=1, skip=10)
    assert len(found.bounds) >= 10
    for t, b in found.bounds:
        assert np.all(np.diff(t) >= 0.0)
        assert np.all(b >= np.interp(t, found.times, found.rates) - 1e-2 * found.rates.max())
    all_times, all_bounds = (np.concatenate(part) for part in zip(*found.bounds, strict=True))
    for t, b in zip(found.proposals, found.proposed, strict=True):
        assert np.any((all_times == t) & (all_bounds == b))
    ends = [t[-1] for t, _ in found.bounds]
    begins = [t[0] for t, _ in found.bounds]
    assert all(end <= begin for end, begin in zip(ends[:-1], begins[1:], strict=True))


def test_a_proposal_is_on_the_curve_of_its_bound():
    """An affine one: a straight line through the answers that the clock might have given instead."""
    found = piece(pdmp.BPS(PLANE, thinning="affine"), 15, initial=[0.5, 0.5], seed=1, skip=10)
    seen = 0
    for t, b in found.bounds:
        if t[-1] in found.proposals and len(t) > 6:
            line = np.polyfit(t[:-1] - t[0], b[:-1], 1)
            assert b[-1] == pytest.approx(np.polyval(line, t[-1] - t[0]), rel=1e-6)
            seen += 1
    assert seen > 5


def test_one_clock_that_stands_for_all_coordinates():
    model = pdmp.models.Gaussian([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    found = piece(pdmp.ZigZag(model, thinning="affine"), 5, initial=[0.5, 0.5, 0.5], seed=1, skip=0)
    path = pdmp.sample(
        pdmp.ZigZag(model, thinning="affine"), initial=[0.5, 0.5, 0.5], seed=1, time=found.times[-1] + 1.0
    ).trajectories[0]
    middle = np.unique(found.times)[3:-3:7] + 1e-9
    v = path.velocities[np.searchsorted(path.times, middle, side="right") - 1]
    gradients = np.array([model.gradient(x) for x in path.at(middle)])
    np.testing.assert_allclose(
        np.interp(middle, found.times, found.rates), np.maximum(v * gradients, 0.0).sum(axis=1), atol=1e-6
    )
    assert found.clock == "all coordinates"


class Stated(Telegraph):
    """It states its rates: that of the second clock grows with the first coordinate."""

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = 1.0
        out[1] = HALF + 0.01 * x[0]


def test_the_rate_is_that_of_the_clock_that_is_asked_for():
    found = piece(Stated(), 6, 1, [3.0, 0.0], seed=2, skip=5)
    path = pdmp.sample(Telegraph(), initial=[3.0, 0.0], seed=2, time=found.times[-1] + 1.0).trajectories[0]
    np.testing.assert_allclose(found.rates, HALF + 0.01 * path.at(found.times)[:, 0], rtol=1e-9)
    assert found.clock == "second" and not found.estimated and np.ptp(found.rates) > 0.01


class BothThinned(Telegraph):
    """Two clocks with the bound 1."""

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential(), 1.0


@pytest.mark.parametrize("clock", [0, 1])
def test_proposals_are_those_of_the_clock_that_is_asked_for(clock):
    found = piece(BothThinned(), 9, clock, [0.0, 0.0], seed=2, skip=5)
    path = pdmp.sample(BothThinned(), initial=[0.0, 0.0], seed=2, time=found.times[-1] + 1e-9).trajectories[0]
    own, others = (
        path.times[1:][(path.kinds == kind) & (path.times[1:] > found.times[0])] for kind in (clock, 1 - clock)
    )
    assert len(found.proposals) == 9 and len(own) < 9 and len(others) > 1
    np.testing.assert_allclose(found.proposals[found.accepted], own)
    np.testing.assert_allclose(found.others, others)


def test_a_rate_that_is_estimated():
    """SBPS: the mean over mini-batches, (v·∇Û)₊, near the true rate where the noise is small."""
    process = pdmp.SBPS(pdmp.gradients.Noisy(PLANE, 0.01), refresh_rate=0.1)
    found = piece(process, 4, initial=[0.5, 0.5], seed=3, skip=100)
    path = pdmp.sample(process, initial=[0.5, 0.5], seed=3, time=found.times[-1] + 1e-9).trajectories[0]
    middle = found.times[2::6]
    v = path.velocities[np.searchsorted(path.times, middle, side="right") - 1]
    exact = [max(float(a @ PLANE.gradient(x)), 0.0) for a, x in zip(v, path.at(middle), strict=True)]
    np.testing.assert_allclose(found.rates[2::6], exact, atol=0.05)
    assert found.estimated and max(exact) > 0.3


class Counting(Telegraph):
    """The rate of the second clock grows with how often it was asked for."""

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        state.counts[DATA] += 1
        return 0.5 + 0.01 * state.counts[DATA]


def test_the_picture_asks_for_rates_without_a_trace():
    found = piece(Counting(), 6, 1, [0.0, 0.0], seed=2, skip=0)
    np.testing.assert_allclose(np.unique(found.rates), 0.5 + 0.01 * np.arange(1, 7), rtol=1e-12)


def test_what_has_no_bound_to_draw(plane, tmp_path):
    with pytest.raises(ValueError, match="clock 0 of SGLD is not thinned"):
        piece(discrete.SGLD(PLANE, step=0.1), 2, initial=[0.0, 0.0], skip=0)
    with pytest.raises(ValueError, match="`clock` must be one of 0 … 1, got 2"):
        piece(Telegraph(), 2, 2, [0.0, 0.0])
    plane.save(tmp_path / "run.npz")
    with pytest.raises(TypeError, match="a loaded run has none to run; give the process itself"):
        plots.rate_and_bound(pdmp.load(tmp_path / "run.npz"))
    from tests.toys import RATE_NAN

    with pytest.raises(pdmp.SamplingError, match="Telegraph stops here, at time .*: pdmp.sample of it says why"):
        piece(Telegraph(RATE_NAN, after=1.0), 50, initial=[0.0, 0.0], skip=0)
