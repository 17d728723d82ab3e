"""Constants that U leaves out: priors and likelihoods by quadrature and by SciPy's densities, and log Z with them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from scipy import integrate, stats

import pdmp
from pdmp.automatic.tempering.answers import TemperedReport, evidence_of, integral_of
from pdmp.models.priors import (
    LKJ,
    Exponential,
    Flat,
    Gamma,
    HalfCauchy,
    HalfNormal,
    HalfStudentT,
    Normal,
    StudentT,
    log_mass,
    potential,
)
from pdmp.models.regressions.likelihoods import NormalLaw
from tests.processes.helpers_regression_zigzag import regression

pytestmark = pytest.mark.exact

PRIORS = [
    Normal(0.5, 2.0),
    StudentT(3.0, 0.2, 2.5),
    HalfNormal(0.7),
    HalfStudentT(4.0, 1.7),
    HalfCauchy(2.0),
    Exponential(0.4),
    Gamma(2.5, 3.0),
    LKJ(1.5),
]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_mass_of_a_prior_is_its_integral(prior):
    coded = prior.coded()
    found = sum(
        integrate.quad(lambda x: math.exp(-potential(*coded, x)), *ends, limit=200)[0]
        for ends in ((-60.0, -5.0), (-5.0, 0.0), (0.0, 5.0), (5.0, 60.0), (60.0, 4000.0), (-4000.0, -60.0))
        if prior.positive is False or ends[0] < 60.0
    )
    assert log_mass(*coded) == pytest.approx(math.log(found), abs=1e-4 if isinstance(prior, StudentT) else 1e-7)


X = np.array([[1.0, -0.3], [0.4, 2.0], [-1.2, 0.7], [0.1, -0.9], [0.8, 0.6]])
AT, OFFSET, SCALES = np.array([0.3, -0.6]), np.array([0.1, 0.0, -0.2, 0.4, 0.3]), np.array([0.5, 2.0])
Z = X @ AT + OFFSET
COUNTS, LABELS, REALS = np.array([2, 0, 4, 1, 3]), np.array([1, 0, 0, 1, 1]), np.array([0.2, -1.4, 2.0, 0.1, 0.6])
CHANCES = 1.0 / (1.0 + np.exp(-Z))
OF_PRIOR = stats.norm.logpdf(AT, 0.0, SCALES).sum()


@pytest.mark.parametrize(
    ("model", "likelihood"),
    [
        (pdmp.models.LogisticRegression(X, LABELS, SCALES, offset=OFFSET), stats.bernoulli.logpmf(LABELS, CHANCES)),
        (pdmp.models.PoissonRegression(X, COUNTS, SCALES, offset=OFFSET), stats.poisson.logpmf(COUNTS, np.exp(Z))),
        (
            pdmp.models.NegativeBinomialRegression(X, COUNTS, 1.7, SCALES, offset=OFFSET),
            stats.nbinom.logpmf(COUNTS, 1.7, 1.7 / (1.7 + np.exp(Z))),
        ),
        (pdmp.models.StudentTRegression(X, REALS, 3.0, 0.4, SCALES, offset=OFFSET), stats.t.logpdf(REALS, 3.0, Z, 0.4)),
        (
            pdmp.models.ProbitRegression(X, LABELS, SCALES, offset=OFFSET),
            stats.norm.logcdf(np.where(LABELS == 1, Z, -Z)),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_regression_with_what_it_omits_is_the_joint_density(model, likelihood):
    assert -model.potential(AT) + model.omitted() == pytest.approx(likelihood.sum() + OF_PRIOR, abs=1e-9)


def test_a_sum_of_terms_with_what_it_omits_is_the_joint_density():
    """Of a family all constants, of a loss of one's own those that are written."""
    p = pdmp.Parameters(b=2, log_sigma=1, t=1)
    rows = pdmp.families.gaussian.rows(REALS, mu=X @ p.b + OFFSET, sigma=p.log_sigma)
    own = pdmp.terms(lambda t: 3.0 + t * t, at=[p.t])
    model = pdmp.models.sum_of_terms(
        p, [rows, own], priors={"b": Normal(0.1, 2.0), "log_sigma": HalfNormal(0.8), "t": StudentT(4.0, 0.0, 1.5)}
    )
    x = np.array([*AT, -0.4, 0.7])
    sigma = math.exp(-0.4)
    expected = stats.norm.logpdf(REALS, Z, sigma).sum() + stats.norm.logpdf(AT, 0.1, 2.0).sum()
    expected += stats.halfnorm.logpdf(sigma, 0.0, 0.8) - 0.4 + stats.t.logpdf(0.7, 4.0, 0.0, 1.5) - 3.49
    assert -model.potential(x) + model.omitted() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("eta", [0.7, 3.0])
def test_the_law_of_a_correlation_is_normalised(eta):
    """U of w = artanh r is 2 η log cosh w, and all else does not depend on η."""
    one, other = (regression(NormalLaw, 3, n=40, slopes=1, eta=value) for value in (1.0, eta))
    masses = [integrate.quad(lambda w, q=q: math.cosh(w) ** (-2.0 * q), -40.0, 40.0)[0] for q in (1.0, eta)]
    assert other.omitted() - one.omitted() == pytest.approx(math.log(masses[0] / masses[1]), abs=1e-8)


def test_a_correlation_is_of_two_effects():
    with pytest.raises(ValueError, match=r"correlated intercepts of groups are for one grouping, \(1 \+ x \| g\)"):
        regression(NormalLaw, 3, n=40, slopes=2, eta=1.0)


def test_what_is_not_known_is_said():
    """Flat priors have no evidence, constants of other models are not known; one's own U is as written."""
    flat = pdmp.models.PoissonRegression(X, COUNTS, [1.0, np.inf])
    p = pdmp.Parameters(b=2)
    loose = pdmp.models.sum_of_terms(p, [pdmp.families.poisson.rows(COUNTS, mu=X @ p.b)], priors={"b": Flat()})
    networks = pdmp.models.BayesianNN(X, LABELS, hidden=2)
    assert all(math.isnan(one.omitted()) for one in (flat, loose, networks))
    assert pdmp.models.Gaussian([0.0, 1.0], precision=[1.0, 4.0]).omitted() == 0.0
    assert pdmp.models.from_function(lambda x: (x @ x, 2.0 * x), 2).omitted() == 0.0


class Kept:
    """What a tempered run of two rungs and one chain has kept."""

    chains = 1

    def __init__(self, omitted):
        works = np.random.default_rng(0).exponential(size=(40, 2))
        kept = {"rungs/betas": np.array([0.0, 1.0]), "rungs/works": works, "rungs/spacing": np.ones(1, np.int64)}
        self.records = [type("Record", (), {"accumulated": kept | omitted})]


def test_the_evidence_has_them():
    as_written, whole = Kept({}), Kept({"rungs/omitted": np.array([-2.25])})
    plain, found = integral_of(as_written), evidence_of(whole)
    assert evidence_of(as_written) == plain == integral_of(whole)
    assert found == plain._replace(value=plain.value - 2.25, second=plain.second - 2.25)
    with pytest.warns(UserWarning, match="no marginal likelihood: compare it with that of no other model"):
        assert evidence_of(Kept({"rungs/omitted": np.array([math.nan])})) == plain


def test_a_tempered_run_keeps_them():
    """What its model says, among the arrays of its rungs."""
    model = pdmp.models.LogisticRegression(X, LABELS, SCALES)
    memory = MagicMock()
    memory.counted, memory.trace.used = np.array([3]), np.array([0])
    kept = TemperedReport().accumulated(
        MagicMock(model=model, known=[MagicMock()] * 3), SimpleNamespace(memory=memory), 0.0, 1.0
    )
    assert kept["rungs/omitted"].tolist() == [model.omitted()] and model.omitted() == pytest.approx(-math.log(math.tau))
