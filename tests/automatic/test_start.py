"""Paths to a start: exact on Gaussians, past saddles and walls, not into a mode without mass; said where they part."""

import math
import warnings

import numpy as np
import pytest

import pdmp
from pdmp.automatic import preparing, start
from pdmp.automatic.start import Evaluations, Gaussian, Path, draw_by_importance, elbo, find_path, find_starts
from tests.automatic.helpers_start import GAUSSIAN, MEAN, PRECISION, function, rng, two_modes
from tests.targets import Schools

pytestmark = pytest.mark.exact

#: log ∫ exp(-U) of it.
LOG_Z = 1.5 * math.log(math.tau) - 0.5 * np.linalg.slogdet(PRECISION)[1] - GAUSSIAN.potential(MEAN)


@pytest.mark.parametrize("error", [ConnectionError("lost"), MemoryError("full"), RuntimeError("far"), KeyError("k")])
def test_what_a_function_lacks_is_no_wall(error):
    """A connection or memory is missed at any point: the search would begin elsewhere, without a word."""
    left = [math.inf]

    def potential(x):
        left[0] -= 1
        if left[0] <= 0:
            raise error
        return 0.5 * float(x @ x), x.copy()

    target = Evaluations(pdmp.models.from_function(potential, 2))
    for method, wall in ((target.potential, math.inf), (target.gradient, np.full(2, np.nan))):
        left[0] = math.inf
        assert np.all(np.isfinite(method(np.ones(2))))
        left[0] = 0
        if isinstance(error, (OSError, MemoryError)):
            with pytest.raises(type(error), match=str(error)):
                method(np.ones(2))
        else:
            np.testing.assert_array_equal(method(np.ones(2)), wall)


def test_the_first_step_on_a_gaussian_is_the_last():
    target = Evaluations(GAUSSIAN)
    before = target.count
    path = find_path(target, np.array([10.0, 10.0, -10.0]), rng())
    assert path.converged
    np.testing.assert_allclose(path.gaussian.centre, MEAN, rtol=1e-6)
    np.testing.assert_allclose(
        path.gaussian.root @ path.gaussian.root.T, np.linalg.inv(PRECISION), rtol=1e-5, atol=1e-8
    )
    # Twice a gradient and a Hessian; one ELBO, as the start is too far; the potential at the start, and after the step.
    assert target.count - before == 2 * (1 + 3) + start.DRAWS + 2


def test_elbo_of_the_target_itself_is_its_log_normalising_constant():
    exact = Gaussian(MEAN, np.linalg.cholesky(np.linalg.inv(PRECISION)))
    target = Evaluations(GAUSSIAN)
    assert elbo(target, exact, rng().normal(size=(8, 3))) == pytest.approx(LOG_Z, abs=1e-9)
    wide = Gaussian(exact.centre, 2.0 * exact.root)
    # E[|z|² / 2 - |2z|² / 2] = -3 d / 2, and log 2 for each dimension of volume; less two standard errors.
    z = rng(1).normal(size=(12_500, 3))
    assert elbo(target, wide, z) - LOG_Z == pytest.approx(3 * math.log(2.0) - 4.5, abs=0.14)
    assert elbo(target, wide, z[:8]) <= 3 * math.log(2.0) + LOG_Z - 1.5 * (z[:8] ** 2).sum() / 8


def test_elbo_is_lowered_by_twice_its_standard_error():
    tilted = function(lambda a, b: 0.5 * (a * a + b * b) + a, lambda a, b: (a + 1.0, b))
    standard = Gaussian(np.zeros(2), np.ones(2))
    z = np.array([[1.0, 0.3], [3.0, -0.2]])  # log p - log q is minus the first coordinate
    assert elbo(Evaluations(tilted), standard, z) == pytest.approx(-2.0 - 2.0 * 1.0 + math.log(math.tau))


def test_diagonal_roots():
    diagonal, full = Gaussian(MEAN, np.array([1.0, 2.0, 3.0])), Gaussian(MEAN, np.diag([1.0, 2.0, 3.0]))
    z = rng().normal(size=3)
    np.testing.assert_allclose(diagonal.at(z), full.at(z))
    np.testing.assert_allclose(diagonal.standardised(diagonal.at(z)), z)
    np.testing.assert_allclose(full.standardised(full.at(z)), z)
    np.testing.assert_allclose(full.standardised(np.array([full.at(z), full.at(2.0 * z)])), [z, 2.0 * z])
    assert diagonal.log_volume() == pytest.approx(full.log_volume())


@pytest.mark.parametrize("x", [[1e-3, 1.0], [-1e-3, 0.5], [0.3, 3.0], [0.0, 0.0]])
def test_a_saddle_is_left_downhill(x):
    double_well = function(
        lambda a, b: 4.0 * (a * a - 1.0) ** 2 + 0.5 * b * b, lambda a, b: (16.0 * a * (a * a - 1.0), b)
    )
    path = find_path(Evaluations(double_well), np.array(x), rng())
    assert path.converged
    np.testing.assert_allclose(path.gaussian.centre, [-1.0 if x[0] <= 0.0 else 1.0, 0.0], atol=0.05)
    np.testing.assert_allclose(path.gaussian.root @ path.gaussian.root.T, np.diag([1 / 32, 1.0]), atol=0.01)


def test_a_path_that_cannot_go_on_keeps_what_it_has_found():
    """At the mode, where the first step leads, gradients nearby cannot be computed; the first Gaussian is the law."""
    hole = function(
        lambda a, b: 0.5 * (a * a + b * b),
        lambda a, b: (math.nan, math.nan) if 1e-6 < abs(a) < 1e-3 else (a, b),
        initial=[3.0, -1.0],
    )
    path = find_path(Evaluations(hole), hole.initial, rng())
    assert not path.converged
    np.testing.assert_allclose(path.gaussian.centre, 0.0, atol=1e-6)
    np.testing.assert_allclose(path.gaussian.root @ path.gaussian.root.T, np.eye(2), rtol=1e-6, atol=1e-6)


def test_a_path_enters_an_earlier_one_only_where_its_gaussian_is_right():
    target = Evaluations(GAUSSIAN)
    first = find_path(target, MEAN + 1.0, rng())
    spent = target.count
    assert find_path(target, MEAN + first.gaussian.root @ np.ones(3), rng(1), (first,)) is first
    assert target.count == spent + 1
    wrong = first._replace(elbo=first.elbo + 2.0 * start.NATS)  # what the path claims is not what x shows
    assert find_path(target, MEAN + first.gaussian.root @ np.ones(3), rng(1), (wrong,)) is not wrong
    far = MEAN + first.gaussian.root @ np.full(3, 10.0)
    target.count = 0
    assert find_path(target, far, rng(1), (Path(None, -math.inf, False), first)) is first
    assert target.count == 1 + 4 + 1  # the potential, gradient and Hessian, and the potential after the step


@pytest.mark.parametrize(("lost", "wide"), [(1, [False] * 3), (3, [False] * 3 + [True] * 3)])
def test_all_paths_are_taken_once_more_where_none_led_anywhere(lost, wide, monkeypatch):
    """Not where the one from the initial point alone did not."""
    taken = []

    def path(*given):
        taken.append(given[-1])
        return find_path(*given) if len(taken) > lost else Path(None, -math.inf, False)

    monkeypatch.setattr(start, "find_path", path)
    find_starts(GAUSSIAN, 2, rng())
    assert taken == wide


@pytest.mark.parametrize("away", [4.9, -4.9, 5.1, -5.1])
def test_up_to_five_nats_apart_a_path_is_entered_and_used(away):
    """Of its ELBO, at a typical point: |z|² up to d + 3 √2d, which is 8."""
    known = Path(Gaussian(np.array([1.0, -2.0]), np.array([0.5, 3.0])), 7.0, True)
    for square, is_typical in ((7.9, True), (8.1, False)):
        z = math.sqrt(square) * np.array([0.6, -0.8])
        potential = 0.5 * square + known.gaussian.log_volume() - known.elbo - away
        met = start.entered((Path(None, -math.inf, False), known), known.gaussian.at(z), potential)
        assert (met is known) == (is_typical and abs(away) < 5.0) and (met is None or met is known)
    paths = [known._replace(elbo=value) for value in (7.0 - abs(away), 7.0, -math.inf)]
    assert start._behind(paths).tolist() == [abs(away) > 5.0, False, True]


@pytest.mark.parametrize(
    ("fall", "narrower", "is_one"),
    [
        (21.0, (1_100.0, 40.0), True),  # the volume shrinks by 10.7 nats
        (21.0, (40.0, 1_100.0), True),
        (21.0, (1_100.0, 30.0), False),  # by 10.4, less than half of the fall
        (21.0, (990.0, 45.0), False),
        (20.1, (1_100.0, 40.0), True),
        (19.9, (1_100.0, 40.0), False),
    ],
)
def test_what_is_a_neck(fall, narrower, is_one):
    """Where U falls by more than 20, the volume by more than half of that, and one width more than a thousand times."""
    wide = Gaussian(np.zeros(2), np.array([2.0, 0.5]))
    narrow = Gaussian(np.ones(2), wide.root / narrower)
    found = start._neck((np.array([3.0, -1.0]), wide, 100.0), np.array([2.0, -7.0]), narrow, 100.0 - fall)
    assert (found is not None) == is_one
    if is_one:
        assert found == (1, -7.0, pytest.approx(fall), pytest.approx(1_100.0))


def test_later_paths_are_not_much_longer_than_the_first(monkeypatch):
    """U = -log(1 + a) has no mode: each Newton step doubles 1 + a."""
    slope = function(
        lambda a, b: -math.log1p(a) + 0.5 * b * b if a > -1.0 else math.inf, lambda a, b: (-1.0 / (1.0 + a), b)
    )
    monkeypatch.setattr(start, "PATIENCE", 1_000)
    looks, look = [], start._Newton.look
    monkeypatch.setattr(start._Newton, "look", lambda *a: looks.append(1) or look(*a))
    find_path(Evaluations(slope), np.array([0.0, 1.0]), rng())
    alone = len(looks)
    looks.clear()
    short = Path(Gaussian(np.array([0.0, 1e3]), np.ones(2)), 0.0, True, steps=2)
    found = find_path(Evaluations(slope), np.array([0.0, 1.0]), rng(), (short,))
    assert len(looks) == 3 * 2 + 20 < alone and not found.converged


@pytest.mark.parametrize(("dense", "walk", "steps"), [(True, start._Newton, 3), (False, start._LimitedMemory, 30)])
def test_steps_without_a_hessian_may_be_ten_times_as_many(dense, walk, steps, monkeypatch):
    slope = function(
        lambda a, b: -math.log1p(a) + 0.5 * b * b if a > -1.0 else math.inf, lambda a, b: (-1.0 / (1.0 + a), b)
    )
    monkeypatch.setattr(start, "PATIENCE", 1_000)
    monkeypatch.setattr(start, "STEPS", 3)
    looks, look = [], walk.look
    monkeypatch.setattr(walk, "look", lambda *a: looks.append(1) or look(*a))
    find_path(Evaluations(slope), np.array([0.0, 1.0]), rng(), dense=dense)
    assert len(looks) == steps


def test_most_paths_that_lead_nowhere_are_followed_by_others(monkeypatch):
    ends = [Path(Gaussian(MEAN, np.ones(3)), -elbo, done) for elbo, done in ((0, True), (99, False), (99, False))]
    for paths, wanted in (((0, 1, 1), 5), ((0, 0, 1), 3), ((0, 0, 2), 3)):
        found = iter([ends[k] for k in paths] + [ends[0]] * 2)
        taken = []
        monkeypatch.setattr(start, "find_path", lambda *a, f=found, t=taken: t.append(1) or next(f))
        find_starts(GAUSSIAN, 2, rng())
        assert len(taken) == wanted


def test_a_gaussian_in_many_dimensions():
    precision = np.geomspace(1e-2, 1e2, 300)
    model = pdmp.models.Gaussian(np.full(300, 3.0), precision)
    path = find_path(Evaluations(model), np.zeros(300), rng(), dense=False)
    assert path.converged
    np.testing.assert_allclose(path.gaussian.root**2, 1.0 / precision, rtol=1e-4)
    assert np.abs(path.gaussian.standardised(np.full(300, 3.0))).max() < 0.2
    log_z = 150.0 * math.log(math.tau) - 0.5 * np.log(precision).sum() - model.potential(np.full(300, 3.0))
    assert path.elbo == pytest.approx(log_z, abs=0.1)


@pytest.mark.parametrize("seed", range(4))
def test_chains_do_not_start_in_a_mode_without_mass(seed):
    """The density of the centred eight schools has no bound for log τ → -∞."""
    y, s = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    model = Schools(y, s, centred=True)
    narrow = np.append(np.full(9, 7.9), -16.0)
    found = find_starts(model, 4, rng(seed))
    assert model.potential(narrow) < min(model.potential(x) for x in found.points) - 50.0
    assert found.points[:, -1].min() > -5.0


def test_paths_that_end_behind_are_not_used_and_no_alarm():
    """A mode with a 3,000th of the mass."""
    found = find_starts(two_modes(-8.0, apart=3.0), 4, rng(3))
    lower = found.elbos < found.elbos.max() - start.NATS
    assert 0 < lower.sum() < len(found.elbos) == 9
    assert found.points[:, 0].min() > 0.0
    pdmp.auto(two_modes(-8.0, apart=3.0), seed=2)  # a warning is an error


def narrowing(a, b):
    """b ~ N(0, exp(a)), the density of a growing as a falls: none, and nothing holds a path up."""
    return 0.5 * b * b * math.exp(-2.0 * a) + 1.2 * a


def narrowing_gradient(a, b):
    square = b * b * math.exp(-2.0 * a)
    return 1.2 - square, b * math.exp(-2.0 * a)


def test_a_neck_is_said(monkeypatch):
    model = function(narrowing, narrowing_gradient, initial=[0.0, 0.5])
    path = find_path(Evaluations(model), np.array([0.0, 0.5]), rng())
    neck = path.neck
    assert not path.converged and neck.coordinate == 0 and neck.value == path.neck.value < -math.log(start.SHRINKAGE)
    assert neck.fall > start.FALL and neck.shrinkage > start.SHRINKAGE
    other = path._replace(neck=None)
    paths = (other._replace(elbo=path.elbo - 1.0), path)
    starts = start.Starts(np.zeros((1, 2)), path.gaussian, paths, np.zeros(2), 1, np.zeros(1, bool))
    said = starts.warning(["log(sigma)", "b"])
    assert said.startswith(f"the density has a neck: along log(sigma), down to {neck.value:.3g}, log p grew by")
    assert "`initial=`" in said and "non-centred" in said
    assert starts._replace(paths=(path._replace(elbo=path.elbo - 1.0), other)).warning(["", ""]) is None
    monkeypatch.setattr(preparing, "find_starts", lambda *a: starts)
    monkeypatch.setattr(preparing, "learn_metric", lambda *a: 1 / 0)
    with pytest.warns(UserWarning, match=r"the density has a neck: along x\[0\]"), pytest.raises(ZeroDivisionError):
        pdmp.auto(GAUSSIAN, seed=1)


def test_chains_start_elsewhere_than_down_a_neck(monkeypatch):
    """Though its ELBO is the best; where every path led down there, they start there, and that is said."""
    down = Path(Gaussian(np.array([-9.0, 0.0]), np.full(2, 1e-4)), 50.0, False, neck=start.Neck(0, -9.0, 30.0, 1e4))
    wide = Path(Gaussian(np.array([4.0, 0.0]), np.ones(2)), -3.0, True, 3)
    low = Path(Gaussian(np.array([40.0, 0.0]), np.ones(2)), -30.0, True, 3)
    paths = iter([down, wide, down, low, wide, wide, wide])
    monkeypatch.setattr(start, "find_path", lambda *a: next(paths))
    flat = function(lambda a, b: 0.0, lambda a, b: (0.0, 0.0))
    found = find_starts(flat, 3, rng(1))
    assert np.abs(found.points[:, 0] - 4.0).max() < 5.0 and found.gaussian is wide.gaussian
    assert found.converged.all()
    said = found.warning(["log(sigma)", "b"])
    assert said.startswith("the density has a neck: along log(sigma), down to -9, log p grew by 30 while widths shrank")
    assert "Chains start elsewhere and do not visit it" in said and "do not leave it" not in said
    paths = iter([down] * 7)
    found = find_starts(flat, 3, rng(1))
    assert np.abs(found.points[:, 0] + 9.0).max() < 1e-2 and not found.converged.any()
    paths = iter([down, wide, wide._replace(converged=False), low] + 3 * [wide])
    np.testing.assert_array_equal(find_starts(flat, 3, rng(1)).converged[:2], [True, False])
    assert "Chains that start there do not leave it: give `initial=` elsewhere" in found.warning(["", ""])


def test_where_a_path_converges_there_is_no_neck():
    """From sd 1 down to 1e-5, but to a mode."""
    narrow = pdmp.models.Gaussian(np.zeros(2), [1e10, 1e10])
    first = Gaussian(np.ones(2), np.ones(2))
    assert start._neck((np.ones(2), first, 30.0), np.zeros(2), Gaussian(np.zeros(2), np.full(2, 1e-5)), 0.0) is not None
    path = find_path(Evaluations(narrow), np.full(2, 1e-3), rng())
    assert path.converged and path.neck is None and path.mode is not None


def test_the_model_s_own_point_competes():
    """All dispersed points are in a narrow, bounded well; what the model says is a hundred nats better."""
    well = function(
        lambda a, b: min(0.5 * (a * a + b * b), 50.0 + 50.0 * ((a - 4.0) ** 2 + (b - 4.0) ** 2) - 100.0),
        lambda a, b: (
            (a, b)
            if 0.5 * (a * a + b * b) < 50.0 * ((a - 4.0) ** 2 + (b - 4.0) ** 2) - 50.0
            else (100.0 * (a - 4.0), 100.0 * (b - 4.0))
        ),
    )
    well.initial = np.array([4.0, 4.0])
    found = find_starts(well, 2, rng(2))
    assert np.argmax(found.elbos) == 0
    np.testing.assert_allclose(found.points, 4.0, atol=0.5)


def test_where_the_user_says():
    model = two_modes(0.0, apart=20.0)
    right = find_starts(model, 3, rng(), initial=np.array([[18.0, 0.0], [21.0, 1.0], [20.0, -1.0]]))
    assert right.points[:, 0].min() > 10.0 and len(right.elbos) == 3
    left = find_starts(model, 3, rng(), initial=[-20.0, 0.0])
    assert left.points[:, 0].max() < -10.0 and len(left.elbos) == 4
    with pytest.raises(ValueError, match=r"`initial` must have shape \(2,\)"):
        find_starts(model, 3, rng(), initial=np.zeros(4))


def wall(fails):
    """A normal law cut off at 0, the potential `fails` beyond."""

    def potential(a, b):
        return 0.5 * (a - 1.0) ** 2 + 0.5 * b * b if a > 0.0 else fails()

    return function(potential, lambda a, b: (a - 1.0, b), initial=[1.0, 0.0])


class WithoutGradient(pdmp.Model):
    @pdmp.compiled
    def potential(self, x):
        return 0.0

    @pdmp.compiled
    def add_gradient(self, x, out):
        out[0] += math.nan


@pytest.mark.parametrize("fails", [lambda: math.inf, lambda: math.nan, lambda: math.log(-1.0)])
def test_points_of_zero_density(fails):
    model = wall(fails)
    assert Evaluations(model).potential(np.array([-1.0, 0.0])) == math.inf
    found = find_starts(model, 6, rng(4))
    assert found.points[:, 0].min() > 0.0
    picks = [draw_by_importance(Evaluations(model), Gaussian(np.zeros(2), np.ones(2)), rng(k)) for k in range(30)]
    assert min(x[0] for x in picks) > 0.0


def test_a_draw_is_taken_with_probability_proportional_to_p_over_q():
    class Fixed:
        def standard_normal(self, size):
            return z

        def choice(self, n, p):
            self.p = p
            return n - 1

    z, fixed = np.random.default_rng(0).normal(size=(start.CANDIDATES, 2)), Fixed()
    target = Evaluations(pdmp.models.Gaussian(np.zeros(2), np.ones(2)))
    picked = draw_by_importance(target, Gaussian(np.ones(2), np.full(2, 2.0)), fixed)
    np.testing.assert_array_equal(picked, 1.0 + 2.0 * z[-1])
    ratios = np.exp(0.5 * (z**2).sum(axis=1) - 0.5 * ((1.0 + 2.0 * z) ** 2).sum(axis=1))
    np.testing.assert_allclose(fixed.p, ratios / ratios.sum(), rtol=1e-12)


def straight(slope, centre, dim, initial=None):
    """A Laplace density: second derivatives are zero but at its kinks."""
    return pdmp.models.from_function(
        lambda x: (slope * float(np.abs(x - centre).sum()), slope * np.sign(x - centre)), dim, initial=initial
    )


@pytest.mark.parametrize(
    ("slope", "centre", "initial"),
    [(1.0, 0.0, None), (1.0, 0.0, [0.3, -0.2]), (1e4, 5.0, None), (1e-3, 0.0, [0.5, 0.5]), (100.0, 0.3, None)],
)
@pytest.mark.parametrize("seed", range(3))
def test_paths_of_densities_with_kinks(slope, centre, initial, seed):
    """Starts in the bulk, a Gaussian of about the width of the density; narrower where the path begins on the kink."""
    found = find_starts(straight(slope, centre, 2, initial), 4, rng(seed))
    assert np.abs(found.points - centre).max() < 20.0 / slope
    width = np.sqrt(np.diag(found.gaussian.root @ found.gaussian.root.T)) * slope
    assert np.all((width > (1e-3 if initial is None and centre == 0.0 else 0.2)) & (width < 5.0))


@pytest.mark.parametrize("flat", [[3.0], [0.0, 5.0, 0.0], [0.5, 40.0]])
@pytest.mark.parametrize("seed", range(3))
def test_paths_of_densities_that_are_flat_around_the_start(flat, seed):
    """Of the width of the plateau, not of a Gaussian whose second derivatives are those there, 0."""

    def both(x):
        beyond = np.maximum(np.abs(x) - flat, 0.0)
        return 0.5 * float(beyond @ beyond), beyond * np.sign(x)

    found = find_starts(pdmp.models.from_function(both, len(flat)), 4, rng(seed))
    width = np.array(flat) + 1.0
    assert np.all(np.abs(found.points) < width + 4.0) and np.abs(found.gaussian.centre / width).max() < 1.0
    ratio = found.gaussian.widths() / width
    assert np.all((ratio > 0.02) & (ratio < 2.0))  # as wide as the edge of a wide plateau: the warm-up learns the rest


def test_a_median_regression_starts_at_its_lines():
    """Kinks across the axes, of 51 data: of slope 2 and intercept 1, each known to about 0.2."""
    z = np.linspace(-1.0, 1.0, 51)
    y = 1.0 + 2.0 * z + 0.3 * np.sin(np.arange(51.0) ** 2)

    def both(b):
        signs = np.sign(y - b[0] - b[1] * z)
        return float(np.abs(y - b[0] - b[1] * z).sum()), -np.array([signs.sum(), signs @ z])

    for seed in range(3):
        found = find_starts(pdmp.models.from_function(both, 2), 4, rng(seed))
        assert np.abs(found.points - [1.0, 2.0]).max() < 0.6


def test_no_density_at_all():
    nothing = wall(lambda: math.inf)
    nothing.initial = np.array([-50.0, 0.0])
    with pytest.raises(ValueError, match="not near any point of positive density"):
        find_starts(nothing, 2, rng())
    with pytest.raises(ValueError, match="looks like a density"):
        find_starts(WithoutGradient(2), 2, rng())


def test_a_mistake_in_the_model_is_not_taken_for_a_wall():
    def broken(a, b):
        raise KeyError("mistake")

    model = wall(lambda: math.inf)
    model.callback.function = lambda x: broken(*x)
    with pytest.raises(KeyError, match="mistake"):
        Evaluations(model)


def test_a_search_is_silent_where_numbers_overflow():
    """What NumPy says of a function of the user's is for places where a run goes."""
    model = pdmp.models.from_function(lambda x: (float(np.exp(x).sum() - x.sum()), np.exp(x) - 1.0), 2)
    target = Evaluations(model)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert target.potential(np.array([1e3, 0.0])) == math.inf
        assert target.gradient(np.array([1e3, 0.0])).tolist() == [math.inf, 0.0]
    assert heard == []
