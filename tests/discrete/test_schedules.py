"""Step schedules: their formulas, what is refused, and which sums are recognised as finite."""

import math
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from discrete import preconditioners, schedules
from discrete.schedules import Halved, Repeated, Schedule, as_schedule, as_temperature
from discrete.tick import name_smaller
from pdmp.gradients import Noisy
from pdmp.models import Gaussian
from tests.checks import run_chain

pytestmark = pytest.mark.exact

MODEL = Gaussian([1.0, -1.0], [1.0, 2.0])
NOISY = Noisy(MODEL, 0.5)


class Formula(Schedule):
    """Any function of k, in plain Python."""

    def __init__(self, function):
        self.function = function

    def step(self, k):
        return self.function(k)


@pytest.mark.parametrize("k", [0, 1, 7, 1000])
def test_formulas(k):
    assert schedules.constant(0.3).step(k) == 0.3
    assert schedules.polynomial(0.3, 2.0, 0.6).step(k) == pytest.approx(0.3 * (2.0 + k) ** -0.6, rel=1e-14)
    assert schedules.power(0.3, 0.6).step(k) == pytest.approx(0.3 / (k + 1) ** 0.6, rel=1e-14)
    cosine = 0.15 * (math.cos(math.pi * (k % 8) / 8) + 1.0)
    assert schedules.cyclical(0.3, 8).step(k) == pytest.approx(cosine, rel=1e-12)
    assert schedules.cyclical(0.3, 8, 0.25).step(k) == pytest.approx(cosine, rel=1e-12)
    assert Halved(schedules.power(0.3, 0.6)).step(k) == pytest.approx(0.15 / (k // 2 + 1) ** 0.6, rel=1e-14)
    assert Repeated(schedules.power(0.3, 0.6)).step(k) == pytest.approx(0.3 / (k // 2 + 1) ** 0.6, rel=1e-14)


def test_a_cycle_falls_from_the_whole_step_and_stays_positive():
    steps = np.array([schedules.cyclical(0.3, 50).step(k) for k in range(150)])
    assert steps[0] == steps[50] == steps[100] == 0.3
    assert np.all(np.diff(steps[:50]) < 0.0) and steps.min() > 0.0
    assert steps[:50].mean() == pytest.approx(0.15 * (1.0 + 1.0 / 50))


@pytest.mark.parametrize("exploration, quiet", [(0.0, 0), (0.01, 1), (0.3, 3), (0.25, 3), (0.99, 9)])
def test_the_first_part_of_a_cycle_explores(exploration, quiet):
    schedule = schedules.cyclical(0.3, 10, exploration)
    assert [schedule.explores(k) for k in range(20)] == 2 * [k < quiet for k in range(10)]
    assert schedule.exploring is (quiet > 0)


def test_a_part_of_a_cycle_that_is_whole_steps_is_not_rounded_up():
    schedule = schedules.cyclical(0.3, 25, 0.28)  # 0.28 * 25 is above 7 by rounding alone
    assert [schedule.explores(k) for k in (6, 7)] == [True, False]


INFINITE = {
    "constant": lambda k: 0.1,
    "1/k": lambda k: 1.0 / (1.0 + k),
    "late 1/k": lambda k: 1.0 / (1e7 + k),
    "1/(k log k)": lambda k: 1.0 / ((2.0 + k) * math.log(2.0 + k)),
    "cycles": schedules.cyclical(0.1, 77, 0.2).step,
    "stairs": lambda k: 2.0 ** -math.floor(math.log2(1.0 + k)),
}
FINITE = {
    "k^-1.05": lambda k: (1.0 + k) ** -1.05,
    "late k^-1.1": lambda k: (1e4 + k) ** -1.1,
    "k^-2": lambda k: (1.0 + k) ** -2.0,
    "slow geometric": lambda k: 0.1 * math.exp(-1e-5 * k),
    "very slow geometric": lambda k: 0.1 * math.exp(-1e-11 * k),
}


@pytest.mark.parametrize("name", INFINITE)
def test_infinite_sums_pass(name):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        as_schedule(Formula(INFINITE[name]))
    assert [str(warning.message) for warning in said] == []


@pytest.mark.parametrize("name", FINITE)
def test_finite_sums_are_a_warning(name):
    with pytest.warns(UserWarning, match="`step`.*Formula have a finite sum"):
        as_schedule(Formula(FINITE[name]))


def test_a_finite_sum_is_told_once():
    with pytest.warns(UserWarning, match="finite sum"):
        slow = schedules.power(0.1, 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discrete.SGLD(MODEL, slow)


BAD = {
    "negative late": (lambda: as_schedule(Formula(lambda k: 0.1 - 1e-6 * k)), "`step`.*at step 1000000"),
    "infinite early": (lambda: as_schedule(Formula(lambda k: math.inf)), "`step`.*inf at step 0"),
    "power C": (lambda: schedules.power(0.0, 0.5), "`C`.*0.0"),
    "power s": (lambda: schedules.power(0.1, -0.5), "`s`.*-0.5"),
    "cyclical step": (lambda: schedules.cyclical(-1.0, 10), "`step`.*-1.0"),
    "cyclical step of text": (lambda: schedules.cyclical("x", 10), "`step` must be a positive number, got 'x'"),
    "cyclical exploration of text": (
        lambda: schedules.cyclical(0.1, 5, "x"),
        "`exploration` must be a number in .0, 1., got 'x'",
    ),
    "beyond all floats": (lambda: schedules.polynomial(10**400), "`a` must be a positive number, got "),
    "cyclical length": (lambda: schedules.cyclical(0.1, 0), "`length`.*0"),
    "cyclical length not whole": (lambda: schedules.cyclical(0.1, 2.5), "`length`.*2.5"),
    "all exploration": (lambda: schedules.cyclical(0.1, 10, 1.0), "`exploration`.*1.0"),
    "temperature": (lambda: as_temperature(-0.5), "`temperature`.*-0.5"),
    "temperature nan": (lambda: as_temperature(math.nan), "`temperature`.*nan"),
    "temperature late": (lambda: as_temperature(Formula(lambda k: 1.0 - 0.01 * k)), "`temperature`.*at step 1000"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_schedules(name):
    make, message = BAD[name]
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", [0, 1, 10, 1_000, 1_000_000])
def test_single_steps_that_are_wrong(place):
    for value in (0.0, -0.1, math.nan, math.inf):
        only = Formula(lambda k, value=value: value if k == place else 0.1)
        with pytest.raises(ValueError, match=f"^`size` must be .* its schedule gives {value} at step {place}\\.$"):
            as_schedule(only, "size")
        if value == 0.0:
            assert as_temperature(only) is only
        else:
            with pytest.raises(ValueError, match=f"^`temperature` .* got {value} at step {place}\\.$"):
                as_temperature(only)


def test_the_least_step_and_others_at_a_limit():
    assert as_schedule(schedules.LEAST_STEP).step(3) == schedules.LEAST_STEP == 1e-75
    with pytest.raises(ValueError, match="^`size` is too small to compute with, got 9.9e-76; the least is 1e-75"):
        as_schedule(9.9e-76, "size")
    for wrong in (0.0, -1e-80, math.nan, math.inf, 10**400):
        with pytest.raises(ValueError, match="^`size` must be positive and finite, got "):
            as_schedule(wrong, "size")
    assert as_schedule("auto").error == 0.1 and schedules.automatic(0.3).error == 0.3
    for wrong in (1.0, True, "0.5"):
        with pytest.raises(ValueError, match="`error` of an automatic step must lie in"):
            schedules.automatic(wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the sum of 1 / k is infinite
        assert schedules.polynomial(0.2, kappa=1.0).step(1) == 0.1 == schedules.power(0.2, 1.0).step(1)
    with pytest.warns(UserWarning, match="^polynomial steps with kappa=1.001 > 1 have a finite sum"):
        schedules.polynomial(0.2, kappa=1.001)
    with pytest.warns(UserWarning, match=r"^steps C / \(k \+ 1\)\^s with s=1.001 > 1 have a finite sum"):
        schedules.power(0.2, 1.001)


def test_temperatures_may_be_zero_and_must_be_numbers():
    assert as_temperature(0.0).step(5) == 0.0
    for wrong in ("hot", True, [1.0, 2.0]):
        with pytest.raises(TypeError, match="`temperature`"):
            as_temperature(wrong)


# ---------------------------------------------------------------------------------------------------------------
# Exploration: no noise, and time stands still


def test_exploration_adds_no_noise_and_takes_no_time():
    schedule = schedules.cyclical(0.2, 5, 0.4)
    record = run_chain(discrete.SGLD(Noisy(MODEL, 0.5), schedule), [0.0, 0.0], 3, steps=20).finish()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(3)))
    x, now = np.zeros(2), 0.0
    for k in range(20):
        gamma, quiet = 0.1 * (math.cos(math.pi * (k % 5) / 5) + 1.0), k % 5 < 2
        xi = rng.standard_normal(2)
        gradient = np.array([1.0, 2.0]) * (x - [1.0, -1.0]) + 0.5 * rng.standard_normal(2)
        x = x - gamma * gradient + (0.0 if quiet else math.sqrt(2.0 * gamma)) * xi
        now += 0.0 if quiet else gamma
        np.testing.assert_allclose(record.xs[k], x, rtol=1e-11)
        assert record.times[k] == pytest.approx(now, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("store", ["skeleton", "grid", "moments"])
def test_runs_cope_with_time_that_stands_still(store):
    """Averages are those of the states that do not explore, each with its step."""
    schedule = schedules.cyclical(0.2, 10, 0.35)
    process = discrete.SGLD(Noisy(MODEL, 0.5), schedule)
    options = {"draws": 20} if store == "grid" else {}
    run = pdmp.sample(process, steps=200, initial=[0.5, 0.0], seed=4, warmup=0.0, store=store, **options)
    record = run_chain(process, [0.5, 0.0], np.random.SeedSequence(4).spawn(1)[0], steps=200).finish()
    states = np.vstack([[0.5, 0.0], record.xs[:-1]])
    weights = np.array([0.0 if k % 10 < 4 else schedule.step(k) for k in range(200)])
    np.testing.assert_allclose(run.mean(), weights @ states / weights.sum(), rtol=1e-10)
    assert np.all(np.isfinite(run.ess()))
    if store == "grid":
        assert np.all(np.isfinite(run.draws(20)))


def test_a_run_that_only_explored_says_that_there_is_no_path():
    run = pdmp.sample(
        discrete.SGLD(Noisy(MODEL, 0.5), schedules.cyclical(0.2, 100, 0.5)),
        steps=20,
        initial=[0.0, 0.0],
        seed=1,
        warmup=0.0,
    )
    with pytest.raises(ValueError, match="no path"):
        run.mean()


def test_exploring_schedules_are_not_extrapolated():
    with pytest.raises(ValueError, match="`step`.*explores"):
        discrete.SGRRLD(MODEL, schedules.cyclical(0.2, 100, 0.5))
    discrete.SGRRLD(MODEL, schedules.cyclical(0.2, 100))


@pytest.mark.parametrize(
    ("off", "order", "factor"),
    [
        (0.3, 1, 0.3 / 7.0),
        (0.3, 2, math.sqrt(0.3 / 7.0)),
        (1.4, 1, 0.25),
        (1.05, 1, 0.5),
        (1e-9, 1, 1e-3),
        (900.0, 2, 0.1**1.5),
    ],
)
def test_by_how_much_a_step_is_too_large(off, order, factor):
    """A bias of this order falls to a tenth; at most a bias of 100 is believed, and half the step is the least said."""
    process = discrete.SGLD(NOISY, schedules.polynomial(0.0123, 1.0, 0.4))
    for chooses, exact in ((True, False), (False, False), (True, True)):
        process.provider = pdmp.gradients.Full(MODEL) if exact else NOISY
        said = name_smaller(process, "size", off, order, chooses)
        more = (', or size="auto"' if chooses else "") + ("" if exact else ", or larger batches")
        assert said == f"Its size, 0.0123, is too large: give {0.0123 * factor:.2g} or less{more}"


def test_what_explores_is_told_no_smaller_step():
    """Nor what is at another temperature on purpose: its law is not the target's."""
    for step, temperature, told in (
        (0.2, 1.0, True),
        (schedules.cyclical(0.2, 100, 0.5), 1.0, False),
        (0.2, 2.0, False),
    ):
        assert (discrete.SGLD(MODEL, step, temperature=temperature).smaller_step(0.3) is not None) == told


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: discrete.SGD(NOISY, "auto"), "`step`: SGD has no rule"),
        (lambda: discrete.SGZZ(NOISY, "auto"), "`step`: SGZZ has no rule"),
        (lambda: discrete.ZigZagSplitting(NOISY, "auto"), "`step`: ZigZagSplitting has no rule"),
        (lambda: discrete.SGLD(NOISY, metric=preconditioners.RMSprop()), "a metric that adapts"),
        (lambda: discrete.SGHMC(NOISY, scheme="explicit"), "splitting without refreshment"),
        (lambda: discrete.SGHMC(NOISY, refresh_every=5), "splitting without refreshment"),
        (lambda: discrete.SGHMC(NOISY, batch_every=2), "splitting without refreshment"),
        (lambda: discrete.SGHMC(NOISY, noise_estimate=0.1), "splitting without refreshment"),
        (lambda: schedules.automatic(0.0), r"`error`.*\(0, 1\), got 0.0"),
    ],
)
def test_what_has_no_automatic_step(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("step", ["0.1", True])
def test_steps_are_numbers(step):
    with pytest.raises(TypeError, match="`step` must be a number"):
        discrete.SGLD(MODEL, step=step)
