"""Coordinates in which heavy tails are light: a bijection whose Jacobian is exact, learnt where tails are powers."""

import numpy as np
import pytest
from scipy import stats

import pdmp
from pdmp.automatic import metric
from pdmp.automatic.tails import light_tailed
from pdmp.metric import from_root
from pdmp.models.light_tails import LightTailed, Tail
from tests.checks import assert_unbiased
from tests.models.helpers_propriety import student, target

pytestmark = pytest.mark.exact

ROOT = np.array([[0.6, 0.0], [-0.9, 1.7]])


def moved(model):
    """A pair in another order, one by itself, and two that stay."""
    tails = [
        Tail(np.array([3, 1]), 1.3, np.array([0.5, -0.2]), ROOT),
        Tail(np.array([4]), 0.7, np.array([0.1]), np.array([[1.7]])),
    ]
    return LightTailed(model, tails)


def test_there_and_back_with_the_jacobian_and_its_gradient():
    model = student(1.5, 5)
    here = moved(model)
    z = 2.0 * np.random.default_rng(1).normal(size=(4, 5))
    x = here.natural_points(z)
    np.testing.assert_array_equal(x[:, [0, 2]], z[:, [0, 2]])
    np.testing.assert_allclose(here.standardised(x), z, rtol=1e-12, atol=1e-12)
    for size in (1e60, 1e-60):  # around the centre
        away = np.zeros((1, 5))
        away[0, [3, 1, 4]] = size
        back = here.natural_points(here.standardised(away))
        np.testing.assert_allclose(back[0, [3, 1, 4]], away[0, [3, 1, 4]], rtol=1e-12, atol=1e-15)
    step, unit, constants = 1e-6, np.eye(5), []
    for one, there in zip(z, x, strict=True):
        around = here.natural_points(np.concatenate([one + step * unit, one - step * unit]))
        volume = np.linalg.slogdet((around[:5] - around[5:]) / (2.0 * step))[1]
        constants.append(here.potential(one) - model.potential(there) + volume)
        slope = [(here.potential(one + step * u) - here.potential(one - step * u)) / (2.0 * step) for u in unit]
        np.testing.assert_allclose(here.gradient(one), slope, rtol=1e-6, atol=1e-7)
        out = np.full(5, 2.0)
        assert here.native.potential_and_gradient(one, out) == here.potential(one)
        np.testing.assert_allclose(out - 2.0, here.gradient(one), rtol=1e-12, atol=1e-12)
    # That of y, without det L: 0.6 · 1.7 · 1.7.
    np.testing.assert_allclose(constants, np.log(0.6 * 1.7 * 1.7), atol=1e-7)
    assert here.omitted() == model.omitted()


def test_beyond_all_numbers_the_density_is_zero():
    here = moved(student(1.5, 5))
    far, out = np.array([0.0, 0.0, 0.0, 0.0, 40.0]), np.zeros(5)
    assert here.potential(far) == np.inf and np.all(np.isnan(here.gradient(far)))
    assert here.native.potential_and_gradient(far, out) == np.inf and np.all(np.isnan(out))


@pytest.mark.parametrize(("nu", "d"), [(0.7, 1), (1.0, 2), (1.5, 5), (3.0, 4)])
def test_far_out_a_tail_is_that_of_a_normal_law(nu, d):
    """∂U/∂r is r there, up to the slope of (d + 1) log r, and no centre or shape changes that."""
    model = student(nu, d)
    here = LightTailed(model, [Tail(np.arange(d), nu, np.full(d, 0.3), np.eye(d) + 0.2 * np.tri(d))])
    r = 20.0
    z = r * np.ones(d) / np.sqrt(d)
    assert here.gradient(z) @ z / r == pytest.approx(r, abs=(d + 2.0) / r)


def draws(law, n, d, seed=3):
    return law.rvs(size=(n, d), random_state=np.random.default_rng(seed))


def mixed():
    """Coordinates 2 and 0 share a tail, 1 and 3 are normal, 4 has one of its own, to one side."""

    def gradient(x):
        c = 3.2 / (1.2 + x[0] ** 2 + 4.0 * x[2] ** 2)
        one = 4.0 * x[4] / (3.0 + x[4] ** 2) if x[4] > 0.0 else x[4]
        return np.array([c * x[0], x[1] - 0.5 * x[3], 4.0 * c * x[2], x[3] - 0.5 * x[1], one])

    return target(lambda x: 0.0, gradient, 5)


class Counted:
    """A model whose gradients are counted."""

    def __init__(self, model):
        self.model, self.dim, self.count = model, model.dim, 0

    def gradient(self, x):
        self.count += 1
        return self.model.gradient(x)

    def potential(self, x):
        return self.model.potential(x)


@pytest.mark.parametrize(
    ("make", "groups", "indices"),
    [
        (lambda: student(1.5, 5), [[0, 1, 2, 3, 4]], [1.5]),
        (lambda: student(2.5, 3, together=False), [[0], [1], [2]], [2.5, 2.5, 2.5]),
        (mixed, [[0, 2], [4]], [1.2, 3.0]),
        (lambda: student(30.0, 2), None, None),
        (lambda: pdmp.models.Gaussian(np.zeros(3), np.ones(3)), None, None),
    ],
)
def test_which_coordinates_share_a_tail(monkeypatch, make, groups, indices):
    model = make()
    x = draws(stats.t(1.5), 200, model.dim)
    counted = Counted(model)
    monkeypatch.setattr(LightTailed, "__init__", lambda self, model, tails: setattr(self, "tails", tails))
    found, spent = light_tailed(counted, x)
    assert spent == counted.count > 0
    if groups is None:
        assert found is None
        return
    assert [list(tail.members) for tail in found.tails] == groups
    # As far as a power is one at a million widths.
    np.testing.assert_allclose([tail.index for tail in found.tails], indices, rtol=1e-3)


def test_without_a_point_far_out_no_gradient_is_spent():
    counted = Counted(student(1.5, 2))
    assert light_tailed(counted, draws(stats.uniform(-1.0, 2.0), 100, 2)) == (None, 0)
    assert light_tailed(counted, np.zeros((100, 2))) == (None, 0) and counted.count == 0


def test_centre_and_shape_are_those_of_the_law():
    """Of 4,000 draws of a multivariate t they are off by 1 / √4000 or so; medians of |z| are those of a normal law."""
    rng, nu = np.random.default_rng(5), 1.5
    root, centre = np.array([[2.0, 0.0, 0.0], [1.0, 0.5, 0.0], [-3.0, 0.4, 0.3]]), np.array([10.0, -5.0, 0.0])
    y = rng.normal(size=(4_000, 3)) * np.sqrt(nu / rng.chisquare(nu, size=(4_000, 1)))
    shape = np.linalg.inv(root @ root.T)
    model = target(lambda x: 0.0, lambda x: 4.5 * shape @ (x - centre) / (nu + (x - centre) @ shape @ (x - centre)), 3)
    found, _ = light_tailed(model, centre + y @ root.T)
    np.testing.assert_allclose(found.centre, centre, atol=0.2)
    learnt = found.roots.reshape(3, 3)
    ratio = np.linalg.solve(root, learnt)
    np.testing.assert_allclose(ratio / ratio[0, 0], np.eye(3), atol=0.1)
    z = found.standardised(centre + y @ root.T)
    assert np.median((z**2).sum(axis=1)) == pytest.approx(stats.chi2.median(3), rel=0.06)
    # And what is beyond is as much as of a normal law.
    assert np.mean((z**2).sum(axis=1) > stats.chi2.isf(0.01, 3)) == pytest.approx(0.01, abs=0.007)


def test_paths_in_them_have_the_law_of_the_model():
    """Whatever index, centre and shape are: a Cauchy law of a pair, a tenth of it beyond 10 widths."""
    model = student(1.0, 2)
    process = pdmp.HMC(model, step=1.2, duration=1.6, metric=from_root(np.array([0.8, 1.1])))
    process.coordinates = LightTailed(model, [Tail(np.arange(2), 1.4, np.array([0.3, -0.2]), ROOT)])
    start = [[0.5, -1.0], [3.0, 0.2], [-1.0, 1.0], [0.1, 0.1]]
    run = pdmp.sample(process, initial=start, chains=4, steps=310, seed=2, progress=False)
    x = np.concatenate([path.positions[11:] for path in run.trajectories]).reshape(40, 30, 2)
    shares = [np.mean(np.hypot(*x.T) > np.sqrt(2.0 * stats.f.isf(p, 2, 1)), axis=0) for p in (0.5, 0.1)]
    assert_unbiased(np.transpose(shares), [0.5, 0.1], resolution=[0.35, 0.17])


def test_the_warm_up_learns_them(monkeypatch):
    """Twice, and then the metric in them; the run says what was learnt, and comes out on the tails."""
    monkeypatch.setattr(metric, "FIRST_WINDOW", 60)
    monkeypatch.setattr(metric, "POINTS", 60)
    windows, kept = [], metric.run_window
    monkeypatch.setattr(metric, "run_window", lambda *args: windows.append(args[0].coordinates) or kept(*args))
    process = pdmp.auto(student(1.0, 2), seed=3)
    coordinates = process.coordinates
    assert windows[0] is None and isinstance(coordinates, LightTailed) and windows[-1] is coordinates
    assert len({id(one) for one in windows if one is not None}) == 2
    np.testing.assert_allclose(coordinates.rates, [1.0], rtol=1e-3)
    assert "coordinates in which tails of index 1 are light, learnt in" in process.prepared.choice
    with pytest.warns(UserWarning, match="no variance nor a mean"):
        run = pdmp.sample(process, gradients=900, chains=4, seed=4, progress=False)
    x = run.draws()
    beyond = np.mean(np.hypot(*x.reshape(-1, 2).T) > np.sqrt(2.0 * stats.f.isf(0.01, 2, 1)))
    assert 0.003 < beyond < 0.03
