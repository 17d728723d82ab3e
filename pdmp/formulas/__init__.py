"""Regressions that a formula and a table describe: coded, sampled, and reported in the units of the data."""

from pdmp.formulas.fit import Fit
from pdmp.formulas.fitting import regression

__all__ = [
    "Fit",
    "regression",
]
