"""Sub-sampled sticky BPS and Boomerang of regressions, compiled: all models enumerated, and their clocks."""

import math

import numpy as np
import pytest
from scipy import special, stats

import pdmp
from pdmp.models.priors import BetaBernoulli, HalfStudentT, Normal
from pdmp.models.regressions.laplace import laplace
from pdmp.models.regressions.likelihoods import LogitLaw, NormalLaw
from pdmp.models.regressions.mixed import MixedRegression
from pdmp.process import VIOLATIONS
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.sticky import Sticky
from pdmp.processes.sticky_groups import StickyGroups
from tests.checks import assert_unbiased, in_ci, run_chain
from tests.processes.helpers_moving_regressions import diagonal_boomerang

ROWS, SLAB = 150, 0.25
LAW = BetaBernoulli(1.0, 2.0)


def regression(law):
    """Three correlated columns that may be 0, beside an intercept."""
    rng = np.random.default_rng(6)
    X = np.column_stack([np.ones(ROWS), rng.standard_normal((ROWS, 3))])
    X[:, 2] += 0.7 * X[:, 1]
    z = X @ [0.2, 0.2, 0.0, -0.25]
    labels = law is LogitLaw
    y = (rng.random(ROWS) < special.expit(z)).astype(float) if labels else z + rng.standard_normal(ROWS)
    return MixedRegression(
        X,
        y,
        law(),
        ["Intercept", "x", "w", "u"],
        [Normal(0.0, 1.0), *[Normal(0.0, SLAB)] * 3],
        dispersion_priors=[] if labels else [HalfStudentT(4.0, 1.0)],
        intercept=0,
        inclusion=[1.0, 0.5, 0.5, 0.5],
        model_prior=LAW,
    )


def log_marginal(model, places):
    """Log marginal likelihood of the coefficients `places`: by quadrature over log σ, or by weighted draws."""
    X, sd = model.X[:, places], model.numbers[places, 1]
    if model.likelihood is NormalLaw:
        values, vectors = np.linalg.eigh((X * sd**2) @ X.T)
        u, grid = vectors.T @ model.target, np.linspace(-0.5, 0.5, 401)
        variances = np.maximum(values, 0.0) + np.exp(2.0 * grid)[:, None]
        prior = np.array([model.native.prior_potential(np.array([0.0, 0.0, 0.0, 0.0, s])) for s in grid])
        return special.logsumexp(-0.5 * np.sum(np.log(variances) + u**2 / variances, axis=1) - prior)
    # Importance draws from a t law about the mode, labels being -1 and 1.
    beta, y = np.zeros(len(places)), model.target > 0.0
    for _ in range(30):
        p = special.expit(X @ beta)
        hessian = (X * (p * (1.0 - p))[:, None]).T @ X + np.diag(sd**-2.0)
        beta -= np.linalg.solve(hessian, X.T @ (p - y) + beta / sd**2)
    proposal = stats.multivariate_t(beta, np.linalg.inv(hessian), df=8, seed=1)
    draws = proposal.rvs(30_000).reshape(-1, len(places))
    found = -np.logaddexp(0.0, -model.target * (draws @ X.T)).sum(axis=1)
    found += stats.norm.logpdf(draws, scale=sd).sum(axis=1) - np.atleast_1d(proposal.logpdf(draws))
    return special.logsumexp(found) - math.log(len(found))


def models(model):
    """Posterior probabilities of the sets of coefficients that are not 0; bit k stands for column k + 1."""
    logs = []
    for bits in range(8):
        chosen = [k for k in range(3) if bits >> k & 1]
        n = len(chosen)
        prior = special.betaln(LAW.a + n, LAW.b + 3 - n)
        logs.append(log_marginal(model, [0, *(k + 1 for k in chosen)]) + prior)
    return special.softmax(logs)


def all_rows(model):
    """A Zig-Zag process whose gradients are of all rows, as few of them are sampled."""
    return Sticky(pdmp.ZigZag(model, metric=pdmp.Metric(scales=laplace(model).sd)), LAW)


def jumping(process):
    """Coefficients enter and leave by reversible jumps besides: two of them singly."""
    return StickyGroups(process, [[3], [1]], LAW, rate=0.7)


def counting(model):
    """Of an anchor of which one coefficient is not 0, by columns that move or stand away from it."""
    anchor = laplace(model).mean * [1.0, 0.0, 0.0, 1.0]
    return jumping(RegressionBPS(model, anchor, few_move=True))


#: The law of the rows, the process, its time, the resolution and the seed.
CASES = {
    "gaussian, BPS": (NormalLaw, lambda m: Sticky(RegressionBPS(m), LAW), 30_000.0, 0.08, 7),
    "gaussian, Boomerang": (NormalLaw, lambda m: Sticky(diagonal_boomerang(m), LAW), 30_000.0, 0.08, 7),
    "labels, BPS": (LogitLaw, lambda m: Sticky(RegressionBPS(m), LAW), 40_000.0, 0.045, 7),
    "labels, Boomerang": (LogitLaw, lambda m: Sticky(diagonal_boomerang(m), LAW), 40_000.0, 0.045, 7),
    "gaussian, with jumps": (NormalLaw, lambda m: jumping(diagonal_boomerang(m)), 4_000.0, 0.08, 8),
    "labels, with jumps": (LogitLaw, lambda m: jumping(RegressionBPS(m)), 4_000.0, 0.08, 8),
    "labels, where bounds count what moves": (LogitLaw, counting, 6_000.0, 0.08, 10),
    "gaussian, from all rows": (NormalLaw, all_rows, 4_000.0, 0.08, 9),
}


@pytest.mark.parametrize("name", in_ci(CASES, "labels, where bounds count what moves"))
def test_all_models(name):
    """Of a Gaussian with unknown σ and of labels, with a prior of how many are not 0."""
    law, make, time, resolution, seed = CASES[name]
    model = regression(law)
    truth, process, found, violations = models(model), make(model), [], 0
    assert np.sort(truth)[-4] > 0.02
    start = laplace(model).mean if process.anchor is None else process.anchor
    for child in np.random.SeedSequence(seed).spawn(32):
        record = run_chain(process, start, child, warmup=0.02, store="moments", time=time).finish()
        assert record.accumulated["sticking"].tolist() == [1, 2, 3]
        violations += int(record.counts[VIOLATIONS])
        found.append(record.accumulated["models"] / record.length)
    assert_unbiased(np.array(found), truth, resolution=resolution)
    assert violations == 0


@pytest.mark.release
@pytest.mark.parametrize(
    "kind", [pytest.param(RegressionBPS, id="BPS"), pytest.param(diagonal_boomerang, id="Boomerang")]
)
def test_each_clock_rings_at_its_rate_among_the_coordinates_that_move(kind):
    model = regression(NormalLaw)
    process = Sticky(kind(model), LAW)
    check = pdmp.validation.check_clocks(process, events=15_000, seed=99)
    assert check.p > 1e-6, check
    assert check.resolution < 0.2
