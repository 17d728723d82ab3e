"""log Z of fits as they are sampled, against quadrature, tempered runs and full gradients."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

import pdmp
from pdmp.formulas import fitting
from pdmp.models.priors import HalfNormal, Normal


def close(found, truth, error=0.0):
    """Within three standard errors, of one seed each."""
    assert 0.0 < found.error < 0.1
    assert abs(found.value - truth) < 3.0 * math.hypot(found.error, error)


def test_two_logistic_coefficients():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(60)
    y = (rng.random(60) < special.expit(0.4 + x)).astype(int)
    priors = {"Intercept": Normal(0.0, 1.5), "x": Normal(0.0, 1.0)}
    table, of_one = {"x": x, "y": y}, {"Intercept": priors["Intercept"]}
    fits = [
        pdmp.regression(text, table, "bernoulli", own, seed=1) for text, own in (("y ~ x", priors), ("y ~ 1", of_one))
    ]

    def density(slope, middle):
        z = middle + slope * (x - x.mean())
        return (
            math.exp(np.sum(y * z - np.logaddexp(0.0, z)) + 35.0)
            * stats.norm.pdf(slope)
            * stats.norm.pdf(middle, scale=1.5)
        )

    truth = math.log(integrate.dblquad(density, -4.0, 4.0, -4.0, 4.0, epsabs=0.0, epsrel=1e-7)[0]) - 35.0
    close(fits[0].log_evidence, truth)
    alone = integrate.quad(
        lambda z: math.exp(y.sum() * z - 60 * np.logaddexp(0.0, z) + 35.0) * stats.norm.pdf(z, scale=1.5), -4.0, 4.0
    )[0]
    close(fits[1].log_evidence, math.log(alone) - 35.0)
    close(pdmp.evidence(*fits), truth - math.log(alone) + 35.0)


def test_intercepts_of_groups_of_counts():
    rng = np.random.default_rng(5)
    g = np.repeat(np.arange(6), 5)
    y = rng.poisson(np.exp(0.5 + 0.6 * rng.standard_normal(6)[g]))
    priors = {"Intercept": Normal(0.0, 1.0), "sd(g)": HalfNormal(1.0)}
    fit = pdmp.regression("y ~ (1 | g)", {"y": y, "g": g}, "poisson", priors, seed=1, ess=1_000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    sums, sizes = np.bincount(g, y), np.bincount(g)

    def density(middle, sd):
        z = middle + sd * nodes
        each = sums[:, None] * z - sizes[:, None] * np.exp(z)
        return math.exp(special.logsumexp(each, axis=1, b=weights / math.sqrt(math.tau)).sum()) * (
            stats.norm.pdf(middle) * stats.halfnorm.pdf(sd)
        )

    truth = math.log(integrate.dblquad(density, 0.0, 4.0, -3.0, 3.0, epsabs=0.0, epsrel=1e-6)[0])
    close(fit.log_evidence, truth - special.gammaln(y + 1.0).sum())


@pytest.mark.release
@pytest.mark.parametrize("rows", [301, 300])
def test_a_tempered_fit_agrees(rows, monkeypatch):
    """From so many rows on fits are sub-sampled, which a tempered one is not."""
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", rows)
    rng = np.random.default_rng(6)
    x, g = rng.standard_normal(300), np.arange(300) % 5
    data = {"x": x, "g": g, "y": x + rng.standard_normal(5)[g] + rng.standard_normal(300)}
    fits = [pdmp.regression("y ~ x + (1 | g)", data, seed=1, **options) for options in ({}, {"tempered": True})]
    close(fits[0].log_evidence, *fits[1].log_evidence[:2])


@pytest.mark.release
def test_sub_sampled_rows_and_full_gradients_agree(monkeypatch):
    rng = np.random.default_rng(7)
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 6_000)
    x, z = rng.standard_normal((2, 6_000))
    data = {"x": x, "z": z, "y": rng.poisson(np.exp(0.2 + 0.3 * x))}
    sub, less = (pdmp.regression(text, data, "poisson", seed=1) for text in ("y ~ x + z", "y ~ x"))
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", 100_000)
    full = pdmp.regression("y ~ x + z", data, "poisson", seed=1)
    assert "one row a proposal" in " ".join(sub.notes) and "all rows" in " ".join(full.notes)
    close(sub.log_evidence, *full.log_evidence[:2])
    assert pdmp.evidence(sub, less).value < -2.0  # z says nothing
