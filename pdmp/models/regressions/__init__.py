"""Regressions: Gaussian priors, and likelihoods of one linear predictor."""

from pdmp.models.regressions.by_law import (
    NegativeBinomialRegression,
    PoissonRegression,
    ProbitRegression,
    StudentTRegression,
)
from pdmp.models.regressions.half_cauchy_logistic import HalfCauchyLogistic
from pdmp.models.regressions.linear_gaussian import LinearGaussian
from pdmp.models.regressions.logistic import LogisticRegression
from pdmp.models.regressions.normal_inverse_gamma import NormalInverseGamma, NormalInverseGammaRegression
from pdmp.models.regressions.spike_and_slab import SpikeAndSlabLinearRegression, SpikeAndSlabLogisticRegression

__all__ = [
    "HalfCauchyLogistic",
    "LinearGaussian",
    "LogisticRegression",
    "NegativeBinomialRegression",
    "NormalInverseGamma",
    "NormalInverseGammaRegression",
    "PoissonRegression",
    "ProbitRegression",
    "SpikeAndSlabLinearRegression",
    "SpikeAndSlabLogisticRegression",
    "StudentTRegression",
]
