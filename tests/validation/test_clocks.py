"""`pdmp.validation.check_clocks`: the integrals, the bookkeeping, and that it sees what is wrong."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.flow import Elliptic
from pdmp.gradients import Minibatch
from pdmp.process import CERTAIN, KINDS, THINNED, VIOLATIONS
from pdmp.thinning import Maxima
from pdmp.validation import check_clocks, clocks
from tests import toys
from tests.checks import in_ci, in_quick, plain, plain_only, run_chain

pytestmark = pytest.mark.exact


class Switches(toys.Telegraph):
    """A telegraph process that claims its rates: 1, and `claimed` for the clock that is thinned to 0.6."""

    claimed: float

    def __init__(self, claimed=0.6, trouble=toys.NO_TROUBLE):
        super().__init__(trouble)
        self.claimed = claimed

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = 1.0
        out[1] = self.claimed


class Slopes(pdmp.Process):
    """Signed rates that are known functions of the first coordinate; never run."""

    _required = ()

    def __init__(self):
        super().__init__(2, 2)

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = math.sin(3.0 * x[0])
        out[1] = x[0] * x[0] * x[0] - x[0]


GAUSSIAN = pdmp.models.Gaussian(np.array([1.0, -2.0]), np.array([[2.0, 0.8], [0.8, 1.5]]))


def test_positive_parts_are_integrated_to_the_tolerance():
    process = Slopes()
    state = process.begin(np.array([-0.5, 3.0]), np.random.default_rng(0))
    work = clocks._new_work(process, state, 2, 1)
    for length in (0.3, 1.0, 4.0):
        work.hazards[:], work.error[:] = 0.0, 0.0
        plain(clocks._integrate)(process.native, process.flow.native, work, length, 1e-5)
        s = np.linspace(-0.5, length - 0.5, 400_001)
        expected = [np.trapezoid(np.maximum(r, 0.0), s) for r in (np.sin(3.0 * s), s**3 - s)]
        np.testing.assert_allclose(work.hazards, expected, atol=1e-4)
        assert np.all(np.abs(work.hazards - expected) <= work.error + 1e-8)


def test_an_interval_is_split_where_its_error_exceeds_the_tolerance():
    """The estimated error of the worse of two rates, the other being 0 there, against the tolerance itself."""
    process = Slopes()
    state = process.begin(np.array([0.1, 3.0]), np.random.default_rng(0))

    def integrated(tolerance):
        work = clocks._new_work(process, state, 2, 1)
        plain(clocks._integrate)(process.native, process.flow.native, work, 0.9, tolerance)
        return work

    once = integrated(1.0)
    assert once.error[0] > 0.0 == once.error[1]
    assert np.array_equal(integrated(1.01 * once.error[0]).hazards, once.hazards)
    twice = integrated(0.99 * once.error[0])
    assert twice.hazards[0] != once.hazards[0] and twice.error[0] < 0.1 * once.error[0]


class Turns(pdmp.Process):
    """Rates of a position and of a velocity on two ellipses about different centres; never run."""

    _required = ()

    def __init__(self):
        super().__init__(2, 2, flow=Elliptic([0.4, -1.5]))

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = v[0]
        out[1] = x[0] * v[1] - x[1]


def test_rates_are_integrated_along_ellipses():
    process = Turns()
    state = process.begin(np.array([-0.5, 3.0]), np.random.default_rng(0))
    state.v[:] = [0.8, -1.1]
    work = clocks._new_work(process, state, 2, 1)
    plain(clocks._integrate)(process.native, process.flow.native, work, 5.0, 1e-5)
    s, centre = np.linspace(0.0, 5.0, 400_001)[:, None], process.flow.mean
    x = centre + ([-0.5, 3.0] - centre) * np.cos(s) + [0.8, -1.1] * np.sin(s)
    v = [0.8, -1.1] * np.cos(s) - ([-0.5, 3.0] - centre) * np.sin(s)
    expected = [np.trapezoid(np.maximum(r, 0.0), s[:, 0]) for r in (v[:, 0], x[:, 0] * v[:, 1] - x[:, 1])]
    np.testing.assert_allclose(work.hazards, expected, atol=1e-4)


class Jumps(Slopes):
    """A rate that jumps from 0 to 2 at the place x = 0, and one that jumps back there."""

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        out[0] = 2.0 if x[0] > 0.0 else 0.0
        out[1] = 3.0 if x[0] < 0.0 else -1.0


@pytest.mark.parametrize("before", [1e-3, 0.01, 0.3, 0.97, 0.99, 0.999])
def test_a_jump_near_the_end_of_a_segment_is_seen(before):
    process = Jumps()
    state = process.begin(np.array([-before, 3.0]), np.random.default_rng(0))
    work = clocks._new_work(process, state, 2, 1)
    plain(clocks._integrate)(process.native, process.flow.native, work, 1.0, 1e-5)
    np.testing.assert_allclose(work.hazards, [2.0 * (1.0 - before), 3.0 * before], atol=1e-4)


def test_the_nodes_are_those_of_gauss_and_kronrod():
    nodes = np.concatenate([-np.array(clocks.NODES[:0:-1]), clocks.NODES])
    kronrod, gauss = (np.concatenate([w[:0:-1], w]) for w in (clocks.WEIGHTS, clocks.GAUSS))
    for degree in range(12):
        exact = 2.0 / (degree + 1) if degree % 2 == 0 else 0.0
        assert kronrod @ nodes**degree == pytest.approx(exact, abs=1e-14)
        if degree < 6:
            assert gauss @ nodes**degree == pytest.approx(exact, abs=1e-14)


@plain_only
def test_a_true_process_passes():
    found = check_clocks(Switches(), initial=[0.0, 0.0], events=8_000, seed=1)
    assert found.p > 1e-3
    first, second = found.clocks
    assert (first.name, second.name) == ("first", "second")
    assert first.n + second.n == found.events == 8_000
    assert first.n == pytest.approx(5_000, abs=200)
    assert math.isnan(first.acceptance)
    assert second.acceptance == pytest.approx(0.6, abs=0.03)
    assert second.resolution == pytest.approx(4.95 / math.sqrt(second.n))
    assert found.resolution == second.resolution > first.resolution


class Mixed(Switches):
    """Whose second clock inverts its rate for half of its times, and is thinned for the others."""

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        wait = rng.standard_exponential()
        if i == 1 and rng.random() < 0.5:
            return now + wait, 1.0
        return now + (wait if i == 0 else wait / 0.6), CERTAIN


def test_acceptance_is_of_what_was_thinned():
    found = check_clocks(Mixed(), initial=[0.0, 0.0], events=2_000, seed=1)
    assert found.clocks[1].acceptance == pytest.approx(0.6, abs=0.06) and found.p > 1e-3


@pytest.mark.parametrize("claimed", in_quick([0.54, 0.66], 0.66))
def test_a_rate_that_is_not_the_claimed_one_is_found_and_the_other_clock_is_not_blamed(claimed):
    found = check_clocks(Switches(claimed), initial=[0.0, 0.0], events=8_000, seed=1)
    assert found.p < 1e-4
    assert found.clocks[1].mean == pytest.approx(claimed / 0.6, abs=0.06)
    assert found.clocks[0].p > 1e-3


@plain_only
@pytest.mark.parametrize(
    "process",
    [
        pdmp.BPS(GAUSSIAN, refresh_rate=0.7, thinning="grid"),
        pytest.param(pdmp.ZigZag(GAUSSIAN), marks=pytest.mark.slow),
        pdmp.ZigZag(GAUSSIAN, thinning="affine"),  # one clock for both coordinates
    ],
    ids=["BPS by the grid", "ZigZag by inversion", "ZigZag by superposition"],
)
def test_the_processes_of_the_package(process):
    events = 800 if process.clocks == 1 else 2_000
    found = check_clocks(process, events=events, seed=2)
    assert found.p > 1e-4, str(found)
    assert not found.skipped and sum(clock.n for clock in found.clocks) == events
    assert [clock.name for clock in found.clocks] == list(process.channels())
    assert max(clock.error for clock in found.clocks) < 1e-4


class OneByOne(pdmp.FactorisedBoomerang):
    """Batches of one, and the mean over all data of their rates."""

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        model, d = self.provider.model, x.shape[0]
        for j in range(d):
            out[j], out[d + j] = 0.0, self.refresh_rate
        for i in range(model.n_data):
            for j in range(d):
                scratch[j] = 0.0
            model.add_term_gradient(x, i, scratch)
            for j in range(d):
                reference = (x[j] - self.mean[j]) / (self.reference.sd[j] * self.reference.sd[j])
                rate = v[j] * (model.n_data * scratch[j] + model.precision[j] * x[j] - reference)
                out[j] += max(rate, 0.0) / model.n_data


FOUR = pdmp.models.LogisticRegression([[1.0, 0.5], [-0.3, 1.0], [0.8, -0.7], [1.2, 0.1]], [1.0, 0.0, 1.0, 1.0])
BOX = {"lower": [0.0, -np.inf], "upper": [np.inf, -1.5]}
#: Pairs of a sampler and a bound, or of a sampler and walls, that no other test of clocks has.
PAIRS = {
    "factorised Boomerang, batches": lambda: OneByOne(Minibatch(FOUR, 1)),
    "factorised Boomerang, maxima": lambda: pdmp.FactorisedBoomerang(GAUSSIAN, thinning=Maxima()),
    "Boomerang, maxima": lambda: pdmp.Boomerang(GAUSSIAN, metric=pdmp.Metric(covariance=[0.3, 0.6]), thinning=Maxima()),
    "coordinate sampler, maxima": lambda: pdmp.CoordinateSampler(GAUSSIAN, 0.3, "maxima"),
    "coordinate sampler in a box": lambda: pdmp.Bounded(pdmp.CoordinateSampler(GAUSSIAN, 0.3), **BOX),
    "BPS with a mass in a box": lambda: pdmp.Bounded(pdmp.BPS(GAUSSIAN, 0.5, metric="auto"), **BOX),
    "directional BPS in a box": lambda: pdmp.Bounded(pdmp.DirectionalBPS(GAUSSIAN, 0.5), **BOX),
    "event chain, grid": lambda: pdmp.ForwardEventChain(GAUSSIAN, "refresh", 0.5, thinning="grid"),
}


@pytest.mark.slow
@plain_only
@pytest.mark.parametrize("name", in_ci(PAIRS, "Boomerang, maxima", "event chain, grid"))
def test_other_pairs_of_a_sampler_and_a_bound(name):
    """In plain Python, and so with fewer events: rates that are off by a fifth show."""
    found = check_clocks(PAIRS[name](), events=2_000, seed=5)
    assert found.p > 1e-4, str(found)
    assert min(clock.resolution for clock in found.clocks) < 0.2
    assert sum(clock.violations for clock in found.clocks) < 20


def test_violations_and_acceptance_are_those_of_the_run():
    process = pdmp.BPS(GAUSSIAN, refresh_rate=0.7, thinning="grid")
    found = check_clocks(process, events=500, seed=3)
    counts = run_chain(process, GAUSSIAN.mode(), 3, events=500, store="moments").state.counts
    bounce = found.clocks[0]
    assert bounce.n == counts[KINDS]
    assert bounce.violations == counts[VIOLATIONS]
    assert bounce.acceptance == pytest.approx(counts[KINDS] / counts[THINNED])


def test_what_it_cannot_check_it_says():
    with pytest.raises(TypeError, match="Telegraph does not state .*true_rates"):
        check_clocks(toys.Telegraph(), initial=[0.0, 0.0])
    with pytest.raises(TypeError, match="`process` must be a process"):
        check_clocks(GAUSSIAN)
    with pytest.raises(ValueError, match="at least 100"):
        check_clocks(Switches(), initial=[0.0, 0.0], events=10)
    with pytest.raises(ValueError, match="`tolerance` must be a positive number"):
        check_clocks(Switches(), initial=[0.0, 0.0], tolerance=0.0)
    with pytest.raises(pdmp.SamplingError, match="exceeded .* at event"):
        check_clocks(Switches(trouble=toys.ABOVE_BOUND), initial=[0.0, 0.0])
