"""What SGLD and SGBD do on the data of the paper, Sepsis: the order that it reports, with a wide margin.

Logistic regression of 88,163 rows, not standardised, so that the four coordinates have posterior standard deviations
from 0.0009 (age) to 0.08 (intercept); batches of 1 %, steps as in figure 3 of Mauri & Zanella (2024): σ = 4 10⁻⁴ for
SGLD, with h = σ², and 1.5 10⁻³ for SGBD.
"""

import os

import numpy as np
import pytest

import discrete
import pdmp
from pdmp.gradients import Minibatch
from tests.checks import replicate

FOLDER = os.path.join(os.environ.get("PDMP_DATA", ""), "sepsis_survival")


@pytest.mark.release
@pytest.mark.skipif(not os.path.isdir(FOLDER), reason="needs sepsis_survival/ in PDMP_DATA")
def test_sgld_inflates_the_first_coordinate_far_more_than_sgbd():
    """Standard deviations of four chains relative to the Laplace approximation's, which is off by less than 1 %."""
    train = pdmp.data.sepsis(FOLDER).train
    model = pdmp.models.LogisticRegression(train.X, train.y, prior_scale=1.0)
    mode = model.mode()
    sd = np.sqrt(np.diag(np.linalg.inv(model.hessian(mode))))
    np.testing.assert_allclose(sd, [0.00091, 0.0265, 0.0172, 0.076], rtol=0.02)
    batch, found = Minibatch(model, model.n_data // 100, draw="distinct"), {}
    for name, process in (
        ("SGLD", discrete.SGLD.from_sigma(batch, 4e-4)),
        ("SGBD", discrete.SGBD(batch, 1.5e-3)),
    ):
        found[name] = np.sqrt(replicate(process, mode, 4, seed=5, warmup=0.25, steps=6_000).var[:, 0]) / sd[0]
    assert found["SGLD"].min() > 10.0
    assert 1.0 < found["SGBD"].min() and found["SGBD"].max() < 3.0
