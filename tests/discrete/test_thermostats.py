"""SGNHT, MSGNHT and BADODAB: their recursions replayed from the same random numbers, conventions, blocks and guards."""

import math

import numpy as np
import pytest
from numba.core import config

import discrete
import pdmp
from discrete.badodab import relative_variance
from pdmp.gradients import Noisy
from pdmp.models import Gaussian
from tests.checks import new_chain, plain, run_chain

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
SCALE = np.array([0.7, 0.0, 1.5])
PROVIDER = Noisy(Gaussian(MEAN, PRECISION), SCALE)
STEPS = 40
SCHEDULES = {"constant": 0.2}
if config.DISABLE_JIT:  # compiled, another schedule takes some more seconds
    SCHEDULES["decreasing"] = discrete.schedules.polynomial(0.3, 2.0, 0.4)


def path(process, x=(0.0, 0.0, 0.0), steps=STEPS, seed=5):
    """The chain after its steps, and times and positions after each."""
    chain = run_chain(process, x, seed, steps=steps)
    record = chain.finish()
    return chain, record.times, record.xs


def sizes(schedule):
    k = np.arange(STEPS)
    return np.full(STEPS, 0.2) if schedule == "constant" else 0.3 * (2.0 + k) ** -0.4


class Replay:
    """A chain's random numbers in their order, and the gradients of PROVIDER."""

    def __init__(self, seed=5):
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self.x, self.p = np.zeros(3), self.rng.standard_normal(3)

    def normals(self):
        return self.rng.standard_normal(3)

    def gradient(self, x):
        return PRECISION @ (x - MEAN) + SCALE * self.rng.standard_normal(3)


BLOCKS = {
    "scalar": ({}, [0, 0, 0]),
    "per block, sizes": ({"thermostat": "per_block", "blocks": [1, 2]}, [0, 1, 1]),
    "per block, numbers": ({"thermostat": "per_block", "blocks": np.array([1, 0, 1])}, [1, 0, 1]),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", BLOCKS)
def test_sgnht(kind, schedule):
    """p' = p - ε ĝ - ε ξ p + √(2Aε) z, θ' = θ + ε p', ξ' = ξ + ε (mean p'² - 1), the mean over a thermostat's block."""
    options, block = BLOCKS[kind]
    chain, times, xs = path(discrete.SGNHT(PROVIDER, SCHEDULES[schedule], 1.3, **options))
    replay, block = Replay(), np.array(block)
    x, p, xi = replay.x, replay.p, np.full(block.max() + 1, 1.3)
    for k, eps in enumerate(sizes(schedule)):
        z = replay.normals()
        p = p - eps * replay.gradient(x) - eps * xi[block] * p + math.sqrt(2.0 * 1.3 * eps) * z
        x = x + eps * p
        xi = xi + eps * (np.array([np.mean(p[block == b] ** 2) for b in range(len(xi))]) - 1.0)
        np.testing.assert_allclose(xs[k], x, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(chain.state.v, p, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(chain.state.memory.thermostat, xi, rtol=1e-11)
    np.testing.assert_allclose(times, np.cumsum(sizes(schedule)), rtol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("scheme", ["splitting", "euler"])
def test_msgnht(scheme, schedule):
    chain, times, xs = path(discrete.MSGNHT(PROVIDER, SCHEDULES[schedule], 1.3, scheme))
    replay = Replay()
    x, p, xi = replay.x, replay.p, np.full(3, 1.3)
    for k, eps in enumerate(sizes(schedule)):
        noise = math.sqrt(2.0 * 1.3 * eps) * replay.normals()
        if scheme == "euler":
            p = (1.0 - eps * xi) * p - eps * replay.gradient(x) + noise
            x = x + eps * p
            xi = xi + eps * (p * p - 1.0)
        else:
            x = x + 0.5 * eps * p
            xi = xi + 0.5 * eps * (p * p - 1.0)
            p = p * np.exp(-0.5 * eps * xi)
            p = p - eps * replay.gradient(x) + noise
            p = p * np.exp(-0.5 * eps * xi)
            xi = xi + 0.5 * eps * (p * p - 1.0)
            x = x + 0.5 * eps * p
        np.testing.assert_allclose(xs[k], x, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(chain.state.v, p, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(chain.state.memory.thermostat, xi, rtol=1e-11)
    np.testing.assert_allclose(times, np.cumsum(sizes(schedule)), rtol=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("diffusion, mass", [(1.3, None), (0.02, 0.7)])  # the second one's thermostat is often negative
def test_badodab(diffusion, mass, schedule):
    chain, times, xs = path(discrete.BADODAB(PROVIDER, SCHEDULES[schedule], diffusion, thermal_mass=mass))
    replay, mu = Replay(), 3.0 if mass is None else mass
    x, p, xi, g, seen = replay.x, replay.p, diffusion, None, []
    for k, eps in enumerate(sizes(schedule)):
        z = replay.normals()
        if k == 0:
            g = replay.gradient(x)
        p = p - 0.5 * eps * g
        x = x + 0.5 * eps * p
        xi = xi + 0.5 * eps * (p @ p - 3.0) / mu
        seen.append(xi)
        p = math.exp(-xi * eps) * p + math.sqrt(diffusion * (1.0 - math.exp(-2.0 * xi * eps)) / xi) * z
        xi = xi + 0.5 * eps * (p @ p - 3.0) / mu
        x = x + 0.5 * eps * p
        g = replay.gradient(x)
        p = p - 0.5 * eps * g
        np.testing.assert_allclose(xs[k], x, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(chain.state.v, p, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(chain.state.memory.thermostat, [xi], rtol=1e-9)
    np.testing.assert_allclose(times, np.cumsum(sizes(schedule)), rtol=1e-12)
    assert mass is None or min(seen) < 0.0 < max(seen)


def test_the_noise_of_a_step_with_hardly_any_friction_is_that_of_a_free_one():
    """(1 - e^-x) / x = 1 - x/2 + x²/6 - …, without a loss of digits and on both sides of 0."""
    f = plain(relative_variance)
    assert f(0.0) == 1.0
    for x in (1e-300, -1e-300, 1e-17, 1e-12, -1e-12, 1e-9, -1e-6):
        assert f(x) == pytest.approx(1.0 - 0.5 * x + x * x / 6.0, rel=1e-15)
    for x in (2.0, -2.0):
        assert f(x) == pytest.approx((1.0 - math.exp(-x)) / x, rel=1e-14)


# ---------------------------------------------------------------------------------------------------------------
# The papers' other convention, and samplers that are the same


@pytest.mark.parametrize("several", [False, True])
def test_from_h_is_the_recursion_of_displacements(several):
    """v' = v - h ĝ(θ) - α v + √(2ah) z, θ' = θ + v', α' = α + v'·v'/d - h (or v'∘v' - h), with v = εp and h = ε²."""
    h, a = 0.03, 0.2
    process = (
        discrete.MSGNHT.from_h(PROVIDER, h, a, scheme="euler") if several else discrete.SGNHT.from_h(PROVIDER, h, a)
    )
    chain, times, xs = path(process)
    replay = Replay()
    x, v, alpha = replay.x, math.sqrt(h) * replay.p, np.full(3, a)
    for k in range(STEPS):
        z = replay.normals()
        v = v - h * replay.gradient(x) - alpha * v + math.sqrt(2.0 * a * h) * z
        x = x + v
        alpha = alpha + (v * v if several else v @ v / 3.0) - h
        np.testing.assert_allclose(xs[k], x, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(math.sqrt(h) * chain.state.v, v, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(math.sqrt(h) * chain.state.memory.thermostat, alpha[: 3 if several else 1], rtol=1e-11)
    np.testing.assert_allclose(times[-1], STEPS * math.sqrt(h), rtol=1e-12)


def test_one_block_is_the_scalar_thermostat():
    one = path(discrete.SGNHT(PROVIDER, 0.2, thermostat="per_block", blocks=[3]))
    np.testing.assert_array_equal(one[2], path(discrete.SGNHT(PROVIDER, 0.2))[2])
    by_default = path(discrete.SGNHT(PROVIDER, 0.2, thermostat="per_block"))  # the model has one variable
    np.testing.assert_array_equal(one[2], by_default[2])


def test_by_default_each_variable_of_the_model_is_a_block():
    p = pdmp.Parameters(scale=1, slope=2)
    rows = pdmp.terms(lambda a, b: 0.5 * (a * a + b * b), at=[p.scale, p.slope[np.arange(2)]])
    assert discrete.SGNHT(pdmp.models.sum_of_terms(p, [rows]), 0.2, thermostat="per_block").block.tolist() == [0, 1, 1]


def test_a_thermostat_for_each_coordinate_is_one_for_each_block_of_one():
    several = path(discrete.MSGNHT(PROVIDER, 0.2, scheme="euler"))
    blocks = path(discrete.SGNHT(PROVIDER, 0.2, thermostat="per_block", blocks=[1, 1, 1]))
    np.testing.assert_allclose(several[2], blocks[2], rtol=1e-11, atol=1e-12)
    assert np.abs(path(discrete.SGNHT(PROVIDER, 0.2))[2] - blocks[2]).max() > 0.01


def test_in_one_dimension_one_thermostat_is_one_for_each_coordinate():
    one = Noisy(Gaussian(0.5, [2.0]), 1.0)
    np.testing.assert_allclose(
        path(discrete.SGNHT(one, 0.2), [0.0])[2],
        path(discrete.MSGNHT(one, 0.2, scheme="euler"), [0.0])[2],
        rtol=1e-11,
        atol=1e-12,
    )


@pytest.mark.skipif(not config.DISABLE_JIT, reason="seconds of compilation for each, to the same end")
@pytest.mark.parametrize("sampler, ratio", [(discrete.SGNHT, 2.0), (discrete.MSGNHT, 4.0), (discrete.BADODAB, 4.0)])
def test_extrapolation_couples_a_chain_with_one_of_half_the_step(sampler, ratio):
    """With hardly any noise the two differ by the error of the step, of first or second order."""
    apart = []
    for eps in (0.05, 0.025):
        pair = discrete.RichardsonRomberg(sampler(Noisy(Gaussian(MEAN, PRECISION), 0.0), eps, 1e-9))
        chain = run_chain(pair, MEAN, 5, steps=round(1.0 / eps))
        assert chain.state.memory.fine.taken[0] == 2 * chain.state.memory.coarse.taken[0]
        apart.append(np.abs(chain.state.x[:3] - chain.state.x[3:]).max())
    assert apart[0] < 0.1
    assert apart[0] / apart[1] == pytest.approx(ratio, rel=0.2)


# ---------------------------------------------------------------------------------------------------------------
# Statistics, guards, slips


@pytest.mark.parametrize("sampler", [discrete.SGNHT, discrete.MSGNHT])
def test_the_kinetic_temperature_is_one_but_for_what_the_thermostat_has_moved(sampler):
    """Mean of |p|²/d over T steps of ε minus 1 = (ξ_T - ξ_0) / (εT): why it is 1 in stationarity, whatever U."""
    process = sampler(PROVIDER, 0.2, 1.3, scheme="euler") if sampler is discrete.MSGNHT else sampler(PROVIDER, 0.2, 1.3)
    chain, _, xs = path(process)
    p = np.diff(xs, axis=0, prepend=0.0) / 0.2
    found = process.report.statistics(process, chain.state)["mean_kinetic_temperature"]
    moved = chain.state.memory.thermostat.mean() - 1.3
    assert found == pytest.approx(1.0 + moved / (0.2 * STEPS), rel=1e-12)
    assert found == pytest.approx(np.mean(p**2), rel=1e-10)


def test_the_statistics_are_means_over_the_steps_after_the_warm_up():
    process = discrete.SGNHT(PROVIDER, 0.2, 1.3)
    run = pdmp.sample(process, initial=MEAN, steps=100, warmup=0.25, chains=2, seed=3)
    found = []
    for child in np.random.SeedSequence(3).spawn(2):
        chain, _, xs = path(process, MEAN, 100, child)
        squares = np.mean(np.diff(xs, axis=0, prepend=[MEAN]) ** 2, axis=1) / 0.04
        xi = 1.3 + 0.2 * np.cumsum(squares - 1.0)
        assert chain.state.memory.thermostat[0] == pytest.approx(xi[-1])
        found.append((squares[25:].mean(), xi[25:].mean()))
    expected = np.mean(found, axis=0)
    assert run.stats["mean_kinetic_temperature"] == pytest.approx(expected[0], rel=1e-10)
    assert run.stats["mean_thermostat"] == pytest.approx(expected[1], rel=1e-10)


def test_several_thermostats_are_averaged():
    process = discrete.MSGNHT(PROVIDER, 0.2, 1.3)
    chain, *_ = path(process, steps=1)
    found = process.report.statistics(process, chain.state)["mean_thermostat"]
    assert found == pytest.approx(chain.state.memory.thermostat.mean())


SAMPLERS = {
    "SGNHT": lambda step: discrete.SGNHT(PROVIDER, step),
    "SGNHT, per block": lambda step: discrete.SGNHT(PROVIDER, step, thermostat="per_block", blocks=[1, 2]),
    "MSGNHT": lambda step: discrete.MSGNHT(PROVIDER, step),
    "MSGNHT, euler": lambda step: discrete.MSGNHT(PROVIDER, step, scheme="euler"),
    "BADODAB": lambda step: discrete.BADODAB(PROVIDER, step),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_thermostat_below_what_a_step_can_have_is_a_divergence(name):
    for value, diverges in ((-1.2, True), (-0.8, False), (math.inf, True), (math.nan, True)):
        chain = new_chain(SAMPLERS[name](0.01), MEAN, 1, steps=1)
        chain.state.memory.thermostat[-1] = value / 0.01
        chain.advance()
        assert (chain.failure is not None) is diverges, value


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_gradient_that_is_not_finite_is_a_divergence(name):
    chain = new_chain(SAMPLERS[name](0.01), MEAN, 1, steps=3)
    chain.state.x[0] = math.nan
    assert chain.advance().failure is not None


@pytest.mark.parametrize("name", SAMPLERS)
def test_steps_at_the_leapfrogs_limit_warn(name):
    limit = 2.0 / math.sqrt(np.linalg.eigvalsh(PRECISION)[-1])
    assert SAMPLERS[name](0.1).stability_limit(np.linalg.eigvalsh(PRECISION)[-1]) == pytest.approx(limit)
    assert SAMPLERS[name](0.1).stability_limit(0.0) is None
    with pytest.warns(UserWarning, match="stability limit"):
        SAMPLERS[name](1.01 * limit).resolve(MEAN)
    SAMPLERS[name](0.99 * limit).resolve(MEAN)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: discrete.SGNHT(PROVIDER, 0.0), "`step`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, diffusion=0.0), "`diffusion`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, diffusion=math.nan), "`diffusion`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="vector"), '`thermostat` must be "scalar" or "per_block"'),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, blocks=[1, 2]), '`blocks` is only for thermostat="per_block"'),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[1, 1]), "`blocks`.* add up to 3"),
        (
            lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[0, 2, 2]),
            "`blocks`.*different numbers",
        ),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[0, 1]), "`blocks`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[-1, 4]), "`blocks`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[]), "`blocks`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[1.5, 1.5]), "`blocks`"),
        (lambda: discrete.SGNHT(PROVIDER, 0.1, thermostat="per_block", blocks=[[1], [1, 2]]), "`blocks`"),
        (lambda: discrete.MSGNHT(PROVIDER, 0.1, diffusion=-1.0), "`diffusion`"),
        (lambda: discrete.MSGNHT(PROVIDER, 0.1, scheme="explicit"), "`scheme` must be one of 'splitting', 'euler'"),
        (lambda: discrete.BADODAB(PROVIDER, 0.1, diffusion=0), "`diffusion`"),
        (lambda: discrete.BADODAB(PROVIDER, 0.1, thermal_mass=0.0), "`thermal_mass`"),
        (lambda: discrete.BADODAB(PROVIDER, 0.1, thermal_mass=math.inf), "`thermal_mass`"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
