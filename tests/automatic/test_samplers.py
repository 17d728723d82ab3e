"""`pdmp.auto(model, sampler=...)`: what each sampler gets of the metric, and that it sees the target through it.

The metric is given, with a condition number of 1.8e4: L = (100, 0; 60, 1), Σ = L Lᵀ = (10000, 6000; 6000, 3601) and
Σ⁻¹ = (0.3601, -0.6; -0.6, 1).
"""

import numpy as np
import pytest
import scipy.sparse

import discrete
import pdmp
from pdmp.automatic import preparing
from pdmp.automatic.metric import Metric
from pdmp.automatic.start import Gaussian
from pdmp.metric import LowRank, covariance_of, from_root
from pdmp.process import Process, takers_of_metrics
from tests.targets import LOGISTIC, Plane

pytestmark = pytest.mark.exact

MEAN, ROOT = np.array([3.0, -2.0]), np.array([[100.0, 0.0], [60.0, 1.0]])
COVARIANCE, PRECISION = np.array([[10_000.0, 6_000.0], [6_000.0, 3_601.0]]), np.array([[0.3601, -0.6], [-0.6, 1.0]])
#: √(Σⱼⱼ / (Σ⁻¹)ⱼⱼ)
VARIANCES = np.array([166.64352, 60.00833])
MODEL = pdmp.models.Gaussian(MEAN, PRECISION)
POINTS = MEAN + np.array([[0.1, 0.2], [-0.3, 0.0], [1.0, 0.5], [0.0, -1.0]]) @ ROOT.T


def metric_of(root, mean=MEAN, points=POINTS):
    return Metric(Gaussian(mean, root), 0.0, points, 0.9, False, from_root(root), 0.0, 1, 40, points)


@pytest.fixture
def known(monkeypatch):
    """The warm-up learns the metric above, whatever the model."""
    monkeypatch.setattr(preparing, "learn_metric", lambda *arguments: metric_of(ROOT))


def covariance_of_metric(mass):
    return mass.transform(mass.transposed(np.eye(2))) if mass.root.ndim == 1 else mass.root @ mass.root.T


@pytest.mark.parametrize(
    "sampler", [pdmp.BPS, pdmp.GeneralisedBPS, pdmp.ForwardEventChain, pdmp.DirectionalBPS, pdmp.HMC]
)
def test_masses(known, sampler):
    process = pdmp.auto(MODEL, sampler=sampler, seed=1)
    assert type(process) is sampler
    np.testing.assert_allclose(covariance_of_metric(process.metric), COVARIANCE)
    np.testing.assert_array_equal(process.prepared.starts, POINTS)
    assert process.prepared.choice.startswith(
        ("Hamiltonian", f"{sampler.__name__} in a metric learnt by windows of HMC: covar")
    )
    assert process.prepared.gradients > 40
    small = pdmp.auto(MODEL, sampler=sampler, metric="diagonal", seed=1)
    np.testing.assert_allclose(small.metric.root, np.sqrt(VARIANCES), rtol=1e-6)
    assert "variances" in small.prepared.choice


def test_zigzag(known):
    process = pdmp.auto(MODEL, sampler=pdmp.ZigZag, seed=1)
    v = process.velocity(MEAN, np.random.default_rng(0))
    assert abs(v[0]) == 100.0 and abs(abs(v[1]) - 60.0) == pytest.approx(1.0)
    # Of a quadratic target the rates rise by the derivative itself: sᵢ (LᵀH L s)ᵢ = 1 in this metric.
    np.testing.assert_allclose(process.rates.middle, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(process.rates.spread, 0.0, atol=1e-9)
    small = pdmp.auto(MODEL, sampler=pdmp.ZigZag, metric="diagonal", seed=1)
    np.testing.assert_allclose(small.speed, np.sqrt(VARIANCES), rtol=1e-6)
    given = pdmp.auto(MODEL, sampler=pdmp.ZigZag, options={"metric": pdmp.Metric(scales=[2.0, 3.0])}, seed=1)
    np.testing.assert_array_equal(given.speed, [2.0, 3.0])


def test_references(known):
    process = pdmp.auto(MODEL, sampler=pdmp.Boomerang, options={"refresh_rate": 0.2}, seed=1)
    np.testing.assert_array_equal(process.mean, MEAN)
    np.testing.assert_allclose(process.reference.covariance, COVARIANCE)
    np.testing.assert_allclose(process.reference.precision, PRECISION)
    assert process.refresh_rate == 0.2
    process = pdmp.auto(MODEL, sampler=pdmp.FactorisedBoomerang, seed=1)
    np.testing.assert_allclose(process.reference.sd**2, VARIANCES, rtol=1e-6)
    other = pdmp.auto(MODEL, sampler=pdmp.Boomerang, options={"mean": [0.0, 0.0]}, seed=1)
    np.testing.assert_array_equal(other.mean, 0.0)


def test_spike_and_slab(known):
    model = pdmp.models.LinearGaussian([[1.0, 0.4], [0.2, 1.1], [-0.6, 0.5]], [1.2, 0.1, -0.4])
    process = pdmp.Sticky(pdmp.auto(model, sampler=pdmp.ZigZag, metric="diagonal", seed=1), inclusion=0.5)
    assert process.prepared.starts is not None and process.prepared.starts is process.inner.prepared.starts
    np.testing.assert_allclose(process.inner.speed, np.sqrt(VARIANCES), rtol=1e-6)
    process = pdmp.Sticky(pdmp.auto(model, sampler=pdmp.Boomerang, metric="diagonal", seed=1), inclusion=0.5)
    np.testing.assert_allclose(process.inner.reference.sd**2, VARIANCES, rtol=1e-6)


def test_noisy_gradients(known):
    noisy = pdmp.gradients.Noisy(MODEL, 0.5)
    process = pdmp.auto(MODEL, sampler=pdmp.SBPS, options={"provider": noisy}, seed=1)
    np.testing.assert_allclose(process.metric.root, np.sqrt(VARIANCES), rtol=1e-6)
    assert process.provider is noisy
    data = pdmp.models.LinearGaussian([[1.0, 0.4], [0.2, 1.1], [-0.6, 0.5]], [1.2, 0.1, -0.4])
    batch = pdmp.gradients.ControlVariate(data, 1)
    process = pdmp.auto(data, sampler=pdmp.ZigZag, options={"provider": batch}, seed=1)
    np.testing.assert_allclose(process.speed, np.sqrt(VARIANCES), rtol=1e-6)
    with pytest.raises(ValueError, match="`options`: the provider must be one of this model, got a Noisy"):
        pdmp.auto(data, sampler=pdmp.SBPS, options={"provider": noisy})


def whitened(sampler):
    """The sampler on the standard normal distribution, with the step that it chooses there."""
    return sampler(pdmp.models.Gaussian(np.zeros(2), np.eye(2))).resolve(np.zeros(2))


@pytest.mark.parametrize("name", ["BAOAB", "UBU", "SGHMC", "MSGNHT", "BADODAB"])
def test_momenta(known, name):
    """An automatic step is that of a target with curvatures of 1."""
    sampler = getattr(discrete, name)
    process = pdmp.auto(MODEL, sampler=sampler, seed=1)
    np.testing.assert_allclose(covariance_of_metric(process.metric), COVARIANCE)
    resolved, other = process.resolve(MEAN), whitened(sampler)
    key = "friction" if hasattr(resolved, "friction") else "diffusion"
    assert getattr(resolved, key) == pytest.approx(getattr(other, key), rel=1e-6)
    assert resolved.schedule.step(0) == pytest.approx(other.schedule.step(0), rel=1e-6)
    assert resolved.resolve(MEAN).provider is resolved.provider


PAIR = pdmp.models.Gaussian([0.0, 0.0], [[0.5, 0.2], [0.2, 0.9]])
SKEWED = np.array([[2.0, 0.0], [-0.7, 0.5]])  # a root that is not the target's
#: Its target in the coordinates y, x = L y.
SEEN = pdmp.models.Gaussian([0.0, 0.0], SKEWED.T @ PAIR.hessian(np.zeros(2)) @ SKEWED)
P = SKEWED @ SKEWED.T


def paths(of_x, of_y, **budget):
    """Positions of a path of each process, the second one brought to the coordinates x."""
    x = pdmp.sample(of_x, initial=[1.0, -0.5], seed=3, **budget).trajectories[0]
    y = pdmp.sample(of_y, initial=np.linalg.solve(SKEWED, [1.0, -0.5]), seed=3, **budget).trajectories[0]
    return x.positions, y.positions @ SKEWED.T


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        (discrete.BAOAB, {"step": 0.3, "friction": 1.2}),
        (discrete.UBU, {"step": 0.3, "friction": 1.2}),
        (discrete.SGHMC, {"step": 0.2, "friction": 1.2, "batch_every": 3, "refresh_every": 7}),
        (discrete.SGNHT, {"step": 0.1}),
        (discrete.MSGNHT, {"step": 0.1}),
        (discrete.BADODAB, {"step": 0.1}),
        (discrete.Barker, {"scale": 0.9}),
        (discrete.Barker, {"scale": [0.9, 0.4], "increments": "gaussian"}),
        (discrete.Barker, {"scale": 0.6, "signs": "single"}),
        (discrete.MALA, {"step": 0.5}),
    ],
)
def test_a_preconditioner_is_a_change_of_coordinates(sampler, options):
    """With the same seed the path is that of the target in these coordinates, up to rounding."""
    preconditioned = sampler(PAIR, **options, metric=pdmp.Metric(covariance=P))
    found, expected = paths(preconditioned, sampler(SEEN, **options), steps=60)
    assert len(np.unique(found[:, 0])) > 20
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["BAOAB", "Barker", "SGHMC"])
def test_a_diagonal_preconditioner(name):
    options = {"scale": 0.5} if name == "Barker" else {"step": 0.3}
    diagonal, dense = (
        pdmp.sample(
            getattr(discrete, name)(PAIR, **options, metric=pdmp.Metric(covariance=given)),
            initial=[1.0, 1.0],
            steps=30,
            seed=1,
        )
        for given in ([4.0, 0.25], np.diag([4.0, 0.25]))
    )
    np.testing.assert_allclose(diagonal.trajectories[0].positions, dense.trajectories[0].positions, rtol=1e-12)


@pytest.mark.parametrize("kind", ["few directions", "sparse"])
def test_a_mass_that_is_no_array(kind):
    """`LowRank` and `Sparse` move BPS as their matrix does."""
    vectors = np.array([[0.6, 0.8]])
    low = LowRank(np.array([2.0, 0.5]), vectors, np.array([3.0]))
    if kind == "sparse":
        low = pdmp.Metric(scipy.sparse.csr_array([[0.5, 0.3], [0.3, 4.0]])).made(2)
        np.testing.assert_allclose(covariance_of(low) @ [[0.5, 0.3], [0.3, 4.0]], np.eye(2), atol=1e-12)
    root = low.transform(np.eye(2)).T
    process = pdmp.BPS(PAIR, refresh_rate=0.3)
    process.metric = low
    state = process.resolve(np.zeros(2)).begin(np.zeros(2), np.random.default_rng(0))
    assert np.linalg.norm(np.linalg.solve(root, state.v)) == pytest.approx(1.0)
    np.testing.assert_allclose(state.memory.metric.u, np.linalg.solve(root, state.v))
    state.v[:] = 1.0, -2.0
    process.resolve(np.zeros(2)).native.metric.velocity_changed(state)
    np.testing.assert_allclose(state.memory.metric.u, np.linalg.solve(root, [1.0, -2.0]))
    run = pdmp.sample(process, events=300, seed=1)
    steps = np.linalg.solve(root, np.diff(run.trajectories[0].positions, axis=0).T)
    np.testing.assert_allclose(np.linalg.norm(steps, axis=0), np.diff(run.trajectories[0].times), rtol=1e-8)


def test_samplers_that_take_none(monkeypatch):
    """Which is said before the warm-up; a class may be of no module that is imported."""
    monkeypatch.setattr(preparing, "find_starts", None)  # a call would be another error
    for sampler in (pdmp.LocalBPS, discrete.SGZZ):
        with pytest.raises(TypeError, match=rf"^{sampler.__name__} takes no metric; those that do are .*pdmp.ZigZag"):
            pdmp.auto(MODEL, sampler=sampler)

    class Elsewhere(pdmp.BPS):
        __module__ = "of_no_file"

    names = takers_of_metrics()
    assert Elsewhere in pdmp.BPS.__subclasses__()
    assert names == sorted(names) and {"pdmp.BPS", "discrete.MALA", "pdmp.Boomerang"} <= {*names}
    assert "pdmp.LocalBPS" not in names and len(names) == len({*names}) > 15


def test_what_is_refused(known):
    with pytest.raises(TypeError, match="`sampler` must be a subclass of pdmp.Process or a callable, got 'BPS'"):
        pdmp.auto(MODEL, sampler="BPS")
    with pytest.raises(ValueError, match="`metric` must be one of 'full', 'diagonal', got 'dense'"):
        pdmp.auto(MODEL, metric="dense")
    with pytest.raises(TypeError, match="`sampler` must return a process, got a int"):
        pdmp.auto(MODEL, sampler=lambda model, metric: 3)
    with pytest.raises(TypeError, match="`speed=` of BPS became `metric=`"):
        pdmp.auto(MODEL, sampler=pdmp.BPS, options={"speed": 1.0})
    with pytest.raises(TypeError, match="`metric` of discrete.BAOAB must be constant"):
        discrete.BAOAB(PAIR, metric=discrete.preconditioners.RMSprop())
    with pytest.raises(ValueError, match="`covariance` must be positive"):
        discrete.UBU(PAIR, metric=pdmp.Metric(covariance=-1.0))
    with pytest.raises(ValueError, match="`metric` of SGHMC must be left out: coupled chains"):
        discrete.RichardsonRomberg(discrete.SGHMC(PAIR, step=0.1, metric=pdmp.Metric(covariance=2.0)))


def test_a_callable_and_a_class_of_ones_own(known):
    seen = []

    def mine(model, metric, rate=1.0):
        seen.append((model, metric.covariance))
        return pdmp.BPS(model, refresh_rate=rate, metric=np.linalg.inv(metric.covariance))

    process = pdmp.auto(MODEL, sampler=mine, options={"rate": 0.7}, seed=1)
    assert process.refresh_rate == 0.7 and seen[0][0] is MODEL
    np.testing.assert_allclose(seen[0][1], COVARIANCE)

    class Still(Process):
        @pdmp.compiled
        def clock(self, state, i, now, rng):
            return now + 1.0, pdmp.CERTAIN

        @pdmp.compiled
        def jump(self, state, i, now, rng):
            return 0

        @classmethod
        def in_metric(cls, target, metric, /, **options):
            process = cls(len(metric.mean))
            process.model = target
            return process

    assert type(pdmp.auto(MODEL, sampler=Still, seed=1)) is Still


def test_bounds(known):
    """Where a model has no bound on the rates, they are predicted; a bound that is named is taken."""
    model = Plane(LOGISTIC)
    for sampler in (pdmp.BPS, pdmp.ZigZag, pdmp.Boomerang):
        assert isinstance(pdmp.auto(model, sampler=sampler, seed=1).thinning, pdmp.thinning.Predicted)
        process = pdmp.auto(model, sampler=sampler, options={"thinning": "grid"}, seed=1)
        assert "Grid" in type(getattr(process.thinning, "bound", process.thinning)).__name__
        assert pdmp.auto(MODEL, sampler=sampler, seed=1).thinning.exact
