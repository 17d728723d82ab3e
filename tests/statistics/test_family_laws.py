"""Posteriors of families, by the sub-sampled Boomerang and some by BPS, are those of importance sampling by SciPy.

A posterior of 2 to 4 parameters and 1,000 rows, or 4,000, is known from 3,000 weighted draws of a Student t about its
mode. Their weights are of `scipy.stats` and have nothing in common with the expressions of the table. Of each parameter
the mean, and the second moment about the true mean, are compared at 4 standard errors of both together. These are
asserted to be at most 0.2 posterior standard deviations, and 0.3 posterior variances: twice that is always seen.
"""

import numpy as np
import pytest

import pdmp
from pdmp.models import families, sum_of_terms
from pdmp.models.families import FAMILIES
from pdmp.models.priors import Normal
from pdmp.processes.regression_boomerang import RegressionBoomerang
from pdmp.processes.regression_bps import RegressionBPS
from pdmp.processes.row_zigzag import RowZigZag
from tests.checks import in_ci
from tests.models.helpers_families import CENSORED, ORACLES, censored_density

N, DRAWS, REPLICATES, TIME = 1_000, 3_000, 20, 300.0
#: Families whose bounds at 1,000 rows are 1,000 times their rates or more, and at these are not.
MANY = dict.fromkeys(
    ("student_t", "skew_normal", "zero_inflated_negative_binomial", "hurdle_negative_binomial", "lognormal"), 4_000
)
MEANS, VARIANCES = 0.2, 0.3  #: what 4 standard errors are at most, in posterior standard deviations and variances
#: Of parameters beside mu: values on the scale of their links.
TRUE = dict(sigma=-0.3, nu=1.6, alpha=0.9, shape=0.7, phi=2.0, zi=-0.7, hu=-0.7, kappa=0.8, beta=0.2)
SKEW = 3.0  #: of the skew normal, far from 0, where its information is singular
CUTS = np.array([-1.0, 0.2, 1.3])
SCALE = 2.5  #: of the normal priors


def plain_rows(name, rng):
    """A model of mu by an intercept and a column, the other parameters constant; and its log-likelihood (S,) at x."""
    family, n = FAMILIES[name], MANY.get(name, N)
    X = np.column_stack([np.ones(n), rng.uniform(-1.5, 1.5, n)])
    others = list(family.links)[1:]
    p = pdmp.Parameters(mu=2, **dict.fromkeys(others, 1))
    data = {"trials": rng.integers(3, 12, n).astype(float)} if "trials" in family.data else {}
    eta = [X @ [0.8, -0.3], *(np.full(n, TRUE[other]) for other in others)]
    if name == "skew_normal":
        eta[-1] = np.full(n, SKEW)
    y = family.draw(rng, *family.inverse(eta), *data.values())
    oracle, known = ORACLES[name], list(data.values())
    if name in CENSORED:
        y, data = censored_rows(y, rng)
        known = list(data.values())

        def oracle(y, *args):
            return censored_density(name, y, args[:-2], *args[-2:])

    at = {"mu": X @ p.mu, **{other: getattr(p, other) for other in others}}
    model = sum_of_terms(p, [family.rows(y, **at, **data)], dict.fromkeys(p.sizes, Normal(0.0, SCALE)))
    return model, lambda x: oracle(y, x[:, :2] @ X.T, *x[:, 2:].T[:, :, None], *known)


def censored_rows(y, rng):
    """Half of the times are seen, and others right, left and interval censored.

    No interval is of early times: of two chances to live on near 1 the difference is enclosed with 0 inside.
    """
    end, kind = 1.5 * np.quantile(y, 0.6) * rng.uniform(0.5, 1.5, len(y)), np.arange(len(y)) % 5
    censored = np.where(y > end, 1.0, np.where(kind == 0, -1.0, np.where((kind < 3) & (y > np.median(y)), 2.0, 0.0)))
    assert np.all(np.unique(censored, return_counts=True)[1] > len(y) // 20)
    below = np.where(censored == 2.0, y / 1.2, np.where(censored == -1.0, 1.3 * y, y))
    upper = np.where(censored == 2.0, 4.0 * y, 2.0 * y)
    return np.where(censored == 1.0, end, below), {"censored": censored, "upper": upper}


def ordinal_rows(name, rng):
    """A column, and three cuts. Gaps have bounds where they are enclosed above 0: no value of the column is far out."""
    family, u = FAMILIES[name], rng.uniform(-1.0, 1.0, N)
    y = family.draw(rng, 0.7 * u, *(np.full(N, c) for c in CUTS))
    k = y.astype(int)
    p = pdmp.Parameters(beta=1, cut=3)
    rows = family.rows(y, mu=u[:, None] @ p.beta, cuts=p.cut)
    model = sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, SCALE)), initial={"cut": CUTS})

    def log_likelihood(x):
        mu, cuts, inner = x[:, :1] * u, x[:, 1:], np.clip(k, 1, 2)
        if not family.has_ascending_cuts:
            return np.array(
                [ORACLES[name](y, z, *(np.full(N, c) for c in own)) for z, own in zip(mu, cuts, strict=True)]
            )
        return ORACLES[name](y, cuts[:, np.minimum(k, 2)] - mu, cuts[:, inner] - cuts[:, inner - 1])

    return model, log_likelihood


def response_rows(name, rng):
    """Two items, each of a difficulty and a discrimination, answered by persons of known ability."""
    ability, item = 1.5 * rng.standard_normal(N), np.arange(N) % 2
    p = pdmp.Parameters(difficulty=2, discrimination=2)
    y = FAMILIES[name].draw(rng, ability - np.array([0.5, -0.4])[item], np.array([1.3, 0.8])[item])
    rows = FAMILIES[name].rows(y, mu=ability - p.difficulty[item], discrimination=p.discrimination[item])
    model = sum_of_terms(p, [rows], dict.fromkeys(p.sizes, Normal(0.0, SCALE)))
    return model, lambda x: ORACLES[name](y, ability - x[:, item], x[:, 2 + item])


def comparison_rows(name, rng):
    """Bradley & Terry (1952): four players, of skills that their prior alone locates."""
    i = rng.integers(4, size=N)
    j = (i + rng.integers(1, 4, size=N)) % 4
    skill = np.array([0.6, -0.2, 0.1, -0.7])
    y = FAMILIES["bernoulli"].draw(rng, 1.0 / (1.0 + np.exp(skill[j] - skill[i])))
    p = pdmp.Parameters(skill=4)
    model = sum_of_terms(p, [families.bernoulli.rows(y, mu=p.skill[i] - p.skill[j])], {"skill": Normal(0.0, SCALE)})
    return model, lambda x: ORACLES["bernoulli"](y, x[:, i] - x[:, j])


def mixture_rows(name, rng):
    """Parts so far apart that no chain, and no draw that weighs anything, has them in the other order."""
    family = FAMILIES[name]
    true = {"mu1": 0.2, "sigma1": -0.4, "mu2": 4.0, "sigma2": 0.1, "theta": 0.5}
    if name == "mixture_poisson":
        true["mu2"] = 2.6
    true = {parameter: true[parameter] for parameter in family.links}
    u = rng.uniform(-1.0, 1.0, N)
    eta = [np.full(N, value) + (0.3 * u if parameter == "mu1" else 0.0) for parameter, value in true.items()]
    y = family.draw(rng, *family.inverse(eta))
    p = pdmp.Parameters(slope=1, **dict.fromkeys(true, 1))
    at = {parameter: getattr(p, parameter) for parameter in true}
    rows = family.rows(y, **at | {"mu1": p.mu1 + u[:, None] @ p.slope})
    priors = dict.fromkeys(p.sizes, Normal(0.0, SCALE))
    model = sum_of_terms(p, [rows], priors, initial={parameter: [value] for parameter, value in true.items()})

    def log_likelihood(x):
        eta = list(x[:, 1:].T[:, :, None])
        return ORACLES[name](y, eta[0] + x[:, :1] * u, *eta[1:])

    return model, log_likelihood


MADE = {
    **dict.fromkeys(("cumulative", "cumulative_probit", "sratio", "acat"), ordinal_rows),
    "item_response": response_rows, "bradley_terry": comparison_rows,
    "mixture_gaussian": mixture_rows, "mixture_poisson": mixture_rows,
}  # fmt: skip


def weighted(model, log_likelihood, rng):
    """Draws of a Student t of 8 degrees of freedom about the mode, and what they weigh in the posterior."""
    mode, nu = model.mode(), 8.0
    root = np.linalg.cholesky(1.1 * np.linalg.inv(model.gradient_and_hessian(mode)[1]))
    z = rng.standard_normal((DRAWS, model.dim)) / np.sqrt(rng.chisquare(nu, (DRAWS, 1)) / nu)
    x = mode + z @ root.T
    log_weights = 0.5 * (nu + model.dim) * np.log1p(np.sum(z**2, axis=1) / nu) - 0.5 * np.sum((x / SCALE) ** 2, axis=1)
    for part in np.array_split(np.arange(DRAWS), DRAWS // 100):
        log_weights[part] += np.sum(log_likelihood(x[part]), axis=1)
    weights = np.exp(log_weights - np.max(log_weights))
    return x, weights / weights.sum()


def case(name):
    """A model, and its posterior by weighted draws."""
    rng = np.random.default_rng(1)
    model, log_likelihood = MADE.get(name, plain_rows)(name, rng)
    return model, *weighted(model, log_likelihood, rng)


def agree(process, x, weights):
    """Moments of independent chains, which start at draws of the proposal, are those of the weighted draws."""
    assert 1.0 / np.sum(weights**2) > 0.4 * DRAWS
    start = {"initial": x[:REPLICATES], "chains": REPLICATES, "seed": 2}
    run = pdmp.sample(process, **start, time=TIME, warmup=0.1, store="moments")
    assert run.stats["bound_violations"] == 0
    mean = weights @ x
    var = weights @ (x - mean) ** 2
    z, chains = (x - mean) / np.sqrt(var), pdmp.diagnostics.split(run)
    by_chain = np.array([(chain.mean() - mean) / np.sqrt(var) for chain in chains])
    for found, truth, resolution in (
        (by_chain, z, MEANS),
        (np.array([chain.var() for chain in chains]) / var + by_chain**2 - 1.0, z**2 - 1.0, VARIANCES),
    ):
        error = np.sqrt(np.var(found, axis=0, ddof=1) / REPLICATES + weights**2 @ truth**2)
        assert np.all(4.0 * error < resolution), f"cannot see less than {4.0 * error}"
        bias = np.mean(found, axis=0)
        assert np.all(np.abs(bias) < 4.0 * error), f"off by {bias}, of standard errors {error}"


ALL = [*FAMILIES, "bradley_terry"]
#: Each with the loss of another, but for a link, a constant or a part that has its own law.
TWINS = (
    *("bernoulli", "lognormal", "exponential", "cumulative_probit", "sratio", "mixture_poisson", "geometric"),
    *("zero_inflated_negative_binomial", "hurdle_negative_binomial", "zero_inflated_binomial", "hurdle_gamma"),
    "hurdle_lognormal",
)


@pytest.mark.parametrize("name", in_ci(ALL, *(name for name in ALL if name not in TWINS)))
def test_posteriors_are_those_of_weighted_draws(name):
    model, x, weights = case(name)
    agree(RegressionBoomerang(model), x, weights)


OTHERS = [("gaussian", RegressionBPS), ("exponential", RegressionBPS), ("bradley_terry", RegressionBPS)]
OTHERS += [("gaussian", RowZigZag), ("exponential", RowZigZag)]


@pytest.mark.parametrize("how", in_ci(OTHERS, OTHERS[4]), ids=lambda how: f"{how[0]} {how[1].__name__}")
def test_and_those_of_another_process(how):
    model, x, weights = case(how[0])
    agree(how[1](model), x, weights)
