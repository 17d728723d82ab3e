"""Regressions of large tables, compiled: what looks at one row a proposal has the posterior of full gradients."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

import pdmp  # noqa: E402
from pdmp.expressions.nodes import exp, softplus  # noqa: E402
from pdmp.formulas import design, fitting  # noqa: E402
from pdmp.models.priors import Normal  # noqa: E402
from pdmp.models.regressions.likelihoods import PoissonLaw  # noqa: E402
from pdmp.models.regressions.mixed import MixedRegression  # noqa: E402
from pdmp.processes.regression_boomerang import RegressionBoomerang  # noqa: E402
from pdmp.processes.regression_zigzag import RegressionZigZag  # noqa: E402
from tests.checks import in_ci  # noqa: E402

ROWS, GROUPS = 6_000, 20
RESOLUTION = 5.0  #: standard errors: of some 30 numbers none is off by as much, but once in 60,000 seeds
FORMULAS = {
    "poisson": "c ~ x + (1 | g)",
    "gaussian": "y ~ x",
    "in place": "c ~ x + z",
    "slopes": "c ~ x + z + (1 + x || g)",
    "many": "y ~ x + (1 | h)",  # squares are in the expansion
    "correlated": "c ~ x + z + (1 + x | g)",
    "crossed": "c ~ x + (1 | g) + (1 | h)",
    "binomial": "c | trials(n) ~ x + (1 | g)",
    "censored": "c | cens(cut) ~ x + (1 | g)",
    "own": "y ~ x + (1 | g)",
}
OWN = pdmp.Family(
    "logistic",
    lambda y, z, a: a + 2.0 * softplus((y - z) * exp(-a)) - (y - z) * exp(-a),
    links={"mu": "identity", "scale": "log"},
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(ROWS), rng.integers(0, GROUPS, ROWS)
    mean = 0.5 + 0.3 * x + rng.normal(0.0, 0.4, GROUPS)[g]
    found = {"x": x, "g": g, "c": rng.poisson(np.exp(mean)), "y": mean + rng.standard_normal(ROWS)}
    return pandas.DataFrame(found | {"z": rng.standard_normal(ROWS)})


@pytest.mark.parametrize("family", in_ci(FORMULAS, "slopes", "correlated", "many", "own"))
def test_one_row_a_proposal_has_the_posterior_of_all_rows(family, table, monkeypatch):
    """Means and standard deviations of every parameter, in standard errors of the difference of both fits."""
    options = {
        "family": {
            "gaussian": "gaussian",
            "many": "gaussian",
            "binomial": "binomial",
            "censored": "weibull",
            "own": OWN,
        }.get(family, "poisson"),
        "ess": 1_000,
        "seed": 1,
        "progress": False,
    }
    if family == "slopes":
        table = table.assign(
            x=2.0 + table.x, c=np.random.default_rng(1).poisson(np.exp(0.3 + 0.2 * table.x * np.cos(table.g)))
        )
    if family == "binomial":
        trials = 1 + table.index % 7
        table = table.assign(
            n=trials, c=np.random.default_rng(3).binomial(trials, 1.0 / (1.0 + np.exp(-table.y + 0.5)))
        )
    if family == "censored":  # seen, or beyond
        times = np.random.default_rng(5).weibull(1.5, ROWS) * np.exp(0.5 * np.cos(table.g) + 0.3 * table.x)
        table = table.assign(cut=[0, 0, 1, 0, 1, 0] * (ROWS // 6), c=times)
    if family == "many":
        rng = np.random.default_rng(4)
        h = rng.integers(0, 100, ROWS)
        table = table.assign(h=h, y=rng.normal(0.0, 0.5, 100)[h] + 0.3 * table.x + rng.standard_normal(ROWS))
    if family == "correlated":
        effects = 0.3 + 0.3 * np.sin(table.g) + np.cos(table.g) * (0.3 + 0.15 * table.x)
        table = table.assign(x=1.0 + table.x, c=np.random.default_rng(1).poisson(np.exp(effects)))
    if family == "crossed":
        rng = np.random.default_rng(2)
        h = rng.integers(0, 12, ROWS)
        table = table.assign(h=h, c=rng.poisson(np.exp(0.3 + 0.2 * table.x + 0.3 * np.cos(table.g) + 0.4 * np.sin(h))))
    whole = pdmp.regression(FORMULAS[family], table, **options).run
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", ROWS)
    monkeypatch.setattr(design, "LARGE", 1 if family == "in place" else design.LARGE)
    single = pdmp.regression(FORMULAS[family], table, **options).run
    assert family != "many" or single.process.squares
    assert isinstance(single.process, RegressionZigZag) and not isinstance(whole.process, RegressionZigZag)
    assert single.stats["data_terms"] <= single.stats["proposals"] and single.stats["bound_violations"] == 0
    one, other = pdmp.diagnostics.effective_draws(single), pdmp.diagnostics.effective_draws(whole)
    draws = [run.constrain(pdmp.diagnostics.averages.diagnostic_draws(run)) for run in (single, whole)]
    # Natural parameters: the two models may have other coordinates.
    assert set(draws[0]) == set(draws[1])
    for name in draws[0]:
        a, b = (each[name].reshape(-1, *each[name].shape[2:]) for each in draws)
        sd, least = b.std(axis=0), min(np.min(one["mean"]), np.min(other["mean"]))
        assert np.abs((a.mean(axis=0) - b.mean(axis=0)) / sd).max() < RESOLUTION * np.sqrt(2.0 / least)
        least = min(np.min(one["sd"]), np.min(other["sd"]))
        assert np.abs(a.std(axis=0) / sd - 1.0).max() < RESOLUTION * np.sqrt(1.0 / least)


def test_one_row_a_proposal_on_ellipses(table):
    """Means and standard deviations of the sub-sampled Boomerang, and of weighted draws of the normal approximation."""
    X = np.column_stack([np.ones(ROWS), table.x, table.x + 0.3 * table.z])
    model = MixedRegression(X, table.c, PoissonLaw(), ["Intercept", "x", "w"], [Normal(0.0, 2.0)] * 3, intercept=0)
    process = RegressionBoomerang(model)
    run = pdmp.sample(process, initial=process.anchor, time=20_000.0, seed=1, warmup=0.01, progress=False)
    assert run.stats["bound_violations"] == 0 and run.stats["events"]["bounce"] > 100
    draws = process.anchor + np.random.default_rng(2).standard_normal((4_000, 3)) @ process.reference.root.T
    normal = 0.5 * np.einsum("ij,jk,ik->i", draws - process.anchor, process.reference.precision, draws - process.anchor)
    log_weights = normal - np.array([model.potential(x) for x in draws])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    least = 1.0 / np.sum(weights**2)
    assert least > 3_900
    mean = weights @ draws
    sd = np.sqrt(weights @ (draws - mean) ** 2)
    effective = pdmp.diagnostics.effective_draws(run)
    error = RESOLUTION * np.sqrt(1.0 / least + 1.0 / np.min(effective["mean"]))
    assert error < 0.1
    assert np.abs((run.mean() - mean) / sd).max() < error
    error = RESOLUTION * np.sqrt(0.5 / least + 0.5 / np.min(effective["sd"]))
    assert error < 0.1
    assert np.abs(np.sqrt(run.var()) / sd - 1.0).max() < error
