"""Regressions of large tables, compiled: what looks at one row a proposal has the posterior of full gradients."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulae")

import pdmp  # noqa: E402
from pdmp.automatic import subsampling  # noqa: E402
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
OWN = pdmp.Family(
    "logistic",
    lambda y, z, a: a + 2.0 * softplus((y - z) * exp(-a)) - (y - z) * exp(-a),
    links={"mu": "identity", "scale": "log"},
)


def slopes(t):
    rate = np.exp(0.3 + 0.2 * t.x * np.cos(t.g))
    return {"x": 2.0 + t.x, "c": np.random.default_rng(1).poisson(rate)}


def correlated(t):
    mean = 0.3 + 0.3 * np.sin(t.g) + np.cos(t.g) * (0.3 + 0.15 * t.x)
    return {"x": 1.0 + t.x, "c": np.random.default_rng(1).poisson(np.exp(mean))}


def crossed(t):
    rng = np.random.default_rng(2)
    h = rng.integers(0, 12, ROWS)
    return {"h": h, "c": rng.poisson(np.exp(0.3 + 0.2 * t.x + 0.3 * np.cos(t.g) + 0.4 * np.sin(h)))}


def many(t):
    rng = np.random.default_rng(4)
    h = rng.integers(0, 100, ROWS)
    return {"h": h, "y": rng.normal(0.0, 0.5, 100)[h] + 0.3 * t.x + rng.standard_normal(ROWS)}


def trials(t):
    n = 1 + t.index % 7
    return {"n": n, "c": np.random.default_rng(3).binomial(n, 1.0 / (1.0 + np.exp(-t.y + 0.5)))}


def right(t):
    """Seen, or beyond."""
    times = np.random.default_rng(5).weibull(1.5, len(t)) * np.exp(0.5 * np.cos(t.g) + 0.3 * t.x)
    return {"cut": [0, 0, 1, 0, 1, 0] * (len(t) // 6), "c": times}


def between(t):
    """Seen, below 1.3 times what it was, beyond .8 times, or between both."""
    times, cut = right(t)["c"], np.array([0, 2, 1, 2, -1, 2] * (len(t) // 6))
    return {"cut": cut, "c": times * np.select([cut > 0, cut < 0], [0.8, 1.3], 1.0), "d": 1.3 * times}


def cut_off(t):
    """Those alone that are above a bound of their row."""
    low = np.quantile(t.y, 0.4) + 0.3 * np.sin(t.index)
    kept = np.flatnonzero(t.y > low)
    rows = kept[np.arange(ROWS) % len(kept)]
    return {"low": low.to_numpy()[rows], **{name: t[name].to_numpy()[rows] for name in ("x", "g", "y")}}


def from_1_to_4(t):
    kept = np.flatnonzero((t.c >= 1) & (t.c <= 4))
    return {name: t[name].to_numpy()[kept[np.arange(ROWS) % len(kept)]] for name in ("x", "g", "c")}


def measured(t):
    s = 0.5 + np.random.default_rng(6).random(ROWS)
    return {"s": s, "y": 0.3 * t.x + 0.4 * np.cos(t.g) + s * np.random.default_rng(7).standard_normal(ROWS)}


#: Formula, family, and columns of a table of their own.
CASES = {
    "poisson": ("c ~ x + (1 | g)", "poisson", None),
    "gaussian": ("y ~ x", "gaussian", None),
    "in place": ("c ~ x + z", "poisson", None),
    "slopes": ("c ~ x + z + (1 + x || g)", "poisson", slopes),
    "many": ("y ~ x + (1 | h)", "gaussian", many),  # squares are in the expansion
    "correlated": ("c ~ x + z + (1 + x | g)", "poisson", correlated),
    "crossed": ("c ~ x + (1 | g) + (1 | h)", "poisson", crossed),
    "binomial": ("c | trials(n) ~ x + (1 | g)", "binomial", trials),
    "censored": ("c | cens(cut) ~ x + (1 | g)", "weibull", right),
    "interval": ("c | cens(cut, d) ~ x + (1 | g)", "weibull", between),
    "truncated": ("y | trunc(lb=low) ~ x + (1 | g)", "gaussian", cut_off),
    "known errors": ("y | se(s) ~ x + (1 | g)", "gaussian", measured),
    "own": ("y ~ x + (1 | g)", OWN, None),
    "truncated counts": ("c | trunc(lb=1, ub=4) ~ x + (1 | g)", "poisson", from_1_to_4),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal(ROWS), rng.integers(0, GROUPS, ROWS)
    mean = 0.5 + 0.3 * x + rng.normal(0.0, 0.4, GROUPS)[g]
    found = {"x": x, "g": g, "c": rng.poisson(np.exp(mean)), "y": mean + rng.standard_normal(ROWS)}
    return pandas.DataFrame(found | {"z": rng.standard_normal(ROWS)})


@pytest.mark.parametrize("case", in_ci(CASES, "correlated", "own"))
def test_one_row_a_proposal_has_the_posterior_of_all_rows(case, table, monkeypatch):
    """Means and standard deviations of every parameter, in standard errors of the difference of both fits."""
    formula, family, columns = CASES[case]
    options = {"family": family, "ess": 1_000, "seed": 1, "progress": False}
    if case == "interval":  # of which bounds reach far enough with more rows only
        table = pandas.concat([table] * 8, ignore_index=True)
    table = table.assign(**columns(table)) if columns else table
    whole = pdmp.regression(formula, table, **options).run
    monkeypatch.setattr(fitting, "SUBSAMPLED_ROWS", ROWS)
    monkeypatch.setattr(subsampling, "GROUPED_SHARE", np.inf)
    monkeypatch.setattr(design, "LARGE", 1 if case == "in place" else design.LARGE)
    single = pdmp.regression(formula, table, **options).run
    assert case != "many" or single.process.squares
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
