"""Checks that run samplers: clocks against their rates, simulation-based calibration."""

from pdmp.native.explanations import explained_functions
from pdmp.validation.clocks import check_clocks
from pdmp.validation.simulation import calibrate, calibration

__all__ = ["calibrate", "calibration", "check_clocks"]

explained_functions(globals())
