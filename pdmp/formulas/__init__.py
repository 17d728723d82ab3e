"""Regressions that a formula and a table describe: coded, sampled, and reported in the units of the data."""

from pdmp.formulas.effects import ConditionalEffects
from pdmp.formulas.estimates import Estimates
from pdmp.formulas.fit import Fit
from pdmp.formulas.fitting import regression
from pdmp.formulas.loo import Loo, LooDifference
from pdmp.formulas.predictive_checks import PredictiveCheck
from pdmp.formulas.prepared import Prepared

__all__ = [
    "ConditionalEffects",
    "Estimates",
    "Fit",
    "Loo",
    "LooDifference",
    "PredictiveCheck",
    "Prepared",
    "regression",
]
