"""SBPS under a bound on every mini-batch: the bound, its inversion, the events that follow, and the law."""

import math

import numpy as np
import pytest
from scipy import special

import pdmp
from pdmp.gradients import ControlVariate, Full, Minibatch
from pdmp.process import CERTAIN, DATA
from pdmp.processes.lipschitz_sbps import BOUNCE, REFRESH
from tests.checks import assert_exponential, assert_unbiased, plain_only, replicate

RNG = np.random.default_rng(8)
N = 24
X = RNG.normal(size=(N, 2)) * [1.5, 0.6]
Y = (RNG.random(N) < special.expit(X @ [0.8, -1.2])).astype(float)
PRIOR = np.array([0.7, 1.6])
MODEL = pdmp.models.LogisticRegression(X, Y, prior_scale=PRIOR)
SIGNS = 2.0 * Y - 1.0


class Flat(pdmp.Model):
    """Terms with bounded gradients, Uᵢ = √(1 + (x - cᵢ)²), and no prior."""

    centres: np.ndarray

    def __init__(self, centres):
        super().__init__(dim=1, n_data=len(centres))
        self.centres = np.array(centres, dtype=float)

    @pdmp.compiled
    def term_potential(self, x, i):
        return math.sqrt(1.0 + (x[0] - self.centres[i]) ** 2)

    @pdmp.compiled
    def add_term_gradient(self, x, i, out):
        out[0] += (x[0] - self.centres[i]) / math.sqrt(1.0 + (x[0] - self.centres[i]) ** 2)


def term_slopes(x, v):
    """v·∇Uᵢ(x) of every datum, from the formula: (..., N)."""
    margins = SIGNS * (x @ X.T)
    return -SIGNS * special.expit(-margins) * (v @ X.T)


def rates(x, v):
    """E (v·∇Û)₊ over the batches of one: (...)."""
    prior = np.sum(v * x / PRIOR**2, axis=-1)
    return np.maximum(N * term_slopes(x, v) + prior[..., None], 0.0).mean(axis=-1)


class Draw:
    """A random stream that is known in advance."""

    def __init__(self, exponential):
        self.standard_exponential = lambda: exponential


@plain_only
@pytest.mark.exact
@pytest.mark.parametrize("size, draw", [(1, "iid"), (3, "distinct")])
def test_the_clock_inverts_a_bound_that_no_batch_exceeds(size, draw):
    process = pdmp.LipschitzSBPS(Minibatch(MODEL, size, draw=draw), refresh_rate=0.3)
    longest = np.linalg.norm(X, axis=1).max()
    generator, tightest = np.random.default_rng(1), 0.0
    for _ in range(40):
        x = generator.normal(size=2) * [2.0, 4.0]
        state = process.begin(x, generator)
        v, e = state.v, generator.exponential() * 3.0
        start, slope = N * longest + np.sum(v * x / PRIOR**2), np.sum((v / PRIOR) ** 2)
        time, bound = process.native.clock(state, BOUNCE, 0.0, Draw(e))
        assert bound == pytest.approx(start + slope * time, rel=1e-12)
        s = np.linspace(0.0, time, 20_001)
        assert np.trapezoid(np.maximum(start + slope * s, 0.0), s) == pytest.approx(e, rel=1e-6)
        here = x + v * time
        highest = N * np.sort(term_slopes(here, v))[-size:].mean() + np.sum(v * here / PRIOR**2)
        assert highest <= bound * (1.0 + 1e-12)
        tightest = max(tightest, highest / bound)
        state.now[0] = time
        rate = process.native.rate(state, BOUNCE, time, generator)
        gradient = state.memory.gradient.copy()
        np.testing.assert_allclose(state.memory.here, here, rtol=1e-13)
        assert rate == pytest.approx(max(0.0, v @ gradient), rel=1e-12, abs=1e-12)
        assert rate <= bound * (1.0 + 1e-12)
        before = v.copy()
        process.native.jump(state, BOUNCE, time, generator)
        assert state.v @ gradient == pytest.approx(-(before @ gradient), rel=1e-10)
        assert np.linalg.norm(state.v) == pytest.approx(1.0, rel=1e-14)
    assert tightest > 0.4  # the bound is not idle
    assert process.native.clock(state, REFRESH, 2.0, Draw(0.6)) == (pytest.approx(4.0), CERTAIN)


@plain_only
@pytest.mark.exact
def test_batches_are_fresh_and_rates_unbiased():
    """The mean over many looks at one place is that over the data, and a look counts its batch."""
    process, generator = pdmp.LipschitzSBPS(MODEL, refresh_rate=0.0), np.random.default_rng(2)
    state = process.begin(np.array([0.4, 0.3]), generator)
    found = [process.native.rate(state, BOUNCE, 0.0, generator) for _ in range(4_000)]
    assert np.std(found) > 0.1
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - rates(state.x, state.v)) < 5.0 * error
    assert state.counts[DATA] == 4_000
    assert process.native.clock(state, REFRESH, 1.0, Draw(0.6)) == (CERTAIN, CERTAIN)


@pytest.mark.exact
def test_without_a_prior_the_bound_is_constant():
    process = pdmp.LipschitzSBPS(Flat([-1.0, 0.5, 2.0]), refresh_rate=0.0, bound=1)
    state = process.begin(np.array([3.0]), np.random.default_rng(3))
    for now in (0.0, 5.0):
        time, bound = process.native.clock(state, BOUNCE, now, Draw(0.9))
        assert (time, bound) == (pytest.approx(now + 0.3), 3.0)


@pytest.mark.exact
def test_what_the_model_says():
    assert MODEL.largest_term_gradient() == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-14)
    v = np.array([0.6, -0.8])
    assert MODEL.prior_curvature_bound(v) == pytest.approx(np.sum((v / PRIOR) ** 2), rel=1e-14)
    gradients = np.array([MODEL.term_gradients(x, np.arange(N)) for x in 5.0 * RNG.normal(size=(30, 2))])
    sizes = np.linalg.norm(gradients, axis=2)
    assert 0.8 * MODEL.largest_term_gradient() < sizes.max() <= MODEL.largest_term_gradient()
    assert pdmp.models.Gaussian([0.0], [1.0]).largest_term_gradient() == math.inf
    assert pdmp.LipschitzSBPS(MODEL).provider.size == 1


LINEAR = pdmp.models.LinearGaussian(X, Y)
BAD = {
    "epochs": (lambda: pdmp.LipschitzSBPS(Minibatch(MODEL, 2, draw="epoch")), TypeError, '"distinct".*draw="epoch"'),
    "anchored": (
        lambda: pdmp.LipschitzSBPS(ControlVariate(MODEL, 2)),
        TypeError,
        "`provider` must be a model, or independent.*ControlVariate",
    ),
    "exact": (lambda: pdmp.LipschitzSBPS(Full(MODEL)), TypeError, "independent mini-batches.*Full"),
    "no model": (
        lambda: pdmp.LipschitzSBPS(3.0),
        TypeError,
        "`provider` must be a model, or independent mini-batches.*float",
    ),
    "no bound": (
        lambda: pdmp.LipschitzSBPS(Flat([1.0])),
        ValueError,
        "no `largest_term_gradient`.*`bound=`.*pdmp.SBPS",
    ),
    "a prior of unknown slope": (
        lambda: pdmp.LipschitzSBPS(pdmp.models.EightSchools()),
        ValueError,
        "HierarchicalNormal has no `prior_curvature_bound`",
    ),
    "terms of unknown size": (
        lambda: pdmp.LipschitzSBPS(LINEAR),
        ValueError,
        "LinearGaussian has no `largest_term_gradient`",
    ),
    "bound": (lambda: pdmp.LipschitzSBPS(MODEL, bound=-2.0), ValueError, "`bound`.*-2.0"),
    "bound nan": (lambda: pdmp.LipschitzSBPS(MODEL, bound=math.nan), ValueError, "`bound`.*nan"),
    "refreshment": (lambda: pdmp.LipschitzSBPS(MODEL, refresh_rate=-1), ValueError, "`refresh_rate`.*-1"),
    "no data": (lambda: pdmp.LipschitzSBPS(pdmp.models.SkewNormal(1.0)), ValueError, "SkewNormal has no terms"),
}


@pytest.mark.exact
@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        make()


@pytest.mark.exact
def test_a_bound_that_is_too_small_is_an_error_that_names_the_model():
    process = pdmp.LipschitzSBPS(MODEL, bound=0.2)
    with pytest.raises(pdmp.SamplingError, match="exceeded the bound that LogisticRegression"):
        pdmp.sample(process, time=200.0, seed=4, store="moments")


@pytest.mark.release  # its law is that of tests/statistics/test_each_sampler.py
def test_it_bounces_at_the_mean_rate_of_its_batches():
    run = pdmp.sample(pdmp.LipschitzSBPS(MODEL, refresh_rate=1.0), events=60_000, seed=6, initial=MODEL.mode())
    assert run.stats["bound_violations"] == 0
    path = run.trajectories[0]
    x, v, s = path.positions[:-1], path.velocities[:-1], np.diff(path.times)
    hazards = np.zeros(len(s))
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        hazards += 0.5 * weight * s * rates(x + v * (0.5 * s * (node + 1.0))[:, None], v)
    for kind, hazard, resolution in ((BOUNCE, hazards, 0.05), (REFRESH, 1.0 * s, 0.09)):
        total = np.cumsum(hazard)
        assert_exponential(np.diff(total[np.flatnonzero(path.kinds == kind)]), resolution=resolution)


@pytest.mark.release
def test_its_law_is_the_posterior_for_each_size_of_the_batches():
    a, b = np.meshgrid(np.linspace(-2.5, 4.0, 400), np.linspace(-6.0, 4.0, 400), indexing="ij")
    grid = np.stack([a.ravel(), b.ravel()], axis=1)
    log = -np.logaddexp(0.0, -SIGNS * (grid @ X.T)).sum(axis=1) - 0.5 * ((grid / PRIOR) ** 2).sum(axis=1)
    weights = special.softmax(log)
    mean = weights @ grid
    var = weights @ (grid - mean) ** 2
    for size in (1, 4):
        process = pdmp.LipschitzSBPS(Minibatch(MODEL, size), refresh_rate=1.0)
        means, variances, _ = replicate(process, MODEL.mode(), 32, seed=7, warmup=0.02, events=40_000)
        assert_unbiased((means - mean) / np.sqrt(var), 0.0, resolution=0.07)
        assert_unbiased(variances / var, 1.0, resolution=0.09)
