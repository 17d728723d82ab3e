"""Rates of events and bounds against theory, times between events, correlations, temperatures."""

import math

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import (
    acf,
    bounce_rate,
    bounds,
    configurational_temperature,
    event_rates,
    flip_rates,
    gaussian_bounce_rate,
    gaussian_flip_rates,
    integrated_time,
)
from pdmp.diagnostics.monte_carlo_error import standard_error
from pdmp.models import Gaussian
from tests.toys import Telegraph, Ticks

PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
MODEL = Gaussian(np.zeros(3), PRECISION)


# -- rates ----------------------------------------------------------------------------------------------------------


@pytest.mark.exact
def test_rates_on_a_normal_law():
    assert gaussian_bounce_rate([2.5] * 4) == pytest.approx(math.sqrt(2.5 / (2.0 * math.pi)), rel=1e-8)
    assert gaussian_bounce_rate([3.0]) == pytest.approx(math.sqrt(3.0 / (2.0 * math.pi)), rel=1e-8)
    rng = np.random.default_rng(1)
    v = rng.standard_normal((400_000, 3))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    by_hand = np.sqrt(np.einsum("ij,jk,ik->i", v, PRECISION, v) / (2.0 * math.pi))
    assert gaussian_bounce_rate(PRECISION) == pytest.approx(by_hand.mean(), abs=6.0 * by_hand.std() / math.sqrt(4e5))
    np.testing.assert_allclose(gaussian_flip_rates(PRECISION), np.sqrt(np.diag(PRECISION) / (2.0 * math.pi)))
    # From draws, for any model.
    x = rng.standard_normal((1, 4_000, 3)) @ np.linalg.cholesky(np.linalg.inv(PRECISION)).T
    found = bounce_rate(MODEL, x)
    assert abs(found.value - gaussian_bounce_rate(PRECISION)) < 5.0 * found.error < 0.06
    found = flip_rates(MODEL, x)
    assert np.all(np.abs(found.value - gaussian_flip_rates(PRECISION)) < 5.0 * found.error)
    assert np.all(found.error < 0.02)


@pytest.mark.release  # counts are compared below, rates of clocks by tests/statistics/test_events.py
def test_bounces_and_flips_come_at_their_rates():
    run = pdmp.sample(pdmp.BPS(MODEL, refresh_rate=0.3), time=12_000.0, chains=2, warmup=0.01, seed=2)
    found = event_rates(run)
    for name, truth in (("bounce", gaussian_bounce_rate(PRECISION)), ("refresh", 0.3)):
        assert abs(found[name].value - truth) < 5.0 * found[name].error < 0.03
    assert found["refresh"].error == pytest.approx(math.sqrt(0.3 / 23_760.0), rel=0.25)  # a Poisson process
    run = pdmp.sample(pdmp.ZigZag(MODEL), time=4_000.0, warmup=0.01, seed=3)
    found = event_rates(run)["flip"]
    assert abs(found.value - gaussian_flip_rates(PRECISION).sum()) < 5.0 * found.error < 0.06


@pytest.mark.exact
def test_rates_count_after_the_warmup_only():
    run = pdmp.sample(Telegraph(), time=80.0, warmup=0.5, chains=2, seed=1)
    counts = [np.sum(p.times > 40.0) for p in run.trajectories]
    found = event_rates(run)
    assert sum(e.value for e in found.values()) == pytest.approx(sum(counts) / 80.0)
    # Without a skeleton they are those of the whole run, 160 of time.
    moments = event_rates(pdmp.sample(Telegraph(), time=80.0, warmup=0.5, chains=2, seed=1, store="moments"))
    every = np.concatenate([p.kinds for p in run.trajectories])
    assert {name: e.value for name, e in moments.items()} == {
        name: pytest.approx(np.sum(every == k) / 160.0) for k, name in enumerate(("first", "second"))
    }
    assert all(math.isnan(e.error) for e in moments.values())
    for k, kind in enumerate(("first", "second")):
        late = sum(np.sum((p.kinds == k) & (p.times[1:] > 40.0)) for p in run.trajectories)
        assert found[kind].value == pytest.approx(late / 80.0)
    with pytest.raises(AttributeError, match="time_between was left out"):
        pdmp.diagnostics.time_between  # noqa: B018


@pytest.mark.exact
def test_errors_of_rates_are_those_of_counts_in_stretches():
    """Of a chain one stretch for each eight events after the warm-up: at 1,300 of them more than a hundred."""
    run = pdmp.sample(Telegraph(), events=1_700, warmup=0.25, chains=2, seed=2)
    found, series, each, lengths = event_rates(run), [], [], []
    for path in run.trajectories:
        n = np.sum(path.times > path.warmup) // 8
        ends = path.warmup + (path.end - path.warmup) / n * np.arange(n + 1.0)
        counts = [np.diff(np.searchsorted(path.times[1:][path.kinds == k], ends, side="right")) for k in (0, 1)]
        lengths.append(path.end - path.warmup)
        each.append(lengths[-1] / n)
        series.append(np.array(counts).T / each[-1])
        assert n > 140
    np.testing.assert_allclose([e.error for e in found.values()], standard_error(series, each, lengths, together=1))


# -- bounds ---------------------------------------------------------------------------------------------------------


class Loose(pdmp.Process):
    """A telegraph process of rate 1 under a bound of 4, or of 0.8."""

    bound: float
    events = ("switch",)
    exact_bounds = False

    def __init__(self, bound):
        super().__init__(dim=1)
        self.bound = bound

    @pdmp.compiled
    def clock(self, state, i, now, rng):
        return now + rng.standard_exponential() / self.bound, self.bound

    @pdmp.compiled
    def rate(self, state, i, now, rng):
        return 1.0

    @pdmp.compiled
    def jump(self, state, i, now, rng):
        state.v[0] = -state.v[0]
        return 0

    def velocity(self, x, rng):
        return np.ones(1)


@pytest.mark.exact
def test_the_acceptance_of_bounds():
    run = pdmp.sample(Loose(4.0), initial=[0.0], proposals=4_000, seed=4)
    found = bounds(run)
    assert found["acceptance"] == pytest.approx(run.stats["total_events"] / 4_000)
    assert abs(found["acceptance"] - 0.25) < 0.04
    assert found["violations"] == found["missed"] == found["path_distance"] == found["law_distance"] == 0.0
    without = bounds(pdmp.sample(Ticks(), steps=50, seed=1))
    assert math.isnan(without["acceptance"]) and without["violation_rate"] == 0.0


@pytest.mark.exact
def test_what_violated_bounds_missed():
    """At a rate of 1 under a bound of 0.8, 0.2 of the events are missed in each unit of time."""
    run = pdmp.sample(Loose(0.8), initial=[0.0], time=1_000.0, chains=2, seed=5)
    found = bounds(run)
    assert found["violation_rate"] == 1.0 and found["violations"] == run.stats["total_events"]
    assert found["missed"] == pytest.approx(0.25 * run.stats["total_events"])
    assert abs(found["missed"] - 0.2 * 2_000.0) < 6.0 * 0.25 * math.sqrt(1_600.0)
    assert found["path_distance"] == pytest.approx(1.0)
    late = pdmp.sample(Loose(0.8), initial=[0.0], time=1_000.0, warmup=0.6, chains=2, seed=5)
    found = bounds(late)  # missed all along the path, 2,000 long, of which 800 have the variance and its error
    correlation = late.mcse()[0] ** 2 * 800.0 / late.var()[0]
    assert found["law_distance"] == pytest.approx(found["missed"] / 2_000.0 * correlation) and correlation > 0.0
    short = bounds(pdmp.sample(Loose(0.8), initial=[0.0], events=4, chains=2, seed=5))
    assert short["path_distance"] == pytest.approx(1.0 - math.exp(-0.25 * 8 / 2))
    assert "exceeded their bound, the largest by 25 %" in repr(run.summary())


# -- correlations -----------------------------------------------------------------------------------------------------


@pytest.mark.exact
def test_correlations_along_the_widest_and_the_narrowest_direction():
    """SGLD on a normal law, one step a draw: ρ = 1 - γλ along each eigenvector, and one look at the data a step."""
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    model = Gaussian([0.0, 0.0], turn @ np.diag([0.5, 4.0]) @ turn.T)
    run = pdmp.sample(discrete.SGLD(model, step=0.2), steps=20_000, seed=6)
    found = acf(run, lags=6, draws=20_000)
    np.testing.assert_allclose(np.abs(found["directions"] @ turn), np.eye(2), atol=0.05)
    truth = np.array([0.9, 0.2])[:, None] ** np.arange(6)
    np.testing.assert_allclose(found["acf"], truth, atol=0.06)
    np.testing.assert_allclose(found["time"], 0.2 * np.arange(6))
    np.testing.assert_allclose(found["data_passes"], np.arange(6), rtol=1e-3)
    x = run.draws(20_000)[:, :, 0]
    z = x[0] - x.mean()
    direct = [np.mean(z[: len(z) - k] * z[k:]) for k in range(10_000)]
    along = acf(run, lags=10_000, directions=[[1.0, 0.0]], draws=20_000)["acf"][0]
    np.testing.assert_allclose(along, np.array(direct) / direct[0], atol=1e-10)
    other = acf(run, lags=3, directions=[[1.0, 0.0]], draws=5_000)
    assert other["acf"].shape == (1, 3) and other["acf"][0, 0] == 1.0
    three = pdmp.sample(discrete.SGLD(Gaussian(np.zeros(3), [1.0, 0.2, 4.0]), step=0.2), steps=2_000, seed=6)
    widest = np.abs(acf(three, lags=2, draws=2_000)["directions"])
    np.testing.assert_allclose(widest, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], atol=0.2)
    with pytest.raises(ValueError, match="`directions` must be rows of 2"):
        acf(run, directions=[[0.0, 0.0]])
    with pytest.raises(ValueError, match="`lags`"):
        acf(run, lags=3_000, draws=5_000)


@pytest.mark.exact
def test_what_has_not_moved_has_no_correlation_and_this_is_told_once():
    """A descent whose first coordinate is at the mode."""
    run = pdmp.sample(discrete.GD(Gaussian([0.0, 0.0], [1.0, 1.0]), 0.1), steps=40, initial=[0.0, 1.0], seed=1)
    with pytest.warns() as told:
        found = acf(run, lags=3, directions=np.eye(2)[[1, 0]], draws=40)["acf"]
    assert [str(w.message) for w in told] == ["nothing moved along directions [1]: they have no correlation."]
    assert np.all(np.isnan(found[1])) and np.all(found[0] > 0.0) and found[0, 0] == 1.0


@pytest.mark.exact
def test_few_draws_have_no_widest_direction():
    run = pdmp.sample(discrete.SGLD(Gaussian(np.zeros(30), np.ones(30)), step=0.1), steps=100, seed=6)
    with pytest.raises(ValueError, match="20 draws in 30 dimensions have no widest and no narrowest direction"):
        acf(run, lags=5, draws=20)
    with pytest.raises(ValueError, match="30 draws in 30 dimensions"):
        acf(run, lags=5, draws=30)
    assert acf(run, lags=5, draws=31)["acf"].shape == (2, 5)


@pytest.mark.exact
def test_integrated_times():
    """Of ρᵏ: (1 + ρ) / (1 - ρ); what follows the first pair that is not positive is noise, whatever comes then."""
    k = np.arange(400)
    noise = np.r_[-1e-12, 0.0, 5.0, 5.0]
    np.testing.assert_allclose(integrated_time(np.r_[0.9**k, noise]), 19.0, rtol=1e-10)
    many = np.stack([np.r_[rho**k, noise] for rho in (0.5, -0.5, 0.0)])
    np.testing.assert_allclose(integrated_time(many), [3.0, 1.0 / 3.0, 1.0], rtol=1e-10)
    assert integrated_time([1.0, 0.5, 0.5, -0.6, 9.0]) == 2.0  # a lag without a neighbour is left out
    assert np.isnan(integrated_time([1.0, np.nan, 0.0, -1.0])) and np.shape(integrated_time(many[:, None])) == (3, 1)
    with pytest.warns(UserWarning, match="take more lags"):
        assert integrated_time([1.0, 0.5, 0.25, 0.125]) == 2.75
    with pytest.raises(ValueError, match="two lags or more"):
        integrated_time([1.0])


# -- temperatures ---------------------------------------------------------------------------------------------------


@pytest.mark.exact
@pytest.mark.parametrize("form", ["virial", "gradient"])
def test_the_configurational_temperature(form):
    """Of draws from π^(1/T) it is T, wherever the mean is."""
    rng = np.random.default_rng(7)
    model = Gaussian([50.0, 0.0, 0.0], PRECISION)
    x = rng.standard_normal((2, 1_000, 3)) @ np.linalg.cholesky(np.linalg.inv(PRECISION)).T
    for temperature in (1.0, 1.5):
        found = configurational_temperature(model, [50.0, 0.0, 0.0] + math.sqrt(temperature) * x, form)
        assert abs(found.value - temperature) < 5.0 * found.error < 0.35
    if form == "gradient":  # of U = Σ (x / s)⁴ / 4 of several scales, whose Laplacian is Σ 3 x² / s⁴
        s = np.array([1e-5, 1.0, 1e4])
        slopes = pdmp.models.from_function(
            lambda x: (0.25 * float(np.sum((x / s) ** 4)), x**3 / s**4), 3, check_gradient=False
        )
        z = x[:, :16]
        expected = np.sum((z**3 / s) ** 2) / np.sum(3.0 * z**2 / s**2)
        assert configurational_temperature(slopes, z * s, form).value == pytest.approx(expected, rel=1e-5)
    few = x[:, :20].reshape(40, 3)
    gradients = few @ PRECISION
    virial = np.sum((few - few.mean(axis=0)) * gradients) / (39 * 3)
    expected = virial if form == "virial" else np.sum(gradients**2) / 40 / np.trace(PRECISION)
    found = configurational_temperature(model, [50.0, 0.0, 0.0] + x[:, :20], form)
    assert found.value == pytest.approx(expected, rel=1e-6)


@pytest.mark.exact
def test_a_summary_says_that_the_noise_of_the_gradient_heats():
    model = Gaussian([0.0, 0.0], [1.0, 1.0])
    hot = discrete.SGLD(pdmp.gradients.Noisy(model, 10.0), step=0.05)  # 1 + γV/2 = 3.5
    run = pdmp.sample(hot, steps=3_000, warmup=0.1, seed=8)
    assert abs(configurational_temperature(model, run.draws(500)).value - 3.5) < 1.5
    assert "too large for the noise of the gradient" in repr(run.summary())
    cold = pdmp.sample(discrete.SGLD(model, step=0.05), steps=3_000, warmup=0.1, seed=8)
    assert "temperature" not in repr(cold.summary())


@pytest.mark.exact
def test_a_summary_knows_the_temperature_that_was_asked_for():
    """Of 2 and more of a half; one that changes is compared with nothing, nor is a descent."""
    model = Gaussian([0.0, 0.0], [1.0, 1.0])

    def warnings(temperature, noise):
        provider = pdmp.gradients.Noisy(model, noise) if noise else model
        sampler = discrete.SGLD(provider, step=0.05, temperature=temperature)
        return pdmp.sample(sampler, steps=3_000, warmup=0.1, seed=8).summary().warnings

    assert not any("temperature" in text for text in warnings(2.0, 0.0) + warnings(0.5, 0.0))
    (said,) = (text for text in warnings(0.5, 5.0) if "temperature" in text)  # T + γV/2 is 1.1: below 1.3
    assert "where it should be 0.5: " in said
    assert not any("temperature" in text for text in warnings(discrete.schedules.Polynomial(3.0, 1.0, 0.1), 10.0))
    assert not any("temperature" in text for text in warnings(0.0, 10.0))


# -- bad input --------------------------------------------------------------------------------------------------------

CASES = {
    "precision": (lambda: gaussian_bounce_rate([[1.0, 0.0], [0.5, 1.0]]), "`precision`"),
    "negative": (lambda: gaussian_flip_rates([-1.0]), "`precision`"),
    "draws": (lambda: bounce_rate(MODEL, np.zeros((20, 2))), "`draws` must have 3 coordinates"),
    "form": (lambda: configurational_temperature(MODEL, np.zeros((40, 3)), "rugh"), "`form`"),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_line(name):
    make, message = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
