"""GD and SGD: the recursion replayed from the same random numbers, the safeguards, and the schedules' conditions."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from discrete import schedules
from discrete.clipping import as_safeguard
from discrete.sgd import clipped
from pdmp.gradients import ControlVariate, Full, Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian
from tests.checks import plain_only, run_chain
from tests.targets import MEAN, MODEL, PRECISION

pytestmark = pytest.mark.exact

ZERO = np.zeros(3)


def path(process, x, steps, seed=5):
    record = run_chain(process, x, seed, steps=steps).finish()
    return record.times, record.xs


def clip_norm(v, c):
    return v * min(1.0, c / np.linalg.norm(v))


def clip_value(v, low, high):
    return np.clip(v, low, high)


def normalise(v, c):
    return c * v / np.linalg.norm(v)


SAFEGUARDS = {
    "none": ({}, lambda v: v),
    "clip_norm": ({"clip_norm": 1.5}, lambda v: clip_norm(v, 1.5)),
    "clip_value": ({"clip_value": 0.7}, lambda v: clip_value(v, -0.7, 0.7)),
    "clip_value, a pair": ({"clip_value": (-0.2, 0.9)}, lambda v: clip_value(v, -0.2, 0.9)),
    "normalise": ({"normalise": 0.8}, lambda v: normalise(v, 0.8)),
}


#: All in plain Python; compiled, which costs seconds for each, two of them.
TRIED = [*((name, 0.1) for name in SAFEGUARDS), ("none", schedules.power(0.3, 0.6))]
if not config.DISABLE_JIT:
    TRIED = TRIED[:2]


@pytest.mark.parametrize("name, step", TRIED)
def test_every_step_is_the_recursion(name, step):
    """θ - γₖ s(∇Û), held for γₖ; and how often the safeguard changed the estimate."""
    options, safe = SAFEGUARDS[name]
    chain = run_chain(discrete.SGD(Noisy(MODEL, 0.4), step, **options), ZERO, 5, steps=40)
    record = chain.finish()
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5)))
    x, now, acted = ZERO, 0.0, 0
    for k in range(40):
        gamma = 0.1 if step == 0.1 else 0.3 / (k + 1) ** 0.6
        gradient = PRECISION @ (x - MEAN) + 0.4 * rng.standard_normal(3)
        used = safe(gradient)
        acted += bool(np.abs(used - gradient).max() > 1e-12)
        x, now = x - gamma * used, now + gamma
        np.testing.assert_allclose(record.xs[k], x, rtol=1e-10, atol=1e-12)
        assert record.times[k] == pytest.approx(now, rel=1e-12)
    expected = {} if name == "none" else {"mean_clipped": acted / 40}
    assert record.statistics == pytest.approx(expected)
    assert name in ("none", "normalise") or 0 < acted < 40


def test_the_fraction_is_in_the_statistics_of_a_run():
    run = pdmp.sample(discrete.SGD(Noisy(MODEL, 0.4), 0.1, clip_norm=0.6), steps=50, chains=2, seed=1, initial=MEAN)
    assert 0.0 < run.stats["mean_clipped"] < 1.0
    none = SimpleNamespace(memory=SimpleNamespace(taken=np.zeros(1), clipped=np.zeros(1)))
    assert math.isnan(clipped(run.process.safeguard, none)["mean_clipped"])  # of a chain that has not begun


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e150])
def test_safeguards_of_single_vectors(scale):
    """Norms, directions, and the identity where there is nothing to do."""
    v = scale * np.array([3.0, -4.0, 0.0])
    norm = 5.0 * scale
    w = v.copy()
    assert as_safeguard(2.0, None, None).apply(w) == int(norm > 2.0)
    assert np.linalg.norm(w) == pytest.approx(min(norm, 2.0)) and w[1] / w[0] == pytest.approx(-4.0 / 3.0)
    if norm <= 2.0:
        np.testing.assert_array_equal(w, v)
    w = v.copy()
    assert as_safeguard(None, 3.5, None).apply(w) == int(4.0 * scale > 3.5)
    np.testing.assert_array_equal(w, np.clip(v, -3.5, 3.5))
    w = v.copy()
    assert as_safeguard(None, None, 2.0).apply(w) == 1
    np.testing.assert_allclose(w, 2.0 * v / norm)
    assert as_safeguard(None, None, 2.0).apply(np.zeros(3)) == 0


def test_gd_goes_down_to_the_mode():
    times, xs = path(discrete.GD(MODEL, 0.3), ZERO, 200)
    np.testing.assert_allclose(xs[-1], MEAN, atol=1e-9)
    potentials = [MODEL.potential(x) for x in xs]
    assert np.all(np.diff(potentials[:30]) < 0.0)
    np.testing.assert_allclose(xs[0], 0.3 * PRECISION @ MEAN, rtol=1e-13)
    if config.DISABLE_JIT:
        np.testing.assert_array_equal(xs, path(discrete.SGD(Full(MODEL), 0.3), ZERO, 200)[1])


def test_gd_and_sgd_diverge_beyond_their_limit_and_warn():
    largest = np.linalg.eigvalsh(PRECISION)[-1]
    for ratio, stable in ((0.98, True), (1.02, False)):
        process = discrete.GD(MODEL, ratio * 2.0 / largest)
        if stable:
            _, xs = path(process, ZERO, 400)
        else:
            with pytest.warns(UserWarning, match="GD.*stability limit"):
                _, xs = path(process, ZERO, 400)
        assert bool(np.abs(xs[-1] - MEAN).max() < 1e-2) is stable


@pytest.mark.parametrize("steps, kappa", [(20, 0.6), (60, 1.0)])
def test_sgd_with_robbins_monro_steps_has_its_exact_mean_and_variance(steps, kappa):
    """On λ = 1 with noise sd τ, m' = (1 - γ) m and s' = (1 - γ)² s + γ²τ²: 400 coordinates at once, 6 sigma."""
    d, tau = 400, 2.0
    model = Gaussian(np.zeros(d), np.ones(d))
    _, xs = path(discrete.SGD(Noisy(model, tau), schedules.power(0.9, kappa)), np.full(d, 3.0), steps, seed=8)
    m, s = 3.0, 0.0
    for k in range(steps):
        gamma = 0.9 / (k + 1) ** kappa
        m, s = (1.0 - gamma) * m, (1.0 - gamma) ** 2 * s + gamma**2 * tau**2
    assert abs(xs[-1].mean() - m) < 6.0 * math.sqrt(s / d)
    assert abs(xs[-1].var() / s - 1.0) < 6.0 * math.sqrt(2.0 / d)


def test_sgd_is_sgld_without_temperature_and_with_the_extreme_correction():
    """The same random numbers, batches included: exactly the same path, times and safeguard."""
    rng = np.random.default_rng(2)
    A = rng.standard_normal((12, 2))
    batch = Minibatch(LinearGaussian(A, rng.standard_normal(12)), 3)
    pairs = [(Noisy(MODEL, 0.5), ZERO), (batch, np.zeros(2))]
    for provider, x in pairs if config.DISABLE_JIT else pairs[:1]:
        times, expected = path(discrete.SGD(provider, 0.02, clip_norm=3.0), x, 60)
        for options in (
            {"temperature": 0.0},
            {"correction": "extreme"},
            {"temperature": 0.0, "correction": "modified"},
        ):
            found = path(discrete.SGLD(provider, 0.02, clip_norm=3.0, **options), x, 60)
            np.testing.assert_array_equal(found[1], expected)
            np.testing.assert_array_equal(found[0], times)


def test_what_is_not_finite_stops_the_chain():
    with pytest.warns(UserWarning, match="stability limit"), np.errstate(over="ignore", invalid="ignore"):
        run = None
        with pytest.raises(AssertionError, match="not finite"):
            run = run_chain(discrete.SGD(Noisy(Gaussian(0.0, [1e300]), 0.0), 1e10), [1.0], 1, steps=100)
    assert run is None


BATCH = Minibatch(LinearGaussian(np.ones((6, 1)), np.zeros(6)), 2)
BAD = {
    "GD of a mini-batch": (lambda: discrete.GD(BATCH, 0.1), TypeError, "discrete.GD.*exact.*Minibatch.*discrete.SGD"),
    "GD of control variates": (lambda: discrete.GD(ControlVariate(BATCH.model, 2), 0.1), TypeError, "discrete.SGD"),
    "step": (lambda: discrete.SGD(BATCH, -1.0), ValueError, "`step`.*-1.0"),
    "two safeguards": (
        lambda: discrete.SGD(BATCH, 0.1, clip_norm=1.0, normalise=1.0),
        ValueError,
        "at most one of `clip_norm`, `clip_value`, `normalise`",
    ),
    "clip_norm zero": (lambda: discrete.SGD(BATCH, 0.1, clip_norm=0.0), ValueError, "`clip_norm`.*0.0"),
    "clip_norm a pair": (lambda: discrete.SGD(BATCH, 0.1, clip_norm=(1, 2)), ValueError, "`clip_norm`"),
    "normalise": (lambda: discrete.SGD(BATCH, 0.1, normalise=-2.0), ValueError, "`normalise`.*-2.0"),
    "clip_value negative": (lambda: discrete.SGD(BATCH, 0.1, clip_value=-1.0), ValueError, "`clip_value`.*-1.0"),
    "clip_value reversed": (lambda: discrete.SGD(BATCH, 0.1, clip_value=(1, -1)), ValueError, r"`clip_value`.*lo < hi"),
    "clip_value of three": (lambda: discrete.SGD(BATCH, 0.1, clip_value=(1, 2, 3)), ValueError, "`clip_value`"),
    "clip_value a word": (lambda: discrete.SGD(BATCH, 0.1, clip_value="lo"), ValueError, "`clip_value`"),
    "safeguard of SGLD": (lambda: discrete.SGLD(BATCH, 0.1, clip_norm=-1.0), ValueError, "`clip_norm`.*-1.0"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line_that_names_the_argument(name):
    make, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_steps_whose_squares_have_an_infinite_sum_are_a_warning_for_noisy_gradients():
    with pytest.warns(UserWarning, match="0.5 <= 1/2"):
        discrete.SGD(BATCH, schedules.power(0.01, 0.5))
    discrete.SGD(BATCH, schedules.power(0.01, 0.51))
    discrete.GD(BATCH.model, schedules.power(0.01, 0.5))


@plain_only
def test_steps_of_sgd_that_explore_do_not_count():
    schedule = schedules.cyclical(0.1, 10, 0.5)
    path = pdmp.sample(
        discrete.SGD(Gaussian(np.zeros(2), np.eye(2)), schedule), steps=10, seed=1, initial=[1.0, 1.0]
    ).trajectories[0]
    assert path.end == pytest.approx(sum(schedule.step(k) for k in range(5, 10)))
