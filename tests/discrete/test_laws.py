"""Laws that are predicted at the mode, with the noise there, and the steps that samplers choose by them."""

import math
import warnings

import numpy as np
import pytest

import discrete
import pdmp
from discrete.curvature import local_law, noise_covariance
from discrete.laws import largest_step
from discrete.schedules import automatic
from discrete.tick import FACTORS
from pdmp.gradients import ControlVariate, Minibatch, Noisy

pytestmark = pytest.mark.exact

PRECISION = np.array([[2.0, 0.6], [0.6, 30.0]])
GAUSSIAN = pdmp.models.Gaussian(np.array([1.0, -1.0]), PRECISION)
NOISE = np.array([0.4, 3.0])
NOISY = Noisy(GAUSSIAN, NOISE)


def regression(n=400, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, d)))).astype(float)
    return pdmp.models.LogisticRegression(X, y)


def worst(covariance, precision=PRECISION):
    return np.abs(np.diag(covariance) / np.diag(np.linalg.inv(precision)) - 1.0).max()


def ratio(process, covariance_at):
    """How far off the law is at the chosen step, and whether a step 6 % larger is off by more."""
    step = process.resolve(np.zeros(process.model.dim)).schedule.step(0)
    return worst(covariance_at(step)), worst(covariance_at(1.06 * step))


def recursion(a, injected):
    s = np.zeros_like(injected)
    for _ in range(200_000):
        new = a @ s @ a.T + injected
        if np.allclose(new, s, rtol=1e-13, atol=0.0):
            return new
        s = new
    raise AssertionError("no stationary law")


def sgld_law(step, temperature=1.0, p=None, injected=None):
    p = np.eye(2) if p is None else p
    added = 2.0 * step * temperature * p if injected is None else injected
    return recursion(np.eye(2) - step * p @ PRECISION, added + step**2 * p @ np.diag(NOISE**2) @ p)


def test_sgld_takes_the_largest_step_within_the_error():
    at, beyond = ratio(discrete.SGLD(NOISY), sgld_law)
    assert at <= 0.1 < beyond


def test_another_error_is_kept_as_well():
    at, beyond = ratio(discrete.SGLD(NOISY, automatic(error=0.02)), sgld_law)
    assert at <= 0.02 < beyond


def test_the_preconditioner_counts():
    p = np.array([[0.5, -0.01], [-0.01, 0.05]])
    at, beyond = ratio(discrete.SGLD(NOISY, metric=pdmp.Metric(covariance=p)), lambda step: sgld_law(step, p=p))
    assert at <= 0.1 < beyond


def test_the_temperature_counts():
    at, beyond = ratio(discrete.SGLD(NOISY, temperature=3.0), lambda step: sgld_law(step, temperature=3.0) / 3.0)
    assert at <= 0.1 < beyond


@pytest.mark.parametrize("correction", ["corrected", "modified"])
def test_corrections_count(correction):
    def law(step):
        if correction == "corrected":
            added = 2.0 * step - step**2 * NOISE**2
        else:
            added = 2.0 * step * (1.0 - 2.0 * step * 0.125 * NOISE**2) ** 2
        return sgld_law(step, injected=np.diag(added))

    batch = Minibatch(regression(), 10)  # its own noise is replaced below: `NOISY` has no variance to correct by
    process = discrete.SGLD(batch, correction=correction)
    hessian, noise = PRECISION, np.diag(NOISE**2)
    step = process.with_step(hessian, noise).schedule.step(0)
    assert worst(law(step)) <= 0.1 < worst(law(1.06 * step))


def test_richardson_romberg_chooses_for_the_extrapolation():
    at, beyond = ratio(discrete.SGRRLD(NOISY), lambda step: 2.0 * sgld_law(0.5 * step) - sgld_law(step))
    assert at <= 0.1 < beyond
    process = discrete.SGRRLD(NOISY)
    fine = process.resolve(np.zeros(2))
    assert process.schedule is process.coarse.schedule is not fine.schedule  # it is left as it was
    assert fine.fine.schedule.step(0) == 0.5 * fine.coarse.schedule.step(0) == 0.5 * fine.schedule.step(0)


def kinetic_law(process, step, friction):
    """By iterating the sampler's own update of (θ, p) for each of a basis, without what predicts its law."""
    mean = GAUSSIAN.mean
    exact = type(process)(GAUSSIAN, step, friction)
    memory = pdmp.process.by_name(exact.memory(mean, np.random.default_rng(0)))

    def move(theta, p, z, noise):
        x, v = mean + theta, p.copy()
        memory.taken[0] = 1
        memory.gradient[:] = PRECISION @ theta + noise  # of the step before, for those that keep it
        exact.provider = Shifted(noise)
        exact.move(x, v, memory, z, None, np.zeros(20, np.int64))
        return np.concatenate([x - mean, v])

    zeros, units = np.zeros(2), np.eye(2)
    normals = exact.normals
    a = np.column_stack([move(e, zeros, np.zeros(2 * normals), zeros) for e in units])
    a = np.column_stack([a, *(move(zeros, e, np.zeros(2 * normals), zeros) for e in units)])
    b = np.column_stack([move(zeros, zeros, z, zeros) for z in np.eye(2 * normals)])
    c = np.column_stack([move(zeros, zeros, np.zeros(2 * normals), NOISE[j] * units[j]) for j in range(2)])
    return recursion(a, b @ b.T + c @ c.T)[:2, :2]


class Shifted:
    """The exact gradient and a constant."""

    def __init__(self, noise):
        self.noise = noise

    def gradient(self, x, memory, rng, out, counts):
        out[:] = PRECISION @ (x - GAUSSIAN.mean) + self.noise


@pytest.mark.parametrize("friction", [None, 9.0])
def test_sghmc_takes_the_largest_step_within_the_error(friction):
    process = discrete.SGHMC(NOISY, friction=friction)
    found = process.resolve(np.zeros(2))
    assert friction is None or found.friction == friction
    step = found.schedule.step(0)
    at = worst(kinetic_law(process, step, found.friction))
    beyond = worst(kinetic_law(process, 1.06 * step, found.friction))
    assert at <= 0.1 < beyond


@pytest.mark.parametrize("name", ["SGNHT", "MSGNHT", "BADODAB"])
def test_thermostats_choose_what_their_dynamics_at_rest_would(name):
    process = getattr(discrete, name)(NOISY).resolve(np.zeros(2))
    step, friction = process.schedule.step(0), process.diffusion
    integrator = {"SGNHT": "euler", "MSGNHT": "splitting", "BADODAB": "baoab"}[name]
    if integrator == "euler":
        a = np.block(
            [
                [np.eye(2) - step**2 * PRECISION, step * (1.0 - step * friction) * np.eye(2)],
                [-step * PRECISION, (1.0 - step * friction) * np.eye(2)],
            ]
        )
        kick = np.vstack([step * np.eye(2), np.eye(2)])
        law = recursion(a, kick @ np.diag(2.0 * friction * step + step**2 * NOISE**2) @ kick.T)[:2, :2]
        assert worst(law) <= 0.1
    else:
        same = discrete.SGHMC if integrator == "splitting" else discrete.BAOAB
        other = same(NOISY).resolve(np.zeros(2))
        assert (other.schedule.step(0), other.friction) == (step, friction)


def test_the_scale_of_barker_dynamics_keeps_to_the_error():
    from discrete.laws import barker_covariance

    process = discrete.SGBD(NOISY).resolve(np.zeros(2))
    scale = process.schedule.step(0)
    assert worst(barker_covariance(PRECISION, np.diag(NOISE**2), scale, "vanilla")) <= 0.1
    assert worst(barker_covariance(PRECISION, np.diag(NOISE**2), 1.06 * scale, "vanilla")) > 0.1
    one = np.eye(1)  # where a large error is allowed, the scale is above the target's
    wide = discrete.SGBD(pdmp.models.Gaussian([0.0], one), automatic(0.3)).resolve(np.zeros(1)).schedule.step(0)
    at, beyond = (barker_covariance(one, 0.0 * one, s * wide, "vanilla") for s in (1.0, 1.06))
    assert wide > 1.0 and worst(at, one) <= 0.3 and (beyond is None or worst(beyond, one) > 0.3)
    shape = np.array([2.0, 0.5])
    shaped = discrete.SGBD(NOISY, shape=shape).resolve(np.zeros(2)).schedule.step(0)
    assert worst(barker_covariance(PRECISION, np.diag(NOISE**2), shaped * shape, "vanilla")) <= 0.1
    assert worst(barker_covariance(PRECISION, np.diag(NOISE**2), 1.06 * shaped * shape, "vanilla")) > 0.1


def test_it_looks_at_the_mode_wherever_the_run_starts():
    model = regression()
    mode, far = model.mode(), model.mode() + 3.0
    for provider in (Minibatch(model, 20), ControlVariate(model, 20)):
        here, there = (discrete.SGLD(provider).resolve(x).schedule.step(0) for x in (mode, far))
        assert there == pytest.approx(here, rel=1e-6)
    noisy, anchored = (
        discrete.SGLD(p).resolve(mode).schedule.step(0) for p in (Minibatch(model, 4), ControlVariate(model, 4))
    )
    assert anchored > 1.5 * noisy  # at the anchor control variates have no noise


def test_in_many_dimensions_the_stiffest_direction_decides():
    precision = np.linspace(1.0, 50.0, 600)
    model = pdmp.models.Gaussian(0.0, precision)
    hessian, noise = local_law(Noisy(model, 2.0), np.zeros(600))
    assert hessian.shape == noise.shape == (1, 1)
    assert hessian[0, 0] == pytest.approx(50.0, rel=0.05) and noise[0, 0] == pytest.approx(4.0)
    step = discrete.SGLD(Noisy(model, 2.0)).resolve(np.zeros(600)).schedule.step(0)
    variance = (2.0 + step * 4.0) / (50.0 * (2.0 - step * 50.0))
    assert 0.08 < variance * 50.0 - 1.0 < 0.11
    with pytest.raises(ValueError, match="metric.*at most 500"):
        discrete.SGLD(model, metric=pdmp.Metric(covariance=precision)).resolve(np.zeros(600))


def test_the_noise_along_the_stiffest_direction_is_that_of_batches(monkeypatch):
    monkeypatch.setattr("discrete.curvature.DENSE_DIMENSIONS", 2)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4)) * [1.0, 1.0, 1.0, 3.0]
    model = pdmp.models.LogisticRegression(X, X[:, 3] > 0.0, prior_scale=0.3)  # whose terms do not add up to 0
    batch = Minibatch(model, 25, draw="distinct")
    mode = model.mode()
    hessian, noise = local_law(batch, mode)
    values, vectors = np.linalg.eigh(model.hessian(mode))
    assert hessian[0, 0] == pytest.approx(values[-1], rel=0.02)
    terms = model.term_gradients(mode, np.arange(80)) @ vectors[:, -1]
    assert noise[0, 0] == pytest.approx(80**2 / 25 * (55 / 79) * terms.var(), rel=0.05)
    assert terms.mean() ** 2 > 0.3 * terms.var()


def test_a_saddle_is_taken_to_curve_upwards():
    class Hill(pdmp.Model):
        def __init__(self):
            super().__init__(dim=1)

        @pdmp.compiled
        def potential(self, x):
            return math.cos(2.0 * x[0]) + 1e-12 * x[0] * x[0]

        @pdmp.compiled
        def add_gradient(self, x, out):
            out[0] += -2.0 * math.sin(2.0 * x[0]) + 2e-12 * x[0]

    model = Hill()
    model.mode = lambda initial=None: None
    hessian, _ = local_law(pdmp.gradients.Full(model), np.zeros(1))
    assert hessian[0, 0] == pytest.approx(4.0, rel=1e-3)


def test_an_error_that_cannot_be_kept_is_said():
    with pytest.warns(UserWarning, match="no step keeps the marginal variances within 10%.*off by.*Larger batches"):
        discrete.SGLD(NOISY, correction="extreme").resolve(np.zeros(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discrete.SGLD(NOISY).resolve(np.zeros(2))
        assert set(discrete.SGBD.recipe.processes(discrete.SGBD, GAUSSIAN, NOISY, GAUSSIAN.mean, 0.1)) == {
            "SGBD vanilla",
            "SGBD corrected",
            "SGBD extreme",
        }


def test_the_search_goes_from_large_steps_to_small_ones():
    step, error = largest_step(lambda s: np.eye(1) * (1.0 + s), np.eye(1), 1.0, 0.1)
    assert error <= 0.1 and 0.094 < step <= 0.1


def test_noise_makes_the_chosen_step_smaller():
    model = pdmp.models.Gaussian(np.zeros(2), np.diag([1.0, 0.25]))
    recipe = discrete.SGLD.recipe
    calm, noisy = (
        recipe.processes(discrete.SGLD, model, Noisy(model, scale), np.zeros(2), 0.1)["SGLD"].schedule.step(0)
        for scale in (1e-3, 2.0)
    )
    assert noisy < calm


@pytest.mark.parametrize(("sampler", "module"), [(discrete.SGLD, "sgld"), (discrete.SGRRLD, "richardson_romberg")])
def test_how_far_off_an_automatic_step_is_is_said_from_one_percent_on(sampler, module, monkeypatch):
    for off, said in ((0.1005, False), (0.1015, True), (0.234, True)):
        monkeypatch.setattr(f"discrete.{module}.largest_step", lambda *_, off=off: (0.05, off))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            sampler(NOISY).with_step(PRECISION, np.diag(NOISE**2))
        texts = [str(one.message) for one in caught]
        assert len(texts) == said
        for text in texts:
            assert text.startswith(f"{sampler.__name__}: no step keeps the marginal variances within 10%; at the best ")
            assert f"step, 0.05, one is predicted to be off by {off:.0%}. " in text


@pytest.mark.parametrize("name", ["SGLD", "SGBD", "UBU", "SGNHT", "BADODAB", "SGRRLD"])
def test_settings_to_choose_from_are_around_the_automatic_ones(name):
    sampler, model = getattr(discrete, name), regression(400 if name == "SGLD" else 25, 2)
    mode, step = model.mode(), getattr(sampler, "step_name", "step")
    make, arms = sampler.recipe.arms(sampler, model, mode)
    sizes = [4, 40] if name == "SGLD" else [2]
    assert {arm["size"] for arm in arms} == set(sizes)
    for size in sizes:
        batch, own = Minibatch(model, size), [arm for arm in arms if arm["size"] == size]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = sampler(batch, automatic()).with_step(model.hessian(mode), noise_covariance(batch, mode))
        assert [arm[step] for arm in own] == [chosen.schedule.step(0) * factor for factor in FACTORS]
        for option in ("friction", "diffusion"):
            assert {arm.get(option) for arm in own} == {getattr(chosen, option, None)}
    assert make(**arms[-1]).provider.size == sizes[-1]


def test_where_no_step_is_within_the_error_the_closest_one_is_taken():
    step, worst = largest_step(lambda s: np.eye(1) * (1.5 + (math.log10(s) + 2.0) ** 2), np.eye(1), 1.0, 0.1)
    assert step == pytest.approx(1e-2, rel=0.06) and worst == pytest.approx(0.5, abs=0.01)
