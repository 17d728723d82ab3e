"""Posteriors of families of 1,000 rows: by the sub-sampled Boomerang and BPS, against Hamiltonian Monte Carlo."""

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
    """A posterior of rows drawn from a family: mu by columns, one other parameter by two, and the rest constant."""
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


def agree(one, other, resolution):
    """Means and standard deviations within 5 standard errors, of at most `resolution` posterior standard deviations."""
    error = np.sqrt(1.0 / one.ess() + 1.0 / other.ess())
    sd = np.sqrt(one.var())
    assert np.all(5.0 * error < resolution)
    assert np.all(np.abs(one.mean() - other.mean()) < 5.0 * error * sd)
    assert np.all(np.abs(np.log(np.sqrt(other.var()) / sd)) < 5.0 * error)


#: Of 1,000 rows the bounds of Student's t are far above its rates; its posterior is held by other laws.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "student_t"])
def test_posteriors_are_those_of_full_gradients_and_of_another_process(name):
    model = simulated(name)
    one, other = (
        pdmp.sample(process(model), time=4_000.0, warmup=0.02, seed=2, store="moments")
        for process in (RegressionBoomerang, RegressionBPS)
    )
    assert one.stats["bound_violations"] == other.stats["bound_violations"] == 0
    agree(one, other, 0.3)
    agree(one, pdmp.sample(pdmp.HMC(model), events=800, warmup=0.2, seed=5), 0.6)


def test_of_bradley_terry():
    rng, players = np.random.default_rng(3), 6
    skill, i = rng.normal(0.0, 0.7, players), rng.integers(players, size=N)
    j = (i + rng.integers(1, players, size=N)) % players
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(skill[j] - skill[i]))).astype(float)
    p = pdmp.Parameters(skill=players)
    model = sum_of_terms(p, [families.bernoulli.rows(y, mu=p.skill[i] - p.skill[j])], {"skill": Normal(0.0, 1.0)})
    one, other = (
        pdmp.sample(process(model), time=4_000.0, warmup=0.02, seed=2, store="moments")
        for process in (RegressionBoomerang, RegressionBPS)
    )
    assert one.stats["bound_violations"] == other.stats["bound_violations"] == 0
    agree(one, other, 0.3)
