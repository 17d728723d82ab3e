"""The Boomerang samplers: events at their rates (tier 2), and time averages against exact moments (tier 3)."""

import numpy as np
import pytest

import pdmp
from pdmp.gradients import ControlVariate, Minibatch
from pdmp.validation import check_clocks
from tests.checks import assert_unbiased, in_ci, replicate
from tests.statistics.helpers_boomerang_laws import LOGISTIC, moments

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.5, 0.3], [0.0, 0.3, 1.0]])
MEAN = np.array([1.0, -2.0, 0.5])
GAUSSIAN = pdmp.models.Gaussian(MEAN, PRECISION)
WRONG = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]])


class OneByOne(pdmp.Boomerang):
    """Boomerang with batches of one, and the mean over all data of its rate."""

    @pdmp.compiled
    def true_rates(self, x, v, scratch, out):
        model, total = self.provider.model, 0.0
        for i in range(model.n_data):
            for j in range(x.shape[0]):
                scratch[j] = 0.0
            model.add_term_gradient(x, i, scratch)
            rate = -self.reference.inner(v, x, self.mean)
            for j in range(x.shape[0]):
                rate += v[j] * (model.n_data * scratch[j] + model.precision[j] * x[j])
            total += max(rate, 0.0) / model.n_data
        out[0] = total
        out[1] = self.refresh_rate


CLOCKS = {
    "sinusoids": pdmp.Boomerang(GAUSSIAN, mean=[0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=WRONG)),
    "hessian": pdmp.Boomerang(LOGISTIC),
    "grid": pdmp.Boomerang(LOGISTIC, metric=pdmp.Metric(covariance=[0.3, 0.6]), thinning="grid"),
    "batches": OneByOne(Minibatch(LOGISTIC, 1)),
    "factorised, inversion": pdmp.FactorisedBoomerang(GAUSSIAN, mean=[0.5, 0.0, 0.0]),
    "factorised, hessian": pdmp.FactorisedBoomerang(LOGISTIC),
}


@pytest.mark.parametrize("name", in_ci(CLOCKS))
def test_every_clock_rings_at_its_rate(name):
    """A grid is allowed violations: their excess is 1 % on the average."""
    check = check_clocks(CLOCKS[name], events=150_000, seed=31)
    assert len(check.clocks) == (4 if "factorised" in name else 2) + 2 * (name == "factorised, inversion")
    assert check.p > 1e-6, str(check)
    assert check.resolution < 0.06, str(check)
    violated = sum(clock.violations for clock in check.clocks)
    assert violated < (0.02 * check.clocks[0].n if name == "grid" else 1)


GAUSSIANS = {
    "its own reference": pdmp.Boomerang(GAUSSIAN),
    "a wrong reference": pdmp.Boomerang(GAUSSIAN, mean=[0.5, 0.0, 0.0], metric=pdmp.Metric(covariance=WRONG)),
    "factorised": pdmp.FactorisedBoomerang(GAUSSIAN, mean=[0.5, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", in_ci(GAUSSIANS, "a wrong reference"))
def test_a_correlated_gaussian(name):
    process = GAUSSIANS[name]
    covariance = np.linalg.inv(PRECISION)
    events, coarse = (60_000, 2.0) if name == "factorised" else (30_000, 1.0)
    mean, var, cov = replicate(process, MEAN, 32, seed=32, warmup=0.02, events=events)
    sd = np.sqrt(np.diag(covariance))
    assert_unbiased((mean - MEAN) / sd, 0.0, resolution=0.06 * coarse)
    assert_unbiased(var / sd**2, 1.0, resolution=0.08 * coarse)
    if cov is not None:
        assert_unbiased((cov / np.outer(sd, sd))[:, 0, 1], covariance[0, 1] / (sd[0] * sd[1]), resolution=0.06)


POSTERIORS = {
    "exact": pdmp.Boomerang(LOGISTIC),
    "batches of 1": pdmp.Boomerang(Minibatch(LOGISTIC, 1)),
    "by importance": pdmp.Boomerang(ControlVariate(LOGISTIC, 1, draw="importance")),
    "factorised": pdmp.FactorisedBoomerang(LOGISTIC),
    "factorised, by importance": pdmp.FactorisedBoomerang(ControlVariate(LOGISTIC, 1, draw="importance")),
}


@pytest.mark.parametrize("name", in_ci(POSTERIORS, "by importance"))
def test_logistic_regression(name):
    """Against a quadrature of the posterior."""
    process = POSTERIORS[name]
    exact_mean, exact_var = moments(LOGISTIC)
    longer = {"factorised": 8_000.0, "factorised, by importance": 12_000.0, "batches of 1": 10_000.0}
    time = (longer | {"by importance": 7_000.0}).get(name, 3_000.0)
    mean, var, _ = replicate(process, LOGISTIC.mode(), 32, seed=33, warmup=0.02, time=time)
    assert_unbiased((mean - exact_mean) / np.sqrt(exact_var), 0.0, resolution=0.12)
    assert_unbiased(var / exact_var, 1.0, resolution=0.16)
