"""The anchor of sticky samplers against evidences of all sets of coefficients."""

import itertools
import math

import numpy as np
import pytest

from pdmp.automatic.sparse_anchor import sparse_anchor
from pdmp.models.priors import BetaBernoulli

pytestmark = pytest.mark.exact

D, ALWAYS = 6, (0, 3)


def problem(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((D, D)) + 2.0 * np.eye(D)
    covariance = 1e-2 * root @ root.T
    return 0.3 * rng.standard_normal(D), covariance


def log_evidence(mean, covariance, kappa, law, chosen):
    """Of the coefficients `chosen` besides those always in, the others being 0; up to a constant."""
    places = sorted({*ALWAYS, *chosen})
    precision = np.linalg.inv(covariance)
    pull, part = (precision @ mean)[places], precision[np.ix_(places, places)]
    total = 0.5 * pull @ np.linalg.solve(part, pull) - 0.5 * np.linalg.slogdet(part)[1]
    total += 0.5 * len(places) * math.log(math.tau) + np.sum(np.log(kappa[list(chosen)]))
    free = D - len(ALWAYS)
    if law is not None:
        k = len(chosen)
        total += math.lgamma(law.a + k) + math.lgamma(law.b + free - k)
    return total, np.linalg.solve(part, pull), places


@pytest.mark.parametrize("law", [None, BetaBernoulli(1.0, 4.0)], ids=["independent", "counted"])
def test_coefficients_are_chosen_while_the_evidence_rises(law):
    """Each time the best one; what is not chosen is 0, and the others are at their mode given that."""
    sizes = set()
    for seed in range(12):
        mean, covariance = problem(seed)
        kappa = np.full(D, 1.0 if law else 0.4)
        kappa[list(ALWAYS)] = 0.0
        chosen = ()
        while True:
            others = [j for j in range(D) if j not in (*ALWAYS, *chosen)]
            now = log_evidence(mean, covariance, kappa, law, chosen)[0]
            further = [log_evidence(mean, covariance, kappa, law, (*chosen, j))[0] for j in others]
            if not others or max(further) <= now:
                break
            chosen = (*chosen, others[int(np.argmax(further))])
        _, mode, places = log_evidence(mean, covariance, kappa, law, chosen)
        expected = np.zeros(D)
        expected[places] = mode
        np.testing.assert_allclose(sparse_anchor(mean, covariance, kappa, law), expected, atol=1e-12)
        sizes.add(len(chosen))
    assert len(sizes) >= 3


def test_the_prior_of_how_many_are_not_zero():
    """Of independent coefficients the second has the prior odds (a + 1) / (b + 1), where three are free."""
    law, precision = BetaBernoulli(2.0, 7.0), math.tau * np.array([1.0, 1.0, 1e6])
    for ratio, enters in ((1.02, True), (0.98, False)):
        factor = ratio * (7.0 + 1.0) / (2.0 + 1.0)  # the evidence for it
        mean = np.sqrt(2.0 * np.array([20.0, math.log(factor), 0.0]) / precision)
        anchor = sparse_anchor(mean, np.diag(1.0 / precision), np.ones(3), law)
        assert (anchor != 0.0).tolist() == [True, enters, False]


def test_of_two_columns_that_say_the_same_one_is_chosen():
    correlation = np.array([[1.0, -0.99], [-0.99, 1.0]])  # of the coefficients
    anchor = sparse_anchor(np.array([0.5, 0.4]), 0.09 * correlation, np.full(2, 0.2))
    assert np.sum(anchor != 0.0) == 1 and anchor.max() == pytest.approx(0.9, abs=0.05)


def test_all_and_none():
    for size, some in itertools.product((1, 3), (0.0, 50.0)):
        mean, covariance = np.full(size, some), np.eye(size)
        np.testing.assert_allclose(sparse_anchor(mean, covariance, np.full(size, 0.01)), mean)
    assert np.array_equal(sparse_anchor(np.array([2.0]), np.eye(1), np.zeros(1)), [2.0])
