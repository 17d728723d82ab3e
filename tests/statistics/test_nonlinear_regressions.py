"""Posteriors of expressions in the place of a linear predictor, against a grid."""

import math

import numpy as np
import pytest

import pdmp
from pdmp.models.priors import Normal

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")


def test_the_posterior_is_that_of_a_grid_by_both_samplers():
    """top · exp(-rate x) with a known error: two parameters, whose moments a grid has; 4,000 rows and 40 of them."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 3.0, 6_000)
    data = pandas.DataFrame({"x": x, "y": 2.0 * np.exp(-0.8 * x) + rng.normal(0.0, 1.5, 6_000), "s": 1.5})
    formula = {"y": "y | se(s) ~ top * exp(-rate * x)", "top": "~ 1", "rate": "~ 1"}
    for rows in (6_000, 40):
        few = data[:rows]
        fit = pdmp.regression(
            formula,
            few,
            priors={"top": Normal(1.0, 1.0), "rate": Normal(0.0, 1.0)},
            link={"rate": "log"},
            seed=2,
            ess=1_000,
        )
        assert ("one row a proposal" in fit.run.info["choice"]) == (rows == 6_000)
        wide = 6.0 if rows == 40 else 0.4
        a, b = np.linspace(2.0 - wide, 2.0 + wide, 401), np.linspace(-0.22 - wide, -0.22 + wide, 403)
        log = np.zeros((401, 403))
        for i, value in enumerate(a):
            mean = value * np.exp(-np.exp(b)[:, None] * few.x.to_numpy())
            log[i] = -0.5 * np.sum(((few.y.to_numpy() - mean) / 1.5) ** 2, axis=1)
        log += -0.5 * (a[:, None] - 1.0) ** 2 - 0.5 * b**2
        weight = np.exp(log - log.max())
        weight /= weight.sum()
        for name, grid in (("top: Intercept", a[:, None]), ("rate: Intercept", b)):
            mean = np.sum(weight * grid)
            sd = math.sqrt(np.sum(weight * (grid - mean) ** 2))
            draws = fit[name].ravel()
            # 1,000 effective draws and 4,000 that are resampled: 4.5 standard errors of the mean, and 15 % of the sd.
            assert abs(draws.mean() - mean) < 4.5 * sd / math.sqrt(1_000), (rows, name)
            assert abs(draws.std() / sd - 1.0) < 0.15, (rows, name)
