"""Effective sample sizes of chains whose autocorrelation is known, under every store."""

import numpy as np
import pytest

import discrete
import pdmp

GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


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
