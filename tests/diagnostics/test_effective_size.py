"""Effective sample sizes of chains whose autocorrelation is known, under every store."""

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.diagnostics import ess, rhat
from pdmp.diagnostics.effective_size import ESS_METHODS, RHAT_METHODS

GAUSSIAN = pdmp.models.Gaussian([0.0, 0.0], [1.0, 4.0])


@pytest.mark.exact
@pytest.mark.parametrize("method", [*ESS_METHODS, *(f"rhat {name}" for name in RHAT_METHODS)])
def test_every_method_is_that_of_arviz(method):
    """Coordinate by coordinate, of chains that are correlated and apart, beside one that never moved; a run passes it
    on, as a single chain does in halves."""
    from arviz_stats.base import array_stats

    x = np.random.default_rng(1).standard_normal((3, 101, 3))
    x = np.cumsum(x, axis=1) * [0.3, 0.05, 0.0] + x ** [1, 3, 1] + 0.4 * np.arange(3)[:, None, None]
    x[..., 2] = 2.0
    measure, name = (rhat, method[5:]) if method.startswith("rhat") else (ess, method)
    options = {"prob": (0.05, 0.95)} if name == "tail" else {}
    theirs = getattr(array_stats, measure.__name__)
    alone = np.stack([x[0, :50], x[0, 50:100]])
    for given, halves in ((x, x), (x[:1], alone if measure is rhat else x[:1])) if name != "rank" else ((x, x),):
        with pytest.warns(UserWarning, match=r"coordinates \[2\] of"):
            found = measure(given, name)
        wanted = [theirs(halves[:, :, j], chain_axis=0, draw_axis=1, method=name, **options) for j in (0, 1)]
        np.testing.assert_allclose(found[:2], np.array(wanted, float), rtol=1e-12)
        assert np.isnan(found[2])
    run = pdmp.sample(discrete.SGLD(GAUSSIAN, step=0.3), steps=60, chains=2, seed=1)
    given = measure(run, name)
    np.testing.assert_array_equal(given, measure(pdmp.diagnostics.averages.diagnostic_draws(run), name))
    np.testing.assert_array_equal(given, getattr(run, measure.__name__)(name))


@pytest.mark.slow
@pytest.mark.exact
def test_chains_that_disagree_have_few_effective_draws_under_every_store():
    for store in ("skeleton", "moments"):
        run = pdmp.sample(
            discrete.SGLD(GAUSSIAN, step=1e-5), steps=5_000, chains=2, seed=1, store=store, initial=[[5.0, 5], [-5, -5]]
        )
        assert run.ess().max() < 10.0
