"""SG-ZZ, SG-BPS and the splitting schemes: paths replayed from the same random numbers, balance, orders, bad input."""

import itertools
import math

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, SkewNormal
from pdmp.process import ADAPTING
from tests.checks import new_chain, run_chain
from tests.discrete.helpers_discretised_pdmps import skew
from tests.lattice_laws import frozen_law, noisy, plane_law, splitting_law
from tests.targets import MEAN, MODEL, PRECISION, data

pytestmark = pytest.mark.exact

PLANE = Gaussian(np.zeros(2), np.eye(2))
START = MEAN + np.array([0.6, -0.9, 1.4])
SCHEDULES = {
    "constant": (0.3, lambda k: 0.3),
    "decreasing": (discrete.schedules.polynomial(0.6, 3.0, 0.4), lambda k: 0.6 * (3.0 + k) ** -0.4),
}
#: Decreasing steps in plain Python only: compiled, each combination costs seconds.
STEPS = list(SCHEDULES) if config.DISABLE_JIT else ["constant"]


def stream(seed=5):
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def unit(z):
    return z / np.sqrt(z @ z)


def reflected(v, a):
    return unit(v - 2.0 * (v @ a) / (a @ a) * a)


# ---------------------------------------------------------------------------------------------------------------
# SG-ZZ and SG-BPS


def replay_frozen(name, steps, step, tau, refresh_rate=0.0, reflection="event"):
    """Times, kinds, positions and velocities after each look, as the papers' algorithms have them."""
    rng = stream()
    v = rng.choice([-1.0, 1.0], 3) if name == "SGZZ" else unit(rng.standard_normal(3))
    x, now, k, found = START, 0.0, 0, []
    end = step(0)
    for _ in range(steps):
        noise = tau * rng.standard_normal(3)
        g = PRECISION @ (x - MEAN) + noise
        wait, kind, flipped = math.inf, 0, None
        if name == "SGZZ":
            rates = np.maximum(v * g, 0.0)
            if rates.sum() > 0.0:
                wait, kind = rng.standard_exponential() / rates.sum(), 1
                flipped = np.searchsorted(np.cumsum(rates), rng.random() * rates.sum(), side="right")
        else:
            if v @ g > 0.0:
                wait, kind = rng.standard_exponential() / (v @ g), 1
            if refresh_rate > 0.0:
                refresh = rng.standard_exponential() / refresh_rate
                wait, kind = (refresh, 2) if refresh < wait else (wait, kind)
        if now + wait >= end:
            x, now, kind = x + (end - now) * v, end, 0
            k += 1
            end = now + step(k)
        else:
            x, now = x + wait * v, now + wait
            if name == "SGZZ":
                v = np.where(np.arange(3) == flipped, -v, v)
            elif kind == 1:
                v = reflected(v, PRECISION @ (x - MEAN) + noise if reflection == "event" else g)
            else:
                v = unit(rng.standard_normal(3))
        found.append((now, kind, x, v))
    return [np.array(column) for column in zip(*found, strict=True)]


@pytest.mark.parametrize("schedule", STEPS)
@pytest.mark.parametrize("tau", [0.0, 2.0])
@pytest.mark.parametrize(
    "name, options",
    [
        ("SGZZ", {}),
        ("SGBPS", {"refresh_rate": 0.7}),
        ("SGBPS", {"refresh_rate": 0.7, "reflection": "look"}),
        ("SGBPS", {"refresh_rate": 0.0}),
    ],
)
def test_paths_with_frozen_rates(name, options, tau, schedule):
    """A new estimate at each look; the first event at these rates, or the end of the interval."""
    given, step = SCHEDULES[schedule]
    process = getattr(discrete, name)(Noisy(MODEL, tau), given, **options)
    record = run_chain(process, START, 5, steps=80).finish()
    times, kinds, xs, vs = replay_frozen(name, 80, step, tau, **options)
    np.testing.assert_array_equal(record.kinds, kinds)
    np.testing.assert_allclose(record.times, times, rtol=1e-10)
    np.testing.assert_allclose(record.xs, xs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(record.vs, vs, rtol=1e-9, atol=1e-9)
    assert len(set(kinds)) == (3 if options.get("refresh_rate") else 2)


@pytest.mark.parametrize("name", ["SGZZ", "SGBPS"])
def test_looks_are_counted_as_steps_and_intervals_end_on_time(name):
    process = getattr(discrete, name)(Noisy(MODEL, 1.0), 0.25)
    run = pdmp.sample(process, steps=300, seed=3, initial=START)
    path = run.trajectories[0]
    events = run.stats["events"]
    assert sum(events.values()) == run.stats["total_events"] == 300
    assert events["step"] > 50 and min(events.values()) > 0
    ends = path.times[1:][path.kinds == 0]
    np.testing.assert_array_equal(ends, 0.25 * np.arange(1, events["step"] + 1))
    assert np.all(np.diff(path.times) > 0.0)
    assert run.stats["data_terms"] == 300 + events.get("bounce", 0)
    # Straight lines between the events, and no change of velocity at the end of an interval.
    s = np.diff(path.times)[:, None]
    np.testing.assert_allclose(path.positions[1:], path.positions[:-1] + s * path.velocities[:-1], atol=1e-12)
    at_ends = path.kinds == 0
    np.testing.assert_array_equal(path.velocities[1:][at_ends], path.velocities[:-1][at_ends])
    if name == "SGBPS":
        np.testing.assert_allclose(np.linalg.norm(path.velocities, axis=1), 1.0, rtol=1e-14)
    else:
        changed = (path.velocities[1:] != path.velocities[:-1]).sum(axis=1)
        np.testing.assert_array_equal(changed, ~at_ends)


def test_a_budget_of_time_ends_with_an_interval():
    run = pdmp.sample(discrete.SGZZ(Noisy(MODEL, 1.0), 0.25), time=30.0, seed=3, initial=START)
    assert run.end[0] == 30.0
    assert run.stats["events"]["step"] == 120


def test_averages_are_those_along_the_straight_lines():
    process = discrete.SGZZ(Noisy(MODEL, 1.0), 0.3)
    integrals = run_chain(process, START, 6, steps=60, store="moments").finish().integrals
    record = run_chain(process, START, 6, steps=60).finish()
    x = np.vstack([START, record.xs]) - integrals.centre
    s = np.diff(np.concatenate([[0.0], record.times]))[:, None]
    a, b = x[:-1], x[1:]
    np.testing.assert_allclose(integrals.first, np.sum(s * (a + b) / 2.0, axis=0), rtol=1e-10)
    np.testing.assert_allclose(integrals.second, np.sum(s * (a * a + a * b + b * b) / 3.0, axis=0), rtol=1e-10)


# ---------------------------------------------------------------------------------------------------------------
# Splitting schemes


def turns(name, v, g, eps):
    """All outcomes of B at the gradient g, as (probability, velocity)."""
    if name == "BPS":
        stays = math.exp(-eps * max(v @ g, 0.0))
        return [(stays, v), (1.0 - stays, reflected(v, g))]
    stays = np.exp(-eps * np.maximum(v * g, 0.0))
    outcomes = []
    for flips in itertools.product((False, True), repeat=len(v)):
        chance = np.prod(np.where(flips, 1.0 - stays, stays))
        outcomes.append((chance, np.where(flips, -v, v)))
    return outcomes


def chance_of(name, x, v, w, gradient, eps):
    """Probability that D B D leads from (x, v) to the velocity w."""
    found = [p for p, u in turns(name, v, gradient(x + 0.5 * eps * v), eps) if np.allclose(u, w, atol=1e-9)]
    return sum(found)


def acceptance(name, x, v, w, potential, gradient, eps):
    """Where D B D leads with the velocity w after B, and the probability min(1, ·) by the ratio of the two kernels."""
    y = x + 0.5 * eps * (v + w)
    there = chance_of(name, x, v, w, gradient, eps)
    back = chance_of(name, y, -w, -v, gradient, eps)
    return y, min(1.0, math.exp(potential(x) - potential(y)) * back / there)


def splitting(name, *arguments, **options):
    return {"ZigZag": discrete.ZigZagSplitting, "BPS": discrete.BPSSplitting}[name](*arguments, **options)


def replay_splitting(name, steps, step, tau, refresh_rate, adjusted):
    """Positions after each step, the last velocity, and the mean probability of acceptance."""
    rng = stream()
    v = rng.choice([-1.0, 1.0], 3) if name == "ZigZag" else unit(rng.standard_normal(3))
    x, found, accepts = START, [], []

    def potential(x):
        return 0.5 * (x - MEAN) @ PRECISION @ (x - MEAN)

    def gradient(x):
        return PRECISION @ (x - MEAN)

    def refresh(v, time):
        if refresh_rate > 0.0 and rng.random() < 1.0 - math.exp(-refresh_rate * time):
            return unit(rng.standard_normal(3))
        return v

    for k in range(steps):
        eps = step(k)
        v = refresh(v, 0.5 * eps)
        g = gradient(x + 0.5 * eps * v) + (tau * rng.standard_normal(3) if tau is not None else 0.0)
        if name == "BPS":
            turned = v @ g > 0.0 and rng.random() < 1.0 - math.exp(-eps * (v @ g))
            w = reflected(v, g) if turned else v
        else:
            w = np.array(
                [
                    -a if a * b > 0.0 and rng.random() < 1.0 - math.exp(-eps * a * b) else a
                    for a, b in zip(v, g, strict=True)
                ]
            )
        y = x + 0.5 * eps * (v + w)
        if adjusted:
            y, accept = acceptance(name, x, v, w, potential, gradient, eps)
            accepts.append(accept)
            if not rng.random() < accept:
                y, w = x, -v
        x, v = y, refresh(w, 0.5 * eps)
        found.append(x)
    return np.array(found), v, np.mean(accepts) if adjusted else None


@pytest.mark.parametrize("schedule", STEPS)
@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("name, refresh_rate", [("ZigZag", 0.0), ("BPS", 0.7), ("BPS", 0.0)])
def test_paths_of_the_splitting_schemes(name, refresh_rate, adjusted, schedule):
    """D B D and R D B D R; the acceptance by the ratio of the kernels, listed, not by the package's formula."""
    given, step = SCHEDULES[schedule]
    if adjusted:  # large steps, or nothing is ever rejected
        given, step = (2.4, lambda k: 2.4) if schedule == "constant" else (given, step)
    options = {} if name == "ZigZag" else {"refresh_rate": refresh_rate}
    provider = Full(MODEL) if adjusted else Noisy(MODEL, 1.5)
    process = splitting(name, provider, given, adjusted=adjusted, **options)
    chain = run_chain(process, START, 5, steps=80)
    record = chain.finish()
    xs, v, accept = replay_splitting(name, 80, step, None if adjusted else 1.5, refresh_rate, adjusted)
    np.testing.assert_allclose(record.times, np.cumsum([step(k) for k in range(80)]), rtol=1e-12)
    np.testing.assert_allclose(record.xs, xs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(chain.state.v, v, rtol=1e-9, atol=1e-9)
    assert ("mean_acceptance" in record.statistics) is adjusted
    if adjusted:
        assert record.statistics["mean_acceptance"] == pytest.approx(accept, rel=1e-10)
        rejected = np.all(np.diff(xs, axis=0) == 0.0, axis=1).sum()
        assert rejected > 5 or schedule == "decreasing"


def quartic(x):
    """A potential that is not quadratic, and its gradient."""
    a = np.array([[1.0, 0.6], [0.6, 1.5]]) @ x
    return 0.5 * x @ a + 0.1 * x[0] ** 4 + 0.2 * x[0] * x[1] ** 2 + 0.3 * x[1] ** 4, a + np.array(
        [0.4 * x[0] ** 3 + 0.2 * x[1] ** 2, 0.4 * x[0] * x[1] + 1.2 * x[1] ** 3]
    )


@pytest.mark.parametrize("name", ["ZigZag", "BPS"])
def test_the_adjusted_kernels_are_in_skew_detailed_balance(name):
    """π(x) P(x, v → x', v') = π(x') P(x', -v' → x, -v), and ℓ is the logarithm of the ratio.

    A rejection, from (x, v) to (x, -v), is its own reversal.
    """
    rng = np.random.default_rng(8)
    eps, moved, refused = 0.9, 0, 0
    for _ in range(200):
        x = rng.standard_normal(2)
        v = rng.choice([-1.0, 1.0], 2) if name == "ZigZag" else unit(rng.standard_normal(2))

        def potential(x):
            return quartic(x)[0]

        def gradient(x):
            return quartic(x)[1]

        for p, w in turns(name, v, gradient(x + 0.5 * eps * v), eps):
            if p < 1e-6:  # whose ratio has lost its digits
                continue
            y, accept = acceptance(name, x, v, w, potential, gradient, eps)
            forward = math.exp(-potential(x)) * p * accept
            _, accept_back = acceptance(name, y, -w, -v, potential, gradient, eps)
            backward = math.exp(-potential(y)) * chance_of(name, y, -w, -v, gradient, eps) * accept_back
            assert forward == pytest.approx(backward, rel=1e-12, abs=1e-300)
            ell = potential(x) - potential(y) + gradient(x + 0.5 * eps * v) @ (y - x)
            assert accept == pytest.approx(min(1.0, math.exp(ell)), rel=1e-10)
            moved += accept > 0.999
            refused += accept < 0.9
    assert moved > 50 and refused > 50


def test_nothing_is_rejected_on_a_gaussian_with_independent_coordinates():
    model = Gaussian([1.0, -1.0, 0.0], [0.5, 2.0, 1.0])
    chain = run_chain(discrete.ZigZagSplitting(Full(model), 0.8, adjusted=True), np.zeros(3), 2, steps=300)
    assert chain.finish().statistics["mean_acceptance"] == pytest.approx(1.0, abs=1e-12)


def test_acceptance_is_counted_after_the_warm_up():
    process = discrete.ZigZagSplitting(Full(MODEL), 0.9, adjusted=True)
    assert math.isnan(new_chain(process, START, 5, steps=10, warmup=0.5).finish().statistics["mean_acceptance"])
    chain = run_chain(process, START, 5, steps=40, warmup=0.25)
    assert chain.state.memory.counted_steps[0] == 30.0


# ---------------------------------------------------------------------------------------------------------------
# Orders in the step, by the laws that the Monte Carlo tests compare with


SKEW = SkewNormal(3.0)
TARGETS = {"normal": (lambda x: x, 0.0, 1.0), "skew-normal": (skew, SKEW.exact_mean, SKEW.exact_variance)}


def slope(law, truth, steps):
    errors = [abs(law(eps) - truth) for eps in steps]
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tau, refresh_rate", [(0.0, 0.0), (0.0, 0.5), (3.0, 0.0), (3.0, 0.5)])
def test_frozen_rates_are_of_first_order(target, tau, refresh_rate):
    gradient, mean, variance = TARGETS[target]

    def law(eps):
        return frozen_law(noisy(gradient, tau), eps, refresh_rate, mean, 7.0, cells=4)[1]

    assert slope(law, variance, [0.2, 0.1, 0.05]) == pytest.approx(1.0, abs=0.15)
    assert abs(2.0 * law(0.05) - law(0.1) - variance) < 0.15 * abs(law(0.1) - variance)  # the target is the limit


def test_the_splitting_schemes_are_of_second_order_and_of_first_with_noise():
    gradient, mean, variance = TARGETS["skew-normal"]
    steps = [0.4, 0.2, 0.1]
    for refresh_rate in (0.0, 0.5):
        for which, truth in ((0, mean), (1, variance)):

            def law(eps, which=which, refresh_rate=refresh_rate, tau=0.0):
                return splitting_law(noisy(gradient, tau), eps, refresh_rate, mean, 7.0)[which]

            assert slope(law, truth, steps) == pytest.approx(2.0, abs=0.15)
        with_noise = slope(lambda eps: law(eps, tau=3.0), variance, [0.1, 0.05, 0.025])
        assert with_noise == pytest.approx(1.0, abs=0.15)


def test_the_zig_zag_scheme_has_no_error_on_a_gaussian_but_that_of_its_lattice():
    for eps in (1.0, 0.5, 0.25):
        x = 0.3 + eps * np.arange(-40, 41)
        p = np.exp(-(x**2)) / np.exp(-(x**2)).sum()
        mean, variance = splitting_law(noisy(lambda x: 2.0 * x, 0.0), eps, middle=0.3)
        assert mean == pytest.approx(p @ x, abs=1e-9)
        assert variance == pytest.approx(p @ (x - p @ x) ** 2, abs=1e-9)
        assert abs(variance - 0.5) < (2e-3 if eps == 1.0 else 1e-9)
    precision = np.array([[1.0, 0.6], [0.6, 1.5]])
    np.testing.assert_allclose(plane_law(precision, 0.0, 0.8, 8.0), np.linalg.inv(precision), atol=1e-6)


def test_the_errors_that_the_documentation_states():
    """On N(0, 1): ε/√(2π) from late turns, and ετ/√(2π) from noise far above the gradient."""
    eps = 0.02
    late = frozen_law(noisy(lambda x: x, 0.0), eps, reach=6.0, cells=4)[1] - 1.0
    assert late / eps == pytest.approx(1.0 / math.sqrt(2.0 * math.pi), rel=0.05)
    for law in (lambda g: frozen_law(g, eps, reach=6.0, cells=2), lambda g: splitting_law(g, eps, reach=6.0)):
        noise = law(noisy(lambda x: x, 6.0))[1] - 1.0
        assert noise / eps == pytest.approx(6.0 / math.sqrt(2.0 * math.pi), rel=0.1)


# ---------------------------------------------------------------------------------------------------------------
# Bad input


def test_adjusted_steps_need_the_exact_gradient():
    model = data()
    for provider in (Minibatch(model, 2), ControlVariate(model, 2), Noisy(model, 1.0)):
        for cls in (discrete.ZigZagSplitting, discrete.BPSSplitting):
            with pytest.raises(TypeError, match="adjusted=True needs the exact gradient"):
                cls(provider, 0.1, adjusted=True)
            cls(provider, 0.1)


@pytest.mark.parametrize("name", ["SGZZ", "SGBPS", "ZigZagSplitting", "BPSSplitting"])
def test_slips_are_one_line(name):
    cls = getattr(discrete, name)
    for step in (0.0, -0.1, math.inf, math.nan):
        with pytest.raises(ValueError, match="`step` must be positive and finite"):
            cls(MODEL, step)
    with pytest.raises(TypeError, match="`step`"):
        cls(MODEL, "large")
    with pytest.raises(TypeError, match="`provider` must be"):
        cls("model", 0.1)
    if "BPS" in name:
        for rate in (-1.0, math.nan, "never"):
            with pytest.raises(ValueError, match="`refresh_rate` must be a finite number, at least 0"):
                cls(MODEL, 0.1, refresh_rate=rate)
    if name == "SGBPS":
        with pytest.raises(ValueError, match="`reflection` must be one of 'event', 'look', got 'tick'"):
            cls(MODEL, 0.1, reflection="tick")
    if "Splitting" in name:
        with pytest.raises(TypeError, match="`adjusted` must be True or False, got 'yes'"):
            cls(MODEL, 0.1, adjusted="yes")


def test_the_automatic_refreshment_is_that_of_the_continuous_process():
    for cls in (discrete.SGBPS, discrete.BPSSplitting):
        rate = cls(MODEL, 0.1).resolve(MEAN).refresh_rate
        assert rate == pdmp.BPS(MODEL).resolve(MEAN).refresh_rate
        assert rate == pytest.approx(0.1 * math.sqrt(4.5 / 3.0 / (2.0 * math.pi)), rel=0.3)
    assert discrete.SGBPS(MODEL, 0.1, refresh_rate=0.0).resolve(MEAN).refresh_rate == 0.0


@pytest.mark.parametrize("name", ["SGZZ", "ZigZagSplitting"])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # of plain Python's numbers
def test_a_gradient_that_is_not_finite_stops_the_chain(name):
    chain = new_chain(getattr(discrete, name)(Noisy(Gaussian(0.0, [1e300]), 0.0), 1e10), [1.0], 1, steps=100).advance()
    assert "not finite" in chain.failure[0] and f"{name} diverged at step" in chain.failure[0]


def test_a_potential_that_is_not_a_number_is_a_failure():
    process = discrete.ZigZagSplitting(PLANE, 0.5, adjusted=True)
    memory = process.memory(np.zeros(2), np.random.default_rng(1))
    memory.potential[0] = math.nan
    assert not process.adjust(np.zeros(2), np.ones(2), memory, np.random.default_rng(1), np.zeros(20, np.int64))
    assert (memory.counted_steps[0], memory.acceptance_sum[0]) == (0.0, 0.0)


def test_a_step_to_where_the_density_is_zero_is_rejected_and_counted():
    half = pdmp.models.from_function(
        lambda x: (x.sum() if np.all(x > 0.0) else math.inf, np.ones(2)), 2, initial=[1.0, 2.0]
    )
    process = discrete.ZigZagSplitting(half, 0.5, adjusted=True)
    memory = process.memory(np.ones(2), np.random.default_rng(1))
    memory.potential[0], memory.start_position[:], memory.start_velocity[:] = 0.3, [0.1, 0.2], [-1.0, 1.0]
    for k, adapting in enumerate((0, 0, 1)):
        x, v, counts = np.array([-0.4, 0.7]), np.array([-1.0, -1.0]), np.zeros(20, np.int64)
        counts[ADAPTING] = adapting
        assert process.adjust(x, v, memory, np.random.default_rng(1), counts)
        assert (*x, *v) == (0.1, 0.2, 1.0, -1.0) and memory.potential[0] == 0.3
        assert memory.outside[0] == k + 1 and memory.acceptance_sum[0] == 0.0
        assert memory.counted_steps[0] == min(k + 1, 2)  # after the warm-up


def test_a_bounce_in_a_gradient_that_is_not_finite_is_a_failure():
    process = discrete.SGBPS(PLANE, 0.5)
    memory = process.memory(np.zeros(2), np.random.default_rng(1))
    memory.kind[0] = 1
    x, v = np.array([math.nan, 0.0]), np.array([0.0, 1.0])
    assert not process.event(x, v, memory, np.random.default_rng(1), np.zeros(20, np.int64))
