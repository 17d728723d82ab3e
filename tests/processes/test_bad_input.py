"""Bad input of samplers is one line that names the argument, before anything runs or compiles."""

from types import SimpleNamespace

import numpy as np
import pytest

import discrete
import pdmp
from discrete.curvature import local_law
from pdmp.flow import Linear
from pdmp.processes.gaussian_reference import DENSE
from pdmp.processes.zigzag import speeds_at
from tests.toys import Telegraph

pytestmark = pytest.mark.exact

RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 2))
Y = (RNG.random(30) < 0.5).astype(float)
MODEL = pdmp.models.LogisticRegression(X, Y)
BATCH = pdmp.gradients.Minibatch(MODEL, size=5)
SKEW = pdmp.models.SkewNormal(2.0)


class Modeless(pdmp.models.LogisticRegression):
    """Whose mode is not found."""

    def mode(self, x=None):
        return None


class Turned(pdmp.Model):
    """Whose gradient has another sign in one row, so that no search for a mode ends."""

    y: np.ndarray

    def __init__(self, y):
        super().__init__(dim=1, n_data=len(y))
        self.y = y

    @pdmp.compiled
    def term_potential(self, x, i):
        return 0.5 * (x[0] - self.y[i]) ** 2

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += (x[0] - self.y[i]) * (1.0 if i != 3 else -1.0)

    def mode(self, x=None):
        return None


CASES = {
    "BPS of a mini-batch": (lambda: pdmp.BPS(BATCH), TypeError, "pdmp.BPS needs the exact gradient.*Minibatch.*SBPS"),
    "generalised BPS of a mini-batch": (
        lambda: pdmp.GeneralisedBPS(BATCH),
        TypeError,
        "pdmp.GeneralisedBPS needs the exact gradient",
    ),
    "Zig-Zag of noise": (
        lambda: pdmp.ZigZag(pdmp.gradients.Noisy(MODEL, 1.0)),
        TypeError,
        "pdmp.ZigZag needs the exact gradient.*Minibatch and ControlVariate, got a Noisy. pdmp.SBPS",
    ),
    "BPS of a function": (
        lambda: pdmp.BPS(np.sum),
        TypeError,
        "`target` must be a pdmp.Model or one of pdmp.gradients, got",
    ),
    "negative refreshment": (lambda: pdmp.BPS(MODEL, refresh_rate=-1.0), ValueError, "`refresh_rate`.*-1.0"),
    "refreshment nan": (lambda: pdmp.BPS(MODEL, refresh_rate=np.nan), ValueError, "`refresh_rate`.*nan"),
    "unknown thinning": (lambda: pdmp.BPS(MODEL, thinning="magic"), ValueError, "`thinning`.*'magic'"),
    "no slope bound": (lambda: pdmp.BPS(SKEW, thinning="affine"), ValueError, "`curvature_bound`.*grid"),
    "no inversion": (
        lambda: pdmp.ZigZag(MODEL, thinning="inversion"),
        ValueError,
        "LogisticRegression.*affine_partial",
    ),
    "k negative": (lambda: pdmp.SBPS(BATCH, k=-1.0), ValueError, "`k`.*-1.0"),
    "slope mean": (lambda: pdmp.SBPS(BATCH, slope_mean="steep"), ValueError, "`slope_mean`.*'steep'"),
    "slope sd": (lambda: pdmp.SBPS(BATCH, slope_sd=0.0), ValueError, "`slope_sd`.*0.0"),
    "cap": (lambda: pdmp.SBPS(BATCH, cap=0.0), ValueError, "`cap`.*0.0"),
    "metric of SBPS": (
        lambda: pdmp.SBPS(BATCH, metric=pdmp.Metric(scales=[1.0, -1.0])),
        ValueError,
        "`scales` must be positive definite; entry 1 is -1",
    ),
    "SBPS with dependent batches": (
        lambda: pdmp.SBPS(pdmp.gradients.Minibatch(MODEL, 5, draw="reshuffle")),
        TypeError,
        'independent batches.*draw="reshuffle"',
    ),
    "SBPS with batches of one": (
        lambda: pdmp.SBPS(pdmp.gradients.Minibatch(MODEL, 1)),
        ValueError,
        "`size`.*at least 2",
    ),
    "step zero": (lambda: discrete.SGLD(BATCH, step=0.0), ValueError, "`step`.*positive.*0.0"),
    "step negative": (lambda: discrete.SGLD(BATCH, step=-1e-3), ValueError, "`step`.*positive.*-0.001"),
    "step a word": (lambda: discrete.SGLD(BATCH, step="small"), TypeError, "`step`.*'small'"),
    "provider a class": (
        lambda: discrete.SGLD(pdmp.models.Gaussian, step=0.1),
        TypeError,
        "`provider` must be a pdmp.Model or one of pdmp.gradients, got type",
    ),
    "scale zero": (lambda: discrete.SGBD(BATCH, scale=0.0), ValueError, "`scale`.*positive"),
    "scale of another shape": (lambda: discrete.SGBD(BATCH, scale=[1.0, 1.0, 1.0]), ValueError, r"`scale`.*\(2,\)"),
    "unknown estimator": (
        lambda: discrete.SGBD(BATCH, 0.1, estimator="best"),
        ValueError,
        "`estimator`.*vanilla.*'best'",
    ),
    "beta": (lambda: discrete.SGBD(BATCH, 0.1, beta=0.0), ValueError, "`beta`.*0.0"),
    "corrected with batches of one": (
        lambda: discrete.SGBD(pdmp.gradients.Minibatch(MODEL, 1), 0.1, estimator="corrected"),
        ValueError,
        "corrected.*`size`.*at least 2",
    ),
    "correlation": (lambda: discrete.SGRRLD(BATCH, 0.1, correlation=1.5), ValueError, "`correlation`.*1.5"),
    "step too small": (lambda: discrete.SGLD(BATCH, step=1e-320), ValueError, "`step` is too small to compute with"),
    "step too large": (lambda: discrete.SGLD(BATCH, step=10**400), ValueError, "`step` must be positive and finite"),
    "SBPS that stands still": (lambda: pdmp.SBPS(BATCH, cap=1e-150), ValueError, "`cap` must be at least .* 1e-150"),
    "batch without replacement": (
        lambda: pdmp.gradients.Minibatch(MODEL, 31, draw="distinct"),
        ValueError,
        "`size` must be at most the 30 data for draw='distinct', got 31",
    ),
    "anchor without a mode": (
        lambda: pdmp.gradients.ControlVariate(Modeless(X, Y), size=2),
        ValueError,
        "`anchor` must be given: .* Modeless did not converge",
    ),
    "mean without a mode": (
        lambda: pdmp.Boomerang(Modeless(X, Y)),
        ValueError,
        "`mean` must be given: .* Modeless did not converge",
    ),
    "anchor of a wrong gradient": (
        lambda: pdmp.gradients.ControlVariate(Turned(np.arange(30.0)), size=2),
        ValueError,
        "`add_term_gradient` of Turned is not the gradient of `term_potential`: coordinate 0 of datum 3",
    ),
    "mean of a wrong gradient": (
        lambda: pdmp.Boomerang(Turned(np.arange(30.0))),
        ValueError,
        "`add_term_gradient` of Turned is not the gradient of `term_potential`: coordinate 0 of datum 3",
    ),
    "Boomerang of many dimensions": (
        lambda: pdmp.Boomerang(pdmp.models.Gaussian(np.zeros(DENSE + 1), np.ones(DENSE + 1))),
        ValueError,
        f'`metric` must be given, or "diagonal", above {DENSE} dimensions; the model has {DENSE + 1}',
    ),
    "schedule that grows": (lambda: discrete.schedules.polynomial(1.0, 2.0, kappa=-1.0), ValueError, "`kappa`.*-1.0"),
    "schedule of no power": (lambda: discrete.schedules.polynomial(1.0, 2.0, kappa="a"), ValueError, "`kappa`.*'a'"),
    "speeds of a saddle": (
        lambda: speeds_at(SimpleNamespace(curvatures=lambda x: np.array([1.0, -4.0])), np.zeros(2)),
        ValueError,
        '`metric="auto"` needs positive curvatures where the run starts, and that of coordinate 1 is -4',
    ),
    "schedule": (lambda: discrete.schedules.polynomial(1.0, 0.0), ValueError, "`b`.*0.0"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line_that_names_the_argument(name):
    make, kind, message = CASES[name]
    with pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["Affine", "ConcaveConvex", "Hessian", "Lipschitz", "LocalHessian", "Polynomial"])
def test_bounds_that_do_not_know_the_rates(name):
    arguments = {"Hessian": [np.eye(2)], "Lipschitz": [1.0], "Polynomial": [3]}.get(name, [])
    with pytest.raises(ValueError, match=rf'pdmp.thinning.{name} (does not know the|needs .*) rates.*thinning="grid"'):
        getattr(pdmp.thinning, name)(*arguments).check(MODEL, None, Linear(), 1)


def test_an_automatic_step_of_a_flat_potential():
    flat = pdmp.models.from_function(lambda x: (0.0, np.zeros(2)), 2)
    with pytest.raises(ValueError, match="an automatic step needs a potential that is curved where the run starts"):
        local_law(pdmp.gradients.Full(flat), np.zeros(2))


@pytest.mark.parametrize("velocity", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_velocities_with_which_nothing_moves(velocity):
    class Stuck(Telegraph):
        def velocity(self, x, rng):
            return np.array(velocity)

    with pytest.raises(ValueError, match=r"Stuck starts with the velocities .* not all zero.*`velocity\(x, rng\)`"):
        pdmp.sample(Stuck(), time=1.0, initial=[0.0, 0.0], seed=1)


def test_steps_with_a_finite_sum_are_a_warning():
    with pytest.warns(UserWarning, match="finite sum"):
        discrete.schedules.polynomial(1.0, 1.0, kappa=1.5)


def test_a_schedule_that_turns_negative_is_an_error():
    class Falling(discrete.schedules.Schedule):
        @pdmp.compiled
        def step(self, k):
            return 0.5 - 0.1 * k

    with pytest.raises(ValueError, match="`step` must be positive.*at step 10"):
        discrete.SGLD(BATCH, step=Falling())
