"""What is computed in blocks does not depend on their size, and what is drawn reaches all data.

The blocks are larger than the data of any other test. Here they are of a few rows; in plain Python, as machine code has
the sizes in it.
"""

import importlib

import numpy as np
import pytest

import discrete
import pdmp
from discrete import curvature
from pdmp.gradients import ControlVariate, Minibatch
from pdmp.models import LinearGaussian, LogisticRegression
from tests.checks import plain_only

pytestmark = [pytest.mark.exact, plain_only]

N, D = 97, 3
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, D)) * [1.0, 3.0, 0.5]
Y = (RNG.random(N) < 0.5).astype(float)
HERE, ROOT = np.array([0.3, -0.2, 0.1]), np.array([[1.0, 0.2, 0.0], [0.0, 0.7, 0.1], [0.0, 0.0, 2.0]])


def logistic():
    return LogisticRegression(X, Y, prior_scale=2.0)


def anchored(draw="uniform"):
    return ControlVariate(logistic(), 1, anchor=HERE, draw=draw)


def path(process, **budget):
    record = pdmp.sample(process, seed=3, initial=HERE, progress=False, **budget).records[0]
    return np.concatenate([record.times[:, None], record.xs.reshape(len(record.times), -1)], axis=1)


def ratings():
    rng = np.random.default_rng(1)
    n = 150
    users, items = rng.integers(0, 12, n), rng.integers(0, 9, n)
    data = {"n_users": 12, "n_items": 9}
    return pdmp.models.MatrixFactorization(users, items, rng.integers(1, 6, n).astype(float), rank=2, **data)


def bounds(process):
    """The numbers of its bound by the conserved energies."""
    names = ("offset", "growth", "common")
    return np.concatenate([np.ravel(getattr(process.thinning, name, 0.0)) for name in names])


DESIGN, BOUNDS = "pdmp.models.regressions.design", "pdmp.processes.gaussian_bounds"
COVARIANCE = ROOT @ ROOT.T
#: What must be the same, the module, its constant, and the small value of that.
CASES = {
    "covariance of the noise": (
        lambda: curvature.noise_covariance(Minibatch(logistic(), 5), HERE),
        *("discrete.curvature", "PIECE", 20),
    ),
    "covariance of importance draws": (
        lambda: curvature.noise_covariance(anchored("importance"), HERE + 1.0),
        *("discrete.curvature", "PIECE", 20),
    ),
    "Hessian": (lambda: logistic().hessian(HERE), DESIGN, "IN_CACHE", 60),
    "Gram matrix": (lambda: np.array(logistic().hessian_bounds()), DESIGN, "IN_CACHE", 60),
    "largest gradient of a term": (lambda: logistic().largest_term_gradient(), DESIGN, "PIECE", 60),
    "batches that are not copied": (
        lambda: path(discrete.SGLD(Minibatch(logistic(), 30, draw="distinct"), step=1e-3), steps=20),
        *("pdmp.models.regressions.logistic", "LARGEST_COPY", 20),
    ),
    "columns of shared clocks": (
        lambda: path(pdmp.LocalBPS(anchored(), refresh_rate=0.5), events=30),
        *("pdmp.factors.shared_clock", "BLOCK", 20),
    ),
    "rows of shared clocks": (
        lambda: path(pdmp.LocalBPS(logistic(), refresh_rate=0.5, thinning="rows"), events=30),
        *("pdmp.factors.shared_clock", "BLOCK", 20),
    ),
    "Boomerang, batches": (
        lambda: bounds(pdmp.Boomerang(Minibatch(logistic(), 1), metric=pdmp.Metric(covariance=COVARIANCE))),
        *(BOUNDS, "PIECE", 20),
    ),
    "Boomerang, importance": (
        lambda: bounds(pdmp.Boomerang(anchored("importance"), metric=pdmp.Metric(covariance=COVARIANCE))),
        *(BOUNDS, "PIECE", 20),
    ),
    "factorised Boomerang, batches": (
        lambda: bounds(pdmp.FactorisedBoomerang(Minibatch(logistic(), 1))),
        *(BOUNDS, "PIECE", 20),
    ),
    "factorised Boomerang, importance": (
        lambda: bounds(pdmp.FactorisedBoomerang(anchored("importance"))),
        *(BOUNDS, "PIECE", 20),
    ),
    "predicted ratings": (
        lambda: ratings().predict(np.linspace(-1.0, 1.0, ratings().dim)),
        *("pdmp.models.factorisations.factorisation", "PIECE", 20),
    ),
    "R-hat of many coordinates": (
        lambda: pdmp.diagnostics.rhat(np.random.default_rng(2).standard_normal((2, 9, 23))),
        *("pdmp.diagnostics.effective_size", "COLUMNS", 40),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_blocks_change_nothing(name, monkeypatch):
    compute, module, constant, small = CASES[name]
    whole = np.asarray(compute(), float)
    assert np.all(np.isfinite(whole)) and np.ptp(whole) > 0.0 or whole.size == 1
    monkeypatch.setattr(importlib.import_module(module), constant, small)
    np.testing.assert_allclose(np.asarray(compute(), float), whole, rtol=1e-11, atol=1e-12)


def test_a_value_in_the_last_block_is_seen(monkeypatch):
    """Maxima over terms whose largest is the last one."""
    far = X.copy()
    far[-1] *= 40.0
    monkeypatch.setattr("pdmp.processes.gaussian_bounds.PIECE", 20)
    monkeypatch.setattr(f"{DESIGN}.PIECE", 60)
    model = LogisticRegression(far, Y, prior_scale=2.0)
    assert model.largest_term_gradient() == pytest.approx(np.linalg.norm(far[-1]))
    one, other = (
        pdmp.Boomerang(Minibatch(m, 1), mean=HERE, metric=pdmp.Metric(covariance=np.eye(3))).thinning
        for m in (model, logistic())
    )
    norms = np.linalg.norm(X, axis=1)
    assert one.offset - other.offset == pytest.approx(N * (40.0 * norms[-1] - norms.max()))


LARGE = 150_000  #: more than any block of rows
DRAWS = {
    "iid": lambda m: Minibatch(m, 1),
    "distinct": lambda m: Minibatch(m, 1, draw="distinct"),
    "several": lambda m: Minibatch(m, 16),
    "uniform": lambda m: ControlVariate(m, 1, anchor=[0.0]),
    "importance": lambda m: ControlVariate(m, 1, anchor=[0.0], draw="importance"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in ("uniform", "importance") else ()) for n in DRAWS]
)
def test_draws_reach_all_data(name):
    """Each twentieth of 150,000 data is drawn as often as the others, by a chi-square test at one in a million."""
    from scipy import stats

    model = LinearGaussian(np.ones((LARGE, 1)), np.arange(LARGE, dtype=float), noise_scale=1.0, prior_scale=10.0)
    provider = DRAWS[name](model)
    memory, rng, rows = provider.memory(np.random.default_rng(0)), np.random.default_rng(1), []
    while len(rows) < 3_000:
        n = provider.native.drawing.draw(memory, rng)[0]
        rows += [int(row) for row in memory.rows[:n]]
    counts = np.bincount(np.array(rows) * 20 // LARGE, minlength=20)
    assert len(counts) == 20 and stats.chisquare(counts).pvalue > 1e-6
    assert min(rows) < 0.01 * LARGE and max(rows) > 0.99 * LARGE
