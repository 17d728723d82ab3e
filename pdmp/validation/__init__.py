"""Checks that run samplers: clocks against their rates, simulation-based calibration."""

from pdmp.validation.clocks import check_clocks as check_clocks
from pdmp.validation.simulation import calibration as calibration
