"""The Zig-Zag process that looks at single rows of a sum of terms: rates, bounds and flips."""

import functools

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import HalfNormal, Normal
from pdmp.process import HORIZON
from pdmp.processes.regression_boomerang import KNOWN, ROW
from pdmp.processes.regression_bps import LONGEST
from pdmp.processes.row_zigzag import RowZigZag
from pdmp.processes.sticky_groups import StickyGroups
from tests.processes.helpers_regression_boomerang import remainders, state_at

pytestmark = [pytest.mark.exact, pytest.mark.usefixtures("few_radii")]
ROWS = 24


@functools.cache
def process():
    """Normal responses whose scale is unknown, with a prior that is not normal, beside terms of effects."""
    rng = np.random.default_rng(0)
    X, group = np.column_stack([np.ones(ROWS), rng.standard_normal(ROWS)]), np.arange(ROWS) % 3
    y = X @ [0.5, -0.4] + 0.7 * rng.standard_normal(ROWS)
    p = pdmp.Parameters(beta=2, effect=3, log_sd=1)
    normal = pdmp.terms(
        lambda y, m, s: s + 0.5 * (y - m) ** 2 * pdmp.terms.exp(-2.0 * s),
        [y],
        [X @ p.beta + p.effect[group], p.log_sd],
    )
    effects = pdmp.terms(lambda u: pdmp.terms.log1p(u**2), at=[p.effect[np.arange(3)]])
    priors = {"beta": Normal(0.0, 2.0), "effect": Normal(0.0, 1.0), "log_sd": HalfNormal(1.0)}
    return RowZigZag(pdmp.models.sum_of_terms(p, [normal, effects], priors))


def somewhere(rng):
    sd = process().reference.sd
    return process().anchor + 0.7 * sd * rng.standard_normal(len(sd)), process().velocity(None, rng)


def test_the_derivative_of_a_prior_rises_at_most_so_fast():
    """That of a log scale is steepest where it is highest: upwards at the end of a stretch, downwards at its begin."""
    own = process()
    j, prior = own.dim - 1, own.model.native
    for v in (0.3, -0.3):
        state = state_at(own, own.anchor, np.append(np.zeros(j), v))
        x = own.anchor[j] + 0.2 * v
        part, rise = own.native.line_of_prior(state, j, 0.2)
        assert part == pytest.approx(v * prior.derivative_of_prior(j, x), rel=1e-12)
        highest = x + max(v, 0.0) * LONGEST
        assert rise == pytest.approx(v**2 * prior.curvature_bound_of_prior_until(j, highest), rel=1e-12)
        slopes = [prior.derivative_of_prior(j, x + v * t) for t in np.linspace(0.0, LONGEST, 50)]
        assert np.all(np.diff(slopes) * v <= rise * LONGEST / 49 * (1.0 + 1e-9))


def test_rates_balance_the_flow():
    """The rows' remainders and what is known are the gradient, and each coordinate has the rate of each."""
    own, rng = process(), np.random.default_rng(1)
    x, v = somewhere(rng)
    rows, known = remainders(own, x)
    gradient = own.model.gradient(x)
    np.testing.assert_allclose(rows.sum(axis=0) + known, gradient, rtol=1e-9, atol=1e-9 * np.abs(rows).max())
    rates = np.zeros((2, 2))
    for sign, out in zip((1.0, -1.0), rates, strict=True):
        own.native.true_rates(x, sign * v, np.zeros(own.dim), out)
        by_hand = np.maximum(sign * v * rows, 0.0).sum(), np.maximum(sign * v * known, 0.0).sum()
        np.testing.assert_allclose(out, by_hand, rtol=1e-9)
    assert (rates[0] - rates[1]).sum() == pytest.approx(v @ gradient, rel=1e-9)


@pytest.mark.parametrize("clock", [ROW, KNOWN], ids=["rows", "known"])
def test_rates_below_their_bounds(clock):
    """At proposals of one line, after it has begun too: chance times rate of all rows is the true rate."""
    own, rng = process(), np.random.default_rng(2)
    seen = 0
    for since in (0.0, 0.6):
        x, v = somewhere(rng)
        state, true = state_at(own, x, v), np.zeros(2)
        for _ in range(12):
            now, bound = own.native.clock(state, clock, since, rng)
            state.bounds[clock] = bound
            if bound == HORIZON:
                assert own.native.rate(state, clock, now, rng) == 0.0
                continue
            seen += 1
            own.native.true_rates(x + now * v, v, np.zeros(own.dim), true)
            if clock == KNOWN:
                assert own.native.rate(state, KNOWN, now, None) == pytest.approx(true[KNOWN], rel=1e-9)
                assert true[KNOWN] <= bound
                continue
            total = 0.0
            for i in range(own.model.n_data):
                state.memory.row[0] = i
                rate = own.native.rate(state, ROW, now, None)
                assert rate <= bound
                total += own.weights[i] / own.total * rate
            assert total == pytest.approx(true[ROW], rel=1e-9)
    assert seen > 5


class Fixed:
    """A generator whose uniform number is given."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number


def test_flips_are_in_proportion_to_the_rates():
    own, (x, v) = process(), somewhere(np.random.default_rng(3))
    state = state_at(own, x, v)
    state.memory.row[0], state.bounds[ROW] = 4, 1.0
    own.native.rate(state, ROW, 0.0, None)
    rates = np.maximum(v * remainders(own, x)[0][4], 0.0)
    np.testing.assert_allclose(state.memory.gradient, rates, rtol=1e-9, atol=1e-15)
    ends = np.cumsum(rates) / rates.sum()
    for j in np.flatnonzero(rates > 0.0):
        state.v[:], expected = v, v.copy()
        expected[j] *= -1.0
        begin = ends[j - 1] if j else 0.0
        assert own.native.jump(state, ROW, 0.0, Fixed(0.5 * (begin + ends[j]))) == 0
        np.testing.assert_array_equal(state.v, expected)


def test_it_sticks_and_looks_at_single_rows():
    """No rate is above its bound on a path, with coordinates at 0 or not; frozen ones move by no flip."""
    run = pdmp.sample(process(), events=60, seed=1, initial=process().anchor)
    assert run.stats["bound_violations"] == 0 and 0 < run.stats["data_terms"] < run.stats["proposals"]
    speeds = np.abs(run.trajectories[0].velocities)
    np.testing.assert_allclose(speeds, np.broadcast_to(process().reference.sd, speeds.shape))
    sticky = pdmp.Sticky(process(), inclusion=0.5, slab_density=0.2, always=[0, 1, 3, 4, 5])
    path = pdmp.sample(sticky, events=60, seed=1, initial=process().anchor).trajectories[0]
    stands = path.velocities[:, 2] == 0.0
    assert 0.1 < stands.mean() < 0.9 and np.all(path.positions[stands, 2] == 0.0)
    assert np.all(np.abs(path.velocities[~stands, 2]) == process().reference.sd[2])


def test_groups_of_coordinates_of_a_sum_of_terms_stick():
    """They are drawn from the normal approximation that its Hessian gives, and enter and leave by looks at all rows."""
    own, g = process(), [2, 3]
    sticky = StickyGroups(own, [g], inclusion=0.5, slab_density=0.4)
    gradient, hessian = own.model.gradient_and_hessian(own.anchor)
    covariance, across = np.linalg.inv(hessian[np.ix_(g, g)]), hessian[g]
    across[:, g] = 0.0
    np.testing.assert_allclose(sticky.constant, own.anchor[g] - covariance @ gradient[g], rtol=1e-9)
    np.testing.assert_allclose(sticky.slopes, covariance @ across, rtol=1e-9, atol=1e-12)
    run = pdmp.sample(sticky, events=80, seed=1, initial=own.anchor)
    assert min(run.stats["events"][name] for name in ("flip", "birth", "death")) > 0
    assert run.stats["bound_violations"] == 0 and run.stats["data_terms"] > 2 * own.model.n_data
    together = run.trajectories[0].positions[:, g] == 0.0
    assert np.array_equal(together[:, 0], together[:, 1]) and together.any()
