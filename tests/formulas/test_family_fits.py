"""Fits of families that are sums of terms: summaries, names and units of draws, and how they are sampled."""

import numpy as np

import pdmp
from pdmp.models.families import FAMILIES
from tests.formulas.test_families import table


def test_a_fit():
    data = table(FAMILIES["gamma"], 60)
    formulas = {"y": "y ~ x + (1 + x | g)", "shape": "~ w"}
    fit = pdmp.regression(formulas, data, family="gamma", seed=1, chains=2, gradients=300, progress=False)
    text = str(fit.summary(effects=True))
    for said in (
        "y ~ x + (1 + x | g); shape ~ w, gamma with the log link, 60 rows",
        "shape: w ~ Normal(0, ",
        "cor(1, x|g) ~ LKJ(1)",
        "x|g[t]",
        "Hamiltonian Monte Carlo",
        "effects 1|g and x|g of 4 groups are partly centred, half of them by 65 % or more.",
    ):
        assert said in text, said
    assert list(fit.priors) == ["Intercept", "x", "sd(g)", "sd(x|g)", "cor(1, x|g)", "shape: Intercept", "shape: w"]
    assert fit["1|g"].shape == (2, 1000, 4) and fit["shape: w"].shape == (2, 1000)
    assert list(fit.to_dataframe(5).columns) == ["chain", "draw", *fit.priors]
    found = fit.run.to_arviz(100)
    assert found.log_likelihood["y"].shape == (2, 100, 60) and np.array_equal(found.observed_data["y"], data["y"])
    inflated = pdmp.regression(
        "y ~ x",
        table(FAMILIES["poisson"]),
        family="zero_inflated_poisson",
        seed=1,
        chains=2,
        gradients=200,
        progress=False,
    )
    assert "logit(zi) ~ Normal(0, 1.5)" in str(inflated.summary())
    assert np.all((inflated["zi"] > 0.0) & (inflated["zi"] < 1.0))
