"""A posterior with effects on a mean and on a standard deviation that correlate, against importance sampling."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import pdmp
from pdmp.models.priors import LKJ, HalfNormal, Normal

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

GROUPS, ROWS, ETA = 7, 6, 1.5
PRIORS = {
    "Intercept": Normal(0.0, 1.5),
    "sigma: Intercept": Normal(0.0, 1.0),
    "sd(g)": HalfNormal(0.8),
    "sigma: sd(g)": HalfNormal(0.5),
    "cor(1, sigma: 1|g)": LKJ(ETA),
}


def log_posterior(q, y):
    """Of (S, 5) means, log standard deviations, logarithms of both spreads of effects, and artanh of their correlation.

    Effects on the mean are integrated out as a normal law has it, given those on log sigma, and these by quadrature.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    mean, middle, a, b, r = q[:, 0], q[:, 1], np.exp(q[:, 2]), np.exp(q[:, 3]), np.tanh(q[:, 4])
    residual = y - (mean[:, None] + (r * a)[:, None] * nodes)[:, :, None, None]
    square = np.exp(2.0 * (middle[:, None] + b[:, None] * nodes))[:, :, None]
    left = (a**2 * (1.0 - r**2))[:, None, None]
    total = (residual**2).sum(axis=-1) - left * residual.sum(axis=-1) ** 2 / (square + ROWS * left)
    logs = -0.5 * (total / square + (ROWS - 1) * np.log(square) + np.log(square + ROWS * left))
    found = special.logsumexp(logs + np.log(weights)[:, None], axis=1).sum(axis=-1)
    found += stats.norm.logpdf(mean, 0.0, 1.5) + stats.norm.logpdf(middle)
    found += stats.halfnorm.logpdf(a, scale=0.8) + q[:, 2] + stats.halfnorm.logpdf(b, scale=0.5) + q[:, 3]
    found += ETA * np.log1p(-(r**2))  # (1 - r²)^(η - 1), and the derivative of tanh
    found -= special.betaln(ETA, ETA) + (2.0 * ETA - 1.0) * np.log(2.0)
    found -= 0.5 * GROUPS * (ROWS + 1) * np.log(2.0 * np.pi)  # of rows, and of the weights of nodes
    return np.where(np.isfinite(found), found, -1e6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # draws far out
def test_the_posterior_is_that_of_importance_sampling():
    rng = np.random.default_rng(6)
    u, v = rng.multivariate_normal([0.0, 0.0], [[0.64, 0.28], [0.28, 0.25]], GROUPS).T
    y = 0.5 + u[:, None] + np.exp(-0.3 + v)[:, None] * rng.normal(size=(GROUPS, ROWS))
    data = pandas.DataFrame({"y": y.ravel(), "g": np.repeat(np.arange(GROUPS), ROWS)})
    at = optimize.minimize(lambda q: -log_posterior(q[None], y)[0], [0.5, -0.3, -0.3, -0.7, 0.5], method="BFGS")
    middle, covariance = at.x, at.hess_inv
    for draws in (10_000, 60_000):
        proposal = stats.multivariate_t(middle, 1.2 * covariance, df=5.0, seed=rng)
        q = proposal.rvs(draws)
        log = np.concatenate([log_posterior(part, y) for part in np.array_split(q, draws // 500)]) - proposal.logpdf(q)
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        middle = weight @ q
        covariance = (weight[:, None] * (q - middle)).T @ (q - middle)
    assert 1.0 / np.sum(weight**2) > 5_000
    natural = np.column_stack([q[:, :2], np.exp(q[:, 2:4]), np.tanh(q[:, 4])])
    mean = weight @ natural
    sd = np.sqrt(weight @ (natural - mean) ** 2)
    formula = {"y": "y ~ 1 + (1 |p| g)", "sigma": "~ 1 + (1 |p| g)"}
    fit = pdmp.regression(formula, data, priors=PRIORS, seed=1, ess=2_000)
    for k, name in enumerate(PRIORS):
        found = fit[name].ravel()
        # 2,000 effective draws and more than 5,000: 4.5 standard errors of both are 0.12 standard deviations.
        assert abs(found.mean() - mean[k]) < 0.12 * sd[k], name
        assert abs(found.std() / sd[k] - 1.0) < 0.12, name
    evidence = special.logsumexp(log) - np.log(len(log))
    assert fit.log_evidence.value == pytest.approx(evidence, abs=0.1)
