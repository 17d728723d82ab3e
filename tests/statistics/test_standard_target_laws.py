"""A hierarchy sampled in continuous time has the moments that quadrature gives."""

import numpy as np

import pdmp
from pdmp.models import EightSchools
from tests.checks import assert_unbiased, replicate


def test_bps_on_eight_schools():
    model = EightSchools()
    mean, covariance = model.moments()
    sd = np.sqrt(np.diag(covariance))
    found = replicate(pdmp.BPS(model), mean, replicates=24, seed=11, warmup=0.02, events=8_000)
    assert_unbiased(found.mean / sd, mean / sd, resolution=0.2)
    assert_unbiased(found.var / sd**2, np.ones(model.dim), resolution=0.5)
