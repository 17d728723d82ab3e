"""Posteriors of families of 1,000 rows: by the sub-sampled Boomerang and BPS, against Hamiltonian Monte Carlo."""

import functools

import numpy as np
import pytest

import pdmp
from pdmp.models import families, sum_of_terms
from pdmp.models.families import FAMILIES
from pdmp.models.priors import Normal
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS

N = 1_000
#: Of parameters beside mu: values on the scale of their links.
TRUE = {"sigma": -0.3, "nu": 1.6, "alpha": 0.5, "shape": 0.7, "phi": 2.0, "zi": -0.7, "hu": -0.7, "discrimination": 0.2,
        "kappa": 1.0}  # fmt: skip
CUTS = np.array([-1.0, 0.2, 1.3])
NAMES = [name for name in FAMILIES if not name.startswith("mixture")]
CENSORED = ("weibull", "exponential", "lognormal")


def simulated(name, n=N, columns=3, seed=1):
    """A posterior of rows drawn from a family: mu by columns, another linear predictor of two, and the rest constant."""
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, columns - 1))])
    beta = np.r_[0.4, rng.normal(0.0, 0.3, columns - 1)]
    if family.arrange:
        p = pdmp.Parameters(beta=columns - 1, cut=3)
        y = family.draw(rng, X[:, 1:] @ beta[1:], *(np.full(n, c) for c in CUTS))
        rows = family.rows(y, mu=X[:, 1:] @ p.beta, cuts=p.cut)
        return sum_of_terms(p, [rows], {"beta": Normal(0, 2.5), "cut": Normal(0, 2.5)}, initial={"cut": CUTS})
    others = list(family.links)[1:]
    linear = others[-1:] if others and others[-1] in ("zi", "hu", "sigma") else []
    p = pdmp.Parameters(beta=columns, **{name: 2 if name in linear else 1 for name in others})
    eta = {"mu": X @ beta, **{name: TRUE[name] + (0.3 * X[:, 1] if name in linear else np.zeros(n)) for name in others}}
    data = {"trials": rng.integers(3, 12, n).astype(float)} if "trials" in family.data else {}
    values = family.inverse(list(eta.values()))
    y = family.draw(rng, *values, *data.values()) if data else family.draw(rng, *values)
    if family.response == "share":
        y = np.clip(y, 1e-12, 1.0 - 1e-12)
    if name in CENSORED:
        end, kind = 1.5 * np.quantile(y, 0.6) * rng.uniform(0.5, 1.5, n), np.arange(n) % 10
        censored = np.where(y > end, 1.0, np.where(kind == 0, -1.0, np.where(kind == 1, 2.0, 0.0)))
        upper, below = 1.8 * y, np.where(censored == 2.0, y / 1.2, np.where(censored == -1.0, 1.3 * y, y))
        y, data = np.where(censored == 1.0, end, below), {"censored": censored, "upper": upper}
    at = {name: X[:, :2] @ getattr(p, name) if name in linear else getattr(p, name) for name in others}
    rows = family.rows(y, mu=X @ p.beta, **at, **data)
    return sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, 2.5)))


@functools.cache
def reference(name):
    """Means and standard deviations, and the effective draws of both, by full gradients."""
    run = pdmp.sample(pdmp.HMC(simulated(name)), events=6_000, warmup=0.2, seed=5)
    return run.mean(), np.sqrt(run.var()), run.ess()


@pytest.mark.parametrize("process", [RegressionBoomerang, RegressionBPS])
@pytest.mark.parametrize("name", NAMES)
def test_posteriors_are_those_of_full_gradients(name, process):
    mean, sd, ess = reference(name)
    run = pdmp.sample(process(simulated(name)), time=4_000.0, warmup=0.02, seed=2, store="moments")
    own = run.ess()
    assert run.stats["bound_violations"] == 0
    assert min(own.min(), ess.min()) > 400.0
    error = np.sqrt(1.0 / own + 1.0 / ess)
    # 5 standard errors of the difference, of at most 0.35 standard deviations of the posterior.
    assert np.all(5.0 * error < 0.36)
    assert np.all(np.abs(run.mean() - mean) / sd < 5.0 * error)
    assert np.all(np.abs(np.log(np.sqrt(run.var()) / sd)) < 5.0 * error)


def test_of_bradley_terry():
    rng, players = np.random.default_rng(3), 6
    skill, i = rng.normal(0.0, 0.7, players), rng.integers(players, size=N)
    j = (i + rng.integers(1, players, size=N)) % players
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(skill[j] - skill[i]))).astype(float)
    p = pdmp.Parameters(skill=players)
    model = sum_of_terms(p, [families.bernoulli.rows(y, mu=p.skill[i] - p.skill[j])], {"skill": Normal(0.0, 1.0)})
    runs = [
        pdmp.sample(process(model), time=4_000.0, warmup=0.02, seed=2, store="moments")
        for process in (RegressionBoomerang, RegressionBPS)
    ]
    assert all(run.stats["bound_violations"] == 0 for run in runs)
    one, other = runs
    error = np.sqrt(1.0 / one.ess() + 1.0 / other.ess())
    assert np.all(5.0 * error < 0.36)
    assert np.all(np.abs(one.mean() - other.mean()) / np.sqrt(one.var()) < 5.0 * error)
