"""Details of the fixed-step samplers: options, statistics, limits and chosen steps, each seen by no other test."""

import contextlib
import math

import numpy as np
import pytest
from matplotlib import pyplot
from numba.core import config

import discrete
import pdmp
from discrete.laws import largest_step
from discrete.preconditioners import RMSprop
from discrete.schedules import Schedule, cyclical, polynomial, power
from pdmp.gradients import Minibatch, Noisy
from pdmp.models import Gaussian, LinearGaussian, from_function
from pdmp.native.classes import compiled
from tests.checks import new_chain

pytestmark = pytest.mark.exact

plain_only = pytest.mark.skipif(not config.DISABLE_JIT, reason="in plain Python; compiled with other parts")
PLANE = Gaussian(np.zeros(2), np.eye(2))


def positions(process, x, steps, seed=1):
    return pdmp.sample(process, steps=steps, seed=seed, initial=x).trajectories[0].positions


# -- the Langevin family --------------------------------------------------------------------------------------------


@plain_only
def test_steps_that_explore_have_no_noise_to_remove():
    process = discrete.SGLD(Noisy(PLANE, 0.1), cyclical(0.01, 10, 0.5), correction="corrected")
    assert pdmp.sample(process, steps=20, seed=1, initial=[1.0, 1.0]).stats["mean_noise_removed"] == 0.0


@plain_only
def test_steps_of_sgd_that_explore_do_not_count():
    schedule = cyclical(0.1, 10, 0.5)
    path = pdmp.sample(discrete.SGD(PLANE, schedule), steps=10, seed=1, initial=[1.0, 1.0]).trajectories[0]
    assert path.end == pytest.approx(sum(schedule.step(k) for k in range(5, 10)))


@plain_only
def test_rmsprop_starts_at_the_mode_where_all_gradients_are_zero():
    process = discrete.SGLD(PLANE, 0.01, preconditioner=RMSprop(eps=1.0, include_gamma=True))
    assert np.all(np.isfinite(positions(process, [0.0, 0.0], 5)))


def test_noise_makes_the_chosen_step_smaller():
    model = Gaussian(np.zeros(2), np.diag([1.0, 0.25]))
    calm, noisy = (
        discrete.SGLD.candidates(model, Noisy(model, scale), np.zeros(2), 0.1)["SGLD"].schedule.step(0)
        for scale in (1e-3, 2.0)
    )
    assert noisy < calm


def test_where_no_step_is_within_the_error_the_closest_one_is_taken():
    step, worst = largest_step(lambda s: np.eye(1) * (1.5 + (math.log10(s) + 2.0) ** 2), np.eye(1), 1.0, 0.1)
    assert step == pytest.approx(1e-2, rel=0.06) and worst == pytest.approx(0.5, abs=0.01)


def test_defaults():
    assert RMSprop().decay == 0.99
    assert polynomial(1.0).kappa == 0.33
    power(1.0, 1.0)  # Robbins and Monro's, no warning


def test_a_correction_is_not_for_clipped_gradients():
    with pytest.raises(ValueError, match="not with clipping"):
        discrete.SGLD(Noisy(PLANE, 1.0), 0.1, correction="corrected", clip_norm=1.0)


def test_a_correction_warns_of_batches_that_are_not_independent():
    a = np.random.default_rng(1).standard_normal((12, 1))
    batch = Minibatch(LinearGaussian(a, a[:, 0]), 3, draw="reshuffle")
    with pytest.warns(UserWarning, match="cancels over an epoch"):
        discrete.SGLD(batch, 0.1, correction="corrected")
    discrete.SGLD(batch, 0.1)


def test_a_function_of_python_cannot_be_sub_sampled():
    model = from_function(lambda x: (0.5 * x @ x, x), dim=2, n_data=10)
    with pytest.raises(ValueError, match="cannot be sub-sampled"):
        Minibatch(model, 2)


@pytest.mark.parametrize("seed", [None, -1, "a"])
def test_the_seed_of_a_layout(seed):
    a = np.random.default_rng(1).standard_normal((12, 1))
    with pytest.raises(ValueError, match="`seed` must be a whole number"):
        Minibatch(LinearGaussian(a, a[:, 0]), 3, draw="reshuffle", seed=seed)


# -- momenta --------------------------------------------------------------------------------------------------------


class Growing(Schedule):
    """Steps that grow fivefold."""

    @compiled
    def step(self, k):
        return 0.1 * (1.0 + min(k, 4))


@plain_only
def test_a_noise_estimate_that_outgrows_the_friction_leaves_no_noise():
    process = discrete.SGHMC(PLANE, Growing(), friction=1.0, noise_estimate=0.9)
    assert np.all(np.isfinite(positions(process, [0.0, 0.0], 6)))


def test_the_splitting_s_limit_ends_where_friction_wins():
    limit = discrete.SGHMC(PLANE, 0.1, friction=1.02).limit(1.0)
    assert limit is not None and limit**2 == pytest.approx(4.0 * math.cosh(0.51 * limit))
    assert discrete.SGHMC(PLANE, 0.1, friction=1.05).limit(1.0) is None


def test_friction_and_step_that_make_the_splitting_too_narrow_are_a_warning():
    """y / sinh y at y = Dε/2: 0.067 at 5."""
    with pytest.warns(UserWarning, match=r"friction times step is 10; .* 0.067 times the target's"):
        discrete.SGHMC(PLANE, 0.5, friction=20.0)
    discrete.SGHMC(PLANE, 0.5, friction=3.0)


@pytest.mark.parametrize("make", [discrete.SGHMC, discrete.SGNHT, discrete.MSGNHT, discrete.SGRRHMC])
@pytest.mark.parametrize("h", [-1.0, 0.0, True, "a"])
def test_conversions_check_their_step(make, h):
    with pytest.raises(ValueError, match="`h` must be a positive number"):
        make.from_h(PLANE, h)


def test_what_extrapolations_convert():
    one = discrete.SGRRHMC.from_h(PLANE, 0.04, 0.3, beta_hat=0.02)
    assert one.coarse.noise_variance == discrete.SGHMC.from_h(PLANE, 0.04, 0.3, beta_hat=0.02).noise_variance > 0.0


def test_a_summary_says_that_a_chain_is_frozen():
    """Kinetic temperature far below 1: friction times step is ten."""
    with pytest.warns(UserWarning, match="friction times step"):
        process = discrete.SGHMC(Noisy(PLANE, 0.0), 0.5, friction=20.0)
    assert "too large for the friction" in repr(pdmp.sample(process, steps=300, seed=1).summary())


class Accompanied(discrete.SGLD):
    """Notes when the loop runs in its context."""

    def helper_threads(self, state):
        @contextlib.contextmanager
        def context():
            self.seen.append("in")
            yield
            self.seen.append("out")

        return context()


@plain_only
def test_the_loop_runs_in_the_context_of_its_process():
    process = Accompanied(PLANE, 0.1)
    process.seen = []
    chain = new_chain(process, [0.0, 0.0], 1, steps=5)
    chain.advance()
    assert process.seen == ["in", "out"] * (len(process.seen) // 2) and process.seen


def test_a_path_in_one_dimension_is_drawn():
    run = pdmp.sample(discrete.SGLD(Noisy(Gaussian([0.0], [1.0]), 0.0), 0.1), steps=20, seed=1)
    assert len(pdmp.plots.trajectory(run).axes) >= 2
    pyplot.close("all")


# -- extrapolation --------------------------------------------------------------------------------------------------


@plain_only
def test_statistics_of_an_extrapolation_are_the_fine_chain_s():
    process = discrete.SGRRLD(PLANE, 0.1, clip_value=0.4, correlation=None)
    run = pdmp.sample(process, steps=200, seed=2, initial=[1.0, 1.0])
    fine = run.trajectories[0].positions[:-1]
    assert len(fine) == 400
    assert run.stats["mean_clipped"] == pytest.approx(np.mean((np.abs(fine) > 0.4).any(axis=1)))


def test_the_chosen_step_of_an_extrapolation_is_by_its_own_law():
    model = Gaussian([0.0], [1.0])
    step = discrete.SGRRLD.candidates(model, Noisy(model, 1e-6), np.zeros(1), 0.1)["SGRRLD"].schedule.step(0)

    def error(gamma):
        return abs(2.0 * 2.0 / (2.0 - 0.5 * gamma) - 2.0 / (2.0 - gamma) - 1.0)

    assert error(step) <= 0.1 < error(1.06 * step)


# -- discretised processes ------------------------------------------------------------------------------------------


def test_a_potential_that_is_not_a_number_is_no_acceptance():
    process = discrete.ZigZagSplitting(PLANE, 0.5, adjusted=True)
    memory = process.memory(np.zeros(2), np.random.default_rng(1))
    memory.potential[0] = math.nan
    process.adjust(np.zeros(2), np.ones(2), memory, np.random.default_rng(1), np.zeros(20, np.int64))
    assert memory.acceptance.tolist() == [1.0, 0.0]


def test_a_bounce_in_a_gradient_that_is_not_finite_is_a_failure():
    process = discrete.SGBPS(PLANE, 0.5)
    memory = process.memory(np.zeros(2), np.random.default_rng(1))
    memory.due[0] = 1
    x, v = np.array([math.nan, 0.0]), np.array([0.0, 1.0])
    assert not process.event(x, v, memory, np.random.default_rng(1), np.zeros(20, np.int64))
