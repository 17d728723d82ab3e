"""Effective sample sizes of chains whose autocorrelation is known, under every store."""

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import ess
from pdmp.diagnostics.effective_size import ESS_METHODS

GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


@pytest.mark.exact
def test_methods_of_ess_need_no_more_than_their_name():
    """Of tails the smaller one of the quantiles at 5 % and 95 %."""
    draws = np.random.default_rng(0).standard_normal((4, 2_000, 2))
    for method in ESS_METHODS:
        assert np.all(ess(draws, method) > 4_000.0), method
    slow = (draws.cumsum(axis=1) / np.sqrt(np.arange(1, 2_001))[:, None])[:, 1_000:]
    ends = [ess((slow <= np.quantile(slow, q, axis=(0, 1))) * 1.0, "mean") for q in (0.05, 0.95)]
    np.testing.assert_allclose(ess(slow, "tail"), np.min(ends, axis=0), rtol=0.02)


def test_the_effective_sample_size_is_not_bounded_by_the_number_of_draws():
    run = pdmp.sample(discrete.SGLD(GAUSSIAN, step=0.2), steps=100_000, seed=1)
    rho = np.array([0.8, 0.2])  # 1 - γλ: an autoregression of order one
    assert run.ess() == pytest.approx(100_000 * (1.0 - rho) / (1.0 + rho), rel=0.25)


def test_chains_that_disagree_have_few_effective_draws_under_every_store():
    for store in ("skeleton", "moments"):
        run = pdmp.sample(
            discrete.SGLD(GAUSSIAN, step=1e-5), steps=5_000, chains=2, seed=1, store=store, initial=[[5.0, 5], [-5, -5]]
        )
        assert run.ess().max() < 10.0
