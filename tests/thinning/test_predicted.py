"""The predicted bound: its formula, what it learns, one gradient a proposal, and paths that do not depend on chunks."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import pdmp
from pdmp.process import ADAPTING, DATA, HORIZON, HORIZONS, KINDS, THINNED, VIOLATIONS
from pdmp.thinning import Predicted, first_arrival, predicted
from tests.checks import plain_only, run_chain
from tests.thinning.helpers_thinning import Draws

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)
BANANA = pdmp.models.Banana(dim=3)


class Rays:
    """Signed rates that are known functions of the time, and what a process knows of them in advance."""

    def __init__(self, functions, squares, rises=None, age=0.0, longest=math.inf):
        self.functions, self.squares, self.age, self.longest = functions, squares, age, longest
        self.rises = [0.0] * len(squares) if rises is None else rises

    def signed_rates(self, state, now, rng, out):
        out[:] = [f(now) for f in self.functions]

    def predict(self, state, now, rng, rates, rises, squares):
        self.signed_rates(state, now, rng, rates)
        rises[:], squares[:] = self.rises, self.squares
        return self.age, self.longest


def new_state(m, width=1.0, adapting=0):
    counts = np.zeros(20, np.int64)
    counts[ADAPTING] = adapting
    return SimpleNamespace(
        memory=SimpleNamespace(bound=Predicted().memory(m, 3, width)), counts=counts, bounds=np.zeros(1)
    )


def learnt(state, curvature, spread, margin, growth):
    """Put known values in the place of what is learnt."""
    memory = state.memory.bound
    memory.weight[:], memory.product[:], memory.spread[:] = 2.0, 2.0 * np.array(curvature), np.array(spread) ** 2
    memory.margin[0], memory.growth[0] = margin, growth


def shape(curvature, spread, square, s, age=0.0, longest=math.inf):
    """b (FIRST q + t), of which the margin is k (1 + g) τ times."""
    unit = min(1.0 / math.sqrt((curvature + spread) * square), longest)
    return square * (predicted.FIRST * unit + age + s)


# ---------------------------------------------------------------------------------------------------------------
# The formula


@plain_only
@pytest.mark.parametrize("rate", [-0.7, 0.0, 2.5])
@pytest.mark.parametrize("age, rise, longest", [(0.0, 0.0, math.inf), (0.4, -0.3, 1.0)])
def test_a_proposal_inverts_the_stated_bound(rate, age, rise, longest):
    curvature, spread, margin, growth, square = 1.7, 0.2, 2.5, 0.6, 1.3
    process = Rays([lambda t: rate], [square], [rise], age, longest)
    state = new_state(1)
    learnt(state, curvature, spread, margin, growth)
    room, part = margin * (1.0 + growth) * spread, predicted.FLOOR
    start = room * shape(curvature, spread, square, 0.0, age, longest)
    slope = rise + curvature * square
    for e, f in [(0.01, 1.0), (0.2, 1.0), (0.6, 1.0), (0.6, 0.004)]:
        time, bound = Predicted().native.propose(process, state, 0, 3.0, Draws(e, f))
        s = min(
            first_arrival(rate + (1.0 - part) * start, slope + (1.0 - part) * room * square, e),
            first_arrival(part * start, part * room * square, f),
        )
        assert time - 3.0 == pytest.approx(s, rel=1e-12)
        whole = room * shape(curvature, spread, square, s, age, longest)
        expected = max(rate + slope * s + (1.0 - part) * whole, 0.0) + part * whole
        assert bound == pytest.approx(expected, rel=1e-12)


@plain_only
def test_the_bounds_of_several_rates_add_up():
    process = Rays([lambda t: 2.0, lambda t: -50.0, lambda t: 1.0], [1.0, 0.5, 2.0])
    state = new_state(3)
    learnt(state, [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], 2.0, 0.0)
    time, bound = Predicted().native.propose(process, state, 0, 1.0, Draws(0.9, 0.1, 0.2, 50.0))
    parts = [(2.0, 1.0, 0.1, 1.0), (1.0, 3.0, 0.3, 2.0)]
    part = predicted.FLOOR
    starts = [r + (1.0 - part) * 2.0 * tau * shape(c, tau, b, 0.0) for r, c, tau, b in parts]
    slopes = [(c + (1.0 - part) * 2.0 * tau) * b for _, c, tau, b in parts]
    s = min(first_arrival(a, b, e) for a, b, e in zip(starts, slopes, (0.9, 0.2), strict=True))
    assert time - 1.0 == pytest.approx(s, rel=1e-12)
    floor = sum(
        part * 2.0 * tau * shape(c, tau, b, s) for c, tau, b in [(1.0, 0.1, 1.0), (2.0, 0.2, 0.5), (3.0, 0.3, 2.0)]
    )
    expected = floor + sum(a + b * s for a, b in zip(starts, slopes, strict=True))
    assert bound == pytest.approx(expected, rel=1e-12)


@plain_only
def test_where_the_rate_should_be_negative_a_part_of_the_margin_remains():
    """So that a prediction that fails there is found out."""
    process, state = Rays([lambda t: -50.0], [1.0]), new_state(1)
    learnt(state, 1.0, 0.5, 2.0, 0.0)
    time, bound = Predicted().native.propose(process, state, 0, 0.0, Draws(1e3, 0.3))
    assert bound == pytest.approx(predicted.FLOOR * shape(1.0, 0.5, 1.0, time), rel=1e-12)


@plain_only
def test_the_gradient_is_looked_at_where_nothing_was_proposed():
    """After the time in which a falling rate reaches zero and q has passed `LOOK` times; sooner after a failure."""
    process, state = Rays([lambda t: -4.0], [2.0]), new_state(1)
    learnt(state, 1.5, 0.5, 1.0, 0.0)
    look = 4.0 / 3.0 + predicted.LOOK / math.sqrt(4.0)
    assert Predicted().native.propose(process, state, 0, 1.0, Draws(1e3, 1e3)) == (pytest.approx(1.0 + look), HORIZON)
    process.longest = 0.8
    assert Predicted().native.propose(process, state, 0, 1.0, Draws(1e3, 1e3)) == (pytest.approx(1.8), HORIZON)
    state.memory.bound.reach[0] = 0.25
    assert Predicted().native.propose(process, state, 0, 1.0, Draws(1e3, 1e3)) == (pytest.approx(1.25), HORIZON)


@plain_only
def test_a_rate_that_is_not_a_number_is_reported():
    time, _ = Predicted().native.propose(Rays([lambda t: math.nan], [1.0]), new_state(1), 0, 0.0, Draws(1.0, 1.0))
    assert math.isnan(time)


# ---------------------------------------------------------------------------------------------------------------
# What is learnt


def observe(state, process, now, bound):
    state.bounds[0] = bound
    Predicted().native.observe(process, state, 0, now, None)


@plain_only
@pytest.mark.parametrize("adapting, gain", [(1, predicted.WARM_GAIN), (0, predicted.GAIN)])
def test_the_margin_grows_at_a_violation_and_falls_otherwise(adapting, gain):
    process, state = Rays([lambda t: 1.0 + t], [1.0]), new_state(1, adapting=adapting)
    margin, rate = state.memory.bound.margin, 1.5
    for bound, factor in [
        (0.9, math.exp(gain)),
        (rate, math.exp(-gain * 0.003 / 0.997)),
        (rate * (1.0 - 1e-8), math.exp(-gain * 0.003 / 0.997)),  # rounding is no violation
        (HORIZON, 1.0),
    ]:
        before = margin[0]
        process.predict(state, 0.0, None, *state.memory.bound[:3])
        observe(state, process, 0.5, bound)
        assert margin[0] == pytest.approx(before * factor, rel=1e-12), bound


@plain_only
def test_the_growth_follows_a_failure_and_decays():
    """A rate that was wrong by four margins lets the next margin be four times as large, and looks sooner."""
    process, state = Rays([lambda t: 0.0], [1.0]), new_state(1)
    memory = state.memory.bound
    for off, growth, reach in [(4.0, 3.0, 0.25), (0.5, 3.0 * predicted.DECAY, 0.5), (-9.0, 8.0, 0.25)]:
        learnt(state, 1.0, 0.2, 2.0, memory.growth[0])
        memory.margin[0] = 2.0
        process.functions = [lambda t: 0.0]
        Predicted().native.propose(process, state, 0, 1.0, Draws(1.0, 1.0))
        margin = 2.0 * 0.2 * shape(1.0, 0.2, 1.0, 0.5)
        process.functions = [lambda t, off=off, margin=margin: 0.5 + off * margin]
        observe(state, process, 1.5, HORIZON)
        assert memory.growth[0] == pytest.approx(growth, rel=1e-12)
        assert memory.reach[0] == reach


@plain_only
@pytest.mark.parametrize("age", [0.0, 0.4])
def test_errors_are_in_units_of_the_margin(age):
    """Which has grown since the last gradient, and not only since the prediction was made; of two rates, their sum."""
    curvatures, spreads, squares, rises = [1.5, 0.6], [0.5, 0.3], [2.0, 0.7], [-0.3, 0.2]
    process, state = Rays([lambda t: 0.0, lambda t: 1.0], squares, rises, age), new_state(2)
    memory = state.memory.bound
    learnt(state, curvatures, spreads, 1.0, 0.0)
    Predicted().native.propose(process, state, 0, 1.0, Draws(1.0, 1.0, 1.0))
    process.functions = [lambda t: 4.0, lambda t: 0.5]
    observe(state, process, 1.25, HORIZON)
    error = margin = 0.0
    for j, (sigma, tau, square, y) in enumerate(
        zip(curvatures, spreads, squares, [4.0 + 0.3 * 0.25, -0.5 - 0.2 * 0.25], strict=True)
    ):
        unit, x = shape(sigma, tau, square, 0.25, age), square * 0.25
        # Four evaluations so far, with the three that the first values count as.
        assert memory.weight[j] == pytest.approx(0.75 * 2.0 + 0.25 * (x / unit) ** 2, rel=1e-12)
        assert memory.product[j] == pytest.approx(0.75 * 2.0 * sigma + 0.25 * x * y / unit**2, rel=1e-12)
        assert memory.spread[j] == pytest.approx(0.75 * tau**2 + 0.25 * ((y - sigma * x) / unit) ** 2, rel=1e-12)
        error += abs(y - sigma * x)
        margin += tau * unit
    assert memory.growth[0] == pytest.approx(error / margin - 1.0, rel=1e-12)


@plain_only
def test_curvature_and_spread_are_running_means():
    """With weights 1/n, 1/(n+1), … the recursion is the weighted least squares of all rises; the spread likewise."""
    rng, state = np.random.default_rng(1), new_state(1, width=0.5)
    memory, start = state.memory.bound, 4.0
    x, y, rests = [1.0, 1.0, 1.0], [start] * 3, [(0.3 * start) ** 2] * 3
    for s in rng.exponential(size=20):
        slope, square = rng.normal(3.0), rng.exponential()
        process = Rays([lambda t, slope=slope: 1.0 + slope * t], [square])
        Predicted().native.propose(process, state, 0, 0.0, Draws(1.0, 1.0))
        sigma = max(np.dot(x, y) / np.dot(x, x), 0.0)
        tau = max(math.sqrt(np.mean(rests)), predicted.LEAST_SPREAD * sigma)
        unit = shape(sigma, tau, square, s)
        observe(state, process, s, HORIZON)
        x.append(square * s / unit)
        y.append(slope * s / unit)
        rests.append((y[-1] - sigma * x[-1]) ** 2)
        # the mean starts from three values
        assert memory.product[0] / memory.weight[0] == pytest.approx(np.dot(x, y) / np.dot(x, x), rel=1e-9)
        assert memory.spread[0] == pytest.approx(np.mean(rests), rel=1e-9)


@plain_only
def test_a_rate_that_is_not_finite_teaches_nothing():
    process, state = Rays([lambda t: math.inf], [1.0]), new_state(1)
    before = [np.array(a) for a in state.memory.bound]
    observe(state, process, 0.5, 1.0)
    for a, b, name in zip(before, state.memory.bound, state.memory.bound._fields, strict=True):
        assert name == "observed" or np.array_equal(a, b)


# ---------------------------------------------------------------------------------------------------------------
# In chains

MASS = np.diag(np.diag(PRECISION)) + 0.3
COVARIANCE = np.diag([0.6, 0.7, 1.2])
PROCESSES = {
    "BPS": lambda model: pdmp.BPS(model, 0.3, thinning="predicted"),
    "BPS, sphere, mass": lambda model: pdmp.BPS(model, 0.0, metric=MASS, thinning="predicted"),
    "BPS, adaptive": lambda model: pdmp.BPS(model, 0.3, metric="dense", thinning="predicted"),
    "event chain": lambda model: pdmp.ForwardEventChain(
        model, "refresh", 0.5, velocities="gaussian", metric=MASS, thinning="predicted"
    ),
    "generalised": lambda model: pdmp.GeneralisedBPS(model, metric=np.diag(MASS), thinning="predicted"),
    "Boomerang": lambda model: pdmp.Boomerang(
        model, MEAN, metric=pdmp.Metric(covariance=COVARIANCE), refresh_rate=1.0, thinning="predicted"
    ),
    "Boomerang, diagonal": lambda model: pdmp.Boomerang(
        model, MEAN, metric=pdmp.Metric(covariance=0.8), refresh_rate=1.0, thinning=Predicted()
    ),
    "Zig-Zag": lambda model: pdmp.ZigZag(model, thinning="predicted", metric=pdmp.Metric(scales=[1.0, 0.7, 2.0])),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_a_proposal_costs_one_gradient(name):
    """Proposals, horizons and the start; refreshments on straight lines, none on ellipses; no bounce any more."""
    chain = run_chain(PROCESSES[name](BANANA), np.zeros(3), 5, events=200)
    counts, refreshments = chain.state.counts, 0
    if name.startswith("BPS"):  # the rate after the last event is not asked for any more
        refreshments = counts[KINDS + 1] - (chain.finish().kinds[-1] == 1)
    assert counts[DATA] == counts[THINNED] + counts[HORIZONS] + 1 + refreshments
    assert counts[THINNED] < 10 * 200


@pytest.mark.parametrize("name", ["event chain", "Boomerang", "Zig-Zag"])
def test_the_share_of_proposals_above_the_bound_is_the_one_asked_for(name):
    """log k is a sum over the proposals, so that the share differs from `exceed` by its change alone, over n."""
    process = PROCESSES[name](BANANA)
    process.thinning = Predicted(exceed=0.05)
    chain = run_chain(process, np.zeros(3), 6, events=1_000)
    counts, k = chain.state.counts, chain.state.memory.bound.margin[0]
    n, violations = counts[THINNED], counts[VIOLATIONS]
    assert predicted.LEAST < k < predicted.MOST
    expected = predicted.START * math.exp(predicted.GAIN * (violations - (n - violations) * 0.05 / 0.95))
    assert k == pytest.approx(expected, rel=1e-9)
    assert violations / n == pytest.approx(0.05, abs=math.log(predicted.MOST / predicted.LEAST) / predicted.GAIN / n)


def test_an_isotropic_gaussian_leaves_nothing_to_predict():
    """In the metric of the target each rise is |u|² s: σ is 1, nothing exceeds, and few proposals are rejected."""
    process = pdmp.ForwardEventChain(
        GAUSSIAN, "refresh", 0.5, velocities="gaussian", metric=PRECISION, thinning="predicted"
    )
    chain = run_chain(process, MEAN, 7, events=1_000)
    memory, counts = chain.state.memory.bound, chain.state.counts
    assert memory.product[0] / memory.weight[0] == pytest.approx(1.0, rel=1e-6)
    assert memory.margin[0] == pytest.approx(predicted.START * math.exp(-0.1 * 0.003 / 0.997 * counts[THINNED]))
    assert counts[VIOLATIONS] == 0 and counts[THINNED] < 1_150


def test_a_gradient_that_is_not_finite_stops_the_run():
    def cliff(x):
        inside = abs(x[0]) < 0.2
        return 0.5 * float(x @ x), x if inside else np.full(2, math.nan)

    model = pdmp.models.from_function(cliff, 2)
    for process in (
        pdmp.BPS(model, 0.3, thinning="predicted"),
        pdmp.Boomerang(model, np.zeros(2), metric=pdmp.Metric(covariance=1.0), thinning="predicted"),
    ):
        with pytest.raises(pdmp.SamplingError, match="finite"):
            pdmp.sample(process, events=200, seed=1, initial=[0.0, 0.1])


# ---------------------------------------------------------------------------------------------------------------
# Arguments


@pytest.mark.parametrize("exceed", [0.0, 1.0, -0.1, math.nan, "few"])
def test_the_share_must_be_a_share(exceed):
    with pytest.raises(ValueError, match="`exceed`"):
        Predicted(exceed)


def test_processes_without_such_rates_refuse_it():
    with pytest.raises(ValueError, match="Predicted does not know the rates"):
        pdmp.FactorisedBoomerang(GAUSSIAN, thinning="predicted")
    with pytest.raises(ValueError, match="`thinning`"):
        pdmp.CoordinateSampler(GAUSSIAN, thinning="predicted")
    X = np.random.default_rng(0).standard_normal((20, 2))
    batch = pdmp.gradients.Minibatch(pdmp.models.LogisticRegression(X, (X[:, 0] > 0.0).astype(float)), 2)
    with pytest.raises(ValueError, match="`thinning`"):
        pdmp.Boomerang(batch, thinning="predicted")


@pytest.mark.parametrize("covariance", [0.8, COVARIANCE], ids=["diagonal", "dense"])
def test_the_boomerang_knows_its_slope_for_a_constant_gradient(covariance):
    """v·∇E and its derivative along an ellipse with ∇E held, against differences, and vᵀΣ⁻¹v."""
    process = pdmp.Boomerang(BANANA, MEAN, metric=pdmp.Metric(covariance=covariance), thinning="predicted")
    chain = run_chain(process, MEAN + 0.3, 8, events=5)
    state, flow, now = chain.state, process.flow.native, chain.state.now[0] + 0.2
    gradient, (r, c, b) = state.memory.gradient.copy(), np.zeros((3, 1))
    dense = covariance if np.ndim(covariance) == 2 else covariance * np.eye(3)

    def velocity(t):
        return np.array([flow.velocity(j, state.x[j], state.v[j], t - state.moved[0]) for j in range(3)])

    for frozen in ([], [0], [1, 2]):  # as coordinates of the sticky sampler are
        state.x[frozen], state.v[frozen] = 0.0, 0.0
        process.native.predict(state, now, chain.rng, r, c, b)
        assert np.array_equal(state.memory.gradient, gradient)
        assert r[0] == pytest.approx(velocity(now) @ gradient, rel=1e-12)
        h = 1e-5
        assert c[0] == pytest.approx((velocity(now + h) - velocity(now - h)) @ gradient / (2.0 * h), rel=1e-6, abs=1e-8)
        assert b[0] == pytest.approx(velocity(now) @ np.linalg.solve(dense, velocity(now)), rel=1e-12)
